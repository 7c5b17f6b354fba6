"""PyTorch's own decompositions of operators, traced on tensors of symbolic sizes, so that no example size is in them.

Nothing is imported and nothing costs time before an operator without a translation turns up.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Block, Graph, Value
from onnxport.aten.passes.functionalise import functionalise
from onnxport.capture import fx, torch_private
from onnxport.capture.fx_values import typed

_NEUTRAL = frozenset({"layout", "device", "pin_memory", "memory_format"})  # where and how PyTorch computes, not what


@dataclass(frozen=True)
class Tensor:
    """A tensor argument: its dtype and sizes, a dynamic one by its number among the dynamic sizes of the call."""

    dtype: torch.dtype
    sizes: tuple[int | Size, ...]


@dataclass(frozen=True)
class Size:
    """A dynamic size: its number, and what it is in the example."""

    number: int
    seen: int


@dataclass
class Decomposed:
    """An operator as a block of others.

    tensors, sizes: the values that stand for the tensors and the dynamic sizes among the arguments, in order.
    guards: what the decomposition decided over sizes, as text over `names` (name -> number of the size).
    """

    block: Block
    tensors: list[Value]
    sizes: list[tuple[int, Value]]
    results: Any
    guards: list[str]
    names: dict[str, int]


def exists(op: str, overload: str) -> bool:
    """Whether PyTorch has an exact decomposition of this operator. Random operators have none that agrees with anything."""
    found = _overload(op, overload)
    return found is not None and not _is_random(found) and _function(found) is not None


def trace(op: str, overload: str, args: Mapping[str, Any]) -> Decomposed:
    """The decomposition for these arguments: plain Python, `Tensor`s, `Size`s, and lists of them."""
    found = _overload(op, overload)
    function = None if found is None else _function(found)
    if function is None:
        raise errors.UnsupportedOperatorError(f"Couldn't export operator {op}.{overload}: it has no decomposition")
    with torch_private.any_size(), torch.no_grad():
        return _Run(op, function).run(args)


class _Run:
    """One trace."""

    def __init__(self, op: str, function: Any):
        self.op, self.function = op, function
        self.mode = torch_private.symbolic_mode()
        self.known: dict[Size, Any] = {}
        self.names: dict[str, int] = {}  # as they are before anything is decided over them
        self.given: list[Any] = []
        self.kinds: list[Tensor | Size] = []

    def run(self, args: Mapping[str, Any]) -> Decomposed:
        """Traces the function and reads what it did."""
        prepared = {name: self.prepared(arg) for name, arg in args.items()}

        def call(*given: Any) -> Any:
            found = {name: _filled(arg, given) for name, arg in prepared.items()}
            result = self.function(found)
            return list(result) if isinstance(result, tuple) else result

        try:
            module = torch_private.traced(call, self.given, self.mode)
        except Exception as cause:
            raise errors.UnsupportedError(f"{self.op} has no translation, and PyTorch's decomposition of it fails here "
                                          f"({type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''})") from cause
        return self.read(module)

    def prepared(self, arg: Any) -> Any:
        """The argument with placeholders for tensors and dynamic sizes."""
        if isinstance(arg, (list, tuple)):
            return [self.prepared(item) for item in arg]
        if isinstance(arg, Size):
            return self.placed(self.size(arg), arg)
        if isinstance(arg, Tensor):
            sizes = [self.size(s) if isinstance(s, Size) else s for s in arg.sizes]
            with self.mode:
                return self.placed(torch.empty(sizes, dtype=arg.dtype), arg)
        return arg

    def placed(self, value: Any, kind: Tensor | Size) -> _Place:
        """Enters an argument of the traced function."""
        self.given.append(value)
        self.kinds.append(kind)
        return _Place(len(self.given) - 1)

    def size(self, size: Size) -> Any:
        """The symbolic number of a dynamic size."""
        if size not in self.known:
            found = self.known[size] = torch_private.symbolic_size(self.mode, f"size{size.number}", size.seen)
            self.names[str(found.node.expr)] = size.number
        return self.known[size]

    def read(self, module: torch.fx.GraphModule) -> Decomposed:
        """The traced graph as a block."""
        reader = fx.Reader(lambda target: functools.reduce(getattr, target.split("."), module))
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        tensors, sizes = [], []
        for node, kind in zip(placeholders, self.kinds, strict=True):
            value = typed(node.meta["val"])
            reader.env[node] = value
            if isinstance(kind, Size):
                sizes.append((kind.number, value))
            else:
                tensors.append(value)
        block = reader.read(module.graph.nodes, Block())
        block.inputs = [*tensors, *(value for _, value in sizes)]
        graph = Graph(block, tensors, [str(i) for i in range(len(tensors))], {}, {}, list(block.outputs), [])
        functionalise(graph)
        output = next(node for node in module.graph.nodes if node.op == "output").args[0]
        results = graph.outputs if isinstance(output, (list, tuple)) else graph.outputs[0]
        return Decomposed(block, tensors, sizes, results, torch_private.guards_of(self.mode), self.names)


@dataclass(frozen=True)
class _Place:
    index: int


def _filled(arg: Any, given: Sequence[Any]) -> Any:
    if isinstance(arg, list):
        return [_filled(item, given) for item in arg]
    return given[arg.index] if isinstance(arg, _Place) else arg


def _overload(op: str, overload: str) -> Any:
    namespace, _, name = op.partition("::")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
    except (AttributeError, RuntimeError):
        return None


def _is_random(overload: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in overload.tags


@functools.cache
def _function(overload: Any) -> Any:
    """What computes the operator from a dict of its arguments by other operators; None where PyTorch has nothing."""
    schema = overload._schema
    rule = torch_private.decomposition(overload)
    if rule is None:
        return None
    positional = [a.name for a in schema.arguments if not a.kwarg_only]
    named = [a.name for a in schema.arguments if a.kwarg_only and a.name not in _NEUTRAL]
    defaults = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}

    def call(args: dict[str, Any]) -> Any:
        ordered = [args[n] for n in positional]
        while ordered and _is_default(positional[len(ordered) - 1], ordered[-1], defaults):
            ordered.pop()  # not every decomposition takes all that the operator takes
        further = {n: args[n] for n in named if n in args and not _is_default(n, args[n], defaults)}
        return rule(*ordered, **further)

    return call


def _is_default(name: str, arg: Any, defaults: dict[str, Any]) -> bool:
    if name not in defaults:
        return False
    default = defaults[name]
    return arg is None if default is None else type(arg) is type(default) and not isinstance(arg, torch.Tensor) and bool(arg == default)
