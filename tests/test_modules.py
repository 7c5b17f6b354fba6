"""Every module class of `torch.nn` in eval mode with a dynamic batch, held against PyTorch at other batch sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from .ops.harness import Case, check

Args = tuple[Any, ...]
_random = torch.Generator().manual_seed(0)


def r(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=_random)


def ints(high: int, *shape: int, low: int = 0) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=_random)


FLAT, ROWS, IMAGE, VOLUME = r(4, 6), r(4, 6, 10), r(2, 6, 9, 10), r(2, 6, 5, 6, 7)
CLASSES = ints(6, 4)
# class -> (arguments, named arguments, inputs); what is not here takes no argument and FLAT
TABLE: dict[str, tuple[Args, dict[str, Any], Args]] = {
    "AdaptiveLogSoftmaxWithLoss": ((6, 10, [3, 6]), {}, (FLAT, CLASSES)),
    "BCELoss": ((), {}, (FLAT.sigmoid(), r(4, 6).sigmoid())),
    "BCEWithLogitsLoss": ((), {}, (FLAT, r(4, 6).sigmoid())),
    "Bilinear": ((6, 6, 3), {}, (FLAT, r(4, 6))),
    "CTCLoss": ((), {}, (r(12, 4, 6).log_softmax(2), ints(6, 4, 5, low=1), torch.full((4,), 12), torch.full((4,), 5))),
    "ChannelShuffle": ((2,), {}, (IMAGE,)),
    "CosineEmbeddingLoss": ((), {}, (FLAT, r(4, 6), r(4).sign())),
    "CosineSimilarity": ((), {}, (FLAT, r(4, 6))),
    "CrossEntropyLoss": ((), {}, (FLAT, CLASSES)),
    "CrossMapLRN2d": ((3,), {}, (IMAGE,)),
    "Dropout1d": ((), {}, (ROWS,)),
    "Embedding": ((10, 4), {}, (ints(10, 4, 6),)),
    "EmbeddingBag": ((10, 4), {}, (ints(10, 4, 6),)),
    "Flatten": ((), {}, (ROWS,)),
    "Fold": (((4, 5), (2, 2)), {}, (r(3, 12, 12),)),
    "GRU": ((10, 5), {"batch_first": True}, (ROWS,)),
    "GRUCell": ((6, 5), {}, (FLAT,)),
    "GaussianNLLLoss": ((), {}, (FLAT, r(4, 6), r(4, 6).sigmoid())),
    "GroupNorm": ((3, 6), {}, (IMAGE,)),
    "HingeEmbeddingLoss": ((), {}, (FLAT, r(4, 6).sign())),
    "KLDivLoss": ((), {}, (FLAT.log_softmax(1), r(4, 6).softmax(1))),
    "LSTM": ((10, 5), {"batch_first": True}, (ROWS,)),
    "LSTMCell": ((6, 5), {}, (FLAT,)),
    "LayerNorm": ((6,), {}, (FLAT,)),
    "LazyLinear": ((3,), {}, (FLAT,)),
    "Linear": ((6, 3), {}, (FLAT,)),
    "LinearCrossEntropyLoss": ((6, 10), {}, (FLAT, CLASSES)),
    "LocalResponseNorm": ((3,), {}, (IMAGE,)),
    "LogSoftmax": ((1,), {}, (FLAT,)),
    "MarginRankingLoss": ((), {}, (r(4), r(4), r(4).sign())),
    "MultiLabelMarginLoss": ((), {}, (FLAT, ints(6, 4, 6, low=-1))),
    "MultiLabelSoftMarginLoss": ((), {}, (FLAT, ints(2, 4, 6).float())),
    "MultiMarginLoss": ((), {}, (FLAT, CLASSES)),
    "MultiheadAttention": ((10, 2), {"batch_first": True}, (ROWS, ROWS, ROWS)),
    "NLLLoss": ((), {}, (FLAT.log_softmax(1), CLASSES)),
    "NLLLoss2d": ((), {}, (IMAGE.log_softmax(1), ints(6, 2, 9, 10))),
    "PReLU": ((6,), {}, (FLAT,)),
    "PairwiseDistance": ((), {}, (FLAT, r(4, 6))),
    "PixelShuffle": ((2,), {}, (r(2, 8, 3, 4),)),
    "PixelUnshuffle": ((2,), {}, (r(2, 3, 4, 6),)),
    "RMSNorm": ((6,), {}, (FLAT,)),
    "RNN": ((10, 5), {"batch_first": True}, (ROWS,)),
    "RNNCell": ((6, 5), {}, (FLAT,)),
    "SoftMarginLoss": ((), {}, (FLAT, r(4, 6).sign())),
    "Softmax": ((1,), {}, (FLAT,)),
    "Softmax2d": ((), {}, (IMAGE,)),
    "Softmin": ((1,), {}, (FLAT,)),
    "SyncBatchNorm": ((6,), {}, (IMAGE,)),
    "Threshold": ((0.1, 20.0), {}, (FLAT,)),
    "Transformer": ((10, 2, 1, 1, 8), {"batch_first": True}, (ROWS, ROWS)),
    "TransformerDecoderLayer": ((10, 2, 8), {"batch_first": True}, (ROWS, ROWS)),
    "TransformerEncoderLayer": ((10, 2, 8), {"batch_first": True}, (ROWS,)),
    "TripletMarginLoss": ((), {}, (FLAT, r(4, 6), r(4, 6))),
    "TripletMarginWithDistanceLoss": ((), {}, (FLAT, r(4, 6), r(4, 6))),
    "Unflatten": ((1, (2, 3)), {}, (FLAT,)),
    "Unfold": ((2,), {}, (IMAGE,)),
    "Upsample": ((), {"scale_factor": 2}, (IMAGE,)),
    "UpsamplingBilinear2d": ((), {"scale_factor": 2}, (IMAGE,)),
    "UpsamplingNearest2d": ((), {"scale_factor": 2}, (IMAGE,)),
    **{name: ((), {}, (FLAT, r(4, 6))) for name in ("HuberLoss", "L1Loss", "MSELoss", "PoissonNLLLoss", "SmoothL1Loss")},
}
for _dims, _x in enumerate((ROWS, IMAGE, VOLUME), 1):
    _of: dict[str, Args] = {
        "Conv": (6, 4, 3), "ConvTranspose": (6, 4, 3), "LazyConv": (4, 3), "LazyConvTranspose": (4, 3), "BatchNorm": (6,), "LazyBatchNorm": (),
        "InstanceNorm": (6,), "LazyInstanceNorm": (), "MaxPool": (2,), "AvgPool": (2,), "LPPool": (2, 2), "AdaptiveAvgPool": (1,),
        "AdaptiveMaxPool": (1,), "ReflectionPad": (2,), "ReplicationPad": (2,), "ZeroPad": (2,), "CircularPad": (2,), "ConstantPad": (2, 3.5),
        "Dropout": ()}
    TABLE.update({f"{name}{_dims}d": (args, {}, (_x,)) for name, args in _of.items()})
    _even = _x[..., : _x.shape[-1] // 2 * 2] if _dims == 1 else r(2, 3, *[4] * _dims)
    TABLE[f"MaxUnpool{_dims}d"] = (2,), {}, getattr(nn, f"MaxPool{_dims}d")(2, return_indices=True)(_even)

for _name, _x in (("FractionalMaxPool2d", IMAGE), ("FractionalMaxPool3d", VOLUME)):
    TABLE[_name] = (2, 2), {"_random_samples": torch.rand(2, 6, _x.dim() - 2, generator=_random)}, (_x,)

NONE = {"Module", "Container", "DataParallel", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "RNNBase", "RNNCellBase", "Sequential",
        "TransformerDecoder", "TransformerEncoder", "FractionalMaxPool1d"}
NAMES = sorted(name for name in dir(nn) if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module) and name not in NONE)
STATIC = {"CTCLoss", "FractionalMaxPool2d", "FractionalMaxPool3d"}  # the first dim of their inputs is not the batch's, or there are given samples
REFUSED = {
    "AdaptiveLogSoftmaxWithLoss": "squeeze of dim 0", "CrossMapLRN2d": "resize_as_",
}


def batched(inputs: Args, size: int) -> Args:
    return tuple(torch.cat([x] * 3).narrow(0, 0, size).clone() for x in inputs)


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("name", NAMES)
def test_module(name: str, opset: int) -> None:
    args, named, inputs = TABLE.get(name, ((), {}, (FLAT,)))
    torch.manual_seed(0)
    model = getattr(nn, name)(*args, **named).eval()
    with torch.no_grad():
        model(*inputs)  # a lazy one gets its sizes
    dynamic = None if name in STATIC else {index: {0: "n"} for index in range(len(inputs))}
    others = [] if dynamic is None else [batched(inputs, 1), batched(inputs, 5)]
    check(Case(name, model, inputs, others, dynamic, refused={opset: REFUSED[name]} if name in REFUSED else {}), opset)
