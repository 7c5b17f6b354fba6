"""dtype and symbolic shape of what an ONNX operator (newest form) computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

# One output: its element type (None unknown), and its dims (None: rank unknown; a None among them: only the run knows).
Known = tuple[DataType | None, tuple[Any, ...] | None]


def infer(g: Builder, op_type: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any], outputs: int) -> list[Known]:
    """What is known of each of the `outputs` outputs."""
    raise NotImplementedError
