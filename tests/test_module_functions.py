"""Modules as functions of the file: each is run in ONNX Runtime as it is and inlined, on inputs other than the example."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.inliner
import pytest
import torch
import torchvision
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException
from torch import nn

import onnxport
from onnxport import errors
from tests import test_modules, test_random_programs
from tests.compat.running import ops, proto, run


def leaves(result: Any) -> list[torch.Tensor]:
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def check(model: nn.Module, args: tuple[torch.Tensor, ...], functions: Any, *others: tuple[torch.Tensor, ...], **options: Any) -> onnx.ModelProto:
    """Exports, and compares with PyTorch: numbers, dtypes and shapes."""
    made = proto(model.eval(), args, export_modules_as_functions=functions, **options)
    onnx.checker.check_model(made, full_check=True)
    assert not onnx.inliner.inline_local_functions(made).functions
    for given in (args, *others):
        wanted = leaves(model(*given))
        for file in (made, onnx.inliner.inline_local_functions(made)):
            for found, want in zip(run(file, *given), wanted, strict=True):
                assert (found.shape, found.dtype) == (want.shape, want.detach().numpy().dtype)
                np.testing.assert_allclose(found, want.detach().numpy(), rtol=1e-3, atol=1e-5)
    return made


def named(made: onnx.ModelProto, name: str) -> onnx.FunctionProto:
    (found,) = [f for f in made.functions if f.name == name]
    return found


def values(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


class Step(nn.Module):
    """Annotated variables of each kind; the last ones are none that an attribute could hold."""

    times: int
    rate: float
    kinds: list[str]
    flag: bool
    sizes: tuple[int, ...]
    weight: torch.Tensor
    nothing: None

    def __init__(self, times: int, eps: float):
        super().__init__()
        self.times, self.rate, self.kinds, self.flag, self.sizes, self.nothing = times, 0.5, ["a", "b"], True, (1, 2), None
        self.linear, self.norm = nn.Linear(3, 3), nn.LayerNorm(3, eps)
        self.weight = nn.Parameter(torch.rand(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x)) * self.times + self.weight


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Step(2, 1e-3), Step(3, 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(self.first(x)))


X = torch.rand(2, 3)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_equal_modules_share_a_function_and_what_differs_is_an_attribute(capture: str) -> None:
    made = check(Steps(), (X,), {Step}, (torch.rand(5, 3),), input_names=["x"], dynamic_axes={"x": [0]}, capture=capture)
    assert ops(made) == ["tests.test_module_functions::Step"] * 3
    function = named(made, "Step")
    assert function.domain == __name__
    assert list(function.input) == ["x", "linear.weight", "linear.bias", "norm.weight", "norm.bias", "weight"]
    annotated = ["times", "rate", "kinds", "flag", "sizes"]
    assert sorted(function.attribute) == sorted([*annotated, "inferred::LayerNormalization_epsilon", "inferred::Constant_value"])
    assert [n.op_type for n in function.node] == ["Constant", "Gemm", "LayerNormalization", "Mul", "Add"]
    first, _, last = map(values, made.graph.node)
    assert [first[name] for name in annotated] == [2, 0.5, [b"a", b"b"], 1, [1, 2]]
    assert (last["times"], last["inferred::LayerNormalization_epsilon"]) == (3, pytest.approx(0.1))
    assert onnx.numpy_helper.to_array(last["inferred::Constant_value"]) == 3
    assert {o.domain: o.version for o in made.opset_import} == {"": 18, __name__: 1}


def test_all_modules_nest() -> None:
    made = check(Steps(), (X,), True, (torch.rand(5, 3),), input_names=["x"], dynamic_axes={"x": [0]})
    assert [f.name for f in made.functions] == ["Linear", "LayerNorm", "Step", "Steps"]
    assert ops(made) == [f"{__name__}::Steps"]
    assert [n.op_type for n in named(made, "Step").node] == ["Constant", "Linear", "LayerNorm", "Mul", "Add"]
    inner = named(made, "Step").node[2]
    assert {a.name: a.ref_attr_name for a in inner.attribute if a.ref_attr_name} == {
        "eps": "inferred::LayerNorm_eps", "inferred::LayerNormalization_epsilon": "inferred::LayerNorm_LayerNormalization_epsilon"}
    assert list(named(made, "LayerNorm").input) == ["input", "weight", "bias"]


def test_no_module_named_nothing_changes() -> None:
    plain = proto(Steps().eval(), (X,))
    assert ops(proto(Steps().eval(), (X,), export_modules_as_functions=set())) == ops(plain)
    assert not proto(Steps().eval(), (X,), export_modules_as_functions={nn.Conv2d}).functions


def test_versions_of_the_domains() -> None:
    made = proto(Steps().eval(), (X,), export_modules_as_functions={Step}, custom_opsets={__name__: 4})
    assert {o.domain: o.version for o in made.opset_import} == {"": 18, __name__: 4}


class Mixed(nn.Module):
    """Arguments by name, one that may be missing and one that is not used; several results, nested, one of them an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, unused: torch.Tensor, *, scale: torch.Tensor, skip: torch.Tensor | None = None) -> Any:
        y = self.linear(x) * scale
        return (y if skip is None else y + skip), {"sum": y.sum(-1), "same": x}


class CallsMixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Mixed(), Mixed()

    def forward(self, x: torch.Tensor) -> Any:
        y, found = self.a(x, x * 2, scale=x.mean())
        z, more = self.b(y, x + 1, scale=found["sum"].sum(), skip=x)
        return z, more["sum"], self.b(z, y, scale=more["sum"].mean(), skip=found["same"])


@pytest.mark.parametrize("opset", [15, 18, 21, 24])
def test_arguments_by_name_and_several_results(opset: int) -> None:
    made = check(CallsMixed(), (torch.rand(3, 4),), {Mixed}, (torch.rand(5, 4),), input_names=["x"], dynamic_axes={"x": [0]}, opset_version=opset)
    signatures = {f.name: (list(f.input), len(f.output)) for f in made.functions}
    weights = ["linear.weight", "linear.bias"]
    assert signatures == {"Mixed": (["x", "unused", "scale", *weights], 2), "Mixed.1": (["x", "unused", "scale", "skip", *weights], 2)}
    assert made.graph.node[1].input[1] == ""  # nobody computes what is not used


class Repeated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(int(x.shape[0])):
            x = self.linear(x)
        return x


@torch.jit.script
def chosen(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


class HoldsScripts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scripted, self.linear = torch.jit.script(Repeated()), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return chosen(self.scripted(self.linear(x)).relu() - 0.5)


class HoldsHolders(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = HoldsScripts(), HoldsScripts()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x) + 1)


def test_scripts_and_control_flow_inside() -> None:
    made = check(HoldsHolders(), (X,), {HoldsScripts, nn.Linear}, (torch.rand(4, 3),), (-torch.rand(3, 3),), input_names=["x"], dynamic_axes={"x": [0]})
    assert ops(made) == [f"{__name__}::HoldsScripts", "Add", f"{__name__}::HoldsScripts"]
    assert {"Loop", "If", "Linear"} <= {n.op_type for n in named(made, "HoldsScripts").node}
    assert list(named(made, "HoldsScripts").input) == ["x", "linear.weight", "linear.bias", "scripted.linear.weight", "scripted.linear.bias"]


class Tabled(nn.Module):
    """A length that the data decides, which outsiders use; a table that is no weight; an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.randn(40, 40)
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[x[:, 0] > 0.3] * 2, self.lstm(x[None])[0][0] @ self.table[:4, :4]


class CallsTabled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Tabled(), Tabled()

    def forward(self, x: torch.Tensor) -> Any:
        kept, y = self.a(x)
        more, z = self.b(y + x)
        return kept, more, z, torch.arange(kept.shape[0]) + 1


@pytest.mark.parametrize("functions", [{Tabled}, True], ids=["one", "all"])
def test_sizes_that_the_data_decides(functions: Any) -> None:
    made = check(CallsTabled(), (torch.rand(6, 4),), functions, (torch.rand(9, 4),), input_names=["x"], dynamic_axes={"x": [0]})
    assert [f.name for f in made.functions if f.name != "LSTM"][:1] == ["Tabled"]
    assert named(made, "Tabled").input[0] == "x"


def test_resnet_blocks_with_folded_norms() -> None:
    model = torchvision.models.resnet18().eval()
    axes = {"x": {0: "n", 2: "h", 3: "w"}}
    made = check(model, (torch.rand(1, 3, 32, 32),), {torchvision.models.resnet.BasicBlock}, (torch.rand(2, 3, 32, 64),), input_names=["x"],
                 dynamic_axes=axes)
    assert [f.name for f in made.functions] == ["BasicBlock", "BasicBlock.1"]
    assert "BatchNormalization" not in {n.op_type for f in made.functions for n in f.node}
    assert [n.op_type for n in made.graph.node].count("BasicBlock") == 5
    norms = proto(model, (torch.rand(1, 3, 32, 32),), export_modules_as_functions={nn.BatchNorm2d})
    assert ops(norms).count("torch.nn.modules.batchnorm::BatchNorm2d") == 20  # not folded into what is outside


def test_transformer_encoder() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
    made = check(model, (torch.rand(2, 5, 16),), True, (torch.rand(3, 7, 16),), input_names=["x"], dynamic_axes={"x": {0: "n", 1: "t"}})
    assert [f.name for f in made.functions] == ["MultiheadAttention", "LayerNorm", "Linear", "TransformerEncoderLayer", "TransformerEncoder"]


def test_language_models() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(num_hidden_layers=2, num_attention_heads=2, hidden_size=16, intermediate_size=20, vocab_size=50,
                                     max_position_embeddings=32)
    bert = transformers.BertModel(config).eval()

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> Any:
            return self.bert(input_ids=ids, attention_mask=mask)[:2]

    given, other = [(torch.randint(0, 50, size), torch.ones(size, dtype=torch.long)) for size in ((2, 5), (3, 8))]
    axes = {name: {0: "n", 1: "t"} for name in ("ids", "mask")}
    made = check(Model(), given, {type(bert.encoder.layer[0])}, other, input_names=list(axes), dynamic_axes=axes)
    assert ops(made)[-3:] != ops(made)[-4:-1] and [f.name for f in made.functions] == ["BertLayer"]
    assert list(named(made, "BertLayer").input)[:2] == ["hidden_states", "attention_mask"]


@pytest.mark.parametrize("options", [{"keep_initializers_as_inputs": True}, {"do_constant_folding": False}, {"opset_version": 22}])
def test_other_options(options: dict[str, Any]) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Sequential(nn.Conv2d(4, 4, 3, 2), nn.ReLU()), nn.Flatten(),
                          nn.Linear(64, 3)).eval()
    for functions in (True, {nn.Sequential, nn.ReLU}):
        program = onnxport.export(model, (torch.rand(1, 3, 12, 12),), None, export_modules_as_functions=functions, **options)
        assert program.verify().passed
        assert [f.name for f in program.model_proto.functions][-2:] == ["Sequential", "Sequential.1"]


def test_parameters_as_inputs_are_passed_on() -> None:
    program = onnxport.export(Steps().eval(), (X,), None, export_modules_as_functions=True, export_params=False)
    assert program.verify().passed
    assert program.input_names[0] == "x" and len(program.model.graph.inputs) == 11


def test_types_inside_functions() -> None:
    made = check(Steps(), (X,), {Step}, opset_version=21, input_names=["x"], dynamic_axes={"x": [0]})
    known = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in named(made, "Step").value_info}
    assert known["norm/LayerNormalization_output_0"] == ["x_dynamic_axes_1", 3]


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        return g.op("Exp", x)


class Applies(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Exp.apply(x)


def test_an_autograd_function_stays_in_its_module() -> None:
    """The last thing that a module does: the tracer numbers it after what stands inside of it."""
    made = check(nn.Sequential(Applies(), nn.ReLU(), Applies()), (X,), {Applies})
    assert ops(made) == [f"{__name__}::Applies", "Relu", f"{__name__}::Applies"]


def test_verbose_prints_the_functions(capsys: pytest.CaptureFixture[str]) -> None:
    proto(Steps().eval(), (X,), export_modules_as_functions=True, verbose=True)
    text = capsys.readouterr().out
    assert "function torch.nn.modules.linear::Linear[in_features, out_features](%input : Float(2, 3)" in text
    assert "onnx::LayerNormalization[axis=-1, epsilon=@inferred::LayerNormalization_epsilon]" in text


@pytest.mark.parametrize(("wanted", "message"), [
    ("Linear", "export_modules_as_functions='Linear': it must be True, False or a set of module classes"),
    (nn.Linear, "it must be True, False or a set of module classes"),
    ({"Linear"}, "export_modules_as_functions holds 'Linear': only classes of torch.nn.Module"),
    ({torch.Tensor}, "only classes of torch.nn.Module"),
])
def test_wrong_values_are_named(wanted: Any, message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        proto(Steps(), (X,), export_modules_as_functions=wanted)


def test_older_opsets_hold_no_functions() -> None:
    with pytest.raises(errors.ArgumentError, match="export_modules_as_functions needs opset_version 15 or higher, not 14"):
        proto(Steps(), (X,), opset_version=14, export_modules_as_functions=True)


def test_scripted_programs_are_told() -> None:
    with pytest.warns(UserWarning, match="the calls of a scripted program are not known; export the module itself"):
        proto(torch.jit.script(Repeated()), (X,), export_modules_as_functions=True)


class Extends(nn.Module):
    """Adds to the list that it is given."""

    def forward(self, x: list[torch.Tensor]) -> list[torch.Tensor]:
        x.append(nn.functional.max_pool2d(x[-1], 1, 2))
        return x


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.extends = Extends()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.extends(self.extends([x * 2]))[2] + 1


def test_a_list_that_the_module_adds_to() -> None:
    made = check(Pyramid(), (torch.rand(1, 2, 8, 8),), True)
    assert [f.name for f in made.functions] == ["Extends", "Extends.1", "Pyramid"]
    assert list(named(made, "Extends").input) == ["x.0"]


# Every class of torch.nn, as two modules: one function that is called twice.


class Two(nn.Module):
    def __init__(self, a: nn.Module, b: nn.Module):
        super().__init__()
        self.a, self.b = a, b

    def forward(self, *given: torch.Tensor) -> Any:
        return self.a(*given), self.b(*given)


NOTHING_LEFT = {"AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "Identity"}
BECOME_OTHERS = {name for name in dir(nn) if name.startswith("Lazy")}


@pytest.mark.parametrize("name", sorted(set(test_modules.NAMES) - set(test_modules.REFUSED) - BECOME_OTHERS))
def test_classes_of_torch_nn(name: str) -> None:
    args, keywords, inputs = test_modules.TABLE.get(name, ((), {}, (test_modules.FLAT,)))
    kind = getattr(nn, name)
    model, names = Two(kind(*args, **keywords), kind(*args, **keywords)), [f"x{i}" for i in range(len(inputs))]
    dynamic = name not in test_modules.STATIC
    others = (test_modules.batched(inputs, 5),) if dynamic else ()
    made = check(model, inputs, {kind}, *others, input_names=names, dynamic_axes={n: {0: "n"} for n in names} if dynamic else None)
    assert [f.name for f in made.functions] == ([] if name in NOTHING_LEFT else [name])
    assert [n.op_type for n in made.graph.node if n.domain] == ([] if name in NOTHING_LEFT else [name] * 2)


# Random programs, their steps as modules in groups that are modules.


class RandomStep(nn.Module):
    def __init__(self, step: Any):
        super().__init__()
        _, self.function, self.a, self.b, self.k, self.m = step

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.function(x, y, self.k, self.m)


class RandomGroup(nn.Module):
    def __init__(self, steps: list[Any]):
        super().__init__()
        self.steps = nn.ModuleList([RandomStep(step) for step in steps])

    def forward(self, given: list[torch.Tensor]) -> list[torch.Tensor]:
        pool = list(given)
        for step in self.steps:
            pool.append(step(pool[step.a], pool[step.b]))
        return pool[len(given):]


class RandomProgram(nn.Module):
    def __init__(self, seed: int):
        super().__init__()
        steps = test_random_programs.Program(seed).steps
        self.groups = nn.ModuleList([RandomGroup(steps[start : start + 3]) for start in range(0, len(steps), 3)])

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pool = [x, y]
        for group in self.groups:
            pool += group(pool)
        return tuple(pool[-3:])


@pytest.mark.parametrize("functions", [True, {RandomGroup}, {RandomStep}], ids=["all", "groups", "steps"])
@pytest.mark.parametrize("seed", [1, 2, 4, 6])
def test_programs_of_modules(seed: int, functions: Any) -> None:
    """As the file without functions, at other sizes."""
    first, *others = [test_random_programs.inputs(*size, seed) for size in test_random_programs.SIZES[:4]]
    options: dict[str, Any] = {"input_names": ["x", "y"], "dynamic_axes": {"x": {0: "n", 2: "m"}, "y": {0: "m"}}}
    model = RandomProgram(seed).eval()
    plain, made = proto(model, first, **options), proto(model, first, export_modules_as_functions=functions, **options)
    assert made.functions
    for given in (first, *others):
        wanted = outcome(plain, *given)
        for file in (made, onnx.inliner.inline_local_functions(made)):
            found = outcome(file, *given)
            assert (wanted is None) == (found is None)
            for result, want in zip(found or (), wanted or (), strict=True):
                assert (result.shape, result.dtype) == (want.shape, want.dtype)
                np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)


def outcome(made: onnx.ModelProto, *given: torch.Tensor) -> list[np.ndarray] | None:
    """What the file gives; None where ONNX Runtime refuses the sizes."""
    try:
        return run(made, *given[: len(made.graph.input)])
    except (Fail, InvalidArgument, RuntimeException):
        return None


class Branches(nn.Module):
    """Calls a module in the branches of a condition, and outside of them; both share its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.other = Step(2, 1e-3), Step(3, 0.1)
        self.other.linear = self.step.linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.step(x)
        return torch.cond(y.sum() > 0, lambda v: self.step(v) + 1, lambda v: self.other(self.step(v)), (y,))


class CallsBranches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Branches(), Branches()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x) - 1)


@pytest.mark.parametrize("functions", [True, {Step}, {Branches}, {Branches, Step}], ids=["all", "steps", "branches", "both"])
def test_modules_inside_of_branches(functions: Any) -> None:
    """What a branch calls is part of the branch: its nodes belong to the function around the condition."""
    made = check(CallsBranches(), (X,), functions, (torch.rand(5, 3),), (-torch.rand(4, 3),), input_names=["x"], dynamic_axes={"x": [0]},
                 capture="export")
    names = {f.name.partition(".")[0] for f in made.functions}
    assert names == ({"Linear", "LayerNorm", "Step", "Branches", "CallsBranches"} if functions is True else {kind.__name__ for kind in functions})
