"""Sizes used as Python uses integers: as keys, rounded, checked, as strides and flags. At other sizes the file is right, or says for which it is."""

from __future__ import annotations

import io
import math
import warnings
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
SIZES = ((4, 6), (1, 1), (5, 3), (2, 9))


def checked(x: Tensor) -> Tensor:
    torch._check(x.shape[0] > 1)
    return x.sum(0)


RIGHT: dict[str, Callable[[Tensor], Any]] = {
    "divmod": lambda x: x.new_zeros(divmod(x.shape[1], 2)),
    "rdivmod": lambda x: x.new_zeros(divmod(7, x.shape[1])),
    "as_tensor": lambda x: torch.as_tensor(x.shape),
    "as_tensor-dtype": lambda x: torch.as_tensor([x.shape[0], 2], dtype=torch.float32),
    "new_tensor": lambda x: x.new_tensor(x.shape),
    "new_tensor-number": lambda x: x.new_tensor(x.shape[0]),
    "stride": lambda x: x * x.stride(0),
    "strides": lambda x: x * sum(x.reshape(1, *x.shape).stride()),
    "round": lambda x: x.new_zeros(round(x.shape[1])),
    "round-half": lambda x: x.new_zeros(round(x.shape[1] / 2)),
    "round-fraction": lambda x: x[:, : round(x.shape[1] * 0.6)] * round(1.1 * x.shape[0]),
    "prod": lambda x: x.reshape(math.prod(x.shape)),
    "is_causal": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=x.shape[0] > 3),
    "int": lambda x: x.reshape(int(x.shape[0]), int(x.size(1))),
    "int-half": lambda x: x[: int(x.shape[0] / 2) + 1],
    "int-fraction": lambda x: x.new_zeros(int(x.shape[0] * 0.7), int(x.shape[1] * 1.1)),
    "float": lambda x: x / float(x.shape[0]),
    "len": lambda x: x * len(x) + torch.arange(len(x))[:, None],
    "sqrt": lambda x: x / math.sqrt(x.shape[1]),
    "sqrt-plus": lambda x: (x + 2) / (math.sqrt(x.shape[1]) + 1),
    "ceil": lambda x: torch.ones(math.ceil(x.shape[1] / 4), 3),
    "floor": lambda x: torch.ones(math.floor(x.shape[1] * 1.1), 3),
    "fraction-of-a-sum": lambda x: x.sum() * (x.shape[1] * 0.5),
    "fraction-of-a-half": lambda x: x.abs().half().sum() * (x.shape[1] / 2),
    "fraction-of-an-int": lambda x: x.int().sum() * (x.shape[1] / 2),
    "whole": lambda x: x.sum() * x.shape[1],
    "Tensor": lambda x: torch.Tensor(x.shape[0], 2).fill_(1.0) + x[:, :1],
    "Tensor-size": lambda x: torch.Tensor(x.shape).zero_() + x,
    "Tensor-list": lambda x: torch.Tensor([x.shape[0], 2.5]),
    "Tensor-literal": lambda x: torch.Tensor([1.5, 2.5])[:1] + x,
    "LongTensor": lambda x: torch.LongTensor(x.shape[0], 1).zero_() + x.long(),
    "LongTensor-one": lambda x: torch.LongTensor(x.shape[1]).fill_(3),
    "LongTensor-list": lambda x: torch.LongTensor([x.shape[0], 2]) * 2,
    "FloatTensor": lambda x: torch.FloatTensor(2, x.shape[0]).fill_(0.5).type(torch.DoubleTensor),
    "new": lambda x: x.new(x.shape[0], 3).fill_(2),
    "new-list": lambda x: x.new([x.shape[0], 1]) + x.new([1.0, 2.0]),
    "isinstance": lambda x: x * 2 if isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor) else x,
    "pad-nothing": lambda x: F.pad(x[None], (x.shape[1] // 2, 0), mode="circular"),
}
GUARDED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "dict": (lambda x: x * {4: 2, 5: 3}.get(x.shape[0], 7), "== 4"),
    "set": (lambda x: x * (2 if x.shape[0] in {4, 5} else 3), "== 4"),
    "text": (lambda x: x * {"4": 2, "5": 3}.get(f"{x.shape[0]}", 7), "== 4"),
    "text-back": (lambda x: x * float(f"{x.shape[0]}"), "== 4"),
    "text-in": (lambda x: x * (2 if f"n{x.shape[0]}" in ("n4", "n5") else 3), "== 4"),
    "hash": (lambda x: x * hash(x.shape[0]), "== 4"),
    "_check": (checked, "> 1"),
}
REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "round": lambda x: x * round(x.shape[1] * 1.55, 1),
    "stride": lambda x: x * x.t().stride(1),
    "vmap": lambda x: torch.vmap(lambda row: row * row.sum())(x),
    "scale_factor": lambda x: F.interpolate(x[None], scale_factor=x.shape[0] / 2),
}


def exported(function: Callable[..., Any], x: Tensor, dynamic: bool = True) -> tuple[Any, onnxruntime.InferenceSession]:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onnxport.errors.GuardWarning)
        program = onnxport.export(Wrapped(function), x, stream, input_names=["x"], dynamic_axes={"x": {0: "n", 1: "m"}} if dynamic else None)
    return program, onnxruntime.InferenceSession(stream.getvalue(), providers=["CPUExecutionProvider"])


def same(session: onnxruntime.InferenceSession, function: Callable[..., Any], x: Tensor) -> None:
    want = function(x)
    (got,) = session.run(None, {"x": x.numpy()})
    assert got.shape == tuple(want.shape)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-5 if want.dtype != torch.float16 else 2e-3, atol=1e-6)
    assert got.dtype == want.numpy().dtype


@pytest.mark.parametrize("name", RIGHT)
def test_sizes_are_followed(name: str) -> None:
    program, session = exported(RIGHT[name], torch.randn(4, 6))
    assert not program.guards
    for size in SIZES:
        same(session, RIGHT[name], torch.randn(size))


@pytest.mark.parametrize("name", GUARDED)
def test_what_is_decided_by_a_size_is_a_guard(name: str) -> None:
    function, condition = GUARDED[name]
    program, session = exported(function, torch.randn(4, 6))
    assert [condition in str(guard) for guard in program.guards] == [True]
    same(session, function, torch.randn(4, 3))


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_followed_is_refused(name: str) -> None:
    with pytest.raises(onnxport.errors.BakedValueError, match=r"test_python_numbers\.py"):
        exported(REFUSED[name], torch.randn(4, 6))


@pytest.mark.parametrize("name", [*RIGHT, *GUARDED, *REFUSED])
def test_static_sizes_are_numbers(name: str) -> None:
    function = RIGHT.get(name) or REFUSED.get(name) or GUARDED[name][0]
    x = torch.randn(4, 6)
    program, session = exported(function, x, dynamic=False)
    assert not program.guards
    same(session, function, x)


def test_methods_of_torch_are_put_back() -> None:
    names = ("__hash__", "__bool__", "__getitem__", "__setitem__", "__round__", "__divmod__", "stride", "new_tensor", "data", "__iadd__", "numpy")

    def state() -> list[Any]:
        return [vars(torch.Tensor).get(name) for name in names] + [torch.tensor, torch.as_tensor, F.scaled_dot_product_attention, torch._check]

    def fails(x: Tensor) -> Tensor:
        raise KeyboardInterrupt

    def nested(x: Tensor) -> Tensor:
        onnxport.export(Wrapped(torch.relu), torch.randn(2))
        with pytest.raises(KeyboardInterrupt):
            onnxport.export(Wrapped(fails), torch.randn(2))
        return x + x.shape[0]

    before = state()
    for function in (torch.relu, fails, nested):
        try:
            onnxport.export(Wrapped(function), torch.randn(2))
        except KeyboardInterrupt:
            assert function is fails
        assert all(a is b for a, b in zip(state(), before, strict=True))
