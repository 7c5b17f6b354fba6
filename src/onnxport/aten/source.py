"""The user's own source line of a node."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import torch

_FRAME = re.compile(r"^(.*?)\((\d+)\): (\S+)$", re.MULTILINE)
_SCRIPT = re.compile(r'File "([^"]+)", line (\d+)')
LIBRARY = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep)


def where(stack: Any) -> str:
    """`file:line` of the innermost frame outside torch and onnxport in the stack that a capture recorded with a node."""
    text = stack if isinstance(stack, str) else str(stack)
    frames = [(path, line) for path, line, _ in _FRAME.findall(text)] or list(_SCRIPT.findall(text))
    for path, line in frames:
        if not path.startswith(LIBRARY):
            return f"{path}:{line}"
    if frames:
        return f"{frames[0][0]}:{frames[0][1]}"
    return text.strip().split("\n")[0]


def user_line(depth: int = 1) -> tuple[str, Any]:
    """(`file:line`, frame) of the nearest caller outside torch and onnxport."""
    frame = sys._getframe(depth)
    first = frame
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(LIBRARY):
            return f"{name}:{frame.f_lineno}", frame
        frame = frame.f_back  # type: ignore[assignment]
    return f"{first.f_code.co_filename}:{first.f_lineno}", first
