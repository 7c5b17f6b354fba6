"""What a loop carries: the form in which a value goes from turn to turn, and containers taken apart into such values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onnxport.lower.python import UNINITIALIZED, Keyed, Listed, entries
from onnxport.target.dims import Size
from onnxport.target.value import Complex, DataType


@dataclass
class Form:
    """How one value goes from turn to turn.

    way: "same" (the loop does not change it), "carried", "maybe" (an Optional); of lists "stacked", "collected", "sequence".
    wide: its axes whose sizes change.   dtype: of what is carried, where it is wider than the start.
    gap: (dtype, sizes) of what there is before the first turn; of a sequence, of all its tensors.
    """

    way: str = "same"
    wide: set[int] = field(default_factory=set)
    dtype: DataType | None = None
    gap: tuple[DataType, tuple[Size | None, ...]] | None = None
    kind: str = ""


def leaves(item: Any) -> list[Any]:
    """What a carried value is made of."""
    if isinstance(item, Listed) and isinstance(item.state, tuple):
        return [leaf for member in item.state for leaf in leaves(member)]
    if isinstance(item, Complex):
        return [item.re, item.im]
    if isinstance(item, (tuple, list)):
        return [leaf for member in item for leaf in leaves(member)]
    known = entries(item)
    if known is not None:
        return [leaf for member in known.values() for leaf in leaves(member)]
    return [item]


def rebuilt(item: Any, given: Any) -> Any:
    """The same structure with other leaves."""
    if isinstance(item, Listed) and isinstance(item.state, tuple):
        return Listed(tuple([rebuilt(member, given) for member in item.state]))
    if isinstance(item, Complex):
        return Complex(next(given), next(given))
    if isinstance(item, tuple):
        return tuple([rebuilt(member, given) for member in item])
    if isinstance(item, list):
        return [rebuilt(member, given) for member in item]
    known = entries(item)
    if known is not None:
        return Keyed({key: rebuilt(member, given) for key, member in known.items()})
    return next(given)


def gaps(item: Any) -> Any:
    """The same structure, of which nothing is made."""
    count = len(leaves(item))
    return UNINITIALIZED if count == 1 and leaves(item)[0] is item else rebuilt(item, iter([UNINITIALIZED] * count))
