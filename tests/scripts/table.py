"""The table of scripts: each with its calls; the modules beside this one fill it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


@dataclass
class Row:
    """One script. calls: argument tuples; the first is the example.

    refused: a pattern of the error that every opset gives, or every one below `since` (strict).
    """

    script: Any
    calls: Sequence[tuple[Any, ...]]
    axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    refused: str = ""
    since: int = 99

    @property
    def file(self) -> str:
        """The name of the file that its source stands in."""
        return Path(sys.modules[self.script.__module__].__file__ or "").name


ROWS: dict[str, Row] = {}


def row(*calls: tuple[Any, ...], refused: str = "", since: int = 99, **axes: Any) -> Callable[[Any], Any]:
    """Enters a function, or the module that a class makes."""
    def enter(script: Any) -> Any:
        name = script.__name__
        assert name not in ROWS
        ROWS[name] = Row(script, calls, axes, refused, since)
        return script
    return enter


def t(*numbers: float) -> Tensor:
    """A vector of floats."""
    return torch.tensor([float(n) for n in numbers])
