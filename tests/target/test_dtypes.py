"""Which dtypes hold each other's numbers, against PyTorch's own conversions; casts that pass through one of these."""

from __future__ import annotations

import itertools

import pytest
import torch

from onnxport.target.builder import Builder
from onnxport.target.dtypes import FLOATS, INTEGERS, holds_all, to_torch
from onnxport.target.value import DataType

DTYPES = sorted({*FLOATS, *INTEGERS, DataType.BOOL} - {DataType.UINT64, DataType.UINT32, DataType.UINT16}, key=str)


def ends(dtype: torch.dtype) -> torch.Tensor:
    """The numbers of a dtype that another would lose first."""
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        return torch.tensor([info.min, info.max, 1 + info.eps, info.tiny, 0.0, torch.inf], dtype=dtype)
    info = torch.iinfo(dtype)
    return torch.tensor([info.min, info.max, info.max - 1, info.min // 2 + 1, 1, 0], dtype=dtype)


@pytest.mark.parametrize(("wide", "narrow"), itertools.product(DTYPES, DTYPES), ids=lambda dtype: dtype.name)
def test_a_dtype_holds_another_where_nothing_is_lost_on_the_way(wide: DataType, narrow: DataType) -> None:
    numbers = ends(to_torch(narrow))
    back = numbers.to(to_torch(wide)).to(to_torch(narrow))
    exact = torch.equal(back, numbers) and (narrow == DataType.BOOL or torch.equal(numbers.to(to_torch(wide)).double(), numbers.double()))
    if holds_all(wide, narrow):
        assert exact
    elif narrow not in (DataType.INT64, DataType.INT32):  # whose ends may be powers of two that a float happens to hold
        assert not exact


def test_a_cast_there_and_back_is_none() -> None:
    g = Builder(18)
    x, n = g.input("x", DataType.FLOAT, (3,)), g.input("n", DataType.INT64, (3,))
    assert g.op("Cast", g.op("Cast", x, to=DataType.DOUBLE), to=DataType.FLOAT) is x
    once = g.op("Cast", g.op("Cast", x, to=DataType.DOUBLE), to=DataType.FLOAT16)
    assert once.node is not None and once.node.inputs == (x,)
    rounded = g.op("Cast", g.op("Cast", x, to=DataType.FLOAT16), to=DataType.FLOAT)
    assert rounded is not x and rounded.node is not None and rounded.node.inputs != (x,)
    assert g.op("Cast", g.op("Cast", n, to=DataType.DOUBLE), to=DataType.INT64) is not n
