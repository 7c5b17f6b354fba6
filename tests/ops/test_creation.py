"""Tensors made of nothing: every dtype, dynamic sizes and ends."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.harness import NEWEST, OPSETS, Case, check, expand

X = torch.randn(2, 3)
OTHERS = [(torch.randn(5, 1),), (torch.randn(1, 4),)]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]


def sized(name: str, function: Any, opsets: Any = OPSETS, **more: Any) -> list[Case]:
    """Made from the sizes of an input: dynamic at three sizes, and static."""
    return [Case(name, function, (X,), OTHERS, "all", opsets, **more)]


CASES = [
    *sized("zeros", lambda x: torch.zeros(x.shape[0], 3), (7, 8, *OPSETS)),
    *sized("ones", lambda x: torch.ones(x.shape) + x, (7, 8, *OPSETS)),
    *sized("zeros_dtypes", lambda x: tuple(torch.zeros(x.shape[1], dtype=d) for d in DTYPES)),
    *sized("ones_dtypes", lambda x: tuple(torch.ones(x.shape[1], dtype=d) for d in DTYPES)),
    *sized(
        "full",
        lambda x: (
            torch.full((x.shape[0],), 3),
            torch.full((x.shape[0], 2), 2.5),
            torch.full((x.shape[0],), 1, dtype=torch.bool),
            torch.full((2, x.shape[1]), 7, dtype=torch.float64),
        ),
    ),
    *sized("full_of_size", lambda x: torch.full((3,), x.shape[0])),
    *sized(
        "likes",
        lambda x: (
            torch.zeros_like(x),
            torch.ones_like(x, dtype=torch.int64),
            torch.full_like(x, 2),
            torch.full_like(x, 2.5, dtype=torch.float64),
            torch.zeros_like(x, dtype=torch.bool),
        ),
    ),
    *sized(
        "news",
        lambda x: (
            x.new_zeros(x.shape[0]),
            x.new_ones(2, x.shape[1]),
            x.new_full((x.shape[1],), 3),
            x.new_zeros(x.shape, dtype=torch.int32),
            x.new_tensor([1.0, 2.0]),
        ),
    ),
    *sized("filled", lambda x: (x.clone().fill_(2), x.clone().zero_())),
    *sized("empty", lambda x: (torch.empty(x.shape[0], 3) * 0).isnan().shape[0] + x),
    Case(
        "rank_0",
        lambda x: (torch.zeros(()) + x, torch.full((), 3.5) * x, torch.zeros_like(x), torch.scalar_tensor(3) + x),
        (torch.tensor(2.0),),
        [],
    ),
    Case("static_large", lambda x: x + torch.ones(60, 60) * 2 + torch.full((60, 1), 3.0), (torch.randn(60, 60),), []),
    Case("zero_size", lambda x: torch.cat([torch.zeros(0, 3), x]), (X,), [(torch.randn(4, 3),)], {0: {0: "n"}}),
    *sized("arange", lambda x: torch.arange(x.shape[1])),
    *sized(
        "arange_start", lambda x: (torch.arange(1, x.shape[1] + 2), torch.arange(-x.shape[0], 3), torch.arange(2, 2 + x.shape[0] * 3, 2))
    ),
    *sized("arange_down", lambda x: torch.arange(x.shape[0] + 3, 0, -2)),
    *sized("arange_dtypes", lambda x: tuple(torch.arange(x.shape[1], dtype=d) for d in DTYPES[:5])),
    *sized("arange_device", lambda x: torch.arange(x.shape[1], device=x.device).unsqueeze(0) + x),
    *sized("arange_fractions", lambda x: (torch.arange(0, x.shape[0], 0.3), torch.arange(0.5, x.shape[0] + 1)), OPSETS),
    *sized("arange_dynamic_step", lambda x: torch.arange(0, 10, x.shape[1])),
    *sized("triangle_by_size", lambda x: (x.tril(x.shape[0] - 2), x.triu(x.shape[1] - 3))),
    *sized("triangle_indices_dynamic", lambda x: (torch.tril_indices(x.shape[0], x.shape[1]), torch.triu_indices(x.shape[0], 3, 1))),
    *sized("arange_truncated", lambda x: torch.arange(0.5, x.shape[0] + 2.5, dtype=torch.int64)),
    Case("arange_static", lambda x: x + torch.arange(4) + torch.arange(0, 1, 0.25) + torch.arange(4, 0, -1), (torch.randn(3, 4),), []),
    Case(
        "arange_static_long",
        lambda x: x + torch.arange(5000) + torch.arange(0, 500, 0.1) + torch.arange(5000, 0, -1, dtype=torch.float64),
        (torch.randn(5000),),
        [],
        opsets=(9, 11, 18, NEWEST),
    ),
    Case("range", lambda x: x + torch.arange(1, 4).float(), (torch.randn(3),), []),
    *sized("linspace", lambda x: torch.linspace(-1, 1, x.shape[1]), rtol=1e-6),
    *sized("linspace_shifted", lambda x: torch.linspace(0.5, x.shape[0] - 0.5, x.shape[0])),
    *sized("linspace_down", lambda x: torch.linspace(3, -2, x.shape[1], dtype=torch.float64)),
    *sized("logspace", lambda x: (torch.logspace(0, 2, x.shape[1]), torch.logspace(0, 3, x.shape[1], base=2.0))),
    Case("linspace_static", lambda x: x + torch.linspace(0, 1, 5) + torch.logspace(0, 1, 5), (torch.randn(5),), []),
    Case("linspace_static_long", lambda x: x + torch.linspace(0, 1, 5000) + torch.logspace(0, 1, 5000), (torch.randn(5000),), []),
    Case(
        "linspace_tensors",
        lambda a, b: torch.linspace(a, b, 5),
        (torch.tensor(1.0), torch.tensor(3.0)),
        [(torch.tensor(-2.0), torch.tensor(5.0))],
    ),
    *sized(
        "eye",
        lambda x: (
            torch.eye(x.shape[0]),
            torch.eye(x.shape[0], x.shape[1]),
            torch.eye(x.shape[1], dtype=torch.int64),
            torch.eye(x.shape[1], dtype=torch.bool),
        ),
    ),
    Case("eye_static", lambda x: x @ torch.eye(50) + torch.eye(50, dtype=torch.float64), (torch.randn(50, 50),), []),
    *sized("triangles", lambda x: (x.tril(), x.triu(), x.tril(1), x.triu(-1), x.tril(-1), x.triu(2), x.tril(7))),
    Case(
        "triangles_static",
        lambda x: (x.tril(), x.triu(1), x.long().tril(), x.double().triu(), x.bool().tril(), x.int().triu()),
        (torch.randn(2, 3, 4) * 3,),
        [(torch.randn(5, 3, 4) * 3,)],
        {0: {0: "n"}},
    ),
    *sized("causal_mask", lambda x: torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), diagonal=1)),
    *sized("causal_bools", lambda x: torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()),
    Case(
        "triangle_indices",
        lambda x: (x[0, 0] * torch.tril_indices(3, 4), torch.triu_indices(40, 40, 1) + x.long()[0, 0]),
        (torch.ones(1, 1),),
        [],
    ),
    Case(
        "windows",
        lambda x: tuple(
            x + w
            for w in (
                torch.hann_window(8),
                torch.hann_window(8, periodic=False),
                torch.hamming_window(8),
                torch.blackman_window(8),
                torch.bartlett_window(8),
                torch.kaiser_window(8),
            )
        ),
        (torch.randn(8),),
        [],
    ),
    Case(
        "windows_long",
        lambda x: tuple(
            x + w
            for w in (torch.hann_window(4096), torch.hamming_window(4096, False), torch.blackman_window(4096), torch.kaiser_window(4096))
        ),
        (torch.randn(4096),),
        [],
    ),
    *sized("meshgrid", lambda x: torch.meshgrid(torch.arange(x.shape[0]), torch.arange(x.shape[1]), indexing="ij")),
    *sized("meshgrid_xy", lambda x: torch.meshgrid(torch.arange(x.shape[0]), torch.arange(x.shape[1]), torch.arange(2), indexing="xy")),
    Case(
        "meshgrid_inputs",
        lambda a, b: torch.meshgrid(a, b, indexing="ij"),
        (torch.randn(3), torch.randn(4)),
        [(torch.randn(1), torch.randn(6))],
        "all",
    ),
    Case("meshgrid_scalar", lambda a, b: torch.meshgrid(a, b, indexing="ij"), (torch.randn(3), torch.tensor(2.0)), [], None),
    Case(
        "cartesian_prod",
        lambda a, b: (torch.cartesian_prod(a, b), torch.cartesian_prod(a)),
        (torch.randn(3), torch.randn(4)),
        [(torch.randn(1), torch.randn(6))],
        "all",
    ),
    Case("combined", lambda x: torch.arange(x.shape[0])[:, None] * x.shape[1] + torch.arange(x.shape[1]), (X,), OTHERS, "all"),
]


@expand(CASES)
def test_creation(case: Case, opset: int) -> None:
    check(case, opset)
