"""Which tensors the blocks of an If or a Loop may write into, known before they are rewritten."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field

from onnxport.aten.graph import NUMBERS, Arg, Block, Graph, Node, Value, changes_list, values_in, walk
from onnxport.aten.passes import statistics, views
from onnxport.aten.passes.writes import METADATA

Roots = frozenset[Value]
_NONE: Roots = frozenset()
_CONTAINERS = frozenset({"list", "tuple", "dict", "object", "optional"})


@dataclass
class Touched:
    """What the blocks of one node do to tensors from outside.

    written: tensors that own memory outside and may be written inside.   lost: tensors of which nobody knows whether they are.
    same: carried positions that stay one tensor throughout.   carried: the memory that each other position may lie in.
    candidates: by carried position the tensors from outside that it may be, if it is no mere view of one.
    shared: pairs of positions that may be one tensor in the next turn.   stale: lists that a turn puts something into that is written too.
    changed: lists from outside that get other items.
    """

    written: dict[Value, None] = field(default_factory=dict)
    lost: dict[Value, None] = field(default_factory=dict)
    same: set[int] = field(default_factory=set)
    carried: dict[int, Roots] = field(default_factory=dict)
    candidates: dict[int, list[Value]] = field(default_factory=dict)
    shared: list[tuple[int, int]] = field(default_factory=list)
    stale: set[Value] = field(default_factory=set)
    changed: dict[Value, None] = field(default_factory=dict)
    inner: set[Value] = field(default_factory=set)


class Origins:
    """For each tensor the values in whose memory it may lie; linear in the number of nodes."""

    def __init__(self, graph: Graph):
        self.of: dict[Value, Roots] = {}
        self.exact: dict[Value, Value] = {}  # values that are another one, and no mere view of it
        self.maybe: dict[Value, Roots | None] = {}  # those that may be one of several; None: or a view
        self.touched: dict[Node, Touched] = {}
        self._ever: set[Value] = set()  # all that may be written anywhere
        self._drawn: set[Value] = set()  # out of containers
        self._near: dict[Value, Roots] = {}  # by what a loop carries, and results, the memory that they may be inside
        self._holders: dict[Value, set[Value]] = {}  # the lists that something was put into
        self._created: list[set[Value]] = [set()]
        self._written: list[dict[Value, None]] = [{}]
        self._changed: list[dict[Value, None]] = [{}]
        self._late: list[set[Value]] = [set()]  # lists that hold what is written afterwards
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

    def matters(self, values: Iterable[Value]) -> bool:
        """Whether one of these may share memory with what is written somewhere."""
        return self._anything or any(not self._relevant.isdisjoint(self.roots(value)) for value in values)

    @functools.cached_property
    def _relevant(self) -> set[Value]:
        """What is written, and what may be it in a block."""
        beside: dict[Value, set[Value]] = {root: set(lists) for root, lists in self._holders.items()}
        for value, roots in self._near.items():
            beside.setdefault(value, set()).update(roots)
            for root in roots:
                beside.setdefault(root, set()).add(value)
        found, stack = set(self._ever), list(self._ever)
        while stack:
            new = beside.get(stack.pop(), set()) - found
            found |= new
            stack += new
        return found

    @functools.cached_property
    def _anything(self) -> bool:
        """Whether something is written that is in a container, or came out of one."""
        return any(value in self._drawn or value.kind not in ("tensor", "optional") for value in self._ever)

    def _write(self, arg: Arg) -> None:
        roots = self.roots(arg)
        self._written[-1].update(dict.fromkeys(roots))
        self._ever |= roots
        for root in roots & self._holders.keys():
            self._late[-1] |= self._holders[root]

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            self._node(node)

    def _node(self, node: Node) -> None:
        if node.blocks:
            self._nested(node)
            return
        schema = node.schema
        if changes_list(node):
            self._changed[-1].update({root: None for root in self.roots(next(node.inputs(), None)) if root.kind == "list"})
            held, *items = node.inputs()
            for root in self.roots(items):
                self._holders.setdefault(root, set()).update(self.roots(held))
            same = node.op != "aten::pop" and len(node.outputs) == 1 and held.kind == node.outputs[0].kind == "list"
            self._give(node, self.roots(held) if same else _NONE)
            if same:
                self.exact[node.outputs[0]] = self.exactly(held)
            else:
                self._drawn.update(node.outputs)
        elif schema is not None and schema.writes:
            for name in schema.writes:
                self._write(node.args.get(name))
            self._give(node, self.roots(node.args.get(schema.writes[0])))
            if schema.writes == ("self",) and node.op not in METADATA and len(node.outputs) == 1:
                self.exact[node.outputs[0]] = self.exactly(node.args["self"])
        elif statistics.updates(node):
            for name in ("running_mean", "running_var"):
                self._write(node.args.get(name))
            self._give(node, _NONE)
        elif node.op in views.CASTS:
            self._give(node, self.roots(list(node.args.values())))
            self.exact[node.outputs[0]] = self.exactly(next(iter(node.args.values())))
        elif views.is_view(node):
            source = node.args[views.source_name(node)]
            own = frozenset(node.outputs) if views.depends(node) else _NONE
            self._give(node, self.roots(source) | own)
            if own and views.depends_on_dtype(node):
                self.maybe[node.outputs[0]] = self._alternatives(source, set())
        elif node.op == "aten::__getitem__":
            self._give(node, self.roots(node.args.get("list")))
            self._drawn.update(node.outputs)
        elif schema is not None and schema.aliases:
            self._give(node, self.roots([node.args.get(name) for name in schema.aliases]))
        elif node.op in ("prim::ListConstruct", "prim::DictConstruct"):
            self._give(node, self.roots(list(node.args.values())) | {node.outputs[0]})
        elif node.op.startswith("prim::"):
            self._give(node, self.roots(list(node.args.values())))
        else:
            self._give(node, _NONE)
            if any(value.kind in _CONTAINERS for value in node.inputs()):
                self._drawn.update(node.outputs)
            for output in node.outputs:
                if output.kind in _CONTAINERS:
                    self.of[output] = self.roots(list(node.args.values())) | {output}

    def _give(self, node: Node, roots: Roots) -> None:
        for output in node.outputs:
            if roots:
                self.of[output] = roots
            self._created[-1].add(output)

    def _nested(self, node: Node) -> None:
        self._created.append(set())
        self._written.append({})
        self._changed.append({})
        self._late.append(set())
        touched = self.touched[node] = Touched()
        if node.op == "prim::Loop":
            self._loop(node, touched)
        else:
            for block in node.blocks:
                self._created[-1].update(block.inputs)
                self._block(block)
        created, written, changed = self._created.pop(), self._written.pop(), self._changed.pop()
        late = self._late.pop()
        self._late[-1] |= late
        touched.changed = {root: None for root in changed if root not in created}
        self._changed[-1].update(touched.changed)
        touched.inner = created
        touched.written = {root: None for root in written if root not in created and root.kind in ("tensor", "optional", "list")}
        touched.lost = {root: None for root in touched.lost if root not in created}
        self._created[-1] |= created
        for root in (*touched.written, *touched.lost):
            self._written[-1][root] = None
        for index, output in enumerate(node.outputs):
            self.of[output] = self._result(node, index, created) | {output}
            self._near[output] = self.roots([block.outputs[index + (node.op == "prim::Loop")] for block in node.blocks])
            one = self._one(node, index, touched)
            if one is not None and one not in created:
                self.exact[output] = one
                self.of[output] = self.roots(one)
            elif node.op != "prim::Scan":
                self.maybe[output] = self._of_results(node, index, touched, created)
            self._created[-1].add(output)

    def _of_results(self, node: Node, index: int, touched: Touched, created: set[Value]) -> Roots | None:
        """The values from outside that a result may be."""
        if node.op == "prim::Loop":
            known = touched.candidates.get(index)
            return None if known is None else frozenset(known)
        found = [self._alternatives(block.outputs[index], created) for block in node.blocks]
        return None if None in found else frozenset().union(*found)  # type: ignore[arg-type]

    def _alternatives(self, arg: Arg, created: set[Value]) -> Roots | None:
        """The values from outside (not `created`) that a value may be; None where it may be a view of one."""
        if not isinstance(arg, Value) or arg.kind in NUMBERS:
            return None if list(values_in(arg)) else _NONE
        found: set[Value] = set()
        seen: set[Value] = set()
        stack = [arg]
        while stack:
            value = self.exact.get(top := stack.pop(), top)
            if value in seen:
                continue
            seen.add(value)
            inner = self.maybe.get(value, _NONE)
            if value.kind not in ("tensor", "optional") or (value in created and inner is None):
                return None
            if value not in created:
                found.add(value)
            elif value in self.maybe:
                stack += inner or ()
            elif self.roots(value) - created:
                return None
        return frozenset(found)

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
        self._candidates(node, touched)
        for index, value in enumerate(carried):
            after, before = self.roots(body.outputs[index + 1]), self.roots(node.args[str(index + 2)])
            if value.kind not in NUMBERS:
                self._near[value] = before | after
                touched.carried[index] = (before | after) - {value}
            start = node.args[str(index + 2)]
            if value.kind == "list" and value in self._changed[-1]:
                self._changed[-1].update({root: None for root in before if root.kind == "list"})
            if value.kind not in ("tensor", "optional", "list"):
                continue
            if self.exactly(body.outputs[index + 1]) is value and isinstance(start, Value):
                touched.same.add(index)
                if value in written:
                    self._write(start)
            elif index in touched.candidates:
                if value in written:
                    self._write(touched.candidates[index])
            elif value in written:
                touched.lost.update(dict.fromkeys((*before, *(root for root in after if root is not value))))
                others = [root for root in after if root in inner and root is not value]
                touched.lost.update(dict.fromkeys(root for other in others for root in self.roots(node.args[str(carried.index(other) + 2)])))
        self._stale(body, touched)

    def _candidates(self, node: Node, touched: Touched) -> None:
        """What each carried tensor may be: what was there before, what a turn assigns from outside, and what another one was."""
        (body,) = node.blocks
        carried = body.inputs[1:]
        created = self._created[-1]
        places = {value: index for index, value in enumerate(carried)}
        found: dict[int, dict[Value, None] | None] = {}
        near: dict[int, set[int]] = {}
        for index, value in enumerate(carried):
            start = node.args[str(index + 2)]
            alternatives = self._alternatives(body.outputs[index + 1], created - set(places))
            listed = isinstance(start, Value) and start.kind not in (*NUMBERS, "tensor", "optional")
            if value.kind not in ("tensor", "optional") or alternatives is None or listed:
                found[index] = None
                continue
            begin = {self.exactly(start): None} if isinstance(start, Value) and start.kind not in NUMBERS else {}
            found[index] = {**begin, **{v: None for v in alternatives if v not in places}}
            near[index] = {places[v] for v in alternatives if v in places}
        self._spread(found, near)
        touched.candidates = {index: list(values) for index, values in found.items() if values is not None}
        self._sharing(node, touched)

    def _spread(self, found: dict[int, dict[Value, None] | None], near: dict[int, set[int]]) -> None:
        """Each is also what those are that it is assigned from."""
        changed = True
        while changed:
            changed = False
            for index, others in near.items():
                for other in others:
                    own, more = found[index], found[other]
                    if own is not None and (more is None or not more.keys() <= own.keys()):
                        found[index] = None if more is None else {**own, **more}
                        changed = True

    def _sharing(self, node: Node, touched: Touched) -> None:
        """Carried tensors that are one in the next turn."""
        (body,) = node.blocks
        created = self._created[-1]
        results = {index: self.roots(output) & created for index, output in enumerate(body.outputs[1:])}
        owners: dict[Value, int] = {}
        for index, roots in results.items():
            for root in roots:
                first = owners.setdefault(root, index)
                if first != index:
                    touched.shared.append((first, index))

    def _stale(self, body: Block, touched: Touched) -> None:
        """Lists into which a turn puts what it then, or the next one, writes into."""
        touched.stale |= {root for root in self._late[-1] if root.kind not in ("tensor", "optional")}
        made = self._created[-1] - set(body.inputs)  # anew in each turn
        written = set(self._written[-1]) - made
        for value, output in zip(body.inputs[1:], body.outputs[1:], strict=True):
            if value in written:
                written |= self.roots(output)
        for inner in walk(body):
            if changes_list(inner):
                container, *items = inner.inputs()
                if not written.isdisjoint(self.roots(items)):
                    touched.stale.update(root for root in self.roots(container) if root.kind not in ("tensor", "optional"))
        touched.lost.update(dict.fromkeys(touched.stale))
