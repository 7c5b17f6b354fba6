"""Where the wanted opset or ONNX Runtime has no kernel for a dtype, and which wider dtype computes the same.

Two tables say what is allowed: the schemas in `onnx.defs`, and `kernels.json`, which `tools/kernel_table.py` measures
on ONNX Runtime's CPU provider. A dtype that the schema forbids has to go; one that only ONNX Runtime lacks goes where a
wider one gives the same numbers, and stays where none does (the file is right, and others may run it).

What is the same: integers in a wider integer, for the cast back drops the bits that the narrow one would not have had;
integers in a float that holds each of them, where the operator only picks or compares elements; float16 and bfloat16 in
float32, where the schema forbids them (ONNX Runtime itself computes float16 in float32 where it has no kernel, and
bfloat16 is for other runtimes). int64 has nothing wider: where it is not allowed, and `forms` knows no other way to
say the same, it is refused.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxport import errors
from onnxport.target import schemas
from onnxport.target.dtypes import FLOATS, INTEGERS
from onnxport.target.schemas import NEWEST
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

BOOL, FLOAT, DOUBLE, HALF, BRAIN = DataType.BOOL, DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16
INT64, INT32, INT16, INT8 = DataType.INT64, DataType.INT32, DataType.INT16, DataType.INT8
UINT64, UINT32, UINT16, UINT8 = DataType.UINT64, DataType.UINT32, DataType.UINT16, DataType.UINT8


@dataclass(frozen=True)
class Widening:
    """Cast the inputs of these positions, compute, and cast these outputs back."""

    inputs: dict[int, DataType]
    outputs: dict[int, DataType]


# ---------------------------------------------------------------------- what ONNX Runtime runs


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(Path(__file__).with_name("kernels.json").read_text())
    return table


def measured_with() -> str:
    """The version of ONNX Runtime that the table was measured with."""
    return str(_table()["onnxruntime"])


@functools.cache
def _rows(op_type: str, opset: int) -> tuple[dict[str, frozenset[str]], ...]:
    """The dtypes that each kernel takes, by constraint letter.

    A kernel serves the versions of its range; an open end says only that no newer version was known, so that such a
    kernel serves the first version of its range and no later one.
    """
    schema = schemas.get(op_type, opset)
    if schema is None:
        return ()
    version = schema.since_version
    return tuple({letter: frozenset(t.upper() for t in types) for letter, types in letters.items()}
                 for first, last, letters in _table()["kernels"].get(op_type, ())
                 if first == version or (last is not None and first <= version <= last))


@functools.cache
def _functions(op_type: str, opset: int) -> frozenset[str]:
    """The dtypes for which ONNX Runtime expands the operator into others at `opset`."""
    found = [types for first, last, types in _table()["functions"].get(op_type, ()) if first <= opset <= last]
    return frozenset(t.upper() for types in found for t in types)


@functools.cache
def runs(op_type: str, opset: int, dtype: DataType | None = None) -> bool:
    """Whether ONNX Runtime's CPU provider runs the operator at `opset`: for some dtype, or for this one of the first input."""
    rows, expanded = _rows(op_type, opset), _functions(op_type, opset)
    if dtype is None:
        return bool(rows or expanded)
    letter = schemas.types(op_type, opset)[1][:1] if schemas.has(op_type, opset) else ()
    if not letter:
        return bool(rows)
    return any(_takes(row, letter[0], dtype) for row in rows) or not _names(dtype).isdisjoint(expanded)


def lacking(op_type: str, opset: int, dtype: DataType | None) -> bool:
    """Whether another form should be written, because ONNX Runtime does not run this one for a dtype that it computes with."""
    return dtype in _COMPUTED and not runs(op_type, opset, dtype)


@functools.cache
def highest(op_type: str) -> int | None:
    """The highest opset at which ONNX Runtime runs the operator; None where it never does."""
    return next((opset for opset in range(NEWEST, 0, -1) if runs(op_type, opset)), None)


def _names(dtype: DataType) -> set[str]:
    """float16 runs wherever float32 does: ONNX Runtime casts by itself."""
    return {"FLOAT16", "FLOAT"} if dtype == HALF else {dtype.name}


def _takes(row: dict[str, frozenset[str]], letter: str, dtype: DataType) -> bool:
    allowed = row.get(letter)
    return allowed is None or dtype not in _COMPUTED or not _names(dtype).isdisjoint(allowed)


# ---------------------------------------------------------------------- what is the same in another dtype

_COMPUTED = frozenset({BOOL, FLOAT, DOUBLE, HALF, *INTEGERS})  # the others are none of ONNX Runtime's CPU business
_WIDER: dict[DataType, tuple[DataType, ...]] = {
    BOOL: (INT32, INT64), INT8: (INT32, INT64), INT16: (INT32, INT64), UINT8: (INT32, INT64, UINT32, UINT64),
    UINT16: (INT32, INT64, UINT32, UINT64), INT32: (INT64,), UINT32: (INT64, UINT64), HALF: (FLOAT,), BRAIN: (FLOAT,),
}
# Floats that hold every value of the integer.
_AS_FLOAT: dict[DataType, tuple[DataType, ...]] = {
    BOOL: (FLOAT, DOUBLE), INT8: (FLOAT, DOUBLE), INT16: (FLOAT, DOUBLE), UINT8: (FLOAT, DOUBLE), UINT16: (FLOAT, DOUBLE),
    INT32: (DOUBLE,), UINT32: (DOUBLE,),
}
# Operators whose results are elements that they read, or that say only how elements compare.
_PICKING = frozenset({
    "ArgMax", "ArgMin", "Clip", "Compress", "DepthToSpace", "Equal", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "MaxPool", "MaxUnpool", "Min", "OneHot", "Pad", "ReduceMax", "ReduceMin", "Reshape",
    "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Trilu",
    "Unique", "Unsqueeze", "Where",
})
_NARROW = frozenset({"Clip", "DepthToSpace", "Max", "Min", "Pad", "ReduceMax", "ReduceMin", "SpaceToDepth", "Where"})
# Operators that only ask whether an element is zero.
_TRUTH = frozenset({"NonZero"})
# The dtype is what they are about, or it belongs to no element: not to be touched.
_SKIPPED = frozenset({
    "BitCast", "CastLike", "ConcatFromSequence", "Constant", "ConstantOfShape", "ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear",
    "EyeLike", "Identity", "If", "Loop", "MatMulInteger", "Optional", "OptionalGetElement", "OptionalHasElement", "QLinearConv",
    "QLinearMatMul", "QuantizeLinear", "RandomNormalLike", "RandomUniformLike", "Scan", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
    "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "Shape", "Size", "SplitToSequence",
})
# Operators with an attribute that says the dtype of the result.
_RESULT_TYPE = {
    "Bernoulli": "dtype", "BlackmanWindow": "output_datatype", "Cast": "to", "EyeLike": "dtype", "HammingWindow": "output_datatype",
    "HannWindow": "output_datatype", "MelWeightMatrix": "output_datatype", "Multinomial": "dtype", "RandomNormal": "dtype",
    "RandomNormalLike": "dtype", "RandomUniform": "dtype", "RandomUniformLike": "dtype",
}
# Dtypes that `forms` knows another way for, below an opset.
_OTHERWISE: dict[str, tuple[int, frozenset[DataType]]] = {
    "Celu": (28, FLOATS),
    "Clip": (12, frozenset({INT32, INT64})),
    "Equal": (11, FLOATS),
    "Flatten": (9, INTEGERS | {BOOL}),
    "Gemm": (NEWEST + 1, INTEGERS),
    "Greater": (9, frozenset({INT64})),
    "Less": (9, frozenset({INT64})),
    "Max": (12, frozenset({INT32, INT64})),
    "Min": (12, frozenset({INT32, INT64})),
    "Pad": (11, frozenset({INT64})),
    "Pow": (12, INTEGERS),
    "Relu": (NEWEST + 1, INTEGERS),
    "Sum": (NEWEST + 1, INTEGERS),
}


def _candidates(op_type: str, dtype: DataType) -> tuple[DataType, ...]:
    """The dtype itself, then wider ones that compute the same, the cheapest first."""
    if op_type == "Cast":  # a widening is made of casts
        return (dtype,)
    if op_type in _TRUTH:
        return dtype, BOOL
    narrow = (UINT8,) if dtype == BOOL and op_type in _NARROW else ()
    floats = _AS_FLOAT.get(dtype, ()) if op_type in _PICKING else ()
    return (dtype, *narrow, *_WIDER.get(dtype, ()), *floats)


# ---------------------------------------------------------------------- deciding

_decided: dict[tuple[str, int, tuple[DataType | None, ...]], Widening | None] = {}
_UNDECIDED = object()


def widening(g: Builder, op_type: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any]) -> Widening | None:
    """The casts that `op_type` needs around it at `g.opset`, or None.

    Raises `UnsupportedError` where the opset does not allow a dtype and no other computes the same.
    """
    dtypes = tuple([None if v is None else v.dtype for v in inputs])
    key = (op_type, g.opset, dtypes)
    found: Any = _decided.get(key, _UNDECIDED)
    if found is _UNDECIDED:
        found = _decided[key] = _decide(op_type, g.opset, dtypes)
    attribute = _RESULT_TYPE.get(op_type)
    if attribute is not None and attrs.get(attribute):
        _check_result(op_type, g.opset, attrs[attribute])
    widening_found: Widening | None = found
    return widening_found


@functools.cache
def _check_result(op_type: str, opset: int, dtype: int) -> None:
    """Refuses a dtype that the opset does not let the operator make."""
    if schemas.has(op_type, opset):
        letters, _, outs = schemas.types(op_type, opset)
        if DataType(dtype).name not in letters[outs[0]]:
            raise _refusal(f"{op_type} to", op_type, opset, DataType(dtype), 0)


@dataclass(frozen=True)
class _Slot:
    """Inputs that share a dtype: their positions, it, and the constraint letters that they have at the opset."""

    letter: str
    positions: tuple[int, ...]
    dtype: DataType
    old: frozenset[str]


def _decide(op_type: str, opset: int, dtypes: tuple[DataType | None, ...]) -> Widening | None:
    if op_type in _SKIPPED or not schemas.has(op_type, opset) or not schemas.has(op_type, NEWEST):
        return None
    slots = _slots(op_type, opset, dtypes)
    if not slots:
        return None
    below, others = _OTHERWISE.get(op_type, (0, frozenset()))
    if opset < below and any(slot.dtype in others for slot in slots):
        return None
    chosen = _choose(op_type, opset, slots)
    return None if all(slot.dtype == dtype for slot, dtype in zip(slots, chosen)) else _casts(op_type, slots, chosen)


def _slots(op_type: str, opset: int, dtypes: tuple[DataType | None, ...]) -> list[_Slot]:
    letters, olds = schemas.types(op_type, NEWEST)[1], schemas.types(op_type, opset)[1]
    positions: dict[str, list[int]] = {}
    for position, dtype in enumerate(dtypes):
        if dtype is not None and letters:
            positions.setdefault(letters[min(position, len(letters) - 1)], []).append(position)
    slots = []
    for letter, where in positions.items():
        found = {dtypes[i] for i in where}
        old = frozenset(olds[min(i, len(olds) - 1)] for i in where if i < len(olds) or len(dtypes) > len(letters))
        (dtype,) = found if len(found) == 1 else (None,)
        if dtype is not None and old:
            slots.append(_Slot(letter, tuple(where), dtype, old))
    return slots


def _choose(op_type: str, opset: int, slots: list[_Slot]) -> tuple[DataType, ...]:
    """The cheapest dtypes that schema and kernel allow; those that the schema allows where no kernel takes any."""
    allowed = None
    for dtypes in _combinations(op_type, slots):
        if _by_schema(op_type, opset, slots, dtypes):
            if _by_kernel(op_type, opset, slots, dtypes):
                return dtypes
            allowed = allowed or dtypes
    if allowed is None:
        letters = schemas.types(op_type, opset)[0]
        bad = next(s for s in slots if any(s.dtype.name not in letters[old] for old in s.old))
        raise _refusal(f"{op_type} of", op_type, opset, bad.dtype, bad.positions[0])
    return allowed


def _combinations(op_type: str, slots: list[_Slot]) -> Iterator[tuple[DataType, ...]]:
    choices = [_candidates(op_type, slot.dtype) for slot in slots]
    ranks = sorted(itertools.product(*(range(len(c)) for c in choices)), key=sum)
    return (tuple(choice[rank] for choice, rank in zip(choices, row)) for row in ranks)


def _by_schema(op_type: str, opset: int, slots: list[_Slot], dtypes: tuple[DataType, ...]) -> bool:
    letters = schemas.types(op_type, opset)[0]
    return all(dtype.name in letters[old] for slot, dtype in zip(slots, dtypes) for old in slot.old)


def _by_kernel(op_type: str, opset: int, slots: list[_Slot], dtypes: tuple[DataType, ...]) -> bool:
    if dtypes[0] not in _COMPUTED or not _names(dtypes[0]).isdisjoint(_functions(op_type, opset)):
        return True
    return any(all(_takes(row, old, dtype) for slot, dtype in zip(slots, dtypes) for old in slot.old) for row in _rows(op_type, opset))


def _casts(op_type: str, slots: list[_Slot], chosen: tuple[DataType, ...]) -> Widening:
    outs = schemas.types(op_type, NEWEST)[2]
    changed = [(slot, dtype) for slot, dtype in zip(slots, chosen) if slot.dtype != dtype]
    return Widening({i: dtype for slot, dtype in changed for i in slot.positions},
                    {i: slot.dtype for slot, _ in changed for i, letter in enumerate(outs) if letter == slot.letter})


def _refusal(what: str, op_type: str, opset: int, dtype: DataType, position: int) -> errors.UnsupportedError:
    """Names the lowest opset that allows the dtype, or says that none does."""
    for higher in range(opset + 1, NEWEST + 1):
        if schemas.has(op_type, higher):
            letters, ins, outs = schemas.types(op_type, higher)
            formals = outs if what.endswith(" to") else ins
            if formals and dtype.name in letters[formals[min(position, len(formals) - 1)]]:
                return errors.UnsupportedError(f"{what} {dtype.name} needs opset {higher} or higher (opset_version={opset} was asked)")
    return errors.UnsupportedError(f"{what} {dtype.name} is not in ONNX, at any opset")
