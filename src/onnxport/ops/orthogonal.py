"""Orthogonal factors by Householder's reflections, with LAPACK's signs: what one reflection leaves out, the next one starts at."""

from __future__ import annotations

from onnxport import errors
from onnxport.ops.attention import count_up
from onnxport.ops.creation import filled
from onnxport.ops.loops import repeated
from onnxport.ops.matrices import column, identity, is_zero, row, row_numbers, swapped, triangle
from onnxport.ops.pieces import sliced
from onnxport.ops.reduction import reduce
from onnxport.ops.registry import aten
from onnxport.ops.support import rank_of, shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import expand, squeeze, unsqueeze
from onnxport.target.value import Value


def _length(g: Builder, x: Value) -> Value:
    """The Euclidean length of columns (..., rows, 1), whose squares may neither overflow nor vanish."""
    axis = rank_of(x) - 2
    largest = reduce(g, "ReduceMax", g.op("Abs", x), [axis], True)
    unit = g.op("Where", is_zero(g, largest), g.const(1.0, x.dtype), largest)
    return g.op("Mul", unit, reduce(g, "ReduceL2", g.op("Div", x, unit), [axis], True))


def reflections(g: Builder, a: Value) -> tuple[Value, Value]:
    """(R in the upper triangle and the reflections below it, their factors tau (..., k)) of a (..., m, n), k the lesser of both."""
    *batch, m, n = shape_of(a)
    rows, columns, k = row_numbers(g, m), count_up(g, n), dims.minimum(m, n)
    nothing, one = g.const(0.0, a.dtype), g.const(1.0, a.dtype)

    def step(at: Value, states: list[Value]) -> list[Value]:
        packed, factors = states
        line, below, here = column(g, packed, at), g.op("Less", at, rows), g.op("Equal", rows, at)
        head, rest = row(g, line, at), g.op("Where", below, line, nothing)
        length = _length(g, g.op("Where", g.op("Or", below, here), line, nothing))
        done = is_zero(g, _length(g, rest))  # there is nothing to reflect, and LAPACK does not
        corner = g.op("Where", done, head, g.op("Where", g.op("Less", head, nothing), length, g.op("Neg", length)))
        factor = g.op("Where", done, nothing, g.op("Div", g.op("Sub", corner, head), g.op("Where", done, one, corner)))
        tail = g.op("Where", below, g.op("Div", line, g.op("Where", done, one, g.op("Sub", head, corner))), nothing)
        reflection = g.op("Where", here, one, tail)
        after = _reflected(g, packed, reflection, factor)
        kept = g.op("Where", g.op("Less", at, columns), after, packed)
        kept = g.op("Where", g.op("And", g.op("Equal", columns, at), g.op("Or", below, here)), g.op("Where", here, corner, tail), kept)
        return [kept, g.op("Where", g.op("Equal", count_up(g, k), at), factor, factors)]

    packed, factors = repeated(g, k, [a, filled(g, (*batch, 1, k), 0.0, a.dtype)], step)
    return packed, squeeze(g, factors, [len(batch)])


def _reflected(g: Builder, x: Value, reflection: Value, factor: Value) -> Value:
    """(I - factor v v') @ x for columns v (..., rows, 1)."""
    return g.op("Sub", x, g.op("MatMul", g.op("Mul", factor, reflection), g.op("MatMul", swapped(g, reflection), x)))


def reflected(g: Builder, packed: Value, factors: Value, x: Value, backwards: bool) -> Value:
    """The first (backwards: the last) of the reflections below the diagonal of `packed` is applied to x (..., m, columns) first."""
    m, k = shape_of(packed)[-2], shape_of(factors)[-1]
    rows, scales = row_numbers(g, m), unsqueeze(g, factors, [rank_of(factors) - 1])

    def step(turn: Value, states: list[Value]) -> list[Value]:
        at = g.op("Sub", g.scalar(k - 1), turn) if backwards else turn
        tail = g.op("Where", g.op("Less", at, rows), column(g, packed, at), g.const(0.0, packed.dtype))
        reflection = g.op("Where", g.op("Equal", rows, at), g.const(1.0, packed.dtype), tail)
        return [_reflected(g, states[0], reflection, column(g, scales, at))]

    return repeated(g, k, [x], step)[0]


def orthogonal(g: Builder, packed: Value, factors: Value, columns: Size) -> Value:
    """The first columns of the product of all reflections, (..., m, columns)."""
    *batch, m, _ = shape_of(packed)
    start = identity(g, m, packed.dtype, columns)
    return reflected(g, packed, factors, expand(g, start, [*batch, m, columns]), backwards=True)


@aten
def geqrf(g: Builder, self: Value) -> tuple[Value, Value]:
    """geqrf(Tensor self) -> (Tensor a, Tensor tau). By Householder, in ONNX MatMul, Where, ReduceL2, as a Loop over columns."""
    return reflections(g, self)


@aten("linalg_householder_product", "orgqr")
def linalg_householder_product(g: Builder, tau: Value | None = None, input: Value | None = None, self: Value | None = None,
                               input2: Value | None = None) -> Value:
    """linalg_householder_product(Tensor input, Tensor tau) -> Tensor; orgqr(Tensor self, Tensor input2) -> Tensor"""
    packed, factors = (input, tau) if input is not None else (self, input2)
    assert packed is not None and factors is not None
    return orthogonal(g, packed, factors, shape_of(packed)[-1])


@aten
def ormqr(g: Builder, self: Value, input2: Value, input3: Value, left: bool = True, transpose: bool = False) -> Value:
    """ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor

    Q @ input3 (left), or input3 @ Q; Q is of the reflections in self, whose factors are input2.
    """
    if left:
        return reflected(g, self, input2, input3, backwards=not transpose)
    return swapped(g, reflected(g, self, input2, swapped(g, input3), backwards=transpose))


@aten("linalg_qr", "qr")
def linalg_qr(g: Builder, A: Value | None = None, self: Value | None = None, mode: str = "reduced", some: bool = True) -> tuple[Value, Value]:
    """linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R); qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)

    By Householder; the signs are those of LAPACK. ONNX MatMul, Where, ReduceL2, as two Loops over columns.
    """
    x = A if A is not None else self
    assert x is not None
    if mode not in ("reduced", "complete", "r"):
        raise errors.UnsupportedError(f"QR factors in the mode {mode!r}, which is none of 'reduced', 'complete' and 'r'")
    *_, m, n = shape_of(x)
    packed, factors = reflections(g, x)
    wanted = m if mode == "complete" or not some else dims.minimum(m, n)
    upper = triangle(g, sliced(g, packed, rank_of(x) - 2, 0, wanted), True)
    return filled(g, (0,), 0.0, x.dtype) if mode == "r" else orthogonal(g, packed, factors, wanted), upper
