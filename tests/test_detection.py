"""Torchvision's detectors, traced and scripted: the same detections as PyTorch at two image sizes, where there are none and where there are many.

Some of them in each run; `pytest -m slow` (make sweep) takes all of them, and one with torchvision's own image sizes.
"""

from __future__ import annotations

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
