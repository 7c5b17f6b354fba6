"""torch.fft, torch.stft and torch.istft: lengths, axes, norms, dynamic sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fft

from tests.ops.harness import Case, check, expand

torch.manual_seed(0)
OPSETS = (9, 13, 17, 20, 28)
BOTH = (9, 13, 17, 18, 20, 28)  # at 18 through torch.export too
FEW = (9, 28)
NORMS = (None, "ortho", "forward")
X, Y = torch.randn(2, 3, 8), torch.randn(5, 2, 9)
Z, W = torch.randn(2, 3, 8, dtype=torch.complex64), torch.randn(5, 2, 9, dtype=torch.complex64)
BATCH = {0: {0: "b"}}


def normed(function: Callable[..., torch.Tensor], **more: Any) -> Callable[[torch.Tensor], list[torch.Tensor]]:
    """With each norm."""
    return lambda x: [function(x, norm=norm, **more) for norm in NORMS]


def lengths(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], list[torch.Tensor]]:
    """Cut off, as it is, with zeros behind, along several axes."""
    return lambda x: [function(x, n, dim=dim) for n in (None, 4, 5, 11) for dim in (-1, 1)]


def everywhere(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], list[torch.Tensor]]:
    """Along every axis."""
    return lambda x: [function(x, n, dim=dim) for n in (None, 5) for dim in (-1, 1, 0)]


def of_two(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], list[torch.Tensor]]:
    """Two axes, others, three."""
    return lambda x: [function(x), function(x, (4, 5)), function(x, dim=(0, 1)), function(x, (6, -1), (2, 0), "ortho"), function(x, norm="forward")]


def of_all(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], list[torch.Tensor]]:
    """All axes, the last ones, others."""
    return lambda x: [function(x), function(x, (4, 5)), function(x, dim=(0, 1)), function(x, dim=(1,)), function(x, norm="ortho")]


ONE = [
    *[Case(f"{name}_norms", normed(getattr(fft, name)), (x,), [(y,)], "all", OPSETS) for name, x, y in (
        ("fft", Z, W), ("ifft", Z, W), ("rfft", X, Y), ("irfft", Z, W), ("hfft", Z, W), ("ihfft", X, Y))],
    *[Case(f"{name}_lengths", lengths(getattr(fft, name)), (x,), [(torch.randn(4, 3, 8, dtype=x.dtype),)], BATCH, OPSETS) for name, x in (
        ("fft", Z), ("ifft", Z), ("rfft", X), ("irfft", Z), ("hfft", Z), ("ihfft", X))],
    *[Case(f"{name}_all_dynamic", everywhere(getattr(fft, name)), (x,), [(y,)], "all", (13, 28))
      for name, x, y in (("fft", Z, W), ("rfft", X, Y), ("irfft", Z, W), ("ihfft", X, Y))],
    Case("fft_of_real", lambda x: (fft.fft(x), fft.ifft(x), fft.irfft(x), fft.hfft(x), fft.fft((x * 9).long())), (X,), [(Y,)], "all", BOTH),
    *[Case(f"rfft_half_turn_{x.shape[1]}", lambda x: fft.rfft(x)[:, [0, -1]].angle(), (x,), [(y,)], BATCH, FEW) for x, y in (
        (torch.randn(9, 16), torch.randn(20, 16)), (torch.randn(9, 512), torch.randn(20, 512)))],
    Case("fft_double", lambda x: (fft.fft(x), fft.irfft(fft.rfft(x))), (X.double(),), [(Y[..., :6].double(),)], "all", FEW, rtol=1e-9, atol=1e-9),
    Case("rfft_back", lambda x: fft.irfft(fft.rfft(x), n=x.shape[-1]), (torch.randn(2, 9),), [(torch.randn(3, 8),), (torch.randn(3, 1),)], "all", (13, 28)),
]

LONG = [
    Case("long", lambda x: (fft.fft(x), fft.ifft(x), fft.rfft(x), fft.irfft(fft.rfft(x))), (torch.randn(2, 1200),), [(torch.randn(3, 1200),)], BATCH, FEW, atol=2e-4),
    Case("long_twice", lambda x: fft.fft(x), (torch.randn(1, 600 * 600),), opsets=(28,), atol=2e-3),
    Case("long_prime", lambda x: (fft.fft(x), fft.ifft(x), fft.rfft(x, dim=1), fft.irfft(fft.rfft(x), 1031)), (torch.randn(2, 1031),), [(torch.randn(3, 1031),)], BATCH, FEW,
         atol=2e-4),
    Case("prime", lambda x: (fft.fft(x), fft.irfft(fft.rfft(x), 257)), (torch.randn(2, 257),), opsets=(28,), atol=1e-4),
    Case("long_prime_factor", lambda x: fft.fft(x), (torch.randn(2, 2 * 1033, dtype=torch.complex64),), opsets=(28,), atol=5e-4),
    Case("long_first_axis", lambda x: (fft.fft(x, dim=0), fft.irfft(x, dim=0)), (torch.randn(800, 3, dtype=torch.complex64),), opsets=(28,), atol=5e-4),
]

SEVERAL = [
    *[Case(f"{name}2", of_two(getattr(fft, f"{name}2")), (x,),
           [(torch.randn(4, 3, 8, dtype=x.dtype),)], {0: {0: "b"}}, OPSETS) for name, x in (
               ("fft", Z), ("ifft", Z), ("rfft", X), ("irfft", Z), ("hfft", Z), ("ihfft", X))],
    *[Case(f"{name}n", of_all(getattr(fft, f"{name}n")), (x,),
           [(torch.randn(4, 3, 8, dtype=x.dtype),)], {0: {0: "b"}}, FEW) for name, x in (
               ("fft", Z), ("ifft", Z), ("rfft", X), ("irfft", Z), ("hfft", Z), ("ihfft", X))],
    Case("fft2_dynamic", lambda x: (fft.fft2(x).real, fft.irfft2(fft.rfft2(x), s=x.shape[-2:])), (X,), [(Y,)], "all", (13, 28)),
    Case("shifts", lambda x: (fft.fftshift(x), fft.ifftshift(x), fft.fftshift(x, 1), fft.ifftshift(x, (0, 2)), fft.fftshift(x.real)), (Z,), [(W,)], "all", BOTH,
         {9: "needs opset 10"}),
    Case("frequencies", lambda x: (fft.fftfreq(8), fft.rfftfreq(9, 0.1), x * fft.fftfreq(x.shape[-1], 0.5), fft.rfftfreq(x.shape[-1])), (X,), [(Y,)], "all", FEW),
    Case("convolution", lambda x, k: fft.irfft(fft.rfft(x, 16) * fft.rfft(k, 16), 16), (X, torch.randn(3)), [(torch.randn(4, 3, 8), torch.randn(3))], BATCH, FEW),
]

HANN = torch.hann_window(16) + 0.1
S, T = torch.randn(2, 64), torch.randn(3, 101)


def spectrum(x: torch.Tensor, n: int = 16, hop: int = 4, **more: Any) -> torch.Tensor:
    """stft with a window."""
    more.setdefault("window", HANN)
    return torch.stft(x, n, hop, return_complex=True, **more)


STFT = [
    Case("stft", lambda x: (spectrum(x), spectrum(x, normalized=True), spectrum(x, onesided=False), spectrum(x, center=False), spectrum(x[0])), (S,), [(T,)], "all", BOTH),
    Case("stft_modes", lambda x: [spectrum(x, pad_mode=mode) for mode in ("constant", "replicate", "circular")], (S,), [(T,)], "all", FEW),
    Case("stft_windows", lambda x: (spectrum(x, window=None, win_length=16), spectrum(x, window=None, win_length=12), spectrum(x, win_length=11, window=HANN[:11]),
                                    spectrum(x, 15, 5, window=HANN[1:]), torch.stft(x, 16, window=HANN, return_complex=True).abs()), (S,), [(T,)], "all", FEW),
    Case("stft_window_given", lambda x, w: spectrum(x, window=w), (S, HANN), [(T, torch.rand(16))], {0: {0: "b", 1: "t"}}, FEW),
    Case("stft_complex", lambda x: (spectrum(x), spectrum(x, center=False)), (torch.complex(S, S.flip(1)),), [(torch.complex(T, T.flip(1)),)], "all", FEW),
    Case("stft_long", lambda x: torch.stft(x, 2048, 512, window=torch.hann_window(2048), return_complex=True), (torch.randn(1, 5000),), [(torch.randn(2, 6001),)], "all",
         (13, 28), atol=1e-3),
    Case("mel", lambda x: torch.log(spectrum(x).abs().square().mT @ torch.linspace(0, 1, 27).reshape(9, 3) + 1e-5), (S,), [(T,)], "all", FEW),
]


def back(**more: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """A spectrum that is changed, and its signal."""
    forth = {name: value for name, value in more.items() if name in ("center", "normalized", "onesided")}
    return lambda x: torch.istft(spectrum(x, **forth) * torch.tensor([0.5 + 0.5j]), 16, 4, window=HANN, **more)


ISTFT = [
    Case("istft", lambda x: (back()(x), back(normalized=True)(x), back(onesided=False)(x), back(center=False)(x), back()(x[0])), (S,), [(T,)], "all", BOTH),
    Case("istft_lengths", lambda x: (back(length=40)(x), back(length=64)(x), back(length=90)(x), back(length=x.shape[-1])(x)), (S,), [(T[:, :80],)], "all", FEW,
         {9: "need opset_version=11"}),
    Case("istft_windows", lambda z: (torch.istft(z, 16, 4), torch.istft(z, 16, 5, window=HANN), torch.istft(z, 16, 4, 12, HANN[:12])),
         (torch.randn(2, 9, 7, dtype=torch.complex64),), [(torch.randn(3, 9, 12, dtype=torch.complex64),)], {0: {0: "b", 2: "t"}}, BOTH),
    Case("istft_complex", lambda z: torch.istft(z, 16, 4, window=HANN, onesided=False, return_complex=True), (torch.randn(2, 16, 7, dtype=torch.complex64),),
         [(torch.randn(3, 16, 12, dtype=torch.complex64),)], {0: {0: "b", 2: "t"}}, FEW),
    Case("istft_long", lambda z: (torch.istft(z, 2048, 512, window=torch.hann_window(2048)), torch.istft(z, 2048, 600, window=torch.hann_window(2048))),
         (torch.randn(1, 1025, 4, dtype=torch.complex64),), [(torch.randn(2, 1025, 6, dtype=torch.complex64),)], {0: {0: "b", 2: "t"}}, (13, 28), atol=1e-4),
]


@expand([*ONE, *LONG, *SEVERAL, *STFT, *ISTFT])
def test_fourier(case: Case, opset: int) -> None:
    check(case, opset)
