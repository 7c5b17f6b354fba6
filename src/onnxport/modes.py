"""Training mode during an export."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from onnxport.options import TrainingMode

_PATIENCE = 60.0  # seconds that a fork waits


class _OneAtATime:
    """A lock of one thread, which may take it again. A fork waits until no other thread has it: a child would find it taken for ever.

    A fork that the lock's thread itself waits for would wait for ever, too: after a minute it goes on, and the child has a lock of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._taken = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before, after_in_parent=self._after, after_in_child=self._after_in_child)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def _before(self) -> None:
        self._taken.now = self._lock.acquire(timeout=_PATIENCE)

    def _after(self) -> None:
        if self._taken.now:
            self._lock.release()

    def _after_in_child(self) -> None:
        if not self._taken.now:
            self._lock = threading.RLock()
        self._after()


# A model runs in one mode at a time; while it is captured it is not itself (torch.export puts fake weights into it, batch norms move their
# statistics), nor are globals of PyTorch. So one thread at a time runs models or reads their weights; an export inside of another is one
# of the same thread.
ONE_AT_A_TIME = _OneAtATime()


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
            with suppress(NotImplementedError):  # the module of an exported program stays in the mode that it was captured in
                model.train(wanted)
        yield
    finally:
        for module, flag in before:
            if module.training != flag:
                module.training = flag
