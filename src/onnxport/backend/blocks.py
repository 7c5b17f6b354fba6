"""Runs a graph that holds kept nodes: what lies between them goes to ONNX Runtime in parts, control flow around them is run here."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import onnx
import onnx.reference
import torch

from onnxport.backend import kept
from onnxport.backend.arrays import attributes_of, constant, to_numpy_value, to_torch_value, type_of
from onnxport.runtime import RunError, Session

Values = ChainMap[str, Any]
_SCAN_WITHOUT_BATCH_FROM = 9
STANDARD = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})


class Step(Protocol):
    """One part of a block."""

    def run(self, values: Values) -> None:
        """Reads its inputs from `values` and enters its outputs."""


class Model:
    """What all blocks of one model share.

    functions: the caller's implementations by `domain::Name`.   providers: of ONNX Runtime.
    """

    def __init__(self, proto: onnx.ModelProto, functions: Mapping[str, kept.Function], providers: Sequence[str]):
        self.ir_version, self.opsets, self.functions, self.providers = proto.ir_version, list(proto.opset_import), functions, providers
        self.opset = max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=1)
        self.declared = {info.name: info.type for info in [*proto.graph.value_info, *proto.graph.input, *proto.graph.output]}

    def is_kept(self, node: onnx.NodeProto) -> bool:
        """Whether a node is for PyTorch or for the caller's function."""
        return kept.key_of(node) in self.functions or not is_known(node.domain)

    def file(self, nodes: Sequence[onnx.NodeProto], feeds: Mapping[str, Any], outputs: Sequence[str],
             constants: Mapping[str, onnx.TensorProto]) -> bytes:
        """Some nodes as a model of their own."""
        inputs = [onnx.helper.make_value_info(name, type_of(value, name, self.declared.get(name))) for name, value in feeds.items()]
        graph = onnx.helper.make_graph(nodes, "part", inputs, [onnx.ValueInfoProto(name=name) for name in outputs],
                                       [_named(tensor, name) for name, tensor in constants.items()])
        content: bytes = onnx.helper.make_model(graph, ir_version=self.ir_version, opset_imports=self.opsets).SerializeToString()
        return content


def is_known(domain: str) -> bool:
    """Whether the nodes of a domain are for ONNX Runtime."""
    return domain in STANDARD or domain.startswith("com.microsoft")


class Block:
    """A graph: a list of steps."""

    def __init__(self, graph: onnx.GraphProto, model: Model, outer: Mapping[str, onnx.TensorProto] | None = None):
        self.graph = graph
        self.inputs, self.outputs = [i.name for i in graph.input], [o.name for o in graph.output]
        fed = set(self.inputs)
        self.constants = {**(outer or {}), **{t.name: t for t in graph.initializer if t.name not in fed}}
        self.defaults = {t.name: constant(t) for t in graph.initializer if t.name in fed}
        nodes = [node for node in graph.node if not self._is_constant(node)]
        self.steps = list(self._steps(nodes, model))

    def _is_constant(self, node: onnx.NodeProto) -> bool:
        if node.op_type != "Constant" or node.domain not in STANDARD or node.attribute[0].name != "value":
            return False
        self.constants[node.output[0]] = node.attribute[0].t
        return True

    def _steps(self, nodes: Sequence[onnx.NodeProto], model: Model) -> Iterator[Step]:
        last = _last_reads(nodes, self.outputs)
        together: list[onnx.NodeProto] = []
        for position, node in enumerate(nodes):
            special = model.is_kept(node) or holds_kept(node, model)
            if not special:
                together.append(node)
            if together and (special or position == len(nodes) - 1):
                last_here = position - 1 if special else position
                made = [name for other in together for name in other.output if last.get(name, -1) > last_here]
                yield Part(together, made, model, self.constants)
                together = []
            if special:
                yield Kept(node, model, self.constants) if model.is_kept(node) else control(node, model, self.constants)

    def run(self, given: Mapping[str, Any], outer: Values | None = None) -> list[Any]:
        """The outputs in order. given: the inputs.   outer: what the graphs around this one have."""
        values: Values = ChainMap({**self.defaults, **given}, *(outer.maps if outer is not None else []))
        for step in self.steps:
            step.run(values)
        return [look_up(name, values, self.constants) for name in self.outputs]


def look_up(name: str, values: Mapping[str, Any], constants: Mapping[str, onnx.TensorProto]) -> Any:
    """The value of a name; None for an input that is left out."""
    if name in values:
        return values[name]
    if name in constants:
        return constant(constants[name])
    if not name:
        return None
    raise RunError(f"the value {name!r} is read before it is computed")


def reads(node: onnx.NodeProto) -> set[str]:
    """The names that a node reads, those that its graphs take from around them too."""
    names = {name for name in node.input if name}
    for graph in graphs_of(node):
        own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        inner = {o.name for o in graph.output}
        for other in graph.node:
            inner |= reads(other)
            own |= set(other.output)
        names |= inner - own
    return names


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that a node holds."""
    return [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]


def holds_kept(node: onnx.NodeProto, model: Model) -> bool:
    """Whether a kept node stands anywhere in the graphs of a node."""
    return any(model.is_kept(inner) or holds_kept(inner, model) for graph in graphs_of(node) for inner in graph.node)


def _last_reads(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> dict[str, int]:
    """The position of the last node that reads a name; for the graph's outputs one behind the end."""
    last = {name: position for position, node in enumerate(nodes) for name in reads(node)}
    return {**last, **dict.fromkeys(outputs, len(nodes))}


def _named(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    if tensor.name == name:
        return tensor
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


# ---------------------------------------------------------------------- steps


class Part:
    """Nodes that ONNX Runtime runs together; one by one where it does not take them together, and onnx's reference where it does not at all."""

    def __init__(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], model: Model, constants: Mapping[str, onnx.TensorProto]):
        self.nodes, self.outputs, self.model = list(nodes), list(outputs), model
        made = {name for node in nodes for name in node.output if name}
        read = {name for node in nodes for name in reads(node)} - made
        self.constants = {name: constants[name] for name in sorted(read) if name in constants}
        self.reads = sorted(read - set(self.constants))
        self.sessions: dict[Any, Session] = {}
        self.split: list[Step] = []

    def run(self, values: Values) -> None:
        """Loads the part for the types at hand, once, and runs it."""
        if not self.outputs:
            return
        if self.split:
            for step in self.split:
                step.run(values)
            return
        feeds = {name: look_up(name, values, {}) for name in self.reads}
        key = tuple([_kind(value) for value in feeds.values()])
        if key not in self.sessions:
            content = self.model.file(self.nodes, feeds, self.outputs, self.constants)
            try:
                self.sessions[key] = Session(content, self.model.providers)
            except RunError as error:
                self._apart(error, content)
                self.run(values)
                return
        values.update(zip(self.outputs, self.sessions[key].run(feeds)))

    def _apart(self, error: RunError, content: bytes) -> None:
        if len(self.nodes) == 1:
            node = self.nodes[0]
            is_block = node.op_type in CONTROL
            self.split = [control(node, self.model, self.constants) if is_block else Referenced(node, content, self.reads, self.outputs, error)]
            return
        every = set(self.outputs).union(*[reads(node) for node in self.nodes])
        self.split = [Part([node], [name for name in node.output if name in every], self.model, self.constants) for node in self.nodes]


def _kind(value: Any) -> Any:
    if isinstance(value, list):
        return [_kind(v) for v in value[:1]].__repr__()
    return (value.dtype, value.dim()) if isinstance(value, torch.Tensor) else type(value)


class Referenced:
    """One node of the standard that ONNX Runtime has no kernel for, as onnx's reference computes it."""

    def __init__(self, node: onnx.NodeProto, content: bytes, inputs: Sequence[str], outputs: Sequence[str], error: RunError):
        self.inputs, self.outputs = inputs, outputs
        try:
            self.evaluator = onnx.reference.ReferenceEvaluator(onnx.load_from_string(content))
        except Exception as cause:
            raise RunError(f"neither ONNX Runtime nor onnx's reference runs {kept.key_of(node)}: {error}; {cause}") from error

    def run(self, values: Values) -> None:
        """Runs the node on arrays."""
        feeds = {name: to_numpy_value(look_up(name, values, {})) for name in self.inputs}
        values.update(zip(self.outputs, [to_torch_value(value) for value in self.evaluator.run(None, feeds)]))


class Kept:
    """A node that PyTorch or the caller's function runs."""

    def __init__(self, node: onnx.NodeProto, model: Model, constants: Mapping[str, onnx.TensorProto]):
        self.node, self.constants = node, constants
        found = kept.implementation(node, model.functions)
        if found is None:
            raise RunError(f"nobody runs {kept.key_of(node)}")  # the backend has said more before it comes to this
        self.call = found

    def run(self, values: Values) -> None:
        """Calls it with tensors."""
        inputs = [look_up(name, values, self.constants) for name in self.node.input]
        with torch.no_grad():
            made = kept.results(self.node, self.call(inputs))
        values.update({name: value for name, value in zip(self.node.output, made) if name})


# ---------------------------------------------------------------------- control flow


def control(node: onnx.NodeProto, model: Model, constants: Mapping[str, onnx.TensorProto]) -> Step:
    """A step for a node with graphs of its own."""
    if node.op_type not in CONTROL or node.domain not in STANDARD:
        raise RunError(f"{kept.key_of(node)} with a kept operator inside is not supported")
    if node.op_type == "Scan" and model.opset < _SCAN_WITHOUT_BATCH_FROM:
        raise RunError(f"Scan of opset {model.opset} with a kept operator inside is not supported: it has another form from opset "
                       f"{_SCAN_WITHOUT_BATCH_FROM} on")
    step: Step = CONTROL[node.op_type](node, model, constants)
    return step


class _Control:
    """A node with graphs of its own."""

    def __init__(self, node: onnx.NodeProto, model: Model, constants: Mapping[str, onnx.TensorProto]):
        self.node, self.constants = node, constants
        self.blocks = {a.name: Block(a.g, model, constants) for a in node.attribute if a.type == onnx.AttributeProto.GRAPH}
        self.attributes = {name: value for name, value in attributes_of(node).items() if name not in self.blocks}

    def inputs(self, values: Values) -> list[Any]:
        """What the node reads, None for what is left out."""
        return [look_up(name, values, self.constants) for name in self.node.input]

    def enter(self, values: Values, results: Sequence[Any]) -> None:
        """Enters the node's outputs."""
        values.update({name: value for name, value in zip(self.node.output, results) if name})


class If(_Control):
    """One of two blocks."""

    def run(self, values: Values) -> None:
        """Runs the branch that the condition names."""
        (condition,) = self.inputs(values)
        self.enter(values, self.blocks["then_branch" if bool(condition) else "else_branch"].run({}, values))


class Loop(_Control):
    """A block as often as a count and a condition say."""

    def run(self, values: Values) -> None:
        """Runs the iterations; what they give beside the carried values is stacked."""
        count, condition, *carried = self.inputs(values)
        body = self.blocks["body"]
        scanned: list[list[Any]] = [[] for _ in body.outputs[1 + len(carried):]]
        going, iteration = condition is None or bool(condition), 0
        while going and (count is None or iteration < int(count)):
            given = [torch.tensor(iteration), torch.tensor(going), *carried]
            again, *made = body.run(dict(zip(body.inputs, given)), values)
            carried, going, iteration = made[: len(carried)], bool(again), iteration + 1
            for seen, value in zip(scanned, made[len(carried):]):
                seen.append(value)
        infos = body.graph.output[1 + len(carried):]
        self.enter(values, [*carried, *[torch.stack(seen) if seen else _nothing(info) for seen, info in zip(scanned, infos)]])


class Scan(_Control):
    """A block for each slice of some tensors."""

    def run(self, values: Values) -> None:
        """Runs along the scanned axes, each in its own direction."""
        body, given = self.blocks["body"], self.inputs(values)
        states = len(given) - self.attributes["num_scan_inputs"]
        carried, slices = given[:states], self._slices(given[states:])
        scanned: list[list[Any]] = [[] for _ in body.outputs[states:]]
        for parts in zip(*slices):
            made = body.run(dict(zip(body.inputs, [*carried, *parts])), values)
            carried = made[:states]
            for seen, value in zip(scanned, made[states:]):
                seen.append(value)
        self.enter(values, [*carried, *self._stacked(scanned)])

    def _slices(self, tensors: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
        axes, backwards = self._per("scan_input_axes", len(tensors)), self._per("scan_input_directions", len(tensors))
        return [list(t.unbind(axis))[:: -1 if back else 1] for t, axis, back in zip(tensors, axes, backwards)]

    def _stacked(self, scanned: Sequence[list[Any]]) -> list[Any]:
        axes, backwards = self._per("scan_output_axes", len(scanned)), self._per("scan_output_directions", len(scanned))
        infos = self.blocks["body"].graph.output[len(self.blocks["body"].outputs) - len(scanned):]
        return [torch.stack(seen[:: -1 if back else 1], axis) if seen else _nothing(info, axis)
                for seen, axis, back, info in zip(scanned, axes, backwards, infos)]

    def _per(self, name: str, count: int) -> list[int]:
        return list(self.attributes.get(name, [0] * count))


def _nothing(info: onnx.ValueInfoProto, axis: int = 0) -> torch.Tensor:
    """What no iteration gives: as the file declares one, with no entries. A size that it does not declare is 0."""
    declared = info.type.tensor_type
    sizes = [dim.dim_value for dim in declared.shape.dim]
    sizes.insert(axis if axis >= 0 else len(sizes) + 1 + axis, 0)
    empty = onnx.helper.make_tensor("empty", declared.elem_type, [0], [])
    return torch.empty(sizes, dtype=constant(empty).dtype)


CONTROL: dict[str, type[If] | type[Loop] | type[Scan]] = {"If": If, "Loop": Loop, "Scan": Scan}
