"""The pass ir_version, and the options of the default pipeline that put it there."""

from __future__ import annotations

import onnx
import pytest

import onnx_migrate
from onnx_migrate.errors import IllegalModel, UsageError
from onnx_migrate.standard.ir_versions import NEWEST_IR
from tests.harness import loads, model

LISTED = "8 ir3 (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }"
NEW = "18 ir10 (float[2] x) => (float[2] y) { h = Relu (x) h2 = Identity (h) y = Neg (h2) }"


def names(**options: object) -> tuple[str, ...]:
    return onnx_migrate.default_pipeline(**options).names  # type: ignore[arg-type]


def test_alone_it_is_the_only_pass() -> None:
    assert names(ir_version=8) == ("ir_version",)
    assert "ir_version" not in names()


@pytest.mark.parametrize(
    "option",
    [
        {"opset": 18},
        {"dynamic": "x:N"},
        {"dynamic_batch": True},
        {"fix": "N=1"},
        {"static": True},
        {"int32": True},
        {"standard": True},
        {"quantized": "qdq"},
        {"precision": "fp16"},
        {"control_flow": False},
        {"unroll_rnn": True},
    ],
)
def test_with_another_request_all_passes_run(option: dict[str, object]) -> None:
    found = names(ir_version=8, **option)
    assert {"migrate_opset", "cleanup", "simplify"} < set(found)
    assert found.index("ir_version") > found.index("migrate_opset")


def test_the_opset_stays_unless_it_is_asked_for() -> None:
    source = model(NEW.replace("18", "13").replace("[2]", "[1]"))
    source.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    for options, opset in (({}, 13), ({"fix": "x:1"}, 13), ({"opset": 17}, 17)):
        result = onnx_migrate.migrate(source, ir_version=9, **options)  # type: ignore[arg-type]
        assert result.structure.opset_import[0].version == opset
        assert result.structure.ir_version == 9


@pytest.mark.parametrize("wrong", [2, 0, NEWEST_IR + 1])
def test_there_is_no_such_ir_version(wrong: int) -> None:
    with pytest.raises(UsageError) as caught:
        onnx_migrate.migrate(model(NEW), ir_version=wrong)
    assert caught.value.code == "no-such-ir"


def test_training_is_dropped_only_for_an_ir_version() -> None:
    with pytest.raises(UsageError, match="--ir-version"):
        onnx_migrate.default_pipeline(drop_training=True)


def test_initializers_are_unlisted_above_version_3() -> None:
    result = onnx_migrate.migrate(model(LISTED), ir_version=4)
    assert [value.name for value in result.structure.graph.input] == ["x"]
    kept = onnx_migrate.migrate(model(LISTED), ir_version=4, keep_initializers_as_inputs=True)
    assert [value.name for value in kept.structure.graph.input] == ["x", "w"]


def test_overridable_initializers_are_warned_of_below_version_4() -> None:
    source = model(LISTED)
    source.ir_version = 4
    result = onnx_migrate.migrate(source, ir_version=3)
    assert [(note.code, note.severity) for note in result.report.notes] == [
        ("overridable", "warning"),
        ("ir-version", "info"),
    ]


def test_a_later_pass_may_not_write_what_is_newer() -> None:
    def with_metadata(proto: onnx.ModelProto) -> None:
        proto.graph.node[0].metadata_props.add(key="a", value="b")

    with pytest.raises(IllegalModel, match="metadata of nodes"):
        onnx_migrate.migrate(model(NEW), ir_version=9, passes=[with_metadata], verify=False)


def test_a_runtime_lowers_the_ir_version() -> None:
    from onnx_migrate.engine.pass_registry import make_pass
    from onnx_migrate.standard.targets import resolve

    source = model(NEW)
    source.graph.node[0].metadata_props.add(key="a", value="b")
    limits = make_pass("runtime_limits", targets=resolve(["onnxruntime==1.14"]))
    result = onnx_migrate.migrate(source, opset="18", passes=[limits])
    assert result.structure.ir_version == 8


def test_lowering_the_opset_lowers_the_ir_version() -> None:
    source = model(NEW)
    source.opset_import[0].version = 21
    source.graph.node[0].metadata_props.add(key="a", value="b")
    result = onnx_migrate.migrate(source, opset=18)

    assert result.structure.ir_version == 8 - 4 + 4
    assert loads(result.structure)
    assert not result.structure.graph.node[0].metadata_props
    assert onnx_migrate.migrate(source, opset=18, keep_ir=True).structure.ir_version == 10
    assert onnx_migrate.migrate(source, opset=18, ir_version=9).structure.ir_version == 9
    assert onnx_migrate.convert_version(source, 18).ir_version == 8
