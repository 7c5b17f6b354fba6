"""What symbolic functions are refused for, beside what the other files of this folder hold them to."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import onnxport
from onnxport import errors, symbolic_helper

from .running import proto, registered

X = torch.randn(2, 3)


def refused(symbolic: Any, pattern: str, kind: type[Exception] = errors.OnnxExporterError, opset: int = 9) -> None:
    with registered("aten::relu", symbolic, opset), pytest.raises(kind, match=pattern):
        proto(torch.relu, (X,))


def test_more_arguments_than_codes() -> None:
    @symbolic_helper.parse_args("v")
    def one(g: Any, x: Any) -> Any:
        return g.op("Relu", x)

    def too_many(g: Any, x: Any) -> Any:
        return one(g, x, x)

    refused(too_many, r"one takes 1 arguments behind g \(parse_args\), and got 2")


def test_a_name_that_utils_does_not_have() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_the_kind'"):
        _ = onnxport.utils.nothing_of_the_kind


def test_a_value_of_another_graph() -> None:
    foreign = torch._C.Graph()
    value = [foreign.addInput() for _ in range(99)][-1]
    refused(lambda g, x: value, "a symbolic function returned a value that nothing computes", errors.SymbolicValueError)


def test_an_attribute_that_is_gone() -> None:
    def norm(g: Any, x: Any) -> Any:
        ones = g.op("Constant", value_t=torch.ones(3))
        return g.op("BatchNormalization", x, ones, ones, ones, ones, spatial_i=0)

    refused(norm, "wrote BatchNormalization with spatial=0, as opset 7 knew it; no newer opset does", opset=7)
