"""Single operators with symbolic dims, and how to ask a runtime what they really give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime as ort
import torch

from onnxport.target import dims, shapes
from onnxport.target.dims import Size
from onnxport.target.dtypes import to_torch
from onnxport.target.value import Constant, DataType, Value

F, D, I64, I32, U8, I8, B = (
    DataType.FLOAT, DataType.DOUBLE, DataType.INT64, DataType.INT32, DataType.UINT8, DataType.INT8, DataType.BOOL)
Numbers = dict[str, int]
Fill = Callable[[np.random.Generator, tuple[int, ...], Numbers], Any]

n, h, w, k = dims.symbol("n"), dims.symbol("h"), dims.symbol("w"), dims.symbol("k", 1)
SIZES: tuple[Numbers, ...] = ({"n": 1, "h": 7, "w": 11, "k": 1}, {"n": 3, "h": 13, "w": 8, "k": 2}, {"n": 2, "h": 16, "w": 5, "k": 5})
EMPTY: Numbers = {"n": 0, "h": 7, "w": 11, "k": 3}


@dataclass
class Input:
    """A tensor with symbolic dims that is fed (`fill`), or one that is known: `content` (sizes) or `data` (a constant)."""

    dtype: DataType
    shape: tuple[Size, ...]
    fill: Fill | None = None
    content: tuple[Size, ...] | None = None
    data: Any = None

    def value(self) -> Value:
        """What the rule sees."""
        if self.data is None:
            return Value(self.dtype, self.shape, content=self.content, name="x")
        tensor = torch.as_tensor(self.data, dtype=to_torch(self.dtype))
        value = Value(self.dtype, tuple(tensor.shape), const=Constant(tensor))
        if self.dtype == I64 and tensor.dim() <= 1:
            value.content = tuple(tensor.reshape(-1).tolist())
        return value

    def array(self, known: Numbers) -> np.ndarray:
        """What the runtime gets."""
        kind = self.dtype.numpy()
        if self.data is not None:
            return np.asarray(self.data, kind)
        if self.content is not None:
            return np.asarray([number(s, known) for s in self.content], kind).reshape([number(s, known) for s in self.shape])
        shape = tuple(number(s, known) for s in self.shape)
        rng = np.random.default_rng(0)
        if self.fill is not None:
            return np.broadcast_to(np.asarray(self.fill(rng, shape, known)), shape).astype(kind)
        if self.dtype in (F, D, DataType.FLOAT16):
            return rng.random(shape).astype(kind)
        return rng.integers(0, 2, shape).astype(kind)


def number(size: Size, known: Numbers) -> int:
    found = dims.evaluate(size, known)
    assert found is not None
    return found


def T(*shape: Size, dtype: DataType = F, fill: Fill | None = None) -> Input:
    """A tensor that the run is fed with."""
    return Input(dtype, shape, fill)


def full(value: Any) -> Fill:
    return lambda rng, shape, known: value


def sizes(*content: Size) -> Input:
    """An int64 vector of sizes."""
    return Input(I64, (len(content),), content=content)


def size(content: Size) -> Input:
    """An int64 scalar."""
    return Input(I64, (), content=(content,))


def const(data: Any, dtype: DataType = I64) -> Input:
    return Input(dtype, (), data=data)


def hidden(*content: Size, scalar: bool = False) -> Input:
    """An int64 vector (or scalar) of which the rule is not told what it holds."""
    shape = () if scalar else (len(content),)
    return Input(I64, shape, lambda rng, _, known: np.asarray([number(s, known) for s in content]).reshape(shape))


@dataclass
class Case:
    """One operator. `unknown`: how many of all its outputs' dims the rule may leave open; the others must be right."""

    op: str
    inputs: tuple[Input | None, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    unknown: int = 0
    rankless: int = 0
    opset: int = 21
    sizes: Sequence[Numbers] = SIZES
    reference: bool = False

    def __str__(self) -> str:
        shapes_ = ",".join("x".join(map(str, i.shape)) if i else "-" for i in self.inputs)
        return f"{self.op}-{shapes_}-" + ",".join(f"{k}={v}" for k, v in self.attrs.items()).replace("\n", " ")[:80]


def case(op: str, *inputs: Input | None, outputs: int = 1, unknown: int = 0, rankless: int = 0, opset: int = 21,
         sizes: Sequence[Numbers] = SIZES, reference: bool = False, **attrs: Any) -> Case:
    return Case(op, inputs, attrs, outputs, unknown, rankless, opset, sizes, reference)


def values(case: Case) -> list[Value | None]:
    """The inputs as the rule sees them."""
    return [None if i is None else i.value() for i in case.inputs]


def infer(case: Case, inputs: Sequence[Value | None] | None = None) -> list[tuple[DataType | None, Any]]:
    """What the rule says, for the case's inputs or for these."""
    return shapes.infer(None, case.op, tuple(values(case) if inputs is None else inputs), case.attrs, case.outputs)  # type: ignore[arg-type]


def with_numbers(value: Value, numbers: Numbers) -> Value:
    """`value` with numbers in the place of symbols."""
    content = None if value.content is None else tuple(number(s, numbers) for s in value.content)
    shape = None if value.shape is None else tuple(number(s, numbers) for s in value.shape)
    return Value(value.dtype, shape, const=value.const, content=content)


def forget_shape(value: Value) -> Value:
    return Value(value.dtype, None, const=value.const if value.content else None, content=value.content)


def forget_content(value: Value) -> Value:
    return Value(value.dtype, value.shape)


def forget_dtype(value: Value) -> Value:
    return Value(None, value.shape, const=value.const, content=value.content)


def forget_dims(value: Value) -> Value:
    """With a symbol of its own for each dim."""
    shape = None if value.shape is None else tuple(dims.symbol(f"f{i}") for i in range(len(value.shape)))
    return Value(value.dtype, shape, const=None, content=value.content)


def run(case: Case, known: Numbers) -> list[np.ndarray]:
    """The operator's outputs in ONNX Runtime, or in ONNX's reference implementation where that has no kernel."""
    arrays = [None if i is None else i.array(known) for i in case.inputs]
    names = ["" if a is None else f"i{at}" for at, a in enumerate(arrays)]
    results = [f"o{at}" for at in range(case.outputs)]
    attrs: dict[str, Any] = {key: int(v) if isinstance(v, DataType) else v for key, v in case.attrs.items()}
    node = onnx.helper.make_node(case.op, names, results, **attrs)
    feed, initializers, given = {}, [], []
    for spec, name, array in zip(case.inputs, names, arrays, strict=True):
        if spec is None or array is None:
            continue
        tensor = onnx.helper.make_tensor(name, int(spec.dtype), array.shape, array.tobytes(), raw=True)
        if spec.data is not None or spec.content is not None:
            initializers.append(tensor)
        else:
            # The runtime is told the numbers that the rule knows: it has checks of its own.
            told = [d if isinstance(d, int) else None for d in spec.shape]
            given.append(onnx.helper.make_tensor_value_info(name, int(spec.dtype), told))
            feed[name] = array
    finals = [onnx.ValueInfoProto(name=r) for r in results]
    graph = onnx.helper.make_graph([node], "g", given, finals, initializers)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", case.opset)], ir_version=10)
    if case.reference:
        return [np.asarray(o) for o in onnx.reference.ReferenceEvaluator(model).run(None, feed)]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(o) for o in session.run(None, feed)]
