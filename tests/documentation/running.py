"""Runs the pages' code examples, by PyTorch's names under `install()` and by onnxport's own."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import onnxport

PAGES = Path(__file__).parent / "pages"
HERE = {", device='cuda'": "", ', device="cuda"': "", ".cuda()": "", "pretrained=True": "weights=None", 'device="CUDA:0"': 'device="CPU"',
        "caffe2.python.onnx.backend as backend": "onnxport.backend as backend"}


class Page:
    """One reader who types the examples of an edition one after another into one session, in a folder of its own.

    names: "onnxport" puts our name where the page says `torch.onnx`; "torch.onnx" leaves it, under `onnxport.install()`.
    """

    def __init__(self, edition: str, names: str, folder: Path):
        self.edition, self.names, self.folder = edition, names, folder
        self.session: dict[str, Any] = vars(types.ModuleType("page"))
        self.session.update(torch=torch, onnxport=onnxport)

    def text(self, example: str, faults: dict[str, str]) -> str:
        """The example as it stands on the page, but for devices, downloads, the caffe2 import, and the page's own `faults`."""
        text = (PAGES / self.edition / f"{example}.py").read_text()
        for found, wanted in HERE.items():
            text = text.replace(found, wanted)
        for found, wanted in faults.items():
            assert found in text, f"{example} has no fault {found!r}"
            text = text.replace(found, wanted)
        return text.replace("torch.onnx", "onnxport") if self.names == "onnxport" else text

    def run(self, example: str, faults: dict[str, str] | None = None, **given: Any) -> dict[str, Any]:
        """Runs an example; what it defines stays for the next one. given: what the page presumes."""
        self.session.update(given)
        path = self.folder / f"{example}.py"
        path.write_text(self.text(example, faults or {}))
        with self.here():
            exec(compile(path.read_text(), str(path), "exec"), self.session)
        return self.session

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """Inside the reader's folder, and with the names that the reader uses."""
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            with onnxport.install() if self.names == "torch.onnx" else contextlib.nullcontext():
                yield
        finally:
            os.chdir(before)


@dataclass(frozen=True)
class Line:
    """One node of a printed graph."""

    op: str
    attributes: dict[str, Any]
    shape: tuple[int, ...] | None
    scope: str


_LINE = re.compile(r"%\S+ : (?P<type>\w+)(?:\((?P<shape>[^)]*)\))? = (?P<op>[\w.]+::\w+)(?:\[(?P<attributes>.*?)\](?=\())?\((?P<inputs>[^)]*)\)"
                   r"(?:, scope: (?P<scope>\S+))?")
_ATTRIBUTE = re.compile(r"(\w+)=(\[[^\]]*\]|\{.*?\}+|[^,\]]+)")


def lines(printed: str) -> list[Line]:
    """The nodes of a graph that a page shows, or that `verbose=True` prints."""
    return [_line(m) for m in _LINE.finditer(printed)]


def _line(found: re.Match[str]) -> Line:
    shape = found["shape"]
    sizes = None if shape is None else tuple([int(s) for s in shape.split(",") if s.strip().isdigit()])
    return Line(found["op"].removeprefix("onnx::"), {n: _read(v) for n, v in _ATTRIBUTE.findall(found["attributes"] or "")}, sizes, found["scope"] or "")


def _read(text: str) -> Any:
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(text.strip("{}"))
    return text


def shown(edition: str, name: str) -> list[Line]:
    """The nodes of a graph that an edition prints."""
    return lines((PAGES / edition / f"{name}.txt").read_text())
