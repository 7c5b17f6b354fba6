"""Makes new ATen nodes: arguments by name, scope and source line of the node that they stand for."""

from __future__ import annotations

from typing import Any

import torch

from onnxport.aten.graph import Arg, Node, Value

INT_MAX = (1 << 63) - 1


class Maker:
    """Appends nodes to a list. `origin` lends its scope and source to what is made."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.origin = Node("", "", {}, [])

    def emit(self, op: str, overload: str, like: Value, /, **args: Arg) -> Value:
        """A new node with one output of the type of `like`."""
        output = like.like()
        self.append(op, overload, args, [output])
        return output

    def append(self, op: str, overload: str, args: dict[str, Arg], outputs: list[Value]) -> Node:
        """A new node with the given outputs."""
        node = Node(op, overload, args, outputs, scope=self.origin.scope, source=self.origin.source)
        self.nodes.append(node)
        return node

    def cast(self, value: Value, dtype: torch.dtype | None, output: Value | None = None) -> Value:
        """`value` in another dtype."""
        output = output or Value("tensor", dtype, value.shape, value.strides)
        args = {"self": value, "dtype": dtype, "non_blocking": False, "copy": False, "memory_format": None}
        self.append("aten::to", "dtype", args, [output])
        return output

    def reshape_as(self, value: Value, other: Value) -> Value:
        """`value` in the shape of `other`, whatever its sizes."""
        return self.emit("aten::reshape_as", "", other, self=value, other=other)

    def size(self, value: Value, dim: int) -> Value:
        """One size as an int value."""
        return self.emit("aten::size", "int", Value("int"), self=value, dim=dim)

    def integer(self, op: str, a: Any, b: Any) -> Any:
        """Integer arithmetic ("add", "sub", "mul", "floordiv", "remainder", "min") on ints and int values; numbers are computed at once."""
        if isinstance(a, int) and isinstance(b, int):
            return _COMPUTE[op](a, b)
        if (op, a) in (("add", 0), ("mul", 1)):
            return b
        if (op, b) in (("add", 0), ("sub", 0), ("mul", 1), ("floordiv", 1)):
            return a
        if op == "mul" and 0 in (a, b):
            return 0
        if op == "min":
            return self.emit("prim::min", "int", Value("int"), a=a, b=b)
        return self.emit(f"aten::{op}", "int", Value("int"), a=a, b=b)


_COMPUTE: dict[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
    "remainder": lambda a, b: a % b, "min": min,
}
