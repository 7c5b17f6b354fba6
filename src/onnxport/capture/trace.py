"""Captures a `torch.nn.Module` or a callable by running it once under PyTorch's tracer."""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Block, Graph, Read, Value
from onnxport.aten.source import where
from onnxport.capture import reads, torch_private
from onnxport.capture.attributes import Holder
from onnxport.capture.compiled import uncompiled
from onnxport.capture.packed import Shelf, shelf_of
from onnxport.capture.scopes import CALLS, Noted, Scopes, recorded
from onnxport.capture.size_lists import SizeLists
from onnxport.capture.state import State, state_of
from onnxport.capture.torchscript import Reader


@dataclass
class Traced:
    """What a capture gives besides the graph.

    results: the flat outputs of the run.   rerun: runs what was captured on other tensors.
    agrees: whether what was captured at another example gives the model's numbers at the caller's; None where it is the caller's.
    given: the sizes of the axes in the caller's example, where it was captured at another.
    others: the same call captured at other examples, each on demand, with the sizes of its axes.
    way: "trace", "script" or "export".   why: the reason, where it is torch.export and nobody asked for it.
    """

    graph: Graph
    results: list[Any]
    spec: Any
    rerun: Callable[[list[torch.Tensor]], list[torch.Tensor]] | None = None
    agrees: Callable[[], bool] | None = None
    given: Mapping[str, int] = field(default_factory=dict)
    others: Iterable[tuple[dict[str, int], Callable[[], Traced]]] = ()
    way: str = "trace"
    why: str = ""


def alike(made: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether the tensors of both are the same, as close as their types can be expected to be. made: more may stand behind them."""
    tensors = [item for item in wanted if isinstance(item, torch.Tensor)]
    return len(made) >= len(tensors) and all(map(_alike, made, tensors))


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        return torch.equal(a, b)
    finite = b[b.isfinite()].abs()
    close = torch.finfo(a.dtype).eps ** 0.5
    return torch.allclose(a, b, rtol=close, atol=close * float(finite.max()) if finite.numel() else 0.0, equal_nan=True)


def scope_names(model: Any) -> dict[Any, str]:
    """module -> its qualified name; the root has its class name."""
    if not isinstance(model, torch.nn.Module):
        return {}
    names = {module: name for name, module in model.named_modules()}
    names[model] = type(model).__name__
    return names


# What the tracer's failures look like, where they come from, and what else there is.
_FAILURES = {
    "Unsupported value kind: Tensor": "it calls torch.vmap inside of torch.vmap; write one of them out",
    "alias_analysis.cpp": "a number has a type that it does not expect in this operator",
    "unordered_map::at": "an autograd.Function (torch.utils.checkpoint with use_reentrant=True is one) uses a tensor that is not among its "
                         "arguments",
    "unsupported input list type: Tensor?": "it hands a list with tensors that may be missing to an operator",
    "Tracing a list of bool type": "it hands a list of bools to an operator",
    "Tracing a list of arbitrary type": "it hands a list of numbers to an operator that takes any kind of them",
    "requires grad as a constant": "it computes a gradient (torch.autograd.grad) through an operator whose formula needs its result, as that "
                                   "of tanh does; write this derivative out",
    "unsupported argument type in the JIT tracer": "a gradient (torch.autograd) is computed of an operator that has several results",
    "unsupported output type": "an operator gives a number (it should give a tensor)",
    "unexpected sym_eq": "a gradient (torch.autograd) is computed of several results",
    "isIntList": "it hands an operator a list of what are no numbers (tensor subclasses such as those of torchao do)",
    "doesn't have storage": "it cannot look into a transform of torch.func (grad, jacrev, hessian, ...); torch.autograd.grad under "
                            "torch.enable_grad() is traced",
    "dynamo-optimized function": "it does not follow torch.cond, while_loop, scan and map",
}


class UntraceableError(errors.CaptureError):
    """PyTorch's tracer fails at the model; torch.export may not.   reason: why it fails, in words."""

    def __init__(self, reason: str, place: str, words: str):
        super().__init__(f"{place}: PyTorch's tracer fails here: {reason} (capture='export' takes another way)\n  {words}")
        self.reason = f"{place}: {reason}"


# Runs the model on the given tensors: flat outputs, their names, and how they were nested.
Call = Callable[[list[torch.Tensor]], tuple[list[Any], list[str], Any]]


def trace(model: Any, tensors: list[torch.Tensor], input_names: list[str], call: Call, dynamic: bool = True,
          functions: bool = False, noted: Noted | None = None) -> Traced:
    """Runs the model once and reads what it did; where an operator refuses a traced size, once more under `SizeLists`.

    functions: whether each `autograd.Function` stays one node.   noted: the modules whose calls are noted.
    """
    try:
        return _trace(model, tensors, input_names, call, dynamic, functions, noted)
    except TypeError:
        if dynamic:
            raise
    except (RuntimeError, IndexError, AssertionError) as error:
        reason = next((text for mark, text in _FAILURES.items() if mark in str(error)), None)
        if reason is None:
            raise
        raise UntraceableError(reason, where(_stack(error)), str(error)) from error
    return _trace(model, tensors, input_names, call, True, functions, noted)


def _stack(error: BaseException) -> str:
    """The lines on the way to an error, the innermost first."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return "\n".join(f"{frame.filename}({frame.lineno}): {frame.name}" for frame in frames)


def _trace(model: Any, tensors: list[torch.Tensor], input_names: list[str], call: Call, dynamic: bool, functions: bool,
           noted: Noted | None) -> Traced:
    """Runs `call(tensors)`, which runs the model and gives (flat outputs, their names, spec), and reads what it did.

    `tensors` are copied, so that a model which writes into its inputs leaves the caller's alone.
    dynamic: whether any size may change (if not, what the tracer loses of sizes does no harm).
    """
    state, shelf = state_of(model), shelf_of(model)
    with torch.no_grad(), torch_private.untraced():
        copies = [t.detach().clone(memory_format=torch.preserve_format) for t in tensors]
    run = _Run(call, len(copies), state)
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch_private.untraced())  # an export inside of an export
        stack.enter_context(uncompiled(model))
        stack.enter_context(torch_private.eager_functions())
        stack.enter_context(torch_private.slow_attention())
        stack.enter_context(torch_private.exporting())
        stack.enter_context(torch_private.lengths_as_sizes())
        stack.enter_context(torch_private.lifted_scripts())
        stack.enter_context(torch.no_grad())
        stack.enter_context(state.unchanged())
        run.recorded = stack.enter_context(reads.recorded())
        scopes = stack.enter_context(recorded(scope_names(model), model, noted))
        if dynamic:
            stack.enter_context(SizeLists())
        given = [*copies, *state.weights.values(), *state.attributes.values()]
        kept: tuple[Any, ...] = () if shelf is None else (shelf.script._c, [])
        raw, _ = torch_private.create_graph_by_tracing(run, given, torch_private.variable_name_lookup(), True, False, *kept)
        literals = reads.literals()
    graph = finish(read_graph(raw, input_names, state, literals, scopes, functions, shelf), run, state)
    return Traced(graph, run.flat, run.spec, functools.partial(_rerun, raw, state, shelf))


def _rerun(raw: Any, state: State, shelf: Shelf | None, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """What a traced graph gives for these tensors: the model's outputs, and behind them what Python read."""
    with torch_private.untraced(), torch.no_grad(), state.unchanged(), torch_private.optimized_execution(False):
        function = torch_private.create_function_from_graph("example", raw)
        kept = [] if shelf is None else [shelf.script]
        made = function(*kept, *(t.detach().clone() for t in tensors), *state.weights.values(), *state.attributes.values())
    return list(made) if isinstance(made, tuple) else [made]


class _Run:
    """The function that is traced. Its outputs are the tensors that `call` returns, what Python read, and what was assigned to buffers.

    The tracer drops what no output needs, so what is judged later has to be an output.
    """

    def __init__(self, call: Call, count: int, state: State):
        self.call, self.count, self.state = call, count, state
        self.flat: list[Any] = []
        self.names: list[str] = []
        self.spec: Any = None
        self.recorded: list[tuple[str, Any, Any, str]] = []
        self.rebound: list[str] = []
        self.watched: list[int] = []

    def __call__(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        torch_private.set_tracer_warnings(False)
        self.flat, self.names, self.spec = self.call(list(given[: self.count]))
        outputs = [item for item in self.flat if isinstance(item, torch.Tensor)]
        for index, (_, value, _, _) in enumerate(self.recorded):
            if value is not None and not reads.followed(index):
                self.watched.append(index)
                outputs.append(_stand_in(value))
        for name, tensor in [*self.state.rebound(), *self.state.named(reads.replaced())]:
            self.rebound.append(name)
            outputs.append(tensor)
        for item in outputs:
            # A tensor that the trace has not seen becomes a constant of it.
            torch_private.set_value_trace(item, torch_private.get_value_trace(item))
        return tuple(outputs) if outputs else (torch.zeros(()) + given[0].sum() * 0 if given else torch.zeros(()),)


def _stand_in(value: Any) -> torch.Tensor:
    """A tensor that the tracer takes for a traced value."""
    with torch_private.untraced():
        tensor = torch.empty(())
    torch_private.set_value_trace(tensor, value)
    return tensor


def finish(graph: Graph, run: _Run, state: State) -> Graph:
    """Sorts the outputs of the trace into those of the model, what Python read, and what was assigned to buffers."""
    graph.aliases, graph.parameters, graph.output_names = state.aliases, state.parameters, run.names
    flat = iter(graph.block.outputs)
    graph.outputs = [next(flat) if isinstance(item, torch.Tensor) else item for item in run.flat]
    values = {index: next(flat) for index in run.watched}
    graph.reads = [Read(kind, _value(values.get(index)), seen, source) for index, (kind, _, seen, source) in enumerate(run.recorded)]
    graph.rebound = {name: value for name, value in zip(run.rebound, flat) if isinstance(value, Value)}
    graph.block.outputs = [output for output in graph.outputs if isinstance(output, Value)]
    return graph


def _value(found: Any) -> Value | None:
    return found if isinstance(found, Value) else None


def read_graph(raw: Any, input_names: list[str], state: State, literals: dict[int, tuple[torch.Tensor, torch.Tensor]],
               scopes: Scopes, functions: bool = False, shelf: Shelf | None = None) -> Graph:
    """Reads a trace whose inputs are the user's tensors, then weights, then attributes. functions: as for `Reader`.

    shelf: the packed weights; its module comes first then.
    """
    scripted = any(raw.findNode(kind, True) is not None for kind in CALLS)
    with scopes.inlining(raw):
        torch_private.inline(raw)
    reader = Reader(literals=literals, scopes=scopes, functions=functions)
    block, given = Block(), list(raw.inputs())
    if shelf is not None:
        reader.env[given.pop(0).unique()] = Holder("", shelf.contents)
    values = [reader.value(v) for v in given]
    count, kept = len(input_names), len(input_names) + len(state.weights)
    inputs, weights, attributes = values[:count], values[count:kept], values[kept:]
    for value, (name, tensor) in zip(weights, state.weights.items(), strict=True):
        value.name, value.constant = name, tensor
    for value, tensor in zip(attributes, state.attributes.values(), strict=True):
        value.constant = tensor
    for value, name in zip(inputs, input_names, strict=True):
        value.name = name
    block.inputs = [*inputs, *weights]
    reader.block(raw, block)
    scopes.bind(reader.env)
    if len(block.outputs) == 1 and isinstance(block.outputs[0], tuple):
        block.outputs = list(block.outputs[0])
    return Graph(block, inputs, input_names, dict(zip(state.weights, weights, strict=True)), {}, list(block.outputs), [],
                 attributes=dict(zip(state.attributes, attributes, strict=True)), touched=reader.touched, scripted=scripted)
