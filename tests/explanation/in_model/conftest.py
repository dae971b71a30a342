"""Small models that raise errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest

Make = Callable[..., str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that writes a model of some nodes, and returns its path."""

    def write(
        nodes: str,
        opset: int = 11,
        ir: int = 6,
        inputs: str = "float[1,3,4,4] x",
        more: str = "",
        weights: str = "",
    ) -> str:
        text = f"""<ir_version: {ir}, opset_import: ["": {opset}{more}]>
        g ({inputs}) => (y) {weights} {{ {nodes} }}"""
        path = tmp_path / "m.onnx"
        onnx.save(onnx.parser.parse_model(text), path)
        return str(path)

    return write
