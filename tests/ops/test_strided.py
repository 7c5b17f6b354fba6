"""Views by strides: of whole tensors, of parts of them, of tensors that are not contiguous, and writes through them."""

from __future__ import annotations

import torch

from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
OPSETS = (9, 11, 18, NEWEST)
X, OTHER = torch.randn(4, 6), torch.randn(7, 5)


def windows(x: torch.Tensor) -> torch.Tensor:
    """Rows of overlapping windows, by the strides of the tensor."""
    return x.as_strided((x.shape[0], x.shape[1] - 2, 3), (x.stride(0), 1, 1))


def chunks(x: torch.Tensor) -> torch.Tensor:
    """As Longformer does it: overlapping chunks of rows."""
    x = x.view(x.shape[0], -1, 4, x.shape[2])
    size, stride = list(x.shape), list(x.stride())
    size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
    return x.as_strided(size=size, stride=stride)


def written(x: torch.Tensor) -> torch.Tensor:
    """The diagonal is doubled."""
    y = x.clone()
    y.as_strided((4,), (7,)).mul_(2)
    return y


def changed(x: torch.Tensor) -> torch.Tensor:
    """A row becomes a matrix, and that is written."""
    y = x * 1
    y[1].as_strided_((2, 2), (2, 1)).add_(1)
    return y


CASES = [
    Case("windows", windows, (X,), [(OTHER,)], "all", OPSETS),
    Case("chunks", chunks, (torch.randn(2, 8, 6),), [(torch.randn(2, 8, 6),)], None, OPSETS),
    Case("chunks_dynamic", chunks, (torch.randn(2, 8, 6),), [(torch.randn(3, 16, 6),)], {0: {0: "b", 1: "s"}}, OPSETS),
    Case("turned", lambda x: x.t().as_strided((3, 5), (1, 4)), (X,), (), None, OPSETS),
    Case("turned_base", lambda x: (x.t() + 1).as_strided((3, 5), (1, 4)), (X,), (), None, OPSETS),
    Case("of_part", lambda x: (x[1].as_strided((2, 3), (6, 2)), x[-3:, 2:].as_strided((2, 3), (6, 1)), x[1:].as_strided((2, 2), (1, 1), 3)), (X,),
         (), None, OPSETS),
    Case("of_part_dynamic", lambda x: x[1:].as_strided((2, x.shape[1]), (x.shape[1], 1)), (X,), [(OTHER,)], "all", OPSETS),
    Case("expanded", lambda x: x[:, None].expand(4, 3, 6).as_strided((2, 2), (3, 1)), (X,), (), None, OPSETS),
    Case("scalar", lambda x: x.as_strided((), (), 5), (X,), (), None, OPSETS),
    Case("nothing", lambda x: x.as_strided((2, 0), (1, 1)), (X,), (), None, OPSETS),
    Case("int", lambda x: torch.as_strided_copy(x, (2, 2, 2), (4, 0, 1)), (torch.arange(12),), (), None, OPSETS),
    Case("scatter", lambda x, y: torch.as_strided_scatter(x, y, (2, 3), (6, 2), 1), (X, torch.randn(2, 3)), (), None, (11, 18, NEWEST)),
    Case("written", written, (X,), (), None, (11, 18, NEWEST)),
    Case("written_in_place", changed, (X,), (), None, (11, 18, NEWEST)),
    Case("beyond", lambda x: x[:2].as_strided((3, 6), (6, 1)), (X,), (), None, OPSETS),
]


@expand(CASES)
def test_strided(case: Case, opset: int) -> None:
    check(case, opset)
