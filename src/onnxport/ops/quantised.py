"""Quantised tensors (`torch.quint8`, `qint8`, `qint32`): integers with a scale and a zero point. ONNX has no such dtype.

Only `lower/quantised.py` and the operators on quantised tensors meet one. All others get its integers, or what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from onnxport import errors
from onnxport.ops.quantization import LIMITS, Grid, Number, dequantize, grid, quantize
from onnxport.target.builder import Builder
from onnxport.target.value import Constant, DataType, Shape, Value

INTEGERS: dict[torch.dtype, DataType] = {
    torch.quint8: DataType.UINT8, torch.qint8: DataType.INT8, torch.qint32: DataType.INT32, torch.quint4x2: DataType.UINT8,
}
_OF = {DataType.UINT8: torch.quint8, DataType.INT8: torch.qint8, DataType.INT32: torch.qint32}


@dataclass(frozen=True)
class Quantised:
    """A quantised tensor: its integers, and what they stand for."""

    integers: Value
    grid: Grid

    @property
    def shape(self) -> Shape | None:
        """The symbolic shape."""
        return self.integers.shape

    @property
    def rank(self) -> int | None:
        """The number of dims."""
        return self.integers.rank

    @property
    def dtype(self) -> torch.dtype:
        """PyTorch's dtype: ONNX has none."""
        assert self.integers.dtype is not None
        return _OF[self.integers.dtype]

    def numbers(self, g: Builder) -> Value:
        """What it stands for, in float32."""
        return dequantize(g, self.integers, self.grid)

    def with_integers(self, integers: Value) -> Quantised:
        """Other integers that stand for numbers of the same grid."""
        return Quantised(integers, self.grid)


def on_grid(g: Builder, x: Value, scale: Number, zero: Number, dtype: torch.dtype, axis: int | None = None) -> Quantised:
    """`x` quantised."""
    integer = INTEGERS.get(dtype)
    if integer is None or dtype == torch.quint4x2:
        raise errors.UnsupportedError(f"a tensor is quantised to {dtype}, and quint8, qint8 and qint32 are known")
    return like(g, x, grid(g, x, scale, zero, *LIMITS[integer], axis), integer)


def like(g: Builder, x: Value, at: Grid, dtype: DataType) -> Quantised:
    """`x` quantised on a grid that is known."""
    return Quantised(quantize(g, x, at, dtype), at)


def constant(g: Builder, tensor: Callable[[], torch.Tensor], name: str | None) -> Quantised:
    """A quantised tensor that is known. tensor: gives it; asked again when its integers are written."""
    found = tensor()
    dtype = INTEGERS[found.dtype]
    kept = Constant(None, compute=lambda: integers_of(tensor()), name=name, parameter=name is not None)
    integers = g.from_constant(kept, dtype, tuple(found.shape))
    if found.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return Quantised(integers, grid(g, integers, found.q_scale(), found.q_zero_point(), *LIMITS[dtype]))
    scales, zeros = found.q_per_channel_scales().to(torch.float32), found.q_per_channel_zero_points()
    zeros = zeros.to(torch.float32) if zeros.is_floating_point() else zeros
    return Quantised(integers, grid(g, integers, g.constant(scales), g.constant(zeros), *LIMITS[dtype], found.q_per_channel_axis()))


def integers_of(tensor: torch.Tensor) -> torch.Tensor:
    """The integers of a quantised tensor, in its own memory."""
    if tensor.dtype == torch.quint4x2:  # two in a byte, the lower half first
        pairs = tensor.int_repr().reshape(-1, 1)
        return torch.cat([pairs & 15, pairs >> 4], 1).reshape(-1)[: tensor.numel()].reshape(tensor.shape)
    plain = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}[tensor.dtype]
    return torch.empty(0, dtype=plain).set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())  # type: ignore[call-overload, no-any-return]


def number_of(at: Grid) -> tuple[float, int]:
    """Scale and zero point of a grid, where they are known; Raises `UnsupportedError` where the data decides them."""
    if at.scale.const is None or at.zero.const is None or at.axis is not None:
        raise errors.UnsupportedError("the scale of a quantised tensor is not known here: the data decides it, or each channel has its own")
    return float(at.scale.const.tensor), int(at.zero.const.tensor)


def same(a: Grid, b: Grid) -> bool:
    """Whether two grids are known to be one."""
    if a == b:
        return True
    if a.axis is not None or b.axis is not None or any(v.const is None for v in (a.scale, a.zero, b.scale, b.zero)):
        return False
    return number_of(a) == number_of(b)

