"""Models with complex numbers: weights, inputs, outputs, scripts, functions, through both captures and at other sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import onnxport
from onnxport import errors

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
quiet = pytest.mark.filterwarnings("ignore::onnxport.errors.ComplexWarning", "ignore::onnxport.errors.GuardWarning")


def checked(model: nn.Module, args: tuple[Any, ...], axes: Any = None, opset: int = 18, **options: Any) -> onnxport.ONNXProgram:
    """Exported, and held against PyTorch at all sizes."""
    names = options.pop("input_names", ["x"])
    program = onnxport.export(model.eval(), args, opset_version=opset, input_names=names, dynamic_axes=axes, **options)
    assert program.verify(rtol=1e-3).passed
    return program


class Rotary(nn.Module):
    """Rotary embeddings by a complex buffer."""

    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(64), 1 / 10000 ** (torch.arange(0, 8, 2) / 8))
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles))
        self.q, self.k = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        def turned(y: Tensor) -> Tensor:
            z = torch.view_as_complex(y.float().reshape(*y.shape[:-1], -1, 2)) * self.freqs_cis[: x.shape[1]].view(1, x.shape[1], 1, 4)
            return torch.view_as_real(z).flatten(3)

        q, k = (turned(layer(x).view(*x.shape[:2], 2, 8)) for layer in (self.q, self.k))
        return torch.einsum("bqhd,bkhd->bhqk", q, k)


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: complex weights for the lowest frequencies."""

    def __init__(self, channels: int = 4, modes: int = 3) -> None:
        super().__init__()
        self.modes = modes
        self.low, self.high = (nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.cfloat)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        m, (b, c, h, w) = self.modes, x.shape
        z = torch.fft.rfft2(x)
        out = torch.zeros(b, c, h, w // 2 + 1, dtype=torch.cfloat)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", z[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", z[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=(h, w))


class Vocoder(nn.Module):
    """Lengths and angles to sound."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(12, 66)
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x: Tensor) -> Tensor:
        length, angle = self.out(x).transpose(1, 2).chunk(2, 1)
        spectrum = length.exp().clip(max=100) * (angle.cos() + 1j * angle.sin())
        return torch.istft(spectrum, 64, 16, 64, self.window)


class Mel(nn.Module):
    """The front end of a speech model."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        self.register_buffer("filters", torch.rand(20, 201))

    def forward(self, x: Tensor) -> Tensor:
        power = torch.stft(x, 400, 160, window=self.window, return_complex=True)[..., :-1].abs() ** 2
        decibels = torch.clamp(self.filters @ power, min=1e-10).log10()
        return (torch.maximum(decibels, decibels.max() - 8) + 4) / 4


MODELS: dict[str, tuple[Any, tuple[int, ...], dict[int, str]]] = {
    "rotary": (Rotary, (2, 6, 16), {0: "b", 1: "n"}), "spectral": (Spectral, (2, 4, 12, 10), {0: "b"}), "vocoder": (Vocoder, (2, 9, 12), {0: "b", 1: "t"}),
    "mel": (Mel, (2, 1600), {0: "b", 1: "t"}),
}


@quiet
@BOTH
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, capture: str) -> None:
    make, shape, axes = MODELS[name]
    checked(make(), (torch.randn(shape),), {"x": axes}, capture=capture)


@quiet
def test_old_opsets() -> None:
    checked(Spectral(), (torch.randn(2, 4, 12, 10),), {"x": {0: "b"}}, opset=9)
    checked(Vocoder(), (torch.randn(2, 9, 12),), {"x": {0: "b", 1: "t"}}, opset=9)


class Filter(nn.Module):
    """Complex numbers in, out and between."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, dtype=torch.cfloat))

    def forward(self, z: Tensor) -> Tensor:
        return torch.fft.ifft(z) * self.weight


@BOTH
def test_complex_at_the_border(capture: str) -> None:
    """Named in one warning; the file has pairs, and takes complex tensors as such."""
    z = torch.randn(3, 4, dtype=torch.cfloat)
    with pytest.warns(errors.ComplexWarning, match=r"'z', 'out': .*torch.view_as_real") as caught:
        program = onnxport.export(Filter(), (z,), opset_version=18, input_names=["z"], output_names=["out"], dynamic_axes={"z": {0: "n"}}, capture=capture)
    assert len([w for w in caught if w.category is errors.ComplexWarning]) == 1
    assert [list(map(str, value.shape)) for value in (*program.model.graph.inputs, *program.model.graph.outputs)] == [["n", "4", "2"]] * 2
    torch.testing.assert_close(torch.view_as_complex(program(z)[0]), Filter.forward(program.source, z))
    assert program.verify().passed


@quiet
@pytest.mark.parametrize("options", [{"export_params": False}, {"do_constant_folding": False}, {"keep_initializers_as_inputs": True}, {"opset_version": 9}])
def test_complex_weights(options: dict[str, Any]) -> None:
    z = torch.randn(3, 4, dtype=torch.cfloat)
    assert onnxport.export(Filter(), (z,), **{"opset_version": 18, **options}).verify().passed


def test_parts_of_a_weight_are_views_of_it() -> None:
    """No weight is copied."""
    model = Filter()
    program = onnxport.export(nn.Sequential(model, Lengths()), (torch.randn(3, 4, dtype=torch.cfloat),), opset_version=18)
    parts = [value.const_value for value in program.model.graph.initializers.values() if "weight" in (value.name or "")]
    assert [part.name for part in parts] == ["0.weight.real", "0.weight.imag"]
    pointers = [part.constant.tensor.untyped_storage().data_ptr() for part in parts]  # type: ignore[union-attr]
    assert pointers == [model.weight.untyped_storage().data_ptr()] * 2


class Lengths(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return z.abs()


@quiet
def test_modules_as_functions() -> None:
    """What goes in and out of a function are the parts."""
    program = checked(nn.Sequential(Filter(), Filter(), Lengths()), (torch.randn(3, 4, dtype=torch.cfloat),), {"x": {0: "n"}},
                      export_modules_as_functions={Filter})
    assert [(f.name, len(f.inputs), len(f.outputs)) for f in program.model.functions.values()] == [("Filter", 5, 2)]


class Scripted(nn.Module):
    """A branch, a loop and a question."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, Tensor]:
        z = torch.view_as_complex(x)
        z = z * 2j if bool(x.sum() > 0) else z + 1
        for _ in range(n):
            z = z * z.conj() * 0.5 + 0.1j
        y = x
        if z.is_complex():
            y = y + 1
        return z.abs(), y


@quiet
def test_scripts() -> None:
    for sign in (1, -1):
        program = checked(torch.jit.script(Scripted()), (torch.rand(4, 2) * sign, 3), {"x": {0: "n"}}, input_names=["x", "n"])
    for x in (torch.rand(5, 2), -torch.rand(3, 2)):
        for count in (0, 1, 4):
            for got, want in zip(program(x, count), Scripted()(x, count), strict=True):
                torch.testing.assert_close(got, want)


@quiet
def test_updated_buffers() -> None:
    class Running(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("sum", torch.zeros(3, dtype=torch.cfloat))

        def forward(self, x: Tensor) -> Tensor:
            self.sum += torch.fft.fft(x)
            return self.sum.abs()

    program = checked(Running(), (torch.randn(3),), mutations="outputs")
    assert program.output_names == ["output", "sum_updated"]


def test_programs_that_are_decomposed() -> None:
    """`_fft_r2c`, `_fft_c2c`, `_fft_c2r` and `_neg_view` are what torch.export makes of them."""
    class Everything(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            z = torch.fft.rfft2(x)
            s = torch.stft(x[0], 8, 2, window=torch.hann_window(8), return_complex=True)
            return (torch.fft.irfft2(z * 2j, s=x.shape[-2:], norm="ortho"), s.abs(), torch.istft(s, 8, 2, window=torch.hann_window(8)),
                    torch.fft.hfft(z), torch.fft.ihfft(x).imag, torch.fft.fft(x.cfloat()).real)

    x = torch.randn(2, 6, 20)
    program = torch.export.export(Everything(), (x,)).run_decompositions()
    assert onnxport.export(program, (x,), opset_version=18).verify(model=Everything(), args=(x,)).passed


def test_transforms_of_one_length_share_their_matrices() -> None:
    class Mixing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(3):
                x = x + torch.fft.fftn(x, dim=(1, 2)).real
            return x

    program = checked(Mixing(), (torch.randn(2, 16, 32),), {"x": {0: "b"}})
    matrices = [value for value in program.model.graph.initializers.values() if value.const_value is not None and value.const_value.size > 16]
    assert len(matrices) == 3  # one for the real numbers along the last axis, two for the complex ones along the other


def test_an_operator_that_knows_no_complex_numbers_is_named() -> None:
    """Never numbers from the real part alone."""
    class Decomposed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.linalg.eigvalsh(torch.view_as_complex(x) @ torch.view_as_complex(x).mH)

    with pytest.raises(errors.UnsupportedError, match=r"(?s)eigh of complex numbers: .*torch\.view_as_real.*test_complex_models\.py"):
        onnxport.export(Decomposed(), (torch.randn(3, 3, 2),), opset_version=18)
