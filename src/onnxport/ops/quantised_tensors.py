"""What makes quantised tensors, what is made of them, and what computes with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.ops import activation, normalization
from onnxport.ops.quantised import Quantised, like, number_of, on_grid, same
from onnxport.ops.quantization import FLOAT, LIMITS, Grid, Number, grid
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast
from onnxport.target.builder import Builder
from onnxport.target.value import DataType, Value

# ---------------------------------------------------------------------- there and back


@aten("quantize_per_tensor", fold=False)
def quantize_per_tensor(g: Builder, self: Value, scale: Number, zero_point: Number, dtype: torch.dtype) -> Quantised:
    """quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor; .tensor_qparams has tensors for both

    ONNX QuantizeLinear.
    """
    return on_grid(g, self, scale, zero_point, dtype)


@aten("quantize_per_tensor.tensors", fold=False)
def quantize_tensors(g: Builder, tensors: Sequence[Value], scales: Value, zero_points: Value, dtype: torch.dtype) -> list[Quantised]:
    """quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[]"""
    numbers = [[g.op("Gather", v, g.const(i), axis=0) for v in (scales, zero_points)] for i in range(len(tensors))]
    return [on_grid(g, x, scale, zero, dtype) for x, (scale, zero) in zip(tensors, numbers, strict=True)]


@aten("quantize_per_channel", fold=False)
def quantize_per_channel(g: Builder, self: Value, scales: Value, zero_points: Value, axis: int, dtype: torch.dtype) -> Quantised:
    """quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor

    ONNX QuantizeLinear along an axis.
    """
    return on_grid(g, self, cast(g, scales, FLOAT), zero_points, dtype, axis)


@aten("_make_per_tensor_quantized_tensor", fold=False)
def make_per_tensor(g: Builder, self: Value, scale: float, zero_point: int) -> Quantised:
    """_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor. The integers of `self`."""
    assert self.dtype is not None
    return Quantised(self, grid(g, self, scale, zero_point, *LIMITS[self.dtype]))


@aten("_make_per_channel_quantized_tensor", fold=False)
def make_per_channel(g: Builder, self: Value, scale: Value, zero_point: Value, axis: int) -> Quantised:
    """_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor. The integers of `self`."""
    assert self.dtype is not None
    return Quantised(self, grid(g, self, cast(g, scale, FLOAT), zero_point, *LIMITS[self.dtype], axis))


@aten("dequantize.self")
def dequantize(g: Builder, self: Quantised | Value) -> Value:
    """dequantize.self(Tensor self) -> Tensor. ONNX DequantizeLinear; of floats only the dtype changes to float32."""
    return self.numbers(g) if isinstance(self, Quantised) else cast(g, self, FLOAT)


@aten("dequantize.tensors")
def dequantize_tensors(g: Builder, tensors: Sequence[Quantised | Value]) -> list[Value]:
    """dequantize.tensors(Tensor[] tensors) -> Tensor[]"""
    return [dequantize(g, x) for x in tensors]


@aten
def int_repr(g: Builder, self: Quantised) -> Value:
    """int_repr(Tensor self) -> Tensor. The integers."""
    return self.integers


@aten
def q_scale(g: Builder, self: Quantised) -> float:
    """q_scale(Tensor self) -> float"""
    return number_of(self.grid)[0]


@aten
def q_zero_point(g: Builder, self: Quantised) -> int:
    """q_zero_point(Tensor self) -> int"""
    return number_of(self.grid)[1]


@aten
def q_per_channel_scales(g: Builder, self: Quantised) -> Value:
    """q_per_channel_scales(Tensor self) -> Tensor"""
    return cast(g, self.grid.scale, DataType.DOUBLE)


@aten
def q_per_channel_zero_points(g: Builder, self: Quantised) -> Value:
    """q_per_channel_zero_points(Tensor self) -> Tensor"""
    return cast(g, self.grid.zero, DataType.INT64)


@aten
def q_per_channel_axis(g: Builder, self: Quantised) -> int | None:
    """q_per_channel_axis(Tensor self) -> int"""
    return self.grid.axis


# ---------------------------------------------------------------------- operators that are told the grid of their result

Float = Callable[..., Value]


def _of_floats(name: str, function: Float, *, relu: bool = False) -> None:
    @aten(f"quantized::{name}")
    def between(g: Builder, qa: Quantised, qb: Quantised, scale: float, zero_point: int) -> Quantised:
        """quantized::add(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor; add_relu, mul, mul_relu, matmul likewise

        ONNX Add, Mul, MatMul, Relu between DequantizeLinear and QuantizeLinear.
        """
        y = function(g, qa.numbers(g), qb.numbers(g))
        return on_grid(g, g.op("Relu", y) if relu else y, scale, zero_point, qa.dtype)


for _name, _op_type in (("add", "Add"), ("mul", "Mul")):
    _of_floats(_name, lambda g, a, b, op_type=_op_type: g.op(op_type, a, b))
    _of_floats(f"{_name}_relu", lambda g, a, b, op_type=_op_type: g.op(op_type, a, b), relu=True)
_of_floats("matmul", lambda g, a, b: g.op("MatMul", a, b))


@aten("quantized::cat")
def cat(g: Builder, qx: Sequence[Quantised], dim: int, scale: float | None, zero_point: int | None, relu: bool = False) -> Quantised:
    """quantized::cat(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor

    Integers of one grid are put together as they are. ONNX Concat.
    """
    first = qx[0]
    at = first.grid if scale is None else grid(g, first.integers, scale, 0 if zero_point is None else zero_point, *LIMITS[_integer(first)])
    axis = axis_of(first.integers, dim)
    if all(same(x.grid, at) for x in qx) and not relu:
        return Quantised(g.op("Concat", *[x.integers for x in qx], axis=axis), at)
    y = g.op("Concat", *[x.numbers(g) for x in qx], axis=axis)
    return like(g, g.op("Relu", y) if relu else y, at, _integer(first))


@aten("quantized::cat_relu")
def cat_relu(g: Builder, qx: Sequence[Quantised], dim: int, scale: float | None, zero_point: int | None) -> Quantised:
    """quantized::cat_relu(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor. ONNX Concat, Relu."""
    return cat(g, qx, dim, scale, zero_point, relu=True)


def _integer(x: Quantised) -> DataType:
    assert x.integers.dtype is not None
    return x.integers.dtype


def _settings(x: Quantised, output_scale: float, output_zero_point: int) -> tuple[Any, ...]:
    return output_scale, output_zero_point, x.dtype


@aten("quantized::hardswish")
def hardswish(g: Builder, input: Quantised, output_scale: float, output_zero_point: int) -> Quantised:
    """quantized::hardswish(Tensor input, float output_scale, int output_zero_point) -> Tensor"""
    return on_grid(g, activation.hardswish(g, input.numbers(g)), *_settings(input, output_scale, output_zero_point))


@aten("quantized::sigmoid")
def sigmoid(g: Builder, qx: Quantised, output_scale: float, output_zero_point: int) -> Quantised:
    """quantized::sigmoid(Tensor qx, float output_scale, int output_zero_point) -> Tensor"""
    return on_grid(g, g.op("Sigmoid", qx.numbers(g)), *_settings(qx, output_scale, output_zero_point))


@aten("quantized::softmax")
def softmax(g: Builder, qx: Quantised, dim: int, output_scale: float, output_zero_point: int) -> Quantised:
    """quantized::softmax(Tensor qx, int dim, float output_scale, int output_zero_point) -> Tensor"""
    return on_grid(g, g.op("Softmax", qx.numbers(g), axis=dim), *_settings(qx, output_scale, output_zero_point))


@aten("quantized::leaky_relu", also=("inplace",))
def leaky_relu(g: Builder, qx: Quantised, negative_slope: float, output_scale: float, output_zero_point: int, **unused: object) -> Quantised:
    """quantized::leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, float output_scale, int output_zero_point) -> Tensor"""
    return on_grid(g, g.op("LeakyRelu", qx.numbers(g), alpha=float(negative_slope)), *_settings(qx, output_scale, output_zero_point))


@aten("quantized::elu")
def elu(g: Builder, self: Quantised, output_scale: float, output_zero_point: int, alpha: float = 1, scale: float = 1,
        input_scale: float = 1) -> Quantised:
    """quantized::elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)
    -> Tensor
    """
    y = activation.elu(g, self.numbers(g), alpha, scale, input_scale)
    return on_grid(g, y, *_settings(self, output_scale, output_zero_point))


@aten("quantized::celu")
def celu(g: Builder, self: Quantised, output_scale: float, output_zero_point: int, alpha: float = 1) -> Quantised:
    """quantized::celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> Tensor"""
    return on_grid(g, activation.celu(g, self.numbers(g), alpha), *_settings(self, output_scale, output_zero_point))


@aten("quantized::prelu")
def prelu(g: Builder, qx: Quantised, weight: Quantised, output_scale: float, output_zero_point: int) -> Quantised:
    """quantized::prelu(Tensor qx, Tensor weight, float output_scale, int output_zero_point) -> Tensor"""
    y = activation.prelu(g, qx.numbers(g), weight.numbers(g))
    return on_grid(g, y, *_settings(qx, output_scale, output_zero_point))


@aten("quantized::dropout")
def dropout(g: Builder, self: Quantised, output_scale: float, output_zero_point: int, p: float = 0.5, training: bool = False) -> Quantised:
    """quantized::dropout(Tensor self, float output_scale, int output_zero_point, Scalar p=0.5, bool training=False) -> Tensor"""
    if training:
        raise errors.UnsupportedError("dropout of a quantised tensor in training")
    return self


@aten("quantized::layer_norm")
def layer_norm(g: Builder, input: Quantised, normalized_shape: Sequence[int], weight: Value | None, bias: Value | None, eps: float,
               output_scale: float, output_zero_point: int) -> Quantised:
    """quantized::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, float output_scale,
    int output_zero_point) -> Tensor
    """
    y = normalization.layer_norm(g, input.numbers(g), list(normalized_shape), weight, bias, eps)
    return on_grid(g, y, *_settings(input, output_scale, output_zero_point))


@aten("quantized::group_norm")
def group_norm(g: Builder, input: Quantised, num_groups: int, weight: Value | None, bias: Value | None, eps: float, output_scale: float,
               output_zero_point: int) -> Quantised:
    """quantized::group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps, float output_scale,
    int output_zero_point) -> Tensor
    """
    y = normalization.group_norm(g, input.numbers(g), num_groups, weight, bias, eps)
    return on_grid(g, y, *_settings(input, output_scale, output_zero_point))


@aten("quantized::instance_norm")
def instance_norm(g: Builder, input: Quantised, weight: Value | None, bias: Value | None, eps: float, output_scale: float,
                  output_zero_point: int) -> Quantised:
    """quantized::instance_norm(Tensor input, Tensor? weight, Tensor? bias, float eps, float output_scale, int output_zero_point)
    -> Tensor
    """
    y = normalization.instance_norm(g, input.numbers(g), weight, bias, None, None, True, 0.0, eps)
    return on_grid(g, y, *_settings(input, output_scale, output_zero_point))


def _batch_norm(name: str, relu: bool) -> None:
    @aten(f"quantized::{name}")
    def batch_norm(g: Builder, qx: Quantised, weight: Value | None, bias: Value | None, mean: Value, var: Value, eps: float,
                   output_scale: float, output_zero_point: int) -> Quantised:
        """quantized::batch_norm2d(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float output_scale,
        int output_zero_point) -> Tensor; of any number of dims, and with _relu behind
        """
        y = normalization.batch_norm(g, qx.numbers(g), weight, bias, mean, var, False, 0.0, eps)
        return on_grid(g, g.op("Relu", y) if relu else y, *_settings(qx, output_scale, output_zero_point))


for _suffix in ("", "1d", "2d", "3d"):
    _batch_norm(f"batch_norm{_suffix}", False)
    _batch_norm(f"batch_norm{_suffix}_relu", True)


# ---------------------------------------------------------------------- operators that only bound the integers, or move the grid


def nearest(x: Quantised, number: float) -> int:
    """The integer that stands for the number nearest to this one."""
    scale, zero = number_of(x.grid)
    return min(max(round(number / scale) + zero, x.grid.low), x.grid.high)


def bounded(g: Builder, x: Quantised, low: float | None, high: float | None) -> Quantised:
    """`x` within bounds, which are rounded to its grid. ONNX Clip."""
    ends = [None if end is None or math.isinf(end) else g.const(nearest(x, end), x.integers.dtype) for end in (low, high)]
    return x if ends == [None, None] else x.with_integers(g.op("Clip", x.integers, *ends))


@aten("quantized::clamp")
def clamp(g: Builder, qx: Quantised, min: float | None = None, max: float | None = None) -> Quantised:
    """quantized::clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor. ONNX Clip of the integers."""
    return bounded(g, qx, min, max)


@aten("quantized::relu6", also=("inplace",))
def relu6(g: Builder, qx: Quantised, **unused: object) -> Quantised:
    """quantized::relu6(Tensor qx, bool inplace=False) -> Tensor. ONNX Clip of the integers."""
    return bounded(g, qx, 0.0, 6.0)


@aten("quantized::threshold")
def threshold(g: Builder, qx: Quantised, threshold: float, value: float) -> Quantised:
    """quantized::threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor"""
    above = g.op("Greater", qx.numbers(g), g.const(float(threshold)))
    return qx.with_integers(g.op("Where", above, qx.integers, g.const(nearest(qx, value), qx.integers.dtype)))


@aten("quantized::add_scalar", "quantized::add.Scalar")
def add_scalar(g: Builder, qa: Quantised, b: float) -> Quantised:
    """quantized::add_scalar(Tensor qa, Scalar b) -> Tensor

    The zero point moves, and the scale too where the zero point would leave the range.
    """
    scale, zero = number_of(qa.grid)
    low, high, shifted = qa.grid.low, qa.grid.high, zero - round(b / scale)
    moved = Grid(g.const(scale, FLOAT), g.const(shifted), low, high)
    if low <= shifted <= high:
        return Quantised(qa.integers, moved)
    reach = high - shifted if shifted < low else shifted - low
    at = Grid(g.const(reach / (high - low) * scale, FLOAT), g.const(low if shifted < low else high), low, high)
    number = g.op("Sub", g.op("Cast", qa.integers, to=FLOAT), g.const(float(shifted)))
    return like(g, g.op("Mul", number, moved.scale), at, _integer(qa))


@aten("quantized::add_scalar_relu", "quantized::add_relu.Scalar")
def add_scalar_relu(g: Builder, qa: Quantised, b: float) -> Quantised:
    """quantized::add_scalar_relu(Tensor qa, Scalar b) -> Tensor"""
    return bounded(g, add_scalar(g, qa, b), 0.0, None)


@aten("quantized::mul_scalar", "quantized::mul.Scalar")
def mul_scalar(g: Builder, qa: Quantised, b: float) -> Quantised:
    """quantized::mul_scalar(Tensor qa, Scalar b) -> Tensor

    The scale is multiplied; by a negative number the integers are mirrored.
    """
    scale, zero = number_of(qa.grid)
    low, high = qa.grid.low, qa.grid.high
    if b > 0:
        return Quantised(qa.integers, Grid(g.const(scale * b, FLOAT), qa.grid.zero, low, high))
    mirrored = g.op("Sub", g.const(low + high, DataType.INT32), g.op("Cast", qa.integers, to=DataType.INT32))
    if b == 0:
        mirrored = g.op("Mul", mirrored, g.const(0, DataType.INT32))
    at = Grid(g.const(-b * scale, FLOAT), g.const(low + high - zero), low, high) if b else Grid(g.const(1.0), g.const(0), low, high)
    return Quantised(g.op("Cast", mirrored, to=qa.integers.dtype), at)


@aten("quantized::mul_scalar_relu", "quantized::mul_relu.Scalar")
def mul_scalar_relu(g: Builder, qa: Quantised, b: float) -> Quantised:
    """quantized::mul_scalar_relu(Tensor qa, Scalar b) -> Tensor"""
    return bounded(g, mul_scalar(g, qa, b), 0.0, None)

