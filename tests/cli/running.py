"""Shared by the tests of the command line: models, results of a run, and files of a folder."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.parser

from onnx_migrate.process import current_workers

FAST = ("--no-verify", "--no-simplify")

SMALL = """<ir_version: 6, opset_import: ["": 11]>
g (float[1,3,8,8] x) => (float[1,3,16,16] y) <
    float[3,1,1,1] w = {0.5, -2.0, 3.0},
    float[8] roi = {0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0},
    float[4] scales = {1.0, 1.0, 2.0, 2.0}
> {
    c = Conv <group = 3> (x, w)
    y = Resize <
        mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"
    > (c, roi, scales)
}"""


@dataclass(frozen=True)
class Ended:
    """Exit code, stdout and stderr of a command."""

    code: int
    out: str
    err: str


def large() -> onnx.ModelProto:
    """Return the small model with a weight too large to be kept in the structure."""
    proto = onnx.parser.parse_model(SMALL)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(5000, dtype=np.float32), "k"))
    proto.graph.node.append(onnx.helper.make_node("ReduceSum", ["k"], ["s"], keepdims=0))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, []))
    return proto


Run = Callable[..., Ended]
Raw = Callable[..., subprocess.CompletedProcess[bytes]]


def opset_of(path: Path) -> int:
    """Return the ai.onnx opset of a model in a file."""
    return int(onnx.load(path).opset_import[0].version)


def first_dims(path: Path) -> list[int | str]:
    """Return the dims of the only input of a model in a file."""
    (value,) = onnx.load(path).graph.input
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def leftovers(folder: Path) -> list[str]:
    """Return the temporary files that are left, but those of kept children and what importing ONNX Runtime creates."""
    current_workers().clear()
    return sorted(path.name for path in (folder.parent / "tmp").iterdir() if path.name != ".ses")


def no_file_larger_than(size: int) -> list[str]:
    """Return the start of a command line that runs the rest where no file can have more than so many bytes."""
    script = "import os, resource, sys; _, command, *args = sys.argv; "
    script += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY)); "
    return [sys.executable, "-c", f"{script}os.execv(command, [command, *args])"]


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds; fail if it does not within so many seconds."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)
