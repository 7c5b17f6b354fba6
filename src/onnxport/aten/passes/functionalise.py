"""Rewrites a graph so that no node writes in place and no two values share memory.

Every tensor that may be written, or that looks at one, has a *place*: a storage and the chain of views that leads to
it. A write gives the place a new value; the storage remembers which place holds its newest content. Only when another
place of that storage is read is the content put back through the views, and only the places that are read are made
anew from it.
"""

from __future__ import annotations

from typing import Any

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Graph, Mutation, Node, Value, replaced
from onnxport.aten.make import Maker
from onnxport.aten.passes import views, writes
from onnxport.aten.passes.prune import prune
from onnxport.aten.source import where


def functionalise(graph: Graph) -> None:
    """Replaces in-place operators by functional ones and views of written tensors by values; fills `graph.mutated`.

    Linear in the number of nodes. Raises `UnsupportedError` for a write that has no functional form.
    """
    if any_write(graph.block):
        _Functionaliser(graph).run()
        prune(graph)


def any_write(block: Block) -> bool:
    """Whether some node writes into a tensor."""
    return any(is_write(node) or any(any_write(inner) for inner in node.blocks) for node in block.nodes)


def is_write(node: Node) -> bool:
    """Whether a node writes into one of its arguments."""
    return node.schema is not None and bool(node.schema.writes)


class _Storage:
    """One piece of memory. version: counts writes; clean: the version that `root` holds; dirty: the place that holds a newer one."""

    __slots__ = ("clean", "dirty", "root", "version", "writer")

    def __init__(self, root: Value):
        self.root = _Place(self, None, None, root)
        self.version = self.clean = 0
        self.dirty: _Place | None = None
        self.writer: Node | None = None


class _Place:
    """A way to look at a storage. node: the view that leads here from `parent`; value: the content at `version`.

    pieces: of a list's unpacked parts, all of them, this one among them.
    """

    __slots__ = ("children", "index", "node", "parent", "pieces", "storage", "value", "version")

    def __init__(self, storage: _Storage, parent: _Place | None, node: Node | None, value: Value, version: int = 0):
        self.storage, self.parent, self.node, self.value, self.version = storage, parent, node, value, version
        self.children: dict[Any, _Place] = {}
        self.pieces: list[_Place] | None = None
        self.index = 0

    def holder(self) -> _Place | None:
        """The tensor that this place is a part of (a piece of a list is part of what was split)."""
        parent = self.parent
        return parent.parent if self.pieces is not None and parent is not None else parent

    def within(self, other: _Place) -> bool:
        """Whether this place is `other` or looks at a part of it through views."""
        place: _Place | None = self
        while place is not None and place is not other:
            place = place.parent
        return place is other


class _Functionaliser:
    """One run over one graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.make = Maker()
        self.places: dict[Value, _Place] = {}
        self.kept: dict[Value, _Storage] = {}

    def run(self) -> None:
        """Rewrites the block, then brings outputs up to date and names what was written and is not returned."""
        graph = self.graph
        for value in [*graph.inputs, *graph.weights.values()]:
            self.kept[value] = self.place(value).storage
        nodes, graph.block.nodes = graph.block.nodes, self.make.nodes
        for node in nodes:
            self.node(node)
        graph.outputs = [self.current(output) for output in graph.outputs]
        graph.block.outputs = [self.current(output) for output in graph.block.outputs]
        self.mutations()

    def mutations(self) -> None:
        """Lists inputs and weights whose content changed and whose new value is no output."""
        graph = self.graph
        returned = {id(output) for output in graph.outputs if isinstance(output, Value)}
        named = [*zip(graph.input_names, graph.inputs, strict=True), *graph.weights.items()]
        for name, value in named:
            storage = self.kept[value]
            if storage.version:
                new = self.read(storage.root)
                kind = "input" if name not in graph.weights or graph.weights[name] is not value else \
                    "parameter" if name in graph.parameters else "buffer"
                if id(new) not in returned and new is not value:
                    graph.mutated.append(Mutation(name, kind, new))

    # --- values and places ---------------------------------------------------------------------------------------------------

    def place(self, value: Value) -> _Place:
        """Where a value lies; one that is not known yet has a storage of its own."""
        found = self.places.get(value)
        if found is None:
            found = self.places[value] = _Storage(value).root
        return found

    def current(self, arg: Arg) -> Arg:
        """An argument with every value in it brought up to date."""
        return replaced(arg, self._newest)

    def _newest(self, value: Value) -> Value:
        place = self.places.get(value)
        return value if place is None else self.read(place)

    def _any_version(self, value: Value) -> Value:
        """A value of the right sizes, whatever its content."""
        place = self.places.get(value)
        return value if place is None else place.value

    def read(self, place: _Place) -> Value:
        """The newest content of a place, made from its parents where it is out of date."""
        storage = place.storage
        if place.version != storage.version:
            if storage.dirty is not None and not place.within(storage.dirty):
                self.flush(storage)
            self.bring(place, storage.version)
        return place.value

    def bring(self, place: _Place, version: int) -> None:
        """Makes a place's value of `version` from the nearest parent that has it."""
        path = []
        while place.version != version:
            path.append(place)
            assert place.parent is not None  # the root is at the clean version, and a dirty place at the newest
            place = place.parent
        for step in reversed(path):
            self.replay(step, version)

    def replay(self, place: _Place, version: int) -> None:
        """Makes the value of one place from its parent's."""
        node, parent = place.node, place.parent
        assert node is not None and parent is not None
        origin, self.make.origin = self.make.origin, node
        args = {**node.args, views.source_name(node): parent.value}
        pieces = place.pieces or [place]
        outputs = [piece.value.like() for piece in pieces]
        self.make.append(node.op, node.overload, args, outputs).schema = node.schema
        for piece, output in zip(pieces, outputs, strict=True):
            if piece.version < version:
                piece.value, piece.version = output, version
        self.make.origin = origin

    def flush(self, storage: _Storage) -> None:
        """Puts the newest content back into the whole storage."""
        dirty = storage.dirty
        assert dirty is not None
        origin, self.make.origin = self.make.origin, storage.writer or self.make.origin
        self.put_back(dirty, storage.root, storage.clean)
        storage.clean, storage.dirty = storage.version, None
        self.make.origin = origin

    def put_back(self, place: _Place, top: _Place, version: int) -> None:
        """Carries the content of `place` up to `top`, whose content and what lies between is of `version` so far."""
        chain = [place]
        while chain[-1] is not top:
            holder = chain[-1].holder()
            assert holder is not None
            chain.append(holder)
        if len(chain) > 1:
            self.bring(chain[1], version)
        newest = place.storage.version
        for child, parent in zip(chain, chain[1:], strict=False):
            parent.value, parent.version = self.put_step(child, parent), newest

    def put_step(self, child: _Place, parent: _Place) -> Value:
        """The content of `parent` with that of `child` in it."""
        node = child.node
        assert node is not None
        if child.pieces is None:
            return views.put_back(self.make, node, parent.value, child.value)
        list_node = child.parent.node if child.parent is not None else None
        assert list_node is not None
        return views.PUT_PIECE[list_node.op](self.make, list_node, child.index, parent.value, child.value)

    def write(self, place: _Place, value: Value, writer: Node) -> None:
        """Gives a place a new content."""
        storage, before = place.storage, place.storage.version
        dirty = storage.dirty
        inside = dirty is not None and dirty is not place and place.within(dirty)
        if dirty is not None and not inside and not dirty.within(place):
            self.flush(storage)
        if inside:
            assert dirty is not None
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

    # --- nodes ---------------------------------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        """Rewrites one node."""
        self.make.origin = node
        if is_write(node):
            self.in_place(node)
        elif views.is_view(node):
            self.view(node)
        elif node.op == "prim::ListUnpack" and isinstance(node.args["self"], Value):
            self.unpack(node)
        else:
            change = self._any_version if node.op in _SIZES_ONLY else self._newest
            node.args = {name: replaced(arg, change) for name, arg in node.args.items()}
            self.make.nodes.append(node)

    def view(self, node: Node) -> None:
        """A node that gives a view: its output lies where its source does."""
        name = views.source_name(node)
        source, output = node.args[name], node.outputs[0]
        node.args = {key: replaced(arg, self._newest if key == name else self._any_version) for key, arg in node.args.items()}
        self.make.nodes.append(node)
        if not isinstance(source, Value) or not views.shares(node, source):
            return
        parent = self.place(source)
        key = _key(node, name)
        known = parent.children.get(key)
        if known is None:
            known = parent.children[key] = _Place(parent.storage, parent, node, output, parent.storage.version)
        elif known.version != known.storage.version:
            known.value, known.version = output, known.storage.version
        self.places[output] = known

    def unpack(self, node: Node) -> None:
        """The pieces of a list of views."""
        parent = self.places.get(node.args["self"])
        node.args = {"self": self._newest(node.args["self"])}
        self.make.nodes.append(node)
        if parent is None:
            return
        known = parent.children.get("pieces")
        if known is None:
            pieces = [_Place(parent.storage, parent, node, output, parent.storage.version) for output in node.outputs]
            for index, piece in enumerate(pieces):
                piece.pieces, piece.index = pieces, index
            known = parent.children["pieces"] = pieces[0]
        assert known.pieces is not None
        for piece, output in zip(known.pieces, node.outputs, strict=True):
            if piece.version != piece.storage.version:
                piece.value, piece.version = output, piece.storage.version
            self.places[output] = piece

    def in_place(self, node: Node) -> None:
        """A node that writes."""
        if node.op in writes.REFUSED:
            raise errors.UnsupportedError(f"{node.op} cannot be exported: {writes.REFUSED[node.op]}\n  at {where(node.source)}")
        place = self.place(node.args["self"])
        change = self._any_version if node.op in writes.OVERWRITES else self._newest
        node.args = {name: replaced(arg, change if name == "self" else self._newest) for name, arg in node.args.items()}
        special = _SPECIAL.get(node.op)
        value = special(self, node, place) if special else self.functional(node)
        self.places[node.outputs[0]] = place
        if value is not None:
            self.write(place, value, node)

    def functional(self, node: Node) -> Value:
        """The operator without its write; the result in the dtype of what was written."""
        current, output = node.args["self"], node.outputs[0]
        dtype = writes.natural_dtype(node, current)
        op, overload = writes.functional_name(node)
        if dtype == current.dtype:
            self.make.append(op, overload, node.args, [output])
            return output
        result = self.make.emit(op, overload, Value("tensor", dtype, current.shape, current.strides), **node.args)
        return self.make.cast(result, current.dtype, output)

    def copy(self, node: Node, place: _Place) -> Value | None:
        """`copy_`: cast and broadcast. None where a place is copied onto itself, as `x[0] += 1` does in the end."""
        source, current = node.args["src"], node.args["self"]
        if place.version == place.storage.version and place.value is source:
            return None
        return self.spread(source, current)

    def spread(self, source: Value, current: Value) -> Value:
        """`source` in the dtype and sizes of `current`."""
        if source.dtype != current.dtype:
            source = self.make.cast(source, current.dtype)
        if source.shape == current.shape and source.shape is not None and 1 not in source.shape:
            return source
        return self.make.emit("aten::expand_as", "", current, self=source, other=current)

    def fill(self, node: Node, place: _Place) -> Value:
        """`fill_` and `zero_`: a full tensor of the same sizes."""
        current = node.args["self"]
        value = node.args.get("value", 0)
        number = writes.plain_number(value, current.dtype)
        if number is None:
            return self.spread(value, current)
        return self.make.emit("aten::full_like", "", current, self=current, fill_value=number, dtype=current.dtype, layout=None,
                              device=None, pin_memory=None, memory_format=None)


_SPECIAL: dict[str, Any] = {
    "aten::copy_": _Functionaliser.copy, "aten::fill_": _Functionaliser.fill, "aten::zero_": _Functionaliser.fill,
}
# These look at nothing but the sizes of their tensors.
_SIZES_ONLY = frozenset({
    "aten::size", "aten::sym_size", "aten::dim", "aten::numel", "prim::shape", "aten::zeros_like", "aten::ones_like", "aten::empty_like",
    "aten::rand_like", "aten::randn_like", "aten::new_empty", "aten::new_zeros", "aten::new_ones",
})


def _key(node: Node, source: str) -> Any:
    """Equal for views that look at the same part of the same place."""
    return (node.op, node.overload, *(_frozen(arg) for name, arg in node.args.items() if name != source))


def _frozen(arg: Arg) -> Any:
    return tuple(_frozen(item) for item in arg) if isinstance(arg, (list, tuple)) else arg
