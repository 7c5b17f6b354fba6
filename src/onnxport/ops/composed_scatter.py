"""What ONNX's Scatter operators do, for opsets at which they have no reduction, or at which ScatterND is missing.

Places become rows of the tensor. Where they repeat, the updates are sorted by their place; in every run of one place each takes
in the one before it, then the one two before, four before, ...; so the last of a run has all of it, summed in pairs, and each
place is written once.
"""

from __future__ import annotations

from onnxport.ops import windows
from onnxport.ops.indexing import merged_places, row_places
from onnxport.ops.support import shape_of
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

_COMBINED = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def scatter_elements(g: Builder, x: Value, index: Value, updates: Value, axis: int, reduction: str) -> Value:
    """ScatterElements with a reduction."""
    place = row_places(g, index, shape_of(x), axis)
    row, place, updates = (sizes.reshape(g, v, [dims.product(shape_of(v))]) for v in (x, place, updates))
    return sizes.reshape(g, _reduced(g, row, place, updates, reduction), shape_of(x))


def scatter_nd(g: Builder, x: Value, index: Value, updates: Value, reduction: str | None) -> Value:
    """ScatterND, with or without a reduction."""
    shape = shape_of(x)
    depth = shape_of(index)[-1]
    assert isinstance(depth, int)
    columns = [g.op("Gather", index, g.const(a), axis=-1) for a in range(depth)]
    place = merged_places(g, shape[:depth], columns)
    count, rest = dims.product(shape_of(place)), shape[depth:]
    rows = sizes.reshape(g, x, [dims.product(shape[:depth]), *rest])
    place, updates = sizes.reshape(g, place, [count]), sizes.reshape(g, updates, [count, *rest])
    return sizes.reshape(g, _reduced(g, rows, place, updates, reduction) if reduction else _written(g, rows, place, updates), shape)


def _reduced(g: Builder, rows: Value, place: Value, updates: Value, reduction: str) -> Value:
    """rows (n, ...), place (m,) from 0 on, updates (m, ...)."""
    count = shape_of(place)[0]
    if count == 0:
        return rows
    place, order = _sorted(g, place, count)
    at = windows.arange(g, count)
    updates = _runs(g, place, at, g.op("Gather", updates, order, axis=0), reduction)
    last = g.scalar(count - 1)
    after = g.op("Gather", place, g.op("Min", g.op("Add", at, g.const(1)), last), axis=0)
    ends = g.op("Or", g.op("Not", g.op("Equal", after, place)), g.op("Equal", at, last))
    place, updates = (g.op("Compress", v, ends, axis=0) for v in (place, updates))
    updates = g.op(_COMBINED[reduction], g.op("Gather", rows, place, axis=0), updates)
    return _written(g, rows, place, updates)


def _sorted(g: Builder, place: Value, count: Size) -> tuple[Value, Value]:
    """The places rising, and where each was."""
    if g.opset < 10 and not isinstance(count, int):
        order = _counted_order(g, place, count)
    else:  # below opset 11 TopK sorts no integers; in float64 places are as exact
        keys = place if g.opset >= 11 else g.op("Cast", place, to=DataType.DOUBLE)
        _, order = g.op("TopK", keys, g.sizes([count]), outputs=2, axis=0, largest=0, sorted=1)
    return g.op("Gather", place, order, axis=0), order


def _counted_order(g: Builder, place: Value, count: Size) -> Value:
    """As TopK of opset 9 takes no computed count: each goes to where as many stand before it as are less (or equal and earlier)."""
    at = windows.arange(g, count)
    column, at_column = sizes.unsqueeze(g, place, [1]), sizes.unsqueeze(g, at, [1])
    earlier = g.op("And", g.op("Equal", place, column), g.op("Less", at, at_column))
    before = g.op("Cast", g.op("Or", g.op("Less", place, column), earlier), to=DataType.INT64)
    return g.op("ScatterElements", at, g.op("ReduceSum", before, g.const([1]), keepdims=0), at, axis=0)


def _runs(g: Builder, place: Value, at: Value, updates: Value, reduction: str) -> Value:
    """Each of the updates with all of its run before it. ONNX Loop, as often as the count has bits."""
    count = g.scalar(shape_of(place)[0])
    rank = len(shape_of(updates))
    with g.subgraph() as body:
        g.input(None, DataType.INT64, ())
        g.input(None, DataType.BOOL, ())
        step, held = g.input(None, DataType.INT64, ()), g.input(None, updates.dtype, updates.shape)  # type: ignore[arg-type]
        back = g.op("Sub", at, step)
        from_ = g.op("Max", back, g.const(0))
        same = g.op("And", g.op("Equal", g.op("Gather", place, from_, axis=0), place), g.op("Not", g.op("Less", back, g.const(0))))
        together = g.op(_COMBINED[reduction], held, g.op("Gather", held, from_, axis=0))
        twice = g.op("Add", step, step)
        body.outputs = [g.op("Less", twice, count), twice, g.op("Where", sizes.unsqueeze(g, same, list(range(1, rank))), together, held)]
    return g.op("Loop", None, g.op("Less", g.const(1), count), g.const(1), updates, outputs=2, body=body)[1]


def _written(g: Builder, rows: Value, place: Value, updates: Value) -> Value:
    rest = len(shape_of(rows)) - 1
    if rest and g.opset >= 11:
        return g.op("ScatterND", rows, sizes.unsqueeze(g, place, [1]), updates)
    if rest:
        place = g.op("Expand", sizes.unsqueeze(g, place, list(range(1, rest + 1))), g.shape(updates))
    return g.op("ScatterElements", rows, place, updates, axis=0)
