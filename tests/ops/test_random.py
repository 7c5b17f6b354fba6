"""Random numbers: of the right dtype and shape at every size, anew at each run, with the moments of their distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from onnxport import errors
from tests.ops.harness import NEWEST, Case, check, expand, exported

X = torch.randn(100, 60).clamp(-3, 3)
ODDS = (X.abs() + 0.1) * torch.arange(60).lt(20)


@dataclass(frozen=True)
class Draw:
    """mean, std: of all elements together.   low, high: no element is beyond these.   whole: integers."""

    function: Callable[..., Any]
    mean: float
    std: float
    low: float = -math.inf
    high: float = math.inf
    x: torch.Tensor = X


def uniform(low: float, high: float) -> tuple[float, float, float, float]:
    return (low + high) / 2, (high - low) / math.sqrt(12), low, high


DRAWS = {
    "rand": Draw(lambda x: torch.rand(x.shape[0], x.shape[1]), *uniform(0, 1)),
    "rand_double": Draw(lambda x: torch.rand(x.shape, dtype=torch.float64), *uniform(0, 1)),
    "rand_half": Draw(lambda x: torch.rand_like(x, dtype=torch.float16), *uniform(0, 1)),
    "randn": Draw(lambda x: torch.randn(x.shape[0], x.shape[1]) * 2 + 1, 1, 2),
    "randn_double": Draw(lambda x: torch.randn_like(x, dtype=torch.float64), 0, 1),
    "randint": Draw(lambda x: torch.randint(-5, 10, (x.shape[0], 50)), 2, math.sqrt((15**2 - 1) / 12), -5, 9),
    "randint_like": Draw(lambda x: torch.randint_like(x, 7), 3, 2, 0, 6),
    "uniform": Draw(lambda x: x.clone().uniform_(2, 5), *uniform(2, 5)),
    "random": Draw(lambda x: x.clone().random_(2, 6), 3.5, math.sqrt(15 / 12), 2, 5),
    "normal": Draw(lambda x: torch.normal(x * 0 + 3, x * 0 + 2), 3, 2),
    "normal_number": Draw(lambda x: torch.normal(x * 0 + 3, 0.5), 3, 0.5),
    "normal_size": Draw(lambda x: torch.normal(1.0, 2.0, (x.shape[0], 30)), 1, 2),
    "normal_in_place": Draw(lambda x: x.clone().normal_(2, 0.5), 2, 0.5),
    "log_normal": Draw(lambda x: x.clone().log_normal_(0.3, 0.4), math.exp(0.38), math.exp(0.38) * math.sqrt(math.exp(0.16) - 1), 0),
    "exponential": Draw(lambda x: x.clone().exponential_(2), 0.5, 0.5, 0),
    "geometric": Draw(lambda x: x.clone().geometric_(0.3), 1 / 0.3, math.sqrt(0.7) / 0.3, 1),
    "bernoulli": Draw(lambda x: torch.bernoulli(x * 0 + 0.3), 0.3, math.sqrt(0.21), 0, 1),
    "bernoulli_number": Draw(lambda x: torch.bernoulli(x, 0.3) + 1, 1.3, math.sqrt(0.21), 1, 2),
    "bernoulli_in_place": Draw(lambda x: x.clone().bernoulli_(0.8), 0.8, 0.4, 0, 1),
    "multinomial": Draw(lambda x: torch.multinomial(x, 5), 9.5, 5.8, 0, 19, ODDS),
    "multinomial_again": Draw(lambda x: torch.multinomial(x, 50, True), 9.5, 5.8, 0, 19, ODDS),
    "multinomial_one_row": Draw(lambda x: torch.multinomial(x[0] * 0 + x.sum() * 0 + 1, 500, True), 29.5, 17.3, 0, 59, X.abs()),
    "dropout": Draw(lambda x: F.dropout(x * 0 + 1, 0.3, True) + 1, 2, math.sqrt(0.3 / 0.7), 1, 1 + 1 / 0.699),
    "feature_dropout": Draw(
        lambda x: F.dropout1d((x * 0 + 1)[:, :, None].expand(-1, -1, 3), 0.3, True) + 1, 2, math.sqrt(0.3 / 0.7), 1, 1 + 1 / 0.699
    ),
    "alpha_dropout": Draw(lambda x: F.alpha_dropout(x, 0.3, True) * 1, 0, 1, x=torch.randn(100, 60)),
    "feature_alpha_dropout": Draw(lambda x: F.feature_alpha_dropout(x, 0.3, True) * 1, 0, 1, x=torch.randn(100, 60)),
    "rrelu": Draw(lambda x: F.rrelu(x * 0 - 1, 0.1, 0.3, training=True), *uniform(-0.3, -0.1)),
}


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 21, 22, NEWEST])
@pytest.mark.parametrize("name", DRAWS)
def test_distribution(name: str, opset: int) -> None:
    draw = DRAWS[name]
    session = exported(Case(name, draw.function, (draw.x,), dynamic={0: {0: "rows"}}), opset, dynamic=True)
    want = draw.function(draw.x)
    for x in (draw.x, torch.cat([draw.x, draw.x])):
        first, second = (session.run(None, {"x0": x.numpy()})[0] for _ in range(2))
        assert not np.array_equal(first, second), "the same numbers again"
        assert str(want.dtype) == f"torch.{first.dtype}"
        assert first.shape[1:] == want.shape[1:]
        assert len(first) == len(want) * (len(x) // len(draw.x) if len(want) == len(draw.x) else 1)
        assert draw.low - 1e-3 <= first.min()
        assert first.max() <= draw.high + 1e-3
        error = draw.std / math.sqrt(first.size) * (10 if "feature" in name else 6)
        assert abs(first.astype(np.float64).mean() - draw.mean) < error + 1e-3 * abs(draw.mean) * (30 if "multinomial" in name else 1)
        assert abs(first.astype(np.float64).std() / draw.std - 1) < 0.15


def test_permutation_of_a_dynamic_length_needs_opset_10() -> None:
    with pytest.raises(errors.UnsupportedError, match="needs opset 10"):
        exported(Case("randperm", lambda x: torch.randperm(x.shape[0]), (X,), dynamic="all"), 9, dynamic=True)


@pytest.mark.parametrize("opset", [10, 11, 18, 22, NEWEST])
def test_permutation(opset: int) -> None:
    session = exported(Case("randperm", lambda x: torch.randperm(x.shape[0]), (X,), dynamic="all"), opset, dynamic=True)
    for x in (X, X[:7]):
        first, second = (session.run(None, {"x0": x.numpy()})[0] for _ in range(2))
        assert sorted(first.tolist()) == list(range(len(x)))
        assert not np.array_equal(first, second)


@pytest.mark.parametrize("opset", [18, NEWEST])
def test_draws_are_independent(opset: int) -> None:
    """Two draws of one graph, and neighbours within a draw, do not follow each other."""
    session = exported(
        Case("two", lambda x: (torch.randn_like(x), torch.randn_like(x), torch.rand_like(x)), (X,), dynamic="all"), opset, dynamic=True
    )
    a, b, c = (v.ravel() for v in session.run(None, {"x0": X.numpy()}))
    bound = 6 / math.sqrt(a.size)
    for left, right in ((a, b), (a, c), (a[1:], a[:-1]), (c[1:], c[:-1])):
        assert abs(np.corrcoef(left, right)[0, 1]) < bound
    assert abs(np.mean(((a - a.mean()) / a.std()) ** 4) - 3) < 0.6  # as flat as a normal distribution
    assert abs(np.mean(a > 1) - 0.1587) < 0.03


def everything_off(x: torch.Tensor) -> Any:
    return (
        F.dropout(x, 0.5, False) * 2,
        F.dropout2d(x, 0.5, False) * 2,
        F.alpha_dropout(x, 0.5, False) * 2,
        F.feature_alpha_dropout(x, 0.5, False) * 2,
        F.dropout(x, 0.0, True) * 2,
    )


CASES = [
    Case("off", everything_off, (torch.randn(2, 3, 4, 4),), [(torch.randn(1, 3, 2, 2),)], "all"),
    Case(
        "modules_off",
        torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Dropout2d(0.2), torch.nn.AlphaDropout(0.3)),
        (torch.randn(2, 3, 4, 4),),
        [],
        "all",
    ),
    Case(
        "all_dropped",
        lambda x: (F.dropout(x, 1.0, True), F.dropout1d(x, 1.0, True), torch.bernoulli(x, 0.0), torch.bernoulli(x, 1.0)),
        (torch.randn(2, 3, 4),),
        [(torch.randn(1, 3, 2),)],
        "all",
    ),
]


@expand(CASES)
def test_nothing_random(case: Case, opset: int) -> None:
    check(case, opset)
