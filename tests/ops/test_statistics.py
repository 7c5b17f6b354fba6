"""Covariances."""

from __future__ import annotations

import torch

from tests.ops.harness import Case, check, expand

torch.manual_seed(0)


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


COUNTS, SHARES = torch.tensor([1, 2, 1, 3]), torch.tensor([0.1, 0.4, 0.3, 0.2])
CASES = [
    Case("cov", torch.cov, (x(3, 4),), [(x(2, 7),)], "all"),
    Case("cov_vector", torch.cov, (x(4),), [(x(7),)], "all"),
    Case("cov_int", torch.cov, (torch.randint(-5, 5, (3, 4)),)),
    Case("cov_correction", lambda t: torch.cov(t, correction=0), (x(3, 4),), [(x(2, 7),)], "all"),
    Case("cov_too_few", lambda t: torch.cov(t, correction=2), (x(3, 2),)),
    Case("cov_counts", lambda t: torch.cov(t, fweights=COUNTS), (x(3, 4),), [(x(5, 4),)], {0: {0: "n"}}),
    Case("cov_shares", lambda t: torch.cov(t, aweights=SHARES), (x(3, 4),)),
    Case("cov_both", lambda t: torch.cov(t, correction=2, fweights=COUNTS, aweights=SHARES), (x(3, 4),)),
    Case("cov_half", lambda t: torch.cov(t, aweights=SHARES), (x(3, 4).half(),)),
    Case("corrcoef", torch.corrcoef, (x(3, 4),), [(x(2, 7),)], "all"),
    Case("corrcoef_vector", torch.corrcoef, (x(4),)),
]


@expand(CASES)
def test_statistics(case: Case, opset: int) -> None:
    check(case, opset)
