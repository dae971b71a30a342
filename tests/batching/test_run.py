"""The library's `batch()`: whatever a model does to its worker costs that model alone."""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate.batching import Job, Outcome
from onnx_migrate.batching.run import Watcher
from onnx_migrate.report import Report
from tests.cli.running import SMALL, large, leftovers, snapshot
from tests.support.paths import ROOT

QUICK = {"simplify": False, "verify": False}

PASS = """
import ctypes, os, time
import onnx

def act(model: onnx.ModelProto) -> None:
    what = model.graph.name
    if what == "crash":
        ctypes.string_at(0)
    elif what == "exit":
        os._exit(7)
    elif what == "hang":
        time.sleep(600)
    elif what == "bomb":
        list(range(1 << 30))
    elif what == "bug":
        raise RuntimeError("a bug")
"""


class Seen(Watcher):
    def __init__(self) -> None:
        self.begun: list[str] = []
        self.outcomes: dict[str, Outcome] = {}

    def started(self, job: Job) -> None:
        self.begun.append(Path(job.source).stem)

    def ended(self, outcome: Outcome) -> None:
        self.outcomes[Path(outcome.source).stem] = outcome


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of three models, one of them below, and a folder for temporary files."""
    folder = tmp_path / "in"
    (folder / "deep" / "er").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    onnx.save(onnx.parser.parse_model(SMALL), folder / "small.onnx")
    onnx.save(onnx.parser.parse_model(SMALL), folder / "deep" / "er" / "twin.onnx")
    onnx.save(large(), folder / "large.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return folder


def named(folder: Path, name: str) -> None:
    proto = onnx.parser.parse_model(SMALL)
    proto.graph.name = name
    onnx.save(proto, folder / f"{name}.onnx")


@pytest.mark.long
def test_results_are_those_of_the_single_call(models: Path, tmp_path: Path) -> None:
    summary = onnx_migrate.batch(["in"], "out", jobs=2)

    assert summary.ok
    assert summary.outcomes == {"migrated": 3}
    for name in ("small.onnx", "deep/er/twin.onnx", "large.onnx"):
        onnx_migrate.migrate(models / name).save(tmp_path / "single.onnx")
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "single.onnx").read_bytes()
    assert set(snapshot(tmp_path / "out")) == {
        "small.onnx",
        "deep/er/twin.onnx",
        "large.onnx",
        ".onnx-migrate.jsonl",
    }
    assert not leftovers(models)


@pytest.mark.long
def test_what_a_model_does_to_its_worker_costs_that_model_alone(models: Path, tmp_path: Path) -> None:
    for name in ("crash", "exit", "hang", "bomb", "bug"):
        named(models, name)
    (models / "text.onnx").write_text("hello", encoding="utf-8")
    (models / "own_pass_of_batch.py").write_text(PASS, encoding="utf-8")
    sys.path.append(str(models))
    seen = Seen()
    try:
        summary = onnx_migrate.batch(
            ["in"], "out", jobs=2, timeout=2, memory_limit=2 << 30, watcher=seen,
            passes=["own_pass_of_batch:act"], **QUICK,
        )  # fmt: skip
    finally:
        sys.path.remove(str(models))

    assert {name: (outcome.kind, outcome.code) for name, outcome in seen.outcomes.items()} == {
        "small": ("migrated", ""),
        "twin": ("migrated", ""),
        "large": ("migrated", ""),
        "crash": ("failed", "crashed"),
        "exit": ("failed", "crashed"),
        "hang": ("failed", "timed-out"),
        "bomb": ("failed", "pass-failed"),
        "bug": ("failed", "pass-failed"),
        "text": ("failed", "not-onnx"),
    }
    assert "MemoryError" in seen.outcomes["bomb"].reason
    assert "exit code 7" in seen.outcomes["exit"].reason
    assert (summary.complete, summary.ok, summary.ended) == (True, False, 9)
    assert sum(summary.reasons.values()) == 9
    assert sorted(snapshot(tmp_path / "out")) == [
        ".onnx-migrate.jsonl",
        "deep/er/twin.onnx",
        "large.onnx",
        "small.onnx",
    ]
    assert not leftovers(models)


@pytest.mark.long
def test_a_crash_of_the_simplifier_is_as_in_the_single_command(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second try runs onnxsim in a child, whose crash leaves the model unsimplified."""
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "onnxsim.py").write_text("import os\ndef simplify(*a, **k): os._exit(9)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(fake))
    seen = Seen()

    summary = onnx_migrate.batch(["in/small.onnx"], "out", jobs=1, watcher=seen, verify=False)

    assert summary.ok
    report = seen.outcomes["small"].report
    assert isinstance(report, Report)
    assert [note.code for note in report.notes][-1] == "left-out"


def test_fail_fast_stops(models: Path, tmp_path: Path) -> None:
    (models / "aa.onnx").write_text("hello", encoding="utf-8")

    summary = onnx_migrate.batch(["in"], "out", jobs=1, fail_fast=True, **QUICK)

    assert (summary.complete, summary.ended) == (False, 1)


def test_resume_does_what_is_left_and_nothing_else(models: Path, tmp_path: Path) -> None:
    def again(**more: object) -> list[str]:
        seen = Seen()
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            summary = onnx_migrate.batch(["in"], "out", executor=threads, watcher=seen, **{**QUICK, **more})
        assert summary.ok
        return sorted(name for name, outcome in seen.outcomes.items() if not outcome.cached)

    everything = ["large", "small", "twin"]
    assert again(resume=True) == everything
    tree = snapshot(tmp_path / "out")
    assert again(resume=True) == []
    assert again() == everything, "only when asked"
    assert again(resume=True, timeout=5) == [], "a limit is no option of the result"
    assert snapshot(tmp_path / "out") == tree

    weights = bytearray((models / "w.bin").read_bytes())
    weights[-1] ^= 1
    (models / "w.bin").write_bytes(weights)
    assert again(resume=True) == ["large"], "external data is content"
    (tmp_path / "out" / "small.onnx").unlink()
    assert again(resume=True) == ["small"]
    (tmp_path / "out" / "deep" / "er" / "twin.onnx").write_bytes(b"other")
    assert again(resume=True) == ["twin"]
    assert again(resume=True, opset=18) == everything
    assert again(resume=True, opset=18) == []


def test_the_journal_says_what_it_goes_by(models: Path, tmp_path: Path) -> None:
    onnx_migrate.batch(["in/large.onnx"], "out", jobs=1, opset=18, **QUICK)

    (line,) = (tmp_path / "out" / ".onnx-migrate.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(line)
    assert sorted(record["content"]) == ["large.onnx", "w.bin"]
    assert (record["key"]["options"]["opset"], record["key"]["options"]["simplify"]) == (18, False)
    assert record["key"]["versions"]["onnx"] == onnx.__version__
    assert (record["source"], record["output"], record["outcome"]) == (
        "in/large.onnx",
        "large.onnx",
        "migrated",
    )


def test_a_line_cut_by_a_kill_is_passed_over(models: Path, tmp_path: Path) -> None:
    onnx_migrate.batch(["in"], "out", jobs=2, **QUICK)
    journal = tmp_path / "out" / ".onnx-migrate.jsonl"
    tree = snapshot(tmp_path / "out")
    journal.write_bytes(journal.read_bytes()[:-40])

    summary = onnx_migrate.batch(["in"], "out", jobs=1, resume=True, **QUICK)

    assert (summary.cached, summary.ok) == (2, True)
    assert snapshot(tmp_path / "out") == tree


@pytest.mark.parametrize(
    "make",
    [
        lambda: concurrent.futures.ThreadPoolExecutor(2),
        lambda: concurrent.futures.ProcessPoolExecutor(2),
    ],
    ids=["threads", "processes"],
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_any_executor_will_do(
    models: Path, tmp_path: Path, make: Callable[[], concurrent.futures.Executor]
) -> None:
    seen = Seen()
    with make() as executor:
        summary = onnx_migrate.batch(["in"], "out", executor=executor, watcher=seen, **QUICK)
    onnx_migrate.batch(["in"], "local", jobs=1, **QUICK)

    assert summary.ok
    assert snapshot(tmp_path / "out") == snapshot(tmp_path / "local")


class Ending(concurrent.futures.Executor):
    """Settles each future as `end` does."""

    def __init__(self, end: Callable[[concurrent.futures.Future[object]], object]) -> None:
        self.end = end

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        future: concurrent.futures.Future[object] = concurrent.futures.Future()
        self.end(future)
        return future


def closed() -> concurrent.futures.Executor:
    executor = concurrent.futures.ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


@pytest.mark.parametrize(
    ("executor", "code", "reason"),
    [
        (Ending(lambda future: future.set_exception(OSError("the machine has gone"))), "worker-lost", "OSError: the"),
        (Ending(lambda future: future.set_exception(TimeoutError())), "timed-out", "and was stopped"),
        (Ending(concurrent.futures.Future.cancel), "worker-lost", "CancelledError"),
        (closed(), "worker-lost", "RuntimeError: cannot schedule"),
    ],
    ids=["exception", "timeout", "cancelled", "closed"],
)  # fmt: skip
def test_an_executor_that_fails_loses_no_count(
    models: Path, executor: concurrent.futures.Executor, code: str, reason: str
) -> None:
    seen = Seen()

    summary = onnx_migrate.batch(["in"], "out", executor=executor, watcher=seen)

    assert (summary.complete, summary.ok, summary.reasons) == (True, False, {("failed", code): 3})
    assert all(reason in outcome.reason for outcome in seen.outcomes.values())
    assert onnx_migrate.batch(["in"], "out", resume=True, jobs=1, **QUICK).ok


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_model_that_ends_its_process_does_not_break_a_process_pool(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(models, "sound")
    named(models, "exit")
    (models / "own_pass_of_pool.py").write_text(PASS, encoding="utf-8")
    monkeypatch.syspath_prepend(models)
    seen = Seen()

    with concurrent.futures.ProcessPoolExecutor(1) as executor:
        summary = onnx_migrate.batch(
            ["in"], "out", executor=executor, watcher=seen, passes=["own_pass_of_pool:act"], **QUICK
        )

    assert summary.complete
    assert {name: outcome.code for name, outcome in seen.outcomes.items() if not outcome.done} == {
        "exit": "crashed"
    }


@pytest.mark.long
def test_scripts_need_no_guard(models: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import onnx_migrate\nprint(onnx_migrate.batch(['in'], 'out', jobs=2, simplify=False, verify=False).ended)\n",
        encoding="utf-8",
    )

    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert (done.stdout, done.stderr) == ("3\n", "")


def test_a_token_ends_a_batch_and_resume_goes_on(models: Path, tmp_path: Path) -> None:
    token = threading.Event()

    class Stop(Watcher):
        def ended(self, outcome: Outcome) -> None:
            token.set()

    with pytest.raises(onnx_migrate.Cancelled):
        onnx_migrate.batch(["in"], "out", jobs=1, watcher=Stop(), cancel=token, **QUICK)

    seen = Seen()
    assert onnx_migrate.batch(["in"], "out", jobs=1, resume=True, watcher=seen, **QUICK).ok
    assert sum(outcome.cached for outcome in seen.outcomes.values()) == 1


def test_an_argument_that_migrate_does_not_have_ends_it_before_any_model(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'opst'; did you mean 'opset'"):
        onnx_migrate.batch(["none.onnx"], tmp_path / "out", opst=17)
    assert not (tmp_path / "out").exists()
