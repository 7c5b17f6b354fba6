# ruff: noqa: UP006, UP035, UP045 - scripts are written in what TorchScript reads
"""Tuples, dicts, Optionals, numbers, strings."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .table import row, t


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


@row((t(1, 2),), (t(-1, 2),))
def named_tuple(x: Tensor) -> Tuple[Tensor, Tensor]:
    p = Pair(x, x * 2)
    if bool(x[0] > 0):
        p = Pair(p.right, p.left)
    return p.left, p.right


@row((t(1, 2), 3), (t(1, 2), 0))
def tuple_carried(x: Tensor, n: int) -> Tensor:
    p = (x, x * 2)
    for _ in range(n):
        p = (p[1], p[0] + p[1])
    return p[0]


@row((t(1, 2),))
def dictionary(x: Tensor) -> Dict[str, Tensor]:
    d = {"a": x, "b": x * 2}
    d["c"] = d["a"] + d["b"]
    if "q" in d:
        d["a"] = x * 100
    return d


@row(({"a": t(1, 2), "b": t(3, 4)},))
def dictionary_input(d: Dict[str, Tensor]) -> Tensor:
    return d["a"] - d["b"]


@row((t(1, 2), True), (t(1, 2), False))
def optional(x: Tensor, flag: bool) -> Tensor:
    extra: Optional[Tensor] = None
    if flag:
        extra = x * 3
    if extra is not None:
        x = x + extra
    return x


@row((t(1, 2), None))
def optional_input(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    return x if y is None else x + y


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 1))
def optional_carried(x: Tensor, n: int) -> Tensor:
    before: Optional[Tensor] = None
    for _ in range(n):
        if before is None:
            before = x
        else:
            before = before * 2 + x
    return x if before is None else before


@row((t(1, 2), 3), (t(1, 2), 7))
def numbers(x: Tensor, n: int) -> Tuple[Tensor, int, float, bool]:
    return x * (n // 2) + n % 3, max(n, 5) - min(n, 4), float(n) / 2, n > 4


@row((t(1, 2), "a"))
def string_input(x: Tensor, mode: str) -> Tensor:
    return x if mode == "a" else x * 2


@row((torch.tensor([3, 1, 2]),))
def scalars_of_tensors(x: Tensor) -> Tensor:
    n = int(x[0])
    m = x[1].item()
    return torch.zeros(n) + float(x[2]) + m
