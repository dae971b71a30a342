"""The library: what `migrate` and `convert_version` take, give and raise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest

import onnx_migrate
from onnx_migrate import (
    CannotMigrate,
    IllegalModel,
    LoadError,
    MigrateError,
    Pass,
    PassError,
    SaveError,
    UsageError,
    VerificationFailed,
    convert_version,
    default_pipeline,
    isolate,
    migrate,
)
from onnx_migrate.model.model import Model
from onnx_migrate.report.codes import CODES
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.support.paths import FIXTURES

UPSAMPLE = FIXTURES / "conv_relu_upsample_opset9.onnx"
FAST: dict[str, Any] = {"verify": False, "simplify": False}
HERE: dict[str, Any] = {"isolated": False}

SMALL = """<ir_version: 6, opset_import: ["": 11]>
g (float[1,3,4] x) => (float[1,12] y) <float[3,4] w = {1., 2., 3., 4., 5., 6., 7., 8., 9., 8., 7., 6.}> {
    a = Softmax <axis = 1> (x)
    b = Mul (a, w)
    y = Flatten (b)
}"""


def small() -> onnx.ModelProto:
    proto: onnx.ModelProto = onnx.parser.parse_model(SMALL)
    return proto


def bytes_of(proto: onnx.ModelProto) -> bytes:
    return bytes(proto.SerializeToString(deterministic=True))


def opset_of(proto: onnx.ModelProto) -> int:
    return int(proto.opset_import[0].version)


def dims(value: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


# What may be given


def test_every_kind_of_source_gives_the_same() -> None:
    proto = onnx.load(UPSAMPLE)
    before = bytes_of(proto)
    sources = [UPSAMPLE, str(UPSAMPLE), UPSAMPLE.read_bytes(), proto]

    results = {bytes_of(migrate(source, **FAST).model) for source in sources}

    assert len(results) == 1
    assert opset_of(onnx.ModelProto.FromString(results.pop())) == 17
    assert bytes_of(proto) == before


def test_a_proto_is_not_touched_by_any_pass() -> None:
    proto = small()
    before = bytes_of(proto)

    def scribble(model: onnx.ModelProto) -> None:
        model.producer_name = "scribbled"
        node = next(node for node in model.graph.node if node.op_type == "Mul")
        model.graph.initializer[0].name = node.input[1] = "v"

    result = migrate(proto, passes=[scribble], dynamic={"x": [0]}, verify=False, **HERE).model

    assert result.producer_name == "scribbled"
    assert bytes_of(proto) == before


@pytest.mark.parametrize("opset", [13, "13", "latest"])
def test_opsets(opset: int | str) -> None:
    wanted = onnx.defs.onnx_opset_version() if opset == "latest" else 13

    assert opset_of(migrate(small(), opset=opset, **FAST).model) == wanted


@pytest.mark.parametrize(
    ("opset", "code"), [("newest", "usage"), ("", "usage"), (0, "no-such-opset"), (1000, "no-such-opset")]
)
def test_no_opset(opset: int | str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        migrate(small(), opset=opset, **FAST)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("dynamic", "expected"),
    [
        ({"x": {0: "N"}}, ["N", 3, 4]),
        ({"x": [0]}, ["x_dim_0", 3, 4]),
        ({"x": (0,)}, ["x_dim_0", 3, 4]),
        ({"x": {0: "N"}, "y": {0: "N"}}, ["N", 3, 4]),
        ({"x": {0: "N"}, "y": [0]}, ["N", 3, 4]),
        ({"x": {-3: "N"}}, ["N", 3, 4]),
        ("x:N,3,4", ["N", 3, 4]),
        ("x:?,3,4", ["x_dim_0", 3, 4]),
        (["x:N,3,4"], ["N", 3, 4]),
        ({}, [1, 3, 4]),
        (None, [1, 3, 4]),
    ],
)
def test_dynamic_in_every_form(dynamic: Any, expected: list[int | str]) -> None:
    result = migrate(small(), dynamic=dynamic, **FAST).model

    assert dims(result.graph.input[0]) == expected
    assert dims(result.graph.output[0]) == [expected[0], 12]


def test_dynamic_is_proved_at_other_sizes() -> None:
    report = migrate(small(), dynamic={"x": {0: "N"}}, simplify=False, **HERE).report

    assert report.dynamic is not None
    sizes = {dict(trial["sizes"])["N"] for trial in report.dynamic["trials"]}
    assert len(sizes) >= 2
    assert all(not trial["problem"] for trial in report.dynamic["trials"])


# Simplify


def test_dynamic_without_a_proof_is_told() -> None:
    for options, told in (({"dynamic": "x:N,3,4"}, True), ({}, False)):
        report = migrate(small(), opset=13, **options, **FAST).report
        assert ("not-proved" in {note.code for note in report.notes if note.severity == "warning"}) is told


def test_simplify_folds_and_without_it_nothing_does() -> None:
    proto = onnx.load(FIXTURES / "transformer_opset9.onnx")

    plain = migrate(proto, simplify=False, verify=False)
    simplified = migrate(proto, simplify="require", verify=False, **HERE)

    assert "simplify" not in plain.report.passes
    assert "simplify" in simplified.report.passes
    assert len(simplified.model.graph.node) < len(plain.model.graph.node)


# What is meant to compute something else


def add_a_hundredth(model: onnx.ModelProto) -> None:
    """A pass that spoils the numbers, with no word of it."""
    conv = next(node for node in model.graph.node if node.op_type == "Conv")
    bias = next(tensor for tensor in model.graph.initializer if tensor.name == conv.input[2])
    bias.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bias) + 0.01, bias.name))


@pytest.mark.parametrize("simplify", [False, True])
def test_resize_intent_is_what_pytorch_computes(simplify: bool) -> None:
    path = FIXTURES / "resize_bilinear_opset10.onnx"
    migration = migrate(path, opset=17, resize_intent=True, simplify=simplify, **HERE)

    recorded = np.load(path.with_suffix(".io.npz"))
    session = ort.InferenceSession(migration.model.SerializeToString())
    outputs = session.run(None, {"x": recorded["x"]})
    for output, value in zip(session.get_outputs(), outputs, strict=True):
        np.testing.assert_allclose(value, recorded[output.name], atol=2e-5)
    told = {note.code: note.message for note in migration.report.notes}
    assert "resize_intent changed" in told["other-numbers"]
    assert "bit for bit the same" in told["held-before"]
    verdict = migration.report.verification
    assert verdict is not None
    assert (verdict["kind"], verdict["exact"]) == ("verified", True)


@pytest.mark.parametrize("place", [{"before": "resize_intent"}, {"after": "resize_intent"}])
def test_what_is_changed_on_purpose_hides_nothing_else(place: dict[str, str]) -> None:
    pipeline = default_pipeline(opset=17, resize_intent=True, simplify=False).add(add_a_hundredth, **place)
    with pytest.raises(VerificationFailed):
        migrate(FIXTURES / "resize_bilinear_opset10.onnx", pipeline=pipeline, **HERE)


def test_an_intent_that_changes_nothing_is_not_mentioned() -> None:
    migration = migrate(FIXTURES / "resize_bilinear_opset11.onnx", resize_intent=True, **HERE)
    assert not {"other-numbers", "held-before"} & {note.code for note in migration.report.notes}


@pytest.mark.parametrize("keep", [(), ("tf_half_pixel_for_nn",)])
def test_a_dropped_word_is_kept_on_request(keep: tuple[str, ...]) -> None:
    source = onnx.parser.parse_model("""<ir_version: 7, opset_import: ["": 11]>
g (float[1,1,4,4] x) => (float[a,b,c,d] y) <float[0] roi = {}, float[4] s = {1., 1., 2., 2.}> {
    y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "floor"> (x, roi, s)
}""")
    migration = migrate(source, opset=17, keep=keep, simplify=False, **HERE)
    assert (b"tf_half_pixel_for_nn" in bytes_of(migration.model)) == bool(keep)
    with pytest.raises(UsageError, match="Upsample cannot be kept"):
        migrate(source, keep={"Upsample"})


@pytest.fixture
def broken_simplifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let onnxsim fail as native code does: the process that runs it is gone."""
    real = isolate.run

    def run(function: str, *args: Any, **options: Any) -> isolate.Ending:
        if function.endswith(":simplify_file"):
            return isolate.Crashed("SIGSEGV")
        return real(function, *args, **options)

    monkeypatch.setattr(isolate, "run", run)


@pytest.mark.usefixtures("broken_simplifier")
def test_a_failing_simplifier_leaves_the_verified_unsimplified_model() -> None:
    plain = migrate(small(), simplify=False, **HERE)

    kept = migrate(small(), **HERE)

    assert bytes_of(kept.model) == bytes_of(plain.model)
    assert kept.report.verification is not None
    assert kept.report.verification["kind"] == "verified"
    (note,) = [note for note in kept.report.notes if note.code == "left-out"]
    assert note.severity == "warning"
    assert "SIGSEGV" in note.message


@pytest.mark.usefixtures("broken_simplifier")
def test_a_failing_simplifier_fails_what_requires_it() -> None:
    with pytest.raises(PassError) as caught:
        migrate(small(), simplify="require", **HERE)
    assert caught.value.code == "not-simplified"


@pytest.fixture
def wrong_simplifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let onnxsim give a valid model that computes something else."""
    import onnxsim

    def simplify(model: onnx.ModelProto, **options: Any) -> tuple[onnx.ModelProto, bool]:
        next(node for node in model.graph.node if node.op_type == "Mul").op_type = "Add"
        return model, True

    monkeypatch.setattr(onnxsim, "simplify", simplify)


@pytest.mark.usefixtures("wrong_simplifier")
def test_a_simplifier_that_changes_the_numbers_is_left_out() -> None:
    kept = migrate(small(), **HERE)

    assert bytes_of(kept.model) == bytes_of(migrate(small(), simplify=False, verify=False).model)
    assert [note.code for note in kept.report.notes].count("left-out") == 1
    assert "simplified" not in [note.code for note in kept.report.notes]
    assert kept.report.verification is not None
    assert kept.report.verification["kind"] == "verified"


@pytest.mark.usefixtures("wrong_simplifier")
def test_a_simplifier_that_changes_the_numbers_fails_what_requires_it() -> None:
    with pytest.raises(VerificationFailed):
        migrate(small(), simplify="require", **HERE)


# Passes


def rename_producer(model: onnx.ModelProto) -> None:
    model.producer_name += "+"


def test_passes_are_listed_added_and_left_out() -> None:
    names = default_pipeline(opset=17, dynamic={"x": [0]}).names
    assert names[0] == "migrate_opset"
    assert names[-1] == "simplify"
    assert {"dynamic_dims", "cleanup"} <= set(names)
    assert "dynamic_dims" not in default_pipeline().names
    assert "simplify" not in default_pipeline(simplify=False).names

    result = migrate(small(), passes=[rename_producer], without=["cleanup"], verify=False, **HERE)

    assert result.report.passes[-2:] == ("rename_producer", "simplify")
    assert "cleanup" not in result.report.passes
    assert result.model.producer_name == "+"


def test_a_pipeline_of_ones_own() -> None:
    pipeline = default_pipeline(opset=13, simplify=False).add(rename_producer, before="migrate_opset")

    result = migrate(small(), pipeline=pipeline, opset=17, simplify="require", verify=False)

    assert opset_of(result.model) == 13
    assert result.report.passes == pipeline.names
    assert result.report.passes[0] == "rename_producer"


def test_a_pass_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "passes_of_mine.py").write_text(
        "import onnx\ndef mark(model: onnx.ModelProto):\n    model.doc_string = 'marked'\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)

    assert migrate(small(), passes=["passes_of_mine:mark"], **FAST).model.doc_string == "marked"


def test_an_unknown_pass_cannot_be_left_out() -> None:
    with pytest.raises(UsageError) as caught:
        migrate(small(), without=["polish"], **FAST)
    assert caught.value.code == "no-such-pass"
    assert "migrate_opset" in caught.value.hint


# Report


def test_the_report_is_json() -> None:
    report = migrate(UPSAMPLE, dynamic="x:N,3,H,W", simplify=False, **HERE).report

    text = json.dumps(report.as_dict(), allow_nan=False)

    assert json.loads(text) == report.as_dict()


def test_the_report_tells_what_changed() -> None:
    report = migrate(UPSAMPLE, **FAST).report

    assert report.outcome == "migrated"
    assert (report.before.opset, report.after.opset) == (9, 17)
    assert any(change.before.op_type == "Upsample" for change in report.changes)
    assert {note.code for note in report.notes} <= set(CODES)
    assert report.verification is None
    assert {"load", "migrate_opset", "cleanup"} <= set(report.seconds)


def test_stages_are_told_as_they_begin() -> None:
    stages: list[str] = []

    migrate(small(), simplify=False, progress=stages.append, **HERE)

    assert stages[0] == "load"
    assert stages[-1] == "verify"
    assert "migrate_opset" in stages


# Result


@pytest.mark.parametrize("external", [False, True])
def test_the_model_is_what_is_saved(external: bool, tmp_path: Path) -> None:
    proto = small()
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(9000, dtype=np.float32), "k"))
    proto.graph.node.append(onnx.helper.make_node("ReduceSum", ["k"], ["s"], keepdims=0))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, []))
    onnx.save(proto, tmp_path / "in.onnx")

    result = migrate(tmp_path / "in.onnx", **FAST)
    result.save(tmp_path / "out.onnx", external=external)

    saved = onnx.load(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx.data").exists() == external
    assert [onnx.numpy_helper.to_array(tensor).tobytes() for tensor in saved.graph.initializer] == [
        onnx.numpy_helper.to_array(tensor).tobytes() for tensor in result.model.graph.initializer
    ]
    for model in (saved, result.model):
        for tensor in model.graph.initializer:
            tensor.CopyFrom(onnx.TensorProto(name=tensor.name))
    assert bytes_of(saved) == bytes_of(result.model)


def test_saving_over_the_source_has_to_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(small(), path)
    before = path.read_bytes()
    result = migrate(path, **FAST)

    with pytest.raises(SaveError) as caught:
        result.save(path)
    assert caught.value.code == "in-place"
    assert path.read_bytes() == before

    result.save(path, in_place=True)
    assert opset_of(onnx.load(path)) == 17


# Errors


def spoil(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[0]
    tensor.CopyFrom(
        onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * np.float32(2), tensor.name)
    )


def illegal(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "NeverWas"


class Breaks(Pass):
    """A pass as this package's own are, that leaves what is not valid."""

    name = "breaks"

    def run(self, model: Model, log: ChangeLog) -> Model:
        illegal(model.proto)
        return model


def fail(model: onnx.ModelProto) -> None:
    raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize(
    ("kind", "source", "options"),
    [
        (LoadError, b"<html>", FAST),
        (LoadError, "no/such/model.onnx", FAST),
        (UsageError, None, {**FAST, "dynamic": {"nobody": [0]}}),
        (CannotMigrate, None, {**FAST, "opset": 9}),
        (PassError, None, {**FAST, "passes": [fail]}),
        (PassError, None, {**FAST, "passes": [illegal]}),
        (IllegalModel, None, {**FAST, "passes": [Breaks()]}),
        (VerificationFailed, None, {**HERE, "simplify": False, "passes": [spoil]}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_error_is_of_its_kind(kind: type[MigrateError], source: Any, options: dict[str, Any]) -> None:
    with pytest.raises(kind) as caught:
        migrate(small() if source is None else source, **options)

    assert type(caught.value) is kind
    assert isinstance(caught.value, MigrateError)
    assert caught.value.code in CODES
    assert caught.value.reason
    assert "\n" not in str(caught.value)


def test_an_error_keeps_its_cause() -> None:
    with pytest.raises(PassError) as caught:
        migrate(small(), passes=[fail], **FAST)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


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
    with pytest.raises(CannotMigrate):
        convert_version(small(), 9)
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


def test_all_public_names_are_there() -> None:
    for name in onnx_migrate.__all__:
        assert getattr(onnx_migrate, name) is not None
    assert dir(onnx_migrate) == sorted(onnx_migrate.__all__)
    with pytest.raises(AttributeError):
        onnx_migrate.no_such_name  # noqa: B018
