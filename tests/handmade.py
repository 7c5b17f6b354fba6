"""ONNX models made by hand, for tests of what comes after the builder."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from onnxport.target.dtypes import from_torch
from onnxport.target.value import Constant
from onnxport.target.weights import Weight


def tensor_value(name: str, dtype: torch.dtype, shape: Sequence[int | str]) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(from_torch(dtype)), shape=ir.Shape(shape))


def weight(name: str, tensor: torch.Tensor) -> ir.Value:
    value = tensor_value(name, tensor.dtype, tuple(tensor.shape))
    value.const_value = Weight(Constant(tensor, name=name), from_torch(tensor.dtype), tuple(tensor.shape), name)
    return value


def node(op: str, inputs: Sequence[ir.Value | None], output: str, attributes: Sequence[ir.Attr] = (),
         like: ir.Value | None = None) -> ir.Value:
    made = ir.Node("", op, inputs, attributes, num_outputs=1, name=f"/{op}/{output}")
    result = made.outputs[0]
    result.name = output
    if like is not None:
        result.type, result.shape = like.type, like.shape
    return result


def model(inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], weights: Sequence[ir.Value] = (), *, opset: int = 17,
          ir_version: int = 8) -> ir.Model:
    nodes: list[ir.Node] = []

    def visit(value: ir.Value) -> None:
        producer = value.producer()
        if producer is None or producer in nodes:
            return
        for source in producer.inputs:
            if source is not None:
                visit(source)
        nodes.append(producer)

    for output in outputs:
        visit(output)
    graph = ir.Graph(inputs, outputs, nodes=nodes, initializers=weights, opset_imports={"": opset}, name="main_graph")
    return ir.Model(graph, ir_version=ir_version, producer_name="onnxport", producer_version="test")


def identities(tensors: dict[str, torch.Tensor]) -> ir.Model:
    """A model whose outputs are its weights (`<name>_out`), so that a run shows what was saved."""
    weights = [weight(name, tensor) for name, tensor in tensors.items()]
    outputs = [node("Identity", [w], f"{w.name}_out", like=w) for w in weights]
    return model([], outputs, weights, opset=19, ir_version=9)


def scaled(matrix: torch.Tensor) -> ir.Model:
    """y = x @ matrix for x of [N, rows]."""
    x = tensor_value("x", matrix.dtype, ["N", matrix.shape[0]])
    w = weight("matrix", matrix)
    y = node("MatMul", [x, w], "y")
    y.type, y.shape = ir.TensorType(from_torch(matrix.dtype)), ir.Shape(["N", matrix.shape[1]])
    return model([x], [y], [w])
