"""Reshape, permute, expand, flip, roll, windows and diagonals."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.ops.harness import Case, check, expand

torch.manual_seed(0)
ALL = (7, 8, 9, 11, 13, 14, 18, 23, 28)
X = torch.randn(2, 3, 4)
Y = torch.randn(5, 7, 1)
Z = torch.randn(1, 2, 6)
S = torch.randn(2, 3, 3)
IMAGE = torch.randn(2, 8, 3, 5)
HALF, INT, BOOL = X.half(), torch.arange(24).reshape(2, 3, 4), X > 0

SHAPES = [
    Case("view_static", lambda x: x.view(6, 4), (X,), [(X + 1,)]),
    Case("view_rest", lambda x: x.view(x.shape[0], -1), (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("view_heads", lambda x: x.view(x.shape[0], x.shape[1], 2, 2), (X,), [(torch.randn(5, 1, 4),)], {0: {0: "b", 1: "s"}}, opsets=ALL),
    Case("view_merge_all", lambda x: x.reshape(x.shape[0] * x.shape[1], x.shape[2]), (X,), [(Y,), (Z,)], "all"),
    Case("view_two_unknown", lambda x: x.view(x.shape[1], x.shape[0], x.shape[2]), (X,), [(Y,), (Z,)], "all", opsets=(9, 13, 15, 28)),
    Case("view_half", lambda x: x.view(-1, 2), (X,), [(torch.randn(1, 5, 2),)], "all"),
    Case("view_as", lambda x, y: x.view_as(y), (X, torch.randn(4, 6)), [(torch.randn(1, 5, 6), torch.randn(2, 15))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "d", 1: "e"}}),
    Case("reshape_empty", lambda x: x.reshape(0, 5), (torch.zeros(0, 3),), opsets=(9, 13, 14, 28)),
    Case("reshape_scalar", lambda x: x.reshape(()), (torch.randn(1, 1),)),
    Case("reshape_of_scalar", lambda x: x.reshape(1, -1, 1), (torch.randn(()),)),
    Case("reshape_bool", lambda x: x.reshape(4, -1), (BOOL,)),
    Case("flatten", lambda x: torch.flatten(x, 1), (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("flatten_all", torch.flatten, (X,), [(Y,), (Z,)], "all"),
    Case("flatten_middle", lambda x: x.flatten(1, -2), (IMAGE,), [(torch.randn(1, 8, 7, 2),)], {0: {0: "n", 2: "h", 3: "w"}}),
    Case("flatten_scalar", torch.flatten, (torch.randn(()),)),
    Case("unflatten", lambda x: x.unflatten(-1, (2, -1)), (X,), [(torch.randn(5, 1, 4),)], {0: {0: "b", 1: "s"}}),
    Case("unflatten_dynamic", lambda x: x.unflatten(1, (3, -1)), (X,), [(torch.randn(5, 6, 1),)], "all"),
    Case("ravel", torch.ravel, (X,), [(Y,)], "all"),
    Case("unsqueeze", lambda x: (x.unsqueeze(0), x.unsqueeze(-1), x.unsqueeze(2)), (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("squeeze", lambda x: x.squeeze(1), (torch.randn(2, 1, 4),), [(torch.randn(1, 1, 1),)], {0: {0: "a", 2: "b"}}, opsets=ALL),
    Case("squeeze_not_one", lambda x: x.squeeze(1), (X,), [(torch.randn(1, 3, 1),)], {0: {0: "a", 2: "b"}}),
    Case("squeeze_all", torch.squeeze, (torch.randn(1, 3, 1),)),
    Case("squeeze_dims", lambda x: x.squeeze((0, -1)), (torch.randn(1, 1, 1),)),
    Case("squeeze_scalar", lambda x: (x.squeeze(), x.squeeze(0)), (torch.randn(()),)),
    Case("squeeze_dynamic", lambda x: x.squeeze(1), (X,), [(torch.randn(2, 5, 4),)], dynamic={0: {1: "s"}}),
    Case("squeeze_all_dynamic", torch.squeeze, (torch.randn(2, 1, 4),), [(torch.randn(5, 1, 4),)], dynamic={0: {0: "batch"}}),
    Case("squeeze_counted", lambda x: x[x > 0].squeeze(), (X,), dynamic={0: {1: "s"}}, opsets=(18,), refused={18: "squeeze of dim 0, whose size"}),
    Case("atleast", lambda a, b, c: (torch.atleast_1d(a), torch.atleast_2d(b), torch.atleast_3d(b), torch.atleast_3d(c),
         torch.atleast_3d(a)),
         (torch.randn(()), torch.randn(3), torch.randn(2, 3)), [(torch.randn(()), torch.randn(5), torch.randn(1, 5))], "all"),
    Case("numel", lambda x: x + x.numel(), (X,), [(Y,), (Z,)], "all"),
    Case("copies", lambda x: (torch.view_copy(x, (6, 4)), torch.squeeze_copy(x), torch.permute_copy(x, (1, 0, 2)),
         torch.expand_copy(x, (2, 2, 3, 4))),
         (X,), opsets=(13,)),
]

AXES = [
    Case("permute", lambda x: x.permute(2, 0, -2), (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("permute_int", lambda x: x.permute(2, 0, 1), (INT,)),
    Case("permute_bool", lambda x: x.permute(2, 0, 1), (BOOL,)),
    Case("transpose", lambda x: x.transpose(1, -1), (X,), [(Y,), (Z,)], "all"),
    Case("transpose_twice", lambda x: x.transpose(1, 2).transpose(1, 2) + 1, (X,)),
    Case("transpose_scalar", lambda x: x.transpose(0, -1), (torch.randn(()),)),
    Case("swapaxes", lambda x: torch.swapaxes(x, 0, 2), (X,), [(Y,)], "all"),
    Case("t", lambda x: (x[0].t(), x[0, 0].t()), (X,)),
    Case("T", lambda x: x[0].T, (X,), [(Y,)], "all"),
    Case("mT", lambda x: (x.mT, x.mH, x[0].H), (X,), [(Y,)], "all"),
    Case("movedim", lambda x: (x.movedim(0, -1), x.movedim((0, 1), (2, 0))), (X,), [(Y,), (Z,)], "all"),
    Case("moveaxis", lambda x: torch.moveaxis(x, -1, 0), (X,), [(Y,)], "all"),
]

REPEATED = [
    Case("expand", lambda x: x.expand(-1, 3, 5), (torch.randn(2, 3, 1),), [(torch.randn(4, 3, 1),)], {0: {0: "b"}}, opsets=ALL),
    Case("expand_new", lambda x: x.expand(x.shape[0], 4, *x.shape), (X,), [(Y,)], "all", opsets=ALL),
    Case("expand_to_size", lambda x, y: x.expand(y.shape[0], -1), (torch.randn(1, 3), torch.randn(5, 2)),
         [(torch.randn(1, 3), torch.randn(1, 2))], {1: {0: "n"}}),
    Case("expand_bool", lambda x: x[:, :1].expand(-1, 6, -1), (BOOL,)),
    Case("expand_scalar", lambda x: x.expand(2, 3), (torch.randn(()),)),
    Case("expand_empty", lambda x: x.expand(0, 3), (torch.randn(1, 3),)),
    Case("expand_as", lambda x, y: x.expand_as(y), (torch.randn(3, 1), X), [(torch.randn(7, 1), Y)],
         {0: {0: "m"}, 1: {0: "a", 1: "m", 2: "c"}}),
    Case("broadcast_to", lambda x: torch.broadcast_to(x, (2, 3, 4)), (torch.randn(4),)),
    Case("broadcast_tensors", lambda a, b: torch.broadcast_tensors(a, b), (torch.randn(3, 1), torch.randn(1, 4)),
         [(torch.randn(5, 1), torch.randn(1, 1))], {0: {0: "a"}, 1: {1: "b"}}),
    Case("broadcast_tensors_unsure", lambda a, b: torch.broadcast_tensors(a, b), (torch.randn(3), torch.randn(2, 3)),
         [(torch.randn(1), torch.randn(2, 5)), (torch.randn(5), torch.randn(1, 1))], {0: {0: "a"}, 1: {0: "b", 1: "c"}}),
    Case("repeat", lambda x: x.repeat(2, 1, 3), (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("repeat_new_dims", lambda x: x.repeat(2, 1, 3, 1, 2), (X,), [(Y,)], "all"),
    Case("repeat_by_size", lambda x: x[:1].repeat(x.shape[0], 1, 1), (X,), [(Y,), (Z,)], "all"),
    Case("repeat_none", lambda x: x.repeat(0, 1, 1), (X,)),
    Case("repeat_bool", lambda x: x.repeat(1, 2, 1), (BOOL,)),
    Case("repeat_half", lambda x: x.repeat(1, 2, 1), (HALF,)),
    Case("repeat_scalar", lambda x: x.repeat(3), (torch.randn(()),)),
    Case("tile", lambda x: (x.tile(2), x.tile(2, 1, 1, 2)), (X,), [(Y,)], "all"),
    Case("repeat_interleave", lambda x: (x.repeat_interleave(2, 1), x.repeat_interleave(3)), (X,), [(Y,), (Z,)], "all",
         opsets=(8, 9, 11, 18, 28)),
    Case("repeat_interleave_by_size", lambda x: x.repeat_interleave(x.shape[1], 0), (X,), [(Y,), (Z,)], "all", opsets=(11, 28)),
    Case("repeat_interleave_empty", lambda x: x.repeat_interleave(2, 0), (torch.zeros(0, 3),)),
    Case("repeat_interleave_tensor", lambda x, n: x.repeat_interleave(n, 0), (torch.randn(4, 2), torch.tensor([2, 0, 3, 0])),
         [(torch.randn(4, 2), torch.tensor([0, 0, 0, 1])), (torch.randn(1, 2), torch.tensor([3])),
           (torch.randn(2, 2), torch.tensor([0, 0])),
          (torch.randn(5, 2), torch.tensor([0, 0, 1, 2, 1]))],
         {0: {0: "n"}, 1: {0: "n"}}, refused={9: "needs opset 11"}, opsets=(9, 11, 13, 15, 16, 18, 28)),
    Case("repeat_interleave_places", torch.repeat_interleave, (torch.tensor([2, 0, 3]),), [(torch.tensor([0, 5, 0, 1]),)], "all",
         refused={9: "needs opset 11"}),
    Case("repeat_interleave_constant", lambda x: x.repeat_interleave(torch.tensor([1, 0, 2]), 1), (X,), [(torch.randn(1, 3, 2),)],
         {0: {0: "a", 2: "b"}}),
    Case("combinations", lambda x: (torch.combinations(x), torch.combinations(x, 3, True)), (torch.randn(4),)),
]

ORDER = [
    Case("flip", lambda x: x.flip(0, -1), (X,), [(Y,), (Z,)], "all", refused={9: "needs opset 10"}),
    Case("flip_static", lambda x: x.flip(0, -1), (X,), opsets=(7, 9, 10, 13)),
    Case("flip_int", lambda x: x.flip(1), (INT,)),
    Case("flip_bool", lambda x: x.flip(1), (BOOL,)),
    Case("flip_scalar", lambda x: x.flip(0), (torch.randn(()),)),
    Case("fliplr", lambda x: (torch.fliplr(x), torch.flipud(x)), (X,)),
    Case("rot90", lambda x: [torch.rot90(x, k, (0, 2)) for k in range(-1, 4)], (X,), [(Y,)], "all", opsets=(11, 28)),
    Case("roll_static", lambda x: (x.roll(1, 0), x.roll((-1, 6), (1, 2)), x.roll(5)), (X,), opsets=(7, 9, 18)),
    Case("roll", lambda x: (x.roll(1, 0), x.roll((-2, 5), (1, 2)), x.roll(5)), (X,), [(Y,), (Z,)], "all", refused={9: "needs opset 10"}),
    Case("roll_by_half", lambda x: x.roll((x.shape[1] // 2,), 1), (X,), [(Y,), (Z,), (torch.randn(1, 1, 1),)], "all", opsets=(11, 28)),
    Case("pixel_shuffle", lambda x: functional.pixel_shuffle(x, 2), (IMAGE,), [(torch.randn(1, 8, 1, 4),)], {0: {0: "n", 2: "h", 3: "w"}},
         opsets=(7, 9, 11, 13, 28)),
    Case("pixel_shuffle_batches", lambda x: (functional.pixel_shuffle(x[0], 2), functional.pixel_shuffle(x[None], 2)), (IMAGE,)),
    Case("pixel_shuffle_int", lambda x: functional.pixel_shuffle(x, 2), ((IMAGE * 9).long(),), opsets=(9, 13)),
    Case("pixel_shuffle_double", lambda x: functional.pixel_shuffle(x, 2), (IMAGE.double(),), opsets=(9, 13)),
    Case("pixel_unshuffle", lambda x: functional.pixel_unshuffle(x, 2), (torch.randn(2, 3, 4, 6),), [(torch.randn(1, 3, 2, 4),)],
         {0: {0: "n", 2: "h", 3: "w"}}),
    Case("channel_shuffle", lambda x: functional.channel_shuffle(x, 2), (IMAGE,), [(torch.randn(1, 8, 1, 4),)],
         {0: {0: "n", 2: "h", 3: "w"}}),
    Case("unfold", lambda x: (x.unfold(1, 2, 1), x.unfold(-1, 3, 2), x.unfold(0, 1, 1)), (torch.randn(2, 5, 6),),
         [(torch.randn(3, 2, 3),), (torch.randn(1, 7, 8),)],
         "all", refused={9: "needs opset 11"}),
    Case("unfold_static", lambda x: (x.unfold(1, 2, 1), x.unfold(-1, 3, 3), x.unfold(0, 2, 5)), (torch.randn(2, 5, 6),), opsets=(7, 9, 13)),
    Case("unfold_blocks", lambda x: x.unfold(1, 2, 2), (X.repeat(1, 2, 1),), [(torch.randn(1, 4, 4),), (torch.randn(1, 5, 4),)],
         {0: {0: "n", 1: "s"}}, opsets=(11, 28)),
    Case("unfold_scalar", lambda x: x.unfold(0, 1, 1), (torch.randn(()),)),
]

DIAGONALS = [
    Case("diagonal", lambda x: [x.diagonal(o, 1, 2) for o in (-4, -2, -1, 0, 1, 3, 4)] + [x.diagonal(1, 2, 0), x.diagonal()], (X,),
         opsets=(9, 10, 13)),
    Case("diagonal_dynamic", lambda x: [x.diagonal(o, -2, -1) for o in (-2, 0, 1, 3)], (X,),
         [(torch.randn(1, 5, 2),), (torch.randn(3, 2, 5),), (torch.randn(3, 4, 4),)], "all", opsets=(10, 13, 28)),
    Case("diagonal_rows", lambda x: [x.diagonal(o, -2, -1) for o in (-1, 0, 1)], (X,), [(torch.randn(1, 5, 4),), (torch.randn(2, 1, 4),)],
         {0: {0: "b", 1: "r"}}, opsets=(13,)),
    Case("diagonal_int", lambda x: x.diagonal(0, 1, 2), (INT,)),
    Case("diagonal_bool", lambda x: x.diagonal(0, 1, 2), (BOOL,)),
    Case("linalg_diagonal", torch.linalg.diagonal, (X,)),
    Case("diag", lambda x: [torch.diag(x[0], o) for o in (-1, 0, 2)] + [torch.diag(x[0, 0], o) for o in (-1, 0, 2)], (X,)),
    Case("diag_embed", lambda x: [torch.diag_embed(x, o) for o in (-1, 0, 2)] + [torch.diag_embed(x, 1, 0, 2),
         torch.diag_embed(x, 1, 2, 0)], (X,)),
    Case("diag_embed_dynamic", lambda x: [torch.diag_embed(x, o) for o in (-1, 0, 2)], (X,), [(Y,), (Z,)], "all"),
    Case("diag_embed_int", torch.diag_embed, (INT,)),
    Case("diag_embed_bool", torch.diag_embed, (BOOL,)),
    Case("diag_embed_inf", lambda x: torch.diag_embed(x / 0), (X,)),
    Case("diagflat", lambda x: torch.diagflat(x, 1), (X,)),
]


@expand(SHAPES + AXES + REPEATED + ORDER + DIAGONALS)
def test_layout(case: Case, opset: int) -> None:
    check(case, opset)
