"""Counts: how often numbers occur, histograms of one and more dims, sums and extremes of segments."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence

from onnxport.ops.attention import count_up
from onnxport.ops.creation import filled, linspace
from onnxport.ops.cumulative import cumsum
from onnxport.ops.pieces import picked, sliced
from onnxport.ops.reduction import reduce
from onnxport.ops.registry import aten
from onnxport.ops.scattering import scatter_elements
from onnxport.ops.sorting import search
from onnxport.ops.support import Number, axis_of, cast, rank_of, shape_of, static_int
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import to_torch
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64


@aten
def bincount(g: Builder, self: Value, weights: Value | None = None, minlength: Size = 0) -> Value:
    """bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor: how often each number occurs, or the sum of its weights.

    ONNX ScatterElements with a reduction; at opsets 11 to 15, without weights, Unique, whose counts go to their places.
    """
    if shape_of(self)[0] == 0:
        return sizes.expand(g, g.const(0, INT64 if weights is None else DataType.DOUBLE), [minlength])
    x = cast(g, self, INT64)
    length = g.op("Add", g.op("ReduceMax", x, keepdims=0), g.const(1))
    if minlength != 0:
        length = g.op("Max", length, g.scalar(minlength))
    dtype = INT64 if weights is None else DataType.FLOAT if weights.dtype == DataType.FLOAT else DataType.DOUBLE
    bins = g.op("Expand", g.const([0], dtype), sizes.reshape(g, length, [1]))
    if weights is None and 11 <= g.opset < 16:
        values, _, _, counts = g.op("Unique", x, sorted=1, outputs=4)
        return scatter_elements(g, bins, values, counts, 0)
    each = sizes.expand(g, g.const([1]), shape_of(x)) if weights is None else cast(g, weights, dtype)
    return scatter_elements(g, bins, x, each, 0, "add")


@aten
def histc(g: Builder, self: Value, bins: int = 100, min: float = 0, max: float = 0) -> Value:
    """histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor: counts in equal parts of [min, max], of the data's own
    range where both are 0. ONNX Floor, Where, ScatterElements with a reduction.
    """
    dtype = self.dtype
    x = sizes.reshape(g, self, [-1])
    low, high = g.const(min, dtype), g.const(max, dtype)
    if min == max:
        low, high = g.op("ReduceMin", x, keepdims=0), g.op("ReduceMax", x, keepdims=0)
        same = cast(g, g.op("Equal", low, high), dtype)  # type: ignore[arg-type]
        low, high = g.op("Sub", low, same), g.op("Add", high, same)
    place = g.op("Div", g.op("Mul", g.op("Sub", x, low), g.const(bins, dtype)), g.op("Sub", high, low))
    inside = g.op("And", g.op("GreaterOrEqual", x, low), g.op("LessOrEqual", x, high))
    index = g.op("Min", cast(g, g.op("Where", inside, place, g.const(0, dtype)), INT64), g.const(bins - 1))
    return scatter_elements(g, sizes.expand(g, g.const([0], dtype), [bins]), index, cast(g, inside, dtype), 0, "add")  # type: ignore[arg-type]


# ---------------------------------------------------------------------- histograms


def _edges(g: Builder, column: Value, bins: int, ends: Sequence[float] | None) -> Value:
    """bins + 1 edges at equal distances: between the given ends, or those of the data, which are moved apart where they are one."""
    assert column.dtype is not None
    if ends is None and 0 in shape_of(column):
        ends = (0.0, 1.0)
    if ends is not None:
        low, high = (g.const(float(end), column.dtype) for end in ends)
    else:
        low, high = (g.op(f"Reduce{which}", column, keepdims=0) for which in ("Min", "Max"))
    apart = g.op("Mul", cast(g, g.op("Equal", low, high), column.dtype), g.const(0.5, column.dtype))
    low, high = g.op("Sub", low, apart), g.op("Add", high, apart)
    inner = sliced(g, linspace(g, low, high, bins + 1, to_torch(column.dtype)), 0, 0, bins)
    return g.op("Concat", inner, sizes.reshape(g, high, [1]), axis=0)  # the greatest number may not be rounded out of the last box


def _counted(g: Builder, columns: Sequence[Value], edges: Sequence[Value], weight: Value | None, density: bool) -> Value:
    """The sums of weights of the points (N,) of which each column holds a coordinate, in the boxes that the edges make."""
    dtype = columns[0].dtype
    shape = [shape_of(edge)[0] - 1 for edge in edges]
    place, inside = g.const(0), g.const(True)
    for column, edge, bins in zip(columns, edges, shape, strict=True):
        first, last = picked(g, edge, 0, 0), picked(g, edge, 0, bins)
        inside = g.op("And", inside, g.op("And", g.op("GreaterOrEqual", column, first), g.op("LessOrEqual", column, last)))
        own = g.op("Sub", search(g, edge, column, True), g.const(1))
        own = g.op("Max", g.op("Min", own, g.scalar(bins - 1)), g.const(0))  # the last box has its right edge, too
        place = g.op("Add", g.op("Mul", place, g.scalar(bins)), own)
    each = cast(g, inside, dtype or DataType.FLOAT)
    if weight is not None:
        each = g.op("Where", inside, weight, g.const(0, dtype))
    total = scatter_elements(g, filled(g, [dims.product(shape)], 0, dtype), place, each, 0, "add")
    result = sizes.reshape(g, total, shape)
    return _dense(g, result, edges) if density else result


def _dense(g: Builder, histogram: Value, edges: Sequence[Value]) -> Value:
    """The histogram whose integral is 1."""
    rank = len(edges)
    result = g.op("Div", histogram, reduce(g, "ReduceSum", histogram, list(builtins.range(rank)), False))
    for axis, edge in enumerate(edges):
        widths = g.op("Sub", sliced(g, edge, 0, 1), sliced(g, edge, 0, 0, -1))
        result = g.op("Div", result, sizes.unsqueeze(g, widths, list(builtins.range(1, rank - axis))))
    return result


@aten
def histogram(g: Builder, self: Value, bins: int | Value = 100, range: Sequence[float] | None = None, weight: Value | None = None,
              density: bool = False) -> tuple[Value, Value]:
    """histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (hist, bin_edges)
    histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)

    ONNX comparisons with the edges, ScatterElements with a reduction.
    """
    column = sizes.reshape(g, self, [-1])
    edges = bins if isinstance(bins, Value) else _edges(g, column, bins, range)
    return _counted(g, [column], [edges], None if weight is None else sizes.reshape(g, weight, [-1]), density), edges


@aten
def histogramdd(g: Builder, self: Value, bins: int | Sequence[int] | Sequence[Value], range: Sequence[float] | None = None,
                weight: Value | None = None, density: bool = False) -> tuple[Value, list[Value]]:
    """histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (hist, Tensor[] bin_edges)
    histogramdd.int_bins(..., int bins, ...); histogramdd.TensorList_bins(..., Tensor[] bins, ...)

    self (..., D): points; range: two ends for each dim. As histogram.
    """
    columns = _columns(g, self)
    each: list[int | Value] = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    edges = [b if isinstance(b, Value) else _edges(g, column, b, None if range is None else range[2 * i : 2 * i + 2])
             for i, (b, column) in enumerate(zip(each, columns, strict=True))]
    return _counted(g, columns, edges, None if weight is None else sizes.reshape(g, weight, [-1]), density), edges


def _columns(g: Builder, points: Value) -> list[Value]:
    """Each coordinate of points (..., D)."""
    count = static_int(shape_of(points)[-1], "the number of coordinates")
    rows = sizes.reshape(g, points, [-1, count])
    return [picked(g, rows, 1, i) for i in builtins.range(count)]


@aten("_histogramdd_bin_edges")
def histogramdd_bin_edges(g: Builder, self: Value, bins: Sequence[int], range: Sequence[float] | None = None, weight: Value | None = None,
                          density: bool = False) -> list[Value]:
    """_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]"""
    return histogramdd(g, self, bins, range)[1]


@aten("_histogramdd_from_bin_cts", "_histogramdd_from_bin_tensors")
def histogramdd_of(g: Builder, self: Value, bins: Sequence[int] | Sequence[Value], range: Sequence[float] | None = None,
                   weight: Value | None = None, density: bool = False) -> Value:
    """_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor
    _histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor
    """
    return histogramdd(g, self, bins, range, weight, density)[0]


# ---------------------------------------------------------------------- segments


_SEGMENTS = {"sum": ("add", 0.0), "mean": ("add", 0.0), "prod": ("mul", 1.0), "max": ("max", -math.inf), "min": ("min", math.inf)}


@aten
def segment_reduce(g: Builder, data: Value, reduce: str, lengths: Value | None = None, offsets: Value | None = None, axis: int = 0,
                   unsafe: bool = False, initial: Number | None = None) -> Value:
    """segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0,
    bool unsafe=False, Scalar? initial=None) -> Tensor

    Each stretch of an axis, of `lengths` or between `offsets` (..., segments), becomes one. ONNX ScatterElements with a reduction.
    """
    at, starts = axis_of(data, axis), None
    if lengths is not None:
        ends = cumsum(g, cast(g, lengths, INT64), at)
    else:
        assert offsets is not None
        ends = sliced(g, cast(g, offsets, INT64), at, 1)
        starts = sliced(g, cast(g, offsets, INT64), at, 0, -1)
        lengths = g.op("Sub", ends, starts)
    count, after = shape_of(ends)[at], list(builtins.range(at + 1, rank_of(data)))
    places = count_up(g, shape_of(data)[at])
    passed = g.op("LessOrEqual", sizes.unsqueeze(g, ends, [at]), sizes.unsqueeze(g, places, [1]))
    segment = g.op("ReduceSum", cast(g, passed, INT64), g.const([at + 1]), keepdims=0)
    if starts is not None:  # what lies before the first goes behind the last, too
        segment = g.op("Where", g.op("Less", places, sliced(g, starts, at, 0, 1)), g.scalar(count), segment)
    segment = sizes.unsqueeze(g, segment, after)
    combined, start = _SEGMENTS[reduce]
    shape = [*shape_of(data)[:at], count + 1, *shape_of(data)[at + 1:]]  # one more, for what lies behind the last
    room = filled(g, shape, start if initial is None else float(initial), data.dtype)
    found = scatter_elements(g, room, sizes.expand(g, segment, shape_of(data)), data, at, combined)
    found = sliced(g, found, at, 0, -1)
    return _mean(g, found, sizes.unsqueeze(g, lengths, after), initial) if reduce == "mean" else found


def _mean(g: Builder, sums: Value, lengths: Value, initial: Number | None) -> Value:
    """The sums by the lengths; of nothing NaN, or what was given to begin with."""
    empty = g.op("Equal", lengths, g.const(0))
    divided = g.op("Div", sums, g.op("Cast", g.op("Max", lengths, g.const(1)), to=sums.dtype))
    return g.op("Where", empty, g.const(math.nan, sums.dtype), divided) if initial is None else divided
