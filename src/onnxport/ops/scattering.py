"""Writes some elements: index_put, scatter, masked fills, and a piece put back into the whole.

Repeated places sum up (or multiply, or compare) by the reductions of ONNX's Scatter operators: sums and products have them from
opset 16 on, the greatest and least from 18 on. Below they are composed (`composed_scatter.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.ops import composed_scatter
from onnxport.ops.indexing import is_mask, places_of, stacked_index
from onnxport.ops.layout import from_front, permuted, to_front
from onnxport.ops.pieces import sliced
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, rank_of, shape_of, tensor, zero
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import is_float, to_torch
from onnxport.target.simplify import same_shape
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64
_NEEDS = {"add": 16, "mul": 16, "max": 18, "min": 18}

# ---------------------------------------------------------------------- the Scatter operators


def scatter_nd(g: Builder, x: Value, index: Value, updates: Value, reduction: str | None = None) -> Value:
    """ONNX ScatterND; a reduction of repeated places is computed in float32 where the dtype is a shorter float."""
    return _scattered(g, "ScatterND", x, index, updates, reduction)


def scatter_elements(g: Builder, x: Value, index: Value, updates: Value, axis: int, reduction: str | None = None) -> Value:
    """ONNX ScatterElements, likewise."""
    return _scattered(g, "ScatterElements", x, index, updates, reduction, axis)


def _scattered(g: Builder, op_type: str, x: Value, index: Value, updates: Value, reduction: str | None, axis: int | None = None) -> Value:
    if g.opset < 9:
        raise errors.UnsupportedError(f"writing to places needs opset 9 or higher (opset_version={g.opset} was asked)")
    dtype = x.dtype
    assert dtype is not None
    wide = dtype
    if reduction and dtype in (DataType.FLOAT16, DataType.BFLOAT16):
        wide = DataType.FLOAT
    elif reduction in ("max", "min") and dtype == DataType.BOOL:
        wide = DataType.UINT8
    if index.dtype not in (INT64, DataType.INT32) or op_type == "ScatterND":
        index = cast(g, index, INT64)
    x, updates = cast(g, x, wide), cast(g, updates, wide)
    known = g.opset >= max(11 if op_type == "ScatterND" else 9, _NEEDS.get(reduction or "", 0))
    if known:
        result = g.op(op_type, x, index, updates, reduction=reduction, axis=axis)
    elif axis is None:
        result = composed_scatter.scatter_nd(g, x, index, updates, reduction)
    else:
        assert reduction is not None
        result = composed_scatter.scatter_elements(g, x, index, updates, axis, reduction)
    return cast(g, result, dtype)


# ---------------------------------------------------------------------- index_put


@aten("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(g: Builder, self: Value, indices: list[Value | None], values: Any, accumulate: bool = False, unsafe: bool = False) -> Value:
    """index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor

    One mask and values that do not vary along it: ONNX Where. Otherwise ScatterND, of masks at the places that NonZero gives.
    """
    given = [i for i in indices if i is not None]
    values = tensor(g, values, self.dtype)
    if not given:
        whole = sizes.expand(g, values, shape_of(self))
        return g.op("Add", self, whole) if accumulate else whole
    if len(given) == 1 and is_mask(given[0]):
        axis = next(a for a, i in enumerate(indices) if i is not None)
        chosen = _one_value(g, self, axis, rank_of(given[0]), values)
        if chosen is not None:
            return _where(g, self, axis, given[0], chosen, accumulate)
    if any(is_mask(i) and i.rank == 0 for i in given):
        raise errors.UnsupportedError("an assignment through a boolean scalar beside other indices")
    places = places_of(g, indices)
    return put(g, self, places.axes, places.tensors, values, accumulate, places.adjacent)


def _one_value(g: Builder, x: Value, axis: int, depth: int, values: Value) -> Value | None:
    """`values` shaped to broadcast against `x`, where they have no dim of their own for the elements that a mask picks."""
    rest, shape = rank_of(x) - axis - depth, shape_of(values)
    if len(shape) <= rest or all(s == 1 for s in shape):
        return values if len(shape) <= rest else sizes.reshape(g, values, [])
    if shape[len(shape) - 1 - rest] != 1:
        return None
    return sizes.reshape(g, values, [*shape[:len(shape) - 1 - rest], *[1] * depth, *shape[len(shape) - rest:]])


def _where(g: Builder, x: Value, axis: int, mask: Value, values: Value, accumulate: bool) -> Value:
    if x.dtype is not None and accumulate:
        values = g.op("Add", x, values)
    rank = rank_of(mask)
    mask = sizes.unsqueeze(g, cast(g, mask, DataType.BOOL), list(range(rank, rank_of(x) - axis)))
    return g.op("Where", mask, values, x)


def put(g: Builder, x: Value, axes: list[int], tensors: list[Value], values: Value, accumulate: bool, adjacent: bool) -> Value:
    """`values`, which broadcast to the shape of `x[tensors]`, written there."""
    index = _rows(g, tensors)
    new = list(shape_of(index)[:-1])
    lead = axes[0] if adjacent else 0
    others = [s for a, s in enumerate(shape_of(x)) if a not in axes]
    updates = _exactly(g, values, index, [*others[:lead], *new, *others[lead:]], lead, len(new))
    if lead:
        rank = rank_of(updates)
        updates = permuted(g, updates, [*range(lead, lead + len(new)), *range(lead), *range(lead + len(new), rank)])
    data = to_front(g, x, axes)
    if accumulate and 11 <= g.opset < 16 and _all_different(x, axes, tensors):
        updates, accumulate = g.op("Add", updates, g.op("GatherND", data, index)), False
    return from_front(g, scatter_nd(g, data, index, updates, "add" if accumulate else None), axes)


def _rows(g: Builder, tensors: list[Value]) -> Value:
    """(*common shape, how many). The rows of one mask are its NonZero, turned."""
    makers = [t.node for t in tensors]
    matrix = makers[0].inputs[0] if makers[0] is not None and makers[0].op_type == "Gather" else None
    if matrix is None or matrix.node is None or matrix.node.op_type != "NonZero" or shape_of(matrix)[0] != len(tensors):
        return stacked_index(g, tensors)
    for i, maker in enumerate(makers):
        if maker is None or maker.op_type != "Gather" or maker.inputs[0] is not matrix or maker.inputs[1] is not g.scalar(i):
            return stacked_index(g, tensors)
    return g.op("Transpose", matrix, perm=[1, 0])


def _exactly(g: Builder, values: Value, index: Value, wanted: list[Size], lead: int, new: int) -> Value:
    """`values` in the shape `wanted`; where its sizes come from the index, the index is asked."""
    shape = shape_of(values)
    extra = len(shape) - len(wanted)
    if extra > 0:
        values = sizes.reshape(g, values, shape[extra:])
    return values if same_shape(values.shape, tuple(wanted)) else sizes.expand(g, values, wanted)


def _all_different(x: Value, axes: list[int], tensors: list[Value]) -> bool:
    """Whether constant places surely never repeat."""
    shape = [shape_of(x)[a] for a in axes]
    if not dims.is_static(shape) or any(t.const is None for t in tensors):
        return False
    place = torch.zeros((), dtype=torch.int64)
    for size, each in zip(shape, tensors, strict=True):
        assert each.const is not None
        assert isinstance(size, int)
        place = place * size + each.const.tensor % size
    return len(set(place.reshape(-1).tolist())) == place.numel()


@aten("_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put_accumulate(g: Builder, self: Value, mask: Value, indices: list[Value | None], values: Value) -> Value:
    """_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor

    Adds zero where the mask does not hold; there the places are clamped. ONNX Where, ScatterND.
    """
    chosen = g.op("Where", mask, values, zero(g, self.dtype))  # type: ignore[arg-type]
    return index_put(g, self, _clamped(g, self, indices), chosen, True)


@aten("_unsafe_masked_index")
def unsafe_masked_index(g: Builder, self: Value, mask: Value, indices: list[Value | None], fill: Any) -> Value:
    """_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor: `fill` where the mask does not hold."""
    from onnxport.ops.indexing import index

    return g.op("Where", mask, index(g, self, _clamped(g, self, indices)), tensor(g, fill, self.dtype))


def _clamped(g: Builder, x: Value, indices: Sequence[Value | None]) -> list[Value | None]:
    result: list[Value | None] = []
    for size, each in zip(shape_of(x), indices, strict=False):
        if each is not None:
            each = g.op("Min", g.op("Max", cast(g, each, INT64), g.scalar(-size)), g.scalar(size - 1))
        result.append(each)
    return result


@aten("put")
def put_in_row(g: Builder, self: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor: of all elements in a row. ONNX ScatterND."""
    row = sizes.reshape(g, self, [-1])
    flat = [sizes.reshape(g, v, [-1]) for v in (index, source)]
    return sizes.reshape(g, put(g, row, [0], [flat[0]], flat[1], accumulate, True), shape_of(self))


# ---------------------------------------------------------------------- masks


@aten
def masked_fill(g: Builder, self: Value, mask: Value, value: Any) -> Value:
    """masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor; masked_fill.Tensor takes a tensor of rank 0. ONNX Where."""
    return g.op("Where", cast(g, mask, DataType.BOOL), tensor(g, value, self.dtype), self)


@aten
def masked_scatter(g: Builder, self: Value, mask: Value, source: Value) -> Value:
    """masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor: the elements of `source`, in order, where the mask holds.

    ONNX NonZero and ScatterND of as many elements of the source as it needs.
    """
    from onnxport.ops.layout import broadcast

    self, mask = broadcast(g, [self, cast(g, mask, DataType.BOOL)])
    places = places_of(g, [mask if rank_of(mask) else sizes.reshape(g, mask, [1])])
    index = _rows(g, places.tensors)
    values = sliced(g, sizes.reshape(g, source, [-1]), 0, 0, shape_of(index)[0])
    data = self if rank_of(self) else sizes.reshape(g, self, [1])
    return sizes.reshape(g, scatter_nd(g, data, index, values), shape_of(self))


# ---------------------------------------------------------------------- scatter


def _as_vector(g: Builder, x: Value) -> Value:
    return x if rank_of(x) else sizes.reshape(g, x, [1])


@aten("scatter", "scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(g: Builder, self: Value, dim: int, index: Value, src: Value | None = None, value: Any = None,
            reduce: str | None = None) -> Value:
    """scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor; scatter.value(…, Scalar value)

    reduce: "add" or "multiply". ONNX ScatterElements.
    """
    updates = src if src is not None else tensor(g, value, self.dtype)
    return _scatter(g, self, dim, index, updates, {"add": "add", "multiply": "mul"}.get(reduce or ""))


def _scatter(g: Builder, x: Value, dim: int, index: Value, src: Value, reduction: str | None) -> Value:
    shape, axis = shape_of(x), axis_of(x, dim)
    index, data = _as_vector(g, index), _as_vector(g, x)
    updates = _of_shape(g, src, shape_of(index))
    return sizes.reshape(g, scatter_elements(g, data, index, updates, axis, reduction), shape)


def _of_shape(g: Builder, src: Value, wanted: Sequence[Size]) -> Value:
    """The first elements of `src` along each axis, as many as the index has; a scalar for all."""
    if rank_of(src) == 0:
        return sizes.expand(g, src, wanted)
    for axis, (have, want) in enumerate(zip(shape_of(src), wanted, strict=True)):
        if not dims.equal(have, want):
            src = sliced(g, src, axis, 0, want)
    return src


@aten
def scatter_add(g: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    """scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor. ONNX ScatterElements with a reduction."""
    return _scatter(g, self, dim, index, src, "add")


_REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}


@aten("scatter_reduce", "scatter_reduce.two")
def scatter_reduce(g: Builder, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True) -> Value:
    """scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor

    reduce: sum, prod, mean, amax, amin. Without self its elements that are written to are first set to what changes nothing.
    ONNX ScatterElements with a reduction.
    """
    data = self
    if not include_self:
        data = _scatter(g, self, dim, index, tensor(g, _neutral(reduce, self.dtype), self.dtype), None)
    result = _scatter(g, data, dim, index, src, _REDUCTIONS[reduce])
    return _averaged(g, self, result, dim, index, include_self) if reduce == "mean" else result


def _neutral(reduce: str, dtype: DataType | None) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    assert dtype is not None
    kind = to_torch(dtype)
    if dtype == DataType.BOOL:
        return reduce == "amin"
    if is_float(dtype):
        return -float("inf") if reduce == "amax" else float("inf")
    return torch.iinfo(kind).min if reduce == "amax" else torch.iinfo(kind).max


def _averaged(g: Builder, x: Value, total: Value, dim: int, index: Value, include_self: bool) -> Value:
    """The sums by how many each has; of integers rounded down."""
    dtype = x.dtype
    assert dtype is not None
    ones = sizes.expand(g, tensor(g, 1, dtype), shape_of(x))
    if not include_self:
        ones = _scatter(g, ones, dim, index, tensor(g, 0, dtype), None)
    count = _scatter(g, ones, dim, index, sizes.expand(g, tensor(g, 1, dtype), shape_of(index)), "add")
    if not include_self:
        count = g.op("Max", count, tensor(g, 1, dtype))
    return divided_down(g, total, count)


def divided_down(g: Builder, a: Value, b: Value) -> Value:
    """a / b; of integers rounded down, b positive."""
    if is_float(a.dtype):
        return g.op("Div", a, b)
    return g.op("Div", g.op("Sub", a, g.op("Mod", a, b)), b)


# ---------------------------------------------------------------------- along one axis


def _along(g: Builder, x: Value, dim: int, index: Value, source: Value, reduction: str | None) -> Value:
    """Slices of `source` written to (added to) the places `index` of one axis."""
    shape, axis = shape_of(x), axis_of(x, dim)
    x, source, index = _as_vector(g, x), _as_vector(g, source), sizes.reshape(g, index, [-1])
    source = cast(g, source, x.dtype)  # type: ignore[arg-type]
    if axis == 0 and g.opset >= 11:
        made = scatter_nd(g, x, sizes.unsqueeze(g, index, [1]), source, reduction)
    else:
        column = sizes.unsqueeze(g, index, [a for a in range(rank_of(x)) if a != axis])
        made = scatter_elements(g, x, sizes.expand(g, column, shape_of(source)), source, axis, reduction)
    return sizes.reshape(g, made, shape)


@aten
def index_add(g: Builder, self: Value, dim: int, index: Value, source: Value, alpha: Any = 1) -> Value:
    """index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor: also at repeated places.

    ONNX ScatterND or ScatterElements with a reduction, without one where constant places do not repeat.
    """
    source = g.op("Mul", source, tensor(g, alpha, self.dtype)) if alpha != 1 else source
    axis = axis_of(self, dim)
    if g.opset < 16 and rank_of(self) and _all_different(self, [axis], [index]):
        source, reduction = g.op("Add", source, g.op("Gather", self, sizes.reshape(g, index, [-1]), axis=axis)), None
    else:
        reduction = "add"
    return _along(g, self, dim, index, source, reduction)


@aten
def index_copy(g: Builder, self: Value, dim: int, index: Value, source: Value) -> Value:
    """index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor. ONNX ScatterND or ScatterElements."""
    return _along(g, self, dim, index, source, None)


@aten
def index_fill(g: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    """index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor

    The places as a mask (a constant where the index is), ONNX ScatterElements of the mask and Where.
    """
    shape, axis = shape_of(self), axis_of(self, dim)
    x, index = _as_vector(g, self), sizes.reshape(g, index, [-1])
    length = shape_of(x)[axis]
    if index.const is not None and isinstance(length, int):
        picked = torch.zeros(length, dtype=torch.bool)
        picked[index.const.tensor.long()] = True
        mask = g.const(picked)
    else:
        nothing, all_ = (sizes.expand(g, g.const(v), [n]) for v, n in ((False, length), (True, shape_of(index)[0])))
        mask = scatter_elements(g, nothing, index, all_, 0)
    mask = sizes.unsqueeze(g, mask, list(range(1, rank_of(x) - axis)))
    return sizes.reshape(g, g.op("Where", mask, tensor(g, value, self.dtype), x), shape)


@aten
def index_reduce(g: Builder, self: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True) -> Value:
    """index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor

    reduce: prod, mean, amax, amin. As scatter_reduce, with the index for whole slices.
    """
    axis = axis_of(self, dim)
    x, source, index = _as_vector(g, self), _as_vector(g, source), sizes.reshape(g, index, [-1])
    column = sizes.unsqueeze(g, index, [a for a in range(rank_of(x)) if a != axis])
    result = scatter_reduce(g, x, axis, sizes.expand(g, column, shape_of(source)), source, reduce, include_self)
    return sizes.reshape(g, result, shape_of(self))


# ---------------------------------------------------------------------- a piece put back into the whole


@aten
def select_scatter(g: Builder, self: Value, src: Value, dim: int, index: Size) -> Value:
    """select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor: `src` at one place of `dim`.

    ONNX Where with a constant mask, or Concat with what is before and behind.
    """
    axis = axis_of(self, dim)
    length = shape_of(self)[axis]
    src = sizes.unsqueeze(g, cast(g, src, self.dtype), [axis])  # type: ignore[arg-type]
    if isinstance(length, int) and isinstance(index, int) and g.opset >= 9 and length > 1:
        index %= length
        if 0 < index < length - 1:
            mask = sizes.unsqueeze(g, g.const([i == index for i in range(length)]), list(range(1, rank_of(self) - axis)))
            return g.op("Where", mask, src, self)
    if isinstance(index, Dim) and dims.bounds(index)[0] < 0:
        index = dims.mod(index, dims.maximum(length, 1))
    end: Size | None = None if index == -1 else index + 1
    return _between(g, self, src, axis, index, end)


def _between(g: Builder, x: Value, src: Value, axis: int, before: Size, behind: Size | None) -> Value:
    """x[:before], src, x[behind:] along `axis`."""
    size, pieces = shape_of(x)[axis], [src]
    if before != 0:
        pieces.insert(0, sliced(g, x, axis, 0, before))
    if behind is not None and not dims.compare(">=", behind, size):
        pieces.append(sliced(g, x, axis, behind))
    result = pieces[0] if len(pieces) == 1 else g.op("Concat", *pieces, axis=axis)
    if len(pieces) > 1:
        result.shape = shape_of(x)
    return result


@aten
def slice_scatter(g: Builder, self: Value, src: Value, dim: int = 0, start: Size | None = None, end: Size | None = None,
                  step: Size = 1) -> Value:
    """slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor

    ONNX Concat with what is before and behind; with steps, Gather of both by a table, or ScatterElements.
    """
    axis = axis_of(self, dim)
    size, length = shape_of(self)[axis], shape_of(src)[axis]
    src = cast(g, src, self.dtype)  # type: ignore[arg-type]
    start = 0 if start is None else start
    if isinstance(size, int) and isinstance(start, int) and (end is None or isinstance(end, int)) and isinstance(step, int):
        places = range(size)[start:end:step]
        if len(places) == 0:
            return self
        src = sizes.expand(g, src, [*shape_of(self)[:axis], len(places), *shape_of(self)[axis + 1:]])
        if step == 1 or len(places) == 1:
            return _between(g, self, src, axis, places[0], places[-1] + 1)
        table = list(range(size))
        for i, place in enumerate(places):
            table[place] = size + i
        return g.op("Gather", g.op("Concat", self, src, axis=axis), g.const(table), axis=axis)
    negative = dims.compare("<", start, 0)
    if negative:
        start = dims.maximum(start + size, 0)
    elif negative is None:
        start = dims.maximum(dims.minimum(start, size), -size)
        start = start + size * dims.maximum(dims.minimum(-start, 1), 0)  # the size is added where it is negative
    if isinstance(step, int) and step == 1:
        reaches_end = end is None or (isinstance(end, int) and end >= 1 << 62)
        return _between(g, self, src, axis, start, None if reaches_end else start + length)
    first = dims.minimum(start, size)
    rows = g.op("Range", g.scalar(first), g.scalar(first + length * step), g.scalar(step))
    rows.shape = (length,)
    return _along(g, self, axis, rows, src, None)


@aten
def diagonal_scatter(g: Builder, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor

    ONNX Where with the diagonal as mask, `src` padded to one number for each column.
    """
    from onnxport.ops.diagonals import diagonal_mask

    axes = [axis_of(self, dim1), axis_of(self, dim2)]
    behind = [a for a in range(rank_of(self)) if a not in axes]
    x = permuted(g, self, [*behind, *axes])
    rows, columns = shape_of(x)[-2:]
    left, length = max(offset, 0), shape_of(src)[-1]
    src = cast(g, src, self.dtype)  # type: ignore[arg-type]
    if not (left == 0 and dims.equal(length, columns)):
        rank = rank_of(src)
        src = g.op("Pad", src, g.sizes([*[0] * (rank - 1), left, *[0] * (rank - 1), columns - length - left]))
    mixed = g.op("Where", diagonal_mask(g, rows, columns, offset), sizes.unsqueeze(g, src, [rank_of(src) - 1]), x)
    order = [*behind, *axes]
    return permuted(g, mixed, [order.index(a) for a in range(len(order))])
