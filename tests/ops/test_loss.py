"""Losses and distances: every reduction, weights, ignored classes, broadcasting, dynamic batches and classes."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.ops.harness import NEWEST, Case, check, expand


def r(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


def u(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def k(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(sum(shape)))


def signs(*shape: int) -> torch.Tensor:
    return k(2, *shape).float() * 2 - 1


PAIR = (r(3, 4), r(3, 4, seed=1))
PAIRS = [(r(5, 2), r(5, 2, seed=1)), (r(1, 1), r(1, 1, seed=1) * 3)]
EXTRA = (7, 9, 11, 13, 15, 18, NEWEST)
W = torch.tensor([0.5, 2.0, 1.0, 0.25, 3.0])
N = {0: {0: "n"}, 1: {0: "n"}}
IGNORED = torch.tensor([1, -100, 3])
SPEECH, TRANSCRIPT = r(12, 3, 6).log_softmax(2), torch.tensor([[1, 2, 2, 5], [3, 3, 3, 3], [4, 1, -1, -1]])
HEARD, SAID = torch.tensor([12, 9, 5]), torch.tensor([4, 3, 2])
OTHER_SPEECH = [(r(7, 2, 6).log_softmax(2), torch.tensor([[5, 5], [1, 2]]), torch.tensor([7, 0]), torch.tensor([2, 0])),
                (r(1, 1, 6).log_softmax(2), torch.tensor([[3, 4, 1, 1]]), torch.tensor([1]), torch.tensor([4]))]
SPEECH_AXES = {0: {0: "time", 1: "n"}, 1: {0: "n", 1: "s"}, 2: {0: "n"}, 3: {0: "n"}}
ROW = torch.tensor([1, 2, 2, 5, 3, 3, 3, 4, 1])


def ctc(reduction: str, **options: bool) -> object:
    return lambda x, t, n, m: F.ctc_loss(x, t, n, m, reduction=reduction, **options)


CASES = [
    *(Case(f"{name}_{reduction}", lambda a, b, f=function, how=reduction: f(a, b, reduction=how), PAIR, PAIRS, "all", EXTRA)
      for name, function in (("mse", F.mse_loss), ("l1", F.l1_loss), ("smooth_l1", F.smooth_l1_loss), ("huber", F.huber_loss))
      for reduction in ("none", "mean", "sum")),
    *(Case(f"ctc_{reduction}", ctc(reduction), (SPEECH, TRANSCRIPT, HEARD, SAID), OTHER_SPEECH, SPEECH_AXES, (9, 18, NEWEST))
      for reduction in ("none", "mean", "sum")),
    Case("ctc_row", ctc("none"), (SPEECH, ROW, HEARD, SAID), [(SPEECH, ROW[:6], HEARD, torch.tensor([1, 5, 0])), (SPEECH, ROW[:0], HEARD, SAID * 0)],
         {0: {0: "time", 1: "n"}, 1: {0: "labels"}, 2: {0: "n"}, 3: {0: "n"}}, (9, 11, 18)),
    Case("ctc_finite", ctc("sum", zero_infinity=True), (SPEECH[:3], TRANSCRIPT, HEARD.clamp(max=3), SAID), opsets=(18,)),
    Case("ctc_numbers", lambda x, t: F.ctc_loss(x, t, (12, 9, 5), (4, 3, 2), blank=0), (SPEECH, TRANSCRIPT.int()), opsets=(18,)),
    Case("ctc_blank_double", lambda x, t: F.ctc_loss(x, t, (12, 12, 12), (2, 1, 2), blank=5, reduction="none"),
         (SPEECH.double(), torch.tensor([[1, 1], [4, 2], [0, 3]])), opsets=(18,)),
    Case("ctc_single", lambda x, t: F.ctc_loss(x, t, torch.tensor(12), torch.tensor(4), reduction="none"), (SPEECH[:, 0], TRANSCRIPT[0]), opsets=(18,)),
    Case("smooth_l1_beta", lambda a, b: (F.smooth_l1_loss(a, b, beta=0.3), F.smooth_l1_loss(a, b, beta=0.0)), PAIR, PAIRS, "all"),
    Case("huber_delta", lambda a, b: F.huber_loss(a, b, delta=0.3), PAIR, PAIRS, "all"),
    Case("mse_mixed", F.mse_loss, (r(3, 4), r(3, 4, dtype=torch.float64))),
    Case("mse_half", F.mse_loss, (r(3, 4, dtype=torch.float16), r(3, 4, seed=1, dtype=torch.float16))),
    Case("mse_scalar", F.mse_loss, (r(), r(seed=1))),
    Case("bce", lambda a, b: (F.binary_cross_entropy(a, b), F.binary_cross_entropy(a, b, reduction="none")),
         (u(3, 4), u(4, 3).t().contiguous()),
         [(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 0.0]]))], "all", EXTRA),
    Case("bce_weight", lambda a, b, w: F.binary_cross_entropy(a, b, w), (u(3, 4), u(3, 4), u(3, 4) * 2)),
    Case("bce_logits", lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="sum"), (r(3, 4) * 9, u(3, 4)),
         [(torch.tensor([[80.0, -80.0]]), torch.tensor([[0.0, 1.0]]))], "all", EXTRA),
    Case("bce_logits_weight", lambda a, b: F.binary_cross_entropy_with_logits(a, b, weight=W[:4], pos_weight=W[1:]), (r(3, 4), u(3, 4))),
    Case("soft_margin", F.soft_margin_loss, (r(3, 4), signs(3, 4)), [(r(5, 2), signs(5, 2))], "all"),
    Case("kl", lambda a, b: (F.kl_div(a, b, reduction="batchmean"), F.kl_div(a, b.log(), reduction="none", log_target=True)),
         (r(3, 4), u(3, 4))),
    Case("kl_zero", lambda a, b: F.kl_div(a, b, reduction="none"), (r(1, 3), torch.tensor([[0.0, 0.5, 1.0]])), opsets=(9, 18)),
    Case("poisson", lambda a, b: (F.poisson_nll_loss(a, b), F.poisson_nll_loss(a, b, full=True),
                                  F.poisson_nll_loss(a.exp(), b, log_input=False)),
         (r(3, 4), u(3, 4) * 5)),
    Case("nll", lambda a, t: F.nll_loss(a, t), (r(3, 5), k(5, 3)), [(r(7, 5), k(5, 7)), (r(3, 5), IGNORED)], N, EXTRA,
         {7: "needs opset 9"}),
    Case("nll_weight", lambda a, t: F.nll_loss(a, t, W), (r(3, 5), k(5, 3)), [(r(7, 5), k(5, 7)), (r(3, 5), IGNORED)], N),
    Case("nll_ignore", lambda a, t: (F.nll_loss(a, t, W, ignore_index=2, reduction="none"), F.nll_loss(a, t, ignore_index=2)),
         (r(3, 5), k(5, 3)),
         [(r(7, 5), k(5, 7)), (r(3, 5), torch.tensor([2, 2, 1]))], N),
    Case("nll_2d", lambda a, t: F.nll_loss(a, t, W), (r(2, 5, 3, 4), k(5, 2, 3, 4)), [(r(1, 5, 2, 2), k(5, 1, 2, 2))],
         {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "n", 1: "h", 2: "w"}}),
    Case("nll_dynamic_classes", lambda a, t: F.nll_loss(a, t, ignore_index=1), (r(3, 5), k(5, 3)), [(r(7, 3), k(3, 7))],
         {0: {0: "n", 1: "c"}, 1: {0: "n"}}),
    Case("nll_single", lambda a, t: F.nll_loss(a, t), (r(5), k(5))),
    Case("ce", lambda a, t: F.cross_entropy(a, t), (r(3, 5), k(5, 3)), [(r(7, 5), k(5, 7)), (r(3, 5), IGNORED)], N, EXTRA,
         {7: "needs opset 9"}),
    Case("ce_none_2d", lambda a, t: F.cross_entropy(a, t, W, reduction="none"), (r(2, 5, 3, 4), k(5, 2, 3, 4))),
    Case("ce_smooth", lambda a, t: F.cross_entropy(a, t, label_smoothing=0.1), (r(3, 5), k(5, 3)),
         [(r(7, 5), k(5, 7)), (r(3, 5), IGNORED)], N),
    Case("ce_smooth_weight", lambda a, t: tuple(F.cross_entropy(a, t, W, label_smoothing=0.1, ignore_index=2, reduction=how)
                                                for how in ("none", "mean", "sum")), (r(3, 5), k(5, 3)), [(r(7, 5), k(5, 7))], N),
    Case("ce_soft", lambda a, t: tuple(F.cross_entropy(a, t, W, label_smoothing=0.1, reduction=how) for how in ("none", "mean", "sum")),
         (r(3, 5), u(3, 5)), [(r(7, 5), u(7, 5))], N),
    Case("ce_soft_2d", lambda a, t: F.cross_entropy(a, t), (r(2, 5, 3, 4), u(2, 5, 3, 4)), [(r(1, 5, 6, 2), u(1, 5, 6, 2))],
         {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "n", 2: "h", 3: "w"}}),
    Case("ce_single", lambda a, t: F.cross_entropy(a, t, label_smoothing=0.2), (r(5), k(5))),
    Case("multi_margin", lambda a, t: (F.multi_margin_loss(a, t), F.multi_margin_loss(a, t, p=2, margin=0.5, weight=W, reduction="none")),
         (r(3, 5), k(5, 3)), [(r(7, 5), k(5, 7))], N),
    Case("multilabel_margin", lambda a, t: (*(F.multilabel_margin_loss(a, t, reduction=how) for how in ("none", "mean", "sum")),
                                            *torch.ops.aten.multilabel_margin_loss_forward(a, t, 2)),
         (r(3, 5), k(6, 3, 5) - 1), [(r(7, 8), k(6, 7, 8) - 1), (r(2, 3), torch.tensor([[-1, 2, 2], [2, 2, 0]]))],
         {0: {0: "n", 1: "c"}, 1: {0: "n", 1: "c"}}),
    Case("multilabel_margin_vector", lambda a, t: F.multilabel_margin_loss(a, t), (r(4), torch.tensor([2, 0, -1, 1]))),
    Case("cosine", lambda a, b: F.cosine_similarity(a, b, dim=-1), PAIR, PAIRS, "all", EXTRA),
    Case("cosine_0", lambda a, b: F.cosine_similarity(a, b, dim=0, eps=0.5), (r(3, 4), r(4))),
    Case("cosine_scalars", lambda a, b: F.cosine_similarity(a, b, dim=0), (r(), r(seed=1))),
    Case("integers", lambda a, b: (F.pairwise_distance(a, b), F.cosine_embedding_loss(a, b, a[:, 0] * 0 + 1), F.poisson_nll_loss(a, b),
                                   F.margin_ranking_loss(a, b, b, margin=0.5)), (k(5, 3, 4), k(7, 3, 4))),
    Case("cosine_repeated", lambda a, b: F.cosine_similarity(a, b, dim=1), (r(3, 4), r(3, 1))),
    Case("cosine_double", lambda a, b: F.cosine_similarity(a, b), (r(3, 4, dtype=torch.float64), r(3, 4, seed=1))),
    *(Case(f"distance_{p}", lambda a, b, p=p: F.pairwise_distance(a, b, p=p, keepdim=p == 1.0), PAIR, PAIRS, "all")
      for p in (0.0, 1.0, 2.0, 3.5, float("inf"))),
    Case("distance_vector", lambda a, b: F.pairwise_distance(a, b), (r(3, 4), r(4))),
    Case("cosine_embedding", lambda a, b, t: F.cosine_embedding_loss(a, b, t, margin=0.1), (*PAIR, signs(3)),
         [(r(5, 2), r(5, 2, seed=1), signs(5))],
         {0: {0: "n", 1: "d"}, 1: {0: "n", 1: "d"}, 2: {0: "n"}}),
    Case("hinge", lambda a, t: F.hinge_embedding_loss(a, t, margin=0.7), (r(3, 4), signs(3, 4)), [(r(5, 2), k(3, 5, 2) - 1.0)], "all"),
    Case("ranking", lambda a, b, t: F.margin_ranking_loss(a, b, t, margin=0.2), (r(4), r(4, seed=1), signs(4))),
    Case("triplet", lambda a, b, c: F.triplet_margin_loss(a, b, c, swap=True), (*PAIR, r(3, 4, seed=2)), [(*PAIRS[0], r(5, 2, seed=2))],
         "all"),
    Case("triplet_p", lambda a, b, c: F.triplet_margin_loss(a, b, c, p=1, reduction="none"), (*PAIR, r(3, 4, seed=2))),
]

@expand(CASES)
def test_loss(case: Case, opset: int) -> None:
    check(case, opset)
