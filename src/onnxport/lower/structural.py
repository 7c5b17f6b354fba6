"""Nodes that move Python values about and compute nothing: sizes, conversions, containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport import errors
from onnxport.aten.graph import Node
from onnxport.lower import containers, control, scalars
from onnxport.target.dims import Dim
from onnxport.target.dtypes import is_float, is_integer
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering


def _size(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    x = args["self"]
    if x.shape is None:
        raise errors.UnsupportedError("the size of a tensor of unknown rank")
    dim = args.get("dim")
    return list(x.shape) if dim is None else x.shape[dim]


def _shape(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    return low.g.shape(args["self"])


def _numel(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    x = args["self"]
    return low.g.integer(low.g.op("Size", x)) if x.shape is None else x.numel


_OF_ALL = frozenset({"aten::sum.", "aten::mean.", "aten::prod.", "aten::max.", "aten::min.", "aten::any.", "aten::all.", "aten::std.", "aten::var.",
                     "aten::norm.Scalar", "aten::flatten.using_ints"})


def as_vector(low: Lowering, node: Node, args: dict[str, Any]) -> dict[str, Any]:
    """For what asks for all elements alike, a tensor of unknown rank (the branches of an If gave different ones) as a vector."""
    x = args.get("self")
    if not isinstance(x, Value) or x.shape is not None or f"{node.op}.{node.overload}" not in _OF_ALL:
        return args
    if node.op == "aten::flatten" and (args.get("start_dim", 0), args.get("end_dim", -1)) != (0, -1):
        return args
    return {**args, "self": low.g.op("Reshape", x, low.g.sizes([-1]))}


def _dim(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    x = args["self"]
    if x.shape is None and low.graph.scripted:
        raise errors.UnsupportedError("the rank of a tensor is not known here (the branches of an If gave it different ones)")
    return x.rank


def _num_to_tensor(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    value = next(iter(args.values()))
    if isinstance(value, (int, Dim)) and not isinstance(value, bool):
        return low.g.scalar(value)
    return value


def _tuple(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    return tuple(args.values())


def _to_int(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    value = next(iter(args.values()))
    if not isinstance(value, Value):
        return value if isinstance(value, Dim) else int(value)
    if not is_integer(value.dtype):
        value = low.g.op("Cast", value, to=DataType.INT64)
    return low.g.integer(value) if low.graph.scripted else low.g.size_of(value)


def _to_number(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """`ScalarImplicit` and its like: a tensor of rank 0 that goes on as a number; operators take it as a tensor."""
    value = next(iter(args.values()))
    if isinstance(value, Value) and value.content is not None and value.rank == 0:
        return value.content[0]
    if isinstance(value, Value) and value.const is not None and not value.const.parameter:
        return value.const.tensor.item()
    if low.graph.scripted and isinstance(value, Value) and is_float(value.dtype):
        return scalars.wide(low.g, value)
    return value


def _to_float(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """`float(x)`."""
    value = _to_number(low, node, args)
    if low.graph.scripted and isinstance(value, (Dim, Value)):
        return scalars.wide(low.g, value)
    return float(value) if isinstance(value, (int, str)) else value


def _to_bool(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """`bool(x)`."""
    return control.truth(low, next(iter(args.values()))) if low.graph.scripted else _to_number(low, node, args)


HANDLERS: dict[str, Any] = {
    **containers.HANDLERS, **control.HANDLERS,
    "aten::size": _size, "aten::sym_size": _size, "aten::_shape_as_tensor": _shape, "aten::numel": _numel, "aten::sym_numel": _numel,
    "aten::dim": _dim,
    "prim::NumToTensor": _num_to_tensor, "aten::Int": _to_int, "aten::IntImplicit": _to_int,
    "aten::ScalarImplicit": _to_number, "aten::Float": _to_float, "aten::FloatImplicit": _to_number, "aten::Bool": _to_bool,
    "aten::item": _to_number, "prim::TupleConstruct": _tuple,
}
