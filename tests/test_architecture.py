"""The boundaries of docs/architecture.md, read from the source: who may import whom, and who may touch what."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "onnxport"
FILES = sorted(SOURCE.rglob("*.py"))

# A layer is a folder of src/onnxport, or a module that stands there by itself. Each may import itself, and:
COMMON = {"errors", "notice", "version"}
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "notice": set(),
    "version": set(),
    "progress": set(),
    "structure": set(),
    "options": set(),
    "module_calls": set(),
    "modes": {"options"},
    "calls": {"structure"},
    # The way of a model through the house.
    "aten": set(),
    "capture": {"aten", "calls", "module_calls", "structure"},
    "target": {"module_calls"},
    "ops": {"target"},
    "lower": {"aten", "module_calls", "ops", "target"},
    "symbolics": {"aten", "capture", "lower", "ops", "target"},
    "naming": {"aten", "calls", "options", "target"},
    "passes": {"module_calls", "options", "target"},
    # What becomes of a finished model.
    "wire": set(),
    "save": {"wire"},
    "runtime": {"save", "target"},
    "pretty": set(),
    "program": {"backend", "modes", "runtime", "save", "structure", "verify"},
    "backend": {"aten", "capture", "options", "runtime", "save", "target"},
    "verify": {"calls", "modes", "options", "program", "runtime", "structure", "target"},
}
ABOVE = {"building", "pipeline", "__init__"}  # see all of the above
BESIDE = {"cli", "inputs", "compat", "__main__"}  # see everything; nothing but `__init__` sees them

# Whoever touches protobuf, private names of torch or its compilers must be in this list, with the reason.
PROTOBUF = {
    "save.py": "writes and checks models",
    "verify.py": "reads models",
    "backend/__init__.py": "ONNX's backend interface takes models as protobuf",
    "backend/arrays.py": "reads tensors and attributes of such models",
    "backend/blocks.py": "cuts such models into parts",
    "backend/kept.py": "runs nodes of such models",
    "options.py": "asks onnx.helper for the IR version of an opset",
    "target/schemas.py": "reads the default values of attributes, which onnx.defs keeps as protobuf",
    "target/shape_fallback.py": "asks onnx's own inference about operators that have no rule here",
}
SCHEMAS = {"defs", "__version__"}  # of `onnx`: no protobuf
PRIVATE_TORCH = {
    "capture/torch_private.py": "the one place for them, guarded",
    "capture/scratch.py": "the values and types of the graphs that symbolic functions write into",
    "structure.py": "the registry of pytree, guarded",
}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def layer_of(name: str) -> str:
    return name.split("/")[0].removesuffix(".py")


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import; `from a import b` counts as a.b. Those for the type checker alone are left out."""
    skipped = {id(inner) for node in ast.walk(tree(path)) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
               for child in node.body for inner in ast.walk(child)}
    for node in ast.walk(tree(path)):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def dotted(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of every `a.b.c` in the code, outermost first, and of every import."""
    yield from imports(path)
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if re.fullmatch(r"[\w.]+", text):
                yield node.lineno, text


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_point_one_way(path: Path):
    name = name_of(path)
    layer = layer_of(name)
    known = set(LAYERS) | ABOVE | BESIDE
    assert layer in known, f"{name} belongs to no layer: give it a place in docs/architecture.md and here"
    for line, target in imports(path):
        if not target.startswith("onnxport.") and target != "onnxport":
            continue
        parts = target.split(".")
        wanted = parts[1] if len(parts) > 1 and parts[1] in known else "__init__"
        if wanted == layer or layer in BESIDE:
            continue
        allowed = set(LAYERS) | (BESIDE if layer == "__init__" else set()) | ABOVE if layer in ABOVE else LAYERS[layer] | COMMON
        assert wanted in allowed, f"{name}:{line}: {layer} must not import {target}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_capture_sees_the_compilers_of_torch(path: Path):
    name = name_of(path)
    if layer_of(name) in ("capture", "compat"):
        return
    for line, text in dotted(path):
        assert not re.match(r"torch\.(jit|export|fx|onnx|_dynamo|_export)\b", text), f"{name}:{line}: {text} belongs into capture/"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_private_names_of_torch_have_one_place(path: Path):
    name = name_of(path)
    if name in PRIVATE_TORCH:
        return
    for line, text in dotted(path):
        private = re.match(r"torch(\.\w+)*\._(?!_)", text) and not text.startswith("torch.ops.")  # operators may be called so
        assert not private, f"{name}:{line}: {text} is private; it belongs into capture/torch_private.py"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_save_and_verify_touch_protobuf(path: Path):
    name = name_of(path)
    if name in PROTOBUF:
        return
    at_run_time = any(text.split(".")[0] == "onnx" for _, text in imports(path))
    for line, text in dotted(path):
        parts = text.split(".")
        assert parts[0] != "google", f"{name}:{line}: {text}"
        if at_run_time and parts[0] == "onnx" and len(parts) > 1:
            assert parts[1] in SCHEMAS, f"{name}:{line}: {text} touches protobuf"
        assert not re.match(r"(ir|onnx_ir)\.(serde|to_proto|from_proto|load|save)\b", text), f"{name}:{line}: {text} touches protobuf"


def test_the_exporter_that_this_replaces_is_not_called():
    """Not torch.onnx's exporter, its symbolic functions, or its passes (tests and benchmarks may)."""
    for path in FILES:
        for line, text in dotted(path):
            assert not re.search(r"_jit_pass_onnx|torch\.onnx\.(export|utils|symbolic|_export|dynamo)|torch\._C\._onnx", text), \
                f"{name_of(path)}:{line}: {text}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_have_a_size_that_one_can_read(path: Path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 800, f"{name_of(path)} has {lines} lines: it is more than one thing"


def test_exceptions_are_still_needed():
    for listed in (PROTOBUF, PRIVATE_TORCH):
        for name in listed:
            assert (SOURCE / name).is_file(), f"{name} is gone; take it out of the list"
    for layer in LAYERS:
        assert (SOURCE / layer).is_dir() or (SOURCE / f"{layer}.py").is_file(), f"the layer {layer} is gone"


def test_layers_have_no_cycles_but_those_of_types():
    """`program` and `verify` name each other (one for a type); everything else is a true order."""
    edges = {layer: targets - {"verify"} if layer == "program" else targets for layer, targets in LAYERS.items()}
    done: set[str] = set()
    while len(done) < len(edges):
        ready = {layer for layer, targets in edges.items() if layer not in done and targets <= done}
        assert ready, f"a cycle among {sorted(set(edges) - done)}"
        done |= ready
