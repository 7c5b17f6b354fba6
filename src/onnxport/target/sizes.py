"""Reshape, expand and their like from sizes, with as few nodes as the sizes allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxport.target import dims
from onnxport.target.dims import Size
from onnxport.target.simplify import same_shape
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_LAYOUT = frozenset({"Reshape", "Squeeze", "Unsqueeze"})


def reshape(g: Builder, x: Value, sizes: Sequence[Size]) -> Value:
    """`x` with the given sizes; one of them may be -1 (the rest of the elements).

    A symbolic size costs no node where it can be said as 0 (as in the input) or -1 (what is left).
    """
    sizes = list(sizes)
    if x.shape is not None and -1 in sizes:
        rest = dims.product(s for s in sizes if not (isinstance(s, int) and s == -1))
        if rest != 0:
            sizes[sizes.index(-1)] = dims.floordiv(dims.product(x.shape), rest)
    if same_shape(x.shape, tuple(sizes)):
        return x
    while x.node is not None and x.node.op_type in _LAYOUT and not x.node.domain and x.node.inputs[0] is not None:
        x = x.node.inputs[0]
        if same_shape(x.shape, tuple(sizes)):
            return x
    if dims.is_static(sizes) and 0 not in sizes:
        return g.op("Reshape", x, g.const(sizes))
    if 0 in sizes:
        return _reshape_empty(g, x, sizes)
    spelled: list[Size] = list(sizes)
    open_ = [i for i, s in enumerate(sizes) if not isinstance(s, int)]
    for i in list(open_):
        if x.shape is not None and i < len(x.shape) and dims.equal(sizes[i], x.shape[i]):
            spelled[i] = 0
            open_.remove(i)
    if len(open_) == 1 and -1 not in spelled:
        spelled[open_.pop()] = -1
    elif not open_ and -1 not in spelled and x.rank == len(spelled) == spelled.count(0):
        return x
    result = g.op("Reshape", x, g.sizes(spelled))
    result.shape = tuple(sizes) if -1 not in sizes else result.shape
    return result


def _reshape_empty(g: Builder, x: Value, sizes: list[Size]) -> Value:
    if g.opset >= 14 and -1 not in sizes:
        return g.op("Reshape", x, g.sizes(sizes), allowzero=1)
    # Older opsets read 0 as "as in the input": an empty tensor is made anew.
    import torch

    from onnxport.target.dtypes import to_torch

    assert x.dtype is not None
    if dims.is_static(sizes) and -1 not in sizes:
        return g.constant(torch.zeros([int(s) for s in sizes], dtype=to_torch(x.dtype)))  # type: ignore[arg-type]
    return g.op("Reshape", x, g.sizes(sizes))


def expand(g: Builder, x: Value, sizes: Sequence[Size]) -> Value:
    """`x` broadcast to exactly these sizes (-1: as it is)."""
    if x.shape is not None:
        offset = len(sizes) - len(x.shape)
        sizes = [x.shape[i - offset] if isinstance(s, int) and s == -1 and i >= offset else s for i, s in enumerate(sizes)]
        if same_shape(x.shape, tuple(sizes)):
            return x
    spelled = list(sizes)
    if x.shape is not None:
        # Expand broadcasts both ways: 1 keeps the dim of the input, and costs nothing.
        spelled = [1 if i >= offset and dims.equal(s, x.shape[i - offset]) else s for i, s in enumerate(sizes)]
    result = g.op("Expand", x, g.sizes(spelled))
    if -1 not in sizes:
        result.shape = tuple(sizes)
    return result


def squeeze(g: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Drops these axes (of size 1)."""
    if not axes:
        return x
    if x.shape is not None:
        axes = sorted(a % len(x.shape) for a in axes)
        kept = [s for i, s in enumerate(x.shape) if i not in axes]
        if dims.is_static(x.shape) or (x.node is not None and x.node.op_type in _LAYOUT):
            return reshape(g, x, kept)
    return g.op("Squeeze", x, g.const(list(axes)))


def unsqueeze(g: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Inserts axes of size 1 at these positions of the result."""
    if not axes:
        return x
    if x.shape is not None:
        rank = len(x.shape) + len(axes)
        axes = sorted(a % rank for a in axes)
        rest = iter(x.shape)
        sizes: list[Size] = [1 if i in axes else next(rest) for i in range(rank)]
        if x.node is not None and x.node.op_type in _LAYOUT and not x.node.domain and sum(not isinstance(s, int) for s in sizes) <= 1:
            return reshape(g, x, sizes)
    return g.op("Unsqueeze", x, g.const(list(axes)))
