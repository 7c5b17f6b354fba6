"""Reads a `torch.fx` graph of ATen operators (from torch.export, or a decomposition) into an `aten.Graph` block."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Node, Read, Schema, Value
from onnxport.aten.source import where
from onnxport.capture import composites, higher, torch_private
from onnxport.capture import schema as schemas
from onnxport.capture.fx_values import constant, number, typed
from onnxport.module_calls import ModuleCall, Scope, annotated

# Python operators on sizes, as the ATen operators on ints that TorchScript has for them.
_ON_SIZES: dict[Any, tuple[str, tuple[str, ...]]] = {
    operator.add: ("aten::add", ("a", "b")), operator.sub: ("aten::sub", ("a", "b")), operator.mul: ("aten::mul", ("a", "b")),
    operator.floordiv: ("aten::floordiv", ("a", "b")), operator.mod: ("aten::remainder", ("a", "b")), operator.neg: ("aten::neg", ("a",)),
    operator.truediv: ("aten::div", ("a", "b")), operator.pow: ("aten::pow", ("a", "b")),
    torch.sym_max: ("prim::max", ("a", "b")), torch.sym_min: ("prim::min", ("a", "b")), torch.sym_int: ("aten::Int", ("a",)),
    torch.sym_float: ("aten::Float", ("a",)), torch.sym_not: ("aten::__not__", ("a",)), math.ceil: ("aten::ceil", ("a",)),
    math.floor: ("aten::floor", ("a",)), math.trunc: ("aten::Int", ("a",)),
    operator.and_: ("aten::__and__", ("a", "b")), operator.or_: ("aten::__or__", ("a", "b")),
    operator.eq: ("aten::eq", ("a", "b")), operator.ne: ("aten::ne", ("a", "b")), operator.lt: ("aten::lt", ("a", "b")),
    operator.le: ("aten::le", ("a", "b")), operator.gt: ("aten::gt", ("a", "b")), operator.ge: ("aten::ge", ("a", "b")),
}
# Checks that the running program makes of itself; the file says these things by its shapes.
_ASSERTIONS = frozenset({"aten::_assert_async", "aten::sym_constrain_range", "aten::sym_constrain_range_for_size",
                         "aten::_assert_tensor_metadata"})
# torch.export's names for what other captures call otherwise.
_RENAMED = {"aten::sym_size": "aten::size", "aten::sym_numel": "aten::numel", "aten::_local_scalar_dense": "aten::item"}

# Their results have other dtypes than PyTorch tells.
_MISTOLD = frozenset({"quantized_decomposed::choose_qparams_per_token"})


class Source:
    """The stack of an FX node, innermost frame first, put into words only where somebody asks."""

    __slots__ = ("stack",)

    def __init__(self, stack: str):
        self.stack = stack

    def __str__(self) -> str:
        frames = [line for line in self.stack.splitlines() if line.lstrip().startswith("File ")]
        return "\n".join(reversed(frames))


class Reader:
    """Reads one FX graph; `env` maps its nodes to what they became.

    reads: what the program asserts of sizes: branches that were taken while it was captured.
    prefix: a path that stands before the names of all modules.
    place: where the program took the branch that an assertion with this message stands for; None for what PyTorch itself demands.
    calls: the module calls that become functions.
    """

    def __init__(self, constants: Callable[[str], Any], prefix: str = "", place: Callable[[str], str | None] = lambda message: "",
                 calls: Calls | None = None):
        self.calls = calls
        self.constants, self.prefix, self.place = constants, prefix, place
        self.env: dict[torch.fx.Node, Arg] = {}
        self.reads: list[Read] = []
        self._inner: dict[tuple[Value, str], Value] = {}

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
        """A tensor, or a part of the program, that the graph keeps under a name."""
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
        target: Any = node.target
        if target is operator.getitem:
            self.env[node] = self.item(self.resolve(node.args[0]), node, into)
            return
        if torch_private.is_subclass_access(target):
            self.env[node] = self.inner(self.resolve(node.args[0]), str(node.args[1]))
            return
        scope, source = _scope(node, self.prefix, self.calls), Source(node.meta.get("stack_trace") or "")
        if isinstance(target, torch_private.OpOverload):
            made = self.overload(node, composites.original(target), scope, source)
        elif target in _ON_SIZES:
            made = self.on_sizes(node, scope, source)
        elif target is torch.sym_sum:
            self.env[node] = self.total(self.resolve(node.args[0]), Node("", "", {}, [], scope=scope, source=source), into)
            return
        elif isinstance(target, torch_private.HigherOrderOperator):
            self.env[node] = higher.read(self, node, Node("", "", {}, [], scope=scope, source=source), into)
            return
        else:
            raise errors.CaptureError(f"an FX call of {target} cannot be read (module {scope or '?'}, {where(source)})")
        if made.op == "aten::_assert_scalar":
            place = self.place(str(node.args[1]))
            if place is not None:
                self.asserted(node.args[0], place)
        elif made.op not in _ASSERTIONS:
            into.nodes.append(made)
            self.enter(node, made, into)

    def item(self, items: Arg, node: torch.fx.Node, into: Block) -> Arg:
        """One of several results; of a list among the results of an operator it is taken when that is lowered."""
        if not isinstance(items, Value):
            return items[node.args[1]]
        made = Node("aten::__getitem__", "t", {"list": items, "idx": node.args[1]}, [typed(node.meta.get("val"))])
        into.nodes.append(made)
        return made.outputs[0]

    def inner(self, weight: Value, name: str) -> Value:
        """A tensor that a weight is made of which is a tensor subclass (those of torchao are)."""
        if (weight, name) not in self._inner:
            if weight.constant is None:
                raise errors.CaptureError("a tensor subclass is taken apart that is no weight of the model")
            self._inner[weight, name] = constant(getattr(weight.constant, name).detach(), f"{weight.name}.{name}")
        return self._inner[weight, name]

    def on_sizes(self, node: torch.fx.Node, scope: str, source: Any) -> Node:
        """Arithmetic of Python on sizes."""
        name, names = _ON_SIZES[node.target]
        args = dict(zip(names, [self.resolve(a) for a in node.args], strict=True))
        return Node(name, "int", args, [typed(node.meta.get("val"))], scope=scope, source=source)

    def total(self, parts: list[Arg], origin: Node, into: Block) -> Arg:
        """The sum of several sizes."""
        total = parts[0]
        for part in parts[1:]:
            made = Node("aten::add", "int", {"a": total, "b": part}, [Value("int")], scope=origin.scope, source=origin.source)
            into.nodes.append(made)
            total = made.outputs[0]
        return total

    def asserted(self, given: Any, place: str) -> None:
        """A branch on sizes that the capture took. What it says of the data is the program's own check, which a file does not make.

        The stack of such a node is that of some other one.
        """
        truth = given.meta.get("val") if isinstance(given, torch.fx.Node) else None
        if not isinstance(truth, torch.SymBool) or number(truth) is None:
            return
        if given.target is operator.and_:
            for part in given.args:
                self.asserted(part, place)
            return
        negated = given.target is torch.sym_not
        condition = self.resolve(given.args[0] if negated else given)
        if isinstance(condition, Value):
            self.reads.append(Read("bool", condition, not negated, place))

    def part(self, part: Any, given: Sequence[Arg], into: Block) -> list[Arg]:
        """The results of a graph module on these arguments; its nodes join `into`."""
        inner = Reader(lambda target: functools.reduce(getattr, target.split("."), part), self.prefix, self.place, self.calls)
        inner.reads = self.reads
        inner.env.update(zip((n for n in part.graph.nodes if n.op == "placeholder"), given, strict=True))
        block = Block()
        block.nodes = into.nodes
        return inner.read(part.graph.nodes, block).outputs

    def overload(self, node: torch.fx.Node, target: Any, scope: str, source: Source) -> Node:
        """An ATen or custom operator, its arguments by name."""
        args, kwargs = [self.resolve(arg) for arg in node.args], {name: self.resolve(arg) for name, arg in node.kwargs.items()}
        return bound(target, args, kwargs, node.meta.get("val"), scope, source)

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


def bound(target: Any, given: Sequence[Arg], named: dict[str, Arg], value: Any, scope: str, source: Any) -> Node:
    """A call of an `OpOverload`, its arguments by name. value: what torch.export knows of its results."""
    schema = schema_of(target)
    args: dict[str, Arg] = {}
    for index, parameter in enumerate(schema.parameters):
        arg = given[index] if index < len(given) else named.get(parameter.name, parameter.default)
        args[parameter.name] = schemas.normalise(parameter, arg)
    many = len(schema.returns) > 1
    outputs = [typed(v) for v in value] if many and isinstance(value, (list, tuple)) else [typed(value)]
    if schema.name in _MISTOLD:
        for output in outputs:
            output.dtype, output.unknown = None, True
    name = _RENAMED.get(schema.name, schema.name)
    if name == "aten::item" and outputs[0].kind == "int":
        name = "aten::Int"
    return Node(name, schema.overload, args, outputs, scope=scope, source=source, schema=schema)


def argument(node: torch.fx.Node, name: str) -> Any:
    """What an operator is given as the argument of this name; None where it has none."""
    if not isinstance(node.target, torch_private.OpOverload):
        return None
    names = [parameter.name for parameter in schema_of(node.target).parameters]
    return {**dict(zip(names, node.args)), **node.kwargs}.get(name)


@functools.cache
def schema_of(target: Any) -> Schema:
    """The schema of an `OpOverload`."""
    return schemas.convert(target._schema)


class Calls:
    """The module calls that become functions. modules: all, or those of these classes.   known: a module by its qualified name."""

    def __init__(self, modules: bool | frozenset[type], known: Callable[[str], Any]):
        self.module = known
        self._names = None if modules is True else {_full_name(kind) for kind in modules or ()}
        self._known: dict[tuple[ModuleCall | None, str], ModuleCall] = {}

    def enter(self, outer: ModuleCall | None, key: str, path: str, kind: Any) -> ModuleCall | None:
        """The call of a module inside the call `outer`; that itself where it is to become no function. key: tells calls of a module apart."""
        name = kind if isinstance(kind, str) else _full_name(kind)
        if self._names is not None and name not in self._names:
            return outer
        if (outer, key) not in self._known:
            module = self.module(path)
            known = module is not None and _full_name(type(module)) == name
            self._known[outer, key] = ModuleCall(type(module) if known else name, path, annotated(module) if known else {}, outer)
        return self._known[outer, key]


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _scope(node: torch.fx.Node, prefix: str, calls: Calls | None) -> Scope:
    """`Net/body/body.0`, as a trace writes it; what is outside of `prefix` is left out.

    Where a model has conditions, torch.export tells the names below `prefix` without it.
    """
    path: list[str] = []
    call: ModuleCall | None = None
    for key, (name, kind) in (node.meta.get("nn_module_stack") or {}).items():
        if name.startswith(prefix):
            name = name[len(prefix):].lstrip(".")
        elif not path:
            continue
        path.append(name if path else str(kind).rpartition(".")[2] if not isinstance(kind, type) else kind.__name__)
        if calls is not None:
            call = calls.enter(call, key, name, kind)
    scope = Scope("/".join(path))
    scope.call = call
    return scope
