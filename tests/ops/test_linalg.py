"""Linear algebra of square matrices."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
OPSETS = (9, 11, 13, 18, NEWEST)



def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def regular(*batch: int, n: int = 3) -> torch.Tensor:
    """Matrices far from singular, whose diagonal is not their largest."""
    return torch.randn(*batch, n, n) + 3 * torch.eye(n).roll(1, 0)


def positive(*batch: int, n: int = 3) -> torch.Tensor:
    a = torch.randn(*batch, n, n)
    return a @ a.mT + torch.eye(n)


def case(id: str, function: Any, *args: Any, others: Any = (), dynamic: Any = None, **kwargs: Any) -> Case:
    return Case(id, function, args, others, dynamic, OPSETS, rtol=1e-3, **kwargs)


B = {0: {0: "b"}}
CASES = [
    Case("trace", torch.trace, (x(3, 4),), [(x(3, 4),)]),
    Case("trace_dynamic", torch.trace, (x(3, 4),), [(x(5, 2),), (x(1, 1),)], "all"),
    Case("trace_int", torch.trace, (torch.randint(0, 9, (3, 3), dtype=torch.int32),)),
    *[Case(f"power_{n}", lambda t, n=n: torch.linalg.matrix_power(t, n), (x(2, 3, 3),), [(x(5, 3, 3),)], B) for n in (0, 1, 2, 7)],
    case("power_negative", lambda t: torch.linalg.matrix_power(t, -2), regular(2), others=[(regular(5),)], dynamic=B),
    case("det", torch.linalg.det, regular(2), others=[(regular(5),)], dynamic=B),
    case("det_double", torch.linalg.det, regular(2).double()),
    Case("det_dynamic", torch.det, (regular(n=3),), [(regular(n=5),)], "all", (11, 18, NEWEST), rtol=1e-3),
    case("logdet", torch.logdet, positive(2)),
    case("slogdet", torch.linalg.slogdet, regular(2), others=[(regular(3, n=12),), (regular(1, n=50) * 1e3,), (torch.zeros(1, 2, 2),)], dynamic="all"),
    case("logdet_dynamic", torch.logdet, positive(2), others=[(positive(3, n=12),), (-regular(2),), (positive(1, n=50) * 1e3,)], dynamic="all"),
    *[case(f"inv_{n}", torch.linalg.inv, regular(2, n=n), others=[(regular(5, n=n),)], dynamic=B) for n in (1, 2, 4)],
    case("inv_one", torch.inverse, regular(n=4)),
    case("inv_ex", torch.linalg.inv_ex, regular(2)),
    case("inv_double", torch.linalg.inv, regular(2).double()),
    case("inv_large", torch.linalg.inv, regular(n=20)),
    case("solve", torch.linalg.solve, regular(2), x(2, 3, 5), others=[(regular(4), x(4, 3, 5))], dynamic={0: {0: "b"}, 1: {0: "b"}}),
    case("solve_vector", torch.linalg.solve, regular(), x(3)),
    case("solve_vectors", torch.linalg.solve, regular(2), x(2, 3)),
    case("solve_right", lambda a, b: torch.linalg.solve(a, b, left=False), regular(2), x(2, 5, 3)),
    case("solve_broadcast", torch.linalg.solve, regular(2), x(3, 5)),
    case("solve_triangular", lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), regular(2) + 3 * torch.eye(3), x(2, 3, 2)),
    case("solve_unitriangular", lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True), regular(2), x(2, 3, 2)),
    case("cholesky", torch.linalg.cholesky, positive(2, n=4), others=[(positive(5, n=4),)], dynamic=B),
    case("cholesky_upper", lambda t: torch.linalg.cholesky(t, upper=True), positive(n=3)),
    *[case(f"empty_{f.__name__}", f, torch.zeros(2, 0, 0)) for f in (torch.linalg.inv, torch.linalg.cholesky)],
    case("cholesky_solve", torch.cholesky_solve, x(2, 3, 2), torch.linalg.cholesky(positive(2))),
    case("cholesky_inverse", lambda t: torch.cholesky_inverse(t, upper=True), torch.linalg.cholesky(positive(2), upper=True)),
    case("triangular_solve", lambda b, a: torch.triangular_solve(b, a, transpose=True), x(2, 3, 2), regular(2) + 3 * torch.eye(3)),
    case("tensorinv", lambda t: torch.linalg.tensorinv(t, 1), x(4, 2, 2)),
    case("tensorsolve", torch.linalg.tensorsolve, x(2, 2, 4), x(2, 2)),
    case("tensorsolve_dims", lambda a, b: torch.linalg.tensorsolve(a, b, dims=(0,)), x(4, 2, 2), x(2, 2)),
    Case("vander", torch.linalg.vander, (x(2, 3),), [(x(4, 5),)], "all"),
    Case("vander_n", lambda t: torch.linalg.vander(t, N=5), (x(2, 3),), [(x(4, 2),)], "all"),
]


@expand(CASES)
def test_linalg(case: Case, opset: int) -> None:
    check(case, opset)
