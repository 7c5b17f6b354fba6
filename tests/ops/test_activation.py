"""Activations."""

from __future__ import annotations

import torch

from tests.ops.harness import Case, check, expand

CASES = [
    Case("relu", torch.relu, (torch.randn(2, 3),), [(torch.randn(4, 5),), (torch.randn(0, 5),)], "all"),
    Case("relu_scalar", torch.relu, (torch.randn(()),)),
]


@expand(CASES)
def test_activation(case: Case, opset: int) -> None:
    check(case, opset)
