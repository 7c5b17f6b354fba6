"""Order: sort, top k, unique elements, places among sorted numbers."""

from __future__ import annotations

from typing import Any

from onnxport.ops.cumulative import cumsum
from onnxport.ops.indexing import gather, nonzero_rows, sharing_count
from onnxport.ops.pieces import picked, sliced
from onnxport.ops.registry import aten
from onnxport.ops.scattering import scatter_elements
from onnxport.ops.support import axis_of, cast, promoted, rank_of, shape_of
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import is_float
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64


def top(g: Builder, x: Value, k: Size, axis: int, largest: bool) -> tuple[Value, Value]:
    """The k largest or smallest along `axis`, sorted, equal ones in their order, and their places. ONNX TopK."""
    if rank_of(x) == 0:
        values, places = top(g, sizes.reshape(g, x, [1]), k, 0, largest)
        return sizes.reshape(g, values, []), sizes.reshape(g, places, [])
    dtype = x.dtype
    if dtype == DataType.BOOL:
        x = cast(g, x, DataType.INT32)
    values, places = g.op("TopK", x, g.sizes([k]), axis=axis, largest=int(largest), sorted=1, outputs=2)
    return cast(g, values, dtype), places  # type: ignore[arg-type]


@aten
def topk(g: Builder, self: Value, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Value, Value]:
    """topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices). ONNX TopK."""
    return top(g, self, k, axis_of(self, dim), largest)


@aten
def sort(g: Builder, self: Value, dim: int = -1, descending: bool = False, stable: bool | None = None) -> tuple[Value, Value]:
    """sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices); sort.stable(…, *, bool? stable)

    ONNX TopK.
    """
    axis = axis_of(self, dim)
    return top(g, self, shape_of(self)[axis] if rank_of(self) else 1, axis, descending)


@aten
def argsort(g: Builder, self: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    """argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor; argsort.stable(…, *, bool stable). ONNX TopK."""
    return sort(g, self, dim, descending)[1]


@aten
def msort(g: Builder, self: Value) -> Value:
    """msort(Tensor self) -> Tensor: sorted along axis 0. ONNX TopK."""
    return sort(g, self, 0)[0]


@aten
def kthvalue(g: Builder, self: Value, k: Size, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices): the k-th smallest

    ONNX TopK, Gather.
    """
    axis = axis_of(self, dim)
    both = top(g, self, k, axis, False)
    if rank_of(self) == 0:
        return both
    last = k - 1 if isinstance(k, int) else -1
    if keepdim:
        return sliced(g, both[0], axis, last, k), sliced(g, both[1], axis, last, k)
    return picked(g, both[0], axis, last), picked(g, both[1], axis, last)


# ---------------------------------------------------------------------- unique elements


def _comparable(g: Builder, x: Value) -> Value:
    """`x` in a dtype that ONNX Runtime's Unique takes."""
    if x.dtype == DataType.BOOL:
        return cast(g, x, DataType.INT8)
    if x.dtype in (DataType.FLOAT, DataType.DOUBLE, DataType.INT8, INT64):
        return x
    return cast(g, x, DataType.FLOAT if is_float(x.dtype) else INT64)


def _none(g: Builder) -> Value:
    return g.const([], INT64)


@aten("_unique2", "_unique")
def unique2(g: Builder, self: Value, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> list[Value]:
    """_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)

    ONNX Unique.
    """
    values, _, inverse, counts = g.op("Unique", _comparable(g, sizes.reshape(g, self, [-1])), sorted=1, outputs=4)
    _one_count(values, counts)
    where = sizes.reshape(g, inverse, shape_of(self)) if return_inverse else _none(g)
    return [cast(g, values, self.dtype), where, counts if return_counts else _none(g)]  # type: ignore[arg-type]


@aten
def unique_dim(g: Builder, self: Value, dim: int, sorted: bool = True, return_inverse: bool = False,
               return_counts: bool = False) -> list[Value]:
    """unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)

    The different slices along `dim`. ONNX Unique.
    """
    axis = axis_of(self, dim)
    values, _, inverse, counts = g.op("Unique", _comparable(g, self), axis=axis, sorted=1, outputs=4)
    _one_count(values, counts, axis)
    return [cast(g, values, self.dtype), inverse, counts]  # type: ignore[arg-type]


def _one_count(values: Value, counts: Value, axis: int = 0) -> None:
    """There are as many counts as values."""
    counts.shape = (shape_of(values)[axis],)


@aten
def unique_consecutive(g: Builder, self: Value, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> list[Value]:
    """unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)

    The first of each run of equal elements (slices along `dim`). ONNX Equal of neighbours, Compress, CumSum, NonZero.
    """
    dim = None if rank_of(self) == 1 else dim
    axis = 0 if dim is None else axis_of(self, dim)
    x = sizes.reshape(g, self, [-1]) if dim is None else self
    if dim is not None:  # PyTorch gives all three anyway
        return_inverse = return_counts = True
    length = shape_of(x)[axis]
    if length == 0:
        return [x, sizes.reshape(g, _none(g), shape_of(self)) if return_inverse and dim is None else _none(g), _none(g)]
    starts = g.op("Concat", g.const([True]), _changes(g, x, axis), axis=0)
    values = sharing_count(g, starts, g.op("Compress", x, starts, axis=axis), axis)
    inverse = counts = _none(g)
    if return_inverse:
        inverse = g.op("Sub", cumsum(g, starts, 0), g.const(1))
        inverse = sizes.reshape(g, inverse, shape_of(self)) if dim is None else inverse
    if return_counts:
        places = nonzero_rows(g, starts)[0]
        counts = g.op("Sub", g.op("Concat", sliced(g, places, 0, 1), g.sizes([length]), axis=0), places)
        counts.shape = places.shape
    return [values, inverse, counts]


def _changes(g: Builder, x: Value, axis: int) -> Value:
    """Whether each slice but the first differs from the one before it."""
    same = g.op("Equal", sliced(g, x, axis, 1), sliced(g, x, axis, 0, -1))
    others = [a for a in range(rank_of(x)) if a != axis]
    if not others:
        return g.op("Not", same)
    all_same = g.op("ReduceMin", cast(g, same, DataType.INT32), g.const(others), keepdims=0)
    return g.op("Not", cast(g, all_same, DataType.BOOL))


# ---------------------------------------------------------------------- places among sorted numbers


_FEW = 256  # up to so many boundaries each number is simply compared with all of them


@aten("searchsorted", "searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(g: Builder, sorted_sequence: Value, self: Any, out_int32: bool = False, right: bool = False, side: str | None = None,
                 sorter: Value | None = None) -> Value:
    """searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None,
    Tensor? sorter=None) -> Tensor

    How many numbers of the sequence are less (right: or equal). Few of them: ONNX comparison and ReduceSum; many: one TopK of both.
    """
    if sorter is not None:
        sorted_sequence = gather(g, sorted_sequence, -1, sorter)
    return search(g, sorted_sequence, self, right or side == "right", out_int32)


@aten("bucketize", "bucketize.Tensor", "bucketize.Scalar")
def bucketize(g: Builder, self: Any, boundaries: Value, out_int32: bool = False, right: bool = False) -> Value:
    """bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor: as searchsorted."""
    return search(g, boundaries, self, right, out_int32)


def search(g: Builder, sequence: Value, given: Any, right: bool, narrow: bool = False) -> Value:
    """How many numbers of the sequence (..., n) are less than each given one; right: or equal. As int64, narrow: as int32."""
    sequence, x = promoted(g, sequence, given)
    shape, length = shape_of(x), shape_of(sequence)[-1]
    if isinstance(length, int) and length <= _FEW:
        count = _compared(g, sequence, x, right, DataType.INT32 if narrow else INT64)
    else:
        if rank_of(sequence) == 1:
            x = sizes.reshape(g, x, [-1])
        count = cast(g, _merged_order(g, sequence, x, right), DataType.INT32 if narrow else INT64)
    return sizes.reshape(g, count, shape)


def _compared(g: Builder, sequence: Value, x: Value, right: bool, dtype: DataType) -> Value:
    """NaN is greater than all: what counts is that the number in the sequence is not greater (or equal)."""
    column = sizes.unsqueeze(g, x, [rank_of(x)])
    if rank_of(sequence) > 1:
        sequence = sizes.unsqueeze(g, sequence, [rank_of(sequence) - 1])
    below = g.op("Not", g.op("Greater" if right else "GreaterOrEqual", sequence, column))
    return g.op("ReduceSum", cast(g, below, dtype), g.const([rank_of(x)]), keepdims=0)


def _merged_order(g: Builder, sequence: Value, x: Value, right: bool) -> Value:
    """Sorts both together (equal ones stay in their order) and counts the numbers of the sequence before each of `x`."""
    nowhere = g.op("IsNaN", x) if is_float(x.dtype) else None  # greater than all, and no TopK says where it goes
    if nowhere is not None:
        x = g.op("Where", nowhere, g.const(float("inf"), x.dtype), x)
    axis = rank_of(x) - 1
    many, few = shape_of(x)[axis], shape_of(sequence)[axis]
    both = g.op("Concat", *((sequence, x) if right else (x, sequence)), axis=axis)
    _, places = top(g, both, many + few, axis, False)
    edge = g.scalar(few if right else many)
    is_boundary = g.op("Less", places, edge) if right else g.op("Not", g.op("Less", places, edge))
    before = g.op("CumSum", cast(g, is_boundary, INT64), g.const(axis))
    back = scatter_elements(g, places, places, before, axis)
    count = sliced(g, back, axis, few) if right else sliced(g, back, axis, 0, many)
    return count if nowhere is None else g.op("Where", nowhere, g.scalar(few), count)
