"""Products that sum over named or numbered dims: einsum, tensordot, inner, bilinear and their like."""

from __future__ import annotations

from collections.abc import Sequence

from onnxport import errors
from onnxport.ops.reduction import reduce
from onnxport.ops.registry import aten
from onnxport.ops.support import axis_of, promoted, rank_of, shape_of
from onnxport.target import dims
from onnxport.target.builder import Builder
from onnxport.target.dims import Size
from onnxport.target.sizes import reshape, unsqueeze
from onnxport.target.value import Value

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def contract(g: Builder, left: Value, right: Value, names: tuple[str, str], result: str) -> Value:
    """The product of two tensors whose dims have one-letter names; names that `result` lacks are summed over.

    ONNX ReduceSum (of names that stand once), Transpose, Reshape, MatMul.
    """
    (left, a), (right, b) = _without_single(g, left, names[0], names[1] + result), _without_single(g, right, names[1], names[0] + result)
    batch = [n for n in result if n in a and n in b]
    summed = [n for n in a if n in b and n not in result]
    rows, columns = [n for n in a if n not in b], [n for n in b if n not in a]
    size = _sizes(left, a) | {n: s for n, s in _sizes(right, b).items() if n not in a or s != 1}
    left = _arranged(g, left, a, batch, rows, summed)
    right = _arranged(g, right, b, batch, summed, columns)
    product = g.op("MatMul", left, right)
    order = batch + rows + columns
    product = reshape(g, product, [size[n] for n in order])
    return g.op("Transpose", product, perm=[order.index(n) for n in result])


def _sizes(x: Value, names: Sequence[str]) -> dict[str, Size]:
    return dict(zip(names, shape_of(x), strict=True))


def _without_single(g: Builder, x: Value, names: str, elsewhere: str) -> tuple[Value, list[str]]:
    alone = [i for i, n in enumerate(names) if n not in elsewhere]
    return reduce(g, "ReduceSum", x, alone, False), [n for i, n in enumerate(names) if i not in alone]


def _arranged(g: Builder, x: Value, names: list[str], *groups: list[str]) -> Value:
    """`x` with the dims of each group side by side; the last two groups are one dim each."""
    batch, first, second = groups
    order = batch + first + second
    size = _sizes(x, names)
    x = g.op("Transpose", x, perm=[names.index(n) for n in order])
    return reshape(g, x, [*[size[n] for n in batch], *[dims.product(size[n] for n in group) for group in (first, second)]])


# ---------------------------------------------------------------------- einsum


@aten
def einsum(g: Builder, equation: str, tensors: list[Value], path: list[int] | None = None) -> Value:
    """einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor

    ONNX MatMul where the equation says just that, else Einsum (from opset 12), before Transpose, Reshape, MatMul of two at a time.
    """
    terms, result = _terms(equation.replace(" ", ""), [rank_of(t) for t in tensors])
    if len(tensors) == 2 and _is_matmul(terms, result) and not _broadcasts(tensors, terms):
        return g.op("MatMul", *tensors)
    if g.opset >= 12:
        return g.op("Einsum", *tensors, equation=f"{','.join(terms)}->{result}")
    if any(len(set(t)) < len(t) for t in terms) or _broadcasts(tensors, terms):
        raise errors.UnsupportedError(f"einsum {equation!r}, with a diagonal or a dim that broadcasts, needs opset 12 or higher "
                                      f"(opset_version={g.opset} was asked)")
    value, names = tensors[0], terms[0]
    for position, (other, term) in enumerate(zip(tensors[1:], terms[1:], strict=True), 1):
        later = "".join(terms[position + 1:]) + result
        kept = "".join(dict.fromkeys(n for n in names + term if n in later))
        value, names = contract(g, value, other, (names, term), result if position == len(tensors) - 1 else kept), kept
    return value if len(tensors) > 1 else _alone(g, value, names, result)


def _alone(g: Builder, x: Value, names: str, result: str) -> Value:
    x, left = _without_single(g, x, names, result)
    return g.op("Transpose", x, perm=[left.index(n) for n in result])


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The names of each operand's dims and of the result's, all spelled out: also those that the equation calls "..."."""
    left, arrow, result = equation.partition("->")
    given = left.split(",")
    free = [c for c in _LETTERS if c not in equation]
    hidden = max((rank - len(term) + 3 for term, rank in zip(given, ranks, strict=True) if "..." in term), default=0)
    if hidden > len(free):
        raise errors.UnsupportedError(f"einsum {equation!r} has more dims than there are letters")
    names = "".join(free[:hidden])
    terms = [t.replace("...", names[hidden - (rank - len(t) + 3):]) for t, rank in zip(given, ranks, strict=True)]
    if not arrow:
        result = names + "".join(sorted(c for c in dict.fromkeys(left) if c.isalpha() and left.count(c) == 1))
    return terms, result.replace("...", names)


def _is_matmul(terms: Sequence[str], result: str) -> bool:
    a, b = terms
    if len(a) < 2 or len(b) < 2 or len(set(a)) < len(a) or len(set(b)) < len(b) or a[-1] != b[-2] or a[-1] in result:
        return False
    if b[-1] in a or a[-2] in b:
        return False
    batch = a[:-2] if len(b) == 2 else a[:-2] if a[:-2] == b[:-2] else None
    return batch is not None and result == batch + a[-2] + b[-1]


def _broadcasts(tensors: Sequence[Value], terms: Sequence[str]) -> bool:
    """Whether a name is 1 in one operand and something else in another."""
    seen: dict[str, Size] = {}
    for x, term in zip(tensors, terms, strict=True):
        for name, size in zip(term, shape_of(x), strict=True):
            if seen.setdefault(name, size) != size and 1 in (seen[name], size):
                return True
    return False


# ---------------------------------------------------------------------- numbered dims


@aten
def tensordot(g: Builder, self: Value, other: Value, dims_self: list[int], dims_other: list[int]) -> Value:
    """tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor. ONNX Transpose, Reshape, MatMul."""
    a = list(_LETTERS[:rank_of(self)])
    b = list(_LETTERS[rank_of(self):rank_of(self) + rank_of(other)])
    for i, j in zip(dims_self, dims_other, strict=True):
        b[axis_of(other, j)] = a[axis_of(self, i)]
    return _named(g, self, other, "".join(a), "".join(b))


def _named(g: Builder, left: Value, right: Value, a: str, b: str) -> Value:
    result = "".join(n for n in a if n not in b) + "".join(n for n in b if n not in a)
    both = [n for n in a if n in b]
    left_size, right_size = _sizes(left, a), _sizes(right, b)
    # A dim that is 1 on one side is summed on the other.
    left = reduce(g, "ReduceSum", left, [a.index(n) for n in both if right_size[n] == 1 != left_size[n]], True)
    right = reduce(g, "ReduceSum", right, [b.index(n) for n in both if left_size[n] == 1 != right_size[n]], True)
    return contract(g, left, right, (a, b), result)


@aten
def inner(g: Builder, self: Value, other: Value) -> Value:
    """inner(Tensor self, Tensor other) -> Tensor

    The sums of products over the last dims; a scalar scales. ONNX MatMul (and Transpose), or Mul.
    """
    if 0 in (rank_of(self), rank_of(other)):
        return g.op("Mul", self, other)
    if rank_of(other) <= 2:
        other = g.op("Transpose", other, perm=[1, 0]) if rank_of(other) == 2 else other
        return g.op("MatMul", self, other)
    return tensordot(g, self, other, [-1], [-1])


@aten
def linalg_vecdot(g: Builder, x: Value, y: Value, dim: int = -1) -> Value:
    """linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor. ONNX Mul, ReduceSum."""
    product = g.op("Mul", *promoted(g, x, y))
    return reduce(g, "ReduceSum", product, [axis_of(product, dim)], False)


@aten
def kron(g: Builder, self: Value, other: Value) -> Value:
    """kron(Tensor self, Tensor other) -> Tensor

    Each element of self times all of other, side by side. ONNX Reshape, Mul, Reshape.
    """
    left, right = promoted(g, self, other)
    rank = max(rank_of(left), rank_of(right))
    a, b = ([*[1] * (rank - rank_of(v)), *shape_of(v)] for v in (left, right))
    left = reshape(g, left, [s for size in a for s in (size, 1)])
    product = g.op("Mul", left, reshape(g, right, [s for size in b for s in (1, size)]))
    return reshape(g, product, [x * y for x, y in zip(a, b, strict=True)])


@aten
def bilinear(g: Builder, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor

    input1 (*, a), input2 (*, b), weight (out, a, b) -> (*, out). ONNX MatMul, ReduceSum, Add.
    """
    out, a, b = shape_of(weight)
    joined = g.op("Transpose", reshape(g, g.op("Transpose", weight, perm=[0, 2, 1]), [out * b, a]), perm=[1, 0])
    middle = reshape(g, g.op("MatMul", input1, joined), [*shape_of(input1)[:-1], out, b])
    result = g.op("MatMul", middle, unsqueeze(g, input2, [rank_of(input2)]))
    result = g.op("Squeeze", result, g.const([rank_of(input2)]))
    return result if bias is None else g.op("Add", result, bias)


@aten
def cross(g: Builder, self: Value, other: Value, dim: int | None = None) -> Value:
    """cross(Tensor self, Tensor other, int? dim=None) -> Tensor

    Without dim the first of size 3. ONNX Gather (each operand turned both ways), Mul, Sub.
    """
    left, right = promoted(g, self, other)
    if dim is None:
        dim = next((i for i, s in enumerate(shape_of(left)) if s == 3), None)
        if dim is None:
            raise errors.UnsupportedError("cross of tensors without a dim that is 3 for sure")
    back = dim % max(rank_of(left), rank_of(right)) - max(rank_of(left), rank_of(right)) if dim >= 0 else dim

    def turned(x: Value, order: list[int]) -> Value:
        return g.op("Gather", x, g.const(order), axis=rank_of(x) + back)

    forward = g.op("Mul", turned(left, [1, 2, 0]), turned(right, [2, 0, 1]))
    return g.op("Sub", forward, g.op("Mul", turned(left, [2, 0, 1]), turned(right, [1, 2, 0])))


@aten
def linalg_cross(g: Builder, self: Value, other: Value, dim: int = -1) -> Value:
    """linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor. As cross."""
    return cross(g, self, other, dim)


