"""Scaled dot product attention."""

from __future__ import annotations

import math

import torch

from onnxport import errors
from onnxport.ops.reduction import logsumexp
from onnxport.ops.registry import aten
from onnxport.ops.support import rank_of, shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import is_integer, to_torch
from onnxport.target.sizes import reshape, unsqueeze
from onnxport.target.value import DataType, Value

_LARGEST_MASK = 1 << 16  # elements; a larger causal mask is computed by nodes, not stored
_DEPTH = 16  # how far back a mask is followed
_MOVING = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Slice", "Gather", "Identity", "Tile", "Cast"})
_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Neg", "Concat", "Min", "Max", "Where"})


@aten(fold=False)
def scaled_dot_product_attention(g: Builder, query: Value, key: Value, value: Value, attn_mask: Value | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Value:
    """scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0,
    bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor

    query (..., heads, L, E), key (..., heads, S, E), value (..., heads, S, Ev), attn_mask broadcasts to (..., heads, L, S): bool (True
    takes part) or float (added) -> (..., heads, L, Ev). A query that may look at nothing gives 0.
    ONNX Mul, Transpose, MatMul, Add, Softmax, MatMul.
    """
    return attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]


def attention(g: Builder, query: Value, key: Value, value: Value, mask: Value | None, dropout: float, causal: bool, scale: float | None,
              grouped: bool) -> tuple[Value, Value]:
    """(the result, the scores before the softmax)."""
    heads = shape_of(query)
    grouped = grouped and len(heads) >= 3 and not dims.equal(heads[-3], shape_of(key)[-3])
    if grouped:
        query, key, value, mask = _grouped(g, query, key, value, mask)
    scores = g.op("MatMul", _scaled(g, query, scale), _transposed(g, key))
    weights, scores = _weights(g, scores, mask, causal)
    if dropout > 0:
        weights = g.op("Dropout", weights, g.const(dropout), g.const(True))
    result = g.op("MatMul", weights, value)
    if grouped:
        result = reshape(g, result, [*heads[:-1], shape_of(result)[-1]])
    return result, scores


def _scaled(g: Builder, query: Value, scale: float | None) -> Value:
    size = shape_of(query)[-1]
    if scale is not None or isinstance(size, int):
        factor = scale if scale is not None else 1 / math.sqrt(max(size, 1)) if isinstance(size, int) else 1.0
        return g.op("Mul", query, g.const(factor, query.dtype))
    return g.op("Div", query, g.op("Sqrt", g.op("Cast", g.scalar(size), to=query.dtype)))


def _transposed(g: Builder, x: Value) -> Value:
    rank = rank_of(x)
    return g.op("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


def _weights(g: Builder, scores: Value, mask: Value | None, causal: bool) -> tuple[Value, Value]:
    """(weights of the values, masked scores)."""
    zero, lowest = g.const(0.0, scores.dtype), g.const(float("-inf"), scores.dtype)
    if causal:
        # The first key is open to every query: no row is empty.
        rows, columns = shape_of(scores)[-2:]
        scores = g.op("Add", scores, causal_mask(g, rows, columns, scores.dtype or DataType.FLOAT))
    if mask is None:
        return g.op("Softmax", scores, axis=-1), scores
    if mask.dtype == DataType.BOOL:
        scores = g.op("Where", mask, scores, lowest)
        return g.op("Where", mask, g.op("Softmax", scores, axis=-1), zero), scores
    scores = g.op("Add", scores, mask if mask.dtype == scores.dtype else g.op("Cast", mask, to=scores.dtype))
    weights = g.op("Softmax", scores, axis=-1)
    return weights if is_finite(mask) else g.op("Where", g.op("IsNaN", weights), zero, weights), scores


def is_finite(x: Value, depth: int = _DEPTH) -> bool:
    """Whether a mask surely has a finite number in each row: it is made of bools, integers and finite numbers."""
    if x.dtype == DataType.BOOL or is_integer(x.dtype):
        return True
    if x.const is not None:
        tensor = x.const.tensor
        return bool((tensor.isfinite().any(-1) if tensor.dim() else tensor.isfinite()).all())
    if x.node is None or x.node.domain or depth == 0:
        return False
    operands = [v for v in x.node.inputs if v is not None]
    if x.node.op_type in _MOVING:
        keeps_rows = x.node.op_type not in ("Slice", "Gather", "Transpose", "Reshape")
        return is_finite(operands[0], depth - 1) if keeps_rows else _all_finite(operands[0], depth - 1)
    return x.node.op_type in _ARITHMETIC and all(_all_finite(v, depth - 1) for v in operands)


def _all_finite(x: Value, depth: int = _DEPTH) -> bool:
    if x.dtype == DataType.BOOL or is_integer(x.dtype):
        return True
    if x.const is not None:
        return bool(x.const.tensor.isfinite().all())
    if x.node is None or x.node.domain or depth == 0 or x.node.op_type not in _MOVING | _ARITHMETIC:
        return False
    return all(_all_finite(v, depth - 1) for v in x.node.inputs if v is not None)


def causal_mask(g: Builder, rows: Size, columns: Size, dtype: DataType) -> Value:
    """(rows, columns) of `dtype`: 0 where a column is not behind its row, else minus infinity. Made once for each pair of sizes."""
    key = ("causal", rows, columns, dtype, g.call)
    found = g.block.known.get(key)
    if found is None:
        found = g.block.known[key] = (_causal_mask(g, rows, columns, dtype),)
    return found[0]


def _causal_mask(g: Builder, rows: Size, columns: Size, dtype: DataType) -> Value:
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= _LARGEST_MASK:
        return g.const(torch.full((rows, columns), float("-inf"), dtype=to_torch(dtype)).triu(1))
    if g.opset >= 14:
        return g.op("Trilu", g.op("Expand", g.const(float("-inf"), dtype), g.sizes([rows, columns])), g.const(1), upper=1)
    behind = g.op("Greater", count_up(g, columns), unsqueeze(g, count_up(g, rows), [1]))
    return g.op("Where", behind, g.const(float("-inf"), dtype), g.const(0.0, dtype))


def count_up(g: Builder, size: Size) -> Value:
    """0, 1, ... size - 1 as int64."""
    if isinstance(size, int):
        return g.const(list(range(size)), DataType.INT64)
    if g.opset >= 11:
        return g.op("Range", g.const(0), g.scalar(size), g.const(1))
    if g.opset < 9:
        raise errors.UnsupportedError(f"counting up to a dynamic size needs opset 9 or higher (opset_version={g.opset} was asked)")
    ones = g.op("ConstantOfShape", g.sizes([size]), value=torch.ones(1, dtype=torch.int64))
    return reshape(g, g.op("NonZero", ones), [size])


def _grouped(g: Builder, query: Value, key: Value, value: Value, mask: Value | None) -> tuple[Value, Value, Value, Value | None]:
    """Heads that share a key become a dim of their own, along which MatMul broadcasts; no key is copied."""
    outer, (heads, length, size) = shape_of(query)[:-3], shape_of(query)[-3:]
    groups = shape_of(key)[-3]
    if not dims.equal(groups, shape_of(value)[-3]):
        raise errors.UnsupportedError("enable_gqa with another number of heads in key and value")
    share = dims.floordiv(heads, groups)
    place = len(outer) + 1
    query = reshape(g, query, [*outer, groups, share, length, size])
    if mask is not None and rank_of(mask) >= 3:
        many = shape_of(mask)[-3]
        mask = unsqueeze(g, mask, [-3]) if many == 1 else reshape(g, mask, [*shape_of(mask)[:-3], groups, share, *shape_of(mask)[-2:]])
    return query, unsqueeze(g, key, [place]), unsqueeze(g, value, [place]), mask


@aten("_scaled_dot_product_flash_attention_for_cpu", fold=False)
def flash_attention_for_cpu(g: Builder, query: Value, key: Value, value: Value, dropout_p: float = 0.0, is_causal: bool = False,
                            attn_mask: Value | None = None, scale: float | None = None) -> tuple[Value, Value]:
    """_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *,
    Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)
    """
    result, scores = attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale, False)
    return result, logsumexp(g, scores, -1)


