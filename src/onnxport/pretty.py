"""The readable form of a model that `verbose=True` prints.

    graph(%x : Float(2, 3),
          %weight : Float(4, 3)) {
      %y : Float(2, 4) = onnx::Gemm[transB=1](%x, %weight), scope: Net/Linear[fc] # net.py:12
      return (%y);
    }

Functions of the model follow, each as the graph of its body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx_ir as ir

_NAMES = {
    ir.DataType.FLOAT: "Float", ir.DataType.DOUBLE: "Double", ir.DataType.FLOAT16: "Half", ir.DataType.BFLOAT16: "BFloat16",
    ir.DataType.INT64: "Long", ir.DataType.INT32: "Int", ir.DataType.INT16: "Short", ir.DataType.INT8: "Char", ir.DataType.UINT8: "Byte",
    ir.DataType.BOOL: "Bool",
}
SCOPE = "pkg.onnxport.scope"  # the metadata key under which a node keeps its scope
_LONG = 8  # elements of a tensor attribute that are printed at most


def text(model: ir.Model, names: bool = False) -> str:
    """The whole graph, inputs and parameters first, then the functions. names: of the nodes too."""
    graph = model.graph
    values = list(graph.inputs) + [v for v in graph.initializers.values() if v not in graph.inputs]
    lines = list(_body("graph", values, graph, names))
    for function in model.functions.values():
        head = f"function {function.domain}::{function.name}"
        if function.attributes:
            head += f"[{', '.join(function.attributes)}]"
        lines += _body(head, function.inputs, function.graph, names)
    return "\n".join(lines)


def _body(head: str, values: Sequence[ir.Value], graph: ir.Graph, names: bool) -> Iterator[str]:
    yield f"{head}(" + ",\n      ".join(_declared(v) for v in values) + ") {"
    for line in _nodes(graph, names):
        yield f"  {line}"
    yield "  return (" + ", ".join(f"%{v.name}" for v in graph.outputs) + ");"
    yield "}"


def _declared(value: ir.Value) -> str:
    return f"%{value.name} : {_type(value)}"


def _type(value: ir.Value) -> str:
    dtype = _NAMES.get(value.dtype, value.dtype.name) if value.dtype is not None else "Dynamic"
    if value.shape is None:
        return dtype
    return f"{dtype}({', '.join(str(d) if isinstance(d, int) else str(d.value) for d in value.shape)})"


def _nodes(graph: ir.Graph, names: bool = False) -> Iterator[str]:
    for node in graph:
        outputs = ", ".join(_declared(v) for v in node.outputs)
        plain = [a for a in node.attributes.values() if a.type not in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)]
        attributes = f"[{', '.join(f'{a.name}={_attribute(a)}' for a in plain)}]" if plain else ""
        inputs = ", ".join("" if v is None else f"%{v.name}" for v in node.inputs)
        line = f"{outputs} = {node.domain or 'onnx'}::{node.op_type}{attributes}({inputs})"
        if names and node.name:
            line += f", name: {node.name}"
        if SCOPE in node.metadata_props:
            line += f", scope: {node.metadata_props[SCOPE]}"
        if node.doc_string:
            line += f" # {node.doc_string}"
        yield line
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _block(attribute.as_graph(), names)


def _block(graph: ir.Graph, names: bool) -> Iterator[str]:
    yield f"  {graph.name}({', '.join(_declared(v) for v in graph.inputs)}):"
    for line in _nodes(graph, names):
        yield f"    {line}"
    yield f"    -> ({', '.join(f'%{v.name}' for v in graph.outputs)})"


def _attribute(attribute: ir.Attr) -> str:
    if attribute.is_ref():
        return f"@{attribute.ref_attr_name}"
    value: Any = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        return "{" + str(value.numpy().tolist()) + "}" if value.size <= _LONG else f"<Tensor {list(value.shape)}>"
    if isinstance(value, float):
        return f"{value:g}"
    return str(list(value)) if isinstance(value, tuple) else str(value)
