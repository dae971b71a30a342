"""Fixtures of the tests of proofs in other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.verify import Runnable
from tests.verify.harness import Net, net


@pytest.fixture
def saved(tmp_path):
    """Return a function that writes a model with a doc string and returns it as a file to run."""

    def write(graph: Net, doc: str = "", **tensors: Any) -> Runnable:
        model = net(graph, **tensors)
        model.doc_string = doc
        path = Path(tmp_path, f"{len(list(tmp_path.glob('*.onnx')))}.onnx")
        onnx.save(model, path)
        return Runnable(path)

    return write


@pytest.fixture
def feed():
    """Return values for the input x of four columns."""
    return {"x": np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)}
