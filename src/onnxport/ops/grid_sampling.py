"""Values between the pixels, at places that a grid gives: ONNX GridSample where the opset has it, else the pixels around each place."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from onnxport.ops.indexing import gather
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, rank_of, shape_of, tensor
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

_SAMPLING = ("linear", "nearest", "cubic")
_OUTSIDE = ("zeros", "border", "reflection")
Tap = tuple[Value, Value | None]  # a whole coordinate, as a float, and its weight


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(g: Builder, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Value:
    """grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor

    input (N, C, H, W), grid (N, h, w, 2), or one dim more each. ONNX GridSample (opset 16; 20 for volumes and float64), else
    GatherElements of each pixel around and its weight.
    """
    mode, outside = _SAMPLING[interpolation_mode], _OUTSIDE[padding_mode]
    if g.opset >= (16 if rank_of(input) == 4 and input.dtype != DataType.DOUBLE else 20):
        return g.op("GridSample", input, grid, mode=mode, padding_mode=outside, align_corners=int(align_corners))
    wide = DataType.DOUBLE if input.dtype == DataType.DOUBLE else DataType.FLOAT
    x, places = cast(g, input, wide), cast(g, grid, wide)
    spatial, count = shape_of(x)[2:], rank_of(x) - 2
    # The last coordinate of a place is that of the first dim.
    taps = [_Dim(g, size, wide, outside, align_corners).taps(g.op("Gather", places, g.const(count - 1 - i), axis=-1), mode)
            for i, size in enumerate(spatial)]
    return cast(g, sum_of_taps(g, x, shape_of(places)[1:-1], taps, zeros=outside == "zeros"), input.dtype)  # type: ignore[arg-type]


def sum_of_taps(g: Builder, x: Value, wanted: Sequence[Size], taps: Sequence[Sequence[Tap]], *, zeros: bool) -> Value:
    """(N, C, *wanted): the pixels at every choice of one tap a dim, by the product of their weights."""
    batch, channels, *spatial = shape_of(x)
    row = sizes.reshape(g, x, [batch, channels, dims.product(spatial)])
    total: Value | None = None
    for chosen in itertools.product(*taps):
        place: Value | None = None
        factors = [weight for _, weight in chosen if weight is not None]
        for (at, _), size in zip(chosen, spatial, strict=True):
            inside = _between(g, at, tensor(g, 0.0, at.dtype), _float(g, size - 1, at.dtype))
            if zeros:
                factors.append(cast(g, g.op("Equal", at, inside), at.dtype or DataType.FLOAT))
            index = cast(g, inside, DataType.INT64)
            place = index if place is None else g.op("Add", g.op("Mul", place, g.scalar(size)), index)
        assert place is not None
        points = sizes.reshape(g, place, [batch, 1, dims.product(wanted)])
        value = gather(g, row, 2, sizes.expand(g, points, [batch, channels, dims.product(wanted)]))
        if factors:
            weight = functools.reduce(functools.partial(g.op, "Mul"), factors)
            value = g.op("Mul", value, sizes.reshape(g, weight, [batch, 1, dims.product(wanted)]))
        total = value if total is None else g.op("Add", total, value)
    assert total is not None
    return sizes.reshape(g, total, [batch, channels, *wanted])


def linear_taps(g: Builder, at: Value) -> list[Tap]:
    """The two whole coordinates around each, and their weights."""
    one, below = tensor(g, 1.0, at.dtype), g.op("Floor", at)
    share = g.op("Sub", at, below)
    return [(below, g.op("Sub", one, share)), (g.op("Add", below, one), share)]


def _between(g: Builder, at: Value, low: Value, high: Value) -> Value:
    """Cut off at both ends; what is no number (a point behind a camera) goes to the low one, as in PyTorch, for it must name a pixel."""
    return g.op("Where", g.op("Greater", at, low), g.op("Min", at, high), low)


def _float(g: Builder, size: Size, dtype: DataType | None) -> Value:
    return cast(g, g.scalar(size), dtype or DataType.FLOAT)


class _Dim:
    """One spatial dim of the input."""

    def __init__(self, g: Builder, size: Size, dtype: DataType, outside: str, align_corners: bool):
        self.g, self.dtype, self.outside, self.align = g, dtype, outside, align_corners
        self.size, self.last = _float(g, size, dtype), _float(g, size - 1, dtype)

    def number(self, value: float) -> Value:
        """A number in the dtype of the coordinates."""
        return self.g.const(value, self.dtype)

    def taps(self, place: Value, mode: str) -> list[Tap]:
        """The whole coordinates around each place (-1 to 1 is the whole dim) and their weights."""
        g, one, half = self.g, self.number(1.0), self.number(0.5)
        shifted = g.op("Add", place, one)
        at = g.op("Mul", shifted, g.op("Mul", self.last, half)) if self.align else g.op(
            "Mul", g.op("Sub", g.op("Mul", shifted, self.size), one), half)
        if mode == "cubic":
            return self._cubic(at)
        at = self._kept_inside(at)
        if mode == "nearest":
            return [(g.op("Round", at), None)]
        return linear_taps(g, at)

    def _cubic(self, at: Value) -> list[Tap]:
        """Four pixels, by the convolution of R. Keys with -0.75. Each of them is moved inside by itself."""
        g, below = self.g, self.g.op("Floor", at)
        share = g.op("Sub", at, below)
        found: list[Tap] = []
        for offset in (-1.0, 0.0, 1.0, 2.0):
            distance = g.op("Abs", g.op("Sub", share, self.number(offset)))
            near = offset in (0.0, 1.0)
            weight = self._polynomial(distance, (1.25, -2.25, 0.0, 1.0) if near else (-0.75, 3.75, -6.0, 3.0))
            found.append((self._kept_inside(g.op("Add", below, self.number(offset))), weight))
        return found

    def _polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        total = self.number(coefficients[0])
        for each in coefficients[1:]:
            total = self.g.op("Add", self.g.op("Mul", total, x), self.number(each))
        return total

    def _kept_inside(self, at: Value) -> Value:
        if self.outside == "zeros":
            return at
        if self.outside == "reflection":
            at = self._reflected(at)
        return _between(self.g, at, self.number(0.0), self.last)

    def _reflected(self, at: Value) -> Value:
        """Mirrored at the ends, the outer pixels' centres or edges, as often as it takes."""
        g = self.g
        low, span = (self.number(0.0), self.last) if self.align else (self.number(-0.5), self.size)
        beyond = g.op("Abs", g.op("Sub", at, low))
        wide = g.op("Max", span, self.number(1.0))  # a single pixel has no span; what is wrong there is cut off after this
        turns = g.op("Floor", g.op("Div", beyond, wide))
        rest = g.op("Sub", beyond, g.op("Mul", turns, wide))
        half = g.op("Mul", turns, self.number(0.5))
        even = g.op("Equal", g.op("Floor", half), half)
        return g.op("Add", g.op("Where", even, rest, g.op("Sub", wide, rest)), low)
