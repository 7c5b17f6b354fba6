"""Pieces of a tensor along one axis: slices, single places, parts. Used by the layout and indexing families."""

from __future__ import annotations

from collections.abc import Sequence

from onnxport import errors
from onnxport.ops.support import shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import squeeze
from onnxport.target.value import Value

END = (1 << 63) - 1
BACK = -END  # where a slice that runs backwards ends when it takes the first element too


def sliced(g: Builder, x: Value, axis: int, start: Size = 0, end: Size | None = None, step: int = 1) -> Value:
    """`x[start:end:step]` along `axis` (not negative), with Python's meaning of negative and far bounds. ONNX Slice.

    A slice of a slice along other axes is one Slice.
    """
    size = shape_of(x)[axis]
    end = (END if step > 0 else BACK) if end is None else end
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int) and step > 0:
        start, end, _ = slice(start, end).indices(size)
        end = max(start, end)
    bounds: list[list[Size]] = [[start], [end], [axis], [step]]
    maker = x.node
    if maker is not None and maker.op_type == "Slice" and not maker.domain:
        inner = [v.content for v in maker.inputs[1:] if v is not None]
        if len(inner) in (3, 4) and None not in inner and axis not in inner[2]:  # type: ignore[operator]
            before = [list(c) for c in inner if c is not None]
            before += [[1] * len(before[0])] * (4 - len(before))
            bounds = [a + b for a, b in zip(before, bounds, strict=True)]
            assert maker.inputs[0] is not None
            x = maker.inputs[0]
    steps = None if all(s == 1 for s in bounds[3]) else g.sizes(bounds[3])
    return g.op("Slice", x, *(g.sizes(b) for b in bounds[:3]), steps)


def picked(g: Builder, x: Value, axis: int, index: Size) -> Value:
    """`x` at one place along `axis`, which goes away. ONNX Gather; below opset 11, where it may not be negative, Slice."""
    size = shape_of(x)[axis]
    if isinstance(index, int) and index < 0:
        if isinstance(size, int):
            index += size
        elif g.opset < 11:
            return squeeze(g, sliced(g, x, axis, index, index + 1 or None), [axis])
    return g.op("Gather", x, g.scalar(index), axis=axis)


def parts(g: Builder, x: Value, axis: int, sizes: Sequence[Size]) -> list[Value]:
    """`x` cut along `axis` into parts of these sizes. ONNX Split; where the sizes are dynamic below opset 13, Slice."""
    if len(sizes) <= 1:
        return [x] * len(sizes)
    if dims.is_static(sizes):
        return list(g.op("Split", x, g.sizes(sizes), axis=axis, outputs=len(sizes)))
    if all(dims.equal(s, sizes[0]) for s in sizes):
        return list(g.op("Split", x, axis=axis, num_outputs=len(sizes), outputs=len(sizes)))
    if g.opset >= 13:
        return list(g.op("Split", x, g.sizes(sizes), axis=axis, outputs=len(sizes)))
    result, position = [], 0
    for size in sizes:
        end: Size = position + size
        result.append(sliced(g, x, axis, position, end))
        position = end  # type: ignore[assignment]
    return result


def counted(size: Size, what: str) -> int:
    """How many tensors a list will hold; an error where that varies with a dynamic axis."""
    if isinstance(size, int):
        return size
    raise errors.BakedValueError(
        f"{what} gives a list of {size} tensors, as many as a dynamic axis says: a Python loop or unpacking of it holds for one size "
        "only; make this axis static, or compute on the whole tensor")
