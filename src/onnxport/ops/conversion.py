"""Conversions between dtypes, and what changes nothing but memory."""

from __future__ import annotations

from typing import Any

import torch

from onnxport.ops.registry import aten
from onnxport.ops.support import cast
from onnxport.target.builder import Builder
from onnxport.target.dtypes import from_torch
from onnxport.target.value import Value


@aten("to", "_to_copy")
def to(g: Builder, self: Value, dtype: torch.dtype | int | None = None, other: Value | None = None) -> Value:
    """to(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor

    All overloads: a dtype, that of `other`, or only a device, which says nothing here. ONNX Cast.
    """
    if other is not None:
        return type_as(g, self, other)
    return self if dtype is None else converted(g, self, dtype)


@aten
def type_as(g: Builder, self: Value, other: Value) -> Value:
    """type_as(Tensor self, Tensor other) -> Tensor. ONNX Cast."""
    assert other.dtype is not None
    return cast(g, self, other.dtype)


def converted(g: Builder, x: Value, dtype: Any) -> Value:
    """`x` as a torch dtype."""
    return cast(g, x, from_torch(dtype))


@aten("_cast_Float")
def _cast_Float(g: Builder, self: Value) -> Value:
    """_cast_Float(Tensor self, bool non_blocking=False) -> Tensor. ONNX Cast."""
    return converted(g, self, torch.float32)


@aten("contiguous", "clone", "detach", "detach_copy", "alias", "alias_copy", "lift", "lift_fresh", "lift_fresh_copy", "cpu", "cuda",
      "resolve_conj", "resolve_neg", "pin_memory", "real", "conj", "conj_physical", "_conj")
def contiguous(g: Builder, self: Value) -> Value:
    """contiguous(Tensor self, *, MemoryFormat memory_format=contiguous_format) -> Tensor

    What moves memory only, and conjugates of real numbers.
    """
    return self
