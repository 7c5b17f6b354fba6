"""Loops: what no ONNX operator accumulates is accumulated by Scan along a dim, element after element, or by Loop, turn after turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnxport import errors
from onnxport.ops.support import shape_of
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

Step = Callable[[list[Value], list[Value]], tuple[Sequence[Value], Sequence[Value]]]


def scan(g: Builder, what: str, states: Sequence[Value], inputs: Sequence[Value], step: Step, *, axis: int = 0,
         reverse: bool = False) -> tuple[list[Value], list[Value]]:
    """Runs `step(states, elements) -> (new states, outputs)` along `axis` of the inputs: (last states, outputs stacked along `axis`).

    step may use values from outside.   what: names the operator in the refusal below opset 9. ONNX Scan.
    """
    if g.opset < 9:
        raise errors.UnsupportedError(f"{what} needs opset 9 or higher (opset_version={g.opset} was asked)")
    with g.subgraph() as body:
        inner = [g.input(None, v.dtype, v.shape) for v in states]  # type: ignore[arg-type]
        elements = [g.input(None, v.dtype, shape_of(v)[:axis] + shape_of(v)[axis + 1:]) for v in inputs]  # type: ignore[arg-type]
        after, made = step(inner, elements)
        body.outputs = [*after, *made]
    outputs = len(body.outputs)
    direction = int(reverse)
    results = g.several("Scan", *states, *inputs, outputs=outputs, body=body, num_scan_inputs=len(inputs),
                   scan_input_axes=[axis] * len(inputs) if axis else None, scan_output_axes=[axis] * len(made) if axis else None,
                   scan_input_directions=[direction] * len(inputs) if reverse else None,
                   scan_output_directions=[direction] * len(made) if reverse else None)
    return results[:len(states)], results[len(states):]


WRITTEN_OUT = 8  # turns that are written one after the other: no loop to run, and much of it is known now


def repeated(g: Builder, turns: Size, states: Sequence[Value], step: Callable[[Value, list[Value]], Sequence[Value]],
             more: Callable[[Value, list[Value]], Value] | None = None) -> list[Value]:
    """The states after `turns` times `step(turn, states) -> new states` of the same dtypes and shapes; turn is 0, 1, ... as an int64 scalar.

    more: of a turn and the states after it, whether another one follows. step and more may use values from outside. ONNX Loop.
    """
    states = list(states)
    if more is None and isinstance(turns, int) and turns <= WRITTEN_OUT:
        for number in range(turns):
            states = list(step(g.const(number), states))
        return states
    with g.subgraph() as body:
        turn = g.input(None, DataType.INT64, ())
        g.input(None, DataType.BOOL, ())
        inner = [g.input(None, v.dtype, v.shape) for v in states]  # type: ignore[arg-type]
        after = list(step(turn, inner))
        body.outputs = [g.const(True) if more is None else more(turn, after), *after]
    results = g.several("Loop", g.scalar(turns), g.const(True), *states, outputs=len(states), body=body)
    for result, state in zip(results, states, strict=True):
        result.shape = state.shape
    return results
