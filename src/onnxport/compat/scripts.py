"""Runs a script that was written for `torch.onnx` with onnxport in its place."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from onnxport.compat import installing

NOT_FOUND, FAILED, INTERRUPTED = 2, 1, 130


def run(script: str, arguments: Sequence[str] = (), *, module: bool = False) -> int:
    """Runs a file, a folder with a `__main__.py`, or a module as `__main__`; returns the exit code that Python would.

    `sys.argv`, `sys.path`, `PYTHONPATH` and `torch.onnx` are what they were afterwards. The traceback of an error begins in the script.
    Python processes that the script starts (multiprocessing by any method, `subprocess` with `sys.executable`) use onnxport too, as
    `PYTHONPATH` leads them to `onnxport.compat.children`; not those that are started without it (another `env`, `python -I`).
    """
    if not module and not os.path.exists(script):
        print(f"onnxport run: there is no file {script!r}", file=sys.stderr)  # noqa: T201
        return NOT_FOUND
    with _as_started(script, arguments, module), _children(), installing.install():
        try:
            if module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            return _code(end)
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException as error:  # the script's own, whatever it is: printed as Python prints it
            own = _of_script(error.__traceback__)
            traceback.print_exception(type(error), error, own, chain=own is not None)
            return FAILED
    return 0


@contextmanager
def _as_started(script: str, arguments: Sequence[str], module: bool) -> Iterator[None]:
    """What a script finds in `sys` when Python starts it."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.getcwd() if module else os.path.dirname(os.path.abspath(script)))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


@contextmanager
def _children() -> Iterator[None]:
    """Processes that are started now find our `sitecustomize`."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([os.path.join(os.path.dirname(__file__), "children"), *([before] if before else [])])
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = before


def _code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)  # noqa: T201
    return FAILED


def _of_script(frames: TracebackType | None) -> TracebackType | None:
    """The frames from the script on; none where it did not come to run."""
    inner = frames
    while inner is not None and ("runpy" in inner.tb_frame.f_code.co_filename or inner.tb_frame.f_code.co_filename == __file__):
        inner = inner.tb_next
    return inner
