"""The wheel of the core: small, needs nothing but onnx and numpy, and converts as the whole package does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.core_wheel import build, core_modules, write_tree

OTHERS = {"click", "onnx_graphsurgeon", "onnxruntime", "onnxsim", "rich", "rich_click"}
"""What the whole package needs, and the core does not."""

CONVERT = """
import hashlib, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in set(sys.argv[3].split()):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
package = __import__(sys.argv[1])
results = {}
for path in json.loads(sys.argv[2]):
    for opset in (9, 13, 21):
        try:
            model, report = package.convert_version(path, opset, report=True)
        except package.MigrateError as error:
            results[f"{path} {opset}"] = str(error)
        else:
            content = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
            results[f"{path} {opset}"] = [content, json.loads(report.json())["changes"]]
print(json.dumps(results))
"""


def converted(package: str, missing: set[str], path: Path) -> object:
    """Return what a package makes of some fixtures, in a process that cannot import others."""
    fixtures = [str(file) for file in sorted((ROOT / "fixtures").glob("*.onnx"))[::6]]
    done = subprocess.run(
        [sys.executable, "-c", CONVERT, package, json.dumps(fixtures), " ".join(missing)],
        env={**os.environ, "PYTHONPATH": str(path)},
        cwd=path,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def test_the_core_converts_as_the_whole_package_does(tmp_path: Path) -> None:
    write_tree(tmp_path)
    core = converted("onnx_migrate_core", {*OTHERS, "onnx_migrate"}, tmp_path)

    assert core == converted("onnx_migrate", set(), ROOT)


def test_the_core_has_no_verifier_and_no_feature() -> None:
    rooms = {name.split(".")[0] for name in core_modules()}

    assert not rooms & {
        "batching",
        "cli",
        "explanation",
        "inspection",
        "migration",
        "reduction",
        "verification",
        "verify",
    }
    folders = {name.split(".")[1] for name in core_modules() if name.startswith("passes.")}
    assert not folders & {"precision", "control_flow", "dynamic_dims", "integers", "simplify", "targets"}


@pytest.mark.long
def test_the_wheel_is_small_and_needs_onnx_and_numpy(tmp_path: Path) -> None:
    wheel = build(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        needs = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist")

    assert wheel.stat().st_size < 1_000_000
    assert sorted(need.split(">")[0] for need in needs or ()) == ["numpy", "onnx"]
