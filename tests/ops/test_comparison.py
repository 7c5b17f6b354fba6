"""Comparisons, logic, bits and choice."""

from __future__ import annotations

import math
from typing import Any

import torch

from tests.ops.harness import NEWEST, OPSETS, Case, check, expand

OLD = (7, 8, *OPSETS)
BITS = (9, 11, 13, 17, 18, 20, NEWEST)
ODD = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1.0 + 1e-6])
F, D, N, J = (
    torch.tensor([[1.0, 2, 3], [3, 2, 1]]),
    torch.tensor([[1.0, 1, 3]]).double(),
    torch.tensor([[1, 2, -3], [3, 2, 2**53 + 1]]),
    torch.tensor([[1, 5, -3]], dtype=torch.int32),
)
B = torch.tensor([[True, False, True], [False, False, True]])
BYTES = torch.tensor([0, 1, 7, 127, 128, 200, 255], dtype=torch.uint8)


def all_six(a: Any, b: Any) -> Any:
    return a == b, a != b, a < b, a <= b, a > b, a >= b


def close(**options: Any) -> Any:
    return lambda a, b: torch.isclose(a, b, **options)


NEAR = (ODD, ODD.clone() + torch.tensor([0, 0, 0, 1e-9, 1e-7, 1e-6, 1e-2, 0]))
CASES = [
    Case("positions", lambda x: tuple((torch.arange(x.shape[0]) >= bound)[None, :, None].expand(2, -1, x.shape[1]) for bound in (0, -1, 1))
         + (torch.arange(2, x.shape[0] + 2) >= 2, torch.arange(x.shape[0], -2, -1) >= 0), (torch.randn(3, 4),),
         [(torch.randn(1, 2),), (torch.randn(6, 1),)], "all"),
    Case("floats", all_six, (F, F.flip(0)), [(torch.randn(4, 1), torch.randn(4, 1))], "all", OLD),
    Case("odd", all_six, (ODD, ODD.roll(1)), [(ODD, ODD)], "all"),
    Case("doubles", all_six, (D, F), [], "all"),
    Case("halves", all_six, (F.half(), F.half().flip(0)), [], "all"),
    Case("ints", all_six, (N, N.flip(0)), [], "all"),
    Case("mixed_ints", all_six, (N, J), [], "all"),
    Case("ints_floats", all_six, (J, F), [], "all"),
    Case("small_ints", all_six, (BYTES, BYTES.flip(0)), [], "all"),
    Case("bools", all_six, (B, B.flip(0)), [], "all"),
    Case("bools_ints", all_six, (B, N), [], "all"),
    Case("scalars", lambda a, b, c: (a == 2, a < 2.5, b >= 2.5, b != 2, b > 1, c == 1, c < 1), (F, J, B), [], "all"),
    Case("rank_0", all_six, (torch.tensor(2.0), F), [], None),
    Case("wide_values", lambda a: (a > 2**53, a == 2**53 + 1), (N,), [], "all"),
    Case("empty", all_six, (F, F), [(F[:0], F[:0])], {0: {0: "n"}, 1: {0: "n"}}),
    Case("sizes", lambda a: a == a.shape[0], (F,), [(torch.randn(3, 2),)], "all"),
    Case("what", lambda a: (a.isnan(), a.isinf(), a.isfinite(), a.isposinf(), a.isneginf(), a.isreal()), (ODD,), [(ODD[:3],)], "all"),
    Case("what_double", lambda a: (a.isnan(), a.isinf(), a.isfinite(), a.isposinf(), a.isneginf()), (ODD.double(),), [], "all"),
    Case("what_half", lambda a: (a.isnan(), a.isinf(), a.isfinite()), (ODD.half(),), [], "all"),
    Case("what_ints", lambda a: (a.isnan(), a.isinf(), a.isfinite(), a.isposinf(), a.isneginf(), a.isreal()), (N,), [(N[:1],)], "all"),
    Case("isclose", close(), NEAR, [], "all"),
    Case("isclose_nan", close(equal_nan=True), NEAR, [], "all"),
    Case("isclose_exact", close(rtol=0, atol=0), NEAR, [], "all"),
    Case("isclose_wide", close(rtol=0.1, atol=0.5), NEAR, [], "all"),
    Case("isclose_ints", close(rtol=0.2), (N, N + 1), [], "all"),
    Case(
        "logic",
        lambda a, b: (torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_xor(a, b), torch.logical_not(a)),
        (ODD, ODD.roll(3)),
        [],
        "all",
    ),
    Case(
        "logic_ints",
        lambda a, b: (torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_xor(a, b), torch.logical_not(a)),
        (N - 1, B),
        [],
        "all",
    ),
    Case("logic_operators", lambda a, b: (a & b, a | b, a ^ b, ~a), (B, B.flip(0)), [], "all", OLD),
    Case("bits", lambda a, b: (a & b, a | b, a ^ b, a & 6, a | 6, a ^ 6), (N, N.flip(0)), [], "all", (7, *BITS),
         {7: "needs opset 9"}),
    Case("bits_mixed", lambda a, b: (a & b, a | b), (N, J), [], "all", BITS),
    Case("bits_ends", lambda a: (a & a.flip(0), a | 1, a ^ a.flip(0), ~a, a & -2), (torch.tensor([-(2**63), 2**63 - 1, -1, 0, 2**62, -(2**62) - 1]),), opsets=BITS),
    Case("bits_scalar", lambda a, b: (a[0, 0] & 5, a[0, 0] | b[0, 0], a[:0] ^ 3), (N, J), [], "all", BITS),
    Case("bits_short", lambda a, b: (a & b, a | b, a ^ b, ~b), (N.to(torch.int16), N.flip(0).to(torch.int8)), [], "all", BITS),
    Case("bits_bytes", lambda a, b: (a & b, a | b, a ^ b, ~a), (BYTES, BYTES.flip(0)), [], "all", BITS),
    Case("bits_bools_ints", lambda a, b: a & b, (B, N), [], "all", BITS),
    Case("bits_not", lambda a, b: (~a, ~b), (N, J), [], "all"),
    Case("lowest_bits", lambda a, b: (a & 1, a & 255, b & 7), (N, J), [], "all"),
    Case("lowest_bits_bytes", lambda a: (a & 1, a & 127, a & 3), (BYTES,), [], "all"),
    Case("shift_numbers", lambda a, b: (a << 3, a >> 1, b << 1, b >> 2, a >> 63, a << 64, a >> 70, b >> 31), (N, J), [], "all"),
    Case("shift_bytes", lambda a: (a << 3, a >> 3, a >> 7, a >> 8, a << 8), (BYTES,), [], "all"),
    Case(
        "shift_tensors",
        lambda a, b: (a << b, a >> b, torch.bitwise_left_shift(a, b)),
        (torch.tensor([5, -5, 2**40, -(2**63), 1, -1, -1]), torch.tensor([0, 1, 20, 63, 64, 65, 62])),
        [],
        "all",
    ),
    Case(
        "shift_int32",
        lambda a, b: (a << b, a >> b),
        (torch.tensor([5, -5, 2**30, -(2**31), 1, -1], dtype=torch.int32), torch.tensor([0, 1, 20, 31, 32, 30], dtype=torch.int32)),
        [],
        "all",
    ),
    Case("shift_of_number", lambda b: (1 << b, 300 >> b), (torch.tensor([0, 3, 5]),), [], "all"),
    Case("where", torch.where, (B, F, F.flip(0)), [], "all"),
    Case("where_double", torch.where, (B, D, F), [], "all"),
    Case("where_half", torch.where, (B, F.half(), F.half().flip(0)), [], "all"),
    Case("where_mixed", torch.where, (B, N, F), [], "all"),
    Case("where_bools", torch.where, (B, B, B.flip(0)), [], "all", (7, 8, *OPSETS)),
    Case("where_ints", torch.where, (B, N, J), [], "all", (7, 8, *OPSETS)),
    Case("where_bytes", torch.where, (BYTES.bool(), BYTES, BYTES.flip(0)), [], "all"),
    Case("where_int16", torch.where, (BYTES.bool(), BYTES.short(), BYTES.flip(0).short()), [], "all"),
    Case("where_byte_condition", torch.where, (B.byte(), F, F.flip(0)), [], "all"),
    Case(
        "where_scalars",
        lambda c, a, b: (
            torch.where(c, a, 0.5),
            torch.where(c, 2, a),
            torch.where(c, b, 0.5),
            torch.where(c, 1.0, 0.0),
            torch.where(c, 1, 0),
        ),
        (B, F, N),
        [],
        "all",
    ),
    Case(
        "where_broadcast",
        torch.where,
        (B[:, :1], F[0], torch.tensor(0.0)),
        [(B[:, :1].repeat(2, 1), torch.randn(5), torch.tensor(1.0))],
        {0: {0: "a"}, 1: {0: "b"}},
    ),
    Case("where_nan", torch.where, (ODD > 0, ODD, -ODD), [], "all"),
    Case(
        "isin",
        lambda a, b: (torch.isin(a, b), torch.isin(a, b, invert=True), torch.isin(a, 2), torch.isin(2, b)),
        (N, torch.tensor([3, 1, 9])),
        [(N[:1], torch.tensor([7, 2]))],
        "all",
    ),
    Case("isin_mixed", torch.isin, (F, torch.tensor([[3, 1], [7, 5]])), [], "all"),
    Case("masked", lambda a: torch.where(a.isnan(), a.new_zeros(()), a), (ODD,), [], "all"),
]


@expand(CASES)
def test_comparison(case: Case, opset: int) -> None:
    check(case, opset)
