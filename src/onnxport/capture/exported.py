"""Captures through torch.export: an `ExportedProgram`, a `.pt2` file, or a module that torch.export compiles."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.aten.graph import Axis, Block, Graph, Mutation, Node, Read, Value
from onnxport.calls import Call
from onnxport.capture import composites, decisions, dynamic, functions, fx, higher, imagined, packed, torch_private, wider
from onnxport.capture.dynamic import Wanted
from onnxport.capture.fx_values import constant, typed
from onnxport.capture.retraced import Retraced
from onnxport.capture.state import State, state_of
from onnxport.capture.trace import Traced, alike

try:
    from torch.export.graph_signature import InputKind, OutputKind
except ImportError as cause:  # pragma: no cover - depends on the installed torch
    raise ImportError(f"torch {torch.__version__} has no torch.export that onnxport can read") from cause

_PREFIX = "model"
Modules = bool | frozenset[type]


def load(path: str | os.PathLike[str]) -> Any:
    """The `ExportedProgram` in a `.pt2` file."""
    try:
        return torch.export.load(path)
    except Exception as cause:
        raise errors.CaptureError(f"torch.export cannot load {os.fspath(path)!r}: {type(cause).__name__}: {cause}") from cause


class _Seen:
    """What the run of the model tells besides tensors (torch.export puts attributes of modules back).

    names: of the outputs.   rebound: names of buffers and attributes that were assigned anew.
    """

    names: list[str]
    rebound: list[str]


class _Flat(torch.nn.Module):
    """A call as a module of flat tensors: what the model takes and returns may then be nested in ways that torch.export does not know.

    Buffers and attributes that `forward` assigns anew come behind the outputs; torch.export would lose them.
    """

    def __init__(self, call: Call):
        super().__init__()
        self.model = call.model if isinstance(call.model, torch.nn.Module) else torch.nn.Module()
        self._call = call
        self.seen = _Seen()

    def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        state = state_of(self._call.model)
        flat, self.seen.names, _ = self._call.run(list(tensors))
        rebound = state.rebound()
        self.seen.rebound = [name for name, _ in rebound]
        return (*flat, *(tensor for _, tensor in rebound))


def compile_call(call: Call, names: Sequence[str], wanted: Sequence[Wanted], modules: Modules = False) -> Traced:
    """`torch.export.export` of a module; its refusals become `CaptureError`s that keep its words.

    modules: those whose calls become functions: all, or those of these classes.
    Where an axis is 0 or 1 in the caller's example, a wider one comes first (of such a size torch.export often makes a fact); then the
    caller's, then that with operators kept whole that lose sizes (see `composites`), then further examples; last, as a model that computes
    derivatives. The refusal of the caller's own example is the one that is told.
    """
    given = functools.partial(_compiled, call, call.tensors, names, wanted, modules)
    refusal: errors.CaptureError | None = None
    for way in _ways(call, names, wanted, modules, given):
        try:
            return way()
        except errors.CaptureError as error:
            refusal = error if refusal is None or way is given else refusal
    assert refusal is not None
    raise refusal


def _ways(call: Call, names: Sequence[str], wanted: Sequence[Wanted], modules: Modules,
          given: Callable[[], Traced]) -> Iterator[Callable[[], Traced]]:
    def wide(example: wider.Example) -> Traced:
        traced = _compiled(call, example.tensors, names, wanted, modules)
        traced.given, traced.agrees = example.given, functools.cache(functools.partial(_agrees, traced, call))
        traced.others = [(example.given, given)]
        return traced

    larger = [functools.partial(wide, example) for example in wider.examples(call.tensors, names, wanted)]
    yield from larger[:1]
    yield given
    yield functools.partial(_whole, given)
    yield from larger[1:]
    yield functools.partial(retrace_call, call, names, wanted)


def _whole(capture: Callable[[], Traced]) -> Traced:
    with composites.Kept():
        return capture()


def _agrees(traced: Traced, call: Call) -> bool:
    """Whether the program gives what the model does for the caller's tensors."""
    assert traced.rerun is not None
    with torch.no_grad(), state_of(call.model).unchanged(), contextlib.suppress(Exception):  # it may not run there at all
        made = traced.rerun(call.tensors)
        results = call.run([tensor.detach().clone() for tensor in call.tensors])[0]
        return alike(made, results)
    return False


class _Runner(torch.fx.Interpreter):
    """Runs a program at any size: what it asserts of sizes holds at the example's."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """One operator."""
        return None if target in _ASSERTED else super().call_function(target, args, kwargs)


_ASSERTED = frozenset({torch.ops.aten._assert_scalar.default, torch.ops.aten.sym_constrain_range.default,
                       torch.ops.aten.sym_constrain_range_for_size.default})


def _rerun(program: Any, tensors: Sequence[torch.Tensor]) -> list[Any]:
    """What the program returns for these inputs, in its own order."""
    signature, left = program.graph_signature, iter([tensor.detach().clone() for tensor in tensors])
    given = [next(left) if spec.kind == InputKind.USER_INPUT else _tensor(program, spec) for spec in signature.input_specs]
    made = _Runner(program.graph_module).run(*given)
    return [item for item, spec in zip(made, signature.output_specs, strict=True) if spec.kind == OutputKind.USER_OUTPUT]


def retrace_call(call: Call, names: Sequence[str], wanted: Sequence[Wanted]) -> Traced:
    """The same of a model that computes derivatives; see `retraced`."""
    return _compiled(call, call.tensors, names, wanted, False, retrace=True)


def _compiled(call: Call, tensors: Sequence[torch.Tensor], names: Sequence[str], wanted: Sequence[Wanted], modules: Modules,
              retrace: bool = False) -> Traced:
    flat: Any = _Flat(call)
    state = state_of(call.model)
    shapes = tuple({axis: ask.dim for axis, ask in asks.items()} or None for asks in wanted)
    with (torch_private.exporting(), torch_private.slow_attention(), torch_private.any_size(), torch.no_grad(), state.unchanged(),
          decisions.noted(), torch_private.assignments_followed(), torch_private.quiet("torch.fx.experimental.symbolic_shapes"),
          imagined.results(), functions.kept() as kept):
        try:
            if retrace:
                flat = Retraced(flat, tensors, wanted)
            program = torch.export.export(flat, _distinct(tensors), dynamic_shapes=(shapes,) if shapes else None, strict=False,
                                          prefer_deferred_runtime_asserts_over_guards=True)
        except errors.OnnxExporterError:
            raise
        except Exception as cause:
            if packed.shelf_of(call.model) is not None:
                raise errors.CaptureError("torch.export refuses the packed weights of quantised layers (torch.ao.quantization); "
                                          "capture='trace' takes them") from cause
            words = f"{type(cause).__name__}: {_readable(str(cause), names)}{_places(cause, names, wanted)}"
            raise errors.CaptureError(f"torch.export refuses the model: {words}") from cause
    traced = read(program, state, prefix=_PREFIX, calls=_calls(call.model, modules))
    graph = traced.graph
    functions.restore(graph.block, kept)
    graph.input_names, graph.output_names = list(names), flat.seen.names
    count = len(flat.seen.names)
    graph.rebound = {name: value for name, value in zip(flat.seen.rebound, graph.outputs[count:], strict=True) if isinstance(value, Value)}
    graph.outputs = graph.outputs[:count]
    graph.block.outputs = [output for output in graph.outputs if isinstance(output, Value)]
    sizes(program, graph, wanted)
    traced.rerun = functools.partial(_rerun, program)
    return traced


def _distinct(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The tensors without their history; one that is passed twice is two, so that each keeps its own axes."""
    seen: set[int] = set()
    made = []
    for tensor in tensors:
        made.append(tensor.detach().clone() if id(tensor) in seen else tensor.detach())
        seen.add(id(tensor))
    return tuple(made)


def _places(cause: BaseException, names: Sequence[str], wanted: Sequence[Wanted]) -> str:
    """The user's lines that decide over the dynamic axes."""
    lines = [f"\n  {line} decides over axis {axis} of {names[number]}" for (number, axis), line in sorted(decisions.of_error(cause).of_axes().items())
             if number < len(names) and axis in wanted[number]]
    return "".join(lines)


def _readable(words: str, names: Sequence[str]) -> str:
    """torch.export's words, with the caller's names for the inputs."""
    words = words.split("\n\nThe error above occurred when calling")[0]
    found = r"(?:L\['tensors'\]|inputs\['tensors'\]|inputs|tensors)\[(\d+)\]"
    return re.sub(found, lambda m: names[int(m[1])] if int(m[1]) < len(names) else m[0], words)


def _calls(model: Any, modules: Modules) -> fx.Calls | None:
    """The module calls of a program that become functions. model: whose modules tell of their annotated variables; None if it is not known."""
    if not modules:
        return None
    known = dict(model.named_modules()) if isinstance(model, torch.nn.Module) else {}
    return fx.Calls(modules, known.get)


def read_program(program: Any, call: Call, names: Sequence[str], wanted: Sequence[Wanted], modules: Modules = False) -> Traced:
    """An `ExportedProgram` of the caller's own, its inputs in the order of the call."""
    traced = read(program, None, calls=_calls(None, modules))
    graph = traced.graph
    order = _order(program, call)
    if len(order) != len(graph.inputs):
        raise errors.ArgumentError(f"the exported program takes {len(graph.inputs)} tensors, and args have {len(order)}")
    placed: list[Value] = [graph.inputs[0]] * len(order)
    for value, position in zip(graph.inputs, order, strict=True):
        placed[position] = value
    graph.inputs, graph.input_names = placed, list(names)
    graph.block.inputs = [*placed, *graph.weights.values()]
    renamed = dict(zip((value.name for value in placed), names, strict=True))
    graph.mutated = [Mutation(renamed.get(m.name, m.name), m.kind, m.value) for m in graph.mutated]
    sizes(program, graph, _completed(program, graph, wanted))
    return traced


def _completed(program: Any, graph: Graph, wanted: Sequence[Wanted]) -> list[Wanted]:
    """What the caller asks of the axes, and what the program itself says of the others: the name and the range of their `Dim`.

    Where that is not known any more, they are called as axes without a name are, and a range may be one that was found: it stays a guard.
    (2 is no range: torch.export takes for granted that sizes are above 1.)
    """
    shapes = _shapes(program)
    asked = {str(shapes[value.name or ""][axis]) for value, asks in zip(graph.inputs, wanted, strict=True) for axis in asks}
    known, labels = _own_names(program), dict[str, str]()
    ranges = {str(symbol): (dynamic.bound(r.lower) or 0, dynamic.bound(r.upper)) for symbol, r in program.range_constraints.items()}
    completed = []
    for name, value, asks in zip(graph.input_names, graph.inputs, wanted, strict=True):
        own: Wanted = {}
        free = [(axis, str(size)) for axis, size in enumerate(shapes[value.name or ""]) if not isinstance(size, int)]
        for number, (axis, symbol) in enumerate(free, 1):
            if symbol.isidentifier() and symbol not in asked:
                label = labels.setdefault(symbol, known.get(symbol) or dynamic.automatic(name, number))
                low, high = ranges.get(symbol, (0, None)) if symbol in known else (0, None)
                own[axis] = dynamic.Ask(label, None, low=low if low > 2 else 0, high=high, may_be_static=True)
        completed.append({**own, **asks})
    return completed


def _own_names(program: Any) -> dict[str, str]:
    """Symbol -> the name of the `Dim` that it was made for. A file of a program has forgotten these."""
    environment = Checks(program).environment
    symbols = getattr(environment, "source_to_var", {})
    replaced = getattr(environment, "replacements", {})
    dims = getattr(environment, "source_name_to_debug_name", {})
    return {str(replaced.get(symbols[source], symbols[source])): name for source, name in dims.items() if source in symbols and name.isidentifier()}


def _order(program: Any, call: Call) -> list[int]:
    """For each tensor that the program takes, its position in the call."""
    free: dict[int, list[int]] = {}
    for position, tensor in enumerate(call.tensors):
        free.setdefault(id(tensor), []).append(position)
    spec = program.call_spec.in_spec
    kwargs = call.kwargs
    if spec is not None and spec.num_children == 2 and spec.child(1).num_children:
        kwargs = {name: kwargs[name] for name in spec.child(1).context if name in kwargs}
    leaves = torch_private.tree_leaves((call.args, kwargs))
    return [free[id(leaf)].pop(0) for leaf in leaves if isinstance(leaf, torch.Tensor)]


def read(program: Any, state: State | None, prefix: str = "", calls: fx.Calls | None = None) -> Traced:
    """An `ExportedProgram` as an `aten.Graph`. state: of the module that it was made from (its weights then keep that order)."""
    program = _without_modes(program)
    signature = program.graph_signature
    reader = fx.Reader(lambda target: _attribute(program, target), prefix, Checks(program).place, calls)
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    kept = _Kept(program, prefix)
    inputs: list[Value] = []
    for node, spec in zip(placeholders, signature.input_specs, strict=True):
        if spec.kind == InputKind.USER_INPUT:
            _user_input(node, reader, inputs)
        elif spec.kind == InputKind.TOKEN:
            reader.env[node] = None
        else:
            reader.env[node] = kept.value(spec)
    weights = kept.ordered(list(state.weights) if state is not None else list(program.state_dict))
    if state is not None:
        kept.complete(weights, state)
    block = reader.read(program.graph.nodes, Block())
    block.inputs = [*inputs, *weights.values()]
    known: _Kept | State = kept if state is None else state
    graph = Graph(block, inputs, [value.name or "" for value in inputs], weights, known.aliases, [], [], known.parameters,
                  attributes=kept.attributes, reads=reader.reads)
    _outputs(program, graph, prefix)
    return Traced(graph, [], None, way="export")


def _without_modes(program: Any) -> Any:
    """The program with what autocast and vmap do to its operators written out.

    PyTorch does that by running the program once more; nothing is decomposed then, but it costs as much as torch.export itself.
    """
    modules = [module for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    if not any(higher.is_mode(node) for module in modules for node in module.graph.nodes if node.op == "call_function"):
        return program
    try:
        return program.run_decompositions({})
    except Exception as cause:
        raise errors.CaptureError("PyTorch cannot run the exported program again, to write out what autocast or vmap do in it "
                                  f"(strict=False in torch.export.export may help): {type(cause).__name__}: {cause}") from cause


class _Kept:
    """The tensors that a program keeps, each once."""

    def __init__(self, program: Any, prefix: str):
        self.program, self.prefix = program, prefix
        self.weights: dict[str, Value] = {}
        self.attributes: dict[str, Value] = {}
        self.aliases: dict[str, str] = {}
        self.parameters: set[str] = set()
        self._known: dict[int, tuple[str, Value]] = {}

    def value(self, spec: Any) -> Any:
        """What one placeholder stands for."""
        tensor = _tensor(self.program, spec)
        if not isinstance(tensor, torch.Tensor):
            return tensor
        name = _inside(spec.target, self.prefix)
        if id(tensor) in self._known:
            first, value = self._known[id(tensor)]
            self.aliases[name] = first
            return value
        if spec.kind == InputKind.CONSTANT_TENSOR:
            value = constant(tensor)
            if not name.rpartition(".")[2].startswith("lifted_tensor"):
                self.attributes[name] = value
            return value
        value = self.weights[name] = constant(tensor, name)
        self._known[id(tensor)] = name, value
        if spec.kind == InputKind.PARAMETER:
            self.parameters.add(name)
        return value

    def ordered(self, names: list[str]) -> dict[str, Value]:
        """The weights, first those of `names` in this order."""
        return {**{name: self.weights[name] for name in names if name in self.weights}, **self.weights}

    def complete(self, weights: dict[str, Value], state: State) -> None:
        """Weights that the program does not take at all are weights of the model still."""
        missing = [name for name in state.weights if name not in weights]
        for name in missing:
            weights[name] = constant(state.weights[name], name)
        if missing:
            found = {name: weights[name] for name in state.weights}
            weights.clear()
            weights.update(found)


def _inside(target: str, prefix: str) -> str:
    return target[len(prefix) + 1:] if prefix and target.startswith(prefix + ".") else target


def _user_input(node: torch.fx.Node, reader: fx.Reader, inputs: list[Value]) -> None:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        made = typed(value)
        made.name = node.name
        inputs.append(made)
        reader.env[node] = made
    elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise errors.UnsupportedError(f"the input {node.name} is a dynamic Python number; pass a tensor of rank 0 instead")
    else:
        reader.env[node] = value


def _tensor(program: Any, spec: Any) -> Any:
    for table in (program.state_dict, program.constants):
        if spec.target in table:
            return table[spec.target]
    raise errors.CaptureError(f"the exported program has no tensor {spec.target!r}")


def _attribute(program: Any, target: str) -> Any:
    found: Any = program.graph_module
    for part in target.split("."):
        found = getattr(found, part)
    return found


_NUMBERS = (bool, int, float)


def _outputs(program: Any, graph: Graph, prefix: str) -> None:
    """Splits what the graph returns into what `forward` returned and the new values of buffers and inputs."""
    changes = {OutputKind.BUFFER_MUTATION: "buffer", OutputKind.USER_INPUT_MUTATION: "input"}
    for spec, arg in zip(program.graph_signature.output_specs, graph.block.outputs, strict=True):
        if spec.kind == OutputKind.USER_OUTPUT:
            if isinstance(arg, Value) or type(arg) in _NUMBERS:
                graph.outputs.append(arg)
        elif spec.kind in changes and isinstance(arg, Value):
            graph.mutated.append(Mutation(_inside(spec.target, prefix), changes[spec.kind], arg))
    returned = set(map(id, graph.outputs))
    graph.mutated = [m for m in graph.mutated if id(m.value) not in returned]
    graph.block.outputs = [output for output in graph.outputs if isinstance(output, Value)]
    graph.output_names = _paths(program, len(graph.outputs))


def _paths(program: Any, count: int) -> list[str]:
    """Names of the outputs from the keys of the containers that `forward` returned."""
    spec = program.call_spec.out_spec
    if spec is None:
        return [""] * count
    specs = [s for s in program.graph_signature.output_specs if s.kind == OutputKind.USER_OUTPUT]
    names = [name for name, s in zip(torch_private.tree_paths(spec), specs, strict=False) if type(getattr(s.arg, "value", 0)) in _NUMBERS]
    return names if len(names) == count else [""] * count


def sizes(program: Any, graph: Graph, wanted: Sequence[Wanted]) -> None:
    """Enters the sizes of the inputs: numbers, the caller's names, and names for what the caller did not name.

    What torch.export found out about them besides (ranges, and axes that must be equal) become branches that were taken.
    """
    shapes = _shapes(program)
    named: dict[str, Axis] = {}
    first: dict[str, tuple[Value, int]] = {}
    for name, value, asks in zip(graph.input_names, graph.inputs, wanted, strict=True):
        for axis, size in enumerate(shapes[value.name or ""]):
            ask = asks.get(axis)
            if isinstance(size, int):
                if ask is not None and not ask.may_be_static:
                    raise errors.CaptureError(
                        f"axis {axis} of the input {name!r} was asked to be dynamic, and torch.export specialised it to {size}")
            elif str(size).isidentifier():
                fixed = None if ask is None or ask.may_be_static else _fixed(program, str(size))
                if fixed is not None:
                    raise errors.CaptureError(
                        f"axis {axis} of the input {name!r} was asked to be dynamic, and torch.export asserts that it is {fixed}")
                first.setdefault(str(size), (value, axis))
                if ask is not None and ask.label is not None and not ask.derived:
                    named.setdefault(str(size), ask.axis(""))
    for name, value, asks in zip(graph.input_names, graph.inputs, wanted, strict=True):
        value.symbolic = _symbolic(name, shapes[value.name or ""], asks, named)
    _guards(program, graph, shapes, first, named)


def _shapes(program: Any) -> dict[str, tuple[Any, ...]]:
    """The shape of each tensor that the program takes, by the name of its node."""
    return {node.name: tuple(node.meta["val"].shape) for node in program.graph.nodes
            if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)}


def _fixed(program: Any, symbol: str) -> int | None:
    """The one number that the program asserts a size of its inputs to be."""
    for node in program.graph.nodes:
        if node.target is torch.ops.aten._assert_scalar.default:
            matched = re.fullmatch(rf"Runtime assertion failed for expression Eq\({symbol}, (\d+)\) on node '.*'", str(node.args[1]))
            if matched is not None:
                return int(matched[1])
    return None


def _symbolic(name: str, shape: Sequence[Any], asks: Wanted, named: dict[str, Axis]) -> tuple[int | Axis, ...]:
    result: list[int | Axis] = []
    for axis, size in enumerate(shape):
        ask, text = asks.get(axis), str(size)
        if isinstance(size, int):
            result.append(size)
        elif ask is not None and ask.label is not None:
            result.append(ask.axis(""))
        elif text.isidentifier():
            number = 1 + sum(not isinstance(s, int) for s in shape[:axis])
            low, high = (ask.low, ask.high) if ask is not None else (0, None)
            result.append(named.setdefault(text, Axis(dynamic.automatic(name, number) if ask is not None else text, False, low, high)))
        else:
            expression = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: named[m[0]].label if m[0] in named else m[0], text)
            result.append(Axis(expression, derived=True))
    return tuple(result)


class Checks:
    """What PyTorch's operators, and the model by `torch._check`, demand of sizes: without it PyTorch itself would not run.

    torch.export keeps these among the branches that Python took; only a program that was made in this process tells them apart.
    """

    def __init__(self, program: Any):
        found: dict[str, Any] = {}
        size: Any = None
        for node in program.graph.nodes:
            value = node.meta.get("val")
            size = next((s for s in value.shape if isinstance(s, torch.SymInt)), None) if isinstance(value, torch.Tensor) else None
            if size is not None:
                asserts = getattr(size.node.shape_env, "deferred_runtime_asserts", {})
                found = {str(a.expr): a.expr for many in asserts.values() for a in many if not str(a.msg).startswith("evaluate_expr")}
                break
        self._found = found
        self.environment = None if size is None else size.node.shape_env
        self.decisions = decisions.Decisions(self.environment)

    def place(self, message: str) -> str | None:
        """Where the program took the branch that an assertion with this message stands for; None for such a demand."""
        matched = re.fullmatch(r"Runtime assertion failed for expression (.*) on node '.*'", message)
        if matched is None:
            return "a branch that torch.export took"
        return None if matched[1] in self._found else self.decisions.of_text(matched[1]) or "a branch that torch.export took"

    def implies(self, symbol: Any, low: int) -> bool:
        """Whether the demands leave no size of `symbol` just below `low`."""
        return any(symbol in demand.free_symbols and str(demand.subs(symbol, low - 1)) == "False" for demand in self._found.values())


def _guards(program: Any, graph: Graph, shapes: dict[str, tuple[Any, ...]], first: dict[str, tuple[Value, int]],
            named: dict[str, Axis]) -> None:
    """Ranges that torch.export narrowed, and axes of two names that it found to be one."""
    made: list[Node] = []

    def size(value: Value, axis: int) -> Value:
        node = Node("aten::size", "int", {"self": value, "dim": axis}, [Value("int")])
        made.append(node)
        return node.outputs[0]

    def holds(op: str, left: Any, right: Any, place: str | None) -> None:
        node = Node(op, "int", {"a": left, "b": right}, [Value("bool")])
        made.append(node)
        graph.reads.append(Read("bool", node.outputs[0], True, place or "found by torch.export, which does not say where"))

    checks = Checks(program)
    for symbol, bounds in program.range_constraints.items():
        if str(symbol) in first:
            at, axis = first[str(symbol)], named.get(str(symbol), Axis(""))
            low, high = dynamic.bound(bounds.lower), dynamic.bound(bounds.upper)
            turned = checks.decisions.turned(symbol, 1)
            if low is not None and low > max(axis.low, 1 if turned else 2) and not checks.implies(symbol, low):  # 2 is torch.export's own wish
                holds("aten::ge", size(*at), low, turned or checks.decisions.of_symbol(symbol))
            if high == 2 and checks.decisions.turned(symbol, 2):
                high = 1  # torch.export leaves no range without 2
            if high is not None and (axis.high is None or high < axis.high):
                holds("aten::le", size(*at), high, checks.decisions.of_symbol(symbol))
    for value in graph.inputs:
        for position, text in enumerate(map(str, shapes[value.name or ""])):
            one = first.get(text)
            if one is not None and one != (value, position) and (value.symbolic or ())[position] != (one[0].symbolic or ())[one[1]]:
                holds("aten::eq", size(*one), size(value, position), checks.decisions.of_equal(text))
    graph.block.nodes[:0] = made
