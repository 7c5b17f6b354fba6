"""The arguments of `export()`: how inputs are given and named, which axes are dynamic, what goes wrong and how it says so."""

from __future__ import annotations

import dataclasses
import io
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import onnxport
from onnxport.options import newest_opset

nn = torch.nn


class Net(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def module(forward: Any, **attributes: Any) -> nn.Module:
    made = type("Model", (nn.Module,), {"forward": forward})()
    for name, value in attributes.items():
        if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
            made.register_buffer(name, value)
        else:
            setattr(made, name, value)
    return made.eval()


def proto(model: Any, args: Any, **options: Any) -> onnx.ModelProto:
    stream = io.BytesIO()
    onnxport.export(model, args, stream, **options)
    return onnx.load_from_string(stream.getvalue())


def run(made: onnx.ModelProto, *inputs: torch.Tensor) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], [t.numpy() for t in inputs], strict=True)))


def dims_of(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def names(values: Any) -> list[str]:
    return [v.name for v in values]


# ---------------------------------------------------------------- args


def test_a_tensor_is_a_tuple_of_one() -> None:
    x = torch.randn(2, 3)
    assert names(proto(Net(), x).graph.input) == names(proto(Net(), (x,)).graph.input) == ["x"]


def test_a_tuple_that_ends_in_a_dict_names_arguments() -> None:
    model = module(lambda self, x, y=None, z=None: x if z is None else x - z)
    x, z = torch.randn(3), torch.randn(3)
    made = proto(model, (x, {"z": z}))
    assert names(made.graph.input) == ["x", "z"]
    np.testing.assert_allclose(run(made, x, z)[0], (x - z).numpy())


def test_an_empty_dict_behind_passes_a_dict() -> None:
    model = module(lambda self, batch: batch["a"] - batch["b"])
    a, b = torch.randn(3), torch.randn(3)
    made = proto(model, ({"a": a, "b": b}, {}))
    np.testing.assert_allclose(run(made, a, b)[0], (a - b).numpy())


def test_kwargs_follow_the_signature() -> None:
    model = module(lambda self, x, y, z: x - y * z)
    x, y, z = torch.randn(3), torch.randn(3), torch.randn(3)
    made = proto(model, (x,), kwargs={"z": z, "y": y})
    assert names(made.graph.input) == ["x", "y", "z"]
    np.testing.assert_allclose(run(made, x, y, z)[0], (x - y * z).numpy(), rtol=1e-6)


class Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


@dataclasses.dataclass
class Two:
    a: torch.Tensor
    b: torch.Tensor | None = None


@pytest.mark.parametrize("container", [lambda a, b: (a, [b]), lambda a, b: [a, b], lambda a, b: {"p": a, "q": (b,)}, Pair, Two, lambda a, b: (a, None, b)])
def test_nested_inputs_and_outputs(container: Any) -> None:
    def flat(value: Any) -> list[torch.Tensor]:
        return [leaf.value for leaf in onnxport.structure.flatten(value)[0]]

    def forward(self: Any, given: Any) -> Any:
        a, b = flat(given)
        return container(a - b, a * b)

    a, b = torch.randn(3), torch.randn(3)
    made = proto(module(forward), (container(a, b), {}))
    assert len(made.graph.input) == 2
    first, second = run(made, a, b)
    np.testing.assert_allclose(first, (a - b).numpy(), rtol=1e-6)
    np.testing.assert_allclose(second, (a * b).numpy(), rtol=1e-6)


def test_plain_numbers_are_constants() -> None:
    model = module(lambda self, x, scale: x * scale)
    made = proto(model, (torch.ones(2), 3.0))
    assert names(made.graph.input) == ["x"]
    np.testing.assert_allclose(run(made, torch.full((2,), 2.0))[0], [6.0, 6.0])


def test_naming_a_constant_is_an_error() -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match="'scale'.*constant"):
        proto(module(lambda self, x, scale: x * scale), (torch.ones(2), 3.0), input_names=["x", "scale"])


def test_an_unused_input_stays() -> None:
    made = proto(module(lambda self, a, b: a * 2), (torch.ones(2), torch.ones(2)))
    assert names(made.graph.input) == ["a", "b"]


def test_one_tensor_given_twice_stays_two_inputs() -> None:
    x = torch.randn(2, 3)
    made = proto(module(lambda self, q, k: q - 2 * k), (x, x))
    assert names(made.graph.input) == ["q", "k"]
    np.testing.assert_allclose(run(made, x, torch.zeros(2, 3))[0], x.numpy())


def test_a_wrong_argument_name_is_an_error() -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match="other"):
        proto(Net(), (torch.ones(2, 3), {"other": torch.ones(1)}))


# ---------------------------------------------------------------- names


def test_names_run_on_over_the_parameters() -> None:
    made = proto(Net(), torch.randn(2, 3), input_names=["data", "w0", "b0", "w1"], output_names=["result"])
    assert names(made.graph.input) == ["data"] and names(made.graph.output) == ["result"]
    assert set(names(made.graph.initializer)) == {"w0", "b0", "w1", "second.bias"}


def test_a_transposed_weight_keeps_its_name() -> None:
    model = module(lambda self, x: self.layer(x), layer=nn.Linear(3, 4, bias=False))
    assert names(proto(model, torch.randn(2, 5, 3)).graph.initializer) == ["layer.weight"]


def test_a_folded_parameter_lends_its_name() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3)).eval()
    made = proto(model, torch.randn(1, 2, 5, 5), input_names=["x", "kernel"])
    assert [n.op_type for n in made.graph.node] == ["Conv"]
    assert "kernel" in names(made.graph.initializer)


def test_a_tied_weight_is_stored_once() -> None:
    model = Net()
    model.second = nn.Linear(4, 3)
    model.third = nn.Linear(3, 4)
    model.third.weight = model.first.weight
    model.forward = lambda x: model.third(model.second(torch.relu(model.first(x))))  # type: ignore[method-assign]
    made = proto(model, torch.randn(2, 3))
    assert sum(list(t.dims) == [4, 3] for t in made.graph.initializer) == 1


@pytest.mark.parametrize("wanted", [["x", "x"], ["x", 3], "x"])
def test_wrong_names_are_errors(wanted: Any) -> None:
    with pytest.raises(ValueError, match="input_names"):
        proto(Net(), torch.randn(2, 3), input_names=wanted)


def test_too_many_output_names_are_an_error() -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match="output_names"):
        proto(Net(), torch.randn(2, 3), output_names=["a", "b"])


def test_dict_keys_become_output_names() -> None:
    made = proto(module(lambda self, x: {"twice": x * 2, "more": x + 1}), torch.randn(2))
    assert names(made.graph.output) == ["twice", "more"]


def test_names_that_are_dict_keys_label_these_keys() -> None:
    model = module(lambda self, x: {"twice": x * 2, "more": x + 1})
    made = proto(model, torch.randn(2), output_names=["more", "twice"])
    assert names(made.graph.output) == ["twice", "more"]
    assert run(made, torch.ones(2) * 3)[0].tolist() == [6.0, 6.0]
    with pytest.raises(onnxport.errors.ArgumentError, match="output_names"):
        proto(model, torch.randn(2), output_names=["more"])


def test_an_input_that_is_called_like_a_weight() -> None:
    model = module(lambda self, x: x * self.scale, scale=torch.rand(3))
    made = proto(model, torch.randn(3), input_names=["scale"])
    assert names(made.graph.input) == ["scale"] and len(made.graph.initializer) == 1


# ---------------------------------------------------------------- dynamic axes


class SumModule(nn.Module):
    """The documentation's example."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x, dim=1)


def test_the_documented_dynamic_axes() -> None:
    made = proto(SumModule(), (torch.ones(2, 2),), input_names=["x"], output_names=["sum"])
    assert dims_of(made.graph.input[0]) == [2, 2] and dims_of(made.graph.output[0]) == [2]
    made = proto(SumModule(), (torch.ones(2, 2),), input_names=["x"], output_names=["sum"],
                 dynamic_axes={"x": {0: "my_custom_axis_name"}, "sum": [0]})
    assert dims_of(made.graph.input[0]) == ["my_custom_axis_name", 2]
    assert dims_of(made.graph.output[0]) == ["sum_dynamic_axes_1"]


def test_inner_values_carry_the_users_names() -> None:
    made = proto(Net(), torch.randn(2, 3), dynamic_axes={"x": {0: "batch"}})
    assert made.graph.value_info and all(dims_of(v)[0] == "batch" for v in made.graph.value_info)
    assert dims_of(made.graph.output[0]) == ["batch", 2]


@pytest.mark.parametrize(("axes", "message"), [
    ({"y": {0: "n"}}, "'y'"), ({"x": {5: "n"}}, "axis 5"), ({"x": {"0": "n"}}, "axis"), ({"x": {0: 1}}, "name of an axis"), (["x"], "dict"), ({"x": 0}, "dict of axis"),
])
def test_dynamic_axes_that_name_nothing(axes: Any, message: str) -> None:
    with pytest.raises(onnxport.errors.ArgumentError, match=message):
        proto(Net(), torch.randn(2, 3), dynamic_axes=axes)


def test_negative_axes_count_from_the_end() -> None:
    made = proto(SumModule(), torch.ones(2, 3), dynamic_axes={"x": {-1: "width"}})
    assert dims_of(made.graph.input[0]) == [2, "width"]


# ---------------------------------------------------------------- opset, parameters, training


@pytest.mark.parametrize("opset", [6, 0, -1, newest_opset() + 1, "18", 9.0, True])
def test_an_opset_out_of_range(opset: Any) -> None:
    with pytest.raises(ValueError, match=f"7 to {newest_opset()}"):
        proto(Net(), torch.randn(2, 3), opset_version=opset)


@pytest.mark.parametrize("opset", range(7, newest_opset() + 1))
def test_every_opset_is_written_as_asked(opset: int) -> None:
    x = torch.randn(2, 3)
    model = Net()
    made = proto(model, x, opset_version=opset)
    assert [o.version for o in made.opset_import] == [opset]
    onnx.checker.check_model(made)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_export_params_false_makes_inputs_of_the_parameters() -> None:
    model, x = Net(), torch.randn(2, 3)
    made = proto(model, x, export_params=False)
    assert names(made.graph.input) == ["x", *model.state_dict()]
    assert not any(t.name in model.state_dict() for t in made.graph.initializer)
    np.testing.assert_allclose(run(made, x, *model.state_dict().values())[0], model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("opset", "keep", "expected"), [(18, None, False), (18, True, True), (18, False, False), (8, None, True), (8, False, True), (9, None, False)])
def test_initializers_as_inputs(opset: int, keep: bool | None, expected: bool) -> None:
    made = proto(Net(), torch.randn(2, 3), opset_version=opset, keep_initializers_as_inputs=keep)
    assert ("first.weight" in names(made.graph.input)) == expected


def test_without_constant_folding_operations_on_parameters_stay() -> None:
    model = module(lambda self, x: self.layer(x), layer=nn.Linear(3, 4, bias=False))
    x = torch.randn(2, 5, 3)
    made = proto(model, x, do_constant_folding=False)
    assert "Transpose" in [n.op_type for n in made.graph.node]
    np.testing.assert_allclose(run(made, x)[0], model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fails", [False, True])
def test_training_flags_are_put_back(fails: bool) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    model.train()
    model[1].eval()
    before = [m.training for m in model.modules()]
    if fails:
        model[0].register_forward_hook(lambda *a: (_ for _ in ()).throw(KeyError("broken")))
        with pytest.raises(KeyError, match="broken"):
            proto(model, torch.randn(2, 3))
    else:
        proto(model, torch.randn(2, 3))
    assert [m.training for m in model.modules()] == before


def test_the_default_is_eval_mode() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.9)).train()
    x = torch.randn(2, 3)
    np.testing.assert_allclose(run(proto(model, x), x)[0], model.eval()(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_torch_enums_are_taken() -> None:
    torch_onnx = pytest.importorskip("torch.onnx", reason="the peer's enums")
    made = proto(Net(), torch.randn(2, 3), training=torch_onnx.TrainingMode.EVAL, operator_export_type=torch_onnx.OperatorExportTypes.ONNX)
    assert len(made.graph.node) == 3


# ---------------------------------------------------------------- output


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proto(Net(), torch.randn(2, 3), dynamic_axes={"x": {0: "n"}})
    assert capfd.readouterr() == ("", "")


def test_verbose_prints_the_graph_with_scopes_and_lines(capsys: pytest.CaptureFixture[str]) -> None:
    made = proto(Net(), torch.randn(2, 3), verbose=True)
    printed = capsys.readouterr().out
    assert "graph(%x : Float(2, 3)" in printed and "%first.weight : Float(4, 3)" in printed
    assert "scope: Net/Linear[first]" in printed and "onnx::Gemm[transB=1](%x, %first.weight, %first.bias)" in printed
    assert os.path.basename(__file__) in printed
    assert any(os.path.basename(__file__) in n.doc_string for n in made.graph.node)


def test_two_exports_give_the_same_bytes() -> None:
    model, x = Net(), torch.randn(2, 3)
    streams = [io.BytesIO(), io.BytesIO()]
    for stream in streams:
        onnxport.export(model, x, stream, dynamic_axes={"x": {0: "n"}})
    assert streams[0].getvalue() == streams[1].getvalue()


def test_paths_of_every_kind(tmp_path: Path) -> None:
    folder = tmp_path / "modèle 模型"
    folder.mkdir()
    for target in (folder / "a b.onnx", str(folder / "c.onnx")):
        onnxport.export(Net(), torch.randn(2, 3), target)
        onnx.checker.check_model(str(target))
    with open(folder / "d.onnx", "wb") as file:
        onnxport.export(Net(), torch.randn(2, 3), file)
    onnx.checker.check_model(str(folder / "d.onnx"))


def test_a_missing_folder_is_reported_before_the_model_runs(tmp_path: Path) -> None:
    calls: list[int] = []
    model = Net()
    model.register_forward_pre_hook(lambda *a: calls.append(1))
    with pytest.raises(OSError, match="absent"):
        onnxport.export(model, torch.randn(2, 3), tmp_path / "absent" / "m.onnx")
    assert not calls


def test_the_program_runs_and_verifies() -> None:
    model, x = Net(), torch.randn(2, 3)
    program = onnxport.export(model, x, dynamic_axes={"x": {0: "n"}})
    torch.testing.assert_close(program(torch.ones(5, 3))[0], model(torch.ones(5, 3)))
    assert program.verify() is not None
    assert isinstance(program.model_proto, onnx.ModelProto)


# ---------------------------------------------------------------- what Python reads


def test_a_branch_on_a_dynamic_size_is_a_guard() -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 1:
            return x * 2
        return x

    model = module(forward)
    with pytest.warns(onnxport.errors.GuardWarning, match=r"n > 1.*test_export"):
        program = onnxport.export(model, torch.ones(2), dynamic_axes={"x": {0: "n"}})
    assert [g.condition for g in program.guards] == ["n > 1"]
    with pytest.raises(onnxport.errors.GuardError, match="n > 1"):
        onnxport.export(model, torch.ones(2), dynamic_axes={"x": {0: "n"}}, strict=True)
    assert onnxport.export(model, torch.ones(2), strict=True).guards == []


@pytest.mark.parametrize("forward", [
    lambda self, x: x * 2 ** int(x.shape[0]), lambda self, x: x * float(x.shape[0]) ** 2,
    lambda self, x: sum(x[i] for i in range(x.shape[0])), lambda self, x: x * len(x) ** 2,
    lambda self, x: x * [1, 2, 3, 4][x.shape[0]],
], ids=["int", "float", "range", "len", "list"])
def test_a_number_taken_from_a_dynamic_size_is_an_error(forward: Any) -> None:
    with pytest.raises(onnxport.errors.BakedValueError, match=r"test_export\.py:\d+.*n"):
        onnxport.export(module(forward), torch.ones(2), dynamic_axes={"x": {0: "n"}})
    x = torch.ones(2)
    np.testing.assert_allclose(run(proto(module(forward), x), x)[0], module(forward)(x).numpy())


def test_sizes_in_slices_and_shapes_are_no_numbers() -> None:
    def forward(self: Any, x: torch.Tensor) -> Any:
        n = x.shape[0]
        assert f"{n} rows of {x.shape}" and "%s" % (x.shape,) and str(x.shape)  # noqa: UP031
        y = x[: n // 2] + x[:n].amax()
        z = torch.zeros(n, n + 1)
        w = x.reshape(
            n,
            1,
        )
        return y, z, w, x.roll(n // 2, 0), nn.functional.pad(x, (0, n)), x.expand(n, n)

    model, x = module(forward), torch.randn(4)
    made = proto(model, x, dynamic_axes={"x": {0: "n"}})
    for given in (x, torch.randn(7)):
        for got, want in zip(run(made, given), model(given), strict=True):
            np.testing.assert_array_equal(got, want.numpy())


@pytest.mark.parametrize("forward", [
    lambda self, x: x * 2 if x.sum() > 0 else x, lambda self, x: x * x.max().item() ** 2, lambda self, x: x + torch.from_numpy(x.numpy()),
    lambda self, x: x * x.tolist()[0],
], ids=["if", "item", "numpy", "tolist"])
def test_data_that_leaves_the_graph_is_an_error(forward: Any) -> None:
    with pytest.raises(onnxport.errors.BakedValueError, match=r"test_export\.py:\d+"):
        onnxport.export(module(forward), torch.ones(2))


def test_an_in_place_operator_on_a_size_leaves_its_alias_alone() -> None:
    def forward(self: Any, states: torch.Tensor) -> torch.Tensor:
        _, seq_length = states.shape[:2]
        real_seq_length = seq_length
        real_seq_length += 2
        return real_seq_length + seq_length + torch.zeros(1, dtype=torch.int64)

    x = torch.ones(3, 5)
    made = proto(module(forward), x, dynamic_axes={"states": {1: "length"}})
    assert run(made, x)[0].tolist() == [12]
    assert run(made, torch.ones(3, 8))[0].tolist() == [18]


def test_updates_of_inputs_and_buffers() -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        self.count.add_(1)
        return x + 0 * self.count

    model = module(forward, count=torch.zeros(1))
    x = torch.ones(2)
    with pytest.warns(onnxport.errors.MutationWarning, match="count") as caught:
        onnxport.export(model, x)
    assert "'x'" in str(caught[0].message)
    assert model.count.item() == 0 and x.tolist() == [1.0, 1.0]
    with pytest.raises(onnxport.errors.MutationError, match="count"):
        onnxport.export(model, x, mutations="error")
    program = onnxport.export(model, x, mutations="outputs")
    assert len(program.output_names) == 3
    got = program(torch.full((2,), 3.0))
    assert got[0].tolist() == [6.0, 6.0] and [1.0] in [g.tolist() for g in got[1:]] and [6.0, 6.0] in [g.tolist() for g in got[1:]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onnxport.export(model, x, mutations="ignore")


def test_all_missing_operators_are_named_at_once() -> None:
    library = torch.library.Library("onnxport_test", "DEF")
    library.define("one(Tensor x) -> Tensor")
    library.define("two(Tensor x) -> Tensor")
    for name in ("one", "two"):
        library.impl(name, lambda x: x.clone(), "CompositeExplicitAutograd")
    inner = module(lambda self, x: torch.ops.onnxport_test.one(x))
    model = module(lambda self, x: torch.ops.onnxport_test.two(self.inner(x)), inner=inner)
    with pytest.raises(onnxport.errors.UnsupportedOperatorError) as caught:
        onnxport.export(model, torch.ones(2))
    text = str(caught.value)
    assert "Couldn't export operator" in text and "one" in text and "two" in text and "inner" in text and "test_export.py" in text




# ---------------------------------------------------------------- afterwards


@pytest.mark.parametrize("fails", [False, True])
def test_torch_is_as_it_was(fails: bool) -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0] = 1
        if fails:
            raise KeyError("broken")
        return y[x.shape[0] - 1:]

    before = dict(vars(torch.Tensor)), torch.tensor, dict(vars(nn.functional)), torch.onnx.is_in_onnx_export()
    if fails:
        with pytest.raises(KeyError, match="broken"):
            onnxport.export(module(forward), torch.ones(2, 3), dynamic_axes={"x": {0: "n"}})
    else:
        onnxport.export(module(forward), torch.ones(2, 3), dynamic_axes={"x": {0: "n"}})
    assert (dict(vars(torch.Tensor)), torch.tensor, dict(vars(nn.functional)), torch.onnx.is_in_onnx_export()) == before
    assert torch.tensor([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]  # a Tensor that counted as a sequence would raise


@pytest.mark.parametrize("way", ["trace", "export"])
def test_numbers_that_the_model_returns_are_outputs(way: str) -> None:
    model = module(lambda self, x: (x * 2, 3, {"scale": 2.5, "flag": True, "nothing": None}, x.shape[0]))
    made = proto(model, torch.ones(2), dynamic_axes={"x": {0: "n"}}, capture=way)
    got = run(made, torch.ones(4))
    assert [g.tolist() for g in got] == [[2.0] * 4, 3, 2.5, True, 4]
    assert [g.dtype.name for g in got] == ["float32", "int64", "float32", "bool", "int64"]


def test_a_large_folded_weight_is_computed_in_pieces() -> None:
    model = nn.Sequential(nn.Conv2d(256, 512, 3, bias=False), nn.BatchNorm2d(512)).eval()
    with torch.no_grad():
        model[1].running_var.uniform_(0.5, 2)
        model[1].running_mean.uniform_(-1, 1)
    x = torch.randn(1, 256, 5, 5)
    made = proto(model, x)
    assert [n.op_type for n in made.graph.node] == ["Conv"]
    np.testing.assert_allclose(run(made, x)[0], model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_squeeze_of_a_dynamic_axis_is_a_guard():
    """PyTorch gives another rank where the axis is 1."""
    options = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}}
    with pytest.warns(onnxport.errors.GuardWarning, match=r"n != 1 \(.*test_export.py:\d+\)"):
        program = onnxport.export(lambda x: x.squeeze() + 1, (torch.randn(3, 1, 4),), **options)
    assert program.verify().passed and program(torch.ones(5, 1, 4))[0].shape == (5, 4)
    with pytest.raises(onnxport.errors.GuardError, match="n != 1"):
        onnxport.export(lambda x: x.squeeze(), (torch.randn(3, 1, 4),), strict=True, **options)
    with pytest.raises(onnxport.errors.UnsupportedError, match="squeeze of dim 0, whose size n is dynamic"):
        onnxport.export(lambda x: x.squeeze(), (torch.randn(1, 1, 4),), **options)
    with pytest.raises(onnxport.errors.UnsupportedError, match="squeeze of dim 0, whose size n is dynamic|the file would hold where n != 1"):
        onnxport.export(lambda x: x.squeeze(), (torch.randn(1, 1, 4),), capture="export", **options)
