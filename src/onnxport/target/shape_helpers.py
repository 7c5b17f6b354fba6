"""What the shape rules share: how they read their inputs, and how two dims come together.

A rule is a function of (inputs, attributes, number of outputs). It returns what is known of each output: the element
type (None: unknown) and the dims (None: rank unknown). A dim is an int, a `Dim`, or None where only the run knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from onnxport import errors
from onnxport.target import dims
from onnxport.target.dims import Dim, Size
from onnxport.target.value import DataType, Shape, Value

AnyDim = Size | None
Dims = tuple[AnyDim, ...] | None
Known = tuple[DataType | None, Dims]
Inputs = tuple[Value | None, ...]
Attrs = dict[str, Any]
Rule = Callable[[Inputs, Attrs, int], list[Known]]

UNKNOWN: Known = (None, None)
_MOST_READ = 4096  # the longest constant that a rule reads: pads, axes and split sizes are far shorter


# ---------------------------------------------------------------------- reading


def need(inputs: Inputs, index: int) -> Value:
    """Input `index`, which the operator cannot do without."""
    value = inputs[index] if index < len(inputs) else None
    if value is None:
        raise errors.ShapeError(f"input {index} is missing")
    return value


def maybe(inputs: Inputs, index: int) -> Value | None:
    """Input `index`, or None where it is left out."""
    return inputs[index] if index < len(inputs) else None


def content(value: Value | None) -> Shape | None:
    """The integers that a small tensor holds, or None where they are not known now (or there is no tensor)."""
    if value is None or value.content is not None:
        return None if value is None else value.content
    numbers = constant_numbers(value)
    if numbers is None or not all(isinstance(n, int) for n in numbers):
        return None
    return tuple([int(n) for n in numbers])


def constant_numbers(value: Value | None) -> list[Any] | None:
    """The numbers of a small constant, or None where `value` is not one."""
    if value is None or value.const is None or value.shape is None:
        return None
    count = dims.product(value.shape)
    if not isinstance(count, int) or count > _MOST_READ:
        return None
    numbers: list[Any] = value.const.tensor.reshape(-1).tolist()
    return numbers


def length(value: Value | None) -> int | None:
    """How many numbers a vector holds, where that is known though perhaps the numbers are not."""
    if value is None or value.shape is None or len(value.shape) != 1:
        return None
    size = value.shape[0]
    return size if isinstance(size, int) else None


def scalar(value: Value | None) -> Size | None:
    """The one integer of a scalar or a one-element vector, or None."""
    found = content(value)
    return found[0] if found is not None and len(found) == 1 else None


def axis_of(axis: Any, rank: int) -> int:
    """`axis` counted from the front; negative ones count from the back."""
    number = int(axis)
    if not -rank <= number < max(rank, 1):
        raise errors.ShapeError(f"there is no axis {number} in a tensor of rank {rank}")
    return number + rank if number < 0 else number


def axes_of(axes: Iterable[Any], rank: int) -> list[int] | None:
    """`axis_of` for each; None where one is not a plain number."""
    found = list(axes)
    if not all(isinstance(a, int) for a in found):
        return None
    return [axis_of(a, rank) for a in found]


def unknown_dims(rank: Any) -> Dims:
    """`rank` dims of which nothing is known; None where the rank is not known either."""
    return (None,) * rank if isinstance(rank, int) else None


def replaced(shape: Sequence[AnyDim], axis: int, size: AnyDim) -> tuple[AnyDim, ...]:
    """`shape` with another size at `axis`."""
    return (*shape[:axis], size, *shape[axis + 1 :])


# ---------------------------------------------------------------------- sizes that may be unknown


def add(*sizes: AnyDim) -> AnyDim:
    """The sum; None where one is None."""
    total: Size = 0
    for size in sizes:
        if size is None:
            return None
        total = total + size
    return total


def product(sizes: Iterable[AnyDim]) -> AnyDim:
    """The product; None where one is None and none is 0."""
    found = list(sizes)
    if 0 in found:
        return 0
    total: Size = 1
    for size in found:
        if size is None:
            return None
        total = total * size
    return total


# ---------------------------------------------------------------------- two dims come together


def agree(a: AnyDim, b: AnyDim) -> AnyDim:
    """The dim that `a` and `b` both are, in a place where the operator demands that they are the same: a number if it can be."""
    if a is None or isinstance(b, int):
        return b
    return a


def broadcast_dim(a: AnyDim, b: AnyDim) -> AnyDim:
    """What two dims give when broadcast. One that surely is not 1 decides; of two that may be 1 only the run knows."""
    if a is b or a == b:
        return a
    if a == 1:
        return b
    if b == 1:
        return a
    if isinstance(a, int):
        if isinstance(b, int):
            raise errors.ShapeError(f"dims {a} and {b} do not broadcast")
        return a
    if isinstance(b, int):
        return b
    for size in (a, b):
        if size is not None and dims.compare("==", size, 1) is False:
            return size
    if a is not None and b is not None:
        # n and min(n, 512) are the same wherever they broadcast at all: the smaller one is 1 only where n is.
        return a if dims.is_capped(b, a) else b if dims.is_capped(a, b) else None
    return None


def broadcast(a: Dims, b: Dims) -> Dims:
    """The shape of an elementwise operator of two tensors."""
    if a == b:
        return a
    if a is None or b is None:
        return None
    if len(a) < len(b):
        a, b = b, a
    head = len(a) - len(b)
    return a[:head] + tuple([broadcast_dim(x, y) for x, y in zip(a[head:], b, strict=True)])


def broadcast_all(shapes: Iterable[Dims]) -> Dims:
    """The shape of an elementwise operator of many tensors."""
    result: Dims = ()
    for shape in shapes:
        result = broadcast(result, shape)
    return result


# ---------------------------------------------------------------------- element types


def dtype_attribute(attrs: Attrs, name: str, default: DataType | None) -> DataType | None:
    """The element type in attribute `name` (ONNX's number for it), or `default`."""
    number = attrs.get(name)
    return default if number is None else DataType(int(number))


def dtype_of_tensor(tensor: Any) -> DataType | None:
    """The element type of a tensor attribute, whichever library's tensor it is."""
    dtype = getattr(tensor, "dtype", None)
    if isinstance(dtype, DataType):
        return dtype
    if type(dtype).__module__ == "torch":
        from onnxport.target.dtypes import from_torch

        return from_torch(dtype)  # type: ignore[arg-type]
    if dtype is not None:
        return DataType.from_numpy(dtype)
    number = getattr(tensor, "data_type", None)
    return None if number is None else DataType(number)


def is_never_negative(size: AnyDim) -> bool:
    """Whether `size` surely is 0 or more."""
    if isinstance(size, Dim):
        return dims.bounds(size)[0] >= 0
    return size is not None and size >= 0


def as_dims(sizes: Iterable[AnyDim]) -> tuple[AnyDim, ...]:
    """Sizes in a place where a shape is asked for, as dims. What surely is negative is none: it has a meaning of its own, as -1 of Reshape.

    A symbolic size is taken at its word even where its bounds let it be negative for some inputs: `(h - 3) // 2 + 1`
    has no model in which it is -1 and a shape.
    """
    return tuple([None if s is None or dims.compare("<", s, 0) else s for s in sizes])
