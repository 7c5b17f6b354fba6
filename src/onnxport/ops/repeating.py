"""Elements several times: repeat, tile, repeat_interleave, and combinations of elements."""

from __future__ import annotations

import itertools

import torch

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.scattering import scatter_elements
from onnxport.ops.support import axis_of, cast, rank_of, shape_of
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64


@aten("repeat", "tile")
def repeat(g: Builder, self: Value, repeats: list[Size] | None = None, dims: list[Size] | None = None) -> Value:
    """repeat(Tensor self, SymInt[] repeats) -> Tensor; tile(Tensor self, SymInt[] dims), where missing dims count as 1.

    ONNX Expand where each repeated dim is 1 or new, else Tile.
    """
    times: list[Size] = list(repeats if repeats is not None else dims or [])
    times = [*[1] * (rank_of(self) - len(times)), *times]
    new = len(times) - rank_of(self)
    shape = [*[1] * new, *shape_of(self)]
    if all(size == 1 or count == 1 for size, count in zip(shape, times, strict=True)):
        return sizes.expand(g, self, [count if size == 1 else size for size, count in zip(shape, times, strict=True)])
    return g.op("Tile", sizes.unsqueeze(g, self, list(range(new))), g.sizes(times))


@aten("repeat_interleave.self_int")
def repeat_interleave(g: Builder, self: Value, repeats: Size, dim: int | None = None, output_size: Size | None = None) -> Value:
    """repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor

    ONNX Gather by a table where the size is known, else Unsqueeze, Expand, Reshape.
    """
    x, axis = _axis(g, self, dim)
    shape = shape_of(x)
    size = shape[axis]
    if isinstance(size, int) and isinstance(repeats, int) and size * repeats <= 4096:
        return g.op("Gather", x, g.const([i for i in range(size) for _ in range(repeats)], INT64), axis=axis)
    wide = sizes.expand(g, sizes.unsqueeze(g, x, [axis + 1]), [*shape[:axis + 1], repeats, *shape[axis + 1:]])
    return sizes.reshape(g, wide, [*shape[:axis], size * repeats, *shape[axis + 1:]])


def _axis(g: Builder, x: Value, dim: int | None) -> tuple[Value, int]:
    """Without a dim the elements in a row."""
    return (sizes.reshape(g, x, [-1]), 0) if dim is None or rank_of(x) == 0 else (x, axis_of(x, dim))


@aten("repeat_interleave.self_Tensor")
def repeat_interleave_tensor(g: Builder, self: Value, repeats: Value, dim: int | None = None, output_size: Size | None = None) -> Value:
    """repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor

    Each slice as often as its number says. ONNX Gather by what `repeat_interleave.Tensor` gives.
    """
    x, axis = _axis(g, self, dim)
    if repeats.numel == 1 and (repeats.content is not None or repeats.const is not None):
        return repeat_interleave(g, x, g.size_of(repeats), axis)
    counts = sizes.expand(g, sizes.reshape(g, repeats, [-1]), [shape_of(x)[axis]])
    return g.op("Gather", x, interleaved(g, counts, output_size), axis=axis)


@aten("repeat_interleave.Tensor")
def repeat_interleave_places(g: Builder, repeats: Value, output_size: Size | None = None) -> Value:
    """repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor: 0 repeats[0] times, 1 repeats[1] times, ..."""
    return cast(g, interleaved(g, repeats, output_size), repeats.dtype)  # type: ignore[arg-type]


def interleaved(g: Builder, counts: Value, length: Size | None) -> Value:
    """Each place as often as its count: a mark where each begins, summed up.

    Places that begin together (the former have the count 0) add their marks (opset 16); below, only those with a count
    make one, of as many as the places that they are ahead of the last.
    """
    if counts.const is not None:
        return g.const(torch.repeat_interleave(counts.const.tensor))
    if g.opset < 11:
        raise errors.UnsupportedError(f"repeat_interleave by computed numbers needs opset 11 or higher (opset_version={g.opset} was asked)")
    counts, zero, one = cast(g, counts, INT64), g.const([0]), g.const([1])
    starts = g.op("CumSum", counts, g.const(0), exclusive=1)
    total = g.sizes([length]) if length is not None else g.op("ReduceSum", counts, g.const([0]), keepdims=1)
    if g.opset >= 16:
        marks = g.op("Expand", zero, g.op("Add", total, one))
        marks = scatter_elements(g, marks, starts, sizes.expand(g, one, shape_of(counts)), 0, "add")
        marks = g.op("Slice", marks, zero, g.const([-1]), zero)
        return _of_length(g.op("Sub", g.op("CumSum", marks, g.const(0)), one), length)
    held = sizes.reshape(g, g.op("NonZero", counts), [-1])
    before = g.op("Concat", zero, g.op("Slice", held, zero, g.const([-1]), zero), axis=0)
    marks = g.op("Expand", zero, total)
    ahead = g.op("Slice", g.op("Sub", held, before), zero, g.op("Shape", held), zero)  # nothing is held: nothing is ahead
    marks = scatter_elements(g, marks, g.op("Gather", starts, held, axis=0), ahead, 0)
    return _of_length(g.op("CumSum", marks, g.const(0)), length)


def _of_length(x: Value, length: Size | None) -> Value:
    if length is not None:
        x.shape = (length,)
    return x


@aten
def combinations(g: Builder, self: Value, r: int = 2, with_replacement: bool = False) -> Value:
    """combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor: (how many, r). ONNX Gather by a table."""
    size = shape_of(self)[0]
    if isinstance(size, Dim):
        raise errors.UnsupportedError(f"combinations of {size} elements: the number must be fixed")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(size), r))
    return g.op("Gather", self, g.const(torch.tensor(rows, dtype=torch.int64).reshape(len(rows), r)), axis=0)

