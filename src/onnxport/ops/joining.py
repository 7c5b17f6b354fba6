"""Tensors put together and taken apart: cat, stack, split, chunk, unbind."""

from __future__ import annotations

import itertools

from onnxport import errors
from onnxport.ops.layout import atleast_1d, atleast_2d, atleast_3d
from onnxport.ops.pieces import counted, parts, picked, sliced
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, cast, promoted, rank_of, shape_of
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

# ---------------------------------------------------------------------- together


@aten("cat", "concat", "concatenate")
def cat(g: Builder, tensors: list[Value], dim: int = 0, axis: int | None = None) -> Value:
    """cat(Tensor[] tensors, int dim=0) -> Tensor: all in their common dtype. ONNX Concat.

    A tensor of shape (0,) may stand among tensors of any rank, and adds nothing.
    """
    values = promoted(g, *tensors)
    rank = max(rank_of(v) for v in values)
    kept = [v for v in values if rank_of(v) == rank and not (rank == 1 and v.shape == (0,))] or values[:1]
    position = axis_of(kept[0], dim if axis is None else axis)
    return kept[0] if len(kept) == 1 else g.op("Concat", *kept, axis=position)


@aten
def stack(g: Builder, tensors: list[Value], dim: int = 0) -> Value:
    """stack(Tensor[] tensors, int dim=0) -> Tensor

    ONNX Concat and one Reshape where a Reshape can say it without computing sizes, else Unsqueeze of each and Concat.
    """
    return stacked(g, promoted(g, *tensors), dim)


def stacked(g: Builder, values: list[Value], dim: int) -> Value:
    """Values of one dtype along a new axis."""
    rank = rank_of(values[0])
    axis = dim % (rank + 1)
    shape = next((v.shape for v in values if v.shape is not None and dims.is_static(v.shape)), shape_of(values[0]))
    if axis < rank and len(values) > 2 and isinstance(shape[axis], int) and sum(not isinstance(s, int) for s in shape[axis + 1:]) <= 1:
        whole = g.op("Concat", *values, axis=axis)
        return sizes.reshape(g, whole, [*shape_of(whole)[:axis], len(values), *shape[axis:]])
    return g.op("Concat", *(sizes.unsqueeze(g, v, [axis]) for v in values), axis=axis)


@aten
def hstack(g: Builder, tensors: list[Value]) -> Value:
    """hstack(Tensor[] tensors) -> Tensor: along axis 1, of vectors along axis 0. ONNX Concat."""
    values = [atleast_1d(g, x) for x in tensors]
    return cat(g, values, 0 if rank_of(values[0]) == 1 else 1)


@aten
def vstack(g: Builder, tensors: list[Value]) -> Value:
    """vstack(Tensor[] tensors) -> Tensor: rows below each other. ONNX Concat."""
    return cat(g, [atleast_2d(g, x) for x in tensors], 0)


@aten
def row_stack(g: Builder, tensors: list[Value]) -> Value:
    """row_stack(Tensor[] tensors) -> Tensor: another name of vstack."""
    return vstack(g, tensors)


@aten
def dstack(g: Builder, tensors: list[Value]) -> Value:
    """dstack(Tensor[] tensors) -> Tensor: along axis 2. ONNX Concat."""
    return cat(g, [atleast_3d(g, x) for x in tensors], 2)


@aten
def column_stack(g: Builder, tensors: list[Value]) -> Value:
    """column_stack(Tensor[] tensors) -> Tensor: vectors as columns, matrices side by side. ONNX Concat."""
    return cat(g, [sizes.reshape(g, x, [x.numel, 1]) if rank_of(x) <= 1 else x for x in tensors], 1)


@aten
def block_diag(g: Builder, tensors: list[Value]) -> Value:
    """block_diag(Tensor[] tensors) -> Tensor: each padded with columns of zeros, below each other. ONNX Pad, Concat."""
    values = [atleast_2d(g, x) for x in promoted(g, *tensors)]
    widths = [shape_of(v)[1] for v in values]
    total: Size = sum(widths)
    before: Size = 0
    rows = []
    for value, width in zip(values, widths, strict=True):
        rows.append(g.op("Pad", value, g.sizes([0, before, 0, total - before - width])))
        before = before + width
    return rows[0] if len(rows) == 1 else g.op("Concat", *rows, axis=0)


@aten
def _chunk_cat(g: Builder, tensors: list[Value], dim: int, num_chunks: int) -> Value:
    """_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor

    Each padded along `dim` to a multiple of the chunks, cut into them, all else flattened, and put side by side. ONNX Pad, Reshape, Concat.
    """
    rows = []
    for x in promoted(g, *tensors):
        shape, axis = shape_of(x), axis_of(x, dim)
        padded = dims.ceildiv(shape[axis], num_chunks) * num_chunks
        x = g.op("Pad", x, g.sizes([*[0] * (rank_of(x) + axis), padded - shape[axis], *[0] * (rank_of(x) - axis - 1)]))
        rows.append(sizes.reshape(g, x, [*shape[:axis], num_chunks, -1]))
    return rows[0] if len(rows) == 1 else g.op("Concat", *rows, axis=axis_of(tensors[0], dim) + 1)


# ---------------------------------------------------------------------- apart


@aten("split", "unsafe_split", "split_copy")
def split(g: Builder, self: Value, split_size: Size, dim: int = 0) -> list[Value]:
    """split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]: the last may be smaller. ONNX Split."""
    axis = axis_of(self, dim)
    size = shape_of(self)[axis]
    if size == 0 or dims.equal(size, split_size):
        return [self]
    count = counted(dims.maximum(dims.ceildiv(size, split_size), 1), f"split of dim {axis}")
    return parts(g, self, axis, [split_size] * (count - 1) + [size - split_size * (count - 1)])


@aten("split.sizes", "split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy")
def split_with_sizes(g: Builder, self: Value, split_sizes: list[Size] | None = None, dim: int = 0,
                     split_size: list[Size] | None = None) -> list[Value]:
    """split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]. ONNX Split."""
    given = split_sizes if split_sizes is not None else split_size or []
    return parts(g, self, axis_of(self, dim), given)


@aten("chunk", "unsafe_chunk")
def chunk(g: Builder, self: Value, chunks: int, dim: int = 0) -> list[Value]:
    """chunk(Tensor self, int chunks, int dim=0) -> Tensor[]: of equal size but for the last. ONNX Split.

    Two chunks of a dynamic axis are taken for two, though PyTorch gives one where its size is 1 (and the file an empty second).
    """
    axis = axis_of(self, dim)
    size = shape_of(self)[axis]
    if size == 0:
        return parts(g, self, axis, [0] * chunks)
    part = dims.ceildiv(size, chunks)
    if isinstance(size, int) or chunks != 2:
        chunks = counted(dims.ceildiv(size, part), f"chunk of dim {axis}")
    if not isinstance(size, int) and chunks > 1 and g.opset >= 18:
        return list(g.op("Split", self, axis=axis, num_outputs=chunks, outputs=chunks))
    return parts(g, self, axis, [part] * (chunks - 1) + [size - part * (chunks - 1)])


@aten("tensor_split", "tensor_split.sections", "tensor_split.indices")
def tensor_split(g: Builder, self: Value, sections: int | None = None, indices: list[Size] | None = None, dim: int = 0) -> list[Value]:
    """tensor_split.sections(Tensor self, SymInt sections, int dim=0) -> Tensor[]; tensor_split.indices(…, SymInt[] indices, int dim=0)

    Sections: the first ones are larger by one. Indices: as slices between them. ONNX Split, Slice.
    """
    axis = axis_of(self, dim)
    size = shape_of(self)[axis]
    if sections is not None:
        return parts(g, self, axis, [dims.floordiv(size + (sections - 1 - i), sections) for i in range(sections)])
    assert indices is not None
    bounds = [0, *indices]
    return [sliced(g, self, axis, start, end) for start, end in itertools.zip_longest(bounds, indices)]


@aten("tensor_split.tensor_indices_or_sections")
def tensor_split_tensor(g: Builder, self: Value, tensor_indices_or_sections: Value, dim: int = 0) -> list[Value]:
    """tensor_split.tensor_indices_or_sections(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]."""
    content = tensor_indices_or_sections.content
    if content is None and tensor_indices_or_sections.rank == 1:
        count = counted(shape_of(tensor_indices_or_sections)[0], "tensor_split")
        places = [g.op("Gather", cast(g, tensor_indices_or_sections, DataType.INT64), g.const(i), axis=0) for i in range(count)]
        content = tuple(g.integer(place) for place in places)
    if content is None:
        raise errors.UnsupportedError("tensor_split into as many parts as the graph computes: how many tensors it gives must be known")
    if tensor_indices_or_sections.rank == 0:
        return tensor_split(g, self, sections=counted(content[0], "tensor_split"), dim=dim)
    return tensor_split(g, self, indices=list(content), dim=dim)


@aten("hsplit", "hsplit.int", "hsplit.array")
def hsplit(g: Builder, self: Value, sections: int | None = None, indices: list[Size] | None = None) -> list[Value]:
    """hsplit.int(Tensor self, int sections) -> Tensor[]; hsplit.array(Tensor self, int[] indices): along axis 1, of vectors 0."""
    return tensor_split(g, self, sections, indices, 0 if rank_of(self) == 1 else 1)


@aten("vsplit", "vsplit.int", "vsplit.array")
def vsplit(g: Builder, self: Value, sections: int | None = None, indices: list[Size] | None = None) -> list[Value]:
    """vsplit.int(Tensor self, int sections) -> Tensor[]; vsplit.array(Tensor self, int[] indices): along axis 0."""
    return tensor_split(g, self, sections, indices, 0)


@aten("dsplit", "dsplit.int", "dsplit.array")
def dsplit(g: Builder, self: Value, sections: int | None = None, indices: list[Size] | None = None) -> list[Value]:
    """dsplit.int(Tensor self, int sections) -> Tensor[]; dsplit.array(Tensor self, int[] indices): along axis 2."""
    return tensor_split(g, self, sections, indices, 2)


@aten("unbind", "unbind_copy")
def unbind(g: Builder, self: Value, dim: int = 0) -> list[Value]:
    """unbind.int(Tensor self, int dim=0) -> Tensor[]. ONNX Gather for each."""
    axis = axis_of(self, dim)
    count = counted(shape_of(self)[axis], f"unbind (iteration, unpacking) of dim {axis}")
    return [picked(g, self, axis, i) for i in range(count)]
