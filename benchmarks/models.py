"""The models of the benchmark: each a function that gives (module, arguments, input names, dynamic axes)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Case = tuple[nn.Module, tuple[torch.Tensor, ...], list[str], dict[str, dict[int, str]]]
MODELS: dict[str, Callable[[], Case]] = {}


def model(build: Callable[[], Case]) -> Callable[[], Case]:
    MODELS[build.__name__] = build
    return build


def _image(net: nn.Module, size: int = 224) -> Case:
    return net.eval(), (torch.randn(2, 3, size, size),), ["image"], {"image": {0: "batch"}}


@model
def alexnet() -> Case:
    import torchvision

    return _image(torchvision.models.alexnet(weights=None))


@model
def resnet18() -> Case:
    import torchvision

    return _image(torchvision.models.resnet18(weights=None))


@model
def mobilenet_v3() -> Case:
    import torchvision

    return _image(torchvision.models.mobilenet_v3_large(weights=None))


@model
def vit_b_16() -> Case:
    import torchvision

    return _image(torchvision.models.vit_b_16(weights=None))


class _Tokens(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> Any:
        return self.net(input_ids=ids, attention_mask=mask)[0]


@model
def bert() -> Case:
    from transformers import BertConfig, BertModel

    net = BertModel(BertConfig(num_hidden_layers=6))
    axes = {"ids": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}}
    return _Tokens(net).eval(), (torch.randint(0, 1000, (2, 32)), torch.ones(2, 32, dtype=torch.int64)), ["ids", "mask"], axes


class _Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(64, 128, 4, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


@model
def lstm() -> Case:
    return _Lstm().eval(), (torch.randn(2, 20, 64),), ["x"], {"x": {0: "batch"}}


class _Chain(nn.Module):
    """Many small operators: shows what a node costs, and whether that grows with their number."""

    def __init__(self, length: int):
        super().__init__()
        self.length = length

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(self.length):
            x = torch.tanh(x * (1.0 + i)) + x
        return x


@model
def chain_500() -> Case:
    return _Chain(500), (torch.randn(2, 8),), ["x"], {"x": {0: "batch"}}


@model
def chain_2000() -> Case:
    return _Chain(2000), (torch.randn(2, 8),), ["x"], {"x": {0: "batch"}}


@model
def mlp_400mb() -> Case:
    """Few nodes and much weight: shows what saving costs."""
    net = nn.Sequential(*[nn.Linear(5000, 5000, bias=False) for _ in range(4)])
    return net.eval(), (torch.randn(2, 5000),), ["x"], {"x": {0: "batch"}}
