"""The classical orthogonal polynomials, by their recurrences in the order, rounded as PyTorch rounds them; Chebyshev's of a high
order by the angle where there is one.

The order is a tensor, too: where it is one known number the steps are written out, else a Scan runs up to the greatest order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from onnxport.ops import windows
from onnxport.ops.layout import broadcast
from onnxport.ops.loops import scan
from onnxport.ops.registry import aten
from onnxport.ops.special import number
from onnxport.ops.support import Number, cast, promoted
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.value import DataType, Value

Operand = Value | Number
# (k, the one of order k - 2, the one of order k - 1) -> the one of order k
Step = Callable[[Value, Value, Value], Value]
_WRITTEN_OUT = 32  # steps
_BY_ANGLE = 6  # from higher orders on

_LIMITS = {DataType.FLOAT: 128, DataType.DOUBLE: 512}  # of Hermite's order: PyTorch has no number beyond


def _operands(g: Builder, x: Operand, n: Operand) -> tuple[Value, Value]:
    """`x`, and the order as a whole number of its dtype."""
    point, order = promoted(g, x, n, floating=True)
    return point, cast(g, cast(g, order, DataType.INT64), order.dtype or DataType.FLOAT)


def _of_order(g: Builder, x: Value, n: Value, first: Value, step: Step) -> Value:
    """The n-th of 1, first, ...; 0 where n is negative."""
    if n.const is not None and n.rank == 0 and n.const.tensor.item() <= _WRITTEN_OUT:
        return _written_out(g, x, int(n.const.tensor.item()), first, step)
    first, n = broadcast(g, [first, n])
    zero, one = number(g, 0, x), number(g, 1, x)
    flat = sizes.reshape(g, cast(g, n, DataType.INT64), [-1])
    # ONNX Runtime refuses a Scan over nothing: one turn is always made.
    highest = g.op("ReduceMax", g.op("Concat", flat, g.const([2]), axis=0), keepdims=0)
    orders = g.op("Add", windows.arange(g, g.size_of(highest) - 1), g.const(2))

    def turn(states: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        wanted = g.op("Not", g.op("Less", n, elements[0]))
        after = [states[1], step(elements[0], *states)]
        return [g.op("Where", wanted, new, old) for new, old in zip(after, states, strict=True)], []

    ones = sizes.expand(g, one, first.shape or ())
    last = scan(g, "a polynomial of unknown order", [ones, first], [cast(g, orders, x.dtype)], turn)[0][1]  # type: ignore[arg-type]
    last = g.op("Where", g.op("Equal", n, zero), one, last)
    return g.op("Where", g.op("Less", n, zero), zero, last)


def _written_out(g: Builder, x: Value, order: int, first: Value, step: Step) -> Value:
    if order < 1:
        return sizes.expand(g, number(g, int(order == 0), x), x.shape or ())
    before, last = number(g, 1, x), first
    for k in range(2, order + 1):
        before, last = last, step(number(g, k, x), before, last)
    return last


# ---------------------------------------------------------------------- Chebyshev's


def _chebyshev(g: Builder, x: Operand, n: Operand, kind: str, *, shifted: bool) -> Value:
    """The polynomial of the first (T) to fourth (W) kind, at 2 x - 1 where it is shifted."""
    point, order = _operands(g, x, n)
    if shifted:
        point = g.op("Sub", g.op("Add", point, point), number(g, 1, point))
    twice, one = g.op("Add", point, point), number(g, 1, point)
    first = {"T": point, "U": twice, "V": g.op("Sub", twice, one), "W": g.op("Add", twice, one)}[kind]
    value = _of_order(g, point, order, first, lambda _, before, last: g.op("Sub", g.op("Mul", twice, last), before))
    if order.const is not None and bool((order.const.tensor <= _BY_ANGLE).all()):
        return value
    high = g.op("And", g.op("Less", number(g, _BY_ANGLE, point), order), g.op("Less", g.op("Abs", point), one))
    return g.op("Where", high, _by_angle(g, point, order, kind), value)


def _by_angle(g: Builder, x: Value, n: Value, kind: str) -> Value:
    angle = g.op("Acos", x)
    if kind == "T":
        return g.op("Cos", g.op("Mul", n, angle))
    half = number(g, 0.5, x)
    shift, base = (number(g, 1, x), angle) if kind == "U" else (half, g.op("Mul", angle, half))
    wave = "Cos" if kind == "V" else "Sin"
    return g.op("Div", g.op(wave, g.op("Mul", g.op("Add", n, shift), angle)), g.op(wave, base))


@aten
def special_chebyshev_polynomial_t(g: Builder, x: Operand, n: Operand) -> Value:
    """special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor; either may be a Scalar. ONNX Mul, Sub; Acos, Cos."""
    return _chebyshev(g, x, n, "T", shifted=False)


@aten
def special_chebyshev_polynomial_u(g: Builder, x: Operand, n: Operand) -> Value:
    """special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor; either may be a Scalar. ONNX Mul, Sub; Acos, Sin, Div."""
    return _chebyshev(g, x, n, "U", shifted=False)


@aten
def special_chebyshev_polynomial_v(g: Builder, x: Operand, n: Operand) -> Value:
    """special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor; either may be a Scalar. ONNX Mul, Sub; Acos, Cos, Div."""
    return _chebyshev(g, x, n, "V", shifted=False)


@aten
def special_chebyshev_polynomial_w(g: Builder, x: Operand, n: Operand) -> Value:
    """special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor; either may be a Scalar. ONNX Mul, Sub; Acos, Sin, Div."""
    return _chebyshev(g, x, n, "W", shifted=False)


@aten
def special_shifted_chebyshev_polynomial_t(g: Builder, x: Operand, n: Operand) -> Value:
    """special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor: of 2 x - 1. ONNX as chebyshev_polynomial_t."""
    return _chebyshev(g, x, n, "T", shifted=True)


@aten
def special_shifted_chebyshev_polynomial_u(g: Builder, x: Operand, n: Operand) -> Value:
    """special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor: of 2 x - 1. ONNX as chebyshev_polynomial_u."""
    return _chebyshev(g, x, n, "U", shifted=True)


@aten
def special_shifted_chebyshev_polynomial_v(g: Builder, x: Operand, n: Operand) -> Value:
    """special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor: of 2 x - 1. ONNX as chebyshev_polynomial_v."""
    return _chebyshev(g, x, n, "V", shifted=True)


@aten
def special_shifted_chebyshev_polynomial_w(g: Builder, x: Operand, n: Operand) -> Value:
    """special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor: of 2 x - 1. ONNX as chebyshev_polynomial_w."""
    return _chebyshev(g, x, n, "W", shifted=True)


# ---------------------------------------------------------------------- Hermite's, Laguerre's, Legendre's


def _limited(g: Builder, x: Value, n: Value, value: Value) -> Value:
    limit = _LIMITS[x.dtype]  # type: ignore[index]
    if n.const is not None and bool((n.const.tensor <= limit).all()):
        return value
    return g.op("Where", g.op("Less", number(g, limit, x), n), number(g, math.nan, x), value)


@aten
def special_hermite_polynomial_h(g: Builder, x: Operand, n: Operand) -> Value:
    """special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor; either may be a Scalar. ONNX Mul, Sub."""
    point, order = _operands(g, x, n)
    twice, one = g.op("Add", point, point), number(g, 1, point)

    def step(k: Value, before: Value, last: Value) -> Value:
        less = g.op("Sub", k, one)
        return g.op("Sub", g.op("Mul", twice, last), g.op("Mul", g.op("Add", less, less), before))

    return _limited(g, point, order, _of_order(g, point, order, twice, step))


@aten
def special_hermite_polynomial_he(g: Builder, x: Operand, n: Operand) -> Value:
    """special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor; either may be a Scalar. ONNX Mul, Sub."""
    point, order = _operands(g, x, n)
    one = number(g, 1, point)

    def step(k: Value, before: Value, last: Value) -> Value:
        return g.op("Sub", g.op("Mul", point, last), g.op("Mul", g.op("Sub", k, one), before))

    return _limited(g, point, order, _of_order(g, point, order, point, step))


@aten
def special_laguerre_polynomial_l(g: Builder, x: Operand, n: Operand) -> Value:
    """special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor; either may be a Scalar. ONNX Mul, Sub, Div."""
    point, order = _operands(g, x, n)
    one = number(g, 1, point)
    first = g.op("Sub", one, point)

    def step(k: Value, before: Value, last: Value) -> Value:
        less = g.op("Sub", k, one)
        grown = g.op("Mul", g.op("Add", g.op("Add", less, less), first), last)
        return g.op("Div", g.op("Sub", grown, g.op("Mul", less, before)), k)

    return _of_order(g, point, order, first, step)


@aten
def special_legendre_polynomial_p(g: Builder, x: Operand, n: Operand) -> Value:
    """special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor; either may be a Scalar. ONNX Mul, Sub, Div."""
    point, order = _operands(g, x, n)
    one = number(g, 1, point)

    def step(k: Value, before: Value, last: Value) -> Value:
        less = g.op("Sub", k, one)
        grown = g.op("Mul", g.op("Mul", g.op("Add", k, less), point), last)
        return g.op("Div", g.op("Sub", grown, g.op("Mul", less, before)), k)

    return _of_order(g, point, order, point, step)
