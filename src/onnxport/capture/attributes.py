"""What a scripted module keeps: its attributes by path, read and assigned while its graph is read."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Arg, Node, Value
from onnxport.aten.packed import Packed
from onnxport.capture import packed

_CHANGE_LISTS = frozenset({"aten::append", "aten::extend", "aten::insert", "aten::pop", "aten::clear", "aten::reverse", "aten::sort",
                           "aten::_set_item", "aten::Delete", "aten::remove", "aten::add_", "aten::update", "aten::setdefault"})


@dataclass(frozen=True)
class Holder:
    """A module (or an object that it keeps), and the path that leads to it; owner: None for an object that the script makes."""

    path: str
    owner: Any


def made(raw: Any) -> Holder:
    """A new object of a class that the script knows; it has the attributes that are assigned to it."""
    return Holder(_MADE + str(raw.output().unique()), None)


_MADE = "the script's object "


class Attributes:
    """The attributes of one scripted module.

    weights: value of each parameter, buffer and tensor attribute by its path. current: what was assigned so far.
    """

    def __init__(self, weights: Callable[[str, torch.Tensor], Value] | None = None, root: Any = None):
        self._weight, self.root = weights, root
        self.current: dict[str, Arg] = {}
        self._opened: dict[int, tuple[Any, Arg]] = {}

    def get(self, holder: Holder, name: str) -> Arg:
        """The value of an attribute: a module, a weight, plain Python, or what was assigned to it."""
        path = f"{holder.path}.{name}" if holder.path else name
        if path not in self.current:
            if holder.owner is None:
                raise errors.UnsupportedError(f"the attribute {name!r} of an object is read before it is assigned on every way there")
            return self.read(path, getattr(holder.owner, name))
        return self.current[path]

    def read(self, path: str, item: Any) -> Arg:
        """An attribute as an argument."""
        if isinstance(item, torch.Tensor):
            if self._weight is None:
                raise errors.CaptureError(f"the tensor {path!r} is no attribute of a module that is exported")
            return self._weight(path, item)
        if isinstance(item, (list, tuple)):
            return type(item)(self.read(f"{path}.{i}", member) for i, member in enumerate(item)) if type(item) in (list, tuple) else tuple(
                self.read(f"{path}.{i}", member) for i, member in enumerate(item))
        if isinstance(item, dict):
            return {key: self.read(f"{path}.{key}", member) for key, member in item.items()}
        if isinstance(item, torch.device):
            return str(item)
        if item is None or isinstance(item, (bool, int, float, str, torch.dtype, enum.Enum, Value, Packed)):
            return item
        if isinstance(item, torch.ScriptObject) and packed.is_packed(item):
            return self._opened.setdefault(id(item), (item, packed.opened(path, item)))[1]
        return Holder(path, item)

    def set(self, holder: Holder, name: str, arg: Arg) -> None:
        """Assigns."""
        self.current[f"{holder.path}.{name}" if holder.path else name] = arg

    def begin(self, paths: list[str]) -> None:
        """Gives each of these attributes the value that it has before the program runs, unless it has one."""
        for path in paths:
            if path not in self.current and not path.startswith(_MADE):
                self.current[path] = self.read(path, getattr(*_owner(self.root, path)))

    def rebound(self) -> dict[str, Value]:
        """The tensors that the program assigned to attributes of the module."""
        return {path: arg for path, arg in self.current.items() if isinstance(arg, Value) and arg.kind == "tensor" and not path.startswith(_MADE)}

    # --- in blocks -----------------------------------------------------------------------------------------------------------

    def assigned(self, blocks: Iterable[Any]) -> list[str]:
        """The paths that blocks assign to."""
        found: dict[str, None] = {}
        for block in blocks:
            for node in block.nodes():
                if node.kind() == "prim::SetAttr":
                    found[_path(node.inputsAt(0), node.s("name"))] = None
                found.update(dict.fromkeys(self.assigned(node.blocks())))
        return list(found)

    def variable(self, path: str) -> Value:
        """The carried variable of a loop that stands for an attribute."""
        before = self.current.get(path)
        value = Value(before.kind if isinstance(before, Value) else "optional" if before is None else type(before).__name__)
        value.unknown = value.kind == "tensor"
        self.current[path] = value
        return value

    def leave(self, node: Node, before: dict[str, Arg], ends: list[dict[str, Arg]], changed: list[str]) -> None:
        """Makes what blocks assigned results of their node."""
        paths = changed or list(dict.fromkeys(path for end in ends for path, arg in end.items() if before.get(path) is not arg))
        for path in paths:
            if path not in before:  # of an object that the block makes: nobody outside knows it
                continue
            starts = before[path]
            for block, end in zip(node.blocks, ends, strict=True):
                block.outputs.append(end[path])
            if changed:
                node.args[str(len(node.args))] = starts
            result = Value(starts.kind if isinstance(starts, Value) else type(starts).__name__)
            result.unknown = result.kind == "tensor"
            node.outputs.append(result)
            self.current[path] = result


@contextlib.contextmanager
def kept(root: Any, graph: Any) -> Iterator[None]:
    """Assigns, after a run of the graph, to each attribute that it may have assigned to what was there before."""
    paths = [path for path in Attributes().assigned([graph]) if not path.startswith(_MADE)]
    before = [(*_owner(root, path), getattr(*_owner(root, path))) for path in paths]
    try:
        yield
    finally:
        for owner, name, item in before:
            setattr(owner, name, item)


def _owner(root: Any, path: str) -> tuple[Any, str]:
    """The module that keeps an attribute, and the attribute's name in it."""
    parent, _, name = path.rpartition(".")
    for part in parent.split(".") if parent else ():
        root = getattr(root, part)
    return root, name


def _path(raw: Any, name: str) -> str:
    node = raw.node()
    if node.kind() == "prim::CreateObject":
        return f"{made(node).path}.{name}"
    if node.kind() != "prim::GetAttr":
        return name
    return f"{_path(node.inputsAt(0), node.s('name'))}.{name}"


def changed_lists(graph: Any) -> frozenset[str]:
    """The types of the lists that some node of a graph changes; lists of other types are as good as literals."""
    found: set[str] = set()
    for kind in _CHANGE_LISTS:
        for node in graph.findAllNodes(kind, True):
            if node.inputsAt(0).type().kind() in ("ListType", "DictType"):
                found.add(str(node.inputsAt(0).type()))
    return frozenset(found)
