"""The way of a model through the house, as a table of contents."""

from __future__ import annotations

import dataclasses
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from onnxport import errors, notice, pretty, progress, save
from onnxport.aten import source
from onnxport.aten.graph import Value as Captured
from onnxport.building import Built, mutated_outputs, settled, translators
from onnxport.calls import Call
from onnxport.capture import choose, reads
from onnxport.lower import guards
from onnxport.lower.lowering import Lowering
from onnxport.modes import ONE_AT_A_TIME, is_training, select_model_mode_for_export
from onnxport.naming import Interface, input_names
from onnxport.options import Options, TrainingMode, normalise
from onnxport.passes import optimise
from onnxport.program import ONNXProgram
from onnxport.target.emit import Where, emit
from onnxport.target.value import Complex
from onnxport.version import __version__
from onnxport.wire import Nodes


def export(model: Any, args: Any, f: Any = None, *, kwargs: dict[str, Any] | None = None, external_data: bool | None = None,
           capture: str = "auto", dynamic_shapes: Any = None, **arguments: Any) -> ONNXProgram:
    """See `onnxport.export`, whose arguments these are."""
    options = normalise(**arguments)
    foreign = translators(options)
    if f is not None:
        save.check_target(f)
    with ONE_AT_A_TIME, reads.apart(), _collector_paused(), progress.logged(options.verbose):
        program, nodes = _converted(model, args, kwargs, capture, dynamic_shapes, options, foreign)
        if f is not None:
            with progress.stage("save"):
                save.write(program.model, f, external_data=external_data, nodes=nodes)
    return program


def _converted(model: Any, args: Any, kwargs: dict[str, Any] | None, capture: str, dynamic_shapes: Any, options: Options,
               foreign: Any) -> tuple[ONNXProgram, Nodes]:
    """The finished model of one call, and its nodes as they will be written."""
    model = choose.loaded(model)
    call = choose.call_of(model, args, kwargs, options.lists)
    if choose.is_program(model):  # which is in the mode that it was captured in
        options = dataclasses.replace(options, training=TrainingMode.PRESERVE if choose.trains(model) else TrainingMode.EVAL)
    elif options.training == TrainingMode.PRESERVE and not is_training(model):
        options = dataclasses.replace(options, training=TrainingMode.EVAL)
    with progress.stage("capture"), select_model_mode_for_export(model, options.training):
        traced = choose.capture(model, call, input_names(call, options), capture, options.dynamic_axes, dynamic_shapes,
                                functions=foreign is not None and foreign.takes_functions(), modules=options.functions)
    with progress.stage("convert"):
        with select_model_mode_for_export(model, options.training):
            built = settled(call, traced, options, foreign)
        return convert(call.model, call, built, options)


def convert(model: Any, call: Call, made: Built, options: Options) -> tuple[ONNXProgram, Nodes]:
    """A finished, checked model, and its nodes as they will be written."""
    face, found = made.face, made.guards
    if options.strict:
        guards.refuse(found)
    outputs = mutated_outputs(made.lowering, made.lowered, face, options)
    built = emit(made.lowered.builder, outputs, face.naming(), ir_version=options.ir_version, graph_name="main_graph",
                 initializers_as_inputs=options.initializers_as_inputs, where=_places(model) if options.verbose else None,
                 producer_version=__version__)
    optimise.run(built, options)
    nodes = save.check(built)
    progress.note("%d nodes, %d initializers, %d functions, opset %d", built.graph.num_nodes(), len(built.graph.initializers), len(built.functions),
                  options.opset)
    if options.verbose:
        text = pretty.text(built)
        print(text)
        progress.detail(text)
    report(found)
    report_pairs(made.lowering, face)
    program = ONNXProgram(built, input_names=face.input_names, output_names=face.output_names, guards=found, source=model,
                       args=call.args, kwargs=call.kwargs, dynamic_axes=face.axes, training=options.training, capture=made.traced.way,
                       notes=[*([made.traced.why] if made.traced.why else ()), *made.lowered.builder.notes])
    return program, nodes


def report(found: list[guards.Guard]) -> None:
    """One warning for all guards."""
    if found:
        lines = "\n".join(f"  {g}" for g in found)
        notice.warn(f"the exported file holds where:\n{lines}\n(Python decided on these; strict=True makes this an error)", errors.GuardWarning)


def report_pairs(lowering: Lowering, face: Interface) -> None:
    """One warning for all complex inputs and outputs."""
    graph = lowering.graph
    outside = [*zip(graph.inputs, face.input_names, strict=True), *zip(graph.outputs, face.output_names, strict=False)]
    names = [repr(name) for value, name in outside if isinstance(value, Captured) and isinstance(lowering.env.get(value), Complex)]
    if names:
        notice.warn(f"{', '.join(names)}: ONNX Runtime has no complex numbers, so in the file these are real tensors with one more dim of 2 at the "
                    "end, as torch.view_as_real gives them (torch.view_as_complex turns them back)", errors.ComplexWarning)


def _places(model: Any) -> Where:
    """For `verbose`: a node's source line and its scope as `AlexNet/Sequential[features]/Conv2d[0]`."""
    types = {name: type(module).__name__ for name, module in model.named_modules()} if isinstance(model, torch.nn.Module) else {}

    def place(stack: Any, scope: str) -> tuple[str, dict[str, str]]:
        parts = scope.split("/")
        readable = [parts[0], *(f"{types.get(part, part)}[{part.rpartition('.')[2]}]" for part in parts[1:])]
        return source.where(stack) if stack else "", {pretty.SCOPE: "/".join(readable)} if scope else {}

    return place


_running = 0
_was_on = False
_lock = threading.Lock()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A graph is built of many small objects that all live to its end: collecting in between only costs time."""
    global _running, _was_on
    with _lock:
        if _running == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0 and _was_on:
                gc.enable()

