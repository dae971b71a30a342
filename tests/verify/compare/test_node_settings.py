"""Constants and attributes that differ are found, defaults included; what only one model has is not compared."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.compare.node_settings import NodeSettings
from tests.verify.harness import ULP, net

NORM = "(float[1,2,4] x) => (float[1,2,4] y) { y = InstanceNormalization (x, g, b) }"
ONE, ZERO = [1.0, 1.0], [0.0, 0.0]


def difference(before, after, read=("x", "g", "b")):
    return NodeSettings(before, after).difference("y", read)


def test_a_constant_that_differs_in_a_bit_is_named():
    before = net(NORM, g=ONE, b=ZERO)
    assert difference(before, before) == ""
    moved = net(NORM, g=[1.0, 1 + ULP], b=ZERO)
    assert "the constant 'g' differs" in difference(before, moved)
    assert difference(before, moved, read=["x"]) == "", "it is not read"


@pytest.mark.parametrize(("epsilon", "found"), [("0.00001", False), ("0.0001", True)])
def test_an_attribute_is_compared_with_the_default(epsilon, found):
    given = net(NORM.replace(" (x", f"<epsilon={epsilon}> (x"), g=ONE, b=ZERO)
    assert ("the attribute 'epsilon' is" in difference(net(NORM, g=ONE, b=ZERO), given)) is found


def test_attributes_of_another_operator_are_not_compared():
    one = "(float[2] x) => (float[2] y) { y = Elu<alpha=0.5> (x) }"
    assert difference(net(one), net(one.replace("Elu", "LeakyRelu").replace("0.5", "0.1"))) == ""
    assert "'alpha'" in difference(net(one), net(one.replace("0.5", "0.1")))
