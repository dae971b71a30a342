"""Models cut at named values: the parts, their types and weights, and what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate import files, migrate
from onnx_migrate.errors import CannotMigrate, MigrateError, UsageError, VerificationFailed
from onnx_migrate.model.graphs import producers
from onnx_migrate.rewrite import part as parts
from onnx_migrate.rewrite.part import cut
from tests.harness import model
from tests.support.targets import targets_of

TWO = """17 (float[N,4] x, float[N,4] q) => (float[N,4] y, float[N,4] z)
  <float[4] w = {1.,2.,3.,4.}, float[4] v = {2.,2.,2.,2.}> {
  [relu] a = Relu (x) [mul] b = Mul (a, w) [sig] c = Sigmoid (b) [add] y = Add (c, a) [neg] z = Mul (q, v)
}"""
BRANCHES = """17 (float[4] x, bool p) => (float[4] y) {
  a = Relu (x) b = Sigmoid (a)
  y = If (p) <then_branch = t () => (float[4] s) { [inside] i = Neg (b) s = Add (i, a) },
              else_branch = e () => (float[4] r) { r = Neg (a) }>
}"""
DETECTOR = """17 (float[1,6,4] boxes, float[1,1,6] logits) => (int64[n,3] kept) <int64[1] most = {5}> {
  s = Sigmoid (logits) b = Relu (boxes) [nms] found = NonMaxSuppression (b, s, most) [last] kept = Identity (found)
}"""
LISTED = targets_of(
    'operators = "listed"\n[[release]]\nopset = 17\n[[operator]]\nnames = ["Relu", "Sigmoid", "Identity"]\n'
)


def run(proto: onnx.ModelProto, feed: dict[str, Any]) -> dict[str, Any]:
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = {value.name: feed[value.name] for value in session.get_inputs()}
    return dict(zip(names, session.run(names, wanted), strict=True))


def names(values: Any) -> list[str]:
    return [value.name for value in values]


def test_the_part_before_an_output_keeps_what_it_reads_alone() -> None:
    migration = migrate(model(TWO), outputs="c")
    graph = migration.model.graph

    assert (names(graph.input), names(graph.output), names(graph.initializer)) == (["x"], ["c"], ["w"])
    assert [dim.dim_param or dim.dim_value for dim in graph.output[0].type.tensor_type.shape.dim] == ["N", 4]
    assert migration.report.verified
    assert any(
        "bit for bit what the whole model does" in note for note in migration.report.verification.notes
    )
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    expected = 1 / (1 + np.exp(-np.maximum(x, 0) * np.arange(1, 5, dtype=np.float32)))
    np.testing.assert_allclose(run(migration.model, {"x": x})["c"], expected, rtol=1e-6)


def test_the_part_behind_an_input_has_the_outputs_that_depend_on_it_and_keeps_other_inputs() -> None:
    graph = migrate(model(TWO), inputs=["b"], simplify=False).model.graph

    assert (names(graph.input), names(graph.output)) == (["b", "x"], ["y"])
    assert [node.op_type for node in graph.node] == ["Relu", "Sigmoid", "Add"]


def test_a_node_of_which_another_output_is_needed_stays() -> None:
    source = model("17 (float[4] x) => (float[2] y) { a, b = Split (x) c = Relu (a) y = Add (c, b) }")
    graph = migrate(source, inputs="a", simplify=False).model.graph

    assert names(graph.input) == ["a", "x"]
    assert list(graph.node[0].output) == ["a_computed", "b"]


def test_outputs_that_spare_the_rest_from_computing_the_first_part_again_are_named() -> None:
    said = [
        note.message
        for note in migrate(model(TWO), outputs="c", cut=True).report.notes
        if note.subject == "rest"
    ]
    spared = migrate(model(TWO), outputs="c,a", cut=True)

    assert (
        said[1] == "the rest computes 1 node of the first part again; it does not with --extract-outputs c,a"
    )
    assert [node.op_type for node in spared.rest.graph.node] == ["Add", "Mul"]
    assert not [note for note in spared.report.notes if "again" in note.message]


def test_values_that_branches_read_are_cut_too() -> None:
    source = model(BRANCHES)
    behind = migrate(source, inputs="b", simplify=False).model

    assert names(behind.graph.input) == ["b", "x", "p"]
    b = np.full(4, 3, np.float32)
    found = run(behind, {"b": b, "x": -np.ones(4, np.float32), "p": np.array(True)})
    np.testing.assert_array_equal(found["y"], -b)
    with pytest.raises(
        UsageError, match=r"'i' is no value of the main graph: .*\nHint: name an output of 'y'"
    ):
        migrate(source, outputs="i", verify=False)


def test_two_parts_are_the_whole() -> None:
    source = model(TWO)
    migration = migrate(source, outputs=["b,a"], cut=True)
    feed = {
        "x": np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32),
        "q": np.ones((3, 4), np.float32),
    }
    first = run(migration.model, feed)

    assert names(migration.rest.graph.input) == ["b", "a", "q"]
    joined = run(migration.rest, {**feed, **first})
    for name, value in run(source, feed).items():
        np.testing.assert_array_equal(joined[name], value)
    text = str(migration)
    assert "the two parts, one after the other, compute bit for bit what the whole model does" in text
    assert "the result with the rest behind it, compared with the whole model: verified" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": "aa"}, r"the model has no value 'aa'\nHint: did you mean a\?"),
        ({"outputs": "relu"}, r"'relu' is a node, and no value\nHint: its output is 'a'"),
        ({"outputs": "w"}, "'w' is a constant of the model"),
        ({"outputs": "x"}, "the output 'x' is an input of the model, so that nothing computes it"),
        ({"outputs": "b", "inputs": "b"}, "the output 'b' is an input of the part"),
        ({"outputs": "c", "inputs": "q"}, "no output of the part reads 'q'"),
        ({"outputs": ["a", "a"]}, "the name 'a' occurs twice"),
        ({"outputs": "y,z", "cut": True}, "nothing is behind 'y' and 'z'"),
        ({"cut": True}, "--split needs to know where"),
        ({"outputs": "a", "inputs": "x", "cut": True}, "--extract-inputs removes one"),
    ],
)  # fmt: skip
def test_what_cuts_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        migrate(model(TWO), **options, verify=False)


def test_an_output_without_an_input_is_refused() -> None:
    source = model(
        "17 (float[2] x) => (float[2] y) { k = Constant <value = float[2] {1., 2.}> () c = Neg (k) y = Add (x, c) }"
    )
    with pytest.raises(UsageError, match="the output 'c' depends on no input: it is a constant"):
        migrate(source, outputs="c", verify=False)


def test_a_value_of_unknown_type_is_refused_by_its_node() -> None:
    source = model(
        '<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2] x) => (float[2] y)'
        " { a = own.Odd (x) y = Relu (a) }"
    )
    with pytest.raises(
        CannotMigrate, match="element type is not known, as onnx does not infer what Odd 'a' computes"
    ) as error:
        cut(files.load(source), ["a"])
    assert error.value.code == "untyped-value"


def test_a_rank_that_follows_from_computed_shapes_is_declared() -> None:
    source = model(
        """11 (float[1,2,3,4] x) => (float[a,b,c] y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] minus = {-1}> {
        s = Shape (x) f = Slice (s, zero, two, zero) t = Concat <axis = 0> (f, minus) r = Reshape (x, t) y = Relu (r) }"""
    )
    cut_out = migrate(source, opset=11, outputs="r", simplify=False).model

    assert len(cut_out.graph.output[0].type.tensor_type.shape.dim) == 3
    onnx.checker.check_model(cut_out, full_check=True)


def test_a_sequence_can_be_cut_at() -> None:
    source = model(
        "17 (float[2] x) => (float[2] y) <int64 i = {0}> { s = SequenceConstruct (x, x) y = SequenceAt (s, i) }"
    )
    migration = migrate(source, outputs="s", cut=True, simplify=False)

    assert (
        migration.model.graph.output[0].type.sequence_type.elem_type.tensor_type.elem_type
        == TensorProto.FLOAT
    )
    assert migration.report.verified


def test_functions_that_the_part_does_not_call_are_left_out() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) { a = f.F (x) y = f.G (a) }
        <domain: "f", opset_import: ["": 17]> F (a) => (b) { b = Sin (a) }
        <domain: "f", opset_import: ["": 17]> G (a) => (b) { b = Neg (a) }"""
    )
    assert names(cut(files.load(source), ["a"]).proto.functions) == ["F"]


def test_what_a_runtime_does_not_take_is_cut_off() -> None:
    source = model(DETECTOR)
    with pytest.raises(CannotMigrate, match="--split writes both parts"):
        migrate(source, runtime=LISTED, verify=False)
    migration = migrate(source, runtime=LISTED, cut=True)

    assert names(migration.model.graph.output) == ["b", "s"]
    assert [node.op_type for node in migration.rest.graph.node] == ["NonMaxSuppression", "Identity"]
    assert migration.report.verified


def test_a_runtime_that_takes_the_model_gets_it_whole() -> None:
    migration = migrate(model("17 (float[2] x) => (float[2] y) { y = Relu (x) }"), runtime=LISTED, cut=True)

    assert migration.rest is None


def test_nothing_left_is_refused() -> None:
    source = model("17 (float[2] x) => (float[2] y) { a = Neg (x) y = Relu (a) }")
    with pytest.raises(CannotMigrate, match="has no Neg"):
        migrate(source, runtime=LISTED, cut=True)


def test_a_part_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(source: Any, outputs: Any, inputs: Any = ()) -> Any:
        part = cut(source, outputs, inputs)
        producers(part.proto.graph)["b"].op_type = "Add"
        return part

    monkeypatch.setattr("onnx_migrate.passes.parts.cut.cut", wrong)
    with pytest.raises(VerificationFailed, match="a part does not compute what the whole does: 'b' differs"):
        migrate(model(TWO), outputs="b", isolated=False)


def test_inputs_of_the_whole_serve_the_part() -> None:
    data = {"x": np.ones((1, 4), np.float32), "q": np.ones((1, 4), np.float32)}

    assert migrate(model(TWO), outputs="c", input_data=data).report.verified
    assert migrate(model(TWO), inputs="b", input_data={"b": data["x"], "x": data["x"]}).report.verified


def test_weights_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (1 << 31) + 4096
    with (tmp_path / "w").open("wb") as file:
        file.truncate(size)  # sparse: over 2 GB of zeros that take no room
    big = TensorProto(
        name="w", dims=[size // 4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL
    )
    for key, value in (("location", "w"), ("offset", "0"), ("length", str(size))):
        big.external_data.add(key=key, value=value)
    zero = numpy_helper.from_array(np.zeros(1, np.int64), "at")
    nodes = [
        helper.make_node("Gather", ["w", "i"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Gather", ["b", "at"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("i", TensorProto.INT64, [3])], [value("y", TensorProto.FLOAT, [1])], [big, zero]
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "m.onnx",
    )
    monkeypatch.setattr("onnx_migrate.model.weights.Weights.array", None)
    source = files.load(tmp_path / "m.onnx")

    assert cut(source, inputs=["a"]).weights.payload(big).length == size
    files.save(cut(source, inputs=["a"]), tmp_path / "small.onnx")
    assert (tmp_path / "small.onnx").stat().st_size < 1000


def test_every_name_of_a_text_is_meant_unless_it_is_a_name() -> None:
    proto = onnx.ModelProto()
    proto.graph.node.add(output=["a,b"])
    assert parts.named_values("a,b", proto) == ("a,b",)
    assert parts.named_values(["c, d", "a,b"], proto) == ("c", "d", "a,b")


def test_a_result_of_two_files_goes_to_no_stream(tmp_path: Path) -> None:
    migration = migrate(model(TWO), outputs="a", cut=True, verify=False)
    with (tmp_path / "m").open("wb") as file, pytest.raises(MigrateError, match="file"):
        migration.save(file)
