"""The first difference of two models: the nodes of both at which it lies, and why; across what simplifiers fuse and fold."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest

from onnx_migrate import migrate
from onnx_migrate.comparison import compare
from onnx_migrate.verdicts import FirstDifference
from onnx_migrate.verify.divergence.samples import sample_of
from onnx_migrate.verify.equivalence.counterparts import rename_values
from tests.harness import model
from tests.verify.equivalence.test_counterparts import NET, renamed


def first_difference(original: onnx.ModelProto, other: onnx.ModelProto) -> FirstDifference:
    """Return the first difference of two models that differ."""
    found = compare(original, other, isolated=False).first_difference
    assert found is not None
    return found


CHANGES = [
    ("{2.,2.,2.,2.}", "{2.,2.,2.,3.}", 3),
    ("alpha = 0.1", "alpha = 0.2", 5),
    ("c = Sigmoid", "c = Tanh", 2),
    ("g = Add", "g = Sub", 6),
    ("{0,1,2,3}", "{0,1,3,2}", 4),
]
"""Texts of `NET`, other texts, and the number of the node that they change."""


@pytest.mark.parametrize("other_names", [False, True], ids=["names", "renamed"])
@pytest.mark.parametrize(
    ("old", "new", "place"),
    CHANGES,
    ids=["weight", "attribute", "operator", "operator-of-two", "indices"],
)
def test_the_changed_node_is_named(old: str, new: str, place: int, other_names: bool) -> None:
    other = model(NET.replace(old, new))
    other = renamed(other) if other_names else other
    first = compare(model(NET), other, isolated=False).first_difference

    assert first is not None
    assert (first.original_node, first.node) == (f"n{place}", f"{'other_' if other_names else ''}n{place}")
    assert first.value == other.graph.node[place].output[0]
    assert first.original_value == model(NET).graph.node[place].output[0]


@pytest.mark.parametrize("other_names", [False, True], ids=["names", "renamed"])
@pytest.mark.parametrize(
    ("one", "two"), [*itertools.combinations(CHANGES, 2)], ids=lambda change: f"n{change[2]}"
)
def test_the_first_of_two_changed_nodes_is_named(
    one: tuple[str, str, int], two: tuple[str, str, int], other_names: bool
) -> None:
    other = model(NET.replace(*one[:2]).replace(*two[:2]))
    other = renamed(other) if other_names else other
    first = first_difference(model(NET), other)
    place = min(one[2], two[2])

    assert (first.original_node, first.node) == (f"n{place}", f"{'other_' if other_names else ''}n{place}")


BODIES = """<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2,4] x) => (float[2,4] y, float[2,4] z, float[2,4] u)
  <float half = {0.5}, float other = {0.6}, int64 n = {3}, bool yes = {1}, int8[4] w = {1, 2, 3, 4}, float s = {0.1}> {
  [main0] p = f.act (x)
  [main1] y = If (yes) <then_branch = t () => (float[2,4] a) { [in0] b = Mul (p, half) [in1] a = Tanh (b) },
                        else_branch = e () => (float[2,4] a) { [in2] a = Abs (p) }>
  [main2] z = Loop (n, yes, p) <body = l (int64 i, bool c, float[2,4] v) => (bool d, float[2,4] r) {
    [in3] d = Identity (c) [in4] q = Mul (v, half) [in5] r = Sub (q, x) }>
  [main3] k = DequantizeLinear (w, s) [main4] m = Div (p, k) [main5] u = Sub (m, x)
}
<opset_import: ["": 17], domain: "f"> act (p) => (q) { [fn0] s = Sigmoid (p) [fn1] q = Mul (p, s) }"""


@pytest.mark.parametrize("other_names", [False, True], ids=["names", "renamed"])
@pytest.mark.parametrize(
    ("old", "new", "node", "inside"),
    [
        ("[in0] b = Mul", "[in0] b = Add", 1, "Add 'in0' differs from Mul 'in0'"),
        ("b = Mul (p, half)", "b = Mul (p, other)", 1, "Mul 'in0' differs from Mul 'in0'"),
        ("[in5] r = Sub (q, x)", "[in5] r = Sub (x, q)", 2, "Sub 'in5' differs from Sub 'in5'"),
        ("[fn0] s = Sigmoid", "[fn0] s = Tanh", 0, "Tanh 'fn0' differs from Sigmoid 'fn0'"),
        ("float s = {0.1}", "float s = {0.2}", 3, ""),
        ("u = Sub (m, x)", "u = Sub (x, m)", 5, ""),
    ],
    ids=["branch", "outer constant", "body", "function", "node of constants", "swapped"],
)
def test_a_node_inside_of_the_changed_one_is_named(
    old: str, new: str, node: int, inside: str, other_names: bool
) -> None:
    original, other = onnx.parser.parse_model(BODIES), onnx.parser.parse_model(BODIES.replace(old, new))
    if other_names:
        rename_values(other.graph, {name: f"{name}_" for name in "pkm"} | {"half": "h", "s": "s_"})
    first = compare(original, other, isolated=False).first_difference

    assert first is not None
    assert (first.original_node, first.node) == (f"main{node}", f"main{node}")
    assert ("inside it" in " ".join(first.reasons)) == bool(inside)
    assert inside in " ".join(first.reasons)


BLOCK = """17 (float[1,4,6,6] x) => (float[1,3,6,6] y) <float[4,4,1,1] w, float[4] s, float[4] b, float[4] m, float[4] v,
  float[3,4,1,1] w2> {
  [conv] c = Conv (x, w) [norm] n = BatchNormalization (c, s, b, m, v) [relu] r = Relu (n)
  [up] u = Resize <coordinate_transformation_mode = "half_pixel", mode = "linear"> (r, , scales)
  [last] l = Conv (u, w2) [soft] p = Softmax <axis = 1> (l) [end] y = Mul (p, l)
}"""


def block(**changed: np.ndarray) -> onnx.ModelProto:
    """Return a block of a network with fixed weights, some of them `changed`."""
    numbers = np.random.default_rng(0)
    arrays = {
        "w": numbers.normal(size=(4, 4, 1, 1)), "s": numbers.uniform(0.5, 2, 4), "b": numbers.normal(size=4),
        "m": numbers.normal(size=4), "v": numbers.uniform(0.5, 2, 4), "w2": numbers.normal(size=(3, 4, 1, 1)),
    }  # fmt: skip
    text = BLOCK.replace(
        "<float[4,4,1,1] w, float[4] s, float[4] b, float[4] m, float[4] v,\n  float[3,4,1,1] w2>",
        "<float[4] scales = {1.,1.,1.,1.}>",
    ).replace("(r, , scales)", "(r, , scales)")
    proto = model(text)
    for name, array in {**arrays, **changed}.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
    return proto


def _with(name: str, at: tuple[int, ...], by: float) -> dict[str, np.ndarray]:
    array = onnx.numpy_helper.to_array(
        next(tensor for tensor in block().graph.initializer if tensor.name == name)
    ).copy()
    array[at] += by
    return {name: array}


@pytest.mark.parametrize(
    ("changed", "node", "reason"),
    [
        (("w", (1, 2), 0.5), "conv", "in 1 of 16 elements, at [1, 2, 0, 0]"),
        (("s", (3,), 0.5), "norm", "in 1 channel of 4, first in channel 3: the scale or variance differs"),
        (("b", (2,), 0.5), "norm", "bias with BatchNormalization 'norm' folded in differs in 1 of 4 elements, at [2]"),
        (("w2", (0, 1), 0.5), "last", "weight 'w2' differs in 1 of 12 elements, at [0, 1, 0, 0]"),
    ],
    ids=["weight", "scale", "shift", "later weight"],
)  # fmt: skip
@pytest.mark.parametrize("swapped", [False, True])
def test_a_weight_is_named_though_a_normalisation_was_folded_into_it(
    changed: tuple[str, tuple[int, ...], float], node: str, reason: str, swapped: bool
) -> None:
    simplified = migrate(block(**_with(*changed))).model
    assert "BatchNormalization" not in {item.op_type for item in simplified.graph.node}
    found = first_difference(*((simplified, block()) if swapped else (block(), simplified)))

    if not swapped:
        assert found.original_node == node
    assert any(reason in text for text in found.reasons) or swapped
    assert any(repr(node) in name for name in (found.nodes if swapped else found.original_nodes))


def test_an_operator_inside_a_fused_node_is_named() -> None:
    fused = block()
    for item in fused.graph.node:
        if item.name == "relu":
            item.op_type = "Softplus"
    found = first_difference(block(), migrate(fused).model)

    assert (found.original_node, found.reasons) == (
        "relu",
        ("Relu in the original, Softplus in the second model",),
    )


def test_a_value_that_only_one_model_has_is_not_blamed() -> None:
    """The second model computes Sigmoid with Neg, Exp, Add and Reciprocal, which is no fault; the fault is behind it."""
    original = model(
        "17 (float[4] x) => (float[4] y) { [n0] a = Sigmoid (x) [n1] b = Sin (a) [n2] y = Abs (b) }"
    )
    other = model(
        "17 (float[4] x) => (float[4] y) <float one = {1.}> { [m0] p = Neg (x) [m1] q = Exp (p) [m2] r = Add (q, one)"
        " [m3] s = Reciprocal (r) [m4] t = Cos (s) [m5] y = Abs (t) }"
    )
    found = first_difference(original, other)

    assert (found.original_node, found.node, found.agreed) == ("n1", "m4", ("a",))


def test_of_two_faults_the_first_is_named() -> None:
    text = "17 (float[4] x) => (float[4] y) { [n0] a = Sin (x) [n1] b = Tanh (a) [n2] c = Sigmoid (b) [n3] y = Exp (c) }"
    other = text.replace("a = Sin", "a = Cos").replace("y = Exp", "y = Neg")

    assert first_difference(model(text), model(other)).original_node == "n0"


def test_a_second_model_with_another_node_says_so() -> None:
    other = model(NET.replace("[n2] c = Sigmoid (b)", "[n2] c0 = Sigmoid (b) [more] c = Neg (c0)"))
    found = first_difference(model(NET), other)

    assert (found.node, found.reasons) == ("more", ("the original has no Neg here",))
    assert str(found).endswith("(in the second model: Neg 'more' + Mul 'n3')")


def test_inputs_in_another_order_are_named() -> None:
    text = "17 (float[4] x, float[4] z) => (float[8] y) { [n0] a = Sin (x) [n1] b = Exp (z) [n2] y = Concat <axis = 0> (a, b) }"
    found = first_difference(model(text), model(text.replace("(a, b)", "(b, a)")))

    assert found.original_node == "n2"
    assert "reads the same values in another order" in found.reasons[0]


def test_two_models_that_agree_have_no_first_difference() -> None:
    assert compare(model(NET), renamed(model(NET)), isolated=False).first_difference is None


def test_models_without_a_common_value_say_what_to_do() -> None:
    original = model(
        "17 (float[4] x) => (float[1] y) { a = Sin (x) b = Exp (a) y = ReduceSum <keepdims = 0> (b) }"
    )
    other = model("17 (float[4] x) => (float[1] y) { y = ReduceMax <keepdims = 0> (x) }")
    original.graph.output[0].type.tensor_type.shape.ClearField("dim")
    other.graph.output[0].type.tensor_type.shape.ClearField("dim")
    found = first_difference(original, other)

    assert "--no-simplify" in found.problem


@pytest.mark.parametrize(
    "text",
    [
        "17 (float[4] x) => (seq(float[4]) y) { [n0] a = Sin (x) [n1] b = Exp (a) y = SequenceConstruct (b, a) }",
        "17 (float[4] x) => (int64[4] y) { [n0] a = Sin (x) [n1] b = Exp (a) y = Cast <to = 7> (b) }",
        "17 (float[4] x) => (float[4] y) { [n1] y = Exp (x) }",
    ],
    ids=["sequence", "integers", "one node"],
)  # fmt: skip
def test_the_output_may_have_any_type(text: str) -> None:
    other = text.replace("Exp", "Abs")

    assert first_difference(model(text), model(other)).original_node == "n1"


def test_texts_that_differ_have_other_samples() -> None:
    one, two = (sample_of(np.array(texts, object)) for texts in (["a", "b"], ["a", "c"]))

    assert one is not None
    assert two is not None
    assert (one.error(one), one.error(two)) == (0.0, 1.0)


def test_operators_of_integers_are_named() -> None:
    text = "17 (float[4] x) => (int64[1] y) { [n0] y = ArgMax (x) }"

    assert first_difference(model(text), model(text.replace("ArgMax", "ArgMin"))).reasons == (
        "ArgMax in the original, ArgMin in the second model",
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_an_attribute_that_became_an_input_is_compared_with_it(swapped: bool) -> None:
    old = model("11 (float[2,3,4] x) => (float[2,1,4] y) { [n0] y = ReduceMean <axes = [1]> (x) }")
    new = model(
        "18 (float[2,3,4] x) => (float[2,1,4] y) <int64[2] a = {0, 1}> { [n0] y = ReduceMean (x, a) }"
    )
    new.graph.output[0].type.tensor_type.ClearField("shape")
    old.graph.output[0].type.tensor_type.ClearField("shape")
    found = first_difference(*((new, old) if swapped else (old, new)))

    assert found.reasons == ("axes: [0, 1] → [1]" if swapped else "axes: [1] → [0, 1]",)


def test_reasons_have_the_order_of_the_inputs() -> None:
    text = (
        "17 (float[1,2,4] x) => (float[1,2,2] y) <float[2,2,3] w = {1.,2.,3.,4.,5.,6.,7.,8.,9.,10.,11.,12.},"
        " float[2] b = {1.,2.}> { [n0] y = Conv (x, w, b) }"
    )
    other = text.replace("{1.,2.,3.", "{9.,2.,3.").replace("b = {1.,2.}", "b = {1.,5.}")

    assert [reason.split("'")[1] for reason in first_difference(model(text), model(other)).reasons] == [
        "w",
        "b",
    ]


@pytest.mark.parametrize(("weight", "other"), [("1e3", "9e2"), ("3e1", "2e1")], ids=["never", "small inputs"])
def test_a_fault_that_ordinary_inputs_do_not_show_is_found(weight: str, other: str) -> None:
    """Tanh gives 1 on ordinary inputs, whatever the weight is."""
    text = "17 (float[4] x) => (float[4] y) <float[4] w = {1,1,1,W}> { a = Abs (x) [n1] b = Mul (a, w) y = Tanh (b) }"
    text = text.replace("1,1,1", ",".join([weight] * 3))
    found = first_difference(model(text.replace("W", weight)), model(text.replace("W", other)))

    assert (found.original_node, len(found.reasons)) == ("n1", 1)


def test_a_random_node_is_named_and_not_what_stands_for_it() -> None:
    text = (
        "17 (float[9] x) => (float[9] y) { [n0] r = RandomUniformLike <high = 1.0> (x) [n1] y = Add (x, r) }"
    )
    found = first_difference(model(text), model(text.replace("1.0", "5.0")))

    assert (found.original_node, found.node, found.reasons) == ("n0", "n0", ("high: 1 → 5",))


def test_a_scale_that_one_model_lacks_is_named() -> None:
    """The second model's `b` has the numbers of the original's `a`, which do not belong to it."""
    text = "17 (float[4] x) => (float[4] y) <float[1] k = {2}> { [n0] a = Sin (x) [n1] b = Mul (a, k) [n2] y = Exp (b) }"
    other = model("17 (float[4] x) => (float[4] y) { [m1] b = Sin (x) [m2] y = Exp (b) }")

    assert "Mul 'n1'" in first_difference(model(text), other).original_nodes
