"""Random numbers and dropout: drawn anew at each run of the file."""

from __future__ import annotations

from onnxport.ops.registry import aten
from onnxport.target.builder import Builder
from onnxport.target.value import Value


@aten("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", fold=False)
def dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    """dropout(Tensor input, float p, bool train) -> Tensor. ONNX Dropout."""
    if not train or p == 0:
        return input
    return g.op("Dropout", input, g.const(p), g.const(True))
