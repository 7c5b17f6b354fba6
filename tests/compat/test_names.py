"""The names and spellings of the documentation's two editions."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from typing import Any

import pytest
import torch

import onnxport
from onnxport import JitScalarType, OperatorExportTypes, TrainingMode, errors, symbolic_helper
from onnxport.options import newest_opset
from tests.compat.running import Model, foo, ops, proto

X = torch.randn(2, 3)
NAMES = ["export", "export_to_pretty_string", "register_custom_op_symbolic", "unregister_custom_op_symbolic", "select_model_mode_for_export",
         "is_in_onnx_export", "enable_log", "disable_log", "OperatorExportTypes", "TrainingMode", "JitScalarType", "SymbolicContext", "errors",
         "utils", "symbolic_helper", "symbolic_opset7", "symbolic_opset9", "symbolic_opset16", "TensorProtoDataType"]


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name: str) -> None:
    assert getattr(onnxport, name) is not None


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = onnxport.nothing_like_this  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = importlib.import_module("onnxport.symbolic_opset9").nothing_like_this


@pytest.mark.parametrize("opset", range(7, newest_opset() + 1))
def test_a_module_for_each_opset(opset: int) -> None:
    module = importlib.import_module(f"onnxport.symbolic_opset{opset}")
    assert module.relu.__name__ == "relu" and "relu" in dir(module)


def test_a_function_outside_of_an_export_is_an_error() -> None:
    with pytest.raises(errors.SymbolicFunctionError, match="g must be the graph"):
        onnxport.symbolic_opset9.relu(None, None)


def test_opsets_of_symbolic_helper() -> None:
    assert symbolic_helper._default_onnx_opset_version == symbolic_helper._export_onnx_opset_version == 18
    assert symbolic_helper._onnx_main_opset == newest_opset() and 7 in symbolic_helper._onnx_stable_opsets


def test_errors() -> None:
    for name in ("CheckerError", "UnsupportedOperatorError", "SymbolicValueError"):
        assert issubclass(getattr(errors, name), errors.OnnxExporterError) and issubclass(errors.OnnxExporterError, RuntimeError)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.float16, torch.uint8])
def test_scalar_types(dtype: torch.dtype) -> None:
    kind = JitScalarType.from_dtype(dtype)
    assert kind.dtype() == dtype and JitScalarType.from_name(kind.scalar_name()) == kind == JitScalarType.from_name(kind.torch_name())
    assert JitScalarType.from_onnx_type(kind.onnx_type()) == kind and kind.onnx_compatible()
    assert JitScalarType.from_value(torch.zeros(1, dtype=dtype)) == kind


def test_scalar_types_are_pytorchs() -> None:
    theirs: Any = importlib.import_module("torch.onnx").JitScalarType
    for kind in JitScalarType:
        if kind <= JitScalarType.BFLOAT16:
            assert int(theirs[kind.name]) == int(kind) and theirs[kind.name].scalar_name() == kind.scalar_name()
    with pytest.raises(errors.ArgumentError):
        JitScalarType.from_name("nothing")


# ---------------------------------------------------------------- text


def test_pretty_string() -> None:
    model = Model(torch.relu)
    text = onnxport.export_to_pretty_string(model, X, input_names=["x"], output_names=["y"], export_type=None)
    assert "%y : Float(2, 3) = onnx::Relu(%x)" in text and "name: /" in text
    assert "name: /" not in onnxport.export_to_pretty_string(model, X, add_node_names=False)
    assert 'op_type: "Relu"' in onnxport.export_to_pretty_string(model, X, google_printer=True)


def test_unconvertible_operators() -> None:
    graph, names = onnxport.utils.unconvertible_ops(Model(lambda x: foo(torch._standard_gamma(x).relu(), x, 1.0, 1)), X, opset_version=13)
    assert set(names) == {"aten::_standard_gamma", "onnxport_tests::foo"}
    assert "aten::relu" in str(graph)
    assert onnxport.utils.unconvertible_ops(Model(torch.relu), (X,))[1] == []


def test_log(caplog: pytest.LogCaptureFixture) -> None:
    onnxport.enable_log()
    with caplog.at_level(logging.INFO, "onnxport"):
        proto(torch.relu, (X,))
    assert any("capture" in record.message for record in caplog.records)
    onnxport.disable_log()
    assert not logging.getLogger("onnxport").handlers


# ---------------------------------------------------------------- older spellings


@pytest.mark.parametrize("given", [
    {"example_outputs": X}, {"strip_doc_string": True}, {"aten": False}, {"export_raw_ir": False}, {"_retain_param_name": True},
    {"training": False}, {"training": None}, {"operator_export_type": None}, {"enable_onnx_checker": True}, {"use_external_data_format": False}])
def test_older_spellings_warn(given: dict[str, Any]) -> None:
    with pytest.warns(DeprecationWarning, match=next(iter(given))):
        assert ops(proto(torch.relu, (X,), **given)) == ["Relu"]


def test_what_older_spellings_mean() -> None:
    with pytest.warns(DeprecationWarning, match="ONNX_ATEN"):
        assert ops(proto(torch.relu, (X,), aten=True)) == ["org.pytorch.aten::ATen"]
    model = torch.nn.Sequential(torch.nn.Dropout(0.5))
    with pytest.warns(DeprecationWarning, match=r"TrainingMode\.TRAINING"):
        assert "Dropout" in ops(proto(model, (X,), training=True))


@pytest.mark.parametrize("given", [{"dynamo": True}, {"dynamo": False}, {"report": False}, {"optimize": True}, {"verify": True}])
def test_keywords_of_today(given: dict[str, Any], recwarn: pytest.WarningsRecorder) -> None:
    assert ops(proto(torch.relu, (X,), **given)) == ["Relu"]
    assert not recwarn.list


def test_keywords_that_change_nothing_are_named() -> None:
    for name, value in {"optimize": False, "autograd_inlining": False}.items():
        with pytest.warns(UserWarning, match=f"^{name}=.* changes nothing in export: "):
            proto(torch.relu, (X,), **{name: value})
    with pytest.raises(TypeError, match="'no_such_thing'"):
        proto(torch.relu, (X,), no_such_thing=1)


@pytest.mark.parametrize("kind", [TrainingMode, OperatorExportTypes])
def test_members_of_pytorch(kind: Any) -> None:
    for member in kind:
        assert int(getattr(getattr(torch.onnx, kind.__name__), member.name, member)) == int(member) or member.name in ("RAW", "ONNX_FALLTHROUGH")


def test_a_plain_export_imports_none_of_this() -> None:
    code = ("import sys, torch, onnxport; onnxport.export(torch.nn.ReLU(), torch.ones(2), None); "
            "print(sorted(m for m in sys.modules if m.startswith(('onnxport.compat.', 'onnxport.symbolics.')) and type(sys.modules[m]).__name__ == 'module'))")
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["['onnxport.compat.aliases',", "'onnxport.symbolics.registry']"]
