"""The operators of PT2E: quantised values as plain integers, with scale and zero point as arguments of each operator."""

from __future__ import annotations

import torch

from onnxport.ops.quantization import FLOAT, LIMITS, Grid, Number, dequantize, grid, has_node, quantize
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, promoted, shape_of, static_int, tensor
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.dtypes import from_torch
from onnxport.target.value import DataType, Value

_SINCE_BLOCKS = 21  # the opset from which on a scale serves a block of elements


def _bound(bound: int | Value) -> int:
    """An end of the range, which PT2E also gives as a tensor."""
    return int(bound.const.tensor.item()) if isinstance(bound, Value) and bound.const is not None else static_int(bound, "quant_min")  # type: ignore[arg-type]


@aten("quantized_decomposed::quantize_per_tensor")
def quantize_per_tensor(g: Builder, input: Value, scale: Number, zero_point: Number, quant_min: int | Value, quant_max: int | Value,
                        dtype: torch.dtype) -> Value:
    """quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor;
    .tensor has tensors for scale and zero point, .tensor2 for the range too

    ONNX QuantizeLinear.
    """
    return quantize(g, input, grid(g, input, scale, zero_point, _bound(quant_min), _bound(quant_max)), from_torch(dtype))


@aten("quantized_decomposed::dequantize_per_tensor", also=("quant_min", "quant_max", "dtype"))
def dequantize_per_tensor(g: Builder, input: Value, scale: Number, zero_point: Number, out_dtype: torch.dtype | None = None,
                          **unused: object) -> Value:
    """dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *,
    ScalarType? out_dtype=None) -> Tensor; .tensor, .tensor2 as above

    ONNX DequantizeLinear.
    """
    return cast(g, dequantize(g, input, grid(g, input, scale, zero_point, 0, 0)), from_torch(out_dtype or torch.float32))


@aten("quantized_decomposed::quantize_per_channel")
def quantize_per_channel(g: Builder, input: Value, scales: Value, zero_points: Value, axis: int, quant_min: int, quant_max: int,
                         dtype: torch.dtype) -> Value:
    """quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype)
    -> Tensor

    ONNX QuantizeLinear along an axis.
    """
    return quantize(g, input, grid(g, input, scales, zero_points, quant_min, quant_max, axis), from_torch(dtype))


@aten("quantized_decomposed::dequantize_per_channel", also=("quant_min", "quant_max", "dtype"))
def dequantize_per_channel(g: Builder, input: Value, scales: Value, zero_points: Value | None, axis: int,
                           out_dtype: torch.dtype | None = None, **unused: object) -> Value:
    """dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype,
    *, ScalarType? out_dtype=None) -> Tensor

    ONNX DequantizeLinear along an axis.
    """
    return cast(g, dequantize(g, input, grid(g, input, scales, _zeros(g, scales, zero_points), 0, 0, axis)), from_torch(out_dtype or torch.float32))


def _zeros(g: Builder, scales: Value, zero_points: Value | None) -> Value:
    return g.op("Expand", g.const(0), g.shape(scales)) if zero_points is None else zero_points


@aten("quantized_decomposed::quantize_per_token")
def quantize_per_token(g: Builder, input: Value, scales: Value, zero_points: Value, quant_min: int, quant_max: int,
                       dtype: torch.dtype) -> Value:
    """quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor

    input (*, n), scales and zero points (*, 1). ONNX Mul, Add, Round, Clip.
    """
    number = g.op("Mul", *promoted(g, input, g.op("Reciprocal", scales)))
    number = g.op("Round", g.op("Add", *promoted(g, number, zero_points)))
    low, high = (g.const(float(bound), number.dtype) for bound in (quant_min, quant_max))
    return g.op("Cast", g.op("Clip", number, low, high), to=from_torch(dtype))


@aten("quantized_decomposed::dequantize_per_token", also=("quant_min", "quant_max", "dtype"))
def dequantize_per_token(g: Builder, input: Value, scales: Value, zero_points: Value, output_dtype: torch.dtype = torch.float32,
                         **unused: object) -> Value:
    """dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype,
    ScalarType output_dtype) -> Tensor

    ONNX Sub, Mul.
    """
    shifted = g.op("Sub", *promoted(g, input, zero_points))
    return cast(g, g.op("Mul", *promoted(g, shifted, scales)), from_torch(output_dtype))


@aten("quantized_decomposed::quantize_per_channel_group")
def quantize_per_channel_group(g: Builder, input: Value, scales: Value, zero_points: Value, quant_min: int, quant_max: int,
                               dtype: torch.dtype, group_size: int) -> Value:
    """quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype,
    int group_size) -> Tensor

    input (m, n), scales and zero points (m, n / group_size). The zero point is added before the sum is rounded, as to a float one.
    """
    rows = sizes.reshape(g, input, [-1, _group(input, scales, group_size)])
    at = grid(g, rows, sizes.reshape(g, scales, [-1]), cast(g, sizes.reshape(g, zero_points, [-1]), FLOAT), quant_min, quant_max, 0)
    return sizes.reshape(g, quantize(g, rows, at, from_torch(dtype)), shape_of(input))


@aten("quantized_decomposed::dequantize_per_channel_group", also=("quant_min", "quant_max", "dtype"))
def dequantize_per_channel_group(g: Builder, input: Value, scales: Value, zero_points: Value | None, group_size: int = 128,
                                 output_dtype: torch.dtype = torch.float32, **unused: object) -> Value:
    """dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType dtype,
    int group_size, ScalarType output_dtype) -> Tensor

    input (m, n), scales and zero points (m, n / group_size). ONNX DequantizeLinear of blocks (from opset 21 on), else of rows.
    """
    assert input.dtype is not None
    size, zeros = _group(input, scales, group_size), _zeros(g, scales, zero_points)
    flat = Grid(sizes.reshape(g, cast(g, scales, FLOAT), [-1]), sizes.reshape(g, zeros, [-1]), 0, 0, 0)
    if g.opset >= _SINCE_BLOCKS and has_node(g, flat, input.dtype, "DequantizeLinear"):
        made = g.op("DequantizeLinear", input, cast(g, scales, FLOAT), cast(g, zeros, input.dtype), axis=1, block_size=size)
    else:
        made = sizes.reshape(g, dequantize(g, sizes.reshape(g, input, [-1, size]), flat), shape_of(input))
    return cast(g, made, from_torch(output_dtype))


def _group(x: Value, scales: Value, group_size: int) -> int:
    """The elements that share a scale; all of a row where it has one scale only."""
    columns = static_int(shape_of(x)[1], "the row of a matrix that is quantised in groups")
    return columns if group_size > columns and shape_of(scales)[-1] == 1 else group_size


# ---------------------------------------------------------------------- scales that the data decides


@aten("quantized_decomposed::choose_qparams.tensor", also=("dtype",))
def choose_qparams(g: Builder, input: Value, quant_min: int, quant_max: int, eps: float, **unused: object) -> list[Value]:
    """choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)

    Scale (1,) float64 and zero point (1,) int64, so that least and greatest element are integers of the range. ONNX ReduceMin, ReduceMax.
    """
    x, nothing = cast(g, input, FLOAT), g.const(0.0)
    least = g.op("Min", g.op("ReduceMin", x, keepdims=0), nothing)
    most = g.op("Max", g.op("ReduceMax", x, keepdims=0), nothing)
    scale = g.op("Div", g.op("Sub", most, least), g.const(float(quant_max - quant_min)))
    scale = g.op("Max", scale, g.const(eps, FLOAT))
    zero = g.op("Sub", g.const(float(quant_min)), g.op("Round", g.op("Div", least, scale)))
    zero = g.op("Clip", zero, g.const(float(quant_min)), g.const(float(quant_max)))
    return [sizes.reshape(g, g.op("Cast", v, to=to), [1]) for v, to in ((scale, DataType.DOUBLE), (zero, DataType.INT64))]


@aten("quantized_decomposed::choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(g: Builder, input: Value, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype) -> list[Value]:
    """choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)

    Scale (1,) float64 by the greatest magnitude; zero point 0, of uint8 128. ONNX Abs, ReduceMax.
    """
    most = g.op("ReduceMax", g.op("Abs", cast(g, input, FLOAT)), keepdims=0)
    scale = g.op("Max", g.op("Div", most, g.const((quant_max - quant_min) / 2)), g.const(eps, FLOAT))
    return [sizes.reshape(g, g.op("Cast", scale, to=DataType.DOUBLE), [1]), g.const([128 if dtype == torch.uint8 else 0])]


@aten("quantized_decomposed::choose_qparams_per_token")
def choose_qparams_per_token(g: Builder, input: Value, dtype: torch.dtype) -> list[Value]:
    """choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)

    input (*, n) -> scales (*, 1), zero points (*, 1), zeros of the dtype of the scales. ONNX Abs, ReduceMax.
    """
    most = g.op("ReduceMax", g.op("Abs", input), g.const([-1]))
    most = cast(g, most, FLOAT) if most.dtype == DataType.FLOAT16 else most
    scales = g.op("Div", g.op("Max", most, g.const(1e-5, most.dtype)), g.const(float(LIMITS[from_torch(dtype)][1]), most.dtype))
    return [scales, g.op("Expand", g.const(0.0, scales.dtype), g.shape(scales))]


@aten("quantized_decomposed::choose_qparams_per_token_asymmetric", "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl",
      also=("dtype",))
def choose_qparams_per_token_asymmetric(g: Builder, input: Value, **unused: object) -> list[Value]:
    """choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)

    input (*, n) -> scales (*, 1) float64, zero points (*, 1) int64 for the integers from -128 to 127. ONNX ReduceMin, ReduceMax.
    """
    def number(value: float) -> Value:
        return g.const(value, input.dtype)

    least = g.op("Min", g.op("ReduceMin", input, g.const([-1])), number(0.0))
    most = g.op("Max", g.op("ReduceMax", input, g.const([-1])), number(0.0))
    scale = g.op("Max", g.op("Div", g.op("Sub", most, least), number(255.0)), number(torch.finfo(torch.float32).eps))
    low, high = g.op("Div", least, scale), g.op("Div", most, scale)
    from_low, from_high = g.op("Sub", number(-128.0), low), g.op("Sub", number(127.0), high)
    error = g.op("Add", g.op("Add", number(-128.0), low), g.op("Add", number(127.0), high))
    zero = g.op("Where", g.op("Greater", error, number(0.0)), from_low, from_high)
    zero = g.op("Round", g.op("Clip", zero, number(-128.0), number(127.0)))
    return [g.op("Cast", scale, to=DataType.DOUBLE), g.op("Cast", zero, to=DataType.INT64)]


@aten("quantized_decomposed::convert_element_type")
def convert_element_type(g: Builder, input: Value, dtype: torch.dtype) -> Value:
    """convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor. ONNX Cast."""
    return tensor(g, input, from_torch(dtype))
