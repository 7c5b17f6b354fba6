"""Factors of matrices, and what is computed from singular values. Where a sign is open, what does not depend on it is compared."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.harness import NEWEST, Case, check, expand
from tests.ops.test_linalg import B, positive, regular, x

torch.manual_seed(0)
OPSETS = (9, 13, 18, NEWEST)
TEN = {9: "Slice with 'ends' that the graph computes needs opset 10"}


def case(id: str, function: Any, *args: Any, others: Any = (), dynamic: Any = None, refused: Any = None) -> Case:
    return Case(id, function, args, others, dynamic, OPSETS, refused or {}, rtol=1e-3, atol=1e-4)


def low(*batch: int, m: int = 6, n: int = 4, rank: int = 2) -> torch.Tensor:
    """Matrices of lesser rank than they have rows and columns."""
    return torch.randn(*batch, m, rank) @ torch.randn(*batch, rank, n)


def svd(full: bool) -> Any:
    def run(a: torch.Tensor) -> Any:
        u, s, vh = torch.linalg.svd(a, full_matrices=full)
        k = s.shape[-1]
        return s, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], u.mT @ u, vh @ vh.mT

    return run


def eigh(upper: str = "L") -> Any:
    def run(a: torch.Tensor) -> Any:
        values, vectors = torch.linalg.eigh(a, UPLO=upper)
        return values, (vectors * values[..., None, :]) @ vectors.mT, vectors.abs()

    return run


def lstsq(driver: str) -> Any:
    return lambda a, b: tuple(torch.linalg.lstsq(a, b, driver=driver))


def solved_by_factor(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.lu_solve(b, *torch.linalg.lu_factor(a))


FACTORED = torch.linalg.lu_factor(regular(2))
REFLECTIONS = torch.geqrf(x(2, 5, 3))
SEVERAL_SIZES = [(x(1, 3, 5),), (x(3, 4, 4),), (x(2, 1, 1),), (x(1, 20, 12),), (torch.zeros(1, 4, 3),), (low(2),)]
SQUARES = [(regular(3, n=5),), (regular(1, n=1),), (regular(2, n=12),), (regular(0, n=3),)]
CASES = [
    case("lu", torch.linalg.lu, x(2, 5, 3), others=[(x(2, 3, 5),), (x(1, 11, 12),)], dynamic="all", refused=TEN),
    case("lu_written_out", torch.linalg.lu, x(4, 3, 5)),
    case("lu_double", torch.linalg.lu, regular(n=12).double()),
    case("lu_factor_ex", torch.linalg.lu_factor_ex, regular(2, n=4), others=[*SQUARES, (torch.zeros(1, 3, 3),)], dynamic="all"),
    case("lu_factor_ex_empty", torch.linalg.lu_factor_ex, torch.zeros(2, 0, 0)),
    case("lu_unpack", lambda d, p: torch.lu_unpack(d, p), *FACTORED),
    case("lu_unpack_pivots", lambda d, p: torch.lu_unpack(d, p, unpack_data=False), *FACTORED),
    case("lu_solve", lambda d, p, b: torch.linalg.lu_solve(d, p, b), *FACTORED, x(2, 3, 2)),
    case("lu_solve_right", lambda d, p, b: torch.linalg.lu_solve(d, p, b, left=False), *FACTORED, x(2, 3)),
    case("lu_solve_adjoint", lambda d, p, b: torch.linalg.lu_solve(d, p, b, adjoint=True), *FACTORED, x(3, 2)),
    case("lu_solve_dynamic", solved_by_factor, regular(2, n=4), x(2, 4, 3), others=[(regular(5, n=9), x(5, 9, 2))],
         dynamic={0: {0: "b", 1: "n", 2: "n"}, 1: {0: "b", 1: "n", 2: "k"}}),
    case("cholesky_large", torch.linalg.cholesky, positive(2, n=9), others=[(positive(1, n=17),), (positive(2, n=1),)], dynamic="all"),
    case("cholesky_ex", torch.linalg.cholesky_ex, positive(2, n=4)),
    case("cholesky_info", lambda a: torch.linalg.cholesky_ex(a).info, positive(2, n=3), others=[(torch.diag_embed(torch.tensor([[1.0, 1, -1], [-1, 1, 1]])),)]),
    case("qr", torch.linalg.qr, x(2, 5, 3), others=[(x(1, 3, 5),), (x(3, 12, 12),), (torch.zeros(1, 3, 2),)], dynamic="all", refused=TEN),
    case("qr_complete", lambda a: torch.linalg.qr(a, mode="complete"), x(2, 5, 3), others=[(x(1, 11, 10),)], dynamic="all"),
    case("qr_r", lambda a: torch.linalg.qr(a, mode="r"), x(3, 5)),
    case("qr_double", torch.linalg.qr, x(12, 10).double()),
    case("geqrf", torch.geqrf, x(2, 5, 3), others=[(x(2, 5, 3) * 1e-25,)]),
    case("householder_product", torch.linalg.householder_product, *REFLECTIONS),
    case("ormqr", torch.ormqr, *REFLECTIONS, x(2, 5, 2)),
    case("ormqr_right", lambda a, t, b: torch.ormqr(a, t, b, left=False, transpose=True), *REFLECTIONS, x(2, 2, 5)),
    case("svd", svd(False), x(2, 5, 3), others=[*SEVERAL_SIZES, (x(0, 5, 3),)], dynamic="all", refused=TEN),
    case("svd_full", svd(True), x(2, 5, 3), others=SEVERAL_SIZES, dynamic="all", refused=TEN),
    case("svd_wide", svd(True), x(3, 5), others=[(low(m=3, n=5),)]),
    case("svd_double", svd(False), x(6, 5).double()),
    case("svd_empty", svd(False), x(2, 0, 3)),
    case("svd_vectors", lambda a: torch.linalg.svd(a, full_matrices=False).Vh.abs(), x(2, 5, 3)),
    case("svdvals", torch.linalg.svdvals, x(2, 5, 3), others=SEVERAL_SIZES, dynamic="all", refused=TEN),
    case("svd_old", lambda a: torch.svd(a, compute_uv=False), x(4, 3)),
    case("eigh", eigh(), regular(2), others=[(regular(3, n=5),), (regular(1, n=1),), (regular(1, n=12),), (regular(0, n=3),)], dynamic="all", refused=TEN),
    case("eigh_upper", eigh("U"), regular(2, n=4)),
    case("eigh_double", eigh(), regular(n=6).double()),
    case("eigvalsh", torch.linalg.eigvalsh, regular(2), others=[(torch.zeros(2, 3, 3),)], dynamic=B),
    case("svdvals_empty", torch.linalg.svdvals, x(2, 0, 3)),
    case("pinv", torch.linalg.pinv, x(2, 5, 3), others=[(x(3, 3, 5),), (low(1),), (x(2, 12, 9),)], dynamic="all", refused=TEN),
    case("pinv_wide", torch.linalg.pinv, x(3, 5), others=[(torch.zeros(3, 5),)]),
    case("pinv_hermitian", lambda a: torch.linalg.pinv(a, hermitian=True), regular(2)),
    case("pinv_tolerances", lambda a: torch.linalg.pinv(a, atol=0.5, rtol=0.3), x(2, 5, 3)),
    case("pinv_tensors", lambda a, t: torch.linalg.pinv(a, atol=t), x(2, 5, 3), torch.tensor([0.0, 1.0])),
    case("pinverse", torch.pinverse, x(5, 3)),
    case("lstsq", lstsq("gelsy"), x(2, 6, 3), x(2, 6, 2), others=[(low(3, m=7), x(3, 7, 1))],
         dynamic={0: {0: "b", 1: "m", 2: "n"}, 1: {0: "b", 1: "m", 2: "k"}}, refused=TEN),
    case("lstsq_wide", lstsq("gelsy"), x(2, 3, 5), x(2, 3, 2)),
    case("lstsq_vector", lstsq("gelsy"), x(6, 3), x(6)),
    case("lstsq_gels", lstsq("gels"), x(2, 6, 3), x(2, 6, 2)),
    case("lstsq_gels_dynamic", lstsq("gels"), x(6, 3), x(6, 2), others=[(x(4, 3), x(4, 2)), (x(3, 3), x(3, 2))], dynamic={0: {0: "m"}, 1: {0: "m"}}, refused=TEN),
    case("lstsq_gelsd", lstsq("gelsd"), x(6, 4), x(6, 2), others=[(low(), x(6, 2))], refused=TEN),
    case("lstsq_gelss_batch", lstsq("gelss"), x(2, 6, 4), x(2, 6, 2)),
    case("lstsq_gels_batch_dynamic", lstsq("gels"), x(2, 6, 3), x(2, 6, 2), dynamic={0: {0: "b", 1: "m"}, 1: {0: "b", 1: "m"}},
         refused=dict.fromkeys(OPSETS, "driver='gelsy' gives the same solution|needs opset 10")),
    case("matrix_rank", torch.linalg.matrix_rank, low(2), others=[(x(3, 5, 4),), (torch.zeros(1, 3, 4),)], dynamic="all", refused=TEN),
    case("cond", torch.linalg.cond, regular(2), others=[(regular(5, n=4),)], dynamic="all", refused=TEN),
    *[case(f"cond_{p}", lambda a, p=p: torch.linalg.cond(a, p), regular(2)) for p in (-2, 1, "fro")],
    *[case(f"norm_{p}", lambda a, p=p: torch.linalg.matrix_norm(a, ord=p, dim=(0, 2), keepdim=True), x(4, 2, 3), others=[(x(3, 1, 6),)], dynamic="all", refused=TEN)
      for p in ("nuc", 2, -2)],
    case("norm_empty", lambda a: torch.linalg.matrix_norm(a, ord=2), x(2, 0, 3)),
    *([case("polar", torch.linalg.polar, x(2, 5, 3)), case("sqrth", torch.linalg.matrix_sqrth, positive(2))]
      if hasattr(torch.linalg, "polar") else []),  # since torch 2.14
    case("matrix_exp", torch.linalg.matrix_exp, x(2, 3, 3), others=[(x(4, 9, 9),), (x(1, 1, 1) * 20,), (torch.zeros(2, 2, 2),), (x(0, 3, 3),)], dynamic="all"),
    case("matrix_exp_double", torch.matrix_exp, x(3, 3).double() * 7),
    case("matrix_exp_mixed", torch.matrix_exp, torch.stack([x(3, 3) * 1e-3, x(3, 3) * 9])),
]


@expand(CASES)
def test_factors(case: Case, opset: int) -> None:
    check(case, opset)
