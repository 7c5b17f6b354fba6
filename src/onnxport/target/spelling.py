"""What the rules of `forms` are made of: a node that is not made yet, and what may be asked of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from onnxport import errors
from onnxport.target import dims
from onnxport.target.dims import Size
from onnxport.target.value import Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

Inputs = tuple[Value | None, ...]


class Form(NamedTuple):
    """A node that is not made yet."""

    op_type: str
    inputs: Inputs
    attrs: dict[str, Any]
    outputs: int

    def input(self, position: int) -> Value | None:
        """The input at `position`, None where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    @property
    def x(self) -> Value:
        """The first input."""
        value = self.inputs[0]
        assert value is not None
        return value

    def change(self, op_type: str | None = None, inputs: Sequence[Value | None] | None = None, **attrs: Any) -> Form:
        """This form with other inputs, and with attributes set or (None) removed."""
        merged = {k: v for k, v in {**self.attrs, **attrs}.items() if v is not None}
        return Form(op_type or self.op_type, self.inputs if inputs is None else tuple(inputs), merged, self.outputs)


# A rule spells a form differently, or builds the whole thing out of other operators and returns what it made.
Made = Form | tuple[Value, ...]
Rule = Callable[["Builder", Form], Made]
# For each operator (the opset from which the rule is not needed any more, the rule), in the order of application.
Rules = dict[str, tuple[tuple[int, Rule], ...]]


def refusal(g: Builder, what: str, lowest: int) -> errors.UnsupportedError:
    """The error that says which opset could say it."""
    return errors.UnsupportedError(f"{what} needs opset {lowest} or higher (opset_version={g.opset} was asked)")


def numbers(value: Value | None) -> list[Any] | None:
    """The numbers that a small tensor surely holds, flat; None where they depend on the input or it is left out."""
    if value is None:
        return None
    if value.content is not None:
        return list(value.content) if dims.is_static(value.content) else None
    if value.const is not None:
        return list(value.const.tensor.reshape(-1).tolist())
    return None


def sizes(value: Value | None) -> list[Size] | None:
    """Like `numbers`, but sizes that depend on a dynamic axis are known too."""
    return list(value.content) if value is not None and value.content is not None else numbers(value)
