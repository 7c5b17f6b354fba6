"""Singular values and vectors, and eigenvalues of symmetric matrices, by one-sided Jacobi rotations.

Columns are rotated in pairs until each is at right angles with every other: then their lengths are the singular values. All
pairs of a round are rotated at once; between rounds the columns change places as in a round-robin tournament, so that after
as many rounds as there are columns but one every two have met, and all are in their old places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from onnxport.ops.attention import count_up
from onnxport.ops.creation import filled
from onnxport.ops.indexing import gather
from onnxport.ops.loops import repeated
from onnxport.ops.matrices import diagonal_of, identity, is_zero, swapped, triangle
from onnxport.ops.orthogonal import orthogonal, reflections
from onnxport.ops.pieces import sliced
from onnxport.ops.reduction import reduce, size_as
from onnxport.ops.support import rank_of, shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import expand, squeeze, unsqueeze
from onnxport.target.value import DataType, Value

_SWEEPS = 30  # some seven are needed; matrices that never come to rest are stopped
_EPSILON = {DataType.FLOAT: 2.0**-23, DataType.DOUBLE: 2.0**-52}


class Rotated(NamedTuple):
    """columns: (..., m, n) at right angles with each other.   vectors: (..., n, n), original @ vectors = columns, or 0 rows where they are
    not wanted.   scale: (..., 1, 1) that both original and columns were divided by."""

    columns: Value
    vectors: Value
    scale: Value


def epsilon(x: Value) -> float:
    """The distance from 1 to the next number."""
    return _EPSILON[x.dtype or DataType.FLOAT]


def rotated(g: Builder, a: Value, *, vectors: bool = True) -> Rotated:
    """a (..., m, n) with its columns rotated until they are at right angles."""
    *batch, m, n = shape_of(a)
    last, even = rank_of(a) - 1, dims.floordiv(n + 1, 2) * 2
    start = expand(g, identity(g, n, a.dtype), [*batch, n, n])
    if m == 0 or n == 0:
        return Rotated(a, start, filled(g, (*batch, 1, 1), 1.0, a.dtype))
    largest = reduce(g, "ReduceMax", g.op("Abs", a), [last - 1, last], True)
    scale = g.op("Where", is_zero(g, largest), g.const(1.0, a.dtype), largest)
    whole = g.op("Div", a, scale)
    whole = g.op("Concat", whole, start, axis=last - 1) if vectors else whole
    whole = sliced(g, _swept(g, _padded(g, whole, even - n), m, even), last, 0, n)
    return Rotated(sliced(g, whole, last - 1, 0, m), sliced(g, whole, last - 1, m), scale)


def _padded(g: Builder, x: Value, missing: Size) -> Value:
    """One column of zeros more, where their number is odd: it is at right angles with every other."""
    if missing == 0:
        return x
    return g.op("Concat", x, filled(g, (*shape_of(x)[:-1], missing), 0.0, x.dtype), axis=rank_of(x) - 1)


def _swept(g: Builder, x: Value, measured: Size, columns: Size) -> Value:
    """Sweeps of all rounds, until none has rotated anything. measured: the first rows, which are to get to right angles."""
    rounds, places = columns - 1, _next_places(g, columns)

    def step(turn: Value, states: list[Value]) -> Sequence[Value]:
        after, open_ = _round(g, states[0], measured, dims.floordiv(columns, 2))
        first = g.op("Equal", _remainder(g, turn, rounds), g.const(0))
        before = g.op("Where", first, g.const(0), states[1])
        return [g.op("Gather", after, places, axis=rank_of(x) - 1), g.op("Add", before, open_)]

    def more(turn: Value, states: list[Value]) -> Value:
        within = g.op("Less", g.const(0), _remainder(g, g.op("Add", turn, g.const(1)), rounds))
        return g.op("Or", within, g.op("Less", g.const(0), states[1]))

    return repeated(g, rounds * _SWEEPS, [x, g.const(0)], step, more)[0]


def _remainder(g: Builder, x: Value, divisor: Size) -> Value:
    by = g.scalar(divisor)
    return g.op("Sub", x, g.op("Mul", g.op("Div", x, by), by))


def _next_places(g: Builder, columns: Size) -> Value:
    """Where the column at each place comes from: the first one stays, the others move around by one, up one half and down the other."""
    half, place = dims.floordiv(columns, 2), count_up(g, columns)
    previous, following = g.op("Max", g.op("Sub", place, g.const(1)), g.const(0)), g.op("Add", place, g.const(1))
    moved = g.op("Where", g.op("Less", place, g.scalar(half)), previous, following)
    moved = g.op("Where", g.op("Equal", place, g.scalar(columns - 1)), g.scalar(half - 1), moved)
    return g.op("Where", g.op("Equal", place, g.const(1)), g.scalar(half), moved)


def _round(g: Builder, x: Value, measured: Size, half: Size) -> tuple[Value, Value]:
    """(each column of the first half rotated with its partner of the second, how many pairs were not at right angles yet)."""
    last = rank_of(x) - 1
    left, right = sliced(g, x, last, 0, half), sliced(g, x, last, half)
    a, b = (sliced(g, v, last - 1, 0, measured) for v in (left, right))
    aa, bb, ab = (reduce(g, "ReduceSum", g.op("Mul", u, v), [last - 1], True) for u, v in ((a, a), (b, b), (a, b)))
    nothing, one, two = (g.const(n, x.dtype) for n in (0.0, 1.0, 2.0))
    right_angle = is_zero(g, ab)
    ratio = g.op("Div", g.op("Sub", bb, aa), g.op("Mul", two, g.op("Where", right_angle, one, ab)))
    hypotenuse = g.op("Sqrt", g.op("Add", one, g.op("Mul", ratio, ratio)))
    sign = g.op("Where", g.op("Less", ratio, nothing), g.const(-1.0, x.dtype), one)
    tangent = g.op("Where", right_angle, nothing, g.op("Div", sign, g.op("Add", g.op("Abs", ratio), hypotenuse)))
    cosine = g.op("Div", one, g.op("Sqrt", g.op("Add", one, g.op("Mul", tangent, tangent))))
    sine = g.op("Mul", cosine, tangent)
    # left * cosine - right * sine, and right * cosine + left * sine, as what is added: small rotations round off little.
    half_tangent = g.op("Div", sine, g.op("Add", one, cosine))
    new_left = g.op("Sub", left, g.op("Mul", sine, g.op("Add", right, g.op("Mul", half_tangent, left))))
    new_right = g.op("Add", right, g.op("Mul", sine, g.op("Sub", left, g.op("Mul", half_tangent, right))))
    return g.op("Concat", new_left, new_right, axis=last), _open(g, aa, bb, ab, measured)


def _open(g: Builder, aa: Value, bb: Value, ab: Value, terms: Size) -> Value:
    """How many pairs are further from right angles than the rounding of sums of so many terms explains."""
    eps = epsilon(aa)
    rounding = g.op("Mul", size_as(g, terms + 512, aa.dtype), g.const(eps / 32, aa.dtype))
    allowed = g.op("Mul", g.op("Mul", g.op("Sqrt", aa), g.op("Sqrt", bb)), rounding)
    allowed = g.op("Add", allowed, g.const(eps * eps, aa.dtype))
    open_ = g.op("Cast", g.op("Less", allowed, g.op("Abs", ab)), to=DataType.INT64)
    return reduce(g, "ReduceSum", open_, list(range(rank_of(open_))), False)


# ---------------------------------------------------------------------- what is read from it


def lengths(g: Builder, found: Rotated) -> Value:
    """The singular values in the order of the columns, (..., n), not scaled back."""
    return reduce(g, "ReduceL2", found.columns, [rank_of(found.columns) - 2], False)


def scaled_back(g: Builder, values: Value, found: Rotated) -> Value:
    """Values (..., n) of the matrix that was given."""
    return g.op("Mul", values, squeeze(g, found.scale, [rank_of(found.scale) - 1]))


def _ordered(g: Builder, x: Value, places: Value) -> Value:
    """Columns (or, of a vector, elements) in the order of `places` (..., k)."""
    *batch, rows, _ = shape_of(x)
    index = expand(g, unsqueeze(g, places, [len(batch)]), [*batch, rows, shape_of(places)[-1]])
    return gather(g, x, len(batch) + 1, index)


def singular_values(g: Builder, a: Value) -> Value:
    """(..., k), falling."""
    *batch, m, n = shape_of(a)
    if 0 in (m, n):
        return filled(g, (*batch, 0), 0.0, a.dtype)
    found = rotated(g, swapped(g, a) if dims.compare("<", m, n) else a, vectors=False)
    values = g.op("TopK", lengths(g, found), g.sizes([dims.minimum(m, n)]), outputs=2, axis=rank_of(a) - 2)[0]
    return scaled_back(g, values, found)


def singular(g: Builder, a: Value, full_matrices: bool) -> tuple[Value, Value, Value]:
    """(U, the singular values, V') of a (..., m, n).

    The columns become U by a QR factorisation, which also fills up what a matrix of lesser rank or a full U is short of.
    """
    *batch, m, n = shape_of(a)
    if dims.compare("<", m, n):
        v, values, uh = singular(g, swapped(g, a), full_matrices)
        return swapped(g, uh), values, swapped(g, v)
    last, k = len(batch) + 1, dims.minimum(m, n)
    if k == 0:
        square = [identity(g, size, a.dtype, size if full_matrices else 0) for size in (m, n)]
        u, v = (expand(g, x, [*batch, *shape_of(x)]) for x in square)
        return u, filled(g, (*batch, 0), 0.0, a.dtype), swapped(g, v)
    found = rotated(g, a)
    values, places = g.op("TopK", lengths(g, found), g.sizes([n]), outputs=2, axis=len(batch))
    columns, vectors = _ordered(g, found.columns, places), _ordered(g, found.vectors, places)
    packed, factors = reflections(g, sliced(g, columns, last, 0, k))
    u = orthogonal(g, packed, factors, m if full_matrices else k)
    corners = unsqueeze(g, diagonal_of(g, packed), [last - 1])
    signs = g.op("Where", g.op("Less", corners, g.const(0.0, a.dtype)), g.const(-1.0, a.dtype), g.const(1.0, a.dtype))
    if full_matrices:
        signs = g.op("Concat", signs, filled(g, (*batch, 1, m - k), 1.0, a.dtype), axis=last)
    vectors = vectors if full_matrices else sliced(g, vectors, last, 0, k)
    return g.op("Mul", u, signs), scaled_back(g, sliced(g, values, len(batch), 0, k), found), swapped(g, vectors)


def symmetric(g: Builder, a: Value, upper: bool) -> Value:
    """The symmetric matrices of which one triangle is read."""
    return g.op("Add", triangle(g, a, upper), swapped(g, triangle(g, a, upper, 1 if upper else -1)))


def eigen(g: Builder, a: Value, upper: bool = False) -> tuple[Value, Value]:
    """(the eigenvalues (..., n), rising, the eigenvectors as columns) of symmetric matrices, of which one triangle is read.

    With more than its norm added to the diagonal, a matrix has positive eigenvalues far from 0, which are its singular values.
    """
    a, last = symmetric(g, a, upper), rank_of(a) - 1
    n = shape_of(a)[-1]
    if n == 0:
        return filled(g, shape_of(a)[:-1], 0.0, a.dtype), a
    norm = _row_norm(g, a)
    unit = g.op("Where", is_zero(g, norm), g.const(1.0, a.dtype), norm)
    shrunk = g.op("Div", a, unit)
    # The square's norm is at least the largest eigenvalue's square, and much nearer to it than the row norm is.
    nearer = g.op("Sqrt", _row_norm(g, g.op("MatMul", shrunk, shrunk)))
    shift = g.op("Mul", g.const(1.25, a.dtype), g.op("Where", is_zero(g, nearer), g.const(1.0, a.dtype), nearer))
    shifted = g.op("Add", shrunk, g.op("Mul", shift, identity(g, n, a.dtype)))
    columns = rotated(g, shifted, vectors=False).columns
    vectors = g.op("Div", columns, reduce(g, "ReduceL2", columns, [last - 1], True))
    found = reduce(g, "ReduceSum", g.op("Mul", vectors, g.op("MatMul", a, vectors)), [last - 1], False)
    values, places = g.op("TopK", found, g.sizes([n]), outputs=2, axis=last - 1, largest=0)
    return values, _ordered(g, vectors, places)


def _row_norm(g: Builder, a: Value) -> Value:
    """The largest sum of a row's absolute values, (..., 1, 1)."""
    last = rank_of(a) - 1
    return reduce(g, "ReduceMax", reduce(g, "ReduceL1", a, [last], True), [last - 1], True)
