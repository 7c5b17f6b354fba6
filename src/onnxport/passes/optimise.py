"""The few whole-graph passes, in order."""

from __future__ import annotations

import onnx_ir as ir

from onnxport.options import Options


def run(model: ir.Model, options: Options) -> None:
    """Runs them on `model` in place."""
