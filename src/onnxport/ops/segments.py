"""Reductions over segments that follow one another along an axis."""

from __future__ import annotations

import math

from onnxport.ops import windows
from onnxport.ops.cumulative import cumsum
from onnxport.ops.pieces import sliced
from onnxport.ops.registry import aten
from onnxport.ops.scattering import scatter_elements
from onnxport.ops.support import Number, axis_of, cast, rank_of, shape_of, tensor
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.value import DataType, Value

_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_REDUCTIONS = {"sum": "add", "mean": "add", "prod": "mul", "max": "max", "min": "min"}


@aten
def segment_reduce(g: Builder, data: Value, reduce: str, lengths: Value | None = None, indices: Value | None = None,
                   offsets: Value | None = None, axis: int = 0, unsafe: bool = False, initial: Number | None = None) -> Value:
    """segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0,
    bool unsafe=False, Scalar? initial=None) -> Tensor

    lengths (..., segments), or offsets with the last end, too; reduce: sum, mean, max, min, prod, from `initial` on. ONNX
    ScatterElements with a reduction of each element to its segment.
    """
    axis = axis_of(data, axis)
    starts, ends = _bounds(g, lengths, offsets, axis)
    segments, shape = shape_of(ends)[axis], shape_of(data)
    column = sizes.unsqueeze(g, windows.arange(g, shape[axis]), [1])
    # The segment of an element: as many as end at or before it. Those before the first start go behind the last, which is cut off.
    passed = g.op("Not", g.op("Less", column, sizes.unsqueeze(g, ends, [axis])))
    segment = g.op("ReduceSum", cast(g, passed, DataType.INT64), g.const([axis + 1]), keepdims=0)
    if starts is not None:
        early = g.op("Less", sizes.reshape(g, column, [-1]), sliced(g, starts, axis, 0, 1))
        segment = g.op("Where", early, g.scalar(segments), segment)
    inner = list(range(axis + 1, rank_of(data)))
    places = sizes.expand(g, sizes.unsqueeze(g, segment, inner), shape)
    first = tensor(g, float(_START[reduce] if initial is None else initial), data.dtype)
    base = sizes.expand(g, first, [*shape[:axis], segments + 1, *shape[axis + 1:]])
    made = sliced(g, scatter_elements(g, base, places, data, axis, _REDUCTIONS[reduce]), axis, 0, -1)
    return _averaged(g, made, starts, ends, inner, initial) if reduce == "mean" else made


def _bounds(g: Builder, lengths: Value | None, offsets: Value | None, axis: int) -> tuple[Value | None, Value]:
    """Where the segments start (None: behind one another from 0 on) and end."""
    if lengths is not None:
        return None, cumsum(g, cast(g, lengths, DataType.INT64), axis)
    assert offsets is not None
    bounds = cast(g, offsets, DataType.INT64)
    return sliced(g, bounds, axis, 0, -1), sliced(g, bounds, axis, 1)


def _averaged(g: Builder, total: Value, starts: Value | None, ends: Value, inner: list[int], initial: Number | None) -> Value:
    """The sums by how many there are; of none what they started with, or no number."""
    if starts is None:
        starts = windows.pad(g, ends, [1], [-1])
    count = sizes.unsqueeze(g, g.op("Sub", ends, starts), inner)
    nothing = tensor(g, math.nan, total.dtype) if initial is None else total
    mean = g.op("Div", total, cast(g, g.op("Max", count, g.const(1)), total.dtype or DataType.FLOAT))
    return g.op("Where", g.op("Equal", count, g.const(0)), nothing, mean)
