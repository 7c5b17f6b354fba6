"""What singular values and eigenvalues are good for: pseudo-inverses, least squares, polar factors, functions of matrices."""

from __future__ import annotations

from onnxport import errors
from onnxport.ops import jacobi
from onnxport.ops.creation import filled
from onnxport.ops.jacobi import Rotated, epsilon
from onnxport.ops.loops import repeated
from onnxport.ops.matrices import identity, swapped
from onnxport.ops.reduction import reduce, size_as, wide
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, rank_of, shape_of, tensor
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.sizes import expand, reshape, squeeze, unsqueeze
from onnxport.target.value import DataType, Value

Bound = Value | float | None  # a tolerance: one for all, or one for each matrix

# ---------------------------------------------------------------------- pseudo-inverses


def _default_rtol(g: Builder, a: Value) -> Value:
    """The rounding of as many sums as the matrix has rows or columns."""
    return g.op("Mul", g.const(epsilon(a), a.dtype), size_as(g, dims.maximum(*shape_of(a)[-2:]), a.dtype))


def _cutoff(g: Builder, a: Value, largest: Value, atol: Bound, rtol: Bound) -> Value:
    """Up to which a singular value counts as 0. largest: the largest of each matrix, (...). Without a relative bound an absolute one stands alone."""
    usual = None if rtol is not None else _default_rtol(g, a)
    absolute = tensor(g, 0.0 if atol is None else atol, a.dtype)
    if usual is None:
        relative = tensor(g, rtol, a.dtype)
    else:
        nothing = g.const(0.0, a.dtype)
        relative = usual if atol is None else g.op("Where", g.op("Less", nothing, absolute), nothing, usual)
    return g.op("Max", absolute, g.op("Mul", relative, largest))


def _largest(g: Builder, values: Value) -> Value:
    return reduce(g, "ReduceMax", values, [rank_of(values) - 1], False)


def _inverted(g: Builder, a: Value, found: Rotated, atol: Bound, rtol: Bound) -> tuple[Value, Value]:
    """(1 / each singular value, or 0 where it counts as 0, as a row (..., 1, n), of the matrix divided by its scale; which do not count as 0)."""
    values = jacobi.lengths(g, found)
    original = jacobi.scaled_back(g, values, found)
    axis, most = rank_of(values) - 1, dims.minimum(*shape_of(a)[-2:])
    counts = g.op("Less", unsqueeze(g, _cutoff(g, a, _largest(g, original), atol, rtol), [axis]), original)
    if not dims.equal(most, shape_of(values)[-1]):  # more columns than rows: the rest is nothing but rounding
        least = reduce(g, "ReduceMin", g.op("TopK", values, g.sizes([most]), outputs=2, axis=axis)[0], [axis], True)
        counts = g.op("And", counts, g.op("Not", g.op("Less", values, least)))
    inverted = g.op("Where", counts, g.op("Div", g.const(1.0, a.dtype), values), g.const(0.0, a.dtype))
    return unsqueeze(g, inverted, [axis]), counts


def _applied(g: Builder, found: Rotated, inverted: Value, right: Value | None) -> Value:
    """The pseudo-inverse, V S^-1 U', or its product with `right`. The columns are U S."""
    u = g.op("Mul", found.columns, inverted)
    left = g.op("Div", g.op("Mul", found.vectors, inverted), found.scale)
    return g.op("MatMul", left, swapped(g, u) if right is None else g.op("MatMul", swapped(g, u), right))


def pseudo_inverse(g: Builder, a: Value, atol: Bound, rtol: Bound, hermitian: bool) -> Value:
    """(..., m, n) -> (..., n, m). hermitian: the lower triangle is read."""
    *batch, m, n = shape_of(a)
    if 0 in (m, n):
        return filled(g, (*batch, n, m), 0.0, a.dtype)
    a = jacobi.symmetric(g, a, False) if hermitian else a
    if dims.compare("<", m, n):
        return swapped(g, pseudo_inverse(g, swapped(g, a), atol, rtol, False))
    found = jacobi.rotated(g, a)
    return _applied(g, found, _inverted(g, a, found, atol, rtol)[0], None)


@aten("linalg_pinv.atol_rtol_float", "linalg_pinv.atol_rtol_tensor")
def linalg_pinv(g: Builder, self: Value, atol: Bound = None, rtol: Bound = None, hermitian: bool = False) -> Value:
    """linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor
    linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor

    Of the singular values, by Jacobi's rotations.
    """
    return pseudo_inverse(g, self, atol, rtol, hermitian)


@aten("linalg_pinv", "pinverse")
def pinverse(g: Builder, self: Value, rcond: Value | float = 1e-15, hermitian: bool = False) -> Value:
    """linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor; linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, ...) -> Tensor
    pinverse(Tensor self, float rcond=1e-15) -> Tensor
    """
    return pseudo_inverse(g, self, None, rcond, hermitian)


# ---------------------------------------------------------------------- least squares


@aten
def linalg_lstsq(g: Builder, self: Value, b: Value, rcond: float | None = None, driver: str | None = None) -> tuple[Value, Value, Value, Value]:
    """linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (solution, residuals, rank, singular_values)

    self (..., m, n), b (..., m, k) or (..., m). By the pseudo-inverse, whatever the driver: one that expects full rank ("gels") gives what the
    others give without it. What the driver does not give is empty, as in PyTorch.
    """
    driver = driver or "gelsy"
    vector = rank_of(b) == 1 or (rank_of(b) == rank_of(self) - 1 and shape_of(b) == shape_of(self)[:-1])
    right = unsqueeze(g, b, [rank_of(b)]) if vector else b
    solution, values, counts = _least_squares(g, self, right, rcond)
    nothing = filled(g, (0,), 0.0, self.dtype)
    rank = reduce(g, "ReduceSum", g.op("Cast", counts, to=DataType.INT64), [rank_of(counts) - 1], False)
    result = squeeze(g, solution, [rank_of(solution) - 1]) if vector else solution
    return (result, _residuals(g, self, right, solution, rank, driver), filled(g, (0,), 0, DataType.INT64) if driver == "gels" else rank,
            values if driver in ("gelsd", "gelss") else nothing)


def _least_squares(g: Builder, a: Value, right: Value, rtol: float | None) -> tuple[Value, Value, Value]:
    """(the solution, the singular values, falling, which of them count)."""
    *_, m, n = shape_of(a)
    if dims.compare("<", m, n):
        found = jacobi.rotated(g, swapped(g, a))
        inverted, counts = _inverted(g, a, found, None, rtol)
        u = g.op("Mul", found.columns, inverted)
        left = g.op("MatMul", u, swapped(g, g.op("Div", g.op("Mul", found.vectors, inverted), found.scale)))
        solution = g.op("MatMul", left, right)
    else:
        found = jacobi.rotated(g, a)
        inverted, counts = _inverted(g, a, found, None, rtol)
        solution = _applied(g, found, inverted, right)
    values = jacobi.lengths(g, found)
    values = g.op("TopK", values, g.sizes([dims.minimum(m, n)]), outputs=2, axis=rank_of(values) - 1)[0]
    return solution, jacobi.scaled_back(g, values, found), counts


def _residuals(g: Builder, a: Value, right: Value, solution: Value, rank: Value, driver: str) -> Value:
    """The sums of squares that are left, (..., k): of more rows than columns, and where every matrix has full rank.

    Where a matrix of a batch has lesser rank PyTorch gives an empty vector, which has another rank: here they are NaN.
    """
    *_, m, n = shape_of(a)
    more = dims.compare(">", m, n)
    if driver == "gelsy" or more is False:
        return filled(g, (0,), 0.0, a.dtype)
    rest = g.op("Sub", g.op("MatMul", a, solution), right)
    squares = reduce(g, "ReduceSumSquare", rest, [rank_of(rest) - 2], False)
    if driver == "gels" and more:
        return squares
    if more is None and rank_of(squares) > 1:
        raise errors.UnsupportedError(f"least squares by {driver!r} of matrices of which only the run knows whether they have more rows than "
                                      "columns: their residuals have another rank then. driver='gelsy' gives the same solution and no residuals")
    given = g.op("Less", g.scalar(n), g.scalar(m))
    if driver != "gels":
        least = reduce(g, "ReduceMin", rank, list(range(rank_of(rank))), False)
        given = g.op("And", given, g.op("Equal", least, g.scalar(n)))
    if rank_of(squares) > 1:
        return g.op("Where", given, squares, g.const(float("nan"), a.dtype))
    end = g.op("Mul", unsqueeze(g, g.op("Cast", given, to=DataType.INT64), [0]), g.sizes([shape_of(squares)[0]]))
    return g.op("Slice", squares, g.const([0]), end, g.const([0]))


# ---------------------------------------------------------------------- functions of matrices


@aten
def linalg_polar(g: Builder, A: Value) -> tuple[Value, Value]:
    """linalg_polar(Tensor A) -> (Tensor U, Tensor H): A = U @ H, U with orthonormal columns, H symmetric and not negative."""
    u, values, vh = jacobi.singular(g, A, False)
    stretched = g.op("Mul", swapped(g, vh), unsqueeze(g, values, [rank_of(values) - 1]))
    return g.op("MatMul", u, vh), g.op("MatMul", stretched, vh)


@aten
def linalg_matrix_sqrth(g: Builder, self: Value) -> Value:
    """linalg_matrix_sqrth(Tensor self) -> Tensor. Of symmetric matrices, whose lower triangle is read; eigenvalues below 0 count as 0."""
    values, vectors = jacobi.eigen(g, self)
    roots = g.op("Sqrt", g.op("Max", values, g.const(0.0, self.dtype)))
    return g.op("MatMul", g.op("Mul", vectors, unsqueeze(g, roots, [rank_of(roots) - 1])), swapped(g, vectors))


# Terms of the series, and the norm up to which they are all that float32 and double can hold.
_SERIES = {DataType.FLOAT: (8, 0.58), DataType.DOUBLE: (18, 1.09)}
_HALVINGS = 1100  # no finite number is larger than two to this power


@aten("linalg_matrix_exp", "matrix_exp")
def linalg_matrix_exp(g: Builder, self: Value) -> Value:
    """linalg_matrix_exp(Tensor self) -> Tensor

    A matrix halved until its norm is small, its series, and that squared as often as it was halved. ONNX MatMul, and a Loop of them.
    """
    x = wide(g, self)
    terms, small = _SERIES[x.dtype or DataType.FLOAT]
    if 0 in shape_of(x):
        return self
    halvings = _halvings(g, x, small)
    shrunk = g.op("Div", x, g.op("Pow", g.const(2.0, x.dtype), halvings))
    eye = identity(g, shape_of(x)[-1], x.dtype)
    series = expand(g, eye, shape_of(x))
    for term in range(terms, 0, -1):
        series = g.op("Add", eye, g.op("MatMul", g.op("Div", shrunk, g.const(float(term), x.dtype)), series))
    most = g.op("Concat", reshape(g, g.op("Cast", halvings, to=DataType.INT64), [-1]), g.const([0]), axis=0)
    turns = g.size_of(reduce(g, "ReduceMax", most, [0], False))

    def step(turn: Value, states: list[Value]) -> list[Value]:
        goes_on = g.op("Less", cast(g, turn, halvings.dtype or DataType.FLOAT), halvings)
        return [g.op("Where", goes_on, g.op("MatMul", states[0], states[0]), states[0])]

    return cast(g, repeated(g, turns, [series], step)[0], self.dtype or DataType.FLOAT)


def _halvings(g: Builder, x: Value, small: float) -> Value:
    """How often each matrix is halved until the sum of each column is small, as floats (..., 1, 1)."""
    last = rank_of(x) - 1
    norm = reduce(g, "ReduceMax", reduce(g, "ReduceL1", x, [last - 1], True), [last], True)
    ratio = g.op("Max", g.op("Div", norm, g.const(small, x.dtype)), g.const(1.0, x.dtype))
    doublings = g.op("Div", g.op("Log", ratio), g.op("Log", g.const(2.0, x.dtype)))
    return g.op("Min", g.op("Ceil", doublings), g.const(float(_HALVINGS), x.dtype))
