"""Which tensors the blocks of an If or a Loop may write into, known before they are rewritten."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnxport.aten.graph import LIST_WRITES, Arg, Block, Graph, Node, Value, values_in
from onnxport.aten.passes import statistics, views
from onnxport.aten.passes.writes import METADATA

Roots = frozenset[Value]
NUMBERS = frozenset({"int", "float", "bool", "str", "none", "number", "device"})  # kinds of values that are no memory, and hold none
_NONE: Roots = frozenset()
_CASTS = frozenset({"prim::unchecked_cast", "aten::_unwrap_optional", "prim::unchecked_unwrap_optional"})


@dataclass
class Touched:
    """What the blocks of one node do to tensors from outside.

    written: tensors that own memory outside and may be written inside.   lost: tensors of which nobody knows whether they are
    (a carried variable is the caller's tensor in the first turn only).   same: carried positions that stay one tensor throughout.
    """

    written: dict[Value, None] = field(default_factory=dict)
    lost: dict[Value, None] = field(default_factory=dict)
    same: set[int] = field(default_factory=set)
    carried: dict[int, Roots] = field(default_factory=dict)
    inner: set[Value] = field(default_factory=set)


class Origins:
    """For each tensor the values in whose memory it may lie; linear in the number of nodes."""

    def __init__(self, graph: Graph):
        self.of: dict[Value, Roots] = {}
        self.exact: dict[Value, Value] = {}  # values that are another one, and no mere view of it
        self.touched: dict[Node, Touched] = {}
        self._created: list[set[Value]] = [set()]
        self._written: list[dict[Value, None]] = [{}]
        self._block(graph.block)

    def roots(self, arg: Arg) -> Roots:
        """The owners of the memory that the tensors in `arg` lie in."""
        found: set[Value] = set()
        for value in values_in(arg):
            if value.kind not in NUMBERS:
                found |= self.of.get(value) or {value}
        return frozenset(found)

    def exactly(self, arg: Arg) -> Arg:
        """The value that `arg` is another name for."""
        return self.exact.get(arg, arg) if isinstance(arg, Value) else arg

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            self._node(node)

    def _node(self, node: Node) -> None:
        if node.blocks:
            self._nested(node)
            return
        schema = node.schema
        if node.op in LIST_WRITES:
            self._give(node, _NONE)
        elif schema is not None and schema.writes:
            for name in schema.writes:
                self._written[-1].update(dict.fromkeys(self.roots(node.args.get(name))))
            self._give(node, self.roots(node.args.get(schema.writes[0])))
            if schema.writes == ("self",) and node.op not in METADATA and len(node.outputs) == 1:
                self.exact[node.outputs[0]] = self.exactly(node.args["self"])
        elif statistics.updates(node):
            for name in ("running_mean", "running_var"):
                self._written[-1].update(dict.fromkeys(self.roots(node.args.get(name))))
            self._give(node, _NONE)
        elif views.is_view(node):
            self._give(node, self.roots(node.args[views.source_name(node)]))
        elif schema is not None and schema.aliases:
            self._give(node, self.roots([node.args.get(name) for name in schema.aliases]))
        elif node.op in _CASTS:
            self._give(node, self.roots(list(node.args.values())))
            self.exact[node.outputs[0]] = self.exactly(next(iter(node.args.values())))
        elif node.op.startswith("prim::"):
            self._give(node, self.roots(list(node.args.values())))
        else:
            self._give(node, _NONE)

    def _give(self, node: Node, roots: Roots) -> None:
        for output in node.outputs:
            if roots:
                self.of[output] = roots
            self._created[-1].add(output)

    def _nested(self, node: Node) -> None:
        self._created.append(set())
        self._written.append({})
        touched = self.touched[node] = Touched()
        if node.op == "prim::Loop":
            self._loop(node, touched)
        else:
            for block in node.blocks:
                self._created[-1].update(block.inputs)
                self._block(block)
        created, written = self._created.pop(), self._written.pop()
        touched.inner = created
        touched.written = {root: None for root in written if root not in created}
        touched.lost = {root: None for root in touched.lost if root not in created}
        self._created[-1] |= created
        for root in (*touched.written, *touched.lost):
            self._written[-1][root] = None
        for index, output in enumerate(node.outputs):
            self.of[output] = self._result(node, index, created) or frozenset((output,))
            one = self._one(node, index, touched)
            if one is not None and one not in created:
                self.exact[output] = one
            self._created[-1].add(output)

    def _result(self, node: Node, index: int, created: set[Value]) -> Roots:
        if node.op == "prim::Scan":
            return _NONE  # what a Scan gives is always new
        found: set[Value] = set()
        first = 1 if node.op == "prim::Loop" else 0
        for block in node.blocks:
            found |= self.roots(block.outputs[index + first])
        if first:
            found |= self.roots(node.args[str(index + 2)])
        return frozenset(root for root in found if root not in created)

    def _one(self, node: Node, index: int, touched: Touched) -> Value | None:
        """The value that a result always is."""
        if node.op == "prim::Loop":
            found = {self.exactly(node.args[str(index + 2)])} if index in touched.same else set()
        else:
            found = {self.exactly(block.outputs[index]) if isinstance(block.outputs[index], Value) else None for block in node.blocks}
        one = found.pop() if len(found) == 1 else None
        return one if isinstance(one, Value) else None

    def _loop(self, node: Node, touched: Touched) -> None:
        (body,) = node.blocks
        carried = body.inputs[1:]
        self._created[-1].update(body.inputs)
        self._block(body)
        written = self._written[-1]
        inner = set(carried)
        for index, value in enumerate(carried):
            after, before = self.roots(body.outputs[index + 1]), self.roots(node.args[str(index + 2)])
            if value.kind not in NUMBERS:
                touched.carried[index] = (before | after) - {value}
            if value.kind != "tensor":
                continue
            if self.exactly(body.outputs[index + 1]) is value and isinstance(node.args[str(index + 2)], Value):
                touched.same.add(index)
                if value in written:
                    written.update(dict.fromkeys(before))
            elif value in written:
                touched.lost.update(dict.fromkeys((*before, *(root for root in after if root is not value))))
                others = [root for root in after if root in inner and root is not value]
                touched.lost.update(dict.fromkeys(root for other in others for root in self.roots(node.args[str(carried.index(other) + 2)])))
