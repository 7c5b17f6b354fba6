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


class Size(NamedTuple):
    count: int
    scale: float


@row((t(1, 2), 3), (t(1, 2), 0))
def named_tuple_of_numbers(x: Tensor, n: int) -> Tuple[Tensor, float]:
    size = Size(n, 0.5)
    if n > 1:
        size = Size(size.count * 2, size.scale + 1)
    return x * size.count, size.scale


@row(((t(1, 2), 3),), ((t(1, 2), 0),))
def tuple_input(p: Tuple[Tensor, int]) -> Tensor:
    x, n = p
    return x * n if n > 0 else x


@row((t(1, 2), 0.5), (t(1, 2), -2.25))
def arithmetic_of_floats(x: Tensor, a: float) -> Tuple[Tensor, float, int]:
    b = abs(a) ** 2 + a / 3
    k = int(b * 10) // 3
    return x * b, max(a, b), k


@row((t(1, 2), 7, 2), (t(1, 2), -7, 2), (t(1, 2), 7, -3), (t(1, 2), 0, 5))
def arithmetic_of_ints(x: Tensor, a: int, b: int) -> Tuple[Tensor, int, int, float]:
    return x * (a // b), a % b, abs(a) - b, a / b


@row((t(1, 2), 3), (t(1, 2), 0))
def strings_in_dead_code(x: Tensor, n: int, mode: str = "sum") -> Tensor:
    message = f"{mode} of {n}"
    if mode == "sum" and mode != "mean":
        return x + n
    if message == "":
        raise RuntimeError("no mode " + mode)
    return x


@row((t(1, 2), 3), (t(1, 2), 0))
def printed(x: Tensor, n: int) -> Tensor:
    if n > 100:
        print("much", n, x)
    return x * n


@row((t(1, 2), 3), (t(1, 2), 0))
def optional_number(x: Tensor, n: int) -> Tensor:
    k: Optional[int] = None
    if n > 1:
        k = n
    return x * (k if k is not None else 10)


@row((t(1, 2), 3), (t(1, 2), 0))
def dictionary_in_a_loop(x: Tensor, n: int) -> Tensor:
    d = {"a": x, "b": x * 2}
    for key in ["a", "b"]:
        x = x + d[key] * n
    for key, y in d.items():
        x = x - y * len(key)
    return x + len(d)


@row((t(1, 2), 2), (t(1, 2), 0))
def dictionary_of_numbers(x: Tensor, n: int) -> Tensor:
    d = {"low": n - 1, "high": n + 1}
    return x[: d["high"]].sum() + d["low"] * d.get("none", 3)


@row((t(1.5, 2),), (t(-0.5, 2),))
def conversions(x: Tensor) -> Tuple[int, float, bool, Tensor]:
    a = x[0].item()
    return int(a), float(x[1]) * 2, bool(x[0] > 0), torch.tensor(float(a))


@row((torch.ones(2, 3, dtype=torch.int64), 1), (torch.ones(4, 1, dtype=torch.int64), 2), x={0: "a", 1: "b"})
def sizes_as_numbers(x: Tensor, n: int) -> Tuple[int, int, Tensor]:
    rows_, columns = x.shape
    return rows_ * columns, x.numel() + x.dim(), x.new_zeros(rows_ + n, columns).to(torch.float32)


@row((t(1, 2), 3), (t(1, 2), 0))
def inner_function(x: Tensor, n: int) -> Tensor:
    y, k = _scaled(x, n)
    return y + _scaled(y, k, 0.5)[0]


def _scaled(x: Tensor, n: int, by: float = 2.0) -> Tuple[Tensor, int]:
    if n == 0:
        return x, 1
    return x * by, n - 1
