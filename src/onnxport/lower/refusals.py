"""Goes on after an operator that cannot be lowered as it is used, so that all of them are told at once.

What such an operator gives has a stand-in of the example's dtype and shape. An operator that reads one, from near or far, is believed
only where it needs another opset; another refusal of it may come from the stand-in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxport import errors
from onnxport.aten.graph import Block, Node
from onnxport.aten.graph import Value as Captured
from onnxport.lower.missing import name_of
from onnxport.ops.quantised import INTEGERS
from onnxport.target.dtypes import from_torch
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

Refusal = errors.UnsupportedError | errors.UnsupportedOperatorError


class Refusals:
    """Those of one lowering."""

    def __init__(self, low: Lowering):
        self.low = low
        self.found: dict[str, tuple[Refusal, int]] = {}  # operator and reason -> the first refusal, how often
        self.unsure: set[Captured] = set()  # what depends on a stand-in

    def lower(self, block: Block) -> None:
        """Lowers the nodes of the graph; raises what was refused: one error as it is, several as one."""
        for node in block.nodes:
            unsure = bool(self.found) and any(value in self.unsure for value in node.inputs())
            try:
                self.low.node(node)
            except (errors.UnsupportedError, errors.UnsupportedOperatorError) as refusal:
                self.note(node, refusal, unsure)
            except Exception:
                if not self.found:
                    raise
                break  # a consequence of a stand-in
            if unsure:
                self.unsure.update(node.outputs)
        if self.found:
            raise self.together()

    def note(self, node: Node, refusal: Refusal, unsure: bool) -> None:
        """Keeps a refusal and puts stand-ins where the results belong."""
        if not unsure or getattr(refusal, "lowest", None) is not None:
            reason = f"{name_of(node)} {str(refusal).partition(chr(10))[0]}"
            first, count = self.found.get(reason, (refusal, 0))
            self.found[reason] = first, count + 1
        if node.blocks:  # what lists hold now, nobody knows
            raise self.together()
        for output in node.outputs:
            if output.kind != "tensor" or output.dtype is None or output.dtype in INTEGERS or output.shape is None or None in output.shape:
                raise self.together()
            self.low.env[output] = Value(from_torch(output.dtype), output.shape)
        self.unsure.update(node.outputs)

    def together(self) -> Refusal:
        """One error for all."""
        refusals = [refusal for refusal, _ in self.found.values()]
        if len(refusals) == 1 and next(iter(self.found.values()))[1] == 1:
            return refusals[0]
        lines = [str(refusal) + (f"\n  and {count - 1} more like it" if count > 1 else "") for refusal, count in self.found.values()]
        opsets = [getattr(refusal, "lowest", None) for refusal in refusals]
        if all(opsets) and len(refusals) > 1:
            lines.append(f"together they need opset_version={max(opsets)} or higher")  # type: ignore[type-var]
        made = type(refusals[0])("\n".join(lines))
        made.__cause__ = refusals[0].__cause__
        return made
