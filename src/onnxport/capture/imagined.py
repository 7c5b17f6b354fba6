"""Operators of which PyTorch does not say what they give without running them: torch.export would refuse every model with one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxport.capture import torch_private

Tensor = torch.Tensor


def _with_mask(x: Tensor, *settings: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


def _observed(x: Tensor, observer_on: Tensor, fake_quant_on: Tensor, *state: Any) -> tuple[Tensor, ...]:
    return *_with_mask(x), *[torch.empty_like(t) for t in state[:4]]


_RESULTS: dict[str, Callable[..., Any]] = {
    "fake_quantize_per_tensor_affine_cachemask": _with_mask,
    "fake_quantize_per_channel_affine_cachemask": _with_mask,
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": _with_mask,
    "_fake_quantize_learnable_per_tensor_affine": lambda x, *settings: torch.empty_like(x),
    "_fake_quantize_learnable_per_channel_affine": lambda x, *settings: torch.empty_like(x),
    "_fused_moving_avg_obs_fq_helper": _with_mask,
    "_fused_moving_avg_obs_fq_helper_functional": _observed,
}


@contextlib.contextmanager
def results() -> Iterator[None]:
    """Inside, these operators tell what they give."""
    library = torch.library.Library("aten", "IMPL", "Meta")
    for name, function in _RESULTS.items():
        if not torch_private.is_imaginable(f"aten::{name}"):
            library.impl(name, function)
    try:
        yield
    finally:
        torch_private.forget(library)
