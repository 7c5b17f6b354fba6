"""Verification: it passes what is right, tells what is wrong with numbers, and leaves everything as it was."""

from __future__ import annotations

import pathlib
from typing import Any

import onnx_ir as ir
import pytest
import torch

import onnxport
from onnxport import errors, save
from onnxport.lower.guards import Guard
from onnxport.program import ONNXProgram
from onnxport.runtime import RunError
from onnxport.target import dims
from onnxport.verify import Report, verify
from tests import handmade

MATRIX = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


class Linear(torch.nn.Module):
    """What `handmade.scaled(MATRIX)` computes."""

    def __init__(self, matrix: torch.Tensor = MATRIX):
        super().__init__()
        self.matrix = torch.nn.Parameter(matrix.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.matrix


def program(source: Any, *args: Any, graph: ir.Model | None = None, **fields: Any) -> ONNXProgram:
    return ONNXProgram(graph or handmade.scaled(MATRIX), source=source, args=args, **fields)


def unary(op: str, shape: list[int | str] | None = None, dtype: torch.dtype = torch.float32, opset: int = 17) -> ir.Model:
    x = handmade.tensor_value("x", dtype, ["N"] if shape is None else shape)
    return handmade.model([x], [handmade.node(op, [x], "y", like=x)], opset=opset)


def module(function: Any) -> torch.nn.Module:
    class Made(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    return Made()


def labels(report: Report) -> list[str]:
    return [case.label for case in report.cases]


def test_right_model_passes_at_every_size():
    report = program(Linear(), torch.randn(2, 4)).verify()
    assert labels(report) == ["example", "fresh values (seed 0)", "N=1", "N=3", "N=4"]
    assert report.passed
    assert not report.skipped
    assert report.cases[2].outputs[0].shape == (1, 3)
    assert report.cases[2].outputs[0].dtype == "float32"
    assert report.max_abs < 1e-5


def test_file_instead_of_program(tmp_path: pathlib.Path):
    path = tmp_path / "m.onnx"
    save.write(handmade.scaled(MATRIX), path, external_data=True, size_threshold=1)
    assert verify(path, Linear(), torch.randn(2, 4)).passed
    assert verify(str(path), Linear(), (), {"x": torch.randn(2, 4)}).passed
    with pytest.raises(errors.ArgumentError, match=r"no\.onnx"):
        verify(tmp_path / "no.onnx", Linear(), torch.randn(2, 4))


def test_wrong_weight_is_an_error_with_numbers():
    wrong = MATRIX.clone()
    wrong[1, 2] += 0.5
    with pytest.raises(errors.VerificationError, match=r"y float32\[2, 3\]: largest difference .* elements outside rtol=0.0001") as caught:
        program(Linear(wrong), torch.ones(2, 4)).verify()
    report: Report = caught.value.report  # type: ignore[attr-defined]
    assert report.cases[0].outputs[0].max_abs == pytest.approx(0.5, rel=1e-4)
    assert report.cases[0].outputs[0].max_rel > 0


def test_small_error_passes_with_a_larger_tolerance():
    net = program(Linear(MATRIX + 1e-3), torch.randn(2, 4))
    with pytest.raises(errors.VerificationError):
        net.verify()
    assert net.verify(rtol=0.1).passed
    assert net.verify(atol=1.0).passed


def test_error_that_only_fresh_values_show():
    with pytest.raises(errors.VerificationError, match="fresh values"):
        program(torch.nn.Identity(), torch.zeros(3), graph=unary("Relu")).verify()


def test_error_that_only_another_size_shows():
    def two_or_more(x: torch.Tensor) -> torch.Tensor:
        return x.relu() if x.shape[0] > 2 else -x

    with pytest.raises(errors.VerificationError) as caught:
        program(module(two_or_more), torch.rand(5), graph=unary("Relu")).verify()
    failed = [case.label for case in caught.value.report.cases if not case.passed]  # type: ignore[attr-defined]
    assert failed == ["N=1"]


def test_guard_excludes_what_the_file_does_not_promise():
    def two_or_more(x: torch.Tensor) -> torch.Tensor:
        return x.relu() if x.shape[0] > 2 else -x

    report = program(module(two_or_more), torch.rand(5), graph=unary("Relu"), guards=[Guard("N > 2", "net.py:3")]).verify()
    assert report.skipped == (("N=1", "outside the guard N > 2 (net.py:3)"),)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("N > 2", False), ("N >= 2", True), ("N*T == 10", True), ("max(N, T) // 2 != 2", False), ("N + M > 1", None), ("my-axis > 1", None),
        ("something else", None), ("T % 2 == 1", True),
    ],
)
def test_conditions(condition: str, expected: bool | None):
    assert dims.holds(condition, {"N": 2, "T": 5}) is expected


def test_guard_of_an_export():
    def two_or_more(x: torch.Tensor) -> torch.Tensor:
        return x.relu() if x.shape[0] > 2 else -x

    with pytest.warns(errors.GuardWarning, match="N > 2"):
        made = onnxport.export(module(two_or_more), (torch.randn(5),), input_names=["x"], dynamic_axes={"x": {0: "N"}})
    report = made.verify()
    assert [label for label, _ in report.skipped] == ["N=1"]


def test_sizes_that_the_model_refuses_are_named():
    def picky(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] % 2:
            raise ValueError("only even sizes")
        return x.relu()

    report = program(module(picky), torch.randn(4), graph=unary("Relu")).verify()
    assert labels(report) == ["example", "fresh values (seed 0)", "N=8"]
    assert [label for label, _ in report.skipped] == ["N=1", "N=5"]
    assert "only even sizes" in str(report)


def test_fixed_size_in_the_file_is_found():
    """The file says N and means 2: ONNX Runtime refuses the other sizes, and PyTorch does not."""
    x = handmade.tensor_value("x", torch.float32, ["N"])
    w = handmade.weight("w", torch.ones(2))
    net = program(module(lambda x: x + 1), torch.randn(2), graph=handmade.model([x], [handmade.node("Add", [x, w], "y", like=x)], [w]))
    with pytest.raises(errors.VerificationError, match="N=3: ONNX Runtime cannot run"):
        net.verify()


def test_axes_of_one_name_change_together():
    a, b = (handmade.tensor_value(n, torch.float32, ["N", "T"]) for n in "ab")
    seen = []

    def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        seen.append((tuple(a.shape), tuple(b.shape)))
        return a + b

    report = program(module(add), torch.randn(2, 5), torch.randn(2, 5),
                     graph=handmade.model([a, b], [handmade.node("Add", [a, b], "y", like=a)])).verify()
    assert labels(report)[2:] == ["N=1", "N=3", "N=4", "T=1", "T=7", "T=10", "N=3, T=7"]
    assert all(one == other for one, other in seen)


def test_dynamic_axes_may_be_given(tmp_path: pathlib.Path):
    path = tmp_path / "m.onnx"
    save.write(unary("Relu"), path)
    assert labels(verify(path, torch.nn.ReLU(), torch.randn(3), dynamic_axes={})) == ["example", "fresh values (seed 0)"]
    report = verify(path, torch.nn.ReLU(), torch.randn(3), dynamic_axes={"x": {-1: "length"}}, seeds=(1, 2))
    assert labels(report) == ["example", "fresh values (seed 1)", "fresh values (seed 2)", "length=1", "length=5", "length=6"]


def test_different_dtype_or_shape():
    with pytest.raises(errors.VerificationError, match=r"PyTorch's is float64\[3\]"):
        program(module(lambda x: x.relu().double()), torch.randn(3), graph=unary("Relu")).verify()
    with pytest.raises(errors.VerificationError, match=r"PyTorch's is float32\[1, 3\]"):
        program(module(lambda x: x.relu()[None]), torch.randn(3), graph=unary("Relu")).verify()
    with pytest.raises(errors.VerificationError, match="1 outputs, and the model returned 2"):
        program(module(lambda x: (x, x)), torch.randn(3), graph=unary("Relu")).verify()


def test_integers_must_be_equal():
    with pytest.raises(errors.VerificationError, match="of 3 elements differ"):
        program(module(lambda x: x + 1), torch.arange(3), graph=unary("Identity", dtype=torch.int64)).verify()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.bool, torch.uint8])
def test_dtypes(dtype: torch.dtype):
    example = (torch.rand(6) * 3).to(dtype)
    assert program(torch.nn.Identity(), example, graph=unary("Identity", dtype=dtype)).verify().passed


def test_fresh_integers_stay_in_range():
    table = torch.randn(7, 2)
    ids = torch.tensor([0, 6, 3])
    x = handmade.tensor_value("x", torch.int64, ["N"])
    w = handmade.weight("w", table)
    y = handmade.node("Gather", [w, x], "y")
    y.type, y.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(["N", 2])
    report = program(module(lambda x: table[x]), ids, graph=handmade.model([x], [y], [w])).verify(seeds=range(5))
    assert report.passed
    assert not report.skipped


def test_positive_example_gives_positive_values():
    report = program(module(torch.sqrt), torch.rand(6) + 0.5, graph=unary("Sqrt")).verify(seeds=range(3))
    assert all(torch.isfinite(torch.tensor(o.max_rel)) for case in report.cases for o in case.outputs)


def test_nan_and_infinity_are_equal_to_themselves():
    example = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])
    assert program(torch.nn.Identity(), example, graph=unary("Identity")).verify().passed
    with pytest.raises(errors.VerificationError):
        program(module(lambda x: x.nan_to_num()), example, graph=unary("Identity")).verify()


def test_random_outputs_are_not_compared():
    x = handmade.tensor_value("x", torch.float32, ["N"])
    y = handmade.node("RandomNormalLike", [x], "y", like=x)
    report = program(module(torch.randn_like), torch.randn(4), graph=handmade.model([x], [y])).verify()
    assert all(case.outputs[0].note.startswith("random") for case in report.cases)


def test_numbers_among_the_results_count_where_the_file_has_them():
    x = handmade.tensor_value("x", torch.float32, ["N"])
    size = handmade.node("Size", [x], "n")
    size.type, size.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([])
    graph = handmade.model([x], [handmade.node("Relu", [x], "y", like=x), size])
    assert program(module(lambda x: (x.relu(), x.shape[0])), torch.randn(3), graph=graph).verify().passed


def test_outputs_that_the_model_does_not_return():
    x = handmade.tensor_value("x", torch.float32, ["N"])
    graph = handmade.model([x], [handmade.node("Relu", [x], "y", like=x), handmade.node("Neg", [x], "state", like=x)])
    report = program(torch.nn.ReLU(), torch.randn(3), graph=graph).verify()
    assert report.cases[0].outputs[1].note.startswith("not compared")


def test_nothing_is_changed():
    class Messy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Dropout(0.5)
            self.register_buffer("count", torch.zeros(1))
            self.register_buffer("other", torch.zeros(1))
            self.train()
            self.inner.eval()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.mul_(2)
            self.count.add_(1)
            self.other = self.other + 1
            assert not self.training
            return self.inner(x).relu()

    net = Messy()
    other, example = net.other, torch.randn(3)
    kept = example.clone()
    x = handmade.tensor_value("x", torch.float32, ["N"])
    doubled = handmade.node("Add", [x, x], "d", like=x)
    state = torch.random.get_rng_state()
    assert program(net, example, graph=handmade.model([x], [handmade.node("Relu", [doubled], "y", like=x)])).verify().passed
    assert torch.equal(example, kept)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert net.training
    assert not net.inner.training
    assert net.count.item() == 0
    assert net.other is other
    assert example.grad_fn is None


def test_modes_are_put_back_when_the_model_raises():
    class Raises(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no")

    net = Raises()
    with pytest.raises(RuntimeError, match="no"):
        program(net, torch.randn(3), graph=unary("Relu")).verify()
    assert net.training


def test_training_mode_of_the_program():
    seen = []

    class Looks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(self.training)
            return x.relu()

    program(Looks().eval(), torch.randn(3), graph=unary("Relu"), training=2).verify()
    assert all(seen)


def test_arguments_that_do_not_fit():
    with pytest.raises(errors.ArgumentError, match="1 inputs"):
        program(module(lambda x, y: x), torch.randn(3), torch.randn(3), graph=unary("Relu")).verify()


def test_parameters_as_inputs_are_fed():
    x = handmade.tensor_value("x", torch.float32, ["N", 4])
    w = handmade.tensor_value("matrix", torch.float32, [4, 3])
    y = handmade.node("MatMul", [x, w], "y")
    y.type, y.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(["N", 3])
    assert program(Linear(), torch.randn(2, 4), graph=handmade.model([x, w], [y])).verify().passed


def test_nested_arguments():
    def both(data: dict[str, Any]) -> dict[str, Any]:
        return {"sum": data["a"] + data["b"][0]}

    a, b = (handmade.tensor_value(n, torch.float32, ["N"]) for n in "ab")
    graph = handmade.model([a, b], [handmade.node("Add", [a, b], "sum", like=a)])
    net = module(both)
    assert program(net, {"a": torch.randn(2), "b": [torch.randn(2), None]}, graph=graph).verify().passed


def test_file_that_does_not_load(tmp_path: pathlib.Path):
    (tmp_path / "m.onnx").write_bytes(b"nonsense")
    with pytest.raises(RunError, match="cannot load"):
        verify(tmp_path / "m.onnx", torch.nn.ReLU(), torch.randn(3))


def test_a_scripted_part() -> None:
    model = torch.nn.Sequential(torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))), torch.nn.ReLU()).eval()
    program = onnxport.export(model, torch.randn(3, 4), input_names=["x"], dynamic_axes={"x": [0]})
    assert program.verify().passed
