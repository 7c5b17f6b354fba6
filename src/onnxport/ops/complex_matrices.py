"""Linear algebra of complex matrices by real ones of twice the size.

A + iB acts on pairs as [[A, -B], [B, A]]. Sums, products, inverses and limits of such matrices are such matrices, so that what is made of
these alone has its real part in the upper left block and its imaginary part below it.
"""

from __future__ import annotations

from collections.abc import Callable

from onnxport.ops import layout, linalg, singular
from onnxport.ops.complex_parts import on_both, pair
from onnxport.ops.pieces import sliced
from onnxport.ops.registry import of_complex
from onnxport.ops.support import rank_of, result_type, shape_of
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import Complex, Value


def _blocks(g: Builder, z: Complex) -> Value:
    """The real matrix of twice the size."""
    columns, rows = rank_of(z) - 1, rank_of(z) - 2
    above = g.op("Concat", z.re, g.op("Neg", z.im), axis=columns)
    return g.op("Concat", above, g.op("Concat", z.im, z.re, axis=columns), axis=rows)


def _from_blocks(g: Builder, x: Value, axis: int, rows: Size) -> Complex:
    """The parts, which stand one above the other along `axis`."""
    return Complex(sliced(g, x, axis, 0, rows), sliced(g, x, axis, rows, None))


def _square(g: Builder, function: Callable[[Builder, Value], Value], z: Complex) -> Complex:
    """A function of square matrices."""
    size, rank = shape_of(z)[-1], rank_of(z)
    left = sliced(g, function(g, _blocks(g, z)), rank - 1, 0, size)
    return _from_blocks(g, left, rank - 2, size)


@of_complex("linalg_inv", "inverse")
def linalg_inv(g: Builder, A: Complex | None = None, self: Complex | None = None) -> Value:
    """linalg_inv(Tensor A) -> Tensor"""
    matrix = A if A is not None else self
    assert matrix is not None
    return _square(g, linalg.linalg_inv, matrix)


@of_complex("linalg_matrix_exp", "matrix_exp")
def linalg_matrix_exp(g: Builder, self: Complex) -> Value:
    """linalg_matrix_exp(Tensor self) -> Tensor"""
    return _square(g, singular.linalg_matrix_exp, self)


@of_complex("linalg_solve")
def linalg_solve(g: Builder, A: Value, B: Value, left: bool = True) -> Value:
    """linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor; the right side is the real part above the imaginary one."""
    dtype = result_type(A, B)
    matrix, right = pair(g, A, dtype), pair(g, B, dtype)
    if not left:
        turned = [on_both(z, lambda part: layout.matrix_transposed(g, part)) for z in (matrix, right)]
        return on_both(_solved(g, turned[0], turned[1]), lambda part: layout.matrix_transposed(g, part))
    return _solved(g, matrix, right)


def _solved(g: Builder, matrix: Complex, right: Complex) -> Complex:
    shape = shape_of(right)
    vector = len(shape) == 1 or (len(shape) == rank_of(matrix) - 1 and shape == shape_of(matrix)[:-1])
    axis = len(shape) - (1 if vector else 2)
    made = linalg.linalg_solve(g, _blocks(g, matrix), g.op("Concat", right.re, right.im, axis=axis))
    return _from_blocks(g, made, rank_of(made) - (1 if vector else 2), shape_of(matrix)[-1])
