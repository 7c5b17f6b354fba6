"""Real models, exported and held against PyTorch at the example's and at other sizes.

Some of them at some opsets in each run; `pytest -m slow` (make sweep) takes all of them at all.
"""

from __future__ import annotations

import pytest
import torch

import onnxport
from tests.zoo.check import ALSO_OLD, OPSETS, TOLERANCE, run, variants
from tests.zoo.models import MODELS

pytest.importorskip("torchvision", reason="the zoo's models come from torchvision, timm and transformers")

# What an operator of the model cannot be at an opset: (model, variant, opset) or (model, None, opset) -> the refusal.
REFUSED: dict[tuple[str, str | None, int], str] = {
    **{(name, "free", opset): "NonZero needs opset 9" for name in ("alexnet", "vgg11_bn") for opset in (7, 8)},  # adaptive pooling of any size
    ("swin_t", "free", 9): "Pad with 'pads' that the graph computes needs opset 11",
    **{(name, "free", 9): "Slice with 'ends' that the graph computes needs opset 10"
       for name in ("word_language_model_transformer", "bert_eager", "bert_sdpa")},
}

QUICK = {
    "alexnet": (7, 18), "resnet18": (8, 9, 13, 28), "densenet121": (11,), "mobilenet_v3_large": (9, 18), "efficientnet_b0": (20,), "convnext_tiny": (18,),
    "swin_t": (18,), "inception_v3": (18,), "shufflenet_v2_x1_0": (9, 18), "vit_small": (9, 17, 28), "deeplabv3_resnet50": (18,), "raft_small": (18,),
    "dcgan_generator": (9, 18), "dcgan_discriminator": (7, 28), "super_resolution": (9, 18), "word_language_model_lstm": (7, 9, 13, 18, 28),
    "word_language_model_gru": (9, 18, 28), "word_language_model_rnn_tanh": (9, 18), "word_language_model_rnn_relu": (9, 18),
    "word_language_model_transformer": (13, 18), "lstm_bidirectional": (8, 18), "bert_eager": (11, 18, 28), "bert_sdpa": (13, 20), "gpt2_eager": (11, 18),
    "gpt2_sdpa": (15, 28), "llama_eager": (13, 18), "llama_sdpa": (17, 28), "t5_encoder_eager": (11, 18), "t5_encoder_sdpa": (13, 28),
    "whisper_encoder_eager": (9, 18), "whisper_encoder_sdpa": (13, 28), "gpt2_no_mask": (18,),
}


def refusal(name: str, variant: str, opset: int) -> str | None:
    """The text that an export has to be refused with, if it has to be."""
    return REFUSED.get((name, variant, opset)) or REFUSED.get((name, None, opset))


def hold(name: str, opset: int, capture: str = "auto") -> None:
    """Every variant of a model at one opset."""
    torch.manual_seed(0)
    model = MODELS[name]()
    for variant, (axes, inputs) in variants(model).items():
        expected = refusal(name, variant, opset)
        if expected is not None:
            with pytest.raises(onnxport.errors.UnsupportedError, match=expected):
                run(model, opset, axes, inputs, capture)
            continue
        worst, _ = run(model, opset, axes, inputs, capture)
        assert worst <= TOLERANCE, f"{name} {variant} at opset {opset}: {worst:.1e} of the output's scale"


@pytest.mark.parametrize(("name", "opset"), [pytest.param(name, opset, id=f"{name}-{opset}") for name, opsets in QUICK.items() for opset in opsets])
def test_model(name: str, opset: int) -> None:
    hold(name, opset)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MODELS))
def test_model_at_every_opset(name: str) -> None:
    for opset in [*([7, 8] if name.startswith(ALSO_OLD) else []), *OPSETS]:
        hold(name, opset)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MODELS))
def test_model_through_torch_export(name: str) -> None:
    """`tests/test_capture_export.py` takes four of them in each run."""
    hold(name, 18, "export")
