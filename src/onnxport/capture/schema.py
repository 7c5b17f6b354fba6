"""ATen schemas, and binding of a node's arguments by their names."""

from __future__ import annotations

import functools
from typing import Any

from onnxport.aten.graph import Parameter, Schema
from onnxport.aten.scalar_types import SCALAR_TYPES
from onnxport.capture import torch_private


@functools.cache
def parse(text: str) -> Schema:
    """The schema that `torch._C.Node.schema()` prints, e.g. ``aten::relu(Tensor self) -> Tensor``."""
    return convert(torch_private.parse_schema(text))


def convert(parsed: Any) -> Schema:
    """A `torch._C.FunctionSchema` as ours."""
    parameters = []
    marked: dict[bool, list[str]] = {True: [], False: []}
    written: dict[str, str] = {}
    for argument in parsed.arguments:
        has_default = argument.has_default_value()
        parameters.append(Parameter(argument.name, str(argument.real_type), argument.default_value if has_default else None, has_default))
        if argument.alias_info is not None:
            marked[argument.alias_info.is_write].append(argument.name)
            written.update(dict.fromkeys(argument.alias_info.before_set, argument.name) if argument.alias_info.is_write else {})
    returns = tuple(str(r.type) for r in parsed.returns)
    back = tuple(next((written[name] for name in sorted(r.alias_info.before_set) if name in written), "") if r.alias_info is not None else ""
                 for r in parsed.returns)
    return Schema(parsed.name, parsed.overload_name, tuple(parameters), returns, tuple(marked[True]), tuple(marked[False]), back)


def normalise(parameter: Parameter, arg: Any) -> Any:
    """An argument in the spelling that operators see: dtypes as `torch.dtype`, one int for an int list as a list."""
    if arg is None:
        return None
    if type(arg) is int and "ScalarType" in parameter.type:
        return SCALAR_TYPES[arg]
    if parameter.type == "List[int]" and isinstance(arg, int):
        return [arg]
    return arg
