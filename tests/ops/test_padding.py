"""Padding in all modes: pads that add, that cut, that depend on sizes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tests.ops.harness import NEWEST, OPSETS, Case, check, expand


def r(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))) * 9).to(dtype)


IMAGES = [(r(1, 3, 5, 7),), (r(2, 3, 4, 4),)]
HW = {0: {0: "n", 2: "h", 3: "w"}}
EXTRA = (7, 9, 11, 13, 18, 19, 21, NEWEST)
MODES = ("reflect", "replicate", "circular")
CASES = [
    Case("constant", lambda x: F.pad(x, (1, 2, 0, 3)), (r(2, 3, 5, 4),), IMAGES, "all", EXTRA),
    Case("constant_value", lambda x: F.pad(x, (1, 2, 0, 3, 1, 1), value=-1.5), (r(2, 3, 5, 4),), IMAGES, "all", EXTRA),
    Case("constant_cut", lambda x: F.pad(x, (-1, 2, 1, -2), value=float("inf")), (r(2, 3, 5, 4),), IMAGES, "all", EXTRA),
    Case("constant_by_size", lambda x: F.pad(x, (0, 8 - x.shape[3], x.shape[2], 0)), (r(2, 3, 5, 4),),
         [(r(1, 3, 2, 7),), (r(1, 3, 3, 9),)], HW,
         refused={9: "needs opset 11"}),
    *(Case(f"constant_{dtype}", lambda x: F.pad(x, (1, 2), value=1), (r(2, 3, dtype=dtype),), [(r(4, 2, dtype=dtype),)], "all")
      for dtype in (torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool, torch.float64, torch.float16)),
    Case("constant_1d", lambda x: F.pad(x, (1, 2)), (r(3),), [(r(5),), (r(0),)], "all"),
    Case("constant_nothing", lambda x: F.pad(x, (0, 0)), (r(3),)),
    Case("constant_empty", lambda x: F.pad(x, (1, 2, 1, 0)), (r(0, 3),)),
    *(Case(mode, lambda x, mode=mode: F.pad(x, (1, 2, 0, 3), mode=mode), (r(2, 3, 5, 4),), IMAGES, HW, EXTRA) for mode in MODES),
    *(Case(f"{mode}_cut", lambda x, mode=mode: F.pad(x, (2, -1, -2, 1), mode=mode), (r(2, 3, 5, 4),), IMAGES, HW, EXTRA) for mode in MODES),
    *(Case(f"{mode}_1d", lambda x, mode=mode: F.pad(x, (3, 2), mode=mode), (r(2, 3, 5),), [(r(1, 3, 4),)], {0: {0: "n", 2: "l"}})
      for mode in MODES),
    *(Case(f"{mode}_3d", lambda x, mode=mode: F.pad(x, (1, 2, 0, 1, 1, 1), mode=mode), (r(2, 3, 3, 5, 4),)) for mode in MODES),
    *(Case(f"{mode}_unbatched", lambda x, mode=mode: F.pad(x, (1, 2, 0, 3), mode=mode), (r(3, 5, 4),))
      for mode in ("reflect", "replicate")),
    *(Case(f"{mode}_double", lambda x, mode=mode: F.pad(x, (1, 2), mode=mode), (r(2, 3, 5, dtype=torch.float64),)) for mode in MODES),
    *(Case(f"{mode}_half", lambda x, mode=mode: F.pad(x, (1, 2), mode=mode), (r(2, 3, 5, dtype=torch.float16),)) for mode in MODES),
    Case("circular_whole", lambda x: F.pad(x, (4, 4), mode="circular"), (r(2, 3, 4),), [(r(2, 3, 6),)], {0: {2: "l"}}),
    Case("circular_int", lambda x: F.pad(x, (1, 2), mode="circular"), (r(2, 3, 4, dtype=torch.int64),)),
    Case("circular_by_size", lambda x: F.pad(x, (x.shape[2] // 2, 1), mode="circular"), (r(2, 3, 4),), [(r(2, 3, 7),)], {0: {2: "l"}},
         refused={9: "needs opset 10"}),
    *(Case(f"sequence_{side}_{first}", lambda x, y, z, side=side, first=first: pad_sequence([x, y, z], first, -2.0, padding_side=side),
           (r(3, 2), r(5, 2), r(1, 2)), [(r(6, 2), r(2, 2), r(4, 2)), (r(1, 2), r(1, 2), r(7, 2)), (r(0, 2), r(3, 2), r(3, 2))],
           {0: {0: "a"}, 1: {0: "b"}, 2: {0: "c"}}, EXTRA, refused={7: "needs opset", 9: "needs opset 11"})
      for side in ("left", "right") for first in (True, False)),
    Case("sequence_vectors", lambda x, y: pad_sequence([x, y]), (r(3, dtype=torch.int64), r(5, dtype=torch.int64)),
         [(r(6, dtype=torch.int64), r(2, dtype=torch.int64)), (r(4, dtype=torch.int64), r(4, dtype=torch.int64))],
         {0: {0: "a"}, 1: {0: "b"}}, (11, 17, NEWEST)),
    Case("sequence_mixed", lambda x, y: pad_sequence([x, y.double()]), (r(3, 2), r(5, 2))),
    Case("layers", lambda x: (torch.nn.ZeroPad2d(1)(x), torch.nn.ReflectionPad2d((1, 0, 2, 1))(x), torch.nn.ReplicationPad2d(2)(x)),
         (r(2, 3, 5, 4),), IMAGES, HW, OPSETS),
]


@expand(CASES)
def test_padding(case: Case, opset: int) -> None:
    check(case, opset)
