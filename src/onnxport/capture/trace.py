"""Captures a `torch.nn.Module` or a callable by running it once under PyTorch's tracer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Block, Graph, Read, Value
from onnxport.capture import reads, torch_private
from onnxport.capture.torchscript import Reader


@dataclass
class Traced:
    """What a capture gives besides the graph: the flat outputs of the run, for whoever wants to compare."""

    graph: Graph
    results: list[Any]
    spec: Any


def weights_of(model: Any) -> tuple[dict[str, torch.Tensor], dict[str, str], set[str]]:
    """(tensors by name in `state_dict()` order, then buffers outside it; alias -> name for tied ones; parameters' names)."""
    if not isinstance(model, torch.nn.Module):
        return {}, {}, set()
    found: dict[str, torch.Tensor] = {}
    aliases: dict[str, str] = {}
    first: dict[int, str] = {}
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    named = dict(model.state_dict(keep_vars=True))
    named.update((n, b) for n, b in model.named_buffers(remove_duplicate=False) if n not in named)
    for name, tensor in named.items():
        if not isinstance(tensor, torch.Tensor):
            continue
        if id(tensor) in first:
            aliases[name] = first[id(tensor)]
        else:
            first[id(tensor)] = name
            found[name] = tensor
    return found, aliases, parameters


@contextlib.contextmanager
def unchanged(weights: dict[str, torch.Tensor], parameters: set[str]) -> Any:
    """Puts buffers back as they were, also when the model raises; a changed parameter is an error."""
    copies = {name: (t, t.detach().clone(), t._version) for name, t in weights.items() if name not in parameters and t.device.type != "meta"}
    versions = {name: t._version for name, t in weights.items() if name in parameters}
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, copy, version in copies.values():
                if tensor._version != version:
                    tensor.copy_(copy)
    changed = [name for name, version in versions.items() if weights[name]._version != version]
    if changed:
        raise errors.CaptureError(f"the model changes its parameters while it runs ({', '.join(changed)}); export a model whose forward only reads them")


def scope_names(model: Any) -> dict[Any, str]:
    """module -> its qualified name; the root has its class name."""
    if not isinstance(model, torch.nn.Module):
        return {}
    names = {module: name for name, module in model.named_modules()}
    names[model] = type(model).__name__
    return names


def trace(model: Any, tensors: list[torch.Tensor], input_names: list[str], call: Callable[[list[torch.Tensor]], tuple[list[Any], list[str], Any]]) -> Traced:
    """Runs `call(tensors)`, which runs the model and gives (flat outputs, their names, spec), and reads what it did.

    `tensors` are copied, so that a model which writes into its inputs leaves the caller's alone.
    """
    weights, aliases, parameters = weights_of(model)
    with torch.no_grad():
        copies = [t.detach().clone(memory_format=torch.preserve_format) for t in tensors]
    outcome: dict[str, Any] = {}

    def run(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        torch_private.set_tracer_warnings(False)
        outcome["flat"], outcome["names"], outcome["spec"] = call(list(given[: len(copies)]))
        traced = []
        for item in outcome["flat"]:
            if isinstance(item, torch.Tensor):
                # A tensor that the trace has not seen becomes a constant of it.
                torch_private.set_value_trace(item, torch_private.get_value_trace(item))
                traced.append(item)
        return tuple(traced) if traced else (torch.zeros(()) + given[0].sum() * 0 if given else torch.zeros(()),)

    with contextlib.ExitStack() as stack:
        stack.enter_context(torch_private.slow_attention())
        stack.enter_context(torch_private.exporting())
        stack.enter_context(torch.no_grad())
        stack.enter_context(unchanged(weights, parameters))
        recorded = stack.enter_context(reads.recorded())
        stack.enter_context(torch_private.module_scopes(scope_names(model)))
        raw, _ = torch_private.create_graph_by_tracing(run, [*copies, *weights.values()], torch_private.variable_name_lookup(), True, False)
    graph = read_graph(raw, input_names, list(weights), list(weights.values()), len(copies))
    graph.aliases, graph.parameters = aliases, parameters
    graph.reads = [Read(kind, graph_value(raw_value, outcome, graph), seen, source) for kind, raw_value, seen, source in recorded]
    flat = iter(graph.block.outputs)
    graph.outputs = [next(flat) if isinstance(item, torch.Tensor) else item for item in outcome["flat"]]
    graph.output_names = outcome["names"]
    graph.env = None
    return Traced(graph, outcome["flat"], outcome["spec"])


def graph_value(raw_value: Any, outcome: dict[str, Any], graph: Graph) -> Value | None:
    """The value of ours that a recorded traced value became (None: the tracer dropped it, as nothing but Python used it)."""
    try:
        unique = raw_value.unique()
    except RuntimeError:
        return None
    found = graph.env.get(unique) if graph.env is not None else None
    return found if isinstance(found, Value) else None


def read_graph(raw: Any, input_names: list[str], weight_names: list[str], weights: list[torch.Tensor], count: int) -> Graph:
    """Reads a trace whose inputs are `count` tensors of the user's and then the weights."""
    torch_private.inline(raw)
    reader = Reader()
    block = Block()
    values = [reader.value(v) for v in raw.inputs()]
    for value, name, tensor in zip(values[count:], weight_names, weights, strict=True):
        value.name, value.constant = name, tensor
    for value, name in zip(values[:count], input_names, strict=True):
        value.name = name
    block.inputs = values
    reader.block(raw, block)
    if len(block.outputs) == 1 and isinstance(block.outputs[0], tuple):
        block.outputs = list(block.outputs[0])
    graph = Graph(block, values[:count], input_names, dict(zip(weight_names, values[count:], strict=True)), {}, list(block.outputs), [])
    graph.env = reader.env
    return graph
