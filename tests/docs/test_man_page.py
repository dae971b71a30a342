"""docs/onnx-migrate.1 is the help of the commands, and a man page without mistakes."""

from __future__ import annotations

import re
import shutil
import subprocess

from onnx_migrate.cli.app import app
from tests.support.skips import Elsewhere, skip_if
from tools.pages.man_page import PAGE, escaped, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="ascii") == page(), "run python -m tools.pages.man_page"


def test_text_is_printed_as_it_is() -> None:
    assert escaped("--opset") == r"\-\-opset"
    assert escaped(".onnx\n'a' \\") == "\\&.onnx\n\\(aqa\\(aq \\e"
    assert escaped("a → b") == r"a \[u2192] b"


@skip_if(shutil.which("groff") is None, "groff is not installed", Elsewhere.INSTALLED)
def test_groff_shows_every_option_and_has_no_complaints() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", str(PAGE)],
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
    )
    shown = re.sub(r"\x1b\[[\d;]*m|.\x08", "", done.stdout)

    assert done.stderr == ""
    for command in app.commands.values():
        for parameter in command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert not name.startswith("-") or name in shown
    for line in (
        "    onnx-migrate model.onnx out.onnx",
        "load → convert every node",
        ".onnx-migrate.jsonl",
    ):
        assert line in shown
