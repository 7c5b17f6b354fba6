"""Operators on parts of a program (`torch.cond`, `while_loop`, `scan`, `map`, ...) as nodes with blocks, as scripts have them.

Parts that only set a mode, or mark a region, are read where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Node, Value
from onnxport.aten.source import where
from onnxport.capture import torch_private
from onnxport.capture.fx_values import typed

if TYPE_CHECKING:
    from onnxport.capture.fx import Reader

_ENDLESS = (1 << 63) - 1


def read(reader: Reader, node: torch.fx.Node, origin: Node, into: Block) -> list[Arg]:
    """What one such operator gives. origin: lends its scope and source to what is made."""
    name = str(node.target)
    handler = _HANDLERS.get(name)
    if handler is None:
        raise _unknown(name, origin)
    return handler(_Call(reader, node, origin, into))


def _unknown(name: str, origin: Node) -> errors.UnsupportedOperatorError:
    return errors.UnsupportedOperatorError(
        f"Couldn't export operator {name} (module {origin.scope or '?'}, {where(origin.source)}): an operator of PyTorch on parts of a program "
        "that has no translation; ONNX has torch.cond, while_loop, scan and map as If, Loop and Scan")


class _Call:
    """One call of such an operator."""

    def __init__(self, reader: Reader, node: torch.fx.Node, origin: Node, into: Block):
        self.reader, self.node, self.origin, self.into = reader, node, origin, into
        self.args: list[Any] = [reader.resolve(arg) for arg in node.args]
        found = node.meta.get("val")
        self.outputs = [typed(v) for v in (found if isinstance(found, (list, tuple)) else [found])]

    def make(self, op: str, args: dict[str, Arg], blocks: list[Block]) -> list[Arg]:
        """A node with blocks; what is None in PyTorch stays None."""
        present = [index for index, output in enumerate(self.outputs) if output.kind != "none"]
        skipped = 1 if op == "prim::Loop" else 0
        for block in blocks:
            block.outputs = [*block.outputs[:skipped], *(block.outputs[index + skipped] for index in present)]
        outputs = [self.outputs[index] for index in present]
        self.into.nodes.append(Node(op, "", args, outputs, scope=self.origin.scope, source=self.origin.source, blocks=blocks))
        return [output if output.kind != "none" else None for output in self.outputs]

    def emit(self, op: str, overload: str, like: Value, /, **args: Arg) -> Value:
        """A plain node beside it."""
        output = like.like()
        self.into.nodes.append(Node(op, overload, args, [output], scope=self.origin.scope, source=self.origin.source))
        return output


    def copy(self, tensor: Arg) -> Value:
        """A copy, to be written into."""
        assert isinstance(tensor, Value)
        return self.emit("aten::clone", "", tensor, self=tensor, memory_format=None)

    def written(self, name: str, told: dict[str, Arg], bases: Sequence[Value]) -> Arg:
        """The argument that inference IR tells of by a tensor among `bases`, and which part of it: all, a slice or a strided view."""
        told = {key.removeprefix(f"_{name}_"): told.pop(key) for key in list(told) if key.startswith(f"_{name}_")}
        index = told["base_index"]
        if index is None:
            return None
        base = bases[int(index)]
        if "slice_dim" in told:
            dim, start, end = (told[f"slice_{key}"] for key in ("dim", "start", "end"))
            return self.emit("aten::slice", "Tensor", Value("tensor", base.dtype, None), self=base, dim=dim, start=start, end=end, step=1)
        if "storage_offset" not in told:
            return base
        size, stride, offset = (told[key] for key in ("size", "stride", "storage_offset"))
        return self.emit("aten::as_strided", "", Value("tensor", base.dtype, None), self=base, size=size, stride=stride, storage_offset=offset)


def _cond(call: _Call) -> list[Arg]:
    condition, yes, no, operands = call.args
    if isinstance(condition, bool):
        return call.reader.part(yes if condition else no, operands, call.into)
    blocks = [Block(), Block()]
    for part, block in zip((yes, no), blocks, strict=True):
        block.outputs = call.reader.part(part, operands, block)
    return call.make("prim::If", {"0": condition}, blocks)


def _while_loop(call: _Call) -> list[Arg]:
    """The condition stands twice: before the loop and at the end of each turn."""
    test, turn, start, further = call.args
    condition = call.reader.part(test, [*start, *further], call.into)[0]
    body = Block()
    carried = [output.like() for output in call.outputs]
    body.inputs = [Value("int"), *carried]
    results = call.reader.part(turn, [*carried, *further], body)
    body.outputs = [call.reader.part(test, [*results, *further], body)[0], *results]
    args = {"0": _ENDLESS, "1": condition, **{str(index + 2): value for index, value in enumerate(start)}}
    return call.make("prim::Loop", args, [body])


def _scan(call: _Call) -> list[Arg]:
    step, states, sequences, further = call.args
    return _scanned(call, step, states, sequences, further)


def _map(call: _Call) -> list[Arg]:
    step, sequences, further = call.args
    return _scanned(call, step, [], sequences, further)


def _scanned(call: _Call, step: Any, states: Sequence[Arg], sequences: Sequence[Value], further: Sequence[Arg]) -> list[Arg]:
    """A loop over dim 0 of the sequences: new states, and what each turn gives, stacked along dim 0."""
    body = Block()
    body.inputs = [*(_known(state).like() for state in states), *map(_element, sequences)]
    body.outputs = call.reader.part(step, [*body.inputs, *further], body)
    return call.make("prim::Scan", {"states": list(states), "sequences": list(sequences)}, [body])


def _associative_scan(call: _Call) -> list[Arg]:
    """As a scan that starts with the first element and gives its state in every turn."""
    step, sequences, further = call.args
    first = [call.emit("aten::select", "int", _element(xs), self=xs, dim=0, index=0) for xs in sequences]
    rest = [call.emit("aten::slice", "Tensor", _without_sizes(xs), self=xs, dim=0, start=1, end=None, step=1) for xs in sequences]
    body = Block()
    states = [x.like() for x in first]
    elements = [x.like() for x in first]
    body.inputs = [*states, *elements]
    results = call.reader.part(step, [*body.inputs, *further], body)
    body.outputs = [*results, *results]
    outputs = call.outputs
    call.outputs = [*(x.like() for x in first), *map(_without_sizes, outputs)]
    made = call.make("prim::Scan", {"states": list(first), "sequences": rest}, [body])[len(first):]
    heads = [call.emit("aten::unsqueeze", "", _without_sizes(xs), self=x, dim=0) for x, xs in zip(first, outputs, strict=True)]
    return [call.emit("aten::cat", "", output, tensors=[head, tail], dim=0) for head, tail, output in zip(heads, made, outputs, strict=True)]


def _known(arg: Arg) -> Value:
    if not isinstance(arg, Value):
        raise errors.UnsupportedError(f"a scan starts from {arg!r}, which is no tensor")
    return arg


def _element(xs: Value) -> Value:
    """The type of what lies along dim 0."""
    return Value("tensor", xs.dtype, None if xs.shape is None else xs.shape[1:])


def _without_sizes(xs: Value) -> Value:
    """The type of `xs` with another number of elements along dim 0."""
    return Value("tensor", xs.dtype, None if xs.shape is None else (None, *xs.shape[1:]))  # type: ignore[arg-type]


def _inlined(before: int) -> Callable[[_Call], list[Arg]]:
    """For an operator that runs one part as it stands: how many arguments are before the part."""

    def handler(call: _Call) -> list[Arg]:
        operands = call.args[before + 1:]
        if operands and isinstance(operands[0], str):
            operands = operands[1:]  # the name that invoke_subgraph gives
        return call.reader.part(call.args[before], operands, call.into)

    return handler


def _hinted(call: _Call) -> list[Arg]:
    return call.reader.part(call.args[0], call.args[1], call.into)


def _functionalised(call: _Call) -> list[Arg]:
    """An operator that writes, in inference IR: called as the model called it, on copies of what it writes into.

    Its results come first (None where it has none), then the copies: all tensors that it writes into, or those of which these are views.
    """
    from onnxport.capture import fx

    target: Any = call.node.args[0]
    named = {name: call.reader.resolve(arg) for name, arg in call.node.kwargs.items()}
    writes = fx.schema_of(target).writes
    if any(f"_{name}_length" in named or isinstance(named.get(name), list) for name in writes):
        raise errors.UnsupportedError(f"{target} writes into a list of tensors\n  at {where(call.origin.source)}")
    if "_all_bases" in named:
        copies = [call.copy(base) for base in named.pop("_all_bases")]
        given = {**named, **{name: call.written(name, named, copies) for name in writes}}
    else:
        copied = {name: call.copy(named[name]) for name in writes if isinstance(named[name], Value)}
        given, copies = {**named, **copied}, list(copied.values())
    count = max(len(target._schema.returns), 1)
    known = call.node.meta["val"][:count]
    made = fx.bound(target, (), given, known if count > 1 else known[0], call.origin.scope, call.origin.source)
    call.into.nodes.append(made)
    results: list[Arg] = [output if output.kind != "none" else None for output in made.outputs]
    return [*results, *copies]


def _with_effects(call: _Call) -> list[Arg]:
    """An operator that must keep its place among others of its kind: a graph has no such order, and needs none for numbers."""
    from onnxport.capture import fx

    _, target, *given = call.args
    if not isinstance(target, torch_private.OpOverload):
        raise _unknown(str(target), call.origin)
    named = {name: call.reader.resolve(arg) for name, arg in call.node.kwargs.items()}
    results = call.node.meta["val"][1:]
    made = fx.bound(target, given, named, results if len(target._schema.returns) > 1 else next(iter(results), None), call.origin.scope,
                    call.origin.source)
    call.into.nodes.append(made)
    return [None, *made.outputs]


def is_mode(node: torch.fx.Node) -> bool:
    """Whether a node of a program changes what others mean: a region of autocast, a step of vmap."""
    return str(node.target) == "wrap_with_autocast" or getattr(node.target, "__module__", "").endswith("_functorch.predispatch")


_HANDLERS: dict[str, Callable[[_Call], list[Arg]]] = {
    "cond": _cond, "while_loop": _while_loop, "scan": _scan, "map_impl": _map, "associative_scan": _associative_scan,
    "wrap_with_set_grad_enabled": _inlined(1), "invoke_subgraph": _inlined(0), "wrap": _inlined(0),
    "tag_activation_checkpoint": _inlined(0), "strict_mode": _hinted, "hints_wrapper": _hinted,
    "auto_functionalized": _functionalised, "auto_functionalized_v2": _functionalised, "with_effects": _with_effects,
}
