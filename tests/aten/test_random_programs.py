"""Random programs of views and writes, held against PyTorch exactly (in integers), at the captured sizes and at others."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.aten.checking import check

X = torch.arange(8 * 12).reshape(8, 12) - 40
BIGGER = torch.arange(9 * 15).reshape(9, 15) - 60
LARGEST_RANK = 4


def select(y: Tensor, a: int, b: int) -> Tensor | None:
    return y.select(a % y.dim(), b % 4 - 2) if y.dim() and y.size(a % y.dim()) > 1 else None


def cut(y: Tensor, a: int, b: int) -> Tensor | None:
    if not y.dim() or y.size(a % y.dim()) < 4:
        return None
    index = [slice(None)] * y.dim()
    index[a % y.dim()] = (slice(1, None), slice(None, -1), slice(None, None, 2), slice(1, 3), slice(-3, None), slice(0, 2))[b % 6]
    return y[tuple(index)]


def swap(y: Tensor, a: int, b: int) -> Tensor | None:
    return y.transpose(a % y.dim(), b % y.dim()) if y.dim() else None


def turn(y: Tensor, a: int, b: int) -> Tensor | None:
    return y.permute(*reversed(range(y.dim()))) if b % 2 else y.t() if y.dim() <= 2 else y.mT


def wrap(y: Tensor, a: int, b: int) -> Tensor | None:
    return y.unsqueeze(a % (y.dim() + 1)) if y.dim() < LARGEST_RANK else None


def unwrap(y: Tensor, a: int, b: int) -> Tensor | None:
    return y.unsqueeze(0).squeeze(0) if b % 2 else y[None, :, None].squeeze((0, 2)) if y.dim() else None


def flat(y: Tensor, a: int, b: int) -> Tensor | None:
    return (y.reshape(-1), y.flatten(), y.ravel(), y.reshape(1, -1))[b % 4]


def diagonal(y: Tensor, a: int, b: int) -> Tensor | None:
    return y.diagonal(b % 3 - 1, 0, 1) if y.dim() >= 2 and min(y.shape[:2]) > 2 else None


def piece(y: Tensor, a: int, b: int) -> Tensor | None:
    if not y.dim() or y.size(a % y.dim()) < 4:
        return None
    dim = a % y.dim()
    return y.tensor_split(2, dim)[b % 2] if b % 4 < 2 else y.split([1, 1, y.shape[dim] - 2], dim)[1 + b % 2]


def same(y: Tensor, a: int, b: int) -> Tensor | None:
    return (y.detach(), y.contiguous(), y.to(torch.int64), y.expand_as(y), y.narrow(0, 0, 1) if y.dim() else y.view(1), y[...])[b % 6]


def fresh(y: Tensor, a: int, b: int) -> Tensor | None:
    return (y * 1, y.clone(), y + 1)[b % 3]


def add(y: Tensor, a: int, b: int) -> None:
    y.add_(b)


def scale(y: Tensor, a: int, b: int) -> None:
    y.mul_(y.sum() % 7 - b)


def fill(y: Tensor, a: int, b: int) -> None:
    y.fill_(b)


def overwrite(y: Tensor, a: int, b: int) -> None:
    y.copy_(y.flip(0) if y.dim() else y + b)


def assign(y: Tensor, a: int, b: int) -> None:
    y[...] = y.sum() + b


def mask(y: Tensor, a: int, b: int) -> None:
    y[y > b] = a


def augmented(y: Tensor, a: int, b: int) -> None:
    if y.dim():
        y[b % 2 - 1] += a


def scatter(y: Tensor, a: int, b: int) -> None:
    if y.dim() and y.size(0) > 1:
        y[torch.tensor([0, -1])] = y[-1] + b


def fill_from(y: Tensor, a: int, b: int) -> None:
    y.masked_fill_(y < a, -b)


VIEWS: list[Callable[[Tensor, int, int], Tensor | None]] = [select, cut, swap, turn, wrap, unwrap, flat, diagonal, piece, same, fresh]
WRITES: list[Callable[[Tensor, int, int], None]] = [add, scale, fill, overwrite, assign, mask, augmented, scatter, fill_from]

number = st.integers(0, 11)
instruction = st.tuples(st.sampled_from([*VIEWS, *VIEWS, *WRITES, *WRITES, *WRITES]), number, number, number)


Program = list[tuple[Callable[..., Tensor | None], int, int, int]]


def program(instructions: Program) -> Callable[[Tensor], list[Tensor]]:
    """Each instruction makes a view of one of the tensors so far, or writes into it; all tensors are returned."""

    def run(x: Tensor) -> list[Tensor]:
        pool = [x * 1]
        for operate, which, a, b in instructions:
            made = operate(pool[which % len(pool)], a, b)
            if made is not None:
                pool.append(made)
        return pool

    return run


def path(instructions: Program, x: Tensor) -> list[tuple[bool, int]]:
    """Which instructions could be carried out, and what Python saw of ranks: equal where the trace holds for both sizes."""
    pool, seen = [x * 1], []
    for operate, which, a, b in instructions:
        source = pool[which % len(pool)]
        made = operate(source, a, b)
        seen.append((made is not None, source.dim()))
        if made is not None:
            seen.append((made.data_ptr() == source.data_ptr(), made.dim()))
            pool.append(made)
    return seen


@settings(max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.lists(instruction, min_size=4, max_size=14))
@example([(turn, 0, 0, 0), (diagonal, 1, 0, 1), (fill, 2, 0, 1), (cut, 0, 1, 2), (augmented, 3, 5, 1), (flat, 0, 0, 0), (mask, 5, 3, 0)])
@example([(piece, 0, 1, 3), (piece, 0, 0, 1), (select, 1, 1, 2), (add, 3, 0, 5), (scale, 2, 0, 1), (overwrite, 1, 0, 0), (add, 0, 0, 3)])
def test_random_program(instructions: Program) -> None:
    check(program(instructions), X, others=((BIGGER,),) if path(instructions, X) == path(instructions, BIGGER) else ())
