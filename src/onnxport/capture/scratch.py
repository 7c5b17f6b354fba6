"""Graphs of PyTorch's own that nobody runs: symbolic functions write into them."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from onnxport.capture import torch_private

_opset = threading.local()


@contextlib.contextmanager
def exporting_opset(opset: int) -> Iterator[None]:
    """Inside, symbolic functions that ask PyTorch's globals or ours are told this opset."""
    flags = torch_private.exporter_flags()
    before, inner = current_opset(), flags._export_onnx_opset_version
    _opset.value = flags._export_onnx_opset_version = opset
    try:
        yield
    finally:
        _opset.value, flags._export_onnx_opset_version = before, inner


def current_opset() -> int | None:
    """The opset of the export whose symbolic function is running in this thread."""
    return getattr(_opset, "value", None)


NONE_TYPE = torch._C.NoneType.get()
STRING_TYPE = torch._C.StringType.get()


def scratch_graph() -> Any:
    """An empty graph that nobody runs."""
    return torch._C.Graph()


def is_value(found: Any) -> bool:
    """Whether something is a value of a `torch._C.Graph`."""
    return isinstance(found, torch._C.Value)


def tensor_type(dtype: torch.dtype | None, sizes: list[int | None] | None) -> Any:
    """The type of a tensor as TorchScript knows it."""
    kind: Any = torch._C.TensorType.get()
    if dtype is not None:
        kind = kind.with_dtype(dtype)
    return kind if sizes is None else kind.with_sizes(sizes)


def list_type(element: type | None) -> Any:
    """The type of a list of ints, of floats, or (None) of tensors."""
    inner: Any = torch._C.IntType.get() if element is int else torch._C.FloatType.get() if element is float else torch._C.TensorType.get()
    return torch._C.ListType(inner)


@dataclass(frozen=True)
class Like:
    """A tensor of which only the type is known. sizes: numbers, and names of sizes that may change with their example."""

    dtype: torch.dtype
    sizes: tuple[int | tuple[str, int], ...]


@dataclass(frozen=True)
class LikeSize:
    """A size that may change, given as a number."""

    size: tuple[str, int]


# dtype and sizes of a result: numbers, expressions over the names, None for what the data decides.
Result = tuple[torch.dtype, list[int | str | None]]


def faked(op: str, overload: str, args: dict[str, Any]) -> list[Result] | None:
    """What an operator's fake implementation says of its results; None where it has none. Tensors in `args` are given as `Like`,
    sizes as `LikeSize`.
    """
    namespace, _, name = op.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    function = getattr(packet, overload or "default", None)
    ran = None if function is None else _run(function, args, {})
    if ran is None:
        return None
    results, guards, seen = ran
    if guards and not (all(_NOT_ONE.fullmatch(guard) for guard in guards) and _same_at_one(function, args, results, seen)):
        return [(dtype, [None] * len(sizes)) for dtype, sizes in results]
    return results


# A decision that nearly every fake implementation takes on the way (an axis of size 1 has another stride, or is broadcast).
_NOT_ONE = re.compile(r"Ne\(\w+, 1\)")


def _same_at_one(function: Any, args: dict[str, Any], results: list[Result], seen: dict[str, int]) -> bool:
    """Whether the sizes of the results are the same expressions where one of the sizes in `seen`, or each of them, is 1."""
    for ones in [*({name: 1} for name in seen), dict.fromkeys(seen, 1)]:
        ran = _run(function, args, ones)
        if ran is None or len(ran[0]) != len(results):
            return False
        values = {**seen, **ones}
        for (dtype, sizes), (other_dtype, others) in zip(results, ran[0], strict=True):
            if dtype != other_dtype or len(sizes) != len(others):
                return False
            if not all(a is not None and (a == b or values.get(str(a)) == b) for a, b in zip(sizes, others, strict=True)):
                return False
    return True


def _run(function: Any, args: dict[str, Any], hints: dict[str, int]) -> tuple[list[Result], list[str], dict[str, int]] | None:
    """One run of a fake implementation: its results, what it decided over the sizes, and their numbers. hints: other numbers than those of the
    example.
    """
    mode, symbols, seen = torch_private.symbolic_mode(), {}, {}

    def size(one: int | tuple[str, int]) -> Any:
        if isinstance(one, int):
            return one
        if one[0] not in symbols:
            seen[one[0]] = hints.get(one[0], one[1])
            symbols[one[0]] = torch_private.symbolic_size(mode, one[0], seen[one[0]])
        return symbols[one[0]]

    def made(arg: Any) -> Any:
        if isinstance(arg, Like):
            return torch.empty([size(one) for one in arg.sizes], dtype=arg.dtype)
        if isinstance(arg, LikeSize):
            return size(arg.size)
        return [made(a) for a in arg] if isinstance(arg, list) else arg

    try:
        with torch_private.quiet("torch._subclasses.fake_tensor"), mode:
            results = function(**{key: made(arg) for key, arg in args.items()})
    except Exception:  # whatever its author wrote: there is nothing to learn from it then
        return None
    names = {str(symbol.node.expr): key for key, symbol in symbols.items()}
    tensors = results if isinstance(results, (tuple, list)) else [results]
    if not all(isinstance(t, torch.Tensor) for t in tensors):
        return None
    return [(t.dtype, [_size_text(s, names) for s in t.shape]) for t in tensors], torch_private.guards_of(mode), seen


def _size_text(size: Any, names: dict[str, str]) -> int | str | None:
    return size if isinstance(size, int) else names.get(str(size.node.expr))
