# ruff: noqa: UP006, UP035, PERF401, RUF007 - scripts are written in what TorchScript reads
"""Lists: methods, positions that the running model decides, lengths that it decides."""

from __future__ import annotations

from typing import List, Tuple

import torch
from torch import Tensor

from .table import row, t


@row((t(1, 2), 3), (t(1, 2), 1))
def append_and_stack(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for _ in range(n):
        x = x * 2
        xs.append(x)
    return torch.stack(xs)


@row((torch.arange(6.0).reshape(2, 3), 3), (torch.ones(2, 3), 1), x={0: "a", 1: "b"})
def append_and_cat(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    xs = [x]
    for i in range(n):
        xs.append(x + i)
    return torch.cat(xs, 1), torch.stack(xs, -1)


@row((t(1, 2), 3), (t(1, 2), 1), (t(1, 2), 0))
def append_twice(x: Tensor, n: int) -> Tensor:
    xs = [x]
    for i in range(n):
        xs.append(x * i)
        xs.append(x + i)
    return torch.stack(xs)


@row((t(1, 2),), (t(-1, 2),))
def append_in_a_branch(x: Tensor) -> Tensor:
    xs = [x]
    if bool(x[0] > 0):
        xs.append(x * 2)
    return torch.stack(xs).sum(0)


@row((t(1, 0.1), 3), (t(1, 20), 3), (t(0.1, 0.2), 8))
def append_until(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    xs: List[Tensor] = [x]
    for _ in range(n):
        if bool(x.sum() > 4):
            break
        x = x * 2
        xs.append(x)
    return torch.stack(xs), x


@row((t(1, 2, 3, 4),), (t(1, 2, -3, 4),), x={0: "n"})
def list_of_numbers(x: Tensor) -> Tensor:
    found: List[int] = [0]
    for i in range(x.size(0)):
        if bool(x[i] > 1):
            found.append(i)
    return torch.tensor(found)


@row((t(1, 2),))
def list_methods(x: Tensor) -> Tensor:
    xs = [x, x * 2, x * 3]
    xs.insert(1, x * 10)
    last = xs.pop()
    xs.extend([last, x * 7])
    xs[0] = x * 100
    del xs[1]
    xs.reverse()
    return torch.stack(xs[1:] + [x])


@row((t(1, 2), 3), (t(1, 2), 2))
def list_read_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x, x + 1]
    for i in range(n):
        xs.append(xs[-1] + xs[i])
    return xs[n]


@row((t(1, 2), 1), (t(1, 2), 0), (t(1, 2), -1))
def dynamic_index(x: Tensor, i: int) -> Tensor:
    xs = [x, x * 2, x * 3]
    return xs[i]


@row((t(1, 2, 3),), (t(1,),), x={0: "n"})
def comprehension(x: Tensor) -> Tensor:
    xs = [x * i for i in range(3)]
    return torch.stack([y + 1 for y in xs])


@row((t(1, 2, 3), [t(1, 1, 1), t(2, 2, 2)]))
def list_input(x: Tensor, ys: List[Tensor]) -> Tensor:
    for i, y in enumerate(ys):
        x = x + y * i
    for a, b in zip(ys, ys[1:]):
        x = x - a * b
    return x + len(ys)


@row((t(1, 2, 3, 4),), x={0: "n"})
def list_length(x: Tensor) -> Tensor:
    xs: List[Tensor] = []
    for i in range(x.size(0)):
        xs.append(x[i])
    return x * len(xs)


@row((t(1, 2), 3), refused="differ from turn to turn|different shapes")
def ragged_list(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(torch.zeros(i))
    return torch.cat(xs)


@row((torch.arange(4.0),), (t(1, 2),), x={0: "n"})
def windows(x: Tensor) -> Tensor:
    xs: List[Tensor] = []
    for i in range(x.size(0)):
        xs.append(x[i:].sum())
    return torch.stack(xs)


@row((torch.arange(6.0).reshape(3, 2),), (torch.ones(1, 2),), x={0: "n"})
def unbind_loop(x: Tensor) -> Tensor:
    s = torch.zeros(2)
    for row_ in x.unbind(0):
        s = s + row_
    return s
