"""Views by strides. `aten/passes/strided.py` has made a row, in the order of memory, of what they look at."""

from __future__ import annotations

from collections.abc import Sequence

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.scattering import scatter_nd
from onnxport.ops.support import shape_of, tensor
from onnxport.ops.windows import arange
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import expand, reshape, unsqueeze
from onnxport.target.value import Value


@aten("as_strided", "as_strided_copy")
def as_strided(g: Builder, self: Value, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None) -> Value:
    """as_strided(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor. ONNX Reshape, Gather.

    self: the memory as a row. Blocks of it that lie together are gathered as one.
    """
    start = 0 if storage_offset is None else storage_offset
    _check(shape_of(self)[0], size, stride, start)
    block, count = _block(shape_of(self)[0], size, stride, start)
    places = _places(g, size[:count], [dims.floordiv(s, block) for s in stride[:count]], dims.floordiv(start, block))
    return reshape(g, g.op("Gather", reshape(g, self, [-1, block]), places, axis=0), size)


def _check(length: Size, size: Sequence[Size], stride: Sequence[Size], start: Size) -> None:
    if 0 in size or not dims.is_static([length, *size, *stride, start]):
        return
    last = start + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if last >= length:  # type: ignore[operator]
        raise errors.UnsupportedError(f"as_strided with the sizes {list(size)} and strides {list(stride)} from {start} on reads memory beyond its "
                                      f"tensor, which has {length} elements; take it of the tensor that this one is a part of")


def _block(length: Size, size: Sequence[Size], stride: Sequence[Size], start: Size) -> tuple[int, int]:
    """(how many elements always lie together, of how many leading dims the places are computed)."""
    block, count = 1, len(size)
    while count and stride[count - 1] == block:
        last = size[count - 1]
        if not isinstance(last, int) or last == 0:
            break
        wider = block * last
        if any(dims.mod(s, wider) != 0 for s in (length, start, *stride[:count - 1])):
            break
        block, count = wider, count - 1
    return block, count


def _places(g: Builder, size: Sequence[Size], stride: Sequence[Size], start: Size) -> Value:
    """Where each block begins, as int64 of the leading dims' sizes."""
    places = g.scalar(start)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        along = g.op("Mul", arange(g, count), g.scalar(step))
        places = g.op("Add", places, unsqueeze(g, along, list(range(1, len(size) - axis))))
    return places


@aten
def as_strided_scatter(g: Builder, self: Value, src: Value, size: Sequence[Size], stride: Sequence[Size],
                       storage_offset: Size | None = None) -> Value:
    """as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor

    self is contiguous. ONNX ScatterND of all elements in a row.
    """
    row, start = reshape(g, self, [-1]), 0 if storage_offset is None else storage_offset
    _check(shape_of(row)[0], size, stride, start)
    places = reshape(g, _places(g, size, stride, start), [-1, 1])
    source = reshape(g, expand(g, tensor(g, src, self.dtype), size), [-1])
    return reshape(g, scatter_nd(g, row, places, source), shape_of(self))
