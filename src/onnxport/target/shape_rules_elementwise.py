"""Shapes of operators that work element by element, or keep the shape of their first input.

Source: the operator pages of ONNX (opset 28) and its page on multidirectional broadcasting.
"""

from __future__ import annotations

from onnxport.target.shape_helpers import (
    Attrs,
    Inputs,
    Known,
    Rule,
    broadcast,
    broadcast_all,
    dtype_attribute,
    maybe,
    need,
)
from onnxport.target.value import DataType

SAME = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Clip", "Cos", "Cosh", "CumProd", "CumSum",
    "Elu", "Erf", "Exp", "Floor", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "InstanceNormalization",
    "LRN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "Neg", "Not", "PRelu",
    "RMSNormalization", "Reciprocal", "Relu", "ReverseSequence", "RotaryEmbedding", "Round", "ScatterElements", "ScatterND", "Selu",
    "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "SwiGLU", "Swish", "Tan", "Tanh",
    "TensorScatter", "ThresholdedRelu", "Trilu",
]
BROADCAST = ["Add", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Mod", "Mul", "Sub"]
COMPARE = ["And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor"]
VARIADIC = ["Max", "Mean", "Min", "Sum"]


def same(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype and shape of the first input."""
    x = need(inputs, 0)
    return [(x.dtype, x.shape)]


def pairwise(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of the first input; the two shapes broadcast."""
    a, b = need(inputs, 0), need(inputs, 1)
    return [(a.dtype or b.dtype, broadcast(a.shape, b.shape))]


def power(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of the base, whatever the exponent's; the two shapes broadcast."""
    base = need(inputs, 0)
    return [(base.dtype, broadcast(base.shape, need(inputs, 1).shape))]


def comparison(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """BOOL; the two shapes broadcast."""
    return [(DataType.BOOL, broadcast(need(inputs, 0).shape, need(inputs, 1).shape))]


def variadic(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of the first input; all shapes broadcast."""
    return [(need(inputs, 0).dtype, broadcast_all([v.shape for v in inputs if v is not None]))]


def where(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of the second and third input; all three shapes broadcast."""
    condition, a, b = need(inputs, 0), need(inputs, 1), need(inputs, 2)
    return [(a.dtype or b.dtype, broadcast(broadcast(a.shape, b.shape), condition.shape))]


def test(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """BOOL for each element of the first input."""
    return [(DataType.BOOL, need(inputs, 0).shape)]


def cast(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The dtype in attribute `to`."""
    return [(dtype_attribute(attrs, "to", None), need(inputs, 0).shape)]


def cast_like(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of the second input."""
    return [(need(inputs, 1).dtype, need(inputs, 0).shape)]


def like(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Shape of the first input; dtype of attribute `dtype`, or else that of the first input."""
    x = need(inputs, 0)
    return [(dtype_attribute(attrs, "dtype", x.dtype), x.shape)]


def dropout(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The data, and a BOOL mask of the same shape."""
    x = need(inputs, 0)
    return [(x.dtype, x.shape), (DataType.BOOL, x.shape)]


def quantize(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of the zero point, else of attribute `output_dtype`, else UINT8."""
    zero = maybe(inputs, 2)
    if zero is not None:
        return [(zero.dtype, need(inputs, 0).shape)]
    number = attrs.get("output_dtype") or DataType.UINT8
    return [(DataType(int(number)), need(inputs, 0).shape)]


def dequantize(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of attribute `output_dtype`, else of the scale."""
    number = attrs.get("output_dtype")
    return [(DataType(int(number)) if number else need(inputs, 1).dtype, need(inputs, 0).shape)]


def quantize_dynamically(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """UINT8 data, its FLOAT scale and its UINT8 zero point."""
    return [(DataType.UINT8, need(inputs, 0).shape), (DataType.FLOAT, ()), (DataType.UINT8, ())]


RULES: dict[str, Rule] = {
    **dict.fromkeys(SAME, same),
    **dict.fromkeys(BROADCAST, pairwise),
    **dict.fromkeys(COMPARE, comparison),
    **dict.fromkeys(VARIADIC, variadic),
    "Bernoulli": like,
    "BitCast": cast,
    "Cast": cast,
    "CastLike": cast_like,
    "DequantizeLinear": dequantize,
    "Dropout": dropout,
    "DynamicQuantizeLinear": quantize_dynamically,
    "EyeLike": like,
    "IsInf": test,
    "IsNaN": test,
    "Pow": power,
    "QuantizeLinear": quantize,
    "RandomNormalLike": like,
    "RandomUniformLike": like,
    "Where": where,
}
