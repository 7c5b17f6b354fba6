"""Rewrites a graph so that no node writes in place and no two values share memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Graph, Mutation, Node, Value, changes_list, is_memory, replaced, values_in, walk
from onnxport.aten.make import Maker
from onnxport.aten.passes import links, lists, statistics, views, writes
from onnxport.aten.passes.blocks import Blocks, free
from onnxport.aten.passes.origins import Origins
from onnxport.aten.passes.places import PIECES, Memory, Place
from onnxport.aten.passes.prune import prune
from onnxport.aten.source import where

# Their results are tensors that they were given, in a container or out of one. (Of tensors, `slice` and `add` are something else.)
_HAND_ON = frozenset({
    "prim::ListConstruct", "prim::DictConstruct", "prim::TupleConstruct", "prim::ListUnpack", "prim::TupleUnpack", "prim::TupleIndex",
    "prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional", "aten::__getitem__", "aten::pop", "aten::popitem",
    "aten::list", "aten::dict", "aten::copy", "aten::keys", "aten::values", "aten::items", "aten::get", "aten::setdefault",
    *(f"aten::{name}" for name in ("add.t", "slice.t", "mul.left_t", "mul.right_t", "add_.t", "append.t", "extend.t")),
})
# These look at nothing but the sizes of their tensors.
_SIZES_ONLY = frozenset({
    "aten::size", "aten::sym_size", "aten::dim", "aten::numel", "prim::shape", "aten::zeros_like", "aten::ones_like", "aten::empty_like",
    "aten::full_like", "aten::rand_like", "aten::randn_like", "aten::len", "aten::new_empty", "aten::new_zeros", "aten::new_ones", "aten::new_full",
})


def functionalise(graph: Graph, kept: Callable[[Node], bool] | None = None) -> None:
    """Replaces in-place operators by functional ones and views of written tensors by values; fills `graph.mutated`.

    kept: says of an operator that it stays as it is, since somebody else translates it: behind its results he gives what it writes.
    Linear in the number of nodes; a graph without writes is left alone. Raises `UnsupportedError` for a write that has
    no functional form.
    """
    if graph.rebound or any_write(graph.block) or any_list_change(graph.block):
        Functionaliser(graph, kept or (lambda node: False)).run()
        prune(graph)


def any_write(block: Block) -> bool:
    """Whether some node writes into a tensor."""
    return any(is_write(node) or statistics.updates(node) or any(any_write(inner) for inner in node.blocks) for node in block.nodes)


def any_list_change(block: Block) -> bool:
    """Whether a branch or a loop changes a list."""
    return any(changes_list(inner) for node in block.nodes for part in node.blocks for inner in walk(part))


def is_write(node: Node) -> bool:
    """Whether a node says that it writes into a tensor among its arguments."""
    return node.schema is not None and bool(node.schema.writes) and not changes_list(node)


class Functionaliser:
    """One run over one graph."""

    def __init__(self, graph: Graph, kept: Callable[[Node], bool]):
        self.graph, self.kept = graph, kept
        self.make = Maker()
        self.memory = Memory(self.make)
        self.memory.block = graph.block
        lists.name(graph.block)
        self.origins = Origins(graph)
        self.renamed: dict[Value, Value] = {}
        self.lists: dict[Value, tuple[str, list[Value]]] = {}

    def run(self) -> None:
        """Rewrites the block, then brings outputs up to date and names what was written and is not returned."""
        graph, memory = self.graph, self.memory
        kept = self.keep()
        nodes, graph.block.nodes = graph.block.nodes, self.make.nodes
        for node in nodes:
            self.node(node)
        graph.outputs = [memory.current(output) for output in graph.outputs]
        graph.block.outputs = [memory.current(output) for output in graph.block.outputs]
        graph.mutated = [dataclasses.replace(mutation, value=memory.current(mutation.value)) for mutation in graph.mutated]
        self.mutations(kept)
        for read in graph.reads:
            if read.value is not None:
                read.value = self.renamed.get(read.value, read.value)

    # --- what outlives the program -------------------------------------------------------------------------------------------

    def keep(self) -> list[tuple[str, str, Value, Place]]:
        """(name, kind, value, place) of inputs, weights and attributes."""
        graph, place = self.graph, self.memory.place
        found = [(name, "input", value, place(value)) for name, value in zip(graph.input_names, graph.inputs, strict=True)]
        for name, value in graph.weights.items():
            found.append((name, "parameter" if name in graph.parameters else "buffer", value, place(value)))
        return [*found, *((name, "attribute", value, place(value)) for name, value in graph.attributes.items())]

    def mutations(self, kept: list[tuple[str, str, Value, Place]]) -> None:
        """Lists what was written, or assigned, and whose new value is no output."""
        graph = self.graph
        returned = {id(output) for output in values_in(graph.outputs)}
        shared = _shared(kept) if any(place.storage.version for *_, place in kept) else {}
        for name, kind, value, place in kept:
            if place.storage.lost is not None and kind == "input":
                continue  # it may or may not have been written; whoever reads it is told so
            new = self.memory.current(graph.rebound[name]) if name in graph.rebound else self.memory.read(place)
            if place.storage.version and name in shared:
                raise errors.UnsupportedError(f"the model writes into {kind} {name!r}, which shares its memory with {shared[name]!r}")
            if new is not value and id(new) not in returned:
                graph.mutated.append(Mutation(name, kind, new))

    # --- nodes ---------------------------------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        """Rewrites one node."""
        self.make.origin = node
        if is_write(node):
            self.writing(node)
        elif views.is_view(node):
            self.view(node)
        elif node.op == "prim::ListUnpack" and self.is_split(node.args["self"]):
            self.unpack(node)
        elif lists.is_item(node):
            self.item(node)
        elif changes_list(node) or node.op in _HAND_ON or f"{node.op}.{node.overload}" in _HAND_ON:
            self.container(node)
        elif node.op in views.OF_SEVERAL:
            (self.several if isinstance(node.args["tensors"], (list, tuple)) else self.container)(node)
        elif node.blocks:
            self.nested(node)
        else:
            self.plain(node)
        if self.memory.defined is not None:
            self.memory.defined.update(node.outputs)

    def plain(self, node: Node) -> None:
        """A node that writes nothing its schema tells of."""
        memory = self.memory
        change = memory.any_version if node.op in _SIZES_ONLY else memory.newest
        before = dict(node.args)
        node.args = {name: replaced(arg, change) for name, arg in node.args.items()}
        self.make.nodes.append(node)
        if statistics.updates(node):
            self.statistics(node, before)
        elif node.schema is not None and node.schema.aliases:
            # A view that views.py does not know: it can be made anew, but not be written through.
            source = before.get(node.schema.aliases[0])
            if isinstance(source, Value) and len(node.outputs) == 1 and node.schema.aliases[0] == "self":
                memory.look(source, node, node.outputs, views.key(node))

    def view(self, node: Node) -> None:
        """A node that gives a view: its output lies where its source does."""
        memory, name = self.memory, views.source_name(node)
        source = node.args[name]
        node.args = {key: replaced(arg, memory.newest if key == name else memory.any_version) for key, arg in node.args.items()}
        self.make.nodes.append(node)
        if isinstance(source, Value) and views.depends(node):
            self.perhaps(node, source)
        elif isinstance(source, Value) and views.shares(node, source):
            memory.look(source, node, node.outputs, views.key(node))

    def perhaps(self, node: Node, source: Value) -> None:
        """A node that gives a view, or a copy: where that depends on the dtype, lowering knows it."""
        if not views.depends_on_dtype(node):
            self.memory.may_be(node.outputs[0], [source])
            return
        same = Value("bool")
        self.make.append("prim::same_dtype", "", {"a": source, "b": node.outputs[0]}, [same])
        self.memory.link(node.outputs[0], [(same, self.memory.place(source))])

    def unpack(self, node: Node) -> None:
        """The pieces of a list of views."""
        source, memory = node.args["self"], self.memory
        node.args = {"self": memory.newest(source)}
        self.make.nodes.append(node)
        op, tensors = self.lists.get(source, ("", []))
        for tensor, output in zip(tensors, node.outputs, strict=False):
            self.look_by(op, tensor, output, node)
        if source in memory.places and node.outputs:
            memory.look(source, node, node.outputs, PIECES)

    def is_split(self, value: Value) -> bool:
        """Whether a value is a list of views."""
        place = self.memory.places.get(value)
        return value in self.lists or (place is not None and place.parent is not None)

    def item(self, node: Node) -> None:
        """A tensor of a list: writing into it changes the list."""
        memory, held, index = self.memory, node.args["list"], node.args["idx"]
        items = lists.items_of(memory, held)
        if items is not None and isinstance(index, int) and -len(items) <= index < len(items):
            self.becomes(node.outputs[0], items[index])
            return
        node.args = {name: replaced(arg, memory.newest) for name, arg in node.args.items()}
        self.make.nodes.append(node)
        memory.look(held, node, node.outputs, views.key(node))

    def container(self, node: Node) -> None:
        """A node that puts tensors into a container or takes some out of it: what is written then, is written in both places."""
        memory, sources = self.memory, [value for value in node.inputs() if is_memory(value)]
        changes = changes_list(node) and bool(sources)
        if changes and sources[0].kind == "list":
            lists.cut_off(memory, memory.place(sources[0]).storage)
        items = lists.result(memory, node)
        self.plain(node)
        if changes and (items is None or memory.place(sources[0]).storage.block is not memory.block):
            lists.open_up(memory, memory.place(sources[0]).storage)
            memory.hold(sources[0], sources[1:])
        elif changes:
            lists.fill(memory, memory.place(sources[0]).storage, items or [])
        for output in node.outputs:
            if changes and output.kind == "list" and sources[0].kind == "list" and node.op != "aten::pop":
                self.becomes(output, memory.place(sources[0]))
            elif items is not None and not changes and output.kind == "list":
                lists.fill(memory, memory.new(output), items)
            elif is_memory(output):
                memory.may_be(output, sources)

    def several(self, node: Node) -> None:
        """Views of several tensors, or of one that is given in a list."""
        tensors, output = node.args["tensors"], node.outputs[0]
        self.plain(node)
        if node.op in views.EACH_OF_SEVERAL:
            self.lists[output] = views.EACH_OF_SEVERAL[node.op], tensors
        elif len(tensors) == 1 and (node.op != "aten::einsum" or views.only_moves(node.args["equation"])):
            self.look_by(node.op, tensors[0], output, node)

    def look_by(self, op: str, source: Value, output: Value, node: Node) -> None:
        """`output` looks at `source`, as if `op` had made it; `expand_as` can do so again, as the sizes are those of `output`."""
        view = Node(op, "", {"self": source, "other": output}, [output], scope=node.scope, source=node.source)
        self.memory.look(source, view, [output], views.key(view))

    def nested(self, node: Node) -> None:
        """A node with blocks. What they read from outside is brought up to date before; what they write outside becomes a result."""
        memory, touched = self.memory, self.origins.touched[node]
        for value in touched.changed:
            storage = memory.place(value).storage
            memory.freeze(storage)
            lists.cut_off(memory, storage)
            lists.open_up(memory, storage)
        for value in values_in(list(node.args.values())):
            memory.place(value)
        for value in free(node):
            if value.kind == "tensor":
                memory.place(value)  # it lies out here, whoever in there asks first
            memory.newest(value)
        storages = links.reached([memory.place(value).storage for value in touched.written])
        for value in touched.lost:
            storage = memory.place(value).storage
            storage.lose(node)
            storage.lost = node
        if storages and node.op == "prim::Scan":
            raise errors.UnsupportedError(f"a scan writes into a tensor from outside; carry it\n  at {where(node.source)}")
        blocks = Blocks(self, node, touched, storages)
        node.args = {name: memory.current(arg) for name, arg in node.args.items()}
        blocks.rewrite()
        self.make.nodes.append(node)
        blocks.results()

    # --- writes --------------------------------------------------------------------------------------------------------------

    def writing(self, node: Node) -> None:
        """A node that says that it writes."""
        if node.op.startswith("aten::_foreach_") and isinstance(node.args["self"], (list, tuple)):
            for single in writes.each(node):
                self.writing(single)
        elif node.op == "aten::set_data":
            self.memory.places[node.args["self"]] = self.memory.place(node.args["new_data"])
        elif node.op in writes.METADATA:
            node.op, node.overload = writes.functional_name(node)
            source, node.schema = node.args["self"], None
            self.view(node)
            self.memory.places[source] = self.memory.place(node.outputs[0])
        elif node.op in writes.NOTHING:
            self.becomes(node.outputs[0], self.memory.place(node.args["self"]))
        elif statistics.updates(node):
            node.op, node.overload = writes.functional_name(node)
            node.schema = None
            self.plain(node)
        elif node.op in writes.TWINS:
            self.twin(node)
        else:
            assert node.schema is not None
            itself = node.schema.writes == ("self",)
            translated = self.kept(node) and (itself or not node.op.startswith("aten::"))
            writes.check(node, translated)
            (self.as_told if translated else self.in_place if itself else self.into)(node)

    def twin(self, node: Node) -> None:
        """A node that gives results and writes besides."""
        before, made = dict(node.args), writes.twin(node)
        self.plain(node)
        for name, new in made:
            self.memory.write(self.memory.place(before[name]), new, node)

    def becomes(self, output: Value, place: Place) -> None:
        """`output` is another name for a place."""
        self.memory.places[output] = place
        if place.value is not output:
            self.renamed[output] = place.value

    def in_place(self, node: Node) -> None:
        """A node that writes into `self`."""
        memory = self.memory
        target = node.args["self"]
        place = memory.place(target)
        self.guard(target, place, node)
        change = memory.any_version if node.op in writes.OVERWRITES else memory.newest
        node.args = {name: replaced(arg, change if name == "self" else memory.newest) for name, arg in node.args.items()}
        rule = _SPECIAL.get(node.op, Functionaliser.functional)
        value = rule(self, node, place)
        if value is not None:
            memory.write(place, value, node)
        for output in node.outputs:
            self.becomes(output, place)

    def guard(self, target: Value, place: Place, node: Node) -> None:
        """Refuses to write into a constant whose old content nobody knows."""
        if place.storage.root.value in self.graph.touched:
            raise errors.UnsupportedError(
                f"{node.op} writes into a tensor that the model has not computed, and that is no input, parameter, buffer or attribute; "
                f"clone it before it is written, or register it as a buffer\n  at {where(node.source)}, module {node.scope or '?'}")

    def as_told(self, node: Node) -> None:
        """An operator that somebody else translates: he gives its results and, behind them, the new value of each tensor that it writes."""
        memory, schema = self.memory, node.schema
        assert schema is not None
        places = {name: memory.place(target) for name in schema.writes if isinstance(target := node.args[name], Value)}
        for name, place in places.items():
            self.guard(node.args[name], place, node)
        args = {name: replaced(arg, memory.newest) for name, arg in node.args.items()}
        results = list(zip(node.outputs, schema.handed_back, strict=False))  # one that returns nothing may have an output that is None
        written = {name: args[name].like() for name in places}
        made = self.make.append(node.op, node.overload, args, [*(output for output, name in results if not name), *written.values()])
        made.schema = dataclasses.replace(schema, writes=())
        for name, place in places.items():
            memory.write(place, written[name], node)
        for output, name in results:
            if name:
                self.becomes(output, places[name])

    def functional(self, node: Node, place: Place) -> Value:
        """The operator without its write; the result in the dtype of what was written."""
        current, output = node.args["self"], node.outputs[0]
        dtype = writes.natural_dtype(node, current)
        op, overload = writes.functional_name(node)
        args = writes.functional_args(node, current)
        if dtype == current.dtype:
            self.make.append(op, overload, args, [output])
            return output
        result = self.make.emit(op, overload, Value("tensor", dtype, current.shape, current.strides), **args)
        return self.make.cast(result, current.dtype, output)

    def into(self, node: Node) -> None:
        """A node that writes into other arguments than `self`: `out=`."""
        if writes.has_form_with_new_values(node.op):
            self.with_new_values(node)
            return
        memory = self.memory
        assert node.schema is not None
        names = node.schema.writes
        op, overload = writes.functional_name(node)
        args = {name: memory.current(arg) for name, arg in node.args.items() if name not in names}
        targets = [node.args[name] for name in names]
        types = writes.out_types(op, overload, args, len(targets))
        if types is None:
            raise errors.UnsupportedError(f"{node.op} with {names[0]}= cannot be exported: use its result\n  at {where(node.source)}")
        results = [Value("tensor", dtype, shape) for dtype, shape in types]
        self.make.append(op, overload, args, results)
        for target, result, output in zip(targets, results, node.outputs, strict=True):
            place = memory.place(target)
            self.guard(target, place, node)
            if result.shape != place.value.shape and (place.parent is not None or place.children):
                raise errors.UnsupportedError(
                    f"{node.op} resizes the tensor given as {names[0]}=, which shares memory with others\n  at {where(node.source)}")
            if result.dtype != place.value.dtype:
                result = self.make.cast(result, place.value.dtype)
            memory.write(place, result, node)
            self.becomes(output, place)

    def with_new_values(self, node: Node) -> None:
        """A node of which PyTorch has a form that gives what it writes as further results."""
        memory = self.memory
        assert node.schema is not None
        args = {name: memory.current(arg) for name, arg in node.args.items()}
        targets = [(memory.place(node.args[name]), args[name].like()) for name in node.schema.writes]
        self.make.append(f"{node.op}{writes.NEW_VALUES}", "", args, [*node.outputs, *[new for _, new in targets]])
        for (place, new), name in zip(targets, node.schema.writes, strict=True):
            self.guard(node.args[name], place, node)
            memory.write(place, new, node)

    def statistics(self, node: Node, before: dict[str, Arg]) -> None:
        """Running statistics get new values. The node itself does not look at them then, unless somebody else translates it."""
        read = dict(node.args)
        for name, new in list(statistics.written(self.make, node)):
            self.memory.write(self.memory.place(before[name]), new, node)
            node.args[name] = None
        if self.kept(node):
            node.args = read
        else:
            statistics.functional(node, read)

    def copy(self, node: Node, place: Place) -> Value | None:
        """`copy_`: cast and broadcast. None where a place is copied onto itself, as `x[0] += 1` does in the end."""
        source, current = node.args["src"] if "src" in node.args else node.args["other"], node.args["self"]
        if place.newest and place.value is source:
            return None
        return self.spread(source, current) if isinstance(source, Value) else self.filled(source, current)

    def fill(self, node: Node, place: Place) -> Value:
        """`fill_` and `zero_`."""
        return self.filled(node.args.get("value", 0), node.args["self"])

    def filled(self, value: Arg, current: Value) -> Value:
        """A full tensor with the sizes of `current`."""
        number = value if isinstance(value, Value) and value.kind != "tensor" else writes.plain_number(value, current.dtype)
        return self.spread(value, current) if number is None else writes.full_like(self.make, current, number)

    def spread(self, source: Value, current: Value) -> Value:
        """`source` in the dtype and sizes of `current`."""
        if source.dtype != current.dtype:
            source = self.make.cast(source, current.dtype)
        if source.shape == current.shape and source.shape is not None and 1 not in source.shape:
            return source
        return self.make.emit("aten::expand_as", "", current, self=source, other=current)

    def fill_diagonal(self, node: Node, place: Place) -> Value:
        """`fill_diagonal_`."""
        return writes.fill_diagonal(self.make, node)


_SPECIAL: dict[str, Callable[[Functionaliser, Node, Place], Value | None]] = {
    "aten::copy_": Functionaliser.copy, "aten::fill_": Functionaliser.fill, "aten::zero_": Functionaliser.fill,
    "aten::fill_diagonal_": Functionaliser.fill_diagonal,
}


def _shared(kept: list[tuple[str, str, Value, Place]]) -> dict[str, str]:
    """name -> another name, of weights and attributes that are different tensors over the same memory."""
    first: dict[int, str] = {}
    found: dict[str, str] = {}
    for name, _, value, _ in kept:
        if value.constant is not None and value.constant.layout.__str__() == "torch.strided" and value.constant.numel():
            other = first.setdefault(value.constant.untyped_storage().data_ptr(), name)
            if other != name:
                found[name], found[other] = other, name
    return found
