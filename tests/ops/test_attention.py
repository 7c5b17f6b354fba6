"""Scaled dot product attention: masks, causal, scale, groups of heads, ranks, and the modules that use it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as sdpa

import onnxport
from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
ALL = (7, 9, 11, 13, 14, 18, 23, 24, NEWEST)
INF = float("inf")


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def bools(*sizes: int) -> torch.Tensor:
    mask = torch.rand(sizes) > 0.4
    mask[..., 0, :] = False  # a query that may look at nothing
    return mask


def added(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes).masked_fill(~bools(*sizes), -INF)


def qkv(b: int, h: int, length: int, keys: int, e: int = 4, ev: int = 4) -> tuple[torch.Tensor, ...]:
    return x(b, h, length, e), x(b, h, keys, e), x(b, h, keys, ev)


DYNAMIC: dict[int, dict[int, str]] = {0: {0: "b", 2: "l"}, 1: {0: "b", 2: "s"}, 2: {0: "b", 2: "s"}}
SELF: dict[int, dict[int, str]] = {0: {0: "b", 2: "l"}, 1: {0: "b", 2: "l"}, 2: {0: "b", 2: "l"}}


def attend(**kwargs: Any) -> Any:
    return lambda q, k, v, mask=None: sdpa(q, k, v, mask, **kwargs)


class MultiHead(nn.Module):
    """nn.MultiheadAttention with what a user may give it."""

    def __init__(self, need_weights: bool, **kwargs: Any):
        super().__init__()
        self.net, self.need_weights = nn.MultiheadAttention(8, 2, **kwargs), need_weights

    def forward(self, x: torch.Tensor, padding: torch.Tensor | None = None) -> Any:
        out, weights = self.net(x, x, x, key_padding_mask=padding, need_weights=self.need_weights)
        return (out, weights) if self.need_weights else out


CASES = [
    Case("plain", attend(), qkv(2, 3, 5, 6), [qkv(1, 3, 2, 7), qkv(3, 3, 1, 1)], DYNAMIC, ALL),
    Case("value_size", attend(), qkv(2, 3, 5, 6, 4, 7), [qkv(1, 3, 2, 7, 4, 7)], DYNAMIC),
    Case("dynamic_size", attend(), qkv(2, 3, 5, 6), [qkv(1, 3, 2, 7, 9, 2)], "all"),
    Case("scale", attend(scale=0.3), qkv(2, 3, 5, 6), [qkv(1, 3, 2, 7)], DYNAMIC),
    Case("causal", attend(is_causal=True), qkv(2, 3, 5, 5), [qkv(1, 3, 2, 2), qkv(3, 3, 1, 1)], SELF, ALL[1:]),
    Case("causal_static", attend(is_causal=True), qkv(2, 3, 5, 5), (), None, ALL),
    Case("causal_longer_keys", attend(is_causal=True), qkv(2, 3, 3, 6), [qkv(1, 3, 2, 7), qkv(1, 3, 7, 2)], DYNAMIC, ALL[1:]),
    Case("causal_large", attend(is_causal=True), qkv(1, 1, 300, 300, 2, 2), (), None, (9, 11, 18)),
    Case("bool_mask", attend(), (*qkv(2, 3, 5, 6), bools(2, 1, 5, 6)), [(*qkv(1, 3, 2, 7), bools(1, 1, 2, 7))],
         DYNAMIC | {3: {0: "b", 2: "l", 3: "s"}}, ALL[1:]),
    Case("bool_mask_rank_2", attend(), (*qkv(2, 3, 5, 6), bools(5, 6)), [(*qkv(1, 3, 2, 7), bools(2, 7))], DYNAMIC | {3: {0: "l", 1: "s"}}),
    Case("float_mask", attend(), (*qkv(2, 3, 5, 6), added(2, 3, 5, 6)), [(*qkv(1, 3, 2, 7), added(1, 3, 2, 7))],
         DYNAMIC | {3: {0: "b", 2: "l", 3: "s"}}, ALL[1:]),
    Case("made_mask", lambda q, k, v, keep: sdpa(q, k, v, (1.0 - keep[:, None, None, :].float()) * -1e9),
         (*qkv(2, 3, 5, 6), torch.ones(2, 6, dtype=torch.int64)), [(*qkv(1, 3, 2, 7), torch.tensor([[1, 1, 0, 1, 0, 1, 1]]))],
         DYNAMIC | {3: {0: "b", 1: "s"}}),
    Case("shared_mask_of_one_row", attend(), (*qkv(2, 3, 5, 6), torch.tensor([[True] * 4 + [False] * 2, [False] * 6])[:, None, None]),
         [(*qkv(2, 3, 2, 7), bools(2, 1, 1, 7)), (*qkv(1, 3, 1, 7), bools(1, 1, 1, 7))], DYNAMIC | {3: {0: "b", 3: "s"}}, (9, 18, 23, 24, NEWEST)),
    Case("bool_mask_of_one_key", attend(), (*qkv(2, 3, 5, 6), bools(2, 1, 5, 1)), (), None, (18, 23, 24)),
    Case("float_mask_of_lowest", lambda q, k, v, keep: sdpa(q, k, v, torch.zeros(keep.shape).masked_fill(~keep, torch.finfo(torch.float32).min)),
         (*qkv(2, 3, 5, 6), bools(2, 1, 5, 6)), (), None, (18, 23, 24, NEWEST)),
    Case("float_mask_that_overflows", lambda q, k, v, a, b: sdpa(q, k, v, (a + b).float() * torch.finfo(torch.float32).min),
         (*qkv(2, 3, 2, 3), torch.tensor([[1, 1, 1], [0, 1, 1]]), torch.tensor([[1, 1, 1], [0, 0, 1]])), (), None, (18, 23)),
    Case("scale_below_0", attend(scale=-0.3), qkv(2, 3, 5, 6), (), None, (18, 23)),
    Case("empty_past", attend(), (*qkv(2, 3, 5, 6), bools(2, 1, 5, 6)), [(*qkv(1, 3, 1, 1), bools(1, 1, 1, 1))],
         DYNAMIC | {3: {0: "b", 2: "l", 3: "s"}}, (23, 24)),
    Case("half_bool_mask", attend(), (*(t.half() for t in qkv(2, 3, 5, 6)), bools(2, 1, 5, 6)), (), None, (18, 23)),
    Case("rank_2", attend(), (x(5, 4), x(6, 4), x(6, 4)), [(x(1, 4), x(2, 4), x(2, 4))], {0: {0: "l"}, 1: {0: "s"}, 2: {0: "s"}}),
    Case("rank_3", attend(is_causal=True), (x(2, 5, 4), x(2, 6, 4), x(2, 6, 4)), [(x(1, 2, 4), x(1, 3, 4), x(1, 3, 4))],
         {0: {0: "b", 1: "l"}, 1: {0: "b", 1: "s"}, 2: {0: "b", 1: "s"}}, ALL[1:]),
    Case("rank_5", attend(), (x(2, 3, 2, 5, 4), x(2, 3, 2, 6, 4), x(2, 3, 2, 6, 4)), (), None),
    Case("broadcast", attend(), (x(2, 3, 5, 4), x(1, 3, 6, 4), x(1, 3, 6, 4)), (), None),
    Case("half", attend(is_causal=True), tuple(t.half() for t in qkv(2, 3, 5, 5)), (), None),
    Case("double", attend(), tuple(t.double() for t in qkv(2, 3, 5, 6)), (), None, rtol=1e-9, atol=1e-12),
    Case("groups", attend(enable_gqa=True), (x(2, 6, 5, 4), x(2, 2, 7, 4), x(2, 2, 7, 4)), [(x(1, 6, 1, 4), x(1, 2, 3, 4),
         x(1, 2, 3, 4))], DYNAMIC, ALL),
    Case("groups_causal", attend(enable_gqa=True, is_causal=True), (x(2, 6, 5, 4), x(2, 2, 5, 4), x(2, 2, 5, 4)),
         [(x(1, 6, 2, 4), x(1, 2, 2, 4), x(1, 2, 2, 4))], SELF),
    Case("groups_mask", attend(enable_gqa=True), (x(2, 6, 5, 4), x(2, 2, 7, 4), x(2, 2, 7, 4), bools(2, 1, 5, 7)),
         [(x(1, 6, 1, 4), x(1, 2, 3, 4), x(1, 2, 3, 4), bools(1, 1, 1, 3))], DYNAMIC | {3: {0: "b", 2: "l", 3: "s"}}),
    Case("groups_mask_of_heads", attend(enable_gqa=True), (x(2, 6, 5, 4), x(2, 2, 7, 4), x(2, 2, 7, 4), bools(2, 6, 5, 7))),
    Case("groups_equal", attend(enable_gqa=True), qkv(2, 3, 5, 6), (), None),
    Case("flash", lambda q, k, v: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, is_causal=True), qkv(2, 3, 5, 5),
         (), None, (9, 18)),
    Case("multi_head", MultiHead(False), (x(5, 2, 8),), [(x(7, 1, 8),)], {0: {0: "t", 1: "b"}}, (9, 11, 18, NEWEST)),
    Case("multi_head_weights", MultiHead(True, batch_first=True), (x(2, 5, 8),), [(x(1, 7, 8),)], {0: {0: "b", 1: "t"}},
         (9, 11, 18, NEWEST)),
    Case("multi_head_padding", MultiHead(False, batch_first=True), (x(2, 3, 8), torch.tensor([[False, False, True], [False, True, True]])),
         [(x(1, 2, 8), torch.tensor([[True, False]]))], {0: {0: "b", 1: "t"}, 1: {0: "b", 1: "t"}}, (9, 11, 18, NEWEST)),
    Case("multi_head_extras", MultiHead(True, batch_first=True, add_bias_kv=True, add_zero_attn=True), (x(2, 5, 8),), [(x(1, 7, 8),)],
         {0: {0: "b", 1: "t"}}, (9, 18)),
    Case("encoder_layer", nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (x(2, 5, 8),), [(x(1, 7, 8),)], {0: {0: "b", 1: "t"}},
         (9, 11, 17, 18, NEWEST)),
    Case("decoder_layer", nn.TransformerDecoderLayer(8, 2, 16), (x(5, 2, 8), x(6, 2, 8)), [(x(2, 1, 8), x(3, 1, 8))],
         {0: {0: "t", 1: "b"}, 1: {0: "s", 1: "b"}}, (9, 18)),
]


@expand(CASES)
def test_attention(case: Case, opset: int) -> None:
    check(case, opset)


@pytest.mark.parametrize(("kwargs", "nodes"), [({}, 5), ({"is_causal": True}, 6)])
def test_nodes(kwargs: dict[str, Any], nodes: int) -> None:
    """Mul, Transpose, MatMul, (Add,) Softmax, MatMul."""
    program = onnxport.export(Attend(kwargs), qkv(2, 3, 5, 5), None)
    assert len(program.model_proto.graph.node) == nodes


@pytest.mark.parametrize(("opset", "one"), [(22, False), (23, True), (24, True), (25, False)])
def test_attention_where_onnx_runtime_has_a_kernel(opset: int, one: bool) -> None:
    args = (*qkv(2, 3, 5, 6), bools(2, 1, 5, 6))
    program = onnxport.export(lambda q, k, v, mask: sdpa(q, k, v, mask), args, None, opset_version=opset)
    assert [node.op_type for node in program.model_proto.graph.node].count("Attention") == one


def test_what_is_done_to_a_mask_is_done_once() -> None:
    def layers(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            q = sdpa(q, k, v, mask)
        return q

    program = onnxport.export(layers, (*qkv(2, 3, 5, 6), bools(2, 1, 5, 6)), None)
    assert len(program.model_proto.graph.node) == 6 + 3 * 6  # the keys are transposed once too


def expanded(x: torch.Tensor) -> torch.Tensor:
    """Each head twice, as transformers does it."""
    b, heads, length, size = x.shape
    return x[:, :, None].expand(b, heads, 2, length, size).reshape(b, heads * 2, length, size)


REPEATED = {"expanded": expanded, "interleaved": lambda x: x.repeat_interleave(2, dim=1), "indexed": lambda x: x[:, [0, 0, 1, 1]]}
OTHERS = {"tiled": lambda x: x.repeat(1, 2, 1, 1), "other_order": lambda x: x[:, [0, 1, 0, 1]], "uneven": lambda x: x[:, [0, 0, 0, 1]]}


@pytest.mark.parametrize("opset", [11, 18, 23])
@pytest.mark.parametrize("name", [*REPEATED, *OTHERS])
def test_heads_that_are_repeated(name: str, opset: int) -> None:
    """Keys and values are not copied for the queries that share them."""
    more = {**REPEATED, **OTHERS}[name]
    attend = lambda q, k, v, mask: sdpa(q, more(k), more(v), mask)
    inputs = lambda b, length, keys: (x(b, 4, length, 4), x(b, 2, keys, 4), x(b, 2, keys, 4), bools(b, 1, length, keys))
    check(Case(name, attend, inputs(2, 3, 5), [inputs(1, 1, 7), inputs(3, 2, 2)], DYNAMIC | {3: {0: "b", 2: "l", 3: "s"}}), opset)
    axes = {"q": {0: "b", 2: "l"}, "k": {0: "b", 2: "s"}, "v": {0: "b", 2: "s"}, "mask": {0: "b", 2: "l", 3: "s"}}
    program = onnxport.export(attend, inputs(2, 3, 5), None, opset_version=opset, dynamic_axes=axes)
    copies = {"Expand", "Gather", "Tile"} & {node.op_type for node in program.model_proto.graph.node}
    assert bool(copies) == (name in OTHERS)


class Attend(nn.Module):
    """A module around the function."""

    def __init__(self, kwargs: dict[str, Any]):
        super().__init__()
        self.kwargs = kwargs

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return sdpa(q, k, v, **self.kwargs)


def test_whether_it_is_causal_may_depend_on_a_size() -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=q.shape[-2] > 1)

    three = (torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4))
    one = (torch.randn(1, 2, 1, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4))
    more = (torch.randn(1, 2, 4, 4), torch.randn(1, 2, 6, 4), torch.randn(1, 2, 6, 4))
    check(Case("causal_by_size", attend, three, [one, more], {0: {2: "t"}, 1: {2: "s"}, 2: {2: "s"}}), 18)
