"""What the source code around a read does with it: whether it only checks the input, and where a number that was taken goes to."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import linecache
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch

from onnxport.aten.source import LIBRARY

# (first line, first column, last line, last column) of an expression, as the interpreter counts.
Span = tuple[int, int, int, int]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Site:
    """Where a number is handed to an operator. span: the call or subscript; path: which argument, and which item of it;
    change: what the code computes of the number on the way, applied to a number or a tensor; count: of a call's arguments by position,
    None for a subscript, "operand" for arithmetic like `x * k`."""

    span: Span
    path: tuple[int | str, ...]
    change: Callable[[Any], Any]
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
    return isinstance(statement, ast.If) and any(body and isinstance(body[-1], ast.Raise) for body in (statement.body, statement.orelse))


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


# ---------------------------------------------------------------------- numbers


def sites(frame: types.FrameType) -> list[Site] | None:
    """All places that the number which the frame takes at this moment can go to; None where it may go elsewhere too."""
    where, source = span(frame), source_of(frame)
    if where is None or source is None:
        return None
    for node in source.by_span.get(where, ()):
        if isinstance(node, ast.Call):
            return _uses(source, node, frame, _same)
    return None


def _same(number: Any) -> Any:
    return number


def _uses(source: Source, node: ast.AST, frame: types.FrameType, change: Callable[[Any], Any]) -> list[Site] | None:
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


def _named(source: Source, assign: ast.Assign, frame: types.FrameType, change: Callable[[Any], Any]) -> list[Site] | None:
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


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return second if first is _same else lambda number: second(first(number))


def _computed(child: ast.AST, parent: ast.AST, frame: types.FrameType) -> Callable[[Any], Any] | None:
    """What an expression computes of its one part that is not a constant; None for expressions that are not followed."""
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult)):
        other = parent.right if child is parent.left else parent.left
        if not isinstance(other, ast.Constant) or type(other.value) not in (int, float):
            return None
        number, sign = cast(float, other.value), 1 if child is parent.left or not isinstance(parent.op, ast.Sub) else -1
        if isinstance(parent.op, ast.Mult):
            return lambda taken: taken * number
        shift = -number if isinstance(parent.op, ast.Sub) and child is parent.left else number
        return lambda taken: taken * sign + shift if sign < 0 else taken + shift
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub):
        return lambda taken: -taken
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and child in parent.args and not parent.keywords:
        return _called(child, parent, frame)
    return None


def _called(child: ast.AST, call: ast.Call, frame: types.FrameType) -> Callable[[Any], Any] | None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name in frame.f_locals or name in frame.f_globals or name not in ("int", "max", "min") or not hasattr(builtins, name):
        return None
    if name == "int":
        return _same if len(call.args) == 1 else None
    others = [argument for argument in call.args if argument is not child]
    if len(others) != 1 or not isinstance(others[0], ast.Constant) or type(others[0].value) is not int:
        return None
    bound = others[0].value
    if name == "max":
        return lambda taken: torch.clamp(taken, min=bound) if isinstance(taken, torch.Tensor) else max(taken, bound)
    return lambda taken: torch.clamp(taken, max=bound) if isinstance(taken, torch.Tensor) else min(taken, bound)
