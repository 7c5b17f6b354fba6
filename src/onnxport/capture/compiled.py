"""Models that went through torch.compile: captured is what they were compiled from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

_IN_PLACE = "_compiled_call_impl"  # set by `module.compile()`
_WRAPPED = "_orig_mod"  # held by what `torch.compile(module)` gives


def original(model: Any) -> Any:
    """The function that `torch.compile` was given; a module as it is (see `uncompiled`)."""
    return model if isinstance(model, torch.nn.Module) else getattr(model, "_torchdynamo_orig_callable", model)


@contextlib.contextmanager
def uncompiled(model: Any) -> Iterator[None]:
    """Compiled submodules, and the model itself, run as they were written; their names stay (`_orig_mod.` among them)."""
    before: list[tuple[dict[str, Any], str, Any]] = []
    for module in model.modules() if isinstance(model, torch.nn.Module) else ():
        own = vars(module)
        modules = own.get("_modules")
        inner = modules.get(_WRAPPED) if isinstance(modules, dict) else None  # those of a scripted module are no dict
        if inner is not None and "forward" in own:
            before.append((own, "forward", own["forward"]))
            own["forward"] = inner
        if own.get(_IN_PLACE) is not None:
            before.append((own, _IN_PLACE, own[_IN_PLACE]))
            own[_IN_PLACE] = None
    try:
        yield
    finally:
        for own, name, value in reversed(before):
            own[name] = value
