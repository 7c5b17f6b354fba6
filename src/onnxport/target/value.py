"""What operators work with: tensors of the graph that is being built, and the nodes that make them.

These are small on purpose (a graph has tens of thousands); `target/emit.py` turns those that are needed into onnx_ir.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnxport.target.dims import Size

if TYPE_CHECKING:
    import torch

    from onnxport.module_calls import ModuleCall

DataType = ir.DataType
Shape = tuple[Size, ...]


class Constant:
    """A tensor that is known: a weight, a literal, or a value computed from such, computed when it is written.

    name: the parameter it comes from (`layer.weight`), or None.   parameter: depends on a weight.
    pieces: gives a computed one in parts along its first dim, where that is possible, so that it is never whole in memory.
    """

    __slots__ = ("_compute", "_tensor", "name", "parameter", "pieces")

    def __init__(self, tensor: torch.Tensor | None, *, compute: Callable[[], torch.Tensor] | None = None,
                 name: str | None = None, parameter: bool = False, pieces: Callable[[], Iterator[torch.Tensor]] | None = None):
        self.pieces = pieces
        self._tensor, self._compute, self.name, self.parameter = tensor, compute, name, parameter

    @property
    def tensor(self) -> torch.Tensor:
        """The value. A computed one is computed anew at each call, so that no copy stays in memory."""
        if self._tensor is not None:
            return self._tensor
        assert self._compute is not None
        return self._compute()

    @property
    def is_lazy(self) -> bool:
        """Whether reading `tensor` computes something."""
        return self._tensor is None


class Value:
    """One tensor of the graph.

    dtype: its element type, or None if unknown.   shape: a tuple of sizes, or None where the rank is unknown.
    const: its value where that is known now.      content: for an int64 scalar or vector, the sizes that it holds.
    node, index: the node that makes it and which of its outputs it is (None for inputs, constants and sizes that
    no node has had to compute yet).   sequence: it is a sequence of such tensors, not one.
    """

    __slots__ = ("const", "content", "dtype", "index", "key", "name", "node", "sequence", "shape")

    def __init__(self, dtype: DataType | None, shape: Shape | None, *, name: str | None = None, node: Node | None = None,
                 index: int = 0, const: Constant | None = None, content: Shape | None = None):
        self.dtype, self.shape, self.name, self.node, self.index = dtype, shape, name, node, index
        self.const, self.content = const, content
        self.key = id(self)
        self.sequence = False

    @property
    def rank(self) -> int | None:
        """The number of dims, or None."""
        return None if self.shape is None else len(self.shape)

    @property
    def numel(self) -> Size:
        """The number of elements (the rank must be known)."""
        from onnxport.target.dims import product

        assert self.shape is not None
        return product(self.shape)

    def __repr__(self) -> str:
        shape = "?" if self.shape is None else ", ".join(map(str, self.shape))
        maker = self.node.op_type if self.node else "const" if self.const else "size" if self.content else "input"
        return f"<{self.name or maker}: {self.dtype and self.dtype.name}[{shape}]>"


class Complex(Value):
    """A tensor of complex numbers: two real tensors of one shape, as ONNX Runtime has no complex ones.

    re, im: the parts.   const: the complex tensor itself, where it is known.   No node reads one (the builder refuses it), so an
    operator that does not know of complex numbers cannot go on with one part alone.
    """

    __slots__ = ("im", "re")

    def __init__(self, re: Value, im: Value, const: Constant | None = None):
        self.re, self.im = re, im
        super().__init__(DataType.COMPLEX128 if re.dtype == DataType.DOUBLE else DataType.COMPLEX64, re.shape, const=const)

    @property
    def shape(self) -> Shape | None:
        """That of the parts."""
        return self.re.shape

    @shape.setter
    def shape(self, shape: Shape | None) -> None:
        self.re.shape = self.im.shape = shape


class Window(Value):
    """A value as another module call sees it: dtype and shape, but not what made it.

    origin: the value itself.   call: the one that sees it.
    """

    __slots__ = ("call", "origin")

    def __init__(self, origin: Value, call: ModuleCall | None):
        super().__init__(origin.dtype, origin.shape)
        self.origin, self.call, self.key, self.sequence = origin, call, origin.key, origin.sequence


def behind(value: Value) -> Value:
    """The value itself."""
    return value.origin if isinstance(value, Window) else value


class Node:
    """One node in the newest ONNX form (`op_type`, `inputs`, `attrs`) and, in `written`, as the wanted opset spells it.

    block: the graph or subgraph that it stands in.   call: that of the module whose function it will be a node of.
    """

    __slots__ = ("attrs", "block", "call", "domain", "inputs", "op_type", "outputs", "scope", "source", "written")

    def __init__(self, op_type: str, domain: str, inputs: tuple[Value | None, ...], attrs: dict[str, Any]):
        self.op_type, self.domain, self.inputs, self.attrs = op_type, domain, inputs, attrs
        self.outputs: tuple[Value, ...] = ()
        self.block: Block | None = None
        self.call: ModuleCall | None = None
        self.scope: str = ""
        self.source: str = ""
        self.written: tuple[str, tuple[Value | None, ...], dict[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"<{self.op_type} {list(self.inputs)} {self.attrs}>"


class Block:
    """The nodes of one graph or of one subgraph (a branch of If, a body of Loop)."""

    __slots__ = ("inputs", "known", "nodes", "outputs", "parent")

    def __init__(self, parent: Block | None = None):
        self.parent = parent
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        self.known: dict[Any, tuple[Value, ...]] = {}  # what was built already, by operator, inputs and attributes
