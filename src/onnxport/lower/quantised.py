"""Nodes of quantised tensors: what PyTorch's schemas leave open, namely on which grid the result of each operator lies.

Operators that say it themselves (`quantized::add`) are functions of `ops/`. Of the others, those that only move elements move the
integers, and the rest compute with floats whose result is quantised again, on the grid that PyTorch gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from onnxport import errors
from onnxport.aten.graph import Node
from onnxport.ops import registry
from onnxport.ops.quantised import Quantised, like, on_grid, same
from onnxport.ops.quantised import constant as of_constant
from onnxport.ops.quantised_tensors import bounded, cat, nearest
from onnxport.ops.quantised_tensors import threshold as by_threshold
from onnxport.target.builder import Builder
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

Args = dict[str, Any]


def constant(g: Builder, tensor: Callable[[], torch.Tensor], name: str | None) -> Any:
    """A weight of a quantised layer; some keep it in float16."""
    return of_constant(g, tensor, name) if (found := tensor()).is_quantized else g.constant(found, name=name, parameter=name is not None)


def concerns(args: Args) -> bool:
    """Whether a node reads a quantised tensor."""
    return any(isinstance(arg, Quantised) or (type(arg) in (list, tuple) and any(isinstance(item, Quantised) for item in arg))
               for arg in args.values())


def lower(low: Lowering, node: Node, args: Args) -> Any:
    """The result of a node that reads a quantised tensor."""
    name = node.op.removeprefix("aten::")
    rule = _RULES.get(name)
    if rule is not None:
        return rule(low, node, args)
    if name in _MOVING:
        return _moved(low, node, args)
    operator = registry.find(node.op, node.overload)
    if node.op.startswith("quantized::") or name in _OWN:
        from onnxport.lower.lowering import select

        assert operator is not None
        return operator.function(low.g, **select(operator, node, args))
    raise errors.UnsupportedError(f"{node.op} of a quantised tensor: take its dequantize(), and quantize the result")


# ---------------------------------------------------------------------- elements that move


def _moved(low: Lowering, node: Node, args: Args) -> Any:
    """The operator on the integers; what has their dtype in the results stands for numbers of the same grid."""
    first = _quantised(args)[0] if node.op in _STAYING else _first(node, args)
    if not all(same(x.grid, first.grid) for x in _quantised(args)):
        raise errors.UnsupportedError(f"{node.op} of tensors that are quantised with different scales")
    return _wrapped(low.builtin(node, {name: _replaced(arg, lambda x: x.integers) for name, arg in args.items()}), first)


_STAYING = frozenset({"aten::detach", "aten::contiguous", "aten::clone", "aten::to", "aten::alias"})


def _first(node: Node, args: Args) -> Quantised:
    """The first quantised argument, whose grid the result has: one for all elements, wherever they go."""
    first = _quantised(args)[0]
    if first.grid.axis is not None:
        raise errors.UnsupportedError(f"{node.op} of a tensor that is quantised channel by channel: take its dequantize()")
    return first


def _quantised(args: Args) -> list[Quantised]:
    return [x for arg in args.values() for x in (arg if isinstance(arg, (list, tuple)) else [arg]) if isinstance(x, Quantised)]


def _replaced(arg: Any, change: Callable[[Quantised], Any]) -> Any:
    if isinstance(arg, Quantised):
        return change(arg)
    return [_replaced(item, change) for item in arg] if type(arg) in (list, tuple) else arg


def _wrapped(result: Any, model: Quantised) -> Any:
    if isinstance(result, Value):
        return model.with_integers(result) if result.dtype == model.integers.dtype else result
    return [_wrapped(item, model) for item in result] if isinstance(result, (list, tuple)) else result


# ---------------------------------------------------------------------- numbers that are computed


def _floats(low: Lowering, node: Node, args: Args) -> Any:
    """The operator on floats."""
    return low.builtin(node, {name: _replaced(arg, lambda x: x.numbers(low.g)) for name, arg in args.items()})


def _same_grid(low: Lowering, node: Node, args: Args) -> Any:
    """The result lies on the grid of the argument."""
    first, made = _first(node, args), _floats(low, node, args)
    assert first.integers.dtype is not None
    return like(low.g, made, first.grid, first.integers.dtype)


def _averaged(low: Lowering, node: Node, args: Args) -> Any:
    """Averages are the same on any scale; of whole numbers they are exact, and what lies in the middle of two is rounded as PyTorch does."""
    steps = {name: _replaced(arg, lambda x: Quantised(x.integers, replace(x.grid, scale=low.g.const(1.0)))) for name, arg in args.items()}
    (first,) = _quantised(args)
    return first.with_integers(_same_grid(low, node, steps).integers)


_FROM_ZERO_TO_ONE = {torch.quint8: (1 / 256, 0), torch.qint8: (1 / 256, -128), torch.qint32: (2.0**-32, -2**31)}
_FROM_MINUS_ONE = {torch.quint8: (2 / 256, 128), torch.qint8: (2 / 256, 0), torch.qint32: (2.0**-31, 0)}


def _fixed_grid(grids: dict[torch.dtype, tuple[float, int]]) -> Any:
    def rule(low: Lowering, node: Node, args: Args) -> Any:
        first, made = _first(node, args), _floats(low, node, args)
        return on_grid(low.g, made, *grids[first.dtype], first.dtype)

    return rule


def _between(low_name: str | None, high_name: str | None, low_end: float | None = None, high_end: float | None = None) -> Any:
    """Bounds of the integers; a bound has the name of an argument, or is known."""
    def rule(low: Lowering, node: Node, args: Args) -> Any:
        ends = [args.get(name) if name else end for name, end in ((low_name, low_end), (high_name, high_end))]
        if any(isinstance(end, Value) for end in ends):
            raise errors.UnsupportedError(f"{node.op} of a quantised tensor with tensors for bounds")
        return bounded(low.g, args["self"], *ends)

    return rule


def _cat(low: Lowering, node: Node, args: Args) -> Any:
    """`torch.cat`: on the grid of the first."""
    _first(node, args)
    return cat(low.g, args["tensors"], args.get("dim", 0), None, None)


def _threshold(low: Lowering, node: Node, args: Args) -> Any:
    return by_threshold(low.g, args["self"], args["threshold"], args["value"])


def _pad(low: Lowering, node: Node, args: Args) -> Any:
    """Padding: by elements, or by a number of the grid."""
    x, value = args["self"], args.get("value") or 0
    return _moved(low, node, {**args, "value": nearest(x, float(value))} if args.get("mode", "constant") == "constant" else args)


_OWN = frozenset({"dequantize", "int_repr", "q_scale", "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis",
                  "quantized_batch_norm"})
_MOVING = frozenset({
    "alias", "as_strided", "broadcast_to", "channel_shuffle", "chunk", "clone", "contiguous", "detach", "expand", "expand_as", "flatten",
    "flip", "index", "index_select", "max", "max_pool1d", "max_pool2d", "max_pool3d", "min", "movedim", "narrow", "permute",
    "pixel_shuffle", "pixel_unshuffle", "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d", "reflection_pad1d",
    "reflection_pad2d", "repeat", "reshape", "_reshape_alias", "reshape_as", "select", "slice", "sort", "split", "split_with_sizes",
    "squeeze", "stack", "swapaxes", "t", "tensor_split", "to", "_to_copy", "topk", "transpose", "unbind", "unflatten", "unfold",
    "unsafe_chunk", "unsqueeze", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "view", "view_as",
})
_RULES: dict[str, Callable[[Any, Node, Args], Any]] = {
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
                     "avg_pool1d", "avg_pool2d", "avg_pool3d", "mean", "upsample_bilinear2d"), _averaged),
    **dict.fromkeys(("gelu", "grid_sampler", "grid_sampler_2d", "leaky_relu", "masked_fill", "std", "_prelu_kernel"), _same_grid),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "equal", "item", "allclose", "isclose"), _floats),
    "sigmoid": _fixed_grid(_FROM_ZERO_TO_ONE), "hardsigmoid": _fixed_grid(_FROM_ZERO_TO_ONE), "tanh": _fixed_grid(_FROM_MINUS_ONE),
    "relu": _between(None, None, 0.0), "relu6": _between(None, None, 0.0, 6.0), "clamp": _between("min", "max"), "clip": _between("min", "max"),
    "hardtanh": _between("min_val", "max_val"), "clamp_min": _between("min", None), "clamp_max": _between(None, "max"),
    "cat": _cat, "concat": _cat, "threshold": _threshold, "pad": _pad, "constant_pad_nd": _pad,
}

