# ruff: noqa: UP006, UP035 - scripts are written in what TorchScript reads
"""Writes inside branches and loops."""

from __future__ import annotations

from typing import List, Tuple

import torch
from torch import Tensor

from .table import row, t


@row((t(1, 2),), (t(-1, 2),))
def write_in_a_branch(x: Tensor) -> Tensor:
    y = x.clone()
    if bool(x[0] > 0):
        y[0] = 5.0
    else:
        y += 1
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def write_in_a_loop(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(4, 2)
    for i in range(n):
        y[i] = x * i
        y[i, 0] += 1
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def write_through_a_view(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    y = x * 2
    v = y[:1]
    while n > 0:
        v += 1
        n -= 1
    return y, v


@row((t(1, -2, 3),), (t(-1, 2, -3),))
def write_in_nested_blocks(x: Tensor) -> Tensor:
    y = x * 1
    for i in range(3):
        for j in range(i):
            if bool(y[j] > 0):
                y[i] -= y[j]
            else:
                y.mul_(2)
    return y


@row((torch.arange(10.0), torch.tensor([1, 2, 3, 4])), (torch.arange(6.0), torch.tensor([4, 2])), flat={0: "a"}, lengths={0: "b"})
def pad_ragged(flat: Tensor, lengths: Tensor) -> Tensor:
    out = torch.zeros([lengths.size(0), int(lengths.max())], dtype=flat.dtype)
    start = 0
    for i in range(lengths.size(0)):
        n = int(lengths[i])
        out[i, :n] = flat[start : start + n]
        start = start + n
    return out


@row((t(1, 2), 3), refused="clone it")
def written_and_listed(x: Tensor, n: int) -> Tensor:
    s = x * 0
    xs: List[Tensor] = []
    for _ in range(n):
        s += x
        xs.append(s)
    return torch.stack(xs)


@row((t(1, 2),))
def written_in_a_list(x: Tensor) -> Tensor:
    a = x * 1
    xs = [a]
    xs.append(a * 2)
    xs[0] += 1
    return a


@row((t(1, -2, 3),), (t(-1, -2, -3),), (t(1,),), x={0: "n"})
def mask_write_in_a_branch(x: Tensor) -> Tensor:
    y = x * 1
    if bool(y.sum() > 0):
        y[y > 1] = 0.5
    return y


@row((torch.zeros(3, 4), 2), (torch.zeros(3, 4), 0), (torch.zeros(3, 4), 3))
def rows_and_columns(x: Tensor, n: int) -> Tensor:
    y = x.clone()
    for i in range(n):
        y[i] = i + 1
        y[:, i + 1] += 10
        y[i, i:] *= 2
    return y


@row((t(1, 2, 3), 1), (t(1, 2, 3), 5), (t(1, 2, 3), -1), (t(1, 2, 3), -9))
def slice_of_any_start(x: Tensor, n: int) -> Tensor:
    y = x * 1
    y[n:] = 7.0
    y[:n] += 1
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def two_deep_write(x: Tensor, n: int) -> Tuple[Tensor, int]:
    y = x * 2
    for _ in range(n):
        for _ in range(n):
            y *= 0.5
    return y.clone(), y.numel()


@row((t(1, 2), 3), (t(1, 2), 0))
def written_before_a_loop(x: Tensor, n: int) -> Tensor:
    y = torch.cat([x, x])
    y.zero_()
    for _ in range(n):
        y += x.max()
    return y.flip(0)


@row((torch.ones(2, 3), 2), (torch.ones(2, 3), 0))
def view_of_a_view(x: Tensor, n: int) -> Tensor:
    y = x * 1
    v = y.t()[1:]
    if n > 1:
        v[0] += n
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def in_place_operators(x: Tensor, n: int) -> Tensor:
    y = x * 1
    for i in range(n):
        y -= i
        y *= 2
        y /= 4
        y.clamp_(-1, 1)
    return y
