"""Pooling to a given size, whatever the input's: window o covers [floor(o D / O), ceil((o + 1) D / O)).

One window is ONNX's global pooling. Where the sizes are known to divide it is ordinary pooling. Else the mean is a product
with an averaging matrix for each dim, and the maximum is taken over gathered windows; both are right for dynamic sizes too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxport.ops import windows
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, pair, rank_of, shape_of
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import to_torch
from onnxport.target.value import DataType, Value


@aten("adaptive_avg_pool1d")
def adaptive_avg_pool1d(g: Builder, self: Value, output_size: int | Sequence[Size]) -> Value:
    """adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor. (N, C, L) or (C, L)."""
    return _average(g, self, output_size, 1)


@aten("adaptive_avg_pool2d", "_adaptive_avg_pool2d")
def adaptive_avg_pool2d(g: Builder, self: Value, output_size: int | Sequence[Size]) -> Value:
    """adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor. (N, C, H, W) or (C, H, W)."""
    return _average(g, self, output_size, 2)


@aten("adaptive_avg_pool3d", "_adaptive_avg_pool3d")
def adaptive_avg_pool3d(g: Builder, self: Value, output_size: int | Sequence[Size]) -> Value:
    """adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor. (N, C, D, H, W) or (C, D, H, W)."""
    return _average(g, self, output_size, 3)


@aten("adaptive_max_pool1d")
def adaptive_max_pool1d(g: Builder, self: Value, output_size: int | Sequence[Size]) -> list[Value]:
    """adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor). The second result: places within the plane."""
    return _maximum(g, self, output_size, 1)


@aten("adaptive_max_pool2d")
def adaptive_max_pool2d(g: Builder, self: Value, output_size: int | Sequence[Size]) -> list[Value]:
    """adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor). The second result: places within the plane."""
    return _maximum(g, self, output_size, 2)


@aten("adaptive_max_pool3d")
def adaptive_max_pool3d(g: Builder, self: Value, output_size: int | Sequence[Size]) -> list[Value]:
    """adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor). The second result: places within the plane."""
    return _maximum(g, self, output_size, 3)


def _plain_window(x: Value, output: Sequence[Size]) -> list[int] | None:
    """The kernel (and stride) that does the same, where there is one."""
    kernel = []
    for size, out in zip(shape_of(x)[rank_of(x) - len(output):], output, strict=True):
        if out == 0 or not (isinstance(size, int) and isinstance(out, int)) or size % out:
            if not dims.equal(size, out):
                return None
            kernel.append(1)
        else:
            kernel.append(size // out)
    return kernel


def _on_batch(g: Builder, op_type: str, x: Value, count: int, outputs: int = 1, **attrs: Any) -> Any:
    """A pooling operator of ONNX, which wants a batch dim."""
    if rank_of(x) > count + 1:
        return g.op(op_type, x, outputs=outputs, **attrs)
    made = [sizes.squeeze(g, v, [0]) for v in g.several(op_type, sizes.unsqueeze(g, x, [0]), outputs=outputs, **attrs)]
    return made[0] if outputs == 1 else tuple(made)


# ---------------------------------------------------------------------- the mean


def _average(g: Builder, x: Value, output_size: int | Sequence[Size], count: int) -> Value:
    output = pair(output_size, count)
    axes = list(range(rank_of(x) - count, rank_of(x)))
    if all(o == 1 for o in output):
        if x.dtype == DataType.DOUBLE:
            return g.op("ReduceMean", x, g.const(axes), keepdims=1)
        return _on_batch(g, "GlobalAveragePool", x, count)
    kernel = _plain_window(x, output)
    if kernel is not None and x.dtype != DataType.DOUBLE:
        if all(k == 1 for k in kernel):
            return g.op("Identity", x)
        return _on_batch(g, "AveragePool", x, count, kernel_shape=kernel, strides=kernel)
    # float16 is averaged in float32, as PyTorch does.
    result = cast(g, x, DataType.FLOAT) if x.dtype in (DataType.FLOAT16, DataType.BFLOAT16) else x
    for axis, out in zip(axes, output, strict=True):
        result = _averaged(g, result, axis, out)
    return cast(g, result, x.dtype)  # type: ignore[arg-type]


def _averaged(g: Builder, x: Value, axis: int, out: Size) -> Value:
    """The mean over the windows of one axis."""
    size = shape_of(x)[axis]
    if dims.equal(size, out):
        return x
    if out == 1:
        return g.op("ReduceMean", x, g.const([axis]), keepdims=1)
    return along_axis(g, x, axis, _averages(g, size, out, x.dtype))  # type: ignore[arg-type]


def along_axis(g: Builder, x: Value, axis: int, matrix: Value) -> Value:
    """`x` with `axis` mapped by `matrix` (out, in). ONNX MatMul."""
    rank = rank_of(x)
    if axis == rank - 1:
        return g.op("MatMul", x, g.op("Transpose", matrix, perm=[1, 0]))
    if axis == rank - 2:
        return g.op("MatMul", matrix, x)
    perm = [i for i in range(rank) if i != axis] + [axis]
    back = [*range(axis), rank - 1, *range(axis, rank - 1)]
    moved = g.op("MatMul", g.op("Transpose", x, perm=perm), g.op("Transpose", matrix, perm=[1, 0]))
    return g.op("Transpose", moved, perm=back)


def _averages(g: Builder, size: Size, out: Size, dtype: DataType) -> Value:
    """(out, size): 1 / length inside the window, 0 elsewhere."""
    if isinstance(size, int) and isinstance(out, int):
        at, o = torch.arange(size), torch.arange(out).reshape(out, 1)
        start, end = o * size // out, -(-(o + 1) * size // out)
        return g.const(((at >= start) & (at < end)).to(to_torch(dtype)) / (end - start).to(to_torch(dtype)))
    start_, end_ = _bounds(g, size, out)
    at_ = windows.arange(g, size)
    outside = g.op("Or", g.op("Less", at_, start_), g.op("Less", g.op("Sub", end_, g.const(1)), at_))
    inside = g.op("Cast", g.op("Not", outside), to=dtype)
    return g.op("Div", inside, g.op("Cast", g.op("Sub", end_, start_), to=dtype))


def _bounds(g: Builder, size: Size, out: Size) -> tuple[Value, Value]:
    """Starts and ends of the windows, each (out, 1)."""
    length = g.scalar(size)
    o = sizes.unsqueeze(g, windows.arange(g, out), [1])
    count = g.scalar(out)
    start = g.op("Div", g.op("Mul", o, length), count)
    after = g.op("Mul", g.op("Add", o, g.const(1)), length)
    return start, g.op("Div", g.op("Add", after, g.scalar(out - 1)), count)


# ---------------------------------------------------------------------- the maximum


def _maximum(g: Builder, x: Value, output_size: int | Sequence[Size], count: int) -> list[Value]:
    output = pair(output_size, count)
    kernel = _plain_window(x, output)
    if kernel is not None and g.opset >= 8:
        values, places = _on_batch(g, "MaxPool", x, count, outputs=2, kernel_shape=kernel, strides=kernel)
        return [values, g.op("Mod", places, g.scalar(dims.product(shape_of(x)[rank_of(x) - count:])))]
    return _gathered_maximum(g, x, output)


def _gathered_maximum(g: Builder, x: Value, output: Sequence[Size]) -> list[Value]:
    """The windows of each dim, gathered (the last place again where a window is shorter), then the first of the largest."""
    first, count = rank_of(x) - len(output), len(output)
    spatial = shape_of(x)[first:]
    cut, places = x, []
    for i, (size, out) in enumerate(zip(spatial, output, strict=True)):
        places.append(_places(g, size, out))
        cut = g.op("Gather", cut, places[-1], axis=first + 2 * i)
    perm = [*range(first), *(first + 2 * i for i in range(count)), *(first + 2 * i + 1 for i in range(count))]
    lengths = [shape_of(p)[1] for p in places]
    flat = sizes.reshape(g, g.op("Transpose", cut, perm=perm), [*shape_of(x)[:first], *output, dims.product(lengths)])
    values = g.op("ReduceMax", flat, g.const([-1]), keepdims=0)
    which = g.op("ArgMax", flat, axis=-1, keepdims=0)
    index: Value | None = None
    for i in reversed(range(count)):
        step = which if i == 0 else g.op("Mod", which, g.scalar(lengths[i]))
        which = which if i == 0 else g.op("Div", which, g.scalar(lengths[i]))
        starts = sizes.reshape(g, g.op("Slice", places[i], g.const([0]), g.const([1]), g.const([1])), [output[i], *[1] * (count - 1 - i)])
        at = g.op("Mul", g.op("Add", starts, step), g.scalar(dims.product(spatial[i + 1:])))
        index = at if index is None else g.op("Add", index, at)
    assert index is not None
    return [values, index]


def _places(g: Builder, size: Size, out: Size) -> Value:
    """(out, longest window): the places of each window."""
    if isinstance(size, int) and isinstance(out, int):
        o = torch.arange(out).reshape(out, 1)
        start, end = o * size // out, -(-(o + 1) * size // out)
        longest = int((end - start).max()) if out else 1
        return g.const(torch.minimum(start + torch.arange(longest), end - 1))
    start_, end_ = _bounds(g, size, out)
    # A window is at most ceil(D / O) + 1 long, and no longer than the dim.
    longest_ = windows.arange(g, dims.minimum(dims.ceildiv(size, out) + 1, size))
    return g.op("Min", g.op("Add", start_, longest_), g.op("Sub", end_, g.const(1)))
