"""What `symbolic_opset7` ... `symbolic_opset28` hold: a function for each ATen operator, to be called inside a symbolic function.

`relu(g, x)` takes the operator's arguments in the order of its ATen schema, or by name. All opsets have the same functions: what
they write is right at whichever opset is exported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from onnxport import errors
from onnxport.capture import scratch, torch_private
from onnxport.compat import symbolic_helper
from onnxport.ops import registry
from onnxport.symbolics.context import GraphContext

Function = Callable[..., Any]


def select(g: GraphContext, self: Any, dim: int, index: Any) -> Any:
    """One place along a dim, which goes; an index that is a vector of places keeps it, as ONNX Gather does."""
    places = g.plain(index)
    if scratch.is_value(index) and not isinstance(places, (int, float)):
        return g.op("Gather", self, index, axis_i=symbolic_helper._get_const(dim, "i", "dim"))
    return g.call("aten::select", self, dim, index)


def size(g: GraphContext, self: Any, dim: Any = None) -> Any:
    """The shape as a vector, or one size of it."""
    return g.op("Shape", self) if dim is None else g.call("aten::size", self, dim)


def padded(kind: str) -> Function:
    """Padding by a list of sizes, for as many dims as it has pairs."""
    def function(g: GraphContext, input: Any, padding: Any) -> Any:
        sizes = symbolic_helper._get_const(padding, "is", "padding")
        return g.call(f"aten::{kind}{len(sizes) // 2}d", input, sizes)

    function.__name__ = function.__qualname__ = kind
    return function


def tanhshrink(g: GraphContext, self: Any) -> Any:
    """x - tanh(x)."""
    return g.op("Sub", self, g.op("Tanh", self))


def unused(g: GraphContext) -> Any:
    """An input that is left out."""
    return g.value(None)


_OWN: dict[str, Function] = {
    "select": select, "size": size, "tanhshrink": tanhshrink, "unused": unused,
    "reflection_pad": padded("reflection_pad"), "replication_pad": padded("replication_pad"),
}
# Names that differ from the operator's.
_ALIASES = {"_slice": "aten::slice", "_var_mean": "aten::var_mean", "_grid_sampler": "aten::grid_sampler",
            "_affine_grid_generator": "aten::affine_grid_generator"}
_OTHER = ("parse_args", "_unimplemented", "_scalar", "_if_scalar_type_as")


@functools.cache
def find(name: str) -> Function | None:
    """The function of this name; None where there is no such operator."""
    if name in _OWN:
        return _OWN[name]
    if name in _OTHER:
        return getattr(symbolic_helper, name)  # type: ignore[no-any-return]
    if name in ("symbolic_helper", "sym_help"):
        return symbolic_helper  # type: ignore[return-value]
    domain, _, rest = name.partition("_")
    full = f"{domain}::{rest}" if domain in ("prim", "quantized") and rest else _ALIASES.get(name, f"aten::{name}")
    if not torch_private.schemas_of(full):
        return None
    return _function(full, name)


def names() -> list[str]:
    """The operators that have a function of their own."""
    return sorted({*_OWN, *_OTHER, *(name.partition("::")[2].partition(".")[0] for name in registry.operators() if name.startswith("aten::"))})


def _function(full: str, name: str) -> Function:
    def function(g: GraphContext, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(g, GraphContext):
            raise errors.SymbolicFunctionError(f"{name}(g, ...): g must be the graph that a symbolic function of onnxport was given, "
                                               f"not a {type(g).__name__}")
        return g.call(full, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Translates {full} inside a symbolic function."
    return function
