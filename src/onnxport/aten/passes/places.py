"""Where tensors lie: storages, the views that look at them, and which of these hold the newest content.

Every tensor that may be written, or that looks at one, has a `Place`: a storage and the chain of views that leads to it.
A write gives the place a new value; the storage remembers which place holds its newest content. Only when another place of
that storage is read is the content put back through the views, and only the places that are read are made anew from it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Node, Value, replaced
from onnxport.aten.make import Maker
from onnxport.aten.passes import links, views
from onnxport.aten.passes.links import Link
from onnxport.aten.source import where


class Storage:
    """One piece of memory.

    version: counts writes. clean: the version that `root` holds. dirty: the place that holds a newer one; what lies above it
    is of the clean version then. block: where it was made, or the block that carries it (None: outside the block that is being
    rewritten). links: places that this memory is where a condition holds (a list: its items are), and followers: those that have such
    links to this one. length: of a list whose items all are in `links`.
    sources: others that it may be, or hold, and nobody knows when; users: the other way round. Once one is written, nobody knows what
    the others hold. lost: the node that made this one unknown so.
    """

    __slots__ = ("block", "clean", "depth", "dirty", "followers", "length", "links", "lost", "root", "sources", "users", "version", "writer")

    def __init__(self, root: Value, block: Block | None):
        self.root = Place(self, None, None, root)
        self.version = self.clean = 0
        self.dirty: Place | None = None
        self.writer: Node | None = None
        self.block = block
        self.links: list[Link] = []
        self.depth = 0
        self.length: int | None = None
        self.followers: dict[Storage, None] = {}
        self.sources: dict[Storage, None] = {}
        self.users: dict[Storage, None] = {}
        self.lost: Node | None = None

    def lose(self, writer: Node) -> None:
        """All that may be the same memory is unknown from here on, but for what is linked to it."""
        below = self.below()
        for other in below:
            other.lost = writer
        seen, stack = {self}, [self, *below]
        while stack:
            other = stack.pop()
            for user in other.users:
                if user not in seen:
                    user.lost = writer
            near = [x for x in (*other.users, *other.followers) if x not in seen]
            seen.update(near)
            stack += near

    def below(self) -> set[Storage]:
        """What it may be or hold, in any number of steps."""
        found: set[Storage] = set()
        stack = list(self.sources)
        while stack:
            other = stack.pop()
            if other is not self and other not in found:
                found.add(other)
                stack += [*other.sources, *(link.place.storage for link in other.links)]
        return found


class Place:
    """A way to look at a storage. node: the view that leads here from `parent`; value: the content at `version`.

    pieces: of a list's unpacked parts, all of them, this one among them.
    """

    __slots__ = ("children", "index", "node", "parent", "pieces", "storage", "value", "version")

    def __init__(self, storage: Storage, parent: Place | None, node: Node | None, value: Value):
        self.storage, self.parent, self.node, self.value = storage, parent, node, value
        self.version = 0 if parent is None else storage.version
        self.children: dict[Any, Place] = {}
        self.pieces: list[Place] | None = None
        self.index = 0

    def holder(self) -> Place | None:
        """The tensor that this place is a part of (a piece of a list is part of what was split)."""
        parent = self.parent
        return parent.parent if self.pieces is not None and parent is not None else parent

    def uncast(self) -> Place:
        """The place that this one is under another type."""
        place = self
        while place.parent is not None and place.node is not None and place.node.op in views.CASTS:
            place = place.parent
        return place

    def split(self) -> Node:
        """The node that made the list of which this place is a piece."""
        assert self.parent is not None
        assert self.parent.node is not None
        return self.parent.node

    def within(self, other: Place) -> bool:
        """Whether this place is `other` or looks at a part of it through views."""
        place: Place | None = self
        while place is not None and place is not other:
            place = place.parent
        return place is other

    @property
    def newest(self) -> bool:
        """Whether the value is the newest content."""
        return self.version == self.storage.version


class Memory:
    """The places of all values of a graph. Nodes that are needed to read or to put back go to `make`."""

    def __init__(self, make: Maker):
        self.make = make
        self.places: dict[Value, Place] = {}
        # Inside a block of an If or a Loop: that block, what it has computed so far, and how to forget what holds only in it.
        self.block: Block | None = None
        self.defined: set[Value] | None = None
        self.undo: list[Callable[[], Any]] = []

    # --- reading -------------------------------------------------------------------------------------------------------------

    def place(self, value: Value) -> Place:
        """Where a value lies; one that is not known yet has a storage of its own."""
        found = self.places.get(value)
        if found is None:
            inner = self.defined is None or value in self.defined
            found = self.places[value] = Storage(value, self.block if inner else None).root
        return found

    def current(self, arg: Arg) -> Arg:
        """An argument with every value in it brought up to date."""
        return replaced(arg, self.newest)

    def newest(self, value: Value) -> Value:
        """The newest content of where a value lies."""
        place = self.places.get(value)
        return value if place is None else self.read(place)

    def any_version(self, value: Value) -> Value:
        """A value of the same sizes, whatever its content."""
        place = self.places.get(value)
        return value if place is None else place.value

    def read(self, place: Place) -> Value:
        """The newest content of a place, made from its parents where it is out of date."""
        links.follow(self, place.storage)
        if place.storage.lost is not None:
            raise errors.UnsupportedError(
                f"a tensor that is used here may share memory with one that is written in place at {where(place.storage.lost.source)}; "
                "clone it before it is written")
        return self.own(place)

    def own(self, place: Place) -> Value:
        """The content of a place as far as its own storage knows."""
        if not place.newest:
            storage = place.storage
            if storage.dirty is not None and not place.within(storage.dirty):
                self.flush(storage)
            self.bring(place, storage.version)
        return place.value

    def bring(self, place: Place, version: int) -> None:
        """Makes a place's value of `version` from the nearest place above that has it."""
        path = []
        while place.version != version:
            path.append(place)
            above = place.holder()
            assert above is not None  # the root holds the clean version, a dirty place the newest
            place = above
        for step in reversed(path):
            self.replay(step, version)

    def replay(self, place: Place, version: int) -> None:
        """Makes the value of one place from that of what it is a part of."""
        node, above = place.node, place.holder()
        assert node is not None
        assert above is not None
        if node.op in views.ONCE:
            raise errors.UnsupportedError(
                f"the result of {node.op} (made at {where(node.source)}, module {node.scope or '?'}) may share memory with a tensor that "
                f"is written in place at {where((place.storage.writer or node).source)}; clone it before it is written")
        origin, self.make.origin = self.make.origin, node
        if place.pieces is not None:
            value = views.take_piece(self.make, place.split(), place.index, above.value, place.value)
        else:
            value = place.value.like()
            self.make.append(node.op, node.overload, {**node.args, views.source_name(node): above.value}, [value])
        place.value, place.version = value, version
        self.make.origin = origin

    # --- writing -------------------------------------------------------------------------------------------------------------

    def write(self, place: Place, value: Value, writer: Node) -> None:
        """Gives a place a new content."""
        links.follow(self, place.storage)
        self.check(place.storage, writer)
        self.put(place, value, writer)
        links.pass_on(self, place, writer)

    def put(self, place: Place, value: Value, writer: Node) -> None:
        """Gives a place a new content, of which those that its storage is linked to know already."""
        storage, before = place.storage, place.storage.version
        dirty = storage.dirty
        inside = dirty is not None and dirty is not place and place.within(dirty)
        if dirty is not None and not inside and not dirty.within(place):
            self.flush(storage)
        if inside:
            holder = place.holder()
            assert holder is not None
            self.bring(holder, before)
        storage.version += 1
        storage.writer = writer
        place.value, place.version = value, storage.version
        if inside:
            assert dirty is not None
            self.put_back(place, dirty, before)
        elif place is storage.root:
            storage.dirty, storage.clean = None, storage.version
        else:
            storage.dirty = place

    def assign(self, storage: Storage, value: Value, writer: Node) -> None:
        """Gives a whole storage the content that a block gave it; what it is linked to was told in there."""
        self.inside(storage, writer)
        self.put(storage.root, value, writer)

    def check(self, storage: Storage, writer: Node) -> None:
        """Before a write: what may be the same memory is unknown then."""
        self.inside(storage, writer)
        if storage.sources or storage.users or storage.followers:
            storage.lose(writer)

    def inside(self, storage: Storage, writer: Node) -> None:
        """Refuses a write that nobody would tell outside of the block."""
        if storage.block is not self.block:
            raise errors.UnsupportedError(
                f"{writer.op} at {where(writer.source)} writes inside a branch or a loop into a tensor from outside; "
                "compute a new tensor there and assign it to the variable")

    def flush(self, storage: Storage) -> None:
        """Puts the newest content back into the whole storage."""
        dirty = storage.dirty
        assert dirty is not None
        origin, self.make.origin = self.make.origin, storage.writer or self.make.origin
        self.put_back(dirty, storage.root, storage.clean)
        storage.clean, storage.dirty = storage.version, None
        self.make.origin = origin

    def put_back(self, place: Place, top: Place, version: int) -> None:
        """Carries the content of `place` up to `top`, whose content and that of what lies between is of `version` so far."""
        chain = [place]
        while chain[-1] is not top:
            holder = chain[-1].holder()
            assert holder is not None
            chain.append(holder)
        if len(chain) > 1:
            self.bring(chain[1], version)
        newest = place.storage.version
        for child, parent in itertools.pairwise(chain):
            parent.value, parent.version = self.put_step(child, parent), newest

    def put_step(self, child: Place, parent: Place) -> Value:
        """The content of `parent` with that of `child` in it."""
        node = child.node
        assert node is not None
        if child.pieces is None:
            return views.put_back(self.make, node, parent.value, child.value)
        return views.put_piece(self.make, child.split(), child.index, parent.value, child.value)

    # --- blocks --------------------------------------------------------------------------------------------------------------

    def remember(self, storage: Storage) -> None:
        """Before the content of a storage from outside is brought up to date in a block: outside it is as it was."""
        if self.defined is not None and storage.block is not self.block:
            self.undo.append(self.snapshot(storage))

    def new(self, output: Value) -> Storage:
        """Memory of its own for what is made now."""
        storage = Storage(output, self.block)
        self.places[output] = storage.root
        return storage

    def may_be(self, output: Value, sources: list[Value]) -> None:
        """`output` may lie where one of `sources` does, or hold it."""
        self.new(output)
        self.hold(output, sources)

    def hold(self, container: Value, values: list[Value]) -> None:
        """A container holds these values: when one of them is written, so is what the container holds."""
        own = self.place(container).storage
        for value in values:
            self.overlap(own, self.place(value).storage)

    def overlap(self, one: Storage, other: Storage) -> None:
        """`one` may be the same memory as `other`, or hold it."""
        if one is not other:
            one.sources[other] = other.users[one] = None

    def link(self, output: Value, found: list[tuple[Arg, Place]]) -> None:
        """`output` lies where one of these places does, as far as a condition of them holds; else in memory of its own."""
        links.connect(self.new(output), found)

    def freeze(self, storage: Storage) -> Callable[[], None]:
        """Gives back how the storage is now, for when a block is left that writes into it."""
        if storage.lost is None:
            links.follow(self, storage)
        self.own(storage.root)
        return self.snapshot(storage)

    def snapshot(self, storage: Storage) -> Callable[[], None]:
        """Gives back how the storage is now."""
        fields = storage.version, storage.clean, storage.dirty, storage.block
        seen = [link.seen for link in storage.links]
        kept = []
        stack = [storage.root]
        while stack:
            place = stack.pop()
            kept.append((place, place.value, place.version, dict(place.children)))
            for child in place.children.values():
                stack += child.pieces or [child]

        def restore() -> None:
            storage.version, storage.clean, storage.dirty, storage.block = fields
            for link, version in zip(storage.links, seen, strict=True):
                link.seen = version
            for place, value, version, children in kept:
                place.value, place.version, place.children = value, version, children

        return restore

    def enter(self, storage: Storage, block: Block, value: Value | None) -> None:
        """Inside `block` the storage may be written; it starts as `value` there (None: as it is)."""
        storage.block = block
        if value is not None:
            storage.version += 1
            storage.root.value, storage.root.version = value, storage.version
            storage.clean, storage.dirty = storage.version, None

    # --- views ---------------------------------------------------------------------------------------------------------------

    def look(self, source: Value, node: Node, outputs: list[Value], key: Any) -> None:
        """`node` has just given views of where `source` lies (several: the pieces of a list). Equal views share one place."""
        parent = self.place(source)
        known = parent.children.get(key)
        if known is None:
            made = [Place(parent.storage, parent, node, output) for output in outputs]
            known = parent.children[key] = made[0]
            if key == PIECES:
                for index, piece in enumerate(made):
                    piece.pieces, piece.index = made, index
            if self.defined is not None:
                self.undo.append(functools.partial(parent.children.pop, key, None))
        for place, output in zip(known.pieces or [known], outputs, strict=True):
            if not place.newest:
                if self.defined is not None:
                    self.undo.append(_restorer(place))
                place.value, place.version = output, place.storage.version
            self.places[output] = place


    def grow(self, parent: Place, node: Node, value: Value) -> Place:
        """A view of `parent` of which there is no content yet."""
        place = parent.children[views.key(node)] = Place(parent.storage, parent, node, value)
        place.version = -1
        if self.defined is not None:
            self.undo.append(functools.partial(parent.children.pop, views.key(node), None))
        return place

    def cut(self, place: Place) -> Storage:
        """Makes a storage of its own of a part of another."""
        self.own(place.storage.root)
        self.own(place)
        assert place.parent is not None
        children, version = place.parent.children, place.storage.version
        for key in [key for key, child in children.items() if child is place]:
            del children[key]
        storage = Storage(place.value, self.block)
        storage.root, place.parent, place.node, stack = place, None, None, [place]
        while stack:
            part = stack.pop()
            part.storage, part.version = storage, 0 if part.version == version else -1
            for child in part.children.values():
                stack += child.pieces or [child]
        return storage


PIECES = "pieces"


def _restorer(place: Place) -> Callable[[], None]:
    value, version = place.value, place.version

    def restore() -> None:
        place.value, place.version = value, version

    return restore
