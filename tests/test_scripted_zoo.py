"""Torchvision's models without control flow of their own: scripted, they give the same numbers with no more nodes than traced.

Some of them in each run; `pytest -m slow` (make sweep) takes all of them.
"""

from __future__ import annotations

import pytest

from onnxport.options import newest_opset

pytest.importorskip("torchvision", reason="the models are torchvision's")

from tests.zoo.scripted import MODELS, TOLERANCE, compare

QUICK = {"inception_v3": 18, "shufflenet_v2_x0_5": newest_opset(), "lraspp_mobilenet_v3_large": 18}
# Branches on sizes, which a trace takes as they were: nodes of the scripted export over those of the traced one.
BRANCHES = {"swin_t": 2.1, "swin_v2_t": 1.9, "swin3d_t": 2.7, "raft_small": 1.2}


def hold(name: str, opset: int) -> None:
    found = compare(name, opset)
    assert found.worst <= TOLERANCE, f"{name} at opset {opset}: {found.worst:.1e} of the output's scale"
    most = BRANCHES.get(name, 1.05)
    assert found.scripted <= most * found.traced, f"{name} at opset {opset}: {found.scripted} nodes, the trace has {found.traced}"


@pytest.mark.parametrize(("name", "opset"), QUICK.items())
def test_model(name: str, opset: int) -> None:
    hold(name, opset)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_model(name: str) -> None:
    for opset in (18, newest_opset()):
        hold(name, opset)
