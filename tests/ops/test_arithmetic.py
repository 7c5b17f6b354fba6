"""Arithmetic: promotion, signs of quotients and remainders, numbers that are none, other sizes."""

from __future__ import annotations

import math
from typing import Any

import torch

from tests.ops.harness import NEWEST, OPSETS, Case, check, expand

LATE = (10, 11, 13, 18, NEWEST)
OLD = (7, 8, *OPSETS)
ODD = torch.tensor([float("nan"), math.inf, -math.inf, 0.0, -0.0, 1.0, -2.5, 2.5])
SIGNS = torch.tensor([-7, -6, -1, 0, 1, 6, 7, 8])
HALVES = torch.tensor([-2.5, -1.5, -0.5, -0.25, 0.5, 1.5, 2.5, 3.75])


def ints(*sizes: int, low: int = -9, high: int = 9, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(low, high, sizes).to(dtype)


def pairs(name: str, function: Any, *rows: tuple[torch.Tensor, torch.Tensor], opsets: Any = OPSETS, **more: Any) -> list[Case]:
    """One case for each pair of operands, all axes dynamic, and other values of the same sizes."""
    return [
        Case(f"{name}_{i}", function, row, [tuple(t.flip(0) if t.dim() else t for t in row)], "all", opsets, **more)
        for i, row in enumerate(rows)
    ]


F, D, H, N, J = (
    torch.randn(2, 3),
    torch.randn(2, 3, dtype=torch.float64),
    torch.randn(2, 3).half(),
    ints(2, 3),
    ints(2, 3, dtype=torch.int32),
)
B, S = torch.tensor([[True, False, True], [False, False, True]]), torch.randn(())
MIXED = [
    (F, F.flip(0)),
    (F, N),
    (N, F),
    (D, F),
    (H, S),
    (F, torch.randn(3)),
    (N, J),
    (B, N),
    (S, F),
    (S, S),
    (J, torch.tensor(3)),
    (F, D[0, 0]),
]
NONZERO = [(a, torch.where(b == 0, torch.ones_like(b), b)) for a, b in MIXED]
GROWN = (torch.randn(5, 1), torch.randn(5, 4))

CASES = [
    *pairs("add", torch.add, *MIXED, (B, B.flip(0)), opsets=OLD[1:]),
    *pairs("add_alpha", lambda a, b: torch.add(a, b, alpha=2), (F, F.flip(0)), (N, J), (F, N)),
    *pairs("sub", torch.sub, *[r for r in MIXED if B is not r[0]]),
    *pairs("mul", torch.mul, *MIXED, (B, B.flip(0))),
    *pairs("rsub", lambda a, b: torch.rsub(a, 2.5) + torch.rsub(a, b, alpha=3), (F, F.flip(0)), (N.float(), N)),
    *[Case(f"one_in_parts_{dtype}".replace("torch.", ""), lambda n: ((1 // n) * n, 1 % n), (torch.tensor([5], dtype=dtype),),
           [(torch.tensor([n], dtype=dtype),) for n in (1, -1, -4)], None, (9, 11, 18, NEWEST)) for dtype in (torch.int64, torch.int32, torch.int8)],
    Case("add_grows", torch.add, (torch.randn(1, 4), torch.randn(3, 4)), [(torch.randn(1, 2), torch.randn(6, 2))], "all"),
    Case("add_broadcast", torch.add, (torch.randn(3, 1), torch.randn(3, 4)), [GROWN], {0: {0: "a"}, 1: {0: "a", 1: "b"}}),
    Case("add_empty", torch.add, (torch.randn(2, 3), torch.randn(2, 3)), [(torch.randn(0, 3), torch.randn(0, 3))], "all"),
    Case("add_numbers", lambda a, b: (a + 1, a * 2.5, 1 - a, b + 1, b * 2.5, b + True, 2 / b, a / 2), (F, N + 20), [], "all"),
    Case("small_ints", lambda a, b: (a + b, a * b, a - b), (ints(4, dtype=torch.int8) * 14, ints(4, dtype=torch.int8)), [], "all"),
    Case("bytes", lambda a: (a + 1, a * 3, a // 2, a % 5), (torch.tensor([0, 1, 200, 255], dtype=torch.uint8),), [], "all"),
    Case("wrong_default", lambda a: a * a.shape[0] + a.shape[1], (F,), [(torch.randn(4, 7),)], "all"),
    *pairs("div", torch.div, *NONZERO),
    *pairs("div_trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), *[r for r in NONZERO if B is not r[0]]),
    *pairs("div_floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), *[r for r in NONZERO if r[0] is not B and D is not r[0]]),
    *pairs("div_floor_double", lambda a, b: torch.div(a, b, rounding_mode="floor"), (D, F), (D, D.flip(0)), opsets=LATE),
    Case(
        "div_by_zero", lambda a, b: (a / b, torch.div(a, b, rounding_mode="floor")), (ODD[3:], torch.zeros(5)), [(ODD[3:], -torch.zeros(5))]
    ),
    Case("floor_of_tenths", lambda a: (a // 0.1, a // 0.3, a // 2, a // -4), (torch.arange(-20, 20) / 10,), [], "all"),
    Case("floor_divide_ints", lambda a, b: (a // 2, a // -3, a // b, b // a), (SIGNS[[0, 1, 2, 4, 5]], ints(5, low=1)), [], "all"),
    Case(
        "sizes",
        lambda a: a.new_zeros(a.shape[0] // 2, a.shape[1] * 3 - a.shape[0] % 2),
        (torch.randn(5, 2),),
        [(torch.randn(6, 4),)],
        "all",
    ),
    Case(
        "remainder_ints",
        lambda a, b: (a % 3, a % -3, torch.remainder(a, b), 7 % b),
        (SIGNS, torch.tensor([1, -1, 2, -2, 3, -3, 4, -4])),
        [],
        "all",
    ),
    Case(
        "remainder",
        lambda a, b: (a % 0.75, a % -0.75, torch.remainder(a, b)),
        (torch.randn(9), torch.randn(9)),
        [(torch.randn(4), torch.randn(4))],
        "all",
        OPSETS,
        {9: "needs opset 10"},
    ),
    Case(
        "fmod",
        lambda a, b: (torch.fmod(a, 0.75), torch.fmod(a, b)),
        (torch.randn(9), torch.randn(9)),
        [],
        "all",
        OPSETS,
        {9: "needs opset 10"},
    ),
    Case("fmod_ints", lambda a: (torch.fmod(a, 3), torch.fmod(a, -3)), (SIGNS,), [], "all"),
    Case("frac_trunc", lambda a: (a.trunc(), a.frac()), (torch.cat([HALVES, ODD[1:]]),), [], "all"),
    Case(
        "pow_numbers",
        lambda a: (a**2, a**3, a**0.5, a**-1, a**1, a**-0.5, 2**a, a**0, a**2.5),
        (torch.rand(2, 3) + 0.5,),
        [(torch.rand(4, 1) + 0.1,)],
        "all",
        OLD,
    ),
    Case("pow_double", lambda a: (a**2, a**0.5, 2.0**a), (D.abs(),), [], "all"),
    Case("pow_half", lambda a: (a**2, a**3), (H,), [], "all"),
    Case("pow_ints", lambda a: (a**2, a**3, a**0, a**1, a**5, a**2.0), (ints(2, 3),), [(ints(4, 5),)], "all"),
    Case("pow_exact", lambda a: a**39, (torch.tensor([3, -3, 1, 0, 2]),), [], "all"),
    *pairs("pow_tensors", torch.pow, (F.abs(), F), (F, N.abs()), (D.abs(), F), (S.abs(), F)),
    Case("pow_int_tensors", lambda a, b: (torch.pow(a, b), torch.pow(2, b)), (N, N.abs() % 4), [], "all"),
    Case(
        "pow_int_exact",
        lambda a, b: (torch.pow(a, b), torch.pow(3, b.clamp(max=63)), torch.pow(-2, b), torch.pow(1, b), torch.pow(-1, b), torch.pow(0, b)),
        (torch.tensor([3, -3, 2, 0, 7, 1, -1, 2, -1, 5]), torch.tensor([39, 40, 63, 0, 3, -1, -3, 64, 99, 2])),
        [],
        "all",
    ),
    Case(
        "pow_int32_exact",
        lambda a, b: (torch.pow(a, b), torch.pow(3, b)),
        (torch.tensor([3, -3, 2, 0], dtype=torch.int32), torch.tensor([19, 30, 31, 0], dtype=torch.int32)),
        [],
        "all",
    ),
    Case("float_power", lambda a, b: (torch.float_power(a, 2), torch.float_power(a, b), torch.float_power(2, b)), (F.abs(), N), [], "all"),
    Case("square", lambda a, b: (a.square(), b.square()), (F, N), [], "all"),
    Case("ldexp", torch.ldexp, (F, N), [], "all"),
    Case("ldexp_half", torch.ldexp, (H, N), [], "all"),
    Case("ldexp_ints", torch.ldexp, (N, J), [], "all"),
    Case("reciprocal", lambda a, b: (a.reciprocal(), b.reciprocal()), (F, N.abs() + 1), [], "all"),
    Case(
        "neg_abs_sign",
        lambda a, b: (-a, a.abs(), a.sign(), -b, b.abs(), b.sign(), a.sgn(), torch.positive(a)),
        (torch.cat([F[0], ODD[1:]]), N),
        [],
        "all",
    ),
    Case("small_signs", lambda a: (-a, a.abs(), a.sign()), (ints(5, dtype=torch.int8),), [], "all"),
    Case("sign_bool", torch.sign, (B,), [], "all"),
    Case("signbit", lambda a, b: (a.signbit(), b.signbit()), (ODD[1:], SIGNS), [], "all"),
    Case(
        "copysign",
        lambda a, b: (torch.copysign(a, b), torch.copysign(a, -1.0), torch.copysign(b.long(), b)),
        (ODD[1:].flip(0), ODD[1:].nan_to_num()),
        [],
        "all",
    ),
    Case("heaviside", torch.heaviside, (ODD[1:], torch.arange(7.0)), [], "all"),
    Case("addcmul", lambda a, b, c: (torch.addcmul(a, b, c), torch.addcmul(a, b, c, value=0.5)), (F, F[:, :1], F[0]), [], "all"),
    Case("addcmul_ints", lambda a, b: torch.addcmul(a, b, a, value=3), (N, N), [], "all"),
    Case("addcdiv", lambda a, b, c: (torch.addcdiv(a, b, c), torch.addcdiv(a, b, c, value=2)), (F, F[:, :1], F[0]), [], "all"),
    Case(
        "lerp",
        lambda a, b, w: (torch.lerp(a, b, 0.3), torch.lerp(a, b, 0.7), torch.lerp(a, b, w)),
        (F * 1e8, F.flip(0), torch.tensor([0.0, 0.6, 1.0])),
        [],
        "all",
    ),
    *pairs("maximum", lambda a, b: (torch.maximum(a, b), torch.minimum(a, b)), *MIXED, (B, B.flip(0)), (ODD, ODD.roll(1))),
    *pairs(
        "fmax", lambda a, b: (torch.fmax(a, b), torch.fmin(a, b)), (F, F.flip(0)), (ODD, ODD.roll(3)), (N, J), (ODD.double(), ODD.roll(1))
    ),
    Case(
        "clamp",
        lambda a: (a.clamp(-1, 1), a.clamp(min=0), a.clamp(max=0.5), a.clamp(2, -2), a.clamp_min(0.1), a.clamp_max(0)),
        (torch.cat([ODD, HALVES]),),
        [],
        "all",
    ),
    Case("clamp_double", lambda a: (a.clamp(-1, 1), a.clamp(min=0)), (D,), [], "all"),
    Case("clamp_ints", lambda a, b: (a.clamp(-2, 3), a.clamp(min=0), a.clamp(max=1.5), b.clamp(-2, 3)), (N, J), [], "all"),
    Case("clamp_small", lambda a: a.clamp(-2, 3), (ints(6, dtype=torch.int16),), [], "all"),
    Case("clamp_tensors", lambda a, b, c: (torch.clamp(a, b, c), torch.clamp(a, max=b), a.clamp_min(c)), (F, F[0], S), [], "all"),
    Case("rounding", lambda a: (a.floor(), a.ceil(), a.round(), a.trunc()), (HALVES,), [(HALVES[:3],)], "all"),
    Case("rounding_double", lambda a: (a.floor(), a.ceil(), a.round(), a.trunc()), (HALVES.double(),), [], "all"),
    Case("rounding_ints", lambda a: (a.floor(), a.ceil(), a.round(), a.trunc()), (N,), [], "all"),
    Case("round_decimals", lambda a: (a.round(decimals=2), a.round(decimals=-1)), (torch.randn(9) * 30,), [], "all"),
    Case("nan_to_num", lambda a: (a.nan_to_num(), a.nan_to_num(1.0, 2.0, -2.0)), (ODD,), [], "all"),
    Case("nan_to_num_ints", torch.nan_to_num, (N,), [], "all"),
    Case("gcd", lambda a, b: (torch.gcd(a, b), torch.lcm(a, b)), (ints(30, low=-99, high=99), ints(30, low=-99, high=99)), [], "all", LATE),
]


@expand(CASES)
def test_arithmetic(case: Case, opset: int) -> None:
    check(case, opset)
