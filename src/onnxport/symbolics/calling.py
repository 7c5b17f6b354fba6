"""How somebody else's function is called for an operator, and what is said where that goes wrong."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Node
from onnxport.capture import scratch as jit
from onnxport.capture import torch_private
from onnxport.ops.registry import NEUTRAL
from onnxport.target.value import Value

PYTHON = "prim::PythonOp"
Function = Callable[..., Any]
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


# ---------------------------------------------------------------------- arguments


def arguments(node: Node, function: Function, named: dict[str, Any], args: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """How a symbolic function is given the operator's arguments: in order, or by name where it has the names in another order.

    A function may leave out arguments at the end that have their default value.
    """
    takes = _parameters(function, behind=2 if wants_context(function) else 1)
    if takes is None:
        return list(named.values()), {}
    names = list(named)
    if list(takes) != names[: len(takes)] and _all_known(takes, names):
        known = {p: named[p] for p in takes if p in named}
        if _may_leave_out(node, args, [n for n in names if n not in known]):
            return [], known
    if len(takes) >= len(names) or _may_leave_out(node, args, names[len(takes):]):
        return list(named.values())[: len(takes)], {}
    raise _wrong_signature(node, function, ["g", *names])


def given(node: Node, function: Function, named: dict[str, Any], args: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """As `arguments`, for a function that takes no graph and has defaults of its own, which go before those of the operator."""
    takes = _parameters(function, keyword_only=True)
    if takes is None:
        return list(named.values()), {}
    names = list(named)
    sources = {p: p for p in takes if p in named} if _all_known(takes, names) else dict(zip(takes, names))
    left = [n for n in names if n not in sources.values()]
    if not all(p in sources or has_default for p, has_default in takes.items()) or not _may_leave_out(node, args, left):
        raise _wrong_signature(node, function, names)
    passed = {p: named[source] for p, source in sources.items() if not takes[p] or not _is_default(node, args, source)}
    return [passed.pop(p) for p in list(passed)[:1]], passed  # the first by position: `self` by name would be that of onnxscript's own object


def _all_known(takes: dict[str, bool], names: Sequence[str]) -> bool:
    return {p for p, has_default in takes.items() if not has_default} <= set(names)


def _may_leave_out(node: Node, args: dict[str, Any], names: Sequence[str]) -> bool:
    return all(n in NEUTRAL or _is_default(node, args, n) for n in names)


def _is_default(node: Node, args: dict[str, Any], name: str) -> bool:
    defaults = node.schema.defaults() if node.schema is not None else {}
    return name in defaults and not isinstance(args[name], Value) and bool(defaults[name] == args[name])


def _parameters(function: Function, behind: int = 0, keyword_only: bool = False) -> dict[str, bool] | None:
    """What a function takes behind the first ones -> whether it has a default; None where it takes whatever comes."""
    try:
        taken = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind == p.VAR_POSITIONAL for p in taken):
        return None
    kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, *([inspect.Parameter.KEYWORD_ONLY] if keyword_only else [])}
    return dict([(p.name, p.default is not p.empty) for p in taken if p.kind in kinds][behind:])


def wants_context(function: Function) -> bool:
    """Whether a function is of the kind that takes a `SymbolicContext` before the graph."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    return first is not None and (first.annotation == "SymbolicContext" or getattr(first.annotation, "__name__", "") == "SymbolicContext")


# ---------------------------------------------------------------------- the call


def call(node: Node, function: Function, opset: int, positional: list[Any], keywords: dict[str, Any], names: Sequence[str] = ()) -> Any:
    """What a function gives. An error of its own becomes one of ours; all of them tell the function's line.

    names: how the arguments are called in the error for a wrong signature, where `keywords` do not tell.
    """
    try:
        inspect.signature(function).bind(*positional, **keywords)
    except TypeError as cause:
        raise _wrong_signature(node, function, names or list(keywords), str(cause)) from cause
    except ValueError:  # it has no signature
        pass
    with torch_private.exporting(), jit.exporting_opset(opset):
        try:
            return function(*positional, **keywords)
        except (RecursionError, MemoryError):
            raise
        except errors.OnnxExporterError as error:
            if not getattr(error, "written", False):
                error.args = (f"{error}{_written(function, error)}", *error.args[1:])
                error.written = True  # type: ignore[attr-defined]
            raise
        except Exception as cause:  # whatever its author wrote
            raise errors.UnsupportedError(f"the symbolic function {name_of(function)} for {described(node)} failed ({type(cause).__name__}: {cause})"
                                          f"{_written(function, cause)}") from cause


def several(node: Node, function: Function, result: Any) -> list[Any]:
    """What a function returned, as a list of as many as the operator has outputs."""
    if result is None:
        raise cannot(node, function)
    found = list(result) if isinstance(result, (list, tuple)) else [result]
    if len(found) != len(node.outputs) and not is_list(node):
        raise errors.SymbolicFunctionError(f"the symbolic function {name_of(function)} returned {len(found)} values for {described(node)}, "
                                           f"which has {len(node.outputs)} outputs{_written(function)}")
    return found


def cannot(node: Node, function: Function) -> errors.UnsupportedOperatorError:
    """The error for an operator whose function gave None."""
    return errors.UnsupportedOperatorError(f"Couldn't export operator {described(node)}: the symbolic function {name_of(function)} returned None, "
                                           f"which says that it cannot convert it{_written(function)}")


def is_list(node: Node) -> bool:
    """Whether an operator gives a list."""
    return len(node.outputs) == 1 and node.outputs[0].kind == "list"


def wrong_result(node: Node, function: Function, item: Any, wanted: str) -> errors.SymbolicFunctionError:
    """The error for what cannot be an output."""
    return errors.SymbolicFunctionError(
        f"the symbolic function {name_of(function)} for {described(node)} returned a {type(item).__name__}, not {wanted}, a list of them, or None"
        f"{_written(function)}")


def argument_names(node: Node) -> list[str]:
    """What a symbolic function is given, as the operator (of an `autograd.Function`: its forward) calls it."""
    if node.op != PYTHON:
        return list(node.args)
    function = node.args["function"]
    names = list(inspect.signature(function.forward).parameters)
    return names[function.setup_context is torch.autograd.Function.setup_context:][: len(node.args["convention"])]


def _wrong_signature(node: Node, function: Function, names: Sequence[str], why: str = "") -> errors.SymbolicFunctionError:
    try:
        takes = str(inspect.signature(function))
    except (TypeError, ValueError):  # pragma: no cover - a builtin
        takes = "(?)"
    return errors.SymbolicFunctionError(f"the symbolic function {name_of(function)}{takes} for {described(node)} cannot be called with "
                                        f"({', '.join(names)}){': ' + why if why else ''}{_written(function)}")


def name_of(function: Any) -> str:
    """How a function is called."""
    return getattr(function, "__qualname__", None) or type(function).__name__


def described(node: Node) -> str:
    """The operator, or the `autograd.Function`, that is translated."""
    return str(node.args["function"].__qualname__) if node.op == PYTHON else node.op


def _written(function: Function, error: BaseException | None = None) -> str:
    """Where a function stands: the innermost line of somebody else's Python that an error went through, else its first line."""
    found, frames = "", None if error is None else error.__traceback__
    while frames is not None:
        file = frames.tb_frame.f_code.co_filename
        if not file.startswith(_OURS) and f"{os.sep}onnxscript{os.sep}" not in file:
            found = f"{file}:{frames.tb_lineno}"
        frames = frames.tb_next
    code = getattr(inspect.unwrap(function), "__code__", None)
    found = found or (f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "")
    return f"\n  written at {found}" if found else ""
