"""Each example is read twice: by PyTorch's names under `install()`, and by onnxport's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import onnxport
from tests.documentation.running import Page


@pytest.fixture(params=["torch.onnx", "onnxport"])
def names(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def old(names: str, tmp_path: Path) -> Page:
    """The edition of PyTorch 1.3."""
    return Page("v1_3", names, tmp_path)


@pytest.fixture
def new(names: str, tmp_path: Path) -> Page:
    """The edition of PyTorch 1.13."""
    return Page("v1_13", names, tmp_path)


@pytest.fixture
def foo_forward() -> Iterator[None]:
    """The operator `custom_ops::foo_forward`, which the page takes from another tutorial."""
    library = torch.library.Library("custom_ops", "DEF")
    library.define("foo_forward(Tensor input1, Tensor input2, float attr1, int attr2) -> Tensor")
    library.impl("foo_forward", lambda a, b, x, y: a * x + b * y, "CompositeExplicitAutograd")
    try:
        yield
    finally:
        onnxport.unregister_custom_op_symbolic("custom_ops::foo_forward", 9)
        library._destroy()
