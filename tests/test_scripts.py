# ruff: noqa: UP006, UP035, UP045, PERF401, RUF007 - scripts are written in what TorchScript reads
"""Scripts with control flow and Python data, each at several opsets, with inputs that take every branch and no, one and many turns."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import onnxport
from onnxport import structure
from onnxport.options import newest_opset

onnxruntime.set_default_logger_severity(4)
OPSETS = (11, 13, 18, newest_opset())
_NUMPY = {bool: np.bool_, int: np.int64, float: np.float32}


@dataclass
class Row:
    """One script. calls: argument tuples; the first is the example.   refused: a pattern of the error that every opset gives (strict)."""

    script: Any
    calls: Sequence[tuple[Any, ...]]
    axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    refused: str = ""
    most: int | None = None


ROWS: dict[str, Row] = {}


def row(*calls: tuple[Any, ...], refused: str = "", **axes: Any) -> Callable[[Any], Any]:
    """Enters a function, or the module that a class makes."""
    def enter(script: Any) -> Any:
        name = script.__name__
        assert name not in ROWS
        ROWS[name] = Row(script, calls, axes, refused)
        return script
    return enter


def t(*numbers: float) -> Tensor:
    return torch.tensor([float(n) for n in numbers])


def scripted(script: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(script().eval() if isinstance(script, type) else script)


def session(script: Any, args: tuple[Any, ...], opset: int, axes: Any = None) -> onnxruntime.InferenceSession:
    stream = io.BytesIO()
    onnxport.export(script, args, stream, opset_version=opset, dynamic_axes=axes or None, mutations="ignore")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(stream.getvalue(), options, providers=["CPUExecutionProvider"])


def copied(arg: Any) -> Any:
    if isinstance(arg, Tensor):
        return arg.clone()
    if isinstance(arg, list):
        return [copied(a) for a in arg]
    return {k: copied(v) for k, v in arg.items()} if isinstance(arg, dict) else arg


def compare(run: onnxruntime.InferenceSession, script: Any, args: tuple[Any, ...]) -> None:
    with torch.no_grad():
        result = script(*[copied(a) for a in args])
    leaves, spec = structure.flatten(result if isinstance(result, (tuple, list, dict)) else (result,))
    want = [leaf.value if isinstance(leaf.value, Tensor) else torch.tensor(leaf.value) for leaf in spec.leaves([x.value for x in leaves])
            if leaf.value is not None]
    given, spec = structure.flatten(tuple(args))
    feeds = [leaf.value.numpy() if isinstance(leaf.value, Tensor) else np.asarray(leaf.value, _NUMPY[type(leaf.value)])
             for leaf in spec.leaves([x.value for x in given]) if leaf.value is not None and not isinstance(leaf.value, str)]
    names = [i.name for i in run.get_inputs()]
    got = run.run(None, dict(zip(names, feeds, strict=True)))
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.numpy().dtype
        assert a.shape == tuple(b.shape)
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-4, atol=1e-5)


# --- branches ------------------------------------------------------------------------------------------------------------------


@row((t(1, 2),), (t(-1, -2),))
def if_else(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        y = x * 2
    else:
        y = x - 1
    return y


@row((t(1, 2),), (t(-1, -2),), (t(0, 0),))
def elif_chain(x: Tensor) -> Tensor:
    s = x.sum()
    if s > 1:
        return x * 2
    if s < -1:
        return x - 5
    return x.abs() + 3


@row((t(1, 2),), (t(-1, -2),))
def ternary(x: Tensor) -> Tensor:
    return x if bool(x[0] > 0) else -x


@row((t(1, 2),), (t(-1, 2),), (t(1, -2),), (t(-1, -2),))
def and_or(x: Tensor) -> Tensor:
    if bool(x[0] > 0) and bool(x[1] > 0):
        return x * 2
    if bool(x[0] > 0) or bool(x[1] > 0):
        return x * 3
    return x


@row((t(1, 2),), (t(-1, 2),))
def negation(x: Tensor) -> Tensor:
    flag = not bool(x[0] > 0)
    return x + 1 if flag else x + 2


@row((t(1, 2),), (t(1, 2, 3),), x={0: "n"})
def branch_of_other_size(x: Tensor) -> Tensor:
    if x.size(0) > 2:
        return torch.cat([x, x])
    return x


@row((t(1, 2), 3), (t(1, 2), -3))
def number_of_a_branch(x: Tensor, n: int) -> Tensor:
    k = 5 if n > 0 else n
    return x * k


@row((t(1, 2), 0.5), (t(1, 2), -0.5))
def float_of_a_branch(x: Tensor, a: float) -> Tuple[Tensor, Tensor]:
    s = a * 2 if a > 0 else 0.25
    return x * s, x + s


@row((t(1, 2), True), (t(1, 2), False))
def bool_input(x: Tensor, flag: bool) -> Tensor:
    return x if flag else x * 2


@row((t(1, 2),), (t(-1, 2),))
def several_results(x: Tensor) -> Tuple[Tensor, Tensor]:
    a, b = x, x * 2
    if bool(x[0] > 0):
        a, b = b, a
    return a, b


@row((t(1, 2),), (t(-1, 2),))
def nested_branches(x: Tensor) -> Tensor:
    if bool(x[0] > 0):
        if bool(x[1] > 1):
            y = x * 2
        else:
            y = x * 3
    else:
        y = x * 4 if bool(x[1] > 5) else x * 5
    return y


@row((torch.ones(2, 3),), refused="rank")
def branch_of_other_rank(x: Tensor) -> Tensor:
    y = x.sum(0) if bool(x[0, 0] > 0) else x
    return y.softmax(y.dim() - 1) + y.size(0)


@row((t(1, 2),), refused="dtype")
def branch_of_other_dtype(x: Tensor) -> Tensor:
    return x if bool(x[0] > 0) else x.to(torch.int64)


@row((t(1, 2),))
def known_branch(x: Tensor) -> Tensor:
    if x.dim() == 1 and x.dtype == torch.float32 and x.is_floating_point():
        return x * 2
    return x.special_nothing_of_the_kind() if False else x.view(7)


@row((t(1, 2),), (t(1, 3),))
def assertion(x: Tensor) -> Tensor:
    assert bool(x.sum() > 0), f"sum of {x.size(0)} numbers is {x.sum()}"
    if bool(x[0] < 0):
        raise RuntimeError("negative")
    return x * 2


@row((t(1, 2),), refused="raises: RuntimeError: never")
def always_raises(x: Tensor) -> Tensor:
    if x.dim() == 1:
        raise RuntimeError("never")
    return x


# --- loops ---------------------------------------------------------------------------------------------------------------------


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 1))
def for_range(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x + i
    return x


@row((t(1, 2), 9), (t(1, 2), 0), (t(1, 2), 3))
def for_range_steps(x: Tensor, n: int) -> Tensor:
    for i in range(2, n, 3):
        x = x * i
    for i in range(n, 1, -2):
        x = x + i
    return x


@row((t(1, 2, 3),), (t(4),), (torch.zeros(0),), x={0: "n"})
def for_over_tensor(x: Tensor) -> Tensor:
    s = torch.zeros(())
    for v in x:
        s = s * 2 + v
    return s


@row((t(9, 2),), (t(0.5, 0.1),), (t(100, 3),))
def while_loop(x: Tensor) -> Tensor:
    while bool(x.max() > 1):
        x = x / 2
    return x


@row((t(1, 2), 10), (t(1, 2), 0))
def while_number(x: Tensor, n: int) -> Tuple[Tensor, int]:
    i = 0
    while i * i < n:
        x = x + i
        i += 1
    return x, i


@row((t(1, 1, 1, 1),), (t(5, 1),), (t(0.1, 0.1),), x={0: "n"})
def break_(x: Tensor) -> Tensor:
    s = torch.zeros(())
    for i in range(x.size(0)):
        s = s + x[i]
        if bool(s > 2):
            break
    return s


@row((t(1, -1, 1, 1),), (t(-5, -1),), x={0: "n"})
def continue_(x: Tensor) -> Tensor:
    s = torch.zeros(())
    for i in range(x.size(0)):
        if bool(x[i] < 0):
            continue
        s = s + x[i] * i
    return s


@row((t(1, 1, 5, 1),), (t(1, 1, 1),), x={0: "n"})
def return_in_a_loop(x: Tensor) -> Tensor:
    for i in range(x.size(0)):
        if bool(x[i] > 3):
            return x * i
    return x - 1


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 1))
def nested_loops(x: Tensor, n: int) -> Tuple[Tensor, int]:
    s = 0
    for i in range(n):
        for j in range(i):
            if (i + j) % 2 == 0:
                s += j
            else:
                x = x + s
    return x, s


@row((t(1, 2), 3), (t(1, 2), 0))
def growing(x: Tensor, n: int) -> Tensor:
    y = x
    for _ in range(n):
        y = torch.cat([y, x])
    return y


@row((torch.arange(12.0).reshape(4, 3),), (torch.ones(1, 3),), x={0: "n"})
def shrinking(x: Tensor) -> Tensor:
    while x.size(0) > 1:
        x = x[1:] + x[:-1]
    return x


@row((t(1, 2),))
def few_known_turns(x: Tensor) -> Tensor:
    for i in range(3):
        x = x * 2 + i
    return x


@row((t(1, 2),))
def many_known_turns(x: Tensor) -> Tensor:
    for i in range(100):
        x = (x + i) * 0.5
    return x


@row((t(1, 2), 5), (t(1, 2), 1), (t(1, 2), 0))
def fibonacci(x: Tensor, n: int) -> Tensor:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return x * a


@row((t(1, 2), 3), (t(1, 2), -3))
def negative_numbers(x: Tensor, n: int) -> Tensor:
    k = n
    for _ in range(2):
        k = k - 2
    if k >= 0:
        return x * k
    return x - k


@row((t(1, 2), 0.5, 3), (t(1, 2), 0.25, 0))
def float_carried(x: Tensor, a: float, n: int) -> Tensor:
    for _ in range(n):
        a = a * 1.5 + 1
    return x * a


@row((t(1, 2), 3), (t(1, 2), 0))
def first_turn(x: Tensor, n: int) -> Tensor:
    first = True
    for _ in range(n):
        if first:
            x = x * 10
            first = False
        else:
            x = x + 1
    return x


@row((t(1, 2), 3), refused="dtype changes")
def dtype_changes(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(2, dtype=torch.int64)
    for _ in range(n):
        y = y + x
    return y


# --- lists ---------------------------------------------------------------------------------------------------------------------


@row((t(1, 2), 3), (t(1, 2), 1))
def append_and_stack(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for _ in range(n):
        x = x * 2
        xs.append(x)
    return torch.stack(xs)


@row((torch.arange(6.0).reshape(2, 3), 3), (torch.ones(2, 3), 1), x={0: "a", 1: "b"})
def append_and_cat(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    xs = [x]
    for i in range(n):
        xs.append(x + i)
    return torch.cat(xs, 1), torch.stack(xs, -1)


@row((t(1, 2), 3), (t(1, 2), 1), (t(1, 2), 0))
def append_twice(x: Tensor, n: int) -> Tensor:
    xs = [x]
    for i in range(n):
        xs.append(x * i)
        xs.append(x + i)
    return torch.stack(xs)


@row((t(1, 2),), (t(-1, 2),))
def append_in_a_branch(x: Tensor) -> Tensor:
    xs = [x]
    if bool(x[0] > 0):
        xs.append(x * 2)
    return torch.stack(xs).sum(0)


@row((t(1, 0.1), 3), (t(1, 20), 3), (t(0.1, 0.2), 8))
def append_until(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    xs: List[Tensor] = [x]
    for _ in range(n):
        if bool(x.sum() > 4):
            break
        x = x * 2
        xs.append(x)
    return torch.stack(xs), x


@row((t(1, 2, 3, 4),), (t(1, 2, -3, 4),), x={0: "n"})
def list_of_numbers(x: Tensor) -> Tensor:
    found: List[int] = [0]
    for i in range(x.size(0)):
        if bool(x[i] > 1):
            found.append(i)
    return torch.tensor(found)


@row((t(1, 2),))
def list_methods(x: Tensor) -> Tensor:
    xs = [x, x * 2, x * 3]
    xs.insert(1, x * 10)
    last = xs.pop()
    xs.extend([last, x * 7])
    xs[0] = x * 100
    del xs[1]
    xs.reverse()
    return torch.stack(xs[1:] + [x])


@row((t(1, 2), 3), (t(1, 2), 2))
def list_read_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x, x + 1]
    for i in range(n):
        xs.append(xs[-1] + xs[i])
    return xs[n]


@row((t(1, 2), 1), (t(1, 2), 0), (t(1, 2), -1))
def dynamic_index(x: Tensor, i: int) -> Tensor:
    xs = [x, x * 2, x * 3]
    return xs[i]


@row((t(1, 2, 3),), (t(1,),), x={0: "n"})
def comprehension(x: Tensor) -> Tensor:
    xs = [x * i for i in range(3)]
    return torch.stack([y + 1 for y in xs])


@row((t(1, 2, 3), [t(1, 1, 1), t(2, 2, 2)]))
def list_input(x: Tensor, ys: List[Tensor]) -> Tensor:
    for i, y in enumerate(ys):
        x = x + y * i
    for a, b in zip(ys, ys[1:]):
        x = x - a * b
    return x + len(ys)


@row((t(1, 2, 3, 4),), x={0: "n"})
def list_length(x: Tensor) -> Tensor:
    xs: List[Tensor] = []
    for i in range(x.size(0)):
        xs.append(x[i])
    return x * len(xs)


@row((t(1, 2), 3), refused="differ from turn to turn|different shapes")
def ragged_list(x: Tensor, n: int) -> Tensor:
    xs: List[Tensor] = []
    for i in range(n):
        xs.append(torch.zeros(i))
    return torch.cat(xs)


@row((torch.arange(4.0),), (t(1, 2),), x={0: "n"})
def windows(x: Tensor) -> Tensor:
    xs: List[Tensor] = []
    for i in range(x.size(0)):
        xs.append(x[i:].sum())
    return torch.stack(xs)


@row((torch.arange(6.0).reshape(3, 2),), (torch.ones(1, 2),), x={0: "n"})
def unbind_loop(x: Tensor) -> Tensor:
    s = torch.zeros(2)
    for row_ in x.unbind(0):
        s = s + row_
    return s


# --- other data ----------------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


@row((t(1, 2),), (t(-1, 2),))
def named_tuple(x: Tensor) -> Tuple[Tensor, Tensor]:
    p = Pair(x, x * 2)
    if bool(x[0] > 0):
        p = Pair(p.right, p.left)
    return p.left, p.right


@row((t(1, 2), 3), (t(1, 2), 0))
def tuple_carried(x: Tensor, n: int) -> Tensor:
    p = (x, x * 2)
    for _ in range(n):
        p = (p[1], p[0] + p[1])
    return p[0]


@row((t(1, 2),))
def dictionary(x: Tensor) -> Dict[str, Tensor]:
    d = {"a": x, "b": x * 2}
    d["c"] = d["a"] + d["b"]
    if "q" in d:
        d["a"] = x * 100
    return d


@row(({"a": t(1, 2), "b": t(3, 4)},))
def dictionary_input(d: Dict[str, Tensor]) -> Tensor:
    return d["a"] - d["b"]


@row((t(1, 2), True), (t(1, 2), False))
def optional(x: Tensor, flag: bool) -> Tensor:
    extra: Optional[Tensor] = None
    if flag:
        extra = x * 3
    if extra is not None:
        x = x + extra
    return x


@row((t(1, 2), None))
def optional_input(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    return x if y is None else x + y


@row((t(1, 2), 3), (t(1, 2), 0), (t(1, 2), 1))
def optional_carried(x: Tensor, n: int) -> Tensor:
    before: Optional[Tensor] = None
    for _ in range(n):
        if before is None:
            before = x
        else:
            before = before * 2 + x
    return x if before is None else before


@row((t(1, 2), 3), (t(1, 2), 7))
def numbers(x: Tensor, n: int) -> Tuple[Tensor, int, float, bool]:
    return x * (n // 2) + n % 3, max(n, 5) - min(n, 4), float(n) / 2, n > 4


@row((t(1, 2), "a"))
def string_input(x: Tensor, mode: str) -> Tensor:
    return x if mode == "a" else x * 2


@row((torch.tensor([3, 1, 2]),))
def scalars_of_tensors(x: Tensor) -> Tensor:
    n = int(x[0])
    m = x[1].item()
    return torch.zeros(n) + float(x[2]) + m


# --- mutation ------------------------------------------------------------------------------------------------------------------


@row((t(1, 2),), (t(-1, 2),))
def write_in_a_branch(x: Tensor) -> Tensor:
    y = x.clone()
    if bool(x[0] > 0):
        y[0] = 5.0
    else:
        y += 1
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def write_in_a_loop(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(4, 2)
    for i in range(n):
        y[i] = x * i
        y[i, 0] += 1
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def write_through_a_view(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    y = x * 2
    v = y[:1]
    while n > 0:
        v += 1
        n -= 1
    return y, v


@row((t(1, -2, 3),), (t(-1, 2, -3),))
def write_in_nested_blocks(x: Tensor) -> Tensor:
    y = x * 1
    for i in range(3):
        for j in range(i):
            if bool(y[j] > 0):
                y[i] -= y[j]
            else:
                y.mul_(2)
    return y


@row((torch.arange(10.0), torch.tensor([1, 2, 3, 4])), (torch.arange(6.0), torch.tensor([4, 2])), flat={0: "a"}, lengths={0: "b"})
def pad_ragged(flat: Tensor, lengths: Tensor) -> Tensor:
    out = torch.zeros([lengths.size(0), int(lengths.max())], dtype=flat.dtype)
    start = 0
    for i in range(lengths.size(0)):
        n = int(lengths[i])
        out[i, :n] = flat[start : start + n]
        start = start + n
    return out


@row((t(1, 2), 3), refused="clone it")
def written_and_listed(x: Tensor, n: int) -> Tensor:
    s = x * 0
    xs: List[Tensor] = []
    for _ in range(n):
        s += x
        xs.append(s)
    return torch.stack(xs)


@row((t(1, 2),), refused="clone it")
def written_in_a_list(x: Tensor) -> Tensor:
    a = x * 1
    xs = [a]
    xs.append(a * 2)
    xs[0] += 1
    return a


# --- who shares what -----------------------------------------------------------------------------------------------------------


@row((t(1, 2), 3), (t(1, 2), 0), refused="clone it")
def swapped_and_written(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    a, b = x * 1, x * 2
    for _ in range(n):
        a += 1
        a, b = b, a
    return a, b


@row((t(1, 2),), refused="clone it")
def one_of_two_is_written(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x * 1
    z = y if bool(x[0] > 0) else x * 3
    z += 1
    return y, z


@row((t(1, 2),), refused="clone it")
def converted_and_written(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x.to(torch.float32)
    y += 1
    return y, x


@row((t(1, 2), 3), (t(1, 2), 1))
def written_after_a_new_start(x: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    y = x * 1
    z = y
    for _ in range(n):
        y = y * 2
        y += 1
    return y, z


@row((t(1, 2, 3), 2), (t(1, 2, 3), 0))
def overlapping_slices(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(5)
    y[1:3] = x[:2]
    for i in range(n):
        y[i : i + 2] += x[:2]
    return y


@row((t(1, 2), 3), (t(1, 2), 0))
def list_assigned_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x]
    for i in range(n):
        xs = xs + [x * i]
    return torch.stack(xs)


@row((t(1, 2), 3), (t(1, 2), 0))
def list_replaced_in_a_loop(x: Tensor, n: int) -> Tensor:
    xs = [x, x * 2]
    for i in range(n):
        new: List[Tensor] = []
        for h in xs:
            new.append(h + i)
        xs = new
    return xs[0] - xs[1]


@row((t(1, 2), 2), (t(1, 2), 0))
def list_of_either_branch(x: Tensor, n: int) -> Tensor:
    if n > 1:
        xs = [x]
        xs.append(x * 2)
    else:
        xs = [x * 3, x]
    xs.append(x)
    return torch.stack(xs)


@row((t(1, 2), 2), refused="copy it first")
def one_of_two_lists_is_changed(x: Tensor, n: int) -> Tensor:
    xs, zs = [x], [x * 2]
    ys = xs if n > 1 else zs
    ys.append(x)
    return torch.stack(xs)


@row((t(1, 2), 9), (t(1, 2), 0), (t(0.1, 0.1), 2))
def flag_ends_the_loop(x: Tensor, n: int) -> Tuple[Tensor, int, bool]:
    done, i = False, 0
    while not done:
        i += 1
        x = x + 1
        done = bool(x.sum() > 12) or i >= n
    return x, i, done


@row((torch.arange(9.0),), (torch.ones(1),), (torch.ones(4),), x={0: "n"})
def halved(x: Tensor) -> Tuple[Tensor, int]:
    k = x.size(0)
    while k > 1:
        k = k // 2
        x = x[:k] * 2
    return x, k


@row((t(1, -2, 3),), (t(-1, -2, -3),))
def masked_in_a_branch(x: Tensor) -> Tensor:
    mask = x > 0
    if bool(mask.any()):
        x = x[mask]
    return x


@row((t(1, 2), 3), (t(1, 2), 1))
def dict_written_in_a_branch(x: Tensor, n: int) -> Tensor:
    d: Dict[str, Tensor] = {}
    d["a"] = x
    if n > 2:
        d["a"] = x * 2
    return d["a"]


@row((t(1, 2), 2), (t(1, 2), 1), (t(1, 2), 5))
def queue(x: Tensor, n: int) -> Tensor:
    q: List[Tensor] = []
    for i in range(n):
        q.append(x * i)
        if len(q) > 2:
            q.pop(0)
    return torch.stack(q)


@row((t(1, 5, 3), 2), (t(-4, -3, -9), 1))
def best(x: Tensor, n: int) -> Tuple[Tensor, int]:
    most, where = float("-inf"), -1
    for i in range(x.size(0)):
        v = float(x[i])
        if v > most:
            most, where = v, i
    return x * most * n, where


@row((t(1, 2, 3), 2), (t(1, 2, 3), 1))
def nested_lists(x: Tensor, n: int) -> Tensor:
    rows: List[List[Tensor]] = []
    for i in range(2):
        row_: List[Tensor] = []
        for j in range(2):
            row_.append(x * (i + j * n))
        rows.append(row_)
    return rows[1][0] + rows[0][1]


# --- modules -------------------------------------------------------------------------------------------------------------------


@row((torch.ones(2, 3),))
class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3), nn.ReLU()])
        self.last = nn.Sequential(nn.Linear(3, 4), nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        if self.training:
            x = x + 1
        return self.last(x)


@row((t(1, 2), 3), (t(1, 2), 0))
class Buffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor, n: int) -> Tensor:
        kept = self.count
        for _ in range(n):
            self.count = self.count + 1
        x = x * self.count
        self.count = kept
        return x


@row((torch.ones(2, 3, 4), 2), (torch.ones(2, 3, 4), 0))
class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 5)

    def forward(self, x: Tensor, n: int) -> Tensor:
        h = torch.zeros(x.size(0), 5)
        for i in range(n):
            h = self.cell(x[:, i], h)
        return h


# --- the tests -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", ROWS)
def test_script(name: str, opset: int) -> None:
    torch.manual_seed(0)
    found = ROWS[name]
    script = scripted(found.script)
    if found.refused:
        with pytest.raises(onnxport.errors.OnnxExporterError, match=found.refused) as caught:
            session(script, found.calls[0], opset, found.axes)
        assert "test_scripts.py" in str(caught.value)
        return
    run = session(script, found.calls[0], opset, found.axes)
    for call in found.calls:
        compare(run, script, call)


def nodes(graph: Any) -> int:
    """How many nodes there are, those of subgraphs too."""
    return sum(1 + sum(nodes(attr.value) for attr in node.attributes.values() if attr.type.name == "GRAPH") for node in graph)


class Inner(nn.Module):
    """LSTM has several forwards; a script chooses among them where it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)[0]


def _resnet() -> nn.Module:
    models = pytest.importorskip("torchvision.models")
    made: nn.Module = models.resnet18(num_classes=5)
    return made


@pytest.mark.parametrize(("make", "size"), [
    (_resnet, (1, 3, 32, 32)), (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (2, 5, 16)), (Inner, (2, 5, 4))])
def test_no_more_nodes_than_a_trace(make: Callable[[], nn.Module], size: tuple[int, ...]) -> None:
    model, args = make().eval(), (torch.rand(size),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(model)
    axes = {"x": {0: "n"}}
    traced = onnxport.export(model, args, input_names=["x"], dynamic_axes=axes)
    program = onnxport.export(script, args, input_names=["x"], dynamic_axes=axes)
    assert nodes(program.model.graph) <= nodes(traced.model.graph)
    compare(session(script, args, 18), script, args)


def test_loaded_files(tmp_path: Any) -> None:
    script = scripted(Cell)
    torch.jit.save(script, tmp_path / "a.pt")
    loaded = torch.jit.load(tmp_path / "a.pt")
    args = torch.ones(2, 3, 4), 2
    compare(session(loaded, args, 18), loaded, args)
    compare(session(tmp_path / "a.pt", args, 18), loaded, args)
    torch.save({"a": torch.ones(2)}, tmp_path / "b.pt")
    with pytest.raises(onnxport.errors.ArgumentError, match="state_dict"):
        session(tmp_path / "b.pt", args, 18)
    frozen = torch.jit.freeze(script)
    compare(session(frozen, args, 18), frozen, args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(Layers().eval(), (torch.ones(2, 3),))
    compare(session(traced, (torch.ones(4, 3),), 18), traced, (torch.ones(4, 3),))


def test_scripts_in_traces() -> None:
    loop = scripted(ROWS["growing"].script)
    write = scripted(ROWS["write_in_a_loop"].script)

    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return loop(x * 2, 3) + write(x, 2).sum()

    model = Model()
    run = session(model, (t(1, 2),), 18)
    compare(run, model, (t(1, 2),))


def statements(count: int) -> Any:
    lines = ["def many(x: Tensor, n: int) -> Tensor:"]
    for index in range(count // 5):
        lines += [f"    if bool(x[0] > {index}):", "        x = x + 1", "    else:", "        x = x * 0.5", f"    n = n + {index}"]
    source = "\n".join([*lines, "    return x * n"]) + "\n"
    return torch.jit.CompilationUnit(source).many


def test_linear() -> None:
    from onnxport.target.builder import Builder

    counts = []
    calls = [0]
    kept = Builder.op

    def op(self: Builder, *args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return kept(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Builder, "op", op)
        for count in (125, 250, 500):
            calls[0] = 0
            onnxport.export(statements(count), (t(1, 2), 3))
            counts.append(calls[0])
    assert counts[2] - counts[1] <= 2.1 * (counts[1] - counts[0])


def test_nested_loops_are_linear_in_their_depth() -> None:
    from onnxport.lower import looping

    def nest(depth: int) -> Any:
        lines = ["def nested(x: Tensor, n: int) -> Tensor:", "    k = 0"]
        for level in range(depth):
            lines += ["    " * (level + 1) + f"for i{level} in range(n):", "    " * (level + 2) + "x = x + k"]
        lines += ["    " * (depth + 1) + "k = k + 1"]
        return torch.jit.CompilationUnit("\n".join([*lines, "    return x"]) + "\n").nested

    counts = []
    kept = looping._Looping.attempt
    calls = [0]

    def attempt(self: Any) -> Any:
        calls[0] += 1
        return kept(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looping._Looping, "attempt", attempt)
        for depth in (2, 4, 6):
            calls[0] = 0
            script = nest(depth)
            compare(session(script, (t(1, 2), 2), 18), script, (t(1, 2), 2))
            counts.append(calls[0])
    assert counts[2] <= 5 * counts[0]
    assert counts[2] <= 60


class Choosing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(2, 2), nn.Dropout()

    def forward(self, x: Tensor, double: bool = True) -> Tensor:
        if bool(x.sum() > 0):
            x = self.drop(self.linear(x))
        return x * 2 if double else x


def test_scripted_modules_in_traces() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = scripted(Choosing)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x * 2, double=False) + self.inner(x)

    model = Model().eval()
    program = onnxport.export(model, (t(1, 2),), input_names=["x"])
    assert {"inner.linear.weight", "inner.linear.bias"} <= {name.removesuffix("_transposed") for name in program.model.graph.initializers}
    run = session(model, (t(1, 2),), 18)
    for x in (t(1, 2), t(-1, -2)):
        compare(run, model, (x,))


def test_data_is_the_same_tensor() -> None:
    """`x.data`, which scripts have as an operator of its own."""
    class Data(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.data * 2 + x

    stream = io.BytesIO()
    onnxport.export(torch.jit.script(Data()), (torch.ones(2, 3),), stream)
    x = torch.randn(2, 3)
    (found,) = onnxruntime.InferenceSession(stream.getvalue(), providers=["CPUExecutionProvider"]).run(None, {"x": x.numpy()})
    np.testing.assert_allclose(found, (x * 3).numpy(), rtol=1e-6)
