"""Calls of modules that are to become functions of the file (`export_modules_as_functions`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class ModuleCall:
    """One run of a module's `forward`.

    kind: the module's class, or only its full name.   path: its qualified name ("" for the model itself).   attributes: its annotated variables.
    parent: the call around it that is to become a function too.
    arguments, results: its tensors, in order, as whoever has the graph knows them: values of the captured program, then
    of the graph that is built, then names of the finished model. An argument has its name in `forward`.
    """

    kind: type | str
    path: str
    attributes: dict[str, Any]
    parent: ModuleCall | None
    arguments: list[tuple[str, Any]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    @property
    def domain(self) -> str:
        """The Python module of the class: the domain of the function."""
        return self.kind.rpartition(".")[0] if isinstance(self.kind, str) else self.kind.__module__

    @property
    def name(self) -> str:
        """The class's own name."""
        return self.kind.rpartition(".")[2] if isinstance(self.kind, str) else self.kind.__name__

    def chain(self) -> list[ModuleCall]:
        """The calls around this one, outermost first, and itself."""
        return [*(self.parent.chain() if self.parent is not None else ()), self]


class Scope(str):
    """Where a node was made, as `Net/body/body.0`, and in which call that is to become a function."""

    call: ModuleCall | None = None


def call_of(scope: str) -> ModuleCall | None:
    """The innermost call that a scope knows."""
    return scope.call if isinstance(scope, Scope) else None


def annotated(module: Any) -> dict[str, Any]:
    """The variables that a module's classes annotate, where they hold what a node's attribute can: numbers, strings, lists of one kind."""
    names: dict[str, None] = {}
    for kind in reversed(type(module).__mro__):
        if kind.__module__ != _BASE:
            names.update(dict.fromkeys(vars(kind).get("__annotations__", ())))
    found = {name: getattr(module, name, None) for name in names if not name.startswith("_")}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if _fits(value)}


_BASE = "torch.nn.modules.module"
_SCALARS = (bool, int, float, str)


def _fits(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        numbers = all(isinstance(v, (bool, int, float)) for v in value)
        return bool(value) and (numbers or all(isinstance(v, str) for v in value))
    return isinstance(value, _SCALARS)
