"""`custom_translation_table`: operators by functions of onnxscript, compiled or plain."""

from __future__ import annotations

import operator
import subprocess
import sys
from typing import Any

import onnx_ir as ir
import pytest
import torch

import onnxport
from onnxport.errors import ArgumentError, SymbolicFunctionError, SymbolicValueError, UnsupportedError, UnsupportedOperatorError
from tests.compat.running import Model, check, foo, ops, pair, proto, registered, rows

onnxscript = pytest.importorskip("onnxscript")
from onnxscript import BOOL, FLOAT, INT64, evaluator, script  # noqa: E402
from onnxscript import opset13 as op13  # noqa: E402
from onnxscript import opset18 as op  # noqa: E402

aten = torch.ops.aten
A, B = torch.randn(2, 3), torch.randn(2, 3)
DYNAMIC = {"input_names": ["a"], "dynamic_axes": {"a": {0: "n"}}}


@script()
def leaky(x: FLOAT[...], slope: float = 0.01):
    return op.Where(x > 0.0, x, x * slope)


@script()
def twice(x):
    return leaky(op.Mul(x, 2.0), slope=0.5) + 1.0


@script()
def by_sign(x, alpha: float = 1.0):
    if op.ReduceSum(x, keepdims=0) > 0.0:
        y = op.Add(x, 1.0)
    else:
        y = x * alpha
    return y


@script()
def powers(x):
    total = op.Identity(x)
    for _ in range(3):
        total = total * x
    return total


@script()
def old_squeeze(x, dim: int):
    return op13.Squeeze(x, op13.Constant(value_ints=[0]))


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("opset", [9, 13, 18, 22])
def test_compiled_functions(opset: int, capture: str) -> None:
    """Attributes, functions in functions, a branch and a loop; at every opset, with numbers that PyTorch's operator does not give."""
    options: dict[str, Any] = {"opset_version": opset, "capture": capture, **DYNAMIC}
    for target, function, model, expected in [
        (aten.leaky_relu.default, leaky, lambda a: torch.nn.functional.leaky_relu(a, 0.3), torch.where(A > 0, A, A * 0.3)),
        (aten.tanh.default, twice, torch.tanh, torch.where(A > 0, 2 * A, A) + 1),
        (aten.elu.default, by_sign, lambda a: torch.nn.functional.elu(a, 3.0), A + 1 if A.sum() > 0 else A * 3),
        (aten.sigmoid.default, powers, torch.sigmoid, A ** 4),
    ]:
        made = check(model, (A,), expected, custom_translation_table={target: function}, **options)
        assert not made.functions and {o.domain for o in made.opset_import} == {""}


def test_a_plain_function() -> None:
    def elu(x: Any, alpha: float = 1.0) -> Any:
        assert isinstance(x, ir.Value) and x.rank == 2 and x.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) and list(x.shape) == [ir.SymbolicDim("n"), 3]
        positive = op.Cast(x > 0, to=1)
        return positive * x + (1 - positive) * alpha * (op.Exp(x) - 1.0)

    check(torch.nn.ELU(0.5), (A,), custom_translation_table={aten.elu.default: elu}, **DYNAMIC)
    check(torch.nn.ELU(0.5).double(), (A.double(),), custom_translation_table={aten.elu.default: elu}, **DYNAMIC)


@pytest.mark.parametrize(("model", "function"), [
    (lambda a: a + 1, lambda x, y, alpha=1: op.Add(x, y)),
    (lambda a: a - a.sum(), lambda x, y, alpha=1: x - y),
    (lambda a: a * 2, lambda self, other: 2 * self),
    (lambda a: a / 4, lambda x, y: x / y),
    (lambda a: a.remainder(3), lambda x, y: (x % y + y) % y),
    (lambda a: a.exp() ** 2, lambda x, y: x ** y),
    (lambda a: a @ a.T, lambda x, y: x @ y),
    (lambda a: (a > 0) & (a < 1), lambda x, y: x & y),
    (lambda a: (a > 0) | (a < 1), lambda x, y: x | y),
    (lambda a: a != 0, lambda x, y: x != y),
    (lambda a: a == 0, lambda x, y: x == y),
    (lambda a: a >= 0, lambda x, y: ~(x < y)),
    (lambda a: a <= 0, lambda x, y: x <= y),
    (lambda a: -a, lambda x: -x),
])
def test_pythons_operators(model: Any, function: Any) -> None:
    graph = torch.export.export(Model(model).eval(), (A,)).graph
    last = [n.target for n in graph.nodes if n.op == "call_function"][-1]
    check(model, (A,), custom_translation_table={last: function}, **DYNAMIC)


def test_literals_take_the_type_of_the_tensors() -> None:
    for dtype in (torch.float64, torch.float16, torch.int64):
        x = torch.arange(6).reshape(2, 3).to(dtype)
        made = check(torch.neg, (x,), x * 2 + 1, custom_translation_table={aten.neg.default: lambda x: op.Add(op.Mul(x, [2, 2, 2]), 1)})
        assert "Cast" not in ops(made)


def test_every_kind_of_argument() -> None:
    seen: list[Any] = []

    def function(a: Any, sizes: Any, mode: str, c: Any = None, flag: bool = True) -> Any:
        seen.append((sizes, mode, c, flag))
        return op.Mul(a, 2.0), op.Add(a, float(sizes[0]))

    target = torch.ops.onnxport_tests.pair
    check(lambda a: pair(a, [3, 4], "up"), (A,), custom_translation_table={target: function})
    check(lambda a, b: pair(a, [3, 4], "up", b, False), (A, B), custom_translation_table={target.default: function})
    assert seen[0] == ([3, 4], "up", None, True) and seen[1][2].rank == 2 and seen[1][3] is False


def test_lists_of_tensors_sizes_and_dtypes() -> None:
    def filled(size: Any, value: float, dtype: int = 1) -> Any:
        assert isinstance(size[0], ir.Value) and size[1] == 4
        return op.Expand(op.Cast(op.Constant(value_float=value), to=dtype), size)

    def table(x: Any, others: Any, k: int) -> Any:
        return op.Expand(op.CastLike(1, x), op.Concat(op.Shape(others[0], start=0, end=1), [k], op.Shape(x, start=1), axis=0))

    model = lambda a: torch.full((a.shape[0], 4), 2.0, dtype=torch.float64)
    for capture in ("trace", "export"):
        check(model, (A,), custom_translation_table={aten.full.default: filled}, capture=capture, **DYNAMIC)
    check(lambda a: rows(a, [a, a], 5), (A,), custom_translation_table={torch.ops.onnxport_tests.rows.default: table}, **DYNAMIC)


def test_several_outputs_and_splits() -> None:
    def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
        return op.TopK(x, [k], axis=dim, largest=largest, sorted=sorted)

    def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
        return op.Split(x, num_outputs=chunks, axis=dim)

    def with_sizes(x: Any, sizes: Any, dim: int = 0) -> Any:
        return op.Split(x, sizes, axis=dim)

    check(lambda a: torch.topk(a, 2), (A,), custom_translation_table={aten.topk.default: topk})
    check(lambda a: a.chunk(3, 1), (A,), custom_translation_table={aten.chunk.default: chunk})
    check(lambda a: a.split([1, 2], 1), (A,), custom_translation_table={aten.split_with_sizes.default: with_sizes, aten.split.sizes: with_sizes})


@pytest.mark.parametrize("opset", [17, 22])
def test_functions_of_torchlib(opset: int) -> None:
    from onnxscript.function_libs.torch_lib.ops import core, nn

    images = torch.randn(1, 3, 8, 8)
    weight = torch.randn(4, 3, 3, 3)
    for target, function, model, inputs in [
        (aten.conv2d.default, core.aten_conv2d, lambda x: torch.nn.functional.conv2d(x, weight, padding=1), (images,)),
        (aten.gelu.default, nn.aten_gelu, torch.nn.functional.gelu, (A,)),
        (aten.layer_norm.default, core.aten_layer_norm, lambda x: torch.nn.functional.layer_norm(x, (3,)), (A,)),
        (aten.index_put.default, core.aten_index_put, lambda x: x.index_put((torch.tensor([1]),), torch.zeros(3)), (A,)),
        (aten.clamp.default, core.aten_clamp, lambda x: x.clamp(-0.5, 0.5), (A,)),
        (aten.mean.dim, core.aten_mean_dim, lambda x: x.mean(1), (A,)),
        (aten.addmm.default, core.aten_addmm, lambda x: torch.addmm(torch.ones(2), x, x.T, alpha=0.5), (A,)),
        (aten.max_pool2d.default, nn.aten_max_pool2d, lambda x: torch.nn.functional.max_pool2d(x, 2), (images,)),
    ]:
        check(model, inputs, custom_translation_table={target: function}, opset_version=opset, input_names=["a"], dynamic_axes={"a": {0: "n"}})


def test_a_domain_of_ones_own() -> None:
    acme = onnxscript.values.Opset("acme", 3)
    function = lambda p, q, r, s: onnxscript.values.Op(acme, "Foo")(p, q, alpha=r, beta=s, names=["p", "q"])
    made = proto(lambda a, b: foo(a, b, 1.5, 2), (A, B), custom_translation_table={torch.ops.onnxport_tests.foo.default: function})
    assert ops(made) == ["acme::Foo"] and {o.domain: o.version for o in made.opset_import} == {"": 18, "acme": 3}
    assert sorted(a.name for a in made.graph.node[0].attribute) == ["alpha", "beta", "names"]
    assert [d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [2, 3]


def test_of_several_functions_the_first_that_takes_the_arguments() -> None:
    @script()
    def of_integers(x: INT64[...]) -> INT64[...]:
        return op.Mul(x, 2)

    @script()
    def of_floats(x: FLOAT[...]) -> FLOAT[...]:
        return op.Neg(x)

    def of_pairs(x: Any, y: Any) -> Any:
        raise AssertionError

    table = {aten.relu.default: [of_pairs, of_integers, of_floats]}
    assert ops(proto(torch.relu, (A,), custom_translation_table=table)) == ["Neg"]
    assert ops(proto(torch.relu, (A.long(),), custom_translation_table=table)) == ["Mul"]
    with pytest.raises(SymbolicFunctionError, match=r"(?s)of_pairs.* cannot be called with \(self\).*of_integers.*takes no FLOAT16 as 'x'"):
        proto(torch.relu, (A.half(),), custom_translation_table={aten.relu.default: [of_pairs, of_integers]})


def test_whose_word_counts() -> None:
    """The table goes before what is registered, which goes before what is built in; a name without its overload is all of them."""
    with registered("aten::relu", lambda g, x: g.op("Neg", x)):
        assert ops(proto(torch.relu, (A,), custom_translation_table={aten.relu.default: lambda x: op.Exp(x)})) == ["Exp"]
        assert ops(proto(torch.relu, (A,), custom_translation_table={aten.relu_.default: lambda x: op.Exp(x)})) == ["Neg"]
        assert ops(proto(torch.relu, (A,))) == ["Neg"]
    for table, expected in [({aten.add: lambda x, y, alpha=1: op.Mul(x, y)}, ["Mul"]), ({aten.add.out: lambda x, y, alpha=1: op.Mul(x, y)}, ["Add"])]:
        assert ops(proto(lambda a, b: a + b, (A, B), custom_translation_table=table)) == expected
    assert ops(proto(lambda a: a.clone().relu_(), (A,), custom_translation_table={aten.relu_.default: lambda x: op.Exp(x)})) == ["Exp"]


def test_an_operator_of_torch_library() -> None:
    @torch.library.custom_op("onnxport_tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, k: float) -> torch.Tensor:
        return x * k

    scaled.register_fake(lambda x, k: torch.empty_like(x))
    for capture in ("trace", "export"):
        check(lambda a: scaled(a, 2.5), (A,), custom_translation_table={scaled: lambda x, k: x * k}, capture=capture, **DYNAMIC)


def test_none_leaves_it_to_the_rest() -> None:
    table = {torch.ops.onnxport_tests.foo.default: lambda *args: None}
    with pytest.raises(UnsupportedOperatorError, match="Couldn't export operator onnxport_tests::foo: .* returned None"):
        proto(lambda a, b: foo(a, b, 1.5, 2), (A, B), custom_translation_table=table)
    kept = proto(lambda a, b: foo(a, b, 1.5, 2), (A, B), custom_translation_table=table, operator_export_type=onnxport.OperatorExportTypes.ONNX_FALLTHROUGH)
    assert ops(kept) == ["onnxport_tests::foo"]


@pytest.mark.parametrize(("table", "message"), [
    (3, "must be a dict"), ({"aten::relu": torch.relu}, "holds 'aten::relu': only operators"),
    ({torch.nn.functional.gelu: torch.relu}, "only operators can stand in it"), ({torch.ops.higher_order.cond: torch.relu}, "only operators"),
    ({aten.relu.default: None}, r"\[aten.relu.default\]=None: it must be a function"), ({aten.relu.default: []}, "it must be a function"),
    ({aten.relu.default: [torch.relu, 3]}, "it must be a function"),
])
def test_what_cannot_stand_in_it(table: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        proto(torch.relu, (A,), custom_translation_table=table)


def test_functions_of_sizes_are_left_alone() -> None:
    with pytest.warns(UserWarning, match=r"floordiv.* changes nothing: onnxport computes with sizes itself"):
        check(lambda a: a.new_zeros(a.shape[0] // 2), (A,), custom_translation_table={operator.floordiv: torch.relu}, **DYNAMIC)


@pytest.mark.parametrize(("function", "kind", "message"), [
    (lambda: 1, SymbolicFunctionError, r"for aten::relu cannot be called with \(self\)"),
    (lambda x, y: 1, SymbolicFunctionError, r"\(x, y\) for aten::relu cannot be called with \(self\)"),
    (lambda x: "no", SymbolicFunctionError, "returned a str, not a tensor"),
    (lambda x: (x, x), SymbolicFunctionError, "returned 2 values for aten::relu, which has 1 outputs"),
    (lambda x: op.Elu(x, alpha=x), SymbolicValueError, "an attribute has to be known now"),
    (lambda x: op.Split(x), SymbolicValueError, "the number of outputs of Split"),
    (lambda x: -x if x else x, SymbolicValueError, "Python asks for the number in"),
    (lambda x: op.Add(x, object()), SymbolicValueError, "a object cannot be an input of an ONNX node"),
    (lambda x: torch.relu(x), UnsupportedError, r"failed \(TypeError"),
    (lambda x: op.Cast(x, to=7), SymbolicFunctionError, "gave dtype INT64, PyTorch has FLOAT"),
])
def test_faults_are_named(function: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        proto(torch.relu, (A,), custom_translation_table={aten.relu.default: function})
    assert "test_translation_table.py" in str(caught.value) or "gave dtype" in message


def test_the_evaluator_of_onnxscript_is_put_back() -> None:
    before = evaluator.default()
    proto(torch.relu, (A,), custom_translation_table={aten.relu.default: lambda x: op.Neg(x)})
    with pytest.raises(UnsupportedError):
        proto(torch.relu, (A,), custom_translation_table={aten.relu.default: lambda x: op.Neg(x.no)})
    assert evaluator.default() is before and op.Neg(A.numpy()).shape == (2, 3)


def test_a_mask_that_is_a_number() -> None:
    """What transformers does: asks for the type, and for the number of a literal."""
    def masked_fill(self: Any, mask: BOOL, value: Any) -> Any:
        fill = value if isinstance(value, float) else float(value.const_value.numpy())
        assert fill == 7.0
        return op.Where(mask, op.CastLike(value, self), self)

    table = {aten.masked_fill.Scalar: masked_fill, aten.masked_fill.Tensor: masked_fill}
    for value in (7.0, torch.tensor(7.0)):
        check(lambda a: a.masked_fill(a > 0, value), (A,), custom_translation_table=table, **DYNAMIC)  # noqa: B023


def test_without_onnxscript() -> None:
    """Nothing of it is imported; a function may write with Python's operators."""
    body = """
import sys, io, torch
sys.modules["onnxscript"] = None
import onnxport
stream = io.BytesIO()
program = onnxport.export(torch.nn.ReLU(), (torch.ones(2),), stream, custom_translation_table={torch.ops.aten.relu.default: lambda x: x * 2 + 1})
print([n.op_type for n in program.model.graph], program(torch.tensor([3.0, 4.0])))
"""
    found = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True)
    assert found.stdout.strip() == "['Mul', 'Add'] [tensor([7., 9.])]", found.stderr
