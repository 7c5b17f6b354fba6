"""Padding in all modes. Pads come last dim first, (left, right, top, bottom, ...), and may be negative."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from onnxport import errors
from onnxport.ops.joining import stacked
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, rank_of, shape_of, tensor
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import Value

_ONNX_MODES = {"reflect": "reflect", "replicate": "edge"}
_END = 2**63 - 1


@aten
def constant_pad_nd(g: Builder, self: Value, pad: Sequence[Size], value: Number | Value = 0) -> Value:
    """constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor. ONNX Pad; negative pads cut."""
    fill = None if not isinstance(value, Value) and value == 0 else tensor(g, value, self.dtype)
    return g.op("Pad", self, _onnx_pads(g, self, pad), fill, mode="constant")


@aten
def pad(g: Builder, self: Value, pad: Sequence[Size], mode: str = "constant", value: Number | None = None) -> Value:
    """pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor. ONNX Pad."""
    if mode == "constant":
        return constant_pad_nd(g, self, pad, 0 if value is None else value)
    return _pad_circular(g, self, pad) if mode == "circular" else _mirrored(g, self, pad, _ONNX_MODES[mode])


@aten
def _pad_enum(g: Builder, self: Value, pad: Sequence[Size], mode: int, value: Number | None = None) -> Value:
    """_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor"""
    modes = ("constant", "reflect", "replicate", "circular")
    if mode == 0:
        return constant_pad_nd(g, self, pad, 0 if value is None else value)
    return _pad_circular(g, self, pad) if mode == 3 else _mirrored(g, self, pad, _ONNX_MODES[modes[mode]])


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(g: Builder, self: Value, padding: Sequence[Size]) -> Value:
    """reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor. ONNX Pad, mode "reflect"."""
    return _mirrored(g, self, padding, "reflect")


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(g: Builder, self: Value, padding: Sequence[Size]) -> Value:
    """replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor. ONNX Pad, mode "edge"."""
    return _mirrored(g, self, padding, "edge")


@aten
def pad_sequence(g: Builder, sequences: list[Value], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Value:
    """pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side="right") -> Tensor

    (B, T, *) or (T, B, *) of sequences (L, *) of the dtype of the first, T the largest L. ONNX Pad of each, and Concat.
    """
    longest = functools.reduce(dims.maximum, [shape_of(x)[0] for x in sequences])
    padded = []
    for x in sequences:
        x = tensor(g, x, sequences[0].dtype)
        missing = longest - shape_of(x)[0]
        pads = [0, 0] * (rank_of(x) - 1) + ([missing, 0] if padding_side == "left" else [0, missing])
        padded.append(x if missing == 0 else constant_pad_nd(g, x, pads, padding_value))
    return stacked(g, padded, 0 if batch_first else 1)


@aten
def _pad_circular(g: Builder, self: Value, pad: Sequence[Size]) -> Value:
    """_pad_circular(Tensor self, SymInt[] pad) -> Tensor

    Goes on at the other end of what negative pads leave. ONNX Concat of slices of each dim.
    """
    grow, cut = _split(pad)
    x = _cut(g, self, cut)
    for i in range(len(grow) // 2):
        axis = rank_of(x) - 1 - i
        before, after = grow[2 * i], grow[2 * i + 1]
        parts = []
        if before != 0:
            start = -before if isinstance(before, int) else shape_of(x)[axis] - before  # a size may be 0, and -0 is the start
            parts.append(_slice(g, x, axis, start, _END))
        parts.append(x)
        if after != 0:
            parts.append(_slice(g, x, axis, 0, after))
        x = g.op("Concat", *parts, axis=axis)
    return x


def _mirrored(g: Builder, x: Value, pads: Sequence[Size], mode: str) -> Value:
    """What pads add is taken from the whole tensor, so what they cut is cut afterwards."""
    grow, cut = _split(pads)
    return _cut(g, g.op("Pad", x, _onnx_pads(g, x, grow), mode=mode), cut)


def _split(pads: Sequence[Size]) -> tuple[list[Size], list[Size]]:
    """What is added and what is cut off."""
    for p in pads:
        if dims.compare(">=", p, 0) is None and dims.compare("<", p, 0) is None:
            raise errors.UnsupportedError(f"padding by the dynamic size {p}, which may be negative, in this mode")
    negative = [dims.compare("<", p, 0) is True for p in pads]
    return [0 if n else p for p, n in zip(pads, negative, strict=True)], [-p if n else 0 for p, n in zip(pads, negative, strict=True)]


def _cut(g: Builder, x: Value, cut: Sequence[Size]) -> Value:
    for i in range(len(cut) // 2):
        axis = rank_of(x) - 1 - i
        if cut[2 * i] != 0 or cut[2 * i + 1] != 0:
            x = _slice(g, x, axis, cut[2 * i], -cut[2 * i + 1] if cut[2 * i + 1] != 0 else _END)
    return x


def _slice(g: Builder, x: Value, axis: int, start: Size, end: Size) -> Value:
    return g.op("Slice", x, g.sizes([start]), g.sizes([end]), g.const([axis]))


def _onnx_pads(g: Builder, x: Value, pads: Sequence[Size]) -> Value:
    """All starts, then all ends, of every dim from the first."""
    rest: list[Size] = [0] * (rank_of(x) - len(pads) // 2)
    starts, ends = list(pads[0::2])[::-1], list(pads[1::2])[::-1]
    return g.sizes([*rest, *starts, *rest, *ends])


