"""Activations: every option, dtypes, numbers that are none, ranks 0 and empty, other sizes."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.ops.harness import NEWEST, OPSETS, Case, check, expand

FORMS = (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, NEWEST)
X = torch.randn(2, 3, 4) * 3
ODD = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 100.0, -100.0, 1.0, -1.0, 3.0])
PARTS = (torch.randn(3), torch.randn(1), torch.randn(3))


def each(name: str, function: Any, *, odd: bool = True, opsets: Any = OPSETS, half: bool = True, refused: Any = None) -> list[Case]:
    """One activation: float32 of two ranks and of rank 0 and empty, numbers that are none, float64, float16."""
    more: Any = {"refused": refused or {}}
    cases = [
        Case(name, function, (X,), [(torch.randn(1, 5, 2),), (X[:0],)], "all", opsets, **more),
        Case(f"{name}_rank_0", function, (X[0, 0, 0],), [], None, (13, NEWEST)),
        Case(f"{name}_double", function, (X.double(),), [], None, (9, 18, NEWEST), **more),
    ]
    if odd:
        cases.append(Case(f"{name}_odd", function, (ODD,), [], None, (9, 18, NEWEST), **more))
    return [*cases, Case(f"{name}_half", function, (X.half(),), [], None, (13, NEWEST), **more)] if half else cases


def over(function: Any, dim: int, **options: Any) -> Any:
    return lambda x: function(x, dim=dim, **options)


CASES = [
    *each("relu", torch.relu, opsets=FORMS),
    *each("relu6", F.relu6),
    *each("hardtanh", lambda x: F.hardtanh(x, -0.5, 2)),
    *each("hardsigmoid", F.hardsigmoid),
    *each("hardswish", F.hardswish, opsets=FORMS, odd=False),
    *each("leaky_relu", F.leaky_relu),
    *each("leaky_relu_steep", lambda x: F.leaky_relu(x, 1.7)),
    *each("threshold", lambda x: F.threshold(x, 0.5, -3)),
    *each("threshold_0", lambda x: F.threshold(x, 0, 0)),
    *each("threshold_below", lambda x: F.threshold(x, -1, 2)),
    *each("hardshrink", lambda x: F.hardshrink(x, 0.7)),
    *each("softshrink", lambda x: F.softshrink(x, 0.7)),
    *each("tanhshrink", F.tanhshrink, odd=False),
    *each("elu", F.elu),
    *each("elu_alpha", lambda x: F.elu(x, 1.6)),
    *each("selu", F.selu),
    *each("celu", lambda x: F.celu(x, 0.7), opsets=FORMS),
    *each("gelu", F.gelu, odd=False, opsets=FORMS[2:]),
    *each("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), odd=False, opsets=FORMS),
    *each("silu", F.silu, odd=False, opsets=FORMS),
    *each("mish", F.mish, odd=False, opsets=FORMS),
    *each("softplus", F.softplus),
    *each("softplus_beta", lambda x: F.softplus(x, 2.5, 2)),
    *each("softplus_steep", lambda x: F.softplus(x, 0.1, 50)),
    *each("softsign", F.softsign, odd=False),
    *each("log_sigmoid", F.logsigmoid),
    *each("rrelu", F.rrelu),
    Case("scaled_elu", lambda x: torch.ops.aten.elu(x, 1.5, 2.0, 0.5), (X,), [], "all"),
    Case(
        "ints",
        lambda x: (x.relu(), F.relu6(x), F.hardtanh(x, -2, 3), F.threshold(x, 1, 5)),
        (torch.arange(-4, 9),),
        [(torch.arange(3),)],
        "all",
    ),
    Case("int32", lambda x: (x.relu(), F.relu6(x)), (torch.arange(-4, 9, dtype=torch.int32),), [], "all"),
    Case("glu", lambda x: F.glu(x), (X,), [(torch.randn(1, 5, 4),)], {0: {0: "a", 1: "b"}}),
    Case("glu_dim", lambda x: F.glu(x, 1), (torch.randn(2, 6, 3),), [(torch.randn(4, 6, 1),)], {0: {0: "a", 2: "b"}}),
    Case("glu_dynamic", lambda x: F.glu(x, 1), (torch.randn(2, 6, 3),), [(torch.randn(2, 2, 3),)], {0: {1: "c"}}, (13, 18, NEWEST)),
    Case(
        "prelu_single",
        lambda x, w: F.prelu(x, w),
        (X, torch.tensor([0.3])),
        [(torch.randn(1, 5, 2), torch.tensor([-0.3]))],
        {0: {0: "a", 1: "b", 2: "c"}},
    ),
    Case("prelu_channels", lambda x, w: F.prelu(x, w), (X, torch.rand(3)), [(torch.randn(1, 3, 2), torch.rand(3))], {0: {0: "a", 2: "c"}}),
    Case("prelu_module", nn.PReLU(3), (X,), [(torch.randn(5, 3, 1),)], {0: {0: "a", 2: "c"}}, FORMS),
    Case("prelu_images", nn.PReLU(3), (torch.randn(2, 3, 4, 4),), [(torch.randn(1, 3, 2, 5),)], {0: {0: "a", 2: "h", 3: "w"}}),
    Case("prelu_rank_2", nn.PReLU(3), (torch.randn(2, 3),), [(torch.randn(5, 3),)], {0: {0: "a"}}),
    Case("prelu_rank_1", nn.PReLU(), (torch.randn(5),), [(torch.randn(2),)], "all"),
    Case("prelu_rank_0", nn.PReLU(), (torch.tensor(-2.0),), []),
    Case("prelu_double", nn.PReLU(3).double(), (X.double(),), []),
    Case("prelu_half", nn.PReLU(3).half(), (X.half(),), []),
    *[
        Case(f"softmax_{d}", over(F.softmax, d), (X,), [(torch.randn(1, 5, 2),), (torch.randn(4, 1, 1),)], "all", FORMS)
        for d in (-1, 0, 1, 2, -3)
    ],
    *[Case(f"log_softmax_{d}", over(F.log_softmax, d), (X,), [(torch.randn(1, 5, 2),)], "all") for d in (-1, 0, 1)],
    Case("softmin", over(F.softmin, 1), (X,), [(torch.randn(1, 5, 2),)], "all"),
    Case("softmax_rank_0", lambda x: (x.softmax(0), x.log_softmax(-1)), (torch.tensor(3.0),), []),
    Case("softmax_rank_1", lambda x: x.softmax(0), (torch.randn(4),), [(torch.randn(1),)], "all"),
    Case("softmax_double", lambda x: (x.softmax(1), x.log_softmax(0)), (X.double(),), [], "all"),
    Case("softmax_half", lambda x: (x.softmax(1), x.log_softmax(0)), (X.half(),), [], "all"),
    Case("softmax_dtype", lambda x: (x.softmax(1, dtype=torch.float64), x.log_softmax(0, dtype=torch.float64)), (X,), [], "all"),
    Case("softmax_ints", lambda x: x.softmax(1, dtype=torch.float32), (torch.arange(6).reshape(2, 3),), [], "all"),
    Case("softmax_large", lambda x: (x.softmax(0), x.log_softmax(0)), (torch.tensor([1e4, -1e4, 1e4, -math.inf]),), [], "all"),
    Case("softmax_module", nn.Softmax(dim=1), (X,), [], "all"),
]


@expand(CASES)
def test_activation(case: Case, opset: int) -> None:
    check(case, opset)
