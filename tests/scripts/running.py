"""Scripts exported and held against the interpreter of TorchScript."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

import onnxport
from onnxport import structure
from onnxport.options import newest_opset

onnxruntime.set_default_logger_severity(4)
OPSETS = (11, 13, 16, 18, newest_opset())
_NUMPY = {bool: np.bool_, int: np.int64, float: np.float32}
Call = tuple[Any, ...]


def scripted(script: Any) -> Any:
    """What torch.jit.script makes of a function, or of the module that a class makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(script().eval() if isinstance(script, type) else script)


def session(script: Any, args: Call, opset: int, axes: Any = None, **options: Any) -> onnxruntime.InferenceSession:
    """The exported script in ONNX Runtime."""
    stream = io.BytesIO()
    with torch.jit.optimized_execution(False):  # the first run decides over all
        onnxport.export(script, args, stream, opset_version=opset, dynamic_axes=axes or None, **{"mutations": "ignore", **options})
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(stream.getvalue(), settings, providers=["CPUExecutionProvider"])


def copied(arg: Any) -> Any:
    """An argument that a script may write into."""
    if isinstance(arg, Tensor):
        return arg.clone()
    if isinstance(arg, (list, tuple)):
        return type(arg)([copied(a) for a in arg]) if not hasattr(arg, "_fields") else type(arg)(*[copied(a) for a in arg])
    return {k: copied(v) for k, v in arg.items()} if isinstance(arg, dict) else arg


def wanted(script: Any, args: Call) -> list[np.ndarray[Any, Any]]:
    """What the interpreter gives; its optimiser, which moves reads of `[x] + [y]` past writes into `y`, is off."""
    with torch.no_grad(), torch.jit.optimized_execution(False):
        result = script(*[copied(a) for a in args])
    leaves, spec = structure.flatten(result if isinstance(result, (tuple, list, dict)) else (result,))
    members = [leaf.value for leaf in spec.leaves([x.value for x in leaves]) if leaf.value is not None]
    return [(m if isinstance(m, Tensor) else torch.tensor(m)).numpy() for m in members]


def given(run: onnxruntime.InferenceSession, args: Call) -> list[np.ndarray[Any, Any]]:
    """What ONNX Runtime gives."""
    leaves, spec = structure.flatten(tuple(args))
    members = [leaf.value for leaf in spec.leaves([x.value for x in leaves]) if leaf.value is not None and not isinstance(leaf.value, str)]
    feeds = [m.numpy() if isinstance(m, Tensor) else np.asarray(m, _NUMPY[type(m)]) for m in members]
    found = run.run(None, dict(zip([i.name for i in run.get_inputs()], feeds, strict=True)))
    return [member for output in found for member in (output if isinstance(output, list) else [output])]


def differences(got: Sequence[np.ndarray[Any, Any]], want: Sequence[np.ndarray[Any, Any]]) -> Iterator[str]:
    """What is wrong with results."""
    if len(got) != len(want):
        yield f"{len(got)} outputs for {len(want)}"
        return
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            yield f"output {index} is {a.dtype}{a.shape}, PyTorch's is {b.dtype}{b.shape}"
        elif not np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True):
            yield f"output {index} is {a.ravel()[:6]}, PyTorch's is {b.ravel()[:6]}"


def compare(run: onnxruntime.InferenceSession, script: Any, args: Call) -> None:
    """Asserts that file and script give the same."""
    want = wanted(script, args)
    wrong = list(differences(given(run, args), want))
    assert not wrong, f"{args}: " + "; ".join(wrong)
