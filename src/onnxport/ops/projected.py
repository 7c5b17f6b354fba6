"""LSTM layers whose hidden state is projected (`proj_size`), which ONNX's LSTM does not know: a Scan over time."""

from __future__ import annotations

from collections.abc import Sequence

from onnxport.ops.attention import count_up
from onnxport.ops.loops import scan
from onnxport.ops.support import shape_of, zero
from onnxport.target.builder import Builder
from onnxport.target.sizes import unsqueeze
from onnxport.target.value import Value


def projected_lstm(g: Builder, x: Value, params: Sequence[Sequence[Value]], states: Sequence[Value | None], lengths: Value | None) -> tuple[Value, ...]:
    """One layer on x (T, B, in): Y (T, directions, B, proj), h (directions, B, proj), c (directions, B, hidden), as ONNX's LSTM gives them.

    params: for each direction w_ih, w_hh, perhaps b_ih and b_hh, and w_hr.   states: h and c (directions, B, ...) or None.
    """
    running = None
    if lengths is not None:
        steps = g.op("Cast", count_up(g, shape_of(x)[0]), to=lengths.dtype)
        running = unsqueeze(g, g.op("Less", unsqueeze(g, steps, [1]), lengths), [2])
    results = [_direction(g, x, weights, [_of_direction(g, s, d) for s in states], running, reverse=d == 1) for d, weights in enumerate(params)]
    axes = (1, 0, 0)
    joined = [g.op("Concat", *[unsqueeze(g, r[i], [axis]) for r in results], axis=axis) for i, axis in enumerate(axes)]
    return tuple(joined)


def _of_direction(g: Builder, state: Value | None, direction: int) -> Value | None:
    return None if state is None else g.op("Gather", state, g.const(direction), axis=0)


def _direction(g: Builder, x: Value, weights: Sequence[Value], states: Sequence[Value | None], running: Value | None, *,
               reverse: bool) -> tuple[Value, Value, Value]:
    """(outputs (T, B, proj), last h, last c) of one direction."""
    w_ih, w_hh, *biases, w_hr = weights
    recurrent, project = (g.op("Transpose", w, perm=[1, 0]) for w in (w_hh, w_hr))
    entered = g.op("MatMul", x, g.op("Transpose", w_ih, perm=[1, 0]))
    if biases:
        entered = g.op("Add", entered, g.op("Add", *biases))
    assert x.dtype is not None
    nothing = zero(g, x.dtype)
    batch = shape_of(x)[1]
    sizes = (shape_of(w_hr)[0], shape_of(w_hr)[1])
    start = [s if s is not None else g.op("Expand", nothing, g.sizes([batch, n])) for s, n in zip(states, sizes, strict=True)]

    def step(before: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        hidden, cell = before
        gates = g.op("Add", elements[0], g.op("MatMul", hidden, recurrent))
        i, f, c, o = g.op("Split", gates, outputs=4, axis=1, num_outputs=4)
        kept = g.op("Mul", g.op("Sigmoid", f), cell)
        new = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", c)))
        out = g.op("MatMul", g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", new)), project)
        if running is None:
            return [out, new], [out]
        at = elements[1]
        return [g.op("Where", at, out, hidden), g.op("Where", at, new, cell)], [g.op("Where", at, out, nothing)]

    inputs = [entered] if running is None else [entered, running]
    (hidden, cell), (outputs,) = scan(g, "an LSTM with proj_size", start, inputs, step, reverse=reverse)
    return outputs, hidden, cell
