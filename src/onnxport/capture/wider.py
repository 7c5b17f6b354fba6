"""Other examples of the same call, for models that take a way of their own where a dynamic axis is 0 or 1.

An empty cache is not joined to what follows, a batch of one needs no padding: what such an example takes through the model is no
way for other sizes. The examples made here have 2 or more on each dynamic axis, and keep what the caller's sizes tell of each other:
a mask over past and new tokens stays as long as both.
"""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from onnxport.capture.dynamic import Wanted, automatic

_WIDE = {0: 3, 1: 2}  # what stands for these sizes; small, for the model runs once more
_MOST = 4  # how many examples are worth a try


@dataclass(frozen=True)
class Example:
    """Tensors for the call, and the size of each label in them.   given: its size in the caller's example."""

    tensors: list[torch.Tensor]
    sizes: dict[str, int]
    given: dict[str, int]


def examples(tensors: Sequence[torch.Tensor], names: Sequence[str], wanted: Sequence[Wanted]) -> Iterator[Example]:
    """Wider examples, the likeliest first; none where all dynamic axes are 2 or more, or one label has two sizes."""
    labels = [{axis: ask.label or automatic(name, number) for number, (axis, ask) in enumerate(sorted(asks.items()), 1)}
              for name, asks in zip(names, wanted, strict=True)]
    seen: dict[str, int] = {}
    for tensor, axes in zip(tensors, labels, strict=True):
        for axis, label in axes.items():
            if seen.setdefault(label, tensor.shape[axis]) != tensor.shape[axis]:
                return
    computed = {ask.label for asks in wanted for ask in asks.values() if ask.derived and ask.label}
    for sizes in itertools.islice(_sizes(seen, computed, labels), _MOST):
        yield Example([_widened(t, axes, sizes) for t, axes in zip(tensors, labels, strict=True)], sizes, seen)


def _sizes(seen: Mapping[str, int], computed: set[str], labels: Sequence[Mapping[int, str]]) -> Iterator[dict[str, int]]:
    free = {label: _WIDE.get(size, size) for label, size in seen.items() if label not in computed}
    if all(seen[label] == size for label, size in free.items()):
        return
    plain = {**free, **{label: value(label, free) for label in computed}}
    together = {frozenset(pair) for axes in labels for pair in itertools.combinations(axes.values(), 2)}
    order = list(free)
    sums = [(order.index(whole) < order.index(part), whole, part, rest) for whole, part, rest in itertools.permutations(free, 3)
            if seen[whole] == seen[part] + seen[rest] and seen[rest] < 2 and together.isdisjoint(map(frozenset, ((whole, part), (whole, rest))))]
    for _, whole, part, rest in sorted(sums):
        if free[whole] != free[part] + free[rest]:
            yield {**plain, whole: free[part] + free[rest]}
    yield plain


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


def value(expression: str, sizes: Mapping[str, int]) -> int:
    """The number that an axis such as ``2*n + 1`` is where the others have these sizes. Raises KeyError for anything else."""

    def of(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        return int(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, int) else sizes[ast.unparse(node)]

    return of(ast.parse(expression, mode="eval").body)


def _widened(tensor: torch.Tensor, axes: Mapping[int, str], sizes: Mapping[str, int]) -> torch.Tensor:
    """The tensor at these sizes: its own content again and again, or zeros where it has none."""
    shape = [sizes[axes[axis]] if axis in axes else size for axis, size in enumerate(tensor.shape)]
    if list(tensor.shape) == shape:
        return tensor
    tensor = tensor.detach()
    if not tensor.numel():
        return tensor.new_zeros(shape)
    for axis, size in enumerate(shape):
        if tensor.shape[axis] != size:
            tensor = tensor.index_select(axis, torch.arange(size, device=tensor.device) % tensor.shape[axis])
    return tensor
