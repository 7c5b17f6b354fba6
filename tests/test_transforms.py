"""Models that call PyTorch's program transforms: functional_call, torch.compile, derivatives."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import onnxport

Tensor = torch.Tensor
layer = nn.Linear(3, 3)
compiled = torch.compile(lambda x: torch.relu(x) * 2)


class Model(nn.Module):
    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function, self.layer = function, layer
        self.compiled = torch.compile(nn.Linear(3, 3))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def weights(self: Any) -> dict[str, Tensor]:
    return {name: weight * 2 for name, weight in self.layer.named_parameters()}


RIGHT: dict[str, Callable[..., Any]] = {
    "functional_call": lambda self, x: torch.func.functional_call(self.layer, weights(self), (x,)),
    "functional_call-alone": lambda self, x: torch.func.functional_call(self.layer, weights(self), x) + self.layer(x),
    "compiled-function": lambda self, x: compiled(x) + 1,
    "compiled-module": lambda self, x: self.compiled(x),
    "jvp": lambda self, x: torch.func.jvp(torch.tanh, (x,), (x,))[1],
}


def derivative(self: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        z = x.detach().requires_grad_(True)
        (gradient,) = torch.autograd.grad((z ** 3 + z * x).sum(), z)
    return gradient


def backward(self: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        z = x.detach().requires_grad_(True)
        (z ** 3).sum().backward()
    assert z.grad is not None
    return z.grad


def by_result(self: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        z = x.detach().requires_grad_(True)
        (gradient,) = torch.autograd.grad(torch.tanh(z).sum(), z)
    return gradient


DERIVATIVES: dict[str, Callable[..., Any]] = {"autograd.grad": derivative, "backward": backward}
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "func.grad": lambda self, x: torch.func.grad(lambda z: torch.tanh(self.layer(z)).sum())(x),
    "func.vjp": lambda self, x: torch.func.vjp(torch.tanh, x)[1](x)[0],
    "result": by_result,
}


@pytest.mark.parametrize("name", RIGHT)
def test_transforms_are_traced(name: str) -> None:
    model, stream = Model(RIGHT[name]).eval(), io.BytesIO()
    onnxport.export(model, torch.randn(4, 3), stream, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    session = onnxruntime.InferenceSession(stream.getvalue(), providers=["CPUExecutionProvider"])
    for rows in (4, 1, 7):
        x = torch.randn(rows, 3)
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            want = model(x).numpy()
        (got,) = session.run(None, {"x": x.numpy()})
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_fixed_sizes_are_traced(name: str) -> None:
    model, stream = Model(DERIVATIVES[name]).eval(), io.BytesIO()
    onnxport.export(model, torch.randn(4, 3), stream, input_names=["x"])
    session = onnxruntime.InferenceSession(stream.getvalue(), providers=["CPUExecutionProvider"])
    for _ in range(3):
        x = torch.randn(4, 3)
        (got,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(got, model(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_that_cannot_be_traced_are_refused(name: str) -> None:
    with pytest.raises(onnxport.errors.CaptureError, match=r"torch\.(func|autograd\.grad)"):
        onnxport.export(Model(TRANSFORMS[name]).eval(), torch.randn(4, 3), io.BytesIO())


def test_vmap_in_vmap_is_refused() -> None:
    model = Model(lambda self, x: torch.vmap(torch.vmap(lambda number: number * 2))(x))
    with pytest.raises(onnxport.errors.CaptureError, match=r"torch\.vmap inside of torch\.vmap"):
        onnxport.export(model, torch.randn(4, 3), io.BytesIO())
