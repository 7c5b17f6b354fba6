"""Captures through torch.export: an `ExportedProgram`, a `.pt2` file, or a module that torch.export compiles."""

from __future__ import annotations

import os
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Block, Graph, Mutation, Value
from onnxport.capture import fx, torch_private
from onnxport.capture.trace import Traced

try:
    from torch.export.graph_signature import InputKind, OutputKind
except ImportError as cause:  # pragma: no cover - depends on the installed torch
    raise ImportError(f"torch {torch.__version__} has no torch.export that onnxport can read") from cause


def load(path: str | os.PathLike[str]) -> Any:
    """The `ExportedProgram` in a `.pt2` file."""
    return torch.export.load(path)


def compile_module(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> Any:
    """`torch.export.export` of a module; its refusals become `CaptureError`s that keep its words."""
    with torch_private.exporting(), torch.no_grad():
        try:
            return torch.export.export(model, args, kwargs or None, dynamic_shapes=dynamic_shapes, strict=False, prefer_deferred_runtime_asserts_over_guards=True)
        except Exception as cause:
            raise errors.CaptureError(f"torch.export refuses the model: {type(cause).__name__}: {cause}") from cause


def read(program: Any) -> Traced:
    """An `ExportedProgram` as an `aten.Graph`. Sizes of the inputs are in `symbolic`: ints, or expressions over names."""
    signature = program.graph_signature
    reader = fx.Reader(lambda target: _attribute(program, target))
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    weights: dict[str, Value] = {}
    first: dict[int, str] = {}
    aliases: dict[str, str] = {}
    parameters: set[str] = set()
    inputs: list[Value] = []
    names: list[str] = []
    for node, spec in zip(placeholders, signature.input_specs, strict=True):
        if spec.kind == InputKind.USER_INPUT:
            _user_input(node, reader, inputs, names)
            continue
        tensor = _tensor(program, spec)
        if not isinstance(tensor, torch.Tensor):
            reader.env[node] = tensor
            continue
        if id(tensor) in first:
            aliases[spec.target] = first[id(tensor)]
            reader.env[node] = weights[first[id(tensor)]]
            continue
        if spec.kind == InputKind.CONSTANT_TENSOR and spec.target.startswith("lifted_tensor"):
            reader.env[node] = fx.constant(tensor)
            continue
        first[id(tensor)] = spec.target
        weights[spec.target] = reader.env[node] = fx.constant(tensor, spec.target)
        if spec.kind == InputKind.PARAMETER:
            parameters.add(spec.target)
    block = reader.read(program.graph.nodes, Block())
    block.inputs = [*inputs, *weights.values()]
    graph = Graph(block, inputs, names, weights, aliases, [], [], parameters)
    _outputs(program, graph)
    return Traced(graph, [], None)


def _user_input(node: torch.fx.Node, reader: fx.Reader, inputs: list[Value], names: list[str]) -> None:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        made = fx.typed(value)
        made.name = node.name
        made.symbolic = tuple(s if isinstance(s, int) else str(s.node.expr) for s in value.shape)
        inputs.append(made)
        names.append(node.name)
        reader.env[node] = made
    elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise errors.UnsupportedError(f"the input {node.name} is a dynamic Python number; pass a tensor of rank 0 instead")
    else:
        reader.env[node] = value


def _tensor(program: Any, spec: Any) -> Any:
    for table in (program.state_dict, program.constants):
        if spec.target in table:
            return table[spec.target]
    raise errors.CaptureError(f"the exported program has no tensor {spec.target!r}")


def _attribute(program: Any, target: str) -> Any:
    found: Any = program.graph_module
    for part in target.split("."):
        found = getattr(found, part)
    return found


def _outputs(program: Any, graph: Graph) -> None:
    """Splits what the graph returns into what `forward` returned and the new values of buffers and inputs."""
    for spec, arg in zip(program.graph_signature.output_specs, graph.block.outputs, strict=True):
        if spec.kind == OutputKind.USER_OUTPUT:
            if arg is not None and not isinstance(arg, str):
                graph.outputs.append(arg)
                graph.output_names.append("")
        elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION) and isinstance(arg, Value):
            graph.mutated.append(Mutation(spec.target, "buffer" if spec.kind == OutputKind.BUFFER_MUTATION else "input", arg))
    graph.output_names = _paths(program, len(graph.outputs))


def _paths(program: Any, count: int) -> list[str]:
    """Names of the outputs from the keys of the containers that `forward` returned."""
    from torch.utils import _pytree as pytree

    spec = program.call_spec.out_spec
    if spec is None:
        return [""] * count
    tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    kept = [i for i, s in enumerate(s for s in program.graph_signature.output_specs if s.kind == OutputKind.USER_OUTPUT)
            if getattr(s.arg, "value", 0) is not None]
    found = {}
    for path, leaf in pytree.tree_flatten_with_path(tree)[0]:
        found[leaf] = ".".join(str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path)
    names = [found.get(i, "") for i in kept]
    return names if len(names) == count else [""] * count
