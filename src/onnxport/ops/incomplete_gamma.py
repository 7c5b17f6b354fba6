"""The incomplete gamma functions: by their series up to about a, by their continued fraction beyond, in float64, until nothing changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from onnxport.ops.loops import repeated
from onnxport.ops.registry import aten
from onnxport.ops.special import lgamma
from onnxport.ops.support import cast, promoted
from onnxport.target.builder import Builder
from onnxport.target.value import DataType, Value

DOUBLE = DataType.DOUBLE
_TURNS = 1 << 20  # some 6 * sqrt(a) are needed
_STILL = 1e-15  # a factor may go on changing by the last bit
_TINY = 1e-300


@aten("igamma", "special_gammainc")
def igamma(g: Builder, self: Value, other: Value) -> Value:
    """igamma(Tensor self, Tensor other) -> Tensor: the regularised lower incomplete gamma function P(self, other)."""
    return _regularised(g, self, other, upper=False)


@aten("igammac", "special_gammaincc")
def igammac(g: Builder, self: Value, other: Value) -> Value:
    """igammac(Tensor self, Tensor other) -> Tensor: the regularised upper incomplete gamma function, 1 - P."""
    return _regularised(g, self, other, upper=True)


def _regularised(g: Builder, self: Value, other: Value, *, upper: bool) -> Value:
    operands = promoted(g, self, other, floating=True)
    a, x = (cast(g, v, DOUBLE) for v in operands)
    nothing, one, inf = (g.const(n, DOUBLE) for n in (0.0, 1.0, math.inf))
    a, x = g.op("Add", a, g.op("Mul", x, nothing)), g.op("Add", x, g.op("Mul", a, nothing))  # of one shape, NaN where either is not finite
    inside = g.op("And", g.op("Less", nothing, a), g.op("Less", nothing, x))
    safe_a, safe_x = g.op("Where", inside, a, one), g.op("Where", inside, x, one)
    by_series = g.op("Less", safe_x, g.op("Add", safe_a, one))
    weight = g.op("Exp", g.op("Sub", g.op("Sub", g.op("Mul", safe_a, g.op("Log", safe_x)), safe_x), lgamma(g, safe_a)))
    # Each is asked where it converges at once, too, where the other one is wanted.
    lower = g.op("Mul", weight, _series(g, safe_a, g.op("Where", by_series, safe_x, nothing)))
    beyond = g.op("Add", g.op("Add", safe_a, safe_a), g.const(10.0, DOUBLE))
    higher = g.op("Mul", weight, _fraction(g, safe_a, g.op("Where", by_series, beyond, safe_x)))
    found = g.op("Where", by_series, g.op("Sub", one, lower) if upper else lower, higher if upper else g.op("Sub", one, higher))
    return cast(g, g.op("Where", inside, found, _at_edges(g, operands, inf, upper)), operands[0].dtype or DataType.FLOAT)


def _at_edges(g: Builder, operands: Sequence[Value], inf: Value, upper: bool) -> Value:
    """Where either is 0, infinite or negative."""
    a, x = (cast(g, v, DOUBLE) for v in operands)
    nothing = g.const(0.0, DOUBLE)
    none, whole = (g.const(float(n != upper), DOUBLE) for n in (0, 1))
    a_is, x_is = (lambda n: g.op("Equal", a, n)), (lambda n: g.op("Equal", x, n))
    legal = g.op("And", g.op("GreaterOrEqual", a, nothing), g.op("GreaterOrEqual", x, nothing))
    undecided = g.op("Or", g.op("And", a_is(nothing), x_is(nothing)), g.op("And", a_is(inf), x_is(inf)))
    complete = g.op("Or", a_is(nothing), x_is(inf))
    result = g.op("Where", complete, whole, none)
    return g.op("Where", g.op("And", legal, g.op("Not", undecided)), result, g.const(math.nan, DOUBLE))


def _until_still(g: Builder, states: list[Value], step: Callable[[Value, list[Value]], list[Value]]) -> Value:
    """The first state, which every turn changes by a factor or a sum; the last one says by how much."""

    def more(turn: Value, after: list[Value]) -> Value:
        changes = g.op("Less", g.const(_STILL, DOUBLE), after[-1])
        return cast(g, g.op("ReduceMax", g.op("Concat", g.op("Reshape", cast(g, changes, DataType.INT32), g.const([-1])),
                                              g.const([0], DataType.INT32), axis=0), keepdims=0), DataType.BOOL)

    return repeated(g, _TURNS, states, step, more)[0]


def _series(g: Builder, a: Value, x: Value) -> Value:
    """1 / a + x / (a (a + 1)) + x^2 / (a (a + 1) (a + 2)) + ..."""
    first = g.op("Reciprocal", a)

    def step(turn: Value, states: list[Value]) -> list[Value]:
        number = g.op("Add", cast(g, turn, DOUBLE), g.const(1.0, DOUBLE))
        term = g.op("Mul", states[1], g.op("Div", x, g.op("Add", a, number)))
        total = g.op("Add", states[0], term)
        return [total, term, g.op("Div", term, total)]

    return _until_still(g, [first, first, first], step)


def _fraction(g: Builder, a: Value, x: Value) -> Value:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), by Lentz."""
    one, tiny = g.const(1.0, DOUBLE), g.const(_TINY, DOUBLE)
    bottom = g.op("Add", g.op("Sub", x, a), one)
    start = g.op("Reciprocal", bottom)

    def step(turn: Value, states: list[Value]) -> list[Value]:
        found, c, d, bottom, _ = states
        number = g.op("Add", cast(g, turn, DOUBLE), one)
        top = g.op("Mul", number, g.op("Sub", a, number))
        bottom = g.op("Add", bottom, g.const(2.0, DOUBLE))
        d = g.op("Reciprocal", _apart(g, g.op("Add", g.op("Mul", top, d), bottom), tiny))
        c = _apart(g, g.op("Add", bottom, g.op("Div", top, c)), tiny)
        factor = g.op("Mul", c, d)
        return [g.op("Mul", found, factor), c, d, bottom, g.op("Abs", g.op("Sub", factor, one))]

    return _until_still(g, [start, g.op("Expand", g.const(1 / _TINY, DOUBLE), g.shape(x)), start, bottom, start], step)


def _apart(g: Builder, x: Value, tiny: Value) -> Value:
    """Something that is not 0."""
    return g.op("Where", g.op("Less", g.op("Abs", x), tiny), tiny, x)
