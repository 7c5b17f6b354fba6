"""Medians and quantiles."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
OPSETS = (9, 11, 13, 18, NEWEST)
NAN = float("nan")


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def distinct(*sizes: int) -> torch.Tensor:
    count = int(torch.tensor(sizes).prod())
    return torch.randperm(count).reshape(sizes)


def with_nan(*sizes: int) -> torch.Tensor:
    values = torch.randn(sizes)
    values.view(-1)[1::3] = NAN
    return values


def case(id: str, function: Any, *args: Any, make: Any = x, refused: Any = None, opsets: Any = OPSETS, **kwargs: Any) -> Case:
    return Case(id, lambda t: function(t, *args, **kwargs), (make(2, 5, 4),), [(make(3, 2, 6),), (make(1, 3, 1),)],
         "all", opsets, refused or {})


TEN = {9: "needs opset 1[01]"}
Q = torch.tensor([0.0, 0.3, 0.75, 1.0])
CASES = [
    case("median", torch.median, refused=TEN),
    case("median_dim", torch.median, 1, refused=TEN),
    case("median_keepdim", torch.median, -1, True, refused=TEN),
    case("median_int", torch.median, 1, make=distinct, refused=TEN),
    case("median_nan", torch.median, 1, make=with_nan, refused=TEN),
    case("median_half", torch.median, 1, make=lambda *s: distinct(*s).half(), refused=TEN),
    Case("median_static", lambda t: torch.median(t, 1), (x(2, 5),), [(x(2, 5),)], {0: {0: "n"}}, OPSETS),
    Case("median_scalar", torch.median, (x(),)),
    case("nanmedian", torch.nanmedian, make=with_nan, refused=TEN),
    case("nanmedian_dim", torch.nanmedian, 1, make=with_nan, refused=TEN),
    Case("nanmedian_all_nan", lambda t: torch.nanmedian(t, 1, True)[0], (torch.tensor([[NAN, NAN, NAN], [1.0, NAN, 2.0]]),),
         opsets=(11, 18)),
    case("mode", torch.mode, 1, make=lambda *s: torch.randint(0, 3, s), refused=TEN),
    case("mode_keepdim", torch.mode, keepdim=True, make=lambda *s: torch.randint(0, 3, s).float(), refused=TEN),
    Case("mode_scalar", torch.mode, (x(),)),
    case("quantile", lambda t: torch.quantile(t, Q, 1), opsets=OPSETS[1:]),
    case("quantile_keepdim", lambda t: torch.quantile(t, Q, 1, True), opsets=OPSETS[1:]),
    case("quantile_all", lambda t: torch.quantile(t, Q), opsets=OPSETS[1:]),
    case("quantile_all_keepdim", lambda t: torch.quantile(t, Q, keepdim=True), opsets=OPSETS[1:]),
    case("quantile_scalar", torch.quantile, 0.4, -1, opsets=OPSETS[1:]),
    case("quantile_nan", torch.quantile, 0.4, -1, make=with_nan, opsets=OPSETS[1:]),
    *[case(f"quantile_{how}", lambda t, how=how: torch.quantile(t, Q, 1, interpolation=how), opsets=OPSETS[1:])
      for how in ("lower", "higher", "nearest", "midpoint")],
    Case("quantile_given", lambda t, q: torch.quantile(t, q, 1), (x(2, 5), Q), [(x(3, 4), torch.tensor([0.5, 0.1]))], "all", OPSETS[1:]),
    Case("quantile_double", lambda t: torch.quantile(t, 0.3, 1), (x(2, 5).double(),), opsets=(11, 18), rtol=1e-9, atol=1e-12),
    case("nanquantile", lambda t: torch.nanquantile(t, Q, 1), make=with_nan, opsets=OPSETS[1:]),
    case("nanquantile_scalar", torch.nanquantile, 0.4, 1, True, make=with_nan, opsets=OPSETS[1:]),
]


@expand(CASES)
def test_order(case: Case, opset: int) -> None:
    check(case, opset)
