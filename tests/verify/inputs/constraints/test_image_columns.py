"""Arguments of Col2Im fit its columns."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.image_columns import columns_argument
from onnx_migrate.verify.inputs.generate import generate_feed
from onnx_migrate.verify.inputs.sizes import size_choices
from tests.verify.harness import net, outputs


@pytest.mark.parametrize(
    ("columns", "image", "attributes"),
    [
        ("1,5,5", "1,1,5,5", ""),
        ("1,9,4", "1,1,4,4", ""),
        ("2,12,6", "a,b,c,d", "<strides = [2, 2]>"),
        ("1,4,5", "1,1,6,6", "<dilations = [1, 5]>"),
    ],
)
def test_the_columns_fit(columns, image, attributes):
    text = f"(float[{columns}] x, int64[2] i, int64[2] b) => (float[{image}] y) {{ y = Col2Im{attributes}(x, i, b) }}"
    model = net(text, opset=18)
    feed = generate_feed(model, None, size_choices(model)[0], "normal", 0)
    assert outputs(model, feed)["y"].ndim == 4


def test_no_arguments_fit_a_shape_that_is_declared_wrongly():
    model = net(
        "(float[1,5,5] x, int64[2] i, int64[2] b) => (float[1,7,7,7] y) { y = Col2Im(x, i, b) }", opset=18
    )
    assert columns_argument(model.graph.node[0], 1, Facts(model)) is None
