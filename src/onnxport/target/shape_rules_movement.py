"""Shapes of operators that move, pick, join, repeat or make elements: Reshape, Slice, Gather, Concat, Pad, Range, ...

Source: the operator pages of ONNX (opset 28), and ONNX Runtime where those leave a case open.
"""

from __future__ import annotations

import math
from typing import Any

from onnxport.target import dims
from onnxport.target.dims import Dim, Size
from onnxport.target.shape_helpers import (
    AnyDim,
    Attrs,
    Dims,
    Inputs,
    Known,
    Rule,
    add,
    agree,
    as_dims,
    axes_of,
    axis_of,
    broadcast,
    constant_numbers,
    content,
    dtype_attribute,
    dtype_of_tensor,
    is_never_negative,
    length,
    maybe,
    need,
    product,
    replaced,
    scalar,
    unknown_dims,
)
from onnxport.target.value import DataType, Shape, Value

_FAR = 2**62  # a slice that starts or ends beyond this reaches to the edge, however long the axis is


# ---------------------------------------------------------------------- same elements, other dims


def reshape(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The sizes in the second input; 0 copies (unless `allowzero`), -1 is what remains."""
    data, target = need(inputs, 0), need(inputs, 1)
    wanted = content(target)
    if wanted is None:
        return [(data.dtype, unknown_dims(length(target)))]
    return [(data.dtype, reshaped(data.shape, wanted, bool(attrs.get("allowzero"))))]


def reshaped(shape: Dims, wanted: Shape, allowzero: bool = False) -> Dims:
    """The dims of a tensor of `shape` after Reshape to `wanted`."""
    sizes = list(as_dims(wanted))
    for axis, size in enumerate(wanted):
        if size == 0 and not allowzero:
            sizes[axis] = shape[axis] if shape is not None and axis < len(shape) else None
    if -1 in wanted and shape is not None:
        at = wanted.index(-1)
        whole, rest = product(shape), product(s for i, s in enumerate(sizes) if i != at)
        if whole is not None and rest is not None and rest != 0:
            sizes[at] = dims.floordiv(whole, rest)
    return tuple(sizes)


def flatten(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """A matrix: the dims before `axis` become one, those from it on another."""
    x = need(inputs, 0)
    if x.shape is None:
        return [(x.dtype, (None, None))]
    axis = attrs.get("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    return [(x.dtype, (product(x.shape[:axis]), product(x.shape[axis:])))]


def transpose(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The dims in the order of `perm`, reversed without it."""
    x, perm = need(inputs, 0), attrs.get("perm")
    if x.shape is None:
        return [(x.dtype, None if perm is None else unknown_dims(len(perm)))]
    return [(x.dtype, x.shape[::-1] if perm is None else tuple([x.shape[p] for p in perm]))]


def squeeze(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Without the dims at `axes`; without axes, without those that are 1, which must then be known for each."""
    x, given = need(inputs, 0), maybe(inputs, 1)
    if x.shape is None:
        return [(x.dtype, None)]
    if given is None:
        known = all(dims.compare("==", s, 1) is not None for s in x.shape)
        return [(x.dtype, tuple([s for s in x.shape if dims.compare("==", s, 1) is False]) if known else None)]
    axes = _known_axes(given, len(x.shape))
    if axes is None:
        count = length(given)
        return [(x.dtype, None if count is None else unknown_dims(len(x.shape) - count))]
    return [(x.dtype, tuple([s for i, s in enumerate(x.shape) if i not in axes]))]


def unsqueeze(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """With a 1 at each of `axes`, which count in the result."""
    x, given = need(inputs, 0), need(inputs, 1)
    found = content(given)
    count = length(given) if found is None else len(found)
    if x.shape is None or count is None:
        return [(x.dtype, None)]
    rank = len(x.shape) + count
    axes = None if found is None else axes_of(found, rank)
    if axes is None:
        return [(x.dtype, unknown_dims(rank))]
    rest = iter(x.shape)
    return [(x.dtype, tuple([1 if i in axes else next(rest) for i in range(rank)]))]


def _known_axes(given: Value | None, rank: int) -> list[int] | None:
    found = content(given)
    return None if found is None else axes_of(found, rank)


def depth_to_space(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, C, H, W) to (N, C / b^2, H b, W b)."""
    x, block = need(inputs, 0), attrs["blocksize"]
    if x.shape is None:
        return [(x.dtype, unknown_dims(4))]
    n, c, h, w = x.shape
    return [(x.dtype, (n, dims.floordiv(c, block * block), h * block, w * block))]


def space_to_depth(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, C, H, W) to (N, C b^2, H / b, W / b)."""
    x, block = need(inputs, 0), attrs["blocksize"]
    if x.shape is None:
        return [(x.dtype, unknown_dims(4))]
    n, c, h, w = x.shape
    return [(x.dtype, (n, c * (block * block), dims.floordiv(h, block), dims.floordiv(w, block)))]


# ---------------------------------------------------------------------- some of the elements


def slice_(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Per axis what Python's slice keeps, with ONNX's clamping of start and end to the axis."""
    x = need(inputs, 0)
    if x.shape is None:
        return [(x.dtype, None)]
    given = [maybe(inputs, i) for i in range(1, 5)]
    count = next((n for n in (_count(v) for v in given) if n is not None), None)
    if count is None:
        return [(x.dtype, unknown_dims(len(x.shape)))]
    axes = list(range(count)) if given[2] is None else _known_axes(given[2], len(x.shape))
    if axes is None:
        return [(x.dtype, unknown_dims(len(x.shape)))]
    starts, ends = (content(v) or (None,) * count for v in given[:2])
    steps = (1,) * count if given[3] is None else content(given[3]) or (None,) * count
    shape: tuple[AnyDim, ...] = x.shape
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=False):
        shape = replaced(shape, axis, sliced(x.shape[axis], start, end, step))
    return [(x.dtype, shape)]


def _count(value: Value | None) -> int | None:
    found = content(value)
    return length(value) if found is None else len(found)


def sliced(size: Size, start: AnyDim, end: AnyDim, step: AnyDim) -> AnyDim:
    """How many elements of an axis of `size` a slice keeps; None where that hangs on values that are not known.

    With s and e counted from the front, a forward slice has ceil((min(e, size) - max(s, 0)) / step) of them, or none:
    a start beyond the axis and an end before it make that negative, so they need no clamp of their own.
    """
    if not isinstance(step, int) or step == 0:
        return None
    first, last = (from_front(index, size, clamped=step > 0) for index in (start, end))
    if first is None or last is None:
        return None
    if step > 0:
        last = dims.minimum(last, size)
        span = last - first if is_never_negative(first) else dims.minimum(last - first, last)
        return dims.maximum(dims.ceildiv(span, step), 0)
    first = dims.minimum(dims.maximum(first, 0), size - 1)
    return dims.maximum(dims.ceildiv(first - dims.maximum(last, -1), -step), 0)


def from_front(index: AnyDim, size: Size, *, clamped: bool) -> Size | None:
    """An index of an axis of `size` counted from its front; None where nobody knows whether it counts from the back.

    clamped: what is negative in the result is taken as 0. Then `size - 1` and `size - 2` are themselves, though they
    are negative where the axis is that short: counted from the back they are still before the front, or on it.
    """
    if index is None:
        return None
    if isinstance(index, int) and abs(index) >= _FAR:
        return size if index > 0 else -1
    if is_never_negative(index) or (clamped and isinstance(index, Dim) and size - index in (1, 2)):
        return index
    return index + size if dims.compare("<", index, 0) else None


def gather(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The indices' dims in the place of `axis`."""
    x, index = need(inputs, 0), need(inputs, 1)
    if x.shape is None or index.shape is None:
        return [(x.dtype, None)]
    axis = axis_of(attrs.get("axis", 0), len(x.shape))
    return [(x.dtype, x.shape[:axis] + index.shape + x.shape[axis + 1 :])]


def gather_elements(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The shape of the indices."""
    return [(need(inputs, 0).dtype, need(inputs, 1).shape)]


def gather_nd(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The indices' dims but the last, which says how many of the data's dims (after `batch_dims`) are indexed away."""
    x, index = need(inputs, 0), need(inputs, 1)
    if x.shape is None or not index.shape:
        return [(x.dtype, None)]
    depth = index.shape[-1]
    if not isinstance(depth, int):
        return [(x.dtype, None)]
    return [(x.dtype, index.shape[:-1] + x.shape[attrs.get("batch_dims", 0) + depth :])]


def compress(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """As many elements along `axis` (of all, without it) as the condition holds: only the run knows."""
    x, axis = need(inputs, 0), attrs.get("axis")
    if axis is None:
        return [(x.dtype, (None,))]
    return [(x.dtype, None if x.shape is None else replaced(x.shape, axis_of(axis, len(x.shape)), None))]


def nonzero(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """INT64 (rank, count); ONNX Runtime counts a scalar as a vector."""
    x = need(inputs, 0)
    return [(DataType.INT64, (None if x.shape is None else max(len(x.shape), 1), None))]


def unique(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The unique elements (or slices along `axis`), where each is first, where each element went, how often each occurs."""
    x, axis = need(inputs, 0), attrs.get("axis")
    kept: Dims = None
    whole: AnyDim = None
    if axis is None:
        kept, whole = (None,), None if x.shape is None else product(x.shape)
    elif x.shape is not None:
        at = axis_of(axis, len(x.shape))
        kept, whole = replaced(x.shape, at, None), x.shape[at]
    return [(x.dtype, kept), (DataType.INT64, (None,)), (DataType.INT64, (whole,)), (DataType.INT64, (None,))]


def topk(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """k at `axis`, twice: the values and their INT64 indices."""
    x = need(inputs, 0)
    shape: Dims = None
    if x.shape is not None:
        shape = replaced(x.shape, axis_of(attrs.get("axis", -1), len(x.shape)), scalar(maybe(inputs, 1)))
    return [(x.dtype, shape), (DataType.INT64, shape)]


# ---------------------------------------------------------------------- joined, cut, repeated, padded


def concat(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The sum of the dims at `axis`; elsewhere all inputs have the same."""
    values = [v for v in inputs if v is not None]
    dtype = next((v.dtype for v in values if v.dtype is not None), None)
    shapes = [v.shape for v in values if v.shape is not None]
    if not shapes:
        return [(dtype, None)]
    axis = axis_of(attrs["axis"], len(shapes[0]))
    result: list[AnyDim] = list(shapes[0])
    for shape in shapes[1:]:
        result = [agree(a, b) for a, b in zip(result, shape, strict=True)]
    result[axis] = add(*(s[axis] for s in shapes)) if len(shapes) == len(values) else None
    return [(dtype, tuple(result))]


def split(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The sizes in the second input, or `num_outputs` parts of which the last may be smaller."""
    x, given = need(inputs, 0), maybe(inputs, 1)
    if x.shape is None:
        return [(x.dtype, None)] * outputs
    axis = axis_of(attrs.get("axis", 0), len(x.shape))
    parts: tuple[AnyDim, ...] | list[AnyDim]
    if given is not None:
        parts = content(given) or (None,) * outputs
    else:
        count = attrs.get("num_outputs", outputs)
        part = dims.ceildiv(x.shape[axis], count)
        parts = [part] * (count - 1) + [x.shape[axis] - part * (count - 1)]
    return [(x.dtype, replaced(x.shape, axis, part)) for part in parts]


def expand(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The shape broadcast with the sizes in the second input."""
    x, target = need(inputs, 0), need(inputs, 1)
    wanted = content(target)
    if wanted is not None:
        return [(x.dtype, broadcast(x.shape, as_dims(wanted)))]
    return [(x.dtype, broadcast(x.shape, unknown_dims(length(target))))]


def tile(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Each dim times its repeats."""
    x = need(inputs, 0)
    repeats = content(need(inputs, 1))
    if x.shape is None or repeats is None:
        return [(x.dtype, unknown_dims(x.rank))]
    return [(x.dtype, tuple([s * r for s, r in zip(x.shape, repeats, strict=True)]))]


def pad(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Each dim with what is put before and behind it (negative: cut off) on the `axes` of the fourth input, or on all."""
    x = need(inputs, 0)
    if x.shape is None:
        return [(x.dtype, None)]
    amounts, given = content(need(inputs, 1)), maybe(inputs, 3)
    axes = list(range(len(x.shape))) if given is None else _known_axes(given, len(x.shape))
    if axes is None:
        return [(x.dtype, unknown_dims(len(x.shape)))]
    shape: tuple[AnyDim, ...] = x.shape
    for i, axis in enumerate(axes):
        more = None if amounts is None else amounts[i] + amounts[i + len(axes)]
        shape = replaced(shape, axis, None if more is None else x.shape[axis] + more)
    return [(x.dtype, shape)]


def center_crop_pad(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The sizes of the second input at `axes`, or at all."""
    x = need(inputs, 0)
    if x.shape is None:
        return [(x.dtype, None)]
    axes = axes_of(attrs.get("axes") or range(len(x.shape)), len(x.shape)) or []
    sizes = content(need(inputs, 1)) or (None,) * len(axes)
    shape: tuple[AnyDim, ...] = x.shape
    for axis, size in zip(axes, sizes, strict=True):
        shape = replaced(shape, axis, size)
    return [(x.dtype, shape)]


# ---------------------------------------------------------------------- made from nothing


def shape_of(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """INT64; as many as there are dims from `start` to `end`."""
    x = need(inputs, 0)
    return [(DataType.INT64, (None if x.shape is None else len(x.shape[slice(attrs.get("start", 0), attrs.get("end"))]),))]


def size_of(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """An INT64 scalar."""
    return [(DataType.INT64, ())]


def constant_of_shape(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The sizes in the first input; dtype of attribute `value`, else FLOAT."""
    value = attrs.get("value")
    dtype = DataType.FLOAT if value is None else dtype_of_tensor(value)
    sizes = content(need(inputs, 0))
    if sizes is None:
        return [(dtype, unknown_dims(length(inputs[0])))]
    return [(dtype, as_dims(sizes))]


def constant(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """What the one attribute holds."""
    name, value = next(iter(attrs.items()))
    if name in ("value", "sparse_value"):
        shape = getattr(value, "shape", None) if hasattr(value, "shape") else getattr(value, "dims", None)
        return [(dtype_of_tensor(value), None if shape is None else tuple([int(s) for s in shape]))]
    dtypes = {"int": DataType.INT64, "float": DataType.FLOAT, "string": DataType.STRING}
    kind = name.removeprefix("value_")
    return [(dtypes[kind.removesuffix("s")], (len(value),) if kind.endswith("s") else ())]


def range_(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """max(0, ceil((limit - start) / delta)) numbers."""
    given = [need(inputs, i) for i in range(3)]
    dtype = next((v.dtype for v in given if v.dtype is not None), None)
    whole = [scalar(v) for v in given]
    start, limit, delta = whole
    if start is not None and limit is not None and delta is not None:
        if dims.compare(">", delta, 0):
            return [(dtype, (dims.maximum(dims.ceildiv(limit - start, delta), 0),))]
        if dims.compare("<", delta, 0):
            return [(dtype, (dims.maximum(dims.ceildiv(start - limit, -delta), 0),))]
        return [(dtype, (None,))]
    numbers = [(constant_numbers(v) or [None])[0] for v in given]
    if any(n is None for n in numbers) or not numbers[2]:
        return [(dtype, (None,))]
    return [(dtype, (max(0, math.ceil((numbers[1] - numbers[0]) / numbers[2])),))]


def one_hot(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The depth as a new dim at `axis`; dtype of the values."""
    index, depth, values = need(inputs, 0), scalar(need(inputs, 1)), need(inputs, 2)
    if index.shape is None:
        return [(values.dtype, None)]
    axis = axis_of(attrs.get("axis", -1), len(index.shape) + 1)
    return [(values.dtype, (*index.shape[:axis], depth, *index.shape[axis:]))]


def random(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The attributes `shape` and `dtype` (FLOAT without)."""
    return [(dtype_attribute(attrs, "dtype", DataType.FLOAT), tuple(attrs["shape"]))]


def multinomial(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(batch, sample_size) of `dtype`, INT32 without."""
    x: Any = need(inputs, 0)
    batch = None if x.shape is None else x.shape[0]
    return [(dtype_attribute(attrs, "dtype", DataType.INT32), (batch, attrs.get("sample_size", 1)))]


RULES: dict[str, Rule] = {
    "CenterCropPad": center_crop_pad,
    "Compress": compress,
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Multinomial": multinomial,
    "NonZero": nonzero,
    "OneHot": one_hot,
    "Pad": pad,
    "RandomNormal": random,
    "RandomUniform": random,
    "Range": range_,
    "Reshape": reshape,
    "Shape": shape_of,
    "Size": size_of,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "TopK": topk,
    "Transpose": transpose,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
}
