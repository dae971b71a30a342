"""Takes the pictures of a report that README.md shows, light and dark. `python -m tests.docs.report_picture`; needs Chromium."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from onnx_migrate.cli.app import run
from tests.support.browser import browser
from tests.support.paths import ROOT

__all__ = ["main"]

FOLDER = ROOT / "docs" / "images"
WIDTH, HEIGHT = 900, 972


def main() -> None:
    """Migrate the model of README.md, and write docs/images/report-light.png and report-dark.png."""
    os.chdir(ROOT / "fixtures")
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "report.html"
        options = ["--opset", "17", "--dynamic", "x:N,3,H,W", "--html", str(page), "--quiet"]
        try:
            run(["conv_relu_upsample_opset11.onnx", str(Path(name) / "migrated.onnx"), *options])
        except SystemExit as end:
            if end.code:
                raise
        page.write_text(page.read_text(encoding="utf-8").replace(f"{name}/", ""), encoding="utf-8")
        with browser(Path(name) / "profile") as chromium:
            for scheme in ("light", "dark"):
                tab = chromium.open(page, width=WIDTH, height=HEIGHT, dark=scheme == "dark")
                tab.picture(FOLDER / f"report-{scheme}.png", whole=False)


if __name__ == "__main__":
    main()
