"""Bessel functions and Airy's, all in float64: near the origin as the mean of a wave (or an exponential) over half a turn, which a
few points give exactly; far from it by the series in 1 / x.

Sums over the points are made along a new last dim and closed by MatMul, for several functions at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onnxport.ops.registry import aten
from onnxport.ops.special import number, polynomial, wide
from onnxport.ops.support import cast, floating
from onnxport.target.builder import Builder
from onnxport.target.sizes import unsqueeze
from onnxport.target.value import DataType, Value

DOUBLE, FLOAT = DataType.DOUBLE, DataType.FLOAT
Column = NDArray[np.float64]


def _at_points(g: Builder, x: Value, points: Sequence[float]) -> Value:
    """x times each point, along a new last dim."""
    return g.op("Mul", unsqueeze(g, x, [-1]), g.const(list(map(float, points)), x.dtype))


def _sums(g: Builder, terms: Value, *weights: Column) -> list[Value]:
    """The terms' sums under each of the weights."""
    if len(weights) == 1:
        return [g.op("MatMul", terms, g.const(weights[0].tolist(), terms.dtype))]
    made = g.op("MatMul", terms, g.const(np.stack(weights, 1).tolist(), terms.dtype))
    return [g.op("Gather", made, g.const(i), axis=-1) for i in range(len(weights))]


@functools.cache
def _half_turn(count: int) -> tuple[Column, Column]:
    """Angles from 0 to pi and what each counts for in the mean: the trapezoidal rule."""
    angles = np.linspace(0, math.pi, count + 1)
    weights = np.full(count + 1, 1 / count)
    weights[[0, -1]] /= 2
    return angles, weights


@functools.cache
def _logarithmic(count: int) -> Column:
    """What each angle u counts for in the mean of f(u) log(sin(u / 2)^2): exact for waves, as R. Kress integrates the logarithm."""
    angles, weights = _half_turn(count)
    waves = np.arange(1, count)
    logs = -2 * math.log(2) - 2 * (np.cos(np.outer(angles, waves)) / waves).sum(1) - np.cos(count * angles) / count
    return weights * logs


# ---------------------------------------------------------------------- of real argument

_NEAR, _POINTS = 25.0, 40  # so many points are exact up to there, where the series holds


@functools.cache
def _second_kind() -> tuple[Column, Column]:
    """With f = cos(x cos t): Y0(x) = f . first + log(x) f . second."""
    _, weights = _half_turn(_POINTS)
    return 2 / math.pi * ((np.euler_gamma + math.log(2)) * weights + _logarithmic(_POINTS)), 2 / math.pi * weights


def _hankel(order: int) -> list[float]:
    """The coefficients of 1 / x^k in the series for great x."""
    found = [1.0]
    for k in range(1, 24):
        found.append(found[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return found


def _far(g: Builder, x: Value, order: int) -> tuple[Value, Value, Value, Value]:
    """(amplitude * cos, amplitude * sin) of the angle, and the two series, of x from `_NEAR` on."""
    angle = g.op("Sub", x, number(g, (2 * order + 1) * math.pi / 4, x))
    amplitude = g.op("Sqrt", g.op("Div", number(g, 2 / math.pi, x), x))
    inverse = g.op("Reciprocal", x)
    square = g.op("Neg", g.op("Mul", inverse, inverse))
    series = _hankel(order)
    even = polynomial(g, square, series[0::2])
    odd = g.op("Mul", inverse, polynomial(g, square, series[1::2]))
    return g.op("Mul", amplitude, g.op("Cos", angle)), g.op("Mul", amplitude, g.op("Sin", angle)), even, odd


def _first_near(g: Builder, x: Value, order: int) -> Value:
    """The waves whose means are J and Y: cos(x cos t), or sin(x cos t) cos t."""
    cosines = np.cos(_half_turn(_POINTS)[0] / 2)
    angles = _at_points(g, x, cosines.tolist())
    return g.op("Mul", g.op("Sin", angles), g.const(cosines.tolist(), x.dtype)) if order else g.op("Cos", angles)


def _j(g: Builder, self: Value, order: int) -> Value:
    x, dtype = wide(g, self)
    size, edge = g.op("Abs", x), number(g, _NEAR, x)
    near = _sums(g, _first_near(g, g.op("Min", size, edge), order), _half_turn(_POINTS)[1])[0]
    cos, sin, even, odd = _far(g, g.op("Max", size, edge), order)
    far = g.op("Sub", g.op("Mul", cos, even), g.op("Mul", sin, odd))
    value = g.op("Where", g.op("Less", size, edge), near, far)
    return cast(g, g.op("Mul", value, g.op("Sign", x)) if order else value, dtype)


def _y(g: Builder, self: Value, order: int) -> Value:
    x, dtype = wide(g, self)
    edge = number(g, _NEAR, x)
    bounded = g.op("Min", x, edge)
    plain, of_log = _sums(g, _first_near(g, bounded, order), *_second_kind())
    near = g.op("Add", plain, g.op("Mul", g.op("Log", bounded), of_log))
    if order:  # minus the derivative of Y0, whose logarithm brings 1 / x
        still = _sums(g, _first_near(g, bounded, 0), _second_kind()[1])[0]
        near = g.op("Sub", near, g.op("Div", still, bounded))
        near = g.op("Where", g.op("Equal", x, number(g, 0, x)), number(g, -math.inf, x), near)
    cos, sin, even, odd = _far(g, g.op("Max", x, edge), order)
    far = g.op("Add", g.op("Mul", sin, even), g.op("Mul", cos, odd))
    return cast(g, g.op("Where", g.op("Less", x, edge), near, far), dtype)


@aten
def special_bessel_j0(g: Builder, self: Value) -> Value:
    """special_bessel_j0(Tensor self) -> Tensor. ONNX Cos, MatMul, Where, in float64."""
    return _j(g, self, 0)


@aten
def special_bessel_j1(g: Builder, self: Value) -> Value:
    """special_bessel_j1(Tensor self) -> Tensor. ONNX Sin, MatMul, Where, in float64."""
    return _j(g, self, 1)


@aten
def special_bessel_y0(g: Builder, self: Value) -> Value:
    """special_bessel_y0(Tensor self) -> Tensor; no number below 0. ONNX Cos, Log, MatMul, Where, in float64."""
    return _y(g, self, 0)


@aten
def special_bessel_y1(g: Builder, self: Value) -> Value:
    """special_bessel_y1(Tensor self) -> Tensor; no number below 0. ONNX Sin, Log, MatMul, Where, in float64."""
    return _y(g, self, 1)


@aten
def special_spherical_bessel_j0(g: Builder, x: Value) -> Value:
    """special_spherical_bessel_j0(Tensor x) -> Tensor; sin(x) / x, 1 at 0, 0 at infinity. ONNX Sin, Div, Where."""
    x = floating(g, x)
    zero = number(g, 0, x)
    value = g.op("Where", g.op("Equal", x, zero), number(g, 1, x), g.op("Div", g.op("Sin", x), x))
    return g.op("Where", g.op("Equal", g.op("Abs", x), number(g, math.inf, x)), zero, value)


# ---------------------------------------------------------------------- of imaginary argument


def _i(g: Builder, x: Value, order: int, shift: float = 0.0) -> Value:
    """I_n(x), times exp(-shift x): the mean of exp(x cos t) cos(n t). As many points as the dtype needs up to where it overflows."""
    angles, weights = _half_turn(160 if x.dtype == DOUBLE else 48)
    terms = g.op("Exp", _at_points(g, x, (np.cos(angles) - shift).tolist()))
    return _sums(g, terms, weights * np.cos(order * angles))[0]


@aten("i0", "special_i0", "special_modified_bessel_i0")
def i0(g: Builder, self: Value) -> Value:
    """i0(Tensor self) -> Tensor. ONNX Mul, Exp, MatMul."""
    x = floating(g, self)
    return cast(g, _i(g, x if x.dtype in (FLOAT, DOUBLE) else cast(g, x, FLOAT), 0), x.dtype)  # type: ignore[arg-type]


@aten("special_i1", "special_modified_bessel_i1")
def special_i1(g: Builder, self: Value) -> Value:
    """special_i1(Tensor self) -> Tensor. ONNX Mul, Exp, MatMul; in float64, for the terms cancel near 0."""
    x, dtype = wide(g, self)
    return cast(g, _i(g, x, 1), dtype)


def _scaled_i(g: Builder, x: Value, order: int) -> Value:
    """exp(-|x|) I_n(x) of float64: by the rule above, and from 500 on by the series in 1 / x."""
    size, limit = g.op("Abs", x), number(g, 500, x)
    near = _i(g, size, order, 1.0)
    inverse = g.op("Reciprocal", g.op("Max", size, limit))
    coefficients = [c if k % 2 == 0 else -c for k, c in enumerate(_hankel(order)[:7])]
    far = g.op("Mul", polynomial(g, inverse, coefficients), g.op("Sqrt", g.op("Mul", inverse, number(g, 0.5 / math.pi, x))))
    value = g.op("Where", g.op("Less", size, limit), near, far)
    return g.op("Mul", value, g.op("Sign", x)) if order % 2 else value


@aten
def special_i0e(g: Builder, self: Value) -> Value:
    """special_i0e(Tensor self) -> Tensor; exp(-|x|) i0(x). ONNX Exp, Pow, MatMul, Where, in float64."""
    x, dtype = wide(g, self)
    return cast(g, _scaled_i(g, x, 0), dtype)


@aten
def special_i1e(g: Builder, self: Value) -> Value:
    """special_i1e(Tensor self) -> Tensor; exp(-|x|) i1(x). ONNX Exp, Pow, MatMul, Where, in float64."""
    x, dtype = wide(g, self)
    return cast(g, _scaled_i(g, x, 1), dtype)


def _k_near(g: Builder, x: Value, order: int) -> Value:
    """K_n(x) up to 2: the means of cosh(x cos t), or sinh(x cos t) cos t, with the logarithm of 2 x sin(t)^2."""
    angles, weights = _half_turn(_POINTS)
    cosines = np.cos(angles / 2)
    exponents = _at_points(g, x, cosines.tolist())
    up, down = g.op("Exp", exponents), g.op("Exp", g.op("Neg", exponents))
    plain = -0.5 * ((np.euler_gamma + math.log(2)) * weights + _logarithmic(_POINTS))
    even = g.op("Add", up, down)
    if order == 0:
        mean, of_log = _sums(g, even, plain, -0.5 * weights)
        return g.op("Add", mean, g.op("Mul", g.op("Log", x), of_log))
    mean, of_log = _sums(g, g.op("Sub", up, down), -plain * cosines, 0.5 * weights * cosines)
    inverse = g.op("Div", _sums(g, even, 0.5 * weights)[0], x)
    return g.op("Add", g.op("Add", mean, g.op("Mul", g.op("Log", x), of_log)), inverse)


def _k_far(g: Builder, x: Value, order: int) -> Value:
    """exp(x) K_n(x) from 2 on: the integral of exp(-x (cosh t - 1)) cosh(n t), in u = x (cosh t - 1) by the rule of Gauss."""
    roots, weights = np.polynomial.hermite.hermgauss(60)
    u = roots[30:] ** 2
    shares = g.op("Div", g.const(u.tolist(), x.dtype), unsqueeze(g, x, [-1]))
    terms = g.op("Reciprocal", g.op("Sqrt", g.op("Add", shares, number(g, 2, x))))
    if order:
        terms = g.op("Mul", terms, g.op("Add", shares, number(g, 1, x)))
    return g.op("Div", _sums(g, terms, 2 * weights[30:])[0], g.op("Sqrt", x))


def _k(g: Builder, self: Value, order: int, *, scaled: bool) -> Value:
    x, dtype = wide(g, self)
    edge, zero = number(g, 2, x), number(g, 0, x)
    small, great = g.op("Min", x, edge), g.op("Max", x, edge)
    near, far = _k_near(g, small, order), _k_far(g, great, order)
    if scaled:
        near = g.op("Mul", near, g.op("Exp", small))
    else:
        far = g.op("Mul", far, g.op("Exp", g.op("Neg", great)))
    value = g.op("Where", g.op("Less", x, edge), near, far)
    return cast(g, g.op("Where", g.op("Equal", x, zero), number(g, math.inf, x), value), dtype)


@aten
def special_modified_bessel_k0(g: Builder, self: Value) -> Value:
    """special_modified_bessel_k0(Tensor self) -> Tensor; no number below 0. ONNX Exp, Log, MatMul, Where, in float64."""
    return _k(g, self, 0, scaled=False)


@aten
def special_modified_bessel_k1(g: Builder, self: Value) -> Value:
    """special_modified_bessel_k1(Tensor self) -> Tensor; no number below 0. ONNX Exp, Log, MatMul, Where, in float64."""
    return _k(g, self, 1, scaled=False)


@aten
def special_scaled_modified_bessel_k0(g: Builder, x: Value) -> Value:
    """special_scaled_modified_bessel_k0(Tensor x) -> Tensor; exp(x) K0(x). ONNX as modified_bessel_k0."""
    return _k(g, x, 0, scaled=True)


@aten
def special_scaled_modified_bessel_k1(g: Builder, x: Value) -> Value:
    """special_scaled_modified_bessel_k1(Tensor x) -> Tensor; exp(x) K1(x). ONNX as modified_bessel_k1."""
    return _k(g, x, 1, scaled=True)


# ---------------------------------------------------------------------- Airy's


@aten
def special_airy_ai(g: Builder, x: Value) -> Value:
    """special_airy_ai(Tensor x) -> Tensor; no number at infinity. ONNX Exp, Cos, MatMul, Where, in float64.

    The integral of cos(t^3 / 3 + x t), moved off the real line to where it is a bell curve; below -10 the series in |x|^(-3/2).
    """
    z, dtype = wide(g, x)
    edge = number(g, -10, z)
    value = g.op("Where", g.op("Less", z, edge), _airy_far(g, g.op("Neg", g.op("Min", z, edge))), _airy_near(g, g.op("Max", z, edge)))
    return cast(g, g.op("Where", g.op("Equal", g.op("Abs", z), number(g, math.inf, z)), number(g, math.nan, z), value), dtype)


def _airy_near(g: Builder, x: Value) -> Value:
    step = 0.125
    points = np.arange(50) * step
    weights = np.full(50, step / math.pi)
    weights[0] /= 2
    off = g.op("Sqrt", g.op("Max", x, number(g, 1, x)))
    square = g.op("Mul", off, off)
    scale = g.op("Exp", g.op("Mul", off, g.op("Sub", g.op("Div", square, number(g, 3, x)), x)))
    bell = g.op("Exp", _at_points(g, off, (-points**2).tolist()))
    angles = g.op("Add", _at_points(g, g.op("Sub", x, square), points.tolist()), g.const((points**3 / 3).tolist(), x.dtype))
    return g.op("Mul", scale, _sums(g, g.op("Mul", bell, g.op("Cos", angles)), weights)[0])


def _airy_far(g: Builder, x: Value) -> Value:
    """Ai(-x)."""
    root = g.op("Sqrt", x)
    zeta = g.op("Mul", g.op("Mul", x, root), number(g, 2 / 3, x))
    series = [1.0]
    for k in range(1, 12):
        series.append(series[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    inverse = g.op("Reciprocal", zeta)
    square = g.op("Neg", g.op("Mul", inverse, inverse))
    even, odd = polynomial(g, square, series[0::2]), g.op("Mul", inverse, polynomial(g, square, series[1::2]))
    angle = g.op("Sub", zeta, number(g, math.pi / 4, x))
    waves = g.op("Add", g.op("Mul", g.op("Cos", angle), even), g.op("Mul", g.op("Sin", angle), odd))
    return g.op("Div", waves, g.op("Sqrt", g.op("Mul", root, number(g, math.pi, x))))
