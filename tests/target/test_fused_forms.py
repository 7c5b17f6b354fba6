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
    "rms_norm_by_hand": (RootMeanSquare(), dict.fromkeys((13, 18, 23, 28), "SimplifiedLayerNormalization")),
    "rms_norm_of_squares": (RootMeanSquare(lambda x: x * x), dict.fromkeys((13, 18, 23), "SimplifiedLayerNormalization")),
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
