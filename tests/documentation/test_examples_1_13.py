"""Every code example of the edition of PyTorch 1.13, with what it prints and what the text around it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

import numpy as np
import onnx
import pytest
import torch

import onnxport
from onnxport.errors import ArgumentError, BakedValueError, UnsupportedOperatorError
from tests.compat.running import check, ops, proto, registered, run
from tests.documentation.running import Page, lines, shown

VALUE, GRAPH = {"torch.Value": "torch._C.Value"}, {"torch.Graph": "torch._C.Graph"}  # a fault of the page: PyTorch has no such names


class Model(torch.nn.Module):
    """A forward that stands on the page by itself."""

    def __init__(self, forward: Callable[..., Any]):
        super().__init__()
        self.call = forward

    def forward(self, *args: Any) -> Any:
        return self.call(self, *args)


# ---------------------------------------------------------------- AlexNet


def test_alexnet(new: Page, capsys: pytest.CaptureFixture[str]) -> None:
    """The page shows the graph of 1.3 again, which is compared there. Its printable graph prints; a fault of the page: numpy is not imported."""
    assert shown("v1_13", "alexnet") == shown("v1_3", "alexnet")
    new.run("alexnet")
    capsys.readouterr()
    with pytest.warns(DeprecationWarning, match="to_text"):
        new.run("alexnet_checked")
    assert "Gemm[transB = 1](" in capsys.readouterr().out
    new.run("alexnet_onnxruntime", np=np)
    assert new.session["outputs"][0].shape == (10, 1000)


# ---------------------------------------------------------------- avoiding pitfalls


def test_numpy_is_a_constant(new: Page) -> None:
    """"Bad! Will be replaced with constants": random numbers of NumPy, as the trace saw them. They depend on no input, so no other run of the
    file could be right or wrong."""
    source = new.text("numpy_bad", {}).replace("np.concatenate", "joined = np.concatenate")

    def forward(self: Any, z: torch.Tensor) -> torch.Tensor:
        session = {"np": np}
        exec(source, session)
        return z + torch.from_numpy(session["joined"])

    made = proto(Model(forward), (torch.zeros(1, 4),))
    assert ops(made) in (["Add"], ["Cast", "Add"])


def test_numpy_of_an_input_is_an_error() -> None:
    with pytest.raises(BakedValueError, match=r"test_examples_1_13\.py:\d+.*array"):
        proto(Model(lambda self, x: x + torch.from_numpy(np.abs(x.numpy()))), (torch.randn(2),))


def test_tensors_are_captured(new: Page) -> None:
    source = new.text("numpy_good", {}).replace("torch.cat", "joined = torch.cat")

    def forward(self: Any, z: torch.Tensor) -> torch.Tensor:
        session = {"torch": torch}
        exec(source, session)
        joined: torch.Tensor = session["joined"]  # type: ignore[assignment]
        return joined + z

    made = proto(Model(forward), (torch.zeros(1, 4),))
    assert ops(made).count("RandomNormal") == 2 and "Concat" in ops(made)


def test_item_is_no_constant(new: Page) -> None:
    """"Bad! y.item() will be replaced with a constant": a number that goes straight to an operator is followed."""
    forward = new.run("item_bad")["forward"]
    x = torch.randn(2, 6)
    made = proto(Model(forward), (x, torch.tensor(3)))
    for y in (3, 4, 1):
        np.testing.assert_array_equal(run(made, x, torch.tensor(y))[0], x.reshape(y, -1).numpy())


def test_item_that_python_computes_with_is_an_error() -> None:
    with pytest.raises(BakedValueError, match=r"test_examples_1_13\.py:\d+.*keep it a tensor"):
        proto(Model(lambda self, x, y: x * [1.0, 2.0, 3.0, 4.0][y.item()]), (torch.randn(2, 6), torch.tensor(3)))


def test_a_tensor_as_a_size_is_kept(new: Page) -> None:
    forward = new.run("item_good")["forward"]
    x = torch.randn(2, 6)
    made = proto(Model(forward), (x, torch.tensor(3)))
    for y in (3, 4, 1):
        np.testing.assert_array_equal(run(made, x, torch.tensor(y))[0], x.reshape(y, -1).numpy())


def test_a_size_that_is_added_to_in_place(new: Page) -> None:
    """PyTorch's trace adds to both names; ours to the one that is written. The way round the page's advice stands in the test after."""
    model = new.run("size_in_place")["Model"]()
    made = proto(model, (torch.randn(2, 5),), input_names=["states"], dynamic_axes={"states": {0: "b", 1: "n"}})
    for length in (5, 9):
        states = torch.randn(3, length)
        assert run(made, states)[0] == model(states) == 2 * length + 2


def test_a_size_that_is_added_to(new: Page) -> None:
    source = new.text("size_in_place", {}).replace("real_seq_length += 2", "real_seq_length = real_seq_length + 2")
    path = new.folder / "added.py"
    path.write_text(source)
    exec(compile(source, str(path), "exec"), new.session)
    made = proto(new.session["Model"](), (torch.randn(2, 5),), input_names=["states"], dynamic_axes={"states": {1: "n"}})
    assert run(made, torch.randn(2, 7))[0] == 16


# ---------------------------------------------------------------- limitations: indexing


@pytest.mark.parametrize("opset", [9, 11, 16, 18])
@pytest.mark.parametrize(("example", "shape", "value"), [
    ("indexing_read_negative", (5, 6), None), ("indexing_write_rank_2", (5, 6), (2, 2)), ("indexing_write_apart", (5, 4, 6), (2, 4)),
    ("indexing_write_negative", (5, 6), (2,)), ("indexing_write_broadcast", (3, 4, 5), (5,))])
def test_indexing(example: str, shape: tuple[int, ...], value: tuple[int, ...] | None, opset: int, tmp_path: Any) -> None:
    """What the page calls unsupported."""
    text = Page("v1_13", "onnxport", tmp_path).text(example, {})
    statement = next(line for line in text.splitlines() if line.startswith("data"))
    source = f"def forward(self, data, new_data):\n    data = data + 0\n    {'out = ' if value is None else ''}{statement}\n" \
             f"    return {'out' if value is None else 'data'} + 0 * new_data.sum()\n"
    session: dict[str, Any] = {"torch": torch}
    path = tmp_path / "indexed.py"
    path.write_text(source)
    exec(compile(source, str(path), "exec"), session)
    model = Model(session["forward"])
    made = proto(model, (torch.randn(shape), torch.randn(value or (1,))), opset_version=opset, input_names=["data", "new_data"],
                 dynamic_axes={"data": {0: "n"}})
    for size in (shape[0], shape[0] + 2):
        data, new_data = torch.randn(size, *shape[1:]), torch.randn(value or (1,))
        np.testing.assert_allclose(run(made, data, new_data)[0], model(data, new_data).numpy(), rtol=1e-6)


# ---------------------------------------------------------------- operators that are not supported


def unsupported(x: torch.Tensor) -> torch.Tensor:
    return torch._standard_gamma_grad(x, x + 1.0)


def test_the_message_for_an_operator_that_is_not_supported() -> None:
    """The page's words, and its ways out."""
    with pytest.raises(UnsupportedOperatorError, match="Couldn't export operator aten::_standard_gamma_grad") as caught:
        proto(unsupported, (torch.ones(2),))
    assert isinstance(caught.value, RuntimeError)
    for way in ("change the model", "register_custom_op_symbolic", "contribute the operator"):
        assert way in str(caught.value)


def test_the_signature_of_a_symbolic_function(new: Page) -> None:
    """The page's `foo` has a body of `...`, so it returns None: "None if it cannot be converted to ONNX"."""
    foo = new.run("foo", Union=Union, List=list)["foo"]
    with registered("aten::_standard_gamma_grad", foo), pytest.raises(UnsupportedOperatorError, match="foo returned None"):
        proto(unsupported, (torch.ones(2),))


def test_elu_in_a_trace(new: Page, capsys: pytest.CaptureFixture[str]) -> None:
    """PyTorch's own print, which tells the operator's name and arguments."""
    new.run("elu_traced")
    printed = capsys.readouterr().out
    assert [(line.op, line.shape) for line in lines(printed)] == [(line.op, line.shape) for line in shown("v1_13", "elu_traced")]


def test_elu(new: Page) -> None:
    """A constant Value is taken as an attribute. A fault of the page: the types in its signature do not exist in PyTorch."""
    elu = new.run("elu", VALUE)["elu"]
    with registered("aten::elu", elu):
        made = check(lambda x: torch.nn.functional.elu(x, 0.25), (torch.randn(2, 3),))
    assert [(n.op_type, n.attribute[0].f) for n in made.graph.node] == [("Elu", 0.25)]


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 18, 22])
def test_my_relu(new: Page, opset: int) -> None:
    """The Clip that its symbolic function writes, in the form of opset 11, at every opset."""
    function = new.run("my_relu", VALUE | GRAPH)["MyRelu"]
    made = check(lambda x: function.apply(x), (torch.randn(2, 3),), opset_version=opset)
    assert ops(made) == ["Clip"]


def test_my_log_exp(new: Page) -> None:
    """The graph of the page, node by node. Its `float` as the type of a tensor is a fault of the page."""
    function = new.run("my_log_exp")["MyLogExp"]
    made = check(lambda x: function.apply(x), (torch.tensor([1.5]),), input_names=["input"])
    assert ops(made) == [line.op for line in shown("v1_13", "my_log_exp")] == ["Exp", "Log", "Log"]
    assert all(not n.attribute for n in made.graph.node)
    assert [list(n.input) for n in made.graph.node][1:] == [list(n.output) for n in made.graph.node][:-1]


def test_custom_operator(new: Page, foo_forward: None) -> None:
    x = torch.randn(2, 3)
    new.run("custom_operator", attr1=1.5, attr2=2, example_input1=x)
    made = onnx.load(new.folder / "model.onnx")
    node = made.graph.node[0]
    assert (node.domain, node.op_type, len(made.graph.node)) == ("custom_domain", "Foo", 1)
    assert {a.name: a.f or a.i for a in node.attribute} == {"attr1": 1.5, "attr2": 2}
    assert {o.domain: o.version for o in made.opset_import}["custom_domain"] == 2
    assert [d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [2, 3]


def test_unconvertible_operators(new: Page, capsys: pytest.CaptureFixture[str]) -> None:
    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return unsupported(x).relu()

    found = new.run("unconvertible", model=Both(), args=(torch.ones(2),), opset_version=13)
    assert capsys.readouterr().out == "{'aten::_standard_gamma_grad'}\n"
    assert "aten::relu" in str(found["torch_script_graph"])


def test_aten_fallback() -> None:
    """The page's two graphs, node by node. Its triu is supported here, so a registered function says that it is not."""
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.triu(x, 0).mul(x)

    assert [line.op for line in shown("v1_13", "fallback_before")][1:] == ["aten::triu", "aten::mul"]
    page = shown("v1_13", "fallback_after")
    fallback: Any = onnxport.OperatorExportTypes.ONNX_ATEN_FALLBACK
    with registered("aten::triu", lambda g, self, diagonal: None):
        made = proto(forward, (torch.randn(3, 3),), operator_export_type=fallback)
        with pytest.raises(UnsupportedOperatorError, match="Couldn't export operator aten::triu"):
            proto(forward, (torch.randn(3, 3),))
    constant, aten, mul = made.graph.node
    assert [n.op_type for n in made.graph.node] == [line.op.rpartition("::")[2] for line in page] == ["Constant", "ATen", "Mul"]
    assert page[0].attributes["value"] == 0 == onnx.numpy_helper.to_array(onnx.helper.get_node_attr_value(constant, "value"))
    assert page[1].attributes["operator"] == "triu" == onnx.helper.get_node_attr_value(aten, "operator").decode()
    assert aten.domain == "org.pytorch.aten" and list(aten.input) == [made.graph.input[0].name, constant.output[0]]
    assert list(mul.input) == [aten.output[0], made.graph.input[0].name]
    x = torch.randn(3, 3)
    from onnxport import backend

    np.testing.assert_array_equal(backend.run_model(made, [x.numpy()])[0], forward(x).numpy())


# ---------------------------------------------------------------- arguments


class Three(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None, z: torch.Tensor | None = None) -> torch.Tensor:
        return x - (0 if y is None else 2 * y) - (0 if z is None else 3 * z)


def test_a_tuple_of_arguments(new: Page) -> None:
    x, y, z = torch.randn(3, 2, 2)
    args = new.run("args_tuple", x=x, y=y, z=z)["args"]
    assert [i.name for i in check(Three(), args).graph.input] == ["x", "y", "z"]


def test_a_tensor(new: Page) -> None:
    args = new.run("args_tensor")["args"]
    assert proto(torch.nn.ReLU(), args) == proto(torch.nn.ReLU(), (args,))


def test_named_arguments(new: Page) -> None:
    x, y, z = torch.randn(3, 2, 2)
    args = new.run("args_named", x=x, input_y=y, input_z=z)["args"]
    made = proto(Three(), args)
    np.testing.assert_allclose(run(made, x, y, z)[0], Three()(x, y, z).numpy(), rtol=1e-6)
    made = proto(Three(), (x, {"z": z}))  # y has its default
    np.testing.assert_allclose(run(made, x, z)[0], Three()(x, z=z).numpy(), rtol=1e-6)


class Dict(torch.nn.Module):
    def forward(self, x: torch.Tensor, named: dict[str, torch.Tensor]) -> torch.Tensor:
        return x - named["key"]


def test_a_dict_at_the_end_names_arguments(new: Page) -> None:
    """"WRONG": the error says what the dict was taken for, and what to do."""
    with pytest.raises(ArgumentError, match=r"'key'; args ends in a dict.*\(\.\.\., \{\.\.\.\}, \{\}\)"):
        new.run("named_wrong", model=Dict(), x=torch.ones(2), y="key", z=torch.ones(2))


def test_an_empty_dict_behind_it_passes_a_dict(new: Page) -> None:
    x, z = torch.randn(2), torch.randn(2)
    new.run("named_right", model=Dict(), x=x, y="key", z=z)
    made = onnx.load(new.folder / "test.onnx.pb")
    np.testing.assert_array_equal(run(made, x, z)[0], (x - z).numpy())


def dims(value: onnx.ValueInfoProto) -> list[Any]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_dynamic_axes(new: Page) -> None:
    """What the page says the two calls produce."""
    new.run("sum_static")
    made = onnx.load(new.folder / "onnx.pb")
    assert [(v.name, dims(v)) for v in (*made.graph.input, *made.graph.output)] == [("x", [2, 2]), ("sum", [2])]
    new.run("sum_dynamic")
    made = onnx.load(new.folder / "onnx.pb")
    assert [v.name for v in (*made.graph.input, *made.graph.output)] == ["x", "sum"]
    assert dims(made.graph.input[0]) == ["my_custom_axis_name", 2] and len(dims(made.graph.output[0])) == 1
    x = torch.randn(5, 2)
    np.testing.assert_allclose(run(made, x)[0], x.sum(1).numpy(), rtol=1e-6)


def test_the_automatic_name_of_an_axis(new: Page) -> None:
    """`sum_dynamic_axes_1`, as the page has it."""
    new.run("sum_static")
    new.run("sum_dynamic")
    assert dims(onnx.load(new.folder / "onnx.pb").graph.output[0]) == ["sum_dynamic_axes_1"]


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize("number", [3, 2.5, True])
def test_numbers_as_arguments(number: Any) -> None:
    """"Support for primitive numeric inputs was added in 1.9": a module's number is part of the file, a script's is an input."""
    check(Three(), (torch.randn(2), torch.tensor(number)))
    made = proto(Model(lambda self, x, n: x * n), (torch.ones(2), number))
    assert len(made.graph.input) == 1
    np.testing.assert_allclose(run(made, torch.ones(2))[0], np.full(2, number, np.float32))


class Named(torch.nn.Module):
    def forward(self, x: torch.Tensor, mode: str) -> torch.Tensor:
        return x * 2 if mode == "twice" else x


def test_strings_as_arguments() -> None:
    """"The exporter does not support models with string inputs": a string is a constant of the file."""
    made = proto(Named(), (torch.ones(2), "twice"))
    assert len(made.graph.input) == 1 and run(made, torch.ones(2))[0].tolist() == [2, 2]
