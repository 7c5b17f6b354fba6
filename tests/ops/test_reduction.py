"""Reductions: every dtype, rank 0, empty tensors, dims in every spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def ints(*sizes: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(-5, 6, sizes).to(dtype)


def bools(*sizes: int) -> torch.Tensor:
    return torch.rand(*sizes) > 0.5


def with_nan(*sizes: int) -> torch.Tensor:
    values = torch.randn(sizes)
    values.view(-1)[::3] = float("nan")
    return values


def of(name: str, *args: Any, **kwargs: Any) -> Callable[[torch.Tensor], Any]:
    return lambda t: getattr(torch, name)(t, *args, **kwargs)


def rows(name: str, *args: Any, make: Callable[..., torch.Tensor] = x, label: str = "", opsets: Any = None, **kwargs: Any) -> Case:
    id = "_".join([name, label]) if label else name
    case = Case(id, of(name, *args, **kwargs), (make(2, 3, 4),), [(make(5, 1, 2),), (make(1, 3, 3),)], "all")
    return case if opsets is None else Case(id, case.function, case.args, case.others, "all", opsets)


EVERY = (7, 9, 11, 13, 18, 20, NEWEST)
CASES = [
    *(Case(name, getattr(torch, name), (bools(2, 3),), [(bools(5, 1),), (torch.ones(4, 3, dtype=torch.bool),), (torch.zeros(0, 2, dtype=torch.bool),)],
           "all", EVERY) for name in ("_is_all_true", "_is_any_true")),
    rows("sum", opsets=EVERY),
    rows("sum", (0, -1), label="dims", opsets=EVERY),
    rows("sum", 1, True, label="keepdim"),
    rows("sum", (), label="no_dims"),
    rows("sum", make=bools, label="bool"),
    rows("sum", 1, make=ints, label="int"),
    rows("sum", 1, make=lambda *s: ints(*s, dtype=torch.int32), label="int32"),
    rows("sum", 1, make=lambda *s: ints(*s, dtype=torch.uint8), label="uint8"),
    rows("sum", dtype=torch.float64, label="dtype"),
    rows("sum", 2, dtype=torch.int32, make=ints, label="to_int32"),
    rows("sum", 0, make=lambda *s: x(*s).half(), label="half"),
    rows("sum", 0, make=lambda *s: x(*s).double(), label="double"),
    Case("sum_scalar", of("sum"), (x(),)),
    Case("sum_scalar_dim", of("sum", -1, True), (x(),)),
    Case("sum_empty", of("sum", 1), (torch.zeros(2, 0),), [(torch.zeros(3, 0),)], {0: {0: "n"}}),
    Case("prod_empty", of("prod", 1), (torch.zeros(2, 0),)),
    Case("mean_empty", of("mean", 1), (torch.zeros(2, 0),)),
    Case("mean_may_be_empty", lambda x: (x[:, 1:].mean(1), x[:, 1:].var(1), x[:, 1:].std(1, unbiased=False)), (torch.randn(2, 4),), [(torch.randn(3, 1),)], "all"),
    Case("mean_of_chosen", lambda x: (x[x > 0].mean(), x[x > 0].std(), F.mse_loss(x[x > 0], x[x > 0])), (torch.randn(9),), [(-torch.ones(4),)], "all"),
    rows("mean", opsets=EVERY),
    rows("mean", (1, -1), True, label="dims", opsets=EVERY),
    rows("mean", dtype=torch.float32, make=ints, label="dtype"),
    rows("mean", 1, make=lambda *s: x(*s).half(), label="half"),
    rows("nansum", 1, make=with_nan, opsets=(9, 11, 18, NEWEST)),
    rows("nansum", make=ints, label="int"),
    rows("nanmean", 1, make=with_nan, opsets=(9, 11, 18, NEWEST)),
    rows("prod"),
    rows("prod", -1, True, label="dim"),
    rows("prod", 1, make=ints, label="int"),
    rows("prod", make=bools, label="bool"),
    rows("logsumexp", -1, opsets=EVERY),
    rows("logsumexp", (0, 2), True, label="dims"),
    rows("logsumexp", 1, make=lambda *s: x(*s) * 1000, label="large"),
    rows("count_nonzero", make=ints),
    rows("count_nonzero", (0, 2), make=lambda *s: ints(*s).float(), label="dims"),
    rows("count_nonzero", 1, make=bools, label="bool"),
    rows("amax", opsets=EVERY),
    rows("amax", (0, -1), True, label="dims"),
    rows("amax", 1, make=bools, label="bool"),
    rows("amax", 1, make=lambda *s: ints(*s, dtype=torch.int8), label="int8"),
    rows("amax", 1, make=lambda *s: ints(*s, dtype=torch.int16), label="int16"),
    rows("amin", -2),
    rows("amin", 1, make=bools, label="bool"),
    rows("amin", make=ints, label="int"),
    rows("aminmax"),
    rows("aminmax", dim=1, keepdim=True, label="dim"),
    rows("max"),
    rows("max", make=bools, label="bool"),
    rows("max", 1, label="dim", opsets=EVERY),
    rows("max", -1, True, label="dim_keepdim"),
    rows("max", 1, make=ints, label="dim_ties"),
    rows("max", 1, make=bools, label="dim_bool"),
    rows("max", 1, make=lambda *s: x(*s).half(), label="dim_half"),
    rows("min", 0, label="dim"),
    rows("min", 1, make=ints, label="dim_ties"),
    rows("min"),
    Case("max_dim_scalar", of("max", 0), (x(),)),
    Case("max_other", torch.max, (x(2, 3), x(3)), [(x(4, 3), x(3))], {0: {0: "n"}}),
    Case("min_other_promotes", torch.min, (ints(2, 3), x(3)), (), None),
    Case("max_other_bool", torch.max, (bools(2, 3), bools(3)), (), None),
    Case("min_other_bool", torch.min, (bools(2, 3), bools(3)), (), None),
    rows("argmax", opsets=EVERY),
    rows("argmax", keepdim=True, label="keepdim"),
    rows("argmax", -1, label="dim", opsets=EVERY),
    rows("argmax", 1, True, make=ints, label="ties"),
    rows("argmin", 0, make=ints, label="ties"),
    rows("argmin", make=lambda *s: ints(*s, dtype=torch.int32), label="int32"),
    rows("argmax", 1, make=lambda *s: x(*s).half(), label="half"),
    Case("argmax_scalar", of("argmax"), (x(),)),
    Case("argmax_vector", of("argmax", keepdim=True), (x(5),), [(x(2),)], "all"),
    rows("any", make=bools, opsets=EVERY),
    rows("any", -1, True, make=bools, label="dim"),
    rows("any", (0, 2), make=bools, label="dims"),
    rows("any", 1, make=lambda *s: ints(*s).float(), label="float"),
    rows("any", 1, make=lambda *s: (ints(*s) > 3).to(torch.uint8), label="uint8"),
    rows("all", make=bools, opsets=EVERY),
    rows("all", -1, True, make=bools, label="dim"),
    rows("all", (0, 2), make=lambda *s: torch.rand(s) > 0.1, label="dims"),
    rows("all", 1, make=ints, label="int"),
    rows("all", (), make=ints, label="no_dims"),
    Case("any_empty", of("any", 1), (torch.zeros(2, 0, dtype=torch.bool),), [(torch.zeros(3, 0, dtype=torch.bool),)], {0: {0: "n"}},
         (9, 18, NEWEST)),
    Case("all_empty", of("all", 1), (torch.zeros(2, 0, dtype=torch.bool),), [(bools(3, 2),)], {0: {0: "n", 1: "m"}}, (9, 18, NEWEST)),
    Case("all_static", of("all", 1), (bools(2, 3),), (), None, (18, 20)),
    Case("any_scalar", of("any"), (torch.tensor(2.0),)),
    Case("var", of("var"), (x(2, 3, 4),), [(x(5, 3, 2),)], "all", EVERY),
    Case("var_dim", of("var", (0, 2), True, True), (x(2, 3, 4),), [(x(5, 3, 2),)], "all"),
    Case("var_biased", of("var", 1, False), (x(2, 3, 4),), [(x(5, 1, 2),)], "all"),
    Case("var_correction", of("var", 1, correction=2), (x(2, 5, 4),), [(x(5, 2, 2),), (x(5, 1, 2),)], "all"),
    Case("var_half", of("var", 1), (x(2, 5, 4).half() * 100,), (), None),
    Case("var_one", of("var", 1), (x(2, 1),), (), None),
    Case("var_scalar", of("var"), (x(),)),
    Case("std_of_nothing", lambda t: torch.std_mean(t), (torch.zeros(0, 3),), opsets=(9, 18)),
    Case("sum_to_size", lambda t: t.sum_to_size(3, 1), (x(2, 3, 4),), [(x(5, 3, 2),)], {0: {0: "a", 2: "c"}}),
    Case("sum_to_size_bool", lambda t: (t.sum_to_size(()), t.sum_to_size(2, 3)), (bools(2, 3),)),
    Case("std", of("std"), (x(2, 3, 4),), [(x(5, 3, 2),)], "all", EVERY),
    Case("std_dim", of("std", -1, keepdim=True), (x(2, 3, 4),), [(x(5, 3, 2),)], "all"),
    Case("std_biased", of("std", 1, False), (x(2, 3, 4),), [(x(5, 3, 2),)], "all"),
    Case("std_double", of("std", 1), (x(2, 3).double(),), (), None, rtol=1e-9, atol=1e-12),
    Case("var_mean", of("var_mean", 1), (x(2, 3, 4),), [(x(5, 3, 2),)], "all"),
    Case("std_mean", of("std_mean"), (x(2, 3, 4),), [(x(5, 3, 2),)], "all"),
]


@expand(CASES)
def test_reduction(case: Case, opset: int) -> None:
    check(case, opset)
