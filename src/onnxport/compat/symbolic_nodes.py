"""The rest of `symbolic_helper`: whole operators as nodes, quantized tensors, and sizes of interpolations.

Where onnxport has the ATen operator itself, the helper is that operator: right for every dtype and opset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.capture import scratch
from onnxport.compat import symbolic_helper as helper
from onnxport.compat.scalar_type import JitScalarType
from onnxport.target.schemas import NEWEST

Function = Callable[..., Any]


def _parse_arg(value: Any, desc: str, arg_name: str | None = None, node_name: str | None = None) -> Any:
    """What a constant holds, by a code of `parse_args`; an error that names both where the model computes it."""
    return helper._parse(value, desc, arg_name or "argument", node_name or "a symbolic function")


def _apply_params(*args: Any, **kwargs: Any) -> Callable[[Function], Any]:
    """Calls the decorated function with these arguments and puts its result in its place."""
    return lambda function: function(*args, **kwargs)


def _block_list_in_opset(name: str) -> Function:
    """A symbolic function that refuses the operator `name`."""
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise errors.SymbolicValueError(f"{name} cannot be written at this opset")

    return refuse


def _as_list_type(jit_type: Any) -> Any:
    """A list type as it is; None for any other."""
    return jit_type if jit_type.kind() == "ListType" else None


def _int64(numbers: Sequence[int]) -> torch.Tensor:
    return torch.tensor(list(numbers), dtype=torch.int64)


# ---------------------------------------------------------------------- arithmetic and reductions


def _lt_helper(g: Any, input: Any, other: Any) -> Any:
    """Less, for every dtype."""
    return g.call("aten::lt", input, other)


def _max_helper(g: Any, self: Any, dim_or_y: Any = None, keepdim: Any = None) -> Any:
    """`torch.max` in its three forms: of all, of two tensors, along a dim (values and places)."""
    return g.call("aten::max", *(arg for arg in (self, dim_or_y, keepdim) if arg is not None))


def _min_helper(g: Any, self: Any, dim_or_y: Any = None, keepdim: Any = None) -> Any:
    """`torch.min` in its three forms: of all, of two tensors, along a dim (values and places)."""
    return g.call("aten::min", *(arg for arg in (self, dim_or_y, keepdim) if arg is not None))


def _argmin_argmax_helper(g: Any, input: Any, dim: Any, keepdim: bool, op_name: str) -> Any:
    """`op_name` ("ArgMin", "ArgMax") along a dim, or over all elements where `dim` is None."""
    return g.call(f"aten::{op_name.lower()}", input, dim, keepdim)


def _var_mean_helper(g: Any, input: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    """Variance and mean."""
    return g.call("aten::var_mean", input, dim, correction=correction, keepdim=keepdim)


def _linalg_vector_norm_helper(g: Any, self: Any, ord: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The norm of order `ord`."""
    return g.call("aten::linalg_vector_norm", self, ord, dim, keepdim)


def _reduce_op_symbolic_helper(onnx_op_name: str, allow_multi_dim_support: bool = True) -> Function:
    """A symbolic function for a reduction: over all elements, or `(dim, keepdim)`."""
    def symbolic(g: Any, self: Any, dim: Any = None, keepdim: Any = None) -> Any:
        if dim is None or helper._is_none(dim):
            return helper._handle_reduce_dim_none(g, self, onnx_op_name)
        dims = helper._get_const(dim, "is", "dim")
        axes = list(dims) if isinstance(dims, (list, tuple)) else [dims]
        return g.op_as(NEWEST, onnx_op_name, self, _int64(axes), keepdims_i=int(bool(helper._get_const(keepdim, "i", "keepdim"))))

    return symbolic


def _reduce_with_dtype_helper(onnx_op: str, name: str, allow_multi_dim_support: bool = True) -> Function:
    """A symbolic function for a reduction whose arguments are `(dtype)` or `(dim, keepdim, dtype)`."""
    reduce = _reduce_op_symbolic_helper(onnx_op, allow_multi_dim_support)

    def symbolic(g: Any, self: Any, *args: Any) -> Any:
        if len(args) not in (1, 3):
            raise errors.SymbolicFunctionError(f"{name} takes (dtype) or (dim, keepdim, dtype), and got {len(args)} arguments")
        dtype = helper._get_const(args[-1], "i", "dtype")
        result = reduce(g, self, *args[:-1])
        return result if dtype is None or helper._is_none(dtype) else helper._maybe_cast_to_type(g, result, JitScalarType(dtype))

    return symbolic


def _maybe_cast_reduce_op_input(g: Any, self: Any) -> Any:
    """Small integers as int64, in which PyTorch sums them."""
    kind = helper._try_get_scalar_type(self)
    wide = kind is None or helper._is_fp(self) or kind in (JitScalarType.INT64, JitScalarType.COMPLEX64, JitScalarType.COMPLEX128)
    return self if wide else helper._maybe_cast_to_type(g, self, JitScalarType.INT64)


def _op_with_optional_float_cast(g: Any, op_name: str, *args: Any, **kwargs: Any) -> Any:
    """A node whose inputs were floats before opset `opset_before`: integers are cast to floats and back there.

    opset_before: None casts at every opset.   target_float_t: the name of the floats.
    """
    before, name = kwargs.pop("opset_before", None), kwargs.pop("target_float_t", "Float")
    kind = helper._try_get_scalar_type(*args)
    if kind is None or kind.dtype().is_floating_point or (before is not None and g.opset >= before):
        return g.op(op_name, *args, **kwargs)
    target = name if isinstance(name, JitScalarType) else JitScalarType.from_name(name)
    inputs = [a if helper._is_none(a) or not helper._is_tensor(a) else helper._maybe_cast_to_type(g, a, target) for a in args]
    return helper._maybe_cast_to_type(g, g.op(op_name, *inputs, **kwargs), kind)


# ---------------------------------------------------------------------- places and pieces


def _scatter_helper(g: Any, self: Any, dim: Any, index: Any, src: Any) -> Any:
    """`src` at the places `index` along a dim."""
    return g.call("aten::scatter", self, dim, index, src)


def _unbind_helper(g: Any, self: Any, dim: Any, _outputs: Any) -> Any:
    """The slices along a dim, one by one."""
    return g.call("aten::unbind", self, dim)


def _is_split_static(split_size_or_sizes: Any, _outputs: Any) -> bool:
    """Whether the number of pieces is known."""
    if _outputs is None:
        return False
    if not scratch.is_value(split_size_or_sizes) or helper._is_onnx_constant(split_size_or_sizes):
        return True
    return helper._is_packed_list(split_size_or_sizes) and all(helper._is_constant(size) for size in helper._unpack_list(split_size_or_sizes))


def _index_fill_reshape_helper(g: Any, self: Any, dim: Any, index: Any) -> tuple[Any, Any]:
    """The shape of `self` with the length of `index` along a dim, and `index` spread over it."""
    rank, axis = helper._get_tensor_rank(self), helper._get_const(dim, "i", "dim")
    if rank is None:
        raise errors.SymbolicValueError("index_fill of a tensor of unknown rank")
    axis %= rank
    spread = helper._unsqueeze_helper(g, index, [i for i in range(rank) if i != axis])
    parts = [g.op_as(NEWEST, "Shape", index) if i == axis else g.op_as(NEWEST, "Slice", g.op("Shape", self), _int64([i]), _int64([i + 1]))
             for i in range(rank)]
    shape = g.op("Concat", *parts, axis_i=0)
    return shape, g.op("Expand", spread, shape)


def _repeat_interleave_single_value_repeat_helper(g: Any, self: Any, repeats: Any, dim: Any) -> Any:
    """Each element `repeats` times."""
    return g.call("aten::repeat_interleave", self, repeats, dim)


def _repeat_interleave_split_helper(g: Any, self: Any, reps: Any, dim: Any) -> Any:
    """Each slice along a dim `reps` times."""
    return g.call("aten::repeat_interleave", self, reps, dim)


def _arange_helper(g: Any, *args: Any) -> Any:
    """`torch.arange` with the arguments of any of its forms."""
    return g.call("aten::arange", *args)


def _arange_cast_helper(g: Any, end: Any, start: Any = None, step: Any = None, dtype: Any = None) -> tuple[Any, Any, Any, Any]:
    """The element type of a range, and its ends and step in that type: int64 for integers where none is wanted."""
    given = [None if helper._is_none(bound) else bound for bound in (end, start, step)]
    kind = helper._get_const(dtype, "i", "dtype")
    if kind is not None and not helper._is_none(kind):
        wanted = JitScalarType(kind)
    elif any(bound is not None and (isinstance(bound, float) or helper._is_fp(bound)) for bound in given):
        wanted = JitScalarType.from_dtype(torch.get_default_dtype())
    else:
        wanted = JitScalarType.INT64
    return wanted, *(None if bound is None else g.op("Cast", bound, to_i=int(wanted.onnx_type())) for bound in given)  # type: ignore[return-value]


def _embedding_bag_helper(g: Any, embedding_matrix: Any, indices: Any, offsets: Any, scale_grad_by_freq: Any, mode: Any, sparse: Any,
                          per_sample_weights: Any, include_last_offset: Any, padding_idx: Any) -> Any:
    """The sums, means or maxima of bags of rows."""
    return g.call("aten::embedding_bag", embedding_matrix, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                  include_last_offset, padding_idx)


def _batchnorm_helper(g: Any, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any) -> tuple[Any, Any, Any, Any]:
    """Weight, bias, mean and variance, ones and zeros for those that are None."""
    channels, kind = helper._get_tensor_dim_size(input, 1), helper._try_get_scalar_type(input)
    filled = []
    for value, number in ((weight, 1), (bias, 0), (running_mean, 0), (running_var, 1)):
        if not helper._is_none(value):
            filled.append(value)
            continue
        if channels is None or kind is None:
            raise errors.SymbolicValueError("batch_norm without weights needs a known number of channels")
        filled.append(g.op("Constant", value_t=torch.full((channels,), number, dtype=kind.dtype())))
    return filled[0], filled[1], filled[2], filled[3]


def _avgpool_helper(tuple_fn: Callable[[Any], Sequence[int]], padding: Any, kernel_size: Any, stride: Any, divisor_override: Any,
                    name: str) -> tuple[int, ...]:
    """The padding of an average pooling, once a dim."""
    if divisor_override and divisor_override != 1:
        helper._unimplemented(name, "divisor_override")
    return tuple(tuple_fn(padding))


def _get_dim_for_cross(x: Any, dim: int | None) -> int | None:
    """The dim of a cross product: the given one, or the first of size 3."""
    if dim is not None:
        return dim
    sizes = helper._get_tensor_sizes(x)
    return None if sizes is None or 3 not in sizes else sizes.index(3)


# ---------------------------------------------------------------------- interpolation


def _interpolate_helper(name: str, dim: int, interpolate_mode: str) -> Function:
    """A symbolic function for the operator `name` ("upsample_nearest2d")."""
    return lambda g, input, output_size, *args: g.call(f"aten::{name}", input, output_size, *args)


def _interpolate_warning(interpolate_mode: str) -> None:
    """Nothing to warn of: the coordinates are PyTorch's at every opset."""


def _interpolate_get_scales_if_available(g: Any, scales: Sequence[Any]) -> Any:
    """The scales of all dims as a value, where they are known; else None."""
    found = helper._maybe_get_const(scales[0], "fs") if scales else None
    if found is None or helper._is_none(found) or scratch.is_value(found):
        return None
    return g.op("Constant", value_t=torch.tensor([1.0, 1.0, *(found if isinstance(found, (list, tuple)) else [found])], dtype=torch.float32))


def _get_interpolate_attributes(g: Any, mode: str, args: Sequence[Any]) -> tuple[Any, Any]:
    """Scales (or None) and align_corners of the arguments behind the size of an upsampling."""
    aligned = None if mode == "nearest" or not args else args[0]
    scales = args if mode == "nearest" else args[1:]
    return _interpolate_get_scales_if_available(g, scales), aligned


def _interpolate_get_scales(g: Any, scale_factor: Any, dim: int) -> Any:
    """One scale for each of `dim` dims, those of batch and channel 1. scale_factor: a number, a list or a value."""
    known = helper._maybe_get_const(scale_factor, "fs")
    if not scratch.is_value(known):
        factors = list(known) if isinstance(known, (list, tuple)) else [known]
        factors = factors * (dim - 2) if len(factors) == 1 else factors
        return g.op("Constant", value_t=torch.tensor([1.0, 1.0, *factors], dtype=torch.float32))
    vector = known if helper._get_tensor_rank(known) == 1 else helper._unsqueeze_helper(g, known, [0])
    count = 1 if helper._get_tensor_rank(known) == 1 else dim - 2
    scales = [helper._maybe_cast_to_type(g, vector, JitScalarType.FLOAT)] * count
    return g.op("Concat", g.op("Constant", value_t=torch.ones(2)), *scales, axis_i=0)


def _interpolate_size_to_scales(g: Any, input: Any, output_size: Any, dim: int) -> Any:
    """The scales that lead to a size."""
    known = helper._maybe_get_const(output_size, "is")
    target = known if scratch.is_value(known) else g.op("Constant", value_t=_int64(known[-(dim - 2):]))
    sizes = g.op_as(NEWEST, "Slice", g.op("Shape", input), _int64([2]), _int64([dim]))
    ratio = g.op("Div", g.op("Cast", target, to_i=1), g.op("Cast", sizes, to_i=1))
    return g.op("Concat", g.op("Constant", value_t=torch.ones(2)), ratio, axis_i=0)


def _interpolate_get_scales_and_mode(g: Any, input: Any, size: Any, scale_factor: Any, mode: Any, align_corners: Any) -> tuple[Any, str]:
    """Scales and ONNX's mode of an interpolation that is given by size or by factor."""
    name = str(helper._get_const(mode, "s", "mode"))
    name = "linear" if "linear" in name else "cubic" if "cubic" in name else name
    rank = helper._get_tensor_rank(input)
    if rank is None:
        raise errors.SymbolicValueError("an interpolation of a tensor of unknown rank")
    if helper._is_none(size):
        return _interpolate_get_scales(g, scale_factor, rank), name
    return _interpolate_size_to_scales(g, input, size, rank), name


# ---------------------------------------------------------------------- quantized tensors: (integers, scale, zero point, axis)


def quantize_helper(g: Any, tensor: Any, scale: Any, zero_point: Any, axis: Any = None) -> Any:
    """`tensor` as integers, in a tuple with scale, zero point and axis."""
    numbers = helper._maybe_cast_to_type(g, scale, JitScalarType.FLOAT)
    if helper._try_get_scalar_type(zero_point) not in (JitScalarType.UINT8, JitScalarType.INT8):
        zero_point = g.op("Cast", zero_point, to_i=int(JitScalarType.UINT8.onnx_type()))
    along = None if axis is None or helper._is_none(axis) else helper._get_const(axis, "i", "axis")
    made = g.op_as(NEWEST, "QuantizeLinear", tensor, numbers, zero_point, **({} if along is None else {"axis_i": along}))
    return g.op("prim::TupleConstruct", made, numbers, zero_point, *([] if along is None else [axis]))


def dequantize_helper(g: Any, qtensor: Any, qdtype: Any = None) -> tuple[Any, Any, Any, Any]:
    """The numbers of a quantized tensor, its scale, zero point and axis (or None)."""
    integers, scale, zero_point, *rest = _unpack_quantized_tensor(qtensor)
    along = helper._get_const(rest[0], "i", "axis") if rest and not helper._is_none(rest[0]) else None
    made = g.op_as(NEWEST, "DequantizeLinear", integers, scale, zero_point, **({} if along is None else {"axis_i": along}))
    return made, scale, zero_point, rest[0] if rest else None


def requantize_bias_helper(g: Any, bias: Any, input_scale: Any, weight_scale: Any, axis: Any = None) -> Any:
    """A bias as int32, in a tuple with the product of the scales and a zero point of 0."""
    scale = g.op("Mul", weight_scale, input_scale)
    zero = g.op("ConstantOfShape", g.op("Shape", scale), value_t=torch.zeros(1, dtype=torch.int32))
    made = g.op("Cast", g.op_as(NEWEST, "Round", g.op("Div", bias, scale)), to_i=int(JitScalarType.INT.onnx_type()))  # no QuantizeLinear gives int32
    return g.op("prim::TupleConstruct", made, scale, zero, *([] if axis is None or helper._is_none(axis) else [axis]))


def _unpack_quantized_tensor(tuple_value: Any) -> tuple[Any, ...]:
    """The parts of a quantized tensor; an error for what is none."""
    if tuple_value.node().kind() not in ("prim::TupleConstruct", "prim::ListConstruct"):
        raise errors.SymbolicValueError(f"{helper._described(tuple_value)} is no quantized tensor: quantize_helper makes one")
    return tuple(tuple_value.node().inputs())
