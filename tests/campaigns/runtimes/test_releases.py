"""The table of runtimes against real releases, which pip installs: `pytest -m campaign`.

Releases of ONNX Runtime before 1.15 need a Python 3.8, as pyenv has it; those that no Python here can install are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from onnx_migrate.cli.app import run as command
from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.files import load
from onnx_migrate.standard.targets import resolve, shipped
from tests.campaigns.runtimes.releases import Ran, Unavailable, run
from tests.campaigns.runtimes.sample import write_io
from tests.campaigns.runtimes.survey import CONVERTERS, MEASURED, best
from tests.campaigns.runtimes.test_oldest_releases import VERSIONS as OLDEST
from tests.fixtures.test_torch_exports import NAMES, case
from tests.support.paths import FIXTURES
from tests.support.skips import Elsewhere, skip

ONNXRUNTIME = (
    "1.6.0", "1.7.0", "1.8.1", "1.9.0", "1.10.0", "1.11.1", "1.12.1", "1.13.1", "1.14.1", "1.15.1", "1.16.3", "1.17.3",
    "1.18.1", "1.19.2", "1.20.1", "1.21.1", "1.22.1", "1.23.2", "1.24.4", "1.25.1", "1.26.0", "1.27.0", "1.28.0",
    "1.29.0", "1.30.0", "1.31.1",
)  # fmt: skip
"""Every minor release of the table."""

MODELS = ("detector_sized_opset9", "unet_opset9")
MORE_MODELS = (
    *MODELS,
    "conv_relu_upsample_opset9",
    "resize_nearest_opset10",
    "skip_segmenter_opset11",
    "transformer_opset9",
)
RELEASES = [
    *((f"onnxruntime=={version}", MORE_MODELS) for version in ONNXRUNTIME),
    *(
        (f"openvino=={version}", MORE_MODELS)
        for version in ("2023.1.0", "2024.6.0", "2025.4.1", "2026.3.1", "2026.4.1")
    ),
    *(
        (f"opencv=={version}", MODELS)
        for version in ("4.5.5.64", "4.8.1.78", "4.10.0.84", "4.14.0.94", "5.0.0.93")
    ),
]


def ran(requirement: str, folder: Path, names: list[str]) -> Ran:
    """Run models in a release, or skip the test."""
    name, _, version = requirement.partition("==")
    try:
        return run(name, version, folder, names)
    except Unavailable as error:
        skip(str(error), Elsewhere.ONLINE)


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for each opset, at IR version 3, and for each IR version, at opset 13."""
    folder = tmp_path_factory.mktemp("identities")
    (folder / "io").mkdir()
    x = np.array([1, -2], np.float32)
    names = {f"opset{opset}": (3, opset) for opset in range(7, 40)}
    names |= {f"ir{version}": (version, 13) for version in range(3, 20)}
    for name, (ir_version, opset) in names.items():
        text = f'<ir_version: {ir_version}, opset_import: ["": {opset}]> g (float[2] x) => (float[2] y) {{ y = Identity (x) }}'
        (folder / f"{name}.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
        write_io(folder, name, {"x": x}, [x], ["y"])
    return folder


@pytest.mark.campaign
@pytest.mark.parametrize("version", ONNXRUNTIME)
def test_onnxruntime_loads_what_its_row_says_and_nothing_newer(version: str, identities: Path) -> None:
    found = ran(
        f"onnxruntime=={version}", identities, sorted(path.stem for path in identities.glob("*.onnx"))
    )

    loaded = [name for name, ended in found.ended.items() if ended == "right"]
    row = resolve([f"onnxruntime=={version}"])
    assert found.release["version"] == version
    assert max(int(name[5:]) for name in loaded if name.startswith("opset")) == row.opset
    assert max(int(name[2:]) for name in loaded if name.startswith("ir")) == row.ir_version


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("requirement", "models"), RELEASES, ids=[requirement for requirement, _ in RELEASES]
)
def test_models_give_the_same_numbers_there(
    requirement: str, models: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "io").mkdir()
    for name in models:
        source, target = FIXTURES / f"{name}.onnx", tmp_path / f"{name}.onnx"
        with pytest.raises(SystemExit) as end:
            command([str(source), str(target), "--for", requirement, "--quiet"])
        assert end.value.code == 0
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        with np.load(source.with_suffix(".io.npz")) as recorded:
            feeds = {value.name: recorded[value.name] for value in session.get_inputs()}
        outputs = [value.name for value in session.get_outputs()]
        write_io(tmp_path, name, feeds, session.run(None, feeds), outputs)

    found = ran(requirement, tmp_path, list(models))

    (target,) = resolve([requirement])
    said = {name: CompatibilityChecker(load(tmp_path / f"{name}.onnx")).advise(target) for name in models}
    expected = {name: "wrong" if said[name].standing is Support.NO else "right" for name in models}
    assert found.ended == expected, found.why


@pytest.mark.campaign
@pytest.mark.parametrize("version", ["1.6.0", "1.9.0", "1.12.1", "1.14.1", "1.17.3"])
def test_exports_of_pytorch_come_down_for_old_releases(version: str, tmp_path: Path) -> None:
    """What the default exporter writes at opsets 18 and 23, with what PyTorch computed."""
    (tmp_path / "io").mkdir()
    names = []
    for name in NAMES:
        for opset in (18, 23):
            source, feeds, outputs = case(name, opset)
            onnx.save(source, tmp_path / "source.onnx")
            names.append(f"{name}_{opset}")
            target = str(tmp_path / f"{names[-1]}.onnx")
            with pytest.raises(SystemExit) as end:
                command(
                    [str(tmp_path / "source.onnx"), target, "--for", f"onnxruntime=={version}", "--quiet"]
                )
            assert end.value.code == 0
            write_io(tmp_path, names[-1], feeds, outputs)
    (tmp_path / "source.onnx").unlink()

    found = ran(f"onnxruntime=={version}", tmp_path, names)

    assert found.ended == dict.fromkeys(names, "right"), found.why


@pytest.mark.campaign
@pytest.mark.parametrize("version", ["4.5.5.64", "4.8.1.78", "4.12.0.88"])
def test_opencv_takes_inputs_of_three_axes(version: str, tmp_path: Path) -> None:
    (tmp_path / "io").mkdir()
    text = """<ir_version: 7, opset_import: ["": 12]>
    g (float[1,5,4] x) => (float[1,4,5] y) { a = Relu (x) y = Transpose <perm = [0, 2, 1]> (a) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "three.onnx")
    x = np.arange(-10, 10, dtype=np.float32).reshape(1, 5, 4)
    write_io(tmp_path, "three", {"x": x}, [np.maximum(x, 0).transpose(0, 2, 1)])

    found = ran(f"opencv=={version}", tmp_path, ["three"])

    assert found.ended == {"three": "right"}, found.why


def test_every_row_is_tried() -> None:
    tried = {numbers(".".join(version.split(".")[:2])) for version in (*OLDEST, *ONNXRUNTIME)}

    assert rows("onnxruntime") <= tried
    assert max(tried) == numbers(shipped("onnxruntime").newest)
    for name in ("openvino", "opencv"):
        measured = [numbers(key.split()[1]) for key in MEASUREMENTS if key.startswith(f"{name} ")]
        assert rows(name) <= set(measured)
        assert max(measured) == numbers(shipped(name).newest)


MEASUREMENTS = {
    key: found
    for key, found in json.loads(MEASURED.read_text(encoding="utf-8")).items()
    if key.split()[0] not in CONVERTERS
}


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def rows(name: str) -> set[tuple[int, ...]]:
    """Return the releases of a table whose rows say that they were measured."""
    return {numbers(row.since) for row in shipped(name).releases if row.measured}


@pytest.mark.parametrize("key", MEASUREMENTS)
def test_a_row_is_what_was_measured(key: str) -> None:
    measured, row = MEASUREMENTS[key], resolve([key.replace(" ", "==")])

    assert row.opset == best(measured)
    whole = measured["forms"]["11 scales"]
    assert row.resize_axes == (measured["forms"]["18 sizes of axes"] == whole)
    assert row.resize_form == ("auto" if measured["forms"]["13 sizes"] == whole else "scales")
