"""Parameters that no `state_dict` knows: those of modules in plain lists, and of what a function or a method refers to."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Iterator
from typing import Any

import torch

_DEPTH = 5
_MODULE_KEYS = frozenset(vars(torch.nn.Module()))


def unregistered(model: Any) -> Iterator[tuple[str, Any]]:
    """(name, what) of each module and each tensor that needs gradients that `model` refers to, but has not registered."""
    seen: set[int] = set()
    if not isinstance(model, torch.nn.Module):
        yield from _below("", model, _DEPTH, seen)
        return
    registered = dict(model.named_modules())
    seen.update(map(id, registered.values()))
    seen.update(map(id, model.parameters()))
    for path, module in registered.items():
        yield from _attributes(module, f"{path}." if path else "", seen)


def _attributes(module: torch.nn.Module, prefix: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    for key, item in vars(module).items():
        if key not in _MODULE_KEYS and not isinstance(item, (str, int, float, type(None))):
            yield from _below(prefix + key, item, _DEPTH, seen)


def _below(name: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if depth == 0 or id(value) in seen:
        return
    if isinstance(value, torch.Tensor):
        if value.requires_grad and value.is_leaf:
            seen.add(id(value))
            yield name, value
        return
    if isinstance(value, torch.nn.Module):
        modules = dict(value.named_modules())
        seen.update(map(id, modules.values()))
        yield name, value
        for path, module in modules.items():
            yield from _attributes(module, ".".join(filter(None, (name, path))) + ".", seen)
        return
    members = _members(value)
    if members:
        seen.add(id(value))
    for key, member in members:
        yield from _below(f"{name}.{key}" if name and key else name or key, member, depth - 1, seen)


def _members(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(str(i), item) for i, item in enumerate(value)]
    if isinstance(value, dict):
        return [(str(key), item) for key, item in value.items()]
    if isinstance(value, functools.partial):
        return [("", value.func), ("", list(value.args)), ("", value.keywords)]
    if isinstance(value, types.MethodType):
        owner = value.__self__
        return [("", value.__func__), *([("", owner)] if isinstance(owner, torch.nn.Module) else list(getattr(owner, "__dict__", {}).items()))]
    if isinstance(value, types.FunctionType):
        return _referred(value)
    return []


def _referred(function: types.FunctionType) -> list[tuple[str, Any]]:
    """What a function holds in its closure and defaults, and the modules and tensors among the globals that it names."""
    code = function.__code__
    found: list[tuple[str, Any]] = []
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not assigned yet
            found.append((name, cell.cell_contents))
    found += [("", list(function.__defaults__ or ())), ("", function.__kwdefaults__ or {})]
    kinds = (torch.nn.Module, torch.Tensor, list, dict, types.FunctionType, functools.partial)
    space = function.__globals__
    if not str(space.get("__name__", "")).startswith("torch."):
        found += [(name, space[name]) for name in code.co_names if isinstance(space.get(name), kinds)]
    return found
