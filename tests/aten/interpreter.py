"""Runs an `aten.Graph` with PyTorch, node by node; refuses nodes that write."""

from __future__ import annotations

from typing import Any

import torch

from onnxport.aten.contract import writes_by_name
from onnxport.aten.graph import Arg, Block, Graph, Node, Value

FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)


class Interpreter:
    """env: value -> what it is."""

    def __init__(self) -> None:
        self.env: dict[Value, Any] = {}

    def get(self, arg: Arg) -> Any:
        if isinstance(arg, Value):
            return self.env[arg] if arg in self.env else self.literal(arg)
        if isinstance(arg, (list, tuple)):
            return [self.get(a) for a in arg]
        return arg

    def literal(self, value: Value) -> torch.Tensor:
        assert value.constant is not None, f"{value} is not defined"
        return value.constant.detach().clone()

    def block(self, block: Block) -> None:
        for node in block.nodes:
            self.node(node)

    def node(self, node: Node) -> None:
        args = {name: self.get(arg) for name, arg in node.args.items()}
        result = self.apply(node, args)
        results = [result] if len(node.outputs) == 1 else list(result)
        for output, item in zip(node.outputs, results, strict=True):
            if isinstance(item, torch.Tensor):
                assert output.dtype == item.dtype, f"{node} gave {item.dtype}, not {output.dtype}"
                assert output.shape is not None
                assert len(output.shape) == item.dim(), f"{node} gave rank {item.dim()}"
            self.env[output] = item

    def apply(self, node: Node, args: dict[str, Any]) -> Any:
        handler = HANDLERS.get(node.op)
        if handler is not None:
            return handler(args)
        assert not writes_by_name(node.op), node
        if isinstance(args.get("memory_format"), int):
            args["memory_format"] = FORMATS[args["memory_format"]]
        packet = getattr(torch.ops.aten, node.op.removeprefix("aten::"))
        return getattr(packet, node.overload or "default")(**args)


def _unpack(args: dict[str, Any]) -> Any:
    items = list(args["self"])
    return items[0] if len(items) == 1 else items


HANDLERS: dict[str, Any] = {
    "prim::NumToTensor": lambda args: torch.tensor(next(iter(args.values()))),
    "prim::ListUnpack": _unpack,
    "prim::min": lambda args: min(args["a"], args["b"]),
    "aten::floordiv": lambda args: args["a"] // args["b"],
    "aten::Int": lambda args: int(args["a"]),
}


def run(graph: Graph, inputs: list[torch.Tensor]) -> tuple[list[Any], dict[str, Any]]:
    """(outputs, new values of mutated inputs and weights by name)."""
    interpreter = Interpreter()
    with torch.no_grad():
        for value, tensor in zip(graph.inputs, inputs, strict=True):
            interpreter.env[value] = tensor.clone()
        interpreter.block(graph.block)
        return [interpreter.get(o) for o in graph.outputs], {m.name: interpreter.get(m.value) for m in graph.mutated}
