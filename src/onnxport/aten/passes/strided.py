"""`as_strided` reads the memory behind a tensor: here it gets all of that memory as one row, and counts its offset from there."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from onnxport import errors
from onnxport.aten.graph import Arg, Block, Graph, Node, Value
from onnxport.aten.make import Maker
from onnxport.aten.passes.views import is_view, shares, source_name
from onnxport.aten.source import where

_READS = frozenset({"aten::as_strided", "aten::as_strided_copy"})
# Views that begin where their source begins.
_SAME_START = frozenset(f"aten::{name}" for name in (
    "view", "_unsafe_view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "ravel",
    "transpose", "swapaxes", "swapdims", "t", "mT", "permute",
    "movedim", "moveaxis", "numpy_T", "unsqueeze", "squeeze", "expand", "expand_as", "broadcast_to", "detach", "alias", "contiguous", "to", "unfold"))
_PARTS = frozenset({"aten::slice", "aten::narrow", "aten::select"})


def spread_out(graph: Graph) -> None:
    """Rewrites every `as_strided` of the graph; a graph without one is left as it is."""
    makers: dict[Value, Node] = {}
    _block(graph.block, makers)


def _block(block: Block, makers: dict[Value, Node]) -> None:
    if not any(node.op in _READS or node.op == "aten::as_strided_scatter" for node in block.nodes) and not any(n.blocks for n in block.nodes):
        makers.update((output, node) for node in block.nodes for output in node.outputs)
        return
    make = Maker()
    for node in block.nodes:
        make.origin = node
        if node.op in _READS:
            _rewrite(make, node, makers)
        elif node.op == "aten::as_strided_scatter" and not _is_contiguous(node.args["self"]):
            raise errors.UnsupportedError(f"as_strided is written at {where(node.source)} and its tensor is not contiguous; call contiguous() first")
        make.nodes.append(node)
        for inner in node.blocks:
            _block(inner, makers)
        makers.update((output, node) for output in node.outputs)
    block.nodes[:] = make.nodes


def _rewrite(make: Maker, node: Node, makers: dict[Value, Node]) -> None:
    base, offset = node.args["self"], 0
    while (maker := makers.get(base)) is not None and is_view(maker):
        source = maker.args[source_name(maker)]
        if not shares(maker, source):
            break
        if maker.op in _PARTS:
            offset = make.integer("add", offset, _start(make, maker, source))
        elif maker.op not in _SAME_START:
            raise errors.UnsupportedError(f"as_strided of what {maker.op} gives, at {where(node.source)}: where that begins in memory is not known")
        base = source
    node.args["self"] = _row(make, node, base)
    if node.args.get("storage_offset") is None:
        node.args["storage_offset"] = offset


def _start(make: Maker, node: Node, source: Value) -> Arg:
    """How far behind its source a slice begins."""
    dim, start = node.args["dim"], node.args["index" if node.op == "aten::select" else "start"]
    if not _is_contiguous(source) or source.shape is None or (isinstance(start, Value) and start.kind == "tensor"):
        raise errors.UnsupportedError(f"as_strided of a part that {node.op} takes at {where(node.source)}: where it begins in memory is not known")
    dim %= len(source.shape)
    if isinstance(start, int) and start < 0:
        start = make.integer("add", make.size(source, dim), start)
    return make.integer("mul", start or 0, _product(make, (make.size(source, d) for d in range(dim + 1, len(source.shape)))))


def _product(make: Maker, sizes: Iterable[Arg]) -> Arg:
    result: Arg = 1
    for size in sizes:
        result = make.integer("mul", result, size)
    return result


def _row(make: Maker, node: Node, base: Value) -> Value:
    """All elements in the order of memory."""
    if base.shape is None or base.strides is None or not _is_dense(base):
        raise errors.UnsupportedError(f"as_strided of a tensor that is not dense in memory, at {where(node.source)}; call contiguous() first")
    strides, shape = base.strides, base.shape
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    if order != list(range(len(shape))) and not _is_contiguous(base):
        turned = Value("tensor", base.dtype, tuple(shape[axis] for axis in order))
        make.append("aten::permute", "", {"self": base, "dims": order}, [turned])
        base = turned
    row = Value("tensor", base.dtype, (torch.Size(shape).numel(),))
    make.append("aten::reshape", "", {"self": base, "shape": [-1]}, [row])
    return row


def _is_contiguous(value: Value) -> bool:
    if value.shape is None or value.strides is None:
        return False
    return torch.empty_strided(value.shape, value.strides, device="meta").is_contiguous()


def _is_dense(value: Value) -> bool:
    assert value.shape is not None
    assert value.strides is not None
    return bool(torch.ops.aten.is_non_overlapping_and_dense(torch.empty_strided(value.shape, value.strides, device="meta")))
