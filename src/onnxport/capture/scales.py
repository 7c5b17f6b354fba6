"""How much smaller a feature map is than the image: a number that torchvision's region poolers take from sizes while they are traced.

They round it to a power of two, so that it is the same for all but the smallest images: a guard of the file, no baked size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from onnxport.capture import torch_private

Note = Callable[[str, torch.Tensor, Any], None]


def patches(active: Callable[[], bool], note: Note) -> list[tuple[Any, str, Any]]:
    """(owner, attribute, function), where a model may use it."""
    poolers = sys.modules.get("torchvision.ops.poolers")
    original = getattr(poolers, "_infer_scale", None)
    return [] if original is None else [(poolers, "_infer_scale", _infer_scale(original, active, note))]


def _infer_scale(original: Callable[..., float], active: Callable[[], bool], note: Note) -> Callable[..., float]:
    def infer_scale(feature: torch.Tensor, original_size: list[Any]) -> float:
        small, large = feature.shape[-2], original_size[0]
        if not active() or not isinstance(small, torch.Tensor):
            return original(feature, original_size)
        exponent = (small / large).log2().round()
        with torch_private.untraced():
            seen = float(exponent)
        note("bool", torch.eq(exponent, seen), True)
        return 2.0 ** seen

    return infer_scale
