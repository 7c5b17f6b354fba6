"""Torchvision's detectors, traced and scripted: the same detections as PyTorch at two image sizes, where there are none and where there are many.

Some of them in each run; `pytest -m slow` (make sweep) takes all of them, and one with torchvision's own image sizes.
"""

from __future__ import annotations

from typing import Any

import pytest

from onnxport.options import newest_opset

pytest.importorskip("torchvision", reason="the detectors are torchvision's")

from tests.zoo.detection import MODELS, build, run

QUICK = [("fasterrcnn_mobilenet_v3_large_320_fpn", "traced", 18), ("fasterrcnn_mobilenet_v3_large_320_fpn", "scripted", newest_opset()),
         ("ssdlite320_mobilenet_v3_large", "scripted", 18)]


def hold(name: str, way: str, opset: int, count: int = 1, defaults: bool = False) -> None:
    outcome = run(build(name, defaults), way, opset, count)
    assert outcome.worst <= 1, f"{name} {way} at opset {opset}: {outcome.worst:.1f} times the tolerance"
    assert min(outcome.counts) == 0
    assert max(outcome.counts) > 1


@pytest.mark.parametrize(("name", "way", "opset"), QUICK)
def test_detector(name: str, way: str, opset: int) -> None:
    hold(name, way, opset)


@pytest.mark.parametrize("way", ["traced", "scripted"])
def test_two_images(way: str) -> None:
    """Each of the images has sizes of its own."""
    hold("fasterrcnn_mobilenet_v3_large_320_fpn", way, 18, count=2)


def test_no_proposals() -> None:
    """On some images not even the first stage finds anything."""
    detector = build("fasterrcnn_mobilenet_v3_large_320_fpn")
    net: Any = detector.module
    before = net.rpn.min_size, net.roi_heads.score_thresh
    try:
        net.rpn.min_size, net.roi_heads.score_thresh = 126.0, 0.0
        outcome = run(detector, "scripted", 18)
    finally:
        net.rpn.min_size, net.roi_heads.score_thresh = before
    assert outcome.worst <= 1
    assert min(outcome.counts) == 0
    assert max(outcome.counts) > 1


@pytest.mark.slow
@pytest.mark.parametrize("way", ["traced", "scripted"])
@pytest.mark.parametrize("name", ["fcos_resnet50_fpn", "retinanet_resnet50_fpn_v2"])
def test_many_everywhere(name: str, way: str) -> None:
    """Their scores lie close together; below all of them every image has as many detections as there may be."""
    detector = build(name)
    net: Any = detector.module
    before = net.score_thresh
    try:
        net.score_thresh = 0.1
        outcome = run(detector, way, 18)
    finally:
        net.score_thresh = before
    assert outcome.worst <= 1
    assert min(outcome.counts) > 10


@pytest.mark.slow
@pytest.mark.parametrize("way", ["traced", "scripted"])
@pytest.mark.parametrize("name", list(MODELS))
def test_every_detector(name: str, way: str) -> None:
    for opset in (18, newest_opset()):
        hold(name, way, opset)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["traced", "scripted"])
def test_defaults(way: str) -> None:
    """Torchvision's own image sizes and numbers of proposals."""
    hold("fasterrcnn_mobilenet_v3_large_fpn", way, 18, defaults=True)
