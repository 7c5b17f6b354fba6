"""Exports torchvision's AlexNet, checks the file, runs it in ONNX Runtime and prints the largest difference from PyTorch.

    python examples/alexnet.py [FILE]

Without FILE, the model goes into a temporary folder. The names are those of the example in PyTorch's documentation: the
first of `input_names` is the image, the others run on over the parameters.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import onnx
import onnxruntime
import torch
import torchvision

import onnxport


def main(path: Path) -> None:
    """Exports to `path`, and stops with a message where the numbers differ."""
    torch.manual_seed(0)
    model = torchvision.models.alexnet(weights=None).eval()
    image = torch.randn(10, 3, 224, 224)
    names = ["actual_input_1"] + [f"learned_{i}" for i in range(16)]

    start = time.perf_counter()
    axes = {"actual_input_1": {0: "batch"}}
    program = onnxport.export(model, image, path, input_names=names, output_names=["output1"], dynamic_axes=axes)
    print(f"exported in {time.perf_counter() - start:.2f} s: {program}")
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")

    onnx.checker.check_model(str(path), full_check=True)
    print("onnx.checker: passed")

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for batch in (10, 1, 3):
        image = torch.randn(batch, 3, 224, 224)
        (got,) = session.run(None, {"actual_input_1": image.numpy()})
        with torch.no_grad():
            expected = model(image)
        difference = (torch.from_numpy(got) - expected).abs().max().item()
        print(f"batch {batch:>2}: largest difference {difference:.2e}, of numbers up to {expected.abs().max().item():.2e}")
        if difference > 2e-5 * expected.abs().max().item():
            sys.exit("ONNX Runtime and PyTorch disagree")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder) / "alexnet.onnx")
