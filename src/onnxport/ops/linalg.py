"""Linear algebra of square matrices: traces, powers, determinants, inverses, solutions."""

from __future__ import annotations

from collections.abc import Callable

import torch

from onnxport import errors
from onnxport.ops.reduction import reduce
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, rank_of, shape_of
from onnxport.target.builder import Builder
from onnxport.target.dims import product
from onnxport.target.shape_helpers import broadcast
from onnxport.target.sizes import reshape, unsqueeze
from onnxport.target.value import DataType, Value

_LARGEST = 8  # rows of a matrix that is eliminated row by row; each costs some nodes


def _size(x: Value, what: str) -> int:
    """The rows of a square matrix, a fixed number."""
    rows = shape_of(x)[-1]
    if not isinstance(rows, int):
        raise errors.UnsupportedError(f"{what} of matrices of a dynamic size, {rows}")
    return rows


def identity(g: Builder, size: int, dtype: DataType | None) -> Value:
    """The identity matrix."""
    return g.const(torch.eye(size), dtype)


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
    base = self if n >= 0 else inverse(g, self)
    if n == 0:
        eye = identity(g, _size(self, "the power 0"), self.dtype)
        return g.op("Expand", eye, g.sizes(shape_of(self)))
    result: Value | None = None
    rest = abs(n)
    while rest:
        if rest & 1:
            result = base if result is None else g.op("MatMul", result, base)
        rest >>= 1
        base = g.op("MatMul", base, base) if rest else base
    assert result is not None
    return result


# ---------------------------------------------------------------------- elimination


def _row(g: Builder, x: Value, i: int) -> Value:
    """Row i of matrices, as (..., 1, columns)."""
    return g.op("Gather", x, g.const([i]), axis=rank_of(x) - 2)


def _column(g: Builder, x: Value, i: int) -> Value:
    """Column i, as (..., rows, 1)."""
    return g.op("Gather", x, g.const([i]), axis=rank_of(x) - 1)


def eliminated(g: Builder, a: Value, right: Value, what: str) -> tuple[Value, Value]:
    """(the solution of a @ solution = right, the determinant (..., 1, 1) of a), by Gauss and Jordan with the largest pivot.

    a (..., n, n), right (..., n, k).
    """
    n = _size(a, what)
    if n == 0:
        return right, g.op("Expand", g.const(1.0, a.dtype), g.sizes([*shape_of(a)[:-2], 1, 1]))
    if n > _LARGEST:
        raise errors.UnsupportedError(f"{what} of matrices of {n} rows: ONNX has no operator, and more than {_LARGEST} are not written out")
    if g.opset < 11:
        raise errors.UnsupportedError(f"{what} needs opset 11 or higher (opset_version={g.opset} was asked)")
    whole = g.op("Concat", a, right, axis=rank_of(a) - 1)
    determinant: Value | None = None
    numbers = g.const(torch.arange(n).reshape(n, 1))
    for i in range(n):
        # The row with the largest element from i on comes to place i: a permutation, as a product with rows of the identity.
        column = _column(g, whole, i)
        below = g.op("Where", g.op("Less", numbers, g.const(i)), g.const(-1.0, a.dtype), g.op("Abs", column))
        best = g.op("ArgMax", below, axis=rank_of(a) - 2, keepdims=1)
        here = g.const(i)
        at_best, at_here = g.op("Equal", numbers, best), g.op("Equal", numbers, here)
        chosen = g.op("ReduceSum", g.op("Where", at_best, whole, g.const(0.0, a.dtype)), g.const([rank_of(a) - 2]), keepdims=1)
        old = _row(g, whole, i)
        whole = g.op("Where", at_here, chosen, g.op("Where", at_best, old, whole))
        pivot = _column(g, chosen, i)
        sign = g.op("Where", g.op("Equal", best, here), g.const(1.0, a.dtype), g.const(-1.0, a.dtype))
        signed = g.op("Mul", pivot, sign)
        determinant = signed if determinant is None else g.op("Mul", determinant, signed)
        unit = g.op("Div", chosen, pivot)
        factors = g.op("Where", at_here, g.const(0.0, a.dtype), _column(g, whole, i))
        whole = g.op("Where", at_here, unit, g.op("Sub", whole, g.op("Mul", factors, unit)))
    assert determinant is not None
    solution = g.op("Slice", whole, g.const([n]), g.const([2**63 - 1]), g.const([rank_of(a) - 1]))
    return solution, determinant


def inverse(g: Builder, x: Value) -> Value:
    """The inverse of each matrix."""
    n = _size(x, "the inverse")
    eye = identity(g, n, x.dtype)
    batch = shape_of(x)[:-2]
    right = g.op("Expand", eye, g.sizes([*batch, n, n])) if batch else eye
    return eliminated(g, x, right, "the inverse")[0]


@aten("linalg_inv", "inverse")
def linalg_inv(g: Builder, A: Value | None = None, self: Value | None = None) -> Value:
    """linalg_inv(Tensor A) -> Tensor; inverse(Tensor self) -> Tensor. By elimination, up to 8 rows."""
    x = A if A is not None else self
    assert x is not None
    return inverse(g, x)


@aten
def linalg_inv_ex(g: Builder, A: Value, check_errors: bool = False) -> tuple[Value, Value]:
    """linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info). info is 0: not singular."""
    return inverse(g, A), _no_info(g, A)


def _no_info(g: Builder, x: Value) -> Value:
    batch = shape_of(x)[:-2]
    zero = g.const(0, DataType.INT32)
    return g.op("Expand", zero, g.sizes(batch)) if batch else zero


@aten("linalg_det", "det")
def linalg_det(g: Builder, A: Value | None = None, self: Value | None = None) -> Value:
    """linalg_det(Tensor A) -> Tensor; det(Tensor self) -> Tensor. ONNX Det of float32, else by elimination."""
    x = A if A is not None else self
    assert x is not None
    if x.dtype == DataType.FLOAT and g.opset >= 11:
        return g.op("Det", x)
    first = _column(g, x, 0) if _size(x, "the determinant") else x
    determinant = eliminated(g, x, first, "the determinant")[1]
    return g.op("Squeeze", determinant, g.const([rank_of(x) - 2, rank_of(x) - 1]))


@aten
def logdet(g: Builder, self: Value) -> Value:
    """logdet(Tensor self) -> Tensor. ONNX Det, Log."""
    return g.op("Log", linalg_det(g, self))


@aten("linalg_slogdet", "slogdet")
def linalg_slogdet(g: Builder, A: Value | None = None, self: Value | None = None) -> tuple[Value, Value]:
    """linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet). ONNX Det, Sign, Abs, Log."""
    determinant = linalg_det(g, A, self)
    return g.op("Sign", determinant), g.op("Log", g.op("Abs", determinant))


@aten
def linalg_solve(g: Builder, A: Value, B: Value, left: bool = True) -> Value:
    """linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor. By elimination, up to 8 rows."""
    return _solved(g, A, B, left)


@aten
def linalg_solve_ex(g: Builder, A: Value, B: Value, left: bool = True, check_errors: bool = False) -> tuple[Value, Value]:
    """linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)"""
    return _solved(g, A, B, left), _no_info(g, A)


def _solved(g: Builder, a: Value, b: Value, left: bool) -> Value:
    vector = rank_of(b) == 1 or (rank_of(b) == rank_of(a) - 1 and shape_of(b) == shape_of(a)[:-1])
    if vector:
        b = unsqueeze(g, b, [rank_of(b)])
    swap: Callable[[Value], Value] = lambda v: g.op("Transpose", v, perm=[*range(rank_of(v) - 2), rank_of(v) - 1, rank_of(v) - 2])
    if not left:
        a, b = swap(a), swap(b)
    a, b = _same_batch(g, a, b)
    result = eliminated(g, a, b, "the solution")[0]
    if not left:
        result = swap(result)
    return g.op("Squeeze", result, g.const([rank_of(result) - 1])) if vector else result


def _same_batch(g: Builder, a: Value, b: Value) -> tuple[Value, Value]:
    """Both with the same leading dims, as Concat wants them."""
    if shape_of(a)[:-2] == shape_of(b)[:-2]:
        return a, b
    batch = broadcast(shape_of(a)[:-2], shape_of(b)[:-2])
    if batch is None or None in batch:
        raise errors.UnsupportedError("dims of which only the run knows whether they broadcast")
    a, b = (g.op("Expand", v, g.sizes([*batch, *shape_of(v)[-2:]])) for v in (a, b))  # type: ignore[list-item]
    return a, b


@aten
def linalg_solve_triangular(g: Builder, self: Value, B: Value, upper: bool, left: bool = True, unitriangular: bool = False) -> Value:
    """linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor

    The other triangle is not read. By elimination, up to 8 rows.
    """
    n = _size(self, "the triangular solution")
    ones = torch.ones(n, n, dtype=torch.bool)
    mask = ones.triu(int(unitriangular)) if upper else ones.tril(-int(unitriangular))
    a = g.op("Where", g.const(mask), self, g.const(0.0, self.dtype))
    return _solved(g, g.op("Add", a, identity(g, n, self.dtype)) if unitriangular else a, B, left)


@aten
def linalg_cholesky(g: Builder, self: Value, upper: bool = False) -> Value:
    """linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor

    Column after column, up to 8 rows. ONNX MatMul, Sqrt, Div, Where.
    """
    n = _size(self, "the Cholesky factor")
    if n == 0:
        return self
    if n > _LARGEST:
        raise errors.UnsupportedError(f"the Cholesky factor of matrices of {n} rows: more than {_LARGEST} are not written out")
    if g.opset < 9:
        raise errors.UnsupportedError(f"the Cholesky factor needs opset 9 or higher (opset_version={g.opset} was asked)")
    rest, columns = self, []
    numbers = torch.arange(n).reshape(n, 1)
    last = rank_of(self) - 1
    for i in range(n):
        column = g.op("Where", g.const(numbers >= i), _column(g, rest, i), g.const(0.0, self.dtype))
        column = g.op("Div", column, g.op("Sqrt", _row(g, column, i)))
        columns.append(column)
        if i < n - 1:
            rest = g.op("Sub", rest, g.op("MatMul", column, g.op("Transpose", column, perm=[*range(last - 1), last, last - 1])))
    result = g.op("Concat", *columns, axis=last)
    return g.op("Transpose", result, perm=[*range(last - 1), last, last - 1]) if upper else result


@aten
def linalg_cholesky_ex(g: Builder, self: Value, upper: bool = False, check_errors: bool = False) -> tuple[Value, Value]:
    """linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)"""
    return linalg_cholesky(g, self, upper), _no_info(g, self)


@aten
def cholesky_solve(g: Builder, self: Value, input2: Value, upper: bool = False) -> Value:
    """cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor. The solution for the matrix of which input2 is the factor."""
    return _solved(g, _of_factor(g, input2, upper), self, True)


@aten
def cholesky_inverse(g: Builder, self: Value, upper: bool = False) -> Value:
    """cholesky_inverse(Tensor self, bool upper=False) -> Tensor. The inverse of the matrix of which self is the factor."""
    return inverse(g, _of_factor(g, self, upper))


def _of_factor(g: Builder, factor: Value, upper: bool) -> Value:
    """L L' of the lower triangle, or U' U of the upper one; the other triangle is not read."""
    n, last = _size(factor, "a Cholesky factor"), rank_of(factor) - 1
    ones = torch.ones(n, n, dtype=torch.bool)
    factor = g.op("Where", g.const(ones.triu() if upper else ones.tril()), factor, g.const(0.0, factor.dtype))
    other = g.op("Transpose", factor, perm=[*range(last - 1), last, last - 1])
    return g.op("MatMul", other, factor) if upper else g.op("MatMul", factor, other)


@aten
def triangular_solve(g: Builder, self: Value, A: Value, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> tuple[Value, Value]:
    """triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor, Tensor A)"""
    a, last = A, rank_of(A) - 1
    if transpose:
        a, upper = g.op("Transpose", A, perm=[*range(last - 1), last, last - 1]), not upper
    return linalg_solve_triangular(g, a, self, upper, True, unitriangular), A


@aten
def linalg_tensorinv(g: Builder, self: Value, ind: int = 2) -> Value:
    """linalg_tensorinv(Tensor self, int ind=2) -> Tensor. The inverse of the matrix that the first `ind` dims and the others make."""
    rows, columns = shape_of(self)[:ind], shape_of(self)[ind:]
    return reshape(g, inverse(g, reshape(g, self, [product(rows), product(columns)])), [*columns, *rows])


@aten
def linalg_tensorsolve(g: Builder, self: Value, other: Value, dims: list[int] | None = None) -> Value:
    """linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor. By elimination, up to 8 unknowns."""
    if dims is not None:
        moved = [axis_of(self, d) for d in dims]
        self = g.op("Transpose", self, perm=[*[a for a in range(rank_of(self)) if a not in moved], *moved])
    unknown = shape_of(self)[rank_of(other):]
    count = product(unknown)
    return reshape(g, _solved(g, reshape(g, self, [count, count]), reshape(g, other, [count]), True), unknown)


# ---------------------------------------------------------------------- matrices of powers


@aten
def linalg_vander(g: Builder, x: Value, N: int | None = None) -> Value:
    """linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor. x (..., n) -> (..., n, N) of powers 0 to N - 1. ONNX Pow."""
    x = reshape(g, x, [1]) if rank_of(x) == 0 else x
    count = shape_of(x)[-1] if N is None else N
    if not isinstance(count, int):
        raise errors.UnsupportedError(f"a Vandermonde matrix with a dynamic number of powers, {count}")
    x = x if x.dtype in (DataType.FLOAT, DataType.DOUBLE) else cast(g, x, DataType.INT64)
    return g.op("Pow", unsqueeze(g, x, [axis_of(x, -1) + 1]), g.const(list(range(count)), x.dtype))
