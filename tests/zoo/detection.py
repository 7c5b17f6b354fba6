"""Torchvision's detectors, traced and scripted, held against PyTorch as sets of detections.

    python -m tests.zoo.detection [--models a,b] [--opsets 18,28] [--ways traced,scripted] [--defaults] [--out table.md]

Weights are random. The score threshold is put where a plain image has no detection and one full of shapes has many.
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
from onnxport.options import newest_opset
from tests.zoo import tables

nn = torch.nn
Image = torch.Tensor
SIZES = ((120, 150), (160, 104))
TOLERANCE = 1e-3  # of the image's larger side for places, of 1 for scores and masks

_SMALL = {"min_size": 128, "max_size": 192}
_RCNN = {**_SMALL, "rpn_pre_nms_top_n_test": 100, "rpn_post_nms_top_n_test": 60, "box_detections_per_img": 40}
_SINGLE = {**_SMALL, "detections_per_img": 40, "topk_candidates": 100}
# Options that keep the run short; `--defaults` leaves them out.
MODELS: dict[str, dict[str, Any]] = {
    "fasterrcnn_resnet50_fpn": _RCNN, "fasterrcnn_resnet50_fpn_v2": _RCNN, "fasterrcnn_mobilenet_v3_large_fpn": _RCNN,
    "fasterrcnn_mobilenet_v3_large_320_fpn": _RCNN, "maskrcnn_resnet50_fpn": _RCNN, "maskrcnn_resnet50_fpn_v2": _RCNN,
    "keypointrcnn_resnet50_fpn": {**_RCNN, "box_detections_per_img": 20}, "retinanet_resnet50_fpn": _SINGLE, "retinanet_resnet50_fpn_v2": _SINGLE,
    "fcos_resnet50_fpn": _SINGLE, "ssd300_vgg16": {"detections_per_img": 40, "topk_candidates": 100},
    "ssdlite320_mobilenet_v3_large": {"detections_per_img": 40, "topk_candidates": 100},
}

_CANDIDATES = ((0, 1.0), (60, 0.5), (60, 1.0), (60, 1.5), (60, 2.0))  # shapes and contrast


@dataclass
class Detector:
    """A detector and images: at each size one on which it finds nothing, and one on which it finds many."""

    module: nn.Module
    images: Sequence[Image]


@dataclass
class Outcome:
    """One export held against PyTorch. worst: in units of the tolerance."""

    worst: float
    counts: Sequence[int]
    nodes: int


@functools.lru_cache(maxsize=1)
def build(name: str, defaults: bool = False) -> Detector:
    """A detector with random weights and statistics of its activations as after training."""
    import torchvision

    torch.manual_seed(0)
    options: dict[str, Any] = {} if defaults else MODELS[name]
    classes = 2 if name.startswith("keypoint") else 5
    module = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, num_classes=classes, **options)
    _settle(module)
    return Detector(module, _chosen(module))


def picture(size: tuple[int, int], shapes: int, contrast: float = 1) -> Image:
    """A grey image with rectangles in it."""
    height, width = size
    image = torch.full((3, height, width), 0.5)
    for _ in range(shapes):
        y, x = int(torch.randint(0, height - 8, ())), int(torch.randint(0, width - 8, ()))
        h, w = int(torch.randint(8, height // 2, ())), int(torch.randint(8, width // 2, ()))
        image[:, y : y + h, x : x + w] = 0.5 + (torch.rand(3, 1, 1) - 0.5) * contrast
    return image


def _settle(module: Any) -> None:
    """Layers behind the backbone give results of one size, as after training (and the backbone of any, as long as its batch norms stay 0 and 1)."""
    images = [picture((128, 160), 60) for _ in range(2)]
    with torch.no_grad():
        module.eval()
        layers = [(name, m) for name, m in module.named_modules() if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear))]
        hooks = [m.register_forward_hook(_scaling(1.0 if "cls" in name or "class" in name else 0.5 if "bbox_pred" in name else 1.0))
                 for name, m in layers if not name.startswith("backbone.body") and not name.startswith("backbone.features")]
        module(images)
        for hook in hooks:
            hook.remove()


def _fresh(module: nn.Module) -> nn.Module:
    """Without what region poolers remember of the first image that they saw."""
    for inner in module.modules():
        if hasattr(inner, "map_levels"):
            inner.scales = inner.map_levels = None
    return module


def _scaling(wanted: float) -> Any:
    """A hook that makes a layer's first result of this size, by its weights."""
    done: list[Any] = []

    def scale(layer: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor | None:
        if done or output.numel() < 2:
            return None
        done.append(layer)
        if layer.bias is not None:
            layer.bias.zero_()
            output = layer.forward(*inputs)
        factor = wanted / max(float(output.std()), 1e-6)
        layer.weight.mul_(factor)
        return output * factor

    return scale


def _chosen(module: Any) -> list[Image]:
    """Of each size an image with nothing and one with many detections; puts the score threshold between them, in a gap."""
    owner = module.roi_heads if hasattr(module, "roi_heads") else module
    owner.score_thresh = 0.0
    groups = [[picture(size, shapes, contrast) for shapes, contrast in _CANDIDATES] for size in SIZES]
    with torch.no_grad():
        scores = [[module([image])[0]["scores"] for image in group] for group in groups]
    lowest = [min(range(len(group)), key=lambda i: float(group[i].max()) if len(group[i]) else 0.0) for group in scores]
    least = max([float(s) for i, group in zip(lowest, scores, strict=True) for s in group[i]], default=0.0)
    most = [max(range(len(group)), key=lambda i: int((group[i] > least).sum())) for group in scores]
    above = torch.cat([torch.tensor([least]), *[group[i][group[i] > least] for i, group in zip(most, scores, strict=True)]]).sort().values
    lower = above[: max(2, len(above) // 3)]
    assert len(lower) > 1, "no image has a better detection than the others"
    gap = int((lower[1:] - lower[:-1]).argmax())
    owner.score_thresh = float(lower[gap] + lower[gap + 1]) / 2
    return [group[i] for group, pair in zip(groups, zip(lowest, most, strict=True), strict=True) for i in pair]


def run(detector: Detector, way: str, opset: int, count: int = 1) -> Outcome:
    """Exports a detector for lists of `count` images and runs it on all of its images. way: "traced" or "scripted"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = _fresh(detector.module)
        module = torch.jit.script(module) if way == "scripted" else module
        names = [f"image{i}" for i in range(count)]
        stream = io.BytesIO()
        example = detector.images[1:][:count]
        program = onnxport.export(module, (list(example),), stream, opset_version=opset, input_names=names,
                                   dynamic_axes={n: {1: f"height{i}", 2: f"width{i}"} for i, n in enumerate(names)})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(stream.getvalue(), options, providers=["CPUExecutionProvider"])
    worst, counts = 0.0, []
    batches = [[detector.images[(start + i) % len(detector.images)] for i in range(count)] for start in range(len(detector.images))]
    for batch in batches:
        with torch.no_grad():
            results = module(list(batch))
        want = results[1] if way == "scripted" else results
        flat = iter(session.run(None, {name: image.numpy() for name, image in zip(names, batch, strict=True)}))
        for image, detections in zip(batch, want, strict=True):
            got = {key: next(flat) for key in detections}
            counts.append(len(detections["scores"]))
            worst = max(worst, difference(got, {key: value.numpy() for key, value in detections.items()}, max(image.shape[1:])))
    return Outcome(worst, counts, program.model.graph.num_nodes())


def difference(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], size: int) -> float:
    """How far two sets of detections are apart, in units of the tolerance; the order among them does not matter."""
    for key, value in want.items():
        assert got[key].dtype == value.dtype, key
        assert got[key].shape == value.shape, f"{key}: {got[key].shape}, PyTorch has {value.shape}"
    free, worst = list(range(len(want["scores"]))), 0.0
    for i in range(len(want["scores"])):
        distances = [_distance(got, j, want, i, size) for j in free]
        nearest = int(np.argmin(distances))
        worst = max(worst, distances[nearest])
        free.pop(nearest)
    return worst


def _distance(got: Mapping[str, np.ndarray], j: int, want: Mapping[str, np.ndarray], i: int, size: int) -> float:
    if got["labels"][j] != want["labels"][i]:
        return float("inf")
    found = max(float(np.abs(got["boxes"][j] - want["boxes"][i]).max()) / size, abs(float(got["scores"][j] - want["scores"][i])))
    if found < 10 * TOLERANCE:
        if "masks" in want:
            found = max(found, float(np.abs(got["masks"][j] - want["masks"][i]).max()))
        if "keypoints" in want:
            found = max(found, float(np.abs(got["keypoints"][j] - want["keypoints"][i]).max()) / size)
            found = max(found, _relative(got["keypoints_scores"][j], want["keypoints_scores"][i]))
    return found / TOLERANCE


def _relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / max(1.0, float(np.abs(b).max())))


def _verdict(name: str, way: str, opset: int, options: argparse.Namespace) -> tuple[bool, str]:
    outcome = run(build(name, options.defaults), way, opset, options.images)
    return outcome.worst <= 1, f"{outcome.worst * TOLERANCE:.1e} / {outcome.nodes} / {min(outcome.counts)}-{max(outcome.counts)}"


def main() -> None:
    """Prints one line for each model, way and opset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--opsets", default=f"18,{newest_opset()}")
    parser.add_argument("--ways", default="traced,scripted")
    parser.add_argument("--images", type=int, default=1)
    parser.add_argument("--defaults", action="store_true", help="torchvision's own options: image sizes of 800 and more")
    parser.add_argument("--out", default="")
    parser.add_argument("--traceback", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[tables.Row] = []
    for name in options.models.split(","):
        for way in options.ways.split(","):
            for opset in map(int, options.opsets.split(",")):
                attempt = functools.partial(_verdict, name, way, opset, options)
                rows.append(((name, way), opset, tables.tried(f"{name:40s} {way:8s}", opset, attempt, options.traceback)))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(tables.table(["detector", "way"], rows))


if __name__ == "__main__":
    main()
