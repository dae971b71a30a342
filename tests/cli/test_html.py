"""`--html FILE`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.running import FAST, Run


def test_of_one_model(cli: Run, folder: Path) -> None:
    ended = cli("small.onnx", "out.onnx", "--html", "report.html", "-q", *FAST)

    assert (ended.code, ended.out, ended.err) == (0, "", "")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    for text in ("small.onnx", "out.onnx", "11 → 17", "Resize-11 →", "roi is dropped", "not asked for"):
        assert text in page


def test_of_a_batch(process: Run, folder: Path) -> None:
    (folder / "in").mkdir()
    shutil.copy("small.onnx", "in/a.onnx")
    (folder / "in" / "b.onnx").write_text("hello", encoding="utf-8")

    assert process("batch", "in", "--out-dir", "out", "--html", "report.html", *FAST).code == 1

    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "2 of 2 models" in page
    assert page.count('<section class="model"') == 2
    assert "roi is dropped" in page
    assert "not-onnx" in page


@pytest.mark.parametrize(
    "command", [["small.onnx", "out.onnx"], ["batch", "small.onnx", "--out-dir", "out"]], ids=str
)
def test_without_the_library_it_is_said_before_the_work(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    from onnx_migrate.report import html

    monkeypatch.setitem(sys.modules, "jinja2", None)
    html._macros.cache_clear()

    ended = cli(*command, "--html", "report.html", *FAST)

    assert ended.code == 2
    assert "pip install 'onnx-migrate[html]'" in ended.err
    assert not (folder / "out.onnx").exists()
    assert not (folder / "report.html").exists()


def test_where_it_cannot_be_written_nothing_is(cli: Run, folder: Path) -> None:
    assert cli("small.onnx", "out.onnx", "--html", "no/such/report.html", *FAST).code == 1
    assert not (folder / "out.onnx").exists()
