"""The way of a model through the house, as a table of contents."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from onnxport import errors, notice, pretty, progress, save
from onnxport.aten import source
from onnxport.aten.graph import Value as Captured
from onnxport.aten.graph import walk
from onnxport.aten.passes.functionalise import functionalise
from onnxport.aten.passes.strided import spread_out
from onnxport.calls import Call
from onnxport.capture import choose, decompositions, reads
from onnxport.capture.trace import Traced
from onnxport.lower import guards
from onnxport.lower.lowering import Lowered, Lowering
from onnxport.modes import ONE_AT_A_TIME, is_training, select_model_mode_for_export
from onnxport.naming import Interface, input_names, interface, output_names
from onnxport.options import UPDATED, OperatorExportTypes, Options, TrainingMode, normalise
from onnxport.passes import optimise
from onnxport.program import ONNXProgram
from onnxport.symbolics import registry as symbolics
from onnxport.target.apart import Apart
from onnxport.target.builder import Builder
from onnxport.target.emit import Where, emit
from onnxport.target.value import Complex
from onnxport.version import __version__
from onnxport.wire import Nodes


def export(model: Any, args: Any, f: Any = None, *, kwargs: dict[str, Any] | None = None, external_data: bool | None = None,
           capture: str = "auto", dynamic_shapes: Any = None, **arguments: Any) -> ONNXProgram:
    """See `onnxport.export`, whose arguments these are."""
    options = normalise(**arguments)
    foreign = _foreign(options)
    if f is not None:
        save.check_target(f)
    with ONE_AT_A_TIME, reads.apart(), _collector_paused():
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


@dataclasses.dataclass
class Built:
    """A captured program in the builder, and the guards under which it holds."""

    traced: Traced
    face: Interface
    lowering: Lowering
    lowered: Lowered
    guards: list[guards.Guard]

    def excludes(self, sizes: Mapping[str, int]) -> bool:
        """Whether it surely does not hold where the axes have these sizes."""
        return any(guard.excludes({**self.lowered.builder.hints, **sizes}) for guard in self.guards)

    def agrees(self) -> bool:
        """Whether it was captured at another example and still gives the model's numbers at the caller's: no guard speaks of that one then."""
        if self.traced.agrees is None or not self.traced.agrees():
            return False
        self.guards = [guard for guard in self.guards if not guard.excludes_only(self.traced.given)]
        return True


def settled(call: Call, traced: Traced, options: Options, foreign: Any) -> Built:
    """What was captured, in the builder.

    Where Python went a way that is only for sizes of 0 or 1, the call is captured once more at a wider example; that is taken if it
    gives the numbers of the caller's example too. torch.export begins with the wider example, and comes back to the caller's if need be.
    """
    first, refusal = None, None
    try:
        first = build(call, traced, options, foreign)
    except errors.OnnxExporterError as error:
        refusal = error
    for sizes, capture in traced.others:
        if first is not None and (not first.excludes(sizes) or first.agrees()):
            return first
        with contextlib.suppress(Exception):  # a model may refuse sizes that we made up
            other = build(call, capture(), options, foreign)
            if other.traced.agrees is None or other.agrees():
                progress.note("captured once more with the sizes %s", sizes)
                return other
    if refusal is not None:
        raise refusal
    assert first is not None
    return first


def build(call: Call, traced: Traced, options: Options, foreign: Any = None) -> Built:
    """From the captured graph to the builder. Raises `BakedValueError` for what would hold for the example alone."""
    graph = traced.graph
    functionalise(graph, None if foreign is None else foreign.is_registered)
    spread_out(graph)
    face = interface(graph, call, options)
    training = options.training != TrainingMode.EVAL  # then weights change, and nothing is computed from them now
    builder = Builder(options.opset, fold_parameters=options.constant_folding and options.export_params and not training)
    builder.versions, builder.training_forms = options.custom_opsets, training
    builder.apart = Apart() if options.functions else None
    if foreign is None and any(node.op == "prim::PythonOp" for node in walk(graph.block)):
        foreign = _foreign(options, needed=True)
    lowering = Lowering(graph, builder, face.input_shapes, weights_as_inputs=not options.export_params, decompositions=decompositions,
                        foreign=foreign)
    lowered = lowering.run()
    if lowering.lists:
        face.output_names = output_names(graph, options.output_names, set(face.input_names))
    return Built(traced, face, lowering, lowered, guards.judge(graph, lowered.env, lowering.held))


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


_KEPT = {OperatorExportTypes.ONNX_FALLTHROUGH: "domain", OperatorExportTypes.ONNX_ATEN_FALLBACK: "aten",
         OperatorExportTypes.ONNX_ATEN: "all aten", OperatorExportTypes.RAW: "domain"}


def _foreign(options: Options, needed: bool = False) -> Any:
    """Who translates what onnxport does not; None (and nothing imported) for an export that only has its own operators."""
    functions, keep = symbolics.snapshot(), _KEPT.get(options.operator_export_type, "no")
    if functions is None and keep == "no" and not options.translations and not needed:
        return None
    from onnxport.symbolics import table
    from onnxport.symbolics.foreign import Foreign

    return Foreign(functions, table.read(options.translations), options.opset, keep)


def mutated_outputs(lowering: Lowering, lowered: Lowered, face: Interface, options: Options) -> list[Any]:
    """The outputs, with those of `mutations="outputs"`; otherwise a warning or an error for each update that nobody returns."""
    outputs = list(lowered.outputs)
    mutated = lowering.graph.mutated
    if not mutated or options.mutations == "ignore":
        return outputs
    names = ", ".join(f"{m.kind} {m.name!r}" for m in mutated)
    if options.mutations == "error":
        raise errors.MutationError(f"the model updates {names}, and the file would not")
    if options.mutations == "warn":
        notice.warn(f"the model updates {names}, which the file does not; mutations=\"outputs\" returns the new values, \"ignore\" is silent",
                    errors.MutationWarning)
        return outputs
    for mutation in mutated:
        outputs.append(lowering.output(mutation.value))
        face.add_output(f"{mutation.name}{UPDATED}")
    return outputs


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

