"""Reads a `torch.fx` graph of ATen operators (from torch.export, or a decomposition) into an `aten.Graph` block."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Node, Schema, Value
from onnxport.capture import schema as schemas

# Python operators on sizes, as the ATen operators on ints that TorchScript has for them.
_ON_SIZES: dict[Any, tuple[str, tuple[str, ...]]] = {
    operator.add: ("aten::add", ("a", "b")), operator.sub: ("aten::sub", ("a", "b")), operator.mul: ("aten::mul", ("a", "b")),
    operator.floordiv: ("aten::floordiv", ("a", "b")), operator.mod: ("aten::remainder", ("a", "b")), operator.neg: ("aten::neg", ("a",)),
    operator.truediv: ("aten::div", ("a", "b")), operator.pow: ("aten::pow", ("a", "b")),
    torch.sym_max: ("prim::max", ("a", "b")), torch.sym_min: ("prim::min", ("a", "b")), torch.sym_int: ("aten::Int", ("a",)),
    torch.sym_float: ("aten::Float", ("a",)), torch.sym_not: ("aten::__not__", ("a",)),
    operator.eq: ("aten::eq", ("a", "b")), operator.ne: ("aten::ne", ("a", "b")), operator.lt: ("aten::lt", ("a", "b")),
    operator.le: ("aten::le", ("a", "b")), operator.gt: ("aten::gt", ("a", "b")), operator.ge: ("aten::ge", ("a", "b")),
}
# Checks that the running program makes of itself; the file says these things by its shapes.
_ASSERTIONS = frozenset({"aten::_assert_scalar", "aten::_assert_async", "aten::sym_constrain_range", "aten::sym_constrain_range_for_size",
                         "aten::_assert_tensor_metadata"})


class Reader:
    """Reads one FX graph; `env` maps its nodes to what they became."""

    def __init__(self, constants: Callable[[str], Any]):
        self.constants = constants
        self.env: dict[torch.fx.Node, Arg] = {}

    def read(self, nodes: Iterable[torch.fx.Node], into: Block) -> Block:
        """Reads all nodes that are no placeholders (those must be in `env`); the outputs become the block's."""
        for node in nodes:
            if node.op == "call_function":
                self.call(node, into)
            elif node.op == "get_attr":
                self.env[node] = self.attribute(str(node.target))
            elif node.op == "output":
                into.outputs = list(self.resolve(node.args[0])) if isinstance(node.args[0], (list, tuple)) else [self.resolve(node.args[0])]
            elif node.op != "placeholder":
                raise errors.CaptureError(f"an FX node of kind {node.op} ({node.target}) cannot be read")
        return into

    def attribute(self, target: str) -> Arg:
        found = self.constants(target)
        if isinstance(found, torch.Tensor):
            return constant(found)
        return found

    def resolve(self, arg: Any) -> Arg:
        """An argument with FX nodes replaced by what they became."""
        if isinstance(arg, torch.fx.Node):
            return self.env[arg]
        if isinstance(arg, (list, tuple)):
            return [self.resolve(a) for a in arg]
        if isinstance(arg, torch.device):
            return str(arg)
        if isinstance(arg, dict):
            return {k: self.resolve(v) for k, v in arg.items()}
        return arg

    def call(self, node: torch.fx.Node, into: Block) -> None:
        """One operator."""
        target = node.target
        if target is operator.getitem:
            items = self.resolve(node.args[0])
            self.env[node] = items[node.args[1]]
            return
        scope, source = _scope(node), node.meta.get("stack_trace") or ""
        if isinstance(target, torch._ops.OpOverload):
            made = self.overload(node, target, scope, source)
        elif target in _ON_SIZES:
            name, names = _ON_SIZES[target]
            args = dict(zip(names, [self.resolve(a) for a in node.args], strict=True))
            made = Node(name, "int", args, [typed(node.meta.get("val"))], scope=scope, source=source)
        elif isinstance(target, torch._ops.HigherOrderOperator):
            raise errors.UnsupportedOperatorError(f"Couldn't export operator {target.name()} (module {scope or '?'}): control flow captured by torch.export")
        else:
            raise errors.CaptureError(f"an FX call of {target} cannot be read (module {scope or '?'})")
        if made.op in _ASSERTIONS:
            return
        into.nodes.append(made)
        self.enter(node, made, into)

    def overload(self, node: torch.fx.Node, target: Any, scope: str, source: str) -> Node:
        """An ATen or custom operator, its arguments by name."""
        schema = schema_of(target)
        args: dict[str, Arg] = {}
        for index, parameter in enumerate(schema.parameters):
            if index < len(node.args):
                arg = self.resolve(node.args[index])
            elif parameter.name in node.kwargs:
                arg = self.resolve(node.kwargs[parameter.name])
            else:
                arg = parameter.default
            args[parameter.name] = schemas.normalise(parameter, arg)
        value = node.meta.get("val")
        many = len(schema.returns) > 1
        outputs = [typed(v) for v in value] if many and isinstance(value, (list, tuple)) else [typed(value)]
        return Node(schema.name, schema.overload, args, outputs, scope=scope, source=source, schema=schema)

    def enter(self, node: torch.fx.Node, made: Node, into: Block) -> None:
        """Makes the node's results known; a list of tensors is taken apart at once, since its length is."""
        value = node.meta.get("val")
        if len(made.outputs) > 1:
            self.env[node] = list(made.outputs)
        elif isinstance(value, (list, tuple)):
            pieces = [typed(v) for v in value]
            into.nodes.append(Node("prim::ListUnpack", "", {"self": made.outputs[0]}, pieces, scope=made.scope, source=made.source))
            self.env[node] = pieces
        else:
            self.env[node] = made.outputs[0]


@functools.lru_cache(maxsize=None)
def schema_of(target: Any) -> Schema:
    """The schema of an `OpOverload`."""
    return schemas.convert(target._schema)


def constant(tensor: torch.Tensor, name: str | None = None) -> Value:
    """A tensor that is known."""
    return Value("tensor", tensor.dtype, tuple(tensor.shape), tensor.stride(), name=name, constant=tensor)


def typed(value: Any) -> Value:
    """A new value of the type of a fake tensor or symbolic number; sizes that are not known at all leave the shape out."""
    if isinstance(value, torch.Tensor):
        shape = [number(s) for s in value.shape]
        strides = [number(s) for s in value.stride()]
        known = None not in shape
        return Value("tensor", value.dtype, tuple(shape) if known else None, tuple(strides) if known and None not in strides else None)  # type: ignore[arg-type]
    if isinstance(value, (bool, torch.SymBool)):
        return Value("bool")
    if isinstance(value, (int, torch.SymInt)):
        return Value("int")
    if isinstance(value, (float, torch.SymFloat)):
        return Value("float")
    return Value("list" if isinstance(value, (list, tuple)) else "none" if value is None else "object")


def number(size: Any) -> int | None:
    """What a size is in the example; None where only the data decides."""
    if isinstance(size, int):
        return size
    hint = size.node.hint if size.node.has_hint() else None
    return None if hint is None else int(hint)


def _scope(node: torch.fx.Node) -> str:
    """`Net/body/body.0`, as a trace writes it."""
    stack = node.meta.get("nn_module_stack") or {}
    path = []
    for name, kind in stack.values():
        if not path:
            path.append(str(kind).rpartition(".")[2] if not isinstance(kind, type) else kind.__name__)
        elif name:
            path.append(name.replace("L['self'].", ""))
    return "/".join(path)
