"""Operators on the bits of integers, which came with opset 18, in arithmetic: the bits of a number as a last dim of zeros and ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxport.target.sizes import unsqueeze
from onnxport.target.spelling import Form, Made, Rules, numbers, refusal
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_SIGNED = {DataType.INT64: 64, DataType.INT32: 32, DataType.INT16: 16, DataType.INT8: 8}
_UNSIGNED = {DataType.UINT32: 32, DataType.UINT16: 16, DataType.UINT8: 8}
_LARGEST = {dtype: 2**width - 1 for dtype, width in _UNSIGNED.items()}


def _not(g: Builder, form: Form) -> Made:
    """In two's complement ~x is -1 - x, and of what has no sign the largest number less x."""
    dtype = form.x.dtype
    if dtype not in _SIGNED and dtype not in _LARGEST:
        raise refusal(g, f"BitwiseNot of {dtype.name if dtype else 'an unknown dtype'}", 18)
    return (g.op("Sub", g.const(_LARGEST.get(dtype, -1), dtype), form.x),)


def _and(g: Builder, form: Form) -> Made:
    """The sum of the weights of the bits that both have."""
    dtype = form.x.dtype
    if dtype not in _SIGNED and dtype not in _UNSIGNED:
        raise refusal(g, form.op_type, 18)
    a, b = (v if dtype == DataType.INT64 else g.op("Cast", v, to=DataType.INT64) for v in form.inputs if v is not None)
    weights = g.const([2**k for k in range(_SIGNED[dtype] - 1 if dtype in _SIGNED else _UNSIGNED[dtype])], DataType.INT64)
    # ONNX Runtime adds up 64 bits in double precision in a ReduceSum, and exactly in a MatMul
    total = g.op("MatMul", g.op("Mul", _bits(g, a, weights), _bits(g, b, weights)), weights)
    if dtype in _SIGNED and not any(_has_no_sign(v) for v in (a, b)):
        negative = g.op("And", g.op("Less", a, g.const(0, DataType.INT64)), g.op("Less", b, g.const(0, DataType.INT64)))
        total = g.op("Where", negative, g.op("Add", total, g.const(-(2 ** (_SIGNED[dtype] - 1)), DataType.INT64)), total)
    return (total if dtype == DataType.INT64 else g.op("Cast", total, to=dtype),)


def _bits(g: Builder, x: Value, weights: Value) -> Value:
    """Zeros and ones in a last dim, the lowest first; the sign is not among them. x divided by each weight is rounded down."""
    assert x.shape is not None
    x = unsqueeze(g, x, [len(x.shape)])
    return g.op("Mod", g.op("Div", g.op("Sub", x, g.op("Mod", x, weights)), weights), g.const(2, DataType.INT64))


def _has_no_sign(x: Value) -> bool:
    known = numbers(x)
    return known is not None and min(known, default=0) >= 0


def _or(g: Builder, form: Form) -> Made:
    a, b = form.inputs
    return (g.op("Sub", g.op("Add", a, b), g.op("BitwiseAnd", a, b)),)


def _xor(g: Builder, form: Form) -> Made:
    a, b = form.inputs
    both = g.op("BitwiseAnd", a, b)
    return (g.op("Sub", g.op("Sub", g.op("Add", a, b), both), both),)


RULES: Rules = {"BitwiseAnd": ((18, _and),), "BitwiseNot": ((18, _not),), "BitwiseOr": ((18, _or),), "BitwiseXor": ((18, _xor),)}
