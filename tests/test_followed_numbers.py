"""Numbers that Python takes from data and hands on to operators, and reads that only check the input."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional as F

import onnxport

from .ops.harness import Wrapped

Tensor = torch.Tensor
EXAMPLE = (torch.randn(2, 6, 3), torch.tensor([4, 2]))
OTHERS = [(torch.randn(2, 6, 3), torch.tensor([1, 5])), (torch.randn(3, 7, 3), torch.tensor([1, 1, 1])), (torch.randn(1, 6, 3), torch.tensor([6])),
          (torch.randn(2, 6, 3), torch.tensor([2, 3]))]


def mask(lengths: Tensor, longest: int) -> Tensor:
    return torch.arange(longest) < lengths[:, None]


def assigned(x: Tensor, n: Tensor) -> Tensor:
    k = int(n.max())
    return x[:, :k] * torch.arange(k)[None, :, None]


def assigned_list(x: Tensor, n: Tensor) -> Tensor:
    k = n.max().item()
    return x.new_zeros((2, k)) + torch.ones(2, k)


def deeper(x: Tensor, n: Tensor, again: bool = True) -> Tensor:
    """Runs between the read and the use once more, with another number."""
    k = int(n.max())
    y = deeper(x + 1, n - n.min() + 1, False) if again else x
    return x[:, :k].sum(1) + y.reshape(y.shape[0], -1, 3).sum(1)


def in_a_loop(x: Tensor, n: Tensor) -> Tensor:
    total = x.sum(1)
    for row in (n.max(), n.min(), n.max() - n.min()):
        total = total + x[:, : int(row)].sum(1)
    return total


def asserted(x: Tensor, n: Tensor) -> Tensor:
    assert n.min() > 0, "a length of 0"
    assert int(n.max()) <= x.shape[1]
    if not (n >= 1).all() or bool((n > 99).any()):
        raise ValueError("lengths")
    return x * n.max()


RIGHT: dict[str, Callable[..., Any]] = {
    "slice": lambda x, n: x[:, : int(n.max())],
    "slice-alone": lambda x, n: x[0][int(n.min()) :],
    "slice-both": lambda x, n: x[:, int(n.min()) : int(n.max())],
    "index": lambda x, n: x[:, int(n.min()) - 1],
    "item": lambda x, n: x[:, : n.max().item()].sum(1),
    "int-item": lambda x, n: x[:, : int(n.max().item())].sum(1),
    "arange": lambda x, n: torch.arange(int(n.max())) < n[:, None],
    "keyword": lambda x, n: torch.arange(end=int(n.max()), start=0, dtype=torch.float32),
    "divided": lambda x, n: x / float(n.float().max()),
    "divided-item": lambda x, n: (x.double() + 2) / (x.abs().max().item() + 1e-6),
    "multiplied": lambda x, n: int(n.max()) * x - int(n.min()) + n[0].item() * n[:, None, None],
    "multiplied-half": lambda x, n: x.half() * x.abs().max().item(),
    "plus": lambda x, n: torch.zeros(int(n.max()) + 1, 2) + 1,
    "times": lambda x, n: torch.ones(2, 3 * int(n.max())),
    "minus": lambda x, n: x[:, : 7 - int(n.max())],
    "negative": lambda x, n: x[:, -int(n.min()) :],
    "max": lambda x, n: torch.ones(max(int(n.max()), 3)),
    "min": lambda x, n: torch.ones(min(3, int(n.max()))),
    "logarithms": lambda x, n: x * math.log(x.shape[1] + 1) + math.log2(x.shape[1]) - x.double() * math.log10(n.max()),
    "exp": lambda x, n: x * math.exp(-n.max()),
    "round": lambda x, n: x[:, : round(int(n.max()) * 0.7)],
    "pad": lambda x, n: F.pad(x, (0, 0, 0, int(n.max()))),
    "narrow": lambda x, n: x.narrow(1, 0, int(n.max())),
    "assigned": assigned, "assigned-list": assigned_list, "again": deeper, "loop": in_a_loop, "assert": asserted,
}


def by_dict(x: Tensor, n: Tensor) -> Tensor:
    return x * {4: 2, 5: 3}.get(int(n.max()), 1)


def listed(x: Tensor, n: Tensor) -> Tensor:
    parts = [x, x + 1, x + 2, x + 3, x + 4, x + 5]
    return parts[int(n.max())]


def twice(x: Tensor, n: Tensor) -> Tensor:
    k = int(n.max())
    k = k // 2
    return x[:, :k]


def not_reached(x: Tensor, n: Tensor) -> Tensor:
    k = int(n.max())
    return x[:, :k] if x.dim() == 2 else x


def caught(x: Tensor, n: Tensor) -> Tensor:
    try:
        if n.max() > 4:
            raise ValueError
    except ValueError:
        return x + 1
    return x


def refuses(n: Tensor) -> None:
    if n.max() > 4:
        raise ValueError


def caught_outside(x: Tensor, n: Tensor) -> Tensor:
    try:
        refuses(n)
    except ValueError:
        return x + 1
    return x


def suppressed(x: Tensor, n: Tensor) -> Tensor:
    with contextlib.suppress(ValueError):
        refuses(n)
        x = x + 1
    return x


def branched(x: Tensor, n: Tensor) -> Tensor:
    if n.max() > 4:
        x = x + 1
    elif n.max() > 100:
        raise ValueError
    return x


def left_before_it_raises(x: Tensor, n: Tensor) -> Tensor:
    if n.max() > 4:
        if x.dim() == 3:
            return x + 1
        raise ValueError
    return x


REFUSED: dict[str, Callable[..., Any]] = {
    "dict": by_dict, "list": listed, "twice": twice, "not-reached": not_reached, "caught": caught, "caught-outside": caught_outside,
    "suppressed": suppressed, "branched": branched, "left-before": left_before_it_raises,
    "handed-on": lambda x, n: mask(n, int(n.max())),
    "float": lambda x, n: x.clamp(max=float(x.sum())),
    "rank-0": lambda x, n: x.sum() * n.max().item(),
    "half": lambda x, n: n * float(x.half().sum()),
    "power": lambda x, n: x * 2 ** int(n.max()),
}


def exported(function: Callable[..., Any]) -> onnxruntime.InferenceSession:
    stream = io.BytesIO()
    onnxport.export(Wrapped(function), EXAMPLE, stream, input_names=["x", "n"], dynamic_axes={"x": {0: "b", 1: "t"}, "n": {0: "b"}})
    return onnxruntime.InferenceSession(stream.getvalue(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", RIGHT)
def test_numbers_are_followed(name: str) -> None:
    session = exported(RIGHT[name])
    for args in (EXAMPLE, *OTHERS):
        want = RIGHT[name](*args).numpy()
        feeds = {i.name: {"x": args[0], "n": args[1]}[i.name].numpy() for i in session.get_inputs()}
        (got,) = session.run(None, feeds)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5 if want.dtype != np.float16 else 2e-3, atol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_may_go_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(onnxport.errors.BakedValueError, match=r"test_followed_numbers\.py:\d+"):
        exported(REFUSED[name])
