"""The old constructors `torch.Tensor(n, 2)`, `torch.LongTensor([n])`, `x.new(n)`: of traced sizes they make a constant of the example's size.

Given sizes, they do what `torch.empty` does; given a list that holds sizes, what `torch.tensor` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onnxport.capture import torch_private
from onnxport.capture.protocols import Patch, is_size

_TYPED = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "LongTensor", "IntTensor", "ShortTensor", "CharTensor", "ByteTensor",
          "BoolTensor")
_new = torch.Tensor.new


class _Typed(type):
    """Stands for `torch.LongTensor` and its like while a capture runs."""

    original: Any
    make: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = cls.make(args, cls.original.dtype) if not kwargs else None
        return cls.original(*args, **kwargs) if made is None else made

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.original)

    def __str__(cls) -> str:
        return str(cls.original)


def patches(active: Callable[[], bool], stacked: Callable[[Any], torch.Tensor]) -> list[Patch]:
    """(owner, attribute, stand-in) of each. active: whether this thread captures; stacked: makes a traced tensor of a list of sizes."""

    def make(args: tuple[Any, ...], dtype: torch.dtype) -> torch.Tensor | None:
        return _made(args, dtype, stacked) if active() else None

    def new(*given: Any, **kwargs: Any) -> Any:  # torch._dynamo, once imported, refuses all other parameters than these
        cls, *args = given
        made = make(tuple(args), torch.get_default_dtype()) if cls is torch.Tensor and not kwargs else None
        return torch_private.new_tensor(cls, *args, **kwargs) if made is None else made

    typed = [(torch, name, _Typed(name, (), {"original": getattr(torch, name), "make": staticmethod(make)})) for name in _TYPED]
    return [(torch.Tensor, "__new__", staticmethod(new)), *typed]


def call(func: Any, args: tuple[Any, ...], stacked: Callable[[Any], torch.Tensor]) -> tuple[Any, ...] | torch.Tensor:
    """What `x.new(...)` makes; of any other method, the arguments with PyTorch's own types in place of the stand-ins."""
    if func is _new:
        made = _made(args[1:], args[0].dtype, stacked)
        return args if made is None else made
    return tuple([arg.original if isinstance(arg, _Typed) else arg for arg in args])


CALLS = {_new, torch.Tensor.type}


def _made(args: tuple[Any, ...], dtype: torch.dtype, stacked: Callable[[Any], torch.Tensor]) -> torch.Tensor | None:
    """The tensor, where the arguments hold a traced size."""
    sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args
    if sizes and all(type(size) is int or _is_traced(size) for size in sizes):
        return torch.empty(*sizes, dtype=dtype) if any(_is_traced(size) for size in sizes) else None
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and _holds_size(args[0]):
        return stacked(args[0]).to(dtype)
    return None


def _is_traced(size: Any) -> bool:
    return isinstance(size, torch.Tensor) and is_size(size)


def _holds_size(data: Any) -> bool:
    return _is_traced(data) or (isinstance(data, (list, tuple)) and any(_holds_size(item) for item in data))
