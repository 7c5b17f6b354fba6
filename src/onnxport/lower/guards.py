"""Judges what Python read out of the trace, once the sizes are symbolic.

A branch on sizes that always goes the same way is silent; one that another size may turn is a guard of the file. A number
that varies and may have entered the graph, or a branch on the data, is an error with the source line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxport import errors
from onnxport.aten.graph import Graph, Node, Read, walk
from onnxport.aten.graph import Value as Captured
from onnxport.aten.source import where
from onnxport.target import dims
from onnxport.target.dims import Dim, Size
from onnxport.target.value import Value

_COMPARISONS = {"aten::eq": "==", "aten::ne": "!=", "aten::lt": "<", "aten::le": "<=", "aten::gt": ">", "aten::ge": ">="}
_READS_SIZES_ONLY = frozenset({"aten::size", "aten::sym_size", "aten::numel", "aten::ones_like", "aten::zeros_like", "aten::full_like",
                               "aten::empty_like",
                               "aten::new_zeros", "aten::new_ones", "aten::new_full", "aten::new_empty"})
_FLIPPED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_POINT = re.compile(r"(\w+) (!=|>|>=) (\d+)")
_CONVERSIONS = frozenset({"aten::Int", "aten::IntImplicit", "aten::ScalarImplicit"})
_WORDS = {"index": "it is used as an index or a size that the trace cannot follow", "number": "a number is taken from it",
          "array": "it is turned into an array", "range": "a Python loop runs over it",
          "length": "its length is taken", "iterate": "a Python loop runs over it"}


@dataclass(frozen=True)
class Guard:
    """The file holds where `condition` does; Python decided so at `source`.

    of_operator: not Python did, but an operator (a squeeze) that could be written for these sizes only.
    """

    condition: str
    source: str
    of_operator: bool = False

    def __str__(self) -> str:
        return f"{self.condition} ({self.source})"

    def excludes(self, sizes: Mapping[str, int]) -> bool:
        """Whether the file surely does not hold where the axes have these sizes."""
        return dims.holds(self.condition, sizes) is False

    def excludes_only(self, sizes: Mapping[str, int]) -> bool:
        """Whether of all sizes from 1 on just one does not hold, and it is this one."""
        parts = _POINT.fullmatch(self.condition)
        return parts is not None and not self.of_operator and sizes.get(parts[1]) == int(parts[3]) + {"!=": 0, ">": 0, ">=": -1}[parts[2]] and (
            parts[2] == "!=" or sizes[parts[1]] == 1)


def refuse(found: list[Guard]) -> None:
    """For strict=True: raises `GuardError` where there is any guard."""
    if found:
        raise errors.GuardError("strict=True, and Python decided on what may change:\n" + "\n".join(f"  {g}" for g in found))


def judge(graph: Graph, env: dict[Captured, Any], held: list[Guard]) -> list[Guard]:
    """The guards of the file, each once; `held` are those known already. Raises `BakedValueError` for what would be wrong in silence."""
    if not graph.reads and not held:
        return []
    makers: dict[Captured, Node] = {}
    for node in walk(graph.block):
        for output in node.outputs:
            makers[output] = node
    guards: dict[str, Guard] = {guard.condition: guard for guard in held}
    traced: set[tuple[Captured, str]] | None = None
    for read in graph.reads:
        if read.kind == "gradient":
            continue  # the capture has seen to it
        if read.kind == "index":
            if _varies(read, env):
                traced = _traced_uses(graph) if traced is None else traced
                _judge_index(read, env, traced)
            continue
        guard = _judge(read, env, makers)
        if guard is not None:
            guards.setdefault(guard.condition, guard)
    return list(guards.values())


def _judge(read: Read, env: dict[Captured, Any], makers: dict[Captured, Node]) -> Guard | None:
    if read.value is None:
        return None
    known = env.get(read.value, read.value.constant)
    if known is None or _constant(known):
        return None
    if read.kind == "bool":
        return _branch(read, known, env, makers)
    if read.kind == "length":
        first = known.shape[0] if isinstance(known, Value) and known.shape else 0
        if isinstance(first, int):
            return None
        raise _baked(read, str(first))
    size = known.content[0] if isinstance(known, Value) and known.content and len(known.content) == 1 else known
    if isinstance(size, Dim):
        raise _baked(read, str(size))
    if read.kind == "range" and read.value not in makers and isinstance(known, Value) and known.rank == 0:
        return Guard(f"{known.name} == {read.seen}", read.source)  # an input that is given as a number of turns: the loop is unrolled
    raise errors.BakedValueError(
        f"{read.source}: Python reads a tensor that depends on the input ({_WORDS.get(read.kind, read.kind)}; here it was {_short(read.seen)}), "
        "and the file would hold this constant for every input; keep it a tensor, or put the code into a torch.jit.script function")


def _varies(read: Read, env: dict[Captured, Any]) -> bool:
    if read.value is None:
        return False
    known = env.get(read.value, read.value.constant)
    return known is not None and not _constant(known)


def _traced_uses(graph: Graph) -> set[tuple[Captured, str]]:
    """(size, source line) for each place where the trace passed a size on to an operator."""
    # What each converted size was made from: Python may have read any of these.
    origins: dict[Captured, tuple[Captured, ...]] = {}
    uses: set[tuple[Captured, str]] = set()
    for node in walk(graph.block):
        if node.op in _CONVERSIONS:
            for value in node.inputs():
                origins[node.outputs[0]] = (*origins.get(value, ()), value)
            continue
        line = ""
        for value in node.inputs():
            for origin in origins.get(value, ()):
                line = line or where(node.source)
                uses.add((origin, line))
    return uses


def _judge_index(read: Read, env: dict[Captured, Any], traced: set[tuple[Captured, str]]) -> None:
    """Slices and sizes are traced as sizes; whatever else asks for an index (a list, a shift) gets the example's number."""
    assert read.value is not None
    if (read.value, read.source) in traced:
        return
    known = env.get(read.value)
    content = known.content if isinstance(known, Value) else None
    raise _baked(read, str(content[0]) if content else "of a tensor")


def _constant(known: Any) -> bool:
    if isinstance(known, Value):
        if known.content is not None:
            return dims.is_static(known.content)
        return known.const is not None
    return not isinstance(known, Dim)


def _branch(read: Read, known: Any, env: dict[Captured, Any], makers: dict[Captured, Node]) -> Guard | None:
    assert read.value is not None
    sides = _comparison(read.value, env, makers)
    if sides is not None:
        fn, left, right = sides
        if dims.compare(fn, left, right) is not None:
            return None
        return Guard(condition_of(fn if read.seen else _FLIPPED[fn], left, right), read.source)
    content = known.content if isinstance(known, Value) else (known,) if isinstance(known, Dim) else None
    if content is not None and len(content) == 1:
        if dims.compare("!=", content[0], 0) is not None:
            return None
        return Guard(condition_of("!=" if read.seen else "==", content[0], 0), read.source)
    if not _depends_on_data(read.value, makers):
        return Guard(f"what {read.source.rpartition('/')[2]} tests stays {bool(read.seen)}", read.source)
    raise errors.BakedValueError(
        f"{read.source}: a Python branch on the value of a tensor that depends on the input (data-dependent control flow; here it was "
        f"{_short(read.seen)}), and the file would hold only this branch; use torch.where, torch.cond or a torch.jit.script function")


def condition_of(fn: str, left: Size, right: Size) -> str:
    """The comparison in as few words as say the same: ``7*((h + 24) // 28) > 7`` is ``h > 31``."""
    found = _solved(fn, dims.rounded(left - right))
    return f"{left} {fn} {right}" if found is None else "{1} {0} {2}".format(*found)


def _solved(fn: str, difference: Size) -> tuple[str, Size, int] | None:
    """`difference fn 0` as a comparison of one product or one quotient's dividend with a number; None where there are more terms."""
    terms = [] if isinstance(difference, int) else difference.terms
    varying = [(m, c) for m, c in terms if m]
    if len(varying) != 1:
        return None
    (monomial, factor), number = varying[0], sum(c for m, c in terms if not m)
    product = Dim(((monomial, 1),))
    if factor < 0:
        fn, factor, number = _MIRRORED[fn], -factor, -number
    if fn in ("==", "!="):
        return (fn, product, -number // factor) if number % factor == 0 else None
    limit = -(number // factor) if fn in (">=", "<") else -number // factor
    if len(monomial) == 1 and monomial[0].fn == "//" and isinstance(monomial[0].args[1], int) and monomial[0].args[1] > 0:
        dividend, divisor = monomial[0].args
        return _solved(fn, dividend - (limit * divisor if fn in (">=", "<") else limit * divisor + divisor - 1)) or (fn, product, limit)
    return fn, product, limit


def _depends_on_data(value: Captured, makers: dict[Captured, Node]) -> bool:
    """Whether more than the sizes of the inputs decides over a tensor (a mask that is made of sizes is guarded like them)."""
    seen: set[Captured] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if current in seen or current.constant is not None:
            continue
        seen.add(current)
        node = makers.get(current)
        if node is None:
            return True
        if node.op not in _READS_SIZES_ONLY:
            stack += list(node.inputs())
    return False


def _comparison(value: Captured, env: dict[Captured, Any], makers: dict[Captured, Node]) -> tuple[str, Any, Any] | None:
    node = makers.get(value)
    fn = _COMPARISONS.get(node.op) if node is not None else None
    if node is None or fn is None:
        return None
    sides = [_size(node.args.get(name, node.args.get(number)), env) for name, number in (("self", "a"), ("other", "b"))]
    return None if None in sides else (fn, sides[0], sides[1])


def _size(arg: Any, env: dict[Captured, Any]) -> Any:
    if isinstance(arg, Captured):
        arg = env.get(arg)
    if isinstance(arg, Value):
        return arg.content[0] if arg.content is not None and len(arg.content) == 1 else None
    if isinstance(arg, float):
        return int(arg) if arg.is_integer() else None
    return arg if isinstance(arg, (int, Dim)) else None


def _baked(read: Read, size: str) -> errors.BakedValueError:
    return errors.BakedValueError(
        f"{read.source}: the dynamic size {size} is turned into a Python number ({_WORDS.get(read.kind, read.kind)}; "
        f"in the example {_short(read.seen)}), "
        "and the file would hold this constant for every size; keep it as it comes from .shape, or make the axis static")


def _short(seen: Any) -> str:
    text = repr(seen)
    return text if len(text) <= 40 else text[:37] + "..."
