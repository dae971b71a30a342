"""Broken sources are refused with a code and a place; valid ones are not; results that are not valid are not returned."""

from __future__ import annotations

import onnx
import pytest

import onnx_migrate
from onnx_migrate.engine.validity import (
    accepted,
    check_result,
    note_older_ir,
    note_tolerated,
    settle_ir_version,
)
from onnx_migrate.errors import IllegalModel, InvalidModel, LoadError
from onnx_migrate.model.model import Model
from onnx_migrate.report.codes import CODES
from onnx_migrate.report.failure import exit_code
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import loads, model
from tests.support.bad_models import BadModel, bad_models, good_model

CASES = list(bad_models())


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 200
    assert len({case.code for case in CASES}) >= 20


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_model_is_refused_with_its_place_where_asked_to_be_strict(case: BadModel) -> None:
    with pytest.raises(LoadError) as caught:
        onnx_migrate.migrate(case.proto, opset=18, simplify=False, verify=False, strict=True)

    error = caught.value
    assert (error.code, exit_code(error)) == (case.code, 4), error
    assert error.code in CODES
    assert case.subject in str(error)
    if case.scope:
        assert error.where is not None
        assert error.where.scope == case.scope


@pytest.mark.long
def test_the_model_that_was_broken_is_valid() -> None:
    onnx.checker.check_model(good_model())
    result = onnx_migrate.migrate(good_model(), opset=18, simplify=False)

    assert result.report.verification is not None
    assert result.report.verification.kind.value == "verified"
    assert accepted(original := Model(good_model())) is original


VALID = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'


def test_a_result_that_is_not_valid_is_not_returned() -> None:
    result = model(VALID)
    result.graph.node[0].input[0] = "nowhere"

    with pytest.raises(IllegalModel, match="'nowhere', which no input"):
        check_result(Model(result), Model(model(VALID)))


def test_a_fault_that_the_original_has_is_not_blamed_on_the_migration() -> None:
    source = model(VALID.replace("Relu(x)", "Relu <slope = 1.0> (x)"))

    with pytest.raises(InvalidModel) as caught:
        check_result(Model(source), Model(source))

    assert caught.value.code == "invalid-node"


def test_a_result_is_checked_after_all_passes() -> None:
    def spoil(proto: onnx.ModelProto) -> None:
        proto.graph.node[0].op_type = "Shape"
        proto.graph.output[0].type.tensor_type.elem_type = 1

    with pytest.raises(onnx_migrate.MigrateError) as caught:
        onnx_migrate.migrate(model(VALID), opset=17, simplify=False, verify=False, passes=[spoil])

    assert caught.value.code == "illegal-result"


def test_what_runtimes_run_all_the_same_is_noted() -> None:
    source = model(VALID)
    source.graph.output[0].type.tensor_type.ClearField("shape")
    log = ChangeLog()

    note_tolerated(Model(source), log)

    assert [(note.code, note.subject) for note in log.notes] == [("tolerated", "output 'y'")]
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(source)
    assert onnx_migrate.migrate(source, opset=17, simplify=False).report.verification is not None


def test_a_value_that_came_later_is_read_as_that_version() -> None:
    """ScatterElements has the reduction max from 18 on: at the target 18 the model is valid, at 17 it is not."""
    source = model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) <int64[1] i = {1}, float[1] u = {2.}>'
        ' { y = ScatterElements <reduction = "max"> (x, i, u) }'
    )
    result = onnx_migrate.migrate(source, opset=18, simplify=False)
    assert "other-version" in [note.code for note in result.report.notes]
    with pytest.raises(InvalidModel, match="max") as caught:
        onnx_migrate.migrate(source, opset=17, simplify=False)
    assert caught.value.code == "no-such-value"


LOW = """<ir_version: 3, opset_import: ["": 8, "f": 1]> g (float[2] x) => (float[2] y) { y = f.F (x) }
<domain: "f", opset_import: ["": 8]> F (a) => (b) { b = Neg (a) }"""


def settled(result: onnx.ModelProto, original: onnx.ModelProto) -> tuple[int, list[str]]:
    log = ChangeLog()
    settle_ir_version(Model(result), Model(original), log)
    return result.ir_version, [note.message for note in log.notes]


def test_what_the_original_has_at_too_low_an_ir_version_is_noted_and_stays() -> None:
    source, log = model(LOW), ChangeLog()
    note_older_ir(Model(source), log)

    (note,) = log.notes
    assert note.code == "older-ir" in CODES
    assert note.message == (
        "the IR version is 3, and the model has local functions (since IR version 8; function f:F)"
    )
    assert settled(model(LOW), source) == (3, [])


def test_what_a_pass_wrote_raises_the_ir_version() -> None:
    result = model(LOW)
    result.functions[0].attribute_proto.append(onnx.helper.make_attribute("alpha", 0.5))

    assert settled(result, model(LOW)) == (
        9,
        [
            "IR version 3 became 9, as the model has functions with default values of attributes (since IR version 9;"
            " function f:F)"
        ],
    )


def test_an_unlisted_initializer_of_a_branch_raises_the_ir_version() -> None:
    source = model("""<ir_version: 3, opset_import: ["": 8]> g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] p) <float[2] w = {1, 2}> { p = Add (x, w) },
                    else_branch = e () => (float[2] q) { q = Neg (x) }>
    }""")
    assert not loads(source)

    raised = onnx_migrate.migrate(source, opset=8, simplify=False, verify=False).structure

    assert raised.ir_version == 4
    assert loads(raised)
    onnx.checker.check_model(raised)


def test_an_unlisted_initializer_of_the_main_graph_does_not() -> None:
    text = '<ir_version: 3, opset_import: ["": 8]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }'
    assert loads(model(text))
    assert settled(model(text), model(text)) == (3, [])


def test_a_user_pass_that_uses_a_newer_feature_raises_the_ir_version() -> None:
    def as_int4(proto: onnx.ModelProto) -> None:
        value = onnx.helper.make_tensor("k", onnx.TensorProto.INT4, [2], [1, 2])
        proto.graph.initializer.append(value)

    result = onnx_migrate.migrate(
        model(VALID), opset=17, simplify=False, verify=False, passes=[as_int4], without=["cleanup"]
    )

    assert result.structure.ir_version == 10
    assert "ir-version" in [note.code for note in result.report.notes]
