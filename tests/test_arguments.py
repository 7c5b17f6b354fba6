"""Wrong and odd arguments of `export()`, and models that are not plain modules: an error that names the argument, or the right file."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import onnxport

from .ops.harness import Wrapped

nn = torch.nn
Tensor = torch.Tensor


@pytest.mark.parametrize(("options", "message"), [
    ({"export_params": "False"}, "export_params='False'.*True or False"),
    ({"export_params": None}, "export_params=None"),
    ({"do_constant_folding": "no"}, "do_constant_folding"),
    ({"strict": "yes"}, "strict"),
    ({"custom_opsets": {"": 17}}, "custom_opsets.*its version is opset_version"),
    ({"verbose": []}, "verbose"),
    ({"keep_initializers_as_inputs": "yes"}, "keep_initializers_as_inputs"),
    ({"kwargs": "a"}, "kwargs must be a dict"),
    ({"kwargs": []}, "kwargs must be a dict"),
    ({"kwargs": {1: 2}}, "kwargs must be a dict"),
    ({"dynamic_axes": {"x": {0: "a", -2: "b"}}}, "the same as another"),
])
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match=message):
        onnxport.export(nn.Linear(3, 4), torch.ones(2, 3), input_names=["x"], **options)


@pytest.mark.parametrize(("value", "message"), [
    (np.ones((2, 3), np.float32), "numpy array.*torch.from_numpy"),
    (torch.ones(2, 3, device="meta"), "meta device"),
    (FakeTensorMode().from_tensor(torch.ones(2, 3)), "fake tensor"),
    (torch.nested.nested_tensor([torch.ones(3)]), "nested"),
    (torch.ones(2, 3).to_sparse(), "dense"),
])
def test_inputs_that_cannot_be(value: Any, message: str) -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match=message):
        onnxport.export(nn.Linear(3, 4), (value,))


def imagined() -> nn.Module:
    with FakeTensorMode():
        return nn.Linear(3, 4)


@pytest.mark.parametrize(("model", "message"), [
    (nn.LazyLinear(4), "no shape yet.*run the model once"),
    (nn.Linear(3, 4, device="meta"), "meta device"),
    (imagined(), "fake tensor"),
])
def test_models_that_cannot_run(model: Any, message: str) -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match=message):
        onnxport.export(model, torch.ones(2, 3))


def test_a_path_with_a_null_character(tmp_path: Path) -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match="null character"):
        onnxport.export(nn.Linear(3, 4), torch.ones(2, 3), str(tmp_path / "a\0b"))
    assert not list(tmp_path.iterdir())


class Held(nn.Module):
    """Modules and parameters in plain containers, which no `state_dict` holds."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(3, 3), nn.BatchNorm1d(3).eval()]
        self.settings = {"scale": {"weight": nn.Parameter(torch.randn(3))}}

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x * self.settings["scale"]["weight"]


def recorded(x: Tensor) -> Tensor:
    with torch.profiler.record_function("part"):
        return x + 1


LINEAR, WEIGHT = nn.Linear(3, 3), nn.Parameter(torch.randn(3))


def compiled_in_place() -> nn.Module:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    model[0].compile(backend="eager")
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "closure": lambda: (lambda layer: lambda x: layer(x))(nn.Linear(3, 4)),
    "global": lambda: lambda x: LINEAR(x) * WEIGHT,
    "method": lambda: nn.Linear(3, 4).forward,
    "partial": lambda: functools.partial(torch.add, other=WEIGHT),
    "lists": Held,
    "record_function": lambda: recorded,
    "DataParallel": lambda: nn.DataParallel(nn.Linear(3, 4)),
    "compiled": lambda: torch.compile(nn.Linear(3, 4), backend="eager"),
    "compiled-part": lambda: nn.Sequential(torch.compile(nn.Linear(3, 4), backend="eager"), nn.ReLU()),
    "compiled-in-place": compiled_in_place,
    "compiled-function": lambda: torch.compile(lambda x: x * 2, backend="eager"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_every_kind(name: str) -> None:
    model = MODELS[name]()
    stream, x = io.BytesIO(), torch.randn(2, 3)
    onnxport.export(model, x, stream, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    session = onnxruntime.InferenceSession(stream.getvalue(), providers=["CPUExecutionProvider"])
    plain = torch.compiler.set_stance("force_eager")
    for given in (x, torch.randn(5, 3)):
        with torch.no_grad(), plain:
            want = model(given)
        np.testing.assert_allclose(session.run(None, {"x": given.numpy()})[0], want.numpy(), rtol=1e-5, atol=1e-6)


def test_unregistered_weights_are_kept_by_name() -> None:
    made = onnxport.export(Held().eval(), torch.randn(2, 3)).model_proto
    assert {"layers.0.weight", "settings.scale.weight"} & {i.name for i in made.graph.initializer}


def test_an_update_of_an_unregistered_buffer_is_undone() -> None:
    layer = nn.BatchNorm1d(3)
    with pytest.warns(onnxport.errors.MutationWarning, match="running_mean"):
        onnxport.export(Wrapped(lambda x: layer(x)), torch.randn(2, 3))
    assert bool((layer.running_mean == 0).all())
    assert int(layer.num_batches_tracked) == 0
