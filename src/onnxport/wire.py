"""An `onnx_ir.Model` as the bytes of an ONNX `ModelProto`, without making one.

A protobuf message is a row of fields, each a tag, a length and its content, so it can be put together from the inside out
with nothing but `bytes`. This is several times quicker than filling protobuf objects, and a large tensor stays a hole
in the row (`Hole`) until it is streamed into the file. Fields stand in the order of their numbers, as in what protobuf
itself writes.

The field numbers are those of onnx.proto, which never change their meaning.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

SMALL = 1024  # tensors of fewer bytes never become holes
_RAW_TYPES = (ir.DataType.STRING, ir.DataType.UNDEFINED)
_EXTERNAL = 1  # TensorProto.DataLocation
_FUNCTION_VALUE_INFO = 10  # the IR version since when functions have it
_DEVICES = 11  # the IR version since when models tell about devices


class Omit(enum.Enum):
    """How a tensor is written without its data."""

    SHAPED = "name, type and shape stay"
    EMPTY = "the shape is [0]: onnx.checker takes it for a complete tensor"


@dataclass(frozen=True)
class External:
    """Where in a data file beside the model the data of a tensor lies."""

    location: str
    offset: int
    length: int


@dataclass(frozen=True)
class Hole:
    """Raw data of a tensor, to be written from the tensor itself."""

    tensor: Any
    nbytes: int

    def __len__(self) -> int:
        return self.nbytes


Piece = bytes | Hole


def varint(number: int) -> bytes:
    """An unsigned or (in 64 bits) negative number in protobuf's variable length."""
    if number < 0:
        number += 1 << 64
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


_VARINTS = [varint(n) for n in range(4096)]


def _length(number: int) -> bytes:
    return _VARINTS[number] if number < 4096 else varint(number)


def _tag(field: int, wire_type: int = 2) -> bytes:
    return varint(field << 3 | wire_type)


_TAGS = [_tag(field) for field in range(32)]


def _field(field: int, content: bytes) -> bytes:
    return _TAGS[field] + _length(len(content)) + content


def _text(field: int, text: str | bytes | None) -> bytes:
    if not text:
        return b""
    return _field(field, text if isinstance(text, bytes) else text.encode("utf-8"))


def _number(field: int, number: int) -> bytes:
    return _tag(field, 0) + varint(number)


def _properties(field: int, properties: Mapping[str, str] | None) -> bytes:
    if not properties:
        return b""
    if len(properties) == 1:
        ((key, value),) = properties.items()
        return _field(field, _field(1, key.encode()) + _field(2, value.encode()))
    return b"".join([_field(field, _field(1, key.encode()) + _field(2, properties[key].encode())) for key in sorted(properties)])


Nodes = dict[int, tuple[list[Piece], bytes]]


class Encoder:
    """Encodes one model.

    places: by `id(tensor)`, the initializers whose data is not written in its place.
    nodes: the nodes of graphs that were encoded already, by `id(graph)`: an encoder fills it, and another one of the same model,
    with other places, need not encode them again.
    """

    def __init__(self, places: Mapping[int, External | Omit] | None = None, nodes: Nodes | None = None):
        self.places = places or {}
        self.nodes: Nodes = {} if nodes is None else nodes
        self._names: dict[str, bytes] = {"": b"\x00"}  # with the length in front
        self._types: dict[Any, bytes] = {}
        self._ops: dict[str, bytes] = {}
        self._attributes: dict[Any, bytes] = {}

    # ------------------------------------------------------------------ the whole

    def model(self, model: ir.Model) -> list[Piece]:
        """The pieces of the ModelProto, in order."""
        pieces: list[Piece] = [
            _number(1, model.ir_version) + _text(2, model.producer_name) + _text(3, model.producer_version) + _text(4, model.domain)
            + (_number(5, model.model_version) if model.model_version else b"") + _text(6, model.doc_string)
        ]
        pieces += _message(7, self.graph(model.graph))
        pieces.append(_opsets(8, model.opset_imports) + _properties(14, model.metadata_props))
        for function in model.functions.values():
            pieces += _message(25, self.function(function, model.ir_version))
        pieces.append(_devices(model))
        return _joined(pieces)

    def graph(self, graph: ir.Graph) -> list[Piece]:
        """The pieces of a GraphProto. Every value that a node makes has its type and shape in it, initializers have theirs anyway."""
        if id(graph) not in self.nodes:
            self.nodes[id(graph)] = self._nodes(graph)
        made, infos = self.nodes[id(graph)]
        pieces: list[Piece] = [*made, _text(2, graph.name)]
        for value in graph.initializers.values():
            if value.const_value is not None:
                pieces += _message(5, self.tensor(value.const_value, value.name))
        pieces.append(_text(10, graph.doc_string))
        pieces += [_field(11, self.value_info(value)) for value in graph.inputs]
        pieces += [_field(12, self.value_info(value)) for value in graph.outputs]
        pieces.append(infos)
        pieces.append(_properties(16, graph.metadata_props))
        return pieces

    def _nodes(self, graph: ir.Graph) -> tuple[list[Piece], bytes]:
        """The nodes of a graph, and what is known of the values between them."""
        pieces: list[Piece] = []
        infos: list[bytes] = []
        outputs = {id(value) for value in graph.outputs}
        for node in graph:
            pieces += self.node(node)
            for value in node.outputs:
                if value.type is not None and value.name and id(value) not in outputs:
                    content = self.value_info(value)
                    infos += b"\x6a", _length(len(content)), content
        return _joined(pieces), b"".join(infos)

    def function(self, function: ir.Function, ir_version: int) -> list[Piece]:
        """The pieces of a FunctionProto."""
        pieces: list[Piece] = [_text(1, function.name)]
        pieces += [_TAGS[4] + self._name(value.name) for value in function.inputs]
        pieces += [_TAGS[5] + self._name(value.name) for value in function.outputs]
        with_default = [a for a in function.attributes.values() if a.value is not None]
        pieces += [_field(6, a.name.encode()) for a in function.attributes.values() if a.value is None]
        values = list(function.inputs)
        for node in function:
            pieces += self.node(node, 7)
            values += node.outputs
        pieces.append(_text(8, function.doc_string) + _opsets(9, function.opset_imports) + _text(10, function.domain))
        for attribute in with_default:
            pieces += _message(11, self.attribute(attribute))
        if ir_version >= _FUNCTION_VALUE_INFO:
            pieces += [_field(12, self.value_info(v)) for v in values if v.name and v.type is not None]
        pieces.append(_text(13, function.overload) + _properties(14, function.metadata_props))
        return pieces

    # ------------------------------------------------------------------ nodes

    def node(self, node: ir.Node, field: int = 1) -> list[Piece]:
        """The pieces of a NodeProto as the field `node` of a graph (1) or function (7), with its tag."""
        inputs = [self._name(None if value is None else value.name) for value in node.inputs]
        outputs = [self._name(value.name) for value in node.outputs]
        while outputs and outputs[-1] == b"\x00":  # an output that nobody wanted
            outputs.pop()
        op = self._ops.get(node.op_type)
        if op is None:
            op = self._ops[node.op_type] = _text(4, node.op_type)
        # Each name has its length already, so that its tag is all that is missing.
        head = b"\x0a" + b"\x0a".join(inputs) if inputs else b""
        if outputs:
            head += b"\x12" + b"\x12".join(outputs)
        head += _text(3, node.name) + op
        tail = b""
        if node.doc_string or node.domain or node.overload:
            tail = _text(6, node.doc_string) + _text(7, node.domain) + _text(8, node.overload)
        if node.metadata_props:
            tail += _properties(9, node.metadata_props)
        if not node.attributes:
            return [_field(field, head + tail)]
        pieces = [piece for attribute in node.attributes.values() for piece in self._attribute_field(attribute)]
        return _joined(_message(field, [head, *pieces, tail]))

    def _attribute_field(self, attribute: ir.Attr) -> list[Piece]:
        value = attribute.value
        kind = type(value)
        if kind is tuple or kind is int or kind is str or kind is float:
            key = (attribute.name, attribute.type, kind, value if value else repr(value))  # 0.0 == -0.0, but they are not the same
            found = self._attributes.get(key)
            if found is None or attribute.doc_string or attribute.is_ref():
                found = _field(5, b"".join(self.attribute(attribute)))  # type: ignore[arg-type]
                if not attribute.doc_string and not attribute.is_ref():
                    self._attributes[key] = found
            return [found]
        return _message(5, self.attribute(attribute))

    def attribute(self, attribute: ir.Attr) -> list[Piece]:
        """The pieces of an AttributeProto."""
        head: list[Piece] = [_field(1, attribute.name.encode())]
        tail = _number(20, attribute.type.value)
        if attribute.is_ref():
            return [*head, _text(13, attribute.doc_string), tail, _text(21, attribute.ref_attr_name)]
        content = self._content(attribute.type, attribute.value)
        if attribute.type in (ir.AttributeType.TYPE_PROTO, ir.AttributeType.TYPE_PROTOS):
            return [*head, _text(13, attribute.doc_string), *content, tail]
        return [*head, *content, _text(13, attribute.doc_string), tail]

    def _content(self, kind: ir.AttributeType, value: Any) -> Sequence[Piece]:
        types = ir.AttributeType
        if kind == types.INT:
            return [_number(3, int(value))]
        if kind == types.INTS:
            return [b"".join([b"\x40" + varint(int(v)) for v in value])]
        if kind == types.FLOAT:
            return [b"\x15" + struct.pack("<f", value)]
        if kind == types.FLOATS:
            return [b"".join([b"\x3d" + struct.pack("<f", v) for v in value])]
        if kind == types.STRING:
            return [_field(4, value if isinstance(value, bytes) else value.encode())]
        if kind == types.STRINGS:
            return [b"".join([_field(9, v if isinstance(v, bytes) else v.encode()) for v in value])]
        if kind == types.TENSOR:
            return _message(5, self.tensor(value, value.name))
        if kind == types.TENSORS:
            return [piece for tensor in value for piece in _message(10, self.tensor(tensor, tensor.name))]
        if kind == types.GRAPH:
            return _message(6, self.graph(value))
        if kind == types.GRAPHS:
            return [piece for graph in value for piece in _message(11, self.graph(graph))]
        if kind == types.TYPE_PROTO:
            return [_field(14, self._type(value.type, value.shape))]
        if kind == types.TYPE_PROTOS:
            return [_field(15, self._type(v.type, v.shape)) for v in value]
        raise NotImplementedError(f"attributes of type {kind.name} are not written")

    # ------------------------------------------------------------------ values and tensors

    def value_info(self, value: ir.Value) -> bytes:
        """A ValueInfoProto."""
        text = b"\x0a" + self._name(value.name) + self._type_field(value.type, value.shape)
        if value.doc_string:
            text += _text(3, value.doc_string)
        if value.metadata_props:
            text += _properties(4, value.metadata_props)
        return text

    def _type_field(self, type_: Any, shape: ir.Shape | None) -> bytes:
        if type_ is None:
            return b""
        if type(type_) is not ir.TensorType or type_.denotation:
            return _field(2, self._type(type_, shape))
        dims = None if shape is None else tuple([d if type(d) is int else d.value for d in shape.dims])  # type: ignore[union-attr]
        key = (type_.dtype, dims)
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = _field(2, self._type(type_, shape))
        return found

    def _type(self, type_: Any, shape: ir.Shape | None) -> bytes:
        """A TypeProto."""
        denotation = _text(6, type_.denotation)
        if isinstance(type_, ir.SequenceType):
            return _field(4, _field(1, self._type(type_.elem_type, shape))) + denotation
        if isinstance(type_, ir.OptionalType):
            return denotation + _field(9, _field(1, self._type(type_.elem_type, shape)))
        content = _number(1, type_.dtype.value) + (b"" if shape is None else _field(2, b"".join(_dims(shape))))
        return denotation + _field(8, content) if isinstance(type_, ir.SparseTensorType) else _field(1, content) + denotation

    def tensor(self, tensor: Any, name: str | None) -> list[Piece]:
        """The pieces of a TensorProto."""
        dims = tensor.dims if hasattr(tensor, "dims") else tensor.shape.numpy()
        head = b"".join([b"\x08" + _length(d) for d in dims]) + b"\x10" + _VARINTS[tensor.dtype]
        tail = _text(12, tensor.doc_string)
        end = _properties(16, tensor.metadata_props)
        if tensor.dtype in _RAW_TYPES:
            return [head, b"".join([_field(6, s) for s in tensor.string_data()]), _text(8, name), tail, end]
        head += _text(8, name)
        place = self.places.get(id(tensor))
        if isinstance(place, External):
            where = {"location": place.location, "offset": str(place.offset), "length": str(place.length)}
            entries = b"".join([_field(13, _field(1, k.encode()) + _field(2, v.encode())) for k, v in where.items()])
            return [head + tail + entries + _number(14, _EXTERNAL) + end]
        if place is Omit.SHAPED:
            return [head + tail + end]
        if place is Omit.EMPTY:
            return [b"\x08\x00" + _number(2, tensor.dtype.value) + _text(8, name) + _field(9, b"") + tail + end]
        nbytes = tensor.nbytes
        if nbytes < SMALL:
            return [head + _field(9, tensor.tobytes()) + tail + end]
        return [head + _TAGS[9] + varint(nbytes), Hole(tensor, nbytes), tail + end]

    def _name(self, name: str | None) -> bytes:
        """A name with its length in front."""
        found = self._names.get(name or "")
        if found is None:
            text = name.encode()  # type: ignore[union-attr]
            found = self._names[name] = _length(len(text)) + text  # type: ignore[index]
        return found


def _dims(shape: ir.Shape) -> Iterable[bytes]:
    for axis, dim in enumerate(shape.dims):
        denotation = _text(3, shape.get_denotation(axis))
        if isinstance(dim, int):
            yield _field(1, _number(1, dim) + denotation)
        else:
            yield _field(1, _text(2, dim.value) + denotation)


def _opsets(field: int, opsets: Mapping[str, int]) -> bytes:
    return b"".join([_field(field, _field(1, domain.encode()) + _number(2, version)) for domain, version in opsets.items()])


def _devices(model: ir.Model) -> bytes:
    if getattr(model, "device_configurations", ()) and model.ir_version >= _DEVICES:
        raise NotImplementedError("device configurations are not written")
    return b""


def _message(field: int, pieces: Sequence[Piece]) -> list[Piece]:
    """A message field made of pieces."""
    return [_TAGS[field] + varint(sum(map(len, pieces))), *pieces]


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """The same with neighbouring bytes joined."""
    if Hole not in map(type, pieces):
        return [b"".join(pieces)]  # type: ignore[arg-type]
    result: list[Piece] = []
    run: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, Hole):
            result += [b"".join(run), piece]
            run = []
        else:
            run.append(piece)
    result.append(b"".join(run))
    return result
