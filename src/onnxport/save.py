"""Writes the finished model: streamed from the tensors, and all or nothing.

A model below 2 GiB (protobuf's limit) is one file. Above that, or on request, the weights lie in one file beside it,
`<name>.data`, which the model names. Files are written under temporary names in the target's folder, flushed to the
disk and renamed, so that whatever happens meanwhile (an exception, Ctrl-C, a full disk, a crash) the path holds either
the old model or the new one.

A model and its data file cannot be renamed in one step, and an old model with new weights would give wrong numbers
without a word. Where a data file of that name exists, the step is taken over a bridge: (1) the new data has a temporary
name, and a model that refers to it under that name replaces the old model; (2) the data gets its final name as well;
(3) the final model replaces the bridge; (4) the temporary name goes. Each state on the way is a consistent pair.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import onnx
import onnx_ir as ir

from onnxport import errors
from onnxport.wire import SMALL, Encoder, External, Hole, Nodes, Omit, Piece

Target = str | os.PathLike[str] | BinaryIO

LIMIT = (1 << 31) - 1  # bytes in one protobuf message
_SLICE = 64 << 20  # bytes handed to one write, so that Ctrl-C is heard in between
_PAGE = 4096
_TO_PATH = "give a path, so that the weights can go into a file beside the model"

# ---------------------------------------------------------------------- what callers use


def write(model: ir.Model, target: Target, *, external_data: bool | None = None, size_threshold: int = SMALL,
          nodes: Nodes | None = None) -> None:
    """Writes `model` to a path or to a binary stream.

    external_data: True puts the weights into `<target>.data`, False into the model (an error at 2 GiB), None decides by size.
    size_threshold: tensors of fewer bytes stay in the model file in any case.
    nodes: what `check` gave, where the model has not been changed since.
    Raises `SaveError` (an `OSError` too) where the target cannot be written, and then what was there before is whole.
    """
    check_target(target)
    if not isinstance(target, (str, os.PathLike)):
        _write_stream(model, target, external_data, nodes)
        return
    path = os.path.realpath(os.fsdecode(target))  # a symbolic link stays one
    with _reported(path):
        if external_data:
            _write_pair(model, path, size_threshold)
            return
        pieces = Encoder(nodes=nodes).model(model)
        total = _size(pieces)
        if total <= LIMIT:
            _write_single(pieces, path)
        elif external_data is None:
            _write_pair(model, path, size_threshold)
        else:
            raise errors.SaveError(f"the model has {total} bytes, and one file may hold {LIMIT}: external_data may be None or True")


def check_target(target: Target | None) -> None:
    """Raises `SaveError` or `ArgumentError` where `write` could not write to `target`: cheap, to be asked before the model runs."""
    if target is None:
        return
    if isinstance(target, (str, os.PathLike)):
        _check_path(os.fsdecode(target))
        return
    if isinstance(target, io.TextIOBase) or not callable(getattr(target, "write", None)):
        raise errors.ArgumentError(f"f must be a path or a stream opened for writing bytes (mode 'wb'), not {type(target).__name__}")
    with _reported(_label(target)):
        if getattr(target, "closed", False):
            raise errors.SaveError("the stream is closed")
        writable = getattr(target, "writable", None)
        if callable(writable) and not writable():
            raise errors.SaveError("the stream is not open for writing")


def to_bytes(model: ir.Model) -> bytes:
    """The model with its weights as one protobuf message; `SaveError` at 2 GiB."""
    stream = io.BytesIO()
    write(model, stream)
    return stream.getvalue()


def to_proto(model: ir.Model, weights: bool = True) -> onnx.ModelProto:
    """The model as an `onnx.ModelProto`, of any size; without `weights`, initializers of 1 KiB and more have no data."""
    large = _large(model, SMALL)
    pieces = Encoder(dict.fromkeys(map(id, large), Omit.SHAPED)).model(model)
    proto: onnx.ModelProto = onnx.ModelProto.FromString(b"".join(map(_content, pieces)))
    if weights:
        for tensor, value in zip(proto.graph.initializer, _initializers(model)):
            if value.nbytes >= SMALL and value.dtype != ir.DataType.STRING:
                tensor.raw_data = value.tobytes()
    return proto


def check(model: ir.Model) -> Nodes:
    """Runs `onnx.checker` on the model, without a copy of the weights; `CheckerError` with its text.

    Returns the encoded nodes, which `write` takes.
    """
    nodes: Nodes = {}
    for tensor in _initializers(model):
        if tensor.shape.is_dynamic():
            raise errors.CheckerError(f"the initializer {tensor.name!r} has no fixed shape")
    pieces = Encoder(dict.fromkeys(map(id, _large(model, SMALL)), Omit.EMPTY), nodes).model(model)
    try:
        onnx.checker.check_model(b"".join(map(_content, pieces)))
    except onnx.checker.ValidationError as error:
        raise errors.CheckerError(f"the finished model does not pass onnx.checker: {error}") from error
    return nodes


# ---------------------------------------------------------------------- the parts of a model


def _initializers(model: ir.Model) -> list[Any]:
    return [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]


def _large(model: ir.Model, threshold: int) -> list[Any]:
    """The tensors of the main graph that have at least `threshold` bytes, each once."""
    found = {id(t): t for t in _initializers(model) if t.dtype != ir.DataType.STRING and t.nbytes >= max(threshold, 1)}
    return list(found.values())


def _size(pieces: Iterable[Piece]) -> int:
    return sum(map(len, pieces))


def _content(piece: Piece) -> bytes:
    return bytes(piece.tensor.tobytes()) if isinstance(piece, Hole) else piece


def _layout(tensors: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    """Each tensor with its offset in the data file: on a page where it is large enough to be mapped into memory, else on 64 bytes."""
    end = 0
    for tensor in tensors:
        alignment = _PAGE if tensor.nbytes >= 4 * _PAGE else 64
        offset = -(-end // alignment) * alignment
        yield tensor, offset
        end = offset + tensor.nbytes


# ---------------------------------------------------------------------- writing bytes


def _put(write: Callable[[Any], Any], data: Any) -> int:
    """Hands all of `data` to `write`, in slices and again where a raw stream takes only a part. Returns the number of bytes."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        piece = view[position : position + _SLICE]
        written = write(piece)
        position += written if isinstance(written, int) else len(piece)
    return len(view)


def _put_tensor(write: Callable[[Any], Any], tensor: Any) -> None:
    chunks = tensor.chunks() if hasattr(tensor, "chunks") else [tensor.tobytes()]
    total = sum(_put(write, chunk) for chunk in chunks)
    if total != tensor.nbytes:
        raise errors.SaveError(f"the tensor {tensor.name!r} gave {total} bytes, and {tensor.nbytes} were announced")


def _put_pieces(write: Callable[[Any], Any], pieces: Iterable[Piece]) -> None:
    for piece in pieces:
        if isinstance(piece, Hole):
            _put_tensor(write, piece.tensor)
        else:
            _put(write, piece)


def _put_data(write: Callable[[Any], Any], layout: Iterable[tuple[Any, int]]) -> None:
    end = 0
    for tensor, offset in layout:
        _put(write, bytes(offset - end))
        _put_tensor(write, tensor)
        end = offset + tensor.nbytes


# ---------------------------------------------------------------------- targets


def _write_stream(model: ir.Model, stream: BinaryIO, external_data: bool | None, nodes: Nodes | None) -> None:
    if external_data:
        raise errors.ArgumentError(f"external_data=True needs a file to stand beside, and f is a stream: {_TO_PATH}")
    pieces = Encoder(nodes=nodes).model(model)
    total = _size(pieces)
    if total > LIMIT:
        raise errors.SaveError(f"the model has {total} bytes, and one protobuf message may hold {LIMIT}: {_TO_PATH}")
    with _reported(_label(stream)):
        _put_pieces(stream.write, pieces)


def _write_single(pieces: Iterable[Piece], path: str) -> None:
    if _is_special(path):  # a device or a pipe cannot be replaced
        with open(path, "wb", buffering=0) as file:
            _put_pieces(file.write, pieces)
        return
    with _Temporaries(path) as temporary:
        name = temporary.write(lambda put: _put_pieces(put, pieces))
        os.replace(name, path)


def _write_pair(model: ir.Model, path: str, threshold: int) -> None:
    if _is_special(path):
        raise errors.SaveError(f"no file can stand beside {path!r}, which is a device or a pipe")
    data_path = path + ".data"
    if os.path.isdir(data_path):
        raise errors.SaveError(f"{data_path!r} is a folder, and the weights should go there")
    layout = list(_layout(_large(model, threshold)))

    def model_file(data_name: str) -> Callable[[Callable[[Any], Any]], None]:
        places: dict[int, External | Omit] = {id(t): External(os.path.basename(data_name), offset, t.nbytes) for t, offset in layout}
        pieces = Encoder(places).model(model)
        if _size(pieces) > LIMIT:
            raise errors.SaveError(f"even without its weights the model has {_size(pieces)} bytes, and one file may hold {LIMIT}")
        return lambda put: _put_pieces(put, pieces)

    with _Temporaries(path) as temporary:
        final = temporary.write(model_file(data_path))
        data = temporary.write(lambda put: _put_data(put, layout), like=data_path)
        with _alone(temporary.folder):
            _step_over(path, data_path, final, data, temporary, lambda: temporary.write(model_file(data)))


def _step_over(path: str, data_path: str, final: str, data: str, temporary: _Temporaries, write_bridge: Callable[[], str]) -> None:
    """Gives the finished files `final` and `data` the names `path` and `data_path`, over a bridge where there is data of that name."""
    if not os.path.lexists(data_path):
        os.replace(data, data_path)
        os.replace(final, path)
        return
    bridge = write_bridge()
    try:
        os.replace(bridge, path)
        try:
            _second_name(data, data_path, temporary)
        finally:  # an interrupt must not leave a model without its weights
            if not os.path.lexists(data) or _same_file(data, data_path):
                os.replace(final, path)
    finally:
        if os.path.lexists(final) and not os.path.lexists(bridge):  # stopped on the bridge, which needs its data
            temporary.keep(data)


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Inside, no other thread or process is: two exports to one path would else pair the model of one with the weights of the other.

    Where the system has no such locks (Windows, some network file systems), it is up to the caller.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)  # gives the lock back
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _second_name(data: str, data_path: str, temporary: _Temporaries) -> None:
    """Makes `data_path` a name of the file `data`. Without hard links the file is renamed: until the next step, a load then fails aloud."""
    link = temporary.name()
    try:
        os.link(data, link)
    except (OSError, AttributeError, NotImplementedError):
        os.replace(data, data_path)
    else:
        os.replace(link, data_path)


def _same_file(one: str, other: str) -> bool:
    return os.path.exists(other) and os.path.samefile(one, other)


class _Temporaries:
    """Files under temporary names beside `path`; those that are still there at the end are removed."""

    def __init__(self, path: str):
        self.path = path
        self.folder = os.path.dirname(path)
        self._names: list[str] = []

    def name(self) -> str:
        """A new name, which nobody uses."""
        name = os.path.join(self.folder, f".onnxport-{secrets.token_hex(8)}.tmp")
        self._names.append(name)
        return name

    def keep(self, name: str) -> None:
        """`name` stays at the end: something refers to it."""
        self._names.remove(name)

    def write(self, fill: Callable[[Callable[[Any], Any]], None], like: str | None = None) -> str:
        """A new file with what `fill` writes, safe on the disk, with the permissions of the file that it is to replace."""
        name = self.name()
        with open(_create(name), "wb", buffering=1 << 16) as file:
            with contextlib.suppress(OSError):
                os.chmod(name, stat.S_IMODE(os.stat(like or self.path).st_mode))
            fill(file.write)
            file.flush()
            os.fsync(file.fileno())
        return name

    def __enter__(self) -> _Temporaries:
        return self

    def __exit__(self, *exc: object) -> None:
        for name in self._names:
            with contextlib.suppress(OSError):
                os.unlink(name)
        if exc[0] is None:
            _sync_folder(self.folder)


def _create(name: str) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)


def _sync_folder(folder: str) -> None:
    """Makes the new names survive a power cut, where the system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _check_path(path: str) -> None:
    if not path:
        raise errors.ArgumentError("f is an empty path")
    if "\0" in path:
        raise errors.ArgumentError(f"f is the path {path!r}, and no file name may hold a null character")
    real = os.path.realpath(path)
    folder = os.path.dirname(real)
    with _reported(path):
        if os.path.isdir(real) or path.endswith(("/", os.sep)):
            raise errors.SaveError(f"{path!r} is a folder; give the name of a file in it")
        if not os.path.isdir(folder):
            state = "is not a folder" if os.path.lexists(folder) else "does not exist"
            raise errors.SaveError(f"cannot write {path!r}: the folder {folder!r} {state}")
        if os.path.lexists(real):
            if not os.access(real, os.W_OK):
                raise errors.SaveError(f"cannot write {path!r}: no permission to change the file that is there")
            if _is_special(real):
                return
        with _Temporaries(real) as temporary:
            os.close(_create(temporary.name()))


def _is_special(path: str) -> bool:
    """Whether there is something other than a regular file: a device, a pipe."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _label(stream: Any) -> str:
    name = getattr(stream, "name", None)
    return f"stream {name!r}" if isinstance(name, str) else f"stream {type(stream).__name__}"


@contextlib.contextmanager
def _reported(target: str) -> Iterator[None]:
    """Turns what the system says into a `SaveError` with the number and cause kept."""
    try:
        yield
    except errors.SaveError:
        raise
    except (OSError, UnicodeEncodeError) as error:
        problem = errors.SaveError(f"cannot write {target}: {error}")
        problem.errno = getattr(error, "errno", None)
        raise problem from error
