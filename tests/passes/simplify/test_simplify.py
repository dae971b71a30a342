"""onnxsim behind its guard: what it may change, what is put back, and when it is left out."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnx_migrate
from onnx_migrate.engine.pass_registry import builtin_passes, make_pass
from onnx_migrate.errors import PassError
from onnx_migrate.files import inline, load
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import mark_external
from onnx_migrate.process import Limits
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model, random_feeds, run, same
from tests.steps import operators

TEXT = """<ir_version: 8, opset_import: ["":17], producer_name: "maker", model_version: 7, doc_string: "words">
g (float[N,3] x) => (float[N,3] y) <float[1] w = {2.}, float[1] v = {3.}> {
  k = Mul(w, v)  a = Mul(x, k)  b = Identity(a)  y = Relu(b)
}"""


def simplify(source: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    item = make_pass("simplify", isolated=False, **options)
    return inline(item.run(load(source), ChangeLog()))


def dims(value: onnx.ValueInfoProto) -> list[str | int]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_inner_values_get_no_symbols_that_they_did_not_have() -> None:
    """A reader such as tract takes each for a length of its own, which is not the 1 that a caller gives the input."""
    source = model(TEXT)
    source.graph.value_info.append(helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, ["N", 3]))

    result = simplify(source)

    found = {value.name: dims(value) for value in result.graph.value_info}
    assert found.pop("b", ["N", 3]) == ["N", 3]
    assert found
    assert all(isinstance(dim, int) for known in found.values() for dim in known)
    assert dims(result.graph.input[0]) == dims(result.graph.output[0]) == ["N", 3]


def test_constants_are_folded_and_the_rest_stays() -> None:
    source = model(TEXT)
    source.metadata_props.add(key="k", value="v")
    source.graph.input[0].type.denotation = "IMAGE"
    source.graph.quantization_annotation.add(tensor_name="y")

    result = simplify(source)

    assert operators(result) == ["Mul", "Relu"]
    same(run(source, random_feeds(source)), run(result, random_feeds(source)), "simplified")
    for field in (
        "producer_name",
        "model_version",
        "doc_string",
        "metadata_props",
        "opset_import",
        "ir_version",
    ):
        assert getattr(result, field) == getattr(source, field), field
    assert result.graph.input == source.graph.input
    assert result.graph.output == source.graph.output
    assert result.graph.quantization_annotation == source.graph.quantization_annotation


FUSED = {
    "linear": """17 (float[1,5,4] x) => (float[1,5,3] y) <float[4,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3},
        float[3] b = {1, 2, 3}> { a = MatMul (x, w) y = Add (a, b) }""",
    "Pad and AveragePool": """17 (float[1,1,4,4] x) => (float[1,1,4,4] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> {
        a = Pad (x, p) y = AveragePool <kernel_shape = [3, 3]> (a) }""",
    "GRU with zeros at first": """17 (float[2,1,1] x) => (float[2,1,1,1] y) <float[1,3,1] w = {1, 2, 3},
        float[1,3,1] r = {1, 2, 3}, float[1,6] b = {1, 2, 3, 4, 5, 6}, float[1,1,1] h = {0}> {
        y = GRU <hidden_size = 1> (x, w, r, b, , h) }""",
}
"""Nodes that onnxsim writes in another form, which OpenCV 4.8 does not load or computes with other numbers."""


@pytest.mark.parametrize("name", FUSED)
def test_for_a_runtime_nodes_keep_their_forms(name: str) -> None:
    source = model(FUSED[name])
    source.graph.initializer.append(helper.make_tensor("k", 1, [1], [1.5]))
    source.graph.node.append(helper.make_node("Mul", ["k", "k"], ["folded"]))
    source.graph.node.append(helper.make_node("Mul", ["y", "folded"], ["z"]))
    source.graph.output[0].name = "z"

    result = onnx_migrate.migrate(source, opset=17, runtime="opencv==4.8", verify="require").model

    assert [(node.op_type, len(node.input)) for node in result.graph.node] == [
        (node.op_type, len(node.input)) for node in source.graph.node if node.output[0] != "folded"
    ]


def normalised(dtype: type[np.floating[Any]], *, constants: bool) -> onnx.ModelProto:
    """Return a model of a Conv and a BatchNormalization with weights of a type, in initializers or Constants."""
    rng = np.random.default_rng(0)
    shapes = {"w": (4, 3, 3, 3), "scale": (4,), "bias": (4,), "mean": (4,), "var": (4,)}
    weights = {
        name: numpy_helper.from_array((rng.random(shape) + 0.1).astype(dtype), name)
        for name, shape in shapes.items()
    }
    kind = "float" if dtype is np.float32 else "float16"
    source = model(f"""<ir_version: 8, opset_import: ["":17]> g ({kind}[1,3,8,8] x) => ({kind}[1,4,6,6] y) {{
      a = Conv (x, w)  y = BatchNormalization (a, scale, bias, mean, var) }}""")
    nodes = [helper.make_node("Constant", [], [name], value=tensor) for name, tensor in weights.items()]
    if constants:
        source.graph.node.extend(reversed(nodes))
        source.graph.node.sort(key=lambda node: node.op_type != "Constant")
    else:
        source.graph.initializer.extend(weights.values())
    return source


@pytest.mark.parametrize("constants", [False, True])
def test_batch_normalization_of_float16_is_not_fused(constants: bool) -> None:
    """Fused, the weights of the Conv would be rounded to float16 once more."""
    source = normalised(np.float16, constants=constants)

    assert "BatchNormalization" in operators(simplify(source))
    assert operators(simplify(source, fuse_narrow=True)) == ["Conv"]
    assert operators(simplify(normalised(np.float32, constants=constants))) == ["Conv"]


def test_what_is_brought_to_float16_is_fused() -> None:
    result = onnx_migrate.migrate(normalised(np.float32, constants=False), precision="fp16").model

    assert "BatchNormalization" not in operators(result)


def test_where_there_is_nothing_to_do_nothing_is_done() -> None:
    once = load(simplify(model(TEXT)))
    log = ChangeLog()
    assert make_pass("simplify", isolated=False).run(once, log) is once
    assert log.notes == []


def test_weights_that_are_computed_stay_computed() -> None:
    source = model(
        "17 (float[1,4] x) => (float[1,3000000] y) <int64[2] n = {4, 3000000}> { w = ConstantOfShape(n)  y = MatMul(x, w) }"
    )

    result = simplify(source)

    assert result.ByteSize() < 4096
    assert operators(result) == ["ConstantOfShape", "MatMul"]


def test_a_result_beyond_the_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxsim

    def bloat(proto: onnx.ModelProto, **options: object) -> tuple[onnx.ModelProto, bool]:
        proto.graph.initializer.append(numpy_helper.from_array(np.ones(1 << 20, np.float32), "fat"))
        return proto, True

    monkeypatch.setattr(onnxsim, "simplify", bloat)
    with pytest.raises(PassError, match=r"grow from .*; the limit is") as caught:
        simplify(model(TEXT))

    assert caught.value.code == "not-simplified"


def test_an_overridable_initializer_is_not_folded() -> None:
    source = model(TEXT)
    source.graph.input.append(helper.make_tensor_value_info("w", 1, [1]))

    with pytest.raises(PassError, match="callers can override it"):
        simplify(source)


def test_a_hang_ends(tmp_path: Path) -> None:
    item = make_pass("simplify", limits=Limits(seconds=0.01))

    with pytest.raises(PassError, match="timed out after"):
        item.run(load(model(TEXT)), ChangeLog())


def big(folder: Path) -> Path:
    """Write a model with folds that need small weights, a convolution's, and none of the largest; as external data."""
    source = model("""17 (float[1,3,3,3] x) => (float[1,20000] y) {
      c = Conv(x, w)  n = BatchNormalization(c, s, s, s, s)  r = Relu(n)  f = Flatten(r)  i = Identity(f)
      h = Mul(k, k)  m = MatMul(i, large)  a = Add(m, vector)  y = Mul(a, h)  }""")
    rng = np.random.default_rng(0)
    for name, shape in {
        "w": (8, 3, 3, 3),
        "s": (8,),
        "k": (1,),
        "large": (8, 20_000),
        "vector": (20_000,),
    }.items():
        value = rng.uniform(0.5, 1, shape).astype(np.float32)
        source.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.save(source, folder / "a.onnx", save_as_external_data=True, location="a.data", size_threshold=5000)
    return folder / "a.onnx"


def test_large_weights_are_not_read(tmp_path: Path) -> None:
    source = load(big(tmp_path))
    (tmp_path / "a.data").unlink()
    log = ChangeLog()

    result = make_pass("simplify", values_limit=1 << 16).run(source, log)

    assert operators(result.proto) == ["Conv", "Relu", "Flatten", "MatMul", "Add", "Mul"]
    assert [note.message for note in log.notes] == [
        "folded 1 node into constants (Mul 1), fused 1 BatchNormalization into Conv, removed nodes without effect (Identity 1)"
    ]
    references = {tensor.name: tensor for tensor in source.proto.graph.initializer}
    for name in ("large", "vector"):
        assert references[name] in result.proto.graph.initializer
    assert result.weights.memory == []
    assert result.proto.ByteSize() < 20_000


def test_a_model_of_which_some_weights_were_hidden_computes_the_same(tmp_path: Path) -> None:
    path = big(tmp_path)
    source = onnx.load(path)

    results = [
        inline(make_pass("simplify", values_limit=limit, isolated=False).run(load(given), ChangeLog()))
        for limit in (0, 1 << 12, 1 << 16)
        for given in (path, source, source.SerializeToString())
    ]

    for result in results:
        onnx.checker.check_model(result, full_check=True)
        same(run(source, random_feeds(source)), run(result, random_feeds(source)), "simplified", rtol=1e-5)


def test_what_did_not_fit_is_said(tmp_path: Path) -> None:
    log = ChangeLog()
    source = onnx.load(big(tmp_path))
    source.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((800, 3, 3, 3), np.float32), "w"))

    make_pass("simplify", values_limit=1 << 12, isolated=False).run(load(source), log)

    note = next(note for note in log.notes if note.code == "not-folded")
    assert note.subject == "w"
    assert "at most 4,096 bytes" in note.message


def test_by_default_more_than_128_mb_are_not_read(tmp_path: Path) -> None:
    source = model("17 (float[N,1] x) => (float[N,M] y) { i = Identity(x)  y = MatMul(i, w) }")
    tensor = source.graph.initializer.add(name="w", dims=[1, 40_000_000], data_type=1)
    mark_external(tensor, "a.data", 0, 160_000_000)
    onnx.save(source, tmp_path / "a.onnx")
    with (tmp_path / "a.data").open("wb") as data:
        data.truncate(160_000_000)
    given = load(tmp_path / "a.onnx")
    (tmp_path / "a.data").unlink()

    result = make_pass("simplify", isolated=False).run(given, ChangeLog())

    assert operators(result.proto) == ["MatMul"]
    assert result.proto.graph.initializer[0] == given.proto.graph.initializer[0]


@pytest.mark.parametrize(("opset", "left"), [(8, ["f", "was", "y"]), (9, ["f", "was", "i", "y"])])
def test_integers_that_were_folded_are_initializers_below_opset_9(opset: int, left: list[str]) -> None:
    """Version 1 of Constant holds floats alone; what the model had stays as it was, and onnxsim writes some as Constants."""
    head = f"{opset} (float[2] x) => (float[4] y)"
    was = "was = Constant <value = int64[1] {1}> ()"
    before = model(f"{head} {{ {was} y = Tile (x, was) }}")
    after = model(
        f"{head} {{ f = Constant <value = float[1] {{1.}}> () {was} i = Constant <value = int64[1] {{2}}> () y = Tile (x, i) }}"
    )

    importlib.import_module("onnx_migrate.passes.simplify.simplify")._move_constants(after, before)

    assert [node.output[0] for node in after.graph.node] == left
    assert [(item.name, item.int64_data or item.raw_data) for item in after.graph.initializer] == (
        [("i", [2])] if opset < 9 else []
    )


NESTED = """<ir_version: 8, opset_import: ["": 16]>
g (float[2,1,4] x, bool c, bool d) => (float[2,1,1,4] y) <float[1,16,4] w = {WEIGHTS}, int64[1] a = {1}> {
  y = If (c) <
    then_branch = t () => (float[2,1,1,4] p) {
      p = If (d) <
        then_branch = tt () => (float[2,1,1,4] p1) {
          s = Shape (x)
          one = Constant <value = int64 {1}> ()
          b = Gather (s, one)
          ax = Constant <value = int64[1] {0}> ()
          u = Unsqueeze (b, ax)
          n = Constant <value = int64[1] {1}> ()
          size = Constant <value = int64[1] {4}> ()
          all = Concat <axis = 0> (n, u, size)
          z = ConstantOfShape <value = float[1] {0}> (all)
          p1, h1, c1 = LSTM <hidden_size = 4> (x, w, w, , , z, z)
        },
        else_branch = te () => (float[2,1,1,4] p2) { p2 = Unsqueeze (x, a) }
      >
    },
    else_branch = e () => (float[2,1,1,4] q) { q = Unsqueeze (x, a) }
  >
}""".replace("WEIGHTS", ", ".join(["0.1"] * 64))


def test_a_second_run_changes_nothing_in_nested_branches() -> None:
    """onnxsim drops the state of zeros from the LSTM and leaves what computed it."""
    once = onnx_migrate.migrate(model(NESTED), verify="off")
    assert "simplified" in {note.code for note in once.report.notes}

    twice = onnx_migrate.migrate(once.model, verify="off")

    assert twice.report.outcome == "unchanged"
    assert not twice.report.notes


def test_a_large_constant_in_a_branch_is_not_another_one_because_it_is_stored_elsewhere() -> None:
    proto = model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1100] x, bool c) => (float[1100] y) {'
        " y = If (c) <then_branch = t () => (float[1100] p) { k = Constant <value = float[1] {1}> () p = Add (x, k) },"
        " else_branch = e () => (float[1100] q) { q = Neg (x) }> }"
    )
    inner = proto.graph.node[0].attribute[0].g.node[0].attribute[0].t
    inner.CopyFrom(onnx.numpy_helper.from_array(np.arange(1100, dtype=np.float32)))

    once = onnx_migrate.migrate(proto, verify="off")
    twice = onnx_migrate.migrate(once.model, verify="off")

    assert twice.report.outcome == "unchanged"
    assert not twice.report.notes


@pytest.mark.parametrize("operator", ["Log", "Sqrt"])
def test_what_differs_outside_of_the_domain_is_left_out(operator: str) -> None:
    """onnxsim drops a monotonic function before ArgMax: negative numbers have no logarithm and no root."""
    proto = model(
        '<ir_version: 8, opset_import: ["": 17]>'
        f"g (float[2,5] x) => (int64[2,1] y) {{ l = {operator} (x) y = ArgMax <axis = 1> (l) }}"
    )

    found = onnx_migrate.migrate(proto, verify="require", isolated=False)

    assert [node.op_type for node in found.model.graph.node] == [operator, "ArgMax"]


def test_rounds_go_on_where_one_adds_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As onnxsim does that writes out a function, and folds what is in it when it is run again."""
    item = builtin_passes()["simplify"]
    counts = iter((3, 1))

    def once(self: object, given: Model, log: ChangeLog, **options: bool) -> Model:
        count = next(counts, 0)
        nodes = [helper.make_node("Neg", [f"v{at}"], [f"v{at + 1}"]) for at in range(count)]
        made = onnx.helper.make_model(helper.make_graph(nodes, "g", [], []))
        return load(made) if count else given

    monkeypatch.setattr(item, "_simplify", once)
    result = item(isolated=False).run(load(model(TEXT)), ChangeLog())  # type: ignore[call-arg]

    assert operators(result.proto) == ["Neg"]


def test_what_one_round_folds_and_lets_the_next_fold_is_folded_at_once() -> None:
    """The axes of a bias of opset 1 are computed, and once they are folded the bias fits the Conv."""
    proto = model(
        '<ir_version: 1, opset_import: ["": 1]>'
        "g (float[2,4,6,6] x, float[4,1,3,3] w, float[4] b) => (float[2,4,4,4] y)"
        f" <float[4,1,3,3] w = {{{', '.join(['0.5'] * 36)}}}, float[4] b = {{1, 2, 3, 4}}> {{"
        " c = Conv <kernel_shape = [3, 3], group = 4> (x, w)  y = Add <axis = 1, broadcast = 1> (c, b) }"
    )
    proto.ClearField("opset_import")

    once = onnx_migrate.migrate(proto, verify="off")

    assert operators(once.model) == ["Conv"]
    assert onnx_migrate.migrate(once.model, verify="off").report.outcome == "unchanged"
