"""Rewrites the blocks of one If or Loop: what they write outside becomes a result, and of their own results it is told which memory they are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from onnxport import errors
from onnxport.aten.graph import NUMBERS, Arg, Block, Node, Value, is_memory, values_in
from onnxport.aten.passes import views
from onnxport.aten.passes.origins import Touched
from onnxport.aten.passes.places import Memory, Place, Storage
from onnxport.aten.source import where

if TYPE_CHECKING:
    from onnxport.aten.passes.functionalise import Functionaliser


@dataclasses.dataclass
class End:
    """What a result of a block is when the block is left.

    place: where it lies.   links: the conditions, as the block knows them, under which it is a place from outside.
    inner: memory of the block's own that it may be.   clear: whether this says it all.
    """

    place: Place | None = None
    links: list[tuple[Arg, Place]] = dataclasses.field(default_factory=list)
    inner: list[Storage] = dataclasses.field(default_factory=list)
    clear: bool = True


class Blocks:
    """The blocks of one If or Loop while they are rewritten. storages: those from outside that they write into."""

    def __init__(self, outer: Functionaliser, node: Node, touched: Touched, storages: list[Storage]):
        self.outer, self.node, self.touched, self.storages = outer, node, touched, storages
        self.memory: Memory = outer.memory
        self.first = 1 if node.op == "prim::Loop" else 0
        self.given = dict(node.args)  # before they are brought up to date: the names of places
        self.ends: list[list[End]] = []
        self.candidates: list[list[Value]] = [[] for _ in node.outputs]
        self.own: set[Value] = set()  # what the blocks compute themselves
        self.flags: dict[int, list[tuple[Value, Place]]] = {}  # of a Loop: whether a carried tensor is a place from outside
        self.unknown: set[int] = set()  # what a Loop carries, and does not write into, of which that cannot be told

    # --- rewriting ------------------------------------------------------------------------------------------------------------

    def rewrite(self) -> None:
        """Rewrites the blocks; each ends with the content of what was written as further outputs."""
        node, memory = self.node, self.memory
        if self.first:
            self.before()
        frozen = [memory.freeze(storage) for storage in self.storages]
        starts: list[Arg] = [storage.root.value for storage in self.storages]
        for block in node.blocks:
            carried: list[Value | None] = [storage.root.value.like() for storage in self.storages] if self.first else [None] * len(self.storages)
            self.inside(block, carried)
            for restore in frozen:
                restore()
            block.inputs += [value for value in carried if value is not None]
        if self.first:
            for index, flags in self.flags.items():
                start = self.given[str(index + 2)]
                place = memory.places.get(start) if isinstance(start, Value) else None
                starts += [place is not None and place.uncast() is candidate.uncast() for _, candidate in flags]
                node.blocks[0].inputs += [flag for flag, _ in flags]
            for start in starts:
                node.args[str(len(node.args))] = start

    def before(self) -> None:
        """A turn reads what the turn before wrote: of containers that hold it nobody knows what is in them."""
        for storage in self.storages:
            if storage.sources or storage.users:
                storage.lose(self.node)

    def inside(self, block: Block, carried: list[Value | None]) -> None:
        """Rewrites one block."""
        outer, memory = self.outer, self.memory
        kept = outer.make.nodes, memory.block, memory.defined, memory.undo
        nodes, block.nodes = block.nodes, []
        outer.make.nodes, memory.block, memory.defined, memory.undo = block.nodes, block, {*block.inputs}, []
        for storage, value in zip(self.storages, carried, strict=True):
            memory.enter(storage, block, value)
        self.agree()
        for index in self.touched.same:
            start = self.given[str(index + 2)]
            if isinstance(start, Value) and start in memory.places:
                memory.places[block.inputs[index + 1]] = memory.places[start]
        if self.first:
            self.carried(block)
        for inner in nodes:
            outer.node(inner)
        self.own |= {*block.inputs, *(value for made in block.nodes for value in made.outputs)}
        self.ends.append([self.end(block, output) for output in block.outputs[self.first:]])
        for index, output in enumerate(block.outputs[self.first:]):
            self.candidates[index] += [value for value in values_in(output) if is_memory(value)]
        block.outputs = [memory.current(output) for output in block.outputs]
        block.outputs += [memory.own(storage.root) if storage.lost else memory.read(storage.root) for storage in self.storages]
        if self.first:
            self.turned(block)
        for forget in reversed(memory.undo):
            forget()
        outer.make.nodes, memory.block, memory.defined, memory.undo = kept

    def agree(self) -> None:
        """What is carried together with what it is linked to agrees with it."""
        for storage in self.storages:
            for link in storage.links:
                if link.place.storage in self.storages:
                    link.seen = link.place.storage.version

    # --- what a loop carries --------------------------------------------------------------------------------------------------

    def carried(self, block: Block) -> None:
        """What a loop carries is in its first turn what was there before, and then what the turn before gave."""
        memory, touched = self.memory, self.touched
        changing = {index: roots for index, roots in touched.carried.items() if index not in touched.same}
        for index, roots in changing.items():
            value = block.inputs[index + 1]
            if not self.outer.origins.matters([value, self.node.outputs[index], *roots]):
                continue
            if index in touched.candidates:
                self.flags[index] = [(Value("bool"), memory.place(candidate)) for candidate in touched.candidates[index]]
                memory.link(value, list(self.flags[index]))
            else:
                memory.may_be(value, [root for root in roots if root not in touched.inner or root in block.inputs])
        for one, other in touched.shared:
            if one in changing and other in changing:
                memory.overlap(memory.place(block.inputs[one + 1]).storage, memory.place(block.inputs[other + 1]).storage)
        for container in touched.stale:
            if container in block.inputs:
                memory.place(container).storage.lost = self.node

    def turned(self, block: Block) -> None:
        """The end of a turn: which places from outside the carried tensors are now; what was written is in containers since the turn before."""
        for index, flags in self.flags.items():
            end = self.ends[0][index]
            candidates = [candidate.uncast() for _, candidate in flags]
            if not end.clear or any(place.uncast() not in candidates for _, place in end.links):
                self.unknown.add(index)
            if index in self.unknown and (self.storages or self.memory.place(block.inputs[index + 1]).storage.version):
                raise errors.UnsupportedError(
                    f"a loop assigns a variable, which it also writes into, a part of another tensor; clone it\n  at {where(self.node.source)}")
            block.outputs += [self.any_of([condition for condition, place in end.links if place.uncast() is candidate]) for candidate in candidates]
        for storage in self.storages:
            if storage.sources or storage.users:
                storage.lose(self.node)

    def any_of(self, conditions: list[Arg]) -> Arg:
        """Whether one of these holds."""
        if not conditions or True in [c for c in conditions if isinstance(c, bool)]:
            return bool(conditions)
        return self.joined("aten::__or__", conditions)

    def joined(self, op: str, conditions: list[Arg]) -> Arg:
        """Several conditions as one; none of them is known."""
        result, *others = conditions
        for other in others:
            made = Value("bool")
            self.outer.make.append(op, "bool", {"a": result, "b": other}, [made])
            result = made
        return result

    # --- what a result is -----------------------------------------------------------------------------------------------------

    def end(self, block: Block, output: Arg) -> End:
        """What a result of a block is."""
        if not isinstance(output, Value) or output.kind in NUMBERS:
            return End(clear=not any(map(is_memory, values_in(output))))
        if output.kind not in ("tensor", "optional"):
            return End(self.memory.places.get(output), clear=False)
        place = self.memory.place(output)
        end = End(place)
        self.reach(block, place, [], end)
        return end

    def reach(self, block: Block, place: Place, conditions: list[Arg], end: End) -> None:
        """Adds what `place` is where these conditions hold."""
        storage = place.storage
        if storage in self.storages or storage.block is not block:
            end.links.append((self.joined("aten::__and__", conditions) if conditions else True, place))
            return
        below = storage.below()
        if any(other in self.storages or other.block is not block for other in below) or (storage.links and place.uncast() is not storage.root):
            end.clear = False
        for link in storage.links:
            if link.condition is not False:
                self.reach(block, link.place, conditions if link.condition is True else [*conditions, link.condition], end)
        end.inner += [storage, *below]

    # --- results --------------------------------------------------------------------------------------------------------------

    def results(self) -> None:
        """What the node's results are: names of places, tensors that may lie in several, new content of what was written."""
        node, memory = self.node, self.memory
        roots = [storage.root.value.like() for storage in self.storages]
        for storage, root in zip(self.storages, roots, strict=True):
            memory.assign(storage, root, storage.writer or node)
        self.agree()
        results, node.outputs = node.outputs, [*node.outputs, *roots]
        homes: dict[Storage, Storage] = {}
        for index, output in enumerate(results if node.op != "prim::Scan" else ()):
            place = self.one_place(index)
            if place is not None:
                self.outer.becomes(output, place)
                continue
            if not self.outer.origins.matters([output, *self.touched.carried.get(index, ())]):
                continue
            found = self.links(index) if output.kind in ("tensor", "optional") else None
            if found is not None and len(found) == 1 and found[0][0] is True:
                self.outer.becomes(output, found[0][1])
            elif found is not None:
                memory.link(output, found)
                self.share(index, output, homes)
            else:
                self.unclear(index, output)

    def unclear(self, index: int, output: Value) -> None:
        """A result that may be, or hold, what is given to it."""
        candidates = list(self.candidates[index])
        if self.first:
            candidates += [value for value in values_in(self.given[str(index + 2)]) if is_memory(value)]
        if candidates and is_memory(output):
            self.memory.may_be(output, candidates)

    def links(self, index: int) -> list[tuple[Arg, Place]] | None:
        """The places that a result may be, with conditions as they are known outside; None where that cannot be told."""
        if self.first:
            if index not in self.flags:
                return None
            flags = [(Value("bool"), place) for _, place in self.flags[index]]
            self.node.outputs += [flag for flag, _ in flags]
            return None if index in self.unknown else list(flags)
        found: list[tuple[int, Arg, Place]] = []
        for which, ends in enumerate(self.ends):
            if not ends[index].clear:
                return None
            for condition, inner in ends[index].links:
                place = self.outside(inner)
                if place is None:
                    return None
                found.append((which, condition, place))
        if [(which, condition) for which, condition, _ in found] == [(0, True), (1, True)] and found[0][2] is found[1][2]:
            return [(True, found[0][2])]
        return [(self.shown(which, condition), place) for which, condition, place in found]

    def outside(self, place: Place) -> Place | None:
        """A place as it is known outside; None where it was made of numbers that are computed in the block."""
        parent, node = place.parent, place.node
        if parent is None or node is None:
            return place if parent is None else None
        above = self.outside(parent)
        if above is None or place.pieces is not None:
            return None
        known = above.children.get(views.key(node))
        if known is not None:
            return known
        name = views.source_name(node)
        if any(value in self.own for arg, given in node.args.items() if arg != name for value in values_in(given)):
            return None
        return self.memory.grow(above, node, place.value.like())

    def shown(self, which: int, condition: Arg) -> Arg:
        """A condition of one block as a result: false where the other block runs."""
        shown = Value("bool")
        for position, block in enumerate(self.node.blocks):
            block.outputs.append(condition if position == which else False)
        self.node.outputs.append(shown)
        return shown

    def share(self, index: int, output: Value, homes: dict[Storage, Storage]) -> None:
        """Results, and containers from outside, that lie in or hold the same memory of a block's own."""
        memory = self.memory
        own = memory.place(output).storage
        for inner in {storage: None for ends in self.ends for storage in ends[index].inner}:
            memory.overlap(own, homes.setdefault(inner, own))
            for user in list(inner.users):
                memory.overlap(user, own)
        for one, other in self.touched.shared:
            if other == index:
                memory.overlap(own, memory.place(self.node.outputs[one]).storage)

    def one_place(self, index: int) -> Place | None:
        """The one place that a result always is."""
        if self.first:
            start = self.given[str(index + 2)]
            return self.memory.place(start) if index in self.touched.same and isinstance(start, Value) else None
        first, second = (ends[index].place for ends in self.ends)
        return first if first is second else None


def free(node: Node) -> set[Value]:
    """The values from outside that the blocks of a node mention."""
    found: set[Value] = set()
    for block in node.blocks:
        own = set(block.inputs)
        found.update(values_in(block.outputs))
        for inner in block.nodes:
            found.update(inner.inputs())
            found |= free(inner)
            own.update(inner.outputs)
        found -= own
    return found
