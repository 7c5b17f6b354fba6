"""Typed random scripts: text that TorchScript compiles, over tensors, numbers, lists, Optionals, branches and loops.

Every number is a small dyadic fraction, so that neither order of additions nor float32 turns a comparison. A vector ("V") is as
long as the input; a "W" is a vector of any length; "S" is a tensor of rank 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

TYPES = {"V": "Tensor", "W": "Tensor", "S": "Tensor", "M": "Tensor", "J": "Tensor", "I": "int", "F": "float", "B": "bool", "LI": "List[int]", "LV": "List[Tensor]",
         "LW": "List[Tensor]", "LF": "List[float]", "O": "Optional[Tensor]", "OI": "Optional[int]", "P": "Tuple[Tensor, int]", "T": "Tuple[Tensor, Tensor]", "D": "Dict[str, Tensor]"}
# What each expression of a type may be made of; {X} is an expression of that type, {x} a variable of it.
FORMS: dict[str, list[str]] = {
    "I": ["{i}", "{i}", "{#}", "{#}", "({I} + {I})", "({I} - {I})", "({I} * {I} % 7)", "({I} // 2)", "({I} // -3)", "({I} % 3)", "min({I}, {I})", "max({I}, {I})",
          "(-{I})", "len({li})", "len({lv})", "{V}.size(0)", "{w}.size(0)", "{w}.numel()", "int({S})", "({I} if {B} else {I})", "{w}.shape[0]", "abs({I})",
          "{li}[{I} % len({li})]", "{li}[0]", "{li}[-1]", "{p}[1]", "int({B})", "int({F})", "len({lw})", "sum({li})", "max({li})"],
    "F": ["{f}", "{f}", "0.5", "(-1.5)", "2.0", "float({S})", "float({I})", "({F} + {F})", "({F} * 0.5)", "({F} - {I})", "({I} / 2)", "({F} if {B} else {F})", "float({B})",
          "max({F}, {F})", "(-{F})", "float({S}.item())", "{lf}[0]", "{lf}[{I} % len({lf})]", "abs({F})"],
    "B": ["bool({S} > {F})", "({I} < {I})", "({I} == {I})", "({F} <= {F})", "({B} and {B})", "({B} or {B})", "(not {B})", "{b}", "bool(({v} > {F}).any())", "({I} >= {#})",
          "bool({S} < {S})", "({o} is None)", "({w}.size(0) > {#})", "({I} % 2 == 0)", "({I} != {I})", "(len({lv}) > 1)", "({oi} is not None)", "({I} in {li})", "True",
          "({B} == {B})"],
    "S": ["{s}", "{V}.sum()", "{v}.max()", "{w}.sum()", "{v}[{I} % {v}.size(0)]", "{v}[0]", "{v}[-1]", "({S} + {S})", "({S} - {F})", "torch.tensor({F})",
          "({S} * {I}).clamp(-16, 16)", "{M}.sum()", "({S} * 0.5)", "({S} if {B} else {S})", "{M}[0, 0]", "{t}[1]"],
    "V": ["{v}", "{v}", "x", "({V} + {V}).clamp(-64, 64)", "({V} - {S})", "({V} * {I}).clamp(-16, 16)", "({V} + {F})", "{V}.relu()", "(-{V})", "{V}.flip(0)", "torch.where({v} > {F}, {V}, {V})",
          "{lv}[{I} % len({lv})]", "{lv}[-1]", "torch.zeros_like({v})", "{v}.clone()", "({V} * 0.5)", "({V} if {B} else {V})", "{p}[0]", "{M}.sum(0)", "{M}[{I} % 2]",
          "{v}.masked_fill({v} > {F}, {F})", "h_moved({V}, {F})", "h_written({V})", "h_chosen({V}, {V}, {B})", "{t}[0]", "{d}['a']", "{d}['b']", "torch.stack({lv}).sum(0)", "({V} * ({v} > {F}))", "{J}.float()", "torch.full_like({v}, {F})", "torch.ones({v}.size(0))"],
    "W": ["{w}", "{v}", "{w}[{I}:]", "{w}[:{I}]", "{w}[{I}:{I}]", "torch.cat([{W}, {W}])[:9]", "torch.zeros({I} % 4)", "{w}[{w} > {F}]", "({w} + {S})", "{w}.flip(0)", "torch.cat([{V}, {W}])[:9]",
          "{w}[::2]", "torch.arange({I} % 4).float()", "torch.cat({lw})[:9]", "torch.stack({lv}).flatten()[:9]", "({W} if {B} else {W})", "{w}.clone()", "{lw}[0]", "torch.ones({I} % 3, dtype=torch.float32)"],
    "M": ["torch.stack([{V}, {V}])", "{m}", "({m} + {V})", "({m} * 0.5)", "{m}.flip(0)", "{m}.clone()", "({m} - {S})"],
    "J": ["{j}", "torch.arange({v}.size(0))", "({j} + {I})", "({j} * {I} % 5)", "({v} > {F}).long()", "({j} // 2)", "{j}.clone()", "torch.full([{v}.size(0)], {#})"],
    "LI": ["[{I}]", "[{I}, {I}]", "({li} + [{I}])", "[k * {#} for k in range(3)]", "[{I}] * 2", "[k + 1 for k in {li}]"],
    "LF": ["[{F}]", "[{F}, {F}]", "({lf} + [{F}])"],
    "LV": ["[{V}]", "[{V}, {V}]", "({lv} + [{V}])", "[q + {S} for q in {lv}]", "[x * k for k in range(2)]", "{lv}[:1]"],
    "LW": ["[{W}]", "[{W}, {W}]"],
    "P": ["({V}, {I})", "{p}", "({p} if {B} else ({V}, {I}))"],
    "T": ["({V}, {S})", "{t}", "h_pair({V}, {S})", "({t} if {B} else ({V}, {S}))"], "D": ["h_dict({V}, {V})", "{d}"],
    "O": ["{V}", "None"], "OI": ["{I}", "None"],
}
PLAIN = {"I": "n", "F": "0.25", "B": "flag", "S": "x[0]", "V": "x", "W": "x", "M": "torch.stack([x, x])", "J": "torch.arange(x.size(0))", "LI": "[n, 1]", "LF": "[0.5]",
         "LV": "[x]", "LW": "[x]", "P": "(x, n)", "T": "(x, x[0])", "D": "h_dict(x, x * 2)", "O": "x", "OI": "n"}


class Writer:
    """Writes one program."""

    def __init__(self, pick: Callable[[int], int]):
        self.pick = pick
        self.lines: list[str] = []
        self.indent = 1
        self.names: dict[str, list[str]] = {kind: [] for kind in TYPES}
        self.names["V"], self.names["I"], self.names["B"] = ["x"], ["n"], ["flag"]
        self.count = 0
        self.left = 5 + pick(12)
        self.loops = 0

    def one_of(self, items: Any) -> Any:
        return items[self.pick(len(items))]

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def new(self, kind: str) -> str:
        self.count += 1
        return f"{kind.lower()}{self.count}"

    # --- expressions ------------------------------------------------------------------------------------------------------------

    def expr(self, kind: str, depth: int = 2) -> str:
        forms = FORMS[kind]
        if depth <= 0:
            forms = [f for f in forms if not any(f"{{{k}}}" in f for k in FORMS)] or [PLAIN[kind]]
        return self.filled(self.one_of(forms), depth)

    def filled(self, form: str, depth: int) -> str:
        out, position = "", 0
        while True:
            start = form.find("{", position)
            if start < 0:
                return out + form[position:]
            end = form.index("}", start)
            out, name, position = out + form[position:start], form[start + 1 : end], end + 1
            out += self.number() if name == "#" else self.expr(name, depth - 1) if name.isupper() else self.variable(name.upper())

    def number(self) -> str:
        found = self.pick(9) - 2
        return str(found) if found >= 0 else f"({found})"

    def variable(self, kind: str) -> str:
        """A variable of this type; a new one where there is none."""
        if self.names[kind]:
            return self.one_of(self.names[kind])
        return f"({PLAIN[kind]})" if kind not in ("O", "OI") else f"h_{kind}(x, n, flag)"

    # --- statements -------------------------------------------------------------------------------------------------------------

    def block(self, most: int, first: str = "") -> None:
        self.indent += 1
        kept = {kind: list(names) for kind, names in self.names.items()}
        start = len(self.lines)
        if first:
            self.emit(first)
        for _ in range(1 + self.pick(most)):
            self.statement()
        if len(self.lines) == start:
            self.emit("pass")
        self.names = kept
        self.indent -= 1

    def statement(self) -> None:
        if self.left <= 0:
            return
        self.left -= 1
        kinds: list[Any] = [self.assign] * 4 + [self.reassign] * 5 + [self.change] * 3
        if self.indent < 5:
            kinds += [self.branch] * 4 + [self.loop] * 4 + [self.refine]
        kinds += [self.say]
        kinds += [self.jump, self.new_of_branches] if self.indent > 1 else [self.new_of_branches]
        self.one_of(kinds)()

    def assign(self) -> None:
        kind = self.one_of(list(TYPES))
        value = self.expr(kind)
        name = self.new(kind)
        self.emit(f"{name}: {TYPES[kind]} = {value}" if kind in ("O", "OI", "LV", "LI", "LF") else f"{name} = {value}")
        self.names[kind].append(name)

    def reassign(self) -> None:
        known = [(kind, name) for kind, names in self.names.items() for name in names if name not in self.frozen()]
        if not known:
            return self.assign()
        kind, name = self.one_of(known)
        if kind in ("I", "F") and self.pick(3) == 0:
            return self.emit(f"{name} {self.one_of(['+=', '-='])} {self.expr(kind)}")
        return self.emit(f"{name} = {self.expr(kind)}")

    def frozen(self) -> set[str]:
        return {"x"}

    def change(self) -> None:
        """Something is written into."""
        known = [(kind, name) for kind, names in self.names.items() for name in names if kind in CHANGES and name != "x"]
        if not known:
            return self.assign()
        kind, name = self.one_of(known)
        form = self.one_of(CHANGES[kind])
        if self.loops > 1 and kind in ("LI", "LF", "LV", "LW") and form[1] != "[":
            form = "@[0] = " + CHANGES[kind][0].partition("(")[2][:-1]  # lists that grow in nested loops grow without end
        return self.emit(self.filled(form, 2).replace("@", name))

    def branch(self) -> None:
        self.emit(f"if {self.expr('B')}:")
        self.block(3)
        if self.pick(3) == 0:
            self.emit(f"elif {self.expr('B')}:")
            self.block(2)
        if self.pick(2):
            self.emit("else:")
            self.block(3)

    def new_of_branches(self) -> None:
        kind = self.one_of(["V", "I", "F", "B", "S", "W", "LI", "LV", "P"])
        condition, name = self.expr("B"), self.new(kind)
        self.emit(f"if {condition}:")
        self.block(1, f"{name} = {self.expr(kind)}")
        self.emit("else:")
        self.block(1, f"{name} = {self.expr(kind)}")
        self.names[kind].append(name)

    def refine(self) -> None:
        kind = self.one_of(["O", "OI"])
        name = self.one_of(self.names[kind]) if self.names[kind] else None
        if name is None:
            return self.assign()
        inner = "V" if kind == "O" else "I"
        target = self.one_of([n for n in self.names[inner] if n != "x"] or ["n"])
        self.emit(f"if {name} is not None:")
        value = f"{name} + {self.expr(inner)}"
        self.block(1, f"{target} = {value}" if target != "n" or inner == "I" else "pass")
        return None

    def loop(self) -> None:
        before = {kind: list(names) for kind, names in self.names.items()}
        form = self.one_of(["range({I} % 4)", "range({I} % 4)", "range(3)", "range({I} % 3, {I} % 7, 2)", "range({I} % 6, 0, -1)", "{v}", "{lv}", "{li}", "{lf}",
                            "enumerate({lv})", "zip({lv}, {li})", "enumerate({v})", "while", "while"])
        self.loops += 1
        first = ""
        if form == "while":
            name = self.new("I")
            self.emit(f"{name} = 0")
            self.emit(f"while {name} < {2 + self.pick(3)} and {self.expr('B')}:" if self.pick(3) else f"while {name} < {self.expr('I')} % 4:")
            first = f"{name} += 1"
        else:
            over = self.filled(form, 2)
            targets = {"r": ["I"], "{v": ["S"], "{lv": ["V"], "{li": ["I"], "{lf": ["F"], "enumerate({lv})": ["I", "V"], "zip({lv}, {li})": ["V", "I"],
                       "enumerate({v})": ["I", "S"]}
            kinds = targets.get(form) or targets.get(form[:-1]) or targets["r"]
            names = [self.new(kind) for kind in kinds]
            for kind, name in zip(kinds, names, strict=True):
                self.names[kind].append(name)
            self.emit(f"for {', '.join(names)} in {over}:")
        self.block(4, first)
        self.loops -= 1
        self.names = before

    def say(self) -> None:
        """Texts, and a check that always holds."""
        self.count += 1
        form = self.one_of(["u@ = 'n is ' + str({I})", "u@ = 'x has {{}} of {{}}'.format({w}.size(0), {#})", "assert {v}.size(0) > 0, 'x is empty'",
                            "if {v}.size(0) == 0:\n    raise ValueError('x is empty')"])
        text = self.filled(form.replace("{{}}", "<>"), 1).replace("@", str(self.count)).replace("<>", "{}")
        for line in text.split("\n"):
            self.emit(line)

    def jump(self) -> None:
        kinds = ["return"] + (["break", "break", "continue", "continue"] if self.loops else [])
        kind = self.one_of(kinds)
        self.emit(f"if {self.expr('B')}:")
        self.indent += 1
        self.emit(self.result() if kind == "return" else kind)
        self.indent -= 1

    def result(self) -> str:
        """One value of each type that outlives the blocks."""
        parts = [self.expr("V", 1), self.expr("W", 0), self.expr("S", 1), self.expr("I", 0), self.expr("F", 0), self.expr("B", 0),
                 f"torch.tensor({self.variable('LI')})", f"torch.stack({self.variable('LV')})", self.expr("J", 0), f"torch.cat({self.variable('LW')})"]
        return "return (" + ", ".join(parts) + ")"

    def program(self) -> str:
        for kind in ("V", "I", "LI", "LV", "O", "W"):
            if self.pick(3):
                name = self.new(kind)
                value = self.expr(kind, 1)
                self.emit(f"{name}: {TYPES[kind]} = {value}")
                self.names[kind].append(name)
        while self.left > 0:
            self.statement()
        self.emit(self.result())
        return HELPERS + "def program(x: Tensor, n: int, flag: bool):\n" + "\n".join(self.lines) + "\n"


# An operand that is a part of what is written is copied first: PyTorch's own result depends on the order in which it computes.
CHANGES = {
    "V": ["@ += {V}", "@.add_({F})", "@[{I} % @.size(0)] = {S}", "@[0] = {F}", "@[{I}:{I}] = {F}", "@.mul_(0.5)", "@[{I} % @.size(0)] += {I}", "@[1:] -= {F}", "@.zero_()",
          "@[@ > {F}] = {F}", "@.copy_({V})"],
    "W": ["@ *= 0.5", "@.zero_()", "@[{I}:] = {F}", "@ += {S} * 1"],
    "M": ["@[0] = {V}", "@[:, 0] = {F}", "@ += {V} * 1", "@[{I} % 2, 0] = {S}"],
    "J": ["@ += {I}", "@[0] = {I}", "@.zero_()"],
    "LI": ["@.append({I})", "@.append({I})", "@.extend([{I}, {I}])", "@[0] = {I}", "@.insert(0, {I})", "@[{I} % len(@)] = {I}", "@ += [{I}]", "@.reverse()"],
    "LF": ["@.append({F})", "@[0] = {F}"],
    "LV": ["@.append({V})", "@.append({V})", "@.extend([{V}, {V}])", "@[0] = {V}", "@.insert(0, {V})", "@[{I} % len(@)] = {V}", "@ += [{V}]", "@.reverse()"],
    "LW": ["@.append({W})", "@[0] = {W}"],
    "D": ["@['a'] = {V}", "@['b'] += {F}", "@['b'] = @['a']"],
    "T": ["@[0].add_({F})", "@[0][0] = {S}"],
}
HELPERS = """
def h_O(x: Tensor, n: int, flag: bool) -> Optional[Tensor]:
    return x if flag else None

def h_moved(v: Tensor, f: float) -> Tensor:
    w = v + f
    w += f
    return w

def h_written(v: Tensor) -> Tensor:
    w = v.clone()
    for i in range(w.size(0)):
        w[i] = w[i] * 0.5
    return w

def h_chosen(v: Tensor, w: Tensor, b: bool) -> Tensor:
    if b:
        return v
    return w

def h_pair(v: Tensor, s: Tensor) -> Tuple[Tensor, Tensor]:
    return v, s

def h_dict(v: Tensor, w: Tensor) -> Dict[str, Tensor]:
    return {"a": v, "b": w}

def h_OI(x: Tensor, n: int, flag: bool) -> Optional[int]:
    return n if flag else None

"""


@st.composite
def programs(draw: Any) -> str:
    return Writer(lambda count: draw(st.integers(0, count - 1))).program()
