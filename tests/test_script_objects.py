# ruff: noqa: UP006, UP035, UP045 - scripts are written in what TorchScript reads
"""Scripts with classes of their own, dicts that change, 64-bit floats and attributes that a call assigns."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import onnxport

from .test_scripts import compare, scripted, session, t

CASES: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {}
REFUSED: dict[str, tuple[Any, tuple[Any, ...], str]] = {}


def case(*calls: tuple[Any, ...], refused: str = "") -> Any:
    def enter(script: Any) -> Any:
        if refused:
            REFUSED[script.__name__] = script, calls[0], refused
        else:
            CASES[script.__name__] = script, list(calls)
        return script
    return enter


class Pair:
    def __init__(self, a: Tensor, n: int):
        self.a = a
        self.n = n

    def total(self) -> Tensor:
        return self.a * self.n

    def scale(self, by: int) -> None:
        self.a = self.a * by


@case((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 1))
def object_in_branch_and_loop(x: Tensor, n: int) -> Tensor:
    p = Pair(x, n)
    if n > 1:
        p.scale(n)
    for i in range(n):
        p.a = p.a + i
    return p.total()


@case((t(1, 2), 3), (t(1, 2), 0))
def object_of_each_turn(x: Tensor, n: int) -> Tensor:
    y = x
    for i in range(n):
        p = Pair(y, i)
        p.scale(2)
        y = y + p.total()
    return y


@case((t(1, 2), 3), refused="out of a list")
def object_in_list(x: Tensor, n: int) -> Tensor:
    ps = [Pair(x, n), Pair(x, 2)]
    return ps[n - 3].total()


@case((t(1, 2), 3), (t(1, 2), 1))
def dict_updates(x: Tensor, n: int) -> Tensor:
    d: Dict[str, Tensor] = {"a": x}
    if n > 2:
        d.update({"a": x + n})
    d["b"] = d.setdefault("b", x * 2) + d.setdefault("a", x)
    pairs = [("p", d["a"]), ("q", d["b"])]
    c = dict(pairs)
    y = c.pop("q")
    out = torch.zeros_like(x)
    for v in c.values():
        out = out + v
    return out * y + len(c)


@case((t(1, 2), 3), refused="after one branch a dict has the keys")
def dict_with_other_keys(x: Tensor, n: int) -> Tensor:
    d: Dict[str, Tensor] = {"a": x}
    if n > 2:
        d["b"] = x
    return d["a"]


@case((t(*range(7)), 3), (t(*range(97)), 49), (t(*range(99)), 14))
def floats_have_64_bits(x: Tensor, n: int) -> Tensor:
    scale = n / x.size(0)
    a = math.floor(float(x.size(0)) * scale)
    b = math.ceil(x.size(0) * (1.0 / 49.0) * n)
    c = (0.1 + 0.2) * x.sum().item()
    return torch.zeros(a + 1, b + 1) + c


@case((t(1, 2), 0.1), (t(1, 2), 1e-9))
def floats_do_not_widen(x: Tensor, f: float) -> Tuple[Tensor, Tensor, float]:
    return x * f + x.sum() * f, torch.full((2,), f), f + 1.0


@case((t(*range(9)), 3), (t(*range(9)), 0), (t(*range(5)), -2), (t(*range(4)), 7), (t(*range(4)), -4))
def write_from_a_place_that_may_count_from_the_back(x: Tensor, n: int) -> Tensor:
    y = x * 1
    y[n:] = -1.0
    z = x * 1
    z[-n:] = -2.0
    w = x * 1
    w[-n : n] = -3.0
    return torch.stack([y, z, w])


@case((t(1, 2, 3),), (t(4, 5),))
def views_of_a_list_that_grows(x: Tensor) -> Tensor:
    xs = [x]
    xs.append(x[:1])
    for _ in range(len(xs) - 1):
        a, b = torch.meshgrid(xs[0], xs[1])
        x = x + (a * b).sum()
    c, d = torch.broadcast_tensors(xs)
    y = x * 1
    y += c * d
    return y


@case((t(1, 2, 3),), (t(4, 5),))
def loop_over_other_shapes(x: Tensor) -> Tensor:
    out: List[Tensor] = []
    for y in [x, x[1:], torch.stack([x, x])]:
        z = y * 2
        z += y.numel()
        out.append(z.flatten())
    return torch.cat(out)


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scales = torch.jit.Attribute(None, Optional[List[float]])
        self.calls = 0
        self.register_buffer("last", torch.zeros(2))
        self.pair = torch.jit.Attribute(None, Optional[Pair])

    def forward(self, x: Tensor) -> Tensor:
        if self.scales is None or self.pair is None:
            self.scales = [x.size(0) / 2.0]
            self.pair = Pair(x, 2)
        self.calls += 1
        self.last = x
        scales, pair = self.scales, self.pair
        if scales is None or pair is None:
            raise ValueError("no scales")
        return pair.total() * scales[0] + self.calls


@pytest.mark.parametrize("opset", [11, 18, 28])
@pytest.mark.parametrize("name", CASES)
def test_script(name: str, opset: int) -> None:
    script, calls = CASES[name]
    axes = {"x": {0: "n"}} if any(a[0].shape != calls[0][0].shape for a in calls) else None
    run = session(scripted(script), calls[0], opset, axes)
    for args in calls:
        compare(run, scripted(script), args)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    script, args, pattern = REFUSED[name]
    with pytest.raises(onnxport.errors.UnsupportedError, match=pattern) as caught:
        session(scripted(script), args, 18)
    assert "test_script_objects.py" in str(caught.value)


def test_attributes_are_as_before_the_export() -> None:
    """An export runs the script; what that run assigned must not be in the file, nor stay in the model."""
    script = scripted(Remembers)
    run = session(script, (t(1, 2),), 18, {"x": {0: "n"}})
    assert script.scales is None
    assert script.calls == 0
    assert script.last.tolist() == [0.0, 0.0]
    compare(run, scripted(Remembers), (t(1, 2, 3),))
