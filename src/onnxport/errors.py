"""Every error that onnxport raises on purpose.

All of them are `RuntimeError`s under `OnnxExporterError`, as in `torch.onnx.errors`. The ones that describe a
wrong argument are `ValueError`s or `TypeError`s too, so that either habit of catching them works.
"""

from __future__ import annotations

import re


class OnnxExporterError(RuntimeError):
    """Base of all errors of this package."""


class ArgumentError(OnnxExporterError, ValueError):
    """An argument of `export()` is wrong; the message names it."""


class CheckerError(OnnxExporterError):
    """The finished model does not pass `onnx.checker`."""


class CaptureError(OnnxExporterError):
    """The model could not be run or read."""


class BakedValueError(CaptureError):
    """A number that varies with a dynamic axis (or with the data) would have become a constant of the file."""


class GuardError(CaptureError):
    """`strict=True` and Python branched on something that another input may change."""


class MutationError(OnnxExporterError):
    """`mutations="error"` and the model changes an input or a buffer that it does not return."""


class UnsupportedOperatorError(OnnxExporterError):
    """One or more operators of the model have no translation (all of them are listed)."""


class UnsupportedError(OnnxExporterError):
    """An operator is known, but not with these arguments, this dtype or at this opset."""

    @property
    def lowest(self) -> int | None:
        """The opset that can, by the message's own words."""
        found = re.search(r"needs opset (\d+) or higher", str(self))
        return None if found is None else int(found[1])


class ShapeError(OnnxExporterError):
    """A shape, rank or dtype that was worked out contradicts what PyTorch computed: a fault of onnxport."""


class SymbolicValueError(OnnxExporterError):
    """A symbolic function could not deal with a value that it was given."""


class SymbolicFunctionError(OnnxExporterError, TypeError):
    """A symbolic function cannot be called with the operator's arguments, or returned what cannot be its outputs."""


class SaveError(OnnxExporterError, OSError):
    """The file could not be written; what was there before is untouched."""


class VerificationError(OnnxExporterError):
    """ONNX Runtime and PyTorch disagree; the message holds the numbers."""


class OnnxExporterWarning(UserWarning):
    """Base of the warnings about what a file does."""


class GuardWarning(OnnxExporterWarning):
    """The file holds only where the listed conditions do."""


class MutationWarning(OnnxExporterWarning):
    """The model updates an input or a buffer, and the file does not."""


class ComplexWarning(OnnxExporterWarning):
    """The file has complex inputs or outputs as pairs of real numbers."""
