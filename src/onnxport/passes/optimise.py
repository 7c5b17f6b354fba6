"""The few whole-graph passes, in order."""

from __future__ import annotations

import onnx_ir as ir

from onnxport.options import Options, TrainingMode
from onnxport.passes import flatten_concat, fold_batch_norm, functions


def run(model: ir.Model, options: Options) -> None:
    """Runs them on `model` in place."""
    if options.constant_folding and options.training == TrainingMode.EVAL:
        fold_batch_norm.run(model)
    flatten_concat.run(model)
    if options.functions:
        functions.run(model, options.custom_opsets)
