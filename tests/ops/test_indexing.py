"""select, slice, index with tensors and masks, gather, nonzero."""

from __future__ import annotations

import torch

from tests.ops.harness import Case, check, expand

torch.manual_seed(0)
ALL = (7, 8, 9, 11, 13, 15, 18, 23, 28)
X = torch.randn(2, 3, 4)
Y = torch.randn(5, 7, 1)
Z = torch.randn(1, 2, 6)
W = torch.randn(5, 3, 4)
INT, BOOL, HALF = torch.arange(24).reshape(2, 3, 4), X > 0, X.half()
I = torch.tensor([0, -1, 1])  # noqa: E741
J = torch.tensor([2, 0, -3])
GRID = torch.tensor([[0, 1], [-1, 0]])

RANGES = [
    Case("select", lambda x: (x[0], x[:, -1], x[..., 2], x.select(-1, -4)), (X,), [(W,)], {0: {0: "n"}}, opsets=ALL),
    Case("select_dynamic", lambda x: (x[:, 0], x[:, -1], x[-1], x[..., -1]), (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("select_last_by_size", lambda x: x[:, x.shape[1] - 1], (X,), [(Y,), (Z,)], "all"),
    Case("select_half_int_bool", lambda a, b, c: (a[:, 1], b[:, 1], c[:, 1]), (HALF, INT, BOOL)),
    Case("slice", lambda x: (x[:, 1:], x[:, :-1], x[..., 1:3], x[-1:], x[:, 5:], x[:, 2:1], x[:, -9:2]), (X,), [(W,)], {0: {0: "n"}},
         opsets=ALL),
    Case("slice_dynamic", lambda x: (x[:, 1:], x[:, :-1], x[..., 1:3], x[-1:], x[:, 5:], x[:, -2:], x[:, 2:-1], x[:, -9:2]), (X,),
         [(Y,), (Z,)], "all", opsets=ALL),
    Case("slice_steps", lambda x: (x[:, ::2], x[..., 1::3], x[:, :-1:2, ::2]), (X,), [(Y,), (Z,)], "all", refused={9: "needs opset 10"}),
    Case("slice_steps_static", lambda x: (x[:, ::2], x[..., 1::3], x[:, :-1:2, ::2]), (X,), opsets=(7, 9, 10, 13)),
    Case("slice_several", lambda x: x[1:, 1:, :-1], (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("slice_by_size", lambda x: (x[:, x.shape[1] // 2:], x[:, : x.shape[1] - 1], x[:, :, : x.shape[0]]), (X,), [(Y,), (Z,)], "all",
         opsets=(9, 10, 13, 28),
         refused={9: "needs opset 10"}),
    Case("slice_by_step", lambda x: x[:, :: x.shape[0]], (X,), [(Y,), (Z,)], "all", opsets=(10, 18)),
    Case("slice_half_int_bool", lambda a, b, c: (a[:, 1:], b[:, 1:], c[:, 1:]), (HALF, INT, BOOL)),
    Case("slice_none", lambda x: x[:, :] + 1, (X,)),
    Case("slice_empty", lambda x: x[1:], (torch.zeros(0, 3),)),
    Case("narrow", lambda x: (x.narrow(1, 1, 2), x.narrow(-1, -3, 2), x.narrow(-1, -2, 2)), (X,), [(W,)], {0: {0: "n"}}),
    Case("narrow_dynamic", lambda x: (x.narrow(1, 0, 2), x.narrow(0, x.shape[0] - 1, 1)), (X,), [(Y,), (Z,)], "all", opsets=(11, 18)),
    Case("narrow_tensor", lambda x, i: x.narrow(1, i, 2), (X, torch.tensor(1)), [(X, torch.tensor(0)), (W, torch.tensor(1))], {0: {0: "n"}},
         opsets=(11, 18)),
]

TENSORS = [
    Case("index", lambda x, i: (x[i.abs()], x[:, i], x[..., i]), (X, torch.tensor([0, 1, -1])),
         [(W, torch.tensor([2])), (W, torch.tensor([1, -3, 0, 2]))],
         {0: {0: "n"}, 1: {0: "k"}}, opsets=ALL),
    Case("index_int32", lambda x, i: (x[:, i], x[i, i]), (X, torch.tensor([0, -1], dtype=torch.int32))),
    Case("index_scalar", lambda x, i: (x[i], x[:, i], x[i, i], x[:, i, i]), (X, torch.tensor(-1)), [(X, torch.tensor(1))]),
    Case("index_grid", lambda x, i: (x[i], x[:, i]), (X, GRID), [(X, GRID + 0)], {1: {0: "a", 1: "b"}}),
    Case("index_list", lambda x: (x[[0, -1]], x[:, [2, 0]], x[:, [0, -1], [1, -2]], x[[0, 1], :, [1, 2]]), (X,), [(X * 2,)], opsets=ALL),
    Case("index_list_batch", lambda x: (x[:, [2, 0]], x[:, [0, -1], [1, -2]]), (X,), [(W,)], {0: {0: "n"}}, opsets=ALL),
    Case("index_several", lambda x, i, j: (x[i, j], x[:, i, j], x[i, j, j]), (W, I, J), [(torch.randn(9, 3, 4), J, I)], {0: {0: "n"}},
         opsets=(9, 10, 11, 13, 28)),
    Case("index_dynamic", lambda x, i, j: (x[i, j], x[:, i, j], x[i, j, j]), (torch.randn(5, 3, 4), I, J), [(torch.randn(3, 9, 9), J, I)],
         "all", opsets=(10, 11, 13, 28)),
    Case("index_gap", lambda x, i, j: (x[i, :, j], x[i, :, j, None]), (W, I, J), [(torch.randn(3, 3, 4), J[:2], I[1:])],
         {0: {0: "n"}, 1: {0: "k"}, 2: {0: "k"}}, opsets=(9, 11, 28)),
    Case("index_gap_of_two", lambda x, i, j: x[:, i, :, j], (torch.randn(2, 3, 5, 4), I, J), [(torch.randn(1, 3, 1, 4), J, I)],
         {0: {0: "a", 2: "b"}}, opsets=(9, 11, 28)),
    Case("index_broadcast", lambda x, i, j: (x[i, j], x[:, i, j], x[i, :, j]), (W, GRID, torch.tensor([0, 2])),
         [(W, GRID * 0, torch.tensor([1, -1]))], opsets=(9, 11, 28)),
    Case("index_broadcast_dynamic", lambda x, i, j: x[i, j], (W, GRID, torch.tensor([0, 2])),
         [(torch.randn(7, 9, 4), GRID[:, :1], torch.tensor([0, 2, -1])), (W, GRID, torch.tensor([1]))],
         {0: {0: "a", 1: "b"}, 1: {0: "p", 1: "q"}, 2: {0: "r"}}, opsets=(11, 28)),
    Case("index_rows", lambda x, j: x[torch.arange(x.shape[0]), j], (X, torch.tensor([2, -1])),
         [(W, torch.tensor([0, 1, 2, -1, -2])), (Z, torch.tensor([1]))],
         {0: {0: "b", 1: "s", 2: "h"}, 1: {0: "b"}}, opsets=(11, 12, 13, 28)),
    # ONNX Runtime makes a Slice of a Gather by a Range, and reads an end of -1 as the last element
    Case("index_by_range", lambda x: (x[torch.arange(x.shape[0] - 1, -1, -1)], x[torch.arange(-x.shape[0], 0)], x[:, torch.arange(x.shape[1] - 1, 0, -2)],
         x[torch.arange(x.shape[0])], x[:, torch.arange(-1, -x.shape[1] - 1, -1)]), (X,), [(Y,), (Z,)], "all", opsets=(9, 11, 13, 28)),
    Case("index_rows_static", lambda x, j: x[torch.arange(2), j], (X, torch.tensor([2, -1])), [(X, torch.tensor([0, 0]))],
         opsets=(9, 11, 12, 13)),
    Case("index_int_and_tensor", lambda x, i: (x[0, i], x[:, i, 1], x[1:, i]), (X, I), [(X, J)]),
    Case("index_none", lambda x, i: x[None, :, i], (X, I)),
    Case("index_bool_data", lambda x, i: x[:, i, i], (BOOL, I)),
    Case("index_half", lambda x, i: x[:, i, i], (HALF, I)),
    Case("index_empty", lambda x: x[:, torch.zeros(0, dtype=torch.int64)], (X,)),
    Case("unsafe_index", lambda x, i: torch.ops.aten._unsafe_index(x, [None, i]), (X, I), opsets=(11, 18)),
]

MASKS = [
    Case("mask", lambda x: x[x > 0], (X,), [(Y,), (Z,), (-X.abs(),)], "all", opsets=(9, 11, 13, 18, 28)),
    Case("mask_static", lambda x: x[x > 0], (X,), [(X * -1,), (-X.abs(),)], opsets=(7, 8, 9, 11),
         refused={7: "needs opset 9", 8: "needs opset 9"}),
    Case("mask_rows", lambda x, m: (x[m], x[m] * 2), (X, torch.tensor([True, False])),
         [(W, torch.tensor([True, False, True, True, False])), (X, torch.tensor([False, False]))],
         {0: {0: "n", 1: "m"}, 1: {0: "n"}}),
    Case("mask_columns", lambda x, m: x[:, m], (X, torch.tensor([True, False, True])), [(W, torch.tensor([False, False, True]))],
         {0: {0: "n"}}),
    Case("mask_two_axes", lambda x, m: x[m], (X, BOOL[..., 0]), [(Z, torch.tensor([[True, False]]))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "a", 1: "b"}}),
    Case("mask_inner_axes", lambda x, m: x[:, m], (X, BOOL[0]), [(W, BOOL[1])], {0: {0: "n"}}),
    Case("mask_inner_dynamic", lambda x, m: x[:, m], (X, BOOL[0]), [(Z, torch.tensor([[True] * 6, [False] * 6]))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "b", 1: "c"}}),
    Case("mask_and_int", lambda x, m: (x[m, 0], x[m, :, 1], x[0, m[:1].expand(3)]), (X, torch.tensor([True, False])),
         [(X, torch.tensor([False, True]))], opsets=(9, 11, 28)),
    Case("mask_and_tensor", lambda x, m, i: (x[m, i], x[m, :, i]), (X, torch.tensor([True, False]), torch.tensor([1])),
         [(X, torch.tensor([True, True]), torch.tensor([0]))],
         opsets=(9, 11, 28)),
    Case("mask_two", lambda x, m, n: x[m][:, n], (X, torch.tensor([True, False]), torch.tensor([True, False, True])),
         [(X, torch.tensor([True, True]), torch.tensor([False, False, True]))]),
    Case("mask_pair", lambda x, m, n: x[m, n], (X, torch.tensor([True, True]), torch.tensor([True, False, True])),
         [(X, torch.tensor([False, True]), torch.tensor([False, False, True]))],
         opsets=(11, 28)),
    Case("mask_scalar", lambda x, m: x[m > 0], (X, torch.tensor(1)), [(X, torch.tensor(0))]),
    Case("mask_uint8", lambda x, m: x[m], (X, torch.tensor([1, 0], dtype=torch.uint8)), [(X, torch.tensor([1, 1], dtype=torch.uint8))]),
    Case("mask_constant", lambda x: x[torch.tensor([True, False])], (X,)),
    Case("mask_then_sum", lambda x: (x[x > 0] * 2).sum() + x[x > 0].mean(), (X.abs(),), [(W.abs(),)], {0: {0: "n"}}),
    Case("masked_select", lambda x: torch.masked_select(x, x > 0), (X,), [(Y,)], "all"),
    Case("masked_select_broadcast", lambda x, m: torch.masked_select(x, m), (X, torch.tensor([[True], [False], [True]])),
         [(W, torch.tensor([[False], [True], [True]]))], {0: {0: "n"}}),
    Case("masked_select_int", lambda x: torch.masked_select(x, x > 3), (INT,)),
    Case("nonzero", lambda x: (torch.nonzero(x > 0), torch.argwhere(x > 0)), (X,), [(Y,), (Z,), (-X.abs(),)], "all"),
    Case("nonzero_vector", lambda x: torch.nonzero(x), (torch.tensor([0.0, 2.0, 0.5]),), [(torch.zeros(4),)], "all"),
    Case("nonzero_scalar", lambda x: torch.nonzero(x), (torch.tensor(2.0),), [(torch.tensor(0.0),)]),
    Case("nonzero_dtypes", lambda a, b, c: [torch.nonzero(v) for v in (a.double(), a.half(), b, b.int(), b.to(torch.int8), c)],
         (X, INT, BOOL), opsets=(9, 18)),
    Case("nonzero_tuple", lambda x: torch.nonzero(x > 0, as_tuple=True), (X,), [(Y,), (Z,)], "all"),
    Case("where_condition", lambda x: torch.where(x > 0), (X,), [(Y,)], "all"),
    Case("where_then_index", lambda x: x[torch.where(x > 0)], (X,), [(Y,), (Z,)], "all"),
    Case("nonzero_static", lambda x: torch.nonzero_static(x > 0, size=9), (X,), [(Y,), (Z,)], "all", opsets=(10, 18)),
]

ALONG = [
    Case("index_select", lambda x, i: (x.index_select(1, i), x.index_select(-1, i)), (X, torch.tensor([2, 0])), [(W, torch.tensor([1]))],
         {0: {0: "n"}, 1: {0: "k"}}, opsets=ALL),
    Case("index_select_scalars", lambda x, i: (x.index_select(0, i), x[0, 0].index_select(0, i[0]), x[0, 0, 0].index_select(0, i)),
         (X, torch.tensor([0]))),
    Case("index_select_int32", lambda x, i: x.index_select(1, i), (X, torch.tensor([2, 0], dtype=torch.int32))),
    Case("take", lambda x, i: x.take(i), (X, torch.tensor([[0, 5], [-1, 7]])), [(Y, torch.tensor([[3, -3]]))], "all"),
    Case("gather", lambda x, i: (x.gather(1, i), x.gather(-1, i)), (X, torch.tensor([[[0, 1], [2, 0]]])),
         [(X + 1, torch.tensor([[[1, 1], [2, 2]]]))], opsets=ALL),
    Case("gather_dynamic", lambda x, i: x.gather(1, i), (X, torch.tensor([[[0, 1], [2, 0]]])), [(Y, torch.tensor([[[6]], [[1]]]))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "p", 1: "q", 2: "r"}}),
    Case("gather_scalars", lambda x, i: (x.gather(0, i), x[0].gather(0, i)), (torch.randn(1), torch.tensor([0]))),
    Case("gather_vector", lambda x, i: x.gather(0, i), (torch.randn(4), torch.tensor([3, 0])), [(torch.randn(7), torch.tensor([6]))],
         "all"),
    Case("gather_bool_int_half", lambda a, b, c, i: (a.gather(1, i), b.gather(1, i), c.gather(1, i)),
         (BOOL, INT, HALF, torch.tensor([[[0, 1], [2, 0]]]))),
    Case("gather_empty", lambda x, i: x.gather(1, i), (X, torch.zeros(2, 0, 4, dtype=torch.int64))),
    Case("take_along_dim", lambda x: torch.take_along_dim(x, x.argmax(1, keepdim=True), 1), (X,), [(Y,), (Z,)], "all"),
    Case("take_along_dim_broadcast", lambda x, i: torch.take_along_dim(x, i, 1), (X, torch.tensor([[[2], [0]]])),
         [(X, torch.tensor([[[0], [1]]]))]),
    Case("take_along_dim_dynamic", lambda x, i: torch.take_along_dim(x, i, 1), (X, torch.tensor([[[2], [0]]])),
         [(W, torch.tensor([[[2]]])), (Z, torch.ones(5, 3, 6, dtype=torch.int64))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "p", 1: "q", 2: "r"}}, opsets=(11, 28)),
    Case("take_along_dim_negative", lambda x, i: torch.take_along_dim(x, i, 1), (X, torch.tensor([[[-1], [0]]])),
         [(X, torch.tensor([[[2], [-3]]]))]),
    Case("take_along_dim_flat", lambda x, i: torch.take_along_dim(x, i), (X, torch.tensor([[5, 3]]))),
]


@expand(RANGES + TENSORS + MASKS + ALONG)
def test_indexing(case: Case, opset: int) -> None:
    check(case, opset)
