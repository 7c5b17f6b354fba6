"""onnxport beside torch.onnx's two exporters: `python benchmarks/run.py [--models a,b] [--repeat 3] [--dynamic] [--out FILE]`.

Each measurement is a fresh process; the exporters take turns, so that a busy machine slows all of them alike. Only the
ratios mean anything. CPU is the export's CPU seconds; memory is its growth in bytes of weights; latency is one run in ONNX
Runtime with one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from models import MODELS
from worker import EXPORTERS

HERE = Path(__file__).resolve().parent
COLUMNS = {"cpu": "CPU s", "growth": "memory", "nodes": "nodes", "latency": "ms", "difference": "difference"}


def measure(model: str, exporter: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "worker.py"), model, exporter, str(options.opset), "dynamic" if options.dynamic else "static"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"model": model, "exporter": exporter, "error": f"unfinished after {options.timeout} s"}
    if done.returncode:
        return {"model": model, "exporter": exporter, "error": f"died with code {done.returncode}"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def medians(records: list[dict[str, Any]]) -> dict[str, Any]:
    good = [r for r in records if "error" not in r]
    if not good:
        return {"error": records[0]["error"]}
    return {key: statistics.median(r[key] for r in good) for key in ("cpu", "growth", "weights", "nodes", "latency", "difference")}


def cells(record: dict[str, Any]) -> list[str]:
    if "error" in record:
        return [record["error"][:60], "", "", "", ""]
    growth = f"{record['growth'] / record['weights']:.2f}" if record["weights"] > 50e6 else "-"
    return [f"{record['cpu']:.2f}", growth, str(int(record["nodes"])), f"{record['latency'] * 1e3:.2f}", f"{record['difference']:.0e}"]


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def ratios(results: dict[str, dict[str, dict[str, Any]]], peer: str, key: str) -> list[float]:
    """What onnxport takes for one of the peer's, model by model."""
    pairs = [(r["onnxport"], r[peer]) for r in results.values() if "onnxport" in r and peer in r]
    return [mine[key] / theirs[key] for mine, theirs in pairs if key in mine and theirs.get(key)]


def report(results: dict[str, dict[str, dict[str, Any]]], exporters: list[str]) -> None:
    print(f"\n{'model':<14}{'exporter':<10}" + "".join(f"{title:>12}" for title in COLUMNS.values()))
    for model, by_exporter in results.items():
        for exporter in exporters:
            print(f"{model:<14}{exporter:<10}" + "".join(f"{cell:>12}" for cell in cells(by_exporter[exporter])))
    print()
    for peer in exporters:
        if peer == "onnxport" or "onnxport" not in exporters:
            continue
        parts = []
        for key, title in (("cpu", "CPU"), ("nodes", "nodes"), ("latency", "latency")):
            found = ratios(results, peer, key)
            parts.append(f"{title} {geometric_mean(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else f"{title} -")
        print(f"onnxport / {peer}, geometric mean over {len(ratios(results, peer, 'cpu'))} models: " + ", ".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="of: " + ", ".join(MODELS))
    parser.add_argument("--exporters", default=",".join(EXPORTERS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--dynamic", action="store_true", help="with dynamic axes")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS")
    parser.add_argument("--out", metavar="FILE", help="also write every measurement as a line of JSON")
    options = parser.parse_args()
    exporters, chosen = options.exporters.split(","), options.models.split(",")
    records: dict[str, dict[str, list[dict[str, Any]]]] = {m: {e: [] for e in exporters} for m in chosen}
    for model in chosen:
        for _ in range(options.repeat):
            for exporter in exporters:
                record = measure(model, exporter, options)
                records[model][exporter].append(record)
                print(f"{model} {exporter}: {record.get('error') or format(record['cpu'], '.2f') + ' s'}", file=sys.stderr, flush=True)
                if options.out:
                    with open(options.out, "a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
    report({m: {e: medians(r) for e, r in by.items()} for m, by in records.items()}, exporters)


if __name__ == "__main__":
    main()
