"""Drops nodes that nobody needs."""

from __future__ import annotations

from onnxport.aten.graph import Block, Graph, Value, values_in


def prune(graph: Graph) -> None:
    """Drops the nodes whose outputs nobody uses, in one sweep from the end. Graph inputs and weights stay.

    What an ONNX file cannot do (print, warn, assert) counts as no effect.
    """
    used: set[Value] = set()
    used.update(values_in(graph.outputs), values_in(graph.block.outputs), (m.value for m in graph.mutated))
    used.update(read.value for read in graph.reads if read.value is not None)
    _block(graph.block, used)


def _block(block: Block, used: set[Value]) -> None:
    used.update(values_in(block.outputs))
    kept = []
    for node in reversed(block.nodes):
        if any(output in used for output in node.outputs):
            kept.append(node)
            used.update(node.inputs())
            for inner in node.blocks:
                _block(inner, used)
    block.nodes[:] = reversed(kept)
