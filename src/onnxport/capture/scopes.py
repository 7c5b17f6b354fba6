"""In which module each node of a trace was made.

PyTorch's own record of scopes makes the tracer rebuild the whole graph at its end. Here the module calls leave marks
instead: values of a trace are numbered as they are made, so a node belongs to the module whose stretch of numbers its
output is in.
"""

from __future__ import annotations

import bisect
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from onnxport import structure
from onnxport.capture import torch_private
from onnxport.module_calls import ModuleCall, Scope, annotated

Noted = Callable[[Any], bool]  # whether the calls of a module become functions
_ROOT = Scope("")
CALLS = frozenset({"prim::CallFunction", "prim::CallMethod"})


class Scopes:
    """The marks of one trace. names: module -> its qualified name.   root: the module whose name is its class.

    noted: the modules whose calls are kept with their tensors (None: of no module).
    """

    def __init__(self, names: dict[Any, str], root: Any = None, noted: Noted | None = None):
        self.names, self.root, self.noted = names, root, noted
        self.path: list[str] = []
        self.marks = [-1]
        self.labels = [_ROOT]
        self.end: int | None = None  # the last number of the trace itself, where scripts were inlined after it
        self.inlined: dict[int, Scope] = {}
        self.calls: list[ModuleCall] = []
        self._open: list[tuple[ModuleCall | None, dict[int, int], int]] = []

    def at(self, unique: int, before: Scope = _ROOT) -> Scope:
        """The scope (`Net/body/body.0`) of the node that made the value of this number. before: that of the node before it."""
        if unique in self.inlined:
            return self.inlined[unique]
        if self.end is not None and unique > self.end:
            return before
        return self.labels[bisect.bisect_left(self.marks, unique) - 1]

    @contextlib.contextmanager
    def inlining(self, raw: Any) -> Iterator[None]:
        """Inside, the scripts that the graph `raw` calls are inlined: what one becomes is in the scope of the call."""
        made = [(node.outputsAt(0).unique(), node.kind()) for node in raw.nodes() if node.outputsSize()]
        places = {number: place for place, (number, _) in enumerate(made)}
        calls = [(place, self.at(number)) for place, (number, kind) in enumerate(made) if kind in CALLS]
        yield
        self.end = max(places, default=0)
        place, following = -1, 0
        for node in raw.nodes():
            number = node.outputsAt(0).unique() if node.outputsSize() else -1
            place = places.get(number, place)
            while following < len(calls) and calls[following][0] <= place:
                following += 1
            if number > self.end and following < len(calls):
                self.inlined[number] = calls[following][1]

    def enter(self, module: Any, args: Any) -> None:
        """The module's forward begins."""
        self.path.append(self.names.get(module, ""))
        if self.noted is not None:
            self._begin(module, args)
        self._mark()

    def leave(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        """The innermost module's forward ends."""
        if self.noted is not None:
            self._end(module, args, kwargs, result)
        self.path.pop()
        self._mark()

    def _begin(self, module: Any, args: Any) -> None:
        """A call begins. What its arguments are is noted now: the module may write into them."""
        outer = self._open[-1][0] if self._open else None
        assert self.noted is not None
        if not self.noted(module):
            self._open.append((outer, {}, 0))
            return
        name = "" if module is self.root else self.names.get(module, "")
        call = ModuleCall(type(module), name, annotated(module), outer)
        self.calls.append(call)
        given = {id(leaf.value): _number(leaf.value) for leaf in structure.flatten(args)[0]}
        self._open.append((call, given, torch_private.next_unique() or 0))

    def _end(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        call, before, start = self._open.pop()
        if call is None or (self._open and self._open[-1][0] is call):
            return
        leaves, _ = structure.flatten_call(module.forward, args, kwargs)
        given = [(leaf.path, before[id(leaf.value)] if id(leaf.value) in before else _number(leaf.value)) for leaf in leaves]
        call.arguments = [(name, number) for name, number in given if number < start]  # the module may have added to a list
        call.results = [_number(leaf.value) for leaf in structure.flatten(result)[0]]

    def bind(self, values: Mapping[int, Any]) -> None:
        """Puts the captured values in place of their numbers; None for what the trace dropped."""
        for call in self.calls:
            call.arguments = [(name, values.get(number)) for name, number in call.arguments]
            call.results = [values.get(number) for number in call.results]

    def _mark(self) -> None:
        number = torch_private.next_unique()
        if number is not None:
            label = Scope("/".join([name for name in self.path if name]))
            if self._open:
                label.call = self._open[-1][0]
            self.marks.append(number)
            self.labels.append(label)


def _number(tensor: torch.Tensor) -> int:
    """The number of the traced value that a tensor is."""
    return int(torch_private.get_value_trace(tensor).unique())


class _Active(threading.local):
    def __init__(self) -> None:
        self.stack: list[Scopes] = []


_active = _Active()


def _entered(module: Any, args: Any) -> None:
    if _active.stack:
        _active.stack[-1].enter(module, args)


def _left(module: Any, args: Any, kwargs: Any, result: Any) -> None:
    if _active.stack:
        _active.stack[-1].leave(module, args, kwargs, result)


def _on() -> list[Any]:
    return [register_module_forward_pre_hook(_entered), register_module_forward_hook(_left, with_kwargs=True)]


def _off(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()


_hooks = torch_private.Shared(_on, _off)


@contextlib.contextmanager
def recorded(names: dict[Any, str], root: Any = None, noted: Noted | None = None) -> Iterator[Scopes]:
    """Marks the module calls of the trace that runs inside, in this thread."""
    with _hooks():
        scopes = Scopes(names, root, noted)
        _active.stack.append(scopes)
        try:
            yield scopes
        finally:
            _active.stack.pop()
