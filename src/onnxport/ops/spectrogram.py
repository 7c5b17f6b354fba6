"""Short-time Fourier transforms and back.

A frame's transform is a sum of products with fixed waves, so all frames together are a convolution with the waves as kernels, and the way
back is a transposed one. Long frames are cut out and transformed (`ops/dft.py`), which takes fewer products.
"""

from __future__ import annotations

from onnxport import errors
from onnxport.ops import creation, dft, layout, padding
from onnxport.ops.complex_parts import on_both, parts_of
from onnxport.ops.pieces import parts, sliced
from onnxport.ops.registry import aten, of_complex
from onnxport.ops.support import cast, rank_of, shape_of
from onnxport.target import dims, pairs
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import reshape, squeeze, unsqueeze
from onnxport.target.value import Complex, DataType, Value

_LONG = 512  # points from which on a frame is transformed by itself
_MOST_PIECES = 16  # into which a frame is cut to be added to its neighbours


@of_complex("stft")
@aten
def stft(g: Builder, self: Value, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Value | None = None,
         normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None) -> Value:
    """stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False,
    bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor; [batch, frequencies, frames]. ONNX Conv.
    """
    if align_to_window:
        raise errors.UnsupportedError("stft with align_to_window=True")
    onesided = not isinstance(self, Complex) if onesided is None else onesided
    x = self if rank_of(self) == 2 else _unsqueezed(g, self)
    z = parts_of(g, x)
    frames = _Frames(g, z[0].dtype, n_fft, hop_length, win_length, window)
    made = frames.taken(z, n_fft // 2 + 1 if onesided else n_fft, n_fft**-0.5 if normalized else 1.0)
    if rank_of(self) == 1:
        made = on_both(made, lambda part: squeeze(g, part, [0]))
    return pairs.packed(g, made) if return_complex is False or (return_complex is None and not isinstance(self, Complex)) else made


@of_complex("stft.center")
@aten("stft.center")
def stft_centered(g: Builder, self: Value, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Value | None = None,
                  center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
                  return_complex: bool | None = None, align_to_window: bool | None = None) -> Value:
    """stft.center(Tensor self, int n_fft, ..., bool center=True, str pad_mode="reflect", ...) -> Tensor; padded by half a frame on both sides."""
    x = _padded(g, self, n_fft // 2, pad_mode) if center else self
    return stft(g, x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


def _padded(g: Builder, x: Value, width: int, mode: str) -> Value:
    if isinstance(x, Complex):
        return on_both(x, lambda part: _padded(g, part, width, mode))
    rank = rank_of(x)
    return squeeze(g, padding.pad(g, unsqueeze(g, x, list(range(3 - rank))), [width, width], mode), list(range(3 - rank)))


def _unsqueezed(g: Builder, x: Value) -> Value:
    return on_both(x, lambda part: unsqueeze(g, part, [0])) if isinstance(x, Complex) else unsqueeze(g, x, [0])


@of_complex("istft")
def istft(g: Builder, self: Complex, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Value | None = None,
          center: bool = True, normalized: bool = False, onesided: bool | None = None, length: Size | None = None,
          return_complex: bool = False) -> Value:
    """istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False,
    bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor; [batch, samples]. ONNX ConvTranspose, Div.
    """
    rows = shape_of(self)[-2]  # may be dynamic by name, but only one number of them is possible
    onesided = dims.evaluate(rows, g.hints) != n_fft if onesided is None else onesided
    z = self if rank_of(self) == 3 else on_both(self, lambda part: unsqueeze(g, part, [0]))
    if not onesided and not return_complex:  # a real signal is in the first half
        onesided, z = True, on_both(z, lambda part: sliced(g, part, 1, 0, n_fft // 2 + 1))
    frames = _Frames(g, z.re.dtype, n_fft, hop_length, win_length, window)
    scale = n_fft**-0.5 if normalized else 1 / n_fft
    window_sum = _within(g, frames.weights(shape_of(z)[-1]), n_fft, center, length)
    made = [_within(g, frames.added(part, onesided, scale), n_fft, center, length) for part in ((z, _turned(g, z)) if return_complex else (z,))]
    made = [g.op("Div", signal, window_sum) for signal in made]
    made = [signal if length is None else dft.resized(g, signal, 1, length) for signal in made]
    made = [signal if rank_of(self) == 3 else squeeze(g, signal, [0]) for signal in made]
    return Complex(made[0], made[1]) if return_complex else made[0]


def _turned(g: Builder, z: Complex) -> Complex:
    """z / i, whose real part is the imaginary one of z."""
    return Complex(z.im, g.op("Neg", z.re))


def _within(g: Builder, x: Value, n_fft: int, center: bool, length: Size | None) -> Value:
    """Without the halves of a frame that were padded, and no longer than `length`."""
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else -start if start else None
    return sliced(g, x, 1, start, end)


class _Frames:
    """How a signal is cut into frames: n samples, `hop` apart, each times the window."""

    def __init__(self, g: Builder, dtype: DataType | None, n: int, hop: int | None, width: int | None, window: Value | None):
        assert dtype is not None
        self.g, self.dtype, self.n = g, dtype, n
        self.hop = n // 4 if hop is None else hop
        self.window = self._centered(n if width is None else width, window)

    def _centered(self, width: int, window: Value | None) -> Value | None:
        """The window with zeros on both sides; None for one of ones."""
        if isinstance(window, Complex):
            raise errors.UnsupportedError("a complex window; multiply the frames with it (x.unfold) and use torch.fft.fft")
        if window is None and width == self.n:
            return None
        window = self.g.const([1.0] * width, self.dtype) if window is None else cast(self.g, window, self.dtype)
        left = (self.n - width) // 2
        return window if width == self.n else padding.constant_pad_nd(self.g, window, [left, self.n - width - left])

    def taken(self, z: dft.Pair, count: int, scale: float) -> Complex:
        """The first `count` frequencies of every frame of a signal [batch, samples]: [batch, frequencies, frames]."""
        if self.n > _LONG:
            return self._each_taken(z, count, scale)
        waves = dft.Waves(self.g, z[0], self.n, (self.n, count), -1, scale)
        made = self._convolved(z[0], waves.of_real)
        if z[1] is not None:
            made = self.g.op("Add", made, self._convolved(z[1], waves.of_imaginary))
        both = parts(self.g, made, 1, [count, count])
        return Complex(both[0], both[1])

    def _convolved(self, x: Value, waves: dft.Matrix) -> Value:
        kernel = self._windowed(waves(True))
        return self.g.op("Conv", unsqueeze(self.g, x, [1]), unsqueeze(self.g, kernel, [1]), strides=[self.hop], kernel_shape=[self.n])

    def _windowed(self, x: Value) -> Value:
        return x if self.window is None else self.g.op("Mul", x, self.window)

    def _each_taken(self, z: dft.Pair, count: int, scale: float) -> Complex:
        cut = [None if part is None else self._windowed(layout.unfold(self.g, part, -1, self.n, self.hop)) for part in z]
        assert cut[0] is not None
        made = dft.transformed(self.g, (cut[0], cut[1]), 2, self.n, -1, scale, count)
        return on_both(made, lambda part: layout.transpose(self.g, part, 1, 2))

    def added(self, z: Complex, onesided: bool, scale: float) -> Value:
        """The signal [batch, samples] that the real parts of the frames behind z [batch, frequencies, frames] add up to, each times the window."""
        if self.n > _LONG and onesided and self._is_even():
            frames = dft.real_from_half(self.g, on_both(z, lambda part: layout.transpose(self.g, part, 1, 2)), 2, self.n, scale)
            return self._overlapped(self._windowed(frames))
        waves = dft.Waves(self.g, z.re, self.n, (self.n // 2 + 1 if onesided else self.n, self.n), 1, scale, twice=onesided)
        kernel = self._windowed(self.g.op("Concat", waves.cos(), self.g.op("Neg", waves.sin()), axis=0))
        return self._spread(self.g.op("Concat", z.re, z.im, axis=1), kernel)

    def weights(self, count: Size) -> Value:
        """What the squares of the windows of `count` frames add up to: [1, samples]."""
        g = self.g
        window = g.const([1.0] * self.n, self.dtype) if self.window is None else self.window
        return self._spread(creation.filled(g, [1, 1, count], 1.0, self.dtype), unsqueeze(g, g.op("Mul", window, window), [0]))

    def _spread(self, x: Value, kernel: Value) -> Value:
        made = self.g.op("ConvTranspose", x, unsqueeze(self.g, kernel, [1]), strides=[self.hop], kernel_shape=[self.n])
        return squeeze(self.g, made, [1])

    def _is_even(self) -> bool:
        return self.n % self.hop == 0 and self.n // self.hop <= _MOST_PIECES

    def _overlapped(self, frames: Value) -> Value:
        """Frames [batch, frames, n] added where they lie: as many signals as a frame has hops, each of pieces that lie side by side."""
        g, count = self.g, self.n // self.hop
        batch, number, _ = shape_of(frames)
        total: Value | None = None
        for place, piece in enumerate(parts(g, frames, 2, [self.hop] * count)):
            row = reshape(g, piece, [batch, number * self.hop])
            moved = padding.constant_pad_nd(g, row, [place * self.hop, (count - 1 - place) * self.hop])
            total = moved if total is None else g.op("Add", total, moved)
        assert total is not None
        return total
