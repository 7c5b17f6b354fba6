"""Random numbers and dropout: drawn anew at each run of the file, and as many as the sizes of that run ask for.

ONNX Runtime has no kernel for RandomUniform, RandomNormal, Multinomial and Bernoulli from opset 22 on. Dropout it runs
everywhere, and that is a coin: there, numbers are made of its throws, one for each binary digit. Its mask is always read:
ONNX Runtime takes a Dropout whose mask nobody reads out of the middle of a graph, also in training mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.ops.creation import filled
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, promoted, rank_of, shape_of, tensor
from onnxport.target import dims, kernels
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import from_torch, is_float
from onnxport.target.sizes import reshape, unsqueeze
from onnxport.target.value import DataType, Value

FLOAT, DOUBLE, INT64, BOOL = DataType.FLOAT, DataType.DOUBLE, DataType.INT64, DataType.BOOL


# ---------------------------------------------------------------------- what everything is drawn with


def uniform_numbers(g: Builder, sizes: Sequence[Size], dtype: Any, low: float = 0.0, high: float = 1.0) -> Value:
    """Numbers of `sizes`, evenly from low to high. ONNX RandomUniform(Like); from opset 22 Dropout, MatMul."""
    work = _drawn_dtype(dtype)
    if kernels.runs("RandomUniform", g.opset):
        return cast(g, _drawn(g, "RandomUniform", sizes, work, low=low, high=high), dtype)
    number = g.op("MatMul", _throws(g, sizes, work, 1), tensor(g, _digits(work, high - low), work))
    return cast(g, number if low == 0 else g.op("Add", number, tensor(g, low, work)), dtype)


def normal_numbers(g: Builder, sizes: Sequence[Size], dtype: Any, mean: float = 0.0, std: float = 1.0) -> Value:
    """Numbers of `sizes`, normally distributed. ONNX RandomNormal(Like); from opset 22 by the method of Box and Muller."""
    work = _drawn_dtype(dtype)
    if kernels.runs("RandomNormal", g.opset):
        return cast(g, _drawn(g, "RandomNormal", sizes, work, mean=mean, scale=std), dtype)
    throws, digits = _throws(g, sizes, work, 2), _digits(work, 1.0)
    nothing = [0.0] * len(digits)
    chance = g.op("Add", g.op("MatMul", throws, tensor(g, digits + nothing, work)), tensor(g, digits[-1] / 2, work))  # never 0
    angle = g.op("MatMul", throws, tensor(g, nothing + _digits(work, 2 * math.pi), work))
    radius = g.op("Sqrt", g.op("Mul", g.op("Log", chance), tensor(g, -2.0 * std * std, work)))
    number = g.op("Mul", radius, g.op("Cos", angle))
    return cast(g, number if mean == 0 else g.op("Add", number, tensor(g, mean, work)), dtype)


def coin(g: Builder, sizes: Sequence[Size], heads: float) -> Value:
    """BOOL of `sizes`, each true with probability `heads`. ONNX Dropout's mask; below opset 12 RandomUniform, Less."""
    if heads <= 0 or heads >= 1:
        return filled(g, sizes, heads >= 1, BOOL)
    if g.opset < 12:
        return g.op("Less", uniform_numbers(g, sizes, FLOAT), tensor(g, heads, FLOAT))
    return g.op("Dropout", filled(g, sizes, 1.0, FLOAT), tensor(g, 1.0 - heads, FLOAT), g.const(True), outputs=2)[1]


def _drawn(g: Builder, op_type: str, sizes: Sequence[Size], dtype: DataType, **parameters: Any) -> Value:
    if dims.is_static(sizes) and sizes:
        return g.op(op_type, shape=[int(str(s)) for s in sizes], dtype=dtype, **parameters)
    if not sizes:
        return reshape(g, g.op(op_type, shape=[1], dtype=dtype, **parameters), [])
    return g.op(f"{op_type}Like", filled(g, sizes, 0, FLOAT), dtype=dtype, **parameters)


def _drawn_dtype(dtype: Any) -> DataType:
    return DOUBLE if dtype == DOUBLE else FLOAT


def _digits(dtype: DataType, unit: float) -> list[float]:
    """What each throw is worth, so that all together are evenly between 0 and `unit`."""
    return [unit * 0.5 ** (place + 1) for place in range(24 if dtype == FLOAT else 52)]


def _throws(g: Builder, sizes: Sequence[Size], dtype: DataType, numbers: int) -> Value:
    """0 or 1, for each digit of each of `numbers` numbers."""
    return cast(g, coin(g, [*sizes, numbers * len(_digits(dtype, 1.0))], 0.5), dtype)


# ---------------------------------------------------------------------- distributions


def _float(dtype: torch.dtype | None) -> DataType:
    return from_torch(dtype or torch.get_default_dtype())


@aten("rand", fold=False)
def rand(g: Builder, size: Sequence[Size], dtype: torch.dtype | None = None) -> Value:
    """rand(SymInt[] size, *, ScalarType? dtype=None) -> Tensor. ONNX RandomUniform."""
    return uniform_numbers(g, size, _float(dtype))


@aten("randn", fold=False)
def randn(g: Builder, size: Sequence[Size], dtype: torch.dtype | None = None) -> Value:
    """randn(SymInt[] size, *, ScalarType? dtype=None) -> Tensor. ONNX RandomNormal."""
    return normal_numbers(g, size, _float(dtype))


@aten("rand_like", fold=False)
def rand_like(g: Builder, self: Value, dtype: torch.dtype | None = None) -> Value:
    """rand_like(Tensor self, *, ScalarType? dtype=None) -> Tensor. ONNX RandomUniform."""
    return uniform_numbers(g, shape_of(self), self.dtype if dtype is None else from_torch(dtype))


@aten("randn_like", fold=False)
def randn_like(g: Builder, self: Value, dtype: torch.dtype | None = None) -> Value:
    """randn_like(Tensor self, *, ScalarType? dtype=None) -> Tensor. ONNX RandomNormal."""
    return normal_numbers(g, shape_of(self), self.dtype if dtype is None else from_torch(dtype))


@aten("randint", fold=False)
def randint(g: Builder, high: Size, size: Sequence[Size], low: Size = 0, dtype: torch.dtype | None = torch.int64) -> Value:
    """randint(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long) -> Tensor; below high. ONNX RandomUniform, Cast, Add."""
    return whole_numbers(g, size, low, high, from_torch(dtype or torch.int64))


@aten("randint_like", fold=False)
def randint_like(g: Builder, self: Value, high: Any, low: Size = 0, dtype: torch.dtype | None = None) -> Value:
    """randint_like(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None) -> Tensor. ONNX RandomUniform, Cast, Add."""
    target = from_torch(dtype) if dtype is not None else self.dtype
    return whole_numbers(g, shape_of(self), low, g.size_of(high) if isinstance(high, Value) else high, target)


@aten("random", fold=False, also=("from",))
def random(g: Builder, self: Value, to: Size | None = None, **more: Size) -> Value:
    """random(Tensor self, int from, int? to) -> Tensor; whole numbers of the dtype of self. ONNX RandomUniform, Cast, Add."""
    if to is None:
        to = {DataType.FLOAT: 2**24 + 1, DOUBLE: 2**53 + 1, DataType.FLOAT16: 2**11 + 1, BOOL: 2, DataType.UINT8: 256, DataType.INT8: 128,
              DataType.INT16: 2**15, DataType.INT32: 2**31}.get(self.dtype, 2**62)  # type: ignore[arg-type]
    return whole_numbers(g, shape_of(self), more.get("from", 0), to, self.dtype)


def whole_numbers(g: Builder, sizes: Sequence[Size], low: Size, high: Size, dtype: Any) -> Value:
    """Whole numbers from low to below high, drawn in float64."""
    span = high - low
    if isinstance(span, int) and span < 2**24:
        drawn = uniform_numbers(g, sizes, DOUBLE, 0.0, float(span))
    else:
        drawn = g.op("Mul", uniform_numbers(g, sizes, DOUBLE), tensor(g, span, DOUBLE))
    number = g.op("Cast", drawn, to=INT64)
    return cast(g, number if isinstance(low, int) and low == 0 else g.op("Add", number, g.scalar(low)), dtype)


@aten("uniform", fold=False, also=("from",))
def uniform(g: Builder, self: Value, to: float = 1.0, **more: float) -> Value:
    """uniform(Tensor self, float from=0.0, float to=1.0) -> Tensor. ONNX RandomUniform."""
    return uniform_numbers(g, shape_of(self), self.dtype, more.get("from", 0.0), to)


@aten("normal", "normal_functional", fold=False)
def normal(g: Builder, mean: Value | Number = 0.0, std: Value | Number = 1.0, size: Sequence[Size] | None = None,
           dtype: torch.dtype | None = None, self: Value | None = None) -> Value:
    """normal(Tensor mean, Tensor std) -> Tensor

    Either may be a float, both with a size or a tensor to be like. ONNX RandomNormal, Mul, Add.
    """
    if not isinstance(mean, Value) and not isinstance(std, Value):
        if self is not None:
            return normal_numbers(g, shape_of(self), self.dtype, mean, std)
        return normal_numbers(g, size or [], _float(dtype), mean, std)
    tensors = [x for x in (mean, std) if isinstance(x, Value)]
    target = promoted(g, *tensors, floating=True)[0].dtype
    shape = shape_of(g.op("Add", *[cast(g, x, FLOAT) for x in tensors]) if len(tensors) == 2 else tensors[0])
    number = g.op("Mul", normal_numbers(g, shape, target), tensor(g, std, target)) if isinstance(std, Value) else (
        normal_numbers(g, shape, target, 0.0, std))
    return g.op("Add", number, tensor(g, mean, target))


@aten("log_normal", fold=False)
def log_normal(g: Builder, self: Value, mean: float = 1.0, std: float = 2.0) -> Value:
    """log_normal(Tensor self, float mean=1.0, float std=2.0) -> Tensor. ONNX RandomNormal, Exp."""
    return g.op("Exp", normal_numbers(g, shape_of(self), self.dtype, mean, std))


@aten("exponential", fold=False)
def exponential(g: Builder, self: Value, lambd: float = 1.0) -> Value:
    """exponential(Tensor self, float lambd=1.0) -> Tensor. ONNX RandomUniform, Sub, Log, Mul."""
    return g.op("Mul", _log_chance(g, self), tensor(g, -1.0 / lambd, self.dtype))


def _log_chance(g: Builder, like: Value) -> Value:
    """The logarithm of numbers evenly between 0, which is left out, and 1."""
    return g.op("Log", g.op("Sub", tensor(g, 1.0, like.dtype), uniform_numbers(g, shape_of(like), like.dtype)))


@aten("geometric", fold=False)
def geometric(g: Builder, self: Value, p: float) -> Value:
    """geometric(Tensor self, float p) -> Tensor; how many throws until the first success. ONNX RandomUniform, Sub, Log, Mul, Ceil, Max."""
    like = self if is_float(self.dtype) else cast(g, self, FLOAT)
    throws = g.op("Ceil", g.op("Mul", _log_chance(g, like), tensor(g, 1 / math.log1p(-p), like.dtype)))
    return cast(g, g.op("Max", throws, tensor(g, 1.0, like.dtype)), self.dtype)  # type: ignore[arg-type]


@aten("cauchy", fold=False)
def cauchy(g: Builder, self: Value, median: float = 0.0, sigma: float = 1.0) -> Value:
    """cauchy(Tensor self, float median=0.0, float sigma=1.0) -> Tensor. ONNX RandomUniform, Tan, Mul, Add."""
    angle = uniform_numbers(g, shape_of(self), self.dtype, -math.pi / 2, math.pi / 2)
    return g.op("Add", g.op("Mul", g.op("Tan", angle), tensor(g, sigma, self.dtype)), tensor(g, median, self.dtype))


@aten("bernoulli", fold=False)
def bernoulli(g: Builder, self: Value, p: Value | float | None = None) -> Value:
    """bernoulli(Tensor self) -> Tensor; 1 with the probability that self holds, or p. ONNX RandomUniform, Less, Cast; Dropout."""
    if isinstance(p, (int, float)):
        return cast(g, coin(g, shape_of(self), p), self.dtype)  # type: ignore[arg-type]
    chance = self if p is None else p
    chance = chance if chance.dtype in (FLOAT, DOUBLE) else cast(g, chance, FLOAT)
    return cast(g, g.op("Less", uniform_numbers(g, shape_of(self), chance.dtype), chance), self.dtype)  # type: ignore[arg-type]


@aten("multinomial", fold=False)
def multinomial(g: Builder, self: Value, num_samples: Size, replacement: bool = False) -> Value:
    """multinomial(Tensor self, SymInt num_samples, bool replacement=False) -> Tensor

    self (C,) or (B, C) -> int64 (num_samples,) or (B, num_samples). Without replacement the places of the largest quotients of
    probability and an exponential number. ONNX RandomUniform, Log, Div, TopK; with replacement ONNX Multinomial, and from
    opset 22 RandomUniform against the sums of the probabilities.
    """
    if not replacement:
        waiting = g.op("Neg", _log_chance(g, self))
        return g.op("TopK", g.op("Div", self, waiting), g.sizes([num_samples]), outputs=2, axis=-1)[1]
    if isinstance(num_samples, int) and kernels.runs("Multinomial", g.opset):
        rows = self if rank_of(self) == 2 else unsqueeze(g, self, [0])
        drawn = g.op("Multinomial", g.op("Log", cast(g, rows, FLOAT)), sample_size=num_samples, dtype=INT64)
        return drawn if rank_of(self) == 2 else reshape(g, drawn, [num_samples])
    if g.opset < 11:
        raise errors.UnsupportedError(f"multinomial of a dynamic number needs opset 11 or higher (opset_version={g.opset} was asked)")
    sums = g.op("CumSum", self, g.const(-1))
    chance = uniform_numbers(g, [*shape_of(self)[:-1], num_samples], self.dtype)
    total = g.op("Gather", sums, g.const([-1]), axis=rank_of(self) - 1)
    passed = g.op("LessOrEqual", unsqueeze(g, sums, [-2]), unsqueeze(g, g.op("Mul", chance, total), [-1]))
    return g.op("ReduceSum", g.op("Cast", passed, to=INT64), g.const([-1]), keepdims=0)


@aten("randperm", fold=False)
def randperm(g: Builder, n: Size, dtype: torch.dtype | None = torch.int64) -> Value:
    """randperm(SymInt n, *, ScalarType? dtype=long) -> Tensor; 0 ... n - 1 in random order. ONNX RandomUniform, TopK."""
    order = g.op("TopK", uniform_numbers(g, [n], FLOAT), g.sizes([n]), outputs=2, axis=-1)[1]
    return cast(g, order, from_torch(dtype or torch.int64))


# ---------------------------------------------------------------------- dropout


@aten("dropout", fold=False)
def dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    """dropout(Tensor input, float p, bool train) -> Tensor. ONNX Dropout, Where; below opset 12 RandomUniform, Less."""
    if not train or p == 0:
        return input
    if p == 1 or g.opset < 12:
        return _thinned(g, input, shape_of(input), p)
    kept, mask = g.op("Dropout", input, tensor(g, p, FLOAT), g.const(True), outputs=2)
    return g.op("Where", mask, kept, tensor(g, 0.0, input.dtype))


@aten("native_dropout", fold=False)
def native_dropout(g: Builder, input: Value, p: float, train: bool | None) -> tuple[Value, Value]:
    """native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor); the data and where it was kept. ONNX Dropout."""
    if train is False or p == 0:
        return input, filled(g, shape_of(input), True, BOOL)
    mask = coin(g, shape_of(input), 1 - p)
    return _masked(g, input, mask, p), mask


@aten("feature_dropout", fold=False)
def feature_dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    """feature_dropout(Tensor input, float p, bool train) -> Tensor; whole channels. ONNX Dropout of ones, Mul, Where."""
    return _thinned(g, input, _channels(input), p) if train and p else input


def _thinned(g: Builder, x: Value, sizes: Sequence[Size], p: float) -> Value:
    return g.op("Mul", x, tensor(g, 0.0, x.dtype)) if p == 1 else _masked(g, x, coin(g, sizes, 1 - p), p)


def _masked(g: Builder, x: Value, mask: Value, p: float) -> Value:
    """x / (1 - p) where the mask is true, else 0."""
    larger = x if p == 1 else g.op("Mul", x, tensor(g, 1 / (1 - p), x.dtype))
    return g.op("Where", mask, larger, tensor(g, 0.0, x.dtype))


def _channels(x: Value) -> list[Size]:
    """(N, C, 1, ...): one throw for each channel."""
    if rank_of(x) < 2:
        raise errors.UnsupportedError("feature dropout of fewer than two dims")
    return [*shape_of(x)[:2], *[1] * (rank_of(x) - 2)]


@aten("alpha_dropout", fold=False)
def alpha_dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    """alpha_dropout(Tensor input, float p, bool train) -> Tensor; keeps mean and variance of what SELU gives. ONNX Dropout, Where, Add."""
    return _alpha(g, input, shape_of(input), p) if train and p else input


@aten("feature_alpha_dropout", fold=False)
def feature_alpha_dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    """feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor; whole channels. ONNX Dropout, Where, Add."""
    return _alpha(g, input, _channels(input), p) if train and p else input


def _alpha(g: Builder, x: Value, sizes: Sequence[Size], p: float) -> Value:
    """a * x + a * alpha * p where it is kept, a * alpha * (p - 1) where not, so that mean 0 and variance 1 stay."""
    if p == 1:
        return g.op("Mul", x, tensor(g, 0.0, x.dtype))
    alpha = 1.7580993408473766
    a = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    kept = g.op("Add", g.op("Mul", x, tensor(g, a, x.dtype)), tensor(g, a * alpha * p, x.dtype))
    return g.op("Where", coin(g, sizes, 1 - p), kept, tensor(g, a * alpha * (p - 1), x.dtype))


# ---------------------------------------------------------------------- a leaky unit with a random slope


@aten("rrelu", fold=False)
def rrelu(g: Builder, self: Value, lower: Number = 0.125, upper: Number = 1 / 3, training: bool = False) -> Value:
    """rrelu(Tensor self, Scalar lower=0.125, Scalar upper=1/3, bool training=False) -> Tensor

    ONNX LeakyRelu; in training RandomUniform, Mul, Where.
    """
    if not training:
        return g.op("LeakyRelu", self, alpha=(lower + upper) / 2)
    slope = uniform_numbers(g, shape_of(self), self.dtype, float(lower), float(upper))
    return g.op("Where", g.op("Greater", self, tensor(g, 0.0, self.dtype)), self, g.op("Mul", self, slope))


__all__ = ["coin", "normal_numbers", "uniform_numbers"]
