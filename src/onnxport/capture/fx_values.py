"""What FX graphs hold, fake tensors and symbolic numbers, as captured values."""

from __future__ import annotations

from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Value
from onnxport.capture import torch_private


def constant(tensor: torch.Tensor, name: str | None = None) -> Value:
    """A tensor that is known. Raises `CaptureError` for one that torch.export only imagines: it has lost how that is computed."""
    if torch_private.is_imagined(tensor):
        raise errors.CaptureError("torch.export lost how a tensor is computed, inside a derivative or a transform of torch.func")
    return Value("tensor", tensor.dtype, tuple(tensor.shape), tensor.stride(), name=name, constant=tensor)


def typed(value: Any) -> Value:
    """A new value of the type of a fake tensor or symbolic number; sizes that are not known at all leave the shape out."""
    if isinstance(value, torch.Tensor):
        shape = tuple([s if type(s) is int else number(s) for s in value.shape])
        strides = tuple([s if type(s) is int else number(s) for s in value.stride()]) if value.layout == torch.strided else (None,)
        return Value("tensor", value.dtype, shape, None if None in shape or None in strides else strides)  # type: ignore[arg-type]
    if isinstance(value, (bool, torch.SymBool)):
        return Value("bool")
    if isinstance(value, (int, torch.SymInt)):
        return Value("int")
    if isinstance(value, (float, torch.SymFloat)):
        return Value("float")
    return Value("list" if isinstance(value, (list, tuple)) else "none" if value is None else "object")


def number(size: Any) -> int | None:
    """What a size is in the example; None where only the data decides."""
    if isinstance(size, int):
        return size
    hint = size.node.hint if size.node.has_hint() else None
    return None if hint is None else int(hint)
