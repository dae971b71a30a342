"""The command, on models that are made to be too much: it ends soon, in little memory, with one line, and writes nothing or all.

Figures of all, with every command: `python -m tests.campaigns.hostile.run`.
"""

from pathlib import Path

import pytest

from tests.campaigns.hostile.case import CASES, Case
from tests.campaigns.hostile.run import Ending, run

pytestmark = pytest.mark.cold

SECONDS = 60.0
"""Several times what the slowest of them takes on an idle machine."""

MEMORY = 2.5e9
LIMITS = ("--memory-limit", "1")

FAST = [case for case in CASES if not case.slow]
SLOW = [case for case in CASES if case.slow]
OFTEN = {
    "functions_that_call_twice", "functions_that_call_twice_from_branches", "function_that_calls_itself", "doubled_shapes",
    "doubled_tensors", "loop_of_a_million_million_turns", "branches_15_deep", "branches_5000_deep", "dims_without_data",
    "expand_a_constant_to_a_huge_shape",
}  # fmt: skip
"""Those that run by default: one of each kind."""


def check(case: Case, end: Ending) -> None:
    assert end.exit is not None, f"{end.seconds:.0f} s, {end.memory / 1e6:.0f} MB"
    assert "Traceback" not in end.err + end.out
    lines = end.err.splitlines()
    assert end.exit in case.exits, lines
    assert len(lines) == (1 if end.exit else len(lines[:1])), lines
    assert all(line.startswith("onnx-migrate: ") for line in lines)
    assert end.written == (("out.onnx",) if end.exit == 0 else ())
    if case.code and end.exit:
        assert lines[0].split(": ")[1] == case.code


def model(case: Case, folder: Path) -> Path:
    path = folder / f"{case.name}.onnx"
    path.write_bytes(case.data())
    return path


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in FAST if case.name in OFTEN], ids=lambda case: case.name)
def test_a_migration_ends(case: Case, tmp_path: Path) -> None:
    check(case, run(model(case, tmp_path), "migrate", SECONDS, MEMORY, LIMITS))


@pytest.mark.campaign
@pytest.mark.parametrize(
    "case", [case for case in FAST if case.name not in OFTEN], ids=lambda case: case.name
)
def test_every_other_migration_ends(case: Case, tmp_path: Path) -> None:
    check(case, run(model(case, tmp_path), "migrate", SECONDS, MEMORY, LIMITS))


@pytest.mark.campaign
@pytest.mark.parametrize("case", SLOW, ids=lambda case: case.name)
def test_a_large_file_ends(case: Case, tmp_path: Path) -> None:
    end = run(model(case, tmp_path), "migrate", 300.0, 10e9, ("--timeout", "60"))
    assert end.exit is not None
    assert "Traceback" not in end.err
    assert len(end.err.splitlines()) <= 1
    assert end.exit == 0 or end.written == ()


@pytest.mark.campaign
@pytest.mark.parametrize("command", ["inspect", "for-all", "verify", "batch"])
@pytest.mark.parametrize("case", FAST, ids=lambda case: case.name)
def test_every_command_ends(case: Case, command: str, tmp_path: Path) -> None:
    limits = LIMITS if command in ("verify", "batch") else ()
    end = run(model(case, tmp_path), command, SECONDS * 2, MEMORY, limits)
    assert end.exit in (0, 1, 4)
    assert "Traceback" not in end.err + end.out
    assert len(end.err.splitlines()) <= 2


def test_there_are_many_kinds() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60
