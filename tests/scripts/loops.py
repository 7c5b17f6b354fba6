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


@row((t(1, 2, 3), t(4, 5, 6)), (t(1), t(2)), (torch.zeros(0), torch.zeros(0)), x={0: "n"}, y={0: "n"})
def zip_of_tensors(x: Tensor, y: Tensor) -> Tensor:
    s = torch.zeros(())
    for a, b in zip(x, y):
        s = s + a * b
    return s


@row((torch.arange(6.0).reshape(3, 2),), (torch.ones(1, 2),), (torch.ones(0, 2),), x={0: "n"})
def enumerate_tensor(x: Tensor) -> Tensor:
    s = torch.zeros(2)
    for i, line in enumerate(x):
        s = s + line * (i + 1)
    return s


@row((t(1, 2), 5), (t(1, 2), 0), (t(1, 2), 1))
def range_downwards(x: Tensor, n: int) -> Tensor:
    for i in range(n - 1, -1, -1):
        x = x * 2 - i
    return x


@row((t(1, 2), 6), (t(1, 2), 0), (t(1, 2), 2))
def while_with_break_and_continue(x: Tensor, n: int) -> Tuple[Tensor, int]:
    i = 0
    while True:
        i += 1
        if i > n:
            break
        if i % 2 == 0:
            continue
        x = x + i
    return x, i


@row((t(1, 2, 3, 4), 3), (t(1, 2, 3, 4), 0), (t(9, 2, 3, 4), 4))
def break_of_the_inner_loop(x: Tensor, n: int) -> Tuple[Tensor, int]:
    count = 0
    for i in range(n):
        for j in range(4):
            if bool(x[j] > i + 1):
                break
            count += 1
            x = x + 1
    return x, count


@row((t(1, 2, 3, 4), 3), (t(1, 2, 3, 4), 0), (t(0, 0, 0, 0), 4))
def return_from_nested_loops(x: Tensor, n: int) -> Tuple[Tensor, int]:
    for i in range(n):
        for j in range(4):
            if bool(x[j] > 2):
                return x * j, i
        x = x - 1
    return x, -1


@row((t(1, 2), 4), (t(1, 2), 0), (t(1, 2), 1))
def range_of_a_carried_number(x: Tensor, n: int) -> Tuple[Tensor, int]:
    k = 1
    for _ in range(n):
        for _ in range(k):
            x = x + 1
        k = k * 2
    return x, k


@row((t(1, 2), 2), (t(1, 2), 0), (t(1, 2), 1))
def six_deep(x: Tensor, n: int) -> Tuple[Tensor, int]:
    k = 0
    for a in range(n):
        for b in range(n):
            for c in range(n):
                for d in range(n):
                    for e in range(n):
                        for f in range(n):
                            k += a + b + c + d + e + f
                            x = x + 0.5
    return x, k


@row((torch.ones(2, 3), 3), (torch.ones(2, 3), 0), (torch.ones(4, 1), 1), x={0: "a", 1: "b"})
def both_dims_grow(x: Tensor, n: int) -> Tensor:
    y = x
    for i in range(n):
        y = torch.cat([y, y[:, :1]], 1)
        if i == 1:
            y = torch.cat([y, y])
    return y


@row((t(1, 2, 3), 2), (t(1,), 0), (t(1, 2), 5), x={0: "n"})
def power_of_a_matrix(x: Tensor, n: int) -> Tensor:
    m = torch.outer(x, x) / 8
    out = torch.eye(x.size(0))
    for _ in range(n):
        out = out @ m
    return out


@row((t(1, 4, 2), 8), (t(0, 0), 8), (t(9,), 0), x={0: "n"})
def while_tensor_and_number(x: Tensor, n: int) -> Tuple[Tensor, int]:
    i = 0
    while i < n and bool(x.max() < 20):
        x = x * 1.5
        i += 1
    return x, i


@row((torch.tensor([3, 1, 2]), t(1, 2)), (torch.tensor([0]), t(1, 2)), n={0: "k"})
def range_of_each_element(n: Tensor, x: Tensor) -> Tensor:
    for k in n:
        for i in range(int(k)):
            x = x + i
    return x


@row((t(1, 2), 3), (t(1, 2), 0))
def carried_flag_and_optional(x: Tensor, n: int) -> Tuple[Tensor, bool]:
    last: int | None = None
    rising = True
    for i in range(n):
        if last is not None:
            rising = rising and i > last
            x = x + last
        last = i
    return x, rising


@row((t(1, 2), 3), (t(1, 2), 0))
def loop_that_changes_nothing(x: Tensor, n: int) -> Tensor:
    y = x * 2
    for _ in range(n):
        y = y
    return y


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 2))
def loop_variable_is_assigned(x: Tensor, n: int) -> Tuple[Tensor, int]:
    i = 7
    for i in range(n):
        x = x + i
        i = i * 2
    return x, i


@row((torch.zeros(2, 3), 3), (torch.zeros(2, 3), 0), x={0: "b"})
def beam(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    tokens = torch.zeros(x.size(0), 1, dtype=torch.int64)
    score = torch.zeros(x.size(0))
    for i in range(n):
        best, place = (x + tokens.float().sum(1, keepdim=True) * i).max(1)
        tokens = torch.cat([tokens, place[:, None] + 1], 1)
        score = score + best
    return tokens, score
