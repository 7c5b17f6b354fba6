"""Custom operators that write into their arguments: their symbolic function gives the results and, behind them, what is written."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._higher_order_ops.effects import _register_effectful_op
from torch._library.effects import EffectType

import onnxport
from onnxport import errors

NAMESPACE = f"writing_{uuid.uuid4().hex[:8]}"


def _define(name: str, mutates: tuple[str, ...], function: Callable[..., Any], like: Callable[..., Any]) -> Any:
    made = torch.library.custom_op(f"{NAMESPACE}::{name}", function, mutates_args=mutates)
    made.register_fake(like)
    return made


def _add(x: torch.Tensor, k: float) -> None:
    x.add_(k)


def _twice(x: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    return x + 1


def _two(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(1)
    y.mul_(2)


def _triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3


add = _define("add", ("x",), _add, lambda x, k: None)
twice = _define("twice", ("x",), _twice, torch.empty_like)
two = _define("two", ("x", "y"), _two, lambda x, y: None)
triple = _define("triple", (), _triple, torch.empty_like)
_register_effectful_op(getattr(torch.ops, NAMESPACE).triple.default, EffectType.ORDERED)


def _number(g: Any, number: float) -> Any:
    return g.op("Constant", value_t=torch.tensor(number))


def _doubled(g: Any, x: Any) -> Any:
    new = g.op("Mul", x, _number(g, 2.0))
    return g.op("Add", new, _number(g, 1.0)), new


SYMBOLIC = {"add": lambda g, x, k: g.op("Add", x, g.op("Cast", k, to_i=1)), "twice": _doubled,
            "two": lambda g, x, y: (g.op("Add", x, _number(g, 1.0)), g.op("Mul", y, _number(g, 2.0))),
            "triple": lambda g, x: g.op("Mul", x, _number(g, 3.0))}


@pytest.fixture
def registered() -> Iterator[None]:
    for name, function in SYMBOLIC.items():
        onnxport.register_custom_op_symbolic(f"{NAMESPACE}::{name}", function, 9)
    yield
    for name in SYMBOLIC:
        onnxport.unregister_custom_op_symbolic(f"{NAMESPACE}::{name}", 9)


class Model(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function
        self.register_buffer("kept", torch.ones(4))

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


def whole(model: Model, x: torch.Tensor) -> Any:
    y = x * 2
    add(y, 1.5)
    return y


def part(model: Model, x: torch.Tensor) -> Any:
    y = x * 2
    add(y[:, 1], 1.5)
    add(y[1:], 0.5)
    return y


def result(model: Model, x: torch.Tensor) -> Any:
    y = x + 0
    z = twice(y)
    return y, z


def several(model: Model, x: torch.Tensor) -> Any:
    y = x + 0
    two(y[0], y[1])
    return y


def buffer(model: Model, x: torch.Tensor) -> Any:
    add(model.kept, 1.0)
    return x + model.kept


def ordered(model: Model, x: torch.Tensor) -> Any:
    return triple(triple(x)) + 1


WAYS: dict[str, Callable[[Model, torch.Tensor], Any]] = {
    "trace": lambda model, x: (model, (x,), "trace"), "export": lambda model, x: (model, (x,), "export"),
    "training ir": lambda model, x: (torch.export.export(model, (x,)), (), "auto"),
    "inference ir": lambda model, x: (torch.export.export(model, (x,)).run_decompositions(), (), "auto")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [whole, part, result, several, buffer, ordered], ids=lambda function: function.__name__)
def test_what_is_written_is_told_by_the_symbolic_function(registered: None, function: Any, way: str) -> None:
    model, args, capture = WAYS[way](Model(function), torch.rand(3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.MutationWarning)
        program = onnxport.export(model, args, capture=capture)
    x = torch.rand(3, 4)
    wanted = Model(function)(x.clone())
    for got, want in zip(program(x), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        torch.testing.assert_close(got, want)


def test_a_buffer_that_is_written_is_told(registered: None) -> None:
    for way in WAYS.values():
        model, args, capture = way(Model(buffer), torch.rand(3, 4))
        program = onnxport.export(model, args, capture=capture, mutations="outputs")
        torch.testing.assert_close(program(torch.rand(3, 4))[1], torch.full((4,), 2.0))


@pytest.mark.parametrize("way", WAYS)
def test_without_a_symbolic_function_the_refusal_says_what_one_has_to_give(way: str) -> None:
    model, args, capture = WAYS[way](Model(several), torch.rand(3, 4))
    with pytest.raises(errors.UnsupportedError, match=r"(?s)::two cannot be exported.*the new value of what it writes \(x, y\).*test_writing_operators.py"):
        onnxport.export(model, args, capture=capture)
