"""Shapes of convolution, pooling, resampling and what works on boxes of images.

Source: the operator pages of ONNX (opset 28), and ONNX Runtime where those leave a case open (ceil_mode, auto_pad, scales).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onnxport.target import dims
from onnxport.target.dims import Size
from onnxport.target.shape_helpers import (
    AnyDim,
    Attrs,
    Dims,
    Inputs,
    Known,
    Rule,
    axes_of,
    constant_numbers,
    content,
    maybe,
    need,
    product,
    replaced,
    unknown_dims,
)
from onnxport.target.value import DataType, Shape, Value


class Window:
    """How a kernel moves over the spatial dims: the attributes that convolution and pooling share, defaults filled in."""

    __slots__ = ("ceil", "dilations", "kernel", "mode", "pads", "strides")

    def __init__(self, attrs: Attrs, kernel: Sequence[Size]):
        count = len(kernel)
        self.kernel = kernel
        self.strides: list[int] = list(attrs.get("strides") or [1] * count)
        self.dilations: list[int] = list(attrs.get("dilations") or [1] * count)
        self.mode: str = attrs.get("auto_pad") or "NOTSET"
        self.pads: list[int] = list(attrs.get("pads") or [0] * (2 * count)) if self.mode == "NOTSET" else [0] * (2 * count)
        self.ceil = bool(attrs.get("ceil_mode"))

    def reach(self, i: int) -> Size:
        """How many elements the dilated kernel spans."""
        return (self.kernel[i] - 1) * self.dilations[i] + 1

    def size(self, i: int, size: Size) -> AnyDim:
        """The result's dim where the input's is `size`; None where ONNX and ONNX Runtime disagree about it."""
        stride = self.strides[i]
        if self.mode in ("SAME_UPPER", "SAME_LOWER"):
            return dims.ceildiv(size, stride) if self.dilations[i] == 1 else None
        before, after = self.pads[i], self.pads[i + len(self.kernel)]
        room = size + (before + after) - self.reach(i)
        if not self.ceil:
            return dims.floordiv(room, stride) + 1
        steps = dims.ceildiv(room, stride) + 1
        # The last window must start in the input or the padding before it. It does where all that a window may
        # reach over the end is less than the kernel.
        if dims.compare("<=", stride + after - self.reach(i), 0):
            return steps
        return dims.minimum(steps, dims.ceildiv(size + before, stride))

    def transposed(self, i: int, size: Size, extra: int) -> Size:
        """The dim of which a convolution would make `size`, and `extra` more."""
        stride = self.strides[i]
        whole = (size - 1) * stride + extra + self.reach(i)
        if self.mode in ("SAME_UPPER", "SAME_LOWER"):
            return dims.minimum(whole, size * stride)  # ONNX Runtime cuts off what is too much, but adds nothing
        return whole - (self.pads[i] + self.pads[i + len(self.kernel)])


def _conv(x: Value, weight: Value, attrs: Attrs) -> Dims:
    rank = x.rank or weight.rank
    kernel = attrs.get("kernel_shape") or (None if weight.shape is None else weight.shape[2:])
    if x.shape is None or kernel is None:
        return unknown_dims(rank)
    window = Window(attrs, kernel)
    channels = None if weight.shape is None else weight.shape[0]
    return (x.shape[0], channels, *(window.size(i, s) for i, s in enumerate(x.shape[2:])))


def conv(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, M, floor((D + pads - reach) / stride) + 1, ...) for weights (M, C / group, ...)."""
    x, weight = need(inputs, 0), need(inputs, 1)
    return [(x.dtype or weight.dtype, _conv(x, weight, attrs))]


def conv_integer(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """As Conv; INT32."""
    return [(DataType.INT32, _conv(need(inputs, 0), need(inputs, 1), attrs))]


def qlinear_conv(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """As Conv; dtype of the result's zero point, input 7."""
    return [(need(inputs, 7).dtype, _conv(need(inputs, 0), need(inputs, 3), attrs))]


def conv_transpose(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, M, (D - 1) stride + output_padding + reach - pads, ...), or `output_shape`; weights are (C, M / group, ...)."""
    x, weight = need(inputs, 0), need(inputs, 1)
    dtype = x.dtype or weight.dtype
    kernel = attrs.get("kernel_shape") or (None if weight.shape is None else weight.shape[2:])
    if x.shape is None or kernel is None:
        return [(dtype, unknown_dims(x.rank or weight.rank))]
    channels = None if weight.shape is None else weight.shape[1] * attrs.get("group", 1)
    given = attrs.get("output_shape")
    if given:
        return [(dtype, (x.shape[0], channels, *given[-len(kernel) :]))]
    window = Window(attrs, kernel)
    extra = attrs.get("output_padding") or [0] * len(kernel)
    return [(dtype, (x.shape[0], channels, *(window.transposed(i, s, extra[i]) for i, s in enumerate(x.shape[2:]))))]


def pool(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, C, ...) with `ceil_mode`'s rounding; MaxPool's second output holds INT64 indices."""
    x = need(inputs, 0)
    if x.shape is None:
        shape = unknown_dims(len(attrs["kernel_shape"]) + 2)
    else:
        window = Window(attrs, attrs["kernel_shape"])
        shape = (*x.shape[:2], *(window.size(i, s) for i, s in enumerate(x.shape[2:])))
    return [(x.dtype, shape), (DataType.INT64, shape)]


def causal_conv(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The data's shape, then the state (N, C, k - 1) for weights (C, 1, k)."""
    x, weight = need(inputs, 0), need(inputs, 1)
    kept = None if weight.shape is None else weight.shape[2] - 1
    state: Dims = (None, None, kept) if x.shape is None else (*x.shape[:2], kept)
    return [(x.dtype, x.shape), (x.dtype, state)]


def global_pool(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, C, 1, ...)."""
    x = need(inputs, 0)
    return [(x.dtype, None if x.shape is None else x.shape[:2] + (1,) * (len(x.shape) - 2))]


def max_unpool(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The third input's sizes, or the smallest input that MaxPool makes this of."""
    x, given = need(inputs, 0), maybe(inputs, 2)
    if given is not None:
        return [(x.dtype, content(given) or unknown_dims(x.rank))]
    if x.shape is None:
        return [(x.dtype, unknown_dims(len(attrs["kernel_shape"]) + 2))]
    window = Window(attrs, attrs["kernel_shape"])
    return [(x.dtype, (*x.shape[:2], *(window.transposed(i, s, 0) for i, s in enumerate(x.shape[2:]))))]


# ---------------------------------------------------------------------- resampling


def resize(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """The sizes of input 3, or floor(D scale) for the scales of input 2, at `axes` or everywhere."""
    x, scales, sizes = need(inputs, 0), maybe(inputs, 2), maybe(inputs, 3)
    if x.shape is None:
        return [(x.dtype, None)]
    axes = axes_of(attrs.get("axes") or range(len(x.shape)), len(x.shape)) or []
    made: Sequence[AnyDim] = (None,) * len(axes)
    if sizes is not None:
        if attrs.get("keep_aspect_ratio_policy", "stretch") == "stretch":
            made = content(sizes) or made
    elif attrs.get("coordinate_transformation_mode") != "tf_crop_and_resize":  # there the roi counts too
        factors = constant_numbers(scales)
        if factors is not None:
            made = [scaled(x.shape[a], f) for a, f in zip(axes, factors, strict=True)]
    shape: tuple[AnyDim, ...] = x.shape
    for axis, size in zip(axes, made, strict=True):
        shape = replaced(shape, axis, size)
    return [(x.dtype, shape)]


def scaled(size: Size, factor: float) -> AnyDim:
    """floor(size factor), as ONNX Runtime computes it: in float32. Exact for symbols where the factor is p / 2^k with small p."""
    if isinstance(size, int):
        return math.floor(np.float32(size) * np.float32(factor))
    top, bottom = float(factor).as_integer_ratio()
    return dims.floordiv(size * top, bottom) if top < 1024 and bottom < 1024 else None


def grid_sample(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, C, ...) of the data with the grid's spatial dims."""
    x, grid = need(inputs, 0), need(inputs, 1)
    if x.shape is None or grid.shape is None:
        return [(x.dtype, unknown_dims(x.rank or grid.rank))]
    return [(x.dtype, x.shape[:2] + grid.shape[1:-1])]


def affine_grid(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, H, W, 2) or (N, D, H, W, 3) for the sizes (N, C, [D,] H, W) in the second input."""
    theta, sizes = need(inputs, 0), content(need(inputs, 1))
    if sizes is None:
        return [(theta.dtype, None)]
    return [(theta.dtype, (sizes[0], *sizes[2:], len(sizes) - 2))]


def col2im(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(N, C / product of block_shape, *image_shape)."""
    x, image, block = need(inputs, 0), content(need(inputs, 1)), content(need(inputs, 2))
    if image is None:
        return [(x.dtype, None)]
    count = None if block is None else product(block)
    channels = None if x.shape is None or not count else dims.floordiv(x.shape[1], count)
    return [(x.dtype, (None if x.shape is None else x.shape[0], channels, *image))]


# ---------------------------------------------------------------------- boxes


def roi_align(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(boxes, C, output_height, output_width)."""
    x, boxes = need(inputs, 0), need(inputs, 1)
    count, channels = _first(boxes.shape), None if x.shape is None else x.shape[1]
    return [(x.dtype, (count, channels, attrs.get("output_height", 1), attrs.get("output_width", 1)))]


def max_roi_pool(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(boxes, C, *pooled_shape)."""
    x, boxes = need(inputs, 0), need(inputs, 1)
    return [(x.dtype, (_first(boxes.shape), None if x.shape is None else x.shape[1], *attrs["pooled_shape"]))]


def _first(shape: Shape | None) -> AnyDim:
    return None if shape is None else shape[0]


def non_max_suppression(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """INT64 (picked, 3)."""
    return [(DataType.INT64, (None, 3))]


RULES: dict[str, Rule] = {
    "AffineGrid": affine_grid,
    "AveragePool": pool,
    "CausalConvWithState": causal_conv,
    "Col2Im": col2im,
    "Conv": conv,
    "ConvInteger": conv_integer,
    "ConvTranspose": conv_transpose,
    "DeformConv": conv,
    "GlobalAveragePool": global_pool,
    "GlobalLpPool": global_pool,
    "GlobalMaxPool": global_pool,
    "GridSample": grid_sample,
    "LpPool": pool,
    "MaxPool": pool,
    "MaxRoiPool": max_roi_pool,
    "MaxUnpool": max_unpool,
    "NonMaxSuppression": non_max_suppression,
    "QLinearConv": qlinear_conv,
    "Resize": resize,
    "RoiAlign": roi_align,
}
