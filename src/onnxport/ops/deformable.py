"""Convolution at places moved by offsets, for opsets without DeformConv: the pixels around each place, then a product with the weights."""

from __future__ import annotations

from onnxport.ops import windows
from onnxport.ops.grid_sampling import linear_taps, sum_of_taps
from onnxport.ops.support import cast, shape_of, static_int
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value


def convolve(g: Builder, x: Value, weight: Value, offset: Value, mask: Value | None, bias: Value, strides: list[int], pads: list[int],
             dilations: list[int], groups: int, offset_groups: int) -> Value:
    """x (N, C, H, W), weight (O, C / groups, kh, kw), offset (N, 2 offset_groups kh kw, h, w) as y, x -> (N, O, h, w)."""
    batch, channels, height, width = shape_of(x)
    kernel = [static_int(k, "the kernel of deform_conv2d") for k in shape_of(weight)[2:]]
    volume, out = kernel[0] * kernel[1], list(shape_of(offset)[2:])
    channels = static_int(channels, "the channels of deform_conv2d")
    moved = sizes.reshape(g, offset, [batch * offset_groups, volume, 2, *out])
    taps = [linear_taps(g, _places(g, moved, i, out, kernel, strides, pads, dilations)) for i in (0, 1)]
    image = sizes.reshape(g, x, [batch * offset_groups, channels // offset_groups, height, width])
    columns = sum_of_taps(g, image, [volume, *out], taps, zeros=True)
    if mask is not None:
        columns = g.op("Mul", columns, sizes.reshape(g, mask, [batch * offset_groups, 1, volume, *out]))
    area, features = dims.product(out), static_int(shape_of(weight)[0], "the channels of deform_conv2d")
    columns = sizes.reshape(g, columns, [batch, groups, channels // groups * volume, area])
    matrix = sizes.reshape(g, weight, [groups, features // groups, channels // groups * volume])
    result = sizes.reshape(g, g.op("MatMul", matrix, columns), [batch, features, *out])
    return g.op("Add", result, sizes.reshape(g, bias, [features, 1, 1]))


def _places(g: Builder, moved: Value, dim: int, out: list[Size], kernel: list[int], strides: list[int], pads: list[int],
            dilations: list[int]) -> Value:
    """The coordinates along one dim, (N offset_groups, kh kw, h, w): the window's, moved."""
    step = g.op("Sub", windows.arange(g, out[dim], strides[dim]), g.const(pads[dim]))
    tap = [k // kernel[1] if dim == 0 else k % kernel[1] for k in range(kernel[0] * kernel[1])]
    start = sizes.reshape(g, step, [out[0], 1] if dim == 0 else [1, out[1]])
    place = g.op("Add", g.const([[[k * dilations[dim]]] for k in tap]), start)
    return g.op("Add", g.op("Gather", moved, g.const(dim), axis=2), cast(g, place, moved.dtype or DataType.FLOAT))
