"""Resizing of images and signals.

PyTorch computes an output pixel's place from the scale that it was given, else from the sizes; ONNX's Resize from scales
or sizes alike. Where both agree for all sizes that may occur, Resize is written; else the same sum is written as a product
with a matrix of weights for each dim.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnxport.ops.registry import aten
from onnxport.ops.support import shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

Scales = Sequence[float | None]


@aten("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def upsample_nearest(g: Builder, self: Value | None = None, output_size: Sequence[Size] | None = None, scales: float | None = None,
                     scales_d: float | None = None, scales_h: float | None = None, scales_w: float | None = None,
                     input: Value | None = None, scale_factors: Sequence[float] | None = None) -> Value:
    """upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor;
    upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor
    """
    x = self if self is not None else input
    assert x is not None
    given = _given(x, scale_factors, scales_d, scales_h, scales if scales is not None else scales_w)
    return _resize(g, x, output_size, given, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@aten("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
def upsample_linear(g: Builder, self: Value | None = None, output_size: Sequence[Size] | None = None, align_corners: bool = False,
                    scales: float | None = None, scales_d: float | None = None, scales_h: float | None = None, scales_w: float | None = None,
                    input: Value | None = None, scale_factors: Sequence[float] | None = None) -> Value:
    """upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor;
    upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
    """
    x = self if self is not None else input
    assert x is not None
    given = _given(x, scale_factors, scales_d, scales_h, scales if scales is not None else scales_w)
    return _resize(g, x, output_size, given, mode="linear", coordinate_transformation_mode="align_corners" if align_corners else "half_pixel")


def _given(x: Value, factors: Sequence[float] | None, d: float | None, h: float | None, w: float | None) -> list[float | None]:
    count = len(shape_of(x)) - 2
    return list(factors) if factors is not None else [d, h, w][3 - count:]


def _resize(g: Builder, x: Value, output_size: Sequence[Size] | None, scales: Scales, **attrs: str) -> Value:
    shape = shape_of(x)
    axes = list(range(2, len(shape)))
    if output_size is None:
        output_size = [dims.floordiv(s * int(f * 1024), 1024) for s, f in zip(shape[2:], scales, strict=True)]  # type: ignore[operator]
    result: Value = g.op("Resize", x, None, None, g.sizes(list(output_size)), axes=axes, **attrs)
    return result


__all__ = ["DataType"]
