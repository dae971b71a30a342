"""Declared shapes: symbols, and outputs that are not as declared."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.dynamic.declared_shapes import (
    axes_with_symbol,
    batch_axes_of,
    common_first_axis,
    copies_of,
    inputs_with_sizes,
    item_of,
    shape_warnings,
    undeclared_shape,
)
from tests.verify.harness import net

MODEL = net("(float[N,3,H] x, float[N] z) => (float[N,H] y, float[A,2,A] t) { y = Relu(x) t = Relu(x) }")


def test_symbols_of_inputs_become_numbers():
    inputs = inputs_with_sizes(MODEL, {"N": 2}).graph.input
    assert [[d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in inputs] == [
        [2, 3, "H"],
        [2],
    ]
    assert axes_with_symbol(MODEL.graph.input[0], {"N", "H"}) == [0, 2]


def test_a_common_first_axis_is_one_that_every_input_has():
    assert common_first_axis(inputs_with_sizes(MODEL, {"N": 2})) == 2
    assert common_first_axis(MODEL) is None
    assert common_first_axis(net("(float[2] x, float[3] z) => (float[2] y) { y = Relu(x) }")) is None


def test_the_batch_axes_have_both_sizes_of_the_batch():
    assert batch_axes_of((2, 4, 2), (3, 4, 3), 2, 3) == [0, 2]
    assert batch_axes_of((2, 4), (3, 5), 2, 3) == [0]
    assert batch_axes_of((2, 4), (3,), 2, 3) == []


def shapes(y, t=(5, 2, 5)):
    return {"y": np.zeros(y), "t": np.zeros(t)}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (shapes((2, 7)), None),
        (shapes((2, 8)), "axis 1 of output 'y' is declared as H, which is 7 here, and has length 8"),
        (shapes((2, 7), (5, 3, 5)), "axis 1 of output 't' is declared as 2 and has length 3"),
        (
            shapes((2, 7), (5, 2, 6)),
            "axis 2 of output 't' is declared as A, which is 5 here, and has length 6",
        ),
        (shapes((2, 7, 1)), "output 'y' is declared with 2 axes and has 3"),
    ],
)
def test_outputs_have_the_shapes_declared(values, problem):
    found = undeclared_shape(MODEL, values, {"N": 2, "H": 7})
    assert (found and found[1]) == problem


def test_warnings_of_onnx_runtime_are_read():
    text = (
        "... [W] Expected shape from model of {1,4} does not match actual shape of {2,4} for output y\x1b[m\n"
    )
    assert shape_warnings(text) == {"y": ["{1,4}", "{2,4}"]}


def test_an_item_is_taken_from_every_batched_input():
    model = net("(float[N,2] x, float[3,N] h, float[4] w) => (float[N,2] y) { y = Relu(x) }")
    feed = {
        "x": np.arange(6.0).reshape(3, 2),
        "h": np.arange(9.0).reshape(3, 3),
        "w": np.arange(4.0),
    }
    item = item_of(model, feed, 1, {"N"})
    assert item["x"].tolist() == [[2, 3]]
    assert item["h"].tolist() == [[1], [4], [7]]
    assert item["w"] is feed["w"]


def test_copies_of_an_item_fill_every_batched_input():
    model = net("(float[N,2] x, float[3,N] h, float[4] w) => (float[N,2] y) { y = Relu(x) }")
    alone = {"x": np.array([[2.0, 3.0]]), "h": np.array([[1.0], [4.0], [7.0]]), "w": np.arange(4.0)}
    copies = copies_of(model, alone, 3, {"N"})
    assert copies["x"].tolist() == [[2, 3]] * 3
    assert copies["h"].tolist() == [[1] * 3, [4] * 3, [7] * 3]
    assert copies["w"] is alone["w"]


def test_an_output_is_held_to_its_expression():
    model = net("(float[N,3] x) => (float[A,3] y) { y = Concat<axis=0>(x, x) }")
    values = {"y": np.zeros((4, 3), np.float32)}
    declared = model.graph.output[0].type.tensor_type.shape.dim[0]
    declared.dim_param = "2*N"
    assert undeclared_shape(model, values, {"N": 2}) is None
    declared.dim_param = "3*N"
    assert undeclared_shape(model, values, {"N": 2}) == (
        "y",
        "axis 0 of output 'y' is declared as 3*N, which is 6 here, and has length 4",
    )
