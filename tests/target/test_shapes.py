"""The shape rules against the shapes that ONNX Runtime really gives, for symbolic dims at several sizes."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxport import errors
from onnxport.target import (
    dims,
    shape_helpers,
    shape_rules_control,
    shape_rules_elementwise,
    shape_rules_movement,
    shape_rules_reduction,
    shapes,
)
from onnxport.target.dims import Dim
from onnxport.target.value import DataType, Value
from tests.target.shape_cases import (
    EMPTY,
    I8,
    I32,
    I64,
    SIZES,
    U8,
    B,
    Case,
    F,
    T,
    case,
    const,
    forget_content,
    forget_dims,
    forget_dtype,
    forget_shape,
    full,
    h,
    hidden,
    infer,
    k,
    n,
    run,
    size,
    sizes,
    values,
    w,
    with_numbers,
)

IMAGE = T(n, 6, h, w)


def indices(below: int) -> Any:
    return lambda rng, shape, known: rng.integers(0, below, shape)


# ---------------------------------------------------------------------- the table

SPECIAL = {  # need more than one float tensor
    "BitwiseNot", "Clip", "CumProd", "CumSum", "GroupNormalization", "InstanceNormalization", "LRN", "Not", "PRelu", "RMSNormalization",
    "ReverseSequence", "RotaryEmbedding", "ScatterElements", "ScatterND", "SwiGLU", "Swish", "TensorScatter", "Trilu"}

ELEMENTWISE = [
    *(case(op, T(n, h, 4), opset=22) for op in shape_rules_elementwise.SAME if op not in SPECIAL),
    *(case(op, T(n, h, 4, dtype=t), T(h, 4, dtype=t, fill=full(2))) for op in ("Add", "Div", "Mul", "Pow", "Sub") for t in (F, I64)),
    *(case(op, T(n, 1, 4, dtype=t), T(h, 1, dtype=t)) for op, t in (("Add", F), ("Pow", F))),
    *(case(op, T(n, 1, 4, dtype=I32), T(h, 1, dtype=I32)) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    case("BitShift", T(n, 4, dtype=U8), T(4, dtype=U8), direction="LEFT"),
    case("Mod", T(n, 4, dtype=I64), const([3, 4, 5, 7])),
    case("Mod", T(n, 4), T(), fmod=1),
    case("Pow", T(n, h, dtype=F), T(h, dtype=I64)),
    *(case(op, T(n, h, dtype=B), T(1, dtype=B)) for op in ("And", "Or", "Xor", "Equal")),
    *(case(op, T(n, h), T(n, 1)) for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")),
    *(case(op, T(n, 1), T(h), T(n, h)) for op in ("Max", "Mean", "Min", "Sum")),
    case("Max", T(n, h)),
    case("Where", T(n, 1, dtype=B), T(h), T(1, 1, 1)),
    case("Where", T(h, dtype=B), T(n, 1, dtype=I64), const(3)),
    case("Not", T(n, h, dtype=B)),
    case("BitwiseNot", T(n, h, dtype=I32)),
    case("Clip", T(n, h), const(0.2, F), None),
    case("CumSum", T(n, h), const(1)),
    case("CumProd", T(n, h), const(1), opset=26, reference=True),
    case("Trilu", T(n, h, w), const(-1)),
    case("PRelu", T(n, 6, h), T(6, 1)),
    case("ReverseSequence", T(h, n), T(n, dtype=I64, fill=full(3))),
    case("LRN", IMAGE, size=3),
    case("InstanceNormalization", IMAGE, T(6), T(6)),
    case("GroupNormalization", IMAGE, T(6), T(6), num_groups=3),
    case("RMSNormalization", T(n, h, 8), T(8), opset=23),
    case("RotaryEmbedding", T(n, 2, h, 8), T(n, h, 4), T(n, h, 4), opset=23),
    case("ScatterElements", T(n, h), T(n, 2, dtype=I64), T(n, 2), axis=1),
    case("ScatterND", T(h, 4), const([[1], [3]]), T(2, 4)),
    case("TensorScatter", T(n, h, 4), T(n, 2, 4), opset=24),
    case("Swish", T(n, h), opset=24),
    case("SwiGLU", T(n, h), T(n, h), opset=28, reference=True),
    case("IsNaN", T(n, h)),
    case("IsInf", T(n, h)),
    case("Cast", T(n, h), to=DataType.FLOAT16),
    case("Cast", T(n, h), to=7),
    case("BitCast", T(n, h), to=DataType.INT32, opset=26, reference=True),
    case("CastLike", T(n, h), T(1, dtype=I32)),
    case("Dropout", T(n, h), const(0.3, F), const(True, B), outputs=2),
    case("EyeLike", T(n, h)),
    case("EyeLike", T(n, h), dtype=DataType.INT64),
    case("Bernoulli", T(n, h)),
    case("Bernoulli", T(n, h), dtype=DataType.BOOL),
    case("RandomNormalLike", T(n, h)),
    case("RandomUniformLike", T(n, h, dtype=I64), dtype=DataType.DOUBLE),
    case("QuantizeLinear", T(n, h), const(0.1, F)),
    case("QuantizeLinear", T(n, h), const(0.1, F), const(0, I8)),
    case("QuantizeLinear", T(n, h), const(0.1, F), output_dtype=DataType.INT8),
    case("DequantizeLinear", T(n, h, dtype=U8), const(0.1, F), const(3, U8)),
    case("DynamicQuantizeLinear", T(n, h), outputs=3),
]

FAR = 2**63 - 1
MOVEMENT = [
    case("Reshape", T(n, h, 24), sizes(n, 12, -1)),
    case("Reshape", T(n, h, 24), sizes(0, h, 2, 12)),
    case("Reshape", T(n, h, 24), sizes(0, -1)),
    case("Reshape", T(n, h, 24), const([-1, 4])),
    case("Reshape", T(n, h, 24), sizes(n * h, 24)),
    case("Reshape", T(2, n, h), sizes(0, -1)),
    case("Reshape", T(n, 0, h), const([0, 0, 5]), allowzero=1),
    case("Reshape", T(n, h), hidden(h, n), unknown=2),
    case("Reshape", T(1), const(np.zeros(0))),
    case("Reshape", T(n, h - 3), sizes(h - 3, n)),
    case("Reshape", T(n, 4, h), sizes(4, 0, 0), unknown=0, sizes=[{"n": 4, "h": 3}]),
    *(case("Flatten", T(n, h, 4), axis=a) for a in (-1, 0, 1, 3)),
    case("Flatten", T(n, h, 4)),
    case("Transpose", T(n, h, 4)),
    case("Transpose", T(n, h, 4), perm=[1, 0, 2]),
    case("Squeeze", T(1, n, 1, h), const([0, -2])),
    case("Squeeze", T(1, 3, 1)),
    case("Squeeze", T(1, n + 2, 1)),
    case("Squeeze", T(1, n), rankless=1, sizes=SIZES),
    case("Squeeze", T(1, n, 1), hidden(0, 2), unknown=1),
    case("Unsqueeze", T(n, h), const([0, -1])),
    case("Unsqueeze", T(n, h), const([3, 1])),
    case("Unsqueeze", T(n, h), hidden(0), unknown=3),
    case("DepthToSpace", T(n, 18, h, w), blocksize=3),
    case("SpaceToDepth", T(n, 3, h * 3, w * 3), blocksize=3),
    # Slice: starts, ends, axes, steps
    case("Slice", T(n, h), const([1]), const([5]), const([1])),
    case("Slice", T(n, h), const([1]), const([FAR]), const([1])),
    case("Slice", T(n, h), const([0]), const([10]), const([-1])),
    case("Slice", T(n, h), const([9]), const([12]), const([1])),
    case("Slice", T(n, h), const([-3]), const([FAR]), const([1])),
    case("Slice", T(n, h), const([-9]), const([-2]), const([1])),
    case("Slice", T(n, h), const([-3]), const([-20]), const([1])),
    case("Slice", T(n, h), const([2]), const([-2]), const([1])),
    case("Slice", T(n, h), const([0, 0]), const([FAR, FAR]), None, const([2, 3])),
    case("Slice", T(n, h), const([1, 1]), const([FAR, -1]), const([0, 1]), const([2, 3])),
    case("Slice", T(n, h), const([-1]), const([-(2**63)]), const([1]), const([-1])),
    case("Slice", T(n, h), const([FAR]), const([-(2**63)]), const([1]), const([-2])),
    case("Slice", T(n, h), const([9]), const([1]), const([1]), const([-3])),
    case("Slice", T(n, h), const([-2]), const([-9]), const([1]), const([-2])),
    case("Slice", T(n, h), const([2]), const([-30]), const([1]), const([-1])),
    case("Slice", T(n, h), const([-30]), const([-(2**63)]), const([1]), const([-1])),
    case("Slice", T(n, h), sizes(h // 2), sizes(h), const([1])),
    case("Slice", T(n, h), const([0]), sizes(h // 2), const([1])),
    case("Slice", T(n, h), const([0]), sizes(w), const([1])),
    case("Slice", T(n, h), sizes(w - 1), const([FAR]), const([1]), unknown=1),
    *(case("Slice", T(n, h), sizes(*a), sizes(*b), const([1]), sizes=[{"n": 2, "h": x} for x in (0, 1, 2, 3, 7)])
      for a, b in (((0,), (h - 1,)), ((h - 2,), (h,)), ((h - 2,), (h - 1,)), ((h - 1,), (FAR,)), ((-1,), (h - 2,)))),
    case("Slice", T(n, h), sizes(h - 3), const([FAR]), const([1]), unknown=1, sizes=[{"n": 2, "h": x} for x in (0, 1, 2, 3, 7)]),
    case("Slice", T(n, h), sizes(h - 1), const([-(2**63)]), const([1]), const([-1]), unknown=1),
    case("Slice", T(n, h), sizes(k), const([-1]), const([1])),
    case("Slice", T(n, h), sizes(k * -1), const([FAR]), const([1])),
    case("Slice", T(n, h), hidden(1), const([3]), const([1]), unknown=1),
    case("Slice", T(n, h), const([1]), const([3]), hidden(1), unknown=2),
    case("Slice", T(n, h), const([0]), const([FAR]), const([1]), hidden(2), unknown=1),
    case("Gather", T(n, h), T(w, 3, dtype=I64), axis=1),
    case("Gather", T(n, h), const(0)),
    case("Gather", T(n, h), const([-1]), axis=-1),
    case("GatherElements", T(n, h), T(n, 2, dtype=I64), axis=1),
    case("GatherND", T(4, h, w), T(n, 2, dtype=I64)),
    case("GatherND", T(n, 4, w), T(n, 3, 1, dtype=I64), batch_dims=1),
    case("Compress", T(n, h), T(2, dtype=B), axis=1, unknown=1),
    case("Compress", T(n, h), T(2, dtype=B), unknown=1),
    case("NonZero", T(n, h), unknown=1),
    case("NonZero", T(), unknown=1),
    case("Unique", T(n, h), outputs=4, unknown=3),
    case("Unique", T(n, h), outputs=4, unknown=3, axis=1),
    case("TopK", T(n, h), const([3]), outputs=2),
    case("TopK", T(h, n), sizes(h), outputs=2, axis=0),
    case("TopK", T(n, h), hidden(3), outputs=2, unknown=2),
    case("Concat", T(n, h), T(n, w), axis=1),
    case("Concat", T(n, h), T(n, 3), axis=-1),
    case("Concat", T(k, h), T(3, h), axis=0),
    case("Concat", T(n, h), T(3, w), T(n, 2), axis=1, sizes=[{"n": 3, "h": 2, "w": 5}]),
    case("Split", T(n, h), sizes(2, h - 2), outputs=2, axis=1),
    case("Split", T(h, 3), sizes(4, h - 4), outputs=2),
    case("Split", T(n, h * 2), outputs=2, axis=-1, num_outputs=2),
    case("Split", T(n, h), outputs=3, axis=1, num_outputs=3),
    case("Split", T(n, h), hidden(2, h - 2), outputs=2, axis=1, unknown=2),
    case("Expand", T(n, 1), sizes(n, h)),
    case("Expand", T(n, 1), sizes(w, 1, h)),
    case("Expand", T(h), const([3, 1])),
    case("Expand", T(1), sizes(h - 4)),
    case("Expand", T(1), hidden(h, w), unknown=2),
    case("Expand", T(n, 4), hidden(h, n, 1), unknown=2),
    case("Tile", T(n, h), sizes(2, w)),
    case("Tile", T(n, h), hidden(2, 3), unknown=2),
    case("Pad", T(n, h), const([0, 1, 0, 2])),
    case("Pad", T(n, h), sizes(0, k, 0, -3)),
    case("Pad", T(n, h), const([2, 1]), None, const([-1])),
    case("Pad", T(n, h), const([1, 2]), None, const([1]), mode="reflect"),
    case("Pad", T(n, h), hidden(2, 1), None, const([1]), unknown=1),
    case("CenterCropPad", T(n, h, w), sizes(5, h), axes=[1, 2]),
    case("CenterCropPad", T(n, h), const([4, 9])),
    case("Shape", T(n, h, w)),
    case("Shape", T(n, h, w), start=-2),
    case("Shape", T(n, h, w), start=1, end=-1),
    case("Size", T(n, h, w)),
    case("ConstantOfShape", sizes(n, h, 3)),
    case("ConstantOfShape", hidden(n, 3), unknown=2),
    case("Range", size(0), size(h), size(1)),
    case("Range", size(2), size(h * 2), size(3)),
    case("Range", size(5), size(h), size(2)),
    case("Range", size(h), const(-1), const(-1)),
    case("Range", size(9), size(h), const(-2)),
    case("Range", const(0.5, F), const(0.1, F), const(0.9, F)),
    case("Range", const(0.5, F), const(7.2, F), const(0.9, F)),
    case("Range", const(7, I32), const(2, I32), const(-2, I32)),
    case("Range", hidden(0, scalar=True), size(h), size(1), unknown=1),
    case("OneHot", T(n, h, dtype=I64), size(5), T(2)),
    case("OneHot", T(n, h, dtype=I64), size(w), T(2, dtype=I64), axis=0),
    case("OneHot", T(n, h, dtype=I64), hidden(5, scalar=True), T(2), unknown=1),
    case("RandomNormal", shape=[2, 3]),
    case("RandomUniform", shape=[2, 3], dtype=DataType.DOUBLE),
    case("Multinomial", T(n, h), sample_size=4),
    case("Multinomial", T(n, h)),
    case("Multinomial", T(n, h), sample_size=4, dtype=DataType.INT64),
]

REDUCTION = [
    *(case(op, T(n, h, 4), const([1])) for op in shape_rules_reduction.REDUCE),
    *(case("ReduceSum", T(n, h, 4, dtype=I64), const(a), keepdims=keep) for a in ([0], [-1, 0], [0, 1, 2]) for keep in (0, 1)),
    case("ReduceSum", T(n, h)),
    case("ReduceSum", T(n, h), keepdims=0),
    case("ReduceSum", T(n, h), noop_with_empty_axes=1),
    case("ReduceMax", T(n, h), hidden(1), unknown=2),
    case("ReduceMax", T(n, h), hidden(1), keepdims=0, unknown=1),
    *(case(op, T(n, h, w), axis=-2, keepdims=keep) for op in ("ArgMax", "ArgMin") for keep in (0, 1)),
    case("ArgMax", T(n, h)),
    case("MatMul", T(n, h, 4), T(4, w)),
    case("MatMul", T(n, 1, h, 4), T(6, 4, w)),
    case("MatMul", T(4), T(n, 4, w)),
    case("MatMul", T(n, h, 4), T(4)),
    case("MatMul", T(h), T(h)),
    case("MatMulInteger", T(n, h, 4, dtype=U8), T(4, w, dtype=U8)),
    case("QLinearMatMul", T(h, 4, dtype=U8), const(0.1, F), const(0, U8), T(4, w, dtype=U8), const(0.1, F), const(0, U8),
         const(0.1, F), const(0, U8)),
    *(case("Gemm", T(*((4, h) if a else (h, 4))), T(*((w, 4) if b else (4, w))), T(w), transA=a, transB=b) for a in (0, 1) for b in (0, 1)),
    *(case("Einsum", *inputs, equation=e) for e, inputs in (
        ("bij,bjk->bik", (T(n, h, 4), T(n, 4, w))),
        ("ij, jk", (T(n, 4), T(4, w))),
        ("...ij,...jk->...ik", (T(n, 1, h, 4), T(1, 6, 4, w))),
        ("ba,b", (T(h, n), T(h))),
        ("i,j->ij", (T(n), T(h))),
        ("bii->bi", (T(n, 4, 4),)),
        ("ij->", (T(n, h),)),
        ("...ij,...jk", (T(n, h, 4), T(n, 4, w))),
        ("ij,ij->ij", (T(n, 1), T(1, h))),
        ("ij,ij->ji", (T(1, h), T(n, 1))),
        ("bij,ikj->bk", (T(n, h, 4), T(h, 3, 4))),
    )),
    case("BatchNormalization", IMAGE, T(6), T(6), T(6), T(6)),
    case("BatchNormalization", IMAGE, T(6), T(6), T(6), T(6), outputs=3, training_mode=1),
    case("LayerNormalization", T(n, h, 8), T(8), T(8), outputs=3),
    case("LayerNormalization", T(n, h, 8), T(h, 8), None, outputs=3, axis=1),
    case("NegativeLogLikelihoodLoss", T(n, 5, h), T(n, h, dtype=I64)),
    case("NegativeLogLikelihoodLoss", T(n, 5, h), T(n, h, dtype=I64), reduction="none"),
    case("SoftmaxCrossEntropyLoss", T(n, 5, h), T(n, h, dtype=I64), outputs=2, reduction="none"),
    case("SoftmaxCrossEntropyLoss", T(n, 5), T(n, dtype=I64)),
    case("Det", T(n, h, 4, 4)),
    case("Attention", T(n, 4, h, 8), T(n, 2, w, 8), T(n, 2, w, 6), opset=23),
    case("Attention", T(n, h, 32), T(n, w, 16), T(n, w, 12), opset=23, q_num_heads=4, kv_num_heads=2),
    case("Attention", T(n, 4, h, 8), T(n, 4, w, 8), T(n, 4, w, 6), None, T(n, 4, k, 8), T(n, 4, k, 6), opset=23, outputs=4),
    case("Attention", T(n, h, 32), T(n, w, 16), T(n, w, 12), None, T(n, 2, k, 8), T(n, 2, k, 6), opset=23, outputs=4,
         q_num_heads=4, kv_num_heads=2),
    case("LinearAttention", T(n, h, 32), T(n, h, 16), T(n, h, 12), opset=27, outputs=2, q_num_heads=4, kv_num_heads=2,
         update_rule="linear", reference=True),
    case("LinearAttention", T(n, h, 32), T(n, h, 16), T(n, h, 12), T(n, 2, 8, 6), opset=27, outputs=2, q_num_heads=4, kv_num_heads=2,
         update_rule="linear", reference=True),
]

CONV, TRANSPOSED = T(4, 3, 3, 2), T(4, 5, 3, 2)
SPATIAL = [
    case("Conv", T(n, 3, h, w), CONV),
    case("Conv", T(n, 3, h, w), CONV, strides=[2, 3], pads=[1, 0, 2, 1], dilations=[2, 1]),
    case("Conv", T(n, 3, h, w), CONV, strides=[2, 3], auto_pad="SAME_UPPER"),
    case("Conv", T(n, 3, h, w), CONV, strides=[2, 3], auto_pad="SAME_LOWER"),
    case("Conv", T(n, 3, h, w), CONV, strides=[2, 1], auto_pad="VALID"),
    case("Conv", T(n, 6, h), T(6, 1, 3), T(6), group=6, kernel_shape=[3]),
    case("Conv", T(n, 3, h, w), T(k, 3, k, 1), pads=[2, 0, 2, 0]),
    case("ConvInteger", T(n, 3, h, w, dtype=U8), T(4, 3, 3, 2, dtype=U8), strides=[2, 2]),
    case("QLinearConv", T(n, 3, h, w, dtype=U8), const(0.1, F), const(0, U8), T(4, 3, 3, 2, dtype=U8), const(0.1, F), const(0, U8),
         const(0.1, F), const(0, U8)),
    case("DeformConv", T(n, 3, h, w), T(4, 3, 2, 2), T(n, 8, h - 1, w - 1)),
    case("ConvTranspose", T(n, 4, h, w), TRANSPOSED),
    case("ConvTranspose", T(n, 4, h, w), TRANSPOSED, strides=[2, 3], pads=[1, 0, 2, 1], dilations=[2, 1], output_padding=[1, 0]),
    case("ConvTranspose", T(n, 4, h, w), TRANSPOSED, strides=[2, 3], auto_pad="SAME_UPPER"),
    case("ConvTranspose", T(n, 4, h, w), TRANSPOSED, strides=[2, 3], auto_pad="SAME_LOWER", output_padding=[1, 1]),
    case("ConvTranspose", T(n, 4, h, w), TRANSPOSED, strides=[2, 3], auto_pad="VALID"),
    case("ConvTranspose", T(n, 4, 7, 8), TRANSPOSED, strides=[2, 3], output_shape=[14, 22]),
    case("ConvTranspose", T(n, 4, h), T(4, 3, 3), group=2),
    *(case(op, T(n, 3, h, w), kernel_shape=[3, 2], **attrs) for op in ("MaxPool", "AveragePool", "LpPool") for attrs in (
        {},
        {"strides": [2, 3]},
        {"strides": [2, 3], "pads": [1, 0, 1, 1]},
        {"strides": [2, 3], "ceil_mode": 1},
        {"strides": [2, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        {"strides": [4, 5], "pads": [1, 0, 0, 1], "ceil_mode": 1},
        {"strides": [3, 5], "pads": [2, 1, 2, 1], "ceil_mode": 1},
        {"strides": [2, 3], "dilations": [2, 1], "ceil_mode": 1},
        {"strides": [2, 3], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 3], "auto_pad": "SAME_LOWER", "ceil_mode": 1},
        {"strides": [2, 3], "auto_pad": "VALID"},
        {"strides": [2, 3], "auto_pad": "VALID", "ceil_mode": 1},
    )),
    case("MaxPool", T(n, 3, h, w), kernel_shape=[3, 2], strides=[2, 3], dilations=[2, 1], auto_pad="SAME_LOWER", unknown=1),
    case("MaxPool", T(n, 3, h), kernel_shape=[3], outputs=2, strides=[2]),
    *(case(op, IMAGE) for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")),
    case("MaxUnpool", T(n, 3, h, w), T(n, 3, h, w, dtype=I64), kernel_shape=[2, 2], strides=[2, 2]),
    case("MaxUnpool", T(n, 3, h, w), T(n, 3, h, w, dtype=I64), sizes(n, 3, h * 2 + 1, w * 2), kernel_shape=[2, 2], strides=[2, 2]),
    case("Resize", T(n, 3, h, w), None, None, sizes(n, 3, h * 2, 9)),
    case("Resize", T(n, 3, h, w), None, None, sizes(9, w + 1), axes=[2, 3], mode="linear"),
    case("Resize", T(n, 3, h, w), None, const([1, 1, 2, 0.5], F)),
    case("Resize", T(n, 3, h, w), None, const([2.5, 0.75], F), axes=[-2, 3]),
    case("Resize", T(n, 3, h, w), None, const([1, 1, 1.7, 3], F), unknown=1),
    *(case("Resize", T(n, 3, s, 10), None, const([1, 1, f, 0.7], F)) for s, f in ((9, 2 / 3), (9, 1 / 3), (7, 1.3), (49, 1 / 49))),
    case("Resize", T(n, 3, h, w), None, None, const([20, 30]), axes=[2, 3], keep_aspect_ratio_policy="not_larger", unknown=2),
    case("Resize", T(1, 1, h, w), const([0, 0, 0.2, 0.2, 1, 1, 0.8, 0.8], F), const([1, 1, 2, 2], F),
         coordinate_transformation_mode="tf_crop_and_resize", unknown=4),
    case("Resize", T(n, 3, h, w), None, None, hidden(n, 3, h, 5), unknown=4),
    case("GridSample", T(n, 3, h, w), T(n, 5, k, 2)),
    case("AffineGrid", T(n, 2, 3), sizes(n, 3, h, w)),
    case("AffineGrid", T(n, 3, 4), sizes(n, 3, 4, h, w)),
    case("Col2Im", T(n, 12, (h - 1) * (w - 1)), sizes(h, w), const([2, 2])),
    case("RoiAlign", T(2, 3, h, w), T(n, 4), T(n, dtype=I64), opset=16, output_height=5, output_width=3),
    case("RoiAlign", T(2, 3, h, w), T(n, 4), T(n, dtype=I64), opset=16),
    case("MaxRoiPool", T(2, 3, h, w), T(n, 5, fill=full(0)), pooled_shape=[2, 3]),
    case("NonMaxSuppression", T(1, h, 4), T(1, 1, h), const([3]), unknown=1),
    case("CausalConvWithState", T(n, 3, h), T(3, 1, 4), opset=27, outputs=2, reference=True),
]

SIGNALS = [
    *(case(op, T(h, n, 5), T(d, g * 8, 5), T(d, g * 8, 8), outputs=o, hidden_size=8, direction=m)
      for op, g, o in (("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)) for d, m in ((1, "forward"), (2, "bidirectional"))),
    case("LSTM", T(n, h, 5), T(1, 32, 5), T(1, 32, 8), outputs=3, layout=1, hidden_size=8, reference=True),
    case("DFT", T(n, h, 1), opset=20),
    case("DFT", T(n, h, 2), size(6), opset=20),
    case("DFT", T(n, h, 1), None, const(1), onesided=1, opset=20),
    case("DFT", T(h, n, 1), size(6), const(0), onesided=1, opset=20),
    case("DFT", T(n, h, 2), None, const(-2), inverse=1, opset=20),
    case("DFT", T(n, h, 2), size(9), onesided=1, inverse=1, opset=20),
    case("STFT", T(n, h * 4, 1), size(3), T(8)),
    case("STFT", T(n, h * 4, 1), size(3), None, size(9), onesided=0),
    case("STFT", T(n, h * 4, 1), hidden(3, scalar=True), None, size(9), unknown=1),
    *(case(op, size(h)) for op in ("BlackmanWindow", "HammingWindow", "HannWindow")),
    case("HannWindow", size(9), output_datatype=DataType.DOUBLE),
    case("MelWeightMatrix", size(8), size(64), size(16000), const(0.0, F), const(8000.0, F)),
    case("OptionalHasElement", T(n, h)),
]

EXTRA_SIZES = [
    case("Slice", T(n, h), const([-1]), const([FAR]), const([0]), sizes=[EMPTY, *SIZES]),
    case("Slice", T(n, h), const([-1]), const([-(2**63)]), const([0]), const([-1]), sizes=[EMPTY]),
    case("Concat", T(n, h), T(n, h), axis=0, sizes=[EMPTY]),
    case("Range", size(0), size(n), size(1), sizes=[EMPTY]),
    case("Gather", T(h, n), T(n, dtype=I64), sizes=[EMPTY]),
    case("ReduceSum", T(n, h), const([0]), sizes=[EMPTY]),
    case("MatMul", T(n, h), T(h, w), sizes=[EMPTY]),
    case("Expand", T(n, 1), sizes(n, h), sizes=[EMPTY]),
]
TABLE = [*ELEMENTWISE, *MOVEMENT, *REDUCTION, *SPATIAL, *SIGNALS, *EXTRA_SIZES]


Infers = list[tuple[DataType | None, Any]]


def disagreement(known: Infers, real: list[np.ndarray], numbers: dict[str, int]) -> str:
    """Where what is known is not what the runtime gave; "" if nowhere. What is not known is never wrong."""
    for index, ((dtype, shape), array) in enumerate(zip(known, real, strict=True)):
        if dtype is not None and dtype != DataType.from_numpy(array.dtype):
            return f"output {index}: {dtype} for {array.dtype}"
        if shape is None:
            continue
        made = [None if s is None else dims.evaluate(s, numbers) for s in shape]
        if len(made) != array.ndim or any(m not in (None, r) for m, r in zip(made, array.shape, strict=True)):
            return f"output {index}: {shape} is {made} for {array.shape}"
    return ""


@functools.cache
def real(index: int, at: int) -> list[np.ndarray]:
    return run(TABLE[index], TABLE[index].sizes[at])


def hold(index: int, known: Infers) -> None:
    for at, numbers in enumerate(TABLE[index].sizes):
        assert disagreement(known, real(index, at), numbers) == ""


table = pytest.mark.parametrize("index", range(len(TABLE)), ids=[str(c) for c in TABLE])


@table
def test_is_what_the_runtime_gives(index: int) -> None:
    case = TABLE[index]
    known = infer(case)
    assert len(known) == case.outputs
    assert all(dtype is not None for dtype, _ in known)
    assert sum(shape is None for _, shape in known) == case.rankless
    assert sum(size is None for _, shape in known for size in shape or ()) == case.unknown
    hold(index, known)


@table
def test_static_sizes_come_out_as_numbers(index: int) -> None:
    case = TABLE[index]
    for at, numbers in enumerate(case.sizes):
        known = infer(case, [value and with_numbers(value, numbers) for value in values(case)])
        assert disagreement(known, real(index, at), numbers) == ""
        assert not any(isinstance(size, Dim) for _, shape in known for size in shape or ())
        assert sum(size is None for _, shape in known for size in shape or ()) <= case.unknown


@table
def test_knowing_less_of_an_input_makes_nothing_wrong(index: int) -> None:
    case = TABLE[index]
    for which, spec in enumerate(case.inputs):
        if spec is None:
            continue
        for forget in (forget_shape, forget_content, forget_dtype, forget_dims):
            less = values(case)
            less[which] = forget(spec.value())
            if forget is forget_dims:
                for at, numbers in enumerate(case.sizes):
                    own = {f"f{i}": s for i, s in enumerate(spec.array(numbers).shape)}
                    assert disagreement(infer(case, less), real(index, at), {**numbers, **own}) == ""
            else:
                hold(index, infer(case, less))
    hold(index, infer(case, [v and forget_shape(forget_content(forget_dtype(v))) for v in values(case)]))


def test_every_rule_is_in_the_table() -> None:
    elsewhere = {  # test_shapes_of_blocks.py
        "ConcatFromSequence", "Constant", "Optional", "OptionalGetElement", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
        "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence"}
    assert set(shapes.RULES) - elsewhere == {c.op for c in TABLE}


def test_every_operator_of_onnx_has_a_rule_or_is_known_to_fall_back() -> None:
    current = {s.name for s in onnx.defs.get_all_schemas() if not s.domain and not s.deprecated}
    assert set(shapes.RULES) | set(shape_rules_control.BLOCK_RULES) <= current
    assert current - set(shapes.RULES) - set(shape_rules_control.BLOCK_RULES) <= {
        "ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"}


@pytest.mark.parametrize(("a", "b", "made"), [
    ((n, h), (n, h), (n, h)), ((n, 1), (h,), (n, h)), ((n, h), (5,), (n, 5)), ((n, h), (w,), (n, None)), ((n + 2, 1), (k, h), (n + 2, h)),
    ((0,), (1,), (0,)), ((n,), (0,), (0,)), ((None, 3), (2, 1), (2, 3)), ((None,), (n,), (None,)), ((None,), (n + 2,), (n + 2,)),
    (None, (n,), None), ((), (n,), (n,)),
])
def test_two_dims_that_may_both_be_1_are_not_guessed(a: Any, b: Any, made: Any) -> None:
    assert shape_helpers.broadcast(a, b) == made
    assert shape_helpers.broadcast(b, a) == made


@pytest.mark.parametrize(("op", "inputs", "attrs", "message"), [
    ("Add", (T(n, 3), T(4)), {}, r"Add of .*FLOAT\[n, 3\].*FLOAT\[4\].* 3 and 4 do not broadcast"),
    ("Concat", (T(n), T(n, 2)), {"axis": 0}, "Concat of"),
    ("Transpose", (T(n, h),), {"perm": [0, 2]}, "Transpose of"),
    ("Flatten", (T(n, h), None), {"axis": None}, "Flatten of"),
    ("Add", (T(n),), {}, "input 1 is missing"),
    ("Concat", (T(n), T(n)), {"axis": 1}, "no axis 1 in a tensor of rank 1"),
    ("Softmax", (), {}, "input 0 is missing"),
])
def test_what_cannot_be_is_refused(op: str, inputs: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ShapeError, match=message):
        infer(case(op, *inputs, **attrs))


def test_sizes_that_depend_on_the_data_are_left_to_the_run() -> None:
    assert infer(case("Reshape", T(n, h), sizes(-1, 0))) == [(F, (n, h))]
    assert infer(case("Reshape", T(0, h), const([0, -1]), allowzero=1)) == [(F, (0, None))]
    assert infer(case("Reshape", T(n, h), sizes(n, -1 - h))) == [(F, (n, None))]


def test_operators_without_a_rule_ask_onnx() -> None:
    text, picture = Value(DataType.STRING, (n, h)), Value(U8, (n,))
    assert shapes.infer(None, "StringConcat", (text, text), {}, 1) == [(DataType.STRING, (n, h))]  # type: ignore[arg-type]
    assert shapes.infer(None, "RegexFullMatch", (text,), {"pattern": "a"}, 1) == [(B, (n, h))]  # type: ignore[arg-type]
    assert shapes.infer(None, "ImageDecoder", (picture,), {}, 1) == [(U8, (None, None, None))]  # type: ignore[arg-type]
    assert shapes.infer(None, "StringSplit", (text,), {}, 2) == [(DataType.STRING, (n, h, None)), (I64, (n, h))]  # type: ignore[arg-type]
    assert shapes.infer(None, "StringConcat", (text, Value(DataType.STRING, None)), {}, 1)[0][0] == DataType.STRING  # type: ignore[arg-type]
    assert shapes.infer(None, "NoSuchOperator", (text,), {}, 2) == [(None, None)] * 2  # type: ignore[arg-type]


def random_window(seed: int) -> Case:
    """A convolution or pooling of which kernel, strides, dilations, paddings and rounding are drawn by lot."""
    rng = random.Random(seed)
    op = rng.choice(["AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool"])
    kernel, strides = ([rng.randint(1, 4) for _ in range(2)] for _ in range(2))
    attrs: dict[str, Any] = {"strides": strides, "dilations": [rng.randint(1, 3) for _ in range(2)]}
    attrs["pads"] = [rng.randint(0, kernel[i % 2] - 1) for i in range(4)]
    if op in ("Conv", "ConvTranspose"):
        if op == "ConvTranspose":
            attrs["output_padding"] = [rng.randint(0, s - 1) for s in strides]
        return case(op, T(n, 2, h, w), T(2, 2, *kernel), **attrs)
    return case(op, T(n, 2, h, w), kernel_shape=kernel, ceil_mode=rng.randint(0, 1), **attrs)


@pytest.mark.parametrize("seed", range(60))
def test_windows_by_lot(seed: int) -> None:
    case = random_window(seed)
    known = infer(case)
    for numbers in ({"n": 1, "h": 13 + seed % 5, "w": 17}, {"n": 2, "h": 23, "w": 12 + seed % 7}):
        assert disagreement(known, run(case, numbers), numbers) == ""
    assert all(size is not None for _, shape in known for size in shape)


def random_sizes(seed: int) -> Case:
    """Resize or Range with drawn factors, of which the runtime rounds the results in its own way."""
    rng = random.Random(seed)
    if seed % 2:
        length = rng.randint(1, 400)
        factor = rng.choice([rng.uniform(0.05, 5), rng.randint(1, 50) / rng.randint(1, 50), rng.randint(1, 400) / length])
        return case("Resize", T(1, 1, length, 3), None, const([1, 1, factor, 1], F))
    start, step = round(rng.uniform(-5, 5), 1), rng.choice([0.1, 0.3, -0.7, rng.uniform(0.01, 1)])
    return case("Range", *(const(x, F) for x in (start, start + step * rng.randint(0, 50), step)))


@pytest.mark.parametrize("seed", range(60))
def test_float_factors_by_lot(seed: int) -> None:
    case = random_sizes(seed)
    assert disagreement(infer(case), run(case, {}), {}) == ""


ends = st.integers(-12, 12) | st.sampled_from([-(2**63), 2**63 - 1])


@given(st.integers(0, 9), ends, ends, st.integers(-4, 4).filter(bool), st.booleans(), st.booleans())
def test_slices_are_pythons(length: int, start: int, end: int, step: int, symbolic: bool, relative: bool) -> None:
    size = dims.symbol("h") if symbolic else length
    # Python's slices that go backwards begin before the front and so are empty; ONNX moves the start to the front.
    wanted = len(range(length)[max(start, -length) if step < 0 else start:end:step])
    first = size + (start - length) if relative and abs(start) < 2**62 else start
    made = shape_rules_movement.sliced(size, first, end, step)
    if made is None:  # nobody knows whether `first` counts from the back
        assert (symbolic, relative) == (True, True)
    else:
        assert dims.evaluate(made, {"h": length}) == wanted
