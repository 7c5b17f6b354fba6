"""Special functions that ONNX does not have, by series, quadrature and reflection, exact to the dtype.

Sums over a few fixed terms are made along a new last dim and closed by MatMul: three nodes, whatever their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, floating, tensor
from onnxport.target.builder import Builder
from onnxport.target.sizes import unsqueeze
from onnxport.target.value import DataType, Value

DOUBLE, FLOAT = DataType.DOUBLE, DataType.FLOAT


def _polynomial(g: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of coefficients[k] * x ** k. ONNX Unsqueeze, Pow, MatMul."""
    powers = g.op("Pow", unsqueeze(g, x, [-1]), g.const([float(k) for k in range(len(coefficients))], x.dtype))
    return g.op("MatMul", powers, g.const(list(coefficients), x.dtype))


def _fractions(g: Builder, x: Value, numerators: Sequence[float], start: float = 0.0) -> Value:
    """The sum of numerators[k] / (x + start + k). ONNX Unsqueeze, Add, Reciprocal, MatMul."""
    steps = g.const([start + k for k in range(len(numerators))], x.dtype)
    return g.op("MatMul", g.op("Reciprocal", g.op("Add", unsqueeze(g, x, [-1]), steps)), g.const(list(numerators), x.dtype))


def _wide(g: Builder, x: Value) -> tuple[Value, Any]:
    """`x` in float64, and the dtype to go back to."""
    x = floating(g, x)
    return cast(g, x, DOUBLE), x.dtype


def _n(g: Builder, number: float, like: Value) -> Value:
    return tensor(g, float(number), like.dtype)


# ---------------------------------------------------------------------- the normal distribution


@aten("special_ndtr")
def special_ndtr(g: Builder, self: Value) -> Value:
    """special_ndtr(Tensor self) -> Tensor; (1 + erf(x / sqrt(2))) / 2. ONNX Mul, Erf, Add."""
    x = floating(g, self)
    return g.op("Mul", g.op("Add", g.op("Erf", g.op("Mul", x, _n(g, math.sqrt(0.5), x))), _n(g, 1, x)), _n(g, 0.5, x))


_CENTRAL = [1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06, 3.43273939e-07,
            2.81022636e-08]
_TAIL = [2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322, 0.000100950558,
         -0.000200214257]


@aten("erfinv", "special_erfinv")
def erfinv(g: Builder, self: Value) -> Value:
    """erfinv(Tensor self) -> Tensor; between -1 and 1. ONNX Log, Pow, MatMul; in float64 Erf too.

    The approximation of M. Giles (2010) in w = -log(1 - x^2), which is exact to float32; in float64 two steps of Newton after it.
    """
    x = floating(g, self)
    work = cast(g, x, FLOAT) if x.dtype not in (FLOAT, DOUBLE) else x
    one, five = _n(g, 1, work), _n(g, 5, work)
    w = g.op("Neg", g.op("Log", g.op("Mul", g.op("Sub", one, work), g.op("Add", one, work))))
    central = _polynomial(g, g.op("Sub", g.op("Min", w, five), _n(g, 2.5, work)), _CENTRAL)
    tail = _polynomial(g, g.op("Sub", g.op("Sqrt", g.op("Clip", w, five, _n(g, 1e3, work))), _n(g, 3, work)), _TAIL)
    y = g.op("Mul", g.op("Where", g.op("Less", w, five), central, tail), work)
    for _ in range(2 if work.dtype == DOUBLE else 0):
        slope = g.op("Mul", g.op("Exp", g.op("Neg", g.op("Mul", y, y))), _n(g, 2 / math.sqrt(math.pi), work))
        y = g.op("Sub", y, g.op("Div", g.op("Sub", g.op("Erf", y), work), slope))
    size = g.op("Abs", work)
    y = g.op("Where", g.op("Equal", size, one), g.op("Mul", work, _n(g, math.inf, work)), y)
    return cast(g, g.op("Where", g.op("Greater", size, one), _n(g, math.nan, work), y), x.dtype)  # type: ignore[arg-type]


def _scaled_tail(g: Builder, x: Value) -> Value:
    """exp(x^2) erfc(x) of float64 x >= 0: the trapezoidal rule of Chiarella and Reichel with step 1/2, and its correction."""
    step = 0.5
    squares = [((n + 0.5) * step) ** 2 for n in range(13)]
    weights = [2 * step / math.pi * math.exp(-t) for t in squares]
    square = g.op("Mul", x, x)
    terms = g.op("Reciprocal", g.op("Add", unsqueeze(g, square, [-1]), g.const(squares, x.dtype)))
    edge = math.pi / step
    bounded = g.op("Min", x, _n(g, edge, x))
    grown = g.op("Add", g.op("Exp", g.op("Mul", bounded, _n(g, 2 * edge, x))), _n(g, 1, x))
    correction = g.op("Div", g.op("Mul", g.op("Exp", g.op("Mul", bounded, bounded)), _n(g, 2, x)), grown)
    smooth = g.op("Mul", x, g.op("MatMul", terms, g.const(weights, x.dtype)))
    return g.op("Add", smooth, g.op("Where", g.op("Less", x, _n(g, edge, x)), correction, _n(g, 0, x)))


@aten
def special_erfcx(g: Builder, self: Value) -> Value:
    """special_erfcx(Tensor self) -> Tensor; exp(x^2) erfc(x). ONNX Exp, Reciprocal, MatMul, Where, in float64."""
    x, dtype = _wide(g, self)
    tail = _scaled_tail(g, g.op("Abs", x))
    reflected = g.op("Sub", g.op("Mul", g.op("Exp", g.op("Mul", x, x)), _n(g, 2, x)), tail)
    return cast(g, g.op("Where", g.op("Less", x, _n(g, 0, x)), reflected, tail), dtype)


@aten
def special_log_ndtr(g: Builder, self: Value) -> Value:
    """special_log_ndtr(Tensor self) -> Tensor; also far to the left. ONNX Exp, Log, Reciprocal, MatMul, Where, in float64."""
    x, dtype = _wide(g, self)
    y = g.op("Abs", g.op("Mul", x, _n(g, math.sqrt(0.5), x)))
    half, square = g.op("Mul", _scaled_tail(g, y), _n(g, 0.5, x)), g.op("Mul", y, y)
    left = g.op("Sub", g.op("Log", half), square)
    right = g.op("Log", g.op("Sub", _n(g, 1, x), g.op("Mul", half, g.op("Exp", g.op("Neg", square)))))
    return cast(g, g.op("Where", g.op("Less", x, _n(g, 0, x)), left, right), dtype)


@aten("special_ndtri")
def special_ndtri(g: Builder, self: Value) -> Value:
    """special_ndtri(Tensor self) -> Tensor; sqrt(2) erfinv(2 p - 1). ONNX as erfinv."""
    p = floating(g, self)
    return g.op("Mul", erfinv(g, g.op("Sub", g.op("Add", p, p), _n(g, 1, p))), _n(g, math.sqrt(2), p))


@aten("special_entr")
def special_entr(g: Builder, self: Value) -> Value:
    """special_entr(Tensor self) -> Tensor; -x log(x), 0 at 0, -infinity below. ONNX Log, Mul, Where."""
    x = floating(g, self)
    zero = _n(g, 0, x)
    value = g.op("Where", g.op("Equal", x, zero), zero, g.op("Neg", g.op("Mul", x, g.op("Log", x))))
    return g.op("Where", g.op("Less", x, zero), _n(g, -math.inf, x), value)


# ---------------------------------------------------------------------- gamma

# Lanczos' approximation of the gamma function with g = 7 and nine terms, exact to 1e-15.
_LANCZOS = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012,
            9.9843695780195716e-6, 1.5056327351493116e-7]


@aten("lgamma", "special_gammaln")
def lgamma(g: Builder, self: Value) -> Value:
    """lgamma(Tensor self) -> Tensor; log |gamma(x)|, infinity at 0, -1, ... ONNX Log, Reciprocal, MatMul, Sin, Where, in float64."""
    x, dtype = _wide(g, self)
    half, one = _n(g, 0.5, x), _n(g, 1, x)
    left = g.op("Less", x, half)
    z = g.op("Sub", g.op("Where", left, g.op("Sub", one, x), x), one)  # gamma(z + 1)
    base = g.op("Add", z, _n(g, 7.5, x))
    series = g.op("Add", _fractions(g, z, _LANCZOS, 1.0), _n(g, 0.99999999999980993, x))
    value = g.op("Sub", g.op("Mul", g.op("Add", z, half), g.op("Log", base)), base)
    value = g.op("Add", g.op("Add", value, g.op("Log", series)), _n(g, 0.5 * math.log(2 * math.pi), x))
    wave = g.op("Abs", g.op("Sin", _turn(g, x)))
    reflected = g.op("Sub", g.op("Log", g.op("Div", _n(g, math.pi, x), wave)), value)
    result = g.op("Where", left, reflected, value)
    result = g.op("Where", g.op("Equal", g.op("Abs", x), _n(g, math.inf, x)), _n(g, math.inf, x), result)
    return cast(g, result, dtype)


def _turn(g: Builder, x: Value) -> Value:
    """pi times what x is beyond the nearest whole number: exactly 0 where it is one."""
    return g.op("Mul", g.op("Sub", x, g.op("Round", x)), _n(g, math.pi, x))


@aten("mvlgamma", "special_multigammaln")
def mvlgamma(g: Builder, self: Value, p: int) -> Value:
    """mvlgamma(Tensor self, int p) -> Tensor; the sum of lgamma(self - k / 2) for k below p, and a constant. ONNX as lgamma."""
    x = floating(g, self)
    shifted = g.op("Add", unsqueeze(g, x, [-1]), g.const([-0.5 * k for k in range(p)], x.dtype))
    total = g.op("ReduceSum", lgamma(g, shifted), g.const([-1]), keepdims=0)
    return g.op("Add", total, _n(g, p * (p - 1) / 4 * math.log(math.pi), x))


@aten("digamma", "special_digamma", "special_psi")
def digamma(g: Builder, self: Value) -> Value:
    """digamma(Tensor self) -> Tensor; -infinity at 0, no number at -1, -2, ... ONNX Log, Reciprocal, MatMul, Sin, Cos, Where, in float64.

    Ten steps to the right, where the asymptotic series of B. Riemann holds to float64; from the left of 1/2 by reflection.
    """
    x, dtype = _wide(g, self)
    left = g.op("Less", x, _n(g, 0.5, x))
    z = g.op("Where", left, g.op("Sub", _n(g, 1, x), x), x)
    far = g.op("Add", z, _n(g, 10, x))
    inverse = g.op("Reciprocal", far)
    square = g.op("Mul", inverse, inverse)
    series = _polynomial(g, square, [0.0, 1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12])
    value = g.op("Sub", g.op("Log", far), g.op("Add", g.op("Mul", inverse, _n(g, 0.5, x)), series))
    value = g.op("Sub", value, _fractions(g, z, [1.0] * 10))
    turn = _turn(g, x)
    reflected = g.op("Sub", value, g.op("Div", g.op("Mul", g.op("Cos", turn), _n(g, math.pi, x)), g.op("Sin", turn)))
    result = g.op("Where", left, reflected, value)
    pole = g.op("And", left, g.op("Equal", turn, _n(g, 0, x)))
    at_pole = g.op("Where", g.op("Equal", x, _n(g, 0, x)), g.op("Neg", g.op("Reciprocal", x)), _n(g, math.nan, x))
    return cast(g, g.op("Where", pole, at_pole, result), dtype)


@aten("polygamma", "special_polygamma")
def polygamma(g: Builder, n: int, self: Value) -> Value:
    """polygamma(int n, Tensor self) -> Tensor; n 0 is digamma, n 1 its derivative: ten steps to the right and a series. ONNX as digamma."""
    if n == 0:
        return digamma(g, self)
    if n > 1:
        raise errors.UnsupportedError(f"polygamma of order {n}: only 0 and 1 can be said in ONNX")
    x, dtype = _wide(g, self)
    left = g.op("Less", x, _n(g, 0.5, x))
    z = g.op("Where", left, g.op("Sub", _n(g, 1, x), x), x)
    inverse = g.op("Reciprocal", g.op("Add", z, _n(g, 10, x)))
    square = g.op("Mul", inverse, inverse)
    series = _polynomial(g, square, [1.0, 1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6])
    near = g.op("Reciprocal", g.op("Add", unsqueeze(g, z, [-1]), g.const([float(k) for k in range(10)], x.dtype)))
    value = g.op("Add", g.op("Mul", inverse, series), g.op("Mul", square, _n(g, 0.5, x)))
    value = g.op("Add", value, g.op("MatMul", g.op("Mul", near, near), g.const([1.0] * 10, x.dtype)))
    wave = g.op("Div", _n(g, math.pi, x), g.op("Sin", _turn(g, x)))
    return cast(g, g.op("Where", left, g.op("Sub", g.op("Mul", wave, wave), value), value), dtype)


# ---------------------------------------------------------------------- Bessel functions of imaginary argument


def _bessel(g: Builder, x: Value, order: int) -> Value:
    """I_n(x): the mean of exp(x cos t) cos(n t) over half a turn, which the trapezoidal rule gives exactly.

    As many points as float64 needs up to where the function overflows. ONNX Unsqueeze, Mul, Exp, MatMul.
    """
    points = 160 if x.dtype == DOUBLE else 48
    angles = np.linspace(0, math.pi, points + 1)
    weights = np.where((angles == 0) | (angles == math.pi), 0.5, 1.0) * np.cos(order * angles) / points
    exponents = g.op("Mul", unsqueeze(g, x, [-1]), g.const(np.cos(angles).tolist(), x.dtype))
    return g.op("MatMul", g.op("Exp", exponents), g.const(weights.tolist(), x.dtype))


@aten("i0", "special_i0", "special_modified_bessel_i0")
def i0(g: Builder, self: Value) -> Value:
    """i0(Tensor self) -> Tensor. ONNX Mul, Exp, MatMul."""
    x = floating(g, self)
    return cast(g, _bessel(g, x if x.dtype in (FLOAT, DOUBLE) else cast(g, x, FLOAT), 0), x.dtype)  # type: ignore[arg-type]


@aten("special_i1", "special_modified_bessel_i1")
def special_i1(g: Builder, self: Value) -> Value:
    """special_i1(Tensor self) -> Tensor. ONNX Mul, Exp, MatMul; in float64, for the terms cancel near 0."""
    x, dtype = _wide(g, self)
    return cast(g, _bessel(g, x, 1), dtype)


def _scaled_bessel(g: Builder, x: Value, order: int) -> Value:
    """exp(-|x|) I_n(x) of float64: by the rule above, and from 500 on by the asymptotic series in 1 / x."""
    points, size = 160, g.op("Abs", x)
    angles = np.linspace(0, math.pi, points + 1)
    weights = np.where((angles == 0) | (angles == math.pi), 0.5, 1.0) * np.cos(order * angles) / points
    exponents = g.op("Mul", unsqueeze(g, size, [-1]), g.const((np.cos(angles) - 1).tolist(), x.dtype))
    near = g.op("MatMul", g.op("Exp", exponents), g.const(weights.tolist(), x.dtype))
    coefficients = [1.0]
    for k in range(1, 7):
        coefficients.append(-coefficients[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    limit = _n(g, 500, x)
    inverse = g.op("Reciprocal", g.op("Max", size, limit))
    far = g.op("Mul", _polynomial(g, inverse, coefficients), g.op("Sqrt", g.op("Mul", inverse, _n(g, 0.5 / math.pi, x))))
    value = g.op("Where", g.op("Less", size, limit), near, far)
    return g.op("Mul", value, g.op("Sign", x)) if order % 2 else value


@aten
def special_i0e(g: Builder, self: Value) -> Value:
    """special_i0e(Tensor self) -> Tensor; exp(-|x|) i0(x). ONNX Exp, Pow, MatMul, Where, in float64."""
    x, dtype = _wide(g, self)
    return cast(g, _scaled_bessel(g, x, 0), dtype)


@aten
def special_i1e(g: Builder, self: Value) -> Value:
    """special_i1e(Tensor self) -> Tensor; exp(-|x|) i1(x). ONNX Exp, Pow, MatMul, Where, in float64."""
    x, dtype = _wide(g, self)
    return cast(g, _scaled_bessel(g, x, 1), dtype)
