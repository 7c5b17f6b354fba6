"""The other functions that the documentation of `torch.onnx` names."""

from __future__ import annotations

from typing import Any

import torch

from onnxport import calls, errors, options, pipeline, pretty
from onnxport.aten.graph import walk
from onnxport.aten.passes.functionalise import functionalise
from onnxport.capture import choose, decompositions, torch_private
from onnxport.compat import deprecated
from onnxport.lower import missing
from onnxport.lower.decompose import Decomposer
from onnxport.modes import ONE_AT_A_TIME, select_model_mode_for_export
from onnxport.naming import input_names
from onnxport.options import OperatorExportTypes, TrainingMode
from onnxport.progress import disable_log, enable_log
from onnxport.symbolics import registry
from onnxport.symbolics.registry import register_custom_op_symbolic, unregister_custom_op_symbolic

__all__ = ["OperatorExportTypes", "TrainingMode", "disable_log", "enable_log", "export", "export_to_pretty_string", "is_in_onnx_export",
           "register_custom_op_symbolic", "select_model_mode_for_export", "unconvertible_ops", "unregister_custom_op_symbolic"]


def export(*args: Any, **kwargs: Any) -> Any:
    """See `onnxport.export`."""
    import onnxport

    return onnxport.export(*args, **kwargs)


def export_to_pretty_string(model: Any, args: Any, export_params: bool = True, verbose: bool = False, training: Any = TrainingMode.EVAL,
                            input_names: Any = None, output_names: Any = None, operator_export_type: Any = OperatorExportTypes.ONNX,
                            export_type: Any = None, google_printer: bool = False, opset_version: int | None = None,
                            keep_initializers_as_inputs: bool | None = None, custom_opsets: Any = None, add_node_names: bool = True,
                            do_constant_folding: bool = True, dynamic_axes: Any = None, **more: Any) -> str:
    """The exported model as text: a compact form, or (`google_printer`) protobuf's own, which holds the weights too.

    add_node_names: whether the compact form tells the names of nodes.   export_type: means nothing for text.
    The other arguments are those of `onnxport.export`.
    """
    program = pipeline.export(
        model, args, None, export_params=export_params, verbose=verbose, training=training, input_names=input_names,
        output_names=output_names, operator_export_type=operator_export_type, opset_version=opset_version,
        keep_initializers_as_inputs=keep_initializers_as_inputs, custom_opsets=custom_opsets, do_constant_folding=do_constant_folding,
        dynamic_axes=dynamic_axes, **(deprecated.translated(more, "export_to_pretty_string") if more else {}))
    return str(program.model_proto) if google_printer else pretty.text(program.model, names=add_node_names)


def is_in_onnx_export() -> bool:
    """Whether an export is running in this process, ours or PyTorch's."""
    return torch_private.is_exporting()


def unconvertible_ops(model: Any, args: Any, training: Any = TrainingMode.EVAL, opset_version: int | None = None) -> tuple[Any, list[str]]:
    """The model's TorchScript graph, and the names of the operators in it that cannot be exported, once for each time that they occur."""
    made = options.normalise(training=training, opset_version=opset_version)
    call = choose.call_of(model, args, None)
    with ONE_AT_A_TIME, select_model_mode_for_export(model, made.training):
        graph = _graph(model, call)
        traced = choose.capture(model, call, input_names(call, made), "auto", {}, None)
    functionalise(traced.graph)
    functions, decomposer = registry.snapshot() or registry.Snapshot(), Decomposer(decompositions)

    def known(node: Any) -> bool:
        registered = functions.find(node.op, node.overload, made.opset) or (node.op == "prim::PythonOp" and "function" in node.args)
        return bool(registered) or missing.has_function(node) or decomposer.exists(node)

    def convertible(node: Any) -> bool:
        return known(node) and (missing.has_function(node) or not decomposer.missing(node, known))

    return graph, [node.op for node in walk(traced.graph.block) if not convertible(node)]


def _graph(model: Any, call: calls.Call) -> Any:
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        return model.inlined_graph
    if choose.is_program(model):
        return model.graph
    given: dict[str, Any] = {"example_kwarg_inputs": call.kwargs} if call.kwargs else {"example_inputs": call.args}
    traced: Any = torch.jit.trace(model, **given, check_trace=False, strict=False)
    return traced.inlined_graph


def __getattr__(name: str) -> Any:
    if name in ("OnnxExporterError", "CheckerError", "UnsupportedOperatorError"):
        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
