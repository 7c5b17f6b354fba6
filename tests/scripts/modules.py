
"""Modules with control flow."""

from __future__ import annotations

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
