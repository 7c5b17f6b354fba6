"""Captures what `torch.jit` compiled (or traced, or loaded from a file): its graph is read, nothing of it is unrolled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxport import errors, structure
from onnxport.aten.graph import RESULT, WHOLE, Arg, Block, Graph, Node, Value
from onnxport.aten.source import where
from onnxport.calls import Call
from onnxport.capture import torch_private
from onnxport.capture.attributes import Attributes, Holder, changed_lists, kept
from onnxport.capture.state import State, state_of
from onnxport.capture.torchscript import Reader
from onnxport.capture.trace import Traced

_NUMBERS = {"int": (int, torch.int64), "float": (float, torch.float32), "bool": (bool, torch.bool)}


def is_script(model: Any) -> bool:
    """Whether `torch.jit` made it."""
    return isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction, Program)) or torch_private.is_method(model)


def load(path: Any) -> Any:
    """The scripted or traced module of a file that `torch.jit.save` wrote."""
    try:
        return torch.jit.load(path, map_location="cpu")
    except RuntimeError as cause:
        reason = str(cause).strip().split("\n")[0]
        raise errors.ArgumentError(f"model is the path {str(path)!r}, and torch.jit.load does not read it ({reason}); a file that "
                                   "holds a state_dict or a pickled module has to be loaded by the code that defines the model") from cause


class Program:
    """A scripted module, method or function as a function of tensors: its numbers are tensors of rank 0.

    lists: "sequences" makes one input (and one output) of each list of tensors; "flat" one of each of its tensors; "auto" does so too,
    but for returned lists of which only the running model knows the length.
    """

    def __init__(self, scripted: Any, lists: str = "auto"):
        self.scripted, self.lists = scripted, lists
        self.module = torch_private.module_of(scripted)  # None for a function
        if torch_private.is_method(scripted) and self.module is not None and self.module.training:
            raise errors.ArgumentError(f"the module of the method {scripted.name!r} is in training mode: call eval() on it, and take the method then")
        forward: Any = scripted.forward if isinstance(scripted, torch.jit.ScriptModule) else scripted
        schema = forward.schema
        arguments = [a for a in schema.arguments if a.name != "self"]
        arguments = arguments[1:] if len(arguments) < len(schema.arguments) - 1 else arguments
        self.kinds = {a.name: str(a.real_type) for a in arguments if not (self.module is not None and a is schema.arguments[0])}
        self.arguments = [a for a in arguments if a.name in self.kinds]
        self.types = {a.name: a.real_type for a in self.arguments}
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([
            inspect.Parameter(_legal(a.name), kind, default=a.default_value if a.has_default_value() else inspect.Parameter.empty)
            for a in self.arguments])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the program; its numbers come back as tensors of rank 0 too."""
        names = [a.name for a in self.arguments]
        given = [self._back(name, arg) for name, arg in zip(names, args, strict=False)]
        named = {name: self._back(name, arg) for name, arg in kwargs.items()}
        return _numbers_as_tensors(self.scripted(*given, **named))

    def tensors(self, args: Any, kwargs: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Arguments with numbers as tensors."""
        if not isinstance(args, (tuple, list)) or hasattr(args, "_fields"):
            args = () if args is None else (args,)
        args = list(args)
        if args and type(args[-1]) is dict and not (len(args) <= len(self.arguments) and self._is_dict(self.arguments[len(args) - 1].name)):
            kwargs = {**args.pop(), **(kwargs or {})}
        if len(args) > len(self.arguments):
            raise errors.ArgumentError(f"{len(args)} arguments are given, and the script takes {len(self.arguments)}")
        given = [self._forth(a.name, arg) for a, arg in zip(self.arguments, args, strict=False)]
        return (*given, {}), {name: self._forth(name, arg) for name, arg in (kwargs or {}).items()}

    def _is_dict(self, name: str) -> bool:
        return self.kinds[name].startswith("Dict")

    def _forth(self, name: str, arg: Any) -> Any:
        made = _converted(self.types.get(name), arg, lambda kind, x: x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=_NUMBERS[kind][1]))
        return _wholes(self.types.get(name), made) if self.lists == "sequences" else made

    def _back(self, name: str, arg: Any) -> Any:
        return _converted(self.types.get(name), arg, lambda kind, x: _NUMBERS[kind][0](x) if isinstance(x, torch.Tensor) else x)


def _converted(kind: Any, item: Any, change: Callable[[str, Any], Any]) -> Any:
    """An argument of the TorchScript type `kind` with its numbers changed, those in containers too."""
    kind = _present(kind)
    if kind is None or item is None:
        return item
    if str(kind) in _NUMBERS:
        return change(str(kind), item)
    return _mapped(kind, item, lambda inner, member: _converted(inner, member, change))


def _mapped(kind: Any, item: Any, change: Callable[[Any, Any], Any]) -> Any:
    """A container of the TorchScript type `kind` with its members changed, each by its own type."""
    if not isinstance(item, (list, tuple, dict)):
        return item
    inner = item.values() if isinstance(item, dict) else item
    members = [change(_type_of_member(kind, index), member) for index, member in enumerate(inner)]
    if isinstance(item, dict):
        return dict(zip(item, members, strict=True))
    return type(item)(*members) if hasattr(item, "_fields") else type(item)(members)


def _wholes(kind: Any, item: Any) -> Any:
    """An argument of the TorchScript type `kind` in which each list of tensors is one leaf."""
    if _is_list_of_tensors(kind) and isinstance(item, (list, tuple)):
        return structure.Whole(item)
    return _mapped(_present(kind), item, _wholes)


def _is_list_of_tensors(kind: Any) -> bool:
    return str(_present(kind)) == "List[Tensor]"


def _present(kind: Any) -> Any:
    """The type of an Optional that is not None."""
    return kind.getElementType() if kind is not None and kind.kind() == "OptionalType" else kind


def _type_of_member(kind: Any, index: int) -> Any:
    """The type of what a container holds."""
    kind = _present(kind)
    name = "" if kind is None else kind.kind()
    if name == "TupleType":
        return kind.elements()[index]
    return kind.getElementType() if name == "ListType" else kind.getValueType() if name == "DictType" else None


def _legal(name: str) -> str:
    return name if name.isidentifier() else "arg_" + "".join(c if c.isalnum() else "_" for c in name)


def _numbers_as_tensors(result: Any) -> Any:
    if isinstance(result, (bool, int, float)):
        return torch.tensor(result)
    if isinstance(result, tuple):
        members = [_numbers_as_tensors(m) for m in result]
        return type(result)(*members) if hasattr(result, "_fields") else tuple(members)
    if isinstance(result, list):
        return [_numbers_as_tensors(m) for m in result]
    if isinstance(result, dict):
        return {k: _numbers_as_tensors(v) for k, v in result.items()}
    return result


def capture(program: Program, call: Call, names: list[str]) -> Traced:
    """Reads the program's graph; it runs once on the example, for the structure of what it returns."""
    scripted = program.scripted
    owner = scripted if program.module is None else program.module
    state = state_of(owner)
    raw = scripted.graph.copy()
    torch_private.inline(raw)
    with torch.no_grad(), state.unchanged(), kept(owner, raw):
        args, kwargs = call.spec.unflatten([structure.each(_copied, leaf) for leaf in call.tensors])
        try:
            result = program(*args, **kwargs)
        except torch.jit.Error as cause:
            raise errors.CaptureError(f"on the example the script raises: {_last_line(cause)}\n  at {where(str(cause))}") from cause
    leaves, spec = structure.flatten(result)
    if not leaves:
        raise errors.CaptureError(f"the script returned no tensor, but {type(result).__name__}")
    flat, output_names = [leaf.value for leaf in leaves], [leaf.path for leaf in leaves]
    reading = _Reading(program, state)
    graph = reading.read(raw, args, kwargs, result, names)
    graph.output_names = output_names
    return Traced(graph, flat, spec, way="script")


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.preserve_format)


def _last_line(error: Exception) -> str:
    return str(error).strip().rpartition("\n")[2].removeprefix("builtins.")


class _Reading:
    """One reading of one program."""

    def __init__(self, program: Program, state: State):
        self.program, self.state = program, state
        self.weights = {name: _known(tensor, name) for name, tensor in state.weights.items()}
        self.attributes: dict[str, Value] = {}
        self.block = Block()
        self.inputs: list[Value] = []

    def read(self, raw: Any, args: Any, kwargs: dict[str, Any], result: Any, names: list[str]) -> Graph:
        """The graph of the program, with the arguments of its call bound."""
        root = self.program.module
        attributes = Attributes(self.weight, root)
        reader = Reader(attributes=attributes)
        given = list(raw.inputs())
        if root is not None:
            reader.env[given.pop(0).unique()] = Holder("", root)
        reader.changed_lists = changed_lists(raw)
        bound = inspect.signature(self.program).bind(*args, **kwargs)
        bound.apply_defaults()
        for value, item in zip(given, bound.arguments.values(), strict=True):
            reader.env[value.unique()] = self.argument(item, value.type(), str(value.type()) in reader.changed_lists)
        for value, name in zip(self.inputs, names, strict=True):
            value.name = name
        reader.untyped = True
        reader.block(raw, self.block)
        (output,) = self.block.outputs
        outputs = list(self.leaves(output, result, next(raw.outputs()).type()))
        self.block.outputs = list(outputs)
        self.block.inputs = [*self.inputs, *self.weights.values()]
        state = self.state
        graph = Graph(self.block, self.inputs, list(names), self.weights, state.aliases, outputs, [], state.parameters,
                      attributes=self.attributes, touched=reader.touched)
        graph.rebound = attributes.rebound()
        graph.scripted = True
        return graph

    def weight(self, path: str, tensor: torch.Tensor) -> Value:
        """The value of a parameter, buffer or tensor attribute."""
        path = self.state.aliases.get(path, path)
        if path not in self.weights:
            if path not in self.attributes:
                self.attributes[path] = _known(tensor, None)
            return self.attributes[path]
        return self.weights[path]

    def argument(self, item: Any, kind: Any, changed: bool = False) -> Arg:
        """An argument of the call: new inputs for its tensors."""
        if isinstance(item, torch.Tensor):
            value = Value("tensor", item.dtype, tuple(item.shape), item.stride())
            value.kind = str(_present(kind)) if str(_present(kind)) in _NUMBERS else "tensor"
            self.inputs.append(value)
            return value
        if isinstance(item, structure.Whole):
            sizes: Any = (None,) * item.dim()  # nothing holds a sequence's tensors to those of the example
            self.inputs.append(Value("list", item[0].dtype, sizes))
            return self.inputs[-1]
        if isinstance(item, (list, tuple)):
            members = [self.argument(m, _type_of_member(kind, index)) for index, m in enumerate(item)]
            if not changed:
                return members if isinstance(item, list) else tuple(members)
            return self.made_list(members)
        if isinstance(item, dict):
            return {key: self.argument(m, _type_of_member(kind, 0)) for key, m in item.items()}
        return item

    def made_list(self, members: Any) -> Value:
        """A list as an object."""
        made = Value("list")
        self.block.nodes.append(Node("prim::ListConstruct", "", {str(i): m for i, m in enumerate(members)}, [made]))
        return made

    def leaves(self, arg: Arg, item: Any, kind: Any) -> Iterator[Arg]:
        """The tensors of an output of the TorchScript type `kind`, which has the structure of `item`."""
        if isinstance(item, torch.Tensor):
            yield arg
        elif isinstance(item, (list, tuple)):
            for index, (member, inner) in enumerate(zip(self.members(arg, item, kind), item, strict=True)):
                yield from self.leaves(member, inner, _type_of_member(kind, index))
        elif isinstance(item, dict):
            for key, inner in item.items():
                if isinstance(arg, Value):
                    made = _like(inner)
                    self.block.nodes.append(Node("aten::__getitem__", "", {"self": arg, "key": key}, [made]))
                    yield from self.leaves(made, inner, _type_of_member(kind, 0))
                else:
                    yield from self.leaves(arg[key], inner, _type_of_member(kind, 0))

    def members(self, arg: Arg, item: Any, kind: Any) -> Any:
        """What a returned list or tuple holds; a list of tensors may be one output, a sequence."""
        way = self.way(item, kind)
        if way == WHOLE and not isinstance(arg, Value):
            arg = self.made_list(arg)
        if not isinstance(arg, Value):
            return arg
        members = [_like(m) for m in item]
        unpack = Node("prim::ListUnpack", way, {"self": arg}, members)
        unpack.source = next((node.source for node in reversed(self.block.nodes) if node.source), "")
        self.block.nodes.append(unpack)
        return members

    def way(self, item: Any, kind: Any) -> str:
        """Whether a returned container is one output ("": never)."""
        if self.program.lists == "sequences" and _is_list_of_tensors(kind):
            return WHOLE
        whole = isinstance(item, list) and all(isinstance(m, torch.Tensor) for m in item)
        return RESULT if whole and self.program.lists != "flat" else ""


def _like(item: Any) -> Value:
    if isinstance(item, torch.Tensor) and item.dim() == 0 and item.dtype == torch.float32:
        return Value("float")  # a number, perhaps, with the 64 bits of Python's
    value = Value("tensor" if isinstance(item, torch.Tensor) else "dict" if isinstance(item, dict) else "list")
    value.unknown = value.kind == "tensor"
    return value


def _known(tensor: torch.Tensor, name: str | None) -> Value:
    data = tensor.detach()
    return Value("tensor", data.dtype, tuple(data.shape), data.stride() if data.layout == torch.strided else None, name=name, constant=data)
