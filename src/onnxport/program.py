"""What `export()` returns: the ONNX model, and what one does with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import onnx_ir as ir
import torch

from onnxport import runtime, save, structure
from onnxport.modes import ONE_AT_A_TIME

if TYPE_CHECKING:
    import onnx

    from onnxport.verify import Report


class ONNXProgram:
    """An exported model.

    model: the `onnx_ir.Model`, whose weights are still the PyTorch model's own tensors.
    input_names, output_names: of the graph, in order.   guards: the conditions under which the file holds.
    dynamic_axes: input name -> {axis: label}.            args, kwargs: the example that it was exported with.
    training: the mode that it was exported in (a `TrainingMode`).
    source: the PyTorch model.                             capture: how it was captured: "trace", "script" or "export".
    notes: what there is to say besides, as why a model was captured by torch.export though nobody asked for that.
    """

    def __init__(self, model: ir.Model, *, input_names: Sequence[str] = (), output_names: Sequence[str] = (), guards: Sequence[Any] = (),
                 source: Any = None, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
                 dynamic_axes: Mapping[str, Mapping[int, str]] | None = None, training: int = 0, capture: str = "trace", notes: Sequence[str] = ()):
        self.model = model
        self.input_names, self.output_names, self.guards = list(input_names), list(output_names), list(guards)
        self.args, self.kwargs = tuple(args), dict(kwargs or {})
        self.dynamic_axes = {name: dict(axes) for name, axes in (dynamic_axes or {}).items()}
        self.training, self.capture, self.notes = training, capture, list(notes)
        self.source = source  # costs no memory: the graph refers to its weights anyway
        self._session: runtime.Session | None = None

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as a new `onnx.ModelProto`, with a copy of the weights."""
        with ONE_AT_A_TIME:
            return save.to_proto(self.model)

    def save(self, f: str | os.PathLike[str] | BinaryIO, external_data: bool | None = None) -> None:
        """Writes the model to a path or a binary stream; see `onnxport.save.write`."""
        with ONE_AT_A_TIME:
            save.write(self.model, f, external_data=external_data)

    @property
    def session(self) -> runtime.Session:
        """The model in ONNX Runtime (its kept operators in PyTorch), loaded at the first use. Raises `runtime.RunError`."""
        with ONE_AT_A_TIME:
            if self._session is None:
                self._session = opened(self.model)
        return self._session

    def __call__(self, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        """Runs the ONNX model in ONNX Runtime with the arguments that the PyTorch model takes; the outputs in order, on the CPU.

        Where the file has its parameters as inputs (`export_params=False`), the PyTorch model's own are fed.
        """
        if self._is_script():
            (*args, _), kwargs = self.source.tensors((*args, {}), kwargs)
        leaves, _ = structure.flatten_call(getattr(self.source, "forward", self.source), args, kwargs)
        tensors = [leaf.value for leaf in leaves]
        return self.session.run(self.session.feeds(tensors, runtime.state_of(self.source)))

    def _is_script(self) -> bool:
        """Whether numbers among the arguments are inputs of the file, as they are of a script."""
        return self.capture == "script" and hasattr(self.source, "tensors")

    def verify(self, args: Any = None, kwargs: Mapping[str, Any] | None = None, *, model: Any = None, rtol: float | None = None,
               atol: float | None = None, seeds: Sequence[int] = (0,), sizes: bool = True) -> Report:
        """Compares ONNX Runtime with the PyTorch model; see `onnxport.verify.verify`.

        args, kwargs: the example, by default that of the export.   model: by default the one that was exported.
        """
        from onnxport import verify

        if args is None:
            args, kwargs = (*self.args, {}), {**self.kwargs, **(kwargs or {})}
        elif model is None and self._is_script():
            args, kwargs = self.source.tensors(args, dict(kwargs or {}))
        return verify.verify(self, self.source if model is None else model, args, kwargs, rtol=rtol, atol=atol, seeds=seeds, sizes=sizes)

    def __repr__(self) -> str:
        opset, nodes = self.model.opset_imports.get(""), self.model.graph.num_nodes()
        return f"<ONNXProgram {', '.join(self.input_names)} -> {', '.join(self.output_names)}, opset {opset}, {nodes} nodes>"


def opened(source: str | ir.Model) -> runtime.Session:
    """A model or a file, ready to run."""
    try:
        return runtime.Session(source)
    except runtime.RunError as refused:
        from onnxport import backend

        return backend.session(source, refused)
