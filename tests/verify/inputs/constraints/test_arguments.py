"""What operators accept of their inputs: indices, axes, shapes, scales and others, on which ONNX Runtime runs."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.verify.inputs.constraints.facts import Argument, Facts
from onnx_migrate.verify.inputs.constraints.operator_ranges import accepted_range, inputs_passed_through
from tests.verify.harness import net, outputs, random_inputs

FACTS = Facts(
    net(
        "(float[4,9] data, float[5,4,9] x, int64[3,2] pairs, float[3,4,5] other,"
        " int32[5] five, int32[6] six, int32[5,4] mask, float[5,3,6,2] past) => (float[4,9] y) { y = Relu(data) }"
    )
)


def node(operator, inputs, domain="", **attributes):
    return onnx.helper.make_node(operator, inputs, ["y"], domain=domain, **attributes)


def accepted(operator, index, inputs=("data",) * 3, domain="", **attributes):
    return accepted_range(Argument(node(operator, inputs, domain, **attributes), index, FACTS))


def ends(*given, **attributes):
    found = accepted(*given, **attributes)
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
    assert ends(operator, 1, inputs, **attributes) == (0, high)


@pytest.mark.parametrize(
    ("operator", "index", "inputs", "more", "found"),
    [
        ("ReverseSequence", 1, ["x", "n"], {"time_axis": 1}, (1, 4)),
        ("LSTM", 4, ["x", "w", "r", "b", "n"], {}, (1, 5)),
        ("Attention", 6, ["x", "other", "v", "", "", "", "n"], {}, (1, 4)),
        ("RotaryEmbedding", 3, ["x", "data", "data", "p"], {}, (0, 3)),
        ("GatherBlockQuantized", 1, ["data", "i"], {"domain": "com.microsoft", "gather_axis": 1}, (0, 8)),
        ("Gather", 0, ["data", "i"], {}, None),
    ],
)
def test_lengths_are_at_least_one(operator, index, inputs, more, found):
    assert ends(operator, index, inputs, **more) == found


@pytest.mark.parametrize(
    ("operator", "index", "inputs", "found"),
    [
        ("RotaryEmbedding", 1, "other p x x", (0, 1)),
        ("MRotaryEmbedding", 1, "other p data data", (0, 3)),
        ("EmbedLayerNormalization", 0, "i s data", (0, 3)),
        ("EmbedLayerNormalization", 1, "i s data data x", (0, 4)),
        ("EmbedLayerNormalization", 7, "i s data data x g b m", (0, 1)),
        ("EmbedLayerNormalization", 8, "i - data data - - - - p", (0, 3)),
        ("GatherBlockQuantized", 1, "data i s", (0, 3)),
        ("CropAndResize", 2, "x rois i", (0, 4)),
        ("Attention", 3, "x w b mask", (0, 1)),
        ("Attention", 3, "x w b five", (1, 4)),
        ("Attention", 3, "x w b five past", (1, 6)),
        ("Attention", 3, "other w b six", (0, 4)),
        ("QAttention", 5, "x w b s s five z z past", (1, 6)),
        ("MultiHeadAttention", 4, "x x x - five - past", (1, 10)),
        ("MultiHeadAttention", 8, "x x x - - - past past n", (0, 2)),
        ("MultiHeadAttention", 9, "x x x - - - past past n mask", (0, 3)),
        ("GroupQueryAttention", 5, "x x x past past n total", (9, 9)),
        ("GroupQueryAttention", 5, "x x x - - n total", (3, 3)),
        ("GroupQueryAttention", 6, "x x x past past n total", (10, 10)),
        ("GroupQueryAttention", 9, "x x x past past n total data data p", (0, 3)),
        ("DecoderMaskedMultiHeadAttention", 7, "x x x m b past past n", (0, 5)),
        ("DecoderMaskedMultiHeadAttention", 9, "x x x m b past past n w mask", (0, 3)),
    ],
)
def test_positions_lengths_and_masks_of_onnx_runtime_s_own_operators(operator, index, inputs, found):
    names = [item.strip("-") for item in inputs.split()]
    assert ends(operator, index, names, domain="com.microsoft") == found


def test_indices_into_an_axis_of_unknown_length_are_a_guess():
    assert accepted("Gather", 1, ["unknown", "i"]).weak


def test_only_restricting_inputs_have_a_range():
    for positive in (
        ("Sqrt", 0),
        ("Log", 0),
        ("BatchNormalization", 4),
        ("QuantizeLinear", 1),
        ("DequantizeLinear", 1),
    ):
        assert accepted(*positive, ["data"] * 5).low > 0
    assert ends("Bernoulli", 0) == (0, 1)
    assert accepted("Relu", 0) is None
    assert accepted("Dropout", 1).high < 1
    assert accepted("Mod", 1).discrete
    assert ends("BitShift", 1) == (0, 31)


def test_strings_are_numbers_where_they_are_cast_and_keys_where_they_are_looked_up():
    assert all(float(word) is not None for word in accepted("Cast", 0, to=1).words)
    assert accepted("Cast", 0, to=8) is None
    ml = ["data"], "ai.onnx.ml"
    assert accepted("LabelEncoder", 0, *ml, keys_strings=["a", "b"], values_int64s=[1, 2]).words == ("a", "b")
    numbers = accepted("LabelEncoder", 0, *ml, keys_int64s=[4, 9], values_int64s=[1, 2])
    assert (numbers.low, numbers.high, numbers.words) == (4, 9, ())


def test_elements_pass_through_some_inputs():
    assert list(inputs_passed_through(node("Concat", ["a", "b", "c"], axis=0))) == [0, 1, 2]
    assert tuple(inputs_passed_through(node("Where", ["c", "a", "b"]))) == (1, 2)
    assert tuple(inputs_passed_through(node("Reshape", ["x", "s"]))) == (0,)
    assert not tuple(inputs_passed_through(node("Relu", ["x"])))


def run(text, distribution="normal", **versions):
    model = net(text, **versions)
    return outputs(model, random_inputs(model).feed(distribution))["y"]


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
    ("(float[2,5,8,8] x, int64[4] s) => (float[a,b,c,d] y) { y = Resize<mode = \"linear\">(x, , , s) }", (2, 5, 12, 12)),
    ("(float[1,1,8,8] x, int64[4] s) => (float[1,1,3,5] y) { y = Resize(x, , , s) }", (1, 1, 3, 5)),
    ("(float[2,3,8,8] x, float[4] s) => (float[a,b,c,d] y) { y = Resize<mode = \"cubic\">(x, , s) }", (2, 3, 16, 12)),
    ("(float[2,3,8] x, float[3] s) => (float[a,b,c] y) { y = Resize(x, , s) }", (2, 6, 12)),
    ("""(float[1,1,8,8] x, float[8] r, int64[4] s) => (float[a,b,c,d] y) {
          y = Resize<mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize">(x, r, , s) }""",
     (1, 1, 12, 12)),
    ("(float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,4,4] y) { y = MaxUnpool<kernel_shape = [2,2], strides = [2,2]>(x, i) }",
     (1, 1, 4, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape"), CASES, ids=[text[text.index("{") + 2 : -2] for text, _ in CASES])
@pytest.mark.parametrize("distribution", ["normal", "wide"])
def test_models_run_on_what_is_generated(text, shape, distribution):
    found = run(text, distribution).shape
    assert shape in (None, found)


@pytest.mark.parametrize(
    ("columns", "image", "attributes"),
    [
        ("1,5,5", "1,1,5,5", ""),
        ("1,9,4", "1,1,4,4", ""),
        ("2,12,6", "a,b,c,d", "<strides = [2, 2]>"),
        ("1,4,5", "1,1,6,6", "<dilations = [1, 5]>"),
    ],
)
def test_an_image_and_its_blocks_fit_the_columns(columns, image, attributes):
    text = f"(float[{columns}] x, int64[2] i, int64[2] b) => (float[{image}] y) {{ y = Col2Im{attributes}(x, i, b) }}"
    assert run(text, opset=18).ndim == 4


def test_no_arguments_fit_a_shape_that_is_declared_wrongly():
    model = net(
        "(float[1,5,5] x, int64[2] i, int64[2] b) => (float[1,7,7,7] y) { y = Col2Im(x, i, b) }", opset=18
    )
    assert accepted_range(Argument(model.graph.node[0], 1, Facts(model))) is None


def test_a_grid_has_the_batch_of_its_matrices():
    text = "(float[3,2,3] t, int64[4] s) => (float[a,b,c,d] y) { y = AffineGrid(t, s) }"
    assert run(text, opset=20, ir=9).shape[0] == 3


def test_without_shapes_there_is_still_a_guess():
    model = net("(float x, int64 s) => (float y) { y = Reshape(x, s) z = Relu(x) }")
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    reshape, relu = model.graph.node
    assert accepted_range(Argument(reshape, 1, Facts(model))).pattern == (0,)
    assert accepted_range(Argument(relu, 0, Facts(model))) is None
