"""Tensors as functions that are written for onnxscript see them, and the writer of what they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxport import errors
from onnxport.symbolics import versions
from onnxport.symbolics.context import literal
from onnxport.target import schemas
from onnxport.target.builder import Builder
from onnxport.target.dims import Dim
from onnxport.target.dtypes import from_torch, to_torch
from onnxport.target.value import Block, DataType, Value

ONNX = ("", "ai.onnx")


def _binary(op_type: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    return lambda self, other: self.writer.handles("", op_type, [other, self] if swapped else [self, other])


def _unary(op_type: str) -> Callable[[Any], Any]:
    return lambda self: self.writer.handles("", op_type, [self])


class Handle(ir.Value):
    """A value of the builder with what onnx_ir tells of a value: `shape`, `dtype`, `type`, and `const_value` where the model's code holds it.

    Python's operators on it are ONNX operators.
    """

    __slots__ = ("built", "writer")

    def __init__(self, writer: Writer, built: Value):
        self.writer, self.built = writer, built
        data = literal(built)
        kind: Any = None if built.dtype is None else ir.SequenceType(ir.TensorType(built.dtype)) if built.sequence else ir.TensorType(built.dtype)
        shape = None if built.shape is None else ir.Shape([size if isinstance(size, int) else str(size) for size in built.shape])
        super().__init__(name=built.name, shape=shape, type=kind, const_value=None if data is None else ir.tensor(data))

    @property
    def rank(self) -> int | None:
        """The number of dims, or None."""
        return self.built.rank

    __add__, __radd__ = _binary("Add"), _binary("Add", swapped=True)
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", swapped=True)
    __mul__, __rmul__ = _binary("Mul"), _binary("Mul", swapped=True)
    __truediv__, __rtruediv__ = _binary("Div"), _binary("Div", swapped=True)
    __pow__, __rpow__ = _binary("Pow"), _binary("Pow", swapped=True)
    __matmul__, __rmatmul__ = _binary("MatMul"), _binary("MatMul", swapped=True)
    __and__, __rand__ = _binary("And"), _binary("And", swapped=True)
    __or__, __ror__ = _binary("Or"), _binary("Or", swapped=True)
    __lt__, __le__, __gt__, __ge__ = _binary("Less"), _binary("LessOrEqual"), _binary("Greater"), _binary("GreaterOrEqual")
    __neg__, __invert__ = _unary("Neg"), _unary("Not")

    def __mod__(self, other: Any) -> Any:
        """The remainder, by the sign of the dividend for floats, as ONNX has it."""
        floats = self.dtype is not None and self.dtype.is_floating_point()
        return self.writer.handles("", "Mod", [self, other], {"fmod": 1} if floats else {})

    def __eq__(self, other: object) -> Any:
        return False if other is None else self.writer.handles("", "Equal", [self, other])

    def __ne__(self, other: object) -> Any:
        return True if other is None else ~self.writer.handles("", "Equal", [self, other])

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    __index__ = __int__

    def _number(self) -> Any:
        data = literal(self.built)
        if data is None or data.numel() != 1:
            raise errors.SymbolicValueError(f"Python asks for the number in {self}, which is known only when the model runs")
        return data.item()


class Writer:
    """Writes nodes into the builder for a function that knows nothing of it."""

    def __init__(self, builder: Builder):
        self.builder = builder

    def argument(self, arg: Any) -> Any:
        """An operator's argument as such functions take it: handles for tensors and for sizes that may change, dtypes by ONNX's number."""
        if isinstance(arg, Value):
            return Handle(self, arg)
        if isinstance(arg, Dim):
            return Handle(self, self.builder.scalar(arg))
        if isinstance(arg, (list, tuple)):
            return [self.argument(item) for item in arg]
        if isinstance(arg, torch.dtype):
            return from_torch(arg)
        return str(arg) if isinstance(arg, (torch.device, torch.layout, torch.memory_format)) else arg

    def handles(self, domain: str, op_type: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None = None, outputs: int = 1,
                opset: int = schemas.NEWEST) -> Any:
        """As `write`, for handles: one, or a tuple of several."""
        made = tuple(Handle(self, value) for value in self.write(domain, op_type, inputs, attrs or {}, outputs, opset))
        return made[0] if outputs == 1 else made

    def write(self, domain: str, op_type: str, inputs: Sequence[Any], attrs: Mapping[str, Any], outputs: int, opset: int) -> list[Value]:
        """Adds a node in the form of its domain's `opset`. Inputs may be literals of Python, numpy, torch or onnx_ir."""
        plain = {name: _attribute(data) for name, data in attrs.items() if data is not None}
        schema = schemas.get(op_type, opset) if domain in ONNX else None
        if domain in ONNX and op_type == "Constant":
            return [self._constant(plain)]
        values = self._operands(schema, inputs)
        if domain in ONNX:
            return versions.write(self.builder, versions.Written(op_type, values, plain, outputs), opset)
        self.builder.domains.setdefault(domain, self.builder.versions.get(domain, opset))
        return self.builder.several(op_type, *values, outputs=outputs, domain=domain, **plain)

    def _constant(self, attrs: dict[str, Any]) -> Value:
        (name, data), = attrs.items()
        if "string" in name or "sparse" in name:
            raise errors.UnsupportedError(f"a Constant with {name}, which is no tensor of numbers")
        return self.builder.const(data, DataType.FLOAT if "float" in name else DataType.INT64 if "int" in name else None)

    def _operands(self, schema: schemas.Schema | None, inputs: Sequence[Any]) -> list[Value | None]:
        """The inputs as values; a literal takes the type of the tensors that have to be of its type."""
        letters = [] if schema is None else [p.type_str for p in schema.inputs]
        letters += letters[-1:] * (len(inputs) - len(letters))
        known = {letter: item.built.dtype for letter, item in reversed(list(zip(letters, inputs))) if isinstance(item, Handle)}
        return [self.value(item, known.get(letter), letter.startswith("seq(")) for item, letter in zip(inputs, letters or [""] * len(inputs))]

    def value(self, item: Any, dtype: DataType | None = None, sequence: bool = False) -> Value | None:
        """A handle, a literal or a list of these as a value. dtype: of numbers that Python writes."""
        if item is None:
            return None
        if isinstance(item, Value):
            return item
        if isinstance(item, Handle):
            return item.built
        if isinstance(item, (list, tuple)) and (sequence or any(isinstance(member, Handle) for member in item)):
            members = [self.value(member, dtype) for member in item if member is not None]
            if sequence:
                return self.builder.op("SequenceConstruct", *members)
            flat = [self.builder.op("Reshape", member, self.builder.const([-1])) for member in members if member is not None]
            return flat[0] if len(flat) == 1 else self.builder.op("Concat", *flat, axis=0)
        if isinstance(item, (bool, int, float, list, tuple)):
            return self.builder.const(list(item) if isinstance(item, tuple) else item, dtype)
        return self.builder.const(to_tensor(item))


def to_tensor(data: Any) -> torch.Tensor:
    """A tensor of onnx_ir, protobuf, numpy or onnxscript as torch's."""
    if isinstance(data, torch.Tensor):
        return data
    held = getattr(data, "value", data)  # onnxscript wraps arrays so
    try:
        tensor = ir.tensor(held)
        dtype = to_torch(tensor.dtype)
    except (TypeError, ValueError, errors.UnsupportedError) as cause:
        raise errors.SymbolicValueError(f"a {type(data).__name__} cannot be an input of an ONNX node") from cause
    sizes = tensor.shape.numpy()
    return torch.frombuffer(bytearray(tensor.tobytes()), dtype=dtype).reshape(sizes) if tensor.size else torch.empty(sizes, dtype=dtype)


def _attribute(data: Any) -> Any:
    """An attribute as the builder takes it."""
    if isinstance(data, ir.Attr):
        data = data.value
    if isinstance(data, Handle):
        known = literal(data.built)
        if known is None:
            raise errors.SymbolicValueError(f"an attribute has to be known now, and {data} is computed")
        data = known.tolist()
    if isinstance(data, (list, tuple)):
        return [_attribute(item) for item in data]
    if isinstance(data, bool) or type(data) is DataType:
        return int(data)
    return data if isinstance(data, (int, float, str, Block)) else data.decode() if isinstance(data, bytes) else to_tensor(data)
