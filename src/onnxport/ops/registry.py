"""Where an operator function makes itself known: `@aten` above it, and nothing else anywhere.

A function takes the builder and then the ATen schema's arguments by their names (those that mean nothing to a graph,
like `layout` or `device`, may be left out), and returns a value, a list of values, or plain Python for sizes.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., Any])

# Arguments that say where or how PyTorch computes, not what.
NEUTRAL = frozenset({"layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "requires_grad", "cudnn_enabled",
                     "cudnn_enable", "benchmark", "deterministic", "allow_tf32", "copy", "sparse", "scale_grad_by_freq"})


@dataclass(frozen=True)
class Operator:
    """One operator: its ATen name (`aten::max` or `aten::max.dim`), the function, and what it takes.

    needs: the lowest opset that it runs at.   fold: whether PyTorch may compute it on constants.
    """

    name: str
    function: Callable[..., Any]
    takes: frozenset[str] = field(default_factory=frozenset)
    needs: int = 7
    fold: bool = True


_operators: dict[str, Operator] = {}
_of_complex: dict[str, Operator] = {}  # what goes before these where a complex tensor or number is among the arguments
_lock = threading.Lock()
_discovered = False


def register(names: tuple[str, ...], function: Callable[..., Any], needs: int, fold: bool, also: tuple[str, ...] = ()) -> None:
    """Enters `function` under each name; a name without a domain is ATen's."""
    parameters = [*list(inspect.signature(function).parameters)[1:], *also]
    for name in names:
        full = name if "::" in name else f"aten::{name}"
        if full in _operators and _operators[full].function.__module__ != function.__module__:
            raise ValueError(f"{full} is defined in {_operators[full].function.__module__} and in {function.__module__}")
        _operators[full] = Operator(full, function, frozenset(parameters), needs, fold)


@overload
def aten(function: Function, /) -> Function: ...


@overload
def aten(*names: str, needs: int = 7, fold: bool = True, also: tuple[str, ...] = ()) -> Callable[[Function], Function]: ...


def aten(*names: Any, needs: int = 7, fold: bool = True, also: tuple[str, ...] = ()) -> Any:
    """`@aten`: the function is the operator of its own name. `@aten("max.dim", "min.dim")`: of these (with overload where it matters).

    needs: the lowest opset at which it can be said.   fold=False: it is random or has other effects.
    also: arguments that no parameter of Python can be named after (`from`) and that the function takes in its ``**more``.
    """
    if len(names) == 1 and callable(names[0]):
        register((names[0].__name__,), names[0], needs, fold)
        return names[0]

    def decorate(function: Function) -> Function:
        register(tuple(names) or (function.__name__,), function, needs, fold, also)
        return function

    return decorate


def of_complex(*names: str) -> Callable[[Function], Function]:
    """`@of_complex("exp")`: the function is the operator wherever an argument is complex, or the result is to be."""
    def decorate(function: Function) -> Function:
        takes = frozenset(list(inspect.signature(function).parameters)[1:])
        for name in names:
            if f"aten::{name}" in _of_complex:
                raise ValueError(f"aten::{name} of complex numbers is defined twice")
            _of_complex[f"aten::{name}"] = Operator(f"aten::{name}", function, takes)
        return function

    return decorate


def operators() -> dict[str, Operator]:
    """All operators, by name; the modules of `onnxport.ops` are imported at the first call."""
    global _discovered
    if not _discovered:
        with _lock:
            package = importlib.import_module("onnxport.ops")
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"onnxport.ops.{module.name}")
            _discovered = True
    return _operators


def find(name: str, overload: str) -> Operator | None:
    """The function for this overload, or for all of the operator's overloads."""
    table = operators()
    return table.get(f"{name}.{overload}") or table.get(name)


def find_of_complex(name: str, overload: str) -> Operator | None:
    """The function for complex arguments of this overload, or of all of the operator's overloads."""
    operators()
    return _of_complex.get(f"{name}.{overload}") or _of_complex.get(name)


def supported() -> list[tuple[str, int]]:
    """(name, lowest opset) of every operator, sorted."""
    return sorted((o.name, o.needs) for o in operators().values())
