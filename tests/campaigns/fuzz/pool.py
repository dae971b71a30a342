"""Runs cases in child processes, so that a crash, a hang or a flood of memory is known by its seed and ends one case."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.paths import ROOT

__all__ = ["HANG", "MEMORY", "Result", "run"]

HANG = 20.0
"""Seconds of processor time after which a case counts as stuck; three times as many on the clock."""

MEMORY = 2 << 30
"""Bytes of memory that a case must not take."""


@dataclass(frozen=True)
class Result:
    """What came of a seed."""

    seed: int
    kind: str
    result: str
    finds: tuple[str, ...]
    digest: str
    seconds: float


class _Child:
    def __init__(self, *, isolated: bool, hash_seed: int) -> None:
        self._isolated = isolated
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.campaigns.fuzz.worker",
            *(["--isolated"] if isolated else []),
        ]
        environment = {
            **os.environ,
            "PYTHONHASHSEED": str(hash_seed),
            "OMP_NUM_THREADS": "1",
            "PYTHONFAULTHANDLER": "1",
        }
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.seed: int | None = None
        self._answer = b""
        self._clock = self._used = 0.0
        self._await_ready()

    def _await_ready(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def start(self, seed: int) -> None:
        assert self._process.stdin is not None
        self.seed, self._answer = seed, b""
        self._clock, self._used = time.monotonic(), self._processor()
        self._process.stdin.write(b"%d\n" % seed)
        self._process.stdin.flush()

    def fileno(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def read(self) -> dict[str, Any] | None:
        """Return the answer when it is whole, {} when the child has ended, else None."""
        data = os.read(self.fileno(), 1 << 16)
        self._answer += data
        if not data:
            return {}
        return json.loads(self._answer) if self._answer.endswith(b"\n") else None

    @property
    def made(self) -> bool:
        """Whether the case of the seed was made, so that what happens now is of the product."""
        return bool(self._answer)

    def stuck(self) -> bool:
        clock = time.monotonic() - self._clock
        factor = 3 if self._isolated else 1
        return clock > 6 * HANG or (clock > HANG and self._processor() - self._used > HANG * factor)

    def _processor(self) -> float:
        """Return the seconds of processor time that the child has used; other work on the machine does not count."""
        try:
            with open(f"/proc/{self._process.pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return time.monotonic()

    def end(self) -> int:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        return self._process.wait()

    def code(self) -> int | None:
        """Return how an ended child ended."""
        return self._process.wait(timeout=10)


def run(seeds: Iterable[int], jobs: int = 1, *, isolated: bool = False) -> Iterator[Result]:
    """Yield what came of each seed, in the order of ending.

    A case that crashes or hangs is run again the way that users run it, with native code in children of its own: only if
    that crashes or hangs too is it a find.
    """
    waiting = iter(seeds)
    children: list[_Child] = []
    try:
        for place in range(jobs):
            child = _Child(isolated=isolated, hash_seed=place + 1)
            seed = next(waiting, None)
            if seed is None:
                child.end()
                break
            child.start(seed)
            children.append(child)
        while children:
            ready, _, _ = select.select(children, [], [], 1.0)
            for child in list(children):
                answer = child.read() if child in ready else None
                seed = child.seed
                assert seed is not None
                if answer:
                    yield Result(
                        seed,
                        answer["kind"],
                        answer["result"],
                        tuple(answer["finds"]),
                        answer["digest"],
                        answer["seconds"],
                    )
                elif answer == {} or child.stuck():
                    code = child.code() if answer == {} else None
                    ended = (
                        f"hang: over {HANG:.0f} s"
                        if code is None
                        else f"crash: the process ended with {code}"
                    )
                    made = child.made or (code is not None and code > 0)  # that is an exception of the fuzzer
                    child.end()
                    children.remove(child)
                    if not made:
                        yield Result(seed, "?", "not made: onnx's inference crashed or hung", (), "", 0.0)
                    elif isolated:
                        yield Result(seed, "?", "ended", (ended,), "", 0.0)
                    else:
                        yield _once_more(seed, ended)
                    child = _Child(isolated=isolated, hash_seed=len(children) + 1)
                    children.append(child)
                else:
                    continue
                following = next(waiting, None)
                if following is None:
                    child.end()
                    children.remove(child)
                else:
                    child.start(following)
    finally:
        for child in children:
            child.end()


def _once_more(seed: int, ended: str) -> Result:
    """Return what comes of a seed with native code in children of its own."""
    (result,) = run([seed], isolated=True)
    if result.finds:
        return Result(
            seed,
            result.kind,
            result.result,
            (*result.finds, f"(without children of its own: {ended})"),
            result.digest,
            result.seconds,
        )
    return Result(
        seed,
        result.kind,
        f"{result.result}, {ended.partition(':')[0]} contained",
        (),
        result.digest,
        result.seconds,
    )
