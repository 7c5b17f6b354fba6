"""Fake quantisation and the operators of PT2E."""

from __future__ import annotations

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators of PT2E

from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
OPSETS = (9, 10, 12, 13, 18, 21, NEWEST)
QD = torch.ops.quantized_decomposed
STEPS = torch.tensor([0.02, 0.03, 0.04])
ZEROS = torch.tensor([0, 3, -2], dtype=torch.int32)


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes) * 5


def q(*sizes: int, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    return torch.randint(-100, 100, sizes).to(dtype)


def case(id: str, function, opsets=OPSETS, like=lambda t: t, **more) -> Case:
    return Case(id, function, (like(x(2, 3, 4)),), [(like(x(4, 3, 2) * 9),), (like(x(1, 3, 1)),)], {0: {0: "n", 2: "m"}}, opsets, **more)


def fake(*arguments):
    return lambda t: torch.fake_quantize_per_tensor_affine(t, *arguments)


def channels(low: int, high: int, axis: int = 1, zeros: torch.Tensor = ZEROS):
    return lambda t: torch.fake_quantize_per_channel_affine(t, STEPS, zeros, axis, low, high)


FAKE = [
    Case("fake_linear", lambda t: torch.nn.functional.linear(fake(0.05, 3, 0, 255)(t), fake(0.05, 0, -128, 127)(STEPS * torch.ones(2, 1)), STEPS[:2]),
         (x(2, 3),), [(x(4, 3),)], {0: {0: "n"}}, OPSETS),
    case("fake_uint8", fake(0.05, 3, 0, 255)),
    case("fake_int8", fake(0.05, -3, -128, 127)),
    case("fake_7bit", fake(0.05, 3, 0, 127)),
    case("fake_4bit", fake(0.25, 0, -8, 7)),
    case("fake_16bit", fake(0.001, 0, -32768, 32767)),
    case("fake_24bit", fake(0.00001, 5, -(2**23), 2**23)),
    case("fake_tensors", fake(torch.tensor([0.05]), torch.tensor([3], dtype=torch.int32), 0, 255)),
    case("fake_double", fake(0.05, 3, 0, 255), like=torch.Tensor.double, rtol=1e-9, opsets=(13, 18)),
    case("fake_half", fake(0.05, 3, 0, 255), like=torch.Tensor.half, opsets=(13, 21)),
    case("fake_channels", channels(-128, 127)),
    case("fake_channels_narrow", channels(-127, 127)),
    case("fake_channels_4bit", channels(-8, 7, 1, torch.tensor([0, 3, -8], dtype=torch.int32))),
    case("fake_channels_float_zero", channels(-8, 7, 1, torch.tensor([2.5, -0.5, 0.25]))),
    Case("fake_given", lambda t, s, z: torch.fake_quantize_per_tensor_affine(t, s, z, 0, 100),
         (x(2, 3), torch.tensor(0.1), torch.tensor(7, dtype=torch.int32)),
         [(x(2, 3), torch.tensor(0.3), torch.tensor(0, dtype=torch.int32))], opsets=OPSETS),
    *[case(f"learnable_{zero}", lambda t, zero=zero: torch._fake_quantize_learnable_per_tensor_affine(
        t, torch.tensor([0.1]), torch.tensor([zero]), -128, 127, 1.0), opsets=(9, 13, 18)) for zero in (2.5, -0.5, 300.0)],
    case("learnable_channels", lambda t: torch._fake_quantize_learnable_per_channel_affine(
        t, STEPS, torch.tensor([2.5, -0.5, 3.5]), 1, -128, 127, 1.0), opsets=(9, 13, 18)),
    case("cachemask", lambda t: torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(t, 0.05, 3, 0, 255), opsets=(13, 18)),
    *[case(f"cachemask_{on}", lambda t, on=on: torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
        t, torch.tensor([0.05]), torch.tensor([3], dtype=torch.int32), torch.tensor([on]), 0, 255), opsets=(13,)) for on in (0, 1)],
    case("cachemask_channels", lambda t: torch.ops.aten.fake_quantize_per_channel_affine_cachemask(t, STEPS, ZEROS, 1, -8, 7), opsets=(13, 18)),
]
INT8, UINT8 = (-128, 127, torch.int8), (0, 255, torch.uint8)
TOKENS = (x(2, 3, 4).abs().amax(-1, keepdim=True) / 127, torch.tensor([[[1], [2], [3]]] * 2))
GROUPS = (torch.rand(2, 3) * 0.1 + 0.01, torch.tensor([[1, 2, 3], [0, -1, -2]]))
DECOMPOSED = [
    case("q_per_tensor", lambda t: QD.quantize_per_tensor(t, 0.05, 3, *INT8)),
    case("q_per_tensor_narrow", lambda t: QD.quantize_per_tensor(t, 0.05, 3, 0, 127, torch.uint8)),
    case("q_per_tensor_int32", lambda t: QD.quantize_per_tensor(t, 0.0005, 3, -(2**20), 2**20, torch.int32)),
    case("q_per_tensor_half", lambda t: QD.quantize_per_tensor(t, 0.05, 3, *INT8), like=torch.Tensor.half, opsets=(13, 21)),
    case("q_tensor", lambda t: QD.quantize_per_tensor.tensor(t, torch.tensor([0.05]), torch.tensor([3]), *UINT8)),
    case("q_tensor2", lambda t: QD.quantize_per_tensor.tensor2(t, torch.tensor([0.05]), torch.tensor([3]), torch.tensor(0), torch.tensor(127), torch.uint8),
         opsets=(13,)),
    case("q_per_channel", lambda t: QD.quantize_per_channel(t, STEPS, ZEROS, 1, *INT8)),
    case("q_dq", lambda t: QD.dequantize_per_tensor(QD.quantize_per_tensor(t, 0.05, 3, *INT8), 0.05, 3, *INT8)),
    case("dq_to_half", lambda t: QD.dequantize_per_tensor(QD.quantize_per_tensor(t, 0.05, 3, *INT8), 0.05, 3, *INT8, out_dtype=torch.float16), opsets=(13, 21)),
    Case("dq_per_tensor", lambda t: QD.dequantize_per_tensor(t, 0.05, 3, *INT8), (q(2, 3),), [(q(4, 3),)], "all", OPSETS),
    Case("dq_int32", lambda t: QD.dequantize_per_tensor(t, 0.05, 0, -1000, 1000, torch.int32), (q(2, 3, dtype=torch.int32),), [], "all", OPSETS),
    Case("dq_int32_zero", lambda t: QD.dequantize_per_tensor(t, 0.05, 7, -1000, 1000, torch.int32), (q(2, 3, dtype=torch.int32),), [], "all", OPSETS),
    Case("dq_int16", lambda t: QD.dequantize_per_tensor(t, 0.05, 7, -1000, 1000, torch.int16), (q(2, 3, dtype=torch.int16),), [], "all", OPSETS),
    Case("dq_per_channel", lambda t: QD.dequantize_per_channel(t, STEPS, ZEROS, 1, *INT8), (q(2, 3),), [(q(4, 3),)], {0: {0: "n"}}, OPSETS),
    Case("dq_per_channel_no_zeros", lambda t: QD.dequantize_per_channel(t, STEPS, None, 1, *INT8), (q(2, 3),), [(q(4, 3),)], {0: {0: "n"}}, (13, 18)),
    case("per_token", lambda t: QD.dequantize_per_token(QD.quantize_per_token(t, *QD.choose_qparams_per_token_asymmetric(t, torch.int8), *INT8),
                                                        *QD.choose_qparams_per_token_asymmetric(t, torch.int8), *INT8, torch.float32), opsets=(11, 18)),
    case("per_token_symmetric", lambda t: QD.quantize_per_token(t, *QD.choose_qparams_per_token(t, torch.int8), *INT8), opsets=(11, 18)),
    case("choose_qparams", lambda t: QD.choose_qparams.tensor(t, -128, 127, 1e-5, torch.int8), opsets=(11, 18)),
    case("choose_qparams_symmetric", lambda t: QD.choose_qparams_symmetric.tensor(t, -127, 127, 1e-5, torch.int8), opsets=(11, 18)),
    case("dynamic", lambda t: QD.quantize_per_tensor.tensor(t, *QD.choose_qparams.tensor(t, *INT8[:2], 1e-5, torch.int8), *INT8), opsets=(11, 18, NEWEST)),
    case("choose_per_token", lambda t: QD.choose_qparams_per_token_asymmetric(t, torch.int8), opsets=(11, 18)),
    Case("dq_groups", lambda t: QD.dequantize_per_channel_group(t, *GROUPS, *INT8, 4, torch.float32), (q(2, 12),), [(q(2, 12),)], None, OPSETS),
    Case("q_groups", lambda t: QD.quantize_per_channel_group(t, *GROUPS, -8, 7, torch.int8, 4), (x(2, 12),), [(x(2, 12),)], None, (13, 21)),
    case("convert", lambda t: QD.convert_element_type.no_fuse(t, torch.float16), opsets=(13,)),
]


CASES = [*FAKE, *DECOMPOSED]


@expand(CASES)
def test_quantization(case: Case, opset: int) -> None:
    check(case, opset)
