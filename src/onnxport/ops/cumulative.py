"""Running sums, products and extremes, and differences between neighbours."""

from __future__ import annotations

import torch

from onnxport import errors
from onnxport.ops.loops import scan
from onnxport.ops.reduction import summable
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, axis_of, cast, floating, promoted, rank_of, shape_of
from onnxport.target.builder import Builder
from onnxport.target.dtypes import is_integer
from onnxport.target.sizes import expand, unsqueeze
from onnxport.target.value import DataType, Value

_LARGEST_TRIANGLE = 256  # a matrix product instead of a running sum costs as much again for each row


@aten
def cumsum(g: Builder, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor

    Integers and bools give int64. ONNX CumSum (from opset 11), before a product with a triangle (of integers; 0 * infinity is not 0)
    or Scan.
    """
    x = summable(g, self, dtype)
    if rank_of(x) == 0:
        return x
    axis = axis_of(x, dim)
    if g.opset >= 11:
        return g.op("CumSum", x, g.const(axis))
    size = shape_of(x)[axis]
    if is_integer(x.dtype) and isinstance(size, int) and size <= _LARGEST_TRIANGLE and g.opset >= 9:
        return _by_triangle(g, x, axis, size)
    return _running(g, "cumsum", "Add", x, axis, 0.0)


def _by_triangle(g: Builder, x: Value, axis: int, size: int) -> Value:
    perm = list(range(rank_of(x)))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    triangle = g.const(torch.ones(size, size, dtype=torch.int64).triu(), x.dtype)
    return g.op("Transpose", g.op("MatMul", g.op("Transpose", x, perm=perm), triangle), perm=perm)


def _start(g: Builder, x: Value, axis: int, number: Number) -> Value:
    """What a running total starts with: one number for each place beside `axis`."""
    shape = shape_of(x)
    return expand(g, g.const(number, x.dtype), [s for i, s in enumerate(shape) if i != axis])


def _running(g: Builder, name: str, op_type: str, x: Value, axis: int, start: Number) -> Value:
    if 0 in shape_of(x):
        return x

    def step(states: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        total = g.op(op_type, states[0], elements[0])
        return [total], [total]

    return scan(g, name, [_start(g, x, axis, start)], [x], step, axis=axis)[1][0]


@aten
def cumprod(g: Builder, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor

    Integers and bools give int64. ONNX CumProd (from opset 26), before Scan.
    """
    x = summable(g, self, dtype)
    if rank_of(x) == 0:
        return x
    axis = axis_of(x, dim)
    if g.opset >= 26:
        return g.op("CumProd", x, g.const(axis))
    return _running(g, "cumprod", "Mul", x, axis, 1)


@aten
def logcumsumexp(g: Builder, self: Value, dim: int) -> Value:
    """logcumsumexp(Tensor self, int dim) -> Tensor

    Each step adds to the greater of total and element what the lesser adds. ONNX Scan.
    """
    x = floating(g, self)
    if rank_of(x) == 0 or 0 in shape_of(x):
        return x
    axis = axis_of(x, dim)
    lowest = g.const(float("-inf"), x.dtype)

    def step(states: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        a, b = states[0], elements[0]
        high, low = g.op("Max", a, b), g.op("Min", a, b)
        more = g.op("Add", high, g.op("Log", g.op("Add", g.op("Exp", g.op("Sub", low, high)), g.const(1.0, x.dtype))))
        # Two equal infinities have no difference.
        infinite = g.op("Or", g.op("Equal", high, lowest), g.op("Equal", high, g.const(float("inf"), x.dtype)))
        total = g.op("Where", infinite, high, more)
        return [total], [total]

    return scan(g, "logcumsumexp", [_start(g, x, axis, float("-inf"))], [x], step, axis=axis)[1][0]


def _running_extreme(g: Builder, name: str, passed: str, x: Value, dim: int) -> tuple[Value, Value]:
    """The extreme so far and the last place where it stands, as PyTorch has it; NaN, once met, stays."""
    if rank_of(x) == 0:
        return x, g.const(0)
    if 0 in shape_of(x):
        return x, cast(g, x, DataType.INT64)
    axis, bool_ = axis_of(x, dim), x.dtype == DataType.BOOL
    source = cast(g, x, DataType.INT32) if bool_ else x
    first = g.op("Gather", source, g.const(0), axis=axis)

    def step(states: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        best, place, now = states
        element = elements[0]
        stays = g.op(passed, best, element)
        if not is_integer(element.dtype):
            stays = g.op("Or", stays, g.op("And", g.op("IsNaN", best), g.op("Not", g.op("IsNaN", element))))
        best, place = g.op("Where", stays, best, element), g.op("Where", stays, place, now)
        return [best, place, g.op("Add", now, g.const(1))], [best, place]

    start = [first, expand(g, g.const(0), shape_of(first)), g.const(0)]
    values, indices = scan(g, name, start, [source], step, axis=axis)[1]
    return (cast(g, values, DataType.BOOL) if bool_ else values), indices


@aten
def cummax(g: Builder, self: Value, dim: int) -> tuple[Value, Value]:
    """cummax(Tensor self, int dim) -> (Tensor values, Tensor indices). ONNX Scan."""
    return _running_extreme(g, "cummax", "Greater", self, dim)


@aten
def cummin(g: Builder, self: Value, dim: int) -> tuple[Value, Value]:
    """cummin(Tensor self, int dim) -> (Tensor values, Tensor indices). ONNX Scan."""
    return _running_extreme(g, "cummin", "Less", self, dim)


# ---------------------------------------------------------------------- neighbours


def between(g: Builder, x: Value, axis: int, start: int, end: int | None) -> Value:
    """x[start:end] along `axis`."""
    return g.op("Slice", x, g.const([start]), g.const([2**63 - 1 if end is None else end]), g.const([axis]))


@aten
def diff(g: Builder, self: Value, n: int = 1, dim: int = -1, prepend: Value | None = None, append: Value | None = None) -> Value:
    """diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor

    Each element less the one before, n times; of bools, whether they differ. ONNX Concat, Slice, Sub or Xor.
    """
    axis = axis_of(self, dim)
    parts = [v for v in (prepend, self, append) if v is not None]
    x = g.op("Concat", *promoted(g, *parts), axis=axis) if len(parts) > 1 else self
    size = shape_of(x)[axis]
    times = min(n, size) if isinstance(size, int) else n
    for _ in range(times):
        x = g.op("Xor" if x.dtype == DataType.BOOL else "Sub", between(g, x, axis, 1, None), between(g, x, axis, 0, -1))
    return x


def _areas(g: Builder, y: Value, x: Value | None, dx: Number, dim: int) -> tuple[Value, int]:
    """The areas between neighbours, and the axis of them."""
    axis = axis_of(y, dim)
    if x is None:
        y = floating(g, y)
        height = g.op("Add", between(g, y, axis, 1, None), between(g, y, axis, 0, -1))
        return g.op("Mul", height, g.const(dx / 2, y.dtype)), axis
    y, x = promoted(g, y, x)
    y, x = floating(g, y), floating(g, x)
    if rank_of(x) == 1 and rank_of(y) > 1:
        x = unsqueeze(g, x, range(1, rank_of(y) - axis)) if rank_of(y) - axis > 1 else x
    at = axis if rank_of(x) == rank_of(y) else rank_of(x) - (rank_of(y) - axis)
    if at < 0:
        raise errors.UnsupportedError("trapezoid of x with fewer dims than y has behind dim")
    width = g.op("Sub", between(g, x, at, 1, None), between(g, x, at, 0, -1))
    height = g.op("Add", between(g, y, axis, 1, None), between(g, y, axis, 0, -1))
    return g.op("Mul", g.op("Mul", width, height), g.const(0.5, y.dtype)), axis


@aten("trapezoid", "trapz", "trapezoid.dx", "trapz.dx")
def trapezoid(g: Builder, y: Value, x: Value | None = None, dx: Number = 1, dim: int = -1) -> Value:
    """trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor; trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor

    trapz likewise.
    ONNX Slice, Add, Mul, ReduceSum.
    """
    areas, axis = _areas(g, y, x, dx, dim)
    return g.op("ReduceSum", areas, g.const([axis]), keepdims=0)


@aten
def cumulative_trapezoid(g: Builder, y: Value, x: Value | None = None, dx: Number = 1, dim: int = -1) -> Value:
    """cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor; .dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor"""
    areas, axis = _areas(g, y, x, dx, dim)
    return cumsum(g, areas, axis)
