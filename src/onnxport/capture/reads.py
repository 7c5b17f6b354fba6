"""Watches what Python takes out of a trace: branches, numbers, arrays. Each is recorded with the user's source line.

The methods of `torch.Tensor` are replaced while at least one capture runs; in threads that are not capturing they
do what they always do.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import linecache
import operator
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from onnxport import errors
from onnxport.aten.source import user_line
from onnxport.capture import bools, code, constructors, escapes, follow, protocols, scales, torch_private


class Recorder(threading.local):
    """The reads of the capture that runs in this thread (None: no capture).

    literals: the tensors that `torch.tensor` made, by address, with a copy of what was in them before anybody wrote into one.
    replaced: tensors whose `.data` was assigned, with what it was.
    followed: numbers of which the source code shows where they go to.
    """

    def __init__(self) -> None:
        self.reads: list[tuple[str, Any, Any, str]] | None = None
        self.followed = follow.Followed()
        self.literals: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.replaced: list[tuple[torch.Tensor, torch.Tensor]] = []


_recorder = Recorder()


def _note(kind: str, tensor: torch.Tensor, seen: Any, itself: bool = False) -> None:
    """Records a read. itself: what Python saw is the number in the tensor (and not something that depends on it)."""
    reads = _recorder.reads
    if reads is None or _only_checked():
        return
    source, frame = user_line(3)
    if kind == "index":
        kind = _index_kind(frame)
        if kind == "text":
            return
    reader = sys._getframe(2)
    if (kind in ("number", "length") or (kind == "bool" and not protocols.is_size(tensor))) and code.is_check(reader):
        return
    if kind in ("number", "length") and itself:
        _recorder.followed.take(tensor if kind == "number" else torch.as_tensor(tensor.shape[0]), seen, reader, len(reads))
    (escapes.place(reads) if kind == "array" else reads).append((kind, torch_private.get_value_trace(tensor), seen, source))


def _note_text(tensor: torch.Tensor, seen: Any) -> None:
    """A number that is printed is none of ours; something that is looked up by its text holds for this number only."""
    source, frame = user_line(3)
    if _recorder.reads is not None and code.is_key(frame):
        _recorder.reads.append(("bool", torch_private.get_value_trace(torch.eq(tensor, seen)), True, source))


def _only_checked() -> bool:
    """Whether torch's recurrent modules read a size to hold it against another, and use it for nothing else."""
    return sys._getframe(3).f_code.co_name == "get_expected_hidden_size"


def _index_kind(frame: Any) -> str:
    """Why Python asked for an index: "range" (a loop that the trace unrolls), "text" (it is printed), or "index" (whatever else)."""
    if dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(("FORMAT_", "BUILD_STRING")):
        return "text"
    where = code.span(frame)
    line, column = where[:2] if where is not None else (frame.f_lineno, None)
    text = linecache.getline(frame.f_code.co_filename, line)
    if column is None:
        return "range" if "range(" in text else "index"
    text = text[column:].lstrip()
    if text.startswith("range("):
        return "range"
    return "text" if _PRINTS.match(text) else "index"


_PRINTS = re.compile(r"""[rfb]*["']|(print|str|repr|format|log(ger|ging)?\.\w+|warnings\.warn)\(""")
_PRINTING = frozenset({"__format__", "__repr__", "_str", "_str_intern", "_tensor_str", "__reduce_ex__", "__deepcopy__"})


def _formatting() -> bool:
    """Whether torch itself is printing a tensor (three frames up: hook, caller)."""
    return sys._getframe(2).f_code.co_name in _PRINTING


def _reading(name: str, kind: str) -> Callable[..., Any]:
    original = getattr(torch.Tensor, name)

    def read(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if _recorder.reads is None or not torch_private.is_tracing():
            return original(self, *args, **kwargs)
        with torch_private.untraced():
            seen = original(self, *args, **kwargs)
        if not _formatting():
            _note(kind, self, seen, itself=True)
        elif kind == "number":
            _note_text(self, seen)
        return seen

    return read


def _out_of_place(name: str, plain: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """`n += 2` on a size makes a new number, as it does in eager Python; a traced size is a tensor and would change its aliases."""
    original = getattr(torch.Tensor, name)

    def update(self: torch.Tensor, other: Any) -> Any:
        if _recorder.reads is not None and torch_private.is_tracing() and protocols.is_size(self):
            return plain(self, other)
        return original(self, other)

    return update


def _capturing() -> bool:
    return _recorder.reads is not None and torch_private.is_tracing()


def _tensor_of(original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.tensor([n, 2])` of traced sizes stays traced (PyTorch makes a constant of it); a literal is remembered as it was made."""

    def make(data: Any, *args: Any, **kwargs: Any) -> Any:
        if not _capturing():
            return original(data, *args, **kwargs)
        if args or not _holds_tensor(data):
            return _literal(original, data, args, kwargs)
        made = _stacked(data)
        dtype = kwargs.get("dtype")
        return made if dtype is None else made.to(dtype)

    return make


def _as_tensor_of(original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.as_tensor(x.shape)`: PyTorch cannot read a list of traced sizes."""

    def make(data: Any, *args: Any, **kwargs: Any) -> Any:
        if not _capturing() or isinstance(data, torch.Tensor) or not _holds_tensor(data):
            return original(data, *args, **kwargs)
        made = _stacked(data)
        dtype = args[0] if args else kwargs.get("dtype")
        return made if dtype is None else made.to(dtype)

    return make


def _new_tensor() -> Callable[..., Any]:
    """`x.new_tensor(x.shape)`, likewise."""
    original = torch.Tensor.new_tensor

    def make(self: torch.Tensor, data: Any, *args: Any, **kwargs: Any) -> Any:
        if not _capturing() or not _holds_tensor(data):
            return original(self, data, *args, **kwargs)
        return _stacked(data).to(kwargs.get("dtype") or self.dtype)

    return make


@functools.lru_cache(maxsize=1)
def _makers() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Made once for the process: torch's compiler of scripts knows functions by their address."""
    made = [(torch, "tensor", _tensor_of(torch.tensor)), (torch, "as_tensor", _as_tensor_of(torch.as_tensor)),
            (torch.nn.functional, "scaled_dot_product_attention", protocols.attention(_capturing))]
    for _, name, function in made:
        torch_private.known_to_scripts(function, f"aten::{name}")
    return [*made, (torch.Tensor, "new_tensor", _new_tensor()), *constructors.patches(_capturing, _stacked)]


def _literal(original: Callable[..., Any], data: Any, args: Any, kwargs: Any) -> Any:
    """A new constant of the trace. The trace refers to its memory, so whoever reads the trace needs it as it is now."""
    with torch_private.untraced():
        made = original(data, *args, **kwargs).detach()
        if made.numel():
            _recorder.literals[made.data_ptr()] = (made, made.clone())
    return made


def _holds_tensor(data: Any) -> bool:
    return isinstance(data, torch.Tensor) or (isinstance(data, (list, tuple)) and any(_holds_tensor(d) for d in data))


def _stacked(data: Any) -> torch.Tensor:
    if isinstance(data, torch.Tensor):
        return data.clone()
    if isinstance(data, (list, tuple)):
        parts = [_stacked(d) for d in data]
        dtype = parts[0].dtype
        for part in parts[1:]:
            dtype = torch.promote_types(dtype, part.dtype)
        return torch.stack([part.to(dtype) for part in parts])
    return torch.tensor(data)


_look, _assign = torch.Tensor.__getitem__, torch.Tensor.__setitem__


class _Indexing(TorchFunctionMode):
    """Stands before `x[key]` in this thread. (A class whose `__getitem__` was replaced once counts as a sequence ever after.)"""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _recorder.followed.places and torch_private.is_tracing():
            args, kwargs = _recorder.followed.replace(func, args, kwargs or {}, func is _look)
        if func is _look and torch_private.is_tracing():
            return _index(*args)
        if func is _assign and torch_private.is_tracing():
            return _put(*args)
        if func in constructors.CALLS:
            made = constructors.call(func, args, _stacked)
            return made if isinstance(made, torch.Tensor) else func(*made, **(kwargs or {}))
        if func in protocols.ARITHMETIC and len(args) == 2:
            args = protocols.exact(func, args)
        if func in bools.FUNCTIONS:
            return bools.call(func, args, kwargs or {})
        return func(*args, **kwargs) if kwargs else func(*args)


def _index(self: torch.Tensor, key: Any) -> Any:
    """`x[c]` with a bool tensor `c` of rank 0 is traced as the mask that it is; PyTorch reads `c` and says nothing."""
    if _is_truth(key):
        return _look(self.unsqueeze(0), key.reshape(1))
    _note_truths(key)
    return _look(self, key)


def _put(self: torch.Tensor, key: Any, value: Any) -> None:
    """`x[key] = value` traced for all sizes: PyTorch takes leading ones off the value by a `view` to the example's sizes."""
    if _is_truth(key):
        self, key = self.unsqueeze(0), key.reshape(1)
    _note_truths(key)
    if not isinstance(value, torch.Tensor):
        return _assign(self, key, value)
    if _is_basic(key):
        target = _look(self, key)
        extra = value.dim() - target.dim()
        if extra > 0 and any(size != 1 for size in _sizes(value)[:extra]):
            return _assign(self, key, value)  # which raises
        for _ in range(extra):
            value = value.select(0, 0)  # there is one, at all sizes that PyTorch takes
        target.copy_(value)
        return None
    return _assign(self, key, _without_ones(value))


def _without_ones(value: torch.Tensor) -> torch.Tensor:
    """The leading dims of size 1 taken off."""
    for size in _sizes(value):
        if size != 1:
            break
        value = value.squeeze(0)
    return value


def _sizes(value: torch.Tensor) -> tuple[int, ...]:
    with torch_private.untraced():
        return tuple(value.shape)


def _is_basic(key: Any) -> bool:
    """Whether an index gives a view."""
    if type(key) is tuple:
        return all(_is_basic(item) and type(item) is not tuple for item in key)
    if isinstance(key, torch.Tensor):
        return key.dim() == 0 and key.dtype not in (torch.bool, torch.uint8)
    return key is None or key is Ellipsis or type(key) in (int, slice)


def _note_truths(key: Any) -> None:
    for item in key if type(key) is tuple else ():
        if _is_truth(item):
            _note("bool", item, item)


def _resize(name: str) -> Callable[..., Any]:
    """The tracer loses a tensor that is resized in place, and what is computed from it would be constant."""
    original = getattr(torch.Tensor, name)

    def resize(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if _recorder.reads is not None and torch_private.is_tracing():
            source, _ = user_line(2)
            raise errors.UnsupportedError(
                f"{name} cannot be exported: it changes a tensor's size in place; make a new tensor\n  at {source}")
        resized: torch.Tensor = original(self, *args, **kwargs)
        return resized

    return resize


def _is_truth(key: Any) -> bool:
    return isinstance(key, torch.Tensor) and key.dtype == torch.bool and key.dim() == 0


def _data() -> property:
    """`x.data` is traced as `x.detach()`; what is assigned to it is traced as the tensor's new value, and is undone at the end."""
    original = torch.Tensor.data

    def get(self: torch.Tensor) -> torch.Tensor:
        if _recorder.reads is None or not torch_private.is_tracing():
            return original.__get__(self)  # type: ignore[no-any-return,attr-defined]
        return self.detach()

    def put(self: torch.Tensor, new: torch.Tensor) -> None:
        if _recorder.reads is None or not torch_private.is_tracing():
            original.__set__(self, new)  # type: ignore[attr-defined]
            return
        value = torch_private.get_value_trace(new)
        with torch_private.untraced():
            _recorder.replaced.append((self, original.__get__(self)))  # type: ignore[attr-defined]
            original.__set__(self, new)  # type: ignore[attr-defined]
        torch_private.set_value_trace(self, value)

    return property(get, put)


_IN_PLACE = {
    "__iadd__": operator.add, "__isub__": operator.sub, "__imul__": operator.mul, "__itruediv__": operator.truediv,
    "__ifloordiv__": operator.floordiv, "__imod__": operator.mod, "__ipow__": operator.pow,
}
_RESIZES = ("resize_", "resize_as_")
_READS = {
    "__bool__": "bool", "__int__": "number", "__float__": "number", "__complex__": "number", "item": "number", "tolist": "array",
    "numpy": "array", "__array__": "array", "__index__": "index", "__len__": "length", "__contains__": "bool",
}


def _install() -> dict[Any, Any]:
    before: dict[Any, Any] = {name: vars(torch.Tensor).get(name) for name in (*_READS, *_IN_PLACE, *_RESIZES, "data")}
    for name, kind in _READS.items():
        setattr(torch.Tensor, name, _reading(name, kind))
    for name, plain in _IN_PLACE.items():
        setattr(torch.Tensor, name, _out_of_place(name, plain))
    for name in _RESIZES:
        setattr(torch.Tensor, name, _resize(name))
    torch.Tensor.data = _data()  # type: ignore[assignment]
    apply = (torch.autograd.Function, "apply", escapes.applied(lambda: _recorder.reads if torch_private.is_tracing() else None))
    for owner, name, function in [apply, *protocols.patches(_capturing, _note), *scales.patches(_capturing, _note), *_makers()]:
        before[owner, name] = vars(owner).get(name)
        setattr(owner, name, function)
    return before


def _uninstall(before: dict[Any, Any]) -> None:
    for key, method in before.items():
        owner, name = key if isinstance(key, tuple) else (torch.Tensor, key)
        if method is None:
            delattr(owner, name)
        else:
            setattr(owner, name, method)


_hooks = torch_private.Shared(_install, _uninstall)


def literals() -> dict[int, tuple[torch.Tensor, torch.Tensor]]:
    """address -> (tensor, copy as it was made) of each literal of the capture that runs in this thread."""
    return _recorder.literals


def followed(index: int) -> bool:
    """Whether the number of a read, of this thread's capture, has been followed to all places that it goes to."""
    return _recorder.followed.is_met(index)


def replaced() -> list[torch.Tensor]:
    """The tensors whose `.data` the program has assigned so far, in this thread's capture."""
    return [tensor for tensor, _ in _recorder.replaced]


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """What runs inside belongs to no capture around it: an export inside of another."""
    before, _recorder.reads = _recorder.reads, None
    try:
        with torch_private.untraced(), torch_private.without_modes():
            yield
    finally:
        _recorder.reads = before


@contextlib.contextmanager
def recorded() -> Iterator[list[tuple[str, Any, Any, str]]]:
    """Collects (kind, traced value, what Python saw, source line) of every read in this thread."""
    before = _recorder.reads, _recorder.literals, _recorder.replaced, _recorder.followed
    with _hooks(), _Indexing():
        _recorder.reads, _recorder.literals, _recorder.replaced, _recorder.followed = [], {}, [], follow.Followed()
        try:
            yield _recorder.reads
        finally:
            replaced = _recorder.replaced
            _recorder.reads, _recorder.literals, _recorder.replaced, _recorder.followed = before
            for tensor, data in reversed(replaced):
                tensor.data = data
