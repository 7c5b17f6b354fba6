"""Keeps module calls apart that are to become functions, so that equal modules give equal nodes.

What a call reads of the rest of the graph it sees through a `Window`: nothing looks behind it to shorten a chain of nodes, nodes are
shared within one call only, and sizes are read from the call's own tensors.
"""

from __future__ import annotations

from typing import Any

from onnxport.module_calls import ModuleCall
from onnxport.target.dims import Dim
from onnxport.target.value import Complex, Value, Window, behind

Source = tuple[Value, int | None]


class Apart:
    """The windows of one graph, and through which of them sizes can be read."""

    def __init__(self) -> None:
        self.windows: dict[tuple[int, ModuleCall | None], Window] = {}
        self.sources: dict[tuple[str, ModuleCall | None], Source] = {}

    def seen(self, found: Any, call: ModuleCall | None) -> Any:
        """What a value, or a list of values, is inside this call."""
        if isinstance(found, Value):
            return self._window(found, call)
        if type(found) in (list, tuple) and any(isinstance(v, Value) for v in found):
            return type(found)([self.seen(v, call) for v in found])
        return found

    def _window(self, value: Value, call: ModuleCall | None) -> Value:
        if isinstance(value, Complex):
            return Complex(self._window(value.re, call), self._window(value.im, call), value.const)
        if value.const is not None or value.content is not None:
            return value
        if isinstance(value, Window) and value.call is call:
            return value
        origin = behind(value)
        if (None if origin.node is None else origin.node.call) is call:
            return origin
        key = (id(origin), call)
        if key not in self.windows:
            self.windows[key] = window = Window(origin, call)
            for axis, size in enumerate(window.shape or ()):
                symbol = size.symbol if isinstance(size, Dim) else None
                if symbol is not None:
                    self.sources.setdefault((symbol.text, call), (window, axis))
        return self.windows[key]
