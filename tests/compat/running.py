"""Exports a function of tensors and runs the file."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

import onnxport


class Model(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def proto(function: Callable[..., Any], args: Any, **options: Any) -> onnx.ModelProto:
    stream = io.BytesIO()
    onnxport.export(function if isinstance(function, torch.nn.Module) else Model(function).eval(), args, stream, **options)
    return onnx.load_from_string(stream.getvalue())


def run(made: onnx.ModelProto, *inputs: torch.Tensor) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], [t.numpy() for t in inputs], strict=True)))


def check(function: Callable[..., Any], args: tuple[torch.Tensor, ...], expected: Any = None, **options: Any) -> onnx.ModelProto:
    """Exports, runs, compares with `expected` or with what the function gives."""
    made = proto(function, args, **options)
    wanted = function(*args) if expected is None else expected
    for found, want in zip(run(made, *args), wanted if isinstance(wanted, (tuple, list)) else [wanted], strict=True):
        np.testing.assert_allclose(found, want.detach().numpy(), rtol=1e-5, atol=1e-6)
    return made


def ops(made: onnx.ModelProto) -> list[str]:
    return [f"{n.domain}::{n.op_type}" if n.domain else n.op_type for n in made.graph.node]


@contextlib.contextmanager
def registered(name: str, function: Callable[..., Any], opset: int = 9) -> Iterator[None]:
    onnxport.register_custom_op_symbolic(name, function, opset)
    try:
        yield
    finally:
        onnxport.unregister_custom_op_symbolic(name, opset)


_libraries = torch.library.Library("onnxport_tests", "DEF")


def operator(schema: str, function: Callable[..., Any]) -> Any:
    """Defines `onnxport_tests::<schema>`, once."""
    name = schema.partition("(")[0]
    _libraries.define(schema)
    _libraries.impl(name, function, "CompositeExplicitAutograd")
    return getattr(torch.ops.onnxport_tests, name)


foo = operator("foo(Tensor a, Tensor b, float x, int y) -> Tensor", lambda a, b, x, y: a + b * x * y)
pair = operator("pair(Tensor a, int[] sizes, str mode, Tensor? c=None, bool flag=True) -> (Tensor, Tensor)",
                lambda a, sizes, mode, c=None, flag=True: (a * 2, a + sizes[0]))
rows = operator("rows(Tensor x, Tensor[] others, int k) -> Tensor", lambda x, others, k: x.new_ones(others[0].shape[0], k, x.shape[1]))
operator("grow_(Tensor(a!) self, float k) -> Tensor(a!)", lambda self, k: self.mul_(k))
