"""Resizing of signals, images and volumes.

PyTorch computes an output pixel's place from the scale that it was given, else from the sizes; ONNX's Resize from scales or
from sizes alike, and rounds at other places. Where both surely agree Resize is written. Else the nearest pixels are gathered,
and sums of pixels are a product with a matrix of weights for each dim.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnxport import errors
from onnxport.ops import resampling
from onnxport.ops.registry import aten
from onnxport.ops.resampling import Axis, Way
from onnxport.ops.support import shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

Sizes = Sequence[Size] | None
Factors = Sequence[float] | None


@aten("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def upsample_nearest(g: Builder, self: Value | None = None, output_size: Sizes = None, scales: float | None = None,
                     scales_d: float | None = None,
                     scales_h: float | None = None, scales_w: float | None = None, input: Value | None = None,
                     scale_factors: Factors = None) -> Value:
    """upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor;
    upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor

    Pixel floor(o * in / out). ONNX Resize, or Gather.
    """
    x = _first(self, input)
    return _resize(g, x, Way("nearest"), _axes(x, output_size, scale_factors, scales_d, scales_h, scales_w, scales))


@aten("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")
def upsample_nearest_exact(g: Builder, self: Value | None = None, output_size: Sizes = None, scales: float | None = None,
                           scales_d: float | None = None, scales_h: float | None = None, scales_w: float | None = None,
                           input: Value | None = None, scale_factors: Factors = None) -> Value:
    """_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor;
    _upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor

    Pixel floor((o + 0.5) * in / out). ONNX Resize, or Gather.
    """
    x = _first(self, input)
    return _resize(g, x, Way("nearest-exact"), _axes(x, output_size, scale_factors, scales_d, scales_h, scales_w, scales))


@aten("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
def upsample_linear(g: Builder, self: Value | None = None, output_size: Sizes = None, align_corners: bool = False,
                    scales: float | None = None,
                    scales_d: float | None = None, scales_h: float | None = None, scales_w: float | None = None, input: Value | None = None,
                    scale_factors: Factors = None) -> Value:
    """upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor;
    upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor

    ONNX Resize, or MatMul.
    """
    x = _first(self, input)
    return _resize(g, x, Way("linear", align_corners), _axes(x, output_size, scale_factors, scales_d, scales_h, scales_w, scales))


@aten
def upsample_bicubic2d(g: Builder, self: Value | None = None, output_size: Sizes = None, align_corners: bool = False,
                       scales_h: float | None = None, scales_w: float | None = None, input: Value | None = None,
                       scale_factors: Factors = None) -> Value:
    """upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor;
    upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor

    ONNX Resize, or MatMul.
    """
    x = _first(self, input)
    return _resize(g, x, Way("cubic", align_corners), _axes(x, output_size, scale_factors, None, scales_h, scales_w))


@aten
def _upsample_bilinear2d_aa(g: Builder, self: Value | None = None, output_size: Sizes = None, align_corners: bool = False,
                            scales_h: float | None = None, scales_w: float | None = None, input: Value | None = None,
                            scale_factors: Factors = None) -> Value:
    """_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) ->
    Tensor;
    _upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor

    ONNX Resize with antialias, or MatMul.
    """
    x = _first(self, input)
    return _resize(g, x, Way("linear", align_corners, antialias=True), _axes(x, output_size, scale_factors, None, scales_h, scales_w))


@aten
def _upsample_bicubic2d_aa(g: Builder, self: Value | None = None, output_size: Sizes = None, align_corners: bool = False,
                           scales_h: float | None = None, scales_w: float | None = None, input: Value | None = None,
                           scale_factors: Factors = None) -> Value:
    """_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor;
    _upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor

    ONNX Resize with antialias, or MatMul.
    """
    x = _first(self, input)
    return _resize(g, x, Way("cubic", align_corners, antialias=True), _axes(x, output_size, scale_factors, None, scales_h, scales_w))


# ---------------------------------------------------------------------- what is asked for


def _first(self: Value | None, input: Value | None) -> Value:
    x = self if self is not None else input
    assert x is not None
    return x


def _axes(x: Value, output_size: Sizes, factors: Factors, d: float | None, h: float | None, w: float | None,
          only: float | None = None) -> list[Axis]:
    """One `Axis` for each spatial dim. A scale that is not positive counts as not given."""
    spatial = shape_of(x)[2:]
    given = list(factors) if factors is not None else [d, h, w if only is None else only][3 - len(spatial):]
    scales = [s if s is not None and s > 0 else None for s in given]
    outs = output_size if output_size is not None else [resampling.scaled(s, f) for s, f in zip(spatial, scales, strict=True)]
    return [Axis(size, out, scale) for size, out, scale in zip(spatial, outs, scales, strict=True)]


def _resize(g: Builder, x: Value, way: Way, axes: list[Axis]) -> Value:
    nearest = way.mode.startswith("nearest")
    if not nearest and x.dtype not in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16):
        raise errors.UnsupportedError(f"interpolation with mode {way.mode!r} of {x.dtype and x.dtype.name}")
    if all(dims.equal(a.size, a.out) and a.scale in (None, 1.0) for a in axes):
        return g.op("Identity", x)
    resized = _by_resize(g, x, way, axes)
    if resized is not None:
        return resized
    for axis, a in enumerate(axes, 2):
        if not (dims.equal(a.size, a.out) and a.scale in (None, 1.0)):
            x = resampling.nearest(g, x, axis, a, way) if nearest else resampling.weighted(g, x, axis, a, way)
    return x


def _by_resize(g: Builder, x: Value, way: Way, axes: list[Axis]) -> Value | None:
    """ONNX Resize where it is there and gives the same numbers; None elsewhere."""
    if x.dtype == DataType.DOUBLE or not _exists(g, way, axes):
        return None
    attrs = {"mode": "nearest" if way.mode.startswith("nearest") else way.mode, **way.attributes()}
    shape = (*shape_of(x)[:2], *(a.out for a in axes))
    if all(resampling.by_scale_agrees(a, way) for a in axes):
        factors = [1.0, 1.0, *(a.factor for a in axes)]
        result: Value = g.op("Resize", x, None, g.const(factors, DataType.FLOAT), **attrs)
    elif all(resampling.by_size_agrees(a, way) for a in axes):
        result = g.op("Resize", x, None, None, g.sizes([a.out for a in axes]), axes=list(range(2, len(shape))), **attrs)
    else:
        return None
    result.shape = shape
    return result


def _exists(g: Builder, way: Way, axes: list[Axis]) -> bool:
    """Whether the opset has this way of resizing. The old Upsample repeats pixels a whole number of times."""
    if way.antialias:  # with align_corners PyTorch weighs by other places
        return g.opset >= 18 and not way.align_corners
    if g.opset >= 11:
        return True
    return way.mode.startswith("nearest") and all(a.factor is not None and float(a.factor).is_integer() for a in axes)


