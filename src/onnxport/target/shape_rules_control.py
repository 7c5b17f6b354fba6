"""dtypes and shapes of what holds subgraphs (If, Loop, Scan), of sequences and optionals, of recurrent and signal operators.

Source: the operator pages of ONNX (opset 28).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onnxport.target import dims
from onnxport.target.dims import Dim
from onnxport.target.shape_helpers import (
    AnyDim,
    Attrs,
    Inputs,
    Known,
    Rule,
    axis_of,
    constant_numbers,
    dtype_attribute,
    maybe,
    need,
    scalar,
    unknown_dims,
)
from onnxport.target.value import Block, DataType, Value

if TYPE_CHECKING:
    from onnxport.target.builder import Builder

BlockRule = Callable[["Builder", Inputs, Attrs, int], list[Known]]


# ---------------------------------------------------------------------- subgraphs


def if_(g: Builder, inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """What both branches have in common."""
    first, second = attrs["then_branch"], attrs["else_branch"]
    return [_common(_outside(g, first, a), _outside(g, second, b)) for a, b in zip(first.outputs, second.outputs, strict=True)]


def _common(a: Known, b: Known) -> Known:
    dtype = a[0] if a[0] == b[0] else None
    if a[1] is None or b[1] is None or len(a[1]) != len(b[1]):
        return dtype, None
    return dtype, tuple([x if x == y else None for x, y in zip(a[1], b[1], strict=True)])


def _outside(g: Builder, block: Block, value: Value) -> Known:
    """dtype and dims of a block's output, without the sizes that only the block's own values know."""
    if value.shape is None or dims.is_static(value.shape):
        return value.dtype, value.shape
    nodes, given = set(block.nodes), set(block.inputs)

    def is_outer(size: AnyDim) -> bool:
        names = size.symbols if isinstance(size, Dim) else ()
        sources = [g.sources[name][0] for name in names if name in g.sources]
        return not any(s in given or s.node in nodes for s in sources)

    return value.dtype, tuple([s if is_outer(s) else None for s in value.shape])


def loop(g: Builder, inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Carried values: what start and body agree on. Scanned ones: the trip count (known if nothing else ends it) and the body's dims."""
    body: Block = attrs["body"]
    carried = inputs[2:]
    inner = [_outside(g, body, v) for v in body.outputs[1:]]
    known = [_common((v.dtype, v.shape), i) if v is not None else (i[0], None) for v, i in zip(carried, inner, strict=False)]
    trips = _trips(inputs, body)
    # Of a loop that never ran ONNX Runtime knows numbers only, and makes each other dim 0.
    runs = trips is not None and dims.compare(">=", trips, 1)
    for dtype, shape in inner[len(carried) :]:
        each = None if shape is None else tuple([s if runs or isinstance(s, int) else None for s in shape])
        known.append((dtype, None if each is None else (trips, *each)))
    return known


def _trips(inputs: Inputs, body: Block) -> AnyDim:
    count, condition = scalar(maybe(inputs, 0)), maybe(inputs, 1)
    if count is None or not _is_true(body.outputs[0]) or not (condition is None or _is_true(condition)):
        return None
    return dims.maximum(count, 0)


def _is_true(value: Value) -> bool:
    while value.node is not None and value.node.op_type == "Identity" and value.node.inputs[0] is not None:
        value = value.node.inputs[0]
    return constant_numbers(value) == [True]


def scan(g: Builder, inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """State values: what start and body agree on. Scanned ones: the body's dims and, at their axis, the scanned inputs' length."""
    body: Block = attrs["body"]
    count = attrs["num_scan_inputs"]
    states, scanned = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    inner = [_outside(g, body, v) for v in body.outputs]
    known = [_common((v.dtype, v.shape), i) if v is not None else (i[0], None) for v, i in zip(states, inner, strict=False)]
    steps = _steps(need(scanned, 0), (attrs.get("scan_input_axes") or [0])[0])
    places = attrs.get("scan_output_axes") or [0] * (len(inner) - len(states))
    for (dtype, shape), place in zip(inner[len(states) :], places, strict=True):
        at = None if shape is None else axis_of(place, len(shape) + 1)
        known.append((dtype, None if shape is None or at is None else (*shape[:at], steps, *shape[at:])))
    return known


def _steps(value: Value, axis: int) -> AnyDim:
    return None if value.shape is None else value.shape[axis]


def sequence_map(g: Builder, inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Sequences of what the body gives."""
    return [(v.dtype, None) for v in attrs["body"].outputs]


BLOCK_RULES: dict[str, BlockRule] = {"If": if_, "Loop": loop, "Scan": scan, "SequenceMap": sequence_map}


# ---------------------------------------------------------------------- sequences: a value says the elements' dtype and no shape


_MAKERS = frozenset({"SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceMap", "SplitToSequence"})
_PASSING = frozenset({"Identity", "If", "Loop"})


def is_sequence(op_type: str, inputs: Inputs, attrs: Attrs, index: int) -> bool:
    """Whether an output of an operator is a sequence."""
    if op_type not in _PASSING:
        return op_type in _MAKERS
    if op_type == "Identity":
        return need(inputs, 0).sequence
    block: Block = attrs["then_branch" if op_type == "If" else "body"]
    return block.outputs[index + (op_type == "Loop")].sequence


def element(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Something of the first input's element type, shape unknown."""
    return [(need(inputs, 0).dtype, None)]


def inserted(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """A sequence with one element more."""
    return [(need(inputs, 0).dtype or need(inputs, 1).dtype, None)]


def empty_sequence(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """A sequence of attribute `dtype`, FLOAT without."""
    return [(dtype_attribute(attrs, "dtype", DataType.FLOAT), None)]


def sequence_length(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """An INT64 scalar."""
    return [(DataType.INT64, ())]


def has_element(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """A BOOL scalar."""
    return [(DataType.BOOL, ())]


def optional(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """What the first input is; of an empty one nothing is known."""
    x = maybe(inputs, 0)
    return [(None, None) if x is None else (x.dtype, None)]


# ---------------------------------------------------------------------- recurrent


def recurrent(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """Y (steps, directions, batch, hidden), Y_h and Y_c (directions, batch, hidden); `layout` 1 puts the batch first."""
    x, again = need(inputs, 0), need(inputs, 2)
    directions = 2 if attrs.get("direction") == "bidirectional" else 1
    hidden: AnyDim = attrs.get("hidden_size") or (None if again.shape is None else again.shape[2])
    steps, batch = (None, None) if x.shape is None else x.shape[:2]
    if attrs.get("layout"):
        steps, batch = batch, steps
        return [(x.dtype, (batch, steps, directions, hidden))] + [(x.dtype, (batch, directions, hidden))] * 2
    return [(x.dtype, (steps, directions, batch, hidden))] + [(x.dtype, (directions, batch, hidden))] * 2


# ---------------------------------------------------------------------- signals


def dft(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """`dft_length` at the axis (half of it and one if onesided), 2 at the end; a onesided inverse gives real numbers, 1 at the end."""
    x = need(inputs, 0)
    if x.shape is None:
        return [(x.dtype, None)]
    where = maybe(inputs, 2)
    axis = -2 if where is None else scalar(where)
    if not isinstance(axis, int):
        return [(x.dtype, unknown_dims(x.rank))]
    axis = axis_of(axis, len(x.shape))
    wanted = maybe(inputs, 1)
    onesided, inverse = bool(attrs.get("onesided")), bool(attrs.get("inverse"))
    count: AnyDim = x.shape[axis] if wanted is None else scalar(wanted)
    if onesided and inverse and wanted is None:
        count = (x.shape[axis] - 1) * 2
    if onesided and not inverse and count is not None:
        count = dims.floordiv(count, 2) + 1
    return [(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 : -1], 1 if onesided and inverse else 2))]


def stft(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(batch, (length - frame) // step + 1, bins, 2), where onesided (the default) keeps half the bins and one."""
    x, step, window = need(inputs, 0), scalar(maybe(inputs, 1)), maybe(inputs, 2)
    frame: AnyDim = scalar(maybe(inputs, 3))
    if maybe(inputs, 3) is None and window is not None and window.shape is not None:
        frame = window.shape[0]
    if x.shape is None or frame is None:
        return [(x.dtype, unknown_dims(4))]
    frames = None if step is None or step == 0 else dims.floordiv(x.shape[1] - frame, step) + 1
    bins = dims.floordiv(frame, 2) + 1 if attrs.get("onesided", 1) else frame
    return [(x.dtype, (x.shape[0], frames, bins, 2))]


def window(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """As many numbers as the first input says, of `output_datatype` (FLOAT without)."""
    return [(dtype_attribute(attrs, "output_datatype", DataType.FLOAT), (scalar(need(inputs, 0)),))]


def mel_weights(inputs: Inputs, attrs: Attrs, outputs: int) -> list[Known]:
    """(dft_length // 2 + 1, num_mel_bins) of `output_datatype` (FLOAT without)."""
    bins, count = scalar(need(inputs, 0)), scalar(need(inputs, 1))
    rows = None if count is None else dims.floordiv(count, 2) + 1
    return [(dtype_attribute(attrs, "output_datatype", DataType.FLOAT), (rows, bins))]


RULES: dict[str, Rule] = {
    "BlackmanWindow": window,
    "ConcatFromSequence": element,
    "DFT": dft,
    "GRU": recurrent,
    "HammingWindow": window,
    "HannWindow": window,
    "LSTM": recurrent,
    "MelWeightMatrix": mel_weights,
    "Optional": optional,
    "OptionalGetElement": element,
    "OptionalHasElement": has_element,
    "RNN": recurrent,
    "STFT": stft,
    "SequenceAt": element,
    "SequenceConstruct": element,
    "SequenceEmpty": empty_sequence,
    "SequenceErase": element,
    "SequenceInsert": inserted,
    "SequenceLength": sequence_length,
    "SplitToSequence": element,
}
