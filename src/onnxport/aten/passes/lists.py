"""Lists of tensors that are written into: a list whose items are known is linked to each of them, and an item is a part of its list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxport.aten.graph import Arg, Block, Node, Value
from onnxport.aten.passes import links, views

if TYPE_CHECKING:
    from onnxport.aten.passes.places import Memory, Place, Storage

_MOST = 16  # items of a list that is linked to them; each write at a place that is not known asks for each of them


def is_tensor(arg: Arg) -> bool:
    """Whether it is a tensor, or may be one."""
    return isinstance(arg, Value) and arg.kind in ("tensor", "optional")


def is_item(node: Node) -> bool:
    """Whether a node takes a tensor out of a list."""
    held = node.args.get("list") if node.op == "aten::__getitem__" else None
    return isinstance(held, Value) and held.kind == "list" and is_tensor(node.outputs[0])


def name(block: Block) -> None:
    """Gives a value to each list of tensors that is written in place of an argument, and out of which one is taken."""
    made = []
    for node in block.nodes:
        held = node.args.get("list") if node.op == "aten::__getitem__" else None
        if isinstance(held, list) and held and all(map(is_tensor, held)):
            node.args["list"] = Value("list")
            made.append(Node("prim::ListConstruct", "", {str(i): item for i, item in enumerate(held)}, [node.args["list"]], scope=node.scope,
                             source=node.source))
        made.append(node)
        for inner in node.blocks:
            name(inner)
    block.nodes = made


# --- which items there are --------------------------------------------------------------------------------------------------------


def items_of(memory: Memory, arg: Arg) -> list[Place] | None:
    """Where the items of a list lie; None where nobody knows."""
    if isinstance(arg, Value):
        place = memory.places.get(arg)
        known = place is not None and place.storage.length is not None and place is place.storage.root
        return [link.place for link in place.storage.links] if known else None  # type: ignore[union-attr]
    if isinstance(arg, (list, tuple)) and all(map(is_tensor, arg)):
        return [memory.place(item) for item in arg]
    return None


def result(memory: Memory, node: Node) -> list[Place] | None:
    """The items of the list that a node makes, or changes; None where nobody knows."""
    args = list(node.args.values())
    if node.op == "prim::ListConstruct":
        found = items_of(memory, args)
    else:
        rule = _RULES.get(node.op)
        first = items_of(memory, args[0]) if rule is not None and args else None
        found = None if rule is None or first is None else rule(memory, first, *args[1:])
    return found if found is None or len(found) <= _MOST else None


def _joined(memory: Memory, first: list[Place], other: Arg = None, *_: Arg) -> list[Place] | None:
    more = items_of(memory, other)
    return None if more is None else first + more


def _appended(memory: Memory, first: list[Place], item: Arg = None, *_: Arg) -> list[Place] | None:
    return [*first, memory.place(item)] if is_tensor(item) else None


def _inserted(memory: Memory, first: list[Place], index: Arg, item: Arg) -> list[Place] | None:
    if not isinstance(index, int) or not is_tensor(item):
        return None
    return [*first[:index], memory.place(item), *first[index:]] if index or first else [memory.place(item)]


def _replaced(memory: Memory, first: list[Place], index: Arg, item: Arg) -> list[Place] | None:
    if not isinstance(index, int) or not is_tensor(item) or not -len(first) <= index < len(first):
        return None
    index %= len(first)
    return [*first[:index], memory.place(item), *first[index + 1:]]


def _sliced(memory: Memory, first: list[Place], start: Arg = None, end: Arg = None, step: Arg = 1) -> list[Place] | None:
    return None if any(isinstance(place, Value) for place in (start, end, step)) else first[start:end:step]


_RULES: dict[str, Callable[..., list[Place] | None]] = {
    "aten::append": _appended, "aten::extend": _joined, "aten::add_": _joined, "aten::add": _joined, "aten::insert": _inserted,
    "aten::_set_item": _replaced, "aten::slice": _sliced, "aten::reverse": lambda memory, first: first[::-1],
    "aten::clear": lambda memory, first: [], "aten::list": lambda memory, first: first, "aten::copy": lambda memory, first: first,
}


# --- links ------------------------------------------------------------------------------------------------------------------------


def fill(memory: Memory, storage: Storage, items: list[Place]) -> None:
    """Links a list to its items."""
    _unlink(storage)
    for other in storage.sources:
        other.users.pop(storage, None)
    storage.sources = {}
    for position, item in enumerate(items):
        node = Node("aten::__getitem__", "t", {"list": storage.root.value, "idx": position}, [])
        if not links.add(storage, links.Link(True, memory.grow(storage.root, node, item.value.like()), item)):
            open_up(memory, storage)
            return
    storage.length = len(items)


def open_up(memory: Memory, storage: Storage) -> None:
    """From here on nobody knows where in a list its items are."""
    for target in _unlink(storage):
        memory.overlap(storage, target)


def _unlink(storage: Storage) -> list[Storage]:
    """Takes a list's links from it; what it was linked to."""
    found = [link.place.storage for link in storage.links]
    for link in storage.links:
        link.place.storage.followers.pop(storage, None)
        if link.own.node is not None:
            storage.root.children.pop(views.key(link.own.node), None)
    storage.links, storage.length = [], None
    return found


def cut_off(memory: Memory, storage: Storage) -> None:
    """Before a list changes its items: what was taken out of it stays what it was."""
    kept = {link.own for link in storage.links}
    for child in [child for child in storage.root.children.values() if child not in kept]:
        memory.overlap(memory.cut(child), storage)


def is_at(memory: Memory, place: Place, own: Place) -> Arg:
    """Whether the item of a list that was written, or a part of it, is the one at `own`."""
    while place.parent is not own.parent:
        assert place.parent is not None
        place = place.parent
    index, position, length = _index(place), _index(own), place.storage.length
    assert length is not None
    if isinstance(index, int):
        return index % length == position
    front, back = [memory.make.emit("aten::eq", "int", Value("bool"), a=index, b=wanted) for wanted in (position, position - length)]
    return memory.make.emit("aten::__or__", "bool", Value("bool"), a=front, b=back)


def _index(place: Place) -> Any:
    assert place.node is not None
    return place.node.args["idx"]
