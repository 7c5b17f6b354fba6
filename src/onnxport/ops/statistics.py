"""Covariances of the rows of a matrix."""

from __future__ import annotations

from onnxport.ops.reduction import average, reduce, size_as, wide
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, floating, rank_of, result_type, shape_of
from onnxport.target.builder import Builder
from onnxport.target.sizes import reshape
from onnxport.target.value import DataType, Value


@aten
def cov(g: Builder, self: Value, correction: int = 1, fweights: Value | None = None, aweights: Value | None = None) -> Value:
    """cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor

    (variables, observations), or (observations,) -> (variables, variables), or a scalar. ONNX ReduceMean, Sub, MatMul, Div.
    """
    return _cov(g, self, correction, fweights, aweights)[0]


def _cov(g: Builder, x: Value, correction: int, fweights: Value | None, aweights: Value | None) -> tuple[Value, Value]:
    """(the covariances, the variances of the rows as a column)."""
    dtype = result_type(floating(g, x), *([] if aweights is None else [aweights]))
    data = wide(g, cast(g, x, dtype))
    if rank_of(data) < 2:
        data = reshape(g, data, [1, -1])
    weights = [cast(g, w, data.dtype or DataType.FLOAT) for w in (fweights, aweights) if w is not None]
    weight = g.op("Mul", *weights) if len(weights) == 2 else weights[0] if weights else None
    if weight is None:
        total = size_as(g, shape_of(data)[1], data.dtype)
        apart = g.op("Sub", data, average(g, data, [1], True))
        left = apart
    else:
        total = reduce(g, "ReduceSum", weight, list(range(rank_of(weight))), False)
        apart = g.op("Sub", data, g.op("Div", reduce(g, "ReduceSum", g.op("Mul", data, weight), [1], True), total))
        left = g.op("Mul", apart, weight)
    degrees = _degrees(g, total, weight, aweights, correction)
    result = g.op("Div", g.op("MatMul", left, g.op("Transpose", apart, perm=[1, 0])), degrees)
    variances = g.op("Div", reduce(g, "ReduceSum", g.op("Mul", left, apart), [1], True), degrees)
    if shape_of(result) == (1, 1):
        result = reshape(g, result, [])
    return cast(g, result, dtype), variances


def _degrees(g: Builder, total: Value, weight: Value | None, aweights: Value | None, correction: Number) -> Value:
    """What the sum of products is divided by, never less than 0."""
    less = g.const(float(correction), total.dtype)
    if correction != 0 and aweights is not None and weight is not None:
        both = g.op("Mul", weight, cast(g, aweights, weight.dtype or DataType.FLOAT))
        own = reduce(g, "ReduceSum", both, list(range(rank_of(weight))), False)
        less = g.op("Mul", less, g.op("Div", own, total))
    return g.op("Max", g.op("Sub", total, less), g.const(0.0, total.dtype))


@aten
def corrcoef(g: Builder, self: Value) -> Value:
    """corrcoef(Tensor self) -> Tensor. The covariances over both deviations, within -1 and 1. ONNX as cov, Sqrt, Div, Clip."""
    result, variances = _cov(g, self, 1, None, None)
    if rank_of(result) == 0:
        return g.op("Div", result, result)
    deviation = cast(g, g.op("Sqrt", variances), result.dtype or DataType.FLOAT)
    result = g.op("Div", g.op("Div", result, deviation), g.op("Transpose", deviation, perm=[1, 0]))
    return g.op("Clip", result, g.const(-1.0, result.dtype), g.const(1.0, result.dtype))
