"""Which capture a model takes: a trace by default, torch.export where it is asked for or where the program is one already."""

from __future__ import annotations

import os
from typing import Any

import torch

from onnxport import errors
from onnxport.calls import Call, bind
from onnxport.capture import exported
from onnxport.capture.trace import Traced, trace

WAYS = ("auto", "trace", "export")


def loaded(model: Any) -> Any:
    """A `.pt2` path as the program in it; anything else as it is."""
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if not os.path.exists(path):
            raise errors.ArgumentError(f"model is the path {path!r}, which does not exist")
        if path.endswith(".pt2"):
            return exported.load(path)
        raise errors.ArgumentError(f"model is the path {path!r}; only .pt2 files are read")
    return model


def is_program(model: Any) -> bool:
    """Whether it was captured by torch.export already."""
    return isinstance(model, torch.export.ExportedProgram)


def call_of(model: Any, args: Any, kwargs: dict[str, Any] | None) -> Call:
    """The call that is captured; an exported program brings its own example."""
    if is_program(model):
        if args in ((), None) and not kwargs and model.example_inputs is not None:
            args, kwargs = model.example_inputs
        return bind(model.module(check_guards=False), (*args, {}) if isinstance(args, tuple) else args, dict(kwargs or {}))
    return bind(model, args, kwargs)


def capture(model: Any, call: Call, way: str, dynamic_shapes: Any) -> Traced:
    """Runs or compiles the model once."""
    if way not in WAYS:
        raise errors.ArgumentError(f"capture={way!r}: it must be one of {', '.join(WAYS)}")
    if is_program(model):
        return exported.read(model)
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        raise errors.UnsupportedError("scripted programs are not captured yet; pass the module that was scripted")
    if way == "export":
        if not isinstance(model, torch.nn.Module):
            raise errors.ArgumentError("capture='export' takes a torch.nn.Module")
        return exported.read(exported.compile_module(model, call.args, call.kwargs, dynamic_shapes))
    return trace(model, call.tensors, call.names, call.run)
