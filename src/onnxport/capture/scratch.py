"""Graphs of PyTorch's own that nobody runs: symbolic functions write into them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch

_opset = threading.local()


@contextlib.contextmanager
def exporting_opset(opset: int) -> Iterator[None]:
    """Inside, symbolic functions that ask PyTorch's globals or ours are told this opset."""
    from torch.onnx._internal.torchscript_exporter._globals import GLOBALS

    before, inner = current_opset(), GLOBALS._export_onnx_opset_version
    _opset.value = GLOBALS._export_onnx_opset_version = opset
    try:
        yield
    finally:
        _opset.value, GLOBALS._export_onnx_opset_version = before, inner


def current_opset() -> int | None:
    """The opset of the export whose symbolic function is running in this thread."""
    return getattr(_opset, "value", None)


NONE_TYPE = torch._C.NoneType.get()
STRING_TYPE = torch._C.StringType.get()


def scratch_graph() -> Any:
    """An empty graph that nobody runs."""
    return torch._C.Graph()


def is_value(found: Any) -> bool:
    """Whether something is a value of a `torch._C.Graph`."""
    return isinstance(found, torch._C.Value)


def tensor_type(dtype: torch.dtype | None, sizes: list[int | None] | None) -> Any:
    """The type of a tensor as TorchScript knows it."""
    kind: Any = torch._C.TensorType.get()
    if dtype is not None:
        kind = kind.with_dtype(dtype)
    return kind if sizes is None else kind.with_sizes(sizes)


def list_type(element: type | None) -> Any:
    """The type of a list of ints, of floats, or (None) of tensors."""
    inner: Any = torch._C.IntType.get() if element is int else torch._C.FloatType.get() if element is float else torch._C.TensorType.get()
    return torch._C.ListType(inner)
