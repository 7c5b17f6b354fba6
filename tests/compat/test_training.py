"""`training=TRAINING`: ONNX's training forms, and what becomes of running statistics."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import onnxport
from onnxport import TrainingMode
from tests.compat.running import ops, proto, registered, run

nn = torch.nn


def trained(model: nn.Module, x: torch.Tensor) -> list[np.ndarray]:
    model = copy.deepcopy(model).train()
    y = model(x)
    return [t.detach().numpy() for t in (y, *model.buffers())]


@pytest.mark.parametrize("opset", [7, 9, 13, 14, 15, 18, 22])
@pytest.mark.parametrize("norm", [nn.BatchNorm2d(3), nn.BatchNorm2d(3, momentum=0.3, eps=1e-3), nn.BatchNorm2d(3, affine=False)])
def test_running_statistics_as_outputs(norm: nn.Module, opset: int) -> None:
    model, x = nn.Sequential(nn.Conv2d(2, 3, 3), norm), torch.randn(4, 2, 6, 6)
    made = proto(model, (x,), training=TrainingMode.TRAINING, opset_version=opset, mutations="outputs", do_constant_folding=False,
                 input_names=["x"], dynamic_axes={"x": {0: "n", 2: "h"}})
    x = torch.randn(5, 2, 8, 6)
    fed = {"x": x} | {i.name: dict(model.state_dict())[i.name] for i in made.graph.input if i.name != "x"}
    found = run(made, *[fed[i.name] for i in made.graph.input if i.name not in {t.name for t in made.graph.initializer}])
    for result, expected in zip(found, trained(model, x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_other_types(dtype: torch.dtype) -> None:
    model, x = nn.BatchNorm1d(3).to(dtype), torch.randn(8, 3, dtype=dtype)
    made = proto(model, (x,), training=TrainingMode.TRAINING, mutations="ignore")
    np.testing.assert_allclose(run(made, x)[0], trained(model, x)[0], rtol=1e-2 if dtype == torch.float16 else 1e-9, atol=1e-3)


def test_dropout_and_nothing_folded() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Dropout(0.5))
    made = proto(model, (torch.randn(4, 2, 6, 6),), training=TrainingMode.TRAINING, mutations="ignore")
    assert {"Conv", "BatchNormalization", "Dropout"} <= set(ops(made))
    assert {t.name for t in made.graph.initializer} >= {"0.weight", "0.bias", "1.weight", "1.bias"}


@pytest.mark.parametrize("opset", [13, 14, 15, 18, 22])
@pytest.mark.parametrize("channels", [2, 8, 9, 40])
def test_the_training_form_runs(opset: int, channels: int) -> None:
    """Twice, new layers, whose statistics equal their weights."""
    model, x = nn.Sequential(nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)), torch.randn(4, channels, 6, 6)
    made = proto(model, (x,), training=TrainingMode.TRAINING, opset_version=opset, mutations="ignore")
    assert (ops(made).count("BatchNormalization") == 2) == (opset >= 14)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for data in (x, x * 3 + 1):
        found = session.run(None, {made.graph.input[0].name: data.numpy()})[0]
        np.testing.assert_allclose(found, trained(model, data)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("mode", "training", "expected"), [
    (TrainingMode.EVAL, True, ["Conv"]), (TrainingMode.PRESERVE, False, ["Conv"]), (TrainingMode.TRAINING, False, ["Conv", "BatchNormalization"])])
def test_modes(mode: TrainingMode, training: bool, expected: list[str]) -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)).train(training)
    assert ops(proto(model, (torch.randn(4, 2, 6, 6),), training=mode, mutations="ignore")) == expected
    assert all(m.training == training for m in model.modules())


def test_frozen_and_training_submodules() -> None:
    model = nn.Sequential(nn.BatchNorm2d(3).eval(), nn.BatchNorm2d(3).train())
    made = proto(model, (torch.randn(4, 3, 6, 6),), training=TrainingMode.PRESERVE, mutations="ignore")

    def mode(node: Any) -> int:
        return next((a.i for a in node.attribute if a.name == "training_mode"), 0)

    assert [mode(n) for n in made.graph.node if n.op_type == "BatchNormalization"] == [0, 1]
    x = torch.randn(4, 3, 6, 6)
    np.testing.assert_allclose(run(made, x)[0], copy.deepcopy(model)(x).detach().numpy(), rtol=1e-4, atol=1e-5)


class ReadsStatistics(nn.Module):
    def __init__(self, channels: int, calls: int):
        super().__init__()
        self.norm, self.calls = nn.BatchNorm1d(channels), calls

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for _ in range(self.calls):
            x = self.norm(x) * 2
        return x, self.norm.running_mean * 2, self.norm.running_var + 1


@pytest.mark.parametrize("mode", [TrainingMode.TRAINING, TrainingMode.PRESERVE])
@pytest.mark.parametrize("mutations", ["ignore", "outputs"])
@pytest.mark.parametrize(("channels", "calls"), [(4, 1), (12, 1), (4, 2), (12, 2)])
def test_runs_do_not_change_the_file(channels: int, calls: int, mutations: str, mode: TrainingMode) -> None:
    """ONNX Runtime writes new statistics over the old ones, which others may read: in the same run or the next."""
    model, x = ReadsStatistics(channels, calls).train(), torch.randn(6, channels)
    made = proto(model, (x,), training=mode, mutations=mutations)
    assert ops(made).count("BatchNormalization") == calls
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for data in (x, x * 3 + 1, x):
        fresh = copy.deepcopy(model)
        wanted = [*fresh(data), *(fresh.buffers() if mutations == "outputs" else ())]
        for found, want in zip(session.run(None, {made.graph.input[0].name: data.numpy()}), wanted, strict=True):
            np.testing.assert_allclose(found, want.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("calls", [1, 2])
def test_fed_statistics_stay_as_they_are(calls: int) -> None:
    model, x = ReadsStatistics(5, calls).train(), torch.randn(6, 5)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    program = onnxport.export(model, (x,), None, training=TrainingMode.TRAINING, mutations="ignore", export_params=False)
    assert "BatchNormalization" in [n.op_type for n in program.model.graph]
    for _ in range(2):
        np.testing.assert_allclose(program(x)[0], copy.deepcopy(model)(x)[0].detach(), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Computes(nn.Module):
    """Weights that others are computed from."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.linear, self.lstm = nn.Parameter(torch.randn(3, 4)), nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), nn.LSTM(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(self.linear(x @ (self.w.t() * 2)))[0]


@pytest.mark.parametrize("mode", [TrainingMode.TRAINING, TrainingMode.PRESERVE])
def test_nothing_is_computed_from_weights(mode: TrainingMode) -> None:
    model = Computes().train()
    made = proto(model, (torch.randn(2, 4),), training=mode)
    stored = {t.name: tuple(t.dims) for t in made.graph.initializer}
    assert {name: tuple(p.shape) for name, p in model.named_parameters()}.items() <= stored.items()
    assert not any(len(dims) > 1 for name, dims in stored.items() if name.startswith("const"))
    x = torch.randn(2, 4)
    np.testing.assert_allclose(run(made, x)[0], model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_frozen_norms_are_not_folded_beside_training_ones() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3).eval(), nn.Dropout(0.5).train())
    made = proto(model, (torch.randn(4, 2, 6, 6),), training=TrainingMode.PRESERVE)
    assert ops(made)[:3] == ["Conv", "BatchNormalization", "Dropout"]


@pytest.mark.parametrize(("training", "expected"), [(False, ["Conv"]), (True, ["Conv", "BatchNormalization", "Dropout"])])
def test_programs_are_in_the_mode_of_their_capture(training: bool, expected: list[str]) -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Dropout(0.5)).train(training)
    program = torch.export.export(model, (torch.randn(4, 2, 6, 6),))
    made = onnxport.export(program, mutations="ignore").model_proto
    assert [op for op in ops(made) if op in ("Conv", "BatchNormalization", "Dropout")] == expected


def test_functions_in_training() -> None:
    model, x = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())), torch.randn(4, 3, 6, 6)
    made = proto(model, (x,), training=TrainingMode.TRAINING, mutations="outputs", export_modules_as_functions=True)
    assert [f.name for f in made.functions] == ["BatchNorm2d", "ReLU", "Sequential", "Sequential.1"]
    for found, want in zip(run(made, x), trained(model, x), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [9, 13, 18, 23])
@pytest.mark.parametrize("calls", [1, 2])
def test_statistics_over_all_batches(calls: int, opset: int) -> None:
    """`momentum=None`: the factor comes from the counter of batches, which is no weight."""
    model, x = ReadsStatistics(3, calls), torch.randn(6, 3)
    model.norm = nn.BatchNorm1d(3, momentum=None)
    model.norm.num_batches_tracked.fill_(4)
    made = proto(model.train(), (x,), training=TrainingMode.TRAINING, mutations="outputs", opset_version=opset)
    fresh = copy.deepcopy(model)
    for found, want in zip(run(made, x), [*fresh(x), *fresh.buffers()], strict=True):
        np.testing.assert_allclose(found, want.detach().numpy(), rtol=1e-4, atol=1e-5)


class Attends(nn.Module):
    """Gives the weights of attention themselves."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x * 0, x * 0, torch.eye(x.shape[-2]), dropout_p=0.25 if self.training else 0.0)


@pytest.mark.parametrize("opset", [9, 12, 18, 22, 24])
def test_dropout_of_attention(opset: int) -> None:
    """ONNX Runtime leaves a Dropout out whose mask nobody reads."""
    x = torch.randn(40, 40)
    made = proto(Attends().train(), (x,), training=TrainingMode.TRAINING, opset_version=opset)
    found = run(made, x)[0]
    assert np.unique(found.round(4)).tolist() == [0, pytest.approx(1 / 40 / 0.75, abs=1e-4)]
    assert 0.2 < (found == 0).mean() < 0.3


@pytest.mark.parametrize("opset", [9, 12, 18, 22])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_dropout_between_layers(kind: type, opset: int) -> None:
    layers, x = kind(4, 4, num_layers=2, dropout=0.5), torch.randn(5, 3, 4)
    made = proto(layers.train(), (x,), training=TrainingMode.TRAINING, opset_version=opset)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    first, second = (session.run(None, {made.graph.input[0].name: x.numpy()}) for _ in range(2))
    assert not np.allclose(first[0], second[0])
    states = layers.eval()(x)[1]
    hidden = states[0] if kind is nn.LSTM else states
    for result in (first, second):  # nothing is dropped before the first layer
        np.testing.assert_allclose(result[1][0], hidden[0].detach(), rtol=1e-4, atol=1e-5)


def test_what_has_no_mode_is_preserved_as_for_inference() -> None:
    weight = torch.randn(3, 4)
    frozen = torch.jit.freeze(torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)).eval()))
    for model, x, expected in ((lambda x: x @ weight.t(), torch.randn(2, 4), ["MatMul"]), (frozen, torch.randn(4, 2, 6, 6), ["Conv"])):
        made = onnxport.export(model, (x,), None, training=TrainingMode.PRESERVE).model_proto
        assert ops(made)[:1] == expected[:1] and "BatchNormalization" not in ops(made) and "Transpose" not in ops(made)
    norm = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)).train()
    assert "BatchNormalization" in ops(onnxport.export(norm.forward, (torch.randn(4, 2, 6, 6),), None, training=TrainingMode.PRESERVE,
                                                       mutations="ignore").model_proto)


@pytest.mark.parametrize("opset", [12, 15, 18, 22])
def test_dropout_of_a_symbolic_function(opset: int) -> None:
    def symbolic(g: Any, x: Any, p: Any, train: Any) -> Any:
        return g.op("Dropout", x, g.op("Constant", value_t=torch.tensor(0.25)), g.op("Constant", value_t=torch.tensor(True)))

    model, x = nn.Sequential(nn.ReLU(), nn.Dropout(0.25), nn.Tanh()).train(), torch.rand(40, 40) + 1
    with registered("aten::dropout", symbolic, 12):
        found = run(proto(model, (x,), training=TrainingMode.TRAINING, opset_version=opset), x)[0]
    assert 0.2 < (found == 0).mean() < 0.3
