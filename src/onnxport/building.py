"""A captured program in the builder: functionalised, lowered, judged; captured once more where the example's sizes misled it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from onnxport import errors, notice, progress
from onnxport.aten.graph import walk
from onnxport.aten.passes.functionalise import functionalise
from onnxport.aten.passes.strided import spread_out
from onnxport.calls import Call
from onnxport.capture import decompositions
from onnxport.capture.trace import Traced
from onnxport.lower import guards
from onnxport.lower.guards import Guard
from onnxport.lower.lowering import Lowered, Lowering
from onnxport.naming import Interface, interface, output_names
from onnxport.options import UPDATED, OperatorExportTypes, Options, TrainingMode
from onnxport.symbolics import registry as symbolics
from onnxport.target.apart import Apart
from onnxport.target.builder import Builder


@dataclasses.dataclass
class Built:
    """A captured program in the builder, and the guards under which it holds."""

    traced: Traced
    face: Interface
    lowering: Lowering
    lowered: Lowered
    guards: list[Guard]

    def excludes(self, sizes: Mapping[str, int]) -> bool:
        """Whether it surely does not hold where the axes have these sizes."""
        return any(guard.excludes({**self.lowered.builder.hints, **sizes}) for guard in self.guards)

    def denial(self) -> Guard | None:
        """The guard, if any, by which the file has other operators than the caller's example needs."""
        return next((guard for guard in self.guards if guard.of_operator and guard.excludes(self.traced.given)), None)

    def agrees(self) -> bool:
        """Whether it was captured at another example and still gives the model's numbers at the caller's: no guard speaks of that one then."""
        if self.traced.agrees is None or self.denial() or not self.traced.agrees():
            return False
        self.guards = [guard for guard in self.guards if not guard.excludes_only(self.traced.given)]
        return True


def settled(call: Call, traced: Traced, options: Options, foreign: Any) -> Built:
    """What was captured, in the builder.

    Where Python went a way that is only for sizes of 0 or 1, the call is captured once more at a wider example; that is taken if it
    gives the numbers of the caller's example too. torch.export begins with the wider example, and comes back to the caller's if need be.
    """
    first: Built | None = None
    refusal: errors.OnnxExporterError | None = None
    again: errors.OnnxExporterError | None = None
    try:
        first = build(call, traced, options, foreign)
    except errors.OnnxExporterError as error:
        refusal = error
    for sizes, capture in traced.others:
        if first is not None and (not first.excludes(sizes) or first.agrees()):
            return first
        try:
            other = build(call, capture(), options, foreign)
            if other.traced.agrees is None or other.agrees():
                progress.note("captured once more with the sizes %s", sizes)
                return other
        except errors.OnnxExporterError as error:
            again = error
        except Exception:  # a model may refuse sizes that we made up
            continue
    if refusal is not None:
        raise refusal
    assert first is not None
    denial = first.denial()
    if denial is not None:
        why = "" if again is None else f"\nAt the example itself: {again}"
        raise errors.UnsupportedError(f"the file would hold where {denial}, and the example is of another size: give a larger one, or make this axis "
                                      f"static{why}") from again
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
    if foreign is None and any(node.op.startswith(_TRANSLATED) for node in walk(graph.block)):
        foreign = translators(options, needed=True)
    lowering = Lowering(graph, builder, face.input_shapes, weights_as_inputs=not options.export_params, decompositions=decompositions,
                        foreign=foreign)
    lowered = lowering.run()
    if lowering.lists:
        face.output_names = output_names(graph, options.output_names, set(face.input_names))
    return Built(traced, face, lowering, lowered, guards.judge(graph, lowered.env, lowering.held))


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


_TRANSLATED = ("prim::PythonOp", "onnx_symbolic::")  # nodes that bring their translation along
_KEPT = {OperatorExportTypes.ONNX_FALLTHROUGH: "domain", OperatorExportTypes.ONNX_ATEN_FALLBACK: "aten",
         OperatorExportTypes.ONNX_ATEN: "all aten", OperatorExportTypes.RAW: "domain"}


def translators(options: Options, needed: bool = False) -> Any:
    """Who translates what onnxport does not; None (and nothing imported) for an export that only has its own operators."""
    functions, keep = symbolics.snapshot(), _KEPT.get(options.operator_export_type, "no")
    if functions is None and keep == "no" and not options.translations and not needed:
        return None
    from onnxport.symbolics import table
    from onnxport.symbolics.foreign import Foreign

    return Foreign(functions, table.read(options.translations), options.opset, keep)
