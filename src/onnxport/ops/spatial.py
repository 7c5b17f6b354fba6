"""Grids of places, patches as columns, and what detectors do with boxes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from onnxport import errors
from onnxport.ops import deformable, roi, windows
from onnxport.ops.registry import aten
from onnxport.ops.support import pair, rank_of, shape_of, static_int, tensor
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size, is_static
from onnxport.target.dtypes import to_torch
from onnxport.target.value import DataType, Value

# ---------------------------------------------------------------------- grids


@aten
def affine_grid_generator(g: Builder, theta: Value, size: Sequence[Size], align_corners: bool) -> Value:
    """affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor

    theta (N, 2, 3), size (N, C, H, W) -> (N, H, W, 2); or (N, 3, 4), (N, C, D, H, W) -> (N, D, H, W, 3). Points times theta: ONNX MatMul.
    """
    assert theta.dtype is not None
    spatial, count = list(size[2:]), len(size) - 2
    ranges = [_unit_range(g, s, theta.dtype, align_corners) for s in spatial]
    columns = [sizes.reshape(g, v, [-1 if j == i else 1 for j in range(count)] + [1]) for i, v in enumerate(ranges)]
    # Where all is known the points are a constant; else each column is spread over the whole grid by Expand.
    if all(c.const is not None for c in columns):
        whole = [c.const.tensor.expand(*[int(s) for s in spatial], 1) for c in columns if c.const is not None]  # type: ignore[arg-type]
        points = g.const(torch.cat([*whole[::-1], torch.ones_like(whole[0])], -1).reshape(-1, count + 1))
    else:
        wide = [sizes.expand(g, c, [*spatial, 1]) for c in columns[::-1]]
        ones = sizes.expand(g, g.const(1.0, theta.dtype), [*spatial, 1])
        points = sizes.reshape(g, g.op("Concat", *wide, ones, axis=-1), [dims.product(spatial), count + 1])
    grid = g.op("MatMul", points, g.op("Transpose", theta, perm=[0, 2, 1]))
    return sizes.reshape(g, grid, [shape_of(theta)[0], *spatial, count])


def _unit_range(g: Builder, size: Size, dtype: DataType, align_corners: bool) -> Value:
    """`size` points from -1 to 1: the ends at the pixels' centres, or (not align_corners) half a pixel out."""
    if isinstance(size, int):
        points = torch.linspace(-1, 1, size, dtype=to_torch(dtype)) if size > 1 else torch.zeros(size, dtype=to_torch(dtype))
        return g.const(points if align_corners or size <= 1 else points * ((size - 1) / size))
    at = g.op("Cast", windows.arange(g, size), to=dtype)
    length = g.op("Cast", g.scalar(size), to=dtype)
    one = g.const(1.0, dtype)
    if align_corners:  # 2 i / (n - 1) - 1, and 0 for a single point
        last = g.op("Cast", g.scalar(dims.maximum(size - 1, 1)), to=dtype)
        first = g.op("Div", g.op("Cast", g.scalar(size - 1), to=dtype), last)
        return g.op("Sub", g.op("Div", g.op("Mul", at, g.const(2.0, dtype)), last), first)
    return g.op("Sub", g.op("Div", g.op("Add", g.op("Mul", at, g.const(2.0, dtype)), one), length), one)


# ---------------------------------------------------------------------- patches as columns


@aten
def im2col(g: Builder, self: Value, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
           stride: Sequence[int]) -> Value:
    """im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor

    (N, C, H, W) -> (N, C kh kw, windows), or both without N. ONNX Pad, two Gather, Transpose, Reshape.
    """
    kernel, padding = pair(kernel_size, 2), pair(padding, 2)
    first = rank_of(self) - 2
    padded = windows.pad(g, self, padding, padding) if any(padding) else self
    cut = windows.windows_last(g, padded, first, kernel, pair(stride, 2), pair(dilation, 2))
    shape = shape_of(cut)
    columns = dims.product(shape[first - 1:first + 2])
    return sizes.reshape(g, cut, [*shape[:first - 1], columns, dims.product(shape[first + 2:])])


@aten
def col2im(g: Builder, self: Value, output_size: Sequence[Size], kernel_size: Sequence[int], dilation: Sequence[int],
           padding: Sequence[int],
           stride: Sequence[int]) -> Value:
    """col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor

    (N, C kh kw, windows) -> (N, C, H, W), or both without N. ONNX Col2Im; below opset 18 ConvTranspose with weights that put
    each value in its place.
    """
    kernel, dilation, padding, stride = (pair(v, 2) for v in (kernel_size, dilation, padding, stride))
    x = self if rank_of(self) == 3 else sizes.unsqueeze(g, self, [0])
    if g.opset >= 18:
        result = g.op("Col2Im", x, g.sizes(list(output_size)), g.const(kernel), dilations=dilation, pads=padding * 2, strides=stride)
    else:
        result = _scattered(g, x, output_size, kernel, dilation, padding, stride)
    return result if x is self else sizes.squeeze(g, result, [0])


def _scattered(g: Builder, x: Value, output: Sequence[Size], kernel: list[int], dilation: list[int], padding: list[int],
               stride: list[int]) -> Value:
    volume = kernel[0] * kernel[1]
    channels = static_int(shape_of(x)[1], "the channels of fold below opset 18") // volume
    counts = [windows.count_of(s + 2 * p, k, st, d) for s, p, k, st, d in zip(output, padding, kernel, stride, dilation, strict=True)]
    images = sizes.reshape(g, x, [shape_of(x)[0], channels * volume, *counts])
    assert x.dtype is not None
    weight = torch.eye(volume, dtype=to_torch(x.dtype)).reshape(volume, 1, *kernel).repeat(channels, 1, 1, 1)
    reach = [(c - 1) * s + (k - 1) * d + 1 for c, s, k, d in zip(counts, stride, kernel, dilation, strict=True)]
    rest = [o + 2 * p - r for o, p, r in zip(output, padding, reach, strict=True)]
    if not is_static(rest):
        raise errors.UnsupportedError(f"fold to the dynamic size {tuple(map(str, output))} needs opset 18 or higher "
                                      f"(opset_version={g.opset} was asked)")
    whole = g.op("ConvTranspose", images, g.const(weight), strides=stride, dilations=dilation, group=channels, kernel_shape=kernel)
    after = [r - p for r, p in zip(rest, padding, strict=True)]
    return windows.pad(g, whole, [-p for p in padding], after)


# ---------------------------------------------------------------------- boxes


@aten("torchvision::nms")
def nms(g: Builder, dets: Value, scores: Value, iou_threshold: float) -> Value:
    """torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor

    dets (boxes, 4) as x1, y1, x2, y2, scores (boxes,) -> int64 (kept,), best first. ONNX NonMaxSuppression (opset 10).
    """
    if g.opset < 10:
        raise errors.UnsupportedError(f"nms needs opset 10 or higher (opset_version={g.opset} was asked)")
    boxes, points = sizes.unsqueeze(g, _float(g, dets), [0]), sizes.unsqueeze(g, _float(g, scores), [0, 1])
    kept = g.op("NonMaxSuppression", boxes, points, g.const([2**31 - 1]), g.const([iou_threshold], DataType.FLOAT))
    return g.op("Gather", kept, g.const(2), axis=1)


def _float(g: Builder, x: Value) -> Value:
    return g.op("Cast", x, to=DataType.FLOAT)


@aten("torchvision::roi_align")
def roi_align(g: Builder, input: Value, rois: Value, spatial_scale: float | Value, pooled_height: Size, pooled_width: Size, sampling_ratio: int,
              aligned: bool) -> Value:
    """torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio,
    bool aligned) -> Tensor

    rois (boxes, 5): image, x1, y1, x2, y2. ONNX RoiAlign; from opset 22 on, where ONNX Runtime has none, Gather of the samples.
    """
    height, width = static_int(pooled_height, "the height of roi_align"), static_int(pooled_width, "the width of roi_align")
    if g.opset >= 22:
        return roi.align(g, input, rois, spatial_scale, height, width, sampling_ratio, aligned)
    boxes, images = roi.boxes_of(g, rois)
    if isinstance(spatial_scale, Value):
        boxes, spatial_scale = g.op("Mul", boxes, tensor(g, spatial_scale, boxes.dtype)), 1.0
    return g.op("RoiAlign", input, boxes, images, mode="avg", output_height=height, output_width=width,
                sampling_ratio=max(sampling_ratio, 0),
                spatial_scale=spatial_scale, coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel")


@aten("torchvision::roi_pool")
def roi_pool(g: Builder, input: Value, rois: Value, spatial_scale: float, pooled_height: Size, pooled_width: Size) -> list[Value | None]:
    """torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)

    ONNX MaxRoiPool. The second result, the places, is for the gradient only and is refused where it is used.
    """
    if g.opset >= 22:
        raise errors.UnsupportedError(f"roi_pool runs up to opset 21; at opset {g.opset} ONNX Runtime has no MaxRoiPool")
    shape = [static_int(pooled_height, "the height of roi_pool"), static_int(pooled_width, "the width of roi_pool")]
    return [g.op("MaxRoiPool", input, rois, pooled_shape=shape, spatial_scale=spatial_scale), None]


@aten("torchvision::deform_conv2d")
def deform_conv2d(g: Builder, input: Value, weight: Value, offset: Value, mask: Value, bias: Value, stride_h: int, stride_w: int,
                  pad_h: int,
                  pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool) -> Value:
    """torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w,
    SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor

    ONNX DeformConv; below opset 19 the pixels around each place.
    """
    if g.opset < 19:
        return deformable.convolve(g, input, weight, offset, mask if use_mask else None, bias, [stride_h, stride_w], [pad_h, pad_w],
                                   [dilation_h, dilation_w], groups, offset_groups)
    kernel = [static_int(k, "the kernel of deform_conv2d") for k in shape_of(weight)[2:]]
    return g.op("DeformConv", input, weight, offset, bias, mask if use_mask else None, kernel_shape=kernel, strides=[stride_h, stride_w],
                pads=[pad_h, pad_w, pad_h, pad_w], dilations=[dilation_h, dilation_w], group=groups, offset_group=offset_groups)
