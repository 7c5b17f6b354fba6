"""Registered symbolic functions: how they are called, what they write, in whose form, and what goes wrong."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import onnx
import pytest
import torch
from onnxport.symbolic_helper import parse_args
from onnxport.symbolic_opset11 import unsqueeze

import onnxport
from onnxport import symbolic_helper, symbolic_opset9
from onnxport.errors import ArgumentError, SymbolicFunctionError, SymbolicValueError, UnsupportedError, UnsupportedOperatorError
from tests.compat.running import check, foo, ops, pair, proto, registered

OPSETS = (7, 9, 11, 12, 13, 15, 17, 18, 20, 22)
A, B = torch.randn(2, 3), torch.randn(2, 3)
EVERY = {"input_names": ["a", "b"], "dynamic_axes": {"a": {0: "n"}, "b": {0: "n"}}}


def test_the_example_of_the_documentation() -> None:
    @symbolic_helper.parse_args("v", "v", "f", "i")
    def symbolic_foo(g: Any, input1: Any, input2: Any, attr1: float, attr2: int) -> Any:
        return g.op("custom_domain::Foo", input1, input2, attr1_f=attr1, attr2_i=attr2)

    with registered("onnxport_tests::foo", symbolic_foo):
        made = proto(lambda a, b: foo(a, b, 1.5, 2), (A, B), custom_opsets={"custom_domain": 2})
        assert ops(made) == ["custom_domain::Foo"]
        assert {a.name: (a.f or a.i) for a in made.graph.node[0].attribute} == {"attr1": 1.5, "attr2": 2}
        assert {o.domain: o.version for o in made.opset_import} == {"": 18, "custom_domain": 2}
        assert [d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [2, 3]
        made = proto(lambda a, b: foo(a, b, 1.5, 2), (A, B))
        assert {o.domain: o.version for o in made.opset_import} == {"": 18, "custom_domain": 1}


def test_a_bare_name_gets_a_domain_of_its_own() -> None:
    with registered("onnxport_tests::foo", lambda g, a, b, x, y: g.op("Foo", a, b)), pytest.warns(UserWarning, match="onnxport_tests::Foo"):
        assert ops(proto(lambda a, b: foo(a, b, 1.5, 2), (A, B))) == ["onnxport_tests::Foo"]


@parse_args("v", "v", "f", "i")
def as_mul(g: Any, a: Any, b: Any, x: float, y: int) -> Any:
    return g.op("Add", a, g.op("Mul", b, g.op("Constant", value_t=torch.tensor(x * y))))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_standard_operators_run(opset: int, dtype: torch.dtype) -> None:
    """The literal is float32 whatever the tensors are: it takes their type, as PyTorch's numbers do."""
    with registered("onnxport_tests::foo", as_mul, 7):
        check(lambda a, b: foo(a, b, 1.5, 2), (A.to(dtype), B.to(dtype)), opset_version=opset, **EVERY)


def test_in_force_from_its_opset_on() -> None:
    def mark(name: str) -> Any:
        return lambda g, x: g.op(f"acme::{name}", x)

    with registered("aten::relu", mark("Old"), 9), registered("aten::relu", mark("New"), 13):
        found = [ops(proto(torch.relu, (A,), opset_version=opset)) for opset in (8, 9, 12, 13, 20)]
    assert found == [["Relu"], ["acme::Old"], ["acme::Old"], ["acme::New"], ["acme::New"]]
    assert ops(proto(torch.relu, (A,))) == ["Relu"]


def test_a_running_export_keeps_what_was_registered_when_it_began() -> None:
    def nested(g: Any, x: Any) -> Any:
        onnxport.unregister_custom_op_symbolic("aten::relu", 9)
        inner = proto(torch.relu, (A,))
        assert ops(inner) == ["Relu"]
        return g.op("acme::Outer", x)

    with registered("aten::relu", nested):
        assert ops(proto(lambda x: torch.relu(torch.relu(x) + 1), (A,))) == ["acme::Outer", "Add", "acme::Outer"]


def test_four_threads() -> None:
    with registered("aten::tanh", lambda g, x: g.op("acme::T", x)):
        alone = proto(lambda a, b: torch.tanh(a) + b, (A, B)).SerializeToString()
    made: list[bytes] = []
    with registered("aten::tanh", lambda g, x: g.op("acme::T", x)):
        def work() -> None:
            made.append(proto(lambda a, b: torch.tanh(a) + b, (A, B)).SerializeToString())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert made == [alone] * 4


# ---------------------------------------------------------------- how functions are called


def test_names_in_another_order_and_arguments_left_out() -> None:
    def elu(g: Any, self: Any, input_scale: Any, alpha: Any) -> Any:
        return g.op("Elu", self, alpha_f=alpha)

    def short(g: Any, input: Any, alpha: Any, inplace: bool = False) -> Any:
        return g.op("Elu", input, alpha_f=alpha)

    with registered("aten::elu", elu):
        check(torch.nn.ELU(0.5), (A,))
    with registered("aten::elu", short):
        check(torch.nn.ELU(0.5), (A,))


def test_every_code_of_parse_args() -> None:
    seen: list[Any] = []

    @parse_args("v", "is", "s", "v", "b")
    def symbolic(g: Any, a: Any, sizes: Any, mode: Any, c: Any, flag: Any) -> Any:
        seen.extend([sizes, mode, c.node().mustBeNone(), flag])
        assert symbolic_helper._is_none(c) and symbolic_helper._is_value(c) and not symbolic_helper._is_none(a)
        return [g.op("Mul", a, g.op("Constant", value_t=torch.tensor(2.0))), g.op("Add", a, torch.tensor(float(sizes[0])))]

    with registered("onnxport_tests::pair", symbolic):
        check(lambda a: pair(a, [3, 4], "up"), (A,))
    assert seen == [[3, 4], "up", True, True]


def test_what_is_not_known_is_named() -> None:
    @parse_args("v", "f", "f", "i")
    def symbolic(g: Any, a: Any, b: float, x: float, y: int) -> Any:
        return a

    with registered("onnxport_tests::foo", symbolic), pytest.raises(SymbolicValueError, match=r"'b' has to be a float.*Float"):
        proto(lambda a, b: foo(a, b, 1.0, 1), (A, B))
    with pytest.raises(ArgumentError, match="'q'"):
        parse_args("q")


def test_questions_about_values() -> None:
    def symbolic(g: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
        assert a.type().scalarType() == "Float" and a.type().dim() == 2 and a.type().varyingSizes() == [None, 3] and b.type().sizes() == [2, 3]
        assert symbolic_helper._get_tensor_sizes(a) == [None, 3] and symbolic_helper._get_tensor_rank(a) == 2
        assert symbolic_helper._get_tensor_dim_size(b, 0) == 2 and symbolic_helper._maybe_get_const(y, "i") == 2
        assert symbolic_helper._maybe_get_const(a, "i") is a and symbolic_helper._scalar(x) == 1.5 and g.opset == 18
        assert onnxport.JitScalarType.from_value(a) == onnxport.JitScalarType.FLOAT and onnxport.is_in_onnx_export()
        assert symbolic_helper._export_onnx_opset_version == 18
        made = g.op("Shape", a)
        assert made.type().sizes() == [2] and made.node().kind() == "onnx::Shape"
        parts = g.op("Split", a, torch.tensor([1, 2]), axis_i=1, outputs=2)
        assert [symbolic_helper._get_tensor_sizes(p) for p in parts] == [[None, 1], [None, 2]]
        return g.op("Concat", parts[1], parts[0], axis_i=1)

    with registered("onnxport_tests::foo", symbolic):
        check(lambda a, b: foo(a, b, 1.5, 2), (A, B), torch.cat([A[:, 1:], A[:, :1]], 1), input_names=["a", "b"], dynamic_axes={"a": {0: "n"}})


def test_older_context_in_front() -> None:
    def symbolic(ctx: onnxport.SymbolicContext, g: Any, x: Any) -> Any:
        assert ctx.cur_node.kind() == "aten::relu"
        return g.op("Relu", x)

    symbolic.__annotations__["ctx"] = onnxport.SymbolicContext
    with registered("aten::relu", symbolic):
        assert ops(check(torch.relu, (A,))) == ["Relu"]


def test_set_type_tells_dtype_and_shape() -> None:
    def symbolic(g: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
        return g.op("acme::Foo", a).setType(a.type())

    with registered("onnxport_tests::foo", symbolic):
        made = proto(lambda a, b: foo(a, b, 1.5, 2).reshape(-1) + 1, (A, B))
    assert [d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [6]


def test_a_wrong_type_is_an_error() -> None:
    with registered("aten::relu", lambda g, x: g.op("acme::R", x).setType(x.type().with_sizes([5]))), \
            pytest.raises(SymbolicFunctionError, match=r"aten::relu gave rank 1, PyTorch has 2"):
        proto(torch.relu, (A,))


@pytest.mark.parametrize(("function", "message"), [
    (lambda g, a: a, r"for onnxport_tests::foo cannot be called with \(g, a, b, x, y\)"),
    (lambda g, a, b, x, y, z: a, r"cannot be called with \(g, a, b, x, y\).*'z'"),
    (lambda g, a, b, x, y: (a, b), "returned 2 values for onnxport_tests::foo, which has 1 outputs"),
    (lambda g, a, b, x, y: 3, "returned a int, not a torch._C.Value"),
    (lambda g, a, b, x, y: g.op("Relu", a, wrong=3), "the name of an attribute ends in"),
    (lambda g, a, b, x, y: g.op("Flatten", a, axis_i=1.5), "axis_i=1.5.: it cannot be an attribute of this type"),
    (lambda g, a, b, x, y: g.op("Relu", a, alpha_f=b), "has to be known now"),
    (lambda g, a, b, x, y: g.op("Relu", a, alpha_f=1.0), "no opset has.*'alpha'"),
    (lambda g, a, b, x, y: g.op("Add", a), "takes 2 inputs, not 1"),
    (lambda g, a, b, x, y: g.op("Flatten", a, axis_f=1.0), "wrote Flatten with axis=1.0, which is no attribute of type INT"),
    (lambda g, a, b, x, y: g.op("Flatten", a, axis_i=[1]), r"wrote Flatten with axis=\[1\], which is no attribute of type INT"),
    (lambda g, a, b, x, y: g.op("Elu", a, alpha_s="1"), "wrote Elu with alpha='1', which is no attribute of type FLOAT"),
    (lambda g, a, b, x, y: g.op("ReduceSum", a, axes_f=[1.0]), "no attribute of type INTS"),
    (lambda g, a, b, x, y: g.op("Clip", a, g.op("Cast", b, to_i=11)), "wrote Clip of FLOAT and DOUBLE, of which ONNX wants one type: cast one"),
    (lambda g, a, b, x, y: g.op("Pad", a, torch.tensor([0, 0, 0, 0]), torch.tensor([1])), "wrote Pad of FLOAT and INT64"),
])
def test_faults_are_named(function: Any, message: str) -> None:
    with registered("onnxport_tests::foo", function), pytest.raises((SymbolicFunctionError, SymbolicValueError, UnsupportedError), match=message) as caught:
        proto(lambda a, b: foo(a, b, 1.0, 1), (A, B))
    assert "test_registered.py" in str(caught.value)


def test_whole_numbers_are_floats_and_single_ones_lists() -> None:
    def symbolic(g: Any, x: Any, dims: Any, keep: Any, dtype: Any) -> Any:
        return g.op("Elu", g.op("ReduceSum", x, axes_i=1, keepdims_i=1), alpha_i=2)

    with registered("aten::sum.dim_IntList", symbolic, 11):
        check(lambda a: a.sum(1, keepdim=True), (A,), torch.nn.functional.elu(A.sum(1, keepdim=True), 2.0),
              input_names=["a"], dynamic_axes={"a": {0: "n"}})


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 12, 18])
def test_the_mask_of_a_dropout(opset: int) -> None:
    """It had the type of the data until 9, and says at every opset that nothing is dropped in evaluation."""
    def symbolic(g: Any, x: Any, p: Any, train: Any) -> Any:
        kept, mask = g.op("Dropout", x, ratio_f=0.5, outputs=2)
        return g.op("Where", mask, kept, g.op("Neg", x)) if opset >= 9 else kept

    with registered("aten::dropout", symbolic, 7):
        check(lambda x: torch.nn.functional.dropout(x, 0.5, False), (A,), opset_version=opset, input_names=["x"], dynamic_axes={"x": {0: "n"}})


@pytest.mark.parametrize("outputs", [2, 3, 5])
def test_batch_norm_in_training_as_until_opset_13(outputs: int) -> None:
    """All five outputs that it had: the data, the new running statistics, and those of the batch."""
    images = torch.randn(4, 3, 2, 2)

    def symbolic(g: Any, x: Any, *given: Any) -> Any:
        weight, bias, mean, var = given[:4]
        made = g.op("BatchNormalization", x, weight, bias, mean, var, epsilon_f=1e-5, momentum_f=0.9, outputs=outputs)
        return g.op("Add", made[0], g.op("Reshape", made[-1], torch.tensor([1, 3, 1, 1])))

    mean, var = images.mean((0, 2, 3)), images.var((0, 2, 3), correction=0)
    last = {2: 0.1 * mean, 3: 0.9 + 0.1 * var, 5: var}[outputs].reshape(1, 3, 1, 1)
    run = lambda x: torch.nn.functional.batch_norm(x, torch.zeros(3), torch.ones(3), torch.ones(3), torch.zeros(3), True)
    with registered("aten::batch_norm", symbolic, 9):
        check(run, (images,), (images - mean.reshape(1, 3, 1, 1)) / (var.reshape(1, 3, 1, 1) + 1e-5).sqrt() + last)
        with pytest.raises(UnsupportedError, match="BatchNormalization with 'training_mode' needs opset 14 or higher"):
            proto(run, (images,), opset_version=13)


@pytest.mark.parametrize("opset", [9, 18])
def test_operands_of_several_types_take_the_common_one(opset: int) -> None:
    """As the symbolic functions of PyTorch's exporter may rely on."""
    with registered("aten::mul", lambda g, a, b: g.op("Mul", a, b)):
        check(lambda a, b: a * b.argmax(1, keepdim=True), (A, B), opset_version=opset, **EVERY)
        check(lambda a, b: a.double() * b.shape[0], (A, B), opset_version=opset, **EVERY)
    with registered("aten::maximum", lambda g, a, b: g.op("Where", g.op("Greater", a, b), a, b)):
        check(lambda a, b: torch.maximum(a.argmax(1), b[:, 0]), (A, B), opset_version=opset, **EVERY)


def test_tensors_as_one_attribute() -> None:
    with registered("onnxport_tests::foo", lambda g, a, b, x, y: g.op("acme::Foo", a, held_t=[torch.ones(1), torch.zeros(2)])):
        made = proto(lambda a, b: foo(a, b, 1.0, 1), (A, B))
    assert [onnx.numpy_helper.to_array(t).tolist() for t in made.graph.node[0].attribute[0].tensors] == [[1.0], [0.0, 0.0]]


def test_none_says_that_it_cannot_be_converted() -> None:
    with registered("onnxport_tests::foo", lambda g, *args: None), pytest.raises(UnsupportedOperatorError, match="Couldn't export operator onnxport_tests::foo"):
        proto(lambda a, b: foo(a, b, 1.0, 1), (A, B))


@pytest.mark.parametrize(("name", "opset"), [("relu", 9), ("a::b::c", 9), (3, 9), ("a::b", "9"), ("a::b", 0), ("a::b", True)])
def test_what_cannot_be_registered(name: Any, opset: Any) -> None:
    with pytest.raises(ArgumentError):
        onnxport.register_custom_op_symbolic(name, as_mul, opset)


def test_an_error_inside_says_where() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        raise KeyError("lost")

    with registered("aten::relu", symbolic), pytest.raises(
            UnsupportedError, match=r"the symbolic function .*symbolic for aten::relu failed \(KeyError: 'lost'\)\n  written at .*test_registered.py:\d+\n  in aten::relu at .*py:"):
        proto(torch.relu, (A,))


# ---------------------------------------------------------------- whose form

X = torch.randn(2, 1, 4)


def form(write: Any) -> Any:
    return lambda g, a, b, x, y: write(g, a)


FORMS = [
    ("squeeze", 9, lambda g, x: g.op("Squeeze", x, axes_i=[1]), X.squeeze(1)),
    ("squeeze-13", 13, lambda g, x: g.op("Squeeze", x, torch.tensor([1])), X.squeeze(1)),
    ("unsqueeze", 9, lambda g, x: g.op("Unsqueeze", x, axes_i=[0]), X[None]),
    ("unsqueeze-13", 13, lambda g, x: g.op("Unsqueeze", x, torch.tensor([0])), X[None]),
    ("reducesum", 9, lambda g, x: g.op("ReduceSum", x, axes_i=[2], keepdims_i=0), X.sum(2)),
    ("reducemean", 11, lambda g, x: g.op("ReduceMean", x, axes_i=[0, 2], keepdims_i=1), X.mean((0, 2), keepdim=True)),
    ("reducemax-18", 18, lambda g, x: g.op("ReduceMax", x, torch.tensor([2]), keepdims_i=0), X.amax(2)),
    ("clip", 9, lambda g, x: g.op("Clip", x, min_f=-0.5, max_f=0.5), X.clamp(-0.5, 0.5)),
    ("clip-min", 9, lambda g, x: g.op("Clip", x, min_f=-0.5), X.clamp(-0.5)),
    ("clip-11", 11, lambda g, x: g.op("Clip", x, torch.tensor(-0.5), torch.tensor(0.5)), X.clamp(-0.5, 0.5)),
    ("clip-max", 11, lambda g, x: g.op("Clip", x, None, torch.tensor(0.5)), X.clamp(max=0.5)),
    ("split", 9, lambda g, x: g.op("Split", x, split_i=[1, 3], axis_i=2, outputs=2)[1], X[:, :, 1:]),
    ("split-equal", 9, lambda g, x: g.op("Split", x, axis_i=2, outputs=2)[1], X[:, :, 2:]),
    ("split-13", 13, lambda g, x: g.op("Split", x, torch.tensor([1, 3]), axis_i=2, outputs=2)[1], X[:, :, 1:]),
    ("slice", 9, lambda g, x: g.op("Slice", x, axes_i=[2], starts_i=[1], ends_i=[3]), X[:, :, 1:3]),
    ("slice-10", 10, lambda g, x: g.op("Slice", x, torch.tensor([1]), torch.tensor([3]), torch.tensor([2])), X[:, :, 1:3]),
    ("pad", 9, lambda g, x: g.op("Pad", x, pads_i=[0, 0, 1, 0, 0, 2], value_f=3.0), torch.nn.functional.pad(X, (1, 2), value=3.0)),
    ("pad-11", 11, lambda g, x: g.op("Pad", x, torch.tensor([0, 0, 1, 0, 0, 2]), torch.tensor(3.0)), torch.nn.functional.pad(X, (1, 2), value=3.0)),
    ("dropout", 9, lambda g, x: g.op("Dropout", x, ratio_f=0.3), X),
    ("topk", 9, lambda g, x: g.op("TopK", x, k_i=2, axis_i=2, outputs=2)[0], X.topk(2, 2)[0]),
    ("topk-10", 10, lambda g, x: g.op("TopK", x, torch.tensor([2]), axis_i=2, outputs=2)[0], X.topk(2, 2)[0]),
    ("softmax", 9, lambda g, x: g.op("Softmax", x), X.reshape(2, 4).softmax(1).reshape(2, 1, 4)),
    ("softmax-0", 9, lambda g, x: g.op("Softmax", x, axis_i=0), X.reshape(1, 8).softmax(1).reshape(2, 1, 4)),
    ("softmax-13", 13, lambda g, x: g.op("Softmax", x, axis_i=0), X.softmax(0)),
    ("logsoftmax", 9, lambda g, x: g.op("LogSoftmax", x, axis_i=2), X.log_softmax(2)),
    ("upsample", 9, lambda g, x: g.op("Upsample", x, torch.tensor([1.0, 1.0, 2.0]), mode_s="nearest"), X.repeat_interleave(2, 2)),
    ("upsample-7", 7, lambda g, x: g.op("Upsample", x, scales_f=[1.0, 1.0, 2.0], mode_s="nearest"), X.repeat_interleave(2, 2)),
    ("resize-10", 10, lambda g, x: g.op("Resize", x, torch.tensor([1.0, 1.0, 2.0]), mode_s="nearest"), X.repeat_interleave(2, 2)),
    ("cast", 9, lambda g, x: g.op("Cast", g.op("Cast", x, to_i=7), to_i=1), X.long().float()),
    ("helpers", 9, lambda g, x: symbolic_helper._squeeze_helper(g, symbolic_helper._unsqueeze_helper(g, x, [0, 1]), [0, 1]), X),
    ("reduce-helper", 9, lambda g, x: symbolic_helper._reducesum_helper(g, x, axes_i=[2], keepdims_i=0), X.sum(2)),
    ("own-functions", 9, lambda g, x: symbolic_opset9.add(g, unsqueeze(g, symbolic_opset9.squeeze(g, x, 1), 1), 1.5), X + 1.5),
    ("own-functions-by-name", 9, lambda g, x: symbolic_opset9.softmax(g, x, dim=-1), X.softmax(-1)),
    ("asks", 9, lambda g, x: g.op("Squeeze", x, torch.tensor([1])) if g.opset >= 13 else g.op("Squeeze", x, axes_i=[1]), X.squeeze(1)),
]


@pytest.mark.parametrize(("since", "write", "expected", "opset"),
                         [pytest.param(*f[1:], opset, id=f"{f[0]}-at-{opset}") for f in FORMS for opset in OPSETS if opset >= f[1]])
def test_the_form_it_was_written_in_is_right_at_every_opset(since: int, write: Any, expected: torch.Tensor, opset: int) -> None:

    def forward(x: torch.Tensor) -> torch.Tensor:
        return like(x, expected.shape)

    with registered("onnxport_tests::like", lambda g, x, sizes: write(g, x), since), warnings.catch_warnings():
        warnings.simplefilter("error")
        check(forward, (X,), expected, opset_version=opset)


def _like() -> Any:
    from tests.compat.running import operator

    return operator("like(Tensor x, int[] sizes) -> Tensor", lambda x, sizes: torch.zeros(sizes))


like = _like()


def test_a_form_that_nothing_says_today_is_refused_by_name() -> None:
    with registered("aten::relu", lambda g, x: g.op("GroupNormalization", x, torch.ones(1), torch.zeros(1), num_groups_i=1), 18), \
            pytest.raises(UnsupportedError, match="GroupNormalization in the form of opset 18"):
        proto(torch.relu, (torch.randn(1, 2, 3),))


def test_subgraphs() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        cond = g.op("Greater", g.op("ReduceSum", x, keepdims_i=0), torch.tensor(0.0))
        node = g.graph.insertNode(g.graph.create("onnx::If", [cond], 1))
        for kind in ("onnx::Relu", "onnx::Neg"):
            block = node.addBlock()
            with g.graph.insert_point_guard(block):
                made = g.graph.insertNode(g.graph.create(kind, [x], 1))
            block.registerOutput(made.output())
        return node.output()

    with registered("aten::relu", symbolic):
        x = torch.randn(2, 3).abs()
        made = check(torch.relu, (x,), x)
        assert "If" in ops(made)
        check(torch.relu, (-x,), x)


# ---------------------------------------------------------------- operators that write


def test_registered_on_the_name_of_an_in_place_operator() -> None:
    """`add_` is translated by what is registered for `add_`, `add` by what is registered for `add`; without the former, `add_` is an `add`."""
    def mark(name: str) -> Any:
        return lambda g, self, other, alpha=None: g.op(f"acme::{name}", self, other).setType(self.type())

    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[0].add_(1)
        return (y + 2).relu_()

    with registered("aten::add_", mark("Into")):
        made = proto(forward, (A,))
        assert "acme::Into" in ops(made) and ops(made).count("Add") == 1
        with registered("aten::add", mark("Sum")):
            assert {"acme::Into", "acme::Sum"} <= set(ops(proto(forward, (A,))))
    with registered("aten::add", mark("Sum")):
        assert ops(proto(forward, (A,))).count("acme::Sum") == 2
    with registered("aten::relu_", lambda g, x: g.op("Relu", x)):
        check(forward, (A,))


def test_a_custom_operator_that_writes() -> None:
    with registered("onnxport_tests::grow_", lambda g, x, k: g.op("Mul", x, g.op("Constant", value_t=torch.tensor(3.0))), 9):
        def forward(x: torch.Tensor) -> torch.Tensor:
            y = x + 1
            torch.ops.onnxport_tests.grow_(y[:, 1:], 3.0)
            return y * 2

        check(forward, (A,))
    with pytest.raises(UnsupportedError, match="it writes into its arguments"):
        proto(forward, (A,))
