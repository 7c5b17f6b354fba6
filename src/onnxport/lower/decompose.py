"""Lowers an operator that has no function by what PyTorch itself decomposes it into.

The decomposition is traced on symbolic sizes and lowered node by node on the actual values, so that its sizes are those
of the graph. What it decided over a dynamic size must be provable, or becomes a guard of the file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from onnxport import errors
from onnxport.aten.graph import Node, replaced
from onnxport.aten.graph import Value as Captured
from onnxport.aten.source import where
from onnxport.lower.guards import Guard
from onnxport.target import dims
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import to_torch
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

_UNKNOWN = 7  # what a size is taken to be whose number in the example nobody knows


class Decompositions(Protocol):
    """Where decompositions come from (a capture: they have to be traced)."""

    Tensor: Any
    Size: Any

    def exists(self, op: str, overload: str) -> bool:
        """Whether there is one."""

    def trace(self, op: str, overload: str, args: Mapping[str, Any]) -> Any:
        """Traces one."""


class Decomposer:
    """The decompositions of one export; equal calls are traced once."""

    def __init__(self, source: Decompositions):
        self.source = source
        self._cache: dict[Any, Any] = {}
        self._running: list[str] = []

    def exists(self, node: Node) -> bool:
        """Whether a node without a function can be decomposed."""
        return self.source.exists(node.op, node.overload)

    def missing(self, node: Node, knows: Callable[[Node], bool]) -> list[str]:
        """The operators that a node would be decomposed into and that cannot be lowered, by a trace at the example's sizes."""
        if not node.op.startswith("aten::") or node.op in self._running:
            return []
        self._running.append(node.op)
        try:
            args = {name: replaced(arg, self._example) for name, arg in node.args.items()}
            found = self.source.trace(node.op, node.overload, args)
            return sorted({inner.op for inner in found.block.nodes if inner.op == node.op or not knows(inner)})
        except errors.OnnxExporterError:
            return []  # it is tried again on symbolic sizes, and says then what the matter is
        finally:
            self._running.pop()

    def _example(self, value: Captured) -> Any:
        if value.kind != "tensor" or value.dtype is None or value.shape is None or None in value.shape:
            raise errors.UnsupportedError(f"{value} is not known")
        return self.source.Tensor(value.dtype, value.shape)

    def lower(self, low: Lowering, node: Node, args: dict[str, Any]) -> Any:
        """The results of a node, from the operators that it is made of."""
        name = f"{node.op}.{node.overload or 'default'}"
        if name in self._running:
            raise errors.UnsupportedOperatorError(f"Couldn't export operator {name}: PyTorch decomposes it into itself")
        call = _Call(self.source, low)
        signature = {key: call.signed(arg) for key, arg in args.items()}
        key = (name, _frozen(signature))
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self.source.trace(node.op, node.overload, signature)
        self._running.append(name)
        try:
            self._judge(low, node, found, call.sizes)
            return self._lowered(low, node, found, call)
        finally:
            self._running.pop()

    def _lowered(self, low: Lowering, node: Node, found: Any, call: _Call) -> Any:
        for captured, value in zip(found.tensors, call.tensors, strict=True):
            low.env[captured] = value
        for number, captured in found.sizes:
            low.env[captured] = call.sizes[number]
        for inner in found.block.nodes:
            inner.scope, inner.source = node.scope, node.source
            if not low.knows(inner):
                outer = f"{node.op}.{node.overload or 'default'}"
                raise errors.UnsupportedOperatorError(
                    f"Couldn't export operator {outer}: PyTorch decomposes it, and {inner.op} in it has no translation")
            low.node(inner)
        return replaced(found.results, low.resolve)

    def _judge(self, low: Lowering, node: Node, found: Any, sizes: list[Size]) -> None:
        """Every decision on sizes: silent where it is always so, otherwise a guard of the file."""
        known = {name: sizes[number] for name, number in found.names.items()}
        for text in found.guards:
            condition = _condition(text, known)
            if condition is False:
                raise errors.ShapeError(f"the decomposition of {node.op} took a branch that its sizes exclude: {text}")
            if condition is not True:
                low.held.append(Guard(condition, where(node.source)))


class _Call:
    """The arguments of one call, as the tracer wants them."""

    def __init__(self, source: Decompositions, low: Lowering):
        self.source, self.low = source, low
        self.tensors: list[Value] = []
        self.sizes: list[Size] = []
        self._numbers: dict[Dim, int] = {}

    def signed(self, arg: Any) -> Any:
        """An argument by its type."""
        if isinstance(arg, Value):
            if arg.dtype is None or arg.shape is None:
                raise errors.UnsupportedError("a tensor of unknown rank cannot be decomposed")
            self.tensors.append(arg)
            return self.source.Tensor(to_torch(arg.dtype), tuple(self.size(s) for s in arg.shape))
        if isinstance(arg, (list, tuple)):
            return [self.signed(item) for item in arg]
        return self.size(arg) if isinstance(arg, Dim) else arg

    def size(self, size: Size) -> Any:
        """A size by its number."""
        if not isinstance(size, Dim):
            return size
        number = self._numbers.setdefault(size, len(self._numbers))
        if number == len(self.sizes):
            self.sizes.append(size)
        seen = dims.evaluate(size, self.low.g.hints)
        return self.source.Size(number, _UNKNOWN + number if seen is None else seen)


def _frozen(signature: Any) -> Any:
    if isinstance(signature, dict):
        return tuple((name, _frozen(arg)) for name, arg in signature.items())
    if isinstance(signature, (list, tuple)):
        return tuple(_frozen(item) for item in signature)
    return (type(signature), signature) if isinstance(signature, (bool, int, float)) else signature


def _condition(text: str, known: Mapping[str, Size]) -> bool | str:
    """True or False where sizes decide; else the condition in the names of the file."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _decided(tree, known)
    except (SyntaxError, ValueError):
        return text


_COMPARISONS: dict[type, str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_CALLED = {"Eq": "==", "Ne": "!=", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">="}


def _decided(tree: ast.AST, known: Mapping[str, Size]) -> bool | str:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, bool):
        return tree.value
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        return _compared(_COMPARISONS[type(tree.ops[0])], tree.left, tree.comparators[0], known)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _CALLED:
        return _compared(_CALLED[tree.func.id], tree.args[0], tree.args[1], known)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.BitAnd, ast.BitOr)):
        return _both(_decided(tree.left, known), _decided(tree.right, known), "and" if isinstance(tree.op, ast.BitAnd) else "or")
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Invert):
        inner = _decided(tree.operand, known)
        return not inner if isinstance(inner, bool) else f"not ({inner})"
    raise ValueError(ast.unparse(tree))


def _both(left: bool | str, right: bool | str, word: str) -> bool | str:
    decides = word == "or"
    if left is decides or right is decides:
        return decides
    if isinstance(left, bool):
        return right
    return left if isinstance(right, bool) else f"({left}) {word} ({right})"


def _compared(fn: str, left: ast.AST, right: ast.AST, known: Mapping[str, Size]) -> bool | str:
    a, b = (dims.substitute(dims.parse(ast.unparse(side)), known) for side in (left, right))
    answer = dims.compare(fn, a, b)
    if answer is None and fn == "==" and (_pinned(a, b) or _pinned(b, a)):
        raise errors.UnsupportedError(f"PyTorch decomposes it for the one size {a} == {b} only; make this axis static")
    return f"{a} {fn} {b}" if answer is None else answer


def _pinned(size: Size, number: Size) -> bool:
    """Whether equality would leave a dynamic size one value (`min(2, n) == 2` leaves it many)."""
    return isinstance(size, Dim) and isinstance(number, int) and all(atom.fn is None for atom in size.atoms)
