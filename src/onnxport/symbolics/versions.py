"""Nodes that somebody else wrote, in the form of whichever opset: brought into the newest form, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from onnxport import errors
from onnxport.target import schemas
from onnxport.target.dtypes import promote, to_torch
from onnxport.target.schemas import NEWEST, Schema
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_ALIASES = {("Pad", "constant_value"): "value", ("TopK", "K"): "k"}
_VECTORS = {("TopK", "K")}
_TYPES = frozenset({"to", "dtype", "output_dtype"})
_PROMOTED = frozenset({"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Concat", "Gemm", "MatMul", "Where", "PRelu", "Equal", "Greater",
                       "GreaterOrEqual", "Less", "LessOrEqual"})
_RENAMED = {"Scatter": "ScatterElements"}


@dataclass
class Written:
    """A node as it was written."""

    op_type: str
    inputs: list[Value | None]
    attrs: dict[str, Any]
    outputs: int


def is_known(op_type: str) -> bool:
    """Whether some opset of ai.onnx has this operator."""
    return next(_history(op_type, NEWEST), None) is not None


def write(g: Builder, node: Written, opset: int) -> list[Value]:
    """The outputs of a node.

    opset: whose form is meant where several would fit. Raises `UnsupportedError` where none fits or nothing today says the same.
    """
    written = node.outputs
    if node.op_type == "BatchNormalization" and opset < 14 and 1 < written <= 5:
        node.outputs, node.attrs = 3, {**node.attrs, "training_mode": 1}
        opset = 14
    made = _newest(g, node, opset)
    _align(g, made)
    values = g.several(made.op_type, *made.inputs, outputs=made.outputs, **made.attrs)
    return [*values, *(_saved_statistics(g, node) if written > len(values) else ())][:written]


def _newest(g: Builder, node: Written, opset: int) -> Written:
    """The node in the newest form."""
    if node.op_type == "GroupNormalization" and opset < 21:
        raise errors.UnsupportedError("a symbolic function wrote GroupNormalization in the form of opset 18, whose scales are those of groups; "
                                      "register it for opset 21, where they are those of channels")
    schema = _schema(g, node, opset)
    for name, data in node.attrs.items():
        node.attrs[name] = _of_kind(node.op_type, name, data, schema)
    change = _CHANGES.get(node.op_type)
    if change is not None:
        node = change(g, node, schema)
    node.op_type = _RENAMED.get(node.op_type, node.op_type)
    today = schemas.get(node.op_type, NEWEST)
    if today is None:
        raise errors.UnsupportedError(f"a symbolic function wrote {node.op_type} in the form of opset {schema.since_version}, "
                                      "which no newer operator of ONNX replaces")
    _move(g, node, schema, today)
    for name in list(node.attrs):
        if name not in today.attributes:
            _drop(node, name, schema)
    for name in today.attributes:
        old = schemas.default(schema, name) if name in schema.attributes else None
        if old is not None and schemas.default(today, name) != old:
            node.attrs.setdefault(name, old)
    for name, attribute in today.attributes.items():
        if attribute.required and name not in node.attrs:
            raise errors.UnsupportedError(f"a symbolic function wrote a {node.op_type} without the attribute {name!r}")
    for name in _TYPES & node.attrs.keys():
        node.attrs[name] = DataType(node.attrs[name])
    return node


def _history(op_type: str, opset: int) -> Iterator[Schema]:
    """The schemas in force at `opset` and, going down, before it; then those after it."""
    seen = set()
    for version in [*range(min(opset, NEWEST), 0, -1), *range(opset + 1, NEWEST + 1)]:
        schema = schemas.get(op_type, version)
        if schema is not None and schema.since_version not in seen:
            seen.add(schema.since_version)
            yield schema


def _schema(g: Builder, node: Written, opset: int) -> Schema:
    """The schema that the node was written for: that of `opset` where it fits, else that of the exported opset, else the nearest."""
    tried: list[str] = []
    for start in dict.fromkeys((opset, g.opset)):
        schema = schemas.get(node.op_type, start)
        if schema is not None and _misfit(node, schema) is None:
            return schema
    for schema in _history(node.op_type, opset):
        reason = _misfit(node, schema)
        if reason is None:
            return schema
        tried.append(f"opset {schema.since_version} {reason}")
    raise errors.UnsupportedError(f"a symbolic function wrote a {node.op_type} that no opset has: {'; '.join(tried)}")


def _misfit(node: Written, schema: Schema) -> str | None:
    """Why a node does not fit a schema."""
    for name in node.attrs:
        if name not in schema.attributes:
            return f"knows no attribute {name!r}"
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in node.attrs:
            return f"wants an attribute {name!r}"
    if not schema.min_input <= len(node.inputs) <= schema.max_input:
        return f"takes {_count(schema.min_input, schema.max_input)} inputs, not {len(node.inputs)}"
    if not 1 <= node.outputs <= schema.max_output:
        return f"has {_count(schema.min_output, schema.max_output)} outputs, not {node.outputs}"
    return None


_KINDS = {"INT": int, "FLOAT": float, "STRING": str, "TENSOR": torch.Tensor}


def _of_kind(op_type: str, name: str, data: Any, schema: Schema) -> Any:
    """An attribute as its schema wants it: a whole number is a float too, and a single one a list of one. Else it is an error."""
    wanted = schema.attributes[name].type.name  # type: ignore[attr-defined]
    kind, several = _KINDS.get(wanted.removesuffix("S")), wanted.endswith("S")
    items = data if isinstance(data, (list, tuple)) else [data]
    if kind is float:
        items = [float(item) if isinstance(item, int) else item for item in items]
    if kind is not None and (not all(isinstance(item, kind) for item in items) or (isinstance(data, (list, tuple)) and not several)):
        raise errors.UnsupportedError(f"a symbolic function wrote {op_type} with {name}={data!r}, which is no attribute of type {wanted}")
    return data if kind is None else list(items) if several else items[0]


def _count(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} or more" if high > 1000 else f"{low} to {high}"


def _move(g: Builder, node: Written, old: Schema, today: Schema) -> None:
    """Attributes that have become inputs."""
    for position, parameter in enumerate(today.inputs):
        name = _ALIASES.get((node.op_type, parameter.name), parameter.name)
        if name not in node.attrs or name in today.attributes or name not in old.attributes:
            continue
        data = node.attrs.pop(name)
        while len(node.inputs) <= position:
            node.inputs.append(None)
        if (node.op_type, parameter.name) in _VECTORS:
            data = [data]
        node.inputs[position] = g.const(data, _element(node, today, parameter))


def _element(node: Written, today: Schema, parameter: Any) -> DataType:
    """The element type of an input that was an attribute."""
    if parameter.type_str == "tensor(int64)" or parameter.type_str == "Tind":
        return DataType.INT64
    first = node.inputs[0]
    if parameter.type_str == today.inputs[0].type_str and first is not None and first.dtype is not None:
        return first.dtype
    names = next((c.allowed_type_strs for c in today.type_constraints if c.type_param_str == parameter.type_str), [parameter.type_str])
    return DataType.INT64 if "tensor(int64)" in names else DataType.FLOAT if "tensor(float)" in names else DataType.BOOL


def _drop(node: Written, name: str, schema: Schema) -> None:
    """An attribute that is gone: only with the value that it has by default."""
    if node.attrs[name] != schemas.default(schema, name):
        raise errors.UnsupportedError(f"a symbolic function wrote {node.op_type} with {name}={node.attrs[name]!r}, "
                                      f"as opset {schema.since_version} knew it; no newer opset does")
    del node.attrs[name]


# ---------------------------------------------------------------------- what no schema says


def _softmax(g: Builder, node: Written, schema: Schema) -> Written:
    """Until 12 the dims from `axis` on were one."""
    if schema.since_version >= 13:
        return node
    x = node.inputs[0]
    axis = node.attrs.get("axis", 1)
    if x is None or x.shape is None:
        raise errors.UnsupportedError(f"a {node.op_type} in the form of opset {schema.since_version} of a tensor of unknown rank")
    rank = len(x.shape)
    axis = axis + rank if axis < 0 else axis
    if axis == rank - 1:
        node.attrs["axis"] = -1
        return node
    flat = g.op("Flatten", x, axis=axis)
    return Written("Reshape", [g.op(node.op_type, flat, axis=-1), g.shape(x)], {}, 1)


def _split(g: Builder, node: Written, schema: Schema) -> Written:
    """Without sizes the parts are equal, as many as there are outputs."""
    if schema.since_version < 18 and "split" not in node.attrs and len(node.inputs) < 2:
        node.attrs["num_outputs"] = node.outputs
    return node


def _upsample(g: Builder, node: Written, schema: Schema) -> Written:
    """Upsample is Resize with asymmetric coordinates that are rounded down."""
    scales = node.inputs[1] if len(node.inputs) > 1 else g.const([float(s) for s in node.attrs["scales"]], DataType.FLOAT)
    return Written("Resize", [node.inputs[0], None, scales], _as_upsample(node), 1)


def _resize(g: Builder, node: Written, schema: Schema) -> Written:
    """Resize-10 took the scales as second input and had Upsample's coordinates."""
    if schema.since_version >= 11:
        return node
    return Written("Resize", [node.inputs[0], None, node.inputs[1]], _as_upsample(node), 1)


def _as_upsample(node: Written) -> dict[str, Any]:
    return {"mode": node.attrs.get("mode", "nearest"), "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def _roi_align(g: Builder, node: Written, schema: Schema) -> Written:
    """Until 16 there was no half pixel."""
    if schema.since_version < 16:
        node.attrs.setdefault("coordinate_transformation_mode", "output_half_pixel")
    return node


def _grid_sample(g: Builder, node: Written, schema: Schema) -> Written:
    """Until 20 the modes had other names."""
    if schema.since_version < 20:
        mode = node.attrs.get("mode", "bilinear")
        node.attrs["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return node


def _saved_statistics(g: Builder, node: Written) -> list[Value]:
    """Mean and variance of a batch: the last two outputs that BatchNormalization had in training until 14."""
    x = node.inputs[0]
    if x is None or x.rank is None:
        raise errors.UnsupportedError("BatchNormalization of a tensor of unknown rank, with the statistics of the batch as outputs")
    axes = g.const([axis for axis in range(x.rank) if axis != 1])
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes))
    return [g.op("ReduceMean", x, axes, keepdims=0), g.op("ReduceMean", g.op("Mul", centred, centred), axes, keepdims=0)]


def _dropout(g: Builder, node: Written, schema: Schema) -> Written:
    """Until 12 a Dropout was one of inference."""
    if schema.since_version < 12 and "ratio" not in node.attrs:
        node.attrs["ratio"] = 0.5
    return node


def _cast_like(g: Builder, node: Written, schema: Schema) -> Written:
    """Where the type is known, it is a Cast, which is older."""
    like = node.inputs[1]
    return node if like is None or like.dtype is None else Written("Cast", node.inputs[:1], {"to": like.dtype}, 1)


_Change = Callable[["Builder", Written, Schema], Written]
_CHANGES: dict[str, _Change] = {
    "Softmax": _softmax, "LogSoftmax": _softmax, "Hardmax": _softmax, "Split": _split, "Upsample": _upsample, "Resize": _resize,
    "RoiAlign": _roi_align, "GridSample": _grid_sample, "Dropout": _dropout,
    "CastLike": _cast_like,
}


def _align(g: Builder, node: Written) -> None:
    """Literals of rank 0 take the element type of the tensors beside them, as ONNX wants it and PyTorch meant it.

    Of other tensors of several types, arithmetic takes PyTorch's common type.
    """
    known = schemas.types(node.op_type, NEWEST) if schemas.get(node.op_type, NEWEST) is not None else None
    if known is None:
        return
    letters = known[1]
    by_letter: dict[str, list[int]] = {}
    for position, value in enumerate(node.inputs):
        letter = letters[min(position, len(letters) - 1)] if letters else ""
        if value is not None and not letter.startswith("tensor("):
            by_letter.setdefault(letter, []).append(position)
    for positions in by_letter.values():
        values = [node.inputs[p] for p in positions]
        dtypes = {v.dtype for v in values if v is not None and not _is_literal(v)}
        if len(dtypes) == 1:
            dtype = next(iter(dtypes))
            for position, value in zip(positions, values, strict=True):
                if value is not None and dtype is not None and value.dtype != dtype and _is_literal(value):
                    node.inputs[position] = _cast(g, node.op_type, value, dtype)
        if node.op_type in _PROMOTED:
            _promote(g, node, positions)
        _check_one_type(node, positions)


def _check_one_type(node: Written, positions: list[int]) -> None:
    """ONNX wants one type of these inputs."""
    parameters = schemas.get(node.op_type, NEWEST).inputs  # type: ignore[union-attr]
    values = [node.inputs[p] for p in positions if p < len(parameters) or parameters[-1].is_homogeneous]
    kinds = {value.dtype.name: None for value in values if value is not None and value.dtype is not None and not value.sequence}
    if len(kinds) > 1:
        raise errors.UnsupportedError(f"a symbolic function wrote {node.op_type} of {' and '.join(kinds)}, of which ONNX wants one type: cast one")


def _promote(g: Builder, node: Written, positions: list[int]) -> None:
    """Casts these inputs to PyTorch's common type, where all types are known."""
    operands = [value for value in (node.inputs[p] for p in positions) if value is not None]
    kinds = [(value.dtype, value.rank) for value in operands if value.dtype is not None]
    if len({dtype for dtype, _ in kinds}) < 2 or len(kinds) < len(operands):
        return
    common = promote(*kinds)
    for position in positions:
        value = node.inputs[position]
        if value is not None and value.dtype != common:
            node.inputs[position] = g.op("Cast", value, to=common)


def _is_literal(value: Value) -> bool:
    return value.const is not None and not value.const.parameter and value.shape == ()


def _cast(g: Builder, op_type: str, value: Value, dtype: DataType) -> Value:
    assert value.const is not None
    number: torch.Tensor = value.const.tensor
    wanted = to_torch(dtype)
    if number.dtype.is_floating_point and not wanted.is_floating_point and not wanted.is_complex and not float(number.item()).is_integer():
        raise errors.UnsupportedError(f"a symbolic function wrote {op_type} of {dtype.name} and the number {number.item()}, which is none of these; "
                                      "cast one of them")
    return g.constant(number.to(wanted))
