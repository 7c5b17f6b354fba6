"""Recurrent nets: layers, directions, states, packed sequences, projections, cells."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import onnxport
from tests.ops.harness import NEWEST, Case, check, expand

torch.manual_seed(0)
ALL = (7, 9, 14, 22, NEWEST)
TB = {0: {0: "t", 1: "b"}}


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


class Packed(nn.Module):
    """Padded in, padded out."""

    def __init__(self, net: nn.Module, sorted_: bool = True, batch_first: bool = False, **pad: Any):
        super().__init__()
        self.net, self.sorted, self.batch_first, self.pad = net, sorted_, batch_first, pad

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths, enforce_sorted=self.sorted, batch_first=self.batch_first)
        out, state = self.net(packed)
        return *pad_packed_sequence(out, batch_first=self.batch_first, **self.pad), state


class Between(nn.Module):
    """Something that looks at the packed data themselves, between two nets."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.linear, self.second = nn.GRU(3, 4), nn.Linear(4, 5), nn.GRU(5, 2, bidirectional=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        out, _ = self.first(pack_padded_sequence(x, lengths))
        out = nn.utils.rnn.PackedSequence(self.linear(out.data), out.batch_sizes)
        return pad_packed_sequence(self.second(out)[0])


class Given(nn.Module):
    """With states of its own."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> Any:
        return self.net(x, states if len(states) > 1 else states[0])


class OnlyPacking(nn.Module):
    """No net at all."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        return pad_packed_sequence(pack_padded_sequence(x, lengths), padding_value=-1.0)


def lengths(*values: int) -> torch.Tensor:
    return torch.tensor(values)


CASES = [
    Case("lstm", nn.LSTM(3, 4), (x(5, 2, 3),), [(x(7, 1, 3),), (x(1, 3, 3),)], TB, ALL),
    Case("lstm_two_layers_both_ways", nn.LSTM(3, 4, 2, bidirectional=True), (x(5, 2, 3),), [(x(7, 1, 3),)], TB, ALL),
    Case("lstm_batch_first", nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), (x(2, 5, 3),), [(x(1, 7, 3),)], TB, ALL),
    Case("lstm_no_bias", nn.LSTM(3, 4, bias=False), (x(5, 2, 3),), [(x(7, 1, 3),)], TB),
    Case("lstm_unbatched", nn.LSTM(3, 4, 2), (x(5, 3),), [(x(7, 3),)], {0: {0: "t"}}),
    Case("lstm_states", Given(nn.LSTM(3, 4, 2)), (x(5, 2, 3), x(2, 2, 4), x(2, 2, 4)), [(x(7, 1, 3), x(2, 1, 4), x(2, 1, 4))],
         {0: {0: "t", 1: "b"}, 1: {1: "b"}, 2: {1: "b"}}, ALL),
    Case("lstm_weights_not_folded", nn.LSTM(3, 4, 2, bidirectional=True), (x(5, 2, 3),), [(x(7, 1, 3),)],
         TB, options={"do_constant_folding": False}),
    Case("lstm_double", nn.LSTM(3, 4, 2).double(), (x(5, 2, 3).double(),), [(x(7, 1, 3).double(),)], TB, rtol=1e-9, atol=1e-12),
    Case("lstm_half", nn.LSTM(3, 4).half(), (x(5, 2, 3).half(),), [(x(7, 1, 3).half(),)], TB),
    Case("gru", nn.GRU(3, 4, 2, bidirectional=True), (x(5, 2, 3),), [(x(7, 1, 3),)], TB, ALL),
    Case("gru_batch_first", nn.GRU(3, 4, batch_first=True), (x(2, 5, 3),), [(x(1, 7, 3),)], TB, ALL),
    Case("gru_states", Given(nn.GRU(3, 4)), (x(5, 2, 3), x(1, 2, 4)), [(x(7, 1, 3), x(1, 1, 4))], {0: {0: "t", 1: "b"}, 1: {1: "b"}}),
    Case("gru_no_bias", nn.GRU(3, 4, bias=False), (x(5, 2, 3),), [(x(7, 1, 3),)], TB),
    Case("gru_double", nn.GRU(3, 4).double(), (x(5, 2, 3).double(),), [(x(7, 1, 3).double(),)], TB, rtol=1e-9, atol=1e-12),
    Case("rnn_tanh", nn.RNN(3, 4, 2, bidirectional=True), (x(5, 2, 3),), [(x(7, 1, 3),)], TB, ALL),
    Case("rnn_relu", nn.RNN(3, 4, 2, nonlinearity="relu", bidirectional=True), (x(5, 2, 3),), [(x(7, 1, 3),)], TB, ALL),
    Case("rnn_double", nn.RNN(3, 4).double(), (x(5, 2, 3).double(),), [(x(7, 1, 3).double(),)], TB, rtol=1e-9, atol=1e-12),
    Case("lstm_projected", nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2), (x(5, 2, 3),), [(x(7, 1, 3),)], TB, (8, *ALL[1:]),
         {8: "needs opset 9"}),
    Case("lstm_projected_states", Given(nn.LSTM(3, 4, proj_size=2, bias=False)), (x(5, 2, 3), x(1, 2, 2), x(1, 2, 4)),
         [(x(7, 1, 3), x(1, 1, 2), x(1, 1, 4))], {0: {0: "t", 1: "b"}, 1: {1: "b"}, 2: {1: "b"}}),
    Case("packed_lstm", Packed(nn.LSTM(3, 4, 2, bidirectional=True)), (x(5, 2, 3), lengths(5, 2)), [(x(7, 3, 3), lengths(6, 3, 1))],
         {0: {0: "t", 1: "b"}, 1: {0: "b"}}, (9, 10, 11, 13, 18, NEWEST), {9: "needs opset 10"}),
    Case("packed_lstm_unsorted", Packed(nn.LSTM(3, 4, batch_first=True), sorted_=False, batch_first=True), (x(2, 5, 3), lengths(3, 5)),
         [(x(3, 7, 3), lengths(1, 7, 3))], {0: {0: "b", 1: "t"}, 1: {0: "b"}}, (11, 13, 18, NEWEST)),
    Case("packed_lstm_projected", Packed(nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)), (x(5, 2, 3), lengths(5, 2)),
         [(x(7, 3, 3), lengths(7, 3, 1))], {0: {0: "t", 1: "b"}, 1: {0: "b"}}, (11, 18)),
    Case("packed_gru_total_length", Packed(nn.GRU(3, 4), total_length=8, padding_value=2.0), (x(5, 2, 3), lengths(4, 2)),
         [(x(8, 3, 3), lengths(7, 3, 1))], {0: {0: "t", 1: "b"}, 1: {0: "b"}}, (11, 13, 18, NEWEST)),
    Case("packed_rnn", Packed(nn.RNN(3, 4, nonlinearity="relu")), (x(5, 2, 3), lengths(5, 5)), [(x(7, 3, 3), lengths(6, 3, 1))],
         {0: {0: "t", 1: "b"}, 1: {0: "b"}}, (11, 18)),
    Case("packed_data_between", Between(), (x(5, 2, 3), lengths(5, 2)), [(x(7, 3, 3), lengths(6, 3, 1))],
         {0: {0: "t", 1: "b"}, 1: {0: "b"}}, (11, 13, 18, NEWEST)),
    Case("packing_alone", OnlyPacking(), (x(5, 2, 3), lengths(5, 2)), [(x(7, 3, 3), lengths(6, 3, 1))],
         {0: {0: "t", 1: "b"}, 1: {0: "b"}}, (11, 18)),
    Case("lstm_cell", torch.ops.aten.lstm_cell, (x(2, 3), [x(2, 4), x(2, 4)], x(16, 3), x(16, 4), x(16), x(16)), (), None, (9, 18)),
    Case("gru_cell", torch.ops.aten.gru_cell, (x(2, 3), x(2, 4), x(12, 3), x(12, 4), x(12), x(12)), (), None, (9, 18)),
    Case("gru_cell_no_bias", torch.ops.aten.gru_cell, (x(2, 3), x(2, 4), x(12, 3), x(12, 4)), (), None, (9, 18)),
    Case("rnn_relu_cell", torch.ops.aten.rnn_relu_cell, (x(2, 3), x(2, 4), x(4, 3), x(4, 4), x(4), x(4)), (), None, (9, 18)),
    Case("lstm_cell_module", nn.LSTMCell(3, 4), (x(2, 3),), [(x(5, 3),)], {0: {0: "b"}}, (9, 18)),
]


@expand(CASES)
def test_recurrent(case: Case, opset: int) -> None:
    check(case, opset)


@pytest.mark.parametrize(("net", "nodes"), [
    (nn.LSTM(3, 4, 4, bidirectional=True), 14), (nn.LSTM(3, 4), 2), (nn.GRU(3, 4, 2, batch_first=True), 7), (nn.RNN(3, 4), 2)])
def test_nodes(net: nn.Module, nodes: int) -> None:
    """One node a layer, and what the layout needs; zero states cost nothing."""
    program = onnxport.export(net.eval(), (x(5, 2, 3),), None, input_names=["x"], dynamic_axes={"x": {0: "t", 1: "b"}})
    assert len(program.model_proto.graph.node) == nodes
