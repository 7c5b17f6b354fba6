"""The loss of connectionist temporal classification: the sum over all alignments, as a Scan over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnxport.ops import windows
from onnxport.ops.cumulative import cumsum
from onnxport.ops.indexing import gather
from onnxport.ops.loops import scan
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, rank_of, shape_of, tensor
from onnxport.target import sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.value import DataType, Value

INT64 = DataType.INT64
Lengths = Value | Sequence[Size]


@aten
def ctc_loss(g: Builder, log_probs: Value, targets: Value, input_lengths: Lengths, target_lengths: Lengths, blank: int = 0,
             reduction: int = 1, zero_infinity: bool = False) -> Value:
    """ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1,
    bool zero_infinity=False) -> Tensor; .IntList takes int[] lengths

    log_probs (T, N, C) or (T, C), targets (N, S) or all in a row. reduction: 0 none, 1 mean, 2 sum. ONNX GatherElements, Scan.
    """
    single = rank_of(log_probs) == 2
    x = sizes.unsqueeze(g, log_probs, [1]) if single else log_probs
    lengths = _lengths(g, target_lengths)
    loss = _losses(g, x, targets, _lengths(g, input_lengths), lengths, blank)
    if zero_infinity:
        nothing = tensor(g, 0.0, loss.dtype)
        loss = g.op("Where", g.op("Equal", loss, tensor(g, math.inf, loss.dtype)), nothing, loss)
    if reduction == 1:
        counted = cast(g, g.op("Max", lengths, g.const(1)), loss.dtype or DataType.FLOAT)
        return g.op("ReduceMean", g.op("Div", loss, counted), keepdims=0)
    if reduction == 2:
        return g.op("ReduceSum", loss, keepdims=0)
    return sizes.reshape(g, loss, []) if single else loss


@aten("_ctc_loss")
def ctc_loss_forward(g: Builder, log_probs: Value, targets: Value, input_lengths: Lengths, target_lengths: Lengths, blank: int = 0,
                     zero_infinity: bool = False) -> list[Value | None]:
    """_ctc_loss(…) -> (Tensor, Tensor): the losses; the second result serves gradients and is left out."""
    return [ctc_loss(g, log_probs, targets, input_lengths, target_lengths, blank, 0, zero_infinity), None]


def _lengths(g: Builder, lengths: Lengths) -> Value:
    given = cast(g, lengths, INT64) if isinstance(lengths, Value) else g.sizes(list(lengths))
    return sizes.reshape(g, given, [-1])


def _losses(g: Builder, x: Value, targets: Value, times: Value, lengths: Value, blank: int) -> Value:
    """(N,): minus the logarithm of the sum over all alignments."""
    labels = _labels(g, targets, lengths, shape_of(x)[1], blank)
    time, batch, width = shape_of(x)[0], shape_of(x)[1], shape_of(labels)[1]
    never, start = tensor(g, -math.inf, x.dtype), tensor(g, 0.0, x.dtype)
    spoken = gather(g, x, 2, sizes.expand(g, sizes.unsqueeze(g, labels, [0]), [time, batch, width]))
    place = windows.arange(g, width)
    # A label may follow the one before the blank between them unless they are the same. Before time only the first place is reached.
    skips = g.op("Not", g.op("Equal", labels, windows.pad(g, labels, [2], [-2], blank)))
    skips = g.op("And", skips, g.op("Less", g.const(1), place))
    reached = sizes.expand(g, g.op("Where", g.op("Equal", place, g.const(0)), start, never), [batch, width])

    def step(states: list[Value], elements: list[Value]) -> tuple[list[Value], list[Value]]:
        before = states[0]
        moved = windows.pad(g, before, [1], [-1], -math.inf)
        skipped = g.op("Where", skips, windows.pad(g, before, [2], [-2], -math.inf), never)
        after = g.op("Add", _log_sum(g, before, moved, skipped), elements[0])
        running = g.op("Less", elements[1], sizes.unsqueeze(g, times, [1]))
        return [g.op("Where", running, after, before)], []

    last = scan(g, "ctc_loss", [reached], [spoken, windows.arange(g, time)], step)[0][0]
    end = g.op("Add", lengths, lengths)
    ends = [gather(g, last, 1, sizes.unsqueeze(g, at, [1])) for at in (end, g.op("Max", g.op("Sub", end, g.const(1)), g.const(0)))]
    empty = sizes.unsqueeze(g, g.op("Equal", end, g.const(0)), [1])
    total = _log_sum(g, ends[0], g.op("Where", empty, never, ends[1]))
    return g.op("Neg", sizes.reshape(g, total, [batch]))


def _labels(g: Builder, targets: Value, lengths: Value, batch: Size, blank: int) -> Value:
    """(N, 2 S + 1): the labels of each target with blanks around them, and blanks behind its end."""
    targets = cast(g, targets, INT64)
    if rank_of(targets) == 1:
        longest = g.size_of(g.op("ReduceMax", lengths, keepdims=0))
        start = g.op("Sub", cumsum(g, lengths, 0), lengths)
        place = g.op("Add", sizes.unsqueeze(g, start, [1]), windows.arange(g, longest))
        row = g.op("Concat", targets, g.const([blank]), axis=0)  # for the places behind the last end
        targets = g.op("Gather", row, g.op("Min", place, g.scalar(shape_of(targets)[0])), axis=0)
    longest = shape_of(targets)[1]
    inside = g.op("Less", windows.arange(g, longest), sizes.unsqueeze(g, lengths, [1]))
    blanks = g.const(blank)
    targets = g.op("Where", inside, targets, blanks)
    pairs = g.op("Concat", sizes.expand(g, g.const([[[blank]]]), [batch, longest, 1]), sizes.unsqueeze(g, targets, [2]), axis=2)
    return windows.pad(g, sizes.reshape(g, pairs, [batch, 2 * longest]), [0], [1], blank)


def _log_sum(g: Builder, *terms: Value) -> Value:
    """log(sum(exp(terms))), also of all minus infinity."""
    greatest = g.op("Max", *terms)
    lowest, zero = tensor(g, -math.inf, greatest.dtype), tensor(g, 0.0, greatest.dtype)
    base = g.op("Where", g.op("Equal", greatest, lowest), zero, greatest)
    total: Value | None = None
    for term in terms:
        part = g.op("Exp", g.op("Sub", term, base))
        total = part if total is None else g.op("Add", total, part)
    assert total is not None
    return g.op("Add", g.op("Log", total), base)


