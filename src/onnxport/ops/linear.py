"""Matrix products."""

from __future__ import annotations

from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, promoted, rank_of
from onnxport.target.builder import Builder
from onnxport.target.value import Value


@aten
def linear(g: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor

    input (*, in), weight (out, in) or (in,), bias (out,) -> (*, out). ONNX Gemm for two dims, else MatMul and Add.
    """
    if rank_of(weight) == 2 and rank_of(input) == 2 and bias is not None:
        return g.op("Gemm", input, weight, bias, transB=1)  # type: ignore[no-any-return]
    if rank_of(weight) == 2:
        weight = g.op("Transpose", weight, perm=[1, 0])
    result = g.op("MatMul", input, weight)
    return result if bias is None else g.op("Add", result, bias)  # type: ignore[no-any-return]


@aten("matmul", "mm", "bmm", "mv", "dot")
def matmul(g: Builder, self: Value, other: Value | None = None, mat2: Value | None = None, vec: Value | None = None, tensor: Value | None = None) -> Value:
    """matmul(Tensor self, Tensor other) -> Tensor; mm and bmm (mat2), mv (vec), dot (tensor). ONNX MatMul."""
    right = next(v for v in (other, mat2, vec, tensor) if v is not None)
    return g.op("MatMul", self, right)  # type: ignore[no-any-return]


@aten
def addmm(g: Builder, self: Value, mat1: Value, mat2: Value, beta: Number = 1, alpha: Number = 1) -> Value:
    """addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

    beta * self + alpha * mat1 @ mat2. ONNX Gemm.
    """
    return g.op("Gemm", mat1, mat2, self, alpha=float(alpha), beta=float(beta))  # type: ignore[no-any-return]


__all__ = ["cast", "promoted"]
