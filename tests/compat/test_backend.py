"""`onnxport.backend`: files of every kind run through ONNX's backend interface, with PyTorch's numbers."""

from __future__ import annotations

import importlib
import io
import re
from typing import Any

import numpy as np
import onnx
import onnx.helper
import pytest
import torch
from onnx.backend import base
from onnx.backend.test.case import node as node_cases

import onnxport
from onnxport import OperatorExportTypes, backend, errors, runtime, verify
from onnxport.backend import blocks
from onnxport.lower.lowering import Lowering
from onnxport.symbolics import foreign
from tests.compat.kept_cases import CASES, Case
from tests.compat.running import Model, foo, pair, proto, registered, rows

X = torch.randn(4, 3)


def flat(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [tensor for member in value for tensor in flat(member)]


def hold(function: Any, make: Any, sizes: tuple[int, ...] = (6, 3), functions: Any = None, **options: Any) -> onnx.ModelProto:
    """Exports at size 4 with that axis dynamic, and compares at other sizes: numbers, dtypes, shapes."""
    model = function if isinstance(function, torch.nn.Module) else Model(function)
    args, other = make(4), make(6)
    axes = {f"i{k}": {axis: "n" for axis in range(a.dim()) if a.shape[axis] != b.shape[axis]} for k, (a, b) in enumerate(zip(args, other))}
    made = proto(model.eval(), args, input_names=list(axes), dynamic_axes=axes, **options)
    representation = backend.prepare(made, functions=functions)
    for size in sizes:
        given = make(size)
        with torch.no_grad():
            wanted = flat(model(*[tensor.clone() for tensor in given]))
        found = representation.run([tensor.numpy() for tensor in given])
        assert len(found) == len(wanted)
        for got, want in zip(found, wanted):
            assert (got.dtype, got.shape) == (want.numpy().dtype, tuple(want.shape))
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6)
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_every_operator_as_an_aten_node(case: Case) -> None:
    made = hold(*case[1:], operator_export_type=OperatorExportTypes.ONNX_ATEN)
    kept = [node for node in made.graph.node if node.domain == "org.pytorch.aten"]
    assert kept or case[0] == "bool"


def test_a_device_that_an_aten_node_names() -> None:
    """Attention masks of Hugging Face are made so."""
    made = hold(lambda x: x.to(x.device, torch.float64) + x, lambda n: (torch.randn(n, 3),), operator_export_type=OperatorExportTypes.ONNX_ATEN)
    assert b"device" in [a.s for n in made.graph.node for a in n.attribute if a.name == "overload_name"]


@pytest.mark.parametrize("kind", [OperatorExportTypes.ONNX_FALLTHROUGH, OperatorExportTypes.ONNX_ATEN_FALLBACK, OperatorExportTypes.RAW])
@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: case[0])
def test_every_operator_as_an_unknown_one(case: Case, kind: OperatorExportTypes, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if onnxport translated nothing: each form in which an operator is kept holds all that PyTorch needs."""
    monkeypatch.setattr(Lowering, "translates", lambda self, node: not node.op.startswith("aten::") or foreign._is_python(node))
    if case[0] == "mha":  # it takes a number from a size, and of the operator that gives it nothing says what the size depends on
        with pytest.raises(errors.BakedValueError, match="is turned into a Python number"):
            hold(*case[1:], operator_export_type=kind)
        return
    hold(*case[1:], operator_export_type=kind)


# ---------------------------------------------------------------------- the interface


def test_the_interface_of_onnx() -> None:
    made = proto(torch.nn.Linear(3, 2), (X,))
    assert issubclass(backend.Backend, base.Backend)
    representation = backend.prepare(made)
    assert isinstance(representation, base.BackendRep)
    assert backend.supports_device("CPU") and not backend.supports_device("TPU") and backend.is_compatible(made)
    found = backend.run_model(made, X.numpy())
    np.testing.assert_array_equal(found[0], representation.run(X.numpy())[0])
    assert isinstance(found, tuple) and found[made.graph.output[0].name] is found[0]


def test_run_node() -> None:
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    (found,) = backend.run_node(node, (np.float32([1, 2]), np.float32([3])))
    np.testing.assert_array_equal(found, np.float32([4, 5]))
    (found,) = backend.run_node(onnx.helper.make_node("ReduceSum", ["a"], ["c"], axes=[0]), np.float32([1, 2]), opset_version=11)
    np.testing.assert_array_equal(found, np.float32([3]))
    kept = onnx.helper.make_node("ATen", ["a", "d"], ["c"], domain="org.pytorch.aten", operator="triu")
    (found,) = backend.run_node(kept, (np.ones((2, 2), np.float32), np.int64(1)))
    np.testing.assert_array_equal(found, np.float32([[0, 1], [0, 0]]))


@pytest.mark.parametrize("give", [lambda t: t.numpy(), lambda t: (t.numpy(),), lambda t: [t], lambda t: {"x": t.numpy()}])
def test_every_form_of_inputs(give: Any) -> None:
    for kind in (OperatorExportTypes.ONNX, OperatorExportTypes.ONNX_ATEN):
        representation = backend.prepare(proto(torch.relu, (X,), input_names=["x"], output_names=["y"], operator_export_type=kind))
        np.testing.assert_array_equal(representation.run(give(X))["y"], torch.relu(X).numpy())


def test_every_form_of_model(tmp_path: Any) -> None:
    for kind in (OperatorExportTypes.ONNX, OperatorExportTypes.ONNX_ATEN):
        path = tmp_path / "m.onnx"
        program = onnxport.export(torch.nn.Linear(3, 2), (X,), path, operator_export_type=kind)
        for model in (program, path, str(path), path.read_bytes(), onnx.load(path)):
            assert backend.prepare(model).run(X.numpy())[0].shape == (4, 2)


def test_initializers_that_are_inputs_may_be_given() -> None:
    for kind in (OperatorExportTypes.ONNX, OperatorExportTypes.ONNX_ATEN):
        made = proto(torch.nn.Linear(3, 2), (X,), input_names=["x"], keep_initializers_as_inputs=True, operator_export_type=kind)
        representation = backend.prepare(made)
        assert representation.run(X.numpy())[0].any()
        zeros = {name: np.zeros_like(onnx.numpy_helper.to_array(t)) for t in made.graph.initializer for name in [t.name]}
        assert not representation.run({"x": X.numpy(), **zeros})[0].any()


def test_caffe2s_own_parts_say_why_they_are_absent() -> None:
    representation = backend.prepare(proto(torch.relu, (X,)))
    for name in ("predict_net", "workspace"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': it was .*there is no Caffe2 here"):
            getattr(representation, name)
    with pytest.raises(AttributeError, match="no attribute 'other'$"):
        _ = representation.other


def test_devices() -> None:
    made = proto(torch.relu, (X,))
    if not backend.supports_device("CUDA"):
        with pytest.warns(UserWarning, match="has no CUDA here, so the model runs on the CPU"):
            assert backend.prepare(made, device="CUDA:0").run(X.numpy())[0].shape == (4, 3)
    with pytest.raises(errors.ArgumentError, match="device='TPU': it must be"):
        backend.prepare(made, "TPU")


@pytest.mark.parametrize(("inputs", "message"), [
    ((), r"takes the inputs \(x\); wrong here: 0 given"),
    ((X, X), r"takes the inputs \(x\); wrong here: 2 given"),
    ({"y": X}, r"takes the inputs \(x\); wrong here: x, y"),
    (X.double(), "the input x is a tensor of FLOAT, and DOUBLE was given"),
    (X[0], r"the input x has the shape \(4, 3\), and \(3,\) was given"),
    (X[:2], r"the input x has the shape \(4, 3\), and \(2, 3\) was given"),
])
def test_wrong_inputs(inputs: Any, message: str) -> None:
    for kind in (OperatorExportTypes.ONNX, OperatorExportTypes.ONNX_ATEN):
        representation = backend.prepare(proto(torch.relu, (X,), input_names=["x"], operator_export_type=kind))
        with pytest.raises(errors.ArgumentError, match=message):
            representation.run(inputs)


def test_what_is_no_model() -> None:
    with pytest.raises(errors.ArgumentError, match="the model must be an onnx.ModelProto, its bytes, a path or an ONNXProgram, not a int"):
        backend.prepare(3)


def test_strings_and_bfloat16_pass_through() -> None:
    text = onnx.helper.make_node("Identity", ["a"], ["b"])
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.STRING, [2]) for name in "ab"]
    made = onnx.helper.make_model(onnx.helper.make_graph([text], "g", info[:1], info[1:]), ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 18)])
    assert backend.run(made, np.array(["up", "down"]))[0].tolist() == ["up", "down"]
    for kind in (OperatorExportTypes.ONNX, OperatorExportTypes.ONNX_ATEN):
        found = backend.run(proto(lambda a: a * 2, (X.bfloat16(),), operator_export_type=kind), X.bfloat16())[0]
        assert found.dtype.name == "bfloat16" and (found.astype(np.float32) == (X.bfloat16() * 2).float().numpy()).all()


# ---------------------------------------------------------------------- custom nodes


def test_a_custom_operator_that_was_kept_runs_in_pytorch() -> None:
    hold(lambda a, b: foo(torch.relu(a), b, 0.1, 2) + 1, lambda n: (torch.randn(n, 3).double(), torch.randn(n, 3).double()),
         operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)
    hold(lambda a: pair(a, [3, 4], "up"), lambda n: (torch.randn(n, 3),), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)
    hold(lambda a, b: rows(a, [b, a], 3), lambda n: (torch.randn(n, 3), torch.randn(n + 1, 3)), operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)


class Scaled(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.ops.onnxport_tests.foo(a, b, 1.5, a.shape[0])


def test_a_number_that_varies_is_an_input_with_its_name() -> None:
    made = hold(torch.jit.script(Scaled()), lambda n: (torch.randn(n, 3), torch.randn(n, 3)),
                operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)
    node = next(node for node in made.graph.node if node.op_type == "foo")
    assert [a.strings for a in node.attribute if a.name == "input_names"] == [[b"a", b"b", b"y"]]


def custom() -> onnx.ModelProto:
    with registered("onnxport_tests::foo", lambda g, a, b, x, y: g.op("acme::Foo", a, b, x_f=0.1, words_s=["p", "q"], t_t=torch.tensor([2.0]))):
        return proto(lambda a, b: foo(torch.relu(a), b, 0.1, 2) + 1, (X, X))


def test_a_node_of_ones_own_needs_a_function() -> None:
    with pytest.raises(runtime.RunError, match=r"nobody runs acme::Foo: .*prepare\(model, functions=\{\"acme::Foo\": function\}\)"):
        backend.prepare(custom())
    assert not backend.is_compatible(custom())
    seen: dict[str, Any] = {}

    def run(a: torch.Tensor, b: torch.Tensor, **attributes: Any) -> torch.Tensor:
        seen.update(attributes)
        return a * b

    (found,) = backend.prepare(custom(), functions={"acme::Foo": run}).run((X.numpy(), X.numpy()))
    np.testing.assert_allclose(found, (torch.relu(X) * X + 1).numpy(), rtol=1e-6)
    assert (seen["x"], seen["words"], seen["t"].tolist()) == (0.1, ["p", "q"], [2.0])


@pytest.mark.parametrize(("function", "message"), [(lambda a, b, **_: None, "NoneType"), (lambda a, b, **_: object(), "object"), (lambda a, b, **_: {}, "dict")])
def test_what_a_function_may_not_return(function: Any, message: str) -> None:
    with pytest.raises(runtime.RunError, match=f"acme::Foo gave a {message}, which is no tensor"):
        backend.prepare(custom(), functions={"acme::Foo": function}).run((X, X))


def test_too_few_results() -> None:
    node = onnx.helper.make_node("Two", ["a"], ["b", "c"], domain="acme")
    with pytest.raises(runtime.RunError, match="acme::Two gave 1 results, and the node has 2 outputs"):
        backend.run_node(node, X.numpy(), functions={"acme::Two": lambda a: a})


def test_functions_that_are_none() -> None:
    with pytest.raises(errors.ArgumentError, match='functions must be a dict of "domain::Name" to a function, not \'Foo\' to int'):
        backend.prepare(custom(), functions={"Foo": 3})


def test_a_function_goes_before_the_standard() -> None:
    (found,) = backend.run(proto(torch.relu, (X,)), X, functions={"ai.onnx::Relu": lambda a: a - 1})
    np.testing.assert_array_equal(found, (X - 1).numpy())


@pytest.mark.parametrize(("attributes", "inputs", "message"), [
    ({"operator": "nothing"}, ["a"], "nobody runs org.pytorch.aten::ATen"),
    ({"operator": "triu", "overload_name": "strange"}, ["a"], "nobody runs org.pytorch.aten::ATen"),
    ({"operator": "triu", "wrong": 1}, ["a"], r"does not fit the operator in PyTorch:\n  aten::triu.default: it has no wrong"),
    ({"operator": "triu"}, [], r"aten::triu.default: self \(Tensor\) is missing"),
    ({"operator": "relu"}, ["a", "a"], "it takes 1 inputs, and the node has 2"),
    ({"operator": "triu", "diagonal": 1.5}, ["a"], "diagonal is an int, and the node has 1.5"),
    ({"operator": "triu", "diagonal": "x"}, ["a"], "diagonal is a int, and the node has a str"),
])
def test_aten_nodes_that_pytorch_does_not_know(attributes: dict[str, Any], inputs: list[str], message: str) -> None:
    node = onnx.helper.make_node("ATen", inputs, ["c"], domain="org.pytorch.aten", **attributes)
    with pytest.raises(runtime.RunError, match=message):
        backend.run_node(node, {"a": X.numpy()} if inputs else {})


def test_an_aten_node_that_a_symbolic_function_wrote() -> None:
    """Without an overload, numbers as attributes: the form of `g.at`."""
    with registered("onnxport_tests::foo", lambda g, a, b, x, y: g.at("add", a, b, alpha_i=3)):
        (found,) = backend.run(proto(lambda a, b: foo(a, b, 1.5, 2), (X, X)), (X, X))
    np.testing.assert_allclose(found, (X * 4).numpy(), rtol=1e-6)


# ---------------------------------------------------------------------- control flow


class Branch(torch.nn.Module):
    def forward(self, a: torch.Tensor) -> torch.Tensor:
        if a.sum() > 0:
            a = torch.special.bessel_j0(a) + a.shape[0]
        else:
            a = a - 1
        return a


class Repeat(torch.nn.Module):
    def forward(self, a: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        seen = []
        for k in range(n):
            a = torch.special.bessel_j0(a) + k
            if a.sum() > 3:
                a = torch.special.bessel_j1(a)
            seen.append(a)
        return a, torch.stack(seen)


KEPT = [OperatorExportTypes.ONNX_FALLTHROUGH, OperatorExportTypes.ONNX_ATEN_FALLBACK, OperatorExportTypes.ONNX_ATEN]


@pytest.mark.parametrize("kind", KEPT)
def test_kept_operators_in_branches(kind: OperatorExportTypes) -> None:
    representation = backend.prepare(proto(torch.jit.script(Branch()), (X,), operator_export_type=kind))
    for given in (X.abs(), -X.abs()):
        np.testing.assert_allclose(representation.run(given)[0], Branch()(given).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KEPT)
def test_kept_operators_in_loops(kind: OperatorExportTypes) -> None:
    representation = backend.prepare(proto(torch.jit.script(Repeat()), (X, 3), operator_export_type=kind))
    for count in (1, 4):
        for found, wanted in zip(representation.run((X, count)), Repeat()(X, count)):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_a_loop_of_no_iterations() -> None:
    body = onnx.parser.parse_graph("body (int64 i, bool c, float[2] a) => (bool c2, float[2] b, float[2] s) "
                                   "{ c2 = Identity(c)  b = acme.Foo(a)  s = Identity(b) }")
    node = onnx.helper.make_node("Loop", ["n", "", "a"], ["b", "s"], body=body)
    graph = onnx.helper.make_graph([node], "g", [onnx.helper.make_tensor_value_info("n", 7, []), onnx.helper.make_tensor_value_info("a", 1, [2])],
                                   [onnx.helper.make_tensor_value_info("b", 1, [2]), onnx.helper.make_tensor_value_info("s", 1, [None, 2])])
    made = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("acme", 1)])
    representation = backend.prepare(made, functions={"acme::Foo": lambda a: a * 2})
    last, seen = representation.run((np.int64(3), np.float32([1, 2])))
    assert last.tolist() == [8, 16] and seen.tolist() == [[2, 4], [4, 8], [8, 16]]
    last, seen = representation.run((np.int64(0), np.float32([1, 2])))
    assert last.tolist() == [1, 2] and seen.shape == (0, 2) and seen.dtype == np.float32


@pytest.mark.parametrize("attributes", [
    {}, {"scan_input_axes": [1, 0]}, {"scan_input_directions": [1, 0]}, {"scan_output_axes": [1]}, {"scan_output_directions": [1]},
    {"scan_output_axes": [-1], "scan_output_directions": [1], "scan_input_axes": [-1, 0]}])
def test_a_scan_is_the_same_as_in_onnx_runtime(attributes: dict[str, Any]) -> None:
    def model(op: str) -> onnx.ModelProto:
        body = onnx.parser.parse_graph(f"body (float[2] a, float[2] x, float y) => (float[2] b, float[2] s) {{ t = {op}(a, x)  b = Mul(t, y)  s = Identity(b) }}")
        node = onnx.helper.make_node("Scan", ["a", "x", "y"], ["b", "s"], body=body, num_scan_inputs=2, **attributes)
        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph([node], "g", [info("a", 1, [2]), info("x", 1, [2, 2]), info("y", 1, [2])], [info("b", 1, [2]), info("s", 1, [2, 2])])
        return onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("acme", 1)])

    given = (np.float32([1, 2]), np.float32([[1, 2], [3, 4]]), np.float32([5, 6]))
    wanted = backend.run(model("Add"), given)
    for found, want in zip(backend.run(model("acme.Foo"), given, functions={"acme::Foo": torch.add}), wanted):
        np.testing.assert_array_equal(found, want)


for module in ("if_", "loop", "scan", "rangeop"):  # all of onnx's cases take seconds to make
    importlib.import_module(f"onnx.backend.test.case.node.{module}")
CONTROL_TESTS = {test.name: test for test in node_cases._NodeTestCases if re.fullmatch(r"test_(if|loop|scan|range_.*_expanded).*", test.name)}


@pytest.mark.parametrize("name", sorted(CONTROL_TESTS))
def test_onnxs_own_tests_of_control_flow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run here as if a kept operator stood in each block."""
    monkeypatch.setattr(backend, "_is_standard", lambda proto, functions: False)
    monkeypatch.setattr(blocks, "holds_kept", lambda node, model: node.op_type in blocks.CONTROL)
    test = CONTROL_TESTS[name]
    if name == "test_scan_sum":
        with pytest.raises(runtime.RunError, match="Scan of opset 8 with a kept operator inside is not supported"):
            backend.prepare(test.model)
        return
    representation = backend.prepare(test.model)
    for inputs, outputs in test.data_sets:
        for found, wanted in zip(representation.run(list(inputs)), outputs, strict=True):
            for got, want in zip(found if isinstance(found, list) else [found], wanted if isinstance(wanted, list) else [wanted], strict=True):
                assert (got.dtype, got.shape) == (want.dtype, want.shape)
                np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_standard_operator_without_a_kernel_runs_in_onnxs_reference() -> None:
    """ONNX Runtime has no RoiAlign at opset 22; the parts around it still run there."""
    made = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 22]> g (float[1,1,4,4] x, float[1,4] r, int64[1] b) => (float[1,1,2,2] y) '
                                   '{ z = Relu(x)  w = RoiAlign <output_height=2, output_width=2> (z, r, b)  y = Neg(w) }')
    given = (np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.float32([[0, 0, 3, 3]]), np.int64([0]))
    made.opset_import[0].version = 16
    wanted = backend.run(made, given)[0]
    made.opset_import[0].version = 22
    np.testing.assert_allclose(backend.run(made, given)[0], wanted, rtol=1e-5)


def test_a_broken_model_is_refused() -> None:
    made = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Relu(nowhere) }')
    with pytest.raises(runtime.RunError, match="nowhere"):
        backend.prepare(made).run(np.float32([1, 2]))


def test_functions_of_the_model_are_run_whole_or_inlined() -> None:
    text = '''<ir_version: 8, opset_import: ["" : 18, "local" : 1, "acme" : 1]> g (float[2] x) => (float[2] y) { y = local.Twice(x) }
              <domain: "local", opset_import: ["" : 18, "acme" : 1]> Twice (a) => (c) { b = OP(a, a)  c = Neg(b) }'''
    for op, functions in (("Add", None), ("acme.Foo", {"acme::Foo": torch.add})):
        made = onnx.parser.parse_model(text.replace("OP", op))
        assert backend.run(made, np.float32([1, 2]), functions=functions)[0].tolist() == [-2, -4]


def test_a_long_model_of_kept_nodes_is_linear() -> None:
    def chain(a: torch.Tensor) -> torch.Tensor:
        for _ in range(300):
            a = torch.relu(a) * 0.99
        return a

    stream = io.BytesIO()
    onnxport.export(Model(chain), (X,), stream, operator_export_type=OperatorExportTypes.ONNX_ATEN)
    representation = backend.prepare(stream.getvalue())
    np.testing.assert_allclose(representation.run(X)[0], chain(X).numpy(), rtol=1e-4)
    assert len(representation._engine.block.steps) == 600


# ---------------------------------------------------------------------- the program itself


@pytest.mark.parametrize("kind", KEPT)
def test_a_program_with_kept_operators_runs_and_is_verified(kind: OperatorExportTypes, tmp_path: Any) -> None:
    model = Model(lambda a: torch.special.bessel_j0(a) * 2).eval()
    path = tmp_path / "m.onnx"
    program = onnxport.export(model, (X,), path, operator_export_type=kind, verify=True, input_names=["a"], dynamic_axes={"a": {0: "n"}})
    assert torch.allclose(program(torch.ones(7, 3))[0], model(torch.ones(7, 3)))
    report = verify.verify(path, model, (X,))
    assert report.passed and "n=" in str(report)


def test_a_program_with_a_node_of_ones_own_says_what_it_needs() -> None:
    with registered("onnxport_tests::foo", lambda g, a, b, x, y: g.op("acme::Foo", a, b)):
        program = onnxport.export(Model(lambda a, b: foo(a, b, 0.1, 2)), (X, X))
    with pytest.raises(runtime.RunError, match=r"nobody runs acme::Foo: .*backend\.prepare\(model, functions="):
        program(X, X)
    assert backend.prepare(program, functions={"acme::Foo": lambda a, b: a + b}).run((X, X))[0].shape == (4, 3)
