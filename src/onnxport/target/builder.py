"""Builds the ONNX graph, clean from the start.

Operators call `Builder.op` in the newest ONNX form. Before a node comes to be, what it would compute is folded where
it is known, replaced by something simpler where the two are the same, or found among the nodes that exist; the node
that remains gets dtype and symbolic shape at once and is written in the form that the wanted opset knows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
import torch

from onnxport import errors
from onnxport.module_calls import ModuleCall
from onnxport.target import contents, dims, folding, forms, kernels, pairs, shape_rules_control, shapes, simplify
from onnxport.target.apart import Apart
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import COMPLEX, from_torch, to_torch
from onnxport.target.value import Block, Complex, Constant, DataType, Node, Shape, Value

RANDOM = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"})
INT64 = DataType.INT64
_LEAST = -(1 << 63)
_IDENTITY_OF_SEQUENCES = 14  # the opset since when there is one


class Builder:
    """A graph under construction for one ai.onnx `opset`.

    fold_parameters: whether operations on weights are computed now (`do_constant_folding`).
    """

    def __init__(self, opset: int, *, fold_parameters: bool = True):
        self.opset = opset
        self.fold_parameters = fold_parameters
        self.root = self.block = Block()
        self.domains: dict[str, int] = {"": opset}
        self.training_forms = False  # normalisations are wanted in the form that ONNX trains
        self.versions: Mapping[str, int] = {}  # of domains other than ONNX's own
        self.sources: dict[str, tuple[Value, int | None]] = {}  # symbol -> (tensor, axis), axis None: the scalar's value
        self.hints: dict[str, int] = {}  # symbol -> its number in the example
        self.scope = ""
        self.source = ""
        self.notes: list[str] = []
        self.conditions: list[tuple[str, Size, int]] = []  # (comparison, size, number) that the present operator relies on
        self._literals: dict[Any, Value] = {}
        self._fresh = 0
        self.call: ModuleCall | None = None  # the one that nodes are made for
        self.apart: Apart | None = None  # keeps calls apart, where any is to become a function
        self._homes: dict[int, Block] = {}  # inputs of subgraphs
        self._computing = False  # sizes are being computed: what is known of them must not stand in for the nodes

    # ------------------------------------------------------------------ values that no node makes

    def input(self, name: str | None, dtype: DataType, shape: Shape | None) -> Value:
        """A graph input. Symbols in `shape` that have no source yet get this one."""
        value = Value(dtype, shape, name=name)
        self.block.inputs.append(value)
        if self.block is not self.root:
            self._homes[value.key] = self.block
        for axis, size in enumerate(shape or ()):
            atom = size.symbol if isinstance(size, Dim) else None
            if atom is not None:
                self.sources.setdefault(atom.text, (value, axis))
        return value

    def constant(self, tensor: torch.Tensor, *, name: str | None = None, parameter: bool = False) -> Value:
        """A tensor as it is, by reference."""
        return self.from_constant(Constant(tensor, name=name, parameter=parameter), from_torch(tensor.dtype), tuple(tensor.shape))

    def from_constant(self, constant: Constant, dtype: DataType, shape: Shape) -> Value:
        """The value of a `Constant`; integer scalars and short vectors get their content, complex tensors two parts."""
        if dtype in COMPLEX:
            return pairs.of_constant(self, constant, dtype, shape)
        value = Value(dtype, shape, const=constant)
        if dtype == INT64 and len(shape) <= 1 and not constant.is_lazy and not constant.parameter:
            tensor = constant.tensor
            if tensor.numel() <= 64:
                value.content = tuple(tensor.reshape(-1).tolist())
        return value

    def const(self, data: Any, dtype: DataType | None = None) -> Value:
        """A literal: a number, nested lists of numbers, a numpy array. `dtype` None: int64, float32 or bool by kind."""
        key = None
        if not isinstance(data, (np.ndarray, torch.Tensor)):
            key = (dtype, repr(data))
            found = self._literals.get(key)
            if found is not None:
                return found
        if isinstance(data, torch.Tensor):
            tensor = data if dtype is None else data.to(to_torch(dtype))
        else:
            tensor = torch.as_tensor(data, dtype=None if dtype is None else to_torch(dtype))
            if dtype is None and tensor.numel() == 0 and not isinstance(data, np.ndarray):
                tensor = tensor.to(torch.int64)
        value = self.constant(tensor)
        if key is not None:
            self._literals[key] = value
        return value

    def once(self, key: tuple[Any, ...], make: Callable[[], Value]) -> Value:
        """A constant that `make` gives, and that stands once in the file however many operators ask for it."""
        found = self._literals.get(key)
        if found is None:
            found = self._literals[key] = make()
        return found

    def sizes(self, sizes: Sequence[Size]) -> Value:
        """An int64 vector of sizes; nodes are made for it only when a node reads it."""
        if dims.is_static(sizes):
            return self.const(list(sizes), INT64)
        return Value(INT64, (len(sizes),), content=tuple(sizes))

    def scalar(self, size: Size) -> Value:
        """An int64 scalar that holds one size."""
        return self.const(size, INT64) if isinstance(size, int) else Value(INT64, (), content=(size,))

    def shape(self, x: Value) -> Value:
        """The shape of `x` as an int64 vector."""
        if x.shape is None:
            return self.op("Shape", x)
        return self.sizes(x.shape)

    def fresh(self, value: Value, axis: int | None, hint: str = "d", low: int = 0) -> Dim:
        """A new symbol for a size that only the running graph knows: `value`'s dim `axis`, or the scalar itself."""
        while True:
            name = f"{hint}{self._fresh}"
            self._fresh += 1
            if name not in self.sources:
                break
        self.sources[name] = (value, axis)
        return dims.symbol(name, low)

    def size_of(self, value: Value) -> Size:
        """The integer scalar (or one-element vector) `value` as a size: known, derived, or a new symbol."""
        if value.content is not None and len(value.content) == 1:
            return value.content[0]
        if value.const is not None:
            return int(value.const.tensor.reshape(()).item())
        found = self.block.known.get(("size", value.key))
        if found is None:
            symbol = self.fresh(value, None, "n", low=_LEAST)  # a number of the data may be negative
            found = (Value(INT64, (), content=(symbol,)),)
            self.block.known["size", value.key] = found
        assert found[0].content is not None
        return found[0].content[0]

    # ------------------------------------------------------------------ sizes that nodes have to compute

    def real(self, value: Value) -> Value:
        """`value` as something that a node can read: sizes get the nodes that compute them."""
        if isinstance(value, Complex):
            raise errors.UnsupportedError(f"complex numbers: {pairs.WAY_OUT}")
        if value.content is None or value.node is not None or value.const is not None or value.name is not None:
            return value
        held = self._scalar_read(value)
        if held is not None:
            return held
        key = ("real", value.content, value.rank, self.call)
        found = self._find(key)
        if found is None:
            outer, self._computing = self._computing, True
            try:
                vector = self._vector(value.content)
                result = self.op("Squeeze", vector, self.const([0])) if value.rank == 0 else vector
            finally:
                self._computing = outer
            if result.content is None:  # what is known of the sizes stays known
                result.content = value.content
            found = self._keep(key, (result,))
        return found[0]

    def _scalar_read(self, value: Value) -> Value | None:
        """The scalar of the graph that a size was read from, where `value` is just that size."""
        assert value.content is not None
        size = value.content[0] if value.rank == 0 else None
        if not isinstance(size, Dim) or size.symbol is None:
            return None
        source, axis = self.sources.get(size.symbol.text, (None, 0))
        return source if source is not None and axis is None and source.rank == 0 and source.dtype == INT64 else None

    def _vector(self, content: Shape) -> Value:
        parts: list[Value] = []
        position = 0
        while position < len(content):
            end = position + 1
            size = content[position]
            if isinstance(size, int):
                while end < len(content) and isinstance(content[end], int):
                    end += 1
                parts.append(self.const(list(content[position:end]), INT64))
            else:
                run = self._run(content, position)
                if run is not None:
                    source, axis, end = run
                    parts.append(self._dims_of(source, axis, axis + end - position))
                else:
                    parts.append(self._polynomial(size))
            position = end
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def _run(self, content: Shape, position: int) -> tuple[Value, int, int] | None:
        """The longest stretch from `position` that is a stretch of one tensor's shape."""
        size = content[position]
        atom = size.symbol if isinstance(size, Dim) else None
        if atom is None or atom.text not in self.sources:
            return None
        source, axis = self._source(atom.text)
        if axis is None or source.shape is None:
            return None
        end, at = position + 1, axis + 1
        while end < len(content) and at < len(source.shape) and isinstance(content[end], Dim) and content[end] == source.shape[at]:
            end, at = end + 1, at + 1
        return source, axis, end

    def _source(self, symbol: str) -> tuple[Value, int | None]:
        """Where a size is read: from a tensor that the present call is given, if there is one."""
        if self.apart is None:
            return self.sources[symbol]
        return self.apart.sources.get((symbol, self.call), self.sources[symbol])

    def _dims_of(self, source: Value, start: int, end: int) -> Value:
        if self.opset >= 15:
            whole = start == 0 and end == source.rank
            return self.op("Shape", source) if whole else self.op("Shape", source, start=start, end=end)
        shape = self.op("Shape", source)
        return self.op("Gather", shape, self.const(list(range(start, end))), axis=0)

    def _polynomial(self, size: Size) -> Value:
        """A one-element vector with the value of `size`."""
        size = dims.rounded(size)
        if isinstance(size, int):
            return self.const([size], INT64)
        key = ("poly", size, self.call)
        found = self._find(key)
        if found is not None:
            return found[0]
        total: Value | None = None
        constant = 0
        negative: Value | None = None
        for monomial, coefficient in size.terms:
            if not monomial:
                constant = coefficient
                continue
            factors = [self._atom(atom) for atom in monomial]
            if abs(coefficient) != 1:
                factors.append(self.const([abs(coefficient)], INT64))
            term = factors[0]
            for factor in factors[1:]:
                term = self.op("Mul", term, factor)
            if coefficient > 0:
                total = term if total is None else self.op("Add", total, term)
            else:
                negative = term if negative is None else self.op("Add", negative, term)
        if total is None:
            total, constant = self.const([constant], INT64), 0
        if negative is not None:
            total = self.op("Sub", total, negative)
        if constant:
            total = self.op("Add", total, self.const([constant], INT64))
        return self._keep(key, (total,))[0]

    def _atom(self, atom: dims.Atom) -> Value:
        if atom.fn is not None:
            a, b = atom.args
            left, right = self._polynomial(a), self._polynomial(b)
            if atom.fn in ("max", "min"):
                return self._extreme(atom.fn, left, right)
            low = dims.bounds(a)[0]
            if atom.fn == "//":
                if low >= 0 and dims.bounds(b)[0] >= 0:
                    return self.op("Div", left, right)
                # Div rounds towards zero: shift by the remainder, whose sign Mod takes from the divisor.
                return self.op("Div", self.op("Sub", left, self._remainder(left, right)), right)
            return self._remainder(left, right, positive=low >= 0)
        if atom.text not in self.sources:
            raise errors.ShapeError(f"the size {atom.text!r} has no tensor to read it from")
        source, axis = self._source(atom.text)
        if axis is not None:
            return self._dims_of(source, axis, axis + 1)
        if source.dtype != INT64:
            source = self.op("Cast", source, to=INT64)
        return source if source.rank == 1 else self.op("Reshape", source, self.const([1]))

    def _remainder(self, left: Value, right: Value, positive: bool = False) -> Value:
        if self.opset >= 10:
            return self.op("Mod", left, right)
        quotient = self.op("Mul", self.op("Div", left, right), right)
        rest = self.op("Sub", left, quotient)
        if positive:
            return rest
        shifted = self.op("Add", rest, right)
        return self.op("Sub", shifted, self.op("Mul", self.op("Div", shifted, right), right))

    def _extreme(self, fn: str, left: Value, right: Value) -> Value:
        if self.opset >= 12:
            return self.op("Max" if fn == "max" else "Min", left, right)
        wide = [self.op("Cast", v, to=DataType.DOUBLE if self.opset >= 8 else DataType.FLOAT) for v in (left, right)]
        return self.op("Cast", self.op("Max" if fn == "max" else "Min", *wide), to=INT64)

    def holds_where(self, size: Size, comparison: str, number: int) -> bool:
        """Whether the file may take `size != 1` (or the like) for granted: it is so in the example, and only the caller's inputs decide it."""
        if isinstance(size, int):
            return dims.compare(comparison, size, number) is True
        seen = dims.evaluate(size, self.hints)
        inputs = all((found := self.sources.get(symbol)) is not None and found[0].node is None for symbol in size.symbols)
        if seen is None or not inputs or not dims.compare(comparison, seen, number):
            return False
        self.conditions.append((comparison, size, number))
        return True

    # ------------------------------------------------------------------ nodes

    @overload
    def op(self, op_type: str, *inputs: Value | None, outputs: Literal[1] = 1, domain: str = "", **attrs: Any) -> Value: ...

    @overload
    def op(self, op_type: str, *inputs: Value | None, outputs: int, domain: str = "", **attrs: Any) -> tuple[Value, ...]: ...

    def op(self, op_type: str, *inputs: Value | None, outputs: int = 1, domain: str = "", **attrs: Any) -> Any:
        """Adds (or finds, or computes) one operator of the newest ONNX form.

        inputs: values, None for an optional one that is left out.   outputs: how many are wanted.
        attrs: plain Python (int, float, str, lists, DataType, a `Block` for a subgraph); None leaves one out.
        Returns a Value, or a tuple of Values where `outputs` is not 1.
        """
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        if attrs and None in attrs.values():
            attrs = {k: v for k, v in attrs.items() if v is not None}
        if domain:
            made = self._add(op_type, domain, inputs, outputs, attrs, shared=False)
            return made[0] if outputs == 1 else made
        if outputs == 1:
            size = None if self._computing else contents.propagate(self, op_type, inputs, attrs)
            if size is not None:
                return size
            simple = simplify.simplify(self, op_type, inputs, attrs)
            if simple is not None:
                return simple
        folded = folding.fold(self, op_type, inputs, attrs, outputs)
        if folded is not None:
            return folded[0] if outputs == 1 else folded
        wider = kernels.widening(self, op_type, inputs, attrs)
        if wider is not None:
            return self._widened(wider, op_type, inputs, outputs, attrs)
        made = self._add(op_type, "", inputs, outputs, attrs, shared=op_type not in RANDOM)
        return made[0] if outputs == 1 else made

    def several(self, op_type: str, *inputs: Value | None, outputs: int, **attrs: Any) -> list[Value]:
        """As `op`, with a list for any number of outputs."""
        made: Any = self.op(op_type, *inputs, outputs=outputs, **attrs)
        return [made] if outputs == 1 else list(made)

    def node(self, op_type: str, *inputs: Value | None, **attrs: Any) -> Value:
        """As `op`, as a node even where it could be computed now."""
        return self._add(op_type, "", inputs, 1, attrs, shared=True)[0]

    def _widened(self, wider: kernels.Widening, op_type: str, inputs: tuple[Value | None, ...], outputs: int, attrs: dict[str, Any]) -> Any:
        """Computes in another dtype where the wanted opset or ONNX Runtime has no kernel for this one."""
        cast = tuple(self.op("Cast", v, to=wider.inputs[i]) if v is not None and i in wider.inputs else v for i, v in enumerate(inputs))
        results = self.several(op_type, *cast, outputs=outputs, **attrs)
        for i, dtype in wider.outputs.items():
            if i < len(results):
                results[i] = self.op("Cast", results[i], to=dtype)
        return results[0] if outputs == 1 else tuple(results)

    def _add(self, op_type: str, domain: str, inputs: tuple[Value | None, ...], outputs: int, attrs: dict[str, Any], *,
             shared: bool) -> tuple[Value, ...]:
        real = tuple(None if v is None else self.real(v) for v in inputs)
        for name, attr in attrs.items():
            if isinstance(attr, (list, tuple)) and any(isinstance(item, Dim) for item in attr):
                raise errors.UnsupportedError(f"ONNX {op_type} takes fixed numbers as {name}, and here they depend on a dynamic size: {list(attr)}")
        key = None
        if shared:
            key = (op_type, tuple([None if v is None else v.key for v in real]), _frozen(attrs), outputs, self.call)
            found = self._find(key)
            if found is not None:
                return found
        node = Node(op_type, domain, real, attrs)
        node.scope, node.source, node.call = self.scope, self.source, self.call
        if not domain:
            written = forms.write(self, op_type, real, attrs, outputs)
            if not (written and isinstance(written[0], str)):  # other nodes compute it
                return self._keep(key, written) if key is not None else written
            node.written = written
            known = shapes.infer(self, op_type, real, attrs, outputs)
        else:
            self.domains.setdefault(domain, self.versions.get(domain, 1))
            known = [(None, None)] * outputs
        made = []
        for index, (dtype, shape) in enumerate(known):
            value = Value(dtype, None, node=node, index=index)
            if shape is not None:
                value.shape = tuple([self.fresh(value, axis) if size is None else size for axis, size in enumerate(shape)])
            elif not domain:
                value.sequence = shape_rules_control.is_sequence(op_type, real, attrs, index)
            made.append(value)
        node.outputs = tuple(made)
        node.block = self.block
        self.block.nodes.append(node)
        if key is not None:
            self._keep(key, node.outputs)
        return node.outputs

    def _find(self, key: Any) -> tuple[Value, ...] | None:
        block: Block | None = self.block
        while block is not None:
            found = block.known.get(key)
            if found is not None:
                return found
            block = block.parent
        return None

    def _keep(self, key: Any, values: tuple[Value, ...]) -> tuple[Value, ...]:
        self.block.known[key] = values
        return values

    @contextlib.contextmanager
    def subgraph(self) -> Iterator[Block]:
        """Nodes made inside go into the yielded block; set its `outputs` and pass it as an attribute."""
        block = Block(self.block)
        with self.reopened(block):
            yield block
        self.close(block)

    @contextlib.contextmanager
    def reopened(self, block: Block) -> Iterator[None]:
        """Nodes made inside go into `block`, which `close` will end."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    def close(self, block: Block) -> None:
        """Ends a subgraph: an output is made by a node of the subgraph itself, and stands once."""
        seen: set[int] = set()
        outputs: list[Value] = []
        with self.reopened(block):
            for value in block.outputs:
                value = self.real(value)
                if value.node is None or value.node.block is not block or value.key in seen:
                    value = self.again(value)
                seen.add(value.key)
                outputs.append(value)
        block.outputs = outputs

    def again(self, value: Value) -> Value:
        """The same as `value`, made by a node of its own here. Below opset 14 Identity takes no sequence."""
        if not value.sequence or self.opset >= _IDENTITY_OF_SEQUENCES:
            return self._add("Identity", "", (value,), 1, {}, shared=False)[0]
        assert value.dtype is not None
        longer = self._add("SequenceInsert", "", (value, self.const(torch.zeros(0), value.dtype)), 1, {}, shared=False)
        return self._add("SequenceErase", "", longer, 1, {}, shared=False)[0]

    def is_inside(self, value: Value, block: Block) -> bool:
        """Whether a value exists in `block` only, or in a subgraph of it."""
        home = value.node.block if value.node is not None else self._homes.get(value.key)
        while home is not None and home is not block:
            home = home.parent
        return home is block

    def integer(self, value: Value) -> Size:
        """The integer scalar `value` of any sign as a size: known, derived, or a new symbol."""
        if value.content is None and value.const is None:
            known = self._find(("integer", value.key))
            if known is None:
                symbol = self.fresh(value, None, "i", low=_LOWEST)
                known = self._keep(("integer", value.key), (Value(INT64, (), content=(symbol,)),))
            assert known[0].content is not None
            return known[0].content[0]
        return self.size_of(value)


_LOWEST = -(1 << 63)


def _frozen(attrs: dict[str, Any]) -> Any:
    if not attrs:
        return ()
    return tuple([(k, tuple(v) if isinstance(v, list) else id(v) if isinstance(v, Block) else v) for k, v in sorted(attrs.items())])
