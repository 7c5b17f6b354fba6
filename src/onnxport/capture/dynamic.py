"""One language for dynamic axes: `dynamic_axes` and all forms of torch.export's `dynamic_shapes` become one `Axis` an axis.

What stands at an axis of `dynamic_shapes`: a `Dim` (named, perhaps with a range, perhaps derived: ``2*n + 1``),
`Dim.AUTO`, `Dim.DYNAMIC`, `Dim.STATIC`, a string (a name, or an expression over names), None, or a number (static).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from onnxport import errors, structure
from onnxport.aten.graph import Axis, Graph

Wanted = dict[int, "Ask"]


@dataclass(frozen=True)
class Ask:
    """What the caller asks of one axis. label: its name, or None for any; dim: what torch.export is told.

    may_be_static: `Dim.AUTO`, where torch.export decides.
    """

    label: str | None
    dim: Any
    derived: bool = False
    low: int = 0
    high: int | None = None
    may_be_static: bool = False

    def axis(self, automatic: str) -> Axis:
        """As the graph says it."""
        return Axis(self.label or automatic, self.derived, self.low, self.high)


def of_axes(axes: Mapping[str, Mapping[int, str]], names: Sequence[str], tensors: Sequence[torch.Tensor]) -> list[Wanted]:
    """What `dynamic_axes` asks of each input (its keys that are no inputs are left to whoever names the outputs)."""
    known = {label for labels in axes.values() for label in labels.values()}

    def ask(label: str) -> Ask:
        return Ask(label, torch.export.Dim.DYNAMIC, derived=not label.isidentifier() and _symbols(label) <= known)

    return [{axis % max(tensor.dim(), 1): ask(label) for axis, label in axes.get(name, {}).items()
             if -tensor.dim() <= axis < tensor.dim()} for name, tensor in zip(names, tensors, strict=True)]


def _symbols(label: str) -> set[str]:
    """The names that an expression is made of; the label itself where it is none."""
    return {n.id for n in ast.walk(ast.parse(label, mode="eval")) if isinstance(n, ast.Name)} if _is_expression(label) else {label}


def of_shapes(shapes: Any, spec: structure.CallSpec, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> list[Wanted]:
    """What `dynamic_shapes` asks of each tensor of the call."""
    beside = spec.beside(shapes, _is_leaf)
    return [_axes(name, tensor, entry) for name, tensor, entry in zip(names, tensors, beside, strict=True)]


def _is_leaf(entry: Any) -> bool:
    """Whether it speaks of the axes of one tensor and of nothing nested."""
    if isinstance(entry, Mapping):
        return all(isinstance(k, int) and not isinstance(k, bool) and not isinstance(v, (Mapping, list, tuple)) for k, v in entry.items())
    return isinstance(entry, (list, tuple)) and not any(isinstance(item, (Mapping, list, tuple)) for item in entry)


def _axes(name: str, tensor: torch.Tensor, entry: Any) -> Wanted:
    if entry is None:
        return {}
    if isinstance(entry, (list, tuple)):
        if len(entry) != tensor.dim():
            raise errors.ArgumentError(f"dynamic_shapes has {len(entry)} entries for the input {name!r}, which has {tensor.dim()} axes")
        items = list(enumerate(entry))
    elif isinstance(entry, Mapping):
        items = list(entry.items())
    else:
        raise errors.ArgumentError(
            f"dynamic_shapes has {entry!r} for the input {name!r}: it must be a dict of axis to Dim, a tuple of Dims, or None")
    wanted: Wanted = {}
    for axis, dim in items:
        if isinstance(axis, bool) or not isinstance(axis, int) or not -tensor.dim() <= axis < tensor.dim():
            raise errors.ArgumentError(f"dynamic_shapes: axis {axis!r} is out of range for the input {name!r} of rank {tensor.dim()}")
        ask = _ask(name, axis, dim)
        if ask is not None:
            wanted[axis % tensor.dim()] = ask
    return wanted


def _ask(name: str, axis: int, dim: Any) -> Ask | None:
    if dim is None or (isinstance(dim, int) and not isinstance(dim, bool)):
        return None
    hint = getattr(dim, "type", None)
    if hint is not None and hasattr(hint, "name"):
        low, high = getattr(dim, "min", None), getattr(dim, "max", None)
        return None if hint.name == "STATIC" else Ask(None, dim, low=low or 0, high=high, may_be_static=hint.name == "AUTO")
    if isinstance(dim, str) and dim:
        return Ask(dim, torch.export.Dim.DYNAMIC, derived=not dim.isidentifier() and _is_expression(dim))
    if hasattr(dim, "__name__") and hasattr(dim, "min") and hasattr(dim, "max"):
        if hasattr(dim, "root"):
            return Ask(str(dim.__name__), dim, derived=True)
        return Ask(str(dim.__name__), dim, low=_number(dim.min) or 0, high=_number(dim.max))
    raise errors.ArgumentError(
        f"dynamic_shapes[{name!r}][{axis}] is {dim!r}: it must be a torch.export.Dim, one of Dim.AUTO, DYNAMIC and STATIC, a name or None")


def _number(bound: Any) -> int | None:
    """A bound of a range; None where there is none (sympy's infinities cannot be asked for their size)."""
    text = str(bound)
    return int(text) if text.lstrip("-").isdigit() and len(text) < 19 else None


def _is_expression(text: str) -> bool:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return all(isinstance(n, (ast.Expression, ast.BinOp, ast.Name, ast.Constant, ast.operator, ast.Load)) for n in ast.walk(tree))


def mark(graph: Graph, names: Sequence[str], wanted: Sequence[Wanted]) -> None:
    """Enters what was asked into the graph's inputs, for a capture that found nothing out about sizes itself."""
    for name, value, asks in zip(names, graph.inputs, wanted, strict=True):
        sizes: list[Any] = list(value.shape or ())
        for number, (axis, ask) in enumerate(sorted(asks.items()), 1):
            sizes[axis] = ask.axis(automatic(name, number))
        value.symbolic = tuple(sizes)


def automatic(name: str, number: int) -> str:
    """What an axis is called that got no name, as in `dynamic_axes`."""
    return f"{name}_dynamic_axes_{number}"


def bound(limit: Any) -> int | None:
    """A bound of a range that torch.export gives; None where it says nothing."""
    return _number(limit)
