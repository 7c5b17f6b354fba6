"""What the file's inputs, outputs, parameters and axes are called, and which axes are dynamic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxport import errors, notice
from onnxport.aten.graph import Axis, Graph
from onnxport.aten.graph import Value as Captured
from onnxport.calls import Call
from onnxport.options import Options
from onnxport.target import dims
from onnxport.target.dims import Dim, Size
from onnxport.target.emit import Naming

_PAST = "past_key_values."


@dataclass
class Interface:
    """The outside of the file.

    input_shapes: of each input, ints and symbols.   axes: input name -> axis -> label of the dynamic ones.
    weight_names: qualified name -> wanted name.     output_dims: output name -> axis -> label that was asked for.
    """

    input_names: list[str]
    input_shapes: list[tuple[Size, ...] | None]
    axes: dict[str, dict[int, str]]
    output_names: list[str]
    weight_names: dict[str, str]
    output_dims: dict[str, dict[int, str]] = field(default_factory=dict)

    def naming(self) -> Naming:
        """For the emitter."""
        return Naming(self.output_names, self.weight_names, self.output_dims)

    def add_output(self, name: str) -> None:
        """One more output behind the others."""
        taken = set(self.output_names) | set(self.input_names)
        while name in taken:
            name += "_1"
        self.output_names.append(name)


def interface(graph: Graph, call: Call, options: Options) -> Interface:
    """Applies `input_names`, `output_names` and `dynamic_axes`; whatever names nothing is an error."""
    inputs = input_names(call, options, len(graph.weights))
    weights = dict(zip(graph.weights, options.input_names[len(inputs):], strict=False))
    outputs = output_names(graph, options.output_names, set(inputs))
    known = set(inputs) | set(outputs)
    for name in options.dynamic_axes:
        if name not in known:
            raise errors.ArgumentError(
                f"dynamic_axes names {name!r}, which is neither an input ({', '.join(inputs)}) nor an output ({', '.join(outputs)})")
    graph.input_names = inputs
    given = options.dynamic_axes
    axes = {name: _ranked(name, given[name], value) for name, value in zip(inputs, graph.inputs, strict=True) if name in given}
    for name, value in zip(inputs, graph.inputs, strict=True):
        if value.symbolic is not None and name not in axes:
            axes[name] = {axis: size.label for axis, size in enumerate(value.symbolic) if isinstance(size, Axis)}
    axes = {name: labels for name, labels in axes.items() if labels}
    shapes = _shapes(inputs, graph.inputs, axes)
    wanted = {}
    for name, value in zip(outputs, graph.outputs, strict=True):
        if name in options.dynamic_axes and name not in axes:
            wanted[name] = _ranked(name, options.dynamic_axes[name], value)
    return Interface(inputs, shapes, axes, outputs, weights, wanted)


def input_names(call: Call, options: Options, weights: int | None = None) -> list[str]:
    """The names of the inputs, in order. weights: how many names may follow for parameters and buffers, if that is known."""
    given, names = options.input_names, list(call.names)
    for name in given:
        if name in call.constants and name not in names:
            raise errors.ArgumentError(f"input_names holds {name!r}, but this argument is no tensor: in a traced call it is a constant of the file")
    count = len(names)
    if weights is not None and len(given) > count + weights:
        raise errors.ArgumentError(f"{len(given)} input_names for {count} inputs and {weights} parameters and buffers")
    names[: min(len(given), count)] = given[:count]
    clash = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if clash is not None:
        names = [n if i < len(given) or n not in given else f"{n}_1" for i, n in enumerate(names)]
    return names


def output_names(graph: Graph, given: tuple[str, ...], taken: set[str]) -> list[str]:
    """The names of the outputs, in order. given: those that the caller chose.   taken: those of inputs."""
    count = len(graph.outputs)
    if len(given) > count:
        raise errors.ArgumentError(f"{len(given)} output_names for {count} outputs: {', '.join(given[count:])} would name nothing")
    keys = [n.replace("..", ".") for n in graph.output_names]
    if given and set(given) <= {k for k in keys if k}:
        if set(given) != set(keys) and list(given) != keys[: len(given)]:
            raise errors.ArgumentError(
                f"output_names {list(given)} are some keys of what the model returns ({', '.join(keys)}), but not the first ones")
        given = tuple(keys)  # names that are keys label those keys, in whatever order they are given
    names: list[str] = []
    for position, key in enumerate(keys):
        if position < len(given):
            name = given[position]
            if name in taken:
                raise errors.ArgumentError(f"the name {name!r} is given to an input and to an output (duplicate name)")
        else:
            base = key if key and not key.replace(".", "").isdigit() else ("output" if count == 1 else f"output_{position}")
            if base.startswith(_PAST):  # the cache with the new tokens in it, as programs that run such files look for it
                base = "present." + base[len(_PAST):]
            name, number = base, 0
            while name in taken or name in names or name in given:
                number += 1
                name = f"{base}_{number}"
        names.append(name)
    return names


def _ranked(name: str, axes: Mapping[int, str], value: object) -> dict[int, str]:
    if isinstance(value, Captured) and value.shape is None and value.unknown:
        return {axis: label for axis, label in axes.items() if axis >= 0}  # an output of a script: held against its rank when it is made
    rank = len(value.shape) if isinstance(value, Captured) and value.shape is not None else 0
    result: dict[int, str] = {}
    for axis, label in axes.items():
        if not -rank <= axis < rank:
            raise errors.ArgumentError(f"dynamic_axes[{name!r}]: axis {axis} is out of range for a tensor of rank {rank}")
        if axis % rank in result:
            raise errors.ArgumentError(f"dynamic_axes[{name!r}]: axis {axis} is the same as another one that is named (the rank is {rank})")
        result[axis % rank] = label
    return result


def _shapes(names: list[str], values: list[Captured], axes: Mapping[str, Mapping[int, str]]) -> list[tuple[Size, ...] | None]:
    """Axes of one label are one symbol, unless the example gives them different sizes (then they cannot be one)."""
    seen: dict[str, int] = {}
    known = _symbols(values)
    symbols: dict[tuple[str, int], Size] = {}
    shapes: list[tuple[Size, ...] | None] = []
    for name, value in zip(names, values, strict=True):
        if value.kind == "list":  # nothing holds the sizes of a sequence's tensors to one another
            shapes.append(None)
            continue
        sizes: list[Size] = list(value.shape or ())
        for axis, label in axes.get(name, {}).items():
            number = (value.shape or ())[axis]
            if seen.setdefault(label, number) != number and (label, number) not in symbols:
                notice.warn(f"dynamic_axes gives the name {label!r} to axes of size {seen[label]} and {number} in the example; "
                            "they are taken for different sizes", UserWarning)
            if (label, number) not in symbols:
                text = label if seen[label] == number else f"{label}_{sum(1 for k, _ in symbols if k == label)}"
                symbols[label, number] = known[text] if text in known else dims.symbol(text)
            sizes[axis] = symbols[label, number]
        shapes.append(tuple(sizes))
    return shapes


def _symbols(values: list[Captured]) -> dict[str, Size]:
    """The sizes that the caller gave a range, and those that are computed from others (``2*n + 1``) which are axes themselves."""
    asked = [size for value in values for size in value.symbolic or () if isinstance(size, Axis)]
    plain: dict[str, Size] = {}
    for axis in asked:
        if not axis.derived and axis.label not in plain:
            plain[axis.label] = dims.symbol(axis.label, axis.low)
    found = dict(plain)
    for axis in asked:
        if axis.derived:
            try:
                size = dims.parse(axis.label)
            except (ValueError, SyntaxError):
                continue
            if isinstance(size, Dim) and size.symbols <= set(plain):
                found[axis.label] = dims.substitute(size, plain)
    return found
