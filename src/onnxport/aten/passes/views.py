"""Which ATen operators give views, and how what was written into a view is put back into its source.

Whether an operator such as `reshape` shares memory depends on strides; what the capture recorded of them decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import NUMBERS, Arg, Node, Value
from onnxport.aten.make import INT_MAX, Maker
from onnxport.aten.source import where

# Which argument a view looks at, where it is not `self`.
_DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
_SOURCE = {"aten::linalg_diagonal": "A", "aten::__getitem__": "list",
           "aten::_unwrap_optional": "optional", **{f"aten::{name}": "input" for name in _DROPOUTS}}

PutBack = Callable[[Maker, Node, Value, Value], Value]


def source_name(node: Node) -> str:
    """The name of the argument that a view node looks at."""
    return _SOURCE.get(node.op, "self")


# --- does it share memory? ---------------------------------------------------------------------------------------------------


def _always(node: Node, source: Value) -> bool:
    return True


def _same_layout(node: Node, source: Value) -> bool:
    """`contiguous`, `to` and their like return `self` where nothing is to be changed."""
    out = node.outputs[0]
    return not node.args.get("copy") and source.dtype == out.dtype and source.strides == out.strides


def _is_real(node: Node, source: Value) -> bool:
    return source.dtype is None or not source.dtype.is_complex


def _inactive(node: Node, source: Value) -> bool:
    return not node.args["train"] or node.args["p"] == 0


def _viewable(node: Node, source: Value) -> bool:
    """Whether `reshape` could make a view of these strides."""
    out = node.outputs[0]
    if source.shape is None or source.strides is None or out.shape is None:
        return True
    try:
        torch.empty_strided(source.shape, source.strides, device="meta").view(out.shape)
    except (RuntimeError, TypeError):
        return False
    return True


# --- putting back ------------------------------------------------------------------------------------------------------------


def _unchanged(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return child


def _reshape(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return make.reshape_as(child, parent)


def _real(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    """The real part; of real numbers, all of it."""
    if _is_real(node, parent):
        return child
    return make.emit("aten::complex", "", parent, real=child, imag=make.emit("aten::imag", "", child, self=parent))


def _imag(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return make.emit("aten::complex", "", parent, real=make.emit("aten::real", "", child, self=parent), imag=child)


def _conj(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return child if _is_real(node, parent) else make.emit("aten::conj_physical", "", parent, self=child)


def _negated(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return make.emit("aten::neg", "", parent, self=child)


def _resolved(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    """A copy where the tensor was conjugated, which nobody knows here."""
    return child if _is_real(node, parent) else refuse(make, node, parent, child)


def _view_as_real(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return make.emit("aten::view_as_complex", "", parent, self=child)


def _view_as_complex(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return make.emit("aten::view_as_real", "", parent, self=child)


def _unsqueeze(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return make.emit("aten::squeeze", "dim", parent, self=child, dim=node.args["dim"])


def _squeeze(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    dim = node.args.get("dim")
    if not isinstance(dim, int) or parent.shape is None:
        return make.reshape_as(child, parent)
    if not parent.shape or parent.shape[dim] != 1:
        return child
    return make.emit("aten::unsqueeze", "", parent, self=child, dim=dim % len(parent.shape))


def _transpose(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    dims = [node.args[name] for name in ("dim0", "dim1", "axis0", "axis1") if name in node.args]
    return make.emit("aten::transpose", "int", parent, self=child, dim0=dims[0], dim1=dims[1])


def _matrix_transpose(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    if node.op == "aten::t":
        return make.emit("aten::t", "", parent, self=child)
    if len(_shape(node, parent)) < 2:
        return child
    return make.emit("aten::transpose", "int", parent, self=child, dim0=-2, dim1=-1)


def _adjoint(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return _conj(make, node, parent, _matrix_transpose(make, node, parent, child))


def _reverse(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    rank = len(_shape(node, parent))
    return make.emit("aten::permute", "", parent, self=child, dims=list(range(rank))[::-1])


def _permute(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    dims = node.args["dims"]
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim % len(dims)] = position
    return make.emit("aten::permute", "", parent, self=child, dims=inverse)


def _movedim(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    """Moving the dims back is the inverse: those that were not moved keep their order in both directions."""
    args = node.args
    return make.emit("aten::movedim", node.overload, parent, self=child, source=args["destination"], destination=args["source"])


def _select(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    return make.emit("aten::select_scatter", "", parent, self=parent, src=child, dim=node.args["dim"], index=node.args["index"])


def slice_scatter(make: Maker, parent: Value, child: Value, dim: Arg, start: Arg, end: Arg, step: Arg = 1) -> Value:
    """`parent` with `child` in place of its slice. A slice that is all of it (`x[:, 0]` makes one) is no more than `child`."""
    if start in (0, None) and end in (INT_MAX, None) and step == 1:
        return child
    return make.emit("aten::slice_scatter", "", parent, self=parent, src=child, dim=dim, start=start, end=end, step=step)


def _slice(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    args = node.args
    return slice_scatter(make, parent, child, args["dim"], args["start"], args["end"], args["step"])


def _narrow(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    args = node.args
    start = args["start"]
    if isinstance(start, Value) and start.kind == "tensor":
        start = make.emit("aten::Int", "Tensor", Value("int"), a=start)
    if isinstance(start, int) and start < 0:
        start = make.integer("add", make.size(parent, args["dim"]), start)
    return slice_scatter(make, parent, child, args["dim"], start, make.integer("add", start, args["length"]))


def _diagonal(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    args = {name: node.args[name] for name in ("offset", "dim1", "dim2")}  # those of linalg_diagonal too
    return make.emit("aten::diagonal_scatter", "", parent, self=parent, src=child, **args)


def _as_strided(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    args = {name: node.args[name] for name in ("size", "stride", "storage_offset")}
    return make.emit("aten::as_strided_scatter", "", parent, self=parent, src=child, **args)


def _expand(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    """Only an expand that repeats nothing can be written through."""
    if parent.shape is not None and child.shape is not None:
        fill = len(child.shape) - len(parent.shape)
        if (1,) * fill + parent.shape == child.shape:
            return make.reshape_as(child, parent) if fill else child
    return refuse(make, node, parent, child)


def refuse(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    """No way back."""
    raise errors.UnsupportedError(
        f"an in-place operator at {where(make.origin.source)} writes through {node.op} (made at {where(node.source)}, module "
        f"{node.scope or '?'}); what it looks at cannot be written back. Clone the tensor before it is written")


def _shape(node: Node, value: Value) -> tuple[int, ...]:
    if value.shape is None:
        raise errors.UnsupportedError(f"writing through {node.op} of a tensor of unknown rank at {where(node.source)}")
    return value.shape


# --- pieces of lists ---------------------------------------------------------------------------------------------------------

# Where a piece lies in what was split: dim and index, or dim, start and end.
Part = tuple[Arg, ...]


def _unbind(make: Maker, node: Node, index: int, parent: Value) -> Part:
    return node.args["dim"], index


def _split(make: Maker, node: Node, index: int, parent: Value) -> Part:
    args = node.args
    length = args["split_sizes"] if "split_sizes" in args else args["split_size"]
    if not isinstance(length, list):
        return _run(make, args["dim"], make.integer("mul", index, length), length)
    start: Any = 0
    for size in length[:index]:
        start = make.integer("add", start, size)
    return _run(make, args["dim"], start, length[index])


def _chunk(make: Maker, node: Node, index: int, parent: Value) -> Part:
    """Chunks have ceil(size / chunks) rows, the last one what is left."""
    dim, chunks = node.args["dim"], node.args["chunks"]
    size = make.integer("add", make.size(parent, dim), make.integer("sub", chunks, 1))
    length = make.integer("floordiv", size, chunks)
    return _run(make, dim, make.integer("mul", length, index), length)


def _run(make: Maker, dim: Arg, start: Arg, length: Arg) -> Part:
    return dim, start, make.integer("add", start, length)


def _tensor_split(make: Maker, node: Node, index: int, parent: Value) -> Part:
    dim, args = _dim_of(node, parent), node.args
    places, sections = args.get("indices"), args.get("sections")
    if isinstance(places, list):
        return dim, 0 if index == 0 else places[index - 1], places[index] if index < len(places) else INT_MAX
    if sections is None:
        raise errors.UnsupportedError(f"writing through {node.op} with its indices in a tensor\n  at {where(node.source)}")
    # The first (size % sections) pieces are one longer than the rest.
    size = make.size(parent, dim)
    length, longer = make.integer("floordiv", size, sections), make.integer("remainder", size, sections)

    def edge(piece: int) -> Any:
        return make.integer("add", make.integer("mul", length, piece), make.integer("min", longer, piece) if piece else 0)

    return dim, edge(index), edge(index + 1)


def _dim_of(node: Node, parent: Value) -> int:
    """The dim that tensor_split and its shorthands split."""
    if node.op == "aten::tensor_split":
        return int(node.args["dim"])
    if node.op == "aten::hsplit":
        return 0 if len(_shape(node, parent)) == 1 else 1
    return {"aten::vsplit": 0, "aten::dsplit": 2}[node.op]


_PIECES: dict[str, Callable[[Maker, Node, int, Value], Part]] = {
    "unbind": _unbind, "split": _split, "unsafe_split": _split, "split_with_sizes": _split, "unsafe_split_with_sizes": _split,
    "chunk": _chunk, "unsafe_chunk": _chunk, "tensor_split": _tensor_split, "hsplit": _tensor_split, "vsplit": _tensor_split,
    "dsplit": _tensor_split,
}
_PIECES = {f"aten::{name}": find for name, find in _PIECES.items()}

# operator -> (does it share memory?, the way back)
_TABLE: dict[str, tuple[Callable[[Node, Value], bool], PutBack]] = {
    **dict.fromkeys(("detach", "alias", "lift_fresh", "pin_memory"), (_always, _unchanged)),
    **dict.fromkeys(("contiguous", "to", "type_as", "sum_to_size"), (_same_layout, _unchanged)),
    "positive": (_always, _unchanged), "conj_physical": (_is_real, _unchanged),
    **dict.fromkeys(("conj", "_conj"), (_always, _conj)), **dict.fromkeys(("resolve_conj", "resolve_neg"), (_always, _resolved)),
    "_neg_view": (_always, _negated), "real": (_always, _real), "imag": (_always, _imag),
    "view_as_real": (_always, _view_as_real), "view_as_complex": (_always, _view_as_complex),
    **dict.fromkeys(_DROPOUTS, (_inactive, _unchanged)),
    **dict.fromkeys(("view", "view_as", "_unsafe_view", "unflatten", "_reshape_alias", "atleast_1d", "atleast_2d", "atleast_3d"),
                    (_always, _reshape)),
    **dict.fromkeys(("reshape", "reshape_as", "flatten", "ravel"), (_viewable, _reshape)),
    "unsqueeze": (_always, _unsqueeze), "squeeze": (_always, _squeeze),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), (_always, _transpose)),
    **dict.fromkeys(("t", "mT"), (_always, _matrix_transpose)), **dict.fromkeys(("mH", "adjoint", "matrix_H"), (_always, _adjoint)),
    "numpy_T": (_always, _reverse), "permute": (_always, _permute), **dict.fromkeys(("movedim", "moveaxis"), (_always, _movedim)),
    "as_strided": (_always, _as_strided), "select": (_always, _select), "slice": (_always, _slice), "narrow": (_always, _narrow),
    **dict.fromkeys(("diagonal", "linalg_diagonal"), (_always, _diagonal)),
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), (_always, _expand)),
    "unfold": (_always, refuse),
    **{name[6:]: (_always, refuse) for name in _PIECES},
}
_TABLE = {f"aten::{name}": row for name, row in _TABLE.items()}
# Their results are what they were given.
CASTS = frozenset({"prim::unchecked_cast", "aten::_unwrap_optional", "prim::unchecked_unwrap_optional"})
_TABLE.update(dict.fromkeys(CASTS, (_always, _unchanged)))


def is_view(node: Node) -> bool:
    """Whether the node may give a view (of a tensor: `slice.t` is of a list)."""
    return node.op in _TABLE and node.overload not in ("t", "str") and any(output.kind not in NUMBERS for output in node.outputs)


def shares(node: Node, source: Value) -> bool:
    """Whether the node's output lies in the memory of `source`."""
    return _TABLE[node.op][0](node, source)


def depends(node: Node) -> bool:
    """Whether it depends on dtype or layout, which nobody knows here, if the node gives a view."""
    return any(output.unknown for output in node.outputs) and _TABLE[node.op][0] in (_same_layout, _viewable) and not node.args.get("copy")


def depends_on_dtype(node: Node) -> bool:
    """Whether it gives a view where the dtype stays as it is."""
    return node.op in ("aten::to", "aten::type_as") and node.args.get("memory_format") is None


def put_back(make: Maker, node: Node, parent: Value, child: Value) -> Value:
    """`parent` with the part that the view `node` looks at replaced by `child`."""
    if node.op == "aten::__getitem__":
        copy = make.emit("aten::list", "t", parent, l=parent)
        make.append("aten::_set_item", "t", {"l": copy, "idx": node.args["idx"], "el": child}, [parent.like()])
        return copy
    if node.op == "aten::view" and node.overload == "dtype":
        return refuse(make, node, parent, child)
    entry = _TABLE.get(node.op)
    return (entry[1] if entry else refuse)(make, node, parent, child)


def put_piece(make: Maker, node: Node, index: int, parent: Value, child: Value) -> Value:
    """`parent` with the piece `index` of the list that `node` makes of it replaced by `child`."""
    dim, start, *end = _PIECES[node.op](make, node, index, parent)
    if not end:
        return make.emit("aten::select_scatter", "", parent, self=parent, src=child, dim=dim, index=start)
    return slice_scatter(make, parent, child, dim, start, end[0])


def take_piece(make: Maker, node: Node, index: int, parent: Value, like: Value) -> Value:
    """The piece `index` of the list that `node` makes of `parent`, without the others."""
    dim, start, *end = _PIECES[node.op](make, node, index, parent)
    if not end:
        return make.emit("aten::select", "int", like, self=parent, dim=dim, index=start)
    return make.emit("aten::slice", "Tensor", like, self=parent, dim=dim, start=start, end=end[0], step=1)


# Operators on a list of tensors whose results are a view of each, by the operator that makes one; further ones that give a view of one.
EACH_OF_SEVERAL = {"aten::broadcast_tensors": "aten::expand_as", "aten::meshgrid": "aten::meshgrid"}
OF_SEVERAL = frozenset({*EACH_OF_SEVERAL, "aten::einsum", "aten::cartesian_prod"})
# Results of these may share memory with what they got, but cannot be made a second time from it.
ONCE = frozenset({"prim::If", "prim::Loop", "aten::meshgrid", "aten::einsum", "aten::cartesian_prod"})


def only_moves(equation: str) -> bool:
    """Whether an einsum of one operand sums nothing; then it gives a view."""
    given, _, result = equation.replace(" ", "").partition("->")
    if "->" not in equation:
        return "," not in given and len(set(given)) == len(given)
    return "," not in given and set(given) <= set(result)


def key(node: Node) -> Any:
    """Equal for views that look at the same part of the same place."""
    name = source_name(node)
    return (node.op, node.overload, *(_frozen(arg) for given, arg in node.args.items() if given != name))


def _frozen(arg: Arg) -> Any:
    return tuple(_frozen(item) for item in arg) if isinstance(arg, (list, tuple)) else arg
