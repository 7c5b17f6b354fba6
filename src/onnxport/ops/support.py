"""What operator functions of every family use: promotion, axes, numbers as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnxport import errors
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import promote
from onnxport.target.value import DataType, Shape, Value

Number = bool | int | float


def tensor(g: Builder, x: Any, dtype: DataType | None = None) -> Value:
    """A tensor, number or size as a value of `dtype` (None: as it is)."""
    if isinstance(x, Dim):
        x = g.scalar(x)
    if isinstance(x, Value):
        return x if dtype is None else cast(g, x, dtype)
    return g.const(x, dtype)


def cast(g: Builder, x: Value, dtype: DataType) -> Value:
    """`x` as `dtype` with PyTorch's rules of conversion."""
    if x.dtype == dtype:
        return x
    return g.op("Cast", x, to=dtype)


def promoted(g: Builder, *operands: Any, floating: bool = False) -> list[Value]:
    """Tensors and numbers, all cast to PyTorch's result type of them (floating: ints and bools count as the default float)."""
    dtype = result_type(*operands)
    if floating and dtype not in _FLOATING:
        dtype = DataType.FLOAT
    return [tensor(g, x, dtype) for x in operands]


_FLOATING = frozenset({DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16, DataType.COMPLEX64, DataType.COMPLEX128})


def result_type(*operands: Any) -> DataType:
    """PyTorch's result type of tensors, numbers and sizes."""
    kinds: list[Any] = []
    for x in operands:
        if isinstance(x, Value):
            if x.dtype is None:
                raise errors.UnsupportedError("the dtype of an operand is not known")
            kinds.append((x.dtype, x.rank))
        else:
            kinds.append(0 if isinstance(x, Dim) else x)
    if len(kinds) == 2 and isinstance(kinds[0], tuple) and isinstance(kinds[1], tuple) and kinds[0][0] == kinds[1][0]:
        return kinds[0][0]
    found = promote(*kinds)
    unknown = [kind for kind in kinds if isinstance(kind, tuple) and kind[1] is None]
    if unknown and any(promote(*[(kind[0], 0) if kind is one else kind for kind in kinds]) != found for one in unknown):
        raise errors.UnsupportedError("the result type of these tensors depends on whether one has dims, and its rank is not known; "
                                      "convert them to one dtype")
    return found


def rank_of(x: Value) -> int:
    """The rank; an error where it is not known."""
    if x.shape is None:
        raise errors.UnsupportedError("the rank of a tensor is not known here")
    return len(x.shape)


def shape_of(x: Value) -> Shape:
    """The symbolic shape; an error where the rank is not known."""
    if x.shape is None:
        raise errors.UnsupportedError("the rank of a tensor is not known here")
    return x.shape


def axis_of(x: Value, dim: int) -> int:
    """`dim` as a non-negative axis (of a scalar: 0)."""
    rank = max(rank_of(x), 1)
    if not -rank <= dim < rank:
        raise errors.UnsupportedError(f"dim {dim} is out of range for rank {rank}")
    return dim % rank


def axes_of(x: Value, dim: int | Sequence[int] | None) -> list[int]:
    """Axes to reduce over: all for None or an empty list."""
    if dim is None:
        return list(range(rank_of(x)))
    if isinstance(dim, int):
        return [axis_of(x, dim)] if rank_of(x) else []
    if len(dim) == 0 or rank_of(x) == 0:
        return list(range(rank_of(x)))
    return sorted(axis_of(x, d) for d in dim)


def pair(values: int | Sequence[Any], count: int) -> list[Any]:
    """One number for each spatial dim."""
    if isinstance(values, int):
        return [values] * count
    values = list(values)
    return values * count if len(values) == 1 else values


def static_int(size: Size, what: str) -> int:
    """A size that ONNX wants as an attribute; an error that names it where it is dynamic."""
    if isinstance(size, int):
        return size
    raise errors.UnsupportedError(f"{what} must be a fixed number here, not the dynamic size {size}")


def zero(g: Builder, dtype: DataType) -> Value:
    """0 as a scalar of `dtype`."""
    return g.const(False if dtype == DataType.BOOL else 0, dtype)


def is_one(x: Any) -> bool:
    """Whether `x` is the number 1, and no tensor or size."""
    return isinstance(x, (int, float)) and x == 1


def floating(g: Builder, x: Any) -> Value:
    """`x` as a float: ints and bools become PyTorch's default dtype."""
    return promoted(g, x, floating=True)[0]
