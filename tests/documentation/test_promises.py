"""Sentences of the documentation that promise something and have no test elsewhere. Each quotes or names the sentence that it holds to."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import onnxport
from onnxport import OperatorExportTypes, TrainingMode, errors, symbolic_helper
from onnxport.options import newest_opset
from tests.compat.running import Model, check, foo, ops, pair, proto, registered, run

nn = torch.nn
X = torch.randn(2, 3)


# ---------------------------------------------------------------- tracing and scripting


def test_a_trace_runs_the_model_once() -> None:
    """"it executes the model once with the given args"."""
    count = [0]

    def forward(x: torch.Tensor) -> torch.Tensor:
        count[0] += 1
        return x + 1

    proto(forward, (X,), input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert count == [1]


class Branching(nn.Module):
    def forward(self, x: torch.Tensor, n: int, scale: float, double: bool) -> torch.Tensor:
        if double:
            x = x * 2
        for i in range(n):
            x = x + i
        return x * scale


def test_a_script_is_not_traced() -> None:
    """"No tracing will be performed": ways that the example does not go are in the file. Numbers of a script are inputs of it."""
    scripted = torch.jit.script(Branching())
    made = proto(scripted, (X, 2, 1.5, False), input_names=["x", "n", "scale", "double"], dynamic_axes={"x": {0: "rows"}})
    assert [i.name for i in made.graph.input] == ["x", "n", "scale", "double"] and {"If", "Loop"} & set(ops(made))
    for x, n, scale, double in ((X, 2, 1.5, False), (torch.randn(5, 3), 4, -2.0, True), (X, 0, 0.5, True)):
        found = run(made, x, torch.tensor(n), torch.tensor(scale), torch.tensor(double))[0]
        np.testing.assert_allclose(found, scripted(x, n, scale, double).numpy(), rtol=1e-6)


def test_a_script_needs_args() -> None:
    """"args are still required"."""
    with pytest.raises(errors.ArgumentError, match=r"do not fit the model's forward: .*'x'$"):
        onnxport.export(torch.jit.script(Branching()), ())


@pytest.mark.parametrize("model", [torch.relu, Model(torch.relu), torch.jit.script(nn.ReLU()), torch.jit.trace(nn.ReLU(), X)],
                         ids=["function", "module", "script", "trace"])
def test_kinds_of_models(model: Any) -> None:
    """"model (torch.nn.Module, torch.jit.ScriptModule or torch.jit.ScriptFunction)"."""
    stream = io.BytesIO()
    onnxport.export(model, X, stream)
    assert ops(onnx.load_from_string(stream.getvalue())) == ["Relu"]


def test_a_script_function() -> None:
    @torch.jit.script
    def function(x: torch.Tensor, n: int) -> torch.Tensor:
        for i in range(n):
            x = x + i
        return x

    stream = io.BytesIO()
    onnxport.export(function, (X, 3), stream)
    for n in (3, 5):
        np.testing.assert_allclose(run(onnx.load_from_string(stream.getvalue()), X, torch.tensor(n))[0], function(X, n).numpy())


def test_parts_may_be_scripted() -> None:
    """"You can compose tracing and scripting"."""
    part = torch.jit.script(Branching())

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = part

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.part(x.relu(), 3, 2.0, True) + 1

    check(Whole(), (X,))


def test_string_inputs_of_scripts() -> None:
    """"the exporter does not support models with string inputs"."""
    class Named(nn.Module):
        def forward(self, x: torch.Tensor, mode: str) -> torch.Tensor:
            return x * 2 if mode == "twice" else x

    made = proto(torch.jit.script(Named()), (X, "twice"))
    assert len(made.graph.input) == 1
    np.testing.assert_allclose(run(made, X)[0], 2 * X.numpy())


@pytest.mark.parametrize("opset", [7, 11, 18])
def test_lists_of_tensors(opset: int) -> None:
    """"Can tensor lists be exported? Yes, for opset_version >= 11": lists of known length at every opset, as inputs and as outputs."""
    def forward(items: list[torch.Tensor]) -> list[torch.Tensor]:
        return [item * 2 for item in items] + list(items[0].unbind(0))

    made = proto(forward, ([X, X + 1],), opset_version=opset)
    assert len(made.graph.input) == 2 and len(made.graph.output) == 4
    for found, want in zip(run(made, X, X + 1), forward([X, X + 1]), strict=True):
        np.testing.assert_allclose(found, want.numpy())


# ---------------------------------------------------------------- scalars


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8])
def test_scalars_take_the_right_type(dtype: torch.dtype) -> None:
    """"Scalars are exported as constant tensors. The exporter will determine the right data type for scalars"."""
    x = torch.arange(1, 7).reshape(2, 3).to(dtype)
    made = check(lambda x: (x + 2) * 3 - 1, (x,))
    assert made.graph.output[0].type.tensor_type.elem_type == made.graph.input[0].type.tensor_type.elem_type
    check(lambda x: x / 2 + 0.5, (x,))
    assert "Cast" not in ops(made)


# ---------------------------------------------------------------- arguments of export


def test_files_of_every_kind(tmp_path: Path) -> None:
    """"a file-like object (such that f.fileno() returns a file descriptor) or a string containing a file name"; a BytesIO; a Path."""
    stream = io.BytesIO()
    onnxport.export(nn.ReLU(), X, stream)
    with open(tmp_path / "a.onnx", "wb") as file:
        onnxport.export(nn.ReLU(), X, file)
    onnxport.export(nn.ReLU(), X, str(tmp_path / "b.onnx"))
    onnxport.export(nn.ReLU(), X, tmp_path / "c.onnx")
    assert {(tmp_path / f"{name}.onnx").read_bytes() for name in "abc"} == {stream.getvalue()}


def test_parameters_as_inputs_in_the_order_of_the_state_dict() -> None:
    """"the exported model will first take all of its parameters as arguments, ordered as model.state_dict().values()".

    A fault of the page: PyTorch's exporter puts them behind the inputs, as here.
    """
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()
    made = proto(model, (X,), export_params=False)
    names = [i.name for i in made.graph.input]
    assert names[1:] == [name for name in model.state_dict() if name in names] and not made.graph.initializer
    values = [value for name, value in model.state_dict().items() if name in names]
    np.testing.assert_allclose(run(made, X, *values)[0], model(X).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    """"prints a description of the model being exported to stdout. In addition, the final ONNX graph will include the field doc_string"."""
    plain = proto(torch.relu, (X,))
    assert not capsys.readouterr().out and not any(n.doc_string for n in plain.graph.node)
    made = proto(torch.relu, (X,), verbose=True)
    assert "onnx::Relu(" in capsys.readouterr().out
    assert all("running.py:" in n.doc_string for n in made.graph.node)


def test_verbose_enables_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """"If True, ONNX exporter logging will be enabled": for this export, unless it is already."""
    logger = logging.getLogger("onnxport")
    proto(torch.relu, (X,), verbose=True)
    assert "onnxport: capture: " in capsys.readouterr().err and not logger.handlers and logger.level == logging.NOTSET
    onnxport.enable_log()
    proto(torch.relu, (X,), verbose=True)
    assert capsys.readouterr().err.count("onnxport: capture: ") == 1 and len(logger.handlers) == 1
    onnxport.disable_log()
    proto(torch.relu, (X,))
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("options", "expected"), [
    ({}, False), ({"keep_initializers_as_inputs": True}, True), ({"keep_initializers_as_inputs": False}, False),
    ({"operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH}, True), ({"operator_export_type": OperatorExportTypes.ONNX_ATEN_FALLBACK}, True),
    ({"operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH, "keep_initializers_as_inputs": False}, False),
    ({"opset_version": 8}, True), ({"opset_version": 8, "keep_initializers_as_inputs": False}, True), ({"opset_version": 9}, False),
])
def test_initializers_as_inputs(options: dict[str, Any], expected: bool) -> None:
    """The paragraph on keep_initializers_as_inputs, sentence by sentence."""
    made = proto(nn.Linear(3, 4), (X,), **options)
    assert (len(made.graph.input) == 3) is expected and len(made.graph.initializer) == 2


@pytest.mark.parametrize("opset", [7, 16, newest_opset()])
def test_opsets(opset: int) -> None:
    """"Must be >= 7 and <= 16": up to the newest here. "default 14" (9 in the parameter guide): 18 here."""
    assert {o.domain: o.version for o in proto(torch.relu, (X,), opset_version=opset).opset_import}[""] == opset
    assert proto(torch.relu, (X,)).opset_import[0].version == symbolic_helper._default_onnx_opset_version == 18
    for wrong in (6, newest_opset() + 1, "14", True):
        with pytest.raises(errors.ArgumentError, match=r"opset_version=.*from 7 to"):
            proto(torch.relu, (X,), opset_version=wrong)


def test_the_opsets_of_the_parameter_guide() -> None:
    """"The value must be _onnx_main_opset or in _onnx_stable_opsets"."""
    allowed = [*symbolic_helper._onnx_stable_opsets, symbolic_helper._onnx_main_opset]
    assert allowed == list(range(7, newest_opset() + 1)) and symbolic_helper._export_onnx_opset_version in allowed


def test_constant_folding() -> None:
    """"replace some of the ops that have all constant inputs with pre-computed constant nodes". ("default False" in older editions.)"""
    class Folded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ (self.weight.t() * 2)

    model = Folded()
    assert ops(proto(model, (X,))) == ["MatMul"]
    assert ops(proto(model, (X,), do_constant_folding=False)) == ["Transpose", "Mul", "MatMul"]
    for folding in (True, False):
        np.testing.assert_allclose(run(proto(model, (X,), do_constant_folding=folding), X)[0], model(X).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_dynamic_axes_name_inputs_and_outputs() -> None:
    """"KEY (str): an input or output name. Each name must also be provided in input_names or output_names"."""
    with pytest.raises(errors.ArgumentError, match="'z'"):
        proto(torch.relu, (X,), input_names=["x"], dynamic_axes={"z": {0: "n"}})
    made = proto(torch.relu, (X,), input_names=["x"], output_names=["y"], dynamic_axes={"x": [0, 1], "y": {0: "rows"}})
    assert [d.dim_param for d in made.graph.input[0].type.tensor_type.shape.dim] == ["x_dynamic_axes_1", "x_dynamic_axes_2"]
    with pytest.raises(errors.ArgumentError, match="a dict of axis to name or a list of axes"):
        proto(torch.relu, (X,), input_names=["x"], dynamic_axes={"x": 0})


@pytest.mark.parametrize(("given", "version"), [({}, 1), ({"acme": 7}, 7), ({"acme": 7, "other": 3}, 7)])
def test_custom_opsets(given: dict[str, int], version: int) -> None:
    """"If a custom opset is referenced by model but not mentioned in this dictionary, the opset version is set to 1"."""
    with registered("onnxport_tests::foo", lambda g, a, b, x, y: g.op("acme::Foo", a, b).setType(a.type())):
        made = proto(lambda a, b: foo(a, b, 1.5, 2), (X, X), custom_opsets=given)
    assert {o.domain: o.version for o in made.opset_import}["acme"] == version
    with pytest.raises(errors.ArgumentError, match="custom_opsets must be a dict"):
        proto(torch.relu, (X,), custom_opsets={"acme": "7"})


def test_training_modes() -> None:
    """EVAL, PRESERVE and TRAINING, and that the model comes back in the mode in which it was given."""
    for training in (True, False):
        model = nn.Sequential(nn.Dropout(0.5)).train(training)
        for mode, dropped in ((TrainingMode.EVAL, False), (TrainingMode.PRESERVE, training), (TrainingMode.TRAINING, True)):
            assert ("Dropout" in ops(proto(model, (X,), training=mode))) is dropped
            assert model.training is training


# ---------------------------------------------------------------- errors


def test_errors_are_of_one_family() -> None:
    """"All errors are subclasses of errors.OnnxExporterError"."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)]
    assert all(issubclass(kind, errors.OnnxExporterError) for kind in found) and len(found) > 10


def test_a_graph_that_is_not_well_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    """"torch.onnx.errors.CheckerError - If the ONNX checker detects an invalid ONNX graph"."""
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise onnx.checker.ValidationError("no good")

    monkeypatch.setattr(onnx.checker, "check_model", refuse)
    with pytest.raises(errors.CheckerError, match="no good"):
        proto(torch.relu, (X,))


# ---------------------------------------------------------------- the other functions


def test_pretty_string_takes_the_arguments_of_export() -> None:
    """"Similar to export(), but returns a text representation": arguments, names of nodes, both forms, and a str that is UTF-8."""
    given: dict[str, Any] = {"export_params": False, "training": TrainingMode.EVAL, "input_names": ["größe"], "output_names": ["y"],
                             "operator_export_type": OperatorExportTypes.ONNX, "export_type": None, "opset_version": 13,
                             "keep_initializers_as_inputs": None, "custom_opsets": None, "do_constant_folding": True,
                             "dynamic_axes": {"größe": {0: "n"}}}
    compact = onnxport.export_to_pretty_string(nn.Linear(3, 4), X, **given)
    assert "%größe : Float(n, 3)" in compact and ", name: /Gemm" in compact and compact.encode("utf-8").decode() == compact
    assert ", name: " not in onnxport.export_to_pretty_string(nn.Linear(3, 4), X, add_node_names=False, **given)
    named, plain = (onnxport.export_to_pretty_string(nn.Linear(3, 4), X, google_printer=True, add_node_names=flag, **given) for flag in (True, False))
    assert named == plain and 'op_type: "Gemm"' in named and 'dim_param: "n"' in named


def test_pretty_string_of_older_spellings() -> None:
    with pytest.warns(DeprecationWarning, match="example_outputs of export_to_pretty_string"):
        assert "onnx::Relu(" in onnxport.export_to_pretty_string(nn.ReLU(), X, example_outputs=X)
    with pytest.raises(TypeError, match=r"export_to_pretty_string\(\) got an unexpected keyword argument 'nothing'"):
        onnxport.export_to_pretty_string(nn.ReLU(), X, nothing=1)


def test_a_symbolic_function_is_taken_back() -> None:
    """register_custom_op_symbolic and unregister_custom_op_symbolic; a second unregistering is no error."""
    onnxport.register_custom_op_symbolic("aten::relu", lambda g, x: g.op("acme::R", x), 9)
    assert ops(proto(torch.relu, (X,))) == ["acme::R"]
    for _ in range(2):
        onnxport.unregister_custom_op_symbolic("aten::relu", 9)
    assert ops(proto(torch.relu, (X,))) == ["Relu"]


@pytest.mark.parametrize("mode", list(TrainingMode))
def test_the_mode_of_a_model_is_restored(mode: TrainingMode) -> None:
    """select_model_mode_for_export: "restoring it when the with block exits", each submodule's, also after an error."""
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3).eval())
    found: list[tuple[bool, bool]] = []

    def fail() -> None:
        with onnxport.select_model_mode_for_export(model, mode):
            found.append((model[0].training, model[1].training))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert found == [{TrainingMode.EVAL: (False, False), TrainingMode.PRESERVE: (True, False), TrainingMode.TRAINING: (True, True)}[mode]]
    assert model.training and model[0].training and not model[1].training


def test_models_know_that_they_are_exported() -> None:
    """is_in_onnx_export: "whether it is in the middle of ONNX export", PyTorch's own answer too; by every capture."""
    seen: list[tuple[bool, bool]] = []

    def forward(x: torch.Tensor) -> torch.Tensor:
        seen.append((onnxport.is_in_onnx_export(), torch.onnx.is_in_onnx_export()))
        return x + 1

    for capture in ("trace", "export"):
        proto(forward, (X,), capture=capture)
    assert seen and set(seen) == {(True, True)} and not onnxport.is_in_onnx_export() and not torch.onnx.is_in_onnx_export()


def test_logging() -> None:
    """enable_log and disable_log, on the logger "onnxport"; twice on is on, twice off is off."""
    logger = logging.getLogger("onnxport")
    for _ in range(2):
        onnxport.enable_log()
    assert len(logger.handlers) == 1 and logger.isEnabledFor(logging.INFO)
    for _ in range(2):
        onnxport.disable_log()
    assert not logger.handlers and logger.level == logging.NOTSET


# ---------------------------------------------------------------- symbolic functions


def test_attributes_of_every_type() -> None:
    """"The valid type specifiers are f (float), i (int), s (string) or t (Tensor). An attribute specified with type float accepts either a single
    float, or a list of floats"; and "keyword outputs: by default a single output; if greater than one, a tuple"."""
    def symbolic(g: Any, a: Any, sizes: Any, mode: Any, c: Any, flag: Any) -> Any:
        made = g.op("acme::All", a, f_f=1.5, fs_f=[1.0, 2.5], i_i=3, is_i=[4, 5], s_s="up", ss_s=["a", "b"], t_t=torch.tensor([1.0, 2.0]), outputs=2)
        assert isinstance(made, tuple) and len(made) == 2
        return [made[0].setType(a.type()), made[1].setType(a.type())]

    with registered("onnxport_tests::pair", symbolic):
        node = proto(lambda a: pair(a, [3, 4], "up"), (X,)).graph.node[0]
    found = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert found["f"] == 1.5 and found["fs"] == [1.0, 2.5] and found["i"] == 3 and found["is"] == [4, 5]
    assert found["s"] == b"up" and found["ss"] == [b"a", b"b"] and onnx.numpy_helper.to_array(found["t"]).tolist() == [1.0, 2.0]
    assert len(node.output) == 2


def test_scalars_and_tensors_of_symbolic_functions() -> None:
    """"_scalar can convert a scalar tensor into a python scalar, and _if_scalar_type_as can turn a Python scalar into a PyTorch tensor"."""
    def symbolic(g: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
        assert symbolic_helper._scalar(x) == 1.5 and symbolic_helper._scalar(y) == 2 and symbolic_helper._scalar(a) is None
        literal = symbolic_helper._if_scalar_type_as(symbolic_helper._scalar(y), a)
        assert isinstance(literal, torch.Tensor) and literal.dtype == torch.float64
        return g.op("Mul", a, literal)

    with registered("onnxport_tests::foo", symbolic):
        check(lambda a, b: foo(a, b, 1.5, 2), (X.double(), X.double()), 2 * X.double())


def test_parameters_are_found_by_name() -> None:
    """"Parameter names must EXACTLY match the names in VariableType.h, because dispatch is done with keyword arguments", and "parameter ordering
    does NOT necessarily match: tensors are always first"."""
    def addmm(g: Any, mat1: Any, mat2: Any, self: Any, alpha: Any, beta: Any) -> Any:
        return g.op("Gemm", mat1, mat2, self, alpha_f=alpha, beta_f=beta)

    a, b, c = torch.randn(2, 4), torch.randn(2, 3), torch.randn(3, 4)
    with registered("aten::addmm", addmm):
        assert ops(check(lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2.0), (a, b, c))) == ["Gemm"]


def test_names_of_another_operator_are_named() -> None:
    def relu(g: Any, one: Any, two: Any) -> Any:
        return g.op("Relu", one)

    with registered("aten::relu", relu), pytest.raises(errors.SymbolicFunctionError, match=r"relu\(g.*one.*two.* cannot be called with \(g, self\)"):
        proto(torch.relu, (X,))


def test_a_list_whose_length_the_run_decides() -> None:
    """As an output it is a sequence, from the opset on that the answer says."""
    class Rows(nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            out: list[torch.Tensor] = []
            for i in range(x.size(0)):
                out.append(x[i] * i)  # noqa: PERF401  (a script)
            return out

    script = torch.jit.script(Rows())
    for opset in (11, 18):
        program = onnxport.export(script, (X,), dynamic_axes={"x": {0: "n"}}, opset_version=opset)
        for x in (X, torch.randn(5, *X.shape[1:]), torch.randn(1, *X.shape[1:])):
            (rows,) = program(x)
            assert len(rows) == len(x)
            assert all(torch.equal(row, wanted) for row, wanted in zip(rows, script(x), strict=True))
    with pytest.raises(errors.UnsupportedError, match="opset 11"):
        onnxport.export(script, (X,), dynamic_axes={"x": {0: "n"}}, opset_version=10)
    check(script, (X,))
