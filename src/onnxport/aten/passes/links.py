"""Tensors that lie in the memory of another where a condition holds that only the running model knows.

`y = a if c else b` is `a`, or it is `b`; a variable that a loop assigns is the tensor from before the loop until it is assigned. Both are
carried: `y` has a content of its own, and a link with its condition to each tensor that it may be. A write into `y` is passed on to these
at once, each in an If; what is written into one of them is fetched, in an If, when `y` is read next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from onnxport.aten.graph import Arg, Block, Node, Value
from onnxport.aten.passes import lists, views

if TYPE_CHECKING:
    from onnxport.aten.passes.places import Memory, Place, Storage

DEEPEST = 32  # links of links; each read goes through all of them


class Link:
    """Where `condition` holds, `own`, the storage or an item of the list in it, is the memory at `place`.

    seen: the version of that memory which both have.
    """

    __slots__ = ("condition", "own", "place", "seen")

    def __init__(self, condition: Arg, own: Place, place: Place):
        self.condition, self.own, self.place, self.seen = condition, own, place, place.storage.version


def connect(storage: Storage, found: list[tuple[Arg, Place]]) -> None:
    """Gives a storage its links."""
    for condition, place in found:
        add(storage, Link(condition, storage.root, place))


def add(storage: Storage, link: Link) -> bool:
    """Gives a storage a link; false where it would be one of too many, and nobody knows then when it is that memory."""
    target = link.place.storage
    if target.depth + 1 > DEEPEST:
        storage.sources[target] = target.users[storage] = None
        return False
    storage.depth = max(storage.depth, target.depth + 1)
    storage.links.append(link)
    target.followers[storage] = None
    return True


def reached(storages: list[Storage]) -> list[Storage]:
    """These, and the memory that a write into them is passed on to."""
    found = dict.fromkeys(storages)
    for storage in (stack := list(found)):
        more = [link.place.storage for link in storage.links if link.place.storage not in found]
        found.update(dict.fromkeys(more))
        stack += more
    return list(found)


def follow(memory: Memory, storage: Storage) -> None:
    """Fetches what was written into memory that a storage is linked to."""
    for link in storage.links:
        target = link.place.storage
        follow(memory, target)
        if target.lost is not None:
            storage.lost = storage.lost or target.lost
        elif link.seen != target.version:
            memory.remember(storage)
            value = chosen(memory, link.condition, link.place, lambda link=link: memory.own(link.place), memory.own(link.own))  # type: ignore[misc]
            memory.put(link.own, value, target.writer or memory.make.origin)
            link.seen = target.version


def pass_on(memory: Memory, place: Place, writer: Node) -> None:
    """Writes what was written at a place into the memory that its storage is linked to."""
    for link in list(place.storage.links):
        condition = link.condition if link.own is place.storage.root else lists.is_at(memory, place, link.own)
        if condition is False:
            continue
        target, value = link.place.storage, memory.own(link.own)
        before = memory.read(target.root)
        agreed = link.seen == target.version
        made = chosen(memory, condition, link.place, lambda link=link, value=value: _with(memory, link.place, value), before)  # type: ignore[misc]
        memory.check(target, writer)
        memory.put(target.root, made, writer)
        pass_on(memory, link.place, writer)
        if agreed:  # else another link has changed it meanwhile, which is fetched when this storage is read next
            link.seen = target.version


def chosen(memory: Memory, condition: Arg, place: Place, make: Callable[[], Value], otherwise: Value) -> Value:
    """What `make` gives, which reads the storage of `place`, where the condition holds, and `otherwise` where not: an If."""
    if isinstance(condition, bool):
        memory.remember(place.storage)
        return make() if condition else otherwise
    nodes, then, other = memory.make.nodes, Block(), Block()
    restore = memory.snapshot(place.storage)
    memory.make.nodes = then.nodes
    try:
        then.outputs = [make()]
    finally:
        memory.make.nodes = nodes
        restore()
    other.outputs = [otherwise]
    result = otherwise.like()
    node = memory.make.append("prim::If", "", {"0": condition}, [result])
    node.blocks = [then, other]
    return result


def _with(memory: Memory, place: Place, value: Value) -> Value:
    """The content of a whole storage with `value` at one of its places."""
    chain = [place]
    while chain[-1] is not place.storage.root:
        holder = chain[-1].holder()
        assert holder is not None
        chain.append(holder)
    for child, parent in itertools.pairwise(chain):
        value = _put(memory, child, memory.own(parent), value)
    return value


def _put(memory: Memory, child: Place, parent: Value, value: Value) -> Value:
    assert child.node is not None
    if child.pieces is None:
        return views.put_back(memory.make, child.node, parent, value)
    return views.put_piece(memory.make, child.split(), child.index, parent, value)
