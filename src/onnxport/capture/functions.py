"""`autograd.Function`s with a `symbolic` of their own while torch.export captures: each call is one operator of ours, of which torch.export
only asks the results' sizes. They are read as the function's call, which lowering translates by its symbolic function.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from onnxport import errors
from onnxport.aten.graph import Block, Node
from onnxport.capture import torch_private

_NAMESPACE = "onnxport_functions"
_NAME = f"{_NAMESPACE}::call"
_local = threading.local()
_numbers = itertools.count()  # never twice: PyTorch remembers what an operator gives for the same arguments


@dataclass
class _Called:
    """One call. convention: what each argument is, a tensor ("d"), a size ("n") or anything else ("c"), of which `others` holds the last kind."""

    function: Any
    convention: str
    others: list[Any]
    several: bool = False


@contextlib.contextmanager
def kept() -> Iterator[dict[int, Any]]:
    """Inside, in this thread, calls of functions with a `symbolic` stay whole; gives them by their numbers."""
    before, _local.calls = getattr(_local, "calls", None), {}
    original = vars(torch.autograd.Function)["apply"]
    _operator()
    torch.autograd.Function.apply = classmethod(functools.partial(_apply, original))
    try:
        yield _local.calls
    finally:
        torch.autograd.Function.apply = original
        _local.calls = before


def _apply(original: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    calls = getattr(_local, "calls", None)
    if calls is None or not hasattr(function, "symbolic") or kwargs:
        return original.__get__(None, function)(*args, **kwargs)
    convention = "".join("d" if isinstance(a, torch.Tensor) else "n" if isinstance(a, torch.SymInt) else "c" for a in args)
    parts: dict[str, list[Any]] = {kind: [a for a, k in zip(args, convention, strict=True) if k == kind] for kind in "dnc"}
    number = next(_numbers)
    calls[number] = called = _Called(function, convention, parts["c"])
    results = _operator()(number, parts["d"], parts["n"])
    return tuple(results) if called.several else results[0]


@functools.cache
def _operator() -> Any:
    library = _library()
    library.define("call(int number, Tensor[] tensors, SymInt[] sizes) -> Tensor[]")
    torch.library.register_fake(_NAME, _run, lib=library)
    return getattr(torch.ops, _NAMESPACE).call.default


@functools.cache
def _library() -> Any:
    return torch.library.Library(_NAMESPACE, "DEF")


def _run(number: int, tensors: Sequence[torch.Tensor], sizes: Sequence[Any]) -> list[torch.Tensor]:
    """What the function's forward gives; it may not write into its arguments here."""
    called: _Called = _local.calls[number]
    given = _arguments(called.convention, tensors, sizes, called.others)
    _local.calls, calls = None, _local.calls  # what is called inside is no call of the graph's
    try:
        with _Writes(tensors) as writes:
            results = torch_private.forward_of(called.function, given)
    finally:
        _local.calls = calls
    name = called.function.__qualname__
    if writes.found:
        raise errors.CaptureError(f"{name} has a symbolic function and writes into its arguments; capture='trace' takes it")
    called.several = isinstance(results, (tuple, list))
    flat = list(results) if called.several else [results]
    if not all(isinstance(result, torch.Tensor) for result in flat):
        raise errors.CaptureError(f"{name} has a symbolic function and returns what is no tensor; capture='trace' takes it")
    return [result.clone() if any(result is t for t in tensors) else result for result in flat]


class _Writes(torch_private.TorchDispatchMode):
    """Notices operators that write into the memory of some tensors."""

    def __init__(self, tensors: Sequence[torch.Tensor]):
        super().__init__()
        self._memory = {t.untyped_storage()._cdata for t in tensors}
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.is_mutable:
            given = {**dict(zip([p.name for p in func._schema.arguments], args)), **(kwargs or {})}
            written = [a for p in func._schema.arguments if p.is_write and isinstance(a := given.get(p.name), torch.Tensor)]
            self.found = self.found or any(t.untyped_storage()._cdata in self._memory for t in written)
        return func(*args, **(kwargs or {}))


def _arguments(convention: str, tensors: Sequence[Any], sizes: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    rest = {"d": iter(tensors), "n": iter(sizes), "c": iter(others)}
    return [next(rest[kind]) for kind in convention]


def restore(block: Block, calls: dict[int, Any]) -> None:
    """Makes `prim::PythonOp` nodes of the calls, as a trace has them."""
    nodes: list[Node] = []
    for node in block.nodes if calls else ():
        for inner in node.blocks:
            restore(inner, calls)
        if node.op == "prim::ListUnpack" and nodes and nodes[-1].op == "prim::PythonOp" and node.args["self"] is nodes[-1].outputs[0]:
            nodes[-1].outputs = node.outputs
            continue
        if node.op == _NAME:
            _as_in_a_trace(node, calls)
        nodes.append(node)
    block.nodes = nodes or block.nodes


def _as_in_a_trace(node: Node, calls: dict[int, Any]) -> None:
    called: _Called = calls[cast("int", node.args["number"])]
    node.op, node.overload, node.schema = "prim::PythonOp", "", None
    node.args = {"tensors": node.args["tensors"], "sizes": node.args["sizes"], "scalars": tuple(called.others), "convention": called.convention,
                 "function": called.function, "body": None}
