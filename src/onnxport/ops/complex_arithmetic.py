"""Arithmetic and elementary functions of complex numbers, from those of real ones."""

from __future__ import annotations

import math as numbers
from typing import Any

from onnxport import errors
from onnxport.ops import math
from onnxport.ops.complex_numbers import abs_, angle, conj, eq, squared_length
from onnxport.ops.complex_parts import pair, parts_of, zeros
from onnxport.ops.layout import broadcast_tensors
from onnxport.ops.registry import of_complex
from onnxport.ops.support import is_one, result_type, tensor
from onnxport.target.builder import Builder
from onnxport.target.dtypes import COMPLEX
from onnxport.target.value import Complex, DataType, Value

_MULTIPLIED = 8  # the highest power that is multiplied out


# ---------------------------------------------------------------------- sums, products, quotients


@of_complex("add")
def add(g: Builder, self: Any, other: Any, alpha: Any = 1) -> Value:
    """add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor. ONNX Add."""
    dtype = _common(self, other)
    (a, b), (c, d) = parts_of(g, self, dtype), parts_of(g, _scaled(g, other, alpha), dtype)
    re = g.op("Add", a, c)
    if b is None or d is None:  # the imaginary part is that of one, at the size of both
        return Complex(re, _at_size_of(g, re, d if b is None else b))
    return Complex(re, g.op("Add", b, d))


@of_complex("sub", "subtract")
def sub(g: Builder, self: Any, other: Any, alpha: Any = 1) -> Value:
    """sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor. ONNX Sub."""
    dtype = _common(self, other)
    (a, b), (c, d) = parts_of(g, self, dtype), parts_of(g, _scaled(g, other, alpha), dtype)
    re = g.op("Sub", a, c)
    if b is None or d is None:
        return Complex(re, _at_size_of(g, re, b if d is None else g.op("Neg", d)))
    return Complex(re, g.op("Sub", b, d))


@of_complex("rsub", "__rsub__")
def rsub(g: Builder, self: Any, other: Any, alpha: Any = 1) -> Value:
    """rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor. ONNX Sub."""
    return sub(g, other, self, alpha)


def mul(g: Builder, a: Any, b: Any) -> Complex:
    """a * b, where one is complex."""
    from onnxport.ops import arithmetic
    from onnxport.ops.complex_parts import multilinear

    made = multilinear(g, arithmetic.mul, ("self", "other"), {"self": a, "other": b})
    assert isinstance(made, Complex)
    return made


@of_complex("div", "divide", "true_divide")
def div(g: Builder, self: Any, other: Any, rounding_mode: str | None = None) -> Value:
    """div(Tensor self, Tensor other) -> Tensor; by a complex number: times its conjugate, over its squared length. ONNX Div."""
    if rounding_mode is not None:
        raise errors.UnsupportedError("complex quotients are not rounded")
    dtype = _common(self, other)
    (a, b), (c, d) = parts_of(g, self, dtype), parts_of(g, other, dtype)
    if d is None:
        return Complex(g.op("Div", a, c), g.op("Div", _imaginary(g, a, b), c))
    size = squared_length(g, Complex(c, d))
    above = mul(g, self if b is None else Complex(a, b), conj(g, Complex(c, d)))
    return Complex(g.op("Div", above.re, size), g.op("Div", above.im, size))


@of_complex("reciprocal")
def reciprocal(g: Builder, self: Complex) -> Value:
    """reciprocal(Tensor self) -> Tensor. ONNX Div, Neg."""
    size = squared_length(g, self)
    return Complex(g.op("Div", self.re, size), g.op("Div", g.op("Neg", self.im), size))


@of_complex("square")
def square(g: Builder, self: Complex) -> Value:
    """square(Tensor self) -> Tensor. ONNX Mul, Sub."""
    return mul(g, self, self)


@of_complex("vdot")
def vdot(g: Builder, self: Value, other: Value) -> Value:
    """vdot(Tensor self, Tensor other) -> Tensor; with the conjugate of self."""
    return _dot_of_conjugate(g, self, other, -1)


@of_complex("linalg_vecdot")
def linalg_vecdot(g: Builder, x: Value, y: Value, dim: int = -1) -> Value:
    """linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor; with the conjugate of x."""
    return _dot_of_conjugate(g, x, y, dim)


def _dot_of_conjugate(g: Builder, x: Value, y: Value, dim: int) -> Value:
    from onnxport.ops.reduction import sum_

    product = mul(g, conj(g, x) if isinstance(x, Complex) else x, y)
    return Complex(sum_(g, product.re, [dim]), sum_(g, product.im, [dim]))


def _common(a: Any, b: Any) -> DataType:
    """The complex type of a result: a number or a tensor of rank 0 has no say in how wide it is."""
    dtype = result_type(a, b)
    assert dtype in COMPLEX
    return dtype


def _scaled(g: Builder, x: Any, factor: Any) -> Any:
    if is_one(factor):
        return x
    if not isinstance(x, Value):
        return x * factor
    if isinstance(x, Complex) or isinstance(factor, complex):
        return mul(g, x, factor)
    return g.op("Mul", x, tensor(g, factor, x.dtype))


def _imaginary(g: Builder, re: Value, im: Value | None) -> Value:
    return zeros(g, re) if im is None else im


def _at_size_of(g: Builder, like: Value, x: Value | None) -> Value:
    assert x is not None
    if x.shape is not None and x.shape == like.shape:
        return x
    return broadcast_tensors(g, [x, like])[0]


# ---------------------------------------------------------------------- powers


@of_complex("exp")
def exp(g: Builder, self: Complex) -> Value:
    """exp(Tensor self) -> Tensor. ONNX Exp, Cos, Sin, Mul."""
    return _turned(g, g.op("Exp", self.re), self.im)


def _turned(g: Builder, length: Value, arc: Value) -> Complex:
    """The number of this length and angle."""
    return Complex(g.op("Mul", length, g.op("Cos", arc)), g.op("Mul", length, g.op("Sin", arc)))


@of_complex("exp2", "special_exp2")
def exp2(g: Builder, self: Complex) -> Value:
    """exp2(Tensor self) -> Tensor."""
    return exp(g, mul(g, self, numbers.log(2)))


@of_complex("expm1", "special_expm1")
def expm1(g: Builder, self: Complex) -> Value:
    """expm1(Tensor self) -> Tensor."""
    return sub(g, exp(g, self), 1)


@of_complex("log")
def log(g: Builder, self: Complex) -> Complex:
    """log(Tensor self) -> Tensor. ONNX Log."""
    return Complex(g.op("Log", abs_(g, self)), angle(g, self))


@of_complex("log2")
def log2(g: Builder, self: Complex) -> Value:
    """log2(Tensor self) -> Tensor."""
    return mul(g, log(g, self), 1 / numbers.log(2))


@of_complex("log10")
def log10(g: Builder, self: Complex) -> Value:
    """log10(Tensor self) -> Tensor."""
    return mul(g, log(g, self), 1 / numbers.log(10))


@of_complex("log1p", "special_log1p")
def log1p(g: Builder, self: Complex) -> Value:
    """log1p(Tensor self) -> Tensor."""
    return log(g, pair(g, add(g, self, 1)))


@of_complex("sqrt")
def sqrt(g: Builder, self: Complex) -> Value:
    """sqrt(Tensor self) -> Tensor; of the two roots the one with the real part that is not negative. ONNX Sqrt."""
    return _power(g, self, 0.5)


@of_complex("rsqrt")
def rsqrt(g: Builder, self: Complex) -> Value:
    """rsqrt(Tensor self) -> Tensor."""
    return reciprocal(g, pair(g, sqrt(g, self)))


@of_complex("pow", "float_power")
def pow_(g: Builder, self: Any, exponent: Any) -> Value:
    """pow(Tensor self, Tensor exponent) -> Tensor; a small whole power is multiplied out. ONNX Mul; Pow, Cos, Sin; Exp, Log."""
    dtype = _common(self, exponent)
    if isinstance(exponent, complex) and exponent.imag == 0:
        exponent = exponent.real
    z = pair(g, self, dtype)
    if isinstance(exponent, (int, float)):
        whole = float(exponent).is_integer() and abs(exponent) <= _MULTIPLIED
        return _multiplied(g, z, int(exponent)) if whole else _power(g, z, exponent)
    if not isinstance(exponent, (complex, Complex)):
        return _power(g, z, exponent)
    w = pair(g, exponent, dtype)
    made = pair(g, exp(g, mul(g, log(g, z), w)))
    one = tensor(g, 1, z.re.dtype)
    of_zero = g.op("Where", eq(g, w, 0), one, tensor(g, 0, z.re.dtype))
    none = eq(g, z, 0)
    return Complex(g.op("Where", none, of_zero, made.re), g.op("Where", none, tensor(g, 0, z.re.dtype), made.im))


def _multiplied(g: Builder, z: Complex, exponent: int) -> Value:
    """z to a whole power."""
    if exponent < 0:
        return reciprocal(g, pair(g, _multiplied(g, z, -exponent)))
    if exponent == 0:
        return Complex(g.op("Add", zeros(g, z.re), tensor(g, 1, z.re.dtype)), zeros(g, z.re))
    result, squares = None, z
    while True:
        if exponent & 1:
            result = squares if result is None else mul(g, result, squares)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        squares = mul(g, squares, squares)


def _power(g: Builder, z: Complex, exponent: Any) -> Value:
    """z to a real power: the power of its length, and so many times its angle."""
    p = tensor(g, exponent, z.re.dtype)
    length = g.op("Sqrt", abs_(g, z)) if exponent == 0.5 else g.op("Pow", abs_(g, z), p)
    return _turned(g, length, g.op("Mul", angle(g, z), p))


# ---------------------------------------------------------------------- circular and hyperbolic functions


@of_complex("sin")
def sin(g: Builder, self: Complex) -> Value:
    """sin(Tensor self) -> Tensor. ONNX Sin, Cos, Sinh, Cosh, Mul."""
    return Complex(g.op("Mul", g.op("Sin", self.re), math.cosh(g, self.im)), g.op("Mul", g.op("Cos", self.re), math.sinh(g, self.im)))


@of_complex("cos")
def cos(g: Builder, self: Complex) -> Value:
    """cos(Tensor self) -> Tensor. ONNX Sin, Cos, Sinh, Cosh, Mul, Neg."""
    im = g.op("Mul", g.op("Sin", self.re), math.sinh(g, self.im))
    return Complex(g.op("Mul", g.op("Cos", self.re), math.cosh(g, self.im)), g.op("Neg", im))


@of_complex("sinh")
def sinh(g: Builder, self: Complex) -> Value:
    """sinh(Tensor self) -> Tensor; sin(iz) / i."""
    made = pair(g, sin(g, _times_i(g, self)))
    return Complex(made.im, g.op("Neg", made.re))


@of_complex("cosh")
def cosh(g: Builder, self: Complex) -> Value:
    """cosh(Tensor self) -> Tensor; cos(iz)."""
    return cos(g, _times_i(g, self))


@of_complex("tanh")
def tanh(g: Builder, self: Complex) -> Value:
    """tanh(Tensor self) -> Tensor; (t + iu) / (1 + itu) with t = tanh(re), u = tan(im), which overflows nowhere."""
    t, u = g.op("Tanh", self.re), math.tan(g, self.im)
    return div(g, Complex(t, u), Complex(g.op("Add", zeros(g, t), tensor(g, 1, t.dtype)), g.op("Mul", t, u)))


@of_complex("tan")
def tan(g: Builder, self: Complex) -> Value:
    """tan(Tensor self) -> Tensor; tanh(iz) / i."""
    made = pair(g, tanh(g, _times_i(g, self)))
    return Complex(made.im, g.op("Neg", made.re))


@of_complex("sigmoid", "special_expit")
def sigmoid(g: Builder, self: Complex) -> Value:
    """sigmoid(Tensor self) -> Tensor; 1 / (1 + exp(-z))."""
    return reciprocal(g, pair(g, add(g, exp(g, mul(g, self, -1)), 1)))


def _times_i(g: Builder, z: Complex) -> Complex:
    return Complex(g.op("Neg", z.im), z.re)
