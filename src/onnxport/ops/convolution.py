"""Convolutions."""

from __future__ import annotations

from onnxport.ops.registry import aten
from onnxport.ops.support import pair, rank_of
from onnxport.target.builder import Builder
from onnxport.target.value import Value


@aten("_convolution", "convolution")
def convolution(g: Builder, input: Value, weight: Value, bias: Value | None, stride: list[int], padding: list[int], dilation: list[int],
                transposed: bool, output_padding: list[int], groups: int) -> Value:
    """convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed,
    SymInt[] output_padding, SymInt groups) -> Tensor. ONNX Conv, ConvTranspose.
    """
    spatial = rank_of(weight) - 2
    batched = rank_of(input) == rank_of(weight)
    if not batched:
        input = g.op("Unsqueeze", input, g.const([0]))
    attrs = {"strides": pair(stride, spatial), "pads": pair(padding, spatial) * 2, "dilations": pair(dilation, spatial), "group": groups,
             "kernel_shape": list(weight.shape[2:])}  # type: ignore[index]
    if transposed:
        result = g.op("ConvTranspose", input, weight, bias, output_padding=pair(output_padding, spatial), **attrs)
    else:
        result = g.op("Conv", input, weight, bias, **attrs)
    return result if batched else g.op("Squeeze", result, g.const([0]))  # type: ignore[no-any-return]
