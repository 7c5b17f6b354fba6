"""Operators that compute what is there already: a cast to the same dtype, a transpose of a transpose, a reshape to the same shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxport.target import dims, patterns
from onnxport.target.dtypes import holds_all
from onnxport.target.value import Shape, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

Inputs = tuple[Value, ...]
Rule = Callable[["Builder", Inputs, dict[str, Any]], "Value | None"]


def simplify(g: Builder, op_type: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any]) -> Value | None:
    """A value that exists and equals what the operator would give, or a shorter way to it; None if there is none."""
    rule = _RULES.get(op_type)
    if rule is None:
        return None
    return rule(g, inputs, attrs)  # type: ignore[arg-type]


def same_shape(a: Shape | None, b: Shape | None) -> bool:
    """Whether both are known and surely equal."""
    return a is not None and b is not None and len(a) == len(b) and all(dims.equal(x, y) for x, y in zip(a, b, strict=True))


def _cast(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    """Also past a dtype that holds every number of the first one (float32 -> float64 -> float32). ONNX Runtime drops such pairs too, but
    loses the number where a loop in a branch reads it."""
    if inputs[0].dtype == attrs["to"]:
        return inputs[0]
    maker = inputs[0].node
    first = maker.inputs[0] if maker is not None and maker.op_type == "Cast" and not maker.domain else None
    if first is None or first.dtype is None or inputs[0].dtype is None or not holds_all(inputs[0].dtype, first.dtype):
        return None
    return g.op("Cast", first, to=attrs["to"])


def _transpose(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    perm = attrs.get("perm")
    if perm is None:
        return None
    if list(perm) == list(range(len(perm))):
        return inputs[0]
    maker = inputs[0].node
    if maker is not None and maker.op_type == "Transpose" and "perm" in maker.attrs and maker.inputs[0] is not None:
        first = maker.attrs["perm"]
        return g.op("Transpose", maker.inputs[0], perm=[first[p] for p in perm])
    return None


def _reshape(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    x, content = inputs[0], inputs[1].content
    if content is None or x.shape is None or len(content) != len(x.shape):
        return None
    unknown = 0
    for wanted, have in zip(content, x.shape, strict=True):
        if wanted == -1:
            unknown += 1
        elif not (dims.equal(wanted, have) or (wanted == 0 and not attrs.get("allowzero"))):
            return None
    return x if unknown <= 1 else None


def _squeeze(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    return inputs[0] if len(inputs) > 1 and inputs[1].content == () else None


def _expand(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    x, content = inputs[0], inputs[1].content
    if content is None or x.shape is None or len(content) > len(x.shape):
        return None
    tail = x.shape[len(x.shape) - len(content):]
    return x if all(wanted == 1 or dims.equal(wanted, have) for wanted, have in zip(content, tail, strict=True)) else None


def _expand_twice(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    """Also one number that is expanded twice."""
    x, content = inputs[0], inputs[1].content
    found = _expand(g, inputs, attrs)
    if found is not None or x.node is None or x.node.op_type != "Expand" or content is None or x.shape is None or len(content) < len(x.shape):
        return found
    first = x.node.inputs[0]
    if first is None or first.const is None or first.shape != ():
        return None
    more = len(content) - len(x.shape)
    sizes = [*content[:more], *(have if wanted == 1 else wanted for wanted, have in zip(content[more:], x.shape, strict=True))]
    from onnxport.target.sizes import expand

    return expand(g, first, sizes)


_MOVES = frozenset({"Reshape", "Unsqueeze", "Squeeze", "Transpose", "Expand"})


def _at_least(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    """Positions that are counted from 0 are not below 0: masks of whole sequences ask."""
    x, bound = inputs[0], inputs[1].content
    maker = x.node
    while maker is not None and maker.op_type in _MOVES and maker.inputs[0] is not None:
        maker = maker.inputs[0].node
    if maker is None or maker.op_type != "Range" or x.shape is None or bound is None or inputs[1].shape != ():
        return None
    start, step = (value.content if value is not None else None for value in (maker.inputs[0], maker.inputs[2]))
    if start is None or step is None or not dims.is_static((*start, *step, *bound)) or not start[0] >= bound[0] or not step[0] > 0:  # type: ignore[operator]
        return None
    from onnxport.target.sizes import expand

    return expand(g, g.const(True), x.shape)


def _slice(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    x = inputs[0]
    if len(inputs) < 4 or any(v is None or v.content is None for v in inputs[1:]) or x.shape is None:
        return None
    starts, ends, axes = (v.content or () for v in inputs[1:4])
    steps = inputs[4].content if len(inputs) > 4 else (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps or (), strict=True):
        if step != 1 or start != 0 or not isinstance(axis, int):
            return None
        if not (isinstance(end, int) and end >= 2**31 - 1) and not dims.compare(">=", end, x.shape[axis]):
            return None
    return x


def _concat(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    if len(inputs) == 1:
        return inputs[0]
    axis = attrs["axis"]
    kept = [v for v in inputs if v.shape is None or v.shape[axis] != 0]
    if kept and len(kept) < len(inputs):
        return g.op("Concat", *kept, axis=axis)
    return None


def _neutral(number: float, right_only: bool) -> Rule:
    def rule(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
        if len(inputs) != 2:
            return None
        for x, other in ((inputs[0], inputs[1]), (inputs[1], inputs[0])):
            if other.const is not None and not other.const.parameter and other.shape is not None and x.shape is not None:
                if all(s == 1 for s in other.shape) and len(other.shape) <= len(x.shape) and x.dtype == other.dtype and x.dtype is not None:
                    if not other.const.is_lazy and other.const.tensor.reshape(()).item() == number:
                        return x
            if right_only:
                return None
        return None

    return rule


def _first_of(neutral: Rule, pattern: Callable[[Builder, Value, Value], Value | None]) -> Rule:
    def rule(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
        found = neutral(g, inputs, attrs)
        return pattern(g, *inputs) if found is None and len(inputs) == 2 else found

    return rule


def _pad(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    content = inputs[1].content
    return inputs[0] if content is not None and all(p == 0 for p in content) else None


def _tile(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    content = inputs[1].content
    return inputs[0] if content is not None and all(p == 1 for p in content) else None


def _gather(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    """All elements of a vector, each once and in order: a Reshape to the shape of the index."""
    x, index = inputs
    if x.shape is None or len(x.shape) != 1 or not isinstance(x.shape[0], int) or index.const is None or index.shape is None:
        return None
    count = x.shape[0]
    if index.const.is_lazy or index.const.parameter or index.const.tensor.numel() != count or count > 4096 or attrs.get("axis", 0) not in (0, -1):
        return None
    if index.const.tensor.reshape(-1).tolist() != list(range(count)):
        return None
    from onnxport.target.sizes import reshape

    return reshape(g, x, index.shape)


def _single(g: Builder, inputs: Inputs, attrs: dict[str, Any]) -> Value | None:
    return inputs[0] if len(inputs) == 1 else None


_RULES: dict[str, Rule] = {
    "Cast": _cast, "Transpose": _transpose, "Reshape": _reshape, "Squeeze": _squeeze, "Unsqueeze": _squeeze, "Expand": _expand_twice,
    "GreaterOrEqual": _at_least,
    "Slice": _slice, "Concat": _concat, "Pad": _pad, "Gather": _gather, "Tile": _tile, "Max": _single, "Min": _single, "Sum": _single,
    "Identity": lambda g, inputs, attrs: inputs[0] if inputs[0].node is not None else None,
    "Add": _first_of(_neutral(0, False), patterns.total), "Sub": _neutral(0, True),
    "Mul": _first_of(_neutral(1, False), patterns.product), "Div": _neutral(1, True),
}
