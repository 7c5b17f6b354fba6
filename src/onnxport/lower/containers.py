"""Lists, tuples, dicts and strings of a script, and questions about tensors that Python answers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from onnxport import errors
from onnxport.aten.graph import RESULT, WHOLE, Node
from onnxport.aten.scalar_types import NUMBERS, SCALAR_TYPES
from onnxport.lower import control, dicts, joining, scalars, sequences
from onnxport.lower.python import UNINITIALIZED, Collected, Keyed, Listed, Maybe, Sequenced, Stacked, Unclear, entries, stacked, state_of
from onnxport.ops import registry
from onnxport.ops.support import pair
from onnxport.target import dims
from onnxport.target.dims import Dim
from onnxport.target.dtypes import COMPLEX, FLOATS, from_torch, to_torch
from onnxport.target.sizes import reshape
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

Args = dict[str, Any]


def _first(args: Args) -> Any:
    return next(iter(args.values()))


def _operator(low: Lowering, name: str, **args: Any) -> Any:
    """Another operator of ATen."""
    base, _, overload = name.partition(".")
    found = registry.find(f"aten::{base}", overload)
    assert found is not None
    return found.function(low.g, **args)


# ---------------------------------------------------------------------- lists


def make_list(low: Lowering, node: Node, args: Args) -> Any:
    """`[a, b]`: an object where the script may change it (only such lists arrive here)."""
    return Listed(tuple(args.values()))


def _changed(low: Lowering, args: Args) -> tuple[Any, list[Any]]:
    """The list that is changed, and its items."""
    held = _first(args)
    if isinstance(held, Listed):
        return held, list(held.items)
    raise errors.UnsupportedError("a list is changed that is no variable of the script")


def append(low: Lowering, node: Node, args: Args) -> Any:
    """`xs.append(x)`."""
    held, item = args["self"], args["el"]
    if isinstance(held, Listed) and isinstance(held.state, Collected):
        held.state.made.append(item)
    elif isinstance(held, Listed) and isinstance(held.state, (Sequenced, Stacked)):
        low.journal.change(held, _joined(low, held.state, (item,)))
    else:
        held, items = _changed(low, args)
        low.journal.change(held, (*items, item))
    return held


def _joined(low: Lowering, a: Any, b: Any) -> Any:
    """What `xs + ys` holds."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return a + b
    if not sequences.alike(a, b):
        return sequences.extended(low.g, a, b)
    first, second = stacked(low.g, a, like=b), stacked(low.g, b, like=a)
    return Stacked(low.g.op("Concat", first.value, second.value, axis=0), first.kind)


def extend(low: Lowering, node: Node, args: Args) -> Any:
    """`xs.extend(ys)`, `xs += ys`."""
    held, other = args["self"], next(v for k, v in args.items() if k != "self")
    state = other.state if isinstance(other, Listed) else tuple(other)
    if not isinstance(held, Listed):
        held, _ = _changed(low, args)
    low.journal.change(held, _joined(low, held.state, state))
    return held


def insert(low: Lowering, node: Node, args: Args) -> Any:
    """`xs.insert(i, x)`."""
    held, index, item = args["self"], args["idx"], args["el"]
    if isinstance(held, Listed) and (isinstance(held.state, (Sequenced, Stacked)) or not isinstance(index, int)):
        low.journal.change(held, _inserted(low, held.state, index, item))
        return None
    held, items = _changed(low, args)
    items.insert(index, item)
    low.journal.change(held, tuple(items))
    return None


def _inserted(low: Lowering, state: Any, index: Any, item: Any) -> Any:
    """What a list holds with one item more, where length or position are known only when the model runs."""
    if not sequences.alike(state, (item,)):
        return sequences.inserted_at(low.g, sequences.sequenced(low.g, state), index, item)
    held = stacked(low.g, state, like=(item,))
    ends = [_operator(low, "slice.Tensor", self=held.value, dim=0, start=start, end=end, step=1) for start, end in ((0, index), (index, None))]
    return Stacked(low.g.op("Concat", ends[0], stacked(low.g, (item,)).value, ends[1], axis=0), held.kind)


def pop(low: Lowering, node: Node, args: Args) -> Any:
    """`xs.pop(i)`."""
    held = args["self"]
    if entries(held) is not None:
        return dicts.pop(low, held, args)
    if isinstance(held, Listed) and isinstance(held.state, Stacked):
        index, state = args.get("idx", -1), held.state
        item = _item(low, state, index)
        if index not in (-1, 0):
            raise errors.UnsupportedError("pop in the middle of a list whose length the running model decides")
        rest = _operator(low, "slice.Tensor", self=state.value, dim=0, start=index + 1, end=None if index == 0 else -1, step=1)
        low.journal.change(held, Stacked(rest, state.kind))
        return item
    if isinstance(held, Listed) and isinstance(held.state, Sequenced):
        item = sequences.item(low.g, held.state, args.get("idx", -1))
        low.journal.change(held, sequences.erased(low.g, held.state, args.get("idx", -1)))
        return item
    held, items = _changed(low, args)
    item = items.pop(_known(args.get("idx", -1)))
    low.journal.change(held, tuple(items))
    return item


def set_item(low: Lowering, node: Node, args: Args) -> Any:
    """`xs[i] = x`, `d[k] = x`."""
    values = list(args.values())
    held, key, item = values[0], values[1], values[2]
    if entries(held) is not None:
        return dicts.set_item(low, held, key, item)
    open_ = isinstance(held, Listed) and (not isinstance(held.state, tuple) or isinstance(key, (Dim, Value)))
    if open_ and not sequences.alike(held.state, (item,)):
        low.journal.change(held, sequences.replaced(low.g, sequences.sequenced(low.g, held.state), key, item))
        return held
    if open_:
        low.journal.change(held, stacked(low.g, held.state))
        return _set_stacked(low, held, key, item)
    held, items = _changed(low, args)
    items[key] = item
    low.journal.change(held, tuple(items))
    return held


def _set_stacked(low: Lowering, held: Listed, key: Any, item: Any) -> Any:
    value = _operator(low, "select_scatter", self=held.state.value, src=joining.as_value(low.g, item), dim=0, index=key)
    low.journal.change(held, Stacked(value, held.state.kind))
    return held


def clear(low: Lowering, node: Node, args: Args) -> Any:
    """`xs.clear()`."""
    held = args["self"]
    low.journal.change(held, {} if isinstance(held, Keyed) else ())


def reverse(low: Lowering, node: Node, args: Args) -> Any:
    """`xs.reverse()`."""
    held = args["self"]
    if isinstance(held.state, Stacked):
        low.journal.change(held, Stacked(_operator(low, "flip", self=held.state.value, dims=[0]), held.state.kind))
        return
    held, items = _changed(low, args)
    low.journal.change(held, tuple(items[::-1]))


def delete(low: Lowering, node: Node, args: Args) -> Any:
    """`del xs[i]`."""
    held, index = args.values()
    if entries(held) is not None:
        dicts.delete(low, held, index)
        return
    if isinstance(held, Listed) and isinstance(held.state, Sequenced):
        low.journal.change(held, sequences.erased(low.g, held.state, index))
        return
    items = list(held.items)
    del items[_known(index)]
    low.journal.change(held, tuple(items))


def _known(index: Any) -> int:
    if isinstance(index, int):
        return index
    raise errors.UnsupportedError("the position in this list is known only when the model runs")


def length(low: Lowering, node: Node, args: Args) -> Any:
    """`len(x)` of a list, dict, string or tensor."""
    x = _first(args)
    if isinstance(x, Value):
        assert x.shape is not None
        return x.shape[0]
    if isinstance(x, Listed) and entries(x) is None:
        if isinstance(x.state, Stacked):
            assert x.state.value.shape is not None
            return x.state.value.shape[0]
        return sequences.length(low.g, x.state) if isinstance(x.state, Sequenced) else len(x.items)
    return len(x if entries(x) is None else entries(x))  # type: ignore[arg-type]


def get_item(low: Lowering, node: Node, args: Args) -> Any:
    """`xs[i]`, `d[k]`."""
    held, key = list(args.values())[:2]
    if isinstance(held, Maybe):
        held = held.value
    known = entries(held)
    if known is not None:
        return known[dicts.known_key(key)]
    state = held.state if isinstance(held, Listed) else tuple(held) if isinstance(held, (list, tuple)) else held
    if isinstance(state, str):
        return state[key]
    if isinstance(state, Stacked):
        return _item(low, state, key)
    if isinstance(state, Collected):
        raise errors.UnsupportedError("a list is read while a loop appends to it")
    if isinstance(state, Sequenced) or (isinstance(key, (Dim, Value)) and not sequences.uniform(state)):
        return sequences.item(low.g, sequences.sequenced(low.g, state), key)
    if isinstance(key, (Dim, Value)):
        return _item(low, stacked(low.g, state), key)
    if not -len(state) <= key < len(state):
        raise errors.UnsupportedError(f"the script reads item {key} of a list of {len(state)}, which is an error when it runs")
    return state[key]


def _item(low: Lowering, state: Stacked, index: Any) -> Any:
    if isinstance(index, Value):
        index = low.g.integer(index)
    value = _operator(low, "select.int", self=state.value, dim=0, index=index)
    return joining.from_value(low.g, value, state.kind)


def list_slice(low: Lowering, node: Node, args: Args) -> Any:
    """`xs[a:b:c]`."""
    held, start, end, step = list(args.values())[:4]
    state = held.state if isinstance(held, Listed) else tuple(held) if not isinstance(held, str) else held
    if isinstance(state, Stacked):
        return Listed(Stacked(_operator(low, "slice.Tensor", self=state.value, dim=0, start=start, end=end, step=step), state.kind))
    if any(isinstance(place, (Dim, Value)) for place in (start, end, step)):
        if not all(isinstance(x, (int, Dim)) for x in state):
            return Listed(Stacked(_operator(low, "slice.Tensor", self=stacked(low.g, state).value, dim=0, start=start, end=end, step=step),
                                  stacked(low.g, state).kind))
        raise errors.UnsupportedError("the position in this list is known only when the model runs")
    part = state[start:end:step]
    return part if isinstance(part, str) else Listed(part) if isinstance(held, Listed) else list(part)


def add_lists(low: Lowering, node: Node, args: Args) -> Any:
    """`xs + ys`."""
    a, b = list(args.values())[:2]
    states = [x.state if isinstance(x, Listed) else tuple(x) for x in (a, b)]
    return Listed(_joined(low, *states)) if isinstance(a, Listed) or isinstance(b, Listed) else [*a, *b]


def times(low: Lowering, node: Node, args: Args) -> Any:
    """`[x] * n`."""
    a, b = list(args.values())[:2]
    items, count = (a, b) if isinstance(b, (int, Dim)) else (b, a)
    state = items.state if isinstance(items, Listed) else tuple(items)
    if isinstance(count, int) and isinstance(state, tuple):
        return Listed(state * count) if isinstance(items, Listed) else list(state * count)
    one = stacked(low.g, state)
    assert one.value.shape is not None
    repeated = _operator(low, "repeat", self=one.value, repeats=[count, *[1] * (len(one.value.shape) - 1)])
    return Listed(Stacked(repeated, one.kind))


def to_list(low: Lowering, node: Node, args: Args) -> Any:
    """`list(xs)`, `xs.copy()`."""
    held = _first(args)
    known = entries(held)
    if known is not None:
        return Keyed(dict(known))
    if isinstance(held, str):
        return list(held)
    return Listed(held.state if isinstance(held, Listed) else tuple(held))


def unpack(low: Lowering, node: Node, args: Args) -> Any:
    """`a, b = xs`."""
    held = _first(args)
    if node.overload == WHOLE or (node.overload == RESULT and isinstance(held, Listed) and not isinstance(held.state, tuple)):
        return _returned(low, node, state_of(held))
    if isinstance(held, Value):  # a sequence that a kept operator gave
        held = [low.g.op("SequenceAt", held, low.g.const(position)) for position in range(len(node.outputs))]
    items = list(held.items if isinstance(held, Listed) else held.value if isinstance(held, Maybe) else held)
    if len(items) != len(node.outputs):
        raise errors.BakedValueError(
            f"a list of {len(items)} tensors was taken apart into {len(node.outputs)}: its length depends on the input")
    return items[0] if len(node.outputs) == 1 else items


def _returned(low: Lowering, node: Node, state: Any) -> Any:
    """A list that the program returns, as one output: a sequence."""
    if not node.outputs:
        raise errors.UnsupportedError("a list is returned whose length the running model decides, and in the example it is empty: "
                                      "give an example in which it holds something")
    if isinstance(state, Stacked):
        state = Stacked(_narrow(low, state.value) if node.outputs[0].kind == "float" else state.value)
    first, *others = node.outputs
    low.lists[first] = others
    return [sequences.sequenced(low.g, state).value, *[None] * len(others)] if others else sequences.sequenced(low.g, state).value


# ---------------------------------------------------------------------- operators on lists of tensors whose length is not known


def plain(low: Lowering, node: Node, args: Args) -> Args:
    """Arguments as operators know them: Python lists. A list of unknown length of numbers is a tensor; of tensors, cat and stack take it."""
    found = {name: _plain(arg, node) for name, arg in args.items()}
    if type(found.get("dtype")) is int and node.schema is not None:  # one that `x.dtype` gave
        found["dtype"] = SCALAR_TYPES[found["dtype"]]
    return found


def _plain(arg: Any, node: Node) -> Any:
    if isinstance(arg, Listed):
        if isinstance(arg.state, Stacked):
            return arg.state.value if arg.state.kind != "tensor" else arg
        if isinstance(arg.state, Sequenced):
            return arg
        return list(arg.items)
    if isinstance(arg, Unclear):
        return arg.refuse()
    if isinstance(arg, Maybe):
        raise errors.UnsupportedError(f"{node.op} is given an Optional of which only the running model knows whether it is None")
    if arg is UNINITIALIZED:
        raise errors.UnsupportedError("a value is used that was never made")
    return [_plain(item, node) for item in arg] if type(arg) is list else arg


def of_stacked(low: Lowering, node: Node, args: Args) -> Any:
    """`torch.stack(xs, dim)` and `torch.cat(xs, dim)` of a list of unknown length, `x.unbind(dim)`; None where it is something else."""
    if node.op == "aten::unbind":
        x, dim = args["self"], args["dim"]
        if x.shape is None or not isinstance(x.shape[dim], Dim):
            return None
        return Listed(Stacked(x if dim == 0 else _operator(low, "movedim.int", self=x, source=dim, destination=0)))
    held = args.get("tensors")
    if isinstance(held, Listed) and isinstance(held.state, Sequenced) and node.op in ("aten::stack", "aten::cat"):
        return sequences.together(low.g, held, args.get("dim", 0), stack=node.op == "aten::stack")
    if not isinstance(held, Listed) or not isinstance(held.state, Stacked):
        return None
    value = held.state.value
    assert value.shape is not None
    dim = args.get("dim", 0)
    if node.op == "aten::stack":
        return value if dim in (0, -len(value.shape)) else _operator(low, "movedim.int", self=value, source=0, destination=dim)
    rank = len(value.shape) - 1
    if node.op != "aten::cat" or not rank:
        raise errors.UnsupportedError(f"{node.op} of a list whose length the running model decides")
    dim = dim % rank
    moved = value if dim == 0 else _operator(low, "movedim.int", self=value, source=0, destination=dim)
    assert moved.shape is not None
    sizes = list(moved.shape)
    sizes[dim : dim + 2] = [sizes[dim] * sizes[dim + 1]]
    return reshape(low.g, moved, sizes)


# ---------------------------------------------------------------------- tuples, what a container holds


def tuple_index(low: Lowering, node: Node, args: Args) -> Any:
    """`t[i]`."""
    held, index = args.values()
    return held[index]


def contains(low: Lowering, node: Node, args: Args) -> Any:
    """`k in d`, `x in xs`."""
    held, key = list(args.values())[:2]
    known = entries(held)
    if known is not None:
        return dicts.known_key(key) in known
    state = state_of(held)
    if isinstance(state, Stacked):
        return some(low, low.g.op("Equal", state.value, joining.as_value(low.g, key, state.value.dtype)))
    return decided(low, [scalars.equal(low.g, item, key) for item in state], any_decides=True)


# ---------------------------------------------------------------------- questions


def nothing(low: Lowering, node: Node, args: Args) -> Any:
    """print, warnings, contexts: nothing that a file could do."""
    return None


def uninitialized(low: Lowering, node: Node, args: Args) -> Any:
    """A variable that one way through the script never sets."""
    return UNINITIALIZED


def dtype(low: Lowering, node: Node, args: Args) -> Any:
    """`x.dtype`."""
    x = _first(args)
    return NUMBERS[to_torch(x.dtype)]


def same_dtype(low: Lowering, node: Node, args: Args) -> Any:
    """Whether a conversion gave what it was given."""
    return args["a"].dtype == args["b"].dtype


def device(low: Lowering, node: Node, args: Args) -> Any:
    """`x.device`."""
    return "cpu"


def enumerated(low: Lowering, node: Node, args: Args) -> Any:
    """`e.value`, `e.name` of a member of an Enum."""
    member = _first(args)
    return member.value if node.op == "prim::EnumValue" else member.name


def requires_grad(low: Lowering, node: Node, args: Args) -> Any:
    """`x.requires_grad`, as it is without `no_grad` around the call: that keeps layers off their fused paths, which compute the same."""
    x = _first(args)
    return isinstance(x, Value) and x.const is not None and x.const.parameter


def any_of(low: Lowering, node: Node, args: Args) -> Any:
    """`any(xs)`, `all(xs)` of a list."""
    return decided(low, state_of(_first(args)), any_decides=node.op == "aten::any")


def some(low: Lowering, truths: Value) -> Value:
    """Whether one of a vector of truths holds (none does of no truths)."""
    count = low.g.op("ReduceSum", low.g.op("Cast", truths, to=DataType.INT64), keepdims=0)
    return low.g.op("Greater", count, low.g.const(0))


def decided(low: Lowering, answers: Any, any_decides: bool) -> Any:
    """Whether one of the answers is true, or all of them are."""
    if isinstance(answers, Stacked):
        truth = low.g.op("Cast", answers.value, to=DataType.BOOL)
        return some(low, truth) if any_decides else low.g.op("Not", some(low, low.g.op("Not", truth)))
    truths = [control.truth(low, x) for x in answers]
    if any_decides in [x for x in truths if isinstance(x, bool)]:
        return any_decides
    unknown = [x for x in truths if not isinstance(x, bool)]
    if not unknown:
        return not any_decides
    return functools.reduce(lambda a, b: low.g.op("Or" if any_decides else "And", a, b), unknown)


def total(low: Lowering, node: Node, args: Args) -> Any:
    """`sum(xs)` of a list of numbers."""
    items = _first(args).state if isinstance(_first(args), Listed) else tuple(_first(args))
    if isinstance(items, tuple) and not any(isinstance(x, Value) for x in items):
        return sum(items)
    value = stacked(low.g, items)
    return joining.from_value(low.g, low.g.op("ReduceSum", value.value, keepdims=0), value.kind)


def answer(value: Any) -> Any:
    """A question that has one answer in a file."""
    return lambda low, node, args: value


def tensor(low: Lowering, node: Node, args: Args) -> Any:
    """`torch.tensor(data)` of numbers and nested lists of numbers, `torch.as_tensor`."""
    data, wanted = _first(args), args.get("dtype")
    if isinstance(wanted, int):
        wanted = SCALAR_TYPES[wanted]
    made = _tensor(low, data)
    return made if wanted is None else joining.as_value(low.g, made, from_torch(wanted))


def _tensor(low: Lowering, data: Any) -> Value:
    if isinstance(data, Listed):
        if isinstance(data.state, Stacked):
            return _narrow(low, data.state.value)
        data = list(data.items)
    if not isinstance(data, (list, tuple)):
        return _narrow(low, joining.as_value(low.g, data))
    if not data:
        return low.g.constant(torch.zeros(0))
    if all(isinstance(x, (int, Dim)) and not isinstance(x, bool) for x in data):
        return low.g.sizes(list(data))
    return stacked(low.g, tuple([_tensor(low, x) for x in data])).value


def _narrow(low: Lowering, made: Value) -> Value:
    """Python's floats become PyTorch's default dtype."""
    return joining.as_value(low.g, made, DataType.FLOAT) if made.dtype == DataType.DOUBLE else made


def extreme(low: Lowering, node: Node, args: Args) -> Any:
    """`min(xs)`, `max(xs)` of a list of numbers."""
    held = _first(args)
    if not isinstance(held, (Listed, list)):
        return scalars.lower(low, node, args)
    least = node.op == "prim::min"
    items = held.state if isinstance(held, Listed) else held
    if isinstance(items, Stacked):
        return joining.from_value(low.g, low.g.op("ReduceMin" if least else "ReduceMax", items.value, keepdims=0), items.kind)
    if all(isinstance(x, (int, Dim)) for x in items):
        return functools.reduce(dims.minimum if least else dims.maximum, items)
    if any(isinstance(x, (Dim, Value)) for x in items):
        value = stacked(low.g, tuple(items)).value
        return low.g.op("ReduceMin" if least else "ReduceMax", value, keepdims=0)
    return (min if least else max)(items)


def is_floating(low: Lowering, node: Node, args: Args) -> Any:
    """`x.is_floating_point()`."""
    return _first(args).dtype in FLOATS


def is_complex(low: Lowering, node: Node, args: Args) -> Any:
    """`x.is_complex()`."""
    return _first(args).dtype in COMPLEX


def shape(low: Lowering, node: Node, args: Args) -> Any:
    """`x.shape`."""
    x = _first(args)
    if x.shape is None:
        raise errors.UnsupportedError("the size of a tensor of unknown rank")
    return list(x.shape)


def range_length(low: Lowering, node: Node, args: Args) -> Any:
    """`len(range(lo, hi, step))`."""
    lo, hi, step = (low.g.integer(a) if isinstance(a, Value) else a for a in args.values())
    if isinstance(step, Dim):
        raise errors.UnsupportedError("range with a step that only the running model knows")
    if isinstance(lo, int) and isinstance(hi, int):
        return len(range(lo, hi, step))
    if step > 0:
        return dims.maximum(dims.floordiv(hi - lo + step - 1, step), 0)
    return dims.maximum(dims.floordiv(lo - hi - step - 1, -step), 0)


def derive_index(low: Lowering, node: Node, args: Args) -> Any:
    """`range(lo, hi, step)[i]`."""
    index, start, step = [low.g.integer(a) if isinstance(a, Value) else a for a in args.values()]
    return start + index * step


def text(low: Lowering, node: Node, args: Args) -> Any:
    """Strings are of no use to a file; they may be made for messages."""
    if any(isinstance(arg, (Value, Dim, Listed, Maybe, Unclear)) for arg in args.values()):
        return Unclear("a text about values that only the running model knows")
    return " ".join(map(str, args.values()))


def equal_lists(low: Lowering, node: Node, args: Args) -> Any:
    """`[a, b] == [c, d]` of numbers."""
    a, b = [list(x.items) if isinstance(x, Listed) else list(x) for x in list(args.values())[:2]]
    wanted = node.op == "aten::eq"
    if len(a) != len(b):
        return not wanted
    found: list[bool | None] = [dims.compare("==", x, y) if isinstance(x, (int, Dim)) and isinstance(y, (int, Dim)) else x == y
                                for x, y in zip(a, b, strict=True)]
    if any(answer is False for answer in found):
        return not wanted
    if all(answer is True for answer in found):
        return wanted
    g = low.g
    vectors = [pair_value(low, side) for side in (a, b)]
    same = g.op("ReduceMin", g.op("Cast", g.op("Equal", *vectors), to=DataType.INT32), keepdims=0)
    same = g.op("Cast", same, to=DataType.BOOL)
    return same if wanted else g.op("Not", same)


def pair_value(low: Lowering, sizes: list[Any]) -> Value:
    """A list of sizes as a vector."""
    return low.g.sizes(pair(sizes, len(sizes)))


HANDLERS = {
    "prim::ListConstruct": make_list, "aten::append": append, "aten::extend": extend, "aten::insert": insert, "aten::pop": pop,
    "aten::_set_item": set_item, "aten::clear": clear, "aten::reverse": reverse, "aten::Delete": delete, "aten::len": length,
    "aten::__getitem__": get_item, "aten::list": to_list, "aten::copy": to_list, "prim::ListUnpack": unpack, "prim::TupleUnpack": unpack,
    "aten::slice.t": list_slice, "aten::slice.str": list_slice, "aten::add.t": add_lists, "aten::add_.t": extend,
    "aten::mul.left_t": times, "aten::mul.right_": times, "prim::TupleIndex": tuple_index, "aten::__contains__": contains,
    **dicts.HANDLERS, "prim::Print": nothing, "aten::warn": nothing, "prim::Enter": nothing, "prim::Exit": nothing,
    "prim::EnumValue": enumerated, "prim::EnumName": enumerated,
    "prim::Uninitialized": uninitialized, "prim::dtype": dtype, "prim::same_dtype": same_dtype, "prim::device": device,
    "prim::is_cuda": answer(False),
    "prim::is_mkldnn": answer(False), "prim::is_quantized": answer(False), "aten::is_floating_point": is_floating, "prim::shape": shape,
    "prim::layout": answer(0), "prim::requires_grad": requires_grad, "prim::type": device, "prim::index": answer(0),
    "prim::is_sparse": answer(False), "prim::is_nested": answer(False), "prim::is_xla": answer(False), "prim::is_mps": answer(False),
    "prim::is_xpu": answer(False), "prim::is_vulkan": answer(False), "prim::is_sparse_csr": answer(False), "prim::is_cpu": answer(True),
    "prim::is_meta": answer(False), "aten::is_scripting": answer(True), "aten::tensor": tensor, "aten::as_tensor.list": tensor,
    "aten::as_tensor.float": tensor, "aten::as_tensor.int": tensor, "prim::min": extreme, "prim::max": extreme,
    **{f"aten::{name}.{kind}": any_of for name in ("any", "all") for kind in ("bool", "int", "float", "str")}, "aten::sum.int": total,
    "aten::sum.float": total, "aten::sum.bool": total, "aten::__range_length": range_length, "aten::__derive_index": derive_index,
    "aten::format": text, "aten::str": text, "aten::percentFormat": text, "aten::eq.int_list": equal_lists,
    "aten::ne.int_list": equal_lists, "aten::device": device, "aten::is_complex": is_complex, "aten::is_grad_enabled": answer(True),
    "aten::is_autocast_enabled": answer(False), "aten::_get_tracing_state": answer(False), "aten::has_torch_function": answer(False),
}
