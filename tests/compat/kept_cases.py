"""Functions whose operators are kept as nodes, with inputs of any size `n`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

x = torch.randn
Case = tuple[str, Callable[..., Any], Callable[[int], tuple[torch.Tensor, ...]]]


def i(*sizes: int) -> torch.Tensor:
    return torch.randint(0, 2, sizes)


def positive(*sizes: int) -> torch.Tensor:
    return torch.rand(sizes) + 0.1


def written(a: torch.Tensor) -> torch.Tensor:
    a = a.clone()
    a[:, 1] = 0
    a[0] += 2
    return a


ATTENTION = nn.MultiheadAttention(8, 2).eval()

CASES: list[Case] = [
    ("relu", lambda a: torch.relu(a), lambda n: (x(n, 3),)),
    ("add alpha", lambda a, b: torch.add(a, b, alpha=2), lambda n: (x(n, 3), x(n, 3))),
    ("add scalar", lambda a: a + 1, lambda n: (x(n, 3),)),
    ("mul float", lambda a: a * 0.1, lambda n: (x(n, 3).double(),)),
    ("cat", lambda a, b: torch.cat([a, b], 1), lambda n: (x(n, 3), x(n, 2))),
    ("stack", lambda a, b: torch.stack([a, b], 0), lambda n: (x(n, 3), x(n, 3))),
    ("sum dtype", lambda a: a.sum(1, dtype=torch.float64), lambda n: (x(n, 3),)),
    ("to", lambda a: a.to(torch.int32), lambda n: (x(n, 3),)),
    ("triu", lambda a: torch.triu(a) * a, lambda n: (x(n, n),)),
    ("topk", lambda a: torch.topk(a, 2), lambda n: (x(n, 5),)),
    ("topk one", lambda a: torch.topk(a, 2)[1], lambda n: (x(n, 5),)),
    ("max dim", lambda a: a.max(1), lambda n: (x(n, 5),)),
    ("split", lambda a: torch.split(a, 2, 1), lambda n: (x(n, 5),)),
    ("chunk", lambda a: a.chunk(2, 1)[1] + 1, lambda n: (x(n, 6),)),
    ("unbind", lambda a: sum(a.unbind(1)), lambda n: (x(n, 3),)),
    ("view", lambda a: a.reshape(a.shape[0] * 3), lambda n: (x(n, 3),)),
    ("slice", lambda a: a[1:, ::2], lambda n: (x(n, 3),)),
    ("index", lambda a, i: a[:, i], lambda n: (x(n, 3), i(4))),
    ("index2", lambda a, i, j: a[i, j], lambda n: (x(n, 3), i(4), i(4))),
    ("index mask", lambda a: a[a > 0], lambda n: (x(n, 3),)),
    ("index mixed", lambda a, i: a[:, i, :, i], lambda n: (x(n, 3, 2, 4), i(3))),
    ("index_put", lambda a, v: torch.index_put(a, [torch.tensor([0, 1]), torch.tensor([1, 2])], v, accumulate=True), lambda n: (x(n, 3), x(2))),
    ("setitem", lambda a: written(a), lambda n: (x(n, 3),)),
    ("linear", nn.Linear(3, 4), lambda n: (x(n, 3),)),
    ("conv bn", nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)), lambda n: (x(n, 3, 8, 8),)),
    ("conv nobias", nn.Conv2d(3, 4, 3, bias=False), lambda n: (x(n, 3, 8, 8),)),
    ("layer_norm", nn.LayerNorm(3), lambda n: (x(n, 3),)),
    ("layer_norm na", nn.LayerNorm(3, elementwise_affine=False), lambda n: (x(n, 3),)),
    ("lstm", nn.LSTM(3, 4, 2, bidirectional=True), lambda n: (x(n, 2, 3),)),
    ("gru", nn.GRU(3, 4), lambda n: (x(n, 2, 3),)),
    ("mha", lambda q: ATTENTION(q, q, q)[0], lambda n: (x(n, 2, 8),)),
    ("embedding", nn.Embedding(5, 3), lambda n: (i(n, 4),)),
    ("embeddingbag", nn.EmbeddingBag(5, 3), lambda n: (i(n, 4),)),
    ("gelu tanh", lambda a: F.gelu(a, approximate="tanh"), lambda n: (x(n, 3),)),
    ("softmax", lambda a: a.softmax(-1), lambda n: (x(n, 3),)),
    ("clamp", lambda a: a.clamp(-0.5), lambda n: (x(n, 3),)),
    ("clamp t", lambda a, b: a.clamp(max=b), lambda n: (x(n, 3), x(3))),
    ("interp", lambda a: F.interpolate(a, scale_factor=2.0, mode="bilinear"), lambda n: (x(n, 3, 4, 4),)),
    ("interp size", lambda a: F.interpolate(a, size=(7, 5), mode="nearest"), lambda n: (x(n, 3, 4, 4),)),
    ("grid", lambda a, g: F.grid_sample(a, g, align_corners=False), lambda n: (x(n, 3, 4, 4), x(n, 2, 2, 2))),
    ("einsum", lambda a, b: torch.einsum("ij,kj->ik", a, b), lambda n: (x(n, 3), x(4, 3))),
    ("pad", lambda a: F.pad(a, (1, 2), value=0.5), lambda n: (x(n, 3),)),
    ("pad reflect", lambda a: F.pad(a, (1, 2), mode="reflect"), lambda n: (x(n, 3, 4),)),
    ("arange", lambda a: torch.arange(a.shape[0]) + a.sum(), lambda n: (x(n, 3),)),
    ("zeros", lambda a: torch.zeros(a.shape[0], 2) + a[:, :2], lambda n: (x(n, 3),)),
    ("full", lambda a: torch.full((a.shape[0], 2), 0.5, dtype=torch.float64) + a[:, :2], lambda n: (x(n, 3),)),
    ("ones_like", lambda a: torch.ones_like(a, dtype=torch.int64) + a, lambda n: (x(n, 3),)),
    ("expand", lambda a: a.unsqueeze(1).expand(-1, 4, -1) + 1, lambda n: (x(n, 3),)),
    ("permute", lambda a: a.permute(1, 0).contiguous() * 2, lambda n: (x(n, 3),)),
    ("where", lambda a: torch.where(a > 0, a, -1.0), lambda n: (x(n, 3),)),
    ("gather", lambda a, i: a.gather(1, i), lambda n: (x(n, 3), i(n, 2))),
    ("scatter", lambda a, i: a.scatter_add(1, i, torch.ones_like(a)), lambda n: (x(n, 3), i(n, 2))),
    ("cumsum", lambda a: a.cumsum(1), lambda n: (x(n, 3),)),
    ("sort", lambda a: a.sort(1, descending=True), lambda n: (x(n, 3),)),
    ("norm", lambda a: torch.linalg.vector_norm(a, 2, dim=1), lambda n: (x(n, 3),)),
    ("svd", lambda a: torch.linalg.svdvals(a), lambda n: (x(n, 3),)),
    ("qr", lambda a: torch.linalg.qr(a @ a.T + 5 * torch.eye(a.shape[0]))[1].abs(), lambda n: (x(n, 3),)),
    ("eigvals", lambda a: torch.linalg.eigvalsh(a @ a.T), lambda n: (x(n, 3),)),
    ("zeta", lambda a, b: torch.special.zeta(a.relu() + 2, b) * 2, lambda n: (x(n, 3), positive(n, 3))),
    ("bessel", lambda a: torch.special.bessel_j0(a) + 1, lambda n: (x(n, 3),)),
    ("airy", lambda a: torch.special.airy_ai(a), lambda n: (x(n, 3),)),
    ("scaled_modified", lambda a: torch.special.scaled_modified_bessel_k1(a.abs() + 1), lambda n: (x(n, 3),)),
    ("unique", lambda a: torch.unique(a), lambda n: (i(n, 3),)),
    ("nonzero", lambda a: torch.nonzero(a), lambda n: (i(n, 3),)),
    ("bucketize", lambda a: torch.bucketize(a, torch.tensor([-1.0, 0.0, 1.0])), lambda n: (x(n, 3),)),
    ("histc", lambda a: torch.histc(a, 4, -1, 1), lambda n: (x(n, 3),)),
    ("meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="ij"), lambda n: (x(n), x(3))),
    ("std", lambda a: a.std(1), lambda n: (x(n, 3),)),
    ("tensordot", lambda a, b: torch.tensordot(a, b, dims=1), lambda n: (x(n, 3), x(3, 2))),
    ("bf16", lambda a: (a.bfloat16() * 1.5).float(), lambda n: (x(n, 3),)),
    ("bool", lambda a: (a > 0) & (a < 1), lambda n: (x(n, 3),)),
    ("addmm", lambda a, b: torch.addmm(a, a, b, beta=0.3, alpha=0.7), lambda n: (x(n, 3), x(3, 3))),
    ("sdpa", lambda a: F.scaled_dot_product_attention(a, a, a, scale=0.4), lambda n: (x(n, 2, 5, 4),)),
    ("roll", lambda a: a.roll((1, -1), (0, 1)), lambda n: (x(n, 3),)),
    ("fill pad_sequence", lambda a, b: nn.utils.rnn.pad_sequence([a, b]), lambda n: (x(n, 3), x(2, 3))),
    ("lu", lambda a: torch.linalg.lu(a)[2], lambda n: (x(n, 3),)),
    ("lstsq solve", lambda a: torch.linalg.solve(a @ a.T + torch.eye(a.shape[0]) * 3, a), lambda n: (x(n, 3),)),
    ("block_diag", lambda a, b: torch.block_diag(a, b), lambda n: (x(n, 3), x(2, 2))),
    ("cartesian", lambda a, b: torch.cartesian_prod(a, b), lambda n: (x(n), x(2))),
    ("item", lambda a: a * a.shape[0] / 7, lambda n: (x(n, 3),)),
    ("quantile", lambda a: a.quantile(0.3, 1), lambda n: (x(n, 3),)),
    ("combinations", lambda a: torch.combinations(a[0]), lambda n: (x(n, 3),)),
    ("logcumsumexp", lambda a: a.logcumsumexp(1), lambda n: (x(n, 3),)),
    ("complex", lambda a: torch.fft.rfft(a).abs(), lambda n: (x(n, 4),)),
    ("ctc", lambda a: F.ctc_loss(a.log_softmax(-1), torch.tensor([[1, 2]]), [4], [2]), lambda n: (x(4, 1, 3),)),
]
