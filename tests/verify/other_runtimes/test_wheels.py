"""Results of migrations in the runtimes that are installed from their wheels: right ones pass, wrong ones fail."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate import convert_version, migrate
from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.files import load
from onnx_migrate.process import Limits
from onnx_migrate.standard.targets import resolve
from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.evaluators.foreign import ForeignProcess, Place
from onnx_migrate.verify.other_runtimes.places import place_of
from onnx_migrate.verify.other_runtimes.proof import prove_in
from tests.fixtures.test_torch_exports import NAMES, case
from tests.support.paths import FIXTURES
from tests.verify.evaluators.drivers.runs import need

RUNTIMES = ("openvino", "opencv", "tract", "mnn")
_LIMITS = Limits(120.0)

NOT_TAKEN = {
    "mnn": {"lstm"},
    "opencv": {"vit", "swin", "convnext", "bert", "mobilenet_v3"},
}
"""Exports that a runtime does not run right as PyTorch wrote them either: MNN 3.6 and OpenCV 5.0 crash or are off."""

SAID_OF_NCNN = {"mobilenet_v3", "convnext", "grid_sample"}
"""Exports of which it is said that they run in ncnn after a migration."""

CONV, CLASSIFIER, SPEECH = "conv_relu_upsample_opset9", "classifier_opset9", "speech_opset10"
OUTCOMES = {
    (CONV, "openvino"): "right", (CONV, "opencv"): "mended", (CONV, "tract"): "gained", (CONV, "mnn"): "right",
    (CLASSIFIER, "openvino"): "right", (CLASSIFIER, "opencv"): "right", (CLASSIFIER, "tract"): "gained",
    (CLASSIFIER, "mnn"): "right", (SPEECH, "openvino"): "right", (SPEECH, "opencv"): "right", (SPEECH, "tract"): "right",
    (SPEECH, "mnn"): "right",
}  # fmt: skip
"""What comes of fixtures at opset 17: tract has no Upsample and no TopK-1, OpenCV computes Upsample-9 as half_pixel."""


@pytest.mark.long
@pytest.mark.parametrize("name", RUNTIMES)
def test_exports_brought_down_compute_what_pytorch_computed(name: str, tmp_path: Path) -> None:
    need(name)
    right = set()
    process = ForeignProcess(Place.here(name), _LIMITS)
    for export in NAMES:
        if export in NOT_TAKEN.get(name, ()):
            continue
        source, feed, expected = case(export, 18)
        result = convert_version(source, 13)
        onnx.save(result, tmp_path / "m.onnx")
        try:
            process.load(tmp_path / "m.onnx", feed, [value.name for value in result.graph.output])
            found = list(process.run(feed).values())
        except EvaluationError as error:
            process.__exit__()
            pytest.fail(f"{export}: {error}")
        if _is_right(found, expected):
            right.add(export)
    process.__exit__()
    assert right == set(NAMES) - NOT_TAKEN.get(name, set())


@pytest.mark.long
@pytest.mark.parametrize("export", sorted(NOT_TAKEN["opencv"]))
def test_exports_that_opencv_fuses_wrongly_run_in_its_form(export: str, tmp_path: Path) -> None:
    """GELU, and the gates of MobileNetV3, which OpenCV takes for a HardSwish of what they are computed of."""
    need("opencv")
    source, feed, expected = case(export, 18)
    result = migrate(source, runtime="opencv==5.0", verify=False).model
    onnx.save(result, tmp_path / "m.onnx")
    with ForeignProcess(Place.here("opencv"), _LIMITS) as process:
        process.load(tmp_path / "m.onnx", feed, [value.name for value in result.graph.output])
        assert _is_right(process.run(feed).values(), expected)


@pytest.mark.long
@pytest.mark.parametrize("export", NAMES)
def test_exports_that_ncnn_is_said_to_run_do(export: str, tmp_path: Path) -> None:
    need("ncnn")
    source, feed, expected = case(export, 18)
    onnx.save(source, tmp_path / "m.onnx")
    (target,) = resolve(["ncnn==20261020"])
    said = CompatibilityChecker(load(tmp_path / "m.onnx")).advise(target)
    assert (said.standing is Support.AFTER) is (export in SAID_OF_NCNN)
    if export not in SAID_OF_NCNN:
        return
    result = migrate(source, runtime="ncnn==20261020", verify=False).model
    onnx.save(result, tmp_path / "m.onnx")
    with ForeignProcess(Place.here("ncnn"), _LIMITS) as process:
        process.load(tmp_path / "m.onnx", feed, [value.name for value in result.graph.output])
        assert _is_right(process.run(feed).values(), expected)


def _is_right(found: Iterable[Any], expected: Iterable[Any]) -> bool:
    pairs = [(ours.reshape(theirs.shape), theirs) for ours, theirs in zip(found, expected, strict=True)]
    return all(np.allclose(ours, theirs, rtol=1e-3, atol=1e-4) for ours, theirs in pairs)


@pytest.mark.parametrize(("fixture", "name"), OUTCOMES)
def test_fixtures_at_opset_17(fixture: str, name: str, tmp_path: Path) -> None:
    need(name)
    before = FIXTURES / f"{fixture}.onnx"
    onnx.save(convert_version(onnx.load(before), 17), tmp_path / "after.onnx")
    (proof,) = prove_in(
        [place_of(name)],
        Runnable(before),
        Runnable(tmp_path / "after.onnx"),
        Settings(limits=_LIMITS, isolated=False),
    )
    assert proof.outcome == OUTCOMES[fixture, name], proof.text


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("mutant", ["weight", "attribute", "operator"])
def test_a_wrong_result_fails(name: str, mutant: str, tmp_path: Path) -> None:
    need(name)
    before = FIXTURES / "conv_relu_upsample_opset11.onnx"
    model = onnx.load(before)
    if mutant == "weight":
        weight = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
        values = numpy_helper.to_array(weight).copy()
        values.flat[0] += 0.01
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    elif mutant == "attribute":
        resize = next(node for node in model.graph.node if node.op_type == "Resize")
        (mode,) = (item for item in resize.attribute if item.name == "mode")
        mode.s = b"linear" if mode.s == b"nearest" else b"nearest"
    else:
        next(node for node in model.graph.node if node.op_type == "Relu").op_type = "Abs"
    onnx.save(model, tmp_path / "after.onnx")
    (proof,) = prove_in(
        [place_of(name)],
        Runnable(before),
        Runnable(tmp_path / "after.onnx"),
        Settings(limits=_LIMITS, isolated=False),
    )
    assert proof.outcome == "worse", proof.text
