"""A Concat of Concats along the same axis becomes one, where nobody else reads the inner ones."""

from __future__ import annotations

import onnx_ir as ir

from onnxport.target.emit import CALL


def run(model: ir.Model) -> int:
    """Returns how many nodes went."""
    graph = model.graph
    gone = 0
    for node in graph:
        if node.op_type == "Concat" and not node.domain:
            gone += _flatten(graph, node)
    return gone


def _flatten(graph: ir.Graph, node: ir.Node) -> int:
    axis = node.attributes.get_int("axis")
    inputs: list[ir.Value | None] = []
    inner: list[ir.Node] = []
    for value in node.inputs:
        maker = value.producer() if value is not None else None
        if maker is not None and _merges(graph, maker, node, axis):
            inputs += maker.inputs
            inner.append(maker)
        else:
            inputs.append(value)
    if not inner:
        return 0
    node.resize_inputs(len(inputs))
    for position, value in enumerate(inputs):
        node.replace_input_with(position, value)
    for maker in inner:
        graph.remove(maker, safe=True)
    return len(inner)


def _merges(graph: ir.Graph, maker: ir.Node, node: ir.Node, axis: int | None) -> bool:
    if maker.op_type != "Concat" or maker.domain or maker.graph is not graph or maker.attributes.get_int("axis") != axis:
        return False
    if maker.meta.get(CALL) is not node.meta.get(CALL):
        return False
    output = maker.outputs[0]
    return len(output.uses()) == 1 and not output.is_graph_output()
