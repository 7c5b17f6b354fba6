"""Sizes that nodes read get the nodes that compute them, also where parts of them were computed before."""

from __future__ import annotations

import pytest

from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.value import DataType


@pytest.mark.parametrize("opset", [9, 18])
def test_parts_computed_before(opset: int) -> None:
    g = Builder(opset)
    x = g.input("x", DataType.FLOAT, (dims.symbol("n"), dims.symbol("m")))
    assert x.shape is not None
    n, m = x.shape
    for vector in ([n * 2], [m * 3], [n * 2, m * 3]):
        assert g.real(g.sizes(vector)).node is not None
    for size in (n * 2, n * 2 * m, dims.floordiv(n * 2, m), dims.minimum(n * 2, m)):
        made = g.real(g.scalar(size))
        assert made.node is not None
        assert made.content == (size,)
