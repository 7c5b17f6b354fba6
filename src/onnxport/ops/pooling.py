"""Pooling by windows of a fixed size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onnxport.ops import windows
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, pair, rank_of, shape_of
from onnxport.target import dims, kernels, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import is_integer
from onnxport.target.value import DataType, Value

Ints = int | Sequence[int]


class Window:
    """A kernel, one number for each spatial dim of each of its properties."""

    def __init__(self, x: Value, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool):
        given = 1 if isinstance(kernel_size, int) else len(kernel_size)
        self.count = given if given > 1 or rank_of(x) < 4 else rank_of(x) - 2
        self.kernel = pair(kernel_size, self.count)
        self.stride = self.kernel if not isinstance(stride, int) and len(stride) == 0 else pair(stride, self.count)
        self.padding, self.dilation, self.ceil = pair(padding, self.count), pair(dilation, self.count), bool(ceil_mode)
        self.after = self.padding

    def batched(self, g: Builder, x: Value) -> Value:
        """`x` as (N, C, *spatial)."""
        return sizes.unsqueeze(g, x, [0]) if rank_of(x) == self.count + 1 else x

    def attributes(self, **more: Any) -> dict[str, Any]:
        """ONNX's attributes; dilations only where there are any, for AveragePool did not always have them."""
        if any(d != 1 for d in self.dilation):
            more["dilations"] = self.dilation
        if self.ceil:
            more["ceil_mode"] = 1
        return {"kernel_shape": self.kernel, "strides": self.stride, "pads": [*self.padding, *self.after], **more}

    def result(self, x: Value) -> list[Size]:
        """The result's spatial sizes: with ceil_mode a window may hang over the end, but starts inside or in the front padding."""
        found = []
        for i, size in enumerate(shape_of(x)[2:]):
            p, s = self.padding[i], self.stride[i]
            room = size + 2 * p - (self.kernel[i] - 1) * self.dilation[i] - 1
            count = dims.floordiv(room, s) + 1 if not self.ceil else dims.minimum(dims.ceildiv(room, s) + 1, dims.ceildiv(size + p, s))
            found.append(count)
        return found

    def overhang(self, x: Value) -> list[int]:
        """How far the last windows reach over the padded end, or as far as they may where sizes are dynamic."""
        if not self.ceil:
            return [0] * self.count
        return [max(0, (count - 1) * s + (k - 1) * d + 1 - size - 2 * p) if isinstance(size, int) and isinstance(count, int) else s - 1
                for size, count, k, s, p, d in zip(shape_of(x)[2:], self.result(x), self.kernel, self.stride, self.padding, self.dilation,
                                                   strict=True)]

    def reached(self, x: Value) -> list[int]:
        """The end padding with which all windows fit."""
        return [p + o for p, o in zip(self.padding, self.overhang(x), strict=True)]

    def direct(self, g: Builder, x: Value) -> bool:
        """Whether ONNX's ceil_mode gives the same windows: until opset 21 it kept one that starts in the end's padding."""
        return not self.ceil or g.opset >= 22 or all(
            s + p <= (k - 1) * d + 1 for s, p, k, d in zip(self.stride, self.padding, self.kernel, self.dilation, strict=True))

    def fitted(self, g: Builder, x: Value, fill: float) -> Value:
        """`x` padded by `fill` so that all windows fit; the window then has no padding and no ceil_mode of its own."""
        before, after = self.padding, self.reached(x)
        self.padding = self.after = [0] * self.count
        self.ceil = False
        return windows.pad(g, x, before, after, fill)


def _unbatched(g: Builder, result: Value, self: Value) -> Value:
    return result if rank_of(result) == rank_of(self) else sizes.squeeze(g, result, [0])


# ---------------------------------------------------------------------- the largest


@aten("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(g: Builder, self: Value, kernel_size: Ints, stride: Ints = (), padding: Ints = 0, dilation: Ints = 1,
             ceil_mode: bool = False) -> Value:
    """max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor

    (N, C, *spatial) or (C, *spatial). ONNX MaxPool.
    """
    window = Window(self, kernel_size, stride, padding, dilation, ceil_mode)
    x = window.batched(g, self)
    if (is_integer(x.dtype) and not kernels.runs("MaxPool", g.opset, x.dtype)) or _beyond_max_pool(g, x, window, 1):
        return _unbatched(g, _gathered(g, x, window, 1)[0], self)
    return _unbatched(g, _max_pool(g, x, window, 1)[0], self)


@aten("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_with_indices(g: Builder, self: Value, kernel_size: Ints, stride: Ints = (), padding: Ints = 0, dilation: Ints = 1,
                          ceil_mode: bool = False) -> list[Value]:
    """max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False)
    -> (Tensor, Tensor)

    Indices count within one plane, ONNX's over the whole tensor. ONNX MaxPool, Mod.
    """
    window = Window(self, kernel_size, stride, padding, dilation, ceil_mode)
    x = window.batched(g, self)
    if x.dtype == DataType.INT64 or _beyond_max_pool(g, x, window, 2):
        return [_unbatched(g, v, self) for v in _gathered(g, x, window, 2)]
    if is_integer(x.dtype):
        values, places = _max_pool(g, cast(g, x, DataType.DOUBLE), window, 2)
        values = cast(g, values, x.dtype)  # type: ignore[arg-type]
    else:
        values, places = _max_pool(g, x, window, 2)
    places = g.op("Mod", places, g.scalar(dims.product(shape_of(x)[2:])))
    return [_unbatched(g, v, self) for v in (values, places)]


def _beyond_max_pool(g: Builder, x: Value, window: Window, outputs: int) -> bool:
    """Whether ONNX's MaxPool of this opset cannot give what is wanted: places, dilations, places where a last window may start behind the data."""
    if g.opset < 10 and any(d != 1 for d in window.dilation):
        return True
    over = (not window.direct(g, x) or (window.ceil and g.opset < 10)) and any(
        p >= k for p, k in zip(window.reached(x), window.kernel, strict=True))
    return outputs == 2 and (g.opset < 8 or over)


def _max_pool(g: Builder, x: Value, window: Window, outputs: int) -> list[Value]:
    wanted = window.result(x)
    if not window.direct(g, x) or (window.ceil and g.opset < 10):
        if all(p < k for p, k in zip(window.reached(x), window.kernel, strict=True)):
            window.after, window.ceil = window.reached(x), False
        elif outputs == 1:
            x = window.fitted(g, x, _lowest(x))
    made = g.several("MaxPool", x, outputs=outputs, **window.attributes())
    return [windows.crop(g, v, 2, wanted) for v in made]


def _lowest(x: Value) -> float:
    """What is no greater than any element."""
    bits = {DataType.INT64: 63, DataType.INT32: 31, DataType.INT16: 15, DataType.INT8: 7}
    return -(1 << bits[x.dtype]) if x.dtype in bits else 0 if is_integer(x.dtype) else float("-inf")


def _gathered(g: Builder, x: Value, window: Window, outputs: int) -> list[Value]:
    """The maxima, and their places within the plane: where MaxPool takes not the dtype or the window. ONNX Gather, ReduceMax, ArgMax."""
    wanted, before, count, volume = window.result(x), window.padding, window.count, dims.product(window.kernel)
    dtype = x.dtype if x.dtype == DataType.INT64 or not is_integer(x.dtype) else DataType.INT32
    padded = window.fitted(g, cast(g, x, dtype), _lowest(x))  # type: ignore[arg-type]
    cut = windows.windows_last(g, padded, 2, window.kernel, window.stride, window.dilation)
    counts = shape_of(cut)[2 + count:]
    cut = sizes.reshape(g, cut, [*shape_of(x)[:2], volume, *counts])
    made = [cast(g, g.op("ReduceMax", cut, g.const([2]), keepdims=0), x.dtype)]  # type: ignore[arg-type]
    if outputs == 2:
        which = g.op("ArgMax", cut, axis=2, keepdims=0)
        place: Value | None = None
        for i, (kernel, behind) in enumerate(zip(window.kernel, _behind(window.kernel), strict=True)):
            step = g.op("Mod", g.op("Div", which, g.const(behind)), g.const(kernel))
            first = g.op("Sub", windows.arange(g, counts[i], window.stride[i]), g.const(before[i]))
            first = sizes.reshape(g, first, [counts[i], *[1] * (count - 1 - i)])
            at = g.op("Add", g.op("Mul", step, g.const(window.dilation[i])), first)
            place = at if place is None else g.op("Add", g.op("Mul", place, g.scalar(shape_of(x)[2 + i])), at)
        assert place is not None
        made.append(place)
    return [windows.crop(g, v, 2, wanted) for v in made]


def _behind(kernel: Sequence[int]) -> list[int]:
    """For each dim how many elements of a window one step along it passes."""
    return [math.prod(kernel[i + 1:]) for i in range(len(kernel))]


@aten("max_unpool2d", "max_unpool3d")
def max_unpool(g: Builder, self: Value, indices: Value, output_size: Sequence[Size], stride: Ints = (), padding: Ints = ()) -> Value:
    """max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor;
    max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor

    Zeros with the values at their places within each plane. ONNX ScatterElements.
    """
    outer = shape_of(self)[:rank_of(self) - len(output_size)]
    flat, places = (sizes.reshape(g, v, [*outer, dims.product(shape_of(v)[len(outer):])]) for v in (self, indices))
    zeros = sizes.expand(g, g.const(0, self.dtype), [*outer, dims.product(output_size)])
    made = g.op("ScatterElements", zeros, places, flat, axis=len(outer))
    return sizes.reshape(g, made, [*outer, *output_size])


# ---------------------------------------------------------------------- the mean


@aten("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(g: Builder, self: Value, kernel_size: Ints, stride: Ints = (), padding: Ints = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: int | None = None) -> Value:
    """avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True,
    int? divisor_override=None) -> Tensor

    (N, C, *spatial) or (C, *spatial). ONNX AveragePool.
    """
    window = Window(self, kernel_size, stride, padding, 1, ceil_mode)
    x = window.batched(g, self)
    if x.dtype in (DataType.DOUBLE, DataType.INT64):
        result = _exact_avg_pool(g, x, window, count_include_pad, divisor_override)
    elif divisor_override is not None:
        result = _sum_pool(g, x, window, divisor_override)
    else:
        result = _avg_pool(g, x, window, count_include_pad)
    return _unbatched(g, result, self)


def _avg_pool(g: Builder, x: Value, window: Window, count_include_pad: bool) -> Value:
    wanted, counted = window.result(x), count_include_pad and any(window.padding)
    if not window.direct(g, x) or (window.ceil and g.opset < 10):
        over = window.overhang(x)
        first = counted and any(over)  # padding that counts is made first, what hangs over does not count
        after = over if first else window.reached(x)
        if any(a >= k for a, k in zip(after, window.kernel, strict=True)):
            return _exact_avg_pool(g, x, window, count_include_pad, None)
        if first:
            x = windows.pad(g, x, window.padding, window.padding)
            window.padding, counted = [0] * window.count, False
        window.after, window.ceil = after, False
    made = g.op("AveragePool", x, count_include_pad=int(counted), **window.attributes())
    return windows.crop(g, made, 2, wanted)


def _sum_pool(g: Builder, x: Value, window: Window, divisor: int) -> Value:
    """The mean over whole windows, zeros counted, times kernel / divisor."""
    wanted = window.result(x)
    if window.ceil:
        x = window.fitted(g, x, 0)
    volume = 1
    for k in window.kernel:
        volume *= k
    mean = g.op("AveragePool", x, count_include_pad=int(any(window.padding)), **window.attributes())
    scaled: Value = g.op("Mul", mean, g.const(volume / divisor, x.dtype))
    return windows.crop(g, scaled, 2, wanted)


def _exact_avg_pool(g: Builder, x: Value, window: Window, count_include_pad: bool, divisor: int | None) -> Value:
    """For float64 and int64, which ONNX Runtime does not pool: ONNX Gather for the windows, ReduceSum."""
    wanted, over, before, after = window.result(x), window.overhang(x), window.padding, window.reached(x)

    def total(v: Value) -> Value:
        cut = windows.windows(g, v, 2, window.kernel, window.stride, window.dilation)
        return windows.crop(g, g.op("ReduceSum", cut, g.const([2 + 2 * i for i in range(window.count)]), keepdims=0), 2, wanted)

    padded = total(windows.pad(g, x, before, after))
    if divisor is not None or (not any(over) and (count_include_pad or not any(before))):
        return g.op("Div", padded, g.const(divisor or dims.product(window.kernel), x.dtype))
    ones: Value = g.op("Expand", g.const(1, x.dtype), g.sizes([1, 1, *shape_of(x)[2:]]))
    if count_include_pad:
        ones = windows.pad(g, windows.pad(g, ones, before, before, 1), [0] * window.count, over)
    else:
        ones = windows.pad(g, ones, before, after)
    return g.op("Div", padded, total(ones))
