"""Element types: torch's and ONNX's names for the same thing, and PyTorch's promotion of them."""

from __future__ import annotations

import torch

from onnxport import errors
from onnxport.target.value import DataType

_PAIRS = [
    (torch.float32, DataType.FLOAT), (torch.float64, DataType.DOUBLE), (torch.float16, DataType.FLOAT16),
    (torch.bfloat16, DataType.BFLOAT16), (torch.int64, DataType.INT64), (torch.int32, DataType.INT32),
    (torch.int16, DataType.INT16), (torch.int8, DataType.INT8), (torch.uint8, DataType.UINT8), (torch.bool, DataType.BOOL),
    (torch.uint16, DataType.UINT16), (torch.uint32, DataType.UINT32), (torch.uint64, DataType.UINT64),
    (torch.complex64, DataType.COMPLEX64), (torch.complex128, DataType.COMPLEX128),
    (torch.float8_e4m3fn, DataType.FLOAT8E4M3FN), (torch.float8_e4m3fnuz, DataType.FLOAT8E4M3FNUZ),
    (torch.float8_e5m2, DataType.FLOAT8E5M2), (torch.float8_e5m2fnuz, DataType.FLOAT8E5M2FNUZ),
]
_TO_ONNX = dict(_PAIRS)
_TO_TORCH = {onnx: torch_ for torch_, onnx in _PAIRS}
FLOATS = frozenset({DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16})
INTEGERS = frozenset({DataType.INT64, DataType.INT32, DataType.INT16, DataType.INT8, DataType.UINT8, DataType.UINT16,
                      DataType.UINT32, DataType.UINT64})
COMPLEX = frozenset({DataType.COMPLEX64, DataType.COMPLEX128})


def from_torch(dtype: torch.dtype) -> DataType:
    """The ONNX element type of a torch dtype; `UnsupportedError` where ONNX has none."""
    found = _TO_ONNX.get(dtype)
    if found is None:
        raise errors.UnsupportedError(f"ONNX has no tensors of {dtype}")
    return found


def to_torch(dtype: DataType) -> torch.dtype:
    """The torch dtype of an ONNX element type."""
    found = _TO_TORCH.get(dtype)
    if found is None:
        raise errors.UnsupportedError(f"PyTorch has no tensors of {dtype.name}")
    return found


def component(dtype: DataType) -> DataType:
    """The type of the two parts of a complex number; of other types, the type itself."""
    return {DataType.COMPLEX64: DataType.FLOAT, DataType.COMPLEX128: DataType.DOUBLE}.get(dtype, dtype)


def is_float(dtype: DataType | None) -> bool:
    """float16, bfloat16, float32 or float64."""
    return dtype in FLOATS


def is_integer(dtype: DataType | None) -> bool:
    """Any integer type; bool is none."""
    return dtype in INTEGERS


def promote(*operands: tuple[DataType, int | None] | bool | int | float) -> DataType:
    """PyTorch's result type of tensors, given as (dtype, rank), and Python numbers.

    Tensors with dims decide; a tensor of rank 0 counts only where it is of a higher kind (bool < int < float < complex),
    a number likewise, and then as the default dtype of its kind.
    """
    dimensioned = zero = None
    number: torch.dtype | None = None
    for operand in operands:
        if isinstance(operand, tuple):
            dtype = to_torch(operand[0])
            if operand[1] == 0:
                zero = dtype if zero is None else torch.promote_types(zero, dtype)
            else:
                dimensioned = dtype if dimensioned is None else torch.promote_types(dimensioned, dtype)
        else:
            kind = torch.bool if isinstance(operand, bool) else torch.int64 if isinstance(operand, int) else (
                torch.get_default_dtype() if isinstance(operand, float) else torch.complex64)
            number = kind if number is None else torch.promote_types(number, kind)
    result = dimensioned
    for candidate in (zero, number):
        if candidate is None:
            continue
        if result is None:
            result = candidate
        elif _kind(candidate) > _kind(result):
            result = result.to_complex() if _kind(candidate) == 3 and _kind(result) == 2 else candidate
    assert result is not None
    return from_torch(result)


def _kind(dtype: torch.dtype) -> int:
    return 0 if dtype == torch.bool else 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1


_PLAIN = frozenset({*FLOATS, *INTEGERS, DataType.BOOL})


def holds_all(wide: DataType, narrow: DataType) -> bool:
    """Whether each number of `narrow` is one of `wide`, so that a cast there and on loses nothing."""
    if wide not in _PLAIN or narrow not in _PLAIN or wide == DataType.BOOL:
        return wide == narrow
    a, b = to_torch(narrow), to_torch(wide)
    if narrow == DataType.BOOL:
        return True
    if narrow in FLOATS:
        return wide in FLOATS and torch.promote_types(a, b) == b
    low, high = torch.iinfo(a).min, torch.iinfo(a).max
    if wide in FLOATS:
        return max(-low, high + 1) <= min(2 / torch.finfo(b).eps, torch.finfo(b).max)
    return torch.iinfo(b).min <= low and high <= torch.iinfo(b).max
