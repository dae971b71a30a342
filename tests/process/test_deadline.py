"""One deadline is shared by all that a call does; what it leaves for whom, and what is no limit."""

from __future__ import annotations

import math
import threading
from contextlib import AbstractContextManager
from typing import Any

import pytest

from onnx_migrate.errors import MigrateError, UsageError
from onnx_migrate.process import Limits, TimedOut, Worker, deadline, run
from onnx_migrate.process.cancellation import check_stopped, stoppable
from onnx_migrate.process.deadline import (
    Deadline,
    bounded,
    bounded_own_work,
    postpone,
    seconds_left,
    until,
    with_grace,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(deadline, "monotonic", found)
    return found


def test_without_one_each_child_has_its_own_limit() -> None:
    assert seconds_left() == math.inf
    assert bounded(5.0) == (5.0, 5.0)
    assert bounded(None)[0] is None
    assert bounded_own_work(20.0) == 20.0
    postpone(1.0)
    check_stopped()


def test_a_child_ends_with_the_call_and_messages_name_the_call_s_limit(clock: Clock) -> None:
    with until(Deadline(60.0)):
        assert bounded(20.0) == (20.0, 20.0)
        clock.now += 50
        assert bounded(20.0) == (10.0, 60.0)
        assert bounded(None) == (10.0, 60.0)
        clock.now += 50
        assert bounded(20.0) == (0.0, 60.0)
    assert seconds_left() == math.inf


def test_a_second_attempt_has_what_the_first_left_and_names_the_whole_limit(clock: Clock) -> None:
    with stoppable(None, 60.0, spent=45.0):
        assert bounded(None) == (15.0, 60.0)
    with pytest.raises(MigrateError, match="after 60 s"):
        late(clock, 60.0, spent=45.0)


@pytest.mark.parametrize(
    ("outer", "inner", "left"), [(10.0, 60.0, 10.0), (60.0, 10.0, 10.0), (10.0, math.inf, 10.0)]
)
def test_a_call_within_a_call_ends_with_the_first(
    clock: Clock, outer: float, inner: float, left: float
) -> None:
    with stoppable(None, outer), stoppable(None, inner):
        assert bounded(None) == (left, left)


def test_a_file_on_its_way_takes_no_time_of_the_call(clock: Clock) -> None:
    with stoppable(None, 10.0), stoppable(None, 20.0):
        clock.now += 100
        postpone(100.0)
        assert seconds_left() == 10.0


def test_a_short_native_call_takes_half_of_what_is_left(clock: Clock) -> None:
    with stoppable(None, 20.0):
        assert bounded_own_work(20.0) == 10.0
        assert bounded_own_work(1.0) == 1.0
        clock.now += 30
        assert bounded_own_work(20.0) == 0.0


@pytest.mark.parametrize(("seconds", "grace"), [(0.001, 2.001), (10.0, 12.0), (600.0, 660.0)])
def test_a_look_at_the_result_has_a_little_more(clock: Clock, seconds: float, grace: float) -> None:
    with stoppable(None, seconds), with_grace():
        assert seconds_left() == pytest.approx(grace)
        clock.now += grace
        assert seconds_left() == 0.0


def test_own_work_has_three_seconds_in_any_case(clock: Clock) -> None:
    with stoppable(None, 0.001):
        assert seconds_left() == pytest.approx(0.001)
        clock.now += 2.9
        check_stopped()


def late(clock: Clock, seconds: float = 5.0, *, spent: float = 0.0) -> None:
    with stoppable(None, seconds, spent=spent):
        clock.now += seconds - spent + 1
        check_stopped("lift")


def test_own_work_that_is_too_late_is_an_error(clock: Clock) -> None:
    with pytest.raises(MigrateError, match="after 5 s, in the stage 'lift'") as caught:
        late(clock)
    assert caught.value.code == "timed-out"


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, -math.inf, True, "20", [1]])
def test_what_is_no_number_of_seconds(seconds: Any) -> None:
    block: AbstractContextManager[None] = stoppable(None, seconds)
    with pytest.raises(UsageError, match="timeout="), block:
        pass


@pytest.mark.parametrize("seconds", [1, 0.5, math.inf, 10**400])
def test_what_is_one(seconds: float) -> None:
    with stoppable(None, seconds):
        assert seconds_left() > 0


def test_children_share_the_time(module: str) -> None:
    with stoppable(None, 0.6):
        first = run(f"{module}:hang", limits=Limits(60.0))
        second = run(f"{module}:hang", limits=Limits(60.0))
    assert [ending.seconds for ending in (first, second) if isinstance(ending, TimedOut)] == [0.6, 0.6]


def test_no_child_is_started_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "__init__", lambda *_: pytest.fail("a child was started"))
    with stoppable(None, 1e-9):
        assert run("os:getpid") == TimedOut(1e-9)


def test_a_thread_of_another_call_has_its_own(clock: Clock) -> None:
    seen: list[float] = []
    with stoppable(None, 1.0):
        thread = threading.Thread(target=lambda: seen.append(seconds_left()))
        thread.start()
        thread.join()
    assert seen == [math.inf]
