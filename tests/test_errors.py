"""What errors say of operators that cannot be exported, and what is logged."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
import torch
import torchvision
from torch import nn

import onnxport
from onnxport import errors
from tests.compat.running import registered

_library = torch.library.Library("onnxport_errors", "DEF")
for _name, _schema in {"one": "(Tensor x) -> Tensor", "two": "(Tensor x, int n=1) -> Tensor", "two.out": "(Tensor x, *, Tensor y) -> Tensor"}.items():
    _library.define(_name + _schema)
    _library.impl(_name, lambda x, *n, **named: x.clone(), "CompositeExplicitAutograd")
ours = torch.ops.onnxport_errors


def refused(model: Any, *args: torch.Tensor, **options: Any) -> str:
    with pytest.raises((errors.UnsupportedOperatorError, errors.UnsupportedError)) as caught:
        onnxport.export(model, args, None, **options)
    assert isinstance(caught.value, errors.OnnxExporterError) and isinstance(caught.value, RuntimeError)
    return re.sub(r"[^ ]*test_errors\.py:\d+", "HERE", str(caught.value))


class Block(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ours.one(ours.two(ours.one(x), 3))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Block(), nn.Sequential(Block())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ours.two.out(self.second(self.first(x)), y=x) + torch._standard_gamma(x)


X = torch.rand(2, 3)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_all_missing_operators_with_places_counts_and_overloads(capture: str) -> None:
    assert refused(Net(), X, capture=capture).split("\n") == [
        "Couldn't export operator onnxport_errors::one (module Net/first, HERE, 4 times in 2 places)",
        "    also in module Net/second/second.0, HERE, 2 times",
        "Couldn't export operator onnxport_errors::two (module Net/first, HERE, 2 times in 2 places)",
        "    also in module Net/second/second.0, HERE",
        "Couldn't export operator onnxport_errors::two.out (module Net, HERE)",
        "Couldn't export operator aten::_standard_gamma (module Net, HERE)",
        "What can be done: change the model so that it does not use these operators; register a symbolic function with "
        "onnxport.register_custom_op_symbolic; or contribute the operator to onnxport.",
    ]


def test_one_missing_operator() -> None:
    text = refused(nn.Sequential(Block()), X, operator_export_type=onnxport.OperatorExportTypes.ONNX)
    with registered("onnxport_errors::one", lambda g, x: g.op("Neg", x)):
        left = refused(nn.Sequential(Block()), X).split("\n")
    assert text.count("Couldn't export operator") == 2
    assert left[0] == "Couldn't export operator onnxport_errors::two (module Sequential/0, HERE)"
    assert "does not use this operator;" in left[1]


def test_many_places_are_counted() -> None:
    text = refused(nn.Sequential(*[Block() for _ in range(9)]), X)
    assert "onnxport_errors::two (module Sequential/0, HERE, 9 times in 9 places)" in text
    assert "also in module Sequential/5" in text and "Sequential/6" not in text and "and in 3 other places" in text


def test_the_opset_at_which_a_symbolic_function_is_registered() -> None:
    with registered("onnxport_errors::two", lambda g, x, n: g.op("Neg", x), 15), registered("onnxport_errors::one", lambda g, x: g.op("Neg", x), 7):
        text = refused(Block(), X, opset_version=11)
        onnxport.export(Block(), (X,), None, opset_version=15)
    assert text.split("\n")[:2] == [
        "Couldn't export operator onnxport_errors::two (module Block, HERE)",
        "    a symbolic function is registered for it from opset 15 on: opset_version=15 takes it"]


def test_what_an_operator_is_decomposed_into() -> None:
    text = refused(lambda x: torch.linalg.eigvals(x), torch.rand(3, 3))
    assert "Couldn't export operator aten::linalg_eigvals" in text
    assert "    PyTorch decomposes it, and aten::linalg_eig in it has no translation" in text


class NeedsOpsets(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        detection, boxes = torch.ops.torchvision, x[:, [0, 1, 2, 2]]
        aligned = detection.roi_align(x[None, None], x[:, [0, 0, 1, 1, 2]] * 0, 1.0, 2, 2, 1, True)
        return aligned + 1, detection.nms(boxes, x[:, 0], 0.5), detection.nms(boxes + 1, x[:, 1], 0.7)


def test_all_refusals_and_the_opset_that_has_them_all() -> None:
    text = refused(nn.Sequential(NeedsOpsets()), torch.rand(3, 3), opset_version=9)
    assert text.split("\n") == [
        "RoiAlign with coordinate mode 'half_pixel' needs opset 16 or higher (opset_version=9 was asked)",
        "  in torchvision::roi_align at HERE, module Sequential/0",
        "nms needs opset 10 or higher (opset_version=9 was asked)",
        "  in torchvision::nms at HERE, module Sequential/0",
        "  and 1 more like it",
        "together they need opset_version=16 or higher",
    ]
    with pytest.raises(errors.UnsupportedError) as caught:
        onnxport.export(torchvision.ops.nms, (torch.rand(3, 4), torch.rand(3), 0.5), None, opset_version=9)
    assert caught.value.lowest == 10
    onnxport.export(NeedsOpsets(), (torch.rand(3, 3),), None, opset_version=16)


class Consequences(nn.Module):
    """What reads the first refused operator is lowered with a stand-in, of which only the first fault is told."""

    def forward(self, x: torch.Tensor) -> Any:
        y = torch.nonzero(x)
        return y.reshape(-1).expand(18) * x.sum(), torch.nonzero(x + y.sum())


def test_consequences_are_not_told() -> None:
    text = refused(Consequences(), torch.rand(3, 3), opset_version=8)
    assert text.count("needs opset") == 1 and "and 1 more like it" in text


def test_what_is_logged(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    with caplog.at_level(logging.DEBUG, "onnxport"):
        onnxport.export(nn.Linear(3, 3), (X,), None, verbose=True, input_names=["x"])
    messages = [record.getMessage() for record in caplog.records if record.name == "onnxport"]
    assert [m.partition(":")[0] for m in messages if " s" in m[-3:]] == ["capture", "convert"]
    assert "1 nodes, 2 initializers, 0 functions, opset 18" in messages
    graphs = [m for m in messages if m.startswith("graph(%x : Float(2, 3)")]
    assert len(graphs) == 1 and graphs[0] in capsys.readouterr().out


def test_log_switches(capsys: pytest.CaptureFixture[str]) -> None:
    onnxport.enable_log()
    try:
        onnxport.export(nn.Linear(3, 3), (X,), None)
    finally:
        onnxport.disable_log()
    text = capsys.readouterr().err
    assert "onnxport: capture: " in text and "onnxport: 1 nodes, 2 initializers" in text
    onnxport.export(nn.Linear(3, 3), (X,), None)
    assert not capsys.readouterr().err
