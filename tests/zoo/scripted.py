"""Torchvision's models that compute with no control flow of their own, scripted and traced: the same numbers, and no more nodes.

    python -m tests.zoo.scripted [--models a,b] [--opsets 18,28] [--out table.md]
"""

from __future__ import annotations

import argparse
import functools
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
import torch

import onnxport
from onnxport import structure
from onnxport.options import newest_opset
from tests.zoo import tables
from tests.zoo.models import shaken

Inputs = tuple[torch.Tensor, ...]
TOLERANCE = 2e-5  # of the largest value of an output

_FREE = {0: "batch", 2: "height", 3: "width"}
# Of models that come in several sizes, where only depth or width differ, one or two stand for all; `--models` takes any of them.
_CLASSIFIERS = (
    "alexnet", "convnext_tiny", "densenet121", "densenet161", "efficientnet_b0", "efficientnet_b4", "efficientnet_v2_s", "googlenet", "inception_v3",
    "maxvit_t", "mnasnet0_5", "mnasnet1_3", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf",
    "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "squeezenet1_0", "squeezenet1_1", "swin_t", "swin_v2_t",
    "vgg11", "vgg11_bn", "vit_b_16", "wide_resnet50_2")
_SEGMENTERS = ("deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large")
_VIDEO = ("r3d_18", "mc3_18", "r2plus1d_18", "s3d", "mvit_v1_b", "mvit_v2_s", "swin3d_t")
_FLOW = ("raft_small",)
MODELS = (*_CLASSIFIERS, *_SEGMENTERS, *_VIDEO, *_FLOW)
_FIXED = ("maxvit", "vit_")  # families of one image size
_OTHER = {"inception_v3": (128, 160)}


@dataclass
class Model:
    """A model, its example, other inputs, and which axes differ between them."""

    module: torch.nn.Module
    inputs: Sequence[Inputs]
    axes: Mapping[str, Mapping[int, str]]


@functools.lru_cache(maxsize=1)
def build(name: str) -> Model:
    """A model with random weights, and inputs of several sizes where it takes them."""
    import torchvision

    models = torchvision.models
    torch.manual_seed(0)
    if hasattr(models.segmentation, name):
        return _of_images(getattr(models.segmentation, name)(weights=None, weights_backbone=None, num_classes=5), ((2, 64, 64), (1, 97, 64), (3, 64, 130)))
    if hasattr(models.video, name):
        return _of_videos(name, getattr(models.video, name)(weights=None, num_classes=5))
    if hasattr(models.optical_flow, name):
        make = lambda n, h, w: (torch.rand(n, 3, h, w) * 2 - 1, torch.rand(n, 3, h, w) * 2 - 1)
        return Model(shaken(getattr(models.optical_flow, name)(weights=None)), [make(1, 128, 128), make(2, 136, 160)], {"x": _FREE, "x1": _FREE})
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    net = getattr(models, name)(weights=None, num_classes=5, **options)
    if name.startswith(_FIXED):
        return _of_images(net, ((1, 224, 224), (2, 224, 224)), {0: "batch"})
    size, other = _OTHER.get(name, (96, 130))
    return _of_images(net, ((2, size, size), (1, size, other), (3, other, size)))


def _of_images(net: torch.nn.Module, sizes: Sequence[tuple[int, int, int]], axes: Mapping[int, str] = _FREE) -> Model:
    return Model(shaken(net), [(torch.rand(n, 3, h, w) * 2 - 1,) for n, h, w in sizes], {"x": axes})


def _of_videos(name: str, net: torch.nn.Module) -> Model:
    fixed = name.startswith("mvit")
    size = 224 if name == "s3d" else 64
    shapes = ((1, 3, 16, 224, 224), (2, 3, 16, 224, 224)) if fixed else ((1, 3, 16, size, size), (2, 3, 18, size, size + 32))
    return Model(shaken(net), [(torch.rand(shape) * 2 - 1,) for shape in shapes], {"x": {0: "batch"} if fixed else {**_FREE, 2: "frames", 3: "height", 4: "width"}})


def export(model: Model, way: str, opset: int) -> tuple[bytes, int]:
    """The file and its number of nodes, those of branches and loops too. way: "traced" or "scripted"."""
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.script(model.module) if way == "scripted" else model.module
        program = onnxport.export(module, model.inputs[0], stream, opset_version=opset, input_names=list(model.axes), dynamic_axes=model.axes,
                                   training=onnxport.TrainingMode.EVAL)
    return stream.getvalue(), count(program.model.graph)


def count(graph: Any) -> int:
    """How many nodes there are, those of subgraphs too."""
    return sum(1 + sum(count(attr.value) for attr in node.attributes.values() if attr.type.name == "GRAPH") for node in graph)


def difference(model: Model, data: bytes, scripted: bool) -> float:
    """The largest difference over the outputs' scale, over all inputs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    worst = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.script(model.module) if scripted else model.module
    for args in model.inputs:
        with torch.no_grad():
            wanted = [leaf.value.numpy() for leaf in structure.flatten(module(*(a.clone() for a in args)))[0]]
        got = session.run(None, dict(zip(model.axes, [a.numpy() for a in args], strict=True)))
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype, f"{a.dtype}{a.shape}, PyTorch has {b.dtype}{b.shape}"
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-30)))
    return worst


@dataclass
class Compared:
    """A scripted export: its difference to PyTorch, its nodes and those of the traced one."""

    worst: float
    scripted: int
    traced: int


def compare(name: str, opset: int) -> Compared:
    """Exports a model both ways."""
    model = build(name)
    data, nodes = export(model, "scripted", opset)
    worst = difference(model, data, scripted=True)
    _, traced = export(model, "traced", opset)
    return Compared(worst, nodes, traced)


def _verdict(name: str, opset: int) -> tuple[bool, str]:
    found = compare(name, opset)
    return found.worst <= TOLERANCE, f"{found.worst:.1e} / {found.scripted} / {found.traced}"


def main() -> None:
    """Prints one line for each model and opset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--opsets", default=f"18,{newest_opset()}")
    parser.add_argument("--out", default="")
    parser.add_argument("--traceback", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[tables.Row] = [
        ((name,), opset, tables.tried(f"{name:34s}", opset, functools.partial(_verdict, name, opset), options.traceback))
        for name in options.models.split(",") for opset in map(int, options.opsets.split(","))]
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(tables.table(["model"], rows))


if __name__ == "__main__":
    main()
