"""Functions that ONNX Runtime has no float64 kernel for, that an old opset lacks, or that it does not compute as they stand, from others.

Each is as exact as the functions that it is made of: nothing here is a float32 result in float64 clothes.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from onnxport.target import kernels, schemas
from onnxport.target.schemas import NEWEST
from onnxport.target.spelling import Form, Made, Rule, Rules, numbers, refusal
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_EVERY = NEWEST + 1
_SIGNED = frozenset({DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64})


def _if_lacking(rule: Rule) -> Rule:
    """`rule` where the opset does not have the operator, or ONNX Runtime does not run it for the dtype of the input."""

    def guarded(g: Builder, form: Form) -> Made:
        known = schemas.has(form.op_type, g.opset)
        return form if known and not kernels.lacking(form.op_type, g.opset, form.x.dtype) else rule(g, form)

    return guarded


def _number(g: Builder, value: float, like: Value) -> Value:
    return g.const(float(value), like.dtype)


def _hyperbolic(op_type: str) -> Rule:
    """Half the sum or difference of exp(x) and exp(-x)."""

    def rule(g: Builder, form: Form) -> Made:
        x = form.x
        both = g.op(op_type, g.op("Exp", x), g.op("Exp", g.op("Neg", x)))
        return (g.op("Mul", both, _number(g, 0.5, x)),)

    return rule


def _asinh(g: Builder, form: Form) -> Made:
    """sign(x) log(|x| + sqrt(x^2 + 1))."""
    x, size = form.x, g.op("Abs", form.x)
    root = g.op("Sqrt", g.op("Add", g.op("Mul", x, x), _number(g, 1, x)))
    return (g.op("Mul", g.op("Sign", x), g.op("Log", g.op("Add", size, root))),)


def _acosh(g: Builder, form: Form) -> Made:
    """log(x + sqrt(x - 1) sqrt(x + 1))."""
    x, one = form.x, _number(g, 1, form.x)
    root = g.op("Mul", g.op("Sqrt", g.op("Sub", x, one)), g.op("Sqrt", g.op("Add", x, one)))
    return (g.op("Log", g.op("Add", x, root)),)


def _atanh(g: Builder, form: Form) -> Made:
    """Half the logarithm of (1 + x) / (1 - x)."""
    x, one = form.x, _number(g, 1, form.x)
    return (g.op("Mul", g.op("Log", g.op("Div", g.op("Add", one, x), g.op("Sub", one, x))), _number(g, 0.5, x)),)


def _atan(g: Builder, form: Form) -> Made:
    """The angle y of float32, and what it is short of: tan(atan(x) - y) = (x cos y - sin y) / (cos y + x sin y), which is its own arc."""
    if form.x.dtype != DataType.DOUBLE:
        return form
    if g.opset < 8:
        raise refusal(g, "Atan of float64", 8)
    x = g.op("Clip", form.x, _number(g, -1e18, form.x), _number(g, 1e18, form.x))  # infinity times 0 is no number
    y = g.op("Cast", g.op("Atan", g.op("Cast", x, to=DataType.FLOAT)), to=DataType.DOUBLE)
    sine, cosine = g.op("Sin", y), g.op("Cos", y)
    short = g.op("Div", g.op("Sub", g.op("Mul", x, cosine), sine), g.op("Add", cosine, g.op("Mul", x, sine)))
    return (g.op("Add", y, short),)


def _asin(g: Builder, form: Form) -> Made:
    """atan(x / sqrt((1 - x) (1 + x)))."""
    if form.x.dtype != DataType.DOUBLE:
        return form
    return (_arc(g, form.x),)


def _arc(g: Builder, x: Value) -> Value:
    one = _number(g, 1, x)
    adjacent = g.op("Sqrt", g.op("Mul", g.op("Sub", one, x), g.op("Add", one, x)))
    arc: Value = g.op("Atan", g.op("Div", x, adjacent))
    return arc


def _acos(g: Builder, form: Form) -> Made:
    if form.x.dtype != DataType.DOUBLE:
        return form
    return (g.op("Sub", _number(g, math.pi / 2, form.x), _arc(g, form.x)),)


@functools.cache
def _gauss_legendre(count: int) -> tuple[list[float], list[float]]:
    """Nodes and weights of the quadrature over 0 ... 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


def _erf(g: Builder, form: Form) -> Made:
    """2 x / sqrt(pi) times the integral of exp(-x^2 t^2) over 0 ... 1, by quadrature: exact to float64 where erf is not yet 1."""
    if g.opset < 9 or form.x.dtype != DataType.DOUBLE:
        raise refusal(g, "Erf", 9)
    nodes, weights = _gauss_legendre(32)
    x = g.op("Clip", form.x, _number(g, -6, form.x), _number(g, 6, form.x))
    exponents = g.op("Mul", g.op("Unsqueeze", g.op("Mul", x, x), g.const([-1])), g.const([-t * t for t in nodes], x.dtype))
    return (g.op("Mul", x, g.op("MatMul", g.op("Exp", exponents), g.const([2 / math.sqrt(math.pi) * w for w in weights], x.dtype))),)


def _div(g: Builder, form: Form) -> Made:
    """ONNX Runtime takes 1 / n * y for y / n, which for integers it is not; -(-1 / n), rounded towards zero as well, it leaves alone."""
    one = form.x.dtype in _SIGNED and form.x.shape is not None and all(size == 1 for size in form.x.shape) and numbers(form.x) == [1]
    if not one:
        return form
    return (g.op("Neg", g.op("Div", g.op("Neg", form.x), form.inputs[1])),)


RULES: Rules = {
    "Acos": ((_EVERY, _if_lacking(_acos)),),
    "Acosh": ((_EVERY, _if_lacking(_acosh)),),
    "Asin": ((_EVERY, _if_lacking(_asin)),),
    "Asinh": ((_EVERY, _if_lacking(_asinh)),),
    "Atan": ((_EVERY, _if_lacking(_atan)),),
    "Atanh": ((_EVERY, _if_lacking(_atanh)),),
    "Cosh": ((_EVERY, _if_lacking(_hyperbolic("Add"))),),
    "Div": ((_EVERY, _div),),
    "Erf": ((_EVERY, _if_lacking(_erf)),),
    "Sinh": ((_EVERY, _if_lacking(_hyperbolic("Sub"))),),
}
