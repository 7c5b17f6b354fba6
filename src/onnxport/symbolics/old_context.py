"""What symbolic functions of PyTorch 1.11 and 1.12 took before the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class SymbolicContext:
    """A function whose first parameter is annotated with this class gets one, and the graph behind it.

    params_dict: empty.   env: empty.   cur_node: the operator that is translated.   onnx_block: the block that is written into.
    """

    params_dict: dict[str, Any]
    env: dict[Any, Any]
    cur_node: Any
    onnx_block: Any
