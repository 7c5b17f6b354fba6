"""The turns of a loop one after the other, where that is smaller than a Loop, or where no Loop can do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport.aten.graph import Node
from onnxport.aten.graph import Value as Captured
from onnxport.lower.python import Listed, state_of
from onnxport.target import dims
from onnxport.target.dims import Dim
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering


class OpenError(Exception):
    """Whether a loop goes on is known only when the model runs."""


def over_different(low: Lowering, node: Node) -> bool:
    """Whether a loop goes through a list whose items are not of one type (tensors of different shapes, tuples, dicts): no Loop can."""
    body = node.blocks[0]
    made = {inner.outputs[0]: list(inner.args.values()) for inner in body.nodes if inner.op == "prim::ListConstruct"}
    for inner in body.nodes:
        held, place = [*inner.args.values(), None, None][:2]
        if inner.op == "aten::__getitem__" and place is body.inputs[0]:
            found = held if not isinstance(held, Captured) else made.get(held) or low.env.get(held)
            state = state_of(found) if isinstance(found, (Listed, list, tuple)) else ()
            known = isinstance(state, tuple) and all(not isinstance(item, Captured) or item in low.env or item.constant is not None for item in state)
            if known and not _alike([low.resolve(item) for item in state]):
                return True
    return False


def _alike(items: list[Any]) -> bool:
    if all(isinstance(item, (bool, int, float, Dim)) for item in items):
        return True
    shapes = [item.shape for item in items if isinstance(item, Value)]
    if len(shapes) != len(items) or any(shape is None or len(shape) != len(shapes[0] or ()) for shape in shapes):
        return False
    return all(dims.equal(a, b) for shape in shapes for a, b in zip(shape or (), shapes[0] or (), strict=True))


def unrolled(low: Lowering, node: Node, count: int | None, carried: list[Any], most: int) -> list[Any]:
    """The turns one after the other, as far as it is known that there is a next."""
    body = node.blocks[0]
    size = max(1, len(body.nodes))
    turn = 0
    low.journal.begin()
    try:
        while turn != count:
            if (turn + 1) * size > most:
                raise OpenError
            low.env[body.inputs[0]] = turn
            low.env.update(zip(body.inputs[1:], carried, strict=True))
            low.block(body)
            condition, *carried = [low.resolve(output) for output in body.outputs]
            turn += 1
            condition = low.truth(condition)
            if condition is False:
                break
            if condition is not True and turn != count:
                raise OpenError
    except BaseException:
        low.journal.take_back()
        raise
    for held, state in low.journal.take_back().items():
        low.journal.put(held, state)
    return carried
