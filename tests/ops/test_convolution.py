"""Convolutions: strides, padding, dilation, groups, transposed, one to three dims, dtypes, dynamic sizes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.ops.harness import NEWEST, Case, check, expand


def r(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


D = torch.float64
HW = {0: {0: "n", 2: "h", 3: "w"}}
IMAGES = [(r(1, 4, 6, 11),), (r(3, 4, 5, 5),)]
EXTRA = (7, 9, 11, 13, 18, 22, NEWEST)
EXACT = {"rtol": 1e-10, "atol": 1e-10}
NO_7 = {7: "needs opset 9"}
WEIGHT, BIAS = r(6, 4, 3, 2), r(6)
TURNED = r(4, 6, 3, 2)
GROUPED, TURNED_GROUPS = r(6, 2, 3, 2), r(4, 3, 3, 2)
LINE, VOLUME, TURNED_LINE, TURNED_VOLUME = r(6, 4, 3), r(6, 4, 1, 2, 2), r(4, 6, 3), r(4, 6, 1, 2, 2)
CASES = [
    Case("conv", nn.Conv2d(4, 6, 3, padding=1), (r(2, 4, 9, 8),), IMAGES, HW, EXTRA),
    Case("all", lambda x: F.conv2d(x, GROUPED, BIAS, (2, 1), (1, 2), (1, 3), 2), (r(2, 4, 9, 8),), IMAGES, HW, EXTRA),
    Case("depthwise", nn.Conv2d(4, 8, 3, groups=4, bias=False), (r(2, 4, 9, 8),), IMAGES, HW),
    Case("same", lambda x: F.conv2d(x, WEIGHT, BIAS, padding="same", dilation=(1, 2)), (r(2, 4, 9, 8),), IMAGES, HW, EXTRA),
    Case("valid", lambda x: F.conv2d(x, WEIGHT, padding="valid", stride=2), (r(2, 4, 9, 8),), IMAGES, HW),
    Case("circular", nn.Conv2d(4, 6, 3, padding=2, padding_mode="circular"), (r(2, 4, 9, 8),), IMAGES, HW),
    Case("conv_1d", nn.Conv1d(4, 6, 3, stride=2, padding=1), (r(2, 4, 9),), [(r(1, 4, 6),)], {0: {0: "n", 2: "l"}}),
    Case("conv_3d", nn.Conv3d(4, 6, (1, 2, 3), padding="same"), (r(2, 4, 3, 5, 4),), [(r(1, 4, 2, 6, 3),)],
         {0: {0: "n", 2: "d", 3: "h", 4: "w"}}),
    Case("unbatched", nn.Conv2d(4, 6, 3), (r(4, 9, 8),), [(r(4, 6, 11),)], {0: {1: "h", 2: "w"}}, EXTRA),
    Case("weight_is_input", lambda x, w, b: F.conv2d(x, w, b, padding=1), (r(2, 4, 9, 8), WEIGHT, BIAS),
         [(r(1, 4, 6, 11), r(2, 4, 1, 3), r(2))],
         {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "o", 2: "k", 3: "l"}, 2: {0: "o"}}),
    Case("half", lambda x: F.conv2d(x, WEIGHT.half(), BIAS.half()), (r(2, 4, 9, 8, dtype=torch.float16),)),
    Case("double", lambda x: F.conv2d(x, GROUPED.double(), BIAS.double(), (2, 1), (1, 2), (1, 3), 2), (r(2, 4, 9, 8, dtype=D),),
         [(r(1, 4, 6, 11, dtype=D),)], HW, EXTRA, NO_7, **EXACT),
    Case("double_1d_3d", lambda x, y: (F.conv1d(x, LINE.double()), F.conv3d(y, VOLUME.double(), padding=1)),
         (r(2, 4, 9, dtype=D), r(2, 4, 3, 5, 4, dtype=D)), **EXACT),
    Case("int64", lambda x: F.conv2d(x, (WEIGHT * 9).long(), padding=1), ((r(2, 4, 9, 8) * 9).long(),)),
    Case("transposed", nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), (r(2, 4, 9, 8),), IMAGES, HW, EXTRA),
    Case("transposed_all", lambda x: F.conv_transpose2d(x, TURNED_GROUPS, BIAS, (2, 3), (1, 2), (1, 2), 2, (1, 3)), (r(2, 4, 9, 8),),
         IMAGES, HW, EXTRA),
    Case("transposed_1d_3d", lambda x, y: (F.conv_transpose1d(x, TURNED_LINE), F.conv_transpose3d(y, TURNED_VOLUME, stride=2)),
         (r(2, 4, 9), r(2, 4, 3, 5, 4))),
    Case("transposed_much_added", lambda x: (F.conv_transpose2d(x, TURNED, BIAS, 2, 1, (3, 2), dilation=4),
                                             F.conv_transpose2d(x, TURNED, BIAS, 1, 3, 2, dilation=3)), (r(2, 4, 9, 8),), IMAGES, HW),
    Case("transposed_unbatched", nn.ConvTranspose2d(4, 6, 3), (r(4, 9, 8),), [(r(4, 6, 11),)], {0: {1: "h", 2: "w"}}),
    Case("transposed_size", lambda x: F.conv_transpose2d(x, TURNED, stride=2), (r(2, 4, 9, 8),), IMAGES, HW),
    Case("transposed_double", lambda x: F.conv_transpose2d(x, TURNED_GROUPS.double(), BIAS.double(), (2, 3), (1, 2), (1, 2), 2, (1, 3)),
         (r(2, 4, 9, 8, dtype=D),), [(r(1, 4, 6, 11, dtype=D),)], HW, EXTRA, NO_7, **EXACT),
    Case("transposed_half", lambda x: F.conv_transpose2d(x, TURNED.half()), (r(2, 4, 9, 8, dtype=torch.float16) / 8,)),
    Case("complex", lambda x: F.conv2d(torch.view_as_complex(x), WEIGHT.to(torch.complex64)).real, (r(2, 4, 9, 8, 2),)),
]


@expand(CASES)
def test_convolution(case: Case, opset: int) -> None:
    check(case, opset)
