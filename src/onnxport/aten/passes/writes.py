"""The functional forms of operators that write in place."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Arg, Node, Parameter, Schema, Value
from onnxport.aten.make import Maker
from onnxport.aten.source import where

# In-place operators that turn the tensor object into another view of its memory; they write nothing.
METADATA = frozenset(f"aten::{name}_" for name in (
    "squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims", "detach", "as_strided"))
# They concern gradients only.
NOTHING = frozenset({"aten::requires_grad_"})
# The content of `self` before the write does not matter, only its sizes.
OVERWRITES = frozenset(f"aten::{name}_" for name in (
    "copy", "fill", "zero", "uniform", "normal", "bernoulli", "exponential", "log_normal", "cauchy", "geometric", "random"))
_REFUSED = {
    "aten::set_": "it gives a tensor another storage", "aten::resize_": "it changes a tensor's size in place",
    "aten::resize_as_": "it changes a tensor's size in place",
}
# In-place operator -> its functional form, where that is not the same name without the underscore.
_RENAMED = {
    "aten::normal_": "aten::normal_functional", "aten::_index_put_impl_": "aten::index_put", "aten::clip_": "aten::clamp",
    "aten::_native_batch_norm_legit": "aten::native_batch_norm",
}
_DROPPED_ARGUMENTS = {"aten::_index_put_impl_": ("unsafe",)}
_RENAMED_ARGUMENTS = {name: {"self": "input"} for name in (
    "aten::dropout_", "aten::feature_dropout_", "aten::alpha_dropout_", "aten::feature_alpha_dropout_")}
# Results of these are bool, whatever they are written into.
_TRUTHS = frozenset(f"aten::{name}_" for name in (
    "eq", "ne", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "not_equal", "logical_and", "logical_or",
    "logical_xor", "logical_not"))
# These would widen integers, unless told the dtype.
_WIDENING = frozenset({"aten::cumsum_", "aten::cumprod_"})
# Arguments that take part in type promotion; others are indices, masks and sources of self's own dtype.
_PROMOTED = ("other", "tensor1", "tensor2", "end", "weight", "exponent", "min", "max")


# Operators that give results and write besides -> those that give what would be written behind the results.
TWINS = dict.fromkeys(("aten::fused_moving_avg_obs_fake_quant", "aten::_fused_moving_avg_obs_fq_helper"),
                      "aten::_fused_moving_avg_obs_fq_helper_functional")
_OBSERVES = "observer_on"  # a switch: where it is off, nothing is written


def twin(node: Node) -> list[tuple[str, Value]]:
    """Makes a node of `TWINS` its twin: the arguments that it wrote, each with its new value."""
    assert node.schema is not None
    made = [(name, node.args[name].like()) for name in node.schema.writes]
    switch = node.args[_OBSERVES]
    mask = Value("tensor", torch.bool, node.outputs[0].shape)
    node.op, node.overload, node.schema = TWINS[node.op], "", None
    node.outputs = [*(node.outputs if len(node.outputs) == 2 else [node.outputs[0], mask]), *(value for _, value in made)]
    silent = isinstance(switch, Value) and switch.constant is not None and not bool(switch.constant.any())
    return [] if silent else made


def check(node: Node, translated: bool = False) -> None:
    """Raises `UnsupportedError` for a write that has no functional form. translated: whether somebody else knows what it computes."""
    assert node.schema is not None
    reason = _REFUSED.get(node.op)
    if reason is None and any("[" in p.type or p.type.startswith("List") for p in node.schema.parameters if p.name in node.schema.writes):
        reason = "it changes a list in place"
    if reason is None and not translated and not node.op.startswith("aten::"):
        reason = ("it writes into its arguments, and what it computes is not known; give it a symbolic function that returns its results and, "
                  f"behind them, the new value of what it writes ({', '.join(node.schema.writes)})")
    if reason is not None:
        raise errors.UnsupportedError(f"{node.op} cannot be exported: {reason}\n  at {where(node.source)}, module {node.scope or '?'}")


def functional_name(node: Node) -> tuple[str, str]:
    """Operator and overload without the write."""
    op = _RENAMED.get(node.op)
    if op is None:
        # __iand__ is the in-place form of __and__
        op = "aten::__" + node.op[9:] if node.op.startswith("aten::__i") else node.op.removesuffix("_")
    assert node.schema is not None
    dropped = _DROPPED_ARGUMENTS.get(node.op, ()) + (() if "self" in node.schema.writes else node.schema.writes)
    return op, _overload(op, node.overload, tuple((p.name, p.type) for p in node.schema.parameters if p.name not in dropped))


@functools.cache
def _overload(op: str, overload: str, parameters: tuple[tuple[str, str], ...]) -> str:
    """The overload of a functional operator with these parameters: `pow_.Scalar` is the in-place form of `pow.Tensor_Scalar`."""
    packet = getattr(torch.ops.aten, op.removeprefix("aten::"), None)
    fitting = []
    for name in packet.overloads() if packet is not None else ():
        schema = getattr(packet, name)._schema
        if not schema.is_mutable and tuple((a.name, str(a.real_type)) for a in schema.arguments) == parameters:
            fitting.append("" if name == "default" else name)
    return overload if overload in fitting or not fitting else fitting[0]


def functional_args(node: Node, current: Value) -> dict[str, Arg]:
    """The arguments of the functional form."""
    args = node.args
    if node.op in _DROPPED_ARGUMENTS:
        args = {name: arg for name, arg in args.items() if name not in _DROPPED_ARGUMENTS[node.op]}
    if node.op in _RENAMED_ARGUMENTS:
        names = _RENAMED_ARGUMENTS[node.op]
        args = {names.get(name, name): arg for name, arg in args.items()}
    if node.op in _WIDENING and args.get("dtype") is None:
        args = {**args, "dtype": current.dtype}
    return args


def natural_dtype(node: Node, current: Value) -> torch.dtype | None:
    """The dtype that the functional form gives, before it is cast back to that of the written tensor."""
    if node.op in _TRUTHS:
        return torch.bool
    dtype = current.dtype
    others = [arg for arg in map(node.args.get, _PROMOTED) if isinstance(arg, Value) and arg.kind == "tensor"]
    if dtype is None or all(other.dtype in (dtype, None) for other in others):
        return dtype
    # A tensor of rank 0 has a say only where its kind (bool, integer, float, complex) is above all others'.
    ranked = [other for other in [current, *others] if other.shape != ()]
    scalars = [other for other in [current, *others] if other.shape == ()]
    result = _sample(_promoted(ranked), bool(ranked)) if ranked else _sample(_promoted(scalars), False)
    return torch.result_type(result, _sample(_promoted(scalars), False)) if ranked and scalars else result.dtype


def _promoted(values: list[Value]) -> torch.dtype:
    dtypes = [value.dtype for value in values if value.dtype is not None]
    return functools.reduce(torch.promote_types, dtypes)


@functools.cache
def _sample(dtype: torch.dtype, dims: bool) -> torch.Tensor:
    return torch.empty((1,) if dims else (), dtype=dtype, device="meta")


def plain_number(value: Any, dtype: torch.dtype | None) -> Any:
    """A fill value as the Python number that self's dtype makes of it, or None where it is known only when the file runs."""
    if isinstance(value, Value):
        if value.constant is None or value.name is not None or value.constant.numel() != 1:
            return None
        value = value.constant.item()
    if dtype is None or isinstance(value, complex) or dtype.is_complex:
        return value
    if dtype == torch.bool:
        return bool(value)
    return float(value) if dtype.is_floating_point else int(value)


# --- out= ------------------------------------------------------------------------------------------------------------------------


NEW_VALUES = "_functional"  # how such a form is called


def has_form_with_new_values(op: str) -> bool:
    """Whether PyTorch has a form of the operator that gives what it writes as further results."""
    return op.startswith("aten::") and hasattr(torch.ops.aten, op.removeprefix("aten::") + NEW_VALUES)


def out_types(op: str, overload: str, args: dict[str, Arg], count: int) -> list[tuple[torch.dtype, tuple[int, ...]]] | None:
    """dtype and shape of what a functional operator gives, found by running it on tensors without data; None if it will not run so."""
    packet = getattr(torch.ops.aten, op.removeprefix("aten::"), None)
    try:
        given = {name: _meta(arg) for name, arg in args.items()}
        with torch.no_grad():
            result = getattr(packet, overload or "default")(**given)
    except Exception:
        return None
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    if len(results) != count or not all(isinstance(r, torch.Tensor) for r in results):
        return None
    return [(r.dtype, tuple(r.shape)) for r in results]


def _meta(arg: Arg) -> Any:
    if isinstance(arg, Value):
        if arg.kind != "tensor" or arg.shape is None:
            raise ValueError("not known")
        return torch.empty(arg.shape, dtype=arg.dtype, device="meta")
    return [_meta(item) for item in arg] if isinstance(arg, (list, tuple)) else arg


# --- lists of tensors ------------------------------------------------------------------------------------------------------------

# Argument of a `_foreach_` operator -> that of the operator on one tensor.
_EACH = {"scalar": "other", "scalars": "other", "tensors1": "end"}
_EACH_OF = {
    "aten::addcmul_": {"scalar": "value", "scalars": "value"}, "aten::addcdiv_": {"scalar": "value", "scalars": "value"},
    "aten::lerp_": {"weights": "weight", "scalars": "weight"}, "aten::pow_": {"scalar": "exponent", "scalars": "exponent"},
    "aten::clamp_min_": {"scalar": "min", "scalars": "min", "other": "min"},
    "aten::clamp_max_": {"scalar": "max", "scalars": "max", "other": "max"}, "aten::copy_": {"other": "src"},
}
_EACH_RENAMED = {"aten::maximum_": "aten::clamp_min_", "aten::minimum_": "aten::clamp_max_"}


def each(node: Node) -> Iterator[Node]:
    """A `_foreach_` operator as one operator a tensor."""
    op = "aten::" + node.op.removeprefix("aten::_foreach_")
    op = _EACH_RENAMED.get(op, op)
    names = {**_EACH, **_EACH_OF.get(op, {})}
    for index, value in enumerate(node.args["self"]):
        args = {}
        for name, arg in node.args.items():
            args[names.get(name, name)] = arg[index] if isinstance(arg, (list, tuple)) else arg
        parameters = tuple(Parameter(name, "Tensor" if isinstance(arg, Value) else "number") for name, arg in args.items())
        overload = "Tensor" if any(isinstance(arg, Value) for name, arg in args.items() if name != "self") else "Scalar"
        yield Node(op, overload, args, [value.like()], scope=node.scope, source=node.source,
                   schema=Schema(op, overload, parameters, ("Tensor",), ("self",)))


# --- operators that are made of others -------------------------------------------------------------------------------------------


def fill_diagonal(make: Maker, node: Node) -> Value:
    """`fill_diagonal_` of a matrix."""
    current, args = node.args["self"], node.args
    if current.shape is None or len(current.shape) != 2 or args["wrap"]:
        raise errors.UnsupportedError(f"fill_diagonal_ is supported for matrices without wrap\n  at {where(node.source)}")
    size = min(current.shape)
    dims = {"offset": 0, "dim1": 0, "dim2": 1}
    diagonal = make.emit("aten::diagonal", "", Value("tensor", current.dtype, (size,), None), self=current, **dims)
    filled = full_like(make, diagonal, plain_number(args["fill_value"], current.dtype))
    return make.emit("aten::diagonal_scatter", "", current, self=current, src=filled, **dims)


def full_like(make: Maker, like: Value, number: Any) -> Value:
    """A number in the sizes and the dtype of `like`."""
    return make.emit("aten::full_like", "", like, self=like, fill_value=number, dtype=like.dtype, layout=None, device=None,
                     pin_memory=None, memory_format=None)
