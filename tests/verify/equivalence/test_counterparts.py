"""Values of two models that correspond, whatever they are called, and the first node that computes something else."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.comparison import compare
from onnx_migrate.verdicts import FirstDifference
from onnx_migrate.verify.equivalence.counterparts import Counterparts, rename_values
from tests.harness import model

NET = """17 (float[2,4] x) => (float[2,4] y)
  <float[4] w = {1.,2.,3.,4.}, float[4] v = {2.,2.,2.,2.}, int64[4] i = {0,1,2,3}> {
  [n0] a = Relu (x) [n1] b = Mul (a, w) [n2] c = Sigmoid (b) [n3] d = Mul (c, v) [n4] e = Gather <axis = 1> (d, i)
  [n5] f = LeakyRelu <alpha = 0.1> (x) [n6] g = Add (e, f) [n7] y = Add (g, a)
}"""


def renamed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of which no inner value, weight or node has the same name; some have those of others."""
    order = ["d", "c", "b", "a", "e2", "f2", "g2"]
    names = {**dict(zip("abcdefg", order, strict=True)), "w": "v", "v": "w", "i": "j"}
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    for node in copy.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        node.name = f"other_{node.name}"
    for tensor in copy.graph.initializer:
        tensor.name = names[tensor.name]
    return copy


@pytest.mark.parametrize("other_names", [False, True], ids=["names", "renamed"])
@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("{2.,2.,2.,2.}", "{2.,2.,2.,3.}", 3),
        ("alpha = 0.1", "alpha = 0.2", 5),
        ("c = Sigmoid", "c = Tanh", 2),
        ("g = Add", "g = Sub", 6),
        ("{0,1,2,3}", "{0,1,3,2}", 4),
    ],
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
    assert ("inside it" in first.problem) == bool(inside)
    assert inside in first.problem


def test_a_node_without_a_counterpart_is_said_to_have_none() -> None:
    other = model(NET.replace("[n2] c = Sigmoid (b)", "[n2] c0 = Sigmoid (b) [more] c = Neg (c0)"))
    first = compare(model(NET), other, isolated=False).first_difference

    assert first is not None
    assert (first.node, first.original_node, first.original_value) == ("more", "", "")
    assert str(first).endswith("'c' of 'more' (Neg), which has no counterpart in the original")


def test_a_value_gets_the_name_of_its_counterpart_and_no_other() -> None:
    found = Counterparts.of(renamed(model(NET)), model(NET))

    assert [node.output[0] for node in found.model.graph.node] == list("abcdefgy")
    assert found.own["a"] == "d"


def test_a_value_without_a_counterpart_takes_no_name_of_another() -> None:
    other = model("17 (float[2,4] x) => (float[2,4] y) { b = Exp (x) a = Log (b) y = Sqrt (a) }")
    found = Counterparts.of(
        other, model("17 (float[2,4] x) => (float[2,4] y) { a = Neg (x) b = Abs (a) y = Sin (b) }")
    )

    assert len({name for node in found.model.graph.node for name in node.output}) == 3


def test_two_models_that_agree_have_no_first_difference() -> None:
    assert compare(model(NET), renamed(model(NET)), isolated=False).first_difference is None


def test_it_is_said_in_words() -> None:
    text = str(FirstDifference((), "m", "Tanh", "c2", "", "n", "Sigmoid", "c"))

    assert text == "the first value that differs is 'c2' of 'm' (Tanh), 'c' of 'n' (Sigmoid) in the original"
