"""What `migrate` takes, returns, reports and raises."""

from __future__ import annotations

import io
import json
import types
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate import (
    CannotMigrate,
    IllegalModel,
    LoadError,
    MigrateError,
    Pass,
    PassError,
    Progress,
    SaveError,
    Session,
    UsageError,
    VerificationFailed,
    compare,
    files,
    migrate,
)
from onnx_migrate.engine.pass_registry import builtin_passes
from onnx_migrate.migration import Migration
from onnx_migrate.model.model import Model
from onnx_migrate.process import Worker
from onnx_migrate.report.codes import CODES
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.support.small_model import FAST, HERE, UPSAMPLE, bytes_of, dims, opset_of, small

# What may be given


def test_every_kind_of_source_leads_to_the_same_result() -> None:
    proto = onnx.load(UPSAMPLE)
    before = bytes_of(proto)
    sources = [UPSAMPLE, str(UPSAMPLE), UPSAMPLE.read_bytes(), io.BytesIO(UPSAMPLE.read_bytes()), proto]

    results = {bytes_of(migrate(source, **FAST).model) for source in sources}

    assert len(results) == 1
    assert opset_of(onnx.ModelProto.FromString(results.pop())) == 17
    assert bytes_of(proto) == before


@pytest.mark.parametrize(
    "source", [UPSAMPLE.open(), io.StringIO("<html>"), small().graph, None, 3, ["a.onnx"]]
)
def test_what_is_no_model_is_named(source: Any) -> None:
    with pytest.raises(UsageError, match="binary mode"):
        migrate(source, **FAST)


def test_the_representation_of_a_migration_is_one_line() -> None:
    migration = migrate(UPSAMPLE, opset=17)

    assert repr(migration) == f"<Migration of {UPSAMPLE}: opset 9 → 17, 1 change, verified>"
    assert repr(migrate(UPSAMPLE, **FAST)).endswith("1 change, not compared>")


def test_progress_speaks_to_users() -> None:
    """Each stage has a title, and no title is the name of a pass."""
    seen: list[Progress] = []
    migrate(UPSAMPLE, opset=17, precision="fp16", progress=seen.append)

    titles = [event.title for event in seen if not event.detail]
    assert titles[:2] == ["reading the model", "raising the opset"]
    assert "choosing the precision of each node" in titles
    assert titles[-1] == "comparing with the original"
    own = [kind for kind in builtin_passes().values() if kind.__module__.startswith("onnx_migrate.passes.")]
    assert own
    assert all(kind.title for kind in own)


def test_a_pass_of_the_user_has_a_title() -> None:
    def scribble(model: onnx.ModelProto) -> None:
        model.producer_name = "scribbled"

    seen: list[Progress] = []
    migrate(small(), passes=[scribble], verify=False, progress=seen.append)

    assert "running the pass scribble" in map(str, seen)


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
        ({"x": "N"}, ["N", 3, 4]),
        ({"x": "N,3,4"}, ["N", 3, 4]),
        ([{"x": {0: "N"}}], ["N", 3, 4]),
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
    sizes = {dict(trial.sizes)["N"] for trial in report.dynamic.trials}
    assert len(sizes) >= 2
    assert all(not trial.problem for trial in report.dynamic.trials)


def test_a_warning_says_that_dynamic_dims_were_not_verified() -> None:
    for options, warned in (({"dynamic": "x:N,3,4"}, True), ({}, False)):
        report = migrate(small(), opset=13, **options, **FAST).report
        assert ("not-proved" in {note.code for note in report.notes if note.severity == "warning"}) is warned


# Report


def test_the_report_is_json() -> None:
    report = migrate(UPSAMPLE, dynamic="x:N,3,H,W", simplify=False, **HERE).report

    text = json.dumps(report.as_dict(), allow_nan=False)

    assert json.loads(text) == report.as_dict()


def test_the_report_lists_what_changed() -> None:
    report = migrate(UPSAMPLE, **FAST).report

    assert report.outcome == "migrated"
    assert (report.before.opset, report.after.opset) == (9, 17)
    assert any(change.before.op_type == "Upsample" for change in report.changes)
    assert {note.code for note in report.notes} <= set(CODES)
    assert report.verification is None
    assert {"load", "migrate_opset", "cleanup"} <= set(report.seconds)


def test_the_process_that_verifies_is_started_before_the_passes_and_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Worker] = []
    start = Worker.__init__
    monkeypatch.setattr(
        Worker, "__init__", lambda self, *given: (started.append(self), start(self, *given))[1]
    )
    seen: list[tuple[str, int]] = []

    with Session() as session:
        for _ in range(2):
            session.migrate(
                small(), simplify=False, progress=lambda event: seen.append((event.stage, len(started)))
            )
        assert started[0].alive

    assert seen[0] == ("load", 0)
    assert {count for _, count in seen[1:]} == {1}, "before the first pass, and no other to verify"
    assert not started[0].alive
    migrate(small(), simplify=False, verify=False)
    migrate(small(), simplify=False, **HERE)
    assert len(started) == 1


# Result


def test_the_original_stays_beside_the_result(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(small(), path)
    loaded = files.load(path)

    first: Migration = migrate(loaded, **FAST)
    first.save(tmp_path / "out.onnx")
    second = migrate(tmp_path / "out.onnx", **FAST)

    assert first.original is loaded
    assert bytes_of(loaded.proto) == bytes_of(files.load(path).proto)
    assert not first.same_as_original()
    assert second.same_as_original()
    assert bytes_of(migrate(path, **FAST).model) == bytes_of(first.model)


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


def test_a_result_in_memory() -> None:
    migration, file = migrate(small(), **FAST), io.BytesIO()

    migration.save(file)
    assert onnx.ModelProto.FromString(file.getvalue()) == migration.model
    with pytest.raises(UsageError, match="cannot be saved to a BytesIO"):
        migration.save(file, external=True)
    assert str(migration) == str(migration.report) == migration.report.text()


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
        (UsageError, None, {**FAST, "dynamic": True}),
        (UsageError, None, {**FAST, "dynamic": {0: "N"}}),
        (UsageError, None, {**FAST, "dynamic": [0]}),
        (UsageError, None, {**HERE, "simplify": "yes"}),
        (UsageError, None, {**HERE, "input_data": []}),
        (UsageError, None, {**HERE, "input_data": iter([{}])}),
        (CannotMigrate, None, {**FAST, "opset": 9, "lower": False}),
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


def test_all_public_names_are_there() -> None:
    for name in onnx_migrate.__all__:
        assert getattr(onnx_migrate, name) is not None
    assert dir(onnx_migrate) == sorted(onnx_migrate.__all__)
    with pytest.raises(AttributeError):
        onnx_migrate.no_such_name  # noqa: B018


def test_arrays_are_what_the_result_is_verified_on() -> None:
    values = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 4)
    report = migrate(small(), input_data=[{"x": values}, {"x": (values * 2).tolist()}], **HERE).report

    assert report.verification is not None
    assert report.verified
    assert [(feed.name, feed.seed) for feed in report.verification.feeds] == [
        ("input_data 0", None),
        ("input_data 1", None),
    ]
    assert compare(small(), small(), input_data={"x": values}, **HERE).feeds[0].name == "input_data"
    with pytest.raises(UsageError, match=r"input 'x' is float32\[3, 4\], expected float\[1, 3, 4\]"):
        migrate(small(), input_data={"x": values[0]}, **HERE)


def test_arrays_may_be_in_the_order_of_the_inputs() -> None:
    values = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 4)
    tensor = types.SimpleNamespace(__array__=None, detach=lambda: types.SimpleNamespace(cpu=lambda: values))

    # The last is as a tensor of PyTorch on a GPU, which NumPy cannot read.
    for given in (values, (values,), [onnx.numpy_helper.from_array(values)], (tensor,)):
        assert compare(small(), small(), input_data=given, **HERE).verified
    with pytest.raises(UsageError, match="input 1 does not exist; the model has 1"):
        compare(small(), small(), input_data=(values, values), **HERE)


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ("a, b", ["a", "b"]),
        (" b ,a,", ["a", "b"]),
        (["a,b"], ["a", "b"]),
        (["a", "y, b"], ["a", "b", "y"]),
        ("a,c", ["a,c"]),
        (["b", "a,c"], ["b", "a,c"]),
    ],
    ids=str,
)
def test_a_limit_is_for_an_output_by_the_name_that_the_cut_reads(
    outputs: str | list[str], names: list[str]
) -> None:
    """A text may name several values, with spaces around them, and a value's own name may have a comma."""
    model = small()
    model.graph.node.add(op_type="Neg", input=["b"], output=["a,c"])
    migration = migrate(model, extract_outputs=outputs, atol=dict.fromkeys(names, 1e-3), **HERE)

    assert {value.name for value in migration.model.graph.output} == {*names}
    with pytest.raises(UsageError, match="has no output 'q'"):
        migrate(model, extract_outputs=outputs, atol={"q": 1e-3}, **HERE)
