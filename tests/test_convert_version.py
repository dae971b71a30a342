"""The drop-in for onnx's version converter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate import (
    CannotMigrate,
    LoadError,
    MigrateError,
    UsageError,
    convert_version,
    default_pipeline,
    migrate,
)
from tests.support.small_model import UPSAMPLE, bytes_of, opset_of, small

# convert_version


@pytest.mark.parametrize("target", [11, 13, 17])
def test_convert_version_changes_the_opset_and_nothing_else(target: int) -> None:
    proto = small()
    proto.doc_string, proto.producer_name, proto.model_version = "doc", "me", 7
    proto.metadata_props.add(key="k", value="v")
    before = bytes_of(proto)

    result = convert_version(proto, target)

    assert result is not proto
    assert bytes_of(proto) == before
    assert opset_of(result) == target
    for field in ("doc_string", "producer_name", "model_version"):
        assert getattr(result, field) == getattr(proto, field)
    assert list(result.metadata_props) == list(proto.metadata_props)
    assert list(result.graph.input) == list(proto.graph.input)
    assert list(result.graph.output) == list(proto.graph.output)
    if target == 11:
        assert bytes_of(result) == before


def test_convert_version_keeps_initializers_as_inputs() -> None:
    proto = small()
    proto.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [3, 4]))

    assert [value.name for value in convert_version(proto, 17).graph.input] == ["x", "w"]


def test_convert_version_is_the_first_pass_of_migrate() -> None:
    proto = onnx.load(UPSAMPLE)
    before = bytes_of(proto)

    pipeline = default_pipeline(opset=17, keep_initializers_as_inputs=True, simplify=False)
    others = [name for name in pipeline.names if name != "migrate_opset"]

    assert bytes_of(convert_version(proto, 17)) == bytes_of(
        migrate(UPSAMPLE, pipeline=pipeline.without(*others), verify=False).model
    )
    assert bytes_of(proto) == before


def test_convert_version_leaves_external_data_where_they_are(tmp_path: Path) -> None:
    """As onnx's converter does with what was loaded without its weights."""
    proto = small()
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "weights"))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=1024)
    loaded = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    reference = next(tensor for tensor in loaded.graph.initializer if tensor.name == "weights")

    result = convert_version(loaded, 17)

    (kept,) = (tensor for tensor in result.graph.initializer if tensor.name == "weights")
    assert kept == reference
    with pytest.raises(LoadError, match="not given as a file"):
        onnx_migrate.migrate(loaded, opset=17)


def test_convert_version_raises_the_same_kinds() -> None:
    unique = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["": 11]> g (float[4] x) => (float[n] y) { y = Unique (x) }'
    )
    with pytest.raises(CannotMigrate, match="opset 11 can be reached"):
        convert_version(unique, 9)
    with pytest.raises(UsageError):
        convert_version(small(), 1000)
    with pytest.raises(LoadError):
        convert_version(onnx.ModelProto(), 17)
    unknown = small()
    unknown.graph.node[0].op_type = "NeverWas"
    with pytest.raises(CannotMigrate) as caught:
        convert_version(unknown, 17)
    assert caught.value.code == "unknown-operator"
    assert caught.value.where is not None
    assert caught.value.where.operator == "NeverWas"


def test_a_path_gives_a_model(tmp_path: Path) -> None:
    onnx.save(small(), tmp_path / "m.onnx")
    expected = bytes_of(convert_version(small(), 17))

    assert bytes_of(convert_version(tmp_path / "m.onnx", 17)) == expected
    assert bytes_of(convert_version(str(tmp_path / "m.onnx"), 17)) == expected
    with pytest.raises(UsageError, match="cannot be converted in place") as caught:
        convert_version(str(tmp_path / "m.onnx"), 17, in_place=True)
    assert caught.value.hint == "give a ModelProto or an onnx_ir.Model, or leave in_place out"


def test_a_report_says_what_changed_and_what_was_assumed() -> None:
    proto = onnx.load(UPSAMPLE)
    result, report = convert_version(proto, 17, report=True)

    assert bytes_of(result) == bytes_of(convert_version(proto, 17))
    assert (report.before.opset, report.after.opset) == (opset_of(proto), 17)
    assert [change.where.operator for change in report.changes] == ["Upsample"]
    assert report.outcome == "migrated"
    same, report = convert_version(result, 17, in_place=True, report=True)
    assert same is result
    assert (report.changes, report.outcome) == ((), "unchanged")


def test_a_report_has_a_note_on_an_assumption() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 11, "": 13]> g (float[4] x) => (float[4] y) { y = Softmax (x) }'
    )
    _, report = convert_version(proto, 17, report=True)

    assert [note.code for note in report.notes if note.severity == "warning"] == ["ambiguous-opset"]


@pytest.mark.parametrize("target", ["17", None, 17.0, True, [17]])
def test_what_is_no_opset_is_a_usage_error(target: Any) -> None:
    with pytest.raises(UsageError, match="is no opset"):
        convert_version(small(), target)
    with pytest.raises(UsageError, match="IR"):
        convert_version(small(), 17, ir_version="IR")  # type: ignore[arg-type]


def test_an_integer_of_numpy_is_an_opset() -> None:
    assert opset_of(convert_version(small(), np.int64(17))) == 17  # type: ignore[arg-type]


def test_the_ir_version_follows_the_opset_unless_it_is_kept() -> None:
    proto = small()
    own = proto.ir_version

    assert convert_version(proto, 21).ir_version == 10 > own
    up = convert_version(proto, 21, ir_version="keep")
    assert up.ir_version == own
    onnx.checker.check_model(up, full_check=True)
    newer = convert_version(proto, 21)
    assert convert_version(newer, 11).ir_version < 10
    assert convert_version(newer, 11, ir_version="keep").ir_version == 10


def test_the_import_of_a_custom_domain_goes_with_its_last_node() -> None:
    """A function that only its call explains is written in place of the call, which was the one node of its domain."""
    text = """<ir_version: 8, opset_import: ["": 18, "local": 1, "unused": 1]>
    g (float[2,3] x) => (float[2,1] y) <int64[1] axes = {1}> { y = local.F(x, axes) }
    <opset_import: ["": 18], domain: "local"> F (p, a) => (q) { q = ReduceMean(p, a) }"""
    proto = onnx.parser.parse_model(text)

    def domains(model: onnx.ModelProto) -> list[str]:
        return [entry.domain for entry in model.opset_import]

    assert domains(convert_version(proto, 20)) == ["", "local", "unused"]
    lowered = convert_version(proto, 13)
    assert [node.op_type for node in lowered.graph.node] == ["ReduceMean"]
    assert domains(lowered) == ["", "unused"]


def test_an_ir_version_below_that_of_the_opset_is_kept() -> None:
    proto = small()
    proto.ir_version = 3
    for target in (13, 17, 21):
        kept = convert_version(proto, target, ir_version="keep")
        assert kept.ir_version == 3
        assert opset_of(kept) == target


def test_an_ir_version_that_the_result_cannot_have_is_refused() -> None:
    """Below IR version 4, no program takes an initializer of a branch that is not an input of it, which no branch has."""
    proto = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["": 11]> g (bool c) => (float[1] y)'
        " { y = If<then_branch = t () => (float[1] p) <float[1] u = {1}> { p = Identity(u) },"
        " else_branch = e () => (float[1] q) <float[1] v = {2}> { q = Identity(v) }>(c) }"
    )
    with pytest.raises(CannotMigrate) as caught:
        convert_version(proto, 17, ir_version="keep")
    assert caught.value.code == "no-such-ir"
    assert convert_version(proto, 17).ir_version >= 4


@pytest.mark.parametrize("in_place", [False, True])
def test_convert_version_ends_in_time_and_leaves_the_model(
    in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnx_migrate.process.deadline.LEAST_SECONDS", 0.0)
    proto = small()
    before = bytes_of(proto)
    with pytest.raises(MigrateError, match="timed out after") as caught:
        convert_version(proto, 17, timeout=1e-6, in_place=in_place)
    assert caught.value.code == "timed-out"
    assert bytes_of(proto) == before
    assert opset_of(convert_version(proto, 17, timeout=60)) == 17


@pytest.mark.parametrize("timeout", [0, -5, float("nan"), "20"])
def test_what_is_no_timeout(timeout: Any) -> None:
    with pytest.raises(UsageError, match="timeout="):
        convert_version(small(), 17, timeout=timeout)
    with pytest.raises(UsageError, match="timeout="):
        migrate(small(), timeout=timeout, verify=False, simplify=False)
