"""Lowers operators that meet complex numbers: by a function for them, on their parts, or by what PyTorch decomposes them into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport import errors
from onnxport.aten.graph import Node
from onnxport.lower.missing import name_of
from onnxport.ops import complex_parts, registry
from onnxport.target.pairs import WAY_OUT

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering


def meets(args: dict[str, Any]) -> bool:
    """Whether complex numbers are among the arguments, or asked for."""
    return any(map(complex_parts.is_complex, args.values()))


def lower(low: Lowering, node: Node, args: dict[str, Any], select: Any) -> Any:
    """The result of a node; `UnsupportedError` for an operator that would see one of the parts only."""
    own = registry.find_of_complex(node.op, node.overload)
    if own is not None:
        return own.function(low.g, **select(own, node, args))
    operator = registry.find(node.op, node.overload)
    for table, way in ((complex_parts.LINEAR, complex_parts.linear), (complex_parts.MULTILINEAR, complex_parts.multilinear)):
        names = table.get(f"{node.op}.{node.overload}") or table.get(node.op)
        if operator is not None and names is not None:
            chosen = select(operator, node, args)
            if not any(complex_parts.is_complex(chosen.get(name)) for name in (*names, "dtype")):
                return operator.function(low.g, **chosen)  # only a shape is taken from what is complex
            return way(low.g, operator.function, names, chosen)
    if low.decomposer is not None and low.decomposer.exists(node) and not low.decomposer.missing(node, low.knows):
        return low.decomposer.lower(low, node, args)
    raise errors.UnsupportedError(f"{name_of(node)} of complex numbers: {WAY_OUT}")
