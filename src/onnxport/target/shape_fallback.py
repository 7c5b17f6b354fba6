"""dtype and shape of operators without a rule here: asked of ONNX's own inference, else of the operator's schema."""

from __future__ import annotations

import functools

import onnx
from onnx import defs

from onnxport.target.dims import Dim
from onnxport.target.shape_helpers import UNKNOWN, Attrs, Dims, Inputs, Known
from onnxport.target.value import Block, DataType, Value

_OPSETS = [onnx.helper.make_opsetid("", defs.onnx_opset_version())]


def infer(op_type: str, inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """What `onnx.shape_inference` knows of each output; dtypes by schema alone where it fails; nothing of an unknown operator."""
    schema = _schema(op_type)
    if schema is None:
        return [UNKNOWN] * outputs
    try:
        return _asked(schema, op_type, inputs, attrs, outputs)
    except Exception:  # its errors are of many types, and what it cannot say is no fault of the graph
        return [(_by_constraint(schema, inputs, index), None) for index in range(outputs)]


@functools.cache
def _schema(op_type: str) -> defs.OpSchema | None:
    return defs.get_schema(op_type) if defs.has(op_type) else None


def _asked(schema: defs.OpSchema, op_type: str, inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    names = ["" if v is None else f"i{n}" for n, v in enumerate(inputs)]
    plain = {k: v for k, v in attrs.items() if not isinstance(v, Block)}
    results = [f"o{n}" for n in range(outputs)]
    node = onnx.helper.make_node(op_type, names, results, **plain)
    sizes: dict[str, Dim] = {}
    given = [(name, v) for name, v in zip(names, inputs, strict=True) if v is not None]
    types = {name: _type(v, sizes) for name, v in given if v.dtype is not None}
    data = {name: tensor for name, v in given if (tensor := _tensor(name, v)) is not None}
    found = onnx.shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=_OPSETS)
    return [_known(found[name], sizes) if name in found else (_by_constraint(schema, inputs, i), None) for i, name in enumerate(results)]


def _type(value: Value, sizes: dict[str, Dim]) -> onnx.TypeProto:
    shape: list[int | str] | None = None
    if value.shape is not None:
        shape = []
        for size in value.shape:
            if isinstance(size, Dim):
                sizes[str(size)] = size
            shape.append(size if isinstance(size, int) else str(size))
    assert value.dtype is not None
    return onnx.helper.make_tensor_type_proto(int(value.dtype), shape)


def _tensor(name: str, value: Value) -> onnx.TensorProto | None:
    """The values of small integer inputs, which inference may need (axes, sizes)."""
    if value.const is None or value.content is None or not value.dtype or value.shape is None:
        return None
    if not all(isinstance(n, int) for n in value.content):
        return None
    return onnx.helper.make_tensor(name, int(value.dtype), [int(str(s)) for s in value.shape], [int(str(n)) for n in value.content])


def _known(found: onnx.TypeProto, sizes: dict[str, Dim]) -> Known:
    tensor = found.tensor_type
    dtype = DataType(tensor.elem_type) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return dtype, None
    shape: Dims = tuple([dim.dim_value if dim.HasField("dim_value") else sizes.get(dim.dim_param) for dim in tensor.shape.dim])
    return dtype, shape


def _by_constraint(schema: defs.OpSchema, inputs: Inputs, index: int) -> DataType | None:
    """The dtype of output `index`: that of an input with the same type variable, or the only one that is allowed."""
    if not schema.outputs:
        return None
    variable = schema.outputs[min(index, len(schema.outputs) - 1)].type_str
    for position, value in enumerate(inputs):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if value is not None and formal.type_str == variable:
            return value.dtype
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable), [variable])
    if len(allowed) != 1 or not allowed[0].startswith("tensor("):
        return None
    return _BY_NAME.get(allowed[0][7:-1])


_BY_NAME = {d.name.lower(): d for d in DataType}
