"""What a release of a runtime takes: opset, IR version, form of a Resize; for `--for RUNTIME==VERSION`.

docs/runtimes.md says where each row comes from: what wheels of these releases were seen to run (onnxruntime,
openvino, opencv), and the importer's own documents and source (tensorrt).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from onnx_migrate.errors import UsageError

__all__ = ["LAST", "TABLE", "Runtime", "runtime"]

_STRICT = ("onnxruntime", "tensorrt")
"""Those that refuse, or rule out, a newer opset; the others try, and may well succeed."""

_PACKAGES = {
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "tensorrt": ("tensorrt",),
    "openvino": ("openvino",),
    "opencv": (
        "opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless",
    ),
}  # fmt: skip
"""The distributions that install each."""


@dataclass(frozen=True)
class Runtime:
    """A release and all that follow it up to the next row.

    `opset` is the newest to bring a model to, and `ir_version` the newest that loads (None: none was found that
    does not). `resize_axes` tells whether it knows the attribute `axes` of Resize 18 and on.
    """

    name: str
    release: tuple[int, ...]
    opset: int
    ir_version: int | None = None
    resize_form: Literal["auto", "scales"] = "auto"
    resize_axes: bool = True

    @property
    def target(self) -> str:
        """The opset as `--opset` takes it: a model that is newer keeps its own where that may run."""
        return str(self.opset) if self.name in _STRICT else f"{self.opset}+"

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
"""The rows of each runtime, the oldest first."""

LAST = {"onnxruntime": (1, 31), "tensorrt": (10, 1), "openvino": (2026, 4), "opencv": (5, 0)}
"""The last release of each that the table was made with."""


def runtime(text: str) -> Runtime:
    """Return the row for "onnxruntime==1.14", or for "onnxruntime" that of the installed one.

    Raises UsageError for a runtime or a release of which the table says nothing.
    """
    found = re.fullmatch(r"\s*([\w.-]+?)\s*(?:==\s*(\d+(?:\.\d+)*))?\s*", text)
    name = found[1].lower() if found else ""
    if found is None or name not in TABLE:
        raise UsageError(
            f"{text!r} is no runtime", hint=f"as in onnxruntime==1.14; there are {', '.join(TABLE)}"
        )
    given = found[2] or _installed(name)
    release = tuple(map(int, given.split(".")[:2]))
    rows, last = TABLE[name], LAST[name]
    index = bisect_right([row.release for row in rows], release) - 1
    if index < 0 or (found[2] and release > last):
        low, high = (".".join(map(str, number)) for number in (rows[0].release, last))
        raise UsageError(
            f"nothing is known of {name} {given}", hint=f"of {low} to {high} it is; --opset says it outright"
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
        f"{name} is not installed, so its version must be given", hint=f"as in {TABLE[name][-1]!s}"
    )
