"""The progress of a batch and of one model: lines of failures, JSON lines, the summary, and the stage that runs."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import onnx.helper
import pytest

from onnx_migrate.batching import Outcome, Summary
from onnx_migrate.cli.output.batch_progress import BatchProgress
from onnx_migrate.cli.output.json_lines import JsonLines
from onnx_migrate.cli.output.progress import ProgressLine
from onnx_migrate.errors import LoadError, SaveError, UsageError, Where
from onnx_migrate.process.progress import Progress as Event
from onnx_migrate.report import ModelSummary, Report
from onnx_migrate.report.failure import Failure
from onnx_migrate.rewrite.change_log import Change


def side(opset: int, ir_version: int) -> ModelSummary:
    return ModelSummary(opset, ir_version, (("", opset),), 1, (), ())


def changed(name: str, nodes: int = 2) -> Outcome:
    relu = onnx.helper.make_node("Relu", ["x"], ["y"]).SerializeToString()
    change = Change("p", Where("graph", "n", "Relu"), relu, 6, relu, 13, (), "")
    return Outcome(
        name, None, "migrated", report=Report(name, side(11, 6), side(17, 8), (), (change,) * nodes, ())
    )


def failed(name: str) -> Outcome:
    error = LoadError("no bytes", code="empty")
    return Outcome(name, None, "failed", "empty", "no bytes", report=Failure.of(name, error))


def finish(progress: BatchProgress, *outcomes: Outcome, models: int | None = None) -> Summary:
    summary = Summary(models=len(outcomes) if models is None else models, seconds=2.0)
    with progress:
        progress.planned(summary.models)
        for outcome in outcomes:
            progress.ended(outcome)
            summary.add(outcome)
        summary.complete = summary.ended == summary.models
        progress.finished(summary)
    return summary


def test_a_failure_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    finish(BatchProgress(lines=None, quiet=False), failed("a\nb.onnx"))

    assert capsys.readouterr() == ("", "onnx-migrate: empty: a b.onnx: no bytes\n")


def test_the_summary_lists_changes_and_counts_outcomes(capsys: pytest.CaptureFixture[str]) -> None:
    progress = BatchProgress(lines=None, quiet=False)
    summary = finish(progress, changed("b.onnx"), changed("a.onnx", 1), failed("c.onnx"), models=5)
    capsys.readouterr()

    progress.summarise(summary)

    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "would change: a.onnx: opset 11 → 17, IR 6 → 8, 1 node changed",
        "would change: b.onnx: opset 11 → 17, IR 6 → 8, 2 nodes changed",
        "models status reason",
        "2 would be migrated",
        "1 failed empty: no bytes",
        "c.onnx",
        "2 not started",
        "3 of 5 models in 2.0 s, 1.5 per second",
    ]


def test_json_lines_are_written_as_models_end(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    progress = BatchProgress(lines=JsonLines(str(path)), quiet=True)

    with progress:
        progress.planned(1)
        progress.ended(failed("a.onnx"))
        (line,) = path.read_text(encoding="utf-8").splitlines()

    assert (json.loads(line)["model"], json.loads(line)["error"]["code"]) == ("a.onnx", "empty")


def test_lines_and_page_are_not_written_where_a_result_will_be(tmp_path: Path) -> None:
    for given in ({"lines": "a.onnx", "html": None}, {"lines": None, "html": "out/../b.onnx.data"}):
        (tmp_path / "out").mkdir(exist_ok=True)
        paths = {name: path and str(tmp_path / path) for name, path in given.items()}
        lines = paths["lines"] and JsonLines(paths["lines"])
        written = list(filter(None, [paths["lines"]]))
        progress = BatchProgress(lines=lines or None, written=written, html=paths["html"], quiet=True)
        progress.placed([str(tmp_path / "c.onnx")])
        with pytest.raises(UsageError, match=r"given twice|the same file"), progress:
            progress.placed(str(tmp_path / name) for name in ("a.onnx", "b.onnx"))


def test_the_page_is_written_where_the_lines_cannot_be(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    progress = BatchProgress(lines=JsonLines("/dev/full"), written=["/dev/full"], html=str(page), quiet=True)
    with progress:
        progress.planned(1)
        with pytest.raises(SaveError, match="No space left"):
            progress.finished(Summary())
    assert page.exists()


def test_an_unverified_result_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    progress = BatchProgress(lines=None, quiet=True)
    with progress:
        progress.ended(
            Outcome("a.onnx", "b.onnx", "migrated", verification="unverified", doubt="no inputs\nfit")
        )
        progress.ended(Outcome("c.onnx", "d.onnx", "migrated", verification="verified"))
    assert capsys.readouterr().err == "onnx-migrate: unverified: a.onnx: no inputs fit\n"


class Terminal(io.StringIO):
    """Text that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def shown_on(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Let stderr be this stream."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_stages_are_shown_on_a_terminal_unless_quiet(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool, shown: bool
) -> None:
    stream = shown_on(Terminal() if terminal else io.StringIO(), monkeypatch)

    with ProgressLine(quiet) as progress:
        progress("verify")

    assert ("verify" in stream.getvalue()) == shown


def test_an_exception_passes_through_and_the_line_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = shown_on(Terminal(), monkeypatch)

    with pytest.raises(KeyError), ProgressLine(quiet=False):
        raise KeyError

    assert stream.getvalue().endswith(("\x1b[2K", "\x1b[?25h")), (
        "the line is erased and the cursor shown again"
    )


def test_of_a_long_stage_the_line_says_how_far_it_has_come_and_for_how_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr("onnx_migrate.cli.output.progress.time.monotonic", lambda: clock[0])
    progress = ProgressLine(quiet=True)
    progress("verify")
    progress.follow(Event("verify", 1, 1, 0.0, "input 2 of 3, run 5 of 8"))
    clock[0] += 1.9
    assert progress.line == "verify"
    clock[0] += 10.1
    assert progress.line == "verify: input 2 of 3, run 5 of 8, 12 s"
    progress("saving")
    clock[0] += 3
    assert progress.line == "saving: 3 s", "the place was that of another stage"


def test_the_line_on_the_terminal_is_drawn_again_while_a_stage_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = shown_on(Terminal(), monkeypatch)
    monkeypatch.setattr("onnx_migrate.cli.output.progress._PATIENCE", 0.05)
    with ProgressLine(quiet=False) as progress:
        progress("verify")
        progress.follow(Event("verify", 1, 1, 0.0, "input 1 of 2, run 3 of 8"))
        end = time.monotonic() + 5
        while "run 3 of 8, 0 s" not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.05)
    assert "verify: input 1 of 2, run 3 of 8, 0 s" in stream.getvalue()
