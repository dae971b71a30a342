"""Scales, sizes and regions that are inputs fit the image: ONNX Runtime runs on them."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.image_arguments import IMAGE_OPERATORS, columns_argument
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


CASES = [
    ("(float[2,5,8,8] x, int64[4] s) => (float[a,b,c,d] y) { y = Resize<mode = \"linear\">(x, , , s) }", (2, 5, 12, 12)),
    ("(float[1,1,8,8] x, int64[4] s) => (float[1,1,3,5] y) { y = Resize(x, , , s) }", (1, 1, 3, 5)),
    ("(float[2,3,8,8] x, float[4] s) => (float[a,b,c,d] y) { y = Resize<mode = \"cubic\">(x, , s) }", (2, 3, 16, 12)),
    ("""(float[1,1,8,8] x, float[8] r, int64[4] s) => (float[a,b,c,d] y) {
          y = Resize<mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize">(x, r, , s) }""",
     (1, 1, 12, 12)),
    ("(float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,4,4] y) { y = MaxUnpool<kernel_shape = [2,2], strides = [2,2]>(x, i) }",
     (1, 1, 4, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape"), CASES)
def test_models_run_on_what_is_generated(text, shape):
    model = net(text)
    assert model.graph.node[0].op_type in IMAGE_OPERATORS
    assert outputs(model, generate_feed(model, None, size_choices(model)[0], "normal", 0))["y"].shape == shape


def test_a_grid_has_the_batch_of_its_matrices():
    model = net("(float[3,2,3] t, int64[4] s) => (float[a,b,c,d] y) { y = AffineGrid(t, s) }", opset=20, ir=9)
    assert outputs(model, generate_feed(model, None, size_choices(model)[0], "normal", 0))["y"].shape[0] == 3
