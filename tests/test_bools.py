"""Python bools where operators take numbers: PyTorch's tracer refuses them, an export does not."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import onnxport

from .ops.harness import Case, Wrapped, check

PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "full": lambda x: torch.full((x.shape[0],), False) | (x[:, 0] > 0),
    "full-dtype": lambda x: torch.full((1, 3), True, dtype=torch.float32) + x,
    "full_like": lambda x: (torch.full_like(x, True), x.new_full((2,), False), torch.scalar_tensor(True)),
    "fill": lambda x: (torch.fill(x, 1.5), torch.fill(x, True), x.clone().fill_(False)),
    "masked_fill": lambda x: (x.masked_fill(x > 0, True), (x > 0).masked_fill(x > 1, False)),
    "where": lambda x: (torch.where(x > 0, True, False), torch.where(x > 0, x, True), torch.where(x > 0, True, x > -1)),
    "clamp": lambda x: (x.clamp(False, True), x.clamp(min=True), F.hardtanh(x, False, True), F.threshold(x, False, True)),
    "scatter": lambda x: (x > 0).scatter(1, torch.zeros_like(x, dtype=torch.int64)[:, :1], True),
    "index_fill": lambda x: (x > 0).index_fill(1, torch.tensor([0]), True),
    "logic": lambda x: ((x > 0) & True, (x > 0) | False, (x > 0) ^ True, (x > 0) == False, (x > 0) != True),  # noqa: E712
    "compare": lambda x: (x == True, x > False, torch.eq(x, True)),  # noqa: E712
    "arithmetic": lambda x: (x + True, x * False, (x > 0) + True, x**True, x % True, x / True),
    "activations": lambda x: (F.leaky_relu(x, True), F.elu(x, True), F.softplus(x, True), torch.addcmul(x, x, x, value=True)),
    "pad": lambda x: F.pad(x > 0, (1, 1), value=True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bools_are_numbers(name: str) -> None:
    check(Case(name, PROGRAMS[name], (torch.randn(4, 3),), [(torch.randn(2, 3),)], {0: {0: "n"}}), 18)


def test_a_failure_of_the_tracer_says_what_to_do() -> None:
    layer = torch.nn.Linear(3, 3)
    model, stream = Wrapped(lambda x: checkpoint(layer, x, use_reentrant=True)), io.BytesIO()
    with pytest.raises(onnxport.errors.CaptureError, match="use_reentrant=True"):
        onnxport.export(model, torch.randn(2, 3), capture="trace")
    onnxport.export(model, torch.randn(2, 3), stream, input_names=["x"])  # by way of torch.export
    x = torch.randn(2, 3)
    (got,) = onnxruntime.InferenceSession(stream.getvalue()).run(None, {"x": x.numpy()})
    np.testing.assert_allclose(got, layer(x).detach().numpy(), rtol=1e-5, atol=1e-6)
