"""Operators that PyTorch computes of others in C++ with the example's sizes: torch.export would fix a dynamic axis to them, or not
know what they give.

Where it does, the model is exported once more with these operators kept whole: as operators of our own, of which torch.export
only asks the sizes of the results. They are read as what they stand for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from onnxport.capture import torch_private

Tensor = torch.Tensor
_ATEN: Any = torch.ops.aten


_Adapted = tuple[Sequence[Any], dict[str, Any]]


class Kept(TorchFunctionMode):
    """Inside, these operators stay whole."""

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        given = kwargs or {}
        for kept in _functions().get(func, ()):
            adapted = (args, given) if kept.adapt is None else kept.adapt(*args, **given)
            if adapted is not None:
                result = kept.call(*adapted[0], **adapted[1])
                return result if kept.named is None else kept.named(result)
        return func(*args, **given)


class _Kept:
    """One operator. names: PyTorch's functions for it.   sizes: a fake result.

    adapt: the operator's arguments for a call of such a function; None where it is a call of another overload.
    named: the type of the functions' result, where it has names for its parts.
    """

    def __init__(self, overload: Any, names: Sequence[Any], sizes: Callable[..., Any], adapt: Callable[..., _Adapted | None] | None = None,
                 named: Any = None):
        self.overload, self.names, self.adapt, self.named = overload, names, adapt, named
        schema = overload._schema
        self.name = f"{schema.name.rpartition('::')[2]}_{schema.overload_name or 'default'}"
        text = str(schema)
        _library().define(self.name + re.sub(r"\bint\b", "SymInt", text[text.index("("):]))
        self.call = getattr(getattr(torch.ops, _NAMESPACE), self.name).default
        torch.library.register_fake(f"{_NAMESPACE}::{self.name}", sizes, lib=_library())


_NAMESPACE = "onnxport_kept"


@functools.cache
def _library() -> Any:
    return torch.library.Library(_NAMESPACE, "DEF")


_NAMED: Any = torch.return_types
_HISTOGRAM = (torch.histogram, Tensor.histogram)


@functools.cache
def _kept() -> list[_Kept]:
    rnn = [(name, getattr(_ATEN, name).input) for name in ("gru", "rnn_tanh", "rnn_relu")]
    return [
        _Kept(_ATEN.lstm.input, [torch.lstm], _lstm, _padded),
        *(_Kept(overload, [getattr(torch, name)], _rnn, _padded) for name, overload in rnn),
        _Kept(_ATEN.cov.default, [torch.cov, Tensor.cov], _cov),
        _Kept(_ATEN.corrcoef.default, [torch.corrcoef, Tensor.corrcoef], _corrcoef),
        _Kept(_ATEN.linspace.default, [torch.linspace], _spaced, _of_numbers),
        _Kept(_ATEN.logspace.default, [torch.logspace], _spaced, _of_numbers),
        _Kept(_ATEN.linalg_matrix_norm.default, [torch.linalg.matrix_norm], _norm, _of_order),
        _Kept(_ATEN.kron.default, [torch.kron, Tensor.kron], _kron),
        _Kept(_ATEN.linalg_norm.default, [torch.linalg.norm], _norm, _of_order),
        _Kept(_ATEN.affine_grid_generator.default, [torch.nn.functional.affine_grid], _affine_grid, _of_affine_grid),
        _Kept(_ATEN.ctc_loss.Tensor, [torch.nn.functional.ctc_loss], _ctc_loss, _of_ctc_loss),
        _Kept(_ATEN._grouped_mm.default, torch_private.grouped_products(), _grouped_mm, _of_grouped_mm),
        _Kept(_ATEN.fractional_max_pool3d.default, [torch.nn.functional.fractional_max_pool3d_with_indices], _fractional_max_pool,
              _of_fractional_max_pool),
        _Kept(_ATEN.linalg_lstsq.default, [torch.linalg.lstsq], _lstsq, named=_NAMED.linalg_lstsq),
        _Kept(_ATEN.histogram.bins_tensor, _HISTOGRAM, _counts, _of_edges, _NAMED.histogram),
        _Kept(_ATEN.histogram.bin_ct, _HISTOGRAM, _counts_of_equal, _of_count, _NAMED.histogram),
        _Kept(_ATEN.histogramdd.default, [torch.histogramdd], _counts_of_points, _of_counts, _NAMED.histogramdd),
        _Kept(_ATEN.gradient.scalarint, [torch.gradient], _slopes, _of_step),
        _Kept(_ATEN.gradient.tensorarrayint, [torch.gradient], _slopes, _of_places),
        _Kept(_ATEN.one_hot.default, [torch.nn.functional.one_hot], _one_hot, _of_classes),
        _Kept(_ATEN.take_along_dim.default, [torch.take_along_dim, Tensor.take_along_dim], _take_along_dim, _of_dim),
        _Kept(_ATEN.fft_fftfreq.default, [torch.fft.fftfreq], _frequencies, _of_numbers),
        _Kept(_ATEN.fft_rfftfreq.default, [torch.fft.rfftfreq], _half_frequencies, _of_numbers),
        _Kept(_ATEN.max_pool1d.default, [torch.nn.functional.max_pool1d], _max_pool1d, _of_max_pool1d),
    ]


@functools.cache
def _functions() -> dict[Any, list[_Kept]]:
    functions: dict[Any, list[_Kept]] = {}
    for kept in _kept():
        for name in kept.names:
            functions.setdefault(name, []).append(kept)
    return functions


@functools.cache
def _originals() -> dict[Any, Any]:
    return {kept.call: kept.overload for kept in _kept()}


def original(target: Any) -> Any:
    """The operator that one of ours stands for; any other as it is."""
    return _originals()[target] if target.namespace == _NAMESPACE else target


# ---------------------------------------------------------------------- sizes of results


def _padded(*args: Any) -> _Adapted | None:
    """(input, states, weights, has_biases, ...); a call on packed sequences has its lengths in the second place."""
    return (args, {}) if isinstance(args[3], bool) else None


def _of_numbers(*args: Any, **kwargs: Any) -> _Adapted | None:
    if any(isinstance(arg, Tensor) for arg in args) or not kwargs.keys() <= {"dtype", "device", "base", "requires_grad"}:
        return None
    return args, {name: arg for name, arg in kwargs.items() if name != "requires_grad"}


def _of_order(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None) -> _Adapted | None:
    if out is not None or dtype is not None or not isinstance(ord, (int, float)):
        return None
    return (A, ord, list(range(A.dim())) if dim is None else _listed(dim), keepdim), {}


def _of_affine_grid(theta: Tensor, size: Sequence[Any], align_corners: bool | None = None) -> _Adapted:
    return (theta, list(size), bool(align_corners)), {}


def _of_max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                   return_indices: bool = False) -> _Adapted | None:
    return None if return_indices else ((input, *map(_listed, (kernel_size, stride, padding, dilation)), ceil_mode), {})


def _of_ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
                 zero_infinity: bool = False) -> _Adapted:
    lengths = [n if isinstance(n, Tensor) else torch.tensor(n) for n in (input_lengths, target_lengths)]
    return (log_probs, targets, *lengths, blank, ("none", "mean", "sum").index(reduction), zero_infinity), {}


def _of_grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None,
                   out_dtype: torch.dtype | None = None) -> _Adapted:
    return (mat_a, mat_b, offs, bias, out_dtype), {}


def _of_fractional_max_pool(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
                            _random_samples: Tensor | None = None) -> _Adapted | None:
    if output_size is None or _random_samples is None:
        return None
    kernel, output = (size if isinstance(size, (list, tuple)) else [size] * 3 for size in (kernel_size, output_size))
    return (input, list(kernel), list(output), _random_samples), {}


def _of_edges(input: Tensor, bins: Any, *, weight: Tensor | None = None, density: bool = False) -> _Adapted | None:
    return ((input, bins), {"weight": weight, "density": density}) if isinstance(bins, Tensor) else None


def _of_count(input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False) -> _Adapted:
    return (input, bins), {"range": range, "weight": weight, "density": density}


def _of_counts(input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False) -> _Adapted | None:
    whole = isinstance(bins, (list, tuple)) and all(isinstance(count, int) for count in bins)
    return ((input, bins, range, weight, density), {}) if whole else None


def _of_step(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> _Adapted | None:
    whole = not isinstance(spacing, (list, tuple, Tensor)) and not isinstance(dim, (list, tuple))
    return ((input,), {"spacing": spacing, "dim": dim, "edge_order": edge_order}) if whole else None


def _of_places(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> _Adapted | None:
    places = isinstance(spacing, (list, tuple)) and all(isinstance(place, Tensor) for place in spacing)
    return ((input,), {"spacing": spacing, "dim": dim, "edge_order": edge_order}) if places and not isinstance(dim, (list, tuple)) else None


def _of_classes(tensor: Tensor, num_classes: Any = -1) -> _Adapted | None:
    return None if isinstance(num_classes, int) and num_classes < 0 else ((tensor, num_classes), {})


def _of_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> _Adapted | None:
    return None if dim is None else ((input, indices, dim), {})


def _listed(size: Any) -> list[Any]:
    return list(size) if isinstance(size, (list, tuple)) else [] if size is None else [size]


def _lstm(input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
          bidirectional: bool, batch_first: bool) -> tuple[Tensor, Tensor, Tensor]:
    h, c = hx
    return input.new_empty([*input.shape[:-1], h.shape[-1] * (2 if bidirectional else 1)]), h.clone(), c.clone()


def _rnn(input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
         bidirectional: bool, batch_first: bool) -> tuple[Tensor, Tensor]:
    return input.new_empty([*input.shape[:-1], hx.shape[-1] * (2 if bidirectional else 1)]), hx.clone()


def _float(x: Tensor) -> torch.dtype:
    return x.dtype if x.is_floating_point() or x.is_complex() else torch.get_default_dtype()


def _cov(self: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    dtype = _float(self) if aweights is None else torch.promote_types(_float(self), aweights.dtype)
    return self.new_empty([self.shape[0]] * 2 if self.dim() == 2 else [], dtype=dtype)


def _corrcoef(self: Tensor) -> Tensor:
    return self.new_empty([self.shape[0]] * 2 if self.dim() == 2 else [], dtype=_float(self))


def _spaced(start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: torch.dtype | None = None, layout: Any = None, device: Any = None,
            pin_memory: Any = None) -> Tensor:
    return torch.empty([steps], dtype=dtype, device=device)


def _norm(self: Tensor, ord: Any, dim: Sequence[int], keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    gone = {d % self.dim() for d in dim}
    sizes = [1 if d in gone else size for d, size in enumerate(self.shape) if keepdim or d not in gone]
    return self.new_empty(sizes, dtype=self.abs().dtype)


def _kron(self: Tensor, other: Tensor) -> Tensor:
    rank = max(self.dim(), other.dim())
    a, b = ([1] * (rank - t.dim()) + list(t.shape) for t in (self, other))
    return self.new_empty([x * y for x, y in zip(a, b, strict=True)], dtype=torch.result_type(self, other))


def _affine_grid(theta: Tensor, size: Sequence[Any], align_corners: bool) -> Tensor:
    return theta.new_empty([size[0], *size[2:], len(size) - 2])


def _ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: int = 1,
              zero_infinity: bool = False) -> Tensor:
    return log_probs.new_empty([log_probs.shape[1]] if reduction == 0 and log_probs.dim() == 3 else [])


def _fractional_max_pool(self: Tensor, kernel_size: Sequence[int], output_size: Sequence[Any], random_samples: Tensor) -> tuple[Tensor, Tensor]:
    sizes = [*self.shape[:-3], *output_size]
    return self.new_empty(sizes), self.new_empty(sizes, dtype=torch.int64)


def _max_pool1d(self: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,), dilation: Sequence[int] = (1,),
                ceil_mode: bool = False) -> Tensor:
    (kernel, pad, step) = kernel_size[0], padding[0], (list(stride) or list(kernel_size))[0]
    room = self.shape[-1] + 2 * pad - dilation[0] * (kernel - 1) - 1
    count = (room + (step - 1 if ceil_mode else 0)) // step + 1
    return self.new_empty([*self.shape[:-1], count])


def _grouped_mm(self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: torch.dtype | None = None) -> Tensor:
    """torch.export knows it for the dtypes of GPUs only."""
    rows = self.shape[:-1] if self.dim() == mat2.dim() or self.dim() == 2 else self.shape[1:-1]
    groups = [] if offs is None or self.dim() != mat2.dim() else [offs.shape[0]]
    return self.new_empty([*groups, *rows, mat2.shape[-1]], dtype=out_dtype)


def _lstsq(self: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> tuple[Tensor, ...]:
    m, n = self.shape[-2:]
    batch = self.shape[:-2]
    of_vectors = b.dim() == 1 or (b.dim() == self.dim() - 1 and b.shape == self.shape[:-1])
    tail = [] if of_vectors else [b.shape[-1]]
    leaves = driver in ("gels", "gelsd", "gelss") and m > n
    values = [*batch, min(m, n)] if driver in ("gelsd", "gelss") else [0]
    return (self.new_empty([*batch, n, *tail]), self.new_empty([*batch, *tail] if leaves else [0]),
            self.new_empty([0] if driver == "gels" else batch, dtype=torch.int64), self.new_empty(values))


def _counts(self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False) -> tuple[Tensor, Tensor]:
    return self.new_empty([bins.shape[0] - 1]), bins.clone()


def _counts_of_equal(self: Tensor, bins: int = 100, *, range: Any = None, weight: Tensor | None = None,
                     density: bool = False) -> tuple[Tensor, Tensor]:
    return self.new_empty([bins]), self.new_empty([bins + 1])


def _counts_of_points(self: Tensor, bins: Sequence[int], range: Any = None, weight: Tensor | None = None,
                      density: bool = False) -> tuple[Tensor, list[Tensor]]:
    return self.new_empty(bins), [self.new_empty([count + 1]) for count in bins]


def _slopes(self: Tensor, *, spacing: Any = None, dim: int | None = None, edge_order: int = 1) -> list[Tensor]:
    return [torch.empty_like(self) for _ in range(self.dim() if dim is None else 1)]


def _one_hot(self: Tensor, num_classes: Any = -1) -> Tensor:
    return self.new_empty([*self.shape, num_classes])


def _take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    assert dim is not None
    along = dim % self.dim()
    others = [[size for d, size in enumerate(t.shape) if d != along] for t in (self, indices)]
    sizes = list(torch.broadcast_shapes(*others))
    return self.new_empty([*sizes[:along], indices.shape[along], *sizes[along:]])


def _frequencies(n: Any, d: float = 1.0, *, dtype: torch.dtype | None = None, layout: Any = None, device: Any = None,
                 pin_memory: Any = None) -> Tensor:
    return torch.empty([n], dtype=dtype, device=device)


def _half_frequencies(n: Any, d: float = 1.0, *, dtype: torch.dtype | None = None, layout: Any = None, device: Any = None,
                      pin_memory: Any = None) -> Tensor:
    return torch.empty([n // 2 + 1], dtype=dtype, device=device)
