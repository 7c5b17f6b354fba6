"""Convolutions and transposed convolutions of any number of spatial dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnxport.ops import windows
from onnxport.ops.registry import aten
from onnxport.ops.support import pair, rank_of, shape_of, static_int
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import is_static
from onnxport.target.value import DataType, Value

_NARROW = (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16)


@aten("_convolution", "convolution", "convolution_overrideable", "mkldnn_convolution")
def convolution(g: Builder, input: Value | None = None, weight: Value | None = None, bias: Value | None = None,
                stride: Sequence[int] = (1,),
                padding: Sequence[int] = (0,), dilation: Sequence[int] = (1,), transposed: bool = False,
                output_padding: Sequence[int] = (0,),
                groups: int = 1, self: Value | None = None) -> Value:
    """convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed,
    SymInt[] output_padding, SymInt groups) -> Tensor

    input (N, C, *spatial) or (C, *spatial), weight (out, C / groups, *kernel); transposed: (C, out / groups, *kernel). ONNX Conv,
    ConvTranspose.
    """
    input = self if input is None else input
    assert input is not None
    assert weight is not None
    if transposed:
        return transposed_convolution(g, input, weight, bias, stride, padding, output_padding, groups, dilation)
    count = rank_of(weight) - 2
    return _conv(g, input, weight, bias, stride, pair(padding, count) * 2, dilation, groups)


@aten("conv1d", "conv2d", "conv3d", "_convolution_mode")
def conv(g: Builder, input: Value, weight: Value, bias: Value | None = None, stride: Sequence[int] = (1,),
         padding: Sequence[int] | str = (0,),
         dilation: Sequence[int] = (1,), groups: int = 1) -> Value:
    """conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1, SymInt
    groups=1);
    conv2d.padding and _convolution_mode have str padding ("valid", "same") -> Tensor

    ONNX Conv.
    """
    count = rank_of(weight) - 2
    if padding == "same":
        reach = [d * (static_int(k, "the kernel of a convolution with padding='same'") - 1)
                 for d, k in zip(pair(dilation, count), shape_of(weight)[2:], strict=True)]
        pads = [r // 2 for r in reach] + [r - r // 2 for r in reach]
    else:
        pads = [0] * (2 * count) if isinstance(padding, str) else pair(padding, count) * 2
    return _conv(g, input, weight, bias, stride, pads, dilation, groups)


@aten("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(g: Builder, input: Value, weight: Value, bias: Value | None = None, stride: Sequence[int] = (1,),
                           padding: Sequence[int] = (0,), output_padding: Sequence[int] = (0,), groups: int = 1,
                           dilation: Sequence[int] = (1,)) -> Value:
    """conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2]
    output_padding=0,
    SymInt groups=1, SymInt[2] dilation=1) -> Tensor

    input (N, C, *spatial) or (C, *spatial), weight (C, out / groups, *kernel). ONNX ConvTranspose.
    """
    count = rank_of(weight) - 2
    x = _batched(g, input, weight)
    if x.dtype in _NARROW:
        result = _conv_transpose(g, x, weight, bias, pair(padding, count), pair(output_padding, count), strides=pair(stride, count),
                                 dilations=pair(dilation, count), group=groups, kernel_shape=_kernel(weight))
    else:
        result = _transposed_by_columns(g, x, weight, bias, pair(stride, count), pair(padding, count), pair(output_padding, count), groups,
                                        pair(dilation, count))
    return result if x is input else sizes.squeeze(g, result, [0])


def _conv_transpose(g: Builder, x: Value, weight: Value, bias: Value | None, padding: list[int], output_padding: list[int],
                    **attrs: Any) -> Value:
    """ONNX Runtime takes no `output_padding` as large as the stride: it is that much less padding, and zeros where there is none."""
    if all(o < s for o, s in zip(output_padding, attrs["strides"], strict=True)):
        return g.op("ConvTranspose", x, weight, bias, pads=padding * 2, output_padding=output_padding, **attrs)
    behind = [max(p - o, 0) for p, o in zip(padding, output_padding, strict=True)]
    zeros = [max(o - p, 0) for p, o in zip(padding, output_padding, strict=True)]
    made = g.op("ConvTranspose", x, weight, pads=padding + behind, **attrs)
    result = windows.pad(g, made, [0] * len(zeros), zeros)
    return result if bias is None else g.op("Add", result, sizes.reshape(g, bias, [-1, *[1] * len(zeros)]))


def _conv(g: Builder, input: Value, weight: Value, bias: Value | None, stride: Sequence[int], pads: list[int], dilation: Sequence[int],
          groups: int) -> Value:
    count = rank_of(weight) - 2
    x = _batched(g, input, weight)
    if x.dtype in _NARROW:
        result = g.op("Conv", x, weight, bias, strides=pair(stride, count), pads=pads, dilations=pair(dilation, count), group=groups,
                      kernel_shape=_kernel(weight))
    else:
        padded = windows.pad(g, x, pads[:count], pads[count:])
        result = _by_columns(g, padded, weight, bias, pair(stride, count), pair(dilation, count), groups)
    return result if x is input else sizes.squeeze(g, result, [0])


def _by_columns(g: Builder, x: Value, weight: Value, bias: Value | None, stride: list[int], dilation: list[int], groups: int) -> Value:
    """For float64 and integers, which ONNX Runtime does not convolve: windows as columns, ONNX Gather and MatMul."""
    kernel = [static_int(k, f"the kernel of a convolution of {x.dtype and x.dtype.name}") for k in shape_of(weight)[2:]]
    out, inner = static_int(shape_of(weight)[0], "the channels of a convolution"), dims.product(shape_of(weight)[1:])
    cut = windows.windows_last(g, x, 2, kernel, stride, dilation)
    batch, spatial = shape_of(x)[0], shape_of(cut)[2 + len(kernel):]
    columns = sizes.reshape(g, cut, [batch, groups, inner, dims.product(spatial)])
    rows = sizes.reshape(g, weight, [groups, out // groups, inner])
    result = sizes.reshape(g, g.op("MatMul", rows, columns), [batch, out, *spatial])
    return result if bias is None else g.op("Add", result, sizes.reshape(g, bias, [-1, *[1] * len(kernel)]))


def _spread(g: Builder, x: Value, stride: list[int]) -> Value:
    """Zeros between the elements of the last dims: each padded to a row of `stride`, and the last row cut to its first."""
    first = rank_of(x) - len(stride)
    for i, s in enumerate(stride):
        if s == 1:
            continue
        axis = first + i
        shape = shape_of(x)
        rows = g.op("Unsqueeze", x, g.const([axis + 1]))
        rank = len(shape) + 1
        wide = g.op("Pad", rows, g.const([0] * (rank + axis + 1) + [s - 1] + [0] * (rank - axis - 2)))
        whole = sizes.reshape(g, wide, [*shape[:axis], shape[axis] * s, *shape[axis + 1:]])
        x = g.op("Slice", whole, g.const([0]), g.const([-(s - 1)]), g.const([axis]))
    return x


def _transposed_by_columns(g: Builder, x: Value, weight: Value, bias: Value | None, stride: list[int], padding: list[int],
                           output_padding: list[int],
                           groups: int, dilation: list[int]) -> Value:
    """A convolution of the spread input with the turned kernel."""
    kernel = [static_int(k, "the kernel of a transposed convolution") for k in shape_of(weight)[2:]]
    channels, out = (static_int(n, "the channels of a transposed convolution") for n in shape_of(weight)[:2])
    for i, k in enumerate(kernel):
        weight = g.op("Gather", weight, g.const(list(range(k))[::-1]), axis=2 + i)
    parts = sizes.reshape(g, weight, [groups, channels // groups, out, *kernel])
    swapped = g.op("Transpose", parts, perm=[0, 2, 1, *range(3, 3 + len(kernel))])
    turned = sizes.reshape(g, swapped, [groups * out, channels // groups, *kernel])
    before = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
    padded = windows.pad(g, _spread(g, x, stride), before, [b + o for b, o in zip(before, output_padding, strict=True)])
    return _by_columns(g, padded, turned, bias, [1] * len(kernel), dilation, groups)


def _batched(g: Builder, input: Value, weight: Value) -> Value:
    """`input` with a batch dim."""
    return input if rank_of(input) == rank_of(weight) else sizes.unsqueeze(g, input, [0])


def _kernel(weight: Value) -> list[int] | None:
    """The kernel's shape as an attribute; None where it is dynamic (ONNX reads it from the weight)."""
    kernel = shape_of(weight)[2:]
    return list(kernel) if is_static(kernel) else None  # type: ignore[arg-type]
