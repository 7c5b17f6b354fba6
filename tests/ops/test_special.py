"""Bessel's and Airy's functions, the zeta function and orthogonal polynomials."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import special

from tests.ops.harness import NEWEST, Case, check, expand

BESSEL = (
    special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_y1, special.spherical_bessel_j0, special.modified_bessel_k0,
    special.modified_bessel_k1, special.scaled_modified_bessel_k0, special.scaled_modified_bessel_k1, special.modified_bessel_i0,
    special.modified_bessel_i1, special.airy_ai,
)
POLYNOMIALS = (
    special.chebyshev_polynomial_t, special.chebyshev_polynomial_u, special.chebyshev_polynomial_v, special.chebyshev_polynomial_w,
    special.shifted_chebyshev_polynomial_t, special.shifted_chebyshev_polynomial_u, special.shifted_chebyshev_polynomial_v,
    special.shifted_chebyshev_polynomial_w, special.hermite_polynomial_h, special.hermite_polynomial_he, special.laguerre_polynomial_l,
    special.legendre_polynomial_p,
)
NEAR, FAR = torch.linspace(-11, 11, 45).reshape(9, 5), torch.linspace(-88, 88, 45).reshape(9, 5)
ODD = torch.tensor([math.nan, 0.0, -0.0, 1.0, -1.0, 2.0, 25.0, -10.0, 103.0, 104.0, 1e-30])
INFINITE = torch.tensor([math.inf, -math.inf])
TINY = torch.tensor([[1e-5, 3e-3, 0.02], [0.3, 1.9, 2.1]], dtype=torch.float64)
WHOLE = torch.randint(0, 6, (2, 3))
POINTS, ORDERS = torch.linspace(-1.5, 1.5, 15).reshape(5, 3), torch.tensor([[2, 0, 9]])
Q = torch.tensor([[0.3, 1.0, 7.5], [40.0, -0.6, -3.25]])


def each(functions: Any) -> Any:
    """All functions of the same arguments."""
    return lambda *args: [f(*args) for f in functions]


CASES = [
    Case("bessel", each(BESSEL), (NEAR,), [(FAR,), (NEAR[:0],)], "all", (9, 17, NEWEST)),
    Case("bessel_odd", each(BESSEL), (ODD,), [], None, (13,)),
    Case("bessel_infinite", each((special.spherical_bessel_j0, special.airy_ai)), (INFINITE,), [], None, (13,)),
    Case("bessel_double", each(BESSEL), (TINY,), [(FAR[:2, :3].double(),)], None, (11, NEWEST), rtol=1e-12, atol=1e-13),
    Case("bessel_ints", each(BESSEL), (WHOLE,), [], None, (18,)),
    Case("bessel_0", each(BESSEL), (NEAR[3, 2],), [], None, (18,)),
    *(Case(f"{f.__name__[8:]}_orders", f, (POINTS, ORDERS), [(POINTS[:2], torch.tensor([[-1, 1, 8]])), (POINTS[:0], ORDERS)],
           {0: {0: "points"}}, (9, 18)) for f in POLYNOMIALS),
    Case("polynomials_of_order", lambda x: [f(x, n) for f in POLYNOMIALS for n in (-1, 0, 1, 3, 8)], (POINTS,), [(POINTS[:0],)], "all", (11, NEWEST)),
    Case("polynomials_of_number", lambda n: [f(0.25, n) for f in POLYNOMIALS], (ORDERS,), [(ORDERS + 3,)], None, (18,)),
    Case("polynomials_double", lambda x: [f(x, 7) for f in POLYNOMIALS], (POINTS.double(),), [], None, (18,), rtol=1e-12, atol=1e-12),
    Case("polynomials_of_constant_orders", lambda x: [f(x, ORDERS) for f in POLYNOMIALS], (POINTS,), [], None, (18,)),
    Case("hermite_beyond", lambda x: [special.hermite_polynomial_h(x, 130), special.hermite_polynomial_he(x, 130)], (POINTS,), [], None, (18,)),
    Case("zeta", special.zeta, (torch.tensor([2.0, 3.0, 5.0]), Q), [(torch.tensor([1.5, 4.0, 2.0]), Q.abs()), (torch.tensor([30.0, 1.0, 0.5]), Q[:1])],
         {1: {0: "rows"}}, (9, 18, NEWEST)),
    Case("zeta_poles", special.zeta, (torch.tensor([[1.0], [2.0], [2.5], [0.5], [math.nan]]), torch.tensor([0.0, -1.0, -2.5, 3.0, math.nan])), [],
         None, (13,)),
    Case("zeta_of_number", lambda q: [special.zeta(3.0, q), special.zeta(q.abs() + 1.1, 2.0)], (Q,), [], "all", (18,)),
    Case("zeta_double", special.zeta, (torch.tensor([2.0, 3.0, 20.0], dtype=torch.float64), Q.double()), [], None, (18,), rtol=1e-12),
    Case("zeta_ints", special.zeta, (WHOLE, WHOLE - 2), [], None, (18,)),
    Case("polygamma", lambda x: [torch.polygamma(n, x) for n in (1, 2, 3, 5)], (Q,), [(Q + 0.5,), (Q[:0],)], "all", (9, 18, NEWEST)),
    # Of order 1 PyTorch has finite numbers at the negative poles (1.3e15 at -1), from the rounding of pi.
    Case("polygamma_poles", lambda x: [torch.polygamma(n, x) for n in (2, 3)], (torch.tensor([0.0, -1.0, -7.0, 1.0]),), [], None, (18,)),
]


@expand(CASES)
def test_special(case: Case, opset: int) -> None:
    """Numbers, dtypes and shapes are PyTorch's."""
    check(case, opset)
