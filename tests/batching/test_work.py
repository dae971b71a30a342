"""A job and its outcome: what a worker does with a job whose model, or whose result, is elsewhere; `test_run` has the rest."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import onnx
import onnx.parser
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import onnx_migrate
from onnx_migrate.batching.job import FAILED, INVALID, MIGRATED, REFUSED, UNCHANGED, Job, Outcome, Summary
from onnx_migrate.batching.work import run_job
from onnx_migrate.errors import LoadError, MigrateError, UsageError
from onnx_migrate.process import current_workers
from onnx_migrate.report import Report
from onnx_migrate.report.failure import Failure
from tests.cli.running import SMALL, large, snapshot
from tests.harness import model


def outcome(kind: str, code: str = "", *, cached: bool = False) -> Outcome:
    return Outcome("in.onnx", "out.onnx", kind, code, cached=cached)


def test_totals_count_outcomes_reasons_and_cached() -> None:
    summary = Summary(models=4)
    for item in (
        outcome(MIGRATED, cached=True),
        outcome(UNCHANGED),
        outcome(REFUSED, "no-adapter"),
        outcome(FAILED, "crashed"),
    ):
        summary.add(item)
    summary.complete = True

    line = summary.as_dict()

    assert (summary.ended, summary.ok, line["cached"]) == (4, False, 1)
    assert line["outcomes"] == {"migrated": 1, "unchanged": 1, "refused": 1, "invalid": 0, "failed": 1}
    assert line["reasons"] == {"no-adapter": 1, "crashed": 1}


def test_all_is_well_only_when_every_model_was_tried() -> None:
    summary = Summary(models=1)
    summary.add(outcome(UNCHANGED))

    assert not summary.ok
    summary.complete = True
    assert summary.ok


SCATTER = """<ir_version: 8, opset_import: ["": 17]>
g (float[4] x) => (float[4] y) <int64[1] i = {1}, float[1] u = {2.}> { y = ScatterElements <reduction = "max"> (x, i, u) }"""
"""ScatterElements has the reduction max from opset 18 on, and ONNX Runtime loads it before."""

DEPTH = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,4,2,2] x) => (float[1,1,4,4] y) { y = DepthToSpace <blocksize = 2, mode = "dcr"> (x) }"""


@pytest.mark.parametrize(
    ("text", "strict", "loadable"), [(SCATTER, False, 1), (SCATTER, True, 0), (DEPTH, False, 0)]
)
def test_refused_although_onnx_runtime_loads_it_is_counted(
    tmp_path: Path, text: str, strict: bool, loadable: int
) -> None:
    onnx.save(model(text), tmp_path / "given.onnx")
    summary = Summary(models=1)

    summary.add(
        run_job(Job(str(tmp_path / "given.onnx"), None, {"opset": 17, "strict": strict, "verify": "off"}))
    )

    assert summary.outcomes[INVALID] == 1
    assert summary.as_dict()["loadable"] == loadable
    assert ("1 invalid although ONNX Runtime loads them" in summary.text) == bool(loadable)


def test_a_line_of_an_outcome_counts_above_its_report() -> None:
    failure = Failure.of("temporary", LoadError("no model"))
    line = Outcome("a", "b", MIGRATED, report=failure).as_dict()
    assert (line["kind"], line["model"], line["output"], line["outcome"], line["notes"]) == (
        "model", "a", "b", "migrated", [],
    )  # fmt: skip
    assert "error" not in Outcome("a", "b", MIGRATED, cached=True).as_dict()


def test_jobs_and_outcomes_cross_processes() -> None:
    class Own(MigrateError):
        """An error of a user's own pass, which cannot be pickled."""

    failed = Outcome("a", None, FAILED, report=Failure.of("a", Own("no")))
    for item in (Job("a", None, {"opset": 17}), outcome(FAILED, "crashed"), failed):
        assert pickle.loads(pickle.dumps(item)) == item


def test_totals_count_what_is_known_of_the_results() -> None:
    summary = Summary(models=1021)
    for index in range(1021):
        known = "unverified" if index < 48 else "verified"
        summary.add(Outcome("in.onnx", "out.onnx", MIGRATED, verification=known, doubt="why"))
    summary.add(outcome(REFUSED, "no-adapter"))

    assert summary.text == "1,021 migrated, 973 verified, 48 unverified"
    assert summary.as_dict()["verification"] == {"verified": 973, "unverified": 48, "not verified": 0}


QUICK = {"simplify": False, "verify": False}


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A folder `in` of three models, one with external data, and the same at memory://in."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "in" / "deep").mkdir(parents=True)
    onnx.save(onnx.parser.parse_model(SMALL), tmp_path / "in" / "small.onnx")
    onnx.save(onnx.parser.parse_model(SMALL), tmp_path / "in" / "deep" / "twin.onnx")
    onnx.save(
        large(),
        tmp_path / "in" / "large.onnx",
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    found = fsspec.filesystem("memory")
    found.put("in", "/in", recursive=True)
    yield found
    gc.collect()
    current_workers().clear()
    assert not list((tmp_path / "tmp").iterdir())


def objects(store: Any, folder: str) -> dict[str, bytes]:
    return {name.removeprefix(f"{folder}/"): store.cat(name) for name in store.find(folder)}


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Return the list to which each call of a method of memory:// adds its first argument."""
    names: list[str] = []
    real = getattr(MemoryFileSystem, name)

    def method(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        names.append(path)
        return real(self, path, *args, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, name, method)
    return names


def test_a_batch_by_url_writes_the_bytes_of_a_local_one(store: Any, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as executor:
        there = onnx_migrate.batch(["memory://in"], "memory://out", executor=executor, **QUICK)
        back = onnx_migrate.batch(["memory://in"], "back", executor=executor, **QUICK)
        forth = onnx_migrate.batch(["in"], "memory://forth", executor=executor, **QUICK)
    onnx_migrate.batch(["in"], "out", jobs=1, **QUICK)
    expected = snapshot(tmp_path / "out")
    del expected[".onnx-migrate.jsonl"]

    assert there.outcomes == back.outcomes == forth.outcomes == {"migrated": 3}
    assert objects(store, "/out") == objects(store, "/forth") == expected
    assert {name: data for name, data in snapshot(tmp_path / "back").items() if name[0] != "."} == expected


def test_resume_by_url_reads_the_journal_of_a_local_folder(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again() -> int:
        with ThreadPoolExecutor(1) as executor:
            return onnx_migrate.batch(["memory://in"], "out", executor=executor, resume=True, **QUICK).cached

    assert [again(), again()] == [0, 3]
    changed = onnx.parser.parse_model(SMALL)
    changed.producer_name = "changed"
    store.pipe("/in/small.onnx", changed.SerializeToString())
    assert again() == 2
    data = store.cat("/in/w.bin")
    store.pipe("/in/w.bin", data[:-4] + b"\0\0\0\0")
    assert again() == 2


def test_a_result_that_cannot_be_recorded_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(output: str) -> dict[str, str]:
        raise OSError(errno.EIO, os.strerror(errno.EIO), output)

    (tmp_path / "out").mkdir()
    monkeypatch.setattr("onnx_migrate.batching.work.written", unreadable)
    ended = run_job(Job("in/small.onnx", "out/small.onnx", QUICK, isolated=False))

    assert ended.kind == "migrated"
    assert ended.record is None
    assert [text.split(":")[0] for text in ended.remarks] == [
        "out/small.onnx is written, but not recorded, so that --resume migrates it again"
    ]
    assert onnx.load("out/small.onnx").opset_import[0].version == 17


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("small", {}),
        ("large", {"external": True}),
        ("small", {"in_place": True}),
        ("large", {"in_place": True}),
    ],
)
def test_the_report_has_the_sizes_of_the_files(name: str, how: dict[str, bool]) -> None:
    def size(folder: str, *names: str) -> int:
        return sum(
            os.path.getsize(f"{folder}/{file}") for file in names if os.path.isfile(f"{folder}/{file}")
        )

    before = size("in", f"{name}.onnx", *(["w.bin"] if name == "large" else []))
    folder = "in" if how.get("in_place") else "out"
    ended = run_job(Job(f"in/{name}.onnx", f"{folder}/{name}.onnx", QUICK, isolated=False, **how))
    after = size(folder, f"{name}.onnx", f"{name}.onnx.data")

    kept = name == "large" and folder == "in"  # the weights stay where they are, so that less is written
    assert isinstance(ended.report, Report)
    assert ended.report.file_bytes == (None if kept else (before, after))


def test_resume_is_refused_where_there_can_be_no_journal(store: Any) -> None:
    with pytest.raises(UsageError, match=r"memory://out: --resume .*journal"):
        onnx_migrate.batch(["memory://in"], "memory://out", resume=True, **QUICK)


def test_objects_of_this_process_are_not_looked_for_in_others(store: Any) -> None:
    for source, target in (("memory://in", "out"), ("in", "memory://out")):
        with pytest.raises(UsageError, match=r"memory:.* exists in this process only"):
            onnx_migrate.batch([source], target, **QUICK)


def test_each_file_is_fetched_once(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    got = counted(monkeypatch, "get_file")
    for job in (
        Job("memory://in/large.onnx", "out/large.onnx", QUICK, isolated=False),
        Job("memory://in/large.onnx", "memory://in/large.onnx", QUICK, in_place=True, isolated=False),
    ):
        assert run_job(job).kind == "migrated"
        assert sorted(got) == ["/in/large.onnx", "/in/w.bin"]
        got.clear()


def test_in_place_and_looking(store: Any) -> None:
    look = Job("memory://in/small.onnx", None, QUICK, isolated=False)
    change = Job("memory://in/small.onnx", "memory://in/small.onnx", QUICK, in_place=True, isolated=False)
    before = objects(store, "/in")

    assert run_job(look).kind == "migrated"
    assert objects(store, "/in") == before
    assert run_job(change).kind == "migrated"
    after = objects(store, "/in")
    assert {name for name in before if before[name] != after[name]} == {"small.onnx"}
    assert run_job(look).kind == run_job(change).kind == "unchanged"
    assert objects(store, "/in") == after


def test_why_not(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(source: str, output: str) -> str:
        ended = run_job(Job(source, output, QUICK, isolated=False))
        assert ended.kind in ("failed", "refused")
        return ended.reason

    store.pipe("/in/text.onnx", b"hello")
    got = counted(monkeypatch, "get_file")

    assert "HTTP addresses can only be read" in reason("memory://in/small.onnx", "https://host/a.onnx")
    assert not got
    assert reason("memory://in/none.onnx", "out/a.onnx").startswith("memory://in/none.onnx: no such file")
    assert reason("memory://in/text.onnx", "memory://out/a.onnx").startswith("memory://in/text.onnx is not")
    assert not store.exists("/out")


def test_the_time_of_a_model_includes_its_first_attempt(tmp_path: Path) -> None:
    assert run_job(Job(str(tmp_path / "none.onnx"), None, spent=30.0)).seconds > 30
