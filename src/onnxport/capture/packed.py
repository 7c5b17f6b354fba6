"""The objects in which quantised layers keep weight, bias and settings (`Conv2dPackedParams` and their like), opened.

What is in one is an argument like others, a dict: plain Python, the bias as a value, the weight as `Packed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

from onnxport.aten.graph import Arg, Value
from onnxport.aten.packed import Packed
from onnxport.capture import torch_private
from onnxport.capture.unregistered import unregistered

_OURS = ("_packed_params", "_packed_weight", "_packed_weight_", "param")  # what PyTorch's layers call them


def is_packed(item: torch.ScriptObject) -> bool:
    """Whether an object is a packed weight."""
    return torch_private.class_of(item) in _READERS


def opened(path: str, item: torch.ScriptObject) -> dict[str, Arg]:
    """What the packed weight that stands at `path` holds; the path of a constant is empty."""
    return _READERS[torch_private.class_of(item)](_layer_of(path), item)


def _layer_of(path: str) -> str:
    """The name of the layer: without what PyTorch calls the objects inside it."""
    parts = path.split(".")
    while len(parts) > 1 and parts[-1].startswith(_OURS):
        parts.pop()
    return ".".join(parts)


def _name(layer: str, part: str) -> str | None:
    return f"{layer}.{part}" if layer else None


def _bias(layer: str, bias: torch.Tensor | None) -> Value | None:
    return None if bias is None else Value("tensor", bias.dtype, tuple(bias.shape), bias.stride(), name=_name(layer, "bias"), constant=bias.detach())


def _linear(layer: str, item: Any) -> dict[str, Arg]:
    def unpack() -> tuple[torch.Tensor, torch.Tensor | None]:
        found: tuple[torch.Tensor, torch.Tensor | None] = torch.ops.quantized.linear_unpack(item)
        return found

    return {"weight": Packed(lambda: unpack()[0], _name(layer, "weight")), "bias": _bias(layer, unpack()[1]), "reduces": _reduces()}


def _reduces() -> bool:
    """Whether the kernels heed `reduce_range`: those of QNNPACK do not, and nothing but the setting tells whose kernels a layer has."""
    return torch.backends.quantized.engine != "qnnpack"


def _convolution(layer: str, item: Any) -> dict[str, Arg]:
    settings = {name: getattr(item, name)() for name in ("stride", "padding", "output_padding", "dilation", "groups", "transpose")}
    weight = Packed(lambda: item.unpack()[0], _name(layer, "weight"))
    return {"weight": weight, "bias": _bias(layer, item.unpack()[1]), "reduces": _reduces(), **settings}


def _embedding(layer: str, item: Any) -> dict[str, Arg]:
    return {"weight": Packed(item.unpack, _name(layer, "weight")), "bits": item.bit_rate()}


def _cell(layer: str, item: Any) -> dict[str, Arg]:
    kind, biases, _, flags, weights = item.__getstate__()[0]
    names = [_name(layer, side) or "" for side in ("ih", "hh")]
    parts = [_linear(name, weight) for name, weight in zip(names, weights, strict=True)]
    for part, bias, name in zip(parts, biases, names, strict=False):
        part["bias"] = _bias(name, bias)
    return {"kind": kind, "ih": parts[0], "hh": parts[1], "reduce_range": bool(flags and flags[0])}


_READERS: dict[str, Callable[[str, Any], dict[str, Arg]]] = {
    "LinearPackedParamsBase": _linear, "Conv2dPackedParamsBase": _convolution, "Conv3dPackedParamsBase": _convolution,
    "EmbeddingPackedParamsBase": _embedding, "CellParamsBase": _cell,
}


class Shelf:
    """The packed weights of a model that is traced. The tracer knows such objects only as attributes of a scripted module.

    script: that module.   contents: what its attributes hold, under their names.
    """

    def __init__(self, found: dict[str, Any]):
        keeper = torch.nn.Module()
        self.contents = SimpleNamespace()
        for number, (path, item) in enumerate(found.items()):
            setattr(keeper, f"packed{number}", item)
            setattr(self.contents, f"packed{number}", opened(path, item))
        self.script = torch_private.scripted_attributes(keeper)


def shelf_of(model: Any) -> Shelf | None:
    """The packed weights of a module or function; None where it has none."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for path, item in _objects(model):
        if id(item) not in seen and is_packed(item):
            seen.add(id(item))
            found[path] = item
    return Shelf(found) if found else None


def _objects(model: Any) -> Iterator[tuple[str, Any]]:
    modules = list(model.named_modules()) if isinstance(model, torch.nn.Module) else []
    for name, found in unregistered(model):
        if isinstance(found, torch.nn.Module):
            modules += found.named_modules(prefix=name)
    for path, module in modules:
        if not isinstance(module, torch.jit.ScriptModule):
            for key, item in vars(module).items():
                if isinstance(item, torch.ScriptObject):
                    yield f"{path}.{key}" if path else key, item

