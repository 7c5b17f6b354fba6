"""Python imports this when it starts. As soon as the process has imported torch, its `torch.onnx` is onnxport's.

Nothing of onnxport or torch is imported before: most processes that a script starts need neither.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent


class BehindTorch(MetaPathFinder):
    """Finds torch as the other finders do, and installs onnxport once it has been imported."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of torch, whose import ends with ours; None for other modules."""
        if fullname != "torch":
            return None
        found = (finder.find_spec(fullname, path, target) for finder in list(sys.meta_path) if finder is not self)
        spec = next(filter(None, found), None)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            loader.exec_module = self.then(loader.exec_module)
        return spec

    def then(self, execute: Any) -> Any:
        """`execute`, and the installation behind it."""

        def both(module: ModuleType) -> None:
            execute(module)
            sys.meta_path.remove(self)
            install()

        return both


def install() -> None:
    """`onnxport.install()`; where onnxport cannot be imported, a warning, and torch.onnx stays PyTorch's."""
    if importlib.util.find_spec("onnxport") is None:
        sys.path.append(str(HERE.parents[2]))
    try:
        importlib.import_module("onnxport").install()
    except Exception as cause:
        warnings.warn(f"onnxport run: torch.onnx stays PyTorch's in this process ({type(cause).__name__}: {cause})", stacklevel=1)


def give_way() -> None:
    """Imports the `sitecustomize` that this one hides, if there is one."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    sys.modules.pop("sitecustomize", None)
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, BehindTorch())
    give_way()
