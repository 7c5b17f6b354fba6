"""Nodes that ONNX Runtime does not know: ATen and PyTorch's custom operators run in PyTorch, others in the caller's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
import torch

from onnxport import errors
from onnxport.aten.graph import Parameter, Schema
from onnxport.aten.scalar_types import SCALAR_TYPES
from onnxport.backend.arrays import attributes_of, to_torch_value
from onnxport.capture import schema as schemas
from onnxport.capture import torch_private
from onnxport.runtime import RunError

ATEN_DOMAIN = "org.pytorch.aten"
INPUT_NAMES = "input_names"
_OURS = frozenset({"operator", "overload_name", INPUT_NAMES})  # attributes that say which operator it is, not how it is called
_WHERE = ("Layout", "Device", "MemoryFormat", "Generator", "Stream")  # of a tensor, not what is in it

Function = Callable[..., Any]
Run = Callable[[Sequence[Any]], Any]


def key_of(node: onnx.NodeProto) -> str:
    """`domain::Name`."""
    return f"{node.domain or 'ai.onnx'}::{node.op_type}"


def implementation(node: onnx.NodeProto, functions: Mapping[str, Function]) -> Run | None:
    """What runs a node on its inputs; None where nobody does."""
    found = functions.get(key_of(node))
    attributes = attributes_of(node)
    if found is not None:
        return lambda inputs: found(*inputs, **attributes)
    known = _overloads(_operator(node, attributes), str(attributes.get("overload_name", "")))
    return (lambda inputs: _in_pytorch(node, known, attributes, inputs)) if known else None


def _operator(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> str:
    """The name that PyTorch has for a node."""
    if node.domain == ATEN_DOMAIN:
        return f"aten::{attributes.get('operator', '') if node.op_type == 'ATen' else node.op_type}"
    return f"{node.domain}::{node.op_type}"


def _overloads(name: str, overload: str) -> list[Schema]:
    """The overload that a node names; where it names none, all that write into nothing, the nameless first if it is one of tensors."""
    found = [schemas.convert(schema) for schema in torch_private.schemas_of(name)]
    if overload:
        return [schema for schema in found if schema.overload == overload]
    found = [schema for schema in found if not schema.overload or not schema.writes]
    return sorted(found, key=lambda schema: (not any("Tensor" in p.type for p in schema.parameters), bool(schema.overload)))


def _in_pytorch(node: onnx.NodeProto, known: Sequence[Schema], attributes: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
    reasons = []
    for schema in known:
        try:
            arguments = bind(schema, inputs, attributes, by_position=node.op_type == "ATen")
        except _MismatchError as mismatch:
            reasons.append(f"{schema.name}.{schema.overload or 'default'}: {mismatch}")
            continue
        for name in schema.writes:
            arguments[name] = torch.clone(arguments[name])
        namespace, _, name = schema.name.partition("::")
        packet = getattr(getattr(torch.ops, namespace), name)
        return getattr(packet, schema.overload or "default")(**arguments)
    raise RunError(f"the node {key_of(node)} ({node.name or 'no name'}) does not fit the operator in PyTorch:\n  " + "\n  ".join(reasons))


# ---------------------------------------------------------------------- arguments


class _MismatchError(Exception):
    """A node does not hold what an overload takes."""


def bind(schema: Schema, inputs: Sequence[Any], attributes: Mapping[str, Any], *, by_position: bool) -> dict[str, Any]:
    """A node's inputs and attributes as the operator's arguments, by name.

    by_position: each argument that is no attribute takes an input (ATen nodes); otherwise only tensors do, and another argument
    that is not there was None or empty. The attribute `input_names`, where there is one, tells which input is whose.
    """
    unknown = set(attributes) - _OURS - {p.name for p in schema.parameters}
    if unknown:
        raise _MismatchError(f"it has no {', '.join(sorted(unknown))}")
    slots = _slots(schema, inputs, attributes, by_position)
    arguments: dict[str, Any] = {}
    for p in schema.parameters:
        if any(word in p.type for word in _WHERE) or p.name == "pin_memory":
            if p.type == "Device" and not p.has_default:  # `x.to(device, dtype)`: all is computed here
                arguments[p.name] = torch.device("cpu")
            continue
        if p.name in attributes:
            arguments[p.name] = _as(p, attributes[p.name])
        elif p.name in slots:
            arguments[p.name] = _as(p, slots[p.name])
        elif by_position and p.has_default:
            continue
        else:
            arguments[p.name] = _as(p, None)
    return arguments


def _slots(schema: Schema, inputs: Sequence[Any], attributes: Mapping[str, Any], by_position: bool) -> dict[str, Any]:
    """Which parameter takes which input, or list of inputs."""
    if INPUT_NAMES in attributes:
        return _named(schema, inputs, attributes[INPUT_NAMES])
    waiting = [p for p in schema.parameters if p.name not in attributes and (by_position or "Tensor" in p.type)]
    rest = list(inputs)
    slots: dict[str, Any] = {}
    for p in waiting:
        if not by_position and _is_list(p):
            length = len(inputs) - sum(not _is_list(other) for other in waiting)
            slots[p.name], rest = rest[:length], rest[length:]
        elif rest:
            slots[p.name] = rest.pop(0)
    if rest:
        raise _MismatchError(f"it takes {len(waiting)} inputs, and the node has {len(inputs)}")
    return slots


def _named(schema: Schema, inputs: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    listed = {p.name for p in schema.parameters if _is_list(p)}
    slots: dict[str, Any] = {}
    for position, name in enumerate(names):
        given = inputs[position] if position < len(inputs) else None
        if name in listed:
            slots.setdefault(name, []).append(given)
        else:
            slots[name] = given
    return slots


def _is_list(p: Parameter) -> bool:
    return "List" in p.type and "Tensor" in p.type


def _as(p: Parameter, value: Any) -> Any:
    """A value as a parameter of this type takes it."""
    optional = p.type.startswith("Optional[")
    kind = p.type[len("Optional["):-1] if optional else p.type
    if value is None:
        if optional:
            return None
        if kind.startswith("List"):
            return []
        raise _MismatchError(f"{p.name} ({p.type}) is missing")
    if "Tensor" in kind:
        return _tensors(p, kind, value)
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if kind.startswith("List"):
        return [_number(p, kind[len("List["):-1], item) for item in (value if isinstance(value, list) else [value])]
    return _number(p, kind, value[0] if isinstance(value, list) and len(value) == 1 else value)


def _tensors(p: Parameter, kind: str, value: Any) -> Any:
    if kind.startswith("List"):
        if isinstance(value, torch.Tensor) and value.numel() == 0:
            return []
        if isinstance(value, list):
            return value
    elif isinstance(value, torch.Tensor):
        return value
    elif isinstance(value, (bool, int, float)):
        return torch.tensor(value)
    raise _MismatchError(f"{p.name} is a {p.type}, and the node has a {type(value).__name__}")


def _number(p: Parameter, kind: str, value: Any) -> Any:
    if isinstance(value, list) or (kind == "str") != isinstance(value, str):
        raise _MismatchError(f"{p.name} is a {p.type}, and the node has a {type(value).__name__}")
    if kind == "ScalarType":
        return SCALAR_TYPES[int(value)]
    if kind == "int" and isinstance(value, float):
        raise _MismatchError(f"{p.name} is an int, and the node has {value}")
    return {"bool": bool, "int": int, "float": float}.get(kind, lambda same: same)(value)


# ---------------------------------------------------------------------- results


def results(node: onnx.NodeProto, given: Any) -> list[Any]:
    """What an implementation returned, as one value for each output."""
    wanted = len(node.output)
    if wanted == 1:
        return [_result(node, given)]
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(several) < wanted or (isinstance(given, list) and len(given) > wanted):
        raise RunError(f"{key_of(node)} gave {len(several)} results, and the node has {wanted} outputs")
    return [_result(node, value) for value in several[:wanted]]


def _result(node: onnx.NodeProto, value: Any) -> Any:
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    try:
        made = to_torch_value(value)
    except (TypeError, ValueError, errors.UnsupportedError):
        made = None
    if made is None or getattr(getattr(made, "dtype", None), "kind", "") == "O":
        raise RunError(f"{key_of(node)} gave a {type(value).__name__}, which is no tensor")
    return made
