"""Runs programs of other people, and looks for what they leave behind. `python -m tests.campaigns.hosts.run [NAME …]`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.campaigns.hosts.scripts import HOSTS, Host
from tests.support.paths import ROOT

__all__ = ["Ending", "faults", "left_processes", "run"]

_MARK = "ONNX_MIGRATE_TEST_HOST"
"""The variable that tells the processes of one program from all others."""

_PATIENCE = 10.0
"""Seconds in which the processes of a program must end after it."""


@dataclass(frozen=True)
class Ending:
    """How a program ended: its code, None where it was killed after its time, what it printed, and what it left."""

    code: int | None
    out: str
    err: str
    seconds: float
    processes: tuple[str, ...]
    folders: tuple[str, ...]


def run(host: Host, seconds: float = 60.0, python: str = sys.executable) -> Ending:
    """Run a program with a folder for temporary files that nobody else uses."""
    with TemporaryDirectory() as folder:
        mark = uuid.uuid4().hex
        own = {"PYTHONPATH": str(ROOT), "TMPDIR": folder, _MARK: mark, **dict(host.variables)}
        start = time.monotonic()
        with subprocess.Popen(
            [python, *host.flags, "-c", host.script],
            cwd=ROOT, env={**os.environ, **own}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            code: int | None = None
            try:
                out, err = process.communicate(timeout=seconds)
                code = process.returncode
            except subprocess.TimeoutExpired:
                _kill(mark)
                out, err = process.communicate()
        took = time.monotonic() - start
        left = left_processes(mark)
        _kill(mark)
        folders = tuple(path.name for path in Path(folder).glob("onnx-migrate-*"))
        return Ending(code, out.strip(), err.strip(), took, left, folders)


def left_processes(mark: str) -> tuple[str, ...]:
    """Return the commands of processes with this mark that do not end within some seconds."""
    end = time.monotonic() + _PATIENCE
    while True:
        found = _marked(mark)
        if not found or time.monotonic() > end:
            return tuple(_command(process) for process in found)
        time.sleep(0.05)


def _marked(mark: str) -> list[int]:
    processes = (path for path in Path("/proc").glob("[0-9]*") if path.name != str(os.getpid()))
    return [int(path.name) for path in processes if mark.encode() in _environment(path)]


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:  # of another user, or it has ended
        return b""


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")[:80]
    except OSError:
        return str(process)


def _kill(mark: str) -> None:
    for process in _marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def faults(host: Host, ending: Ending) -> list[str]:
    """Return what is wrong with the ending of a program."""
    wrong = []
    first = ending.out.partition(":")[0]
    if first not in host.expected:
        wrong.append(f"it printed {ending.out[:300]!r}, and {' or '.join(host.expected)} is right")
    if ending.code is None:
        wrong.append(f"it hung for {ending.seconds:.0f} s")
    own_warning = any("Warning" in line and "/onnx_migrate/" in line for line in ending.err.splitlines())
    if "Traceback" in ending.err or "Exception ignored" in ending.err or own_warning:
        wrong.append(ending.err[-1500:])
    wrong += [f"a process is left: {command}" for command in ending.processes]
    wrong += [f"a folder is left: {name}" for name in ending.folders]
    return wrong


def main(names: Sequence[str]) -> int:
    """Run the programs of these names, all without any, and print how each ended."""
    failed = 0
    for host in HOSTS:
        if names and host.name not in names:
            continue
        ending = run(host)
        wrong = faults(host, ending)
        failed += bool(wrong)
        print(f"{host.name:28} {ending.seconds:5.1f} s  {'; '.join(wrong) or ending.out[:60]}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
