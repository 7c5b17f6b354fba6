"""Linear algebra of square matrices: traces, powers, determinants, inverses, solutions."""

from __future__ import annotations

from onnxport import errors
from onnxport.ops.attention import count_up
from onnxport.ops.elimination import eliminated, inverse, lu, substituted
from onnxport.ops.matrices import diagonal_of, first_true, identity, is_zero, same_batch, swapped
from onnxport.ops.reduction import reduce
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, rank_of, shape_of
from onnxport.target.builder import Builder
from onnxport.target.dims import product
from onnxport.target.sizes import expand, reshape, squeeze, unsqueeze
from onnxport.target.value import DataType, Value


@aten
def trace(g: Builder, self: Value) -> Value:
    """trace(Tensor self) -> Tensor

    The sum of the diagonal; integers and bools give int64. ONNX Mul with a mask (EyeLike where sizes are dynamic), ReduceSum.
    """
    x = self if self.dtype in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16) else cast(g, self, DataType.INT64)
    rows, columns = shape_of(x)
    if isinstance(rows, int) and isinstance(columns, int):
        index = g.const([i * columns + i for i in range(min(rows, columns))], DataType.INT64)
        return reduce(g, "ReduceSum", g.op("Gather", reshape(g, x, [-1]), index, axis=0), [0], False)
    if g.opset < 9:
        raise errors.UnsupportedError(f"trace of a matrix of dynamic size needs opset 9 or higher (opset_version={g.opset} was asked)")
    diagonal = cast(g, g.op("EyeLike", x, dtype=DataType.FLOAT), DataType.BOOL)
    return reduce(g, "ReduceSum", g.op("Where", diagonal, x, g.const(0, x.dtype)), [0, 1], False)


@aten("linalg_matrix_power", "matrix_power")
def linalg_matrix_power(g: Builder, self: Value, n: int) -> Value:
    """linalg_matrix_power(Tensor self, int n) -> Tensor. ONNX MatMul, about 2 log2(n) of them; negative powers of the inverse."""
    base = self if n >= 0 else inverse(g, self)[0]
    if n == 0:
        return expand(g, identity(g, shape_of(self)[-1], self.dtype), shape_of(self))
    result: Value | None = None
    rest = abs(n)
    while rest:
        if rest & 1:
            result = base if result is None else g.op("MatMul", result, base)
        rest >>= 1
        base = g.op("MatMul", base, base) if rest else base
    assert result is not None
    return result


# ---------------------------------------------------------------------- inverses and determinants


@aten("linalg_inv", "inverse")
def linalg_inv(g: Builder, A: Value | None = None, self: Value | None = None) -> Value:
    """linalg_inv(Tensor A) -> Tensor; inverse(Tensor self) -> Tensor. By elimination."""
    x = A if A is not None else self
    assert x is not None
    return inverse(g, x)[0]


@aten
def linalg_inv_ex(g: Builder, A: Value, check_errors: bool = False) -> tuple[Value, Value]:
    """linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info). info: the first pivot that is 0, or 0."""
    result, pivots = inverse(g, A)
    return result, first_true(g, is_zero(g, pivots))


@aten("linalg_det", "det")
def linalg_det(g: Builder, A: Value | None = None, self: Value | None = None) -> Value:
    """linalg_det(Tensor A) -> Tensor; det(Tensor self) -> Tensor. ONNX Det of float32, else of the LU factors."""
    x = A if A is not None else self
    assert x is not None
    if x.dtype == DataType.FLOAT and g.opset >= 11:
        return g.op("Det", x)
    diagonal, sign = _diagonal_of_factors(g, x)
    return g.op("Mul", sign, reduce(g, "ReduceProd", diagonal, [rank_of(diagonal) - 1], False))


def _diagonal_of_factors(g: Builder, x: Value) -> tuple[Value, Value]:
    """(the diagonal of U, whether rows were exchanged an odd number of times as -1 or 1): their product is the determinant."""
    packed, pivots = lu(g, x)
    places = g.op("Add", count_up(g, shape_of(x)[-1]), g.const(1))
    moved = g.op("Equal", g.op("Cast", pivots, to=DataType.INT64), places)
    signs = g.op("Where", moved, g.const(1.0, x.dtype), g.const(-1.0, x.dtype))
    return diagonal_of(g, packed), reduce(g, "ReduceProd", signs, [rank_of(signs) - 1], False)


@aten
def logdet(g: Builder, self: Value) -> Value:
    """logdet(Tensor self) -> Tensor. NaN where the determinant is negative. As linalg_slogdet."""
    sign, logarithm = linalg_slogdet(g, self)
    return g.op("Where", g.op("Less", sign, g.const(0.0, sign.dtype)), g.const(float("nan"), sign.dtype), logarithm)


@aten("linalg_slogdet", "slogdet")
def linalg_slogdet(g: Builder, A: Value | None = None, self: Value | None = None) -> tuple[Value, Value]:
    """linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet). ONNX Log of the diagonal of U: the determinant itself could overflow."""
    x = A if A is not None else self
    assert x is not None
    diagonal, sign = _diagonal_of_factors(g, x)
    axis = [rank_of(diagonal) - 1]
    signs = g.op("Mul", sign, reduce(g, "ReduceProd", g.op("Sign", diagonal), axis, False))
    return signs, reduce(g, "ReduceSum", g.op("Log", g.op("Abs", diagonal)), axis, False)


# ---------------------------------------------------------------------- solutions


@aten
def linalg_solve(g: Builder, A: Value, B: Value, left: bool = True) -> Value:
    """linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor. By elimination."""
    return _solved(g, A, B, left)[0]


@aten
def linalg_solve_ex(g: Builder, A: Value, B: Value, left: bool = True, check_errors: bool = False) -> tuple[Value, Value]:
    """linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info). info as linalg_inv_ex."""
    result, pivots = _solved(g, A, B, left)
    return result, first_true(g, is_zero(g, pivots))


def _solved(g: Builder, a: Value, b: Value, left: bool) -> tuple[Value, Value]:
    """(the solution, the pivots)."""
    pivots: list[Value] = []

    def solve(a: Value, b: Value) -> Value:
        solution, found = eliminated(g, *same_batch(g, a, b))
        pivots.append(found)
        return solution

    vector = rank_of(b) == 1 or (rank_of(b) == rank_of(a) - 1 and shape_of(b) == shape_of(a)[:-1])
    b = unsqueeze(g, b, [rank_of(b)]) if vector else b
    result = solve(a, b) if left else swapped(g, solve(swapped(g, a), swapped(g, b)))
    return squeeze(g, result, [rank_of(result) - 1]) if vector else result, pivots[0]


@aten
def linalg_solve_triangular(g: Builder, self: Value, B: Value, upper: bool, left: bool = True, unitriangular: bool = False) -> Value:
    """linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor

    The other triangle is not read. By substitution, row after row.
    """
    if left:
        return substituted(g, *same_batch(g, self, B), upper, unitriangular)
    a, b = same_batch(g, swapped(g, self), swapped(g, B))
    return swapped(g, substituted(g, a, b, not upper, unitriangular))


@aten
def triangular_solve(g: Builder, self: Value, A: Value, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> tuple[Value, Value]:
    """triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor, Tensor A)"""
    a, b = same_batch(g, A, self)
    solution = substituted(g, swapped(g, a), b, not upper, unitriangular) if transpose else substituted(g, a, b, upper, unitriangular)
    return solution, a


@aten
def cholesky_solve(g: Builder, self: Value, input2: Value, upper: bool = False) -> Value:
    """cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor. The solution for the matrix of which input2 is the factor."""
    factor, right = same_batch(g, swapped(g, input2) if upper else input2, self)
    return substituted(g, swapped(g, factor), substituted(g, factor, right, False), True)


@aten
def cholesky_inverse(g: Builder, self: Value, upper: bool = False) -> Value:
    """cholesky_inverse(Tensor self, bool upper=False) -> Tensor. The inverse of the matrix of which self is the factor."""
    return cholesky_solve(g, expand(g, identity(g, shape_of(self)[-1], self.dtype), shape_of(self)), self, upper)


@aten
def linalg_tensorinv(g: Builder, self: Value, ind: int = 2) -> Value:
    """linalg_tensorinv(Tensor self, int ind=2) -> Tensor. The inverse of the matrix that the first `ind` dims and the others make."""
    rows, columns = shape_of(self)[:ind], shape_of(self)[ind:]
    return reshape(g, inverse(g, reshape(g, self, [product(rows), product(columns)]))[0], [*columns, *rows])


@aten
def linalg_tensorsolve(g: Builder, self: Value, other: Value, dims: list[int] | None = None) -> Value:
    """linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor. By elimination."""
    if dims is not None:
        moved = [axis_of(self, d) for d in dims]
        self = g.op("Transpose", self, perm=[*[a for a in range(rank_of(self)) if a not in moved], *moved])
    unknown = shape_of(self)[rank_of(other):]
    count = product(unknown)
    return reshape(g, _solved(g, reshape(g, self, [count, count]), reshape(g, other, [count]), True)[0], unknown)


# ---------------------------------------------------------------------- matrices of powers


@aten
def linalg_vander(g: Builder, x: Value, N: int | None = None) -> Value:
    """linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor. x (..., n) -> (..., n, N) of powers 0 to N - 1. ONNX Pow."""
    x = reshape(g, x, [1]) if rank_of(x) == 0 else x
    count = shape_of(x)[-1] if N is None else N
    x = x if x.dtype in (DataType.FLOAT, DataType.DOUBLE) else cast(g, x, DataType.INT64)
    return g.op("Pow", unsqueeze(g, x, [axis_of(x, -1) + 1]), g.op("Cast", count_up(g, count), to=x.dtype))
