"""Drops nodes that nobody needs."""

from __future__ import annotations

from onnxport.aten.graph import LIST_WRITES, Block, Graph, Node, Value, values_in


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
    if node.op in LIST_WRITES or (node.op == "aten::add_" and node.overload == "t"):
        return True
    return any(_changes_lists(inner) for block in node.blocks for inner in block.nodes)


def _block(block: Block, used: set[Value]) -> None:
    used.update(values_in(block.outputs))
    kept = []
    for node in reversed(block.nodes):
        if any(output in used for output in node.outputs) or node.op == "prim::RaiseException" or _changes_lists(node):
            kept.append(node)
            used.update(node.inputs())
            for inner in node.blocks:
                _block(inner, used)
    block.nodes[:] = reversed(kept)
