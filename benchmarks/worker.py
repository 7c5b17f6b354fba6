"""One measurement in a process of its own: `worker.py MODEL EXPORTER OPSET DYNAMIC` prints one line of JSON.

Exporters: onnxport, legacy (torch.onnx with dynamo=False), dynamo (torch.onnx with dynamo=True).
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch
from models import MODELS

Export = Callable[..., None]


def by_onnxport(net: Any, args: Any, path: str, opset: int, names: list[str], axes: Any) -> None:
    import onnxport

    onnxport.export(net, args, path, input_names=names, opset_version=opset, dynamic_axes=axes)


def by_legacy(net: Any, args: Any, path: str, opset: int, names: list[str], axes: Any) -> None:
    torch.onnx.export(net, args, path, input_names=names, opset_version=opset, dynamic_axes=axes, dynamo=False)


def by_dynamo(net: Any, args: Any, path: str, opset: int, names: list[str], axes: Any) -> None:
    shapes = None if axes is None else tuple(dict.fromkeys(axes.get(n, {}), torch.export.Dim.AUTO) for n in names)
    torch.onnx.export(net, args, path, input_names=names, opset_version=max(opset, 18), dynamic_shapes=shapes, dynamo=True, verbose=False)


EXPORTERS: dict[str, Export] = {"onnxport": by_onnxport, "legacy": by_legacy, "dynamo": by_dynamo}


def memory(key: str) -> int:
    """A number from the kernel's account of this process, in bytes; 0 where there is none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    return 0


def forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def count_nodes(graph: Any) -> int:
    inner = [a.g for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
    return len(graph.node) + sum(map(count_nodes, inner))


def measure(name: str, exporter: str, opset: int, dynamic: bool, folder: str) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net, args, names, axes = MODELS[name]()
    export, path = EXPORTERS[exporter], f"{folder}/model.onnx"
    export(torch.nn.Linear(2, 2), (torch.randn(2, 2),), f"{folder}/warm.onnx", opset, ["x"], None)  # imports and registries
    with torch.no_grad():
        expected = net(*args)
    forget_peak()
    before, wall, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    export(net, args, path, opset, names, axes if dynamic else None)
    record = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "growth": max(memory("VmHWM") - before, 0)}
    record["weights"] = sum(p.numel() * p.element_size() for p in net.parameters())
    proto = onnx.load(path, load_external_data=False)
    record["nodes"] = count_nodes(proto.graph) + sum(len(f.node) for f in proto.functions)
    return record | run(path, args, expected)


def run(path: str, args: Any, expected: torch.Tensor) -> dict[str, Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {i.name: a.numpy() for i, a in zip(session.get_inputs(), args)}
    got = torch.from_numpy(session.run(None, feeds)[0])
    times = []
    for _ in range(15):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return {"latency": statistics.median(times), "difference": ((got - expected).abs().max() / expected.abs().max()).item()}


def main() -> None:
    name, exporter, opset, dynamic = sys.argv[1:]
    result: dict[str, Any] = {"model": name, "exporter": exporter}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            result |= measure(name, exporter, int(opset), dynamic == "dynamic", folder)
        except Exception as error:  # a peer that fails is a result
            result["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
