"""The list of supported operators and models of the edition of PyTorch 1.3, and the limits that it names, which are gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch.nn import functional as F

import onnxport
from tests.compat.running import check, proto, run

nn = torch.nn
torch.manual_seed(0)
X, P, S = torch.randn(2, 3, 4), torch.rand(2, 3, 4) * 0.8 + 0.1, torch.randn(2, 3, 8, 8)
Y, M, L = torch.randn(2, 3, 4), torch.randn(2, 3, 4) > 0, torch.randint(0, 3, (2, 3, 4))
T = torch.tensor

# name on the page -> (function, arguments)
OPERATORS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "BatchNorm": (nn.BatchNorm2d(3).eval(), (S,)), "ConstantPadNd": (lambda x: F.pad(x, (1, 2), value=3.0), (X,)),
    "Conv": (nn.Conv2d(3, 4, 3), (S,)), "Dropout": (nn.Dropout(0.5).eval(), (X,)), "Embedding": (nn.Embedding(5, 4), (L,)),
    "FeatureDropout": (nn.Dropout2d(0.5).eval(), (S,)), "Index": (lambda x: x[:, T([0, 2])], (X,)),
    "MaxPool1d": (nn.MaxPool1d(2), (X,)), "MaxPool2d": (nn.MaxPool2d(2), (S,)), "MaxPool3d": (nn.MaxPool3d(2), (S[None],)),
    "RNN": (lambda x: RNN(x)[0], (X,)),
    "abs": (torch.abs, (X,)), "acos": (torch.acos, (P,)),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 2), (X,)), "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), (S,)),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, 1), (S[None],)), "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 2), (X,)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (S,)), "adaptive_max_pool3d": (lambda x: F.adaptive_max_pool3d(x, 1), (S[None],)),
    "add": (torch.add, (X, Y)), "addmm": (torch.addmm, (torch.randn(2, 5), torch.randn(2, 3), torch.randn(3, 5))),
    "and": (lambda a: a & ~a, (M,)), "arange": (lambda x: torch.arange(x.shape[0]), (X,)), "argmax": (lambda x: x.argmax(1), (X,)),
    "argmin": (lambda x: x.argmin(1), (X,)), "asin": (torch.asin, (P,)), "atan": (torch.atan, (X,)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), (X,)), "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (S,)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), (S[None],)), "cat": (lambda x, y: torch.cat([x, y], 1), (X, Y)), "ceil": (torch.ceil, (X,)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), (X,)), "clamp_max": (lambda x: x.clamp_max(0.5), (X,)), "clamp_min": (lambda x: x.clamp_min(0.5), (X,)),
    "concat": (lambda x, y: torch.concat([x, y]), (X, Y)), "cos": (torch.cos, (X,)),
    "dim_arange": (lambda x: torch._dim_arange(x, 1), (X,)), "div": (torch.div, (X, Y)), "dropout": (lambda x: F.dropout(x, 0.5, False), (X,)),
    "elu": (F.elu, (X,)), "eq": (torch.eq, (X, Y)), "erf": (torch.erf, (X,)), "exp": (torch.exp, (X,)), "expand": (lambda x: x.expand(5, 2, 3, 4), (X,)),
    "expand_as": (lambda x, y: x.expand_as(y), (X[:1], Y)), "flatten": (lambda x: x.flatten(1), (X,)), "floor": (torch.floor, (X,)),
    "full": (lambda x: torch.full((2, x.shape[1]), 3.0), (X,)), "full_like": (lambda x: torch.full_like(x, 3.0), (X,)),
    "gather": (lambda x, i: x.gather(1, i), (X, L)), "ge": (torch.ge, (X, Y)), "glu": (F.glu, (X,)), "gt": (torch.gt, (X, Y)),
    "hardtanh": (F.hardtanh, (X,)), "index_copy": (lambda x, y: x.index_copy(1, T([2, 0]), y[:, :2]), (X, Y)),
    "index_fill": (lambda x: x.index_fill(1, T([2, 0]), 7.0), (X,)), "index_select": (lambda x: x.index_select(1, T([2, 0])), (X,)),
    "instance_norm": (nn.InstanceNorm2d(3), (S,)), "isnan": (torch.isnan, (X.log(),)), "layer_norm": (nn.LayerNorm(4), (X,)), "le": (torch.le, (X, Y)),
    "leaky_relu": (F.leaky_relu, (X,)), "log": (torch.log, (P,)), "log2": (torch.log2, (P,)), "log_sigmoid": (F.logsigmoid, (X,)),
    "log_softmax": (lambda x: x.log_softmax(-1), (X,)), "logsumexp": (lambda x: x.logsumexp(1), (X,)), "lt": (torch.lt, (X, Y)),
    "masked_fill": (lambda x, m: x.masked_fill(m, 2.0), (X, M)), "max": (torch.max, (X, Y)), "mean": (lambda x: x.mean(1), (X,)),
    "min": (torch.min, (X, Y)), "mm": (torch.mm, (X[0], Y[0].t())), "mul": (torch.mul, (X, Y)), "narrow": (lambda x: x.narrow(1, 1, 2), (X,)),
    "ne": (torch.ne, (X, Y)), "neg": (torch.neg, (X,)), "nonzero": (torch.nonzero, (M,)), "norm": (lambda x: x.norm(2, 1), (X,)),
    "ones": (lambda x: torch.ones(2, x.shape[1]), (X,)), "ones_like": (torch.ones_like, (X,)), "or": (lambda a, b: a | (b > 0), (M, X)),
    "permute": (lambda x: x.permute(2, 0, 1), (X,)), "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (torch.randn(1, 8, 2, 2),)),
    "pow": (lambda x: x ** 3, (X,)), "prelu": (nn.PReLU(3), (X,)), "prod": (lambda x: x.prod(1), (X,)),
    "rand": (lambda x: torch.rand(x.shape) * 0 + x, (X,)), "randn": (lambda x: torch.randn(x.shape) * 0 + x, (X,)),
    "randn_like": (lambda x: torch.randn_like(x) * 0 + x, (X,)), "reciprocal": (torch.reciprocal, (P,)),
    "reflection_pad": (lambda x: F.pad(x, (1, 2), "reflect"), (X,)), "relu": (torch.relu, (X,)), "repeat": (lambda x: x.repeat(2, 1, 3), (X,)),
    "replication_pad": (lambda x: F.pad(x, (1, 2), "replicate"), (X,)), "reshape": (lambda x: x.reshape(-1, 2), (X,)),
    "reshape_as": (lambda x, y: x.reshape_as(y), (X, Y.reshape(6, 4))), "rrelu": (lambda x: F.rrelu(x, training=False), (X,)),
    "rsub": (lambda x: 2.5 - x, (X,)), "scatter": (lambda x, i, y: x.scatter(1, i[:, :1], y), (X, L, Y)),
    "scatter_add": (lambda x, i, y: x.scatter_add(1, i, y), (X, L, Y)), "select": (lambda x: x.select(1, 2), (X,)), "selu": (F.selu, (X,)),
    "sigmoid": (torch.sigmoid, (X,)), "sign": (torch.sign, (X,)), "sin": (torch.sin, (X,)), "size": (lambda x: T(x.size()), (X,)),
    "slice": (lambda x: x[:, 1:], (X,)), "softmax": (lambda x: x.softmax(-1), (X,)), "softplus": (F.softplus, (X,)),
    "split": (lambda x: x.split(2, 2), (X,)), "sqrt": (torch.sqrt, (P,)), "squeeze": (lambda x: x[:, :1].squeeze(1), (X,)),
    "stack": (lambda x, y: torch.stack([x, y], 1), (X, Y)), "sub": (torch.sub, (X, Y)), "sum": (lambda x: x.sum(1), (X,)), "t": (torch.t, (X[0],)),
    "tan": (torch.tan, (P,)), "tanh": (torch.tanh, (X,)), "threshold": (lambda x: F.threshold(x, 0.0, 0.0), (X,)), "to": (lambda x: x.to(torch.int32), (X,)),
    "topk": (lambda x: x.topk(2, 1), (X,)), "transpose": (lambda x: x.transpose(0, 2), (X,)), "type_as": (lambda x, i: i.type_as(x), (X, L)),
    "unfold": (lambda x: x.unfold(2, 2, 1), (X,)), "unsqueeze": (lambda x: x.unsqueeze(1), (X,)),
    "upsample_nearest1d": (lambda x: F.interpolate(x, scale_factor=2), (X,)), "upsample_nearest2d": (lambda x: F.interpolate(x, scale_factor=2), (S,)),
    "upsample_nearest3d": (lambda x: F.interpolate(x, scale_factor=2), (S[None],)), "view": (lambda x: x.view(-1), (X,)),
    "where": (lambda m, x, y: torch.where(m, x, y), (M, X, Y)), "zeros": (lambda x: torch.zeros(2, x.shape[1]), (X,)), "zeros_like": (torch.zeros_like, (X,)),
}
RNN = nn.RNN(4, 5, batch_first=True)
# A limit on the page -> what it rules out.
LIMITS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "Embedding (no optional arguments supported)": (nn.Embedding(5, 4, padding_idx=1), (L,)),
    "Embedding (no optional arguments supported): sparse": (nn.Embedding(5, 4, scale_grad_by_freq=True, sparse=True), (L,)),
    "add (nonzero alpha not supported)": (lambda x, y: torch.add(x, y, alpha=2.5), (X, Y)),
    "sub (nonzero alpha not supported)": (lambda x, y: torch.sub(x, y, alpha=2.5), (X, Y)),
    "prelu (single weight shared among input channels not supported)": (nn.PReLU(1), (X,)),
    "softmax (only dim=-1 supported)": (lambda x: x.softmax(0), (X,)),
    "softmax (only dim=-1 supported): 1": (lambda x: x.softmax(1), (X,)),
    "threshold (non-zero threshold/non-zero value not supported)": (lambda x: F.threshold(x, 0.3, -2.0), (X,)),
}


def page() -> list[str]:
    """The operators that the page lists: each is a key of OPERATORS."""
    return list(OPERATORS)


def test_the_list_is_whole() -> None:
    """135 names stand on the page, one of them (avg_pool2d) twice."""
    assert len(page()) == 134


@pytest.mark.parametrize("name", page())
def test_operator(name: str) -> None:
    function, args = OPERATORS[name]
    if name == "isnan":
        made = proto(function, args)
        assert (run(made, *args)[0] == torch.isnan(args[0]).numpy()).all()
    else:
        check(function, args)


@pytest.mark.parametrize("opset", [9, 18])
@pytest.mark.parametrize("name", LIMITS)
def test_limit(name: str, opset: int) -> None:
    function, args = LIMITS[name]
    check(function, args, opset_version=opset)


def test_max_norm_of_an_embedding() -> None:
    """The optional argument that the page says is not supported: it scales the weight whenever it is read, and so does the file."""
    layer = nn.Embedding(5, 4, max_norm=1.0)
    before = layer.weight.detach().clone()
    with pytest.warns(onnxport.errors.MutationWarning, match="updates parameter 'weight'"):
        made = proto(layer, (L,))
    assert torch.equal(layer.weight, before)
    np.testing.assert_allclose(run(made, L)[0], layer(L).detach().numpy(), rtol=1e-5)
    check(lambda i, w: F.embedding(i, w.clone(), max_norm=1.0), (L, torch.randn(5, 4)))


def test_feature_dropout_in_training() -> None:
    """"FeatureDropout (training mode not supported)": whole channels are dropped, the others scaled."""
    x = torch.ones(4, 32, 3, 3)
    made = proto(nn.Dropout2d(0.5), (x,), training=onnxport.TrainingMode.TRAINING)
    found = run(made, x)[0]
    assert {float(v) for v in np.unique(found)} == {0.0, 2.0}
    assert (found.min((2, 3)) == found.max((2, 3))).all()


# ---------------------------------------------------------------- models


class SuperResolution(nn.Module):
    """The network of the tutorial that the page links to."""

    def __init__(self, upscale: int = 3):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1, self.conv2 = nn.Conv2d(1, 64, 5, padding=2), nn.Conv2d(64, 64, 3, padding=1)
        self.conv3, self.conv4 = nn.Conv2d(64, 32, 3, padding=1), nn.Conv2d(32, upscale ** 2, 3, padding=1)
        self.pixel_shuffle = nn.PixelShuffle(upscale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.conv2(self.relu(self.conv1(x))))
        return self.pixel_shuffle(self.conv4(self.relu(self.conv3(x))))


def dcgan() -> nn.Module:
    """The generator of the DCGAN example, narrower."""
    layers: list[nn.Module] = []
    for before, after, stride, padding in ((20, 32, 1, 0), (32, 16, 2, 1), (16, 8, 2, 1)):
        layers += [nn.ConvTranspose2d(before, after, 4, stride, padding, bias=False), nn.BatchNorm2d(after), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh())


class LanguageModel(nn.Module):
    """The model of the word_language_model example."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.rnn, self.decoder = nn.Embedding(50, 16), nn.LSTM(16, 16, 2, dropout=0.2), nn.Linear(16, 50)
        self.decoder.weight = self.encoder.weight

    def forward(self, words: torch.Tensor, hidden: tuple[torch.Tensor, torch.Tensor]) -> Any:
        output, hidden = self.rnn(self.encoder(words), hidden)
        return self.decoder(output).log_softmax(-1), hidden


IMAGE = torch.randn(1, 3, 64, 64)
MODELS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "DCGAN": lambda: (dcgan(), (torch.randn(2, 20, 1, 1),)),
    "DenseNet": lambda: (torchvision.models.DenseNet(8, (2, 2), 16, num_classes=10), (IMAGE,)),
    "Inception": lambda: (torchvision.models.inception_v3(weights=None, num_classes=10, init_weights=False), (torch.randn(1, 3, 96, 96),)),
    "ResNet": lambda: (torchvision.models.resnet18(num_classes=10), (IMAGE,)),
    "SuperResolution": lambda: (SuperResolution(), (torch.randn(1, 1, 16, 16),)),
    "VGG": lambda: (torchvision.models.vgg11_bn(weights=None, num_classes=10, init_weights=False), (IMAGE,)),
    "word_language_model": lambda: (LanguageModel(), (torch.randint(0, 50, (7, 2)), (torch.zeros(2, 2, 16), torch.zeros(2, 2, 16)))),
}


@pytest.mark.parametrize("name", MODELS)
def test_model(name: str) -> None:
    """Each model that the page names; AlexNet is its example."""
    model, args = MODELS[name]()
    program = onnxport.export(model.eval(), args, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert program.verify(seeds=()).passed
