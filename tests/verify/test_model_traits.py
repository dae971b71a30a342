"""What depends on what, what is random, and what takes its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_migrate.files import load
from onnx_migrate.model.weights import Weights
from onnx_migrate.verdicts import Kind
from onnx_migrate.verify import Runnable
from onnx_migrate.verify.evaluators import UNOPTIMIZED, open_model
from onnx_migrate.verify.model_traits import (
    dependents,
    is_random,
    miscomputed_in_reference,
    random_outputs,
    with_attribute_data,
    with_fixed_numbers,
)
from tests.support.skips import Elsewhere, skip_if
from tests.verify.harness import check, net, runnable, verdict


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
    training = text.replace("ARGUMENT", ", t")
    assert is_random(net(training))
    assert not is_random(net(training.replace("bool t = {1}", "bool t = {0}")))
    computed = training.replace("{ y =", "{ n = Not(t) y =").replace("r, t)", "r, n)")
    assert is_random(net(computed)), "the mode is computed"


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


DROPOUT = """(float[N,8] x) => (float[N,8] y, bool[N,8] m, float[N,8] z) <float r = {0.5}, bool t = {1}> {
    a = Abs(x) d, m = Dropout(a, r, t) y = Relu(d) z = Sigmoid(x) }"""

FORMS = {
    "RandomNormal": "r = RandomNormal<shape=[3,4], mean=7.0, scale=0.5>() y = Add(x, r)",
    "RandomUniform": "r = RandomUniform<shape=[3,4], low=7.0, high=8.0>() y = Add(x, r)",
    "RandomNormalLike": "r = RandomNormalLike(x) y = Mul(x, r)",
    "RandomUniformLike": "k = Cast<to=7>(x) r = RandomUniformLike<dtype=1>(k) y = Mul(x, r)",
    "Bernoulli": "p = Sigmoid(x) r = Bernoulli(p) y = Mul(x, r)",
    "Multinomial": "r = Multinomial<sample_size=4>(x) f = Cast<to=1>(r) y = Add(x, f)",
}


def model(form):
    return f"(float[3,4] x) => (float[3,4] y) {{ {FORMS[form]} }}"


@pytest.mark.parametrize("form", FORMS)
def test_what_comes_after_a_random_operator_is_compared(form):
    found = check(model(form), model(form), Kind.VERIFIED)
    assert f"in place of random ones ({form}), on which these outputs depend: 'y'" in found.notes[-1]
    other = model(form).replace("y = Add(", "y = Sub(").replace("y = Mul(", "y = Div(")
    check(model(form), other, Kind.DIFFERS, "output 'y'")


@pytest.mark.parametrize("form", FORMS)
def test_the_fixed_numbers_have_type_and_shape_of_the_random_ones(form):
    source = net(model(form))
    source.graph.output.add().name = "r"
    x = {"x": np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)}
    random = Runnable(structure=source.SerializeToString())
    runs = [open_model(item, UNOPTIMIZED).run(x)["r"] for item in (random, *[with_fixed_numbers(random)] * 2)]
    assert runs[0].dtype == runs[1].dtype
    assert runs[0].shape == runs[1].shape
    np.testing.assert_array_equal(runs[1], runs[2])


def test_numbers_are_drawn_with_the_attributes_of_the_node():
    drawn = {}
    for form in ("RandomNormal", "RandomUniform"):
        source = net(model(form).replace("[3,4]", "[100,40]"))
        source.graph.output.add().name = "r"
        fixed = with_fixed_numbers(Runnable(structure=source.SerializeToString()))
        drawn[form] = open_model(fixed, UNOPTIMIZED).run({"x": np.zeros((100, 40), np.float32)})["r"]
    assert drawn["RandomNormal"].mean() == pytest.approx(7, abs=0.05)
    assert drawn["RandomNormal"].std() == pytest.approx(0.5, abs=0.05)
    assert drawn["RandomUniform"].min() == pytest.approx(7, abs=0.01)
    assert drawn["RandomUniform"].max() == pytest.approx(8, abs=0.01)


@pytest.mark.parametrize(
    ("old", "new"), [("a = Abs(x)", "a = Neg(x)"), ("y = Relu(d)", "y = Tanh(d)"), ("Sigmoid(x)", "Tanh(x)")]
)
def test_dropout_in_training_mode(old, new):
    found = check(DROPOUT, DROPOUT, Kind.VERIFIED, exact=net(DROPOUT))
    assert "(Dropout), on which these outputs depend: 'y', 'm'" in found.notes[-1]
    assert found.exact is True
    check(DROPOUT, DROPOUT.replace(old, new), Kind.DIFFERS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RandomNormalLike(x)", "RandomNormalLike<scale=30.0>(x)"),
        ("RandomNormalLike(x)", "RandomNormalLike<mean=1.0>(x)"),
        ("RandomNormalLike(x)", "RandomUniformLike(x)"),
        ("RandomNormalLike(x)", "Dropout(x, r, t)"),
        ("Dropout(x, r, t)", "Dropout(x, s, t)"),
        ("Dropout(x, r, t)", "Dropout(x, r, f)"),
        ("Dropout(x, r, t)", "Dropout(x, r)"),
        ("Dropout(x, r, t)", "Dropout(x, , t)"),
        ("RandomUniformLike<high=2.0>(x)", "RandomUniformLike(x)"),
        ("RandomUniform<shape=[3,8]>()", "RandomUniform<shape=[3,8], low=-1.0>()"),
        ("RandomUniform<shape=[3,8]>()", "RandomNormal<shape=[3,8]>()"),
    ],
)
def test_random_operators_of_another_distribution_differ(old, new):
    text = """(float[3,8] x) => (float[3,8] y) <float r = {0.9}, float s = {0.1}, bool t = {1}, bool f = {0}> {
        d = NODE y = Add(d, x) }"""
    same = check(text.replace("NODE", old), text.replace("NODE", old), Kind.VERIFIED)
    assert "in place of random ones" in same.notes[-1]
    one, other = net(text.replace("NODE", old)), net(text.replace("NODE", new))
    assert verdict(runnable(one), runnable(other)).kind is not Kind.VERIFIED


@pytest.mark.parametrize("opset", [12, 17])
def test_fixed_numbers_of_other_types_have_their_type(opset):
    text = "(double[3,8] x) => (double[3,8] y) { d = RandomNormalLike<scale=3.0, dtype=11>(x) y = Add(d, x) }"
    check(net(text, opset=opset), net(text, opset=opset), Kind.VERIFIED)


def test_a_dropout_that_is_not_in_training_mode_is_an_identity():
    text = """(float[3,8] x) => (float[3,8] y) <float r = {0.5}, bool f = {0}> {
        d = Dropout(x, r, f) y = Relu(d) }"""
    check(text, text.replace("Dropout(x, r, f)", "Identity(x)"), Kind.VERIFIED)


def test_a_result_that_is_no_longer_random_is_not_verified():
    check(DROPOUT, DROPOUT.replace("(a, r, t)", "(a, r)"), Kind.DIFFERS, "output 'y'")
    noisy = "(float[4] x) => (float[4] y) { r = RandomNormalLike(x) y = Add(x, r) }"
    check(noisy, noisy.replace("RandomNormalLike", "Cos"), Kind.UNVERIFIED, "'y' depends on random numbers")


def test_random_operators_in_branches_and_functions_are_replaced():
    branch = """(float[4] x, bool c) => (float[4] y) { y = If(c) <
        then_branch = t () => (float[4] a) { r = RandomUniformLike(x) a = Add(r, x) },
        else_branch = e () => (float[4] b) { b = Identity(x) }> }"""
    check(branch, branch, Kind.VERIFIED)
    check(branch, branch.replace("a = Add", "a = Sub"), Kind.DIFFERS)
    function = """<ir_version: 8, opset_import: ["" : 17, "d" : 1]>
        g (float[4] x) => (float[4] y) { y = d.noise(x) }
        <domain: "d", opset_import: ["" : 17]> noise (u) => (v) { r = RandomNormalLike(u) v = Add(r, u) }"""
    noisy = onnx.parser.parse_model(function)
    check(noisy, noisy, Kind.VERIFIED)
    check(noisy, onnx.parser.parse_model(function.replace("v = Add", "v = Sub")), Kind.DIFFERS)


@skip_if(onnx.defs.onnx_opset_version() < 22, "onnx is older", Elsewhere.NEWEST)
def test_the_result_itself_must_load_all_the_same():
    """With the random operator replaced it would load; ONNX Runtime has no kernel for it from opset 22 on."""
    text = model("RandomNormalLike")
    found = verdict(runnable(text), Runnable(structure=net(text, opset=22).SerializeToString()))
    assert found.load is not None
    assert found.load.operator == "RandomNormalLike"


def test_models_without_random_operators_are_kept():
    relu = "(float[4] x) => (float[4] y) { y = Relu(x) }"
    assert with_fixed_numbers(runnable(relu)).proto() == net(relu)


def test_a_model_as_migrate_gives_it_is_compared(tmp_path):
    """It has Weights, which finds external data."""
    onnx.save(net(model("RandomNormalLike")), tmp_path / "m.onnx")
    source = load(tmp_path / "m.onnx")
    given = Runnable(structure=source.proto.SerializeToString(), weights=source.weights)
    assert verdict(given, given).kind is Kind.VERIFIED


def test_tensors_of_attributes_are_read_from_the_file(tmp_path: Path) -> None:
    """The thresholds of trees are needed to choose inputs; onnx cannot read them from a structure without its file."""
    values = onnx.numpy_helper.from_array(np.arange(2000, dtype=np.float32), "s")
    node = onnx.helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", nodes_splits=values)
    graph = onnx.helper.make_graph([node], "g", [], [])
    external = onnx.helper.make_model(graph)
    tensor = external.graph.node[0].attribute[0].t
    (tmp_path / "data").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="data")
    read = with_attribute_data(Runnable(structure=external.SerializeToString(), weights=Weights(tmp_path)))

    assert onnx.numpy_helper.to_array(read.graph.node[0].attribute[0].t)[7] == 7
    assert external.graph.node[0].attribute[0].t.data_location == onnx.TensorProto.EXTERNAL
