"""Operators on complex tensors that are operators on their parts.

What moves or adds elements does so with the real and the imaginary parts alike (`LINEAR`); what multiplies its operands is multiplied
out (`MULTILINEAR`). Both ask the operator's own function, which sees real tensors only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxport.ops.support import cast, result_type, tensor
from onnxport.target.builder import Builder
from onnxport.target.dtypes import component, from_torch, to_torch
from onnxport.target.sizes import expand
from onnxport.target.value import Complex, DataType, Value

# Operator -> the arguments whose elements it moves or adds; `other` tensors that only give a shape are none of these.
_MOVING = """
    view reshape _unsafe_view _reshape_alias view_copy _reshape_copy view_as reshape_as flatten unflatten ravel squeeze squeeze_copy
    unsqueeze unsqueeze_copy atleast_1d atleast_2d atleast_3d permute permute_copy transpose swapaxes swapdims transpose_copy t numpy_T
    t_copy mT movedim moveaxis expand broadcast_to expand_copy expand_as flip fliplr flipud rot90 roll pixel_shuffle pixel_unshuffle
    channel_shuffle native_channel_shuffle unfold unfold_copy split unsafe_split split_copy split_with_sizes unsafe_split_with_sizes
    split_with_sizes_copy chunk unsafe_chunk tensor_split hsplit vsplit dsplit unbind unbind_copy select select_copy slice slice_copy
    narrow narrow_copy index _unsafe_index masked_select index_select take gather take_along_dim repeat tile repeat_interleave tril triu
    diagonal diagonal_copy diag_embed diag diagflat sum_to_size trace neg negative _neg_view positive contiguous clone detach detach_copy alias
    alias_copy lift lift_fresh lift_fresh_copy cpu cuda resolve_conj resolve_neg pin_memory reflection_pad1d reflection_pad2d
    reflection_pad3d replication_pad1d replication_pad2d replication_pad3d _pad_circular nan_to_num zero as_strided sum mean cumsum
    fft_fftshift fft_ifftshift"""
LINEAR: dict[str, tuple[str, ...]] = {
    **{f"aten::{name}": ("self",) for name in _MOVING.split()},
    **{f"aten::{name}": ("tensors",) for name in (
        "cat", "concat", "concatenate", "stack", "hstack", "vstack", "row_stack", "dstack", "column_stack", "block_diag", "_chunk_cat",
        "broadcast_tensors", "meshgrid", "cartesian_prod", "atleast_1d.Sequence", "atleast_2d.Sequence", "atleast_3d.Sequence")},
    **{f"aten::{name}": ("self", "src") for name in ("scatter.src", "scatter_add", "select_scatter", "slice_scatter", "diagonal_scatter")},
    **{f"aten::{name}": ("self", "source") for name in ("index_copy", "masked_scatter", "put")},
    **{f"aten::{name}": ("self", "value") for name in ("masked_fill", "index_fill", "fill", "pad", "constant_pad_nd", "scatter.value")},
    **{f"aten::{name}": ("self", "values") for name in ("index_put", "_unsafe_index_put", "_index_put_impl")},
    "aten::where": ("self", "other"), "aten::linalg_diagonal": ("A",), "aten::diff": ("self", "prepend", "append"),
}
MULTILINEAR: dict[str, tuple[str, ...]] = {
    **{f"aten::{name}": ("self", "other") for name in (
        "mul", "multiply", "matmul", "linalg_matmul", "inner", "kron", "cross", "linalg_cross", "tensordot")},
    **{f"aten::{name}": ("self", "mat2") for name in ("mm", "bmm")},
    **{f"aten::{name}": ("self", "vec2") for name in ("outer", "ger", "linalg_outer")},
    "aten::mv": ("self", "vec"), "aten::dot": ("self", "tensor"), "aten::einsum": ("tensors",),
}


def parts_of(g: Builder, x: Any, dtype: DataType | None = None) -> tuple[Value, Value | None]:
    """The real and the imaginary part of a tensor or number, as real tensors of the type of `dtype`'s parts; None for what is real."""
    dtype = None if dtype is None else component(dtype)
    if isinstance(x, Complex):
        return (x.re, x.im) if dtype is None else (cast(g, x.re, dtype), cast(g, x.im, dtype))
    if isinstance(x, complex):
        return tensor(g, x.real, dtype), tensor(g, x.imag, dtype)
    return tensor(g, x, dtype), None


def pair(g: Builder, x: Any, dtype: DataType | None = None) -> Complex:
    """A tensor or number as a complex tensor."""
    re, im = parts_of(g, x, dtype or result_type(x))
    return Complex(re, zeros(g, re) if im is None else im)


def zeros(g: Builder, like: Value) -> Value:
    """As many zeros."""
    assert like.shape is not None
    return expand(g, tensor(g, 0, like.dtype), like.shape)


def on_both(z: Complex, change: Callable[[Value], Value]) -> Complex:
    """The same done to both parts."""
    return Complex(change(z.re), change(z.im))


def linear(g: Builder, function: Callable[..., Any], names: Sequence[str], args: dict[str, Any]) -> Any:
    """`function` on the real parts and on the imaginary parts of the arguments `names`."""
    data = [member for name in names for member in _members(args.get(name))]
    kind = args.get("dtype")
    dtype = result_type(*data) if kind is None else from_torch(kind)
    args = args if kind is None else {**args, "dtype": to_torch(component(dtype))}
    sides = []
    for side in (0, 1):
        given = {name: _sided(g, args[name], dtype, side) for name in names if args.get(name) is not None}
        sides.append(function(g, **{**args, **given}))
    if isinstance(sides[0], (list, tuple)):
        return [Complex(re, im) for re, im in zip(*sides, strict=True)]
    return Complex(*sides)


def _members(arg: Any) -> list[Any]:
    return [] if arg is None else list(arg) if isinstance(arg, (list, tuple)) else [arg]


def _sided(g: Builder, arg: Any, dtype: DataType, side: int) -> Any:
    if isinstance(arg, (list, tuple)):
        return [_sided(g, member, dtype, side) for member in arg]
    if isinstance(arg, Value):
        return pair(g, arg, dtype).re if side == 0 else pair(g, arg, dtype).im
    return complex(arg).imag if side else complex(arg).real


def multilinear(g: Builder, function: Callable[..., Any], names: Sequence[str], args: dict[str, Any]) -> Value:
    """`function`, which is linear in each of the operands `names`, multiplied out: (a + bi)(c + di) = (ac - bd) + (ad + bc)i."""
    whole = len(names) == 1  # a list of operands
    operands = list(args[names[0]]) if whole else [args[name] for name in names]
    dtype = result_type(*operands)

    def product(fixed: list[Value]) -> tuple[Value, Value | None]:
        if len(fixed) == len(operands):
            given = {names[0]: fixed} if whole else dict(zip(names, fixed, strict=True))
            return function(g, **{**args, **given}), None
        re, im = parts_of(g, operands[len(fixed)], dtype)
        first = product([*fixed, re])
        if im is None:
            return first
        second = product([*fixed, im])
        real = first[0] if second[1] is None else g.op("Sub", first[0], second[1])
        return real, second[0] if first[1] is None else g.op("Add", first[1], second[0])

    re, im = product([])
    assert im is not None
    return Complex(re, im)


def is_complex(arg: Any) -> bool:
    """Whether an argument is of complex numbers: a tensor, a number, a dtype, or a list with one."""
    if isinstance(arg, (list, tuple)):
        return any(is_complex(member) for member in arg)
    return isinstance(arg, (Complex, complex)) or (isinstance(arg, torch.dtype) and arg.is_complex)


__all__ = ["LINEAR", "MULTILINEAR", "is_complex", "linear", "multilinear", "on_both", "pair", "parts_of", "zeros"]
