"""What stands at a place of the sorted elements: medians and quantiles."""

from __future__ import annotations

from onnxport import errors
from onnxport.ops.indexing import gather
from onnxport.ops.loops import scan
from onnxport.ops.reduction import size_as
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, rank_of, shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import is_float
from onnxport.target.sizes import expand, reshape, unsqueeze
from onnxport.target.value import DataType, Value


def _smallest(g: Builder, x: Value, k: Size, axis: int) -> tuple[Value, Value]:
    """The k smallest, rising, and where they stand; NaN counts as the greatest."""
    values, places = g.op("TopK", x, g.sizes([k]), outputs=2, axis=axis, largest=0, sorted=1)
    return values, places


def _last(g: Builder, x: Value, axis: int, keepdim: bool) -> Value:
    return g.op("Gather", x, g.const([-1] if keepdim else -1), axis=axis) if g.opset >= 11 else _last_by_slice(g, x, axis, keepdim)


def _last_by_slice(g: Builder, x: Value, axis: int, keepdim: bool) -> Value:
    last = g.op("Slice", x, g.const([-1]), g.const([2**63 - 1]), g.const([axis]))
    return last if keepdim else g.op("Squeeze", last, g.const([axis]))


@aten
def median(g: Builder, self: Value) -> Value:
    """median(Tensor self) -> Tensor. The lower of the two middle ones. ONNX TopK, Gather."""
    return self if rank_of(self) == 0 else _median(g, reshape(g, self, [-1]), 0, False)[0]


@aten("median.dim")
def median_dim(g: Builder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices). ONNX TopK, Gather."""
    return (self, g.const(0)) if rank_of(self) == 0 else _median(g, self, axis_of(self, dim), keepdim)


def _median(g: Builder, x: Value, axis: int, keepdim: bool) -> tuple[Value, Value]:
    size = shape_of(x)[axis]
    if size == 0:
        raise errors.UnsupportedError("the median of nothing")
    values, indices = _smallest(g, x, dims.floordiv(size + 1, 2), axis)
    value, index = _last(g, values, axis, keepdim), _last(g, indices, axis, keepdim)
    if not is_float(x.dtype):
        return value, index
    # One NaN makes the median NaN. A sum is NaN where an element is, or where infinities meet; the greatest tells them apart.
    broken = g.op("IsNaN", x)
    place = g.op("ArgMax", cast(g, broken, DataType.INT32), axis=axis, keepdims=int(keepdim))
    has = cast(g, g.op("ReduceMax", cast(g, broken, DataType.INT32), g.const([axis]), keepdims=int(keepdim)), DataType.BOOL)
    return g.op("Where", has, g.const(float("nan"), x.dtype), value), g.op("Where", has, place, index)


@aten
def nanmedian(g: Builder, self: Value) -> Value:
    """nanmedian(Tensor self) -> Tensor. As median, NaN left out."""
    return self if rank_of(self) == 0 else _nanmedian(g, reshape(g, self, [-1]), 0, False)[0]


@aten("nanmedian.dim")
def nanmedian_dim(g: Builder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices). ONNX TopK, GatherElements."""
    return (self, g.const(0)) if rank_of(self) == 0 else _nanmedian(g, self, axis_of(self, dim), keepdim)


def _nanmedian(g: Builder, x: Value, axis: int, keepdim: bool) -> tuple[Value, Value]:
    if not is_float(x.dtype):
        return _median(g, x, axis, keepdim)
    values, indices = _smallest(g, x, shape_of(x)[axis], axis)
    numbers = g.op("ReduceSum", cast(g, g.op("Not", g.op("IsNaN", x)), DataType.INT64), g.const([axis]), keepdims=1)
    place = g.op("Div", g.op("Max", g.op("Sub", numbers, g.const(1)), g.const(0)), g.const(2))
    found = [gather(g, v, axis, place) for v in (values, indices)]
    value, index = found if keepdim else [g.op("Squeeze", v, g.const([axis])) for v in found]
    return value, index


@aten
def mode(g: Builder, self: Value, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)

    The most frequent element of each row, the least of several, and the last place where it stands. ONNX TopK, Scan over the sorted.
    """
    if rank_of(self) == 0:
        return self, g.const(0)
    axis = axis_of(self, dim)
    x = cast(g, self, DataType.INT32) if self.dtype == DataType.BOOL else self
    values, indices = _smallest(g, x, shape_of(x)[axis], axis)
    first, place = (g.op("Gather", v, g.const(0), axis=axis) for v in (values, indices))
    none = g.op("Expand", g.const(0), g.sizes(shape_of(first)))

    def step(states: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        before, run, most, best, best_place = states
        now, now_place = elements
        run = g.op("Add", g.op("Where", g.op("Equal", now, before), run, none), g.const(1))
        more = g.op("Greater", run, most)
        best, best_place = g.op("Where", more, now, best), g.op("Where", more, now_place, best_place)
        return [now, run, g.op("Where", more, run, most), best, best_place], []

    *_, value, index = scan(g, "mode", [first, none, none, first, place], [values, indices], step, axis=axis)[0]
    if keepdim:
        value, index = unsqueeze(g, value, [axis]), unsqueeze(g, index, [axis])
    return cast(g, value, self.dtype or DataType.FLOAT), index


# ---------------------------------------------------------------------- quantiles


@aten("quantile", "quantile.scalar")
def quantile(g: Builder, self: Value, q: Value | float, dim: int | None = None, keepdim: bool = False,
             interpolation: str = "linear") -> Value:
    """quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor
    quantile.scalar(Tensor self, float q, ...) -> Tensor

    q a scalar, or (Q,), which gives (Q, ...). ONNX TopK, Gather, Mul, Add.
    """
    return _quantile(g, self, q, dim, keepdim, interpolation, ignore=False)


@aten("nanquantile", "nanquantile.scalar")
def nanquantile(g: Builder, self: Value, q: Value | float, dim: int | None = None, keepdim: bool = False,
                interpolation: str = "linear") -> Value:
    """nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor and .scalar

    As quantile, NaN left out.
    """
    return _quantile(g, self, q, dim, keepdim, interpolation, ignore=True)


def _quantile(g: Builder, x: Value, q: Value | float, dim: int | None, keepdim: bool, how: str, *, ignore: bool) -> Value:
    rank = rank_of(x)
    if dim is None or rank == 0:
        data = reshape(g, x, [-1])
    else:
        axis = axis_of(x, dim)
        data = g.op("Transpose", x, perm=[*[a for a in range(rank) if a != axis], axis])
    size, last = shape_of(data)[-1], rank_of(data) - 1
    ordered = _smallest(g, data, size, last)[0]
    fraction = q if isinstance(q, Value) else g.const(float(q), x.dtype)
    several = rank_of(fraction) == 1
    broken = g.op("IsNaN", data)
    if ignore:
        numbers = g.op("ReduceSum", cast(g, g.op("Not", broken), x.dtype or DataType.FLOAT), g.const([last]), keepdims=1)
        high = g.op("Max", g.op("Sub", numbers, g.const(1.0, x.dtype)), g.const(0.0, x.dtype))
    else:
        high = g.op("Sub", size_as(g, size, x.dtype), g.const(1.0, x.dtype))
    result = _at(g, ordered, g.op("Mul", fraction, high), how, last, per_row=ignore)
    if not ignore:
        has = cast(g, g.op("ReduceMax", cast(g, broken, DataType.INT32), g.const([last]), keepdims=1), DataType.BOOL)
        result = g.op("Where", has, g.const(float("nan"), x.dtype), result)
    # now (..., Q), with Q = 1 for a scalar
    front = [last, *range(last)]
    result = g.op("Transpose", result, perm=front)
    rest: list[Size] = list(shape_of(data)[:-1])
    if keepdim:
        rest = [1] * rank if dim is None else [1 if a == axis_of(x, dim) else s for a, s in enumerate(shape_of(x))]
    return reshape(g, result, [*([shape_of(fraction)[0]] if several else []), *rest])


def _at(g: Builder, ordered: Value, place: Value, how: str, last: int, *, per_row: bool) -> Value:
    """What stands at a place between two neighbours; (..., Q)."""
    if rank_of(place) == 0:
        place = unsqueeze(g, place, [0])
    below = g.op("Floor", place)
    if how == "nearest":
        return _take(g, ordered, g.op("Round", place), last, per_row)
    if how == "lower":
        return _take(g, ordered, below, last, per_row)
    low, high = _take(g, ordered, below, last, per_row), _take(g, ordered, g.op("Ceil", place), last, per_row)
    if how == "higher":
        return high
    weight = g.const(0.5, place.dtype) if how == "midpoint" else g.op("Sub", place, below)
    if how == "midpoint":
        return g.op("Mul", g.op("Add", low, high), weight)
    return g.op("Add", low, g.op("Mul", g.op("Sub", high, low), weight))


def _take(g: Builder, ordered: Value, place: Value, last: int, per_row: bool) -> Value:
    index = g.op("Cast", place, to=DataType.INT64)
    if not per_row:
        return g.op("Gather", ordered, index, axis=last)
    if rank_of(index) < rank_of(ordered):
        index = unsqueeze(g, index, range(rank_of(ordered) - rank_of(index)))
    return gather(g, ordered, last, expand(g, index, [*shape_of(ordered)[:-1], shape_of(index)[-1]]))


