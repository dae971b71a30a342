"""What is known of a model before it runs."""

from __future__ import annotations

import onnx

from onnx_migrate.verify.model_traits import contains_resize, dependents, is_random, random_outputs
from tests.verify.harness import net


def test_only_outputs_that_depend_on_a_random_operator_are_random():
    text = "(float[4] x) => (float[4] y, float[4] z) { r = RandomNormalLike(x) y = Add(x, r) z = Relu(x) }"
    assert random_outputs(net(text)) == {"y": "RandomNormalLike"}
    assert is_random(net(text))
    assert not is_random(net("(float[4] x) => (float[4] y) { y = Relu(x) }"))


def test_random_operators_inside_branches_and_functions_count():
    branch = """(float[4] x, bool c) => (float[4] y) { y = If(c) <
        then_branch = t () => (float[4] a) { a = RandomUniformLike(x) },
        else_branch = e () => (float[4] b) { b = Identity(x) }> }"""
    assert random_outputs(net(branch)) == {"y": "RandomUniformLike"}
    function = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "d" : 1]>
        g (float[4] x) => (float[4] y, float[4] z) { y = d.noise(x) z = Relu(x) }
        <domain: "d", opset_import: ["" : 17]> noise (u) => (v) { v = RandomNormalLike(u) }""")
    assert random_outputs(function) == {"y": "RandomNormalLike"}


def test_dropout_is_random_only_in_training_mode():
    text = "(float[4] x) => (float[4] y) <float r = {0.5}, bool t = {1}> { y = Dropout(x, r ARGUMENT) }"
    assert not is_random(net(text.replace("ARGUMENT", "")))
    assert is_random(net(text.replace("ARGUMENT", ", t")))


def test_values_read_by_a_branch_make_its_node_dependent():
    text = """(float[4] x, bool c) => (float[4] y) { a = Neg(x) k = Not(c) y = If(k) <
        then_branch = t () => (float[4] p) { p = Abs(a) },
        else_branch = e () => (float[4] q) { q = Identity(a) }> }"""
    assert dependents(net(text), {"x"}) == {"x", "a", "y"}
    assert dependents(net(text), set(), frozenset({1})) == {"k", "y"}


def test_a_resize_is_found_inside_a_branch():
    text = """(float[1,1,4,4] x, bool c) => (float[1,1,8,8] y) <float[4] s = {1., 1., 2., 2.}> { y = If(c) <
        then_branch = t () => (float[1,1,8,8] p) { p = Resize(x, , s) },
        else_branch = e () => (float[1,1,8,8] q) { q = Resize(x, , s) }> }"""
    assert contains_resize(net(text))
    assert not contains_resize(net("(float[4] x) => (float[4] y) { y = Relu(x) }"))
