"""Layers whose weights are quantised and whose inputs are quantised while the model runs, on a grid that each input decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onnxport.ops.quantised import INTEGERS, Quantised, like
from onnxport.ops.quantised_layers import Layer, convolve
from onnxport.ops.quantization import FLOAT, LIMITS, Grid, is_zero
from onnxport.ops.registry import aten
from onnxport.ops.stepwise import CELLS, Direction
from onnxport.ops.support import cast
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.value import DataType, Value

_LEAST_STEP = 6.1e-5  # PyTorch takes no smaller scale
_SINCE_SUMS = 10  # the opset from which on there are sums of products of integers


def grid_of(g: Builder, x: Value, reduce_range: bool, dtype: DataType = DataType.UINT8) -> Grid:
    """The grid between the least and the greatest element, and 0. reduce_range: of seven bits."""
    low, high = LIMITS[dtype]
    if reduce_range:
        low, high = int(low / 2), int(high / 2)
    nothing = g.const(0.0, DataType.DOUBLE)
    least = g.op("Min", g.op("Cast", g.op("ReduceMin", x, keepdims=0), to=DataType.DOUBLE), nothing)
    most = g.op("Max", g.op("Cast", g.op("ReduceMax", x, keepdims=0), to=DataType.DOUBLE), nothing)
    step = g.op("Div", g.op("Sub", most, least), g.const(float(high - low), DataType.DOUBLE))
    steps = g.op("Div", least, g.op("Max", step, g.const(1e-45, DataType.DOUBLE)))
    zero = g.op("Round", g.op("Sub", g.const(float(low), DataType.DOUBLE), steps))
    scale = g.op("Max", g.op("Cast", step, to=FLOAT), g.const(_LEAST_STEP, FLOAT))
    return Grid(scale, g.op("Cast", zero, to=dtype), *LIMITS[dtype])


def dynamic(g: Builder, x: Value, reduce_range: bool, dtype: DataType = DataType.UINT8) -> Quantised:
    """`x` on a grid of its own."""
    x = cast(g, x, FLOAT)
    return like(g, x, grid_of(g, x, reduce_range, dtype), dtype)


def product(g: Builder, x: Value, layer: Layer, reduce_range: bool) -> Value:
    """A linear layer on `x`, which is quantised for it: the sum of integers, scaled. ONNX MatMulInteger."""
    weight, q = layer["weight"], dynamic(g, x, reduce_range and layer.get("reduces", True))
    if g.opset < _SINCE_SUMS:
        return _linear(g, q.numbers(g), weight.numbers(g), layer["bias"])
    zero = None if is_zero(weight.grid.zero) else cast(g, weight.grid.zero, weight.integers.dtype)
    total = g.op("MatMulInteger", q.integers, g.op("Transpose", weight.integers, perm=[1, 0]), q.grid.zero, zero)
    made = g.op("Mul", g.op("Cast", total, to=FLOAT), g.op("Mul", q.grid.scale, weight.grid.scale))
    return made if layer["bias"] is None else g.op("Add", made, layer["bias"])


def _linear(g: Builder, x: Value, weight: Value, bias: Value | None) -> Value:
    made = g.op("MatMul", x, g.op("Transpose", weight, perm=[1, 0]))
    return made if bias is None else g.op("Add", made, bias)


@aten("quantized::linear_dynamic")
def linear_dynamic(g: Builder, X: Value, W_prepack: Layer, reduce_range: bool = False) -> Value:
    """quantized::linear_dynamic(Tensor X, LinearPackedParamsBase W_prepack, bool reduce_range=False) -> Tensor

    X (*, in) of floats -> (*, out) of floats. ONNX QuantizeLinear, DequantizeLinear, MatMul, Add.
    """
    return product(g, X, W_prepack, reduce_range)


@aten("quantized::linear_relu_dynamic")
def linear_relu_dynamic(g: Builder, X: Value, W_prepack: Layer, reduce_range: bool = False) -> Value:
    """quantized::linear_relu_dynamic, as linear_dynamic. ONNX Relu behind."""
    return g.op("Relu", product(g, X, W_prepack, reduce_range))


@aten("quantized::linear_dynamic_fp16", "quantized::linear_dynamic_fp16_unpacked_weight")
def linear_dynamic_fp16(g: Builder, X: Value, W_prepack: Layer | None = None, weight: Value | None = None, bias: Value | None = None) -> Value:
    """quantized::linear_dynamic_fp16(Tensor X, LinearPackedParamsBase W_prepack) -> Tensor;
    linear_dynamic_fp16_unpacked_weight(Tensor X, Tensor weight, Tensor? bias) -> Tensor

    The weight has the numbers of float16 and is multiplied in float32.
    """
    layer: Layer = {"weight": weight, "bias": bias} if W_prepack is None else W_prepack
    return _linear(g, X, g.node("Cast", cast(g, layer["weight"], DataType.FLOAT16), to=FLOAT), layer["bias"])


@aten("quantized::linear_relu_dynamic_fp16")
def linear_relu_dynamic_fp16(g: Builder, X: Value, W_prepack: Layer) -> Value:
    """quantized::linear_relu_dynamic_fp16, as linear_dynamic_fp16. ONNX Relu behind."""
    return g.op("Relu", linear_dynamic_fp16(g, X, W_prepack))


@aten("quantize_per_tensor_dynamic", fold=False)
def quantize_per_tensor_dynamic(g: Builder, self: Value, dtype: torch.dtype, reduce_range: bool) -> Quantised:
    """quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor"""
    return dynamic(g, self, reduce_range, INTEGERS[dtype])


def _convolution(name: str, dims: int) -> None:
    @aten(f"quantized::{name}_dynamic")
    def convolved(g: Builder, qx: Value, packed_weight: Layer, reduce_range: bool = False) -> Value:
        """quantized::conv2d_dynamic(Tensor qx, Conv2dPackedParamsBase packed_weight, bool reduce_range=False) -> Tensor; conv1d_dynamic,
        conv3d_dynamic and transposed ones likewise. qx and the result are floats, the latter on the grid of qx (so PyTorch). ONNX Conv,
        ConvTranspose.
        """
        x, layer = sizes.unsqueeze(g, qx, [-2]) if dims == 1 else qx, packed_weight
        q = dynamic(g, x, reduce_range and layer["reduces"])
        y = like(g, convolve(g, q.numbers(g), layer["weight"].numbers(g), layer["bias"], layer), q.grid, DataType.UINT8).numbers(g)
        return sizes.squeeze(g, y, [-2]) if dims == 1 else y


for _dims in (1, 2, 3):
    _convolution(f"conv{_dims}d", _dims)
    _convolution(f"conv_transpose{_dims}d", _dims)


# ---------------------------------------------------------------------- recurrent nets


def direction_of(g: Builder, cell: dict[str, Any]) -> Direction:
    """A quantised cell as one direction of a layer."""
    hidden = cell["hh"]["weight"].shape[1]

    def side(layer: Layer) -> Callable[[Value], Value]:
        if not isinstance(layer["weight"], Quantised):
            return lambda x: linear_dynamic_fp16(g, x, layer)
        return lambda x: product(g, x, layer, cell["reduce_range"])

    return Direction(side(cell["ih"]), side(cell["hh"]), [hidden, hidden], together=True)


def _cell(name: str, kind: str, several: bool) -> None:
    @aten(f"quantized::quantized_{name}_cell_dynamic", fold=False, also=("bias_ih", "bias_hh", "b_ih", "b_hh"))
    def cell(g: Builder, input: Value, hx: Any, w_ih: Layer, w_hh: Layer, **biases: Any) -> Any:
        """quantized::quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, LinearPackedParamsBase w_ih, LinearPackedParamsBase w_hh,
        Tensor bias_ih, Tensor bias_hh) -> (Tensor, Tensor); quantized_gru_cell_dynamic, quantized_rnn_tanh_cell_dynamic and
        quantized_rnn_relu_cell_dynamic(Tensor input, Tensor hx, ...) -> Tensor

        The biases are packed with the weights, too.
        """
        entered, again = (product(g, x, layer, True) for x, layer in ((input, w_ih), (hx[0] if several else hx, w_hh)))
        after = CELLS[kind](g, entered, again, list(hx) if several else [hx])
        return after if several else after[0]


for _name, _kind in (("lstm", "LSTM"), ("gru", "GRU"), ("rnn_tanh", "Tanh"), ("rnn_relu", "Relu")):
    _cell(_name, _kind, _name == "lstm")
