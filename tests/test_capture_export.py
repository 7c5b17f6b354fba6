"""torch.export as a capture: the same files as by a trace, and one language for dynamic axes."""

from __future__ import annotations

import importlib
import io
import pathlib
import warnings
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch.export import Dim

import onnxport
from onnxport import errors
from tests.ops.harness import TRACED_ONLY, Case, check

nn = torch.nn
BOTH = pytest.mark.parametrize("capture", ["trace", "export"])


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Net(nn.Module):
    """A bit of everything: a literal, an attribute, writes through views, nested outputs with None and numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.plain = torch.ones(4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Mapping[str, Any]:
        z = self.linear(x) + self.plain + torch.tensor([1.0, 2.0, 3.0, 4.0])
        left, _ = torch.chunk(z, 2, 1)
        z = z.clone()
        z[:, 0] = 0
        return {"a": z.reshape(x.shape[0] * 2, -1), "b": [y[: x.shape[0]], None, 3, left]}


def net() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Net().eval(), (torch.rand(3, 4), torch.rand(7, 2))


def export(model: Any, args: Any = (), **options: Any) -> onnxport.ONNXProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.GuardWarning)
        return onnxport.export(model, args, **options)


def shapes(program: onnxport.ONNXProgram) -> list[list[str]]:
    """Shapes of inputs and outputs as text."""
    return [[str(size) for size in value.shape or ()] for value in [*program.model.graph.inputs, *program.model.graph.outputs]]


def agree(program: onnxport.ONNXProgram, model: Any, *args: torch.Tensor) -> None:
    """Runs other arguments through both."""
    with torch.no_grad():
        wanted, _ = onnxport.structure.flatten(model(*args), numbers=True)
    for got, want in zip(program(*args), wanted, strict=True):
        torch.testing.assert_close(got, torch.as_tensor(want.value), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dynamic", "expected"), [
    (({0: Dim("n")}, {0: 2 * Dim("n") + 1}), ["n", "2*n + 1"]),
    ({"x": {0: Dim("n")}, "y": {0: 2 * Dim("n") + 1}}, ["n", "2*n + 1"]),
    ((("n", None), ("2*n+1", None)), ["n", "2*n + 1"]),
    ([{0: "rows"}, None], ["rows", "7"]),
    (({0: Dim.DYNAMIC, 1: Dim.STATIC}, {0: Dim.AUTO}), ["x_dynamic_axes_1", "y_dynamic_axes_1"]),
], ids=["tuple", "dict", "strings", "list", "hints"])
@BOTH
def test_dynamic_shapes_in_all_forms(capture: str, dynamic: Any, expected: list[str]) -> None:
    model, args = net()
    program = export(model, args, capture=capture, dynamic_shapes=dynamic)
    assert [shape[0] for shape in shapes(program)[:2]] == expected
    assert program.output_names == ["a", "b.0", "b.2", "b.3"]
    agree(program, model, *args)
    if expected[1] != "7":
        agree(program, model, torch.rand(5, 4), torch.rand(11, 2))


@BOTH
def test_dynamic_axes(capture: str) -> None:
    model, args = net()
    program = export(model, args, capture=capture, dynamic_axes={"x": {0: "batch"}, "y": [0], "a": {0: "both"}})
    assert shapes(program)[:3] == [["batch", "4"], ["y_dynamic_axes_1", "2"], ["both", "2"]]
    agree(program, model, torch.rand(1, 4), torch.rand(9, 2))


@BOTH
def test_derived_sizes_are_known_inside(capture: str) -> None:
    """2*n + 1 rows cut to n rows are n rows: no size has to be computed at run time."""
    model, args = net()
    n = Dim("n")
    program = export(model, args, capture=capture, dynamic_shapes=({0: n}, {0: 2 * n + 1}))
    assert shapes(program)[2:] == [["2*n", "2"], ["n", "2"], [], ["n", "2"]]
    report = program.verify()
    assert report.passed
    assert any(case.label.startswith("n=") for case in report.cases)


@BOTH
def test_an_example_of_size_one_is_no_fact(capture: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)).eval()
    program = export(model, (torch.rand(1, 3, 8, 8),), capture=capture, dynamic_shapes=({0: Dim("batch")},))
    assert not program.guards
    agree(program, model, torch.rand(5, 3, 8, 8))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batch of each example that torch.export is asked at."""
    real, batches = torch.export.export, []

    def spy(module: Any, args: Any, **options: Any) -> Any:
        batches.append(int(args[0].shape[0]))
        return real(module, args, **options)

    monkeypatch.setattr(torch.export, "export", spy)
    return batches


def test_attention_over_a_batch_of_one_is_captured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a batch of 1 torch.export would make a fact, and what it asks for the layout of memory (`contiguous`) is no guard."""
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    model = Function(lambda x: layer(x, x, x, need_weights=False)[0])
    batches = counted(monkeypatch)
    program = export(model, (torch.rand(1, 5, 8),), capture="export", input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    assert batches == [2]
    assert not program.guards
    for batch in (1, 4):
        agree(program, model, torch.rand(batch, 5, 8))


BRANCHES = {">": lambda x: x * 2 if x.shape[0] > 1 else x, ">=": lambda x: x * 2 if x.shape[0] >= 2 else x,
            "!=": lambda x: x * 2 if x.shape[0] != 1 else x,
            "after contiguous": lambda x: x.t().contiguous() * 2 if x.shape[0] > 1 else x.t().contiguous()}


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_way_for_a_batch_of_one_is_a_guard(branch: str) -> None:
    """Of every example, also 2: torch.export itself takes for granted that no size is 0 or 1."""
    for size, conditions in ((1, {"n <= 1"}), (2, {"n >= 2", "n != 1"}), (4, {"n >= 2", "n != 1"})):
        program = export(Function(BRANCHES[branch]), (torch.rand(size, 3),), capture="export", input_names=["x"], dynamic_axes={"x": {0: "n"}})
        assert len(program.guards) == 1
        assert program.guards[0].condition in conditions
        assert __file__ in program.guards[0].source
        agree(program, Function(BRANCHES[branch]), torch.rand(size, 3))


@BOTH
def test_ways_that_give_the_same_numbers_are_no_guard(capture: str) -> None:
    """The example of 1 is seen to come out right of the way that others take."""
    model = Function(lambda x: x[0][None] + 1 if x.shape[0] == 1 else x + 1)
    program = export(model, (torch.rand(1, 3),), capture=capture, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert not program.guards
    for size in (1, 5):
        agree(program, model, torch.rand(size, 3))


@BOTH
def test_nested_arguments(capture: str) -> None:
    class Nested(nn.Module):
        def forward(self, x: torch.Tensor, past: list[dict[str, torch.Tensor]], flag: bool = True, mask: Any = None) -> Any:
            return [torch.cat([p["key"], x], 1) for p in past], (x if flag else None), mask

    past = [{"key": torch.rand(2, 3)}, {"key": torch.rand(2, 3)}]
    program = export(Nested(), (torch.rand(2, 1), past), capture=capture,
                     dynamic_shapes={"x": {0: "b"}, "past": [{"key": {0: "b", 1: "p"}}, {"key": {0: "b", 1: "p"}}]})
    assert program.input_names == ["x", "past.0.key", "past.1.key"]
    assert shapes(program)[3:5] == [["b", "p + 1"]] * 2
    agree(program, Nested(), torch.rand(3, 1), [{"key": torch.rand(3, 0)}, {"key": torch.rand(3, 0)}])


@BOTH
def test_weights_keep_names_and_order(capture: str) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(5, 4)
            self.head = nn.Linear(4, 5, bias=False)
            self.head.weight = self.embed.weight
            self.register_buffer("scale", torch.rand(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(x)) * self.scale

    model = Tied()
    program = export(model, (torch.tensor([1, 2]),), capture=capture, export_params=False)
    assert [v.name for v in program.model.graph.inputs] == ["x", *dict(model.named_buffers()), *dict(model.named_parameters())]
    agree(export(model, (torch.tensor([1, 2]),), capture=capture), model, torch.tensor([3, 4]))


@pytest.mark.parametrize("assign", [False, True], ids=["in place", "assigned"])
@BOTH
def test_buffers_that_change(capture: str, assign: bool) -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if assign:
                self.seen = self.seen + x
            else:
                self.seen.add_(x)
            return x * self.seen

    model = Counts()
    with pytest.warns(errors.MutationWarning, match="seen"):
        onnxport.export(model, (torch.ones(3),), capture=capture)
    program = export(model, (torch.ones(3),), capture=capture, mutations="outputs")
    assert program.output_names[1] == "seen_updated"
    assert model.seen.tolist() == [0, 0, 0]
    assert program.session.run({"x": torch.ones(3)})[1].tolist() == [1, 1, 1]


@BOTH
def test_branches_on_sizes_are_guards(capture: str) -> None:
    model = Function(lambda x: x * 2 if x.shape[0] > 4 else x)
    program = export(model, (torch.rand(6),), capture=capture, dynamic_shapes=(({0: "n"},),))
    assert len(program.guards) == 1
    assert program.guards[0].condition in ("n > 4", "n >= 5")
    with pytest.raises(errors.GuardError, match="n >"):
        export(model, (torch.rand(6),), capture=capture, dynamic_shapes=(({0: "n"},),), strict=True)
    within = export(model, (torch.rand(6),), capture=capture, dynamic_shapes=(({0: Dim("n", min=5)},),), strict=True)
    assert not within.guards


def test_what_torch_export_specialises_is_refused_by_name() -> None:
    with pytest.raises(errors.CaptureError, match=r"(?s)torch.export refuses.*of 4 for dimension features\.shape\[1\]"):
        export(nn.Linear(4, 2), (torch.rand(3, 4),), capture="export", input_names=["features"], dynamic_axes={"features": {1: "f"}})


def test_what_torch_export_decided_over_sizes_has_the_users_line() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 4:
            x = x * 2
        if x.shape[1] != 3:
            x = x + 1
        return x + y

    args = (torch.rand(5, 4), torch.rand(5, 4))
    program = export(Function(forward), args, capture="export", input_names=["x", "y"], dynamic_axes={"x": {0: "a", 1: "b"}, "y": {0: "c", 1: "d"}})
    first = forward.__code__.co_firstlineno
    assert {guard.condition: int(guard.source.rpartition(":")[2]) - first for guard in program.guards} == {
        "a >= 5": 1, "b != 3": 3, "a == c": 5, "b == d": 5}
    assert all(__file__ in guard.source for guard in program.guards)


@BOTH
def test_a_slice_of_a_table_broadcasts_to_the_size_that_it_was_cut_to(capture: str) -> None:
    """n and min(n, 16) are one size where they broadcast; no other name stands for it, and no node computes it."""
    model = Function(lambda x, table: (x + table[:, : x.shape[1]]).reshape(x.shape[0], x.shape[1], 2, -1))
    table = torch.rand(1, 16, 4)
    program = export(Function(lambda x: model(x, table)), (torch.rand(2, 5, 4),), capture=capture, input_names=["x"],
                     dynamic_axes={"x": {0: "batch", 1: "time"}})
    assert shapes(program)[1] == ["batch", "time", "2", "2"]
    agree(program, Function(lambda x: model(x, table)), torch.rand(3, 9, 4))
    agree(program, Function(lambda x: model(x, table)), torch.rand(3, 1, 4))


def test_a_misspelt_input_is_named_in_the_refusal() -> None:
    args = (torch.rand(5, 1, 3), torch.rand(1, 1, 4))
    with pytest.raises(errors.CaptureError, match="dynamic_axes names 'hiden', and the input is 'hidden'"):
        export(nn.GRU(3, 4), args, capture="export", input_names=["x", "hidden"], dynamic_axes={"x": {1: "n"}, "hiden": {1: "n"}})


def test_recurrent_layers_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onnxport.export(nn.LSTM(4, 3), (torch.rand(5, 2, 4),), capture="export")


def test_an_axis_that_was_fixed_is_refused_with_the_line() -> None:
    model = Function(lambda x: torch.tril_indices(x.shape[0], 3))
    with pytest.raises(errors.CaptureError, match=r"(?s)static shape of 5 for dimension x.*test_capture_export.py:\d+ decides over axis 0 of x"):
        export(model, (torch.rand(5, 4),), capture="export", input_names=["x"], dynamic_axes={"x": [0]})


@pytest.mark.parametrize("layer", [nn.LSTM(4, 3, bias=False), nn.GRU(4, 3, 2, bidirectional=True), nn.LSTM(4, 3, proj_size=2).double()],
                         ids=["lstm", "gru", "projected"])
def test_recurrent_layers_of_any_length(layer: nn.Module) -> None:
    """PyTorch unrolls these at the example's length, and torch.export alone would fix it."""
    dtype = next(layer.parameters()).dtype
    model = Function(lambda x: layer(x)[0])
    program = export(model, (torch.rand(5, 2, 4, dtype=dtype),), capture="export", input_names=["x"], dynamic_axes={"x": {0: "time", 1: "batch"}})
    assert shapes(program)[0] == ["time", "batch", "4"]
    agree(program, model, torch.rand(7, 3, 4, dtype=dtype))


def test_torch_exports_refusals_keep_their_words() -> None:
    model = Function(lambda x: x + 1 if x.sum() > 0 else x)
    with pytest.raises(errors.CaptureError, match="torch.export refuses the model.*data-dependent"):
        export(model, (torch.rand(3),), capture="export")


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs(inference: bool, strict: bool) -> None:
    model, args = net()
    n = Dim("n")
    program = torch.export.export(model, args, dynamic_shapes=({0: n}, {0: 2 * n + 1}), strict=strict)
    if inference:
        program = program.run_decompositions({})
    exported = export(program)
    assert exported.input_names == ["x", "y"]
    assert shapes(exported)[1][0].startswith("2*")
    agree(exported, model, torch.rand(5, 4), torch.rand(11, 2))
    named = export(program, dynamic_shapes=({0: "rows"}, None))
    assert shapes(named)[:3] == [["rows", "4"], ["2*rows + 1", "2"], ["2*rows", "2"]]


class Rows(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum(1) + y


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_the_dims_of_an_exported_program_keep_their_names_and_ranges(inference: bool, strict: bool) -> None:
    batch = Dim("batch", min=3, max=64)
    program = torch.export.export(Rows(), (torch.rand(4, 5), torch.rand(4)), dynamic_shapes=({0: batch, 1: Dim("time")}, {0: batch}), strict=strict)
    made = onnxport.export(program.run_decompositions({}) if inference else program, (), strict=True)  # their ranges are no guards
    assert shapes(made) == [["batch", "time"], ["batch"], ["batch"]]
    agree(made, Rows(), torch.rand(7, 2), torch.rand(7))


def test_dims_that_a_file_has_forgotten_are_named_after_the_input() -> None:
    batch, file = Dim("batch", min=3), io.BytesIO()
    torch.export.save(torch.export.export(Rows(), (torch.rand(4, 5), torch.rand(4)), dynamic_shapes=({0: batch}, {0: batch})), file)
    file.seek(0)
    made = export(torch.export.load(file))
    assert shapes(made) == [["x_dynamic_axes_1", "5"], ["x_dynamic_axes_1"], ["x_dynamic_axes_1"]]
    assert [guard.condition for guard in made.guards] == ["x_dynamic_axes_1 >= 3"]  # whether its Dim said so is not known


def test_files_of_exported_programs(tmp_path: Any) -> None:
    model, args = net()
    torch.export.save(torch.export.export(model, args), tmp_path / "model.pt2")
    target = io.BytesIO()
    agree(export(tmp_path / "model.pt2", f=target), model, *args)
    assert target.getvalue()
    with pytest.raises(errors.ArgumentError, match="does not exist"):
        export(tmp_path / "other.pt2")


def test_unknown_sizes_of_the_data() -> None:
    model = Function(lambda x: (x.nonzero(), x[x > 0.5] * 2))
    program = export(model, (torch.rand(6),), capture="export", dynamic_shapes=(({0: "n"},),))
    agree(program, model, torch.rand(9))


def test_modes_inside_are_inlined() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = x * 2
        return y + x

    program = torch.export.export(Function(forward), (torch.rand(3),))
    agree(export(program), Function(forward), torch.rand(3))


@pytest.mark.parametrize(("shapes_", "match"), [
    ({"z": {0: "n"}}, "'z'"), (({0: "n", 5: "m"}, None), "axis 5"), (({0: 1.5}, None), "1.5"), (3, "dict by argument name"),
    ((("n",), None), "1 entries"),
])
def test_wrong_dynamic_shapes_are_named(shapes_: Any, match: str) -> None:
    model, args = net()
    with pytest.raises(errors.ArgumentError, match=match):
        export(model, args, dynamic_shapes=shapes_)


def test_two_languages_at_once_are_refused() -> None:
    model, args = net()
    with pytest.raises(errors.ArgumentError, match="dynamic_axes names the input 'x'"):
        export(model, args, dynamic_axes={"x": {0: "n"}}, dynamic_shapes=({0: "n"}, None))
    with pytest.raises(errors.ArgumentError, match="capture='onnx'"):
        export(model, args, capture="onnx")


# ---------------------------------------------------------------------- the same tables and models as through a trace

def tables() -> dict[str, list[Case]]:
    """The rows of every operator table, by the table's module."""
    found: dict[str, list[Case]] = {}
    for path in sorted(pathlib.Path(__file__).parent.glob("ops/test_*.py")):
        lists = [table for table in vars(importlib.import_module(f"tests.ops.{path.stem}")).values() if isinstance(table, list)]
        cases = {case.id: case for table in lists for case in table if isinstance(case, Case)}
        found[path.stem.removeprefix("test_")] = list(cases.values())
    return found


def rows() -> list[Any]:
    """Every row at one opset, the dynamic file alone where there is one; `ONNXPORT_TEST_CAPTURE=export pytest tests/ops` takes all opsets."""
    return [pytest.param(case, id=f"{name}-{case.id}") for name, cases in tables().items() for case in cases if 18 in case.opsets]


@pytest.mark.parametrize("case", rows())
def test_operators(case: Case) -> None:
    check(case, 18, "export", both=False)


def test_few_rows_need_a_trace() -> None:
    known = {case.id for cases in tables().values() for case in cases}
    assert set(TRACED_ONLY) <= known
    assert len(TRACED_ONLY) < 20


@pytest.mark.parametrize(("name", "variant"), [("super_resolution", "free"), ("vit_small", "batch"), ("gpt2_sdpa", "free"), ("bert_eager", "free")])
def test_models(name: str, variant: str) -> None:
    pytest.importorskip("transformers")
    models, checking = importlib.import_module("tests.zoo.models"), importlib.import_module("tests.zoo.check")
    torch.manual_seed(0)
    model = models.MODELS[name]()
    axes, inputs = checking.variants(model)[variant]
    difference, _ = checking.run(model, 18, axes, inputs, "export")
    assert difference <= checking.TOLERANCE
