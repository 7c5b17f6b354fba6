"""Writes to what outlives a run: buffers, inputs, attributes, running statistics; random fills; and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from onnxport import errors
from onnxport.aten.graph import Graph
from tests.aten.checking import captured, check, graph_of

X = torch.arange(24, dtype=torch.float32).reshape(4, 6) - 7.5


def mutations(graph: Graph) -> list[tuple[str, str]]:
    return [(m.name, m.kind) for m in graph.mutated]


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("table", torch.ones(4, 6))
        self.register_buffer("unused", torch.ones(2))

    def forward(self, x: Tensor) -> Any:
        self.count += 1
        self.table[1:].t()[0].copy_(x[0, :3])
        before = self.table * 1
        self.table.mul_(2)
        return x + self.table, before * self.count


def test_buffers() -> None:
    assert mutations(check(Counter(), X)) == [("count", "buffer"), ("table", "buffer")]


class Assigned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("last", torch.zeros(6))
        self.plain = torch.ones(6)
        self.kept = [torch.ones(6)]

    def forward(self, x: Tensor) -> Any:
        self.mean = self.mean * 0.5 + x.mean(0)
        self.last = x[0] * 2
        self.last += 1
        self.plain += x[1]
        self.kept[0] = self.kept[0] + x[2]
        return x * self.mean + self.plain, self.last


def test_assigned_buffers_and_attributes() -> None:
    model = Assigned()
    graph = check(model, X)
    assert mutations(graph) == [("mean", "buffer"), ("plain", "attribute"), ("kept.0", "attribute")]
    assert torch.equal(model.kept[0], torch.ones(6))


class Data(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("b", torch.zeros(6))

    def forward(self, x: Tensor) -> Any:
        self.b.data = x[0] * 2
        return self.b + x


def test_data_of_a_buffer_assigned() -> None:
    model = Data()
    b = model.b
    assert mutations(check(model, X)) == [("b", "buffer")]
    assert model.b is b
    assert torch.equal(b, torch.zeros(6))


def test_returned_buffer_is_no_mutation() -> None:
    class Returned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("b", torch.zeros(6))

        def forward(self, x: Tensor) -> Any:
            self.b += x[0]
            return self.b

    assert mutations(check(Returned(), X)) == []


def test_inputs() -> None:
    def program(x: Tensor, y: Tensor, z: Tensor) -> Any:
        x[0] = 1
        y += x
        z[1:].t().mul_(2)
        return y, z.sum()

    assert mutations(check(program, X, X + 1, X * 2)) == [("x0", "input"), ("x2", "input")]


def test_input_returned_as_it_was_and_written() -> None:
    def program(x: Tensor) -> Any:
        old = x.clone()
        x.add_(1)
        return old, x[0]

    assert mutations(check(program, X)) == [("x0", "input")]


def test_copy_onto_itself_is_no_mutation() -> None:
    def program(x: Tensor) -> Any:
        x[1] = x[1]
        return x + 1

    assert mutations(check(program, X)) == []


def test_no_write_no_change() -> None:
    graph = captured(lambda x: x.t()[1:] + 1, [X])
    nodes = list(graph.block.nodes)
    from onnxport.aten.passes.functionalise import functionalise

    functionalise(graph)
    assert graph.block.nodes == nodes


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("momentum", [0.1, 1.0])
def test_batch_norm_statistics(shape: tuple[int, ...], momentum: float) -> None:
    model = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)](3, momentum=momentum)
    model.train()
    torch.manual_seed(1)
    other = (shape[0] + 3, 3, *(s + 1 for s in shape[2:]))
    graph = check(nn.Sequential(model, nn.ReLU(inplace=True)), torch.randn(shape), others=((torch.randn(other),),), exact=False)
    assert mutations(graph) == [("0.running_mean", "buffer"), ("0.running_var", "buffer"), ("0.num_batches_tracked", "buffer")]


def test_batch_norm_twice_and_eval() -> None:
    model = nn.BatchNorm1d(6).train()
    graph = check(nn.Sequential(model, nn.Linear(6, 6), model), torch.randn(5, 6), exact=False)
    assert len(graph.mutated) == 3
    assert mutations(check(model.eval(), torch.randn(5, 6), exact=False)) == []


def test_instance_norm_statistics() -> None:
    model = nn.InstanceNorm1d(3, affine=True, track_running_stats=True).train()
    graph = check(model, torch.randn(4, 3, 7), others=((torch.randn(2, 3, 9),),), exact=False)
    assert {name for name, _ in mutations(graph)} == {"running_mean", "running_var"}


RANDOM = {
    "uniform": lambda y: y.uniform_(1, 3),
    "normal": lambda y: y.normal_(1, 2),
    "bernoulli": lambda y: y.bernoulli_(0.3),
    "bernoulli_tensor": lambda y: y.bernoulli_(torch.full(y.shape, 0.7)),
    "exponential": lambda y: y.exponential_(2),
    "log_normal": lambda y: y.log_normal_(),
    "cauchy": lambda y: y.cauchy_(),
    "geometric": lambda y: y.geometric_(0.4),
    "random": lambda y: y.random_(5),
    "random_range": lambda y: y.random_(2, 9),
    "dropout": lambda y: nn.functional.dropout(y, 0.4, training=True, inplace=True),
    "dropout_off": lambda y: nn.functional.dropout(y, 0.4, training=False, inplace=True),
    "feature_dropout": lambda y: nn.functional.dropout1d(y, 0.4, training=True, inplace=True),
    "alpha_dropout": lambda y: nn.functional.alpha_dropout(y, 0.4, training=True, inplace=True),
    "rrelu": lambda y: nn.functional.rrelu_(y, training=True),
    "init": lambda y: nn.init.trunc_normal_(y),
}


@pytest.mark.parametrize("name", [name for name in RANDOM if name != "init"])
def test_random(name: str) -> None:
    """With the same seed the functional form gives the same numbers."""

    def program(x: Tensor) -> Any:
        y = x * 1
        z = y[1:]
        RANDOM[name](y)
        return y, z

    check(program, X)


# --- refused -----------------------------------------------------------------------------------------------------------------------


def then(write: Any) -> Any:
    """Writes into something that looks at a tensor, and uses that."""

    def program(x: Tensor) -> Any:
        y = x * 1
        write(y, x)
        return y + 1

    return program


REFUSED = {
    "expand": (then(lambda y, x: y[:, :1].expand(-1, 3)[0, 1].fill_(1)), "expand"),
    "unfold": (then(lambda y, x: y.unfold(1, 2, 2)[0].add_(1)), "unfold"),
    "resize": (then(lambda y, x: y.resize_(2, 2)), "resize_"),
    "set": (then(lambda y, x: y.set_(x)), "set_"),
    "meshgrid": (lambda x: _meshgrid(x), "meshgrid"),
    "einsum": (lambda x: _einsum(x), "einsum"),
    "out_resized": (lambda x: _resized(x), "resizes"),
    "unknown_constant": (lambda x: CONSTANT.add_(x), "register it as a buffer"),
}
CONSTANT = torch.zeros(4, 6)


def _meshgrid(x: Tensor) -> Any:
    y = x[0] * 1
    a, b = torch.meshgrid(y, x[1], indexing="ij")
    y.add_(1)
    return a + b


def _einsum(x: Tensor) -> Any:
    y = x * 1
    z = torch.einsum("ij->ji", y)
    z.add_(1)
    return z + y.t()


def _resized(x: Tensor) -> Any:
    out = torch.empty(1)
    view = out[:]
    torch.add(x[0], 1, out=out)
    return out, view


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    program, words = REFUSED[name]
    with pytest.raises(errors.UnsupportedError, match=words) as caught:
        graph_of(program, [X])
    assert "test_functionalise_state.py:" in str(caught.value)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.zeros(2, 6))
        self.register_buffer("b", self.a[0])

    def forward(self, x: Tensor) -> Any:
        self.a += 1
        return self.b + x


def test_buffers_over_one_memory() -> None:
    with pytest.raises(errors.UnsupportedError, match="shares its memory"):
        graph_of(Tied(), [X])


def test_view_that_is_refused_can_be_read() -> None:
    def program(x: Tensor) -> Any:
        y = x * 1
        windows, wide = y.unfold(1, 2, 2), y[:, :1].expand(-1, 3)
        y.add_(1)
        return windows, wide, torch.einsum("ij->ji", x)

    check(program, X)
