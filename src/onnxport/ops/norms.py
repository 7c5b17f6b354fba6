"""Norms of vectors and matrices, and distances between points."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from onnxport import errors
from onnxport.ops.creation import filled, triu_indices
from onnxport.ops.elimination import inverse
from onnxport.ops.jacobi import singular_values
from onnxport.ops.layout import permuted
from onnxport.ops.matrices import is_zero
from onnxport.ops.reduction import Axes, count, reduce, wide
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, axes_of, axis_of, cast, promoted, rank_of, shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dtypes import from_torch
from onnxport.target.sizes import unsqueeze
from onnxport.target.value import DataType, Value


def vector_norm(g: Builder, x: Value, p: Number, axes: Sequence[int], keepdim: bool) -> Value:
    """The p-norm over `axes`, any p. ONNX ReduceL2, ReduceL1, ReduceMax or ReduceMin of Abs, else powers of a sum of powers."""
    if not axes:
        return cast(g, cast(g, x, DataType.BOOL), x.dtype or DataType.FLOAT) if p == 0 else g.op("Abs", x)
    if count(x, axes) == 0:
        return reduce(g, "ReduceL1", x, axes, keepdim)
    if p in (1, 2):
        return reduce(g, f"ReduceL{int(p)}", x, axes, keepdim)
    if math.isinf(p):
        return reduce(g, "ReduceMax" if p > 0 else "ReduceMin", g.op("Abs", x), axes, keepdim)
    if p == 0:
        return reduce(g, "ReduceSum", cast(g, cast(g, x, DataType.BOOL), x.dtype or DataType.FLOAT), axes, keepdim)
    powers = g.op("Pow", g.op("Abs", x), g.const(float(p), x.dtype))
    return g.op("Pow", reduce(g, "ReduceSum", powers, axes, keepdim), g.const(1.0 / p, x.dtype))


def _norm(g: Builder, x: Value, p: Number, dim: Axes, keepdim: bool, dtype: torch.dtype | None) -> Value:
    """In float32 for halves, whose powers overflow."""
    x = x if dtype is None else cast(g, x, from_torch(dtype))
    axes = axes_of(x, dim)
    if p < 0 and count(x, axes) == 0:
        raise errors.UnsupportedError(f"a norm of order {p} of nothing")
    result = vector_norm(g, wide(g, x), p, axes, keepdim)
    return cast(g, result, x.dtype or DataType.FLOAT)


@aten
def linalg_vector_norm(g: Builder, self: Value, ord: Number = 2, dim: Axes = None, keepdim: bool = False,
                       dtype: torch.dtype | None = None) -> Value:
    """linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"""
    return _norm(g, self, ord, dim, keepdim, dtype)


@aten
def norm(g: Builder, self: Value, p: Number | None = 2, dim: Axes = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """norm.Scalar(Tensor self, Scalar p=2) -> Tensor; norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
    norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor; norm.ScalarOpt_dim_dtype(...) -> Tensor
    """
    return _norm(g, self, 2 if p is None else p, dim, keepdim, dtype)


@aten
def frobenius_norm(g: Builder, self: Value, dim: Axes, keepdim: bool = False) -> Value:
    """frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor. ONNX ReduceL2."""
    return _norm(g, self, 2, dim, keepdim, None)


@aten
def linalg_matrix_norm(g: Builder, self: Value, ord: Number | str = 2, dim: Sequence[int] = (-2, -1), keepdim: bool = False,
                       dtype: torch.dtype | None = None) -> Value:
    """linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

    ONNX ReduceL2 ("fro"), or ReduceL1 and ReduceMax or ReduceMin; 2, -2 and "nuc" of singular values.
    """
    if ord == "fro":
        return _norm(g, self, 2, list(dim), keepdim, dtype)
    result_dtype = from_torch(dtype) if dtype is not None else self.dtype or DataType.FLOAT
    x = wide(g, cast(g, self, result_dtype))
    rows, columns = (axis_of(x, d) for d in dim)
    if (isinstance(ord, str) or ord > 0) and count(x, [rows, columns]) == 0:
        return cast(g, reduce(g, "ReduceL1", x, sorted([rows, columns]), keepdim), result_dtype)
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        return cast(g, _of_singular_values(g, x, ord, rows, columns, keepdim), result_dtype)
    inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = reduce(g, "ReduceL1", x, [inner], True)
    result = reduce(g, "ReduceMax" if ord > 0 else "ReduceMin", sums, [outer], True)
    if not keepdim:
        result = g.op("Squeeze", result, g.const(sorted([rows, columns])))
    return cast(g, result, result_dtype)


def _of_singular_values(g: Builder, x: Value, ord: Number | str, rows: int, columns: int, keepdim: bool) -> Value:
    """Their sum, the largest or the smallest."""
    if ord not in ("nuc", 2, -2):
        raise errors.UnsupportedError(f"a matrix norm of order {ord!r}, which is none that PyTorch has")
    others = [a for a in range(rank_of(x)) if a not in (rows, columns)]
    values = singular_values(g, permuted(g, x, [*others, rows, columns]))
    result = reduce(g, {"nuc": "ReduceSum", 2: "ReduceMax", -2: "ReduceMin"}[ord], values, [len(others)], False)
    return unsqueeze(g, result, sorted([rows, columns])) if keepdim else result


@aten
def linalg_cond(g: Builder, self: Value, p: Number | str | None = None) -> Value:
    """linalg_cond(Tensor self, Scalar? p=None) -> Tensor; linalg_cond.p_str(Tensor self, str p) -> Tensor

    The greatest over the least singular value, or the norms of the matrix and of its inverse multiplied. Infinite for a singular matrix.
    """
    if 0 in shape_of(self)[-2:]:
        return filled(g, shape_of(self)[:-2], 0.0, self.dtype)
    if p is None or p in (2, -2):
        values = singular_values(g, self)
        largest, smallest = (reduce(g, f"Reduce{which}", values, [rank_of(values) - 1], False) for which in ("Max", "Min"))
        return g.op("Div", smallest, largest) if p == -2 else g.op("Div", largest, smallest)
    inverted, pivots = inverse(g, self)
    singular = reduce(g, "ReduceMax", cast(g, is_zero(g, pivots), DataType.INT32), [rank_of(pivots) - 1], False)
    product = g.op("Mul", *(linalg_matrix_norm(g, x, p) for x in (self, inverted)))
    return g.op("Where", cast(g, singular, DataType.BOOL), g.const(math.inf, self.dtype), product)


@aten
def linalg_norm(g: Builder, self: Value, ord: Number | str | None = None, dim: Axes = None, keepdim: bool = False,
                dtype: torch.dtype | None = None) -> Value:
    """linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

    Of two dims, with an order, the matrix norm, else the vector norm.
    """
    dims = [dim] if isinstance(dim, int) else list(range(rank_of(self))) if dim is None else list(dim)
    if ord is not None and (isinstance(ord, str) or len(dims) == 2):
        return linalg_matrix_norm(g, self, ord, dims if len(dims) == 2 else (-2, -1), keepdim, dtype)
    return _norm(g, self, 2 if ord is None else ord, dim, keepdim, dtype)


@aten
def dist(g: Builder, self: Value, other: Value, p: Number = 2) -> Value:
    """dist(Tensor self, Tensor other, Scalar p=2) -> Tensor. The p-norm of the difference."""
    return _norm(g, g.op("Sub", *promoted(g, self, other)), p, None, False, None)


@aten
def cdist(g: Builder, x1: Value, x2: Value, p: Number = 2, compute_mode: int | None = None) -> Value:
    """cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor

    x1 (..., P, M), x2 (..., R, M) -> (..., P, R). The norm of all differences: exact, where products of the points would cancel.
    """
    left, right = promoted(g, x1, x2)
    difference = g.op("Sub", unsqueeze(g, left, [rank_of(left) - 1]), unsqueeze(g, right, [rank_of(right) - 2]))
    return vector_norm(g, difference, p, [rank_of(difference) - 1], False)


@aten("_cdist_forward")
def cdist_forward(g: Builder, x1: Value, x2: Value, p: Number, compute_mode: int | None = None) -> Value:
    """_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor. As cdist."""
    return cdist(g, x1, x2, p)


@aten("_euclidean_dist")
def euclidean_dist(g: Builder, x1: Value, x2: Value) -> Value:
    """_euclidean_dist(Tensor x1, Tensor x2) -> Tensor. As cdist with p=2."""
    return cdist(g, x1, x2, 2)


@aten
def pdist(g: Builder, self: Value, p: Number = 2) -> Value:
    """pdist(Tensor self, float p=2) -> Tensor

    (N, M) -> distances of the N (N - 1) / 2 pairs, the first in front. ONNX Gather, Sub and the norm's.
    """
    n = shape_of(self)[0]
    pairs = g.const(torch.triu_indices(n, n, 1)) if isinstance(n, int) else triu_indices(g, n, n, 1)
    pairs.shape = (2, dims.floordiv(n * (n - 1), 2))
    first, second = (g.op("Gather", self, g.op("Gather", pairs, g.const(i), axis=0), axis=0) for i in (0, 1))
    return vector_norm(g, g.op("Sub", first, second), p, [1], False)


@aten
def renorm(g: Builder, self: Value, p: Number, dim: int, maxnorm: Number) -> Value:
    """renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor

    Slices along `dim` whose p-norm is greater than maxnorm are scaled to it. ONNX the norm's, Greater, Div, Where, Mul.
    """
    keep = axis_of(self, dim)
    x = wide(g, self)
    length = vector_norm(g, x, p, [a for a in range(rank_of(self)) if a != keep], True)
    scale = g.op("Div", g.const(float(maxnorm), x.dtype), g.op("Add", length, g.const(1e-7, x.dtype)))
    factor = g.op("Where", g.op("Greater", length, g.const(float(maxnorm), x.dtype)), scale, g.const(1.0, x.dtype))
    return cast(g, g.op("Mul", x, factor), self.dtype or DataType.FLOAT)
