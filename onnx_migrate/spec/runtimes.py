"""The newest opset, IR version and form of Resize that a release of a runtime runs; for `--for RUNTIME==VERSION`.

docs/runtimes.md gives the source of each row: runs of the releases' wheels (onnxruntime, openvino, opencv), and the
documentation and source of the importer (tensorrt).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from onnx_migrate.errors import UsageError

__all__ = ["LAST", "TABLE", "Lower", "Runtime", "runtime"]

Lower = Literal[True, False, "nearest"]
"""Whether a model that is newer than the opset asked for is brought down to it, or refused, or brought as near as it can."""

_STRICT = ("onnxruntime", "tensorrt")
"""Runtimes that refuse a model of a newer opset, or do not support it; the others try to run it."""

_PACKAGES = {
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "tensorrt": ("tensorrt",),
    "openvino": ("openvino",),
    "opencv": (
        "opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless",
    ),
}  # fmt: skip
"""The distributions that install each runtime."""


@dataclass(frozen=True)
class Runtime:
    """A release of a runtime, and all later ones before the next row of the table."""

    name: str
    release: tuple[int, ...]
    opset: int
    """The newest opset that it runs."""
    ir_version: int | None = None
    """The newest IR version that it loads; None if no IR version is known that it does not load."""
    resize_form: Literal["auto", "scales"] = "auto"
    """The inputs of Resize that it runs: "scales", or those that the pass `resize_form` chooses."""
    resize_axes: bool = True
    """Whether it supports the attribute `axes` of Resize, which came with opset 18."""

    @property
    def lower(self) -> Lower:
        """Whether a newer model must come down to the opset, or to the nearest one that it can reach if that is newer."""
        return True if self.name in _STRICT else "nearest"

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.release))}"


TABLE = {
    "onnxruntime": (
        Runtime("onnxruntime", (1, 6), 13, 7),
        Runtime("onnxruntime", (1, 8), 14, 7),
        Runtime("onnxruntime", (1, 9), 15, 8),
        Runtime("onnxruntime", (1, 11), 16, 8),
        Runtime("onnxruntime", (1, 12), 17, 8),
        Runtime("onnxruntime", (1, 14), 18, 8),
        Runtime("onnxruntime", (1, 15), 18, 9),
        Runtime("onnxruntime", (1, 16), 19, 9),
        Runtime("onnxruntime", (1, 17), 20, 9),
        Runtime("onnxruntime", (1, 18), 21, 10),
        Runtime("onnxruntime", (1, 21), 22, 10),
        Runtime("onnxruntime", (1, 23), 23, 11),
        Runtime("onnxruntime", (1, 24), 25, 13),
        Runtime("onnxruntime", (1, 25), 26, 13),
    ),
    "tensorrt": (
        Runtime("tensorrt", (7, 2), 13),
        Runtime("tensorrt", (8, 4), 17),
        Runtime("tensorrt", (9, 0), 19, resize_axes=False),
        Runtime("tensorrt", (10, 0), 20),
    ),
    "openvino": (
        Runtime("openvino", (2023, 0), 17, resize_axes=False),
        Runtime("openvino", (2024, 4), 19, resize_axes=False),
        Runtime("openvino", (2025, 4), 19),
        Runtime("openvino", (2026, 3), 23),
        Runtime("openvino", (2026, 4), 26),
    ),
    "opencv": (
        Runtime("opencv", (4, 5), 9, resize_form="scales", resize_axes=False),
        Runtime("opencv", (4, 6), 9, resize_axes=False),
        Runtime("opencv", (4, 7), 12, resize_axes=False),
        Runtime("opencv", (4, 8), 19, resize_axes=False),
        Runtime("opencv", (4, 9), 20, resize_axes=False),
        Runtime("opencv", (4, 10), 21, resize_axes=False),
        Runtime("opencv", (4, 11), 22, resize_axes=False),
        Runtime("opencv", (4, 12), 23, resize_axes=False),
        Runtime("opencv", (4, 13), 25, resize_axes=False),
        Runtime("opencv", (4, 14), 26, resize_axes=False),
    ),
}
"""The rows of each runtime, oldest first."""

LAST = {"onnxruntime": (1, 31), "tensorrt": (10, 1), "openvino": (2026, 4), "opencv": (5, 0)}
"""The newest release of each runtime that the rows were checked with."""


def runtime(text: str) -> Runtime:
    """Return the row for text such as "onnxruntime==1.14"; without a release, the row of the installed one.

    Raises UsageError for an unknown runtime, a release outside of the table, and a runtime that is not installed.
    """
    found = re.fullmatch(r"\s*([\w.-]+?)\s*(?:==\s*(\d+(?:\.\d+)*))?\s*", text)
    name = found[1].lower() if found else ""
    if found is None or name not in TABLE:
        raise UsageError(
            f"{text!r} is not a known runtime",
            hint=f"one of {', '.join(TABLE)}, with its release, as in onnxruntime==1.14",
        )
    given = found[2] or _installed(name)
    release = tuple(map(int, given.split(".")[:2]))
    rows, last = TABLE[name], LAST[name]
    index = bisect_right([row.release for row in rows], release) - 1
    if index < 0 or (found[2] and release > last):
        low, high = (".".join(map(str, number)) for number in (rows[0].release, last))
        raise UsageError(
            f"it is not known which opset {name} {given} runs",
            hint=f"releases {low} to {high} are known; for another, name the opset with --opset",
        )
    return replace(rows[index], release=release)


def _installed(name: str) -> str:
    for package in _PACKAGES[name]:
        try:
            numbers = re.match(r"\d+(?:\.\d+)*", version(package))
        except PackageNotFoundError:
            continue
        if numbers:
            return numbers[0]
    raise UsageError(
        f"{name} is not installed, so its release must be named",
        hint=f"as in {name}=={'.'.join(map(str, TABLE[name][-1].release))}",
    )
