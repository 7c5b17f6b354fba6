"""Reductions: sums, means, products, extremes, truth values and variances over dims.

ONNX leaves open what the greatest of numbers and NaN is, and ONNX Runtime mostly skips NaN, where PyTorch returns it; it is
not worth the nodes to change that.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from onnxport.ops.registry import aten
from onnxport.ops.support import Number, axes_of, cast, floating, promoted, rank_of, shape_of, tensor
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import FLOATS, from_torch, is_float, to_torch
from onnxport.target.sizes import reshape, squeeze
from onnxport.target.value import DataType, Value

Axes = int | Sequence[int] | None
HALVES = frozenset({DataType.FLOAT16, DataType.BFLOAT16})


def reduce(g: Builder, op_type: str, x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    """One ONNX reduction over `axes`; of a scalar, or over no dim, nothing is to be done."""
    if not axes:
        return x
    every = len(axes) == rank_of(x)
    return g.op(op_type, x, None if every else g.const(list(axes)), keepdims=int(keepdim))


def count(x: Value, axes: Sequence[int]) -> Size:
    """How many elements are reduced to one."""
    return dims.product(shape_of(x)[a] for a in axes)


def may_be_none(g: Builder, n: Size) -> bool:
    """Whether `n` elements may be none in a running graph; the axes of its inputs are taken to have at least one."""
    if isinstance(n, int):
        return n == 0
    given = {name: dims.symbol(name, 1) for name in n.symbols if name in g.sources and g.sources[name][0].node is None}
    return dims.compare(">=", dims.substitute(n, given), 1) is not True


def wide(g: Builder, x: Value) -> Value:
    """Half floats as float32, in which PyTorch accumulates."""
    return cast(g, x, DataType.FLOAT) if x.dtype in HALVES else x


def summable(g: Builder, x: Value, dtype: torch.dtype | None) -> Value:
    """`x` as the dtype of its sum: `dtype`, or int64 for integers and bools."""
    if dtype is not None:
        return cast(g, x, from_torch(dtype))
    return x if x.dtype in FLOATS else cast(g, x, DataType.INT64)


def size_as(g: Builder, size: Size, dtype: DataType | None) -> Value:
    """A size as a scalar of a float dtype."""
    return g.const(float(size), dtype) if isinstance(size, int) else g.op("Cast", g.scalar(size), to=dtype)


# ---------------------------------------------------------------------- sums and products


@aten("sum")
def sum_(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
    sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

    Integers and bools give int64. ONNX ReduceSum.
    """
    return reduce(g, "ReduceSum", summable(g, self, dtype), axes_of(self, dim), keepdim)


@aten
def sum_to_size(g: Builder, self: Value, size: Sequence[Size]) -> Value:
    """sum_to_size(Tensor self, SymInt[] size) -> Tensor. The sum over what broadcasting `size` repeats. ONNX ReduceSum."""
    extra, shape = rank_of(self) - len(size), shape_of(self)
    single = [i for i, s in enumerate(size) if s == 1 and shape[i + extra] != 1]
    if not (extra or single) and size:
        return self
    x = reduce(g, "ReduceSum", summable(g, self, None), list(range(extra)), False)
    return reduce(g, "ReduceSum", x, single, True)


@aten
def nansum(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor. ONNX IsNaN, Where, ReduceSum."""
    return sum_(g, without_nan(g, self), dim, keepdim, dtype)


def without_nan(g: Builder, x: Value) -> Value:
    """`x` with 0 for NaN."""
    if not is_float(x.dtype):
        return x
    return g.op("Where", g.op("IsNaN", x), g.const(0.0, x.dtype), x)


@aten
def mean(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """mean(Tensor self, *, ScalarType? dtype=None) -> Tensor
    mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

    The mean of nothing is NaN. ONNX ReduceMean.
    """
    return average(g, summable(g, self, dtype), axes_of(self, dim), keepdim)


def average(g: Builder, x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    """The mean, where ONNX Runtime gives 0 for no elements."""
    n = count(x, axes)
    if may_be_none(g, n):
        return g.op("Div", reduce(g, "ReduceSum", x, axes, keepdim), size_as(g, n, x.dtype))
    return reduce(g, "ReduceMean", x, axes, keepdim)


@aten
def nanmean(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

    ONNX IsNaN, Where, ReduceSum, Not, Cast, Div.
    """
    x, axes = summable(g, self, dtype), axes_of(self, dim)
    numbers = reduce(g, "ReduceSum", cast(g, g.op("Not", g.op("IsNaN", x)), x.dtype or DataType.FLOAT), axes, keepdim)
    return g.op("Div", reduce(g, "ReduceSum", without_nan(g, x), axes, keepdim), numbers)


@aten
def prod(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
    prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

    Integers and bools give int64. ONNX ReduceProd.
    """
    return reduce(g, "ReduceProd", summable(g, self, dtype), axes_of(self, dim), keepdim)


@aten
def logsumexp(g: Builder, self: Value, dim: Axes, keepdim: bool = False) -> Value:
    """logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor. ONNX ReduceLogSumExp, at opset 28 of what is less the greatest."""
    x, axes = floating(g, self), axes_of(self, dim)
    if g.opset < 28 or not axes:
        return reduce(g, "ReduceLogSumExp", x, axes, keepdim)
    # ONNX Runtime 1.32 has no kernel for ReduceLogSumExp-28 and runs its definition, which overflows.
    x = wide(g, x)
    assert x.dtype is not None
    largest = torch.finfo(to_torch(x.dtype)).max
    high = g.op("Clip", reduce(g, "ReduceMax", x, axes, True), g.const(-largest, x.dtype), g.const(largest, x.dtype))
    result = g.op("Add", reduce(g, "ReduceLogSumExp", g.op("Sub", x, high), axes, True), high)
    return cast(g, result if keepdim else squeeze(g, result, axes), self.dtype if self.dtype in FLOATS else x.dtype)


@aten
def count_nonzero(g: Builder, self: Value, dim: Axes = None) -> Value:
    """count_nonzero(Tensor self, int? dim=None) -> Tensor; count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor

    NaN is not zero. ONNX Cast, ReduceSum.
    """
    ones = cast(g, cast(g, self, DataType.BOOL), DataType.INT64)
    return reduce(g, "ReduceSum", ones, axes_of(self, dim), False)


# ---------------------------------------------------------------------- extremes


def extreme(g: Builder, op_type: str, x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    """ReduceMax or ReduceMin; of bools too."""
    if x.dtype != DataType.BOOL:
        return reduce(g, op_type, x, axes, keepdim)
    return any_of(g, x, axes, keepdim) if op_type == "ReduceMax" else all_of(g, x, axes, keepdim)


def with_index(g: Builder, which: str, x: Value, dim: int, keepdim: bool) -> tuple[Value, Value]:
    """The extreme of each row and the first index at which it stands."""
    axes = axes_of(x, dim)
    return extreme(g, f"Reduce{which}", x, axes, keepdim), _index(g, f"Arg{which}", x, axes, keepdim)


def _index(g: Builder, op_type: str, x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    if not axes:
        return g.const(0)
    x = cast(g, x, DataType.INT32) if x.dtype == DataType.BOOL else x
    return g.op(op_type, x, axis=axes[0], keepdims=int(keepdim))


def _either(g: Builder, op_type: str, a: Value, b: Value) -> Value:
    left, right = promoted(g, a, b)
    if left.dtype == DataType.BOOL:
        op_type = "Or" if op_type == "Max" else "And"
    return g.op(op_type, left, right)


@aten
def amax(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    """amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor. ONNX ReduceMax."""
    return extreme(g, "ReduceMax", self, axes_of(self, dim), keepdim)


@aten
def amin(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    """amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor. ONNX ReduceMin."""
    return extreme(g, "ReduceMin", self, axes_of(self, dim), keepdim)


@aten
def aminmax(g: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    """aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max). ONNX ReduceMin, ReduceMax."""
    axes = axes_of(self, dim)
    return extreme(g, "ReduceMin", self, axes, keepdim), extreme(g, "ReduceMax", self, axes, keepdim)


@aten("max")
def max_(g: Builder, self: Value) -> Value:
    """max(Tensor self) -> Tensor. ONNX ReduceMax."""
    return extreme(g, "ReduceMax", self, axes_of(self, None), False)


@aten("min")
def min_(g: Builder, self: Value) -> Value:
    """min(Tensor self) -> Tensor. ONNX ReduceMin."""
    return extreme(g, "ReduceMin", self, axes_of(self, None), False)


@aten("max.dim")
def max_dim(g: Builder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices). ONNX ReduceMax, ArgMax."""
    return with_index(g, "Max", self, dim, keepdim)


@aten("min.dim")
def min_dim(g: Builder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices). ONNX ReduceMin, ArgMin."""
    return with_index(g, "Min", self, dim, keepdim)


@aten("max.other")
def max_other(g: Builder, self: Value, other: Value | Number) -> Value:
    """max.other(Tensor self, Tensor other) -> Tensor. ONNX Max, of bools Or."""
    return _either(g, "Max", self, tensor(g, other))


@aten("min.other")
def min_other(g: Builder, self: Value, other: Value | Number) -> Value:
    """min.other(Tensor self, Tensor other) -> Tensor. ONNX Min, of bools And."""
    return _either(g, "Min", self, tensor(g, other))


@aten
def argmax(g: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor

    The first of equal ones; without dim, counted over all elements. ONNX ArgMax.
    """
    return _arg(g, "ArgMax", self, dim, keepdim)


@aten
def argmin(g: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor. ONNX ArgMin."""
    return _arg(g, "ArgMin", self, dim, keepdim)


def _arg(g: Builder, op_type: str, x: Value, dim: int | None, keepdim: bool) -> Value:
    rank = rank_of(x)
    if dim is not None or rank == 0:
        return _index(g, op_type, x, axes_of(x, dim), keepdim)
    index = _index(g, op_type, reshape(g, x, [-1]), [0], keepdim and rank == 1)
    return reshape(g, index, [1] * rank) if keepdim else index


# ---------------------------------------------------------------------- truth


def any_of(g: Builder, x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    """Whether any of the bools is true. Where a reduced dim may be empty a sum says so, the greatest of nothing does not."""
    if not axes:
        return x
    if g.opset >= 20 and dims.compare(">", count(x, axes), 0):
        return reduce(g, "ReduceMax", x, axes, keepdim)
    return cast(g, reduce(g, "ReduceSum", cast(g, x, DataType.INT32), axes, keepdim), DataType.BOOL)


def all_of(g: Builder, x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    """Whether all of the bools are true."""
    if not axes:
        return x
    if g.opset >= 20 and dims.compare(">", count(x, axes), 0):
        return reduce(g, "ReduceMin", x, axes, keepdim)
    return cast(g, reduce(g, "ReduceProd", cast(g, x, DataType.INT32), axes, keepdim), DataType.BOOL)


def _truth_axes(x: Value, dim: Axes) -> list[int]:
    # Unlike elsewhere in PyTorch an empty list means no dim here.
    return [] if isinstance(dim, Sequence) and not dim else axes_of(x, dim)


def _truth_dtype(x: Value) -> DataType:
    return DataType.UINT8 if x.dtype == DataType.UINT8 else DataType.BOOL


@aten("any")
def any_(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    """any(Tensor self) -> Tensor; any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
    any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor

    bool, for uint8 uint8. ONNX ReduceMax (from opset 20), or Cast and ReduceSum.
    """
    return cast(g, any_of(g, cast(g, self, DataType.BOOL), _truth_axes(self, dim), keepdim), _truth_dtype(self))


@aten("all")
def all_(g: Builder, self: Value, dim: Axes = None, keepdim: bool = False) -> Value:
    """all(Tensor self) -> Tensor; all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
    all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor

    bool, for uint8 uint8. ONNX ReduceMin (from opset 20), or Cast and ReduceProd.
    """
    return cast(g, all_of(g, cast(g, self, DataType.BOOL), _truth_axes(self, dim), keepdim), _truth_dtype(self))


@aten
def _is_all_true(g: Builder, self: Value) -> Value:
    """_is_all_true(Tensor self) -> Tensor: bool, of bools. ONNX as for all."""
    return all_(g, self)


@aten
def _is_any_true(g: Builder, self: Value) -> Value:
    """_is_any_true(Tensor self) -> Tensor: bool, of bools. ONNX as for any."""
    return any_(g, self)


# ---------------------------------------------------------------------- variance


def _degrees(g: Builder, n: Size, correction: Number, dtype: DataType | None) -> Value:
    """n - correction, not less than 0, as a scalar."""
    if isinstance(n, int):
        return g.const(max(float(n - correction), 0.0), dtype)
    if float(correction).is_integer():
        least = correction > 1 or may_be_none(g, n)
        return size_as(g, dims.maximum(n - int(correction), 0) if least else n - int(correction), dtype)
    return g.op("Max", g.op("Sub", size_as(g, n, dtype), g.const(correction, dtype)), g.const(0.0, dtype))


def moments(g: Builder, x: Value, dim: Axes, correction: Number, keepdim: bool, root: bool) -> tuple[Value, Value]:
    """(variance or its square root, mean with its dims kept), in float32 for halves."""
    x, axes = wide(g, x), axes_of(x, dim)
    n = count(x, axes)
    middle = average(g, x, axes, True)
    apart = g.op("Sub", x, middle)
    if not axes:  # one number is 0 away from its mean
        return g.op("Div", apart, _degrees(g, 1, correction, x.dtype)), middle
    if correction == 0 and not isinstance(n, int):
        spread = average(g, g.op("Mul", apart, apart), axes, keepdim)
        return (g.op("Sqrt", spread) if root else spread), middle
    degrees = _degrees(g, n, correction, x.dtype)
    spread = reduce(g, "ReduceL2" if root else "ReduceSumSquare", apart, axes, keepdim)
    return g.op("Div", spread, g.op("Sqrt", degrees) if root else degrees), middle


def _correction(unbiased: bool, correction: Number | None) -> Number:
    return correction if correction is not None else 1 if unbiased else 0


def _var(g: Builder, x: Value, dim: Axes, correction: Number, keepdim: bool, root: bool) -> tuple[Value, Value]:
    axes = axes_of(x, dim)
    spread, middle = moments(g, x, dim, correction, keepdim, root)
    if axes and not keepdim:
        middle = reshape(g, middle, [s for i, s in enumerate(shape_of(x)) if i not in axes])
    assert x.dtype is not None
    return cast(g, spread, x.dtype), cast(g, middle, x.dtype)


@aten
def var(g: Builder, self: Value, dim: Axes = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False) -> Value:
    """var(Tensor self, bool unbiased=True) -> Tensor; var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
    var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor

    ONNX ReduceMean, Sub, ReduceSumSquare, Div.
    """
    return _var(g, self, dim, _correction(unbiased, correction), keepdim, False)[0]


@aten
def std(g: Builder, self: Value, dim: Axes = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False) -> Value:
    """std(Tensor self, bool unbiased=True) -> Tensor and .dim, .correction as for var. ONNX ReduceMean, Sub, ReduceL2, Div."""
    return _var(g, self, dim, _correction(unbiased, correction), keepdim, True)[0]


@aten
def var_mean(g: Builder, self: Value, dim: Axes = None, unbiased: bool = True, correction: Number | None = None,
             keepdim: bool = False) -> tuple[Value, Value]:
    """var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor) and .dim, .correction as for var."""
    return _var(g, self, dim, _correction(unbiased, correction), keepdim, False)


@aten
def std_mean(g: Builder, self: Value, dim: Axes = None, unbiased: bool = True, correction: Number | None = None,
             keepdim: bool = False) -> tuple[Value, Value]:
    """std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor) and .dim, .correction as for var."""
    return _var(g, self, dim, _correction(unbiased, correction), keepdim, True)


