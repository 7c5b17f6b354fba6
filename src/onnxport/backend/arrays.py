"""numpy arrays, ONNX tensors and torch tensors of the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch

from onnxport import errors
from onnxport.target.dtypes import from_torch, to_torch
from onnxport.target.value import DataType


def to_torch_value(value: Any) -> Any:
    """An array, a number or a list of them as tensors; strings stay arrays, None stays None."""
    if value is None or isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (list, tuple)) and value and any(isinstance(member, (np.ndarray, torch.Tensor)) for member in value):
        return [to_torch_value(member) for member in value]
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return array
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(np.require(array, requirements=["C", "W"]))
    dtype = to_torch(DataType(int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))))  # bfloat16 and float8 of ml_dtypes
    return torch.frombuffer(bytearray(array.tobytes()), dtype=dtype).reshape(array.shape) if array.size else torch.empty(array.shape, dtype=dtype)


def to_numpy_value(value: Any) -> Any:
    """A tensor or a list of tensors as arrays, which is what backends give."""
    if isinstance(value, list):
        return [to_numpy_value(member) for member in value]
    if not isinstance(value, torch.Tensor):
        return value
    plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    try:
        return plain.numpy()
    except TypeError:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(int(from_torch(plain.dtype)))
        return plain.view(torch.uint8 if plain.element_size() == 1 else torch.int16).numpy().view(dtype)


def constant(tensor: onnx.TensorProto) -> Any:
    """What an initializer holds."""
    return to_torch_value(onnx.numpy_helper.to_array(tensor))


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes as Python data: tensors as torch tensors, floats as the shortest decimal that names them."""
    return {attribute.name: _plain(attribute) for attribute in node.attribute}


def _plain(attribute: onnx.AttributeProto) -> Any:
    kind = onnx.AttributeProto
    if attribute.type == kind.FLOAT:
        return _shortest(attribute.f)
    if attribute.type == kind.FLOATS:
        return [_shortest(number) for number in attribute.floats]
    if attribute.type == kind.STRING:
        return attribute.s.decode()
    if attribute.type == kind.STRINGS:
        return [text.decode() for text in attribute.strings]
    if attribute.type == kind.TENSOR:
        return constant(attribute.t)
    if attribute.type == kind.TENSORS:
        return [constant(tensor) for tensor in attribute.tensors]
    value = onnx.helper.get_attribute_value(attribute)
    return list(value) if attribute.type == kind.INTS else value


def _shortest(number: float) -> float:
    """ONNX keeps a float attribute in 32 bits: 0.1 would come back as 0.10000000149."""
    return float(str(np.float32(number)))


def type_of(value: Any, name: str, declared: onnx.TypeProto | None) -> onnx.TypeProto:
    """The ONNX type of a value, with its rank; an empty list has the type that the file declares."""
    if isinstance(value, torch.Tensor):
        return onnx.helper.make_tensor_type_proto(int(from_torch(value.dtype)), [None] * value.dim())
    if isinstance(value, list):
        if value:
            return onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(int(from_torch(value[0].dtype)), None))
        if declared is not None and declared.WhichOneof("value"):
            return declared
        return onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None))
    raise errors.UnsupportedError(f"the value {name!r} is {'empty' if value is None else 'a tensor of strings'}, which the parts of a file with "
                                  "kept operators cannot pass on")
