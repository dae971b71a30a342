"""The examples, the hooks and the action, run as users run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from tests.cli.running import SMALL, large
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, import_or_skip, skip
from tests.support.warm_start import let_fork


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with models, one with external data, and `onnx-migrate` on the PATH."""
    models, tools = tmp_path / "work" / "models", tmp_path / "bin"
    models.mkdir(parents=True)
    tools.mkdir()
    onnx.save(onnx.parser.parse_model(SMALL), models / "small.onnx")
    onnx.save(large(), models / "large.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "work" / "onnx-migrate.toml").write_text(
        "verify = false\nsimplify = false\n", encoding="utf-8"
    )
    script = tools / "onnx-migrate"
    script.write_text(
        f"#!{sys.executable} -P\nfrom onnx_migrate.cli import main\nif __name__ == '__main__':\n    main()\n",
        encoding="utf-8",
    )
    if sys.version_info < (3, 11):
        script.write_text(script.read_text(encoding="utf-8").replace(" -P", ""), encoding="utf-8")
    script.chmod(0o755)
    if sys.platform == "linux":
        let_fork(script)
    return tmp_path / "work"


def run(work: Path, *command: object, code: int = 0, **more: str) -> str:
    path = f"{work.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*map(str, command)], cwd=work, env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **more},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def opsets(folder: Path) -> dict[str, int]:
    return {path.name: int(onnx.load(path).opset_import[0].version) for path in sorted(folder.glob("*.onnx"))}


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.onnx")}


def touch(path: Path) -> None:
    later = time.time_ns() + 10**10  # not than it was: on a slow machine builds take 10 s
    os.utime(path, ns=(later, later))


DONE = {"large.onnx": 17, "small.onnx": 17}


def builds_what_changed(work: Path, *build: str) -> None:
    """Assert that a build makes all, then nothing, and after a change of weights the model that has them."""
    run(work, *build)
    assert opsets(work / "build") == DONE
    first = times(work / "build")
    run(work, *build)
    assert times(work / "build") == first

    touch(work / "models" / "w.bin")
    run(work, *build)
    again = times(work / "build")
    assert [name for name in first if again[name] != first[name]] == ["large.onnx"]


def test_the_makefile(work: Path) -> None:
    if shutil.which("make") is None:
        skip("make is not installed", Elsewhere.INSTALLED)
    shutil.copy(ROOT / "examples" / "make" / "Makefile", work)

    builds_what_changed(work, "make")


@pytest.mark.long
@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_the_cmake_project(work: Path, generator: str) -> None:
    if shutil.which("cmake") is None or shutil.which("ninja" if generator == "Ninja" else "make") is None:
        skip("cmake or its generator's tool is not installed", Elsewhere.INSTALLED)
    shutil.copy(ROOT / "examples" / "cmake" / "CMakeLists.txt", work)

    run(work, "cmake", "-S", ".", "-B", "build", "-G", generator)
    builds_what_changed(work, "cmake", "--build", "build")


@pytest.mark.long
def test_the_python_build_step(work: Path) -> None:
    script = ROOT / "examples" / "python" / "build_models.py"

    printed = run(work, sys.executable, script, "models", "build")
    assert sorted(printed.split()) == ["migrated", "migrated", "models/large.onnx", "models/small.onnx"]
    assert opsets(work / "build") == DONE
    (work / "models" / "text.onnx").write_text("hello", encoding="utf-8")
    assert "failed     models/text.onnx" in run(work, sys.executable, script, "models", "build", code=1)


def called(hook: dict[str, str], *args: str) -> list[str]:
    """Return what pre-commit runs, before the names: with `args`, where a configuration has these."""
    return [*hook["entry"].split(), *(args or hook["args"].strip("[]").split())]


def hooks() -> dict[str, dict[str, str]]:
    """Read the hooks' file, which is simple enough to need no YAML library."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = [
        dict(re.findall(r"(?m)^(?:- |  )(\w+): (.*)$", part))
        for part in re.split(r"(?m)^(?=- id)", text)
        if part
    ]
    return {entry["id"]: entry for entry in entries}


@pytest.mark.long
def test_the_hooks(work: Path) -> None:
    check, mend = hooks()["onnx-migrate-check"], hooks()["onnx-migrate"]
    names = ["models/large.onnx", "models/small.onnx"]
    assert all(re.search(entry["files"], name) for entry in (check, mend) for name in names)

    run(work, *called(check), *names, code=1)
    assert set(opsets(work / "models").values()) == {11}
    run(work, *called(mend), *names)
    assert opsets(work / "models") == DONE
    run(work, *called(check), *names)
    run(work, *called(check, "--opset", "18"), *names, code=1)


def steps() -> list[str]:
    """Return the scripts of the action's steps."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    found: list[Any] = re.findall(r"(?m)^      run: (?:\|\n((?:        .*\n)+)|(.*)$)", text)
    return [block.replace("\n        ", "\n").strip() if block else line for block, line in found]


@pytest.mark.parametrize("target", ["", "build dir"])
def test_the_action(work: Path, target: str) -> None:
    if shutil.which("bash") is None:
        skip("bash is not installed", Elsewhere.INSTALLED)
    install, migrate = steps()
    assert install == 'python -m pip install --quiet "${WANTED:-${OWN}[all]}"'
    assert "mapfile" not in migrate.replace("has no mapfile", "")  # the bash of macOS is 3.2

    (work / "outputs").write_text("before=1\n")

    printed = run(
        work, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", migrate, code=0 if target else 1,
        MODELS="models/small.onnx\nmodels/la*.onnx\n", OUT_DIR=target, OPTIONS="--opset=18\n--no-verify",
        GITHUB_ACTIONS="true", GITHUB_OUTPUT=str(work / "outputs"),
    )  # fmt: skip

    assert "2 of 2 models" in printed
    outputs = dict(line.split("=") for line in (work / "outputs").read_text().splitlines())
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert outputs.keys() - {"before"} == set(re.findall(r"steps\.migrate\.outputs\.([\w-]+)", action))
    assert (outputs["models"], outputs["migrated"], outputs["failed"]) == ("2", "2", "0")
    if target:
        assert opsets(work / target) == {"large.onnx": 18, "small.onnx": 18}


def test_after_a_torch_export(work: Path) -> None:
    """Needs PyTorch and onnxscript, which the tests do not install."""
    import_or_skip("torch", Elsewhere.BY_HAND)
    import_or_skip("onnxscript", Elsewhere.BY_HAND)

    run(work, sys.executable, ROOT / "examples" / "after_torch_export.py")

    assert opsets(work) == {"model_opset13.onnx": 13}
