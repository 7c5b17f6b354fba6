"""Saving: what is written is what was meant, and a failure leaves everything as it was."""

from __future__ import annotations

import io
import itertools
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from onnxport import errors, save
from onnxport.runtime import Session
from onnxport.target import weights as weights_module
from onnxport.target.dtypes import from_torch
from onnxport.target.value import Constant
from onnxport.target.weights import Weight
from onnxport.wire import Encoder, Hole
from tests import handmade

BIG = torch.arange(600 * 500, dtype=torch.float32).reshape(600, 500)


def listed(folder: pathlib.Path) -> list[str]:
    return sorted(os.listdir(folder))


def loaded(path: Any) -> dict[str, Any]:
    proto = onnx.load(path)
    return {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}


# ---------------------------------------------------------------------- the bytes of tensors

LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "plain": lambda: torch.randn(3, 4),
    "scalar": lambda: torch.tensor(2.5),
    "empty": lambda: torch.zeros(0, 3),
    "transposed": lambda: torch.randn(300, 200).t(),
    "expanded": lambda: torch.randn(1, 7, 1).expand(5, 7, 6),
    "sliced": lambda: torch.randn(40, 40)[::3, 5:],
    "narrowed": lambda: torch.randn(40, 40)[4:9],
    "flipped": lambda: torch.randn(5).flip(0),
    "negative": lambda: torch.randn(6, dtype=torch.complex64).conj().imag,
    "conjugate": lambda: torch.randn(4, dtype=torch.complex64).conj(),
    "channels last": lambda: torch.randn(2, 3, 5, 5).contiguous(memory_format=torch.channels_last),
    "parameter": lambda: torch.nn.Parameter(torch.randn(4, 4)),
    "sparse": lambda: torch.eye(4).to_sparse(),
}


def weight_of(tensor: torch.Tensor) -> Weight:
    return Weight(Constant(tensor), from_torch(tensor.dtype), tuple(tensor.shape), "w")


@pytest.mark.parametrize("chunk", [16 << 20, 512, 16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bytes_of_every_layout(layout: str, chunk: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(weights_module, "CHUNK", chunk)
    tensor = LAYOUTS[layout]()
    expected = tensor.detach().to_dense().resolve_conj().resolve_neg().contiguous().numpy()
    made = weight_of(tensor)
    assert made.tobytes() == expected.tobytes()
    assert np.array_equal(made.numpy(), expected)
    assert made.nbytes == expected.nbytes
    assert made.shape == ir.Shape(expected.shape)


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool, torch.int8, torch.uint8,
     torch.int16, torch.int32, torch.int64, torch.uint16, torch.complex64],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_every_dtype_reads_back(dtype: torch.dtype, transposed: bool, tmp_path: pathlib.Path):
    tensor = (torch.randn(30, 50) * 3).to(dtype)
    tensor = tensor.t() if transposed else tensor
    proto = save.to_proto(handmade.identities({"w": tensor}))
    back = numpy_helper.to_array(proto.graph.initializer[0])
    assert back.shape == tuple(tensor.shape)
    assert back.tobytes() == weight_of(tensor).tobytes()
    if dtype not in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        assert np.array_equal(back, tensor.contiguous().numpy())


def test_contiguous_memory_is_not_copied():
    tensor = torch.zeros(1000)
    (chunk,) = weight_of(tensor).chunks()
    tensor[0] = 1.0
    assert np.frombuffer(chunk, np.float32)[0] == 1.0


def test_lazy_constant_is_computed_once_per_write():
    calls = []

    def compute() -> torch.Tensor:
        calls.append(1)
        return torch.ones(300, 300).t() * 2

    lazy = Weight(Constant(None, compute=compute), ir.DataType.FLOAT, (300, 300), "w")
    stream = io.BytesIO()
    lazy.write_to(stream)
    assert stream.getvalue() == (np.ones((300, 300), np.float32) * 2).tobytes()
    assert len(calls) == 1


def test_big_endian_machines_write_little_endian(monkeypatch: pytest.MonkeyPatch):
    # Here the numbers in memory are little-endian, so what is swapped must be big-endian.
    tensor = torch.tensor([[1.5, -2.0], [3.0, 4.0]])
    pair = torch.tensor([1 + 2j])
    with monkeypatch.context() as patch:
        patch.setattr(sys, "byteorder", "big")
        swapped, swapped_pair = weight_of(tensor).tobytes(), weight_of(pair).tobytes()
    assert swapped == tensor.numpy().astype(">f4").tobytes()
    assert swapped_pair == np.array([1, 2], ">f4").tobytes()


def test_weight_without_data_is_refused():
    with pytest.raises(errors.SaveError, match="meta device"):
        weight_of(torch.zeros(3, device="meta")).tobytes()


def test_weight_that_changed_its_size_is_refused():
    tensor = torch.zeros(3)
    made = weight_of(tensor)
    tensor.resize_(4)
    with pytest.raises(errors.SaveError, match="changed after the export"):
        made.tobytes()


# ---------------------------------------------------------------------- the bytes of models


def branchy() -> ir.Model:
    """A model with all that the encoder knows: subgraphs with their own weights, every kind of attribute, functions, sequences."""
    x = handmade.tensor_value("x", torch.float32, ["N", 4])
    x.doc_string = "an input"
    x.metadata_props["axis"] = "N"
    condition = handmade.tensor_value("flag", torch.bool, [])
    inner = handmade.weight("inner", torch.randn(40, 40))
    then = handmade.node("Identity", [inner], "then_out", like=inner)
    ones = ir.AttrTensor("value", ir.Tensor(np.ones((40, 40), np.float32), name="t"))
    other = handmade.node("Constant", [], "else_out", [ones], like=inner)
    branches = [
        ir.AttrGraph("then_branch", ir.Graph([], [then], nodes=[then.producer()], initializers=[inner], name="then")),
        ir.AttrGraph("else_branch", ir.Graph([], [other], nodes=[other.producer()], name="else")),
    ]
    chosen = handmade.node("If", [condition], "chosen", branches, like=inner)
    attributes = [
        ir.AttrInt64("i", -3), ir.AttrInt64s("is", [1, -1, 1 << 40]), ir.AttrFloat32("f", 0.1), ir.AttrFloat32s("fs", [1.5, -0.0]),
        ir.AttrString("s", "é"), ir.AttrStrings("ss", ["a", ""]), ir.AttrFloat32("zero", 0.0), ir.AttrFloat32("minus", -0.0),
        ir.AttrInt64("none", 0), ir.Attr("empty", ir.AttributeType.INTS, ()),
        ir.AttrTensors("ts", [ir.tensor(np.arange(3), name="a"), ir.tensor(2.0, name="b")]),
        ir.AttrTypeProto("tp", ir.TypeAndShape(ir.SequenceType(ir.TensorType(ir.DataType.FLOAT)), ir.Shape([None, "k", 2]))),
    ]
    custom = ir.Node("my.domain", "Thing", [x, None, chosen], attributes, num_outputs=3, name="n", doc_string="line 3",
                     metadata_props={"a": "b"})
    custom.outputs[0].name, custom.outputs[1].name, custom.outputs[2].name = "y", "", ""
    custom.outputs[0].type, custom.outputs[0].shape = ir.SequenceType(ir.TensorType(ir.DataType.FLOAT)), ir.Shape(["N", 4])
    text = ir.StringTensor([b"ab", b"c"], shape=ir.Shape([2]), name="words")
    words = ir.Value(name="words", const_value=text, type=ir.TensorType(ir.DataType.STRING), shape=ir.Shape([2]))
    fx = ir.Value(name="a")
    fy = handmade.node("Relu", [fx], "b", like=x)
    fy.producer().attributes.add(ir.RefAttr("alpha", "alpha", ir.AttributeType.FLOAT))
    body = ir.Graph([fx], [fy], nodes=[fy.producer()], opset_imports={"": 18}, name="body")
    parameters = [ir.AttrFloat32("alpha", 1.0), ir.Attr("beta", ir.AttributeType.INT, None)]
    function = ir.Function("my.domain", "Thing", graph=body, attributes=parameters)
    weights = [handmade.weight("w", torch.randn(50, 50)), handmade.weight("small", torch.randn(3)), words]
    graph = ir.Graph([x, condition], [custom.outputs[0]], nodes=[chosen.producer(), custom], initializers=weights, name="main",
                     doc_string="doc", opset_imports={"": 18, "my.domain": 1}, metadata_props={"g": "1"})
    return ir.Model(graph, ir_version=10, producer_name="p", producer_version="1", domain="d", model_version=3, doc_string="text",
                    functions=[function], metadata_props={"z": "1", "a": "é"})


def encoded(model: ir.Model) -> bytes:
    return b"".join(p.tensor.tobytes() if isinstance(p, Hole) else p for p in Encoder().model(model))


def test_bytes_are_those_of_protobuf():
    """Field for field what onnx_ir's own writer says (which also describes initializers a second time), in protobuf's own order."""
    model = branchy()
    mine = onnx.ModelProto.FromString(encoded(model))
    assert mine.SerializeToString(deterministic=True) == encoded(model)
    theirs = ir.to_proto(model)
    names = set(model.graph.initializers)
    keep = [v for v in theirs.graph.value_info if v.name not in names]
    del theirs.graph.value_info[:]
    theirs.graph.value_info.extend(keep)
    branch = theirs.graph.node[0].attribute[0].g
    del branch.value_info[:]
    assert mine == theirs


def test_read_back_by_onnx_ir(tmp_path: pathlib.Path):
    save.write(branchy(), tmp_path / "m.onnx")
    back = ir.load(tmp_path / "m.onnx")
    assert back.graph.num_nodes() == 2
    assert back.graph.initializers["w"].const_value is not None


@given(
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1)), st.text(max_size=8),
    st.floats(width=32), st.lists(st.one_of(st.integers(0, 1 << 40), st.text(min_size=1, max_size=3), st.none()), max_size=4),
)
def test_any_attribute_and_shape(ints: list[int], text: str, number: float, dims: list[Any]):
    x = handmade.tensor_value("x", torch.float32, [])
    attributes = [ir.AttrInt64s("ints", ints), ir.AttrString("text", text), ir.AttrFloat32("number", number)]
    y = ir.Node("d", "Op", [x], attributes, num_outputs=1).outputs[0]
    y.name, y.type, y.shape = "y", ir.TensorType(ir.DataType.INT8), ir.Shape(dims)
    model = handmade.model([x], [y])
    proto = onnx.ModelProto.FromString(encoded(model))
    assert proto.SerializeToString(deterministic=True) == ir.to_proto(model).SerializeToString(deterministic=True)


def test_every_inner_value_is_described():
    x = handmade.tensor_value("x", torch.float32, ["N"])
    inner = handmade.node("Relu", [x], "inner", like=x)
    y = handmade.node("Relu", [inner], "y", like=x)
    proto = save.to_proto(handmade.model([x], [y]))
    assert [v.name for v in proto.graph.value_info] == ["inner"]
    assert proto.graph.value_info[0].type.tensor_type.shape.dim[0].dim_param == "N"


def test_proto_without_weights_keeps_shapes():
    proto = save.to_proto(handmade.identities({"w": BIG, "b": torch.ones(2)}), weights=False)
    assert [list(t.dims) for t in proto.graph.initializer] == [[600, 500], [2]]
    assert [len(t.raw_data) for t in proto.graph.initializer] == [0, 8]


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("external", [None, False, True])
@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_runs_in_onnxruntime(external: bool | None, kind: Any, tmp_path: pathlib.Path):
    folder = tmp_path / "modèle ñ 模型"
    folder.mkdir()
    path = folder / "net é.onnx"
    save.write(handmade.scaled(BIG), kind(path), external_data=external)
    assert listed(folder) == (["net é.onnx", "net é.onnx.data"] if external else ["net é.onnx"])
    x = torch.eye(600)[:2]
    (y,) = Session(str(path)).run({"x": x})
    assert torch.equal(y, BIG[:2])
    onnx.checker.check_model(str(path), full_check=True)


def test_external_tensors_are_aligned_and_small_ones_stay(tmp_path: pathlib.Path):
    path = tmp_path / "m.onnx"
    tensors = {"small": torch.ones(3), "a": torch.ones(300), "big": BIG, "c": torch.ones(301, dtype=torch.float64), "big2": BIG.t(),
               "none": torch.zeros(0)}
    save.write(handmade.identities(tensors), path, external_data=True)
    proto = onnx.load(path, load_external_data=False)
    places = {t.name: {e.key: e.value for e in t.external_data} for t in proto.graph.initializer}
    assert [name for name, place in places.items() if not place] == ["small", "none"]
    assert all(place["location"] == "m.onnx.data" for place in places.values() if place)
    assert int(places["big"]["offset"]) % 4096 == int(places["big2"]["offset"]) % 4096 == 0
    assert int(places["c"]["offset"]) % 64 == 0
    back = loaded(path)
    for name, tensor in tensors.items():
        assert np.array_equal(back[name], tensor.numpy()), name


def test_threshold_keeps_more_in_the_model(tmp_path: pathlib.Path):
    save.write(handmade.identities({"a": torch.ones(300), "b": BIG}), tmp_path / "m.onnx", external_data=True, size_threshold=5000)
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    assert [bool(t.external_data) for t in proto.graph.initializer] == [False, True]


def test_limit_decides_by_itself(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    model = handmade.scaled(BIG)
    size = len(save.to_bytes(model))
    monkeypatch.setattr(save, "LIMIT", size)
    save.write(model, tmp_path / "one.onnx")
    monkeypatch.setattr(save, "LIMIT", size - 1)
    save.write(model, tmp_path / "two.onnx")
    assert listed(tmp_path) == ["one.onnx", "two.onnx", "two.onnx.data"]
    with pytest.raises(errors.SaveError, match="external_data"):
        save.write(model, tmp_path / "no.onnx", external_data=False)
    with pytest.raises(errors.SaveError, match="give a path"):
        save.write(model, io.BytesIO())
    assert listed(tmp_path) == ["one.onnx", "two.onnx", "two.onnx.data"]


@pytest.mark.parametrize("external", [False, True])
def test_same_bytes_twice(external: bool, tmp_path: pathlib.Path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save.write(handmade.scaled(BIG), tmp_path / folder / "m.onnx", external_data=external)
        save.write(handmade.scaled(BIG), tmp_path / folder / "m.onnx", external_data=external)  # over itself
    for name in listed(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_relative_path_in_another_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    save.write(handmade.scaled(BIG), os.path.join("out", "m.onnx"), external_data=True)
    assert listed(tmp_path) == ["out"]
    assert listed(tmp_path / "out") == ["m.onnx", "m.onnx.data"]
    save.write(handmade.scaled(BIG), "here.onnx")
    assert listed(tmp_path) == ["here.onnx", "out"]


def test_symbolic_link_stays_a_link(tmp_path: pathlib.Path):
    (tmp_path / "real.onnx").write_bytes(b"old")
    (tmp_path / "link.onnx").symlink_to("real.onnx")
    save.write(handmade.scaled(BIG), tmp_path / "link.onnx")
    assert (tmp_path / "link.onnx").is_symlink()
    onnx.checker.check_model(str(tmp_path / "real.onnx"))


def test_permissions(tmp_path: pathlib.Path):
    path = tmp_path / "m.onnx"
    before = os.umask(0o027)
    try:
        save.write(handmade.scaled(BIG), path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    save.write(handmade.scaled(BIG), path)
    assert path.stat().st_mode & 0o777 == 0o604


# ---------------------------------------------------------------------- streams


class Dribble(io.RawIOBase):
    """A raw stream that takes at most 1000 bytes at a time, and has no `fileno`."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data[:1000])
        self.taken += part
        return len(part)


def test_streams_get_the_same_bytes_as_files(tmp_path: pathlib.Path):
    model = handmade.scaled(BIG)
    save.write(model, tmp_path / "m.onnx")
    expected = (tmp_path / "m.onnx").read_bytes()
    memory, dribble = io.BytesIO(), Dribble()
    save.write(model, memory)
    save.write(model, dribble)
    with open(tmp_path / "n.onnx", "wb") as file:
        save.write(model, file)
        assert not file.closed
    assert memory.getvalue() == bytes(dribble.taken) == (tmp_path / "n.onnx").read_bytes() == expected


def test_stream_with_external_data_is_an_error():
    with pytest.raises(errors.ArgumentError, match="give a path"):
        save.write(handmade.scaled(BIG), io.BytesIO(), external_data=True)


def test_failing_stream():
    class Failing(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(5, "input/output error")

    with pytest.raises(errors.SaveError, match="input/output") as caught:
        save.write(handmade.scaled(BIG), Failing())
    assert caught.value.errno == 5


# ---------------------------------------------------------------------- targets that cannot be


def bad_targets(tmp_path: pathlib.Path) -> dict[str, tuple[Any, type[Exception], str]]:
    (tmp_path / "file").write_text("x")
    closed = io.BytesIO()
    closed.close()
    return {
        "missing folder": (tmp_path / "no_such_dir" / "m.onnx", OSError, "no_such_dir"),
        "folder": (tmp_path, OSError, "is a folder"),
        "trailing slash": (str(tmp_path / "new") + "/", OSError, "is a folder"),
        "parent is a file": (tmp_path / "file" / "m.onnx", OSError, "is not a folder"),
        "empty": ("", ValueError, "empty"),
        "text stream": (io.StringIO(), ValueError, "wb"),
        "number": (3, ValueError, "int"),
        "closed": (closed, OSError, "closed"),
        "read-only": (open(os.devnull, "rb"), OSError, "writing"),
    }


@pytest.mark.parametrize(
    "which", ["missing folder", "folder", "trailing slash", "parent is a file", "empty", "text stream", "number", "closed", "read-only"],
)
def test_bad_targets_are_found_beforehand(which: str, tmp_path: pathlib.Path):
    target, kind, text = bad_targets(tmp_path)[which]
    with pytest.raises(kind, match=text) as caught:
        save.check_target(target)
    assert isinstance(caught.value, errors.OnnxExporterError)
    assert listed(tmp_path) == ["file"]


def test_good_targets_pass_and_are_not_touched(tmp_path: pathlib.Path):
    (tmp_path / "old.onnx").write_bytes(b"old")
    for target in (None, tmp_path / "new.onnx", str(tmp_path / "old.onnx"), io.BytesIO(), os.devnull):
        save.check_target(target)
    assert listed(tmp_path) == ["old.onnx"]
    assert (tmp_path / "old.onnx").read_bytes() == b"old"


def test_devices_are_written_to_and_not_replaced(tmp_path: pathlib.Path):
    save.write(handmade.scaled(BIG), os.devnull)
    assert not os.path.isfile(os.devnull)
    with pytest.raises(errors.SaveError, match="device"):
        save.write(handmade.scaled(BIG), os.devnull, external_data=True)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_full_device():
    with pytest.raises(errors.SaveError, match="No space left") as caught:
        save.write(handmade.scaled(BIG), "/dev/full")
    assert caught.value.errno == 28


# ---------------------------------------------------------------------- failures on the way


def failing(kind: type[BaseException]) -> ir.Model:
    """A model whose last weight fails while it is written."""
    model = handmade.identities({"first": BIG, "last": BIG + 1})

    def compute() -> torch.Tensor:
        raise kind("while writing")

    bad = model.graph.initializers["last"]
    bad.const_value = Weight(Constant(None, compute=compute), ir.DataType.FLOAT, (600, 500), "last")
    return model


@pytest.mark.parametrize("old", ["none", "single", "pair"])
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError, RuntimeError])
def test_failure_leaves_what_was_there(old: str, external: bool, kind: Any, tmp_path: pathlib.Path):
    path = tmp_path / "m.onnx"
    if old != "none":
        save.write(handmade.scaled(BIG), path, external_data=old == "pair")
    before = {name: (tmp_path / name).read_bytes() for name in listed(tmp_path)}
    with pytest.raises(errors.SaveError if kind is OSError else kind, match="while writing"):
        save.write(failing(kind), path, external_data=external)
    assert {name: (tmp_path / name).read_bytes() for name in listed(tmp_path)} == before


def first_weight(path: pathlib.Path) -> float:
    return float(Session(str(path)).run({})[0][0, 0])


@pytest.mark.parametrize("links", [True, False])
def test_pair_is_consistent_at_every_step(links: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    """Whenever the model can be loaded, its weights are its own: the old ones, or the new ones."""
    path = tmp_path / "m.onnx"
    save.write(handmade.identities({"w": BIG}), path, external_data=True)
    seen: list[Any] = []
    real = {name: getattr(os, name) for name in ("replace", "link")}

    def watch(name: str) -> Any:
        def step(*args: Any) -> None:
            if name == "link" and not links:
                raise OSError("no hard links here")
            look()
            real[name](*args)
            look()
        return step

    def look() -> None:
        try:
            seen.append(first_weight(path))
        except Exception:
            seen.append("fails aloud")

    monkeypatch.setattr(os, "replace", watch("replace"))
    monkeypatch.setattr(os, "link", watch("link"))
    save.write(handmade.identities({"w": BIG + 1}), path, external_data=True)
    assert seen[0] == 0
    assert seen[-1] == 1
    assert set(seen) <= ({0, 1} if links else {0, 1, "fails aloud"})
    assert listed(tmp_path) == ["m.onnx", "m.onnx.data"]
    assert loaded(path)["w"][0, 0] == 1
    onnx.checker.check_model(str(path))


@pytest.mark.skipif(sys.platform == "win32", reason="no lock of a folder there")
def test_two_at_once_do_not_share_a_pair(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "m.onnx"
    save.write(handmade.identities({"w": BIG}), path, external_data=True)
    steps: list[int] = []
    real = os.replace

    def replace(*args: Any) -> None:
        steps.append(threading.get_ident())
        time.sleep(0.02)  # time for the other to come between
        real(*args)

    monkeypatch.setattr(os, "replace", replace)
    writers = [threading.Thread(target=save.write, args=(handmade.identities({"w": BIG + k}), path), kwargs={"external_data": True})
               for k in (1, 2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [len(list(group)) for _, group in itertools.groupby(steps)] == [3, 3]
    assert first_weight(path) in (1, 2)
    assert listed(tmp_path) == ["m.onnx", "m.onnx.data"]


@pytest.mark.parametrize("step", range(4))
def test_interrupt_between_the_renames(step: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "m.onnx"
    save.write(handmade.identities({"w": BIG}), path, external_data=True)
    real, count = os.replace, iter(range(10))

    def replace(*args: Any) -> None:
        if next(count) == step:
            raise KeyboardInterrupt
        real(*args)

    monkeypatch.setattr(os, "replace", replace)
    if step < 3:
        with pytest.raises(KeyboardInterrupt):
            save.write(handmade.identities({"w": BIG + 1}), path, external_data=True)
    else:
        save.write(handmade.identities({"w": BIG + 1}), path, external_data=True)
    assert first_weight(path) == (0 if step == 0 else 1)
    assert len(listed(tmp_path)) == (2 if step in (0, 3) else 3)  # the bridge's data stays where the model refers to it


def in_a_new_process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = pathlib.Path(__file__).resolve().parent.parent
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, cwd=root)


FULL_DISK = """
import os, resource, signal, sys, torch
from onnxport import errors, save
from tests import handmade
path, external = sys.argv[1], sys.argv[2] == "True"
save.write(handmade.identities({"w": torch.zeros(10, 10)}), path, external_data=external, size_threshold=1)
before = {n: open(os.path.join(os.path.dirname(path), n), "rb").read() for n in os.listdir(os.path.dirname(path))}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save.write(handmade.identities({"w": torch.zeros(600, 500)}), path, external_data=external)
except errors.SaveError as error:
    assert isinstance(error.__cause__, OSError) and error.errno == error.__cause__.errno, error
    after = {n: open(os.path.join(os.path.dirname(path), n), "rb").read() for n in os.listdir(os.path.dirname(path))}
    assert before == after, (list(before), list(after))
    print("whole:", error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
@pytest.mark.parametrize("external", [False, True])
def test_no_room_for_the_file(external: bool, tmp_path: pathlib.Path):
    done = in_a_new_process(FULL_DISK, str(tmp_path / "m.onnx"), str(external))
    assert done.stdout.startswith("whole: cannot write"), done.stderr


PEAK = """
import sys, torch, threading, time
from onnxport import save
from tests import handmade
def status(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))
weights = {f"w{i}": torch.ones(2000, 2000) for i in range(12)}   # 12 of 16 MB
weights["t"] = torch.ones(4000, 4000).t()                        # 64 MB that has to be rearranged
model = handmade.identities(weights)
total = sum(w.numel() * 4 for w in weights.values())
save.write(handmade.identities({"w": torch.ones(2000, 2000).t()}), sys.argv[1] + "warm", external_data=sys.argv[2] == "True")
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
save.write(model, sys.argv[1], external_data=sys.argv[2] == "True")
save.check(model)
print((status("VmHWM") - before) / total)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux's peak memory counter")
@pytest.mark.parametrize("external", [False, True])
def test_no_second_copy_of_the_weights(external: bool, tmp_path: pathlib.Path):
    done = in_a_new_process(PEAK, str(tmp_path / "m.onnx"), str(external))
    assert float(done.stdout) < 0.25, done.stderr


@pytest.mark.slow
def test_over_two_gigabytes(tmp_path: pathlib.Path):
    """One tensor shared by all layers, so that memory is small and the file is not."""
    matrix = torch.eye(8192)
    layers = {f"w{i}": matrix[:] for i in range(9)}
    x = handmade.tensor_value("x", torch.float32, [1, 8192])
    weights = [handmade.weight(name, tensor) for name, tensor in layers.items()]
    y = x
    for i, w in enumerate(weights):
        y = handmade.node("MatMul", [y, w], f"y{i}", like=x)
    model = handmade.model([x], [y], weights)
    with pytest.raises(errors.SaveError, match="give a path"):
        save.write(model, io.BytesIO())
    save.check(model)
    save.write(model, tmp_path / "m.onnx")
    assert listed(tmp_path) == ["m.onnx", "m.onnx.data"]
    assert (tmp_path / "m.onnx.data").stat().st_size == 9 * 8192 * 8192 * 4
    (got,) = Session(str(tmp_path / "m.onnx")).run({"x": torch.arange(8192.0)[None]})
    assert torch.equal(got, torch.arange(8192.0)[None])


# ---------------------------------------------------------------------- the checker


def test_checker_passes_a_good_model():
    for opset, version in ((7, 3), (9, 4), (17, 8)):
        x = handmade.tensor_value("x", torch.float32, [1, 600])
        w = handmade.weight("w", BIG)
        y = handmade.node("MatMul", [x, w], "y")
        y.type, y.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([1, 500])
        save.check(handmade.model([x, w] if version < 4 else [x], [y], [w], opset=opset, ir_version=version))


def test_checker_names_what_is_wrong():
    x = handmade.tensor_value("x", torch.float32, [1])
    y = handmade.node("NoSuchOperator", [x], "y", like=x)
    with pytest.raises(errors.CheckerError, match="NoSuchOperator"):
        save.check(handmade.model([x], [y]))


def test_checker_reads_no_weights():
    def compute() -> torch.Tensor:
        raise AssertionError("read")

    model = handmade.identities({"w": BIG})
    model.graph.initializers["w"].const_value = Weight(Constant(None, compute=compute), ir.DataType.FLOAT, (600, 500), "w")
    save.check(model)
