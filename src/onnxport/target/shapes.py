"""dtype and symbolic shape of what an ONNX operator (newest form) computes: the rule of its name, else ONNX's own inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport import errors
from onnxport.target import (
    shape_fallback,
    shape_rules_control,
    shape_rules_elementwise,
    shape_rules_movement,
    shape_rules_reduction,
    shape_rules_spatial,
)
from onnxport.target.shape_helpers import UNKNOWN, Known, Rule
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

RULES: dict[str, Rule] = {
    **shape_rules_elementwise.RULES,
    **shape_rules_movement.RULES,
    **shape_rules_reduction.RULES,
    **shape_rules_spatial.RULES,
    **shape_rules_control.RULES,
}


def infer(g: Builder, op_type: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any], outputs: int) -> list[Known]:
    """What is known of each of the `outputs` outputs.

    Small integer inputs are read through `Value.content`. Raises `ShapeError`, which names the operator, where an input
    or attribute that it needs is missing, an axis does not exist, or ranks and numbers that must fit do not.
    """
    rule = RULES.get(op_type)
    try:
        if rule is not None:
            known = rule(inputs, attrs, outputs)
        elif op_type in shape_rules_control.BLOCK_RULES:
            known = shape_rules_control.BLOCK_RULES[op_type](g, inputs, attrs, outputs)
        else:
            known = shape_fallback.infer(op_type, inputs, attrs, outputs)
    except (errors.ShapeError, ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise errors.ShapeError(f"{op_type} of {_described(inputs)}: {error}") from error
    if len(known) == outputs:
        return known
    return known[:outputs] if len(known) > outputs else known + [UNKNOWN] * (outputs - len(known))


def _described(inputs: tuple[Value | None, ...]) -> str:
    return ", ".join("nothing" if v is None else repr(v) for v in inputs) or "nothing"
