"""Convolutions and transposed convolutions of any number of spatial dims."""

from __future__ import annotations

from collections.abc import Sequence

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.support import pair, rank_of, shape_of, static_int
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import is_static
from onnxport.target.dtypes import COMPLEX
from onnxport.target.value import Value


@aten("_convolution", "convolution", "convolution_overrideable", "mkldnn_convolution")
def convolution(g: Builder, input: Value | None = None, weight: Value | None = None, bias: Value | None = None, stride: Sequence[int] = (1,),
                padding: Sequence[int] = (0,), dilation: Sequence[int] = (1,), transposed: bool = False, output_padding: Sequence[int] = (0,),
                groups: int = 1, self: Value | None = None) -> Value:
    """convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed,
    SymInt[] output_padding, SymInt groups) -> Tensor

    input (N, C, *spatial) or (C, *spatial), weight (out, C / groups, *kernel); transposed: (C, out / groups, *kernel). ONNX Conv, ConvTranspose.
    """
    input = self if input is None else input
    assert input is not None and weight is not None
    if transposed:
        return transposed_convolution(g, input, weight, bias, stride, padding, output_padding, groups, dilation)
    count = rank_of(weight) - 2
    return _conv(g, input, weight, bias, stride, pair(padding, count) * 2, dilation, groups)


@aten("conv1d", "conv2d", "conv3d", "_convolution_mode")
def conv(g: Builder, input: Value, weight: Value, bias: Value | None = None, stride: Sequence[int] = (1,), padding: Sequence[int] | str = (0,),
         dilation: Sequence[int] = (1,), groups: int = 1) -> Value:
    """conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1, SymInt groups=1);
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
    """conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] output_padding=0,
    SymInt groups=1, SymInt[2] dilation=1) -> Tensor

    input (N, C, *spatial) or (C, *spatial), weight (C, out / groups, *kernel). ONNX ConvTranspose.
    """
    count = rank_of(weight) - 2
    x = _batched(g, input, weight)
    result: Value = g.op("ConvTranspose", x, weight, bias, strides=pair(stride, count), pads=pair(padding, count) * 2, group=groups,
                         output_padding=pair(output_padding, count), dilations=pair(dilation, count), kernel_shape=_kernel(weight))
    return result if x is input else sizes.squeeze(g, result, [0])


def _conv(g: Builder, input: Value, weight: Value, bias: Value | None, stride: Sequence[int], pads: list[int], dilation: Sequence[int],
          groups: int) -> Value:
    count = rank_of(weight) - 2
    x = _batched(g, input, weight)
    result: Value = g.op("Conv", x, weight, bias, strides=pair(stride, count), pads=pads, dilations=pair(dilation, count), group=groups,
                         kernel_shape=_kernel(weight))
    return result if x is input else sizes.squeeze(g, result, [0])


def _batched(g: Builder, input: Value, weight: Value) -> Value:
    """`input` with a batch dim; refuses what no kernel computes."""
    if input.dtype in COMPLEX or weight.dtype in COMPLEX:
        raise errors.UnsupportedError("convolution of complex tensors: ONNX has none")
    return input if rank_of(input) == rank_of(weight) else sizes.unsqueeze(g, input, [0])


def _kernel(weight: Value) -> list[int] | None:
    """The kernel's shape as an attribute; None where it is dynamic (ONNX reads it from the weight)."""
    kernel = shape_of(weight)[2:]
    return list(kernel) if is_static(kernel) else None  # type: ignore[arg-type]
