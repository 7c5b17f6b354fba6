"""The shape rules of If, Loop and Scan and of sequences, in graphs that a builder makes, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from onnxport.target import dims, shapes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import Block, DataType, Node, Value

F, I64, B = DataType.FLOAT, DataType.INT64, DataType.BOOL
n, h = dims.symbol("n"), dims.symbol("h")
SIZES = ({"n": 3, "h": 5}, {"n": 1, "h": 1}, {"n": 2, "h": 7})


class Plain:
    """Writes what a builder holds as protobuf, without any type or shape of its own."""

    def __init__(self) -> None:
        self.initializers: dict[int, onnx.TensorProto] = {}

    def name(self, value: Value | None) -> str:
        if value is None:
            return ""
        if value.const is not None and id(value) not in self.initializers:
            self.initializers[id(value)] = onnx.numpy_helper.from_array(value.const.tensor.numpy(), f"v{id(value)}")
        return f"v{id(value)}"

    def node(self, node: Node) -> onnx.NodeProto:
        attrs = {k: self.graph(v.nodes, v.inputs, v.outputs) if isinstance(v, Block) else v for k, v in node.attrs.items()}
        return onnx.helper.make_node(node.op_type, [self.name(v) for v in node.inputs], [self.name(v) for v in node.outputs], **attrs)

    def graph(self, nodes: list[Node], inputs: list[Value], outputs: list[Value]) -> onnx.GraphProto:
        made = [self.node(x) for x in nodes]
        given = [onnx.helper.make_tensor_value_info(self.name(v), int(v.dtype or F), [None] * (v.rank or 0)) for v in inputs]
        results = [onnx.ValueInfoProto(name=self.name(v)) for v in outputs]
        if nodes and outputs[0].node is not None and inputs and inputs[0].name == "in0":
            results = [onnx.helper.make_tensor_value_info(self.name(v), int(v.dtype or F), None) for v in outputs]
        return onnx.helper.make_graph(made, f"g{id(nodes)}", given, results)


def run(g: Builder, outputs: list[Value], feed: dict[str, np.ndarray]) -> list[Any]:
    plain = Plain()
    graph = plain.graph(g.root.nodes, g.root.inputs, outputs)
    graph.initializer.extend(plain.initializers.values())
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", g.opset)], ir_version=10)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(None, {plain.name(v): feed[v.name or ""] for v in g.root.inputs})
    return results


class Graph:
    """A builder with inputs x: (n, h), y: (h,), flag and count."""

    def __init__(self) -> None:
        self.g = Builder(21)
        self.x, self.y = self.g.input("x", F, (n, h)), self.g.input("y", F, (h,))
        self.flag, self.count = self.g.input("flag", B, ()), self.g.input("count", I64, ())

    def block(self, outputs: Any, *inputs: tuple[DataType, tuple[Size, ...]]) -> Block:
        with self.g.subgraph() as block:
            block.inputs = [Value(dtype, shape, name=f"in{i}") for i, (dtype, shape) in enumerate(inputs)]
            block.outputs = outputs(*block.inputs)
        return block

    def holds(self, outputs: list[Value], expected: list[str], **others: Any) -> None:
        """The outputs have these shapes ("?": only the run knows; "" for an unknown rank), and the run agrees."""
        texts = ["" if v.shape is None else " ".join("?" if self.is_fresh(s) else str(s) for s in v.shape) or "()" for v in outputs]
        assert texts == expected
        for numbers in SIZES:
            x = np.ones((numbers["n"], numbers["h"]), np.float32)
            feed = {"x": x, "y": x[0], "flag": np.asarray(True), "count": np.asarray(numbers["n"], np.int64), **others}
            for value, real in zip(outputs, run(self.g, outputs, feed), strict=True):
                assert value.dtype == DataType.from_numpy(real.dtype)
                if value.shape is not None:
                    made = [dims.evaluate(s, numbers) for s in value.shape]
                    assert len(made) == real.ndim
                    assert all(m in (None, r) for m, r in zip(made, real.shape, strict=True)), (value.shape, real.shape)

    def is_fresh(self, size: Size) -> bool:
        return not isinstance(size, int) and not size.symbols <= {"n", "h"}


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.mark.parametrize("flag", [True, False])
def test_if_knows_what_both_branches_say(graph: Graph, flag: bool) -> None:
    g, x, y = graph.g, graph.x, graph.y
    first = graph.block(lambda: [g.op("Relu", x), g.op("Relu", y), g.op("NonZero", x), g.op("Concat", x, x, axis=1)])
    second = graph.block(lambda: [g.op("Neg", x), g.op("Neg", x), g.op("NonZero", x), g.op("Concat", x, x, axis=0)])
    out = g.op("If", graph.flag, outputs=4, then_branch=first, else_branch=second)
    graph.holds(list(out), ["n h", "", "2 ?", "? ?"], flag=np.asarray(flag))


def test_if_of_two_dtypes_is_of_none(graph: Graph) -> None:
    g, x = graph.g, graph.x
    first, second = graph.block(lambda: [g.op("Relu", x)]), graph.block(lambda: [g.op("Cast", x, to=DataType.INT64)])
    assert shapes.infer(g, "If", (graph.flag,), {"then_branch": first, "else_branch": second}, 1) == [(None, (n, h))]


def test_loop_that_runs_as_often_as_it_is_told(graph: Graph) -> None:
    g, x, y = graph.g, graph.x, graph.y
    body = graph.block(
        lambda i, go, state, grown: [
            g.const(True), g.op("Add", state, y), g.op("Concat", grown, y, axis=0), g.op("Neg", y), g.op("NonZero", y)],
        (I64, ()), (B, ()), (F, (n, h)), (F, (dims.symbol("grown"),)))
    graph.count.content = (n,)
    out = g.op("Loop", graph.count, None, x, y, outputs=4, body=body)
    graph.holds(list(out), ["n h", "?", "n ?", "n 1 ?"])
    once_at_least = Value(I64, (), content=(n + 1,))
    assert shapes.infer(g, "Loop", (once_at_least, None, x, y), {"body": body}, 4)[2] == (F, (n + 1, h))



def test_loop_that_a_condition_may_end(graph: Graph) -> None:
    g, x, y = graph.g, graph.x, graph.y
    body = graph.block(lambda i, go, state: [g.op("Not", go), g.op("Add", state, y), g.op("Neg", state)], (I64, ()), (B, ()), (F, (n, h)))
    graph.holds(list(g.op("Loop", graph.count, None, x, outputs=2, body=body)), ["n h", "? ? ?"])
    other = graph.block(lambda i, go, state: [g.const(True), g.op("Exp", state), g.op("Neg", state)], (I64, ()), (B, ()), (F, (n, h)))
    graph.holds(list(g.op("Loop", g.scalar(n), graph.flag, x, outputs=2, body=other)), ["n h", "? ? ?"], flag=np.asarray(False))
    third = graph.block(lambda i, go, state: [g.const(True), g.op("Exp", state), g.op("Neg", y)], (I64, ()), (B, ()), (F, (n, h)))
    graph.holds(list(g.op("Loop", g.const(3), g.const(True), x, outputs=2, body=third)), ["n h", "3 h"])


def test_sizes_that_only_the_body_knows_stay_inside(graph: Graph) -> None:
    g = graph.g
    body = graph.block(lambda i, go, state: [g.const(True), state, g.op("Concat", state, state, axis=0)],
                       (I64, ()), (B, ()), (F, (g.fresh(graph.x, None),)))
    inner = g.fresh(body.inputs[2], 0)
    body.inputs[2].shape = body.outputs[1].shape = (inner,)
    body.outputs[2].shape = (inner * 2,)
    known = shapes.infer(g, "Loop", (g.const(3), None, graph.y), {"body": body}, 2)
    assert known == [(F, (None,)), (F, (3, None))]


def test_scan(graph: Graph) -> None:
    g, x, y = graph.g, graph.x, graph.y
    body = graph.block(
        lambda state, row: [g.op("Add", state, row), g.op("Neg", row), g.op("ReduceSum", row, keepdims=0)], (F, (h,)), (F, (h,)))
    graph.holds(list(g.op("Scan", y, x, outputs=3, body=body, num_scan_inputs=1)), ["h", "n h", "n"])
    turned = graph.block(lambda column: [g.op("Neg", column)], (F, (n,)))
    graph.holds([g.op("Scan", x, body=turned, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1])], ["n h"])
    graph.holds([g.op("Scan", x, body=turned, num_scan_inputs=1, scan_input_axes=[-1], scan_output_axes=[-2])], ["h n"])


def test_sequences_know_the_type_of_their_elements(graph: Graph) -> None:
    g, x, y = graph.g, graph.x, graph.y
    sequence = g.op("SequenceConstruct", x, x)
    longer = g.op("SequenceInsert", sequence, x)
    shorter = g.op("SequenceErase", longer, g.const(0))
    rows = g.op("SplitToSequence", x, g.const(1), axis=1)
    empty = g.op("SequenceInsert", g.op("SequenceEmpty", dtype=DataType.FLOAT), y)
    graph.holds(
        [g.op("SequenceAt", sequence, g.const(0)), g.op("SequenceLength", longer), g.op("ConcatFromSequence", shorter, axis=0),
         g.op("SequenceAt", rows, g.const(0)), g.op("SequenceAt", empty, g.const(0))],
        ["", "()", "", "", ""])
    assert shapes.infer(g, "SequenceEmpty", (), {}, 1) == [(F, None)]


def test_sequence_map(graph: Graph) -> None:
    g = graph.g
    body = graph.block(lambda element: [g.op("Cast", element, to=DataType.INT64)], (F, (n, h)))
    rows = g.op("SequenceMap", g.op("SequenceConstruct", graph.x, graph.x), body=body)
    graph.holds([g.op("SequenceAt", rows, g.const(0))], [""])


def test_optionals(graph: Graph) -> None:
    g = graph.g
    value = g.op("OptionalGetElement", g.op("Optional", graph.x))
    graph.holds([value, g.op("OptionalHasElement", graph.x)], ["", "()"])
    assert shapes.infer(g, "Optional", (), {}, 1) == [(None, None)]


@pytest.mark.parametrize(("attrs", "dtype", "shape"), [
    ({"value": np.zeros((2, 3), np.int32)}, DataType.INT32, (2, 3)),
    ({"value": onnx.numpy_helper.from_array(np.zeros((2, 3), np.float64))}, DataType.DOUBLE, (2, 3)),
    ({"value_int": 3}, I64, ()), ({"value_ints": [3, 4]}, I64, (2,)), ({"value_float": 3.0}, F, ()), ({"value_floats": [1.0]}, F, (1,)),
    ({"value_string": "a"}, DataType.STRING, ()), ({"value_strings": ["a", "b"]}, DataType.STRING, (2,)),
])
def test_constants(graph: Graph, attrs: dict[str, Any], dtype: DataType, shape: tuple[int, ...]) -> None:
    assert shapes.infer(graph.g, "Constant", (), attrs, 1) == [(dtype, shape)]
