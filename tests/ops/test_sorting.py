"""sort, topk, unique, searchsorted, counts."""

from __future__ import annotations

import torch

from tests.ops.harness import Case, check, expand

torch.manual_seed(0)
X = torch.randn(2, 3, 4)
Y = torch.randn(5, 7, 1)
Z = torch.randn(1, 2, 6)
W = torch.randn(5, 3, 4)
TIES = torch.tensor([[3, 1, 3, 2, 1], [0, 0, 0, 1, 0]])
RUNS = torch.tensor([2, 2, 0, 0, 0, 1, 2, 2])
SLICES = torch.tensor([[1, 2], [1, 2], [0, 3], [1, 2]])
BOUNDS = torch.tensor([-1.0, 0.0, 0.0, 1.0])
VALUES = torch.tensor([[-2.0, -1.0, 0.0], [0.5, 1.0, 3.0]])
MANY = torch.linspace(-2, 2, 300)
AT_SUMS = (9, 11, 13, 16, 18, 28)
FROM_11 = {9: "needs opset 11"}
ALL = (7, 8, 9, 10, 11, 13, 18, 23, 28)

ORDER = [
    Case("topk", lambda x: (x.topk(2, 1), x.topk(2), x.topk(2, -1, largest=False)), (X,), [(W,)], {0: {0: "n"}}, opsets=ALL),
    Case("topk_dynamic_axis", lambda x: x.topk(1, 1), (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("topk_by_size", lambda x: x.topk(x.shape[1] - 1, 1), (X,), [(Y,), (Z,)], "all", refused={9: "needs opset 10"},
         opsets=(9, 10, 13, 28)),
    Case("topk_ints", lambda x: (x.topk(2)[0], x.int().topk(2, largest=False)[0]), (torch.arange(10).reshape(2, 5),),
         opsets=(9, 11, 13, 28), refused={9: "TopK of INT64 needs opset 11"}),
    Case("topk_half_double", lambda x: (x.half().topk(2), x.double().topk(2)), (X,), opsets=(9, 11, 13, 28)),
    Case("topk_scalar", lambda x: x.topk(1), (torch.randn(()),)),
    Case("sort", lambda x: (x.sort(1), x.sort(0, descending=True)), (X,), [(X * -2,)], opsets=ALL),
    Case("sort_dynamic", lambda x: (x.sort(1), x.sort(0, descending=True)), (X,), [(Y,), (Z,)], "all", refused={9: "needs opset 10"},
         opsets=(9, 10, 13, 28)),
    Case("sort_stable", lambda x: (x.sort(dim=1, stable=True), x.sort(stable=True, dim=1, descending=True)), (TIES,), [(TIES.flip(1),)],
         opsets=(11, 18, 28)),
    Case("sort_bool_int8", lambda x: ((x > 1).sort(dim=1, stable=True), x.to(torch.int8).sort(dim=1, stable=True),
         x.to(torch.uint8).sort(dim=1, stable=True)), (TIES,), opsets=(11, 18, 28)),
    Case("sort_scalar", torch.sort, (torch.randn(()),)),
    Case("sort_empty", torch.sort, (torch.zeros(2, 0),), opsets=(11, 18)),
    Case("argsort", lambda x: (x.argsort(1), torch.argsort(x, -1, descending=True)), (X,), [(W,)], {0: {0: "n"}}),
    Case("argsort_stable", lambda x: torch.argsort(x, dim=1, stable=True), (TIES,), opsets=(11, 18)),
    Case("msort", torch.msort, (X,), [(X * -1,)]),
    Case("kthvalue", lambda x: (x.kthvalue(2, 1), x.kthvalue(3, -1, keepdim=True)), (X,), [(W,)], {0: {0: "n"}}),
    Case("kthvalue_by_size", lambda x: x.kthvalue(x.shape[1], 1)[0], (X,), [(Y,)], "all", opsets=(11, 18)),
    Case("kthvalue_scalar", lambda x: x.kthvalue(1), (torch.randn(()),)),
]

UNIQUE = [
    Case("unique", lambda x: torch.unique(x), (TIES,), [(TIES.repeat(2, 3) + 1,), (TIES[:1, :1],)], {0: {0: "a", 1: "b"}}, refused=FROM_11),
    Case("unique_all", lambda x: torch.unique(x, return_inverse=True, return_counts=True), (TIES,), [(TIES.repeat(2, 3) + 1,)],
         {0: {0: "a", 1: "b"}}, refused=FROM_11),
    Case("unique_counts", lambda x: torch.unique(x, return_counts=True), (TIES.float(),), refused=FROM_11),
    Case("unique_dtypes", lambda x: [torch.unique(v, return_inverse=True) for v in (x.int(), x > 1, x.to(torch.uint8), x.half(),
         x.double())], (TIES,), opsets=(11, 28)),
    Case("unique_dim", lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True), (SLICES,), [(SLICES.repeat(2, 1) * 2,)],
         {0: {0: "n"}}, refused=FROM_11),
    Case("unique_columns", lambda x: torch.unique(x, dim=-1), (TIES,), refused=FROM_11),
    Case("consecutive", lambda x: torch.unique_consecutive(x), (RUNS,), [(RUNS.flip(0).repeat(2),), (RUNS[:1],)], "all"),
    Case("consecutive_all", lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), (TIES.float(),),
         [(TIES.float()[:1],), (TIES.float()[:, :1],)],
         {0: {0: "a", 1: "b"}}),
    Case("consecutive_dim", lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=0), (SLICES,),
         [(SLICES[:1],), (SLICES.repeat(2, 1),)],
         {0: {0: "n"}}),
    Case("consecutive_bool", lambda x: torch.unique_consecutive(x > 1, return_counts=True), (RUNS,), opsets=(11, 18)),
]

SEARCH = [
    Case("searchsorted", lambda s,
         v: (torch.searchsorted(s, v), torch.searchsorted(s, v, right=True), torch.searchsorted(s, v, side="right", out_int32=True)),
         (BOUNDS, VALUES), [(BOUNDS * 2, VALUES * 3)]),
    Case("searchsorted_dynamic", lambda s, v: (torch.searchsorted(s, v), torch.searchsorted(s, v, right=True)), (BOUNDS, VALUES),
         [(torch.randn(9).sort()[0], VALUES[:1]), (torch.tensor([0.0]), torch.tensor([[0.0]])), (BOUNDS, VALUES)], "all",
           opsets=(11, 18, 28)),
    Case("searchsorted_rows", lambda s, v: torch.searchsorted(s, v), (torch.stack([BOUNDS, BOUNDS + 1]), VALUES),
         [(torch.stack([BOUNDS - 3, BOUNDS + 1]), VALUES)]),
    Case("searchsorted_rows_dynamic", lambda s, v: torch.searchsorted(s, v, right=True), (torch.stack([BOUNDS, BOUNDS + 1]), VALUES),
         [(torch.randn(3, 9).sort()[0], torch.randn(3, 2))], "all", opsets=(11, 28)),
    Case("searchsorted_nan", lambda s, v: (torch.searchsorted(s, v), torch.searchsorted(s, v, right=True)),
         (BOUNDS, torch.tensor([float("nan"), float("inf"), -float("inf")]))),
    Case("searchsorted_int", lambda s, v: torch.searchsorted(s, v), (torch.tensor([1, 3, 3, 7]), torch.tensor([0, 3, 8])),
         [(torch.tensor([1, 3, 4, 7]), torch.tensor([7, 4, 5]))]),
    Case("searchsorted_number", lambda s: torch.searchsorted(s, 0.5), (BOUNDS,), [(BOUNDS + 0.5,)]),
    Case("searchsorted_sorter", lambda s, v: torch.searchsorted(s, v, sorter=s.argsort()), (BOUNDS.flip(0), VALUES)),
    Case("bucketize", lambda v: (torch.bucketize(v, BOUNDS), torch.bucketize(v, BOUNDS, right=True, out_int32=True)), (VALUES,),
         [(VALUES[:1],)], "all"),
    Case("bucketize_many", lambda v: (torch.bucketize(v, MANY), torch.bucketize(v, MANY, right=True)), (VALUES,),
         [(MANY[None, ::50],), (VALUES[:1] * 0.3,)], "all",
         opsets=(11, 18, 28)),
    Case("bucketize_open_ends", torch.bucketize, (torch.tensor([float("nan"), 0.0, float("inf"), -float("inf")]), torch.tensor([-1.0, 0.0, float("inf")])),
         [(torch.tensor([1.0, float("nan")]), torch.tensor([-float("inf"), 0.0, 2.0, float("inf")]))], "all",
         (11, 28)),
    Case("bucketize_many_nan", lambda v: torch.bucketize(v, MANY), (torch.tensor([float("nan"), 0.0, float("inf"), -float("inf")]),),
         opsets=(11, 28)),
]


@expand(ORDER + UNIQUE + SEARCH)
def test_sorting(case: Case, opset: int) -> None:
    check(case, opset)
