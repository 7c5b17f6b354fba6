"""RoiAlign said with Gather, for opsets at which ONNX Runtime has no kernel for it."""

from __future__ import annotations

import torch

from onnxport import errors
from onnxport.ops.support import shape_of, tensor
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.value import DataType, Value


def boxes_of(g: Builder, rois: Value) -> tuple[Value, Value]:
    """(boxes, 5) as boxes (boxes, 4) and the numbers of their images (boxes,)."""
    boxes = g.op("Slice", rois, g.const([1]), g.const([5]), g.const([1]))
    images = g.op("Cast", g.op("Gather", rois, g.const(0), axis=1), to=DataType.INT64)
    return boxes, images


def align(g: Builder, x: Value, rois: Value, scale: float | Value, height: int, width: int, ratio: int, aligned: bool) -> Value:
    """Each bin is the mean of `ratio` x `ratio` points, each the bilinear mean of four pixels."""
    if ratio <= 0:
        raise errors.UnsupportedError(f"roi_align with as many samples as each box needs (sampling_ratio={ratio}) runs up to opset 21; "
                                      f"at opset {g.opset} ONNX Runtime has no RoiAlign")
    boxes, images = boxes_of(g, rois)
    dtype = x.dtype
    assert dtype is not None
    n, channels, h, w = shape_of(x)
    scaled = g.op("Mul", boxes, tensor(g, scale, dtype))
    if aligned:
        scaled = g.op("Sub", scaled, g.const(0.5, dtype))
    columns = [g.op("Slice", scaled, g.const([i]), g.const([i + 1]), g.const([1])) for i in range(4)]
    rows, across = (_samples(g, columns[i], columns[i + 2], bins, ratio, size, aligned, dtype)
                    for i, bins, size in ((1, height, h), (0, width, w)))
    # Pixels as rows (N H W, C), so that a place is one number.
    pixels = sizes.reshape(g, g.op("Transpose", x, perm=[0, 2, 3, 1]), [n * h * w, channels])
    base = sizes.unsqueeze(g, g.op("Mul", images, g.scalar(h * w)), [1, 2])
    total: Value | None = None
    for y, y_weight in rows:
        line = g.op("Add", base, sizes.unsqueeze(g, g.op("Mul", y, g.scalar(w)), [2]))
        for c, c_weight in across:
            place = g.op("Add", line, sizes.unsqueeze(g, c, [1]))
            weight = g.op("Mul", sizes.unsqueeze(g, y_weight, [2]), sizes.unsqueeze(g, c_weight, [1]))
            part = g.op("Mul", g.op("Gather", pixels, place, axis=0), sizes.unsqueeze(g, weight, [3]))
            total = part if total is None else g.op("Add", total, part)
    assert total is not None
    bins = sizes.reshape(g, total, [shape_of(rois)[0], height, ratio, width, ratio, channels])
    mean = g.op("ReduceMean", bins, g.const([2, 4]), keepdims=0)
    return g.op("Transpose", mean, perm=[0, 3, 1, 2])


def _samples(g: Builder, start: Value, end: Value, bins: int, ratio: int, size: object, aligned: bool,
             dtype: DataType) -> list[tuple[Value, Value]]:
    """The two pixels on either side of each sample along one dim, (boxes, bins ratio), and their weights."""
    length = g.op("Sub", end, start)
    if not aligned:
        length = g.op("Max", length, g.const(1.0, dtype))
    steps = (torch.arange(bins * ratio, dtype=torch.float64) + 0.5) / (bins * ratio)
    place = g.op("Add", start, g.op("Mul", length, g.const(steps.tolist(), dtype)))
    last = g.scalar(size - 1)  # type: ignore[operator]
    # A point more than one pixel outside counts nothing; nearer ones are moved to the border.
    outside = g.op("Or", g.op("Less", place, g.const(-1.0, dtype)),
                   g.op("Greater", place, g.op("Cast", g.scalar(size), to=dtype)))  # type: ignore[arg-type]
    counts = g.op("Cast", g.op("Not", outside), to=dtype)
    clamped = g.op("Min", g.op("Max", place, g.const(0.0, dtype)), g.op("Cast", last, to=dtype))
    low = g.op("Floor", clamped)
    rest = g.op("Sub", clamped, low)
    below = g.op("Cast", low, to=DataType.INT64)
    above = g.op("Min", g.op("Add", below, g.const(1)), last)
    high_weight = g.op("Mul", counts, rest)
    return [(below, g.op("Sub", counts, high_weight)), (above, high_weight)]
