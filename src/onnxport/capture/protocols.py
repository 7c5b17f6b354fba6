"""What Python's integers can do and traced sizes cannot: be keys, be rounded, be divided with a rest, be checked, be lists of numbers.

A traced size is a tensor of rank 0. `{4: a, 5: b}[x.shape[0]]` would look for its address, `round(n * 1.5)` and `torch._check(n > 1)`
would be refused, and a stride would be a number of the example.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable
from typing import Any

import torch

from onnxport.aten.source import LIBRARY
from onnxport.capture import torch_private

# (kind, what was read, what Python saw)
Note = Callable[[str, torch.Tensor, Any], None]
Patch = tuple[Any, str, Any]
_CHECK = "_check_with"  # what torch._check and its like call
_BATCH = "_validate_and_get_batch_size"  # what torch.vmap calls
_BACKWARD = "_engine_run_backward"  # what torch.autograd.grad and Tensor.backward call


def is_size(tensor: torch.Tensor) -> bool:
    """Whether a tensor of rank 0 is, in this thread's trace, a size or arithmetic on sizes."""
    if tensor.dim() != 0 or tensor.requires_grad or not torch_private.is_tracing():
        return False
    try:
        raw = torch_private.get_value_trace(tensor)
    except RuntimeError:  # inside of torch.vmap
        return False
    for _ in range(20):
        node = raw.node()
        if node.kind() == "prim::NumToTensor":
            return True
        if not node.kind().startswith("aten::") or node.inputsSize() == 0:
            return False
        raw = node.inputsAt(0)
    return False


_OPERATORS = "add radd sub rsub mul rmul truediv rtruediv pow rpow floordiv rfloordiv mod rmod div"
# Python's arithmetic on sizes, as a mode sees it.
ARITHMETIC = {getattr(torch.Tensor, form) for name in _OPERATORS.split() for form in (name, f"__{name}__") if hasattr(torch.Tensor, form)}
_DIVISIONS = {torch.Tensor.div, torch.Tensor.__truediv__, torch.Tensor.__rtruediv__}


def exact(func: Any, args: tuple[Any, Any]) -> tuple[Any, Any]:
    """The operands of arithmetic on sizes, so that fractions are computed in double precision, as Python does; and where a tensor of
    rank 0 is computed with such a fraction, the dtype is the one that the tensor gives."""
    sizes = [isinstance(arg, torch.Tensor) and arg.dim() == 0 and is_size(arg) for arg in args]
    if not any(sizes):
        return args
    others = [arg for arg, size in zip(args, sizes) if not size]
    if not others or not isinstance(others[0], torch.Tensor):
        leaves = func in _DIVISIONS or (others and isinstance(others[0], float))
        return _each(args, sizes, torch.float64) if leaves else args
    dtype = others[0].dtype
    if others[0].dim() or not any(arg.dtype == torch.float64 for arg, size in zip(args, sizes) if size):
        return args
    return _each(args, sizes, dtype if dtype.is_floating_point else torch.get_default_dtype())


def _each(args: tuple[Any, Any], sizes: list[bool], dtype: torch.dtype) -> tuple[Any, Any]:
    left, right = [arg.to(dtype) if size and arg.dtype != dtype else arg for arg, size in zip(args, sizes)]
    return left, right


def patches(active: Callable[[], bool], note: Note) -> list[Patch]:
    """(owner, attribute, function) of each; `active` says whether this thread captures."""

    def sized(self: torch.Tensor) -> bool:
        return active() and is_size(self)

    return [
        (torch.Tensor, "__hash__", _hash(sized, note)),
        (torch.Tensor, "__round__", _round(sized, note)),
        (torch.Tensor, "__divmod__", _divmod(sized, reverse=False)),
        (torch.Tensor, "__rdivmod__", _divmod(sized, reverse=True)),
        (torch.Tensor, "stride", _stride(active, note)),
        (torch, _CHECK, _check_with(sized)),
        (torch_private.vmap_module(), _BATCH, _batch_size(active, note)),
        (torch.autograd, _BACKWARD, _backward(active, note)),
        (torch.nn.utils.stateless, "_functional_call", _functional_call(active)),
    ]


def _seen(tensor: torch.Tensor) -> Any:
    with torch_private.untraced():
        return tensor.item()


def _hash(sized: Callable[[torch.Tensor], bool], note: Note) -> Callable[..., int]:
    """A key is looked for by its number: the file holds where it stays this one."""
    def key(self: torch.Tensor) -> int:
        if not sized(self):
            return id(self)
        seen = _seen(self)
        note("bool", torch.eq(self, seen), True)
        return hash(seen)

    return key


def _round(sized: Callable[[torch.Tensor], bool], note: Note) -> Callable[..., Any]:
    def rounded(self: torch.Tensor, digits: int | None = None) -> Any:
        if not sized(self):
            raise TypeError("type Tensor doesn't define __round__ method")
        seen = _seen(self)
        if isinstance(seen, int) and (digits is None or digits >= 0):
            return self
        if digits is None:
            return torch.round(self).to(torch.int64)  # a half goes to the even neighbour, as in Python
        note("number", self, seen)
        return builtins.round(seen, digits)

    return rounded


def _divmod(sized: Callable[[torch.Tensor], bool], reverse: bool) -> Callable[..., Any]:
    def both(self: torch.Tensor, other: Any) -> Any:
        if not sized(self):
            return NotImplemented
        a, b = (other, self) if reverse else (self, other)
        return a // b, a % b

    return both


def _stride(active: Callable[[], bool], note: Note) -> Callable[..., Any]:
    """The strides of a contiguous tensor are products of its sizes, and so traced; others are numbers of the example."""
    original = torch.Tensor.stride

    def stride(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        seen = original(self, *args, **kwargs)
        if not active() or self.requires_grad or sys._getframe(1).f_code.co_filename.startswith(LIBRARY):
            return seen
        with torch_private.untraced():
            contiguous = self.is_contiguous()
        if contiguous:
            sizes = self.shape
            steps = tuple(math.prod(sizes[axis + 1:]) for axis in range(len(sizes)))
            if not args and not kwargs:
                return steps
            axis = args[0] if args else kwargs["dim"]
            return steps[axis]
        if seen != 1:
            note("number", math.prod(self.shape) + torch.zeros((), dtype=torch.int64), seen)
        return seen

    return stride


def _check_with(sized: Callable[[torch.Tensor], bool]) -> Callable[..., None]:
    """`torch._check(x.shape[0] > 1)`: what it asks for is a guard."""
    original: Callable[..., None] = getattr(torch, _CHECK)

    def check(error_type: Any, cond: Any, message: Any) -> None:
        original(error_type, bool(cond) if isinstance(cond, torch.Tensor) and sized(cond) else cond, message)

    return check


def _functional_call(active: Callable[[], bool]) -> Callable[..., Any]:
    original: Callable[..., Any] = vars(torch.nn.utils.stateless)["_functional_call"]

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        plain = active() and not isinstance(module, (torch.jit.ScriptModule, torch.nn.DataParallel))
        return torch_private.stateless_call(module, *args, **kwargs) if plain else original(module, *args, **kwargs)

    return call


def _batch_size(active: Callable[[], bool], note: Note) -> Callable[..., Any]:
    """Inside of torch.vmap the tracer sees the example's sizes only, so the size that it runs over must be fixed."""
    original: Callable[..., Any] = getattr(torch_private.vmap_module(), _BATCH)

    def size(dims: Any, tensors: Any) -> Any:
        found = original(dims, tensors)
        if active():
            for dim, tensor in zip(dims, tensors):
                if dim is not None and isinstance(tensor, torch.Tensor):
                    note("torch.vmap runs over it", _scalar(tensor.shape[dim]), _seen(found) if isinstance(found, torch.Tensor) else found)
        return found

    return size


def _backward(active: Callable[[], bool], note: Note) -> Callable[..., Any]:
    """PyTorch's formulas of gradients take the example's sizes, so none may change."""
    original: Callable[..., Any] = getattr(torch.autograd, _BACKWARD)

    def backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if active():
            note("gradient", outputs[0], None)
        return original(outputs, *args, **kwargs)

    return backward


def _scalar(size: Any) -> torch.Tensor:
    return size if isinstance(size, torch.Tensor) else torch.tensor(size)


def attention(active: Callable[[], bool]) -> Callable[..., torch.Tensor]:
    """`scaled_dot_product_attention(..., is_causal=n > 1)`: PyTorch takes a bool only, and the file needs both masks."""
    original = torch.nn.functional.scaled_dot_product_attention

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0,
               is_causal: Any = False, **others: Any) -> torch.Tensor:
        if active() and attn_mask is None and isinstance(is_causal, torch.Tensor) and is_size(is_causal):
            seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
            attn_mask, is_causal = seen | ~is_causal, False
        return original(query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, **others)

    return attend
