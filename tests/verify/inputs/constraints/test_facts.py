"""Types, shapes at chosen sizes, and values that follow from them."""

from __future__ import annotations

from onnx_migrate.verify.inputs.constraints.facts import Facts
from tests.verify.harness import net

TEXT = "(float[N,4] x) => (float[N,4] y) { s = Shape(x) y = Reshape(x, s) }"


def test_shapes_and_what_follows_from_them_hold_at_the_given_sizes():
    facts = Facts(net(TEXT), {"x": (7, 4)})
    assert facts.static_shape("y") == (7, 4)
    assert facts.value("s").tolist() == [7, 4]
    assert facts.length("y", -2) == 7


def test_without_sizes_open_dims_are_unknown():
    facts = Facts(net(TEXT))
    assert facts.shape("y") == (None, 4)
    assert facts.static_shape("y") is None
    assert facts.value("s") is None
    assert facts.shape("nothing") is None


def test_constants_and_types_are_known():
    facts = Facts(
        net(
            "(float[2] x) => (float[2] y) { k = Constant<value_ints = [3, 5]>() y = Add(x, w) }", w=[1.0, 2.0]
        )
    )
    assert facts.value("k").tolist() == [3, 5]
    assert facts.value("w").tolist() == [1, 2]
    assert facts.element_type("y") == 1
    assert facts.element_type("k") == 7
