"""A migration that is followed, ended, and run beside others."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx
import onnx.parser
import pytest

from onnx_migrate import Cancelled, Progress, UsageError, compare, migrate
from onnx_migrate.migration import Migration, StageClock
from onnx_migrate.process.worker import Worker
from onnx_migrate.process.workers import Workers, using
from tests.support.paths import ROOT
from tests.support.small_model import FAST, HERE, UPSAMPLE, bytes_of, small

SLOW = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,600,600] x, int64 n) => (float[1,600,600] y) {
  t = Constant <value = bool {1}> ()
  y = Loop (n, t, x) <body = b (int64 i, bool c, float[1,600,600] a) => (bool d, float[1,600,600] z) {
    d = Identity (c)
    z = MatMul (a, a)
  }>
}"""
"""Takes as long as `n` says, which the verifier chooses; with `feed` minutes."""


@pytest.fixture(autouse=True, scope="module")
def started() -> None:
    """Let the children that stay be there before any is counted: the copy that infers shapes, and what forks workers in tests."""
    migrate(small(), simplify=False)


def children() -> set[int]:
    """Return the processes that this one has started and that have not ended."""
    here, found = os.getpid(), set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == here and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found


def test_stages_and_runs_are_told_as_they_begin() -> None:
    events: list[Progress] = []

    migration = migrate(small(), simplify=False, progress=events.append, **HERE)

    assert isinstance(migration, Migration)
    begun = [event for event in events if not event.detail]
    assert [event.stage for event in begun] == ["load", *migration.report.passes, "verify"]
    assert [event.number for event in begun] == [*range(1, begun[0].stages + 1)]
    runs = events[len(begun) :]
    assert (runs[0].stage, str(runs[0])) == ("verify", "comparing with the original: input 1, run 1")
    assert (runs[-1].done, runs[-1].total) == (len(runs) - 1, len(runs))
    assert [event.seconds for event in events] == sorted(event.seconds for event in events)


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("at", ["load", "cleanup", "simplify", "verify"])
def test_what_the_listener_raises_ends_the_migration_wherever_it_is(at: str, isolated: bool) -> None:
    error = OSError("the user left")  # of a kind that this package handles itself

    def listener(event: Progress) -> None:
        if event.stage == at and bool(event.detail) == (at == "verify"):
            raise error

    before = children()
    with pytest.raises(OSError, match="the user left") as caught:
        migrate(UPSAMPLE, progress=listener, isolated=isolated)

    assert caught.value is error
    assert children() <= before


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("at", ["load", "migrate_opset", "simplify", "verify"])
def test_a_token_ends_the_migration_wherever_it_is(at: str, isolated: bool) -> None:
    token = threading.Event()

    def listener(event: Progress) -> None:
        if event.stage == at and bool(event.detail) == (at == "verify"):
            token.set()

    before = children()
    with pytest.raises(Cancelled) as caught:
        migrate(UPSAMPLE, progress=listener, cancel=token, isolated=isolated)

    assert caught.value.code == "cancelled"
    assert children() <= before


def test_a_verification_that_runs_is_ended_at_once() -> None:
    feed = {"x": [[[0.0] * 600] * 600], "n": 10**9}
    token, begun = threading.Event(), threading.Event()

    def listener(event: Progress) -> None:
        if event.detail:
            begun.set()

    def cancel() -> None:
        begun.wait(60)
        time.sleep(0.3)
        token.set()

    threading.Thread(target=cancel, daemon=True).start()
    before, start = children(), time.perf_counter()
    model = onnx.parser.parse_model(SLOW)
    with pytest.raises(Cancelled):
        compare(model, model, input_data=feed, progress=listener, cancel=token, timeout=90)

    assert time.perf_counter() - start < 45
    assert children() <= before


def test_the_rewriting_of_a_large_model_is_ended_at_once() -> None:
    nodes = " ".join(f"v{at + 1} = Softmax <axis = 1> (v{at})" for at in range(3000))
    source = onnx.parser.parse_model(
        f'<ir_version: 4, opset_import: ["": 9]> g (float[1,2,3] v0) => (float[1,2,3] v3000) {{ {nodes} }}'
    )

    class Patience:
        left = 500

        def is_set(self) -> bool:
            self.left -= 1
            return self.left < 0

    token = Patience()
    stages: list[str] = []
    with pytest.raises(Cancelled):
        migrate(source, opset=13, cancel=token, progress=lambda event: stages.append(event.stage), **FAST)

    assert stages[-1] == "migrate_opset"


@pytest.mark.long
def test_migrations_in_threads_are_as_alone() -> None:
    """In a process of its own, so that all that is loaded at first use is loaded by several threads at once."""
    code = """
import gc, sys, warnings
from concurrent.futures import ThreadPoolExecutor
import onnx_migrate
sources = sys.argv[1:] * 2
def bring(path):
    return onnx_migrate.migrate(path, opset=18, simplify=False).model.SerializeToString(deterministic=True)
with ThreadPoolExecutor(4) as pool:
    together = list(pool.map(bring, sources))
assert together == [bring(path) for path in sources]
assert gc.isenabled()
"""
    paths = [
        str(ROOT / "fixtures" / f"{name}.onnx")
        for name in ("unet_opset9", "control_flow_opset11", "classifier_opset9")
    ]
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *paths],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_one_that_is_cancelled_ends_no_other() -> None:
    token = threading.Event()
    token.set()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(migrate, small(), cancel=token)
        second = pool.submit(migrate, small(), simplify=False, cancel=threading.Event())
        assert second.result().report.verified
        with pytest.raises(Cancelled):
            first.result()


def test_a_migration_leaves_no_trace_in_the_process() -> None:
    before = {number: signal.getsignal(number) for number in signal.Signals if number not in (9, 19)}
    directory, environment, threads = Path.cwd(), dict(os.environ), threading.active_count()

    migrate(small())
    with pytest.raises(UsageError):
        migrate(small(), opset=3)

    assert {number: signal.getsignal(number) for number in before} == before
    assert (Path.cwd(), dict(os.environ), threading.active_count()) == (directory, environment, threads)
    assert gc.isenabled()


def test_the_simplifier_and_the_proof_share_one_child(monkeypatch: pytest.MonkeyPatch) -> None:
    started, start = [], Worker.__init__

    def counted(worker: Worker, *args: object, **more: object) -> None:
        started.append(worker)
        start(worker, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Worker, "__init__", counted)
    workers = Workers()
    with using(workers):
        migrate(small())
    workers.close()

    assert [worker.calls > 1 for worker in started] == [True]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    source = small()
    data = bytes_of(source)

    migrate(source)

    assert capfd.readouterr() == ("", "")
    assert bytes_of(source) == data


def test_stages_are_announced_and_their_times_add_up() -> None:
    begun: list[str] = []
    clock = StageClock(begun.append)

    for name in ("load", "lift", "lift"):
        with clock(name):
            time.sleep(0.01)

    assert begun == ["load", "lift", "lift"]
    assert clock.seconds["load"] >= 0.01
    assert clock.seconds["lift"] >= 0.02


def test_a_stage_that_fails_is_timed_too() -> None:
    clock = StageClock(None)
    with pytest.raises(ValueError, match="on purpose"), clock("load"):
        raise ValueError("on purpose")
    assert "load" in clock.seconds
