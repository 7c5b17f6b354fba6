"""Computes now what depends on constants alone, with PyTorch itself.

Layout changes of a weight are views of its memory. Anything else that is as large as a weight becomes a lazy constant,
computed while it is written and dropped again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from onnxport.target import dims
from onnxport.target.dtypes import COMPLEX, from_torch, to_torch
from onnxport.target.value import Constant, DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

SMALL = 16384  # bytes that a result may always have, however small its inputs are
LAZY = 1 << 16  # bytes from which a computed weight is computed only while it is written
Tensors = Sequence[torch.Tensor]
Compute = Callable[[Tensors, dict[str, Any]], torch.Tensor]


def fold(g: Builder, op_type: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any], outputs: int) -> tuple[Value, ...] | None:
    """The outputs as constants, where all inputs are and it is allowed and worth it; else None."""
    compute = _COMPUTE.get(op_type)
    if compute is None or outputs != 1:
        return None
    constants: list[Constant] = []
    for value in inputs:
        if value is None or value.const is None or value.dtype is None or value.dtype in COMPLEX:
            return None
        constants.append(value.const)
    if kept(g, constants):
        return None
    parameter = any(c.parameter for c in constants)
    size_in = sum(_bytes(v) for v in inputs if v is not None)
    if size_in <= SMALL or op_type in _VIEWS:
        if op_type in _GROWING and _grown(op_type, inputs) > SMALL:
            return None
        if op_type in _VIEWS and constants[0].is_lazy:
            return (_lazy(g, op_type, compute, inputs, constants, attrs, parameter),)
        try:
            result = compute([c.tensor for c in constants], attrs)
        except (RuntimeError, TypeError, IndexError):
            return None  # the node is written as it is; ONNX Runtime will say what is wrong with it
        return (folded(g, result, constants, parameter),)
    if op_type in _GROWING or (op_type == "Cast" and widens(to_torch(_dtype(inputs)), to_torch(attrs["to"]))):
        return None
    return (_lazy(g, op_type, compute, inputs, constants, attrs, parameter),)


def widens(dtype: torch.dtype, to: torch.dtype) -> bool:
    """Whether what is kept in a byte (a quantised weight) would be stored as something wider."""
    return dtype in (torch.int8, torch.uint8) and to.itemsize > 1


def _dtype(inputs: tuple[Value | None, ...]) -> DataType:
    assert inputs[0] is not None and inputs[0].dtype is not None
    return inputs[0].dtype


def kept(g: Builder, constants: Sequence[Constant]) -> bool:
    """Whether nothing may be computed from these now. A counter (the batches that a normalisation has seen) is no weight."""
    return not g.fold_parameters and any(c.parameter and not _is_counter(c) for c in constants)


def _is_counter(constant: Constant) -> bool:
    return not constant.is_lazy and constant.tensor.numel() == 1 and not constant.tensor.is_floating_point() and not constant.tensor.is_complex()


def lazily(g: Builder, compute: Callable[[], torch.Tensor], dtype: torch.dtype, shape: tuple[int, ...], constants: Sequence[Constant]) -> Value:
    """A constant of known dtype and shape that `compute` gives; large ones are computed while they are written."""
    parameter = any(c.parameter for c in constants)
    name = _name(constants)
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size < LAZY:
        return g.from_constant(Constant(compute(), name=name, parameter=parameter), from_torch(dtype), shape)
    return g.from_constant(Constant(None, compute=compute, name=name, parameter=parameter), from_torch(dtype), shape)


def _lazy(g: Builder, op_type: str, compute: Compute, inputs: tuple[Value | None, ...], constants: list[Constant], attrs: dict[str, Any],
          parameter: bool) -> Value:
    from onnxport.target import shapes

    ((dtype, shape),) = shapes.infer(g, op_type, inputs, attrs, 1)
    assert dtype is not None and shape is not None
    return lazily(g, lambda: compute([c.tensor for c in constants], attrs), to_torch(dtype), tuple([int(s) for s in shape]), constants)  # type: ignore[arg-type]


def folded(g: Builder, tensor: torch.Tensor, constants: Sequence[Constant], parameter: bool) -> Value:
    """A value that was computed from `constants`; one that comes from a single weight keeps the weight's name."""
    return g.from_constant(Constant(tensor, name=_name(constants), parameter=parameter), from_torch(tensor.dtype), tuple(tensor.shape))


def _name(constants: Sequence[Constant]) -> str | None:
    """A tensor that comes from one weight keeps its name."""
    names = {c.name for c in constants if c.name}
    return names.pop() if len(names) == 1 else None


def _bytes(value: Value) -> int:
    count = dims.product(value.shape or ())
    assert isinstance(count, int) and value.dtype is not None
    return count * to_torch(value.dtype).itemsize


def _grown(op_type: str, inputs: tuple[Value | None, ...]) -> int:
    values = [v for v in inputs if v is not None]
    if op_type in ("Expand", "ConstantOfShape"):
        content = values[-1].content or ()
        count = dims.product(content)
        return count * 8 if isinstance(count, int) else SMALL + 1
    if op_type == "Tile":
        count = dims.product(values[1].content or ())
        return _bytes(values[0]) * count if isinstance(count, int) else SMALL + 1
    return SMALL if op_type == "Range" else 0


def _axes(tensors: Tensors, position: int = 1) -> list[int]:
    return [int(a) for a in tensors[position].tolist()]


def _squeeze(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    return tensors[0].squeeze(tuple(_axes(tensors))) if len(tensors) > 1 else tensors[0].squeeze()


def _unsqueeze(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    x, rank = tensors[0], tensors[0].dim() + tensors[1].numel()
    for axis in sorted(a % rank for a in _axes(tensors)):
        x = x.unsqueeze(axis)
    return x


def _reshape(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    sizes = [int(s) for s in tensors[1].tolist()]
    if not attrs.get("allowzero"):
        sizes = [tensors[0].shape[i] if s == 0 else s for i, s in enumerate(sizes)]
    return tensors[0].reshape(sizes)


def _slice(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    x = tensors[0]
    starts, ends, axes = (t.tolist() for t in tensors[1:4])
    steps = tensors[4].tolist() if len(tensors) > 4 else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis]
        picked = range(size)[slice(start, end if end > -size - 1 else None, step)]
        if step > 0:
            x = x.narrow(axis, picked.start, 0) if len(picked) == 0 else x[(slice(None),) * (axis % x.dim()) + (slice(start, end, step),)]
        else:
            x = x.index_select(axis, torch.tensor(list(picked), dtype=torch.int64))
    return x


def _gather(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    data, index = tensors
    axis = attrs.get("axis", 0) % data.dim()
    flat = index.reshape(-1).to(torch.int64)
    flat = torch.where(flat < 0, flat + data.shape[axis], flat)
    picked = data.index_select(axis, flat)
    return picked.reshape(data.shape[:axis] + index.shape + data.shape[axis + 1:])


def _div(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    a, b = tensors
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _constant_of_shape(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    value = attrs.get("value")
    sizes = [int(s) for s in tensors[0].tolist()]
    return torch.zeros(sizes) if value is None else value.reshape(()).expand(sizes)


def _cast(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    return tensors[0].to(to_torch(attrs["to"]))


def _range(tensors: Tensors, attrs: dict[str, Any]) -> torch.Tensor:
    start, limit, step = (t.item() for t in tensors)
    if (limit - start) / step * tensors[0].element_size() > SMALL:
        raise RuntimeError("too long to be stored")
    return torch.arange(start, limit, step, dtype=tensors[0].dtype)


_VIEWS = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity"})
_GROWING = frozenset({"Expand", "ConstantOfShape", "Tile", "Range"})
_COMPUTE: dict[str, Compute] = {
    "Add": lambda t, a: t[0] + t[1], "Sub": lambda t, a: t[0] - t[1], "Mul": lambda t, a: t[0] * t[1], "Div": _div,
    "Neg": lambda t, a: -t[0], "Abs": lambda t, a: t[0].abs(), "Sqrt": lambda t, a: t[0].sqrt(), "Exp": lambda t, a: t[0].exp(),
    "Log": lambda t, a: t[0].log(), "Reciprocal": lambda t, a: t[0].reciprocal(), "Pow": lambda t, a: torch.pow(t[0], t[1]).to(t[0].dtype),
    "Floor": lambda t, a: t[0].floor(), "Ceil": lambda t, a: t[0].ceil(), "Not": lambda t, a: ~t[0],
    "And": lambda t, a: t[0] & t[1], "Or": lambda t, a: t[0] | t[1],
    "Equal": lambda t, a: t[0] == t[1], "Less": lambda t, a: t[0] < t[1], "Greater": lambda t, a: t[0] > t[1],
    "Where": lambda t, a: torch.where(t[0], t[1], t[2]),
    "Cast": _cast, "Identity": lambda t, a: t[0],
    "Transpose": lambda t, a: t[0].permute(a["perm"]) if "perm" in a else t[0].permute(*reversed(range(t[0].dim()))),
    "Reshape": _reshape, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Slice": _slice, "Gather": _gather,
    "Concat": lambda t, a: torch.cat(list(t), a["axis"]),
    "Expand": lambda t, a: t[0] * torch.ones(tuple(t[1].tolist()), dtype=t[0].dtype) if t[0].dtype != torch.bool else
    t[0] & torch.ones(tuple(t[1].tolist()), dtype=torch.bool),
    "ConstantOfShape": _constant_of_shape, "Range": _range, "Tile": lambda t, a: t[0].repeat(t[1].tolist()),
    "Shape": lambda t, a: torch.tensor(list(t[0].shape[slice(a.get("start", 0), a.get("end"))]), dtype=torch.int64),
}
