"""The `custom_translation_table` of an export: which functions translate which operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnxport import errors, notice
from onnxport.capture import torch_private

# (operator, overload) -> functions, of which the first that takes the arguments is used. The overload None is every one.
Table = Mapping[tuple[str, "str | None"], tuple[Callable[..., Any], ...]]


def read(given: Mapping[Any, Any]) -> Table:
    """The table by the names of operators. A key or a value that cannot be one is an `ArgumentError`."""
    table: dict[tuple[str, str | None], tuple[Callable[..., Any], ...]] = {}
    for key, value in given.items():
        functions = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if not functions or not all(map(callable, functions)):
            raise errors.ArgumentError(f"custom_translation_table[{key}]={value!r}: it must be a function of onnxscript, or a list of them")
        name = torch_private.name_of_operator(key)
        if name is not None:
            table[name] = functions
        elif _is_of_sizes(key):
            notice.warn(f"custom_translation_table[{key}] changes nothing: onnxport computes with sizes itself", UserWarning)
        else:
            raise errors.ArgumentError(f"custom_translation_table holds {key!r}: only operators can stand in it, such as torch.ops.aten.relu.default")
    return table


def _is_of_sizes(key: Any) -> bool:
    """Whether this is a function that programs of torch.export call for sizes."""
    return getattr(key, "__module__", "") in ("_operator", "operator", "math") or getattr(key, "__name__", "").startswith("sym_")
