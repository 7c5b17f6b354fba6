"""Operators that every opset has, or had under another name, and whose meaning or abilities changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from onnxport.target import dims, kernels
from onnxport.target.dtypes import FLOATS, INTEGERS
from onnxport.target.schemas import NEWEST
from onnxport.target.spelling import Form, Made, Rules, numbers, refusal, sizes
from onnxport.target.value import Constant, DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_EVERY = NEWEST + 1  # for rules that look at ONNX Runtime, whatever the opset
_SHARED = 8  # the length up to which ONNX Runtime stores equal constants once
_PART = 2**31  # int64 = high part * _PART + low part, both exact in float64


# ---------------------------------------------------------------------- softmax, reductions, normalisation


def _softmax(g: Builder, form: Form) -> Made:
    """Until 12 the dims from `axis` on were one: the same only where `axis` is the last."""
    x = form.x
    axis = form.attrs.get("axis", -1)
    if x.rank is None:
        if axis != -1:
            raise refusal(g, f"{form.op_type} over a dim that may not be the last, of a tensor of unknown rank,", 13)
        return form.change(axis=-1)
    if x.rank == 0:
        raise refusal(g, f"{form.op_type} of a scalar", 13)
    axis %= x.rank
    if axis == x.rank - 1:
        return form.change(axis=axis)
    perm = list(range(x.rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    last = g.op(form.op_type, g.op("Transpose", x, perm=perm), axis=x.rank - 1)
    return (g.op("Transpose", last, perm=perm),)


def _reduce(g: Builder, form: Form) -> Made:
    """No axes: all of them, except where `noop_with_empty_axes` says none."""
    axes = form.input(1)
    empty = axes is None or axes.shape == (0,)
    if empty and form.attrs.get("noop_with_empty_axes"):
        raise refusal(g, f"{form.op_type} with 'noop_with_empty_axes'", 13 if form.op_type == "ReduceSum" else 18)
    return form.change(inputs=form.inputs[:1] if empty else None, noop_with_empty_axes=None)


def _batch_normalization(g: Builder, form: Form) -> Made:
    """Until 14 data and statistics had one dtype: computed in that of the statistics."""
    dtypes = {v.dtype for v in form.inputs if v is not None}
    if len(dtypes) == 1 or form.outputs != 1:
        return form
    wide = DataType.DOUBLE if DataType.DOUBLE in dtypes else DataType.FLOAT
    result = g.op("BatchNormalization", *(g.op("Cast", v, to=wide) for v in form.inputs), **form.attrs)
    return (g.op("Cast", result, to=form.x.dtype),)


def _own_statistics(g: Builder, form: Form) -> Form:
    """Running statistics that nobody else reads: in training ONNX Runtime writes the new ones over them, even over an array that it was fed with.

    Of constants it stores equal vectors of up to 8 numbers once (a new layer's statistics and weights are all ones), so that those
    may differ in the last digits here. A value of the graph is copied by an operator that ONNX Runtime does not see through.
    """
    if not form.attrs.get("training_mode"):
        return form
    kept = [v for v in form.inputs[3:] if v is not None]
    return form.change(inputs=[*form.inputs[:3], *(_own(g, v, 2 * len(g.block.nodes) + place) for place, v in enumerate(kept, 4))])


def _own(g: Builder, statistic: Value, number: int) -> Value:
    const = statistic.const
    if const is None:
        return g.op("Max", statistic, statistic)
    shift = number if const.tensor.numel() <= _SHARED else 0

    def own() -> torch.Tensor:
        return const.tensor.detach() * (1 + shift * 2**-22) + shift * 1e-30

    assert statistic.dtype is not None
    assert statistic.shape is not None
    return g.from_constant(Constant(None, compute=own, name=const.name, parameter=True), statistic.dtype, statistic.shape)


def _dropout(g: Builder, form: Form) -> Made:
    """Dropout-7 and -10 only ever run as in evaluation, where `ratio` says nothing. Their masks are of other types, or all False."""
    training = form.input(2)
    if training is not None and numbers(training) not in ([False], [0]):
        raise refusal(g, "Dropout in training mode", 12)
    if form.outputs > 1:
        return g.op("Dropout", form.x), g.op("Expand", g.const(True), g.shape(form.x))
    return form.change(inputs=form.inputs[:1], seed=None)


def _dropout_mask(g: Builder, form: Form) -> Made:
    """ONNX Runtime leaves a Dropout out whose mask nobody reads, also in training mode: so it is read."""
    training = form.input(2)
    if g.opset < 12 or form.outputs > 1 or training is None or numbers(training) in ([False], [0]) or form.x.dtype is None:
        return form
    kept, mask = g.op("Dropout", *form.inputs, outputs=2, **form.attrs)
    return (g.op("Where", mask, kept, g.const(0, form.x.dtype)),)


def _gemm(g: Builder, form: Form) -> Form:
    """Gemm-7 wants something to add."""
    if form.input(2) is not None:
        return form
    return form.change(inputs=(*form.inputs[:2], g.const([0], form.x.dtype)))


def _integer_gemm(g: Builder, form: Form) -> Made:
    """ONNX Runtime multiplies matrices of integers as MatMul only."""
    attrs = form.attrs
    if form.x.dtype not in INTEGERS or attrs.get("alpha", 1.0) != 1.0 or attrs.get("beta", 1.0) != 1.0:
        return form
    a, b = (g.op("Transpose", v, perm=[1, 0]) if attrs.get(flag) else v for v, flag in zip(form.inputs, ("transA", "transB")))
    result = g.op("MatMul", a, b)
    return (result if form.input(2) is None else g.op("Add", result, form.input(2)),)


# ---------------------------------------------------------------------- moving elements


def _slice(g: Builder, form: Form) -> Made:
    """Slice-1 has no steps; with steps, dims of known size are picked by number."""
    steps = numbers(form.input(4))
    if form.input(4) is None or (steps is not None and all(step == 1 for step in steps)):
        return form.change(inputs=form.inputs[:4])
    x = form.x
    starts, ends, axes = (numbers(form.input(i)) for i in (1, 2, 3))
    if starts is None or ends is None or steps is None or x.shape is None or (axes is None and form.input(3) is not None):
        raise refusal(g, "Slice with steps that are not 1", 10)
    result = x
    for axis, start, end, step in zip(axes or range(len(starts)), starts, ends, steps, strict=True):
        size = x.shape[axis]
        if not isinstance(size, int):
            raise refusal(g, f"Slice with step {step} of a dim that is not a number", 10)
        # Where the step is negative an end in front of the dim means "to the front", which Python spells None.
        stop = None if step < 0 and end < -size else end
        result = g.op("Gather", result, g.const(list(range(size))[start:stop:step], DataType.INT64), axis=axis)
    return (result,)


def _gather(g: Builder, form: Form) -> Form:
    """Until 10 indices counted from the front only (ONNX Runtime takes both, so that others are left as they are)."""
    indices = form.input(1)
    size = None if form.x.shape is None else form.x.shape[form.attrs.get("axis", 0)]
    if indices is None or indices.const is None or indices.const.is_lazy or not isinstance(size, int):
        return form
    tensor = indices.const.tensor
    if not bool((tensor < 0).any()):
        return form
    return form.change(inputs=(form.x, g.const(torch.where(tensor < 0, tensor + size, tensor))))


def _gather_range(g: Builder, form: Form) -> Form:
    """ONNX Runtime reads a Gather by a Range as a Slice, where an end of -1 (all, backwards) or a start of -3 counts from the back."""
    indices = form.input(1)
    made = None if indices is None else indices.node
    if indices is None or made is None or made.op_type != "Range":
        return form
    ends = [sizes(made.inputs[i]) for i in (0, 1)]
    if all(end is not None and dims.compare(">=", end[0], 0) for end in ends):
        return form
    return form.change(inputs=(form.x, g.op("Cast", indices, to=DataType.INT32)))


def _scan(g: Builder, form: Form) -> Form:
    """Scan-8 scanned a batch of sequences."""
    raise refusal(g, "Scan", 9)


def _pad_wrap(g: Builder, form: Form) -> Form:
    if form.attrs.get("mode") == "wrap":
        raise refusal(g, "Pad with mode 'wrap'", 19)
    return form


def _pad_axes(g: Builder, form: Form) -> Form:
    """Pads of some axes become pads of all."""
    if form.input(3) is None:
        return form
    rank, pads, axes = form.x.rank, sizes(form.input(1)), numbers(form.input(3))
    if rank is None or axes is None or pads is None:
        raise refusal(g, "Pad with 'axes' where the rank or the pads are not known", 18)
    full: list[Any] = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        full[axis % rank] = pads[i]
        full[axis % rank + rank] = pads[i + len(axes)]
    return form.change(inputs=(form.x, g.real(g.sizes(full)), form.input(2)))


def _pad_int64(g: Builder, form: Form) -> Made:
    """Pad-2 takes floats only: two halves, each of which float64 holds exactly."""
    if form.x.dtype != DataType.INT64:
        return form
    constant = numbers(form.input(2)) or [0]
    part = g.const(_PART, DataType.INT64)
    high = g.op("Div", form.x, part)
    low = g.op("Sub", form.x, g.op("Mul", high, part))
    top = abs(constant[0]) // _PART * (1 if constant[0] > 0 else -1)
    halves = []
    for half, fill in ((high, top), (low, constant[0] - top * _PART)):
        padded = g.op("Pad", g.op("Cast", half, to=DataType.DOUBLE), form.input(1), g.const(float(fill), DataType.DOUBLE), **form.attrs)
        halves.append(g.op("Cast", padded, to=DataType.INT64))
    return (g.op("Add", g.op("Mul", halves[0], part), halves[1]),)


def _split(g: Builder, form: Form) -> Form:
    """Without `num_outputs` all parts are equal; where they are not, their sizes are spelled out."""
    count = form.attrs.get("num_outputs")
    if count is None:
        return form
    size = None if form.x.shape is None else form.x.shape[form.attrs.get("axis", 0)]
    if isinstance(size, int):
        part = -(-size // count)
        parts = [max(0, min(part, size - part * i)) for i in range(count)]
        return form.change(inputs=(form.x, g.const(parts, DataType.INT64)), num_outputs=None)
    if size is None or not dims.equal(size % count, 0):
        raise refusal(g, "Split with 'num_outputs' of a dim that may not be a multiple of it", 18)
    return form.change(num_outputs=None)


def _reshape(g: Builder, form: Form) -> Form:
    """Until 13 a zero always meant "as in the input"."""
    if form.attrs.get("allowzero"):
        target = sizes(form.input(1))
        if target is None or any(dims.compare("!=", size, 0) is not True for size in target):
            raise refusal(g, "Reshape with 'allowzero' to a size that may be zero", 14)
    return form.change(allowzero=None)


def _flatten(g: Builder, form: Form) -> Made:
    """Flatten-1 takes floats only."""
    x = form.x
    if x.dtype in FLOATS or x.dtype == DataType.BFLOAT16:
        return form
    if x.shape is None:
        raise refusal(g, f"Flatten of {x.dtype and x.dtype.name}", 9)
    axis = form.attrs.get("axis", 1)
    axis += len(x.shape) if axis < 0 else 0
    return (g.op("Reshape", x, g.sizes([dims.product(x.shape[:axis]), -1 if axis < len(x.shape) else 1])),)


def _shape(g: Builder, form: Form) -> Made:
    """Shape gave all dims until 14."""
    start, end = form.attrs.get("start", 0), form.attrs.get("end")
    if start == 0 and end is None:
        return form.change(start=None)
    return (g.op("Slice", g.op("Shape", form.x), g.const([start]), g.const([2**63 - 1 if end is None else end]), g.const([0])),)


def _scatter_reduction(g: Builder, form: Form) -> Form:
    if form.attrs.get("reduction") in ("max", "min"):
        raise refusal(g, f"{form.op_type} with reduction {form.attrs['reduction']!r}", 18)
    return form


def _scatter(g: Builder, form: Form) -> Form:
    """ScatterElements was called Scatter."""
    if g.opset < 9:
        raise refusal(g, "ScatterElements", 9)
    if form.attrs.get("reduction", "none") != "none":
        raise refusal(g, "ScatterElements with 'reduction'", 16)
    axis = form.attrs.get("axis", 0)
    return form.change("Scatter", reduction=None, axis=axis + (form.x.rank or 0) if axis < 0 else axis)


def _depth_space(below: int) -> Any:
    """Only the "DCR" order was known: the other one is Reshape and Transpose."""

    def rule(g: Builder, form: Form) -> Made:
        if form.attrs.get("mode", "DCR") == "DCR":
            return form
        x, block = form.x, form.attrs["blocksize"]
        if x.shape is None:
            raise refusal(g, f"{form.op_type} with mode 'CRD'", below)
        n, c, h, w = x.shape
        if form.op_type == "DepthToSpace":
            inner, perm, outer = [n, c // block**2, block, block, h, w], [0, 1, 4, 2, 5, 3], [n, c // block**2, h * block, w * block]
        else:
            inner, perm = [n, c, h // block, block, w // block, block], [0, 1, 3, 5, 2, 4]
            outer = [n, c * block**2, h // block, w // block]
        return (g.op("Reshape", g.op("Transpose", g.op("Reshape", x, g.sizes(inner)), perm=perm), g.sizes(outer)),)

    return rule


# ---------------------------------------------------------------------- comparing and bounding


def _top_k(g: Builder, form: Form) -> Made:
    """TopK gave the largest, sorted; the smallest are the largest of the negated."""
    form = form.change(sorted=None)
    if form.attrs.get("largest", 1):
        return form.change(largest=None)
    if form.x.dtype not in FLOATS:
        raise refusal(g, "TopK with largest=0 of integers", 11)
    values, indices = g.op("TopK", g.op("Neg", form.x), form.input(1), outputs=2, axis=form.attrs.get("axis", -1))
    return g.op("Neg", values), indices


def _clip(g: Builder, form: Form) -> Made:
    """Integers came with 12, bounds as inputs with 11. A bound that is left out is infinity, which ONNX Runtime needs told."""
    bounds, dtype = form.inputs[1:3], form.x.dtype
    if not any(bounds) or dtype not in FLOATS:
        return form if g.opset >= 12 and any(bounds) else _clip_by_bounds(g, form)
    if kernels.lacking("Clip", g.opset, dtype) and g.opset >= 8:
        return _clip_by_bounds(g, form)
    low, high = form.input(1) or g.const(float("-inf"), dtype), form.input(2) or g.const(float("inf"), dtype)
    if g.opset >= 11:
        return form.change(inputs=(form.x, low, high))
    numbers_low, numbers_high = numbers(low), numbers(high)
    if numbers_low is None or numbers_high is None:
        return _clip_by_bounds(g, form)
    return form.change(inputs=(form.x,), min=float(numbers_low[0]), max=float(numbers_high[0]))


def _clip_by_bounds(g: Builder, form: Form) -> Made:
    result = form.x
    if form.input(1) is not None:
        result = g.op("Max", result, form.input(1))
    if form.input(2) is not None:
        result = g.op("Min", result, form.input(2))
    return (g.op("Identity", result) if result is form.x else result,)


def _extreme(comparison: str) -> Any:
    """Max-8 and Min-8 have floats only: of integers the greater (less) one is chosen."""

    def rule(g: Builder, form: Form) -> Made:
        if form.x.dtype not in INTEGERS:
            return _same_shapes(g, form)
        result = form.x
        for other in form.inputs[1:]:
            assert other is not None
            first = g.op(comparison, result, other)
            if g.opset >= 9:
                result = g.op("Where", first, result, other)
            else:
                result = g.op("Add", other, g.op("Mul", g.op("Cast", first, to=other.dtype), g.op("Sub", result, other)))
        return (g.op("Identity", result) if result is form.x else result,)

    return rule


def _same_shapes(g: Builder, form: Form) -> Form:
    """Max-6 and Min-6 do not broadcast."""
    shapes = {v.shape for v in form.inputs if v is not None}
    if g.opset >= 8 or len(form.inputs) == 1 or (len(shapes) == 1 and None not in shapes):
        return form
    if None in shapes:
        raise refusal(g, f"{form.op_type} that broadcasts", 8)
    largest = max((s for s in shapes if s is not None), key=len)
    target = list(largest)
    for shape in shapes:
        for i, size in enumerate(reversed(shape or ()), 1):
            if dims.equal(target[-i], 1):
                target[-i] = size
    whole = g.sizes(target)
    return form.change(inputs=[v if v is None or v.shape == tuple(target) else g.op("Expand", v, whole) for v in form.inputs])


def _relu(g: Builder, form: Form) -> Made:
    """Relu-13 and ONNX Runtime lack integers."""
    dtype = form.x.dtype
    if dtype not in INTEGERS or (g.opset >= 14 and not kernels.lacking("Relu", g.opset, dtype)):
        return form
    return (g.op("Max", form.x, g.const(0, dtype)),)


def _not_nan(g: Builder, x: Value) -> Value | None:
    """Where elements are numbers, in operators that every opset has; None where all of them surely are."""
    if x.dtype not in FLOATS:
        return None
    if x.const is not None and not x.const.is_lazy and not bool(x.const.tensor.isnan().any()):
        return None
    number: Value = g.op("Or", g.op("Less", x, g.const(1.0, x.dtype)), g.op("Greater", x, g.const(0.0, x.dtype)))
    return number


def unless_nan(g: Builder, result: Value, *operands: Value | None) -> Value:
    """`result`, but false where an operand is not a number."""
    for operand in operands:
        assert operand is not None
        number = _not_nan(g, operand)
        if number is not None:
            result = g.op("And", result, number)
    return result


def _equal(g: Builder, form: Form) -> Made:
    """Equal-7 compares integers and bools; floats are equal where neither is less."""
    if form.x.dtype not in FLOATS:
        return form
    a, b = form.inputs
    return (unless_nan(g, g.op("Not", g.op("Or", g.op("Less", a, b), g.op("Greater", a, b))), a, b),)


def _compare(g: Builder, form: Form) -> Made:
    """Greater-7 and Less-7 compare floats only: integers by the sign of differences that cannot overflow."""
    if form.x.dtype not in (DataType.INT64, DataType.INT32):
        return form
    a, b = form.inputs if form.op_type == "Greater" else form.inputs[::-1]
    two, zero = g.const(2, form.x.dtype), g.const(0.0)
    halves = g.op("Sub", g.op("Div", a, two), g.op("Div", b, two))
    by_half = g.op("Greater", g.op("Cast", halves, to=DataType.FLOAT), zero)
    tie = g.op("Equal", halves, g.const(0, form.x.dtype))
    by_all = g.op("Greater", g.op("Cast", g.op("Sub", a, b), to=DataType.FLOAT), zero)
    return (g.op("Or", by_half, g.op("And", tie, by_all)),)


def _pow(g: Builder, form: Form) -> Made:
    """Pow-7 has floats of one dtype: an integer power of integers is repeated multiplication."""
    base, exponent = form.inputs
    assert base is not None
    assert exponent is not None
    if base.dtype in FLOATS:
        return form if exponent.dtype == base.dtype else form.change(inputs=(base, g.op("Cast", exponent, to=base.dtype)))
    power = numbers(exponent)
    if power is None or len(power) != 1 or not 0 < power[0] <= 64 or power[0] != int(power[0]) or exponent.rank != 0:
        raise refusal(g, f"Pow of {base.dtype and base.dtype.name}", 12)
    result: Value | None = None
    square, rest = base, int(power[0])
    while rest:
        if rest & 1:
            result = square if result is None else g.op("Mul", result, square)
        rest >>= 1
        if rest:
            square = g.op("Mul", square, square)
    assert result is not None
    return (g.op("Identity", result) if result is base else result,)


def _mod(g: Builder, form: Form) -> Made:
    """Integers: what Div, which rounds towards zero, leaves; then with the sign of the divisor."""
    a, b = form.inputs
    if form.x.dtype not in INTEGERS:
        raise refusal(g, "Mod of floats", 10)
    narrow = form.x.dtype
    assert narrow is not None
    a, b = [g.op("Cast", v, to=DataType.INT64) for v in (a, b)]  # the sum below does not fit into a narrow type
    rest = g.op("Sub", a, g.op("Mul", g.op("Div", a, b), b))
    if not form.attrs.get("fmod"):
        known = numbers(b)
        fits = narrow != DataType.INT64 or (known is not None and all(abs(n) < 1 << 62 for n in known))
        if fits:
            shifted = g.op("Add", rest, b)
            rest = g.op("Sub", shifted, g.op("Mul", g.op("Div", shifted, b), b))
        else:
            rest = g.op("Add", rest, g.op("Mul", b, g.op("Cast", _other_sign(g, rest, b), to=DataType.INT64)))
    return (rest if narrow == DataType.INT64 else g.op("Cast", rest, to=narrow),)


def _float_mod(g: Builder, form: Form) -> Made:
    """Until 27 floats had only C's fmod: the result gets the sign of the divisor."""
    if form.attrs.get("fmod") or form.x.dtype not in FLOATS or g.opset < 10:
        return form
    a, b = form.inputs
    assert b is not None
    rest = g.op("Mod", a, b, fmod=1)
    return (g.op("Where", _other_sign(g, rest, b), g.op("Add", rest, b), rest),)


def _other_sign(g: Builder, rest: Value, b: Value) -> Value:
    """Whether a remainder has not the sign of its divisor."""
    zero = g.const(0, rest.dtype)
    other_side = g.op("Xor", g.op("Less", rest, zero), g.op("Less", b, zero))
    return g.op("And", g.op("Not", g.op("Equal", rest, zero)), other_side)


def _sum(g: Builder, form: Form) -> Made:
    """Sum-6 does not broadcast, and no Sum takes integers: as pairs."""
    alike = form.x.shape is not None and len({v.shape for v in form.inputs if v is not None}) == 1
    if form.x.dtype not in INTEGERS and (g.opset >= 8 or alike):
        return form
    result = form.x
    for other in form.inputs[1:]:
        result = g.op("Add", result, other)
    return (g.op("Identity", result) if result is form.x else result,)


def _mean(g: Builder, form: Form) -> Made:
    """Mean-6 does not broadcast, and ONNX Runtime has float32 only."""
    if g.opset >= 8 and not kernels.lacking("Mean", g.opset, form.x.dtype):
        return form
    return (g.op("Div", g.op("Sum", *form.inputs), g.const(float(len(form.inputs)), form.x.dtype)),)


# ---------------------------------------------------------------------- images, quantisation, signal


def _grid_sample(g: Builder, form: Form) -> Form:
    """Modes had other names, and only images could be sampled."""
    if form.x.rank != 4:
        raise refusal(g, "GridSample of anything but images", 20)
    mode = form.attrs.get("mode", "linear")
    return form.change(mode={"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))


def _roi_align(g: Builder, form: Form) -> Form:
    """Until 15 the coordinates were those that "output_half_pixel" names."""
    if form.attrs.get("coordinate_transformation_mode", "half_pixel") != "output_half_pixel":
        raise refusal(g, "RoiAlign with coordinate mode 'half_pixel'", 16)
    return form.change(coordinate_transformation_mode=None)


def _single_scale(form: Form) -> bool:
    scale = form.input(1)
    return scale is not None and scale.shape in ((), (1,))


def _quantize_axis(g: Builder, form: Form) -> Form:
    """Until 12 there was one scale for all."""
    if not _single_scale(form):
        raise refusal(g, f"{form.op_type} with a scale for each channel", 13)
    return form.change(axis=None)


def _in_numbers(g: Builder, form: Form) -> bool:
    """Whether to compute what no (de)quantising node can: ONNX Runtime has no kernel at 28, one scale only was known until 12."""
    able = kernels.runs(form.op_type, g.opset) and (g.opset >= 13 or _single_scale(form))
    return not able and not form.attrs.get("block_size") and form.input(1) is not None


def _quantize_dtype(g: Builder, form: Form) -> Form:
    """The dtype is that of the zero point, uint8 without one."""
    dtype, zero = form.attrs.get("output_dtype"), form.input(2)
    if not dtype:
        return form
    if zero is None and dtype != DataType.UINT8:
        scale = form.input(1)
        if scale is None or scale.shape is None or not dims.is_static(scale.shape):
            raise refusal(g, "QuantizeLinear with 'output_dtype'", 21)
        zero = g.op("Expand", g.const(0, DataType(dtype)), g.sizes(scale.shape)) if scale.rank else g.const(0, DataType(dtype))
    elif zero is not None and zero.dtype != dtype:
        raise refusal(g, "QuantizeLinear with 'output_dtype' that is not that of the zero point", 21)
    return form.change(inputs=(*form.inputs[:2], zero), output_dtype=None)


def _dequantize_dtype(g: Builder, form: Form) -> Made:
    """The result has the dtype of the scale."""
    dtype, scale = form.attrs.get("output_dtype"), form.input(1)
    form = form.change(output_dtype=None)
    if not dtype or (scale is not None and scale.dtype == dtype):
        return form
    return (g.op("Cast", g.op(form.op_type, *form.inputs, **form.attrs), to=dtype),)


def _channels(g: Builder, form: Form, value: Value) -> Value:
    """A scale or zero point of each channel, shaped so that it broadcasts against the data."""
    if value.rank == 0 or form.x.rank is None:
        return value
    axis = form.attrs.get("axis", 1)
    behind = form.x.rank - 1 - axis % form.x.rank
    return g.op("Reshape", value, g.const([-1] + [1] * behind)) if value.shape != (1,) else value


_BYTES = {DataType.INT8: (-128, 127), DataType.UINT8: (0, 255), DataType.INT16: (-32768, 32767), DataType.UINT16: (0, 65535)}


def _quantize(g: Builder, form: Form) -> Made:
    """Divided, rounded, shifted and bounded in numbers, where the target is a plain integer."""
    zero, scale, x = form.input(2), form.input(1), form.x
    dtype = zero.dtype if zero is not None else DataType(form.attrs.get("output_dtype") or DataType.UINT8)
    if not _in_numbers(g, form) or dtype not in _BYTES or scale is None:
        return form
    if x.dtype in (DataType.FLOAT16, DataType.BFLOAT16):
        x = g.op("Cast", x, to=DataType.FLOAT)
    number = g.op("Round", g.op("Div", x, g.op("Cast", _channels(g, form, scale), to=x.dtype)))
    if zero is not None:
        number = g.op("Add", number, g.op("Cast", _channels(g, form, zero), to=x.dtype))
    low, high = _BYTES[dtype]
    return (g.op("Cast", g.op("Clip", number, g.const(float(low), x.dtype), g.const(float(high), x.dtype)), to=dtype),)


def _dequantize(g: Builder, form: Form) -> Made:
    """Shifted and scaled in numbers, where the source is a plain integer."""
    zero, scale, x = form.input(2), form.input(1), form.x
    if not _in_numbers(g, form) or x.dtype not in {*_BYTES, DataType.INT32} or scale is None:
        return form
    if zero is not None:
        x = g.op("Sub", g.op("Cast", x, to=DataType.INT32), g.op("Cast", _channels(g, form, zero), to=DataType.INT32))
    result = g.op("Mul", g.op("Cast", x, to=scale.dtype), _channels(g, form, scale))
    dtype = form.attrs.get("output_dtype") or scale.dtype
    return (result if dtype == scale.dtype else g.op("Cast", result, to=dtype),)


def _dft(g: Builder, form: Form) -> Form:
    """The axis was an attribute, and by default the first behind the batch."""
    if form.input(2) is None:
        form = form.change(inputs=(form.x, form.input(1), g.const(-2, DataType.INT64)))
    axis = numbers(form.input(2))
    if axis is None or (axis[0] < 0 and form.x.rank is None):
        raise refusal(g, "DFT of an axis that is not known", 20)
    return form.change(inputs=(form.x, form.input(1), g.const(axis[0] % (form.x.rank or 1) if axis[0] < 0 else axis[0], DataType.INT64)))


_REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
               "ReduceSumSquare")
RULES: Rules = {
    **dict.fromkeys(_REDUCTIONS, ((18, _reduce),)),
    "ReduceSum": ((13, _reduce),),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), ((13, _softmax),)),
    "BatchNormalization": ((_EVERY, _own_statistics), (15, _batch_normalization)),
    "Clip": ((_EVERY, _clip),),
    "DFT": ((20, _dft),),
    "DepthToSpace": ((11, _depth_space(11)),),
    "DequantizeLinear": ((_EVERY, _dequantize), (23, _dequantize_dtype), (13, _quantize_axis)),
    "Dropout": ((_EVERY, _dropout_mask), (12, _dropout)),
    "Equal": ((11, _equal),),
    "Flatten": ((9, _flatten),),
    "Gather": ((_EVERY, _gather_range), (11, _gather)),
    "Gemm": ((_EVERY, _integer_gemm), (11, _gemm)),
    "Greater": ((9, _compare),),
    "GridSample": ((20, _grid_sample),),
    "Less": ((9, _compare),),
    "Max": ((12, _extreme("Greater")),),
    "Mean": ((_EVERY, _mean),),
    "Min": ((12, _extreme("Less")),),
    "Mod": ((28, _float_mod), (10, _mod)),
    "Pad": ((19, _pad_wrap), (18, _pad_axes), (11, _pad_int64)),
    "Pow": ((12, _pow),),
    "QuantizeLinear": ((_EVERY, _quantize), (21, _quantize_dtype), (13, _quantize_axis)),
    "Relu": ((_EVERY, _relu),),
    "Reshape": ((14, _reshape),),
    "RoiAlign": ((16, _roi_align),),
    "Scan": ((9, _scan),),
    "ScatterElements": ((18, _scatter_reduction), (11, _scatter)),
    "ScatterND": ((18, _scatter_reduction),),
    "Shape": ((15, _shape),),
    "Slice": ((10, _slice),),
    "SpaceToDepth": ((28, _depth_space(28)),),
    "Split": ((18, _split),),
    "Sum": ((_EVERY, _sum),),
    "TopK": ((11, _top_k),),
}
