"""What the source code around a read does with it: whether it only checks the input, and where a number that was taken goes to."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import math
import operator
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from onnxport.aten.source import LIBRARY

# (first line, first column, last line, last column) of an expression, as the interpreter counts.
Span = tuple[int, int, int, int]
# Applied to a number or, traced, to a tensor of rank 0.
Change = Callable[[Any], Any]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Site:
    """Where a number is handed to an operator. span: the call or subscript; path: which argument, and which item of it;
    change: what the code computes of the number on the way, applied to a number or a tensor; count: of a call's arguments by position,
    None for a subscript, "operand" for arithmetic like `x * k`."""

    span: Span
    path: tuple[int | str, ...]
    change: Change
    count: int | Literal["operand"] | None = None


class Source:
    """A file, parsed: its nodes by span and each node's parent."""

    def __init__(self, tree: ast.AST):
        self.parent: dict[ast.AST, ast.AST] = {}
        self.by_span: dict[Span, list[ast.expr | ast.stmt]] = {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node
            if isinstance(node, (ast.expr, ast.stmt)):
                self.by_span.setdefault(span_of(node), []).append(node)

    def above(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """(node, its parent), upwards."""
        while node in self.parent:
            yield node, self.parent[node]
            node = self.parent[node]

    def function(self, node: ast.AST) -> ast.AST | None:
        """The innermost function around a node."""
        return next((parent for _, parent in self.above(node) if isinstance(parent, _FUNCTIONS)), None)


def span_of(node: ast.expr | ast.stmt) -> Span:
    """In characters, as `ast` counts bytes: equal for lines of ASCII, and others are not found."""
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


@functools.lru_cache(maxsize=64)
def _parsed(filename: str, lines: int) -> Source | None:
    try:
        return Source(ast.parse("".join(linecache.getlines(filename))))
    except (SyntaxError, ValueError):
        return None


def source_of(frame: types.FrameType) -> Source | None:
    """The file of a frame; None where it cannot be read."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    return _parsed(frame.f_code.co_filename, len(lines)) if lines else None


def span(frame: types.FrameType) -> Span | None:
    """Where in the source a frame is; None where the interpreter does not say (Python 3.10)."""
    try:
        line, last, column, end = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    except (AttributeError, StopIteration):
        return None
    return None if line is None or last is None or column is None or end is None else (line, column, last, end)


# ---------------------------------------------------------------------- checks


def is_check(frame: types.FrameType) -> bool:
    """Whether what is read decides only over an exception that nobody catches: `if not mask.all(): raise ...`, `assert ...`.

    Where the program goes on, it goes on in the same way whatever was read.
    """
    where, source = span(frame), source_of(frame)
    if where is None or source is None:
        return False
    statement = _tested_in(source, where)
    return statement is not None and _raises(statement) and not _caught(frame)


def _tested_in(source: Source, where: Span) -> ast.stmt | None:
    """The `if` or `assert` in whose test a span lies. (The jump of an `if` may have the span of the whole statement.)"""
    for node in source.by_span.get(where, ()):
        if isinstance(node, (ast.If, ast.Assert)):
            return node
        for child, parent in source.above(node):
            if isinstance(parent, (ast.If, ast.Assert)):
                return parent if child is parent.test else None
            if isinstance(parent, (ast.stmt, *_FUNCTIONS, ast.NamedExpr)):
                return None
    return None


def _raises(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        return True
    return isinstance(statement, ast.If) and any(_only_raises(body) for body in (statement.body, statement.orelse))


def _only_raises(body: list[ast.stmt]) -> bool:
    """Whether a branch ends in an exception, and on no way before it."""
    leaves = (ast.Return, ast.Break, ast.Continue)
    return bool(body) and isinstance(body[-1], ast.Raise) and not any(isinstance(node, leaves) for part in body for node in ast.walk(part))


def _caught(frame: types.FrameType | None) -> bool:
    """Whether the user's code (not PyTorch's, which passes exceptions on) may catch what is raised in a frame."""
    first = frame
    while frame is not None:
        if frame is first or not frame.f_code.co_filename.startswith(LIBRARY):
            where, source = span(frame), source_of(frame)
            if where is not None and source is not None and any(_catches(source, node) for node in source.by_span.get(where, ())):
                return True
        elif frame.f_globals.get("__name__") == __name__.rpartition(".")[0] + ".trace":
            return False  # from here on it is the exporter that runs
        frame = frame.f_back
    return False


def _catches(source: Source, node: ast.AST) -> bool:
    for child, parent in source.above(node):
        if isinstance(parent, ast.Try) and parent.handlers and child in parent.body:
            return True
        if isinstance(parent, (ast.With, ast.AsyncWith)) and any("suppress" in ast.dump(item.context_expr) for item in parent.items):
            return True
        if isinstance(parent, _FUNCTIONS):
            return False
    return False


# ---------------------------------------------------------------------- texts


def is_key(frame: types.FrameType) -> bool:
    """Whether something is looked up by the text that a frame makes, or read back: `table[f"{n}"]`, `getattr(self, f"layer{n}")`, `int(f"{n}")`."""
    where, source = span(frame), source_of(frame)
    if where is None or source is None:
        return False
    for node in source.by_span.get(where, ()):
        for child, parent in source.above(node):
            if isinstance(parent, ast.Call) and child is not parent.func and ast.unparse(parent.func) != "str":
                return ast.unparse(parent.func).rpartition(".")[2] in ("get", "getattr", "__getitem__", "pop", "int", "float", "eval")
            if isinstance(parent, ast.Compare) or (isinstance(parent, ast.Subscript) and child is parent.slice):
                return True
            if not isinstance(parent, (ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Call)):
                break
    return False


# ---------------------------------------------------------------------- numbers


def sites(frame: types.FrameType) -> list[Site] | None:
    """All places that the number which the frame takes at this moment can go to; None where it may go elsewhere too."""
    where, source = span(frame), source_of(frame)
    if where is None or source is None:
        return None
    for node in source.by_span.get(where, ()):
        if isinstance(node, ast.Call):
            change = _taking(node, frame)
            return None if change is None else _uses(source, node, frame, change)
    return None


def _taking(call: ast.Call, frame: types.FrameType) -> Change | None:
    """What a call that reads a number out of a tensor makes of it."""
    if call.keywords:
        return None
    if isinstance(call.func, ast.Attribute) and not call.args:
        return _same if call.func.attr == "item" else None
    if len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    return _FUNCTIONS_OF_ONE.get(_function_name(call.func, frame))


def _function_name(function: ast.expr, frame: types.FrameType) -> str:
    """`int` or `math.sqrt`, where the name means what it says."""
    if isinstance(function, ast.Name):
        return "" if function.id in frame.f_locals or function.id in frame.f_globals else function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"math.{function.attr}" if frame.f_globals.get(function.value.id) is math else ""
    return ""


def _of_both(number: Callable[[Any], Any], tensor: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    return lambda taken: tensor(taken) if isinstance(taken, torch.Tensor) else number(taken)


def _same(number: Any) -> Any:
    return number


def _double(taken: torch.Tensor) -> torch.Tensor:
    """Python computes in double precision."""
    return taken if taken.dtype.is_floating_point else taken.double()


def _whole(taken: torch.Tensor) -> torch.Tensor:
    return taken.to(torch.int64)


# What Python computes of one number.
_FUNCTIONS_OF_ONE: dict[str, Change] = {
    "len": _same,
    "int": _of_both(int, _whole),
    "float": _of_both(float, _double),
    "math.sqrt": _of_both(math.sqrt, lambda taken: torch.sqrt(_double(taken))),
    "math.log": _of_both(math.log, lambda taken: torch.log(_double(taken))),
    "math.log2": _of_both(math.log2, lambda taken: torch.log2(_double(taken))),
    "math.log10": _of_both(math.log10, lambda taken: torch.log10(_double(taken))),
    "math.exp": _of_both(math.exp, lambda taken: torch.exp(_double(taken))),
    "round": _of_both(round, lambda taken: _whole(torch.round(taken))),
    "math.floor": _of_both(math.floor, lambda taken: _whole(torch.floor(taken))),
    "math.ceil": _of_both(math.ceil, lambda taken: _whole(torch.ceil(taken))),
}


def _uses(source: Source, node: ast.AST, frame: types.FrameType, change: Change) -> list[Site] | None:
    path: tuple[int | str, ...] = ()
    for child, parent in source.above(node):
        computed = None if path else _computed(child, parent, frame)
        if computed is not None:
            change = _then(change, computed)
        elif isinstance(parent, ast.Assign) and not path:
            return _named(source, parent, frame, change)
        elif isinstance(parent, ast.Slice):
            path = (next(name for name in ("lower", "upper", "step") if getattr(parent, name) is child), *path)
        elif isinstance(parent, ast.Subscript) and child is parent.slice and isinstance(parent.ctx, ast.Load):
            return [Site(span_of(parent), path, change)]
        elif isinstance(parent, (ast.Tuple, ast.List)) and not any(isinstance(item, ast.Starred) for item in parent.elts):
            path = (next(i for i, item in enumerate(parent.elts) if item is child), *path)
        elif isinstance(parent, ast.Call):
            key = _argument(child, parent)
            return None if key is None else [Site(span_of(parent), (key, *path), change, len(parent.args))]
        elif isinstance(parent, ast.BinOp) and not path and isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            return [Site(span_of(parent), (), change, "operand")]
        elif isinstance(parent, ast.keyword):
            continue
        else:
            return None
    return None


def _argument(child: ast.AST, call: ast.Call) -> int | str | None:
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    for position, argument in enumerate(call.args):
        if argument is child:
            return position
    return next((keyword.arg for keyword in call.keywords if keyword is child), None)


def _named(source: Source, assign: ast.Assign, frame: types.FrameType, change: Change) -> list[Site] | None:
    """The places of a local name that is assigned once."""
    function, target = source.function(assign), assign.targets[0]
    if function is None or len(assign.targets) != 1 or not isinstance(target, ast.Name) or target.id in frame.f_code.co_cellvars:
        return None
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == target.id]
    if frame.f_code.co_name != getattr(function, "name", "") or target.id not in frame.f_code.co_varnames[frame.f_code.co_argcount:]:
        return None
    if sum(not isinstance(name.ctx, ast.Load) for name in names) != 1:
        return None
    found: list[Site] = []
    for name in names:
        if isinstance(name.ctx, ast.Load):
            uses = _uses(source, name, frame, change)
            if uses is None:
                return None
            found += uses
    return found


def _then(first: Change, second: Change) -> Change:
    return second if first is _same else lambda number: second(first(number))


# What Python computes of a number and a constant, the constant on the right and on the left.
_RIGHT: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod}
_LEFT: dict[type[ast.operator], Callable[[Any, Any], Any]] = {kind: _RIGHT[kind] for kind in (ast.Add, ast.Sub, ast.Mult)}


def _computed(child: ast.AST, parent: ast.AST, frame: types.FrameType) -> Change | None:
    """What an expression computes of its one part that is not a constant; None for expressions that are not followed."""
    if isinstance(parent, ast.BinOp):
        left = child is parent.left
        function = (_RIGHT if left else _LEFT).get(type(parent.op))
        constant = _number(parent.right if left else parent.left)
        if function is None or constant is None:
            return None
        return lambda taken: function(_exact(taken, constant, parent.op), constant) if left else function(constant, _exact(taken, constant))
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub):
        return operator.neg
    if not isinstance(parent, ast.Call) or child not in parent.args or parent.keywords:
        return None
    name = _function_name(parent.func, frame)
    if len(parent.args) == 1:
        return _FUNCTIONS_OF_ONE.get(name) if name != "len" else None
    return _bounded(name, [_number(argument) for argument in parent.args if argument is not child])


def _exact(taken: Any, constant: float, kind: ast.operator | None = None) -> Any:
    """A tensor of whole numbers in double precision, where Python's arithmetic leaves the whole numbers."""
    leaves = isinstance(constant, float) or isinstance(kind, ast.Div)
    return _double(taken) if leaves and isinstance(taken, torch.Tensor) else taken


def _number(node: ast.expr) -> int | float | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) in (int, float) else None  # type: ignore[return-value]


def _bounded(name: str, others: list[int | float | None]) -> Change | None:
    """`max(k, 1)` and `min(k, 5)`."""
    if name not in ("max", "min") or len(others) != 1 or type(others[0]) is not int:
        return None
    bound = others[0]
    if name == "max":
        return _of_both(lambda taken: max(taken, bound), lambda taken: torch.clamp(taken, min=bound))
    return _of_both(lambda taken: min(taken, bound), lambda taken: torch.clamp(taken, max=bound))
