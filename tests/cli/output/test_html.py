"""`--html FILE`."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import onnx
import pytest

import onnx_migrate
from onnx_migrate.batching import Outcome, Summary
from onnx_migrate.cli.output.html import BatchPage
from tests.cli.running import FAST, Raw, Run


def test_the_page_of_one_model(cli: Run, folder: Path) -> None:
    ended = cli("small.onnx", "out.onnx", "--html", "report.html", "-q", *FAST)

    assert (ended.code, ended.out, ended.err) == (0, "", "")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    for text in (
        "small.onnx",
        "out.onnx",
        "11 → 17",
        "Resize-11 →",
        "only tf_crop_and_resize",
        "not verified",
    ):
        assert text in page


def test_the_page_of_a_batch(process: Run, folder: Path) -> None:
    (folder / "in").mkdir()
    shutil.copy("small.onnx", "in/a.onnx")
    (folder / "in" / "b.onnx").write_text("hello", encoding="utf-8")

    assert process("batch", "in", "--out-dir", "out", "--html", "report.html", *FAST).code == 1

    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "2 of 2 models" in page
    assert page.count('<section class="model"') == 2
    assert "only tf_crop_and_resize" in page
    assert "not-onnx" in page


def test_a_batch_is_listed_by_name_in_any_order_of_ending(folder: Path) -> None:
    report = onnx_migrate.migrate("small.onnx", simplify=False, verify=False).report
    totals = Summary(models=4, ended=4).as_dict()

    def page(order: str) -> bytes:
        pages = BatchPage("report.html")
        for name in order:
            pages.add(Outcome(f"{name}.onnx", None, "migrated", seconds=1.0, report=report))
        pages.finish(totals)
        return (folder / "report.html").read_bytes()

    first = page("bdac")
    assert re.findall(rb">(.\.onnx)</h1>", first) == [b"a.onnx", b"b.onnx", b"c.onnx", b"d.onnx"]
    assert page("cadb") == first


@pytest.mark.parametrize(("model", "name"), [("odd.onnx", "odd.onnx"), ("-", "&lt;stdin&gt;")])
def test_the_page_of_a_refused_model(raw: Raw, folder: Path, model: str, name: str) -> None:
    proto = onnx.load(folder / "small.onnx")
    proto.graph.node[1].op_type, proto.graph.node[1].name = "NeverWas", "culprit"
    onnx.save(proto, folder / "odd.onnx")

    ended = raw(model, "out.onnx", "--html", "report.html", input=(folder / "odd.onnx").read_bytes())

    assert (ended.returncode, ended.stdout, ended.stderr.count(b"\n")) == (1, b"", 1)
    assert not (folder / "out.onnx").exists()
    page = (folder / "report.html").read_text(encoding="utf-8")
    for text in (f">{name}</h1>", "refused", "unknown-operator", "culprit", "cannot be migrated", "before"):
        assert text in page


def test_the_page_of_a_file_that_is_no_model(cli: Run, folder: Path) -> None:
    (folder / "odd.onnx").write_text("hello", encoding="utf-8")

    assert cli("odd.onnx", "out.onnx", "--html", "report.html").code == 4
    assert "not-onnx" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command", [["small.onnx", "out.onnx"], ["batch", "small.onnx", "--out-dir", "out"]], ids=str
)
def test_a_missing_library_fails_before_the_work(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    from onnx_migrate.report.html import render as html

    monkeypatch.setitem(sys.modules, "jinja2", None)
    html._environment.cache_clear()

    ended = cli(*command, "--html", "report.html", *FAST)

    assert ended.code == 2
    assert "pip install 'onnx-migrate[html]'" in ended.err
    assert not (folder / "out.onnx").exists()
    assert not (folder / "report.html").exists()


def test_nothing_is_written_if_the_page_cannot_be(cli: Run, folder: Path) -> None:
    assert cli("small.onnx", "out.onnx", "--html", "no/such/report.html", *FAST).code == 1
    assert not (folder / "out.onnx").exists()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the addresses that a browser is told to open."""
    addresses = list[str]()
    monkeypatch.setattr("webbrowser.open", lambda address: not addresses.append(address))
    return addresses


@pytest.mark.parametrize(
    "arguments",
    [
        ("small.onnx", "out.onnx"),
        ("batch", "small.onnx", "--out-dir", "out"),
        ("missing.onnx", "out.onnx"),
    ],
    ids=" ".join,
)
def test_the_page_is_opened_when_it_is_written(
    cli: Run, folder: Path, shown: list[str], arguments: tuple[str, ...]
) -> None:
    cli(*arguments, "--html", "a page.html", "--open", *FAST)
    assert shown == [(folder / "a page.html").as_uri()]
    assert shown[0].endswith("/a%20page.html")


def test_a_page_that_is_not_written_is_not_opened(cli: Run, folder: Path, shown: list[str]) -> None:
    (folder / "old.html").write_text("<!DOCTYPE html>old")
    assert cli("small.onnx", "small.onnx", "--html", "old.html", "--open", *FAST).code != 0
    (folder / "old.html").unlink()
    assert cli("verify", "small.onnx", "missing.onnx", "--html", "page.html", "--open").code != 0
    assert shown == []


def test_open_needs_a_page(cli: Run, shown: list[str]) -> None:
    ended = cli("small.onnx", "out.onnx", "--open", *FAST)
    assert ended.code == 2
    assert "add --html FILE" in ended.err
    assert shown == []


def test_a_machine_without_a_browser_is_told(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _address: False)
    ended = cli("small.onnx", "out.onnx", "--html", "page.html", "--open", *FAST)
    assert ended.code == 0
    assert "no browser could be started for the page" in ended.err
    assert (folder / "page.html").exists()


def test_models_without_a_proved_result_come_first(folder: Path) -> None:
    totals = Summary(models=3, ended=3).as_dict()
    pages = BatchPage("report.html")
    pages.add(Outcome("a.onnx", None, "migrated", verification="verified"))
    pages.add(Outcome("c.onnx", None, "failed", "crashed", "ended"))
    pages.add(Outcome("b.onnx", None, "migrated", verification="unverified", doubt="no inputs"))
    pages.finish(totals)
    page = (folder / "report.html").read_text()
    assert re.findall(r'<tr data-status="([^"]*)"', page) == ["failed", "unverified", "migrated"]
    assert "<td>no inputs; done by an earlier run</td>" in page
