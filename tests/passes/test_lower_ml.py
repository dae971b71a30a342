"""The pass that lowers ai.onnx.ml: each body from its own import, refusals with the nearest opset, ai.onnx beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, numpy_helper

import onnx_migrate
from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.engine.steps.lowering_registry import lowerings
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import operators, versions
from tests.harness import model, run, same_bits
from tests.passes.steps.forests import one_node

ML = "ai.onnx.ml"
ENCODER = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 4]> g (int64[N] x) => (string[N] y)
    { t = Abs (x)  y = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_strings = ["a", "b"]> (t) }"""
IN_FUNCTION = """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (int64[N] x) => (string[N] y) { y = local.Names (x) }
    <domain: "local", opset_import: ["": 17, "ai.onnx.ml": 4]> Names (a) => (b)
    { b = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_strings = ["a", "b"]> (a) }"""
FEEDS = {"x": np.array([0, 1, -1, 5])}


def lower_ml(source: onnx.ModelProto, **options: Any) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    return builtin_passes()["lower_ml"](**options).run(Model(model(source)), log).proto, log


def imports(owner: onnx.ModelProto | onnx.FunctionProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in owner.opset_import}


def test_every_step_is_registered() -> None:
    known = {
        (name, version) for domain, name in operators() if domain == ML for version in versions(ML, name)
    }
    found = {(step.operator, step.leaves) for step in lowerings() if step.domain == ML}
    valid = {(name, version) for name, version in known if not defs.get_schema(name, version, ML).deprecated}
    assert found == {(name, version) for name, version in valid if version > 1}


@pytest.mark.parametrize("opset", [3, 2, 1])
def test_the_graph_is_lowered_and_the_other_domain_stays(opset: int) -> None:
    source = model(ENCODER)

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
    result, log = lower_ml(model(ENCODER), opset=opset)
    assert result == model(ENCODER)
    assert not log.notes
    assert not log.changes


def test_the_second_time_nothing_is_left_to_do() -> None:
    once, _ = lower_ml(model(ENCODER), opset=2)
    twice, log = lower_ml(once, opset=2)
    assert twice == once
    assert not log.changes


def test_there_is_no_opset_0() -> None:
    with pytest.raises(UsageError) as caught:
        lower_ml(model(ENCODER), opset=0)
    assert caught.value.code == "no-such-opset"


def test_a_refusal_names_the_nearest_opset() -> None:
    """LabelEncoder-1 has one list of strings and counts from 0, which is no place for other keys."""
    source = model(
        ENCODER.replace("keys_int64s = [0, 1]", "keys_floats = [0.5, 1.5]").replace(
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
    migration = onnx_migrate.migrate(model(ENCODER), opset={"ai.onnx": 15, ML: 2}, simplify=False)
    assert imports(migration.model) == {"": 15, ML: 2}
    assert migration.report.verification is not None
    assert migration.report.verification.kind.value == "verified"
