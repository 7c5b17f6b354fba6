"""Holds an ONNX file against the PyTorch model: the same arguments through ONNX Runtime and through eager PyTorch.

Tried are the example, fresh values like those of the example, and other sizes of every dynamic axis. What the PyTorch
model itself refuses is skipped and named in the report. The model, its buffers and modes, the arguments and the random
state are left as they were.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from onnxport import calls, errors, runtime, structure
from onnxport.modes import ONE_AT_A_TIME, select_model_mode_for_export
from onnxport.options import UPDATED, TrainingMode
from onnxport.program import opened
from onnxport.target import dims

if TYPE_CHECKING:
    from onnxport.program import ONNXProgram

# The tolerance where the caller names none: how far apart two right computations in this type may be.
_RTOL = {torch.float64: 1e-7, torch.complex128: 1e-7, torch.float16: 5e-3, torch.bfloat16: 4e-2}
_RTOL_FLOAT32 = 1e-4
Axis = tuple[str, int]
_LENGTH = -1  # the "axis" of a sequence that says how many tensors it holds


@dataclass(frozen=True)
class Difference:
    """One output of one run.

    max_abs: the largest |onnx - torch|.   max_rel: the largest |onnx - torch| / |torch|, over elements that are not tiny
    beside the largest one.   problem: empty where the two agree.   note: why numbers were not compared.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float = 0.0
    max_rel: float = 0.0
    problem: str = ""
    note: str = ""

    def __str__(self) -> str:
        text = f"{self.name} {self.dtype}{list(self.shape)}: "
        if self.note:
            return text + self.note
        text += f"largest difference {self.max_abs:.3g}, relative {self.max_rel:.3g}"
        return f"{text}, {self.problem}" if self.problem else text


@dataclass(frozen=True)
class Case:
    """One run: what was tried, and how the outputs compare. `problem`: ONNX Runtime refused to run."""

    label: str
    outputs: tuple[Difference, ...] = ()
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything agreed."""
        return not self.problem and not any(output.problem for output in self.outputs)

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.problem or ('same' if self.passed else 'different')}"]
        return "\n".join(lines + [f"    {output}" for output in self.outputs])


@dataclass(frozen=True)
class Report:
    """What was tried (`cases`), and what could not be (`skipped`: label and reason)."""

    cases: tuple[Case, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether all cases passed."""
        return all(case.passed for case in self.cases)

    @property
    def max_abs(self) -> float:
        """The largest absolute difference of all."""
        return max((output.max_abs for case in self.cases for output in case.outputs), default=0.0)

    @property
    def max_rel(self) -> float:
        """The largest relative difference of all."""
        return max((output.max_rel for case in self.cases for output in case.outputs), default=0.0)

    def __str__(self) -> str:
        lines = [str(case) for case in self.cases] + [f"{label}: skipped, {reason}" for label, reason in self.skipped]
        return "\n".join(lines)


@dataclass
class _Check:
    """Everything that one verification shares."""

    session: runtime.Session
    call: calls.Call
    mode: TrainingMode
    rtol: float | None
    atol: float | None
    guards: Sequence[Any] = ()
    random: frozenset[int] = frozenset()
    runs: int = 0
    cases: list[Case] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def example(self) -> None:
        """Runs the model twice, so that outputs that differ by themselves (dropout, noise) are known, and compares."""
        first, second = self._eager(self.call.tensors), self._eager(self.call.tensors)
        differ = [i for i, (a, b) in enumerate(zip(first, second)) if not _identical(a, b)]
        self.random = frozenset(differ)
        self.cases.append(self._compared("example", self.call.tensors, second))

    def attempt(self, label: str, make: Callable[[], list[torch.Tensor]], sizes: Mapping[str, int]) -> None:
        """One run with other arguments; one that the model refuses, or a guard excludes, is skipped."""
        for guard in self.guards:
            if dims.holds(str(guard.condition), sizes) is False:
                self.skipped.append((label, f"outside the guard {guard}"))
                return
        tensors = make()
        try:
            expected = self._eager(tensors)
        except Exception as error:  # whatever the user's model raises
            self.skipped.append((label, f"the model refuses it ({type(error).__name__}: {_first_line(error)})"))
            return
        self.cases.append(self._compared(label, tensors, expected))

    def _eager(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        model = self.call.model
        self.runs += 1
        with ONE_AT_A_TIME, torch.no_grad(), select_model_mode_for_export(model, self.mode), _buffers_kept(model), _seeded(self.runs):
            args, kwargs = self.call.spec.unflatten([structure.each(lambda t: t.detach().clone(), leaf) for leaf in tensors])
            return _results(model(*args, **kwargs), len(self.session.outputs))

    def _compared(self, label: str, tensors: Sequence[torch.Tensor], expected: Sequence[Any]) -> Case:
        try:
            actual = self.session.run(self.session.feeds(tensors, runtime.state_of(self.call.model)))
        except runtime.RunError as error:
            return Case(label, problem=str(error))
        listed = any(isinstance(output, list) for output in actual)
        names, actual = _taken_apart(self.session.outputs, actual)
        if len(actual) < len(expected) or (listed and not all(UPDATED in name for name in names[len(expected):])):
            return Case(label, problem=f"the file has {len(actual)} outputs, and the model returned {len(expected)}")
        outputs = []
        for index, (name, got) in enumerate(zip(names, actual)):
            if index >= len(expected):  # the new values of inputs and buffers, which forward does not return
                outputs.append(Difference(name, *_described(got), note="not compared: the model does not return it"))
            else:
                outputs.append(_difference(name, got, expected[index], self.rtol, self.atol, index in self.random))
        return Case(label, tuple(outputs))


def verify(program: ONNXProgram | str | os.PathLike[str], model: Any, args: Any, kwargs: Mapping[str, Any] | None = None, *,
           dynamic_axes: Mapping[str, Mapping[int, str]] | None = None, rtol: float | None = None, atol: float | None = None,
           seeds: Sequence[int] = (0,), sizes: bool = True, training: int | None = None) -> Report:
    """Compares an exported program, or the ONNX file at a path, with the PyTorch model that it was made from.

    args, kwargs: an example call, as for `export`.
    dynamic_axes: input name -> {axis: label}; axes of one label change together. None: those of the program or file.
    rtol, atol: |onnx - torch| <= atol + rtol * |torch| must hold everywhere. None: rtol by type (1e-4 for float32), and atol is rtol
    times the output's largest number. Integers and bools must be equal.
    seeds: one run with fresh values for each.   sizes: whether to try other sizes.   training: a `TrainingMode`.

    Returns a `Report`. Raises `ArgumentError` where args and file do not fit each other, `VerificationError` (whose `report` is
    the same) where they disagree, and `runtime.RunError` where ONNX Runtime is missing or does not load the file.
    """
    session = _loaded(program) if isinstance(program, (str, os.PathLike)) else program.session
    call = calls.bind(model, args, dict(kwargs or {}))
    mode = getattr(program, "training", TrainingMode.EVAL) if training is None else training
    check = _Check(session, call, TrainingMode(int(mode)), rtol, atol, getattr(program, "guards", ()))
    session.feeds(call.tensors, runtime.state_of(model))  # says so where the numbers do not fit
    names = session.inputs[: len(call.tensors)]
    axes = _axes(names, call.tensors, session, dynamic_axes)
    current = {label: _size(label, places, dict(zip(names, call.tensors))) for label, places in axes.items()}
    check.example()
    for seed in seeds:
        check.attempt(f"fresh values (seed {seed})", lambda seed=seed: _fresh(names, call.tensors, {}, seed), current)  # type: ignore[misc]
    if sizes:
        derived = _derived(current)
        for label, wanted in _other_sizes({label: size for label, size in current.items() if label not in derived}):
            sizes_now = {**current, **wanted}
            wanted = {**wanted, **{label: _evaluated(rule, sizes_now) for label, rule in derived.items()}}
            places = {place: size for axis, size in wanted.items() for place in axes[axis]}
            check.attempt(label, lambda places=places: _fresh(names, call.tensors, places, 0), {**current, **wanted})  # type: ignore[misc]
    report = Report(tuple(check.cases), tuple(check.skipped))
    if not report.passed:
        error = errors.VerificationError(f"ONNX Runtime and PyTorch disagree:\n{_failures(report)}")
        error.report = report  # type: ignore[attr-defined]
        raise error
    return report


def _loaded(path: str | os.PathLike[str]) -> runtime.Session:
    if not os.path.isfile(path):
        raise errors.ArgumentError(f"there is no file {os.fsdecode(path)!r}")
    return opened(os.fsdecode(path))


# ---------------------------------------------------------------------- sizes and values


def _axes(names: Sequence[str], tensors: Sequence[torch.Tensor], session: runtime.Session,
          given: Mapping[str, Mapping[int, str]] | None) -> dict[str, list[Axis]]:
    """Label -> the places (input, axis) that have this size."""
    found: dict[str, list[Axis]] = {}
    for name, tensor in zip(names, tensors):
        if isinstance(tensor, structure.Whole):
            found[f"len({name})"] = [(name, _LENGTH)]
            continue
        if given is None:
            labels = {axis: dim for axis, dim in enumerate(session.shapes[name]) if isinstance(dim, str) and dim}
        else:
            labels = {axis % max(tensor.dim(), 1): label for axis, label in given.get(name, {}).items()}
        for axis, label in labels.items():
            if axis < tensor.dim():
                found.setdefault(label, []).append((name, axis))
    return found


def _derived(current: Mapping[str, int]) -> dict[str, dims.Size]:
    """The labels that are computed from others: ``2*n + 1`` where ``n`` is an axis too."""
    found: dict[str, dims.Size] = {}
    for label, size in current.items():
        if label.isidentifier():
            continue
        try:
            rule = dims.parse(label)
        except (ValueError, SyntaxError):
            continue
        if isinstance(rule, dims.Dim) and rule.symbols <= set(current) - {label} and dims.evaluate(rule, current) == size:
            found[label] = rule
    return found


def _evaluated(rule: dims.Size, current: Mapping[str, int]) -> int:
    number = dims.evaluate(rule, current)
    assert number is not None  # its symbols are among them
    return number


def _size(label: str, places: Sequence[Axis], tensors: Mapping[str, torch.Tensor]) -> int:
    found = {len(tensors[name]) if axis == _LENGTH else tensors[name].shape[axis] for name, axis in places}
    if len(found) > 1:
        raise errors.ArgumentError(f"the axes of the name {label!r} have different sizes in the example: {sorted(found)}")
    return int(found.pop())


def _other_sizes(current: Mapping[str, int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Each axis at 1, at a prime and doubled, and then all of them changed at once."""
    for label, size in current.items():
        for other in dict.fromkeys((1, _prime_above(size), 2 * size)):
            if other not in (size, 0):
                yield f"{label}={other}", {label: other}
    if len(current) > 1:
        together: dict[str, int] = {}
        for label, size in current.items():
            other = _prime_above(size)
            while other in together.values():
                other = _prime_above(other)
            together[label] = other
        yield ", ".join(f"{label}={size}" for label, size in together.items()), together


def _prime_above(size: int) -> int:
    candidate = size + 1
    while candidate < 2 or any(candidate % d == 0 for d in range(2, math.isqrt(candidate) + 1)):
        candidate += 1
    return candidate


def _fresh(names: Sequence[str], tensors: Sequence[torch.Tensor], sizes: Mapping[Axis, int], seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made = []
    for name, leaf in zip(names, tensors):
        def fresh(tensor: torch.Tensor, name: str = name) -> torch.Tensor:
            shape = [sizes.get((name, axis), size) for axis, size in enumerate(tensor.shape)]
            return _like(tensor.detach(), shape, generator).to(tensor.device)

        if isinstance(leaf, structure.Whole):  # one that is longer than the example goes through it again
            leaf = structure.Whole(leaf[i % len(leaf)] for i in range(sizes.get((name, _LENGTH), len(leaf))))
        made.append(structure.each(fresh, leaf))
    return made


def _like(example: torch.Tensor, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Other values of the same kind: integers within the example's range, numbers spread and signed as the example's."""
    example = example.cpu()
    if example.dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if example.numel() == 0:
        return torch.zeros(shape, dtype=example.dtype)
    if example.is_complex():
        parts = torch.view_as_real(example.resolve_conj())
        return torch.view_as_complex(_like(parts, [*shape, 2], generator))
    if not example.dtype.is_floating_point:
        low, high = int(example.min()), int(example.max())
        return _integers(low, high, shape, generator).to(example.dtype)
    values = example.double()
    if not bool(torch.isfinite(values).all()):  # a mask of 0 and -inf, say: its own values in another order
        picks = torch.randint(values.numel(), list(shape), generator=generator)
        return values.reshape(-1)[picks].to(example.dtype)
    return _numbers(values, shape, generator).to(example.dtype)


def _integers(low: int, high: int, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    if high - low >= 1 << 62:  # more than torch.randint can span
        low, high = -(1 << 61), 1 << 61
    return torch.randint(low, high + 1, list(shape), generator=generator)


def _numbers(values: torch.Tensor, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    mean = float(values.mean())
    spread = float(values.std()) if values.numel() > 1 else 0.0
    spread = spread or abs(mean) or 1.0
    made = torch.randn(list(shape), generator=generator, dtype=torch.float64) * spread + mean
    low, high = float(values.min()), float(values.max())
    if low == high == 0 or low < 0 < high:
        return made
    # A probability, a length, a logarithm: the sign is part of the meaning.
    return made.clamp(low, high) if low != high else made.abs() * (1 if low > 0 else -1)


# ---------------------------------------------------------------------- running and comparing


def _results(result: Any, count: int) -> list[Any]:
    """The tensors of a result; numbers count too where the file has outputs for them."""
    leaves, spec = structure.flatten(result)
    if len(leaves) >= count:
        return [leaf.value for leaf in leaves]
    every = spec.leaves([leaf.value for leaf in leaves])
    numbers = [leaf.value for leaf in every if isinstance(leaf.value, (torch.Tensor, bool, int, float))]
    return numbers if len(numbers) <= count else [leaf.value for leaf in leaves]


def _taken_apart(names: Sequence[str], outputs: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Outputs with the members of sequences in their place."""
    pairs: list[tuple[str, Any]] = []
    for name, output in zip(names, outputs):
        pairs += [(f"{name}.{i}", member) for i, member in enumerate(output)] if isinstance(output, list) else [(name, output)]
    return [name for name, _ in pairs], [output for _, output in pairs]


def _identical(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return bool(a == b)
    return a.shape == b.shape and bool(torch.equal(torch.nan_to_num(a) if a.is_floating_point() else a,
                                                   torch.nan_to_num(b) if b.is_floating_point() else b))


def _described(value: Any) -> tuple[str, tuple[int, ...]]:
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch."), tuple(value.shape)
    return type(value).__name__, ()


def _difference(name: str, actual: Any, expected: Any, rtol: float | None, atol: float | None, random: bool) -> Difference:
    expected = expected.detach().cpu() if isinstance(expected, torch.Tensor) else torch.as_tensor(expected)
    if not isinstance(actual, torch.Tensor):
        return Difference(name, *_described(actual), problem=f"it is a {type(actual).__name__}, and PyTorch's is a tensor")
    if expected.is_complex() and not actual.is_complex():  # ONNX Runtime has no complex numbers: pairs of real ones
        expected = torch.view_as_real(expected.resolve_conj())
    dtype, shape = _described(actual)
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        wanted_dtype, wanted_shape = _described(expected)
        return Difference(name, dtype, shape, math.inf, math.inf, f"PyTorch's is {wanted_dtype}{list(wanted_shape)}")
    if random:
        return Difference(name, dtype, shape, note="random, so only its type and shape are compared")
    return _numeric(name, actual, expected, rtol, atol)


def _numeric(name: str, actual: torch.Tensor, expected: torch.Tensor, rtol: float | None, atol: float | None) -> Difference:
    dtype, shape = _described(actual)
    if not actual.dtype.is_floating_point and not actual.is_complex():
        wrong = actual != expected
        if not bool(wrong.any()):
            return Difference(name, dtype, shape)
        gap = float((actual.double() - expected.double()).abs().max())
        return Difference(name, dtype, shape, gap, _relative(gap, expected), f"{int(wrong.sum())} of {wrong.numel()} elements differ")
    a, b = _wide(actual), _wide(expected)
    same = (a == b) | (a.isnan() & b.isnan())
    gap_ = torch.where(same, 0.0, (a - b).abs()).nan_to_num(nan=math.inf, posinf=math.inf)
    size = torch.where(b.isfinite(), b.abs(), 0.0)
    scale = float(size.max()) if size.numel() else 0.0
    relative = rtol if rtol is not None else _RTOL.get(actual.dtype, _RTOL_FLOAT32)
    limit = (atol if atol is not None else relative * scale) + relative * size
    wrong = gap_ > limit
    max_abs = float(gap_.max()) if gap_.numel() else 0.0
    counted = size > 1e-3 * scale
    max_rel = float((gap_ / size)[counted].max()) if bool(counted.any()) else (math.inf if max_abs else 0.0)
    problem = f"{int(wrong.sum())} of {wrong.numel()} elements outside rtol={relative:g}" if bool(wrong.any()) else ""
    return Difference(name, dtype, shape, max_abs, max_rel, problem)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor.double()


def _relative(gap: float, expected: torch.Tensor) -> float:
    largest = float(expected.double().abs().max())
    return gap / largest if largest else math.inf


@contextmanager
def _buffers_kept(model: Any) -> Iterator[None]:
    """Puts back the buffers that a call changes (running statistics, caches, counters)."""
    if not isinstance(model, torch.nn.Module):
        yield
        return
    before = [(module, dict(module._buffers.items())) for module in model.modules()]
    copies = {id(b): (b, b.detach().clone()) for _, buffers in before for b in buffers.values() if b is not None}
    try:
        yield
    finally:
        for module, buffers in before:
            if isinstance(module._buffers, dict):  # a scripted module assigns none anew
                module._buffers.clear()
                module._buffers.update(buffers)
        for buffer, copy in copies.values():
            if not _identical(buffer, copy):
                buffer.detach().copy_(copy)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The random state is `seed`'s inside, and afterwards what it was."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_available() else []):
        torch.manual_seed(seed)
        yield


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else ""


def _failures(report: Report) -> str:
    failed: Iterable[Case] = (case for case in report.cases if not case.passed)
    return "\n".join(str(case) for case in failed)
