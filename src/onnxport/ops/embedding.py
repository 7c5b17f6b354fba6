"""Rows of a table: embedding, bags of embeddings, one-hot vectors."""

from __future__ import annotations

from onnxport.ops.registry import aten
from onnxport.ops.support import cast
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64


@aten
def embedding(g: Builder, weight: Value, indices: Value, padding_idx: Size = -1) -> Value:
    """embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor

    `padding_idx` matters to gradients only. ONNX Gather.
    """
    if indices.dtype not in (INT64, DataType.INT32):
        indices = cast(g, indices, INT64)
    return g.op("Gather", weight, indices, axis=0)  # type: ignore[no-any-return]


@aten
def one_hot(g: Builder, self: Value, num_classes: int = -1) -> Value:
    """one_hot(Tensor self, int num_classes=-1) -> Tensor: INT64 (*, num_classes); -1: one more than the largest. ONNX OneHot."""
    depth = g.scalar(num_classes)
    if num_classes == -1:
        depth = g.op("Add", g.op("ReduceMax", self, keepdims=0), g.const(1))
    return g.op("OneHot", self, sizes.reshape(g, depth, [1]), g.const([0, 1]), axis=-1)  # type: ignore[no-any-return]

