"""Builds a graph with the Builder, checks it, and runs it in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

from onnxport.target.builder import Builder
from onnxport.target.emit import Naming, emit
from onnxport.target.value import DataType

OPSETS = range(7, onnx.defs.onnx_opset_version() + 1)
# Below IR version 4 initializers are inputs, and opset 7's Constant makes floats only.
_IR_VERSIONS = {9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
_OPTIONS = onnxruntime.SessionOptions()
_OPTIONS.log_severity_level = 4
_OPTIONS.intra_op_num_threads = 1

Build = Callable[..., Any]


def dtype_of(array: np.ndarray) -> DataType:
    return DataType.from_numpy(array.dtype)


def model(opset: int, build: Build, inputs: Sequence[np.ndarray], shapes: Sequence[Any] = (), check: bool = True) -> onnx.ModelProto:
    """The checked model of `build(g, *values)`."""
    g = Builder(opset)
    given = [None if s is None else tuple(s) for s in shapes] or [a.shape for a in inputs]
    values = [g.input(f"x{i}", dtype_of(a), s) for i, (a, s) in enumerate(zip(inputs, given))]
    made = build(g, *values)
    outputs = list(made) if isinstance(made, tuple) else [made]
    emitted = emit(g, outputs, Naming([f"y{i}" for i in range(len(outputs))]), ir_version=_IR_VERSIONS.get(opset, 4 if opset < 9 else 13))
    proto = ir.serde.serialize_model(emitted)
    if check:
        onnx.checker.check_model(proto, full_check=True)
    return proto


def run(proto: onnx.ModelProto, inputs: Sequence[np.ndarray], optimise: bool = True) -> list[np.ndarray]:
    """What ONNX Runtime computes."""
    options = _OPTIONS
    if not optimise:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), inputs)})  # type: ignore[no-any-return]
