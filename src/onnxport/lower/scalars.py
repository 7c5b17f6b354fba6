"""Arithmetic on Python numbers and sizes that a capture recorded as ATen operators on `int`, `float` and `bool`.

Python's floats have 64 bits, and so have those that the graph computes; what a tensor operator is given of them is narrowed there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxport.aten.graph import Node
from onnxport.aten.graph import Value as Captured
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim
from onnxport.target.dtypes import is_float
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

_BINARY: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "aten::add": (operator.add, "Add"), "aten::sub": (operator.sub, "Sub"), "aten::mul": (operator.mul, "Mul"),
    "aten::floordiv": (operator.floordiv, "floordiv"), "aten::remainder": (operator.mod, "remainder"), "aten::div": (operator.truediv, "div"),
    "aten::pow": (operator.pow, "pow"), "prim::max": (max, "Max"), "prim::min": (min, "Min"),
    "aten::__and__": (operator.and_, "And"), "aten::__or__": (operator.or_, "Or"),
}
_COMPARISONS = {"aten::eq": "==", "aten::ne": "!=", "aten::lt": "<", "aten::le": "<=", "aten::gt": ">", "aten::ge": ">="}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "aten::neg": operator.neg, "aten::sqrt": math.sqrt, "aten::ceil": math.ceil, "aten::floor": math.floor, "aten::log": math.log,
    "aten::__not__": operator.not_, "prim::abs": abs,
}
_OF_SIZES: dict[str, Callable[..., Any]] = {
    "prim::max": dims.maximum, "prim::min": dims.minimum, "aten::neg": operator.neg, "prim::abs": lambda x: dims.maximum(x, -x),
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
            return _on_tensors(low.g, node, [x])
        if isinstance(x, Dim):
            return _OF_SIZES[node.op](x) if node.op in _OF_SIZES else _on_tensors(low.g, node, [x])
        return _UNARY[node.op](x)
    a, b = values[:2]
    if isinstance(a, Value) or isinstance(b, Value):
        return _on_tensors(low.g, node, [a, b])
    if node.op in _COMPARISONS:
        return _compare(low, node, _COMPARISONS[node.op], a, b)
    sizes = isinstance(a, Dim) or isinstance(b, Dim)
    if sizes and (node.op in ("aten::div", "aten::pow") or isinstance(a, float) or isinstance(b, float)):
        if node.op == "aten::pow" and isinstance(b, int) and 0 <= b <= 4:
            return dims.product([a] * b)
        return _on_tensors(low.g, node, [a, b])
    function = _BINARY[node.op][0]
    return (_OF_SIZES.get(node.op, function) if sizes else function)(a, b)


def equal(g: Builder, a: Any, b: Any) -> Any:
    """Whether two numbers are the same: True, False or a bool value."""
    if isinstance(a, (int, Dim)) and isinstance(b, (int, Dim)):
        known = dims.compare("==", a, b)
        if known is not None:
            return known
    elif not isinstance(a, (Dim, Value)) and not isinstance(b, (Dim, Value)):
        return a == b
    values = [v if isinstance(v, Value) else g.scalar(v) if isinstance(v, Dim) else g.const(v, _dtype(v)) for v in (a, b)]
    return g.op("Equal", *[wide(g, v) if any(is_float(x.dtype) for x in values) else v for v in values])


def wide(g: Builder, value: Any) -> Value:
    """A number as the 64-bit float that it is in Python."""
    value = g.scalar(value) if isinstance(value, Dim) else value if isinstance(value, Value) else g.const(value, DataType.DOUBLE)
    return value if value.dtype == DataType.DOUBLE else g.op("Cast", value, to=DataType.DOUBLE)


def narrowed(low: Lowering, node: Node, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a tensor operator: floats do not widen a tensor, as in PyTorch."""
    numbers = [name for name, arg in node.args.items() if isinstance(arg, Captured) and arg.kind in ("float", "number") and _is_wide(args[name])]
    lists = [name for name, arg in args.items() if type(arg) is list and any(_is_wide(x) and x.rank == 0 for x in arg)
             and node.schema is not None and _takes_floats(node, name)]
    if not numbers and not lists:
        return args
    if numbers and any(_is_wide(arg) for name, arg in args.items() if name not in numbers):
        return args
    changed: dict[str, Any] = {name: low.g.op("Cast", args[name], to=DataType.FLOAT) for name in numbers}
    for name in lists:
        changed[name] = [low.g.op("Cast", x, to=DataType.FLOAT) if _is_wide(x) else x for x in args[name]]
    return {**args, **changed}


def _takes_floats(node: Node, name: str) -> bool:
    assert node.schema is not None
    return any(p.name == name and "float" in p.type for p in node.schema.parameters)


def _is_wide(value: Any) -> bool:
    return isinstance(value, Value) and value.dtype == DataType.DOUBLE


def _compare(low: Lowering, node: Node, fn: str, a: Any, b: Any) -> Any:
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return _BUILTIN[fn](a, b)
    if isinstance(a, (int, Dim)) and isinstance(b, (int, Dim)):
        known = dims.compare(fn, a, b)
        if known is not None:
            return known
        made = _on_tensors(low.g, node, [a, b])
        low.compared[made] = fn, a, b
        return made
    return _on_tensors(low.g, node, [a, b])


def _on_tensors(g: Builder, node: Node, values: list[Any]) -> Any:
    """The same as an operator on scalars of the graph."""
    from onnxport.ops import registry

    name, kind = node.op, node.outputs[0].kind
    operator_name = {"aten::floordiv": "aten::floor_divide", "prim::max": "aten::maximum", "prim::min": "aten::minimum", "prim::abs": "aten::abs",
                     "aten::__not__": "aten::logical_not", "aten::__and__": "aten::logical_and",
                     "aten::__or__": "aten::logical_or"}.get(name, name)
    found = registry.find(operator_name, "Tensor") or registry.find(operator_name, "")
    assert found is not None
    tensors = [v if isinstance(v, Value) else g.scalar(v) if isinstance(v, Dim) else g.const(v, _dtype(v)) for v in values]
    if kind == "float" or any(is_float(t.dtype) for t in tensors):
        tensors = [wide(g, t) for t in tensors]
    result = found.function(g, *tensors)
    if kind == "int" and isinstance(result, Value) and is_float(result.dtype):  # math.floor, math.ceil
        return g.integer(g.op("Cast", result, to=DataType.INT64))
    if isinstance(result, Value) and result.dtype == DataType.INT64 and result.content is not None and result.rank == 0:
        return result.content[0]
    return result


def _dtype(value: Any) -> DataType:
    return DataType.BOOL if isinstance(value, bool) else DataType.INT64 if isinstance(value, int) else DataType.DOUBLE
