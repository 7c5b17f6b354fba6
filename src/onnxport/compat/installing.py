"""Makes `torch.onnx.export` and the names around it onnxport's, and undoes it: `with onnxport.install(): ...`."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import threading
from types import ModuleType
from typing import Any

_MISSING = object()
_lock = threading.Lock()
_installed: list[dict[tuple[Any, str], Any]] = []

_NAMES = ("export", "export_to_pretty_string", "register_custom_op_symbolic", "unregister_custom_op_symbolic", "select_model_mode_for_export",
          "is_in_onnx_export", "enable_log", "disable_log", "OperatorExportTypes", "TrainingMode", "JitScalarType", "SymbolicContext",
          "TensorProtoDataType", "ONNXProgram", "unconvertible_ops")
_MODULES = ("symbolic_helper", "utils", "errors")
# Where it stood in older versions; libraries look there first.
_MOVED = {"_type_utils": "onnxport.compat.scalar_type"}


class Installation:
    """What `install` did; `uninstall()` or the end of a `with` block takes it back."""

    def __init__(self, before: dict[tuple[Any, str], Any]):
        self._before = before

    def uninstall(self) -> None:
        """Puts back what was there before this installation and those that came after it."""
        with _lock:
            while self._before in _installed:
                _undo(_installed.pop())

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *error: object) -> None:
        self.uninstall()


def install() -> Installation:
    """From here on scripts that call `torch.onnx.export` (or import its `symbolic_helper`, `symbolic_opset9`, ...) use onnxport.

    What torchvision registers with PyTorch's exporter is not needed: onnxport translates its operators itself.
    """
    import onnxport

    target = importlib.import_module("torch.onnx")
    before: dict[tuple[Any, str], Any] = {}
    with _lock:
        for name in _NAMES:
            _set(before, target, name, _export() if name == "export" else getattr(onnxport, name))
        _set(before, target, "OnnxExporterError", onnxport.errors.OnnxExporterError)
        opsets = [name for name in vars(onnxport) if name.startswith("symbolic_opset")]
        modules = {name: getattr(onnxport, name) for name in (*_MODULES, *opsets)}
        for name, module in [*modules.items(), *((name, importlib.import_module(path)) for name, path in _MOVED.items())]:
            _set(before, target, name, module)
            _replace(before, f"torch.onnx.{name}", module)
        _installed.append(before)
    return Installation(before)


def uninstall() -> None:
    """Takes back the newest `install`; nothing where there is none."""
    with _lock:
        if _installed:
            _undo(_installed.pop())


def _export() -> Any:
    """`onnxport.export` whose signature also names the keywords of PyTorch's function: libraries look there for what they may pass."""
    import onnxport
    from onnxport.compat import deprecated

    @functools.wraps(onnxport.export)
    def export(*args: Any, **kwargs: Any) -> Any:
        return onnxport.export(*args, **kwargs)

    own = inspect.signature(onnxport.export)
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in deprecated.of_today().items() if name not in own.parameters]
    *named, rest = own.parameters.values()
    export.__signature__ = own.replace(parameters=[*named, *more, rest])  # type: ignore[attr-defined]
    return export


def _set(before: dict[tuple[Any, str], Any], holder: Any, name: str, value: Any) -> None:
    before[holder, name] = vars(holder).get(name, _MISSING)
    setattr(holder, name, value)


def _replace(before: dict[tuple[Any, str], Any], name: str, module: ModuleType) -> None:
    before[None, name] = sys.modules.get(name, _MISSING)
    sys.modules[name] = module


def _undo(before: dict[tuple[Any, str], Any]) -> None:
    for (holder, name), value in reversed(before.items()):
        if holder is None:
            if value is _MISSING:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = value
        elif value is _MISSING:
            delattr(holder, name)
        else:
            setattr(holder, name, value)
