"""Operators that did not exist at an older opset, or that ONNX Runtime does not run, in terms of others.

Only what is the same operation, element for element; where an operator would have to be approximated, or another
strategy is needed, it is refused and the choice is the caller's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from onnxport.target import dims, kernels, schemas
from onnxport.target.dtypes import FLOATS, INTEGERS, to_torch
from onnxport.target.form_rules_changed import unless_nan
from onnxport.target.schemas import NEWEST
from onnxport.target.spelling import Form, Made, Rule, Rules, numbers, refusal, sizes
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_EVERY = NEWEST + 1


def _number(g: Builder, value: float, like: Value) -> Value:
    return g.const(value, like.dtype)


def _if_lacking(rule: Rule) -> Rule:
    """`rule` where the opset does not have the operator, or ONNX Runtime does not run it for the dtype of the input."""

    def guarded(g: Builder, form: Form) -> Made:
        known = schemas.has(form.op_type, g.opset)
        return form if known and not kernels.lacking(form.op_type, g.opset, form.x.dtype) else rule(g, form)

    return guarded


# ---------------------------------------------------------------------- comparisons


def _not(opposite: str) -> Rule:
    """a <= b is not (a > b), and false where either is not a number."""

    def rule(g: Builder, form: Form) -> Made:
        return (unless_nan(g, g.op("Not", g.op(opposite, *form.inputs)), *form.inputs),)

    return rule


def _is_nan(g: Builder, form: Form) -> Made:
    return (g.op("Not", unless_nan(g, g.const(True), form.x)),)


def _is_inf(g: Builder, form: Form) -> Made:
    """Beyond the largest number on either side."""
    assert form.x.dtype is not None
    largest = torch.finfo(to_torch(form.x.dtype)).max
    up, down = g.op("Greater", form.x, _number(g, largest, form.x)), g.op("Less", form.x, _number(g, -largest, form.x))
    if not form.attrs.get("detect_positive", 1):
        return (down,)
    return (g.op("Or", up, down) if form.attrs.get("detect_negative", 1) else up,)


def _sign(g: Builder, form: Form) -> Made:
    x, zero = form.x, g.const(0, form.x.dtype)
    return (g.op("Sub", g.op("Cast", g.op("Greater", x, zero), to=x.dtype), g.op("Cast", g.op("Less", x, zero), to=x.dtype)),)


def _where(g: Builder, form: Form) -> Made:
    """Of bools by logic, of integers by arithmetic; of floats it cannot be said, for 0 * infinity is not 0."""
    condition, x, y = form.inputs
    assert x is not None
    if x.dtype == DataType.BOOL:
        return (g.op("Or", g.op("And", condition, x), g.op("And", g.op("Not", condition), y)),)
    if x.dtype not in INTEGERS:
        raise refusal(g, "Where", 9)
    return (g.op("Add", y, g.op("Mul", g.op("Cast", condition, to=x.dtype), g.op("Sub", x, y))),)


def _round(g: Builder, form: Form) -> Made:
    """To the nearest, halves to the even neighbour."""
    x, dtype = form.x, form.x.dtype
    floor, half = g.op("Floor", x), _number(g, 0.5, form.x)
    rest = g.op("Sub", x, floor)
    odd = g.op("Greater", g.op("Sub", floor, g.op("Mul", g.op("Floor", g.op("Mul", floor, half)), _number(g, 2.0, x))), half)
    tie = g.op("And", g.op("Not", g.op("Or", g.op("Less", rest, half), g.op("Greater", rest, half))), odd)
    return (g.op("Add", floor, g.op("Cast", g.op("Or", g.op("Greater", rest, half), tie), to=dtype)),)


# ---------------------------------------------------------------------- activations


def _half_swish(g: Builder, form: Form) -> Made:
    return (g.op("Mul", form.x, g.op("HardSigmoid", form.x, alpha=1 / 6, beta=0.5)),)


def _hard_sigmoid(g: Builder, form: Form) -> Made:
    x, alpha, beta = form.x, form.attrs.get("alpha", 0.2), form.attrs.get("beta", 0.5)
    line = g.op("Add", g.op("Mul", x, _number(g, alpha, x)), _number(g, beta, x))
    return (g.op("Clip", line, _number(g, 0.0, x), _number(g, 1.0, x)),)


def _mish(g: Builder, form: Form) -> Made:
    return (g.op("Mul", form.x, g.op("Tanh", g.op("Softplus", form.x))),)


def _swish(g: Builder, form: Form) -> Made:
    x, alpha = form.x, form.attrs.get("alpha", 1.0)
    return (g.op("Mul", x, g.op("Sigmoid", x if alpha == 1.0 else g.op("Mul", x, _number(g, alpha, x)))),)


def _swiglu(g: Builder, form: Form) -> Made:
    return (g.op("Mul", g.op("Swish", form.x, alpha=form.attrs.get("alpha", 1.0)), form.input(1)),)


def _gelu(g: Builder, form: Form) -> Made:
    """From 20 on too in float64: ONNX Runtime expands Gelu into an Erf that it does not run."""
    x = form.x
    if g.opset >= 20 and (x.dtype != DataType.DOUBLE or form.attrs.get("approximate") == "tanh"):
        return form
    if form.attrs.get("approximate", "none") == "tanh":
        cube = g.op("Pow", x, _number(g, 3.0, x))  # the form that ONNX Runtime fuses to FastGelu (0.4 of the time)
        inner = g.op("Add", x, g.op("Mul", cube, _number(g, 0.044715, x)))
        gate = g.op("Tanh", g.op("Mul", inner, _number(g, math.sqrt(2 / math.pi), x)))
    elif g.opset < 9:
        raise refusal(g, "Gelu", 9)
    else:
        gate = g.op("Erf", g.op("Div", x, _number(g, math.sqrt(2), x)))
    return (g.op("Mul", g.op("Mul", x, _number(g, 0.5, x)), g.op("Add", gate, _number(g, 1.0, x))),)


def _negative_part(g: Builder, x: Value) -> Value:
    part: Value = g.op("Neg", g.op("Relu", g.op("Neg", x)))
    return part


def _elu(g: Builder, form: Form) -> Made:
    x, alpha = form.x, form.attrs.get("alpha", 1.0)
    curve = g.op("Sub", g.op("Exp", _negative_part(g, x)), _number(g, 1.0, x))
    return (g.op("Add", g.op("Relu", x), curve if alpha == 1.0 else g.op("Mul", curve, _number(g, alpha, x))),)


def _selu(g: Builder, form: Form) -> Made:
    alpha = form.attrs.get("alpha", 1.6732632423543772)
    return (g.op("Mul", g.op("Elu", form.x, alpha=alpha), _number(g, form.attrs.get("gamma", 1.0507009873554805), form.x)),)


def _celu(g: Builder, form: Form) -> Made:
    """Celu-12 has float32 only. The definition of ONNX: alpha * Elu(x / alpha)."""
    if g.opset >= 12 and form.x.dtype == DataType.FLOAT:
        return form
    alpha = form.attrs.get("alpha", 1.0)
    if alpha == 1.0:
        return (g.op("Elu", form.x, alpha=1.0),)
    scale = _number(g, alpha, form.x)
    return (g.op("Mul", scale, g.op("Elu", g.op("Div", form.x, scale), alpha=1.0)),)


def _leaky_relu(g: Builder, form: Form) -> Made:
    x, alpha = form.x, form.attrs.get("alpha", 0.01)
    return (g.op("Add", g.op("Relu", x), g.op("Mul", _negative_part(g, x), _number(g, alpha, x))),)


def _p_relu(g: Builder, form: Form) -> Made:
    if form.x.dtype not in FLOATS:
        return form
    return (g.op("Add", g.op("Relu", form.x), g.op("Mul", _negative_part(g, form.x), form.input(1))),)


def _softplus(g: Builder, form: Form) -> Made:
    """log(1 + exp(x)), without overflow: the positive part, and the logarithm of 1 + exp(-|x|)."""
    x = form.x
    tail = g.op("Log", g.op("Add", g.op("Exp", g.op("Neg", g.op("Abs", x))), _number(g, 1.0, x)))
    return (g.op("Add", g.op("Relu", x), tail),)


def _softsign(g: Builder, form: Form) -> Made:
    return (g.op("Div", form.x, g.op("Add", g.op("Abs", form.x), _number(g, 1.0, form.x))),)


def _thresholded_relu(g: Builder, form: Form) -> Made:
    x, alpha = form.x, form.attrs.get("alpha", 1.0)
    above = g.op("Greater", x, _number(g, alpha, x))
    if g.opset >= 9:
        return (g.op("Where", above, x, _number(g, 0.0, x)),)
    if alpha < 0:
        raise refusal(g, "ThresholdedRelu with a negative threshold", 9)
    return (g.op("Mul", g.op("Relu", x), g.op("Cast", above, to=x.dtype)),)


def _tan(g: Builder, form: Form) -> Made:
    return (g.op("Div", g.op("Sin", form.x), g.op("Cos", form.x)),)


def _global_pool(reduction: str) -> Rule:
    def rule(g: Builder, form: Form) -> Made:
        if form.x.rank is None:
            return form
        return (g.op(reduction, form.x, g.const(list(range(2, form.x.rank)), DataType.INT64), keepdims=1),)

    return rule


# ---------------------------------------------------------------------- shapes


def _cast_like(g: Builder, form: Form) -> Made:
    target = form.input(1)
    if target is None or target.dtype is None:
        raise refusal(g, "CastLike to a dtype that is not known", 15)
    return (g.op("Cast", form.x, to=target.dtype, saturate=form.attrs.get("saturate"), round_mode=form.attrs.get("round_mode")),)


def _expand(g: Builder, form: Form) -> Made:
    """Tile, where it is known which dims are 1."""
    x, target = form.x, sizes(form.input(1))
    if x.shape is None or target is None:
        raise refusal(g, "Expand to a shape that the graph computes", 8)
    rank = max(len(target), len(x.shape))
    old, new = [1] * (rank - len(x.shape)) + list(x.shape), [1] * (rank - len(target)) + target
    repeats = []
    for now, wanted in zip(old, new, strict=True):
        if not (dims.equal(now, wanted) or dims.equal(now, 1) or dims.equal(wanted, 1)):
            raise refusal(g, f"Expand of a dim {now} to {wanted}", 8)
        repeats.append(wanted if dims.equal(now, 1) else 1)
    if rank > len(x.shape):
        x = g.op("Reshape", x, g.sizes(old))
    return (g.op("Tile", x, g.sizes(repeats)) if rank else g.op("Identity", x),)


def _constant_of_shape(g: Builder, form: Form) -> Made:
    """One element, as often as the shape says."""
    value = form.attrs.get("value")
    length = form.x.shape[0] if form.x.shape else None
    if not isinstance(length, int):
        raise refusal(g, "ConstantOfShape of unknown rank", 9)
    element = g.const(0.0 if value is None else value)
    if not length:
        return (g.op("Reshape", element, g.const([], DataType.INT64)),)
    return (g.op("Tile", g.op("Reshape", element, g.const([1] * length)), form.x),)


def _constant_of_bfloat16(g: Builder, form: Form) -> Made:
    """ConstantOfShape-9 makes no bfloat16."""
    value = form.attrs.get("value")
    if value is None or value.dtype != torch.bfloat16:
        return form
    return (g.op("Cast", g.op("ConstantOfShape", form.x, value=value.float()), to=DataType.BFLOAT16),)


def _trilu(g: Builder, form: Form) -> Made:
    """The triangle as a mask: constant where both dims are numbers, of two ranges where they are not."""
    x, diagonal = form.x, numbers(form.input(1)) if form.input(1) is not None else [0]
    if x.shape is None or diagonal is None or len(x.shape) < 2:
        raise refusal(g, "Trilu with a diagonal or rank that is not known", 14)
    rows, columns = x.shape[-2:]
    upper = bool(form.attrs.get("upper", 1))
    if isinstance(rows, int) and isinstance(columns, int):
        if g.opset < 9 and x.dtype in FLOATS:
            raise refusal(g, "Trilu", 9)
        ones = torch.ones(rows, columns, dtype=torch.bool)
        mask = g.const(ones.triu(diagonal[0]) if upper else ones.tril(diagonal[0]))
    elif g.opset < 11:
        raise refusal(g, "Trilu of dims that are not numbers", 11)
    else:
        mask = _triangle(g, rows, columns, diagonal[0], upper)
    return (g.op("Where", mask, x, g.const(0, x.dtype)),)


def _triangle(g: Builder, rows: dims.Size, columns: dims.Size, diagonal: int, upper: bool) -> Value:
    across, down = (g.op("Range", g.const(0), g.scalar(n), g.const(1)) for n in (columns, rows))
    edge = g.op("Unsqueeze", g.op("Add", down, g.const(diagonal)), g.const([1]))
    mask: Value = g.op("Not", g.op("Less" if upper else "Greater", across, edge))
    return mask


def _eye_like(g: Builder, form: Form) -> Made:
    """ONNX Runtime reads and makes few dtypes: only the shape is read, and float32 holds 0 and 1."""
    dtype = form.x.dtype if form.attrs.get("dtype") is None else DataType(form.attrs["dtype"])
    fits = [kernels.runs("EyeLike", g.opset, t) for t in (form.x.dtype, dtype)]
    if all(fits) or g.opset < 9:
        return form
    x = form.x if fits[0] else g.op("Cast", form.x, to=DataType.FLOAT)
    eye = g.op("EyeLike", x, dtype=dtype if fits[1] else DataType.FLOAT, k=form.attrs.get("k"))
    return (eye if fits[1] else g.op("Cast", eye, to=dtype),)


def _rows(below: int, *rules: Rule) -> tuple[tuple[int, Rule], ...]:
    return tuple((below, rule) for rule in rules)


RULES: Rules = {
    "CastLike": _rows(15, _cast_like),
    "Celu": _rows(28, _celu),
    "ConstantOfShape": (*_rows(20, _constant_of_bfloat16), *_rows(9, _constant_of_shape)),
    "Elu": _rows(_EVERY, _if_lacking(_elu)),
    "Expand": _rows(8, _expand),
    "EyeLike": _rows(_EVERY, _eye_like),
    "Gelu": _rows(_EVERY, _gelu),
    "GlobalAveragePool": _rows(_EVERY, _if_lacking(_global_pool("ReduceMean"))),
    "GlobalMaxPool": _rows(_EVERY, _if_lacking(_global_pool("ReduceMax"))),
    "GreaterOrEqual": _rows(12, _not("Less")),
    "HardSigmoid": _rows(_EVERY, _if_lacking(_hard_sigmoid)),
    "HardSwish": _rows(_EVERY, _if_lacking(_half_swish)),
    "IsInf": _rows(10, _is_inf),
    "IsNaN": _rows(9, _is_nan),
    "LeakyRelu": _rows(_EVERY, _if_lacking(_leaky_relu)),
    "LessOrEqual": _rows(12, _not("Greater")),
    "Mish": _rows(_EVERY, _if_lacking(_mish)),
    "PRelu": _rows(_EVERY, _if_lacking(_p_relu)),
    "Round": _rows(11, _round),
    "Selu": _rows(_EVERY, _if_lacking(_selu)),
    "Sign": _rows(9, _sign),
    "Softplus": _rows(_EVERY, _if_lacking(_softplus)),
    "Softsign": _rows(_EVERY, _if_lacking(_softsign)),
    "SwiGLU": _rows(_EVERY, _if_lacking(_swiglu)),
    "Swish": _rows(_EVERY, _if_lacking(_swish)),
    "Tan": _rows(_EVERY, _if_lacking(_tan)),
    "ThresholdedRelu": _rows(_EVERY, _if_lacking(_thresholded_relu)),
    "Trilu": _rows(14, _trilu),
    "Where": _rows(9, _where),
}
