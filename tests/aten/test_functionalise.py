from __future__ import annotations

import pytest
import torch

from tests.aten.checking import check

X = torch.arange(24, dtype=torch.float32).reshape(4, 6) - 7.5
BIGGER = torch.arange(40, dtype=torch.float32).reshape(5, 8) - 12.5

# name -> (view of a matrix, whether it works at other sizes)
VIEWS = {
    "self": lambda y: y,
    "select": lambda y: y[1],
    "select_negative": lambda y: y[-1],
    "select_column": lambda y: y[:, 2],
    "ellipsis": lambda y: y[..., 0],
    "slice": lambda y: y[1:3],
    "slice_step": lambda y: y[:, ::2],
    "slice_open": lambda y: y[-2:],
    "slice_of_slice": lambda y: y[1:][:, 1:][1:, :2],
    "slice_dynamic": lambda y: y[:, y.shape[1] - 2:y.shape[1]],
    "narrow": lambda y: y.narrow(1, 1, 3),
    "narrow_negative": lambda y: y.narrow(0, -2, 2),
    "narrow_dynamic": lambda y: y.narrow(0, y.shape[0] - 3, 2),
    "t": lambda y: y.t(),
    "T": lambda y: y.T,
    "mT": lambda y: y.mT,
    "transpose": lambda y: y.transpose(0, 1)[1:],
    "swapaxes": lambda y: y.swapaxes(-1, 0)[0],
    "permute": lambda y: y[None].permute(2, 0, 1)[3],
    "movedim": lambda y: y[None].movedim(0, 2)[1],
    "movedim_list": lambda y: y[None].movedim((0, 1), (1, 2))[4],
    "unsqueeze": lambda y: y[:, None],
    "unsqueeze_negative": lambda y: y.unsqueeze(-1)[1],
    "squeeze": lambda y: y[1:2].squeeze(),
    "squeeze_dim": lambda y: y[:, 1:2].squeeze(1),
    "squeeze_negative": lambda y: y[:, 1:2].squeeze(-1),
    "squeeze_dims": lambda y: y[None, :, 1:2].squeeze((0, 2)),
    "squeeze_nothing": lambda y: y.squeeze(1),
    "view_flat": lambda y: y.view(-1)[::3],
    "view_sizes": lambda y: y.view(y.shape[1], y.shape[0])[1],
    "view_3d": lambda y: y.view(2, -1, 2)[:, 1] if y.shape[0] % 2 == 0 else y.view(1, -1, 2)[:, 1],
    "view_as": lambda y: y.view_as(y * 1)[2],
    "reshape": lambda y: y.reshape(-1)[3:7],
    "reshape_as": lambda y: y.reshape_as(y + 1)[2],
    "flatten": lambda y: y.flatten()[5:],
    "ravel": lambda y: y.ravel()[0],
    "unflatten": lambda y: y.unflatten(1, (2, -1))[:, 1],
    "diagonal": lambda y: y.diagonal(),
    "diagonal_offset": lambda y: y.diagonal(1),
    "diagonal_of_t": lambda y: y.t().diagonal(-1),
    "linalg_diagonal": lambda y: torch.linalg.diagonal(y),
    "unbind": lambda y: y.unbind(1)[2],
    "unbind_rows": lambda y: y.unbind()[-1],
    "split": lambda y: y.split(4, 1)[1],
    "split_sizes": lambda y: y.split([1, 2, y.shape[1] - 3], 1)[2],
    "chunk": lambda y: y.chunk(3, 1)[1],
    "chunk_uneven": lambda y: y.chunk(3)[-1],
    "tensor_split": lambda y: y.tensor_split(3)[1],
    "tensor_split_last": lambda y: y.tensor_split(3)[2],
    "tensor_split_indices": lambda y: y.tensor_split([1, 3], 1)[1],
    "tensor_split_rest": lambda y: y.tensor_split([1, 3], 1)[2],
    "hsplit": lambda y: y.hsplit(2)[1],
    "vsplit": lambda y: y.vsplit([1, 2])[2],
    "piece_of_piece": lambda y: y.chunk(2, 1)[1].unbind(1)[0],
    "detach": lambda y: y.detach(),
    "alias": lambda y: torch.ops.aten.alias(y)[0],
    "expand": lambda y: y.expand_as(y)[0],
    "expand_front": lambda y: y.expand(1, *y.shape)[0, 1],
    "contiguous": lambda y: y.contiguous()[0],
    "to": lambda y: y.to(torch.float32)[0],
    "float": lambda y: y.float()[:1],
    "type_as": lambda y: y.type_as(y)[0],
    "dropout": lambda y: torch.nn.functional.dropout(y, 0.5, training=False)[1],
    "identity": lambda y: torch.nn.Identity()(y)[1],
    "atleast": lambda y: torch.atleast_3d(y)[1],
    "broadcast": lambda y: torch.broadcast_to(y, y.shape)[1],
    "element": lambda y: y[1, 2],
    "element_chain": lambda y: y[1:][0][2:][0],
    "real": lambda y: torch.real(y)[1],
}

# The trace takes a list of pieces apart, so their number is that of the example; view_3d branches.
FIXED = ("view_3d", "unbind", "unbind_rows", "chunk_uneven", "piece_of_piece")

# Each writes into v and may use x, a matrix that v does not look at.
WRITES = {
    "add": lambda v, x: v.add_(1),
    "mul_tensor": lambda v, x: v.mul_(x[0, 0]),
    "iadd_self": lambda v, x: v.add_(v),
    "sub_alpha": lambda v, x: v.sub_(v * 2, alpha=0.5),
    "fill": lambda v, x: v.fill_(3),
    "fill_tensor": lambda v, x: v.fill_(x[1, 1]),
    "zero": lambda v, x: v.zero_(),
    "copy": lambda v, x: v.copy_(v.flip(0) if v.dim() else v * 2),
    "copy_broadcast": lambda v, x: v.copy_(x[2, 3]),
    "copy_cast": lambda v, x: v.copy_((v * 2).to(torch.int64)),
    "masked_fill": lambda v, x: v.masked_fill_(v > 0, -1.0),
    "masked_set": lambda v, x: v.__setitem__(v > 0, 2.5),
    "clamp": lambda v, x: v.clamp_(-1, 2),
    "relu": lambda v, x: torch.relu_(v),
    "functional_relu": lambda v, x: torch.nn.functional.relu(v, inplace=True),
    "pow": lambda v, x: v.pow_(2),
    "lt": lambda v, x: v.lt_(0),
    "setitem_all": lambda v, x: v.__setitem__(..., x[0, 1]),
    "add_wider": lambda v, x: v.add_(v.double()),
    "twice": lambda v, x: v.add_(1).mul_(2).neg_(),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_view_and_write(view: str, write: str) -> None:
    """A view is made, another is made before the write and used after it, the base is used after it."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2
        before = y[1:]
        v = VIEWS[view](y)
        WRITES[write](v, x)
        again = VIEWS[view](y)
        return y, v, before * 1, again + y.sum()

    check(program, X, others=((BIGGER,),) if view not in FIXED else ())
