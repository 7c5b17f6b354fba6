"""Graphs made by hand: what no trace gives, the contract's breaches, dead nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from onnxport import errors
from onnxport.aten import contract
from onnxport.aten.graph import Block, Graph, Mutation, Node, Parameter, Read, Schema, Value
from onnxport.aten.passes.functionalise import functionalise
from onnxport.aten.passes.prune import prune
from tests.aten import interpreter

WRITES = Schema("aten::add_", "Scalar", (Parameter("self", "Tensor"), Parameter("other", "number"), Parameter("alpha", "number")),
                ("Tensor",), ("self",))


def tensor(*shape: int) -> Value:
    return Value("tensor", torch.float32, shape or (2, 3))


def relu(x: Value, y: Value) -> Node:
    return Node("aten::relu", "", {"self": x}, [y])


def add_(x: Value, y: Value) -> Node:
    return Node("aten::add_", "Scalar", {"self": x, "other": 1, "alpha": 1}, [y], schema=WRITES)


def graph(inputs: list[Value], nodes: list[Node], outputs: list[Value]) -> Graph:
    block = Block()
    block.inputs, block.nodes, block.outputs = list(inputs), list(nodes), list(outputs)
    return Graph(block, list(inputs), [f"x{i}" for i in range(len(inputs))], {}, {}, list(outputs), [f"y{i}" for i in range(len(outputs))])


def branch(condition: Value, nodes: list[Node], result: Value, output: Value, otherwise: Value) -> Node:
    blocks = [Block(), Block()]
    blocks[0].nodes, blocks[0].outputs, blocks[1].outputs = list(nodes), [result], [otherwise]
    return Node("prim::If", "", {"self": condition}, [output], blocks=blocks)


# --- contract ----------------------------------------------------------------------------------------------------------------------


def breach_in_place() -> Graph:
    x, y = tensor(), tensor()
    return graph([x], [add_(x, y)], [y])


def breach_in_place_by_name() -> Graph:
    x, y = tensor(), tensor()
    return graph([x], [Node("aten::relu_", "", {"self": x}, [y])], [y])


def breach_order() -> Graph:
    x, y, z = tensor(), tensor(), tensor()
    return graph([x], [relu(y, z), relu(x, y)], [z])


def breach_order_in_list() -> Graph:
    x, y, z = tensor(), tensor(), tensor()
    return graph([x], [Node("aten::cat", "", {"tensors": [x, y], "dim": 0}, [z]), relu(x, y)], [z])


def breach_inner_value() -> Graph:
    x, c, a, y, z = tensor(), Value("bool"), tensor(), tensor(), tensor()
    return graph([x, c], [branch(c, [relu(x, a)], a, y, x), relu(a, z)], [z])


def breach_twice() -> Graph:
    x, y = tensor(), tensor()
    return graph([x], [relu(x, y), relu(x, y)], [y])


def breach_output() -> Graph:
    return graph([tensor()], [], [tensor()])


def breach_mutation() -> Graph:
    x = tensor()
    found = graph([x], [], [x])
    found.mutated.append(Mutation("x0", "input", tensor()))
    return found


def breach_tuple() -> Graph:
    x, y, z = tensor(), Value("tuple"), tensor()
    return graph([x], [Node("aten::lstm", "", {"input": x}, [y]), relu(y, z)], [z])


def breach_list_output() -> Graph:
    x, y = tensor(), Value("list")
    return graph([x], [Node("aten::unbind", "int", {"self": x, "dim": 0}, [y])], [y])


def breach_rank() -> Graph:
    x, y = tensor(), Value("tensor", torch.float32)
    return graph([x], [relu(x, y)], [y])


BREACHES: dict[str, tuple[Callable[[], Graph], str]] = {
    "in_place": (breach_in_place, "add_.*in place"), "in_place_by_name": (breach_in_place_by_name, "in place"),
    "order": (breach_order, "relu.*before it is computed"), "order_in_list": (breach_order_in_list, "cat.*before"),
    "inner_value": (breach_inner_value, "before"), "twice": (breach_twice, "twice"), "output": (breach_output, "not computed"),
    "mutation": (breach_mutation, "mutation"), "tuple": (breach_tuple, "container"), "list_output": (breach_list_output, "container"),
    "rank": (breach_rank, "no rank"),
}


@pytest.mark.parametrize("name", BREACHES)
def test_breach(name: str) -> None:
    make, words = BREACHES[name]
    with pytest.raises(errors.ShapeError, match=words) as caught:
        contract.check(make(), "some_pass")
    assert "some_pass" in str(caught.value)


def test_kept() -> None:
    x, y, c, a, z = tensor(), tensor(), Value("bool"), tensor(), tensor()
    unknown = Value("tensor")
    unknown.unknown = True
    contract.check(graph([x, c], [relu(x, y), branch(c, [relu(y, a)], a, z, y), relu(z, unknown)], [unknown, x]))


# --- dead nodes --------------------------------------------------------------------------------------------------------------------


def test_prune() -> None:
    x, unused, a, b, c, d, e = (tensor() for _ in range(7))
    found = graph([x, unused], [relu(x, a), relu(a, b), relu(x, c), relu(c, d), relu(x, e)], [b])
    found.reads.append(Read("bool", e, True, "here"))
    prune(found)
    assert [node.outputs for node in found.block.nodes] == [[a], [b], [e]]
    assert found.inputs == [x, unused]


def test_prune_in_blocks() -> None:
    x, c, outer, inner, dead, y = tensor(), Value("bool"), tensor(), tensor(), tensor(), tensor()
    found = graph([x, c], [relu(x, outer), branch(c, [relu(outer, inner), relu(outer, dead)], inner, y, x)], [y])
    prune(found)
    assert [node.op for node in found.block.nodes] == ["aten::relu", "prim::If"]
    assert [node.outputs for node in found.block.nodes[1].blocks[0].nodes] == [[inner]]


def test_prune_keeps_what_is_mutated() -> None:
    x, y, z = tensor(), tensor(), tensor()
    found = graph([x], [relu(x, y), relu(x, z)], [])
    found.mutated.append(Mutation("x0", "input", z))
    prune(found)
    assert [node.outputs for node in found.block.nodes] == [[z]]


# --- blocks ------------------------------------------------------------------------------------------------------------------------


def test_write_in_a_block_to_its_own_value() -> None:
    x, c, a, b, y = tensor(), Value("bool"), tensor(), tensor(), tensor()
    found = graph([x, c], [branch(c, [relu(x, a), add_(a, b)], a, y, x)], [y])
    functionalise(found)
    contract.check(found)
    inner = found.block.nodes[0].blocks[0]
    assert [node.op for node in inner.nodes] == ["aten::relu", "aten::add"]
    assert inner.outputs == [b]


def test_write_in_a_block_to_an_outer_value() -> None:
    x, c, a, y = tensor(), Value("bool"), tensor(), tensor()
    found = graph([x, c], [branch(c, [add_(x, a)], a, y, x)], [y])
    functionalise(found)
    contract.check(found)
    (node,) = found.block.nodes
    assert [block.outputs[-1] for block in node.blocks] == [a, x]
    assert found.outputs == [node.outputs[-1]]


def test_write_in_a_block_through_a_view_of_an_outer_value() -> None:
    x, c, v, a, y = tensor(), Value("bool"), tensor(3), tensor(3), tensor(3)
    select = Node("aten::select", "int", {"self": x, "dim": 0, "index": 0}, [v])
    found = graph([x, c], [branch(c, [select, add_(v, a)], a, y, a2 := tensor(3))], [x])
    found.block.nodes[0].blocks[1].nodes.append(Node("aten::select", "int", {"self": x, "dim": 0, "index": 0}, [a2]))
    functionalise(found)
    contract.check(found)
    node = found.block.nodes[0]
    assert [inner.op for inner in node.blocks[0].nodes] == ["aten::select", "aten::add", "aten::select_scatter"]
    assert found.outputs == [node.outputs[-1]]


def test_block_reads_the_newest_value() -> None:
    x, c, v, a, b, y, z = tensor(), Value("bool"), tensor(3), tensor(), tensor(3), tensor(3), tensor(3)
    select = Node("aten::select", "int", {"self": x, "dim": 0, "index": 0}, [v])
    found = graph([x, c], [select, add_(x, a), branch(c, [relu(v, b)], b, y, v), relu(v, z)], [y, z])
    functionalise(found)
    contract.check(found)
    taken = [node for node in found.block.nodes if node.op == "aten::select"]
    assert [node.args["self"] for node in taken] == [a]  # once, before the block, for both


def test_view_made_in_a_block_stays_in_it() -> None:
    x, c, v, b, y, a, w, z = tensor(), Value("bool"), tensor(3), tensor(3), tensor(3), tensor(), tensor(3), tensor(3)

    def select(out: Value) -> Node:
        return Node("aten::select", "int", {"self": x, "dim": 0, "index": 0}, [out])

    found = graph([x, c], [add_(x, a), branch(c, [select(v), relu(v, b)], b, y, b), select(w), relu(w, z)], [y, z])
    found.block.nodes[1].blocks[1].nodes.append(relu(x, b2 := tensor(3)))
    found.block.nodes[1].blocks[1].outputs = [b2]
    functionalise(found)
    contract.check(found)


@pytest.mark.parametrize("written", ["outer", "result"])
def test_result_of_a_branch_that_may_be_an_outer_tensor(written: str) -> None:
    """What is written into the one is fetched by, or passed on to, the other where they are one."""
    x, c, b, y, a, z = tensor(), Value("bool"), tensor(), tensor(), tensor(), tensor()
    write = add_(x, a) if written == "outer" else add_(y, a)
    found = graph([x, c], [branch(c, [relu(x, b)], b, y, x), write, relu(y if written == "outer" else x, z)], [z])
    functionalise(found)
    contract.check(found)
    taken, told = [node for node in found.block.nodes if node.op == "prim::If"]
    assert told.args["0"] is taken.outputs[-1]
    assert [block.outputs[-1] for block in taken.blocks] == [False, True]
    assert told.outputs[0] in found.block.nodes[-1].inputs()


# --- the tensor object changes -----------------------------------------------------------------------------------------------------


def test_metadata_of_the_same_value() -> None:
    """In a script the value of before goes on standing for the tensor."""
    x, a, y = tensor(), tensor(1, 2, 3), tensor(1, 2, 3)
    schema = Schema("aten::unsqueeze_", "", (Parameter("self", "Tensor"), Parameter("dim", "int")), ("Tensor",), ("self",))
    node = Node("aten::unsqueeze_", "", {"self": x, "dim": 0}, [a], schema=schema)
    found = graph([x], [node, relu(x, y)], [y])
    functionalise(found)
    contract.check(found)
    data = torch.randn(2, 3)
    assert torch.equal(interpreter.run(found, [data])[0][0], data[None].relu())


def test_set_data() -> None:
    x, y, z = tensor(), tensor(), tensor()
    schema = Schema("aten::set_data", "", (Parameter("self", "Tensor"), Parameter("new_data", "Tensor")), (), ("self",))
    node = Node("aten::set_data", "", {"self": y, "new_data": x}, [], schema=schema)
    found = graph([x], [relu(x, y), node, add_(x, z)], [y])
    functionalise(found)
    contract.check(found)
    data = torch.randn(2, 3)
    assert torch.equal(interpreter.run(found, [data])[0][0], data + 1)


# --- lists -------------------------------------------------------------------------------------------------------------------------


def foreach(op: str, args: dict[str, Any], kinds: dict[str, str]) -> Node:
    schema = Schema(op, "", tuple(Parameter(name, kinds.get(name, "number")) for name in args), (), ("self",))
    return Node(op, "", args, [], schema=schema)


@pytest.mark.parametrize(("op", "args", "expected"), [
    ("aten::_foreach_add_", lambda a, b: {"self": [a, b], "scalar": 2.0}, lambda a, b: (a + 2, b + 2)),
    ("aten::_foreach_mul_", lambda a, b: {"self": [a, b], "scalars": [2.0, 3.0]}, lambda a, b: (a * 2, b * 3)),
    ("aten::_foreach_add_", lambda a, b: {"self": [a, b], "other": [b, b], "alpha": 2}, lambda a, b: (a + 2 * b, b + 2 * b)),
    ("aten::_foreach_copy_", lambda a, b: {"self": [a], "src": [b], "non_blocking": False}, lambda a, b: (b, b)),
    ("aten::_foreach_neg_", lambda a, b: {"self": [a, b]}, lambda a, b: (-a, -b)),
    ("aten::_foreach_zero_", lambda a, b: {"self": [a, b]}, lambda a, b: (a * 0, b * 0)),
    ("aten::_foreach_clamp_min_", lambda a, b: {"self": [a], "scalar": 0.5}, lambda a, b: (a.clamp(min=0.5), b)),
    ("aten::_foreach_addcmul_", lambda a, b: {"self": [a], "tensor1": [b], "tensor2": [b], "value": 3},
     lambda a, b: (torch.addcmul(a, b, b, value=3), b)),
    ("aten::_foreach_lerp_", lambda a, b: {"self": [a], "tensors1": [b], "weight": 0.5}, lambda a, b: (a.lerp(b, 0.5), b)),
])
def test_foreach(op: str, args: Any, expected: Any) -> None:
    a, b = tensor(), tensor()
    given = args(a, b)
    kinds = {name: "List[Tensor]" for name, arg in given.items() if isinstance(arg, list) and isinstance(arg[0], Value)}
    found = graph([a, b], [foreach(op, given, kinds)], [a, b])
    functionalise(found)
    contract.check(found)
    x = [torch.randn(2, 3), torch.randn(2, 3)]
    results, _ = interpreter.run(found, x)
    for result, wanted in zip(results, expected(*x), strict=True):
        assert torch.equal(result, wanted)


def test_list_that_grows_is_left_to_the_lowering() -> None:
    x, y = tensor(), Value("list")
    schema = Schema("aten::append", "t", (Parameter("self", "List[t]"), Parameter("el", "t")), ("List[t]",), ("self",))
    node = Node("aten::append", "t", {"self": y, "el": x}, [Value("list")], schema=schema)
    found = graph([x, y], [node, relu(x, z := tensor())], [z])
    functionalise(found)
    assert found.block.nodes[0] is node


def test_operator_of_a_library_that_writes() -> None:
    x, y = tensor(), tensor()
    schema = Schema("mine::update_", "", (Parameter("self", "Tensor"),), ("Tensor",), ("self",))
    with pytest.raises(errors.UnsupportedError, match="mine::update_"):
        functionalise(graph([x], [Node("mine::update_", "", {"self": x}, [y], schema=schema)], [y]))
