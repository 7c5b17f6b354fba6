"""The command line: `onnxport export`, `onnxport verify`, `onnxport ops`, `onnxport run`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

import onnxport
from onnxport import errors, inputs, progress, runtime, save
from onnxport.ops import registry
from onnxport.options import OLDEST_OPSET, newest_opset
from onnxport.verify import verify

USAGE, CAPTURE, UNSUPPORTED, INVALID, SAVE, DIFFERENT, RUNTIME, OTHER, INTERRUPTED = 2, 3, 4, 5, 6, 7, 8, 1, 130

# The first that fits; subclasses stand before their bases.
_CODES: list[tuple[type[BaseException], int]] = [
    (errors.ArgumentError, USAGE),
    (errors.SaveError, SAVE),
    (errors.VerificationError, DIFFERENT),
    (runtime.RunError, RUNTIME),
    (errors.UnsupportedOperatorError, UNSUPPORTED),
    (errors.UnsupportedError, UNSUPPORTED),
    (errors.CaptureError, CAPTURE),
    (errors.MutationError, CAPTURE),
    (errors.OnnxExporterError, INVALID),
    (KeyboardInterrupt, INTERRUPTED),
]

_MODES = {"eval": onnxport.TrainingMode.EVAL, "preserve": onnxport.TrainingMode.PRESERVE, "train": onnxport.TrainingMode.TRAINING}

_EPILOG = f"""\
exit codes:
  0  done
  {USAGE}  a wrong argument, or the model cannot be imported
  {CAPTURE}  the model could not be captured (it failed, or a number would have become a constant of the file)
  {UNSUPPORTED}  an operator, or what it was asked to do, has no translation at this opset
  {INVALID}  the finished model is not valid (a fault of onnxport)
  {SAVE}  the file could not be written; what was there before is untouched
  {DIFFERENT}  ONNX Runtime and PyTorch disagree
  {RUNTIME}  ONNX Runtime is missing, or does not load or run the file
  {OTHER}  anything else
  {INTERRUPTED}  interrupted
"""

_RUN = """\
In the script torch.onnx.export, register_custom_op_symbolic, symbolic_helper and the names around them are onnxport's,
also in the Python processes that it starts, but for those that are started without its PYTHONPATH (another env, python -I).
The exit code is that of the script.
"""

_INPUTS = "inputs (--input, once for each, in the order of the model's parameters or under their names):\n" + "\n".join(
    f"  {line}" for line in inputs.HELP.splitlines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], Any] = options.command
    if command is _run:
        return _run(options)
    try:
        with _plain_warnings():
            command(options)
    except BrokenPipeError:  # `onnxport ops | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (errors.OnnxExporterError, KeyboardInterrupt) as error:
        if options.traceback and not isinstance(error, KeyboardInterrupt):
            raise
        _say(f"error: {error}" if str(error) else "interrupted")
        return next(code for kind, code in _CODES if isinstance(error, kind))
    except Exception as error:  # of the model's own code: its module, its factory
        if options.traceback:
            raise
        _say(f"error: {_described(error)}")
        return OTHER
    return 0


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error} (--traceback shows where)"


# ---------------------------------------------------------------------- commands


def _export(options: argparse.Namespace) -> None:
    save.check_target(options.output)
    given = inputs.parse(options.input, _sizes(options.size), options.seed)
    torch.manual_seed(options.seed)  # a factory that fills its model with random numbers gives the same model again
    model, args, kwargs, names = _call(options.model, given)
    external = {"auto": None, "yes": True, "no": False}[options.external_data]
    with _stages():
        with _of_the_model():
            program = onnxport.export(
                model, (*args, {}), None, kwargs=kwargs, input_names=names, output_names=_list(options.output_names),
                opset_version=options.opset, dynamic_axes=given.dynamic_axes, training=_MODES[options.training], verbose=options.verbose,
                do_constant_folding=not options.no_constant_folding, export_params=not options.no_params, mutations=options.mutations,
                strict=options.strict, lists=options.lists)
        with progress.stage("save"):
            program.save(options.output, external_data=external)
        if options.verify:
            with progress.stage("verify"):
                report = program.verify(rtol=options.rtol, atol=options.atol)
    if options.verify:
        print(report)
    print(f"wrote {options.output}")


@contextlib.contextmanager
def _of_the_model() -> Iterator[None]:
    """What the model's forward raises is an error of the capture."""
    try:
        yield
    except errors.OnnxExporterError:
        raise
    except Exception as cause:
        raise errors.CaptureError(_described(cause)) from cause


def _verify(options: argparse.Namespace) -> None:
    given = inputs.parse(options.input, _sizes(options.size), options.seed)
    torch.manual_seed(options.seed)
    model, args, kwargs, _ = _call(options.model, given)
    with _stages(), progress.stage("verify"), _of_the_model():
        report = verify(options.file, model, (*args, {}), kwargs, rtol=options.rtol, atol=options.atol,
                        training=_MODES[options.training])
    print(report)


def _ops(options: argparse.Namespace) -> None:
    if options.opset is not None and not OLDEST_OPSET <= options.opset <= newest_opset():
        raise errors.ArgumentError(f"--opset {options.opset}: it must be one from {OLDEST_OPSET} to {newest_opset()}")
    for name, opset in registry.supported():
        if options.opset is None or opset <= options.opset:
            print(f"{name}\t{opset}")


def _run(options: argparse.Namespace) -> int:
    """Runs a script as Python itself would; the exit code is the script's."""
    from onnxport.compat import scripts

    return scripts.run(options.script, options.arguments, module=options.module)


# ---------------------------------------------------------------------- the model and its arguments


def _sizes(given: Sequence[tuple[str, int]]) -> dict[str, int]:
    sizes = dict(given)
    for name, size in given:
        if sizes[name] != size:
            raise errors.ArgumentError(f"--size {name}={size}: {name} is {sizes[name]} elsewhere")
    return sizes


def _call(target: str, given: inputs.Inputs) -> tuple[Any, tuple[Any, ...], dict[str, Any], list[str] | None]:
    """The model, args, kwargs and input names. The factory may bring arguments of its own: `(model, args)` or `(model, args, kwargs)`."""
    made = _made(target)
    model, *own = made if isinstance(made, tuple) and made and callable(made[0]) else (made,)
    if not given.values:
        args = own[0] if own else ()
        return model, args if isinstance(args, tuple) else (args,), dict(own[1]) if len(own) > 1 else {}, None
    parameters = _parameters_of(getattr(model, "forward", model))
    known = {p.name for p in parameters}
    if set(given.values) <= known:
        return model, (), dict(given.values), None
    stray = sorted(set(given.values) - known)
    if len(stray) < len(given.values) and not any(p.kind == p.VAR_KEYWORD for p in parameters):
        raise errors.ArgumentError(f"--input {stray[0]}: the model's parameters are {', '.join(p.name for p in parameters)}")
    return model, tuple(given.values.values()), {}, given.tensors


def _parameters_of(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _made(target: str) -> Any:
    """What `package.module:name` names; a class or function is called."""
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise errors.ArgumentError(f"the model must be given as package.module:name, not {target!r}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        made: Any = importlib.import_module(module_name)
        for name in path.split("."):
            made = getattr(made, name)
    except (ImportError, AttributeError) as error:
        raise errors.ArgumentError(f"cannot import {target!r}: {error}") from error
    if isinstance(made, torch.nn.Module):
        return made
    if not callable(made):
        raise errors.ArgumentError(f"{target!r} is a {type(made).__name__}, and should be a module, or a class or function that makes one")
    missing = [p.name for p in _parameters_of(made) if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if missing:
        raise errors.ArgumentError(f"{target!r} needs arguments ({', '.join(missing)}); name a function that makes the model without any")
    return made()


# ---------------------------------------------------------------------- what one sees


@contextlib.contextmanager
def _stages() -> Iterator[None]:
    """Shows the stages: as they run on a terminal, as lines with their time elsewhere."""
    with contextlib.ExitStack() as stack:
        listener = _rich_listener(stack) if sys.stderr.isatty() else None
        stack.enter_context(progress.listening(listener or _print_stage))
        yield


def _print_stage(name: str, seconds: float | None) -> None:
    if seconds is not None:
        _say(f"{name:<8} {seconds:.2f} s")


def _rich_listener(stack: contextlib.ExitStack) -> progress.Listener | None:
    try:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    bar = stack.enter_context(Progress(SpinnerColumn(finished_text="+"), TextColumn("{task.description:<8}"), TimeElapsedColumn(),
                                       console=Console(stderr=True)))
    tasks: dict[str, Any] = {}

    def listener(name: str, seconds: float | None) -> None:
        if seconds is None:
            tasks[name] = bar.add_task(name, total=1)
        else:
            bar.update(tasks[name], completed=1)

    return listener


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _say(f"warning: {message}")

    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="onnxport", description="Exports PyTorch models to ONNX.", epilog=_EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"onnxport {onnxport.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    export = _command(commands, "export", _export, "export a model to a file", f"{_INPUTS}\n\n{_EPILOG}")
    _model_arguments(export)
    export.add_argument("-o", "--output", required=True, metavar="FILE", help="the ONNX file to write")
    export.add_argument("--opset", type=int, help="the ai.onnx opset (default: 18)")
    export.add_argument("--verify", action="store_true", help="compare with PyTorch in ONNX Runtime afterwards")
    export.add_argument("--output-names", metavar="A,B", help="names of the outputs, in order")
    export.add_argument("--external-data", choices=("auto", "yes", "no"), default="auto",
                        help="weights in a file beside (auto: from 2 GiB on)")
    export.add_argument("--mutations", choices=("warn", "outputs", "error", "ignore"), default="warn",
                        help="what becomes of updates of inputs and buffers that the model does not return")
    export.add_argument("--lists", choices=("auto", "sequences", "flat"), default="auto",
                        help="what becomes of the lists of tensors that a script takes and returns")
    export.add_argument("--strict", action="store_true", help="a Python branch on a dynamic size is an error")
    export.add_argument("--no-constant-folding", action="store_true", help="leave operations on parameters in the graph")
    export.add_argument("--no-params", action="store_true", help="parameters become inputs")
    export.add_argument("--verbose", action="store_true", help="print the graph")
    check = _command(commands, "verify", _verify, "compare a file with the model that it was made from", f"{_INPUTS}\n\n{_EPILOG}")
    check.add_argument("file", metavar="FILE", help="the ONNX file")
    _model_arguments(check)
    ops = _command(commands, "ops", _ops, "list the supported operators, each with the lowest opset", _EPILOG)
    ops.add_argument("--opset", type=int, help="only those that exist at this opset")
    script = _command(commands, "run", _run, "run a script that calls torch.onnx.export, with onnxport in its place", _RUN)
    script.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    script.add_argument("script", metavar="SCRIPT", help="a Python file, or a folder or archive with a __main__.py")
    script.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    return parser


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], Any], text: str, epilog: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    if run is not _run:
        parser.add_argument("--traceback", action="store_true", help="on an error, show where it came from")
    parser.set_defaults(command=run)
    return parser


def _model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODULE:NAME", help="a torch.nn.Module, or what makes one: pkg.module:factory. "
                        "It may also return (model, args) or (model, args, kwargs)")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=DTYPE[DIMS]", help="an example input, see below")
    parser.add_argument("--size", action="append", default=[], type=_size, metavar="N=4", help="the example's size of a dynamic axis")
    parser.add_argument("--seed", type=int, default=0, help="of the example's numbers, and of what the factory draws (default: 0)")
    parser.add_argument("--training", choices=tuple(_MODES), default="eval", help="the model's mode (default: eval)")
    parser.add_argument("--rtol", type=_tolerance, help="relative tolerance of the comparison (default: by type)")
    parser.add_argument("--atol", type=_tolerance, help="absolute tolerance (default: rtol times the largest number of the output)")


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} should look like N=4")
    return name, int(number)


def _tolerance(text: str) -> float:
    number = float(text)
    if not number >= 0:
        raise argparse.ArgumentTypeError(f"{text} is no tolerance: it must not be negative")
    return number


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",")]
