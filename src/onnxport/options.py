"""The arguments of `export()`, checked and brought into one form, once."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
import onnx.defs
import onnx.helper
import torch

from onnxport import errors, notice

OLDEST_OPSET = 7
DEFAULT_OPSET = 18
FUNCTIONS_FROM = 15  # the opset from which on a file can hold functions
UPDATED = "_updated"  # behind the name of a buffer or input whose new value `mutations="outputs"` makes an output


def newest_opset() -> int:
    """The newest ai.onnx opset that the installed `onnx` defines."""
    return int(onnx.defs.onnx_opset_version())


class TrainingMode(enum.IntEnum):
    """In which mode the model is exported: as for inference, as it is, or as for training."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """What becomes of operators: ONNX only, or ATen and custom operators kept as nodes."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    RAW = 3
    ONNX_FALLTHROUGH = 4


MUTATIONS = ("warn", "outputs", "error", "ignore")
LISTS = ("auto", "sequences", "flat")


@dataclass(frozen=True)
class Options:
    """What an export is to do; see `onnxport.export` for each of them."""

    opset: int = DEFAULT_OPSET
    ir_version: int = 8
    export_params: bool = True
    verbose: bool = False
    training: TrainingMode = TrainingMode.EVAL
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX
    constant_folding: bool = True
    dynamic_axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    automatic: frozenset[tuple[str, int]] = frozenset()  # axes named automatically (`sum_dynamic_axes_1`)
    initializers_as_inputs: bool = False
    custom_opsets: Mapping[str, int] = field(default_factory=dict)
    mutations: str = "warn"
    strict: bool = False
    lists: str = "auto"
    functions: bool | frozenset[type] = False  # the modules that become functions: all, or those of these classes
    translations: Mapping[Any, Any] = field(default_factory=dict)  # operator -> a function of onnxscript, or several


def normalise(*, export_params: Any = True, verbose: Any = False, training: Any = TrainingMode.EVAL, input_names: Any = None,
              output_names: Any = None, operator_export_type: Any = OperatorExportTypes.ONNX, opset_version: Any = None,
              do_constant_folding: Any = True, dynamic_axes: Any = None, keep_initializers_as_inputs: Any = None,
              custom_opsets: Any = None, mutations: str = "warn", strict: bool = False, lists: str = "auto",
              export_modules_as_functions: Any = False, custom_translation_table: Any = None) -> Options:
    """Checks every argument; a wrong one is an `ArgumentError` (a `ValueError`) that names it."""
    opset = _opset(opset_version)
    verbose = False if verbose is None else verbose
    flags = {name: _flag(name, value) for name, value in (
        ("export_params", export_params), ("verbose", verbose), ("do_constant_folding", do_constant_folding), ("strict", strict))}
    export_type = _member(OperatorExportTypes, operator_export_type, "operator_export_type")
    inputs, outputs = _names("input_names", input_names), _names("output_names", output_names)
    axes, automatic = _axes(dynamic_axes)
    for argument, value, known in (("mutations", mutations, MUTATIONS), ("lists", lists, LISTS)):
        if value not in known:
            raise errors.ArgumentError(f"{argument}={value!r}: it must be one of {', '.join(known)}")
    as_inputs = None if keep_initializers_as_inputs is None else _flag("keep_initializers_as_inputs", keep_initializers_as_inputs)
    if opset < 9:
        as_inputs = True
    elif as_inputs is None:
        as_inputs = export_type != OperatorExportTypes.ONNX
    return Options(
        opset=opset, ir_version=ir_version(opset), export_params=flags["export_params"], verbose=flags["verbose"],
        training=_member(TrainingMode, training, "training"), input_names=inputs, output_names=outputs, operator_export_type=export_type,
        constant_folding=flags["do_constant_folding"], dynamic_axes=axes, automatic=automatic, initializers_as_inputs=bool(as_inputs),
        custom_opsets=_opsets(custom_opsets), mutations=mutations, strict=flags["strict"],
        lists=lists, functions=_functions(export_modules_as_functions, opset), translations=_table(custom_translation_table))


def _functions(wanted: Any, opset: int) -> bool | frozenset[type]:
    """`export_modules_as_functions`: True, False, or classes of modules."""
    chosen: bool | frozenset[type] = wanted if isinstance(wanted, bool) else _module_classes(wanted)
    if chosen and opset < FUNCTIONS_FROM:
        raise errors.ArgumentError(f"export_modules_as_functions needs opset_version {FUNCTIONS_FROM} or higher, not {opset}: "
                                   "older files cannot hold functions")
    return chosen


def _module_classes(wanted: Any) -> frozenset[type]:
    if isinstance(wanted, (str, type)) or not isinstance(wanted, Iterable):
        raise errors.ArgumentError(f"export_modules_as_functions={wanted!r}: it must be True, False or a set of module classes")
    classes = frozenset(wanted)
    for kind in classes:
        if not isinstance(kind, type) or not issubclass(kind, torch.nn.Module):
            raise errors.ArgumentError(f"export_modules_as_functions holds {kind!r}: only classes of torch.nn.Module can stand in it")
    return classes


def _table(given: Any) -> Mapping[Any, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise errors.ArgumentError(f"custom_translation_table must be a dict of operator to function, not {type(given).__name__}")
    return given or {}


def ir_version(opset: int) -> int:
    """The oldest IR version that may hold this opset."""
    return int(onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)], ignore_unknown=True))


def _opset(version: Any) -> int:
    if version is None:
        return min(DEFAULT_OPSET, newest_opset())
    if isinstance(version, bool) or not isinstance(version, int) or not OLDEST_OPSET <= version <= newest_opset():
        raise errors.ArgumentError(
            f"opset_version={version!r}: it must be an int from {OLDEST_OPSET} to {newest_opset()} (the newest that onnx {onnx.__version__} defines)")
    return version


def _member(kind: Any, value: Any, argument: str) -> Any:
    """Ours, PyTorch's member of the same name, or (deprecated spelling) None, and True or False for `training`."""
    if value is None or (isinstance(value, bool) and kind is TrainingMode):
        made = kind(0) if value is None else TrainingMode.TRAINING if value else TrainingMode.EVAL
        notice.warn(f"{argument}={value} is deprecated; write {argument}={kind.__name__}.{made.name}", DeprecationWarning)
        return made
    name = getattr(value, "name", None)
    if isinstance(name, str) and name in kind.__members__:
        return kind[name]
    try:
        return kind(value)
    except ValueError:
        raise errors.ArgumentError(f"{argument}={value!r}: it must be one of {', '.join(kind.__members__)}") from None


def _flag(argument: str, value: Any) -> bool:
    """A bool, or the 0 or 1 that stands for one."""
    if type(value).__name__ not in ("bool", "bool_", "int") or value not in (0, 1):
        raise errors.ArgumentError(f"{argument}={value!r}: it must be True or False")
    return bool(value)


def _names(argument: str, names: Any) -> tuple[str, ...]:
    if names is None:
        return ()
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise errors.ArgumentError(f"{argument} must be a list of strings, not {names!r}")
    seen: set[str] = set()
    for name in names:
        if not name:
            raise errors.ArgumentError(f"{argument} holds an empty name")
        if name in seen:
            raise errors.ArgumentError(f"{argument} holds the name {name!r} twice (duplicate names cannot stand in one graph)")
        seen.add(name)
    return tuple(names)


def _axes(dynamic_axes: Any) -> tuple[dict[str, dict[int, str]], frozenset[tuple[str, int]]]:
    """Both forms as name -> axis -> label; axes of a list get the documented names `<name>_dynamic_axes_<k>`."""
    if not dynamic_axes:
        return {}, frozenset()
    if not isinstance(dynamic_axes, Mapping):
        raise errors.ArgumentError(f"dynamic_axes must be a dict, not {type(dynamic_axes).__name__}")
    result: dict[str, dict[int, str]] = {}
    automatic = set()
    for name, axes in dynamic_axes.items():
        if isinstance(axes, Mapping):
            result[name] = {_axis(name, a): _label(name, label) for a, label in axes.items()}
        elif isinstance(axes, Sequence) and not isinstance(axes, str):
            result[name] = {}
            for position, axis in enumerate(axes, 1):
                result[name][_axis(name, axis)] = f"{name}_dynamic_axes_{position}"
                automatic.add((name, axis))
        else:
            raise errors.ArgumentError(f"dynamic_axes[{name!r}] must be a dict of axis to name or a list of axes, not {axes!r}")
    return result, frozenset(automatic)


def _axis(name: str, axis: Any) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise errors.ArgumentError(f"dynamic_axes[{name!r}]: an axis must be an int, not {axis!r}")
    return axis


def _label(name: str, label: Any) -> str:
    if not isinstance(label, str) or not label:
        raise errors.ArgumentError(f"dynamic_axes[{name!r}]: the name of an axis must be a string, not {label!r}")
    return label


def _opsets(custom: Any) -> dict[str, int]:
    if not custom:
        return {}
    if not isinstance(custom, Mapping) or not all(isinstance(k, str) and isinstance(v, int) for k, v in custom.items()):
        raise errors.ArgumentError("custom_opsets must be a dict of domain to version")
    if "" in custom or "ai.onnx" in custom:
        raise errors.ArgumentError("custom_opsets holds ONNX's own domain: its version is opset_version")
    return dict(custom)
