"""The modules under whose names people know things (`onnxport.symbolic_helper`, `onnxport.symbolic_opset9`): filled when they are used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class Alias(ModuleType):
    """A module whose names are looked up elsewhere."""

    def __init__(self, name: str, doc: str, find: Callable[[str], Any], names: Callable[[], list[str]]):
        super().__init__(name, doc)
        self.__dict__["__path__"] = []
        self._find, self._names = find, names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self._find(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._names()})


def install(package: str, oldest: int, newest: int) -> dict[str, ModuleType]:
    """Makes `package.symbolic_helper`, `package.utils` and `package.symbolic_opset<N>` importable; nothing is imported for them yet."""
    made: dict[str, ModuleType] = {name: _module(f"{package}.{name}", f"onnxport.compat.{name}") for name in ("symbolic_helper", "utils")}
    for opset in range(oldest, newest + 1):
        made[f"symbolic_opset{opset}"] = _opset_module(f"{package}.symbolic_opset{opset}")
    sys.modules.update({f"{package}.{name}": module for name, module in made.items()})
    return made


def _module(name: str, target: str) -> Alias:
    def module() -> ModuleType:
        return importlib.import_module(target)

    return Alias(name, f"See `{target}`.", lambda attribute: getattr(module(), attribute), lambda: dir(module()))


def _opset_module(name: str) -> Alias:
    def module() -> Any:
        return importlib.import_module("onnxport.compat.symbolic_opset")

    def find(attribute: str) -> Any:
        found = module().find(attribute)
        if found is None:
            raise AttributeError(f"module {name!r} has no function {attribute!r}")
        return found

    return Alias(name, "Functions that translate ATen operators: `relu(g, x)` inside a symbolic function.", find, lambda: module().names())
