"""`torch.onnx.ops`: operators of ONNX in PyTorch, and those that only say which node the file is to hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.onnx.ops

from onnxport import errors
from tests.compat.running import Model, ops, proto, run

X = torch.randn(2, 3)
DYNAMIC: dict[str, Any] = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}, "capture": "export"}


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def test_a_node_of_ones_own() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        attrs = {"i": 1, "f": 1.5, "s": "q", "is": [1, 2], "fs": [0.5], "ss": ["a", "b"]}
        return torch.onnx.ops.symbolic("acme::Foo", [x, None, x + 1], attrs, dtype=torch.int64, shape=(x.shape[0], 4), version=2) + 1

    made = proto(model, (X,), **DYNAMIC)
    assert ops(made) == ["Add", "acme::Foo", "Add"] and {o.domain: o.version for o in made.opset_import} == {"": 18, "acme": 2}
    node = made.graph.node[1]
    assert attributes(node) == {"i": 1, "f": 1.5, "s": b"q", "is": [1, 2], "fs": [0.5], "ss": [b"a", b"b"]} and node.input[1] == ""
    kind = made.graph.output[0].type.tensor_type
    assert kind.elem_type == onnx.TensorProto.INT64 and [d.dim_param or d.dim_value for d in kind.shape.dim] == ["n", 4]


@pytest.mark.parametrize("opset", [13, 18, 22])
def test_a_standard_node_runs(opset: int) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.onnx.ops.symbolic("Unsqueeze", [torch.onnx.ops.symbolic("Elu", [x], {"alpha": 2.0}, dtype=x.dtype, shape=x.shape)], {"axes": [0]},
                                       dtype=x.dtype, shape=(1, *x.shape), version=11)

    other = torch.randn(5, 3)
    np.testing.assert_allclose(run(proto(model, (X,), opset_version=opset, **DYNAMIC), other)[0],
                               torch.nn.functional.elu(other, 2.0)[None].numpy(), rtol=1e-5)


def test_several_outputs() -> None:
    def model(x: torch.Tensor) -> Any:
        values, places = torch.onnx.ops.symbolic_multi_out("TopK", [x, torch.tensor([2])], {"axis": -1}, dtypes=(x.dtype, torch.int64),
                                                           shapes=((x.shape[0], 2), (x.shape[0], 2)), version=18)
        return values + 1, places

    made, other = proto(model, (X,), **DYNAMIC), torch.randn(4, 3)
    values, places = other.topk(2)
    found = run(made, other)
    np.testing.assert_allclose(found[0], (values + 1).numpy(), rtol=1e-6)
    assert (found[1] == places.numpy()).all()


def test_the_capture_that_takes_it_is_found() -> None:
    """PyTorch's tracer does not take a list of tensors that may be missing."""
    assert ops(proto(lambda x: torch.onnx.ops.symbolic("acme::Foo", [x], dtype=x.dtype, shape=x.shape), (X,))) == ["acme::Foo"]


def test_a_node_that_no_opset_has() -> None:
    with pytest.raises(errors.UnsupportedError, match=r"(?s)a symbolic function wrote a Relu that no opset has: .*'wrong'"):
        proto(lambda x: torch.onnx.ops.symbolic("Relu", [x], {"wrong": 1}, dtype=x.dtype, shape=x.shape), (X,), capture="export")


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("opset", [11, 18, 23])
def test_operators_with_numbers(opset: int, capture: str) -> None:
    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return torch.onnx.ops.rotary_embedding(x, cos, sin, places)

    def attending(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.onnx.ops.attention(q, k, k * 2, is_causal=True)[0]

    def rotary(n: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(n, 2, 3, 4), torch.randn(9, 2), torch.randn(9, 2), torch.randint(0, 9, (n, 3))

    def heads(n: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(n, 2, 3, 4), torch.randn(n, 2, 3, 4)

    for model, inputs, names in ((rotated, rotary, ["x", "cos", "sin", "places"]), (attending, heads, ["q", "k"])):
        axes = {name: {0: "n"} for name in names if name not in ("cos", "sin")}
        made = proto(Model(model).eval(), inputs(2), opset_version=opset, capture=capture, input_names=names, dynamic_axes=axes)
        given = inputs(3)
        np.testing.assert_allclose(run(made, *given)[0], model(*given).numpy(), rtol=1e-4, atol=1e-5)
