"""What a guard says: the shortest comparison that says the same."""

from __future__ import annotations

import operator

import pytest

from onnxport.lower.guards import Guard, condition_of
from onnxport.target import dims

COMPARE = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
SIDES = ["x", "3*x", "-2*x + 5", "x // 3", "5*((x + 4) // 3) - 7", "-2*((x + 1) // 4)", "2*((3*x - 1) // 4) + 1", "x*y", "x + y", "x % 3"]


@pytest.mark.parametrize("fn", COMPARE)
@pytest.mark.parametrize("side", SIDES)
def test_a_condition_says_what_it_said(side: str, fn: str) -> None:
    left = dims.parse(side)
    for right in (-7, -1, 0, 1, 2, 6):
        condition = condition_of(fn, left, right)
        for x in range(-9, 24):
            known = {"x": x, "y": 2}
            number = dims.evaluate(left, known)
            assert dims.holds(condition, known) == COMPARE[fn](number, right), (condition, x)


@pytest.mark.parametrize(("fn", "left", "right", "wanted"), [
    (">", "7*((h + 24) // 28)", 7, "h > 31"), ("<=", "7*((h + 220) // 224)", 7, "h <= 227"), ("!=", "32*batch*past", 0, "batch*past != 0"),
    (">", "1 - h", 0, "h < 1"), ("<=", "past + sequence", "total", "past + sequence <= total"), ("==", "n // 2", 3, "(n // 2) == 3")])
def test_a_condition_is_short(fn: str, left: str, right: str, wanted: str) -> None:
    assert condition_of(fn, dims.parse(left), dims.parse(str(right))) == wanted


@pytest.mark.parametrize(("condition", "size", "only"), [
    ("n != 1", 1, True), ("n != 4", 4, True), ("n != 4", 1, False), ("n >= 2", 1, True), ("n > 1", 1, True), ("n >= 3", 1, False), ("n >= 3", 2, False),
    ("n <= 1", 2, False), ("n % 3 != 1", 1, False), ("n + m != 1", 1, False), ("m != 1", 1, False)])
def test_a_condition_that_excludes_one_size(condition: str, size: int, only: bool) -> None:
    assert Guard(condition, "").excludes_only({"n": size}) is only
