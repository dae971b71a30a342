"""Runs a scenario with a fault at every call, and collects what is wrong afterwards."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from tests.campaigns.faults.injector import ERRORS, SIGNALS, Fault, Plan, build
from tests.campaigns.faults.oracle import Ended, State, is_left_out, look, wrongs, wrongs_afterwards
from tests.campaigns.faults.scenarios import SCENARIOS, Scenario
from tests.support.paths import ROOT

__all__ = ["Campaign", "Figures", "Finding", "main"]


@dataclass(frozen=True)
class Finding:
    """A fault after which something was wrong."""

    scenario: str
    fault: Fault
    hit: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.scenario} | {self.fault} | {self.hit} | {self.wrong}"


@dataclass
class Figures:
    """What came of the cases of a scenario."""

    calls: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    missed: int = 0
    """Cases whose call did not come."""
    codes: Counter[int | None] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


class Campaign:
    """A folder to work in, and a process that runs commands there; use it as a context manager."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        parent = memory if os.access(memory, os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="faults-", dir=parent))
        self.root = self._folder / "root"
        self._template = self._folder / "template"
        self._plan = Plan(self._folder / "plan", self.root)
        self._unsimplified: tuple[Ended, State] | None = None
        self._ready: tuple[Scenario, State, tuple[Ended, State], list[str]] | None = None
        environment = {
            **{key: value for key, value in os.environ.items() if key not in ("COLUMNS",)},
            "LD_PRELOAD": str(build()),
            "FAULT_PLAN": str(self._plan.path),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore::DeprecationWarning",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.campaigns.faults.server"],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._server.stdout
        assert self._server.stdout.readline() == b"ready\n"

    def __enter__(self) -> Campaign:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        self._plan.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def faults(self, calls: Iterable[str]) -> Iterator[Fault]:
        """Yield every fault that calls of these kinds may have."""
        for kind, count in Counter(calls).items():
            for when in range(1, count + 1):
                for error in ERRORS[kind]:
                    yield Fault(kind, when, error)
                    if error != "EINTR":
                        yield Fault(kind, when, error, persistent=True)
                for name in SIGNALS:
                    yield Fault(kind, when, name)
                if kind == "write":
                    yield Fault(kind, when, "short", persistent=True)
                if kind in ("rename", "link", "unlink", "fsync", "mkdir"):
                    yield Fault(kind, when, "done EIO")

    def run(
        self,
        scenario: Scenario,
        *,
        sample: int | None = None,
        seed: int = 0,
        only: Fault | None = None,
        every: int = 1,
    ) -> Figures:
        """Try all faults of a scenario, a random sample of them, or `every` n-th."""
        figures = Figures()
        if self._ready is None or self._ready[0] != scenario:
            self._ready = None
            before, reference = self._reference(scenario)
            self._ready = scenario, before, reference, self._plan.calls
        _, before, reference, calls = self._ready
        figures.calls.update(calls)
        faults = [only] if only else list(self.faults(calls))
        if scenario.workers:
            faults += [
                Fault(kind, when + 1, "all SIGKILL")
                for kind, count in Counter(calls).items()
                for when in range(count)
                if not only
            ]
        faults = faults[::every]
        if sample is not None and sample < len(faults):
            faults = random.Random(seed).sample(faults, sample)
        for fault in faults:
            self._try(scenario, fault, before, reference, figures)
        return figures

    def _reference(self, scenario: Scenario) -> tuple[State, tuple[Ended, State]]:
        shutil.rmtree(self._template, ignore_errors=True)
        (self._template / "work").mkdir(parents=True)
        (self._template / "tmp").mkdir()
        scenario.prepare(self._template / "work")
        self._reset()
        before = look(self.root, scenario)
        self._unsimplified = None
        if scenario.workers and scenario.models and "--no-simplify" not in scenario.command:
            self._unsimplified = self._call(scenario, None, more="--no-simplify"), look(self.root, scenario)
            self._reset()
        ended = self._call(scenario, None)
        assert ended.code == scenario.code, (scenario.name, ended)
        return before, (ended, look(self.root, scenario))

    def _try(
        self,
        scenario: Scenario,
        fault: Fault,
        before: State,
        reference: tuple[Ended, State],
        figures: Figures,
    ) -> None:
        self._reset()
        ended = self._call(scenario, fault)
        hits, hit = self._plan.hits, self._plan.hit
        figures.cases += 1
        figures.missed += not hits
        figures.codes[ended.code] += 1
        after = look(self.root, scenario)
        expected = self._unsimplified if self._unsimplified and is_left_out(ended) else reference
        found = list(wrongs(scenario, fault, before, after, expected, ended))
        if fault.kills or ended.code == 0 or scenario.again:
            again = self._call(scenario, None, more=scenario.again)
            found += wrongs_afterwards(scenario, look(self.root, scenario), reference[1], again)
        figures.findings += [
            Finding(scenario.name, fault, hit.removeprefix(f"{self.root}/"), text) for text in found
        ]

    def _reset(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self._template, self.root, symlinks=True)

    def _call(self, scenario: Scenario, fault: Fault | None, *, more: str = "") -> Ended:
        """Run the command of a scenario."""
        work, out, err = self.root / "work", self._folder / "out", self._folder / "err"
        for path in (out, err):
            path.unlink(missing_ok=True)
        streams = [str(work / scenario.stdin) if scenario.stdin else os.devnull, str(out), str(err)]
        reader = None
        if scenario.stdout == "pipe":
            os.mkfifo(out)
            reader = _Reader(out)
        elif scenario.stdout:
            streams[1] = str(work / scenario.stdout)
        arguments = [each.replace("{work}", str(work)) for each in (*scenario.arguments, *more.split())]
        self._plan.set(fault, standard_output=scenario.stdout == "pipe")
        request = {
            "streams": streams,
            "folder": str(work),
            "tmp": str(self.root / "tmp"),
            "arguments": arguments,
        }
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        code = json.loads(self._server.stdout.readline())
        self._plan.disarm()
        printed = reader.read() if reader else out.read_bytes() if out.exists() else b""
        return Ended(code, printed, err.read_text(encoding="utf-8", errors="replace"))


class _Reader(threading.Thread):
    """Reads a named pipe to its end."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._path, self._data = path, b""
        self.start()

    def run(self) -> None:
        self._data = self._path.read_bytes()

    def read(self) -> bytes:
        self.join()
        return self._data


def main(arguments: list[str]) -> int:
    """Run all scenarios, or those named, and print a table. Returns the number of findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.faults", description=main.__doc__)
    parser.add_argument("scenario", nargs="*", default=list(SCENARIOS), help="names of scenarios")
    parser.add_argument("--sample", type=int, help="try so many faults of each scenario, by default all")
    parser.add_argument("--every", type=int, default=1, help="try every n-th fault of each scenario")
    parser.add_argument("--only", help='try one fault, as in "rename 2+ EIO"')
    given = parser.parse_args(arguments)
    only = Fault.parse(given.only) if given.only else None
    total = Counter[str]()
    codes = Counter[int | None]()
    print("| scenario | calls | cases | exit codes | wrong |\n|---|---|---|---|---|")
    with Campaign() as campaign:
        for name in given.scenario:
            figures = campaign.run(SCENARIOS[name], sample=given.sample, only=only, every=given.every)
            calls = sum(figures.calls.values())
            row = f"| {calls} | {figures.cases} | {_listed(figures.codes)} | {len(figures.findings)} |"
            print(f"| {name} {row}", flush=True)
            total.update(calls=calls, cases=figures.cases, wrong=len(figures.findings))
            codes.update(figures.codes)
            for finding in figures.findings:
                print(f"  {finding}", file=sys.stderr, flush=True)
    print(f"| all | {total['calls']} | {total['cases']} | {_listed(codes)} | {total['wrong']} |")
    return total["wrong"]


def _listed(codes: Counter[int | None]) -> str:
    return ", ".join(
        f"{code}: {count}" for code, count in sorted(codes.items(), key=lambda item: item[0] or 0)
    )
