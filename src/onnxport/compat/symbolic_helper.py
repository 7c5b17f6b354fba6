"""What symbolic functions are written with: `parse_args` and questions about values, under the names that people know."""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn, TypeVar

import torch

from onnxport import errors, options
from onnxport.capture import scratch
from onnxport.compat.scalar_type import JitScalarType
from onnxport.symbolics.context import GraphContext, attribute_of, constant_of
from onnxport.symbolics.old_context import SymbolicContext
from onnxport.target.schemas import NEWEST
from onnxport.target.value import DataType

__all__ = ["JitScalarType", "SymbolicContext", "args_have_same_dtype", "cast_pytorch_to_onnx", "is_complex_value", "parse_args",
           "pytorch_name_to_type", "quantized_args", "scalar_name_to_pytorch", "scalar_type_to_onnx", "scalar_type_to_pytorch_type"]

Function = TypeVar("Function", bound=Callable[..., Any])

CODES = {"v": "a value", "i": "an int", "is": "a list of ints", "f": "a float", "fs": "a list of floats", "b": "a bool", "s": "a string",
         "t": "a tensor", "none": "nothing"}

_default_onnx_opset_version = options.DEFAULT_OPSET
_onnx_main_opset = NEWEST
_onnx_stable_opsets = list(range(options.OLDEST_OPSET, NEWEST))
_constant_folding_opset_versions = list(range(options.OLDEST_OPSET, NEWEST + 1))


class _ByName(dict[str, Any]):
    """A table by TorchScript's name of an element type, which also takes the element type: `_try_get_scalar_type` gave names once."""

    def __missing__(self, key: Any) -> Any:
        if not isinstance(key, JitScalarType):
            raise KeyError(key)
        return self[key.scalar_name()]


_types = [JitScalarType(number) for number in range(JitScalarType.UNDEFINED)]
cast_pytorch_to_onnx = _ByName({t.scalar_name(): t.onnx_type() for t in _types})
scalar_name_to_pytorch = _ByName({t.scalar_name(): t.torch_name() for t in _types})
scalar_type_to_pytorch_type = [t.dtype() for t in _types]
scalar_type_to_onnx = [t.onnx_type() for t in _types]
pytorch_name_to_type = {t.torch_name(): t.dtype() for t in _types}


def __getattr__(name: str) -> Any:
    """`_export_onnx_opset_version`: the opset of the running export. What makes whole operators stands in `symbolic_nodes`."""
    if name == "_export_onnx_opset_version":
        return scratch.current_opset() or _default_onnx_opset_version
    if name == "_operator_export_type":
        return options.OperatorExportTypes.ONNX
    if name == "_training_mode":
        return options.TrainingMode.EVAL
    if not name.startswith("__") and hasattr(_nodes(), name):
        return getattr(_nodes(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    own = {"_export_onnx_opset_version", "_operator_export_type", "_training_mode"}
    return sorted({*globals(), *own, *(name for name in dir(_nodes()) if not name.startswith("__"))})


def _nodes() -> ModuleType:
    return importlib.import_module("onnxport.compat.symbolic_nodes")


# ---------------------------------------------------------------------- arguments


def parse_args(*arg_descriptors: str) -> Callable[[Function], Function]:
    """Turns the arguments of a symbolic function into Python, by one code each: "v" leaves a value alone, "i", "f", "b", "s", "t" are
    an int, float, bool, string, tensor, "is" and "fs" lists of ints and floats, "none" says that the argument is not used.

    What is not known when the model is exported is an `errors.SymbolicValueError` that names function and argument.
    """
    for code in arg_descriptors:
        if code not in CODES:
            raise errors.ArgumentError(f"parse_args({code!r}): a code is one of {', '.join(CODES)}")

    def decorate(function: Function) -> Function:
        names = list(inspect.signature(function).parameters)[1:]
        codes = dict(zip(names, arg_descriptors))

        @functools.wraps(function)
        def wrapper(g: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) + len(kwargs) > len(arg_descriptors):
                raise errors.SymbolicFunctionError(
                    f"{function.__name__} takes {len(arg_descriptors)} arguments behind g (parse_args), and got {len(args) + len(kwargs)}")
            parsed = [_parse(arg, code, name, function.__name__) for arg, code, name in
                      zip(args, arg_descriptors, [*names, *[f"argument {i}" for i in range(len(names), len(args))]])]
            named = {key: _parse(arg, codes.get(key, "v"), key, function.__name__) for key, arg in kwargs.items()}
            return function(g, *parsed, **named)

        return wrapper  # type: ignore[return-value]

    return decorate


def quantized_args(*arg_q_descriptors: bool, scale: float | None = None, zero_point: int | None = None,
                   quantize_output: bool = True) -> Callable[[Function], Function]:
    """Marks arguments that may be quantized. None is here: quantized tensors are written by the operators' own translations."""
    return lambda function: function


def _parse(value: Any, code: str, name: str, function: str) -> Any:
    if code in ("v", "none") or not scratch.is_value(value):
        return value
    if _is_none(value):
        return None
    try:
        return _convert(_known(value), code)
    except (TypeError, ValueError, _UnknownError) as cause:
        raise errors.SymbolicValueError(
            f"{function}: the argument {name!r} has to be {CODES[code]} that is known when the model is exported, and it is {_described(value)}; "
            "make it constant if possible, or give parse_args the code \"v\" for it") from cause


class _UnknownError(Exception):
    """A value is computed by the model."""


def _known(value: Any) -> Any:
    node = value.node()
    if node.kind() in ("onnx::Constant", "prim::Constant"):
        return constant_of(node)
    if node.kind() == "prim::ListConstruct":
        return [_known(v) for v in node.inputs()]
    raise _UnknownError


def _described(value: Any) -> str:
    kind = value.node().kind()
    found = value.type()
    known = f"{found.scalarType()} {found.varyingSizes()}" if found.kind() == "TensorType" else str(found)
    return f"an input of the graph ({known})" if kind == "prim::Param" else f"computed by {kind} ({known})"


def _convert(data: Any, code: str) -> Any:
    if code in ("is", "fs"):
        flat = data.reshape(-1).tolist() if isinstance(data, torch.Tensor) else data
        items = flat if isinstance(flat, (list, tuple)) else [flat]
        return [_convert(item, code[0]) for item in items]
    if code == "t":
        return data if isinstance(data, torch.Tensor) else torch.tensor(data)
    if code == "s":
        if not isinstance(data, str):
            raise TypeError
        return data
    number = data.item() if isinstance(data, torch.Tensor) else data
    return {"i": int, "f": float, "b": bool}[code](number)


def _node_get(node: Any, key: str) -> Any:
    """An attribute of a node, whatever its type."""
    return attribute_of(node, key)


def _maybe_get_const(value: Any, descriptor: str) -> Any:
    """What a constant holds, by a code of `parse_args`; a value that is computed is given back as it is."""
    if scratch.is_value(value) and (_is_onnx_constant(value) or _is_packed_list(value)):
        try:
            return _convert(_known(value), descriptor)
        except _UnknownError:
            return value
    return value


def _maybe_get_scalar(value: Any) -> Any:
    """The tensor of a constant of rank 0; anything else as it is."""
    found = _maybe_get_const(value, "t")
    return found if isinstance(found, torch.Tensor) and found.shape == () else value


def _get_const(value: Any, desc: str, arg_name: str) -> Any:
    """What a constant holds; an error that names the argument where the model computes it."""
    return _parse(value, desc, arg_name, "a symbolic function") if scratch.is_value(value) else value


def _unpack_list(list_value: Any) -> list[Any]:
    """The values of a list."""
    return list(list_value.node().inputs())


_unpack_tuple = _unpack_list


def _scalar(x: Any) -> Any:
    """A tensor of one element as a number; None for anything else."""
    if scratch.is_value(x):
        x = _maybe_get_const(x, "t")
    if isinstance(x, torch.Tensor) and x.numel() == 1:
        return x.item()
    return x if isinstance(x, (int, float)) else None


def _if_scalar_type_as(self: Any, tensor: Any, other: Any = None) -> Any:
    """A number as a tensor of the element type of `tensor`; a tensor as it is (an older spelling has `g` in front)."""
    if isinstance(self, GraphContext):
        self, tensor = tensor, other
    if not isinstance(self, (int, float)):
        return self
    return torch.tensor(self, dtype=JitScalarType.from_value(tensor).dtype())


# ---------------------------------------------------------------------- questions


def _is_none(x: Any) -> bool:
    return x is None or (scratch.is_value(x) and bool(x.node().mustBeNone()))


def _is_value(x: Any) -> bool:
    return scratch.is_value(x)


def _is_onnx_constant(value: Any) -> bool:
    return scratch.is_value(value) and value.node().kind() == "onnx::Constant"


def _is_constant(value: Any) -> bool:
    return not scratch.is_value(value) or value.node().kind() in ("onnx::Constant", "prim::Constant")


def _is_packed_list(value: Any) -> bool:
    return scratch.is_value(value) and value.node().kind() == "prim::ListConstruct"


def _is_tuple_construct(x: Any) -> bool:
    return scratch.is_value(x) and x.node().kind() == "prim::TupleConstruct"


def _kind(x: Any) -> str:
    return str(x.type().kind()) if scratch.is_value(x) else ""


def _is_tensor(x: Any) -> bool:
    return _kind(x) == "TensorType"


def _is_list(x: Any) -> bool:
    return _kind(x) == "ListType"


def _is_tensor_list(x: Any) -> bool:
    return _is_list(x) and x.type().getElementType().kind() == "TensorType"


def _is_scalar_list(x: Any) -> bool:
    return _is_list(x) and x.type().getElementType().kind() in ("IntType", "FloatType", "BoolType")


def _is_fp(value: Any) -> bool:
    found = _try_get_scalar_type(value)
    return found is not None and found != JitScalarType.UNDEFINED and found.dtype().is_floating_point


def _is_bool(value: Any) -> bool:
    return _try_get_scalar_type(value) == JitScalarType.BOOL


def is_complex_value(x: Any) -> bool:
    """Whether a value is of complex numbers."""
    found = _try_get_scalar_type(x)
    return found is not None and found.dtype().is_complex


def _get_tensor_rank(x: Any) -> int | None:
    """The number of dims; None where it is not known."""
    return x.type().dim() if _is_tensor(x) else None


def _get_tensor_sizes(x: Any, allow_nonstatic: bool = True) -> list[int | None] | None:
    """The sizes, None for one that may change; None where the rank is not known (or, without `allow_nonstatic`, a size)."""
    if not _is_tensor(x):
        return None
    sizes = x.type().varyingSizes()
    return sizes if allow_nonstatic or sizes is None or None not in sizes else None


def _get_tensor_dim_size(x: Any, dim: int) -> int | None:
    """One size; None where it may change."""
    sizes = _get_tensor_sizes(x)
    return None if sizes is None else sizes[dim]


def _try_get_scalar_type(*args: Any) -> JitScalarType | None:
    """The element type of the first value of which it is known."""
    for arg in args:
        found = JitScalarType.from_value(arg, JitScalarType.UNDEFINED)
        if found != JitScalarType.UNDEFINED:
            return found
    return None


def _type_promote_from_values(*args: Any) -> JitScalarType:
    """The element type that PyTorch promotes the values to."""
    known = [JitScalarType.from_value(arg).dtype() for arg in args]
    return JitScalarType.from_dtype(functools.reduce(torch.promote_types, known))


def args_have_same_dtype(args: Sequence[Any]) -> bool:
    """Whether all values are of one element type."""
    return len({JitScalarType.from_value(arg, JitScalarType.UNDEFINED) for arg in args}) <= 1


# ---------------------------------------------------------------------- errors


def _unimplemented(op: str, msg: str, value: Any = None) -> None:
    """Warns that an operator cannot be converted as it is called here; the symbolic function then returns None."""
    warnings.warn(f"{op}: {msg}{'' if value is None else f' ({value})'}", UserWarning, stacklevel=2)


def _onnx_unsupported(op_name: str, value: Any = None) -> NoReturn:
    """Says that ONNX cannot express an operator."""
    raise errors.SymbolicValueError(f"ONNX cannot express {op_name}{'' if value is None else f' ({value})'}")


def _onnx_opset_unsupported(op_name: str, current_opset: int, supported_opset: int, value: Any = None) -> NoReturn:
    """Says which opset could express an operator."""
    _onnx_opset_unsupported_detailed(op_name, current_opset, supported_opset, "it is not in this opset", value)


def _onnx_opset_unsupported_detailed(op_name: str, current_opset: int, supported_opset: int, reason: str, value: Any = None) -> NoReturn:
    """Says which opset could express an operator, and why this one cannot."""
    raise errors.SymbolicValueError(f"{op_name} cannot be written at opset {current_opset} ({reason}); opset {supported_opset} can"
                                    f"{'' if value is None else f' ({value})'}")


# ---------------------------------------------------------------------- nodes


def _unsqueeze_helper(g: Any, input: Any, axes_i: Sequence[int]) -> Any:
    """Unsqueeze in the form that the exported opset has."""
    return g.op_as(NEWEST, "Unsqueeze", input, torch.tensor(list(axes_i), dtype=torch.int64)) if len(axes_i) else input


def _squeeze_helper(g: Any, input: Any, axes_i: Any) -> Any:
    """Squeeze in the form that the exported opset has; axes may be a value."""
    axes = axes_i if scratch.is_value(axes_i) else torch.tensor(list(axes_i), dtype=torch.int64)
    return g.op_as(NEWEST, "Squeeze", input, axes)


def _reducesum_helper(g: Any, input: Any, axes_i: Any = None, keepdims_i: int = 1, noop_with_empty_axes_i: int = 0) -> Any:
    """ReduceSum in the form that the exported opset has."""
    axes = axes_i if axes_i is None or scratch.is_value(axes_i) else torch.tensor(list(axes_i), dtype=torch.int64)
    return g.op_as(NEWEST, "ReduceSum", input, *([] if axes is None else [axes]), keepdims_i=keepdims_i,
                   noop_with_empty_axes_i=noop_with_empty_axes_i)


def _slice_helper(g: Any, input: Any, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], steps: Sequence[int] | None = None) -> Any:
    """Slice in the form that the exported opset has."""
    numbers = [torch.tensor(list(n), dtype=torch.int64) for n in (starts, ends, axes, *([] if steps is None else [steps]))]
    return g.op_as(NEWEST, "Slice", input, *numbers)


def _reshape_helper(g: Any, input: Any, shape: Any, allowzero: int = 0) -> Any:
    """Reshape to a list of sizes or to a value."""
    given = _maybe_get_const(shape, "is")
    target = given if scratch.is_value(given) else torch.tensor(list(given), dtype=torch.int64)
    return g.op("Reshape", input, target, **({"allowzero_i": allowzero} if allowzero else {}))


def _select_helper(g: Any, self: Any, dim: int, index: Any, apply_reshape: bool = True) -> Any:
    """Gather along a dim; a number drops it."""
    found = _maybe_get_scalar(index)
    place = found if isinstance(found, (torch.Tensor, int)) or not scratch.is_value(found) else index
    return g.op("Gather", self, torch.tensor(place) if isinstance(place, int) else place, axis_i=dim)


def _size_helper(g: Any, self: Any, dim: Any) -> Any:
    """One size of a tensor as a value of rank 0."""
    return g.op("Gather", g.op("Shape", self), torch.tensor(_get_const(dim, "i", "dim")), axis_i=0)


def _numel_helper(g: Any, self: Any) -> Any:
    """The number of elements as a value of rank 0."""
    return g.op_as(NEWEST, "ReduceProd", g.op("Shape", self), torch.tensor([0]), keepdims_i=0)


def _flatten_helper(g: Any, input: Any, start_dim: int, end_dim: int, dim: int) -> Any:
    """The dims from `start_dim` to `end_dim` as one."""
    return g.call("aten::flatten", input, start_dim, end_dim)


def _topk_helper(g: Any, input: Any, k: Any, dim: int, largest: bool = True, sorted: bool = False, out: Any = None) -> Any:
    """The `k` largest (or smallest) along a dim: values and places."""
    return g.call("aten::topk", input, k, dim, largest, sorted)


def _sort_helper(g: Any, input: Any, dim: int, descending: bool = True, out: Any = None) -> Any:
    """Sorted along a dim: values and places."""
    return g.call("aten::sort", input, dim, descending)


def _maybe_cast_to_type(g: Any, value: Any, jit_type: JitScalarType) -> Any:
    """`value` as another element type where it is not of it."""
    if JitScalarType.from_value(value, JitScalarType.UNDEFINED) == jit_type:
        return value
    return g.op("Cast", value, to_i=int(jit_type.onnx_type()))


def _generate_wrapped_number(g: Any, scalar: Any) -> Any:
    """A number as a tensor of rank 0."""
    return g.op("Constant", value_t=torch.tensor(scalar, dtype=torch.float64 if isinstance(scalar, float) else None))


def _optional_input_placeholder_tensor(g: Any) -> Any:
    """An input that is left out."""
    return g.value(None)


def _handle_reduce_dim_none(g: Any, self: Any, op_name: str) -> Any:
    """A reduction over all dims, to rank 0."""
    return g.op(op_name, self, keepdims_i=0)


def check_training_mode(op_train_mode: int, op_name: str) -> None:
    """Nothing to check: each operator is exported in the mode that its module is in."""


def _overload_by_arg_count(function: Function) -> Function:
    """Chooses among the overloads that `function` returns by the number of arguments."""
    @functools.wraps(function)
    def wrapper(g: Any, *args: Any) -> Any:
        overloads = function(g, *args)
        for overload in overloads:
            count = len([p for p in inspect.signature(overload).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD])
            if count - 1 == len(args):
                return overload(g, *args)
        return _unimplemented(function.__name__, f"no overload takes {len(args)} arguments")

    return wrapper  # type: ignore[return-value]


def _set_opset_version(opset_version: int) -> NoReturn:
    """There is no such global: an export's opset is its argument."""
    raise errors.ArgumentError("the opset of an export is its argument opset_version; there is no global one to set")


def _onnx_type(value: Any) -> DataType:
    """The ONNX element type of a value."""
    return JitScalarType.from_value(value).onnx_type()
