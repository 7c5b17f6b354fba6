"""Runs an ONNX file in ONNX Runtime with torch tensors, of every type that both know."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from onnxport import errors, save
from onnxport.target.dtypes import from_torch

IN_MEMORY = 256 << 20  # bytes; larger models go through a file, which ONNX Runtime reads without a copy of the whole
_NO_NUMPY = frozenset({"bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"})
_QUIET = 3  # ONNX Runtime's level "error": its warnings are about what it optimises, not about us


class RunError(errors.OnnxExporterError):
    """ONNX Runtime is not installed, or cannot load or run the model."""


class Session:
    """One ONNX model, ready to run.

    source: a path, the bytes of a file, or an `onnx_ir.Model`.   Raises `RunError` where ONNX Runtime does not take it.
    inputs, outputs: their names; `inputs` leaves out those that have an initializer as default.
    types, shapes: by input, its type ("tensor(float)"), and its dims: numbers, names, or None.
    """

    def __init__(self, source: str | bytes | ir.Model, providers: Sequence[str] = ("CPUExecutionProvider",)):
        ort = _onnxruntime()
        options = ort.SessionOptions()
        options.log_severity_level = _QUIET
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        content = source if isinstance(source, (str, bytes)) else self._stored(source)
        try:
            self._session = ort.InferenceSession(content, options, providers=list(providers))
        except Exception as error:  # its exceptions have no common base
            raise RunError(f"ONNX Runtime cannot load the model{_too_new(str(error), ort.__version__)}: {error}") from error
        described = self._session.get_inputs()
        self.inputs = [i.name for i in described]
        self.outputs = [o.name for o in self._session.get_outputs()]
        self.types: dict[str, str] = {i.name: i.type for i in described}
        self.shapes: dict[str, list[int | str | None]] = {i.name: list(i.shape) for i in described}
        types = [v.type for v in [*described, *self._session.get_outputs()]]
        self._plain = not any(word in text for text in types for word in _NO_NUMPY)

    def _stored(self, model: ir.Model) -> str | bytes:
        if sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None) <= IN_MEMORY:
            return save.to_bytes(model)
        self._folder = tempfile.TemporaryDirectory(prefix="onnxport-")
        path = f"{self._folder.name}/model.onnx"
        save.write(model, path)
        return path

    def feeds(self, tensors: Sequence[torch.Tensor], parameters: Sequence[torch.Tensor] = ()) -> dict[str, torch.Tensor]:
        """What to run with: `tensors`, then `parameters` where the file has inputs for them. `ArgumentError` on another number."""
        given = list(tensors)
        if len(given) != len(self.inputs) and len(given) + len(parameters) == len(self.inputs):
            given += parameters
        if len(given) != len(self.inputs):
            names = ", ".join(self.inputs)
            raise errors.ArgumentError(f"the file has {len(self.inputs)} inputs ({names}), and the arguments hold {len(given)} tensors")
        return dict(zip(self.inputs, given))

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs in order: tensors, lists of tensors for sequences, None for an empty optional, arrays for strings.

        feeds: the same by input.
        """
        feeds = {name: self._as_pairs(name, value) for name, value in feeds.items()}
        try:
            if self._plain:
                return [_to_torch(value) for value in self._session.run(None, {name: _to_numpy(value) for name, value in feeds.items()})]
            values = {name: _to_ort(value) for name, value in feeds.items()}
            return [_from_ort(value) for value in self._session.run_with_ort_values(None, values)]
        except Exception as error:
            raise RunError(f"ONNX Runtime cannot run the model: {error}") from error


    def _as_pairs(self, name: str, value: Any) -> Any:
        """A complex tensor as the pairs of real numbers that a file has in its place."""
        if isinstance(value, torch.Tensor) and value.is_complex() and "complex" not in self.types.get(name, ""):
            return torch.view_as_real(value.detach().resolve_conj().resolve_neg())
        return value


def _too_new(words: str, version: str) -> str:
    """What to do where the installed ONNX Runtime is older than the opset of the file, if that is what its words say."""
    if "*guarantees* support for models stamped" not in words and "Unsupported model IR version" not in words:
        return ""
    return f" (onnxruntime {version} is older than its opset: export with a lower opset_version, or install a newer onnxruntime)"


def state_of(model: Any) -> list[torch.Tensor]:
    """The parameters and buffers of a module in `state_dict()` order: what a file without them wants after its own inputs."""
    if not isinstance(model, torch.nn.Module):
        return []
    return [value for value in model.state_dict().values() if isinstance(value, torch.Tensor)]


def providers() -> list[str]:
    """The devices that ONNX Runtime knows here, by its own names ("CPUExecutionProvider")."""
    return list(_onnxruntime().get_available_providers())


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise RunError("this needs ONNX Runtime: pip install onnxport[runtime]") from error
    return onnxruntime


def _to_numpy(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_to_numpy(member) for member in value]
    return value.detach().cpu().resolve_conj().resolve_neg().contiguous().numpy() if isinstance(value, torch.Tensor) else value


def _to_ort(tensor: Any) -> Any:
    ort = _onnxruntime()
    if not isinstance(tensor, torch.Tensor):
        raise TypeError("lists and strings cannot be given to a model that has bfloat16 or float8 inputs or outputs")
    tensor = tensor.detach().cpu().contiguous()
    dtype = from_torch(tensor.dtype)
    if dtype.name.lower() not in _NO_NUMPY:
        return ort.OrtValue.ortvalue_from_numpy(tensor.numpy())
    raw = tensor.view(torch.int16).numpy().view(np.uint16) if tensor.element_size() == 2 else tensor.view(torch.uint8).numpy()
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, dtype.value)


def _from_ort(value: Any) -> Any:
    if value.is_tensor() and value.data_type() == "tensor(bfloat16)":
        return torch.utils.dlpack.from_dlpack(value).clone()
    if value.is_tensor() and "float8" in value.data_type():
        import ctypes

        raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
        kinds = {k.lower().replace("float8_", "tensor(float8") + ")": getattr(torch, k) for k in dir(torch) if k.startswith("float8_e")}
        return torch.tensor(list(raw), dtype=torch.uint8).view(kinds[value.data_type()]).reshape(value.shape())
    return _to_torch(value.numpy())


def _to_torch(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_torch(member) for member in value]
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return array
    return torch.from_numpy(array if array.flags.writeable and array.flags.c_contiguous else array.copy())
