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
from torch.nn import functional as F

import onnxport
from onnxport.capture import torch_private

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


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of a sum, by autograd."""
    def derivative(self: Any, x: Tensor) -> Tensor:
        with torch.enable_grad():
            z = x.detach().requires_grad_(True)
            (made,) = torch.autograd.grad(function(self, z).sum(), z)
        return made

    return derivative


def energy(self: Any, x: Tensor) -> Any:
    """An energy and its forces, as potentials of molecules are written."""
    with torch.enable_grad():
        z = x.clone().requires_grad_(True)
        value = torch.tanh(self.layer(z)).sum(-1)
        (slope,) = torch.autograd.grad(value, z, torch.ones_like(value), create_graph=True)
    return value, -slope


def backward(self: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        z = x.detach().requires_grad_(True)
        (z ** 3).sum().backward()
    assert z.grad is not None
    return z.grad


DERIVATIVES: dict[str, Callable[..., Any]] = {
    "power": gradient(lambda self, z: z ** 3), "tanh": gradient(lambda self, z: self.layer(torch.tanh(z))),
    "softmax": gradient(lambda self, z: z.softmax(-1) ** 2), "layer_norm": gradient(lambda self, z: F.layer_norm(z, (3,)) ** 3 * torch.arange(3)),
    "norm": gradient(lambda self, z: z.norm(dim=-1)), "gelu": gradient(lambda self, z: F.gelu(z)),
    "max": gradient(lambda self, z: z.max(-1).values), "pairs": gradient(lambda self, z: ((z[:, None] - z[None]) ** 2).sum(-1).add(1).sqrt()),
    "take": gradient(lambda self, z: z[:, torch.tensor([0, 1, 1])] ** 2),
    "energy": energy,
    "func.grad": lambda self, x: torch.func.grad(lambda z: torch.tanh(self.layer(z)).sum())(x),
    "func.vjp": lambda self, x: torch.func.vjp(torch.tanh, x)[1](x)[0],
    "jacobian": lambda self, x: torch.vmap(torch.func.jacrev(lambda z: self.layer(z).tanh()))(x),
    "vmap-in-vmap": lambda self, x: torch.vmap(torch.vmap(lambda number: number * 2))(x),
}


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_operators(name: str, dynamic: bool) -> None:
    model, stream = Model(DERIVATIVES[name]).eval(), io.BytesIO()
    onnxport.export(model, torch.randn(4, 3), stream, input_names=["x"], dynamic_axes={"x": {0: "n"}} if dynamic else None)
    session = onnxruntime.InferenceSession(stream.getvalue(), providers=["CPUExecutionProvider"])
    for rows in (4, 1, 6) if dynamic else (4, 4):
        x = torch.randn(rows, 3)
        wanted = model(x)
        for got, want in zip(session.run(None, {"x": x.numpy()}), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert got.shape == tuple(want.shape)
            np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_derivative_that_branches_on_a_size_is_refused() -> None:
    function = gradient(lambda self, z: torch.tanh(z) if z.shape[0] > 3 else z ** 3)
    with pytest.raises(onnxport.errors.CaptureError, match=r"test_transforms\.py:\d+"):
        onnxport.export(Model(function), torch.randn(4, 3), io.BytesIO(), input_names=["x"], dynamic_axes={"x": {0: "n"}})


def test_a_number_read_from_a_tensor_is_a_condition() -> None:
    """Symbolic tracing takes the example's number where an index has to be a number of Python, and says nothing."""
    x, row = torch.randn(4, 3), torch.tensor(-2)
    _, found = torch_private.symbolically(lambda weights, x, i: x[i.item()], [], (x, row), [set(), set()])
    assert found
    _, found = torch_private.symbolically(lambda weights, x, i: x * i.item() + x[-2], [], (x, row), [set(), set()])
    assert not found


@pytest.mark.parametrize("way", ["func.grad", "tanh", "vmap-in-vmap"])
def test_the_tracer_alone_refuses_them(way: str) -> None:
    with pytest.raises(onnxport.errors.CaptureError, match="capture='export' takes another way"):
        onnxport.export(Model(DERIVATIVES[way]), torch.randn(4, 3), io.BytesIO(), capture="trace")
