"""Example inputs from text."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import torch

from onnxport import errors
from onnxport.inputs import parse


def test_shapes_types_and_axes():
    given = parse(["x=float32[N,3,H=32,W]", "ids=int64[N,T]", "mask = bool[T]", "s=float64[]", "h=bfloat16[2]", "c=complex64[2]"])
    assert {name: (value.dtype, tuple(value.shape)) for name, value in given.values.items()} == {
        "x": (torch.float32, (2, 3, 32, 2)), "ids": (torch.int64, (2, 3)), "mask": (torch.bool, (3,)), "s": (torch.float64, ()),
        "h": (torch.bfloat16, (2,)), "c": (torch.complex64, (2,)),
    }
    assert given.dynamic_axes == {"x": {0: "N", 2: "H", 3: "W"}, "ids": {0: "N", 1: "T"}, "mask": {0: "T"}}


def test_sizes_may_stand_anywhere():
    given = parse(["a=float32[N]", "b=float32[N=7]", "c=float32[M]"], {"M": 4})
    assert [tuple(v.shape) for v in given.values.values()] == [(7,), (7,), (4,)]


def test_ranges():
    given = parse(["ids=int64[1000]:5..9", "low=int8[200]:-3..-1", "x=float32[1000]:0..0.5"])
    assert sorted(given.values["ids"].unique().tolist()) == [5, 6, 7, 8, 9]
    assert set(given.values["low"].tolist()) == {-3, -2, -1}
    assert 0 <= given.values["x"].min() < given.values["x"].max() <= 0.5
    assert set(parse(["m=int64[100]"]).values["m"].tolist()) == {0, 1}


def test_same_seed_same_numbers():
    one, two, other = (parse(["x=float32[5]"], seed=s).values["x"] for s in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_constants():
    given = parse(["flag=True", "n=3", "mode='fast'", "sizes=[1, 2]", "none=None"])
    assert given.values == {"flag": True, "n": 3, "mode": "fast", "sizes": [1, 2], "none": None}
    assert given.tensors == []


def test_files(tmp_path: pathlib.Path):
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    torch.save(torch.ones(4), tmp_path / "b.pt")
    torch.save([1], tmp_path / "c.pt")
    given = parse([f"a=@{tmp_path}/a.npy[N,3]", f"b=@{tmp_path}/b.pt"])
    assert given.values["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert given.dynamic_axes == {"a": {0: "N"}}
    assert given.values["b"].shape == (4,)
    for text, message in ((f"a=@{tmp_path}/a.npy[N]", "2 axes"), (f"c=@{tmp_path}/c.pt", "holds a list"), ("a=@nowhere.npy", "nowhere")):
        with pytest.raises(errors.ArgumentError, match=message):
            parse([text])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "NAME=DTYPE"), ("=float32[2]", "NAME=DTYPE"), ("x=float99[2]", "float99"), ("x=float32[2,?]", r"'\?'"),
        ("x=float32", "literal"), ("x=fast", "needs quotes"), ("x=int64[2]:5..1", "empty"), ("x=int64[2]:0..1.5", "no range"),
    ],
)
def test_mistakes_are_quoted(line: str, message: str):
    with pytest.raises(errors.ArgumentError, match=message) as caught:
        parse([line])
    assert line in str(caught.value)


def test_contradictions():
    with pytest.raises(errors.ArgumentError, match="N is 3 here and 2 elsewhere"):
        parse(["a=float32[N=2]", "b=float32[N=3]"])
    with pytest.raises(errors.ArgumentError, match="twice"):
        parse(["a=float32[2]", "a=float32[2]"])
