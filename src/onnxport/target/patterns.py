"""What models write with small operators and ONNX Runtime runs faster as one, recognised where its last part is made.

Each rule gives a value that equals what the operator at hand would give, or None. The parts that nobody else uses are left out of the
file. What it is worth stands in docs/architecture.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxport.target import dims
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder


def _made_by(x: Value | None, op_type: str) -> list[Value | None]:
    """The operands of the operator that makes `x`, if it is of this type; else nothing."""
    return list(x.node.inputs) if x is not None and x.node is not None and x.node.op_type == op_type and not x.node.domain else []


def _first(x: Value | None, op_type: str) -> Value | None:
    return next(iter(_made_by(x, op_type)), None)


def _number(x: Value | None) -> float | None:
    """The one number that a constant holds."""
    if x is None or x.const is None or x.const.is_lazy or x.const.tensor.numel() != 1:
        return None
    return float(x.const.tensor.reshape(()).item())


# ---------------------------------------------------------------------- norms by root mean square


def product(g: Builder, a: Value, b: Value) -> Value | None:
    """For Mul: a norm by root mean square, or the part of it before the weight."""
    for x, other in ((a, b), (b, a)):
        found = _over_root(g, x, other) or _weighted(g, x, other)
        if found is not None:
            return found
    return None


def _over_root(g: Builder, x: Value, factor: Value) -> Value | None:
    """x / sqrt(mean(x^2) + eps) for x times the reciprocal, as such norms are mostly written: ONNX Runtime fuses only the former."""
    root = _first(factor, "Reciprocal")
    if _mean_square(_first(root, "Sqrt")) is not x:
        return None
    total = _first(root, "Sqrt")
    mean = _first(total, "Add")
    if total is None or total.node is None or mean is None or mean.node is None:
        return None
    if _made_by(_first(mean, "ReduceMean"), "Mul"):
        mean = g.op("ReduceMean", g.op("Pow", x, g.const(2.0, x.dtype)), *mean.node.inputs[1:], **mean.node.attrs)
        root = g.op("Sqrt", g.op("Add", mean, total.node.inputs[1]))
    return g.op("Div", x, root)


def _mean_square(total: Value | None) -> Value | None:
    """x for mean(x^2) + a number."""
    square = _first(_first(total, "Add"), "ReduceMean")
    power, product = _made_by(square, "Pow"), _made_by(square, "Mul")
    if power and _number(power[1]) == 2:
        return power[0]
    return product[0] if product and product[0] is product[1] else None


def _weighted(g: Builder, weight: Value, normed: Value) -> Value | None:
    """RMSNormalization over the last axis, where the opset has it."""
    x, root = _made_by(normed, "Div") or (None, None)
    total = _first(root, "Sqrt")
    if g.opset < 23 or x is None or x.dtype != DataType.FLOAT or not x.shape or _mean_square(total) is not x:
        return None
    (mean, added), size = _made_by(total, "Add"), x.shape[-1]
    eps, axes = _number(added), _made_by(mean, "ReduceMean")[1:]
    if eps is None or mean is None or mean.node is None or not mean.node.attrs.get("keepdims", 1):
        return None
    last = bool(axes) and axes[0] is not None and axes[0].content in ((-1,), (len(x.shape) - 1,))
    if not last or weight.const is None or weight.dtype != x.dtype or weight.shape != (size,):
        return None
    return g.op("RMSNormalization", x, weight, axis=-1, epsilon=eps)


# ---------------------------------------------------------------------- rotary positions


def total(g: Builder, a: Value, b: Value) -> Value | None:
    """For Add: RotaryEmbedding by halves, where the opset has it."""
    if g.opset < 23 or a.dtype not in (DataType.FLOAT, DataType.FLOAT16) or a.shape is None or len(a.shape) != 4:
        return None
    return _rotary(g, _made_by(a, "Mul"), _made_by(b, "Mul")) or _rotary(g, _made_by(b, "Mul"), _made_by(a, "Mul"))


def _rotary(g: Builder, straight: list[Value | None], turned: list[Value | None]) -> Value | None:
    """x cos + turned(x) sin, where the halves of cos are the same, and those of sin."""
    for x, cos in (straight, straight[::-1]) if straight else ():
        for half_turned, sin in (turned, turned[::-1]) if turned else ():
            if x is not None and half_turned is not None and _is_turned(half_turned, x):
                tables = [_table(g, table, x) for table in (cos, sin)]
                return None if None in tables else g.op("RotaryEmbedding", x, *tables)
    return None


def _is_turned(y: Value, x: Value) -> bool:
    """Whether `y` is the halves (-second, first) of `x` along the last of its four axes."""
    parts = _made_by(y, "Concat")
    if len(parts) != 2 or y.node is None or y.node.attrs["axis"] not in (3, -1) or x.shape is None or len(x.shape) != 4:
        return False
    return _is_half(_first(parts[0], "Neg"), x, 1) and _is_half(parts[1], x, 0)


def _is_half(part: Value | None, x: Value, index: int) -> bool:
    assert x.shape is not None
    size = x.shape[3]
    if part is None or part.node is None or part.node.inputs[0] is not x or part.shape is None or not isinstance(size, int) or size % 2:
        return False
    if part.node.op_type == "Split":
        return part.node.attrs.get("axis", 0) in (3, -1) and part.index == index and part.shape[3] == size // 2 and len(part.node.outputs) == 2
    if part.node.op_type != "Slice" or any(v is None or v.content is None for v in part.node.inputs[1:]):
        return False
    starts, _, axes, *steps = (v.content for v in part.node.inputs[1:] if v is not None)
    return starts == (index * size // 2,) and axes in ((3,), (-1,)) and steps in ([], [(1,)]) and part.shape[3] == size // 2


def _table(g: Builder, table: Value | None, x: Value) -> Value | None:
    """(batch, length, size / 2) of a cos or sin that broadcasts to `x` and whose halves are the same."""
    half = None if table is None else _half(g, table)
    if half is None or half.shape is None or x.shape is None or half.dtype != x.dtype or len(half.shape) > 4:
        return None
    batch, _, length, size = x.shape
    sizes = [1] * (4 - len(half.shape)) + list(half.shape)
    fits = sizes[1] == 1 and (sizes[0] == 1 or dims.equal(sizes[0], batch)) and dims.equal(sizes[2], length)
    if not fits or not isinstance(size, int) or sizes[3] != size // 2:
        return None
    if len(half.shape) == 4:
        half = g.op("Squeeze", half, g.const([1]))
    elif len(half.shape) == 2:
        half = g.op("Unsqueeze", half, g.const([0]))
    return half if dims.equal(sizes[0], batch) else g.op("Expand", half, g.sizes([batch, length, sizes[3]]))


def _half(g: Builder, x: Value) -> Value | None:
    """The first half of `x` along its last axis, where the second is surely the same: it was put together so."""
    if x.node is None or x.node.domain or x.shape is None:
        return None
    op_type, operands, attrs = x.node.op_type, x.node.inputs, x.node.attrs
    if op_type == "Concat":
        return operands[0] if len(operands) == 2 and operands[0] is operands[1] and attrs["axis"] in (-1, len(x.shape) - 1) else None
    scaled = op_type == "Mul" and _number(operands[1]) is not None
    added = op_type == "Unsqueeze" and operands[1] is not None and not {-1, len(x.shape) - 1} & set(operands[1].content or (-1,))
    if operands[0] is None or not (scaled or added or op_type in ("Cos", "Sin", "Cast")):
        return None
    half = _half(g, operands[0])
    return None if half is None else g.op(op_type, half, *operands[1:], **attrs)
