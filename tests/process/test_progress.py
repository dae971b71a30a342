"""Progress as values."""

from __future__ import annotations

import threading

import pytest

from onnx_migrate.errors import Cancelled
from onnx_migrate.process import stoppable
from onnx_migrate.process.progress import Progress, Reporter


def told(*details: str) -> list[Progress]:
    seen: list[Progress] = []
    reporter = Reporter(seen.append, ["load", "verify"])
    reporter.stage("verify")
    for detail in details:
        reporter.within(detail)
    return seen


@pytest.mark.parametrize(
    ("detail", "done", "total", "fraction"),
    [
        ("input 2 of 3, run 5 of 8", 4, 8, 0.5),
        ("input 1, run 1", 0, None, None),
        ("tract 0.21", None, None, None),
    ],
)
def test_a_run_is_counted_as_done_when_the_next_begins(
    detail: str, done: int | None, total: int | None, fraction: float | None
) -> None:
    first, event = told(detail)

    assert (first.detail, str(first)) == ("", "verify")
    assert (event.stage, event.number, event.stages, event.detail) == ("verify", 2, 2, detail)
    assert (event.done, event.total, event.fraction) == (done, total, fraction)
    assert str(event) == f"verify: {detail}"
    assert 0 <= first.seconds <= event.seconds


def test_what_a_listener_raises_is_raised_by_the_call() -> None:
    def listener(event: Progress) -> None:
        raise RuntimeError(event.stage)

    with pytest.raises(RuntimeError, match="load"), stoppable(None):
        Reporter(listener, ["load"]).stage("load")


def test_a_cancelled_call_tells_nothing_more() -> None:
    token, seen = threading.Event(), []
    token.set()

    with pytest.raises(Cancelled), stoppable(token):
        Reporter(seen.append, ["load"]).stage("load")

    assert seen == []
