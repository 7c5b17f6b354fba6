"""How an older opset spells an operator that was asked for in the newest ONNX form.

`write` is called for every node. What it does for an operator at an opset is worked out once, from the two schemas in
`onnx.defs`: an input that used to be an attribute becomes one where it is constant, an attribute that did not exist yet
is dropped where it has the meaning that the older form has anyway, a default that changed is spelled out. What no
schema says is a small rule: in `form_rules_changed` where a meaning changed, in `form_rules_resize` and
`form_rules_pooling` for images, in `form_rules_missing` (`form_rules_bits`) for operators that did not exist, in `form_rules_functions` for
transcendental functions.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx import defs

from onnxport.target import (
    form_rules_bits,
    form_rules_changed,
    form_rules_functions,
    form_rules_missing,
    form_rules_pooling,
    form_rules_resize,
    schemas,
)
from onnxport.target.schemas import NEWEST, has, since
from onnxport.target.spelling import Form, Inputs, Rule, Rules, numbers, refusal
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

__all__ = ["NEWEST", "OLDEST", "Written", "has", "since", "write"]

Written = tuple[str, Inputs, dict[str, Any]]
OLDEST = 7

_OPTIONAL = defs.OpSchema.FormalParameterOption.Optional
_SINGLE = defs.OpSchema.FormalParameterOption.Single
_SCALARS = (defs.OpSchema.AttrType.INT, defs.OpSchema.AttrType.FLOAT)
_ALIASES = {("Pad", "constant_value"): "value", ("TopK", "K"): "k"}
_RULES: Rules = {**form_rules_missing.RULES, **form_rules_changed.RULES, **form_rules_resize.RULES, **form_rules_pooling.RULES,
                 **form_rules_functions.RULES, **form_rules_bits.RULES}


@dataclass(frozen=True)
class _Plan:
    """What differs between the newest schema and the one at the wanted opset.

    rules: what no schema says.   kept: how many inputs there are.   moved: an input that is an attribute there: its
    position, the attribute, whether it is one number.   absent: an input that does not exist there: its position, its
    name, the opset that has it.   dropped: an attribute that does not exist there: its name, the value that may be left
    out, the opset that has it.   explicit: attributes whose default changed.   required: how many inputs must be given.
    outputs: the most there are.   from_front: axes are counted from the front only.
    """

    rules: tuple[Rule, ...] = ()
    kept: int | None = None
    moved: tuple[tuple[int, str, bool], ...] = ()
    absent: tuple[tuple[int, str, int], ...] = ()
    dropped: tuple[tuple[str, Any, int], ...] = ()
    explicit: tuple[tuple[str, Any], ...] = ()
    required: int = 0
    outputs: int | None = None
    from_front: bool = False


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
        raise refusal(g, op_type, since(op_type))
    return _respell(g, form, plan)


@functools.cache
def _plan(op_type: str, opset: int) -> _Plan | None:
    """The plan, or None where the newest form is the form."""
    since(op_type)  # refuses what is no operator
    newest, old = schemas.get(op_type, NEWEST), schemas.get(op_type, opset)
    assert newest is not None
    rules = tuple(rule for below, rule in _RULES.get(op_type, ()) if opset < below)
    if old is None:
        return _Plan(rules)
    plan = _Plan(rules) if old.since_version == newest.since_version else _difference(newest, old, opset, rules)
    return None if plan == _Plan() else plan


def _difference(newest: defs.OpSchema, old: defs.OpSchema, opset: int, rules: tuple[Rule, ...]) -> _Plan:
    name = newest.name
    moved, absent = [], []
    for position, parameter in enumerate(newest.inputs[len(old.inputs):], len(old.inputs)):
        attribute = _ALIASES.get((name, parameter.name), parameter.name)
        if attribute in old.attributes:
            moved.append((position, attribute, old.attributes[attribute].type in _SCALARS))
        else:
            absent.append((position, parameter.name, _opset_of_input(name, parameter.name)))
    return _Plan(
        rules,
        kept=len(old.inputs) if moved or absent else None,
        moved=tuple(moved),
        absent=tuple(absent),
        dropped=tuple((a, schemas.default(newest, a), _opset_of_attribute(name, a)) for a in newest.attributes if a not in old.attributes),
        explicit=_new_defaults(newest, old),
        required=max((i + 1 for i, p in enumerate(old.inputs) if p.option == _SINGLE and newest.inputs[i].option == _OPTIONAL), default=0),
        outputs=len(old.outputs) if len(old.outputs) < len(newest.outputs) else None,
        from_front=opset < 11 and not old.attributes.keys().isdisjoint({"axis", "axes"}))


def _new_defaults(newest: defs.OpSchema, old: defs.OpSchema) -> tuple[tuple[str, Any], ...]:
    pairs = [(a, schemas.default(newest, a)) for a in newest.attributes if a in old.attributes]
    return tuple((a, value) for a, value in pairs if value is not None and schemas.default(old, a) != value)


def _opset_of_input(op_type: str, name: str) -> int:
    return schemas.first(op_type, lambda schema: name in [p.name for p in schema.inputs])


def _opset_of_attribute(op_type: str, name: str) -> int:
    return schemas.first(op_type, lambda schema: name in schema.attributes)


# ---------------------------------------------------------------------- by the plan


def _respell(g: Builder, form: Form, plan: _Plan) -> Written:
    op_type, attrs = form.op_type, dict(form.attrs)
    _refuse(g, form, plan)
    for position, name, scalar in plan.moved:
        value = form.input(position)
        if value is not None:
            attrs[name] = _attribute(g, form, position, value, scalar)
    for name, default, lowest in plan.dropped:
        if name in attrs and not _same(attrs.pop(name), default):
            raise refusal(g, f"{op_type} with {name!r}", lowest)
    for name, default in plan.explicit:
        attrs.setdefault(name, default)
    if plan.from_front:
        _count_from_front(form, attrs)
    inputs = form.inputs[:plan.kept]
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return op_type, inputs, attrs


def _refuse(g: Builder, form: Form, plan: _Plan) -> None:
    """Inputs and outputs that the older form does not have, or cannot do without."""
    op_type, outputs = form.op_type, form.outputs
    for position, name, lowest in plan.absent:
        if form.input(position) is not None:
            raise refusal(g, f"{op_type} with {name!r}", lowest)
    if plan.outputs is not None and outputs > plan.outputs:
        raise refusal(g, f"{op_type} with {outputs} outputs", schemas.first(op_type, lambda s: len(s.outputs) >= outputs))
    for position in range(plan.required):
        if form.input(position) is None:
            lowest = schemas.first(op_type, lambda s, i=position: s.inputs[i].option == _OPTIONAL)  # type: ignore[misc]
            raise refusal(g, f"{op_type} without its input {position}", lowest)


def _same(value: Any, default: Any) -> bool:
    """Whether an attribute may be left out: it has its default, or (dilations) it is a list of ones."""
    return bool(value == default) or (default is None and isinstance(value, list | tuple) and all(v == 1 for v in value))


def _attribute(g: Builder, form: Form, position: int, value: Value, scalar: bool) -> Any:
    known = numbers(value)
    if known is None:
        name = defs.get_schema(form.op_type, NEWEST, "").inputs[position].name
        raise refusal(g, f"{form.op_type} with {name!r} that the graph computes", _opset_of_input(form.op_type, name))
    return known[0] if scalar else known


def _count_from_front(form: Form, attrs: dict[str, Any]) -> None:
    """Below opset 11 ONNX counts axes from the front only (where the rank is not known, ONNX Runtime takes both)."""
    rank = form.x.rank if form.inputs else None
    if rank is None:
        return
    rank += {"Unsqueeze": len(attrs.get("axes", ())), "OneHot": 1}.get(form.op_type, 0)
    if "axis" in attrs and attrs["axis"] < 0:
        attrs["axis"] += rank
    if "axes" in attrs:
        attrs["axes"] = [axis + rank if axis < 0 else axis for axis in attrs["axes"]]
