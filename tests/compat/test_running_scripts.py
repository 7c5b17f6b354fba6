"""`python -m onnxport run script.py`: a script that was written for torch.onnx, unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import torch.onnx

import onnxport
from onnxport import cli
from tests.compat.test_installing import state

SCRIPT = '''
import sys
import torch
from torch.onnx import OperatorExportTypes, register_custom_op_symbolic
from torch.onnx.symbolic_helper import parse_args
from neighbour import SIZE

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

@parse_args("v")
def symbolic(g, x):
    return g.op("Neg", x)

if __name__ == "__main__":
    if "--neg" in sys.argv:
        register_custom_op_symbolic("aten::relu", symbolic, 9)
    torch.onnx.export(Net(), (torch.ones(SIZE),), sys.argv[1], opset_version=13, operator_export_type=OperatorExportTypes.ONNX)
    if "--neg" in sys.argv:
        torch.onnx.unregister_custom_op_symbolic("aten::relu", 9)
    assert sys.modules["__main__"].Net is Net
    print("argv", sys.argv[1:])
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "neighbour.py").write_text("SIZE = 3\n")
    return tmp_path


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delitem(sys.modules, "neighbour", raising=False)
    yield
    sys.modules.pop("neighbour", None)


def run(*arguments: Any) -> int:
    return cli.main(["run", *map(str, arguments)])


def ops(path: Path) -> list[str]:
    made = onnx.load(path)
    assert made.producer_name == "onnxport"
    return [node.op_type for node in made.graph.node]


def test_a_script_with_arguments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, argv, path = state(), sys.argv[:], sys.path[:]
    main = sys.modules["__main__"]
    assert run(folder / "script.py", folder / "a.onnx") == 0 and ops(folder / "a.onnx") == ["Relu"]
    assert run(folder / "script.py", folder / "b.onnx", "--neg", "-m", "--help") == 0 and ops(folder / "b.onnx") == ["Neg"]
    assert f"argv ['{folder / 'b.onnx'}', '--neg', '-m', '--help']" in capsys.readouterr().out
    assert state() == before and sys.argv == argv and sys.path == path and sys.modules["__main__"] is main


def test_a_module_and_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run("-m", "script", folder / "c.onnx") == 0 and ops(folder / "c.onnx") == ["Relu"]
    package = folder / "package"
    package.mkdir()
    (package / "__main__.py").write_text(SCRIPT)
    (package / "neighbour.py").write_text("SIZE = 4\n")
    sys.modules.pop("neighbour", None)
    assert run(package, folder / "d.onnx") == 0 and ops(folder / "d.onnx") == ["Relu"]


@pytest.mark.parametrize(("body", "code", "said"), [
    ("raise SystemExit", 0, ""),
    ("import sys; sys.exit(7)", 7, ""),
    ("import sys; sys.exit('no weights')", 1, "no weights"),
    ("raise KeyboardInterrupt", 130, ""),
    ("raise ValueError('mine')", 1, "ValueError: mine"),
    ("import torch, io; torch.onnx.export(torch.relu, (torch.ones(2),), io.BytesIO(), opset_version=3)", 1, "opset_version=3"),
    ("import torch, torch.onnx as o\ntry: o.export(torch.relu, (torch.ones(2),), None, opset_version=3)\nexcept o.OnnxExporterError: raise SystemExit(9)", 9, ""),
    ("import torch.onnx.errors as e, onnxport; assert e.UnsupportedOperatorError is onnxport.errors.UnsupportedOperatorError", 0, ""),
    ("def broken(:", 1, "SyntaxError"),
])
def test_exit_codes_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, code: int, said: str) -> None:
    before = state()
    (tmp_path / "s.py").write_text(body)
    assert run(tmp_path / "s.py") == code
    shown = capsys.readouterr().err
    assert said in shown and "runpy" not in shown
    assert state() == before


def test_there_is_no_such_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "nothing.py") == 2
    assert "there is no file" in capsys.readouterr().err
    for arguments, said in ((["-m", "no_such_module"], "No module named no_such_module"), ([tmp_path], "can't find '__main__' module")):
        assert run(*arguments) == 1
        shown = capsys.readouterr().err
        assert said in shown and "runpy" not in shown


def test_from_a_shell(folder: Path) -> None:
    (folder / "fails.py").write_text("import sys\nprint(sys.argv)\nsys.exit(5)\n")
    found = subprocess.run([sys.executable, "-m", "onnxport", "run", "fails.py", "-x", "1"], cwd=folder, capture_output=True, text=True)
    assert (found.returncode, found.stdout.strip()) == (5, "['fails.py', '-x', '1']"), found.stderr


def test_errors_can_be_caught_by_pytorchs_names() -> None:
    with onnxport.install():
        for known in (torch.onnx.OnnxExporterError, torch.onnx.errors.OnnxExporterError):
            with pytest.raises(known):
                torch.onnx.export(torch.relu, (torch.ones(2),), None, opset_version=3)


PARENT = '''
import multiprocessing, subprocess, sys
from concurrent.futures import ProcessPoolExecutor

def export(path):
    import torch
    torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), path, opset_version=13)
    return torch.onnx.export.__module__

if __name__ == "__main__":
    apart = subprocess.Popen([sys.executable, "-c", "import child; print(child.export('apart.onnx'))"], stdout=subprocess.PIPE, text=True)
    plain = subprocess.Popen([sys.executable, "-c", "import sys, sitecustomize; print('torch' in sys.modules, sitecustomize.MINE)"],
                             stdout=subprocess.PIPE, text=True)
    method = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=method) as pool:
        print(pool.submit(export, "spawned.onnx").result(), apart.communicate()[0].strip(), plain.communicate()[0].strip())
'''


def test_processes_that_a_script_starts(tmp_path: Path) -> None:
    """Spawned and run apart; a `sitecustomize` of one's own is still imported, and torch only by those who want it."""
    (tmp_path / "child.py").write_text(PARENT)
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("MINE = 5\n")
    source = str(Path(onnxport.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(own), source])}
    found = subprocess.run([sys.executable, "-m", "onnxport", "run", "child.py"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert found.stdout.split() == ["onnxport", "onnxport", "False", "5"], found.stderr
    assert ops(tmp_path / "apart.onnx") == ops(tmp_path / "spawned.onnx") == ["Relu"]


def test_what_children_find_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.py").write_text("import os; print(os.environ['PYTHONPATH'])")
    for before in (None, "a"):
        monkeypatch.delenv("PYTHONPATH", raising=False) if before is None else monkeypatch.setenv("PYTHONPATH", before)
        assert run(tmp_path / "s.py") == 0
        first, *rest = capsys.readouterr().out.strip().split(os.pathsep)
        assert first.endswith("children") and rest == ([] if before is None else [before])
        assert os.environ.get("PYTHONPATH") == before


def test_a_child_that_cannot_import_onnxport(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxport.compat.children import sitecustomize

    monkeypatch.setitem(sys.modules, "onnxport", None)
    monkeypatch.setattr(sitecustomize.importlib.util, "find_spec", lambda name: object())
    with pytest.warns(UserWarning, match="torch.onnx stays PyTorch's in this process"):
        sitecustomize.install()
