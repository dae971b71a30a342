"""The process: help, version, pipes and signals."""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from onnx_migrate import __version__, default_pipeline
from onnx_migrate.cli.app import run
from tests.cli.running import FAST, Ended, Run, leftovers, snapshot, wait_for
from tests.support.processes import Start
from tests.support.skips import Elsewhere, skip_if

pytestmark = pytest.mark.cold

HELP_SECONDS = 0.3
"""Longest CPU time of `--help` on an idle machine."""

SLACK = 2.0
"""Factor by which CPU time may be longer on a busy machine."""


def test_help_shows_commands_exit_codes_and_an_example(process: Run) -> None:
    ended = process("--help")

    assert (ended.code, ended.err) == (0, "")
    assert "onnx-migrate model.onnx out.onnx --opset 21 --dynamic x:N,3,H,W" in ended.out
    for command in ("migrate", "batch", "inspect", "verify", "explain", "passes"):
        assert command in ended.out
    for code, meaning in enumerate(
        (
            "done",
            "the model cannot be converted",
            "wrong usage",
            "the numbers differ",
            "the file is not an ONNX model",
        )
    ):
        assert f"{code}  {meaning}" in ended.out


def test_help_is_quick(process: Run) -> None:
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(once() for _ in range(3)) <= HELP_SECONDS * SLACK


def test_help_of_a_command_names_all_its_options(cli: Run) -> None:
    from onnx_migrate.cli.commands.migrate import migrate

    ended = cli("migrate", "--help")

    assert ended.code == 0
    for parameter in migrate.params:
        for option in parameter.opts:
            assert option[:20].upper() in ended.out.upper()
    assert "[b]" not in ended.out, "markup shows through"


@pytest.mark.parametrize("way", ["module", "script"])
def test_version(process: Run, way: str) -> None:
    start = [sys.executable, "-m", "onnx_migrate"] if way == "module" else []

    assert process("--version", start=start) == Ended(0, f"onnx-migrate, version {__version__}\n", "")


def test_no_arguments_print_help(process: Run) -> None:
    ended = process()

    assert (ended.code, ended.err) == (2, "")
    assert "Usage: onnx-migrate" in ended.out


@pytest.mark.parametrize(
    "args",
    [
        ["--bogus", "small.onnx", "out.onnx"],
        ["small.onnx"],
        ["small.onnx", "out.onnx", "more.onnx"],
        ["small.onnx", "out.onnx", "-o", "other.onnx"],
        ["small.onnx", "out.onnx", "--in-place"],
        ["small.onnx", "-o", "out.onnx", "--in-place"],
        ["small.onnx", "out.onnx", "--simplify=maybe"],
        ["small.onnx", "out.onnx", "--no-simplify", "--simplify=require"],
        ["small.onnx", "out.onnx", "--timeout", "0"],
        ["small.onnx", "out.onnx", "--timeout", "soon"],
        ["small.onnx", "out.onnx", "--memory-limit", "-1"],
        ["small.onnx", "out.onnx", "--opset"],
        ["migrate"],
        ["explain", ""],
        ["passes", "more"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_2(cli: Run, folder: Path, args: list[str]) -> None:
    before = snapshot(folder)

    ended = cli(*args)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("onnx-migrate: usage: ")
    assert ended.err.count("\n") == 1
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["passes"],
        ["explain", "resize-11"],
        ["small.onnx", "out.onnx", *FAST],
        ["small.onnx", "out.onnx", "--json", *FAST],
        ["missing.onnx", "out.onnx", "--json"],
    ],
    ids=" ".join,
)
def test_a_closed_stdout_is_no_traceback(
    folder: Path, command: list[str], environment: dict[str, str], args: list[str]
) -> None:
    with subprocess.Popen(
        [*command, *args],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout
        assert child.stderr
        child.stdout.close()
        error = child.stderr.read()
        assert child.wait(60) == (4 if args[0] == "missing.onnx" else 5)

    assert "Traceback" not in error
    assert "BrokenPipe" not in error
    assert (folder / "out.onnx").exists() == (args[0] == "small.onnx")


PASSES = """
import pathlib, time, onnx

def wait(model: onnx.ModelProto):
    pathlib.Path("reached").touch()
    time.sleep(60)

def pass_by(model: onnx.ModelProto):
    pathlib.Path("reached").touch()
"""


def descendants(pid: int) -> list[int]:
    """Return the processes that the threads of a process have started."""
    with contextlib.suppress(FileNotFoundError):
        children = list(Path(f"/proc/{pid}/task").glob("*/children"))
        return [int(word) for file in children for word in file.read_text().split()]
    return []


def never_ready(folder: Path) -> Path:
    """Return a folder with an onnxruntime that never loads: only child processes load it, which then verify nothing."""
    (folder / "slow").mkdir()
    (folder / "slow" / "onnxruntime.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    return folder / "slow"


@skip_if(sys.platform != "linux", "looks into /proc", Elsewhere.LINUX)
@pytest.mark.parametrize("where", ["wait", "pass_by"], ids=["in a pass", "in a child process"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_no_files_and_no_processes(
    folder: Path,
    command: list[str],
    environment: dict[str, str],
    start: Start,
    number: int,
    code: int,
    where: str,
) -> None:
    (folder / "own.py").write_text(PASSES, encoding="utf-8")
    (folder / "out.onnx").write_bytes(b"as it was")
    before = snapshot(folder)
    path = environment["PYTHONPATH"]
    if where == "pass_by":
        path = f"{never_ready(folder.parent)}:{path}"  # or the command might be done before the signal comes
    child = start(
        [*command, "small.onnx", "out.onnx", "--pass", f"own:{where}"],
        cwd=folder,
        env={**environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for((folder / "reached").exists)
    children: list[int] = []
    if where == "pass_by":
        wait_for(lambda: children.extend(descendants(child.pid)) or children)
    child.send_signal(number)
    out, error = child.communicate(timeout=30)

    (folder / "reached").unlink()
    assert (child.returncode, out) == (code, "")
    assert error == (
        "onnx-migrate: interrupted\n" if number == signal.SIGINT else "onnx-migrate: terminated\n"
    )
    assert snapshot(folder) == before
    assert not leftovers(folder)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


@pytest.mark.usefixtures("in_background")
@skip_if(sys.platform != "linux", "looks into /proc", Elsewhere.LINUX)
@pytest.mark.parametrize(
    "args",
    [["small.onnx", "out.onnx"], ["batch", "small.onnx", "--out-dir", "out"]],
    ids=["migrate", "batch"],
)
def test_a_background_job_ignores_ctrl_c_and_is_terminated_with_its_workers(
    folder: Path, command: list[str], environment: dict[str, str], start: Start, args: list[str]
) -> None:
    (folder / "own.py").write_text(PASSES, encoding="utf-8")
    path = f"{never_ready(folder.parent)}:{environment['PYTHONPATH']}"
    child = start(
        [*command, *args, "--pass", "own:pass_by"],
        cwd=folder,
        env={**environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    children: list[int] = []
    wait_for(lambda: children.extend(descendants(child.pid)) or children)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)  # Python would handle SIGINT first
    _, error = child.communicate(timeout=30)

    assert (child.returncode, error) == (143, "onnx-migrate: terminated\n")
    assert not leftovers(folder)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


FAKE = """
import os, signal, sys, time
os.kill(os.getpid(), signal.{})
time.sleep(0.1)
sys.stderr.write("loaded, ")
sys.stderr.flush()
"""


@skip_if(sys.platform == "win32", "no signal masks there", Elsewhere.LINUX)
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_signals_are_blocked_while_native_modules_load(
    process: Run, environment: dict[str, str], tmp_path: Path, name: str, code: int
) -> None:
    """An exception raised by a signal handler during these imports is lost, or crashes the process."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "onnx.py").write_text(FAKE.format(name), encoding="utf-8")
    path = f"{tmp_path / 'fake'}:{environment['PYTHONPATH']}"

    ended = process("inspect", "small.onnx", PYTHONPATH=path)

    assert ended.code == code
    assert ended.err.startswith("loaded, ")


@pytest.mark.parametrize(("given", "seen"), [({}, "4"), ({"OPENBLAS_THREAD_TIMEOUT": "20"}, "20")])
def test_threads_of_numpy_sleep_unless_the_user_says_otherwise(
    process: Run, environment: dict[str, str], tmp_path: Path, given: dict[str, str], seen: str
) -> None:
    """OpenBLAS reads the variable as it is loaded."""
    (tmp_path / "fake").mkdir()
    code = "import os, sys; sys.exit(os.environ.get('OPENBLAS_THREAD_TIMEOUT'))"
    (tmp_path / "fake" / "onnx.py").write_text(code, encoding="utf-8")
    path = f"{tmp_path / 'fake'}:{environment['PYTHONPATH']}"

    assert process("inspect", "small.onnx", PYTHONPATH=path, **given).err == f"{seen}\n"


@pytest.mark.parametrize("module", ["rich_click", "onnx"])
@pytest.mark.parametrize(
    "error",
    [
        "ImportError('it is broken')",
        "MemoryError('it is broken')",
        "OSError('it is broken')",
        "SystemError('it is broken')",
    ],
)
def test_a_module_that_cannot_be_loaded_is_one_line(
    process: Run, environment: dict[str, str], tmp_path: Path, module: str, error: str
) -> None:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / f"{module}.py").write_text(f"raise {error}", encoding="utf-8")

    ended = process("small.onnx", "out.onnx", PYTHONPATH=f"{tmp_path / 'fake'}:{environment['PYTHONPATH']}")

    assert ended.code == 1
    assert re.fullmatch(r"onnx-migrate: failed: .*(it is broken|memory is exhausted)\n", ended.err)


def test_commands_find_passes_in_the_working_folder(process: Run, folder: Path) -> None:
    (folder / "own.py").write_text(PASSES, encoding="utf-8")

    assert process("small.onnx", "out.onnx", "--pass", "own:pass_by", *FAST).code == 0
    assert (folder / "reached").exists()


@pytest.mark.long
def test_a_file_named_like_a_dependency_is_not_imported(process: Run, folder: Path) -> None:
    (folder / "onnx.py").write_text("raise SystemExit('the wrong one')\n", encoding="utf-8")
    (folder / "own.py").write_text(PASSES, encoding="utf-8")

    ended = process("small.onnx", "out.onnx", "--pass", "own:pass_by", "--simplify=require")

    assert (ended.code, ended.err) == (0, "")
    assert "in onnxruntime " in ended.out, "the child processes found the wrong one"
    assert onnx.load(folder / "out.onnx").opset_import[0].version == 17


def test_ctrl_c_before_the_command_starts_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("onnx_migrate.cli.app.guard_streams", interrupted)
    with pytest.raises(SystemExit) as ended:
        run(["inspect", "a.onnx"])

    assert ended.value.code == 130
    assert capsys.readouterr().err == "onnx-migrate: interrupted\n"


def test_passes_are_listed_in_the_order_they_run(cli: Run) -> None:
    ended = cli("passes")

    assert (ended.code, ended.err) == (0, "")
    rows = [line.split(maxsplit=1) for line in ended.out.splitlines()]
    assert [row[0] for row in rows] == list(default_pipeline(dynamic={}).names)
    assert all(row[1].endswith(".") for row in rows)
