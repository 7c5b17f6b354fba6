"""`operator_export_type`: operators that stay nodes of their own."""

from __future__ import annotations

import onnx
import pytest
import torch

from onnxport import OperatorExportTypes, backend, errors
from tests.compat.running import foo, operator, ops, pair, proto, registered, rows

A, B = torch.randn(2, 3), torch.randn(2, 3)


def attributes(node: onnx.NodeProto) -> dict[str, object]:
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def shape(made: onnx.ModelProto, position: int = 0) -> list[object]:
    return [d.dim_param or d.dim_value for d in made.graph.output[position].type.tensor_type.shape.dim]


def test_fallthrough_keeps_a_custom_operator() -> None:
    made = proto(lambda a, b: foo(torch.relu(a), b, 1.5, 2) + 1, (A, B), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH,
                 keep_initializers_as_inputs=False, custom_opsets={"onnxport_tests": 4})
    assert ops(made) == ["Relu", "onnxport_tests::foo", "Add"]
    assert attributes(made.graph.node[1]) == {"x": 1.5, "y": 2} and len(made.graph.node[1].input) == 2
    assert {o.domain: o.version for o in made.opset_import}["onnxport_tests"] == 4
    assert shape(made) == [2, 3] and made.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def test_fallthrough_with_lists_strings_and_several_outputs() -> None:
    made = proto(lambda a: pair(a, [3, 4], "up"), (A,), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)
    assert ops(made) == ["onnxport_tests::pair"]
    assert attributes(made.graph.node[0]) == {"sizes": [3, 4], "mode": b"up", "flag": 1}
    assert len(made.graph.output) == 2


def test_fallthrough_of_an_aten_operator() -> None:
    with registered("aten::special_zeta", lambda g, a, b: None):
        made = proto(lambda a, b: torch.special.zeta(torch.relu(a), b), (A, B), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)
    assert ops(made) == ["Relu", "org.pytorch.aten::special_zeta"]


def test_aten_fallback() -> None:
    with registered("aten::special_zeta", lambda g, a, b: None):
        made = proto(lambda a, b: torch.special.zeta(torch.relu(a), b) * 2, (A, B), operator_export_type=OperatorExportTypes.ONNX_ATEN_FALLBACK)
    kept = next(n for n in made.graph.node if n.op_type == "ATen")
    assert (kept.domain, attributes(kept)) == ("org.pytorch.aten", {"operator": b"special_zeta", "overload_name": b""})
    assert {"Relu", "Mul"} <= {n.op_type for n in made.graph.node} and shape(made) == [2, 3]


def test_aten_fallback_says_which_custom_operator_is_missing() -> None:
    with pytest.raises(errors.UnsupportedOperatorError, match="onnxport_tests::foo"):
        proto(lambda a, b: foo(a, b, 1.5, 2), (A, B), operator_export_type=OperatorExportTypes.ONNX_ATEN_FALLBACK)


def test_all_aten() -> None:
    made = proto(lambda a, b: torch.cat([torch.relu(a), b * 2], 1).sum(1), (A, B), operator_export_type=OperatorExportTypes.ONNX_ATEN)
    kept = [attributes(n)["operator"] for n in made.graph.node if n.op_type == "ATen"]
    assert kept == [b"relu", b"mul", b"cat", b"sum"]
    assert shape(made) == [2]


def test_all_aten_with_a_dynamic_axis() -> None:
    made = proto(lambda a: torch.relu(a).reshape(a.shape[0] * 3), (A,), operator_export_type=OperatorExportTypes.ONNX_ATEN,
                 input_names=["a"], dynamic_axes={"a": {0: "n"}})
    assert [attributes(n)["operator"] for n in made.graph.node if n.op_type == "ATen"] == [b"relu", b"reshape"]


@pytest.mark.parametrize("kind", list(OperatorExportTypes))
def test_a_plain_model_is_the_same_but_for_aten(kind: OperatorExportTypes) -> None:
    made = proto(lambda a: torch.relu(a), (A,), operator_export_type=kind)
    assert ops(made) == (["org.pytorch.aten::ATen"] if kind == OperatorExportTypes.ONNX_ATEN else ["Relu"])


def test_pytorch_members_are_accepted() -> None:
    made = proto(lambda a, b: foo(a, b, 1.5, 2), (A, B), operator_export_type=torch.onnx.OperatorExportTypes.ONNX_FALLTHROUGH)
    assert ops(made) == ["onnxport_tests::foo"]


def test_sizes_come_from_the_fake_implementation() -> None:
    torch.library.register_fake("onnxport_tests::rows", lambda x, others, k: x.new_empty(others[0].shape[0], k, x.shape[1]))
    made = proto(lambda a, b: rows(a, [b, a], 3), (A, torch.randn(4, 3)), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH,
                 input_names=["a", "b"], dynamic_axes={"a": {0: "n", 1: "w"}, "b": {0: "m", 1: "w"}})
    assert shape(made) == ["m", 3, "w"] and len(made.graph.node[0].input) == 3
    assert made.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def test_in_a_branch_of_a_script() -> None:
    class Branch(torch.nn.Module):
        def forward(self, a: torch.Tensor) -> torch.Tensor:
            if a.sum() > 0:
                a = torch.ops.onnxport_tests.rows(a, [a], 1).sum(1) + 1
            return a

    made = proto(torch.jit.script(Branch()), (A,), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)
    branch = next(n for n in made.graph.node if n.op_type == "If").attribute[0].g
    assert "rows" in [n.op_type for n in branch.node]


def test_without_a_fake_implementation_a_size_is_unknown() -> None:
    made = proto(lambda a: foo(a, a, 1.5, 2), (A,), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH,
                 input_names=["a"], dynamic_axes={"a": {0: "n"}})
    assert len(shape(made)) == 2


def test_an_output_of_which_nobody_says_the_type() -> None:
    class Script(torch.nn.Module):
        def forward(self, a: torch.Tensor) -> torch.Tensor:
            return torch.ops.onnxport_tests.blind(a)

    operator("blind(Tensor a) -> Tensor", lambda a: a * (a.sum().item() > 0))  # it cannot be run without numbers
    with pytest.raises(errors.UnsupportedError, match=r"nothing tells the dtype of what onnxport_tests::blind gives.*register_fake"):
        proto(torch.jit.script(Script()), (A,), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)


@pytest.mark.parametrize("opset", [7, 9, 11, 18])
def test_lists_at_every_opset(opset: int) -> None:
    """Below opset 11 there are no sequences: the members of a list are inputs of their own, and outputs always are."""
    made = proto(lambda a, b: torch.split(torch.cat([a, b], 1), 2, 1)[2], (A, B), operator_export_type=OperatorExportTypes.ONNX_ATEN, opset_version=opset)
    assert ("SequenceConstruct" in ops(made)) == (opset >= 11)
    assert [len(n.output) for n in made.graph.node if attributes(n).get("operator") == b"split"] == [3]
    (found,) = backend.run(made, (A, B))
    assert torch.equal(torch.from_numpy(found), torch.cat([A, B], 1)[:, 4:])


def test_a_literal_in_two_branches() -> None:
    """It stands before the branches, not in the one that names it first."""
    class Branch(torch.nn.Module):
        def forward(self, a: torch.Tensor) -> torch.Tensor:
            if a.sum() > 0:
                a = a * 2.5
            else:
                a = a - 2.5
            return a

    made = proto(torch.jit.script(Branch()), (A,), keep_initializers_as_inputs=True)
    for given in (A.abs(), -A.abs()):
        assert torch.equal(torch.from_numpy(backend.run(made, given)[0]), Branch()(given))
