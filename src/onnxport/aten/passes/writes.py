"""The functional forms of operators that write in place."""

from __future__ import annotations

import functools
from typing import Any

import torch

from onnxport.aten.graph import Node, Value

# In-place operators that turn the tensor object into another view of its memory; they write nothing.
METADATA = frozenset(f"aten::{name}_" for name in (
    "squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims", "detach", "as_strided"))
# The content of `self` before the write does not matter, only its sizes.
OVERWRITES = frozenset(f"aten::{name}_" for name in (
    "copy", "fill", "zero", "uniform", "normal", "bernoulli", "exponential", "log_normal", "cauchy", "geometric", "random"))
REFUSED = {
    "aten::set_": "it gives a tensor another storage", "aten::resize_": "it changes a tensor's size in place",
    "aten::resize_as_": "it changes a tensor's size in place",
}
_RENAMED = {
    ("aten::normal_", ""): ("aten::normal_functional", ""), ("aten::bernoulli_", "float"): ("aten::bernoulli", "p"),
    ("aten::_index_put_impl_", ""): ("aten::index_put", ""), ("aten::clip_", ""): ("aten::clamp", ""),
}
# Results of these are bool, whatever they are written into.
_TRUTHS = frozenset(f"aten::{name}_" for name in (
    "eq", "ne", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "not_equal", "logical_and", "logical_or",
    "logical_xor", "logical_not"))
# Arguments that take part in type promotion; others are indices, masks and sources of self's own dtype.
_PROMOTED = ("other", "tensor1", "tensor2", "end", "weight", "exponent", "min", "max")


def functional_name(node: Node) -> tuple[str, str]:
    """Operator and overload without the write."""
    renamed = _RENAMED.get((node.op, node.overload))
    if renamed is not None:
        return renamed
    op = node.op
    if op.startswith("aten::__i"):  # __iand__ -> __and__
        op = "aten::__" + op[9:]
    elif op.endswith("_"):
        op = op[:-1]
    return op, overload_of(op, node.overload, tuple(node.args))


@functools.lru_cache(maxsize=None)
def overload_of(op: str, overload: str, names: tuple[str, ...]) -> str:
    """The overload of a functional operator with these arguments; in-place ones are not always named alike."""
    packet = getattr(torch.ops.aten, op[6:], None)
    if packet is None:
        return overload
    known = [("" if name == "default" else name) for name in packet.overloads()]
    if overload in known:
        return overload
    for name in known:
        schema = getattr(packet, name or "default")._schema
        if tuple(a.name for a in schema.arguments) == names and name.startswith("Tensor"):
            return name
    return overload


def natural_dtype(node: Node, current: Value) -> torch.dtype | None:
    """The dtype that the functional form gives before it is cast back to that of the written tensor."""
    if node.op in _TRUTHS:
        return torch.bool
    dtype = current.dtype
    if dtype is None:
        return None
    found = [_sample(dtype, bool(current.shape))]
    for name in _PROMOTED:
        arg = node.args.get(name)
        if isinstance(arg, Value) and arg.kind == "tensor" and arg.dtype is not None and arg.dtype != dtype:
            found.append(_sample(arg.dtype, bool(arg.shape)))
    result = found[0]
    for other in found[1:]:
        result = _sample(torch.result_type(result, other), bool(result.dim() or other.dim()))
    return result.dtype


@functools.lru_cache(maxsize=None)
def _sample(dtype: torch.dtype, dims: bool) -> torch.Tensor:
    return torch.empty((1,) if dims else (), dtype=dtype, device="meta")


def plain_number(value: Any, dtype: torch.dtype | None) -> Any:
    """A fill value as the Python number that self's dtype makes of it, or None where it is not known."""
    if isinstance(value, Value):
        if value.constant is None or value.name is not None or value.constant.numel() != 1:
            return None
        value = value.constant.item()
    if dtype is None or isinstance(value, complex) or dtype.is_complex:
        return value
    if dtype == torch.bool:
        return bool(value)
    return float(value) if dtype.is_floating_point else int(value)
