"""`autograd.Function`: its `symbolic` where it has one, its operators where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd.function import once_differentiable

import onnxport
from onnxport.errors import SymbolicFunctionError, UnsupportedOperatorError
from tests.compat.running import check, ops, proto, registered, run

X = torch.randn(2, 3)


class MyRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def symbolic(g: Any, input: Any) -> Any:
        return g.op("Clip", input, g.op("Constant", value_t=torch.tensor(0, dtype=torch.float)))


class MyLogExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        h = input.exp()
        return h.log().log()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, k: float, name: str, sizes: Any, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.k = k
        return x * k, x + y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * ctx.k, None, None, None, grads[1]

    @staticmethod
    def symbolic(g: Any, x: Any, k: float, name: str, sizes: Any, y: Any) -> Any:
        assert name == "up" and sizes == (1, [2, 3]) and k == 2.0
        return g.op("Mul", x, torch.tensor(k)), g.op("Add", x, y)


class Wide(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return MyRelu.apply(x) + MyLogExp.apply(x.abs() + 2)


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 18, 22])
def test_my_relu(opset: int) -> None:
    made = check(MyRelu.apply, (X,), opset_version=opset)
    assert "Clip" in ops(made) or opset < 12


def test_my_log_exp_is_inlined() -> None:
    assert ops(check(MyLogExp.apply, (X.abs() + 2,))) == ["Exp", "Log", "Log"]


def test_arguments_of_every_kind_and_several_outputs() -> None:
    made = check(lambda x, y: Scaled.apply(x, 2.0, "up", (1, [2, 3]), y), (X, X + 1))
    assert ops(made) == ["Mul", "Add"]


def test_nested() -> None:
    check(Wide.apply, (X,))


def test_gradients_wanted() -> None:
    x = X.clone().requires_grad_()
    made = proto(lambda x: MyRelu.apply(x) * 2, (x,))
    np.testing.assert_allclose(run(made, X)[0], X.clamp(min=0).numpy() * 2)


def test_dynamic_axes() -> None:
    made = proto(lambda x: MyRelu.apply(x).reshape(-1), (X,), input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert run(made, torch.ones(5, 3))[0].shape == (15,)


def test_a_domain_of_its_own() -> None:
    class Plug(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.flip(0)

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return g.op("acme::Flip", x, axis_i=0)

    made = proto(lambda x: Plug.apply(x) + 1, (X,), custom_opsets={"acme": 3, "unused": 2})
    assert ops(made) == ["acme::Flip", "Add"]
    assert {o.domain: o.version for o in made.opset_import}["acme"] == 3
    assert [d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [2, 3]


def failing(symbolic: Any) -> Any:
    return type("Failing", (torch.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: (x * 2, x * 3)), "symbolic": staticmethod(symbolic)}).apply


def test_faults_are_named() -> None:
    with pytest.raises(SymbolicFunctionError, match=r"for Failing, which has 2 outputs"):
        proto(failing(lambda g, x: g.op("Relu", x)), (X,))
    with pytest.raises(SymbolicFunctionError, match=r"for Failing cannot be called with"):
        proto(failing(lambda g: None), (X,))
    with pytest.raises(UnsupportedOperatorError, match="Couldn't export operator Failing"):
        proto(failing(lambda g, x: None), (X,))


class Elsewhere(torch.autograd.Function):
    """Computed where no tracer looks (NumPy, a kernel of one's own): the reason why functions bring a `symbolic`."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.tanh(x.detach().numpy())) * 2


class ElsewhereSymbolic(Elsewhere):
    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.tanh(x.detach().numpy())) * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        return g.op("Mul", g.op("Tanh", x), torch.tensor(2.0))


def test_what_python_reads_in_a_forward_that_has_a_symbolic_does_not_matter() -> None:
    check(lambda x: ElsewhereSymbolic.apply(x * 2) + 1, (X,))
    for fault in (lambda x: Elsewhere.apply(x), lambda x: ElsewhereSymbolic.apply(x) * (x.sum() > 0).numpy()):
        with pytest.raises(onnxport.errors.BakedValueError, match=r"test_functions.py:\d+: Python reads a tensor"):
            proto(fault, (X,))


class Leaking(torch.autograd.Function):
    seen: Any = None

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, how: str) -> Any:
        if how == "number":
            return x * 1, float(x.sum())
        Leaking.seen = x.detach().numpy().sum()
        return x * 1, None

    @staticmethod
    def symbolic(g: Any, x: Any, how: str) -> Any:
        return g.op("Identity", x), None


@pytest.mark.parametrize("how", ["number", "attribute"])
def test_a_number_that_gets_out_of_such_a_forward_is_an_error(how: str) -> None:
    with pytest.raises(onnxport.errors.BakedValueError, match=r"test_functions.py:\d+: Python reads a tensor"):
        proto(lambda x: Leaking.apply(x, how)[0] + float(Leaking.apply(x, how)[1] or Leaking.seen), (X,))


class Several(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        return x.relu(), None, x.argmax(1), 5


def test_outputs_that_are_no_tensors() -> None:
    check(lambda x: (Several.apply(x)[0] * Several.apply(x)[3], Several.apply(x)[2]), (X,))


def test_a_wrong_signature_names_the_arguments_of_the_forward() -> None:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, alpha: float) -> torch.Tensor:
            return x * alpha

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return x

    with pytest.raises(SymbolicFunctionError, match=r"Two.symbolic\(g.*cannot be called with \(g, x, alpha\)"):
        proto(lambda x: Two.apply(x, 0.5), (X,))


def test_an_output_that_is_not_supported_may_be_none() -> None:
    first = failing(lambda g, x: (g.op("Add", x, x), None))
    check(lambda x: first(x)[0], (X,))


def test_registered_for_all_functions_that_have_a_symbolic() -> None:
    def python_op(g: Any, *args: Any, **kwargs: Any) -> Any:
        assert kwargs["name"] == "MyRelu"
        return g.op("Relu", args[0])

    with registered("prim::PythonOp", python_op):
        assert ops(check(MyRelu.apply, (X,))) == ["Relu"]
    assert onnxport.is_in_onnx_export() is False


class Plain(torch.autograd.Function):
    """It has no symbolic function."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, k: float) -> torch.Tensor:
        return MyRelu.apply(x) * k


class Paired(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.exp() + y, y.reshape(-1)


def test_registered_for_functions_without_a_symbolic() -> None:
    """Every function reaches the registered symbolic, with its numbers; one for which it gives None is what it would be without."""
    seen: list[Any] = []

    def python_op(g: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append((kwargs["name"], *args[1:]))
        return g.op("acme::Plain", args[0], k_f=args[1]).setType(args[0].type()) if kwargs["name"] == "Plain" else None

    def forward(x: torch.Tensor, y: torch.Tensor) -> Any:
        first, second = Paired.apply(x, y)
        return Plain.apply(first, 2.0), second, MyRelu.apply(x)

    with registered("prim::PythonOp", python_op):
        made = proto(forward, (X, X + 1), input_names=["x", "y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
        rest = check(lambda x, y: Paired.apply(x, MyLogExp.apply(y.abs() + 2)), (X, X + 1))
    assert sorted(ops(made)) == ["Add", "Clip", "Exp", "Reshape", "acme::Plain"]
    assert {name for name, *_ in seen} == {"Paired", "Plain", "MyRelu", "MyLogExp"} and ("Plain", 2.0) in seen
    assert "acme::Plain" not in ops(rest)
    first = made.graph.output[0].type.tensor_type
    assert first.elem_type == 1 and len(first.shape.dim) == 2 and first.shape.dim[1].dim_value == 3


def test_a_function_that_writes_into_its_argument() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.mark_dirty(x)
            return x.mul_(2)

    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        return Doubled.apply(y) + y

    check(forward, (X,))
    with registered("prim::PythonOp", lambda g, *args, **kwargs: None):
        check(forward, (X,))


def test_every_method_of_the_context() -> None:
    class Contextual(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor | None, sizes: list[int]) -> torch.Tensor:
            assert y is None and sizes == [1, 2]
            ctx.save_for_backward(x)
            ctx.set_materialize_grads(False)
            ctx.kept = sizes
            result = x.sin()
            ctx.mark_non_differentiable(result)
            return result

    class Separate(torch.autograd.Function):
        """The form of PyTorch 2: what is kept is said apart."""

        @staticmethod
        def forward(x: torch.Tensor, k: float) -> torch.Tensor:
            return x * k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return grad * ctx.k, None

    check(lambda x: Contextual.apply(x, None, [1, 2]) + Separate.apply(x, 3.0), (X,))


def test_gradients_inside_a_model() -> None:
    class Gradient(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                return torch.autograd.grad((y ** 3).sum(), y)[0]

    made = proto(Gradient(), (X,))
    other = torch.randn(2, 3)
    np.testing.assert_allclose(run(made, other)[0], (3 * other ** 2).numpy(), rtol=1e-5)
    made = proto(Gradient(), (X,), input_names=["x"], dynamic_axes={"x": {0: "n"}})
    more = torch.randn(5, X.shape[1])
    np.testing.assert_allclose(run(made, more)[0], (3 * more ** 2).numpy(), rtol=1e-5)
    with pytest.raises(onnxport.errors.CaptureError, match=r"test_functions\.py:\d+: .*a gradient is computed"):
        proto(Gradient(), (X,), input_names=["x"], dynamic_axes={"x": {0: "n"}}, capture="trace")


def test_transforms_of_torch_func() -> None:
    other = torch.randn(2, 3)
    made = proto(torch.func.grad(lambda y: (y ** 3).sum()), (X,))
    np.testing.assert_allclose(run(made, other)[0], (3 * other ** 2).numpy(), rtol=1e-5)
    with pytest.raises(onnxport.errors.CaptureError, match=r"transform of torch\.func.*torch\.autograd\.grad"):
        proto(torch.func.grad(lambda y: (y ** 3).sum()), (X,), capture="trace")


def nested_write() -> Any:
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            ctx.mark_dirty(x)
            scale = (t.exp() + 1).clamp_(max=3)
            x[:, 1:].mul_(scale[:, 1:])
            return x.add_(t)

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.mark_dirty(x)
            return Inner.apply(x.sub_(1), x * 2)

    return Outer


@pytest.mark.parametrize("twice", [False, True])
def test_functions_in_functions_that_write(twice: bool) -> None:
    """The trace says each write once inside the function and once beside it; it is done once."""
    outer = nested_write()

    def forward(x: torch.Tensor) -> Any:
        whole = x + 1
        first = outer.apply(whole[:1])
        second = outer.apply(whole) if twice else whole
        second.add_(1)
        return whole * 2, first, second

    check(forward, (X,))


# ---------------------------------------------------------------- captured by torch.export


class Resized(torch.autograd.Function):
    """It takes a size, an odd object and None."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, count: int, how: dict[str, str], y: torch.Tensor | None = None) -> torch.Tensor:
        ctx.save_for_backward(x)
        assert how == {"mode": "repeat"} and y is None
        return x[:1].expand(count, x.shape[1])

    @staticmethod
    def symbolic(g: Any, x: Any, count: Any, how: dict[str, str], y: Any = None) -> Any:
        assert how == {"mode": "repeat"} and y is None
        first = g.op("Slice", x, torch.tensor([0]), torch.tensor([1]), torch.tensor([0]))
        number = torch.tensor(count) if isinstance(count, int) else count
        shape = g.op("Concat", g.op("Unsqueeze", number, torch.tensor([0])), torch.tensor([3]), axis_i=0)
        return g.op("acme::Mark", g.op("Expand", first, shape)).setType(x.type())


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_symbolic_is_used_by_every_capture(capture: str) -> None:
    class Plug(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return MyRelu.apply(x).flip(0)

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return g.op("acme::Flip", x, axis_i=0)

    made = proto(lambda x: Plug.apply(x) + 1, (X,), capture=capture, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert ops(made) == ["acme::Flip", "Add"]
    with registered("prim::PythonOp", lambda g, *args, **kwargs: g.op("acme::Any", args[0], name_s=kwargs["name"])):
        assert ops(proto(lambda x: Plug.apply(x) + 1, (X,), capture=capture)) == ["acme::Any", "Add"]
    assert "Clip" in ops(check(MyRelu.apply, (X,), capture=capture))
    assert ops(check(lambda x, y: Scaled.apply(x, 2.0, "up", (1, [2, 3]), y), (X, X + 1), capture=capture)) == ["Mul", "Add"]
    check(Wide.apply, (X,), capture=capture)


@pytest.mark.parametrize("capture", ["auto", "export"])
def test_arguments_of_every_kind_by_every_capture(capture: str) -> None:
    """A size of a dynamic axis among them, which PyTorch's tracer does not take: torch.export is asked then."""
    made = proto(lambda x: Resized.apply(x, x.shape[0], {"mode": "repeat"}), (X,), capture=capture, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert "acme::Mark" in ops(made) and made.graph.output[0].type.tensor_type.shape.dim[1].dim_value == 3
    assert "acme::Mark" in ops(proto(lambda x: Resized.apply(x, 2, {"mode": "repeat"}, None), (X,), capture=capture))


def test_a_function_that_gives_its_argument_back() -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return g.op("Identity", x)

    for capture in ("trace", "export"):
        check(lambda x: Same.apply(x) * 2, (X,), capture=capture)


@pytest.mark.parametrize(("forward", "message"), [
    (lambda ctx, x: x.mul_(2), "writes into its arguments; capture='trace' takes it"),
    (lambda ctx, x: (x * 2, 3), "returns what is no tensor; capture='trace' takes it"),
])
def test_what_torch_export_cannot_keep_is_refused(forward: Any, message: str) -> None:
    function = type("Failing", (torch.autograd.Function,), {"forward": staticmethod(forward), "symbolic": staticmethod(lambda g, x: x)})
    before = vars(torch.autograd.Function)["apply"]
    with pytest.raises(onnxport.errors.CaptureError, match=f"Failing has a symbolic function and {message}"):
        proto(lambda x: function.apply(x + 1), (X,), capture="export")  # type: ignore[attr-defined]
    assert vars(torch.autograd.Function)["apply"] is before


@pytest.mark.parametrize("function", [MyLogExp, MyRelu])
def test_what_a_function_computes_on_is_no_input_of_the_model(function: Any) -> None:
    """The values of a function's own graph are numbered from 0 as those of the trace are."""

    class Beside(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return function.apply(y.abs() * 2 + 3) + x - y

    program = onnxport.export(Beside(), (X, X + 1), input_names=["x", "y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    torch.testing.assert_close(program(x, y)[0], Beside()(x, y))
