"""The pass around the lift: IR version, initializers as inputs, and what it refuses at the door."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_migrate.passes.targets.runtime_opsets import RuntimeOpsets

import onnx_migrate
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model, random_feeds, run, same
from tests.steps import lift, operators, refuses
from tests.support.targets import targets_of

OLD = """8 ir3 (float[2,3] x, float[2,3] w) => (float[2,3] y) <float[2,3] w = {1.,2.,3.,4.,5.,6.}>
    { y = Softmax<axis=0>(w)  z = Add(x, y) }"""


def migrate(source, **options):  # type: ignore[no-untyped-def]
    log = ChangeLog()
    return make_pass("migrate_opset", **options).run(Model(source), log).proto, log


def test_the_ir_version_is_the_smallest_that_serves() -> None:
    source = model(OLD)
    for target, ir in ((9, 4), (11, 6), (13, 7), (17, 8), (21, 10)):
        result, _ = lift(source, target)
        assert result.ir_version == ir


def test_initializers_are_unlisted_and_can_stay() -> None:
    result, log = migrate(model(OLD), opset=17)

    assert [value.name for value in result.graph.input] == ["x"]
    assert "unlisted" in [note.code for note in log.notes]
    kept, _ = migrate(model(OLD), opset=17, unlist=False)
    assert [value.name for value in kept.graph.input] == ["x", "w"]


def test_an_overridable_initializer_is_no_constant() -> None:
    text = "9 (float[1,1,2,2] x, float[4] s) => (float[1,1,a,b] y) <float[4] s = {1., 1., 2., 2.}> { y = Upsample(x, s) }"
    source = model(text)
    other = numpy_helper.to_array(source.graph.initializer[0]) * [1, 1, 2, 1]
    feeds = {**random_feeds(source), "s": other.astype("float32")}

    result, _ = lift(source, 13)

    same(run(source, feeds), run(result, feeds), "overridden scales")


@pytest.mark.parametrize(("newest", "reached"), [(17, 11), (10, 0)])
def test_a_target_without_upsample_gets_the_first_opset_that_can_write_it(newest: int, reached: int) -> None:
    """Resize-10 cannot round down on an axis that may shrink, Resize-11 can."""
    source = model("9 (float[1,1,3,2] x, float[4] s) => (float[1,1,a,b] y) { y = Upsample(x, s) }")
    targets = targets_of(
        f'newer = "tried"\noperators = "listed"\n[[release]]\nopset = {newest}\n[[operator]]\nnames = ["Resize"]'
    )
    if not reached:
        with pytest.raises(CannotMigrate, match="Resize-10 rounds up"):
            migrate(source, opset=9, bounds=RuntimeOpsets(targets))
        return
    result, _ = migrate(source, opset=9, bounds=RuntimeOpsets(targets))

    assert result.opset_import[0].version == reached
    feeds = {"x": random_feeds(source)["x"], "s": np.array([1, 1, 1, 2], np.float32)}
    same(run(source, feeds), run(result, feeds), "scales of a call")


def test_an_opset_that_does_not_exist() -> None:
    for opset in (0, -1, 1000):
        with pytest.raises(UsageError) as caught:
            migrate(model(OLD), opset=opset)
        assert caught.value.code == "no-such-opset"


CLIP = "9 (float[2] x) => (float[2] y) { y = Clip <min = 0.0> (x) }"


@pytest.mark.parametrize(
    ("text", "versions", "code"),
    [
        (CLIP, (17, 9), "ambiguous-opset"),
        (CLIP.replace("Clip <min = 0.0>", "Neg"), (8, 9), "repeated-import"),
    ],
)
def test_one_domain_at_two_versions(text: str, versions: tuple[int, int], code: str) -> None:
    """The last import holds, as in ONNX Runtime, which runs the source."""
    source = model(text)
    source.opset_import[0].version = versions[0]
    source.opset_import.append(helper.make_opsetid("ai.onnx", versions[1]))

    result = onnx_migrate.migrate(source, opset=18, simplify=False)

    assert code in [note.code for note in result.report.notes]
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "verified"
    assert [(item.domain, item.version) for item in result.model.opset_import] == [("ai.onnx", 18)]


def test_initializers_that_are_listed_on_purpose_stay_listed() -> None:
    source = model(
        "17 (float[2] x, float[2] a) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {3, 4}> { c = Add(x, a) y = Add(c, b) }"
    )

    result, log = migrate(source, opset=17)

    assert [value.name for value in result.graph.input] == ["x", "a"]
    assert "overridable" in [note.code for note in log.notes]
    source.graph.input.append(helper.make_tensor_value_info("b", 1, [2]))
    assert [value.name for value in migrate(source, opset=17)[0].graph.input] == ["x"]


def test_a_model_of_another_domain_alone() -> None:
    graph = helper.make_graph(
        [helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.5)],
        "g",
        [helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info("y", 1, [2])],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8)
    before = source.SerializeToString()

    result, _ = migrate(source, opset=17)

    assert result.SerializeToString() == before


def test_a_model_at_the_target_is_left_alone() -> None:
    source, _ = migrate(model(OLD), opset=17)
    before = source.SerializeToString()

    result, log = migrate(source, opset=17)

    assert result.SerializeToString() == before
    assert not log.changes
    assert not log.notes


def test_a_newer_model_is_refused_or_stays_where_it_may() -> None:
    source, _ = migrate(model(OLD), opset=19)

    with pytest.raises(CannotMigrate) as caught:
        migrate(source, opset=17)
    assert caught.value.code == "downgrade"
    result, _ = migrate(source, opset=17, newer="keep")
    assert [entry.version for entry in result.opset_import] == [19]
    older, _ = migrate(model(OLD), opset=17, newer="keep")
    assert [entry.version for entry in older.opset_import] == [17]


@pytest.mark.parametrize(
    ("opset", "body", "operator"),
    [
        (13, "<float[4] s = {1., 1., 2., 2.}> { y = Upsample (x, s) }", "Resize"),
        (11, "<int64[1] axes = {0}> { s = Softmax <axis = 1> (x) y = Relu (s) }", "Softmax"),
    ],
)
def test_a_node_of_another_version_is_lifted_at_the_target_too(opset: int, body: str, operator: str) -> None:
    result, log = lift(f"{opset} (float[1,1,2,2] x) => (float[a,b,c,d] y) {body}", opset)
    assert operator in operators(result)
    assert [note.code for note in log.notes] == (["other-version"] if operator == "Resize" else [])


def test_a_node_that_is_not_valid_is_refused_at_the_target_too() -> None:
    refuses("invalid-node", lift, "13 (float[4] x) => (float[4] y) { y = Relu <a = 1> (x) }", 13)
