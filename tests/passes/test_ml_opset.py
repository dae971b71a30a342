"""The opset of ai.onnx.ml, up and down."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, numpy_helper

import onnx_migrate
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import operators, versions
from tests.harness import model, run, same, same_bits
from tests.passes.steps.forests import one_node

ML = "ai.onnx.ml"
ENCODER = """<ir_version: 8, opset_import: ["": 11, "ai.onnx.ml": 1]> g (int64[N] x) => (string[N] y)
    { t = Abs (x)  y = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b"]> (t) }"""
FEEDS = {"x": np.array([0, 1, -1, 5])}


def migrate_ml(source: onnx.ModelProto, **options: Any) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    return make_pass("migrate_ml", **options).run(Model(source), log).proto, log


def imports(owner: onnx.ModelProto | onnx.FunctionProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in owner.opset_import}


def test_every_step_is_registered() -> None:
    known = {(name, to) for domain, name in operators() if domain == ML for to in versions(ML, name)[1:]}
    found = {(step.operator, step.version) for step in steps(Direction.UP) if step.domain == ML}
    assert known <= found
    assert {step.version for step in steps(Direction.UP) if step.domain == ML} <= {2, 3, 4, 5}
    assert {step.domain for step in steps(Direction.UP)} == {"", ML}


def test_by_default_it_stays() -> None:
    source = model(ENCODER)
    result = onnx_migrate.migrate(source, opset=17, simplify=False).model
    assert imports(result) == {"": 17, ML: 1}
    assert result.graph.node[1] == source.graph.node[1]


@pytest.mark.parametrize(
    ("opset", "expected"),
    [
        ({"ai.onnx": 17, ML: 3}, {"": 17, ML: 3}),
        ({"": "latest", ML: "latest"}, {"": onnx.defs.onnx_opset_version(), ML: 5}),
        ({ML: "4"}, {"": 11, ML: 4}),
        ("17,ai.onnx.ml=3", {"": 17, ML: 3}),
        ("ai.onnx.ml=latest, ai.onnx=13", {"": 13, ML: 5}),
        ({"ai.onnx": 13}, {"": 13, ML: 1}),
    ],
)
def test_each_domain_goes_where_it_is_asked_to(
    opset: str | dict[str, int | str], expected: dict[str, int]
) -> None:
    source = model(ENCODER)
    result = onnx_migrate.migrate(source, opset=opset, simplify=False, verify=False).model
    assert imports(result) == expected
    if expected[""] < 27:  # beyond, ONNX Runtime stops and onnx.reference has not this form of LabelEncoder
        same(run(source, FEEDS), run(result, FEEDS), str(opset))


def test_it_is_verified_and_reported() -> None:
    migration = onnx_migrate.migrate(model(ENCODER), opset={"ai.onnx": 17, ML: 4})
    assert "ml-opset" in [note.code for note in migration.report.notes]
    assert [str(change.where) for change in migration.report.changes] == ["'y' (LabelEncoder-1 → 4)"]
    assert migration.report.verification is not None
    assert migration.report.verification.kind.value == "verified"


@pytest.mark.parametrize("opset", [{}, {"ai.onnx.preview": 1}, {"": 17, "com.microsoft": 1}, "17,foo=1"])
def test_other_domains_cannot_move(opset: str | dict[str, int]) -> None:
    with pytest.raises(UsageError, match="names no opset of a domain that can be migrated"):
        onnx_migrate.migrate(model(ENCODER), opset=opset)


@pytest.mark.parametrize(("to", "ir"), [(2, 8), (3, 8), (4, 9), (5, 10)])
def test_the_ir_version_is_the_smallest_that_will_do(to: int, ir: int) -> None:
    source = model(ENCODER)
    result, log = migrate_ml(source, opset=to)
    assert result.ir_version == ir
    assert ("ir-version" in [note.code for note in log.notes]) == (ir > 8)


def test_a_function_is_lifted_from_its_own_import() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 2, "local": 1]>
g (int64[N] x) => (string[N] y) { y = local.Name (x) }
<domain: "local", opset_import: ["ai.onnx.ml": 1]> Name (a) => (b)
{ b = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b"]> (a) }""")
    result, _ = migrate_ml(source, opset=2)
    assert imports(result.functions[0]) == {ML: 2}
    assert imports(result)[ML] == 2
    expected = np.array(["a", "b", "_Unused", "_Unused"], object)
    same([expected], run(result, FEEDS), "function")


def test_a_local_function_of_an_operators_name_is_no_operator() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 1]>
g (float[N] x) => (float[N] y) { y = ai.onnx.ml.LabelEncoder <anything = 3> (x) }
<domain: "ai.onnx.ml", opset_import: ["": 17]> LabelEncoder <anything> (a) => (b) { b = Neg (a) }""")
    result, log = migrate_ml(source, opset=4)
    assert not log.changes
    assert result.graph.node[0].attribute[0].name == "anything"


def test_a_model_at_the_target_or_without_the_domain_is_left_alone() -> None:
    for text, to in (
        (ENCODER, 1),
        (ENCODER.replace('"ai.onnx.ml": 1', '"local": 1').replace("ai.onnx.ml.", "local."), 4),
    ):
        source = model(text)
        before = source.SerializeToString(deterministic=True)
        result, log = migrate_ml(source, opset=to)
        assert result.SerializeToString(deterministic=True) == before
        assert not log.notes


def test_the_form_of_another_version_is_recognised() -> None:
    source = model(
        ENCODER.replace('classes_strings = ["a", "b"]', 'keys_int64s = [0, 1], values_strings = ["a", "b"]')
    )
    result, log = migrate_ml(source, opset=4)
    assert "other-version" in [note.code for note in log.notes]
    assert [note.pass_name for note in log.notes if note.code == "other-version"] == ["migrate_ml"]
    plain, _ = migrate_ml(model(ENCODER), opset=4)
    same(run(plain, FEEDS), run(result, FEEDS), "other version")


def test_an_operator_it_never_had() -> None:
    source = model(ENCODER.replace("LabelEncoder", "LabelDecoder"))
    with pytest.raises(CannotMigrate, match=r"ai\.onnx\.ml has no operator LabelDecoder") as caught:
        migrate_ml(source, opset=4)
    assert caught.value.code == "unknown-operator"


def test_an_older_target_and_one_that_does_not_exist() -> None:
    with pytest.raises(CannotMigrate) as caught:
        migrate_ml(model(ENCODER.replace('"ai.onnx.ml": 1', '"ai.onnx.ml": 4')), opset=3)
    assert caught.value.code == "downgrade"
    kept, _ = migrate_ml(model(ENCODER.replace('"ai.onnx.ml": 1', '"ai.onnx.ml": 4')), opset=3, newer="keep")
    assert [entry.version for entry in kept.opset_import if entry.domain == "ai.onnx.ml"] == [4]
    with pytest.raises(UsageError) as usage:
        migrate_ml(model(ENCODER), opset=99)
    assert usage.value.code == "no-such-opset"


def test_labels_behind_an_operator_that_onnx_does_not_know() -> None:
    """onnx's inference would kill the process, of the migration and of the verification."""
    source = model("""<ir_version: 8, opset_import: ["": 11, "ai.onnx.ml": 1, "com.microsoft": 1]>
g (float[6] x) => (string[N] y) {
  values, index, counts = com.microsoft.Unique (x)
  y = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b", "c"]> (index)
}""")
    migration = onnx_migrate.migrate(source, opset=17, simplify=False)
    assert migration.report.verification is not None
    assert migration.report.verification.kind.value == "verified"


DOWN_ENCODER = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 4]> g (int64[N] x) => (string[N] y)
    { t = Abs (x)  y = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_strings = ["a", "b"]> (t) }"""
IN_FUNCTION = """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (int64[N] x) => (string[N] y) { y = local.Names (x) }
    <domain: "local", opset_import: ["": 17, "ai.onnx.ml": 4]> Names (a) => (b)
    { b = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_strings = ["a", "b"]> (a) }"""


def lower_ml(source: onnx.ModelProto, **options: Any) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    return make_pass("lower_ml", **options).run(Model(model(source)), log).proto, log


def test_every_step_is_registered_down() -> None:
    known = {
        (name, version) for domain, name in operators() if domain == ML for version in versions(ML, name)
    }
    found = {(step.operator, step.version) for step in steps(Direction.DOWN) if step.domain == ML}
    valid = {(name, version) for name, version in known if not defs.get_schema(name, version, ML).deprecated}
    assert found == {(name, version) for name, version in valid if version > 1}


@pytest.mark.parametrize("opset", [3, 2, 1])
def test_the_graph_is_lowered_and_the_other_domain_stays(opset: int) -> None:
    source = model(DOWN_ENCODER)

    result, log = lower_ml(source, opset=opset)

    assert imports(result) == {"": 17, ML: opset}
    assert result.graph.node[0] == source.graph.node[0]
    assert [note.message for note in log.notes if note.code == "ml-opset"] == [f"{ML} 4 became {opset}"]
    same_bits(run(source, FEEDS), run(result, FEEDS), str(opset))


def test_a_function_is_lowered_from_its_own_import() -> None:
    source = model(IN_FUNCTION)

    result, _ = lower_ml(source, opset=2)

    assert imports(result) == {"": 17, "local": 1}
    assert imports(result.functions[0]) == {"": 17, ML: 2}
    same_bits(run(source, FEEDS), run(result, FEEDS), "function")


def test_a_body_that_is_older_than_the_target_stays() -> None:
    source = model(
        IN_FUNCTION.replace('"local": 1', '"local": 1, "ai.onnx.ml": 4').replace(
            '["": 17, "ai.onnx.ml": 4]> Names', '["": 17, "ai.onnx.ml": 2]> Names'
        )
    )

    result, _ = lower_ml(source, opset=3)

    assert imports(result)[ML] == 3
    assert result.functions[0] == source.functions[0]


@pytest.mark.parametrize("opset", [4, 5])
def test_an_older_model_stays_as_it_is(opset: int) -> None:
    result, log = lower_ml(model(DOWN_ENCODER), opset=opset)
    assert result == model(DOWN_ENCODER)
    assert not log.notes
    assert not log.changes


def test_the_second_time_nothing_is_left_to_do() -> None:
    once, _ = lower_ml(model(DOWN_ENCODER), opset=2)
    twice, log = lower_ml(once, opset=2)
    assert twice == once
    assert not log.changes


def test_there_is_no_opset_0() -> None:
    with pytest.raises(UsageError) as caught:
        lower_ml(model(DOWN_ENCODER), opset=0)
    assert caught.value.code == "no-such-opset"


def test_a_refusal_names_the_nearest_opset() -> None:
    """LabelEncoder-1 has one list of strings and counts from 0, which is no place for other keys."""
    source = model(
        DOWN_ENCODER.replace("keys_int64s = [0, 1]", "keys_floats = [0.5, 1.5]").replace(
            "int64[N] x", "float[N] x"
        )
    )
    lower_ml(source, opset=2)
    with pytest.raises(CannotMigrate, match=r"opset 2 of ai\.onnx\.ml can be reached") as caught:
        lower_ml(source, opset=1)
    assert caught.value.where is not None
    assert caught.value.where.operator == "LabelEncoder"
    assert (caught.value.where.from_version, caught.value.where.to_version) == (4, 1)


def test_a_body_without_ai_onnx_imports_it_for_the_nodes_that_are_written() -> None:
    """A Cast: LabelEncoder-2 takes no int32."""
    source = one_node(
        "LabelEncoder",
        {
            "keys_tensor": numpy_helper.from_array(np.array([5, -3], np.int32)),
            "values_tensor": numpy_helper.from_array(np.array([7, 8], np.int64)),
            "default_tensor": numpy_helper.from_array(np.array([9], np.int64)),
        },
        {"y": (TensorProto.INT64, ["N"])},
        version=4,
        dtype=TensorProto.INT32,
        shape=("N",),
        opset=None,
    )

    result, _ = lower_ml(source, opset=2, beside=15)

    assert imports(result) == {ML: 2, "": 15}
    assert run(result, {"x": np.array([5, -3, 0], np.int32)})[0].tolist() == [7, 8, 9]


def test_it_is_asked_for_with_the_domain_and_verified() -> None:
    migration = onnx_migrate.migrate(model(DOWN_ENCODER), opset={"ai.onnx": 15, ML: 2}, simplify=False)
    assert imports(migration.model) == {"": 15, ML: 2}
    assert migration.report.verification is not None
    assert migration.report.verification.kind.value == "verified"
