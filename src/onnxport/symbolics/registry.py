"""The symbolic functions that users registered. Each export works on the ones that there were when it began."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxport import errors

Function = Callable[..., Any]
_NAME = re.compile(r"[A-Za-z_][\w.\-]*::[\w.\-]+")
_lock = threading.Lock()
_registered: dict[str, dict[int, Function]] = {}


@dataclass(frozen=True)
class Snapshot:
    """What was registered: operator -> opset -> function."""

    functions: Mapping[str, Mapping[int, Function]] = field(default_factory=dict)

    def find(self, op: str, overload: str, opset: int) -> tuple[int, Function] | None:
        """The function of the highest opset that is not above `opset`, and that opset."""
        for name in (f"{op}.{overload}", op) if overload else (op,):
            known = self.functions.get(name, {})
            since = max((version for version in known if version <= opset), default=None)
            if since is not None:
                return since, known[since]
        return None

    def since(self, op: str, overload: str, opset: int) -> int | None:
        """The lowest opset above `opset` for which there is a function."""
        known = [version for name in (f"{op}.{overload}", op) for version in self.functions.get(name, ()) if version > opset]
        return min(known, default=None)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Function, opset_version: int) -> None:
    """Translates the operator `symbolic_name` ("domain::operator") by `symbolic_fn` from `opset_version` on, before any built-in.

    symbolic_fn: called as `symbolic_fn(g, *inputs)` with a graph to write into and one `torch._C.Value` for each argument of the
        operator, by position, or by keyword where its parameters have the operator's names in another order. It returns a Value,
        several, or None where the operator cannot be converted. `setType` on a result tells its dtype and shape.
    Running exports are not touched. Raises `errors.ArgumentError` for a name or an opset that cannot be one.
    """
    _check(symbolic_name, opset_version)
    if not callable(symbolic_fn):
        raise errors.ArgumentError(f"symbolic_fn must be a function, not {type(symbolic_fn).__name__}")
    with _lock:
        _registered.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back what was registered for `symbolic_name` at `opset_version`; a built-in translation is in force again."""
    _check(symbolic_name, opset_version)
    with _lock:
        known = _registered.get(symbolic_name, {})
        known.pop(opset_version, None)
        if not known:
            _registered.pop(symbolic_name, None)


def snapshot() -> Snapshot | None:
    """What is registered now; None where nothing is."""
    if not _registered:
        return None
    with _lock:
        return Snapshot({name: dict(known) for name, known in _registered.items()})


def _check(name: str, opset: int) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise errors.ArgumentError(f"symbolic_name={name!r}: it must be of the form \"domain::operator\"")
    if isinstance(opset, bool) or not isinstance(opset, int) or opset < 1:
        raise errors.ArgumentError(f"opset_version={opset!r}: it must be an opset, a positive int")
