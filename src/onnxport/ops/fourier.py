"""torch.fft: transforms along one and several axes, of real and complex numbers, and what goes with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxport.ops import creation, dft, layout
from onnxport.ops.complex_parts import parts_of
from onnxport.ops.registry import aten, of_complex
from onnxport.ops.support import axis_of, cast, floating, rank_of, shape_of, tensor
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import from_torch
from onnxport.target.value import Complex, DataType, Value

Norm = str | None
Sizes = Sequence[Size] | None
FORWARD, BACK = -1, 1  # the sign in exp(+-2 pi i k t / n)


def _scale(g: Builder, norm: Norm, n: Size, sign: int, dtype: DataType) -> dft.Scale:
    """What a transform is multiplied with: "forward" and "backward" divide one direction by n, "ortho" both by its root."""
    if norm != "ortho" and (norm or "backward") != ("forward" if sign == FORWARD else "backward"):
        return 1.0
    if isinstance(n, int):
        return 1 / math.sqrt(n) if norm == "ortho" else 1 / n
    size = cast(g, g.scalar(n), dtype)
    return g.op("Div", tensor(g, 1.0, dtype), g.op("Sqrt", size) if norm == "ortho" else size)


def _parts(g: Builder, x: Value) -> dft.Pair:
    return parts_of(g, x if isinstance(x, Complex) else floating(g, x))


def _resized(g: Builder, z: dft.Pair, axis: int, n: Size) -> dft.Pair:
    re, im = z
    return dft.resized(g, re, axis, n), None if im is None else dft.resized(g, im, axis, n)


def _along(g: Builder, x: Value, n: Size | None, dim: int, norm: Norm, sign: int) -> Complex:
    """Complex numbers to complex numbers, along one axis."""
    axis, z = axis_of(x, dim), _parts(g, x)
    n = shape_of(x)[axis] if n is None else n
    assert z[0].dtype is not None
    return dft.transformed(g, _resized(g, z, axis, n), axis, n, sign, _scale(g, norm, n, sign, z[0].dtype))


def _half(g: Builder, x: Value, n: Size | None, dim: int, norm: Norm, sign: int) -> Complex:
    """Real numbers to the first half of their spectrum."""
    axis, x = axis_of(x, dim), floating(g, x)
    n = shape_of(x)[axis] if n is None else n
    assert x.dtype is not None
    return dft.transformed(g, (dft.resized(g, x, axis, n), None), axis, n, sign, _scale(g, norm, n, sign, x.dtype), dims.floordiv(n, 2) + 1)


def _from_half(g: Builder, x: Value, n: Size | None, dim: int, norm: Norm, sign: int) -> Value:
    """The first half of a spectrum to the n real numbers behind it."""
    axis = axis_of(x, dim)
    n = (shape_of(x)[axis] - 1) * 2 if n is None else n
    re, im = _resized(g, _parts(g, x), axis, dims.floordiv(n, 2) + 1)
    im = g.op("Mul", re, tensor(g, 0, re.dtype)) if im is None else im
    assert re.dtype is not None
    return dft.real_from_half(g, Complex(re, im if sign == BACK else g.op("Neg", im)), axis, n, _scale(g, norm, n, sign, re.dtype))


# ---------------------------------------------------------------------- one axis


@of_complex("fft_fft")
@aten
def fft_fft(g: Builder, self: Value, n: Size | None = None, dim: int = -1, norm: Norm = None) -> Value:
    """fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor. ONNX MatMul."""
    return _along(g, self, n, dim, norm, FORWARD)


@of_complex("fft_ifft")
@aten
def fft_ifft(g: Builder, self: Value, n: Size | None = None, dim: int = -1, norm: Norm = None) -> Value:
    """fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor. ONNX MatMul."""
    return _along(g, self, n, dim, norm, BACK)


@aten
def fft_rfft(g: Builder, self: Value, n: Size | None = None, dim: int = -1, norm: Norm = None) -> Value:
    """fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor; n // 2 + 1 numbers. ONNX MatMul."""
    return _half(g, self, n, dim, norm, FORWARD)


@of_complex("fft_irfft")
@aten
def fft_irfft(g: Builder, self: Value, n: Size | None = None, dim: int = -1, norm: Norm = None) -> Value:
    """fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor; n real numbers. ONNX MatMul."""
    return _from_half(g, self, n, dim, norm, BACK)


@of_complex("fft_hfft")
@aten
def fft_hfft(g: Builder, self: Value, n: Size | None = None, dim: int = -1, norm: Norm = None) -> Value:
    """fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor; the real spectrum of half a signal. ONNX MatMul."""
    return _from_half(g, self, n, dim, norm, FORWARD)


@aten
def fft_ihfft(g: Builder, self: Value, n: Size | None = None, dim: int = -1, norm: Norm = None) -> Value:
    """fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor; n // 2 + 1 numbers. ONNX MatMul."""
    return _half(g, self, n, dim, norm, BACK)


# ---------------------------------------------------------------------- several axes


def _axes(x: Value, s: Sizes, dim: Sequence[int] | None) -> tuple[list[int], list[Size | None]]:
    """The axes, and of each the size that is wanted (None: as it is)."""
    rank = rank_of(x)
    if dim is None:
        dim = range(rank) if s is None else range(rank - len(s), rank)
    sizes = [None if isinstance(size, int) and size == -1 else size for size in s or [-1] * len(dim)]
    return [axis_of(x, d) for d in dim], sizes


def _all(g: Builder, x: Value, axes: Sequence[int], sizes: Sequence[Size | None], norm: Norm, sign: int) -> Value:
    for axis, size in zip(axes, sizes, strict=True):
        x = _along(g, x, size, axis, norm, sign)
    return x


def _several(g: Builder, x: Value, s: Sizes, dim: Sequence[int] | None, norm: Norm, sign: int) -> Value:
    """The last axis first: of a real tensor this is the one with the fewest products."""
    axes, sizes = _axes(x, s, dim)
    return _all(g, x, axes[::-1], sizes[::-1], norm, sign)


def _several_half(g: Builder, x: Value, s: Sizes, dim: Sequence[int] | None, norm: Norm, sign: int) -> Value:
    axes, sizes = _axes(x, s, dim)
    return _all(g, _half(g, x, sizes[-1], axes[-1], norm, sign), axes[:-1], sizes[:-1], norm, sign)


def _several_from_half(g: Builder, x: Value, s: Sizes, dim: Sequence[int] | None, norm: Norm, sign: int) -> Value:
    axes, sizes = _axes(x, s, dim)
    return _from_half(g, _all(g, x, axes[:-1], sizes[:-1], norm, sign), sizes[-1], axes[-1], norm, sign)


def _enter(name: str, transform: Callable[..., Value], sign: int, takes_complex: bool) -> None:
    """`fft_<name>2` and `fft_<name>n`, which differ in their default axes only."""

    def of_two(g: Builder, self: Value, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: Norm = None) -> Value:
        return transform(g, self, s, dim, norm, sign)

    def of_all(g: Builder, self: Value, s: Sizes = None, dim: Sequence[int] | None = None, norm: Norm = None) -> Value:
        return transform(g, self, s, dim, norm, sign)

    for function, full in ((of_two, f"fft_{name}2"), (of_all, f"fft_{name}n")):
        aten(full)(function)
        if takes_complex:
            of_complex(full)(function)


_enter("fft", _several, FORWARD, takes_complex=True)
_enter("ifft", _several, BACK, takes_complex=True)
_enter("rfft", _several_half, FORWARD, takes_complex=False)
_enter("ihfft", _several_half, BACK, takes_complex=False)
_enter("irfft", _several_from_half, BACK, takes_complex=True)
_enter("hfft", _several_from_half, FORWARD, takes_complex=True)


# ---------------------------------------------------------------------- as they are once PyTorch has decomposed them


def _by_mode(g: Builder, n: Size, mode: int, dtype: DataType | None) -> dft.Scale:
    """0: as it is, 1: over the root of n, 2: over n."""
    assert dtype is not None
    return 1.0 if mode == 0 else _scale(g, "ortho" if mode == 1 else "backward", n, BACK, dtype)


@of_complex("_fft_c2c")
def _fft_c2c(g: Builder, self: Complex, dim: Sequence[int], normalization: int, forward: bool) -> Value:
    """_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor. ONNX MatMul."""
    made = self
    for axis in [axis_of(self, d) for d in dim]:
        n = shape_of(made)[axis]
        made = dft.transformed(g, (made.re, made.im), axis, n, FORWARD if forward else BACK, _by_mode(g, n, normalization, made.re.dtype))
    return made


@aten
def _fft_r2c(g: Builder, self: Value, dim: Sequence[int], normalization: int, onesided: bool) -> Value:
    """_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor; onesided: half of the last axis. ONNX MatMul."""
    *others, last = [axis_of(self, d) for d in dim]
    n = shape_of(self)[last]
    count = dims.floordiv(n, 2) + 1 if onesided else n
    made = dft.transformed(g, (self, None), last, n, FORWARD, _by_mode(g, n, normalization, self.dtype), count)
    return _fft_c2c(g, made, others, normalization, True)


@of_complex("_fft_c2r")
def _fft_c2r(g: Builder, self: Complex, dim: Sequence[int], normalization: int, last_dim_size: Size) -> Value:
    """_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor. ONNX MatMul."""
    *others, last = [axis_of(self, d) for d in dim]
    made = _fft_c2c(g, self, others, normalization, False)
    assert isinstance(made, Complex)
    return dft.real_from_half(g, made, last, last_dim_size, _by_mode(g, last_dim_size, normalization, made.re.dtype))


# ---------------------------------------------------------------------- frequencies


@aten
def fft_fftshift(g: Builder, self: Value, dim: Any = None) -> Value:
    """fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor; the frequency 0 to the middle."""
    axes = _shifted(self, dim)
    return layout.roll(g, self, [dims.floordiv(shape_of(self)[a], 2) for a in axes], axes)


@aten
def fft_ifftshift(g: Builder, self: Value, dim: Any = None) -> Value:
    """fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor; back again."""
    axes = _shifted(self, dim)
    return layout.roll(g, self, [dims.floordiv(shape_of(self)[a] + 1, 2) for a in axes], axes)


def _shifted(x: Value, dim: Any) -> list[int]:
    return list(range(rank_of(x))) if dim is None else [axis_of(x, d) for d in ([dim] if isinstance(dim, int) else dim)]


@aten
def fft_fftfreq(g: Builder, n: Size, d: float | Value = 1.0, dtype: torch.dtype | None = None) -> Value:
    """fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None) -> Tensor; 0, 1, ... -2, -1, over n d."""
    places = creation.arange(g, n)
    wrapped = g.op("Where", g.op("Less", places, g.scalar(dims.floordiv(n + 1, 2))), places, g.op("Sub", places, g.scalar(n)))
    return _over(g, wrapped, n, d, dtype)


@aten
def fft_rfftfreq(g: Builder, n: Size, d: float | Value = 1.0, dtype: torch.dtype | None = None) -> Value:
    """fft_rfftfreq(int n, float d=1.0, *, ScalarType? dtype=None) -> Tensor; 0, 1, ... n // 2, over n d."""
    return _over(g, creation.arange(g, dims.floordiv(n, 2) + 1), n, d, dtype)


def _over(g: Builder, places: Value, n: Size, d: float | Value, dtype: torch.dtype | None) -> Value:
    wanted = from_torch(dtype or torch.get_default_dtype())
    step = g.op("Mul", tensor(g, n if isinstance(n, Dim) else int(n), wanted), tensor(g, d, wanted))
    return g.op("Div", cast(g, places, wanted), step)
