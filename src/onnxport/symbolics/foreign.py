"""Operators that somebody else translates: registered symbolic functions, `autograd.Function.symbolic`, and nodes that stay as they are."""

from __future__ import annotations

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
from onnxport.symbolics import calling, symbolic_operator
from onnxport.symbolics.context import ATEN_DOMAIN, GraphContext
from onnxport.symbolics.registry import Snapshot
from onnxport.symbolics.table import Table
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim
from onnxport.target.dtypes import from_torch, to_torch
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

_SEQUENCES_FROM = 11
Handler = Callable[["Lowering", Node, dict[str, Any]], Any]


class Foreign:
    """What one export does with operators that its own library leaves alone, or that the user wants otherwise.

    functions: the registered symbolic functions.   table: (operator, overload) -> functions of a `custom_translation_table`, which go before
    them; the overload None is all of them.   keep: "no", "domain" (an unknown operator becomes a node of its own domain),
    "aten" (an unknown ATen operator becomes an ATen node), "all aten".
    """

    def __init__(self, functions: Snapshot | None, table: Table, opset: int, keep: str = "no"):
        self.functions, self.table, self.opset, self.keep = functions or Snapshot(), table, opset, keep

    def is_registered(self, node: Node) -> bool:
        """Whether a symbolic function is given for this very name (`add_`, and not for `add`)."""
        return bool(self._in_table(node)) or self.functions.find(node.op, node.overload, self.opset) is not None

    def takes_functions(self) -> bool:
        """Whether a symbolic function is registered for every `autograd.Function`."""
        return self.functions.find(calling.PYTHON, "", self.opset) is not None

    def find(self, node: Node) -> Handler | None:
        """What goes before the built-in translation."""
        scripted = self._in_table(node)
        if scripted:
            return lambda low, node, args: self._by_table(low, node, args, scripted)
        found = self.functions.find(node.op, node.overload, self.opset)
        if found is not None:
            return lambda low, node, args: self._registered(low, node, args, *found)
        if node.op == calling.PYTHON and "function" in node.args:
            return _python_op
        if node.op.startswith(symbolic_operator.NAMESPACE):
            return symbolic_operator.lower
        return _replace_by_aten if self.keep == "all aten" and _is_aten(node) and not _is_python(node) else None

    def fallback(self, node: Node) -> Handler | None:
        """What goes where there is no built-in translation."""
        if self.keep == "domain" and node.op != calling.PYTHON:
            return _keep_node
        return _keep_aten if self.keep in ("aten", "all aten") and _is_aten(node) else None

    def since(self, node: Node) -> int | None:
        """The lowest opset above that of the export for which a symbolic function is registered."""
        return self.functions.since(node.op, node.overload, self.opset)

    def _in_table(self, node: Node) -> tuple[Callable[..., Any], ...]:
        return self.table.get((node.op, node.overload)) or self.table.get((node.op, None), ())

    def _by_table(self, low: Lowering, node: Node, args: dict[str, Any], functions: Sequence[Callable[..., Any]]) -> Any:
        from onnxport.symbolics import scripted

        made = scripted.translate(low.g, node, args, functions)
        if made is not None:
            return _finished(low.g, node, args, made)
        return self._instead(low, node, args, functions[-1])

    def _instead(self, low: Lowering, node: Node, args: dict[str, Any], function: Callable[..., Any]) -> Any:
        """What goes where a function said that it cannot convert an operator."""
        kept = self.fallback(node)
        if kept is None:
            raise calling.cannot(node, function)
        return kept(low, node, args)

    def _registered(self, low: Lowering, node: Node, args: dict[str, Any], since: int, function: Callable[..., Any]) -> Any:
        namespace = node.op.partition("::")[0]
        g = GraphContext(low.g, form=since, namespace=namespace, call=_caller(low, node))
        if node.op == calling.PYTHON:
            return _any_python_op(g, low, node, args, function)
        named = {name: g.value(_spelled(arg)) for name, arg in args.items()}
        positional, keywords = calling.arguments(node, function, named, args)
        result = _call(g, node, function, positional, keywords)
        return self._instead(low, node, args, function) if result is None else _results(g, node, args, function, result)


def _is_aten(node: Node) -> bool:
    return node.op.startswith("aten::") and node.schema is not None


def _is_python(node: Node) -> bool:
    """Whether a node moves Python's own data about: sizes, conversions, lists."""
    return node.op in structural.HANDLERS or f"{node.op}.{node.overload}" in structural.HANDLERS or scalars.handles(node)


def _spelled(arg: Any) -> Any:
    """A dtype as the number that symbolic functions know it by."""
    return NUMBERS[arg] if isinstance(arg, torch.dtype) else arg


def _call(g: GraphContext, node: Node, function: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]) -> Any:
    g.original_node = _original(g, node, positional or list(keywords.values()))
    first: list[Any] = [g]
    if calling.wants_context(function):
        from onnxport.symbolics.old_context import SymbolicContext

        first = [SymbolicContext(g.params_dict, g.env, g.original_node, g.graph.block()), g]
    names = ["g", *(keywords or calling.argument_names(node))]
    return calling.call(node, function, g.builder.opset, [*first, *positional], keywords, names)


def _original(g: GraphContext, node: Node, values: list[Any]) -> Any:
    """A node like the one that is translated; it stands in no graph."""
    made = g.graph.create(node.op, [v for v in values if jit.is_value(v)], len(node.outputs))
    for scratch, captured in zip(made.outputs(), node.outputs, strict=True):
        if captured.kind == "tensor":
            scratch.setType(jit.tensor_type(captured.dtype, None if captured.shape is None else list(captured.shape)))
    return made


def _results(g: GraphContext, node: Node, args: dict[str, Any], function: Callable[..., Any], result: Any) -> Any:
    """What the function returned, as the builder's values; as many as the operator has outputs."""
    made: list[Any] = []
    for item in calling.several(node, function, result):
        if item is not None and not jit.is_value(item):
            raise calling.wrong_result(node, function, item, "a torch._C.Value")
        made.append(None if item is None else g.result(item))
    return _finished(g.builder, node, args, made)


def _finished(g: Builder, node: Node, args: dict[str, Any], made: list[Any]) -> Any:
    """The results with what is known of their types; one, or as many as the operator has outputs."""
    if calling.is_list(node):
        return made
    _typed(g, node, args, made)
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
