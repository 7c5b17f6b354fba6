"""`onnxport.target.kernels`: the table against real sessions, and what is computed in a wider dtype."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper

from onnxport import errors
from onnxport.target import kernels, schemas
from onnxport.target.builder import Builder
from onnxport.target.value import DataType
from tests.target.form_cases import ints, op, rand
from tests.target.running import OPSETS, model, run

MEASURED = kernels.measured_with() == onnxruntime.__version__
FLOATS = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16)
DTYPES = (*FLOATS, DataType.INT64, DataType.INT32, DataType.INT16, DataType.INT8, DataType.UINT8, DataType.UINT16, DataType.UINT32,
          DataType.UINT64, DataType.BOOL)

# ---------------------------------------------------------------------- the table

# Inputs (the dtype under test is None) and attributes of nodes that are written alike at each opset that has them.
NODES: dict[str, tuple[list[tuple[DataType | None, list[int]]], dict[str, Any]]] = {
    **{name: ([(None, [2, 3])], {}) for name in (
        "Abs", "Acos", "Ceil", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Mish",
        "Neg", "NonZero", "ReduceMax", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceL1", "ReduceLogSum", "Relu", "Round",
        "Shape", "Sigmoid", "Sign", "Softplus", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Transpose", "Trilu", "Unique")},
    **{name: ([(None, [2, 3]), (None, [2, 3])], {}) for name in (
        "Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "PRelu", "Pow",
        "Sub", "Sum", "SwiGLU")},
    **{name: ([(None, [1, 4, 4, 4])], {"kernel_shape": [2, 2]}) for name in ("AveragePool", "MaxPool")},
    "ArgMax": ([(None, [2, 3])], {"axis": 1}),
    "Conv": ([(None, [1, 1, 4]), (None, [1, 1, 2])], {}),
    "CumSum": ([(None, [2, 3]), (DataType.INT64, [])], {}),
    "DepthToSpace": ([(None, [1, 4, 2, 2])], {"blocksize": 2}),
    "Gather": ([(None, [4]), (DataType.INT64, [2])], {}),
    "GlobalAveragePool": ([(None, [1, 2, 3])], {}),
    "MatMul": ([(None, [3, 3]), (None, [3, 3])], {}),
    "RandomNormalLike": ([(None, [3])], {"dtype": 1}),
    "Range": ([(None, []), (None, []), (None, [])], {}),
    "RoiAlign": ([(None, [1, 1, 4, 4]), (None, [1, 4]), (DataType.INT64, [1])], {}),
    "Where": ([(DataType.BOOL, [3]), (None, [3]), (None, [3])], {}),
}


def allowed(op_type: str, opset: int) -> Iterator[DataType]:
    letters, ins, _ = schemas.types(op_type, opset)
    position = next(i for i, (dtype, _) in enumerate(NODES[op_type][0]) if dtype is None)
    return (d for d in DTYPES if d.name in letters[ins[min(position, len(ins) - 1)]])


def loads(op_type: str, opset: int, dtype: DataType) -> bool:
    inputs, attrs = NODES[op_type]
    if op_type == "Mod" and dtype in FLOATS:
        attrs = {"fmod": 1}
    infos = [helper.make_tensor_value_info(f"x{i}", int(d or dtype), s) for i, (d, s) in enumerate(inputs)]
    node = helper.make_node(op_type, [i.name for i in infos], ["y"], **attrs)
    graph = helper.make_graph([node], "g", infos, [onnx.helper.make_empty_tensor_value_info("y")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


@pytest.mark.skipif(not MEASURED, reason="another onnxruntime than the table was measured with")
@pytest.mark.parametrize("op_type", sorted(NODES))
def test_table_says_what_sessions_do(op_type: str):
    wrong = []
    position = next(i for i, (dtype, _) in enumerate(NODES[op_type][0]) if dtype is None)
    for opset in OPSETS:
        if not schemas.has(op_type, opset):
            assert not kernels.runs(op_type, opset)
            continue
        for dtype in allowed(op_type, opset):
            said = kernels.runs(op_type, opset, dtype) if position == 0 else takes(op_type, opset, dtype, position)
            if said != loads(op_type, opset, dtype):
                wrong.append((opset, dtype.name, said))
    assert not wrong


def takes(op_type: str, opset: int, dtype: DataType, position: int) -> bool:
    letter = schemas.types(op_type, opset)[1][position]
    return any(kernels._takes(row, letter, dtype) for row in kernels._rows(op_type, opset))


@pytest.mark.skipif(not MEASURED, reason="another onnxruntime than the table was measured with")
def test_table_is_what_the_tool_writes(tmp_path: Path):
    root = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location("kernel_table", root / "tools" / "kernel_table.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    committed = tool.TARGET.read_text()
    tool.TARGET = tmp_path / "kernels.json"
    tool.main()
    assert tool.TARGET.read_text() == committed


@pytest.mark.skipif(not MEASURED, reason="another onnxruntime than the table was measured with")
@pytest.mark.parametrize(("op_type", "highest"), [
    ("Add", 28), ("RoiAlign", 21), ("RandomNormalLike", 21), ("Multinomial", 21), ("Swish", 24), ("QuantizeLinear", 27),
    ("DequantizeLinear", 27), ("ImageDecoder", None)])
def test_highest(op_type: str, highest: int | None):
    assert kernels.highest(op_type) == highest


# ---------------------------------------------------------------------- computed in another dtype

SMALL = [np.int8, np.int16, np.uint8, np.int32]
BITS = np.array([[True, False, True], [False, False, True]])
Expected = Callable[..., Any]


def same_at_every_opset(build: Any, inputs: list[np.ndarray], expected: Any, opsets: Any = OPSETS) -> None:
    wanted = expected(*[torch.from_numpy(a) for a in inputs]) if callable(expected) else expected
    for opset in opsets:
        found = run(model(opset, build, inputs), inputs)[0]
        wanted = np.asarray(wanted)
        assert found.dtype == wanted.dtype, opset
        np.testing.assert_array_equal(found, wanted, err_msg=f"opset {opset}")


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize(("op_type", "expected"), [
    ("Add", torch.add), ("Sub", torch.sub), ("Mul", torch.mul), ("Max", torch.maximum), ("Min", torch.minimum), ("Equal", torch.eq),
    ("Less", torch.less), ("Greater", torch.greater), ("LessOrEqual", torch.le), ("GreaterOrEqual", torch.ge),
    ("Mod", lambda a, b: torch.remainder(a, b)), ("Div", lambda a, b: torch.div(a, b, rounding_mode="trunc"))])
def test_binary(op_type: str, expected: Expected, dtype: Any):
    low = 1 if np.dtype(dtype).kind == "u" else -100
    a, b = ints(20, low=low, high=100, dtype=dtype), ints(20, low=1, high=100, dtype=dtype)
    same_at_every_opset(op(op_type), [a, b], expected)


def test_remainders_of_narrow_integers_do_not_overflow():
    a, b = np.array([50, 100, -100, -28], np.int8), np.array([100, 101, 101, -92], np.int8)
    same_at_every_opset(op("Mod"), [a, b], torch.remainder)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize(("op_type", "expected"), [("Abs", torch.abs), ("Neg", torch.neg), ("Sign", torch.sign), ("Relu", torch.relu)])
def test_unary(op_type: str, expected: Expected, dtype: Any):
    same_at_every_opset(op(op_type), [ints(20, low=-100, high=100, dtype=dtype)], expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.bool_])
@pytest.mark.parametrize(("name", "build", "expected"), [
    ("ReduceMax", op("ReduceMax", [1], keepdims=0), lambda x: x.amax(1)),
    ("ReduceMin", op("ReduceMin", [1], keepdims=0), lambda x: x.amin(1)),
    ("ArgMax", op("ArgMax", axis=1, keepdims=0), lambda x: x.int().argmax(1)),
    ("Pad", op("Pad", [0, 1, 0, 2]), lambda x: torch.nn.functional.pad(x, (1, 2))),
    ("Transpose", op("Transpose", perm=[1, 0]), lambda x: x.T), ("Flatten", op("Flatten", axis=0), lambda x: x.reshape(1, -1)),
    ("Concat", lambda g, x: g.op("Concat", x, x, axis=0), lambda x: torch.cat([x, x])),
    ("Split", lambda g, x: g.op("Split", x, g.const([1, 2]), axis=1, outputs=2)[1], lambda x: x[:, 1:]),
    ("Slice", op("Slice", [1], [3], [1]), lambda x: x[:, 1:3]), ("Gather", op("Gather", [2, 0], axis=1), lambda x: x[:, [2, 0]])])
def test_moving(name: str, build: Any, expected: Expected, dtype: Any):
    x = (ints(2, 3, low=0, high=2) if dtype is np.bool_ else ints(2, 3, low=0, high=100)).astype(dtype)
    same_at_every_opset(build, [x], expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.bool_, np.float16])
def test_where(dtype: Any):
    x, y = (ints(2, 3, low=0, high=100).astype(dtype) for _ in range(2))
    same_at_every_opset(op("Where"), [BITS, x, y], torch.where, range(9, 29))


def test_others():
    x8 = ints(3, 4, low=-20, high=20, dtype=np.int8)
    same_at_every_opset(op("Trilu"), [x8], torch.triu, range(9, 29))
    same_at_every_opset(op("NonZero"), [rand(2, 3, dtype=np.float64)], lambda x: x.nonzero().T, range(9, 29))
    same_at_every_opset(op("NonZero"), [x8], lambda x: x.nonzero().T, range(9, 29))
    same_at_every_opset(lambda g, x: g.op("CumSum", x, g.const(1)), [x8], lambda x: x.cumsum(1).to(torch.int8), range(11, 29))
    same_at_every_opset(lambda g, x: g.op("TopK", x, g.const([2]), outputs=2)[0], [np.array([[3, 9, -4, 7]], np.int32)],
                        np.array([[9, 7]], np.int32))
    same_at_every_opset(lambda g, x: g.op("OneHot", x, g.const(3), g.const([False, True])), [np.array([2, 0], np.int32)],
                        np.array([[False, False, True], [True, False, False]]), range(9, 29))
    same_at_every_opset(lambda g, x: g.op("MatMul", x, x), [x8[:3, :3]], lambda x: x.int().matmul(x.int()).to(torch.int8), range(9, 29))
    same_at_every_opset(lambda g, x: g.op("Unique", x), [np.array([3, 1, 3], np.int32)], np.array([1, 3], np.int32), range(11, 29))


def test_bits_in_unsigned_integers():
    x, y = np.array([200, 3], np.uint16), np.array([3, 1], np.uint16)
    same_at_every_opset(op("BitShift", direction="LEFT"), [x, y], x << y, range(11, 29))


# ---------------------------------------------------------------------- what is left alone, and what is refused


def decided(op_type: str, opset: int, *dtypes: DataType, **attrs: Any) -> kernels.Widening | None:
    g = Builder(opset)
    return kernels.widening(g, op_type, tuple(g.input(f"x{i}", d, (2,)) for i, d in enumerate(dtypes)), attrs)


def test_half_floats_stay_where_the_schema_has_them():
    for op_type in ("Add", "Mul", "Exp", "Tanh", "MatMul", "Conv", "Where", "Softmax"):
        dtypes = [DataType.BOOL] * (op_type == "Where") + [DataType.FLOAT16] * 2
        assert decided(op_type, 13, *dtypes) is None
        assert decided(op_type, 22, *dtypes[:-2], DataType.BFLOAT16, DataType.BFLOAT16) is None
    assert decided("CumSum", 13, DataType.FLOAT16, DataType.INT64) == kernels.Widening({0: DataType.FLOAT}, {0: DataType.FLOAT16})
    assert decided("Sin", 13, DataType.BFLOAT16) == kernels.Widening({0: DataType.FLOAT}, {0: DataType.BFLOAT16})
    assert decided("IsNaN", 13, DataType.BFLOAT16) is None


def test_half_floats_compute_like_pytorch():
    x = rand(3, 4).astype(np.float16)
    for opset in OPSETS:
        for build, expected in ((op("Sin"), np.sin(x)), (op("ReduceSum", [1], keepdims=0), x.sum(1))):
            np.testing.assert_allclose(run(model(opset, build, [x]), [x])[0], expected, rtol=1e-2, atol=1e-2)


def test_bfloat16_survives_a_cast():
    x = rand(4)
    build: Any = lambda g, x: g.op("Cast", g.op("Cast", x, to=DataType.BFLOAT16), to=DataType.FLOAT)
    for opset in range(13, 29):
        found = run(model(opset, build, [x]), [x], optimise=False)[0]
        np.testing.assert_array_equal(found, x.astype(ml_dtypes.bfloat16).astype(np.float32))


def test_double_stays_where_only_onnx_runtime_lacks_it():
    assert decided("Conv", 13, DataType.DOUBLE, DataType.DOUBLE) is None


@pytest.mark.parametrize(("op_type", "opset", "dtypes", "message"), [
    ("TopK", 9, (DataType.INT64,), "TopK of INT64 needs opset 11 or higher (opset_version=9 was asked)"),
    ("MatMul", 8, (DataType.INT64, DataType.INT64), "MatMul of INT64 needs opset 9 or higher (opset_version=8 was asked)"),
    ("Sin", 28, (DataType.INT64,), "Sin of INT64 is not in ONNX, at any opset"),
    ("BitShift", 13, (DataType.INT32, DataType.INT32), "BitShift of INT32 needs opset 28 or higher (opset_version=13 was asked)"),
])
def test_refused(op_type: str, opset: int, dtypes: tuple[DataType, ...], message: str):
    with pytest.raises(errors.UnsupportedError) as caught:
        decided(op_type, opset, *dtypes)
    assert str(caught.value) == message


def test_casts_are_refused_by_name():
    with pytest.raises(errors.UnsupportedError, match=r"^Cast to BFLOAT16 needs opset 13 or higher \(opset_version=12 was asked\)$"):
        decided("Cast", 12, DataType.FLOAT, to=DataType.BFLOAT16)
    with pytest.raises(errors.UnsupportedError, match=r"^Cast of BFLOAT16 needs opset 13"):
        decided("Cast", 12, DataType.BFLOAT16, to=DataType.FLOAT)
    with pytest.raises(errors.UnsupportedError, match=r"^Cast to FLOAT8E4M3FN needs opset 19"):
        decided("Cast", 18, DataType.FLOAT, to=DataType.FLOAT8E4M3FN)
    with pytest.raises(errors.UnsupportedError, match=r"^RandomNormal to BFLOAT16 needs opset 22"):
        decided("RandomNormal", 21, dtype=DataType.BFLOAT16)
    with pytest.raises(errors.UnsupportedError, match=r"^Cast of BFLOAT16 needs opset 13"):
        model(9, op("Exp"), [rand(2).astype(ml_dtypes.bfloat16)])

