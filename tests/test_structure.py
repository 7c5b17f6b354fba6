"""`onnxport.structure`: nested arguments and results to tensors and back."""

from __future__ import annotations

import collections
import dataclasses
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onnxport import errors
from onnxport.structure import flatten, flatten_call


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Result:
    logits: torch.Tensor
    hidden: torch.Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    doubled: Any = None

    def __post_init__(self):
        object.__setattr__(self, "doubled", self.a * 2)


def paths(value: Any) -> list[str]:
    return [leaf.path for leaf in flatten(value)[0]]


def rebuilt(value: Any) -> Any:
    leaves, spec = flatten(value)
    return spec.unflatten([leaf.value for leaf in leaves])


T = torch.arange(3.0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (T, [""]),
        ((T, [T, {"k": T}]), ["0", "1.0", "1.1.k"]),
        (Pair(T, Pair(None, T)), ["left", "right.right"]),
        ({"boxes": T, 3: (T,)}, ["boxes", "3.0"]),
        (Result(T), ["logits"]),
        (Result(T, T), ["logits", "hidden"]),
        (torch.max(torch.eye(2), 1), ["values", "indices"]),
        (None, []),
        ((1, "a", None, torch.Size([2])), []),
        (collections.deque([T, T]), ["0", "1"]),
    ],
)
def test_paths(value: Any, expected: list[str]):
    assert paths(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        (1, [2.5, {"a": "b"}], None), Pair(1, (2,)), collections.OrderedDict(b=1, a=2), torch.Size([1, 2]), [], (), {}, True,
        collections.UserDict(a=1),
    ],
)
def test_containers_come_back_as_what_they_were(value: Any):
    made = rebuilt(value)
    assert made == value
    assert type(made) is type(value)


def test_members_are_replaced_and_the_original_is_left_alone():
    value = {"a": [T, 1], "b": Pair(T, T)}
    _, spec = flatten(value)
    made = spec.unflatten(["x", "y", "z"])
    assert made == {"a": ["x", 1], "b": Pair("y", "z")}
    assert value["a"] == [T, 1] or value["a"][0] is T


def test_default_dict_keeps_its_factory():
    made = rebuilt(collections.defaultdict(list, a=T))
    assert made["new"] == []
    assert made["a"] is T


def test_packed_sequence():
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    assert paths(packed) == ["data", "batch_sizes"]
    assert type(rebuilt(packed)) is type(packed)


def test_frozen_dataclass_is_not_derived_twice():
    made = flatten(Frozen(T))[1].unflatten(["a", "b"])
    assert (made.a, made.doubled) == ("a", "b")


def test_result_types_of_torch_come_back():
    made = flatten(torch.max(torch.eye(2), 1))[1].unflatten([T, T + 1])
    assert made.indices.tolist() == [1, 2, 3]


def test_constants_have_paths():
    _, spec = flatten({"x": T, "y": [None, 3]})
    assert [tuple(c) for c in spec.constants] == [("y.0", None), ("y.1", 3)]


def test_wrong_number_of_tensors():
    with pytest.raises(ValueError, match="2 tensors are needed"):
        flatten((T, T))[1].unflatten([T])


def test_spec_holds_no_tensors():
    """The example's memory must be free when its owner drops it."""
    code = """
import gc, weakref, torch, collections
from onnxport.structure import flatten
value = {'a': torch.zeros(3), 'b': collections.UserDict(c=torch.zeros(2))}
ref = [weakref.ref(value['a']), weakref.ref(value['b']['c'])]
leaves, spec = flatten(value)
del value, leaves
gc.collect()
assert all(r() is None for r in ref), ref
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_call_is_in_the_order_of_the_parameters():
    def forward(x: Any, mask: Any = None, *rest: Any, y: Any = 1, **extra: Any) -> None: ...

    leaves, spec = flatten_call(forward, (T,), {"y": T + 2, "bias": T + 3, "mask": T + 1})
    assert [leaf.path for leaf in leaves] == ["x", "mask", "y", "bias"]
    args, kwargs = spec.unflatten(["a", "b", "c", "d"])
    assert args == ("a", "b")
    assert kwargs == {"y": "c", "bias": "d"}
    leaves, spec = flatten_call(forward, (T, None, T, T))
    assert [leaf.path for leaf in leaves] == ["x", "rest.0", "rest.1"]
    assert [tuple(c) for c in spec.constants] == [("mask", None)]
    assert spec.unflatten([1, 2, 3]) == ((1, None, 2, 3), {})


def test_call_that_does_not_fit():
    def forward(x: Any, y: Any) -> None: ...

    with pytest.raises(errors.ArgumentError, match="'y'"):
        flatten_call(forward, (T,))


def test_call_without_a_signature():
    leaves, spec = flatten_call(dict, ([T],), {"k": T})
    assert [leaf.path for leaf in leaves] == ["0.0", "k"]
    assert spec.unflatten([1, 2]) == (([1],), {"k": 2})


def test_pytree_registration_is_used():
    class Boxes:
        def __init__(self, t: Any, label: str):
            self.t, self.label = t, label

    from torch.utils import _pytree

    _pytree.register_pytree_node(Boxes, lambda b: ([b.t], b.label), lambda m, label: Boxes(*m, label))
    leaves, spec = flatten([Boxes(T, "cat")])
    assert [leaf.path for leaf in leaves] == ["0.0"]
    made = spec.unflatten([T + 1])[0]
    assert (made.label, made.t[0].item()) == ("cat", 1)


def test_unknown_objects_are_constants():
    thing = object()
    leaves, spec = flatten((thing, T))
    assert len(leaves) == 1
    assert spec.constants[0].value is thing


def test_transformers_cache_and_output():
    transformers = pytest.importorskip("transformers", reason="the zoo extra is not installed")
    cache = transformers.DynamicCache()
    for layer in range(2):
        cache.update(torch.ones(1, 2, 3, 4) * layer, torch.zeros(1, 2, 3, 4), layer)
    leaves, spec = flatten({"past": cache})
    assert [leaf.path for leaf in leaves] == ["past.0.key", "past.0.value", "past.1.key", "past.1.value"]
    made = spec.unflatten([leaf.value[..., :2, :] for leaf in leaves])["past"]
    assert type(made) is type(cache)
    assert (made.get_seq_length(), cache.get_seq_length()) == (2, 3)
    made.update(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4), 0)
    assert (made.get_seq_length(), cache.get_seq_length()) == (3, 3)
    again = spec.unflatten([leaf.value for leaf in leaves])["past"]
    assert again.get_seq_length() == 3

    from transformers.modeling_outputs import BaseModelOutputWithPast

    output = BaseModelOutputWithPast(last_hidden_state=T, past_key_values=cache)
    names = paths(output)
    assert names[0] == "last_hidden_state"
    assert names[1].endswith("0.key")
    made = rebuilt(output)
    assert type(made) is type(output)
    assert made["last_hidden_state"] is T
    assert list(made.keys()) == list(output.keys())


def test_encoder_decoder_cache():
    transformers = pytest.importorskip("transformers", reason="the zoo extra is not installed")
    own, cross = transformers.DynamicCache(), transformers.DynamicCache()
    own.update(torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 3), 0)
    cross.update(torch.ones(1, 1, 5, 3), torch.ones(1, 1, 5, 3), 0)
    both = transformers.EncoderDecoderCache(own, cross)
    assert paths(both) == [f"{kind}_attention_cache.0.{part}" for kind in ("self", "cross") for part in ("key", "value")]
    made = rebuilt(both)
    assert made.get_seq_length() == both.get_seq_length() == 2


nested = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just(T)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3), st.tuples(inner, inner).map(lambda p: Pair(*p)),
    ),
    max_leaves=12,
)


@given(nested)
def test_round_trip(value: Any):
    leaves, spec = flatten(value)
    assert spec.count == len(leaves)
    # Equality of nested objects asks `T == T`, so let every tensor be the same number first.
    marked = spec.unflatten(list(range(len(leaves))))
    again, _ = flatten(spec.unflatten([leaf.value for leaf in leaves]))
    assert [leaf.path for leaf in again] == [leaf.path for leaf in leaves]
    assert type(marked) is type(value) or isinstance(value, torch.Tensor)
