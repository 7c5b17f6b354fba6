"""Finds all operators of a graph that have no translation, before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from onnxport import errors
from onnxport.aten.graph import Graph, Node, walk
from onnxport.aten.source import where
from onnxport.lower import scalars, structural
from onnxport.ops import registry

_PLACES = 6  # of one operator that are named
_WAYS_OUT = ("What can be done: change the model so that it does not use {these}; register a symbolic function with "
             "onnxport.register_custom_op_symbolic; or contribute the operator to onnxport.")


@dataclass
class Missing:
    """An operator without a translation.

    nodes: where the model uses it.   parts: what PyTorch decomposes it into that has no translation either.
    since: the opset from which on a symbolic function is registered for it.
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    since: int | None = None

    def __str__(self) -> str:
        places = Counter(f"module {node.scope or '?'}, {where(node.source)}" for node in self.nodes)
        (first, _), *others = places.items()
        lines = [f"Couldn't export operator {self.name} ({first}{_times(len(self.nodes), len(places))})"]
        lines += [f"    also in {place}{_times(count)}" for place, count in others[:_PLACES - 1]]
        if len(others) >= _PLACES:
            lines.append(f"    and in {len(others) - _PLACES + 1} other places")
        if self.parts:
            lines.append(f"    PyTorch decomposes it, and {', '.join(self.parts)} in it has no translation")
        if self.since is not None:
            lines.append(f"    a symbolic function is registered for it from opset {self.since} on: opset_version={self.since} takes it")
        return "\n".join(lines)


def check(graph: Graph, knows: Callable[[Node], bool], inside: Callable[[Node], list[str]] = lambda node: [],
          since: Callable[[Node], int | None] = lambda node: None) -> None:
    """Raises one `UnsupportedOperatorError` that lists every operator that cannot be lowered, with places and count.

    inside: the operators that are missing among those that one is decomposed into.   since: the opset that would have a translation.
    """
    tried: set[str] = set()
    missing: dict[str, Missing] = {}
    # Of the branches of a script some are never lowered: what is missing there is found on the way.
    for node in graph.block.nodes if graph.scripted else walk(graph.block):
        if has_function(node):
            continue
        name = name_of(node)
        if name in missing:
            missing[name].nodes.append(node)
        elif not knows(node):
            missing[name] = Missing(name, [node], since=since(node))
        elif name not in tried:
            tried.add(name)
            parts = inside(node)
            if parts:
                missing[name] = Missing(name, [node], [part for part in parts if part != node.op], since(node))
    if missing:
        raise errors.UnsupportedOperatorError(_message(list(missing.values())))


def name_of(node: Node) -> str:
    """The operator with its overload."""
    return f"{node.op}.{node.overload}" if node.overload else node.op


def has_function(node: Node) -> bool:
    """Whether a node is lowered by a function of its own."""
    known = structural.HANDLERS
    if node.op in known or f"{node.op}.{node.overload}" in known or scalars.handles(node):
        return True
    return registry.find(node.op, node.overload) is not None or registry.find_of_complex(node.op, node.overload) is not None


def refuse(node: Node) -> None:
    """The error for one operator."""
    raise errors.UnsupportedOperatorError(_message([Missing(name_of(node), [node])]))


def _message(missing: list[Missing]) -> str:
    ways = _WAYS_OUT.format(these="this operator" if len(missing) == 1 else "these operators")
    return "\n".join([*map(str, missing), ways])


def _times(count: int, places: int = 1) -> str:
    total = f", {count} times" if count > 1 else ""
    return total + (f" in {places} places" if places > 1 else "")
