"""Generates `src/onnxport/target/kernels.json`: what the CPU provider of the installed ONNX Runtime can run.

    python tools/kernel_table.py

Two sources. Kernels: ONNX Runtime lists them (operator, range of versions, dtypes by constraint letter). Functions: an
operator without a kernel runs where ONNX defines it by others and ONNX Runtime can expand that, which nothing lists:
a model of one node is made for each opset and dtype, and tried.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, defs, helper
from onnxruntime.capi import onnxruntime_pybind11_state as state

TARGET = Path(__file__).parent.parent / "src" / "onnxport" / "target" / "kernels.json"
OPEN_END = 2**31 - 1
IR_VERSIONS = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11,
               24: 12, 25: 13}
FLOATS = ("float", "double", "float16", "bfloat16")
DTYPES = (*FLOATS, "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool")
Row = list[Any]


def kernels() -> dict[str, list[Row]]:
    """Operator -> [first version, last version or None, {letter: dtypes}], with rows that differ in one letter united."""
    found: dict[str, list[Row]] = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider != "CPUExecutionProvider" or kernel.domain not in ("", "ai.onnx"):
            continue
        first, last = kernel.version_range
        letters = {letter: sorted(_plain(types)) for letter, types in kernel.type_constraints.items()}
        found.setdefault(kernel.op_name, []).append([first, None if last == OPEN_END else last, letters])
    return {name: _united(rows) for name, rows in sorted(found.items())}


def _plain(types: list[str]) -> set[str]:
    """tensor(float) -> float; sequences and optionals are left out."""
    return {t[len("tensor("):-1] for t in types if t.startswith("tensor(")}


def _united(rows: list[Row]) -> list[Row]:
    rows = sorted(rows, key=lambda row: (row[0], row[1] or OPEN_END, json.dumps(row[2], sort_keys=True)))
    done = False
    while not done:
        done = True
        for i, row in enumerate(rows):
            for other in rows[i + 1:]:
                if _absorb(row, other):
                    rows.remove(other)
                    done = False
                    break
    return rows


def _absorb(row: Row, other: Row) -> bool:
    if row[:2] != other[:2] or row[2].keys() != other[2].keys():
        return False
    different = [letter for letter in row[2] if row[2][letter] != other[2][letter]]
    if len(different) > 1:
        return False
    for letter in different:
        row[2][letter] = sorted({*row[2][letter], *other[2][letter]})
    return True


# ---------------------------------------------------------------------- functions

Node = tuple[list[tuple[str, list[int]]], int, dict[str, Any], list[np.ndarray[Any, Any]]]
Template = tuple[tuple[str, ...], Callable[[str], Node]]


def _unary(dtypes: tuple[str, ...] = FLOATS, constants: tuple[Any, ...] = (), **attrs: Any) -> Template:
    return dtypes, lambda t: ([(t, [3, 4])], 1, attrs, [np.array(c) for c in constants])


def _same(count: int, dtypes: tuple[str, ...] = FLOATS, shape: tuple[int, ...] = (4,), **attrs: Any) -> Template:
    return dtypes, lambda t: ([(t, list(shape))] * count, 1, attrs, [])


# dtypes to try, and for one of them: the inputs (dtype, shape), the number of outputs, attributes, constants behind.
FUNCTIONS: dict[str, Template] = {
    **{name: _unary() for name in ("Bernoulli", "Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "LogSoftmax", "Mish",
                                   "Selu", "Softmax", "Softplus", "Softsign", "Swish", "ThresholdedRelu")},
    **{name: _unary(DTYPES, ([1],)) for name in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")},
    **{name: _same(2, DTYPES) for name in ("GreaterOrEqual", "LessOrEqual", "PRelu")},
    **{name: _unary(DTYPES) for name in ("Relu", "Shrink")},
    "Attention": _same(3, shape=(1, 2, 3, 8)),
    "CastLike": (DTYPES, lambda t: ([("float", [4]), (t, [1])], 1, {}, [])),
    "CausalConvWithState": (FLOATS, lambda t: ([(t, [1, 2, 5]), (t, [2, 1, 3])], 2, {}, [])),
    "CenterCropPad": _unary(DTYPES, ([2, 6],)),
    "Clip": (DTYPES, lambda t: ([(t, [4]), (t, []), (t, [])], 1, {}, [])),
    "DepthToSpace": _same(1, DTYPES, (1, 4, 2, 2), blocksize=2),
    "GroupNormalization": (FLOATS, lambda t: ([(t, [1, 4, 3]), (t, [4]), (t, [4])], 1, {"num_groups": 2}, [])),
    "LayerNormalization": _same(2, shape=(4,)),
    "LinearAttention": (FLOATS, lambda t: ([(t, [1, 3, 8])] * 3, 2, {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}, [])),
    "MeanVarianceNormalization": _same(1, shape=(1, 2, 3, 4)),
    "NegativeLogLikelihoodLoss": (FLOATS, lambda t: ([(t, [3, 5]), ("int64", [3])], 1, {"reduction": "mean"}, [])),
    "RMSNormalization": _same(2, shape=(4,)),
    "Range": _same(3, DTYPES, shape=()),
    "SoftmaxCrossEntropyLoss": (FLOATS, lambda t: ([(t, [3, 5]), ("int64", [3])], 1, {"reduction": "mean"}, [])),
    "SpaceToDepth": _same(1, DTYPES, (1, 1, 4, 4), blocksize=2),
    "SwiGLU": _same(2),
}


def runs(op_type: str, opset: int, dtype: str) -> bool:
    """Whether a session can be made of a model that holds this one node."""
    inputs, outputs, attrs, constants = FUNCTIONS[op_type][1](dtype)
    names = [f"x{i}" for i in range(len(inputs))]
    fixed = [onnx.numpy_helper.from_array(array, f"c{i}") for i, array in enumerate(constants)]
    made = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, [*names, *(t.name for t in fixed)], made, **attrs)], "g",
        [helper.make_tensor_value_info(n, element_type(t), shape) for n, (t, shape) in zip(names, inputs, strict=True)],
        [helper.make_empty_tensor_value_info(n) for n in made], fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSIONS.get(opset, 13))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def element_type(name: str) -> int:
    """The TensorProto element type of a dtype's name."""
    return int(getattr(TensorProto, name.upper()))


def functions(table: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Operator -> [first opset, last opset, dtypes that run though no kernel of the operator takes them]."""
    found: dict[str, list[Row]] = {}
    for op_type in sorted(FUNCTIONS):
        for opset in range(7, defs.onnx_opset_version() + 1):
            dtypes = [t for t in _without_kernel(table, op_type, opset) if runs(op_type, opset, t)]
            rows = found.setdefault(op_type, [])
            if rows and rows[-1][1] == opset - 1 and rows[-1][2] == dtypes:
                rows[-1][1] = opset
            elif dtypes:
                rows.append([opset, opset, dtypes])
    return {name: rows for name, rows in found.items() if rows}


def _without_kernel(table: dict[str, list[Row]], op_type: str, opset: int) -> list[str]:
    try:
        schema = defs.get_schema(op_type, opset, "")
    except defs.SchemaError:
        return []
    letter = schema.inputs[-1].type_str if op_type == "CastLike" else schema.inputs[0].type_str
    rows = [row for row in table.get(op_type, []) if serves(row, schema.since_version)]
    return [t for t in FUNCTIONS[op_type][0] if not any(t in row[2].get(letter, (t,)) for row in rows)]


def serves(row: Row, version: int) -> bool:
    """ONNX Runtime's rule: an open end says only that no newer version was known when the kernel was written."""
    first, last, _ = row
    return bool(first == version or (last is not None and first <= version <= last))


def main() -> None:
    """Writes the table, one operator a line."""
    table = kernels()
    lines = [f"    {json.dumps(name)}: {json.dumps(rows, separators=(',', ':'))}" for name, rows in table.items()]
    measured = [f"    {json.dumps(name)}: {json.dumps(rows, separators=(',', ':'))}" for name, rows in functions(table).items()]
    text = '{{\n  "onnxruntime": "{}",\n  "kernels": {{\n{}\n  }},\n  "functions": {{\n{}\n  }}\n}}\n'
    TARGET.write_text(text.format(onnxruntime.__version__, ",\n".join(lines), ",\n".join(measured)))


if __name__ == "__main__":
    main()
