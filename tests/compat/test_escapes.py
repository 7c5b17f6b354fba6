"""Arrays that the forward of an `autograd.Function` with a `symbolic` computes: harmless, unless they get out past its results."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import onnxport
from tests.compat.running import check, proto

X = torch.randn(2, 3)
STORE: Any = []
BUFFER = np.zeros((2, 3), np.float32)
WEIGHT = np.full((2, 3), 2.0, np.float32)
QUEUE: Any = queue.SimpleQueue()


class Keeper:
    kept: Any = None

    def __init__(self, factor: float = 1.0):
        self.factor = factor

    def keep(self, array: Any) -> None:
        self.kept = array

    def scaled(self, array: Any) -> Any:
        return array * self.factor

    def __setitem__(self, key: str, array: Any) -> None:
        Keeper.kept = array

    @staticmethod
    def share(array: Any) -> None:
        Keeper.kept = array


KEEPER = Keeper(3.0)


def stored(array: Any) -> None:
    STORE.append(array)


def doubled(array: Any) -> Any:
    made = np.empty_like(array)
    made[:] = array * 2
    return made


def aliased(array: Any, given: list[Any]) -> None:
    parts: list[Any] = []
    STORE.append(parts)
    parts.append(array)


def rebound(array: Any, given: list[Any]) -> None:
    global STORE
    STORE += [array]


def nested(array: Any, given: list[Any]) -> None:
    def inner(value: Any) -> None:
        STORE.append(value)

    inner(array)


ESCAPES: dict[str, Callable[[Any, list[Any]], Any]] = {
    "list": lambda a, given: STORE.append(a), "helper": lambda a, given: stored(a), "argument": lambda a, given: given.append(a),
    "object": lambda a, given: KEEPER.keep(a), "item": lambda a, given: KEEPER.__setitem__("a", a), "class": lambda a, given: Keeper.share(a),
    "copied": lambda a, given: np.copyto(BUFFER, a), "out": lambda a, given: np.multiply(a, 2, out=BUFFER), "queue": lambda a, given: QUEUE.put(a),
    "lambda": lambda a, given: STORE.append(lambda: a), "number": lambda a, given: STORE.append(a.mean()), "aliased": aliased, "rebound": rebound,
    "nested": nested,
}
STAYS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "helper": lambda a, given: doubled(a), "constant": lambda a, given: a * WEIGHT, "method": lambda a, given: KEEPER.scaled(a),
    "made here": lambda a, given: Keeper(2.0).scaled(a), "local": lambda a, given: [a, np.tanh(a)][0], "read": lambda a, given: a + len(given),
    "filled": lambda a, given: np.multiply(a, WEIGHT, out=np.empty_like(a)),
}


def function(use: Callable[[Any, list[Any]], Any]) -> Any:
    class Used(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, given: list[Any]) -> Any:
            ctx.array = x.detach().numpy()
            use(ctx.array, given)
            return torch.from_numpy(np.maximum(ctx.array, 0))

        @staticmethod
        def symbolic(g: Any, x: Any, given: Any) -> Any:
            return g.op("Relu", x)

    return Used


@pytest.mark.parametrize("how", ESCAPES)
def test_what_gets_out_is_an_error(how: str) -> None:
    used = function(ESCAPES[how])
    with pytest.raises(onnxport.errors.BakedValueError, match=r"test_escapes.py:\d+: Python reads a tensor that depends on the input"):
        proto(lambda x: used.apply(x, []), (X,))


@pytest.mark.parametrize("how", STAYS)
def test_what_stays_inside_does_not_matter(how: str) -> None:
    used = function(STAYS[how])
    check(lambda x: used.apply(x, []) + 1, (X,), X.clamp(min=0) + 1, input_names=["x"], dynamic_axes={"x": {0: "n"}} if how not in ("constant", "filled") else None)


@pytest.mark.parametrize("result", [lambda a: a, lambda a: [a.mean()], lambda a: bool(a.any())])
def test_what_the_results_carry_out_is_an_error(result: Any) -> None:
    class Gives(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> Any:
            return x * 1, result(x.detach().numpy())

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return g.op("Identity", x), None

    with pytest.raises(onnxport.errors.BakedValueError, match=r"test_escapes.py:\d+: Python reads a tensor"):
        proto(lambda x: Gives.apply(x)[0] + torch.as_tensor(np.asarray(Gives.apply(x)[1])), (X,))


def test_without_a_symbolic_every_read_matters() -> None:
    used = function(STAYS["local"])
    del used.symbolic
    with pytest.raises(onnxport.errors.BakedValueError):
        proto(lambda x: used.apply(x, []), (X,))
