"""embedding, bags of embeddings, one-hot vectors."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from tests.ops.harness import Case, check, expand

torch.manual_seed(0)
TABLE = torch.randn(7, 3)
IDS = torch.tensor([[1, 6, 0], [2, 2, 5]])
FLAT = torch.tensor([1, 6, 0, 2, 2, 5, 0, 3])
STARTS = torch.tensor([0, 3, 3, 7])
AT_SUMS = (9, 11, 13, 16, 18, 28)
OTHER_BAGS = [(torch.tensor([3, 3, 4]), torch.tensor([0, 2])), (torch.tensor([3]), torch.tensor([0])),
(torch.tensor([1, 2]), torch.tensor([0, 0, 2, 2, 2]))]
BAG_AXES = {0: {0: "ids"}, 1: {0: "bags"}}


def bag(mode: str, **options: object) -> nn.Module:
    """A bag with the table as its weight."""
    return nn.EmbeddingBag(7, 3, mode=mode, _weight=TABLE.clone(), **options)  # type: ignore[arg-type]


def scaled_weight(indices: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """What max_norm leaves of the weight."""
    weight = weight.clone()
    functional.embedding(indices, weight, max_norm=0.5)
    return weight


EMBEDDINGS = [
    Case("embedding", nn.Embedding(7, 3), (IDS,), [(IDS[:1, :1],), (torch.randint(7, (4, 5)),)], "all", opsets=(7, 8, 9, 11, 13, 18, 28)),
    Case("embedding_weight", lambda i, w: functional.embedding(i, w, padding_idx=2), (IDS, TABLE), [(IDS[:1], TABLE[:, :1])], "all"),
    Case("embedding_int32", nn.Embedding(7, 3), (IDS.int(),)),
    Case("embedding_scalar", nn.Embedding(7, 3), (torch.tensor(3),)),
    Case("embedding_half", nn.Embedding(7, 3).half(), (IDS,)),
    # Each run in PyTorch scales the weight itself, once and for all; the file scales what it reads.
    Case("embedding_max_norm", nn.Embedding(7, 3, max_norm=1.0), (IDS,), [(IDS[:1] * 0 + 5,)], {0: {0: "n"}}, (9, 11, 18), options={"mutations": "ignore"}),
    Case("embedding_max_norm_weight", lambda i, w: functional.embedding(i, w.clone(), max_norm=0.5, norm_type=1.0), (IDS, torch.randn(7, 3)),
         [(IDS[:1], torch.randn(7, 3).half().float() / 9)], {0: {0: "n"}}, (9, 18)),
    Case("embedding_max_norm_changes", scaled_weight, (IDS, torch.randn(7, 3)), opsets=(18,)),
    Case("one_hot", lambda i: functional.one_hot(i, 7), (IDS,), [(IDS[:1, :1],)], "all"),
    Case("one_hot_scalar", lambda i: functional.one_hot(i, 7), (torch.tensor(3),), [(torch.tensor(6),)]),
    Case("one_hot_by_size", lambda i, x: functional.one_hot(i, x.shape[0]), (IDS, torch.randn(7)), [(IDS, torch.randn(9))], {1: {0: "n"}},
         opsets=(11, 18)),
]

BAGS = [
    *[Case(f"bag_{m}", bag(m), (FLAT, STARTS), OTHER_BAGS, BAG_AXES,
           opsets=AT_SUMS) for m in ("sum", "mean", "max")],
    *[Case(f"bag_rows_{m}", bag(m), (IDS,), [(torch.randint(7, (5, 4)),), (IDS[:1, :1],)], {0: {0: "n", 1: "k"}},
           opsets=(11, 18, 28)) for m in ("sum", "mean", "max")],
    *[Case(f"bag_rows_static_{m}", bag(m), (IDS,), [(IDS.flip(1),)], opsets=(7, 9, 13, 28)) for m in ("sum", "mean", "max")],
    *[Case(f"bag_last_offset_{m}", bag(m, include_last_offset=True), (FLAT, torch.tensor([0, 3, 3, 8])),
           [(torch.tensor([3, 3, 4]), torch.tensor([0, 2, 3]))], BAG_AXES, opsets=(18, 28)) for m in ("sum", "mean", "max")],
    *[Case(f"bag_padding_{m}", bag(m, padding_idx=2), (FLAT, STARTS), [*OTHER_BAGS, (torch.tensor([2, 2, 4]), torch.tensor([0, 2]))],
           BAG_AXES, opsets=(18, 28)) for m in ("sum", "mean", "max")],
    Case("bag_padding_last", lambda i, o, w: functional.embedding_bag(i, w, o, padding_idx=-1), (FLAT, STARTS, TABLE), opsets=(18,)),
    Case("bag_weights", lambda i, o, f: functional.embedding_bag(i, TABLE, o, mode="sum", per_sample_weights=f),
         (FLAT, STARTS, torch.randn(8)),
         [(torch.tensor([3, 3, 4]), torch.tensor([0, 2]), torch.randn(3))], {0: {0: "ids"}, 1: {0: "bags"}, 2: {0: "ids"}},
           opsets=AT_SUMS),
    Case("bag_rows_weights", lambda i, f: functional.embedding_bag(i, TABLE, mode="sum", per_sample_weights=f), (IDS, torch.randn(2, 3)),
         [(IDS[:1], torch.randn(1, 3))], {0: {0: "n"}, 1: {0: "n"}}, opsets=(11, 13, 28)),
    Case("bag_double", lambda i, o: functional.embedding_bag(i, TABLE.double(), o, mode="mean"), (FLAT, STARTS), opsets=(18,)),
    Case("bag_int32", bag("mean"), (FLAT.int(), STARTS.int()), opsets=(18,)),
]


@expand(EMBEDDINGS + BAGS)
def test_embedding(case: Case, opset: int) -> None:
    check(case, opset)
