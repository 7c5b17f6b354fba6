"""Decoders with a key-value cache: small ones of transformers, and some as people write them by hand."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from torch import nn

import onnxport
from onnxport import structure

WORDS, LAYERS, SIZE = 50, 2, 8  # of the vocabulary; of each model; of a head
onnxruntime.set_default_logger_severity(4)

_COMMON: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "tie_word_embeddings": False,
    "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_SHARED = {**_COMMON, "num_key_value_heads": 2}
_GPT: dict[str, Any] = {"vocab_size": WORDS, "n_embd": 32, "n_layer": LAYERS, "n_head": 4, "n_positions": 128, "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2}

# family -> (heads of the cache, what its configuration is made of)
FAMILIES: dict[str, tuple[int, dict[str, Any]]] = {
    "GPT2": (4, _GPT),
    "GPTJ": (4, {**_GPT, "rotary_dim": 4}),
    "GPTNeoX": (4, _COMMON),
    "Bloom": (4, {**_COMMON, "n_layer": LAYERS, "n_head": 4}),
    "OPT": (4, {**_COMMON, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "Falcon": (1, _COMMON),
    "Llama": (2, _SHARED),
    "Mistral": (2, {**_SHARED, "sliding_window": 6}),
    "Qwen2": (2, _SHARED),
    "Qwen3": (2, {**_SHARED, "head_dim": SIZE}),
    "Phi": (2, _SHARED),
    "Phi3": (2, _SHARED),
    "Gemma": (2, {**_SHARED, "head_dim": SIZE}),
    "Gemma2": (2, {**_SHARED, "head_dim": SIZE, "sliding_window": 6}),
}
_EAGER = {"Bloom", "Gemma2"}  # have no other attention


@dataclass
class Decoder:
    """A model, how many heads its cache has, and what kind of cache it takes: pairs -> cache."""

    module: nn.Module
    heads: int
    cache: Callable[[list[tuple[torch.Tensor, torch.Tensor]]], Any]
    masked: bool = True

    def inputs(self, batch: int, length: int, past: int, seed: int = 0) -> dict[str, Any]:
        """Arguments with a cache of `past` tokens; the second row is padded on the left."""
        torch.manual_seed(seed)
        shape = (batch, self.heads, past, SIZE)
        pairs = [(torch.randn(shape), torch.randn(shape)) for _ in range(LAYERS)]
        made = {"input_ids": torch.randint(3, WORDS, (batch, length)), "past_key_values": self.cache(pairs)}
        if self.masked:
            made["attention_mask"] = torch.ones(batch, past + length, dtype=torch.int64)
            made["attention_mask"][1:2, : min(2, past + length - 1)] = 0
        return made

    def axes(self, total: str = "past + sequence") -> dict[str, dict[int, str]]:
        """All that may vary."""
        names = [leaf.path for leaf in structure.flatten(self.inputs(1, 1, 1))[0]]
        mask = {"attention_mask": {0: "batch", 1: total}} if self.masked else {}
        return {"input_ids": {0: "batch", 1: "sequence"}, **mask,
                **{name: {0: "batch", 2: "past"} for name in names if name.startswith("past_key_values")}}

    def run(self, **arguments: Any) -> list[torch.Tensor]:
        """Logits, and the new cache, flat."""
        with torch.no_grad():
            return [leaf.value for leaf in structure.flatten(self.module(**arguments))[0]]


class Logits(nn.Module):
    """A model of transformers that returns logits and cache, and nothing that is None."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, past_key_values: Any, attention_mask: torch.Tensor) -> dict[str, Any]:
        made = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=past_key_values, use_cache=True)
        return {"logits": made.logits, "past_key_values": made.past_key_values}


def dynamic_cache(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """As transformers keeps it."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for index, (key, value) in enumerate(pairs):
        cache.update(key, value, index)
    return cache


def of_family(family: str, attention: str = "sdpa") -> Decoder:
    """A small random model of transformers."""
    import transformers

    torch.manual_seed(0)
    heads, sizes = FAMILIES[family]
    config = getattr(transformers, f"{family}Config")(**sizes, attn_implementation="eager" if family in _EAGER else attention)
    model = getattr(transformers, "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM")
    return Decoder(Logits(lively(model(config))).eval(), heads, dynamic_cache)


def lively(model: nn.Module) -> nn.Module:
    """With matrices that are large enough for tokens to depend on what stands before them."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.2)
    return model


# ---------------------------------------------------------------------- by hand


class NanoBlock(nn.Module):
    """One block with learned positions, its mask a slice of a triangle."""

    def __init__(self, width: int = 32, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("allowed", torch.tril(torch.ones(128, 128, dtype=torch.bool)), persistent=False)

    def forward(self, x: torch.Tensor, past: Any) -> tuple[torch.Tensor, Any]:
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.first(x)).split(c, dim=2))
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        total = k.size(2)
        mask = self.allowed[total - t:total, :total]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(y)
        return x + self.mlp(self.second(x)), (k, v)


class Nano(nn.Module):
    """A GPT as in many a tutorial: tuples of (key, value)."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 32), nn.Embedding(128, 32)
        self.blocks = nn.ModuleList(NanoBlock() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, WORDS, bias=False)

    def forward(self, input_ids: torch.Tensor, past_key_values: Any) -> tuple[torch.Tensor, Any]:
        past = past_key_values[0][0].shape[2]
        position = torch.arange(past, past + input_ids.shape[1], device=input_ids.device)
        x = self.words(input_ids) + self.places(position)
        present = []
        for block, pair in zip(self.blocks, past_key_values):
            x, made = block(x, pair)
            present.append(made)
        return self.head(self.norm(x)), tuple(present)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding by halves."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class RopeBlock(nn.Module):
    """RMSNorm, rotary positions, heads that share keys, SwiGLU."""

    def __init__(self, shared: bool, width: int = 32):
        super().__init__()
        self.shared = shared
        self.first, self.second = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.q, self.k, self.v, self.o = nn.Linear(width, 32), nn.Linear(width, 16), nn.Linear(width, 16), nn.Linear(32, width)
        self.gate, self.up, self.down = nn.Linear(width, 48), nn.Linear(width, 48), nn.Linear(48, width)

    def forward(self, x: torch.Tensor, past: Any, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, Any]:
        y = self.first(x)
        q, k, v = (layer(y).unflatten(-1, (-1, SIZE)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        many_k, many_v = (k, v) if self.shared else (z.repeat_interleave(2, dim=1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, many_k, many_v, attn_mask=mask, enable_gqa=self.shared)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), [k, v]


class Rope(nn.Module):
    """A Llama by hand: lists of [key, value], positions from the mask, a mask of -inf."""

    def __init__(self, shared: bool):
        super().__init__()
        self.words, self.norm, self.head = nn.Embedding(WORDS, 32), nn.RMSNorm(32, eps=1e-6), nn.Linear(32, WORDS)
        self.blocks = nn.ModuleList(RopeBlock(shared) for _ in range(LAYERS))
        self.register_buffer("frequency", 10000 ** (-torch.arange(0, SIZE, 2) / SIZE), persistent=False)

    def forward(self, input_ids: torch.Tensor, past_key_values: Any, attention_mask: torch.Tensor) -> tuple[torch.Tensor, Any]:
        t, total = input_ids.shape[1], attention_mask.shape[1]
        position = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -t:]
        angle = position[:, None, :, None] * self.frequency
        cos, sin = (torch.cat([f(angle)] * 2, dim=-1) for f in (torch.cos, torch.sin))
        mask = torch.full((t, total), float("-inf")).triu(total - t + 1)
        mask = mask + (1.0 - attention_mask[:, None, None, :].float()) * -1e9
        x, present = self.words(input_ids), []
        for block, pair in zip(self.blocks, past_key_values):
            x, made = block(x, pair, cos, sin, mask)
            present.append(made)
        return self.head(self.norm(x)), present


def by_hand(kind: str) -> Decoder:
    """"nano", "rope" (keys repeated) or "rope_gqa" (`enable_gqa`)."""
    torch.manual_seed(0)
    if kind == "nano":
        return Decoder(lively(Nano()).eval(), 4, tuple, masked=False)
    return Decoder(lively(Rope(kind == "rope_gqa")).eval(), 2, lambda pairs: [list(pair) for pair in pairs])


# ---------------------------------------------------------------------- held against PyTorch


class Held:
    """A decoder and the file that it was exported to."""

    def __init__(self, decoder: Decoder, example: Mapping[str, Any], axes: Mapping[str, Any], **arguments: Any):
        self.decoder = decoder
        stream = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", onnxport.errors.GuardWarning)
            self.program = onnxport.export(decoder.module, (), stream, kwargs=dict(example), dynamic_axes=axes, **arguments)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(stream.getvalue(), options, providers=["CPUExecutionProvider"])

    def outputs(self, arguments: Mapping[str, Any]) -> list[np.ndarray]:
        """What ONNX Runtime gives."""
        feeds = {leaf.path: leaf.value.numpy() for leaf in structure.flatten(dict(arguments))[0]}
        wanted = {i.name for i in self.session.get_inputs()}
        return list(self.session.run(None, {name: value for name, value in feeds.items() if name in wanted}))

    def check(self, arguments: Mapping[str, Any], close: float = 2e-5) -> None:
        """The same numbers, shapes and types as PyTorch."""
        got = self.outputs(arguments)  # first: the model fills its cache
        wanted = self.decoder.run(**arguments)
        assert len(wanted) == len(got)
        for name, a, b in zip(self.program.output_names, got, wanted, strict=True):
            assert (a.shape, a.dtype) == (tuple(b.shape), b.numpy().dtype), name
            assert not a.size or np.abs(a - b.numpy()).max() <= close * max(1.0, float(b.abs().max())), name
