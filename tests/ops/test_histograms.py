"""Counts, histograms and segments, and the incomplete gamma functions and frexp, whose numbers are computed in float64."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
OPSETS = (9, 11, 13, 18, NEWEST)
AT_SUMS = (16, 18, NEWEST)
RUNS = torch.tensor([3, 3, 1, 1, 1, 0, 3, 3])
X, POINTS = torch.randn(4, 5), torch.randn(3, 7, 2)
EDGES = torch.tensor([-1.5, -0.5, 0.0, 1.0])


def case(id: str, function: Any, *args: Any, others: Any = (), dynamic: Any = None, **kwargs: Any) -> Case:
    return Case(id, function, args, others, dynamic, OPSETS, **kwargs)


def reduced(how: str, initial: float | None = None, axis: int = 0) -> Any:
    return lambda x, n: torch.segment_reduce(x, how, lengths=n, axis=axis, initial=initial, unsafe=True)


SPECIAL = torch.tensor([0.0, -0.0, 1.0, 0.5, -3.75, 1e-40, 2.0**-126, 3e38, float("inf"), -float("inf")])
NEAR_POWERS = torch.nextafter(2.0 ** torch.arange(-20, 20).float(), torch.tensor(0.0))
A = torch.tensor([0.0, 0.1, 1.0, 2.5, 10.0, 200.0, float("inf"), -1.0]).reshape(-1, 1)
AT = torch.tensor([0.0, 0.01, 0.9, 3.0, 11.0, 190.0, 250.0, float("inf"), -1.0])
LENGTHS = torch.tensor([2, 0, 1, 2])
COUNTS = [
    Case("bincount", lambda x: (torch.bincount(x), torch.bincount(x, minlength=9)), (RUNS,), [(RUNS[:1],), (RUNS * 3,)], "all",
         opsets=(9, 11, 13, 16, 28)),
    Case("bincount_weights", lambda x, w: torch.bincount(x, w), (RUNS, torch.randn(8)), [(RUNS * 2, torch.randn(8))],
         opsets=AT_SUMS),
    Case("bincount_empty", lambda x: torch.bincount(x, minlength=3), (RUNS[:0],), opsets=(11, 18)),
    Case("histc", lambda x: (torch.histc(x, 5, -1, 1), torch.histc(x, 4)), (torch.tensor([-1.0, -0.2, 0.0, 0.3, 1.0, 5.0]),),
         [(torch.tensor([2.0]),), (torch.tensor([0.5, -0.7, -3.0]),)], "all", opsets=AT_SUMS),
    case("histogram", lambda x: tuple(torch.histogram(x, 4)), X, others=[(torch.randn(7, 2),), (torch.ones(1, 1),)], dynamic="all"),
    case("histogram_range", lambda x: tuple(torch.histogram(x, 300, range=(-1.0, 1.0), density=True)), X, refused={9: "CumSum needs opset 11"}),
    case("histogram_edges", lambda x, e: tuple(torch.histogram(x, e)), X, EDGES, others=[(torch.tensor([[1.0, -2.0, -0.5]]), EDGES[:2])],
         dynamic={0: {0: "a", 1: "b"}, 1: {0: "edges"}}, refused={9: "TopK with 'K' that the graph computes needs opset 10"}),
    case("histogram_weights", lambda x, w: tuple(torch.histogram(x, 5, weight=w, density=True)), X, torch.rand(4, 5)),
    case("histogram_double", lambda x: tuple(torch.histogram(x, 5)), X.double()),
    case("histogram_last_edge", lambda x: tuple(torch.histogram(x, 3)), torch.rand(40).double() - 0.3, others=[(torch.rand(40).double() * 7 - 3,)] * 5),
    case("histogram_empty", lambda x: tuple(torch.histogram(x, 5)), torch.zeros(0)),
    case("histogram_scalar", lambda x: tuple(torch.histogram(x, 2)), torch.tensor(1.5)),
    case("histogramdd", lambda x: (lambda h: (h.hist, *h.bin_edges))(torch.histogramdd(x, bins=[3, 4])), POINTS, others=[(torch.randn(5, 1, 2),)],
         dynamic={0: {0: "a", 1: "b"}}),
    case("histogramdd_density", lambda x, w: torch.histogramdd(x, bins=3, range=[-1.0, 1.0, -2.0, 2.0], weight=w, density=True).hist, POINTS,
         torch.rand(3, 7)),
    case("histogramdd_edges", lambda x: torch.histogramdd(x, bins=[EDGES, EDGES[1:]]).hist, POINTS),
]
SEGMENTS = [
    *[case(f"segments_{how}", reduced(how), torch.randn(5, 3), LENGTHS, others=[(torch.randn(6, 2), torch.tensor([1, 5, 0]))], dynamic="all")
      for how in ("sum", "mean", "max", "min", "prod")],
    case("segments_initial", reduced("mean", 2.0), torch.randn(5), LENGTHS),
    case("segments_max_initial", reduced("max", 1.0), torch.randn(5), LENGTHS),
    case("segments_axis", reduced("sum", axis=1), torch.randn(2, 5, 3), torch.stack([LENGTHS, LENGTHS.flip(0)])),
    case("segments_offsets", lambda x, o: torch.segment_reduce(x, "max", offsets=o, axis=0, unsafe=True), torch.randn(5), torch.tensor([0, 2, 2, 5])),
]
NUMBERS = [
    case("frexp", lambda x: tuple(torch.frexp(x)), torch.randn(3, 4) * 1e3, others=[(torch.randn(2, 5) * 1e-30,)], dynamic="all"),
    case("frexp_special", lambda x: torch.frexp(x).mantissa, SPECIAL),
    case("frexp_powers", lambda x: tuple(torch.frexp(x)), NEAR_POWERS),
    case("frexp_double", lambda x: tuple(torch.frexp(x)), torch.tensor([1e-310, 1.7e308, -0.1, 0.0], dtype=torch.float64)),
    case("frexp_half", lambda x: tuple(torch.frexp(x)), torch.tensor([6e-8, 65504.0, 0.1]).half()),
    case("igamma", torch.igamma, A, AT, others=[(torch.rand(3, 1) * 50, torch.rand(4) * 60)], dynamic="all"),
    case("igammac", torch.igammac, A, AT, others=[(torch.rand(3, 1) * 50, torch.rand(4) * 60)], dynamic="all"),
    case("igamma_double", lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), A.double(), AT.double(), rtol=1e-9, atol=1e-12),
    case("igamma_great", torch.igamma, torch.full((3,), 5000.0), torch.tensor([4900.0, 5000.0, 5100.0])),
    case("igamma_many", lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), torch.rand(900) * 300, torch.rand(900) * 400),
    case("igamma_empty", torch.igamma, torch.rand(0, 1), torch.rand(3)),
]
GRADIENTS = [
    case("gradient", lambda x: torch.gradient(x), X, others=[(torch.randn(3, 7),), (torch.randn(2, 2),)], dynamic="all"),
    case("gradient_spacing", lambda x: torch.gradient(x, spacing=2.0, dim=-1, edge_order=2), X, others=[(torch.randn(1, 3),)], dynamic="all"),
    case("gradient_spacings", lambda x: torch.gradient(x, spacing=[2.0, 1.5]), X),
    case("gradient_int", lambda x: torch.gradient(x, dim=(1, 0)), torch.arange(12).reshape(3, 4) ** 2),
    *[case(f"gradient_places_{order}", lambda x, p, order=order: torch.gradient(x, spacing=[p], dim=1, edge_order=order), torch.randn(2, 5, 3),
           torch.tensor([0.0, 0.5, 2.0, 2.2, 4.0]), others=[(torch.randn(1, 3, 4), torch.tensor([1.0, 3.0, 4.0]))],
           dynamic={0: {0: "a", 1: "n", 2: "c"}, 1: {0: "n"}}) for order in (1, 2)],
]


@expand(COUNTS + SEGMENTS + NUMBERS + GRADIENTS)
def test_histograms(case: Case, opset: int) -> None:
    check(case, opset)
