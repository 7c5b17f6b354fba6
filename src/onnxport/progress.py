"""Tells whoever listens which stage of the work is running, and how long it took."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Called with the stage's name and None when it begins, and with its seconds when it has ended.
Listener = Callable[[str, float | None], None]

_logger = logging.getLogger("onnxport")
_listener: ContextVar[Listener | None] = ContextVar("onnxport_progress", default=None)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Marks what runs inside as the stage `name`. An error ends it without a time."""
    listener, logged = _listener.get(), _logger.isEnabledFor(logging.INFO)
    if listener is None and not logged:
        yield
        return
    if listener is not None:
        listener(name, None)
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    if listener is not None:
        listener(name, seconds)
    if logged:
        _logger.info("%s: %.2f s", name, seconds)


def note(message: str, *args: object) -> None:
    """Logs what was decided or made."""
    _logger.info(message, *args)


def detail(text: str) -> None:
    """Logs what is long."""
    _logger.debug("%s", text)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Calls `listener` for the stages of exports that run inside, in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


_handler: logging.Handler | None = None


def enable_log() -> None:
    """Prints to stderr what exports do; the logger is `logging.getLogger("onnxport")`."""
    global _handler
    _logger.setLevel(logging.INFO)
    if _handler is None:
        _handler = logging.StreamHandler()
        _handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        _logger.addHandler(_handler)


def disable_log() -> None:
    """Takes `enable_log` back."""
    global _handler
    _logger.setLevel(logging.NOTSET)
    if _handler is not None:
        _logger.removeHandler(_handler)
        _handler = None


@contextmanager
def logged(wanted: bool) -> Iterator[None]:
    """Where it is wanted, the log is enabled inside; the caller's own level and handlers stay."""
    if not wanted or _handler is not None or _logger.isEnabledFor(logging.INFO):
        yield
        return
    level = _logger.level
    enable_log()
    try:
        yield
    finally:
        disable_log()
        _logger.setLevel(level)
