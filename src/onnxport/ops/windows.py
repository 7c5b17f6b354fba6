"""Windows that move over the last dims of a tensor, said with Gather: for what no ONNX operator computes.

Convolution, pooling and unfolding meet here where ONNX Runtime has no kernel for the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from onnxport.ops.support import shape_of
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64


def arange(g: Builder, count: Size, step: int = 1) -> Value:
    """0, step, 2 step, ... as int64 (count,). A constant where `count` is a number, else ONNX Range (opset 11), NonZero (9) below."""
    if isinstance(count, int):
        return g.const(torch.arange(0, count * step, step)[:count])
    if g.opset >= 11:
        result: Value = g.op("Range", g.const(0), g.scalar(count * step), g.const(step))
        result.shape = (count,)
        return result
    ones = g.op("ConstantOfShape", g.sizes([count]), value=torch.ones(1, dtype=torch.int64))
    result = g.op("Squeeze", g.op("NonZero", ones), g.const([0]))
    result.shape = (count,)
    return result if step == 1 else g.op("Mul", result, g.const(step))


def count_of(size: Size, kernel: int, stride: int, dilation: int) -> Size:
    """How many windows of a dilated kernel fit."""
    return dims.floordiv(size - (kernel - 1) * dilation - 1, stride) + 1


def windows(g: Builder, x: Value, first: int, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Value:
    """All windows over the dims from `first` on: (..., k0, o0, k1, o1, ...). `x` is padded already. ONNX Gather for each dim."""
    for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        axis = first + 2 * i
        count = count_of(shape_of(x)[axis], k, s, d)
        offsets = g.const((torch.arange(k) * d).reshape(k, 1))
        places = g.op("Add", offsets, arange(g, count, s))
        x = g.op("Gather", x, places, axis=axis)
    return x


def windows_last(g: Builder, x: Value, first: int, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Value:
    """All windows with the kernel's dims first: (..., k0, k1, ..., o0, o1, ...)."""
    count = len(kernel)
    x = windows(g, x, first, kernel, stride, dilation)
    perm = [*range(first), *(first + 2 * i for i in range(count)), *(first + 2 * i + 1 for i in range(count))]
    result: Value = g.op("Transpose", x, perm=perm)
    return result


def pad(g: Builder, x: Value, before: Sequence[Size], after: Sequence[Size], value: float | int | bool = 0) -> Value:
    """Pads the last dims with `value`."""
    rest = [0] * (len(shape_of(x)) - len(before))
    pads = g.sizes([*rest, *before, *rest, *after])
    result: Value = g.op("Pad", x, pads, None if value == 0 else g.const(value, x.dtype))
    return result


def crop(g: Builder, x: Value, first: int, wanted: Sequence[Size]) -> Value:
    """The front of the dims from `first` on, cut to these sizes where they may be more. ONNX Slice."""
    axes = [first + i for i, size in enumerate(wanted) if not dims.equal(size, shape_of(x)[first + i])]
    if not axes:
        return x
    ends = g.sizes([wanted[a - first] for a in axes])
    result: Value = g.op("Slice", x, g.const([0] * len(axes)), ends, g.const(axes))
    result.shape = tuple(wanted[i - first] if i in axes else s for i, s in enumerate(shape_of(x)))
    return result


__all__ = ["arange", "count_of", "crop", "pad", "sizes", "windows", "windows_last"]
