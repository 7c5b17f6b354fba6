"""Lowers an `aten.Graph` to the builder: one operator function a node, checked against what the capture saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Graph, Node
from onnxport.aten.graph import Value as Captured
from onnxport.aten.packed import Packed
from onnxport.aten.source import where
from onnxport.lower import complexes, constants, containers, control, missing, quantised, scalars, sequences, structural
from onnxport.lower.carried import Form
from onnxport.lower.decompose import Decomposer, Decompositions
from onnxport.lower.guards import Guard, condition_of
from onnxport.lower.python import Journal
from onnxport.lower.refusals import Refusals
from onnxport.module_calls import ModuleCall, call_of
from onnxport.ops import registry
from onnxport.ops.quantised import INTEGERS, Quantised
from onnxport.target import dims, pairs
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import component, from_torch
from onnxport.target.value import Complex, DataType, Value, behind


@dataclass
class Lowered:
    """The finished builder, the graph's outputs in order, and what each captured value became."""

    builder: Builder
    outputs: list[Value]
    env: dict[Captured, Any]


class Foreign(Protocol):
    """Who else may translate operators: symbolic functions of the user, and nodes that stay as they are."""

    def find(self, node: Node) -> Handler | None:
        """What goes before the built-in translation."""

    def fallback(self, node: Node) -> Handler | None:
        """What goes where there is no built-in translation."""

    def since(self, node: Node) -> int | None:
        """The lowest opset above the present one at which there is a translation."""


class Lowering:
    """One run over one graph."""

    def __init__(self, graph: Graph, builder: Builder, input_shapes: list[tuple[Size, ...] | None], *, weights_as_inputs: bool = False,
                 decompositions: Decompositions | None = None, foreign: Foreign | None = None):
        self.graph, self.g, self.foreign = graph, builder, foreign
        self.decomposer = None if decompositions is None else Decomposer(decompositions)
        self.held: list[Guard] = []  # what was decided over sizes on the way
        self.journal = Journal()  # what lists of a script hold
        self.forms: dict[Node, list[Form]] = {}  # what loops carry
        self.whole: dict[Node, set[int]] = {}  # carried lists that change their length
        self.compared: dict[Value, tuple[str, Size, Size]] = {}  # conditions over sizes
        self.depth = 0  # blocks around the node that is being lowered
        self.env: dict[Captured, Any] = {}
        self.lists: dict[Captured, list[Captured]] = {}  # first member of a list that is one output -> the other members
        self.calls: set[ModuleCall] = set()  # those that become functions
        self.opened: dict[Packed, Any] = {}
        self.structural = structural.HANDLERS
        for name, value, shape in zip(graph.input_names, graph.inputs, input_shapes, strict=True):
            self.env[value] = self.input(name, value, shape)
        for name, value in graph.weights.items():
            if weights_as_inputs:
                self.env[value] = self.input(name, value, value.shape)

    def input(self, name: str, value: Captured, shape: tuple[Size, ...] | None) -> Any:
        """One graph input; symbols remember the example's number. An integer of a script is a size, a float has 64 bits."""
        assert value.dtype is not None
        if value.kind == "list":
            return sequences.given(self.g, name, from_torch(value.dtype), len(value.shape or ()))
        for size, seen in zip(shape or (), value.shape or (), strict=False):
            if isinstance(size, Dim) and size.symbol is not None:
                self.g.hints.setdefault(size.symbol.text, seen)
        if value.dtype.is_complex:
            assert shape is not None
            return pairs.unpacked(self.g, self.g.input(name, component(from_torch(value.dtype)), (*shape, 2)))
        made = self.g.input(name, from_torch(value.dtype), shape)
        return self.g.integer(made) if value.kind == "int" else scalars.wide(self.g, made) if value.kind == "float" else made

    def run(self) -> Lowered:
        """Lowers all nodes; missing operators are reported together before anything is built."""
        missing.check(self.graph, self.knows, self.missing_inside, self.known_since)
        Refusals(self).lower(self.graph.block)
        self.leave_calls()
        self.gather_lists()
        outputs = [self.output(o) for o in self.graph.outputs]
        return Lowered(self.g, outputs, self.env)

    def gather_lists(self) -> None:
        """Lists that became one output each have a name of their own, and their members are no outputs."""
        gone = {member for members in self.lists.values() for member in members}
        pairs = zip(self.graph.outputs, self.graph.output_names, strict=True)
        kept = [(output, name) for output, name in pairs if not isinstance(output, Captured) or output not in gone]
        lists = [isinstance(output, Captured) and output in self.lists for output, _ in kept]
        self.graph.outputs = [output for output, _ in kept]
        self.graph.output_names = [name.rpartition(".")[0] if whole else name for (_, name), whole in zip(kept, lists, strict=True)]

    def enter_call(self, scope: str) -> None:
        """The next nodes belong to the module call of this scope; all nodes of a subgraph belong to the one that its node does."""
        call = call_of(scope)
        if call is not self.g.call and self.depth == 0:
            self.g.call = call
            self.calls.update(call.chain() if call is not None else ())

    def leave_calls(self) -> None:
        """All calls are over: what follows is the graph's own, and arguments and results are values of the graph."""
        self.g.call = None
        for call in self.calls:
            call.arguments = [(name, self.made_of(value)) for name, value in call.arguments]
            call.results = [self.made_of(value) for value in call.results]

    def made_of(self, captured: Any) -> Value | None:
        """The tensor of the graph that a captured one became."""
        found = self.env.get(captured) if isinstance(captured, Captured) else None
        found = found.integers if isinstance(found, Quantised) else found
        return behind(found) if isinstance(found, Value) else None

    def knows(self, node: Node) -> bool:
        """Whether a node can be lowered: by a function, by what it is made of, or by somebody else."""
        if self.foreign is not None and (self.foreign.find(node) or self.foreign.fallback(node)):
            return True
        return missing.has_function(node) or (self.decomposer is not None and self.decomposer.exists(node))

    def known_since(self, node: Node) -> int | None:
        """The higher opset from which on somebody else translates a node."""
        return None if self.foreign is None else self.foreign.since(node)

    def missing_inside(self, node: Node) -> list[str]:
        """The operators without a translation that a node would be decomposed into."""
        if self.decomposer is None or (self.foreign is not None and (self.foreign.find(node) or self.foreign.fallback(node))):
            return []
        return self.decomposer.missing(node, self.knows)

    def block(self, block: Block) -> None:
        """Lowers the nodes of one block in order."""
        for node in block.nodes:
            self.node(node)

    def output(self, arg: Arg) -> Value:
        """A graph output as a tensor: numbers and sizes become tensors of rank 0."""
        made = as_tensor(self.g, self.resolve(arg))
        if isinstance(arg, Captured) and arg.kind == "float" and made.dtype == DataType.DOUBLE:
            made = self.g.op("Cast", made, to=DataType.FLOAT)
        if made.shape is None and not made.sequence and made.node is not None and made.node.op_type == "If":
            raise errors.UnsupportedError("the rank of an output is known only when the model runs, as the branches of an If give different ones; "
                                          f"bring them to one rank\n  at {where(made.node.source)}")
        return pairs.packed(self.g, made) if isinstance(made, Complex) else made

    def resolve(self, arg: Arg) -> Any:
        """What an argument became: values, sizes, plain Python, lists of these."""
        if isinstance(arg, Captured):
            found = self.env.get(arg)
            if found is None:
                if arg.constant is None:
                    return self.env[arg] if arg in self.env else _undefined(arg)
                found = self.env[arg] = self.constant(arg.constant.detach(), arg.name)
            return found if self.g.apart is None else self.seen(found)
        if isinstance(arg, list):
            return [self.resolve(a) for a in arg]
        if isinstance(arg, tuple):
            return tuple([self.resolve(a) for a in arg])
        if isinstance(arg, dict):
            return {key: self.resolve(a) for key, a in arg.items()}
        if isinstance(arg, Packed):
            return self.packed(arg)
        return arg

    def seen(self, found: Any) -> Any:
        """What a value is to the module call that nodes are made for."""
        assert self.g.apart is not None
        if isinstance(found, Quantised):
            return found.with_integers(self.g.apart.seen(found.integers, self.g.call))
        return self.g.apart.seen(found, self.g.call)

    def constant(self, tensor: torch.Tensor, name: str | None) -> Any:
        """A weight or a literal."""
        if tensor.is_quantized:
            return quantised.constant(self.g, lambda: tensor, name)
        return self.g.constant(tensor, name=name, parameter=name is not None)

    def packed(self, arg: Packed) -> Any:
        """A weight that is kept packed."""
        found = self.opened.get(arg)
        if found is None:
            found = self.opened[arg] = quantised.constant(self.g, arg.unpack, arg.name)
        return found

    def truth(self, condition: Any) -> Any:
        """A condition as True, False or a bool value."""
        return control.truth(self, condition)

    def counter(self, turn: Value) -> Size:
        """The number of a loop's turn."""
        return self.g.size_of(turn)

    def node(self, node: Node) -> None:
        """Lowers one node."""
        g = self.g
        g.scope, g.source = node.scope, node.source
        if g.apart is not None:
            self.enter_call(node.scope)
        args = {name: self.resolve(arg) for name, arg in node.args.items()}
        try:
            result = self.apply(node, args)
        except errors.OnnxExporterError as error:
            _locate(error, node)
            raise
        except (RecursionError, MemoryError, KeyboardInterrupt):
            raise
        except Exception as cause:
            raise errors.UnsupportedError(
                f"{node.op} cannot be lowered here ({type(cause).__name__}: {cause})\n  at {where(node.source)}, module {node.scope or '?'}"
            ) from cause
        self.keep(node, result)

    def apply(self, node: Node, args: dict[str, Any]) -> Any:
        """The result of one node, whatever kind of node it is."""
        if self.foreign is None:
            return self.builtin(node, args)
        first, last = self.foreign.find(node), self.foreign.fallback(node)
        if first is None and last is not None and self.translates(node):
            try:
                return self.builtin(node, args)
            except (errors.UnsupportedError, errors.UnsupportedOperatorError):
                pass
        handler = first or last
        if handler is None:
            return self.builtin(node, args)
        return handler(self, node, containers.plain(self, node, args) if self.graph.scripted else args)

    def translates(self, node: Node) -> bool:
        """Whether onnxport itself can lower a node."""
        if missing.has_function(node):
            return True
        return self.decomposer is not None and self.decomposer.exists(node) and not self.decomposer.missing(node, self.knows)

    def builtin(self, node: Node, args: dict[str, Any]) -> Any:
        """The result of one node by onnxport's own translation."""
        handler = self.structural.get(node.op) or self.structural.get(f"{node.op}.{node.overload}")
        if handler is not None:
            return handler(self, node, args)
        if self.graph.scripted:
            args = containers.plain(self, node, args)
            of_list = containers.of_stacked(self, node, args)
            if of_list is not None:
                return of_list
        if quantised.concerns(args):
            return quantised.lower(self, node, args)
        if scalars.handles(node):
            return scalars.lower(self, node, args)
        if self.graph.scripted:
            args = structural.as_vector(self, node, scalars.narrowed(self, node, args))
        folded = constants.compute(self.g, node, args)
        if folded is not None:
            return folded
        if complexes.meets(args):
            return complexes.lower(self, node, args, select)
        operator = registry.find(node.op, node.overload)
        if operator is None:
            if self.decomposer is None or not self.decomposer.exists(node):
                missing.refuse(node)  # inside a branch
            assert self.decomposer is not None
            return self.decomposer.lower(self, node, args)
        result = operator.function(self.g, **select(operator, node, args))
        if self.g.conditions:
            self.held += [Guard(condition_of(*condition), where(node.source), of_operator=True) for condition in self.g.conditions]
            self.g.conditions.clear()
        return result

    def keep(self, node: Node, result: Any) -> None:
        """Enters the result under the node's outputs."""
        outputs = node.outputs
        if not outputs:
            return
        if len(outputs) == 1:
            results = [result]
        else:
            results = list(result) if isinstance(result, (list, tuple)) else [result]
            if len(results) != len(outputs):
                raise errors.ShapeError(f"{node.op} gave {len(results)} results, PyTorch {len(outputs)}")
        for captured, value in zip(outputs, results, strict=True):
            if isinstance(value, (int, float, bool, complex)) and captured.kind == "tensor":
                value = as_tensor(self.g, value, captured.dtype)
            if isinstance(value, (Value, Quantised)):
                self.check(node, captured, value)
            self.env[captured] = value

    def check(self, node: Node, captured: Captured, value: Value | Quantised) -> None:
        """Holds dtype and shape against what PyTorch computed at the example sizes; learns the numbers of new symbols."""
        if isinstance(value, Quantised):
            value = value.integers
        if captured.dtype is not None:
            dtype = INTEGERS.get(captured.dtype) or from_torch(captured.dtype)
            if value.dtype is None:
                value.dtype = dtype
            elif value.dtype != dtype:
                raise self.contradiction(node, f"dtype {value.dtype.name}, PyTorch has {dtype.name}")
        if captured.shape is None:
            return
        if value.shape is None:
            value.shape = tuple([self.g.fresh(value, axis) for axis in range(len(captured.shape))])
        elif len(value.shape) != len(captured.shape):
            raise self.contradiction(node, f"rank {len(value.shape)}, PyTorch has {len(captured.shape)}")
        for size, seen in zip(value.shape, captured.shape, strict=True):
            if size == seen or seen is None:
                continue
            number = dims.evaluate(size, self.g.hints)
            if number is None and isinstance(size, Dim) and size.symbol is not None:
                self.g.hints[size.symbol.text] = seen
            elif number is not None and number != seen:
                raise self.contradiction(node, f"shape ({', '.join(map(str, value.shape))}), PyTorch has {captured.shape}")


    def contradiction(self, node: Node, what: str) -> errors.OnnxExporterError:
        """The error for a result that PyTorch's own run contradicts."""
        if self.foreign is not None and self.foreign.find(node):
            return errors.SymbolicFunctionError(f"the symbolic function for {node.op} gave {what}")
        return _contradiction(node, what)


def _undefined(arg: Captured) -> Any:
    raise errors.CaptureError(f"{arg} is used before it is computed")


def _contradiction(node: Node, what: str) -> errors.ShapeError:
    return errors.ShapeError(
        f"{node.op}{'.' + node.overload if node.overload else ''} was lowered to {what}\n  at {where(node.source)}, module {node.scope or '?'}; "
        "this is a fault of onnxport, please report it")


def _locate(error: errors.OnnxExporterError, node: Node) -> None:
    """Adds operator, source line and module to the message, once."""
    if getattr(error, "located", False):
        return
    text = str(error.args[0]) if error.args else ""
    place = f"\n  in {node.op}{'.' + node.overload if node.overload else ''} at {where(node.source)}, module {node.scope or '?'}"
    error.args = (text + place, *error.args[1:])
    error.located = True  # type: ignore[attr-defined]


def select(operator: registry.Operator, node: Node, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the function takes; one that it does not take must be neutral or have its default value."""
    takes = operator.takes
    chosen = {name: arg for name, arg in args.items() if name in takes}
    if len(chosen) != len(args):
        defaults = node.schema.defaults() if node.schema else {}
        for name, arg in args.items():
            if name not in takes and name not in registry.NEUTRAL and (name not in defaults or defaults[name] != arg):
                raise errors.UnsupportedError(f"{node.op} with {name}={arg} is not supported")
    return chosen


def as_tensor(g: Builder, value: Any, dtype: torch.dtype | None = None) -> Value:
    """A value, size, number or list of sizes as a tensor value."""
    if isinstance(value, Value):
        return value
    if isinstance(value, Dim):
        return g.scalar(value)
    if isinstance(value, (bool, int, float, complex)):
        return g.constant(torch.tensor(value, dtype=dtype))
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, (int, Dim)) and not isinstance(v, bool) for v in value):
        return g.sizes(list(value))
    if isinstance(value, torch.Tensor):
        return g.constant(value)
    if isinstance(value, Quantised):
        raise errors.UnsupportedError(f"an output of dtype {value.dtype} cannot be one of an ONNX graph: return its dequantize() or its int_repr()")
    raise errors.UnsupportedError(f"an output of type {type(value).__name__} cannot be an output of an ONNX graph")


Handler = Callable[[Lowering, Node, dict[str, Any]], Any]
