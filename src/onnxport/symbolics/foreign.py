"""Operators that somebody else translates: registered symbolic functions, `autograd.Function.symbolic`, and nodes that stay as they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from onnxport import errors
from onnxport.aten.graph import Node, Schema
from onnxport.aten.scalar_types import NUMBERS, SCALAR_TYPES
from onnxport.capture import schema as schemas
from onnxport.capture import scratch as jit
from onnxport.capture import torch_private
from onnxport.lower import scalars, structural
from onnxport.ops.registry import NEUTRAL
from onnxport.symbolics.context import ATEN_DOMAIN, GraphContext
from onnxport.symbolics.registry import Snapshot
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim
from onnxport.target.dtypes import from_torch, to_torch
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

_PYTHON = "prim::PythonOp"
_SEQUENCES_FROM = 11
Handler = Callable[["Lowering", Node, dict[str, Any]], Any]


class Foreign:
    """What one export does with operators that its own library leaves alone, or that the user wants otherwise.

    functions: the registered symbolic functions.   keep: "no", "domain" (an unknown operator becomes a node of its own domain),
    "aten" (an unknown ATen operator becomes an ATen node), "all aten".
    """

    def __init__(self, functions: Snapshot | None, opset: int, keep: str = "no"):
        self.functions, self.opset, self.keep = functions or Snapshot(), opset, keep

    def is_registered(self, node: Node) -> bool:
        """Whether a symbolic function is registered for this very name (`add_`, and not for `add`)."""
        return self.functions.find(node.op, node.overload, self.opset) is not None

    def takes_functions(self) -> bool:
        """Whether a symbolic function is registered for every `autograd.Function`."""
        return self.functions.find(_PYTHON, "", self.opset) is not None

    def find(self, node: Node) -> Handler | None:
        """What goes before the built-in translation."""
        found = self.functions.find(node.op, node.overload, self.opset)
        if found is not None:
            return lambda low, node, args: self._registered(low, node, args, *found)
        if node.op == _PYTHON and "function" in node.args:
            return _python_op
        return _replace_by_aten if self.keep == "all aten" and _is_aten(node) and not _is_python(node) else None

    def fallback(self, node: Node) -> Handler | None:
        """What goes where there is no built-in translation."""
        if self.keep == "domain" and node.op != _PYTHON:
            return _keep_node
        return _keep_aten if self.keep in ("aten", "all aten") and _is_aten(node) else None

    def since(self, node: Node) -> int | None:
        """The lowest opset above that of the export for which a symbolic function is registered."""
        return self.functions.since(node.op, node.overload, self.opset)

    def _registered(self, low: Lowering, node: Node, args: dict[str, Any], since: int, function: Callable[..., Any]) -> Any:
        namespace = node.op.partition("::")[0]
        g = GraphContext(low.g, form=since, namespace=namespace, call=_caller(low, node))
        if node.op == _PYTHON:
            return _any_python_op(g, low, node, args, function)
        named = {name: g.value(_spelled(arg)) for name, arg in args.items()}
        positional, keywords = _arguments(node, function, named, args)
        result = _call(g, node, function, positional, keywords)
        kept = self.fallback(node) if result is None else None
        return _results(g, node, args, function, result) if kept is None else kept(low, node, args)


def _is_aten(node: Node) -> bool:
    return node.op.startswith("aten::") and node.schema is not None


def _is_python(node: Node) -> bool:
    """Whether a node moves Python's own data about: sizes, conversions, lists."""
    return node.op in structural.HANDLERS or f"{node.op}.{node.overload}" in structural.HANDLERS or scalars.handles(node)


def _spelled(arg: Any) -> Any:
    """A dtype as the number that symbolic functions know it by."""
    return NUMBERS[arg] if isinstance(arg, torch.dtype) else arg


# ---------------------------------------------------------------------- calls


def _arguments(node: Node, function: Callable[..., Any], named: dict[str, Any], args: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """How the operator's arguments are passed: in order, or by name where the function has the names in another order.

    A function may leave out arguments at the end that have their default value.
    """
    takes = _parameters(function)
    if takes is None:
        return list(named.values()), {}
    names = list(named)
    if [p for p, _ in takes] != names[: len(takes)] and {p for p, has_default in takes if not has_default} <= set(names):
        known = {p: named[p] for p, _ in takes if p in named}
        if _may_leave_out(node, args, [n for n in names if n not in known]):
            return [], known
    if len(takes) >= len(names) or _may_leave_out(node, args, names[len(takes):]):
        return list(named.values())[: len(takes)], {}
    raise _signature(node, function, names)


def _may_leave_out(node: Node, args: dict[str, Any], names: Sequence[str]) -> bool:
    defaults = node.schema.defaults() if node.schema is not None else {}
    return all(n in NEUTRAL or (n in defaults and not isinstance(args[n], Value) and defaults[n] == args[n]) for n in names)


def _parameters(function: Callable[..., Any]) -> list[tuple[str, bool]] | None:
    """(name, has a default) of what a function takes behind `g`; None where it takes whatever comes."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return None
    skipped = 2 if _wants_context(function) else 1
    found = [(p.name, p.default is not p.empty) for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return found[skipped:]


def _wants_context(function: Callable[..., Any]) -> bool:
    """Whether a function is of the kind that takes a `SymbolicContext` before the graph."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    return first is not None and (first.annotation == "SymbolicContext" or getattr(first.annotation, "__name__", "") == "SymbolicContext")


def _call(g: GraphContext, node: Node, function: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]) -> Any:
    g.original_node = _original(g, node, positional or list(keywords.values()))
    first: list[Any] = [g]
    if _wants_context(function):
        from onnxport.symbolics.old_context import SymbolicContext

        first = [SymbolicContext(g.params_dict, g.env, g.original_node, g.graph.block()), g]
    try:
        inspect.signature(function).bind(*first, *positional, **keywords)
    except TypeError as cause:
        raise _signature(node, function, list(keywords) or _argument_names(node), str(cause)) from cause
    except ValueError:  # it has no signature
        pass
    with torch_private.exporting(), jit.exporting_opset(g.builder.opset):
        try:
            return function(*first, *positional, **keywords)
        except (errors.OnnxExporterError, RecursionError, MemoryError):
            raise
        except Exception as cause:  # whatever its author wrote
            raise errors.UnsupportedError(
                f"the symbolic function {_name(function)} for {_op(node)} failed ({type(cause).__name__}: {cause})") from cause


def _original(g: GraphContext, node: Node, values: list[Any]) -> Any:
    """A node like the one that is translated; it stands in no graph."""
    made = g.graph.create(node.op, [v for v in values if jit.is_value(v)], len(node.outputs))
    for scratch, captured in zip(made.outputs(), node.outputs, strict=True):
        if captured.kind == "tensor":
            scratch.setType(jit.tensor_type(captured.dtype, None if captured.shape is None else list(captured.shape)))
    return made


def _argument_names(node: Node) -> list[str]:
    """What a symbolic function is given, as the operator (of an `autograd.Function`: its forward) calls it."""
    if node.op != _PYTHON:
        return list(node.args)
    function = node.args["function"]
    names = list(inspect.signature(function.forward).parameters)
    return names[function.setup_context is torch.autograd.Function.setup_context:][: len(node.args["convention"])]


def _signature(node: Node, function: Callable[..., Any], names: list[str], why: str = "") -> errors.SymbolicFunctionError:
    try:
        takes = str(inspect.signature(function))
    except (TypeError, ValueError):  # pragma: no cover - a builtin
        takes = "(?)"
    return errors.SymbolicFunctionError(
        f"the symbolic function {_name(function)}{takes} for {_op(node)} cannot be called with (g, {', '.join(names)}){': ' + why if why else ''}")


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


def _op(node: Node) -> str:
    return str(node.args["function"].__qualname__) if node.op == _PYTHON else node.op


def _results(g: GraphContext, node: Node, args: dict[str, Any], function: Callable[..., Any], result: Any) -> Any:
    """What the function returned, as the builder's values; as many as the operator has outputs."""
    if result is None:
        raise errors.UnsupportedOperatorError(f"Couldn't export operator {_op(node)}: the symbolic function {_name(function)} returned None, "
                                              "which says that it cannot convert it")
    several = list(result) if isinstance(result, (list, tuple)) else [result]
    listed = len(node.outputs) == 1 and node.outputs[0].kind == "list"
    if len(several) != len(node.outputs) and not listed:
        raise errors.SymbolicFunctionError(
            f"the symbolic function {_name(function)} returned {len(several)} values for {_op(node)}, which has {len(node.outputs)} outputs")
    made = []
    for item in several:
        if item is not None and not jit.is_value(item):
            raise errors.SymbolicFunctionError(f"the symbolic function {_name(function)} for {_op(node)} returned a {type(item).__name__}, "
                                               "not a torch._C.Value, a list of them, or None")
        made.append(None if item is None else g.result(item))
    if listed:
        return made
    _typed(g.builder, node, args, made)
    return made[0] if len(made) == 1 else made


def _typed(g: Builder, node: Node, args: dict[str, Any], values: list[Any]) -> None:
    """Results of which nobody has said dtype and shape yet: as PyTorch computed them where nothing is dynamic, else as the operator's fake
    implementation says."""
    open_ = [v for v in values if isinstance(v, Value) and (v.shape is None or v.dtype is None)]
    if not open_:
        return
    if not g.hints and all(o.shape is not None and None not in o.shape for o in node.outputs):
        for value, captured in zip(values, node.outputs, strict=True):
            if isinstance(value, Value) and value.shape is None:
                value.shape = captured.shape
        return
    for value, (dtype, shape) in zip(values, _faked(g, node, args, len(values)), strict=False):
        if isinstance(value, Value):
            value.dtype = value.dtype or from_torch(dtype)
            if value.shape is None:
                value.shape = tuple([g.fresh(value, axis) if size is None else size for axis, size in enumerate(shape)])


def _faked(g: Builder, node: Node, args: dict[str, Any], count: int | None) -> list[tuple[torch.dtype, list[Any]]]:
    """dtype and sizes of each result by the operator's fake implementation; nothing where it cannot tell."""
    sizes: dict[str, Any] = {}

    def like(arg: Any) -> Any:
        if isinstance(arg, list):
            return [like(a) for a in arg]
        if not isinstance(arg, Value):
            return jit.LikeSize(named(arg)) if isinstance(arg, Dim) else arg
        if arg.dtype is None or arg.shape is None:
            raise _WrongTypeError
        return jit.Like(to_torch(arg.dtype), tuple([size if isinstance(size, int) else named(size) for size in arg.shape]))

    def named(size: Any) -> tuple[str, int]:
        name = next((known for known, other in sizes.items() if other == size), f"size{len(sizes)}")
        sizes[name] = size
        number = dims.evaluate(size, g.hints)
        return name, 7 if number is None else number

    if node.op.startswith("prim::"):
        return []
    try:
        found = jit.faked(node.op, node.overload, {name: like(arg) for name, arg in args.items()})
    except _WrongTypeError:
        return []
    if found is None or (count is not None and len(found) != count):
        return []
    return [(dtype, [sizes[size] if isinstance(size, str) else size for size in shape]) for dtype, shape in found]


def _python_inputs(node: Node, args: dict[str, Any]) -> list[Any]:
    """The arguments of an `autograd.Function` in the order of its forward."""
    rest = {"d": iter(args["tensors"]), "n": iter(args.get("sizes", ())), "c": iter(args["scalars"])}
    return [next(rest[kind]) for kind in node.args["convention"]]


def _any_python_op(g: GraphContext, low: Lowering, node: Node, args: dict[str, Any], function: Callable[..., Any]) -> Any:
    """An `autograd.Function`, by what is registered for all of them; where that gives None, as if nothing were registered."""
    given = [g.value(a) if isinstance(a, (Value, Dim)) else a for a in _python_inputs(node, args)]
    result = _call(g, node, function, given, {"name": node.args["function"].__name__})
    if result is not None:
        return _results(g, node, args, function, result)
    body = node.args["body"]
    if body is None:
        return _python_op(low, node, args)
    low.env.update(zip(body.inputs, args["tensors"], strict=True))
    low.block(body.block)
    results = [low.resolve(output) for output in body.outputs]
    return results[0] if len(results) == 1 else results


def _python_op(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """An `autograd.Function` that brings its own symbolic function."""
    function = node.args["function"]
    symbolic = function.symbolic
    g = GraphContext(low.g, namespace="", call=_caller(low, node))
    given = [g.value(a) if isinstance(a, (Value, Dim)) else a for a in _python_inputs(node, args)]
    return _results(g, node, args, symbolic, _call(g, node, symbolic, given, {}))


def _caller(low: Lowering, outer: Node) -> Callable[..., Any]:
    """Calls onnxport's own function for an ATen operator, whatever is registered for it."""

    def call(name: str, positional: list[Any], keywords: dict[str, Any]) -> Any:
        schema, bound = _bind(low.g, name, positional, keywords)
        node = Node(schema.name, schema.overload, bound, [], scope=outer.scope, source=outer.source, schema=schema)
        return low.builtin(node, bound)

    return call


def _bind(g: Builder, name: str, positional: list[Any], keywords: dict[str, Any]) -> tuple[Schema, dict[str, Any]]:
    overloads = [schemas.convert(found) for found in torch_private.schemas_of(name)]
    for schema, lenient in [*((s, False) for s in overloads), *((s, True) for s in overloads)]:
        names = [p.name for p in schema.parameters]
        if len(positional) > len(names) or not set(keywords) <= set(names[len(positional):]):
            continue
        given = {**dict(zip(names, positional)), **keywords}
        if not all(p.name in given or p.has_default for p in schema.parameters):
            continue
        try:
            return schema, {p.name: _as(g, p.type, given.get(p.name, p.default), lenient) for p in schema.parameters}
        except _WrongTypeError:
            continue
    named = f" and {', '.join(keywords)}" if keywords else ""
    raise errors.SymbolicFunctionError(f"{name} has no overload that takes {len(positional)} arguments{named} of these kinds")


class _WrongTypeError(Exception):
    """An argument is of another type than an overload wants."""


def _as(g: Builder, kind: str, arg: Any, lenient: bool) -> Any:
    """An argument as a parameter of this type takes it. lenient: numbers are tensors too."""
    if arg is None:
        if kind.startswith("Optional"):
            return None
        raise _WrongTypeError
    inner = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional") else kind
    if inner == "Tensor":
        if isinstance(arg, torch.Tensor) or (lenient and isinstance(arg, (int, float))):
            return g.const(arg)
        if not isinstance(arg, Value):
            raise _WrongTypeError
        return arg
    if isinstance(arg, torch.Tensor):
        arg = arg.tolist()
    if inner.startswith("List"):
        if isinstance(arg, Value):
            if arg.content is None:
                raise _WrongTypeError
            return list(arg.content)
        return [_as(g, "Tensor", a, lenient) for a in arg] if "Tensor" in inner and isinstance(arg, list) else arg if isinstance(arg, list) else [arg]
    if isinstance(arg, Value) or (isinstance(arg, str) != (inner in ("str", "Device"))):
        raise _WrongTypeError
    if inner == "bool":
        return bool(arg)
    return SCALAR_TYPES[arg] if "ScalarType" in inner and isinstance(arg, int) else arg


# ---------------------------------------------------------------------- nodes that stay


def _keep_node(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """An operator as a node of its own domain: tensors are inputs, the rest are attributes, but for numbers that are computed."""
    namespace, _, name = node.op.partition("::")
    inputs = _Inputs(node)
    attrs: dict[str, Any] = {}
    for key, arg in args.items():
        arg = _spelled(arg)
        if isinstance(arg, Value) or inputs.wants(key, arg):
            inputs.add(key, arg)
        elif isinstance(arg, Dim):
            inputs.add(key, low.g.scalar(arg))
        elif isinstance(arg, list) and any(isinstance(a, Dim) for a in arg):
            inputs.add(key, low.g.sizes(arg))
        elif arg is not None:
            attrs[key] = arg
    if node.overload:
        attrs["overload_name"] = node.overload
    if not inputs.plain():
        attrs["input_names"] = inputs.names
    return _kept(low, node, args, name, ATEN_DOMAIN if namespace == "aten" else namespace, inputs.values, attrs)


class _Inputs:
    """The inputs of a node that stays, each with the argument that it belongs to."""

    def __init__(self, node: Node):
        self.kinds = {p.name: p.type for p in node.schema.parameters} if node.schema is not None else {}
        self.values: list[Value | None] = []
        self.names: list[str] = []

    def wants(self, key: str, arg: Any) -> bool:
        """Whether something that is no single tensor goes to the inputs: a list of tensors, a tensor that is left out."""
        if isinstance(arg, list):
            return "Tensor" in self.kinds.get(key, "") or any(isinstance(a, Value) for a in arg)
        return arg is None and "Tensor" in self.kinds.get(key, "")

    def add(self, key: str, arg: Any) -> None:
        """One argument: an input, or one for each member."""
        several = arg if isinstance(arg, list) else [arg]
        self.values += several
        self.names += [key] * len(several)

    def plain(self) -> bool:
        """Whether the schema alone tells which input is whose: the tensors in order, with one list at most."""
        tensors = [name for name, kind in self.kinds.items() if "Tensor" in kind]
        lists = [name for name in tensors if "List" in self.kinds[name]]
        return set(self.names) <= set(tensors) and (not lists or (len(lists) == 1 and None not in self.values))


def _replace_by_aten(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """An ATen node in the place of onnxport's own translation, which tells the types. What only computes sizes stays as it is."""
    given = [a for arg in args.values() for a in (arg if isinstance(arg, (list, tuple)) else [arg])]
    only_sizes = not any(isinstance(a, Value) and (a.content is None or a.node is not None) for a in given)
    if not low.translates(node):
        return _keep_aten(low, node, args)
    if only_sizes:
        return low.builtin(node, args)
    held = len(low.held)
    try:
        like = low.builtin(node, args)
    except (errors.UnsupportedError, errors.UnsupportedOperatorError):
        like = None
    del low.held[held:]
    return _keep_aten(low, node, args, like)


def _keep_aten(low: Lowering, node: Node, args: dict[str, Any], like: Any = None) -> Any:
    """An ATen operator as an ATen node: each argument is an input, strings are attributes. like: what has the same types."""
    inputs = _Inputs(node)
    attrs: dict[str, Any] = {"operator": node.op.partition("::")[2], "overload_name": node.overload}
    for key, arg in args.items():
        if isinstance(arg, str):
            attrs[key] = arg
        elif isinstance(arg, list) and _apart(low.g, arg):
            inputs.add(key, arg)
            attrs["input_names"] = inputs.names
        else:
            inputs.add(key, _input(low.g, _spelled(arg)))
    return _kept(low, node, args, "ATen", ATEN_DOMAIN, inputs.values, attrs, like)


def _apart(g: Builder, arg: list[Any]) -> bool:
    """Tensors that no ONNX sequence can hold together: some are left out, they are of several types, or the opset has no sequences."""
    kinds = {a.dtype if isinstance(a, Value) else a for a in arg}
    return any(isinstance(a, Value) for a in arg) and (len(kinds) > 1 or g.opset < _SEQUENCES_FROM)


def _input(g: Builder, arg: Any) -> Value | None:
    if arg is None or isinstance(arg, Value):
        return arg
    if isinstance(arg, Dim):
        return g.scalar(arg)
    if isinstance(arg, (list, tuple)):
        if any(isinstance(a, Value) for a in arg):
            return g.op("SequenceConstruct", *arg)
        return g.sizes(list(arg)) if all(isinstance(a, (int, Dim)) and not isinstance(a, bool) for a in arg) else g.const(list(arg))
    return g.const(arg, DataType.DOUBLE if isinstance(arg, float) else None)


def _kept(low: Lowering, node: Node, args: dict[str, Any], op_type: str, domain: str, inputs: list[Value | None], attrs: dict[str, Any],
          like: Any = None) -> Any:
    """The node that stays. An operator that gives a list has an output for each member, where their number is known."""
    listed = len(node.outputs) == 1 and node.outputs[0].kind == "list"
    if listed and like is None:
        like = [Value(from_torch(dtype), tuple(shape)) for dtype, shape in _sized(low.g, node, args)]
    known = list(like) if isinstance(like, (list, tuple)) else [] if like is None else [like]
    made = low.g.several(op_type, *inputs, outputs=max(len(known), 1) if listed else len(node.outputs), domain=domain, **attrs)
    if known and all(isinstance(k, Value) for k in known) and len(known) >= len(made):
        for value, same in zip(made, known):
            value.dtype, value.shape = same.dtype, same.shape
    else:
        _typed(low.g, node, args, made)
    return made[0] if len(made) == 1 and not (listed and known) else made


def _sized(g: Builder, node: Node, args: dict[str, Any]) -> list[tuple[torch.dtype, Any]]:
    """The members of a list that an operator gives, where their number does not change."""
    found = _faked(g, node, args, None)
    return [(dtype, shape) for dtype, shape in found if None not in shape] if all(None not in shape for _, shape in found) else []
