"""What probe.py calls right, run in this Python."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser

from tests.campaigns.runtimes.releases import run
from tests.campaigns.runtimes.sample import write_io

_MODEL = '<ir_version: 7, opset_import: ["": 13]> g (float[2] x) => (float[2] y) { y = Identity(x) }'


def test_what_lies_between_the_numbers_with_and_without_optimisation_is_right(tmp_path: Path) -> None:
    (tmp_path / "io").mkdir()
    expected, plain = np.float32([1, 2]), np.float32([1.1, 1.8])
    given = {"between": [1.05, 1.8], "beyond": [1.05, 1.7], "nan": [1, np.nan], "alone": [1.05, 2]}
    for name, values in given.items():
        onnx.save(onnx.parser.parse_model(_MODEL), tmp_path / f"{name}.onnx")
        feeds = {"x": np.float32(values)}
        write_io(tmp_path, name, feeds, [expected], ["y"], [] if name == "alone" else [plain])
    ended = run("onnxruntime", "here", tmp_path, given, sys.executable).ended
    assert ended == {"between": "right", "beyond": "wrong", "nan": "wrong", "alone": "wrong"}
