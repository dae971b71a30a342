"""The verdict on a whole result: an output that was compared with nothing proves nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_migrate.verdicts import Comparison, Kind
from onnx_migrate.verify.kernel import Measurement, Observation, Tolerance, decide, decision, judge
from onnx_migrate.verify.kernel.decision import Coverage, coverage

X = np.linspace(-1, 1, 100, dtype=np.float32)


def covered(array, **measured):
    seen = Observation("y", array, array, Tolerance(), Measurement(**measured))
    return coverage(seen, judge(seen))


def entry(**fields):
    return Comparison("y", (1,), (1,), "float32", "float32", **fields)


def test_an_output_that_agrees_is_verified():
    assert decide([entry()], {"y": covered(X)}) == (Kind.VERIFIED, "")


@pytest.mark.parametrize("array", [X[:0], np.full(4, np.nan), None], ids=["empty", "NaN", "absent"])
def test_an_output_without_numbers_is_not_determined(array):
    kind, reason = decide([entry()], {"y": covered(array)})
    assert kind is Kind.UNVERIFIED
    assert "output 'y' was compared with nothing" in reason
    assert decide([entry()], {"y": covered(array) + covered(X)})[0] is Kind.VERIFIED, "another input has some"


@pytest.mark.parametrize(
    ("left_out", "kind"), [(50, Kind.VERIFIED), (51, Kind.UNVERIFIED), (96, Kind.UNVERIFIED)]
)
def test_half_of_an_output_must_be_compared(left_out, kind):
    assert decide([entry()], {"y": covered(X, undefined=np.arange(100) < left_out)})[0] is kind


def test_an_output_that_differs_decides_before_one_that_is_open():
    entries = [entry(doubt="open"), entry(problem="wrong")]
    assert decide(entries, {}) == (Kind.DIFFERS, "output 'y': wrong")
    assert decide(entries[:1], {"y": Coverage(1, 1.0)}) == (Kind.UNVERIFIED, "open")


def test_the_kernel_is_small_and_stands_alone():
    sources = [file.read_text() for file in Path(decision.__file__).parent.glob("*.py")]
    lines = [line.strip() for source in sources for line in source.splitlines()]
    assert sum(not line.startswith("#") for line in lines) <= 600
    imports = {
        line.split()[1]
        for source in sources
        for line in source.splitlines()
        if line.startswith(("import ", "from "))
    }
    outside = {name for name in imports if name.startswith("onnx_migrate") and ".verify.kernel" not in name}
    assert outside == {"onnx_migrate.verdicts"}
    assert {name for name in imports if not name.startswith("onnx_migrate")} <= {
        "__future__",
        "collections.abc",
        "dataclasses",
        "numpy",
        "typing",
    }
