"""Where the wanted opset or ONNX Runtime has no kernel for a dtype, and which wider dtype computes the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder


@dataclass(frozen=True)
class Widening:
    """Cast the inputs of these positions, compute, and cast these outputs back."""

    inputs: dict[int, DataType]
    outputs: dict[int, DataType]


def widening(g: Builder, op_type: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any]) -> Widening | None:
    """The casts that `op_type` needs around it at `g.opset`, or None."""
    return None
