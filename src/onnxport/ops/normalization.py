"""Normalisation over batches, instances, groups and layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from onnxport.ops.reduction import var
from onnxport.ops.registry import aten
from onnxport.ops.support import cast, rank_of, shape_of
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size, is_static
from onnxport.target.dtypes import to_torch
from onnxport.target.value import DataType, Value

_HALVES = frozenset({DataType.FLOAT16, DataType.BFLOAT16})


# ---------------------------------------------------------------------- pieces


def moments(g: Builder, x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """(x - mean, mean, variance) over `axes`, which stay as 1; the variance is the biased one. In the order that ONNX Runtime fuses."""
    over = g.const(list(axes))
    mean = g.op("ReduceMean", x, over, keepdims=1)
    centred = g.op("Sub", x, mean)
    variance = g.op("ReduceMean", g.op("Pow", centred, g.const(2.0, x.dtype)), over, keepdims=1)
    return centred, mean, variance


def deviation(g: Builder, variance: Value, eps: float) -> Value:
    """sqrt(variance + eps)."""
    return g.op("Sqrt", g.op("Add", variance, g.const(eps, variance.dtype)))


def along(g: Builder, vector: Value, rank: int, axis: int = 1) -> Value:
    """A vector of channels as (C, 1, ...), to broadcast against a tensor of `rank` dims at `axis`."""
    return sizes.reshape(g, vector, [-1, *[1] * (rank - axis - 1)]) if rank - axis - 1 else vector


def affine(g: Builder, x: Value, weight: Value | None, bias: Value | None, axis: int | None = 1) -> Value:
    """x * weight + bias, vectors at `axis` (None: they broadcast as they are)."""
    rank = rank_of(x)
    for op_type, v in (("Mul", weight), ("Add", bias)):
        if v is not None:
            x = g.op(op_type, x, cast(g, v if axis is None else along(g, v, rank, axis), x.dtype))  # type: ignore[arg-type]
    return x


def constant_or(g: Builder, value: Value | None, fill: float, shape: Sequence[Size], dtype: DataType) -> Value:
    """`value`, or a tensor of `fill`."""
    if value is not None:
        return value
    if is_static(shape):
        return g.const(torch.full(tuple(shape), fill, dtype=to_torch(dtype)))  # type: ignore[arg-type]
    return sizes.expand(g, g.const(fill, dtype), shape)


def reshape_like(g: Builder, x: Value, other: Value) -> Value:
    """`x` with the shape of `other`: one Shape node where more than one size is dynamic."""
    shape = shape_of(other)
    unknown = [i for i, s in enumerate(shape) if not isinstance(s, int) and not (i < rank_of(x) and dims.equal(s, shape_of(x)[i]))]
    if len(unknown) <= 1:
        return sizes.reshape(g, x, list(shape))
    result: Value = g.op("Reshape", x, g.op("Shape", other))
    result.shape = shape
    return result


# ---------------------------------------------------------------------- over the batch


@aten
def batch_norm(g: Builder, input: Value, weight: Value | None, bias: Value | None, running_mean: Value | None, running_var: Value | None,
               training: bool, momentum: float, eps: float) -> Value:
    """batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum,
    float eps, bool cudnn_enabled) -> Tensor

    (N, C, *). ONNX BatchNormalization; with the batch's own statistics ReduceMean and what follows.
    """
    if not training and running_mean is not None and running_var is not None:
        return _by_running_stats(g, input, weight, bias, running_mean, running_var, eps)
    return _by_batch_stats(g, input, weight, bias, eps)[0]


@aten("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
def native_batch_norm(g: Builder, input: Value, weight: Value | None, bias: Value | None, running_mean: Value | None = None,
                      running_var: Value | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> list[Value]:
    """native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training,
    float momentum, float eps) -> (Tensor, Tensor save_mean, Tensor save_invstd)

    The statistics are empty outside training.
    """
    kept = _kept_dtype(input, weight, bias, running_mean, running_var)
    if training or running_mean is None or running_var is None:
        result, *stats = _by_batch_stats(g, input, weight, bias, eps)
        return [result, *[cast(g, v, kept) for v in stats]]
    empty = g.const(torch.zeros(0, dtype=to_torch(kept)))
    return [_by_running_stats(g, input, weight, bias, running_mean, running_var, eps), empty, empty]


def _kept_dtype(x: Value, *parameters: Value | None) -> DataType:
    """In which dtype statistics are given: of halves in float32 where a parameter is."""
    assert x.dtype is not None
    return DataType.FLOAT if x.dtype in _HALVES and any(p is not None and p.dtype == DataType.FLOAT for p in parameters) else x.dtype


@aten
def _native_batch_norm_legit_functional(g: Builder, input: Value, weight: Value | None, bias: Value | None, running_mean: Value,
                                        running_var: Value, training: bool, momentum: float, eps: float) -> list[Value]:
    """_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var,
    bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)

    ONNX ReduceMean and what follows; where training forms are wanted and exist (opset 14), BatchNormalization with `training_mode`. Its own
    running statistics are left alone: PyTorch's variance is the unbiased one.
    """
    if not training:
        made = native_batch_norm(g, input, weight, bias, running_mean, running_var, training, momentum, eps)
        return [*made, running_mean, running_var]
    made = _by_batch_stats(g, input, weight, bias, eps)
    if g.training_forms and g.opset >= 14 and input.dtype not in _HALVES and input.dtype == running_mean.dtype == running_var.dtype:
        channels = [shape_of(input)[1]]
        given = [constant_or(g, v, fill, channels, input.dtype) for v, fill in ((weight, 1.0), (bias, 0.0))]  # type: ignore[arg-type]
        made[0] = g.op("BatchNormalization", input, *given, running_mean, running_var, epsilon=eps, momentum=1.0 - momentum,
                       training_mode=1, outputs=3)[0]
    mean, kept = made[1], _kept_dtype(input, weight, bias, running_mean, running_var)
    x = cast(g, input, mean.dtype)  # type: ignore[arg-type]
    variance = var(g, x, dim=[i for i in range(rank_of(input)) if i != 1], correction=1)
    stats = [cast(g, v, kept) for v in made[1:]]
    return [made[0], *stats, _moved(g, running_mean, mean, momentum), _moved(g, running_var, variance, momentum)]


@aten
def _batch_norm_with_update_functional(g: Builder, input: Value, weight: Value | None, bias: Value | None, running_mean: Value,
                                       running_var: Value, momentum: float, eps: float) -> list[Value]:
    """_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum,
    float eps) -> (Tensor, Tensor, Tensor, Tensor reserve, Tensor running_mean_out, Tensor running_var_out)

    As `_native_batch_norm_legit_functional` in training; the reserve is for backends that are not exported, and empty.
    """
    made = _native_batch_norm_legit_functional(g, input, weight, bias, running_mean, running_var, True, momentum, eps)
    return [*made[:3], g.const(torch.zeros(0, dtype=torch.uint8)), *made[3:]]


def _moved(g: Builder, old: Value, new: Value, momentum: float) -> Value:
    """A running statistic after one more batch."""
    return g.op("Add", old, g.op("Mul", g.op("Sub", cast(g, new, old.dtype), old), g.const(momentum, old.dtype)))  # type: ignore[arg-type]


@aten("_native_batch_norm_legit.no_stats")
def native_batch_norm_no_stats(g: Builder, input: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float,
                               eps: float) -> list[Value]:
    """_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps)
    -> (Tensor, Tensor, Tensor)
    """
    return native_batch_norm(g, input, weight, bias, None, None, True, momentum, eps)


def _by_running_stats(g: Builder, x: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, eps: float) -> Value:
    dtype = x.dtype
    assert dtype is not None
    assert mean.dtype is not None
    wide = mean.dtype if mean.dtype != dtype else dtype
    channels = [shape_of(mean)[0]]
    scale, shift = constant_or(g, weight, 1.0, channels, wide), constant_or(g, bias, 0.0, channels, wide)
    inputs = [cast(g, v, wide) for v in (x, scale, shift, mean, var)]
    result: Value = g.op("BatchNormalization", *inputs, epsilon=eps)
    return cast(g, result, dtype)


def _by_batch_stats(g: Builder, x: Value, weight: Value | None, bias: Value | None, eps: float) -> list[Value]:
    """(result, mean, 1 / deviation), computed in float32 for halves as PyTorch does."""
    dtype = x.dtype
    assert dtype is not None
    wide = cast(g, x, DataType.FLOAT) if dtype in _HALVES else x
    centred, mean, variance = moments(g, wide, [i for i in range(rank_of(x)) if i != 1])
    scale = deviation(g, variance, eps)
    result = affine(g, g.op("Div", centred, scale), weight, bias)
    return [cast(g, result, dtype), sizes.reshape(g, mean, [-1]), g.op("Reciprocal", sizes.reshape(g, scale, [-1]))]


# ---------------------------------------------------------------------- over instances and groups


@aten
def instance_norm(g: Builder, input: Value, weight: Value | None, bias: Value | None, running_mean: Value | None, running_var: Value | None,
                  use_input_stats: bool, momentum: float, eps: float) -> Value:
    """instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats,
    float momentum, float eps, bool cudnn_enabled) -> Tensor

    (N, C, *). ONNX InstanceNormalization, or BatchNormalization with running statistics.
    """
    if not use_input_stats and running_mean is not None and running_var is not None:
        return _by_running_stats(g, input, weight, bias, running_mean, running_var, eps)
    return _per_channel(g, input, weight, bias, eps)


def _per_channel(g: Builder, x: Value, weight: Value | None, bias: Value | None, eps: float) -> Value:
    """Each (n, c) normalised over what follows."""
    channels = shape_of(x)[1]
    if x.dtype == DataType.DOUBLE or not isinstance(channels, int) or rank_of(x) < 3:
        centred, _, variance = moments(g, x, range(2, rank_of(x)))
        return affine(g, g.op("Div", centred, deviation(g, variance, eps)), weight, bias)
    assert x.dtype is not None
    scale, shift = constant_or(g, weight, 1.0, [channels], x.dtype), constant_or(g, bias, 0.0, [channels], x.dtype)
    return g.op("InstanceNormalization", x, cast(g, scale, x.dtype), cast(g, shift, x.dtype), epsilon=eps)


@aten
def group_norm(g: Builder, input: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None,
               eps: float = 1e-5) -> Value:
    """group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor

    (N, C, *). ONNX Reshape to (N, groups, rest), InstanceNormalization, Reshape back, Mul, Add.
    """
    if dims.equal(shape_of(input)[1], num_groups) and rank_of(input) > 2:
        return _per_channel(g, input, weight, bias, eps)
    rest = dims.floordiv(dims.product(shape_of(input)[1:]), num_groups)
    grouped = sizes.reshape(g, input, [shape_of(input)[0], num_groups, rest])
    return affine(g, reshape_like(g, _per_channel(g, grouped, None, None, eps), input), weight, bias)


@aten
def native_group_norm(g: Builder, input: Value, weight: Value | None, bias: Value | None, N: Size, C: Size, HxW: Size, group: int,
                      eps: float) -> list[Value]:
    """native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps)
    -> (Tensor, Tensor mean, Tensor rstd)
    """
    grouped = sizes.reshape(g, input, [N, group, dims.floordiv(C * HxW, group)])
    _, mean, variance = moments(g, grouped, [2])
    scale = g.op("Reciprocal", deviation(g, variance, eps))
    return [group_norm(g, input, group, weight, bias, eps), *(sizes.reshape(g, v, [N, group]) for v in (mean, scale))]


# ---------------------------------------------------------------------- over the last dims


@aten
def layer_norm(g: Builder, input: Value, normalized_shape: Sequence[Size], weight: Value | None = None, bias: Value | None = None,
               eps: float = 1e-5) -> Value:
    """layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True)
    -> Tensor

    ONNX LayerNormalization; below opset 17 the operators that ONNX Runtime fuses to it.
    """
    dtype = input.dtype
    assert dtype is not None
    if g.opset >= 17 and dtype != DataType.DOUBLE:
        scale = cast(g, constant_or(g, weight, 1.0, normalized_shape, dtype), dtype)
        shift = None if bias is None else cast(g, bias, dtype)
        return g.op("LayerNormalization", input, scale, shift, axis=-len(normalized_shape), epsilon=eps)
    rank = rank_of(input)
    wide = cast(g, input, DataType.FLOAT) if dtype in _HALVES else input
    centred, _, variance = moments(g, wide, range(rank - len(normalized_shape), rank))
    return cast(g, affine(g, g.op("Div", centred, deviation(g, variance, eps)), weight, bias, None), dtype)


@aten
def native_layer_norm(g: Builder, input: Value, normalized_shape: Sequence[Size], weight: Value | None, bias: Value | None,
                      eps: float) -> list[Value]:
    """native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps)
    -> (Tensor, Tensor mean, Tensor rstd)
    """
    rank = rank_of(input)
    _, mean, variance = moments(g, input, range(rank - len(normalized_shape), rank))
    return [layer_norm(g, input, normalized_shape, weight, bias, eps), mean, g.op("Reciprocal", deviation(g, variance, eps))]


@aten
def rms_norm(g: Builder, input: Value, normalized_shape: Sequence[Size], weight: Value | None = None, eps: float | None = None) -> Value:
    """rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor

    x / sqrt(mean(x^2) + eps) * weight; eps None is the dtype's. ONNX RMSNormalization; below opset 23 ReduceMean and what follows.
    """
    dtype = input.dtype
    assert dtype is not None
    eps = torch.finfo(to_torch(dtype)).eps if eps is None else eps
    if g.opset >= 23 and dtype in (DataType.FLOAT, DataType.FLOAT16):
        scale = cast(g, constant_or(g, weight, 1.0, normalized_shape, dtype), dtype)
        return g.op("RMSNormalization", input, scale, axis=-len(normalized_shape), epsilon=eps)
    rank = rank_of(input)
    wide = cast(g, input, DataType.FLOAT) if dtype in _HALVES else input
    square = g.op("Pow", wide, g.const(2.0, wide.dtype))
    mean = g.op("ReduceMean", square, g.const(list(range(rank - len(normalized_shape), rank))), keepdims=1)
    return affine(g, cast(g, g.op("Div", wide, deviation(g, mean, eps)), dtype), weight, None, None)


@aten
def _fused_rms_norm(g: Builder, input: Value, normalized_shape: Sequence[Size], weight: Value | None, eps: float | None) -> list[Value]:
    """_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor rstd)"""
    dtype = input.dtype
    assert dtype is not None
    rank = rank_of(input)
    square = g.op("Mul", input, input)
    mean = g.op("ReduceMean", square, g.const(list(range(rank - len(normalized_shape), rank))), keepdims=1)
    scale = deviation(g, mean, torch.finfo(to_torch(dtype)).eps if eps is None else eps)
    return [rms_norm(g, input, normalized_shape, weight, eps), g.op("Reciprocal", scale)]


# ---------------------------------------------------------------------- of weights


@aten
def norm_except_dim(g: Builder, v: Value, pow: int = 2, dim: int = 0) -> Value:
    """norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor. The norm over all dims but one (-1: over all)."""
    rank = rank_of(v)
    if dim == -1:
        return g.op("ReduceL2" if pow == 2 else "ReduceL1", v, keepdims=0)
    others = [i for i in range(rank) if i != dim % rank]
    return g.op("ReduceL2" if pow == 2 else "ReduceL1", v, g.const(others), keepdims=1)


@aten("_weight_norm")
def weight_norm(g_: Builder, v: Value, g: Value, dim: int = 0) -> Value:
    """_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor. v g / norm of v over all dims but one."""
    return g_.op("Mul", v, g_.op("Div", g, norm_except_dim(g_, v, 2, dim)))


@aten("_weight_norm_interface")
def weight_norm_interface(g_: Builder, v: Value, g: Value, dim: int = 0) -> list[Value]:
    """_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor norms)"""
    return [weight_norm(g_, v, g, dim), norm_except_dim(g_, v, 2, dim)]
