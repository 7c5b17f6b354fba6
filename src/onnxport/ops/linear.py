"""Matrix products."""

from __future__ import annotations

import numpy as np
import torch

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, promoted, rank_of, shape_of
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.dtypes import from_torch, is_float
from onnxport.target.sizes import unsqueeze
from onnxport.target.value import DataType, Value


@aten
def linear(g: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor

    input (*, in), weight (out, in) or (in,), bias (out,) -> (*, out). ONNX Gemm for two dims, else MatMul and Add.
    """
    if rank_of(weight) == 2 and rank_of(input) == 2 and is_float(input.dtype) and (bias is None or rank_of(bias) <= 2):
        return g.op("Gemm", input, weight, bias, transB=1)
    if rank_of(weight) == 2:
        weight = g.op("Transpose", weight, perm=[1, 0])
    result = product(g, input, weight)
    return result if bias is None else g.op("Add", result, bias)


def product(g: Builder, left: Value, right: Value) -> Value:
    """The matrix product as in numpy. ONNX MatMul."""
    if right.rank == 2 and left.rank and is_dequantised(right):
        made = g.op("Gemm", sizes.reshape(g, left, [-1, shape_of(left)[-1]]), right)
        return made if rank_of(left) == 2 else sizes.reshape(g, made, [*shape_of(left)[:-1], shape_of(right)[1]])
    return g.op("MatMul", left, right)


def is_dequantised(x: Value) -> bool:
    """Whether the file keeps a weight as integers. Of a MatMul with one ONNX Runtime makes MatMulNBits, which quantises the other factor too."""
    maker = x.node
    while maker is not None and maker.op_type in ("Transpose", "Reshape") and maker.inputs[0] is not None:
        maker = maker.inputs[0].node
    return maker is not None and maker.op_type == "DequantizeLinear" and maker.inputs[0] is not None and maker.inputs[0].const is not None


def scaled(g: Builder, x: Value, factor: Number) -> Value:
    """x times a number, in the dtype of x."""
    return x if factor == 1 else g.op("Mul", x, g.const(factor, x.dtype))


@aten("matmul", "linalg_matmul")
def matmul(g: Builder, self: Value, other: Value) -> Value:
    """matmul(Tensor self, Tensor other) -> Tensor. ONNX MatMul."""
    return product(g, self, other)


@aten("mm", "bmm")
def bmm(g: Builder, self: Value, mat2: Value) -> Value:
    """mm(Tensor self, Tensor mat2) -> Tensor; bmm(Tensor self, Tensor mat2) -> Tensor. ONNX MatMul."""
    return product(g, self, mat2)


@aten("_grouped_mm", needs=13)
def grouped_mm(g: Builder, self: Value, mat2: Value, offs: Value | None = None, bias: Value | None = None,
               out_dtype: torch.dtype | None = None) -> Value:
    """_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor

    self (rows, K) in groups that end at `offs` (groups,), mat2 (groups, K, N): each group times its own matrix -> (rows, N), as experts of
    a mixture have it; without offs as bmm. Rows behind the last group, which PyTorch leaves unset, belong to it. ONNX Split, MatMul, Concat.
    """
    if offs is None:
        return _finished(g, product(g, self, mat2), bias, out_dtype)
    groups = shape_of(mat2)[0]
    if rank_of(self) != 2 or rank_of(mat2) != 3 or not isinstance(groups, int):
        raise errors.UnsupportedError("grouped_mm takes groups of rows (rows, K) and their matrices (groups, K, N), as many as the file says")
    ends = g.op("Cast", g.op("Slice", offs, g.const([0]), g.const([groups - 1])), to=DataType.INT64)
    rows = g.sizes([shape_of(self)[0]])
    sizes = g.op("Sub", g.op("Concat", ends, rows, axis=0), g.op("Concat", g.const([0]), ends, axis=0))
    pieces = g.op("Split", self, sizes, axis=0, outputs=groups) if groups > 1 else [self]
    parts = [product(g, piece, g.op("Gather", mat2, g.const(group), axis=0)) for group, piece in enumerate(pieces)]
    return _finished(g, g.op("Concat", *parts, axis=0) if groups > 1 else parts[0], bias, out_dtype)


@aten("transformers::grouped_mm_fallback", needs=13)
def grouped_mm_fallback(g: Builder, input: Value, weight: Value, offs: Value) -> Value:
    """transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor. As `_grouped_mm`."""
    return grouped_mm(g, input, weight, offs)


def _finished(g: Builder, result: Value, bias: Value | None, dtype: torch.dtype | None) -> Value:
    if bias is not None:
        raise errors.UnsupportedError("grouped_mm with a bias, which PyTorch itself refuses")
    return result if dtype is None else g.op("Cast", result, to=from_torch(dtype))


@aten("_int_mm")
def int_mm(g: Builder, self: Value, mat2: Value) -> Value:
    """_int_mm(Tensor self, Tensor mat2) -> Tensor: int8 times int8 in int32. ONNX MatMulInteger."""
    if g.opset < 10:
        return g.op("MatMul", *[g.op("Cast", x, to=DataType.INT32) for x in (self, mat2)])
    return g.op("MatMulInteger", self, mat2)


@aten
def mv(g: Builder, self: Value, vec: Value) -> Value:
    """mv(Tensor self, Tensor vec) -> Tensor. ONNX MatMul."""
    return product(g, self, vec)


@aten
def dot(g: Builder, self: Value, tensor: Value) -> Value:
    """dot(Tensor self, Tensor tensor) -> Tensor. ONNX MatMul."""
    return product(g, self, tensor)


@aten
def vdot(g: Builder, self: Value, other: Value) -> Value:
    """vdot(Tensor self, Tensor other) -> Tensor. ONNX MatMul (of real numbers)."""
    return product(g, self, other)


def added(g: Builder, start: Value, result: Value, beta: Number, alpha: Number) -> Value:
    """beta * start + alpha * result; a start times 0 is not read, even where it is NaN."""
    result = scaled(g, result, alpha)
    return result if beta == 0 else g.op("Add", scaled(g, start, beta), result)


def _fits_attribute(x: Value, *numbers: Number) -> bool:
    """Whether the numbers lose nothing as attributes, which are float32."""
    return x.dtype != DataType.DOUBLE or all(float(np.float32(n)) == n for n in numbers)


@aten
def addmm(g: Builder, self: Value, mat1: Value, mat2: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

    beta * self + alpha * mat1 @ mat2. ONNX Gemm.
    """
    if not is_float(mat1.dtype) or not _fits_attribute(mat1, beta, alpha) or beta == 0:
        return added(g, self, product(g, mat1, mat2), beta, alpha)
    return g.op("Gemm", mat1, mat2, self, alpha=float(alpha), beta=float(beta))


@aten
def baddbmm(g: Builder, self: Value, batch1: Value, batch2: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor. ONNX MatMul, Mul, Add."""
    return added(g, self, product(g, batch1, batch2), beta, alpha)


@aten
def addbmm(g: Builder, self: Value, batch1: Value, batch2: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor. ONNX MatMul, ReduceSum, Mul, Add."""
    total = g.op("ReduceSum", product(g, batch1, batch2), g.const([0]), keepdims=0)
    return added(g, self, total, beta, alpha)


@aten
def addmv(g: Builder, self: Value, mat: Value, vec: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor. ONNX MatMul, Mul, Add."""
    return added(g, self, product(g, mat, vec), beta, alpha)


@aten
def addr(g: Builder, self: Value, vec1: Value, vec2: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor. ONNX Mul, Add."""
    start, left, right = promoted(g, self, vec1, vec2)
    return added(g, start, g.op("Mul", unsqueeze(g, left, [1]), right), beta, alpha)


@aten("outer", "ger", "linalg_outer")
def outer(g: Builder, self: Value, vec2: Value) -> Value:
    """outer(Tensor self, Tensor vec2) -> Tensor; ger(Tensor self, Tensor vec2) -> Tensor. ONNX Mul."""
    left, right = promoted(g, self, vec2)
    return g.op("Mul", unsqueeze(g, left, [1]), right)


@aten("chain_matmul", "linalg_multi_dot")
def linalg_multi_dot(g: Builder, tensors: list[Value] | None = None, matrices: list[Value] | None = None) -> Value:
    """linalg_multi_dot(Tensor[] tensors) -> Tensor; chain_matmul(Tensor[] matrices) -> Tensor. ONNX MatMul, from the left."""
    first, *rest = tensors or matrices or []
    for other in rest:
        first = product(g, first, other)
    return first


