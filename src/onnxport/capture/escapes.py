"""Whether what the forward of an `autograd.Function` computes in Python can get out of it past its results.

Where such a function has a `symbolic`, the file holds that instead of its forward, and what NumPy computes inside says nothing of the file,
unless it is kept somewhere from where the rest of the model takes it. That is read from the code of the forward and of the functions that it
calls by name.
"""

from __future__ import annotations

import collections
import contextlib
import dis
import functools
import inspect
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

_WRITES = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "setdefault", "put", "copyto", "fill", "itemset", "setattr",
                     "__setitem__", "__setattr__", "push", "set", "store", "write"})
_PLAIN = (int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Tensor, BuiltinFunctionType, frozenset, range,
          ModuleType, functools.partial)
_CONTAINERS = (list, dict, set, bytearray, collections.deque, np.ndarray)
_DEEP = 5
_LIBRARIES = tuple({os.path.dirname(torch.__path__[0]) + os.sep, *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))})


class _Call:
    """A call of a function that has a `symbolic`. pending: what Python read in it, which matters if it gets out with the results, or
    in what was there before."""

    def __init__(self, function: Any, args: tuple[Any, ...]):
        self.function, self.args = function, args
        self.pending: list[Any] = []
        self._before: list[tuple[Any, _State]] = []

    @functools.cached_property
    def escapes(self) -> bool:
        """Whether the forward can keep what outlives the call where nobody sees it. Asked for at the first read."""
        forward = inspect.unwrap(self.function.forward)
        with_context = self.function.setup_context is torch.autograd.Function.setup_context
        search = _Search()
        for value in self.args:
            search.meet(value)
        search.enter(forward, owner=forward.__code__.co_varnames[0] if with_context else None)
        self._before = [(thing, _State(thing)) for thing in search.containers]
        return search.stores or (search.reaches and search.writes)

    def changed(self) -> bool:
        """Whether a list, a dict or an array from outside is not what it was at the first read."""
        return any(_State(thing) != state for thing, state in self._before)

    def gives(self, result: Any) -> bool:
        """Whether there is something among the results that no operator makes."""
        if isinstance(result, (list, tuple)):
            return any(map(self.gives, result))
        return not (result is None or isinstance(result, torch.Tensor) or any(result is arg for arg in self.args))


class _Calls(threading.local):
    def __init__(self) -> None:
        self.stack: list[_Call] = []


_calls = _Calls()


def place(reads: list[Any]) -> list[Any]:
    """Where an array that Python reads now is noted: in `reads`, or with the call of a function that has a `symbolic`, if it stays in there."""
    stack = _calls.stack
    return stack[0].pending if stack and not any(call.escapes for call in stack) else reads


def applied(reads: Callable[[], list[Any] | None]) -> Any:
    """`autograd.Function.apply` that knows which calls have a `symbolic`. reads: those of this thread's capture; None outside of one."""
    original = vars(torch.autograd.Function)["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        inner = original.__get__(None, cls)
        noted = reads()
        if noted is None or not hasattr(cls, "symbolic"):
            return inner(*args, **kwargs)
        call = _Call(cls, args)
        _calls.stack.append(call)
        try:
            result = inner(*args, **kwargs)
        finally:
            _calls.stack.pop()
        if call.pending and (call.gives(result) or call.changed()):
            noted += call.pending
        return result

    return classmethod(apply)


class _State:
    """What a container holds, and what the containers in it hold; equal while nobody changes them."""

    def __init__(self, thing: Any):
        self._held: list[Any] = []  # so that no other object gets the number of one of these
        self.key = self._of(thing, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _State) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def _of(self, thing: Any, depth: int) -> Any:
        self._held.append(thing)
        if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            return thing.shape, thing.tobytes()
        if depth > _DEEP or not isinstance(thing, (tuple, *_CONTAINERS)):
            return id(thing)
        if isinstance(thing, dict):
            return tuple([(id(key), self._of(value, depth + 1)) for key, value in thing.items()])
        return tuple([self._of(item, depth + 1) for item in (sorted(thing, key=id) if isinstance(thing, set) else thing)])


class _Search:
    """What the code that can be reached does. stores: into an attribute or a name outside; writes: into some object.

    containers: what it can reach of lists, dicts, sets and arrays from outside; reaches: other objects that can be changed.
    """

    def __init__(self) -> None:
        self.stores = self.reaches = self.writes = False
        self.containers: list[Any] = []
        self._seen: set[CodeType] = set()

    def enter(self, function: FunctionType, owner: str | None = None) -> None:
        """Goes through a function. owner: the name of the object whose attributes it may set."""
        code = function.__code__
        if code in self._seen or code.co_filename.startswith(_LIBRARIES):
            return
        self._code(code, {**function.__globals__, **_closed_over(function)}, owner)

    def _code(self, code: CodeType, outside: dict[str, Any], owner: str | None) -> None:
        self._seen.add(code)
        self.writes |= not _WRITES.isdisjoint(code.co_names) or any(isinstance(c, tuple) and "out" in c for c in code.co_consts)
        steps = list(dis.get_instructions(code))
        for before, step in zip([None, *steps], steps):
            if step.opname == "STORE_GLOBAL" or (step.opname == "STORE_DEREF" and step.argval in code.co_freevars):
                self.stores = True
            elif step.opname == "STORE_ATTR":
                self.stores |= owner is None or before is None or owner not in _names(before)
            elif step.opname == "STORE_SUBSCR":
                self.writes = True
        for found in _outside(steps, outside):
            self.meet(found)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._code(inner, outside, owner)

    def meet(self, found: Any) -> None:
        """An object that the code names."""
        found = found.__func__ if isinstance(found, (staticmethod, classmethod)) else inspect.unwrap(found) if callable(found) else found
        if isinstance(found, (tuple, torch.Size)):
            for item in found:
                self.meet(item)
        elif isinstance(found, FunctionType):
            self.enter(found)
        elif isinstance(found, MethodType):
            self.meet(found.__func__)
            self.meet(found.__self__)
        elif isinstance(found, type):
            made = found.__dict__.get("__init__")
            if isinstance(made, FunctionType):
                self.enter(made, owner=made.__code__.co_varnames[0])
        elif isinstance(found, _CONTAINERS):
            self.containers.append(found)
        elif not isinstance(found, _PLAIN) and not (callable(found) and _of_library(type(found))):
            self.reaches = True


def _closed_over(function: FunctionType) -> dict[str, Any]:
    """What the names outside are that a function reads."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # it is not set yet
            found[name] = cell.cell_contents
    return found


def _of_library(kind: type) -> bool:
    """Whether a class is built in, or stands in an installed package."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is None or file.startswith(_LIBRARIES)


def _names(step: dis.Instruction) -> tuple[Any, ...]:
    """What an instruction loads; newer versions of Python load two at once."""
    return (step.argval[-1:] if isinstance(step.argval, tuple) else (step.argval,)) if step.opname.startswith("LOAD_FAST") else ()


def _outside(steps: list[dis.Instruction], outside: dict[str, Any]) -> Iterator[Any]:
    """The objects from outside that instructions load, by name and from there by attributes; each with the objects that it was taken from."""
    found: Any = None
    for step in steps:
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
            found = outside.get(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and found is not None:
            found = inspect.getattr_static(found, step.argval, None)
        elif step.opname not in ("PRECALL", "CACHE", "PUSH_NULL"):
            found = None
        if found is not None:
            yield found
