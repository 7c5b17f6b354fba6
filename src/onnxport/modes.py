"""Training mode during an export."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from onnxport.options import TrainingMode

# A model runs in one mode at a time; while it is captured it is not itself (torch.export puts fake weights into it, batch norms move their
# statistics), nor are globals of PyTorch. So one thread at a time runs models or reads their weights; an export inside of another is one
# of the same thread.
ONE_AT_A_TIME = threading.RLock()


def is_training(model: Any) -> bool:
    """Whether a module, or that of a method, has a part in training mode."""
    owner = model if isinstance(model, torch.nn.Module) else getattr(model, "__self__", None)
    return isinstance(owner, torch.nn.Module) and any(getattr(module, "training", False) for module in owner.modules())


@contextmanager
def select_model_mode_for_export(model: Any, mode: Any) -> Iterator[None]:
    """Puts `model` into `mode` (a `TrainingMode`) and each of its submodules back into its own on the way out, also after an error."""
    if not isinstance(model, torch.nn.Module) or int(mode) == TrainingMode.PRESERVE:
        yield
        return
    wanted = int(mode) == TrainingMode.TRAINING
    before = [(module, module.training) for module in model.modules() if hasattr(module, "training")]  # frozen scripts have none
    try:
        if any(flag != wanted for _, flag in before):
            model.train(wanted)
        yield
    finally:
        for module, flag in before:
            if module.training != flag:
                module.training = flag
