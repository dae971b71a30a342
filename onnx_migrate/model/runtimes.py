"""Which opset and IR version a release of a runtime takes; for `--for RUNTIME==VERSION`.

Sources: onnxruntime's rows are what the wheels of those releases load (`benchmarks/runtimes.py` measures it).
TensorRT's are the first lines of docs/operators.md in the branches of onnx/onnx-tensorrt that bear the
release's name, and say nothing of the IR version.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from onnx_migrate.errors import UsageError

__all__ = ["TABLE", "Runtime", "runtime"]


@dataclass(frozen=True)
class Runtime:
    """A release and all that follow it up to the next row: the newest opset, and IR version (None: not known)."""

    name: str
    release: tuple[int, ...]
    opset: int
    ir_version: int | None

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.release))}"


_ONNXRUNTIME = (
    ((1, 6), 13, 7), ((1, 8), 14, 7), ((1, 9), 15, 8), ((1, 11), 16, 8), ((1, 12), 17, 8), ((1, 14), 18, 8),
    ((1, 15), 18, 9), ((1, 16), 19, 9), ((1, 17), 20, 9), ((1, 18), 21, 10), ((1, 21), 22, 10), ((1, 23), 23, 11),
    ((1, 24), 25, 13), ((1, 25), 26, 13),
)  # fmt: skip
_TENSORRT = (
    ((7, 2), 13, None), ((8, 4), 17, None), ((9, 0), 19, None), ((10, 0), 20, None),
)  # fmt: skip

TABLE = {
    "onnxruntime": tuple(Runtime("onnxruntime", *row) for row in _ONNXRUNTIME),
    "tensorrt": tuple(Runtime("tensorrt", *row) for row in _TENSORRT),
}
_LAST = {"onnxruntime": (1, 31), "tensorrt": (10, 1)}
"""The last release that the table was made with."""


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
    rows, last = TABLE[name], _LAST[name]
    index = bisect_right([row.release for row in rows], release) - 1
    if index < 0 or (found[2] and release > last):
        low, high = (".".join(map(str, number)) for number in (rows[0].release, last))
        raise UsageError(
            f"nothing is known of {name} {given}", hint=f"of {low} to {high} it is; --opset says it outright"
        )
    row = rows[index]
    return Runtime(name, release, row.opset, row.ir_version)


def _installed(name: str) -> str:
    for package in (name, f"{name}-gpu"):
        try:
            numbers = re.match(r"\d+(?:\.\d+)*", version(package))
        except PackageNotFoundError:
            continue
        if numbers:
            return numbers[0]
    raise UsageError(f"{name} is not installed, so its version must be given", hint=f"as in {name}==1.14")
