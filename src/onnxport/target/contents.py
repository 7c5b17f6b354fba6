"""What small integer tensors hold: `shape[1] // 2 + 1` stays a size and costs no node until a node reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxport.target import dims
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Shape, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_LIMIT = 64
_ARITHMETIC: dict[str, Callable[[Size, Size], Size | None]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Max": dims.maximum,
    "Min": dims.minimum,
    "Div": lambda a, b: dims.floordiv(a, b) if _positive(a, b) else None,  # ONNX rounds towards zero
    "Mod": lambda a, b: dims.mod(a, b) if dims.compare("!=", b, 0) else None,
}


def _positive(a: Size, b: Size) -> bool:
    return dims.bounds(a)[0] >= 0 and dims.bounds(b)[0] >= 0 and b != 0


def propagate(g: Builder, op_type: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any]) -> Value | None:
    """The int64 scalar or vector that the operator gives, where all that it reads is known as sizes; else None."""
    if op_type == "Shape":
        x = inputs[0]
        assert x is not None
        if x.shape is not None and dims.is_static(x.shape[slice(attrs.get("start", 0), attrs.get("end"))]):
            return g.sizes(x.shape[slice(attrs.get("start", 0), attrs.get("end"))])
        return None
    rule = _RULES.get(op_type)
    if rule is None:
        return None
    for value in inputs:
        if value is None or value.content is None or value.dtype != DataType.INT64 or len(value.content) > _LIMIT:
            return None
    return rule(g, inputs, attrs)  # type: ignore[arg-type]


def _value(g: Builder, content: Shape, rank: int) -> Value:
    return g.scalar(content[0]) if rank == 0 else g.sizes(content)


def _content(value: Value) -> Shape:
    assert value.content is not None
    return value.content


def _pairwise(op_type: str) -> Callable[[Builder, tuple[Value, ...], dict[str, Any]], Value | None]:
    function = _ARITHMETIC[op_type]

    def rule(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value | None:
        if len(inputs) != 2 or attrs.get("fmod"):
            return None
        a, b = inputs
        left, right = _content(a), _content(b)
        length = max(len(left), len(right)) if left and right else 0
        if len(left) not in (1, length) or len(right) not in (1, length):
            return None
        left, right = (c * length if len(c) == 1 and length != 1 else c for c in (left, right))
        result = []
        for x, y in zip(left, right, strict=True):
            size = function(x, y)
            if size is None:
                return None
            result.append(size)
        return _value(g, tuple(result), max(a.rank or 0, b.rank or 0))

    return rule


def _neg(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value:
    return _value(g, tuple(-s for s in _content(inputs[0])), inputs[0].rank or 0)


def _cast(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value | None:
    return inputs[0] if attrs["to"] == DataType.INT64 else None


def _concat(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value:
    return g.sizes([s for v in inputs for s in _content(v)])


def _gather(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value | None:
    data, index = inputs
    if index.const is None or data.rank != 1:
        return None
    picked = tuple(_content(data)[int(i)] for i in _content(index) if isinstance(i, int))
    return _value(g, picked, index.rank or 0)


def _slice(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value | None:
    if any(v.const is None for v in inputs[1:]) or inputs[0].rank != 1:
        return None
    start, end = (_content(v)[0] for v in inputs[1:3])
    step = _content(inputs[4])[0] if len(inputs) > 4 else 1
    assert isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    if step < 0:
        return None
    return g.sizes(_content(inputs[0])[start:end:step])


def _scalar(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value | None:
    return g.scalar(_content(inputs[0])[0]) if inputs[0].rank == 1 and len(_content(inputs[0])) == 1 else None


def _vector(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value | None:
    return g.sizes(_content(inputs[0])) if inputs[0].rank == 0 else None


def _reshape(g: Builder, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> Value | None:
    target, content = _content(inputs[1]), _content(inputs[0])
    if not target and len(content) == 1:
        return g.scalar(content[0])
    if len(target) == 1 and target[0] in (-1, len(content)):
        return g.sizes(content)
    return None


_RULES: dict[str, Callable[[Builder, tuple[Value, ...], dict[str, Any]], Value | None]] = {
    **{name: _pairwise(name) for name in _ARITHMETIC},
    "Neg": _neg, "Cast": _cast, "Concat": _concat, "Gather": _gather, "Slice": _slice,
    "Squeeze": _scalar, "Unsqueeze": _vector, "Reshape": _reshape,
    "Identity": lambda g, inputs, attrs: inputs[0],
}
