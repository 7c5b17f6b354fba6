"""Functions of a `custom_translation_table`: those that onnxscript compiled, and plain ones that call its operators."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from onnxport import errors
from onnxport.aten.graph import Node
from onnxport.symbolics import calling
from onnxport.symbolics.handles import ONNX, Handle, Writer
from onnxport.target.builder import Builder
from onnxport.target.value import Block, DataType, Value

Function = Callable[..., Any]


def translate(g: Builder, node: Node, args: dict[str, Any], functions: Sequence[Function]) -> list[Value | None] | None:
    """The results of an operator by the first of the functions that takes its arguments; None where they say that they cannot convert it."""
    writer = Writer(g)
    named = {name: writer.argument(arg) for name, arg in args.items()}
    refusals: list[errors.SymbolicFunctionError] = []
    for function in functions:
        try:
            positional, keywords = calling.given(node, function, named, args)
            _check_types(node, function, positional, keywords)
        except errors.SymbolicFunctionError as error:
            refusals.append(error)
            continue
        with _evaluated_by(Evaluator(writer)):
            result = calling.call(node, function, g.opset, positional, keywords)
        if result is not None:
            return [_result(writer, node, function, item) for item in calling.several(node, function, result)]
    if len(refusals) < len(functions):
        return None
    raise refusals[0] if len(refusals) == 1 else errors.SymbolicFunctionError("\n".join(map(str, refusals)))


def _result(writer: Writer, node: Node, function: Function, item: Any) -> Value | None:
    if item is None or isinstance(item, (Handle, bool, int, float, ir.TensorProtocol)):
        return writer.value(item)
    raise calling.wrong_result(node, function, item, "a tensor")


def _check_types(node: Node, function: Function, positional: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Holds the element types against those that a function's annotations allow, where it has any."""
    signature = getattr(function, "op_signature", None)
    if signature is None:
        return
    for parameter, arg in [*zip(signature.params, positional), *((signature.params_map[name], arg) for name, arg in keywords.items())]:
        allowed = getattr(getattr(parameter, "type_constraint", None), "allowed_types", ())
        if isinstance(arg, Handle) and arg.type is not None and allowed and arg.type not in allowed:
            raise errors.SymbolicFunctionError(f"the symbolic function {calling.name_of(function)} for {calling.described(node)} takes no "
                                               f"{arg.type} as {parameter.name!r}: its annotation allows {', '.join(sorted(map(str, allowed)))}")


@contextlib.contextmanager
def _evaluated_by(evaluator: Evaluator) -> Iterator[None]:
    """While this lasts, calls of onnxscript's operators and functions come to us. Where nobody imported onnxscript there are none."""
    if sys.modules.get("onnxscript") is None:
        yield
        return
    with importlib.import_module("onnxscript.evaluator").default_as(evaluator):
        yield


class Evaluator:
    """What onnxscript calls for each operator and each function of its own."""

    def __init__(self, writer: Writer):
        self.writer = writer

    def eval_op(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """One operator."""
        schema, attrs, inputs = op.op_schema, dict(kwargs), list(args)
        for position, parameter in enumerate(schema.inputs if schema is not None else ()):
            if parameter.name in attrs:
                inputs += [None] * (position + 1 - len(inputs))
                inputs[position] = attrs.pop(parameter.name)
        opset = schema.since_version if schema is not None and op.opset.domain in ONNX else op.opset.version
        return self.writer.handles(op.opset.domain, op.name, inputs, attrs, _outputs(schema, inputs, attrs), opset)

    def eval_function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A function of onnxscript's: what it is made of, in its place."""
        if getattr(function, "traceable", False):
            return function.function(*args, **kwargs)
        bound = inspect.signature(function.function).bind(*args, **kwargs).arguments
        body = function.function_ir
        inputs = [self.writer.value(bound.get(value.name)) for value in body.inputs]
        attrs = {name: bound[name] for name in body.attributes if name in bound}
        made = tuple(None if value is None else Handle(self.writer, value) for value in _Body(self.writer, body, attrs).run(inputs))
        return made[0] if len(made) == 1 else made


def _outputs(schema: Any, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> int:
    """How many outputs a call of an operator has: as many as the schema, but for those whose inputs decide it."""
    if schema is None:
        return 1
    if schema.name == "Split":
        sizes = inputs[1] if len(inputs) > 1 else attrs.get("split")
        known = sizes.shape[0] if isinstance(sizes, Handle) and sizes.shape is not None else None if sizes is None else len(sizes)
        number = attrs.get("num_outputs") if known is None else known
        if not isinstance(number, int):
            raise errors.SymbolicValueError("the number of outputs of Split is not known: give num_outputs, or sizes whose number is known")
        return number
    if schema.name == "BatchNormalization" and not attrs.get("training_mode"):
        return 1
    return len(schema.outputs)


class _Body:
    """The nodes of a compiled function, written in the place of a call. attributes: what the call gives."""

    def __init__(self, writer: Writer, function: Any, attributes: Mapping[str, Any]):
        self.writer, self.function = writer, function
        self.attributes = {**{name: attribute.value for name, attribute in function.attributes.items()}, **attributes}
        self.env: dict[ir.Value, Value | None] = {}

    def run(self, inputs: Sequence[Value | None]) -> list[Value | None]:
        """The outputs for these inputs."""
        self.env.update(zip(self.function.inputs, inputs))
        self.nodes(self.function)
        return [self.env[value] for value in self.function.outputs]

    def nodes(self, nodes: Iterable[ir.Node]) -> None:
        """Writes nodes in order."""
        for node in nodes:
            self.env.update(zip(node.outputs, self.node(node)))

    def node(self, node: ir.Node) -> list[Value | None]:
        """The outputs of one node; a call of another function is taken apart too."""
        inputs = [None if value is None else self.env[value] for value in node.inputs]
        attrs = {name: self.attribute(node, attribute, inputs) for name, attribute in node.attributes.items()}
        called: Any = node.meta.get("callee")
        if hasattr(called, "function") and hasattr(called, "function_ir"):
            return _Body(self.writer, called.function_ir, attrs).run(inputs)
        opset = node.version or self.function.opset_imports.get(node.domain, 1)
        return [*self.writer.write(node.domain, node.op_type, inputs, attrs, len(node.outputs), opset)]

    def attribute(self, node: ir.Node, attribute: ir.Attr, inputs: Sequence[Value | None]) -> Any:
        """What an attribute holds; one that names an attribute of the function, what the call gave for it."""
        if attribute.is_ref():
            return self.attributes.get(attribute.ref_attr_name or "")
        return self.block(attribute.value, _fed(node, inputs)) if isinstance(attribute.value, ir.Graph) else attribute.value

    def block(self, graph: ir.Graph, fed: Sequence[Value | None]) -> Block:
        """A branch or a body. fed: what is of the same types as its inputs."""
        g = self.writer.builder
        with g.subgraph() as made:
            for value, like in zip(graph.inputs, fed):
                if like is None or like.dtype is None:
                    raise errors.UnsupportedError(f"the type of {value.name!r} in the subgraph {graph.name!r} is not known")
                self.env[value] = inner = g.input(None, like.dtype, None)
                inner.shape = None if like.shape is None else tuple(g.fresh(inner, axis) for axis in range(len(like.shape)))
            self.nodes(graph)
            made.outputs = [out for value in graph.outputs if (out := self.env[value]) is not None]
        return made


def _fed(node: ir.Node, inputs: Sequence[Value | None]) -> Sequence[Value | None]:
    """What the subgraphs of a node are given, by type."""
    if node.op_type == "Loop":
        return [Value(DataType.INT64, ()), Value(DataType.BOOL, ()), *inputs[2:]]
    if node.op_type != "Scan":
        return []
    scanned = node.attributes["num_scan_inputs"].as_int()
    return [v if v is None or v.shape is None or i < len(inputs) - scanned else Value(v.dtype, v.shape[1:]) for i, v in enumerate(inputs)]


