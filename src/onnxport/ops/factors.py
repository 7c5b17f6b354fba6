"""The operators that return factors of a matrix: LU, Cholesky, singular values and eigenvalues. QR stands with the reflections."""

from __future__ import annotations

from onnxport import errors
from onnxport.ops import elimination, jacobi
from onnxport.ops.creation import filled
from onnxport.ops.elimination import permutation, substituted
from onnxport.ops.matrices import diagonal_of, first_true, identity, is_zero, same_batch, swapped, triangle
from onnxport.ops.pieces import sliced
from onnxport.ops.registry import aten
from onnxport.ops.support import rank_of, shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.value import Value

# ---------------------------------------------------------------------- LU


@aten("linalg_lu_factor_ex", "_lu_with_info")
def linalg_lu_factor_ex(g: Builder, A: Value | None = None, self: Value | None = None, pivot: bool = True,
                        check_errors: bool = False) -> tuple[Value, Value, Value]:
    """linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)
    _lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)

    info: the first pivot that is 0, or 0. By Gauss, in ONNX ArgMax, Where, Mul, as a Loop over columns.
    """
    x = A if A is not None else self
    assert x is not None
    packed, pivots = _factored(g, x, pivot)
    corner = sliced(g, packed, rank_of(x) - 1, 0, dims.minimum(*shape_of(x)[-2:]))
    return packed, pivots, first_true(g, is_zero(g, diagonal_of(g, corner)))


def _factored(g: Builder, x: Value, pivot: bool) -> tuple[Value, Value]:
    if not pivot:
        raise errors.UnsupportedError("LU factors without exchanging rows, which PyTorch has on GPUs only")
    return elimination.lu(g, x)


@aten
def linalg_lu_factor(g: Builder, A: Value, pivot: bool = True) -> tuple[Value, Value]:
    """linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)"""
    return _factored(g, A, pivot)


@aten
def linalg_lu(g: Builder, A: Value, pivot: bool = True) -> tuple[Value, Value, Value]:
    """linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U): A = P @ L @ U"""
    return lu_unpack(g, *_factored(g, A, pivot))


@aten
def lu_unpack(g: Builder, LU_data: Value, LU_pivots: Value, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Value, Value, Value]:
    """lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)"""
    *_, m, n = shape_of(LU_data)
    last, k, dtype = rank_of(LU_data) - 1, dims.minimum(m, n), LU_data.dtype
    nothing = filled(g, (0,), 0.0, dtype)
    order = permutation(g, LU_pivots, m, dtype) if unpack_pivots else nothing
    if not unpack_data:
        return order, nothing, nothing
    lower = g.op("Add", triangle(g, sliced(g, LU_data, last, 0, k), False, -1), identity(g, m, dtype, k))
    return order, lower, triangle(g, sliced(g, LU_data, last - 1, 0, k), True)


@aten
def linalg_lu_solve(g: Builder, LU: Value, pivots: Value, B: Value, left: bool = True, adjoint: bool = False) -> Value:
    """linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor

    LU (..., n, n), B (..., n, k), or (..., k, n) with left=False. By substitution, twice.
    """
    if not left:
        return swapped(g, linalg_lu_solve(g, LU, pivots, swapped(g, B), True, not adjoint))
    order = permutation(g, pivots, shape_of(LU)[-1], LU.dtype)
    if adjoint:
        packed, right = same_batch(g, swapped(g, LU), B)
        return g.op("MatMul", order, substituted(g, packed, substituted(g, packed, right, False), True, True))
    packed, right = same_batch(g, LU, g.op("MatMul", swapped(g, order), B))
    return substituted(g, packed, substituted(g, packed, right, False, True), True)


@aten
def lu_solve(g: Builder, self: Value, LU_data: Value, LU_pivots: Value) -> Value:
    """lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor"""
    return linalg_lu_solve(g, LU_data, LU_pivots, self)


# ---------------------------------------------------------------------- Cholesky


@aten("linalg_cholesky", "cholesky")
def linalg_cholesky(g: Builder, self: Value, upper: bool = False) -> Value:
    """linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor; cholesky(Tensor self, bool upper=False) -> Tensor

    Column after column. ONNX MatMul, Sqrt, Div, Where.
    """
    return swapped(g, elimination.cholesky(g, swapped(g, self))) if upper else elimination.cholesky(g, self)


@aten
def linalg_cholesky_ex(g: Builder, self: Value, upper: bool = False, check_errors: bool = False) -> tuple[Value, Value]:
    """linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)

    info: the size of the first leading minor that is not positive definite, or 0. From there on L is NaN.
    """
    factor = linalg_cholesky(g, self, upper)
    return factor, first_true(g, g.op("IsNaN", diagonal_of(g, factor)))


# ---------------------------------------------------------------------- singular values, eigenvalues


@aten("linalg_svd", "_linalg_svd")
def linalg_svd(g: Builder, A: Value, full_matrices: bool = True, compute_uv: bool = True,
               driver: str | None = None) -> tuple[Value, Value, Value]:
    """linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)
    _linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)

    By Jacobi's rotations, as a Loop until nothing is left to rotate. Which of its two signs a pair of vectors has is open, as in PyTorch.
    """
    if not compute_uv:
        nothing = filled(g, (0,), 0.0, A.dtype)
        return nothing, jacobi.singular_values(g, A), nothing
    return jacobi.singular(g, A, full_matrices)


@aten
def linalg_svdvals(g: Builder, A: Value, driver: str | None = None) -> Value:
    """linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor. (..., min(m, n)), falling."""
    return jacobi.singular_values(g, A)


@aten
def svd(g: Builder, self: Value, some: bool = True, compute_uv: bool = True) -> tuple[Value, Value, Value]:
    """svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V). As linalg_svd; without vectors, zeros."""
    *batch, m, n = shape_of(self)
    if not compute_uv:
        return filled(g, (*batch, m, m), 0.0, self.dtype), jacobi.singular_values(g, self), filled(g, (*batch, n, n), 0.0, self.dtype)
    u, values, vh = jacobi.singular(g, self, not some)
    return u, values, swapped(g, vh)


@aten("linalg_eigh", "_linalg_eigh")
def linalg_eigh(g: Builder, self: Value | None = None, A: Value | None = None, UPLO: str = "L", compute_v: bool = True) -> tuple[Value, Value]:
    """linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)
    _linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)

    By Jacobi's rotations, as a Loop until nothing is left to rotate. Which of its two signs a vector has is open, as in PyTorch.
    """
    x = A if A is not None else self
    assert x is not None
    values, vectors = jacobi.eigen(g, x, UPLO.upper() == "U")
    return values, vectors if compute_v else filled(g, (0,), 0.0, x.dtype)


@aten
def linalg_eigvalsh(g: Builder, self: Value, UPLO: str = "L") -> Value:
    """linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor. (..., n), rising."""
    return linalg_eigh(g, self, UPLO=UPLO)[0]
