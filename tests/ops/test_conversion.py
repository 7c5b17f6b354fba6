"""Conversions of dtype, and what moves memory only."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.harness import NEWEST, OPSETS, Case, check, expand

DTYPES = [torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
VALUES = torch.tensor([[0.0, 1.0, 2.7], [3.2, 0.4, 100.0]])
X = torch.randn(2, 3)


def to_all(x: torch.Tensor) -> Any:
    return tuple(x.to(d) for d in DTYPES)


CASES = [
    *[Case(f"from_{str(d)[6:]}", to_all, (VALUES.to(d),), [(VALUES[:1].to(d),)], "all", (9, 13, 18, NEWEST)) for d in DTYPES],
    Case(
        "negative",
        lambda x: (x.long(), x.int(), x.short(), x.to(torch.int8), x.bool()),
        (torch.tensor([-2.7, -0.4, 0.0, 0.9, 100.6]),),
        [],
        "all",
    ),
    Case("wrapped", lambda x: (x.to(torch.int8), x.to(torch.uint8), x.int()), (torch.tensor([300, -300, 2**31, -1]),), [], "all"),
    Case(
        "names",
        lambda x: (x.double(), x.half(), x.long(), x.int(), x.short(), x.char(), x.byte(), x.bool(), x.float()),
        (VALUES,),
        [],
        "all",
    ),
    Case("type_as", lambda x, y: x.type_as(y), (VALUES, torch.arange(2)), [], "all"),
    Case("to_other", lambda x, y: x.to(y), (VALUES, torch.arange(2)), [], "all"),
    Case(
        "to_device",
        lambda x: (x.to("cpu"), x.to("cpu", torch.float64), x.cpu(), x.to(torch.device("cpu"), dtype=torch.int64, copy=True)),
        (VALUES,),
        [],
        "all",
    ),
    Case("type", lambda x: (x.type(torch.int64), x.type("torch.DoubleTensor")), (VALUES,), [], "all"),
    Case(
        "memory",
        lambda x: (x.contiguous() + 1, x.clone() * 2, x.detach() - 1, x.t().contiguous(), x.conj() + 1, x.real + 2),
        (X,),
        [(torch.randn(4, 1),)],
        "all",
        OPSETS,
    ),
    Case(
        "channels_last",
        lambda x: x.to(memory_format=torch.channels_last) * 2,
        (torch.randn(2, 3, 4, 4),),
        [(torch.randn(1, 3, 2, 2),)],
        {0: {0: "n", 2: "h", 3: "w"}},
    ),
    Case("same", lambda x: x.float() + x.to(torch.float32), (X,), [], "all"),
    Case("rank_0", to_all, (torch.tensor(2.5),), []),
    Case("size_to_float", lambda x: x * torch.tensor(x.shape[0]).float(), (X,), [], None),
]


@expand(CASES)
def test_conversion(case: Case, opset: int) -> None:
    check(case, opset)
