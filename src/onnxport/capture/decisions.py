"""Where the user's code decides over sizes while torch.export runs it, which torch.export itself does not say."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from onnxport.aten.source import user_line
from onnxport.capture import torch_private

_lines: weakref.WeakKeyDictionary[Any, dict[Any, str]] = weakref.WeakKeyDictionary()
_answers: weakref.WeakKeyDictionary[Any, dict[Any, tuple[bool, str]]] = weakref.WeakKeyDictionary()
_AXIS = re.compile(r"\['tensors'\]\[(\d+)\]\.size\(\)\[(\d+)\]")


def _note(environment: Any, condition: Any) -> None:
    _lines.setdefault(environment, {}).setdefault(condition, user_line(2)[0])


def _answer(environment: Any, question: Any, truth: bool) -> None:
    known = _answers.setdefault(environment, {})
    if question not in known:
        known[question] = truth, user_line(2)[0]


noted = torch_private.hook_on_guards(_note, _answer)


class Decisions:
    """What was decided over the symbols of one environment of sizes: condition -> `file:line` of the user."""

    def __init__(self, environment: Any):
        self._lines: Mapping[Any, str] = _lines.get(environment, {}) if environment is not None else {}
        self._answers: Mapping[Any, tuple[bool, str]] = _answers.get(environment, {}) if environment is not None else {}
        self._texts = {str(condition): line for condition, line in self._lines.items()}
        self._environment = environment

    def of_text(self, condition: str) -> str | None:
        """Where this condition was decided."""
        return self._texts.get(condition)

    def of_symbol(self, symbol: Any) -> str | None:
        """Where something was decided over this symbol alone, or one that turned out to be the same."""
        same = self._same(symbol)
        return self._first(lambda symbols: symbols <= same)

    def turned(self, symbol: Any, number: int) -> str | None:
        """Where it would have gone another way had this symbol been `number`."""
        same = self._same(symbol)
        for question, (truth, line) in self._answers.items():
            symbols = getattr(question, "free_symbols", ())
            if len(symbols) == 1 and {str(s) for s in symbols} <= same and str(question.subs(next(iter(symbols)), number)) == str(not truth):
                return line
        return None

    def of_equal(self, symbol: Any) -> str | None:
        """Where this symbol and another one were held against each other."""
        same = self._same(symbol)
        return self._first(lambda symbols: len(symbols) > 1 and not symbols.isdisjoint(same))

    def _same(self, symbol: Any) -> set[str]:
        found = getattr(self._environment, "replacements", {}).items()
        return {str(symbol), *(str(replaced) for replaced, by in found if str(by) == str(symbol))}

    def _first(self, matches: Callable[[set[str]], bool]) -> str | None:
        for condition, line in self._lines.items():
            symbols = {str(symbol) for symbol in condition.free_symbols}
            if symbols and matches(symbols):
                return line
        return None

    def of_axes(self) -> dict[tuple[int, int], str]:
        """(number of the tensor, axis) -> what was decided over this size alone, and where."""
        found = {}
        for symbol, sources in getattr(self._environment, "var_to_sources", {}).items():
            at = _AXIS.search(str(getattr(sources[0], "name", "")))
            line = self.of_symbol(symbol)
            if at is not None and line is not None:
                found[int(at[1]), int(at[2])] = line
        return found


def of_error(error: BaseException) -> Decisions:
    """What was decided before torch.export gave up."""
    step = error.__traceback__
    while step is not None:
        for local in list(step.tb_frame.f_locals.values()):
            environment = getattr(local, "shape_env", None) if type(local).__name__ == "FakeTensorMode" else None
            if environment is not None:
                return Decisions(environment)
        step = step.tb_next
    return Decisions(None)
