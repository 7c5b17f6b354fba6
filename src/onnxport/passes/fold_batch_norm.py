"""Folds a BatchNormalization in eval mode into the convolution before it: one node less, the same numbers.

The new weight and bias are lazy: computed while they are written, so that nothing is copied now. The factor of a channel is
worked out in float64 and rounded once, so that a folded weight has two roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx_ir as ir
import torch

from onnxport.target.dtypes import to_torch
from onnxport.target.emit import CALL
from onnxport.target.value import Constant
from onnxport.target.weights import Weight

_PIECE = 4 << 20  # bytes of a large weight that are folded at a time
_CONVOLUTIONS = {"Conv": 0, "ConvTranspose": 1}  # -> the axis of the output channels (of one group) in the weight


def run(model: ir.Model) -> int:
    """Returns how many were folded."""
    graph = model.graph
    count = 0
    for node in graph:
        if node.op_type == "BatchNormalization" and not node.domain and _fold(graph, node):
            count += 1
    return count


def _fold(graph: ir.Graph, norm: ir.Node) -> bool:
    source = norm.inputs[0]
    conv = source.producer() if source is not None else None
    if conv is None or conv.domain or conv.op_type not in _CONVOLUTIONS or source is None:
        return False
    if conv.meta.get(CALL) is not norm.meta.get(CALL):
        return False
    if len(source.uses()) != 1 or source.is_graph_output() or len([o for o in norm.outputs if o.name]) > 1:
        return False
    if norm.attributes.get_int("training_mode", 0) or norm.attributes.get_int("spatial", 1) == 0:
        return False
    weights = [conv.inputs[1], *(conv.inputs[2:3]), *norm.inputs[1:5]]
    constants = [_constant(v) for v in weights]
    if any(c is None for c in constants) or conv.inputs[1] is None:
        return False
    weight, *bias, scale, shift, mean, variance = (c for c in constants if c is not None)
    kernel = conv.inputs[1]
    shape = tuple(kernel.shape.numpy()) if kernel.shape is not None else ()
    groups = conv.attributes.get_int("group", 1)
    dtype = to_torch(ir.DataType(kernel.dtype))  # type: ignore[arg-type]
    epsilon = norm.attributes.get_float("epsilon", 1e-5)
    transposed = conv.op_type == "ConvTranspose"
    channels = shape[1] * groups if transposed else shape[0]

    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype

    def factor() -> torch.Tensor:
        return scale.tensor.double() / torch.sqrt(variance.tensor.double() + epsilon)

    def new_weight() -> torch.Tensor:
        w, by = weight.tensor, factor().to(wide)
        if transposed:
            split = by.reshape(groups, 1, shape[1], *[1] * (len(shape) - 2))
            return (w.reshape(groups, shape[0] // groups, *shape[1:]) * split).reshape(shape).to(dtype)
        return (w * by.reshape(-1, *[1] * (len(shape) - 1))).to(dtype)

    def pieces() -> Iterator[torch.Tensor]:
        w, by = weight.tensor.detach(), factor().detach().to(wide).reshape(-1, *[1] * (len(shape) - 1))
        rows = max(_PIECE * shape[0] // (w.numel() * w.element_size()), 1)
        for start in range(0, shape[0], rows):
            yield (w[start : start + rows] * by[start : start + rows]).to(dtype)

    def new_bias() -> torch.Tensor:
        before = bias[0].tensor.double() if bias else 0.0
        return ((before - mean.tensor.double()) * factor() + shift.tensor.double()).to(dtype)

    large = not transposed and not weight.is_lazy and weight.tensor.numel() * weight.tensor.element_size() > _PIECE
    conv.replace_input_with(1, _initializer(graph, kernel, new_weight, shape, pieces if large else None))
    named = weights[1] if bias else norm.inputs[2]
    assert named is not None
    new = _initializer(graph, named, new_bias, (channels,))
    if len(conv.inputs) < 3:
        conv.resize_inputs(3)
    conv.replace_input_with(2, new)
    result, output = norm.outputs[0], conv.outputs[0]
    old_inputs = [v for v in norm.inputs if v is not None]
    result.replace_all_uses_with(output, replace_graph_outputs=True)
    output.name, result.name = result.name, None
    graph.remove(norm, safe=True)
    for value in [*old_inputs, *weights]:
        if value is not None and value.is_initializer() and not value.uses() and value.name:
            _drop(graph, value)
    return True


def _constant(value: ir.Value | None) -> Constant | None:
    weight = value.const_value if value is not None else None
    return weight.constant if isinstance(weight, Weight) else None


def _initializer(graph: ir.Graph, like: ir.Value, compute: Callable[[], torch.Tensor], shape: tuple[int, ...],
                 pieces: Callable[[], Iterator[torch.Tensor]] | None = None) -> ir.Value:
    """A computed weight in place of `like`, whose name it takes where nobody else reads that."""
    assert like.name is not None and isinstance(like.const_value, Weight)
    shared = len(like.uses()) > 1
    name = f"{like.name}_folded" if shared else like.name
    while shared and name in graph.initializers:
        name += "_1"
    if not shared:
        like.name = f"{like.name}.unfolded"
    value = ir.Value(name=name, shape=ir.Shape(shape), type=like.type)
    dtype = ir.DataType(like.dtype)  # type: ignore[arg-type]
    value.const_value = Weight(Constant(None, compute=compute, name=name, parameter=True, pieces=pieces), dtype, shape, name)
    graph.initializers.add(value)
    if like in graph.inputs:
        graph.inputs.insert(graph.inputs.index(like), value)
    return value


def _drop(graph: ir.Graph, value: ir.Value) -> None:
    if value in graph.inputs:
        graph.inputs.remove(value)
    if value.name is not None and value.name in graph.initializers:
        del graph.initializers[value.name]
