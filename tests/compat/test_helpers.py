"""`symbolic_helper` and `symbolic_opset7` ... hold what PyTorch's modules of these names hold, and it works."""

from __future__ import annotations

import importlib
import types
from typing import Any

import numpy as np
import pytest
import torch

import onnxport
from onnxport import symbolic_helper as helper
from onnxport import symbolic_opset9, symbolic_opset10
from onnxport.errors import SymbolicFunctionError, SymbolicValueError, UnsupportedOperatorError
from tests.compat.running import check, operator, ops, proto, registered

X = torch.randn(2, 3, 4)
N = torch.arange(24).reshape(2, 3, 4).to(torch.int32)
# What PyTorch's modules define and ours do not, and why.
ABSENT = {
    "_prepare_onnx_paddings": "an implementation detail of pad: `pad(g, x, pads, mode, value)` is here",
    "convert_element_type": "prims:: operators do not reach symbolic functions",
    "get_pool_ceil_padding": "an implementation detail of pooling: `max_pool2d(g, ...)` and its like are here",
    "noop_complex_operators": "a list of names for registration", "unsupported_complex_operators": "a list of names for registration",
    "onnx_placeholder": "nodes that await a C++ pass", "aten__is_": "Python's `is` is decided before", "aten__isnot_": "Python's `is` is decided before",
    "wrap_logical_op_with_cast_to": "a decorator for logical operators of opset 8", "wrap_logical_op_with_negation": "a decorator for logical operators",
    "block_listed_op": "a loop variable", "block_listed_operators": "a list of names for registration",
    "GRID_SAMPLE_INTERPOLATION_MODES": "numbers of grid_sampler, which `grid_sampler(g, ...)` knows",
    "GRID_SAMPLE_PADDING_MODES": "numbers of grid_sampler, which `grid_sampler(g, ...)` knows",
    **dict.fromkeys(("prim_constant", "prim_constant_chunk", "prim_constant_split", "prim_if", "prim_list_construct", "prim_list_unpack", "prim_loop",
                     "prim_shape", "prim_tuple_construct", "prim_uninitialized"), "structure of TorchScript, taken apart before symbolic functions run"),
}


def defined(module: types.ModuleType) -> set[str]:
    """What a module brings of its own: no imports, no dunders."""
    names = {name for name, found in vars(module).items() if not name.startswith("__") and not isinstance(found, types.ModuleType)}
    return names - {"annotations", "TYPE_CHECKING", "Any", "NoReturn", "Callable", "Sequence", "Literal"}


def test_every_name_of_symbolic_helper() -> None:
    theirs = importlib.import_module("torch.onnx.symbolic_helper")
    assert {name for name in defined(theirs) if not hasattr(helper, name)} == set()
    assert {"_interpolate_helper", "parse_args", "_export_onnx_opset_version"} <= set(dir(helper))
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = helper.nothing_like_this


@pytest.mark.parametrize("opset", range(7, 21))
def test_every_name_of_the_opset_modules(opset: int) -> None:
    theirs, ours = importlib.import_module(f"torch.onnx.symbolic_opset{opset}"), importlib.import_module(f"onnxport.symbolic_opset{opset}")
    missing = {name for name in defined(theirs) if not hasattr(ours, name)}
    assert missing <= ABSENT.keys()
    for name in defined(theirs) - missing:
        assert callable(getattr(ours, name)) or name in ("symbolic_helper", "sym_help")


def test_what_is_absent_is_named() -> None:
    for name in ABSENT:
        with pytest.raises(AttributeError, match=name):
            getattr(symbolic_opset9, name)


made_like = operator("made_like(Tensor x, Tensor template) -> Tensor", lambda x, template: torch.zeros_like(template))


def written(write: Any, x: torch.Tensor, expected: torch.Tensor, **options: Any) -> Any:
    """Exports an operator whose symbolic function is `write(g, x)`, and compares with `expected`."""
    with registered("onnxport_tests::made_like", lambda g, x, template: write(g, x), 9):
        return check(lambda x, template: made_like(x, template), (x, torch.zeros_like(expected)), expected, **options)


def t(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


NODES: dict[str, tuple[Any, torch.Tensor, Any]] = {
    "lt": (lambda g, x: helper._lt_helper(g, x, torch.tensor(0.0)), X, X < 0),
    "max-all": (lambda g, x: helper._max_helper(g, x), X, X.max()),
    "max-two": (lambda g, x: helper._max_helper(g, x, x), X, X),
    "max-dim": (lambda g, x: helper._max_helper(g, x, 1, False)[0], X, X.amax(1)),
    "min-dim": (lambda g, x: helper._min_helper(g, x, 1, True)[1], X, X.min(1, True)[1]),
    "argmax": (lambda g, x: helper._argmin_argmax_helper(g, x, 1, False, "ArgMax"), X, X.argmax(1)),
    "argmin-all": (lambda g, x: helper._argmin_argmax_helper(g, x, None, False, "ArgMin"), X, X.argmin()),
    "var_mean": (lambda g, x: helper._var_mean_helper(g, x, [1], 1, False)[0], X, X.var(1)),
    "norm": (lambda g, x: helper._linalg_vector_norm_helper(g, x, 2.0, [1], False, None), X, torch.linalg.vector_norm(X, 2, 1)),
    "reduce": (lambda g, x: helper._reduce_op_symbolic_helper("ReduceMean")(g, x, [1, 2], 1), X, X.mean((1, 2), True)),
    "reduce-all": (lambda g, x: helper._reduce_op_symbolic_helper("ReduceSum")(g, x), X, X.sum()),
    "reduce-dtype": (lambda g, x: helper._reduce_with_dtype_helper("ReduceSum", "sum")(g, x, 2, 0, 7), X, X.sum(2).double()),
    "reduce-dtype-all": (lambda g, x: helper._reduce_with_dtype_helper("ReduceSum", "sum")(g, x, None), X, X.sum()),
    "reduce-input": (lambda g, x: g.op("ReduceSum", helper._maybe_cast_reduce_op_input(g, x), keepdims_i=0), N, N.sum()),
    "float-cast": (lambda g, x: helper._op_with_optional_float_cast(g, "Relu", x, opset_before=30), N, N.relu()),
    "scatter": (lambda g, x: helper._scatter_helper(g, x, 1, g.op("Constant", value_t=torch.zeros(2, 1, 4, dtype=torch.int64)), x), X,
                X.scatter(1, torch.zeros(2, 1, 4, dtype=torch.int64), X)),
    "unbind": (lambda g, x: helper._unbind_helper(g, x, 1, 3)[2], X, X.unbind(1)[2]),
    "index_fill": (lambda g, x: helper._index_fill_reshape_helper(g, x, 1, g.op("Constant", value_t=t(0, 2)))[1], X,
                   t(0, 2)[None, :, None].expand(2, 2, 4)),
    "index_fill-shape": (lambda g, x: helper._index_fill_reshape_helper(g, x, 1, g.op("Constant", value_t=t(0, 2)))[0], X, t(2, 2, 4)),
    "repeat_interleave": (lambda g, x: helper._repeat_interleave_single_value_repeat_helper(g, x, 2, 1), X, X.repeat_interleave(2, 1)),
    "arange": (lambda g, x: helper._arange_helper(g, 5), X, torch.arange(5)),
    "arange-cast": (lambda g, x: helper._arange_cast_helper(g, torch.tensor(5), dtype=6)[1], X, torch.tensor(5.0)),
    "arange-cast-kind": (lambda g, x: helper._arange_cast_helper(g, torch.tensor(5))[1], X, torch.tensor(5)),
    "batchnorm": (lambda g, x: g.op("Add", helper._batchnorm_helper(g, x, None, None, None, None)[0], helper._batchnorm_helper(
        g, x, None, None, None, None)[1]), X, torch.ones(3)),
    "interpolate": (lambda g, x: helper._interpolate_helper("upsample_nearest1d", 3, "nearest")(g, x, [8], None), X, X.repeat_interleave(2, 2)),
    "scales": (lambda g, x: helper._interpolate_get_scales(g, [2.0], 3), X, torch.tensor([1.0, 1, 2])),
    "scales-value": (lambda g, x: helper._interpolate_get_scales(g, g.op("ReduceMax", x, keepdims_i=0), 4), X, torch.tensor([1.0, 1, 0, 0]) +
                     torch.tensor([0.0, 0, 1, 1]) * X.max()),
    "scales-of-size": (lambda g, x: helper._interpolate_size_to_scales(g, x, [6], 3), X, torch.tensor([1.0, 1, 1.5])),
    "scales-and-mode": (lambda g, x: g.op("Resize", x, None, helper._interpolate_get_scales_and_mode(g, x, [8], None, "nearest", None)[0],
                                          mode_s="nearest", coordinate_transformation_mode_s="asymmetric", nearest_mode_s="floor"), X,
                        X.repeat_interleave(2, 2)),
    "attributes": (lambda g, x: helper._get_interpolate_attributes(g, "nearest", [[2.0]])[0], X, torch.tensor([1.0, 1, 2])),
    "quantize": (lambda g, x: helper.dequantize_helper(g, helper.quantize_helper(g, x, torch.tensor(0.1), torch.tensor(3)))[0], X,
                 torch.fake_quantize_per_tensor_affine(X, 0.1, 3, 0, 255)),
    "requantize": (lambda g, x: helper.dequantize_helper(g, helper.requantize_bias_helper(g, x, torch.tensor(0.5), torch.tensor(0.5)))[0], X,
                   (X / 0.25).round() * 0.25),
    "reflection_pad": (lambda g, x: symbolic_opset9.reflection_pad(g, x, [1, 2]), X, torch.nn.functional.pad(X, (1, 2), "reflect")),
    "replication_pad": (lambda g, x: symbolic_opset9.replication_pad(g, x, [1, 0]), X, torch.nn.functional.pad(X, (1, 0), "replicate")),
    "tanhshrink": (lambda g, x: symbolic_opset9.tanhshrink(g, x), X, torch.nn.functional.tanhshrink(X)),
    "slice": (lambda g, x: symbolic_opset10._slice(g, x, 1, 0, 2, 1), X, X[:, :2]),
    "unused": (lambda g, x: g.op("Clip", x, symbolic_opset9.unused(g), torch.tensor(0.5)), X, X.clamp(max=0.5)),
    "apply_params": (helper._apply_params("Neg")(lambda name: lambda g, x: g.op(name, x)), X, -X),
}


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("name", NODES)
def test_nodes(name: str, opset: int) -> None:
    write, x, expected = NODES[name]
    written(write, x, expected, opset_version=opset)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_a_helper_takes_every_dtype(dtype: torch.dtype) -> None:
    x = torch.arange(6).reshape(2, 3).to(dtype)
    written(lambda g, x: helper._max_helper(g, x, 1, False)[0], x, x.amax(1), opset_version=9)


def test_questions() -> None:
    def write(g: Any, x: Any) -> Any:
        assert helper._get_dim_for_cross(x, None) == 1 and helper._get_dim_for_cross(x, 2) == 2
        assert helper._is_split_static(g.value([1, 2]), 2) and not helper._is_split_static(g.value([1, 2]), None) and not helper._is_split_static(x, 2)
        assert helper._as_list_type(g.value([1, 2]).type()) is not None and helper._as_list_type(x.type()) is None
        assert helper._parse_arg(g.value(2), "i") == 2 and helper._avgpool_helper(lambda p: (p, p), 1, 2, 2, None, "pool") == (1, 1)
        assert helper._interpolate_warning("linear") is None
        return x

    written(write, X, X)


@pytest.mark.parametrize(("write", "message"), [
    (lambda g, x: helper._parse_arg(x, "i", "size", "mine"), "mine: the argument 'size' has to be an int"),
    (lambda g, x: helper.dequantize_helper(g, x), "no quantized tensor: quantize_helper makes one"),
    (lambda g, x: helper._reduce_with_dtype_helper("ReduceSum", "sum")(g, x, 1, 2), r"sum takes \(dtype\) or \(dim, keepdim, dtype\)"),
    (lambda g, x: helper._block_list_in_opset("thing")(g, x), "thing cannot be written at this opset"),
    (lambda g, x: helper._onnx_opset_unsupported("Thing", 9, 11), "Thing cannot be written at opset 9 .*opset 11 can"),
    (lambda g, x: helper._onnx_unsupported("thing", x), "ONNX cannot express thing"),
    (lambda g, x: symbolic_opset10.quantized_add(g, x, x, 1.0, 0), "quantized::add"),
])
def test_faults(write: Any, message: str) -> None:
    with pytest.raises((SymbolicValueError, SymbolicFunctionError, UnsupportedOperatorError), match=message) as caught:
        written(write, X, X)
    assert "onnxport_tests::made_like" in str(caught.value)


def test_a_warning_that_an_operator_cannot_be_converted() -> None:
    with registered("aten::relu", lambda g, x: helper._unimplemented("relu", "not today")), pytest.warns(UserWarning, match="relu: not today"), \
            pytest.raises(onnxport.errors.UnsupportedOperatorError, match="Couldn't export operator aten::relu"):
        proto(torch.relu, (X,))


def test_there_is_no_global_opset() -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match="its argument opset_version"):
        helper._set_opset_version(9)
    with registered("aten::relu", lambda g, x: g.op("acme::At", x, opset_i=helper._export_onnx_opset_version)):
        made = proto(torch.relu, (X,), opset_version=15)
    assert ops(made) == ["acme::At"] and made.graph.node[0].attribute[0].i == 15 and np.isfinite(X.numpy()).all()


# ---------------------------------------------------------------- the rest


MORE: dict[str, tuple[Any, torch.Tensor, Any]] = {
    "slice": (lambda g, x: helper._slice_helper(g, x, [1], [0], [3], [2]), X, X[:, 0:3:2]),
    "reshape": (lambda g, x: helper._reshape_helper(g, x, [2, -1]), X, X.reshape(2, -1)),
    "reshape-value": (lambda g, x: helper._reshape_helper(g, x, g.op("Shape", g.op("Transpose", x, perm_i=[2, 1, 0]))), X, X.reshape(4, 3, 2)),
    "reshape-list": (lambda g, x: g.op("Reshape", x, g.value([6, 4])), X, X.reshape(6, 4)),
    "select": (lambda g, x: symbolic_opset9.select(g, x, 1, 2), X, X[:, 2]),
    "select-vector": (lambda g, x: symbolic_opset9.select(g, x, 1, g.op("Constant", value_t=t(2, 0))), X, X[:, [2, 0]]),
    "size": (lambda g, x: symbolic_opset9.size(g, x), X, t(2, 3, 4)),
    "size-of-dim": (lambda g, x: symbolic_opset9.size(g, x, 1), X, torch.tensor(3)),
    "if_scalar_type_as": (lambda g, x: g.op("Add", x, symbolic_opset9._if_scalar_type_as(g, 2, x)), X, X + 2),
    "float-cast-of-floats": (lambda g, x: helper._op_with_optional_float_cast(g, "Relu", x, opset_before=30), X, X.relu()),
    "arange-cast-of-floats": (lambda g, x: helper._arange_cast_helper(g, torch.tensor(2.5))[1], X, torch.tensor(2.5)),
    "batchnorm-given": (lambda g, x: helper._batchnorm_helper(g, x, g.value(torch.full((3,), 2.0)), None, None, None)[0], X, torch.full((3,), 2.0)),
    "round": (lambda g, x: g.op("Add", x, g.op("Constant", value_t=torch.tensor(1.5))), N, N + 1),
    "interpolation-without-scales": (lambda g, x: x if helper._get_interpolate_attributes(g, "linear", [True, None]) == (None, True) else None, X, X),
    "generated-number": (lambda g, x: g.op("Add", x, helper._generate_wrapped_number(g, 1.5)), X, X + 1.5),
    "numel": (lambda g, x: helper._numel_helper(g, x), X, torch.tensor(24)),
    "size_helper": (lambda g, x: helper._size_helper(g, x, 2), X, torch.tensor(4)),
    "flatten": (lambda g, x: helper._flatten_helper(g, x, 1, 2, 3), X, X.flatten(1)),
    "topk": (lambda g, x: helper._topk_helper(g, x, 2, 1)[0], X, X.topk(2, 1)[0]),
    "sort": (lambda g, x: helper._sort_helper(g, x, 1)[0], X, X.sort(1, True)[0]),
    "optional": (lambda g, x: g.op("Clip", x, helper._optional_input_placeholder_tensor(g), torch.tensor(0.5)), X, X.clamp(max=0.5)),
}


@pytest.mark.parametrize("name", [name for name in MORE if name != "round"])
def test_more_nodes(name: str) -> None:
    written(*MORE[name])


def test_more_questions() -> None:
    def write(g: Any, x: Any) -> Any:
        constant, computed = g.op("Constant", value_t=torch.tensor(2)), g.op("ReduceMax", x, keepdims_i=0)
        assert helper._maybe_get_scalar(constant) == 2 and helper._maybe_get_scalar(computed) is computed
        assert helper._maybe_get_const(g.value([1, computed]), "is") is not None and helper._node_get(constant.node(), "value") == 2
        assert helper._is_bool(g.op("Less", x, x)) and not helper._is_bool(x) and not helper.is_complex_value(x) and not helper._is_tuple_construct(x)
        assert helper._type_promote_from_values(x, constant) == onnxport.JitScalarType.FLOAT and not helper.args_have_same_dtype([x, constant])
        assert helper._get_tensor_sizes(g.value(None)) is None and helper._onnx_type(x) == 1 and helper._get_tensor_dim_size(g.value(None), 0) is None
        assert helper._operator_export_type == onnxport.OperatorExportTypes.ONNX and helper._training_mode == onnxport.TrainingMode.EVAL
        assert helper.check_training_mode(0, "relu") is None and symbolic_opset9.symbolic_helper is not None
        return helper.quantized_args(True)(lambda g, x: g.op("Neg", x))(g, x)

    written(write, X, -X)


def test_overloads_by_the_number_of_arguments() -> None:
    @helper._overload_by_arg_count
    def many(g: Any, *args: Any) -> Any:
        return (lambda g, x: g.op("Neg", x)), (lambda g, x, y: g.op("Add", x, y))

    written(lambda g, x: many(g, x), X, -X)
    written(lambda g, x: many(g, x, x), X, X + X)
    with pytest.warns(UserWarning, match="many: no overload takes 3 arguments"):
        assert many(None, 1, 2, 3) is None


@pytest.mark.parametrize(("write", "message"), [
    (lambda g, x: helper._parse_arg(g.value(2), "s", "mode"), "the argument 'mode' has to be a string"),
    (lambda g, x: helper._batchnorm_helper(g, g.op("acme::Any", x), None, None, None, None)[0], "batch_norm without weights needs a known number"),
    (lambda g, x: helper._index_fill_reshape_helper(g, g.op("acme::Any", x), 1, x)[0], "index_fill of a tensor of unknown rank"),
    (lambda g, x: helper._interpolate_get_scales_and_mode(g, g.op("acme::Any", x), None, 2.0, "nearest", None)[0], "an interpolation of a tensor of unknown"),
    (lambda g, x: onnxport.JitScalarType.from_value(g.op("acme::Any", x)) and x, r"the element type of (?s:.*) is not known"),
    (lambda g, x: g.op("Relu", object()), "a object cannot be given to a symbolic function"),
    (lambda g, x: g.op("Relu", g.value([x, x])), "a list of tensors cannot be an input of an ONNX node"),
    (lambda g, x: g.op("Relu"), "Relu that no opset has: .*takes 1 inputs, not 0"),
    (lambda g, x: g.op("Concat", x, x), "wrote a Concat without the attribute 'axis'"),
    (lambda g, x: g.op("Relu", x, outputs=2)[0], "has 1 outputs, not 2"),
    (lambda g, x: g.op("Softmax", g.op("acme::Any", x), axis_i=0), "a Softmax in the form of opset .* of a tensor of unknown rank"),
    (lambda g, x: g.op("BatchNormalization", x, *[torch.ones(3)] * 4, outputs=6)[0], "has .* outputs, not 6"),
    (lambda g, x: g.call("aten::softmax", x, "no"), "aten::softmax has no overload that takes 2 arguments of these kinds"),
])
def test_more_faults(write: Any, message: str) -> None:
    with pytest.raises((onnxport.errors.UnsupportedError, SymbolicValueError, SymbolicFunctionError), match=message):
        written(write, X, X)


def test_a_literal_keeps_its_fraction() -> None:
    """A float literal beside integers is not cut to fit them."""
    with pytest.raises(onnxport.errors.UnsupportedError, match=r"wrote Add of INT32 and the number 1\.5, which is none of these; cast one of them"):
        written(*MORE["round"])
    written(lambda g, x: g.op("Add", x, g.op("Constant", value_t=torch.tensor(2.0))), N, N + 2)


def test_a_value_that_another_graph_made() -> None:
    seen: list[Any] = []

    def write(g: Any, x: Any) -> Any:
        seen.append(g.op("Relu", x))
        return seen[0] if len(seen) == 1 else g.graph.create("onnx::Relu", [x], 1).output()

    written(write, X, X.relu())


@pytest.mark.parametrize(("call", "message"), [
    (lambda: onnxport.JitScalarType.from_name(None), "the name of an element type is None"),
    (lambda: onnxport.JitScalarType.from_dtype(torch.uint16), "torch.uint16 is an element type that TorchScript does not know"),
    (lambda: onnxport.JitScalarType.from_onnx_type(onnxport.TensorProtoDataType.STRING), "STRING is an element type that PyTorch does not have"),
    (lambda: onnxport.JitScalarType.UNDEFINED.dtype(), "an undefined element type has no torch dtype"),
    (lambda: onnxport.register_custom_op_symbolic("a::b", 3, 9), "symbolic_fn must be a function, not int"),  # type: ignore[arg-type]
])
def test_faults_outside_of_exports(call: Any, message: str) -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match=message):
        call()


def test_names_of_element_types() -> None:
    from onnxport.compat import scalar_type

    assert scalar_type.valid_scalar_name("Float") and not scalar_type.valid_scalar_name("float")
    assert scalar_type.valid_torch_name("float") and not scalar_type.valid_torch_name("Float")
    assert onnxport.JitScalarType.from_value(3, onnxport.JitScalarType.INT64) == onnxport.JitScalarType.INT64
