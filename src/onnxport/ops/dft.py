"""Discrete Fourier transforms as products with matrices, which is right at every opset and quick for the lengths that models use.

Long lengths are taken apart, n = a * b, into transforms of the lengths a and b, and long primes are made a convolution of another length
(Bluestein). Of a dynamic length the matrix is computed when the model runs, or, where there is ONNX's DFT, that is taken: its time does not
grow with the square of the length. ONNX Runtime's is slower than a product up to about a thousand points, and for lengths that are no power of
two inexact in float32 (1e-3 at 400 points), so it is given float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from onnxport.ops import arithmetic, creation, layout, padding
from onnxport.ops.complex_parts import multilinear, on_both, zeros
from onnxport.ops.pieces import parts, sliced
from onnxport.ops.support import cast, rank_of, shape_of, tensor
from onnxport.target import dims, folding, pairs
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import to_torch
from onnxport.target.sizes import reshape
from onnxport.target.value import Complex, DataType, Value

_WHOLE = 256  # up to this length a transform is one product
_PRIME = 1024  # and up to this one that cannot be taken apart
_DFT = 17  # the opset since when ONNX has one
Pair = tuple[Value, Value | None]  # real and imaginary parts; None for real numbers
Scale = float | Value


def transformed(g: Builder, z: Pair, axis: int, n: Size, sign: int, scale: Scale = 1.0, count: Size | None = None) -> Complex:
    """The first `count` (all) of the sums over t of z[t] exp(sign 2 pi i k t / n), times `scale`. The size along `axis` is n."""
    count = n if count is None else count
    if isinstance(n, int) and _is_long(n):
        assert not isinstance(scale, Value)
        return _long(g, z, axis, n, sign, scale, count)
    if not isinstance(n, int) and g.opset >= _DFT:
        return _by_operator(g, z, axis, n, sign, scale, count)
    re, im = z
    waves = Waves(g, re, n, (n, count), sign, scale)
    made = _product(g, re, waves.of_real, axis)
    if im is not None:
        made = g.op("Add", made, _product(g, im, waves.of_imaginary, axis))
    both = parts(g, made, axis, [count, count])
    return Complex(both[0], both[1])


def real_from_half(g: Builder, z: Complex, axis: int, n: Size, scale: Scale) -> Value:
    """The n real numbers whose spectrum begins with z (n // 2 + 1 numbers), times n and `scale`; the rest of it is their conjugate."""
    half = dims.floordiv(n, 2) + 1
    if _is_long(n) if isinstance(n, int) else g.opset >= _DFT:
        return _from_whole(g, z, axis, n, half, scale)
    waves = Waves(g, z.re, n, (half, n), 1, scale, twice=True)
    return g.op("Sub", _product(g, z.re, waves.cos, axis), _product(g, z.im, waves.sin, axis))


def _from_whole(g: Builder, z: Complex, axis: int, n: Size, half: Size, scale: Scale) -> Value:
    """From all of the spectrum: z and, behind it, its conjugates from the last to the second."""
    rest = on_both(z, lambda part: layout.flip(g, sliced(g, part, axis, 1, n - half + 1), [axis]))
    whole = Complex(g.op("Concat", z.re, rest.re, axis=axis), g.op("Concat", z.im, g.op("Neg", rest.im), axis=axis))
    whole.shape = (*shape_of(z)[:axis], n, *shape_of(z)[axis + 1:])
    return transformed(g, (whole.re, whole.im), axis, n, 1, scale).re


def resized(g: Builder, x: Value, axis: int, size: Size) -> Value:
    """`x` cut off, or with zeros behind, along one axis. ONNX Slice, Pad."""
    if dims.compare("<=", shape_of(x)[axis], size) is not True:
        x = sliced(g, x, axis, 0, size)
    missing = dims.maximum(size - shape_of(x)[axis], 0)
    if isinstance(missing, int) and missing == 0:
        return x
    return padding.constant_pad_nd(g, x, [0, 0] * (rank_of(x) - 1 - axis) + [0, missing])


def _by_operator(g: Builder, z: Pair, axis: int, n: Size, sign: int, scale: Scale, count: Size) -> Complex:
    """ONNX DFT; the other sign is the conjugate of what it gives for conjugates."""
    re, im = z
    dtype, last = re.dtype, rank_of(re)
    assert dtype is not None
    half = im is None and dims.equal(count, dims.floordiv(n, 2) + 1)
    given = [re] if im is None else [re, im if sign < 0 else g.op("Neg", im)]
    pieces = [g.op("Unsqueeze", cast(g, part, DataType.DOUBLE), g.const([last])) for part in given]
    made = g.op("DFT", pieces[0] if len(pieces) == 1 else g.op("Concat", *pieces, axis=last), None, g.scalar(axis), onesided=int(half))
    made.shape = (*shape_of(re)[:axis], count if half else n, *shape_of(re)[axis + 1:], 2)
    out = on_both(pairs.unpacked(g, made if half else sliced(g, made, axis, 0, count)), lambda part: cast(g, part, dtype))
    scaled = out if isinstance(scale, float) and scale == 1 else on_both(out, lambda part: g.op("Mul", part, tensor(g, scale, dtype)))
    return scaled if sign < 0 else Complex(scaled.re, g.op("Neg", scaled.im))


# ---------------------------------------------------------------------- matrices


Matrix = Callable[[bool], Value]  # the argument: whether it is wanted transposed


def _product(g: Builder, x: Value, matrix: Matrix, axis: int) -> Value:
    """The sums over `axis` of x times each column of `matrix`, in its place. ONNX MatMul, from the left for the last axis but one."""
    rank = rank_of(x)
    if axis == rank - 1:
        return g.op("MatMul", x, matrix(False))
    if axis == rank - 2:
        return g.op("MatMul", matrix(True), x)
    return layout.movedim(g, g.op("MatMul", layout.movedim(g, x, axis, rank - 1), matrix(False)), rank - 1, axis)


class Waves:
    """exp(sign 2 pi i t k / n) times `scale`, for rows t and columns k, as real matrices of the type of `like`.

    twice: rows count double that stand for their conjugates as well.
    """

    def __init__(self, g: Builder, like: Value, n: Size, shape: tuple[Size, Size], sign: int, scale: Scale, twice: bool = False):
        assert like.dtype is not None
        self.g, self.dtype = g, like.dtype
        self.n, self.shape, self.sign, self.scale, self.twice = n, shape, sign, scale, twice

    def cos(self, transposed: bool = False) -> Value:
        """The real parts."""
        return self._kept("cos", transposed, lambda: self._wave("Cos"))

    def sin(self, transposed: bool = False) -> Value:
        """The imaginary parts."""
        return self._kept("sin", transposed, lambda: self._wave("Sin") if self.sign > 0 else self.g.op("Neg", self._wave("Sin")))

    def of_real(self, transposed: bool = False) -> Value:
        """What real numbers are multiplied with for both parts of the result, side by side."""
        return self._kept("of_real", transposed, lambda: self.g.op("Concat", self.cos(), self.sin(), axis=1))

    def of_imaginary(self, transposed: bool = False) -> Value:
        """What imaginary parts are multiplied with."""
        return self._kept("of_imaginary", transposed, lambda: self.g.op("Concat", self.g.op("Neg", self.sin()), self.cos(), axis=1))

    def _kept(self, name: str, transposed: bool, make: Callable[[], Value]) -> Value:
        """Constants stand in the file once, whichever transforms use them."""
        def whole() -> Value:
            return self.g.op("Transpose", make(), perm=[1, 0]) if transposed else make()

        if not self._is_fixed():
            return whole()
        return self.g.once((name, transposed, self.dtype, self.n, self.shape, self.sign, self.scale, self.twice), whole)

    def _is_fixed(self) -> bool:
        return dims.is_static([self.n, *self.shape]) and not isinstance(self.scale, Value)

    def _wave(self, function: str) -> Value:
        if not self._is_fixed():
            return self._computed(function)
        dtype = to_torch(self.dtype)
        shape = tuple([int(size) for size in self.shape if isinstance(size, int)])
        return folding.lazily(self.g, lambda: self._fixed(function).to(dtype), dtype, shape, [])

    def _fixed(self, function: str) -> torch.Tensor:
        (rows, columns), n = self.shape, self.n
        assert isinstance(rows, int) and isinstance(columns, int) and isinstance(n, int) and not isinstance(self.scale, Value)
        t = torch.arange(rows)
        steps = t[:, None] * torch.arange(columns) % n
        angle = steps.double() * (2 * math.pi / n)
        # Half a turn has no sine: real numbers have real sums there, whose angle is pi and not now and then -pi.
        made = (angle.cos() if function == "Cos" else angle.sin().masked_fill(2 * steps % n == 0, 0.0)) * self.scale
        if self.twice:
            made[(t > 0) & (2 * t != n)] *= 2
        return made

    def _computed(self, function: str) -> Value:
        """The same in the graph. Whole turns are taken off while the numbers are whole, so that the angle is exact."""
        g, dtype, n = self.g, self.dtype, self.g.scalar(self.n)
        t = g.op("Unsqueeze", _numbers(g, self.shape[0]), g.const([1]))
        turns = cast(g, g.op("Mod", g.op("Mul", t, _numbers(g, self.shape[1])), n), dtype)
        angle = g.op("Mul", turns, g.op("Div", tensor(g, 2 * math.pi, dtype), cast(g, n, dtype)))
        made = g.op("Mul", g.op(function, angle), tensor(g, self.scale, dtype))
        if not self.twice:
            return made
        alone = g.op("Or", g.op("Equal", t, g.scalar(0)), g.op("Equal", g.op("Mul", t, g.scalar(2)), n))
        return g.op("Mul", made, g.op("Where", alone, tensor(g, 1, dtype), tensor(g, 2, dtype)))


def _numbers(g: Builder, count: Size) -> Value:
    """0, 1, ... below `count`. Below opset 11, where ONNX has no Range, its size would not be known."""
    made = creation.arange(g, count)
    made.shape = (count,)
    return made


# ---------------------------------------------------------------------- long ones


def _is_long(n: int) -> bool:
    return n > _WHOLE and (n > _PRIME or _divisor(n) > 1)


def _divisor(n: int) -> int:
    """The greatest one up to the root."""
    return next(a for a in range(math.isqrt(n), 0, -1) if n % a == 0)


def _long(g: Builder, z: Pair, axis: int, n: int, sign: int, scale: float, count: Size) -> Complex:
    """As `transformed`, along the last axis and back."""
    last = rank_of(z[0]) - 1
    if axis != last:
        moved = [None if part is None else layout.movedim(g, part, axis, last) for part in z]
        assert moved[0] is not None
        made = _long(g, (moved[0], moved[1]), last, n, sign, scale, count)
        return on_both(made, lambda part: layout.movedim(g, part, last, axis))
    first = _divisor(n)
    made = _in_two(g, z, first, n // first, sign, scale) if first > 1 else _convolved(g, z, n, sign, scale)
    return on_both(made, lambda part: sliced(g, part, last, 0, count))


def _in_two(g: Builder, z: Pair, a: int, b: int, sign: int, scale: float) -> Complex:
    """The place b t + u and the frequency k + a l: transforms of the length a over t, a turn by k u / ab, and those of the length b over u."""
    shape, rank = shape_of(z[0])[:-1], rank_of(z[0])
    re, im = (None if part is None else reshape(g, part, [*shape, a, b]) for part in z)
    assert re is not None
    inner = transformed(g, (re, im), rank - 1, a, sign, scale)
    turns = Waves(g, re, a * b, (a, b), sign, 1.0)
    outer = _times(g, inner, Complex(turns.cos(), turns.sin()))
    made = transformed(g, (outer.re, outer.im), rank, b, sign)
    return on_both(made, lambda part: reshape(g, layout.transpose(g, part, -2, -1), [*shape, a * b]))


def _convolved(g: Builder, z: Pair, n: int, sign: int, scale: float) -> Complex:
    """kt = (k^2 + t^2 - (k - t)^2) / 2 makes it a convolution with a chirp, which is done at the next power of two that holds it."""
    size = 1 << (2 * n - 2).bit_length()
    re, im = z
    assert re.dtype is not None
    kind = to_torch(re.dtype).to_complex()
    chirp = g.once(("chirp", n, sign, kind), lambda: g.constant(_chirp(n, sign).to(kind)))
    kernel = g.once(("chirp's spectrum", n, sign, kind, scale), lambda: g.constant(_chirp_spectrum(n, sign, size, scale).to(kind)))
    last = rank_of(re) - 1
    risen = _times(g, Complex(re, zeros(g, re) if im is None else im), chirp)
    spectrum = transformed(g, (resized(g, risen.re, last, size), resized(g, risen.im, last, size)), last, size, -1)
    filtered = _times(g, spectrum, kernel)
    return _times(g, transformed(g, (filtered.re, filtered.im), last, size, 1, count=n), chirp)


def _chirp(n: int, sign: int) -> torch.Tensor:
    t = torch.arange(n)
    return torch.polar(torch.ones(n, dtype=torch.float64), (t * t % (2 * n)).double() * (sign * math.pi / n))


def _chirp_spectrum(n: int, sign: int, size: int, scale: float) -> torch.Tensor:
    chirp = _chirp(n, sign).conj()
    around = torch.zeros(size, dtype=torch.complex128)
    around[:n] = chirp
    around[size - n + 1:] = chirp[1:].flip(0)
    return torch.fft.fft(around) * (scale / size)


def _times(g: Builder, a: Complex, b: Value) -> Complex:
    made = multilinear(g, arithmetic.mul, ("self", "other"), {"self": a, "other": b})
    assert isinstance(made, Complex)
    return made
