"""Which capture a model takes: a trace by default, torch.export where it is asked for or where the program is one already."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from onnxport import errors, notice
from onnxport.calls import Call, bind
from onnxport.capture import compiled, dynamic, script, wider
from onnxport.capture.scopes import Noted
from onnxport.capture.trace import Traced, UntraceableError, alike, trace

WAYS = ("auto", "trace", "export")


def loaded(model: Any) -> Any:
    """A `.pt2` or `.pt` path as the program in it, a function that torch.compile made as the one it was made from; anything else as it is."""
    if not isinstance(model, (str, os.PathLike)):
        return compiled.original(model)
    path = os.fspath(model)
    if not os.path.exists(path):
        raise errors.ArgumentError(f"model is the path {path!r}, which does not exist")
    if str(path).endswith((".pt", ".pth", ".ts")):
        return script.load(path)
    if not str(path).endswith(".pt2"):
        raise errors.ArgumentError(f"model is the path {path!r}; only .pt2 files (of torch.export) and .pt files (of torch.jit.save) are read")
    from onnxport.capture import exported

    return exported.load(path)


def is_program(model: Any) -> bool:
    """Whether it was captured by torch.export already (asked without importing torch.export, which costs a second)."""
    return type(model).__name__ == "ExportedProgram" and type(model).__module__.startswith("torch.export")


def trains(program: Any) -> bool:
    """Whether an `ExportedProgram` has an operator in training mode."""
    from onnxport.capture import fx

    return any(fx.argument(node, name) is True for node in program.graph.nodes for name in ("train", "training"))


def call_of(model: Any, args: Any, kwargs: dict[str, Any] | None, lists: str = "auto") -> Call:
    """The call that is captured; an exported program brings its own example. lists: what becomes of a script's lists of tensors."""
    if script.is_script(model):
        program = script.Program(model, lists)
        args, kwargs = program.tensors(args, kwargs)
        return bind(program, args, kwargs)
    if lists == "sequences":
        raise errors.ArgumentError("lists='sequences' is for scripts: of any other model the file holds what it did with as many tensors as the "
                                   "example has; script it (torch.jit.script), or the part of it that takes the list")
    if not is_program(model):
        return bind(model, args, kwargs)
    if args in ((), None) and not kwargs:
        if model.example_inputs is None:
            raise errors.ArgumentError("the exported program has no example inputs; pass args")
        args, kwargs = model.example_inputs
        args = (*args, {})
    return bind(model.module(check_guards=False), args, kwargs)


def capture(model: Any, call: Call, names: Sequence[str], way: str, axes: Mapping[str, Mapping[int, str]], shapes: Any,
            functions: bool = False, modules: bool | frozenset[type] = False) -> Traced:
    """Runs or compiles the model once.

    names: of the inputs; axes, shapes: `dynamic_axes` and `dynamic_shapes`.   functions: whether a trace keeps each `autograd.Function`.
    modules: those whose calls become functions of the file: all, or those of these classes.
    """
    if way not in WAYS:
        raise errors.ArgumentError(f"capture={way!r}: it must be one of {', '.join(WAYS)}")
    both = [name for name in axes if name in names]
    if shapes is not None and both:
        raise errors.ArgumentError(f"dynamic_shapes is given, and dynamic_axes names the input {both[0]!r}: say it in one of them")
    if script.is_script(model) and way == "export":
        raise errors.ArgumentError("capture='export' takes no scripted program: torch.export cannot read one")
    if shapes is not None:
        wanted = dynamic.of_shapes(shapes, call.spec, names, call.tensors)
    else:
        wanted = dynamic.of_axes(axes, names, call.tensors)
    if not is_program(model) and way != "export":
        if script.is_script(model):
            if modules:
                notice.warn("export_modules_as_functions changes nothing: the calls of a scripted program are not known; export the module itself",
                            UserWarning)
            return _marked(script.capture(call.model, call, list(call.names)), names, wanted, shapes is not None)
        try:
            traced = _traced(model, call, names, wanted, shapes is not None, functions, _noted(modules))
            _check_gradients(traced, wanted)
            return traced
        except UntraceableError as refusal:
            if way == "trace":
                raise
            return _compiled(call, names, wanted, modules, refusal)
    from onnxport.capture import exported

    if is_program(model):
        if way == "trace":
            raise errors.ArgumentError("capture='trace': an ExportedProgram is captured already")
        return exported.read_program(model, call, names, wanted, modules)
    try:
        return exported.compile_call(call, names, wanted, modules)
    except errors.CaptureError as error:
        _misspelt(error, axes, names)
        raise


def _misspelt(error: errors.CaptureError, axes: Mapping[str, Mapping[int, str]], names: Sequence[str]) -> None:
    """Adds to a refusal what may be its reason: an axis that was asked for under a name that no input has (it may be an output's)."""
    for name in axes:
        near = [] if name in names else difflib.get_close_matches(name, names, 1, 0.8)
        if near:
            error.args = (f"{error}\n(dynamic_axes names {name!r}, and the input is {near[0]!r})",)


def _marked(traced: Traced, names: Sequence[str], wanted: Sequence[dynamic.Wanted], by_shapes: bool) -> Traced:
    """With what was asked of the axes; labels in `dynamic_axes` say it all, unless some are computed from others."""
    if by_shapes or any(ask.derived for asks in wanted for ask in asks.values()):
        dynamic.mark(traced.graph, names, wanted)
    return traced


def _traced(model: Any, call: Call, names: Sequence[str], wanted: Sequence[dynamic.Wanted], by_shapes: bool,
            functions: bool, noted: Noted | None) -> Traced:
    """A trace of the call, and what it needs to be traced at another example."""
    def at(tensors: list[torch.Tensor]) -> Traced:
        traced = trace(model, tensors, call.names, call.run, dynamic=any(wanted), functions=functions, noted=noted)
        return _marked(traced, names, wanted, by_shapes)

    def wide(example: wider.Example) -> Traced:
        traced = at(example.tensors)
        traced.given, traced.agrees = example.given, functools.partial(_agrees, traced, call.tensors, first.results)
        return traced

    first = at(call.tensors)
    first.others = ((example.sizes, functools.partial(wide, example)) for example in wider.examples(call.tensors, names, wanted))
    return first


def _agrees(traced: Traced, tensors: list[torch.Tensor], results: list[Any]) -> bool:
    """Whether what was traced elsewhere gives these results for these tensors."""
    assert traced.rerun is not None
    if sum(isinstance(item, torch.Tensor) for item in traced.results) != sum(isinstance(item, torch.Tensor) for item in results):
        return False
    return alike(traced.rerun(tensors), results)


def _noted(modules: bool | frozenset[type]) -> Noted | None:
    """Of which modules the calls are noted."""
    if not modules:
        return None
    return lambda module: modules is True or type(module) in modules


def _check_gradients(traced: Traced, wanted: Sequence[dynamic.Wanted]) -> None:
    """A trace of a gradient holds for the example's sizes."""
    read = next((read for read in traced.graph.reads if read.kind == "gradient"), None) if any(wanted) else None
    if read is not None:
        raise UntraceableError("a gradient is computed, in which PyTorch takes sizes as they are in the example", read.source, "")


def _compiled(call: Call, names: Sequence[str], wanted: Sequence[dynamic.Wanted],
              modules: bool | frozenset[type], refusal: UntraceableError) -> Traced:
    """Through torch.export, because the tracer refuses the model."""
    from onnxport.capture import exported

    try:
        traced = exported.compile_call(call, names, wanted, modules)
    except errors.CaptureError as error:
        error.args = (f"{error}\n(torch.export was tried because of {refusal.reason})",)
        raise
    traced.why = f"PyTorch's tracer cannot capture the model ({refusal.reason})"
    return traced
