"""Arguments that `export` had once, or that `torch.onnx.export` has today: honoured where we have the thing, named where not."""

from __future__ import annotations

import reprlib
from typing import Any

from onnxport import notice
from onnxport.capture import choose, script
from onnxport.compat import artifacts
from onnxport.options import OperatorExportTypes

# Spellings that are gone, and what to write instead.
_GONE = {
    "example_outputs": "leave it out: the outputs are computed",
    "strip_doc_string": "write verbose=True to keep doc strings",
    "aten": "write operator_export_type=OperatorExportTypes.ONNX_ATEN",
    "export_raw_ir": "write operator_export_type=OperatorExportTypes.RAW",
    "_retain_param_name": "leave it out: parameters always keep their names",
    "enable_onnx_checker": "leave it out: models are always checked",
    "use_external_data_format": "write external_data",
}
# What torch.onnx.export knows today and we do not have: (the value that means nothing, why there is none).
_ABSENT: dict[str, tuple[Any, str]] = {
    "optimize": (True, "models are always optimised"),
    "autograd_inlining": (True, "functions without a symbolic are always inlined"),
    "fallback": (False, "there is one exporter"),
}


def translated(given: dict[str, Any], function: str = "export", model: Any = None) -> dict[str, Any]:
    """Other arguments in today's spelling. One that never existed is a TypeError, as for any function."""
    result: dict[str, Any] = {}
    for name, value in given.items():
        if name in _GONE:
            notice.warn(f"the argument {name} of {function} is deprecated: {_GONE[name]}", DeprecationWarning)
            result.update(_meaning(name, value))
        elif name in _ABSENT:
            neutral, why = _ABSENT[name]
            if value != neutral:
                notice.warn(f"{name}={reprlib.repr(value)} changes nothing in {function}: {why}", UserWarning)
        elif name == "custom_translation_table":
            result[name] = value
        elif name == "dynamo":
            result.update(_captured(value, model))
        elif name not in artifacts.ARGUMENTS:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    return result


def of_today() -> dict[str, Any]:
    """The keywords of PyTorch's function that are none of `onnxport.export`'s own parameters, each with the value that means nothing."""
    absent = {name: neutral for name, (neutral, _) in _ABSENT.items()}
    return {"dynamo": False, "custom_translation_table": None, **absent, **dict.fromkeys(sorted(artifacts.ARGUMENTS), False), "artifacts_dir": "."}


def _captured(dynamo: Any, model: Any) -> dict[str, Any]:
    """`dynamo=True` captures by torch.export, which cannot read a script, and a program is captured already."""
    return {"capture": "export"} if dynamo and not script.is_script(model) and not choose.is_program(model) else {}


def _meaning(name: str, value: Any) -> dict[str, Any]:
    if name == "aten" and value:
        return {"operator_export_type": OperatorExportTypes.ONNX_ATEN}
    if name == "export_raw_ir" and value:
        return {"operator_export_type": OperatorExportTypes.RAW}
    if name == "use_external_data_format":
        return {"external_data": bool(value) or None}
    return {}
