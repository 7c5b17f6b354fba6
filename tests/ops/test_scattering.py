"""index_put, scatter, masked fills, and pieces put back into the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.ops.harness import Case, check, expand

torch.manual_seed(0)
X = torch.randn(2, 3, 4)
Y = torch.randn(5, 7, 1)
Z = torch.randn(1, 2, 6)
W = torch.randn(5, 3, 4)
INT, BOOL = torch.arange(24).reshape(2, 3, 4), X > 0
I, J = torch.tensor([0, -1, 1]), torch.tensor([2, 0, -3])  # noqa: E741
S = torch.randn(5, 3)
AT_SUMS = (9, 11, 13, 16, 18, 28)


def put(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that writes into a copy of its first argument."""

    def run(x: torch.Tensor, *args: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        function(x, *args)
        return x

    return run


def _set(*index: Any) -> Callable[..., Any]:
    def write(x: torch.Tensor, value: Any) -> None:
        x[index] = value

    return put(write)


def _at(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> None:
    x[i] = v


def _columns(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> None:
    x[:, i] = v


def _pairs(x: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> None:
    x[i, j] = v


def _inner_pairs(x: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> None:
    x[:, i, j] = v


def _gap(x: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> None:
    x[i, :, j] = v


def _double_where_positive(x: torch.Tensor) -> None:
    x[x > 0] = x[x > 0] * 2


def _zero_negative(x: torch.Tensor) -> None:
    x[x < 0] = 0


def _mask_columns(x: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> None:
    x[:, m] = v


def _mask_and_int(x: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> None:
    x[m, 0] = v


INDEX_PUT = [
    Case("put_rows", put(_at), (W, torch.tensor([0, -2]), torch.randn(2, 3, 4)),
         [(torch.randn(9, 3, 4), torch.tensor([5]), torch.randn(1, 3, 4))],
         {0: {0: "n"}, 1: {0: "k"}, 2: {0: "k"}}),
    Case("put_rows_broadcast", put(_at), (W, torch.tensor([0, -2]), torch.randn(4)),
         [(torch.randn(9, 3, 4), torch.tensor([5, 1, 2]), torch.randn(4))],
         {0: {0: "n"}, 1: {0: "k"}}),
    Case("put_row", put(_at), (W, torch.tensor(-2), torch.randn(3, 4)),
         [(W, torch.tensor(1), torch.randn(3, 4)), (W, torch.tensor(4), torch.randn(3, 4))], refused={9: "needs opset 10"}),
    Case("put_columns", put(_columns), (X, torch.tensor([0, -1]), torch.randn(2, 2, 4)), [(W, torch.tensor([1]), torch.randn(5, 1, 4))],
         {0: {0: "n"}, 1: {0: "k"}, 2: {0: "n", 1: "k"}}),
    Case("put_columns_scalar", put(_columns), (X, torch.tensor([0, -1]), torch.tensor(3.0)), [(W, torch.tensor([1]), torch.tensor(4.0))],
         {0: {0: "n"}, 1: {0: "k"}}),
    Case("put_constant_columns", put(lambda x, v: _columns(x, torch.tensor([2, 0]), v)), (X, torch.randn(2, 4)), [(W, torch.randn(2, 4))],
         {0: {0: "n"}}),
    Case("put_pairs", put(_pairs), (W, I, J, torch.randn(3, 4)), [(W, J, I, torch.randn(3, 4))]),
    Case("put_pairs_dynamic", put(_pairs), (W, I[:2], J[:2], torch.randn(2, 4)), [(torch.randn(3, 9, 1), J, I, torch.randn(3, 1))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "k"}, 2: {0: "k"}, 3: {0: "k", 1: "c"}}),
    Case("put_inner_pairs", put(_inner_pairs), (W, I, J, torch.randn(5, 3)), [(X, J, I, torch.randn(2, 3))], {0: {0: "n"}, 3: {0: "n"}},
         ),
    Case("put_gap", put(_gap), (W, I, J, torch.randn(3, 3)), [(torch.randn(6, 3, 4), I, J, torch.randn(3, 3))], {0: {0: "n"}},
         ),
    Case("put_grid", put(_pairs), (W, torch.tensor([[0], [2]]), torch.tensor([1, -1]), torch.randn(2, 2, 4))),
    Case("put_int", put(_at), (INT, torch.tensor([1]), INT[:1] * 2)),
    Case("put_bool", put(_at), (BOOL, torch.tensor([1]), BOOL[:1])),
    Case("put_half", put(_at), (X.half(), torch.tensor([1]), X[:1].half())),
    Case("put_number", _set(0, slice(None), 1), (X, torch.tensor(5.0))),
    Case("put_number_last", _set(Ellipsis, -1), (X, torch.tensor(5.0)), [(W, torch.tensor(1.0))], {0: {0: "n"}}),
    Case("put_slice", _set(slice(None), slice(1, None)), (X, torch.randn(2, 2, 4)), [(W, torch.randn(5, 2, 4))],
         {0: {0: "n"}, 1: {0: "n"}}),
    Case("put_slice_broadcast", _set(slice(None), slice(0, 2), slice(1, 3)), (X, torch.randn(2)), [(W, torch.randn(2))], {0: {0: "n"}}),
    Case("put_slice_steps", _set(slice(None), slice(None, None, 2)), (X, torch.randn(2, 4)), [(W, torch.randn(2, 4))], {0: {0: "n"}}),
    Case("mask_number", put(_zero_negative), (X,), [(Y,), (Z,)], "all", opsets=(9, 11, 18, 28)),
    Case("mask_values", put(_double_where_positive), (X,), [(Y,), (Z,), (-X.abs(),)], "all"),
    Case("mask_rows", put(_at), (X, torch.tensor([True, False]), torch.randn(3, 4)),
         [(W, torch.tensor([True, False, True, True, False]), torch.randn(3, 4))],
         {0: {0: "n"}, 1: {0: "n"}}),
    Case("mask_rows_values", put(_at), (W, torch.tensor([True, False, True, True, False]), torch.randn(3, 3, 4)),
         [(W, torch.tensor([True, False, True, True, False]), torch.randn(3, 3, 4))],
         ),
    Case("mask_rows_one_or_many", put(_at), (W, torch.tensor([True, False, True, False, False]), torch.randn(2, 3, 4)),
         [(W, torch.tensor([True, False, True, True, False]), torch.randn(1, 3, 4)),
           (W, torch.tensor([True, False, True, True, False]), torch.randn(3, 3, 4))], {2: {0: "k"}}),
    Case("mask_columns", put(_mask_columns), (X, torch.tensor([True, False, True]), torch.randn(4)),
         [(W, torch.tensor([False, False, True]), torch.randn(4))], {0: {0: "n"}}),
    Case("mask_columns_kept_dim", put(_mask_columns), (X, torch.tensor([True, False, True]), torch.randn(2, 1, 4)),
         [(W, torch.tensor([False, False, True]), torch.randn(5, 1, 4))],
         {0: {0: "n"}, 2: {0: "n"}}),
    Case("mask_and_int", put(_mask_and_int), (X, torch.tensor([True, False]), torch.randn(1, 4)),
         [(X, torch.tensor([False, True]), torch.randn(1, 4))]),
    Case("accumulate", lambda x, i, v: x.index_put((i,), v, accumulate=True), (W, torch.tensor([0, 0, -1]), torch.randn(3, 3, 4)),
         [(W, torch.tensor([2, 2, 2]), torch.randn(3, 3, 4))],
         {0: {0: "n"}}, opsets=AT_SUMS),
    Case("accumulate_half", lambda x, i, v: x.index_put((i,), v, accumulate=True),
         (W.half(), torch.tensor([0, 0, -1]), torch.randn(3, 3, 4).half()), opsets=AT_SUMS),
    Case("accumulate_pairs", lambda x, i, j, v: x.index_put((i, j), v, accumulate=True),
         (INT, torch.tensor([0, 0, 1]), torch.tensor([1, 1, 2]), torch.tensor(2)), opsets=AT_SUMS),
    Case("accumulate_constant", lambda x, v: x.index_put((torch.tensor([1, 0]), torch.tensor([-1, 0])), v, accumulate=True),
         (X, torch.randn(2, 4))),
    Case("accumulate_mask", lambda x, m: x.index_put((m,), torch.tensor(2.0), accumulate=True), (X, BOOL)),
]

FILLS = [
    Case("masked_fill", lambda x: x.masked_fill(x > 0, -1.5), (X,), [(Y,)], "all"),
    Case("masked_fill_inf", lambda x, m: x.masked_fill(m, float("-inf")), (X, BOOL[0]), [(X, BOOL[1])], opsets=(9, 13, 28)),
    Case("masked_fill_tensor", lambda x, v: x.masked_fill(x > 0, v), (X, torch.tensor(2.0)), [(X, torch.tensor(-2.0))]),
    Case("masked_fill_widens", lambda x, m: x.masked_fill(m, 1),
         (torch.randn(3), torch.tensor([[True, False, True], [False, False, True]]))),
    Case("masked_fill_dtypes", lambda a, b, c, m: (a.masked_fill(m, 2.5), b.masked_fill(m, 7), c.masked_fill(m, torch.tensor(True))),
         (X.half(), INT, BOOL, BOOL)),
    Case("masked_fill_double_int32", lambda a, b, m: (a.masked_fill(m, 0.1), b.masked_fill(m, 7)), (X.double(), INT.int(), BOOL)),
    Case("masked_fill_scalar", lambda x: x.masked_fill(x > 0, 3), (torch.randn(()),)),
    Case("masked_scatter", lambda x, v: x.masked_scatter(x > 0, v), (X, torch.randn(5, 5)),
         [(-X, torch.randn(5, 5)), (W, torch.randn(9, 9))], {0: {0: "n"}, 1: {0: "p", 1: "q"}}, refused={9: "needs opset 1"}),
    Case("masked_scatter_rows", lambda x, m, v: x.masked_scatter(m, v), (X, torch.tensor([[[True], [False], [True]]]), torch.randn(20)),
         refused={9: "needs opset 1"}),
    Case("index_fill", lambda x: x.index_fill(1, torch.tensor([0, -1]), 3.5), (X,), [(W,)], {0: {0: "n"}}),
    Case("index_fill_dynamic", lambda x, i: x.index_fill(1, i, 3), (X, torch.tensor([2, 0])),
         [(Y, torch.tensor([6, 5, 1])), (Z, torch.tensor([1]))], {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "k"}}),
    Case("index_fill_int", lambda x, i: x.index_fill(-1, i, 3), (INT, torch.tensor([2, 0]))),
    Case("index_fill_scalar", lambda x: x.index_fill(0, torch.tensor([0]), 3), (torch.randn(()),)),
    Case("index_copy", lambda x, i, v: x.index_copy(-2, i, v), (X, torch.tensor([2, 0]), torch.randn(2, 2, 4)),
         [(X, torch.tensor([1, 0]), torch.randn(2, 2, 4))]),
    Case("index_copy_rows", lambda x, i, v: x.index_copy(0, i, v), (W, torch.tensor([2, 0]), torch.randn(2, 3, 4)),
         [(torch.randn(7, 3, 4), torch.tensor([6]), torch.randn(1, 3, 4))],
         {0: {0: "n"}, 1: {0: "k"}, 2: {0: "k"}}),
    Case("index_add", lambda x, i, v: x.index_add(0, i, v), (W, torch.tensor([2, 0, 2]), torch.randn(3, 3, 4)),
         [(torch.randn(7, 3, 4), torch.tensor([6, 6]), torch.randn(2, 3, 4))],
         {0: {0: "n"}, 1: {0: "k"}, 2: {0: "k"}}, opsets=AT_SUMS),
    Case("index_add_inner", lambda x, i, v: x.index_add(1, i, v, alpha=2), (X, torch.tensor([2, 0, 2]), torch.randn(2, 3, 4)),
         [(X, torch.tensor([1, 1, 1]), torch.randn(2, 3, 4))],
         opsets=AT_SUMS),
    Case("index_add_once", lambda x, v: x.index_add(1, torch.tensor([2, 0]), v), (X, torch.randn(2, 2, 4)), [(W, torch.randn(5, 2, 4))],
         {0: {0: "n"}, 1: {0: "n"}}),
    Case("index_add_int_vector", lambda x, i, v: x.index_add(0, i, v), (torch.arange(4), torch.tensor([1, 1]), torch.tensor([5, 6])),
         opsets=AT_SUMS),
    *[Case(f"index_reduce_{r}{s}", lambda x, i, v, r=r, s=s: x.index_reduce(0, i, v, r, include_self=s),
           (W, torch.tensor([2, 0, 2]), torch.randn(3, 3, 4)),
           opsets=AT_SUMS) for r in ("prod", "mean", "amax", "amin") for s in (True,
           False)],
    Case("put", lambda x, i, v: x.put(i, v), (X, torch.tensor([[0, 5], [-1, 7]]), torch.randn(2, 2)),
         [(X, torch.tensor([[1, 2], [3, 4]]), torch.randn(2, 2))]),
    Case("put_accumulate", lambda x, i, v: x.put(i, v, accumulate=True), (X, torch.tensor([0, 0]), torch.randn(2)),
         opsets=AT_SUMS),
]

INDEX = torch.tensor([[[0, 1], [2, 0]]])
SCATTER = [
    Case("scatter", lambda x, i, v: x.scatter(1, i, v), (X, INDEX, torch.randn(2, 3, 4)),
         [(X, torch.tensor([[[1, 1], [2, 2]]]), torch.randn(2, 3, 4))]),
    Case("scatter_dynamic", lambda x, i, v: x.scatter(1, i, v), (X, INDEX, torch.randn(1, 2, 2)),
         [(Y, torch.tensor([[[6]], [[1]]]), torch.randn(3, 2, 2))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "p", 1: "q", 2: "r"}, 2: {0: "i", 1: "j", 2: "k"}}, opsets=(11, 18, 28)),
    Case("scatter_value", lambda x, i: x.scatter(-1, i, 2.5), (X, INDEX), [(Y, torch.tensor([[[0]], [[0]]]))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "p", 1: "q", 2: "r"}}),
    Case("scatter_value_int", lambda x, i: x.scatter(1, i, 2), (INT, INDEX)),
    Case("scatter_one_hot", lambda i: torch.zeros(3, 5).scatter(1, i[:, None], 1.0), (torch.tensor([1, 4, 0]),),
         [(torch.tensor([1, 1, 0]),)]),
    Case("scatter_bool_half", lambda a, b, i: (a.scatter(1, i, a[:1, :2, :2]), b.scatter(1, i, b[:1, :2, :2])), (BOOL, X.half(), INDEX)),
    Case("scatter_scalar", lambda x, i, v: x.scatter(0, i, v), (torch.randn(()), torch.tensor(0), torch.randn(()))),
    Case("scatter_add", lambda x, i, v: x.scatter_add(1, i, v), (X, INDEX * 0, torch.randn(2, 3, 4)), [(X, INDEX, torch.randn(2, 3, 4))],
         opsets=AT_SUMS),
    Case("scatter_add_int", lambda x, i, v: x.scatter_add(0, i, v), (torch.arange(5), torch.tensor([1, 1, 4]), torch.tensor([1, 2, 3])),
         opsets=AT_SUMS),
    Case("scatter_add_half", lambda x, i, v: x.scatter_add(0, i, v),
         (torch.randn(5).half(), torch.tensor([1, 1, 4]), torch.randn(3).half()), opsets=AT_SUMS),
    Case("scatter_add_dynamic", lambda x, i, v: x.scatter_add(0, i, v), (torch.randn(5), torch.tensor([1, 1, 4]), torch.randn(3)),
         [(torch.randn(2), torch.tensor([1]), torch.randn(1))],
         {0: {0: "n"}, 1: {0: "k"}, 2: {0: "k"}}, opsets=AT_SUMS),
    Case("scatter_with_reduce", lambda x, i,
         v: (x.scatter(1, i, v, reduce="add"), x.scatter(1, i, v, reduce="multiply"), x.scatter(1, i, 3.0, reduce="add")),
         (X, INDEX * 0, torch.randn(2, 3, 4)), opsets=AT_SUMS),
    *[Case(f"scatter_reduce_{r}{s}", lambda x, i, v, r=r, s=s: x.scatter_reduce(1, i, v, r, include_self=s),
           (X, INDEX * 0, torch.randn(2, 3, 4)), [(X, INDEX, torch.randn(2, 3, 4))],
           opsets=AT_SUMS) for r in ("sum", "prod", "mean", "amax", "amin") for s in (True,
           False)],
    *[Case(f"scatter_reduce_int_{r}{s}", lambda x, i, v, r=r, s=s: x.scatter_reduce(1, i, v, r, include_self=s),
           (INT - 9, INDEX * 0, INT * 3 - 31), opsets=(18, 28))
      for r in ("sum", "prod", "mean", "amax", "amin") for s in (True, False)],
]

PIECES = [
    *(Case(f"segments_from_{how}", lambda x, o, how=how: torch.segment_reduce(x, how, offsets=o, axis=1, initial=2, unsafe=True),
           (S[None].repeat(2, 1, 1), torch.tensor([[0, 2, 2, 5], [1, 2, 4, 4]])), [], {0: {0: "n"}, 1: {0: "n"}}, (18,))
      for how in ("sum", "mean", "max", "min", "prod")),
    Case("repeated_none_or_many", lambda x, i, v: (x.scatter_add(0, i, v), x.index_add(0, i, v), x.scatter_reduce(0, i, v, "amax", include_self=False)),
         (S[:, 0], torch.tensor([0, 1, 1]), S[:3, 1]), [(S[:, 1], torch.tensor([], dtype=torch.int64), S[:0, 0]), (S[:, 2], torch.arange(40) % 5, torch.randn(40))],
         {1: {0: "k"}, 2: {0: "k"}}, (9, 13, 17)),
    Case("select_scatter", lambda x, v: [x.select_scatter(v, 1, i) for i in (0, 1, -1)], (X, torch.randn(2, 4)), [(W, torch.randn(5, 4))],
         {0: {0: "n"}, 1: {0: "n"}}),
    Case("select_scatter_dynamic", lambda x, v: [x.select_scatter(v, 1, i) for i in (0, 1, -1)], (X, torch.randn(2, 4)),
         [(Y, torch.randn(5, 1)), (Z, torch.randn(1, 6))], "all"),
    Case("select_scatter_one", lambda x, v: x.select_scatter(v, 0, 0), (torch.randn(1, 3), torch.randn(3))),
    Case("select_scatter_int_bool", lambda a, b: (a.select_scatter(a[:, 0], 1, 1), b.select_scatter(b[:, 0], 1, 1)), (INT, BOOL)),
    Case("slice_scatter", lambda x, v: [x.slice_scatter(v, 1, s, e) for s, e in ((0, 2), (1, 3), (-2, None))], (X, torch.randn(2, 2, 4)),
         [(W, torch.randn(5, 2, 4))], {0: {0: "n"}, 1: {0: "n"}}),
    Case("slice_scatter_step", lambda x, v: x.slice_scatter(v, -1, 0, None, 3), (X, torch.randn(2, 3, 2)), [(W, torch.randn(5, 3, 2))],
         {0: {0: "n"}, 1: {0: "n"}}),
    Case("slice_scatter_dynamic", lambda x,
         v: [x.slice_scatter(v[:, s:e], 1, s, e) for s, e in ((0, 2), (1, 3), (-2, None), (1, None), (None, -1), (1, -1), (-2, -1))],
         (X, X * 2),
         [(Y, Y * 2), (Z, Z * 2), (torch.randn(1, 1, 1), torch.randn(1, 1, 1))], "all", opsets=(10, 11, 18, 28)),
    Case("slice_scatter_step_dynamic", lambda x, v: x.slice_scatter(v[:, 1::2], 1, 1, None, 2), (X, X * 2), [(Y, Y * 2), (Z, Z * 2)], "all",
         opsets=(11, 18, 28)),
    Case("slice_scatter_empty", lambda x, v: x.slice_scatter(v, 1, 3, 1), (X, torch.randn(2, 0, 4))),
    Case("diagonal_scatter", lambda x, v: x.diagonal_scatter(v, 0, 1, 2), (X, torch.randn(2, 3)), [(W, torch.randn(5, 3))],
         {0: {0: "n"}, 1: {0: "n"}}),
    Case("diagonal_scatter_offsets", lambda x: [x.diagonal_scatter(x.diagonal(o, 2, 0) + 1, o, 2, 0) for o in (-3, -1, 0, 1)], (X,),
         opsets=(9, 13)),
    Case("diagonal_scatter_dynamic", lambda x: [x.diagonal_scatter(x.diagonal(o, 1, 2) * 2, o, 1, 2) for o in (-1, 0, 1)], (X,),
         [(W,), (torch.randn(1, 4, 4),)], "all", opsets=(11, 28)),
    Case("fill_diagonal_in_place", put(lambda x: x.diagonal(0, 1, 2).fill_(1.0)), (X,), opsets=(9, 18)),
]


@expand(INDEX_PUT + FILLS + SCATTER + PIECES)
def test_scattering(case: Case, opset: int) -> None:
    check(case, opset)
