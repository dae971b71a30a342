"""Which outputs can show a difference."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare.informative import (
    bounded_outputs,
    is_informative,
    masked_outputs,
    uninformative_outputs,
)
from tests.verify.harness import net

RAMP = np.linspace(0, 1, 9, dtype=np.float32)


@pytest.mark.parametrize(
    "value",
    [
        np.full(9, 0.25, np.float32),
        np.float32([0.1, 0.1, np.nextafter(np.float32(0.1), np.float32(1))]),
        np.float32([0, 1, 1, 0]),
        np.full(3, np.nan, np.float32),
        np.zeros((0, 4), np.float32),
        np.array([3, 3]),
        None,
    ],
    ids=["constant", "constant but for rounding", "saturated", "nan", "empty", "one integer", "absent"],
)
def test_a_value_that_does_not_vary_is_uninformative(value):
    assert not is_informative([value, value])


def test_values_between_the_ends_or_distinct_integers_are_informative():
    assert is_informative([RAMP])
    assert is_informative([np.array([3, 4])])
    assert is_informative([[np.zeros(2, np.float32), RAMP]]), "one tensor of a sequence is enough"


def test_a_constant_that_changes_from_run_to_run_is_informative():
    one, other = np.full(4, 1.0, np.float32), np.full(4, 2.0, np.float32)
    assert not is_informative([one, one])
    assert is_informative([one, one, other])
    assert is_informative([one, one[:2]]), "another shape"


def test_uninformative_outputs_are_named_in_order():
    runs = [{"z": np.zeros(4), "x": RAMP, "a": np.ones(4)}] * 2
    assert uninformative_outputs(runs) == ["z", "a"]
    assert uninformative_outputs([]) == []


def test_elements_that_are_not_finite_do_not_count():
    assert not is_informative([np.float32([np.nan, 1, 1, np.inf])])
    assert is_informative([np.float32([np.nan, 1, 1.5, 2, -np.inf])])


def test_one_element_between_the_ends_of_a_large_array_is_enough():
    large = np.tile(np.float32([-1, 1]), 1 << 20)
    assert not is_informative([large])
    large[-5] = 0.5
    assert is_informative([large])


@pytest.mark.parametrize(
    ("body", "shows"),
    [
        ("a = Relu(x) y = Sigmoid(a)", {"y": "a"}),
        ("a = Relu(x) b = Softmax(a) c = ArgMax(b) y = Cast<to=1>(c)", {"y": "a"}),
        ("a = Relu(x) y = Identity(a)", {}),
        ("y = Sigmoid(x)", {}),
        ("a = Sigmoid(x) y = Relu(a)", {}),
    ],
    ids=["bounded", "discrete behind a cast", "transparent only", "of an input", "not last"],
)
def test_the_value_before_the_operators_that_mask_is_returned(body, shows):
    assert masked_outputs(net(f"(float[2,4] x) => (float[2,4] y) {{ {body} }}")) == shows


def test_outputs_of_bounded_operators_are_found():
    text = "(float[4] x) => (float[4] y, float[4] z, float[4] t) { y = Tanh(x) z = Relu(x) t = Neg(y) }"
    assert bounded_outputs(net(text)) == {"y"}
