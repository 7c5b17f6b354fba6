"""Activations."""

from __future__ import annotations

from onnxport.ops.registry import aten
from onnxport.target.builder import Builder
from onnxport.target.value import Value


@aten
def relu(g: Builder, self: Value) -> Value:
    """relu(Tensor self) -> Tensor. ONNX Relu."""
    return g.op("Relu", self)  # type: ignore[no-any-return]
