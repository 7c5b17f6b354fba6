"""Lists of tensors of different shapes as ONNX sequences.

Such a sequence stands only where nothing simpler holds: a list whose length is known is its items, one whose tensors have one shape is one tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from onnxport import errors
from onnxport.lower.python import Listed, Sequenced, Stacked
from onnxport.target import dims, kernels
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.value import DataType, Value

Sizes = tuple[Size | None, ...]
Items = tuple[DataType, Sizes]
_A_LIST = "a list whose length the running model decides"
_FIRST = 11  # the opset since when there are sequences
_THROUGH_BLOCKS = 13  # the opset since when If and Loop pass sequences on


def uniform(state: Any) -> bool:
    """Whether what a list holds is one tensor, or can be: its tensors have one dtype and shape (numbers have). Of none it can."""
    if isinstance(state, (Sequenced, Stacked)):
        return isinstance(state, Stacked)
    if not isinstance(state, tuple):
        raise errors.UnsupportedError("a list is read while a loop appends to it")
    tensors = [item for item in state if isinstance(item, Value)]
    return all(item.dtype == tensors[0].dtype and _same(item.shape, tensors[0].shape) for item in tensors)


def alike(*states: Any) -> bool:
    """Whether what these lists hold together is one tensor, or can be."""
    items = [items_of(state) for state in states if uniform(state)]
    known = [found for found in items if found is not None]
    return len(items) == len(states) and all(found[0] == known[0][0] and _same(found[1], known[0][1]) for found in known)


def _same(a: Sequence[Size | None] | None, b: Sequence[Size | None] | None) -> bool:
    if a is None or b is None or len(a) != len(b):
        return False
    return all(x is not None and y is not None and dims.equal(x, y) for x, y in zip(a, b, strict=True))


def items_of(state: Any) -> Items | None:
    """dtype and sizes of the tensors that a list holds; None where it says nothing (it is empty, or of numbers)."""
    if isinstance(state, Sequenced):
        return state.value.dtype, state.sizes  # type: ignore[return-value]
    if isinstance(state, Stacked):
        return _known(state.value.dtype, None if state.value.shape is None else state.value.shape[1:]) if state.kind == "tensor" else None
    found = [_known(item.dtype, item.shape) for item in state if isinstance(item, Value)]
    return functools.reduce(common, found) if found else None


def _known(dtype: DataType | None, shape: Sizes | None) -> Items:
    if dtype is None or shape is None:
        raise errors.UnsupportedError(f"{_A_LIST} holds tensors whose rank or dtype is not known")
    return dtype, shape


def common(a: Items, b: Items) -> Items:
    """What two kinds of tensors have in common, which may stand in one sequence."""
    if a[0] != b[0]:
        raise errors.UnsupportedError(f"{_A_LIST} holds tensors of different dtypes ({a[0].name} and {b[0].name}); convert them to the same")
    if len(a[1]) != len(b[1]):
        raise errors.UnsupportedError(f"{_A_LIST} holds tensors of different ranks ({len(a[1])} and {len(b[1])}); bring them to one rank")
    return a[0], tuple([x if x is not None and y is not None and dims.equal(x, y) else None for x, y in zip(a[1], b[1], strict=True)])


def outside(items: Items, visible: Callable[[Size], bool]) -> Items:
    """The same without sizes that mean nothing there."""
    return items[0], tuple([size if size is not None and visible(size) else None for size in items[1]])


def check_opset(g: Builder) -> None:
    """Refuses opsets in which no loop and no branch passes a sequence on."""
    if g.opset < _THROUGH_BLOCKS:
        raise errors.UnsupportedError(
            "a list of tensors of different shapes (different from turn to turn of a loop, or from branch to branch) needs opset "
            f"{_THROUGH_BLOCKS} or higher (opset_version={g.opset} was asked); or pad them to one shape, or concatenate them as they are made")


# ---------------------------------------------------------------------- made


def given(g: Builder, name: str, dtype: DataType, rank: int) -> Listed:
    """A list that is an input of the graph: of any length, its tensors of any sizes."""
    if g.opset < _FIRST:
        raise errors.UnsupportedError(f"the list {name!r} as a sequence needs opset {_FIRST} or higher (opset_version={g.opset} was asked)")
    made = g.input(name, dtype, None)
    made.sequence = True
    return Listed(Sequenced(made, (None,) * rank))


def sequenced(g: Builder, state: Any, like: Items | None = None) -> Sequenced:
    """What a list holds as a sequence. like: what an empty one would hold."""
    if isinstance(state, Sequenced):
        return state
    if isinstance(state, Stacked) and state.kind == "tensor":
        return _split(g, state)
    if not isinstance(state, tuple) or not all(isinstance(item, Value) for item in state):
        raise errors.UnsupportedError(f"{_A_LIST} holds tensors of different shapes, or what is no tensor")
    found = items_of(state) or like
    if found is None:
        raise errors.UnsupportedError("nothing is known of what a list holds")
    return Sequenced(g.op("SequenceConstruct", *state) if state else g.op("SequenceEmpty", dtype=found[0]), found[1])


def _split(g: Builder, state: Stacked) -> Sequenced:
    dtype, sizes = items_of(state) or (None, ())
    if dtype is not None and g.opset >= _FIRST and kernels.lacking("SplitToSequence", g.opset, dtype):
        raise errors.UnsupportedError(f"ONNX Runtime makes no list of different shapes out of one tensor of {dtype.name}")
    return Sequenced(g.op("SplitToSequence", state.value, axis=0, keepdims=0), sizes)


def _place(g: Builder, index: Any) -> Value:
    return g.scalar(index) if isinstance(index, (int, Dim)) else index


def inserted(g: Builder, held: Sequenced, item: Any, place: Any = None) -> Sequenced:
    """With one tensor more, at the end or at a place."""
    if not isinstance(item, Value):
        raise errors.UnsupportedError(f"a list of tensors of different shapes is given what is no tensor ({type(item).__name__})")
    (_, sizes) = common(items_of(held), _known(item.dtype, item.shape))  # type: ignore[arg-type]
    return Sequenced(g.op("SequenceInsert", held.value, item, None if place is None else _place(g, place)), sizes)


def inserted_at(g: Builder, held: Sequenced, place: Any, item: Any) -> Sequenced:
    """With one tensor more at a place; as in Python, one beyond an end is that end."""
    if place == 0:
        return inserted(g, held, item, 0)
    length = g.op("SequenceLength", held.value)
    value = g.op("Max", g.op("Min", _place(g, place), length), g.op("Neg", length))
    return inserted(g, held, item, value)


def erased(g: Builder, held: Sequenced, place: Any) -> Sequenced:
    """Without one of its tensors."""
    return Sequenced(g.op("SequenceErase", held.value, _place(g, place)), held.sizes)


def replaced(g: Builder, held: Sequenced, place: Any, item: Any) -> Sequenced:
    """With another tensor at a place; from the end counts what is not known to count from the front."""
    if not isinstance(place, int):
        place = _from_front(g, held, place)
    elif place < 0:
        place = length(g, held) + place
    return inserted(g, erased(g, held, place), item, place)


def _from_front(g: Builder, held: Sequenced, place: Any) -> Value:
    value = _place(g, place)
    return g.op("Where", g.op("Less", value, g.const(0)), g.op("Add", value, g.op("SequenceLength", held.value)), value)


def extended(g: Builder, a: Any, b: Any) -> Sequenced:
    """`xs + ys`, of which one is a sequence or their tensors differ in shape."""
    like = next((found for found in map(items_of, (a, b)) if found is not None), None)
    first = sequenced(g, a, like)
    if isinstance(b, tuple):
        return functools.reduce(lambda held, item: inserted(g, held, item), b, first)
    return _one_after_the_other(g, first, sequenced(g, b, like))


def _one_after_the_other(g: Builder, a: Sequenced, b: Sequenced) -> Sequenced:
    check_opset(g)
    dtype, sizes = common(items_of(a), items_of(b))  # type: ignore[arg-type]
    with g.subgraph() as body:
        turn, _ = g.input(None, DataType.INT64, ()), g.input(None, DataType.BOOL, ())
        so_far = g.input(None, dtype, None)
        so_far.sequence = True
        body.outputs = [g.const(True), g.op("SequenceInsert", so_far, g.op("SequenceAt", b.value, turn))]
    return Sequenced(g.op("Loop", g.op("SequenceLength", b.value), None, a.value, body=body), sizes)


# ---------------------------------------------------------------------- read


def length(g: Builder, held: Sequenced) -> Size:
    """How many tensors there are."""
    return g.integer(g.op("SequenceLength", held.value))


def item(g: Builder, held: Sequenced, index: Any) -> Value:
    """One of the tensors; ONNX counts from the end as Python does."""
    return _shaped(g, g.op("SequenceAt", held.value, _place(g, index)), held.sizes)


def together(g: Builder, held: Listed, dim: int, *, stack: bool) -> Value:
    """`torch.stack(xs, dim)` or `torch.cat(xs, dim)`."""
    state: Sequenced = held.state
    rank = len(state.sizes) + stack
    if not rank:
        raise errors.UnsupportedError("tensors without dims cannot be concatenated")
    axis = dim % rank
    sizes = (*state.sizes[:axis], None, *state.sizes[axis + (not stack):])
    return _shaped(g, g.op("ConcatFromSequence", state.value, axis=axis, new_axis=int(stack)), sizes)


def _shaped(g: Builder, value: Value, sizes: Sizes) -> Value:
    if value.shape is None:
        value.shape = tuple([g.fresh(value, axis) if size is None else size for axis, size in enumerate(sizes)])
    return value
