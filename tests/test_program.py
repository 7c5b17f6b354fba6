"""`ONNXProgram`: what one does with an exported model."""

from __future__ import annotations

import os
import pathlib
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir
import pytest
import torch

from onnxport import errors, runtime, save
from onnxport.program import ONNXProgram
from onnxport.runtime import RunError, Session
from tests import handmade

MATRIX = torch.randn(4, 3)


class Both(NamedTuple):
    left: Any
    right: Any


class Net(torch.nn.Module):
    def forward(self, pair: Any, scale: Any = None, *, bias: Any = None) -> Any:
        return pair.left + pair.right + (0 if bias is None else bias)


def added(names: str) -> ir.Model:
    values = [handmade.tensor_value(name, torch.float32, ["N"]) for name in names]
    total = values[0]
    for i, value in enumerate(values[1:]):
        total = handmade.node("Add", [total, value], f"sum{i}", like=value)
    return handmade.model(values, [total])


def test_fields():
    guard = object()
    made = ONNXProgram(handmade.scaled(MATRIX), input_names=["x"], output_names=["y"], guards=[guard], dynamic_axes={"x": {0: "N"}},
                       source=torch.nn.Identity(), args=(torch.ones(1, 4),))
    assert (made.input_names, made.output_names, made.guards, made.dynamic_axes) == (["x"], ["y"], [guard], {"x": {0: "N"}})
    assert repr(made) == "<ONNXProgram x -> y, opset 17, 1 nodes>"
    assert isinstance(made.model, ir.Model)


def test_model_proto_has_the_weights():
    proto = ONNXProgram(handmade.scaled(MATRIX)).model_proto
    assert isinstance(proto, onnx.ModelProto)
    onnx.checker.check_model(proto, full_check=True)
    assert torch.equal(torch.from_numpy(onnx.numpy_helper.to_array(proto.graph.initializer[0]).copy()), MATRIX)


def test_call_takes_what_the_model_takes():
    made = ONNXProgram(added("abc"), source=Net())
    a, b, c = torch.randn(3, 4).unbind()
    (y,) = made(Both(a, b), bias=c)
    torch.testing.assert_close(y, a + b + c)
    (y,) = made(Both(a, b), None, bias=c)
    torch.testing.assert_close(y, a + b + c)
    with pytest.raises(errors.ArgumentError, match=r"3 inputs \(a, b, c\), and the arguments hold 2 tensors"):
        made(Both(a, b))
    with pytest.raises(errors.ArgumentError, match="do not fit"):
        made(nonsense=a)


def test_gradients_and_layouts_do_not_matter():
    made = ONNXProgram(added("ab"), source=lambda a, b: a + b)
    a = torch.randn(4, requires_grad=True)
    b = torch.randn(4, 2)[:, 1]
    (y,) = made(a, b)
    torch.testing.assert_close(y, (a + b).detach())
    assert not y.requires_grad


def test_parameters_as_inputs():
    class Linear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("offset", torch.randn(3))
            self.scale = torch.nn.Parameter(torch.randn(3))

        def forward(self, x: Any) -> Any:
            return x + self.scale + self.offset

    net = Linear()
    (y,) = ONNXProgram(added("abc"), source=net)(torch.zeros(3))
    torch.testing.assert_close(y, (net.scale + net.offset).detach())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool,
                                   torch.int8, torch.uint8, torch.int64, torch.uint16])
@pytest.mark.parametrize("shape", [(4,), (), (2, 0), (2, 3)])
def test_every_dtype_goes_through(dtype: torch.dtype, shape: tuple[int, ...]):
    x = handmade.tensor_value("x", dtype, [f"d{i}" for i in range(len(shape))])
    graph = handmade.model([x], [handmade.node("Identity", [x], "y", like=x)], opset=19, ir_version=9)
    made = ONNXProgram(graph, source=torch.nn.Identity())
    value = torch.randn(shape).to(dtype)
    (y,) = made(value)
    assert (y.dtype, y.shape) == (dtype, value.shape)
    assert torch.equal(y.float(), value.float())


def test_large_models_go_through_a_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runtime, "IN_MEMORY", 10)
    made = ONNXProgram(handmade.scaled(MATRIX), source=torch.nn.Identity())
    x = torch.randn(2, 4)
    torch.testing.assert_close(made(x)[0], x @ MATRIX)
    folder = made.session._folder
    assert folder is not None
    assert os.path.isdir(folder.name)
    del made
    assert not os.path.exists(folder.name) or folder.cleanup() is None


@pytest.mark.parametrize("external", [None, True])
def test_save(external: bool | None, tmp_path: pathlib.Path):
    path = tmp_path / "m.onnx"
    ONNXProgram(handmade.scaled(torch.randn(300, 3))).save(path, external_data=external)
    assert Session(str(path)).outputs == ["y"]
    assert len(os.listdir(tmp_path)) == (2 if external else 1)


def test_model_that_onnxruntime_does_not_take():
    x = handmade.tensor_value("x", torch.float32, ["N"])
    made = ONNXProgram(handmade.model([x], [handmade.node("NoSuchOperator", [x], "y", like=x)]), source=torch.nn.Identity())
    with pytest.raises(RunError, match="cannot load the model"):
        made(torch.ones(1))
    future = save.to_proto(added("a"))
    future.opset_import[0].version = 999
    with pytest.raises(RunError, match=r"onnxruntime \S+ is older than its opset: export with a lower opset_version"):
        Session(future.SerializeToString())
    made = ONNXProgram(added("a"), source=torch.nn.Identity())
    with pytest.raises(RunError, match="cannot run the model"):
        made(torch.ones(2, 2))
