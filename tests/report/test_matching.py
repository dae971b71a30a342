"""Nodes of two bodies are matched by name and operator, by structure, by node name, and by name alone, in this order."""

from __future__ import annotations

import onnx
from onnx import helper

from onnx_migrate.report.matching import attribute_key, match_nodes


def nodes(*texts: str) -> list[onnx.NodeProto]:
    """Return nodes from texts such as "y=Relu(x)" and "name:y=Relu(x)"."""
    found = []
    for text in texts:
        name, _, rest = text.rpartition(":")
        output, _, call = rest.partition("=")
        operator, _, inputs = call.rstrip(")").partition("(")
        found.append(helper.make_node(operator, inputs.split(","), [output], name=name))
    return found


def test_each_way_of_matching() -> None:
    before = nodes("a=Relu(x)", "b=Neg(a)", "n:c=Exp(b)", "d=Sin(c)")
    after = nodes("a=Relu(x)", "q=Neg(a)", "n:r=Exp(x)", "d=Cos(r)", "e=Tan(d)")

    found = match_nodes(before, after, {})

    assert found.partner == {0: 0, 1: 1, 2: 2, 3: 3}
    assert found.renamed == {"q": "b", "r": "c"}
    assert (found.old("q"), found.old("d")) == ("b", "d")


def test_values_renamed_outside_are_known_inside() -> None:
    found = match_nodes(nodes("b=Relu(w)"), nodes("c=Relu(v)"), {"v": "w"})

    assert found.partner == {0: 0}
    assert match_nodes(nodes("b=Relu(w)"), nodes("c=Relu(v)"), {}).partner == {}


def test_equal_nodes_are_matched_in_their_order() -> None:
    found = match_nodes(nodes("a=Relu(x)", "b=Relu(x)"), nodes("p=Relu(x)", "q=Relu(x)"), {})

    assert found.partner == {0: 0, 1: 1}


def test_the_key_of_an_attribute_is_its_value() -> None:
    one, other = (helper.make_tensor(name, 1, [1], [2.0]) for name in "ab")

    assert attribute_key(helper.make_attribute("t", one)) == attribute_key(helper.make_attribute("t", other))
    assert attribute_key(helper.make_attribute("t", 1)) != attribute_key(helper.make_attribute("t", 2))
