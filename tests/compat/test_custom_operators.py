"""Operators of `torch.library` and of C++ extensions: kept in their own domain or translated by a symbolic function, by every capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from onnxport import OperatorExportTypes, backend, errors
from tests.compat.running import Model, proto, registered
from tests.compat.test_backend import flat

Make = Callable[..., Any]
library = torch.library.Library("acme_custom", "DEF")


def define(schema: str, function: Make, fake: Make) -> Any:
    """`torch.library` in its oldest form: define, impl, register_fake."""
    name = schema.partition("(")[0]
    library.define(schema)
    library.impl(name, function, "CPU")
    torch.library.register_fake(f"acme_custom::{name}", fake)
    return getattr(torch.ops.acme_custom, name.partition(".")[0])


like = torch.empty_like
scale = define("scale(Tensor x, float s) -> Tensor", lambda x, s: x * s, lambda x, s: like(x))
grow = define("grow(Tensor x, SymInt n) -> Tensor", lambda x, n: x.new_zeros(x.shape[0], n) + x[:, :1], lambda x, n: x.new_empty(x.shape[0], n))
two = define("two(Tensor x, Tensor? w=None, *, int[] sizes=[], str mode='up') -> (Tensor a, Tensor b)",
             lambda x, w=None, *, sizes=(), mode="up": (x + 1 if w is None else x * w, x > 0),
             lambda x, w=None, *, sizes=(), mode="up": (like(x), like(x, dtype=torch.bool)))
many = define("many(Tensor x, int n) -> Tensor[]", lambda x, n: [x * k for k in range(n)], lambda x, n: [like(x) for _ in range(n)])
joined = define("joined(Tensor[] xs, Tensor[] ys, Tensor? w, Tensor z) -> Tensor", lambda xs, ys, w, z: torch.cat([*xs, *ys, z]),
                lambda xs, ys, w, z: z.new_empty(sum(t.shape[0] for t in [*xs, *ys, z]), z.shape[1]))
half = define("half(Tensor x) -> Tensor", lambda x: x[::2].double().clone(), lambda x: x.new_empty((x.shape[0] + 1) // 2, x.shape[1], dtype=torch.float64))
typed = define("typed(Tensor x, ScalarType d) -> Tensor", lambda x, d: x.to(d), lambda x, d: like(x, dtype=d))
broad = define("broad(Tensor x, Tensor y) -> Tensor", lambda x, y: x + y, lambda x, y: torch.empty_like(x + y))
over = define("over.a(Tensor x) -> Tensor", lambda x: x + 1, lambda x: like(x))
define("over.b(Tensor x, int k) -> Tensor", lambda x, k: x + k, lambda x, k: like(x))


@torch.library.custom_op("acme_today::sinc", mutates_args=())
def sinc(x: torch.Tensor, k: float = 1.0) -> torch.Tensor:
    """`torch.library` in its newest form."""
    return torch.sin(x) * k


@sinc.register_fake
def _(x: torch.Tensor, k: float = 1.0) -> torch.Tensor:
    return like(x)


@torch.library.custom_op("acme_today::bump", mutates_args=("x",))
def bump(x: torch.Tensor, k: int) -> None:
    x.add_(k)


KEPT: dict[str, tuple[Make, list[list[Any]]]] = {
    "a number": (lambda x: scale(x.relu(), 0.3) + 1, [["n", 3]]),
    "a size": (lambda x: grow(x, 5) * 2, [["n", 5]]),
    "several outputs": (lambda x: two(x), [["n", 3]] * 2),
    "an optional tensor, a list, a string": (lambda x: two(x, x * 2, sizes=[3, 4], mode="b"), [["n", 3]] * 2),
    "a list of outputs": (lambda x: torch.stack(many(x, 3)), [[3, "n", 3]]),
    "one of a list": (lambda x: many(x, 3)[1] + 1, [["n", 3]]),
    "two lists of inputs": (lambda x: joined([x, x + 1], [x], None, x * 2) * 2, [[None, 3]]),
    "another size and dtype": (lambda x: half(x) * 2, [[None, 3]]),
    "a dtype": (lambda x: typed(x, torch.float64), [["n", 3]]),
    "a broadcast": (lambda x: broad(x, torch.ones(1, 3)), [["n", 3]]),
    "overloads": (lambda x: over(x) * over(x, 3), [["n", 3]]),
    "custom_op": (lambda x: sinc(x, 2.0) + torch.ops.acme_today.sinc(x), [["n", 3]]),
}


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("case", KEPT)
def test_kept_in_their_own_domain(case: str, capture: str) -> None:
    """Exported at 4 rows and run at others; dtype and sizes come from the fake implementation."""
    function, shapes = KEPT[case]
    made = proto(function, (torch.randn(4, 3),), input_names=["x"], dynamic_axes={"x": {0: "n"}}, capture=capture,
                 operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)
    for output, sizes in zip(made.graph.output, shapes, strict=True):
        found = [d.dim_param or d.dim_value for d in output.type.tensor_type.shape.dim]
        assert len(found) == len(sizes) and all(want in (None, size) for want, size in zip(sizes, found))
    representation = backend.prepare(made)
    for rows in (4, 7, 1):
        x = torch.randn(rows, 3)
        for got, want in zip(representation.run(x), flat(function(x)), strict=True):
            assert (got.dtype, got.shape) == (want.numpy().dtype, tuple(want.shape))
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-6, atol=1e-6)


def test_a_varying_size_as_a_number() -> None:
    """torch.export follows it; the tracer makes a Python number of it, which is refused."""
    options: dict[str, Any] = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}, "operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH}
    made = proto(lambda x: grow(x, x.shape[0]) * 2, (torch.randn(4, 3),), capture="export", **options)
    x = torch.randn(6, 3)
    np.testing.assert_allclose(backend.run(made, x)[0], grow(x, 6).numpy() * 2, rtol=1e-6)
    with pytest.raises(errors.BakedValueError, match="the dynamic size n is turned into a Python number"):
        proto(lambda x: grow(x, x.shape[0]) * 2, (torch.randn(4, 3),), capture="trace", **options)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_an_operator_that_writes_into_its_argument_is_refused(capture: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        bump(y, 3)
        return y

    with pytest.raises(errors.UnsupportedError, match="acme_today::bump cannot be exported: it writes into its arguments"):
        proto(function, (torch.randn(4, 3),), capture=capture, operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)


class Script(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = torch.ops.acme_custom.scale(x, 0.5) + 1
        else:
            x = torch.ops.acme_custom.grow(x, x.shape[1]) - 1
        return x


def domains(made: onnx.ModelProto) -> dict[str, int]:
    return {o.domain: o.version for o in made.opset_import}


@pytest.mark.parametrize(("model", "capture"), [(Model(lambda x: scale(x, 0.5) + 1), "trace"), (Model(lambda x: scale(x, 0.5) + 1), "export"),
                                                (torch.jit.script(Script()), "auto")], ids=["trace", "export", "script"])
@pytest.mark.parametrize("opsets", [None, {"my_domain": 3}, {"other": 2, "acme_custom": 5}])
def test_in_the_domain_of_a_symbolic_function(model: Any, capture: str, opsets: Any) -> None:
    """The version of a domain is 1 where `custom_opsets` says nothing, and a domain that no node has is left out."""
    with registered("acme_custom::scale", lambda g, x, s: g.op("my_domain::Scale", x, s_f=s)):
        made = proto(model, (torch.ones(4, 3),), input_names=["x"], dynamic_axes={"x": {0: "n"}}, capture=capture, custom_opsets=opsets,
                     operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH)
    wanted = {"": 18, "my_domain": (opsets or {}).get("my_domain", 1)}
    if capture == "auto":
        wanted["acme_custom"] = (opsets or {}).get("acme_custom", 1)
    assert domains(made) == wanted
    representation = backend.prepare(made, functions={"my_domain::Scale": lambda x, s: x * s})
    x = torch.rand(5, 3)
    np.testing.assert_allclose(representation.run(x)[0], x.numpy() * 0.5 + 1, rtol=1e-6)
    if capture == "auto":
        np.testing.assert_allclose(representation.run(-x)[0], (grow(-x, 3) - 1).numpy(), rtol=1e-6)
        made = representation.model
    assert [d.dim_param or d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == ["n", 3]


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_set_type_goes_before_the_fake_implementation(capture: str) -> None:
    def symbolic(g: Any, x: Any) -> Any:
        made = g.op("my_domain::Half", x)
        made.setType(x.type().with_sizes([None, 3]).with_dtype(torch.float64))
        return made

    with registered("acme_custom::half", symbolic):
        made = proto(lambda x: half(x) * 2, (torch.ones(4, 3),), input_names=["x"], dynamic_axes={"x": {0: "n"}}, capture=capture)
    assert made.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    assert made.graph.output[0].type.tensor_type.shape.dim[1].dim_value == 3


def test_without_a_symbolic_function_it_is_missing() -> None:
    with pytest.raises(errors.UnsupportedOperatorError, match=r"Couldn't export operator acme_custom::scale"):
        proto(lambda x: scale(x, 0.5), (torch.ones(4, 3),))
