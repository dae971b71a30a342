"""Axes, shapes and sizes that are inputs fit the other inputs: ONNX Runtime runs on them."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.shape_arguments import shape_argument
from onnx_migrate.verify.inputs.generate import generate_feed
from onnx_migrate.verify.inputs.sizes import size_choices
from tests.verify.harness import net, outputs

CASES = [
    ("(float[2,3,4] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }", (2, 12)),
    ("(float[2,3] x, int64[4] s) => (float[a,b,c,d] y) { y = Reshape(x, s) }", (2, 3, 1, 1)),
    ("(float[2,3,4] x, int64[3] s) => (float[4,2,3] y) { y = Reshape(x, s) }", (4, 2, 3)),
    ("(float[2,3,4] x, int64[2] a) => (float[p,q,r,s,t] y) { y = Unsqueeze(x, a) }", (1, 1, 2, 3, 4)),
    ("(float[2,1,4,1] x, int64[2] a) => (float[p,q] y) { y = Squeeze(x, a) }", (2, 4)),
    ("(float[2,3,4] x, int64[2] a) => (float[p,q,r] y) { y = ReduceSum(x, a) }", (1, 1, 4)),
    ("(float[4] x, int64[1] a) => (float[1] y) { y = CumSum(x, a) }", (4,)),
    ("(float[5,5] x, int64[2] b, int64[2] e, int64[2] a) => (float[p,q] y) { y = Slice(x, b, e, a) }", None),
    ("(float[2,3] x, int64[3] s) => (float[4,2,3] y) { y = Expand(x, s) }", (4, 2, 3)),
    ("(float[2,3] x, int64[2] s) => (float[2,9] y) { y = Tile(x, s) }", (2, 9)),
    ("(int64[2] s) => (float[3,5] y) { y = ConstantOfShape(s) }", (3, 5)),
    ("(float[7] x, int64[3] s) => (float[a] y, float[b] z, float[c] w) { y, z, w = Split(x, s) }", (2,)),
    ("(float[7] x, int64[2] s) => (float[2] y, float[5] z) { y, z = Split(x, s) }", (2,)),
    ("(float[1,3,8,8] x, int64[4] s) => (float[a,b,c,d] y) { y = Resize(x, , , s) }", (1, 3, 12, 12)),
    ("(float[2,2] x, int64[4] p) => (float[a,b] y) { y = Pad<mode = \"reflect\">(x, p) }", None),
    ("(float[2,8,1] x, int64 n) => (float[a,b,c] y) { y = DFT<axis = 1>(x, n) }", (2, 8, 2)),
    ("(float[1,32,1] x, int64 s, float[8] w, int64 n) => (float[a,b,c,d] y) { y = STFT(x, s, w, n) }", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape"), CASES, ids=[text[text.index("{") + 2 : -2] for text, _ in CASES])
@pytest.mark.parametrize("distribution", ["normal", "wide"])
def test_models_run_on_what_is_generated(text, shape, distribution):
    model = net(text)
    feed = generate_feed(model, None, size_choices(model)[0], distribution, 0)
    found = outputs(model, feed)["y"].shape
    assert shape in (None, found)


def test_without_shapes_there_is_still_a_guess():
    model = net("(float x, int64 s) => (float y) { y = Reshape(x, s) z = Relu(x) }")
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    reshape, relu = model.graph.node
    assert shape_argument(reshape, 1, Facts(model)).pattern == (0,)
    assert shape_argument(relu, 0, Facts(model)) is None
