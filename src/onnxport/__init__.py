"""onnxport: PyTorch models as ONNX files that give PyTorch's numbers in ONNX Runtime."""

from __future__ import annotations

import importlib
from typing import Any

from onnxport import errors, pipeline
from onnxport.compat import aliases
from onnxport.modes import select_model_mode_for_export
from onnxport.options import OLDEST_OPSET, OperatorExportTypes, TrainingMode, newest_opset
from onnxport.program import ONNXProgram
from onnxport.symbolics.registry import register_custom_op_symbolic, unregister_custom_op_symbolic
from onnxport.version import __version__


def export(model: Any, args: Any = (), f: Any = None, export_params: bool = True, verbose: bool | None = False, training: Any = TrainingMode.EVAL,
           input_names: Any = None, output_names: Any = None, operator_export_type: Any = OperatorExportTypes.ONNX,
           opset_version: int | None = None, do_constant_folding: bool = True, dynamic_axes: Any = None,
           keep_initializers_as_inputs: bool | None = None, custom_opsets: Any = None, export_modules_as_functions: Any = False, *,
           kwargs: dict[str, Any] | None = None, external_data: bool | None = None, mutations: str = "warn", strict: bool = False,
           lists: str = "auto", capture: str = "auto", dynamic_shapes: Any = None, verify: bool = False, **deprecated: Any) -> ONNXProgram:
    """Runs `model` once and writes what it did as an ONNX file.

    model: a `torch.nn.Module`, a function of tensors, a `torch.export.ExportedProgram`, or the path of a `.pt2` file. A program
        brings its own example where `args` are left out.
    args: the arguments of the call: a tuple, a tensor, or a tuple that ends in a dict of named arguments (end it in `{}` to
        pass a dict by position). Tensors, also nested ones, become inputs of the graph; everything else is a constant.
    f: a path, a binary stream, or None to write nothing.
    export_params: False makes inputs of the parameters and buffers, in `state_dict()` order, behind the model's own.
    verbose: prints the graph, keeps source lines in it, and enables the log (`enable_log`) while it runs.
    training: a `TrainingMode`: EVAL, PRESERVE or TRAINING.
    input_names, output_names: names in order, as many as are wanted; input_names run on over the parameters. Others are called by where they
    stand (`past_key_values.0.key`); a cache that is returned is `present.0.key`.
    operator_export_type: an `OperatorExportTypes`.
    opset_version: 7 to the newest that `onnx` defines; 18 by default.
    do_constant_folding: whether operations on parameters are computed now.
    dynamic_axes: name -> {axis: label} or name -> [axes]. A label may be computed from others: "past + sequence".
    keep_initializers_as_inputs: None means False for ONNX and True for the other export types, and True below opset 9.
    custom_opsets: domain -> version.
    export_modules_as_functions: True, or a set of module classes: each call of such a module is a call of a function of the file, which
        equal modules share (opset 15 and newer). Its inputs are the arguments of `forward`, then weights; variables that the class annotates are
        attributes, and so is, as `inferred::...`, what differs between modules.
    kwargs: more named arguments.
    external_data: True keeps the weights in a file beside; None decides by size (2 GiB).
    mutations: what becomes of updates of inputs and buffers that the model does not return: "warn", "outputs", "error", "ignore".
    lists: what the lists of tensors are that a script takes and returns: "sequences" makes each an ONNX sequence, of any length, whose tensors
        have any sizes (opset 11 and newer); "flat" makes an input or output of each tensor; "auto" does so too, but for returned lists of which
        only the running model knows the length.
    capture: "trace" (one run under PyTorch's tracer), "export" (torch.export), or "auto": a trace, and torch.export for what is an exported
        program already or what the tracer cannot follow (`torch.cond`, `scan`, ...); `ONNXProgram.capture` and `notes` say which and why.
    dynamic_shapes: the same as `dynamic_axes` in the forms of torch.export: by argument name or position, nested as the
        arguments are, an axis -> `Dim`, derived `Dim` (2*n + 1), `Dim.AUTO`, `Dim.DYNAMIC`, `Dim.STATIC`, or a name.
    verify: runs the file in ONNX Runtime against the model; where they disagree, it is an `errors.VerificationError`.
    deprecated: spellings of other versions (`example_outputs`, `aten`, ...) and of today's `torch.onnx.export`: `dynamo` (True captures by
        torch.export), `report`, `profile`, `dump_exported_program`, `artifacts_dir` and `custom_translation_table` (operator of
        `torch.ops` -> a function of onnxscript, or several, of which the first that takes the arguments is used; they go before registered ones)
        are honoured; of the others a warning says what to write.
    strict: makes an error of what is otherwise a guard: a Python branch on a size that may change.

    Returns an `ONNXProgram`. Raises `errors.ArgumentError` (a ValueError), `errors.UnsupportedOperatorError`,
    `errors.UnsupportedError`, `errors.BakedValueError`, `errors.CheckerError`, `errors.SaveError` (an OSError); all of them are
    `errors.OnnxExporterError`s. An error leaves the file at `f` as it was.
    """
    given = {
        "kwargs": kwargs, "external_data": external_data, "export_params": export_params, "verbose": verbose, "training": training,
        "input_names": input_names, "output_names": output_names, "operator_export_type": operator_export_type, "opset_version": opset_version,
        "do_constant_folding": do_constant_folding, "dynamic_axes": dynamic_axes, "keep_initializers_as_inputs": keep_initializers_as_inputs,
        "custom_opsets": custom_opsets, "mutations": mutations, "strict": strict, "lists": lists, "capture": capture,
        "dynamic_shapes": dynamic_shapes, "export_modules_as_functions": export_modules_as_functions}
    run = pipeline.export
    if deprecated:
        from onnxport.compat import artifacts
        from onnxport.compat import deprecated as spellings

        given.update(spellings.translated(deprecated, model=model))
        if capture != "auto":
            given["capture"] = capture
        run = artifacts.recorded(deprecated, run)
    program = run(model, args, f, **given)
    if verify:
        found = program.verify()
        if not found.passed:
            raise errors.VerificationError(str(found))
    return program


_opset_modules = aliases.install(__name__, OLDEST_OPSET, newest_opset())
globals().update(_opset_modules)
_LATER = {
    "JitScalarType": "onnxport.compat.scalar_type", "SymbolicContext": "onnxport.symbolics.old_context",
    **dict.fromkeys(("disable_log", "enable_log", "export_to_pretty_string", "is_in_onnx_export", "unconvertible_ops"), "onnxport.compat.utils"),
    **dict.fromkeys(("install", "uninstall"), "onnxport.compat.installing"),
}


def __getattr__(name: str) -> Any:
    """What few need is imported when it is asked for."""
    if name in _LATER:
        found = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
        return found
    if name == "backend":
        return importlib.import_module("onnxport.backend")
    if name == "TensorProtoDataType":
        from onnxport.target.value import DataType

        return DataType
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "JitScalarType", "ONNXProgram", "OperatorExportTypes", "SymbolicContext", "TrainingMode", "__version__", "disable_log", "enable_log", "errors",
    "export", "export_to_pretty_string", "install", "is_in_onnx_export", "register_custom_op_symbolic", "select_model_mode_for_export",
    "uninstall", "unregister_custom_op_symbolic",
]
