"""Special functions that ONNX does not have, by series, quadrature and reflection, exact to the dtype.

Sums over a few fixed terms are made along a new last dim and closed by MatMul: three nodes, whatever their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onnxport.ops.math import log1p
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, floating, promoted, tensor
from onnxport.target.builder import Builder
from onnxport.target.sizes import unsqueeze
from onnxport.target.value import DataType, Value

DOUBLE, FLOAT = DataType.DOUBLE, DataType.FLOAT


def polynomial(g: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of coefficients[k] * x ** k. ONNX Unsqueeze, Pow, MatMul."""
    powers = g.op("Pow", unsqueeze(g, x, [-1]), g.const([float(k) for k in range(len(coefficients))], x.dtype))
    return g.op("MatMul", powers, g.const(list(coefficients), x.dtype))


def _fractions(g: Builder, x: Value, numerators: Sequence[float], start: float = 0.0) -> Value:
    """The sum of numerators[k] / (x + start + k). ONNX Unsqueeze, Add, Reciprocal, MatMul."""
    steps = g.const([start + k for k in range(len(numerators))], x.dtype)
    return g.op("MatMul", g.op("Reciprocal", g.op("Add", unsqueeze(g, x, [-1]), steps)), g.const(list(numerators), x.dtype))


def wide(g: Builder, x: Value) -> tuple[Value, Any]:
    """`x` in float64, and the dtype to go back to."""
    x = floating(g, x)
    return cast(g, x, DOUBLE), x.dtype


def number(g: Builder, value: float, like: Value) -> Value:
    """`value` as a scalar of the dtype of `like`."""
    return tensor(g, float(value), like.dtype)


# ---------------------------------------------------------------------- the normal distribution


@aten("special_ndtr")
def special_ndtr(g: Builder, self: Value) -> Value:
    """special_ndtr(Tensor self) -> Tensor; (1 + erf(x / sqrt(2))) / 2. ONNX Mul, Erf, Add."""
    x = floating(g, self)
    return g.op("Mul", g.op("Add", g.op("Erf", g.op("Mul", x, number(g, math.sqrt(0.5), x))), number(g, 1, x)), number(g, 0.5, x))


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
    one, five = number(g, 1, work), number(g, 5, work)
    w = g.op("Neg", g.op("Log", g.op("Mul", g.op("Sub", one, work), g.op("Add", one, work))))
    central = polynomial(g, g.op("Sub", g.op("Min", w, five), number(g, 2.5, work)), _CENTRAL)
    tail = polynomial(g, g.op("Sub", g.op("Sqrt", g.op("Clip", w, five, number(g, 1e3, work))), number(g, 3, work)), _TAIL)
    y = g.op("Mul", g.op("Where", g.op("Less", w, five), central, tail), work)
    for _ in range(2 if work.dtype == DOUBLE else 0):
        slope = g.op("Mul", g.op("Exp", g.op("Neg", g.op("Mul", y, y))), number(g, 2 / math.sqrt(math.pi), work))
        y = g.op("Sub", y, g.op("Div", g.op("Sub", g.op("Erf", y), work), slope))
    size = g.op("Abs", work)
    y = g.op("Where", g.op("Equal", size, one), g.op("Mul", work, number(g, math.inf, work)), y)
    return cast(g, g.op("Where", g.op("Greater", size, one), number(g, math.nan, work), y), x.dtype)  # type: ignore[arg-type]


def _scaled_tail(g: Builder, x: Value) -> Value:
    """exp(x^2) erfc(x) of float64 x >= 0: the trapezoidal rule of Chiarella and Reichel with step 1/2, and its correction."""
    step = 0.5
    x = g.op("Min", x, number(g, 1e100, x))
    squares = [((n + 0.5) * step) ** 2 for n in range(13)]
    weights = [2 * step / math.pi * math.exp(-t) for t in squares]
    square = g.op("Mul", x, x)
    terms = g.op("Reciprocal", g.op("Add", unsqueeze(g, square, [-1]), g.const(squares, x.dtype)))
    edge = math.pi / step
    bounded = g.op("Min", x, number(g, edge, x))
    grown = g.op("Add", g.op("Exp", g.op("Mul", bounded, number(g, 2 * edge, x))), number(g, 1, x))
    correction = g.op("Div", g.op("Mul", g.op("Exp", g.op("Mul", bounded, bounded)), number(g, 2, x)), grown)
    smooth = g.op("Mul", x, g.op("MatMul", terms, g.const(weights, x.dtype)))
    return g.op("Add", smooth, g.op("Where", g.op("Less", x, number(g, edge, x)), correction, number(g, 0, x)))


@aten("erfc", "special_erfc")
def erfc(g: Builder, self: Value) -> Value:
    """erfc(Tensor self) -> Tensor; also where it is tiny. ONNX Exp, Reciprocal, MatMul, Where, in float64."""
    x, dtype = wide(g, self)
    tail = g.op("Mul", _scaled_tail(g, g.op("Abs", x)), g.op("Exp", g.op("Neg", g.op("Mul", x, x))))
    reflected = g.op("Sub", number(g, 2, x), tail)
    return cast(g, g.op("Where", g.op("Less", x, number(g, 0, x)), reflected, tail), dtype)


@aten
def special_erfcx(g: Builder, self: Value) -> Value:
    """special_erfcx(Tensor self) -> Tensor; exp(x^2) erfc(x). ONNX Exp, Reciprocal, MatMul, Where, in float64."""
    x, dtype = wide(g, self)
    tail = _scaled_tail(g, g.op("Abs", x))
    reflected = g.op("Sub", g.op("Mul", g.op("Exp", g.op("Mul", x, x)), number(g, 2, x)), tail)
    return cast(g, g.op("Where", g.op("Less", x, number(g, 0, x)), reflected, tail), dtype)


@aten
def special_log_ndtr(g: Builder, self: Value) -> Value:
    """special_log_ndtr(Tensor self) -> Tensor; also far to the left. ONNX Exp, Log, Reciprocal, MatMul, Where, in float64."""
    x, dtype = wide(g, self)
    y = g.op("Abs", g.op("Mul", x, number(g, math.sqrt(0.5), x)))
    half, square = g.op("Mul", _scaled_tail(g, y), number(g, 0.5, x)), g.op("Mul", y, y)
    left = g.op("Sub", g.op("Log", half), square)
    right = log1p(g, g.op("Neg", g.op("Mul", half, g.op("Exp", g.op("Neg", square)))))
    return cast(g, g.op("Where", g.op("Less", x, number(g, 0, x)), left, right), dtype)


_STEPS = 6  # from -sqrt(-2 log p), for p of float64 too


@aten("special_ndtri")
def special_ndtri(g: Builder, self: Value) -> Value:
    """special_ndtri(Tensor self) -> Tensor; also of the smallest p. ONNX Exp, Log, Reciprocal, MatMul, Where, in float64.

    Newton's steps towards the logarithm of the lesser of p and 1 - p, from the left, where they never overshoot.
    """
    p, dtype = wide(g, self)
    rest = g.op("Sub", number(g, 1, p), p)
    is_left, wanted = g.op("Less", p, rest), g.op("Log", g.op("Min", p, rest))
    y = g.op("Sqrt", g.op("Mul", wanted, number(g, -1, p)))  # -x / sqrt(2)
    for _ in range(_STEPS):
        tail = g.op("Mul", _scaled_tail(g, y), number(g, 0.5, p))
        off = g.op("Sub", g.op("Sub", g.op("Log", tail), g.op("Mul", y, y)), wanted)
        y = g.op("Add", y, g.op("Mul", g.op("Mul", off, tail), number(g, math.sqrt(math.pi), p)))
    x = g.op("Mul", g.op("Where", is_left, g.op("Neg", y), y), number(g, math.sqrt(2), p))
    at_end = g.op("Where", is_left, number(g, -math.inf, p), number(g, math.inf, p))
    return cast(g, g.op("Where", g.op("Equal", wanted, number(g, -math.inf, p)), at_end, x), dtype)


@aten("special_entr")
def special_entr(g: Builder, self: Value) -> Value:
    """special_entr(Tensor self) -> Tensor; -x log(x), 0 at 0, -infinity below. ONNX Log, Mul, Where."""
    x = floating(g, self)
    zero = number(g, 0, x)
    value = g.op("Where", g.op("Equal", x, zero), zero, g.op("Neg", g.op("Mul", x, g.op("Log", x))))
    return g.op("Where", g.op("Less", x, zero), number(g, -math.inf, x), value)


# ---------------------------------------------------------------------- gamma

# Lanczos' approximation of the gamma function with g = 7 and nine terms, exact to 1e-15.
_LANCZOS = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012,
            9.9843695780195716e-6, 1.5056327351493116e-7]


@aten("lgamma", "special_gammaln")
def lgamma(g: Builder, self: Value) -> Value:
    """lgamma(Tensor self) -> Tensor; log |gamma(x)|, infinity at 0, -1, ... ONNX Log, Reciprocal, MatMul, Sin, Where, in float64."""
    x, dtype = wide(g, self)
    half, one = number(g, 0.5, x), number(g, 1, x)
    left = g.op("Less", x, half)
    z = g.op("Sub", g.op("Where", left, g.op("Sub", one, x), x), one)  # gamma(z + 1)
    base = g.op("Add", z, number(g, 7.5, x))
    series = g.op("Add", _fractions(g, z, _LANCZOS, 1.0), number(g, 0.99999999999980993, x))
    value = g.op("Sub", g.op("Mul", g.op("Add", z, half), g.op("Log", base)), base)
    value = g.op("Add", g.op("Add", value, g.op("Log", series)), number(g, 0.5 * math.log(2 * math.pi), x))
    wave = g.op("Abs", g.op("Sin", _turn(g, x)))
    reflected = g.op("Sub", g.op("Log", g.op("Div", number(g, math.pi, x), wave)), value)
    result = g.op("Where", left, reflected, value)
    result = g.op("Where", g.op("Equal", g.op("Abs", x), number(g, math.inf, x)), number(g, math.inf, x), result)
    return cast(g, result, dtype)


def _turn(g: Builder, x: Value) -> Value:
    """pi times what x is beyond the nearest whole number: exactly 0 where it is one."""
    return g.op("Mul", g.op("Sub", x, g.op("Round", x)), number(g, math.pi, x))


@aten("mvlgamma", "special_multigammaln")
def mvlgamma(g: Builder, self: Value, p: int) -> Value:
    """mvlgamma(Tensor self, int p) -> Tensor; the sum of lgamma(self - k / 2) for k below p, and a constant. ONNX as lgamma."""
    x = floating(g, self)
    shifted = g.op("Add", unsqueeze(g, x, [-1]), g.const([-0.5 * k for k in range(p)], x.dtype))
    total = g.op("ReduceSum", lgamma(g, shifted), g.const([-1]), keepdims=0)
    return g.op("Add", total, number(g, p * (p - 1) / 4 * math.log(math.pi), x))


@aten("digamma", "special_digamma", "special_psi")
def digamma(g: Builder, self: Value) -> Value:
    """digamma(Tensor self) -> Tensor; -infinity at 0, no number at -1, -2, ... ONNX Log, Reciprocal, MatMul, Sin, Cos, Where, in float64.

    Ten steps to the right, where the asymptotic series of B. Riemann holds to float64; from the left of 1/2 by reflection.
    """
    x, dtype = wide(g, self)
    left = g.op("Less", x, number(g, 0.5, x))
    z = g.op("Where", left, g.op("Sub", number(g, 1, x), x), x)
    far = g.op("Add", z, number(g, 10, x))
    inverse = g.op("Reciprocal", far)
    square = g.op("Mul", inverse, inverse)
    series = polynomial(g, square, [0.0, 1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12])
    value = g.op("Sub", g.op("Log", far), g.op("Add", g.op("Mul", inverse, number(g, 0.5, x)), series))
    value = g.op("Sub", value, _fractions(g, z, [1.0] * 10))
    turn = _turn(g, x)
    reflected = g.op("Sub", value, g.op("Div", g.op("Mul", g.op("Cos", turn), number(g, math.pi, x)), g.op("Sin", turn)))
    result = g.op("Where", left, reflected, value)
    pole = g.op("And", left, g.op("Equal", turn, number(g, 0, x)))
    at_pole = g.op("Where", g.op("Equal", x, number(g, 0, x)), g.op("Neg", g.op("Reciprocal", x)), number(g, math.nan, x))
    return cast(g, g.op("Where", pole, at_pole, result), dtype)


@aten("polygamma", "special_polygamma")
def polygamma(g: Builder, n: int, self: Value) -> Value:
    """polygamma(int n, Tensor self) -> Tensor; n 0 is digamma, n its n-th derivative. ONNX as digamma, or as zeta."""
    if n == 0:
        return digamma(g, self)
    x, dtype = wide(g, self)
    value = _zeta(g, number(g, n + 1, x), x)
    scaled = g.op("Mul", value, number(g, math.gamma(n + 1) if n < 171 else math.inf, x))
    return cast(g, scaled if n % 2 else g.op("Neg", scaled), dtype)


@aten
def special_zeta(g: Builder, self: Value | Number, other: Value | Number) -> Value:
    """special_zeta(Tensor self, Tensor other) -> Tensor; the sum of 1 / (other + k)^self over k from 0 on, as A. Hurwitz has it.

    ONNX Pow, MatMul, Where, in float64.
    """
    s, q = promoted(g, self, other, floating=True)
    return cast(g, _zeta(g, cast(g, s, DOUBLE), cast(g, q, DOUBLE)), s.dtype)  # type: ignore[arg-type]


def _zeta(g: Builder, s: Value, q: Value) -> Value:
    """Of float64. Infinite at poles (s = 1; q = 0, -1, ...), no number where s < 1, or where q < 0 and s is not whole.

    Over all whole k the sum has period 1 in q: so the terms from a negative q on are known from those on the positive side.
    """
    zero, one = number(g, 0, q), number(g, 1, q)
    whole, negative = g.op("Floor", q), g.op("Less", q, zero)
    start = g.op("Where", negative, g.op("Sub", q, whole), q)
    other_side = g.op("Sub", one, start)
    # The mirrored terms count for negative q only; elsewhere any harmless place does.
    near, far = (g.op("Where", negative, v, one) for v in (other_side, g.op("Sub", one, q)))
    mirrored = g.op("Sub", _zeta_right(g, s, near), _zeta_right(g, s, far))
    even = g.op("Equal", g.op("Floor", g.op("Mul", s, number(g, 0.5, s))), g.op("Mul", s, number(g, 0.5, s)))
    signed = g.op("Where", even, mirrored, g.op("Neg", mirrored))
    value = g.op("Add", _zeta_right(g, s, start), g.op("Where", negative, signed, zero))
    undefined = g.op("And", negative, g.op("Not", g.op("Equal", s, g.op("Floor", s))))
    value = g.op("Where", undefined, number(g, math.nan, q), value)
    value = g.op("Where", g.op("And", g.op("Equal", whole, q), g.op("Not", g.op("Less", zero, q))), number(g, math.inf, q), value)
    value = g.op("Where", g.op("Less", s, one), number(g, math.nan, q), value)
    return g.op("Where", g.op("Equal", s, one), number(g, math.inf, q), value)


_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]


def _zeta_right(g: Builder, s: Value, q: Value) -> Value:
    """The sum for q > 0: ten terms, and for the rest the formula of Euler and Maclaurin."""
    exponent = g.op("Neg", s)
    terms = g.op("Add", unsqueeze(g, q, [-1]), g.const([float(k) for k in range(10)], q.dtype))
    head = g.op("MatMul", g.op("Pow", terms, unsqueeze(g, exponent, [-1])), g.const([1.0] * 10, q.dtype))
    edge = g.op("Add", q, number(g, 10, q))
    inverse, least = g.op("Reciprocal", edge), g.op("Pow", edge, exponent)
    square = g.op("Mul", inverse, inverse)
    rest = g.op("Add", g.op("Div", edge, g.op("Sub", s, number(g, 1, s))), number(g, 0.5, s))
    rising = g.op("Mul", s, inverse)
    for k, each in enumerate(_BERNOULLI):
        rest = g.op("Add", rest, g.op("Mul", rising, number(g, each / math.factorial(2 * k + 2), s)))
        steps = [g.op("Add", s, number(g, 2 * k + 1 + i, s)) for i in (0, 1)]
        rising = g.op("Mul", rising, g.op("Mul", g.op("Mul", *steps), square))
    return g.op("Add", head, g.op("Mul", least, rest))
