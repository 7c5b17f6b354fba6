"""Weights that a quantised layer keeps in the order that its kernel wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class Packed:
    """An argument: a weight that only PyTorch's kernels can read.

    unpack: gives it as a tensor, a new one each time.   name: that of the weight (`layer.weight`), where it is known.
    """

    unpack: Callable[[], torch.Tensor]
    name: str | None
