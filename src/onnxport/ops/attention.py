"""Scaled dot product attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.ops import random
from onnxport.ops.reduction import logsumexp
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, rank_of, shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import is_integer, to_torch
from onnxport.target.sizes import reshape, unsqueeze
from onnxport.target.value import DataType, Value

_LARGEST_MASK = 1 << 16  # elements; a larger causal mask is computed by nodes, not stored
_DEPTH = 16  # how far back a mask is followed
_KEEPS_ROWS = frozenset({"Squeeze", "Unsqueeze", "Expand", "Identity", "Tile"})
_MOVING = _KEEPS_ROWS | {"Reshape", "Transpose", "Slice", "Gather", "Cast"}
# How large a result can be, by how large the operands can be.
_BOUNDS: dict[str, Callable[[list[float]], float]] = {
    **dict.fromkeys((*_MOVING, "Neg", "Concat", "Min", "Max", "Where"), max), **dict.fromkeys(("Add", "Sub"), sum), "Mul": math.prod}


@aten(fold=False)
def scaled_dot_product_attention(g: Builder, query: Value, key: Value, value: Value, attn_mask: Value | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Value:
    """scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0,
    bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor

    query (..., heads, L, E), key (..., heads, S, E), value (..., heads, S, Ev), attn_mask broadcasts to (..., heads, L, S): bool (True
    takes part) or float (added) -> (..., heads, L, Ev). A query that may look at nothing gives 0.
    ONNX Mul, Transpose, MatMul, Add, Softmax, MatMul; Attention where ONNX Runtime has a kernel that gives the same numbers.
    """
    once = _unrepeated(key), _unrepeated(value)
    if once[0] is not None and once[1] is not None and dims.equal(shape_of(once[0])[-3], shape_of(once[1])[-3]):
        key, value, enable_gqa = once[0], once[1], True
    if dropout_p == 0 and _one_node(g, query, key, value, attn_mask, scale, enable_gqa):
        given = () if attn_mask is None else (_whole_rows(g, attn_mask, shape_of(query)[-2]),)
        attrs: dict[str, Any] = {"is_causal": int(is_causal), **({} if scale is None else {"scale": float(scale)})}
        result: Value = g.op("Attention", query, key, value, *given, **attrs)
        return result
    return attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]


def attention(g: Builder, query: Value, key: Value, value: Value, mask: Value | None, dropout: float, causal: bool, scale: float | None,
              grouped: bool) -> tuple[Value, Value]:
    """(the result, the scores before the softmax)."""
    heads = shape_of(query)
    grouped = grouped and len(heads) >= 3 and not dims.equal(heads[-3], shape_of(key)[-3])
    if grouped:
        query, key, value, mask = _grouped(g, query, key, value, mask)
    scores = g.op("MatMul", _scaled(g, query, scale), _transposed(g, key))
    if causal:  # the first key is open to every query: no row is empty
        rows, columns = shape_of(scores)[-2:]
        scores = g.op("Add", scores, causal_mask(g, rows, columns, scores.dtype or DataType.FLOAT))
    scores, opened = (scores, None) if mask is None else _masked(g, scores, mask)
    weights = g.op("Softmax", scores, axis=-1)
    if dropout > 0:
        weights = random.dropout(g, weights, dropout, True)
    result = g.op("MatMul", weights, value)
    if opened is not None:
        result = g.op("Mul", result, opened)
    if grouped:
        result = reshape(g, result, [*heads[:-1], shape_of(result)[-1]])
    return result, scores


def _unrepeated(x: Value) -> Value | None:
    """The tensor each of whose heads stands in `x` several times in a row, as decoders do where queries share keys; None for any other.

    The whole cache is not copied then: with a past of 2048 and four queries a key that is most of the time of a step.
    """
    if x.node is None or x.node.domain or len(shape_of(x)) < 4:
        return None
    source = x.node.inputs[0]
    if x.node.op_type == "Gather":
        index = x.node.inputs[1]
        return source if source is not None and index is not None and _in_a_row(source, index, x) else None
    if x.node.op_type != "Reshape" or source is None or source.node is None or source.node.op_type != "Expand":
        return None
    single = source.node.inputs[0]
    before = single.node.inputs[0] if single is not None and single.node is not None and single.node.op_type in ("Unsqueeze", "Reshape") else None
    if single is None or before is None or before.shape is None or len(before.shape) != len(shape_of(x)):
        return None
    *outer, groups, length, size = before.shape
    share = dims.floordiv(shape_of(x)[-3], groups)
    wanted = ([*outer, groups, 1, length, size], [*outer, groups, share, length, size], [*outer, groups * share, length, size])
    return before if all(_same(shape_of(v), sizes) for v, sizes in zip((single, source, x), wanted, strict=True)) else None


def _in_a_row(source: Value, index: Value, x: Value) -> bool:
    axis, heads, groups = len(shape_of(x)) - 3, shape_of(x)[-3], shape_of(source)[-3]
    if index.const is None or not isinstance(groups, int) or not isinstance(heads, int) or x.node is None or x.node.attrs.get("axis") != axis:
        return False
    return groups > 0 and index.const.tensor.tolist() == [i for i in range(groups) for _ in range(heads // groups)]


def _same(shape: Sequence[Size], wanted: Sequence[Size]) -> bool:
    return len(shape) == len(wanted) and all(map(dims.equal, shape, wanted))


def _one_node(g: Builder, query: Value, key: Value, value: Value, mask: Value | None, scale: float | None, grouped: bool) -> bool:
    """Whether ONNX Attention says it all, and ONNX Runtime 1.32 runs it: as fast as the plain form, or up to 1.3 times (CPU, float32).

    At 23 and 24 only: from 25 on it has no kernel and takes the definition apart. It takes a row of the lowest finite number for closed,
    where PyTorch gives the mean of the values: so no float masks (which are as fast in the plain form). It takes no scale below 0, no
    batches that broadcast and no sizes of 0.
    """
    if g.opset not in (23, 24) or query.dtype not in (DataType.FLOAT, DataType.FLOAT16) or (scale is not None and scale <= 0):
        return False
    shapes = [shape_of(x) for x in (query, key, value)]
    if any(len(shape) != 4 or 0 in shape for shape in shapes):
        return False
    (batch, heads, length, _), (others, groups, keys, _), (last, same, *_) = shapes
    shared = dims.equal(heads, groups) or (grouped and isinstance(heads, int) and isinstance(groups, int) and heads % groups == 0)
    fits = shared and dims.equal(groups, same) and dims.equal(batch, others) and dims.equal(batch, last)
    return fits and (mask is None or (mask.dtype == DataType.BOOL and _covers(shape_of(mask), [batch, heads, length, keys])))


def _covers(mask: Sequence[Size], sizes: Sequence[Size]) -> bool:
    """Whether a mask surely has a bool for each key, and what stands before it broadcasts."""
    pairs = list(zip(reversed(mask), reversed(sizes), strict=False))
    return len(mask) >= 2 and dims.equal(*pairs[0]) and all(size == 1 or dims.equal(size, wanted) for size, wanted in pairs[1:])


def _whole_rows(g: Builder, mask: Value, length: Size) -> Value:
    """A mask with a row for each query: Attention does not broadcast one row."""
    sizes = shape_of(mask)
    return mask if dims.equal(sizes[-2], length) else g.op("Expand", mask, g.sizes([*sizes[:-2], length, sizes[-1]]))


def _scaled(g: Builder, query: Value, scale: float | None) -> Value:
    size = shape_of(query)[-1]
    if scale is not None or isinstance(size, int):
        factor = scale if scale is not None else 1 / math.sqrt(max(size, 1)) if isinstance(size, int) else 1.0
        return g.op("Mul", query, g.const(factor, query.dtype))
    return g.op("Div", query, g.op("Sqrt", g.op("Cast", g.scalar(size), to=query.dtype)))


def _transposed(g: Builder, x: Value) -> Value:
    rank = rank_of(x)
    return g.op("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


def _masked(g: Builder, scores: Value, mask: Value) -> tuple[Value, Value | None]:
    """(masked scores, 0 for each row that may look at nothing and 1 for the others, or None where no row is such).

    Softmax of nothing but minus infinity is no number: such a row is left as it is, and its result taken times 0. What is done to the
    mask is done once for all layers that share it, and Where on the scores themselves costs ONNX Runtime as much as all the rest.
    """
    zero, lowest = g.const(0.0, scores.dtype), g.const(float("-inf"), scores.dtype)
    added = g.op("Where", mask, zero, lowest) if mask.dtype == DataType.BOOL else g.op("Cast", mask, to=scores.dtype)
    if is_finite(added):
        return g.op("Add", scores, added), None
    opened = g.op("Greater", g.op("ReduceMax", added, g.const([-1]), keepdims=1), lowest)
    return g.op("Add", scores, g.op("Where", opened, added, zero)), g.op("Cast", opened, to=scores.dtype)


def is_finite(x: Value, depth: int = _DEPTH) -> bool:
    """Whether a mask surely has a finite number in each row: it is made of bools, integers and numbers that cannot add up to infinity."""
    if x.const is not None and x.dtype != DataType.BOOL:
        tensor = x.const.tensor
        return bool((tensor.isfinite().any(-1) if tensor.dim() else tensor.isfinite()).all())
    if x.node is not None and x.node.op_type in _KEEPS_ROWS and not x.node.domain and depth:
        operand = x.node.inputs[0]
        return operand is not None and is_finite(operand, depth - 1)
    return math.isfinite(_bound(x, depth))


def _bound(x: Value, depth: int) -> float:
    """A number that no element of `x` exceeds in size; infinity where that is not known, or too large for the type."""
    if x.const is not None:
        tensor = x.const.tensor
        return float(tensor.abs().max()) if tensor.numel() and tensor.dtype != torch.bool else 1.0
    if x.dtype == DataType.BOOL:
        return 1.0
    if x.dtype is not None and is_integer(x.dtype):
        return float(torch.iinfo(to_torch(x.dtype)).max)
    if x.dtype is None or x.node is None or x.node.domain or depth == 0 or x.node.op_type not in _BOUNDS:
        return math.inf
    operands = [v for v in x.node.inputs if v is not None][:1 if x.node.op_type in _MOVING else None]
    bound = _BOUNDS[x.node.op_type]([_bound(v, depth - 1) for v in operands])
    return bound if bound <= torch.finfo(to_torch(x.dtype)).max else math.inf


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
    return result, logsumexp(g, cast(g, scores, DataType.DOUBLE if scores.dtype == DataType.DOUBLE else DataType.FLOAT), -1)


