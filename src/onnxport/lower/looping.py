"""`prim::Loop` as ONNX Loop.

What a loop carries is found by lowering its body until nothing changes: at first everything is taken to stay as it was before
the loop; what the body changes is carried, with the sizes that it had; sizes that change are carried as unknown ones. What
was found is remembered, so that a loop inside a loop is not searched anew each time.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from onnxport import errors
from onnxport.aten.graph import Node, walk
from onnxport.aten.graph import Value as Captured
from onnxport.lower import joining, sequences, unrolling
from onnxport.lower.carried import Form, gaps, leaves, rebuilt
from onnxport.lower.python import (
    LOST,
    UNINITIALIZED,
    Collected,
    Keyed,
    Listed,
    Maybe,
    Sequenced,
    Stacked,
    Unclear,
    stacked,
    state_of,
)
from onnxport.target import dims
from onnxport.target.dims import Dim, Size
from onnxport.target.sizes import reshape
from onnxport.target.value import Block, DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

_ENDLESS = (1 << 63) - 1
_FEW = 48  # nodes that a loop may become when it is unrolled where it need not be
_MANY = 20000  # and where it has to be
_PASSES = 12
_DIFFERENT = ("a loop appends tensors to a list whose sizes differ from turn to turn; pad them to one shape, or concatenate them as they are made")


def run(low: Lowering, node: Node, trips: Any, condition: Any, carried: list[Any]) -> list[Any]:
    """The values after the loop."""
    if isinstance(trips, Value):
        trips = low.g.integer(trips)
    if condition is False or (isinstance(trips, int) and trips <= 0):
        return carried
    count = trips if isinstance(trips, int) and trips != _ENDLESS else None
    size = sum(1 for _ in walk(node.blocks[0]))
    if condition is True and not isinstance(trips, Dim):
        most = _MANY if count == 1 or (count is not None and unrolling.over_different(low, node)) else _FEW
        if count is None or count * size <= most:
            try:
                return unrolling.unrolled(low, node, count, carried, most)
            except unrolling.OpenError:
                pass
    unrolls = condition is True and count is not None and count * size <= _MANY
    try:
        return _Looping(low, node, trips, condition, carried, sequences_too=not unrolls).run()
    except errors.UnsupportedError:
        if condition is not True or isinstance(trips, Dim):
            raise
        try:
            return unrolling.unrolled(low, node, count, carried, _MANY)
        except unrolling.OpenError:
            pass
        raise


class _Looping:
    """One loop."""

    def __init__(self, low: Lowering, node: Node, trips: Any, condition: Any, carried: list[Any], *, sequences_too: bool):
        self.sequences_too = sequences_too  # whether lists may be sequences; else the turns are better written one after the other
        self.low, self.g, self.node, self.condition, self.start = low, low.g, node, condition, list(carried)
        self.trips = None if trips == _ENDLESS else trips
        self.body = node.blocks[0]
        self.forms: list[Form] = low.forms.setdefault(node, [])
        self.lists: dict[Listed, Form] = {}
        self.links: dict[int, list[Listed | int]] = {}  # carried list -> lists, and other carried ones, that a turn makes it the same as
        self.mark = Listed(()).serial  # lists from outside are older
        self.lost: set[Listed] = set()  # lists from outside that may be the same as one that the body changes
        self.whole: set[int] = low.whole.setdefault(node, set())  # carried lists whose length changes
        self.inits: list[Value] = []  # before the first turn
        self.inner: list[Value] = []  # what the body sees
        self.places: dict[int, int] = {}

    def run(self) -> list[Any]:
        """Passes over the body until one changes nothing; that one is the loop."""
        for _ in range(_PASSES):
            self.leaves = self.taken_apart(self.start)
            if len(self.forms) != len(self.leaves):
                self.forms[:] = [Form() for _ in self.leaves]
            done = self.attempt()
            if done is not None:
                return done
        raise errors.UnsupportedError("no types were found that hold for every turn of this loop")

    def taken_apart(self, items: list[Any]) -> list[Any]:
        """What the carried values are made of; a list that changes its length is one tensor."""
        return [leaf for index, item in enumerate(items) for leaf in ([item] if index in self.whole else leaves(item))]

    def filled(self, results: list[Any]) -> bool:
        """Whether something that is not made before the loop was found to be a container: it is one of nothing then."""
        found = {index: gaps(after) for index, (before, after) in enumerate(zip(self.start, results, strict=True)) if before is UNINITIALIZED}
        found = {index: gap for index, gap in found.items() if gap is not UNINITIALIZED}
        for index, gap in found.items():
            self.start[index] = gap
        return bool(found)

    def lengthened(self, results: list[Any]) -> bool:
        """Whether a list was found that is as long as the number of turns says."""
        found = {index for index, (before, after) in enumerate(zip(self.start, results, strict=True))
                 if index not in self.whole and isinstance(before, (Listed, list)) and isinstance(after, (Listed, list))
                 and (len(leaves(before)) != len(leaves(after)) or (isinstance(state_of(before), tuple) and not isinstance(state_of(after), tuple)))}
        self.whole |= found
        return bool(found)

    def attempt(self) -> list[Any] | None:
        """One pass: None if what is carried had to be widened."""
        low, g = self.low, self.g
        block = Block(g.block)
        low.journal.begin()
        low.depth += 1
        states: dict[Listed, Any] = {}
        try:
            with g.reopened(block):
                turn, _ = g.input(None, DataType.INT64, ()), g.input(None, DataType.BOOL, ())
                self.block, self.inits, self.inner = block, [], []
                low.env[self.body.inputs[0]] = low.counter(turn)
                given = iter([self.enter(form, leaf) for form, leaf in zip(self.forms, self.leaves, strict=True)])
                for index, (value, item) in enumerate(zip(self.body.inputs[1:], self.start, strict=True)):
                    low.env[value] = next(given) if index in self.whole else rebuilt(item, given)
                copies = self.linked()
                entered = {held: self.enter_list(held, form) for held, form in self.lists.items()}
                for held in self.lost:
                    low.journal.put(held, LOST)
                self.places = self.placed()
                low.block(self.body)
                condition, *results = [low.resolve(output) for output in self.body.outputs]
                condition = low.truth(condition)
        except errors.UnsupportedError:
            low.journal.take_back()
            if self.widen_all():
                return None
            raise
        finally:
            low.depth -= 1
        states = low.journal.take_back()
        lost = {held for held, state in states.items() if state is LOST and held.serial < self.mark}
        if self.shared(copies, results) or lost - self.lost:
            self.lost |= lost
            self.lists = {held: form for held, form in self.lists.items() if held not in lost}
            return None
        self.ends = [self.ended(before, after, states) for before, after in zip(self.start, results, strict=True)]
        states = {held: state for held, state in states.items() if state is not LOST}
        results = self.ends
        if self.filled(results) or self.lengthened(results):
            return None
        after = self.taken_apart(results)
        if len(after) != len(self.leaves):
            raise errors.UnsupportedError("a list or tuple that a loop carries changes its length")
        changed = [self.widen(form, leaf, made) for form, leaf, made in zip(self.forms, self.leaves, after, strict=True)]
        changed += [self.widen_list(held, state) for held, state in states.items()]
        changed += [self.irregular(held, state.made) for held, state in states.items() if isinstance(state, Collected)]
        if any(changed):
            return None
        return self.emit(block, condition, after, {held: (entered.get(held), state) for held, state in states.items()})

    # --- lists that may be the same -----------------------------------------------------------------------------------------

    def linked(self) -> list[Any]:
        """The carried lists as the body sees them; each may be the list that was there before the loop."""
        copies = [self.low.env[value] for value in self.body.inputs[1:]]
        for index, (copy, item) in enumerate(zip(copies, self.start, strict=True)):
            if isinstance(copy, Listed):
                for other in (item, *self.links.get(index, ())):
                    copy.may_be(copies[other] if isinstance(other, int) else other)
        return copies

    def shared(self, copies: list[Any], results: list[Any]) -> bool:
        """Whether the body was found to make a carried list the same as another that there is in the next turn."""
        families = {index: {made, *made.others()} for index, made in enumerate(results) if isinstance(made, Listed)}
        found = False
        for index, family in families.items():
            links = self.links.setdefault(index, [])
            outer = [held for held in family if held.serial < self.mark and held is not self.start[index]]
            turned = [other for other, near in families.items()
                      if other != index and (family & near or any(held is copies[other] for held in family))]
            found_here: list[Listed | int] = [*outer, *turned]
            new = [link for link in found_here if link not in links]
            links += new
            found = found or bool(new)
        return found

    def ended(self, before: Any, after: Any, states: dict[Listed, Any]) -> Any:
        """A result; a list from outside as it was at the end of the body."""
        if not isinstance(after, Listed) or after is before or after not in states:
            return after
        ended = type(after)(states[after])
        ended.may_be(after)
        return ended

    # --- entering -----------------------------------------------------------------------------------------------------------

    def enter(self, form: Form, leaf: Any) -> Any:
        """What the body sees of a value."""
        if form.way == "same":
            return leaf
        if form.way == "stacked":
            with self.g.reopened(self.block.parent):  # type: ignore[arg-type]
                first = self.first(leaf, form)
            return Listed(Stacked(self.variable(first.value, form, "tensor"), first.kind))
        if form.way == "sequence":
            return Listed(self.sequence(leaf, form))
        if form.way == "maybe":
            present = leaf.present if isinstance(leaf, Maybe) else leaf is not None
            inner = leaf.value if isinstance(leaf, Maybe) else UNINITIALIZED if leaf is None else leaf
            flag = self.variable(present, Form("carried"), "bool")
            return Maybe(flag, self.variable(inner, form, form.kind))
        return self.variable(leaf, form, form.kind or joining.kind_of(leaf))

    def variable(self, start: Any, form: Form, kind: str) -> Any:
        """One carried variable."""
        g = self.g
        with g.reopened(self.block.parent):  # type: ignore[arg-type]
            if start is UNINITIALIZED:
                assert form.gap is not None
                value = joining.placeholder(g, *form.gap)
            else:
                value = joining.as_value(g, start, form.dtype)
        if value.dtype is None or value.shape is None:
            raise errors.UnsupportedError("a loop carries a tensor whose rank or dtype is not known")
        self.inits.append(value)
        inner = g.input(None, value.dtype, None)
        inner.shape = tuple([g.fresh(inner, axis) if axis in form.wide else size for axis, size in enumerate(value.shape)])
        self.inner.append(inner)
        return joining.from_value(g, inner, kind)

    def sequence(self, held: Any, form: Form) -> Sequenced:
        """One carried sequence; `form.gap` is what the body may know of its tensors."""
        if not self.sequences_too:
            raise errors.UnsupportedError(_DIFFERENT)
        sequences.check_opset(self.g)
        with self.g.reopened(self.block.parent):  # type: ignore[arg-type]
            start = sequences.sequenced(self.g, state_of(held), form.gap)
        known = sequences.items_of(start)
        assert known is not None
        form.gap = known if form.gap is None else sequences.common(known, form.gap)
        self.inits.append(start.value)
        inner = self.g.input(None, form.gap[0], None)
        inner.sequence = True
        self.inner.append(inner)
        return Sequenced(inner, form.gap[1])

    def enter_list(self, held: Listed, form: Form) -> int:
        """What the body sees of a list that it changes; the place of its variable among the carried ones."""
        if form.way == "collected":
            self.low.journal.put(held, Collected())
            return -1
        if form.way == "sequence":
            self.low.journal.put(held, self.sequence(held, form))
            return len(self.inits) - 1
        with self.g.reopened(self.block.parent):  # type: ignore[arg-type]
            start = self.first(held, form)
        place = len(self.inits)
        value = self.variable(start.value, form, "tensor")
        self.low.journal.put(held, Stacked(value, start.kind))
        return place

    def first(self, held: Any, form: Form) -> Stacked:
        """A list before the loop as one tensor."""
        if not state_of(held) and form.gap is not None:
            dtype, sizes = form.gap
            like = Value(dtype, (0, *[1 if s is None else s for s in sizes]))
            return stacked(self.g, (), like=Stacked(like, form.kind or "tensor"))
        return stacked(self.g, state_of(held))

    # --- widening -----------------------------------------------------------------------------------------------------------

    def widen(self, form: Form, before: Any, after: Any) -> bool:
        """Whether the body showed that a form was too narrow; it is wider then."""
        if form.way == "same":
            return self.leave_same(form, before, after)
        if form.way == "sequence":
            return self.fit_sequence(form, state_of(after))
        if form.way == "stacked":
            if not sequences.uniform(state_of(after)):
                return self.differing(form, state_of(after))
            with self.g.reopened(self.block):
                return self.fit(form, stacked(self.g, state_of(after)).value)
        if form.way == "maybe":
            after = after.value if isinstance(after, Maybe) else after
            return after is not None and after is not UNINITIALIZED and self.fit(form, after)
        if after is None or isinstance(after, Maybe):
            form.way, form.kind = "maybe", form.kind or joining.kind_of(before)
            return True
        if after is UNINITIALIZED:
            return False
        if isinstance(after, Unclear):
            after.refuse()
        return self.fit(form, after)

    def leave_same(self, form: Form, before: Any, after: Any) -> bool:
        if before is after or after is UNINITIALIZED:
            return False
        if isinstance(before, (Listed, list)) and isinstance(after, (Listed, list)):
            return self.stack(form, state_of(before), state_of(after))
        if not isinstance(before, Value) and joining.kind_of(before) == joining.kind_of(after) != "tensor" and joining.same(before, after):
            return False
        if before is None or isinstance(before, Maybe) or after is None or isinstance(after, Maybe):
            form.way = "maybe"
            sample = after.value if isinstance(after, Maybe) else before if after is None else after
            sample = sample.value if isinstance(sample, Maybe) else sample
        else:
            form.way, sample = "carried", after
        if isinstance(sample, Unclear) or joining.kind_of(sample) == "plain":
            raise errors.UnsupportedError("a loop changes a value that is neither a tensor nor a number")
        form.kind = joining.kind_of(before) if joining.kind_of(before) != "plain" else joining.kind_of(sample)
        self.gap(form, sample)
        return True

    def stack(self, form: Form, before: Any, state: Any) -> bool:
        """A carried list becomes one tensor, or a sequence."""
        if not sequences.alike(before, state):
            return self.differing(form, before, state)
        form.way, form.wide = "stacked", {0}
        if isinstance(state, Stacked):
            form.kind = state.kind
            self.gap(form, state.value)
            assert form.gap is not None
            form.gap = form.gap[0], form.gap[1][1:]
        else:
            form.kind = "tensor" if joining.kind_of(state[-1]) == "plain" else joining.kind_of(state[-1])
            self.gap(form, state[-1])
        return True

    def differing(self, form: Form, *states: Any) -> bool:
        """The tensors of a list are not of one shape: it becomes a sequence."""
        form.way, form.kind = "sequence", "tensor"
        known = [sequences.outside(found, self.is_visible) for found in map(sequences.items_of, states) if found is not None]
        if known:
            form.gap = functools.reduce(sequences.common, known)
        return True

    def fit_sequence(self, form: Form, state: Any) -> bool:
        """Whether the body made a sequence of tensors of which less is known."""
        made = sequences.items_of(state)
        if made is None:
            return False
        assert form.gap is not None
        before, form.gap = form.gap, sequences.common(form.gap, sequences.outside(made, self.is_visible))
        return form.gap[1].count(None) != before[1].count(None)

    def is_visible(self, size: Size) -> bool:
        """Whether a size means something outside the loop."""
        return joining.is_visible(self.g, size, self.block)

    def gap(self, form: Form, sample: Any) -> None:
        """Remembers what a variable is before its first value."""
        value = joining.as_value(self.g, sample)
        if value.dtype is None or value.shape is None:
            raise errors.UnsupportedError("a loop makes a tensor whose rank or dtype is not known")
        sizes = tuple([s if joining.is_visible(self.g, s, self.block) else None for s in value.shape])
        if form.gap is not None and form.gap[0] == value.dtype and len(form.gap[1]) == len(sizes):
            sizes = tuple([a if a is not None and b is not None and dims.equal(a, b) else None for a, b in zip(sizes, form.gap[1], strict=True)])
        form.gap = value.dtype, sizes

    def fit(self, form: Form, after: Any) -> bool:
        """Holds what the body made against what it was given."""
        dtype, shape = _type(after)
        index = self.places[id(form)]
        inner = self.inner[index]
        if dtype is not None and dtype != inner.dtype:
            if form.kind == "float" and DataType.DOUBLE in (dtype, inner.dtype):
                if inner.dtype == DataType.DOUBLE:
                    return False
                form.dtype = DataType.DOUBLE
                return True
            raise errors.UnsupportedError(f"a loop carries a tensor whose dtype changes from {inner.dtype and inner.dtype.name} to {dtype.name}; "
                                          "an ONNX Loop has one: convert it before the loop")
        assert inner.shape is not None
        if shape is None or len(shape) != len(inner.shape):
            raise errors.UnsupportedError(f"a loop carries a tensor whose rank changes (from {len(inner.shape)} dims to "
                                          f"{'unknown' if shape is None else len(shape)}); ONNX tensors have one rank")
        wider = {axis for axis, (a, b) in enumerate(zip(shape, inner.shape, strict=True)) if axis not in form.wide and not dims.equal(a, b)}
        form.wide |= wider
        return bool(wider)

    def placed(self) -> dict[int, int]:
        """Where the variable of a form is among the carried ones."""
        found: dict[int, int] = {}
        position = 0
        for form in [*self.forms, *self.lists.values()]:
            if form.way == "maybe":
                found[id(form)] = position + 1
                position += 2
            elif form.way in ("carried", "stacked", "sequence"):
                found[id(form)] = position
                position += 1
        return found

    def widen_all(self) -> bool:
        """After an error: whether numbers that were taken to stay the same can be carried instead (an index that is 0 may not be 0)."""
        found = False
        for form, leaf in zip(self.forms, self.leaves, strict=True):
            if form.way == "same" and joining.kind_of(leaf) in ("int", "float", "bool"):
                form.way, form.kind, found = "carried", joining.kind_of(leaf), True
        for form in self.lists.values():
            if form.way == "collected":
                form.way, found = "carried", True
        return found

    def widen_list(self, held: Listed, state: Any) -> bool:
        if isinstance(held, Keyed):
            raise errors.UnsupportedError("a dict is changed inside a loop of which only the running model knows how often it turns")
        form = self.lists.get(held)
        if form is None:
            form = self.lists[held] = Form("collected" if self.only_appends(held) else "carried", {0})
            if not sequences.alike(held.held, state):
                return self.differing(form, held.held, state)
            if isinstance(state, tuple) and state:
                form.kind = "tensor" if joining.kind_of(state[-1]) == "plain" else joining.kind_of(state[-1])
                self.gap(form, state[-1])
            elif isinstance(state, Stacked):
                form.kind = state.kind
                self.gap(form, state.value)
                assert form.gap is not None
                form.gap = form.gap[0], form.gap[1][1:]
            return True
        if form.way == "collected":
            return False
        if form.way == "sequence":
            return self.fit_sequence(form, state)
        if isinstance(state, Sequenced):
            return self.differing(form, held.held, state)
        if not isinstance(state, Stacked):
            raise errors.UnsupportedError("a loop replaces what a list holds")
        return self.fit(form, state.value)

    def irregular(self, held: Listed, made: list[Any]) -> bool:
        """Whether what a loop appends cannot be a scan output, as its sizes differ from turn to turn or from what the list holds already."""
        if all(not isinstance(item, Value) or (item.shape is not None and all(map(self.is_visible, item.shape))) for item in made) \
                and sequences.alike(held.held, tuple(made)):
            return False
        return self.differing(self.lists[held], held.held, tuple(made))

    def only_appends(self, held: Listed) -> bool:
        """Whether the body does nothing with a list but append to it, once in every turn."""
        names = {value for value, found in self.low.env.items() if found is held}
        own = set(self.body.nodes)
        for node in walk(self.body):
            used = [value for value in node.inputs() if value in names]
            if used and not (node.op == "aten::append" and node in own and node.args.get("self") in names and len(used) == 1):
                return False
        return not any(isinstance(output, Captured) and output in names for output in self.body.outputs)

    # --- the node -----------------------------------------------------------------------------------------------------------

    def emit(self, block: Block, condition: Any, after: list[Any], lists: dict[Listed, tuple[int | None, Any]]) -> list[Any]:
        """The Loop and its results."""
        g = self.g
        collected: list[tuple[Listed, list[Value]]] = []
        with g.reopened(block):
            outputs = [joining.as_value(g, condition, DataType.BOOL)]
            for form, made in zip(self.forms, after, strict=True):
                outputs += self.leave(form, made, len(outputs) - 1)
            for held, form in self.lists.items():
                if form.way == "sequence":
                    outputs.append(sequences.sequenced(g, lists[held][1], form.gap).value)
                elif form.way != "collected":
                    outputs.append(lists[held][1].value)
            for held, form in self.lists.items():
                if form.way == "collected":
                    collected.append((held, [joining.as_value(g, item) for item in lists[held][1].made]))
        block.outputs = [*outputs, *[item for _, items in collected for item in items]]
        g.close(block)
        count = len(block.outputs) - 1
        g.scope, g.source = self.node.scope, self.node.source
        if not count:
            return self.start
        trips = None if self.trips is None else joining.as_value(g, self.trips)
        start = g.const(True) if self.condition is True and not self.inits else None if self.condition is True else self.condition
        outcome: Any = g.op("Loop", trips, start, *self.inits, outputs=count, body=block)
        results: list[Value] = [outcome] if count == 1 else list(outcome)
        given = iter([self.finish(form, leaf, results) for form, leaf in zip(self.forms, self.leaves, strict=True)])
        made = [next(given) if index in self.whole else rebuilt(item, given) for index, item in enumerate(self.start)]
        self.finish_lists(results, collected)  # now, as these may be what was carried in another form
        for held in self.lost:
            self.low.journal.put(held, LOST)
        for item, before, end in zip(made, self.start, self.ends, strict=True):
            if isinstance(item, Listed) and item is not before:
                item.may_be(before)
                item.may_be(end)
        return made

    def leave(self, form: Form, made: Any, place: int) -> list[Value]:
        g = self.g
        if form.way == "same":
            return []
        if form.way == "maybe":
            present = made.present if isinstance(made, Maybe) else made is not None
            value = made.value if isinstance(made, Maybe) else UNINITIALIZED if made is None else made
            inner = self.inner[place + 1]
            return [joining.as_value(g, present, DataType.BOOL), inner if value is UNINITIALIZED else joining.as_value(g, value, inner.dtype)]
        inner = self.inner[place]
        if form.way == "stacked":
            return [stacked(g, state_of(made)).value]
        if form.way == "sequence":
            return [sequences.sequenced(g, state_of(made), form.gap).value]
        return [inner if made is UNINITIALIZED else joining.as_value(g, made, inner.dtype)]

    def finish(self, form: Form, leaf: Any, results: list[Value]) -> Any:
        if form.way == "same":
            return leaf
        place = self.places[id(form)]
        if form.way == "stacked":
            return Listed(Stacked(results[place], form.kind or "tensor"))
        if form.way == "sequence":
            return Listed(Sequenced(results[place], form.gap[1]))  # type: ignore[index]
        value = joining.from_value(self.g, results[place], form.kind)
        return Maybe(results[place - 1], value) if form.way == "maybe" else value

    def finish_lists(self, results: list[Value], collected: list[tuple[Listed, list[Value]]]) -> None:
        g, low = self.g, self.low
        for held, form in self.lists.items():
            if form.way == "sequence":
                low.journal.put(held, Sequenced(results[self.places[id(form)]], form.gap[1]))  # type: ignore[index]
            elif form.way != "collected":
                low.journal.put(held, Stacked(results[self.places[id(form)]], form.kind or "tensor"))
        position = len(self.inits)
        for held, items in collected:
            form = self.lists[held]
            scans = [self.sized(value, item) for value, item in zip(results[position:], items, strict=False)]
            position += len(items)
            if len(scans) == 1:
                value = scans[0]
            else:
                wide = g.op("Concat", *[g.op("Unsqueeze", scan, g.const([1])) for scan in scans], axis=1)
                assert wide.shape is not None
                value = reshape(g, wide, [-1, *wide.shape[2:]])
            if held.state:
                value = g.op("Concat", stacked(g, held.state).value, value, axis=0)
            low.journal.put(held, Stacked(value, form.kind or "tensor"))

    def sized(self, value: Value, item: Value) -> Value:
        """A scan output with the sizes of its elements, which ONNX Runtime does not know after zero turns."""
        assert item.shape is not None
        assert value.shape is not None
        if dims.is_static(item.shape):
            return value
        return reshape(self.g, value, [value.shape[0], *item.shape])


def _type(x: Any) -> tuple[DataType | None, tuple[Size, ...] | None]:
    if isinstance(x, Value):
        return x.dtype, x.shape
    kind = joining.kind_of(x)
    return {"bool": DataType.BOOL, "int": DataType.INT64, "float": DataType.DOUBLE}.get(kind), ()
