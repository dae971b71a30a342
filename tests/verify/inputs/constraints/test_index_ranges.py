"""Indices, labels and lengths stay inside what they index."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.index_ranges import index_range
from tests.verify.harness import net

FACTS = Facts(
    net(
        "(float[4,9] data, float[5,4,9] x, int64[3,2] pairs, float[3,4,5] other) => (float[4,9] y) { y = Relu(data) }"
    )
)


def accepted(operator, inputs, index=1, domain="", **attributes):
    found = index_range(
        onnx.helper.make_node(operator, inputs, ["y"], domain=domain, **attributes), index, FACTS
    )
    return None if found is None else (found.low, found.high)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "high"),
    [
        ("Gather", ["data", "i"], {}, 3),
        ("Gather", ["data", "i"], {"axis": 1}, 8),
        ("GatherElements", ["data", "i"], {"axis": -1}, 8),
        ("GatherND", ["data", "pairs"], {}, 3),
        ("GatherND", ["x", "pairs"], {"batch_dims": 1}, 3),
        ("ScatterND", ["x", "pairs", "u"], {}, 3),
        ("SoftmaxCrossEntropyLoss", ["data", "i"], {}, 8),
        ("NegativeLogLikelihoodLoss", ["x", "i"], {}, 3),
        ("MaxUnpool", ["data", "i"], {}, 35),
    ],
)
def test_indices_are_below_the_length_of_their_axis(operator, inputs, attributes, high):
    assert accepted(operator, inputs, **attributes) == (0, high)


def test_lengths_are_at_least_one():
    assert accepted("ReverseSequence", ["x", "n"], time_axis=1) == (1, 4)
    assert accepted("LSTM", ["x", "w", "r", "b", "n"], 4) == (1, 5)
    assert accepted("Attention", ["x", "other", "v", "", "", "", "n"], 6) == (1, 4)


def test_positions_depend_on_the_domain():
    assert accepted("RotaryEmbedding", ["x", "data", "data", "p"], 3) == (0, 3)
    assert accepted("RotaryEmbedding", ["other", "p", "x", "x"], 1, "com.microsoft") == (0, 1)


def test_indices_into_an_axis_of_unknown_length_are_a_guess():
    found = index_range(onnx.helper.make_node("Gather", ["unknown", "i"], ["y"]), 1, FACTS)
    assert found.weak
    assert accepted("Gather", ["data", "i"], 0) is None
