# ruff: noqa: UP006, UP035, UP045, PERF401 - scripts are written in what TorchScript reads
"""Tensors and lists that may be the same as others that are written."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from .table import row, t


@row((t(1, 2), 3), (t(1, 2), 0))
def swapped_and_written(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    a, b = x * 1, x * 2
    for _ in range(n):
        a += 1
        a, b = b, a
    return a, b


@row((t(1, 2),), (t(-1, 2),))
def one_of_two_is_written(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x * 1
    z = y if bool(x[0] > 0) else x * 3
    z += 1
    return y, z


@row((t(1, 2),))
def converted_and_written(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x.to(torch.float32)
    y += 1
    return y, x


@row((t(1, 2), 3), (t(1, 2), 1))
def written_after_a_new_start(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    y = x * 1
    z = y
    for _ in range(n):
        y = y * 2
        y += 1
    return y, z


@row((t(1, 2, 3), 2), (t(1, 2, 3), 0))
def overlapping_slices(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(5)
    y[1:3] = x[:2]
    for i in range(n):
        y[i : i + 2] += x[:2]
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def list_assigned_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x]
    for i in range(n):
        xs = xs + [x * i]
    return torch.stack(xs)


@row((t(1, 2), 3), (t(1, 2), 0))
def list_replaced_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x, x * 2]
    for i in range(n):
        new: List[Tensor] = []
        for h in xs:
            new.append(h + i)
        xs = new
    return xs[0] - xs[1]


@row((t(1, 2), 2), (t(1, 2), 0))
def list_of_either_branch(x: Tensor, n: int) -> Tensor:
    if n > 1:
        xs = [x]
        xs.append(x * 2)
    else:
        xs = [x * 3, x]
    xs.append(x)
    return torch.stack(xs)


@row((t(1, 2), 2), refused="copy it first")
def one_of_two_lists_is_changed(x: Tensor, n: int) -> Tensor:
    xs, zs = [x], [x * 2]
    ys = xs if n > 1 else zs
    ys.append(x)
    return torch.stack(xs)


@row((t(1, 2), 9), (t(1, 2), 0), (t(0.1, 0.1), 2))
def flag_ends_the_loop(x: Tensor, n: int) -> Tuple[Tensor, int, bool]:
    done, i = False, 0
    while not done:
        i += 1
        x = x + 1
        done = bool(x.sum() > 12) or i >= n
    return x, i, done


@row((torch.arange(9.0),), (torch.ones(1),), (torch.ones(4),), x={0: "n"})
def halved(x: Tensor) -> Tuple[Tensor, int]:
    k = x.size(0)
    while k > 1:
        k = k // 2
        x = x[:k] * 2
    return x, k


@row((t(1, -2, 3),), (t(-1, -2, -3),))
def masked_in_a_branch(x: Tensor) -> Tensor:
    mask = x > 0
    if bool(mask.any()):
        x = x[mask]
    return x


@row((t(1, 2), 3), (t(1, 2), 1))
def dict_written_in_a_branch(x: Tensor, n: int) -> Tensor:
    d: Dict[str, Tensor] = {}
    d["a"] = x
    if n > 2:
        d["a"] = x * 2
    return d["a"]


@row((t(1, 2), 2), (t(1, 2), 1), (t(1, 2), 5))
def queue(x: Tensor, n: int) -> Tensor:
    q: List[Tensor] = []
    for i in range(n):
        q.append(x * i)
        if len(q) > 2:
            q.pop(0)
    return torch.stack(q)


@row((t(1, 5, 3), 2), (t(-4, -3, -9), 1))
def best(x: Tensor, n: int) -> Tuple[Tensor, int]:
    most, where = float("-inf"), -1
    for i in range(x.size(0)):
        v = float(x[i])
        if v > most:
            most, where = v, i
    return x * most * n, where


@row((t(1, 2, 3), 2), (t(1, 2, 3), 1))
def nested_lists(x: Tensor, n: int) -> Tensor:
    rows: List[List[Tensor]] = []
    for i in range(2):
        row_: List[Tensor] = []
        for j in range(2):
            row_.append(x * (i + j * n))
        rows.append(row_)
    return rows[1][0] + rows[0][1]


@row((t(1, 2), 1), (t(1, 2), 0), (t(1, 2), -2))
def item_of_any_place_is_written(x: Tensor, n: int) -> Tensor:
    y, z = x * 1, x * 2
    v = [y, z][n]
    v += 1
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def listed_by_a_sum_and_written(x: Tensor, n: int) -> Tensor:
    y = x * n
    xs = [x] + [y]
    y[0] = 5.0
    return torch.stack(xs)


@row((t(1, 2), 3), (t(1, 2), 0))
def item_of_a_list_is_written(x: Tensor, n: int) -> Tensor:
    y = x * 1
    for v, k in zip([y], [n]):
        v += k
    return y


@row((t(1, 2), True), refused="clone it")
def two_results_are_one(x: Tensor, flag: bool) -> Tensor:
    if flag:
        a = x * 2
        b = a
    else:
        a, b = x * 1, x * 3
    a += 1
    return b


@row((t(1, 2), 2), (t(1, 2), 0), (t(1, 2), 1), (t(1, 2), 5))
def start_of_a_loop_is_written(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    a = x * 1
    b, y = a, x * 0
    for _ in range(n):
        a += 1
        y = y + b
        b = b * 2
    return a, y


@row((t(1, 2, 3, 4), 2), refused="clone it")
def window_of_each_turn_is_written(x: Tensor, n: int) -> Tensor:
    w = x * 2
    for _ in range(n):
        w[0] += 1
        w = w[1:]
    return w


@row((t(1, 2), 2), (t(1, 2), 0))
def list_changed_in_one_branch_and_replaced_in_the_other(x: Tensor, n: int) -> Tensor:
    xs = [x, x * 2]
    if n > 1:
        xs.append(x * 3)
    else:
        xs = [x * 4, x]
    return torch.stack(xs).sum(0)


@row((t(1, 2), 2), refused="copy it first")
def other_name_of_a_list(x: Tensor, n: int) -> Tensor:
    xs = [x]
    ys = xs
    for i in range(n):
        if i > 0:
            xs = [x * i]
    xs.append(x)
    return torch.stack(ys)


@row((t(1, 2), 3), (t(1, 2), 0))
def tuple_holds_what_is_written(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    p = (x * 1, n)
    v = p[0]
    y = x * 0
    for _ in range(n):
        v += 1
        y = y + p[0]
    return y, v


@row((t(1, 2), 3, True), (t(1, 2), 3, False), (t(1, 2), 0, True))
def one_of_two_is_read_in_a_loop(x: Tensor, n: int, flag: bool) -> Tensor:
    a = x * 1
    b = a if flag else x
    s = torch.zeros_like(x)
    for _ in range(n):
        s = s + b
        a += 1
    return s


@row((t(1, 2), 3, True), (t(1, 2), 2, False), (t(1, 2), 0, False))
def new_start_in_one_branch(x: Tensor, n: int, flag: bool) -> Tuple[Tensor, Tensor]:
    v = x * 1
    w = v
    for _ in range(n):
        if flag:
            w += 1
            w = w * 2
        else:
            v += 3
    return v, w


@row((t(1, 2, 3), 3, True), (t(1, 2, 3), 3, False), (t(1, 2), 1, True), x={0: "n"})
def part_of_one_or_another(x: Tensor, n: int, flag: bool) -> Tuple[Tensor, Tensor]:
    v = x * 1
    if n > 2:
        w = v[1:]
        if flag:
            w = v
    else:
        w = v * 2
    w += 1
    v *= 2
    return v, w


@row((t(1, 2), 0), (t(1, 2), 1), (t(1, 2), 4))
def written_where_it_is_none_at_first(x: Tensor, n: int) -> Tensor:
    v, w = x * 1, x * 2
    last: Optional[Tensor] = None
    for i in range(n):
        if last is not None:
            last += 1
        last = v if i % 2 == 0 else w
        w = w + v
    return v + w


@row((t(1, 2), 0), (t(1, 2), 1), (t(1, 2), 2))
def listed_twice_and_written(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    a = x * 1
    xs = [a, a]
    xs += [x * 2]
    y = xs[n % 3]
    y += 1
    return a, torch.stack(xs)


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 4))
def items_written_in_turn(x: Tensor, n: int) -> Tuple[Tensor, Tensor, Tensor]:
    a, b = x * 1, x * 2
    xs = [a, b]
    for i in range(n):
        v = xs[i % 2]
        v += xs[(i + 1) % 2]
        a -= 1
    return a, b, xs[0]


@row((t(1, 2), True), (t(1, 2), False))
def list_of_one_of_two_is_written(x: Tensor, flag: bool) -> Tuple[Tensor, Tensor, Tensor]:
    a = x * 1
    b = a if flag else x * 3
    for v in [a, b]:
        v += 1
    b += 1
    xs = [b, a]
    xs.reverse()
    xs.insert(1, x)
    xs[0] *= 5
    return a, b, torch.stack(xs)


@row((t(1, 2), 3, True), (t(1, 2), 3, False), (t(1, 2), 0, False))
def list_changed_in_a_branch_of_a_loop(x: Tensor, n: int, flag: bool) -> Tensor:
    ks = [1]
    for i in range(n):
        if flag:
            x = x + 1
        else:
            ks += [max(ks) + i]
    return torch.tensor(ks) + x[0]


@row((t(1, 2), 3), (t(1, 2), 1), (t(1, 2), 0), refused="clone it")
def read_before_it_is_written_in_the_next_turn(x: Tensor, n: int) -> Tensor:
    a = x * 1
    xs = [x]
    s = torch.zeros_like(x)
    for _ in range(n):
        s = s + xs[-1]
        xs.append(a)
        a += 1
    return s


@row((t(1, 2), 3), (t(1, 2), 0), refused="clone it")
def written_in_the_turn_after_it_was_listed(x: Tensor, n: int) -> Tensor:
    v = x * 1
    xs = [x]
    for _ in range(n):
        v += 1
        v = v * 2
        xs.append(v)
    return torch.stack(xs)
