"""Resize below its newest form, down to Upsample, which it was called before opset 10.

Until opset 10 there are scales only, the coordinate is `x / scale` ("asymmetric") and the nearest pixel is the one
below, as ONNX Runtime computes it (the specification does not say). Other ways are refused, except where they agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onnxport.target import dims
from onnxport.target.dims import Size
from onnxport.target.spelling import Form, Rules, numbers, refusal, sizes
from onnxport.target.value import DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

_ROI, _SCALES, _SIZES = 1, 2, 3


def _all_axes(g: Builder, form: Form) -> Form:
    """Scales or sizes of some axes become those of all of them."""
    axes = form.attrs.get("axes")
    if axes is None:
        return form
    x = form.x
    if x.shape is None or form.input(_ROI) is not None:
        raise refusal(g, "Resize with 'axes' of a tensor of unknown rank, or with a region", 18)
    inputs = list(form.inputs)
    if form.input(_SIZES) is not None:
        inputs[_SIZES] = _full(g, form, sizes(form.input(_SIZES)), list(x.shape))
    else:
        inputs[_SCALES] = _full(g, form, numbers(form.input(_SCALES)), [1.0] * len(x.shape))
    return form.change(inputs=inputs, axes=None)


def _full(g: Builder, form: Form, some: list[Any] | None, rest: list[Any]) -> Value:
    if some is None:
        raise refusal(g, "Resize with 'axes' and with scales or sizes that the graph computes", 18)
    for axis, item in zip(form.attrs["axes"], some, strict=True):
        rest[axis] = item
    return g.const(rest, DataType.FLOAT) if isinstance(some[0], float) else g.real(g.sizes(rest))


def _known_mode(g: Builder, form: Form) -> Form:
    if form.attrs.get("coordinate_transformation_mode") == "half_pixel_symmetric":
        raise refusal(g, "Resize with coordinate mode 'half_pixel_symmetric'", 19)
    return form


def _all_inputs(g: Builder, form: Form) -> Form:
    """Resize-11 wants the region and the scales even where they say nothing: empty ones."""
    if g.opset < 11:
        return form
    nothing = g.const([], DataType.FLOAT)
    rest = [form.input(position) or nothing for position in (_ROI, _SCALES)]
    return form.change(inputs=(form.x, *rest, form.input(_SIZES)))


# ---------------------------------------------------------------------- scales only


def _scales_only(g: Builder, form: Form) -> Form:
    """Resize-10, Upsample-9 (scales are an input) and Upsample-7 (an attribute)."""
    scales = _scales(g, form)
    known = numbers(scales)
    mode = _old_mode(g, form, known)
    if g.opset >= 10:
        return Form("Resize", (form.x, scales), {"mode": mode}, 1)
    if known is not None and min(known, default=1.0) < 1.0:
        raise refusal(g, "Resize to a smaller size", 10)
    if g.opset == 9:
        return Form("Upsample", (form.x, scales), {"mode": mode}, 1)
    if known is None:
        raise refusal(g, "Resize with scales that the graph computes", 9)
    return Form("Upsample", (form.x,), {"mode": mode, "scales": known}, 1)


def _scales(g: Builder, form: Form) -> Value:
    given = form.input(_SCALES)
    if given is not None and given.shape != (0,):
        return given
    target = sizes(form.input(_SIZES))
    if target is None or form.x.shape is None:
        raise refusal(g, "Resize with sizes that the graph computes", 11)
    return g.const([_scale(g, size, now) for size, now in zip(target, form.x.shape, strict=True)], DataType.FLOAT)


def _scale(g: Builder, target: Size, now: Size) -> float:
    """The float32 `s` for which `floor(now * s)` is `target`, as the runtime computes the output size."""
    if dims.equal(target, now):
        return 1.0
    ratio = target // now
    if isinstance(ratio, int) and dims.equal(now * ratio, target):
        return float(ratio)
    if not isinstance(target, int) or not isinstance(now, int):
        raise refusal(g, f"Resize of a dim {now} to {target}", 11)
    scale = np.float32(target) / np.float32(now)
    if int(np.float32(now) * scale) != target:
        scale = np.nextafter(scale, np.float32(np.inf))
    if int(np.float32(now) * scale) != target:
        raise refusal(g, f"Resize of a dim {now} to {target}", 11)
    return float(scale)


def _old_mode(g: Builder, form: Form, scales: list[float] | None) -> str:
    """The mode, where the old coordinates give what is asked for."""
    mode = form.attrs.get("mode", "nearest")
    if mode not in ("nearest", "linear") or (form.input(_ROI) is not None and form.input(_SIZES) is None and _cropped(form)):
        raise refusal(g, f"Resize with mode {mode!r}", 11)
    way = form.attrs.get("coordinate_transformation_mode", "half_pixel")
    moved = None if scales is None else [s for s in scales if s != 1.0]
    agrees = _linear_agrees if mode == "linear" else _nearest_agrees
    if moved != [] and not agrees(g, way, _rounding(form), moved):
        raise refusal(g, f"Resize with mode {mode!r} and coordinates {way!r}", 11)
    return str(mode)


def _linear_agrees(g: Builder, way: str, rounding: str, moved: list[float] | None) -> bool:
    return way == "asymmetric"


def _nearest_agrees(g: Builder, way: str, rounding: str, moved: list[float] | None) -> bool:
    if moved is None:  # Upsample only ever enlarges
        return way == "asymmetric" and rounding == "floor" and g.opset < 10
    if way == "asymmetric":
        # Where the size shrinks ONNX Runtime takes the pixel above: the same where the coordinate is whole.
        return (rounding == "floor" and min(moved) >= 1) or all((1 / s).is_integer() for s in moved)
    # The centre of an output pixel lies inside the input pixel that it is a whole part of.
    return way in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round") and all(s.is_integer() for s in moved)


def _rounding(form: Form) -> str:
    return str(form.attrs.get("nearest_mode", "round_prefer_floor"))


def _cropped(form: Form) -> bool:
    return bool(form.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize")


RULES: Rules = {"Resize": ((19, _known_mode), (18, _all_axes), (11, _scales_only), (13, _all_inputs))}
