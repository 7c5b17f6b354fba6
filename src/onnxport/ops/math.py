"""Functions of one number, element by element; integers are taken as PyTorch's default float."""

from __future__ import annotations

import math
from typing import Any

from onnxport.ops.arithmetic import negative_sign
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, floating, promoted, tensor
from onnxport.target.builder import Builder
from onnxport.target.dtypes import is_float
from onnxport.target.value import DataType, Value


@aten
def exp(g: Builder, self: Value) -> Value:
    """exp(Tensor self) -> Tensor. ONNX Exp."""
    return g.op("Exp", floating(g, self))


@aten("exp2", "special_exp2")
def exp2(g: Builder, self: Value) -> Value:
    """exp2(Tensor self) -> Tensor. ONNX Pow."""
    x = floating(g, self)
    return g.op("Pow", tensor(g, 2.0, x.dtype), x)


@aten("expm1", "special_expm1")
def expm1(g: Builder, self: Value) -> Value:
    """expm1(Tensor self) -> Tensor; tanh(x / 2) (exp(x) + 1), which keeps the digits of a small x. ONNX Exp, Tanh."""
    x, dtype = _at_least_single(g, self)
    above = g.op("Add", g.op("Exp", x), tensor(g, 1.0, x.dtype))
    return cast(g, g.op("Mul", g.op("Tanh", g.op("Mul", x, tensor(g, 0.5, x.dtype))), above), dtype)


@aten
def log(g: Builder, self: Value) -> Value:
    """log(Tensor self) -> Tensor. ONNX Log."""
    return g.op("Log", floating(g, self))


@aten
def log2(g: Builder, self: Value) -> Value:
    """log2(Tensor self) -> Tensor. ONNX Log, Div."""
    return _log_to(g, self, 2)


@aten
def log10(g: Builder, self: Value) -> Value:
    """log10(Tensor self) -> Tensor. ONNX Log, Div."""
    return _log_to(g, self, 10)


def _log_to(g: Builder, x: Value, base: int) -> Value:
    x = floating(g, x)
    return g.op("Div", g.op("Log", x), tensor(g, math.log(base), x.dtype))


@aten("log1p", "special_log1p")
def log1p(g: Builder, self: Value) -> Value:
    """log1p(Tensor self) -> Tensor; log(1 + x), and what 1 + x lost of a small x, divided by it. ONNX Add, Log, Clip, Sub, Div."""
    x, dtype = _at_least_single(g, self)
    one = tensor(g, 1.0, x.dtype)
    small = g.op("Clip", x, tensor(g, -0.5, x.dtype), one)  # nothing is lost at both ends; below it nothing ever is
    moved = g.op("Add", small, one)
    lost = g.op("Div", g.op("Sub", small, g.op("Sub", moved, one)), moved)
    return cast(g, g.op("Add", g.op("Log", g.op("Add", x, one)), lost), dtype)


def _at_least_single(g: Builder, x: Value) -> tuple[Value, DataType]:
    """Floats in which a sum is rounded once (of half floats ONNX Runtime may do a part in float32), and the dtype to go back to."""
    x = floating(g, x)
    assert x.dtype is not None
    return cast(g, x, DataType.FLOAT) if x.dtype in (DataType.FLOAT16, DataType.BFLOAT16) else x, x.dtype


@aten
def sqrt(g: Builder, self: Value) -> Value:
    """sqrt(Tensor self) -> Tensor. ONNX Sqrt."""
    return g.op("Sqrt", floating(g, self))


@aten
def rsqrt(g: Builder, self: Value) -> Value:
    """rsqrt(Tensor self) -> Tensor. ONNX Sqrt, Reciprocal."""
    return g.op("Reciprocal", g.op("Sqrt", floating(g, self)))


# ---------------------------------------------------------------------- angles


@aten
def sin(g: Builder, self: Value) -> Value:
    """sin(Tensor self) -> Tensor. ONNX Sin."""
    return g.op("Sin", floating(g, self))


@aten
def cos(g: Builder, self: Value) -> Value:
    """cos(Tensor self) -> Tensor. ONNX Cos."""
    return g.op("Cos", floating(g, self))


@aten
def tan(g: Builder, self: Value) -> Value:
    """tan(Tensor self) -> Tensor. ONNX Tan."""
    return g.op("Tan", floating(g, self))


@aten("asin", "arcsin")
def asin(g: Builder, self: Value) -> Value:
    """asin(Tensor self) -> Tensor. ONNX Asin."""
    return g.op("Asin", floating(g, self))


@aten("acos", "arccos")
def acos(g: Builder, self: Value) -> Value:
    """acos(Tensor self) -> Tensor. ONNX Acos."""
    return g.op("Acos", floating(g, self))


@aten("atan", "arctan")
def atan(g: Builder, self: Value) -> Value:
    """atan(Tensor self) -> Tensor. ONNX Atan."""
    return g.op("Atan", floating(g, self))


@aten
def sinh(g: Builder, self: Value) -> Value:
    """sinh(Tensor self) -> Tensor. ONNX Sinh."""
    return g.op("Sinh", floating(g, self))


@aten
def cosh(g: Builder, self: Value) -> Value:
    """cosh(Tensor self) -> Tensor. ONNX Cosh."""
    return g.op("Cosh", floating(g, self))


@aten
def tanh(g: Builder, self: Value) -> Value:
    """tanh(Tensor self) -> Tensor. ONNX Tanh."""
    return g.op("Tanh", floating(g, self))


@aten("asinh", "arcsinh")
def asinh(g: Builder, self: Value) -> Value:
    """asinh(Tensor self) -> Tensor. ONNX Asinh."""
    return g.op("Asinh", floating(g, self))


@aten("acosh", "arccosh")
def acosh(g: Builder, self: Value) -> Value:
    """acosh(Tensor self) -> Tensor. ONNX Acosh."""
    return g.op("Acosh", floating(g, self))


@aten("atanh", "arctanh")
def atanh(g: Builder, self: Value) -> Value:
    """atanh(Tensor self) -> Tensor. ONNX Atanh."""
    return g.op("Atanh", floating(g, self))


@aten
def deg2rad(g: Builder, self: Value) -> Value:
    """deg2rad(Tensor self) -> Tensor. ONNX Mul."""
    x = floating(g, self)
    return g.op("Mul", x, tensor(g, math.pi / 180, x.dtype))


@aten
def rad2deg(g: Builder, self: Value) -> Value:
    """rad2deg(Tensor self) -> Tensor. ONNX Mul."""
    x = floating(g, self)
    return g.op("Mul", x, tensor(g, 180 / math.pi, x.dtype))


# ---------------------------------------------------------------------- sigmoids, errors


@aten("sigmoid", "special_expit")
def sigmoid(g: Builder, self: Value) -> Value:
    """sigmoid(Tensor self) -> Tensor. ONNX Sigmoid."""
    return g.op("Sigmoid", floating(g, self))


@aten("logit", "special_logit")
def logit(g: Builder, self: Value, eps: float | None = None) -> Value:
    """logit(Tensor self, float? eps=None) -> Tensor; log(x / (1 - x)), x first bounded by eps and 1 - eps. ONNX Sub, Div, Log."""
    x = floating(g, self)
    if eps is not None:
        low, high = tensor(g, eps, x.dtype), tensor(g, 1.0 - eps, x.dtype)
        x = g.op("Clip", x, low, high) if eps <= 0.5 else g.op("Where", g.op("Less", x, low), low, g.op("Min", x, high))
    return g.op("Log", g.op("Div", x, g.op("Sub", tensor(g, 1.0, x.dtype), x)))


@aten("erf", "special_erf")
def erf(g: Builder, self: Value) -> Value:
    """erf(Tensor self) -> Tensor. ONNX Erf."""
    return g.op("Erf", floating(g, self))


@aten("sinc", "special_sinc")
def sinc(g: Builder, self: Value) -> Value:
    """sinc(Tensor self) -> Tensor; sin(pi x) / (pi x), and 1 at 0. ONNX Sin, Div, Where."""
    x = floating(g, self)
    angle = g.op("Mul", x, tensor(g, math.pi, x.dtype))
    return g.op("Where", g.op("Equal", x, tensor(g, 0.0, x.dtype)), tensor(g, 1.0, x.dtype), g.op("Div", g.op("Sin", angle), angle))


# ---------------------------------------------------------------------- of two numbers


@aten
def hypot(g: Builder, self: Value, other: Value) -> Value:
    """hypot(Tensor self, Tensor other) -> Tensor; infinite where one is, whatever the other. ONNX Mul, Add, Sqrt, IsInf, Where.

    Squares must not overflow: of float32 they are taken in float64, of float64 relative to the greater side.
    """
    a, b = promoted(g, self, other)
    if a.dtype == DataType.DOUBLE:
        length = _long_side(g, g.op("Abs", a), g.op("Abs", b))
    else:
        wide = DataType.DOUBLE if a.dtype == DataType.FLOAT else DataType.FLOAT
        x, y = tensor(g, a, wide), tensor(g, b, wide)
        length = tensor(g, g.op("Sqrt", g.op("Add", g.op("Mul", x, x), g.op("Mul", y, y))), a.dtype)
    return g.op("Where", g.op("Or", g.op("IsInf", a), g.op("IsInf", b)), tensor(g, math.inf, a.dtype), length)


def _long_side(g: Builder, a: Value, b: Value) -> Value:
    one, longer = tensor(g, 1.0, a.dtype), g.op("Max", a, b)
    ratio = g.op("Div", g.op("Min", a, b), g.op("Where", g.op("Equal", longer, tensor(g, 0.0, a.dtype)), one, longer))
    return g.op("Mul", longer, g.op("Sqrt", g.op("Add", g.op("Mul", ratio, ratio), one)))


@aten
def nextafter(g: Builder, self: Value, other: Value) -> Value:
    """nextafter(Tensor self, Tensor other) -> Tensor; the number beside `self` on the way to `other`. ONNX Log, Floor, Pow, Where, Add.

    A step is the distance of the numbers between two powers of 2; from such a power towards 0 it is half of that.
    """
    x, y = promoted(g, self, other)
    tiny, epsilon, most = spacing(x.dtype)
    wide = DataType.DOUBLE if x.dtype in (DataType.FLOAT, DataType.DOUBLE) else DataType.FLOAT
    a, b = cast(g, x, wide), cast(g, y, wide)
    two, zero, least = (tensor(g, n, wide) for n in (2.0, 0.0, tiny))
    size = g.op("Abs", a)
    power = _power_of_two(g, g.op("Max", size, least), two)
    up = g.op("Less", a, b)
    outwards = g.op("Or", g.op("Equal", a, zero), g.op("Equal", up, g.op("Less", zero, a)))
    inwards = g.op("And", g.op("Not", outwards), g.op("And", g.op("Equal", size, power), g.op("Less", least, power)))
    step = g.op("Mul", g.op("Where", inwards, g.op("Div", power, two), power), tensor(g, epsilon, wide))
    value = g.op("Add", a, g.op("Where", up, step, g.op("Neg", step)))
    greatest = tensor(g, most, wide)
    value = g.op("Where", g.op("Equal", size, tensor(g, math.inf, wide)), g.op("Where", up, g.op("Neg", greatest), greatest), value)
    value = g.op("Where", g.op("Or", g.op("Equal", a, b), g.op("IsNaN", b)), b, value)
    return cast(g, g.op("Where", g.op("IsNaN", a), a, value), x.dtype)  # type: ignore[arg-type]


def _power_of_two(g: Builder, x: Value, two: Value) -> Value:
    """The greatest power of 2 up to x; the logarithm may be off by one at either side."""
    power = g.op("Pow", two, g.op("Floor", g.op("Div", g.op("Log", x), tensor(g, math.log(2), x.dtype))))
    power = g.op("Where", g.op("Less", x, power), g.op("Div", power, two), power)
    twice = g.op("Mul", power, two)
    return g.op("Where", g.op("Less", x, twice), power, twice)


@aten("xlogy", "special_xlogy")
def xlogy(g: Builder, self: Value | Number, other: Value | Number) -> Value:
    """xlogy(Tensor self, Tensor other) -> Tensor; self * log(other), and 0 where self is 0. ONNX Log, Mul, Where."""
    a, b = promoted(g, self, other, floating=True)
    return _zero_unless_nan(g, a, b, g.op("Mul", a, g.op("Log", b)))


@aten
def special_xlog1py(g: Builder, self: Value | Number, other: Value | Number) -> Value:
    """special_xlog1py(Tensor self, Tensor other) -> Tensor; self * log1p(other), and 0 where self is 0. ONNX Log, Mul, Where."""
    a, b = promoted(g, self, other, floating=True)
    return _zero_unless_nan(g, a, b, g.op("Mul", a, log1p(g, b)))


def _zero_unless_nan(g: Builder, a: Value, b: Value, result: Value) -> Value:
    zero = tensor(g, 0.0, a.dtype)
    return g.op("Where", g.op("And", g.op("Equal", a, zero), g.op("Not", g.op("IsNaN", b))), zero, result)


@aten
def logaddexp(g: Builder, self: Value, other: Value) -> Value:
    """logaddexp(Tensor self, Tensor other) -> Tensor; log(exp(a) + exp(b)) without overflow. ONNX Max, Softplus, Add."""
    a, b = promoted(g, self, other, floating=True)
    gap = g.op("Where", g.op("Equal", a, b), tensor(g, 0.0, a.dtype), g.op("Sub", a, b))  # infinity - infinity is no number
    return g.op("Add", g.op("Max", a, b), g.op("Softplus", g.op("Neg", g.op("Abs", gap))))


@aten
def logaddexp2(g: Builder, self: Value, other: Value) -> Value:
    """logaddexp2(Tensor self, Tensor other) -> Tensor; to the base 2. ONNX as logaddexp, and Mul."""
    a, b = promoted(g, self, other, floating=True)
    scale = tensor(g, math.log(2), a.dtype)
    return g.op("Div", logaddexp(g, g.op("Mul", a, scale), g.op("Mul", b, scale)), scale)


@aten("atan2", "arctan2")
def atan2(g: Builder, self: Value, other: Value) -> Value:
    """atan2(Tensor self, Tensor other) -> Tensor; the angle of the point (other, self), exact for zeros of both signs and infinities.

    ONNX Clip, Div, Atan, Where.
    """
    y, x = promoted(g, self, other, floating=True)
    least, most = (tensor(g, n, x.dtype) for n in limits(x.dtype))
    ratio = g.op("Div", *[g.op("Clip", v, least, most) for v in (y, x)])  # infinities: 1 to 1
    zero, pi = tensor(g, 0.0, x.dtype), tensor(g, math.pi, x.dtype)
    angle = g.op("Atan", g.op("Where", g.op("Equal", y, zero), y, ratio))
    behind = g.op("Where", negative_sign(g, y), g.op("Sub", angle, pi), g.op("Add", angle, pi))
    return g.op("Where", negative_sign(g, x), behind, angle)


@aten
def angle(g: Builder, self: Value) -> Value:
    """angle(Tensor self) -> Tensor; of real numbers pi below 0, else 0. ONNX Less, Where."""
    x = floating(g, self)
    arc = g.op("Where", g.op("Less", x, tensor(g, 0.0, x.dtype)), tensor(g, math.pi, x.dtype), tensor(g, 0.0, x.dtype))
    return g.op("Where", g.op("IsNaN", x), x, arc)


@aten
def nan_to_num(g: Builder, self: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Value:
    """nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor. ONNX IsNaN, Equal, Where."""
    if not is_float(self.dtype):
        return self
    low, high = limits(self.dtype)
    x, inf = self, math.inf
    x = g.op("Where", g.op("IsNaN", x), tensor(g, 0.0 if nan is None else nan, x.dtype), x)
    x = g.op("Where", g.op("Equal", self, tensor(g, inf, x.dtype)), tensor(g, high if posinf is None else posinf, x.dtype), x)
    return g.op("Where", g.op("Equal", self, tensor(g, -inf, x.dtype)), tensor(g, low if neginf is None else neginf, x.dtype), x)


def spacing(dtype: Any) -> tuple[float, float, float]:
    """The least normal number of a float dtype, its relative step, and its greatest number."""
    import torch

    from onnxport.target.dtypes import to_torch

    info = torch.finfo(to_torch(dtype))
    return info.tiny, info.eps, info.max


def limits(dtype: Any) -> tuple[float, float]:
    """The least and the greatest number of a float dtype."""
    import torch

    from onnxport.target.dtypes import to_torch

    info = torch.finfo(to_torch(dtype))
    return info.min, info.max
