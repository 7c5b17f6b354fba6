"""Numbers that Python takes from a tensor and hands straight on: `x[:, : int(lengths.max())]`, `torch.arange(n.item())`.

Python's `int` cannot carry a trace. Where the source code shows all places that the number goes to, and each of them turns out
to be an operator of PyTorch's, the operator gets the tensor that the number was taken from. Otherwise the number is a read
like any other.
"""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, field
from typing import Any

import torch

from onnxport.aten.source import LIBRARY
from onnxport.capture import code


@dataclass
class Taken:
    """A number that was taken: the tensor, what Python saw, and the places that have not been met yet."""

    tensor: torch.Tensor
    seen: int | float
    missing: set[code.Site] = field(default_factory=set)

    def whole(self) -> torch.Tensor:
        """The tensor, of rank 0."""
        scalar = self.tensor.reshape(())
        return scalar if scalar.dtype.is_floating_point else scalar.to(torch.int64)


class Followed:
    """The numbers of one capture that may yet be followed."""

    def __init__(self) -> None:
        # By frame too: between a read and its use the same code may run again, with another number.
        self.places: dict[tuple[int, types.CodeType, code.Span], list[tuple[code.Site, Taken]]] = {}
        self.taken: dict[int, Taken] = {}

    def take(self, tensor: torch.Tensor, seen: Any, frame: types.FrameType, index: int) -> None:
        """Follows what the frame takes, if that is possible. index: of the read."""
        if type(seen) not in (int, float) or tensor.dtype == torch.bool or tensor.dtype.is_complex:
            return
        sites = code.sites(frame)
        if not sites:
            return
        taken = self.taken[index] = Taken(tensor, seen, set(sites))
        for site in sites:
            places = self.places.setdefault((id(frame), frame.f_code, site.span), [])
            places[:] = [(other, number) for other, number in places if (other.span, other.path) != (site.span, site.path)]
            places.append((site, taken))

    def is_met(self, index: int) -> bool:
        """Whether all places of a read have been met."""
        return index in self.taken and not self.taken[index].missing

    def replace(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], indexing: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of an operator that the user's code calls at this moment, with the tensors in place of numbers."""
        frame = _user_frame()
        where = code.span(frame) if frame is not None else None
        if frame is None or where is None:
            return args, kwargs
        for site, taken in self.places.get((id(frame), frame.f_code, where), ()):
            path = _path(site, taken, func, args, kwargs, indexing)
            if path is not None and _same(_at((args, kwargs), path), site.change(taken.seen)):
                args, kwargs = _with((args, kwargs), path, site.change(taken.whole()))
                taken.missing.discard(site)
        return args, kwargs


def _user_frame() -> types.FrameType | None:
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY):
        frame = frame.f_back
    return frame


def _path(site: code.Site, taken: Taken, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
          indexing: bool) -> tuple[int | str, ...] | None:
    """Where the number stands in (args, kwargs); None where that is not certain."""
    if site.count is None:
        return (0, 1, *site.path) if indexing else None
    if site.count == "operand":
        return _operand(args, site.change(taken.seen))
    if indexing or type(site.change(taken.seen)) is float:
        return None
    first, *rest = site.path
    if isinstance(func, types.FunctionType) and _times(site.change(taken.seen), (args, kwargs)) > 1:
        return None  # PyTorch's Python code passes some arguments on in another order
    if isinstance(first, str):
        return (1, first, *rest)
    shift = len(args) - site.count  # of a method, the tensor itself comes first
    return (0, first + shift, *rest) if shift in (0, 1) else None


def _operand(args: tuple[Any, ...], number: int | float) -> tuple[int, int] | None:
    """Of arithmetic between a tensor and the number, where a tensor of rank 0 gives the dtype that a number does."""
    others = [index for index, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
    if len(args) != 2 or len(others) != 1:
        return None
    other = args[others[0]]
    alike = other.dtype.is_floating_point or (type(number) is int and other.dtype in (torch.int64, torch.int32))
    return (0, 1 - others[0]) if alike and other.dim() > 0 else None


def _times(number: int | float, items: Any) -> int:
    """How often a number stands among arguments."""
    if isinstance(items, (tuple, list)):
        return sum(_times(number, item) for item in items)
    if isinstance(items, dict):
        return _times(number, list(items.values()))
    return int(_same(items, number))


def _same(found: Any, wanted: int | float) -> bool:
    return type(found) is type(wanted) and found == wanted


def _at(items: Any, path: tuple[int | str, ...]) -> Any:
    for key in path:
        if isinstance(items, slice):
            items = getattr(items, {"lower": "start", "upper": "stop", "step": "step"}[str(key)])
        elif isinstance(items, dict):
            items = items.get(key)
        elif isinstance(items, (tuple, list)) and isinstance(key, int) and key < len(items):
            items = items[key]
        else:
            return None
    return items


def _with(items: Any, path: tuple[int | str, ...], value: Any) -> Any:
    """A copy of nested arguments with another item at a path that is there."""
    if not path:
        return value
    key, *rest = path
    changed = _with(_at(items, (key,)), tuple(rest), value)
    if isinstance(items, slice):
        parts = {"lower": items.start, "upper": items.stop, "step": items.step, key: changed}
        return slice(parts["lower"], parts["upper"], parts["step"])
    if isinstance(items, dict):
        return {**items, key: changed}
    return type(items)([changed if i == key else item for i, item in enumerate(items)])
