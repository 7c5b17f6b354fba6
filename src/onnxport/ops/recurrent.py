"""Recurrent networks: one ONNX LSTM, GRU or RNN node a layer, whichever directions it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from onnxport.ops import quantised_dynamic, random, stepwise
from onnxport.ops.packed import packed, unpacked
from onnxport.ops.registry import aten
from onnxport.ops.support import rank_of, shape_of
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import reshape, squeeze, unsqueeze
from onnxport.target.value import DataType, Value


@dataclass(frozen=True)
class Kind:
    """What PyTorch and ONNX say differently. order: where each of ONNX's gates stands among PyTorch's."""

    op_type: str
    order: tuple[int, ...]
    activation: str | None = None


LSTM = Kind("LSTM", (0, 3, 1, 2))  # PyTorch i f g o, ONNX i o f c
GRU = Kind("GRU", (1, 0, 2))  # PyTorch r z n, ONNX z r h
TANH = Kind("RNN", (0,))
RELU = Kind("RNN", (0,), "Relu")


_QUANTISED = ("dtype", "use_dynamic")  # arguments of quantised nets that change nothing


@dataclass(frozen=True)
class Net:
    """A whole network: its kind and sizes, and what runs between its layers."""

    kind: Kind
    layers: int
    biases: bool
    bidirectional: bool
    dropout: float

    @property
    def directions(self) -> int:
        """1 or 2."""
        return 2 if self.bidirectional else 1


def is_zero(x: Value) -> bool:
    """Whether a state is known to be all zeros, whatever its size."""
    if x.const is not None:
        return not x.const.parameter and not x.const.is_lazy and not bool(x.const.tensor.any())
    if x.node is None or x.node.domain:
        return False
    if x.node.op_type == "ConstantOfShape":
        value = x.node.attrs.get("value")
        return value is None or not bool(torch.as_tensor(value).any())
    moves = ("Expand", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Slice", "Gather", "Identity", "Cast", "Tile")
    first = x.node.inputs[0]
    return x.node.op_type in moves and first is not None and is_zero(first)


def _stacked(g: Builder, weights: Sequence[Value], kind: Kind, sizes: Sequence[Size]) -> Value:
    """Weights of all directions, gates in ONNX's order, as (directions, ...)."""
    joined = g.op("Concat", *weights, axis=0)
    rows, gates = shape_of(joined)[0], len(kind.order)
    assert isinstance(rows, int)
    hidden = sizes[0]
    assert isinstance(hidden, int)
    blocks = rows // (gates * hidden)
    index = [(b * gates + gate) * hidden + i for b in range(blocks) for gate in kind.order for i in range(hidden)]
    ordered = joined if gates == 1 else g.op("Gather", joined, g.const(index), axis=0)
    rest = list(shape_of(joined)[1:])
    return g.op("Reshape", ordered, g.sizes([len(weights) // (1 if rest else 2), -1, *rest]))


def _layer(g: Builder, net: Net, x: Value, params: Sequence[Sequence[Any]], states: Sequence[Value | None],
           lengths: Value | None) -> tuple[Value, ...]:
    """One layer on x (T, B, in): ONNX's outputs Y (T, directions, B, hidden), Y_h and, of an LSTM, Y_c."""
    kind = net.kind
    cell = kind.op_type if kind.op_type in stepwise.CELLS else kind.activation or "Tanh"
    if isinstance(params[0][0], dict):
        return stepwise.layer(g, cell, x, [quantised_dynamic.direction_of(g, p[0]) for p in params], states, lengths)
    hidden = shape_of(params[0][1])[1]
    if len(params[0]) > 2 + 2 * net.biases or x.dtype == DataType.DOUBLE:
        directions = [stepwise.direction_of(g, cell, net.biases, p) for p in params]
        return stepwise.layer(g, cell, x, directions, states, lengths)
    w = _stacked(g, [p[0] for p in params], kind, [hidden])
    r = _stacked(g, [p[1] for p in params], kind, [hidden])
    b = _stacked(g, [v for p in params for v in p[2:4]], kind, [hidden]) if net.biases else None
    attrs: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if net.bidirectional else None,
             "linear_before_reset": 1 if kind is GRU else None,
             "activations": [kind.activation] * net.directions if kind.activation else None}
    return g.op(kind.op_type, x, w, r, b, lengths, *states, outputs=3 if kind is LSTM else 2, **attrs)


def _initial(g: Builder, net: Net, hx: Sequence[Value]) -> list[list[Value | None]]:
    """For each layer its initial states (directions, B, hidden); None for zeros, which ONNX assumes anyway."""
    parts: list[list[Value | None]] = []
    for state in hx:
        if is_zero(state):
            parts.append([None] * net.layers)
        elif net.layers == 1:
            parts.append([state])
        else:
            split = g.const([net.directions] * net.layers)
            parts.append(list(g.op("Split", state, split, outputs=net.layers, axis=0)))
    return [list(of_layer) for of_layer in zip(*parts, strict=True)]


def _merged(g: Builder, y: Value, batch_first: bool) -> Value:
    """(T, directions, B, hidden) as (T, B, directions * hidden), or with the batch first."""
    steps, directions, batch, hidden = shape_of(y)
    if directions == 1:
        y = squeeze(g, y, [1])
        return g.op("Transpose", y, perm=[1, 0, 2]) if batch_first else y
    y = g.op("Transpose", y, perm=[2, 0, 1, 3] if batch_first else [0, 2, 1, 3])
    return reshape(g, y, [batch, steps, directions * hidden] if batch_first else [steps, batch, directions * hidden])


def run(g: Builder, net: Net, x: Value, hx: Sequence[Value], params: Sequence[Any], lengths: Value | None = None,
        batch_first: bool = False) -> list[Value]:
    """All layers on x (T, B, in): the output, and the last states (layers * directions, B, hidden).

    params: of each layer and direction the weights, or the one dict of a quantised cell.
    """
    each = len(params) // (net.layers * net.directions)
    initial = _initial(g, net, hx)
    ends: list[list[Value]] = []
    for layer in range(net.layers):
        at = layer * net.directions * each
        of_layer = [params[at + d * each: at + (d + 1) * each] for d in range(net.directions)]
        y, *last = _layer(g, net, x, of_layer, initial[layer], lengths)
        ends.append(last)
        final = layer == net.layers - 1
        x = _merged(g, y, batch_first and final)
        if net.dropout > 0 and not final:
            x = random.dropout(g, x, net.dropout, True)
    return [x, *[g.op("Concat", *states, axis=0) for states in zip(*ends, strict=True)]]


def _tensor(g: Builder, net: Net, x: Value, hx: Sequence[Value], params: Sequence[Any], batch_first: bool) -> list[Value]:
    """On a tensor (T, B, in), (B, T, in) or (T, in)."""
    if rank_of(x) == 2:
        y, *last = run(g, net, unsqueeze(g, x, [1]), [unsqueeze(g, h, [1]) for h in hx], params)
        return [squeeze(g, y, [1]), *[squeeze(g, h, [1]) for h in last]]
    if batch_first:
        x = g.op("Transpose", x, perm=[1, 0, 2])
    return run(g, net, x, hx, params, batch_first=batch_first)


@aten("lstm.input", "quantized_lstm.input", fold=False, also=_QUANTISED)
def lstm(g: Builder, input: Value, hx: list[Value], params: list[Any], has_biases: bool, num_layers: int, dropout: float, train: bool,
         bidirectional: bool, batch_first: bool, **unused: object) -> list[Value]:
    """lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train,
    bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)

    input (T, B, in), or (B, T, in) -> (T, B, directions * hidden), h and c (layers * directions, B, hidden). ONNX LSTM.
    quantized_lstm.input: params are CellParamsBase[], what is multiplied is quantised before. ONNX Scan.
    """
    net = Net(LSTM, num_layers, has_biases, bidirectional, dropout if train else 0.0)
    return _tensor(g, net, input, hx, params, batch_first)


def _packed(g: Builder, net: Net, data: Value, batch_sizes: Value, hx: Sequence[Value], params: Sequence[Any]) -> list[Value]:
    """On a packed sequence; ONNX gets the padded one, and the lengths."""
    sequence = unpacked(g, data, batch_sizes)
    y, *last = run(g, net, sequence.padded, hx, params, g.op("Cast", sequence.lengths, to=DataType.INT32))
    return [packed(g, y, sequence.lengths, clean=True), *last]


@aten("lstm.data", "quantized_lstm.data", fold=False, also=_QUANTISED)
def lstm_packed(g: Builder, data: Value, batch_sizes: Value, hx: list[Value], params: list[Any], has_biases: bool, num_layers: int,
                dropout: float, train: bool, bidirectional: bool, **unused: object) -> list[Value]:
    """lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout,
    bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)

    data (all steps, in), as _pack_padded_sequence gives it. ONNX LSTM with sequence_lens.
    """
    net = Net(LSTM, num_layers, has_biases, bidirectional, dropout if train else 0.0)
    return _packed(g, net, data, batch_sizes, hx, params)


def _cell(g: Builder, kind: Kind, x: Value, hx: Sequence[Value], w_ih: Value, w_hh: Value, b_ih: Value | None,
          b_hh: Value | None) -> list[Value]:
    """One step on x (B, in) or (in,): the new states."""
    biases = [b for b in (b_ih, b_hh) if b is not None]
    net = Net(kind, 1, bool(biases), False, 0.0)
    batched = rank_of(x) == 2
    states = [unsqueeze(g, h, [0] if batched else [0, 1]) for h in hx]
    _, *last = run(g, net, unsqueeze(g, x, [0] if batched else [0, 1]), states, [w_ih, w_hh, *biases])
    return [squeeze(g, h, [0] if batched else [0, 1]) for h in last]


@aten(fold=False)
def lstm_cell(g: Builder, input: Value, hx: list[Value], w_ih: Value, w_hh: Value, b_ih: Value | None = None,
              b_hh: Value | None = None) -> list[Value]:
    """lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)

    ONNX LSTM of one step.
    """
    return _cell(g, LSTM, input, hx, w_ih, w_hh, b_ih, b_hh)


def _single(kind: Kind, name: str) -> None:
    @aten(f"{name}.input", f"quantized_{name}.input", fold=False)
    def padded(g: Builder, input: Value, hx: Value, params: list[Any], has_biases: bool, num_layers: int, dropout: float, train: bool,
               bidirectional: bool, batch_first: bool) -> list[Value]:
        """gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train,
        bool bidirectional, bool batch_first) -> (Tensor, Tensor); rnn_tanh.input and rnn_relu.input likewise. ONNX GRU, RNN.
        """
        net = Net(kind, num_layers, has_biases, bidirectional, dropout if train else 0.0)
        return _tensor(g, net, input, [hx], params, batch_first)

    @aten(f"{name}.data", f"quantized_{name}.data", fold=False)
    def of_packed(g: Builder, data: Value, batch_sizes: Value, hx: Value, params: list[Any], has_biases: bool, num_layers: int,
                  dropout: float, train: bool, bidirectional: bool) -> list[Value]:
        """gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout,
        bool train, bool bidirectional) -> (Tensor, Tensor); rnn_tanh.data and rnn_relu.data likewise.
        """
        net = Net(kind, num_layers, has_biases, bidirectional, dropout if train else 0.0)
        return _packed(g, net, data, batch_sizes, [hx], params)

    @aten(f"{name}_cell", fold=False)
    def cell(g: Builder, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None) -> Value:
        """gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor;
        rnn_tanh_cell and rnn_relu_cell likewise. ONNX GRU or RNN of one step.
        """
        return _cell(g, kind, input, [hx], w_ih, w_hh, b_ih, b_hh)[0]


for _kind, _name in ((GRU, "gru"), (TANH, "rnn_tanh"), (RELU, "rnn_relu")):
    _single(_kind, _name)
