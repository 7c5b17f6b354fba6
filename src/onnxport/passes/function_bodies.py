"""What the nodes of one module call read, give and look like: from this, equal calls are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import onnx_ir as ir

from onnxport.module_calls import ModuleCall
from onnxport.target.weights import Weight

LITERAL = 1024  # bytes up to which a literal stands in the body; a larger one is stored once, in the graph
_GRAPH = ir.AttributeType.GRAPH


class Slot:
    """The value of an attribute or literal: of equal calls, it may differ.

    value: the attribute, or the tensor.   base: how an attribute of the function is called that stands in its place.
    """

    __slots__ = ("base", "name", "node", "same", "value")

    def __init__(self, base: str, value: Any, node: ir.Node | None = None, name: str = "value"):
        self.base, self.value, self.node, self.name = base, value, node, name
        self.same = _comparable(value)

    def attribute(self, name: str) -> ir.Attr:
        """The value as an attribute of the call."""
        if isinstance(self.value, ir.Attr):
            return ir.Attr(name, self.value.type, self.value.value)
        return ir.AttrTensor(name, self.value)


class Body:
    """The nodes of one run of a call.

    inputs: (name, value) of all that is read from outside; a value that the file does not have is None.
    literals: those that are copied into the body.   outputs: what somebody outside reads, results of `forward` first.
    order: the nodes as the outputs need them, so that it says nothing when they were made.
    key: the same for all calls whose nodes differ in the values of `slots` at most.
    """

    def __init__(self, call: ModuleCall, nodes: list[ir.Node], values: dict[str, ir.Value]):
        self.call, self.nodes = call, nodes
        self.inputs: list[tuple[str, ir.Value | None]] = []
        self.literals: list[ir.Value] = []
        self.slots: list[Slot] = []
        self._numbers: dict[int, int] = {}
        for name, value in call.arguments:
            self._argument(name, None if value is None else values.get(value))
        self._count = len(self.inputs)
        self.outputs = self._outputs([values[name] for name in call.results if name in values])
        self.order = _needed_order(nodes, self.outputs)
        written = [*self._described(self.order)]
        self._sort_inputs()
        self.key = (len(call.arguments), tuple(written), tuple([self._numbers[id(v)] for v in self.outputs]))

    def all_nodes(self) -> Iterator[ir.Node]:
        """The nodes, those inside subgraphs too."""
        return walk(self.nodes)

    def _argument(self, name: str, value: ir.Value | None) -> None:
        if value is not None and id(value) in self._numbers:
            value = None  # passed twice
        self.inputs.append((name, value))
        if value is not None:
            self._numbers[id(value)] = len(self.inputs)

    def _described(self, nodes: Iterable[ir.Node]) -> Iterator[Any]:
        """All that has to be equal, in order."""
        for node in nodes:
            yield node.domain, node.op_type, node.overload, len(node.outputs)
            for value in node.inputs:
                yield from self._read(value)
            for attribute in node.attributes.values():
                yield attribute.name, attribute.type
                if attribute.type == _GRAPH:
                    yield from self._subgraph(attribute.as_graph())
                else:
                    self.slots.append(Slot(_base(node, attribute.name), attribute, node, attribute.name))
            self._define(node.outputs)

    def _subgraph(self, graph: ir.Graph) -> Iterator[Any]:
        self._define(graph.inputs)
        yield len(graph.inputs), len(graph.outputs)
        yield from self._described(graph)
        yield tuple([self._numbers.get(id(value), 0) for value in graph.outputs])

    def _define(self, values: Iterable[ir.Value]) -> None:
        for value in values:
            self._count += 1
            self._numbers[id(value)] = self._count

    def _read(self, value: ir.Value | None) -> Iterator[Any]:
        if value is None:
            yield None
            return
        if id(value) not in self._numbers:
            self._define([value])
            tensor = literal(value)
            if tensor is None:
                self.inputs.append((_local_name(value, self.call), value))
                yield "outside"
            else:
                self.literals.append(value)
                self.slots.append(Slot("Constant_value", tensor))
                yield "literal", tensor.dtype, tuple(tensor.shape)
        yield self._numbers[id(value)]

    def _sort_inputs(self) -> None:
        """Weights come last; otherwise the order stays."""
        count = len(self.call.arguments)
        self.inputs[count:] = sorted(self.inputs[count:], key=lambda pair: pair[1] is not None and pair[1].is_initializer())

    def _outputs(self, results: list[ir.Value]) -> list[ir.Value]:
        made = {id(value): value for node in self.nodes for value in node.outputs}
        reads = Counter(id(value) for node in self.all_nodes() for value in node.inputs)
        wanted = {id(value): value for value in results if id(value) in made}
        for value in made.values():
            if value.is_graph_output() or len(value.uses()) > reads[id(value)]:
                wanted.setdefault(id(value), value)
        return list(wanted.values())


def walk(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attributes.values():
            if attribute.type == _GRAPH:
                yield from walk(attribute.as_graph())


def _needed_order(nodes: list[ir.Node], outputs: Iterable[ir.Value]) -> list[ir.Node]:
    """The nodes in the order in which the outputs need them, each after what it reads."""
    makers = {id(value): node for node in nodes for value in node.outputs}
    stack = [(makers[id(value)], False) for value in [*outputs, *(node.outputs[0] for node in nodes)]][::-1]
    seen: set[int] = set()
    order: list[ir.Node] = []
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            read = [makers[id(value)] for inner in walk([node]) for value in inner.inputs if id(value) in makers]
            stack += [(maker, False) for maker in reversed(read)]
    return order


def literal(value: ir.Value) -> Any:
    """The tensor of a small literal; None of a weight, of what comes from one, and of all that is computed."""
    maker = value.producer()
    if maker is not None:
        return maker.attributes["value"].value if is_constant(maker) else None
    tensor = value.const_value
    if not isinstance(tensor, Weight) or tensor.constant.parameter or tensor.constant.name or tensor.nbytes > LITERAL:
        return None
    return tensor


def is_constant(node: ir.Node) -> bool:
    """Whether it is a node that only holds a tensor."""
    return node.op_type == "Constant" and not node.domain and "value" in node.attributes and not node.attributes["value"].is_ref()


def merged(values: Sequence[ir.Value | None], into: ir.Value) -> None:
    """Gives `into` what is known of all `values` alike: dtype, rank and the dims that are the same."""
    known = [v for v in values if v is not None]
    first = known[0] if known else None
    if first is None or any(v.type != first.type for v in known):
        into.type = into.shape = None
        return
    into.type = first.type
    shapes = [v.shape for v in known if v.shape is not None]
    if len(shapes) < len(known) or len({len(shape) for shape in shapes}) > 1:
        into.shape = None
        return
    into.shape = ir.Shape([dims[0] if all(dim == dims[0] for dim in dims) else None for dims in zip(*shapes, strict=True)])


def _base(node: ir.Node, attribute: str) -> str:
    return f"{node.op_type}_{attribute.removeprefix('inferred::')}"


def _local_name(value: ir.Value, call: ModuleCall) -> str:
    """`linear.weight` for what is `body.0.linear.weight` outside of `body.0`."""
    name = value.name or "value"
    return name.removeprefix(f"{call.path}.") if value.is_initializer() else name.rpartition("/")[2]


def _comparable(value: Any) -> Any:
    if isinstance(value, ir.Attr):
        tensor = value.type == ir.AttributeType.TENSOR
        return value.type, _comparable(value.value) if tensor else repr(value.value)
    return value.dtype, tuple(value.shape), value.tobytes()
