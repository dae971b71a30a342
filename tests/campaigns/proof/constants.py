"""Multiplies and divides each constant of a folder by ten, one at a time, and runs tests: one must fail each time.

    python -m tests.campaigns.proof.constants onnx_migrate/verify/kernel --tests tests/verify/kernel
    python -m tests.campaigns.proof.constants onnx_migrate/verify --tests tests/verify --sample 20
    python -m tests.campaigns.proof.constants onnx_migrate/verify --list

A constant is a number that a module assigns to a name in capitals, also inside a tuple, a list, a dictionary or a call.
The default of a field of a class is one, too. The tests run on a copy of the tree. The command exits with 1 if a change
survives.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT

__all__ = ["Constant", "changed", "constants", "survivors"]

_CAPITALS = re.compile(r"_?[A-Z][A-Z0-9_]*$")

_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", "build", "*.egg-info", ".mypy_cache", ".pytest_cache", ".ruff_cache"
)

_FACTOR = 10


@dataclass(frozen=True)
class Constant:
    """A number in a source file: the name it belongs to, its place, and its value."""

    file: Path
    name: str
    line: int
    begin: int
    end: int
    """Places in the bytes of the file."""
    value: int | float

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.name} = {self.value}"


def constants(folder: Path) -> Iterator[Constant]:
    """Yield the constants of the modules in a folder, or of one module."""
    for file in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
        data = file.read_bytes()
        starts = [0]
        for line in data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for name, node in _assigned(ast.parse(data)):
            for number, value in _numbers(node):
                begin = starts[number.lineno - 1] + number.col_offset
                end = starts[(number.end_lineno or 1) - 1] + (number.end_col_offset or 0)
                yield Constant(file, name, number.lineno, begin, end, value)


def _assigned(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in module.body:
        if isinstance(statement, ast.ClassDef):
            for field in statement.body:
                if isinstance(field, ast.AnnAssign) and field.value and isinstance(field.target, ast.Name):
                    yield f"{statement.name}.{field.target.id}", field.value
                elif isinstance(field, ast.Assign) and isinstance(field.targets[0], ast.Name):
                    yield f"{statement.name}.{field.targets[0].id}", field.value
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value:
            target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            if isinstance(target, ast.Name) and _CAPITALS.match(target.id):
                yield target.id, statement.value


def _numbers(node: ast.expr) -> Iterator[tuple[ast.expr, int | float]]:
    """Yield the numbers in an expression: products and powers of literals as one, containers element by element."""
    value = _value(node)
    if value is not None:
        yield node, value
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for element in node.elts:
            yield from _numbers(element)
    elif isinstance(node, ast.Dict):
        for element in node.values:
            yield from _numbers(element)
    elif isinstance(node, ast.Call):
        for element in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _numbers(element)


def _value(node: ast.expr) -> int | float | None:
    literals = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    if not isinstance(node, literals) or not all(isinstance(one, literals) for one in ast.walk(node)):
        return None
    try:
        value = eval(
            compile(ast.Expression(node), "constant", "eval"), {"__builtins__": {}}
        )  # literals alone
    except (TypeError, ZeroDivisionError):
        return None
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if numeric and value == value and abs(value) not in (0, float("inf")) else None


def changed(constant: Constant) -> Iterator[tuple[str, bytes]]:
    """Yield the file of a constant with it ten times as large, and a tenth; a small integer has no tenth."""
    data = constant.file.read_bytes()
    others = [constant.value * _FACTOR]
    others.append(constant.value // _FACTOR if isinstance(constant.value, int) else constant.value / _FACTOR)
    for other in others:
        if other not in (0, constant.value):
            text = f"({other!r})".encode()
            yield f"{other!r}", data[: constant.begin] + text + data[constant.end :]


def survivors(
    root: Path, chosen: Sequence[Constant], tests: Sequence[str], python: str, seconds: float
) -> Iterator[tuple[Constant, str, str]]:
    """Yield each constant with the value it got and "killed", "survived" or "no result" for each change.

    `root` is a copy of the tree, and the constants are those of the copy.
    """
    for constant in chosen:
        before = constant.file.read_bytes()
        for value, after in changed(constant):
            _write(constant.file, after)
            try:
                yield constant, value, _run(root, tests, python, seconds)
            finally:
                _write(constant.file, before)


def _write(file: Path, data: bytes) -> None:
    """Write a source file. A change within a second can have the time of the one before, so compiled code is deleted."""
    file.write_bytes(data)
    shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)


def _run(root: Path, tests: Sequence[str], python: str, seconds: float) -> str:
    command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *tests]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return "killed"  # a test that never ends is noticed
    return {0: "survived", 1: "killed", 2: "killed"}.get(done.returncode, f"no result: {done.stdout[-300:]}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", help="folders or modules, from the root of the tree")
    parser.add_argument("--tests", nargs="+", default=["tests/verify"], help="what pytest runs")
    parser.add_argument(
        "--sample", type=int, default=0, help="only so many of the constants, chosen by --seed"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="TEXT", help="only constants whose name contains this")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one run of the tests")
    parser.add_argument("--list", action="store_true", help="list the constants and run nothing")
    asked = parser.parse_args()
    if asked.list:
        for folder in asked.folders:
            print(*constants(ROOT / folder), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "tree")
        shutil.copytree(ROOT, root, ignore=_LEFT_OUT, symlinks=True)
        chosen = [
            one for folder in asked.folders for one in constants(root / folder) if asked.only in one.name
        ]
        if asked.sample:
            chosen = random.Random(asked.seed).sample(chosen, min(asked.sample, len(chosen)))
        return _report(root, chosen, asked.tests, asked.timeout)


def _report(root: Path, chosen: Sequence[Constant], tests: Sequence[str], seconds: float) -> int:
    begin = time.perf_counter()
    unchanged = _run(root, tests, sys.executable, seconds)
    if unchanged != "survived":
        print(f"the tests do not pass as they are: {unchanged}")
        return 2
    print(f"{len(chosen)} constants; the tests take {time.perf_counter() - begin:.0f} s", flush=True)
    counts = {"killed": 0, "survived": 0}
    for constant, value, ended in survivors(root, chosen, tests, sys.executable, seconds):
        counts[ended] = counts.get(ended, 0) + 1
        if ended != "killed":
            place = f"{constant.file.relative_to(root)}:{constant.line}"
            print(f"{ended.upper()}: {place} {constant.name}: {constant.value} becomes {value}", flush=True)
    print(f"{counts['killed']} of {sum(counts.values())} changes killed, {time.perf_counter() - begin:.0f} s")
    return int(counts["killed"] < sum(counts.values()))


if __name__ == "__main__":
    sys.exit(main())
