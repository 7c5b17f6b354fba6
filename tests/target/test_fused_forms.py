"""The forms that are written are those that ONNX Runtime fuses: counted in what it makes of the file (measured ratios: docs/architecture.md)."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import onnxport


class RootMeanSquare(nn.Module):
    """As most decoders of transformers write it. square: how."""

    def __init__(self, square: Any = lambda x: x.pow(2)):
        super().__init__()
        self.weight, self.square = nn.Parameter(torch.randn(16)), square

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(self.square(wide).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def gelu_new(x: torch.Tensor) -> torch.Tensor:
    """As GPT-2 of transformers writes it."""
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))


class Chain(nn.Module):
    """Linear layers, and something behind each."""

    def __init__(self, *between: Any):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in between)
        self.between = nn.ModuleList(b if isinstance(b, nn.Module) else Function(b) for b in between)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, what in zip(self.layers, self.between):
            x = what(layer(x))
        return x


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.function(x)
        return result


class After(nn.Module):
    """The norm of a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + torch.relu(x))


def optimised(module: nn.Module, opset: int, folder: Path) -> Counter[str]:
    """The operators of what ONNX Runtime makes of the exported module, which gives PyTorch's numbers."""
    x, other = torch.randn(2, 5, 16), torch.randn(3, 4, 16)
    stream = io.BytesIO()
    onnxport.export(module.eval(), (x,), stream, opset_version=opset, input_names=["x"], dynamic_axes={"x": {0: "b", 1: "t"}})
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    session = onnxruntime.InferenceSession(stream.getvalue(), options, providers=["CPUExecutionProvider"])
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": other.numpy()})[0]), module(other), rtol=1e-5, atol=1e-5)
    return Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)


BEHIND = {
    "rms_norm": (nn.RMSNorm(16, eps=1e-6), {13: "SimplifiedLayerNormalization", 18: "SimplifiedLayerNormalization", 23: "RMSNormalization"}),
    "rms_norm_by_hand": (RootMeanSquare(), {**dict.fromkeys((13, 18, 22), "SimplifiedLayerNormalization"), 23: "RMSNormalization", 28: "RMSNormalization"}),
    "rms_norm_of_squares": (RootMeanSquare(lambda x: x * x), {13: "SimplifiedLayerNormalization", 18: "SimplifiedLayerNormalization", 23: "RMSNormalization"}),
    "layer_norm": (nn.LayerNorm(16), dict.fromkeys((13, 17, 23), "LayerNormalization")),
    "norm_of_a_sum": (After(), dict.fromkeys((13, 17, 18), "SkipLayerNormalization")),
    "gelu": (F.gelu, dict.fromkeys((13, 18, 20, 28), "BiasGelu")),
    "silu": (F.silu, dict.fromkeys((13, 18, 24), "QuickGelu")),
}


@pytest.mark.parametrize(("name", "opset"), [(name, opset) for name, (_, opsets) in BEHIND.items() for opset in opsets])
def test_fused(name: str, opset: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    what, opsets = BEHIND[name]
    found = optimised(Chain(what, what, torch.relu), opset, tmp_path)
    assert found[opsets[opset]] == 2, found
    assert not {"ReduceMean", "Erf", "Sigmoid", "Reciprocal"} & set(found)


@pytest.mark.parametrize("what", [lambda x: F.gelu(x, approximate="tanh"), gelu_new], ids=["tanh", "gelu_new"])
@pytest.mark.parametrize("opset", [13, 18, 20])
def test_gelu_by_tanh(what: Any, opset: int, tmp_path: Path) -> None:
    """ONNX Runtime leaves one of a chain as it is where it stands behind the only use of its input."""
    found = optimised(Chain(what, what, what, torch.relu), opset, tmp_path)
    assert found["FastGelu"] + found["Gelu"] >= 2, found


def test_a_reciprocal_of_something_else_stays() -> None:
    class Other(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)

    program = onnxport.export(Other(), (torch.randn(2, 3), torch.randn(2, 3)), None)
    assert "Reciprocal" in {node.op_type for node in program.model_proto.graph.node}


class Rotary(nn.Module):
    """x by rotary positions. turned: what is multiplied by the sine; tables: of an angle."""

    def __init__(self, turned: Any, tables: Any):
        super().__init__()
        self.turned, self.tables = turned, tables

    def forward(self, x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        cos, sin = self.tables(angle)
        return x * cos + self.turned(x) * sin


def by_chunks(x: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def by_slices(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([-x[..., x.shape[-1] // 2:], x[..., : x.shape[-1] // 2]], dim=-1)


def angles_twice(angle: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    twice = torch.cat([angle, angle], dim=-1)
    return (twice.cos() * 1.5).unsqueeze(1), (twice.sin() * 1.5).unsqueeze(1)


def tables_twice(angle: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    return torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)


ROTARY: dict[str, tuple[Any, Any, bool]] = {
    "slices": (by_slices, angles_twice, True),
    "chunks": (by_chunks, tables_twice, True),
    "one_batch": (by_chunks, lambda angle: angles_twice(angle.sum(0, keepdim=True)), True),
    "two_axes": (by_chunks, lambda angle: tuple(table[0, 0] for table in tables_twice(angle)), False),
    "other_sign": (lambda x: -by_chunks(x), angles_twice, False),
    "other_halves": (lambda x: torch.cat([-x[..., :4], x[..., 4:]], -1), angles_twice, False),
    "not_twice": (by_chunks, lambda angle: angles_twice(torch.cat([angle[..., :2], angle[..., 2:] + 1], -1)), True),
    "halves_differ": (by_chunks, lambda angle: tuple(f(torch.cat([angle, angle + 1], -1))[:, None] for f in (torch.cos, torch.sin)), False),
}


@pytest.mark.parametrize("opset", [22, 23, 28])
@pytest.mark.parametrize("name", ROTARY)
def test_rotary_positions(name: str, opset: int) -> None:
    turned, tables, one = ROTARY[name]
    axes = {"x": {0: "b", 2: "t"}, "angle": {0: "b", 1: "t"}}
    module = Rotary(turned, tables)
    program = onnxport.export(module, (torch.randn(2, 3, 5, 8), torch.randn(2, 5, 4)), None, opset_version=opset, dynamic_axes=axes)
    assert ("RotaryEmbedding" in {node.op_type for node in program.model_proto.graph.node}) == (one and opset >= 23)
    for b, t in ((1, 1), (3, 4)):
        args = torch.randn(b, 3, t, 8), torch.randn(b, t, 4)
        torch.testing.assert_close(program(*args)[0], module(*args), rtol=1e-5, atol=1e-5)
