"""The captured program, whatever captured it: blocks of ATen nodes with arguments bound by schema name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch


class Value:
    """What a node computes or the graph takes in.

    kind: "tensor", "int", "float", "bool", "str", "list", "tuple", "dict", "none", "optional", "device", "object".
    dtype, shape, strides: what the capture saw of a tensor (None where it saw nothing). `shape` is the example's and
    says nothing of other sizes; rank and dtype are facts. A size that only the data decides may be None in it.
    symbolic: of an input, its sizes as the caller asked for them: numbers and `Axis`es.
    constant: the tensor that this value is (a weight, a buffer, a literal), by reference.
    unknown: a tensor of which the capture could not tell dtype or rank (in scripts).
    """

    __slots__ = ("constant", "dtype", "kind", "name", "shape", "strides", "symbolic", "unknown")

    def __init__(self, kind: str = "tensor", dtype: torch.dtype | None = None, shape: tuple[int, ...] | None = None,
                 strides: tuple[int, ...] | None = None, name: str | None = None, constant: torch.Tensor | None = None):
        self.kind, self.dtype, self.shape, self.strides, self.name, self.constant = kind, dtype, shape, strides, name, constant
        self.symbolic: tuple[int | Axis, ...] | None = None
        self.unknown = False

    def like(self) -> Value:
        """A new value of the same type."""
        return Value(self.kind, self.dtype, self.shape, self.strides)

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))[-5:]}:{self.kind}{list(self.shape) if self.shape is not None else ''}"


@dataclass(frozen=True)
class Axis:
    """A dynamic axis of an input: its name, or an expression over names (`derived`), and the range that the caller promises."""

    label: str
    derived: bool = False
    low: int = 0
    high: int | None = None


NUMBERS = frozenset({"int", "float", "bool", "str", "none", "number", "device"})  # kinds of values that are no memory, and hold none

# These change a list, not a tensor. A list is an object of the lowering's own.
LIST_WRITES = frozenset(f"aten::{name}" for name in (
    "append", "extend", "insert", "pop", "clear", "reverse", "sort", "_set_item", "Delete", "remove", "update", "setdefault"))

# The overload of a `prim::ListUnpack` that takes a list apart which the program returns.
RESULT = "result"  # it is one output where its length is not known
WHOLE = "whole"  # it is one output

# An argument: a value, plain Python (numbers, strings, None, torch dtypes as int codes, devices as str), or lists of such.
Arg = Any


class Node:
    """One operator: `op` ("aten::add"), its overload ("Tensor"), arguments by schema name, outputs, and where it is from."""

    __slots__ = ("args", "blocks", "op", "outputs", "overload", "schema", "scope", "source")

    def __init__(self, op: str, overload: str, args: dict[str, Arg], outputs: list[Value], *, scope: str = "", source: Any = "",
                 blocks: list[Block] | None = None, schema: Schema | None = None):
        self.op, self.overload, self.args, self.outputs = op, overload, args, outputs
        self.scope, self.source, self.schema = scope, source, schema
        self.blocks: list[Block] = blocks or []

    def inputs(self) -> Iterator[Value]:
        """All values among the arguments, those inside lists too."""
        for arg in self.args.values():
            yield from values_in(arg)

    def __repr__(self) -> str:
        return f"{self.outputs} = {self.op}.{self.overload}({self.args})"


class Block:
    """A straight list of nodes with inputs and outputs."""

    __slots__ = ("inputs", "nodes", "outputs")

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Arg] = []


@dataclass
class Graph:
    """A whole program.

    inputs: the tensors (and, in scripts, scalars) that the user passes, in order.
    weights: parameters and buffers in `state_dict()` order, by qualified name; a tied one stands once, with `aliases`.
    outputs: what `forward` returned, flat; plain Python where it is no tensor.
    mutated: what `forward` wrote into inputs and weights and did not return (known after `functionalise`).
    attributes: tensors that the model keeps, but not as weights; constants of the file.
    rebound: the values that `forward` assigned to buffers and attributes.
    touched: literal constants that the capture's own run may have changed: what they were before is lost.
    scripted: it is a program with all its branches, not the record of one run.
    """

    block: Block
    inputs: list[Value]
    input_names: list[str]
    weights: dict[str, Value]
    aliases: dict[str, str]
    outputs: list[Arg]
    output_names: list[str]
    parameters: set[str] = field(default_factory=set)
    reads: list[Read] = field(default_factory=list)
    mutated: list[Mutation] = field(default_factory=list)
    attributes: dict[str, Value] = field(default_factory=dict)
    rebound: dict[str, Value] = field(default_factory=dict)
    touched: set[Value] = field(default_factory=set)
    scripted: bool = False


@dataclass(frozen=True)
class Mutation:
    """The program gives a new value to something that outlives it. kind: "input", "buffer", "parameter" or "attribute"."""

    name: str
    kind: str
    value: Value


@dataclass
class Read:
    """Python took a value out of the trace.

    kind: "bool" (a branch), "number" (int, float, item, tolist: may enter the graph), "index" (a slice or a size:
    traced rightly), "range" (a loop), "iterate" (a loop over a dim).
    value: what was read; seen: what Python got; source: the user's line.
    """

    kind: str
    value: Value | None
    seen: Any
    source: str
    axis: int | None = None


@dataclass(frozen=True)
class Parameter:
    """One argument of a schema. type: "Tensor", "Tensor?", "int", "int[]", "Scalar", "ScalarType?" and the like."""

    name: str
    type: str
    default: Any = None
    has_default: bool = False


@dataclass(frozen=True)
class Schema:
    """An ATen schema: `name` ("aten::add"), `overload` ("Tensor"), parameters.

    writes: the parameters that it writes into. aliases: those in whose memory a result may lie without being written.
    handed_back: for each result, the parameter that it is after the write; "" where it is a tensor of its own.
    """

    name: str
    overload: str
    parameters: tuple[Parameter, ...]
    returns: tuple[str, ...]
    writes: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    handed_back: tuple[str, ...] = ()

    def defaults(self) -> dict[str, Any]:
        """The arguments that may be left out, with their values."""
        return {p.name: p.default for p in self.parameters if p.has_default}


def is_memory(value: Value) -> bool:
    """Whether a value is a tensor, or something that may hold one."""
    return value.kind not in NUMBERS


def changes_list(node: Node) -> bool:
    """Whether a node changes a list (of tensors or of others), and no tensor."""
    return node.op in LIST_WRITES or (node.op == "aten::add_" and node.overload == "t")


def walk(block: Block) -> Iterator[Node]:
    """All nodes, those of inner blocks too."""
    for node in block.nodes:
        yield node
        for inner in node.blocks:
            yield from walk(inner)


def values_in(arg: Arg) -> Iterator[Value]:
    """The values inside an argument."""
    if isinstance(arg, Value):
        yield arg
    elif isinstance(arg, (list, tuple)):
        for item in arg:
            yield from values_in(item)
    elif isinstance(arg, dict):
        for item in arg.values():
            yield from values_in(item)


def replaced(arg: Arg, change: Callable[[Value], Any]) -> Arg:
    """`arg` with each value passed through `change`."""
    if isinstance(arg, Value):
        return change(arg)
    if isinstance(arg, list):
        return [replaced(item, change) for item in arg]
    if isinstance(arg, tuple):
        return tuple(replaced(item, change) for item in arg)
    if isinstance(arg, dict):
        return {k: replaced(v, change) for k, v in arg.items()}
    return arg
