"""`onnx-migrate diff`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Run
from tests.harness import model

NET = """17 (float[2,4] x) => (float[2,4] y) <float[4] w = {1.,2.,3.,4.}> {
  [n0] a = Relu (x) [n1] b = Mul (a, w) [n2] c = LeakyRelu <alpha = 0.1> (b) [n3] y = Add (c, x)
}"""


@pytest.mark.parametrize("options", [(), ("--stat",), ("--json",), ("-q",)], ids=str)
def test_the_command(cli: Run, folder: Path, options: tuple[str, ...]) -> None:
    onnx.save(model(NET), folder / "one.onnx")
    onnx.save(model(NET.replace("0.1", "0.2")), folder / "two.onnx")
    ended = cli("diff", "one.onnx", "two.onnx", *options)

    assert ended.code == 3
    assert cli("diff", "one.onnx", "one.onnx", *options).code == 0
    if "--json" in options:
        assert json.loads(ended.out)["counts"] == [{"kind": "node", "removed": 0, "added": 0, "changed": 1}]
    elif "-q" in options:
        assert not ended.out
    else:
        assert ended.out.startswith("nodes  1 changed\n")
        assert ("+  alpha = 0.2" in ended.out) == (not options)


def test_a_file_that_is_no_model_is_an_error(cli: Run, folder: Path) -> None:
    (folder / "text.onnx").write_text("no model")
    onnx.save(model(NET), folder / "one.onnx")

    assert cli("diff", "one.onnx", "text.onnx").code == 4
    assert "text.onnx" in cli("diff", "one.onnx", "text.onnx").err


def test_the_page_is_written_and_an_older_one_replaced(cli: Run, folder: Path) -> None:
    onnx.save(model(NET), folder / "one.onnx")
    onnx.save(model(NET.replace("0.1", "0.2")), folder / "two.onnx")

    for _ in range(2):
        assert cli("diff", "one.onnx", "two.onnx", "--html", "page.html", "-q").code == 3
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "<title>one.onnx and two.onnx" in page
    assert "alpha: 0.1 → 0.2" in page


def test_the_page_does_not_replace_another_file(cli: Run, folder: Path) -> None:
    onnx.save(model(NET), folder / "one.onnx")
    ended = cli("diff", "one.onnx", "one.onnx", "--html", "one.onnx")

    assert ended.code == 1
    assert "one.onnx exists and is not an HTML page" in ended.err


def test_open_needs_a_page(cli: Run, folder: Path) -> None:
    onnx.save(model(NET), folder / "one.onnx")
    assert cli("diff", "one.onnx", "one.onnx", "--open").code == 2
