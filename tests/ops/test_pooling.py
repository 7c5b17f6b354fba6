"""Pooling: every way that windows can meet the edges, fixed and dynamic sizes, places of the largest, adaptive sizes."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.ops.harness import NEWEST, Case, check, compare, expand, exported


def r(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))) * 50).to(dtype)


HW = {0: {0: "n", 2: "h", 3: "w"}}
IMAGES = [(r(1, 3, 18, 7),), (r(3, 3, 5, 14),), (r(1, 3, 4, 4),)]
EXTRA = (7, 9, 10, 11, 18, 22, NEWEST)
NO_WINDOWS = {7: "NonZero needs opset 9"}  # windows of dynamic sizes
DOUBLE = r(2, 3, 9, 8, dtype=torch.float64)
F_FRACTIONAL = {2: F.fractional_max_pool2d, 3: F.fractional_max_pool3d}


def s01(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape)))


CASES = [
    Case("max", lambda x: F.max_pool2d(x, 2), (r(2, 3, 9, 8),), IMAGES, "all", EXTRA),
    Case("max_padded", lambda x: F.max_pool2d(x, (3, 2), (2, 3), (1, 0)), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("max_dilated", lambda x: F.max_pool2d(x, 2, 1, 1, dilation=2), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA, NO_WINDOWS),
    Case("max_ceil", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("max_ceil_static", lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (r(2, 3, 9, 8),), [(r(2, 3, 9, 8),)], {0: {0: "n"}}, EXTRA),
    Case("max_1d", lambda x: F.max_pool1d(x, 3, 2, 1), (r(2, 3, 9),), [(r(1, 3, 4),)], "all"),
    Case("max_3d", lambda x: F.max_pool3d(x, 2, 1, 1), (r(2, 3, 4, 5, 6),), [(r(1, 3, 2, 3, 2),)], "all"),
    Case("max_unbatched", lambda x: F.max_pool2d(x, 2), (r(3, 9, 8),), [(r(3, 4, 5),)], {0: {1: "h", 2: "w"}}, EXTRA),
    Case("max_unbatched_1d", lambda x: F.max_pool1d(x, 2), (r(3, 9),)),
    Case("max_unbatched_3d", lambda x: F.max_pool3d(x, 2), (r(3, 4, 4, 5),)),
    Case("max_double", lambda x: F.max_pool2d(x, 3, 2, 1), (DOUBLE,)),
    Case("max_half", lambda x: F.max_pool2d(x, 3, 2, 1), (r(2, 3, 9, 8, dtype=torch.float16),)),
    *(Case(f"max_{dtype}", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (r(2, 3, 9, 8, dtype=dtype),),
           [(r(1, 3, 6, 7, dtype=dtype),)], HW)
      for dtype in (torch.int64, torch.int32, torch.uint8, torch.int8)),
    Case("max_empty", lambda x: F.max_pool2d(x, 2), (r(0, 3, 4, 4),)),
    Case("places", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA, NO_WINDOWS),
    Case("places_ceil", lambda x: F.max_pool2d(x, 3, 2, 1, 2, True, True), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("places_1d_3d", lambda x, y: (*F.max_pool1d(x, 2, return_indices=True), *F.max_pool3d(y, 2, return_indices=True)),
         (r(2, 3, 9), r(2, 3, 4, 5, 6))),
    Case("places_unbatched", lambda x: F.max_pool2d(x, 2, return_indices=True), (r(3, 9, 8),), [(r(3, 4, 5),)], {0: {1: "h", 2: "w"}}),
    Case("places_int", lambda x: F.max_pool2d(x, 2, return_indices=True), (r(2, 3, 9, 8, dtype=torch.int32),)),
    Case("avg", lambda x: F.avg_pool2d(x, 2), (r(2, 3, 9, 8),), IMAGES, "all", EXTRA),
    Case("avg_padded", lambda x: F.avg_pool2d(x, (3, 2), (2, 3), (1, 0)), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("avg_not_counted", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("avg_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("avg_ceil_not_counted", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("avg_ceil_static", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (r(2, 3, 9, 8),), [(r(2, 3, 9, 8),)], {0: {0: "n"}}, EXTRA),
    Case("avg_divisor", lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("avg_divisor_ceil", lambda x: F.avg_pool2d(x, (3, 2), (2, 3), (1, 0), True, True, 5), (r(2, 3, 9, 8),), IMAGES, HW,
         refused={9: "needs opset 10"}),
    Case("avg_1d", lambda x: F.avg_pool1d(x, 3, 2, 1), (r(2, 3, 9),), [(r(1, 3, 4),)], "all"),
    Case("avg_3d", lambda x: F.avg_pool3d(x, 2, 1, 1, divisor_override=3), (r(2, 3, 4, 5, 6),), [(r(1, 3, 2, 3, 2),)], "all"),
    Case("avg_unbatched", lambda x: F.avg_pool2d(x, 2), (r(3, 9, 8),), [(r(3, 4, 5),)], {0: {1: "h", 2: "w"}}, EXTRA),
    *(Case(f"avg_double_{ceil}_{counted}", lambda x, ceil=ceil, counted=counted: F.avg_pool2d(x, 3, 2, 1, ceil, counted), (DOUBLE,),
           [(r(1, 3, 6, 7, dtype=torch.float64),)], HW, rtol=1e-10, atol=1e-10) for ceil in (False, True) for counted in (False, True)),
    Case("avg_double_divisor", lambda x: F.avg_pool2d(x, 3, 2, 1, True, True, 5), (DOUBLE,), rtol=1e-10, atol=1e-10),
    Case("avg_int", lambda x: (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, 2, 1, True, False)), (r(2, 3, 9, 8, dtype=torch.int64),)),
    Case("avg_half", lambda x: F.avg_pool2d(x, 3, 2, 1), (r(2, 3, 9, 8, dtype=torch.float16),)),
    Case("lp", lambda x: (F.lp_pool2d(x, 2, 3, 2), F.lp_pool1d(x[0], 1, 2)), (r(2, 3, 9, 8).abs(),), [(r(1, 3, 18, 7).abs(),)], HW),
    Case("adaptive_1", lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1)), (r(2, 3, 9, 8),), IMAGES, "all"),
    Case("adaptive_divides", lambda x: (F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_max_pool2d(x, (3, 4))), (r(2, 3, 9, 8),),
         opsets=EXTRA),
    Case("adaptive_avg", lambda x: F.adaptive_avg_pool2d(x, (4, 3)), (r(2, 3, 9, 8),), [*IMAGES, (r(1, 3, 1, 2),)], HW, EXTRA,
         {7: "needs opset 9"}),
    Case("adaptive_avg_static", lambda x: F.adaptive_avg_pool2d(x, (4, 3)), (r(2, 3, 9, 8),), opsets=EXTRA),
    Case("adaptive_avg_kept", lambda x: F.adaptive_avg_pool2d(x, (None, 3)), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("adaptive_avg_larger", lambda x: F.adaptive_avg_pool2d(x, (12, 1)), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("adaptive_avg_1d_3d", lambda x, y: (F.adaptive_avg_pool1d(x, 4), F.adaptive_avg_pool3d(y, (3, 4, 2))),
         (r(2, 3, 9), r(2, 3, 4, 5, 6)),
         [(r(1, 3, 7), r(1, 3, 2, 9, 3))], {0: {0: "n", 2: "l"}, 1: {0: "n", 2: "d", 3: "h", 4: "w"}}),
    Case("adaptive_avg_unbatched", lambda x: (F.adaptive_avg_pool2d(x, 4), F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool1d(x[0], 3)),
         (r(3, 9, 8),)),
    Case("adaptive_avg_double", lambda x: (F.adaptive_avg_pool2d(x, 4), F.adaptive_avg_pool2d(x, 1)), (DOUBLE,), rtol=1e-10, atol=1e-10),
    Case("adaptive_avg_half", lambda x: F.adaptive_avg_pool2d(x, 4), (r(2, 3, 9, 8, dtype=torch.float16) / 50,)),
    Case("adaptive_max", lambda x: F.adaptive_max_pool2d(x, (4, 3), return_indices=True), (r(2, 3, 9, 8),), [*IMAGES, (r(1, 3, 1, 2),)], HW,
         (9, 11, 13, 18, NEWEST)),
    Case("adaptive_max_static", lambda x: F.adaptive_max_pool2d(x, (4, 3), return_indices=True), (r(2, 3, 9, 8),), opsets=EXTRA),
    Case("adaptive_max_1d_3d", lambda x, y: (*F.adaptive_max_pool1d(x, 4, True), *F.adaptive_max_pool3d(y, (3, 4, 2), True)),
         (r(2, 3, 9), r(2, 3, 4, 5, 6)), [(r(1, 3, 7), r(1, 3, 2, 9, 3))], {0: {0: "n", 2: "l"}, 1: {0: "n", 2: "d", 3: "h", 4: "w"}}),
    Case("adaptive_max_unbatched", lambda x: F.adaptive_max_pool2d(x, 4, return_indices=True), (r(3, 9, 8),)),
    Case("unpool", lambda x, y: torch._C._nn.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), y.shape[2:]),
         (r(2, 3, 9, 7), r(2, 3, 9, 7)), [(r(1, 3, 4, 10), r(1, 3, 4, 10))], {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "n", 2: "h", 3: "w"}}),
    Case("unpool_1d_3d", lambda x, y: (F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2, output_size=(9,)),
                                       F.max_unpool3d(*F.max_pool3d(y, 2, return_indices=True), 2, output_size=(4, 3, 7))),
         (r(2, 3, 9), r(2, 3, 4, 3, 7))),
    Case("max_dilated_with_indices", lambda x: F.max_pool2d(x, (3, 2), 2, 1, dilation=(2, 1), return_indices=True), (r(2, 3, 9, 8),), [(r(1, 3, 12, 5),)],
         {0: {0: "n", 2: "h", 3: "w"}}, (9, 11, NEWEST)),
    Case("max_ceil_with_indices", lambda x: F.max_pool3d(x, 2, 3, ceil_mode=True, return_indices=True), (r(2, 3, 6, 7, 4),), [(r(1, 3, 5, 6, 8),)],
         {0: {0: "n", 2: "d", 3: "h", 4: "w"}}, (11, 18, NEWEST)),
    Case("max_ints_with_indices", lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True), (torch.arange(24).reshape(2, 3, 4) % 7 - 3,), opsets=(9, 18)),
    *(Case(f"fractional_{count}", lambda x, s, count=count: F_FRACTIONAL[count](x, 3, 2, _random_samples=s, return_indices=True),
           (r(2, 3, *range(5, 5 + count)), s01(2, 3, count)), [(r(1, 3, *[6] * count), s01(1, 3, count)), (r(2, 3, *[5] * count), s01(2, 3, count))],
           {0: {a: f"d{a}" for a in (0, 2, 3, 4)[:count + 1]}, 1: {0: "d0"}}, (9, 11, 18, NEWEST)) for count in (2, 3)),
    Case("fractional_unbatched_double", lambda x, s: F.fractional_max_pool2d(x, (2, 3), (3, 1), _random_samples=s), (r(3, 9, 7).double(), s01(1, 3, 2).double())),
    Case("unpool_unbatched", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(9, 7)), (r(3, 9, 7),)),
]


@expand(CASES)
def test_pooling(case: Case, opset: int) -> None:
    check(case, opset)


@pytest.mark.parametrize(("kernel", "stride"), [(2, 3), (3, 2), (4, 3), (2, 2)])
@pytest.mark.parametrize("opset", [10, NEWEST])
def test_every_edge(kernel: int, stride: int, opset: int) -> None:
    """One dynamic file for each window, run at every length: PyTorch drops a last window that starts in the padding."""
    for padding, counted in itertools.product(range(kernel // 2 + 1), (False, True)):
        case = Case("edges", lambda x, p=padding, c=counted: (
            F.max_pool1d(x, kernel, stride, p, ceil_mode=True), F.avg_pool1d(x, kernel, stride, p, True, c),
            F.avg_pool2d(x[:, :, None], (1, kernel), stride, (0, p), True, c, 3)), (r(1, 2, 7),), (), {0: {2: "l"}})
        session = exported(case, opset, dynamic=True)
        for length in range(kernel, 12):
            compare(session, case, (r(1, 2, length),))
