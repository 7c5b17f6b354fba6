"""The same elements in another shape or order: reshape, permute, expand, flip, diagonals, windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnxport import errors
from onnxport.ops.pieces import BACK, sliced
from onnxport.ops.registry import aten
from onnxport.ops.support import axes_of, axis_of, rank_of, shape_of, static_int
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

# ---------------------------------------------------------------------- another shape


@aten("view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy", "_reshape_copy")
def reshape(g: Builder, self: Value, size: list[Size] | None = None, shape: list[Size] | None = None) -> Value:
    """view(Tensor self, SymInt[] size) -> Tensor; reshape(Tensor self, SymInt[] shape) -> Tensor

    One size may be -1. ONNX Reshape.
    """
    return sizes.reshape(g, self, size if size is not None else shape or [])


@aten("view.dtype", "view_copy.dtype")
def view_dtype(g: Builder, self: Value, dtype: Any) -> Value:
    """view.dtype(Tensor self, ScalarType dtype) -> Tensor: the bits read as another type; ONNX Runtime runs no BitCast."""
    from onnxport.target.dtypes import from_torch

    if self.dtype == from_torch(dtype):
        return self
    raise errors.UnsupportedError(f"the bits of a tensor read as {dtype} are not supported; use .to({dtype}) for its values")


@aten("view_as", "reshape_as")
def reshape_as(g: Builder, self: Value, other: Value) -> Value:
    """view_as(Tensor self, Tensor other) -> Tensor. ONNX Reshape."""
    return sizes.reshape(g, self, shape_of(other))


@aten
def flatten(g: Builder, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor. ONNX Reshape."""
    shape = shape_of(self)
    if not shape:
        return sizes.reshape(g, self, [1])
    start, end = axis_of(self, start_dim), axis_of(self, end_dim)
    return merged(g, self, start, end + 1)


def merged(g: Builder, x: Value, start: int, end: int) -> Value:
    """The axes from `start` up to `end` as one."""
    shape = shape_of(x)
    if end - start == 1:
        return x
    return sizes.reshape(g, x, [*shape[:start], dims.product(shape[start:end]), *shape[end:]])


@aten
def unflatten(g: Builder, self: Value, dim: int, sizes: list[Size]) -> Value:
    """unflatten.int(Tensor self, int dim, SymInt[] sizes) -> Tensor. ONNX Reshape."""
    return split_axis(g, self, axis_of(self, dim), sizes)


def split_axis(g: Builder, x: Value, axis: int, new: Sequence[Size]) -> Value:
    """One axis taken apart into `new`, of which one may be -1."""
    shape = shape_of(x)
    known = dims.product(s for s in new if not (isinstance(s, int) and s == -1))
    filled = [dims.floordiv(shape[axis], known) if isinstance(s, int) and s == -1 else s for s in new]
    return sizes.reshape(g, x, [*shape[:axis], *filled, *shape[axis + 1:]])


@aten
def ravel(g: Builder, self: Value) -> Value:
    """ravel(Tensor(a) self) -> Tensor(a). ONNX Reshape."""
    return sizes.reshape(g, self, [-1])


@aten("squeeze", "squeeze_copy")
def squeeze(g: Builder, self: Value, dim: int | list[int] | None = None) -> Value:
    """squeeze(Tensor self) -> Tensor; squeeze.dim(Tensor self, int dim); squeeze.dims(Tensor self, int[] dim)

    Drops the axes that have size 1. Of an axis that the caller made dynamic it is a condition of the file that it has another; whether one has
    whose size the data decides cannot be said. ONNX Squeeze or Reshape.
    """
    shape, dropped = shape_of(self), []
    for axis in [] if isinstance(dim, list) and not dim else axes_of(self, dim):
        is_one = dims.compare("==", shape[axis], 1)
        if is_one is None and not g.holds_where(shape[axis], "!=", 1):
            way = "name the dims to squeeze (x.squeeze(1)), " if dim is None else "give an example in which it is not 1, "
            raise errors.UnsupportedError(
                f"squeeze of dim {axis}, whose size {shape[axis]} is dynamic: the result has another rank where it is 1; "
                f"{way}index (x[:, 0]), or make this axis static")
        if is_one:
            dropped.append(axis)
    return sizes.squeeze(g, self, dropped)


@aten("unsqueeze", "unsqueeze_copy")
def unsqueeze(g: Builder, self: Value, dim: int) -> Value:
    """unsqueeze(Tensor self, int dim) -> Tensor. ONNX Unsqueeze."""
    return sizes.unsqueeze(g, self, [dim % (rank_of(self) + 1)])


@aten
def atleast_1d(g: Builder, self: Value) -> Value:
    """atleast_1d(Tensor self) -> Tensor. ONNX Reshape."""
    return self if rank_of(self) else sizes.unsqueeze(g, self, [0])


@aten
def atleast_2d(g: Builder, self: Value) -> Value:
    """atleast_2d(Tensor self) -> Tensor: new axes in front. ONNX Unsqueeze."""
    return sizes.unsqueeze(g, self, list(range(2 - rank_of(self))))


@aten
def atleast_3d(g: Builder, self: Value) -> Value:
    """atleast_3d(Tensor self) -> Tensor: (n) to (1, n, 1), (n, m) to (n, m, 1). ONNX Unsqueeze."""
    return sizes.unsqueeze(g, self, {0: [0, 1, 2], 1: [0, 2], 2: [2]}.get(rank_of(self), []))


@aten("atleast_1d.Sequence")
def atleast_1d_sequence(g: Builder, tensors: list[Value]) -> list[Value]:
    """atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]."""
    return [atleast_1d(g, x) for x in tensors]


@aten("atleast_2d.Sequence")
def atleast_2d_sequence(g: Builder, tensors: list[Value]) -> list[Value]:
    """atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]."""
    return [atleast_2d(g, x) for x in tensors]


@aten("atleast_3d.Sequence")
def atleast_3d_sequence(g: Builder, tensors: list[Value]) -> list[Value]:
    """atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]."""
    return [atleast_3d(g, x) for x in tensors]


@aten
def numel(g: Builder, self: Value) -> Size:
    """numel(Tensor self) -> int: the product of the sizes."""
    return dims.product(shape_of(self))


# ---------------------------------------------------------------------- axes in another order


@aten("permute", "permute_copy")
def permute(g: Builder, self: Value, dims: list[int]) -> Value:
    """permute(Tensor self, int[] dims) -> Tensor. ONNX Transpose."""
    return permuted(g, self, [axis_of(self, d) for d in dims])


def permuted(g: Builder, x: Value, order: Sequence[int]) -> Value:
    """The axes in this order; a permutation that moves only axes of size 1 is a Reshape."""
    order, shape = list(order), shape_of(x)
    if order == list(range(len(order))):
        return x
    moving = [a for a in order if shape[a] != 1]
    if moving == sorted(moving) and dims.is_static([shape[a] for a in order]):
        return sizes.reshape(g, x, [shape[a] for a in order])
    return g.op("Transpose", x, perm=order)


@aten("transpose", "swapaxes", "swapdims", "transpose_copy")
def transpose(g: Builder, self: Value, dim0: int | None = None, dim1: int | None = None, axis0: int | None = None,
              axis1: int | None = None) -> Value:
    """transpose.int(Tensor self, int dim0, int dim1) -> Tensor; swapaxes(Tensor self, int axis0, int axis1). ONNX Transpose."""
    first = dim0 if dim0 is not None else axis0
    second = dim1 if dim1 is not None else axis1
    assert first is not None
    assert second is not None
    a, b = axis_of(self, first), axis_of(self, second)
    order = list(range(rank_of(self)))
    if order:
        order[a], order[b] = b, a
    return permuted(g, self, order)


@aten("t", "numpy_T", "t_copy")
def t(g: Builder, self: Value) -> Value:
    """t(Tensor self) -> Tensor; numpy_T(Tensor self): all axes in reverse. ONNX Transpose."""
    return permuted(g, self, list(reversed(range(rank_of(self)))))


@aten("mT", "mH", "matrix_H", "adjoint")
def matrix_transposed(g: Builder, self: Value) -> Value:
    """mT(Tensor self) -> Tensor; mH, matrix_H, adjoint: of real tensors the same. ONNX Transpose."""
    return transpose(g, self, -2, -1) if rank_of(self) else self


@aten
def movedim(g: Builder, self: Value, source: int | list[int], destination: int | list[int]) -> Value:
    """movedim.intlist(Tensor self, int[] source, int[] destination) -> Tensor. ONNX Transpose."""
    return _moved(g, self, source, destination)


@aten
def moveaxis(g: Builder, self: Value, source: int | list[int], destination: int | list[int]) -> Value:
    """moveaxis.intlist(Tensor self, int[] source, int[] destination) -> Tensor. ONNX Transpose."""
    return _moved(g, self, source, destination)


def _moved(g: Builder, x: Value, source: int | list[int], destination: int | list[int]) -> Value:
    sources = [axis_of(x, s) for s in ([source] if isinstance(source, int) else source)]
    targets = [axis_of(x, d) for d in ([destination] if isinstance(destination, int) else destination)]
    rest = iter([a for a in range(rank_of(x)) if a not in sources])
    return permuted(g, x, [sources[targets.index(a)] if a in targets else next(rest) for a in range(rank_of(x))])


def to_front(g: Builder, x: Value, axes: Sequence[int]) -> Value:
    """These axes first, the others behind them in their order."""
    return permuted(g, x, [*axes, *(a for a in range(rank_of(x)) if a not in axes)])


def from_front(g: Builder, x: Value, axes: Sequence[int]) -> Value:
    """What undoes `to_front`."""
    order = [*axes, *(a for a in range(rank_of(x)) if a not in axes)]
    return permuted(g, x, [order.index(a) for a in range(len(order))])


# ---------------------------------------------------------------------- repeated


@aten("expand", "broadcast_to", "expand_copy")
def expand(g: Builder, self: Value, size: list[Size], implicit: bool = False) -> Value:
    """expand(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor; -1 leaves a dim as it is. ONNX Expand."""
    return sizes.expand(g, self, size)


@aten
def expand_as(g: Builder, self: Value, other: Value) -> Value:
    """expand_as(Tensor self, Tensor other) -> Tensor. ONNX Expand."""
    return sizes.expand(g, self, shape_of(other))


@aten
def broadcast_tensors(g: Builder, tensors: list[Value]) -> list[Value]:
    """broadcast_tensors(Tensor[] tensors) -> Tensor[]. ONNX Expand."""
    return broadcast(g, tensors)


def broadcast(g: Builder, tensors: Sequence[Value]) -> list[Value]:
    """All tensors in the one shape that they broadcast to."""
    shape = common_shape([shape_of(x) for x in tensors])
    if shape is not None:
        return [sizes.expand(g, x, shape) for x in tensors]
    # Two dynamic sizes meet, and either may be 1: each is expanded by the shape of each other.
    result = []
    for x in tensors:
        for other in tensors:
            if other is not x:
                x = g.op("Expand", x, g.shape(other))
        result.append(x)
    return result


def common_shape(shapes: Sequence[Sequence[Size]]) -> list[Size] | None:
    """The shape that tensors of these shapes broadcast to; None where that hangs on which dynamic size is 1."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[Size] = []
    for axis in range(rank):
        here: list[Size] = []
        for shape in shapes:
            position = axis - (rank - len(shape))
            if position >= 0 and shape[position] != 1 and not any(dims.equal(shape[position], s) for s in here):
                here.append(shape[position])
        numbers = [s for s in here if isinstance(s, int)]
        if len(here) > 1 and not numbers:
            return None
        result.append(numbers[0] if numbers else here[0] if here else 1)
    return result


# ---------------------------------------------------------------------- elements in another order


@aten
def flip(g: Builder, self: Value, dims: list[int]) -> Value:
    """flip(Tensor self, int[] dims) -> Tensor. ONNX Slice with steps of -1."""
    return flipped(g, self, [axis_of(self, d) for d in dims])


def flipped(g: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Backwards along these axes."""
    for axis in axes if rank_of(x) else []:
        if shape_of(x)[axis] != 1:
            x = sliced(g, x, axis, -1, BACK, -1)
    return x


@aten
def fliplr(g: Builder, self: Value) -> Value:
    """fliplr(Tensor self) -> Tensor: backwards along axis 1. ONNX Slice."""
    return flipped(g, self, [1])


@aten
def flipud(g: Builder, self: Value) -> Value:
    """flipud(Tensor self) -> Tensor: backwards along axis 0. ONNX Slice."""
    return flipped(g, self, [0])


@aten
def rot90(g: Builder, self: Value, k: int = 1, dims: list[int] | None = None) -> Value:
    """rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor. ONNX Slice, Transpose."""
    a, b = (axis_of(self, d) for d in (dims if dims is not None else [0, 1]))
    turns = k % 4
    if turns == 2:
        return flipped(g, self, [a, b])
    if turns == 1:
        return transpose(g, flipped(g, self, [b]), a, b)
    return flipped(g, transpose(g, self, a, b), [b]) if turns == 3 else self


@aten
def roll(g: Builder, self: Value, shifts: list[Size], dims: list[int] | None = None) -> Value:
    """roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor

    ONNX Gather where the size is known (one node an axis), else Slice and Concat. Without dims, of all elements in a row.
    """
    if not dims:
        row = _rolled(g, sizes.reshape(g, self, [-1]), 0, shifts[0])
        return sizes.reshape(g, row, shape_of(self))
    for shift, dim in zip(shifts, dims, strict=True):
        self = _rolled(g, self, axis_of(self, dim), shift) if rank_of(self) else self
    return self


def _rolled(g: Builder, x: Value, axis: int, shift: Size) -> Value:
    size = shape_of(x)[axis]
    if isinstance(size, int) and isinstance(shift, int):
        if size == 0 or shift % size == 0:
            return x
        if size <= 4096:
            return g.op("Gather", x, g.const([(i - shift) % size for i in range(size)]), axis=axis)
        shift %= size
    if isinstance(shift, int) and shift < 0 and dims.compare(">=", size, -shift):
        first = -shift  # so many are cut off in front: a number that needs no node
        return _swapped(g, x, axis, first)
    if not (isinstance(shift, int) and shift > 0 and dims.compare(">=", size, shift)):
        shift = dims.mod(shift, dims.maximum(size, 1))
    if isinstance(shift, int):
        return _swapped(g, x, axis, -shift)
    return _swapped(g, x, axis, size - shift)


def _swapped(g: Builder, x: Value, axis: int, cut: Size) -> Value:
    """What is behind `cut` and then what is before it. The sum of the two sizes is the size again, whatever the parts are."""
    result: Value = g.op("Concat", sliced(g, x, axis, cut), sliced(g, x, axis, 0, cut), axis=axis)
    result.shape = x.shape
    return result


# ---------------------------------------------------------------------- blocks of channels


@aten
def pixel_shuffle(g: Builder, self: Value, upscale_factor: int) -> Value:
    """pixel_shuffle(Tensor self, int upscale_factor) -> Tensor: (*, C r^2, H, W) to (*, C, H r, W r). ONNX DepthToSpace."""
    *batch, c, h, w = shape_of(self)
    r, n = upscale_factor, len(batch)
    result = [*batch, dims.floordiv(c, r * r), h * r, w * r]
    if self.dtype in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16):
        images = self if n == 1 else sizes.reshape(g, self, [dims.product(batch), c, h, w])
        return sizes.reshape(g, g.op("DepthToSpace", images, blocksize=r, mode="CRD"), result)
    apart = sizes.reshape(g, self, [*batch, dims.floordiv(c, r * r), r, r, h, w])
    return sizes.reshape(g, permuted(g, apart, [*range(n), n, n + 3, n + 1, n + 4, n + 2]), result)


@aten
def pixel_unshuffle(g: Builder, self: Value, downscale_factor: int) -> Value:
    """pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor: (*, C, H r, W r) to (*, C r^2, H, W). ONNX Reshape, Transpose."""
    *batch, c, h, w = shape_of(self)
    r, n = downscale_factor, len(batch)
    h, w = dims.floordiv(h, r), dims.floordiv(w, r)
    apart = sizes.reshape(g, self, [*batch, c, h, r, w, r])
    return sizes.reshape(g, permuted(g, apart, [*range(n), n, n + 2, n + 4, n + 1, n + 3]), [*batch, c * (r * r), h, w])


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(g: Builder, self: Value, groups: Size) -> Value:
    """channel_shuffle(Tensor self, SymInt groups) -> Tensor: (N, g c, *) seen as (N, c, g, *). ONNX Reshape, Transpose, Reshape."""
    n, c, *rest = shape_of(self)
    apart = sizes.reshape(g, self, [n, groups, dims.floordiv(c, groups), *rest])
    return sizes.reshape(g, permuted(g, apart, [0, 2, 1, *range(3, 3 + len(rest))]), [n, c, *rest])


@aten("unfold", "unfold_copy")
def unfold(g: Builder, self: Value, dimension: int, size: Size, step: Size) -> Value:
    """unfold(Tensor self, int dimension, int size, int step) -> Tensor: windows along `dimension`, their elements in a new last axis.

    Windows that lie side by side are a Reshape; others ONNX Gather by a table of places, of a Range where the axis is dynamic.
    """
    if not rank_of(self):
        return sliced(g, sizes.unsqueeze(g, self, [0]), 0, 0, size)
    axis, shape = axis_of(self, dimension), shape_of(self)
    size, step = static_int(size, "the size of a window"), static_int(step, "the step of a window")
    count = dims.floordiv(shape[axis] - size, step) + 1
    if size == step and dims.equal(shape[axis], count * size):
        windows = split_axis(g, self, axis, [count, size])
    else:
        windows = g.op("Gather", self, _windows(g, shape[axis], count, size, step), axis=axis)
    windows.shape = (*shape[:axis], count, size, *shape[axis + 1:])
    order = [a for a in range(rank_of(windows)) if a != axis + 1]
    return permuted(g, windows, [*order, axis + 1])


def _windows(g: Builder, length: Size, count: Size, size: int, step: int) -> Value:
    """(count, size): the places that each window reads."""
    if isinstance(count, int):
        return g.const([[i * step + j for j in range(size)] for i in range(count)] if count else [], DataType.INT64)
    starts = g.op("Range", g.const(0), g.scalar(length - (size - 1)), g.const(step))
    return g.op("Add", sizes.unsqueeze(g, starts, [1]), g.const(list(range(size))))

