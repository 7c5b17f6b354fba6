"""Rows of a table that is quantised row by row. Only the rows that are read become floats."""

from __future__ import annotations

from onnxport import errors
from onnxport.ops.attention import count_up
from onnxport.ops.embedding import INT64, embedding_bag
from onnxport.ops.quantised import Quantised
from onnxport.ops.quantised_layers import Layer
from onnxport.ops.quantization import FLOAT
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, rank_of, shape_of
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.value import DataType, Value


def _rows(g: Builder, layer: Layer, indices: Value, bits: int) -> Value:
    """The rows of these numbers, in float32: the integers times the row's scale, and a shift; of 4 bits PyTorch keeps both in float16."""
    if layer["bits"] != bits:
        raise errors.UnsupportedError(f"a table of {layer['bits']} bits is read by an operator for {bits} bits, as which PyTorch gives other numbers")
    table: Quantised = layer["weight"]
    scale = cast(g, table.grid.scale, FLOAT)
    shift = g.op("Neg", g.op("Mul", cast(g, table.grid.zero, FLOAT), scale))
    if bits == 4:
        scale, shift = (cast(g, cast(g, v, DataType.FLOAT16), FLOAT) for v in (scale, shift))
    places = cast(g, indices, INT64)
    rows = g.op("Cast", g.op("Gather", table.integers, places, axis=0), to=FLOAT)
    factor, summand = (sizes.unsqueeze(g, g.op("Gather", v, places, axis=0), [-1]) for v in (scale, shift))
    return g.op("Add", g.op("Mul", rows, factor), summand)


def _table(bits: int) -> None:
    name = "byte" if bits == 8 else f"{bits}bit"

    @aten(f"quantized::embedding_{name}")
    def embedding(g: Builder, weight: Layer, indices: Value, pruned_weights: bool = False) -> Value:
        """quantized::embedding_byte(EmbeddingPackedParamsBase weight, Tensor indices, bool pruned_weights=False) -> Tensor; embedding_4bit

        The result is of floats. ONNX Gather.
        """
        return _rows(g, weight, indices, bits)

    @aten(f"quantized::embedding_bag_{name}")
    def bags(g: Builder, weight: Layer, indices: Value, offsets: Value | None = None, mode: int = 0, pruned_weights: bool = False,
             per_sample_weights: Value | None = None, compressed_indices_mapping: Value | None = None, include_last_offset: bool = False) -> Value:
        """quantized::embedding_bag_byte(EmbeddingPackedParamsBase weight, Tensor indices, Tensor? offsets=None, bool
        scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor?
        compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor; embedding_bag_4bit

        Sums of rows, whatever `mode` says (so PyTorch).
        """
        if pruned_weights and compressed_indices_mapping is not None:
            raise errors.UnsupportedError("a quantised table of which rows were pruned")
        return _sums(g, _rows(g, weight, sizes.reshape(g, indices, [-1]), bits), indices, offsets, per_sample_weights, include_last_offset)


for _bits in (8, 4):
    _table(_bits)


def _sums(g: Builder, rows: Value, indices: Value, offsets: Value | None, factors: Value | None, include_last_offset: bool) -> Value:
    """The rows of each bag together; a row of a matrix of indices is a bag."""
    if rank_of(indices) == 2:
        count, length = shape_of(indices)
        offsets, include_last_offset = g.op("Mul", count_up(g, count), g.scalar(length)), False
    assert offsets is not None
    factors = None if factors is None else sizes.reshape(g, factors, [-1])
    made = embedding_bag(g, rows, count_up(g, shape_of(rows)[0]), offsets, 0, factors, include_last_offset)[0]
    assert made is not None
    return made
