"""The template of a plug-in, installed without the network, in a process of its own: its schemas would stay in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if

PLUGIN = ROOT / "examples" / "plugin"
MODEL = """<ir_version: 8, opset_import: ["": 12, "com.example": 1]>
g (float[2,3] x) => (float[2,3] y) { a = com.example.Swish <beta = 1.5> (x)  y = com.example.Clamp (a) }"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the plug-in is installed."""
    work = tmp_path_factory.mktemp("plugin")
    copy, target = work / "source", work / "site"
    for path in PLUGIN.rglob("*"):
        if path.suffix in (".py", ".toml"):
            place = copy / path.relative_to(PLUGIN)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    code = f"from setuptools import build_meta; print(build_meta.build_wheel({str(work)!r}))"
    built = subprocess.run(
        [sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]
    import zipfile

    with zipfile.ZipFile(work / built) as wheel:
        wheel.extractall(target)
    return target


@pytest.mark.long
def test_a_type_checker_takes_it() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "example_ops", "test_example_ops.py"],
        cwd=PLUGIN, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout


def run(installed: Path, *words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(ROOT), str(installed)))
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.long
@skip_if(
    not hasattr(onnx.defs.OpSchema, "set_type_and_shape_inference_function"),
    "before onnx 1.17 a registered schema infers no types, so that the example's step writes a CastLike more",
    Elsewhere.NEWEST,
)
def test_its_own_tests_pass(installed: Path, tmp_path: Path) -> None:
    options = (
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        "-c",
        os.devnull,
        "--rootdir",
        tmp_path,
    )
    ended = run(installed, "-m", "pytest", *options, PLUGIN / "test_example_ops.py", cwd=tmp_path)

    assert ended.returncode == 0, ended.stdout
    assert "3 passed" in ended.stdout


def test_the_command_line_has_its_domain_its_pass_and_its_explanations(
    installed: Path, tmp_path: Path
) -> None:
    proto = onnx.parser.parse_model(MODEL)
    proto.graph.node[0].doc_string = "/home/me/model.py"
    onnx.save(proto, tmp_path / "m.onnx")
    words = (
        "-m",
        "onnx_migrate",
        "m.onnx",
        "o.onnx",
        "--no-simplify",
        "--json",
        "--pass",
        "drop_doc_strings",
        "--opset",
    )

    ended = run(installed, *words, "17,com.example=latest", cwd=tmp_path)

    assert ended.returncode == 0, ended.stderr
    report, result = json.loads(ended.stdout), onnx.load(tmp_path / "o.onnx")
    assert report["after"]["opset_imports"] == {"": 17, "com.example": 2}
    assert report["changes"][0]["reason"] == "`beta` is an input, no longer an attribute"
    assert "ran drop_doc_strings of the installed package example-ops" in [
        note["message"] for note in report["notes"]
    ]
    assert not result.graph.node[0].doc_string
    unasked = run(
        installed, *(word for word in words[:-1] if "drop" not in word and word != "--pass"), cwd=tmp_path
    )
    assert "drop_doc_strings" not in unasked.stdout
    explained = run(installed, "-m", "onnx_migrate", "explain", "com.example.clamp-2", cwd=tmp_path)
    assert "both are min(max(x, low), high)" in explained.stdout

    broken = onnx.parser.parse_model(MODEL.replace("beta", "alpha"))
    onnx.save(broken, tmp_path / "m.onnx")
    refused = run(installed, *words, "com.example=2", cwd=tmp_path)
    assert refused.returncode == 4
    assert "has an attribute 'alpha', which Swish-1 does not have" in refused.stderr


def test_a_plug_in_that_cannot_be_imported_is_named(installed: Path, tmp_path: Path) -> None:
    package = tmp_path / "broken-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text(
        "[onnx_migrate.adapters]\nbad = no_such_module\n", encoding="utf-8"
    )
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")

    words = ("m.onnx", "o.onnx", "--no-simplify", "--no-verify", "--opset")
    assert run(tmp_path, "-m", "onnx_migrate", *words, "17", cwd=tmp_path).returncode == 0, (
        "it needs no plug-in"
    )
    ended = run(tmp_path, "-m", "onnx_migrate", *words, "com.example=2", cwd=tmp_path)

    assert ended.returncode == 2
    assert "plugin-failed" in ended.stderr
    assert "the plug-in 'bad' (no_such_module), which is installed, cannot be loaded" in ended.stderr
