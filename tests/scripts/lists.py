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


@row((t(1, 2), 1), (t(1, 2), 0), (t(1, 2), 3))
def slice_of_a_list(x: Tensor, n: int) -> Tensor:
    xs = [x, x * 2, x * 3, x * 4]
    return torch.stack(xs[n:] + xs[:1]).sum(0)


@row((t(1, 2), 2), (t(1, 2), 0), (t(1, 2), -1))
def numbers_of_a_list(x: Tensor, n: int) -> Tuple[Tensor, int, bool]:
    ks = [3, n, 5]
    ks[0] = n + 1
    found = n in [1, 2, 3]
    return x * sum(ks) + max(ks) - min(ks), len(ks), found or 5 in ks


@row((t(1, 2), 3), (t(1, 2), 1), (t(1, 2), 0))
def number_in_a_grown_list(x: Tensor, n: int) -> Tuple[Tensor, bool, bool]:
    ks: List[int] = []
    for i in range(n):
        ks.append(i * 2)
    return x * len(ks), 2 in ks, 3 in ks


@row((t(1, 2), 3), (t(1, 2), 1), (t(1, 2), 0))
def comprehension_of_a_range(x: Tensor, n: int) -> Tensor:
    return torch.stack([x] + [x * i for i in range(n)])


@row((torch.arange(6.0).reshape(3, 2),), (torch.ones(1, 2),), x={0: "n"})
def comprehension_of_a_tensor(x: Tensor) -> Tensor:
    return torch.stack([line.sum() * 2 for line in x])


@row((t(1, 2), 3), (t(1, 2), 1))
def list_of_repeated_items(x: Tensor, n: int) -> Tensor:
    return torch.stack([x] * n) + torch.tensor([1] * 2)


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 1))
def extend_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x]
    for i in range(n):
        xs.extend([x * i, x + i])
    return torch.cat(xs)


@row((t(1, 2), 3), (t(1, 2), 0))
def pop_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x, x * 2]
    for i in range(n):
        xs.append(x + i)
        x = x + xs.pop()
    return x + torch.stack(xs).sum(0)


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 4))
def set_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x, x * 2, x * 3, x * 4]
    for i in range(n):
        xs[i] = xs[i] * 10
    return torch.stack(xs)


@row((t(1, 2, 3),), (t(1,),), x={0: "n"})
def tensor_of_numbers(x: Tensor) -> Tensor:
    ks: List[float] = []
    for i in range(x.size(0)):
        ks.append(float(x[i]) * 0.5)
    return torch.tensor(ks)


@row((t(1, 2), 3), (t(1, 2), 0))
def enumerate_and_zip_of_lists(x: Tensor, n: int) -> Tensor:
    xs, ks = [x, x + 1], [n, 5]
    for i, (y, k) in enumerate(zip(xs, ks)):
        x = x + y * k - i
    return x


@row((t(1, 2), 2), (t(1, 2), 0))
def output_of_lists(x: Tensor, n: int) -> Tuple[List[Tensor], List[int]]:
    xs = [x, x * n]
    if n > 1:
        xs[0] = x * 7
    return xs, [n, len(xs)]


@row(([t(1, 2), t(3, 4)], 1), ([t(1, 2), t(3, 4)], 0))
def list_input_changed(xs: List[Tensor], n: int) -> Tensor:
    xs.append(xs[0] * 2)
    return torch.stack(xs[n:]).sum(0)


@row(([1, 2, 3], t(1, 2)), ([4, 5, 6], t(1, 2)))
def list_of_int_input(ks: List[int], x: Tensor) -> Tensor:
    for k in ks:
        x = x + k
    return x * len(ks)


@row((t(1, 2), 3), (t(1, 2), 0))
def lists_of_lists(x: Tensor, n: int) -> Tensor:
    table = [[x, x * 2], [x * 3, x * 4]]
    s = x
    for line in table:
        for y in line:
            s = s + y * n
    return s


@row((t(1, 2), 3), (t(1, 2), 1))
def list_of_sizes(x: Tensor, n: int) -> Tensor:
    sizes = [n, x.size(0)]
    sizes.insert(0, 1)
    return torch.zeros(sizes) + x


@row((t(1, 2, 3), 3), (t(1,), 0), (t(1, 2), 1), x={0: "k"})
def appended_slices(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = [x]
    for i in range(n):
        y = x * i
        xs.append(y)
    return torch.stack(xs, 1)
