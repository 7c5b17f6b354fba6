"""Quantised models (`torch.ao.quantization`): the numbers of ONNX Runtime against those of PyTorch's integer kernels.

Where a result lies in the middle of two integers, the last bit of a sum decides. `off` says how many in a thousand results may be off,
by one step: 1 where a bias is rounded to the grid of the sums, 50 for averages, which often lie in the middle.
"""

from __future__ import annotations

import collections
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import onnxport

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.ao import quantization as tq

ENGINE = "fbgemm"
pytestmark = [
    pytest.mark.skipif(ENGINE not in torch.backends.quantized.supported_engines, reason="PyTorch's integer kernels of x86 are not here"),
    pytest.mark.filterwarnings("ignore"),
]
SHAPE = (4, 16, 12, 12)


class Between(nn.Module):
    """A module or a function of (this module, tensor) on a quantised tensor."""

    def __init__(self, inner: Any):
        super().__init__()
        self.quant, self.dequant, self.functional = tq.QuantStub(), tq.DeQuantStub(), torch.ao.nn.quantized.FloatFunctional()
        self.inner = inner if isinstance(inner, nn.Module) else None
        self.function = None if self.inner is not None else inner

    def forward(self, x):
        q = self.quant(x)
        return self.dequant(self.inner(q) if self.inner is not None else self.function(self, q))


def data(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape) * 2


def quantised(model: nn.Module, shape: tuple[int, ...] = SHAPE, config: Any = None) -> nn.Module:
    """Prepared, calibrated and converted."""
    torch.backends.quantized.engine = ENGINE
    model.eval().qconfig = config or tq.get_default_qconfig(ENGINE)
    prepared = tq.prepare(model)
    prepared(data(shape))
    return tq.convert(prepared)


def session_of(model: Any, args: tuple[Any, ...], **options: Any) -> tuple[onnxruntime.InferenceSession, onnx.ModelProto]:
    file = io.BytesIO()
    onnxport.export(model, args, file, input_names=[f"x{i}" for i in range(len(args))], **options)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(file.getvalue(), settings, providers=["CPUExecutionProvider"]), onnx.load_from_string(file.getvalue())


def compare(session: Any, model: Any, args: tuple[Any, ...], off: int, step: float | None = None) -> None:
    """All but `off` in a thousand numbers are equal; those are a step apart."""
    want = model(*args).numpy()
    (got,) = session.run(None, {f"x{i}": arg.numpy() for i, arg in enumerate(args)})
    assert got.dtype == want.dtype and got.shape == want.shape
    if step is None:
        levels = np.unique(want)
        step = float(np.diff(levels).min()) if len(levels) > 1 else 1.0
    apart = np.abs(got - want) / step
    assert (apart > 0.1).mean() <= off / 1000, f"{(apart > 0.1).mean() * 1000:.1f} in a thousand are off, by {apart.max():.2f} steps at most"
    assert apart.max() < 1.1, f"off by {apart.max():.2f} steps"


@dataclass
class Row:
    """A module (or a function that makes one of it, or a function of (module, tensor)) and the operators that the file must have."""

    id: str
    make: Callable[[], Any]
    off: int = 0
    shape: tuple[int, ...] = SHAPE
    opsets: tuple[int, ...] = (18,)
    config: Any = None
    scripted: bool = False
    dynamic: bool = True


def calls(function: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: function


ALL = (9, 10, 13, 18, 21, 28)
PER_TENSOR = tq.default_qconfig
ROWS = [
    Row("conv2d", lambda: nn.Conv2d(16, 32, 3, padding=1), 1, opsets=ALL, scripted=True),
    Row("conv2d_plain", lambda: nn.Conv2d(16, 8, 3, stride=2, dilation=2, bias=False)),
    Row("conv2d_per_tensor", lambda: nn.Conv2d(16, 8, 3), 1, opsets=(10, 18), config=PER_TENSOR),
    Row("conv2d_groups", lambda: nn.Conv2d(16, 16, 3, groups=16), 2),
    Row("conv2d_reflected", lambda: nn.Conv2d(16, 8, 3, padding=1, padding_mode="reflect"), 2),
    Row("conv1d", lambda: nn.Conv1d(16, 8, 3, stride=2, padding=1), 2, (4, 16, 20), scripted=True),
    Row("conv3d", lambda: nn.Conv3d(4, 8, 3, padding=1), 2, (2, 4, 5, 6, 7)),
    Row("transposed1d", lambda: nn.ConvTranspose1d(16, 8, 3, stride=2), 2, (4, 16, 20), config=PER_TENSOR),
    Row("transposed2d", lambda: nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1), 2, config=PER_TENSOR),
    Row("linear", lambda: nn.Linear(12, 40), 2, opsets=ALL, scripted=True),
    Row("linear_matrix", lambda: nn.Linear(16, 40), 5, (64, 16)),
    Row("linear_per_tensor", lambda: nn.Linear(12, 5, bias=False), config=PER_TENSOR),
    Row("add", calls(lambda m, x: m.functional.add(x, x)), opsets=(9, 13, 28)),
    Row("add_relu", calls(lambda m, x: m.functional.add_relu(x, x))),
    Row("mul", calls(lambda m, x: m.functional.mul(x, x))),
    Row("matmul", calls(lambda m, x: m.functional.matmul(x, x)), 1),
    Row("cat", calls(lambda m, x: m.functional.cat([x, x], 1))),
    Row("add_scalar", calls(lambda m, x: m.functional.add_scalar(x, 0.5))),
    Row("add_large_scalar", calls(lambda m, x: m.functional.add_scalar(x, 40.0))),
    Row("add_small_scalar", calls(lambda m, x: m.functional.add_scalar(x, -40.0)), 5),
    Row("mul_scalar", calls(lambda m, x: m.functional.mul_scalar(x, 1.5))),
    Row("mul_negative", calls(lambda m, x: m.functional.mul_scalar(x, -1.5))),
    Row("mul_nothing", calls(lambda m, x: m.functional.mul_scalar(x, 0.0))),
    *[Row(type(module).__name__, lambda module=module: module) for module in (
        nn.ReLU(), nn.ReLU6(), nn.Hardswish(), nn.Sigmoid(), nn.Tanh(), nn.Hardsigmoid(), nn.ELU(), nn.LeakyReLU(0.1), nn.GELU(), nn.Hardtanh(),
        nn.Threshold(0.3, 0.1), nn.Dropout(), nn.LayerNorm(12), nn.BatchNorm2d(16), nn.GroupNorm(4, 16), nn.InstanceNorm2d(16),
        nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(3, 2), nn.Upsample(scale_factor=2), nn.ChannelShuffle(4), nn.PixelShuffle(2), nn.ReflectionPad2d(1))],
    Row("relu_in_place", lambda: nn.Sequential(nn.ReLU(inplace=True)), opsets=(9, 12, 28)),
    Row("max_pool_old", lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), opsets=(9, 12, 28)),
    Row("adaptive_one", lambda: nn.AdaptiveAvgPool2d(1)),
    Row("adaptive", lambda: nn.AdaptiveAvgPool2d(3), 50),
    Row("bilinear", lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)),
    Row("mean", calls(lambda m, x: x.mean([2, 3]))),
    Row("mean_of_channels", calls(lambda m, x: x.mean(1, keepdim=True)), 50),
    Row("clamp", calls(lambda m, x: x.clamp(-1, 1.5))),
    Row("clamp_min", calls(lambda m, x: x.clamp(min=-1))),
    Row("max", calls(lambda m, x: x.max(1)[0])),
    Row("sort", calls(lambda m, x: torch.sort(x, 1)[0])),
    Row("topk", calls(lambda m, x: x.topk(3, 1)[0])),
    Row("moved", calls(lambda m, x: x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)[:, 3:])),
    Row("chunk", calls(lambda m, x: torch.cat(x.chunk(2, 1)[::-1], 1))),
    Row("stack", calls(lambda m, x: torch.stack([x, x]))),
    Row("pad", calls(lambda m, x: F.pad(x, (1, 2)))),
    Row("pad_by_number", calls(lambda m, x: F.pad(x, (1, 2), value=1.3))),
    Row("flip", calls(lambda m, x: x.flip(1))),
    Row("masked_fill", calls(lambda m, x: x.masked_fill(torch.ones(12, dtype=torch.bool), 1.0))),
    Row("index", calls(lambda m, x: x[:, torch.tensor([3, 1])])),
    Row("grid_sample", calls(lambda m, x: F.grid_sample(x, torch.full((4, 3, 3, 2), 0.3), align_corners=False)), dynamic=False),
    Row("unfold", calls(lambda m, x: x.unfold(2, 3, 2))),
    Row("repeat", calls(lambda m, x: x.repeat(1, 2, 1, 1))),
    Row("compared", calls(lambda m, x: m.quant((x > 0.5).float()))),
    Row("std", calls(lambda m, x: torch.std(x, 1)), 2),
    Row("same", calls(lambda m, x: x.detach().clone().contiguous())),
    Row("integers", calls(lambda m, x: m.quant(torch.dequantize(x) + x.dequantize().sum() * 0))),
]


@pytest.mark.parametrize(("row", "opset"), [pytest.param(row, opset, id=f"{row.id}-{opset}") for row in ROWS for opset in row.opsets])
def test_operator(row: Row, opset: int) -> None:
    model = quantised(Between(row.make()), row.shape, row.config)
    options = {"opset_version": opset, "dynamic_axes": {"x0": {0: "n"}} if row.dynamic else None}
    session, _ = session_of(model, (data(row.shape),), **options)
    compare(session, model, (data(row.shape),), row.off)
    if row.dynamic:
        compare(session, model, (data((row.shape[0] + 1, *row.shape[1:])),), row.off)
    if row.scripted:
        args = (data(row.shape),)
        for script in (torch.jit.script(model), torch.jit.trace(model, args)):
            compare(session_of(script, args, opset_version=opset)[0], model, (data(row.shape),), row.off)


class Net(nn.Module):
    """What quantised vision models are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant, self.plus = tq.QuantStub(), tq.DeQuantStub(), torch.ao.nn.quantized.FloatFunctional()
        self.first, self.norm, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.second, self.pool, self.last = nn.Conv2d(8, 8, 3, padding=1), nn.MaxPool2d(2), nn.Linear(8, 5)

    def forward(self, x):
        a = self.relu(self.norm(self.first(self.quant(x))))
        b = self.pool(self.plus.add(a, self.second(a)))
        return self.dequant(self.last(b.mean([2, 3])))


def fused() -> nn.Module:
    return tq.fuse_modules(Net().eval(), [["first", "norm", "relu"]])


def test_the_whole_runs_in_integers() -> None:
    """int8 weights are int8 in the file, biases int32, and ONNX Runtime finds only operators that it computes in integers."""
    model = quantised(fused(), (4, 3, 10, 10))
    session, file = session_of(model, (data((4, 3, 10, 10)),), dynamic_axes={"x0": {0: "n", 2: "h", 3: "w"}})
    kinds = {t.name: onnx.TensorProto.DataType.Name(t.data_type) for t in file.graph.initializer}
    assert {name: kind for name, kind in kinds.items() if name.endswith(("weight", "bias"))} == {
        **{f"{layer}.weight": "INT8" for layer in ("first", "second", "last")}, **{f"{layer}.bias": "INT32" for layer in ("first", "second", "last")}}
    for shape in ((4, 3, 10, 10), (2, 3, 8, 14)):
        compare(session, model, (data(shape),), 50)


def optimised(file: onnx.ModelProto, folder: Any) -> collections.Counter[str]:
    settings = onnxruntime.SessionOptions()
    settings.optimized_model_filepath, settings.log_severity_level = str(folder / "optimised.onnx"), 4
    onnxruntime.InferenceSession(file.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    return collections.Counter(node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node)


def test_onnx_runtime_fuses_it(tmp_path: Any) -> None:
    _, file = session_of(quantised(fused(), (4, 3, 10, 10)), (data((4, 3, 10, 10)),))
    found = optimised(file, tmp_path)
    assert (found["QLinearConv"], found["QLinearAdd"], found["QGemm"], found["MaxPool"] + found["NhwcMaxPool"]) == (2, 1, 1, 1)
    assert found["Conv"] == found["Gemm"] == found["Cast"] == 0


@pytest.mark.parametrize("opset", [9, 28])
def test_weights_stay_small_where_no_node_reads_them(opset: int) -> None:
    _, file = session_of(quantised(fused(), (4, 3, 10, 10)), (data((4, 3, 10, 10)),), opset_version=opset)
    kinds = {t.name: t.data_type for t in file.graph.initializer}
    assert kinds["first.weight"] == kinds["last.weight"] == onnx.TensorProto.INT8


@pytest.mark.parametrize(("name", "scripted"), [("shufflenet_v2_x0_5", False), ("mobilenet_v3_large", True)])
def test_models_of_torchvision(name: str, scripted: bool) -> None:
    models = pytest.importorskip("torchvision.models")
    torch.backends.quantized.engine = ENGINE
    model = models.get_model(f"quantized_{name}", weights=None, quantize=False).eval()
    model.fuse_model()
    model = quantised(model, (2, 3, 64, 64))
    args = (data((2, 3, 64, 64)),)
    last = model.fc if hasattr(model, "fc") else model.classifier[-1]
    want = model(*args).numpy()
    session, _ = session_of(torch.jit.script(model) if scripted else model, args)
    apart = np.abs(session.run(None, {"x0": args[0].numpy()})[0] - want) / last.scale
    assert apart.max() < 3.1 and apart.mean() < 0.7, f"{apart.mean():.2f} steps in the mean, {apart.max():.2f} at most"


def test_quantised_layers_as_functions() -> None:
    model, args = quantised(fused(), (4, 3, 10, 10)), (data((4, 3, 10, 10)),)
    session, file = session_of(model, args, export_modules_as_functions=True)
    compare(session, model, (data((4, 3, 10, 10)),), 50)
    assert all(all(node.input) for function in file.functions for node in function.node if node.domain)
    assert {function.name for function in file.functions} >= {"ConvReLU2d", "Conv2d", "Linear", "MaxPool2d"}


def test_the_bias_that_fits_no_integer_stays_a_float() -> None:
    model = Between(nn.Linear(4, 2))
    with torch.no_grad():
        model.inner.weight.mul_(1e-10)
        model.inner.bias.fill_(100.0)
    model = quantised(model, (3, 4))
    session, file = session_of(model, (data((3, 4)),))
    assert next(t for t in file.graph.initializer if t.name == "inner.bias").data_type == onnx.TensorProto.FLOAT
    compare(session, model, (data((3, 4)),), 0)


def test_functional_layers_pack_in_the_graph() -> None:
    weight = torch.quantize_per_channel(torch.randn(8, 3, 3, 3), torch.rand(8) * 0.02 + 0.01, torch.zeros(8, dtype=torch.int64), 0, torch.qint8)
    matrix = torch.quantize_per_tensor(torch.randn(5, 8), 0.02, 0, torch.qint8)

    class Functional(nn.Module):
        def forward(self, x):
            x = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
            x = torch.ao.nn.quantized.functional.conv2d(x, weight, torch.ones(8), padding=1, scale=0.1, zero_point=120)
            return torch.ao.nn.quantized.functional.linear(x.permute(0, 2, 3, 1), matrix, torch.ones(5), 0.1, 110).dequantize()

    model, args = Functional(), (data((2, 3, 6, 6)),)
    compare(session_of(model, args)[0], model, (data((2, 3, 6, 6)),), 5)


def test_quantised_tensors_of_every_kind() -> None:
    class Kinds(nn.Module):
        def forward(self, x, scale, zero):
            a = torch.quantize_per_tensor(x, scale, zero, torch.qint8)
            b = torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3]), 1, torch.quint8)
            c = torch._make_per_tensor_quantized_tensor(b.int_repr(), 0.1, 3)
            d = torch.quantize_per_tensor(x, 1e-4, 0, torch.qint32)
            return a.dequantize() + b.dequantize() + c.dequantize() + d.dequantize() + b.q_per_channel_scales().sum().float() + c.q_scale() + c.q_zero_point()

    args = (torch.randn(4, 3), torch.tensor(0.05), torch.tensor(3))
    session, _ = session_of(Kinds(), args)
    new = (torch.randn(4, 3), torch.tensor(0.1), torch.tensor(-5))
    np.testing.assert_allclose(session.run(None, {f"x{i}": t.numpy() for i, t in enumerate(new)})[0], Kinds()(*new).numpy(), atol=1e-5)


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: x, r"an output of dtype torch\.quint8 .*dequantize\(\)"),
    (lambda x: torch.cat([x, torch.quantize_per_tensor(torch.ones(4, 3), 0.3, 1, torch.quint8)]).new_empty(2), "of a quantised tensor|dtype"),
    (lambda x: torch.stack([x, torch.quantize_per_tensor(torch.ones(4, 3), 0.3, 1, torch.quint8)]).dequantize(), "different scales"),
    (lambda x: torch.quantize_per_channel(x.dequantize(), torch.ones(4), torch.zeros(4), 0, torch.quint8).view(2, 6).int_repr(), "channel by channel"),
])
def test_refusals_say_what_to_do(function: Any, words: str) -> None:
    class Refused(nn.Module):
        def forward(self, x):
            return function(torch.quantize_per_tensor(x, 0.1, 3, torch.quint8))

    with pytest.raises(onnxport.errors.OnnxExporterError, match=words):
        session_of(Refused(), (torch.randn(4, 3),))
