"""The verdict on a whole result: an output that was compared with nothing proves nothing."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verdicts import Comparison, Kind
from onnx_migrate.verify.kernel import Measurement, Observation, Tolerance, decide, judge
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
