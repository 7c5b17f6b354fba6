"""Pooling with `ceil_mode`: it came with opset 10, and since 22 a window that starts in the padding behind is left out.

PyTorch has always left it out, so that the newest form is what it means. Below, the window is told from the sizes: where
all extra windows start in the padding, `ceil_mode` says too much and goes; where none does, it may stay, or the padding
grows so that the extra window fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from onnxport.target.dims import Size, equal
from onnxport.target.spelling import Form, Rules, refusal

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_SAME, _DROPPED, _KEPT, _UNKNOWN = "same", "dropped", "kept", "unknown"


class _Axis(NamedTuple):
    """One spatial dim; `window` is the reach of the dilated kernel."""

    size: Size | None
    window: int
    stride: int
    before: int
    behind: int

    def extra(self) -> tuple[str, int | None]:
        """What becomes of the window that `ceil_mode` adds, and how much padding it lacks."""
        if self.stride + self.behind <= self.window and not isinstance(self.size, int):
            return _KEPT, None  # it never starts behind the data; there may be none
        if self.size is None:
            return _UNKNOWN, None
        room = self.size + self.before + self.behind - self.window
        if equal(room % self.stride, 0):
            return _SAME, 0
        if not isinstance(room, int) or not isinstance(self.size, int):
            return _UNKNOWN, None
        start = (room // self.stride + 1) * self.stride
        return (_DROPPED, 0) if start >= self.size + self.before else (_KEPT, self.stride - room % self.stride)


def _axes(form: Form) -> Iterator[_Axis]:
    attrs, kernel = form.attrs, form.attrs["kernel_shape"]
    rank = len(kernel)
    pads, strides, dilations = attrs.get("pads", [0] * 2 * rank), attrs.get("strides", [1] * rank), attrs.get("dilations", [1] * rank)
    sizes = [None] * rank if form.x.shape is None else form.x.shape[2:]
    for i, size in enumerate(sizes):
        yield _Axis(size, (kernel[i] - 1) * dilations[i] + 1, strides[i], pads[i], pads[i + rank])


def _ceil(g: Builder, form: Form) -> Form:
    if not form.attrs.get("ceil_mode") or form.attrs.get("auto_pad", "NOTSET") != "NOTSET":
        return form
    extras = [axis.extra() for axis in _axes(form)]
    fates = {fate for fate, _ in extras}
    if fates <= {_SAME, _DROPPED}:
        return form.change(ceil_mode=None)
    if _UNKNOWN in fates or _DROPPED in fates:
        raise refusal(g, f"{form.op_type} with 'ceil_mode', where a window may start behind the data,", 22)
    return form if g.opset >= 10 else _grown(form, [missing for _, missing in extras])


def _grown(form: Form, missing: list[int | None]) -> Form:
    """Padding counts for nothing in a maximum, nor in an average that does not count it."""
    if None in missing or form.op_type not in ("MaxPool", "AveragePool") or form.attrs.get("count_include_pad"):
        return form
    rank = len(missing)
    pads = list(form.attrs.get("pads", [0] * 2 * rank))
    for i, more in enumerate(missing):
        pads[rank + i] += more or 0
    return form.change(pads=pads, ceil_mode=None)


RULES: Rules = dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), ((22, _ceil),))
