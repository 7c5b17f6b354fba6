"""Complex tensors made of real ones and taken apart, and what is asked of each number: conjugate, length, angle, equality, kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.ops import comparison, conversion, indexing, math, norms, reduction
from onnxport.ops.complex_parts import on_both, pair, parts_of
from onnxport.ops.creation import filled
from onnxport.ops.layout import broadcast_tensors
from onnxport.ops.registry import aten, of_complex
from onnxport.ops.support import promoted, rank_of, result_type, shape_of, tensor
from onnxport.target import pairs
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import COMPLEX, component, from_torch, to_torch
from onnxport.target.value import Complex, DataType, Value

BOOL = DataType.BOOL


# ---------------------------------------------------------------------- from real to complex and back


@aten("complex")
def complex_(g: Builder, real: Value, imag: Value) -> Value:
    """complex(Tensor real, Tensor imag) -> Tensor."""
    re, im = promoted(g, real, imag)
    return _alike(g, re, im)


@aten
def polar(g: Builder, abs: Value, angle: Value) -> Value:
    """polar(Tensor abs, Tensor angle) -> Tensor. ONNX Cos, Sin, Mul."""
    length, arc = promoted(g, abs, angle)
    return Complex(g.op("Mul", length, g.op("Cos", arc)), g.op("Mul", length, g.op("Sin", arc)))


@aten("view_as_complex", "view_as_complex_copy")
def view_as_complex(g: Builder, self: Value) -> Value:
    """view_as_complex(Tensor(a) self) -> Tensor(a). ONNX Gather."""
    return pairs.unpacked(g, self)


@of_complex("view_as_real", "view_as_real_copy")
def view_as_real(g: Builder, self: Complex) -> Value:
    """view_as_real(Tensor(a) self) -> Tensor(a). ONNX Unsqueeze, Concat."""
    return pairs.packed(g, self)


@of_complex("real")
def real(g: Builder, self: Complex) -> Value:
    """real(Tensor(a) self) -> Tensor(a)."""
    return self.re


@of_complex("imag")
def imag(g: Builder, self: Complex) -> Value:
    """imag(Tensor(a) self) -> Tensor(a)."""
    return self.im


@of_complex("to", "_to_copy")
def to(g: Builder, self: Value, dtype: torch.dtype | None = None, other: Value | None = None) -> Value:
    """to(Tensor self, ScalarType dtype, ...) -> Tensor; to a real dtype: the real part, or for bool whether it is not 0."""
    wanted = other.dtype if other is not None else self.dtype if dtype is None else from_torch(dtype)
    assert wanted is not None
    if wanted in COMPLEX:
        return pair(g, self, wanted)
    assert isinstance(self, Complex)
    return nonzero(g, self) if wanted == BOOL else conversion.converted(g, self.re, to_torch(wanted))


@of_complex("type_as")
def type_as(g: Builder, self: Value, other: Value) -> Value:
    """type_as(Tensor self, Tensor other) -> Tensor."""
    return to(g, self, other=other)


def _alike(g: Builder, re: Value, im: Value) -> Complex:
    """Parts broadcast against each other."""
    re, im = broadcast_tensors(g, [re, im])
    return Complex(re, im)


# ---------------------------------------------------------------------- new ones


def _filled(g: Builder, size: Sequence[Size], number: Any, dtype: torch.dtype | None, like: Value | None = None) -> Value:
    """A new tensor of one number. dtype None: that of `like`, or the default one."""
    wanted = from_torch(dtype) if dtype is not None else like.dtype if like is not None else DataType.COMPLEX64
    assert wanted is not None
    re, im = parts_of(g, number) if isinstance(number, Value) else (number.real, number.imag)
    real = filled(g, size, re, component(wanted))
    return real if wanted not in COMPLEX else Complex(real, filled(g, size, im or 0, component(wanted)))


@of_complex("zeros", "empty", "empty_strided", "empty_permuted")
def zeros_(g: Builder, size: Sequence[Size], dtype: torch.dtype | None = None, stride: Any = None, physical_layout: Any = None) -> Value:
    """zeros(SymInt[] size, *, ScalarType? dtype=None) -> Tensor; `empty` and its like too. ONNX ConstantOfShape."""
    return _filled(g, size, 0, dtype)


@of_complex("ones")
def ones(g: Builder, size: Sequence[Size], dtype: torch.dtype | None = None) -> Value:
    """ones(SymInt[] size, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return _filled(g, size, 1, dtype)


@of_complex("full")
def full(g: Builder, size: Sequence[Size], fill_value: Any, dtype: torch.dtype | None = None) -> Value:
    """full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return _filled(g, size, fill_value, dtype)


@of_complex("scalar_tensor")
def scalar_tensor(g: Builder, s: Any, dtype: torch.dtype | None = None) -> Value:
    """scalar_tensor(Scalar s, *, ScalarType? dtype=None) -> Tensor."""
    return _filled(g, [], s, dtype)


@of_complex("zeros_like", "empty_like")
def zeros_like(g: Builder, self: Value, dtype: torch.dtype | None = None) -> Value:
    """zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor; `empty_like` too. ONNX ConstantOfShape."""
    return _filled(g, shape_of(self), 0, dtype, self)


@of_complex("ones_like")
def ones_like(g: Builder, self: Value, dtype: torch.dtype | None = None) -> Value:
    """ones_like(Tensor self, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return _filled(g, shape_of(self), 1, dtype, self)


@of_complex("full_like")
def full_like(g: Builder, self: Value, fill_value: Any, dtype: torch.dtype | None = None) -> Value:
    """full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return _filled(g, shape_of(self), fill_value, dtype, self)


@of_complex("new_zeros", "new_empty", "new_empty_strided")
def new_zeros(g: Builder, self: Value, size: Sequence[Size], dtype: torch.dtype | None = None, stride: Any = None) -> Value:
    """new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None) -> Tensor; `new_empty` too. ONNX ConstantOfShape."""
    return _filled(g, size, 0, dtype, self)


@of_complex("new_ones")
def new_ones(g: Builder, self: Value, size: Sequence[Size], dtype: torch.dtype | None = None) -> Value:
    """new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return _filled(g, size, 1, dtype, self)


@of_complex("new_full")
def new_full(g: Builder, self: Value, size: Sequence[Size], fill_value: Any, dtype: torch.dtype | None = None) -> Value:
    """new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return _filled(g, size, fill_value, dtype, self)


@of_complex("eye")
def eye(g: Builder, n: Size, m: Size | None = None, dtype: torch.dtype | None = None) -> Value:
    """eye(SymInt n, SymInt m, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape, EyeLike."""
    made = _filled(g, [n, n if m is None else m], 0, dtype)
    assert isinstance(made, Complex)
    return Complex(g.op("EyeLike", made.re), made.im)


# ---------------------------------------------------------------------- one number at a time


@of_complex("conj", "_conj", "conj_physical", "_conj_physical", "_conj_copy")
def conj(g: Builder, self: Complex) -> Value:
    """conj(Tensor(a) self) -> Tensor(a). ONNX Neg."""
    return Complex(self.re, g.op("Neg", self.im))


@of_complex("mH", "adjoint", "matrix_H")
def adjoint(g: Builder, self: Complex) -> Value:
    """adjoint(Tensor(a) self) -> Tensor(a). ONNX Transpose, Neg."""
    axes = list(range(rank_of(self)))
    axes[-2:] = reversed(axes[-2:])
    re, im = (g.op("Transpose", part, perm=axes) for part in (self.re, self.im))
    return Complex(re, g.op("Neg", im))


@of_complex("abs", "absolute")
def abs_(g: Builder, self: Complex) -> Value:
    """abs(Tensor self) -> Tensor; a real one. Squares are taken relative to the greater part, so that they do not overflow or vanish.

    ONNX Abs, Max, Min, Clip, Div, Mul, Add, Sqrt.
    """
    a, b = (g.op("Abs", part) for part in (self.re, self.im))
    longer = g.op("Max", a, b)
    ratio = g.op("Div", g.op("Min", a, b), _unit(g, longer))
    return g.op("Mul", longer, g.op("Sqrt", g.op("Add", g.op("Mul", ratio, ratio), tensor(g, 1, ratio.dtype))))


def _unit(g: Builder, length: Value) -> Value:
    """A length that can be divided by: neither 0 nor infinite."""
    assert length.dtype is not None
    limits = torch.finfo(to_torch(length.dtype))
    return g.op("Clip", length, tensor(g, limits.tiny, length.dtype), tensor(g, limits.max, length.dtype))


@of_complex("angle")
def angle(g: Builder, self: Complex) -> Value:
    """angle(Tensor self) -> Tensor; a real one."""
    return math.atan2(g, self.im, self.re)


@of_complex("sgn", "sign")
def sgn(g: Builder, self: Complex) -> Value:
    """sgn(Tensor self) -> Tensor; z / |z|, and 0 of 0. ONNX Div, Where."""
    length = abs_(g, self)
    safe = g.op("Where", g.op("Equal", length, tensor(g, 0, length.dtype)), tensor(g, 1, length.dtype), length)
    return Complex(g.op("Div", self.re, safe), g.op("Div", self.im, safe))


# ---------------------------------------------------------------------- comparisons


@of_complex("eq")
def eq(g: Builder, self: Any, other: Any) -> Value:
    """eq(Tensor self, Tensor other) -> Tensor. ONNX Equal, And."""
    a, b = (pair(g, x, result_type(self, other)) for x in (self, other))
    return g.op("And", comparison.eq(g, a.re, b.re), comparison.eq(g, a.im, b.im))


@of_complex("ne", "not_equal")
def ne(g: Builder, self: Any, other: Any) -> Value:
    """ne(Tensor self, Tensor other) -> Tensor. ONNX Equal, And, Not."""
    return g.op("Not", eq(g, self, other))


def nonzero(g: Builder, z: Complex) -> Value:
    """Which numbers are not 0."""
    return ne(g, z, 0)


@of_complex("isnan")
def isnan(g: Builder, self: Complex) -> Value:
    """isnan(Tensor self) -> Tensor; where a part is. ONNX IsNaN, Or."""
    return g.op("Or", comparison.isnan(g, self.re), comparison.isnan(g, self.im))


@of_complex("isinf")
def isinf(g: Builder, self: Complex) -> Value:
    """isinf(Tensor self) -> Tensor; where a part is. ONNX IsInf, Or."""
    return g.op("Or", comparison.isinf(g, self.re), comparison.isinf(g, self.im))


@of_complex("isfinite")
def isfinite(g: Builder, self: Complex) -> Value:
    """isfinite(Tensor self) -> Tensor; where both parts are. ONNX And."""
    return g.op("And", comparison.isfinite(g, self.re), comparison.isfinite(g, self.im))


@of_complex("isreal")
def isreal(g: Builder, self: Complex) -> Value:
    """isreal(Tensor self) -> Tensor; where the imaginary part is 0. ONNX Equal."""
    return comparison.eq(g, self.im, 0)


@of_complex("equal")
def equal(g: Builder, self: Any, other: Any) -> Value:
    """equal(Tensor self, Tensor other) -> bool."""
    return g.op("And", comparison.equal(g, self.re, other.re), comparison.equal(g, self.im, other.im))


@of_complex("nonzero", "argwhere")
def nonzero_places(g: Builder, self: Complex) -> Value:
    """nonzero(Tensor self) -> Tensor."""
    return indexing.nonzero(g, nonzero(g, self))


@of_complex("logical_not")
def logical_not(g: Builder, self: Complex) -> Value:
    """logical_not(Tensor self) -> Tensor. ONNX Equal, And."""
    return eq(g, self, 0)


@of_complex("logical_and")
def logical_and(g: Builder, self: Value, other: Value) -> Value:
    """logical_and(Tensor self, Tensor other) -> Tensor. ONNX And."""
    return comparison.logical_and(g, _truth(g, self), _truth(g, other))


@of_complex("logical_or")
def logical_or(g: Builder, self: Value, other: Value) -> Value:
    """logical_or(Tensor self, Tensor other) -> Tensor. ONNX Or."""
    return comparison.logical_or(g, _truth(g, self), _truth(g, other))


@of_complex("logical_xor")
def logical_xor(g: Builder, self: Value, other: Value) -> Value:
    """logical_xor(Tensor self, Tensor other) -> Tensor. ONNX Xor."""
    return comparison.logical_xor(g, _truth(g, self), _truth(g, other))


def _truth(g: Builder, x: Value) -> Value:
    return nonzero(g, x) if isinstance(x, Complex) else x


@of_complex("any")
def any_(g: Builder, self: Complex, dim: Any = None, keepdim: bool = False) -> Value:
    """any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor."""
    return reduction.any_(g, nonzero(g, self), dim, keepdim)


@of_complex("all")
def all_(g: Builder, self: Complex, dim: Any = None, keepdim: bool = False) -> Value:
    """all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor."""
    return reduction.all_(g, nonzero(g, self), dim, keepdim)


@of_complex("count_nonzero")
def count_nonzero(g: Builder, self: Complex, dim: Any = None) -> Value:
    """count_nonzero(Tensor self, int[]? dim=None) -> Tensor."""
    return reduction.count_nonzero(g, nonzero(g, self), dim)


@of_complex("isclose")
def isclose(g: Builder, self: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Value:
    """isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor; |a - b| <= atol + rtol |b|."""
    if equal_nan:
        raise errors.UnsupportedError("equal_nan=True with complex numbers")
    a, b = (pair(g, x, result_type(self, other)) for x in (self, other))
    gap = abs_(g, Complex(g.op("Sub", a.re, b.re), g.op("Sub", a.im, b.im)))
    reach = g.op("Add", g.op("Mul", abs_(g, b), tensor(g, rtol, b.re.dtype)), tensor(g, atol, b.re.dtype))
    finite = g.op("And", isfinite(g, a), isfinite(g, b))
    return g.op("Or", eq(g, a, b), g.op("And", finite, comparison.le(g, gap, reach)))


# ---------------------------------------------------------------------- norms and spreads


@of_complex("linalg_vector_norm")
def linalg_vector_norm(g: Builder, self: Complex, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor; of the lengths."""
    return norms.linalg_vector_norm(g, abs_(g, self), ord, dim, keepdim, _real_type(dtype))


@of_complex("norm")
def norm(g: Builder, self: Complex, p: float | None = 2, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """norm(Tensor self, Scalar? p=2, int[1] dim=[], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor; of the lengths."""
    return norms.norm(g, abs_(g, self), p, dim, keepdim, _real_type(dtype))


def _real_type(dtype: torch.dtype | None) -> torch.dtype | None:
    return dtype.to_real() if dtype is not None and dtype.is_complex else dtype


@of_complex("var")
def var(g: Builder, self: Complex, dim: Any = None, unbiased: bool = True, correction: float | None = None, keepdim: bool = False) -> Value:
    """var(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor; a real one, that of both parts. ONNX Add."""
    return g.op("Add", *[reduction.var(g, part, dim, unbiased, correction, keepdim) for part in (self.re, self.im)])


@of_complex("std")
def std(g: Builder, self: Complex, dim: Any = None, unbiased: bool = True, correction: float | None = None, keepdim: bool = False) -> Value:
    """std(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor. ONNX Sqrt."""
    return g.op("Sqrt", var(g, self, dim, unbiased, correction, keepdim))


@of_complex("var_mean")
def var_mean(g: Builder, self: Complex, dim: Any = None, unbiased: bool = True, correction: float | None = None,
             keepdim: bool = False) -> tuple[Value, Value]:
    """var_mean(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)"""
    return var(g, self, dim, unbiased, correction, keepdim), on_both(self, lambda part: reduction.mean(g, part, dim, keepdim))


@of_complex("std_mean")
def std_mean(g: Builder, self: Complex, dim: Any = None, unbiased: bool = True, correction: float | None = None,
             keepdim: bool = False) -> tuple[Value, Value]:
    """std_mean(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)"""
    spread, middle = var_mean(g, self, dim, unbiased, correction, keepdim)
    return g.op("Sqrt", spread), middle
