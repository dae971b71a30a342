"""Takes the pictures of pages that the docs show, light and dark. `python -m tools.pages.report_picture`; needs Chromium.

README.md shows report-*.png. docs/differences.md shows diff-*.png and plot-*.png.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnx_migrate.cli.app import run
from tests.support.browser import Browser, browser
from tests.support.paths import ROOT

__all__ = ["main"]

FOLDER = ROOT / "docs" / "images"
WIDTH = 900


def main() -> None:
    """Write the pictures to docs/images."""
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        with browser(Path(name) / "profile") as chromium:
            _picture(chromium, _migrated(), "report", 972)
            _write_models()
            diff = _page("diff", "original.onnx", "edited.onnx", "--html", "diff.html")
            _picture(chromium, diff, "diff", 760, "document.getElementById('graph').scrollIntoView()")
            plot = _page("verify", "original.onnx", "converted.onnx", "--html", "plot.html")
            _picture(chromium, plot, "plot", 880)
        os.chdir(ROOT)


def _migrated() -> Path:
    """Return the page of the migration that README.md shows."""
    model = ROOT / "fixtures" / "conv_relu_upsample_opset11.onnx"
    Path(model.name).write_bytes(model.read_bytes())
    options = ("--opset", "17", "--dynamic", "x:N,3,H,W", "--html", "report.html")
    return _page(model.name, "migrated.onnx", *options)


def _write_models() -> None:
    """Write a model, one with another element in a weight, and one with two other nodes besides."""
    model = onnx.load(ROOT / "fixtures" / "unet_opset9.onnx")
    onnx.save(model, "original.onnx")
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "onnx::Conv_70")
    numbers = numpy_helper.to_array(weight).copy()
    numbers[3, 1, 0, 2] += np.float32(0.05)
    weight.CopyFrom(numpy_helper.from_array(numbers, weight.name))
    onnx.save(model, "converted.onnx")
    nodes = {node.name: node for node in model.graph.node}
    nodes["/down2/down2.2/LeakyRelu"].attribute[0].f = 0.2
    first = nodes["/down1/down1.2/LeakyRelu"]
    added = helper.make_node("Abs", list(first.input), ["positive"], "/down1/Abs")
    first.input[0] = "positive"
    model.graph.node.insert(1, added)
    onnx.save(model, "edited.onnx")


def _page(*arguments: str) -> Path:
    """Run a command that writes a page, and return the path of the page."""
    try:
        run([*arguments, "--quiet"])
    except SystemExit as end:
        if end.code not in (None, 0, 3):  # 3: the models differ
            raise
    return Path(arguments[-1]).absolute()


def _picture(chromium: Browser, page: Path, name: str, height: int, before: str = "") -> None:
    """Take the picture of the top of a page, or of the part to which a script scrolls."""
    for scheme in ("light", "dark"):
        tab = chromium.open(page, width=WIDTH, height=height, dark=scheme == "dark")
        if before:
            tab.run(f"void {before}")
        tab.picture(FOLDER / f"{name}-{scheme}.png", whole=False)


if __name__ == "__main__":
    main()
