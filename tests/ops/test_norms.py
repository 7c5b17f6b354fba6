"""Norms and distances."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
INF = float("inf")


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def case(id: str, function: Any, *args: Any, **kwargs: Any) -> Case:
    return Case(id, lambda t: function(t, *args, **kwargs), (x(2, 3, 4),), [(x(5, 1, 2),)], "all")


CASES = [
    *[case(f"vector_norm_{p}", torch.linalg.vector_norm, p, -1) for p in (0, 1, 2, 3, 0.5, -1, INF, -INF)],
    case("vector_norm_all", torch.linalg.vector_norm),
    case("vector_norm_dims", torch.linalg.vector_norm, 3, (0, 2), True),
    case("vector_norm_dtype", torch.linalg.vector_norm, 2, 1, dtype=torch.float64),
    Case("vector_norm_scalar", lambda t: torch.linalg.vector_norm(t), (x(),)),
    Case("vector_norm_half", lambda t: torch.linalg.vector_norm(t, 3, 1), (x(2, 5).half() * 50,)),
    Case("norm_of_nothing", lambda t: (t.norm(), t.norm(float("inf"), 0) if len(t) else t.norm(1)), (torch.zeros(0, 3),), opsets=(9, 18)),
    case("norm", torch.norm),
    case("norm_dim", torch.norm, 1, 1, True),
    Case("aten_norm", lambda t: torch.ops.aten.norm.ScalarOpt_dim(t, 3, [1], True), (x(2, 3),)),
    Case("aten_norm_dtype", lambda t: torch.ops.aten.norm.ScalarOpt_dtype(t, None, dtype=torch.float64), (x(2, 3),)),
    *[case(f"matrix_norm_{p}", torch.linalg.matrix_norm, p, (0, -1)) for p in ("fro", 1, -1, INF, -INF)],
    Case("matrix_norm_of_nothing", lambda t: torch.linalg.matrix_norm(t, 1), (torch.zeros(2, 0, 3),), opsets=(9, 18)),
    case("matrix_norm_keepdim", torch.linalg.matrix_norm, 1, (-1, 0), True),
    Case("matrix_norm_2", lambda t: torch.linalg.matrix_norm(t, 2), (x(2, 3),)),
    case("linalg_norm", torch.linalg.norm),
    case("linalg_norm_fro", torch.linalg.norm, "fro", (0, 1)),
    case("linalg_norm_inf_dims", torch.linalg.norm, INF, (1, 2)),
    Case("linalg_norm_matrix", lambda t: torch.linalg.norm(t, 1), (x(3, 4),), [(x(2, 5),)], "all"),
    Case("linalg_norm_vector", lambda t: torch.linalg.norm(t, 1), (x(4),), [(x(5),)], "all"),
    Case("dist", lambda a, b: torch.dist(a, b, 3), (x(2, 3), x(3)), (), None),
    Case("dist_inf", lambda a, b: torch.dist(a, b, INF), (x(2, 3), x(2, 3)), [(x(5, 3), x(5, 3))], "all"),
    *[Case(f"cdist_{p}", lambda a, b, p=p: torch.cdist(a, b, p), (x(2, 3, 5), x(2, 4, 5)), [(x(1, 2, 5), x(1, 7, 5))],
           {0: {0: "b", 1: "p"}, 1: {0: "b", 1: "r"}}) for p in (1.0, 2.0, 3.0, INF, 0.0)],
    Case("cdist_large", lambda a, b: torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist"), (x(30, 3), x(30, 3)),
         [(x(2, 3), x(5, 3))], {0: {0: "p"}, 1: {0: "r"}}, (9, 18)),
    Case("pdist_dynamic", lambda a: [torch.pdist(a, p) for p in (2.0, 1.0, 0.0, float("inf"))], (x(4, 3),), [(x(6, 2),), (x(1, 3),)], "all"),
    Case("pdist", torch.pdist, (x(4, 3),), [(x(4, 3),)], {0: {1: "m"}}),
    Case("renorm", lambda t: torch.renorm(t, 2, 0, 1.0), (x(3, 4),), [(x(2, 5) * 0.1,)], "all"),
    Case("renorm_1", lambda t: torch.renorm(t, 1, -1, 0.5), (x(3, 4, 2),), [(x(2, 5, 3),)], "all", (9, 18, NEWEST)),
]


@expand(CASES)
def test_norms(case: Case, opset: int) -> None:
    check(case, opset)
