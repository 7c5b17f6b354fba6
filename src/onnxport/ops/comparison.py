"""Comparisons, logic and bits."""

from __future__ import annotations

import math
from typing import Any

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, promoted, rank_of, tensor
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim
from onnxport.target.dtypes import is_float
from onnxport.target.sizes import expand, reshape, unsqueeze
from onnxport.target.value import DataType, Value

Operand = Value | Dim | Number
BOOL = DataType.BOOL


# ---------------------------------------------------------------------- comparisons


@aten
def eq(g: Builder, self: Operand, other: Operand) -> Value:
    """eq(Tensor self, Tensor other) -> Tensor. ONNX Equal."""
    return g.op("Equal", *promoted(g, self, other))


@aten("ne", "not_equal")
def ne(g: Builder, self: Operand, other: Operand) -> Value:
    """ne(Tensor self, Tensor other) -> Tensor. ONNX Equal, Not; of bools Xor."""
    a, b = promoted(g, self, other)
    return g.op("Xor", a, b) if a.dtype == BOOL else g.op("Not", g.op("Equal", a, b))


@aten("lt", "less")
def lt(g: Builder, self: Operand, other: Operand) -> Value:
    """lt(Tensor self, Tensor other) -> Tensor. ONNX Less."""
    return g.op("Less", *_ordered(g, self, other))


@aten("gt", "greater")
def gt(g: Builder, self: Operand, other: Operand) -> Value:
    """gt(Tensor self, Tensor other) -> Tensor. ONNX Greater."""
    return g.op("Greater", *_ordered(g, self, other))


@aten("le", "less_equal")
def le(g: Builder, self: Operand, other: Operand) -> Value:
    """le(Tensor self, Tensor other) -> Tensor. ONNX LessOrEqual."""
    return g.op("LessOrEqual", *_ordered(g, self, other))


@aten("ge", "greater_equal")
def ge(g: Builder, self: Operand, other: Operand) -> Value:
    """ge(Tensor self, Tensor other) -> Tensor. ONNX GreaterOrEqual."""
    return g.op("GreaterOrEqual", *_ordered(g, self, other))


def _ordered(g: Builder, a: Operand, b: Operand) -> list[Value]:
    """Operands of one dtype that has an order in ONNX: bools do not."""
    values = promoted(g, a, b)
    return [cast(g, v, DataType.INT32) for v in values] if values[0].dtype == BOOL else values


@aten
def isclose(g: Builder, self: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Value:
    """isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor

    Equal, or finite and no further apart than atol + rtol * |other|. ONNX Sub, Abs, LessOrEqual, ...
    """
    a, b = promoted(g, self, other)
    close = g.op("Equal", a, b)
    if a.dtype == BOOL:
        return close
    wide = a.dtype if is_float(a.dtype) else DataType.DOUBLE
    gap, size = (tensor(g, g.op("Abs", v), wide) for v in (g.op("Sub", a, b), b))
    if is_float(a.dtype) and equal_nan:
        close = g.op("Or", close, g.op("And", g.op("IsNaN", a), g.op("IsNaN", b)))
    allowed = g.op("Add", g.op("Mul", size, tensor(g, rtol, wide)), tensor(g, atol, wide))
    near = g.op("LessOrEqual", gap, allowed)
    if is_float(a.dtype):
        near = g.op("And", near, g.op("Less", gap, tensor(g, math.inf, wide)))
    return g.op("Or", close, near)


# ---------------------------------------------------------------------- what numbers are


@aten
def isnan(g: Builder, self: Value) -> Value:
    """isnan(Tensor self) -> Tensor. ONNX IsNaN."""
    return g.op("IsNaN", self) if is_float(self.dtype) else _everywhere(g, self, False)


@aten
def isinf(g: Builder, self: Value) -> Value:
    """isinf(Tensor self) -> Tensor. ONNX IsInf."""
    return g.op("IsInf", self) if is_float(self.dtype) else _everywhere(g, self, False)


@aten
def isposinf(g: Builder, self: Value) -> Value:
    """isposinf(Tensor self) -> Tensor. ONNX Equal."""
    return g.op("Equal", self, tensor(g, math.inf, self.dtype)) if is_float(self.dtype) else _everywhere(g, self, False)


@aten
def isneginf(g: Builder, self: Value) -> Value:
    """isneginf(Tensor self) -> Tensor. ONNX Equal."""
    return g.op("Equal", self, tensor(g, -math.inf, self.dtype)) if is_float(self.dtype) else _everywhere(g, self, False)


@aten
def isfinite(g: Builder, self: Value) -> Value:
    """isfinite(Tensor self) -> Tensor. ONNX Abs, Less: what is not a number is less than nothing."""
    if not is_float(self.dtype):
        return _everywhere(g, self, True)
    return g.op("Less", g.op("Abs", self), tensor(g, math.inf, self.dtype))


@aten
def isreal(g: Builder, self: Value) -> Value:
    """isreal(Tensor self) -> Tensor; everywhere, without complex numbers."""
    return _everywhere(g, self, True)


def _everywhere(g: Builder, x: Value, answer: bool) -> Value:
    """One answer for each element of `x`."""
    assert x.shape is not None
    return expand(g, tensor(g, answer, BOOL), x.shape)


@aten
def equal(g: Builder, self: Value, other: Value) -> Value:
    """equal(Tensor self, Tensor other) -> bool; whether all elements are. ONNX Equal, ReduceMin."""
    if rank_of(self) != rank_of(other) or any(dims.compare("!=", a, b) for a, b in zip(self.shape or (), other.shape or (), strict=True)):
        return tensor(g, False, BOOL)
    same = g.op("Cast", eq(g, self, other), to=DataType.INT32)
    return g.op("Cast", g.op("ReduceMin", same, keepdims=0), to=BOOL)


# ---------------------------------------------------------------------- logic


@aten
def logical_not(g: Builder, self: Value) -> Value:
    """logical_not(Tensor self) -> Tensor. ONNX Not."""
    return g.op("Not", cast(g, self, BOOL))


@aten
def logical_and(g: Builder, self: Value, other: Value) -> Value:
    """logical_and(Tensor self, Tensor other) -> Tensor. ONNX And."""
    return g.op("And", tensor(g, self, BOOL), tensor(g, other, BOOL))


@aten
def logical_or(g: Builder, self: Value, other: Value) -> Value:
    """logical_or(Tensor self, Tensor other) -> Tensor. ONNX Or."""
    return g.op("Or", tensor(g, self, BOOL), tensor(g, other, BOOL))


@aten
def logical_xor(g: Builder, self: Value, other: Value) -> Value:
    """logical_xor(Tensor self, Tensor other) -> Tensor. ONNX Xor."""
    return g.op("Xor", tensor(g, self, BOOL), tensor(g, other, BOOL))


# ---------------------------------------------------------------------- bits


@aten
def bitwise_not(g: Builder, self: Value) -> Value:
    """bitwise_not(Tensor self) -> Tensor. ONNX BitwiseNot; of bools Not."""
    return g.op("Not" if self.dtype == BOOL else "BitwiseNot", self)


@aten("bitwise_and", "__and__", "__iand__")
def bitwise_and(g: Builder, self: Operand, other: Operand) -> Value:
    """bitwise_and(Tensor self, Tensor other) -> Tensor. ONNX BitwiseAnd; of bools And; the lowest bits are Mod at any opset."""
    a, b = promoted(g, self, other)
    if a.dtype != BOOL and isinstance(other, int) and other > 0 and other & (other + 1) == 0 and other.bit_length() < 31:
        return g.op("Mod", a, tensor(g, other + 1, a.dtype)) if _fits(other + 1, a.dtype) else _bits(g, "And", a, b)
    return _bits(g, "And", a, b)


@aten("bitwise_or", "__or__", "__ior__")
def bitwise_or(g: Builder, self: Operand, other: Operand) -> Value:
    """bitwise_or(Tensor self, Tensor other) -> Tensor. ONNX BitwiseOr; of bools Or."""
    return _bits(g, "Or", *promoted(g, self, other))


@aten("bitwise_xor", "__xor__", "__ixor__")
def bitwise_xor(g: Builder, self: Operand, other: Operand) -> Value:
    """bitwise_xor(Tensor self, Tensor other) -> Tensor. ONNX BitwiseXor; of bools Xor."""
    return _bits(g, "Xor", *promoted(g, self, other))


def _bits(g: Builder, name: str, a: Value, b: Value) -> Value:
    return g.op(name if a.dtype == BOOL else f"Bitwise{name}", a, b)


_WIDTH = {DataType.INT64: 64, DataType.INT32: 32, DataType.INT16: 16, DataType.INT8: 8, DataType.UINT8: 8}


def _fits(number: int, dtype: Any) -> bool:
    return number < 2 ** (_WIDTH[dtype] - (dtype != DataType.UINT8))


@aten("bitwise_left_shift", "__lshift__", "__ilshift__")
def bitwise_left_shift(g: Builder, self: Operand, other: Operand) -> Value:
    """bitwise_left_shift(Tensor self, Tensor other) -> Tensor; 0 for a shift beyond the width or below 0. ONNX Mul; Gather for tensors."""
    a, b = promoted(g, self, other)
    width = _width(a)
    powers = [2**n for n in range(width)]
    if a.dtype != DataType.UINT8:
        powers[-1] = -powers[-1]
    return g.op("Mul", a, _shifted_by(g, [*powers, 0], other, b))


@aten("bitwise_right_shift", "__rshift__", "__irshift__")
def bitwise_right_shift(g: Builder, self: Operand, other: Operand) -> Value:
    """bitwise_right_shift(Tensor self, Tensor other) -> Tensor; the sign moves in from the left. ONNX Mod, Sub, Div; Gather for tensors.

    Dividing by a power of two, rounded down; a shift that leaves nothing but the sign is one by the largest power and once more.
    """
    a, b = promoted(g, self, other)
    width, signed = _width(a), a.dtype != DataType.UINT8
    highest = width - 2 if signed else width - 1
    powers = [2 ** min(n, highest) for n in range(width)]
    divisor = _shifted_by(g, [*powers, 2**highest], other, b)
    result = g.op("Div", g.op("Sub", a, g.op("Mod", a, divisor)) if signed else a, divisor)
    last = _shifted_by(g, [1] * (highest + 1) + [2] * (width - highest), other, b)
    if last.const is not None and bool((last.const.tensor == 1).all()):
        return result
    return g.op("Div", g.op("Sub", result, g.op("Mod", result, last)) if signed else result, last)


def _width(x: Value) -> int:
    if x.dtype not in _WIDTH:
        raise errors.UnsupportedError(f"a shift of {x.dtype and x.dtype.name}")
    return _WIDTH[x.dtype]


def _shifted_by(g: Builder, table: list[int], number: Operand, shift: Value) -> Value:
    """table[shift], now where the shift is a number."""
    last = len(table) - 1
    if isinstance(number, int):
        return tensor(g, table[number if 0 <= number < last else last], shift.dtype)
    return looked_up(g, table, shift)


def looked_up(g: Builder, table: list[int], index: Value) -> Value:
    """table[index], in the dtype of the index; the last entry for an index that is below 0 or beyond. ONNX Gather."""
    last = g.const(len(table) - 1)
    place = cast(g, index, DataType.INT64)
    beyond = g.op("Or", g.op("Less", place, g.const(0)), g.op("Greater", place, last))
    return g.op("Gather", tensor(g, table, index.dtype), g.op("Where", beyond, last, place), axis=0)


def wrapped(number: int, dtype: Any) -> int:
    """`number` as it comes out of an overflow in an integer dtype."""
    width = _WIDTH[dtype]
    number %= 2**width
    return number - 2**width if dtype != DataType.UINT8 and number >= 2 ** (width - 1) else number


# ---------------------------------------------------------------------- choice


@aten("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(g: Builder, condition: Value, self: Operand, other: Operand) -> Value:
    """where(Tensor condition, Tensor self, Tensor other) -> Tensor; either may be a Scalar. ONNX Where."""
    a, b = promoted(g, self, other)
    return g.op("Where", cast(g, condition, BOOL), a, b)


@aten("isin.Tensor_Tensor", "isin.Tensor_Scalar", "isin.Scalar_Tensor")
def isin(g: Builder, elements: Any = None, test_elements: Any = None, assume_unique: bool = False, invert: bool = False,
         element: Any = None, test_element: Any = None) -> Value:
    """isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor; either may be a Scalar.

    Each element against each test element. ONNX Unsqueeze, Equal, ReduceSum.
    """
    a, b = promoted(g, element if elements is None else elements, test_element if test_elements is None else test_elements)
    if b.rank == 0:
        found = g.op("Equal", a, b)
    else:
        hits = g.op("Cast", g.op("Equal", unsqueeze(g, a, [-1]), reshape(g, b, [-1])), to=DataType.INT32)
        found = g.op("Cast", g.op("ReduceSum", hits, g.const([-1]), keepdims=0), to=BOOL)
    return g.op("Not", found) if invert else found
