"""What interpolation is made of: places of output pixels, as PyTorch computes them and as ONNX's Resize does."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from onnxport import errors
from onnxport.ops import windows
from onnxport.ops.adaptive_pooling import along_axis
from onnxport.ops.support import cast, shape_of
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import to_torch
from onnxport.target.value import DataType, Value

_TRIED = 1 << 15  # two formulas that agree for all sizes up to this are taken to agree


@dataclass(frozen=True)
class Way:
    """mode: nearest, nearest-exact, linear or cubic.

    In nearest-exact PyTorch multiplies and subtracts in one rounding for signals and large images, in two for small images;
    where that makes a difference the first is taken.
    """

    mode: str
    align_corners: bool = False
    antialias: bool = False

    def attributes(self) -> dict[str, Any]:
        """What ONNX calls it."""
        if self.mode == "nearest":
            return {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        if self.mode == "nearest-exact":
            return {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
        place: dict[str, Any] = {"coordinate_transformation_mode": "align_corners" if self.align_corners else "half_pixel"}
        if self.mode == "cubic":
            # PyTorch's antialiased cubic is Pillow's: another coefficient, and no weight for pixels outside.
            place.update(cubic_coeff_a=-0.5 if self.antialias else -0.75)
        if self.antialias:
            place.update(antialias=1, exclude_outside=1)
        return place


@dataclass(frozen=True)
class Axis:
    """From `size` to `out`; `scale` as it was given, or None."""

    size: Size
    out: Size
    scale: float | None

    @property
    def static(self) -> bool:
        """Whether both sizes are numbers."""
        return isinstance(self.size, int) and isinstance(self.out, int)

    @property
    def factor(self) -> float | None:
        """The number that the size is multiplied by; None where there is no single one."""
        if dims.equal(self.size, self.out) and self.scale in (None, 1.0):
            return 1.0
        if self.scale is not None:
            return _of_both_roundings(self.size, self.out, self.scale)
        ratio = dims.floordiv(self.out, self.size) if self.size != 0 else None
        return float(ratio) if isinstance(ratio, int) and ratio > 0 and dims.equal(self.size * ratio, self.out) else None


def _of_both_roundings(size: Size, out: Size, scale: float) -> float:
    """The scale, or the next number of float32 where ONNX's inference, which multiplies it in float64, would lose a pixel: 20 * 0.9 is 17 there."""
    if isinstance(size, int) and isinstance(out, int) and int(size * float(np.float32(scale))) == out - 1:
        above = np.nextafter(np.float32(scale), np.float32(np.inf))
        if int(size * float(above)) == int(np.float32(size) * above) == out:
            return float(above)
    return scale


def scaled(size: Size, factor: float | None) -> Size:
    """floor(size * factor), as PyTorch computes it in float64."""
    assert factor is not None
    if isinstance(size, int):
        return int(size * factor)
    ratio = _fraction(factor)
    if ratio is None:
        raise errors.UnsupportedError(f"the size {size} times {factor}: no whole numbers say this for all sizes; give the size instead")
    return dims.floordiv(size * ratio.numerator, ratio.denominator)


@functools.cache
def _fraction(factor: float) -> Fraction | None:
    """The fraction that gives the same sizes."""
    numbers = np.arange(_TRIED)
    for limit in (1, 16, 256, 4096):
        ratio = Fraction(factor).limit_denominator(limit)
        if ratio > 0 and np.array_equal((numbers * factor).astype(np.int64), numbers * ratio.numerator // ratio.denominator):
            return ratio
    return None


# ---------------------------------------------------------------------- where Resize agrees


def by_scale_agrees(a: Axis, way: Way) -> bool:
    """Whether Resize by the scale gives PyTorch's size and numbers."""
    factor = a.factor
    if factor is None:
        return False
    if way.align_corners and not dims.equal(a.size, a.out) and not a.static:
        return False  # then the scale does not matter, and sizes say it exactly
    if a.static:
        assert isinstance(a.size, int)
        if int(np.float32(a.size) * np.float32(factor)) != a.out:
            return False
    elif not (_same_sizes(factor) and _fraction(factor) is not None and dims.equal(a.out, scaled(a.size, factor))):
        return False
    if not way.mode.startswith("nearest") or factor == 1.0:
        return True
    if a.static:
        return np.array_equal(_places(a, way, torch.float32), _places_of_resize(a, way, np.float32(factor)))
    return _same_places(factor, way)


def by_size_agrees(a: Axis, way: Way) -> bool:
    """Whether Resize to the size gives PyTorch's numbers."""
    if a.static:
        assert isinstance(a.size, int)
        assert isinstance(a.out, int)
        if not a.size or not a.out:
            return False
        if way.mode.startswith("nearest"):
            return np.array_equal(_places(a, way, torch.float32), _places_of_resize(a, way, np.float32(a.out) / np.float32(a.size)))
        return a.scale is None or way.align_corners or a.scale * a.size == a.out
    if way.mode.startswith("nearest"):
        return dims.equal(a.size, a.out)
    return a.scale is None or way.align_corners


@functools.cache
def _same_sizes(factor: float) -> bool:
    numbers = np.arange(_TRIED)
    return np.array_equal(np.floor(numbers.astype(np.float32) * np.float32(factor)).astype(np.int64), (numbers * factor).astype(np.int64))


@functools.cache
def _same_places(factor: float, way: Way) -> bool:
    numbers = np.arange(_TRIED, dtype=np.float32)
    ratio = np.float32(1.0 / factor)
    if way.mode == "nearest":
        places = numbers * ratio
    else:
        places = ((numbers.astype(np.float64) + 0.5) * float(ratio) - 0.5).astype(np.float32) + np.float32(0.5)
    return np.array_equal(np.floor(places), _rounded(numbers, way, np.float32(factor)))


def _rounded(numbers: Any, way: Way, scale: Any) -> Any:
    """The nearest pixel as ONNX Runtime computes it in float32."""
    if scale == 1:
        return numbers
    if way.mode == "nearest":
        return np.floor(numbers / scale)
    place = (numbers + np.float32(0.5)) / scale - np.float32(0.5)
    return np.where(place < 0, np.ceil(place - np.float32(0.5)), np.floor(place + np.float32(0.5)))


def _places_of_resize(a: Axis, way: Way, scale: Any) -> Any:
    assert isinstance(a.size, int)
    assert isinstance(a.out, int)
    return np.clip(_rounded(np.arange(a.out, dtype=np.float32), way, scale), 0, a.size - 1).astype(np.int64)


def _places(a: Axis, way: Way, dtype: torch.dtype) -> Any:
    """The nearest pixels as PyTorch computes them."""
    assert isinstance(a.size, int)
    assert isinstance(a.out, int)
    function = torch.ops.aten.upsample_nearest1d if way.mode == "nearest" else torch.ops.aten._upsample_nearest_exact1d
    return function(torch.arange(a.size, dtype=dtype).reshape(1, 1, -1), [a.out], a.scale).reshape(-1).to(torch.int64).numpy()


# ---------------------------------------------------------------------- Gather and MatMul


def nearest(g: Builder, x: Value, axis: int, a: Axis, way: Way) -> Value:
    """The nearest pixels along one axis. ONNX Gather."""
    wide = DataType.DOUBLE if x.dtype == DataType.DOUBLE else DataType.FLOAT
    if a.static:
        places = g.const(torch.from_numpy(_places(a, way, to_torch(wide))))
    else:
        place = _exact_source(g, a, wide) if way.mode == "nearest-exact" else _source(g, a, wide)
        places = g.op("Min", g.op("Cast", place, to=DataType.INT64), g.scalar(a.size - 1))
    return g.op("Gather", x, places, axis=axis)


def weighted(g: Builder, x: Value, axis: int, a: Axis, way: Way) -> Value:
    """Sums of pixels along one axis, in float32 for halves as PyTorch does. ONNX MatMul."""
    wide = DataType.DOUBLE if x.dtype == DataType.DOUBLE else DataType.FLOAT
    matrix = _weights(g, a, way, wide)
    assert x.dtype is not None
    wider = cast(g, x, wide)
    if not a.static and way.mode == "cubic" and not way.antialias:
        rank = len(shape_of(x))
        pads = [_BEYOND if i == axis else 0 for i in range(rank)]
        wider = g.op("Pad", wider, g.const([*pads, *pads]), mode="edge")
    return cast(g, along_axis(g, wider, axis, matrix), x.dtype)


def _weights(g: Builder, a: Axis, way: Way, dtype: DataType) -> Value:
    """(out, in): what each pixel adds to each output pixel."""
    if a.static:
        return g.const(_weights_of_torch(a, way, to_torch(dtype)))
    if way.antialias:
        return _antialiased_weights(g, a, way, dtype)
    place = _corner_source(g, a, dtype) if way.align_corners else _middle_source(g, a, dtype)
    if way.mode == "cubic":
        return _filtered(g, _distances(g, place, a.size, _BEYOND, dtype), way, dtype)
    # A pixel's weight falls from 1 at its place to 0 at its neighbours'.
    inside = g.op("Min", g.op("Max", place, g.const(0.0, dtype)), g.op("Cast", g.scalar(a.size - 1), to=dtype))
    return _filtered(g, _distances(g, inside, a.size, 0, dtype), way, dtype)


_BEYOND = 2  # so many pixels before the first and behind the last take part in cubic interpolation: the edge, repeated


def _distances(g: Builder, places: Value, size: Size, beyond: int, dtype: DataType) -> Value:
    """(out, in): how far each pixel, and as many as `beyond` at either end, is from each place."""
    pixels = g.op("Cast", windows.arange(g, size + 2 * beyond), to=dtype)
    if beyond:
        pixels = g.op("Sub", pixels, g.const(float(beyond), dtype))
    return g.op("Abs", g.op("Sub", sizes.unsqueeze(g, places, [1]), pixels))


def _filtered(g: Builder, distance: Value, way: Way, dtype: DataType) -> Value:
    """The weight of a pixel by its distance: a tent over two pixels, or the cubic of R. Keys over four."""
    def number(value: float) -> Value:
        return g.const(value, dtype)

    def polynomial(first: float, *rest: float) -> Value:
        total = number(first)
        for each in rest:
            total = g.op("Add", g.op("Mul", total, distance), number(each))
        return total

    if way.mode == "linear":
        return g.op("Max", g.op("Sub", number(1.0), distance), number(0.0))
    c = way.attributes()["cubic_coeff_a"]
    near, far = polynomial(c + 2, -(c + 3), 0.0, 1.0), polynomial(c, -5 * c, 8 * c, -4 * c)
    outer = g.op("Where", g.op("Less", distance, number(2.0)), far, number(0.0))
    return g.op("Where", g.op("Less", distance, number(1.0)), near, outer)


def _antialiased_weights(g: Builder, a: Axis, way: Way, dtype: DataType) -> Value:
    """The filter as wide as an output pixel where that is wider than one of the input's; what each adds, by what all do."""
    half, one = g.const(0.5, dtype), g.const(1.0, dtype)
    ratio = _corner_ratio(g, a, dtype) if way.align_corners else _ratio(g, a, dtype)
    middles = g.op("Mul", g.op("Add", g.op("Cast", windows.arange(g, a.out), to=dtype), half), ratio)
    distance = _distances(g, g.op("Sub", middles, half), a.size, 0, dtype)
    weights = _filtered(g, g.op("Div", distance, g.op("Max", ratio, one)), way, dtype)
    return g.op("Div", weights, g.op("ReduceSum", weights, g.const([1]), keepdims=1))


def _weights_of_torch(a: Axis, way: Way, dtype: torch.dtype) -> torch.Tensor:
    assert isinstance(a.size, int)
    assert isinstance(a.out, int)
    pixels = torch.eye(a.size, dtype=dtype)
    if way.mode == "linear" and not way.antialias:
        return torch.ops.aten.upsample_linear1d(pixels.unsqueeze(1), [a.out], way.align_corners, a.scale).squeeze(1).t().contiguous()
    name = ("_upsample_bilinear2d_aa" if way.mode == "linear" else "_upsample_bicubic2d_aa") if way.antialias else "upsample_bicubic2d"
    made = getattr(torch.ops.aten, name)(pixels.reshape(a.size, 1, 1, a.size), [1, a.out], way.align_corners, None, a.scale)
    return made.reshape(a.size, a.out).t().contiguous()


def _source(g: Builder, a: Axis, dtype: DataType) -> Value:
    """Where each output pixel begins in the input: o / scale."""
    return g.op("Mul", g.op("Cast", windows.arange(g, a.out), to=dtype), _ratio(g, a, dtype))


def _middle_source(g: Builder, a: Axis, dtype: DataType) -> Value:
    """Where the middle of each output pixel lies: (o + 0.5) / scale - 0.5."""
    half = g.const(0.5, dtype)
    middle = g.op("Add", g.op("Cast", windows.arange(g, a.out), to=dtype), half)
    return g.op("Sub", g.op("Mul", middle, _ratio(g, a, dtype)), half)


def _ratio(g: Builder, a: Axis, dtype: DataType) -> Value:
    if a.scale is not None:
        return g.const(1.0 / a.scale, dtype)
    return g.op("Div", _number(g, a.size, dtype), _number(g, a.out, dtype))


def _exact_source(g: Builder, a: Axis, dtype: DataType) -> Value:
    """(o + 0.5) / scale - 0.5, rounded once, + 0.5: float64 holds the product of two float32."""
    ratio = _ratio(g, a, dtype)
    middle = g.op("Add", g.op("Cast", windows.arange(g, a.out), to=DataType.DOUBLE), g.const(0.5, DataType.DOUBLE))
    exact = g.op("Sub", g.op("Mul", middle, g.op("Cast", ratio, to=DataType.DOUBLE)), g.const(0.5, DataType.DOUBLE))
    return g.op("Add", g.op("Cast", exact, to=dtype), g.const(0.5, dtype))


def _corner_source(g: Builder, a: Axis, dtype: DataType) -> Value:
    """o (in - 1) / (out - 1)."""
    return g.op("Mul", g.op("Cast", windows.arange(g, a.out), to=dtype), _corner_ratio(g, a, dtype))


def _corner_ratio(g: Builder, a: Axis, dtype: DataType) -> Value:
    """(in - 1) / (out - 1); 0 for a single output pixel."""
    more = a.out - 1
    return g.op("Div", _number(g, (a.size - 1) * dims.minimum(more, 1), dtype), _number(g, dims.maximum(more, 1), dtype))


def _number(g: Builder, size: Size, dtype: DataType) -> Value:
    return g.op("Cast", g.scalar(size), to=dtype)


