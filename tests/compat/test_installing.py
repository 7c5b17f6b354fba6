"""`onnxport.install()`: scripts written for torch.onnx run on onnxport, and are let go again."""

from __future__ import annotations

import importlib
import inspect
import io
import sys
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.onnx
import torchvision.ops

import onnxport
from tests.compat.running import Model, check, foo, ops, registered, run

X = torch.randn(2, 3)


def state() -> dict[str, Any]:
    return {**{f"torch.onnx.{k}": v for k, v in vars(torch.onnx).items()}, **{k: v for k, v in sys.modules.items() if k.startswith("torch.onnx")}}


def test_a_script_runs_unchanged_and_everything_is_put_back() -> None:
    before = state()
    with onnxport.install():
        from torch.onnx import register_custom_op_symbolic, symbolic_helper
        from torch.onnx.symbolic_opset9 import mul

        @symbolic_helper.parse_args("v", "v", "f", "i")
        def symbolic(g: Any, a: Any, b: Any, x: float, y: int) -> Any:
            return g.op("Add", a, mul(g, b, g.op("Constant", value_t=torch.tensor(x * y))))

        register_custom_op_symbolic("onnxport_tests::foo", symbolic, 9)
        stream = io.BytesIO()
        torch.onnx.export(Model(lambda a, b: foo(a, b, 1.5, 2)), (X, X), stream, opset_version=13, training=torch.onnx.TrainingMode.EVAL,
                          operator_export_type=torch.onnx.OperatorExportTypes.ONNX, dynamo=False, verbose=None)
        torch.onnx.unregister_custom_op_symbolic("onnxport_tests::foo", 9)
        made = onnx.load_from_string(stream.getvalue())
    assert made.producer_name == "onnxport" and ops(made) == ["Mul", "Add"]
    np.testing.assert_allclose(run(made, X, X)[0], (X + X * 3).numpy(), rtol=1e-6)
    assert state() == before


def test_nested_and_twice() -> None:
    before = state()
    onnxport.install()
    with onnxport.install():
        assert torch.onnx.export.__module__ == "onnxport"
    assert torch.onnx.export.__module__ == "onnxport"
    onnxport.uninstall()
    onnxport.uninstall()
    assert state() == before


def test_after_an_error() -> None:
    before = state()
    with pytest.raises(ValueError, match="opset_version"), onnxport.install():
        torch.onnx.export(Model(torch.relu), (X,), io.BytesIO(), opset_version=3)
    assert state() == before


@pytest.mark.parametrize("opset", [11, 16, 18])
def test_torchvisions_registered_symbolics(opset: int) -> None:
    """Its own functions, as torchvision wrote them for torch.onnx, in place of our translation."""
    with onnxport.install():
        module = importlib.reload(importlib.import_module("torchvision.ops._register_onnx_ops"))
    boxes, scores = torch.rand(6, 4).cumsum(1), torch.rand(6)
    images, rois = torch.randn(2, 3, 16, 16), torch.tensor([[0.0, 1, 1, 9, 9], [1, 2, 3, 12, 10]])
    align = module.roi_align_opset16 if opset >= 16 else module.roi_align_opset11
    with registered("torchvision::nms", module.symbolic_multi_label_nms, 11), registered("torchvision::roi_align", align, 11):
        made = check(lambda b, s: torchvision.ops.nms(b, s, 0.5), (boxes, scores), opset_version=opset)
        assert "NonMaxSuppression" in ops(made)
        check(lambda x, r: torchvision.ops.roi_align(x, r, (4, 4), 1.0, 2), (images, rois), opset_version=opset)
    importlib.reload(module)


def test_roi_pool_gives_none_for_what_nobody_reads() -> None:
    with onnxport.install():
        module = importlib.reload(importlib.import_module("torchvision.ops._register_onnx_ops"))
    images, rois = torch.randn(2, 3, 16, 16), torch.tensor([[0.0, 1, 1, 9, 9], [1, 2, 3, 12, 10]])
    with registered("torchvision::roi_pool", module.roi_pool, 11):
        assert ops(check(lambda x, r: torchvision.ops.roi_pool(x, r, (4, 4), 1.0), (images, rois))) == ["MaxRoiPool"]
    importlib.reload(module)


def test_the_signature_names_the_keywords_of_today() -> None:
    """Libraries look there for what they may pass (timm does)."""
    before = set(inspect.signature(torch.onnx.export).parameters)
    with onnxport.install():
        assert before <= set(inspect.signature(torch.onnx.export).parameters)


def test_where_things_stood_once() -> None:
    """`deform-conv2d-onnx-exporter` looks for `_type_utils`, and without it for the tables by name."""
    before = state()
    with onnxport.install():
        from torch.onnx._type_utils import JitScalarType
        from torch.onnx.symbolic_helper import cast_pytorch_to_onnx, scalar_type_to_onnx, scalar_type_to_pytorch_type

        assert cast_pytorch_to_onnx["Float"] == cast_pytorch_to_onnx[JitScalarType.FLOAT] == JitScalarType.FLOAT.onnx_type()
        assert scalar_type_to_pytorch_type[scalar_type_to_onnx.index(cast_pytorch_to_onnx[JitScalarType.INT64])] == torch.int64
        with pytest.raises(KeyError, match="nothing"):
            cast_pytorch_to_onnx["nothing"]
    assert state() == before
