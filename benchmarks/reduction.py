"""Reduces failing models with onnx-migrate and with `polygraphy debug reduce`, with the same check, and prints one table.

    python benchmarks/reduction.py CASES --polygraphy FOLDER/bin/polygraphy [--out FOLDER]

CASES is a file with a line for each model. Tabs separate the fields:

- a title
- the path of the model
- the check, a shell command with {} for the model
- a pattern of the check's message, which Polygraphy gets as --fail-regex: without it, Polygraphy accepts any failure
- further options of Polygraphy, such as --model-input-shapes

Polygraphy is installed in an environment of its own: `pip install polygraphy onnx onnxruntime onnx-graphsurgeon`. It bisects
(`--mode=bisect`), which is the faster of its modes.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import onnx

from onnx_migrate.reduction.candidate import node_count
from onnx_migrate.reduction.failures import error_line

_SECONDS = 600
"""Most seconds for one tool on one model."""


@dataclass(frozen=True)
class Case:
    """A model and the command that fails on it."""

    title: str
    model: Path
    check: str
    pattern: str
    options: str


@dataclass(frozen=True)
class Row:
    """The result of a tool: nodes, runs of the check, seconds, processor seconds, and the words of the check."""

    nodes: int | None
    runs: int
    seconds: float
    processor: float
    words: str

    def __str__(self) -> str:
        return f"{'none' if self.nodes is None else self.nodes} | {self.runs} | {self.seconds:.0f} | {self.processor:.0f}"


def ours(case: Case, folder: Path) -> Row:
    """Reduce with onnx-migrate."""
    small = folder / f"{case.title}.onnx"
    command = [
        sys.executable,
        "-m",
        "onnx_migrate",
        "reduce",
        str(case.model),
        str(small),
        "--check",
        case.check,
        "--json",
    ]
    begin = time.monotonic(), _processor()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    seconds = time.monotonic() - begin[0], _processor() - begin[1]
    if ended.returncode:
        return Row(None, 0, *seconds, ended.stderr.strip()[-200:])
    return Row(nodes_of(small), json.loads(ended.stdout)["runs"], *seconds, words_of(case, small))


def polygraphys(case: Case, folder: Path, program: str) -> Row:
    """Reduce with polygraphy."""
    small = folder / f"{case.title}.polygraphy.onnx"
    for path in (small, *folder.glob("polygraphy_debug*")):
        path.unlink(missing_ok=True)
    check = case.check.replace("{}", "polygraphy_debug.onnx")
    command = [program, "debug", "reduce", str(case.model), "-o", str(small), "--mode=bisect"]
    command += [
        *shlex.split(case.options),
        "--fail-regex",
        case.pattern,
        "--check",
        "sh",
        "-c",
        f"{check} 2>&1",
    ]
    begin = time.monotonic(), _processor()
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, cwd=folder, check=False
        )
        printed = ended.stdout + ended.stderr
    except subprocess.TimeoutExpired as error:
        printed = (error.stdout or b"").decode()
    seconds = time.monotonic() - begin[0], _processor() - begin[1]
    runs = len(re.findall(r"Running check command", printed))
    if not small.exists():
        return Row(None, runs, *seconds, printed[-200:])
    return Row(nodes_of(small), runs, *seconds, words_of(case, small))


def _processor() -> float:
    """Return the seconds of the processor that ended children took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def nodes_of(path: Path) -> int:
    """Return the number of nodes of a model, without Constants."""
    return node_count(onnx.load(path, load_external_data=False))


def words_of(case: Case, path: Path) -> str:
    """Return the end of the output of the check on a model, or that it passes."""
    ended = subprocess.run(
        case.check.replace("{}", str(path)), shell=True, capture_output=True, text=True, check=False
    )
    same = re.search(case.pattern, ended.stdout + ended.stderr)
    words = error_line(ended.stdout + ended.stderr)[:110]
    return (
        f"{'same' if same else 'OTHER'} failure {ended.returncode}: {words}" if ended.returncode else "passes"
    )


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("cases", type=Path)
    arguments.add_argument("--polygraphy", default="")
    arguments.add_argument("--out", type=Path, default=Path("build/reduction"))
    arguments.add_argument("--only", default="")
    given = arguments.parse_args()
    given.out = given.out.resolve()
    given.out.mkdir(parents=True, exist_ok=True)
    print(
        "| model | nodes | onnx-migrate: nodes | runs | s | processor s | polygraphy: nodes | runs | s | processor s |"
    )
    for line in given.cases.read_text(encoding="utf-8").splitlines():
        if not line.strip() or not line.startswith(given.only):
            continue
        case = Case(
            *(kind(text) for kind, text in zip((str, Path, str, str, str), line.split("\t"), strict=True))
        )
        rows = [ours(case, given.out)]
        if given.polygraphy:
            rows.append(polygraphys(case, given.out, given.polygraphy))
        print(f"| {case.title} | {nodes_of(case.model)} | {' | '.join(map(str, rows))} |", flush=True)
        for row in rows:
            print(f"    {row.words}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
