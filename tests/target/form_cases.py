"""Nodes of the newest form, what they compute, and from which opset on they can be said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from onnxport.target import dims
from onnxport.target.value import DataType

_RANDOM = np.random.default_rng(0)
B = dims.symbol("b", 1)


def rand(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(dtype)


def ints(*shape: int, low: int = -9, high: int = 9, dtype: Any = np.int64) -> np.ndarray:
    return _RANDOM.integers(low, high, shape).astype(dtype)


@dataclass
class Case:
    """`build(g, *values)` gives the outputs; `expected` what they hold for `inputs`.

    lowest: the first opset that can say it; below, `refusal` is in the message of the error.   shapes: symbolic ones (None: unknown).
    highest, unable: opsets that ONNX Runtime does not run it at; there the graph is only checked.
    """

    name: str
    build: Callable[..., Any]
    inputs: Sequence[np.ndarray]
    expected: Any
    lowest: int = 7
    refusal: str = ""
    shapes: Sequence[Any] = ()
    tolerance: float = 1e-5
    highest: int = 99
    unable: Sequence[int] = ()

    def wanted(self) -> list[np.ndarray]:
        found = self.expected(*[torch.from_numpy(a) for a in self.inputs]) if callable(self.expected) else self.expected
        found = found if isinstance(found, list | tuple) else [found]
        return [np.asarray(f) for f in found]


def op(name: str, *more: Any, **attrs: Any) -> Callable[..., Any]:
    """A build of one node: the graph inputs, then constants (None: left out)."""

    def build(g: Any, *values: Any) -> Any:
        rest = [m if m is None else g.const(m) for m in more]
        return g.op(name, *values, *rest, **attrs)

    return build


def case(name: str, *args: Any, build: Any = None, ops: tuple[Any, ...] = (), **kwargs: Any) -> Case:
    """`name` is the operator, perhaps with a remark behind a blank."""
    return Case(name, build or op(name.split()[0], *ops), *args, **kwargs)


X, Y = rand(2, 3, 4), rand(2, 3, 4)
IMAGE = rand(1, 2, 4, 6)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.5], np.float32)
OTHER = np.array([np.nan, np.inf, 1.0, 0.0, 0.0, 2.0, np.nan], np.float32)
BIG = np.array([2**53 + 1, -(2**62) - 3, 2**63 - 1, -(2**63), 5, 2**40], np.int64)
BIGGER = np.array([2**53, -(2**62) - 2, -(2**63), 2**63 - 1, 5, -(2**40)], np.int64)
BOOLS = np.array([[True, False, True], [False, False, True]])
EYE = np.eye(3, 4, dtype=np.float32)


# ---------------------------------------------------------------------- inputs that were attributes

MOVED = [
    case("Squeeze", [rand(1, 3, 1)], lambda x: x.squeeze(0), ops=([0],)),
    case("Squeeze negative", [rand(1, 3, 1)], lambda x: x.squeeze(-1), ops=([-1],)),
    case("Squeeze all", [rand(1, 3, 1)], lambda x: x.squeeze()),
    case("Unsqueeze", [X], lambda x: x[:, None, ..., None], ops=([1, -1],)),
    Case("Unsqueeze computed", lambda g, x, a: g.op("Unsqueeze", x, a), [X, np.array([1])], lambda x, a: x[:, None], 13,
         "Unsqueeze with 'axes' that the graph computes needs opset 13 or higher (opset_version="),
    *[case(f"{name} axes", [np.abs(X) + 1], function, build=op(name, [-1], keepdims=0))
      for name, function in {
          "ReduceSum": lambda x: x.sum(-1), "ReduceMean": lambda x: x.mean(-1), "ReduceMax": lambda x: x.amax(-1),
          "ReduceMin": lambda x: x.amin(-1), "ReduceProd": lambda x: x.prod(-1), "ReduceL1": lambda x: x.abs().sum(-1),
          "ReduceL2": lambda x: x.norm(dim=-1), "ReduceLogSum": lambda x: x.sum(-1).log(),
          "ReduceLogSumExp": lambda x: x.logsumexp(-1), "ReduceSumSquare": lambda x: (x * x).sum(-1)}.items()],
    case("ReduceSum all", [X], lambda x: x.sum(), build=op("ReduceSum", keepdims=0), tolerance=1e-4),
    case("ReduceMean empty", [X], lambda x: x.mean(), build=op("ReduceMean", [], keepdims=0)),
    case("ReduceSum noop", [X], lambda x: x, build=op("ReduceSum", noop_with_empty_axes=1), lowest=13,
         refusal="ReduceSum with 'noop_with_empty_axes' needs opset 13"),
    case("ReduceMean noop", [X], lambda x: x.mean(1, True), build=op("ReduceMean", [1], noop_with_empty_axes=1)),
    case("Slice", [X], lambda x: x[:, 1:3, -2:], ops=([1, -2], [3, 99], [1, 2])),
    case("Slice without axes", [X], lambda x: x[1:, :2], ops=([1, 0], [2, 2])),
    case("Slice steps", [X], lambda x: x[:, ::2, 1::2], ops=([0, 1], [99, 99], [1, 2], [2, 2])),
    case("Slice backwards", [X], lambda x: x.flip(-1), ops=([-1], [-(2**62)], [-1], [-1])),
    case("Slice steps of a dynamic dim", [X], lambda x: x[::2], ops=([0], [99], [0], [2]), lowest=10, shapes=[(B, 3, 4)],
         refusal="Slice with step 2 of a dim that is not a number needs opset 10"),
    Case("Slice computed", lambda g, x, s: g.op("Slice", x, s, g.const([9])), [X, np.array([1])], lambda x, s: x[1:], 10,
         "Slice with 'starts' that the graph computes needs opset 10"),
    case("Pad", [X], lambda x: F.pad(x, (1, 2, 0, 1), value=2.5), ops=([0, 0, 1, 0, 1, 2], np.float32(2.5))),
    case("Pad axes", [X], lambda x: F.pad(x, (1, 2)), ops=([1, 2], None, [-1])),
    case("Pad reflect", [X], lambda x: F.pad(x, (1, 2), mode="reflect"), build=op("Pad", [0, 0, 1, 0, 0, 2], mode="reflect")),
    case("Pad edge", [X], lambda x: F.pad(x, (1, 2), mode="replicate"), build=op("Pad", [1, 2], None, [2], mode="edge")),
    case("Pad wrap", [X], lambda x: F.pad(x, (1, 2), mode="circular"), build=op("Pad", [0, 0, 1, 0, 0, 2], mode="wrap"), lowest=19,
         refusal="Pad with mode 'wrap' needs opset 19"),
    Case("Pad dynamic", lambda g, x: g.op("Pad", x, g.sizes([0, x.shape[0]]), None, g.const([2])), [X], lambda x: F.pad(x, (0, 2)), 11,
         "Pad with 'pads' that the graph computes needs opset 11", [(B, 3, 4)]),
    case("Clip", [X], lambda x: x.clamp(-0.5, 0.5), ops=(np.float32(-0.5), np.float32(0.5))),
    case("Clip low", [SPECIAL], lambda x: x.clamp(min=0), ops=(np.float32(0),)),
    case("Clip high", [SPECIAL], lambda x: x.clamp(max=0), ops=(None, np.float32(0))),
    case("Clip nothing", [SPECIAL], lambda x: x),
    Case("Clip tensors", lambda g, x, a, b: g.op("Clip", x, a, b), [X, np.array(-0.1, np.float32), np.array(0.7, np.float32)],
         lambda x, a, b: x.clamp(a, b)),
    case("TopK", [X], lambda x: x.topk(2, -1), build=op("TopK", [2], outputs=2)),
    case("TopK smallest", [X], lambda x: x.topk(2, 1, largest=False), build=op("TopK", [2], outputs=2, axis=1, largest=0)),
    Case("TopK computed", lambda g, x, k: g.op("TopK", x, k, outputs=2), [X, np.array([2])], lambda x, k: x.topk(2), 10,
         "TopK with 'K' that the graph computes needs opset 10"),
    case("Split", [X], lambda x: x.split([1, 3], -1), build=op("Split", [1, 3], outputs=2, axis=-1)),
    case("Split parts", [X], lambda x: x.chunk(2, 2), build=op("Split", outputs=2, axis=2, num_outputs=2)),
    case("Split uneven", [X], lambda x: x.chunk(2, 1), build=op("Split", outputs=2, axis=1, num_outputs=2)),
    case("Split dynamic", [X], lambda x: x.chunk(2, 0), build=op("Split", outputs=2, axis=0, num_outputs=2), shapes=[(B, 3, 4)], lowest=18,
         refusal="Split with 'num_outputs' of a dim that may not be a multiple of it needs opset 18"),
    case("Split dynamic even", [X], lambda x: x.chunk(2, 0), build=op("Split", outputs=2, axis=0, num_outputs=2), shapes=[(B * 2, 3, 4)]),
    case("Dropout", [X], lambda x: x, ops=(np.float32(0.3), np.array(False))),
    case("Dropout plain", [X], lambda x: x),
    case("Dropout training", [X], np.zeros(0), ops=(np.float32(0.3), np.array(True)), lowest=12, highest=0,
         refusal="Dropout in training mode needs opset 12"),
]

# ---------------------------------------------------------------------- attributes that came or changed


def _pool(name: str, kernel: int, stride: int, pad: int, included: int) -> Callable[..., Any]:
    more = {"count_include_pad": included} if name == "AveragePool" else {}
    return op(name, kernel_shape=[kernel], strides=[stride], pads=[pad, pad], ceil_mode=1, **more)


def _ceil_pool(x: torch.Tensor, name: str, kernel: int, stride: int, pad: int, included: int) -> torch.Tensor:
    if name == "MaxPool":
        return F.max_pool1d(x, kernel, stride, pad, ceil_mode=True)
    return F.avg_pool1d(x, kernel, stride, pad, ceil_mode=True, count_include_pad=bool(included))


def _scan(g: Any, x: Any) -> Any:
    with g.subgraph() as body:
        row = g.input(None, x.dtype, x.shape[1:])
        body.outputs = [g.op("Neg", row)]
    return g.op("Scan", x, body=body, num_scan_inputs=1)


def _scatter_first(g: Any, x: Any, indices: Any, updates: Any) -> Any:
    first = g.op("Slice", updates, g.const([0]), g.const([1]), g.const([1]))
    return g.op("ScatterElements", x, g.const(np.zeros((2, 1, 4), np.int64)), first, axis=1)


A_FLOATS = np.array([5.3, -5.3, 5.3, -5.3, 0, np.inf, 2, -2, np.nan], np.float32)
B_FLOATS = np.array([3, 3, -3, -3, 3, 3, np.inf, np.inf, 1], np.float32)

CHANGED = [
    *[case(f"{name} {axis}", [X], lambda x, f=function, a=axis: f(x, a), build=op(name, axis=axis))
      for name, function in {"Softmax": torch.softmax, "LogSoftmax": torch.log_softmax}.items() for axis in (-1, 2, 1, 0, -3)],
    case("Softmax default", [X], lambda x: x.softmax(-1)),
    case("Softmax of unknown rank", [X], lambda x: x.softmax(-1), shapes=[None]),
    case("Softmax of unknown rank, inner", [X], lambda x: x.softmax(1), build=op("Softmax", axis=1), shapes=[None], lowest=13,
         refusal="Softmax over a dim that may not be the last, of a tensor of unknown rank, needs opset 13"),
    case("Hardmax", [X], lambda x: F.one_hot(x.argmax(1), 3).movedim(-1, 1).float(), build=op("Hardmax", axis=1)),
    case("Flatten", [X], lambda x: x.reshape(6, 4), build=op("Flatten", axis=-1)),
    case("Flatten ints", [ints(2, 3, 4)], lambda x: x.reshape(2, 12)),
    case("Flatten to a column", [ints(2, 3)], lambda x: x.reshape(6, 1), build=op("Flatten", axis=2)),
    case("ArgMax", [X], lambda x: x.argmax(1, True), build=op("ArgMax", axis=1, select_last_index=0)),
    case("ArgMax last", [np.zeros((2, 3), np.float32)], np.full((2, 1), 2), build=op("ArgMax", axis=-1, select_last_index=1), lowest=12,
         refusal="ArgMax with 'select_last_index' needs opset 12"),
    case("Gather", [X], lambda x: x[..., [0, 2]], build=op("Gather", [0, 2], axis=-1)),
    case("Gather counting from behind", [X], lambda x: x[..., [0, -2]], build=op("Gather", [0, -2], axis=-1)),
    case("DFT", [rand(2, 5, 1)], lambda x: torch.view_as_real(torch.fft.fft(x[..., 0])), lowest=17, refusal="DFT needs opset 17",
         tolerance=1e-4),
    case("DFT of an axis", [rand(5, 3, 1)], lambda x: torch.view_as_real(torch.fft.fft(x[..., 0], dim=0)),
         build=op("DFT", None, np.int64(-3)), lowest=17, refusal="DFT needs opset 17", tolerance=1e-4),
    case("Scan", [X], np.zeros(0), build=_scan, lowest=9, refusal="Scan needs opset 9", highest=0),
    case("Concat", [X, Y], lambda x, y: torch.cat([x, y], -1), build=op("Concat", axis=-1)),
    case("Shape", [X], np.array([2, 3, 4]), shapes=[(B, 3, 4)]),
    case("Shape start", [X], np.array([3, 4]), build=op("Shape", start=1), shapes=[(B, B * 2, 4)]),
    case("Shape end", [X], np.array([2, 3]), build=op("Shape", end=-1), shapes=[None]),
    case("Shape middle", [X], np.array([3]), build=op("Shape", start=-2, end=2), shapes=[(B, dims.symbol("c"), 4)]),
    Case("Reshape", lambda g, x: g.op("Reshape", x, g.const([4, 6]), allowzero=1), [X], lambda x: x.reshape(4, 6)),
    Case("Reshape zero", lambda g, x: g.op("Reshape", x, g.const([0, 6]), allowzero=1), [np.zeros((0, 3), np.float32)],
         lambda x: x.reshape(0, 6), 14, "Reshape with 'allowzero' to a size that may be zero needs opset 14"),
    Case("Reshape dynamic", lambda g, x: g.op("Reshape", x, g.sizes([x.shape[0], 12]), allowzero=1), [X], lambda x: x.reshape(2, 12),
         shapes=[(B, 3, 4)]),
    case("Gemm", [rand(3, 4), rand(4, 5)], lambda a, b: a @ b),
    case("Gemm with C", [rand(4, 3), rand(5, 4), rand(5)], lambda a, b, c: 0.5 * a.T @ b.T + 2 * c,
         build=op("Gemm", transA=1, transB=1, alpha=0.5, beta=2.0)),
    case("Gemm ints", [ints(3, 4), ints(5, 4), ints(5)], lambda a, b, c: a @ b.T + c, build=op("Gemm", transB=1), lowest=9,
         refusal="MatMul of INT64 needs opset 9"),
    case("BatchNormalization", [IMAGE, *(np.abs(rand(2)) + 0.1 for _ in range(4))],
         lambda x, s, b, m, v: F.batch_norm(x, m, v, s, b), build=op("BatchNormalization", training_mode=0)),
    case("BatchNormalization mixed", [IMAGE.astype(np.float16), *(np.abs(rand(2)) + 0.1 for _ in range(4))],
         lambda x, s, b, m, v: F.batch_norm(x.float(), m, v, s, b).half(), tolerance=1e-2),
    case("BatchNormalization training", [IMAGE, *(np.abs(rand(2)) + 0.1 for _ in range(4))],
         lambda x, s, b, m, v: F.batch_norm(x, None, None, s, b, training=True),
         build=lambda g, *v: g.op("BatchNormalization", *v, training_mode=1, outputs=3)[0], lowest=14,
         refusal="BatchNormalization with 'training_mode' needs opset 14"),
    case("AveragePool", [IMAGE], lambda x: F.avg_pool2d(x, 2), build=op("AveragePool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1,
                                                                        dilations=[1, 1])),
    *[case(f"{name} ceil {size} {kernel} {stride} {pad} {included}", [rand(1, 1, size)],
           lambda x, n=name, k=kernel, s=stride, p=pad, i=included: _ceil_pool(x, n, k, s, p, i),
           build=_pool(name, kernel, stride, pad, included), lowest=lowest, refusal="AveragePool with 'ceil_mode' needs opset 10")
      for name, size, kernel, stride, pad, included, lowest in [
          ("MaxPool", 5, 2, 2, 0, 0, 7), ("MaxPool", 3, 2, 4, 1, 0, 7), ("MaxPool", 6, 3, 2, 1, 0, 7), ("MaxPool", 9, 3, 2, 0, 0, 7),
          ("AveragePool", 5, 2, 2, 0, 0, 7), ("AveragePool", 6, 3, 2, 1, 0, 7), ("AveragePool", 6, 3, 2, 1, 1, 10),
          ("AveragePool", 3, 2, 4, 1, 1, 7)]],
    case("MaxPool ceil dynamic", [rand(1, 1, 6)], lambda x: _ceil_pool(x, "MaxPool", 3, 2, 0, 0), build=_pool("MaxPool", 3, 2, 0, 0),
         shapes=[(1, 1, dims.symbol("h"))], lowest=10, refusal="MaxPool with 'ceil_mode' needs opset 10"),
    case("MaxPool ceil dynamic behind", [rand(1, 1, 6)], lambda x: _ceil_pool(x, "MaxPool", 2, 2, 1, 0), build=_pool("MaxPool", 2, 2, 1, 0),
         shapes=[(1, 1, dims.symbol("h"))], lowest=22,
         refusal="MaxPool with 'ceil_mode', where a window may start behind the data, needs opset 22"),
    case("AveragePool dilated", [rand(1, 1, 5)], np.zeros(0), build=op("AveragePool", kernel_shape=[2], dilations=[2]), lowest=19,
         refusal="AveragePool with 'dilations' needs opset 19", highest=0),
    case("MaxPool", [IMAGE], lambda x: F.max_pool2d(x, 2), build=op("MaxPool", kernel_shape=[2, 2], strides=[2, 2], dilations=[1, 1])),
    case("MaxPool indices", [rand(1, 1, 4, 4)], lambda x: F.max_pool2d(x, 2, return_indices=True),
         build=op("MaxPool", kernel_shape=[2, 2], strides=[2, 2], outputs=2), lowest=8, refusal="MaxPool with 2 outputs needs opset 8"),
    case("MaxPool dilated", [IMAGE], lambda x: F.max_pool2d(x, 2, 1, dilation=2),
         build=op("MaxPool", kernel_shape=[2, 2], dilations=[2, 2]), lowest=10, refusal="MaxPool with 'dilations' needs opset 10"),
    case("DepthToSpace", [rand(1, 8, 2, 3)], lambda x: F.pixel_shuffle(x, 2), build=op("DepthToSpace", blocksize=2, mode="CRD")),
    case("DepthToSpace DCR", [rand(1, 8, 2, 3)], lambda x: x.reshape(1, 2, 2, 2, 2, 3).permute(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6),
         build=op("DepthToSpace", blocksize=2)),
    case("SpaceToDepth", [rand(2, 3, 4, 6)], lambda x: F.pixel_unshuffle(x, 2), build=op("SpaceToDepth", blocksize=2, mode="CRD"),
         shapes=[(B, 3, 4, 6)]),
    case("Sum", [rand(2, 3), rand(3), rand(1)], lambda a, b, c: a + b + c),
    case("Sum ints", [ints(2, 3), ints(3)], lambda a, b: a + b),
    case("Mean", [rand(2, 3), rand(3), rand(1)], lambda a, b, c: (a + b + c) / 3),
    case("Mean double", [rand(3, dtype=np.float64), rand(3, dtype=np.float64)], lambda a, b: (a + b) / 2),
    case("Max", [rand(2, 3), rand(3)], torch.maximum),
    case("Max of unknown shape", [rand(2, 3), rand(3)], torch.maximum, shapes=[None, None], lowest=8,
         refusal="Max that broadcasts needs opset 8"),
    case("Max int64", [BIG, BIGGER], torch.maximum),
    case("Min int64", [BIG, BIGGER], torch.minimum),
    case("Max int32", [ints(4, dtype=np.int32), ints(4, dtype=np.int32)], torch.maximum),
    case("Min int8", [ints(4, dtype=np.int8), ints(4, dtype=np.int8)], torch.minimum),
    case("Clip int64", [BIG], lambda x: x.clamp(-5, 2**53), ops=(np.int64(-5), np.int64(2**53))),
    case("Clip int32", [ints(9, dtype=np.int32)], lambda x: x.clamp(-2, 3), ops=(np.int32(-2), np.int32(3))),
    case("Clip uint8", [ints(9, low=0, dtype=np.uint8)], lambda x: x.clamp(2, 3), ops=(np.uint8(2), np.uint8(3))),
    case("Clip double", [rand(9, dtype=np.float64)], lambda x: x.clamp(-0.1, 0.1), ops=(np.float64(-0.1), np.float64(0.1)), unable=(7,)),
    case("Relu int64", [BIG], lambda x: x.clamp(min=0)),
    case("Relu int32", [ints(9, dtype=np.int32)], lambda x: x.clamp(min=0)),
    case("Relu int16", [ints(9, dtype=np.int16)], lambda x: x.clamp(min=0)),
    case("Less int64", [BIG, BIGGER], torch.less),
    case("Greater int64", [BIG, BIGGER], torch.greater),
    case("Greater int32", [ints(9, dtype=np.int32), ints(9, dtype=np.int32)], torch.greater),
    case("Greater bool", [BOOLS[0], BOOLS[1]], torch.greater),
    case("Equal", [SPECIAL, OTHER], torch.eq),
    case("Equal ints", [BIG, BIGGER], torch.eq),
    case("Equal uint8", [ints(9, low=0, high=3, dtype=np.uint8), ints(9, low=0, high=3, dtype=np.uint8)], torch.eq),
    case("Pow", [np.abs(X), Y], torch.pow),
    case("Pow by an integer", [X], lambda x: x**3, ops=(np.int64(3),)),
    case("Pow of integers", [ints(9)], lambda x: x**5, ops=(np.int64(5),)),
    case("Pow of int8", [ints(9, dtype=np.int8)], lambda x: x**3, ops=(np.int64(3),)),
    Case("Pow of computed integers", op("Pow"), [ints(9), ints(9, low=0)], torch.pow, 12, "Pow of INT64 needs opset 12"),
    case("Pad int64", [BIG], lambda x: F.pad(x, (2, 1), value=2**53 + 1), ops=([2, 1], np.int64(2**53 + 1))),
    case("Pad int64 edge", [BIG], np.pad(BIG, (2, 1), "edge"), build=op("Pad", [2, 1], mode="edge")),
    case("Pad int32", [ints(9, dtype=np.int32)], lambda x: F.pad(x, (2, 1)), ops=([2, 1],)),
    case("Pad bool", [BOOLS], lambda x: F.pad(x, (2, 1)), ops=([2, 1], None, [1])),
    case("ScatterElements", [X, ints(2, 3, 4, low=0, high=3), Y], lambda x, i, y: torch.cat([y[:, :1], x[:, 1:]], 1), lowest=9,
         refusal="ScatterElements needs opset 9", build=_scatter_first),
    case("ScatterElements add", [X, ints(2, 3, 4, low=0, high=3), Y], lambda x, i, y: x.scatter_add(1, i, y),
         build=op("ScatterElements", axis=1, reduction="add"), lowest=16, refusal="ScatterElements"),
    case("ScatterND max", [rand(4), np.array([[1], [2], [1]]), rand(3)], lambda x, i, y: x.scatter_reduce(0, i[:, 0], y, "amax"),
         build=op("ScatterND", reduction="max"), lowest=18, refusal="ScatterND"),
    case("GridSample", [IMAGE, rand(1, 3, 3, 2)], lambda x, g: F.grid_sample(x, g, align_corners=False), lowest=16,
         refusal="GridSample needs opset 16"),
    case("GridSample cubic", [IMAGE, rand(1, 3, 3, 2) / 4], lambda x, g: F.grid_sample(x, g, "bicubic", align_corners=True),
         build=op("GridSample", mode="cubic", align_corners=1), lowest=16, refusal="GridSample needs opset 16", tolerance=1e-4),
    case("GridSample volume", [rand(1, 1, 3, 3, 3), rand(1, 2, 2, 2, 3) / 4], lambda x, g: F.grid_sample(x, g, align_corners=False),
         lowest=20, refusal="GridSample"),
    case("RoiAlign half pixel", [IMAGE, np.array([[0, 0, 3, 3]], np.float32), np.array([0])], np.zeros(0), highest=0, lowest=16,
         refusal="RoiAlign"),
    case("LSTM layout", [rand(3, 2, 4), rand(1, 20, 4), rand(1, 20, 5)], np.zeros(0), build=op("LSTM", hidden_size=5, layout=1), lowest=14,
         refusal="LSTM with 'layout' needs opset 14", highest=0),
    case("Einsum", [rand(2, 3), rand(3, 4)], lambda a, b: a @ b, build=op("Einsum", equation="ij,jk->ik"), lowest=12,
         refusal="Einsum needs opset 12 or higher (opset_version="),
    case("GatherND", [X, np.array([[0, 1], [1, 2]])], lambda x, i: x[[0, 1], [1, 2]], build=op("GatherND", batch_dims=0), lowest=11,
         refusal="GatherND needs opset 11"),
    case("GatherND batch", [X, np.array([[1], [2]])], lambda x, i: x[[0, 1], [1, 2]], build=op("GatherND", batch_dims=1), lowest=12,
         refusal="GatherND"),
]

# ---------------------------------------------------------------------- operators that came


HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4, -0.6, 7.0, np.inf, -np.inf, np.nan], np.float32)
NUMBERS = np.array([7, -7, 7, -7, 6, 0], np.int64)
DIVISORS = np.array([3, 3, -3, -3, 3, 5], np.int64)
_RANGE = torch.arange(4)

MISSING = [
    case("LessOrEqual", [SPECIAL, OTHER], torch.le),
    case("GreaterOrEqual", [SPECIAL, OTHER], torch.ge),
    case("LessOrEqual int64", [BIG, BIGGER], torch.le),
    case("GreaterOrEqual int64", [BIG, BIGGER], torch.ge),
    case("LessOrEqual constant", [SPECIAL], lambda x: x <= 1, ops=(np.float32(1),)),
    case("IsNaN", [SPECIAL], torch.isnan),
    case("IsInf", [SPECIAL], torch.isinf),
    case("IsInf negative", [SPECIAL], torch.isneginf, build=op("IsInf", detect_positive=0)),
    case("IsInf positive", [SPECIAL], torch.isposinf, build=op("IsInf", detect_negative=0)),
    case("Sign", [rand(9)], torch.sign),
    case("Sign int64", [BIG], torch.sign),
    case("Where bool", [BOOLS, BOOLS[:, ::-1].copy(), BOOLS], torch.where),
    case("Where int64", [np.array([True, False] * 3), BIG, BIGGER], torch.where),
    case("Where int8", [BOOLS, ints(2, 3, dtype=np.int8), ints(2, 3, dtype=np.int8)], torch.where),
    case("Where", [BOOLS, rand(2, 3), rand(3)], torch.where, lowest=9, refusal="Where needs opset 9"),
    case("BitwiseNot", [ints(9)], torch.bitwise_not),
    case("BitwiseNot int8", [ints(9, dtype=np.int8)], torch.bitwise_not),
    case("BitwiseNot uint8", [ints(9, dtype=np.uint8)], torch.bitwise_not),
    *(case(name, [ints(9), ints(9)], function, lowest=9, refusal="MatMul of INT64 needs opset 9")
      for name, function in (("BitwiseAnd", torch.bitwise_and), ("BitwiseOr", torch.bitwise_or), ("BitwiseXor", torch.bitwise_xor))),
    case("Mod", [NUMBERS, DIVISORS], torch.remainder),
    case("Mod fmod", [NUMBERS, DIVISORS], torch.fmod, build=op("Mod", fmod=1)),
    case("Mod of great numbers", [np.array([2**63 - 2, 5 - 2**63, -7]), np.array([2**63 - 1, 2**63 - 2, 3])], torch.remainder),
    case("Mod int32", [NUMBERS.astype(np.int32), DIVISORS.astype(np.int32)], torch.remainder),
    case("Mod floats", [A_FLOATS, B_FLOATS], torch.remainder, lowest=10, refusal="Mod of floats needs opset 10", tolerance=1e-4),
    case("Mod floats fmod", [A_FLOATS, B_FLOATS], torch.fmod, build=op("Mod", fmod=1), lowest=10, refusal="Mod of floats needs opset 10"),
    case("Round", [HALVES], torch.round),
    case("HardSwish", [X], F.hardswish),
    case("HardSigmoid", [X], lambda x: (0.2 * x + 0.5).clamp(0, 1)),
    case("HardSigmoid double", [X.astype(np.float64)], lambda x: (0.2 * x + 0.5).clamp(0, 1), tolerance=1e-6, unable=(7,)),
    case("Mish", [X * 30], F.mish),
    case("Swish", [X], F.silu),
    case("Swish alpha", [X], lambda x: x * torch.sigmoid(1.7 * x), build=op("Swish", alpha=1.7)),
    case("SwiGLU", [X, Y], lambda x, y: F.silu(x) * y),
    case("Gelu", [X], F.gelu, lowest=9, refusal="Gelu needs opset 9"),
    case("Gelu tanh", [X], lambda x: F.gelu(x, approximate="tanh"), build=op("Gelu", approximate="tanh")),
    case("Celu", [X], lambda x: F.celu(x, 1.5), build=op("Celu", alpha=1.5)),
    case("ThresholdedRelu", [X], lambda x: F.threshold(x, 0.5, 0), build=op("ThresholdedRelu", alpha=0.5)),
    case("ThresholdedRelu negative", [X], lambda x: F.threshold(x, -0.5, 0), build=op("ThresholdedRelu", alpha=-0.5), lowest=9,
         refusal="ThresholdedRelu with a negative threshold needs opset 9"),
    *[case(f"{name} double", [X.astype(np.float64) * 3], function, tolerance=1e-6, unable=(7,) if name == "HardSwish" else ())
      for name, function in {
          "Elu": F.elu, "Selu": F.selu, "LeakyRelu": F.leaky_relu, "Softplus": F.softplus, "Softsign": F.softsign, "Tan": torch.tan,
          "HardSwish": F.hardswish, "Mish": F.mish, "Swish": F.silu, "Celu": F.celu}.items()],
    case("PRelu double", [X.astype(np.float64), rand(4, dtype=np.float64)], lambda x, s: torch.where(x < 0, x * s, x)),
    case("ThresholdedRelu double", [X.astype(np.float64)], lambda x: F.threshold(x, 1, 0)),
    case("GlobalAveragePool double", [IMAGE.astype(np.float64)], lambda x: x.mean((2, 3), True)),
    case("GlobalMaxPool double", [IMAGE.astype(np.float64)], lambda x: x.amax((2, 3), True)),
    case("Expand", [rand(3, 1)], lambda x: x.expand(2, 3, 4), ops=([2, 3, 4],)),
    case("Expand ones", [rand(3, 4)], lambda x: x.expand(2, 3, 4), ops=([2, 1, 1],)),
    Case("Expand dynamic", lambda g, x, y: g.op("Expand", x, g.shape(y)), [rand(1, 4), X[:, 0]], lambda x, y: x.expand(2, 4),
         shapes=[(1, 4), (B, 4)]),
    Case("Expand computed", lambda g, x, s: g.op("Expand", x, s), [rand(1, 4), np.array([2, 4])], lambda x, s: x.expand(2, 4), 8,
         "Expand to a shape that the graph computes needs opset 8"),
    Case("ConstantOfShape", lambda g, x: g.op("ConstantOfShape", g.shape(x), value=torch.tensor([7])), [X],
         lambda x: torch.full_like(x, 7).long(), shapes=[(B, 3, 4)]),
    Case("ConstantOfShape default", lambda g, x: g.op("ConstantOfShape", g.shape(x)), [X], torch.zeros_like,
         shapes=[(B, 3, 4)]),
    Case("CastLike", op("CastLike"), [X, ints(1, dtype=np.int32)], lambda x, y: x.int()),
    *[case(f"Trilu {upper} {k}", [rand(2, 3, 4)], lambda x, u=upper, k=k: x.triu(k) if u else x.tril(k),
           build=op("Trilu", np.int64(k), upper=upper), lowest=9, refusal="Trilu needs opset 9") for upper in (0, 1) for k in (0, 1, -1)],
    *[case(name, [X], getattr(torch, name.lower())) for name in ("Sinh", "Cosh", "Asinh")],
    *[case(f"{name} float64", [X.astype(np.float64)], getattr(torch, name.lower()), lowest=lowest, refusal=f"needs opset {lowest} or higher")
      for name, lowest in (("Sinh", 7), ("Cosh", 7), ("Asinh", 7), ("Atan", 8), ("Tan", 7), ("Erf", 9))],
    case("Trilu dynamic", [rand(4, 4)], lambda x: x.tril(1), build=op("Trilu", np.int64(1), upper=0), shapes=[(B, B)], lowest=11,
         refusal="Trilu of dims that are not numbers needs opset 11"),
    case("Trilu int8", [ints(3, 3, dtype=np.int8)], torch.triu),
    case("EyeLike", [rand(3, 4)], EYE, lowest=9, refusal="EyeLike needs opset 9"),
    case("EyeLike int8", [ints(3, 4, dtype=np.int8)], EYE.astype(np.int8), lowest=9, refusal="EyeLike needs opset 9"),
    case("EyeLike to bool", [ints(3, 4)], EYE.astype(bool), build=op("EyeLike", dtype=DataType.BOOL), lowest=9,
         refusal="EyeLike needs opset 9"),
    *[case(name, inputs, expected, build=op(name, **attrs), lowest=lowest, refusal=f"{name} needs opset {lowest}")
      for name, inputs, expected, lowest, attrs in [
          ("Erf", [X], torch.erf, 9, {}), ("NonZero", [BOOLS], lambda x: x.nonzero().T, 9, {}),
          ("CumSum", [X, np.array(1)], lambda x, a: x.cumsum(1), 11, {}),
          ("Range", [np.array(v) for v in (0, 4, 1)], _RANGE, 11, {}),
          ("GatherElements", [X, ints(2, 3, 4, low=0, high=3)], lambda x, i: x.gather(1, i), 11, {"axis": 1}),
          ("LayerNormalization", [X, np.ones(4, np.float32)], lambda x, s: F.layer_norm(x, (4,)), 17, {}),
          ("RMSNormalization", [X, np.ones(4, np.float32)], lambda x, s: F.rms_norm(x, (4,), eps=1e-5), 23, {}),
          ("GroupNormalization", [IMAGE, np.ones(2, np.float32), np.zeros(2, np.float32)], lambda x, s, b: F.group_norm(x, 2), 21,
           {"num_groups": 2}),
          ("Attention", [rand(1, 2, 3, 8)] * 3, F.scaled_dot_product_attention, 23, {}),
      ]],
    Case("OneHot", lambda g, x: g.op("OneHot", x, g.const(4), g.const([0.0, 1.0]), axis=-1), [np.array([1, 3])],
         lambda x: F.one_hot(x, 4).float(), 9, "OneHot needs opset 9"),
]

# ---------------------------------------------------------------------- resize


def _resize(scales: list[float] | None, sizes: list[int] | None = None, **attrs: Any) -> Callable[..., Any]:
    def build(g: Any, x: Any) -> Any:
        return g.op("Resize", x, None, None if scales is None else g.const(scales), None if sizes is None else g.const(sizes), **attrs)

    return build


def _twice(x: torch.Tensor, *_: Any) -> torch.Tensor:
    between = torch.cat([(x[:, :, :-1] + x[:, :, 1:]) / 2, x[:, :, -1:]], 2)
    return torch.stack([x, between], 3).reshape(1, 2, 8, 6)


_PIXELS: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}
_LINEAR: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
_FLOOR: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}

RESIZE = [
    Case("Resize nearest", _resize([1.0, 1.0, 2.0, 3.0], **_FLOOR), [IMAGE], lambda x: F.interpolate(x, scale_factor=(2, 3))),
    Case("Resize nearest sizes", _resize(None, [1, 2, 8, 18], **_FLOOR), [IMAGE], lambda x: F.interpolate(x, (8, 18))),
    Case("Resize nearest uneven", _resize(None, [1, 2, 7, 11], **_FLOOR), [IMAGE], lambda x: F.interpolate(x, (7, 11))),
    Case("Resize nearest, half pixel", _resize([1.0, 1.0, 2.0, 3.0]), [IMAGE], lambda x: F.interpolate(x, scale_factor=(2, 3))),
    Case("Resize nearest, half pixel, uneven", _resize([1.0, 1.0, 1.5, 1.5], nearest_mode="round_prefer_ceil"), [IMAGE],
         lambda x: F.interpolate(x, scale_factor=1.5, mode="nearest-exact"), 11,
         "Resize with mode 'nearest' and coordinates 'half_pixel' needs opset 11"),
    Case("Resize down", _resize([1.0, 1.0, 0.5, 0.5], **_FLOOR), [IMAGE], lambda x: x[:, :, ::2, ::2], 10,
         "Resize to a smaller size needs opset 10"),
    Case("Resize down uneven", _resize(None, [1, 2, 3, 4], **_FLOOR), [IMAGE], lambda x: F.interpolate(x, (3, 4)), 11,
         "needs opset 11"),
    Case("Resize linear", _resize([1.0, 1.0, 2.0, 2.0], **_PIXELS), [IMAGE], lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
         11, "Resize with mode 'linear' and coordinates 'pytorch_half_pixel' needs opset 11"),
    Case("Resize corners", _resize(None, [1, 2, 7, 9], mode="linear", coordinate_transformation_mode="align_corners"), [IMAGE],
         lambda x: F.interpolate(x, (7, 9), mode="bilinear", align_corners=True), 11, "needs opset 11"),
    Case("Resize linear asymmetric", _resize([1.0, 1.0, 2.0, 1.0], **_LINEAR), [IMAGE], _twice),
    Case("Resize cubic", _resize(None, [1, 2, 8, 12], mode="cubic", coordinate_transformation_mode="pytorch_half_pixel"), [IMAGE],
         lambda x: F.interpolate(x, (8, 12), mode="bicubic"), 11, "Resize with mode 'cubic' needs opset 11"),
    Case("Resize axes", _resize([2.0, 2.0], axes=[2, 3], **_FLOOR), [IMAGE], lambda x: F.interpolate(x, scale_factor=2)),
    Case("Resize axes sizes", _resize(None, [8, 12], axes=[2, 3], **_FLOOR), [IMAGE], lambda x: F.interpolate(x, (8, 12)),
         shapes=[(B, 2, 4, 6)]),
    Case("Resize antialias", _resize(None, [1, 2, 2, 3], antialias=1, exclude_outside=1, mode="linear"), [IMAGE],
         lambda x: F.interpolate(x, (2, 3), mode="bilinear", antialias=True), 18, "Resize"),
    Case("Resize dynamic", lambda g, x: g.op("Resize", x, None, None, g.sizes([x.shape[0], 2, x.shape[2] * 2, 12]), **_FLOOR), [IMAGE],
         lambda x: F.interpolate(x, (8, 12)), shapes=[(B, 2, dims.symbol("h", 1), 6)]),
    Case("Resize computed", lambda g, x, s: g.op("Resize", x, None, s, **_LINEAR),
         [IMAGE, np.array([1, 1, 2, 1], np.float32)], _twice, 9, "Resize with scales that the graph computes needs opset 9"),
    Case("Resize with empty scales", lambda g, x: g.op("Resize", x, None, g.const(np.zeros(0, np.float32)), g.const([1, 2, 4, 6])),
         [IMAGE], lambda x: x),
]

# ---------------------------------------------------------------------- quantisation

_SCALE, _ZERO = np.float32(0.1), np.int8(3)
_Q = np.clip(np.round(X / _SCALE) + 3, -128, 127).astype(np.int8)
_SCALES = np.array([0.1, 0.2, 0.3], np.float32)

QUANTISED = [
    case("QuantizeLinear", [X], _Q, ops=(_SCALE, _ZERO)),
    case("QuantizeLinear uint8", [X * 20], np.clip(np.round(X * 20 / _SCALE), 0, 255).astype(np.uint8), ops=(_SCALE,)),
    case("QuantizeLinear output_dtype", [X], np.clip(np.round(X / _SCALE), -128, 127).astype(np.int8),
         build=op("QuantizeLinear", _SCALE, output_dtype=DataType.INT8)),
    case("QuantizeLinear channels", [X], np.clip(np.round(X / _SCALES[None, :, None]) + 1, -128, 127).astype(np.int8),
         build=op("QuantizeLinear", _SCALES, np.ones(3, np.int8), axis=1)),
    case("DequantizeLinear", [_Q], (_Q.astype(np.float32) - 3) * _SCALE, ops=(_SCALE, _ZERO)),
    case("DequantizeLinear channels", [_Q], _Q.astype(np.float32) * _SCALES[None, :, None], build=op("DequantizeLinear", _SCALES, axis=-2)),
    case("DequantizeLinear half", [_Q], ((_Q.astype(np.float32) - 3) * _SCALE).astype(np.float16),
         build=op("DequantizeLinear", _SCALE, _ZERO, output_dtype=DataType.FLOAT16), tolerance=1e-2),
]

CASES = [*MOVED, *CHANGED, *MISSING, *RESIZE, *QUANTISED]
