"""Turns calls of modules into functions of the file (`export_modules_as_functions`), innermost first.

The nodes of one call stand one behind the other. What they read from outside becomes an input of the function, in this order: the
arguments of the module's `forward`, other values, weights. Small literals stand in the body. Calls whose nodes differ only in the values
of attributes and literals share a function: those that differ are attributes of it, named `inferred::<operator>_<attribute>`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onnxport.module_calls import ModuleCall
from onnxport.passes.function_bodies import Body, Slot, is_constant, literal, merged, walk
from onnxport.target.emit import CALL


def run(model: ir.Model, versions: Mapping[str, int]) -> None:
    """Makes functions of the calls that the nodes of `model` have in `meta`. versions: of the domains that are not of version 1."""
    maker = _Maker(model, versions)
    for level in _by_height(_runs(model.graph)):
        kinds: dict[Any, list[tuple[_Run, Body]]] = {}
        for found in level:
            body = Body(found.call, [m.node if isinstance(m, _Run) else m for m in found.members], maker.values)  # type: ignore[misc]
            kinds.setdefault((found.call.kind, body.key), []).append((found, body))
        for same in kinds.values():
            for (found, _), node in zip(same, maker.make([body for _, body in same]), strict=True):
                found.node = node
    _drop_literals(model.graph)


# ---------------------------------------------------------------------- which nodes belong together


@dataclass(eq=False)
class _Run:
    """Nodes of one call, one behind the other; runs of inner calls stand among them. node: what calls the function, once it is one."""

    call: ModuleCall
    members: list[ir.Node | _Run] = field(default_factory=list)
    node: ir.Node | None = None


def _runs(graph: ir.Graph) -> list[_Run]:
    """The runs that stand in no other."""
    outermost: list[_Run] = []
    stack: list[_Run] = []
    for node in graph:
        call = node.meta.get(CALL)
        if not stack or call is not stack[-1].call:
            chain = call.chain() if call is not None else []
            same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0].call is pair[1], zip(stack, chain, strict=False)))
            del stack[same:]
            for inner in chain[same:]:
                opened = _Run(inner)
                (stack[-1].members if stack else outermost).append(opened)
                stack.append(opened)
        if stack:
            stack[-1].members.append(node)
    return outermost


def _by_height(outermost: Iterable[_Run]) -> list[list[_Run]]:
    """All runs: first those that hold no other, then those that hold only such, and so on."""
    levels: list[list[_Run]] = []

    def height(found: _Run) -> int:
        own = max([height(m) + 1 for m in found.members if isinstance(m, _Run)], default=0)
        levels.extend([] for _ in range(own + 1 - len(levels)))
        levels[own].append(found)
        return own

    for found in outermost:
        height(found)
    return levels


# ---------------------------------------------------------------------- the functions


class _Maker:
    """Makes the functions of one model. values: those of the main graph, by name."""

    def __init__(self, model: ir.Model, versions: Mapping[str, int]):
        self.model, self.graph, self.versions = model, model.graph, versions
        self.values = {v.name: v for v in (*self.graph.inputs, *self.graph.initializers.values()) if v.name}
        self.values.update({v.name: v for node in self.graph for v in node.outputs if v.name})
        self._names: dict[str, int] = {}
        self._now: dict[int, ir.Value] = {}  # what stands in the graph in place of a value that went into a function

    def make(self, bodies: list[Body]) -> list[ir.Node]:
        """One function for equal bodies; returns the nodes that call it, which stand in the graph in place of the bodies."""
        domain = bodies[0].call.domain
        name = self._free(domain, bodies[0].call.name)
        inferred = _inferred(bodies)
        given = [{**_annotations(body), **{n: body.slots[i].attribute(n) for i, n in inferred.items()}} for body in bodies]
        calls = [self._call(body, domain, name, attributes) for body, attributes in zip(bodies, given, strict=True)]
        self.graph.remove([node for body in bodies for node in body.nodes])
        for body in bodies[1:]:
            _detach(body)
        graph = self._body_graph(bodies, inferred)
        declared = [ir.Attr(n, a.type, None) for n, a in {n: a for attributes in given for n, a in attributes.items()}.items()]
        self.model.functions[domain, name, ""] = ir.Function(domain, name, graph=graph, attributes=declared)
        self.model.opset_imports.setdefault(domain, self.versions.get(domain, 1))
        return calls

    def _free(self, domain: str, name: str) -> str:
        """The name, or `Name.1` for another body of the class."""
        found = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(1)))
        return next(n for n in found if (domain, n, "") not in self.model.functions)

    def _call(self, body: Body, domain: str, name: str, attributes: Mapping[str, ir.Attr]) -> ir.Node:
        """The node in place of a body, which gives what the body gave to those outside."""
        outputs = [ir.Value(name=v.name, type=v.type, shape=v.shape) for v in body.outputs]
        node = ir.Node(domain, name, [self._present(value) for _, value in body.inputs], list(attributes.values()), outputs=outputs,
                       name=self._node_name(body, name))
        self.graph.insert_before(body.nodes[0], node)
        inside = {id(inner) for inner in body.all_nodes()}
        for old, new in zip(body.outputs, outputs, strict=True):
            assert new.name is not None
            self.values[new.name] = self._now[id(old)] = new
            for user, index in old.uses():
                if id(user) not in inside:
                    user.replace_input_with(index, new)
            if old.is_graph_output():
                for position, output in enumerate(self.graph.outputs):
                    if output is old:
                        self.graph.outputs[position] = new
        return node

    def _present(self, value: ir.Value | None) -> ir.Value | None:
        return None if value is None else self._now.get(id(value), value)

    def _node_name(self, body: Body, name: str) -> str:
        path = "/" + "/".join(call.path for call in body.call.chain() if call.path)
        wanted = path if path != "/" else f"/{name}"
        count = self._names[wanted] = self._names.get(wanted, -1) + 1
        return f"{wanted}_{count}" if count else wanted

    def _body_graph(self, bodies: list[Body], inferred: Mapping[int, str]) -> ir.Graph:
        """The first of equal bodies as the graph of a function."""
        body = bodies[0]
        names = _Names(body)
        inputs = [ir.Value(name=names.free(name)) for name, _ in body.inputs]
        for position, value in enumerate(inputs):
            merged([other.inputs[position][1] for other in bodies], value)
        literals = [_constant(value, names) for value in body.literals]
        replaced = {id(self._present(old)): new for (_, old), new in zip(body.inputs, inputs, strict=True) if old is not None}
        replaced.update({id(old): node.outputs[0] for old, node in zip(body.literals, literals, strict=True)})
        for node in body.all_nodes():
            for index, read in enumerate(node.inputs):
                if read is not None and id(read) in replaced:
                    node.replace_input_with(index, replaced[id(read)])
        _refer(body.slots, literals, inferred)
        names.rename(bodies)
        nodes = [*literals, *body.nodes]
        return ir.Graph(inputs, body.outputs, nodes=nodes, opset_imports=self._imports(nodes), name=body.call.name)

    def _imports(self, nodes: Iterable[ir.Node]) -> dict[str, int]:
        used = {"": None, **{node.domain: None for node in walk(nodes)}}
        return {domain: self.model.opset_imports[domain] for domain in used}


class _Names:
    """Names inside a function."""

    def __init__(self, body: Body):
        self.taken = {v.name for node in body.all_nodes() for a in node.attributes.values() if a.type == ir.AttributeType.GRAPH
                      for v in (*a.as_graph().inputs, *(o for inner in a.as_graph() for o in inner.outputs))}
        self.module = body.call.path
        self.counts: dict[str, int] = {}

    def free(self, wanted: str) -> str:
        """`wanted`, or with a number behind it."""
        name = wanted
        while name in self.taken:
            count = self.counts[wanted] = self.counts.get(wanted, 0) + 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    def rename(self, bodies: list[Body]) -> None:
        """Nodes and values of the first body lose the path of its module; types become those that are true of all."""
        for same in zip(*[body.order for body in bodies], strict=True):
            node = same[0]
            path = node.name = self._local(node.name or node.op_type)
            for index, value in enumerate(node.outputs):
                if value.name:
                    value.name = self.free(f"{path}_output_{index}")
                    merged([other.outputs[index] for other in same], value)


    def _local(self, name: str) -> str:
        """The path of a node from its module on: `linear/Gemm` for `/body/body.0/body.0.linear/Gemm` in `body.0`."""
        inner = name.partition(f"/{self.module}/")[2] if self.module else ""
        return (inner or name.lstrip("/")).removeprefix(f"{self.module}.")


def _inferred(bodies: list[Body]) -> dict[int, str]:
    """For each slot in which the bodies differ, the attribute that takes its place; slots that always agree share one."""
    found: dict[int, str] = {}
    if len(bodies) == 1:
        return found
    known: dict[Any, str] = {}
    count: dict[str, int] = {}
    for index, slot in enumerate(bodies[0].slots):
        values = tuple([body.slots[index].same for body in bodies])
        if all(value == values[0] for value in values):
            continue
        if (slot.base, values) not in known:
            number = count[slot.base] = count.get(slot.base, -1) + 1
            known[slot.base, values] = f"inferred::{slot.base}" + (f"_{number}" if number else "")
        found[index] = known[slot.base, values]
    return found


def _annotations(body: Body) -> dict[str, ir.Attr]:
    """The annotated variables of the module, as attributes."""
    return {name: _attribute(name, value) for name, value in body.call.attributes.items()}


def _attribute(name: str, value: Any) -> ir.Attr:
    if isinstance(value, bool | int):
        return ir.AttrInt64(name, int(value))
    if isinstance(value, float):
        return ir.AttrFloat32(name, value)
    if isinstance(value, str):
        return ir.AttrString(name, value)
    if all(isinstance(v, str) for v in value):
        return ir.AttrStrings(name, value)
    if all(isinstance(v, int) for v in value):
        return ir.AttrInt64s(name, [int(v) for v in value])
    return ir.AttrFloat32s(name, [float(v) for v in value])


def _constant(value: ir.Value, names: _Names) -> ir.Node:
    """A literal as a node of the body."""
    name = names.free("const")
    return ir.Node("", "Constant", [], [ir.AttrTensor("value", literal(value))],
                   outputs=[ir.Value(name=name, type=value.type, shape=value.shape)], name=f"Constant_{name}")


def _refer(slots: list[Slot], literals: list[ir.Node], inferred: Mapping[int, str]) -> None:
    """Attributes of nodes that differ between calls refer to those of the function."""
    constants = iter(literals)
    for index, slot in enumerate(slots):
        node = slot.node if slot.node is not None else next(constants)
        if index in inferred:
            node.attributes[slot.name] = ir.RefAttr(slot.name, inferred[index], node.attributes[slot.name].type)


def _detach(body: Body) -> None:
    """Nodes that are in no graph any more read nothing."""
    for node in body.all_nodes():
        for index in range(len(node.inputs)):
            node.replace_input_with(index, None)


def _drop_literals(graph: ir.Graph) -> None:
    """Literals that stand in functions only."""
    for value in [v for v in graph.initializers.values() if not v.uses() and literal(v) is not None]:
        assert value.name is not None
        if value in graph.inputs:
            graph.inputs.remove(value)
        del graph.initializers[value.name]
    graph.remove([node for node in graph if is_constant(node) and not node.outputs[0].uses() and not node.outputs[0].is_graph_output()])
