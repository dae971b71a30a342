"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FAST = ("--no-verify", "--no-simplify")

SMALL = """<ir_version: 6, opset_import: ["": 11]>
g (float[1,3,8,8] x) => (float[1,3,16,16] y) <float[3,1,1,1] w = {0.5, -2.0, 3.0}, float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
    c = Conv <group = 3> (x, w)
    y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (c, , scales)
}"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
