"""Sizes for open dims: where they go, in which order they are tried, and the shapes of inputs that follow."""

from __future__ import annotations

from onnx_migrate.verify.inputs.sizes import choice_after_crash, input_shapes, open_dims, size_choices
from tests.verify.harness import net, random_inputs


def shapes(text, index=0):
    return {name: value.shape for name, value in random_inputs(text, index).feed("normal").items()}


def test_one_symbol_has_one_size_and_unknown_dims_have_their_own():
    feed = shapes("(float[N,3,H,W] a, float[N,3,H,W] b) => (float[N,3,H,W] y) { y = Add (a, b) }")
    assert feed["a"] == feed["b"]
    assert len(set(feed["a"])) == 4
    model = net("(float[M,3,H,W] a) => (float[M,3,H,W] y) { y = Relu (a) }")
    for dim, name in zip(model.graph.input[0].type.tensor_type.shape.dim, ("-1", "3", "?", "?"), strict=True):
        dim.dim_param = name
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    shape = random_inputs(model).feed("normal")["a"].shape
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


CACHED = "(int64[N,T] ids, float[N,P,4] past, int64[N,S] mask) => (float[N,P,4] y) { y = Identity(past) }"


def shapes_of(model, **corrected):
    return input_shapes(model, None, size_choices(model)[0], corrected)


def test_a_dim_that_the_other_model_fixes_has_its_size():
    model = net("(float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Relu(x) }")
    other = net("(float[N,3,40,50] x) => (float[N,3,40,50] y) { y = Relu(x) }")
    assert input_shapes(model, other, size_choices(model)[0])["x"] == (2, 3, 40, 50)


def test_a_symbol_may_be_a_sum_of_others():
    model = net(CACHED)
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "P + T"
    found = shapes_of(model)
    assert found["mask"][1] == found["ids"][1] + found["past"][1]
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "P + other"
    assert shapes_of(model)["mask"][1] > 0


def test_a_declared_zero_is_a_length():
    model = net("(float[0,3] x, int64[N] i) => (float[0,3] y) { y = Relu(x) }")
    assert shapes_of(model) == {"x": (0, 3), "i": (2,)}


def test_corrected_sizes_change_nothing_else():
    model = net(CACHED)
    first = shapes_of(model)
    second = shapes_of(model, S=31)
    assert second["mask"] == (2, 31)
    assert (second["ids"], second["past"]) == (first["ids"], first["past"])


def test_open_dims_are_named_by_symbol_or_place():
    model = net("(float[N,4] a, float[N,M] b) => (float[N,4] y) { y = Relu(a) }")
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "?"
    assert open_dims(model, {"a": (2, 4), "b": (2, 9)}) == {"N": 2, "b[1]": 9}
