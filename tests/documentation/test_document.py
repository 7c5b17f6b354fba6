"""docs/torch-onnx.md: every row has a test that exists, every argument and every example has a row."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from pathlib import Path

import pytest

import onnxport

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parent / "docs" / "torch-onnx.md"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    """The cells of each row of each table, without heads."""
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and not set(line) <= set("|-") and cells[1] != "test":
            found.append(cells)
    return found


@functools.cache
def functions_of(name: str) -> frozenset[str]:
    tree = ast.parse((TESTS / name).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
def test_row(row: list[str]) -> None:
    assert len(row) == 3
    named = NAMED.findall(row[1])
    assert named and NAMED.sub("", row[1]).strip(" ,") == ""
    for name, function in named:
        assert function.startswith("test_") and function in functions_of(name)


def test_every_argument_has_a_row() -> None:
    """Of `export` as both editions have it, but for what is onnxport's own."""
    own = {"kwargs", "external_data", "mutations", "strict", "lists", "capture", "dynamic_shapes", "verify", "optimize", "deprecated"}
    text = "\n".join(row[0] for row in rows())
    arguments = set(inspect.signature(onnxport.export).parameters) - own
    older = {"aten", "example_outputs", "strip_doc_string", "_retain_param_name"}
    assert {name for name in arguments | older if not re.search(rf"`{name}[`=:]", text)} == set()


def test_every_public_name_has_a_row() -> None:
    text = "\n".join(row[0] for row in rows())
    own = {"ONNXProgram", "__version__", "errors", "install", "uninstall"}
    assert {name for name in onnxport.__all__ if name not in own and f"`{name}`" not in text} == set()


def test_every_example_is_run() -> None:
    """Each file of the pages is named by a test of its edition."""
    pages = Path(__file__).parent / "pages"
    for edition, test in (("v1_3", "test_examples_1_3.py"), ("v1_13", "test_examples_1_13.py")):
        text = (Path(__file__).parent / test).read_text()
        missing = [path.name for path in (pages / edition).iterdir() if path.suffix in (".py", ".txt") and f'"{path.stem}"' not in text]
        assert not missing
