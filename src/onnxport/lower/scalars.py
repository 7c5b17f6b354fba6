"""Arithmetic on Python numbers and sizes that a capture recorded as ATen operators on `int`, `float` and `bool`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxport.aten.graph import Node
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

_BINARY: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "aten::add": (operator.add, "Add"), "aten::sub": (operator.sub, "Sub"), "aten::mul": (operator.mul, "Mul"),
    "aten::floordiv": (operator.floordiv, "floordiv"), "aten::remainder": (operator.mod, "remainder"), "aten::div": (operator.truediv, "div"),
    "aten::pow": (operator.pow, "pow"), "prim::max": (dims.maximum, "Max"), "prim::min": (dims.minimum, "Min"),
    "aten::__and__": (operator.and_, "And"), "aten::__or__": (operator.or_, "Or"),
}
_COMPARISONS = {"aten::eq": "==", "aten::ne": "!=", "aten::lt": "<", "aten::le": "<=", "aten::gt": ">", "aten::ge": ">="}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "aten::neg": operator.neg, "aten::sqrt": math.sqrt, "aten::ceil": math.ceil, "aten::floor": math.floor, "aten::log": math.log,
    "aten::__not__": operator.not_,
}
_BUILTIN = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
NAMES = frozenset(_BINARY) | frozenset(_COMPARISONS) | frozenset(_UNARY)


def handles(node: Node) -> bool:
    """Whether the node computes with numbers and not with tensors: its first output is a number."""
    return node.op in NAMES and bool(node.outputs) and node.outputs[0].kind in ("int", "float", "bool", "number")


def lower(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """The number, size, or scalar tensor that the node gives."""
    values = [v for v in args.values() if v is not None]
    if node.op in _UNARY:
        (x,) = values[:1]
        if isinstance(x, Value):
            return _on_tensors(low.g, node.op, [x])
        if isinstance(x, Dim):
            return -x if node.op == "aten::neg" else _on_tensors(low.g, node.op, [x])
        return _UNARY[node.op](x)
    a, b = values[:2]
    if isinstance(a, Value) or isinstance(b, Value):
        return _on_tensors(low.g, node.op, [a, b])
    if node.op in _COMPARISONS:
        return _compare(low.g, _COMPARISONS[node.op], a, b)
    sizes = isinstance(a, Dim) or isinstance(b, Dim)
    if sizes and (node.op in ("aten::div", "aten::pow") or isinstance(a, float) or isinstance(b, float)):
        if node.op == "aten::pow" and isinstance(b, int) and 0 <= b <= 4:
            return dims.product([a] * b)
        return _on_tensors(low.g, node.op, [a, b])
    return _BINARY[node.op][0](a, b)


def _compare(g: Builder, fn: str, a: Any, b: Any) -> Any:
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return _BUILTIN[fn](a, b)
    if isinstance(a, (int, Dim)) and isinstance(b, (int, Dim)):
        known = dims.compare(fn, a, b)
        if known is not None:
            return known
    return _on_tensors(g, next(k for k, v in _COMPARISONS.items() if v == fn), [a, b])


def _on_tensors(g: Builder, name: str, values: list[Any]) -> Any:
    """The same as an operator on scalars of the graph (Python floats are float32 there, as PyTorch's default is)."""
    from onnxport.ops import registry

    operator_name = {"aten::floordiv": "aten::floor_divide", "prim::max": "aten::maximum", "prim::min": "aten::minimum",
                     "aten::__not__": "aten::logical_not", "aten::__and__": "aten::logical_and",
                     "aten::__or__": "aten::logical_or"}.get(name, name)
    found = registry.find(operator_name, "Tensor") or registry.find(operator_name, "")
    assert found is not None
    tensors = [v if isinstance(v, Value) else g.scalar(v) if isinstance(v, Dim) else g.const(v, _dtype(v)) for v in values]
    result = found.function(g, *tensors)
    if isinstance(result, Value) and result.dtype == DataType.INT64 and result.content is not None and result.rank == 0:
        return result.content[0]
    return result


def _dtype(value: Any) -> DataType:
    return DataType.BOOL if isinstance(value, bool) else DataType.INT64 if isinstance(value, int) else DataType.FLOAT
