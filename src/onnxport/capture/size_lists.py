"""`x.roll(n, 0)` and `avg_pool1d(x, n)` with a traced size `n`.

Where an operator takes a list of sizes and is given one size alone, PyTorch's tracer records the example's number without
a word. A list it follows, so a size alone becomes a list of as many as the operator wants. Only captures with dynamic
axes need this.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from onnxport.capture import torch_private
from onnxport.capture.protocols import is_size


class SizeLists(TorchFunctionMode):
    """While active (in this thread), hands lists to operators that would read a size out of the trace."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(_is_number(a) for a in args[1:]) or (kwargs and any(_is_number(a) for a in kwargs.values())):
            lengths, most = _lengths(getattr(func, "__name__", ""))
            if lengths and len(args) <= most:  # more are `view(n, m)`, which is traced rightly
                args = tuple([_listed(a, lengths.get(i)) for i, a in enumerate(args)])
                kwargs = {name: _listed(a, lengths.get(name)) for name, a in (kwargs or {}).items()}
        named = kwargs or {}
        try:
            return func(*args, **named)
        except TypeError:
            # It wants a Python number or flag, as `is_causal=n > 1` is outside of a trace.
            plain, plain_named = tuple([_plain(a) for a in args]), {name: _plain(a) for name, a in named.items()}
            if not any(a is not b for a, b in zip((*args, *named.values()), (*plain, *plain_named.values()), strict=True)):
                raise
        return func(*plain, **plain_named)


def _is_number(arg: Any) -> bool:
    return isinstance(arg, torch.Tensor) and arg.dim() == 0 and arg.dtype == torch.int64


def _plain(arg: Any) -> Any:
    """Numbers made from sizes, and lists of such, as Python's own: what is taken is recorded like every other read."""
    if isinstance(arg, (list, tuple)):
        made = [_plain(a) for a in arg]
        return type(arg)(made) if type(arg) in (list, tuple) and any(a is not b for a, b in zip(made, arg, strict=True)) else arg
    return arg.item() if isinstance(arg, torch.Tensor) and is_size(arg) else arg


def _listed(arg: Any, length: int | None) -> Any:
    return [arg] * length if length is not None and _is_number(arg) else arg


@functools.cache
def _lengths(name: str) -> tuple[dict[int | str, int], int]:
    """The arguments of an operator that are lists of sizes in all of its overloads, by position and name, with their length;
    and how many arguments by position it takes."""
    found: dict[int | str, int] = {}
    other: set[int | str] = set()
    most = 0
    for schema in torch_private.schemas_of(f"aten::{name}"):
        if schema.overload_name.endswith("out"):
            continue
        most = max(most, sum(not argument.kwarg_only for argument in schema.arguments))
        for position, argument in enumerate(schema.arguments):
            keys = (argument.name,) if argument.kwarg_only else (position, argument.name)
            kind = str(argument.real_type)
            if kind in ("List[int]", "Optional[List[int]]"):
                found.update(dict.fromkeys(keys, argument.N or 1))
            else:
                other.update(keys)
    return {key: length for key, length in found.items() if key not in other}, most
