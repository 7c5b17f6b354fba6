"""Reads a `torch._C.Graph` (from a trace or a script) into an `aten.Graph` block, each field of it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Graph, Node, Value
from onnxport.aten.passes.functionalise import functionalise
from onnxport.aten.source import where
from onnxport.capture import schema as schemas
from onnxport.capture.attributes import Attributes, Holder, changed_lists, made
from onnxport.capture.scopes import Scopes
from onnxport.module_calls import Scope

_KINDS = {
    "TensorType": "tensor", "IntType": "int", "FloatType": "float", "BoolType": "bool", "StringType": "str", "ListType": "list",
    "TupleType": "tuple", "DictType": "dict", "NoneType": "none", "OptionalType": "optional", "NumberType": "number",
    "DeviceObjType": "device", "ClassType": "object", "EnumType": "object",
}
# Python numbers reach the trace as tensors of rank 0 in these arguments; operators get the numbers back.
_NUMBER_ARGUMENTS = frozenset({"other", "value", "exponent", "end", "weight"})
_NUMBER_DTYPES = frozenset({torch.float64, torch.int64, torch.bool, torch.complex128})


_DETACH = "aten::detach(Tensor(a) self) -> Tensor(a)"
_PLAIN = frozenset({int, float, bool, str, type(None)})
_NEVER_NONE = frozenset({"tensor", "int", "float", "bool", "str", "list", "tuple", "dict"})
_TESTS = frozenset({"aten::__is__", "aten::__isnot__", "aten::__not__", "aten::__contains__", "prim::isinstance"})


# What is read of a list that nobody changes, at places that are known.
_OF_LISTS: dict[str, Callable[..., Arg]] = {
    "aten::__getitem__": lambda items, index: items[index], "aten::len": len, "aten::add": lambda a, b: [*a, *b],
    "aten::slice": lambda items, start, end, step: items[start:end:step],
}


def _readable(inputs: list[Arg]) -> bool:
    """Whether the operands of such a node are known: lists and places in them."""
    items, *places = inputs
    if len(places) == 1 and type(places[0]) is int:
        return -len(items) <= places[0] < len(items)
    return all(type(place) in (int, list, type(None)) for place in places)


class Reader:
    """Reads one graph. containers: whether lists and tuples are taken apart (a trace never mutates one).

    literals: address -> (tensor, copy of it before the program wrote into it); a trace refers to the tensor's memory.
    functions: whether each `autograd.Function` stays one node, since somebody translates them.
    touched: constants that the program may have written into while it was traced, and of which there is no such copy.
    attributes: those of the scripted module that is read.   untyped: dtypes and shapes that the graph tells of are not to be believed
    (a traced module was perhaps traced on other inputs).
    """

    def __init__(self, containers: bool = True, literals: dict[int, tuple[torch.Tensor, torch.Tensor]] | None = None,
                 attributes: Attributes | None = None, scopes: Scopes | None = None, functions: bool = False):
        self.containers = containers
        self.functions = functions
        self.attributes = attributes or Attributes()
        self.scopes = scopes
        self.here = Scope("")  # of the node before
        self.within: str | None = None  # the scope of all nodes
        self.changed_lists: frozenset[str] = frozenset()
        self.untyped = False
        self.inner = 0
        self.literals = literals or {}
        self.env: dict[int, Arg] = {}
        self.touched: set[Value] = set()
        self.repeated: list[tuple[str, str, list[Arg]]] = []  # what a trace repeats of a function that was just inlined

    def value(self, raw: Any) -> Value:
        """A new value with the type of a `torch._C.Value`, known from here on under its number."""
        kind = raw.type()
        name = _KINDS.get(kind.kind(), "object")
        if name == "tensor":
            dtype, sizes = (None, None) if self.untyped else (kind.dtype(), kind.sizes())
            value = Value("tensor", dtype, None if sizes is None else tuple(sizes), None if sizes is None else kind.strides())
            value.unknown = dtype is None or sizes is None
        else:
            value = Value(name)
        self.env[raw.unique()] = value
        return value

    def block(self, raw: Any, into: Block) -> Block:
        """Reads the nodes and outputs of a graph or block whose inputs are known already."""
        if not self.inner:
            self.changed_lists = changed_lists(raw)
        self.inner += 1
        for node in raw.nodes():
            self.node(node, into)
        into.outputs = [self.env[v.unique()] for v in raw.outputs()]
        self.inner -= 1
        return into

    def node(self, raw: Any, into: Block) -> None:
        """Reads one node; constants and containers leave no node behind."""
        kind, env = raw.kind(), self.env
        if kind == "prim::Constant":
            output = raw.output()
            data = _constant(output)
            env[output.unique()] = data if type(data) in _PLAIN else self.constant(data)
            return
        if self.repeated and self.is_repeated(raw, kind):
            return
        inputs = [env[raw.inputsAt(i).unique()] for i in range(raw.inputsSize())]
        if kind in _TESTS:
            known = self.known(raw, kind, inputs)
            if known is not None:
                env[raw.output().unique()] = known
                return
        if kind in _OF_LISTS and type(inputs[0]) is list and _readable(inputs):
            env[raw.output().unique()] = _OF_LISTS[kind](*inputs)
            return
        if kind[:10] == "profiler::":  # marks of torch.profiler.record_function
            env.update((output.unique(), None) for output in raw.outputs())
            return
        if kind[:6] == "prim::" and self.structure(raw, kind, inputs, into):
            return
        outputs = [self.value(v) for v in raw.outputs()] if raw.outputsSize() != 1 else [self.value(raw.outputsAt(0))]
        into.nodes.append(self.bind(raw, kind, inputs, outputs))

    def structure(self, raw: Any, kind: str, inputs: list[Arg], into: Block) -> bool:
        """Attributes, control flow, containers and inlined functions; whether the node was one of them."""
        if kind in ("prim::GetAttr", "prim::SetAttr"):
            self.attribute(raw, kind, inputs)
            return True
        if kind == "prim::unchecked_cast" and not isinstance(inputs[0], Value):
            self.env[raw.output().unique()] = inputs[0]
            return True
        if kind == "prim::CreateObject":
            self.env[raw.output().unique()] = made(raw)
            return True
        if kind in ("prim::If", "prim::Loop"):
            self.control(raw, kind, inputs, into)
            return True
        if self.containers:
            if kind == "prim::ListConstruct" and (not self.changed_lists or str(raw.output().type()) not in self.changed_lists):
                self.env[raw.output().unique()] = inputs
                return True
            if kind == "prim::DictConstruct" and str(raw.output().type()) not in self.changed_lists:
                if all(not isinstance(key, Value) for key in inputs[::2]):
                    self.env[raw.output().unique()] = dict(zip(inputs[::2], inputs[1::2], strict=True))
                    return True
            if kind == "prim::TupleConstruct":
                self.env[raw.output().unique()] = tuple(inputs)
                return True
            if kind in ("prim::ListUnpack", "prim::TupleUnpack") and isinstance(inputs[0], (list, tuple)):
                for output, item in zip(raw.outputs(), inputs[0], strict=True):
                    self.env[output.unique()] = item
                return True
        return kind == "prim::PythonOp" and self.python_op(raw, inputs, into)

    def known(self, raw: Any, kind: str, inputs: list[Arg]) -> bool | None:
        """The answer of a test that needs no run: of None, of a flag that is known, of a key in a dict that nobody changes."""
        if kind in ("aten::__is__", "aten::__isnot__"):
            a, b = inputs
            if b is None and (not isinstance(a, Value) or a.kind in _NEVER_NONE):
                return (a is None) == (kind == "aten::__is__")
        if kind == "aten::__not__" and isinstance(inputs[0], bool):
            return not inputs[0]
        if kind == "prim::isinstance":
            return _is_instance(raw, inputs[0])
        if kind == "aten::__contains__" and isinstance(inputs[0], (dict, list)) and str(raw.inputsAt(0).type()) not in self.changed_lists:
            if not any(isinstance(x, Value) for x in (inputs[1], *inputs[0])):
                return inputs[1] in inputs[0]
        return None

    def control(self, raw: Any, kind: str, inputs: list[Arg], into: Block) -> None:
        """An If or a Loop with its blocks; of a branch that is known, only the nodes."""
        blocks = list(raw.blocks())
        if kind == "prim::If" and isinstance(inputs[0], bool):
            taken = blocks[0 if inputs[0] else 1]
            for node in taken.nodes():
                self.node(node, into)
            for output, result in zip(raw.outputs(), taken.outputs(), strict=True):
                self.env[output.unique()] = self.env[result.unique()]
            return
        assigned = self.attributes.assigned(blocks)
        self.attributes.begin(assigned)
        before = dict(self.attributes.current)
        changed = [path for path in assigned if path in before] if kind == "prim::Loop" else []
        node = Node(kind, "", {str(i): v for i, v in enumerate(inputs)}, [], scope=self.scope(raw), source=raw.sourceRange())
        ends: list[dict[str, Arg]] = []
        for inner in blocks:
            block = Block()
            block.inputs = [self.value(v) for v in inner.inputs()]
            for path in changed:
                block.inputs.append(self.attributes.variable(path))
            self.block(inner, block)
            node.blocks.append(block)
            ends.append(self.attributes.current)
            self.attributes.current = dict(before)
        node.outputs = [self.value(v) for v in raw.outputs()]
        if kind == "prim::If":
            self.objects(raw, blocks)
        self.attributes.leave(node, before, ends, changed)
        into.nodes.append(node)

    def objects(self, raw: Any, blocks: list[Any]) -> None:
        """A result of an If that is one and the same object on every way that does not end the program."""
        going = [block for block in blocks if not any(node.kind() == "prim::RaiseException" for node in block.nodes())]
        for output, *results in zip(raw.outputs(), *[block.outputs() for block in going], strict=True):
            found = {self.env[result.unique()] for result in results if isinstance(self.env[result.unique()], Holder)}
            if len(found) == 1 and all(isinstance(self.env[result.unique()], Holder) for result in results):
                self.env[output.unique()] = found.pop()

    def attribute(self, raw: Any, kind: str, inputs: list[Arg]) -> None:
        """Reads or assigns an attribute of a module; what it is, is known now."""
        holder, name = inputs[0], raw.s("name")
        if isinstance(holder, Value):
            raise errors.UnsupportedError(f"the attribute {name!r} of an object that only the running model knows (it is one of several, or comes "
                                          f"out of a list)\n  at {_place(raw)}")
        if kind == "prim::GetAttr":
            self.env[raw.output().unique()] = self.attributes.get(holder, name)
        else:
            self.attributes.set(holder, name, inputs[1])

    def scope(self, raw: Any) -> str:
        """The modules that a node was made in, as `Net/body/body.0`; a node without outputs stands where the one before it does."""
        if self.within is not None:
            return self.within
        if self.scopes is None:
            return str(raw.scopeName())
        if raw.outputsSize():
            self.here = self.scopes.at(raw.outputsAt(0).unique(), self.here)
        return self.here

    def constant(self, arg: Arg) -> Arg:
        """A constant as it was before the program wrote into it; a packed weight, opened."""
        if isinstance(arg, torch.ScriptObject):
            return self.attributes.read("", arg)
        data = arg.constant if isinstance(arg, Value) else None
        if data is not None and not data.is_inference() and data._version:
            known = self.literals.get(data.data_ptr())
            if known is not None and known[1].shape == data.shape:
                arg.constant = known[1]
            else:
                self.touched.add(arg)
        return arg

    def bind(self, raw: Any, kind: str, inputs: list[Arg], outputs: list[Value]) -> Node:
        """The node with its arguments by name."""
        scope, source = self.scope(raw), raw.sourceRange()
        text = raw.schema() if kind[:6] != "prim::" or kind == "prim::data" else "(no schema)"
        if text == "(no schema)":
            args: dict[str, Arg] = {"self": inputs[0]} if len(inputs) == 1 else {str(i): v for i, v in enumerate(inputs)}
            for name in raw.attributeNames():
                if raw.kindOf(name) in ("i", "f", "s", "is", "fs", "ss", "t"):
                    args[name] = getattr(raw, raw.kindOf(name))(name)
            return Node(kind, "", args, outputs, scope=scope, source=source)
        if kind == "prim::data":  # `x.data`: the same tensor, of which nobody wants gradients
            kind, text = "aten::detach", _DETACH
        schema = schemas.parse(text)
        args = {}
        for parameter, arg in zip(schema.parameters, inputs):
            if type(arg) is int or arg is None or parameter.type == "List[int]":
                arg = schemas.normalise(parameter, arg)
            elif parameter.name in _NUMBER_ARGUMENTS and isinstance(arg, Value) and arg.constant is not None:
                arg = _number(parameter.type, arg, outputs, inputs)
            args[parameter.name] = arg
        for parameter in schema.parameters[len(inputs):]:
            args[parameter.name] = parameter.default
        return Node(kind, schema.overload, args, outputs, scope=scope, source=source, schema=schema)

    def unpacked(self, raw: Any) -> list[Value]:
        """The outputs of a node, those of a tuple one by one."""
        kind = raw.output().type() if raw.outputsSize() == 1 else None
        if kind is None or kind.kind() != "TupleType":
            return [self.value(v) for v in raw.outputs()]
        values = []
        for element in kind.elements():
            tensor = element.kind() == "TensorType"
            sizes = element.sizes() if tensor else None
            made = Value(_KINDS.get(element.kind(), "object"), element.dtype() if tensor else None, None if sizes is None else tuple(sizes))
            made.unknown = tensor and (made.dtype is None or made.shape is None)
            values.append(made)
        self.env[raw.output().unique()] = tuple(values)
        return values

    def python_op(self, raw: Any, inputs: list[Arg], into: Block) -> bool:
        """An `autograd.Function`: the operators of its forward, unless it has a `symbolic` (which lowering calls) or all are kept."""
        function = getattr(raw.pyobj(), "__self__", None)
        written = function is not None and hasattr(function, "symbolic")
        body = self.body(raw) if self.functions and function is not None and not written else None
        if written or body is not None:
            args = {"tensors": inputs, "scalars": raw.scalar_args(), "convention": raw.cconv(), "function": function, "body": body}
            outputs = self.unpacked(raw)
            into.nodes.append(Node("prim::PythonOp", "", args, outputs, scope=self.scope(raw), source=raw.sourceRange()))
            return True
        if not raw.hasAttribute("Subgraph"):
            return False
        graph = raw.g("Subgraph")
        inlined = Reader(self.containers, self.literals, self.attributes, functions=self.functions)
        inlined.touched, inlined.within = self.touched, self.scope(raw)
        inlined.env = {inner.unique(): given for inner, given in zip(graph.inputs(), inputs, strict=True)}
        for node in graph.nodes():
            inlined.node(node, into)
        results: list[Arg] = []
        for output in graph.outputs():
            result = inlined.env[output.unique()]
            results += result if isinstance(result, (list, tuple)) else [result]
        _give(self.env, raw, results)
        self.repeated = [(node.kind(), str(node.sourceRange()), [inlined.env.get(output.unique()) for output in node.outputs()])
                         for node in _until_written(graph) if node.kind() != "prim::Constant"]
        return True

    def is_repeated(self, raw: Any, kind: str) -> bool:
        """Whether a node of a trace says again what the function before it did: what writes into arguments stands beside the function too."""
        source = str(raw.sourceRange())
        for position, (known, line, outputs) in enumerate(self.repeated):
            if (known, line) == (kind, source):
                self.env.update((output.unique(), value) for output, value in zip(raw.outputs(), outputs, strict=True))
                del self.repeated[: position + 1]
                return True
        raise errors.CaptureError("an autograd.Function writes into its arguments, and the trace does not tell how: return a new tensor from its "
                                  f"forward instead\n  at {where(raw.sourceRange())}")

    def body(self, raw: Any) -> Graph | None:
        """What the forward of an `autograd.Function` did, as a graph of its own; None where it writes into its arguments."""
        if not raw.hasAttribute("Subgraph"):
            return None
        graph, block = raw.g("Subgraph"), Block()
        if _until_written(graph):
            return None
        reader = Reader(self.containers, self.literals, self.attributes, functions=True)
        block.inputs = [reader.value(v) for v in graph.inputs()]
        reader.block(graph, block)
        made = Graph(block, block.inputs, [f"input_{i}" for i in range(len(block.inputs))], {}, {}, list(block.outputs), [],
                     touched=reader.touched)
        functionalise(made)
        return made


def _give(env: dict[int, Any], raw: Any, results: list[Arg]) -> None:
    """The outputs of an `autograd.Function`. Where not all are tensors, they are one tuple, and what is none (None, a number) has no type."""
    kinds = [value.type() for value in raw.outputs()]
    if len(kinds) == 1 and kinds[0].kind() == "TupleType":
        tensors = iter(results)
        env[raw.output().unique()] = tuple([None if kind.sizes() is None else next(tensors) for kind in kinds[0].elements()])
        return
    for output, result in zip(raw.outputs(), results, strict=True):
        env[output.unique()] = result


def _until_written(graph: Any) -> list[Any]:
    """The nodes of a function up to the last that writes into its arguments."""
    arguments = {value.unique() for value in graph.inputs()}
    nodes, last = list(graph.nodes()), -1
    for position, node in enumerate(nodes):
        text = node.schema()
        reached = node.inputsSize() and "(a" in text and node.inputsAt(0).unique() in arguments
        if reached or ("!) out" in text and any(value.unique() in arguments for value in node.inputs())):
            arguments.update(value.unique() for value in node.outputs())
            last = position if "!" in text else last
    return nodes[: last + 1]


def _place(raw: Any) -> str:
    """The source line of a node; that of who uses it first where it has none."""
    users = [use.user for output in raw.outputs() for use in output.uses()]
    return next((found for found in (where(node.sourceRange()) for node in (raw, *users)) if found), "?")


def _is_instance(raw: Any, item: Arg) -> bool:
    """`isinstance(item, types)`: by the type that the script declares or, where that leaves it open, by what is given."""
    declared, types = raw.inputsAt(0).type(), raw.tys("types")
    if declared.kind() not in ("OptionalType", "UnionType", "AnyType", "NumberType"):
        return any(declared.isSubtypeOf(t) for t in types)
    own = item.kind if isinstance(item, Value) else type(item).__name__
    wanted = {_KINDS.get(t.kind(), str(t)) for t in types}
    if own in wanted and not any("[" in str(t) for t in types):
        return True
    if own in ("optional", "object") or own in wanted:
        raise errors.UnsupportedError(f"isinstance of a value of which the script declares no more than {declared}\n  at {where(raw.sourceRange())}")
    return False


def _constant(output: Any) -> Arg:
    try:
        data = output.toIValue()
    except RuntimeError as cause:
        raise errors.CaptureError(f"a constant of type {output.type()} cannot be read") from cause
    if isinstance(data, torch.Tensor):
        return Value("tensor", data.dtype, tuple(data.shape), data.stride() if data.layout == torch.strided else None, constant=data)
    if isinstance(data, torch.device):
        return str(data)
    return data


def _number(kind: str, arg: Value, outputs: list[Value], inputs: list[Arg]) -> Arg:
    """The Python number that a constant tensor of rank 0 was, as far as the recorded result type allows it.

    A float64 constant next to float32 tensors was a number; where the result is float64 and nobody else is, it was a tensor.
    """
    tensor = arg.constant
    assert tensor is not None
    if arg.shape != () or "Tensor" not in kind or tensor.dtype not in _NUMBER_DTYPES:
        return arg
    if tensor.dtype == torch.float64 and outputs and outputs[0].dtype == torch.float64:
        if not any(isinstance(v, Value) and v is not arg and v.dtype == torch.float64 for v in inputs):
            return arg
    if all(not isinstance(v, Value) or v is arg for v in inputs):
        return arg
    return tensor.item()
