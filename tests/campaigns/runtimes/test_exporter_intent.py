"""`--for opencv` writes what OpenCV computes for PyTorch's linear Upsample and Resize up to opset 10, whatever the file says.

The recorded outputs are PyTorch's. Each release of OpenCV computes them for the originals (`pytest -m campaign`), and for
the results; what the files say is up to 2.25 of 3.79 away.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from onnx_migrate import migrate
from onnx_migrate.standard.targets import resolve, shipped
from tests.campaigns.runtimes.releases import Unavailable, run
from tests.campaigns.runtimes.sample import write_io
from tests.support.paths import FIXTURES
from tests.support.skips import Elsewhere, skip
from tests.support.small_model import FAST, HERE
from tests.support.versions import RUNTIME

WHEELS = (
    "4.5.5.64", "4.6.0.66", "4.7.0.72", "4.8.1.78", "4.9.0.80", "4.10.0.84", "4.11.0.86", "4.12.0.88", "4.13.0.92",
    "4.14.0.94", "5.0.0.93",
)  # fmt: skip
MODELS = ("conv_relu_upsample_opset9", "conv_relu_upsample_opset10", "resize_bilinear_opset9")
SMALLEST = FIXTURES / "conv_relu_upsample_opset9.onnx"
RELEASES = [".".join(version.split(".")[:2]) for version in WHEELS]


def recorded(name: str) -> tuple[dict[str, Any], list[Any]]:
    """Return what a model is fed, and what PyTorch computed."""
    with np.load(FIXTURES / f"{name}.io.npz") as file:
        return {"x": file["x"]}, [file[key] for key in file.files if key != "x"]


@pytest.mark.campaign
@pytest.mark.parametrize("version", WHEELS)
def test_opencv_computes_the_same_before_and_after(version: str, tmp_path: Path) -> None:
    (tmp_path / "io").mkdir()
    names = {}
    for name in MODELS:
        results = {
            "before": (FIXTURES / f"{name}.onnx").read_bytes(),
            "after": migrate(FIXTURES / f"{name}.onnx", runtime=f"opencv=={version}", **FAST)
            .model.SerializeToString(),
            "as_it_says": migrate(FIXTURES / f"{name}.onnx", opset=12, **FAST).model.SerializeToString(),
        }  # fmt: skip
        for kind, data in results.items():
            (tmp_path / f"{name}_{kind}.onnx").write_bytes(data)
            outputs = [value.name for value in onnx.load(FIXTURES / f"{name}.onnx").graph.output]
            write_io(tmp_path, f"{name}_{kind}", *recorded(name), outputs)
            names[f"{name}_{kind}"] = "wrong" if kind == "as_it_says" else "right"

    try:
        found = run("opencv", version, tmp_path, names)
    except Unavailable as error:
        skip(str(error), Elsewhere.ONLINE)

    assert found.ended == names, found.why


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", MODELS)
def test_the_result_computes_what_opencv_computes_for_the_original(name: str, release: str) -> None:
    """In ONNX Runtime. At opset 9 it still says asymmetric, since OpenCV reads that as half_pixel there."""
    migration = migrate(FIXTURES / f"{name}.onnx", runtime=f"opencv=={release}", **FAST)

    feeds, expected = recorded(name)
    session = ort.InferenceSession(migration.model.SerializeToString())
    found = session.run(None, feeds)
    same = all(np.allclose(one, other, atol=1e-4) for one, other in zip(found, expected, strict=True))
    assert same == ((migration.report.after.opset or 0) > 10)


def test_every_row_of_opencv_is_tried() -> None:
    rows = {row.since: row.resize_intent for row in shipped("opencv").releases}

    assert rows == dict.fromkeys(rows, True)
    assert rows.keys() <= set(RELEASES)
    assert shipped("opencv").newest == RELEASES[-1]


EXACT = RUNTIME >= (1, 25)
"""Whether ONNX Runtime's Upsample-9 and Resize-13 round alike; those of 1.21 do not."""


@pytest.mark.parametrize(
    ("options", "half_pixel"),
    [({}, True), ({"without": ["resize_intent"]}, False), ({"resize_intent": True}, True)],
    ids=str,
)
def test_the_report_says_what_was_compared_with_what(options: dict[str, Any], half_pixel: bool) -> None:
    migration = migrate(SMALLEST, runtime="opencv==4.8", simplify=False, **options, **HERE)

    (node,) = (node for node in migration.model.graph.node if node.op_type == "Resize")
    values = {attribute.name: attribute.s for attribute in node.attribute}
    verification = migration.report.verification
    assert verification is not None
    messages = {note.code: note.message for note in migration.report.notes}
    assert (values["coordinate_transformation_mode"] == b"half_pixel") == half_pixel
    assert bool(verification.compared_with) == half_pixel
    held = (
        ("conversion: bit-identical",)
        if EXACT
        else ("conversion: bit-identical", "conversion: within rounding")
    )
    statements = [str(statement) for statement in verification.statements]
    assert any(text.startswith(held) for text in statements) == half_pixel
    assert ("OpenCV 4.8 computes for the original" in messages.get("other-numbers", "")) == (
        half_pixel and not options
    )


@pytest.mark.parametrize("order", [1, -1])
def test_a_second_runtime_that_reads_what_the_file_says_gets_that(order: int) -> None:
    runtimes = ["opencv==4.8", "onnxruntime==1.14"][::order]
    migration = migrate(SMALLEST, runtime=runtimes, simplify=False, **HERE)

    (note,) = (note for note in migration.report.notes if note.code == "exporter-intent")
    assert note.severity == "warning"
    assert "OpenCV 4.8 computes half_pixel for the original, and asymmetric for the result" in note.message
    assert "differs by up to" in note.message
    grades = ("bit-identical",) if EXACT else ("bit-identical", "within-rounding")
    assert migration.report.verification is not None
    assert migration.report.verification.grade in grades
    assert len(resolve(runtimes).resize_intent) == 1


def test_two_that_read_it_as_pytorch_meant_it_both_get_that() -> None:
    migration = migrate(SMALLEST, runtime=["opencv==4.8", "opencv==4.10"], **FAST)

    assert "OpenCV 4.8 and OpenCV 4.10" in next(
        note.message for note in migration.report.notes if note.code == "other-numbers"
    )


def test_where_the_opset_stays_low_enough_there_is_nothing_to_warn_of() -> None:
    report = migrate(SMALLEST, runtime=["opencv==4.6", "onnxruntime==1.14"], **FAST).report

    (note,) = (note for note in report.notes if note.code == "exporter-intent")
    assert (note.severity, "OpenCV" in note.message) == ("info", False)
