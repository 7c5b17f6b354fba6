"""Programs that write in place, each held against PyTorch at the captured sizes and at others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.aten.checking import check

X = torch.arange(24, dtype=torch.float32).reshape(4, 6) - 7.5
BIGGER = torch.arange(40, dtype=torch.float32).reshape(5, 8) - 12.5

PROGRAMS: dict[str, Callable[[Tensor], Any]] = {}


def program(function: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    PROGRAMS[function.__name__] = function
    return function


# --- slices and indices ----------------------------------------------------------------------------------------------------------


@program
def setitem_number(x: Tensor) -> Any:
    y = x * 1
    y[..., 0] += 1
    y[:, None][1] = 4
    y[-1, -2:] *= 3
    y[1:3, ::2] = 9
    return y


@program
def setitem_tensor(x: Tensor) -> Any:
    y = x * 1
    y[0] = x[1]
    y[:, 1] = x[:, 2] * 2
    y[1:3] = x[:1]
    y[:, -2:] = x[:, :1]
    return y


@program
def setitem_extra_dims(x: Tensor) -> Any:
    y = x * 1
    y[0] = x[None, 1:2]
    return y


@program
def setitem_dynamic(x: Tensor) -> Any:
    y = x * 1
    n, m = x.shape
    y[n // 2:, : m - 1] = 0
    y[n - 1] += n
    y[:, m - 3] = m
    y[:, m // 2: m // 2 + 2] *= 2
    return y


@program
def setitem_dynamic_fill(x: Tensor) -> Any:
    y = torch.zeros(x.shape[0] + 2, x.shape[1] + 1)
    y[1:-1, : x.shape[1]] = x
    y[-1, -1] = 5
    return y


@program
def padded_by_hand(x: Tensor) -> Any:
    out = x.new_zeros(x.shape[0], x.shape[1] * 2)
    out[:, ::2] = x
    out[:, 1::2] = -x
    return out


@program
def mask(x: Tensor) -> Any:
    y = x * 1
    y[x > 0] = 0
    y[x < -3] += 2
    return y


@program
def mask_values(x: Tensor) -> Any:
    y = x * 1
    y[x > 0] = x[x > 0] * 2
    return y


@program
def mask_rows(x: Tensor) -> Any:
    y = x * 1
    y[x.sum(1) > 0] = -1
    y[:, x.sum(0) > 3] *= 2
    return y


@program
def mask_and_integer(x: Tensor) -> Any:
    y = x * 1
    y[x[:, 0] > -5, 1] = 7
    y[0, x[0] < -3] = 8
    return y


@program
def mask_then_slice(x: Tensor) -> Any:
    y = x * 1
    y[x[:, 0] > -5, 1:3] = 7
    return y


@program
def mask_of_rank_0(x: Tensor) -> Any:
    y = x * 1
    y[x.sum() > 0] = 1
    y[0][x[0, 0] < 0] = 2
    return y


@program
def index_negative(x: Tensor) -> Any:
    y = x * 1
    y[[-1, 0]] = 3
    y[torch.tensor([1, -2]), torch.tensor([-1, 0])] = 4
    return y


@program
def index_broadcast(x: Tensor) -> Any:
    y = x * 1
    y[torch.tensor([[0], [2]]), torch.tensor([1, 3, 4])] = torch.tensor([1.0, 2.0, 3.0])
    return y


@program
def index_gap(x: Tensor) -> Any:
    y = (x * 1)[:, :, None].repeat(1, 1, 3)
    y[torch.tensor([0, 2]), :, torch.tensor([1, 2])] = 5
    y[:, torch.tensor([1, 2]), torch.tensor([0, 1])] = 6
    y[1, :, torch.tensor([0, 2])] = x[1, 1]
    return y


@program
def index_of_view(x: Tensor) -> Any:
    y = x * 1
    y[1:][:, [0, 2]] = 5
    y.t()[[1]] += 2
    return y


@program
def index_computed(x: Tensor) -> Any:
    y = x * 1
    y[torch.arange(x.shape[0]), x.argmax(1)] = 100
    i = x[:, 0].argmin()
    y[i] = -1
    y[:, i] = -2
    return y


@program
def index_put_accumulate(x: Tensor) -> Any:
    y = x * 1
    y.index_put_((torch.tensor([0, 0, 1]),), x[:3], accumulate=True)
    y.index_put_((torch.tensor([0, 0]), torch.tensor([1, 1])), torch.tensor(2.0), accumulate=True)
    return y


@program
def scatter(x: Tensor) -> Any:
    y = x * 1
    index = torch.zeros_like(x[:, :2], dtype=torch.int64)
    index[1:] = 1
    y.scatter_(1, index, 9.0)
    y.scatter_(0, index, x)
    y.scatter_add_(1, index, x)
    y.scatter_reduce_(1, index, x, "amax")
    return y, index


@program
def index_family(x: Tensor) -> Any:
    y = x * 1
    i = torch.tensor([2, 0])
    y.index_fill_(0, i, 1.5)
    y.index_add_(1, i, x[:, :2], alpha=2)
    y.index_copy_(0, i, x[:2])
    y.masked_scatter_(x > 2, x)
    y.put_(torch.tensor([1, 3]), torch.tensor([5.0, 6.0]))
    return y


@program
def masked_fill_tensor(x: Tensor) -> Any:
    y = x * 1
    y.masked_fill_(x > 0, x.sum())
    y.masked_fill_(x[:, :1] < 0, float("-inf"))
    y[1:].masked_fill_(x[1:] > 5, 0)
    return y


# --- aliases ---------------------------------------------------------------------------------------------------------------------


@program
def view_written_base_used(x: Tensor) -> Any:
    y = x * 1
    v = y.view(-1)
    v[::2] = 0
    return y, v


@program
def base_written_view_used(x: Tensor) -> Any:
    y = x * 1
    v = y[1:].t()
    y.add_(1)
    return v, v[0], y


@program
def outputs_alias(x: Tensor) -> Any:
    y = x * 1
    z = y[0]
    y.mul_(2)
    z[0] = 3
    return y, z, y, y[:1]


@program
def two_views_overlap(x: Tensor) -> Any:
    y = x * 1
    a, b = y[:3], y[:, 1:]
    a += 1
    b *= 2
    a[1] = 0
    b[:, 0] = a[0, 0]
    return a, b, y


@program
def views_in_turn(x: Tensor) -> Any:
    y = x * 1
    rows = [y[i] for i in range(4)]
    for i, row in enumerate(rows):
        row += i
        y[:, i] *= 2
    return torch.stack(rows), y


@program
def old_value_stays(x: Tensor) -> Any:
    y = x * 1
    z = y + 0
    w = y.clone()
    y.zero_()
    return z, w, y


@program
def copies_are_no_views(x: Tensor) -> Any:
    y = x * 1
    a = y.t().reshape(-1)
    b = y.t().contiguous()
    c = y[[0, 1]]
    d = y.to(torch.float64)
    e = y.to(torch.float32, copy=True)
    f = y.repeat(1, 2)
    y.fill_(1)
    a.add_(1)
    b[0] = 2
    c *= 2
    d[0] = 5
    e[1] = 6
    f[:, 0] = 3
    return y, a, b, c, d, e, f


@program
def reshape_of_transposed_slice(x: Tensor) -> Any:
    y = x * 1
    a = y[:, 1:3].reshape(-1)
    b = y[1:3].reshape(-1)
    a += 1
    b += 2
    return y, a, b


@program
def flatten_copy_or_view(x: Tensor) -> Any:
    y = (x * 1)[:, :, None].repeat(1, 1, 2)
    y.flatten(1)[:, 0] = 1
    y.transpose(0, 1).flatten()[:3] = 5
    y.transpose(0, 1).flatten(1, 2).zero_()
    return y


@program
def expanded_source(x: Tensor) -> Any:
    y = x * 1
    wide = y[:, :1].expand(-1, x.shape[1])
    y[:, 0] = 5
    return wide, wide + x


@program
def transposed_diagonal(x: Tensor) -> Any:
    y = x * 1
    y.t().diagonal().fill_(1)
    y.diagonal(1)[1:].mul_(2)
    torch.diagonal(y[None], 0, 1, 2)[0, 1] = 4
    return y


@program
def fill_diagonal(x: Tensor) -> Any:
    y = x * 1
    y.fill_diagonal_(3)
    return y, y[:2].fill_diagonal_(5)


@program
def pieces_written(x: Tensor) -> Any:
    y = x * 1
    a, b = y.split([2, x.shape[1] - 2], 1)
    c, d = y.chunk(2, 1)
    a.zero_()
    d += 1
    b[0] = 5
    c.mul_(2)
    return y, a, b, c, d


@program
def unbound_columns(x: Tensor) -> Any:
    boxes = x[:, :4].clone()
    x0, y0, x1, y1 = boxes.unbind(1)
    x1 += x0
    y1 += y0
    x0.clamp_(min=0)
    return boxes, x0, y1


@program
def split_by_one(x: Tensor) -> Any:
    y = x[:4, :4] * 1
    for i, piece in enumerate(y.split(1, 0)):
        piece.add_(i)
    for i, piece in enumerate(y.tensor_split(3, 1)):
        piece.mul_(i)
    return y


@program
def broadcast_tensors(x: Tensor) -> Any:
    y = x * 1
    a, b = torch.broadcast_tensors(y, y[0])
    y[0] = 5
    return a, b


@program
def same_view_twice(x: Tensor) -> Any:
    y = x * 1
    y[1][2] = 5
    a, b = y[1], y[1]
    a += 1
    return b, y


@program
def sibling_overwritten(x: Tensor) -> Any:
    """The second view is filled without being read: what was written into the first must not be lost."""
    y = x * 1
    a, b = y[0], y[:, 1]
    a.add_(1)
    b.fill_(2)
    return y, a


@program
def stale_view_overwritten(x: Tensor) -> Any:
    """The view between the written one and the base is out of date when the write is put back."""
    y = x * 1
    v = y[1:]
    w = v[0]
    y.add_(1)
    w.fill_(3)
    return y, v


@program
def stale_view_overwritten_below(x: Tensor) -> Any:
    y = x * 1
    v = y[1:]
    w = v[:, 1:]
    u = w[0]
    v.add_(1)
    u.zero_()
    v.mul_(2)
    u.fill_(4)
    return y, w, v


@program
def whole_overwritten_after_part(x: Tensor) -> Any:
    y = x * 1
    v = y[1:]
    v[0].add_(1)
    v.copy_(x[:-1])
    w = v[1]
    w.mul_(2)
    y.zero_()
    w += 1
    return y, v


@program
def view_of_written_view(x: Tensor) -> Any:
    y = x * 1
    v = y[1:]
    v += 1
    w = v[:, 1:]
    w *= 2
    v[0, 0] = 7
    u = w.t()[1:]
    u.zero_()
    return y, v, w, u


@program
def swap_rows(x: Tensor) -> Any:
    y = x * 1
    y[0], y[1] = y[1].clone(), y[0].clone()
    y[:, [0, 1]] = y[:, [1, 0]]
    return y


@program
def detached(x: Tensor) -> Any:
    y = x * 1
    y.detach()[0] = 1
    y.data.mul_(2)
    return y


@program
def data_assigned(x: Tensor) -> Any:
    y, z = x * 1, x * 2
    y.data = z
    z += 1
    y[0] = 5
    return y, z


@program
def metadata(x: Tensor) -> Any:
    y = x * 1
    z = y[1]
    y.unsqueeze_(0)
    y[0, 1] = 4
    y.transpose_(1, 2)
    y.squeeze_(0)
    y[2] = 9
    y.t_()
    y.add_(1)
    return y, z


# --- dtypes ----------------------------------------------------------------------------------------------------------------------


@program
def keeps_dtype(x: Tensor) -> Any:
    f, h, i, b = x * 1, x.half(), x.to(torch.int32), x > 0
    f += x.double()
    h *= x
    i += x.to(torch.int64)
    i.sub_(torch.tensor(3))
    b.logical_or_(x)
    b &= x < 3
    f.gt_(0)
    i.eq_(2)
    i.cumsum_(1)
    return f, h, i, b


@program
def integer_operators(x: Tensor) -> Any:
    y = (x * 2).long()
    y += 1
    y |= 2
    y <<= 1
    y -= torch.tensor(3)
    y //= 2
    y %= 5
    y ^= 1
    y **= 2
    y >>= 1
    y[0] = 2.7
    y[1].fill_(3.9)
    y[:, 0] = x[:, 0]
    return y


@program
def copy_kinds(x: Tensor) -> Any:
    i, b, d = x.to(torch.int32), x > 0, x.double()
    i.copy_(x)
    i[0].copy_(x[0, :1])
    b.copy_(x)
    b[0] = x[1]
    d.copy_(x[:, :1])
    d[1] = 5
    return i, b, d


@program
def fills(x: Tensor) -> Any:
    y, b, i = x * 1, x > 0, x.long()
    y[0].fill_(x[1, 1])
    y[1].zero_()
    b.fill_(2)
    i.fill_(2.9)
    b[0].fill_(x[0, 0])
    i[0].fill_(x[0, 0])
    return y, b, i


@program
def unary(x: Tensor) -> Any:
    y = x * 1
    y.abs_().add_(1).log_().exp_().sqrt_().neg_().sigmoid_()
    nn.functional.leaky_relu_(y)
    nn.functional.elu(y, inplace=True)
    nn.functional.hardtanh_(y)
    y.clip_(max=0.7)
    y.clamp_min_(0.6)
    y.round_(decimals=2)
    y.nan_to_num_()
    y.tril_()
    return y


@program
def ternary(x: Tensor) -> Any:
    y = x * 1
    y.addcmul_(x, x, value=0.5)
    y.addcdiv_(x, x.abs() + 1)
    y.lerp_(x, 0.25)
    y.addmm_(x, torch.ones(x.shape[1], x.shape[1]))
    y.div_(2, rounding_mode="floor")
    return y


@program
def lists(x: Tensor) -> Any:
    a, b = x * 1, x * 2
    torch._foreach_add_([a, b], 1.0)
    torch._foreach_mul_([a, b], [b * 1, a * 1])
    torch._foreach_mul_([a[0], b[1]], [2.0, 3.0])
    torch._foreach_neg_([a, b])
    return a, b


# --- out= ------------------------------------------------------------------------------------------------------------------------


@program
def out_fresh(x: Tensor) -> Any:
    y = torch.empty_like(x)
    torch.add(x, 1, out=y)
    z = torch.empty(0)
    torch.mul(x, 2, out=z)
    return y, z


@program
def out_view(x: Tensor) -> Any:
    y = x * 1
    torch.mul(x[0], 3, out=y[1])
    torch.sum(x, 0, out=y[2])
    torch.add(x[:, 1:4], 1, out=y[:, 2:5])
    return y


@program
def out_several(x: Tensor) -> Any:
    values, indices = torch.empty(x.shape[0]), torch.empty(x.shape[0], dtype=torch.int64)
    torch.max(x, 1, out=(values, indices))
    values += 1
    return values, indices


@program
def out_cast(x: Tensor) -> Any:
    y = torch.empty(x.shape, dtype=torch.float64)
    torch.add(x, x, out=y)
    return y


# --- loops -----------------------------------------------------------------------------------------------------------------------


@program
def python_loop(x: Tensor) -> Any:
    y = torch.zeros(3, x.shape[1])
    for i in range(3):
        y[i] = x[i] * (y[i - 1] if i else 1)
    return y


@program
def cumulative(x: Tensor) -> Any:
    y = x * 1
    for i in range(1, 4):
        y[i] += y[i - 1]
    return y


@program
def cache(x: Tensor) -> Any:
    store = torch.zeros(2, 10, x.shape[1])
    for layer in range(2):
        store[layer, : x.shape[0]] = x
        store[layer, x.shape[0] - 1: x.shape[0]] += 1
    return store, store[:, : x.shape[0]]


# --- sizes -----------------------------------------------------------------------------------------------------------------------


@program
def size_alias(x: Tensor) -> Any:
    n = x.shape[1]
    m = n
    m += 2
    y = torch.zeros(n)
    y[: n - 1] = m
    return y + n


@program
def sizes_of_stale_views(x: Tensor) -> Any:
    y = x * 1
    v = y[1:]
    y.add_(1)
    return torch.zeros_like(v), torch.ones(v.shape[0]), v.new_full((2,), 3.0)


@program
def literal(x: Tensor) -> Any:
    c = torch.tensor([1.0, 2.0, 3.0, 4.0])
    a = c + 0
    c[1:] += x[0, :3]
    d = torch.tensor([[1, 2], [3, 4]])
    d.t()[0] = 7
    return a, c, d


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    check(PROGRAMS[name], X, others=((BIGGER,),))


@pytest.mark.parametrize("name", ["mask", "mask_values", "mask_rows", "mask_of_rank_0", "index_computed", "fills", "copy_kinds"])
def test_program_on_other_data(name: str) -> None:
    check(PROGRAMS[name], X, others=((-X,), (X * 0,), (BIGGER.flip(0),)))
