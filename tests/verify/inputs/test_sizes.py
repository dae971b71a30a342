"""Sizes for open dims: where they go, and in which order they are tried."""

from __future__ import annotations

from onnx_migrate.verify.inputs.generate import generate_feed
from onnx_migrate.verify.inputs.sizes import choice_after_crash, size_choices
from tests.verify.harness import net


def shapes(text, index=0):
    model = net(text)
    return {
        name: value.shape
        for name, value in generate_feed(model, None, size_choices(model)[index], "normal", 0).items()
    }


def test_one_symbol_has_one_size_and_unknown_dims_have_their_own():
    feed = shapes("(float[N,3,H,W] a, float[N,3,H,W] b) => (float[N,3,H,W] y) { y = Add (a, b) }")
    assert feed["a"] == feed["b"]
    assert len(set(feed["a"])) == 4
    model = net("(float[M,3,H,W] a) => (float[M,3,H,W] y) { y = Relu (a) }")
    for dim, name in zip(model.graph.input[0].type.tensor_type.shape.dim, ("-1", "3", "?", "?"), strict=True):
        dim.dim_param = name
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    shape = generate_feed(model, None, size_choices(model)[0], "normal", 0)["a"].shape
    assert shape[2] != shape[3]


def test_channels_lengths_and_recurrent_states_are_recognised_by_position():
    last = shapes("(float[N,H,W,3] x, float[2,M,5] h) => (float[N,H,W,3] y) { y = Relu (x) }")
    assert last == {"x": (2, 64, 96, 3), "h": (2, 2, 5)}
    first = shapes("(float[N,3,H,W] x, float[1,T,5] h) => (float[N,3,H,W] y) { y = Relu (x) }")
    assert (first["x"], first["h"][0::2]) == ((2, 3, 64, 96), (1, 5))


def test_every_length_is_tried_soon():
    choices = size_choices(net("(float[N,T] a, float[N,3,H,W] b) => (float[N,T] y) { y = Relu (a) }"))
    assert len(choices) == 64
    assert {choice.length for choice in choices} >= {7, 16, 1, 64, 128}
    assert {choice.batch for choice in choices[:10]} == {1, 2, 3}


def test_the_choice_after_a_crash_has_other_lengths():
    choices = size_choices(net("(float[N,T] a) => (float[N,T] y) { y = Relu (a) }"))
    index, seen = 0, []
    while index < len(choices):
        seen.append(choices[index].length)
        index = choice_after_crash(choices, index)
    assert len(seen) == len(set(seen))
    assert max(seen) == 16000


def test_nothing_open_is_one_choice():
    assert len(size_choices(net("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"))) == 1
