"""Programs of other people: each works as elsewhere, or ends with an error that names the cause, and nothing is left behind.

All with figures: `python -m tests.campaigns.hosts.run` and `python -m tests.campaigns.hosts.stalls 200`.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.campaigns.hosts.run import faults, run
from tests.campaigns.hosts.scripts import HOSTS, Host
from tests.campaigns.hosts.stalls import Rounds
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if

pytestmark = [
    pytest.mark.cold,
    skip_if(sys.platform != "linux", "looks into /proc, and forks", Elsewhere.LINUX),
]

OFTEN = {
    "no_executable",
    "deleted_folder",
    "optimized",
    "no_more_processes",
    "pool",
    "atexit",
    "closed_streams",
}
"""The hosts that run with the long tests: one of each kind."""


@pytest.mark.long
@pytest.mark.parametrize("host", [host for host in HOSTS if host.name in OFTEN], ids=lambda host: host.name)
def test_a_host_sees_what_others_see(host: Host) -> None:
    assert faults(host, run(host)) == []


@pytest.mark.campaign
@pytest.mark.parametrize(
    "host", [host for host in HOSTS if host.name not in OFTEN], ids=lambda host: host.name
)
def test_every_other_host_does_too(host: Host) -> None:
    assert faults(host, run(host)) == []


def stalls(rounds: int) -> str:
    """Return what the rounds print, from a process of their own: its threads are no matter of the tests."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.campaigns.hosts.stalls", str(rounds)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.long
def test_no_call_waits_for_another() -> None:
    assert " 0 stalls" in stalls(3)


@pytest.mark.campaign
def test_no_call_waits_for_another_in_200_rounds() -> None:
    assert " 0 stalls" in stalls(200)


def test_a_call_that_waits_is_found() -> None:
    rounds = Rounds()
    rounds._timed(lambda: None, 1)
    assert rounds.stalls == []
    rounds.patience = -1.0
    rounds._timed(rounds._convert, 2)
    assert [line.partition(" took ")[0] for line in rounds.stalls] == ["round 2: _convert"]
