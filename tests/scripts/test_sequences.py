# ruff: noqa: UP006, UP035, PERF401 - scripts are written in what TorchScript reads
"""Files with sequences: their outputs, names and types, in the program and in `verify`."""

from __future__ import annotations

import io
from typing import List, Tuple

import onnx
import pytest
import torch
from torch import Tensor

import onnxport

from .running import scripted
from .sequences import any_item_of_different_shapes
from .table import t


def heads(x: Tensor, n: int) -> Tuple[Tensor, List[Tensor]]:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(x[: i + 1] * 2)
    return x + n, xs


def counted(x: Tensor, n: Tensor) -> Tuple[Tensor, List[Tensor]]:
    xs: List[Tensor] = []
    for i in range(int(n)):
        xs.append(x[: i + 1] * 2)
    return x + n, xs


def rows(x: Tensor) -> List[Tensor]:
    return x.unbind(0)


def test_outputs_and_their_names() -> None:
    program = onnxport.export(scripted(heads), (t(1, 2, 3), 2), dynamic_axes={"x": {0: "n"}}, output_names=["sum", "parts"], opset_version=18)
    assert program.output_names == ["sum", "parts"]
    total, parts = program(t(1, 2, 3, 4), 3)
    assert torch.equal(total, t(4, 5, 6, 7))
    assert [p.tolist() for p in parts] == [[2.0], [2.0, 4.0], [2.0, 4.0, 6.0]]
    onnx.checker.check_model(program.model_proto, full_check=True)
    found = program.model_proto.graph.output[1].type
    assert found.sequence_type.elem_type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def test_name_without_a_choice() -> None:
    stream = io.BytesIO()
    program = onnxport.export(scripted(rows), (torch.ones(2, 3),), stream, dynamic_axes={"x": {0: "n"}}, opset_version=18)
    assert program.output_names == ["output"]
    assert [o.name for o in onnx.load_from_string(stream.getvalue()).graph.output] == ["output"]
    assert len(program(torch.ones(5, 3))[0]) == 5


def test_verify() -> None:
    program = onnxport.export(scripted(heads), (t(1, 2, 3), 2), dynamic_axes={"x": {0: "n"}}, opset_version=18)
    assert program.verify().passed
    assert program.verify((t(1, 2, 3, 4), 4)).passed


@pytest.mark.parametrize("count", [1, 3])
def test_verify_counts_the_members(count: int) -> None:
    def longer(x: Tensor, n: Tensor) -> Tuple[Tensor, List[Tensor]]:
        xs: List[Tensor] = []
        for i in range(int(n) - 1):
            xs.append(x[: i + 1] * 2)
        return x + n, xs

    program = onnxport.export(scripted(counted), (t(1, 2, 3), torch.tensor(2)), opset_version=18)
    assert program.verify((t(1, 2, 3), torch.tensor(count)), seeds=()).passed
    with pytest.raises(onnxport.errors.VerificationError, match="outputs|not return"):
        program.verify((t(1, 2, 3), torch.tensor(count)), model=scripted(longer), seeds=())


def test_below_the_first_opset_with_sequences() -> None:
    with pytest.raises(onnxport.errors.OnnxExporterError, match="opset 11"):
        onnxport.export(scripted(any_item_of_different_shapes), (t(1, 2, 3), 1), opset_version=10)
