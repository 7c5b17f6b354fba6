# ruff: noqa: UP006, UP035, UP045, PERF401 - scripts are written in what TorchScript reads
"""Files with sequences: their outputs, names and types, in the program and in `verify`."""

from __future__ import annotations

import io
from typing import Any, Dict, List, Optional, Tuple

import onnx
import pytest
import torch
from torch import Tensor

import onnxport

from .running import OPSETS, differences, scripted, wanted
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


# ---------------------------------------------------------------------- lists="sequences"


class Each(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, xs: List[Tensor], n: int) -> Tuple[Tensor, List[Tensor]]:
        total = torch.zeros(2)
        made: List[Tensor] = []
        for x in xs:
            y = self.linear(x)
            total = total + y.sum(0)
            made.append(y * n)
        return total, made


def ends(xs: List[Tensor]) -> List[Tensor]:
    return [xs[0] + 1, xs[-1]]


def appended(xs: List[Tensor], y: Tensor) -> Tensor:
    xs.append(y)
    return torch.cat(xs, 0) * len(xs)


def nested(d: Dict[str, List[Tensor]], more: Optional[List[Tensor]]) -> Tensor:
    result = d["a"][0]
    if more is not None:
        result = result + torch.stack(more).sum(0)
    return result


def chosen(xs: List[Tensor], ys: List[Tensor], flag: bool, i: int) -> Tensor:
    zs = xs if flag else ys
    return zs[i] * 2 + len(xs)


SEQUENCES: list[tuple[Any, int, list[tuple[Any, ...]]]] = [
    (Each, 13, [([torch.ones(4, 3), torch.ones(2, 3)], 2), ([torch.ones(1, 3) * 3], -1), ([torch.ones(i, 3) * i for i in range(5)], 3), ([], 2)]),
    (ends, 11, [([t(1, 2), t(3)],), ([t(5)],), ([t(), t(1, 2, 3), t(4, 5)],)]),
    (appended, 11, [([t(1, 2), t(3)], t(4)), ([], t(1)), ([t(1)] * 7, t(2))]),
    (nested, 11, [({"a": [t(1, 2)]}, [t(3, 4)]), ({"a": [t(1, 2, 3), t(4)]}, [t(3, 4, 5), t(6, 7, 8)])]),
    (chosen, 13, [([t(1, 2), t(3)], [t(4)], True, 1), ([t(1, 2), t(3)], [t(4)], False, -1), ([t(1)], [t(1, 2), t(4, 5, 6)], False, 1)]),
]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("script", "since", "calls"), SEQUENCES, ids=lambda x: getattr(x, "__name__", ""))
def test_lists_as_sequences(script: Any, since: int, calls: list[tuple[Any, ...]], opset: int) -> None:
    made = scripted(script)
    if opset < since:
        with pytest.raises(onnxport.errors.UnsupportedError, match=f"needs opset {since}"):
            onnxport.export(made, calls[0], lists="sequences", opset_version=opset, mutations="ignore")
        return
    program = onnxport.export(made, calls[0], lists="sequences", opset_version=opset, mutations="ignore")
    onnx.checker.check_model(program.model_proto, full_check=True)
    for call in calls:
        found = program(*call)
        members = [member for output in found for member in (output if isinstance(output, list) else [output])]
        assert not list(differences([m.numpy() for m in members], wanted(made, call))), call


def test_names_and_verification_of_sequences() -> None:
    program = onnxport.export(scripted(Each), ([torch.ones(4, 3), torch.ones(2, 3)], 2), lists="sequences", input_names=["pictures"],
                              output_names=["sum", "each"], dynamic_axes={"pictures": {0: "height"}})
    assert (program.input_names, program.output_names) == (["pictures", "n"], ["sum", "each"])
    assert program.model_proto.graph.input[0].type.HasField("sequence_type")
    report = program.verify()
    assert {"len(pictures)=1", "len(pictures)=3"} <= {case.label for case in report.cases}


def test_lists_flattened() -> None:
    program = onnxport.export(scripted(ends), ([t(1, 2), t(3)],), lists="flat")
    assert (program.input_names, program.output_names) == (["xs.0", "xs.1"], ["output_0", "output_1"])
    with pytest.raises(onnxport.errors.OnnxExporterError, match="length"):
        onnxport.export(scripted(heads), (t(1, 2, 3), 2), dynamic_axes={"x": {0: "n"}}, lists="flat")


def test_lists_below_the_first_opset_with_sequences() -> None:
    with pytest.raises(onnxport.errors.UnsupportedError, match="the list 'xs' as a sequence needs opset 11 or higher") as caught:
        onnxport.export(scripted(ends), ([t(1, 2), t(3)],), lists="sequences", opset_version=10)
    assert caught.value.lowest == 11


@pytest.mark.parametrize(("xs", "pattern"), [([], "the list xs is empty"), ([t(1), torch.ones(2, 2)], "the list xs holds tensors of different"),
                                             ([t(1), torch.ones(1, dtype=torch.int64)], "the list xs holds tensors of different")])
def test_examples_that_tell_no_type(xs: list[Tensor], pattern: str) -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match=pattern):
        onnxport.export(scripted(ends), (xs,), lists="sequences")


def test_lists_of_what_is_no_script() -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match=r"lists='sequences' is for scripts.*torch.jit.script"):
        onnxport.export(ends, ([t(1, 2), t(3)],), lists="sequences")
    with pytest.raises(onnxport.errors.ArgumentError, match="lists='list': it must be one of"):
        onnxport.export(ends, ([t(1, 2), t(3)],), lists="list")
