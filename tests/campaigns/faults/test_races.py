"""A few rounds of `python -m tests.campaigns.faults.races`: who writes one output leaves one whole model, whoever is killed."""

from __future__ import annotations

import sys

import pytest

from tests.campaigns.faults.races import RACES, Race, run_race
from tests.support.skips import Elsewhere, skip_if

pytestmark = skip_if(sys.platform == "win32", "processes are killed by SIGKILL", Elsewhere.LINUX)

QUICK = [race for race in RACES.values() if race.name in ("one file", "external data", "in place")]


@pytest.mark.parametrize("kill", [False, True], ids=["all live", "one killed"])
@pytest.mark.parametrize("race", QUICK, ids=lambda race: race.name)
def test_writers_of_one_output_leave_one_whole_model(race: Race, kill: bool) -> None:
    came = run_race(race, 1, kill=kill)

    assert came.wrong == []
    # A writer may be killed after it published; `wrong` holds the rounds in which nobody did.
    assert came.done >= 1 or kill
    assert came.writers == len(race.commands)
    assert came.reads > 10 or not race.readable


@pytest.mark.campaign
@pytest.mark.parametrize("kill", [False, True], ids=["all live", "one killed"])
@pytest.mark.parametrize("race", RACES.values(), ids=lambda race: race.name)
def test_many_rounds(race: Race, kill: bool) -> None:
    assert run_race(race, 40, seed=1, kill=kill).wrong == []
