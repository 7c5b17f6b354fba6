# ruff: noqa: UP045 - scripts are written in what TorchScript reads
"""Modules with control flow."""

from __future__ import annotations

import enum
from typing import Optional

import torch
from torch import Tensor, nn

from .table import row, t


@row((torch.ones(2, 3),))
class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3), nn.ReLU()])
        self.last = nn.Sequential(nn.Linear(3, 4), nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        if self.training:
            x = x + 1
        return self.last(x)


@row((t(1, 2), 3), (t(1, 2), 0))
class Buffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor, n: int) -> Tensor:
        kept = self.count
        for _ in range(n):
            self.count = self.count + 1
        x = x * self.count
        self.count = kept
        return x


@row((torch.ones(2, 3, 4), 2), (torch.ones(2, 3, 4), 0))
class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 5)

    def forward(self, x: Tensor, n: int) -> Tensor:
        h = torch.zeros(x.size(0), 5)
        for i in range(n):
            h = self.cell(x[:, i], h)
        return h


class Halve(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x: Tensor, times: int) -> Tensor:
        for _ in range(times):
            x = self.linear(x) * 0.5
        return x


@row((torch.ones(2, 3), 2), (torch.ones(4, 3), 0), x={0: "b"})
class Stacks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = nn.ModuleList([Halve(3), Halve(3)])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})

    def forward(self, x: Tensor, n: int) -> Tensor:
        for i, layer in enumerate(self.items):
            x = layer(x, n + i)
        for layer in self.named.values():
            x = layer(x)
        return x


@row((torch.ones(2, 3), 2), (torch.ones(2, 3), 0))
class Methods(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor, self.names = 3, ["one", "two"]
        self.weight = nn.Parameter(torch.ones(3))

    def scaled(self, x: Tensor, by: Optional[int] = None) -> Tensor:
        return x * self.weight * (self.factor if by is None else by)

    def forward(self, x: Tensor, n: int) -> Tensor:
        if len(self.names) > 1 and n > 1:
            x = self.scaled(x, n)
        return self.scaled(x)


@row((torch.ones(2, 5, 4),), (torch.ones(2, 1, 4),), x={1: "steps"})
class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.attention(x, x, x, need_weights=False)
        return y + self.lstm(x)[0] if x.size(1) > 1 else y


class Mode(enum.Enum):
    PLAIN = 1
    DOUBLE = 2


def scaled(x: Tensor, mode: Mode) -> Tensor:
    return x * 2 if mode == Mode.DOUBLE else x


@row((t(1, 2), 2), (t(1, 2), 0))
class Modes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mode = Mode.DOUBLE

    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = scaled(x, self.mode) + scaled(x, Mode.PLAIN) * self.mode.value
        return x


class OldMethods(torch.jit.ScriptModule):
    """What `torch.jit.script` is not asked about: its methods are scripted as the module is made."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(2.0))

    @torch.jit.script_method
    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = self.step(x)
        return x

    @torch.jit.script_method
    def step(self, x: Tensor) -> Tensor:
        return x * self.weight + 1 if bool(x[0] > 0) else -x


class Exported(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)

    @torch.jit.export
    def several(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = self.forward(x)
        return x


@row((t(1, 2), True), (t(1, 2), False))
class ChosenMode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mode, self.other = Mode.PLAIN, Mode.DOUBLE

    def forward(self, x: Tensor, flag: bool) -> Tensor:
        if self.mode != self.other and self.mode is not None:
            x = x + self.other.value
        if flag and self.mode == Mode.PLAIN and self.other.name == "DOUBLE":
            x = scaled(x, self.other) + 1
        return x
