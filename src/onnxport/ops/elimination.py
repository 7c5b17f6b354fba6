"""Elimination: solutions and inverses, LU and Cholesky factors, triangular systems, of matrices of any size, row after row."""

from __future__ import annotations

from onnxport.ops.attention import count_up
from onnxport.ops.creation import filled
from onnxport.ops.loops import repeated
from onnxport.ops.matrices import (
    column,
    identity,
    is_zero,
    row,
    row_numbers,
    swapped,
    triangle,
)
from onnxport.ops.pieces import sliced
from onnxport.ops.reduction import reduce
from onnxport.ops.support import rank_of, shape_of, zero
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import expand, squeeze
from onnxport.target.value import DataType, Value


def _largest_below(g: Builder, x: Value, at: Value) -> Value:
    """The row from `at` on whose element in column `at` is the largest, (..., 1, 1)."""
    done = g.op("Less", row_numbers(g, shape_of(x)[-2]), at)
    sizes = g.op("Where", done, g.const(-1.0, x.dtype), g.op("Abs", column(g, x, at)))
    return g.op("ArgMax", sizes, axis=rank_of(x) - 2, keepdims=1)


def exchanged(g: Builder, x: Value, at: Value, best: Value) -> tuple[Value, Value]:
    """(the matrices with the rows `at` and `best` exchanged, what is row `at` now (..., 1, columns))."""
    numbers = row_numbers(g, shape_of(x)[-2])
    at_best, at_here = g.op("Equal", numbers, best), g.op("Equal", numbers, at)
    chosen = reduce(g, "ReduceSum", g.op("Where", at_best, x, zero(g, x.dtype)), [rank_of(x) - 2], True)  # type: ignore[arg-type]
    return g.op("Where", at_here, chosen, g.op("Where", at_best, row(g, x, at), x)), chosen


def eliminated(g: Builder, a: Value, right: Value) -> tuple[Value, Value]:
    """(the solution of a @ solution = right, the pivots (..., n)), by Gauss and Jordan with the largest pivot of each column.

    a (..., n, n), right (..., n, k). A pivot of 0 (a is singular) makes the solution infinite or NaN.
    """
    n, last = shape_of(a)[-1], rank_of(a) - 1
    numbers, nothing = row_numbers(g, n), g.const(0.0, a.dtype)

    def step(at: Value, states: list[Value]) -> list[Value]:
        whole, pivots = states
        whole, chosen = exchanged(g, whole, at, _largest_below(g, whole, at))
        pivot = column(g, chosen, at)
        here = g.op("Equal", numbers, at)
        unit = g.op("Div", chosen, pivot)
        factors = g.op("Where", here, nothing, column(g, whole, at))
        whole = g.op("Where", here, unit, g.op("Sub", whole, g.op("Mul", factors, unit)))
        return [whole, g.op("Where", g.op("Equal", count_up(g, n), at), pivot, pivots)]

    pivots = filled(g, (*shape_of(a)[:-2], 1, n), 1.0, a.dtype)
    whole, pivots = repeated(g, n, [g.op("Concat", a, right, axis=last), pivots], step)
    return sliced(g, whole, last, n), squeeze(g, pivots, [last - 1])


def inverse(g: Builder, x: Value) -> tuple[Value, Value]:
    """(the inverse of each matrix, the pivots)."""
    return eliminated(g, x, expand(g, identity(g, shape_of(x)[-1], x.dtype), shape_of(x)))


def lu(g: Builder, a: Value) -> tuple[Value, Value]:
    """(L without its diagonal of ones and U in one matrix, the row that each row was exchanged with, from 1, as int32 (..., k)).

    a (..., m, n), k the lesser of both. As LAPACK: the largest pivot of each column; a column of zeros is passed over.
    """
    *batch, m, n = shape_of(a)
    rows, columns, nothing, k = row_numbers(g, m), count_up(g, n), g.const(0.0, a.dtype), dims.minimum(m, n)

    def step(at: Value, states: list[Value]) -> list[Value]:
        packed, pivots = states
        best = _largest_below(g, packed, at)
        packed, chosen = exchanged(g, packed, at, best)
        pivot, below = column(g, chosen, at), g.op("Less", at, rows)
        pivot = g.op("Where", is_zero(g, pivot), g.const(1.0, a.dtype), pivot)
        factors = g.op("Where", below, g.op("Div", column(g, packed, at), pivot), nothing)
        rest = g.op("Where", g.op("Less", at, columns), chosen, nothing)
        packed = g.op("Sub", packed, g.op("Mul", factors, rest))
        packed = g.op("Where", g.op("And", below, g.op("Equal", columns, at)), factors, packed)
        number = g.op("Add", best, g.const(1))
        return [packed, g.op("Where", g.op("Equal", count_up(g, k), at), number, pivots)]

    packed, pivots = repeated(g, k, [a, filled(g, (*batch, 1, k), 0, DataType.INT64)], step)
    return packed, g.op("Cast", squeeze(g, pivots, [len(batch)]), to=DataType.INT32)


def order_of(g: Builder, pivots: Value, rows: Size) -> Value:
    """Which row of the matrix stands at each place after all exchanges, (..., rows, 1)."""
    *batch, k = shape_of(pivots)
    swaps = g.op("Sub", g.op("Cast", pivots, to=DataType.INT64), g.const(1))

    def step(at: Value, states: list[Value]) -> list[Value]:
        other = g.op("Gather", swaps, at, axis=len(batch))
        for axis in (len(batch), len(batch) + 1):
            other = g.op("Unsqueeze", other, g.const([axis]))
        return [exchanged(g, states[0], at, other)[0]]

    return repeated(g, k, [expand(g, row_numbers(g, rows), [*batch, rows, 1])], step)[0]


def permutation(g: Builder, pivots: Value, rows: Size, dtype: DataType | None) -> Value:
    """The matrix P with P @ L @ U = A, (..., rows, rows)."""
    at_place = g.op("Equal", order_of(g, pivots, rows), count_up(g, rows))
    return g.op("Cast", swapped(g, at_place), to=dtype)


def substituted(g: Builder, a: Value, right: Value, upper: bool, unit: bool = False) -> Value:
    """The solution x of a @ x = right for a triangle of a, of which the rest is not read. unit: its diagonal is ones, whatever stands there.

    a (..., n, n), right (..., n, k) with all leading dims that a has.
    """
    n = shape_of(a)[-1]
    a, numbers = triangle(g, a, upper), row_numbers(g, n)

    def step(turn: Value, states: list[Value]) -> list[Value]:
        at = g.op("Sub", g.scalar(n - 1), turn) if upper else turn
        line = row(g, a, at)
        rest = g.op("Sub", row(g, right, at), g.op("MatMul", line, states[0]))  # what is not solved yet is 0
        found = rest if unit else g.op("Div", rest, column(g, line, at))
        return [g.op("Where", g.op("Equal", numbers, at), found, states[0])]

    return repeated(g, n, [filled(g, shape_of(right), 0.0, right.dtype)], step)[0]


def cholesky(g: Builder, a: Value) -> Value:
    """The lower L with L @ L' = a, of which the lower triangle is read. Where a is not positive definite, NaN."""
    n = shape_of(a)[-1]
    rows, columns = row_numbers(g, n), count_up(g, n)

    def step(at: Value, states: list[Value]) -> list[Value]:
        factor = states[0]
        rest = g.op("Sub", column(g, a, at), g.op("MatMul", factor, swapped(g, row(g, factor, at))))
        found = g.op("Div", rest, g.op("Sqrt", row(g, rest, at)))
        here = g.op("Equal", columns, at)
        below = g.op("Where", g.op("Less", rows, at), g.const(0.0, a.dtype), found)
        return [g.op("Where", here, below, factor)]

    return repeated(g, n, [filled(g, shape_of(a), 0.0, a.dtype)], step)[0]
