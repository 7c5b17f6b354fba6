"""Sampling, patches and boxes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor

import onnxport
from tests.ops.harness import NEWEST, Case, check, expand


def r(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


def boxes(count: int, size: float = 20.0, images: int | None = None) -> Tensor:
    start = torch.rand(count, 2, generator=torch.Generator().manual_seed(count)) * size
    made = torch.cat([start, start + torch.rand(count, 2, generator=torch.Generator().manual_seed(count + 1)) * size / 2], 1)
    return made if images is None else torch.cat([torch.arange(count).remainder(images).float()[:, None], made], 1)


def sample(mode: str, outside: str, corners: bool):
    return lambda x, grid: F.grid_sample(x, grid, mode=mode, padding_mode=outside, align_corners=corners)


GRID = {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "n", 1: "i", 2: "j"}}
OPSETS = (9, 11, 13, 16, 18, 20, NEWEST)
CASES = [
    *(Case(f"grid_{mode}_{outside}_{corners}", sample(mode, outside, corners), (r(2, 3, 5, 6), r(2, 4, 3, 2)),
           [(r(1, 3, 4, 7), r(1, 2, 2, 2) * 2)], GRID, (9, 13, 16, 20, NEWEST))
      for mode in ("bilinear", "nearest", "bicubic") for outside in ("zeros", "border", "reflection") for corners in (False, True)),
    *(Case(f"grid_3d_{mode}_{outside}_{corners}", sample(mode, outside, corners), (r(2, 3, 4, 5, 6), r(2, 4, 3, 2, 3) * 1.5),
           [(r(1, 3, 2, 1, 4), r(1, 2, 3, 1, 3))], {0: {0: "n", 2: "d", 3: "h", 4: "w"}, 1: {0: "n", 1: "i", 2: "j", 3: "k"}}, opsets)
      for mode, outside, corners, opsets in (("bilinear", "zeros", False, (9, 18, 20, NEWEST)), ("bilinear", "reflection", True, (18,)),
                                             ("nearest", "border", False, (13,)), ("bilinear", "border", True, (11,)))),
    Case("grid_double", sample("bicubic", "reflection", False), (r(2, 3, 5, 6).double(), r(2, 4, 3, 2).double()), opsets=(13, 18, NEWEST)),
    Case("grid_far", sample("bilinear", "zeros", False), (r(1, 2, 5, 6), torch.tensor([[[[1e20, 0.0], [-1e9, 3.0], [-1.0, 1.0]]]])), opsets=(13,)),
    *(Case(f"grid_nowhere_{mode}_{outside}", sample(mode, outside, False), (r(1, 2, 5, 6), r(1, 1, 3, 2)),
           [(r(1, 2, 5, 6), torch.tensor([[[[float("nan"), 0.0], [0.5, float("inf")], [0.5, -0.3]]]]))], opsets=(9, 13))
      for mode in ("bilinear", "nearest", "bicubic") for outside in ("zeros", "border", "reflection")),
    Case("grid_half", sample("bilinear", "border", True), (r(1, 2, 5, 6).half(), r(1, 4, 3, 2).half()), opsets=(13, 18)),
    *(Case(f"affine_{corners}", lambda theta, x, corners=corners: F.affine_grid(theta, list(x.shape), align_corners=corners),
           (r(2, 2, 3), r(2, 3, 4, 5)), [(r(1, 2, 3), r(1, 3, 1, 7))], {0: {0: "n"}, 1: {0: "n", 2: "h", 3: "w"}}, OPSETS)
      for corners in (False, True)),
    Case("affine_3d", lambda theta: F.affine_grid(theta, [2, 1, 3, 4, 5], align_corners=False), (r(2, 3, 4),)),
    Case("affine_double", lambda theta: F.affine_grid(theta, [2, 1, 3, 4], align_corners=True), (r(2, 2, 3, dtype=torch.float64),)),
    Case("unfold", lambda x: F.unfold(x, (3, 2), dilation=(2, 1), padding=(1, 2), stride=(2, 3)), (r(2, 3, 9, 8),), [(r(1, 3, 14, 5),)],
         {0: {0: "n", 2: "h", 3: "w"}}, (7, *OPSETS), {7: "needs opset 9"}),
    Case("unfold_static", lambda x: F.unfold(x, 3, stride=3), (r(2, 3, 9, 6),), opsets=(7, *OPSETS)),
    Case("unfold_channels", lambda x: F.unfold(x, 2), (r(2, 3, 4, 6),), [(r(1, 1, 4, 6),)], {0: {0: "n", 1: "c"}}),
    Case("unfold_unbatched", lambda x: F.unfold(x, 2), (r(3, 4, 6),), [(r(3, 2, 3),)], {0: {1: "h", 2: "w"}}),
    Case("unfold_int", lambda x: F.unfold(x, 2), (r(1, 3, 4, 6, dtype=torch.float64),)),
    Case("fold", lambda x: F.fold(x, (9, 8), (3, 2), dilation=(2, 1), padding=(1, 2), stride=(2, 3)), (r(2, 18, 16),), [(r(1, 18, 16),)],
         {0: {0: "n"}}, (7, *OPSETS)),
    Case("fold_unbatched", lambda x: F.fold(x, (4, 6), 2), (r(12, 15),)),
    Case("fold_back", lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1), (r(2, 3, 9, 8),), [(r(1, 3, 4, 5),)],
         {0: {0: "n", 2: "h", 3: "w"}}, (18, NEWEST)),
    Case("nms", lambda b, s: torchvision.ops.nms(b, s, 0.3), (boxes(40), torch.rand(40, generator=torch.Generator().manual_seed(1))),
         [(boxes(9), torch.rand(9, generator=torch.Generator().manual_seed(2))), (boxes(0), torch.rand(0))], {0: {0: "n"}, 1: {0: "n"}},
         OPSETS,
         {9: "needs opset 10"}),
    Case("roi_align", lambda x, b: torchvision.ops.roi_align(x, b, (3, 4), 0.5, 2), (r(2, 3, 16, 15), boxes(7, 40, 2)),
         [(r(1, 3, 20, 9), boxes(3, 60, 1)), (r(1, 3, 4, 4), boxes(5, 2, 1))], {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "k"}},
         (9, 11, 16, 18, 21, 22, NEWEST),
         {9: "needs opset 10"}),
    Case("roi_align_aligned", lambda x, b: torchvision.ops.roi_align(x, b, 3, 0.5, 2, aligned=True), (r(2, 3, 16, 15), boxes(7, 40, 2)),
         [(r(1, 3, 20, 9), boxes(3, 60, 1)), (r(1, 3, 4, 4), boxes(5, 2, 1))], {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "k"}},
         (11, 16, 18, 22, NEWEST),
         {11: "needs opset 16"}),
    Case("roi_align_adaptive", lambda x, b: torchvision.ops.roi_align(x, b, 3, 1.0), (r(2, 3, 16, 15), boxes(7, 10, 2)),
         opsets=(11, 18, NEWEST),
         refused={NEWEST: "up to opset 21"}),
    Case("roi_pool", lambda x, b: torchvision.ops.roi_pool(x, b, (3, 2), 0.5), (r(2, 3, 16, 15), boxes(7, 20, 2)),
         [(r(1, 3, 20, 19), boxes(3, 20, 1))],
         {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "k"}}, refused={NEWEST: "up to opset 21"}),
    Case("deform", lambda x, w, o, m: torchvision.ops.deform_conv2d(x, o, w, mask=m, padding=1),
         (r(2, 4, 6, 5), r(3, 4, 3, 3), r(2, 18, 6, 5), r(2, 9, 6, 5)),
         [(r(1, 4, 3, 7), r(3, 4, 3, 3), r(1, 18, 3, 7) * 3, r(1, 9, 3, 7))], {i: {0: "n", 2: "h", 3: "w"} for i in (0, 2, 3)}, (9, 13, 18, 19, NEWEST)),
    Case("deform_plain", lambda x, w, o: torchvision.ops.deform_conv2d(x, o, w, bias=torch.arange(4.0), stride=2, dilation=(2, 1)),
         (r(2, 4, 9, 8), r(4, 2, 3, 3), r(2, 36, 3, 3)), opsets=(11, 18, 19, NEWEST)),
]


@expand(CASES)
def test_spatial(case: Case, opset: int) -> None:
    check(case, opset)


def test_roi_pool_places_are_refused() -> None:
    with pytest.raises(onnxport.errors.OnnxExporterError):
        check(Case("places", lambda x, b: torch.ops.torchvision.roi_pool(x, b, 1.0, 2, 2), (r(1, 1, 8, 8), boxes(2, 4, 1))), 18)
