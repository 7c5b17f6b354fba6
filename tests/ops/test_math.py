"""Functions of one number, and the transcendental ones of two."""

from __future__ import annotations

import math
from typing import Any

import torch

from tests.ops.harness import NEWEST, OPSETS, Case, check, expand

F, D, H, N = torch.randn(2, 3), torch.randn(2, 3, dtype=torch.float64), torch.randn(2, 3).half(), torch.randint(0, 5, (2, 3))
UNIT, POSITIVE, ODD = (
    torch.rand(2, 3) * 1.8 - 0.9,
    torch.rand(2, 3) + 0.1,
    torch.tensor([float("nan"), math.inf, -math.inf, 0.0, 1.0, -1.0]),
)

# powers of 2 and what is beside them, the ends of the normal and of all numbers
NEIGHBOURS = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, 0.1, 1 - 2**-24, 1 + 2**-23, 2.0**-126, 2.0**-126 * (1 - 2**-23), 2.0**-149, -(2.0**-149), 1.7e308,
                           3.0e38, -3.4028234663852886e38, math.inf, -math.inf, math.nan, 1 - 2**-53, 2.0**-1022, 5e-324, 2.0**1023, 2.0**127, 3.0], dtype=torch.float64)


def unary(
    name: str,
    function: Any,
    x: torch.Tensor,
    *,
    whole: Any = None,
    odd: bool = True,
    opsets: Any = OPSETS,
    double: bool = True,
    half: bool = True,
    refused: Any = None,
) -> list[Case]:
    """One function of float32 at two sizes and of numbers that are none, of float64, float16, int64, and of rank 0."""
    more = {"refused": refused or {}}
    cases = [
        Case(name, function, (x,), [(x[:1].repeat(3, 1),), (x[:0],)], "all", opsets, **more),
        Case(f"{name}_0", function, (x[0, 0],), [], None, (11, NEWEST)),
    ]
    if odd:
        cases.append(Case(f"{name}_odd", function, (ODD,), [], None, (9, 18, NEWEST), **more))
    if double:
        cases.append(Case(f"{name}_double", function, (x.double(),), [], None, (9, 18, NEWEST), **more))
    if half:
        cases.append(Case(f"{name}_half", function, (x.half(),), [], None, (13, NEWEST), **more))
    return [*cases, Case(f"{name}_ints", function, (N if whole is None else whole,), [], "all", (9, 18), **more)]


SMALL = torch.logspace(-30, -0.01, 200)
TAILS = torch.cat([SMALL, 1 - torch.logspace(-7, -1, 30), torch.tensor([0.0, 1.0, 0.5, -0.1, 1.1])])
NOWHERE = torch.zeros(2, 3, dtype=torch.int64)
CASES = [
    *unary("exp", torch.exp, F, opsets=(7, 8, *OPSETS)),
    *unary("exp2", torch.exp2, F),
    *unary("expm1", torch.expm1, F),
    *[Case(f"{name}_small", lambda x, f=f: f(x) / x, (SMALL,), [(-SMALL,)], "all", (7, 9, 18, NEWEST), rtol=2e-6, atol=0.0)
      for name, f in (("expm1", torch.expm1), ("log1p", torch.log1p))],
    *unary("log", torch.log, POSITIVE),
    *unary("log2", torch.log2, POSITIVE),
    *unary("log10", torch.log10, POSITIVE),
    *unary("log1p", torch.log1p, POSITIVE),
    *unary("sqrt", torch.sqrt, POSITIVE),
    *unary("rsqrt", torch.rsqrt, POSITIVE),
    *unary("sin", torch.sin, F),
    *unary("cos", torch.cos, F),
    *unary("tan", torch.tan, F),
    *unary("tanh", torch.tanh, F),
    *unary("asin", torch.asin, UNIT, whole=NOWHERE, odd=False),
    *unary("acos", torch.acos, UNIT, whole=NOWHERE, odd=False),
    *unary("atan", torch.atan, F),
    *unary("sinh", torch.sinh, F),
    *unary("cosh", torch.cosh, F),
    *unary("asinh", torch.asinh, F, odd=False),
    *unary("acosh", torch.acosh, POSITIVE + 1, whole=N + 1, odd=False),
    *unary("atanh", torch.atanh, UNIT, whole=NOWHERE),
    *unary("sigmoid", torch.sigmoid, F),
    *unary("logit", torch.logit, UNIT.abs(), whole=NOWHERE, odd=False),
    *unary("logit_eps", lambda x: torch.logit(x, 0.2), UNIT),
    *unary("erf", torch.erf, F),
    *unary("erfc", torch.erfc, F),
    *[Case(f"{name}_tiny", f, (torch.linspace(1, 9, 20),), [(torch.linspace(-5, 5, 30),)], "all", (9, 18), rtol=4e-6, atol=0.0)
      for name, f in (("erfc", torch.erfc), ("log_ndtr", torch.special.log_ndtr))],
    *unary("sinc", torch.sinc, F, odd=False),
    *unary("deg2rad", torch.deg2rad, F),
    *unary("rad2deg", torch.rad2deg, F),
    *unary("erfinv", torch.erfinv, UNIT, whole=NOWHERE),
    *unary("lgamma", torch.lgamma, F * 4, odd=False),
    *unary("digamma", torch.digamma, POSITIVE * 4, odd=False, whole=N + 1),
    *unary("i0", torch.i0, F * 6, odd=False),
    *unary("entr", torch.special.entr, POSITIVE),
    *unary("ndtr", torch.special.ndtr, F),
    *unary("ndtri", torch.special.ndtri, UNIT.abs(), odd=False, half=False),
    Case("ndtri_tails", torch.special.ndtri, (TAILS,), [(TAILS[:30],)], "all", (9, 18), rtol=2e-6),
    *[Case(f"{name}_far", f, (torch.tensor([math.inf, -math.inf, 1e30, -1e30]),), opsets=(9, 18))
      for name, f in (("log_ndtr", torch.special.log_ndtr), ("erfcx", torch.special.erfcx))],
    *unary("logit_eps_large", lambda x: torch.logit(x, 0.6), UNIT),
    *unary("log_ndtr", torch.special.log_ndtr, F * 6, odd=False, half=False),
    *unary("erfcx", torch.special.erfcx, F * 3, odd=False, half=False),
    *unary("i0e", torch.special.i0e, F * 9, odd=False),
    *unary("i1e", torch.special.i1e, F * 9, odd=False),
    *unary("trigamma", lambda x: torch.polygamma(1, x), F * 3, whole=N + 1, odd=False),
    *unary("polygamma_0", lambda x: torch.polygamma(0, x), POSITIVE, whole=N + 1, odd=False, half=False),
    Case(
        "scaled_tails",
        lambda x: (torch.special.erfcx(x), torch.special.log_ndtr(x), torch.special.i0e(x), torch.special.i1e(x)),
        (torch.tensor([-5.0, -1e-3, 0.0, 1e-3, 6.2, 6.3, 30, 499, 501, 1e4, -1e4], dtype=torch.float64),),
        [],
        "all",
        rtol=1e-9,
        atol=1e-13,
    ),
    *unary("i1", torch.special.i1, F * 6, odd=False),
    Case(
        "lgamma_odd",
        lambda x: (torch.lgamma(x), torch.digamma(x)),
        (torch.tensor([0.0, -1.0, -2.0, 0.5, 1e-3, -1.5, -20.3, 171.5, math.nan]),),
        [],
        "all",
    ),
    Case("lgamma_infinite", torch.lgamma, (ODD,), [], "all"),
    Case("erfinv_tails", torch.erfinv, (torch.tensor([0.9999, -0.999999, 0.99999994, 1e-6, 0.5, 1.0, -1.0, 1.5]),), [], "all"),
    Case(
        "double_exact",
        lambda x: (
            x.erf(),
            x.atan(),
            x.sinh(),
            x.cosh(),
            x.asinh(),
            (x / 3).tanh().erfinv(),
            (x / 20).asin(),
            (x / 20).acos(),
            (x / 20).atanh(),
            x.tan(),
            (x.abs() + 1).acosh(),
            torch.i0(x),
            torch.lgamma(x),
        ),
        (torch.linspace(-18, 18, 200, dtype=torch.float64),),
        [],
        "all",
        (9, 18, NEWEST),
        rtol=1e-9,
        atol=1e-12,
    ),
    Case("hypot", torch.hypot, (F * 1e25, F.flip(0) * 1e25), [], "all"),
    Case("hypot_odd", torch.hypot, (ODD, ODD.flip(0)), [], "all"),
    Case(
        "hypot_double_large", torch.hypot, (torch.cat([D[0] * 1e300, torch.zeros(1)]), torch.cat([D[1] * 1e300, torch.zeros(1)])), [], "all"
    ),
    Case("hypot_double_odd", torch.hypot, (ODD.double(), ODD.flip(0).double()), [], "all"),
    Case("hypot_double", torch.hypot, (D, F), [], "all"),
    Case(
        "xlogy",
        lambda a, b: (torch.xlogy(a, b), torch.xlogy(a, 2.0), torch.xlogy(2.0, b)),
        (torch.tensor([0.0, 0.0, 1.0, 2.0, 0.0]), torch.tensor([0.0, 5.0, 2.0, 0.0, math.nan])),
        [],
        "all",
    ),
    Case("xlogy_ints", torch.xlogy, (N, N), [], "all"),
    Case("xlog1py", lambda a, b: torch.special.xlog1py(a, b), (torch.tensor([0.0, 0.0, 1.0]), torch.tensor([-1.0, 5.0, 2.0])), [], "all"),
    Case(
        "logaddexp",
        lambda a, b: (torch.logaddexp(a, b), torch.logaddexp2(a, b)),
        (torch.tensor([0.0, -1e4, math.inf, -math.inf, 3.0]), torch.tensor([0.5, 1e4, math.inf, -math.inf, 3.0])),
        [(torch.randn(2), torch.randn(2))],
        "all",
    ),
    Case(
        "atan2",
        torch.atan2,
        (
            torch.tensor([1.0, -1.0, 1.0, -1.0, 0.0, 0.0, 1.0, -1.0, 0.0, math.inf]),
            torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 0.0, 0.0, 0.0, 1.0]),
        ),
        [(torch.randn(20), torch.randn(20))],
        "all",
    ),
    Case("atan2_broadcast", torch.atan2, (torch.randn(3, 1), torch.randn(4)), [(torch.randn(5, 1), torch.randn(2))], "all"),
    *(Case(f"nextafter_{name}", torch.nextafter, (NEIGHBOURS.to(dtype)[:, None], NEIGHBOURS.to(dtype)), [], "all", (9, 13, NEWEST), rtol=0.0, atol=0.0)
      for name, dtype in (("float", torch.float32), ("double", torch.float64))),
    Case("nextafter", torch.nextafter, (F, F.flip(0)), [(POSITIVE * 1e-38, F[:1]), (F[:0], F[:0])], {0: {0: "n"}, 1: {0: "m"}}, (18,), rtol=0.0, atol=0.0),
    Case("mvlgamma", lambda x: torch.mvlgamma(x, 2), (POSITIVE + 3,), [], "all"),
]


@expand(CASES)
def test_math(case: Case, opset: int) -> None:
    check(case, opset)
