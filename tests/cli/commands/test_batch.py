"""`onnx-migrate batch SRC...`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

from tests.cli.running import FAST, Run, large, leftovers, no_file_larger_than, snapshot
from tests.support.paths import FIXTURES
from tests.support.processes import Start
from tests.support.skips import Elsewhere, import_or_skip, skip_if


@pytest.fixture
def models(folder: Path) -> Path:
    (folder / "in" / "deep").mkdir(parents=True)
    shutil.copy("small.onnx", "in/a.onnx")
    onnx.save(large(), folder / "in" / "deep" / "b.onnx")
    return folder


def test_a_folder(process: Run, models: Path) -> None:
    ended = process("batch", "in", "--out-dir", "out", "--jobs", "2", *FAST)

    assert (ended.code, ended.err) == (0, "")
    table = [line.split() for line in ended.out.splitlines()]
    assert table[:2] == [["models", "status", "reason"], ["2", "migrated"]]
    assert table[2][:4] == ["2", "of", "2", "models"]
    assert sorted(snapshot(models / "out")) == [".onnx-migrate.jsonl", "a.onnx", "deep/b.onnx"]
    assert not leftovers(models)


def test_failures_are_one_line_each_and_do_not_stop_the_batch(process: Run, models: Path) -> None:
    (models / "in" / "0.onnx").write_text("hello", encoding="utf-8")
    new = onnx.load(models / "small.onnx")
    new.opset_import[0].version = 18
    onnx.save(new, models / "in" / "new.onnx")

    ended = process(
        "batch", "in", "missing.onnx", "--out-dir", "out", "--jobs", "1", "--json-lines", "log.jsonl", "--opset", "17",
        "--no-lower", *FAST,
    )  # fmt: skip

    assert ended.code == 1
    lines = sorted(line.split(": ")[1] for line in ended.err.splitlines())
    assert lines == ["downgrade", "no-such-file", "not-onnx"]
    assert [line.split()[:3] for line in ended.out.splitlines()[1:8]] == [
        ["2", "migrated"], ["1", "refused", "downgrade:"], ["in/new.onnx"], ["1", "failed", "no-such-file:"], ["missing.onnx"],
        ["1", "failed", "not-onnx:"], ["in/0.onnx"],
    ]  # fmt: skip
    *entries, totals = map(json.loads, (models / "log.jsonl").read_text(encoding="utf-8").splitlines())
    assert {entry["model"]: entry["outcome"] for entry in entries} == {
        "in/0.onnx": "failed", "in/a.onnx": "migrated", "in/deep/b.onnx": "migrated", "in/new.onnx": "refused",
        "missing.onnx": "failed",
    }  # fmt: skip
    by_model = {entry["model"]: entry for entry in entries}
    assert by_model["in/new.onnx"]["error"]["code"] == "downgrade"
    assert by_model["in/a.onnx"]["changes"][0]["before"]["operator"] == "Resize"
    assert by_model["in/a.onnx"]["output"] == "out/a.onnx"
    assert totals["kind"] == "totals"
    assert (totals["models"], totals["ended"], totals["complete"]) == (5, 5, True)
    assert totals["outcomes"] == {"migrated": 2, "unchanged": 0, "refused": 1, "invalid": 0, "failed": 2}


def test_a_model_that_is_not_valid_has_an_outcome_of_its_own(process: Run, models: Path) -> None:
    bad = onnx.load(models / "small.onnx")
    bad.graph.node[0].input[0] = "nowhere"
    onnx.save(bad, models / "in" / "bad.onnx")

    ended = process("batch", "in", "--out-dir", "out", "--json-lines", "log.jsonl", *FAST)

    assert ended.code == 1
    assert ["1", "invalid", "undefined-name:"] in [line.split()[:3] for line in ended.out.splitlines()]
    *entries, totals = map(json.loads, (models / "log.jsonl").read_text(encoding="utf-8").splitlines())
    assert {entry["outcome"] for entry in entries if entry["model"] == "in/bad.onnx"} == {"invalid"}
    assert totals["outcomes"] == {"migrated": 2, "unchanged": 0, "refused": 0, "invalid": 1, "failed": 0}


def test_stdout_has_only_json_lines_if_asked(process: Run, models: Path) -> None:
    ended = process("batch", "in", "--out-dir", "out", "--json-lines", "-", *FAST)

    assert [json.loads(line)["kind"] for line in ended.out.splitlines()] == ["model", "model", "totals"]
    assert "2 of 2 models" in ended.err


def test_quiet(process: Run, models: Path) -> None:
    ended = process("batch", "in", "--out-dir", "out", "-q", *FAST)

    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.long
def test_check_and_in_place(process: Run, models: Path) -> None:
    before = snapshot(models)
    ended = process("batch", "in", "--check", *FAST)
    assert (ended.code, ended.err) == (1, "")
    assert ended.out.splitlines()[:2] == [
        "would change: in/a.onnx: opset 11 → 17, IR 6 → 8, 1 node changed",
        "would change: in/deep/b.onnx: opset 11 → 17, IR 6 → 8, 1 node changed",
    ]
    assert snapshot(models) == before

    assert process("batch", "in", "--in-place", *FAST).code == 0
    assert {onnx.load(path).opset_import[0].version for path in (models / "in").rglob("*.onnx")} == {17}
    stamps = {path: path.stat().st_mtime_ns for path in (models / "in").rglob("*.onnx")}

    ended = process("batch", "in", "--in-place", *FAST)
    assert ended.out.splitlines()[1].split() == ["2", "unchanged"]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps, "what is right is not written"
    assert process("batch", "in", "--check", *FAST).code == 0


@pytest.mark.parametrize(
    "args",
    [
        ["in"],
        ["in", "--out-dir", "out", "--check"],
        ["in", "--check", "--resume"],
        ["in", "--out-dir", "in"],
        ["nothing/*.onnx", "--out-dir", "out"],
        ["--out-dir", "out"],
        ["in", "--out-dir", "out", "--jobs", "0"],
        ["in", "--out-dir", "small.onnx/out"],
        ["in", "--out-dir", "out", "--json-lines", "s3://bucket/log"],
    ],
    ids=" ".join,
)
def test_wrong_usage(process: Run, models: Path, args: list[str]) -> None:
    before = snapshot(models)
    ended = process("batch", *args)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("onnx-migrate: usage: ")
    assert ended.err.count("\n") == 1
    assert snapshot(models) == before


def many(folder: Path, count: int) -> None:
    (folder / "many").mkdir()
    for index in range(count):
        shutil.copy(FIXTURES / "unet_opset9.onnx", folder / "many" / f"{index:03}.onnx")


@pytest.mark.long
@pytest.mark.parametrize(
    "end",
    [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.campaign)],
    ids=lambda end: end.name,
)
def test_an_interrupted_batch_leaves_complete_files_and_resume_does_the_rest(
    end: signal.Signals,
    folder: Path,
    command: list[str],
    environment: dict[str, str],
    process: Run,
    start: Start,
) -> None:
    many(folder, 12)
    args = ["batch", "many", "--jobs", "2", "--no-verify", "--out-dir"]
    assert process(*args, "whole").code == 0

    child = start([*command, *args, "out"], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while len(list((folder / "out").glob("*.onnx"))) < 4 and time.monotonic() < limit:
        time.sleep(0.01)
    child.send_signal(end)
    _, err = child.communicate(timeout=30)

    expected = {
        signal.SIGKILL: (-9, ""),
        signal.SIGINT: (130, "onnx-migrate: interrupted\n"),
        signal.SIGTERM: (143, "onnx-migrate: terminated\n"),
    }
    assert child.returncode == expected[end][0]
    assert end is signal.SIGKILL or err == expected[end][1]
    assert "Traceback" not in err
    if end is signal.SIGKILL:
        time.sleep(2)  # by then the workers have seen that they are alone
    else:
        assert not leftovers(folder)
    whole = snapshot(folder / "whole")
    stopped = {name: data for name, data in snapshot(folder / "out").items() if name.endswith(".onnx")}
    assert 4 <= len(stopped) < 12
    assert stopped.items() <= whole.items()

    ended = process(*args, "out", "--resume")

    assert ended.code == 0
    assert "of them by an earlier run" in ended.out
    assert snapshot(folder / "out") == whole


@pytest.mark.long
def test_a_terminal_shows_running_models(
    models: Path, command: list[str], environment: dict[str, str], start: Start
) -> None:
    import pty

    many(models, 40)  # which take longer than the display takes to be drawn again
    ours, theirs = pty.openpty()
    child = start(
        [*command, "batch", "many", "--out-dir", "out", "--jobs", "1", "--no-verify"],
        cwd=models, env={**environment, "TERM": "xterm", "COLUMNS": "100"}, stdout=subprocess.DEVNULL, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 4096):
            shown += block
    except OSError:
        pass
    os.close(ours)

    assert child.wait() == 0
    assert b"many/" in shown
    assert b"/40" in shown


NAMES = ["new\nline", "bad\udcff", "ünï 模型", "a b'\"$c", "[x]*", "-dash"]
"""Of files, without the suffix; the second is not UTF-8."""


@skip_if(sys.platform != "linux", "elsewhere not every name can be given", Elsewhere.LINUX)
def test_names_of_every_kind(process: Run, models: Path) -> None:
    import_or_skip("jinja2", Elsewhere.INSTALLED)
    (models / "odd" / "not").mkdir(parents=True)
    for name in NAMES:
        shutil.copy("small.onnx", f"odd/{name}.onnx")
        (models / "odd" / "not" / f"{name}.onnx").write_text("hello", encoding="utf-8")

    args = [
        "batch",
        "odd",
        "--out-dir",
        "out",
        "--jobs",
        "1",
        "--json-lines",
        "log.jsonl",
        "--html",
        "page.html",
        *FAST,
    ]
    ended = process(*args)

    assert ended.code == 1
    lines = sorted(line.partition(" is not an ONNX")[0] for line in ended.err.splitlines())
    shown = [" ".join(name.replace("\udcff", "\\udcff").split()) for name in NAMES]
    assert lines == sorted(f"onnx-migrate: not-onnx: odd/not/{name}.onnx" for name in shown)
    *entries, _ = map(json.loads, (models / "log.jsonl").read_text(encoding="utf-8").splitlines())
    assert {entry["model"] for entry in entries if entry["outcome"] == "migrated"} == {
        f"odd/{n}.onnx" for n in NAMES
    }
    assert set(snapshot(models / "out")) == {".onnx-migrate.jsonl", *(f"{name}.onnx" for name in NAMES)}
    assert "bad\\udcff.onnx" in (models / "page.html").read_text(encoding="utf-8")
    assert "6 of them by an earlier run" in process(*args, "--resume").out


@pytest.mark.long
@skip_if(sys.platform != "linux", "limits of this kind", Elsewhere.LINUX)
@pytest.mark.parametrize("log", ["no log", "log.jsonl"])
def test_a_full_disk_is_one_line_and_resume_does_the_rest(
    process: Run, models: Path, command: list[str], log: str
) -> None:
    """No file can have more than 2,800 bytes: a model with weights, the journal and the log come to their end."""
    for index in range(6):
        shutil.copy("small.onnx", f"in/{index}.onnx")
    args = ["batch", "in", *FAST, "--jobs", "1", "--out-dir"]
    assert process(*args, "whole").code == 0

    more = ["--json-lines", log] if log.endswith("l") else []
    ended = process(*args, "out", *more, start=[*no_file_larger_than(2800), *command])

    assert ended.code == 1
    full = log if more else "out/.onnx-migrate.jsonl"
    assert (
        ended.err.splitlines()[-1] == f"onnx-migrate: cannot-write: {full}: cannot be written: File too large"
    )
    whole = snapshot(models / "whole")
    written = {name: data for name, data in snapshot(models / "out").items() if name.endswith(".onnx")}
    assert 0 < len(written) < 8
    assert written.items() <= whole.items()
    assert not leftovers(models)
    assert process(*args, "out", "--resume").code == 0
    assert snapshot(models / "out") == whole


@pytest.mark.cold
@skip_if(sys.platform != "linux", "limits of this kind", Elsewhere.LINUX)
def test_workers_that_cannot_start_end_the_batch(process: Run, folder: Path) -> None:
    """With more jobs than the pool takes at once, of which it would leave the rest open for ever."""
    (folder / "in").mkdir()
    for index in range(150):
        (folder / "in" / f"{index}.onnx").touch()

    ended = process("batch", "in", "--out-dir", "out", "--jobs", "1", "--memory-limit", "0.01")

    assert ended.code == 1
    assert ended.out.splitlines()[1].split()[:3] == ["150", "failed", "worker-lost:"]
    assert "worker processes end as they start: " in ended.err


@pytest.mark.long
def test_unverified_results_are_counted_everywhere(process: Run, folder: Path) -> None:
    (folder / "in").mkdir()
    odd = """<ir_version: 6, opset_import: ["": 11]>
    g (float[2] x) => (float[1] y) <int64[1] far = {9}> { a = Relu(x)  y = Gather(a, far) }"""
    onnx.save(onnx.parser.parse_model(odd), folder / "in" / "odd.onnx")
    onnx.save(onnx.load(folder / "small.onnx"), folder / "in" / "small.onnx")
    args = ["batch", "in", "--jobs", "1", "--out-dir"]

    ended = process(*args, "out", "--json-lines", "log.jsonl")
    again = process(*args, "out", "--resume")
    allowed = process(*args, "out", "--resume", "--allow-unverified")
    strict = process(*args, "strict", "--verify=require", "--quiet")

    assert allowed.code == 0
    for run in (ended, again):
        assert run.code == 3
        assert ["1", "unverified", "the", "original"] in [line.split()[:4] for line in run.out.splitlines()]
        assert "results: 1 verified, 1 unverified" in run.out
        assert run.err.count("onnx-migrate: unverified: in/odd.onnx: the original does not run") == 1
    *models, totals = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    assert {Path(item["model"]).stem: item["status"] for item in models} == {
        "odd": "unverified", "small": "verified"
    }  # fmt: skip
    assert totals["verification"] == {"verified": 1, "unverified": 1, "not verified": 0}
    records = map(json.loads, (folder / "out" / ".onnx-migrate.jsonl").read_text().splitlines())
    assert {record["output"]: record["verification"] for record in records} == {
        "odd.onnx": "unverified", "small.onnx": "verified"
    }  # fmt: skip
    assert strict.code == 1
    assert strict.err.startswith("onnx-migrate: unverified: in/odd.onnx: the numbers could not be compared")
    assert [path.name for path in (folder / "strict").glob("*.onnx")] == ["small.onnx"]
