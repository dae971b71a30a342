import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnx_migrate.cli.process_limits import limited
from onnx_migrate.errors import MigrateError
from onnx_migrate.process.limits import memory_limit
from tests.support.paths import ROOT
from tests.support.processes import Start
from tests.support.skips import Elsewhere, skip_if
from tests.support.small_model import UPSAMPLE

pytestmark = pytest.mark.cold

posix = skip_if(sys.platform == "win32", "Windows has no timers and no limits of a process", Elsewhere.LINUX)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_migrate.process.deadline.LEAST_SECONDS", 0.0)


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def last_stages(seconds: float, *stages: str) -> None:
    """Spend twenty seconds in the last of these stages."""
    with limited(seconds, None) as begins:
        for stage in stages:
            begins(stage)
        spin(20)


@posix
def test_a_stage_ends_in_time_and_is_named() -> None:
    start = time.monotonic()
    with pytest.raises(MigrateError, match=r"the stage 'lift' timed out after 0\.5 s") as caught:
        last_stages(0.5, "cleanup", "lift")
    assert caught.value.code == "timed-out"
    assert time.monotonic() - start < 5


def short_stages(seconds: float, *stages: str) -> None:
    """Spend some of the time in each of these stages."""
    with limited(seconds, None) as begins:
        for stage in stages:
            begins(stage)
            spin(0.4 * seconds)


@posix
def test_the_stages_share_the_time() -> None:
    with pytest.raises(MigrateError, match=r"the stage 'cleanup' timed out after 0\.4 s"):
        short_stages(0.4, "load", "lift", "cleanup", "sort")


@posix
def test_some_stages_have_no_limit() -> None:
    with limited(0.1, None) as begins:
        begins("verify")
        spin(0.3)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def inspect_what_refuses() -> None:
    with limited(0.3, None, "inspect"), contextlib.suppress(MigrateError):
        spin(20)


@posix
def test_no_refusal_of_a_model_takes_the_end_of_an_inspection_for_one() -> None:
    with pytest.raises(MigrateError) as caught:
        inspect_what_refuses()
    assert caught.value.code == "timed-out"


@posix
def test_an_error_that_something_caught_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_migrate.cli.process_limits._AGAIN", 0.2)
    with limited(0.2, None):
        for _ in range(3):
            with pytest.raises(MigrateError):
                spin(20)


def fail_with(error: type[BaseException]) -> None:
    with limited(60, None) as begins:
        begins("cleanup")
        raise error


@pytest.mark.parametrize(("error", "code"), [(MemoryError, "out-of-memory"), (RecursionError, "too-deep")])
def test_what_runs_out_is_an_error_of_one_line(error: type[BaseException], code: str) -> None:
    with pytest.raises(MigrateError, match="stage 'cleanup'") as caught:
        fail_with(error)
    assert caught.value.code == code


@posix
def test_memory_is_limited_within_the_block_alone() -> None:
    before = memory_limit()
    with limited(60, 3 << 30):
        assert memory_limit() == 3 << 30
    assert memory_limit() == before
    with limited(60, 1):
        assert memory_limit() == 1 << 30  # imports take some of it


@posix
@pytest.mark.parametrize(
    ("number", "code", "line"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_ends_an_inference_well_before_its_end(
    number: signal.Signals, code: int, line: str, tmp_path: Path, start: Start
) -> None:
    begun = tmp_path / "begun"
    script = (
        "import onnx_migrate.facts.onnx_inference as inference, pathlib, time\n"
        f"inference._infer = lambda *arguments: (pathlib.Path({str(begun)!r}).touch(), time.sleep(60))\n"
        "from onnx_migrate.cli import app\n"
        "app.run()"
    )
    output = tmp_path / "out.onnx"
    child = start(
        [sys.executable, "-c", script, str(UPSAMPLE), str(output)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not begun.exists():
        assert child.poll() is None
        time.sleep(0.05)
    sent = time.monotonic()
    child.send_signal(number)
    _, err = child.communicate(timeout=30)
    assert time.monotonic() - sent < 15  # well under the 60 s of the inference, on a machine with other work
    assert (child.returncode, err.strip()) == (code, f"onnx-migrate: {line}")
    assert not output.exists()
