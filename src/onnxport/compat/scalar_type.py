"""Element types by the many names that people have for them."""

from __future__ import annotations

import enum
from typing import Any

import torch

from onnxport import errors
from onnxport.capture import scratch
from onnxport.target.value import DataType

# (torch dtype, TorchScript's name, PyTorch's name in `torch.<name>Tensor` style, ONNX)
_TABLE: list[tuple[torch.dtype | None, str, str, DataType]] = [
    (torch.uint8, "Byte", "uint8_t", DataType.UINT8), (torch.int8, "Char", "int8_t", DataType.INT8),
    (torch.int16, "Short", "int16_t", DataType.INT16),
    (torch.int32, "Int", "int", DataType.INT32), (torch.int64, "Long", "int64_t", DataType.INT64), (torch.float16, "Half", "half", DataType.FLOAT16),
    (torch.float32, "Float", "float", DataType.FLOAT), (torch.float64, "Double", "double", DataType.DOUBLE),
    (torch.complex32, "ComplexHalf", "complex32", DataType.UNDEFINED), (torch.complex64, "ComplexFloat", "complex64", DataType.COMPLEX64),
    (torch.complex128, "ComplexDouble", "complex128", DataType.COMPLEX128), (torch.bool, "Bool", "bool", DataType.BOOL),
    (torch.qint8, "QInt8", "qint8", DataType.INT8), (torch.quint8, "QUInt8", "quint8", DataType.UINT8),
    (torch.qint32, "QInt32", "qint32", DataType.INT32), (torch.bfloat16, "BFloat16", "bfloat16", DataType.BFLOAT16),
    (torch.float8_e5m2, "Float8_e5m2", "float8_e5m2", DataType.FLOAT8E5M2),
    (torch.float8_e4m3fn, "Float8_e4m3fn", "float8_e4m3fn", DataType.FLOAT8E4M3FN),
    (torch.float8_e5m2fnuz, "Float8_e5m2fnuz", "float8_e5m2fnuz", DataType.FLOAT8E5M2FNUZ),
    (torch.float8_e4m3fnuz, "Float8_e4m3fnuz", "float8_e4m3fnuz", DataType.FLOAT8E4M3FNUZ),
    (None, "Undefined", "undefined", DataType.UNDEFINED),
]


class JitScalarType(enum.IntEnum):
    """The element types that TorchScript knows, numbered as it numbers the older ones (`dtype` arguments of symbolic functions)."""

    UINT8 = 0
    INT8 = 1
    INT16 = 2
    INT = 3
    INT64 = 4
    HALF = 5
    FLOAT = 6
    DOUBLE = 7
    COMPLEX32 = 8
    COMPLEX64 = 9
    COMPLEX128 = 10
    BOOL = 11
    QINT8 = 12
    QUINT8 = 13
    QINT32 = 14
    BFLOAT16 = 15
    FLOAT8E5M2 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E5M2FNUZ = 18
    FLOAT8E4M3FNUZ = 19
    UNDEFINED = 20

    @classmethod
    def from_name(cls, name: str | None) -> JitScalarType:
        """By TorchScript's name ("Float") or PyTorch's ("float")."""
        if name is None:
            raise errors.ArgumentError("the name of an element type is None")
        for number, (_, script, plain, _) in enumerate(_TABLE):
            if name in (script, plain):
                return cls(number)
        raise errors.ArgumentError(f"{name!r} is the name of no element type")

    @classmethod
    def from_dtype(cls, dtype: torch.dtype | None) -> JitScalarType:
        """By torch dtype; None is undefined."""
        for number, (known, _, _, _) in enumerate(_TABLE):
            if known == dtype:
                return cls(number)
        raise errors.ArgumentError(f"{dtype} is an element type that TorchScript does not know")

    @classmethod
    def from_onnx_type(cls, onnx_type: Any) -> JitScalarType:
        """By ONNX's number or enum member."""
        wanted = DataType(int(onnx_type)) if onnx_type is not None else DataType.UNDEFINED
        for number, (_, _, _, known) in enumerate(_TABLE):
            if known == wanted and (wanted != DataType.UNDEFINED or number == cls.UNDEFINED):
                return cls(number)
        raise errors.ArgumentError(f"{wanted.name} is an element type that PyTorch does not have")

    @classmethod
    def from_value(cls, value: Any, default: Any = None) -> JitScalarType:
        """Of a `torch._C.Value` or a tensor; `default` (or an error) where it is not known."""
        if isinstance(value, torch.Tensor):
            return cls.from_dtype(value.dtype)
        if scratch.is_value(value):
            kind = value.type()
            found = cls._of_type(kind)
            if found is not None:
                return found
        if default is not None:
            return default  # type: ignore[no-any-return]
        raise errors.SymbolicValueError(f"the element type of {value} is not known")

    @classmethod
    def _of_type(cls, kind: Any) -> JitScalarType | None:
        if kind.kind() == "ListType":
            kind = kind.getElementType()
        if kind.kind() == "TensorType":
            return None if kind.dtype() is None else cls.from_dtype(kind.dtype())
        return {"IntType": cls.INT64, "FloatType": cls.DOUBLE, "BoolType": cls.BOOL}.get(kind.kind())

    def scalar_name(self) -> str:
        """TorchScript's name: "Float"."""
        return _TABLE[self][1]

    def torch_name(self) -> str:
        """PyTorch's name: "float"."""
        return _TABLE[self][2]

    def dtype(self) -> torch.dtype:
        """The torch dtype."""
        found = _TABLE[self][0]
        if found is None:
            raise errors.ArgumentError("an undefined element type has no torch dtype")
        return found

    def onnx_type(self) -> DataType:
        """ONNX's element type."""
        return _TABLE[self][3]

    def onnx_compatible(self) -> bool:
        """Whether ONNX has it."""
        return self not in (JitScalarType.UNDEFINED, JitScalarType.COMPLEX32)


def valid_scalar_name(name: str) -> bool:
    """Whether TorchScript knows an element type of this name."""
    return any(name == script for _, script, _, _ in _TABLE)


def valid_torch_name(name: str) -> bool:
    """Whether PyTorch knows an element type of this name."""
    return any(name == plain for _, _, plain, _ in _TABLE)
