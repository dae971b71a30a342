"""The models of random nodes, and what of them forms are learned from."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.form_tables import without_faults
from benchmarks.random_nodes import write
from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.files import load
from onnx_migrate.standard.targets import resolve
from tests.campaigns.runtimes import releases
from tests.harness import model, run
from tests.support.skips import Elsewhere, skip


def test_a_seed_gives_the_same_models_with_what_they_compute(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        write(tmp_path / folder, 40, seed=3)
    paths = sorted((tmp_path / "one").glob("*.onnx"))

    assert len({path.name.partition("_")[0] for path in paths}) > 10
    for path in paths:
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()
        with np.load(tmp_path / "one" / "io" / f"{path.stem}.npz") as data:
            feeds = {key[2:]: data[key] for key in data.files if key.startswith("i:")}
            expected = [data[key] for key in sorted(data.files) if key.startswith("o:")]
        for found, wanted in zip(run(onnx.load(path), feeds), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_what_a_fault_explains_counts_against_no_form(tmp_path: Path) -> None:
    text = "11 (float[{0},3] x) => (float[a,b] y) <int64[2] r = {{1, 2}}> {{ y = Tile(x, r) }}"
    (tmp_path / "whole").mkdir()
    for name, length in (("known", 2), ("unknown", 1)):
        onnx.save(model(text.format(length)), tmp_path / "whole" / f"{name}.onnx")
    kept = {
        f"whole/{name}": ("", how, "")
        for name, how in (("known", "wrong"), ("unknown", "wrong"), ("gone", "wrong"))
    }

    left = without_faults("opencv", "4.8.1.78", kept, tmp_path)
    assert list(left) == ["whole/unknown", "whole/gone"]
    assert without_faults("opencv", "4.8.1.78", {"whole/known": ("", "right", "")}, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("runtime", "package"),
    [("opencv", "opencv-python-headless"), ("openvino", "openvino"), ("tract", "tract")],
)
def test_what_is_said_to_run_runs(runtime: str, package: str, tmp_path: Path) -> None:
    try:
        release = version(package)
    except PackageNotFoundError:
        skip(f"{runtime} is not installed", Elsewhere.INSTALLED)
    write(tmp_path, 150, seed=20)
    names = sorted(path.stem for path in tmp_path.glob("*.onnx"))
    (target,) = resolve([f"{runtime}=={release}"])
    said = {
        name: CompatibilityChecker(load(tmp_path / f"{name}.onnx")).advise(target).standing for name in names
    }

    found = releases.run(runtime, release, tmp_path, names, python=sys.executable)

    run_there = [name for name, standing in said.items() if standing is Support.AS_IS]
    assert len(run_there) > 80
    assert {name: found.why[name] for name in run_there if found.ended[name] != "right"} == {}
    assert [
        name for name, standing in said.items() if standing is Support.NO and found.ended[name] == "right"
    ] == []
