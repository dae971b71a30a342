"""A session keeps its children from one migration to the next, for threads too, and outlives what models do to them."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import onnx
import pytest

import onnx_migrate
from onnx_migrate import Cancelled, Progress, Session, UsageError, VerificationFailed
from tests.process.processes import alive, eventually
from tests.support.skips import Elsewhere, skip_if
from tests.support.small_model import bytes_of, small

LAVISH = """<ir_version: 8, opset_import: ["": 17]>
g (float[1024] x) => (float[1024] y) <int64[2] shape = {100000, 1024}> {
    e = Expand (x, shape)
    a = Abs (e)
    y = ReduceMax <axes = [0], keepdims = 0> (a)
}"""
"""Takes 400 MB twice."""


def children(session: Session) -> list[int]:
    return [worker._process.pid for worker, _ in session._workers._waiting]


def test_children_are_kept_and_end_with_the_session() -> None:
    with Session() as session:
        first = session.migrate(small(), opset=17)
        kept = children(session)
        second = session.migrate(small(), opset=17)
        verdict = session.compare(small(), small())
        assert children(session) == kept != []

    assert bytes_of(first.model) == bytes_of(second.model)
    assert bytes_of(first.model) == bytes_of(onnx_migrate.migrate(small(), opset=17, isolated=False).model)
    assert all((first.report.verified, second.report.verified, verdict.verified))
    assert not any(map(alive, kept))
    with pytest.raises(UsageError, match="the session is closed"):
        session.migrate(small())


def test_a_model_that_ends_a_child_is_told_as_ever_and_the_next_one_verified() -> None:
    lavish = onnx.parser.parse_model(LAVISH)

    def ending(**options: Any) -> tuple[str, str]:
        migration = session.migrate(lavish, opset=18, simplify=False, memory_limit=500 << 20, **options)
        assert migration.report.verification is not None
        return migration.report.verification.kind.value, migration.report.verification.reason

    with Session(jobs=1) as session:
        alone = ending()
        assert session.migrate(small()).report.verified
        assert ending() == alone
        assert alone[0] == "unverified"
        with pytest.raises(VerificationFailed, match="out of memory"):
            ending(verify="require")
        slow = session.migrate(small(), timeout=0.001, simplify=False).report
        assert not slow.verified
        for child in children(session):
            os.kill(child, signal.SIGKILL)
            assert eventually(lambda child=child: not alive(child))
        assert session.migrate(small()).report.verified


def test_threads_share_a_session_which_runs_so_many_at_a_time() -> None:
    with Session(jobs=2) as session, ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: session.migrate(small(), simplify=False), range(8)))
        assert len(children(session)) <= 2

    assert {bytes_of(result.model) for result in results} == {bytes_of(results[0].model)}
    assert all(result.report.verified for result in results)


def test_a_call_whose_session_is_closed_is_cancelled_and_no_verdict_on_its_model() -> None:
    session = Session(jobs=1)

    def close(event: Progress) -> None:
        if event.stage == "verify":
            session.close()

    with pytest.raises(Cancelled, match="the session was closed during the call"):
        session.migrate(small(), opset=17, progress=close)


def test_children_of_a_session_that_nobody_closes_end_with_it() -> None:
    session = Session(jobs=1)
    session.migrate(small(), opset=17)
    kept = children(session)
    del session
    gc.collect()
    assert kept
    assert not any(map(alive, kept))


def test_a_call_that_waits_for_a_place_can_be_cancelled() -> None:
    token = threading.Event()

    def busy(event: Progress) -> None:
        if event.stage == "load":
            threading.Timer(0.1, token.set).start()
            with pytest.raises(Cancelled):
                session.migrate(small(), cancel=token)

    with Session(jobs=1) as session:
        assert session.migrate(small(), simplify=False, progress=busy).report.verified


@pytest.mark.long
@skip_if(sys.platform != "linux", "forks", Elsewhere.LINUX)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_has_all_places_of_a_session() -> None:
    def fork(event: Progress) -> None:
        if event.stage == "verify":
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(0 if session.migrate(small(), verify=False, simplify=False).model.graph.node else 1)
            assert os.waitpid(child, 0)[1] == 0

    with Session(jobs=1) as session:
        assert session.migrate(small(), simplify=False, progress=fork).report.verified


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_session_of_no_jobs_is_an_error(jobs: int) -> None:
    with pytest.raises(UsageError, match=f"jobs={jobs}"):
        Session(jobs)
