"""Linear and convolution layers on quantised tensors: the layer of floats between DequantizeLinear and QuantizeLinear, which ONNX Runtime
computes in integers. PyTorch's kernels sum in integers too; where the sum lies within float32's rounding of the border between two results,
they may differ by one step.
"""

from __future__ import annotations

from typing import Any

import torch

from onnxport.ops.convolution import convolution
from onnxport.ops.linear import linear as float_linear
from onnxport.ops.quantised import Quantised, on_grid
from onnxport.ops.quantization import Grid, dequantize, has_node, in_numbers
from onnxport.ops.registry import aten
from onnxport.ops.support import shape_of
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.value import Value

Layer = dict[str, Any]  # weight, bias and settings, as `capture/packed.py` or a prepacking operator gives them
_INT32 = 2**31


def _operands(g: Builder, x: Quantised, layer: Layer) -> tuple[Value, Value, Value | None]:
    """Data, weight and bias as floats, from nodes that runtimes know how to fuse.

    Where there is none for the weight, or the bias fits no integer of the sums, the data has none either: ONNX Runtime would quantise
    that weight with one scale for all, and let that bias overflow.
    """
    weight, bias = layer["weight"], layer["bias"]
    known = bias is not None and all(v.const is not None for v in (bias, x.grid.scale, weight.grid.scale))
    counted = _counted(g, bias, x.grid, weight.grid) if known else bias
    if not has_node(g, weight.grid, weight.integers.dtype, "DequantizeLinear") or (known and counted is None):
        return in_numbers(g, x.integers, x.grid), weight.numbers(g), bias
    return x.numbers(g), weight.numbers(g), counted


def _counted(g: Builder, bias: Value, x: Grid, weight: Grid) -> Value | None:
    """The bias on the grid of the sums, so that runtimes add it in integers; None where it does not fit there."""
    assert bias.const is not None and x.scale.const is not None and weight.scale.const is not None
    step = (x.scale.const.tensor.double() * weight.scale.const.tensor.double()).float()
    steps = (bias.const.tensor.detach().double() / step.double()).round()
    if not bool((steps.abs() < _INT32).all()):
        return None
    integers = g.constant(steps.to(torch.int32), name=bias.const.name, parameter=True)
    zero = g.constant(torch.zeros_like(step, dtype=torch.int32))
    return dequantize(g, integers, Grid(g.constant(step), zero, -_INT32, _INT32 - 1, None if step.dim() == 0 else 0))


def _matrix(g: Builder, x: Quantised) -> Quantised:
    """`x` as a matrix, which the node of a linear layer with a bias wants."""
    return x if x.rank == 2 else x.with_integers(sizes.reshape(g, x.integers, [-1, shape_of(x.integers)[-1]]))


def _linear(g: Builder, x: Quantised, layer: Layer) -> Value:
    return float_linear(g, *_operands(g, _matrix(g, x), layer))


def _shaped(g: Builder, made: Quantised, x: Quantised) -> Quantised:
    """The result for each row of `x`, with the outer dims of `x`."""
    if x.rank == 2:
        return made
    return made.with_integers(sizes.reshape(g, made.integers, [*shape_of(x.integers)[:-1], shape_of(made.integers)[-1]]))


def _after(g: Builder, y: Value, relu: bool) -> Value:
    return g.op("Relu", y) if relu else y


@aten("quantized::linear")
def linear(g: Builder, X: Quantised, W_prepack: Layer, Y_scale_i: float, Y_zero_point_i: int, relu: bool = False) -> Quantised:
    """quantized::linear(Tensor X, LinearPackedParamsBase W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor

    X (*, in), weight (out, in) -> (*, out). ONNX Gemm.
    """
    return _shaped(g, on_grid(g, _after(g, _linear(g, X, W_prepack), relu), Y_scale_i, Y_zero_point_i, X.dtype), X)


@aten("quantized::linear_relu")
def linear_relu(g: Builder, X: Quantised, W_prepack: Layer, Y_scale_i: float, Y_zero_point_i: int) -> Quantised:
    """quantized::linear_relu, as linear. ONNX Gemm, Relu."""
    return linear(g, X, W_prepack, Y_scale_i, Y_zero_point_i, relu=True)


@aten("quantized::linear_leaky_relu")
def linear_leaky_relu(g: Builder, X: Quantised, W_prepack: Layer, Y_scale_i: float, Y_zero_point_i: int, negative_slope: float) -> Quantised:
    """quantized::linear_leaky_relu, as linear. ONNX Gemm, LeakyRelu."""
    y = g.op("LeakyRelu", _linear(g, X, W_prepack), alpha=float(negative_slope))
    return _shaped(g, on_grid(g, y, Y_scale_i, Y_zero_point_i, X.dtype), X)


@aten("quantized::linear_tanh")
def linear_tanh(g: Builder, X: Quantised, W_prepack: Layer, Y_scale_i: float, Y_zero_point_i: int) -> Quantised:
    """quantized::linear_tanh, as linear. ONNX Gemm, Tanh."""
    return _shaped(g, on_grid(g, g.op("Tanh", _linear(g, X, W_prepack)), Y_scale_i, Y_zero_point_i, X.dtype), X)


@aten("quantized::linear_prepack")
def linear_prepack(g: Builder, W: Any, B: Value | None = None) -> Layer:
    """quantized::linear_prepack(Tensor W, Tensor? B=None) -> LinearPackedParamsBase"""
    return {"weight": W, "bias": B}


# ---------------------------------------------------------------------- convolutions


def convolve(g: Builder, x: Value, weight: Value, bias: Value | None, layer: Layer) -> Value:
    """The convolution of floats with the settings of a layer."""
    return convolution(g, x, weight, bias, layer["stride"], layer["padding"], layer["dilation"], bool(layer["transpose"]),
                       layer["output_padding"], layer["groups"])


def _convolve(g: Builder, x: Quantised, layer: Layer) -> Value:
    return convolve(g, *_operands(g, x, layer), layer)


def _flat(g: Builder, x: Quantised) -> Quantised:
    """(N, C, L) as (N, C, 1, L): the weights of one dim are kept as such of two."""
    return x.with_integers(sizes.unsqueeze(g, x.integers, [-2]))


def _convolution(name: str, dims: int, relu: bool) -> None:
    @aten(f"quantized::{name}")
    def convolved(g: Builder, qx: Quantised, packed_weight: Layer, output_scale: float, output_zero_point: int) -> Quantised:
        """quantized::conv2d.new(Tensor qx, Conv2dPackedParamsBase packed_weight, float output_scale, int output_zero_point) -> Tensor;
        conv1d, conv3d, conv_transpose1d to 3d, and with _relu behind likewise. ONNX Conv, ConvTranspose, Relu.
        """
        x = _flat(g, qx) if dims == 1 else qx
        made = on_grid(g, _after(g, _convolve(g, x, packed_weight), relu), output_scale, output_zero_point, qx.dtype)
        return made.with_integers(sizes.squeeze(g, made.integers, [-2])) if dims == 1 else made


for _dims in (1, 2, 3):
    _convolution(f"conv{_dims}d{'' if _dims == 1 else '.new'}", _dims, False)
    _convolution(f"conv{_dims}d_relu{'' if _dims == 1 else '.new'}", _dims, True)
    _convolution(f"conv_transpose{_dims}d", _dims, False)


@aten("quantized::conv2d_add")
def conv2d_add(g: Builder, qx: Quantised, qaccum: Quantised, packed_weight: Layer, output_scale: float, output_zero_point: int,
               relu: bool = False) -> Quantised:
    """quantized::conv2d_add(Tensor qx, Tensor qaccum, Conv2dPackedParamsBase packed_weight, float output_scale, int output_zero_point)
    -> Tensor

    ONNX Conv, Add.
    """
    total = g.op("Add", _convolve(g, qx, packed_weight), qaccum.numbers(g))
    return on_grid(g, _after(g, total, relu), output_scale, output_zero_point, qx.dtype)


@aten("quantized::conv2d_add_relu")
def conv2d_add_relu(g: Builder, qx: Quantised, qaccum: Quantised, packed_weight: Layer, output_scale: float,
                    output_zero_point: int) -> Quantised:
    """quantized::conv2d_add_relu, as conv2d_add. ONNX Conv, Add, Relu."""
    return conv2d_add(g, qx, qaccum, packed_weight, output_scale, output_zero_point, relu=True)


def _prepack(dims: int) -> None:
    @aten(f"quantized::conv{dims}d_prepack")
    def prepack(g: Builder, weight: Quantised, bias: Value | None, stride: list[int], padding: list[int], dilation: list[int],
                groups: int) -> Layer:
        """quantized::conv2d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)
        -> Conv2dPackedParamsBase
        """
        settings: Layer = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": [0] * dims}
        if dims == 1:
            weight = _flat(g, weight)
            settings = {name: [int(name in ("stride", "dilation")), *values] for name, values in settings.items()}
        return {"weight": weight, "bias": bias, "groups": groups, "transpose": False, **settings}


for _dims in (1, 2, 3):
    _prepack(_dims)
