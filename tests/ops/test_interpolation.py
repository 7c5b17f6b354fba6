"""Resizing: sizes and scales, known and dynamic, odd ones and those where PyTorch and Resize round differently."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F

import onnxport
from tests.ops.harness import NEWEST, OPSETS, Case, Wrapped, check, expand

HW = {0: {0: "n", 2: "h", 3: "w"}}
L = {0: {0: "n", 2: "l"}}
DHW = {0: {0: "n", 2: "d", 3: "h", 4: "w"}}
EXTRA = (7, 9, 10, 11, 13, 15, 18, 19, NEWEST)


def r(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def by(**options: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.interpolate(x, **options)


IMAGES = [(r(1, 3, 18, 7),), (r(1, 3, 1, 1),), (r(3, 3, 5, 14),)]
NO_7 = {7: "needs opset 9"}
CASES = [
    Case("nearest_2", by(scale_factor=2), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("nearest_half", by(scale_factor=0.5), (r(2, 3, 9, 8),), [(r(1, 3, 18, 7),), (r(3, 3, 5, 14),)], HW, refused={}),
    Case("nearest_1_5", by(scale_factor=1.5), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("nearest_1_7", by(scale_factor=1.7), (r(2, 3, 9, 8),), IMAGES + [(r(1, 3, 10, 20),)], HW),
    Case("nearest_1_7_recomputed", by(scale_factor=1.7, recompute_scale_factor=True), (r(2, 3, 9, 8),), [(r(1, 3, 9, 8),)], {0: {0: "n"}}),
    Case("nearest_two_scales", by(scale_factor=(2, 3)), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("nearest_41", by(scale_factor=41), (r(1, 1, 3, 2),), [(r(1, 1, 2, 5),)], {0: {2: "h", 3: "w"}}),
    Case("nearest_size", by(size=(11, 13)), (r(2, 3, 9, 8),), [*IMAGES, (r(1, 3, 22, 26),), (r(1, 3, 123, 111),)], HW),
    Case("nearest_size_static", by(size=(2, 82)), (r(2, 3, 14, 2),), [(r(2, 3, 14, 2),)], {0: {0: "n"}}, EXTRA),
    Case("nearest_like", lambda x, y: F.interpolate(x, size=y.shape[-2:]), (r(2, 3, 9, 8), r(2, 1, 18, 17)),
         [(r(1, 3, 14, 2), r(1, 1, 2, 82)), (r(1, 3, 4, 4), r(1, 1, 1, 1))], {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "n", 2: "i", 3: "j"}}),
    Case("nearest_twice", lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] * 2)), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("nearest_double", by(scale_factor=1.5), (r(2, 3, 9, 8, dtype=torch.float64),), [(r(1, 3, 18, 7, dtype=torch.float64),)], HW),
    Case("nearest_half_dtype", by(scale_factor=2), (r(2, 3, 9, 8, dtype=torch.float16),), [(r(1, 3, 18, 7, dtype=torch.float16),)], HW),
    Case("nearest_uint8", by(scale_factor=2), (torch.arange(72, dtype=torch.uint8).reshape(1, 1, 9, 8),)),
    Case("nearest_1d", by(scale_factor=3), (r(2, 3, 9),), [(r(1, 3, 4),)], L),
    Case("nearest_1d_size", by(size=7), (r(2, 3, 9),), [(r(1, 3, 4),), (r(1, 3, 14),)], L),
    Case("nearest_3d", by(scale_factor=2), (r(2, 3, 4, 5, 6),), [(r(1, 3, 2, 3, 1),)], DHW),
    Case("nearest_3d_size", by(size=(3, 7, 6)), (r(2, 3, 4, 5, 6),), [(r(1, 3, 2, 3, 1),)], DHW),
    Case("exact_2", by(scale_factor=2, mode="nearest-exact"), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA),
    Case("exact_size", by(size=(39, 5), mode="nearest-exact"), (r(2, 3, 2, 8),), [*IMAGES, (r(1, 3, 4, 9),)], HW),
    Case("exact_1d_3d", lambda x, y: (F.interpolate(x, 7, mode="nearest-exact"), F.interpolate(y, scale_factor=0.5, mode="nearest-exact")),
         (r(2, 3, 9), r(2, 3, 4, 5, 6))),
    Case("linear_2", by(scale_factor=2, mode="linear"), (r(2, 3, 9),), [(r(1, 3, 4),), (r(1, 3, 1),)], L),
    Case("bilinear_2", by(scale_factor=2, mode="bilinear"), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA, refused=NO_7),
    Case("bilinear_1_7", by(scale_factor=1.7, mode="bilinear"), (r(2, 3, 9, 8),), IMAGES + [(r(1, 3, 10, 20),)], HW),
    Case("bilinear_0_3", by(scale_factor=(0.3, 0.6), mode="bilinear"), (r(2, 3, 9, 8),), [(r(1, 3, 18, 7),), (r(1, 3, 10, 20),)], HW),
    Case("bilinear_1_7_static", by(scale_factor=1.7, mode="bilinear"), (r(2, 3, 9, 8),), [(r(2, 3, 9, 8),)], {0: {0: "n"}}, EXTRA),
    Case("bilinear_recomputed", by(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True), (r(2, 3, 9, 8),), [(r(1, 3, 9, 8),)],
         {0: {0: "n"}}),
    Case("bilinear_size", by(size=(11, 13), mode="bilinear"), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("bilinear_down", by(size=(1, 3), mode="bilinear"), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("bilinear_corners", by(scale_factor=2, mode="bilinear", align_corners=True), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("bilinear_corners_size", by(size=(1, 13), mode="bilinear", align_corners=True), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("bilinear_corners_1_7", by(scale_factor=1.7, mode="bilinear", align_corners=True), (r(2, 3, 9, 8),),
         IMAGES, HW),
    Case("bilinear_static", by(size=(11, 13), mode="bilinear", align_corners=True), (r(2, 3, 9, 8),), opsets=EXTRA),
    Case("bilinear_like", lambda x, y: F.interpolate(x, size=y.shape[-2:], mode="bilinear"), (r(2, 3, 9, 8), r(2, 1, 18, 17)),
         [(r(1, 3, 14, 2), r(1, 1, 2, 9)), (r(1, 3, 4, 4), r(1, 1, 1, 1))], {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "n", 2: "i", 3: "j"}}),
    Case("bilinear_double", by(size=(11, 13), mode="bilinear"), (r(2, 3, 9, 8, dtype=torch.float64),),
         [(r(1, 3, 18, 7, dtype=torch.float64),)], HW,
         rtol=1e-10, atol=1e-10),
    Case("bilinear_half", by(size=(11, 13), mode="bilinear"), (r(2, 3, 9, 8, dtype=torch.float16),),
         [(r(1, 3, 18, 7, dtype=torch.float16),)], HW),
    Case("trilinear", by(size=(3, 7, 6), mode="trilinear"), (r(2, 3, 4, 5, 6),), [(r(1, 3, 2, 3, 1),)], DHW),
    Case("trilinear_2", by(scale_factor=2, mode="trilinear", align_corners=True), (r(2, 3, 4, 5, 6),), [(r(1, 3, 2, 3, 1),)], DHW),
    Case("bicubic_2", by(scale_factor=2, mode="bicubic"), (r(2, 3, 9, 8),), IMAGES, HW, EXTRA, refused=NO_7),
    Case("bicubic_1_7", by(scale_factor=1.7, mode="bicubic"), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("bicubic_size", by(size=(1, 5), mode="bicubic"), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("bicubic_corners", by(size=(11, 13), mode="bicubic", align_corners=True), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("bicubic_double_dynamic", lambda x: [F.interpolate(x, (11, 5), mode="bicubic", align_corners=c) for c in (False, True)],
         (r(2, 3, 9, 8, dtype=torch.float64),), [(r(1, 3, 3, 14, dtype=torch.float64),), (r(1, 3, 1, 2, dtype=torch.float64),)], HW, rtol=1e-10, atol=1e-10),
    # To a width of 1 PyTorch's antialiased kernels give the first row again and again; the file has what each row's mean is.
    Case("aa_corners_double", lambda x: [F.interpolate(x, s, mode=m, antialias=True, align_corners=True) for m in ("bilinear", "bicubic") for s in ((4, 2), (1, 9), (20, 9))],
         (r(2, 3, 9, 8, dtype=torch.float64),), [(r(1, 3, 30, 14, dtype=torch.float64),)], HW, (9, 18, NEWEST), rtol=1e-6, atol=1e-6),
    Case("bicubic_static", by(size=(11, 13), mode="bicubic"), (r(2, 3, 9, 8),), opsets=EXTRA),
    Case("bicubic_double", by(size=(11, 5), mode="bicubic"), (r(2, 3, 9, 8, dtype=torch.float64),), rtol=1e-10, atol=1e-10),
    Case("bilinear_aa", by(size=(4, 3), mode="bilinear", antialias=True), (r(2, 3, 19, 18),), [(r(1, 3, 38, 9),), (r(1, 3, 2, 2),)], HW),
    Case("bicubic_aa", by(size=(4, 3), mode="bicubic", antialias=True), (r(2, 3, 19, 18),), [(r(1, 3, 38, 9),), (r(1, 3, 2, 2),)], HW),
    Case("aa_static", lambda x: (F.interpolate(x, (4, 30), mode="bilinear", antialias=True),
                                 F.interpolate(x, (4, 30), mode="bicubic", antialias=True)),
         (r(2, 3, 19, 18),), opsets=EXTRA),
    Case("aa_corners", lambda x: (torch.ops.aten._upsample_bilinear2d_aa(x, [4, 30], True),
                                  torch.ops.aten._upsample_bicubic2d_aa(x, [4, 30], True)),
         (r(2, 3, 19, 18),), [(r(1, 3, 19, 18),)], {0: {0: "n"}}),
    Case("aa_corners_dynamic", lambda x: torch.ops.aten._upsample_bilinear2d_aa(x, [4, 30], True), (r(2, 3, 19, 18),), [(r(1, 3, 7, 40),)], HW),
    Case("scale_that_is_no_ratio", lambda x: torch.ops.aten.upsample_bilinear2d(x, [3, 5], False, 0.6, 4.2), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("nearest_scale_that_is_no_ratio", lambda x: torch.ops.aten.upsample_nearest2d(x, [3, 5], 0.6, 2.0), (r(2, 3, 9, 8),), IMAGES, HW),
    Case("area", by(size=(4, 3), mode="area"), (r(2, 3, 9, 8),), IMAGES, HW, OPSETS),
    Case("same", by(size=(9, 8), mode="bilinear"), (r(2, 3, 9, 8),)),
]


@expand(CASES)
def test_interpolation(case: Case, opset: int) -> None:
    check(case, opset)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_many_sizes(mode: str) -> None:
    """One dynamic file at sizes where float32 rounds down what should be whole."""
    images = [(r(1, 1, h, w),) for h, w in ((2, 41), (4, 47), (3, 123), (9, 111), (14, 6), (1, 3))]
    check(Case("many", by(size=(82, 61), mode=mode), (r(1, 1, 9, 8),), images, HW), 18)
    signals = [(r(1, 1, n),) for n in (2, 4, 8, 16, 41, 47, 123, 111)]
    check(Case("many", by(size=82, mode=mode), (r(1, 1, 9),), signals, L), 18)
    volumes = [(r(1, 1, n, 2, m),) for n, m in ((3, 41), (4, 47), (8, 3))]
    check(Case("many", by(size=(80, 4, 61), mode=mode), (r(1, 1, 9, 1, 2),), volumes, DHW), 18)
    check(Case("one", by(size=82, mode=mode), (r(1, 1, 2),)), 18)


def test_a_scale_that_inference_rounds_down() -> None:
    """20 * 0.9 is 18 in float32 and 17 in the float64 product of ONNX's own inference: the file has to satisfy both."""
    stream = io.BytesIO()
    onnxport.export(Wrapped(by(scale_factor=(1.7, 0.9), mode="bilinear")), (r(1, 3, 10, 20),), stream, opset_version=18)
    onnx.checker.check_model(onnx.load_from_string(stream.getvalue()), full_check=True)
    check(Case("rounded", by(scale_factor=(1.7, 0.9), mode="bilinear"), (r(1, 3, 10, 20),)), 18)
