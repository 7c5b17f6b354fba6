"""Computes a node with PyTorch itself where all that it reads is constant."""

from __future__ import annotations

from typing import Any

import torch

from onnxport.aten.graph import Node
from onnxport.ops import registry
from onnxport.target import folding
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim
from onnxport.target.value import Constant, Value

_VIEWS = frozenset({"aten::t", "aten::transpose", "aten::permute", "aten::view", "aten::reshape", "aten::unsqueeze", "aten::squeeze",
                    "aten::slice", "aten::select", "aten::narrow", "aten::flatten", "aten::detach", "aten::alias", "aten::movedim"})


_CASTS = frozenset({"aten::to", "aten::_to_copy", "aten::type_as"})
_GROWTH = 4  # a layer of weights applied to a constant may give so much more than it reads


class _UnknownError(Exception):
    """An argument is no constant."""


def compute(g: Builder, node: Node, args: dict[str, Any]) -> Any:
    """The node's result as constants, or None where something is no constant or the result is too large to be stored.

    A result may be as large as the constants it comes from (a weight that is scaled stays a weight); what grows out of
    nothing (`ones(500, 500)`) stays an operator.
    """
    if not node.op.startswith("aten::"):
        return None
    operator = registry.find(node.op, node.overload)
    if operator is not None and not operator.fold:
        return None
    found: list[Constant] = []
    try:
        plain = {name: _plain(arg, found) for name, arg in args.items()}
    except _UnknownError:
        return None
    if folding.kept(g, found):
        return None
    outputs = node.outputs
    if any(o.kind != "tensor" or o.shape is None or None in o.shape or o.dtype is None for o in outputs) or not outputs:
        return None
    size_in = sum(_size(c) for c in found)
    size_out = sum([o.dtype.itemsize * _count(o.shape) for o in outputs if o.dtype is not None and o.shape is not None])
    if size_out > folding.SMALL and node.op in _CASTS and folding.widens(node.args["self"].dtype, outputs[0].dtype):  # type: ignore[arg-type]
        return None
    if size_out > max(size_in * (_GROWTH if any(c.parameter for c in found) else 1), folding.SMALL):
        return None
    overload = _overload(node)
    if overload is None:
        return None
    if len(outputs) == 1:
        out = outputs[0]
        assert out.dtype is not None and out.shape is not None
        if node.op in _VIEWS and not any(c.is_lazy for c in found):
            tensor = _call(overload, plain)
            return folding.folded(g, tensor, found, any(c.parameter for c in found))
        return folding.lazily(g, lambda: _call(overload, plain), out.dtype, out.shape, found)
    results = _call(overload, plain)
    return [folding.folded(g, t, found, any(c.parameter for c in found)) for t in results]


def _call(overload: Any, plain: dict[str, Any]) -> Any:
    with torch.no_grad():
        return overload(**{name: _tensors(arg) for name, arg in plain.items()})


def _tensors(arg: Any) -> Any:
    if isinstance(arg, Constant):
        return arg.tensor
    return [_tensors(a) for a in arg] if isinstance(arg, list) else arg


def _plain(arg: Any, found: list[Constant]) -> Any:
    if isinstance(arg, Value):
        if arg.const is None:
            raise _UnknownError
        found.append(arg.const)
        return arg.const
    if isinstance(arg, Dim):
        raise _UnknownError
    if isinstance(arg, (list, tuple)):
        return [_plain(a, found) for a in arg]
    return arg


def _size(constant: Constant) -> int:
    if constant.is_lazy:
        return 1 << 62  # it is as large as a weight already
    return constant.tensor.numel() * constant.tensor.element_size()


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _overload(node: Node) -> Any:
    packet = getattr(torch.ops.aten, node.op[6:], None)
    if packet is None or node.schema is None:
        return None
    return getattr(packet, node.overload or "default", None)
