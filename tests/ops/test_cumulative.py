"""Running totals and differences."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
INF = float("inf")
OLD = (8, 9, 10, 11, 13, 18, NEWEST)
NINE = {8: "needs opset 9"}


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def ints(*sizes: int) -> torch.Tensor:
    return torch.randint(-5, 6, sizes)


SPECIAL = torch.tensor([[1.0, INF, -1.0, -INF, 2.0], [float("nan"), 1.0, 3.0, 2.0, 5.0], [-INF, -INF, 0.0, 1.0, -INF]])


def case(id: str, function: Any, *args: Any, make: Any = x, opsets: Any = OLD, refused: Any = NINE, **kwargs: Any) -> Case:
    return Case(id, lambda t: function(t, *args, **kwargs), (make(2, 3, 4),), [(make(5, 1, 2),), (make(1, 6, 3),)], "all", opsets,
                {o: r for o, r in refused.items() if o in opsets})


CASES = [
    case("cumsum", torch.cumsum, 1),
    case("cumsum_last", torch.cumsum, -1),
    case("cumsum_int", torch.cumsum, 1, make=ints),
    case("cumsum_bool", torch.cumsum, 0, make=lambda *s: ints(*s) > 0),
    case("cumsum_dtype", torch.cumsum, 2, dtype=torch.float64),
    case("cumsum_half", torch.cumsum, 1, make=lambda *s: x(*s).half()),
    Case("cumsum_static_int", lambda t: t.cumsum(1), (ints(2, 5),), (), None, (9, 10, 11)),
    Case("cumsum_special", lambda t: t.cumsum(1), (SPECIAL,), (), None, (9, 18)),
    Case("cumsum_scalar", lambda t: t.cumsum(0), (torch.tensor(3),)),
    case("cumprod", torch.cumprod, 1, opsets=(*OLD, 25)),
    case("cumprod_int", torch.cumprod, -1, make=ints),
    case("cummax", torch.cummax, 1),
    case("cummax_ties", torch.cummax, 1, make=ints),
    case("cummin", torch.cummin, -1),
    case("cummin_bool", torch.cummin, 1, make=lambda *s: ints(*s) > 0),
    Case("cummax_special", lambda t: t.cummax(1), (SPECIAL,), (), None, (9, 18)),
    Case("cummax_scalar", lambda t: t.cummax(0), (x(),)),
    case("logcumsumexp", torch.logcumsumexp, 1),
    Case("logcumsumexp_special", lambda t: torch.logcumsumexp(t, 1), (torch.tensor([[-INF, -INF, 0.0, 100.0, -100.0],
         [1.0, INF, 2.0, -INF, 3.0]]),),
         (), None, (9, 18)),
    case("diff", torch.diff, opsets=(7, 9, 11, 13, 18, NEWEST), refused={}),
    case("diff_bool", torch.diff, make=lambda *s: ints(*s) > 0, opsets=(9, 18), refused={}),
    Case("diff_twice", lambda t: torch.diff(t, 2, 0), (x(4, 3),), [(x(2, 3),)], "all"),
    Case("diff_prepend", lambda t, a, b: torch.diff(t, dim=0, prepend=a, append=b), (x(4, 3), x(1, 3), x(2, 3)), (), None),
    case("trapezoid", torch.trapezoid, refused={}, opsets=(9, 11, 18)),
    case("trapezoid_dx", torch.trapezoid, dx=0.5, dim=1, refused={}, opsets=(9, 18)),
    Case("trapezoid_x", lambda y, t: torch.trapezoid(y, t, dim=1), (x(2, 3, 4), x(3)), [(x(5, 6, 2), x(6))], "all", (9, 18)),
    Case("trapezoid_x_full", lambda y, t: torch.trapezoid(y, t), (x(2, 3), x(2, 3)), (), None, (9, 18)),
    case("cumulative_trapezoid", torch.cumulative_trapezoid, opsets=(9, 11, 18), refused={}),
    Case("cumulative_trapezoid_x", lambda y, t: torch.cumulative_trapezoid(y, t), (x(2, 3), x(3)), (), None, (9, 18)),
]


@expand(CASES)
def test_cumulative(case: Case, opset: int) -> None:
    check(case, opset)
