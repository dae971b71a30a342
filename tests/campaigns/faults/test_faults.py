"""A sample of the faults of `python -m tests.campaigns.faults`: no model is lost, and no exit code lies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.campaigns.faults.campaign import Campaign
from tests.campaigns.faults.injector import Fault, why_unavailable
from tests.campaigns.faults.scenarios import SCENARIOS, Scenario
from tests.support.skips import Elsewhere, skip_if

REASON = why_unavailable()

pytestmark = skip_if(bool(REASON), REASON, Elsewhere.INSTALLED)

QUICK = [each for each in SCENARIOS.values() if not each.workers]

CASES = 8
"""Faults of each scenario that are tried: about one of a hundred."""


@pytest.fixture(scope="module")
def campaign() -> Iterator[Campaign]:
    with Campaign() as campaign:
        yield campaign


@pytest.mark.sample(8)
@pytest.mark.parametrize("scenario", QUICK, ids=lambda each: each.name)
def test_a_sample_of_all_faults(scenario: Scenario, campaign: Campaign) -> None:
    figures = campaign.run(scenario, sample=CASES)

    assert sum(figures.calls.values()) > 10
    assert figures.cases == CASES
    assert figures.missed <= 2
    assert [str(finding) for finding in figures.findings] == []


FOUND = [
    ("new", "link 1 SIGTERM"),
    ("new", "link 1 done EIO"),
    ("new", "rename 1 done EIO"),
    ("over", "stat 10 EIO"),
    ("external", "rename 3 SIGTERM"),
    ("external", "rename 3 done EIO"),
    ("external", "fsync 6 SIGINT"),
    ("one file over external", "open 5 EIO"),
    ("over shared data", "list 6 EACCES"),
    ("over old pages", "close 14 EIO"),
    ("over old pages", "rename 2+ EIO"),
    ("over old pages", "unlink 4 EIO"),
    *(
        ("external over external", f"{kind} {when} SIGKILL")
        for kind in ("rename", "unlink")
        for when in range(1, 6)
    ),
]
"""Faults by which a model was lost, or something was left behind, once."""


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "fault"), FOUND, ids=str)
def test_what_was_found_once(name: str, fault: str, campaign: Campaign) -> None:
    figures = campaign.run(SCENARIOS[name], only=Fault.parse(fault))

    assert figures.cases == 1
    assert [str(finding) for finding in figures.findings] == []
