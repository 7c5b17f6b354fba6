"""Exports a function, runs the file in ONNX Runtime and holds numbers, dtypes and shapes against PyTorch's.

A row of a test table is a `Case`. The example is only what is traced: the file is also run on fresh values and on every
other size given in `others`. A refusal is part of the row, strict: `refused={9: "needs opset 10"}` fails when opset 9 works.
"""

from __future__ import annotations

import dataclasses
import io
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import onnxport
from onnxport import structure
from onnxport.options import newest_opset

onnxruntime.set_default_logger_severity(4)
NEWEST = newest_opset()
OPSETS = (9, 11, 13, 18, NEWEST)
CAPTURE = os.environ.get("ONNXPORT_TEST_CAPTURE", "auto")  # "export" sends every table through torch.export
# What only a trace can capture, by case: how torch.export refuses it.
TRACED_ONLY = {
    "where_byte_condition": "predicate to be bool",
    "mask_uint8": "must be long, int, byte or bool",
    "mask_scalar": "data-dependent expression",  # a mask of rank 0 has a size that only the data knows
    "mean_of_chosen": "data-dependent expression",  # the sizes of two selections are compared
    "narrow_tensor": "Pending unbacked symbols",
    "circular_cut": "Pending unbacked symbols",
    "mask_pair": "Pending unbacked symbols",
    "take_along_dim_dynamic": "torch.export refuses the model: AssertionError",
    **dict.fromkeys(("triangle_indices_dynamic", "irfft_all_dynamic", "istft_lengths", "writes_through_views"), "inferred a static shape"),
    # Packed sequences have a batch size for each time step, as numbers of Python.
    **dict.fromkeys(("packed_lstm", "packed_lstm_unsorted", "packed_lstm_projected", "packed_gru_total_length", "packed_rnn", "packed_data_between"),
                    "failed to unpack"),
    "packing_alone": "data-dependent expression",
}
if torch.__version__ < "2.14":  # whose torch.export makes a plain number of an index that is written to
    TRACED_ONLY["put_row"] = "data-dependent expression"
_OTHER_WORDS = "torch.export refuses"  # how a refusal of a table reads through torch.export
_TORCH_OF_NUMPY_BFLOAT16 = "bfloat16"


class Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


@dataclass
class Case:
    """One row.

    function: of tensors, or a module.   args: the example.   others: more argument tuples (other values, other sizes).
    dynamic: axes of each argument that are dynamic ("all", or {position: {axis: label}}); None runs static only.
    opsets: which to try.   refused: opset -> pattern of the error that is expected there (strict).
    """

    id: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    others: Sequence[tuple[Any, ...]] = ()
    dynamic: Any = None
    opsets: Sequence[int] = OPSETS
    refused: Mapping[int, str] = field(default_factory=dict)
    rtol: float = 1e-4
    atol: float = 1e-5
    options: Mapping[str, Any] = field(default_factory=dict)


def expand(cases: Sequence[Case]) -> Any:
    """`pytest.mark.parametrize` over (case, opset)."""
    rows = [pytest.param(case, opset, id=f"{case.id}-{opset}") for case in cases for opset in case.opsets]
    ids = [case.id for case in cases]
    assert len(set(ids)) == len(ids), f"ids that stand twice: {sorted({i for i in ids if ids.count(i) > 1})}"
    return pytest.mark.parametrize(("case", "opset"), rows)


def through_export(case: Case) -> Case:
    """The case as torch.export takes it."""
    refused = {opset: f"{words}|{_OTHER_WORDS}" for opset, words in case.refused.items()}
    if case.id in TRACED_ONLY:
        refused = {opset: f"{refused[opset]}|{TRACED_ONLY[case.id]}" if opset in refused else TRACED_ONLY[case.id] for opset in case.opsets}
    return dataclasses.replace(case, refused=refused, options={"capture": "export", **case.options})


def check(case: Case, opset: int, capture: str = CAPTURE, both: bool = True) -> None:
    """Exports and compares; with `dynamic`, and `both`, a static file too."""
    case = through_export(case) if capture == "export" else dataclasses.replace(case, options={"capture": capture, **case.options})
    if opset in case.refused:
        with pytest.raises(onnxport.errors.OnnxExporterError, match=case.refused[opset]):
            exported(case, opset, dynamic=case.dynamic is not None)
        return
    if case.dynamic is not None:
        session = exported(case, opset, dynamic=True)
        for args in (case.args, *case.others):
            compare(session, case, args)
        if both:
            compare(exported(case, opset, dynamic=False), case, case.args)
    else:
        session = exported(case, opset, dynamic=False)
        for args in (case.args, *case.others):
            compare(session, case, args)


def module_of(case: Case) -> torch.nn.Module:
    """The function as a module in eval mode."""
    return case.function.eval() if isinstance(case.function, torch.nn.Module) else Wrapped(case.function).eval()


def axes_of(case: Case) -> dict[str, dict[int, str]]:
    """`dynamic_axes` for the inputs `x0`, `x1`, ...; "all" gives every axis of every input a name of its own, shared by equal sizes."""
    if case.dynamic == "all":
        leaves, _ = structure.flatten(case.args)
        return {f"x{i}": {a: f"d{size}" for a, size in enumerate(leaf.value.shape)} for i, leaf in enumerate(leaves) if leaf.value.dim()}
    return {f"x{i}": dict(axes) for i, axes in (case.dynamic or {}).items()}


def exported(case: Case, opset: int, *, dynamic: bool) -> onnxruntime.InferenceSession:
    """An ONNX Runtime session of the exported case."""
    leaves, _ = structure.flatten(case.args)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", onnxport.errors.GuardWarning)
        warnings.simplefilter("ignore", onnxport.errors.ComplexWarning)
        onnxport.export(module_of(case), case.args, stream, opset_version=opset, input_names=[f"x{i}" for i in range(len(leaves))],
                        dynamic_axes=axes_of(case) if dynamic else None, **case.options)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(stream.getvalue(), options, providers=["CPUExecutionProvider"])


def compare(session: onnxruntime.InferenceSession, case: Case, args: tuple[Any, ...]) -> None:
    """Runs one set of arguments through both."""
    with torch.no_grad():
        want = [leaf.value for leaf in structure.flatten(module_of(case)(*_copied(args)))[0]]
    leaves, _ = structure.flatten(args)
    got = session.run(None, {f"x{i}": _real(leaf.value).numpy() for i, leaf in enumerate(leaves)})
    assert len(got) == len(want), f"{len(got)} outputs, PyTorch has {len(want)}"
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        reference = _real(b).numpy()
        assert a.dtype == reference.dtype, f"output {index}: dtype {a.dtype}, PyTorch has {reference.dtype}"
        assert a.shape == reference.shape, f"output {index}: shape {a.shape}, PyTorch has {reference.shape}"
        half = reference.dtype == np.float16
        np.testing.assert_allclose(a.astype(np.float64) if a.dtype != bool else a, reference.astype(np.float64) if reference.dtype != bool else reference,
                                   rtol=2e-3 if half else case.rtol, atol=2e-3 if half else case.atol, equal_nan=True, err_msg=f"output {index}")


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """As the file has it: complex numbers are pairs of real ones."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(plain) if plain.is_complex() else plain


def _copied(args: Any) -> Any:
    if isinstance(args, torch.Tensor):
        return args.clone()
    if isinstance(args, (list, tuple)):
        return type(args)(_copied(a) for a in args)
    return args
