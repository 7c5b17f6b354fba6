"""Turns what a builder holds into an `onnx_ir.Model`: only what the outputs need, with names, types and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
import torch

from onnxport import errors
from onnxport.module_calls import ModuleCall
from onnxport.target.builder import Builder
from onnxport.target.value import Block, DataType, Node, Value, Window, behind
from onnxport.target.weights import Weight

_LARGE = 1 << 16  # bytes from which it matters that a weight is stored once
_FIRST_IR_WITHOUT_INPUTS = 4  # before this, each initializer must be a graph input too


CALL = "call"  # under which a node keeps the module call that it belongs to
Where = Callable[[Any, str], tuple[str, dict[str, str]]]


@dataclass
class Naming:
    """What the user wants things to be called.

    outputs: one name for each output.   weights: a parameter's qualified name -> the wanted one.
    dims: output name -> axis -> name that wins over the derived one.
    """

    outputs: Sequence[str]
    weights: dict[str, str] = field(default_factory=dict)
    dims: dict[str, dict[int, str]] = field(default_factory=dict)


def emit(g: Builder, outputs: Sequence[Value], naming: Naming, *, ir_version: int, graph_name: str = "main_graph",
         initializers_as_inputs: bool = False, where: Where | None = None, producer_version: str = "") -> ir.Model:
    """The model. `where`: turns a node's source and scope into its doc string and metadata (None: it has none)."""
    emitter = _Emitter(g, naming, literals_inline=initializers_as_inputs or ir_version < _FIRST_IR_WITHOUT_INPUTS, where=where)
    results = emitter.graph_outputs(outputs)
    needed = _needed(g.root, results)
    emitter.layouts = _layouts(needed)
    emitter.reserve(naming.outputs)
    emitter.reserve(v.name for v in g.root.inputs if v.name)
    inputs = [emitter.graph_input(v) for v in g.root.inputs]
    for value, name in zip(results, naming.outputs, strict=True):
        emitter.name_output(value, name)
    nodes = emitter.nodes(g.root, needed)
    emitter.name_tensors_of_calls()
    finals = [emitter.declared(emitter.value(v), v, name) for v, name in zip(results, naming.outputs, strict=True)]
    initializers = list(emitter.initializers.values())
    if emitter.literals_inline:
        inputs += initializers
    graph = ir.Graph(inputs, finals, nodes=nodes, initializers=initializers, opset_imports=_used_domains(g, needed), name=graph_name)
    return ir.Model(graph, ir_version=ir_version, producer_name="onnxport", producer_version=producer_version)


def _needed(root: Block, outputs: Iterable[Value]) -> set[Node]:
    """The nodes that the outputs depend on, those inside subgraphs too."""
    needed: set[Node] = set()
    stack = [behind(v).node for v in outputs]
    while stack:
        node = stack.pop()
        if node is None or node in needed:
            continue
        needed.add(node)
        read = node.written[1] if node.written else node.inputs
        stack.extend([behind(v).node for v in read if v is not None])
        for attr in node.attrs.values():
            if isinstance(attr, Block):
                stack.extend([behind(v).node for v in attr.outputs])
    return needed


def _layouts(needed: Iterable[Node]) -> dict[int, tuple[Value, list[int]]]:
    """Large weights that are read in two layouts (an embedding that is the output layer too): the one that is stored, and how
    the other is transposed from it when the model runs, so that a tied weight is stored once."""
    stored: dict[int, Value] = {}
    others: list[Value] = []
    for node in needed:
        for value in node.written[1] if node.written else node.inputs:
            if value is None or value.const is None or value.const.is_lazy or not value.const.parameter:
                continue
            tensor = value.const.tensor
            if tensor.numel() * tensor.element_size() >= _LARGE and tensor.dim() > 1:
                if tensor.is_contiguous():
                    stored[tensor.data_ptr()] = value
                else:
                    others.append(value)
    result = {}
    for value in others:
        tensor = value.const.tensor  # type: ignore[union-attr]
        base = stored.get(tensor.data_ptr())
        if base is None or base.dtype != value.dtype:
            continue
        strides = tensor.stride()
        order = sorted(range(tensor.dim()), key=lambda axis: -strides[axis])
        perm = [order.index(axis) for axis in range(tensor.dim())]
        turned = base.const.tensor.permute(perm) if base.const is not None else None
        if turned is not None and turned.shape == tensor.shape and turned.stride() == strides:
            result[id(value)] = (base, perm)
    return result


def _used_domains(g: Builder, needed: set[Node]) -> dict[str, int]:
    used = {node.domain for node in needed}
    return {domain: version for domain, version in g.domains.items() if domain == "" or domain in used}


class _Emitter:
    def __init__(self, g: Builder, naming: Naming, *, literals_inline: bool, where: Where | None):
        self.g, self.naming, self.literals_inline, self.where = g, naming, literals_inline, where
        self.made: dict[int, ir.Value] = {}
        self.initializers: dict[Any, ir.Value] = {}
        self.taken: set[str] = set()
        self.counts: dict[str, int] = {}
        self.types: dict[Any, ir.TensorType] = {}
        self.pending: list[ir.Node] = []
        self.depth = 0  # blocks around the nodes that are being made
        self.layouts: dict[int, tuple[Value, list[int]]] = {}
        self.calls: set[ModuleCall] = set()

    # ---------------------------------------------------------------- names

    def reserve(self, names: Iterable[str]) -> None:
        self.taken.update(names)

    def unique(self, wanted: str) -> str:
        """`wanted`, or with a number behind it where it is taken."""
        if wanted not in self.taken:
            self.taken.add(wanted)
            return wanted
        count = self.counts.get(wanted, 0)
        while True:
            count += 1
            name = f"{wanted}_{count}"
            if name not in self.taken:
                self.counts[wanted] = count
                self.taken.add(name)
                return name

    # ---------------------------------------------------------------- values

    def typed(self, dtype: DataType | None) -> ir.TensorType | None:
        if dtype is None:
            return None
        found = self.types.get(dtype)
        if found is None:
            found = self.types[dtype] = ir.TensorType(dtype)
        return found

    def fill(self, made: ir.Value, value: Value) -> ir.Value:
        made.type = self.typed(value.dtype)
        if value.sequence and made.type is not None:
            made.type = ir.SequenceType(made.type)
        if value.shape is not None:
            made.shape = ir.Shape([s if isinstance(s, int) else str(s) for s in value.shape])
        return made

    def graph_input(self, value: Value) -> ir.Value:
        made = self.fill(ir.Value(name=value.name), value)
        self.made[id(value)] = made
        return made

    def graph_outputs(self, outputs: Sequence[Value]) -> list[Value]:
        """Each output as a value of its own that a node of the graph makes."""
        results: list[Value] = []
        seen: set[int] = set()
        for value in outputs:
            real = self.g.real(behind(value))
            if real.dtype is None and real.node is not None:
                raise errors.UnsupportedError(
                    f"nothing tells the dtype of what {real.node.domain}::{real.node.op_type} gives, which is an output of the graph: use setType in "
                    "its symbolic function, or give the operator a fake implementation (torch.library.register_fake)")
            if real.node is None or id(real) in seen or real.name is not None:
                real = self.g.again(real)
            seen.add(id(real))
            results.append(real)
        return results

    def name_output(self, value: Value, name: str) -> None:
        self.made[id(value)] = self.fill(ir.Value(name=name), value)

    def declared(self, made: ir.Value, value: Value, name: str) -> ir.Value:
        """Puts the user's dim names over the derived ones."""
        axes = self.naming.dims.get(name)
        if axes and value.shape is not None:
            sizes: list[int | str] = [s if isinstance(s, int) else str(s) for s in value.shape]
            for axis, label in axes.items():
                if axis < len(sizes):
                    sizes[axis] = label
            made.shape = ir.Shape(sizes)
        return made

    def value(self, value: Value) -> ir.Value:
        found = self.made.get(id(value))
        if found is None:
            if isinstance(value, Window):
                return self.value(value.origin)
            if value.const is None:
                raise errors.ShapeError(f"{value} is read before it is made")
            found = self.made[id(value)] = self.constant(value)
        return found

    def constant(self, value: Value) -> ir.Value:
        """An initializer; equal views of one weight stand once."""
        if id(value) in self.layouts:
            return self.transposed(value, *self.layouts[id(value)])
        const = value.const
        assert const is not None and value.dtype is not None and value.shape is not None
        key: Any = id(value)
        if not const.is_lazy:
            t = const.tensor
            key = (t.data_ptr() or id(t), tuple(t.shape), t.stride(), t.dtype) if t.layout == torch.strided and t.numel() else id(value)
        found = self.initializers.get(key)
        if found is not None:
            return found
        shape = tuple(int(s) for s in value.shape)  # type: ignore[arg-type]
        if const.name:
            name = self.unique(self.naming.weights.get(const.name, const.name))
        else:
            name = self.unique("const")
        made = self.fill(ir.Value(name=name), value)
        weight = Weight(const, value.dtype, shape, name)
        if self.literals_inline and const.name is None:
            self.made[id(value)] = made
            node = ir.Node("", "Constant", [], [ir.AttrTensor("value", weight)], outputs=[made], name=self.unique("Constant"))
            self.pending.append(node)
            return made
        made.const_value = weight
        self.initializers[key] = made
        return made

    def transposed(self, value: Value, base: Value, perm: list[int]) -> ir.Value:
        """A stored weight in another layout, by a node (ONNX Runtime folds it when it loads the file)."""
        source = self.value(base)
        made = self.made[id(value)] = self.fill(ir.Value(name=self.unique(f"{source.name}_transposed")), value)
        self.pending.append(ir.Node("", "Transpose", [source], [ir.AttrInt64s("perm", perm)], outputs=[made], name=self.unique("Transpose")))
        return made

    # ---------------------------------------------------------------- nodes

    def nodes(self, block: Block, needed: set[Node]) -> list[ir.Node]:
        """The needed nodes of a block, in order."""
        result: list[ir.Node] = []
        for node in block.nodes:
            if node in needed:
                made = self.node(node, needed)
                if self.pending and not self.depth:  # other blocks may read it too
                    if self.calls:  # of constants only: no call is interrupted
                        result[:0] = self.pending
                    else:
                        result += self.pending
                    self.pending = []
                result.append(made)
        return result

    def node(self, node: Node, needed: set[Node]) -> ir.Node:
        op_type, inputs, attrs = node.written or (node.op_type, node.inputs, node.attrs)
        given = [None if v is None else self.value(v) for v in inputs]
        name = self.unique(_node_name(node.scope, op_type))
        attributes = [self.attribute(key, attr, needed) for key, attr in attrs.items()]
        outputs = []
        for index, value in enumerate(node.outputs):
            made = self.made.get(id(value))
            if made is None:
                made = self.made[id(value)] = self.fill(ir.Value(name=self.unique(f"{name}_output_{index}")), value)
            outputs.append(made)
        doc, metadata = self.where(node.source, node.scope) if self.where is not None else (None, None)
        made_node = ir.Node(node.domain, op_type, given, attributes, outputs=outputs, name=name, doc_string=doc, metadata_props=metadata)
        if node.call is not None:
            made_node.meta[CALL] = node.call
            self.calls.update(node.call.chain())
        return made_node

    def name_tensors_of_calls(self) -> None:
        """Arguments and results of module calls by name; None for what is not in the file."""
        for call in self.calls:
            call.arguments = [(name, self.name_of(value)) for name, value in call.arguments]
            call.results = [self.name_of(value) for value in call.results]

    def name_of(self, value: Value | None) -> str | None:
        found = None if value is None else self.made.get(id(value))
        return None if found is None else found.name

    def attribute(self, name: str, value: Any, needed: set[Node]) -> ir.Attr:
        """A plain Python attribute as onnx_ir's."""
        if isinstance(value, Block):
            return ir.AttrGraph(name, self.subgraph(value, needed))
        if isinstance(value, DataType):
            return ir.AttrInt64(name, int(value))
        if isinstance(value, (bool, int)):
            return ir.AttrInt64(name, int(value))
        if isinstance(value, float):
            return ir.AttrFloat32(name, value)
        if isinstance(value, str):
            return ir.AttrString(name, value)
        if isinstance(value, (list, tuple)):
            if all(isinstance(v, int) for v in value):
                return ir.AttrInt64s(name, list(value))
            if all(isinstance(v, (int, float)) for v in value):
                return ir.AttrFloat32s(name, [float(v) for v in value])
            if all(isinstance(v, str) for v in value):
                return ir.AttrStrings(name, list(value))
            if all(hasattr(v, "data_ptr") for v in value):
                return ir.AttrTensors(name, [_held(v, name) for v in value])
        if hasattr(value, "data_ptr"):
            return ir.AttrTensor(name, _held(value, name))
        raise TypeError(f"attribute {name} of type {type(value).__name__}")

    def subgraph(self, block: Block, needed: set[Node]) -> ir.Graph:
        inputs = []
        for value in block.inputs:
            made = self.fill(ir.Value(name=self.unique(value.name or "in")), value)
            self.made[id(value)] = made
            inputs.append(made)
        self.depth += 1
        nodes = self.nodes(block, needed)
        self.depth -= 1
        return ir.Graph(inputs, [self.value(v) for v in block.outputs], nodes=nodes, name=self.unique("body"))


def _held(tensor: torch.Tensor, name: str) -> Weight:
    """A tensor that is an attribute."""
    from onnxport.target.dtypes import from_torch
    from onnxport.target.value import Constant

    return Weight(Constant(tensor), from_torch(tensor.dtype), tuple(tensor.shape), name)


def _node_name(scope: str, op_type: str) -> str:
    """`/features/features.0/Conv` for a node of `AlexNet/features/features.0`."""
    path = scope.split("/", 1)[1] if "/" in scope else ""
    return f"/{path}/{op_type}" if path else f"/{op_type}"

