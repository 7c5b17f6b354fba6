"""Binds the user's `args` and `kwargs` to the model's call: which tensors are inputs, under which names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from onnxport import errors, structure


@dataclass
class Call:
    """One call of the model.

    tensors: its tensors in the order of the model's parameters (and of a script `Whole` lists of them), with their names; constants: names of
    what is no tensor.
    `run(tensors)` calls the model with other tensors in their places and gives (flat outputs, names, spec).
    """

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[torch.Tensor]
    names: list[str]
    constants: list[str]
    spec: structure.CallSpec

    def run(self, tensors: list[torch.Tensor]) -> tuple[list[Any], list[str], Any]:
        """Calls the model with `tensors` in place of its own."""
        args, kwargs = self.spec.unflatten(tensors)
        result = self.model(*args, **kwargs)
        leaves, spec = structure.flatten(result, numbers=True)  # outputs of rank 0
        for leaf in spec.constants:
            if not isinstance(leaf.value, (type(None), bool, int, float, str)):
                raise errors.CaptureError(
                    f"the output {leaf.path or 'of the model'} is of type {type(leaf.value).__name__}, which cannot be an output of an ONNX graph")
        if not any(isinstance(leaf.value, torch.Tensor) for leaf in leaves):
            raise errors.CaptureError(f"the model returned no tensor, but {type(result).__name__}")
        return [leaf.value for leaf in leaves], [leaf.path for leaf in leaves], spec


def bind(model: Any, args: Any, kwargs: dict[str, Any] | None) -> Call:
    """`args`: a tuple, a tensor, or a tuple that ends in a dict of named arguments ({} to pass a dict)."""
    if not callable(model):
        raise errors.ArgumentError(f"model must be a torch.nn.Module or a function, not {type(model).__name__}")
    if kwargs is not None and not (isinstance(kwargs, Mapping) and all(isinstance(name, str) for name in kwargs)):
        raise errors.ArgumentError(f"kwargs must be a dict of argument name to value, not {kwargs!r}")
    _check_weights(model)
    positional, named = _split(args)
    for name, value in (kwargs or {}).items():
        if name in named:
            raise errors.ArgumentError(f"the argument {name!r} is given in args and in kwargs")
        named[name] = value
    function = model.forward if isinstance(model, torch.nn.Module) else model
    named = _completed(function, positional, named)
    try:
        leaves, spec = structure.flatten_call(function, positional, named)
    except errors.ArgumentError as error:
        if isinstance(args, (tuple, list)) and args and type(args[-1]) is dict and args[-1]:
            raise errors.ArgumentError(f"{error}; args ends in a dict, which is taken for named arguments: to pass it by position, "
                                       "put an empty one behind it, args=(..., {...}, {})") from error
        raise
    for leaf in leaves:
        _check_input(leaf)
    for leaf in spec.constants:
        if isinstance(leaf.value, np.ndarray) and leaf.value.ndim:
            raise errors.ArgumentError(
                f"the argument {leaf.path} is a numpy array, which would be a constant of the file: pass torch.from_numpy(...) to make it an input")
    return Call(model, positional, named, [leaf.value for leaf in leaves], _distinct([leaf.path for leaf in leaves]),
                [leaf.path for leaf in spec.constants], spec)


def _check_input(leaf: structure.Leaf) -> None:
    if isinstance(leaf.value, structure.Whole):
        _check_list(leaf)
    for tensor in leaf.value if isinstance(leaf.value, structure.Whole) else (leaf.value,):
        _check_tensor(leaf, tensor)


def _check_list(leaf: structure.Leaf) -> None:
    """A sequence has one type, which the example tells."""
    if not leaf.value:
        raise errors.ArgumentError(f"the list {leaf.path} is empty, and a sequence has to say of which type its tensors are: give an example that "
                                   "holds one")
    if len({(tensor.dtype, tensor.dim()) for tensor in leaf.value}) > 1:
        raise errors.ArgumentError(f"the list {leaf.path} holds tensors of different dtypes or ranks; those of a sequence have one of each "
                                   "(lists='auto' makes an input of each tensor)")


def _check_tensor(leaf: structure.Leaf, tensor: torch.Tensor) -> None:
    if tensor.layout != torch.strided or tensor.is_nested:
        raise errors.ArgumentError(f"the input {leaf.path} is a {'nested' if tensor.is_nested else tensor.layout} tensor; ONNX inputs are dense")
    kind = _imagined(tensor)
    if kind:
        raise errors.ArgumentError(f"the input {leaf.path} is {kind} and has no numbers; pass a real one, with which the model can run")


def _imagined(tensor: torch.Tensor) -> str | None:
    """How a tensor comes to have no numbers, if it has none. A fake tensor names the device that it stands for."""
    if getattr(tensor, "fake_mode", None) is not None:
        return "a fake tensor"
    return "on the meta device" if tensor.device.type == "meta" else None


def _check_weights(model: Any) -> None:
    """A model has to be able to run."""
    if not isinstance(model, torch.nn.Module):
        return
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise errors.ArgumentError(f"the parameter {name!r} has no shape yet (a lazy module): run the model once before exporting it")
        kind = _imagined(tensor)
        if kind:
            raise errors.ArgumentError(f"the model's {name!r} is {kind} and has no numbers: load its weights first")


def _split(args: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if args is None:
        args = ()
    if isinstance(args, list):
        args = tuple(args)
    if not isinstance(args, tuple) or hasattr(args, "_fields"):
        args = (args,)
    if args and type(args[-1]) is dict:
        return args[:-1], dict(args[-1])
    return args, {}


def _completed(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """A named argument that is missing and has no default becomes None, as documented."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return kwargs
    if not kwargs:
        return kwargs
    missing = {p.name: None for p in parameters[len(args):]
               if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.default is p.empty and p.name not in kwargs}
    return {**kwargs, **missing}


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for position, plain in enumerate(names):
        name = f"input_{plain}" if not plain or plain[0].isdigit() else plain
        name = name if plain else f"input_{position}"
        count = seen.get(name, 0)
        seen[name] = count + 1
        result.append(name if not count else f"{name}_{count}")
    return result
