"""Commands that write one output at the same time, some of which are killed, while others read it.

Each round starts real processes. What is there afterwards is one of the models, whole, and nothing else.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaigns.faults.models import digest_of, write, write_external
from tests.support.paths import ROOT

__all__ = ["RACES", "Race", "Rounds", "run_race"]


@dataclass(frozen=True)
class Race:
    """What the writers do: `prepare` fills the folder, `commands` are started together.

    `models` are the outputs they share; a reader in a loop must find each of `readable` whole at any moment.
    """

    name: str
    prepare: Callable[[Path], None]
    commands: tuple[str, ...]
    models: tuple[str, ...]
    readable: tuple[str, ...] = ()


@dataclass
class Rounds:
    """What came of the rounds of a race."""

    rounds: int = 0
    writers: int = 0
    done: int = 0
    """Writers that ended with 0."""
    refused: int = 0
    """Writers that ended with 1 or 4 and a line that says why."""
    killed: int = 0
    reads: int = 0
    wrong: list[str] = field(default_factory=list)


def _two_sources(folder: Path) -> None:
    write(folder / "a.onnx", 1, floats=200_000)
    write(folder / "b.onnx", 2, floats=150_000)
    write(folder / "out.onnx", 3, opset=17)


def _two_sources_external(folder: Path) -> None:
    _two_sources(folder)
    write_external(folder / "out.onnx", 3, opset=17)


def _one_external(folder: Path) -> None:
    write_external(folder / "a.onnx", 1)


def _folder(folder: Path) -> None:
    (folder / "in").mkdir()
    for number in (1, 2):
        write(folder / "in" / f"m{number}.onnx", number)


QUICK = "--no-verify --no-simplify --config none --quiet"

RACES = {
    each.name: each
    for each in (
        Race(
            "one file", _two_sources, (f"a.onnx out.onnx {QUICK}", f"b.onnx out.onnx {QUICK}", f"a.onnx out.onnx {QUICK}"),
            ("out.onnx",), ("out.onnx",),
        ),
        Race(
            "external data", _two_sources_external,
            (f"a.onnx out.onnx --save-as-external-data {QUICK}", f"b.onnx out.onnx --save-as-external-data {QUICK}"),
            ("out.onnx",),
        ),
        Race(
            "external data and one file", _two_sources_external,
            (f"a.onnx out.onnx --save-as-external-data {QUICK}", f"b.onnx out.onnx {QUICK}"), ("out.onnx",),
        ),
        Race(
            "in place", _one_external, (f"a.onnx --in-place {QUICK}", f"a.onnx --in-place --opset 18 {QUICK}"),
            ("a.onnx",), ("a.onnx",),
        ),
        Race(
            "one folder", _folder, (f"batch in --out-dir out --jobs 1 {QUICK}", f"batch in --out-dir out --jobs 1 {QUICK}"),
            ("out/m1.onnx", "out/m2.onnx"),
        ),
    )
}  # fmt: skip


def run_race(race: Race, rounds: int, *, seed: int = 0, kill: bool = False) -> Rounds:
    """Run a race so many times; with `kill`, one of the writers is killed at a random moment, and the command run once more."""
    generator = random.Random(seed)
    result = Rounds()
    allowed, names, seconds = _outcomes(race)
    with tempfile.TemporaryDirectory(prefix="races-") as name:
        folder = Path(name, "work")
        for number in range(rounds):
            _fresh(race, folder)
            moment = generator.uniform(0.2, 1.4) * seconds if kill else None
            _round(race, folder, allowed, names, result, moment)
            result.rounds += 1
            if len(result.wrong) > 20:
                result.wrong.append(f"given up after round {number}")
                break
    return result


def _fresh(race: Race, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    race.prepare(folder)


def _start(command: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder.parent)}
    return subprocess.Popen(
        [sys.executable, "-m", "onnx_migrate", *command.split()],
        cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@functools.cache
def _outcomes(race: Race) -> tuple[dict[str, set[str]], list[set[str]], float]:
    """Run each command alone: the digests that each model may have, the names of files it may leave, and the longest seconds."""
    allowed: dict[str, set[str]] = {name: set() for name in race.models}
    names, seconds = [], 0.0
    with tempfile.TemporaryDirectory(prefix="races-") as parent:
        folder = Path(parent, "work")
        for command in race.commands:
            _fresh(race, folder)
            began = time.monotonic()
            process = _start(command, folder)
            _, err = process.communicate()
            seconds = max(seconds, time.monotonic() - began)
            assert process.returncode == 0, err
            for name in race.models:
                allowed[name].add(digest_of(folder / name))
            names.append(_names(folder))
    return allowed, names, seconds


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _round(
    race: Race,
    folder: Path,
    allowed: dict[str, set[str]],
    names: list[set[str]],
    result: Rounds,
    moment: float | None,
) -> None:
    """Run the commands together; `moment` is how many seconds later the first is killed, None for not at all."""
    old = {name: digest_of(folder / name) for name in race.models}
    reader = _Reader(folder, {name: allowed[name] | {old[name]} for name in race.readable})
    processes = [_start(command, folder) for command in race.commands]
    if moment is not None:
        time.sleep(moment)
        processes[0].send_signal(signal.SIGKILL)
    errors = [process.communicate(timeout=120)[1] for process in processes]
    result.reads += reader.stop(result.wrong)
    done = 0
    for process, error in zip(processes, errors, strict=True):
        result.writers += 1
        if process.returncode == 0:
            done += 1
        elif process.returncode == -signal.SIGKILL:
            result.killed += 1
        elif process.returncode in (1, 4) and error.startswith("onnx-migrate: ") and "Traceback" not in error:
            result.refused += 1
        else:
            result.wrong.append(f"exit {process.returncode}: {error[-300:]}")
    result.done += done
    if not done and all(digest_of(folder / name) == old[name] for name in race.models):
        # A killed writer may have been the one that wrote the model, and the others then found another source.
        result.wrong.append(f"no writer ended with 0: {errors}")
    for name in race.models:
        digest = digest_of(folder / name)
        if digest not in allowed[name]:
            result.wrong.append(f"{name}: {digest}, after {[process.returncode for process in processes]}")
    if moment is not None:
        again = _start(race.commands[0], folder)
        _, error = again.communicate(timeout=120)
        if again.returncode:
            result.wrong.append(f"the next run ends with {again.returncode}: {error}")
    if _names(folder) not in names:
        result.wrong.append(f"left: {sorted(_names(folder))}")


class _Reader(threading.Thread):
    """Loads models in a loop, and keeps what it finds that is none of the whole ones."""

    def __init__(self, folder: Path, allowed: dict[str, set[str]]) -> None:
        super().__init__(daemon=True)
        self._folder, self._allowed = folder, allowed
        self._stopped = threading.Event()
        self._wrong: list[str] = []
        self._reads = 0
        self.start()

    def run(self) -> None:
        while self._allowed and not self._stopped.is_set():
            for name, whole in self._allowed.items():
                digest = digest_of(self._folder / name)
                self._reads += 1
                if digest not in whole:
                    self._wrong.append(f"a reader found {name} {digest}")
            time.sleep(0.002)

    def stop(self, wrong: list[str]) -> int:
        """End the thread, add what was wrong, and return how often it read."""
        self._stopped.set()
        self.join()
        wrong.extend(self._wrong)
        return self._reads


def main(arguments: list[str]) -> int:
    """Run all races with and without a kill, and print a table; the argument is the number of rounds of each."""
    rounds = int(arguments[0]) if arguments else 50
    print(
        "| writers of | rounds | exit 0 | refused | killed | reads | wrong |\n|---|---|---|---|---|---|---|"
    )
    wrong = 0
    for race in RACES.values():
        for kill in (False, True):
            came = run_race(race, rounds, kill=kill)
            label = f"{race.name}, one killed" if kill else race.name
            counts = f"{came.rounds} | {came.done} | {came.refused} | {came.killed} | {came.reads}"
            print(f"| {label} | {counts} | {len(came.wrong)} |", flush=True)
            for text in came.wrong:
                print(f"  {text}", file=sys.stderr, flush=True)
            wrong += len(came.wrong)
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
