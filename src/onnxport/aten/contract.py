"""What holds of a graph after the passes on it, and the check of it."""

from __future__ import annotations

from onnxport import errors
from onnxport.aten.graph import LIST_WRITES, Arg, Block, Graph, Node, Value, values_in
from onnxport.aten.source import where

_TAKE_APART = frozenset({"prim::TupleUnpack", "prim::TupleIndex", "aten::__getitem__"})


def check(graph: Graph, after: str = "functionalise") -> None:
    """Raises `ShapeError`, with the name of the pass and the node, unless

    - no node writes in place;
    - every value is computed before it is used, and once;
    - tuples and dicts are gone but for those that an operator gives and the next takes apart; no output is a list;
    - every tensor has a dtype and a rank, or is marked unknown.
    """
    defined: set[Value] = {*graph.inputs, *graph.weights.values(), *graph.attributes.values()}
    _block(graph.block, defined, after)
    for what, args in (("an output", graph.outputs), ("a mutation", [m.value for m in graph.mutated]),
                       ("what Python read", [read.value for read in graph.reads])):
        for arg in args:
            _output(arg, defined, what, after)


def _block(block: Block, defined: set[Value], after: str) -> None:
    defined.update(block.inputs)
    for node in block.nodes:
        _node(node, defined, after)
    for output in values_in(block.outputs):
        if not _known(output, defined):
            raise _breach(after, f"{output} is an output of a block and is not computed in it")


def _node(node: Node, defined: set[Value], after: str) -> None:
    writes = writes_by_name(node.op) if node.schema is None else bool(node.schema.writes)
    if node.op not in LIST_WRITES and writes:
        raise _breach(after, "it writes in place", node)
    for name, arg in node.args.items():
        for value in values_in(arg):
            if not _known(value, defined):
                raise _breach(after, f"{name}={value} is used before it is computed", node)
            if value.kind in ("tuple", "dict") and node.op not in _TAKE_APART:
                raise _breach(after, f"{name}={value} is a container", node)
    for block in node.blocks:
        _block(block, set(defined), after)
    for output in node.outputs:
        if output in defined:
            raise _breach(after, f"{output} is computed twice", node)
        if output.kind == "tensor" and not output.unknown and (output.dtype is None or output.shape is None):
            raise _breach(after, f"{output} has no dtype or no rank", node)
    defined.update(node.outputs)


def writes_by_name(op: str) -> bool:
    """Whether an operator's name is that of an in-place one (`add_`, `__iand__`)."""
    return op.startswith("aten::__i") or (op.startswith("aten::") and op.endswith("_") and not op.endswith("__"))


def _output(arg: Arg, defined: set[Value], what: str, after: str) -> None:
    for value in values_in(arg):
        if not _known(value, defined):
            raise _breach(after, f"{value} is {what} and is not computed")
        if value.kind in ("list", "tuple", "dict"):
            raise _breach(after, f"{value} is {what} and a container")


def _known(value: Value, defined: set[Value]) -> bool:
    return value in defined or value.constant is not None


def _breach(after: str, what: str, node: Node | None = None) -> errors.ShapeError:
    place = "" if node is None else f"{node.op}{'.' + node.overload if node.overload else ''} at {where(node.source)}: "
    return errors.ShapeError(f"after the pass {after}: {place}{what}; this is a fault of onnxport, please report it")
