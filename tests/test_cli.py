"""The command line, from its arguments to its exit codes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import onnx
import pytest

from onnxport import cli, errors, progress, runtime

MODELS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)
    def forward(self, x, y=None, flag=False):
        z = self.linear(x).relu()
        z = -z if flag else z
        return z if y is None else z + y

ready = torch.nn.ReLU()

def bundle():
    return Net(), (torch.ones(2, 3),), {"y": torch.ones(4)}

def other():
    torch.manual_seed(99)
    return Net()

def broken():
    raise ValueError("no weights")

class Baked(torch.nn.Module):
    def forward(self, x):
        return x * int(x.shape[0]).bit_length()

class Unknown(torch.nn.Module):
    def forward(self, x):
        return torch.ops.acme_cli.twist(x)

class Interrupted(torch.nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt

torch.library.define("acme_cli::twist", "(Tensor x) -> Tensor")

@torch.library.impl("acme_cli::twist", "default")
def twist(x):
    return x + 1

number = 3
"""


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("models")
    (path / "cli_models.py").write_text(MODELS)
    sys.path.insert(0, str(path))
    yield path
    sys.path.remove(str(path))


def run(*arguments: Any) -> int:
    return cli.main([str(a) for a in arguments])


def axes(path: pathlib.Path) -> list[list[Any]]:
    proto = onnx.load(path)
    return [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in proto.graph.input]


def test_export_and_verify(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.onnx"
    arguments = ("cli_models:Net", "--input", "x=float32[N,3]")
    assert run("export", *arguments, "-o", path, "--opset", 17, "--verify", "--output-names", "scores") == 0
    out, err = capsys.readouterr()
    assert "N=1: same" in out
    assert out.rstrip().endswith(f"wrote {path}")
    assert "save" in err
    assert " s\n" in err
    proto = onnx.load(path)
    assert proto.opset_import[0].version == 17
    assert proto.graph.output[0].name == "scores"
    assert axes(path) == [["N", 3]]
    assert run("verify", path, *arguments) == 0
    assert "example: same" in capsys.readouterr().out


def test_arguments_by_name_or_by_position(tmp_path: pathlib.Path):
    assert run("export", "cli_models:Net", "--input", "y=float32[N,4]", "--input", "x=float32[N,3]", "--input", "flag=True",
               "-o", tmp_path / "a.onnx") == 0
    assert [v.name for v in onnx.load(tmp_path / "a.onnx").graph.input] == ["x", "y"]
    assert any(n.op_type == "Neg" for n in onnx.load(tmp_path / "a.onnx").graph.node)
    assert run("export", "cli_models:Net", "--input", "image=float32[N,3]", "--input", "more=float32[N,4]", "-o", tmp_path / "b.onnx") == 0
    assert [v.name for v in onnx.load(tmp_path / "b.onnx").graph.input] == ["image", "more"]


@pytest.mark.parametrize("target", ["cli_models:ready", "cli_models:torch.nn.ReLU"])
def test_what_a_name_may_stand_for(target: str, tmp_path: pathlib.Path):
    assert run("export", target, "--input", "x=float32[N]", "--size", "N=5", "-o", tmp_path / "m.onnx") == 0
    assert axes(tmp_path / "m.onnx") == [["N"]]


def test_factory_that_brings_its_arguments(tmp_path: pathlib.Path):
    assert run("export", "cli_models:bundle", "-o", tmp_path / "m.onnx") == 0
    assert axes(tmp_path / "m.onnx") == [[2, 3], [4]]


def test_external_data(tmp_path: pathlib.Path):
    assert run("export", "cli_models:Net", "--input", "x=float32[2,3]", "-o", tmp_path / "m.onnx", "--external-data", "yes") == 0
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["cli_models:Net", "--input", "x=float32[N,3]", "--opset", "99"], cli.USAGE, "opset_version=99"),
        (["cli_models:Net", "--input", "x=float99[N,3]"], cli.USAGE, "float99"),
        (["cli_models", "--input", "x=float32[3]"], cli.USAGE, "package.module:name"),
        (["no_such_module:Net"], cli.USAGE, "no_such_module"),
        (["cli_models:Missing"], cli.USAGE, "Missing"),
        (["cli_models:torch.nn.Linear", "--input", "x=float32[2]"], cli.USAGE, "in_features"),
        (["cli_models:number"], cli.USAGE, "is a int"),
        (["cli_models:Baked", "--input", "x=float32[N,3]"], cli.CAPTURE, "N"),
        (["cli_models:Unknown", "--input", "x=float32[3]"], cli.UNSUPPORTED, "acme_cli::twist"),
        (["cli_models:Net", "--input", "x=float32[N,3]", "--size", "M=4"], cli.USAGE, "--size M=4: no --input has an axis of this name"),
        (["cli_models:Net", "--input", "x=float32[N,3]", "--size", "N=4", "--size", "N=5"], cli.USAGE, "--size N=4: N is 5 elsewhere"),
        (["cli_models:Net", "--input", "x=float32[3,3]", "--output-names", "a,b,c"], cli.USAGE, "b, c would name nothing"),
        (["cli_models:Net", "--input", "x=float32[3,3]", "--output-names", "a,a"], cli.USAGE, "'a' twice"),
        (["cli_models:Net", "--input", "x=float32[3"], cli.USAGE, "neither DTYPE[DIMS], @FILE nor a Python literal"),
        (["cli_models:Net", "--input", "x=float32[3,-3]"], cli.USAGE, "'-3' is neither a size nor the name of an axis"),
        (["cli_models:Net", "--input", "float32[3,3]"], cli.USAGE, "it must look like NAME=DTYPE[DIMS]"),
        (["cli_models:Net", "--input", "x="], cli.USAGE, "neither DTYPE[DIMS]"),
        (["cli_models:Net", "--input", "x=float32[3,3]", "--input", "x=float32[3,3]"], cli.USAGE, "the name 'x' is given twice"),
        (["cli_models:Net", "--input", "x=float32[3,3]", "--input", "z=float32[3,3]"], cli.USAGE, "--input z: the model's parameters are x, y, flag"),
        (["cli_models:Net"], cli.USAGE, "missing a required argument"),
        (["cli_models:Net", "--input", "x=float32[3,77]"], cli.CAPTURE, "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        (["cli_models:Net", "--input", "x='text'"], cli.CAPTURE, "(--traceback shows where)"),
        (["cli_models:broken"], cli.OTHER, "ValueError: no weights (--traceback shows where)"),
        (["cli_models:Interrupted", "--input", "x=float32[3]"], cli.INTERRUPTED, "interrupted"),
    ],
)
def test_exit_codes(arguments: list[str], code: int, text: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]):
    assert run("export", *arguments, "-o", tmp_path / "m.onnx") == code
    err = capsys.readouterr().err
    assert text in err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == []


def test_exit_code_of_saving(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]):
    assert run("export", "cli_models:ready", "--input", "x=float32[3]", "-o", tmp_path / "no_such_dir" / "m.onnx") == cli.SAVE
    err = capsys.readouterr().err
    assert "no_such_dir" in err and "capture" not in err  # asked before the model runs


def test_wrong_numbers(capsys: pytest.CaptureFixture[str]):
    assert run("ops", "--opset", "99") == cli.USAGE
    assert "--opset 99: it must be one from 7 to" in capsys.readouterr().err
    for arguments, said in ((["--rtol", "-1"], "must not be negative"), (["--atol", "nan"], "must not be negative"), (["--size", "N="], "like N=4"),
                            (["--opset", "x"], "invalid int value")):
        with pytest.raises(SystemExit):
            run("export", "cli_models:Net", "-o", "m.onnx", *arguments)
        assert said in capsys.readouterr().err


def test_exit_codes_of_verifying(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.onnx"
    assert run("export", "cli_models:Net", "--input", "x=float32[N,3]", "-o", path) == 0
    assert run("verify", path, "cli_models:other", "--input", "x=float32[N,3]") == cli.DIFFERENT
    assert "largest difference" in capsys.readouterr().err
    path.write_bytes(b"nonsense")
    assert run("verify", path, "cli_models:Net", "--input", "x=float32[N,3]") == cli.RUNTIME
    assert run("verify", tmp_path / "gone.onnx", "cli_models:Net", "--input", "x=float32[N,3]") == cli.USAGE


def test_every_error_class_has_a_code():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.OnnxExporterError)]
    for kind in [*classes, runtime.RunError]:
        assert any(issubclass(kind, known) for known, _ in cli._CODES)


def test_traceback_on_request(tmp_path: pathlib.Path):
    with pytest.raises(errors.UnsupportedOperatorError):
        run("export", "cli_models:Unknown", "--input", "x=float32[3]", "-o", tmp_path / "m.onnx", "--traceback")


def test_ops(capsys: pytest.CaptureFixture[str]):
    assert run("ops") == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert any(name == "aten::relu" for name, _ in lines)
    assert all(int(opset) >= 7 for _, opset in lines)
    assert run("ops", "--opset", 7) == 0
    assert len(capsys.readouterr().out.splitlines()) <= len(lines)


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]):
    for arguments in (["--help"], ["export", "--help"], ["verify", "--help"]):
        with pytest.raises(SystemExit) as caught:
            run(*arguments)
        assert caught.value.code == 0
        out = capsys.readouterr().out
        assert "exit codes:" in out
    assert "x=float32[2,3]" in out
    with pytest.raises(SystemExit) as caught:
        run("export")
    assert caught.value.code == cli.USAGE


def test_as_a_program(folder: pathlib.Path, tmp_path: pathlib.Path):
    """Plain lines where nobody sits at a terminal; results on one stream and the rest on the other."""
    command = ["export", "cli_models:Net", "--input", "x=float32[N,3]", "-o", str(tmp_path / "m.onnx"), "--verify"]
    done = subprocess.run([sys.executable, "-m", "onnxport", *command], cwd=folder, capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines()][-2:] == ["save", "verify"]
    assert done.stdout.splitlines()[-1].startswith("wrote ")


def test_terminal_shows_progress(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("rich", reason="the cli extra is not installed")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run("export", "cli_models:ready", "--input", "x=float32[N]", "-o", tmp_path / "m.onnx") == 0
    assert "save" in capsys.readouterr().err


def test_stages_nest_and_an_error_gives_no_time():
    seen: list[Any] = []


    def fail() -> None:
        with progress.stage("two"):
            raise ValueError

    with progress.listening(lambda name, seconds: seen.append((name, seconds is not None))):
        with progress.stage("one"):
            pass
        with pytest.raises(ValueError):
            fail()
    with progress.stage("nobody listens"):
        pass
    assert seen == [("one", False), ("one", True), ("two", False)]
