"""What `migrate` does with passes: those that fail, those that change numbers on purpose, and users' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest

from onnx_migrate import (
    PassError,
    UsageError,
    VerificationFailed,
    default_pipeline,
    migrate,
    process,
)
from tests.support.paths import FIXTURES
from tests.support.small_model import FAST, HERE, bytes_of, opset_of, small

# Simplify


def test_simplify_folds_and_without_it_nothing_does() -> None:
    proto = onnx.load(FIXTURES / "transformer_opset9.onnx")

    plain = migrate(proto, simplify=False, verify=False)
    simplified = migrate(proto, simplify="require", verify=False, **HERE)

    assert "simplify" not in plain.report.passes
    assert "simplify" in simplified.report.passes
    assert len(simplified.model.graph.node) < len(plain.model.graph.node)


# Numbers that change on purpose


def add_a_hundredth(model: onnx.ModelProto) -> None:
    """A pass that changes the numbers without declaring it."""
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
    passes = {note.code: note.pass_name for note in migration.report.notes}
    assert passes["other-numbers"] == "resize_intent"
    verdict = migration.report.verification
    assert verdict is not None
    assert str(verdict.statements[0]) == "conversion: bit-identical"
    assert (verdict.kind.value, verdict.exact) == ("verified", True)


@pytest.mark.parametrize("place", [{"before": "resize_intent"}, {"after": "resize_intent"}])
def test_what_is_changed_on_purpose_hides_nothing_else(place: dict[str, str]) -> None:
    pipeline = default_pipeline(opset=17, resize_intent=True, simplify=False).add(add_a_hundredth, **place)
    with pytest.raises(VerificationFailed):
        migrate(FIXTURES / "resize_bilinear_opset10.onnx", pipeline=pipeline, **HERE)


def test_an_intent_that_changes_nothing_is_not_mentioned() -> None:
    migration = migrate(FIXTURES / "resize_bilinear_opset11.onnx", resize_intent=True, **HERE)
    assert "other-numbers" not in {note.code for note in migration.report.notes}
    assert migration.report.verification is not None
    assert migration.report.verification.statements == ()


@pytest.mark.parametrize("keep", [(), ("tf_half_pixel_for_nn",)])
def test_a_removed_attribute_value_is_kept_on_request(keep: tuple[str, ...]) -> None:
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
    real = process.run

    def run(function: str, *args: Any, **options: Any) -> process.Ending:
        if function.endswith(":simplify_file"):
            return process.Crashed("SIGSEGV")
        return real(function, *args, **options)

    monkeypatch.setattr(process, "run", run)


@pytest.mark.usefixtures("broken_simplifier")
def test_a_failing_simplifier_leaves_the_verified_unsimplified_model() -> None:
    plain = migrate(small(), simplify=False, **HERE)

    kept = migrate(small(), **HERE)

    assert bytes_of(kept.model) == bytes_of(plain.model)
    assert kept.report.verification is not None
    assert kept.report.verification.kind.value == "verified"
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
    """Let onnxsim return a valid model that computes something else."""
    import onnxsim

    def simplify(model: onnx.ModelProto, **options: Any) -> tuple[onnx.ModelProto, bool]:
        for node in model.graph.node:
            if node.op_type == "Mul":
                node.op_type = "Add"
        return model, True

    monkeypatch.setattr(onnxsim, "simplify", simplify)


@pytest.mark.usefixtures("wrong_simplifier")
def test_a_simplifier_that_changes_the_numbers_is_left_out() -> None:
    kept = migrate(small(), **HERE)

    assert bytes_of(kept.model) == bytes_of(migrate(small(), simplify=False, verify=False).model)
    assert [note.code for note in kept.report.notes].count("left-out") == 1
    assert "simplified" not in [note.code for note in kept.report.notes]
    assert kept.report.verification is not None
    assert kept.report.verification.kind.value == "verified"


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


def test_a_user_s_pass_comes_before_those_that_make_the_model_fit_a_runtime() -> None:
    def raise_ir_version(proto: onnx.ModelProto) -> None:
        proto.ir_version = 10

    migration = migrate(small(), runtime="onnxruntime==1.14", passes=[raise_ir_version], verify=False)

    assert migration.structure.ir_version == 8
    names = migration.report.passes
    assert names.index("raise_ir_version") < names.index("runtime_limits") < names.index("simplify")


def test_an_opset_beside_a_runtime_is_one_that_it_takes() -> None:
    assert migrate(small(), runtime="onnxruntime==1.14", opset=16, verify=False).report.after.opset == 16
    for opset, message in ((19, "opset 19 is not for ONNX Runtime 1.14"), ("17+", r"opset 17\+ is not for")):
        with pytest.raises(UsageError, match=message):
            migrate(small(), runtime="onnxruntime==1.14", opset=opset)
    with pytest.raises(
        UsageError, match=r"opset 11 is not for RKNN-Toolkit2 2\.0, which takes models from opset 12 on"
    ):
        migrate(small(), runtime=["onnxruntime==1.14", "rknn==2.0"], opset=11)
