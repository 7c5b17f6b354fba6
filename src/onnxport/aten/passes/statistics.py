"""Normalisations that keep running statistics: what they write, which their schemas do not say, in ATen nodes."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from onnxport.aten.graph import Arg, Node, Value
from onnxport.aten.make import Maker

# operator -> the argument that switches the update on
_TRAINING = {
    "aten::batch_norm": "training", "aten::native_batch_norm": "training", "aten::_native_batch_norm_legit": "training",
    "aten::_batch_norm_impl_index": "training", "aten::cudnn_batch_norm": "training", "aten::miopen_batch_norm": "training",
    "aten::instance_norm": "use_input_stats",
}


def updates(node: Node) -> bool:
    """Whether the node changes running statistics."""
    switch = _TRAINING.get(node.op)
    return switch is not None and node.args[switch] is True and isinstance(node.args.get("running_mean"), Value)


def written(make: Maker, node: Node) -> Iterator[tuple[str, Value]]:
    """(argument that is a running statistic, its new value). `node` has the newest values for arguments."""
    args = node.args
    data = args["input"]
    momentum = args.get("momentum", args.get("exponential_average_factor"))
    for name, overload in (("running_mean", "dim"), ("running_var", "correction")):
        old = args[name]
        x = make.cast(data, old.dtype) if data.dtype != old.dtype else data
        yield name, make.emit("aten::lerp", "Scalar", old, self=old, end=_statistic(make, node, x, old, overload), weight=momentum)


def functional(node: Node, read: dict[str, Arg]) -> None:
    """Makes of `batch_norm` in training the operator that gives its statistics as results; `read`: its arguments as it read them."""
    mean = read.get("running_mean")
    if node.op != "aten::batch_norm" or not isinstance(read["momentum"], float) or not isinstance(mean, Value):
        return
    if mean.shape is None or mean.dtype not in (torch.float32, torch.float64):  # halves are computed, and their statistics kept, in float32
        return
    names = ("input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps")
    node.op, node.overload, node.schema = "aten::_native_batch_norm_legit_functional", "", None
    node.args = {name: read[name] for name in names}
    node.outputs = [*node.outputs, *[Value("tensor", mean.dtype, mean.shape) for _ in range(4)]]


def _statistic(make: Maker, node: Node, x: Value, old: Value, overload: str) -> Value:
    """Mean or unbiased variance a channel; for instance norm, those of the instances on average."""
    assert x.shape is not None
    assert old.shape is not None
    outer = list(range(2, len(x.shape)))
    if node.op != "aten::instance_norm":
        return _reduce(make, x, [0, *outer], old.shape, overload)
    one = _reduce(make, x, outer, (x.shape[0], *old.shape), overload)
    return _reduce(make, one, [0], old.shape, "dim")


def _reduce(make: Maker, x: Value, dims: list[int], shape: tuple[int, ...], overload: str) -> Value:
    out = Value("tensor", x.dtype, shape)
    if overload == "dim":
        return make.emit("aten::mean", "dim", out, self=x, dim=dims, keepdim=False, dtype=None)
    return make.emit("aten::var", "correction", out, self=x, dim=dims, correction=1, keepdim=False)
