# ruff: noqa: UP006, UP035, UP045, PERF401 - scripts are written in what TorchScript reads
"""Lists of tensors of different shapes whose length only the running model knows: ONNX sequences."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from .table import row, t

X = t(1, 2, 3)
BELOW = {"refused": "needs opset 13 or higher", "since": 13}


@row((X, 3), (X, 1), (X, 5), **BELOW)
def ragged_list(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(torch.zeros(i) + x[0])
    return torch.cat(xs)


@row((X, 3), (X, 1), (t(1, 2, 3, 4, 5), 4), x={0: "n"}, **BELOW)
def ragged_slices(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(x[:i])
    return torch.cat(xs)


@row((X, 3), (X, 0), (X, 1), **BELOW)
def items_of_a_ragged_list(x: Tensor, n: int) -> Tuple[Tensor, Tensor, int]:
    xs: List[Tensor] = [x]
    for i in range(n):
        xs.append(x[:i] * 2)
    return xs[0], xs[-1], len(xs)


@row((X, 3), (X, 0), (X, 1), (X, 2), **BELOW)
def turns_over_a_ragged_list(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        if i % 2 == 0:
            xs.append(x[:i] * 2)
    y = x * 0
    for v in xs:
        y = y + v.sum()
    return y


@row((X, 3), (X, 0), (X, 1), **BELOW)
def sum_of_ragged_lists(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        xs = xs + [x[i:]]
    return torch.cat(xs + [x])


@row((X, 3), (X, 2), (X, 4), **BELOW)
def ragged_list_changed_later(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = [x[:1]]
    for i in range(n):
        xs.append(x[:i])
    a = xs.pop()
    b = xs.pop(0)
    xs.insert(0, x * 3)
    xs[-1] = x * 5
    xs[n - 2] = x[1:]
    xs[1 - n] = x[:1] * 7
    return torch.cat(xs + [a, b])


@row((X, True), (X, False), **BELOW)
def branches_with_lists_of_different_shapes(x: Tensor, flag: bool) -> Tuple[Tensor, int]:
    xs = [x]
    if flag:
        xs.append(x[1:])
    else:
        xs.append(x[:1])
        xs.append(x[:0])
    return torch.cat(xs), len(xs)


@row((X, True), (X, False), **BELOW)
def branch_that_leaves_a_list_as_it_is(x: Tensor, flag: bool) -> Tensor:
    xs = [x, x[1:]]
    if flag:
        xs.append(x[:1])
    return torch.cat(xs)


@row((X, 1), (X, 0), (X, -1))
def any_item_of_different_shapes(x: Tensor, n: int) -> Tensor:
    xs = [x, x[1:], x[:1]]
    return xs[n] * 2


@row((X, 3), (X, 2), (X, 1), **BELOW)
def two_ragged_lists(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    ys: List[Tensor] = []
    for i in range(n):
        xs.append(x[:i])
        ys.append(x[i:])
    xs += ys
    return torch.cat(xs)


@row((X, 3), (X, 9), (X, 1), **BELOW)
def ragged_list_of_a_while(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    i = 0
    while i < n:
        i += 1
        if i == 3:
            continue
        xs.append(x[:i])
        if len(xs) > 4:
            break
    return torch.cat(xs, 0)


@row((X, 3), (X, 2), (X, 1), **BELOW)
def stack_of_tensors_as_long_as_a_number_says(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(x[: n - 1] + i)
    return torch.stack(xs, 1)


@row((X, 3), (X, 2), (X, 1), **BELOW)
def ragged_list_of_nested_loops(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        for j in range(i):
            xs.append(x[j:])
        xs.append(x[:i])
    return torch.cat(xs)


@row((torch.arange(12.0).reshape(3, 4), 3), (torch.arange(8.0).reshape(2, 4), 1), (torch.arange(4.0).reshape(1, 4), 4), x={0: "n"}, **BELOW)
def ragged_matrices(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    rows: List[Tensor] = []
    columns: List[Tensor] = []
    for i in range(n):
        rows.append(x[:i] @ torch.ones(4, 2))
        columns.append(x[:, :i])
    return torch.cat(rows) @ torch.ones(2, 1), torch.cat(columns, -1)


@row((torch.tensor([3, 1, 2]), X), (torch.tensor([0]), X), (torch.tensor([2, 2]), X), lengths={0: "k"}, **BELOW)
def split_by_lengths(lengths: Tensor, x: Tensor) -> Tensor:
    parts: List[Tensor] = []
    for length in lengths:
        parts.append(x[: int(length)] - x[: int(length)].sum())
    return torch.cat(parts)


@row((X, 3), (X, 1), (X, 2), **BELOW)
def integers_in_a_ragged_list(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(torch.nonzero(x > i)[:, 0])
    return torch.cat(xs)


@row((X, 3), (X, 0), (X, 1), **BELOW)
def ragged_list_that_a_turn_clears(x: Tensor, n: int) -> Tuple[Tensor, int]:
    xs: List[Tensor] = [x]
    for i in range(n):
        if i == 1:
            xs.clear()
        xs.append(x[:i])
    return torch.cat(xs + [x]), len(xs)


@row((X, 3), (X, 0), (X, 1), **BELOW)
def copy_of_a_ragged_list(x: Tensor, n: int) -> Tuple[Tensor, int]:
    xs: List[Tensor] = [x[:1]]
    for i in range(n):
        xs.append(x[:i])
    ys = xs.copy()
    ys.append(x)
    return torch.cat(xs), len(ys)


@row((X, 3), refused="of different ranks")
def ragged_list_of_other_ranks(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = [torch.ones(1, 3)]
    for i in range(n):
        xs.append(x[:i])
    return xs[0]


@row((X, 3), refused="of different dtypes")
def ragged_list_of_other_dtypes(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = [torch.ones(1, dtype=torch.int64)]
    for i in range(n):
        xs.append(x[:i])
    return xs[0]


@row((X, 3), refused="of different shapes")
def slice_of_a_ragged_list(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = [x[:1]]
    for i in range(n):
        xs.append(x[:i])
    return torch.cat(xs[1:])


@row((X, 3), (X, 0), (X, 1))
def last_of_different_shapes(x: Tensor, n: int) -> Tensor:
    last: Optional[Tensor] = None
    for i in range(n):
        last = x[:i]
    return x if last is None else torch.cat([last, x])


@row((X, 3), (X, 0), (X, 1), (X, 2), **BELOW)
def returned_ragged_list(x: Tensor, n: int) -> List[Tensor]:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(x[i:])
    return xs


@row((X, 3), (X, 0), (X, 1), (X, 2))
def returned_list_of_one_shape(x: Tensor, n: int) -> List[Tensor]:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(x * i)
    return xs


@row((X, 3), (X, 0), (X, 1))
def returned_lists_among_others(x: Tensor, n: int) -> Tuple[Tensor, List[Tensor], List[int], List[float], Tensor]:
    xs: List[Tensor] = []
    ints: List[int] = []
    floats: List[float] = []
    for i in range(n):
        xs.append(x * i)
        ints.append(i)
        floats.append(i * 0.5)
    return x * 2, xs, ints, floats, x.sum()


@row((X, 3), (X, 0), (X, 1), **BELOW)
def returned_twice(x: Tensor, n: int) -> Dict[str, List[Tensor]]:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(x[i:])
    return {"a": xs, "b": xs, "c": [x, x + 1]}


@row((X, 0), refused="in the example it is empty")
def returned_list_that_is_empty(x: Tensor, n: int) -> Tuple[Tensor, List[Tensor]]:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(x * i)
    return x, xs


@row((X, 3), (X, 1))
def list_of_known_length(x: Tensor, n: int) -> List[Tensor]:
    xs = [x]
    xs.append(x[:n])
    return xs


@row((torch.tensor([1, 2], dtype=torch.int8), 2), refused="ONNX Runtime makes no list")
def returned_list_of_a_type_without_kernel(x: Tensor, n: int) -> List[Tensor]:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(x + i)
    return xs


@row((torch.tensor([1, 2], dtype=torch.int32), 2), (torch.tensor([1, 2], dtype=torch.int32), 0), **BELOW)
def ragged_int32(x: Tensor, n: int) -> Tuple[List[Tensor], Tensor]:
    xs: List[Tensor] = [x]
    for i in range(n):
        xs.append(x[:i] + i)
    return xs, xs[-1]


@row((torch.tensor([True, False]), 2), (torch.tensor([True, False]), 0), **BELOW)
def ragged_bool(x: Tensor, n: int) -> Tuple[List[Tensor], Tensor]:
    xs: List[Tensor] = [x]
    for i in range(n):
        xs.append(~x[:i])
    return xs, torch.cat(xs)


@row((torch.tensor([1.0, 2.0], dtype=torch.float64), 2), (torch.tensor([1.0], dtype=torch.float64), 3), x={0: "n"}, **BELOW)
def ragged_double(x: Tensor, n: int) -> Tuple[List[Tensor], Tensor]:
    xs: List[Tensor] = [x]
    for i in range(n):
        xs.append(x[:i] / 3)
    return xs, torch.cat(xs)


@row((X, 3, True), (X, 3, False), (X, 0, True), (X, 1, False), **BELOW)
def ragged_list_of_a_branch(x: Tensor, n: int, flag: bool) -> List[Tensor]:
    if flag:
        xs = [x * 2]
        for i in range(n):
            xs.append(x[i:])
    else:
        xs = [x[:1], x]
    xs.append(x)
    return xs


@row((X, 3), (X, 0), (X, 1), (X, 5), **BELOW)
def stack_of_work(x: Tensor, n: int) -> Tuple[Tensor, int]:
    work: List[Tensor] = [x]
    total = x.sum() * 0
    turns = 0
    while len(work) > 0 and turns < n:
        last = work.pop()
        total = total + last.sum()
        turns += 1
        if last.size(0) > 1:
            work.append(last[1:])
            work.append(last[:1])
    return total, len(work)


@row((X, 3), (X, 0), (X, 1), **BELOW)
def list_made_new_in_each_turn(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    y = x
    z = x.sum()
    for i in range(n):
        parts: List[Tensor] = []
        for j in range(i):
            parts.append(x[:j])
        parts.append(x)
        y = torch.cat(parts)
        z = z + y.sum() + len(parts)
    return y, z


@row((X, 3), (X, 0), (X, 1), **BELOW)
def item_of_another_shape_is_put_in(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for _ in range(n):
        xs.append(x)
    if len(xs) > 0:
        xs[0] = x[:1]
    return torch.cat(xs + [x])


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 4), x={0: "n"})
def inserted_at_a_dynamic_place(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    xs = [x]
    ks = [1, 2]
    for i in range(n):
        xs.insert(i // 2, x * i)
        ks.insert(0, i)
    xs.insert(-n, x * 9)
    return torch.stack(xs), torch.tensor(ks)


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 4), x={0: "n"}, refused="needs opset 13", since=13)
def ragged_inserted_beyond_the_ends(x: Tensor, n: int) -> Tuple[Tensor, int]:
    xs = [x, x * 2]
    for i in range(n):
        xs.insert(-1, x[i % 2:] * i)
        xs.insert(5, x[i % 2:] * i)
        xs.insert(-9, x[i % 2:] - i)
    return torch.cat(xs), len(xs)
