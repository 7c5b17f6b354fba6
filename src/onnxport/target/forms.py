"""How an older opset spells an operator that was asked for in the newest ONNX form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

Written = tuple[str, tuple[Value | None, ...], dict[str, Any]]


def write(g: Builder, op_type: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any], outputs: int) -> Written:
    """The node as `g.opset` spells it; `UnsupportedError` names the lowest opset that can."""
    return op_type, inputs, attrs
