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


@row((torch.arange(6.0).reshape(2, 3), True), (torch.arange(6.0).reshape(2, 3), False), (torch.ones(1, 3), False), x={0: "n"})
def all_elements_of_a_branch_of_other_rank(x: Tensor, flag: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor, int]:
    y = (x.sum(0) if flag else x) * 2 - x
    z = (x.sum(0) if flag else x).relu()
    return y.sum() + z.mean(), z.max(), z.reshape(-1), torch.flatten(z + 1), z.numel()


@row((torch.ones(2), True), refused="result type of these tensors depends")
def dtype_that_depends_on_the_rank(x: Tensor, flag: bool) -> Tensor:
    y = x.to(torch.float64).sum() if flag else x.to(torch.float64)
    return (y * x).sum()


@row((torch.ones(2, 3), True), refused="rank of a tensor is not known")
def dim_of_a_branch_of_other_rank(x: Tensor, flag: bool) -> Tensor:
    return (x.sum(0) if flag else x).sum(-1)


@row((torch.ones(2, 3), True), refused="bring them to one rank")
def output_of_other_rank(x: Tensor, flag: bool) -> Tensor:
    return x.sum(0) if flag else x


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


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), -3), (t(1, 2), 9))
def elif_of_numbers(x: Tensor, n: int) -> Tuple[Tensor, int]:
    if n > 5:
        k = 1
    elif n > 0:
        k = 2
    elif n == 0:
        k = 3
    else:
        k = 4
    return x * k, k


@row((torch.zeros(0),), (t(1, 2),), (t(-1, 2),), x={0: "n"})
def and_ends_early(x: Tensor) -> Tensor:
    if x.size(0) > 0 and bool(x[0] > 0):
        return x * 2
    return x - 1


@row((t(1, 2),), (torch.zeros(0),), (t(-1, 2),), x={0: "n"})
def or_ends_early(x: Tensor) -> Tensor:
    if x.size(0) == 0 or bool(x[0] > 0):
        return x + 5
    return x - 1


@row((t(1, 2), 3), (t(1, 2), 4), (t(1, 2), -3))
def chained_comparison(x: Tensor, n: int) -> Tensor:
    if 0 < n < 4:
        x = x * 2
    return x if not (n == 3 or n == 4) else -x


@row((t(1, 2), 3), (t(-1, 2), 3), (t(1, 2), 0))
def ternary_of_tuples(x: Tensor, n: int) -> Tuple[Tensor, int]:
    a, k = (x, n) if bool(x[0] > 0) and n > 0 else (x * 2, n - 1)
    return a + k, k


@row((t(1, 2), 3), (t(1, 2), 1), (t(1, 2), 0))
def made_in_one_branch_only(x: Tensor, n: int) -> Tensor:
    if n > 2:
        y = x * 2
        z = y + 1
    else:
        y = x - 1
        z = y
    return z if n != 0 else y


@row((t(1, 2), 3), (t(1, 2), -3), (t(-4, 2), 3))
def early_returns(x: Tensor, n: int) -> Tensor:
    if n < 0:
        return x
    y = x * n
    if bool(y.sum() < 0):
        return y.abs()
    return y + 1


@row((t(1, 2, 3), 2), (t(1, 2, 3), 0), (t(1,), 1), x={0: "a"})
def branches_of_other_sizes_joined(x: Tensor, n: int) -> Tensor:
    y = x[:n] if n > 0 else x[1:]
    return torch.cat([y, x]) * y.size(0)


@row((t(1, 2), True, False), (t(1, 2), True, True), (t(1, 2), False, True))
def flags(x: Tensor, a: bool, b: bool) -> Tuple[Tensor, bool]:
    c = a and not b
    if c or (a == b):
        x = x * 3
    return x, c


@row((t(1, 2), 3), (t(1, 2), 1))
def raise_of_one_branch(x: Tensor, n: int) -> Tensor:
    if n > 0:
        y = x * n
    else:
        raise ValueError(f"n is {n}")
    assert y.size(0) == 2, "two"
    return y


@row((t(1, 2),), (t(-1, 2),))
def pass_in_a_branch(x: Tensor) -> Tensor:
    if bool(x[0] > 0):
        pass
    else:
        x = x + 1
    return x
