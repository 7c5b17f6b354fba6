"""Drops nodes that nobody needs."""

from __future__ import annotations

from onnxport.aten.graph import RESULT, WHOLE, Block, Graph, Node, Value, changes_list, values_in


def prune(graph: Graph) -> None:
    """Drops the nodes whose outputs nobody uses, in one sweep from the end. Graph inputs and weights stay.

    What an ONNX file cannot do (print, warn, assert) counts as no effect; a change of a list is one, and a `raise` says something
    of the branch that it stands in.
    """
    used: set[Value] = set()
    used.update(values_in(graph.outputs), values_in(graph.block.outputs), (m.value for m in graph.mutated))
    used.update(read.value for read in graph.reads if read.value is not None)
    _block(graph.block, used)


def _changes_lists(node: Node) -> bool:
    if changes_list(node):
        return True
    return any(_changes_lists(inner) for block in node.blocks for inner in block.nodes)


def _results(node: Node, used: set[Value]) -> None:
    """Leaves an If with the results that somebody uses."""
    wanted = [index for index, output in enumerate(node.outputs) if output in used]
    if len(wanted) < len(node.outputs):
        node.outputs = [node.outputs[index] for index in wanted]
        for block in node.blocks:
            block.outputs = [block.outputs[index] for index in wanted]


def _is_output(node: Node) -> bool:
    """Whether it takes a list apart that the program returns (of which nothing is known, where it is empty in the example)."""
    return node.op == "prim::ListUnpack" and node.overload in (RESULT, WHOLE)


def _block(block: Block, used: set[Value]) -> None:
    used.update(values_in(block.outputs))
    kept = []
    for node in reversed(block.nodes):
        if any(output in used for output in node.outputs) or node.op == "prim::RaiseException" or _changes_lists(node) or _is_output(node):
            kept.append(node)
            used.update(node.inputs())
            if node.op == "prim::If":
                _results(node, used)
            for inner in node.blocks:
                _block(inner, used)
    block.nodes[:] = reversed(kept)
