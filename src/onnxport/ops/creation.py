"""Tensors that are made of nothing: constants, ranges, triangles, windows."""

from __future__ import annotations

from builtins import range as builtin_range
from collections.abc import Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, rank_of, shape_of, tensor
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import from_torch, is_float, is_integer, to_torch
from onnxport.target.sizes import expand, reshape, unsqueeze
from onnxport.target.value import DataType, Value

Operand = Value | Dim | Number
INT64 = DataType.INT64


def _default(dtype: torch.dtype | None) -> DataType:
    return from_torch(dtype or torch.get_default_dtype())


# ---------------------------------------------------------------------- one value everywhere


def filled(g: Builder, sizes: Sequence[Size], value: Any, dtype: DataType | None) -> Value:
    """A tensor of `sizes` that holds `value` everywhere. ONNX ConstantOfShape; Expand for a value that the graph computes."""
    assert dtype is not None
    if not sizes:
        return tensor(g, value, dtype)
    if isinstance(value, (Value, Dim)):
        return expand(g, reshape(g, tensor(g, value, dtype), []), sizes)
    return g.op("ConstantOfShape", g.sizes(sizes), value=torch.tensor([value], dtype=to_torch(dtype)))


@aten("zeros", "empty", "empty_strided", "empty_permuted")
def zeros(g: Builder, size: Sequence[Size], dtype: torch.dtype | None = None, stride: Any = None, physical_layout: Any = None) -> Value:
    """zeros(SymInt[] size, *, ScalarType? dtype=None) -> Tensor; `empty` too. ONNX ConstantOfShape."""
    return filled(g, size, 0, _default(dtype))


@aten
def ones(g: Builder, size: Sequence[Size], dtype: torch.dtype | None = None) -> Value:
    """ones(SymInt[] size, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return filled(g, size, 1, _default(dtype))


@aten
def full(g: Builder, size: Sequence[Size], fill_value: Any, dtype: torch.dtype | None = None) -> Value:
    """full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return filled(g, size, fill_value, from_torch(dtype) if dtype is not None else tensor(g, fill_value).dtype or DataType.FLOAT)


@aten("zeros_like", "empty_like")
def zeros_like(g: Builder, self: Value, dtype: torch.dtype | None = None) -> Value:
    """zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor; `empty_like` too. ONNX ConstantOfShape."""
    return full_like(g, self, 0, dtype)


@aten
def ones_like(g: Builder, self: Value, dtype: torch.dtype | None = None) -> Value:
    """ones_like(Tensor self, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return full_like(g, self, 1, dtype)


@aten
def full_like(g: Builder, self: Value, fill_value: Any, dtype: torch.dtype | None = None) -> Value:
    """full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    assert self.dtype is not None
    return filled(g, shape_of(self), fill_value, self.dtype if dtype is None else from_torch(dtype))


@aten("fill")
def fill(g: Builder, self: Value, value: Any) -> Value:
    """fill(Tensor self, Scalar value) -> Tensor. ONNX ConstantOfShape, Expand."""
    return full_like(g, self, value)


@aten
def zero(g: Builder, self: Value) -> Value:
    """zero(Tensor self) -> Tensor. ONNX ConstantOfShape."""
    return full_like(g, self, 0)


@aten("new_zeros", "new_empty", "new_empty_strided")
def new_zeros(g: Builder, self: Value, size: Sequence[Size], dtype: torch.dtype | None = None, stride: Any = None) -> Value:
    """new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None) -> Tensor; `new_empty` too. ONNX ConstantOfShape."""
    return new_full(g, self, size, 0, dtype)


@aten
def new_ones(g: Builder, self: Value, size: Sequence[Size], dtype: torch.dtype | None = None) -> Value:
    """new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    return new_full(g, self, size, 1, dtype)


@aten
def new_full(g: Builder, self: Value, size: Sequence[Size], fill_value: Any, dtype: torch.dtype | None = None) -> Value:
    """new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape."""
    assert self.dtype is not None
    return filled(g, size, fill_value, self.dtype if dtype is None else from_torch(dtype))


@aten
def scalar_tensor(g: Builder, s: Any, dtype: torch.dtype | None = None) -> Value:
    """scalar_tensor(Scalar s, *, ScalarType? dtype=None) -> Tensor."""
    return tensor(g, s, _default(dtype))


# ---------------------------------------------------------------------- ranges


@aten
def arange(g: Builder, end: Operand, start: Operand = 0, step: Operand = 1, dtype: torch.dtype | None = None) -> Value:
    """arange(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None) -> Tensor

    Whole numbers: ONNX Range of int64 and Cast. Others: Range of float64, so that length and values are PyTorch's, and Cast.
    """
    parts = [start, end, step]
    whole = all(_is_whole(x) for x in parts)
    target = from_torch(dtype) if dtype is not None else INT64 if whole else _default(None)
    if not whole and is_integer(target):  # PyTorch converts the ends first
        parts = [cast(g, x, INT64) if isinstance(x, Value) else x if isinstance(x, Dim) else int(x) for x in parts]
        whole = True
    work = INT64 if whole else DataType.DOUBLE
    return cast(g, counted(g, *[tensor(g, x, work) for x in parts]), target)


def _is_whole(x: Operand) -> bool:
    return is_integer(x.dtype) if isinstance(x, Value) else isinstance(x, (int, Dim))


def counted(g: Builder, start: Value, end: Value, step: Value) -> Value:
    """start, start + step, ... below end, all three scalars of one dtype. ONNX Range; from 9 to 10 NonZero of ones."""
    scalars = [reshape(g, v, []) for v in (start, end, step)]
    if g.opset >= 11:
        return g.op("Range", *scalars)
    start, end, step = scalars
    by = step.content[0] if step.content is not None else None
    if isinstance(by, int) and by:
        span = g.op("Sub", end, start) if by > 0 else g.op("Sub", start, end)
        if abs(by) > 1:
            span = g.op("Div", g.op("Add", span, g.const(abs(by) - 1)), g.const(abs(by)))
    else:
        span = g.op("Ceil", g.op("Div", *[cast(g, v, DataType.DOUBLE) for v in (g.op("Sub", end, start), step)]))
    count = reshape(g, cast(g, span, INT64), [1])
    index = reshape(g, g.op("NonZero", g.op("ConstantOfShape", count, value=torch.tensor([1]))), [-1])
    assert start.dtype is not None
    return g.op("Add", g.op("Mul", cast(g, index, start.dtype), step), start)


@aten
def range(g: Builder, start: Operand, end: Operand, step: Operand = 1, dtype: torch.dtype | None = None) -> Value:
    """range(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None) -> Tensor; with the end. ONNX Range of float64, Cast."""
    if not (isinstance(start, (int, float)) and isinstance(end, (int, float)) and isinstance(step, (int, float))):
        raise errors.UnsupportedError("range with an end that the graph computes; arange can")
    return g.constant(torch.arange(start, end + step / 2, step, dtype=torch.float64).to(dtype or torch.get_default_dtype()))


@aten
def linspace(g: Builder, start: Operand, end: Operand, steps: Size, dtype: torch.dtype | None = None) -> Value:
    """linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None) -> Tensor. ONNX Range, Mul, Add, in float64."""
    target = _default(dtype)
    if isinstance(steps, int) and isinstance(start, (int, float)) and isinstance(end, (int, float)):
        return g.constant(torch.linspace(start, end, steps, dtype=dtype))
    if not is_float(target):
        raise errors.UnsupportedError("linspace of integers with ends that the graph computes")
    return cast(g, _spaced(g, start, end, steps), target)


def _spaced(g: Builder, start: Operand, end: Operand, steps: Size) -> Value:
    """`steps` numbers from start to end in float64."""
    first, last = (reshape(g, tensor(g, x, DataType.DOUBLE), []) for x in (start, end))
    gaps = tensor(g, dims.maximum(steps - 1, 1), DataType.DOUBLE)
    whole = g.const(torch.arange(steps)) if isinstance(steps, int) else counted(g, g.const(0), g.scalar(steps), g.const(1))
    index = cast(g, whole, DataType.DOUBLE)
    return g.op("Add", g.op("Mul", g.op("Div", index, gaps), g.op("Sub", last, first)), first)


@aten
def logspace(g: Builder, start: Operand, end: Operand, steps: Size, base: float = 10.0, dtype: torch.dtype | None = None) -> Value:
    """logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None) -> Tensor. ONNX as linspace, and Pow."""
    target = _default(dtype)
    if isinstance(steps, int) and isinstance(start, (int, float)) and isinstance(end, (int, float)):
        return g.constant(torch.logspace(start, end, steps, base, dtype=dtype))
    if not is_float(target):
        raise errors.UnsupportedError("logspace of integers with ends that the graph computes")
    return cast(g, g.op("Pow", tensor(g, base, DataType.DOUBLE), _spaced(g, start, end, steps)), target)


# ---------------------------------------------------------------------- matrices


@aten
def eye(g: Builder, n: Size, m: Size | None = None, dtype: torch.dtype | None = None) -> Value:
    """eye(SymInt n, SymInt m, *, ScalarType? dtype=None) -> Tensor. ONNX ConstantOfShape, EyeLike."""
    return g.op("EyeLike", filled(g, [n, n if m is None else m], 0, _default(dtype)))


@aten
def tril(g: Builder, self: Value, diagonal: Size = 0) -> Value:
    """tril(Tensor self, SymInt diagonal=0) -> Tensor. ONNX Trilu; below opset 14 Where."""
    return _part(g, self, diagonal, upper=0)


@aten
def triu(g: Builder, self: Value, diagonal: Size = 0) -> Value:
    """triu(Tensor self, SymInt diagonal=0) -> Tensor. ONNX Trilu; below opset 14 Where."""
    return _part(g, self, diagonal, upper=1)


def _part(g: Builder, x: Value, diagonal: Size, *, upper: int) -> Value:
    rows, columns = shape_of(x)[-2:]
    if g.opset >= 14 or dims.is_static([rows, columns, diagonal]):
        return g.op("Trilu", x, g.scalar(diagonal), upper=upper)
    across, down = (counted(g, g.const(0), g.scalar(n), g.const(1)) for n in (columns, rows))
    edge = unsqueeze(g, g.op("Add", down, g.scalar(diagonal)), [1])
    outside = g.op("Less" if upper else "Greater", across, edge)
    return g.op("Where", outside, tensor(g, 0, x.dtype), x)


@aten
def tril_indices(g: Builder, row: Size, col: Size, offset: Size = 0, dtype: torch.dtype | None = torch.int64) -> Value:
    """tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long) -> Tensor (2, n). ONNX Trilu, NonZero."""
    return _triangle(g, row, col, offset, dtype, upper=0)


@aten
def triu_indices(g: Builder, row: Size, col: Size, offset: Size = 0, dtype: torch.dtype | None = torch.int64) -> Value:
    """triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long) -> Tensor (2, n). ONNX Trilu, NonZero."""
    return _triangle(g, row, col, offset, dtype, upper=1)


def _triangle(g: Builder, row: Size, col: Size, offset: Size, dtype: torch.dtype | None, *, upper: int) -> Value:
    triangle = _part(g, filled(g, [row, col], 1, DataType.FLOAT), offset, upper=upper)
    return cast(g, g.op("NonZero", triangle), from_torch(dtype or torch.int64))


# ---------------------------------------------------------------------- windows


def _window(name: str) -> None:
    """One window function; `window_length` is a number almost always, and then it is a constant."""

    def window(g: Builder, window_length: Size, periodic: bool = True, dtype: torch.dtype | None = None, **more: float) -> Value:
        if not isinstance(window_length, int):
            raise errors.UnsupportedError(f"{name} with a length that depends on the input")
        return g.constant(getattr(torch, name)(window_length, periodic, dtype=dtype, **more))

    window.__doc__ = f"{name}(int window_length, bool periodic=True, *, ScalarType? dtype=None) -> Tensor; a constant."
    aten(name)(window)


for _name in ("hann_window", "bartlett_window", "blackman_window"):
    _window(_name)


@aten
def hamming_window(g: Builder, window_length: Size, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
                   dtype: torch.dtype | None = None) -> Value:
    """hamming_window(int window_length, bool periodic=True, float alpha=0.54, float beta=0.46, *, ScalarType? dtype=None) -> Tensor

    A constant.
    """
    if not isinstance(window_length, int):
        raise errors.UnsupportedError("hamming_window with a length that depends on the input")
    return g.constant(torch.hamming_window(window_length, periodic, alpha, beta, dtype=dtype))


@aten
def kaiser_window(g: Builder, window_length: Size, periodic: bool = True, beta: float = 12.0, dtype: torch.dtype | None = None) -> Value:
    """kaiser_window(int window_length, bool periodic=True, float beta=12.0, *, ScalarType? dtype=None) -> Tensor; a constant."""
    if not isinstance(window_length, int):
        raise errors.UnsupportedError("kaiser_window with a length that depends on the input")
    return g.constant(torch.kaiser_window(window_length, periodic, beta, dtype=dtype))


# ---------------------------------------------------------------------- grids


@aten
def meshgrid(g: Builder, tensors: Sequence[Value], indexing: str = "ij") -> list[Value]:
    """meshgrid(Tensor[] tensors, *, str indexing='ij') -> Tensor[]; each tensor along its axis, over all of them. ONNX Reshape, Expand."""
    count = len(tensors)
    places = list(builtin_range(count))
    if indexing == "xy" and count > 1:
        places[:2] = [1, 0]
    lengths: list[Size] = [1] * count
    for x, place in zip(tensors, places, strict=True):
        lengths[place] = x.numel
    grids = []
    for x, place in zip(tensors, places, strict=True):
        flat = x if rank_of(x) == 1 else reshape(g, x, [1])
        along = unsqueeze(g, flat, [i for i in builtin_range(count) if i != place])
        grids.append(expand(g, along, lengths))
    return grids


@aten
def cartesian_prod(g: Builder, tensors: Sequence[Value]) -> Value:
    """cartesian_prod(Tensor[] tensors) -> Tensor (n, k); a single tensor as it is. ONNX as meshgrid, and Concat, Reshape."""
    if len(tensors) == 1:
        return tensors[0]
    grids = [unsqueeze(g, x, [-1]) for x in meshgrid(g, tensors)]
    return reshape(g, g.op("Concat", *grids, axis=len(tensors)), [-1, len(tensors)])
