"""The `g` of a symbolic function: a scratch `torch._C.Graph` whose nodes are read into the builder as they are made."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from onnxport import errors, notice
from onnxport.capture import scratch as jit
from onnxport.ops.quantised import Quantised
from onnxport.symbolics import versions
from onnxport.target.dims import Dim
from onnxport.target.dtypes import from_torch, to_torch
from onnxport.target.value import Block, DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_ATTRIBUTE = re.compile(r"(.+)_([ifst]|is|fs|ss|ts)")
ATEN_DOMAIN = "org.pytorch.aten"


class GraphContext:
    """What a symbolic function writes into.

    opset: the exported opset; a function that asks for it is taken to write in the forms of that opset, any other one in the
    forms of the opset that it was registered for.
    graph, block: the scratch graph and the block that `op` appends to.   original_node: the operator that is translated.
    Whatever else a `torch._C.Graph` has, this has too.
    """

    def __init__(self, builder: Builder, *, form: int | None = None, namespace: str = "", call: Callable[..., Any] | None = None):
        self.builder = builder
        self.graph: Any = jit.scratch_graph()
        self.block: Any = None
        self.original_node: Any = None
        self.params_dict: dict[str, torch.Tensor] = {}
        self.env: dict[Any, Any] = {}
        self.values_in_env: set[Any] = set()
        self.new_nodes: list[Any] = []
        self.call_operator = call
        self._form, self._namespace = form, namespace
        self._asked = False
        self._known: dict[int, Any] = {}  # number of a scratch value -> what it is in the builder
        self._open = False  # a node with blocks was made, which the function has still to fill

    @property
    def opset(self) -> int:
        """The opset that is exported."""
        self._asked = True
        return self.builder.opset

    def __getattr__(self, name: str) -> Any:
        return getattr(self.graph, name)

    # ---------------------------------------------------------------- values

    def value(self, arg: Any) -> Any:
        """A scratch value that stands for an argument: a tensor, a number, a list, None or a string; such a value as it is."""
        if jit.is_value(arg):
            return arg
        if isinstance(arg, Value):
            data = literal(arg)
            made = self.graph.addInput() if data is None else self._literal(data)  # functions may ask for its numbers
            self._known[made.unique()] = arg
            if data is None:
                self._typed(made, arg)
            return made
        if isinstance(arg, Dim):
            return self.value(self.builder.scalar(arg))
        if isinstance(arg, (list, tuple)):
            return self._list(arg)
        return self._literal(arg)

    def _literal(self, arg: Any) -> Any:
        if arg is None:
            made = self._insert("prim::Constant", [], 1)
            made.output().setType(jit.NONE_TYPE)
        elif isinstance(arg, str):
            made = self._insert("onnx::Constant", [], 1)
            made.s_("value", arg)
            made.output().setType(jit.STRING_TYPE)
        elif isinstance(arg, (bool, int, float, complex, torch.Tensor)):
            made = self._insert("onnx::Constant", [], 1)
            tensor = arg if isinstance(arg, torch.Tensor) else torch.tensor(arg, dtype=torch.float64 if isinstance(arg, float) else None)
            made.t_("value", tensor)
            made.output().setType(jit.tensor_type(tensor.dtype, list(tensor.shape)))
        else:
            raise errors.SymbolicValueError(f"a {type(arg).__name__} cannot be given to a symbolic function")
        return made.output()

    def _list(self, items: Any) -> Any:
        values = [self.value(item) for item in items]
        made = self._insert("prim::ListConstruct", values, 1)
        kinds = {type(item) for item in items}
        made.output().setType(jit.list_type(int if kinds <= {int, Dim} else float if kinds <= {int, float} else None))
        return made.output()

    def _typed(self, scratch: Any, value: Value) -> None:
        """What is known of a value as the type of its scratch value; a size that may change is None."""
        dtype = None if value.dtype is None else to_torch(value.dtype)
        sizes = None if value.shape is None else [size if isinstance(size, int) else None for size in value.shape]
        scratch.setType(jit.tensor_type(dtype, sizes))

    def _insert(self, kind: str, inputs: list[Any], outputs: int) -> Any:
        node = self.graph.create(kind, inputs, outputs)
        if self.block is None:
            return self.graph.insertNode(node)
        with self.graph.insert_point_guard(self.block):
            return self.graph.insertNode(node)

    # ---------------------------------------------------------------- what symbolic functions call

    def op(self, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """Adds a node `opname` ("Relu", "domain::Name") and returns its output, or a tuple where `outputs` is not 1.

        raw_args: values, None for one that is left out, tensors, numbers.   kwargs: attributes by name and type, `alpha_f=0.1`:
        `_f` float, `_i` int, `_s` string, `_t` tensor, and lists of them; a constant value is taken for what it holds.
        """
        kind = opname if "::" in opname else f"onnx::{opname}"
        node = self._insert(kind, [arg if jit.is_value(arg) else self.value(arg) for arg in raw_args], outputs)
        for name, data in sorted(kwargs.items()):
            _set(node, opname, name, data)
        self._read(node)
        made = tuple(node.outputs())
        return made[0] if outputs == 1 else made

    def op_as(self, opset: int, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """As `op`, for a node that is written in the form of this opset whatever the function was registered for."""
        before, asked = self._form, self._asked
        self._form, self._asked = opset, False
        try:
            return self.op(opname, *raw_args, outputs=outputs, **kwargs)
        finally:
            self._form, self._asked = before, asked

    def at(self, operator: str, *args: Any, overload_name: str = "", **kwargs: Any) -> Any:
        """Adds an ATen node, which only PyTorch itself can run."""
        return self.op("aten::ATen", *args, operator_s=operator, overload_name_s=overload_name, **kwargs)

    aten_op = at

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Translates the ATen operator `name` of scratch values by onnxport's own function."""
        assert self.call_operator is not None
        given, named = [self.plain(a) for a in args], {k: self.plain(a) for k, a in kwargs.items()}
        if name.startswith("quantized::") and not any(isinstance(arg, Quantised) for arg in (*given, *named.values())):
            raise errors.SymbolicFunctionError(f"{name} of tensors that are not quantised; write the operator of floats between QuantizeLinear "
                                               "and DequantizeLinear")
        return self._scratch(self.call_operator(name, given, named))

    def _scratch(self, result: Any) -> Any:
        if isinstance(result, (list, tuple)) and any(isinstance(r, Value) for r in result):
            return tuple(self._scratch(r) for r in result)
        return self.value(result)

    # ---------------------------------------------------------------- reading

    def plain(self, arg: Any) -> Any:
        """An argument as operators take it: a builder's value, a number, a list, None."""
        if isinstance(arg, (list, tuple)):
            return [self.plain(a) for a in arg]
        if not jit.is_value(arg):
            return arg
        node = arg.node()
        if node.mustBeNone():
            return None
        if node.kind() in ("prim::ListConstruct", "prim::TupleConstruct"):
            return [self.plain(v) for v in node.inputs()]
        if node.kind() in ("onnx::Constant", "prim::Constant") and node.hasAttribute("value"):
            data = constant_of(node)
            return data.item() if isinstance(data, torch.Tensor) and data.dim() == 0 else data
        return self.result(arg)

    def result(self, scratch: Any) -> Any:
        """What a scratch value is in the builder, with what `setType` said of it."""
        if scratch.node().mustBeNone():
            return None
        found = self._known.get(scratch.unique())
        if found is None:
            self._read(scratch.node(), late=True)
            found = self._known.get(scratch.unique())
        if found is None:
            raise errors.SymbolicValueError(f"a symbolic function returned a value that nothing computes: {scratch.node()}")
        if isinstance(found, Value):
            self._learn(found, scratch)
        return found

    def _learn(self, value: Value, scratch: Any) -> None:
        kind = scratch.type()
        if kind.kind() != "TensorType" or (value.dtype is not None and value.shape is not None):
            return
        if value.dtype is None and kind.dtype() is not None:
            value.dtype = from_torch(kind.dtype())
        sizes = kind.varyingSizes() if value.shape is None else None
        if sizes is not None:
            value.shape = tuple([self.builder.fresh(value, axis) if size is None else size for axis, size in enumerate(sizes)])

    def _read(self, node: Any, late: bool = False) -> None:
        """Makes the builder's node of a scratch node; the types of its outputs are known from here on."""
        outputs = list(node.outputs())
        if (outputs and outputs[0].unique() in self._known) or node.mustBeNone():
            return
        if list(node.blocks()) and not late:
            self._open = True
            return
        if self._open and not late:
            return
        kind = node.kind()
        if kind == "onnx::Constant":
            data = constant_of(node)
            if isinstance(data, torch.Tensor):
                known = self._known[outputs[0].unique()] = self.builder.const(data)
                self._typed(outputs[0], known)
            return
        if kind in ("prim::ListConstruct", "prim::TupleConstruct", "prim::Constant"):
            if late:
                self._known[outputs[0].unique()] = self.plain(outputs[0])
            return
        made = self._node(node, kind, len(outputs))
        for scratch, value in zip(outputs, made, strict=True):
            self._known[scratch.unique()] = value
            if value.dtype is not None or value.shape is not None:
                self._typed(scratch, value)

    def _node(self, node: Any, kind: str, outputs: int) -> list[Value]:
        domain, _, op_type = kind.partition("::")
        inputs = [self._input(v) for v in node.inputs()]
        attrs = {name: attribute_of(node, name) for name in node.attributeNames()}
        blocks = list(node.blocks())
        if blocks:
            attrs.update(zip(_BLOCKS.get(op_type, ()), [self._subgraph(b) for b in blocks], strict=False))
        if domain in ("aten", ATEN_DOMAIN):
            domain = ATEN_DOMAIN
        elif domain in ("onnx", "ai.onnx") and not versions.is_known(op_type):
            domain = self._own_domain(op_type)
        elif domain in ("onnx", "ai.onnx"):
            form = self.builder.opset if self._asked or self._form is None else self._form
            return versions.write(self.builder, versions.Written(op_type, inputs, attrs, outputs), form)
        return self.builder.several(op_type, *inputs, outputs=outputs, domain=domain, **attrs)

    def _input(self, scratch: Any) -> Value | None:
        found = self.result(scratch)
        if isinstance(found, list):
            if all(isinstance(item, (int, Dim)) for item in found):
                return self.builder.sizes(found)
            raise errors.SymbolicValueError("a list of tensors cannot be an input of an ONNX node; give its elements one by one")
        assert found is None or isinstance(found, Value)
        return found

    def _own_domain(self, op_type: str) -> str:
        domain = self._namespace if self._namespace not in ("", "aten", "prim") else "custom"
        notice.warn(f"{op_type} is no operator of ONNX; it is written as {domain}::{op_type}. Name a domain yourself: "
                    f"g.op(\"{domain}::{op_type}\", ...)", UserWarning)
        return domain

    def _subgraph(self, block: Any) -> Block:
        with self.builder.subgraph() as made:
            for scratch in block.inputs():
                kind = scratch.type()
                dtype = from_torch(kind.dtype()) if kind.kind() == "TensorType" and kind.dtype() is not None else DataType.INT64
                sizes = kind.varyingSizes() if kind.kind() == "TensorType" else ()
                shape = None if sizes is None or None in sizes else tuple(sizes)
                self._known[scratch.unique()] = self.builder.input(None, dtype, shape)
            for node in block.nodes():
                self._read(node, late=True)
            made.outputs = [self.result(v) for v in block.outputs()]
        return made


def literal(value: Value) -> torch.Tensor | None:
    """The numbers that the model's code writes; None for weights, and for what only a run knows."""
    if value.const is not None:
        return None if value.const.parameter or value.const.is_lazy else value.const.tensor
    if value.content is None or value.node is not None or not all(isinstance(size, int) for size in value.content):
        return None
    data = torch.tensor(value.content)
    return data.reshape(()) if value.rank == 0 else data


_BLOCKS = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


def constant_of(node: Any) -> Any:
    """What a Constant node holds: a tensor, a number, a string, a list."""
    names = list(node.attributeNames())
    data = attribute_of(node, names[0]) if names else None
    if names and names[0].startswith("value_") and not isinstance(data, str):
        return torch.tensor(data)
    return data


def attribute_of(node: Any, name: str) -> Any:
    """An attribute of a node, whatever its type (torch calls lists of floats "c" and complex numbers "fs")."""
    kind = {"c": "fs", "fs": "c"}.get(node.kindOf(name), node.kindOf(name))
    try:
        return getattr(node, kind)(name)
    except RuntimeError:
        return getattr(node, node.kindOf(name))(name)


def _whole(item: Any) -> int:
    """A number as an int, none of which is cut off."""
    number = int(item)
    if number != item:
        raise ValueError(f"{item} is not a whole number")
    return number


def _set(node: Any, opname: str, key: str, data: Any) -> None:
    """One attribute that is given as `name_type=data`."""
    match = _ATTRIBUTE.fullmatch(key)
    if match is None:
        raise errors.SymbolicValueError(f"g.op({opname!r}, {key}=...): the name of an attribute ends in _f, _i, _s or _t for its type")
    name, kind = match[1], match[2][0]
    if jit.is_value(data):
        held = data.node()
        if held.kind() not in ("onnx::Constant", "prim::Constant") or held.mustBeNone():
            raise errors.SymbolicValueError(
                f"g.op({opname!r}, {key}=...): an attribute has to be known now, and this value is computed by {held.kind()}")
        data = constant_of(held)
    if data is None:
        return
    if kind != "t" and isinstance(data, torch.Tensor):
        data = data.tolist()
    convert: Any = {"i": _whole, "f": float, "s": str}.get(kind, lambda item: item)
    several = isinstance(data, (list, tuple, torch.Size))
    if kind == "t" and not isinstance(data, torch.Tensor) and not several:
        data = torch.tensor(data)
    setter = getattr(node, f"{kind}{'s' if several else ''}_")
    try:
        setter(name, [convert(item) for item in data] if several else convert(data))
    except (TypeError, ValueError) as cause:
        raise errors.SymbolicValueError(f"g.op({opname!r}, {key}={data!r}): it cannot be an attribute of this type") from cause
