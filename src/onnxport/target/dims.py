"""Sizes that are known (int) or depend on named dynamic axes (`Dim`), and exact arithmetic on them.

A `Dim` is a polynomial with integer coefficients over atoms. An atom is a symbol (``batch``) or a function that
polynomials cannot say (``(h + 1) // 2``, ``h % 7``, ``max(h, w)``). Results that turn out constant come back as
plain `int`, so ``Size = int | Dim`` is the type to work with. No sympy here: this runs for each node of a graph.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping

INFINITY = math.inf


class Atom:
    """A symbol (`fn` is None) or a function of sizes, never less than `low` nor more than `high`.

    The bounds are part of what it is: another export may call another size by the same name, and results are cached.
    """

    __slots__ = ("args", "fn", "high", "low", "text")

    def __init__(self, text: str, low: float = 0, high: float = INFINITY, fn: str | None = None, args: tuple[Size, ...] = ()):
        self.text, self.low, self.high, self.fn, self.args = text, low, high, fn, args

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Atom)
            and self.text == other.text
            and self.low == other.low
            and self.high == other.high
            and self.fn == other.fn
            and self.args == other.args
        )

    def __hash__(self) -> int:
        return hash(self.text)

    def __lt__(self, other: Atom) -> bool:
        return self.text < other.text

    def __repr__(self) -> str:
        return self.text


Monomial = tuple[Atom, ...]


class Dim:
    """A size that is not a plain number. Immutable; equality is equality of the normal form."""

    __slots__ = ("_hash", "_text", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]):
        self.terms = terms
        self._hash = hash(terms)
        self._text: str | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self._hash == other._hash and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Size) -> Size:
        return _add(self, other)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return _mul(self, -1)

    def __sub__(self, other: Size) -> Size:
        return _add(self, _mul(other, -1))

    def __rsub__(self, other: Size) -> Size:
        return _add(_mul(self, -1), other)

    def __mul__(self, other: Size) -> Size:
        return _mul(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return mod(self, other)

    def __rmod__(self, other: Size) -> Size:
        return mod(other, self)

    def __bool__(self) -> bool:
        raise TypeError(f"the truth of the size {self} is not known; use dims.equal or dims.compare")

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text(_terms(rounded(self))) or "0"
        return self._text

    def __repr__(self) -> str:
        return f"Dim({self})"

    @property
    def atoms(self) -> set[Atom]:
        """The symbols and functions that its terms are products of."""
        return {atom for monomial, _ in self.terms for atom in monomial}

    @property
    def symbols(self) -> set[str]:
        """The names of all symbols in it, those inside functions too."""
        found: set[str] = set()
        for atom in self.atoms:
            if atom.fn is None:
                found.add(atom.text)
            else:
                for arg in atom.args:
                    if isinstance(arg, Dim):
                        found |= arg.symbols
        return found

    @property
    def symbol(self) -> Atom | None:
        """The one symbol that this size is, or None where it is anything more."""
        if len(self.terms) == 1:
            monomial, coefficient = self.terms[0]
            if coefficient == 1 and len(monomial) == 1 and monomial[0].fn is None:
                return monomial[0]
        return None


Size = int | Dim


def symbol(name: str, low: int = 0) -> Dim:
    """The size that is called `name`; never less than `low`."""
    return Dim((((Atom(name, low),), 1),))


def _text(terms: tuple[tuple[Monomial, int], ...]) -> str:
    parts = []
    for monomial, coefficient in terms:
        factors = [a.text for a in monomial]
        if not factors:
            parts.append(str(coefficient))
        elif coefficient == 1:
            parts.append("*".join(factors))
        elif coefficient == -1:
            parts.append("-" + "*".join(factors))
        else:
            parts.append("*".join([str(coefficient), *factors]))
    return " + ".join(parts).replace("+ -", "- ")


def _from_terms(terms: dict[Monomial, int]) -> Size:
    kept = [(m, c) for m, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    kept.sort(key=lambda item: (-len(item[0]), [(a.fn is not None, a.text) for a in item[0]]))  # names before functions: reads well
    return Dim(tuple(kept))


@functools.lru_cache(maxsize=65536)
def rounded(size: Size) -> Size:
    """The size with each x + (-x % k) written as k times x / k rounded up: what is padded to a multiple of a window.

    No part of the normal form: (x + x) + x % 2 has no such pair and x + (x + x % 2) has one, so `+` would not be associative.
    """
    for monomial, coefficient in _terms(size):
        if coefficient == 1 and len(monomial) == 1 and monomial[0].fn == "%":
            whole = _rounded_up(monomial[0], dict(_terms(size)))
            if whole is not None:
                return rounded(whole)
    return size


def _rounded_up(rest: Atom, terms: dict[Monomial, int]) -> Size | None:
    over, k = rest.args
    if not isinstance(k, int) or k <= 0 or not isinstance(over, Dim):
        return None
    start = sum(c for m, c in over.terms if not m)
    x: dict[Monomial, int] = {(): -start}
    for monomial, coefficient in over.terms:
        if monomial:
            x[monomial] = terms.get(monomial, 0)
            if (x[monomial] + coefficient) % k:
                return None
    others = {m: c for m, c in terms.items() if m not in x and m != (rest,)}
    return _add(_from_terms({**others, (): terms.get((), 0) + start}), _mul(ceildiv(_from_terms(x), k), k))


def _terms(size: Size) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, Dim):
        return size.terms
    return (((), int(size)),) if size else ()


@functools.lru_cache(maxsize=65536)
def _add(a: Size, b: Size) -> Size:
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return a + b
    terms = dict(_terms(a))
    for monomial, coefficient in _terms(b):
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _from_terms(terms)


@functools.lru_cache(maxsize=65536)
def _mul(a: Size, b: Size) -> Size:
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return a * b
    terms: dict[Monomial, int] = {}
    for m, c in _terms(a):
        for n, d in _terms(b):
            monomial = tuple(sorted(m + n)) if m and n else m or n
            terms[monomial] = terms.get(monomial, 0) + c * d
    return _from_terms(terms)


def _function(fn: str, a: Size, b: Size) -> Dim:
    low, high = _range_of(fn, a, b)
    text = f"{fn}({a}, {b})" if fn in ("max", "min") else f"({_left(a)} {fn} {_right(b)})"
    return Dim((((Atom(text, low, high, fn, (a, b)),), 1),))


def _left(size: Size) -> str:
    return f"({size})" if isinstance(size, Dim) and len(size.terms) > 1 else str(size)


def _right(size: Size) -> str:
    """`x // a*b` would read as `(x // a)*b`: only a number or a single atom stands without brackets."""
    if isinstance(size, int) or (len(size.terms) == 1 and size.terms[0][1] == 1 and len(size.terms[0][0]) == 1):
        return str(size)
    return f"({size})"


def _range_of(fn: str, a: Size, b: Size) -> tuple[float, float]:
    (al, ah), (bl, bh) = bounds(a), bounds(b)
    if fn == "max":
        return max(al, bl), max(ah, bh)
    if fn == "min":
        return min(al, bl), min(ah, bh)
    if fn == "%":
        return (0, min(bh - 1, ah if al >= 0 else INFINITY)) if bl >= 0 else (-INFINITY, INFINITY)
    if isinstance(b, int) and b > 0:
        return (al if abs(al) == INFINITY else al // b), (ah if abs(ah) == INFINITY else ah // b)
    if al >= 0 and bl >= 0:
        return 0, ah if ah == INFINITY else ah // max(bl, 1)
    return -INFINITY, INFINITY


@functools.lru_cache(maxsize=65536)
def bounds(size: Size) -> tuple[float, float]:
    """Numbers that `size` is never less and never more than."""
    if isinstance(size, int):
        return size, size
    return _low(size, _DEPTH), -_low(-size, _DEPTH)


_DEPTH = 3  # how many functions in one size are looked into to sharpen its bounds


@functools.lru_cache(maxsize=65536)
def _low(size: Size, depth: int) -> float:
    """A lower bound: from the bounds of the atoms, and where functions occur, from what these are functions of."""
    if isinstance(size, int):
        return size
    best = _interval_low(size)
    if best == -INFINITY and any(len(monomial) > 1 for monomial, _ in size.terms):
        best = _interval_low(_from_lows(size))
    if depth == 0:
        return best
    for monomial, coefficient in size.terms:
        atom = next((a for a in monomial if a.fn is not None), None)
        if atom is None:
            continue
        others = list(monomial)
        others.remove(atom)
        if any(a.low < 0 for a in others):
            continue
        factor: Size = coefficient
        for other in others:
            factor = factor * Dim((((other,), 1),))
        rest = size - factor * Dim((((atom,), 1),))
        for group in _edges(atom, below=coefficient > 0):
            best = max(best, min(_low_with(rest, factor, scale, bound, depth - 1) for scale, bound in group))
    return best


def _low_with(rest: Size, factor: Size, scale: int, bound: Size, depth: int) -> float:
    """A lower bound of rest + factor * atom, where factor * (scale * atom) is not less than factor * bound."""
    low = _low(rest * scale + factor * bound, depth)
    return low if abs(low) == INFINITY else -(-low // scale)


def _interval_low(size: Size) -> float:
    """The lower bound that the bounds of the atoms give when each is taken for itself. Whole numbers stay exact."""
    low: float = 0
    for monomial, coefficient in _terms(size):
        a: float = 1
        b: float = 1
        for atom in monomial:
            corners = [_times(x, y) for x in (a, b) for y in (atom.low, atom.high)]
            a, b = min(corners), max(corners)
        low += min(_times(a, coefficient), _times(b, coefficient))
    return low


def _from_lows(size: Dim) -> Size:
    """`size` over atoms that count from their lower bounds: h*w - h - w + 1 is t*u, surely not negative, where h and w are 1 or more."""
    total: Size = 0
    for monomial, coefficient in size.terms:
        value: Size = coefficient
        for atom in monomial:
            if atom.low in (0, -INFINITY):
                value = value * Dim((((atom,), 1),))
            else:
                value = value * (Dim((((Atom(f"{atom.text}'", 0, atom.high - atom.low),), 1),)) + int(atom.low))
        total = total + value
    return total


def _edges(atom: Atom, *, below: bool) -> list[list[tuple[int, Size]]]:
    """Groups of pairs (k, bound): in each group, for one of its pairs k * atom is never less (`below`) or never more than bound."""
    a, b = atom.args
    if atom.fn in ("max", "min"):
        either = (atom.fn == "max") == below  # max(a, b) is not less than a, and not less than b; one of the two it is
        return [[(1, a)], [(1, b)]] if either else [[(1, a), (1, b)]]
    if atom.fn == "//" and isinstance(b, int) and b > 0:
        return [[(b, a - (b - 1))]] if below else [[(b, a)]]
    if below or bounds(b)[0] < 0:
        return []
    whole: list[list[tuple[int, Size]]] = [[(1, a)]] if bounds(a)[0] >= 0 else []
    return whole if atom.fn == "//" else [*whole, [(1, b - 1)]]


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def _exact_quotient(a: Size, b: Size) -> Size | None:
    """a / b where that is a polynomial, by division by a single term or by equality up to a number."""
    divisor = _terms(b)
    if len(divisor) != 1:
        first_a, first_b = _terms(a)[:1], divisor[:1]
        if first_a and first_b and first_a[0][1] % first_b[0][1] == 0:
            candidate = _exact_quotient(_from_terms(dict(first_a)), _from_terms(dict(first_b)))
            if candidate is not None and _mul(candidate, b) == a:
                return candidate
        return None
    (monomial, coefficient) = divisor[0]
    result: dict[Monomial, int] = {}
    for m, c in _terms(a):
        rest = list(m)
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % coefficient:
            return None
        result[tuple(rest)] = c // coefficient
    return _from_terms(result)


@functools.lru_cache(maxsize=65536)
def floordiv(a: Size, b: Size) -> Size:
    """a // b, rounded down. `b` is taken to be non-zero."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    a = rounded(a)
    exact = _exact_quotient(a, b)
    if exact is not None:
        return exact
    if isinstance(b, int) and b > 0:
        whole = {m: c // b for m, c in _terms(a)}
        rest = _from_terms({m: c % b for m, c in _terms(a)})
        low, high = bounds(rest)
        if low >= 0 and high < b:
            return _from_terms(whole)
        nested = _nested_quotient(rest)
        if nested is not None:
            return _add(_from_terms(whole), floordiv(nested[0], nested[1] * b))
        return _add(_from_terms(whole), _function("//", rest, b))
    return _function("//", a, b)


def _nested_quotient(size: Size) -> tuple[Size, int] | None:
    """(x + c p, p) for the size (x // p) + c: dividing it by q is dividing x + c p by p q."""
    if not isinstance(size, Dim) or len(size.terms) > 2:
        return None
    (monomial, coefficient), *rest = size.terms
    if coefficient != 1 or len(monomial) != 1 or monomial[0].fn != "//" or any(m for m, _ in rest):
        return None
    inner, divisor = monomial[0].args
    if not isinstance(divisor, int) or divisor <= 0:
        return None
    return inner + sum(c for _, c in rest) * divisor, divisor


@functools.lru_cache(maxsize=65536)
def mod(a: Size, b: Size) -> Size:
    """a % b with the sign of b, as in Python."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if b == 1 or _exact_quotient(a, b) is not None:
        return 0
    if isinstance(b, int) and b > 0:
        a = _from_terms({m: c % b for m, c in _terms(_without_mods(a, b))})
        if isinstance(a, int):
            return a % b
    low, high = bounds(a)
    if low >= 0 and high < bounds(b)[0]:
        return a
    return _function("%", a, b)


def _without_mods(size: Size, divisor: int) -> Size:
    """A size with the same rest modulo `divisor`: x % (k divisor) in it is as good as x."""
    if not isinstance(size, Dim):
        return size
    total: Size = 0
    for monomial, coefficient in size.terms:
        value: Size = coefficient
        for atom in monomial:
            same = atom.fn == "%" and isinstance(atom.args[1], int) and atom.args[1] % divisor == 0
            value = value * (_without_mods(atom.args[0], divisor) if same else Dim((((atom,), 1),)))
        total = total + value
    return total


def ceildiv(a: Size, b: Size) -> Size:
    """a / b, rounded up."""
    return floordiv(a + (b - 1), b)


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes."""
    return _extreme("max", a, b)


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes."""
    return _extreme("min", a, b)


def is_capped(size: Size, other: Size) -> bool:
    """Whether `size` is the smaller one of `other` and a number above 1, as what a slice of a table gives."""
    if not isinstance(size, Dim) or len(size.terms) != 1:
        return False
    (monomial, factor), = size.terms
    if factor != 1 or len(monomial) != 1 or monomial[0].fn != "min":
        return False
    return other in monomial[0].args and any(isinstance(arg, int) and arg > 1 for arg in monomial[0].args)


@functools.lru_cache(maxsize=65536)
def _extreme(fn: str, a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b) if fn == "max" else min(a, b)
    low, high = bounds(a - b)
    if low >= 0:
        return a if fn == "max" else b
    if high <= 0:
        return b if fn == "max" else a
    first, second = sorted((a, b), key=str)
    return _function(fn, first, second)


def compare(fn: str, a: Size, b: Size) -> bool | None:
    """`a fn b` for ==, !=, <, <=, >, >=: True, False, or None where it depends on the sizes."""
    if isinstance(a, int) and isinstance(b, int):
        low: float = a - b
        high = low
    else:
        low, high = bounds(rounded(a - b))
    if fn in ("==", "!="):
        answer = True if low == high == 0 else False if low > 0 or high < 0 else None
        return answer if fn == "==" or answer is None else not answer
    if fn in ("<", ">="):
        answer = True if high < 0 else False if low >= 0 else None
        return answer if fn == "<" or answer is None else not answer
    answer = True if high <= 0 else False if low > 0 else None
    return answer if fn == "<=" or answer is None else not answer


def equal(a: Size, b: Size) -> bool:
    """Whether two sizes are surely the same."""
    return a is b or a == b or rounded(a - b) == 0


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes: the number of elements of a tensor."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def is_static(sizes: Iterable[Size]) -> bool:
    """Whether all sizes are plain numbers."""
    return all(isinstance(s, int) for s in sizes)


def evaluate(size: Size, known: Mapping[str, int]) -> int | None:
    """The number that `size` is when the symbols have the values of `known`; None where one is missing."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        value = coefficient
        for atom in monomial:
            if atom.fn is None:
                number = known.get(atom.text)
            else:
                a, b = (evaluate(arg, known) for arg in atom.args)
                number = None if a is None or b is None else _apply(atom.fn, a, b)
            if number is None:
                return None
            value *= number
        total += value
    return total


def _apply(fn: str, a: int, b: int) -> int | None:
    if fn == "max":
        return max(a, b)
    if fn == "min":
        return min(a, b)
    if b == 0:
        return None
    return a // b if fn == "//" else a % b


_CONDITION = re.compile(r"(.+?) (==|!=|<=|>=|<|>) (.+)")


def holds(condition: str, known: Mapping[str, int]) -> bool | None:
    """Whether a guard's condition is true where the symbols have these values; None where they do not tell."""
    parts = _CONDITION.fullmatch(condition)
    if parts is None:
        return None
    try:
        left, right = (evaluate(parse(side), known) for side in (parts[1], parts[3]))
    except (SyntaxError, ValueError):  # a label that is no name, say
        return None
    return None if left is None or right is None else compare(parts[2], left, right)


def substitute(size: Size, known: Mapping[str, Size]) -> Size:
    """`size` with symbols replaced by other sizes."""
    if isinstance(size, int):
        return size
    total: Size = 0
    for monomial, coefficient in size.terms:
        value: Size = coefficient
        for atom in monomial:
            if atom.fn is None:
                value = value * known.get(atom.text, Dim((((atom,), 1),)))
            else:
                a, b = (substitute(arg, known) for arg in atom.args)
                value = value * _FUNCTIONS[atom.fn](a, b)
        total = total + value
    return total


_FUNCTIONS: dict[str, Callable[[Size, Size], Size]] = {"max": maximum, "min": minimum, "//": floordiv, "%": mod}


def parse(text: str) -> Size:
    """A size from its text: numbers, names, + - * // %, and max, min, FloorDiv, Mod (as sympy prints them)."""
    return _parsed(ast.parse(text.strip(), mode="eval").body)


_CALLS: dict[str, Callable[..., Size]] = {
    "max": maximum, "Max": maximum, "min": minimum, "Min": minimum, "Mod": mod, "PythonMod": mod,
    "FloorDiv": floordiv, "CleanDiv": floordiv, "IntTrueDiv": floordiv, "CeilDiv": ceildiv, "CeilToInt": lambda a: a,
}
_OPERATORS: dict[type[ast.operator], Callable[[Size, Size], Size]] = {
    ast.Add: _add, ast.Sub: lambda a, b: _add(a, _mul(b, -1)), ast.Mult: _mul, ast.FloorDiv: floordiv, ast.Mod: mod,
}


def _parsed(node: ast.AST) -> Size:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _mul(_parsed(node.operand), -1)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and isinstance(node.right.value, int):
            return product([_parsed(node.left)] * node.right.value)
        rule = _OPERATORS.get(type(node.op))
        if rule is not None:
            return rule(_parsed(node.left), _parsed(node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        args = [_parsed(a) for a in node.args]
        if len(args) > 2 and node.func.id.lower() in ("max", "min"):
            return functools.reduce(_CALLS[node.func.id], args)
        return _CALLS[node.func.id](*args)
    raise ValueError(f"the size {ast.unparse(node)!r} cannot be read")
