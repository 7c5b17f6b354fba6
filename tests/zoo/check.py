"""Exports a zoo model and holds the file against PyTorch at the example's and at other sizes.

    python -m tests.zoo.check [--models a,b] [--opsets 9,18] [--capture export] [--out table.md]
"""

from __future__ import annotations

import argparse
import io
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
import torch

import onnxport
from onnxport import structure
from onnxport.options import newest_opset
from tests.zoo.models import MODELS, Inputs, Model

onnxruntime.set_default_logger_severity(4)
TOLERANCE = 2e-5  # of the largest value of the output
OPSETS = (9, 11, 13, 15, 17, 18, 20, newest_opset())
ALSO_OLD = ("alexnet", "vgg", "resnet", "word_language_model_lstm", "lstm")


def run(model: Model, opset: int, axes: Mapping[str, Any] | None, inputs: Sequence[Inputs], capture: str = "auto") -> tuple[float, int]:
    """(largest difference over the outputs' scale, number of nodes) over all `inputs`; raises on other shapes or dtypes."""
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onnxport.errors.GuardWarning)
        program = onnxport.export(model.module, inputs[0], stream, opset_version=opset, input_names=list(model.names), dynamic_axes=axes,
                                   capture=capture)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(stream.getvalue(), options, providers=["CPUExecutionProvider"])
    worst = 0.0
    for args in inputs:
        with torch.no_grad():
            wanted = [leaf.value.numpy() for leaf in structure.flatten(model.module(*(a.clone() for a in args)))[0]]
        feeds = {name: a.numpy() for name, a in zip(model.names, args, strict=True)}
        got = session.run(None, {i.name: feeds[i.name] for i in session.get_inputs() if i.name in feeds})
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype, f"{a.dtype}{a.shape}, PyTorch has {b.dtype}{b.shape}"
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-30)))
    return worst, program.model.graph.num_nodes()


def variants(model: Model) -> dict[str, tuple[Mapping[str, Any] | None, Sequence[Inputs]]]:
    """static, batch and, where the model takes other sizes, free."""
    found: dict[str, tuple[Mapping[str, Any] | None, Sequence[Inputs]]] = {"static": (None, model.inputs[:1]), "batch": (model.batch, model.inputs)}
    if model.free:
        found["free"] = (model.free, model.sized)
    return found


def table(rows: Sequence[tuple[str, str, int, str, str]]) -> str:
    """A row for each model and variant, a column for each opset, and the refusals in words below."""
    opsets = sorted({row[2] for row in rows})
    lines = ["| model | dynamic | " + " | ".join(map(str, opsets)) + " |", "|---" * (len(opsets) + 2) + "|"]
    for name, variant in dict.fromkeys((row[0], row[1]) for row in rows):
        cells = {row[2]: row[4].split(" nodes")[0].replace(", ", " / ") if row[3] == "ok" else row[3] for row in rows if row[:2] == (name, variant)}
        lines.append(f"| {name} | {variant} | " + " | ".join(cells.get(o, "") for o in opsets) + " |")
    refusals = dict.fromkeys(f"- {name}, {variant}, opset {opset}: {text}" for name, variant, opset, verdict, text in rows if verdict != "ok")
    return "\n".join([*lines, "", *refusals]) + "\n"


def main() -> None:
    """Prints one line for each model, variant and opset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--opsets", default="")
    parser.add_argument("--variants", default="static,batch,free")
    parser.add_argument("--capture", default="auto", choices=["auto", "trace", "export"])
    parser.add_argument("--out", default="")
    parser.add_argument("--traceback", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, bad = [], 0
    for name in options.models.split(","):
        opsets = [int(o) for o in options.opsets.split(",")] if options.opsets else [*([7, 8] if name.startswith(ALSO_OLD) else []), *OPSETS]
        torch.manual_seed(0)
        built = MODELS[name]()
        for variant, (axes, inputs) in variants(built).items():
            if variant not in options.variants.split(","):
                continue
            for opset in opsets:
                start = time.perf_counter()
                try:
                    worst, nodes = run(built, opset, axes, inputs, options.capture)
                    verdict = "ok" if worst <= TOLERANCE else "WRONG"
                    text = f"{worst:.1e}, {nodes} nodes"
                except onnxport.errors.UnsupportedError as error:
                    verdict, text = "refused", str(error).split("\n")[0]
                except Exception as error:
                    verdict, text = "FAILED", f"{type(error).__name__}: {str(error)[:300]}"
                    if options.traceback:
                        traceback.print_exc()
                bad += verdict in ("WRONG", "FAILED")
                rows.append((name, variant, opset, verdict, text))
                print(f"{name:34s} {variant:7s} {opset:3d} {verdict:8s} {time.perf_counter() - start:5.1f}s {text}", flush=True)
    print(f"{len(rows)} exports, {bad} wrong or failed")
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(table(rows))


if __name__ == "__main__":
    main()
