"""Example inputs from a line of text, as the command line takes them: `x=float32[N,3,224,224]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from onnxport import errors

HELP = """\
NAME=DTYPE[DIMS]          a tensor: x=float32[2,3], scale=float64[]; numbers are normal, integers 0 or 1, bools random
NAME=DTYPE[N,3,H=32]      letters are dynamic axes; the example has 2 or 3 there, or what stands behind the letter
NAME=int64[N,T]:0..999    integers (or numbers) from this range, both ends included
NAME=@FILE[DIMS]          a tensor from a .npy or .pt file; [DIMS] is only needed to name dynamic axes
NAME=VALUE                anything else is a Python literal and a constant of the model: flag=True, n=3, mode='fast'"""

_TENSOR = re.compile(r"(?P<dtype>[a-z]\w*)\[(?P<dims>[^\]]*)\](?::(?P<low>-?[\d.]+?)\.\.(?P<high>-?[\d.]+))?")
_FILE = re.compile(r"@(?P<path>.+?)(?:\[(?P<dims>[^\]]*)\])?")
_DIM = re.compile(r"(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)(?:=(?P<size>\d+))?")
_DTYPES = {
    name: getattr(torch, name)
    for name in ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64")
}


@dataclass
class Inputs:
    """Arguments by name, in the order given; `dynamic_axes` as `export` takes them."""

    values: dict[str, Any] = field(default_factory=dict)
    dynamic_axes: dict[str, dict[int, str]] = field(default_factory=dict)

    @property
    def tensors(self) -> list[str]:
        """The names of those that are tensors."""
        return [name for name, value in self.values.items() if isinstance(value, torch.Tensor)]


def parse(lines: Iterable[str], sizes: Mapping[str, int] | None = None, seed: int = 0) -> Inputs:
    """The inputs that `lines` describe (see `HELP`). sizes: example sizes of dynamic axes.

    Raises `ArgumentError` that quotes the line.
    """
    split = [_split(line) for line in lines]
    known = _sizes(split, dict(sizes or {}))
    generator = torch.Generator().manual_seed(seed)
    inputs = Inputs()
    for name, text in split:
        if name in inputs.values:
            raise errors.ArgumentError(f"--input {name}={text}: the name {name!r} is given twice")
        value, labels = _value(name, text, known, generator)
        inputs.values[name] = value
        if labels:
            inputs.dynamic_axes[name] = labels
    return inputs


def _split(line: str) -> tuple[str, str]:
    name, equals, text = line.partition("=")
    if not equals or not name.strip():
        raise errors.ArgumentError(f"--input {line}: it must look like NAME=DTYPE[DIMS], for instance x=float32[N,3,224,224]")
    return name.strip(), text.strip()


def _dims_of(text: str) -> str | None:
    found = _TENSOR.fullmatch(text) or _FILE.fullmatch(text)
    return found["dims"] if found else None


def _dims(text: str, where: str) -> list[tuple[str | None, int | None]]:
    """(name, size) of each dim; one of the two may be None."""
    result: list[tuple[str | None, int | None]] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        found = _DIM.fullmatch(part)
        if found is None:
            raise errors.ArgumentError(f"--input {where}: {part!r} is neither a size nor the name of an axis")
        number = found["number"] or found["size"]
        result.append((found["name"], None if number is None else int(number)))
    return result


def _sizes(split: Iterable[tuple[str, str]], sizes: dict[str, int]) -> dict[str, int]:
    """The example size of every dynamic axis: given, or 2 and 3 in turn (1 would hide what broadcasts)."""
    order: list[str] = []
    for name, text in split:
        for label, size in _dims(_dims_of(text) or "", f"{name}={text}"):
            if label is not None and size is not None and sizes.setdefault(label, size) != size:
                raise errors.ArgumentError(f"--input {name}={text}: {label} is {size} here and {sizes[label]} elsewhere")
            if label is not None and label not in order:
                order.append(label)
    stray = [label for label in sizes if label not in order]
    if stray:
        raise errors.ArgumentError(f"--size {stray[0]}={sizes[stray[0]]}: no --input has an axis of this name")
    for position, label in enumerate(order):
        sizes.setdefault(label, 2 + position % 2)
    return sizes


def _value(name: str, text: str, sizes: Mapping[str, int], generator: torch.Generator) -> tuple[Any, dict[int, str]]:
    where = f"{name}={text}"
    tensor = _TENSOR.fullmatch(text)
    if tensor is not None:
        dims = _dims(tensor["dims"], where)
        dtype = _DTYPES.get(tensor["dtype"])
        if dtype is None:
            raise errors.ArgumentError(f"--input {where}: the type {tensor['dtype']!r} is none of {', '.join(_DTYPES)}")
        shape = [sizes[label] if label is not None else int(size or 0) for label, size in dims]
        bounds = (tensor["low"], tensor["high"]) if tensor["low"] is not None else None
        return _random(dtype, shape, bounds, generator, where), _labels(dims)
    file = _FILE.fullmatch(text)
    if file is not None:
        loaded = _load(file["path"], where)
        dims = _dims(file["dims"] or "", where)
        if file["dims"] is not None and len(dims) != loaded.dim():
            raise errors.ArgumentError(f"--input {where}: the file's tensor has {loaded.dim()} axes, and {len(dims)} are named")
        return loaded, _labels(dims)
    try:
        return ast.literal_eval(text), {}
    except (ValueError, SyntaxError):
        raise errors.ArgumentError(f"--input {where}: neither DTYPE[DIMS], @FILE nor a Python literal (a text needs quotes)") from None


def _labels(dims: Iterable[tuple[str | None, int | None]]) -> dict[int, str]:
    return {axis: label for axis, (label, _) in enumerate(dims) if label is not None}


def _random(dtype: torch.dtype, shape: list[int], bounds: tuple[str, str] | None, generator: torch.Generator, where: str) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if bounds is None:
        if dtype.is_floating_point or dtype.is_complex:
            wide = torch.complex64 if dtype.is_complex else torch.float32
            return torch.randn(shape, generator=generator, dtype=wide).to(dtype)
        return torch.randint(0, 2, shape, generator=generator).to(dtype)
    try:
        low, high = (float(bound) if dtype.is_floating_point else int(bound) for bound in bounds)
    except ValueError:
        raise errors.ArgumentError(f"--input {where}: {bounds[0]}..{bounds[1]} is no range of {dtype}") from None
    if high < low:
        raise errors.ArgumentError(f"--input {where}: the range {low}..{high} is empty")
    if dtype.is_floating_point:
        return (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)
    return torch.randint(int(low), int(high) + 1, shape, generator=generator).to(dtype)


def _load(path: str, where: str) -> torch.Tensor:
    try:
        if path.endswith(".npy"):
            import numpy as np

            return torch.from_numpy(np.load(path, allow_pickle=False))
        value = torch.load(path, weights_only=True)
    except Exception as error:
        raise errors.ArgumentError(f"--input {where}: cannot read {path!r}: {error}") from error
    if not isinstance(value, torch.Tensor):
        raise errors.ArgumentError(f"--input {where}: {path!r} holds a {type(value).__name__}, not a tensor")
    return value
