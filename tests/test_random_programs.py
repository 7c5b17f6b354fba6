"""Small random programs over many operators, exported with dynamic axes and held against PyTorch at other sizes.

A program is a list of steps; a step takes tensors of the pool and puts its result there. What it does depends on ranks and
dtypes only, never on sizes. Each seed is one program; a longer run: `python -m tests.test_random_programs 1000 2000`.
"""

from __future__ import annotations

import io
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional as F

import onnxport

from .ops.harness import Wrapped

Tensor = torch.Tensor
Step = Callable[[Tensor, Tensor, int, int], Tensor]

SIZES = ((4, 6), (1, 1), (3, 5), (6, 2), (1, 7), (9, 1))
_SMALL = 4096


def _real(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.to(torch.float32)


def _axis(x: Tensor, k: int) -> int:
    return k % x.dim() - (x.dim() if k % 3 == 0 else 0)


def _key(x: Tensor, k: int, m: int) -> Any:
    """An index of one of many kinds."""
    kinds: list[Any] = [
        0, -1, slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(-3, None), slice(None, 100), None, ...,
        slice(0, x.shape[k % x.dim()] // 2), slice(x.shape[0] // 2, None), torch.tensor([0, -1, 0]), torch.tensor([[0], [-1]]),
    ]
    first, second = kinds[k % len(kinds)], kinds[m % len(kinds)]
    return first if k % 2 or x.dim() == 1 else (first, second)


def _bounded(name: str) -> Step:
    function = getattr(torch, name)
    return lambda x, y, k, m: function(x.clamp(-5, 5) if x.dtype != torch.bool else x.int())


def _unary(name: str) -> Step:
    function = getattr(torch, name, None) or getattr(F, name)
    return lambda x, y, k, m: function(_real(x))


def _binary(name: str) -> Step:
    function = getattr(torch, name)
    return lambda x, y, k, m: function(x, y)


def _reduction(name: str) -> Step:
    function = getattr(torch, name)

    def reduce(x: Tensor, y: Tensor, k: int, m: int) -> Tensor:
        x = x if name in ("sum", "all", "any", "argmax", "cumsum", "amax") and x.dtype != torch.bool else _real(x)
        keep = {"keepdim": bool(m % 2)} if name not in ("cumsum", "softmax", "log_softmax") else {}
        return function(x, dim=_axis(x, k), **keep)

    return reduce


_FAMILIES: list[tuple[Callable[[str], Step], str]] = [
    (_bounded, "abs neg square sign relu floor ceil trunc exp2"),
    (_unary, "sigmoid tanh erf sin cos atan softsign gelu silu softplus elu hardswish hardtanh leaky_relu mish logsigmoid"),
    (_binary, "add sub mul maximum minimum lt ge eq logical_and logical_xor atan2 hypot"),
    (_reduction, "sum mean amax amin prod all any std var logsumexp cumsum argmax argmin softmax log_softmax"),
]
STEPS: list[tuple[str, Step]] = [(name, family(name)) for family, names in _FAMILIES for name in names.split()]
STEPS += [
    ("div", lambda x, y, k, m: x / (y.abs() + 1)),
    ("floor_divide", lambda x, y, k, m: x // (k % 3 + 2)),
    ("remainder", lambda x, y, k, m: x % (k % 3 + 2)),
    ("rsub", lambda x, y, k, m: 2 - x if x.dtype != torch.bool else ~x),
    ("pow", lambda x, y, k, m: x ** (k % 3)),
    ("scalar-int", lambda x, y, k, m: x * (k % 4 - 1)),
    ("scalar-float", lambda x, y, k, m: x + (k % 4) / 4),
    ("size", lambda x, y, k, m: x * x.shape[k % x.dim()]),
    ("size-div", lambda x, y, k, m: x / x.shape[k % x.dim()]),
    ("size-mod", lambda x, y, k, m: x + x.shape[k % x.dim()] % 3 - x.shape[m % x.dim()] // 2),
    ("numel", lambda x, y, k, m: x * x.numel() / 16),
    ("where", lambda x, y, k, m: torch.where(x > y, x, y)),
    ("where-scalar", lambda x, y, k, m: torch.where(x > 0, x, 0.5)),
    ("masked_fill", lambda x, y, k, m: x.masked_fill(x > 0, k % 5)),
    ("clamp", lambda x, y, k, m: x.clamp(-1, k % 3)),
    ("clamp-tensor", lambda x, y, k, m: x.clamp(max=y)),
    ("lerp", lambda x, y, k, m: torch.lerp(_real(x), _real(y), 0.25)),
    ("addcmul", lambda x, y, k, m: torch.addcmul(_real(x), _real(y), _real(y), value=0.5)),
    ("float", lambda x, y, k, m: x.float()),
    ("double", lambda x, y, k, m: x.double()),
    ("int", lambda x, y, k, m: x.clamp(-100, 100).to(torch.int32) if x.dtype != torch.bool else x.to(torch.int32)),
    ("long", lambda x, y, k, m: x.clamp(-100, 100).long() if x.dtype != torch.bool else x.long()),
    ("type_as", lambda x, y, k, m: x.type_as(y) if y.is_floating_point() else x),
    ("transpose", lambda x, y, k, m: x.transpose(_axis(x, k), _axis(x, m))),
    ("permute", lambda x, y, k, m: x.permute([(i + k) % x.dim() for i in range(x.dim())])),
    ("flatten", lambda x, y, k, m: x.flatten(k % x.dim())),
    ("reshape", lambda x, y, k, m: x.reshape(-1, x.shape[-1])),
    ("reshape-sizes", lambda x, y, k, m: x.reshape(*x.shape[1:], x.shape[0])),
    ("view-as", lambda x, y, k, m: x.reshape(x.shape[0], -1, 1)),
    ("unsqueeze", lambda x, y, k, m: x.unsqueeze(k % (x.dim() + 1)) if x.dim() < 4 else x),
    ("expand", lambda x, y, k, m: x.unsqueeze(0).expand(2, *x.shape) if x.dim() < 4 else x),
    ("expand-as", lambda x, y, k, m: x[:1].expand_as(x)),
    ("broadcast", lambda x, y, k, m: torch.broadcast_tensors(x, y)[0]),
    ("cat", lambda x, y, k, m: torch.cat([x, x.flip(0)], _axis(x, k))),
    ("cat-other", lambda x, y, k, m: torch.cat([x, y], _axis(x, k))),
    ("stack", lambda x, y, k, m: torch.stack([x, x * 2], k % (x.dim() + 1)) if x.dim() < 4 and x.dtype != torch.bool else x),
    ("index", lambda x, y, k, m: x[_key(x, k, m)]),
    ("index-mask", lambda x, y, k, m: x[x > 0].cumsum(0)),
    ("index-put", lambda x, y, k, m: _assigned(x, k, m)),
    ("index_select", lambda x, y, k, m: x.index_select(_axis(x, k), torch.tensor([0, 0]))),
    ("gather", lambda x, y, k, m: x.gather(_axis(x, k), torch.zeros_like(x, dtype=torch.int64))),
    ("take_along", lambda x, y, k, m: x.take_along_dim(x.argsort(_axis(x, k)), _axis(x, k))),
    ("flip", lambda x, y, k, m: x.flip(_axis(x, k))),
    ("roll", lambda x, y, k, m: x.roll(k % 5 - 2, _axis(x, m))),
    ("roll-size", lambda x, y, k, m: x.roll(x.shape[k % x.dim()] // 2, _axis(x, m))),
    ("pad", lambda x, y, k, m: F.pad(x, (k % 3, m % 3), value=1)),
    ("pad-cut", lambda x, y, k, m: F.pad(x, (-(k % 2), m % 3))),
    ("pad-multiple", lambda x, y, k, m: F.pad(x, (0, -x.shape[-1] % 4))),
    ("narrow", lambda x, y, k, m: x.narrow(_axis(x, k), 0, x.shape[k % x.dim()] // 2 + 1)),
    ("chunk", lambda x, y, k, m: x.chunk(2, _axis(x, k))[0]),
    ("repeat", lambda x, y, k, m: x.repeat([2] + [1] * (x.dim() - 1))),
    ("tile", lambda x, y, k, m: x.tile(1, 2)),
    ("repeat_interleave", lambda x, y, k, m: x.repeat_interleave(2, _axis(x, k))),
    ("sort", lambda x, y, k, m: x.sort(_axis(x, k), descending=bool(m % 2))[0]),
    ("topk", lambda x, y, k, m: x.topk(1, _axis(x, k))[0]),
    ("max-dim", lambda x, y, k, m: x.max(_axis(x, k))[0]),
    ("median", lambda x, y, k, m: x.contiguous().median(_axis(x, k))[0]),
    ("matmul", lambda x, y, k, m: _real(x) @ _real(x).transpose(-1, -2) if x.dim() > 1 else _real(x) @ _real(x)),
    ("matmul-other", lambda x, y, k, m: _real(x) @ _real(y)),
    ("einsum", lambda x, y, k, m: torch.einsum("...i,...j->...ij", _real(x), _real(x)) if x.dim() < 4 else x),
    ("outer", lambda x, y, k, m: torch.outer(x.flatten()[:3], y.flatten()[:2])),
    ("layer_norm", lambda x, y, k, m: F.layer_norm(_real(x), x.shape[-1:])),
    ("normalize", lambda x, y, k, m: F.normalize(_real(x), dim=_axis(x, k))),
    ("norm", lambda x, y, k, m: torch.linalg.vector_norm(_real(x), ord=k % 3, dim=_axis(x, m))),
    ("tril", lambda x, y, k, m: x.tril(k % 3 - 1)),
    ("triu", lambda x, y, k, m: x.triu(k % 3 - 1)),
    ("diagonal", lambda x, y, k, m: x.diagonal(k % 3 - 1, 0, -1)),
    ("diff", lambda x, y, k, m: torch.diff(x, dim=_axis(x, k))),
    ("unfold", lambda x, y, k, m: x.unfold(_axis(x, k), 1, k % 2 + 1) if x.dim() < 4 else x),
    ("arange", lambda x, y, k, m: x + torch.arange(x.shape[-1])),
    ("arange-mask", lambda x, y, k, m: x * (torch.arange(x.shape[-1]) < x.shape[0])),
    ("linspace", lambda x, y, k, m: x + torch.linspace(0, 1, x.shape[-1])),
    ("new_zeros", lambda x, y, k, m: torch.cat([x.new_zeros(1, *x.shape[1:]), x])),
    ("full", lambda x, y, k, m: x + torch.full((x.shape[-1],), 2.5)),
    ("one_hot", lambda x, y, k, m: F.one_hot(x.long().abs() % 3, 3) if x.dim() < 4 else x),
    ("add_", lambda x, y, k, m: x.clone().add_(1)),
    ("mul_-view", lambda x, y, k, m: _scaled(x, k)),
    ("copy_", lambda x, y, k, m: _copied(x, y)),
    ("scatter", lambda x, y, k, m: x.scatter(_axis(x, k), torch.zeros_like(x, dtype=torch.int64)[..., :1], 1)),
    ("max_pool1d", lambda x, y, k, m: F.max_pool1d(_real(x), 2, k % 2 + 1, m % 2) if x.dim() == 3 else x),
    ("avg_pool1d", lambda x, y, k, m: F.avg_pool1d(_real(x), 2, k % 2 + 1, m % 2, ceil_mode=bool(k % 3)) if x.dim() == 3 else x),
    ("adaptive", lambda x, y, k, m: F.adaptive_avg_pool1d(_real(x), k % 3 + 1) if x.dim() == 3 else x),
    ("interpolate", lambda x, y, k, m: F.interpolate(_real(x), scale_factor=2) if x.dim() == 3 else x),
    ("interpolate-size", lambda x, y, k, m: F.interpolate(_real(x), size=x.shape[0] + 1, mode="linear") if x.dim() == 3 else x),
    ("attention", lambda x, y, k, m: F.scaled_dot_product_attention(_real(x), _real(x), _real(x), is_causal=bool(k % 2)) if x.dim() == 3 else x),
    ("nan_to_num", lambda x, y, k, m: torch.nan_to_num(x)),
    ("total", lambda x, y, k, m: x - _real(x).mean()),
    ("count", lambda x, y, k, m: (x > 0).sum(_axis(x, k))),
    ("searchsorted", lambda x, y, k, m: torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), _real(x).float())),
    ("bucketize", lambda x, y, k, m: torch.bucketize(x, torch.tensor([-1, 0, 2]), right=bool(k % 2))),
]


def _assigned(x: Tensor, k: int, m: int) -> Tensor:
    x = x.clone()
    x[_key(x, k, m)] = 1
    return x


def _scaled(x: Tensor, k: int) -> Tensor:
    x = x.clone()
    x.transpose(0, -1)[: x.shape[-1] // 2].mul_(2 + k % 2)
    return x


def _copied(x: Tensor, y: Tensor) -> Tensor:
    x = x.clone()
    x[..., :1] = y[..., :1]
    return x


class Program:
    """The steps of a seed that PyTorch takes at the example's sizes."""

    def __init__(self, seed: int, length: int = 7):
        self.random = random.Random(seed)
        self.steps: list[tuple[str, Step, int, int, int, int]] = []
        pool = list(inputs(*SIZES[0], seed))
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while len(self.steps) < length:
                self.grow(pool)

    def grow(self, pool: list[Tensor]) -> None:
        name, function = self.random.choice(STEPS)
        a = len(pool) - 1 - min(int(self.random.expovariate(0.8)), len(pool) - 1)
        b, k, m = self.random.randrange(len(pool)), self.random.randrange(1000), self.random.randrange(1000)
        if pool[a].dim() == 0:
            return
        try:
            made = function(pool[a], pool[b], k, m)
        except (RuntimeError, IndexError, ValueError, TypeError):
            return
        if made is pool[a] or made.numel() > _SMALL or made.numel() == 0 or not bool(torch.isfinite(made.double()).all()) or made.double().abs().max() > 1e4:
            return
        pool.append(made)
        self.steps.append((name, function, a, b, k, m))

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        pool = [x, y]
        for _, function, a, b, k, m in self.steps:
            pool.append(function(pool[a], pool[b], k, m))
        return tuple(pool[-3:])

    def __str__(self) -> str:
        return "; ".join(f"{i + 2} = {name}({a}, {b}, k={k}, m={m})" for i, (name, _, a, b, k, m) in enumerate(self.steps))


def inputs(n: int, m: int, seed: int) -> tuple[Tensor, Tensor]:
    """Spread so far apart that no rounding turns an order or a floor."""
    generator = torch.Generator().manual_seed(seed)
    count = n * m * 4
    x = (torch.randperm(count, generator=generator) - count / 2 + 0.3) / (count / 5)
    return x.reshape(n, 4, m).float(), torch.randn(m, generator=generator)


def results(seed: int, opset: int) -> Iterator[str]:
    """What is wrong with the file of this program; nothing if it refuses, or where PyTorch refuses the sizes."""
    program = Program(seed)
    stream = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = onnxport.export(Wrapped(program), inputs(*SIZES[0], seed), stream, input_names=["x", "y"], opset_version=opset,
                                       dynamic_axes={"x": {0: "n", 2: "m"}, "y": {0: "m"}})
    except onnxport.errors.OnnxExporterError as error:
        if isinstance(error, (onnxport.errors.ShapeError, onnxport.errors.CheckerError)) or "cannot be lowered here" in str(error):
            yield f"export: {error}"
        return
    session = onnxruntime.InferenceSession(stream.getvalue(), providers=["CPUExecutionProvider"])
    for size in SIZES if not exported.guards else SIZES[:1]:
        given = inputs(*size, seed)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = program(*given)
        except (RuntimeError, IndexError, ValueError):
            continue
        try:
            got = session.run(None, {"x": given[0].numpy(), "y": given[1].numpy()})
        except Exception as error:
            yield f"{size}: {error}"
            continue
        for index, (a, b) in enumerate(zip(got, want, strict=True)):
            b = b.numpy()
            if a.dtype != b.dtype or a.shape != b.shape:
                yield f"{size}: output {index} is {a.dtype}{a.shape}, PyTorch's is {b.dtype}{b.shape}"
            elif not np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-3, atol=1e-4 * max(1.0, np.abs(b).max(initial=0)), equal_nan=True):
                yield f"{size}: output {index} differs: {a.ravel()[:5]}, PyTorch's is {b.ravel()[:5]}"


@pytest.mark.parametrize("seed", range(150))
def test_random_program(seed: int) -> None:
    found = list(results(seed, (11, 13, 18, 23)[seed % 4]))
    assert not found, f"{Program(seed)}\n" + "\n".join(found)


def main(first: int, last: int) -> None:
    """Prints what is wrong with the programs of these seeds."""
    for seed in range(first, last):
        try:
            found = list(results(seed, (11, 13, 18, 23)[seed % 4]))
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        if found:
            print(f"seed {seed} (opset {(11, 13, 18, 23)[seed % 4]}): {Program(seed)}")
            print("\n".join(f"    {line[:400]}" for line in found[:3]), flush=True)


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(4)
    torch.set_num_threads(1)
    main(int(sys.argv[1]), int(sys.argv[2]))
