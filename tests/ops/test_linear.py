"""Matrix products of all ranks and dtypes, and contractions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import onnxport
from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
ALL = (7, 9, 11, 13, 18, NEWEST)


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def ints(*sizes: int, high: int = 1 << 40) -> torch.Tensor:
    return torch.randint(-high, high, sizes)


def ends(*rows: int) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.int32)


def einsum(equation: str, *shapes: tuple[int, ...], others: Any = (), **kwargs: Any) -> Case:
    return Case(f"einsum {equation}", lambda *t: torch.einsum(equation, *t), tuple(x(*s) for s in shapes),
                [tuple(x(*s) for s in other) for other in others], "all" if others else None, (9, 11, 12, 18, NEWEST), **kwargs)


class Product(nn.Module):
    """A linear layer whose weight is an input."""

    def forward(self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, w, b)


CASES = [
    Case("linear", nn.Linear(3, 4), (x(2, 3),), [(x(5, 3),), (x(1, 3),)], {0: {0: "n"}}, ALL),
    Case("linear_no_bias", nn.Linear(3, 4, bias=False), (x(2, 3),), [(x(5, 3),)], {0: {0: "n"}}, ALL),
    Case("linear_rank_3", nn.Linear(3, 4), (x(2, 5, 3),), [(x(1, 7, 3),)], {0: {0: "n", 1: "t"}}, ALL),
    Case("linear_rank_1", nn.Linear(3, 4), (x(3),), (), None, ALL),
    Case("linear_half", nn.Linear(3, 4).half(), (x(2, 3).half(),)),
    Case("linear_double", nn.Linear(3, 4).double(), (x(2, 3).double(),), rtol=1e-9, atol=1e-12),
    Case("linear_unfolded", nn.Linear(3, 4), (x(2, 5, 3),), options={"do_constant_folding": False}),
    Case("linear_given", Product(), (x(2, 3), x(4, 3), x(4)), [(x(5, 6), x(2, 6), x(2))], {0: {0: "n", 1: "i"}, 1: {0: "o", 1: "i"},
         2: {0: "o"}}, ALL),
    Case("linear_vector_weight", nn.functional.linear, (x(2, 3), x(3)), (), None),
    Case("linear_int", nn.functional.linear, (ints(2, 3), ints(4, 3)), (), None),
    Case("linear_empty", nn.Linear(3, 4), (torch.zeros(0, 3),), [(x(2, 3),)], {0: {0: "n"}}),
    *[Case(f"matmul_{len(a)}_{len(b)}", torch.matmul, (x(*a), x(*b)), (), None, ALL)
      for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,),
           (5, 3, 4)),
                   ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4)))],
    Case("matmul_sizes", torch.matmul, (x(2, 5, 3), x(2, 3, 4)), [(x(1, 2, 6), x(1, 6, 7))],
         {0: {0: "b", 1: "i", 2: "k"}, 1: {0: "b", 1: "k", 2: "j"}}),
    Case("matmul_int64", torch.matmul, (ints(2, 3), torch.randint(-1000, 1000, (3, 4))), (), None, (9, 11, 13, 18, NEWEST)),
    Case("matmul_int32", torch.matmul, (torch.randint(-9, 9, (2, 3), dtype=torch.int32), torch.randint(-9, 9, (3, 4), dtype=torch.int32))),
    Case("matmul_int8", torch.matmul, (torch.randint(-99, 99, (2, 3), dtype=torch.int8), torch.randint(-99, 99, (3, 4), dtype=torch.int8))),
    Case("matmul_empty", torch.matmul, (torch.zeros(2, 0), torch.zeros(0, 3))),
    Case("mm", torch.mm, (x(2, 3), x(3, 4)), [(x(5, 3), x(3, 2))], {0: {0: "n"}, 1: {1: "m"}}, ALL),
    Case("bmm", torch.bmm, (x(2, 3, 4), x(2, 4, 5)), [(x(1, 3, 4), x(1, 4, 5))], {0: {0: "b"}, 1: {0: "b"}}, ALL),
    Case("grouped_mm", lambda a, b, ends: torch._grouped_mm(a, b, offs=ends), (x(8, 4), x(3, 4, 8), ends(2, 2, 8)),
         [(x(5, 4), x(3, 4, 8), ends(0, 4, 5)), (x(3, 4), x(3, 4, 8), ends(3, 3, 3))], {0: {0: "n"}}, (13, 18, NEWEST)),
    Case("grouped_mm_one", lambda a, b, ends: torch._grouped_mm(a, b, offs=ends), (x(8, 4), x(1, 4, 8), ends(8)), (), None, (13, 18)),
    Case("grouped_mm_batch", lambda a, b: torch._grouped_mm(a, b), (x(2, 8, 4), x(2, 4, 8)), (), None, (13, 18)),
    Case("mv", torch.mv, (x(2, 3), x(3)), [(x(5, 3), x(3))], {0: {0: "n"}}),
    Case("dot", torch.dot, (x(3), x(3)), [(x(5), x(5))], "all"),
    Case("vdot", torch.vdot, (x(3), x(3)), [(x(5), x(5))], "all"),
    Case("vecdot", torch.linalg.vecdot, (x(2, 3), x(2, 3)), [(x(5, 3), x(5, 3))], "all"),
    Case("addmm", torch.addmm, (x(4), x(2, 3), x(3, 4)), [(x(4), x(5, 3), x(3, 4))], {1: {0: "n"}}, ALL),
    Case("addmm_scaled", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (x(2, 1), x(2, 3), x(3, 4)), (), None, ALL),
    Case("addmm_beta_0", lambda c, a, b: torch.addmm(c, a, b, beta=0), (torch.full((4,), float("nan")), x(2, 3), x(3, 4))),
    Case("addmm_double", lambda c, a, b: torch.addmm(c, a, b, beta=0.1, alpha=0.3), (x(4).double(), x(2, 3).double(), x(3, 4).double()),
         rtol=1e-9, atol=1e-12),
    Case("addmm_int", lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3), (ints(4, high=99), ints(2, 3, high=99), ints(3, 4, high=99))),
    Case("baddbmm", lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2), (x(2, 3, 5), x(2, 3, 4), x(2, 4, 5)), (), None),
    Case("addbmm", torch.addbmm, (x(3, 5), x(2, 3, 4), x(2, 4, 5)), [(x(3, 5), x(1, 3, 4), x(1, 4, 5))], {1: {0: "b"}, 2: {0: "b"}}),
    Case("addmv", lambda c, a, b: torch.addmv(c, a, b, alpha=2), (x(2), x(2, 3), x(3))),
    Case("addr", lambda c, a, b: torch.addr(c, a, b, beta=2), (x(2, 3), x(2), x(3)), [(x(5, 3), x(5), x(3))], {0: {0: "n"}, 1: {0: "n"}}),
    Case("outer", torch.outer, (x(2), x(3)), [(x(5), x(1))], "all"),
    Case("outer_promotes", torch.ger, (ints(2, high=9), x(3))),
    Case("multi_dot", lambda *t: torch.linalg.multi_dot(t), (x(2, 3), x(3, 4), x(4, 5))),
    Case("chain_matmul", lambda *t: torch.chain_matmul(*t), (x(2, 3), x(3, 4))),
    einsum("ij,jk->ik", (2, 3), (3, 4), others=[[(5, 3), (3, 1)]]),
    einsum("ij,jk", (2, 3), (3, 4)),
    einsum("bij,bjk->bik", (2, 3, 4), (2, 4, 5), others=[[(3, 1, 4), (3, 4, 5)]]),
    einsum("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5), others=[[(1, 2, 3, 5), (1, 2, 4, 5)]]),
    einsum("...ij,...jk->...ik", (2, 3, 4, 5), (2, 3, 5, 6)),
    einsum("...d,dk->...k", (2, 3, 4), (4, 5), others=[[(5, 1, 4), (4, 2)]]),
    einsum("i,j->ij", (2,), (3,), others=[[(4,), (1,)]]),
    einsum("ij->ji", (2, 3), others=[[(4, 1)]]),
    einsum("ij->", (2, 3)),
    einsum("ij->j", (2, 3)),
    einsum("ba", (2, 3)),
    einsum("ij,ij->i", (2, 3), (2, 3)),
    einsum("ik,jkl,il->ij", (2, 3), (4, 3, 5), (2, 5), others=[[(3, 2), (4, 2, 6), (3, 6)]]),
    einsum("bn,anm,bm->ba", (2, 3), (4, 3, 5), (2, 5)),
    einsum("Aij,Ajk->Aki", (2, 3, 4), (2, 4, 5)),
    einsum("i...,i...->...", (2, 3), (2, 3)),
    einsum("...,...", (2, 3), (2, 3)),
    einsum("ii->i", (3, 3), refused={9: "needs opset 12", 11: "needs opset 12"}),
    einsum("ii", (3, 3), refused={9: "needs opset 12", 11: "needs opset 12"}),
    einsum("ij,jk->ik ", (2, 1), (3, 4), refused={9: "needs opset 12", 11: "needs opset 12"}),
    Case("einsum_int", lambda a, b: torch.einsum("ij,kj->ik", a, b), (ints(2, 3, high=99), ints(4, 3, high=99)), (),
         None, (9, 12, 18, NEWEST)),
    Case("einsum_half", lambda a, b: torch.einsum("ij,kj->ik", a, b), (x(2, 3).half(), x(4, 3).half()), (), None, (9, 12, 18, NEWEST)),
    Case("tensordot", lambda a, b: torch.tensordot(a, b, 2), (x(2, 3, 4), x(3, 4, 5)), [(x(6, 3, 4), x(3, 4, 1))], {0: {0: "n"},
         1: {2: "m"}}),
    Case("tensordot_dims", lambda a, b: torch.tensordot(a, b, ([2, 0], [1, 3])), (x(2, 3, 4), x(5, 4, 6, 2)), [(x(1, 3, 7), x(2, 7, 3, 1))],
         {0: {0: "n", 2: "k"}, 1: {0: "p", 1: "k", 2: "q", 3: "n"}}),
    Case("tensordot_broadcast", lambda a, b: torch.tensordot(a, b, 1), (x(2, 3), x(1, 4))),
    Case("tensordot_0", lambda a, b: torch.tensordot(a, b, 0), (x(2, 3), x(4))),
    Case("inner", torch.inner, (x(2, 3), x(4, 3)), [(x(5, 3), x(1, 3))], {0: {0: "n"}, 1: {0: "m"}}),
    Case("inner_vectors", torch.inner, (x(3), x(3))),
    Case("inner_ranks", torch.inner, (x(2, 3), x(4, 5, 3))),
    Case("inner_scalar", torch.inner, (x(2, 3), x())),
    Case("kron", torch.kron, (x(2, 3), x(4, 5)), [(x(2, 3), x(1, 5))], {1: {0: "n"}}),
    Case("kron_ranks", torch.kron, (x(2), x(4, 5, 2))),
    Case("bilinear", nn.Bilinear(3, 4, 5), (x(2, 3), x(2, 4)), [(x(7, 3), x(7, 4))], {0: {0: "n"}, 1: {0: "n"}}),
    Case("bilinear_rank_3", nn.Bilinear(3, 4, 5, bias=False), (x(2, 6, 3), x(2, 6, 4)), [(x(1, 2, 3), x(1, 2, 4))],
         {0: {0: "n", 1: "t"}, 1: {0: "n", 1: "t"}}),
    Case("cross", torch.linalg.cross, (x(2, 3), x(2, 3)), [(x(5, 3), x(5, 3))], {0: {0: "n"}, 1: {0: "n"}}),
    Case("cross_dim", lambda a, b: torch.cross(a, b, 1), (x(2, 3, 4), x(2, 3, 4))),
    Case("cross_broadcast", torch.linalg.cross, (x(4, 1, 3), x(1, 2, 3))),
    Case("cross_first", lambda a, b: torch.ops.aten.cross(a, b), (x(2, 3, 3), x(2, 3, 3))),
]


@expand(CASES)
def test_linear(case: Case, opset: int) -> None:
    check(case, opset)


@pytest.mark.parametrize(("module", "args", "nodes"), [
    (nn.Linear(3, 4), (x(2, 3),), ["Gemm"]), (nn.Linear(3, 4), (x(2, 5, 3),), ["MatMul", "Add"]),
    (nn.Linear(3, 4, bias=False), (x(2, 3),), ["Gemm"]), (nn.Linear(3, 4, bias=False), (x(2, 5, 3),), ["MatMul"])])
def test_nodes(module: nn.Module, args: Any, nodes: list[str]) -> None:
    """Weights cost no nodes."""
    program = onnxport.export(module.eval(), args, None, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert [n.op_type for n in program.model_proto.graph.node] == nodes
