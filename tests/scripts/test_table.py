"""Every script of the table at several opsets, with inputs that take every branch and no, one and many turns."""

from __future__ import annotations

import pytest
import torch

import onnxport

from . import branches, data, lists, loops, modules, mutation, sequences, sharing
from .running import OPSETS, compare, scripted, session
from .table import ROWS

assert [branches, data, lists, loops, modules, mutation, sequences, sharing]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", ROWS)
def test_script(name: str, opset: int) -> None:
    torch.manual_seed(0)
    found = ROWS[name]
    script = scripted(found.script)
    if found.refused and opset < found.since:
        with pytest.raises(onnxport.errors.OnnxExporterError, match=found.refused) as caught:
            session(script, found.calls[0], opset, found.axes)
        assert found.file in str(caught.value)
        return
    run = session(script, found.calls[0], opset, found.axes)
    for call in found.calls:
        compare(run, script, call)


def test_size_of_the_table() -> None:
    assert len(ROWS) >= 120
