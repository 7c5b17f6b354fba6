"""Arithmetic, element by element, with PyTorch's promotion of dtypes."""

from __future__ import annotations

import math
from typing import Any

from onnxport import errors
from onnxport.ops.comparison import looked_up, wrapped
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, is_one, promoted, result_type, tensor
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim
from onnxport.target.dtypes import is_float, is_integer
from onnxport.target.value import DataType, Value

Operand = Value | Dim | Number
BOOL = DataType.BOOL


# ---------------------------------------------------------------------- sums and products


@aten
def add(g: Builder, self: Operand, other: Operand, alpha: Any = 1) -> Value:
    """add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor; with bools: or. ONNX Add."""
    a, b = promoted(g, self, other)
    if a.dtype == BOOL:
        return g.op("Or", a, b if alpha is True or alpha == 1 else g.op("And", b, tensor(g, alpha, BOOL)))
    return g.op("Add", a, _scaled(g, b, alpha))


@aten
def sub(g: Builder, self: Operand, other: Operand, alpha: Any = 1) -> Value:
    """sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor. ONNX Sub."""
    a, b = promoted(g, self, other)
    return g.op("Sub", a, _scaled(g, b, alpha))


@aten("rsub", "__rsub__")
def rsub(g: Builder, self: Operand, other: Operand, alpha: Any = 1) -> Value:
    """rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor; other - alpha * self. ONNX Sub."""
    return sub(g, other, self, alpha)


@aten("mul", "multiply")
def mul(g: Builder, self: Operand, other: Operand) -> Value:
    """mul(Tensor self, Tensor other) -> Tensor; with bools: and. ONNX Mul."""
    a, b = promoted(g, self, other)
    return g.op("And" if a.dtype == BOOL else "Mul", a, b)


@aten
def addcmul(g: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    """addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor. ONNX Mul, Add."""
    a, b, c = promoted(g, self, tensor1, tensor2)
    return g.op("Add", a, _scaled(g, g.op("Mul", b, c), value))


@aten
def addcdiv(g: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    """addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor; floats only. ONNX Div, Add."""
    a, b, c = promoted(g, self, tensor1, tensor2)
    return g.op("Add", a, g.op("Div", _scaled(g, b, value), c))


@aten
def lerp(g: Builder, self: Value, end: Value, weight: Any) -> Value:
    """lerp(Tensor self, Tensor end, Tensor weight) -> Tensor; also with a Scalar weight.

    From the nearer end, so that a weight of 1 gives exactly `end`. ONNX Sub, Mul, Add, and Where for a weight that is not known.
    """
    a, b = promoted(g, self, end)
    w = tensor(g, weight, a.dtype)
    span = g.op("Sub", b, a)
    if isinstance(weight, (int, float)) and weight < 0.5:
        return g.op("Add", a, g.op("Mul", span, w))
    rest = g.op("Sub", b, g.op("Mul", span, g.op("Sub", tensor(g, 1, a.dtype), w)))
    if isinstance(weight, (int, float)):
        return rest
    return g.op("Where", g.op("Less", w, tensor(g, 0.5, a.dtype)), g.op("Add", a, g.op("Mul", span, w)), rest)


def _scaled(g: Builder, x: Value, factor: Any) -> Value:
    return x if is_one(factor) else g.op("Mul", x, tensor(g, factor, x.dtype))


# ---------------------------------------------------------------------- quotients and remainders


@aten("div", "divide")
def div(g: Builder, self: Operand, other: Operand, rounding_mode: str | None = None) -> Value:
    """div(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor

    rounding_mode None: the true quotient, a float. "trunc", "floor": rounded, in the common dtype. ONNX Div, Floor, Mod.
    """
    if rounding_mode == "floor":
        return floor_divide(g, self, other)
    if rounding_mode == "trunc":
        a, b = promoted(g, self, other)
        quotient = g.op("Div", a, b)
        return _toward_zero(g, quotient) if is_float(a.dtype) else quotient
    return g.op("Div", *promoted(g, self, other, floating=True))


@aten("true_divide")
def true_divide(g: Builder, self: Operand, other: Operand) -> Value:
    """true_divide(Tensor self, Tensor other) -> Tensor. ONNX Div."""
    return div(g, self, other)


@aten
def floor_divide(g: Builder, self: Operand, other: Operand) -> Value:
    """floor_divide(Tensor self, Tensor other) -> Tensor

    Integers: ONNX Div rounds towards zero, so what is left over is taken off first (Mod, Sub, Div). Floats: Div, Floor; in
    float64, where the rounding of a float32 quotient to a whole number cannot show.
    """
    a, b = promoted(g, self, other)
    if not is_float(a.dtype):
        return _floor_quotient(g, a, b)
    if is_power_of_two(other):
        return g.op("Floor", g.op("Div", a, b))
    if a.dtype != DataType.DOUBLE:
        wide = DataType.FLOAT if a.dtype in (DataType.FLOAT16, DataType.BFLOAT16) else DataType.DOUBLE
        return tensor(g, g.op("Floor", g.op("Div", cast(g, a, wide), cast(g, b, wide))), a.dtype)
    rest = remainder(g, a, b)
    quotient = g.op("Round", g.op("Div", g.op("Sub", a, rest), b))
    return g.op("Where", g.op("Equal", b, tensor(g, 0.0, b.dtype)), g.op("Div", a, b), quotient)


def _floor_quotient(g: Builder, a: Value, b: Value) -> Value:
    if a.content is not None and b.content is not None and a.rank == b.rank == 0 and dims.compare("!=", b.content[0], 0):
        return g.scalar(dims.floordiv(a.content[0], b.content[0]))
    if a.dtype == DataType.UINT8 or (a.content is not None and all(dims.bounds(s)[0] >= 0 for s in (*a.content, *(b.content or (-1,))))):
        return g.op("Div", a, b)
    return g.op("Div", g.op("Sub", a, g.op("Mod", a, b)), b)


def is_power_of_two(x: Any) -> bool:
    """Whether dividing by the number `x` is exact."""
    return isinstance(x, (int, float)) and math.isfinite(x) and abs(math.frexp(x)[0]) == 0.5


@aten
def remainder(g: Builder, self: Operand, other: Operand) -> Value:
    """remainder(Tensor self, Tensor other) -> Tensor; with the sign of the divisor.

    Integers: ONNX Mod. Floats: Mod with the sign of the dividend, and one divisor more where the signs differ; from opset 10.
    """
    a, b = promoted(g, self, other)
    if not is_float(a.dtype):
        return g.op("Mod", a, b)
    rest, zero = g.op("Mod", a, b, fmod=1), tensor(g, 0.0, a.dtype)
    if isinstance(other, (int, float)):
        differs = g.op("Less" if other > 0 else "Greater", rest, zero)
    else:
        differs = g.op("Less", g.op("Mul", rest, g.op("Sign", b)), zero)
    return g.op("Where", differs, g.op("Add", rest, b), rest)


@aten
def fmod(g: Builder, self: Operand, other: Operand) -> Value:
    """fmod(Tensor self, Tensor other) -> Tensor; with the sign of the dividend. ONNX Mod; floats from opset 10."""
    return g.op("Mod", *promoted(g, self, other), fmod=1)


@aten
def frac(g: Builder, self: Value) -> Value:
    """frac(Tensor self) -> Tensor; what is behind the point, with its sign. ONNX Mod."""
    if g.opset < 10:
        return g.op("Sub", self, _toward_zero(g, self))
    return g.op("Mod", self, tensor(g, 1.0, self.dtype), fmod=1)


@aten
def gcd(g: Builder, self: Value, other: Value) -> Value:
    """gcd(Tensor self, Tensor other) -> Tensor; the greatest common divisor of integers. ONNX Loop over Mod."""
    a, b = promoted(g, self, other)
    return cast(g, _common_divisor(g, cast(g, a, DataType.INT64), cast(g, b, DataType.INT64)), a.dtype)  # type: ignore[arg-type]


@aten
def lcm(g: Builder, self: Value, other: Value) -> Value:
    """lcm(Tensor self, Tensor other) -> Tensor; the least common multiple of integers. ONNX as gcd, and Div, Mul, Abs."""
    operands = promoted(g, self, other)
    a, b = (cast(g, v, DataType.INT64) for v in operands)
    divisor = g.op("Max", _common_divisor(g, a, b), g.const(1))
    return cast(g, g.op("Abs", g.op("Mul", g.op("Div", a, divisor), b)), operands[0].dtype)  # type: ignore[arg-type]


def _common_divisor(g: Builder, a: Value, b: Value) -> Value:
    """By Euclid, until nothing is left anywhere."""
    nothing, one = g.const(0), g.const(1)
    a, b = g.op("Abs", g.op("Add", a, g.op("Mul", b, nothing))), g.op("Abs", g.op("Add", b, g.op("Mul", a, nothing)))
    with g.subgraph() as body:
        g.input(None, DataType.INT64, ())
        g.input(None, BOOL, ())
        x, y = g.input(None, a.dtype, a.shape), g.input(None, b.dtype, b.shape)  # type: ignore[arg-type]
        done = g.op("Equal", y, nothing)
        rest = g.op("Where", done, nothing, g.op("Mod", x, g.op("Max", y, one)))
        more = g.op("ReduceSum", g.op("Cast", g.op("Greater", rest, nothing), to=DataType.INT64), keepdims=0)
        body.outputs = [g.op("Greater", more, nothing), g.op("Where", done, x, y), rest]
    return g.op("Loop", None, g.const(True), a, b, outputs=2, body=body)[0]


# ---------------------------------------------------------------------- powers


@aten
def pow(g: Builder, self: Operand, exponent: Operand) -> Value:
    """pow(Tensor self, Tensor exponent) -> Tensor; either may be a Scalar. ONNX Pow, Sqrt, Reciprocal; of integers Mul, which is exact."""
    dtype = result_type(self, exponent)
    if dtype == BOOL:
        raise errors.UnsupportedError("pow of two bools")
    base = tensor(g, self, dtype)
    if isinstance(exponent, (int, float)):
        if exponent == 1:
            return g.op("Identity", base)
        if is_integer(dtype):
            return _whole_power(g, base, int(exponent))
        if exponent == 0.5:
            return g.op("Sqrt", base)
        if exponent == -1:
            return g.op("Reciprocal", base)
    if is_integer(dtype):
        return _whole_powers(g, self, base, tensor(g, exponent, dtype))
    return g.op("Pow", base, tensor(g, exponent, dtype))


def _whole_power(g: Builder, base: Value, exponent: int) -> Value:
    """By repeated squaring: ONNX Runtime's Pow of integers goes through float64."""
    if exponent < 0:
        raise errors.UnsupportedError("an integer to a negative power")
    result = None
    while exponent:
        if exponent & 1:
            result = base if result is None else g.op("Mul", result, base)
        exponent >>= 1
        if exponent:
            base = g.op("Mul", base, base)
    return g.op("Add", g.op("Mul", base, tensor(g, 0, base.dtype)), tensor(g, 1, base.dtype)) if result is None else result


def _whole_powers(g: Builder, number: Operand, base: Value, exponent: Value) -> Value:
    """Integers to the powers of a tensor, exact: ONNX Gather from the powers of a number; of a tensor seven steps of squaring.

    Negative powers are 0 but for those of 1 and -1. From the 64th on, only whether it is odd or even is looked at: 0, 1, -1 and
    even numbers are right there too, and the others have overflowed more than once.
    """
    if isinstance(number, int) and abs(number) > 1:
        return looked_up(g, [wrapped(number**n, base.dtype) for n in range(64)] + [0], exponent)
    size, two = g.op("Abs", exponent), tensor(g, 2, base.dtype)
    rest = g.op("Min", size, g.op("Add", g.op("Mod", size, two), tensor(g, 64, base.dtype)))
    result, square = tensor(g, 1, base.dtype), base
    for step in range(7):
        odd = g.op("Cast", g.op("Mod", rest, two), to=BOOL)
        result = g.op("Where", odd, g.op("Mul", result, square), result)
        if step < 6:
            rest, square = g.op("Div", rest, two), g.op("Mul", square, square)
    zero, one = tensor(g, 0, base.dtype), tensor(g, 1, base.dtype)
    vanishes = g.op("And", g.op("Less", exponent, zero), g.op("Not", g.op("Equal", g.op("Abs", base), one)))
    return g.op("Where", vanishes, zero, result)


@aten
def float_power(g: Builder, self: Operand, exponent: Operand) -> Value:
    """float_power(Tensor self, Tensor exponent) -> Tensor; in float64. ONNX Pow."""
    return pow(g, *[tensor(g, x, DataType.DOUBLE) if isinstance(x, (Value, Dim)) else float(x) for x in (self, exponent)])


@aten
def square(g: Builder, self: Value) -> Value:
    """square(Tensor self) -> Tensor. ONNX Pow; of integers Mul."""
    return pow(g, self, 2)


@aten("frexp", "frexp.Tensor")
def frexp(g: Builder, self: Value) -> tuple[Value, Value]:
    """frexp(Tensor self) -> (Tensor mantissa, Tensor exponent): self = mantissa * 2 ** exponent, with the mantissa from 0.5 to below 1.

    exponent: int32; of 0 and of what is not finite 0. ONNX Log, Floor, Pow, in float64.
    """
    x, two, half = cast(g, self, DataType.DOUBLE), g.const(2.0, DataType.DOUBLE), g.const(0.5, DataType.DOUBLE)
    size = g.op("Abs", x)
    plain = g.op("And", g.op("Less", g.const(0.0, DataType.DOUBLE), size), g.op("Less", size, g.const(float("inf"), DataType.DOUBLE)))
    logarithm = g.op("Div", g.op("Log", g.op("Where", plain, size, two)), g.op("Log", two))
    exponent = g.op("Add", g.op("Floor", logarithm), g.const(1.0, DataType.DOUBLE))
    first = g.op("Floor", g.op("Mul", exponent, half))  # in two steps: the power itself may be beyond the greatest number
    mantissa = g.op("Div", g.op("Div", x, g.op("Pow", two, first)), g.op("Pow", two, g.op("Sub", exponent, first)))
    # The logarithm is rounded, so that next to a power of two it may be one beyond.
    above = g.op("GreaterOrEqual", g.op("Abs", mantissa), g.const(1.0, DataType.DOUBLE))
    below = g.op("Less", g.op("Abs", mantissa), half)
    step = g.op("Sub", cast(g, above, DataType.DOUBLE), cast(g, below, DataType.DOUBLE))
    mantissa = g.op("Where", above, g.op("Mul", mantissa, half), g.op("Where", below, g.op("Mul", mantissa, two), mantissa))
    whole = g.op("Where", plain, g.op("Add", exponent, step), g.const(0.0, DataType.DOUBLE))
    return cast(g, g.op("Where", plain, mantissa, x), self.dtype or DataType.FLOAT), cast(g, whole, DataType.INT32)


@aten
def ldexp(g: Builder, self: Value, other: Value) -> Value:
    """ldexp(Tensor self, Tensor other) -> Tensor; self * 2 ** other. ONNX Pow, Mul."""
    a, b = promoted(g, self, other, floating=True)
    return g.op("Mul", a, g.op("Pow", tensor(g, 2.0, a.dtype), b))


@aten
def reciprocal(g: Builder, self: Value) -> Value:
    """reciprocal(Tensor self) -> Tensor. ONNX Reciprocal."""
    return g.op("Reciprocal", *promoted(g, self, floating=True))


# ---------------------------------------------------------------------- sign and size


@aten("neg", "negative", "_neg_view")
def neg(g: Builder, self: Value) -> Value:
    """neg(Tensor self) -> Tensor. ONNX Neg."""
    return g.op("Neg", self)


@aten
def positive(g: Builder, self: Value) -> Value:
    """positive(Tensor self) -> Tensor; itself."""
    return self


@aten("abs", "absolute")
def abs_(g: Builder, self: Value) -> Value:
    """abs(Tensor self) -> Tensor. ONNX Abs."""
    return g.op("Abs", self)


@aten("sign", "sgn")
def sign(g: Builder, self: Value) -> Value:
    """sign(Tensor self) -> Tensor; sgn is the same for real numbers. ONNX Sign."""
    return self if self.dtype == BOOL else g.op("Sign", self)


@aten
def signbit(g: Builder, self: Value) -> Value:
    """signbit(Tensor self) -> Tensor; also of -0. ONNX Less."""
    return negative_sign(g, self)


def negative_sign(g: Builder, x: Value) -> Value:
    """Where the sign is minus, that of -0 too: x + 1/x is -infinity there, and has the sign of x elsewhere."""
    if x.dtype == BOOL or x.dtype == DataType.UINT8:
        return g.op("And", g.op("Cast", x, to=BOOL), tensor(g, False, BOOL))
    if is_float(x.dtype):
        x = g.op("Add", x, g.op("Reciprocal", x))
    return g.op("Less", x, tensor(g, 0, x.dtype))


@aten
def copysign(g: Builder, self: Value, other: Operand) -> Value:
    """copysign(Tensor self, Tensor other) -> Tensor; a float. ONNX Abs, Where, Mul."""
    a, b = promoted(g, self, other, floating=True)
    ones = g.op("Where", negative_sign(g, b), tensor(g, -1.0, a.dtype), tensor(g, 1.0, a.dtype))
    return g.op("Mul", g.op("Abs", a), ones)


@aten
def heaviside(g: Builder, self: Value, values: Value) -> Value:
    """heaviside(Tensor self, Tensor values) -> Tensor; 0 below zero, 1 above, `values` at zero. ONNX Where."""
    a, b = promoted(g, self, values)
    zero = tensor(g, 0, a.dtype)
    return g.op("Where", g.op("Equal", a, zero), b, g.op("Cast", g.op("Greater", a, zero), to=a.dtype))


# ---------------------------------------------------------------------- extremes


@aten
def maximum(g: Builder, self: Value, other: Value) -> Value:
    """maximum(Tensor self, Tensor other) -> Tensor. ONNX Max; of bools Or."""
    a, b = promoted(g, self, other)
    return g.op("Or" if a.dtype == BOOL else "Max", a, b)


@aten
def minimum(g: Builder, self: Value, other: Value) -> Value:
    """minimum(Tensor self, Tensor other) -> Tensor. ONNX Min; of bools And."""
    a, b = promoted(g, self, other)
    return g.op("And" if a.dtype == BOOL else "Min", a, b)


@aten
def fmax(g: Builder, self: Value, other: Value) -> Value:
    """fmax(Tensor self, Tensor other) -> Tensor; the other one where one is not a number. ONNX Max, IsNaN, Where."""
    return maximum(g, *_numbers_first(g, *promoted(g, self, other)))


@aten
def fmin(g: Builder, self: Value, other: Value) -> Value:
    """fmin(Tensor self, Tensor other) -> Tensor; the other one where one is not a number. ONNX Min, IsNaN, Where."""
    return minimum(g, *_numbers_first(g, *promoted(g, self, other)))


def _numbers_first(g: Builder, a: Value, b: Value) -> tuple[Value, Value]:
    if not is_float(a.dtype):
        return a, b
    return g.op("Where", g.op("IsNaN", a), b, a), g.op("Where", g.op("IsNaN", b), a, b)


@aten("clamp", "clip")
def clamp(g: Builder, self: Value, min: Operand | None = None, max: Operand | None = None) -> Value:
    """clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor; the bounds may be tensors. ONNX Clip, Max, Min."""
    given = [x for x in (min, max) if x is not None]
    dtype = result_type(self, *given)
    x, (low, high) = tensor(g, self, dtype), (None if v is None else tensor(g, v, dtype) for v in (min, max))
    known = all(isinstance(v, (int, float)) for v in given)
    if known and (g.opset >= 11 or len(given) < 2 or min <= max):  # type: ignore[operator]
        return g.op("Clip", x, low, high)
    if low is not None:
        x = g.op("Max", x, low)
    return x if high is None else g.op("Min", x, high)


@aten
def clamp_min(g: Builder, self: Value, min: Operand) -> Value:
    """clamp_min(Tensor self, Scalar min) -> Tensor. ONNX Clip, Max."""
    return clamp(g, self, min=min)


@aten
def clamp_max(g: Builder, self: Value, max: Operand) -> Value:
    """clamp_max(Tensor self, Scalar max) -> Tensor. ONNX Clip, Min."""
    return clamp(g, self, max=max)


# ---------------------------------------------------------------------- rounding


@aten
def floor(g: Builder, self: Value) -> Value:
    """floor(Tensor self) -> Tensor; integers stay. ONNX Floor."""
    return g.op("Floor", self) if is_float(self.dtype) else self


@aten
def ceil(g: Builder, self: Value) -> Value:
    """ceil(Tensor self) -> Tensor; integers stay. ONNX Ceil."""
    return g.op("Ceil", self) if is_float(self.dtype) else self


@aten("trunc", "fix")
def trunc(g: Builder, self: Value) -> Value:
    """trunc(Tensor self) -> Tensor; integers stay. ONNX Abs, Floor, Sign, Mul."""
    return _toward_zero(g, self) if is_float(self.dtype) else self


def _toward_zero(g: Builder, x: Value) -> Value:
    return g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Abs", x)))


@aten
def round(g: Builder, self: Value, decimals: int = 0) -> Value:
    """round(Tensor self, *, int decimals=0) -> Tensor; halves to the even neighbour; integers stay. ONNX Round."""
    if not is_float(self.dtype):
        return self
    if decimals == 0:
        return g.op("Round", self)
    power = tensor(g, 10.0 ** (decimals if decimals > 0 else -decimals), self.dtype)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return g.op(back, g.op("Round", g.op(there, self, power)), power)
