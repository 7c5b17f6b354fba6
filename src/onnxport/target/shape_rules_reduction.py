"""Shapes of operators that sum over dims: reductions, matrix products, normalisations with statistics, losses.

Source: the operator pages of ONNX (opset 28).
"""

from __future__ import annotations

from onnxport.target.shape_helpers import (
    AnyDim,
    Attrs,
    Dims,
    Inputs,
    Known,
    Rule,
    axes_of,
    axis_of,
    broadcast,
    broadcast_dim,
    content,
    dtype_attribute,
    length,
    maybe,
    need,
    replaced,
    unknown_dims,
)
from onnxport.target.value import DataType, Shape, Value

REDUCE = [
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
]


def reduce(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """1 at each of `axes`, or without these dims if `keepdims` is 0. No axes: all, or none if `noop_with_empty_axes`."""
    x, given = need(inputs, 0), maybe(inputs, 1)
    if x.shape is None:
        return [(x.dtype, None)]
    keep = bool(attrs.get("keepdims", 1))
    found = () if given is None else content(given)
    if found is None:
        count = length(given)
        return [(x.dtype, unknown_dims(len(x.shape) if keep else len(x.shape) - count if count else None))]
    if not found and attrs.get("noop_with_empty_axes"):
        return [(x.dtype, x.shape)]
    axes = axes_of(found or range(len(x.shape)), len(x.shape))
    return [(x.dtype, None if axes is None else without(x.shape, axes, keep))]


def without(shape: Shape, axes: list[int], keep: bool) -> Dims:
    """`shape` with `axes` reduced."""
    if keep:
        return tuple([1 if i in axes else s for i, s in enumerate(shape)])
    return tuple([s for i, s in enumerate(shape) if i not in axes])


def arg_reduce(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """INT64; `axis` becomes 1, or goes if `keepdims` is 0."""
    x = need(inputs, 0)
    if x.shape is None:
        return [(DataType.INT64, None)]
    axes = [axis_of(attrs.get("axis", 0), len(x.shape))]
    return [(DataType.INT64, without(x.shape, axes, bool(attrs.get("keepdims", 1))))]


# ---------------------------------------------------------------------- matrix products


def multiplied(a: Dims, b: Dims) -> Dims:
    """numpy's matmul: stacks of matrices broadcast, a vector is a row on the left and a column on the right."""
    if a is None or b is None or not a or not b:
        return None
    stack = broadcast(a[:-2], b[:-2])
    if stack is None:
        return None
    rows = a[-2:-1]
    columns = b[-1:] if len(b) > 1 else ()
    return stack + rows + columns


def matmul(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of the first input."""
    a, b = need(inputs, 0), need(inputs, 1)
    return [(a.dtype or b.dtype, multiplied(a.shape, b.shape))]


def matmul_integer(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """INT32."""
    return [(DataType.INT32, multiplied(need(inputs, 0).shape, need(inputs, 1).shape))]


def qlinear_matmul(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """dtype of the result's zero point, input 7."""
    return [(need(inputs, 7).dtype, multiplied(need(inputs, 0).shape, need(inputs, 3).shape))]


def gemm(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(rows of A, columns of B), after the transpositions."""
    a, b = need(inputs, 0), need(inputs, 1)
    rows = None if a.shape is None else a.shape[1 if attrs.get("transA") else 0]
    columns = None if b.shape is None else b.shape[0 if attrs.get("transB") else 1]
    return [(a.dtype or b.dtype, (rows, columns))]


def einsum(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The dims of the letters behind the arrow, or of those that occur once, in alphabetical order, without an arrow."""
    values = [need(inputs, i) for i in range(len(inputs))]
    dtype = next((v.dtype for v in values if v.dtype is not None), None)
    left, arrow, right = attrs["equation"].replace(" ", "").partition("->")
    sizes: dict[str, AnyDim] = {}
    dots: Dims = ()
    for term, value in zip(left.split(","), values, strict=True):
        if value.shape is None:
            return [(dtype, None)]
        before, found, after = term.partition("...")
        hidden = len(value.shape) - len(before) - len(after) if found else 0
        dots = broadcast(dots, value.shape[len(before) : len(before) + hidden])
        shown = value.shape[: len(before)] + value.shape[len(before) + hidden :]
        for letter, size in zip(before + after, shown, strict=True):
            # A 1 broadcasts against the other sizes of its letter, as in numpy.
            sizes[letter] = broadcast_dim(sizes.get(letter, 1), size)
    if not arrow:
        right = ("..." if "..." in left else "") + "".join(sorted(c for c in sizes if left.count(c) == 1))
    before, found, after = right.partition("...")
    result: list[AnyDim] = [sizes[c] for c in before]
    if found:
        result.extend(dots or ())
    result.extend(sizes[c] for c in after)
    return [(dtype, tuple(result))]


# ---------------------------------------------------------------------- normalisations with more than one output, losses


def batch_norm(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The data, then the new running mean and variance (`training_mode`)."""
    x, mean, variance = need(inputs, 0), need(inputs, 3), need(inputs, 4)
    return [(x.dtype, x.shape), (mean.dtype, mean.shape), (variance.dtype, variance.shape)]


def layer_norm(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The data, then its mean and inverse deviation, which are 1 from `axis` on and of `stash_type`."""
    x = need(inputs, 0)
    statistic: Dims = None
    if x.shape is not None:
        axis = axis_of(attrs.get("axis", -1), len(x.shape))
        statistic = x.shape[:axis] + (1,) * (len(x.shape) - axis)
    stash = dtype_attribute(attrs, "stash_type", DataType.FLOAT)
    return [(x.dtype, x.shape), (stash, statistic), (stash, statistic)]


def loss(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """A scalar, or the labels' shape with reduction "none"; SoftmaxCrossEntropyLoss also gives the log probabilities."""
    scores, labels = need(inputs, 0), need(inputs, 1)
    shape: Dims = labels.shape if attrs.get("reduction", "mean") == "none" else ()
    return [(scores.dtype, shape), (scores.dtype, scores.shape)]


def det(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Without the last two dims."""
    x = need(inputs, 0)
    return [(x.dtype, None if x.shape is None else x.shape[:-2])]


# ---------------------------------------------------------------------- attention


def attention(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Y, present_key, present_value and the scores of Attention, for inputs of rank 4 or, heads folded into the last dim, 3."""
    query, key, value = (need(inputs, i) for i in range(3))
    if query.shape is None or key.shape is None or value.shape is None:
        return [(query.dtype, None)]
    q, k, v = (_with_heads(t, attrs.get(n)) for t, n in (
        (query, "q_num_heads"), (key, "kv_num_heads"), (value, "kv_num_heads")))
    past_key, past_value = maybe(inputs, 4), maybe(inputs, 5)
    k, v = _appended(past_key, k), _appended(past_value, v)
    if len(query.shape) == 4:
        result: Dims = (q[0], q[1], q[2], v[3])
    else:
        result = (q[0], q[2], None if v[3] is None or q[1] is None else q[1] * v[3])
    return [(query.dtype, result), (key.dtype, k), (value.dtype, v), (query.dtype, (q[0], q[1], q[2], k[2]))]


def _with_heads(x: Value, heads: int | None) -> tuple[AnyDim, ...]:
    """(batch, heads, sequence, size) of a tensor of rank 4, or of (batch, sequence, heads size)."""
    assert x.shape is not None
    if len(x.shape) == 4:
        return x.shape
    batch, sequence, hidden = x.shape
    return (batch, heads, sequence, None if heads is None else hidden // heads)


def _appended(past: Value | None, now: tuple[AnyDim, ...]) -> tuple[AnyDim, ...]:
    if past is None:
        return now
    before, after = None if past.shape is None else past.shape[2], now[2]
    return replaced(now, 2, None if before is None or after is None else before + after)


def linear_attention(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(batch, sequence, query heads * value size), then the state (batch, key heads, key size, value size)."""
    query, key, value, past = need(inputs, 0), need(inputs, 1), need(inputs, 2), maybe(inputs, 3)
    dtype = query.dtype if past is None else past.dtype
    if query.shape is None or key.shape is None or value.shape is None:
        return [(query.dtype, unknown_dims(3)), (dtype, unknown_dims(4))]
    heads = attrs["kv_num_heads"]
    keys, values = key.shape[2] // heads, value.shape[2] // heads
    return [(query.dtype, (*query.shape[:2], values * attrs["q_num_heads"])), (dtype, (query.shape[0], heads, keys, values))]


RULES: dict[str, Rule] = {
    **dict.fromkeys(REDUCE, reduce),
    "ArgMax": arg_reduce,
    "ArgMin": arg_reduce,
    "Attention": attention,
    "BatchNormalization": batch_norm,
    "Det": det,
    "Einsum": einsum,
    "Gemm": gemm,
    "LayerNormalization": layer_norm,
    "LinearAttention": linear_attention,
    "MatMul": matmul,
    "MatMulInteger": matmul_integer,
    "NegativeLogLikelihoodLoss": loss,
    "QLinearMatMul": qlinear_matmul,
    "SoftmaxCrossEntropyLoss": loss,
}
