"""Writes tests/report/report_texts.txt: the reports of some migrations, so that a changed sentence shows in review.

    python -m tools.report_texts

Each number is "0", because times, sizes and rounding differ between machines and versions.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from typing import Any

from rich.console import Console

import onnx_migrate
from onnx_migrate.errors import MigrateError
from onnx_migrate.report.text import print_report
from tests.support.paths import FIXTURES, ROOT

FILE = ROOT / "tests" / "report" / "report_texts.txt"

MIGRATIONS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "up": ("conv_relu_upsample_opset9", {"opset": 17}),
    "without verification": ("conv_relu_upsample_opset9", {"opset": 17, "verify": False}),
    "down": ("conv_relu_upsample_opset13", {"opset": 9}),
    "no change": ("conv_relu_upsample_opset13", {"opset": 13}),
    "a dynamic batch": ("conv_relu_upsample_opset11", {"dynamic_batch": True}),
    "TensorRT": ("resize_bilinear_opset10", {"runtime": ["tensorrt==8.5"]}),
    "OpenCV": ("resize_nearest_opset11", {"runtime": ["opencv==4.8"]}),
    "the intent of a Resize": ("resize_bilinear_opset10", {"opset": 17, "resize_intent": True}),
    "float16": ("conv_relu_upsample_opset11", {"precision": "fp16"}),
    "control flow": ("control_flow_opset11", {"opset": 17}),
    "a bicubic Resize down": ("resize_bicubic_opset11", {"opset": 9}),
}
"""By title: a fixture and the options of its migration."""


def text() -> str:
    """Return the reports, each below its title."""
    return "".join(map(section, MIGRATIONS))


def section(title: str) -> str:
    """Return the report of a migration below its title: the short one, and then the one with everything."""
    return f"== {title}\n{_report(*MIGRATIONS[title])}\n"


def _report(fixture: str, options: dict[str, Any]) -> str:
    try:
        report = onnx_migrate.migrate(FIXTURES / f"{fixture}.onnx", simplify=False, **options).report
    except MigrateError as error:
        return _without_numbers(f"{error}\n")
    stream = io.StringIO()
    console = Console(file=stream, width=1000)
    print_report(report, console, target="result.onnx")
    stream.write("--\n")
    print_report(report, console, target="result.onnx", everything=True)
    return _without_numbers(stream.getvalue())


def _without_numbers(report: str) -> str:
    plain = report.replace(f"{FIXTURES}{os.sep}", "")
    # A slow machine compares on fewer inputs.
    plain = re.sub(r"inputs: .*", "inputs: …", re.sub(r"\bsets? of inputs", "sets of inputs", plain))
    lines = (re.sub(r"\d+(,\d{3})*(\.\d+)*(e[+-]\d+)?", "0", line).rstrip() for line in plain.splitlines())
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
