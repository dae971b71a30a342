"""A plain run takes rows that have each value of each parameter; the words of the command choose more."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.rows import choose


@dataclass
class Row:
    params: Mapping[str, object]
    marks: Sequence[pytest.Mark] = field(default_factory=list)

    @property
    def id(self) -> str:
        return "-".join(map(str, self.params.values()))


GRID = [
    Row({"mode": mode, "axis": axis, "scale": scale})
    for mode, axis, scale in itertools.product(
        ["half_pixel", "asymmetric", "align_corners"], range(5), [[1.0], [2.0]]
    )
]


def values(rows: Sequence[Row]) -> set[tuple[str, str]]:
    return {(name, repr(value)) for row in rows for name, value in row.params.items()}


def test_chosen_rows_have_each_value_of_each_parameter() -> None:
    chosen = choose(GRID, "test_resize", 0)
    assert values(chosen) == values(GRID)
    assert len(chosen) < len(GRID) / 2
    assert [row.id for row in chosen] == [row.id for row in GRID if row in chosen]
    assert chosen == choose(GRID, "test_resize", 0) != choose(GRID, "test_other", 0)


def test_a_sample_is_a_share_of_the_rows_and_at_least_one() -> None:
    assert len(choose(GRID, "test_resize", 8)) == 4
    assert len(choose(GRID[:3], "test_resize", 8)) == 1
    assert choose([], "test_resize", 8) == []


def test_a_row_with_a_mark_of_its_own_stays_and_counts_for_no_value() -> None:
    marked = Row({"mode": "half_pixel", "axis": 0}, [pytest.mark.campaign.mark])
    plain = Row({"mode": "half_pixel", "axis": 0})
    assert choose([marked, plain], "test", 0) == [marked, plain]


TESTS = """
import pytest

@pytest.mark.parametrize("b", "wxyz")
@pytest.mark.parametrize("a", range(3))
def test_grid(a, b): pass

@pytest.mark.long
def test_long(): pass

@pytest.mark.campaign
@pytest.mark.parametrize("case", range(9))
def test_campaign(case): pass
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "grid", "others"),
    [
        (["."], range(4, 12), []),
        ([".", "--all"], [12], ["test_long"]),
        ([".", "-m", "campaign"], [0], ["test_campaign"] * 9),
        (["test_it.py::test_grid"], [12], []),
        (["test_it.py::test_long"], [0], ["test_long"]),
        ([".", "-k", "0-z"], [1], []),
    ],
)
def test_words_of_the_command_choose_tests(
    arguments: list[str], grid: Sequence[int], others: list[str], tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_addoption, pytest_cmdline_main, pytest_generate_tests\n"
    )
    (tmp_path / "test_it.py").write_text(TESTS)
    configuration = ["-c", str(ROOT / "setup.cfg"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *configuration, *arguments],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    collected = [
        line.partition("::")[2].partition("[")[0] for line in done.stdout.splitlines() if "::" in line
    ]
    assert collected.count("test_grid") in grid, done.stdout + done.stderr
    assert [name for name in collected if name != "test_grid"] == others
