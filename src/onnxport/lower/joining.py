"""What the branches of an If and the turns of a Loop have in common: Python values, numbers and tensors as results of one node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.lower import sequences
from onnxport.lower.python import LOST, UNINITIALIZED, Keyed, Listed, Maybe, Sequenced, Stacked, Unclear, entries, stacked
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import from_torch, promote, to_torch
from onnxport.target.value import Block, Complex, DataType, Value

Finish = Callable[[Sequence[Value]], Any]
NUMBERS = (bool, int, float, Dim)


def kind_of(x: Any) -> str:
    """"int", "float", "bool", "tensor" or "plain"."""
    if isinstance(x, bool):
        return "bool"
    if isinstance(x, (int, Dim)):
        return "int"
    if isinstance(x, float):
        return "float"
    return "tensor" if isinstance(x, Value) else "plain"


def as_value(g: Builder, x: Any, dtype: DataType | None = None) -> Value:
    """A number, size or tensor as a value that a node can read."""
    if isinstance(x, Dim):
        x = g.scalar(x)
    if isinstance(x, Value):
        return x if dtype is None or x.dtype == dtype else g.op("Cast", x, to=dtype)
    if not isinstance(x, (bool, int, float)):
        raise errors.UnsupportedError(f"an object of type {type(x).__name__} where only the running model knows which one it is")
    own = DataType.BOOL if isinstance(x, bool) else DataType.INT64 if isinstance(x, int) else DataType.DOUBLE
    return g.const(x, dtype or own)


def from_value(g: Builder, value: Value, kind: str) -> Any:
    """A result as the lowering keeps values of its kind: integers are sizes."""
    return g.integer(value) if kind == "int" and value.dtype == DataType.INT64 else value


def is_visible(g: Builder, size: Size, inner: Block) -> bool:
    """Whether a size means something outside a block."""
    if isinstance(size, int):
        return True
    return not any(g.is_inside(g.sources[name][0], inner) for name in size.symbols if name in g.sources)


def placeholder(g: Builder, dtype: DataType, shape: Sequence[Size | None]) -> Value:
    """Something of this type that nobody reads; where a size is not known, 1."""
    sizes = [1 if s is None else s for s in shape]
    if dims.is_static(sizes):
        return g.constant(torch.zeros([int(s) for s in sizes], dtype=to_torch(dtype)))  # type: ignore[arg-type]
    return g.op("Expand", g.constant(torch.zeros((), dtype=to_torch(dtype))), g.sizes(sizes))


class Joiner:
    """Pairs of values, one of each branch, that become results of an If. ends: what lists held at the end of each branch."""

    def __init__(self, g: Builder, condition: Value, blocks: tuple[Block, Block], ends: tuple[dict[Listed, Any], dict[Listed, Any]]):
        self.g, self.condition, self.blocks, self.ends = g, condition, blocks, ends
        self.outputs: tuple[list[Value], list[Value]] = ([], [])

    def join(self, a: Any, b: Any, kind: str = "") -> Finish:
        """How the result is found among the If's outputs, once these exist."""
        if a is b or (kind_of(a) == kind_of(b) and not isinstance(a, (Value, Listed, tuple, list, dict)) and same(a, b)):
            return lambda results: a
        if a is UNINITIALIZED or b is UNINITIALIZED:
            return self._uninitialized(a, b, kind)
        if isinstance(a, Unclear) or isinstance(b, Unclear):
            return lambda results: a if isinstance(a, Unclear) else b
        if a is None or b is None or isinstance(a, Maybe) or isinstance(b, Maybe):
            return self._maybe(a, b, kind)
        if isinstance(a, Complex) and isinstance(b, Complex):
            return self._complex(self.join(a.re, b.re), self.join(a.im, b.im))
        if entries(a) is not None and entries(b) is not None:
            return self._dicts(a, b)
        if isinstance(a, (Listed, list)) and isinstance(b, (Listed, list)):
            return self._lists(a, b)
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            parts = [self.join(x, y) for x, y in zip(a, b, strict=True)]
            return lambda results: tuple(part(results) for part in parts)
        if kind_of(a) == "plain" or kind_of(b) == "plain":
            return lambda results: Unclear(f"which of {_shown(a)} and {_shown(b)} it is, only the running model knows")
        return self._values(a, b, kind)

    def _complex(self, re: Finish, im: Finish) -> Finish:
        return lambda results: Complex(re(results), im(results))

    def _dicts(self, a: Any, b: Any) -> Finish:
        return self._objects(a, b, entries, Keyed)

    def _lists(self, a: Any, b: Any) -> Finish:
        return self._objects(a, b, tuple, Listed)

    def _objects(self, a: Any, b: Any, plain: Callable[[Any], Any], kind: type[Listed]) -> Finish:
        sides = zip((a, b), self.ends, strict=True)
        state = self.states(*[end.get(x, x.held) if isinstance(x, Listed) else plain(x) for x, end in sides])

        return self._made(kind, state, (a, b))

    def _made(self, kind: type[Listed], state: Finish, sources: Sequence[Any]) -> Finish:
        """A new list, which may be one of those that it is made of."""
        def finish(results: Sequence[Value]) -> Listed:
            made = kind(state(results))
            for source in sources:
                made.may_be(source)
            return made

        return finish

    def states(self, a: Any, b: Any) -> Finish:
        """The same for what two lists or dicts hold."""
        if a is LOST or b is LOST:
            return lambda results: LOST
        if isinstance(a, dict):
            if list(a) != list(b):
                raise errors.UnsupportedError(f"after one branch a dict has the keys {list(a)}, after the other {list(b)}")
            members = {key: self.join(a[key], b[key]) for key in a}
            return lambda results: {key: member(results) for key, member in members.items()}
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            parts = [self.join(x, y) for x, y in zip(a, b, strict=True)]
            return lambda results: tuple(part(results) for part in parts)
        if not (sequences.uniform(a) and sequences.uniform(b)):
            return self._sequences(a, b)
        first, second = self._stacked(0, a, b), self._stacked(1, b, a)
        finish = self._values(first.value, second.value, "tensor")
        return lambda results: Stacked(finish(results), first.kind)

    def _sequences(self, a: Any, b: Any) -> Finish:
        sequences.check_opset(self.g)
        position = len(self.outputs[0])
        kinds = []
        for block, outputs, state, other in zip(self.blocks, self.outputs, (a, b), (b, a), strict=True):
            with self.g.reopened(block):
                made = sequences.sequenced(self.g, state, sequences.items_of(other))
            outputs.append(made.value)
            kinds.append(sequences.outside(sequences.items_of(made), lambda size, block=block: is_visible(self.g, size, block)))  # type: ignore
        _, sizes = sequences.common(*kinds)
        return lambda results: Sequenced(results[position], sizes)

    def _stacked(self, which: int, state: Any, other: Any) -> Stacked:
        """What a list holds at the end of a branch as one tensor; of an empty one, `other` says what its items would be."""
        if not isinstance(state, Stacked) and not state:
            with self.g.reopened(self.blocks[1 - which]):
                other = stacked(self.g, other)
            sizes = [s if is_visible(self.g, s, self.blocks[1 - which]) else 1 for s in other.value.shape or ()]
            other = Stacked(Value(other.value.dtype, (0, *sizes[1:])), other.kind)
        with self.g.reopened(self.blocks[which]):
            return stacked(self.g, state, like=other)

    def _values(self, a: Any, b: Any, kind: str) -> Finish:
        own = kind_of(a) if kind_of(a) != "tensor" else kind_of(b)
        kind = kind if kind in ("int", "float", "bool") else own
        dtype = self._dtype(a, b, kind)
        position = len(self.outputs[0])
        for x, block, outputs in zip((a, b), self.blocks, self.outputs, strict=True):
            with self.g.reopened(block):
                outputs.append(as_value(self.g, x, dtype))
        return lambda results: from_value(self.g, results[position], kind)

    def _dtype(self, a: Any, b: Any, kind: str) -> DataType | None:
        found = [x.dtype if isinstance(x, Value) else None for x in (a, b)]
        if kind == "float":
            return DataType.DOUBLE
        if found[0] == found[1] and found[0] is not None:
            return found[0]
        if None in found:
            return {"int": DataType.INT64, "bool": DataType.BOOL}.get(kind)
        raise errors.UnsupportedError(f"the two branches give tensors of different dtypes ({found[0].name} and {found[1].name}); "  # type: ignore[union-attr]
                                      "an ONNX If has one: convert them to the same")

    def _uninitialized(self, a: Any, b: Any, kind: str) -> Finish:
        """A value that one side never made, and that nobody reads when that side ran."""
        which, x = (0, b) if a is UNINITIALIZED else (1, a)
        if isinstance(x, (Listed, tuple, list, dict)):
            return self._half_made(which, x)
        if isinstance(x, Maybe):
            present, value = self._half(which, x.present), self._half(which, x.value)
            return lambda results: Maybe(present(results), value(results))
        if isinstance(x, Complex):
            return self._complex(self._half(which, x.re), self._half(which, x.im))
        if kind_of(x) == "plain" or isinstance(x, (bool, int, float)):
            return lambda results: x
        blank: Any = 0
        if isinstance(x, Value):
            with self.g.reopened(self.blocks[which]):
                blank = self._like(x, self.blocks[1 - which])
        a, b = (blank, x) if which == 0 else (x, blank)
        return self._values(a, b, kind)

    def _half(self, which: int, x: Any) -> Finish:
        return self.join(UNINITIALIZED, x) if which == 0 else self.join(x, UNINITIALIZED)

    def _half_made(self, which: int, x: Any) -> Finish:
        """A container that the side `which` never made."""
        if isinstance(x, Listed):
            state = self._half_made(which, self.ends[1 - which].get(x, x.held))
            return self._made(type(x), state, (x,))
        if isinstance(x, (tuple, list)):
            parts = [self._half(which, member) for member in x]
            return lambda results: type(x)([part(results) for part in parts])
        if isinstance(x, dict):
            members = {key: self._half(which, member) for key, member in x.items()}
            return lambda results: {key: member(results) for key, member in members.items()}
        if isinstance(x, Stacked):
            value = self._half(which, x.value)
            return lambda results: Stacked(value(results), x.kind)
        if isinstance(x, Sequenced):
            return self._sequences((), x) if which == 0 else self._sequences(x, ())
        return lambda results: x

    def _like(self, x: Value, home: Block) -> Value:
        if x.dtype is None or x.shape is None:
            raise errors.UnsupportedError("a value whose rank is not known is made in one branch only")
        return placeholder(self.g, x.dtype, [s if is_visible(self.g, s, home) else None for s in x.shape])

    def _maybe(self, a: Any, b: Any, kind: str) -> Finish:
        """An Optional that is None on one side."""
        sides = [x if isinstance(x, Maybe) else Maybe(x is not None, UNINITIALIZED if x is None else x) for x in (a, b)]
        present = self._values(sides[0].present, sides[1].present, "bool")
        value = self.join(sides[0].value, sides[1].value, "")
        return lambda results: Maybe(present(results), value(results))


def same(a: Any, b: Any) -> bool:
    """Whether two plain values are one."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    if isinstance(a, (int, Dim)) and isinstance(b, (int, Dim)):
        return dims.equal(a, b)
    return type(a) is type(b) and bool(a == b)


def _shown(x: Any) -> str:
    return repr(x) if isinstance(x, (str, bool, int, float, torch.dtype)) else type(x).__name__


__all__ = ["Joiner", "as_value", "from_torch", "from_value", "is_visible", "kind_of", "placeholder", "promote", "same"]
