"""How an older opset spells an operator that was asked for in the newest ONNX form.

`write` is called for every node. What it does for an operator at an opset is worked out once, from the two schemas in
`onnx.defs`: an input that used to be an attribute becomes one where it is constant, an attribute that did not exist yet
is dropped where it has the meaning that the older form has anyway, a default that changed is spelled out. What no
schema says (an operator that did not exist, a meaning that changed) is a small rule in `_RULES`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import onnx
from onnx import defs

from onnxport import errors
from onnxport.target import dims
from onnxport.target.dtypes import FLOATS
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

Inputs = tuple[Value | None, ...]
Written = tuple[str, Inputs, dict[str, Any]]

NEWEST = defs.onnx_opset_version()
OLDEST = 7


class Form(NamedTuple):
    """A node that is not made yet."""

    op_type: str
    inputs: Inputs
    attrs: dict[str, Any]
    outputs: int


# A rule spells a form differently, or builds the whole thing out of other operators and returns what it made.
Rule = Callable[["Builder", Form], "Form | tuple[Value, ...]"]


# ---------------------------------------------------------------------- what the schemas say


@functools.cache
def _schema(op_type: str, opset: int) -> defs.OpSchema | None:
    """The schema in force at `opset`; None where the operator does not exist there or is deprecated."""
    try:
        schema = defs.get_schema(op_type, opset, "")
    except defs.SchemaError:
        return None
    return None if schema.deprecated else schema


@functools.cache
def since(op_type: str) -> int:
    """The lowest opset (1 ... newest) that knows `op_type`; `UnsupportedError` where none does."""
    for opset in range(1, NEWEST + 1):
        if _schema(op_type, opset) is not None:
            return opset
    raise errors.UnsupportedError(f"{op_type!r} is no operator of ONNX (opsets 1 to {NEWEST})")


def has(op_type: str, opset: int) -> bool:
    """Whether `op_type` exists at `opset`."""
    return _schema(op_type, opset) is not None


def _first(op_type: str, test: Callable[[defs.OpSchema], bool]) -> int:
    """The lowest opset whose schema of `op_type` passes `test`."""
    for opset in range(1, NEWEST + 1):
        schema = _schema(op_type, opset)
        if schema is not None and test(schema):
            return opset
    return NEWEST


def _refusal(g: Builder, what: str, lowest: int) -> errors.UnsupportedError:
    return errors.UnsupportedError(f"{what} needs opset {lowest} or higher (opset_version={g.opset} was asked)")


def _default(attribute: defs.OpSchema.Attribute) -> Any:
    if not attribute.default_value.name:
        return None
    value = onnx.helper.get_attribute_value(attribute.default_value)
    return value.decode() if isinstance(value, bytes) else value


# ---------------------------------------------------------------------- the plan of one operator at one opset


@dataclass(frozen=True)
class _Plan:
    """What differs between the newest schema and the one at the wanted opset.

    rules: what no schema says, newest first.   moved: position of an input that is an attribute there, and its name.
    kept: how many inputs are left.   absent: inputs that do not exist there, by position, and the opset that has them.
    dropped: attributes that do not exist there, with the value that may be left out and the opset that has them.
    explicit: attributes whose default changed.   required: how many inputs must be given.   outputs: the most there are.
    """

    rules: tuple[Rule, ...] = ()
    moved: tuple[tuple[int, str, bool], ...] = ()
    kept: int | None = None
    absent: tuple[tuple[int, str, int], ...] = ()
    dropped: tuple[tuple[str, Any, int], ...] = ()
    explicit: tuple[tuple[str, Any], ...] = ()
    required: int = 0
    outputs: int | None = None
    positive_axis: bool = False


_ALIASES = {("Pad", "constant_value"): "value", ("TopK", "K"): "k"}
_VARIADIC = defs.OpSchema.FormalParameterOption.Variadic
_OPTIONAL = defs.OpSchema.FormalParameterOption.Optional
_SINGLE = defs.OpSchema.FormalParameterOption.Single


@functools.cache
def _plan(op_type: str, opset: int) -> _Plan | None:
    """The plan, or None where the newest form is the form."""
    newest, old = _schema(op_type, NEWEST), _schema(op_type, opset)
    if newest is None:
        since(op_type)
        raise errors.UnsupportedError(f"{op_type} is deprecated in ONNX; the newest form is what is asked for here")
    rules = tuple(rule for below, rule in _RULES.get(op_type, ()) if opset < below)
    if old is None or old.since_version == newest.since_version:
        return _Plan(rules) if rules or old is None else None
    plan = _difference(op_type, newest, old, opset, rules)
    return None if plan == _Plan() else plan


def _difference(op_type: str, newest: defs.OpSchema, old: defs.OpSchema, opset: int, rules: tuple[Rule, ...]) -> _Plan:
    moved, absent, kept = [], [], None
    for position, parameter in enumerate(newest.inputs[len(old.inputs):], len(old.inputs)):
        name = _ALIASES.get((op_type, parameter.name), parameter.name)
        kept = len(old.inputs)
        if name in old.attributes:
            moved.append((position, name, old.attributes[name].type in (defs.OpSchema.AttrType.INT, defs.OpSchema.AttrType.FLOAT)))
        else:
            count = len(newest.inputs[:position + 1])
            absent.append((position, parameter.name, _first(op_type, lambda s, n=count: len(s.inputs) >= n)))  # type: ignore[misc]
    dropped = tuple((name, _default(a), _first(op_type, lambda s, n=name: n in s.attributes))  # type: ignore[misc]
                    for name, a in newest.attributes.items() if name not in old.attributes)
    explicit = tuple((name, _default(a)) for name, a in newest.attributes.items()
                     if name in old.attributes and _default(a) is not None and _default(old.attributes[name]) != _default(a))
    strict = [i + 1 for i, p in enumerate(old.inputs) if p.option == _SINGLE and i < len(newest.inputs) and newest.inputs[i].option == _OPTIONAL]
    outputs = len(old.outputs) if len(old.outputs) < len(newest.outputs) else None
    axis = opset < 11 and bool({"axis", "axes"} & set(old.attributes))
    return _Plan(rules, tuple(moved), kept, tuple(absent), dropped, explicit, max(strict, default=0), outputs, axis)


# ---------------------------------------------------------------------- writing


def write(g: Builder, op_type: str, inputs: Inputs, attrs: dict[str, Any], outputs: int) -> Written | tuple[Value, ...]:
    """The node as `g.opset` spells it, or the values of other nodes that compute the same.

    Raises `UnsupportedError`, which names the lowest opset that can say it.
    """
    plan = _plan(op_type, g.opset)
    if plan is None:
        return op_type, inputs, attrs
    form = Form(op_type, inputs, attrs, outputs)
    for rule in plan.rules:
        made = rule(g, form)
        if not isinstance(made, Form):
            return made
        form = made
    if form.op_type != op_type:
        return form.op_type, form.inputs, form.attrs
    if not has(op_type, g.opset):
        raise _refusal(g, op_type, since(op_type))
    return _respell(g, form, plan)


def _respell(g: Builder, form: Form, plan: _Plan) -> Written:
    op_type, inputs, attrs = form.op_type, form.inputs, dict(form.attrs)
    if plan.outputs is not None and form.outputs > plan.outputs:
        raise _refusal(g, f"{op_type} with {form.outputs} outputs", _first(op_type, lambda s: len(s.outputs) >= form.outputs))
    for position, name, lowest in plan.absent:
        if _input(form, position) is not None:
            raise _refusal(g, f"{op_type} with {name!r}", lowest)
    for position, name, scalar in plan.moved:
        value = _input(form, position)
        if value is not None:
            attrs[name] = _attribute(g, form, position, value, scalar)
    inputs = inputs[:plan.kept]
    for name, default, lowest in plan.dropped:
        if name in attrs and not _same(attrs.pop(name), default):
            raise _refusal(g, f"{op_type} with {name!r}", lowest)
    for name, default in plan.explicit:
        attrs.setdefault(name, default)
    if len(inputs) < plan.required or None in inputs[:plan.required]:
        raise _refusal(g, f"{op_type} without all of its inputs", _first(op_type, lambda s: s.min_input <= len(form.inputs)))
    if plan.positive_axis:
        _count_from_front(form, attrs)
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return op_type, inputs, attrs


def _input(form: Form, position: int) -> Value | None:
    return form.inputs[position] if position < len(form.inputs) else None


def _same(value: Any, default: Any) -> bool:
    """Whether an attribute may be left out: it has its default, or (dilations) it is a list of ones."""
    return bool(value == default) or (default is None and isinstance(value, list | tuple) and all(v == 1 for v in value))


def _attribute(g: Builder, form: Form, position: int, value: Value, scalar: bool) -> Any:
    numbers = known(value)
    if numbers is None:
        name = defs.get_schema(form.op_type, NEWEST, "").inputs[position].name
        lowest = _first(form.op_type, lambda s: name in [p.name for p in s.inputs])
        raise _refusal(g, f"{form.op_type} with {name!r} that is computed, not constant,", lowest)
    return numbers[0] if scalar else numbers


def known(value: Value | None) -> list[Any] | None:
    """The numbers that a small tensor surely holds, flat; None where they depend on the input."""
    if value is None:
        return None
    if value.content is not None:
        return list(value.content) if dims.is_static(value.content) else None
    if value.const is not None:
        return list(value.const.tensor.reshape(-1).tolist())
    return None


def _count_from_front(form: Form, attrs: dict[str, Any]) -> None:
    """Below opset 11 axes are counted from the front only."""
    first = form.inputs[0] if form.inputs else None
    if first is None or first.rank is None:
        return
    rank = first.rank + {"Unsqueeze": len(attrs.get("axes", ())), "OneHot": 1}.get(form.op_type, 0)
    if attrs.get("axis", 0) < 0:
        attrs["axis"] += rank
    if "axes" in attrs:
        attrs["axes"] = [axis % rank for axis in attrs["axes"]]


# ---------------------------------------------------------------------- rules: meanings that changed


def _change(form: Form, *, op_type: str | None = None, inputs: Sequence[Value | None] | None = None, **attrs: Any) -> Form:
    """`form` with other inputs, and with attributes set or (None) removed."""
    merged = {k: v for k, v in {**form.attrs, **attrs}.items() if v is not None}
    return Form(op_type or form.op_type, form.inputs if inputs is None else tuple(inputs), merged, form.outputs)


def _softmax(g: Builder, form: Form) -> Form | tuple[Value, ...]:
    """Until 12 the dims from `axis` on were one: the same only where `axis` is the last."""
    x = form.inputs[0]
    assert x is not None
    axis = form.attrs.get("axis", -1)
    if axis == -1 or x.rank is None:
        if axis != -1:
            raise _refusal(g, f"{form.op_type} over a dim that may not be the last, of a tensor of unknown rank,", 13)
        return _change(form, axis=-1)
    axis %= x.rank
    if axis == x.rank - 1:
        return _change(form, axis=axis)
    perm = list(range(x.rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    last = g.op(form.op_type, g.op("Transpose", x, perm=perm), axis=x.rank - 1)
    return (g.op("Transpose", last, perm=perm),)


def _reduce(g: Builder, form: Form) -> Form | tuple[Value, ...]:
    """No axes: all of them, except where `noop_with_empty_axes` says none."""
    axes = _input(form, 1)
    empty = axes is None or axes.shape == (0,)
    if empty and form.attrs.get("noop_with_empty_axes"):
        raise _refusal(g, f"{form.op_type} with 'noop_with_empty_axes'", 13 if form.op_type == "ReduceSum" else 18)
    return _change(form, inputs=form.inputs[:1] if empty else None, noop_with_empty_axes=None)


def _slice(g: Builder, form: Form) -> Form | tuple[Value, ...]:
    """Slice-1 has no steps; those of a dim of known size are picked by number."""
    steps = known(_input(form, 4))
    if _input(form, 4) is None or steps is not None and all(step == 1 for step in steps):
        return _change(form, inputs=form.inputs[:4])
    x = form.inputs[0]
    starts, ends, axes = (known(_input(form, i)) for i in (1, 2, 3))
    assert x is not None
    if starts is None or ends is None or steps is None or x.shape is None or (axes is None and _input(form, 3) is not None):
        raise _refusal(g, "Slice with steps other than 1", 10)
    result = x
    for axis, start, end, step in zip(axes or range(len(starts)), starts, ends, steps, strict=True):
        size = x.shape[axis]
        if not isinstance(size, int):
            raise _refusal(g, "Slice with steps other than 1 of a dim of unknown size", 10)
        # Python's slices need None for "past the front" where the step is negative; ONNX clamps instead.
        stop = end if end >= 0 or step > 0 else (None if end < -size else end)
        result = g.op("Gather", result, g.const(list(range(size))[start:stop:step], DataType.INT64), axis=axis)
    return (result,)


def _pad_axes(g: Builder, form: Form) -> Form:
    """Pads of some axes become pads of all."""
    axes = _input(form, 3)
    if axes is None:
        return form
    data, pads, chosen = form.inputs[0], form.inputs[1], known(axes)
    assert data is not None and pads is not None
    if data.rank is None or chosen is None or pads.content is None:
        raise _refusal(g, "Pad with 'axes' where the rank or the pads are not known", 18)
    full: list[Any] = [0] * (2 * data.rank)
    for i, axis in enumerate(chosen):
        full[axis % data.rank] = pads.content[i]
        full[axis % data.rank + data.rank] = pads.content[i + len(chosen)]
    return _change(form, inputs=(data, g.real(g.sizes(full)), _input(form, 2)))


def _pad_wrap(g: Builder, form: Form) -> Form:
    if form.attrs.get("mode") == "wrap":
        raise _refusal(g, "Pad with mode 'wrap'", 19)
    return form


def _clip(g: Builder, form: Form) -> Form | tuple[Value, ...]:
    """Clip-6 has its bounds as attributes, finite ones by default, which would change infinities."""
    low, high = _input(form, 1), _input(form, 2)
    result = form.inputs[0]
    assert result is not None
    if low is None and high is None:
        return (g.op("Identity", result),)
    if all(v is None or known(v) is not None for v in (low, high)):
        bounds = [known(v) for v in (low, high)]
        return _change(form, inputs=form.inputs[:1], min=float("-inf") if bounds[0] is None else float(bounds[0][0]),
                       max=float("inf") if bounds[1] is None else float(bounds[1][0]))
    if low is not None:
        result = g.op("Max", result, low)
    if high is not None:
        result = g.op("Min", result, high)
    return (result,)


def _top_k(g: Builder, form: Form) -> Form | tuple[Value, ...]:
    """TopK gave the largest, sorted; the smallest are the largest of the negated."""
    form = _change(form, sorted=None)
    if form.attrs.get("largest", 1):
        return _change(form, largest=None)
    x = form.inputs[0]
    assert x is not None
    if x.dtype not in FLOATS:
        raise _refusal(g, "TopK with largest=0 of integers", 11)
    values, indices = g.op("TopK", g.op("Neg", x), *form.inputs[1:], outputs=2, **{k: v for k, v in form.attrs.items() if k != "largest"})
    return g.op("Neg", values), indices


def _split(g: Builder, form: Form) -> Form:
    """Without `num_outputs` parts are equal: uneven ones are spelled out."""
    count = form.attrs.get("num_outputs")
    if count is None:
        return form
    x = form.inputs[0]
    size = None if x is None or x.shape is None else x.shape[form.attrs.get("axis", 0)]
    if isinstance(size, int):
        part = -(-size // count)
        sizes = [max(0, min(part, size - part * i)) for i in range(count)]
        return _change(form, inputs=(x, g.const(sizes, DataType.INT64)), num_outputs=None)
    if size is None or not dims.equal(dims.mod(size, count), 0):
        raise _refusal(g, "Split with 'num_outputs' of a dim of unknown size", 18)
    return _change(form, num_outputs=None)


def _dropout(g: Builder, form: Form) -> Form:
    """Dropout-7 and -10 only ever run as in evaluation: then `ratio` says nothing."""
    training = _input(form, 2)
    if training is not None and known(training) != [False]:
        raise _refusal(g, "Dropout in training mode", 12)
    return _change(form, inputs=form.inputs[:1], seed=None)


def _grid_sample(g: Builder, form: Form) -> Form:
    names = {"linear": "bilinear", "cubic": "bicubic"}
    mode = form.attrs.get("mode", "linear")
    return _change(form, mode=names.get(mode, mode))


# ---------------------------------------------------------------------- rules: operators that did not exist


def _not_nan(g: Builder, x: Value) -> Value | None:
    """Whether elements are numbers, in operators that every opset has; None where all of them surely are."""
    if x.dtype not in FLOATS:
        return None
    if x.const is not None and not x.const.parameter and not bool(x.const.tensor.isnan().any()):
        return None
    return g.op("Or", g.op("Less", x, g.const(1.0, x.dtype)), g.op("Greater", x, g.const(0.0, x.dtype)))  # type: ignore[no-any-return]


def _unless_nan(g: Builder, result: Value, *operands: Value) -> Value:
    for operand in operands:
        number = _not_nan(g, operand)
        if number is not None:
            result = g.op("And", result, number)
    return result


def _operands(form: Form) -> tuple[Value, Value]:
    a, b = form.inputs
    assert a is not None and b is not None
    return a, b


def _not(op_type: str) -> Rule:
    """a <= b is not (a > b), and false where either is not a number."""

    def rule(g: Builder, form: Form) -> tuple[Value, ...]:
        a, b = _operands(form)
        return (_unless_nan(g, g.op("Not", g.op(op_type, a, b)), a, b),)

    return rule


def _equal(g: Builder, form: Form) -> Form | tuple[Value, ...]:
    """Equal-7 compares integers and bools; floats are equal where neither is less."""
    a, b = _operands(form)
    if a.dtype not in FLOATS:
        return form
    return (_unless_nan(g, g.op("Not", g.op("Or", g.op("Less", a, b), g.op("Greater", a, b))), a, b),)


_REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
               "ReduceSumSquare")
# Operator -> (the opset from which the rule is not needed any more, the rule), newest first.
_RULES: dict[str, tuple[tuple[int, Rule], ...]] = {
    **{name: ((18, _reduce),) for name in _REDUCTIONS},
    "ReduceSum": ((13, _reduce),),
    **{name: ((13, _softmax),) for name in ("Softmax", "LogSoftmax", "Hardmax")},
    "Slice": ((10, _slice),),
    "Pad": ((19, _pad_wrap), (18, _pad_axes)),
    "Clip": ((11, _clip),),
    "TopK": ((11, _top_k),),
    "Split": ((18, _split),),
    "Dropout": ((12, _dropout),),
    "GridSample": ((20, _grid_sample),),
    "LessOrEqual": ((12, _not("Greater")),),
    "GreaterOrEqual": ((12, _not("Less")),),
    "Equal": ((11, _equal),),
}
