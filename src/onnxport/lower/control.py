"""`prim::If` as ONNX If. What is known at export is decided at export, and of a branch that only raises the other one is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport import errors
from onnxport.aten.graph import Block, Node
from onnxport.aten.source import where
from onnxport.lower import joining, looping
from onnxport.lower.joining import Joiner
from onnxport.lower.python import Listed, Maybe
from onnxport.ops import loops
from onnxport.target import dims
from onnxport.target.dims import Dim
from onnxport.target.value import Block as Subgraph
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering


def truth(low: Lowering, condition: Any) -> Any:
    """A condition as True, False or a bool value of rank 0."""
    if isinstance(condition, Dim):
        condition = low.g.scalar(condition)
    if not isinstance(condition, Value):
        return bool(condition)
    if condition.const is not None and not condition.const.is_lazy:
        return bool(condition.const.tensor.item())
    if condition.rank:
        condition = low.g.op("Reshape", condition, low.g.sizes([])) if condition.rank is not None else condition
    return condition if condition.dtype == DataType.BOOL else low.g.op("Cast", condition, to=DataType.BOOL)


def raises(block: Block) -> bool:
    """Whether a block does nothing but end the program."""
    return any(node.op == "prim::RaiseException" for node in block.nodes)


def inline(low: Lowering, block: Block) -> list[Any]:
    """Lowers a block where it stands."""
    low.block(block)
    return [low.resolve(output) for output in block.outputs]


def if_(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """The taken branch, or an If."""
    condition = truth(low, next(iter(args.values())))
    if isinstance(condition, bool):
        return _results(inline(low, node.blocks[0 if condition else 1]))
    failing = [raises(block) for block in node.blocks]
    if failing[0] != failing[1]:
        low.g.notes.append(f"{where(node.source)}: the branch that raises is left out; the file does not check this condition")
        return _results(inline(low, node.blocks[0 if failing[1] else 1]))
    moved = _moved(low, node, condition)
    return _results(_branches(low, node, condition) if moved is None else moved)


def _moved(low: Lowering, node: Node, condition: Value) -> list[Any] | None:
    """`if n > 0: x = x.reshape(n, -1, 4)` for an x of n rows: what it gives where x is empty too, and then no numbers either.

    Other than in the script such an x gets its new shape; ONNX has no tensor that is of one rank or of another.
    """
    fn, size, other = low.compared.get(condition, ("", 0, 0))
    if (fn, other) not in ((">", 0), (">=", 1), ("!=", 0)) or node.blocks[1].nodes or any(n.op not in _MOVES for n in node.blocks[0].nodes):
        return None
    before = [low.resolve(output) for output in node.blocks[1].outputs]
    if not all(isinstance(x, Value) and _has(x, size) for x in before):
        return None
    after = inline(low, node.blocks[0])
    if all(isinstance(y, Value) and _has(y, size) and _symbols(y) <= _symbols(x) for x, y in zip(before, after, strict=True)):
        return after
    return None


_MOVES = frozenset({"prim::ListConstruct", "aten::reshape", "aten::view", "aten::flatten", "aten::unsqueeze", "aten::size", "aten::__getitem__"})


def _has(x: Value, size: Any) -> bool:
    return x.shape is not None and any(dims.equal(size, own) for own in x.shape)


def _symbols(x: Value) -> set[str]:
    return {name for size in x.shape or () if isinstance(size, Dim) for name in size.symbols}


def _results(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def _branches(low: Lowering, node: Node, condition: Value) -> list[Any]:
    g = low.g
    blocks = Subgraph(g.block), Subgraph(g.block)
    results: list[list[Any]] = []
    states: list[dict[Listed, Any]] = []
    for block, body in zip(blocks, node.blocks, strict=True):
        low.journal.begin()
        low.depth += 1
        try:
            with g.reopened(block):
                results.append(inline(low, body))
        finally:
            low.depth -= 1
            states.append(low.journal.take_back())
    g.scope, g.source = node.scope, node.source
    joiner = Joiner(g, condition, blocks, (states[0], states[1]))
    finishes = [joiner.join(a, b, output.kind) for a, b, output in zip(*results, node.outputs, strict=True)]
    lists = {held: joiner.states(states[0].get(held, held.held), states[1].get(held, held.held)) for held in {**states[0], **states[1]}}
    made = _emit(low, condition, joiner)
    for held, finish in lists.items():
        low.journal.put(held, finish(made))
    return [finish(made) for finish in finishes]


def _emit(low: Lowering, condition: Value, joiner: Joiner) -> tuple[Value, ...]:
    count = len(joiner.outputs[0])
    if not count:
        return ()
    for block, outputs in zip(joiner.blocks, joiner.outputs, strict=True):
        block.outputs = outputs
        low.g.close(block)
    then, otherwise = joiner.blocks
    made: Any = low.g.op("If", condition, outputs=count, then_branch=then, else_branch=otherwise)
    return (made,) if count == 1 else tuple(made)


def loop(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """A Loop, or its turns one after the other."""
    trips, condition, *carried = args.values()
    return _results(looping.run(low, node, trips, truth(low, condition), carried))


def scan(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """A Scan over dim 0 of some tensors."""
    (body,) = node.blocks
    states, sequences = args["states"], args["sequences"]

    def step(before: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        low.env.update(zip(body.inputs, [*before, *elements], strict=True))
        made = [joining.as_value(low.g, result) for result in inline(low, body)]
        return made[:len(states)], made[len(states):]

    low.depth += 1
    try:
        after, made = loops.scan(low.g, "a scan", states, sequences, step)
    finally:
        low.depth -= 1
    return _results([*after, *made])


def raise_(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """A `raise` that is always reached."""
    message = next((arg for arg in args.values() if isinstance(arg, str)), "")
    raise errors.UnsupportedError(f"with these arguments the script raises: {message}")


def is_none(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """`x is None`, `x is not None`, and `is` of other things."""
    a, b = args.values()
    same = node.op == "aten::__is__"
    if isinstance(a, Maybe) and b is None:
        present = truth(low, a.present)
        if isinstance(present, bool):
            return present != same
        return low.g.op("Not", present) if same else present
    return (a is b) == same


def unchecked_cast(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """An Optional that is known not to be None, here."""
    (x,) = args.values()
    return x.value if isinstance(x, Maybe) else x


HANDLERS = {
    "prim::If": if_, "prim::Loop": loop, "prim::Scan": scan, "prim::RaiseException": raise_, "aten::__is__": is_none, "aten::__isnot__": is_none,
    "prim::unchecked_cast": unchecked_cast, "aten::_unwrap_optional": unchecked_cast, "prim::unchecked_unwrap_optional": unchecked_cast,
}
