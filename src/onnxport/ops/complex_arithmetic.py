"""Arithmetic and elementary functions of complex numbers, from those of real ones."""

from __future__ import annotations

import math as numbers
from typing import Any

import torch

from onnxport import errors
from onnxport.ops import arithmetic, layout, linear, math
from onnxport.ops.complex_numbers import abs_, angle, conj, eq
from onnxport.ops.complex_parts import multilinear, on_both, pair, parts_of, zeros
from onnxport.ops.pieces import sliced
from onnxport.ops.reduction import sum_
from onnxport.ops.registry import of_complex
from onnxport.ops.support import axis_of, cast, is_one, result_type, shape_of, static_int, tensor
from onnxport.target.builder import Builder
from onnxport.target.dtypes import COMPLEX, from_torch
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
    scale, (c, d) = _scaled_down(g, c, d)
    above = mul(g, self if b is None else Complex(a, b), Complex(c, g.op("Neg", d)))
    return Complex(g.op("Div", above.re, scale), g.op("Div", above.im, scale))


def _scaled_down(g: Builder, c: Value, d: Value) -> tuple[Value, tuple[Value, Value]]:
    """(c - di) / s, in which 1 / (c + di) is what is divided by s (c^2 + d^2) / s^2: no square overflows or vanishes."""
    greater = g.op("Max", g.op("Abs", c), g.op("Abs", d))
    c, d = g.op("Div", c, greater), g.op("Div", d, greater)
    return g.op("Mul", greater, g.op("Add", g.op("Mul", c, c), g.op("Mul", d, d))), (c, d)


@of_complex("reciprocal")
def reciprocal(g: Builder, self: Complex) -> Value:
    """reciprocal(Tensor self) -> Tensor. ONNX Div, Neg."""
    scale, (c, d) = _scaled_down(g, self.re, self.im)
    return Complex(g.op("Div", c, scale), g.op("Div", g.op("Neg", d), scale))


@of_complex("square")
def square(g: Builder, self: Complex) -> Value:
    """square(Tensor self) -> Tensor. ONNX Mul, Sub."""
    return mul(g, self, self)


@of_complex("prod")
def prod(g: Builder, self: Value, dim: int | None = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Value:
    """prod(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor; along a fixed size. ONNX Mul."""
    z = pair(g, self, None if dtype is None else from_torch(dtype))
    if not z.rank:
        return z
    if dim is None:
        z, dim = on_both(z, lambda part: layout.ravel(g, part)), 0
    axis = axis_of(z, dim)
    if shape_of(z)[axis] == 0:
        raise errors.UnsupportedError("the product of no complex numbers")
    made = _products(g, z, axis)[-1]
    return made if keepdim else on_both(made, lambda part: layout.squeeze(g, part, [axis]))


@of_complex("cumprod")
def cumprod(g: Builder, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor; along a fixed size. ONNX Mul, Concat."""
    z = pair(g, self, None if dtype is None else from_torch(dtype))
    axis = axis_of(z, dim)
    made = _products(g, z, axis) if z.rank else []
    if not made:
        return z
    return Complex(g.op("Concat", *[product.re for product in made], axis=axis), g.op("Concat", *[product.im for product in made], axis=axis))


def _products(g: Builder, z: Complex, axis: int) -> list[Complex]:
    """The product of the first number, the first two, ... along an axis."""
    count = static_int(shape_of(z)[axis], "the number of complex numbers that are multiplied with each other")
    made: list[Complex] = []
    for place in range(count):
        number = on_both(z, lambda part, place=place: sliced(g, part, axis, place, place + 1))  # type: ignore[misc]
        made.append(mul(g, made[-1], number) if made else number)
    return made


@of_complex("addbmm")
def addbmm(g: Builder, self: Any, batch1: Value, batch2: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    """addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor; the sum over the batch."""
    product = multilinear(g, linear.bmm, ("self", "mat2"), {"self": batch1, "mat2": batch2})
    assert isinstance(product, Complex)
    return add(g, _scaled(g, self, beta), on_both(product, lambda part: sum_(g, part, [0])), alpha)


@of_complex("vdot")
def vdot(g: Builder, self: Value, other: Value) -> Value:
    """vdot(Tensor self, Tensor other) -> Tensor; with the conjugate of self."""
    return _dot_of_conjugate(g, self, other, -1)


@of_complex("linalg_vecdot")
def linalg_vecdot(g: Builder, x: Value, y: Value, dim: int = -1) -> Value:
    """linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor; with the conjugate of x."""
    return _dot_of_conjugate(g, x, y, dim)


def _dot_of_conjugate(g: Builder, x: Value, y: Value, dim: int) -> Value:
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
    return layout.broadcast_tensors(g, [x, like])[0]


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
    """expm1(Tensor self) -> Tensor; of x + iy the real part is expm1(x) cos y - 2 sin(y / 2)^2, whose digits stay where both are small."""
    half = g.op("Sin", g.op("Mul", self.im, tensor(g, 0.5, self.im.dtype)))
    bent = g.op("Mul", g.op("Mul", half, half), tensor(g, 2.0, half.dtype))
    real = g.op("Sub", g.op("Mul", math.expm1(g, self.re), g.op("Cos", self.im)), bent)
    return Complex(real, g.op("Mul", g.op("Exp", self.re), g.op("Sin", self.im)))


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
    """log1p(Tensor self) -> Tensor; of a small x + iy the real part is log1p(x (2 + x) + y^2) / 2."""
    whole = log(g, pair(g, add(g, self, 1)))
    half, two = tensor(g, 0.5, self.re.dtype), tensor(g, 2.0, self.re.dtype)
    is_small = g.op("Less", g.op("Max", g.op("Abs", self.re), g.op("Abs", self.im)), half)
    grown = g.op("Add", g.op("Mul", self.re, g.op("Add", self.re, two)), g.op("Mul", self.im, self.im))
    return Complex(g.op("Where", is_small, g.op("Mul", math.log1p(g, grown), half), whole.re), whole.im)


@of_complex("sqrt")
def sqrt(g: Builder, self: Complex) -> Value:
    """sqrt(Tensor self) -> Tensor; of the two roots the one with the real part that is not negative. ONNX Sqrt."""
    return _power(g, self, 0.5)


@of_complex("rsqrt")
def rsqrt(g: Builder, self: Complex) -> Value:
    """rsqrt(Tensor self) -> Tensor."""
    return reciprocal(g, pair(g, sqrt(g, self)))


@of_complex("float_power")
def float_power(g: Builder, self: Any, exponent: Any) -> Value:
    """float_power(Tensor self, Tensor exponent) -> Tensor; in double precision."""
    return pow_(g, *[_wide(g, x) for x in (self, exponent)])


def _wide(g: Builder, x: Any) -> Any:
    if isinstance(x, Complex):
        return pair(g, x, DataType.COMPLEX128)
    return cast(g, x, DataType.DOUBLE) if isinstance(x, Value) else x


@of_complex("pow")
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


@of_complex("asinh", "arcsinh")
def asinh(g: Builder, self: Complex) -> Value:
    """asinh(Tensor self) -> Tensor; log(z + sqrt(1 + z^2))."""
    return log(g, pair(g, add(g, self, sqrt(g, pair(g, add(g, mul(g, self, self), 1))))))


@of_complex("asin", "arcsin")
def asin(g: Builder, self: Complex) -> Value:
    """asin(Tensor self) -> Tensor; asinh(iz) / i."""
    made = pair(g, asinh(g, _times_i(g, self)))
    return Complex(made.im, g.op("Neg", made.re))


@of_complex("acos", "arccos")
def acos(g: Builder, self: Complex) -> Value:
    """acos(Tensor self) -> Tensor; pi / 2 - asin(z)."""
    return sub(g, numbers.pi / 2, asin(g, self))


@of_complex("acosh", "arccosh")
def acosh(g: Builder, self: Complex) -> Value:
    """acosh(Tensor self) -> Tensor; log(z + sqrt(z + 1) sqrt(z - 1))."""
    roots = [sqrt(g, pair(g, add(g, self, side))) for side in (1, -1)]
    return log(g, pair(g, add(g, self, mul(g, *roots))))


@of_complex("atanh", "arctanh")
def atanh(g: Builder, self: Complex) -> Value:
    """atanh(Tensor self) -> Tensor; half of log(1 + z) - log(1 - z)."""
    above, below = log(g, pair(g, add(g, self, 1))), log(g, pair(g, sub(g, 1, self)))
    return mul(g, sub(g, above, below), 0.5)


@of_complex("atan", "arctan")
def atan(g: Builder, self: Complex) -> Value:
    """atan(Tensor self) -> Tensor; atanh(iz) / i."""
    made = pair(g, atanh(g, _times_i(g, self)))
    return Complex(made.im, g.op("Neg", made.re))


def _times_i(g: Builder, z: Complex) -> Complex:
    return Complex(g.op("Neg", z.im), z.re)
