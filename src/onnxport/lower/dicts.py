"""Dicts of a script. Their keys are known at export; one that the script may change is an object, as lists are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport import errors
from onnxport.aten.graph import Node
from onnxport.lower.python import Keyed, Listed, entries
from onnxport.target.dims import Dim
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

Args = dict[str, Any]


def _of(x: Any) -> dict[Any, Any]:
    found = entries(x)
    if found is None:
        raise errors.UnsupportedError(f"a dict is asked for, and this is of type {type(x).__name__}")
    return found


def known_key(key: Any) -> Any:
    """A key, which has to be a plain value."""
    if isinstance(key, (Dim, Value)):
        raise errors.UnsupportedError("the key of a dict is known only when the model runs")
    return key


def make(low: Lowering, node: Node, args: Args) -> Any:
    """`{k: v}`: an object where the script may change it (only such dicts arrive here)."""
    items = list(args.values())
    return Keyed({known_key(k): v for k, v in zip(items[::2], items[1::2], strict=True)})


def of_pairs(low: Lowering, node: Node, args: Args) -> Any:
    """`dict(pairs)`, `dict(d)`."""
    held = next(iter(args.values()), ())
    found = entries(held)
    if found is None:
        found = {known_key(k): v for k, v in (held.items if isinstance(held, Listed) else held)}
    return Keyed(dict(found))


def set_item(low: Lowering, held: Any, key: Any, item: Any) -> Any:
    """`d[k] = x`."""
    change(low, held, {**_of(held), known_key(key): item})
    return held


def delete(low: Lowering, held: Any, key: Any) -> None:
    """`del d[k]`."""
    change(low, held, {k: v for k, v in _of(held).items() if k != known_key(key)})


def change(low: Lowering, held: Any, state: dict[Any, Any]) -> None:
    """Gives a dict other entries."""
    if not isinstance(held, Keyed):
        raise errors.UnsupportedError("a dict is changed that is no variable of the script")
    low.journal.change(held, state)


def update(low: Lowering, node: Node, args: Args) -> Any:
    """`d.update(other)`."""
    held, other = list(args.values())[:2]
    change(low, held, {**_of(held), **_of(other)})
    return None


def setdefault(low: Lowering, node: Node, args: Args) -> Any:
    """`d.setdefault(k, x)`."""
    held, key, item = args.values()
    if known_key(key) not in _of(held):
        change(low, held, {**_of(held), key: item})
    return _of(held)[key]


def pop(low: Lowering, held: Any, args: Args) -> Any:
    """`d.pop(k)`, `d.pop(k, x)`."""
    key, *default = list(args.values())[1:]
    found = _of(held)
    item = found.get(known_key(key), *default) if default else found[key]
    delete(low, held, key)
    return item


def keys(low: Lowering, node: Node, args: Args) -> Any:
    """`list(d)`, `d.keys()`."""
    return Listed(tuple(_of(next(iter(args.values())))))


def values(low: Lowering, node: Node, args: Args) -> Any:
    """`d.values()`."""
    return Listed(tuple(_of(next(iter(args.values()))).values()))


def items(low: Lowering, node: Node, args: Args) -> Any:
    """`d.items()`."""
    return Listed(tuple(_of(next(iter(args.values()))).items()))


def get(low: Lowering, node: Node, args: Args) -> Any:
    """`d.get(k)`, `d.get(k, x)`."""
    held, key, *default = args.values()
    return _of(held).get(known_key(key), default[0] if default else None)


HANDLERS = {
    "prim::DictConstruct": make, "aten::dict": of_pairs, "aten::update": update, "aten::setdefault": setdefault, "aten::keys": keys,
    "aten::values": values, "aten::items": items, "aten::get": get,
}
