"""Activations."""

from __future__ import annotations

from typing import Any

import torch

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, axis_of, cast, rank_of, shape_of, tensor
from onnxport.target.builder import Builder
from onnxport.target.dtypes import from_torch
from onnxport.target.sizes import reshape
from onnxport.target.value import Value

# ---------------------------------------------------------------------- piecewise linear


@aten
def relu(g: Builder, self: Value) -> Value:
    """relu(Tensor self) -> Tensor. ONNX Relu."""
    return g.op("Relu", self)


@aten
def relu6(g: Builder, self: Value) -> Value:
    """relu6(Tensor self) -> Tensor. ONNX Clip."""
    return hardtanh(g, self, 0, 6)


@aten
def hardtanh(g: Builder, self: Value, min_val: Number = -1, max_val: Number = 1) -> Value:
    """hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor. ONNX Clip."""
    return g.op("Clip", self, tensor(g, min_val, self.dtype), tensor(g, max_val, self.dtype))


@aten
def hardsigmoid(g: Builder, self: Value) -> Value:
    """hardsigmoid(Tensor self) -> Tensor. ONNX HardSigmoid."""
    return g.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@aten
def hardswish(g: Builder, self: Value) -> Value:
    """hardswish(Tensor self) -> Tensor. ONNX HardSwish."""
    return g.op("HardSwish", self)


@aten
def leaky_relu(g: Builder, self: Value, negative_slope: Number = 0.01) -> Value:
    """leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor. ONNX LeakyRelu."""
    return g.op("LeakyRelu", self, alpha=float(negative_slope))


@aten
def prelu(g: Builder, self: Value, weight: Value) -> Value:
    """prelu(Tensor self, Tensor weight) -> Tensor; weight () or (1,) for all, or (C,) along axis 1. ONNX PRelu."""
    rank = rank_of(self)
    if rank_of(weight) == 1:
        along = [-1] + [1] * (rank - 2) if rank > 2 else [-1] if rank else []
        weight = reshape(g, weight, along)
    return g.op("PRelu", self, weight)


@aten
def threshold(g: Builder, self: Value, threshold: Number, value: Number) -> Value:
    """threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor; `value` where self is not above. ONNX LessOrEqual, Where."""
    if threshold == 0 and value == 0:
        return g.op("Relu", self)
    below = g.op("LessOrEqual", self, tensor(g, threshold, self.dtype))
    return g.op("Where", below, tensor(g, value, self.dtype), self)


@aten
def hardshrink(g: Builder, self: Value, lambd: Number = 0.5) -> Value:
    """hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor; 0 within lambd of 0. ONNX Abs, LessOrEqual, Where (Shrink makes 0 of a NaN)."""
    within = g.op("LessOrEqual", g.op("Abs", self), tensor(g, lambd, self.dtype))
    return g.op("Where", within, tensor(g, 0, self.dtype), self)


@aten
def softshrink(g: Builder, self: Value, lambd: Number = 0.5) -> Value:
    """softshrink(Tensor self, Scalar lambd=0.5) -> Tensor; nearer to 0 by lambd. ONNX Clip, Sub."""
    return g.op("Sub", self, hardtanh(g, self, -lambd, lambd))


# ---------------------------------------------------------------------- exponential


@aten
def elu(g: Builder, self: Value, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Value:
    """elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor. ONNX Elu."""
    if input_scale == 1:
        result = g.op("Elu", self, alpha=float(alpha))
    else:
        curve = g.op("Elu", g.op("Mul", self, tensor(g, input_scale, self.dtype)), alpha=float(alpha))
        result = g.op("Where", g.op("Greater", self, tensor(g, 0, self.dtype)), self, curve)
    return result if scale == 1 else g.op("Mul", result, tensor(g, scale, self.dtype))


@aten
def selu(g: Builder, self: Value) -> Value:
    """selu(Tensor self) -> Tensor. ONNX Selu."""
    return g.op("Selu", self)


@aten
def celu(g: Builder, self: Value, alpha: Number = 1.0) -> Value:
    """celu(Tensor self, Scalar alpha=1.0) -> Tensor. ONNX Celu."""
    return g.op("Celu", self, alpha=float(alpha))


@aten
def gelu(g: Builder, self: Value, approximate: str = "none") -> Value:
    """gelu(Tensor self, *, str approximate='none') -> Tensor; or 'tanh'. ONNX Gelu."""
    return g.op("Gelu", self, approximate=approximate)


@aten("silu", "swish")
def silu(g: Builder, self: Value) -> Value:
    """silu(Tensor self) -> Tensor. ONNX Sigmoid, Mul, which ONNX Runtime fuses."""
    return g.op("Mul", self, g.op("Sigmoid", self))


@aten
def mish(g: Builder, self: Value) -> Value:
    """mish(Tensor self) -> Tensor. ONNX Mish."""
    return g.op("Mish", self)


@aten
def softplus(g: Builder, self: Value, beta: Number = 1, threshold: Number = 20) -> Value:
    """softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor

    The input itself where beta * self is above the threshold. ONNX Softplus.
    """
    x = self if beta == 1 else g.op("Mul", self, tensor(g, beta, self.dtype))
    curve = g.op("Softplus", x)
    if beta != 1:
        curve = g.op("Div", curve, tensor(g, beta, self.dtype))
    if threshold >= 20:  # there the two are equal in float32
        return curve
    return g.op("Where", g.op("Greater", x, tensor(g, threshold, self.dtype)), self, curve)


@aten
def softsign(g: Builder, self: Value) -> Value:
    """softsign(Tensor self) -> Tensor. ONNX Softsign."""
    return g.op("Softsign", self)


@aten
def log_sigmoid(g: Builder, self: Value) -> Value:
    """log_sigmoid(Tensor self) -> Tensor. ONNX Neg, Softplus, Neg: Log of Sigmoid is -infinity from -104 on."""
    return g.op("Neg", g.op("Softplus", g.op("Neg", self)))


@aten
def glu(g: Builder, self: Value, dim: int = -1) -> Value:
    """glu(Tensor self, int dim=-1) -> Tensor; the first half times the sigmoid of the second. ONNX Split, Sigmoid, Mul."""
    axis = axis_of(self, dim)
    size = shape_of(self)[axis]
    sizes = g.const([size // 2, size // 2]) if isinstance(size, int) else g.sizes([size // 2, size - size // 2])
    first, second = g.op("Split", self, sizes, outputs=2, axis=axis)
    return g.op("Mul", first, g.op("Sigmoid", second))


# ---------------------------------------------------------------------- over a dim


@aten("softmax", "special_softmax")
def softmax(g: Builder, self: Value, dim: int, dtype: torch.dtype | None = None, half_to_float: bool = False) -> Value:
    """softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor. ONNX Softmax."""
    return _over(g, "Softmax", self, dim, dtype)


@aten("log_softmax", "special_log_softmax")
def log_softmax(g: Builder, self: Value, dim: int, dtype: torch.dtype | None = None, half_to_float: bool = False) -> Value:
    """log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor. ONNX LogSoftmax."""
    return _over(g, "LogSoftmax", self, dim, dtype)


def _over(g: Builder, op_type: str, x: Value, dim: Any, dtype: torch.dtype | None) -> Value:
    if dtype is not None:
        x = cast(g, x, from_torch(dtype))
    if not isinstance(dim, int):
        raise errors.UnsupportedError("softmax over a named dim")
    if rank_of(x) == 0:
        return reshape(g, g.op(op_type, reshape(g, x, [1]), axis=0), [])
    axis = axis_of(x, dim)
    return g.op(op_type, x, axis=axis if axis < rank_of(x) - 1 else -1)
