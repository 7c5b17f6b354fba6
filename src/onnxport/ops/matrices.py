"""What the matrix factorisations share: rows, columns, triangles and diagonals of (..., rows, columns)."""

from __future__ import annotations

from onnxport import errors
from onnxport.ops.attention import count_up
from onnxport.ops.creation import filled, tril, triu
from onnxport.ops.diagonals import diagonal_mask
from onnxport.ops.reduction import reduce
from onnxport.ops.support import cast, rank_of, shape_of
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.shape_helpers import broadcast
from onnxport.target.sizes import expand, unsqueeze
from onnxport.target.value import DataType, Value


def swapped(g: Builder, x: Value) -> Value:
    """The transposed matrices."""
    last = rank_of(x) - 1
    return g.op("Transpose", x, perm=[*range(last - 1), last, last - 1])


def row(g: Builder, x: Value, at: Value) -> Value:
    """One row, (..., 1, columns). at: an int64 scalar."""
    return g.op("Gather", x, unsqueeze(g, at, [0]), axis=rank_of(x) - 2)


def column(g: Builder, x: Value, at: Value) -> Value:
    """One column, (..., rows, 1). at: an int64 scalar."""
    return g.op("Gather", x, unsqueeze(g, at, [0]), axis=rank_of(x) - 1)


def row_numbers(g: Builder, size: Size) -> Value:
    """0, 1, ... as (size, 1)."""
    return unsqueeze(g, count_up(g, size), [1])


def identity(g: Builder, size: Size, dtype: DataType | None, columns: Size | None = None) -> Value:
    """The identity matrix, or its first columns."""
    return g.op("EyeLike", filled(g, [size, size if columns is None else columns], 0, dtype))


def triangle(g: Builder, x: Value, upper: bool, offset: int = 0) -> Value:
    """One triangle, zeros elsewhere. offset: the diagonal from which on (upper) or up to which (lower) elements stay."""
    return triu(g, x, offset) if upper else tril(g, x, offset)


def diagonal_of(g: Builder, x: Value) -> Value:
    """The diagonals, (..., n), of square matrices or of ones with more rows than columns, as sums of columns in which nothing else is left."""
    *_, rows, columns = shape_of(x)
    here = diagonal_mask(g, rows, columns, 0)
    return reduce(g, "ReduceSum", g.op("Where", here, x, g.const(0, x.dtype)), [rank_of(x) - 2], False)


def first_true(g: Builder, x: Value) -> Value:
    """Of bools (..., n) the number of the first true one, counted from 1, or 0, as int32: what LAPACK calls info."""
    batch, size = shape_of(x)[:-1], shape_of(x)[-1]
    if size == 0:
        return filled(g, batch, 0, DataType.INT32)
    found, axis = cast(g, x, DataType.INT32), rank_of(x) - 1
    place = g.op("Add", cast(g, g.op("ArgMax", found, axis=axis, keepdims=0), DataType.INT32), g.const(1, DataType.INT32))
    return g.op("Mul", place, reduce(g, "ReduceMax", found, [axis], False))


def is_zero(g: Builder, x: Value) -> Value:
    """Where floats are 0; NaN is not."""
    return g.op("Not", cast(g, x, DataType.BOOL))


def same_batch(g: Builder, a: Value, b: Value) -> tuple[Value, Value]:
    """Both with the same leading dims."""
    if shape_of(a)[:-2] == shape_of(b)[:-2]:
        return a, b
    batch = broadcast(shape_of(a)[:-2], shape_of(b)[:-2])
    if batch is None or None in batch:
        raise errors.UnsupportedError("dims of which only the run knows whether they broadcast")
    return expand(g, a, [*batch, *shape_of(a)[-2:]]), expand(g, b, [*batch, *shape_of(b)[-2:]])  # type: ignore[list-item]
