"""Diagonals: read, and made into matrices."""

from __future__ import annotations

import torch

from onnxport.ops.attention import count_up
from onnxport.ops.layout import merged, permuted
from onnxport.ops.pieces import END, sliced
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, rank_of, shape_of, zero
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import Value


@aten("diagonal", "diagonal_copy")
def diagonal(g: Builder, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor: (*, n), the other dims first.

    Both dims as one: ONNX Slice with steps of one row and one.
    """
    return _diagonal(g, self, offset, dim1, dim2)


@aten
def linalg_diagonal(g: Builder, A: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor: as diagonal."""
    return _diagonal(g, A, offset, dim1, dim2)


def _diagonal(g: Builder, x: Value, offset: int, dim1: int, dim2: int) -> Value:
    axes = [axis_of(x, dim1), axis_of(x, dim2)]
    x = permuted(g, x, [*(a for a in range(rank_of(x)) if a not in axes), *axes])
    *batch, rows, columns = shape_of(x)
    rank = len(batch) + 2
    length = dims.maximum(dims.minimum(rows + min(offset, 0), columns - max(offset, 0)), 0)
    if length == 0:
        return sizes.reshape(g, sliced(g, sliced(g, x, rank - 2, 0, 0), rank - 1, 0, 1 if columns != 0 else 0), [*batch, 0])
    flat = merged(g, x, rank - 2, rank)
    # A row further the diagonal has moved one column: past the last column it must stop, past the last row there is nothing.
    start = offset if offset >= 0 else columns * -offset
    end = END if offset <= 0 and dims.equal(rows, columns) else columns * dims.maximum(columns - offset, 0)
    if isinstance(columns, int):
        result = sliced(g, flat, rank - 2, start, end, columns + 1)
    else:
        result = g.op("Slice", flat, g.sizes([start]), g.sizes([end]), g.const([rank - 2]), g.sizes([columns + 1]))
    result.shape = (*batch, length)
    return result


def diagonal_mask(g: Builder, rows: Size, columns: Size, offset: int) -> Value:
    """(rows, columns), true on the diagonal: a constant where both are numbers."""
    if isinstance(rows, int) and isinstance(columns, int):
        mask = torch.zeros(rows, columns, dtype=torch.bool)
        if -rows < offset < columns:
            mask.diagonal(offset).fill_(True)
        return g.const(mask)
    down = g.op("Add", count_up(g, rows), g.const(offset))
    return g.op("Equal", count_up(g, columns), sizes.unsqueeze(g, down, [1]))


@aten
def diag_embed(g: Builder, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor: (*, n) to (*, m, m), m = n + |offset|. ONNX Where."""
    rank = rank_of(self) + 1
    first, second = dim1 % rank, dim2 % rank
    size = shape_of(self)[-1] + abs(offset)
    x = self
    if offset:
        edge = [0] * (rank - 2)
        x = g.op("Pad", x, g.const([*edge, max(offset, 0), *edge, max(-offset, 0)]))
    made = g.op("Where", diagonal_mask(g, size, size, offset), sizes.unsqueeze(g, x, [rank - 2]), zero(g, self.dtype))  # type: ignore[arg-type]
    rest = iter(range(rank - 2))
    return permuted(g, made, [rank - 2 if a == first else rank - 1 if a == second else next(rest) for a in range(rank)])


@aten
def diag(g: Builder, self: Value, diagonal: int = 0) -> Value:
    """diag(Tensor self, int diagonal=0) -> Tensor: of a vector the matrix, of a matrix the diagonal. ONNX Where; Slice."""
    return diag_embed(g, self, diagonal) if rank_of(self) == 1 else _diagonal(g, self, diagonal, 0, 1)


@aten
def diagflat(g: Builder, self: Value, offset: int = 0) -> Value:
    """diagflat(Tensor self, int offset=0) -> Tensor: the matrix of all elements in a row. ONNX Reshape, Where."""
    return diag_embed(g, sizes.reshape(g, self, [-1]), offset)
