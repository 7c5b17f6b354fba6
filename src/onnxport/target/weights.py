"""Initializers of the finished model: tensors that stay where PyTorch keeps them until they are written.

A `Weight` refers to a `Constant` and copies nothing. Its bytes come in pieces: a contiguous tensor in memory is handed
out as it lies there, everything else (transposed, expanded, on another device, computed) a few megabytes at a time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir
import torch

from onnxport import errors
from onnxport.target.value import Constant, DataType

CHUNK = 4 << 20  # bytes that are rearranged at a time where a tensor needs it
_SMALL = 4096  # up to here, numpy is the quickest way
_PLAIN = frozenset({
    DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.INT64, DataType.INT32, DataType.INT8, DataType.UINT8, DataType.BOOL,
})
CACHED = 2 << 20  # bytes of a transposed matrix that are turned at a time
_COMPONENT = {torch.complex64: 4, torch.complex128: 8}


class Writable(Protocol):
    """What bytes are written to."""

    def write(self, data: Any, /) -> Any:
        """Takes some bytes."""


class Weight(ir.TensorProtocol):
    """One initializer, by reference.

    constant: its value.   dtype: the ONNX element type of it.   shape: static sizes.   name: the initializer's name.

    `numpy()` and `tobytes()` give the whole value, `chunks()` and `write_to()` the raw little-endian bytes in pieces.
    They raise `SaveError` where the tensor has no data of this shape (meta device, a size that does not match).
    """

    __slots__ = ("_nbytes", "_shape", "_size", "constant", "dims", "doc_string", "dtype", "meta", "metadata_props", "name")

    def __init__(self, constant: Constant, dtype: DataType, shape: tuple[int, ...], name: str | None = None):
        self.constant, self.dtype, self.dims, self.name = constant, dtype, shape, name
        self._size = math.prod(shape)
        self._nbytes = self._size * dtype.bitwidth // 8
        self.doc_string: str | None = None
        self.metadata_props: dict[str, str] = {}
        self.meta: dict[str, Any] = {}
        self._shape: ir.Shape | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._size

    @property
    def nbytes(self) -> int:
        """The number of raw bytes."""
        return self._nbytes

    @property
    def shape(self) -> ir.Shape:  # type: ignore[override]  # the protocol lets others set it
        """The shape as onnx_ir wants it (made at the first call)."""
        if self._shape is None:
            self._shape = ir.Shape(self.dims, frozen=True)
        return self._shape

    @property
    def raw(self) -> Constant:
        """The `Constant` that this is made from."""
        return self.constant

    def numpy(self) -> np.ndarray[Any, Any]:
        """The value as an array of `dtype.numpy()`; shares memory with a contiguous CPU tensor."""
        if self.size == 0:
            return np.empty(self.dims, self.dtype.numpy())
        return _bytes_of(_plain(self._strided())).numpy().view(self.dtype.numpy()).reshape(self.dims)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self._strided().__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self.constant.tensor.__dlpack_device__()

    def tobytes(self) -> bytes:
        """All raw bytes, little-endian."""
        if self.nbytes <= _SMALL and self.dtype in _PLAIN and not self.constant.is_lazy and sys.byteorder == "little":
            tensor = self.constant.tensor
            if tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_neg():
                array = tensor.detach().numpy()
                if array.nbytes == self.nbytes:
                    return array.tobytes()
        return b"".join(self.chunks())

    def tofile(self, file: Writable) -> None:
        """The same as `write_to`, under the name that onnx_ir uses."""
        self.write_to(file)

    def write_to(self, file: Writable) -> None:
        """Writes all raw bytes, little-endian, to a file object whose `write` takes everything it is given."""
        for chunk in self.chunks():
            file.write(chunk)

    def chunks(self) -> Iterator[memoryview]:
        """The raw bytes in pieces. A lazy constant is computed once, and dropped with the iterator."""
        if self.size == 0:
            return
        parts = self.constant.pieces() if self.constant.pieces is not None else [self._strided()]
        for part in parts:
            for flat in _flat_chunks(part):
                yield flat.numpy().data

    def _strided(self) -> torch.Tensor:
        tensor = self.constant.tensor.detach()
        if tensor.is_meta:
            raise errors.SaveError(f"the weight {self.name!r} is on the meta device and has no data; load the model's weights first")
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        if tensor.numel() * tensor.element_size() != self.nbytes:
            raise errors.SaveError(
                f"the weight {self.name!r} should hold {self.nbytes} bytes ({self.dtype.name}{list(self.dims)}), "
                f"but its tensor is {tensor.dtype}{list(tensor.shape)}: was it changed after the export?"
            )
        return tensor

    def __repr__(self) -> str:
        return f"Weight<{self.dtype.name},{list(self.dims)}>(name={self.name!r})"


def _flat_chunks(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The bytes of `tensor` in order, as one-dimensional uint8 tensors on the CPU."""
    plain = tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()
    if plain and tensor.device.type == "cpu" and sys.byteorder == "little":
        yield _bytes_of(tensor)
        return
    nbytes = tensor.numel() * tensor.element_size()
    if tensor.dim() == 2 and tensor.stride(0) == 1 and nbytes > 2 * CACHED:
        # A matrix that is stored the other way round: pieces that fit into the cache are transposed two to three times faster.
        columns = max(CACHED * tensor.shape[0] // nbytes, 1)
        for start in range(0, tensor.shape[0], columns):
            piece = tensor[start : start + columns]
            yield _bytes_of(_plain(piece.t().contiguous().t()))
        return
    if nbytes <= CHUNK or tensor.dim() == 0:
        yield _bytes_of(_plain(tensor))
        return
    if plain and tensor.dim() > 1:
        tensor = tensor.view(-1)  # so that pieces are even whatever the first dim is
        nbytes = tensor.numel() * tensor.element_size()
    rows = CHUNK * tensor.shape[0] // nbytes
    if rows == 0:
        for row in tensor:
            yield from _flat_chunks(row)
        return
    for start in range(0, tensor.shape[0], rows):
        yield _bytes_of(_plain(tensor[start : start + rows]))


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, contiguous, on the CPU, without lazy conjugation or negation."""
    return tensor.cpu().resolve_conj().resolve_neg().contiguous()


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous CPU tensor as its little-endian bytes; the same memory where the machine is little-endian."""
    flat = tensor.reshape(-1)
    if flat.stride(0) != 1:  # a single element may lie at any stride
        flat = flat.clone(memory_format=torch.contiguous_format)
    flat = flat.view(torch.uint8)
    if sys.byteorder == "little":
        return flat
    width = _COMPONENT.get(tensor.dtype, tensor.element_size())
    return flat.view(-1, width).flip(1).reshape(-1)
