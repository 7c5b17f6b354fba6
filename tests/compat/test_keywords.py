"""Every keyword of today's `torch.onnx.export`: honoured where we have the thing, a named warning where not."""

from __future__ import annotations

import inspect
import io
import os
import warnings
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import torch.onnx

import onnxport
from onnxport import errors
from tests.compat.running import Model, proto

X = torch.randn(2, 3)
SIGNATURE = inspect.signature(torch.onnx.export).parameters


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


def test_every_keyword_of_pytorch_is_taken_at_its_default() -> None:
    """Read from the installed torch, so that none of a newer version is forgotten. Nothing is said of what means nothing."""
    given = {name: p.default for name, p in SIGNATURE.items() if name not in ("model", "args", "f", "dynamo", "external_data")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = proto(Net(), (X,), **given)
    assert made.producer_name == "onnxport" and made.opset_import[0].version == 18


# For each keyword another value than the default. True: it is honoured, and tested below or in the file that is named; else what the warning says.
OTHER: dict[str, tuple[Any, Any]] = {
    "kwargs": ({}, True), "verbose": (True, True), "input_names": (["x"], True), "output_names": (["y"], True), "opset_version": (12, True),
    "dynamo": (False, True), "external_data": (False, True), "dynamic_shapes": (({0: "n"},), True), "report": (True, True), "verify": (True, True),
    "profile": (True, True), "dump_exported_program": (True, True), "artifacts_dir": (".", True), "export_params": (False, True),
    "keep_initializers_as_inputs": (True, True), "dynamic_axes": ({}, True), "training": (onnxport.TrainingMode.PRESERVE, True),
    "operator_export_type": (torch.onnx.OperatorExportTypes.ONNX_ATEN_FALLBACK, True), "do_constant_folding": (False, True),
    "custom_opsets": ({"acme": 2}, True), "export_modules_as_functions": (True, True), "optimize": (False, "optimize=False"),
    "custom_translation_table": ({torch.ops.aten.tanh.default: torch.tanh}, True), "autograd_inlining": (False, "autograd_inlining=False"),
}


def test_the_table_has_every_keyword_of_pytorch() -> None:
    assert set(OTHER) == set(SIGNATURE) - {"model", "args", "f"}


@pytest.mark.parametrize("name", OTHER)
def test_another_value(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value, outcome = OTHER[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = proto(Net().eval(), (X,), **{name: value})
    assert "Relu" in [node.op_type for nodes in (made.graph.node, *[f.node for f in made.functions]) for node in nodes]
    said = [str(w.message) for w in caught if "changes nothing" in str(w.message)]
    assert not said if outcome is True else len(said) == 1 and outcome in said[0], said


def test_dynamo_captures_by_torch_export(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    from onnxport.capture import choose

    real = choose.capture
    monkeypatch.setattr(choose, "capture", lambda model, call, names, way, *rest, **more: asked.append(way) or real(model, call, names, way, *rest, **more))
    for options in ({"dynamo": True}, {"dynamo": False}, {}, {"dynamo": True, "capture": "trace"}):
        proto(Net(), (X,), **options)
    assert asked == ["export", "auto", "auto", "trace"]
    proto(torch.jit.script(Net()), (X,), dynamo=True)
    proto(torch.jit.script(Net()), (X,), dynamo=True)
    stream = io.BytesIO()
    onnxport.export(torch.export.export(Net(), (X,)), f=stream, dynamo=True)
    assert asked[4:] == ["auto", "auto", "auto"]


def test_external_data(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnxport.export(torch.nn.Linear(64, 64), (torch.randn(2, 64),), path, external_data=True)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
    assert onnxport.backend.prepare(path).run(torch.zeros(2, 64))[0].shape == (2, 64)


def test_verify_raises_where_the_numbers_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    with onnxport.install():
        torch.onnx.register_custom_op_symbolic("aten::relu", lambda g, x: g.op("Neg", x), 9)
        try:
            with pytest.raises(errors.VerificationError):
                torch.onnx.export(Net(), (X,), io.BytesIO(), verify=True)
        finally:
            torch.onnx.unregister_custom_op_symbolic("aten::relu", 9)


# ---------------------------------------------------------------------- what is written beside the model


def test_a_report(tmp_path: Path) -> None:
    proto(Net(), (X,), report=True, artifacts_dir=tmp_path, input_names=["image"])
    text = (tmp_path / "onnx_export_report.md").read_text()
    assert "# Export of Net" in text and "- input `image`: FLOAT [2,3]" in text and "- Relu: 1" in text and "Seconds" not in text
    assert os.listdir(tmp_path) == ["onnx_export_report.md"]


def test_a_profile(tmp_path: Path) -> None:
    onnxport.export(Net(), (X,), tmp_path / "m.onnx", profile=True, artifacts_dir=str(tmp_path))
    text = (tmp_path / "onnx_export_report.md").read_text()
    assert "m.onnx`" in text and all(f"- {stage}: 0." in text for stage in ("capture", "convert", "save"))


def test_a_report_of_a_failure(tmp_path: Path) -> None:
    with pytest.raises(errors.UnsupportedOperatorError):
        proto(Model(lambda a: torch._standard_gamma(a)), (X,), report=True, artifacts_dir=tmp_path)
    assert "UnsupportedOperatorError: Couldn't export operator aten::_standard_gamma" in (tmp_path / "onnx_export_report.md").read_text()


def test_guards_are_reported(tmp_path: Path) -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape[0] > 1 else x

    with pytest.warns(errors.GuardWarning):
        proto(branch, (X,), report=True, artifacts_dir=tmp_path, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert "## It holds where" in (tmp_path / "onnx_export_report.md").read_text()


def test_the_program_is_dumped(tmp_path: Path) -> None:
    model = Net()
    proto(model, (X,), dump_exported_program=True, artifacts_dir=tmp_path)
    path = tmp_path / "onnx_export_program.pt2"
    assert torch.equal(torch.export.load(path).module()(X), model(X))
    onnxport.export(str(path), f=io.BytesIO())
    onnxport.export(torch.export.load(path), f=io.BytesIO(), dump_exported_program=True, artifacts_dir=tmp_path)


@pytest.mark.parametrize(("options", "message"), [
    ({"report": True, "artifacts_dir": "nowhere"}, "artifacts_dir='nowhere' is no folder"),
    ({"dump_exported_program": True, "script": True}, "dump_exported_program needs a torch.nn.Module"),
])
def test_what_cannot_be_written(options: dict[str, Any], message: str) -> None:
    model = torch.jit.script(Net()) if options.pop("script", False) else Net()
    with pytest.raises(errors.ArgumentError, match=message):
        onnxport.export(model, (X,), io.BytesIO(), **options)


def test_a_model_branches_on_is_in_onnx_export() -> None:
    """PyTorch's own answers True during our export, and False before and after, under both captures."""
    for capture in ("trace", "export"):
        made = proto(lambda x: torch.relu(x) if torch.onnx.is_in_onnx_export() else torch.sigmoid(x), (X,), capture=capture)
        assert [n.op_type for n in made.graph.node] == ["Relu"]
        assert not torch.onnx.is_in_onnx_export()


def test_positional_arguments_of_older_versions() -> None:
    stream = io.BytesIO()
    onnxport.export(Net(), (X,), stream, True, False, onnxport.TrainingMode.EVAL, ["x"], ["y"], onnxport.OperatorExportTypes.ONNX, 13, True, {"x": [0]})
    made = onnx.load_from_string(stream.getvalue())
    assert made.graph.input[0].name == "x" and made.opset_import[0].version == 13
