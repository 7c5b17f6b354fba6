"""Python's own data in a script, as the lowering keeps it: lists that change, values that may be None, values that nobody knows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch

from onnxport import errors
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim, Size
from onnxport.target.dtypes import to_torch
from onnxport.target.value import DataType, Value


class _Uninitialized:
    def __repr__(self) -> str:
        return "uninitialized"


UNINITIALIZED = _Uninitialized()


@dataclass(frozen=True)
class Maybe:
    """An Optional of which only the running model knows whether it is None. present: a bool value; value: what it is if it is."""

    present: Any
    value: Any


@dataclass(frozen=True)
class Unclear:
    """What no node can compute; an error where it is used. reason: why."""

    reason: str

    def refuse(self) -> Any:
        """Raises the error."""
        raise errors.UnsupportedError(f"a value is used that ONNX cannot hold: {self.reason}")


def state_of(x: Any) -> Any:
    """What a list holds, whether the script may change it or not."""
    return x.state if isinstance(x, Listed) else tuple(x)


@dataclass(frozen=True)
class Stacked:
    """What a list holds whose length the running model decides: tensors of one shape (or numbers) as one tensor, along dim 0.

    kind: "tensor", "int", "float" or "bool".
    """

    value: Value
    kind: str = "tensor"


@dataclass(frozen=True)
class Sequenced:
    """What a list holds whose length the running model decides, where its tensors differ in shape: an ONNX sequence.

    value: the sequence.   sizes: of each of its tensors; None for a size that is not the same in all of them.
    """

    value: Value
    sizes: tuple[Size | None, ...]

    def refuse(self, *_: Any) -> Any:
        """Raises the error."""
        raise errors.UnsupportedError("this is not done with a list of tensors of different shapes whose length the running model decides; "
                                      "pad them to one shape, or concatenate them as they are made")

    __iter__ = __getitem__ = __len__ = refuse


class Collected:
    """What a list holds to which a loop only appends: the elements become scan outputs."""

    def __init__(self) -> None:
        self.made: list[Any] = []


class _Lost:
    def __repr__(self) -> str:
        return "lost"


LOST = _Lost()  # what a list holds of which nobody knows whether it was changed


class Listed:
    """A list as an object.

    held: a tuple of its items, `Stacked`, `Sequenced`, `Collected` or `LOST`.   alike: lists that may be the same object.
    """

    __slots__ = ("alike", "held", "serial")
    _serials = itertools.count()

    def __init__(self, held: Any):
        self.held = held
        self.serial = next(Listed._serials)
        self.alike: list[Listed] = []

    @property
    def state(self) -> Any:
        """What it holds, where that is known."""
        if self.held is LOST:
            raise errors.UnsupportedError("a list is read that may be the same as one that was changed; only the running model knows; copy it first")
        return self.held

    @property
    def items(self) -> tuple[Any, ...]:
        """What it holds, where its length is known."""
        if isinstance(self.state, tuple):
            return self.held  # type: ignore[no-any-return]
        raise errors.UnsupportedError("the length of this list is known only when the model runs, and here it has to be known before")

    def may_be(self, other: Any) -> None:
        """This list and `other` may be one."""
        if isinstance(other, Listed) and other is not self and other not in self.alike:
            self.alike.append(other)
            other.alike.append(self)

    def others(self) -> list[Listed]:
        """All lists that this one may be."""
        found, stack = {self}, list(self.alike)
        while stack:
            other = stack.pop()
            if other not in found:
                found.add(other)
                stack += other.alike
        return [other for other in found if other is not self]


class Keyed(Listed):
    """A dict as an object: its state is a dict that nobody changes."""

    __slots__ = ()


def entries(x: Any) -> dict[Any, Any] | None:
    """What a dict holds, whether the script may change it or not; None for what is no dict."""
    if isinstance(x, Keyed):
        found: dict[Any, Any] = x.state
        return found
    return x if isinstance(x, dict) else None


class Journal:
    """What lists held before a block changed them."""

    def __init__(self) -> None:
        self._stack: list[tuple[int, dict[Listed, Any]]] = []

    def change(self, held: Listed, state: Any) -> None:
        """The script changes a list; nobody knows what those hold then that may be the same."""
        self.put(held, state)
        if held.alike:
            for other in held.others():
                self.put(other, LOST)

    def put(self, held: Listed, state: Any) -> None:
        """Gives a list another state."""
        for mark, entry in reversed(self._stack):
            if held in entry or held.serial > mark:
                break
            entry[held] = held.held
        held.held = state

    def begin(self) -> None:
        """From here on changes can be taken back."""
        self._stack.append((Listed(()).serial, {}))

    def take_back(self) -> dict[Listed, Any]:
        """Ends what `begin` began: lists are as before; what they were changed to."""
        _, before = self._stack.pop()
        after = {held: held.held for held in before}
        for held, state in before.items():
            held.held = state
        return after


def stacked(g: Builder, state: Any, like: Any = None) -> Stacked:
    """The state of a list as one tensor. like: another state, which says what the elements of an empty list would be."""
    if isinstance(state, Stacked):
        return state
    if isinstance(state, Collected):
        raise errors.UnsupportedError("a list is read while a loop appends to it")
    if isinstance(state, Sequenced):
        state.refuse()
    if state:
        return _stack(g, state)
    if isinstance(like, Stacked):
        kind, dtype, shape = like.kind, like.value.dtype, like.value.shape
        inner = None if shape is None else shape[1:]
    else:
        sample = _stack_kind(g, like)
        kind, dtype, inner = sample
    if dtype is None or inner is None:
        raise errors.UnsupportedError("nothing is known of what a list holds")
    if not dims.is_static(inner):
        return Stacked(g.op("Expand", g.constant(torch.zeros((), dtype=to_torch(dtype))), g.sizes([0, *inner])), kind)
    return Stacked(g.constant(torch.zeros([0, *[int(s) for s in inner]], dtype=to_torch(dtype))), kind)  # type: ignore[arg-type]


_DTYPES = {"int": DataType.INT64, "float": DataType.DOUBLE, "bool": DataType.BOOL}


def _kind(x: Any) -> str:
    return "bool" if isinstance(x, bool) else "int" if isinstance(x, (int, Dim)) else "float" if isinstance(x, float) else "tensor"


def _stack_kind(g: Builder, state: Any) -> tuple[str, DataType | None, Any]:
    if not state:
        return "tensor", None, None
    first = state[0]
    kind = _kind(first)
    if isinstance(first, Value):
        return kind, first.dtype, first.shape
    if kind == "tensor":
        raise errors.UnsupportedError(f"a list of {type(first).__name__}s whose length the running model decides")
    return kind, _DTYPES[kind], ()


def _stack(g: Builder, state: tuple[Any, ...]) -> Stacked:
    kind, dtype, shape = _stack_kind(g, state)
    parts = []
    for item in state:
        size = isinstance(item, (int, Dim)) and not isinstance(item, bool)
        value = item if isinstance(item, Value) else g.scalar(item) if size else g.const(item, dtype)
        if not isinstance(item, (Value, int, float, Dim)):
            raise errors.UnsupportedError(f"a list of {type(item).__name__}s whose length the running model decides")
        if value.shape is None or shape is None or len(value.shape) != len(shape) or not all(map(dims.equal, value.shape, shape)):
            raise errors.UnsupportedError("a list whose length the running model decides holds tensors of different shapes; "
                                          "pad them to one shape, or concatenate them as they are made")
        parts.append(g.op("Unsqueeze", value, g.const([0])))
    return Stacked(parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=0), kind)
