"""What a runtime may be off, and its own types and shapes."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare.tolerance import Tolerance
from onnx_migrate.verify.evaluators.foreign import TITLES
from onnx_migrate.verify.other_runtimes.rounding import FLOORS, in_form_of, tolerance_of


def test_every_runtime_has_a_figure():
    assert set(TITLES) <= set(FLOORS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([1, 2], np.int32), np.array([1, 2])),
        (np.array([1.0, 0.0], np.float32), np.array([True, False])),
        (np.array([1, 0], np.uint8), np.array([True, False])),
        (np.array([1.5], np.float32), np.array([1.5])),
        (np.array([3.0], np.float32), np.array([3])),
    ],
)
def test_numbers_in_another_type_are_the_same_numbers(value, expected):
    found, notes = in_form_of({"y": value}, {"y": expected}, loses_axes=False)
    assert found["y"].dtype == expected.dtype
    assert found["y"].tolist() == expected.tolist()
    assert notes == [f"'y' is of {value.dtype} in place of {expected.dtype}"]


@pytest.mark.parametrize("value", [np.array([1.5], np.float32), np.array([np.nan], np.float32)])
def test_fractions_are_no_integers(value):
    found, notes = in_form_of({"y": value}, {"y": np.array([1])}, loses_axes=False)
    assert found["y"].dtype == np.float32
    assert notes == []


def test_axes_of_one_are_given_back_where_a_runtime_loses_them():
    value, expected = np.ones((1, 3), np.float32), np.ones(3, np.float32)
    assert in_form_of({"y": value}, {"y": expected}, loses_axes=False)[0]["y"].shape == (1, 3)
    found, notes = in_form_of({"y": value}, {"y": expected}, loses_axes=True)
    assert found["y"].shape == (3,)
    assert notes == ["'y' has the shape [1, 3] in place of [3]"]
    other = in_form_of({"y": np.ones((3, 2))}, {"y": np.ones((2, 3))}, loses_axes=True)[0]
    assert other["y"].shape == (3, 2)


def test_doubles_are_compared_as_floats_but_by_onnx_runtime():
    assert tolerance_of("tract", 2.0**-52, quantized=False, given=Tolerance()).eps == 2.0**-23
    assert tolerance_of("onnxruntime", 2.0**-52, quantized=False, given=Tolerance()).eps == 2.0**-52
    assert tolerance_of("tract", 2.0**-10, quantized=True, given=Tolerance()).quantum
