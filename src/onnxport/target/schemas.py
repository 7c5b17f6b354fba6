"""What `onnx.defs` says of operators of the default domain, cached: it is asked for every node."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import onnx
from onnx import defs

from onnxport import errors

Schema = defs.OpSchema
NEWEST = defs.onnx_opset_version()


@functools.cache
def get(op_type: str, opset: int) -> Schema | None:
    """The schema in force at `opset`; None where the operator does not exist there or is deprecated."""
    try:
        schema = defs.get_schema(op_type, opset, "")
    except defs.SchemaError:
        return None
    return None if schema.deprecated else schema


@functools.cache
def since(op_type: str) -> int:
    """The lowest opset that knows `op_type` as today; `UnsupportedError` where none does."""
    newest = get(op_type, NEWEST)
    if newest is None:
        known = any(s.name == op_type and not s.domain for s in defs.get_all_schemas_with_history())
        why = "is deprecated in ONNX" if known else "is no operator of ONNX"
        raise errors.UnsupportedError(f"{op_type} {why} (opset {NEWEST} is the newest that is known)")
    opset = newest.since_version
    while opset > 1 and get(op_type, opset - 1) is not None:
        opset -= 1
    return opset


def has(op_type: str, opset: int) -> bool:
    """Whether `op_type` exists at `opset`."""
    return get(op_type, opset) is not None


def first(op_type: str, test: Callable[[Schema], bool]) -> int:
    """The lowest opset whose schema of `op_type` passes `test` (the newest where none does)."""
    for opset in range(since(op_type), NEWEST + 1):
        schema = get(op_type, opset)
        if schema is not None and test(schema):
            return opset
    return NEWEST


def default(schema: Schema, attribute: str) -> Any:
    """The default of an attribute; None where it has none."""
    value = schema.attributes[attribute].default_value
    if not value.name:
        return None
    plain = onnx.helper.get_attribute_value(value)
    return plain.decode() if isinstance(plain, bytes) else plain


@functools.cache
def types(op_type: str, opset: int) -> tuple[dict[str, frozenset[str]], tuple[str, ...], tuple[str, ...]]:
    """Names of the element types by constraint letter, and the letters of the inputs and of the outputs.

    A type that is fixed (`tensor(int64)`) is a letter of its own, which allows itself.
    """
    schema = get(op_type, opset)
    assert schema is not None
    letters = {c.type_param_str: _elements(c.allowed_type_strs) for c in schema.type_constraints}
    ins, outs = tuple(p.type_str for p in schema.inputs), tuple(p.type_str for p in schema.outputs)
    for letter in {*ins, *outs} - letters.keys():
        letters[letter] = _elements([letter])
    return letters, ins, outs


def _elements(names: Any) -> frozenset[str]:
    return frozenset(name[len("tensor("):-1].upper() for name in names if name.startswith("tensor("))
