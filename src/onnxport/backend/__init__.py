"""ONNX's backend interface: `prepare(model).run(inputs)`, also for files that hold operators of PyTorch.

Files of standard operators run in ONNX Runtime as they are. Where a file holds ATen nodes, operators that `ONNX_FALLTHROUGH` kept,
or nodes of the caller's own, these run in PyTorch or in the functions that are given, and the parts between them in ONNX Runtime.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
import onnx.inliner
import onnx_ir as ir
import torch
from onnx.backend import base

from onnxport import errors, notice, runtime, save
from onnxport.backend import blocks, kept
from onnxport.backend.arrays import to_numpy_value, to_torch_value, type_of
from onnxport.options import ir_version, newest_opset

_CUDA = "CUDAExecutionProvider"
_GONE = {
    "predict_net": "the Caffe2 protobuf of the network: there is no Caffe2 here; the ONNX model itself is `rep.model`",
    "workspace": "Caffe2's storage of the network's tensors: there is no Caffe2 here; `onnx.numpy_helper.to_array` reads the weights of `rep.model`",
}


class Representation(base.BackendRep):
    """A model that is ready to run.

    model: the `onnx.ModelProto`, or the path that was given.   input_names, output_names: in order.
    """

    def __init__(self, model: Any, engine: _Whole | _Parts):
        self.model, self._engine = model, engine
        self.input_names, self.output_names = engine.inputs, engine.outputs
        self._outputs = base.namedtupledict("Outputs", self.output_names)

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """The outputs as numpy arrays, in a tuple that also knows their names.

        inputs: one array, a list or tuple of arrays in the order of the graph's inputs, or a dict by name; tensors and numbers too.
        Raises `errors.ArgumentError` for another number, name, type or rank, `runtime.RunError` where the model cannot be run.
        """
        feeds = self._feeds(inputs)
        return self._outputs(*[to_numpy_value(value) for value in self._engine.run(feeds)])

    def _feeds(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            feeds = {str(name): to_torch_value(value) for name, value in inputs.items()}
            known = set(self.input_names) | self._engine.optional
            wrong = [*(name for name in self.input_names if name not in feeds), *(name for name in feeds if name not in known)]
        else:
            given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            feeds = {name: to_torch_value(value) for name, value in zip(self.input_names, given)}
            wrong = [""] if len(given) != len(self.input_names) else []
        if wrong:
            what = ", ".join(filter(None, wrong)) or f"{len(inputs) if isinstance(inputs, (list, tuple)) else 1} given"
            raise errors.ArgumentError(f"the model takes the inputs ({', '.join(self.input_names)}); wrong here: {what}")
        for name, value in feeds.items():
            self._check(name, value)
        return feeds

    def _check(self, name: str, value: Any) -> None:
        declared = self._engine.declared.get(name)
        if not isinstance(value, torch.Tensor) or declared is None or not declared.HasField("tensor_type"):
            return
        wanted, found = declared.tensor_type, type_of(value, name, None).tensor_type
        if wanted.elem_type and wanted.elem_type != found.elem_type:
            names = onnx.TensorProto.DataType.Name
            raise errors.ArgumentError(f"the input {name} is a tensor of {names(wanted.elem_type)}, and {names(found.elem_type)} was given")
        sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in wanted.shape.dim]
        given = list(value.shape)
        if wanted.HasField("shape") and (len(sizes) != len(given) or any(s not in (None, g) for s, g in zip(sizes, given))):
            shape = ", ".join(str(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?") for dim in wanted.shape.dim)
            raise errors.ArgumentError(f"the input {name} has the shape ({shape}), and {tuple(given)} was given")

    def __getattr__(self, name: str) -> Any:
        why = f": it was {_GONE[name]}" if name in _GONE else ""
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{why}")


class Backend(base.Backend):
    """ONNX's backend interface on ONNX Runtime and PyTorch."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the device is there and each node has somebody who runs it."""
        return cls.supports_device(device) and not _missing(_loaded(model), kwargs.get("functions") or {})

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", *, functions: Mapping[str, kept.Function] | None = None, **kwargs: Any) -> Representation:
        """Makes a model ready to run.

        model: an `onnx.ModelProto`, its bytes, a path, or an `ONNXProgram`.
        device: "CPU", "CUDA" or "CUDA:0". Where ONNX Runtime has no CUDA, a warning says so and the CPU is used.
        functions: "domain::Name" -> what runs such a node: called with its inputs as tensors (None for one that is left out) and its
            attributes by name; returns a tensor, or several. Goes before everything else.
        Raises `runtime.RunError` where a node has nobody who runs it, or ONNX Runtime does not take the model.
        """
        providers, functions = _providers(device), dict(functions or {})
        for name, function in functions.items():
            if "::" not in name or not callable(function):
                raise errors.ArgumentError(f"functions must be a dict of \"domain::Name\" to a function, not {name!r} to {type(function).__name__}")
        if isinstance(model, (str, os.PathLike)):
            path = os.fsdecode(model)
            proto = onnx.load(path, load_external_data=False)
            if _is_standard(proto, functions):
                return Representation(path, _Whole(path, proto, providers))
        proto = _loaded(model)
        if _is_standard(proto, functions):
            try:
                return Representation(proto, _Whole(_bytes(proto), proto, providers))
            except runtime.RunError as error:
                return Representation(proto, _apart(proto, functions, providers, error))
        return Representation(proto, _apart(proto, functions, providers))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """`prepare(model).run(inputs)`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> Any:
        """Runs one node on arrays. opset_version: of ai.onnx; by default the newest."""
        names = [name for name in node.input if name]
        given = inputs if isinstance(inputs, Mapping) else dict(zip(names, inputs if isinstance(inputs, (list, tuple)) else [inputs]))
        feeds = {name: to_torch_value(value) for name, value in given.items()}
        infos = [onnx.helper.make_value_info(name, type_of(value, name, None)) for name, value in feeds.items()]
        graph = onnx.helper.make_graph([node], "node", infos, [onnx.ValueInfoProto(name=name) for name in node.output if name])
        opset = kwargs.get("opset_version", newest_opset())
        opsets = [onnx.helper.make_opsetid("", opset)]
        if node.domain not in ("", "ai.onnx"):
            opsets.append(onnx.helper.make_opsetid(node.domain, 1))
        model = onnx.helper.make_model(graph, ir_version=ir_version(opset), opset_imports=opsets)
        return cls.prepare(model, device, functions=kwargs.get("functions")).run(feeds)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can run there: "CPU" always, "CUDA" where ONNX Runtime has it."""
        try:
            return _kind(device) == "CPU" or _CUDA in runtime.providers()
        except errors.ArgumentError:
            return False


def _kind(device: str) -> str:
    kind, _, number = str(device).upper().partition(":")
    kind = "CUDA" if kind == "GPU" else kind
    if kind not in ("CPU", "CUDA") or (number and not number.isdigit()):
        raise errors.ArgumentError(f"device={device!r}: it must be \"CPU\", \"CUDA\" or \"CUDA:0\"")
    return kind


def _providers(device: str) -> list[str]:
    if _kind(device) == "CUDA":
        if _CUDA in runtime.providers():
            return [_CUDA, "CPUExecutionProvider"]
        notice.warn(f"device={device!r}: ONNX Runtime has no CUDA here, so the model runs on the CPU", UserWarning)
    return ["CPUExecutionProvider"]


def _loaded(model: Any) -> onnx.ModelProto:
    model = getattr(model, "model_proto", model)  # of an ONNXProgram
    if isinstance(model, bytes):
        return onnx.load_from_string(model)
    if isinstance(model, (str, os.PathLike)):
        return onnx.load(os.fsdecode(model))
    if not isinstance(model, onnx.ModelProto):
        raise errors.ArgumentError(f"the model must be an onnx.ModelProto, its bytes, a path or an ONNXProgram, not a {type(model).__name__}")
    return model


def _bytes(model: onnx.ModelProto) -> bytes:
    try:
        content: bytes = model.SerializeToString()
    except Exception as error:  # protobuf has several classes for it
        raise errors.ArgumentError(f"the model is too large to be passed on ({error}): prepare the path of its file") from error
    return content


# ---------------------------------------------------------------------- who runs it


class _Whole:
    """A model that ONNX Runtime runs as it is."""

    def __init__(self, source: str | bytes, proto: onnx.ModelProto, providers: Sequence[str]):
        self.session = runtime.Session(source, providers)
        self.inputs, self.outputs = self.session.inputs, self.session.outputs
        self.optional = {t.name for t in proto.graph.initializer} & {i.name for i in proto.graph.input}
        self.declared = {i.name: i.type for i in proto.graph.input}
        self.run = self.session.run


class _Parts(runtime.Session):
    """A model with nodes that ONNX Runtime does not run: a session like another."""

    def __init__(self, proto: onnx.ModelProto, functions: Mapping[str, kept.Function], providers: Sequence[str]):
        self.block = blocks.Block(proto.graph, blocks.Model(proto, functions, providers))
        self.optional = set(self.block.defaults)
        self.inputs, self.outputs = [name for name in self.block.inputs if name not in self.optional], self.block.outputs
        self.declared = {i.name: i.type for i in proto.graph.input}
        self.shapes = {name: [_size(dim) for dim in kind.tensor_type.shape.dim] for name, kind in self.declared.items()}

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        return self.block.run(feeds)


def _size(dim: Any) -> int | str | None:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None


def session(source: Any, refused: runtime.RunError) -> runtime.Session:
    """A session for a model that ONNX Runtime alone does not take (`refused`): with its kept nodes in PyTorch, where it has such nodes."""
    try:
        proto = _loaded(save.to_proto(source) if isinstance(source, ir.Model) else source)
    except Exception:  # a file that is broken, which was said already
        raise refused from None
    if _is_standard(proto, {}):
        raise refused
    return _apart(proto, {}, _providers("CPU"), refused)


def _apart(proto: onnx.ModelProto, functions: Mapping[str, kept.Function], providers: Sequence[str],
           error: runtime.RunError | None = None) -> _Parts:
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    missing = _missing(proto, functions)
    if missing:
        raise runtime.RunError(
            f"nobody runs {', '.join(missing)}: it is no operator of ONNX Runtime and none that PyTorch has registered; "
            f"onnxport.backend.prepare(model, functions={{\"{missing[0]}\": function}}) calls a function with the inputs as tensors and the "
            "attributes by name")
    try:
        return _Parts(proto, functions, providers)
    except runtime.RunError as cause:
        raise cause from error


def _nodes(nodes: Any) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for graph in blocks.graphs_of(node):
            yield from _nodes(graph.node)


def _all_nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a model and of its functions, but for calls of these."""
    local = {(f.domain, f.name) for f in proto.functions}
    for nodes in (proto.graph.node, *[f.node for f in proto.functions]):
        yield from (node for node in _nodes(nodes) if (node.domain, node.op_type) not in local)


def _is_standard(proto: onnx.ModelProto, functions: Mapping[str, kept.Function]) -> bool:
    return all(blocks.is_known(node.domain) and kept.key_of(node) not in functions for node in _all_nodes(proto))


def _missing(proto: onnx.ModelProto, functions: Mapping[str, kept.Function]) -> list[str]:
    unknown = (node for node in _all_nodes(proto) if not blocks.is_known(node.domain))
    return sorted({kept.key_of(node) for node in unknown if kept.implementation(node, functions) is None})


is_compatible, prepare, run_model, run_node, supports_device = (
    Backend.is_compatible, Backend.prepare, Backend.run_model, Backend.run_node, Backend.supports_device)
run = run_model

__all__ = ["Backend", "Representation", "is_compatible", "prepare", "run", "run_model", "run_node", "supports_device"]
