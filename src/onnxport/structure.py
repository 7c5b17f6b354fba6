"""Takes nested arguments and results apart into tensors, and puts them together again.

Known are tuples, named tuples, the result types of torch functions, lists, mappings, dataclasses (also those of
`transformers`, which are mappings too), key-value caches in the manner of `transformers`, and whatever is registered
with PyTorch's pytree. Tensors are the leaves; everything else (None, numbers, strings, unknown objects) is a constant
that stays in the `Spec`.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from onnxport import errors

try:  # a private name of PyTorch's; without it, classes that only pytree knows are constants
    from torch.utils import _pytree as pytree
except ImportError:  # pragma: no cover
    pytree = None  # type: ignore[assignment]


# A size of torch.export's is a tensor of rank 0, as it is in a trace.
_TENSORS = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)


class Leaf(NamedTuple):
    """A tensor or a constant, and where it stands: `past.0.key`, `boxes`, `1`; empty for an object that is not nested."""

    path: str
    value: Any


class _Parts(NamedTuple):
    """One level of a container: the names and values of its members, and how to make another one of other members."""

    names: list[str]
    members: list[Any]
    join: Callable[[list[Any]], Any]


class Whole(list[Any]):
    """A list of tensors that is one leaf: a script's list, of any length, which becomes an ONNX sequence."""

    def dim(self) -> int:
        """The rank of its tensors."""
        return int(self[0].dim())


def each(change: Callable[[torch.Tensor], torch.Tensor], leaf: Any) -> Any:
    """A leaf with its tensor changed, or each of its tensors."""
    return Whole([change(tensor) for tensor in leaf]) if isinstance(leaf, Whole) else change(leaf)


class Spec:
    """The shape of a nested object without its tensors."""

    __slots__ = ("_children", "_constant", "_join", "_kind", "_names")

    def __init__(self, kind: str, *, constant: Any = None, parts: _Parts | None = None, children: Sequence[Spec] = ()):
        self._kind, self._constant, self._children = kind, constant, tuple(children)
        self._names = parts.names if parts else []
        self._join = parts.join if parts else None

    @property
    def count(self) -> int:
        """The number of tensors."""
        return 1 if self._kind == "tensor" else sum(child.count for child in self._children)

    @property
    def constants(self) -> list[Leaf]:
        """Everything that is no tensor, with its path."""
        return list(self._constants(""))

    def _constants(self, path: str) -> Iterator[Leaf]:
        if self._kind == "constant":
            yield Leaf(path, self._constant)
        for name, child in zip(self._names, self._children):
            yield from child._constants(_below(path, name))

    def leaves(self, tensors: Sequence[Any]) -> list[Leaf]:
        """Tensors (these in place of its own) and constants in the order in which they stand."""
        return list(self._leaves("", iter(tensors)))

    def _leaves(self, path: str, tensors: Iterator[Any]) -> Iterator[Leaf]:
        if self._kind == "tensor":
            yield Leaf(path, next(tensors))
        if self._kind == "constant":
            yield Leaf(path, self._constant)
        for name, child in zip(self._names, self._children):
            yield from child._leaves(_below(path, name), tensors)

    @property
    def names(self) -> list[str]:
        """The names of the members."""
        return self._names

    def child_names(self, name: str) -> list[str]:
        """The names of the members of one member."""
        return self._children[self._names.index(name)]._names

    def beside(self, pattern: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
        """For each tensor, what stands in its place in `pattern`: dicts, tuples and lists nested alike; None for all that is below.

        is_leaf: whether a dict or list in the pattern speaks of one tensor. The tensors of an object that is nested
        deeper than its pattern are taken in order.
        """
        if self._kind == "constant":
            return []
        if self._kind == "tensor":
            return [pattern]
        if pattern is None:
            return [None] * self.count
        if isinstance(pattern, Mapping) and not (is_leaf(pattern) and self.count == 1 and not set(map(str, pattern)) & set(self._names)):
            children = [pattern.get(name, pattern.get(int(name)) if name.isdigit() else None) for name in self._names]
        elif isinstance(pattern, (list, tuple)) and len(pattern) == len(self._children):
            children = list(pattern)
        elif isinstance(pattern, (list, tuple)):
            return self._in_order(pattern, is_leaf)
        else:
            raise errors.ArgumentError(f"dynamic_shapes has {pattern!r} where {len(self._children)} members are ({', '.join(self._names)})")
        return [entry for child, inner in zip(self._children, children) for entry in child.beside(inner, is_leaf)]

    def _in_order(self, pattern: Sequence[Any], is_leaf: Callable[[Any], bool]) -> list[Any]:
        flat: list[Any] = []
        stack = list(reversed(pattern))
        while stack:
            entry = stack.pop()
            if isinstance(entry, (list, tuple)) and not (is_leaf(entry) and entry):
                stack += reversed(entry)
            else:
                flat.append(entry)
        if len(flat) != self.count:
            raise errors.ArgumentError(f"dynamic_shapes has {len(flat)} entries where {self.count} tensors are ({', '.join(self._names)})")
        return flat

    def unflatten(self, tensors: Sequence[Any]) -> Any:
        """The object with `tensors` (as many as `count`, in the order of `flatten`) in place of its own."""
        if len(tensors) != self.count:
            raise ValueError(f"{self.count} tensors are needed here, and {len(tensors)} were given")
        return self._build(iter(tensors))

    def _build(self, tensors: Iterator[Any]) -> Any:
        if self._kind == "tensor":
            return next(tensors)
        if self._join is None:
            return self._constant
        return self._join([child._build(tensors) for child in self._children])


class CallSpec:
    """The shape of a call: the arguments without their tensors."""

    def __init__(self, spec: Spec, signature: inspect.Signature | None):
        self._spec, self._signature = spec, signature

    @property
    def constants(self) -> list[Leaf]:
        """The arguments, or members of arguments, that are no tensors."""
        return [Leaf(self._named(leaf.path), leaf.value) for leaf in self._spec.constants]

    @property
    def count(self) -> int:
        """The number of tensors."""
        return self._spec.count

    def beside(self, pattern: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
        """For each tensor, what stands in its place in `pattern`: by the names of the arguments, or by position."""
        return self._spec.beside(self._by_name(pattern, is_leaf), is_leaf)

    def _by_name(self, pattern: Any, is_leaf: Callable[[Any], bool]) -> Any:
        """A pattern with an entry for each parameter: the names that `**kwargs` collects stand among the others in it."""
        if self._signature is None or pattern is None:
            return pattern
        parameters = [p for p in self._signature.parameters.values() if p.name in self._spec.names]
        if not isinstance(pattern, Mapping):
            if not isinstance(pattern, (tuple, list)):
                raise errors.ArgumentError(f"dynamic_shapes must be a dict by argument name or a tuple, not {type(pattern).__name__}")
            collects = len(parameters) == 1 and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
            collects = collects and (len(pattern) != 1 or is_leaf(pattern[0]))
            return {p.name: entry for p, entry in zip(parameters, [pattern] if collects else pattern)}
        named = {p.name for p in parameters}
        rest = {name: entry for name, entry in pattern.items() if name not in named}
        collected = next((p for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD), None)
        unknown = [name for name in rest if name not in (self._spec.child_names(collected.name) if collected else ())]
        unknown = [name for name in unknown if name not in self._signature.parameters or pattern[name] is not None]
        if unknown:
            arguments = ", ".join(self._spec.names)
            raise errors.ArgumentError(f"dynamic_shapes names {unknown[0]!r}, which is no argument of this call ({arguments})")
        return {**pattern, collected.name: {**rest, **(pattern.get(collected.name) or {})}} if collected else pattern

    def unflatten(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`(args, kwargs)` with these tensors."""
        built = self._spec.unflatten(tensors)
        if self._signature is None:
            args, kwargs = built
            return args, kwargs
        bound = inspect.BoundArguments(self._signature, collections.OrderedDict(built))
        return bound.args, bound.kwargs

    def _named(self, path: str) -> str:
        """Without the name of the parameter that collects `**kwargs`, which the caller never wrote."""
        head, _, rest = path.partition(".")
        if self._signature is None:
            return rest
        parameter = self._signature.parameters.get(head)
        return rest if rest and parameter is not None and parameter.kind is inspect.Parameter.VAR_KEYWORD else path


def flatten(value: Any, path: str = "", numbers: bool = False) -> tuple[list[Leaf], Spec]:
    """The tensors in `value`, in order, with their paths (`path` stands before each), and the rest. numbers: those are leaves too."""
    leaves: list[Leaf] = []
    return leaves, _take_apart(value, path, leaves, numbers)


def flatten_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> tuple[list[Leaf], CallSpec]:
    """The tensors among the arguments of a call, in the order of the function's parameters, whether given by position or name.

    Parameters that are not given keep their defaults and are no constants. Without a signature: the positional ones, then
    the named ones. Raises `ArgumentError` with Python's own words where the arguments do not fit.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        leaves, spec = flatten((tuple(args), dict(kwargs or {})))
        call = CallSpec(spec, None)
    else:
        try:
            bound = signature.bind(*args, **(kwargs or {}))
        except TypeError as error:
            raise errors.ArgumentError(f"args and kwargs do not fit the model's forward: {error}") from error
        leaves, spec = flatten(dict(bound.arguments))
        call = CallSpec(spec, signature)
    return [Leaf(call._named(leaf.path), leaf.value) for leaf in leaves], call


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _take_apart(value: Any, path: str, leaves: list[Leaf], numbers: bool = False) -> Spec:
    if isinstance(value, (*_TENSORS, Whole)) or (numbers and type(value) in (bool, int, float)):
        leaves.append(Leaf(path, value))
        return Spec("tensor")
    parts = _parts(value)
    if parts is None:
        return Spec("constant", constant=value)
    children = [_take_apart(member, _below(path, name), leaves, numbers) for name, member in zip(parts.names, parts.members)]
    return Spec("container", parts=parts, children=children)


def _parts(value: Any) -> _Parts | None:
    """One level of `value`, or None where it is nothing to take apart."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, type, torch.Size, torch.nn.Module)):
        return None
    if isinstance(value, tuple):
        return _tuple(value)
    if isinstance(value, list):
        kind = type(value)
        return _Parts(_indices(value), list(value), lambda members: members if kind is list else kind(members))
    if dataclasses.is_dataclass(value):
        return _dataclass(value)
    if isinstance(value, Mapping):
        return _mapping(value)
    return _cache(value) or _registered(value)


def _indices(value: Sequence[Any]) -> list[str]:
    return [str(index) for index in range(len(value))]


def _tuple(value: tuple[Any, ...]) -> _Parts:
    kind = type(value)
    if kind is tuple:
        return _Parts(_indices(value), list(value), tuple)
    fields = getattr(kind, "_fields", None)
    if fields is not None:
        return _Parts(list(fields), list(value), kind._make)  # type: ignore[attr-defined]
    # torch.return_types.max and its like know their fields as patterns for `match`
    names = list(getattr(kind, "__match_args__", ()))
    return _Parts(names if len(names) == len(value) else _indices(value), list(value), kind)


def _mapping(value: Mapping[Any, Any]) -> _Parts:
    keys = list(value)
    make: Any = type(value)
    if isinstance(value, collections.defaultdict):
        make = functools.partial(make, value.default_factory)
    elif isinstance(value, collections.UserDict):  # may carry more than its content, and its constructor may want it
        template = copy.copy(value)
        template.data = {}
        make = functools.partial(_user_dict, template)
    # The closure must not hold `value`, whose tensors would live as long as the Spec.
    return _Parts([str(key) for key in keys], [value[key] for key in keys], lambda members: make(dict(zip(keys, members))))


def _user_dict(template: Any, content: dict[Any, Any]) -> Any:
    made = copy.copy(template)
    made.data = content
    return made


def _dataclass(value: Any) -> _Parts:
    names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    kind: Any = type(value)

    def join(members: list[Any]) -> Any:
        # Not by the constructor: what __post_init__ derived is among the members, and it may not be derivable twice.
        made = kind.__new__(kind)
        frozen = kind.__dataclass_params__.frozen
        for name, member in zip(names, members):
            if frozen:
                object.__setattr__(made, name, member)
            else:
                setattr(made, name, member)  # ModelOutput enters it into its mapping here
        return made

    return _Parts(names, [getattr(value, name) for name in names], join)


_SINGULAR = {"keys": "key", "values": "value"}


def _cache(value: Any) -> _Parts | None:
    """A key-value cache: layers that have `keys` and `values`, a pair of such caches, or lists `key_cache` and `value_cache`."""
    fields = getattr(value, "__dict__", None)
    if not fields:
        return None
    if "self_attention_cache" in fields and "cross_attention_cache" in fields:
        return _attributes(value, ["self_attention_cache", "cross_attention_cache"])
    layers = fields.get("layers")
    if isinstance(layers, list) and all("keys" in getattr(layer, "__dict__", {}) for layer in layers):
        template = _copied(value, ["layers"])
        return _Parts(_indices(layers), [_Layer(layer) for layer in layers], lambda members: _with(template, {"layers": members}))
    if isinstance(fields.get("key_cache"), list) and isinstance(fields.get("value_cache"), list):
        count = len(fields["key_cache"])
        names = [f"{i}.{kind}" for i in range(count) for kind in ("key", "value")]
        members = [m for pair in zip(fields["key_cache"], fields["value_cache"]) for m in pair]
        template = _copied(value, ["key_cache", "value_cache"])
        return _Parts(names, members, lambda made: _with(template, {"key_cache": made[::2], "value_cache": made[1::2]}))
    if isinstance(value, _Layer):
        tensors = [name for name, member in vars(value.layer).items() if isinstance(member, torch.Tensor) and not name.startswith("_")]
        return _attributes(value.layer, tensors)
    return None


class _Layer:
    """Marks an object as one layer of a cache."""

    def __init__(self, layer: Any):
        self.layer = layer


def _attributes(value: Any, names: list[str]) -> _Parts:
    template = _copied(value, names)
    members = [getattr(value, name) for name in names]
    return _Parts([_SINGULAR.get(n, n) for n in names], members, lambda made: _with(template, dict(zip(names, made))))


def _copied(value: Any, without: list[str]) -> Any:
    """A copy of `value` that shares no list, dict or set with it and has None for the attributes `without`."""
    kind: Any = type(value)
    made = kind.__new__(kind)
    for name, member in vars(value).items():
        made.__dict__[name] = copy.copy(member) if isinstance(member, (list, dict, set)) else member
    made.__dict__.update(dict.fromkeys(without))
    return made


def _with(template: Any, attributes: dict[str, Any]) -> Any:
    made = _copied(template, [])
    made.__dict__.update(attributes)
    return made


def _registered(value: Any) -> _Parts | None:
    if pytree is None:
        return None
    members, spec = pytree.tree_flatten(value, is_leaf=lambda inner: inner is not value)
    if len(members) == 1 and members[0] is value:
        return None
    names = _indices(members)
    with contextlib.suppress(ValueError):  # registered without names
        entries, _ = pytree.tree_flatten_with_path(value, is_leaf=lambda inner: inner is not value)
        names = [_entry_name(path, index) for index, (path, _) in enumerate(entries)]
    return _Parts(names, members, lambda members: pytree.tree_unflatten(members, spec))


def _entry_name(path: tuple[Any, ...], index: int) -> str:
    key = path[0] if path else None
    return str(next((getattr(key, kind) for kind in ("name", "key", "idx") if hasattr(key, kind)), index))
