"""The one place where private names of torch are imported; everything else asks here."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

try:
    from torch._C import _create_function_from_graph as create_function_from_graph
    from torch._C import _create_graph_by_tracing as create_graph_by_tracing
    from torch._C import _get_tracing_state as get_tracing_state
    from torch._C import _get_value_trace as get_value_trace  # type: ignore[attr-defined]
    from torch._C import _jit_pass_inline, parse_schema
    from torch._C import _jit_set_tracer_state_warn as set_tracer_warnings  # type: ignore[attr-defined]
    from torch._C import _set_tracing_state as set_tracing_state  # type: ignore[attr-defined]
    from torch._C import _set_value_trace as set_value_trace  # type: ignore[attr-defined]
    from torch._library.custom_ops import CustomOpDef
    from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
    from torch.jit import optimized_execution  # type: ignore[attr-defined]
    from torch.jit._trace import _create_interpreter_name_lookup_fn as variable_name_lookup
    from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
except ImportError as cause:  # pragma: no cover - depends on the installed torch
    raise ImportError(f"torch {torch.__version__} lacks a name that onnxport needs: {cause}; "
                      "torch 2.13 to 2.15 are supported") from cause

_DEEPEST = 64  # calls inside calls; a call of an interface stays

__all__ = [
    "HigherOrderOperator",
    "OpOverload",
    "TorchDispatchMode",
    "any_size",
    "assignments_followed",
    "class_of",
    "create_function_from_graph",
    "create_graph_by_tracing",
    "decomposition",
    "eager_functions",
    "exporting",
    "forget",
    "forward_of",
    "get_tracing_state",
    "get_value_trace",
    "grouped_products",
    "guards_of",
    "hook_on_guards",
    "inline",
    "is_imaginable",
    "is_imagined",
    "is_subclass_access",
    "is_tracing",
    "known_to_scripts",
    "lengths_as_sizes",
    "lifted_scripts",
    "name_of_operator",
    "new_tensor",
    "next_unique",
    "optimized_execution",
    "parse_schema",
    "quiet",
    "schemas_of",
    "scripted_attributes",
    "set_tracer_warnings",
    "set_tracing_state",
    "set_value_trace",
    "slow_attention",
    "stateless_call",
    "symbolic_mode",
    "symbolic_size",
    "symbolically",
    "traced",
    "tree_leaves",
    "tree_paths",
    "untraced",
    "variable_name_lookup",
    "vmap_module",
    "without_modes",
]


def is_tracing() -> bool:
    """Whether this thread is inside a trace."""
    return get_tracing_state() is not None


def eager_functions() -> contextlib.AbstractContextManager[Any]:
    """Functions that torch.compile made, called by a model, run as they were written. (The tracer refuses what it compiles.)"""
    # Who has never compiled anything has no compiler to hold back, and is spared its import.
    frames = sys.modules.get("torch._dynamo.eval_frame")
    eager = getattr(frames, "_use_eager_on_nested_compile", contextlib.nullcontext)
    return eager()


def new_tensor(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """What `torch.Tensor.__new__` is when nobody stands before it."""
    return torch._C.TensorBase.__new__(cls, *args, **kwargs)


def stateless_call(module: Any, weights: Any, args: Any = None, kwargs: Any = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """`torch.func.functional_call`, which PyTorch refuses in a trace."""
    from torch.nn.utils import stateless

    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with stateless._reparametrize_module(module, weights, tie_weights=tie_weights, strict=strict):
        return module(*given, **(kwargs or {}))


def vmap_module() -> Any:
    """Where torch.vmap looks up its parts."""
    return importlib.import_module("torch._functorch.vmap")


def known_to_scripts(function: Any, name: str) -> None:
    """Lets a script that is compiled while `function` stands in for an operator of torch use that operator."""
    from torch.jit import _builtins

    _builtins._register_builtin(function, name)


def schemas_of(name: str) -> list[Any]:
    """All schemas registered under an operator name such as ``aten::add``."""
    return list(torch._C._jit_get_schemas_for_operator(name))


def name_of_operator(operator: Any) -> tuple[str, str | None] | None:
    """An operator of `torch.ops` or of `torch.library` as (name, overload), the overload None where all are meant; None for anything else."""
    if isinstance(operator, OpOverloadPacket):
        return operator._qualified_op_name, None
    if isinstance(operator, CustomOpDef):
        operator = operator._opoverload
    return (operator._schema.name, operator._schema.overload_name) if isinstance(operator, OpOverload) else None


def forward_of(function: Any, args: Sequence[Any]) -> Any:
    """What the forward of an `autograd.Function` gives, by itself."""
    if function.setup_context is not torch.autograd.Function.setup_context:
        return function.forward(*args)
    context: Any = torch.autograd.function.FunctionCtx()
    context.needs_input_grad = (False,) * len(args)
    return function.forward(context, *args)


def is_subclass_access(target: Any) -> bool:
    """Whether an operator of an exported program takes a tensor out of a tensor subclass."""
    return getattr(target, "__name__", "") == "access_subclass_inner_tensor.default"


def class_of(item: Any) -> str:
    """The name of the C++ class of a `torch.ScriptObject`."""
    return str(item._type()).rpartition(".")[2]


def scripted_attributes(module: torch.nn.Module) -> Any:
    """A scripted module that has the attributes of `module` and no code."""
    from torch.jit import _recursive

    return _recursive.create_script_module(module, lambda module: (), share_types=False, is_tracing=True)


def is_imaginable(name: str) -> bool:
    """Whether PyTorch says what an operator gives without running it."""
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in ("Meta", "CompositeExplicitAutograd"))


def forget(library: torch.library.Library) -> None:
    """Takes back what a library has registered."""
    library._destroy()


def without_modes() -> contextlib.AbstractContextManager[Any]:
    """Inside, tensors are what they are, though torch.export captures around."""
    found: contextlib.AbstractContextManager[Any] = _disable_current_modes()
    return found


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """What runs inside is not recorded and gives no tracer warnings."""
    if torch._C._dispatch_tls_is_dispatch_key_excluded("Tracer"):  # PyTorch's own constructors: nothing is recorded, nor could it be switched on
        yield
        return
    state = get_tracing_state()
    set_tracing_state(None)
    try:
        yield
    finally:
        set_tracing_state(state)


class Shared:
    """A process-wide switch that is on while at least one export is running, in whichever thread."""

    def __init__(self, on: Callable[[], Any], off: Callable[[Any], None]):
        self._on, self._off = on, off
        self._count = 0
        self._before: Any = None
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._count == 0:
                self._before = self._on()
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if self._count == 0:
                    self._off(self._before)


def _attention_on() -> bool:
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    return before


# nn.TransformerEncoderLayer's fast path is one fused node that says nothing of what it computes.
slow_attention = Shared(_attention_on, torch.backends.mha.set_fastpath_enabled)


def next_unique() -> int | None:
    """A number above those of all values of this thread's trace so far; values are numbered as they are made. None outside a trace.

    The newest node does not tell: that of an `autograd.Function` gets its values after those of the nodes inside it, which stand behind it.
    """
    state = get_tracing_state()
    if state is None:
        return None
    node = state.graph().create("prim::Constant", [], 1)
    number = int(node.output().unique())
    node.destroy()
    return number


def exporter_flags() -> Any:
    """What PyTorch's own names answer by while we export: no exporter, only its flags (`in_onnx_export` and the opset)."""
    try:
        from torch.onnx._internal.torchscript_exporter._globals import GLOBALS
    except ImportError:  # pragma: no cover - where it stood up to torch 2.8
        globals_: Any = importlib.import_module("torch.onnx._globals")
        return globals_.GLOBALS
    return GLOBALS


def _exporting_on() -> Any:
    flags = exporter_flags()
    before = flags.in_onnx_export
    flags.in_onnx_export = True
    return before


def _exporting_off(before: Any) -> None:
    exporter_flags().in_onnx_export = before


# Models branch on `torch.onnx.is_in_onnx_export()`.
exporting = Shared(_exporting_on, _exporting_off)


# Library modules that take `len` of a tensor that may have any length (the number of a detector's boxes): in a trace Python's `len` is a
# plain number. Their own name `len` gives the size, which a trace follows.
_LENGTHS_OF_TENSORS = ("torchvision.ops.poolers",)


def _length(x: Any) -> Any:
    return x.shape[0] if isinstance(x, torch.Tensor) else len(x)


def _lengths_on() -> list[Any]:
    changed = [module for module in map(sys.modules.get, _LENGTHS_OF_TENSORS) if module is not None and "len" not in vars(module)]
    for module in changed:
        vars(module)["len"] = _length
    return changed


def _lengths_off(changed: list[Any]) -> None:
    for module in changed:
        vars(module).pop("len", None)


lengths_as_sizes = Shared(_lengths_on, _lengths_off)


_alive: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()


def _lifted(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a scripted module; in a trace, as a function of its weights: the tracer knows tensors and not the module."""
    if not is_tracing():
        return torch.nn.Module.__call__(module, *args, **kwargs)
    graph = module.forward.graph.copy()
    inline(graph)
    _plain_attributes(graph, {next(graph.inputs()).unique(): module}, graph)
    graph, weights = torch._C._jit_pass_lower_graph(graph, module._c)
    names = [a.name for a in module.forward.schema.arguments[1:]]
    defaults = {a.name: a.default_value for a in module.forward.schema.arguments[1:] if a.has_default_value()}
    given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
    function = torch._C._create_function_from_graph("forward", graph)
    _alive.setdefault(module, []).append(function)  # the trace only points to it
    return function(*[given[name] for name in names], *weights)


def _plain_attributes(graph: Any, owners: dict[int, Any], block: Any) -> None:
    """Attributes that are no tensors become constants."""
    for node in list(block.nodes()):
        for inner in node.blocks():
            _plain_attributes(graph, owners, inner)
        if node.kind() == "prim::GetAttr" and node.inputsAt(0).unique() in owners:
            item = getattr(owners[node.inputsAt(0).unique()], node.s("name"))
            if isinstance(item, torch.jit.ScriptModule):
                owners[node.output().unique()] = item
            elif not isinstance(item, torch.Tensor):
                graph.setInsertPoint(node)
                node.output().replaceAllUsesWith(graph.insertConstant(item))
                node.destroy()


_SCRIPTED: Any = vars(torch.jit)["RecursiveScriptModule"]


def _lifting_on() -> None:
    _SCRIPTED.__call__ = _lifted


def _lifting_off(before: Any) -> None:
    del _SCRIPTED.__call__


# Scripted modules that a traced one calls.
lifted_scripts = Shared(_lifting_on, _lifting_off)


def is_exporting() -> bool:
    """What `torch.onnx.is_in_onnx_export` says."""
    return bool(exporter_flags().in_onnx_export)


@contextlib.contextmanager
def any_size() -> Iterator[None]:
    """Inside, torch.export takes an example size of 0 or 1 for an example like any other."""
    config: Any = importlib.import_module("torch.fx.experimental._config")
    if not hasattr(config, "backed_size_oblivious"):  # pragma: no cover - depends on the installed torch
        yield
        return
    with config.patch(backed_size_oblivious=True):
        yield


def is_imagined(tensor: torch.Tensor) -> bool:
    """Whether a tensor has no numbers: PyTorch only keeps account of its dtype and shape."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return getattr(tensor, "fake_mode", None) is not None


def symbolically(run: Callable[..., Any], weights: list[torch.Tensor], tensors: Sequence[torch.Tensor],
                 dynamic: Sequence[set[int]]) -> tuple[Any, list[str]]:
    """`run(weights, *tensors)` as a graph of operators below autograd and torch.func, and what it asks of the dynamic sizes and of the data."""
    from torch.fx.experimental import proxy_tensor

    config: Any = importlib.import_module("torch.fx.experimental._config")
    with any_size(), config.patch(use_duck_shape=False):
        made = proxy_tensor.make_fx(run, tracing_mode="symbolic", _allow_non_fake_inputs=True)(weights, *tensors)
    every: list[Any] = [node.meta["val"] for node in made.graph.nodes if node.op == "placeholder"]
    holders = every[len(weights):]
    sizes: list[Any] = [holder.shape[axis] for holder, axes in zip(holders, dynamic, strict=True) for axis in axes]
    # An axis that was fixed on the way is a number by now: what was decided over it is asked of the symbol that it was.
    nodes: list[Any] = [size.node for size in sizes if isinstance(size, torch.SymInt)]
    symbols = {symbol for node in nodes for symbol in node._expr.free_symbols}
    fixed = [f"a size is {size}" for size in sizes if not isinstance(size, torch.SymInt) or size.node.expr.is_number]
    environment = next((holder.fake_mode.shape_env for holder in holders if holder.fake_mode is not None), None)
    guards = environment.guards if environment is not None else ()
    # What is no size of any tensor is a number that was read from one, and the graph may hold the example's.
    shapes: list[Any] = [size.node for holder in every for size in holder.shape if isinstance(size, torch.SymInt)]
    of_sizes = {symbol for node in shapes for symbol in node._expr.free_symbols}
    return made, fixed + [str(guard.expr) for guard in guards if guard.expr.free_symbols & symbols or guard.expr.free_symbols - of_sizes]


class _Warnings:
    """The module `warnings` for one module of torch, without what it says of attributes that a model assigns."""

    @staticmethod
    def warn(message: Any, *args: Any, stacklevel: int = 1, **kwargs: Any) -> None:
        warn: Any = warnings.warn
        if "assigned during export" not in str(message):
            warn(message, *args, stacklevel=stacklevel + 1, **kwargs)


def _assignments_on() -> Any:
    try:
        module: Any = importlib.import_module("torch._functorch._aot_autograd.frontend_utils")
    except ImportError:  # pragma: no cover - torch 2.8 and older warn from elsewhere: the warning stays
        return None
    before, module.warnings = module.warnings, _Warnings
    return module, before


def _assignments_off(before: Any) -> None:
    if before is not None:
        before[0].warnings = before[1]


# torch.export warns of attributes that it would lose; the capture returns them beside the outputs (recurrent layers assign their weights too).
assignments_followed = Shared(_assignments_on, _assignments_off)


# Operators that ask sizes only how to lay their result out in memory: it holds the same numbers whatever the answer.
_LAYOUTS = frozenset({"aten::contiguous", "aten::linear", "aten::reshape", "aten::batch_norm", "aten::adaptive_avg_pool2d",
                      "aten::adaptive_avg_pool3d"})


def _lays_out(frame: Any) -> bool:
    """Whether an operator of `_LAYOUTS` asks. frame: inside PyTorch's arithmetic on sizes, in which the question arrived."""
    while frame is not None and frame.f_code.co_filename.endswith(("symbolic_shapes.py", "sym_node.py")):
        frame = frame.f_back
    return frame is not None and frame.f_code is OpOverload.__call__.__code__ and frame.f_locals["self"].name().partition(".")[0] in _LAYOUTS


_laying_out = threading.local()


def _contiguous(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """`Tensor.contiguous`, which asks for the layout before any operator is called."""
    before, _laying_out.now = getattr(_laying_out, "now", False), True
    try:
        return torch._C.TensorBase.contiguous(self, *args, **kwargs)
    finally:
        _laying_out.now = before


def hook_on_guards(note: Callable[[Any, Any], None], answer: Callable[[Any, Any, bool], None]) -> Shared:
    """A switch over all decisions on symbolic sizes: while it is on, `note(environment, condition)` is called where one is decided for the
    first time, `answer(environment, question, truth)` for each question, also where the answer is known. What is asked for the layout of
    memory decides nothing: it is answered as the example has it.
    """

    def environment() -> Any:
        from torch.fx.experimental import symbolic_shapes

        return symbolic_shapes.ShapeEnv

    def on() -> Any:
        torch.Tensor.contiguous = _contiguous  # type: ignore[assignment,method-assign]
        log, evaluate = before = environment()._log_guard, environment().evaluate_expr

        def log_guard(self: Any, prefix: str, condition: Any, *args: Any, **kwargs: Any) -> None:
            note(self, condition)
            log(self, prefix, condition, *args, **kwargs)

        def evaluate_expr(self: Any, question: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(_laying_out, "now", False) or _lays_out(sys._getframe(1)):
                with self.suppress_guards():
                    return evaluate(self, question, *args, **kwargs)
            found = evaluate(self, question, *args, **kwargs)
            if str(found) in ("True", "False"):
                answer(self, question, str(found) == "True")
            return found

        environment()._log_guard, environment().evaluate_expr = log_guard, evaluate_expr
        return before

    def off(before: Any) -> None:
        del torch.Tensor.contiguous
        environment()._log_guard, environment().evaluate_expr = before

    return Shared(on, off)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of a pytree in its own order."""
    from torch.utils import _pytree as pytree

    return list(pytree.tree_leaves(tree))


def tree_paths(spec: Any) -> list[str]:
    """For each leaf of a pytree, the keys that lead to it, joined by dots."""
    from torch.utils import _pytree as pytree

    paths, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten(list(range(spec.num_leaves)), spec))
    return [".".join(str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path) for path, _ in paths]


def decomposition(overload: Any) -> Callable[..., Any] | None:
    """What PyTorch itself computes an operator from: a function of its decomposition tables, or that of a composite operator, or of one
    of `torch.onnx.ops` (`Attention.opset23`)."""
    import torch._decomp

    found = torch._decomp.decomposition_table.get(overload)
    if found is None and getattr(overload, "namespace", "") == "onnx":
        found = importlib.import_module("torch.onnx.ops").aten_decompositions().get(overload)
    if found is not None:
        return found
    try:
        composite = overload._can_decompose()
    except RuntimeError:  # an operator of TorchScript that the dispatcher does not know
        return None
    return overload.decompose if composite else None


def symbolic_mode() -> Any:
    """A mode of fake tensors whose sizes are symbols, no two of them the same and none of them 0 or 1 by nature."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return FakeTensorMode(shape_env=ShapeEnv(duck_shape=False, specialize_zero_one=False))


def symbolic_size(mode: Any, name: str, seen: int) -> Any:
    """A new symbolic number that is `seen` in the example."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    source = ConstantSource(name)
    symbol = mode.shape_env.create_symbol(seen, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
    return mode.shape_env.create_symintnode(symbol, hint=seen, source=source)


def traced(function: Callable[..., Any], args: list[Any], mode: Any) -> torch.fx.GraphModule:
    """The operators that a function calls on fake tensors; PyTorch's inner primitives as ATen operators."""
    from torch.fx.experimental.proxy_tensor import make_fx

    with quiet("torch._subclasses.fake_tensor"), mode:
        return make_fx(function, decomposition_table=_primitives())(*args)


def is_method(scripted: Any) -> bool:
    """Whether it is a scripted method of a module, taken by name (`script.forward`)."""
    return isinstance(scripted, torch._C.ScriptMethod)


def grouped_products() -> list[Any]:
    """PyTorch's functions for products of groups of rows with a matrix each."""
    found = (getattr(torch, "_grouped_mm", None), getattr(torch.nn.functional, "grouped_mm", None))
    return [function for function in found if function is not None]


def module_of(scripted: Any) -> torch.jit.ScriptModule | None:
    """The module that a scripted module or method is or belongs to; None for a function."""
    if is_method(scripted):
        return torch.jit._recursive.wrap_cpp_module(scripted.owner)  # type: ignore[no-any-return]
    return scripted if isinstance(scripted, torch.jit.ScriptModule) else None


def inline(graph: Any) -> None:
    """Inlines what a graph calls. Where scripts run without their optimiser, PyTorch's pass leaves the calls of what it inlines."""
    _jit_pass_inline(graph)
    for _ in range(_DEEPEST):
        if graph.findNode("prim::CallFunction", True) is None and graph.findNode("prim::CallMethod", True) is None:
            return
        _jit_pass_inline(graph)


@contextlib.contextmanager
def quiet(name: str) -> Iterator[None]:
    """Without what this logger has to say."""
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@functools.cache
def _primitives() -> dict[Any, Any]:
    import torch._prims

    found = {}
    for name in dir(torch.ops.prims):
        overload = getattr(getattr(torch.ops.prims, name), "default", None)
        if overload is not None and hasattr(overload, "impl_aten"):
            found[overload] = overload.impl_aten
    return found


def guards_of(mode: Any) -> list[str]:
    """What was decided over symbolic sizes, as text."""
    env = mode.shape_env
    deferred = [str(a.expr) for many in env.deferred_runtime_asserts.values() for a in many]
    return [*(str(guard.expr) for guard in env.guards), *deferred]
