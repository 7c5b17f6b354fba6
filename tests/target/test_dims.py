"""Sizes against Python's own arithmetic on numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from onnxport.target import dims
from onnxport.target.dims import Dim, Size

LOWS = {"a": 0, "b": 1, "c": 2, "n": 0}
NAMES = list(LOWS)
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    # name: (on sizes, on numbers)
    "+": (lambda x, y: x + y, operator.add),
    "-": (lambda x, y: x - y, operator.sub),
    "*": (lambda x, y: x * y, operator.mul),
    "//": (dims.floordiv, operator.floordiv),
    "%": (dims.mod, operator.mod),
    "max": (dims.maximum, max),
    "min": (dims.minimum, min),
    "ceil": (dims.ceildiv, lambda x, y: -(-x // y)),
}
COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Expression:
    """A number, a name, or an operation on two expressions."""

    head: int | str
    parts: tuple[Expression, ...] = ()

    def size(self) -> Size:
        if self.parts:
            made: Size = OPERATIONS[str(self.head)][0](*(p.size() for p in self.parts))
            return made
        if isinstance(self.head, int):
            return self.head
        return dims.symbol(self.head, LOWS[self.head])

    def number(self, known: dict[str, int]) -> int:
        if self.parts:
            found: int = OPERATIONS[str(self.head)][1](*(p.number(known) for p in self.parts))
            return found
        return self.head if isinstance(self.head, int) else known[self.head]

    def divides_by_what_is_never(self, known: dict[str, int]) -> bool:
        """Whether a divisor is 0 or, for `ceil`, negative: nothing is promised there."""
        if any(p.divides_by_what_is_never(known) for p in self.parts):
            return True
        if self.head in ("//", "%", "ceil"):
            divisor = self.parts[1].number(known)
            return divisor == 0 or (self.head == "ceil" and divisor < 0)
        return False


leaves = st.one_of(st.sampled_from(NAMES), st.integers(-4, 9), st.integers(1, 4)).map(Expression)
expressions = st.recursive(
    leaves,
    lambda inner: st.builds(lambda op, x, y: Expression(op, (x, y)), st.sampled_from(list(OPERATIONS)), inner, inner),
    max_leaves=8,
)
assignments = st.fixed_dictionaries({name: st.integers(low, 12) for name, low in LOWS.items()})


def sized(expression: Expression, known: dict[str, int]) -> Size:
    """The size, where all divisors are fit for `known`; also those of which the divisor is the number 0 always."""
    assume(not expression.divides_by_what_is_never(known))
    return expression.size()


@given(expressions, assignments)
def test_evaluates_as_python(expression: Expression, known: dict[str, int]) -> None:
    assert dims.evaluate(sized(expression, known), known) == expression.number(known)


@given(expressions, assignments)
def test_text_reads_as_python(expression: Expression, known: dict[str, int]) -> None:
    size = sized(expression, known)
    assert eval(str(size), {"max": max, "min": min}, dict(known)) == expression.number(known)


@given(expressions, assignments)
def test_text_can_be_read_back(expression: Expression, known: dict[str, int]) -> None:
    assert dims.evaluate(dims.parse(str(sized(expression, known))), known) == expression.number(known)


@given(expressions, assignments)
@example(Expression("-", (Expression("//", (Expression("a"), Expression(2))), Expression("a"))), {"a": 3, "b": 1, "c": 2, "n": 0})
def test_bounds_hold(expression: Expression, known: dict[str, int]) -> None:
    low, high = dims.bounds(sized(expression, known))
    assert low <= expression.number(known) <= high


@given(expressions, expressions, st.sampled_from(list(COMPARISONS)), assignments)
def test_compare_is_right_where_it_answers(a: Expression, b: Expression, fn: str, known: dict[str, int]) -> None:
    answer = dims.compare(fn, sized(a, known), sized(b, known))
    assert answer is None or answer == COMPARISONS[fn](a.number(known), b.number(known))


@given(expressions, expressions, st.sampled_from(NAMES), assignments)
def test_substitute_is_the_expression_with_the_other_in_its_place(a: Expression, b: Expression, name: str, known: dict[str, int]) -> None:
    inner = sized(b, known)
    assume(b.number(known) >= LOWS[name])
    changed = {**known, name: b.number(known)}
    assume(not a.divides_by_what_is_never(changed))
    result = dims.substitute(sized(a, known), {name: inner})
    assert dims.evaluate(result, known) == a.number(changed)


@given(expressions, expressions, expressions)
@example(Expression("b"), Expression("b"), Expression("%", (Expression("b"), Expression(2))))
@example(Expression("a"), Expression("b"), Expression("%", (Expression("b"), Expression(2))))
def test_rings_have_one_normal_form(a: Expression, b: Expression, c: Expression) -> None:
    try:
        x, y, z = (e.size() for e in (a, b, c))
    except ZeroDivisionError:
        assume(False)
    assert x + y == y + x
    assert x * y == y * x
    assert (x + y) + z == x + (y + z)
    assert (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert x - x == 0
    assert hash(x + y) == hash(y + x)


@given(expressions, assignments)
def test_symbols_are_those_that_the_value_needs(expression: Expression, known: dict[str, int]) -> None:
    size = sized(expression, known)
    names = size.symbols if isinstance(size, Dim) else set()
    assert dims.evaluate(size, {n: known[n] for n in names}) == expression.number(known)
    for name in names:
        assert dims.evaluate(size, {n: known[n] for n in names - {name}}) is None


A, B = dims.symbol("a"), dims.symbol("b", 1)


@pytest.mark.parametrize(("made", "text"), [
    (A + A, "2*a"),
    (A * B - B * A, "0"),
    (dims.floordiv(A * B * 6, B * 2), "3*a"),
    (dims.floordiv(dims.floordiv(A, 2), 3), "(a // 6)"),
    (dims.floordiv(dims.floordiv(A, 2) + 1, 3), "((a + 2) // 6)"),
    (dims.floordiv(A * 4 + 3, 4), "a"),
    (dims.floordiv(A - 1, 2) + 1, "((a + 1) // 2)"),
    (dims.mod(A * 4 + 6, 4), "2"),
    (dims.mod(A * B, B), "0"),
    (dims.mod(7 - dims.mod(A, 7), 7), "(6*a % 7)"),
    (dims.mod(dims.mod(A, 12) * 3 + B, 4), "((3*a + b) % 4)"),
    (dims.maximum(A - dims.mod(-3, dims.maximum(A, 1)), 0), "a - (-3 % max(1, a))"),
    (dims.maximum(A + 1, 0), "a + 1"),
    (dims.minimum(A, dims.floordiv(A, 2)), "(a // 2)"),
    (dims.maximum(A - dims.minimum(A, 2), 0), "a - min(2, a)"),
    (dims.minimum(A, A * B), "a"),
    (dims.maximum(A, dims.mod(A, 3)), "a"),
    (dims.floordiv(A, B * 2), "(a // (2*b))"),
])
def test_comes_out_simple(made: Size, text: str) -> None:
    assert str(made) == text


def test_a_name_that_another_export_used_brings_no_bounds_along() -> None:
    assert dims.compare(">", dims.symbol("s", 5), 4) is True
    assert dims.compare(">", dims.symbol("s"), 4) is None
    assert dims.maximum(dims.symbol("s", 5), 5) == dims.symbol("s", 5)
    assert str(dims.maximum(dims.symbol("s"), 5)) == "max(5, s)"


def test_whole_numbers_beyond_a_floats_precision_stay_exact() -> None:
    far = 2**62
    assert dims.compare("==", far + 1, far) is False
    assert dims.bounds(A + (far + 1))[0] == far + 1
    assert dims.compare("<=", far + 1, A * 0 + far) is False


def test_products_are_bounded_by_their_factors() -> None:
    h, w = dims.symbol("h", 1), dims.symbol("w", 1)
    assert dims.bounds(h * w - h - w + 1)[0] == 0
    assert dims.compare(">=", h * w, h) is True
    assert dims.compare(">=", dims.symbol("p") * w, w) is None


def test_truth_of_a_size_is_refused() -> None:
    with pytest.raises(TypeError, match="not known"):
        bool(A)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("text", ["x", "x + 3", "2*x - y", "x*y + 5", "(x // 4)"])
def test_padded_to_a_multiple(text: str, k: int) -> None:
    """x + (-x % k), in whatever way its terms are written, is k * ceil(x / k)."""
    x = dims.parse(text)
    for padded in (x + dims.mod(-x, k), dims.mod(x * (k - 1), k) + x + 1, 4 - dims.symbol("z") + x + dims.mod(-x, k)):
        assert "%" not in str(padded)
    for a in (-5, 0, 1, 6, 7, 8, 30):
        known = {"x": a, "y": 11, "z": 2}
        number = dims.evaluate(x, known)
        assert number is not None
        assert dims.evaluate(x + dims.mod(-x, k), known) == number + -number % k
        assert dims.evaluate(dims.mod(x * (k - 1), k) + x + 1, known) == number + (k - 1) * number % k + 1


def test_what_is_padded_again_and_again() -> None:
    """Swin's sizes: halved after padding to even, then padded to whole windows of 7."""
    h = dims.floordiv(dims.symbol("h"), 4)
    for wanted in ("((h + 4) // 8)", "((h + 12) // 16)", "((h + 28) // 32)"):
        h = dims.floordiv(h + dims.mod(h, 2) + 1, 2)
        assert str(h) == wanted
    assert str(h + dims.mod(-h, 7)) == "7*((h + 220) // 224)"
