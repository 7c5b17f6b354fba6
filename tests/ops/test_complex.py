"""Complex numbers: what moves them, arithmetic, functions, comparisons. Files have them as pairs of real numbers."""

from __future__ import annotations

import torch

from tests.ops.harness import Case, check, expand

torch.manual_seed(0)
OPSETS = (9, 13, 17, 20, 28)
BOTH = (9, 13, 17, 18, 20, 28)  # at 18 through torch.export too
FEW = (9, 28)


def z(*shape: int) -> torch.Tensor:
    """Complex numbers."""
    return torch.randn(*shape, dtype=torch.complex64)


Z, W = z(2, 3, 4), z(5, 7, 4)
MASK = torch.tensor([[True, False, True, True], [False, True, True, False], [True, True, False, False]])

def _written(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 0] = 1j
    y[:, 1:] *= 2
    y += x.real
    y[..., 1] = x.real[..., 0]
    return y.mul_(1j)


def _written_through(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    a, b, c, d = x.clone(), x.clone(), x.clone(), torch.view_as_real(x).clone()
    a.real.mul_(2)
    a.imag[:, 0] = 7
    torch.view_as_real(b)[..., 1].add_(1)
    c.conj().mul_(1j)
    torch.view_as_complex(d)[0] *= 2j
    return a, b, c, d


BORDERS = [
    Case("through", lambda x: x, (Z,), [(W,)], "all", OPSETS),
    Case("view_as_complex", lambda x: torch.view_as_complex(x), (torch.randn(3, 2),), [(torch.randn(5, 2),)], {0: {0: "n"}}, OPSETS),
    Case("view_as_real", lambda x: torch.view_as_real(x), (Z,), [(W,)], "all", BOTH),
    Case("parts", lambda x: (x.real, x.imag, x.conj(), torch.conj_physical(x), x.conj().imag, x.mH, x.adjoint()), (Z,), [(W,)], "all", BOTH),
    Case("complex", lambda a, b: torch.complex(a, b), (torch.randn(2, 3), torch.randn(3)), [(torch.randn(4, 3), torch.randn(3))], {0: {0: "n"}}, BOTH),
    Case("complex_double", lambda a, b: torch.complex(a, b) * 2, (torch.randn(3).double(), torch.randn(3).double()), opsets=FEW),
    Case("polar", torch.polar, (torch.rand(2, 3), torch.randn(2, 3)), [(torch.rand(4, 3), torch.randn(4, 3))], "all", BOTH),
    Case("to_complex", lambda x: (x.to(torch.complex64), x.to(torch.complex128), x.long().cfloat(), x.bool().to(torch.complex64)), (torch.randn(3),),
         [(torch.randn(5),)], "all", FEW),
    Case("to_real", lambda x: (x.to(torch.complex128), x.real.double(), x.to(torch.bool)), (Z,), [(W,)], "all", FEW),
    Case("constant", lambda x: x * torch.tensor([1j, 2, 3 - 1j, 0]) + torch.tensor(2 - 1j), (Z,), [(W,)], {0: {0: "a", 1: "b"}}, OPSETS),
    Case("new_ones", lambda x: (torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 1 - 2j), x.new_zeros(2), x.new_full((2, 3), 1j),
                                x.real.new_zeros(3, dtype=torch.complex64), torch.zeros_like(x.real, dtype=torch.complex128), torch.zeros_like(x, dtype=torch.float32)),
         (Z,), [(W,)], "all", FEW),
    Case("sized_ones", lambda x: (torch.zeros(x.shape[0], dtype=torch.complex64), torch.ones(x.shape[1], dtype=torch.complex128),
                                  torch.full((x.shape[0],), 2j), torch.eye(x.shape[1], dtype=torch.complex64)), (Z,), [(W,)], "all", FEW),
]

MOVING = [
    Case("shapes", lambda x: (x.reshape(x.shape[0], -1), x.flatten(1), x.view(x.shape[0], -1, 2), x[None], x.unsqueeze(-1), x[None].squeeze(0), x.unflatten(2, (2, 2))),
         (Z,), [(W,)], {0: {0: "a", 1: "b"}}, OPSETS),
    Case("orders", lambda x: (x.permute(2, 0, 1), x.transpose(0, 1), x.mT, x.movedim(0, 2), x.flip(1), x.roll(1, 2), x.rot90(1, (0, 1))), (Z,), [(W,)], "all", OPSETS,
         {9: "needs opset 10"}),
    Case("expand", lambda x: (x[:, None].expand(-1, 2, -1, -1), x.expand_as(x), x.repeat(1, 2, 1), x.repeat_interleave(2, 1)), (Z,), [(W,)], "all", OPSETS),
    Case("pieces", lambda x: (x[0], x[:, 1:], x[..., ::2], x.narrow(1, 1, 2), x.select(2, -1), x.split(2, 2), x.chunk(2, 2), x.unbind(2)), (Z,),
         [(W,)], {0: {0: "a", 1: "b"}}, OPSETS),
    Case("index", lambda x: (x[:, [0, 2]], x[:, torch.tensor([1, 0, 1])], x.index_select(2, torch.tensor([3, 1]))), (Z,), [(W,)], "all", (13, 28)),
    Case("gather", lambda x, i: (x.gather(1, i), torch.take_along_dim(x, i, 1)), (Z, torch.randint(3, (2, 2, 4))), opsets=(13, 28)),
    Case("masked_select", lambda x: x[x.abs() > 0.5] * 2, (z(9),), [(z(20),)], "all", (13, 28)),
    Case("cat", lambda x: (torch.cat([x, x.real, x * 2], 1), torch.stack([x, x.imag.cfloat()], -1), torch.hstack([x, x])), (Z,), [(W,)], "all", BOTH),
    Case("where", lambda x: (torch.where(x.real > 0, x, x.conj()), torch.where(x.real > 0, x, 0.0), torch.where(x.imag > 0, x.real, x), x.masked_fill(x.real > 0, 1j)),
         (Z,), [(W,)], "all", BOTH),
    Case("scatter", lambda x, y: (x.index_put((torch.tensor([0]),), y), x.slice_scatter(y, 0, 0, 1), x.select_scatter(y[0], 0, 1), x.index_add(0, torch.tensor([1]), y)),
         (Z, z(1, 3, 4)), opsets=(13, 28)),
    Case("pad", lambda x: (torch.nn.functional.pad(x, (1, 2)), torch.nn.functional.pad(x, (1, 2), value=2.0), torch.nn.functional.pad(x, (1, 1), "reflect")),
         (Z,), [(W,)], "all", FEW),
    Case("triangles", lambda x: (x.tril(), x.triu(1), x.diagonal(0, 1, 2), torch.diag_embed(x)), (Z,), [(W,)], "all", FEW, {9: "needs opset 1"}),
    Case("sums", lambda x: (x.sum(), x.sum(1), x.mean((0, 2), True), x.cumsum(1), x.sum(0, dtype=torch.complex128), x.diff(dim=1)), (Z,), [(W,)], "all", (11, 28)),
    Case("writes", _written, (Z,), [(W,)], "all", (13, 18, 28)),
    Case("writes_through_views", _written_through, (Z,), [(W,)], "all", (13, 28)),
]

ARITHMETIC = [
    Case("sums_of_two", lambda x, y: (x + y, x - y, x + 1, 1 - x, x + 1j, x - y.real, x.real - y, x.real + 1j, torch.add(x, y, alpha=2), torch.sub(x, y, alpha=1j), -x),
         (Z, z(3, 1)), [(W, z(7, 1))], {0: {0: "a", 1: "b"}, 1: {0: "b"}}, BOTH),
    Case("broadcast", lambda x, y: (x + y.real, x.real - y, x * y, x / y, y - x), (z(3, 1), z(2, 1, 4)), [(z(5, 1), z(3, 1, 4))], {0: {0: "a"}, 1: {0: "b"}}, OPSETS),
    Case("products", lambda x, y: (x * y, x * 2, x * 1j, x * y.real, x.real * y, x.square(), x.real * 2j), (Z, z(3, 1)), [(W, z(7, 1))],
         {0: {0: "a", 1: "b"}, 1: {0: "b"}}, BOTH),
    Case("quotients", lambda x, y: (x / y, x / 2, 2 / x, x / 1j, x / y.real, x.real / y, x.reciprocal()), (Z, z(3, 1)), [(W, z(7, 1))],
         {0: {0: "a", 1: "b"}, 1: {0: "b"}}, BOTH),
    Case("widths", lambda x, d: (x * d, x + d[0], x * d.cdouble()[0], x.cdouble() + x, torch.arange(4) * x, x.real.double() * 1j), (Z, torch.randn(4).double()),
         opsets=FEW),
    Case("addcmul", lambda x: (torch.addcmul(x, x, x, value=2), torch.addcdiv(x, x, x + 9), torch.lerp(x, x * 2, 0.3)), (Z,), [(W,)], "all", FEW),
    Case("powers", lambda x: (x**2, x**3, x**-1, x**0, x**0.5, x**1.3, x ** (1 + 2j), 2**x, (x * 0) ** 2, x**x, x.real.abs() ** 1j), (Z,), [(W,)], "all", OPSETS,
         rtol=1e-3, atol=1e-4),
    Case("matmul", lambda x, y: (x @ y, torch.bmm(x, y), x[0] @ y[0], torch.mm(x[0], y[0]), x[0] @ y[0, :, 0], torch.einsum("bij,bjk->bki", x, y)),
         (Z, z(2, 4, 5)), [(W, z(5, 4, 5))], {0: {0: "b", 1: "n"}, 1: {0: "b"}}, BOTH),
    Case("dots", lambda x, y: (torch.dot(x, y), torch.vdot(x, y), torch.outer(x, y), torch.linalg.vecdot(x, y), torch.inner(x, y), torch.kron(x, y)), (z(3), z(3)),
         [(z(5), z(5))], {0: {0: "n"}, 1: {0: "n"}}, FEW),
    Case("einsum", lambda x, y, w: (torch.einsum("bix,iox->box", x, y), torch.einsum("bix,iox,o->bx", x, y, w)),
         (z(2, 3, 4), z(3, 5, 4), z(5)), [(z(4, 3, 4), z(3, 5, 4), z(5))], {0: {0: "b"}}, (13, 28)),
    Case("linear", lambda x, w, b: (torch.nn.functional.linear(x, w, b), torch.addmm(b, x[0], w.mT)), (Z, z(5, 4), z(5)), [(z(3, 2, 4), z(5, 4), z(5))],
         {0: {0: "b", 1: "n"}}, FEW),
    Case("conv", lambda x, w, b: torch.nn.functional.conv1d(x, w, b), (Z, z(5, 3, 2), z(5)), opsets=(28,)),
    Case("products_of_all", lambda x: (x.prod(1), x.prod(2, True), x[0].prod(), x.cumprod(2), x.prod(1, dtype=torch.complex128)), (z(2, 3, 2),), [(z(5, 3, 2),)],
         {0: {0: "b"}}, FEW),
    Case("extremes", lambda x: (x.abs(), 1 / x, x.sgn(), x / x), (torch.tensor([3e30 + 4e30j, 3e-30 - 4e-30j, 1e25j]),), opsets=FEW),
    Case("wide_powers", lambda x: (torch.float_power(x, 2), torch.float_power(x.real.abs(), 1 + 1j)), (Z,), opsets=FEW),
    Case("refused", lambda x: (torch.linalg.svdvals(x), torch.logcumsumexp(x, 1)), (Z,), opsets=FEW, refused=dict.fromkeys(FEW, r"(?s)logcumsumexp of complex numbers: .*torch.view_as_real.* at .*test_complex.py:\d+")),
]

SQUARE = z(2, 3, 3) + 3 * torch.eye(3)
MATRICES = [
    Case("inverse", lambda x: (torch.linalg.inv(x), torch.linalg.matrix_exp(x / 5)), (SQUARE,), [(z(4, 3, 3) + 3 * torch.eye(3),)], {0: {0: "b"}}, (13, 28), rtol=1e-3, atol=1e-4),
    Case("solve", lambda x, y: (torch.linalg.solve(x, y), torch.linalg.solve(x, y[..., 0]), torch.linalg.solve(x, y.mT, left=False), torch.linalg.solve(x[0], y[0, :, 0])),
         (SQUARE, z(2, 3, 4)), [(z(5, 3, 3) + 3 * torch.eye(3), z(5, 3, 4))], {0: {0: "b"}, 1: {0: "b"}}, (13, 28), rtol=1e-3, atol=1e-4),
]

FUNCTIONS = [
    Case("lengths", lambda x: (x.abs(), x.angle(), x.sgn(), (x * 0).sgn(), (x * 0).abs()), (Z,), [(W,)], "all", BOTH),
    Case("exponentials", lambda x: (x.exp(), x.log(), x.sqrt(), x.rsqrt(), x.log2(), x.log10(), torch.exp2(x), x.expm1(), x.log1p(), x.sigmoid()), (Z,), [(W,)],
         "all", OPSETS, rtol=1e-3, atol=1e-4),
    Case("exponentials_small", lambda x: (x.expm1() * 1e6, x.log1p() * 1e6), (Z * 1e-6,), [(W * 1e-6,)], "all", (9, 18, 28), rtol=1e-4, atol=1e-5),
    Case("circular", lambda x: (x.sin(), x.cos(), x.tan(), x.sinh(), x.cosh(), x.tanh(), x.asin(), x.acos(), x.atan(), x.asinh(), x.acosh(), x.atanh()), (Z,), [(W,)], "all", OPSETS, rtol=1e-3, atol=1e-4),
    Case("far_tanh", lambda x: (x.tanh(), x.mul(1j).tan()), (torch.tensor([100 + 1j, -100 + 2j, 0j]),), opsets=FEW),
    Case("compared", lambda x: (x == x.real, x != 1j, x == x.flip(1), x.isfinite(), x.isnan(), x.isinf(), x.isreal(), torch.isclose(x, x + 1e-7), x.logical_not()),
         (Z,), [(W,)], "all", (11, 28)),
    Case("truths", lambda x: (x.any(), x.all(1), (x * (x.real > 0)).count_nonzero(1), x.logical_and(x.real), x.logical_or(x), x.logical_xor(x)), (Z,), [(W,)], "all", (13, 28)),
    Case("norms", lambda x: (torch.linalg.vector_norm(x, dim=1), x.norm(), x.norm(1, dim=2), torch.linalg.norm(x), torch.nn.functional.normalize(x, dim=1)), (Z,),
         [(W,)], "all", FEW),
    Case("spreads", lambda x: (x.var(1), x.std(1), x.var((0, 2), correction=0, keepdim=True)), (Z,), [(W,)], "all", FEW),
    Case("softmax_of_length", lambda x: x * torch.softmax(x.abs(), -1), (Z,), [(W,)], "all", FEW),
]


@expand([*BORDERS, *MOVING, *ARITHMETIC, *MATRICES, *FUNCTIONS])
def test_complex(case: Case, opset: int) -> None:
    check(case, opset)
