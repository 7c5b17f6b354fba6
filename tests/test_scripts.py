"""Scripted modules, files, scripts in traces; the graph of a script is no larger than that of a trace, and its export takes linear time."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import onnxport

from .scripts.loops import growing
from .scripts.modules import Cell, Exported, Layers, OldMethods
from .scripts.mutation import write_in_a_loop
from .scripts.running import compare, scripted, session
from .scripts.table import t


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


def test_files_without_source(tmp_path: Any) -> None:
    script, args = scripted(Cell), (torch.ones(2, 3, 4), 2)
    torch.jit.save(script, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as whole, zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_STORED) as stripped:
        for entry in whole.namelist():
            if not entry.endswith(".debug_pkl"):
                stripped.writestr(entry, whole.read(entry))
    run = session(tmp_path / "b.pt", args, 18)
    for turns in (2, 0, 3):
        compare(run, script, (args[0], turns))


def test_methods() -> None:
    script = OldMethods().eval()
    run = session(script, (t(1, 2), 2), 18)
    for args in ((t(1, 2), 2), (t(-1, 2), 1), (t(1, 2), 0), (t(1, 2), 4)):
        compare(run, script, args)


def test_a_method_by_name() -> None:
    script = scripted(Exported)
    run = session(script.several, (t(1, 2), 2), 18)
    for turns in (2, 0, 5):
        compare(run, script.several, (t(1, 2), turns))
    with pytest.raises(onnxport.errors.ArgumentError, match="training mode"):
        session(torch.jit.script(Exported().train()).several, (t(1, 2), 2), 18)


def test_scripts_in_traces() -> None:
    loop = scripted(growing)
    write = scripted(write_in_a_loop)

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
        for count in (625, 1250, 2500):  # statements; a fifth of them branches
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

    script = scripted(Data)
    compare(session(script, (torch.ones(2, 3),), 18), script, (torch.randn(2, 3),))
