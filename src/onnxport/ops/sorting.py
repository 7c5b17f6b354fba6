"""Order: sort, top k, unique elements, places among sorted numbers, counts."""

from __future__ import annotations

from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, rank_of, shape_of
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
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
    """sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices); sort.stable(…, *, bool? stable). ONNX TopK."""
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
