"""Gradients of sampled functions: central differences inside, one-sided ones at the edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnxport.ops.pieces import sliced
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, axis_of, floating, promoted, rank_of
from onnxport.target.builder import Builder
from onnxport.target.sizes import unsqueeze
from onnxport.target.value import Value


@aten
def gradient(g: Builder, self: Value, spacing: Any = None, dim: int | Sequence[int] | None = None, edge_order: int = 1) -> list[Value]:
    """gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]
    gradient.scalararray, .array, .scalarrayint, .scalarrayarray (Scalar[] spacing); .tensorarrayint, .tensorarray (Tensor[] spacing)

    spacing: the distance of neighbours, or for each dim its distance or the places of its samples. ONNX Slice, Sub, Div, Concat.
    """
    axes = list(range(rank_of(self))) if dim is None else [axis_of(self, d) for d in ([dim] if isinstance(dim, int) else dim)]
    given = list(spacing) if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(axes)
    return [_by_places(g, self, s, axis, edge_order) if isinstance(s, Value) else _by_distance(g, self, s, axis, edge_order)
            for axis, s in zip(axes, given, strict=True)]


def _sum(g: Builder, x: Value, axis: int, start: int, factors: Sequence[Number | Value]) -> Value:
    """The products of neighbouring elements from `start` on with these factors, added up: (..., 1, ...)."""
    parts = [g.op("Mul", sliced(g, x, axis, start + i, start + i + 1 or None), f if isinstance(f, Value) else g.const(f, x.dtype))
             for i, f in enumerate(factors)]
    return g.op("Sum", *parts)


def _by_distance(g: Builder, x: Value, distance: Number, axis: int, edge_order: int) -> Value:
    x = floating(g, x)
    inner = g.op("Div", g.op("Sub", sliced(g, x, axis, 2), sliced(g, x, axis, 0, -2)), g.const(2.0 * distance, x.dtype))
    first = [-1.0, 1.0] if edge_order == 1 else [-1.5, 2.0, -0.5]
    last = [-f for f in reversed(first)]
    edges = [g.op("Div", _sum(g, x, axis, start, factors), g.const(float(distance), x.dtype)) for start, factors in ((0, first), (-len(last), last))]
    return g.op("Concat", edges[0], inner, edges[1], axis=axis)


def _by_places(g: Builder, x: Value, places: Value, axis: int, edge_order: int) -> Value:
    x, places = promoted(g, x, places, floating=True)
    places = unsqueeze(g, places, list(range(1, rank_of(x) - axis)))  # (n, 1, ...): along the axis of x
    steps = g.op("Sub", sliced(g, places, 0, 1), sliced(g, places, 0, 0, -1))
    before, after = sliced(g, steps, 0, 0, -1), sliced(g, steps, 0, 1)
    both = g.op("Add", before, after)
    weights = [g.op("Neg", g.op("Div", after, g.op("Mul", before, both))), g.op("Div", g.op("Sub", after, before), g.op("Mul", before, after)),
               g.op("Div", before, g.op("Mul", after, both))]
    parts = (sliced(g, x, axis, 0, -2), sliced(g, x, axis, 1, -1), sliced(g, x, axis, 2))
    inner = g.op("Sum", *(g.op("Mul", part, weight) for part, weight in zip(parts, weights, strict=True)))
    edges = [_edge(g, x, steps, axis, edge_order, at_end=at_end) for at_end in (False, True)]
    return g.op("Concat", edges[0], inner, edges[1], axis=axis)


def _edge(g: Builder, x: Value, steps: Value, axis: int, order: int, *, at_end: bool) -> Value:
    """The one-sided difference of the first or last elements."""
    count = order + 1
    start = -count if at_end else 0
    if order == 1:
        near = sliced(g, steps, 0, -1) if at_end else sliced(g, steps, 0, 0, 1)
        return g.op("Div", _sum(g, x, axis, start, [-1.0, 1.0]), near)
    near, far = (sliced(g, steps, 0, -1), sliced(g, steps, 0, -2, -1)) if at_end else (sliced(g, steps, 0, 0, 1), sliced(g, steps, 0, 1, 2))
    both = g.op("Add", near, far)
    # Of the parabola through three elements, from the edge inwards; at the end their order and sign turn.
    inward = [g.op("Neg", g.op("Div", g.op("Add", near, both), g.op("Mul", near, both))), g.op("Div", both, g.op("Mul", near, far)),
              g.op("Neg", g.op("Div", near, g.op("Mul", far, both)))]
    return _sum(g, x, axis, start, [g.op("Neg", w) for w in reversed(inward)] if at_end else inward)
