"""Losses and distances. `reduction` is 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

import math

import torch

from onnxport.ops import windows
from onnxport.ops.reduction import average
from onnxport.ops.registry import aten
from onnxport.ops.support import Number, cast, promoted, rank_of, shape_of
from onnxport.target import dims, sizes
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.dtypes import is_float
from onnxport.target.value import DataType, Value

# ---------------------------------------------------------------------- pieces


def reduced(g: Builder, x: Value, reduction: int) -> Value:
    """The mean or the sum of all elements, or `x` itself."""
    if reduction == 0 or rank_of(x) == 0:
        return x
    return average(g, x, range(rank_of(x)), False) if reduction == 1 else g.op("ReduceSum", x, keepdims=0)


def number(g: Builder, value: float, like: Value) -> Value:
    """A scalar of the dtype of `like`."""
    return g.const(value, like.dtype)


def positive(g: Builder, x: Value) -> Value:
    """max(x, 0)."""
    return g.op("Max", x, number(g, 0, x))


def summed(g: Builder, x: Value, axis: int, keepdim: bool = False) -> Value:
    """The sum over one axis."""
    return g.op("ReduceSum", x, g.const([axis]), keepdims=int(keepdim))


def norm(g: Builder, x: Value, p: float, axis: int, keepdim: bool = False) -> Value:
    """The p-norm over one axis."""
    if p in (1.0, 2.0):
        return g.op("ReduceL1" if p == 1.0 else "ReduceL2", x, g.const([axis]), keepdims=int(keepdim))
    size = g.op("Abs", x)
    if math.isinf(p):
        return g.op("ReduceMax" if p > 0 else "ReduceMin", size, g.const([axis]), keepdims=int(keepdim))
    if p == 0.0:
        return summed(g, g.op("Cast", g.op("Greater", size, number(g, 0, x)), to=x.dtype), axis, keepdim)
    return g.op("Pow", summed(g, g.op("Pow", size, number(g, p, x)), axis, keepdim), number(g, 1.0 / p, x))


# ---------------------------------------------------------------------- differences


@aten
def mse_loss(g: Builder, self: Value, target: Value, reduction: int = 1) -> Value:
    """mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor. ONNX Sub, Mul."""
    difference = g.op("Sub", *promoted(g, self, target))
    return reduced(g, g.op("Mul", difference, difference), reduction)


@aten
def l1_loss(g: Builder, self: Value, target: Value, reduction: int = 1) -> Value:
    """l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor. ONNX Sub, Abs."""
    return reduced(g, g.op("Abs", g.op("Sub", *promoted(g, self, target))), reduction)


@aten
def smooth_l1_loss(g: Builder, self: Value, target: Value, reduction: int = 1, beta: float = 1.0) -> Value:
    """smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor

    d^2 / (2 beta) where |d| < beta, else |d| - beta / 2.
    """
    if beta == 0.0:
        return l1_loss(g, self, target, reduction)
    loss = _huber(g, self, target, beta)
    return reduced(g, loss if beta == 1.0 else g.op("Div", loss, number(g, beta, loss)), reduction)


@aten
def huber_loss(g: Builder, self: Value, target: Value, reduction: int = 1, delta: float = 1.0) -> Value:
    """huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor

    d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).
    """
    return reduced(g, _huber(g, self, target, delta), reduction)


def _huber(g: Builder, a: Value, b: Value, delta: float) -> Value:
    """With m = min(|d|, delta) both branches are m (|d| - m / 2)."""
    distance = g.op("Abs", g.op("Sub", *promoted(g, a, b)))
    small = g.op("Min", distance, number(g, delta, distance))
    return g.op("Mul", small, g.op("Sub", distance, g.op("Mul", small, number(g, 0.5, distance))))


# ---------------------------------------------------------------------- probabilities of two classes


@aten
def binary_cross_entropy(g: Builder, self: Value, target: Value, weight: Value | None = None, reduction: int = 1) -> Value:
    """binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor

    -(t log p + (1 - t) log(1 - p)), logarithms not below -100.
    """
    one = number(g, 1, self)
    yes, no = (g.op("Max", g.op("Log", p), number(g, -100.0, self)) for p in (self, g.op("Sub", one, self)))
    loss = g.op("Sub", g.op("Mul", g.op("Sub", target, one), no), g.op("Mul", target, yes))
    return reduced(g, loss if weight is None else g.op("Mul", loss, weight), reduction)


@aten
def binary_cross_entropy_with_logits(g: Builder, self: Value, target: Value, weight: Value | None = None, pos_weight: Value | None = None,
                                     reduction: int = 1) -> Value:
    """binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor

    (1 - t) x + (1 + (pos_weight - 1) t) softplus(-x).
    """
    x, t = promoted(g, self, target)
    one = number(g, 1, x)
    spread = g.op("Softplus", g.op("Neg", x))
    if pos_weight is not None:
        spread = g.op("Mul", spread, g.op("Add", g.op("Mul", g.op("Sub", pos_weight, one), t), one))
    loss = g.op("Add", g.op("Mul", g.op("Sub", one, t), x), spread)
    return reduced(g, loss if weight is None else g.op("Mul", loss, weight), reduction)


@aten
def soft_margin_loss(g: Builder, self: Value, target: Value, reduction: int = 1) -> Value:
    """soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor. log(1 + exp(-t x)): ONNX Softplus."""
    x, t = promoted(g, self, target)
    return reduced(g, g.op("Softplus", g.op("Neg", g.op("Mul", t, x))), reduction)


# ---------------------------------------------------------------------- distributions


@aten
def kl_div(g: Builder, self: Value, target: Value, reduction: int = 1, log_target: bool = False) -> Value:
    """kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor. t (log t - x), 0 where t is 0."""
    x, t = promoted(g, self, target)
    if log_target:
        return reduced(g, g.op("Mul", g.op("Exp", t), g.op("Sub", t, x)), reduction)
    zero = number(g, 0, t)
    entropy = g.op("Where", g.op("Equal", t, zero), zero, g.op("Mul", t, g.op("Log", t)))
    return reduced(g, g.op("Sub", entropy, g.op("Mul", t, x)), reduction)


@aten
def poisson_nll_loss(g: Builder, input: Value, target: Value, log_input: bool, full: bool, eps: float, reduction: int) -> Value:
    """poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor"""
    x, t = promoted(g, input, target, floating=True)
    if log_input:
        loss = g.op("Sub", g.op("Exp", x), g.op("Mul", t, x))
    else:
        loss = g.op("Sub", x, g.op("Mul", t, g.op("Log", g.op("Add", x, number(g, eps, x)))))
    if full:  # Stirling's approximation, for more than one event
        stirling = g.op("Add", g.op("Sub", g.op("Mul", t, g.op("Log", t)), t),
                        g.op("Mul", g.op("Log", g.op("Mul", t, number(g, 2 * math.pi, t))), number(g, 0.5, t)))
        loss = g.op("Add", loss, g.op("Where", g.op("Greater", t, number(g, 1, t)), stirling, number(g, 0, t)))
    return reduced(g, loss, reduction)


# ---------------------------------------------------------------------- classes


def hits(g: Builder, target: Value, classes: Size, axis: int, ignore_index: int | None = None) -> Value:
    """Where a class is the target's: `target` with `axis` inserted, bool. The ignored class, and any that is none, is nowhere."""
    numbers = windows.arange(g, classes)
    if ignore_index is not None and ignore_index >= 0:
        if isinstance(classes, int):
            numbers = g.const(torch.where(torch.arange(classes) == ignore_index, -1, torch.arange(classes)))
        else:
            numbers = g.op("Where", g.op("Equal", numbers, g.const(ignore_index)), g.const(-1), numbers)
    numbers = sizes.reshape(g, numbers, [-1, *[1] * (rank_of(target) - axis)])
    return g.op("Equal", sizes.unsqueeze(g, cast(g, target, DataType.INT64), [axis]), numbers)


def _class_axis(x: Value) -> int:
    return 0 if rank_of(x) == 1 else 1


def _nll(g: Builder, x: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int) -> tuple[Value, Value]:
    """(loss, total weight)."""
    axis = _class_axis(x)
    hit = hits(g, target, shape_of(x)[axis], axis, ignore_index)
    zero = number(g, 0, x)
    costs = g.op("Neg", x)
    if weight is not None:
        weight = sizes.reshape(g, weight, [-1, *[1] * (rank_of(x) - axis - 1)])
        costs = g.op("Mul", costs, weight)
    loss = summed(g, g.op("Where", hit, costs, zero), axis)
    if reduction == 0:
        return loss, zero
    counted = g.op("Cast", hit, to=x.dtype) if weight is None else g.op("Where", hit, weight, zero)
    total = reduced(g, counted, 2)
    loss = reduced(g, loss, 2)
    return (loss if reduction == 2 else g.op("Div", loss, total)), total


@aten("nll_loss", "nll_loss2d", "nll_loss_nd")
def nll_loss(g: Builder, self: Value, target: Value, weight: Value | None = None, reduction: int = 1, ignore_index: int = -100) -> Value:
    """nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor

    self (N, C, *) or (C,), target (N, *) or (). ONNX Equal with the classes, Where, ReduceSum.
    """
    return _nll(g, self, target, weight, reduction, ignore_index)[0]


@aten("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward(g: Builder, self: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int) -> list[Value]:
    """nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor
    total_weight)"""
    return list(_nll(g, self, target, weight, reduction, ignore_index))


@aten
def cross_entropy_loss(g: Builder, self: Value, target: Value, weight: Value | None = None, reduction: int = 1, ignore_index: int = -100,
                       label_smoothing: float = 0.0) -> Value:
    """cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100,
    float label_smoothing=0.) -> Tensor

    target: classes (N, *), or probabilities of the shape of self. ONNX LogSoftmax, and as `nll_loss`.
    """
    axis = _class_axis(self)
    scores = g.op("LogSoftmax", self, axis=axis)
    if is_float(target.dtype):
        return _soft_cross_entropy(g, scores, target, weight, reduction, label_smoothing, axis)
    loss, total = _nll(g, scores, target, weight, reduction, ignore_index)
    if label_smoothing == 0.0:
        return loss
    classes = shape_of(self)[axis]
    costs = g.op("Neg", scores)
    if weight is not None:
        costs = g.op("Mul", costs, sizes.reshape(g, weight, [-1, *[1] * (rank_of(self) - axis - 1)]))
    valid = g.op("Cast", g.op("Not", g.op("Equal", cast(g, target, DataType.INT64), g.const(ignore_index))), to=self.dtype)
    spread = reduced(g, g.op("Mul", summed(g, costs, axis), valid), 2 if reduction else 0)
    if reduction == 1:
        spread = g.op("Div", spread, total)
    share = _share(g, label_smoothing, classes, self)
    return g.op("Add", g.op("Mul", loss, number(g, 1 - label_smoothing, self)), g.op("Mul", spread, share))


def _share(g: Builder, label_smoothing: float, classes: Size, like: Value) -> Value:
    if isinstance(classes, int):
        return number(g, label_smoothing / classes, like)
    return g.op("Div", number(g, label_smoothing, like), g.op("Cast", g.scalar(classes), to=like.dtype))


def _soft_cross_entropy(g: Builder, scores: Value, target: Value, weight: Value | None, reduction: int, label_smoothing: float,
                        axis: int) -> Value:
    if label_smoothing > 0.0:
        kept = g.op("Mul", target, number(g, 1 - label_smoothing, target))
        target = g.op("Add", kept, _share(g, label_smoothing, shape_of(scores)[axis], target))
    costs = g.op("Neg", g.op("Mul", scores, target))
    if weight is not None:
        costs = g.op("Mul", costs, sizes.reshape(g, weight, [-1, *[1] * (rank_of(scores) - axis - 1)]))
    return reduced(g, summed(g, costs, axis), reduction)


@aten
def multi_margin_loss(g: Builder, self: Value, target: Value, p: Number = 1, margin: Number = 1, weight: Value | None = None,
                      reduction: int = 1) -> Value:
    """multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor

    self (N, C) or (C,), target (N,) or (). Sum over the other classes j of max(0, margin - x[y] + x[j])^p, / C.
    """
    if rank_of(self) == 0:
        self = sizes.reshape(g, self, [1])
    axis = _class_axis(self)
    if rank_of(target) == rank_of(self):  # (C,) and (1,)
        target = sizes.reshape(g, target, [])
    hit = hits(g, target, shape_of(self)[axis], axis)
    zero = number(g, 0, self)
    own = summed(g, g.op("Where", hit, self, zero), axis, True)
    over = positive(g, g.op("Add", g.op("Sub", self, own), number(g, float(margin), self)))
    over = g.op("Where", hit, zero, g.op("Mul", over, over) if p == 2 else over)
    if weight is not None:
        over = g.op("Mul", over, summed(g, g.op("Where", hit, weight, zero), axis, True))
    return reduced(g, g.op("ReduceMean", over, g.const([axis]), keepdims=0), reduction)


@aten
def multilabel_margin_loss(g: Builder, self: Value, target: Value, reduction: int = 1) -> Value:
    """multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor"""
    return multilabel_margin_loss_forward(g, self, target, reduction)[0]


@aten
def multilabel_margin_loss_forward(g: Builder, self: Value, target: Value, reduction: int) -> list[Value]:
    """multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)

    Both (N, C) or (C,): the labels of a row end at its first negative number. Sum over the labels y and the classes j that are no
    labels of max(0, 1 - x[y] + x[j]), / C. PyTorch's own decomposition gives other numbers up to torch 2.13.
    """
    if rank_of(self) == 0:
        self, target = sizes.reshape(g, self, [1]), sizes.reshape(g, target, [1])
    axis = rank_of(self) - 1
    zero = number(g, 0, self)
    hit = hits(g, _labels(g, target), shape_of(self)[axis], axis + 1)  # (*, label, class)
    counts = g.op("Cast", hit, to=self.dtype)
    label, class_ = (g.op("Greater", summed(g, counts, along, True), zero) for along in (axis + 1, axis))
    scores = sizes.unsqueeze(g, self, [axis])
    own = summed(g, g.op("Where", hit, scores, zero), axis + 1, True)
    over = positive(g, g.op("Add", g.op("Sub", scores, own), number(g, 1, self)))
    over = g.op("Where", g.op("And", label, g.op("Not", class_)), over, zero)
    loss = reduced(g, g.op("ReduceMean", summed(g, over, axis), g.const([axis]), keepdims=0), reduction)
    return [loss, g.op("Cast", sizes.squeeze(g, class_, [axis]), to=self.dtype)]


def _labels(g: Builder, target: Value) -> Value:
    """`target` with -1 from the first negative number of each row on."""
    target = cast(g, target, DataType.INT64)
    place = windows.arange(g, shape_of(target)[-1])
    end = g.op("ReduceMin", g.op("Where", g.op("Less", target, g.const(0)), place, g.const(1 << 31)), g.const([-1]), keepdims=1)
    return g.op("Where", g.op("Less", place, end), target, g.const(-1))


# ---------------------------------------------------------------------- pairs and triplets


@aten
def cosine_similarity(g: Builder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    """cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor. Norms are not below eps."""
    a, b = promoted(g, x1, x2)
    rank = max(rank_of(a), rank_of(b))
    if rank == 0:
        return sizes.reshape(g, cosine_similarity(g, sizes.reshape(g, a, [1]), sizes.reshape(g, b, [1]), 0, eps), [])
    axis = dim % rank - rank
    sides = [sizes.reshape(g, v, [*[1] * (rank - rank_of(v)), *shape_of(v)]) for v in (a, b)]
    a_size, b_size = (shape_of(v)[axis] for v in sides)
    if not dims.equal(a_size, b_size):  # one is repeated along the compared dim, and its norm is that of the repeated one
        whole = dims.maximum(a_size, b_size)
        sides = [sizes.expand(g, v, [*shape_of(v)[:axis], whole, *shape_of(v)[rank + axis + 1:]]) for v in sides]
    units = [g.op("Div", v, g.op("Max", norm(g, v, 2.0, axis, True), number(g, eps, v))) for v in sides]
    return summed(g, g.op("Mul", *units), axis)


@aten
def pairwise_distance(g: Builder, x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Value:
    """pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=1e-06, bool keepdim=False) -> Tensor. The p-norm of x1 - x2 + eps."""
    difference = g.op("Sub", *promoted(g, x1, x2, floating=True))
    return norm(g, g.op("Add", difference, number(g, eps, difference)), float(p), -1, keepdim)


@aten
def cosine_embedding_loss(g: Builder, input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: int = 1) -> Value:
    """cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor

    1 - cos where the target is 1, max(0, cos - margin) where it is -1.
    """
    a, b = promoted(g, input1, input2, floating=True)
    tiny = number(g, 1e-12, a)
    one = number(g, 1, a)
    squares = [g.op("Add", summed(g, g.op("Mul", v, v), -1), tiny) for v in (a, b)]
    cosine = g.op("Div", summed(g, g.op("Mul", a, b), -1), g.op("Sqrt", g.op("Mul", *squares)))
    apart = positive(g, g.op("Sub", cosine, number(g, margin, a)))
    return reduced(g, _by_sign(g, target, g.op("Sub", one, cosine), apart), reduction)


def _by_sign(g: Builder, target: Value, same: Value, other: Value) -> Value:
    """`same` where the target is 1, `other` where it is -1, else 0."""
    zero = number(g, 0, same)
    rest = g.op("Where", g.op("Equal", target, number(g, -1, target)), other, zero)
    return g.op("Where", g.op("Equal", target, number(g, 1, target)), same, rest)


@aten
def hinge_embedding_loss(g: Builder, self: Value, target: Value, margin: float = 1.0, reduction: int = 1) -> Value:
    """hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor

    x where the target is 1, max(0, margin - x) where it is -1, both elsewhere.
    """
    (self,) = promoted(g, self, floating=True)
    zero = number(g, 0, self)
    far = positive(g, g.op("Sub", number(g, margin, self), self))
    first = g.op("Where", g.op("Equal", target, number(g, 1, target)), zero, far)
    second = g.op("Where", g.op("Equal", target, number(g, -1, target)), zero, self)
    return reduced(g, g.op("Add", first, second), reduction)


@aten
def margin_ranking_loss(g: Builder, input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: int = 1) -> Value:
    """margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor

    max(0, margin - t (x1 - x2)).
    """
    a, b, t = promoted(g, input1, input2, target, floating=True)
    scaled = g.op("Mul", t, g.op("Sub", b, a))
    return reduced(g, positive(g, g.op("Add", scaled, number(g, margin, scaled))), reduction)


@aten
def triplet_margin_loss(g: Builder, anchor: Value, positive: Value, negative: Value, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                        swap: bool = False, reduction: int = 1) -> Value:
    """triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=1e-06, bool swap=False,
    int reduction=1) -> Tensor

    max(0, d(anchor, positive) - d(anchor, negative) + margin).
    """
    near, far = (pairwise_distance(g, anchor, other, p, eps) for other in (positive, negative))
    if swap:
        far = g.op("Min", far, pairwise_distance(g, positive, negative, p, eps))
    over = g.op("Add", g.op("Sub", near, far), number(g, margin, near))
    return reduced(g, g.op("Max", over, number(g, 0, over)), reduction)
