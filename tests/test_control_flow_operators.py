"""torch.cond, while_loop, scan and map: through torch.export they arrive where the control flow of scripts does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils import _pytree as pytree

import onnxport
from onnxport import errors

Tensor = torch.Tensor


class Net(torch.nn.Module):
    """A function with a layer and a buffer."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        torch.manual_seed(0)
        self.function, self.lin = function, torch.nn.Linear(4, 4)
        self.register_buffer("k", torch.tensor([1.0, -1.0, 2.0, 0.5]))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def two_results(net: Net, x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda y: (net.lin(y), y * net.k), lambda y: (y - 1, y + 2), (x,))


def on_a_size(net: Net, x: Tensor) -> Any:
    return torch.cond(x.shape[0] > 3, lambda y: net.lin(y).sum(0), lambda y: y.mean(0), (x,))


def nested(net: Net, x: Tensor) -> Any:
    def inner(y: Tensor) -> Tensor:
        return torch.cond(y.min() > -1, lambda z: z * 2, lambda z: net.lin(z), (y,))

    return torch.cond(x.sum() > 0, inner, lambda y: y.abs(), (x,))


def data_sized(net: Net, x: Tensor) -> Any:
    """The branches make tensors whose sizes only the data knows, and give back what does not depend on them."""
    return torch.cond(x.sum() > 0, lambda y: y[y[:, 0] > 0.5].sum(0), lambda y: y[y[:, 1] < 0].sum(0), (x,))


def turns(net: Net, x: Tensor) -> Any:
    return while_loop(lambda i, y: (i < 5) & (y.sum() < 20), lambda i, y: (i + 1, net.lin(y).abs() + y), (torch.tensor(0), x))


def turns_by_size(net: Net, x: Tensor) -> Any:
    return while_loop(lambda i, y: i < x.shape[0], lambda i, y: (i + 1, y * net.k + i), (0, x.clone()))


def loop_of_branches(net: Net, x: Tensor) -> Any:
    def turn(i: Tensor, y: Tensor) -> Any:
        return i + 1, torch.cond(y.mean() > 0, lambda z: z - 1.5, lambda z: net.lin(z), (y,))

    return while_loop(lambda i, y: i < x.abs().sum(), turn, (torch.tensor(0), x))


def running(net: Net, x: Tensor) -> Any:
    return scan(lambda c, y: (c + y * net.k, c * 2), torch.zeros(4), x)


def running_back(net: Net, x: Tensor) -> Any:
    return scan(lambda c, y: (c * 0.5 + y, c.exp()), x.new_zeros(x.shape[0]), x, dim=1, reverse=True)


def running_trees(net: Net, x: Tensor) -> Any:
    def step(c: Any, y: Any) -> Any:
        return {"sum": c["sum"] + y[0].sum(), "all": c["all"] * y[1]}, [c["all"] + 1, y[0] * 2]

    return scan(step, {"sum": torch.zeros(()), "all": torch.ones(4)}, [x, x * 2])


def each(net: Net, x: Tensor) -> Any:
    return torch_map(lambda y, k: (net.lin(y) + k, y.sum()), x, net.k)


def scan_in_a_branch(net: Net, x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda y: scan(lambda c, e: (c + e, c * e), y.new_zeros(4), y)[1], lambda y: y - 1, (x,))


def writes_inside(net: Net, x: Tensor) -> Any:
    def turn(i: Tensor, y: Tensor) -> Any:
        z = y * 2
        z[:, 0] = 1
        z += net.k
        return i + 1, z

    return while_loop(lambda i, y: i < 3, turn, (torch.tensor(0), x))


def compiled_inside(net: Net, x: Tensor) -> Any:
    return torch.compile(lambda y: net.lin(y) + 1, backend="eager")(x)


@torch.compiler.nested_compile_region
def region(y: Tensor) -> Tensor:
    return y.sin() + 1


def regions(net: Net, x: Tensor) -> Any:
    return region(x) + region(region(x) * 2)


def under_autocast(net: Net, x: Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.float16):
        y = net.lin(x)
        z = torch.cat([y, x])
        with torch.autocast("cpu", enabled=False):
            w = net.lin(x)
    return y, z, w


@dataclass
class Row:
    """function: of (net, x).   kinds: control-flow nodes of the file, inner ones too.

    reference: the same in plain Python, where torch cannot run it itself.
    """

    function: Callable[[Net, Tensor], Any]
    kinds: tuple[str, ...]
    reference: Callable[[Net, Tensor], Any] | None = None


def _turns_by_size(net: Net, x: Tensor) -> Any:
    y = x
    for i in range(x.shape[0]):
        y = y * net.k + i
    return x.shape[0], y


ROWS = [
    Row(two_results, ("If",)), Row(on_a_size, ("If",)), Row(nested, ("If", "If")), Row(data_sized, ("If",)),
    Row(turns, ("Loop",)), Row(turns_by_size, ("Loop",), _turns_by_size), Row(loop_of_branches, ("Loop", "If")),
    Row(running, ("Scan",)), Row(running_back, ("Scan",)), Row(running_trees, ("Scan",)), Row(each, ("Scan",)),
    Row(scan_in_a_branch, ("If", "Scan")), Row(writes_inside, ()), Row(compiled_inside, ()), Row(regions, ()), Row(under_autocast, ()),
]
EAGER_INSIDE = torch.__version__ >= "2.14"  # older ones have no switch for what torch.compile made, and torch.export follows it
INPUTS = [torch.linspace(-1, 2, 4 * n).reshape(n, 4) * sign for n in (3, 1, 6) for sign in (1, -1)]


def kinds(program: onnxport.ONNXProgram) -> list[str]:
    return [node.op_type for node in program.model.graph.all_nodes() if node.op_type in ("If", "Loop", "Scan")]


def agree(program: onnxport.ONNXProgram, row: Row, model: Net) -> None:
    for x in INPUTS:
        with torch.no_grad():
            wanted = pytree.tree_leaves(model(x) if row.reference is None else row.reference(model, x))
        for got, want in zip(program(x), wanted, strict=True):
            torch.testing.assert_close(got, torch.as_tensor(want), rtol=1e-3, atol=1e-3)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("opset", [9, 18])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.function.__name__)
def test_modules(row: Row, opset: int) -> None:
    """Plain exports: what the tracer cannot follow goes through torch.export, and the program says so."""
    model = Net(row.function).eval()
    program = onnxport.export(model, (INPUTS[0],), dynamic_axes={"x": {0: "n"}}, opset_version=opset)
    traced = [regions, under_autocast, *([compiled_inside] if EAGER_INSIDE else [])]
    assert program.capture == ("trace" if row.function in traced else "export")
    assert not program.notes or "test_control_flow_operators.py:" in program.notes[0]
    assert sorted(kinds(program)) == sorted(row.kinds)
    assert not program.guards
    agree(program, row, model)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("row", [row for row in ROWS if row.reference is None], ids=lambda row: row.function.__name__)
def test_exported_programs(row: Row, strict: bool) -> None:
    model = Net(row.function).eval()
    with torch.no_grad():
        captured = torch.export.export(model, (INPUTS[0],), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), strict=strict)
    program = onnxport.export(captured)
    assert program.capture == "export"
    assert sorted(kinds(program)) == sorted(row.kinds)
    agree(program, row, model)


def test_vmap_of_an_exported_program() -> None:
    model = Net(lambda net, x: associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")).eval()
    captured = torch.export.export(model, (torch.rand(5, 4),))
    x = torch.rand(5, 4)
    torch.testing.assert_close(onnxport.export(captured)(x)[0], x.cumsum(0))


def test_a_trace_that_was_asked_for_is_no_other() -> None:
    with pytest.raises(errors.CaptureError, match=r"test_control_flow_operators.py:\d+: PyTorch's tracer fails here: it does not follow torch.cond.*capture='export'"):
        onnxport.export(Net(two_results), (INPUTS[0],), capture="trace")


def test_a_refusal_says_why_torch_export_was_tried() -> None:
    def different(net: Net, x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda y: y[:1], lambda y: y.sum(), (x,))

    with pytest.raises(errors.CaptureError, match=r"(?s)torch.export refuses.*was tried because of .*\.py:\d+: it does not follow torch.cond"):
        onnxport.export(Net(different), (INPUTS[0],))


def test_an_older_opset_is_refused_with_a_reason() -> None:
    with pytest.raises(errors.UnsupportedError, match="a scan needs opset 9"):
        onnxport.export(Net(running), (INPUTS[0],), opset_version=8)


def test_a_fresh_process() -> None:
    """torch.cond imports torch's compiler at its first call, which is inside the trace here."""
    code = ("import torch, onnxport\n"
            "class Net(torch.nn.Module):\n"
            "    def forward(self, x):\n"
            "        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))\n"
            "print(onnxport.export(Net(), (torch.rand(3),))(torch.ones(3)))\n")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tensor([2., 2., 2.])" in ran.stdout
