"""Packed sequences: steps of sequences of different lengths, without the padding.

PyTorch keeps them as `data`, all steps in order of time, and `batch_sizes`, how many sequences still run at each step.
ONNX knows padded tensors and lengths. What was packed here is remembered with its padded form, so that a recurrent net
between packing and unpacking costs no packing at all; other data are unpacked by their batch sizes.
"""

from __future__ import annotations

from typing import NamedTuple

from onnxport.ops.attention import count_up
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, rank_of, shape_of, zero
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import reshape, unsqueeze
from onnxport.target.value import DataType, Value


class Sequence(NamedTuple):
    """padded (T, B, ...), lengths (B,) int64 in falling order; clean: behind its length a sequence is 0."""

    padded: Value
    lengths: Value
    clean: bool


def _running(g: Builder, steps: Size, lengths: Value) -> Value:
    """(T, B) bool: whether a sequence still runs at a step."""
    return g.op("Less", unsqueeze(g, count_up(g, steps), [1]), lengths)


def packed(g: Builder, padded: Value, lengths: Value, *, clean: bool) -> Value:
    """The data (all steps, ...) of padded (T, B, ...); it remembers where it comes from."""
    steps, batch, *rest = shape_of(padded)
    running = reshape(g, _running(g, steps, lengths), [-1])
    data: Value = g.op("Compress", reshape(g, padded, [dims.product([steps, batch]), *rest]), running, axis=0)
    g.block.known["packed", data.key] = (padded, lengths, g.const(clean))
    return data


def unpacked(g: Builder, data: Value, batch_sizes: Value) -> Sequence:
    """The sequence that was packed, or one that is put together from the data."""
    found = g.block.known.get(("packed", data.key))
    if found is not None:
        padded, lengths, clean = found
        return Sequence(padded, lengths, clean is g.const(True))
    steps, batch = shape_of(batch_sizes)[0], g.size_of(g.op("Gather", batch_sizes, g.const(0), axis=0))
    running = g.op("Less", count_up(g, batch), unsqueeze(g, batch_sizes, [1]))
    assert data.dtype is not None
    nothing = g.op("Expand", zero(g, data.dtype), g.sizes([steps, batch, *shape_of(data)[1:]]))
    padded = g.op("ScatterND", nothing, g.op("Transpose", g.op("NonZero", running), perm=[1, 0]), data)
    lengths = g.op("ReduceSum", g.op("Cast", running, to=DataType.INT64), g.const([0]), keepdims=0)
    return Sequence(padded, lengths, True)


@aten(fold=False)
def _pack_padded_sequence(g: Builder, input: Value, lengths: Value, batch_first: bool) -> tuple[Value, Value]:
    """_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor data, Tensor batch_sizes)

    input (T, B, ...), or (B, T, ...); lengths (B,) int64, falling. ONNX Less, Compress, ReduceSum, Slice.
    """
    if batch_first:
        input = g.op("Transpose", input, perm=[1, 0, *range(2, rank_of(input))])
    data = packed(g, input, lengths, clean=False)
    running = _running(g, shape_of(input)[0], lengths)
    sizes = g.op("ReduceSum", g.op("Cast", running, to=DataType.INT64), g.const([1]), keepdims=0)
    return data, _first_steps(g, sizes, _longest(g, lengths))


def _longest(g: Builder, lengths: Value) -> Size:
    """The longest length: the first."""
    return g.size_of(g.op("Slice", lengths, g.const([0]), g.const([1]), g.const([0])))


def _first_steps(g: Builder, x: Value, steps: Size) -> Value:
    """The first steps of x, which has at least as many."""
    result: Value = g.op("Slice", x, g.const([0]), g.sizes([steps]), g.const([0]))
    result.shape = (steps, *shape_of(x)[1:])
    return result


@aten(fold=False)
def _pad_packed_sequence(g: Builder, data: Value, batch_sizes: Value, batch_first: bool, padding_value: Number,
                         total_length: Size) -> tuple[Value, Value]:
    """_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)

    (T, B, ...), or (B, T, ...), and the lengths; T is total_length or, where this is -1, the longest length. ONNX Slice, Pad, Where.
    """
    x, lengths, clean = unpacked(g, data, batch_sizes)
    if total_length == -1 or dims.equal(total_length, shape_of(batch_sizes)[0]):
        x = _first_steps(g, x, shape_of(batch_sizes)[0])
    else:
        x = _with_steps(g, x, total_length)
    if not clean or padding_value != 0:
        running = _running(g, shape_of(x)[0], lengths)
        x = g.op("Where", unsqueeze(g, running, range(2, rank_of(x))), x, g.const(padding_value, x.dtype))
    if batch_first:
        x = g.op("Transpose", x, perm=[1, 0, *range(2, rank_of(x))])
    return x, lengths


def _with_steps(g: Builder, x: Value, steps: Size) -> Value:
    """`x` (T, ...) with `steps` steps: cut, or filled with zeros."""
    now = shape_of(x)[0]
    if dims.compare(">=", now, steps) is not True:
        more = dims.maximum(steps - now, 0)
        x = g.op("Pad", x, g.sizes([0] * rank_of(x) + [more] + [0] * (rank_of(x) - 1)))
    return _first_steps(g, x, steps)
