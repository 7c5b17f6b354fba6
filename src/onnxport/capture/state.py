"""The tensors that a model keeps: parameters, buffers and plain attributes; and putting them back after a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from onnxport import errors
from onnxport.capture.unregistered import unregistered

_MODULE_KEYS = frozenset(vars(torch.nn.Module()))


@dataclass
class State:
    """What a module holds before the run.

    weights: parameters and buffers in `state_dict()` order, then buffers outside it; a tied one stands once.
    aliases: further names of tied ones. parameters: the names of parameters.
    rescaled: the names of those which their module scales down as it reads them (`max_norm` of an embedding).
    attributes: tensors that are neither, such as `self.cache = torch.zeros(3)` or the items of `self.masks = [...]`.
    slots: where buffers and attributes stand: (container, key, name, tensor).
    """

    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    rescaled: set[str] = field(default_factory=set)
    attributes: dict[str, torch.Tensor] = field(default_factory=dict)
    slots: list[tuple[Any, Any, str, torch.Tensor]] = field(default_factory=list)

    def rebound(self) -> list[tuple[str, torch.Tensor]]:
        """(name, new tensor) of each buffer and attribute to which the run assigned another tensor."""
        found = ((name, _get(container, key), tensor) for container, key, name, tensor in self.slots)
        return [(name, new) for name, new, tensor in found if new is not tensor and isinstance(new, torch.Tensor)]

    def named(self, tensors: list[torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
        """(name, tensor) of those that the model keeps."""
        if not tensors:
            return []
        names = {id(t): n for n, t in [*self.weights.items(), *self.attributes.items()]}
        return [(names[id(t)], t) for t in tensors if id(t) in names]

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Puts buffers and attributes back as they were, also when the model raises; a changed parameter is an error.

        One that is scaled down as it is read is put back, too: the file does the same at every run.
        """
        fixed = self.parameters - self.rescaled
        kept = {**{n: t for n, t in self.weights.items() if n not in fixed}, **self.attributes}
        copies = [(t, t.detach().clone()) for t in kept.values() if t.device.type != "meta"]
        versions = {name: _version(self.weights[name]) for name in fixed if name in self.weights}
        try:
            yield
        finally:
            for container, key, _, tensor in self.slots:
                if _get(container, key) is not tensor:
                    container[key] = tensor
            with torch.no_grad():
                for tensor, copy in copies:
                    if not torch.equal(tensor, copy):  # batch norm writes its statistics without counting up their versions
                        tensor.copy_(copy)
        changed = [name for name, version in versions.items() if _version(self.weights[name]) != version]
        if changed:
            raise errors.CaptureError(
                f"the model changes its parameters while it runs ({', '.join(sorted(changed))}); "
                "export a model whose forward only reads them")


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _get(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except (KeyError, IndexError):
        return None


def state_of(model: Any) -> State:
    """The tensors of a module or function: what it has registered, and what else it refers to."""
    state = State()
    first: dict[int, str] = {}
    if isinstance(model, torch.nn.Module):
        _registered(state, model, first)
    for name, found in unregistered(model):
        _unregistered(state, name, found, first)
    return state


def _unregistered(state: State, prefix: str, found: Any, first: dict[int, str]) -> None:
    """Enters a module or tensor that the model uses and has not registered: a weight like any other."""
    if isinstance(found, torch.nn.Module):
        tensors = [*found.named_parameters(prefix), *found.named_buffers(prefix)]
    else:
        tensors = [(prefix, found)]
    for plain, tensor in tensors:
        name, number = plain, 0
        while name in state.weights or name in state.aliases:
            number += 1
            name = f"{plain}_{number}"
        if id(tensor) in first or tensor.layout != torch.strided or tensor.device.type == "meta":
            continue
        first[id(tensor)] = name
        state.weights[name] = tensor
        if isinstance(tensor, torch.nn.Parameter) or tensor.requires_grad:
            state.parameters.add(name)
    if isinstance(found, torch.nn.Module) and not isinstance(found, torch.jit.ScriptModule):
        for path, module in found.named_modules(prefix=prefix):
            _slots(state, module, f"{path}." if path else "", first)


def _registered(state: State, model: torch.nn.Module, first: dict[int, str]) -> None:
    state.parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    for name, tensor in _tensors(model).items():
        if id(tensor) in first:
            state.aliases[name] = first[id(tensor)]
        else:
            first[id(tensor)] = name
            state.weights[name] = tensor
    for path, module in model.named_modules():
        if not isinstance(module, torch.jit.ScriptModule):
            _slots(state, module, f"{path}." if path else "", first)
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.max_norm is not None:
            state.rescaled.add(first.get(id(module.weight), f"{path}.weight"))


def _tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, in the order of `state_dict()`. (That of a quantised layer holds copies of what it keeps packed.)"""
    named: dict[str, torch.Tensor] = {}
    outside: dict[str, torch.Tensor] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        prefix, unsaved = f"{path}." if path else "", getattr(module, "_non_persistent_buffers_set", ())
        named.update((prefix + name, tensor) for name, tensor in module.named_parameters(recurse=False, remove_duplicate=False))
        for name, tensor in module.named_buffers(recurse=False, remove_duplicate=False):
            (outside if name in unsaved else named)[prefix + name] = tensor
    return {**named, **outside}


def _slots(state: State, module: torch.nn.Module, prefix: str, first: dict[int, str]) -> None:
    """Enters the buffers and plain tensor attributes of one module."""
    for key, tensor in module._buffers.items():
        if isinstance(tensor, torch.Tensor):
            state.slots.append((module._buffers, key, first.get(id(tensor), prefix + key), tensor))
    own = vars(module)
    for key, item in own.items():
        if key in _MODULE_KEYS:
            continue
        if type(item) is torch.Tensor:
            _attribute(state, own, key, prefix + key, first)
        elif type(item) in (list, dict):
            for inner, tensor in item.items() if isinstance(item, dict) else enumerate(item):
                if type(tensor) is torch.Tensor:
                    _attribute(state, item, inner, f"{prefix}{key}.{inner}", first)


def _attribute(state: State, container: Any, key: Any, name: str, first: dict[int, str]) -> None:
    tensor = container[key]
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        return
    known = first.setdefault(id(tensor), name)
    state.slots.append((container, key, known, tensor))
    if known == name:
        state.attributes[name] = tensor
