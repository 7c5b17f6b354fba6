"""Normalisation: with and without weights and statistics, every rank, dynamic sizes, dtypes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.ops.harness import NEWEST, Case, check, expand


def r(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))) * 3 + 1).to(dtype)


def filled(module: nn.Module) -> nn.Module:
    """Weights and statistics that are not those of a new module."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for v in (*module.parameters(), *module.buffers()):
            if v.is_floating_point():
                v.copy_(torch.rand(v.shape, generator=generator) + 0.5)
    return module


HW = {0: {0: "n", 2: "h", 3: "w"}}
IMAGES = [(r(1, 4, 6, 7),), (r(3, 4, 1, 2),)]
EXTRA = (7, 9, 11, 13, 14, 15, 17, 18, 21, NEWEST)
W, B = torch.tensor([0.5, 2.0, -1.0, 0.25]), torch.tensor([1.0, 0.0, -2.0, 3.0])
D = torch.float64


def _written(function: Any, x: torch.Tensor, *more: Any) -> Any:
    """The results of a batch norm, and what it writes into its running statistics."""
    mean, variance = B * 1, W.abs() + 1
    results = function(x, W, B, mean, variance, *more, 0.3, 1e-3)
    return (*results[:1], mean, variance)


CASES = [
    Case("batch", filled(nn.BatchNorm2d(4)), (r(2, 4, 3, 5),), IMAGES, HW, EXTRA),
    Case("batch_plain", filled(nn.BatchNorm2d(4, affine=False)), (r(2, 4, 3, 5),), IMAGES, HW),
    Case("batch_2d", filled(nn.BatchNorm1d(4)), (r(2, 4),), [(r(5, 4),)], {0: {0: "n"}}, EXTRA),
    Case("batch_3d_5d", lambda x, y: (F.batch_norm(x, B, W.abs(), W, B), F.batch_norm(y, B, W.abs(), W, B, eps=0.1)),
         (r(2, 4, 3), r(2, 4, 2, 3, 2))),
    Case("batch_double", lambda x: F.batch_norm(x, W.double(), W.abs().double(), W.double(), B.double()), (r(2, 4, 3, dtype=D),),
         rtol=1e-10, atol=1e-10),
    Case("batch_half", lambda x: F.batch_norm(x, W, W.abs() + 1, W, B), (r(2, 4, 3, dtype=torch.float16),), opsets=EXTRA),
    Case("batch_own_statistics", nn.BatchNorm2d(4, track_running_stats=False), (r(2, 4, 3, 5),), IMAGES, HW, EXTRA),
    Case("batch_new_statistics_half", lambda x: torch.ops.aten._batch_norm_with_update(x, W.half(), B.half(), B.half() * 1, W.abs().half(), 0.3, 1e-3)[:3],
         (r(2, 4, 3, 5).half(),), opsets=(13, 18)),
    Case("batch_training", lambda x: F.batch_norm(x, None, None, W, B, training=True), (r(2, 4, 3, 5),), IMAGES, HW),
    Case("native_batch", lambda x: torch.native_batch_norm(x, W, B, None, None, True, 0.1, 1e-3), (r(2, 4, 3, 5),), IMAGES, HW),
    Case("native_batch_half", lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-3), (r(2, 4, 3, dtype=torch.float16),)),
    *[Case(f"batch_new_statistics_{name}", lambda x, f=f, more=more: _written(f, x, *more), (r(2, 4, 3, 5),), IMAGES, HW)
      for name, f, more in (("legit", torch.ops.aten._native_batch_norm_legit, (True,)), ("legit_eval", torch.ops.aten._native_batch_norm_legit, (False,)),
                            ("with_update", torch.ops.aten._batch_norm_with_update, ()))],
    Case("native_batch_eval", lambda x: torch.native_batch_norm(x, W, B, B, W.abs(), False, 0.1, 1e-3)[0], (r(2, 4, 3, 5),), IMAGES, HW),
    Case("instance", filled(nn.InstanceNorm2d(4, affine=True)), (r(2, 4, 3, 5),), [(r(1, 4, 6, 7),), (r(3, 4, 2, 2),)], HW, EXTRA),
    Case("instance_plain", nn.InstanceNorm2d(4), (r(2, 4, 3, 5),), [(r(1, 4, 6, 7),)], HW),
    Case("instance_tracked", filled(nn.InstanceNorm2d(4, affine=True, track_running_stats=True)), (r(2, 4, 3, 5),), IMAGES, HW),
    Case("instance_1d_3d", lambda x, y: (F.instance_norm(x), F.instance_norm(y, weight=W, bias=B)), (r(2, 4, 3), r(2, 4, 2, 3, 2))),
    Case("instance_unbatched", nn.InstanceNorm2d(4), (r(4, 3, 5),), [(r(4, 6, 7),)], {0: {1: "h", 2: "w"}}),
    Case("instance_double", nn.InstanceNorm1d(4), (r(2, 4, 3, dtype=D),), rtol=1e-10, atol=1e-10),
    Case("instance_dynamic_channels", lambda x: F.instance_norm(x), (r(2, 4, 3, 5),), [(r(2, 3, 6, 5),)], {0: {1: "c", 2: "h"}}),
    Case("group", filled(nn.GroupNorm(2, 4)), (r(2, 4, 3, 5),), IMAGES, HW, EXTRA),
    Case("group_plain", nn.GroupNorm(2, 4, affine=False), (r(2, 4, 3, 5),), IMAGES, HW),
    Case("group_2d", filled(nn.GroupNorm(2, 4)), (r(2, 4),), [(r(5, 4),)], {0: {0: "n"}}),
    Case("group_3d_5d", lambda x, y: (F.group_norm(x, 2, W, B), F.group_norm(y, 2, W, B)), (r(2, 4, 3), r(2, 4, 2, 3, 2)),
         [(r(1, 4, 6), r(1, 4, 1, 5, 3))], {0: {0: "n", 2: "l"}, 1: {0: "m", 2: "d", 3: "h", 4: "w"}}),
    Case("group_one", lambda x: (F.group_norm(x, 1, W, B), F.group_norm(x, 4, W, B)), (r(2, 4, 3, 5),), [(r(1, 4, 6, 7),)], HW),
    Case("group_double", lambda x: F.group_norm(x, 2), (r(2, 4, 3, dtype=D),), rtol=1e-10, atol=1e-10),
    Case("group_half", lambda x: F.group_norm(x, 2), (r(2, 4, 3, dtype=torch.float16),)),
    Case("native_group", lambda x: torch.native_group_norm(x, W, B, 2, 4, 15, 2, 1e-3), (r(2, 4, 3, 5),)),
    Case("layer", filled(nn.LayerNorm(4)), (r(2, 3, 4),), [(r(1, 5, 4),), (r(0, 5, 4),)], {0: {0: "n", 1: "l"}}, EXTRA),
    Case("layer_plain", lambda x: F.layer_norm(x, (3, 4)), (r(2, 3, 4),), [(r(5, 3, 4),)], {0: {0: "n"}}, EXTRA),
    Case("layer_no_bias", filled(nn.LayerNorm((3, 4), bias=False)), (r(2, 3, 4),), [(r(5, 3, 4),)], {0: {0: "n"}}),
    Case("layer_dynamic", lambda x: F.layer_norm(x, x.shape[1:]), (r(2, 3, 4),), [(r(1, 5, 2),)], "all"),
    Case("layer_double", lambda x: F.layer_norm(x, (4,), W.double(), B.double()), (r(2, 3, 4, dtype=D),), rtol=1e-10, atol=1e-10),
    Case("layer_half", lambda x: F.layer_norm(x, (4,), W.half(), B.half()), (r(2, 3, 4, dtype=torch.float16),)),
    Case("native_layer", lambda x: torch.native_layer_norm(x, (4,), W, B, 1e-3), (r(2, 3, 4),), [(r(1, 5, 4),)], {0: {0: "n", 1: "l"}}),
    Case("rms", filled(nn.RMSNorm(4)), (r(2, 3, 4),), [(r(1, 5, 4),)], {0: {0: "n", 1: "l"}}, (*EXTRA, 23)),
    Case("rms_plain", lambda x: F.rms_norm(x, (3, 4), eps=0.1), (r(2, 3, 4),), [(r(5, 3, 4),)], {0: {0: "n"}}, (*EXTRA, 23)),
    Case("rms_double", lambda x: F.rms_norm(x, (4,), W.double()), (r(2, 3, 4, dtype=D),), opsets=(13, 23, NEWEST), rtol=1e-10, atol=1e-10),
    Case("rms_half", lambda x: F.rms_norm(x, (4,), W.half()), (r(2, 3, 4, dtype=torch.float16),), opsets=(13, 23, NEWEST)),
    Case("halves_of_large_numbers", lambda x: (F.rms_norm(x, (4,)), F.layer_norm(x, (4,))), (r(2, 3, 4, dtype=torch.float16) * 300,),
         opsets=(13, 17, 23, NEWEST)),
    Case("local_response", lambda x: F.local_response_norm(x, 3), (r(2, 4, 3, 5),), IMAGES, HW),
    Case("weight", nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (r(2, 4),)),
    Case("weight_of_input", lambda v, g: (torch._weight_norm(v, g, 0), torch._weight_norm(v, g.reshape(1, 1, 2), 2)),
         (r(2, 3, 2), r(2, 1, 1))),
    Case("normalize", lambda x: (F.normalize(x), F.normalize(x, p=1, dim=-1)), (r(2, 3, 4),), [(r(1, 5, 2),)], "all"),
]


@expand(CASES)
def test_normalization(case: Case, opset: int) -> None:
    check(case, opset)
