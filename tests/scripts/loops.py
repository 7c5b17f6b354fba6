# ruff: noqa: UP006, UP035 - scripts are written in what TorchScript reads
"""Loops: for and while, break, continue, return, nesting, carried values that change their size."""

from __future__ import annotations

from typing import Tuple

import torch
from torch import Tensor

from .table import row, t


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 1))
def for_range(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x + i
    return x


@row((t(1, 2), 9), (t(1, 2), 0), (t(1, 2), 3))
def for_range_steps(x: Tensor, n: int) -> Tensor:
    for i in range(2, n, 3):
        x = x * i
    for i in range(n, 1, -2):
        x = x + i
    return x


@row((t(1, 2, 3),), (t(4),), (torch.zeros(0),), x={0: "n"})
def for_over_tensor(x: Tensor) -> Tensor:
    s = torch.zeros(())
    for v in x:
        s = s * 2 + v
    return s


@row((t(9, 2),), (t(0.5, 0.1),), (t(100, 3),))
def while_loop(x: Tensor) -> Tensor:
    while bool(x.max() > 1):
        x = x / 2
    return x


@row((t(1, 2), 10), (t(1, 2), 0))
def while_number(x: Tensor, n: int) -> Tuple[Tensor, int]:
    i = 0
    while i * i < n:
        x = x + i
        i += 1
    return x, i


@row((t(1, 1, 1, 1),), (t(5, 1),), (t(0.1, 0.1),), x={0: "n"})
def break_(x: Tensor) -> Tensor:
    s = torch.zeros(())
    for i in range(x.size(0)):
        s = s + x[i]
        if bool(s > 2):
            break
    return s


@row((t(1, -1, 1, 1),), (t(-5, -1),), x={0: "n"})
def continue_(x: Tensor) -> Tensor:
    s = torch.zeros(())
    for i in range(x.size(0)):
        if bool(x[i] < 0):
            continue
        s = s + x[i] * i
    return s


@row((t(1, 1, 5, 1),), (t(1, 1, 1),), x={0: "n"})
def return_in_a_loop(x: Tensor) -> Tensor:
    for i in range(x.size(0)):
        if bool(x[i] > 3):
            return x * i
    return x - 1


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 1))
def nested_loops(x: Tensor, n: int) -> Tuple[Tensor, int]:
    s = 0
    for i in range(n):
        for j in range(i):
            if (i + j) % 2 == 0:
                s += j
            else:
                x = x + s
    return x, s


@row((t(1, 2), 3), (t(1, 2), 0))
def growing(x: Tensor, n: int) -> Tensor:
    y = x
    for _ in range(n):
        y = torch.cat([y, x])
    return y


@row((torch.arange(12.0).reshape(4, 3),), (torch.ones(1, 3),), x={0: "n"})
def shrinking(x: Tensor) -> Tensor:
    while x.size(0) > 1:
        x = x[1:] + x[:-1]
    return x


@row((t(1, 2),))
def few_known_turns(x: Tensor) -> Tensor:
    for i in range(3):
        x = x * 2 + i
    return x


@row((t(1, 2),))
def many_known_turns(x: Tensor) -> Tensor:
    for i in range(100):
        x = (x + i) * 0.5
    return x


@row((t(1, 2), 5), (t(1, 2), 1), (t(1, 2), 0))
def fibonacci(x: Tensor, n: int) -> Tensor:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return x * a


@row((t(1, 2), 3), (t(1, 2), -3))
def negative_numbers(x: Tensor, n: int) -> Tensor:
    k = n
    for _ in range(2):
        k = k - 2
    if k >= 0:
        return x * k
    return x - k


@row((t(1, 2), 0.5, 3), (t(1, 2), 0.25, 0))
def float_carried(x: Tensor, a: float, n: int) -> Tensor:
    for _ in range(n):
        a = a * 1.5 + 1
    return x * a


@row((t(1, 2), 3), (t(1, 2), 0))
def first_turn(x: Tensor, n: int) -> Tensor:
    first = True
    for _ in range(n):
        if first:
            x = x * 10
            first = False
        else:
            x = x + 1
    return x


@row((t(1, 2), 3), refused="dtype changes")
def dtype_changes(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(2, dtype=torch.int64)
    for _ in range(n):
        y = y + x
    return y
