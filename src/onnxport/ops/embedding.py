"""Rows of a table: embedding, bags of embeddings, one-hot vectors."""

from __future__ import annotations

import torch

from onnxport.ops.cumulative import cumsum
from onnxport.ops.norms import linalg_vector_norm
from onnxport.ops.pieces import sliced
from onnxport.ops.registry import aten
from onnxport.ops.scattering import scatter_elements, scatter_nd
from onnxport.ops.support import cast, shape_of, tensor
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64


@aten
def embedding(g: Builder, weight: Value, indices: Value, padding_idx: Size = -1) -> Value:
    """embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor

    `padding_idx` matters to gradients only. ONNX Gather.
    """
    if indices.dtype not in (INT64, DataType.INT32):
        indices = cast(g, indices, INT64)
    if weight.node is not None:
        rescaled = g.block.known.get(("rescaled", weight.key, sizes.reshape(g, indices, [-1]).key))
        if rescaled is not None:
            return sizes.reshape(g, rescaled[0], [*shape_of(indices), shape_of(weight)[1]])
    return g.op("Gather", weight, indices, axis=0)


@aten
def one_hot(g: Builder, self: Value, num_classes: int = -1) -> Value:
    """one_hot(Tensor self, int num_classes=-1) -> Tensor: INT64 (*, num_classes); -1: one more than the largest. ONNX OneHot."""
    depth = g.scalar(num_classes)
    if num_classes == -1:
        depth = g.op("Add", g.op("ReduceMax", self, keepdims=0), g.const(1))
        num_classes = g.size_of(depth)  # type: ignore[assignment]
    made = g.op("OneHot", sizes.reshape(g, self, [1]) if self.rank == 0 else self, sizes.reshape(g, depth, [1]), g.const([0, 1]), axis=-1)
    return sizes.reshape(g, made, [num_classes]) if self.rank == 0 else made



# ---------------------------------------------------------------------- bags


@aten("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag_forward(g: Builder, weight: Value, indices: Value, offsets: Value, mode: int = 0, per_sample_weights: Value | None = None,
                          include_last_offset: bool = False, padding_idx: int = -1) -> list[Value | None]:
    """_embedding_bag(…, int padding_idx=-1): as embedding_bag, where -1 says that nothing pads."""
    padding = None if padding_idx < 0 else padding_idx
    return embedding_bag(g, weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding)


@aten("embedding_bag", "embedding_bag.padding_idx")
def embedding_bag(g: Builder, weight: Value, indices: Value, offsets: Value, mode: int = 0, per_sample_weights: Value | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> list[Value | None]:
    """embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False,
    Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> (Tensor, Tensor, Tensor, Tensor)

    mode: 0 sum, 1 mean, 2 max of the rows of each bag; the other three results serve gradients and are left out. Bags of
    one length: ONNX Gather and a Reduce operator. Others: ScatterND with a reduction of each row to its bag.
    """
    indices, offsets = cast(g, indices, INT64), cast(g, offsets, INT64)
    length = None if include_last_offset or padding_idx is not None else _even(indices, offsets)
    if length is not None:
        result = _even_bags(g, weight, indices, per_sample_weights, length, mode)
    else:
        bags = shape_of(offsets)[0]
        result = _bags(g, weight, indices, _bag_of_each(g, indices, offsets), per_sample_weights, bags, mode, padding_idx)
        if include_last_offset:
            result = sliced(g, result, 0, 0, bags - 1)
    return [result, None, None, None]


def _even(indices: Value, offsets: Value) -> Size | None:
    """The one length of all bags, where that is sure."""
    total, bags = shape_of(indices)[0], shape_of(offsets)[0]
    if offsets.const is not None and isinstance(total, int) and isinstance(bags, int):
        if bags and total and total % bags == 0 and bool((offsets.const.tensor == torch.arange(0, total, total // bags)).all()):
            return total // bags
        return None
    if offsets.node is None or offsets.node.op_type != "Range":
        return None
    start, stop, step = (None if v is None else v.content for v in offsets.node.inputs[:3])
    return step[0] if start == (0,) and stop == (total,) and step is not None and dims.mod(total, step[0]) == 0 else None


def _even_bags(g: Builder, weight: Value, indices: Value, factors: Value | None, length: Size, mode: int) -> Value:
    rows = g.op("Gather", weight, sizes.reshape(g, indices, [-1, length]), axis=0)
    if factors is not None:
        rows = g.op("Mul", rows, sizes.reshape(g, factors, [-1, length, 1]))
    return g.op(("ReduceSum", "ReduceMean", "ReduceMax")[mode], rows, g.const([1]), keepdims=0)


def _bag_of_each(g: Builder, indices: Value, offsets: Value) -> Value:
    """The bag that each index is in: how many bags start at or before it, less one."""
    total, bags = shape_of(indices)[0], shape_of(offsets)[0]
    if offsets.const is not None and isinstance(total, int):
        return g.const(torch.searchsorted(offsets.const.tensor, torch.arange(total), right=True) - 1)
    nothing, one = sizes.expand(g, g.const([0]), [total + 1]), sizes.expand(g, g.const([1]), [bags])
    starts = scatter_elements(g, nothing, offsets, one, 0, "add")
    return g.op("Sub", sliced(g, cumsum(g, starts, 0), 0, 0, -1), g.const(1))


def _bags(g: Builder, weight: Value, indices: Value, bag: Value, factors: Value | None, bags: Size, mode: int,
          padding: int | None) -> Value:
    if padding is not None:
        padded = g.scalar(shape_of(weight)[0] + padding if padding < 0 else padding)
        keep = g.op("Not", g.op("Equal", indices, padded))
        indices, bag = (g.op("Compress", v, keep, axis=0) for v in (indices, bag))
        factors = None if factors is None else g.op("Compress", factors, keep, axis=0)
    rows = g.op("Gather", weight, indices, axis=0)
    if factors is not None:
        rows = g.op("Mul", rows, sizes.unsqueeze(g, factors, [1]))
    dtype, width = weight.dtype, shape_of(weight)[1]
    start = sizes.expand(g, g.const(-float("inf") if mode == 2 else 0.0, dtype), [bags, width])
    result = scatter_nd(g, start, sizes.unsqueeze(g, bag, [1]), rows, "max" if mode == 2 else "add")
    if mode == 0:
        return result
    ones = sizes.expand(g, g.const([1.0], DataType.FLOAT), [shape_of(bag)[0]])
    held = scatter_elements(g, sizes.expand(g, g.const([0.0], DataType.FLOAT), [bags]), bag, ones, 0, "add")
    held = sizes.unsqueeze(g, held, [1])
    if mode == 2:
        return g.op("Where", g.op("Greater", held, g.const(0.0)), result, g.const(0.0, dtype))
    return g.op("Div", result, cast(g, g.op("Max", held, g.const(1.0)), dtype))  # type: ignore[no-any-return,arg-type]


@aten
def embedding_renorm(g: Builder, self: Value, indices: Value, max_norm: float, norm_type: float) -> Value:
    """embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor

    The rows at `indices` whose norm is above `max_norm` are scaled down to it. ONNX Gather, norm, Where, Mul, ScatterND; an embedding
    of the same indices takes the scaled rows themselves.
    """
    places = sizes.reshape(g, indices, [-1])
    rows = g.op("Gather", self, places, axis=0)
    norm = linalg_vector_norm(g, rows, norm_type, [1], True)
    limit, one = tensor(g, max_norm, rows.dtype), tensor(g, 1.0, rows.dtype)
    scale = g.op("Div", limit, g.op("Add", norm, tensor(g, 1e-7, rows.dtype)))
    scaled = g.op("Mul", rows, g.op("Where", g.op("Greater", norm, limit), scale, one))
    result = scatter_nd(g, self, sizes.unsqueeze(g, places, [1]), scaled)
    g.block.known["rescaled", result.key, places.key] = (scaled,)
    return result
