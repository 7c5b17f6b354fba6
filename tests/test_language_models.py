"""Language models of `transformers` at a batch, a sequence and a mask of other sizes; docs/zoo.md has the table of all."""

from __future__ import annotations

import warnings

import pytest

from onnxport import errors
from tests.zoo.check import TOLERANCE, run

pytest.importorskip("transformers")
from tests.zoo.language import FAMILIES, REFUSED, built

TRACED = ("gpt_neox", "phi", "mpt", "bloom", "opt", "stablelm", "cohere2", "diffllama", "mixtral", "deepseek_v3", "mamba2", "lfm2", "pegasus_x", "nllb_moe",
          "deberta_v2", "xlnet", "modernbert", "convbert", "yoso", "esm", "mamba", "longformer")
EXPORTED = ("olmo", "mixtral")


def hold(name: str, capture: str, opset: int = 18) -> None:
    model = built(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in REFUSED:
            with pytest.raises(errors.OnnxExporterError, match="torch.export refuses" if capture == "export" else REFUSED[name]):
                run(model, opset, model.free, model.sized, capture)
            return
        worst, _ = run(model, opset, model.free, model.sized, capture)
    assert worst <= TOLERANCE


@pytest.mark.parametrize("name", TRACED)
def test_traced(name: str) -> None:
    hold(name, "trace")


@pytest.mark.parametrize("name", EXPORTED)
def test_through_torch_export(name: str) -> None:
    hold(name, "export")


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_each_at_the_newest_opset(name: str) -> None:
    hold(name, "trace", 28)
