"""Shapes of inputs: symbols, expressions of symbols, and empty axes."""

from __future__ import annotations

from onnx_migrate.verify.inputs.input_shapes import input_shapes, open_dims
from onnx_migrate.verify.inputs.sizes import size_choices
from tests.verify.harness import net

CACHED = "(int64[N,T] ids, float[N,P,4] past, int64[N,S] mask) => (float[N,P,4] y) { y = Identity(past) }"


def shapes(model, **corrected):
    return input_shapes(model, None, size_choices(model)[0], corrected)


def test_a_dim_that_the_other_model_fixes_has_its_size():
    model = net("(float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Relu(x) }")
    other = net("(float[N,3,40,50] x) => (float[N,3,40,50] y) { y = Relu(x) }")
    assert input_shapes(model, other, size_choices(model)[0])["x"] == (2, 3, 40, 50)


def test_a_symbol_may_be_a_sum_of_others():
    model = net(CACHED)
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "P + T"
    found = shapes(model)
    assert found["mask"][1] == found["ids"][1] + found["past"][1]
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "P + other"
    assert shapes(model)["mask"][1] > 0


def test_a_declared_zero_is_a_length():
    model = net("(float[0,3] x, int64[N] i) => (float[0,3] y) { y = Relu(x) }")
    assert shapes(model) == {"x": (0, 3), "i": (2,)}


def test_corrected_sizes_change_nothing_else():
    model = net(CACHED)
    first = shapes(model)
    second = shapes(model, S=31)
    assert second["mask"] == (2, 31)
    assert (second["ids"], second["past"]) == (first["ids"], first["past"])


def test_open_dims_are_named_by_symbol_or_place():
    model = net("(float[N,4] a, float[N,M] b) => (float[N,4] y) { y = Relu(a) }")
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "?"
    assert open_dims(model, {"a": (2, 4), "b": (2, 9)}) == {"N": 2, "b[1]": 9}
