"""Holds a functionalised graph against the model run by PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import torch

from onnxport.aten import contract
from onnxport.aten.graph import Graph
from onnxport.aten.passes.functionalise import functionalise
from onnxport.capture.trace import trace
from tests.aten import interpreter


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def captured(model: Any, inputs: list[torch.Tensor]) -> Graph:
    """The graph of one run, before any pass."""
    names = [f"x{i}" for i in range(len(inputs))]

    def call(given: list[torch.Tensor]) -> tuple[list[Any], list[str], Any]:
        outputs = flat(model(*given))
        return outputs, [f"y{i}" for i in range(len(outputs))], None

    return trace(model, inputs, names, call).graph


def graph_of(model: Any, inputs: list[torch.Tensor]) -> Graph:
    """The functionalised graph, which keeps the contract; the run leaves inputs and model alone."""
    before = [x.clone() for x in inputs]
    state = _state(model)
    torch.manual_seed(0)
    graph = captured(model, inputs)
    for x, old in zip(inputs, before, strict=True):
        assert torch.equal(x, old), "the capture changed an input"
    for name, tensor in _state(model).items():
        assert same(tensor, state[name]), f"the capture changed {name}"
    functionalise(graph)
    contract.check(graph)
    return graph


def _state(model: Any) -> dict[str, torch.Tensor]:
    if not isinstance(model, torch.nn.Module):
        return {}
    own = {}
    for name, item in vars(model).items():
        items = {f"{name}.{i}": t for i, t in enumerate(item)} if isinstance(item, list) else {name: item}
        own.update({n: t for n, t in items.items() if isinstance(t, torch.Tensor)})
    return {name: t.detach().clone() for name, t in [*model.named_parameters(), *model.named_buffers(), *own.items()]}


def same(a: Any, b: Any, exact: bool = True) -> bool:
    if not isinstance(a, torch.Tensor):
        return bool(a == b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) if exact else torch.allclose(a, b, rtol=1e-5, atol=1e-6))


def check(model: Any, *inputs: torch.Tensor, others: tuple[tuple[torch.Tensor, ...], ...] = (), exact: bool = True) -> Graph:
    """Captured at `inputs`, the graph gives what the model gives: there and at `others`; mutations are found and are right."""
    graph = graph_of(model, list(inputs))
    for given in (inputs, *others):
        compare(model, graph, list(given), exact)
    return graph


def compare(model: Any, graph: Graph, inputs: list[torch.Tensor], exact: bool = True) -> None:
    eager = copy.deepcopy(model) if isinstance(model, torch.nn.Module) else model
    state = _state(eager)
    given = [x.clone() for x in inputs]
    with torch.no_grad():
        torch.manual_seed(0)
        expected = flat(eager(*given))
    torch.manual_seed(0)
    results, mutated = interpreter.run(graph, inputs)
    assert len(results) == len(expected)
    for index, (a, b) in enumerate(zip(results, expected, strict=True)):
        assert same(a, b, exact), f"output {index}: {a} for {b}"
    new = {f"x{i}": x for i, x in enumerate(given)} | _state(eager)
    old = {f"x{i}": x for i, x in enumerate(inputs)} | state
    for name, value in mutated.items():
        assert same(value, new[name], exact), f"{name}: {value} for {new[name]}"
    for name, value in new.items():
        if not same(value, old[name]) and name not in mutated:
            assert any(same(value, out, exact) for out in expected), f"the update of {name} is lost"
