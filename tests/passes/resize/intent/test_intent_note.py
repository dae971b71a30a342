"""Reports tell of linear Resizes that PyTorch's exporter could not write, and how far apart the two readings are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_migrate import migrate
from onnx_migrate.report import Report
from onnx_migrate.rewrite.change_log import Note
from tests.harness import model
from tests.support.paths import FIXTURES
from tests.support.small_model import HERE

SMALLEST = FIXTURES / "conv_relu_upsample_opset9.onnx"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """The input that was recorded, as a user gives it."""
    with np.load(SMALLEST.with_suffix(".io.npz")) as recorded:
        np.savez(tmp_path / "inputs.npz", x=recorded["x"])
    return tmp_path / "inputs.npz"


def told(report: Report) -> list[Note]:
    return [note for note in report.notes if note.code == "exporter-intent"]


@pytest.mark.parametrize("opset", [9, 10, 11, 17])
@pytest.mark.parametrize("source", [9, 10])
def test_the_distance_on_the_recorded_inputs(source: int, opset: int, inputs: Path) -> None:
    path = FIXTURES / f"conv_relu_upsample_opset{source}.onnx"
    report = migrate(path, opset=opset, simplify=False, input_data=inputs, **HERE).report

    (note,) = told(report)
    assert "With --resize-intent, output 'y' differs by up to 2.25 of 3.79" in note.message
    assert ("at opset 11 or newer" in note.message) == (opset < 11)
    assert note.severity == "info"
    assert report.verification is not None
    assert report.verification.grade == "bit-identical"


def test_the_distance_is_that_of_what_the_option_writes() -> None:
    """Of the two results, run apart."""
    import onnxruntime as ort

    with np.load(SMALLEST.with_suffix(".io.npz")) as recorded:
        x, pytorch = recorded["x"], recorded["y"]
    plain, meant = (
        migrate(SMALLEST, opset=17, resize_intent=intent, simplify=False, verify=False).model
        for intent in (False, True)
    )
    one, other = (ort.InferenceSession(m.SerializeToString()).run(None, {"x": x})[0] for m in (plain, meant))

    assert np.abs(one - other).max() == pytest.approx(2.25, abs=0.005)
    assert np.abs(other - pytorch).max() < 1e-5


def test_without_verification_the_note_has_no_figure() -> None:
    (note,) = told(migrate(SMALLEST, opset=17, simplify=False, verify=False).report)
    assert note.message.endswith("; --resize-intent writes half_pixel")


def test_all_nodes_of_a_model_are_one_note() -> None:
    (note,) = told(migrate(FIXTURES / "resize_bilinear_opset10.onnx", simplify=False, verify=False).report)
    assert note.message.startswith("'/Resize' and 2 more: ")


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("resize_nearest_opset9", {}),
        ("resize_bilinear_opset11", {}),
        ("conv_relu_upsample_opset9", {"resize_intent": True}),
        ("conv_relu_upsample_opset9", {"ir_version": 5}),
    ],
)
def test_nothing_is_told_where_the_two_agree(path: str, options: dict[str, object]) -> None:
    report = migrate(FIXTURES / f"{path}.onnx", simplify=False, verify=False, **options).report  # type: ignore[arg-type]
    assert not told(report)


def test_other_producers_meant_what_they_wrote() -> None:
    proto = onnx.load(SMALLEST)
    proto.producer_name = "keras2onnx"
    assert not told(migrate(proto, simplify=False, verify=False).report)


def test_a_node_in_a_branch_is_found() -> None:
    source = model("""<ir_version: 4, opset_import: ["":9]>
g (float[1,1,2,2] x, bool c) => (float[1,1,4,4] y) <float[4] s = {1., 1., 2., 2.}> {
  y = If (c) <
    then_branch = t () => (float[1,1,4,4] a) { [inner] a = Upsample <mode = "linear"> (x, s) },
    else_branch = e () => (float[1,1,4,4] b) { b = Upsample <mode = "nearest"> (x, s) }>
}""")
    source.producer_name = "pytorch"
    (note,) = told(migrate(source, opset=17, simplify=False, **HERE).report)

    assert note.message.startswith("'inner': ")
    assert "differs by up to" in note.message


def test_the_numbers_after_the_option_are_compared_with_what_is_said(inputs: Path) -> None:
    report = migrate(SMALLEST, opset=17, resize_intent=True, input_data=inputs, **HERE).report

    messages = {note.code: note.message for note in report.notes}
    assert messages["held-before"].endswith(
        "After resize_intent, output 'y' differs by up to 2.25 of 3.79 on the verifier's inputs"
    )
    assert report.verification is not None
    assert report.verification.compared_with == "the model after resize_intent"
