"""Operators that PyTorch's own decompositions and fast paths leave in a graph."""

from __future__ import annotations

from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, floating, rank_of
from onnxport.target.builder import Builder
from onnxport.target.sizes import reshape
from onnxport.target.value import DataType, Value


def _softmax_of(g: Builder, op_type: str, x: Value, dim: int, half_to_float: bool) -> Value:
    x = cast(g, x, DataType.FLOAT) if half_to_float else floating(g, x)
    if rank_of(x) == 0:
        return reshape(g, g.op(op_type, reshape(g, x, [1]), axis=0), [])
    return g.op(op_type, x, axis=axis_of(x, dim))


@aten("_softmax")
def softmax(g: Builder, self: Value, dim: int, half_to_float: bool = False) -> Value:
    """_softmax(Tensor self, int dim, bool half_to_float) -> Tensor. ONNX Softmax."""
    return _softmax_of(g, "Softmax", self, dim, half_to_float)


@aten("_log_softmax")
def log_softmax(g: Builder, self: Value, dim: int, half_to_float: bool = False) -> Value:
    """_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor. ONNX LogSoftmax."""
    return _softmax_of(g, "LogSoftmax", self, dim, half_to_float)
