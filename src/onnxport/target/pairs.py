"""Complex tensors at the borders of the graph: as one real tensor with a last dim of 2, as `torch.view_as_real` gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from onnxport.target.dtypes import component
from onnxport.target.value import Complex, Constant, DataType, Shape, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

WAY_OUT = ("ONNX Runtime has none, and this operator is not translated for pairs of real ones; write this part of the model with the parts "
           "(torch.view_as_real(z), z.real, z.imag, z.abs())")


def of_constant(g: Builder, constant: Constant, dtype: DataType, shape: Shape) -> Complex:
    """A complex constant; its parts are views of the same memory, where it has any."""
    parts = [g.from_constant(_part(constant, index), component(dtype), shape) for index in (0, 1)]
    return Complex(parts[0], parts[1], constant)


def _part(constant: Constant, index: int) -> Constant:
    name = None if constant.name is None else f"{constant.name}.{'imag' if index else 'real'}"
    if constant.is_lazy:
        return Constant(None, compute=lambda: _view(constant.tensor, index), name=name, parameter=constant.parameter)
    return Constant(_view(constant.tensor, index), name=name, parameter=constant.parameter)


def _view(tensor: torch.Tensor, index: int) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj().resolve_neg())[..., index]


def unpacked(g: Builder, x: Value) -> Complex:
    """The complex tensor that a real one with a last dim of 2 stands for. ONNX Gather."""
    assert x.shape is not None
    re, im = (g.op("Gather", x, g.scalar(index), axis=len(x.shape) - 1) for index in (0, 1))
    return Complex(re, im)


def packed(g: Builder, z: Complex) -> Value:
    """The real tensor with a last dim of 2. ONNX Unsqueeze, Concat."""
    assert z.shape is not None
    axis = len(z.shape)
    return g.op("Concat", *[g.op("Unsqueeze", part, g.const([axis])) for part in (z.re, z.im)], axis=axis)
