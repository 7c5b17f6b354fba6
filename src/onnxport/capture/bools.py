"""Python bools where an operator takes a number: `torch.full(shape, True)`, `mask.masked_fill(m, False)`.

PyTorch's tracer records a bool, finds no operator that takes one, and fails. What the operator does with a bool, it does with
0 or 1 as well, but for the dtypes that follow from it.
"""

from __future__ import annotations

from typing import Any

import torch

_NUMBERS = """full_like new_full fill_ masked_fill masked_fill_ scatter scatter_ index_fill index_fill_ fill_diagonal_ threshold threshold_
    clamp clamp_ clip clip_ clamp_min clamp_min_ clamp_max clamp_max_ hardtanh hardtanh_ leaky_relu leaky_relu_ elu elu_ celu softplus
    hardshrink softshrink addcmul addcmul_ addcdiv addcdiv_ lerp lerp_"""
_TENSORS = """where eq ne lt le gt ge eq_ ne_ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __or__ __xor__ __rand__ __ror__ __rxor__
    __iand__ __ior__ __ixor__ bitwise_and bitwise_or bitwise_xor pow remainder fmod xlogy __pow__ __mod__"""


def _functions(names: str) -> set[Any]:
    owners = (torch, torch.Tensor, torch.nn.functional)
    return {getattr(owner, name) for name in names.split() for owner in owners if hasattr(owner, name)}


# Those whose result has the dtype of their first argument, whatever the number is; and those that take a tensor of rank 0 for it.
_TAKE_NUMBERS, _TAKE_TENSORS = _functions(_NUMBERS), _functions(_TENSORS)
_MAKE = {torch.full, torch.scalar_tensor}
_FILL = torch.fill
FUNCTIONS = _TAKE_NUMBERS | _TAKE_TENSORS | _MAKE | {_FILL}


def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls one of `FUNCTIONS` so that it is traced."""
    if func is _FILL and len(args) == 2 and not isinstance(args[1], torch.Tensor):
        func = torch.full_like  # which is what the tracer makes of it, one argument short of all
    if not any(type(a) is bool for a in (*args, *kwargs.values())):
        return func(*args, **kwargs)
    if func in _TAKE_TENSORS:
        return func(*map(_tensor, args), **{name: _tensor(a) for name, a in kwargs.items()})
    if func is torch.full and kwargs.get("dtype") is None:
        kwargs = {**kwargs, "dtype": torch.bool}
    flags = ("pin_memory", "requires_grad", "inplace")
    return func(*map(_number, args), **{name: a if name in flags else _number(a) for name, a in kwargs.items()})


def _number(arg: Any) -> Any:
    return int(arg) if type(arg) is bool else arg


def _tensor(arg: Any) -> Any:
    return torch.tensor(arg) if type(arg) is bool else arg
