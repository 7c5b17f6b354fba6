"""What `torch.onnx.export` writes beside the model on request: `report`, `profile`, `dump_exported_program`, into `artifacts_dir`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch

from onnxport import errors, progress
from onnxport.capture import choose
from onnxport.program import ONNXProgram
from onnxport.version import __version__

ARGUMENTS = frozenset({"report", "profile", "dump_exported_program", "artifacts_dir"})
REPORT, PROGRAM = "onnx_export_report.md", "onnx_export_program.pt2"
Export = Callable[..., ONNXProgram]


def recorded(given: Mapping[str, Any], export: Export) -> Export:
    """`export`, or where something is wanted beside the model, a function that calls it and writes that too.

    The report is written of an export that fails, too. The program is dumped before anything else is done.
    """
    if not any(given.get(name) for name in ARGUMENTS - {"artifacts_dir"}):
        return export
    folder = os.fsdecode(given.get("artifacts_dir", "."))
    if not os.path.isdir(folder):
        raise errors.ArgumentError(f"artifacts_dir={folder!r} is no folder")

    def exporting(model: Any, args: Any, f: Any, **arguments: Any) -> ONNXProgram:
        if given.get("dump_exported_program"):
            _dump(model, args, arguments.get("kwargs"), os.path.join(folder, PROGRAM))
        if not (given.get("report") or given.get("profile")):
            return export(model, args, f, **arguments)
        times: dict[str, float] = {}
        result: ONNXProgram | BaseException | None = None
        try:
            with progress.listening(lambda name, seconds: None if seconds is None else times.__setitem__(name, seconds)):
                result = export(model, args, f, **arguments)
        except BaseException as error:
            result = error
            raise
        finally:
            lines = [*_header(model, f), *_outcome(result), *(_times(times) if given.get("profile") else [])]
            with open(os.path.join(folder, REPORT), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        return result

    return exporting


def _dump(model: Any, args: Any, kwargs: Any, path: str) -> None:
    if not choose.is_program(model):
        call = choose.call_of(model, args, kwargs)
        if not isinstance(call.model, torch.nn.Module) or isinstance(call.model, torch.jit.ScriptModule):
            raise errors.ArgumentError("dump_exported_program needs a torch.nn.Module: torch.export captures nothing else")
        model = torch.export.export(call.model, tuple(call.args), dict(call.kwargs), strict=False)
    torch.export.save(model, path)


def _header(model: Any, f: Any) -> list[str]:
    name = type(model).__name__
    target = f"`{os.fsdecode(f)}`" if isinstance(f, (str, bytes, os.PathLike)) else "no file"
    return [f"# Export of {name}", "", f"onnxport {__version__}, torch {torch.__version__}, written to {target}."]


def _outcome(result: ONNXProgram | BaseException | None) -> list[str]:
    if not isinstance(result, ONNXProgram):
        return ["", "## Failed", "", "```", f"{type(result).__name__}: {result}", "```"]
    graph = result.model.graph
    count = Counter(f"{node.domain}::{node.op_type}" if node.domain else node.op_type for node in result.model.graph.all_nodes())
    weights = [value.const_value for value in graph.initializers.values() if value.const_value is not None]
    return [
        "", f"Opset {result.model.opset_imports.get('')}, {sum(count.values())} nodes, "
            f"{len(weights)} weights of {sum(weight.nbytes for weight in weights)} bytes.",
        "", "## Inputs and outputs", "",
        *(f"- input `{v.name}`: {v.dtype} {v.shape}" for v in graph.inputs), *(f"- output `{v.name}`: {v.dtype} {v.shape}" for v in graph.outputs),
        "", "## Operators", "", *(f"- {name}: {times}" for name, times in sorted(count.items())),
        *(["", "## It holds where", "", *(f"- {guard}" for guard in result.guards)] if result.guards else []),
    ]


def _times(times: Mapping[str, float]) -> list[str]:
    return ["", "## Seconds", "", *(f"- {name}: {seconds:.3f}" for name, seconds in times.items())]
