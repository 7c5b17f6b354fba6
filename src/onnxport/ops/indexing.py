"""Reads some elements: select, slice, index with tensors and masks, gather, nonzero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from onnxport.ops import windows
from onnxport.ops.layout import broadcast, common_shape, merged, permuted, to_front
from onnxport.ops.pieces import picked, sliced
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, rank_of, shape_of, tensor
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64

# ---------------------------------------------------------------------- one place, a range


@aten("select", "select_copy")
def select(g: Builder, self: Value, dim: int, index: Size | Value) -> Value:
    """select.int(Tensor self, int dim, SymInt index) -> Tensor. ONNX Gather."""
    return picked(g, self, axis_of(self, dim), g.size_of(index) if isinstance(index, Value) else index)


@aten("slice", "slice_copy")
def slice_(g: Builder, self: Value, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1) -> Value:
    """slice.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor. ONNX Slice."""
    if isinstance(step, Dim):
        axis = axis_of(self, dim)
        bounds = (g.sizes([0 if start is None else start]), g.sizes([shape_of(self)[axis] if end is None else end]))
        return g.op("Slice", self, *bounds, g.const([axis]), g.sizes([step]))
    return sliced(g, self, axis_of(self, dim), 0 if start is None else start, end, step)


@aten("narrow", "narrow_copy")
def narrow(g: Builder, self: Value, dim: int, start: Size | Value, length: Size) -> Value:
    """narrow(Tensor self, int dim, SymInt start, SymInt length) -> Tensor; narrow.Tensor takes the start as a tensor. ONNX Slice."""
    axis = axis_of(self, dim)
    first = g.size_of(start) if isinstance(start, Value) else start
    if isinstance(first, int) and first < 0:
        end: Size | None = None if dims.equal(first + length, 0) else first + length
    elif isinstance(start, Value) and not isinstance(first, int):
        size = shape_of(self)[axis]
        first = first + size if dims.compare("<", first, 0) else first
        end = first + length
    else:
        end = first + length
    result = sliced(g, self, axis, first, end)
    result.shape = (*shape_of(self)[:axis], length, *shape_of(self)[axis + 1:])
    return result


# ---------------------------------------------------------------------- index tensors and masks


@dataclass(frozen=True)
class Places:
    """Index tensors without gaps of masks among them.

    axes: the axes that are indexed, in order.   tensors: an integer tensor for each.   adjacent: PyTorch puts the result's
    new axes where the first index stands; otherwise in front.
    """

    axes: list[int]
    tensors: list[Value]
    adjacent: bool


def is_mask(x: Value) -> bool:
    """bool, and uint8 as in old programs."""
    return x.dtype in (DataType.BOOL, DataType.UINT8)


def places_of(g: Builder, indices: Sequence[Value | None]) -> Places:
    """Masks as the index tensors that they stand for."""
    axes: list[int] = []
    tensors: list[Value] = []
    gaps: list[int] = []
    axis = 0
    for position, index in enumerate(indices):
        if index is None:
            axis += 1
        elif is_mask(index):
            gaps.append(position)
            rows = nonzero_rows(g, index)
            axes += range(axis, axis + len(rows))
            tensors += rows
            axis += len(rows)
        else:
            gaps.append(position)
            axes.append(axis)
            tensors.append(index if index.dtype in (DataType.INT64, DataType.INT32) else cast(g, index, INT64))
            axis += 1
    return Places(axes, tensors, gaps == list(range(gaps[0], gaps[0] + len(gaps))))


@aten("index", "_unsafe_index")
def index(g: Builder, self: Value, indices: list[Value | None]) -> Value:
    """index.Tensor(Tensor self, Tensor?[] indices) -> Tensor

    One mask: ONNX Compress. One index tensor: Gather. Several: Gather by their one number in the merged axes, or GatherND.
    """
    given = [i for i in indices if i is not None]
    if not given:
        return self
    if len(given) == 1:
        axis = next(a for a, i in enumerate(indices) if i is not None)
        if is_mask(given[0]):
            return compressed(g, self, axis, given[0])
        return g.op("Gather", self, _gatherable(g, given[0]), axis=axis)
    places = places_of(g, [_row_of_scalar(g, i) for i in indices])
    self = _with_axes_for_scalars(g, self, indices)
    if not places.adjacent:
        self, places = to_front(g, self, places.axes), Places(list(range(len(places.axes))), places.tensors, True)
    return taken(g, self, places.axes[0], places.tensors)


def _row_of_scalar(g: Builder, x: Value | None) -> Value | None:
    """A mask of rank 0 indexes a new axis of size 1."""
    return sizes.reshape(g, x, [1]) if x is not None and is_mask(x) and x.rank == 0 else x


def _with_axes_for_scalars(g: Builder, x: Value, indices: Sequence[Value | None]) -> Value:
    axis, new = 0, []
    for i in indices:
        if i is not None and is_mask(i) and i.rank == 0:
            new.append(axis)
        axis += max(rank_of(i), 1) if i is not None and is_mask(i) else 1
    return sizes.unsqueeze(g, x, new)


def _gatherable(g: Builder, index: Value) -> Value:
    if index.dtype not in (DataType.INT64, DataType.INT32):
        index = cast(g, index, INT64)
    return index


def compressed(g: Builder, x: Value, axis: int, mask: Value) -> Value:
    """The slices of `x` (the axes from `axis` on that the mask has, as one) where the mask holds. ONNX Compress."""
    mask, rank = cast(g, mask, DataType.BOOL), rank_of(mask)
    if rank == 0:
        x, mask, rank = sizes.unsqueeze(g, x, [axis]), sizes.reshape(g, mask, [1]), 1
    flat = sizes.reshape(g, mask, [-1])
    if rank == rank_of(x):
        return sharing_count(g, mask, g.op("Compress", x, flat), 0)
    return sharing_count(g, mask, g.op("Compress", merged(g, x, axis, axis + rank), flat, axis=axis), axis)


def sharing_count(g: Builder, mask: Value, x: Value, axis: int) -> Value:
    """`x` has at `axis` as many elements as `mask` holds: one symbol for all that comes from one mask."""
    known = g.block.known.get(("count", mask.key))
    shape = list(shape_of(x))
    if known is None:
        g.block.known["count", mask.key] = (Value(INT64, (), content=(shape[axis],)),)
    else:
        assert known[0].content is not None
        shape[axis] = known[0].content[0]
        x.shape = tuple(shape)
    return x


def taken(g: Builder, x: Value, axis: int, tensors: list[Value]) -> Value:
    """`x` indexed by a tensor for each of the axes from `axis` on."""
    count = len(tensors)
    if count == 1:
        return g.op("Gather", x, _gatherable(g, tensors[0]), axis=axis)
    shape = shape_of(x)
    known = dims.is_static(shape[axis:axis + count])
    if known and all(t.const is not None for t in tensors):
        return g.op("Gather", merged(g, x, axis, axis + count), merged_places(g, shape[axis:axis + count], tensors), axis=axis)
    if axis == 0 and count == 2 and g.opset >= 12 and shape_of(tensors[1]) == shape[:1] and counts_up(tensors[0], shape[0]):
        return g.op("GatherND", x, sizes.unsqueeze(g, cast(g, tensors[1], INT64), [1]), batch_dims=1)
    same = all(shape_of(t) == shape_of(tensors[0]) for t in tensors)
    if g.opset < 11 or (known and (axis > 0 or not same)):
        return g.op("Gather", merged(g, x, axis, axis + count), merged_places(g, shape[axis:axis + count], tensors), axis=axis)
    axes = list(range(axis, axis + count))
    result = g.op("GatherND", to_front(g, x, axes), stacked_index(g, tensors))
    new = rank_of(result) - (rank_of(x) - count)
    return permuted(g, result, [*range(new, new + axis), *range(new), *range(new + axis, rank_of(result))])


def counts_up(x: Value, size: Size) -> bool:
    """Whether `x` is surely 0, 1, ... size - 1."""
    if x.rank != 1 or not dims.equal(shape_of(x)[0], size):
        return False
    if x.const is not None:
        return bool((x.const.tensor == torch.arange(x.const.tensor.numel())).all())
    node = x.node
    if node is None or node.op_type != "Range" or node.inputs[0] is None or node.inputs[2] is None:
        return False
    return node.inputs[0].content == (0,) and node.inputs[2].content == (1,)


def merged_places(g: Builder, shape: Sequence[Size], tensors: Sequence[Value]) -> Value:
    """The place in the merged axes: i0 n1 + i1, each index first made non-negative."""
    total: Value | None = None
    for size, each in zip(shape, tensors, strict=True):
        place = _from_front(g, cast(g, each, INT64), size)
        if total is not None:
            place = g.op("Add", g.op("Mul", total, g.scalar(size)), place)
        total = place
    assert total is not None
    return total


def _from_front(g: Builder, x: Value, size: Size) -> Value:
    if x.const is not None:
        if bool((x.const.tensor >= 0).all()):
            return x
        if isinstance(size, int):
            return g.const(torch.where(x.const.tensor < 0, x.const.tensor + size, x.const.tensor))
    if never_negative(x):
        return x
    return g.op("Mod", x, g.scalar(dims.maximum(size, 1)))


def never_negative(x: Value) -> bool:
    """Whether an index tensor surely counts from the front, seen from what made it."""
    for _ in range(8):
        node = x.node
        source = node.inputs[0] if node is not None and node.inputs else None
        if node is None or source is None:
            return False
        if node.op_type in ("NonZero", "ArgMax", "ArgMin") or (node.op_type == "TopK" and x.index == 1):
            return True
        if node.op_type == "Range":
            return source.content is not None and dims.compare(">=", source.content[0], 0) is True
        if node.op_type not in _MOVING:
            return False
        x = source
    return False


_MOVING = frozenset({"Gather", "Slice", "Split", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Expand"})


def stacked_index(g: Builder, tensors: Sequence[Value]) -> Value:
    """(*common shape, how many): the index tensors side by side, for GatherND and ScatterND."""
    both = broadcast(g, [cast(g, t, INT64) for t in tensors])
    rank = rank_of(both[0])
    columns = [sizes.unsqueeze(g, t, [rank]) for t in both]
    return columns[0] if len(columns) == 1 else g.op("Concat", *columns, axis=rank)


@aten
def masked_select(g: Builder, self: Value, mask: Value) -> Value:
    """masked_select(Tensor self, Tensor mask) -> Tensor: both broadcast. ONNX Reshape, Compress."""
    x, mask = broadcast(g, [self, mask])
    return compressed(g, x, 0, mask)


# ---------------------------------------------------------------------- along one axis


@aten
def index_select(g: Builder, self: Value, dim: int, index: Value) -> Value:
    """index_select(Tensor self, int dim, Tensor index) -> Tensor. ONNX Gather."""
    if rank_of(self) == 0:
        return self
    row = sizes.reshape(g, index, [1]) if rank_of(index) == 0 else index
    return g.op("Gather", self, _gatherable(g, row), axis=axis_of(self, dim))


@aten
def take(g: Builder, self: Value, index: Value) -> Value:
    """take(Tensor self, Tensor index) -> Tensor: of all elements in a row. ONNX Reshape, Gather."""
    return g.op("Gather", sizes.reshape(g, self, [-1]), _gatherable(g, index), axis=0)


@aten
def gather(g: Builder, self: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    """gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor

    ONNX GatherElements; below opset 11 Gather of all elements in a row.
    """
    if rank_of(self) == 0 or rank_of(index) == 0 or 0 in shape_of(index):
        row = g.op("Gather", sizes.reshape(g, self, [-1]), _gatherable(g, sizes.reshape(g, index, [-1])), axis=0)
        return sizes.reshape(g, row, shape_of(index))
    axis = axis_of(self, dim)
    if rank_of(self) == 1 and rank_of(index) == 1:
        return g.op("Gather", self, _gatherable(g, index), axis=0)
    if g.opset >= 11:
        return g.op("GatherElements", self, _gatherable(g, index), axis=axis)
    return g.op("Gather", sizes.reshape(g, self, [-1]), row_places(g, index, shape_of(self), axis), axis=0)


def row_places(g: Builder, index: Value, shape: Sequence[Size], axis: int) -> Value:
    """Where the elements that `index` picks along `axis` of a tensor stand when all of it stands in a row."""
    place: Value | None = None
    for a, size in enumerate(shape_of(index)):
        if a != axis:
            at = _scaled(g, sizes.reshape(g, windows.arange(g, size), [size if i == a else 1 for i in range(len(shape))]), shape[a + 1:])
            place = at if place is None else g.op("Add", place, at)
    chosen = _scaled(g, _from_front(g, cast(g, index, INT64), shape[axis]), shape[axis + 1:])
    return chosen if place is None else g.op("Add", chosen, place)


def _scaled(g: Builder, at: Value, behind: Sequence[Size]) -> Value:
    return g.op("Mul", at, g.scalar(dims.product(behind))) if behind else at


@aten
def take_along_dim(g: Builder, self: Value, indices: Value, dim: int | None = None) -> Value:
    """take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor: both broadcast but along `dim`. ONNX GatherElements."""
    if dim is None:
        return gather(g, sizes.reshape(g, self, [-1]), 0, sizes.reshape(g, indices, [-1]))
    axis = axis_of(self, dim)
    beside = [[*shape_of(x)[:axis], 1, *shape_of(x)[axis + 1:]] for x in (self, indices)]
    shape = common_shape(beside)
    if shape is None:  # two dynamic sizes meet, and either may be 1
        return gather(g, g.op("Expand", self, g.sizes(beside[1])), axis, g.op("Expand", indices, g.sizes(beside[0])))
    x, places = (sizes.expand(g, v, [*shape[:axis], shape_of(v)[axis], *shape[axis + 1:]]) for v in (self, indices))
    return gather(g, x, axis, places)


# ---------------------------------------------------------------------- where something holds


def nonzero_matrix(g: Builder, x: Value) -> Value:
    """(rank, count), rank at least 1. ONNX NonZero."""
    if is_mask(x) or x.dtype not in (DataType.FLOAT, DataType.INT64, DataType.INT32):
        x = cast(g, x, DataType.BOOL)
    if x.rank == 0:
        x = sizes.reshape(g, x, [1])
    return sharing_count(g, x, g.op("NonZero", x), 1)


def nonzero_rows(g: Builder, x: Value) -> list[Value]:
    """The places where `x` holds, an index vector for each axis."""
    matrix = nonzero_matrix(g, x)
    if rank_of(x) <= 1:
        return [sizes.reshape(g, matrix, [-1])]
    return [picked(g, matrix, 0, axis) for axis in range(rank_of(x))]


@aten("nonzero", "argwhere")
def nonzero(g: Builder, self: Value) -> Value:
    """nonzero(Tensor self) -> Tensor: (count, rank). ONNX NonZero, Transpose."""
    matrix = nonzero_matrix(g, self)
    if rank_of(self) == 0:
        return sliced(g, g.op("Transpose", matrix, perm=[1, 0]), 1, 0, 0)
    if rank_of(self) == 1:
        return sizes.reshape(g, matrix, [shape_of(matrix)[1], 1])
    return g.op("Transpose", matrix, perm=[1, 0])


@aten("nonzero_numpy", "where.")
def nonzero_numpy(g: Builder, self: Value | None = None, condition: Value | None = None) -> list[Value]:
    """nonzero_numpy(Tensor self) -> Tensor[]; where(Tensor condition) -> Tensor[]: an index vector for each axis. ONNX NonZero, Gather."""
    x = self if self is not None else condition
    assert x is not None
    return nonzero_rows(g, x)


@aten
def nonzero_static(g: Builder, self: Value, size: Size, fill_value: int = -1) -> Value:
    """nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor: exactly `size` rows. ONNX NonZero, Pad or Concat, Slice."""
    rows = nonzero(g, self)
    fill = sizes.expand(g, tensor(g, fill_value, INT64), [size, rank_of(self)])
    result = sliced(g, g.op("Concat", rows, fill, axis=0), 0, 0, size)
    result.shape = (size, rank_of(self))
    return result

