"""`torch.onnx.ops.symbolic` and `symbolic_multi_out`: operators of PyTorch's that only say which node the file is to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxport.aten.graph import Node
from onnxport.symbolics.handles import ONNX, Writer
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.lower.lowering import Lowering

NAMESPACE = "onnx_symbolic::"
_HELD = {"i": "attr_ints", "f": "attr_floats", "s": "attr_strs"}


def lower(low: Lowering, node: Node, args: dict[str, Any]) -> Any:
    """The node, with the dtype and the shape that the caller gave for what ONNX says nothing of."""
    several = "shapes" in args
    types = args["onnx_dtypes"] if several else [args["onnx_dtype"]]
    shapes = args["shapes"] if several else [args["shape"]]
    domain, version = args["domain"], args["version"]
    opset = version or (low.g.opset if domain in ONNX else 1)
    made = Writer(low.g).write(domain, args["op_type"], args["inputs"], _attributes(args), len(types), opset)
    for value, dtype, shape in zip(made, types, shapes):
        _learn(value, DataType(dtype), tuple(shape))
    return made if several else made[0]


def _learn(value: Value, dtype: DataType, shape: Any) -> None:
    value.dtype = value.dtype or dtype
    value.shape = shape if value.shape is None else value.shape


def _attributes(args: dict[str, Any]) -> dict[str, Any]:
    """PyTorch keeps all numbers in one list: of each attribute its kind ("i", "is", ...) and where it begins and ends."""
    found = {}
    for name, kind, (start, end) in zip(args["attr_keys"], args["attr_types"], args["attr_pos"]):
        held = args[_HELD[kind[0]]][start:end]
        found[name] = held if kind.endswith("s") and len(kind) > 1 else held[0]
    return found
