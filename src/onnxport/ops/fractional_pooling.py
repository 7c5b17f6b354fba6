"""Max pooling over windows of one size whose starts are spread by random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from onnxport import errors
from onnxport.ops import windows
from onnxport.ops.indexing import gather
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, pair, shape_of
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64


@aten("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(g: Builder, self: Value, kernel_size: int | Sequence[int], output_size: Size | Sequence[Size],
                        random_samples: Value) -> list[Value]:
    """fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor); 3d likewise

    (N, C, *spatial) or (C, *spatial), random_samples (N, C, spatial dims): the maxima, and their places within the plane.
    ONNX GatherElements, ReduceMax, ArgMax.
    """
    count = 2 if isinstance(kernel_size, int) else len(kernel_size)
    kernel = pair(kernel_size, count)
    output = list(output_size) if isinstance(output_size, Sequence) else [output_size] * count
    outer, spatial = shape_of(self)[:-count], shape_of(self)[-count:]
    if len(outer) == 2 and not dims.equal(shape_of(random_samples)[0], outer[0]):
        raise errors.UnsupportedError(f"the given random samples are for {shape_of(random_samples)[0]} inputs, and there are {outer[0]}; "
                                      "keep this axis static, or give none")
    # In the plane PyTorch takes the samples from the last dim on, in space from the first.
    order = [1, 0] if count == 2 else [0, 1, 2]
    place: Value | None = None
    for i in range(count):
        sample = g.op("Gather", random_samples, g.const(order[i]), axis=-1)
        sample = sample if len(outer) == 2 else sizes.squeeze(g, sample, [0])
        starts = _starts(g, self, sizes.unsqueeze(g, sample, [-1]), spatial[i], kernel[i], output[i])
        at = g.op("Add", sizes.unsqueeze(g, starts, [-1]), windows.arange(g, kernel[i]))  # (..., out, kernel)
        at = sizes.unsqueeze(g, at, [a - 2 * count for a in range(2 * count) if a not in (i, count + i)])
        place = at if place is None else g.op("Add", g.op("Mul", place, g.scalar(spatial[i])), at)
    assert place is not None
    volume = dims.product(kernel)
    row = sizes.reshape(g, place, [*outer, dims.product(output) * volume])
    values = gather(g, sizes.reshape(g, self, [*outer, dims.product(spatial)]), -1, row)
    values, places = (sizes.reshape(g, v, [*outer, *output, volume]) for v in (values, row))
    best = g.op("ArgMax", values, axis=-1, keepdims=1)
    index = gather(g, places, -1, best)
    return [g.op("ReduceMax", values, g.const([-1]), keepdims=0), sizes.squeeze(g, index, [-1])]


def _starts(g: Builder, x: Value, sample: Value, size: Size, kernel: int, output: Size) -> Value:
    """Where the windows of one dim start, (..., output): the last one at the end."""
    dtype = x.dtype or DataType.FLOAT
    at = windows.arange(g, output)
    room = g.scalar(size - kernel)
    gaps = cast(g, g.scalar(dims.maximum(output - 1, 1)), dtype)
    step = g.op("Div", cast(g, room, dtype), gaps)
    sample = cast(g, sample, dtype)
    reached, first = (cast(g, g.op("Mul", v, step), INT64) for v in (g.op("Add", cast(g, at, dtype), sample), sample))
    return g.op("Where", g.op("Equal", at, g.scalar(output - 1)), room, g.op("Sub", reached, first))
