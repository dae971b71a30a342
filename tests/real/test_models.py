"""The main job on models that we did not make: the light_* of onnx 1.14.1 and PP-OCR.

The default run takes a sample; `pytest -m campaign tests/real` runs all nine light models and all PP-OCR models to opsets 13,
17, 21 and 26.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

import onnx_migrate
from tests.real.wheels import models

TARGETS = [target for target in (13, 17, 21, 26) if target <= onnx.defs.onnx_opset_version()]
LIGHT = (
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
    "zfnet512",
)  # fmt: skip
OCR = {
    "rapidocr-onnxruntime==1.2.3": (
        "ch_PP-OCRv3_det_infer",
        "ch_PP-OCRv3_rec_infer",
        "ch_ppocr_mobile_v2.0_cls_infer",
    ),
    "rapidocr-onnxruntime==1.4.4": ("ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_rec_infer"),
}


def migrated(path: Path, target: int, tmp_path: Path) -> Path:
    migration = onnx_migrate.migrate(path, opset=target)
    verdict = migration.report.verification
    assert verdict is not None
    assert verdict.verified, verdict.reason
    migration.save(tmp_path / "migrated.onnx")
    result = onnx.load(tmp_path / "migrated.onnx", load_external_data=False)
    assert [entry.version for entry in result.opset_import if not entry.domain] == [target]
    return tmp_path / "migrated.onnx"


def light(name: str, target: int, tmp_path: Path) -> None:
    """Their weights are constants, so the recorded output is what they give for any input."""
    path = models("onnx==1.14.1")[f"light_{name}"]
    result = migrated(path, target, tmp_path)

    session = ort.InferenceSession(str(result), providers=["CPUExecutionProvider"])
    before = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feed = session.get_inputs()[0]
    x = np.random.default_rng(0).standard_normal(feed.shape).astype(np.float32)
    expected = before.run(None, {before.get_inputs()[0].name: x})[0]
    np.testing.assert_allclose(session.run(None, {feed.name: x})[0], expected, rtol=1e-5, atol=1e-6)
    recorded = models("onnx==1.14.1", ".pb")[f"light_{name}_output_0"]
    output = numpy_helper.to_array(onnx.TensorProto.FromString(recorded.read_bytes()))
    assert output.shape == expected.shape
    np.testing.assert_allclose(expected, output, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["shufflenet", "squeezenet"])
def test_light(name: str, tmp_path: Path) -> None:
    light(name, 17, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", LIGHT)
def test_every_light_model(name: str, target: int, tmp_path: Path) -> None:
    light(name, target, tmp_path)


@pytest.mark.long
def test_ocr_detector_loses_its_rois(tmp_path: Path) -> None:
    path = models("rapidocr-onnxruntime==1.2.3")["ch_PP-OCRv3_det_infer"]

    result = onnx.load(migrated(path, 17, tmp_path))

    resizes = [node for node in result.graph.node if node.op_type == "Resize"]
    assert len(resizes) == 6
    assert all(node.input[1] == "" for node in resizes)


@pytest.mark.campaign
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("wheel", "name"), [(wheel, name) for wheel, names in OCR.items() for name in names])
def test_every_ocr_model(wheel: str, name: str, target: int, tmp_path: Path) -> None:
    migrated(models(wheel)[name], target, tmp_path)
