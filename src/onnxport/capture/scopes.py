"""In which module each node of a trace was made.

PyTorch's own record of scopes makes the tracer rebuild the whole graph at its end. Here the module calls leave marks
instead: values of a trace are numbered as they are made, so a node belongs to the module whose stretch of numbers its
output is in.
"""

from __future__ import annotations

import bisect
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from onnxport.capture import torch_private


class Scopes:
    """The marks of one trace. names: module -> its qualified name."""

    def __init__(self, names: dict[Any, str]):
        self.names = names
        self.path: list[str] = []
        self.marks = [-1]
        self.labels = [""]

    def at(self, unique: int) -> str:
        """The scope (`Net/body/body.0`) of the node that made the value of this number."""
        return self.labels[bisect.bisect_left(self.marks, unique) - 1]

    def enter(self, module: Any) -> None:
        """The module's forward begins."""
        self.path.append(self.names.get(module, ""))
        self._mark()

    def leave(self) -> None:
        """The innermost module's forward ends."""
        self.path.pop()
        self._mark()

    def _mark(self) -> None:
        last = torch_private.last_unique()
        if last is not None:
            self.marks.append(last)
            self.labels.append("/".join([name for name in self.path if name]))


class _Active(threading.local):
    def __init__(self) -> None:
        self.stack: list[Scopes] = []


_active = _Active()


def _entered(module: Any, args: Any) -> None:
    if _active.stack:
        _active.stack[-1].enter(module)


def _left(module: Any, args: Any, result: Any) -> None:
    if _active.stack:
        _active.stack[-1].leave()


def _on() -> list[Any]:
    return [register_module_forward_pre_hook(_entered), register_module_forward_hook(_left)]


def _off(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()


_hooks = torch_private.Shared(_on, _off)


@contextlib.contextmanager
def recorded(names: dict[Any, str]) -> Iterator[Scopes]:
    """Marks the module calls of the trace that runs inside, in this thread."""
    with _hooks():
        scopes = Scopes(names)
        _active.stack.append(scopes)
        try:
            yield scopes
        finally:
            _active.stack.pop()
