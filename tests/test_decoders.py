"""Decoders with a key-value cache: one file for the prompt and for every step, at any batch, length and past."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import onnxport
from onnxport import structure
from onnxport.errors import BakedValueError
from tests.decoders import FAMILIES, LAYERS, SIZE, Decoder, Held, by_hand, dynamic_cache, of_family

HANDMADE = ("nano", "rope", "rope_gqa")
SIZES = [(1, 1, 0), (1, 5, 0), (2, 1, 7), (3, 4, 1), (3, 2, 7), (2, 9, 3), (1, 1, 1)]  # batch, length, past
EXPORTED = ("Mistral", "Gemma2", "rope")  # and those whose tokens are compared below


def made(name: str, attention: str = "sdpa") -> Decoder:
    if name in HANDMADE:
        return by_hand(name)
    pytest.importorskip("transformers")
    return of_family(name, attention)


def hold(decoder: Decoder, example: tuple[int, int, int], **arguments: Any) -> Held:
    held = Held(decoder, decoder.inputs(*example), arguments.pop("axes", decoder.axes()), **arguments)
    for sizes in SIZES:
        held.check(decoder.inputs(*sizes, seed=1))
    return held


@pytest.mark.parametrize("name", [*FAMILIES, *HANDMADE])
def test_a_trace_serves_prompt_and_steps(name: str) -> None:
    hold(made(name), (2, 3, 4))


@pytest.mark.parametrize("name", EXPORTED)
def test_torch_export_serves_prompt_and_steps(name: str) -> None:
    hold(made(name), (2, 3, 4), capture="export")


@pytest.mark.parametrize("opset", [13, 17, 23, 24, 28])
@pytest.mark.parametrize("name", ["Llama", "rope_gqa", "nano"])
def test_at_other_opsets(name: str, opset: int) -> None:
    hold(made(name), (2, 3, 4), opset_version=opset)


@pytest.mark.parametrize("example", [(1, 1, 0), (1, 5, 0), (1, 1, 4)], ids=str)
@pytest.mark.parametrize("total", ["past + sequence", "total"])
@pytest.mark.parametrize(("name", "attention"), [("GPT2", "eager"), ("Llama", "sdpa"), ("rope", "")])
def test_any_example_will_do(name: str, attention: str, total: str, example: tuple[int, int, int]) -> None:
    """An empty past, one token or a batch of one takes ways of its own through transformers, which are not the file's."""
    decoder = made(name, attention)
    hold(decoder, example, axes=decoder.axes(total))


@pytest.mark.parametrize("example", [(1, 1, 0), (1, 5, 0)], ids=str)
def test_any_example_will_do_for_torch_export(example: tuple[int, int, int]) -> None:
    hold(made("Llama"), example, capture="export")


def greedy(step: Any, prompt: torch.Tensor, decoder: Decoder) -> list[list[int]]:
    """64 tokens for each row: the prompt with an empty past, then one token after the other."""
    arguments = decoder.inputs(prompt.shape[0], prompt.shape[1], 0)
    ids, mask = prompt, arguments.get("attention_mask")
    cache, tokens = arguments["past_key_values"], []
    for _ in range(64):
        given = {"input_ids": ids, "past_key_values": cache, **({} if mask is None else {"attention_mask": mask})}
        logits, *flat = (torch.as_tensor(t) for t in step(given))
        ids = logits[:, -1].argmax(-1, keepdim=True)
        tokens.append(ids[:, 0].tolist())
        cache = decoder.cache([(flat[2 * i], flat[2 * i + 1]) for i in range(LAYERS)])
        mask = None if mask is None else torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
    return tokens


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("name", ["GPT2", "Llama", "nano", "rope_gqa"])
def test_64_greedy_tokens(name: str, capture: str) -> None:
    decoder = made(name)
    held = Held(decoder, decoder.inputs(2, 3, 4), decoder.axes(), capture=capture)
    for batch, length in ((1, 6), (3, 4)):
        prompt = decoder.inputs(batch, length, 0, seed=5)["input_ids"]
        wanted = greedy(lambda given: decoder.run(**given), prompt, decoder)
        assert len(np.unique(wanted)) > 4
        assert greedy(held.outputs, prompt, decoder) == wanted


def test_the_names_of_a_cache() -> None:
    """Those that are usual for such files, where the caller gives none."""
    decoder = made("Llama")
    program = Held(decoder, decoder.inputs(2, 3, 4), {**decoder.axes(), "present.1.key": {2: "total"}}).program
    cache = [f"{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
    assert program.input_names == ["input_ids", *(f"past_key_values.{name}" for name in cache), "attention_mask"]
    assert program.output_names == ["logits", *(f"present.{name}" for name in cache)]


# ---------------------------------------------------------------------- encoder and decoder


class CrossDecoder(nn.Module):
    """The decoder of an encoder-decoder model, whose cache holds the encoder's keys too."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, decoder_input_ids: torch.Tensor, encoder_hidden_states: torch.Tensor, past_key_values: Any) -> Any:
        out = self.model(decoder_input_ids=decoder_input_ids, encoder_outputs=(encoder_hidden_states,), past_key_values=past_key_values,
                         use_cache=True)
        return out.logits, out.past_key_values


def cross_model(family: str) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    words = {"vocab_size": 50, "d_model": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    halves = {f"{half}_{what}": number for half in ("encoder", "decoder")
              for what, number in (("layers", LAYERS), ("attention_heads", 4), ("ffn_dim", 48))}
    sizes = {"T5": {"d_kv": SIZE, "d_ff": 48, "num_layers": LAYERS, "num_heads": 4}, "Bart": {**halves, "max_position_embeddings": 64},
             "Whisper": {**halves, "max_source_positions": 50, "max_target_positions": 64, "num_mel_bins": 20}}[family]
    config = getattr(transformers, f"{family}Config")(**words, **sizes)
    return CrossDecoder(getattr(transformers, f"{family}ForConditionalGeneration")(config)).eval()


def cross_inputs(batch: int, length: int, past: int, source: int, seed: int = 0) -> dict[str, Any]:
    from transformers import EncoderDecoderCache

    torch.manual_seed(seed)
    pairs = lambda n: [(torch.randn(batch, 4, n, SIZE), torch.randn(batch, 4, n, SIZE)) for _ in range(LAYERS)]
    cache = EncoderDecoderCache(dynamic_cache(pairs(past)), dynamic_cache(pairs(source)))
    return {"decoder_input_ids": torch.randint(3, 50, (batch, length)), "encoder_hidden_states": torch.randn(batch, source, 32),
            "past_key_values": cache}


@pytest.mark.parametrize(("family", "capture"), [("T5", "trace"), ("T5", "export"), ("Bart", "trace"), ("Whisper", "trace")])
def test_cross_attention_with_cache(family: str, capture: str) -> None:
    decoder = Decoder(cross_model(family), 4, dynamic_cache)
    example = cross_inputs(2, 3, 4, 5)
    paths = [leaf.path for leaf in structure.flatten(example)[0][2:]]
    axes = {path: {0: "batch", 2: "past" if "self" in path else "source"} for path in paths}
    held = Held(decoder, example, {"decoder_input_ids": {0: "batch", 1: "sequence"}, "encoder_hidden_states": {0: "batch", 1: "source"}, **axes},
                capture=capture)
    for sizes in ((1, 1, 0, 3), (2, 1, 7, 5), (3, 4, 1, 2), (1, 5, 0, 6)):
        held.check(cross_inputs(*sizes, seed=1), close=5e-5)


# ---------------------------------------------------------------------- wider examples


class Alone(nn.Module):
    """Another way for a batch of one. same: with the same result."""

    def __init__(self, same: bool):
        super().__init__()
        self.same = same

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 1:
            return x.squeeze(0).unsqueeze(0) + 1 if self.same else x * 3
        return x + 1


def exported(module: nn.Module, *args: torch.Tensor, axes: Any, **more: Any) -> Any:
    with pytest.warns(onnxport.errors.GuardWarning):
        return onnxport.export(module, args, None, dynamic_axes=axes, **more)


def test_a_way_for_one_gives_way_to_the_way_for_many() -> None:
    program = onnxport.export(Alone(True), (torch.randn(1, 3),), None, dynamic_axes={"x": {0: "n"}})
    assert not program.guards  # not even n != 1: the file was held against the model there
    for n in (1, 2, 5):
        x = torch.randn(n, 3)
        np.testing.assert_allclose(program(x)[0], x + 1)


def test_a_way_for_one_that_gives_other_numbers_is_kept() -> None:
    program = exported(Alone(False), torch.randn(1, 3), axes={"x": {0: "n"}})
    assert [g.condition for g in program.guards] == ["n == 1"]
    x = torch.randn(1, 3)
    np.testing.assert_allclose(program(x)[0], x * 3)


def test_a_static_axis_of_one_is_traced_once() -> None:
    calls = []

    class Counted(Alone):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(x.shape)
            return super().forward(x)

    onnxport.export(Counted(False), (torch.randn(1, 3),), None)
    exported(Counted(False), torch.randn(2, 3), axes={"x": {0: "n"}})
    assert len(calls) == 2


def test_a_model_that_refuses_wider_sizes_keeps_its_example() -> None:
    class Strict(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[0] != 1:
                raise ValueError("one at a time")
            return x * 2

    assert [g.condition for g in exported(Strict(), torch.randn(1, 3), axes={"x": {0: "n"}}).guards] == ["n == 1"]


def test_a_branch_on_data_stays_an_error() -> None:
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(BakedValueError):
        onnxport.export(Branch(), (torch.ones(1, 3),), None, dynamic_axes={"x": {0: "n"}})


def test_axes_that_are_computed_from_others() -> None:
    class Both(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, both: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, y]) * both

    axes = {"x": {0: "n"}, "y": {0: "m"}, "both": {0: "n + m"}}
    program = onnxport.export(Both(), (torch.ones(2), torch.ones(3), torch.ones(5)), None, dynamic_axes=axes)
    assert str(program.model.graph.outputs[0].shape[0]).replace(" ", "") in ("n+m", "m+n")
    assert program(torch.ones(4), torch.ones(1), torch.ones(5))[0].shape == (5,)
