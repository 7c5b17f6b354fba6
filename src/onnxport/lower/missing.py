"""Finds all operators of a graph that have no translation, before anything is built."""

from __future__ import annotations

from collections.abc import Callable

from onnxport import errors
from onnxport.aten.graph import Graph, Node, walk
from onnxport.aten.source import where
from onnxport.lower import scalars, structural
from onnxport.ops import registry


def check(graph: Graph, knows: Callable[[Node], bool], inside: Callable[[Node], list[str]] = lambda node: []) -> None:
    """Raises one `UnsupportedOperatorError` that lists every operator that cannot be lowered, with place and count.

    inside: the operators that are missing among those that one is decomposed into.
    """
    tried: set[str] = set()
    missing: dict[str, list[Node]] = {}
    # Of the branches of a script some are never lowered: what is missing there is found on the way.
    for node in graph.block.nodes if graph.scripted else walk(graph.block):
        if has_function(node):
            continue
        name = f"{node.op}.{node.overload}" if node.overload else node.op
        if name in missing or not knows(node):
            missing.setdefault(name, []).append(node)
        elif name not in tried:
            tried.add(name)
            if inside(node):
                missing.setdefault(name, []).append(node)
    if missing:
        raise errors.UnsupportedOperatorError(_message(missing))


def has_function(node: Node) -> bool:
    """Whether a node is lowered by a function of its own."""
    known = structural.HANDLERS
    return node.op in known or f"{node.op}.{node.overload}" in known or scalars.handles(node) or registry.find(node.op, node.overload) is not None


def refuse(node: Node) -> None:
    """The error for one operator."""
    name = f"{node.op}.{node.overload}" if node.overload else node.op
    raise errors.UnsupportedOperatorError(_message({name: [node]}))


def _message(missing: dict[str, list[Node]]) -> str:
    lines = []
    for name, nodes in missing.items():
        times = "" if len(nodes) == 1 else f", {len(nodes)} times"
        lines.append(f"Couldn't export operator {name} (module {nodes[0].scope or '?'}, {where(nodes[0].source)}{times})")
    return "\n".join([
        *lines,
        "What can be done: change the model so that it does not use " + ("this operator" if len(missing) == 1 else "these operators")
        + "; register a symbolic function with onnxport.register_custom_op_symbolic; or contribute the operator to onnxport.",
    ])
