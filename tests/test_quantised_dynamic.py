"""Layers that quantise their inputs while they run, quantised tables, fake quantisation while training: numbers to float32's rounding."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import onnxport
from tests.test_quantised import ENGINE, Net, compare, data, quantised, session_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch.ao.nn.quantized.dynamic as nnqd
    from torch.ao import quantization as tq
    from torch.ao.quantization import quantize_fx

pytestmark = [
    pytest.mark.skipif(ENGINE not in torch.backends.quantized.supported_engines, reason="PyTorch's integer kernels of x86 are not here"),
    pytest.mark.filterwarnings("ignore"),
]
QINT8 = torch.qint8
LAYERS = {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell}


class Holds(nn.Module):
    """A module that is replaced by its quantised form, called with all arguments."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, *args):
        return self.inner(*args)


def dynamic(inner: nn.Module, dtype: torch.dtype = QINT8) -> nn.Module:
    torch.backends.quantized.engine = ENGINE
    return tq.quantize_dynamic(Holds(inner).eval(), LAYERS, dtype=dtype)


def holds(model: Any, examples: list[tuple[torch.Tensor, ...]], atol: float = 1e-5, **options: Any) -> onnx.ModelProto:
    """Exports for the first example and compares for all."""
    session, file = session_of(model, examples[0], **options)
    for args in examples:
        results = model(*args)
        want = [r for part in (results if isinstance(results, tuple) else (results,)) for r in (part if isinstance(part, tuple) else (part,))]
        got = session.run(None, {f"x{i}": arg.numpy() for i, arg in enumerate(args)})
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert a.shape == tuple(b.shape)
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-5, atol=atol)
    return file


@pytest.mark.parametrize("opset", [9, 10, 18, 28])
@pytest.mark.parametrize("shape", [(8, 64), (2, 4, 64)], ids=["matrix", "batch"])
def test_linear(opset: int, shape: tuple[int, ...]) -> None:
    model = dynamic(nn.Linear(64, 32))
    examples = [(data(shape),), (data(shape).abs(),), (data(shape) * 1e-6,), (torch.zeros(shape),)]
    file = holds(model, examples, opset_version=opset)
    assert next(t for t in file.graph.initializer if t.name == "inner.weight").data_type == onnx.TensorProto.INT8


def test_linear_of_a_dynamic_batch_scripted_and_per_channel() -> None:
    holds(dynamic(nn.Linear(64, 32)), [(data((8, 64)),), (data((3, 64)),)], dynamic_axes={"x0": {0: "n"}})
    torch.backends.quantized.engine = ENGINE
    layers = tq.quantize_dynamic(nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)).eval(), {nn.Linear: tq.per_channel_dynamic_qconfig})
    holds(torch.jit.script(layers), [(data((8, 6)),)])
    holds(layers, [(data((8, 6)),)])


def test_linear_of_float16_keeps_its_weight_small() -> None:
    file = holds(dynamic(nn.Linear(64, 32), torch.float16), [(data((8, 64)),)])
    assert onnx.TensorProto.FLOAT16 in {t.data_type for t in file.graph.initializer}


@pytest.mark.parametrize("layer", [nnqd.Conv1d(4, 6, 3), nnqd.Conv2d(4, 6, 3), nnqd.ConvTranspose2d(4, 6, 3)], ids=lambda layer: type(layer).__name__)
def test_convolutions(layer: nn.Module) -> None:
    torch.backends.quantized.engine = ENGINE
    layer = copy.deepcopy(layer)
    layer.set_weight_bias(torch.quantize_per_tensor(torch.randn(layer.weight().shape), 0.02, 0, QINT8), torch.randn(6))
    args = (data((2, 4, 9) if "1d" in type(layer).__name__ else (2, 4, 9, 9)),)
    compare(session_of(Holds(layer), args)[0], Holds(layer), args, 20, torch._choose_qparams_per_tensor(args[0], True)[0])


@pytest.mark.parametrize("dtype", [QINT8, torch.float16], ids=["int8", "float16"])
@pytest.mark.parametrize("net", [nn.LSTM(6, 8, 2, bidirectional=True), nn.LSTM(6, 8, batch_first=True), nn.GRU(6, 8, 2)], ids=["deep", "lstm", "gru"])
def test_recurrent_nets(net: nn.Module, dtype: torch.dtype) -> None:
    holds(dynamic(net, dtype), [(data((5, 3, 6)),), (data((7, 2, 6)),)], dynamic_axes={"x0": {0: "t", 1: "n"}})


def test_recurrent_nets_of_packed_sequences() -> None:
    """The range of a step is that of the sequences that still run."""
    net = dynamic(nn.LSTM(6, 8, 2, bidirectional=True)).inner

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=True)
            start = [torch.zeros(4, 3, 8)] * 2
            cells = [weights.param for weights in self.net._all_weight_values]
            y, h, c = torch.ops.aten.quantized_lstm.data(packed.data, packed.batch_sizes, start, cells, True, 2, 0.0, False, True)
            return y, h, c

    holds(Packed(), [(data((5, 3, 6)), torch.tensor([5, 4, 2])), (data((5, 3, 6)), torch.tensor([5, 1, 1]))])


@pytest.mark.parametrize("cell", [nn.LSTMCell(6, 8), nn.GRUCell(6, 8), nn.RNNCell(6, 8)], ids=lambda cell: type(cell).__name__)
def test_cells(cell: nn.Module) -> None:
    class Step(Holds):
        def forward(self, x, h, c):
            return self.inner(x, (h, c) if isinstance(self.inner, nnqd.LSTMCell) else h)

    torch.backends.quantized.engine = ENGINE
    several = isinstance(cell, nn.LSTMCell)
    model = tq.quantize_dynamic(Step(cell).eval(), LAYERS, dtype=QINT8)
    holds(model if several else _TwoOf(model), [(data((3, 6)), data((3, 8)), data((3, 8)))])


class _TwoOf(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x, h, c):
        return self.model(x, h, c) + c * 0


def table(layer: nn.Module, config: Any) -> nn.Module:
    torch.backends.quantized.engine = ENGINE
    model = Holds(layer).eval()
    model.inner.qconfig = config
    return tq.convert(tq.prepare(model))


BYTES, NIBBLES = tq.float_qparams_weight_only_qconfig, tq.float_qparams_weight_only_qconfig_4bit


def test_embedding() -> None:
    model = table(nn.Embedding(10, 12), BYTES)
    file = holds(model, [(torch.randint(0, 10, (3, 4)),), (torch.randint(0, 10, (3, 4)),)])
    assert next(t for t in file.graph.initializer if t.name == "inner.weight").data_type == onnx.TensorProto.UINT8
    with pytest.raises(onnxport.errors.UnsupportedError, match="a table of 4 bits is read by an operator for 8 bits"):
        session_of(table(nn.Embedding(10, 12), NIBBLES), (torch.randint(0, 10, (3, 4)),))


@pytest.mark.parametrize("config", [BYTES, NIBBLES], ids=["byte", "4bit"])
def test_bags(config: Any) -> None:
    def indices(*shape: int) -> torch.Tensor:
        return torch.randint(0, 10, shape)

    holds(table(nn.EmbeddingBag(10, 12, mode="sum"), config), [(indices(7, 3),)])
    holds(table(nn.EmbeddingBag(10, 12, mode="sum"), config), [(indices(7), torch.tensor([0, 2, 3])), (indices(7), torch.tensor([0, 1, 6]))])
    holds(table(nn.EmbeddingBag(10, 12, mode="sum", include_last_offset=True), config), [(indices(7), torch.tensor([0, 2, 7]))])


def test_quantised_on_a_grid_of_its_own() -> None:
    class Own(nn.Module):
        def forward(self, x):
            return tuple([torch.quantize_per_tensor_dynamic(x, dtype, reduced).dequantize()
                          for dtype, reduced in ((torch.quint8, False), (torch.quint8, True), (torch.qint8, False))])

    holds(Own(), [(data((20,)),), (data((20,)).abs(),)])


# ---------------------------------------------------------------------- other ways to a quantised model


def fx(prepare: Any, config: Any) -> nn.Module:
    torch.backends.quantized.engine = ENGINE
    prepared = prepare(Net().eval() if prepare is quantize_fx.prepare_fx else Net().train(), config, (data((2, 3, 10, 10)),))
    prepared(data((4, 3, 10, 10)))
    return prepared.eval()


def test_fx_graph_mode() -> None:
    torch.backends.quantized.engine = ENGINE
    model = quantize_fx.convert_fx(fx(quantize_fx.prepare_fx, tq.get_default_qconfig_mapping(ENGINE)))
    args = (data((2, 3, 10, 10)),)
    compare(session_of(model, args)[0], model, (data((2, 3, 10, 10)),), 100)
    with pytest.raises(onnxport.errors.CaptureError, match=r"torch\.export refuses the packed weights .* capture='trace' takes them"):
        session_of(model, args, capture="export")


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_fake_quantisation_of_training(capture: str) -> None:
    model = fx(quantize_fx.prepare_qat_fx, tq.get_default_qat_qconfig_mapping(ENGINE))
    args = (data((2, 3, 10, 10)),)
    with pytest.raises(onnxport.errors.UnsupportedError, match=r"the observer of a fake quantisation is on.*disable_observer"):
        session_of(model, args, capture=capture)
    model.apply(tq.disable_observer)
    session, file = session_of(model, args, capture=capture, mutations="error" if capture == "trace" else "ignore")
    compare(session, Detached(model), args, 100)
    kinds = {t.name: t.data_type for t in file.graph.initializer}
    assert kinds["second.weight"] == kinds["last.weight"] == onnx.TensorProto.INT8
    model.apply(tq.disable_fake_quant)
    holds(model, [args], capture=capture, mutations="ignore")


class Detached(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x).detach()


def test_a_model_with_parts_that_are_scripted() -> None:
    inner = torch.jit.script(quantised(nn.Sequential(tq.QuantStub(), nn.Linear(6, 4), tq.DeQuantStub()), (5, 6)))
    session, _ = session_of(Holds(inner), (data((5, 6)),))
    compare(session, Holds(inner), (data((5, 6)),), 50)


class Weighed(torch.Tensor):
    """A weight of integers and scales that is a float tensor to its users, as torchao makes them."""

    @staticmethod
    def __new__(cls, integers, scales):
        return torch.Tensor._make_wrapper_subclass(cls, integers.shape, dtype=scales.dtype)

    def __init__(self, integers, scales):
        self.integers, self.scales = integers, scales

    def __tensor_flatten__(self):
        return ["integers", "scales"], None

    @staticmethod
    def __tensor_unflatten__(inner, metadata, size, stride):
        return Weighed(inner["integers"], inner["scales"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return Weighed(args[0].integers, args[0].scales)
        raise NotImplementedError(func)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.linear:
            x, weight, bias = args
            return (x @ weight.integers.t().to(x.dtype)) * weight.scales + bias
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_weights_that_are_tensor_subclasses_stay_integers(capture: str) -> None:
    layer = nn.Linear(640, 64)
    integers = torch.randint(-128, 128, (64, 640), dtype=torch.int8)
    layer.weight = nn.Parameter(Weighed(integers, torch.rand(64) * 0.01), requires_grad=False)
    file = holds(layer.eval(), [(data((3, 640)),), (data((3, 640)),)], atol=1e-3, capture=capture)
    assert any(t.data_type == onnx.TensorProto.INT8 and list(t.dims) in ([64, 640], [640, 64]) for t in file.graph.initializer)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_matrix_product_with_a_dequantised_weight_is_of_floats(capture: str) -> None:
    """ONNX Runtime would quantise the other factor of a MatMul with one."""
    import torch.ao.quantization.fx._decomposed

    weight, scales = torch.randint(-128, 128, (64, 64), dtype=torch.int8), torch.rand(64) * 0.01

    class Weights(nn.Module):
        def forward(self, x):
            w = torch.ops.quantized_decomposed.dequantize_per_channel(weight, scales, torch.zeros(64, dtype=torch.int64), 0, -128, 127, torch.int8)
            return torch.nn.functional.linear(x, w), x @ w, x[0, 0] @ w

    holds(Weights(), [(data((2, 5, 64)),), (data((2, 5, 64)),)], capture=capture, atol=1e-4)


def test_exported_programs_stay_in_their_mode() -> None:
    """`train()` of the module of an exported program is refused."""
    module = torch.export.export(nn.Linear(3, 2).eval(), (data((2, 3)),)).module()
    module.training = True
    holds(module, [(data((2, 3)),)])
