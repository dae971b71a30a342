"""JSON lines: what is a file is replaced only when the batch begins, and what is none is written to as it is."""

from __future__ import annotations

import json
import os
import resource
import stat
import threading
from pathlib import Path

import pytest

from onnx_migrate.cli.output.json_lines import JsonLines
from onnx_migrate.errors import SaveError, UsageError
from tests.cli.running import FAST, Run
from tests.support.skips import Elsewhere, skip_if

pytestmark = skip_if(not hasattr(os, "mkfifo"), "pipes with a name", Elsewhere.LINUX)

BATCH = "batch", "small.onnx", "--out-dir", "out", *FAST, "-q", "--json-lines"


def lines_of(text: str) -> list[str]:
    return [json.loads(line)["kind"] for line in text.splitlines()]


def test_a_named_pipe_gets_the_lines_and_stays(process: Run, folder: Path) -> None:
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_text(encoding="utf-8")))
    reader.start()
    ended = process(*BATCH, "pipe")
    reader.join()

    assert (ended.code, ended.err) == (0, "")
    assert lines_of(read[0]) == ["model", "totals"]
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


@pytest.mark.long
def test_open_files_of_the_process(process: Run, folder: Path) -> None:
    """/dev/stdout is standard output, wherever that leads: a file is written on, not begun anew."""
    assert lines_of(process(*BATCH, "/dev/stdout").out) == ["model", "totals"]
    assert lines_of(process(*BATCH, "/dev/stderr").err) == ["model", "totals"]
    assert process(*BATCH, "/dev/null").code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_what_cannot_be_written_is_told_before_the_work(folder: Path) -> None:
    (folder / "other").write_text("other", encoding="utf-8")
    for path, message in {
        "/dev/fd/98": "Bad file descriptor",
        "no/such": "the folder .* does not exist",
        "other": "other exists and is not a file of JSON lines",
        ".": "is a directory",
    }.items():
        with pytest.raises(SaveError, match=message):
            JsonLines(path).open()
    with pytest.raises(UsageError, match="needs a file, not a URL"):
        JsonLines("s3://bucket/log")
    assert (folder / "other").read_text(encoding="utf-8") == "other"


def test_lines_of_an_earlier_run_stay_until_the_batch_begins(cli: Run, folder: Path) -> None:
    old = '{"kind":"totals"}\n'
    (folder / "log").write_text(old, encoding="utf-8")
    assert cli("batch", "*.none", "--out-dir", "out", "--json-lines", "log", "--jobs", "1").code != 0
    lines = JsonLines("log")
    assert (folder / "log").read_text(encoding="utf-8") in (old, "")
    lines.open()
    lines.write({"kind": "model"})
    lines.close()
    assert (folder / "log").read_text(encoding="utf-8") == '{"kind":"model"}\n'


def test_a_line_is_written_whole_or_not_at_all(folder: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    lines = JsonLines("log")
    lines.open()
    lines.write({"kind": "model"})
    resource.setrlimit(resource.RLIMIT_FSIZE, (30, hard))
    try:
        with pytest.raises(SaveError, match="log: cannot be written: File too large"):
            lines.write({"kind": "model", "name": "x" * 30})
        lines.write({"kind": ""})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        lines.close()
    assert (folder / "log").read_text(encoding="utf-8") == '{"kind":"model"}\n{"kind":""}\n'


def test_a_reader_that_left_is_an_error_of_the_lines(folder: Path) -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    lines = JsonLines("pipe")
    lines.open()
    os.close(reader)
    with pytest.raises(SaveError, match="pipe: cannot be written: Broken pipe"):
        lines.write({})
    lines.close()
