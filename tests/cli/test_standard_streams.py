"""Standard output that is full, closed, cut short or of another encoding, standard input that is closed, and `-` as a path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from onnx_migrate.cli.standard_streams import OutputFailed, reporting
from tests.cli.running import FAST, Raw, large, leftovers, snapshot
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if

FIXTURE = ROOT / "fixtures" / "classifier_opset11.onnx"
TOOL = f'"{sys.executable}" -m onnx_migrate'

pytestmark = skip_if(sys.platform == "win32", "redirections are those of a POSIX shell", Elsewhere.LINUX)


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    target = tmp_path / "m.onnx"
    target.write_bytes(FIXTURE.read_bytes())
    return target


@skip_if(not Path("/dev/full").exists(), "the device is Linux's", Elsewhere.LINUX)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_model_on_a_full_disk_is_told(model: Path, unbuffered: str) -> None:
    ended = shell(f"{TOOL} m.onnx - {' '.join(FAST)} > /dev/full", model.parent, PYTHONUNBUFFERED=unbuffered)
    assert ended.returncode == 5
    assert b"No space left on device; the model on it is incomplete" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_stream_that_takes_a_part_of_a_write_gets_the_rest(tmp_path: Path) -> None:
    """The limit lets a part of one write through, which an unbuffered stream of Python's takes for all."""
    program = (
        "import resource, sys; from onnx_migrate.cli.standard_streams import OutputFailed, guard_streams; guard_streams();"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: sys.stdout.buffer.write(bytes(1500)); sys.stdout.flush()\n"
        "except OutputFailed as error: print(error, file=sys.stderr)"
    )
    with (tmp_path / "part").open("wb") as part:
        ended = subprocess.run(
            [sys.executable, "-u", "-c", program], stdout=part, stderr=subprocess.PIPE, check=False, cwd=ROOT
        )
    assert (tmp_path / "part").stat().st_size == 1000
    assert b"File too large" in ended.stderr


@skip_if(not Path("/dev/full").exists(), "the device is Linux's", Elsewhere.LINUX)
def test_a_report_that_is_lost_leaves_the_model_and_says_so(model: Path) -> None:
    ended = shell(f"{TOOL} m.onnx out.onnx {' '.join(FAST)} > /dev/full", model.parent)
    assert ended.returncode == 5
    assert b"the model is written to out.onnx" in ended.stderr
    onnx.checker.check_model(onnx.load(model.parent / "out.onnx"))


@skip_if(not Path("/dev/full").exists(), "the device is Linux's", Elsewhere.LINUX)
def test_messages_that_are_lost_change_no_exit_code(model: Path) -> None:
    (model.parent / "bad.onnx").write_bytes(b"no model")
    ended = shell(f"{TOOL} bad.onnx out.onnx 2> /dev/full", model.parent)
    assert (ended.returncode, ended.stdout) == (4, b"")
    ended = shell(f"{TOOL} m.onnx out.onnx {' '.join(FAST)} > /dev/full 2> /dev/full", model.parent)
    assert ended.returncode == 5


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError("of the disk"), "OSError: of the disk"),
        (ImportError("of a module"), "ImportError: of a module"),
        (MemoryError(), "MemoryError"),
        (OutputFailed("full"), "full"),
    ],
)
def test_a_report_that_cannot_be_made_is_a_failure_of_the_output(error: Exception, message: str) -> None:
    with pytest.raises(OutputFailed) as raised, reporting("the model is written"):
        raise error
    assert str(raised.value) == f"{message}; the model is written"


@pytest.mark.parametrize("output", ["out.onnx", "-"])
def test_a_closed_output_is_told(model: Path, output: str) -> None:
    ended = shell(f"{TOOL} m.onnx {output} {' '.join(FAST)} >&-", model.parent)
    assert ended.returncode == 5
    assert b"it is closed" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_all_streams_may_be_closed_where_nothing_is_printed(model: Path) -> None:
    ended = shell(f"{TOOL} m.onnx out.onnx --quiet {' '.join(FAST)} <&- >&- 2>&-", model.parent)
    assert ended.returncode == 0
    onnx.checker.check_model(onnx.load(model.parent / "out.onnx"))


def test_a_closed_input_is_an_error_of_usage(model: Path) -> None:
    ended = shell(f"{TOOL} - out.onnx <&-", model.parent)
    assert ended.returncode == 2
    assert b"stdin is closed" in ended.stderr


@pytest.mark.long
def test_a_reader_that_leaves_is_told_by_the_exit_code_alone(model: Path) -> None:
    ended = shell(
        f"{TOOL} m.onnx out.onnx {' '.join(FAST)} | (exec <&-; sleep 3); echo ${{PIPESTATUS[0]}}",
        model.parent,
    )
    assert ended.stdout.split() == [b"5"]
    assert ended.stderr == b"" or b"unverified" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert (model.parent / "out.onnx").exists()


@pytest.mark.long
def test_characters_that_the_encoding_lacks_are_written_as_ascii(model: Path) -> None:
    ended = shell(f"{TOOL} m.onnx out.onnx {' '.join(FAST)}", model.parent, PYTHONIOENCODING="cp1252")
    assert ended.returncode == 0
    assert b"m.onnx -> out.onnx" in ended.stdout
    ended = shell(f"{TOOL} m.onnx out.onnx {' '.join(FAST)}", model.parent, PYTHONIOENCODING="utf-8")
    assert "m.onnx → out.onnx".encode() in ended.stdout


@pytest.mark.long
def test_pipes_and_files_have_the_same_bytes(raw: Raw, folder: Path) -> None:
    onnx.save(large(), folder / "large.onnx")
    for name in ("small.onnx", "large.onnx"):
        data = (folder / name).read_bytes()
        assert raw(name, "out.onnx").returncode == 0

        done = raw("-", "-", input=data)

        assert done.returncode == 0, done.stderr
        assert done.stdout == (folder / "out.onnx").read_bytes()
        assert done.stderr.decode().startswith("verified: bit-identical\n  <stdin> → -\n  opset 11 → 17")
    assert not leftovers(folder)


def test_json_goes_to_stderr_when_the_model_goes_to_stdout(raw: Raw, folder: Path) -> None:
    done = raw("small.onnx", "-", "--json", *FAST)

    assert json.loads(done.stderr)["output"] == "-"
    assert onnx.load_from_string(done.stdout).opset_import[0].version == 17


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", b"cut"], ids=["empty", "html", "cut"])
def test_bad_bytes_are_one_line_and_an_empty_stdout(raw: Raw, folder: Path, data: bytes) -> None:
    if data == b"cut":
        data = (folder / "small.onnx").read_bytes()[:-20]

    done = raw("-", "-", input=data)

    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.count(b"\n") == 1
    assert b": <stdin> is " in done.stderr


def test_a_refusal_leaves_stdout_empty(raw: Raw, folder: Path) -> None:
    done = raw("small.onnx", "-", "--opset", "9", "--no-lower")

    assert (done.returncode, done.stdout) == (1, b"")
    assert list(snapshot(folder)) == ["small.onnx"]


def test_stdin_cannot_be_replaced(raw: Raw, folder: Path) -> None:
    for args in (("-", "--in-place"), ("small.onnx", "-", "--save-as-external-data")):
        assert raw(*args).returncode == 2
