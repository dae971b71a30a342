"""The options of a comparison, shared by two commands."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.cli.running import Run


@pytest.mark.parametrize(
    ("options", "code"), [([], 3), (["--rtol", "0.1", "--atol", "0.1"], 0)], ids=["default", "wide"]
)
def test_a_tolerance_decides_whether_models_agree(cli: Run, options: list[str], code: int) -> None:
    other = onnx.load("small.onnx")
    weights = other.graph.initializer[0]
    weights.CopyFrom(
        onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weights) * np.float32(1.001), "w")
    )
    onnx.save(other, "other.onnx")

    assert cli("verify", "small.onnx", "other.onnx", *options).code == code
