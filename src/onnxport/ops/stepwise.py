"""Recurrent layers that ONNX or ONNX Runtime does not know, as a Scan over time: LSTM with `proj_size`, float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnxport.ops.attention import count_up
from onnxport.ops.loops import scan
from onnxport.ops.support import shape_of, zero
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import unsqueeze
from onnxport.target.value import Value

# (what the input brings to the gates, the recurrent product's gates, the states) -> the new states, h first
Cell = Callable[[Builder, Value, Value, list[Value]], list[Value]]


def _lstm(g: Builder, entered: Value, again: Value, states: list[Value]) -> list[Value]:
    i, f, c, o = g.op("Split", g.op("Add", entered, again), outputs=4, axis=1, num_outputs=4)
    kept = g.op("Mul", g.op("Sigmoid", f), states[1])
    cell = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", c)))
    return [g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", cell)), cell]


def _gru(g: Builder, entered: Value, again: Value, states: list[Value]) -> list[Value]:
    r, z, n = g.op("Split", entered, outputs=3, axis=1, num_outputs=3)
    r_again, z_again, n_again = g.op("Split", again, outputs=3, axis=1, num_outputs=3)
    reset, update = g.op("Sigmoid", g.op("Add", r, r_again)), g.op("Sigmoid", g.op("Add", z, z_again))
    new = g.op("Tanh", g.op("Add", n, g.op("Mul", reset, n_again)))
    return [g.op("Add", new, g.op("Mul", update, g.op("Sub", states[0], new)))]


def _rnn(activation: str) -> Cell:
    return lambda g, entered, again, states: [g.op(activation, g.op("Add", entered, again))]


CELLS: dict[str, Cell] = {"LSTM": _lstm, "GRU": _gru, "Tanh": _rnn("Tanh"), "Relu": _rnn("Relu")}


@dataclass(frozen=True)
class Direction:
    """What one direction of a layer multiplies with. enter: the input of all steps (T, B, in) -> gates; again: h (B, hidden) -> gates.

    sizes: of the states.   project: makes h smaller.   together: what is multiplied is looked at as a whole, so that the rows of sequences
    that are over must be 0 there.
    """

    enter: Callable[[Value], Value]
    again: Callable[[Value], Value]
    sizes: Sequence[Size]
    project: Callable[[Value], Value] | None = None
    together: bool = False


def direction_of(g: Builder, cell: str, biases: bool, weights: Sequence[Value]) -> Direction:
    """Of the weights w_ih, w_hh, perhaps b_ih and b_hh, perhaps the projection w_hr."""
    turned = [g.op("Transpose", weight, perm=[1, 0]) for weight in weights if weight.rank == 2]
    first = second = None
    if biases:
        # A GRU resets what the second bias adds, too; elsewhere the two are one.
        first, second = (weights[2], weights[3]) if cell == "GRU" else (g.op("Add", weights[2], weights[3]), None)

    def linear(x: Value, matrix: Value, bias: Value | None = None) -> Value:
        made = g.op("MatMul", x, matrix)
        return made if bias is None else g.op("Add", made, bias)

    hidden = shape_of(weights[1])[1]
    project = (lambda h: linear(h, turned[2])) if len(turned) == 3 else None
    sizes = [hidden, shape_of(weights[-1])[1] if project is not None else hidden]
    return Direction(lambda x: linear(x, turned[0], first), lambda h: linear(h, turned[1], second), sizes, project)


def layer(g: Builder, cell: str, x: Value, directions: Sequence[Direction], states: Sequence[Value | None],
          lengths: Value | None) -> tuple[Value, ...]:
    """One layer on x (T, B, in), as ONNX gives it: Y (T, directions, B, hidden) and the last states (directions, B, hidden).

    cell: a name of `CELLS`.   states: (directions, B, hidden) or None for zeros, h and of an LSTM c.   lengths: (B,).
    """
    running = None
    if lengths is not None:
        steps = g.op("Cast", count_up(g, shape_of(x)[0]), to=lengths.dtype)
        running = unsqueeze(g, g.op("Less", unsqueeze(g, steps, [1]), lengths), [2])
    results = []
    for number, direction in enumerate(directions):
        start = [None if s is None else g.op("Gather", s, g.const(number), axis=0) for s in states]
        start += [None] * ((2 if cell == "LSTM" else 1) - len(start))
        results.append(_direction(g, cell, x, direction, start, running, reverse=number == 1))
    axes = (1, 0, 0)[:len(results[0])]
    return tuple([g.op("Concat", *[unsqueeze(g, r[i], [axis]) for r in results], axis=axis) for i, axis in enumerate(axes)])


def _direction(g: Builder, cell: str, x: Value, made_of: Direction, states: Sequence[Value | None], running: Value | None, *,
               reverse: bool) -> list[Value]:
    """Outputs (T, B, hidden) and last states of one direction."""
    assert x.dtype is not None
    nothing, batch = zero(g, x.dtype), shape_of(x)[1]
    entered = made_of.enter(g.op("Where", running, x, nothing) if running is not None and made_of.together else x)
    start = [g.op("Expand", nothing, g.sizes([batch, n])) if s is None else s for s, n in zip(states, made_of.sizes, strict=False)]

    def step(before: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        h = g.op("Where", elements[1], before[0], nothing) if running is not None and made_of.together else before[0]
        after = CELLS[cell](g, elements[0], made_of.again(h), before)
        if made_of.project is not None:
            after[0] = made_of.project(after[0])
        if running is None:
            return after, [after[0]]
        at = elements[1]
        kept = [g.op("Where", at, new, old) for new, old in zip(after, before, strict=True)]
        return kept, [g.op("Where", at, after[0], nothing)]

    inputs = [entered] if running is None else [entered, running]
    last, outputs = scan(g, "a recurrent net that ONNX does not know", start, inputs, step, reverse=reverse)
    return [*outputs, *last]
