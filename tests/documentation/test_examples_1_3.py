"""Every code example of the edition of PyTorch 1.3, with what it prints and what the text around it says."""

from __future__ import annotations

import ast
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import onnxport
from tests.compat.running import proto, run
from tests.documentation.running import Line, Page, lines, shown

# ---------------------------------------------------------------- AlexNet

# A printed node that ours differ from, and why.
ALEXNET = {
    "Shape": "the shape is known: torch.flatten(x, 1) is one Reshape to constant sizes",
    "Slice": "as Shape; attributes for starts and ends are illegal from opset 10 on",
    "Squeeze": "as Shape; an attribute for axes is illegal from opset 13 on",
    "Constant": "as Shape; constants stand among the initializers",
}
GEMM = {"alpha": "its default", "beta": "its default", "broadcast": "illegal from opset 7 on: Gemm broadcasts by itself"}


def same_but(found: dict[str, Any], wanted: dict[str, Any], without: dict[str, str]) -> bool:
    return found == {name: value for name, value in wanted.items() if name not in without}


def test_alexnet(old: Page, capsys: pytest.CaptureFixture[str]) -> None:
    """`verbose=True` prints the graph, and each node that the page shows is there: operator, attributes, shape, scope."""
    torch.manual_seed(0)
    model = old.run("alexnet")["model"]
    printed = capsys.readouterr().out
    assert "%actual_input_1 : Float(10, 3, 224, 224)" in printed and "%learned_15 : Float(1000)" in printed
    found = {line.scope: line for line in lines(printed)}
    compared = 0
    for line in shown("v1_3", "alexnet"):
        if line.op in ALEXNET:
            assert line.scope == "AlexNet" and found["AlexNet"].op == "Reshape"
            continue
        ours = found[line.scope]
        assert (ours.op, ours.shape) == (line.op, line.shape)
        assert same_but(ours.attributes, line.attributes, GEMM if line.op == "Gemm" else {})
        compared += 1
    assert compared == 5
    old.run("alexnet_checked")
    old.run("alexnet_caffe2")
    assert old.session["outputs"][0].shape == (10, 1000)
    for gone in ("predict_net", "workspace"):  # which the page's comment names
        with pytest.raises(AttributeError, match="there is no Caffe2 here"):
            getattr(old.session["rep"], gone)
    old.run("alexnet_onnxruntime")
    assert old.session["outputs"][0].shape == (10, 1000)
    x = torch.randn(10, 3, 224, 224)
    with torch.no_grad():
        want = model.eval()(x).numpy()
    np.testing.assert_allclose(run(old.session["model"], x)[0], want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("count", [1, 3, 17])
def test_names_may_be_fewer_than_inputs(count: int) -> None:
    """"a list here shorter than the number of inputs to the model, and we will only set that subset of names"."""
    names = [f"name{i}" for i in range(count)]
    model = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(8)])
    made = proto(model, (torch.ones(2, 3),), input_names=names)
    inputs = [made.graph.input[0].name, *[i.name for i in made.graph.initializer]]
    assert inputs[:count] == names and len(inputs) == 17
    np.testing.assert_allclose(run(made, torch.ones(2, 3))[0], model(torch.ones(2, 3)).detach().numpy(), rtol=1e-5)


# ---------------------------------------------------------------- tracing and scripting


def operators(of: list[Line]) -> list[str]:
    return [line.op for line in of if line.op != "Constant"]


def test_a_traced_loop_is_unrolled(old: Page, capsys: pytest.CaptureFixture[str]) -> None:
    """The graph of the page, node by node. The page's Constants are initializers, its Adds have no shape, ours have (2, 3)."""
    with pytest.warns(onnxport.errors.GuardWarning, match=r"y == 5 \(.*loop_traced\.py:7\)"):
        old.run("loop_traced")
    ours, page = lines(capsys.readouterr().out), shown("v1_3", "loop_traced")
    assert [line.op for line in ours] == operators(page) == ["Add"] * 4
    assert [line.attributes for line in ours] == [{}] * 4 and {line.shape for line in ours} == {(2, 3)}
    made = onnx.load(old.folder / "loop.onnx")
    constants = [onnx.numpy_helper.to_array(i).item() for i in made.graph.initializer]
    assert constants == [line.attributes["value"] for line in page if line.op == "Constant"] == [1, 2, 3, 4]
    x = torch.arange(6).reshape(2, 3)
    assert (run(made, x, torch.tensor(5))[0] == (x + 10).numpy()).all()


def test_a_traced_loop_that_must_not_be_unrolled(old: Page) -> None:
    """What the page warns of is an error on request."""
    with pytest.warns(onnxport.errors.GuardWarning):
        model = old.run("loop_traced")["model"]
    with pytest.raises(onnxport.errors.GuardError, match="count == 5"):
        onnxport.export(model, (torch.ones(2, 3), torch.tensor(5)), input_names=["x", "count"], strict=True)


def test_a_scripted_loop_stays_a_loop(old: Page, capsys: pytest.CaptureFixture[str]) -> None:
    """The graph of the page, and its numbers with nine turns.

    Ours is shorter: the page's Constant and two Casts make conditions that are always true. One is left out (Loop takes none), the other
    is an Identity of a constant, since a body may not return what it does not compute.
    """
    old.run("loop_mixed")
    ours, page = lines(capsys.readouterr().out), shown("v1_3", "loop_mixed")
    assert [line.op for line in page] == ["Constant", "Cast", "Loop", "Add", "Cast"]
    assert [line.op for line in ours] == ["Loop", "Add", "Identity"]
    for op in ("Loop", "Add"):
        assert next(line.shape for line in ours if line.op == op) == next(line.shape for line in page if line.op == op) == (2, 3)
    for example in ("loop_caffe2", "loop_onnxruntime"):
        old.run(example)
        said = [line[1:] for line in old.text(example, {}).splitlines() if line.startswith("#")]
        assert capsys.readouterr().out.split() == " ".join(said).split()


# ---------------------------------------------------------------- limitations


def test_in_place_assignment_by_scatter(old: Page) -> None:
    old.run("inplace_assignment")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a list of arrays as a tensor is slow
        old.run("inplace_assignment_caffe2")
        old.run("inplace_assignment_onnxruntime")


def test_in_place_assignment_by_index(old: Page) -> None:
    """What is commented out on the page, since PyTorch 1.3 could not export it."""
    text = old.text("inplace_assignment", {})
    part = [line[2:] for line in text.splitlines() if line.startswith(("# class", "# def", "#     "))]
    source = "\n".join([part[0], *["    " + line for line in part[1:]]])
    ast.parse(source)
    (old.folder / "indexed.py").write_text(source)
    exec(compile(source, str(old.folder / "indexed.py"), "exec"), old.session)
    model = old.session["InPlaceIndexedAssignment"]()
    new_data = torch.arange(4.0)
    made = proto(model, (torch.zeros(3, 4), torch.tensor(1), new_data), input_names=["data", "index", "new_data"])
    for index in (0, 1, 2, -1):
        data = torch.randn(3, 4)
        found = run(made, data, torch.tensor(index), new_data)[0]
        np.testing.assert_array_equal(found, model(data.clone(), torch.tensor(index), new_data).numpy())


@pytest.mark.parametrize("opset", [7, 9, 11, 18])
def test_tensor_lists(old: Page, opset: int) -> None:
    """The page calls `x.unbind(0)` not exportable; it is, as its second form is."""
    made = old.run("tensor_list")
    for model in (made["Model"](), made["AnotherModel"]()):
        exported = proto(model, (made["x"],), opset_version=opset)
        x = torch.randn(3, 3)
        for found, want in zip(run(exported, x), model(x), strict=True):
            np.testing.assert_array_equal(found, want.numpy())


# ---------------------------------------------------------------- symbolic functions


def test_elu(old: Page) -> None:
    """The function that the page adds, registered for the operator, with the helper that it calls."""
    elu = old.run("elu", _scalar=onnxport.symbolic_helper._scalar)["elu"]
    onnxport.register_custom_op_symbolic("aten::elu", elu, 9)
    try:
        made = proto(torch.nn.ELU(0.5), (torch.randn(2, 3),))
    finally:
        onnxport.unregister_custom_op_symbolic("aten::elu", 9)
    assert [(n.op_type, n.attribute[0].name, n.attribute[0].f) for n in made.graph.node] == [("Elu", "alpha", 0.5)]
    x = torch.randn(4, 3)[:2]
    np.testing.assert_allclose(run(made, x)[0], torch.nn.functional.elu(x, 0.5).numpy(), rtol=1e-6)


def test_custom_operator(old: Page, foo_forward: None) -> None:
    """The bare name `Foo` of the page, which no standard has, goes into a domain of its own.

    Faults of the page: `FooModule` is called FooModel; attr1, attr2 and the dummy inputs are the reader's.
    """
    x = torch.randn(2, 3)
    with pytest.warns(UserWarning, match=r"Foo is no operator of ONNX; it is written as custom_ops::Foo"):
        old.run("custom_operator", {"FooModule": "FooModel"}, attr1=1.5, attr2=2, dummy_input1=x, dummy_input2=x + 1)
    made = onnx.load(old.folder / "model.onnx")
    assert [(n.domain, n.op_type) for n in made.graph.node] == [("custom_ops", "Foo")]
    assert {a.name: a.f or a.i for a in made.graph.node[0].attribute} == {"attr1": 1.5, "attr2": 2}
    assert {o.domain: o.version for o in made.opset_import}["custom_ops"] == 1


# ---------------------------------------------------------------- questions


def test_lstm(old: Page, capsys: pytest.CaptureFixture[str]) -> None:
    made = old.run("lstm", nn=torch.nn, onnx=onnx)
    static, dynamic = capsys.readouterr().out.split("name:")[1:]
    assert static.count("dim_value") == 3 and "dim_param" not in static
    assert 'dim_param: "sequence"' in dynamic and dynamic.count("dim_value") == 2
    model, proto_ = made["model"], onnx.load(old.folder / "lstm.onnx")
    for length in (5, 9):
        x, h, c = torch.randn(length, 3, 10), torch.randn(8, 3, 20), torch.randn(8, 3, 20)
        output, (hn, cn) = model(x, (h, c))
        for found, want in zip(run(proto_, x, h, c), (output, hn, cn), strict=True):
            np.testing.assert_allclose(found, want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_implicit_cast(old: Page) -> None:
    """The page's own exporter wrote 3 as int64 here; ours asks the type of the tensor beside."""
    (old.folder / "models").mkdir()
    with pytest.warns(DeprecationWarning, match="example_outputs"):
        old.run("implicit_cast")
    made = onnx.load(old.folder / "models" / "implicit_cast.onnx")
    assert {i.data_type for i in made.graph.initializer} == {onnx.TensorProto.FLOAT}
    np.testing.assert_array_equal(run(made, torch.tensor([2.5]))[0], [7.5])
