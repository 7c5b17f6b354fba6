"""ATen schemas, and binding of a node's arguments by their names."""

from __future__ import annotations

import functools
from typing import Any

import torch

from onnxport.aten.graph import Parameter, Schema
from onnxport.capture import torch_private

# c10::ScalarType, by number.
SCALAR_TYPES: dict[int, torch.dtype] = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32, 7: torch.float64,
    8: torch.complex32, 9: torch.complex64, 10: torch.complex128, 11: torch.bool, 12: torch.qint8, 13: torch.quint8, 14: torch.qint32,
    15: torch.bfloat16, 23: torch.float8_e5m2, 24: torch.float8_e4m3fn, 25: torch.float8_e5m2fnuz, 26: torch.float8_e4m3fnuz,
    27: torch.uint16, 28: torch.uint32, 29: torch.uint64,
}


@functools.cache
def parse(text: str) -> Schema:
    """The schema that `torch._C.Node.schema()` prints, e.g. ``aten::relu(Tensor self) -> Tensor``."""
    return convert(torch_private.parse_schema(text))


def convert(parsed: Any) -> Schema:
    """A `torch._C.FunctionSchema` as ours."""
    parameters = []
    marked: dict[bool, list[str]] = {True: [], False: []}
    for argument in parsed.arguments:
        has_default = argument.has_default_value()
        parameters.append(Parameter(argument.name, str(argument.real_type), argument.default_value if has_default else None, has_default))
        if argument.alias_info is not None:
            marked[argument.alias_info.is_write].append(argument.name)
    returns = tuple(str(r.type) for r in parsed.returns)
    return Schema(parsed.name, parsed.overload_name, tuple(parameters), returns, tuple(marked[True]), tuple(marked[False]))


def normalise(parameter: Parameter, arg: Any) -> Any:
    """An argument in the spelling that operators see: dtypes as `torch.dtype`, one int for an int list as a list."""
    if arg is None:
        return None
    if type(arg) is int and "ScalarType" in parameter.type:
        return SCALAR_TYPES[arg]
    if parameter.type == "List[int]" and isinstance(arg, int):
        return [arg]
    return arg
