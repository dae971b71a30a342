"""The models of onnx's own test cases for single operators, as the installed release makes them.

onnx runs each case as it makes it, and three quarters of that time are its pools, in loops of Python. Of what they give, a
model has the shape alone. A process of its own does this: in this one others may need the numbers.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.paths import ROOT

__all__ = ["onnx_cases"]


def onnx_cases() -> list[tuple[str, bytes]]:
    """Return the names and the models."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.campaigns.fuzz.onnx_cases"]
    made = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    found: list[tuple[str, bytes]] = pickle.loads(made)  # from our own process alone
    return found


def _nothing(
    padded: np.ndarray[Any, Any],
    x_shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    out_shape: Sequence[int],
    *_: object,
    **__: object,
) -> np.ndarray[Any, Any]:
    """Return zeros in the shape of a pool; the parameters are those of onnx's function."""
    return np.zeros([*x_shape[:2], *out_shape], padded.dtype)


def _main() -> None:
    from onnx.reference.ops import op_pool_common

    op_pool_common.pool = _nothing
    from onnx.backend.test.case.node import collect_testcases

    found = [(case.name, case.model.SerializeToString()) for case in collect_testcases(None) if case.model]
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    _main()
