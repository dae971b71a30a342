"""`--depfile`: make and ninja rebuild when a file that was read has changed, and not otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.running import FAST, Run, large
from tests.support.skips import Elsewhere, skip

PASS = "import onnx\ndef nothing(model: onnx.ModelProto): pass\n"


def test_all_files_that_were_read_are_listed(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "in").mkdir()
    onnx.save(
        large(), folder / "in" / "a b.onnx", save_as_external_data=True, location="w $1.bin", size_threshold=0
    )
    (folder / "own_pass_of_depfile.py").write_text(PASS, encoding="utf-8")
    np.savez(folder / "x.npz", x=np.zeros((1, 3, 8, 8), np.float32))

    ended = cli(
        "in/a b.onnx", "out.onnx", "--depfile", "out.d", "--pass", "own_pass_of_depfile:nothing",
        "--input-data", "x.npz", "--no-simplify",
    )  # fmt: skip

    assert (ended.code, ended.err) == (0, "")
    first, *rest = (folder / "out.d").read_text(encoding="utf-8").splitlines()
    assert first == "out.onnx: in/a\\ b.onnx in/w\\ $$1.bin x.npz own_pass_of_depfile.py"
    assert rest == ["in/a\\ b.onnx:", "in/w\\ $$1.bin:", "x.npz:", "own_pass_of_depfile.py:"]


def test_a_failure_writes_no_dependency_file(cli: Run, folder: Path) -> None:
    assert cli("small.onnx", "out.onnx", "--depfile", "out.d", "--opset", "9", "--no-lower").code == 1
    assert not (folder / "out.d").exists()
    assert cli("small.onnx", "out.onnx", "--depfile", "no/out.d", *FAST).code == 1


MAKEFILE = (
    "out.onnx: ; {command} in.onnx out.onnx -q --no-verify --no-simplify --depfile out.d\n-include out.d\n"
)
NINJA = """rule migrate
  command = {command} in.onnx out.onnx -q --no-verify --no-simplify --depfile out.d
  depfile = out.d
build out.onnx: migrate
"""


@pytest.mark.long
@pytest.mark.parametrize("tool", ["make", "ninja"])
def test_make_and_ninja_read_it(
    tool: str, folder: Path, command: list[str], environment: dict[str, str]
) -> None:
    if shutil.which(tool) is None:
        skip(f"{tool} is not installed", Elsewhere.INSTALLED)
    onnx.save(large(), folder / "in.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    if tool == "make":
        (folder / "Makefile").write_text(MAKEFILE.format(command=" ".join(command)), encoding="utf-8")
    else:
        (folder / "build.ninja").write_text(NINJA.format(command=" ".join(command)), encoding="utf-8")

    def build() -> int:
        subprocess.run([tool], cwd=folder, env=environment, check=True, capture_output=True, timeout=120)
        return (folder / "out.onnx").stat().st_mtime_ns

    first = build()
    assert build() == first, "nothing has changed"
    later = first + 2 * 10**9
    os.utime(folder / "w.bin", ns=(later, later))
    assert build() != first, "the weights have changed"


@pytest.mark.parametrize(
    "old",
    [
        "",
        "out.onnx: in.onnx\nin.onnx:\n",
        "other.o: a.c \\\n b.h\n\na.c:\n\nb.h:\n",
        "a=1.onnx: in.onnx\nin.onnx:\n",
        "out.onnx: " + " ".join(f"file{n}.onnx" for n in range(9000)) + "\n",
        "out.onnx:\n",
    ],
)
def test_another_dependency_file_is_replaced(cli: Run, folder: Path, old: str) -> None:
    (folder / "out.d").write_text(old, encoding="utf-8")
    assert cli("small.onnx", "out.onnx", "--depfile", "out.d", *FAST).code == 0
    assert (folder / "out.d").read_text(encoding="utf-8") == "out.onnx: small.onnx\nsmall.onnx:\n"


@pytest.mark.parametrize(
    "old",
    ["import os\n", "all: a b\n\ttouch a\n", "a: 1\nb: 2\n", "# notes\n", "a: \0\n", "a.o: b.c\nc.o: d.c\n"],
)
def test_a_file_of_another_kind_is_not_replaced_by_a_depfile(cli: Run, folder: Path, old: str) -> None:
    (folder / "out.d").write_text(old, encoding="utf-8")
    ended = cli("small.onnx", "out.onnx", "--depfile", "out.d", *FAST)
    assert (ended.code, "out.d exists and is not a dependency file" in ended.err) == (1, True)
    assert (folder / "out.d").read_text(encoding="utf-8") == old
