"""Real models with random weights, their example inputs, and inputs of other sizes.

Every factory gives a `Model`: the module, and three sets of inputs (the example and two of other sizes) with the axes
that are dynamic between them. Batch norms get random statistics, so that a wrong fold cannot hide behind 0 and 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

nn = torch.nn
Inputs = tuple[torch.Tensor, ...]


@dataclass
class Model:
    """One real model.

    inputs: the example, then others. names: of its inputs. batch: the axes that hold the batch; free: those and the others
    that the model takes in any size (sequence, height and width). sized: inputs for `free` (the example first).
    """

    module: nn.Module
    names: Sequence[str]
    inputs: Sequence[Inputs]
    batch: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    free: Mapping[str, Mapping[int, str]] | None = None
    sized: Sequence[Inputs] = ()


MODELS: dict[str, Callable[[], Model]] = {}


def model(name: str) -> Callable[[Callable[[], Model]], Callable[[], Model]]:
    """Registers a factory under a name."""

    def register(factory: Callable[[], Model]) -> Callable[[], Model]:
        MODELS[name] = factory
        return factory

    return register


def shaken(net: nn.Module) -> nn.Module:
    """Random batch norm statistics, and no matrices of zeros."""
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() > 1 and not parameter.any():
                parameter.normal_(0, 0.02)
        for module in net.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
    return net.eval()


class Call(nn.Module):
    """`net` behind a function that picks its result."""

    def __init__(self, net: nn.Module, call: Callable[..., Any]):
        super().__init__()
        self.net, self.call = net, call

    def forward(self, *args: torch.Tensor) -> Any:
        return self.call(self.net, *args)


def image(net: nn.Module, size: int, *, channels: int = 3, other: Sequence[tuple[int, int]] = ()) -> Model:
    """A model of one image batch; `other`: heights and widths that it takes besides."""
    make = lambda n, h, w: (torch.rand(n, channels, h, w) * 2 - 1,)
    batch = {"image": {0: "batch"}}
    free = {"image": {0: "batch", 2: "height", 3: "width"}} if other else None
    return Model(shaken(net), ["image"], [make(1, size, size), make(3, size, size), make(2, size, size)], batch, free,
                 [make(1, size, size), *(make(2, h, w) for h, w in other)] if other else ())


def tokens(net: nn.Module, vocabulary: int, *, mask: bool = True, length: int = 16) -> Model:
    """A language model of token ids and, where it takes one, an attention mask with padding."""
    free = {name: {0: "batch", 1: "sequence"} for name in ("input_ids", "attention_mask")[: 1 + mask]}

    def make(n: int, t: int) -> Inputs:
        ids = torch.randint(0, vocabulary, (n, t))
        padding = torch.ones(n, t, dtype=torch.long)
        padding[:, t - t // 4:] = 0
        return (ids, padding) if mask else (ids,)

    batch = {name: {0: "batch"} for name in free}
    return Model(net.eval(), list(free), [make(2, length), make(1, length), make(3, length)], batch, free,
                 [make(2, length), make(1, 7), make(3, 29)])


def _vision(name: str, size: int = 64, other: Sequence[tuple[int, int]] = (), **options: Any) -> None:
    @model(name)
    def build() -> Model:
        import torchvision

        return image(getattr(torchvision.models, name)(weights=None, **options), size, other=other)


for _name, _size, _other in (("alexnet", 96, [(128, 96), (96, 160)]), ("vgg11_bn", 64, [(64, 96), (96, 64)]), ("resnet18", 64, [(97, 64), (64, 130)]),
                             ("resnet50", 64, [(97, 64), (64, 130)]), ("densenet121", 64, [(96, 64), (70, 100)]), ("mobilenet_v3_large", 64, [(96, 64), (65, 97)]),
                             ("efficientnet_b0", 64, [(96, 64), (65, 97)]), ("convnext_tiny", 64, [(96, 64), (65, 97)]), ("swin_t", 64, [(96, 64), (60, 84)])):
    _vision(_name, _size, _other)
_vision("inception_v3", 128, [(160, 128), (129, 171)], init_weights=False, aux_logits=True)
_vision("squeezenet1_0", 64, [(96, 64), (65, 97)])
_vision("shufflenet_v2_x1_0", 64, [(96, 64), (65, 97)])
_vision("mnasnet0_5", 64, [(96, 64), (65, 97)])
_vision("googlenet", 64, [(96, 64), (65, 97)], init_weights=False, aux_logits=False)
_vision("regnet_y_400mf", 64, [(96, 64), (65, 97)])


@model("vit_b_16")
def _vit() -> Model:
    import torchvision

    return image(torchvision.models.vit_b_16(weights=None, image_size=64), 64)


@model("vit_small")
def _vit_small() -> Model:
    from torchvision.models import VisionTransformer

    return image(VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64, num_classes=10), 32)


@model("deeplabv3_resnet50")
def _deeplab() -> Model:
    import torchvision

    net = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21)
    return image(Call(net, lambda m, x: m(x)["out"]), 64, other=[(96, 64), (65, 97)])


@model("raft_small")
def _raft() -> Model:
    import torchvision

    net = Call(torchvision.models.optical_flow.raft_small(weights=None), lambda m, a, b: m(a, b, num_flow_updates=2)[-1])
    make = lambda n, h, w: (torch.rand(n, 3, h, w) * 2 - 1, torch.rand(n, 3, h, w) * 2 - 1)
    axes = {"first": {0: "batch"}, "next": {0: "batch"}}
    free = {name: {0: "batch", 2: "height", 3: "width"} for name in axes}
    return Model(shaken(net), list(axes), [make(1, 128, 128), make(2, 128, 128), make(3, 128, 128)], axes, free,
                 [make(1, 128, 128), make(2, 136, 128), make(1, 128, 160)])


@model("dcgan_generator")
def _dcgan() -> Model:
    widths = (64, 32, 16, 8)
    layers: list[nn.Module] = [nn.ConvTranspose2d(20, widths[0], 4, 1, 0, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(True)]
    for a, b in itertools.pairwise(widths):
        layers += [nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True)]
    layers += [nn.ConvTranspose2d(widths[-1], 3, 4, 2, 1, bias=False), nn.Tanh()]
    make = lambda n: (torch.randn(n, 20, 1, 1),)
    return Model(shaken(nn.Sequential(*layers)), ["z"], [make(4), make(1), make(7)], {"z": {0: "batch"}})


@model("dcgan_discriminator")
def _dcgan_d() -> Model:
    layers: list[nn.Module] = []
    for a, b in ((3, 8), (8, 16), (16, 32)):
        layers += [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, inplace=True)]
    return image(nn.Sequential(*layers, nn.Conv2d(32, 1, 4, 1, 0), nn.Sigmoid()), 32)


@model("super_resolution")
def _super_resolution() -> Model:
    net = nn.Sequential(nn.Conv2d(1, 64, 5, 1, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 32, 3, 1, 1), nn.ReLU(),
                        nn.Conv2d(32, 9, 3, 1, 1), nn.PixelShuffle(3))
    return image(net, 32, channels=1, other=[(17, 40), (40, 23)])


class WordLanguageModel(nn.Module):
    """The recurrent word language model of PyTorch's examples."""

    def __init__(self, kind: str, vocabulary: int = 50, width: int = 16, layers: int = 2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.drop = nn.Dropout(0.2)
        if kind in ("LSTM", "GRU"):
            self.rnn: nn.Module = getattr(nn, kind)(width, width, layers, dropout=0.2)
        else:
            self.rnn = nn.RNN(width, width, layers, nonlinearity="tanh" if kind == "RNN_TANH" else "relu", dropout=0.2)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, x: torch.Tensor, *state: torch.Tensor) -> Any:
        y, after = self.rnn(self.drop(self.embed(x)), state if len(state) > 1 else state[0])
        decoded = self.out(self.drop(y)).view(-1, self.out.out_features)
        return (torch.log_softmax(decoded, dim=1), *(after if isinstance(after, tuple) else (after,)))


class WordTransformer(nn.Module):
    """The transformer word language model of PyTorch's examples."""

    def __init__(self, vocabulary: int = 50, width: int = 16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        position, frequency = torch.arange(100.0)[:, None], torch.exp(torch.arange(0, width, 2) * -0.5)
        table = torch.zeros(100, 1, width)
        table[:, 0, 0::2], table[:, 0, 1::2] = torch.sin(position * frequency), torch.cos(position * frequency)
        self.register_buffer("table", table)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 2, 32), 2)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.log(torch.tril(torch.ones(len(x) if not torch.jit.is_tracing() else x.shape[0], x.shape[0])))
        y = self.embed(x) * 4.0
        y = self.encoder(y + self.table[: y.size(0)], mask=mask)
        return torch.log_softmax(self.out(y), dim=-1)


def _word(kind: str) -> None:
    @model(f"word_language_model_{kind.lower()}")
    def build() -> Model:
        states = ["h", "c"] if kind == "LSTM" else ["h"]

        def make(t: int, n: int) -> Inputs:
            return (torch.randint(0, 50, (t, n)), *(torch.randn(2, n, 16) for _ in states))

        batch: dict[str, dict[int, str]] = {"x": {1: "batch"}, **{s: {1: "batch"} for s in states}}
        free: dict[str, dict[int, str]] = {**batch, "x": {0: "time", 1: "batch"}}
        return Model(WordLanguageModel(kind).eval(), ["x", *states], [make(7, 4), make(7, 1), make(7, 3)], batch, free, [make(7, 4), make(11, 1), make(3, 5)])


for _kind in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU"):
    _word(_kind)


@model("word_language_model_transformer")
def _word_transformer() -> Model:
    make = lambda t, n: (torch.randint(0, 50, (t, n)),)
    return Model(WordTransformer().eval(), ["x"], [make(7, 4), make(7, 1), make(7, 3)], {"x": {1: "batch"}}, {"x": {0: "time", 1: "batch"}},
                 [make(7, 4), make(11, 1), make(3, 5)])


@model("lstm_bidirectional")
def _lstm() -> Model:
    make = lambda t, n: (torch.randn(t, n, 8),)
    return Model(nn.LSTM(8, 12, 4, bidirectional=True).eval(), ["x"], [make(7, 2), make(7, 1), make(7, 5)], {"x": {1: "batch"}}, {"x": {0: "time", 1: "batch"}},
                 [make(7, 2), make(11, 1), make(3, 5)])


def _attention(kind: str) -> str:
    return kind


for _impl in ("eager", "sdpa"):

    @model(f"bert_{_impl}")
    def _bert(implementation: str = _impl) -> Model:
        from transformers import BertConfig, BertModel

        config = BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, attn_implementation=implementation)
        return tokens(Call(BertModel(config), lambda m, i, a: tuple(m(input_ids=i, attention_mask=a)[:2])), 99)

    @model(f"gpt2_{_impl}")
    def _gpt2(implementation: str = _impl) -> Model:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, attn_implementation=implementation, use_cache=False)
        return tokens(Call(GPT2LMHeadModel(config), lambda m, i, a: m(input_ids=i, attention_mask=a, use_cache=False).logits), 99)

    @model(f"llama_{_impl}")
    def _llama(implementation: str = _impl) -> Model:
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                             attn_implementation=implementation, use_cache=False)
        return tokens(Call(LlamaForCausalLM(config), lambda m, i, a: m(input_ids=i, attention_mask=a, use_cache=False).logits), 99)

    @model(f"t5_encoder_{_impl}")
    def _t5(implementation: str = _impl) -> Model:
        from transformers import T5Config, T5EncoderModel

        config = T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, attn_implementation=implementation, use_cache=False)
        return tokens(Call(T5EncoderModel(config), lambda m, i, a: m(input_ids=i, attention_mask=a).last_hidden_state), 99)

    @model(f"whisper_encoder_{_impl}")
    def _whisper(implementation: str = _impl) -> Model:
        from transformers import WhisperConfig
        from transformers.models.whisper.modeling_whisper import WhisperEncoder

        config = WhisperConfig(d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, max_source_positions=50, num_mel_bins=20,
                               attn_implementation=implementation)
        make = lambda n: (torch.randn(n, 20, 100),)
        return Model(Call(WhisperEncoder(config), lambda m, x: m(x).last_hidden_state).eval(), ["mel"], [make(1), make(3), make(2)], {"mel": {0: "batch"}})


@model("gpt2_no_mask")
def _gpt2_no_mask() -> Model:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, attn_implementation="eager", use_cache=False)
    return tokens(Call(GPT2LMHeadModel(config), lambda m, i: m(input_ids=i, use_cache=False).logits), 99, mask=False)
