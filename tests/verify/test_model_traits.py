"""What is known of a model before it runs."""

from __future__ import annotations

import onnx

from onnx_migrate.verify.model_traits import dependents, is_random, miscomputed_in_reference, random_outputs
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
    assert miscomputed_in_reference(net(text)) == "Resize"
    assert miscomputed_in_reference(net("(float[4] x) => (float[4] y) { y = Relu(x) }")) == ""


def test_old_versions_that_onnx_reference_does_not_have_are_found() -> None:
    text = "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <AXIS> (x) }"
    over_two_axes, over_the_last = text.replace("AXIS", "axis = 1"), text.replace("AXIS", "axis = -1")
    assert miscomputed_in_reference(net(over_two_axes, opset=11)) == "Softmax"
    assert miscomputed_in_reference(net(over_two_axes, opset=13)) == ""
    assert miscomputed_in_reference(net(over_the_last, opset=11)) == ""


def test_random_operators_of_functions_that_functions_call_count():
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 17, "d" : 1]>
        g (float[4] x) => (float[4] y, float[4] z) { y = d.outer(x) z = d.plain(x) }
        <domain: "d", opset_import: ["" : 17, "d" : 1]> outer (u) => (v) { v = d.middle(u) }
        <domain: "d", opset_import: ["" : 17, "d" : 1]> middle (u) => (v) { v = d.noise(u) }
        <domain: "d", opset_import: ["" : 17]> plain (u) => (v) { v = Relu(u) }
        <domain: "d", opset_import: ["" : 17]> noise (u) => (v) { v = RandomNormalLike(u) }""")
    assert random_outputs(model) == {"y": "RandomNormalLike"}


def test_what_a_loop_stacks_is_not_computed_in_reference():
    """It gives [5, 1] for five numbers."""
    body = """<body = b (int64 k, bool g, int64 i) => (bool h, int64 j, int64 c)
        { h = Identity(g) j = Identity(i) c = Identity(k) }>"""
    stacked = f"(int64 n, int64 z) => (int64[a] y) <bool t = {{1}}> {{ v, y = Loop {body} (n, t, z) }}"
    assert miscomputed_in_reference(net(stacked)) == "Loop"
    carried = stacked.replace("v, y =", "y =").replace(", int64 c)", ")").replace(" c = Identity(k)", "")
    assert miscomputed_in_reference(net(carried)) == ""
