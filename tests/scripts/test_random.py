"""Random scripts against the interpreter of TorchScript: the same numbers, or a refusal that names the line."""

from __future__ import annotations

import random
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import onnxport
from onnxport.options import newest_opset

from .programs import Writer, programs
from .running import OPSETS, differences, given, session, wanted

CALLS: list[tuple[Any, ...]] = [
    (torch.tensor([1.0, -0.5, 2.0]), 3, True), (torch.tensor([-1.0, 0.5]), 0, False), (torch.tensor([0.5]), 1, True),
    (torch.tensor([-2.0, -0.25, 0.0, 3.0]), -2, False), (torch.tensor([4.0, 1.5, -1.0, 0.5, 2.0]), 6, True)]


def outcome(source: str, opset: int) -> tuple[str, str]:
    """"right", "refused", "nothing" (TorchScript refuses it) or "wrong", and why."""
    try:
        script = torch.jit.CompilationUnit(source).program
    except (RuntimeError, ValueError) as error:
        return "nothing", str(error)
    runs = []
    with torch.jit.optimized_execution(False):
        for call in CALLS:
            try:
                runs.append((call, wanted(script, call)))
            except Exception:
                continue
        if not runs:
            return "nothing", "the interpreter fails on every input"
        try:
            run = session(script, runs[0][0], opset, {"x": {0: "size"}})
        except onnxport.errors.OnnxExporterError as error:
            fault = isinstance(error, (onnxport.errors.ShapeError, onnxport.errors.CheckerError)) or any(word in str(error) for word in FAULTS)
            unnamed = "<string>" not in str(error)
            return "wrong" if fault or unnamed else "refused", str(error)
    for call, want in runs:
        try:
            found = list(differences(given(run, call), want))
        except Exception as error:
            found = [str(error)]
        if found:
            return "wrong", f"{call}: " + "; ".join(found)
    return "right", ""


def check(source: str, opset: int) -> None:
    kind, why = outcome(source, opset)
    assert kind != "wrong", f"opset {opset}: {why}\n{source}"


FAULTS = "cannot be lowered here", "before it is made", "before it is computed", "fault of onnxport"
COMMON: Any = {"deadline": None, "suppress_health_check": list(hypothesis.HealthCheck), "database": None}


@hypothesis.settings(max_examples=100, derandomize=True, **COMMON)
@hypothesis.given(programs(), st.sampled_from(OPSETS))
def test_random_scripts(source: str, opset: int) -> None:
    check(source, opset)


def test_few_random_scripts_are_refused() -> None:
    kinds = []
    for seed in range(60):
        numbers = random.Random(seed)
        kinds.append(outcome(Writer(lambda count, numbers=numbers: numbers.randrange(count)).program(), newest_opset())[0])
    assert "wrong" not in kinds
    assert kinds.count("refused") <= 9


@pytest.mark.slow
@hypothesis.settings(max_examples=2000, **COMMON)
@hypothesis.given(programs(), st.sampled_from(OPSETS))
def test_many_random_scripts(source: str, opset: int) -> None:
    check(source, opset)
