"""Runs the command on the hostile models, and prints how each ended, its seconds and its peak memory.

python -m tests.campaigns.hostile.run [-k WORD] [--seconds N] [--command migrate,inspect,verify,batch,for-all] [--slow]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tests.campaigns.hostile.growth
import tests.campaigns.hostile.shape
import tests.campaigns.hostile.sizes  # noqa: F401
from tests.campaigns.hostile.case import CASES
from tests.campaigns.hostile.generated import GENERATED
from tests.support.paths import ROOT

__all__ = ["COMMANDS", "Ending", "run"]

COMMANDS = {
    "migrate": ["{model}", "{output}"],
    "inspect": ["inspect", "{model}"],
    "for-all": ["inspect", "{model}", "--for", "all"],
    "verify": ["verify", "{model}", "{model}"],
    "batch": ["batch", "{model}", "--out-dir", "{folder}/out"],
    "dynamic": ["{model}", "{output}", "--dynamic-batch"],
    "down": ["{model}", "{output}", "--opset", "9"],
    "barracuda": ["{model}", "{output}", "--for", "barracuda"],
    "fp16": ["{model}", "{output}", "--precision", "fp16"],
    "unroll": ["{model}", "{output}", "--unroll-rnn"],
    "static": ["{model}", "{output}", "--static"],
    "convert": ["{model}", "21"],
    "convert-down": ["{model}", "9"],
}

_MODULES = dict.fromkeys(("convert", "convert-down"), "tests.campaigns.hostile.convert")


@dataclass(frozen=True)
class Ending:
    """How a command ended."""

    exit: int | None
    """None where it was killed because of the time."""
    seconds: float
    memory: int
    """Peak bytes of all its processes together; pages that they share count in each."""
    out: str
    err: str
    written: tuple[str, ...]


def run(
    model: Path,
    command: str = "migrate",
    seconds: float = 20.0,
    memory: float = 2.5e9,
    more: tuple[str, ...] = (),
) -> Ending:
    """Run a command on a model, in a folder of its own, and kill it where it takes too much."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"model": str(model), "output": f"{folder}/out.onnx", "folder": folder}
        words = [word.format(**given) for word in COMMANDS[command]]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with open(f"{folder}.out", "wb+") as out, open(f"{folder}.err", "wb+") as err:
            start = time.perf_counter()
            child = subprocess.Popen(
                [sys.executable, "-m", _MODULES.get(command, "onnx_migrate"), *words, *more],
                stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=env, start_new_session=True,
            )  # fmt: skip
            done, alive, peak = 0, True, 0
            while not done:
                done, status = os.waitpid(child.pid, os.WNOHANG)
                took = time.perf_counter() - start
                peak = max(peak, resident(child.pid))
                if not done and (took > seconds or peak > memory):
                    os.killpg(child.pid, signal.SIGKILL)
                    done, status = os.waitpid(child.pid, 0)
                    alive = False
                time.sleep(0.02)
            child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for end in ("out", "err"):
            path = Path(f"{folder}.{end}")
            texts.append(path.read_text("utf-8", "replace"))
            path.unlink()
        written = tuple(
            sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())
        )
    return Ending(child.returncode if alive else None, took, peak, *texts, written)


def resident(session: int) -> int:
    """Return the bytes that the processes of a session have in memory, those of other sessions that they started too."""
    found: dict[int, tuple[int, int]] = {}
    for folder in os.listdir("/proc"):
        if folder.isdigit():
            with contextlib.suppress(OSError, ValueError):
                words = Path("/proc", folder, "stat").read_text().rpartition(")")[2].split()
                found[int(folder)] = int(words[1]), int(words[21]) * os.sysconf("SC_PAGE_SIZE")
    own = {session}
    for _ in range(4):
        own |= {process for process, (parent, _) in found.items() if parent in own}
    return sum(found[process][1] for process in own & found.keys())


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", default="", help="only the models whose name has this word")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--command", default="migrate")
    parser.add_argument("--generated", action="store_true", help="the generated models, and no others")
    parser.add_argument("--part", default="0/1", help="as 2/5: of each five models the third one")
    parser.add_argument("--fast", action="store_true", help="leave out the slow ones")
    parser.add_argument("more", nargs="*", help="further options of the command")
    arguments = parser.parse_args()
    worst_time = worst_memory = 0.0
    count = 0
    first, step = map(int, arguments.part.split("/"))
    for case in (GENERATED if arguments.generated else CASES)[first::step]:
        if not any(word in case.name for word in arguments.k.split(",")) or (arguments.fast and case.slow):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{case.name}.onnx")
            path.write_bytes(case.data())
            for command in arguments.command.split(","):
                end = run(path, command, arguments.seconds, 4e9, tuple(arguments.more))
                last = (end.err.strip().splitlines() or [""])[-1]
                ended = "TIME" if end.exit is None else end.exit
                print(
                    f"{case.name} {command}: exit {ended}, {end.seconds:.1f} s, {end.memory / 2**20:.0f} MB,"
                    f" {len(end.err.splitlines())} lines, {last[-300:]}",
                    flush=True,
                )
                count += 1
                worst_time, worst_memory = max(worst_time, end.seconds), max(worst_memory, end.memory)
    print(f"{count} runs, at most {worst_time:.1f} s and {worst_memory / 2**20:.0f} MB")


if __name__ == "__main__":
    main()
