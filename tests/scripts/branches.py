# ruff: noqa: UP006, UP035 - scripts are written in what TorchScript reads
"""Branches: if, elif, ternaries, and, or, early ends."""

from __future__ import annotations

from typing import Tuple

import torch
from torch import Tensor

from .table import row, t


@row((t(1, 2),), (t(-1, -2),))
def if_else(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        y = x * 2
    else:
        y = x - 1
    return y


@row((t(1, 2),), (t(-1, -2),), (t(0, 0),))
def elif_chain(x: Tensor) -> Tensor:
    s = x.sum()
    if s > 1:
        return x * 2
    if s < -1:
        return x - 5
    return x.abs() + 3


@row((t(1, 2),), (t(-1, -2),))
def ternary(x: Tensor) -> Tensor:
    return x if bool(x[0] > 0) else -x


@row((t(1, 2),), (t(-1, 2),), (t(1, -2),), (t(-1, -2),))
def and_or(x: Tensor) -> Tensor:
    if bool(x[0] > 0) and bool(x[1] > 0):
        return x * 2
    if bool(x[0] > 0) or bool(x[1] > 0):
        return x * 3
    return x


@row((t(1, 2),), (t(-1, 2),))
def negation(x: Tensor) -> Tensor:
    flag = not bool(x[0] > 0)
    return x + 1 if flag else x + 2


@row((t(1, 2),), (t(1, 2, 3),), x={0: "n"})
def branch_of_other_size(x: Tensor) -> Tensor:
    if x.size(0) > 2:
        return torch.cat([x, x])
    return x


@row((t(1, 2), 3), (t(1, 2), -3))
def number_of_a_branch(x: Tensor, n: int) -> Tensor:
    k = 5 if n > 0 else n
    return x * k


@row((t(1, 2), 0.5), (t(1, 2), -0.5))
def float_of_a_branch(x: Tensor, a: float) -> Tuple[Tensor, Tensor]:
    s = a * 2 if a > 0 else 0.25
    return x * s, x + s


@row((t(1, 2), True), (t(1, 2), False))
def bool_input(x: Tensor, flag: bool) -> Tensor:
    return x if flag else x * 2


@row((t(1, 2),), (t(-1, 2),))
def several_results(x: Tensor) -> Tuple[Tensor, Tensor]:
    a, b = x, x * 2
    if bool(x[0] > 0):
        a, b = b, a
    return a, b


@row((t(1, 2),), (t(-1, 2),))
def nested_branches(x: Tensor) -> Tensor:
    if bool(x[0] > 0):
        if bool(x[1] > 1):
            y = x * 2
        else:
            y = x * 3
    else:
        y = x * 4 if bool(x[1] > 5) else x * 5
    return y


@row((torch.ones(2, 3),), refused="rank")
def branch_of_other_rank(x: Tensor) -> Tensor:
    y = x.sum(0) if bool(x[0, 0] > 0) else x
    return y.softmax(y.dim() - 1) + y.size(0)


@row((t(1, 2),), refused="dtype")
def branch_of_other_dtype(x: Tensor) -> Tensor:
    return x if bool(x[0] > 0) else x.to(torch.int64)


@row((t(1, 2),))
def known_branch(x: Tensor) -> Tensor:
    if x.dim() == 1 and x.dtype == torch.float32 and x.is_floating_point():
        return x * 2
    return x.special_nothing_of_the_kind() if False else x.view(7)


@row((t(1, 2),), (t(1, 3),))
def assertion(x: Tensor) -> Tensor:
    assert bool(x.sum() > 0), f"sum of {x.size(0)} numbers is {x.sum()}"
    if bool(x[0] < 0):
        raise RuntimeError("negative")
    return x * 2


@row((t(1, 2),), refused="raises: RuntimeError: never")
def always_raises(x: Tensor) -> Tensor:
    if x.dim() == 1:
        raise RuntimeError("never")
    return x
