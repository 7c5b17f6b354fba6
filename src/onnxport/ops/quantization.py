"""Quantising: floats as integers with a scale and a zero point, and back; fake quantisation does both at once.

The natural form is a pair of QuantizeLinear and DequantizeLinear, which runtimes fuse with the operator between two pairs. It divides
by the scale where PyTorch multiplies by its reciprocal: of a million values one or two, which lie on the border between two integers,
fall on the other side. Where no such node can say it, or ONNX Runtime has none, it is written in numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, rank_of, shape_of, static_int, tensor
from onnxport.target import folding, kernels, sizes
from onnxport.target.builder import Builder
from onnxport.target.dtypes import to_torch
from onnxport.target.value import DataType, Value

Number = float | Value
FLOAT = DataType.FLOAT
LIMITS: dict[DataType, tuple[int, int]] = {
    DataType.UINT8: (0, 255), DataType.INT8: (-128, 127), DataType.UINT16: (0, 65535), DataType.INT16: (-32768, 32767),
    DataType.INT32: (-2**31, 2**31 - 1),
}
_SHORT = frozenset({DataType.UINT16, DataType.INT16})
_SINCE_SHORT = 21  # the opset from which on nodes quantise to 16 bits
_SINCE_AXIS, _SINCE = 13, 10
_SINCE_FAKE = 11  # ONNX Runtime quantises the bias behind such nodes by Round, which opset 10 does not have


@dataclass(frozen=True)
class Grid:
    """The numbers that integers stand for: (integer - zero) * scale.

    scale: float32, zero: of any integer dtype (or float32, where PyTorch allows it), both of rank 0 or with one entry for each index
    of `axis`.   low, high: the integers that are used.
    """

    scale: Value
    zero: Value
    low: int
    high: int
    axis: int | None = None

    def spread(self, g: Builder, value: Value, rank: int) -> Value:
        """The scale or the zero point, shaped to meet tensors of this rank."""
        if self.axis is None or value.rank == 0:
            return value
        return sizes.reshape(g, value, [-1, *[1] * (rank - 1 - self.axis)])


def grid(g: Builder, x: Value, scale: Number, zero: Number, low: int, high: int, axis: int | None = None) -> Grid:
    """The grid for `x`; without an axis scale and zero point are one number each, as a number or a tensor of one element."""
    at = None if axis is None else axis_of(x, axis)
    numbers = [tensor(g, scale, FLOAT), zero if isinstance(zero, Value) else g.const(zero)]
    if at is None:
        numbers = [v if v.rank == 0 else sizes.reshape(g, v, []) for v in numbers]
    return Grid(numbers[0], numbers[1], low, high, at)


def stored(low: int, high: int) -> DataType:
    """The smallest integer dtype that holds the range, unsigned where it can be."""
    return next(dtype for dtype, (least, most) in LIMITS.items() if least <= low and high <= most)


def has_node(g: Builder, at: Grid, dtype: DataType, op_type: str = "QuantizeLinear") -> bool:
    """Whether one node of ONNX Runtime says it at the wanted opset."""
    since = _SINCE_SHORT if dtype in _SHORT else _SINCE if at.axis is None else _SINCE_AXIS
    exact = at.zero.dtype != FLOAT and dtype in LIMITS and (dtype != DataType.INT32 or op_type == "DequantizeLinear")
    return exact and g.opset >= since and kernels.runs(op_type, g.opset, FLOAT if op_type == "QuantizeLinear" else dtype)


def quantize(g: Builder, x: Value, at: Grid, dtype: DataType) -> Value:
    """`x` as integers of `dtype`."""
    x = cast(g, x, FLOAT)
    known = [v.const for v in (x, at.scale, at.zero) if v.const is not None]
    if len(known) == 3 and not folding.kept(g, known):
        made = folding.lazily(g, lambda: _integers(x, at, to_torch(dtype)), to_torch(dtype), _static(x), known)
        assert made.const is not None
        made.const.name = known[0].name  # it is that weight still
        return made
    if not has_node(g, at, dtype):
        return g.op("Cast", _in_numbers(g, x, at), to=dtype)
    return g.op("QuantizeLinear", _bounded(g, x, at, dtype), at.scale, cast(g, at.zero, dtype), axis=at.axis)


def _static(x: Value) -> tuple[int, ...]:
    """The sizes of a constant."""
    return tuple([static_int(size, "a size of a constant") for size in shape_of(x)])


def _integers(x: Value, at: Grid, dtype: torch.dtype) -> torch.Tensor:
    """A weight as integers, in PyTorch's own steps."""
    assert x.const is not None and at.scale.const is not None and at.zero.const is not None
    number = x.const.tensor.detach().to(torch.float32)
    sizes = [1] * number.dim() if at.axis is None else [-1 if i == at.axis else 1 for i in range(number.dim())]
    inverse, zero = at.scale.const.tensor.reciprocal().reshape(sizes), at.zero.const.tensor.reshape(sizes)
    number = number * inverse
    number = (number + zero).round() if zero.is_floating_point() else number.round() + zero
    return number.clamp(at.low, at.high).to(dtype)


def dequantize(g: Builder, q: Value, at: Grid) -> Value:
    """What integers stand for, in float32."""
    assert q.dtype is not None
    if has_node(g, at, q.dtype, "DequantizeLinear"):
        zero = None if q.dtype == DataType.INT32 and is_zero(at.zero) else cast(g, at.zero, q.dtype)
        return g.op("DequantizeLinear", q, at.scale, zero, axis=at.axis)
    return in_numbers(g, q, at)


def in_numbers(g: Builder, q: Value, at: Grid) -> Value:
    """What integers stand for, without a node that says so. A weight stays as small as it is: that it is cast is left to the file."""
    return _back(g, cast(g, q, FLOAT) if q.const is None else g.node("Cast", q, to=FLOAT), at)


def fake(g: Builder, x: Value, at: Grid) -> Value:
    """Quantised and back: the nearest number of the grid, in the dtype of `x`."""
    assert x.dtype is not None
    dtype, number = stored(at.low, at.high), cast(g, x, FLOAT)
    if has_node(g, at, dtype) and x.dtype != DataType.DOUBLE and g.opset >= _SINCE_FAKE:
        made = dequantize(g, quantize(g, number, at, dtype), at)
    else:
        made = _back(g, _in_numbers(g, x if x.dtype == DataType.DOUBLE else number, at), at)
    return cast(g, made, x.dtype)


def is_zero(x: Value) -> bool:
    """Whether a zero point is known to be 0."""
    return x.const is not None and not x.const.is_lazy and not bool(x.const.tensor.any())


def _bounded(g: Builder, x: Value, at: Grid, dtype: DataType) -> Value:
    """`x` within the range, where that is narrower than what the dtype clips to by itself."""
    shift = cast(g, at.zero, FLOAT)
    low, high = (None if bound == natural else g.op("Mul", g.op("Sub", g.const(float(bound)), shift), at.scale)
                 for bound, natural in zip((at.low, at.high), LIMITS[dtype], strict=True))
    if at.axis is None:
        return x if low is high is None else g.op("Clip", x, low, high)
    x = x if low is None else g.op("Max", x, at.spread(g, low, rank_of(x)))
    return x if high is None else g.op("Min", x, at.spread(g, high, rank_of(x)))


def _in_numbers(g: Builder, x: Value, at: Grid) -> Value:
    """The integers, as floats of the dtype of `x`."""
    assert x.dtype is not None
    return g.op("Clip", _unbounded(g, x, at), g.const(float(at.low), x.dtype), g.const(float(at.high), x.dtype))


def _unbounded(g: Builder, x: Value, at: Grid) -> Value:
    """The integers before they are clipped. PyTorch shifts by a float zero point before it rounds, by an integer after it."""
    assert x.dtype is not None
    inverse, zero = (cast(g, at.spread(g, v, rank_of(x)), x.dtype) for v in (g.op("Reciprocal", at.scale), at.zero))
    number = g.op("Mul", x, inverse)
    return g.op("Round", g.op("Add", number, zero)) if at.zero.dtype == FLOAT else g.op("Add", g.op("Round", number), zero)


def _back(g: Builder, number: Value, at: Grid) -> Value:
    """What integers, given as floats, stand for."""
    assert number.dtype is not None
    scale, zero = (cast(g, at.spread(g, v, rank_of(number)), number.dtype) for v in (at.scale, at.zero))
    return g.op("Mul", g.op("Sub", number, zero), scale)


# ---------------------------------------------------------------------- fake quantisation


@aten("fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor(g: Builder, self: Value, scale: Number, zero_point: Number, quant_min: int, quant_max: int) -> Value:
    """fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor
    and .tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor

    ONNX QuantizeLinear, DequantizeLinear.
    """
    return fake(g, self, grid(g, self, scale, zero_point, quant_min, quant_max))


@aten("fake_quantize_per_channel_affine", "quantized_decomposed::fake_quant_per_channel")
def fake_quantize_per_channel(g: Builder, self: Value | None = None, scale: Value | None = None, zero_point: Value | None = None,
                              axis: int = 0, quant_min: int = 0, quant_max: int = 0, input: Value | None = None,
                              scales: Value | None = None, zero_points: Value | None = None) -> Value:
    """fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor
    quantized_decomposed::fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max)
    -> Tensor

    ONNX QuantizeLinear, DequantizeLinear along an axis (from opset 13 on).
    """
    x, steps, shift = (a if a is not None else b for a, b in ((self, input), (scale, scales), (zero_point, zero_points)))
    assert x is not None and steps is not None and shift is not None
    return fake(g, x, grid(g, x, steps, shift, quant_min, quant_max, axis))


@aten("_fake_quantize_learnable_per_tensor_affine", also=("grad_factor",))
def fake_quantize_learnable(g: Builder, self: Value, scale: Value, zero_point: Value, quant_min: int, quant_max: int,
                            **unused: object) -> Value:
    """_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max,
    float grad_factor=1.) -> Tensor

    The zero point is a float that becomes an integer of the range. ONNX QuantizeLinear, DequantizeLinear.
    """
    return fake(g, self, grid(g, self, scale, _nearest(g, zero_point, quant_min, quant_max), quant_min, quant_max))


@aten("_fake_quantize_learnable_per_channel_affine", also=("grad_factor",))
def fake_quantize_learnable_channels(g: Builder, self: Value, scale: Value, zero_point: Value, axis: int, quant_min: int, quant_max: int,
                                     **unused: object) -> Value:
    """_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max,
    float grad_factor=1.) -> Tensor

    As _fake_quantize_learnable_per_tensor_affine.
    """
    return fake(g, self, grid(g, self, scale, _nearest(g, zero_point, quant_min, quant_max), quant_min, quant_max, axis))


def _nearest(g: Builder, zero: Value, low: int, high: int) -> Value:
    """A learnt zero point as an integer."""
    return g.op("Cast", g.op("Clip", g.op("Round", cast(g, zero, FLOAT)), g.const(float(low)), g.const(float(high))), to=DataType.INT32)


@aten
def fake_quantize_per_tensor_affine_cachemask(g: Builder, self: Value, scale: float, zero_point: int, quant_min: int,
                                              quant_max: int) -> list[Value]:
    """fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max)
    -> (Tensor output, Tensor mask)

    mask: where nothing was clipped.
    """
    at = grid(g, self, scale, zero_point, quant_min, quant_max)
    return [fake(g, self, at), _kept(g, self, at)]


@aten
def fake_quantize_per_channel_affine_cachemask(g: Builder, self: Value, scale: Value, zero_point: Value, axis: int, quant_min: int,
                                               quant_max: int) -> list[Value]:
    """fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max)
    -> (Tensor output, Tensor mask)
    """
    at = grid(g, self, scale, zero_point, quant_min, quant_max, axis)
    return [fake(g, self, at), _kept(g, self, at)]


@aten
def _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(g: Builder, self: Value, scale: Value, zero_point: Value,
                                                              fake_quant_enabled: Value, quant_min: int, quant_max: int) -> list[Value]:
    """_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled,
    int quant_min, int quant_max) -> (Tensor output, Tensor mask)
    """
    at = grid(g, self, scale, zero_point, quant_min, quant_max)
    on = g.op("Cast", sizes.reshape(g, fake_quant_enabled, []), to=DataType.BOOL)
    return [where(g, on, fake(g, self, at), self), g.op("Or", g.op("Not", on), _kept(g, self, at))]


def where(g: Builder, on: Value, then: Value, otherwise: Value) -> Value:
    """One of two tensors; only that where a switch is known."""
    if on.const is None or on.const.is_lazy:
        return g.op("Where", on, then, otherwise)
    return then if bool(on.const.tensor) else otherwise


def _kept(g: Builder, x: Value, at: Grid) -> Value:
    """Where nothing was clipped."""
    assert x.dtype is not None
    number = _unbounded(g, x, at)
    return g.op("And", g.op("GreaterOrEqual", number, g.const(float(at.low), x.dtype)), g.op("LessOrEqual", number, g.const(float(at.high), x.dtype)))


@aten("_fused_moving_avg_obs_fq_helper_functional", fold=False)
def fused_observer(g: Builder, self: Value, observer_on: Value, fake_quant_on: Value, running_min: Value, running_max: Value, scale: Value,
                   zero_point: Value, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int,
                   per_row_fake_quant: bool = False, symmetric_quant: bool = False) -> list[Value]:
    """_fused_moving_avg_obs_fq_helper_functional(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor running_min,
    Tensor running_max, Tensor scale, Tensor zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis,
    bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor mask, Tensor running_min_out,
    Tensor running_max_out, Tensor scale_out, Tensor zero_point_out)

    Fake quantisation with the scales that the observer has found. ONNX QuantizeLinear, DequantizeLinear.
    """
    if _switch(observer_on, "observer"):
        raise errors.UnsupportedError("the observer of a fake quantisation is on, so that every run changes its scales; "
                                      "model.apply(torch.ao.quantization.disable_observer) leaves them as they are")
    at = grid(g, self, scale, zero_point, quant_min, quant_max, ch_axis if per_row_fake_quant else None)
    made = [fake(g, self, at), _kept(g, self, at)] if _switch(fake_quant_on, "fake quantisation") else [self, _all(g, self)]
    return [*made, running_min, running_max, scale, zero_point]


def _switch(on: Value, what: str) -> bool:
    """Whether a switch that the model keeps is on."""
    if on.const is None:
        raise errors.UnsupportedError(f"whether the {what} is on is known only when the model runs")
    return bool(on.const.tensor.any())


def _all(g: Builder, x: Value) -> Value:
    return g.op("Expand", g.const(True), g.shape(x))
