"""cat, stack, split, chunk, unbind and their kin."""

from __future__ import annotations

import pytest
import torch

import onnxport
from tests.ops.harness import Case, check, expand, exported

torch.manual_seed(0)
ALL = (7, 8, 9, 11, 13, 15, 18, 23, 28)
X = torch.randn(2, 3, 4)
Y = torch.randn(5, 7, 1)
Z = torch.randn(1, 2, 6)
E = torch.randn(2, 4, 6)

TOGETHER = [
    Case("cat", lambda x: torch.cat([x, x + 1], 1), (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("cat_two", lambda x, y: torch.cat([x, y], -1), (X, torch.randn(2, 3, 2)), [(Y, torch.randn(5, 7, 3))],
         {0: {0: "a", 1: "b", 2: "c"}, 1: {0: "a", 1: "b", 2: "d"}}),
    Case("cat_promotes", lambda x, i: torch.cat([x, i]), (torch.randn(2), torch.tensor([1, 2]))),
    Case("cat_promotes_bool", lambda b, i: torch.cat([b, i.int()]), (torch.tensor([True, False]), torch.tensor([1, 2]))),
    Case("cat_half", lambda x: torch.cat([x.half(), x]), (X,)),
    Case("cat_empty", lambda x: torch.cat([torch.zeros(0), x], 1), (X,)),
    Case("cat_empty_input", lambda x, y: torch.cat([x, y], 1), (torch.zeros(0), X)),
    Case("cat_one", lambda x: torch.cat([x], 1) + 1, (X,)),
    Case("cat_vectors_of_none", lambda x: torch.cat([x[:0], x, x[:0]]), (torch.randn(3),), [(torch.randn(5),)], "all"),
    Case("concat", lambda x: torch.concatenate([x, x], axis=2), (X,)),
    Case("stack", lambda x: [torch.stack([x, x + 1, x + 2], d) for d in (0, 1, 2, 3, -1)], (X,), [(Y,), (Z,)], "all", opsets=ALL),
    Case("stack_static", lambda x: [torch.stack([x, x + 1, x + 2], d) for d in (0, 1, 2, 3)], (X,)),
    Case("stack_batch", lambda x: [torch.stack([x, x + 1, x + 2], d) for d in (0, 1, 2, 3)], (X,), [(torch.randn(5, 3, 4),)],
         {0: {0: "b"}}),
    Case("stack_scalars", lambda x: torch.stack([x, x + 1]), (torch.randn(()),)),
    Case("stack_promotes", lambda x, i: torch.stack([x, i]), (torch.randn(2), torch.tensor([1, 2]))),
    Case("stack_bool", lambda x: torch.stack([x > 0, x > 1, x > 2], 1), (X,)),
    Case("hstack", lambda a, b: (torch.hstack([a, a]), torch.hstack([b, b]), torch.hstack([a[0], a[0]])),
         (torch.randn(3), torch.randn(2, 3))),
    Case("vstack", lambda a, b: (torch.vstack([a, a]), torch.vstack([b, b])), (torch.randn(3), torch.randn(2, 3))),
    Case("dstack", lambda a, b: (torch.dstack([a, a]), torch.dstack([b, b])), (torch.randn(3), torch.randn(2, 3))),
    Case("column_stack", lambda a, b: torch.column_stack([a, b, a]), (torch.randn(2), torch.randn(2, 3)),
         [(torch.randn(5), torch.randn(5, 3))], {0: {0: "n"}, 1: {0: "n"}}),
    Case("block_diag", lambda a, b: torch.block_diag(a, b, a[0]), (torch.randn(2, 3), torch.randn(3, 1)),
         [(torch.randn(1, 3), torch.randn(5, 1))], {0: {0: "n"}, 1: {0: "m"}}),
    Case("chunk_cat", lambda a, b: torch._chunk_cat([a, b], 0, 2), (torch.randn(3, 2), torch.randn(4, 3))),
]

APART = [
    Case("split", lambda x: (x.split(2, 1), x.split(3, -1), x.split(9)), (X,), opsets=ALL),
    Case("split_batch", lambda x: x.split(2, 2), (X,), [(torch.randn(5, 1, 4),)], {0: {0: "a", 1: "b"}}),
    Case("split_dynamic", lambda x: x.split(2, 1), (X,), dynamic={0: {1: "time"}}, opsets=(18,),
         refused={18: r"split of dim 1 gives a list of .*time"}),
    Case("split_sizes", lambda x: x.split([1, 0, 3], 2), (X,), [(torch.randn(5, 1, 4),)], {0: {0: "a", 1: "b"}}, opsets=ALL),
    Case("split_sizes_dynamic", lambda x: x.split([1, x.shape[1] - 1], 1), (X,), [(Y,), (Z,)], "all", opsets=(9, 10, 11, 13, 18, 28),
         refused={9: "needs opset 1"}),
    Case("split_int", lambda x: x.split(2, 1), ((X * 9).long(),)),
    Case("split_bool", lambda x: x.split(2, 1), (X > 0,)),
    Case("split_scalar_parts", lambda x: torch.split(x, 1), (torch.randn(2),)),
    Case("chunk", lambda x: (x.chunk(2, 1), x.chunk(3, 2), x.chunk(5, 2)), (X,), opsets=ALL),
    Case("chunk_dynamic", lambda x: x.chunk(2, 1), (E,), [(torch.randn(1, 5, 2),), (torch.randn(3, 2, 1),)], "all",
         opsets=(9, 10, 13, 15, 18, 28), refused={9: "needs opset 10"}),
    Case("chunk_of_doubled", lambda x: torch.cat([x, x], 1).chunk(2, 1), (X,), [(Y,), (Z,)], "all"),
    Case("chunk_unsure", lambda x: x.chunk(3, 1), (X,), dynamic={0: {1: "time"}}, opsets=(18,),
         refused={18: "chunk of dim 1 gives a list"}),
    Case("chunk_batch", lambda x: x.chunk(2, -1), (X,), [(torch.randn(5, 1, 4),)], {0: {0: "a", 1: "b"}}),
    Case("tensor_split", lambda x: (x.tensor_split(2, 1), x.tensor_split(3, 2), x.tensor_split((1, 2), 2), x.tensor_split((-1,), 2),
         x.tensor_split((3, 1), 2)), (X,)),
    Case("tensor_split_dynamic", lambda x: (x.tensor_split(2, 1), x.tensor_split(3, 2), x.tensor_split((1, 2), 2)), (X,), [(Y,), (Z,)],
         "all", opsets=(11, 13, 28)),
    Case("tensor_split_computed", lambda x, i: x.tensor_split(i, 1), (X, torch.tensor([1, 2])),
         [(X, torch.tensor([2, 1])), (X, torch.tensor([-1, 9])), (Y, torch.tensor([0, 4]))], {0: {0: "a", 1: "b", 2: "c"}}, (10, 11, 18, 28)),
    Case("tensor_split_computed_count", lambda x, i: x.tensor_split(i, 1), (X, torch.tensor(2)), opsets=(18,), refused={18: "into as many parts"}),
    Case("tensor_split_tensor", lambda x: (x.tensor_split(torch.tensor(2), 1), x.tensor_split(torch.tensor([1]), 2)), (X,)),
    Case("named_splits", lambda x: (x.hsplit(3), x.vsplit(2), x.dsplit(2), x.hsplit([1]), x[0, 0].hsplit(2)), (X,)),
    Case("unbind", lambda x: (x.unbind(1), x.unbind(-1), x[0, 0].unbind()), (X,), opsets=ALL),
    Case("unbind_batch", lambda x: x.unbind(1), (X,), [(torch.randn(5, 3, 1),)], {0: {0: "a", 2: "b"}}),
    Case("unbind_dynamic", lambda x: x.unbind(1), (X,), dynamic={0: {1: "time"}}, opsets=(18,), refused={18: "dim 1 gives a list of time"}),
    Case("unpacked", lambda x: sum(row for row in x), (X,)),
    Case("unsafe", lambda x: (torch.unsafe_split(x, 2, 1), torch.unsafe_chunk(x, 2, 1)), (X,)),
]


@expand(TOGETHER + APART)
def test_joining(case: Case, opset: int) -> None:
    check(case, opset)


def test_a_loop_over_a_dynamic_axis_is_an_error_that_names_it() -> None:
    case = Case("loop", lambda x: sum(row for row in x), (X,), dynamic={0: {0: "time"}})
    with pytest.raises(onnxport.errors.BakedValueError, match="time"):
        exported(case, 18, dynamic=True)
