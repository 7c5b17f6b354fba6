"""Exports in four threads at once, and one inside of another, give the bytes that they give alone."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import onnxport
from tests.compat.running import foo, ops, proto, registered, run
from tests.compat.test_functions import MyLogExp, MyRelu

nn = torch.nn
X = torch.randn(3, 4)
NAMED: dict[str, Any] = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}}


class Called(nn.Module):
    """Calls a function of tensors."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def sizes(x: torch.Tensor) -> Any:
    if x.shape[0] > 1:
        x = x * 2
    count, *_ = x.shape
    return x.reshape(count, -1).sum(1) + x[:, ::2].mean(), torch.arange(x.shape[0])


def exporting(x: torch.Tensor) -> torch.Tensor:
    """A forward that makes a model and exports it, by every capture."""
    layer = nn.Linear(4, 4)
    for capture in ("trace", "export"):
        onnxport.export(layer, torch.ones(2, 4), io.BytesIO(), capture=capture)
    return x.tanh()


class Looped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(x.shape[0]):
            x = x + i
        return x


SHARED = nn.Sequential(nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(5, 4), nn.GELU())
IMAGE = torch.randn(2, 4, 5)
JOBS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "evaluated": (SHARED, IMAGE, {}),
    "trained": (SHARED, IMAGE, {"training": onnxport.TrainingMode.TRAINING}),
    "as it is": (SHARED, IMAGE, {"training": onnxport.TrainingMode.PRESERVE}),
    "opset 9": (SHARED, IMAGE, {"opset_version": 9}),
    "torch.export": (SHARED, IMAGE, {"capture": "export", **NAMED}),
    "dynamic": (nn.TransformerEncoderLayer(4, 2, 8).eval(), torch.randn(2, 3, 4), NAMED),
    "script": (torch.jit.script(Looped()), X, NAMED),
    "sizes": (Called(sizes), X, NAMED),
    "functions": (Called(lambda x: MyRelu.apply(x) + MyLogExp.apply(x.abs() + 2)), X, {}),
    "symbolic": (Called(lambda x: foo(x, x, 1.5, 2) + 1), X, {"custom_opsets": {"acme": 2}}),
    "aten": (SHARED, IMAGE, {"operator_export_type": onnxport.OperatorExportTypes.ONNX_ATEN}),
    "inside": (Called(exporting), X, NAMED),
}


def symbolic(g: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """It exports too, and asks for the opset of its own export."""
    onnxport.export(nn.Linear(4, 4), torch.ones(2, 4), io.BytesIO(), opset_version=11)
    assert onnxport.symbolic_helper._export_onnx_opset_version == 18 == g.opset and onnxport.is_in_onnx_export()
    return g.op("acme::Foo", a, b).setType(a.type())


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with registered("onnxport_tests::foo", symbolic), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def made(name: str) -> bytes:
    model, args, options = JOBS[name]
    stream = io.BytesIO()
    onnxport.export(model, args, stream, **options)
    return stream.getvalue()


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    """Runs `work` in threads and gives on what they raise."""
    found: list[BaseException] = []

    def caught(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=caught, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if found:
        raise found[0]


def test_four_threads_give_the_bytes_of_one() -> None:
    alone = {name: made(name) for name in JOBS}
    modes = {name: [module.training for module in model.modules()] for name, (model, _, _) in JOBS.items()}

    def work(seed: int) -> None:
        names = list(JOBS)
        random.Random(seed).shuffle(names)
        for name in names:
            assert made(name) == alone[name], name

    in_threads(work)
    assert modes == {name: [module.training for module in model.modules()] for name, (model, _, _) in JOBS.items()}
    assert not onnxport.is_in_onnx_export() and not torch._C._get_tracing_state()


def test_the_same_model_in_four_modes_at_once() -> None:
    modes = ["evaluated", "trained", "as it is", "torch.export"]
    alone = [made(name) for name in modes]

    def work(number: int) -> None:
        for _ in range(3):
            assert made(modes[number]) == alone[number]

    in_threads(work)
    assert all(module.training for module in SHARED.modules())


def test_verification_while_others_export() -> None:
    program = onnxport.export(SHARED, IMAGE)

    def work(number: int) -> None:
        if number % 2:
            made("trained")
        else:
            assert program.verify().passed

    in_threads(work)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_an_export_inside_of_a_forward(capture: str) -> None:
    """Nothing of the inner model is in the outer file. (torch.export puts fake weights into all that it captures, so the layer is no part of it.)"""
    inner: list[bytes] = []
    layer = nn.Linear(4, 4)
    alone = proto(layer, X).SerializeToString()

    def forward(x: torch.Tensor) -> torch.Tensor:
        inner.append(proto(layer, X).SerializeToString())
        return x.tanh() * 2

    outer = proto(Called(forward), X, capture=capture)
    assert inner and set(inner) == {alone} and ops(outer) == ["Tanh", "Mul"]
    assert (abs(run(outer, X)[0] - (X.tanh() * 2).numpy()) < 1e-6).all()


def test_a_mode_that_the_caller_chose_is_kept() -> None:
    """Threads may export while another holds a model in a mode of its own."""
    model = nn.Sequential(nn.Dropout(0.5))
    with onnxport.select_model_mode_for_export(model, onnxport.TrainingMode.EVAL):
        in_threads(lambda number: made("opset 9") and None)
        assert not model.training
    assert model.training


FORKING = '''
import io, os, sys, threading, time, torch, onnxport
from onnxport import modes

patience, ended, entered, release = float(sys.argv[1]), [], threading.Event(), threading.Event()
modes._PATIENCE = patience

class Slow(torch.nn.Module):
    def forward(self, x):
        entered.set()
        release.wait(0.3 if patience > 1 else 30)
        return x.relu()

def work():
    onnxport.export(Slow(), (torch.ones(2),), io.BytesIO())
    ended.append(True)

thread = threading.Thread(target=work)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    threading.Timer(40, os._exit, (1,)).start()
    program = onnxport.export(torch.nn.Tanh(), (torch.ones(2),), io.BytesIO())
    os._exit(0 if [n.op_type for n in program.model.graph] == ["Tanh"] and ended == [True] * (patience > 1) else 2)
_, status = os.waitpid(child, 0)
release.set()
thread.join()
print(os.waitstatus_to_exitcode(status), ended)
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("patience", [60, 0.05])
def test_a_fork_waits_for_exports_of_other_threads(patience: float) -> None:
    """A child that is forked while another thread exports can export: it is forked behind that export, or (where it waits too long) has its own lock."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(onnxport.__file__).parents[1])}
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING, str(patience)], capture_output=True, text=True, env=environment)
    assert found.stdout.strip() == "0 [True]", found.stderr
