"""Each property is found where it holds, and what contradicts it is named, in sub-graphs and functions too."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.engine.model_properties import ModelProperty, is_readable, violation
from tests.harness import model

NESTED = """<ir_version: 8, opset_import: ["":17, "own": 1]>
g (bool c, float[2] x) => (float[2] y) {
    y = If (c) <
        then_branch = t () => (float[2] p) { [one] q = Relu(x)  [two] p = Neg(q) },
        else_branch = e () => (float[2] r) { [one] r = own.twice(x) }
    >
}
<domain: "own", opset_import: ["": 17]>
twice (a) => (b) { [one] m = Add(a, a)  [two] b = Identity(m) }"""

READABLE = [item for item in ModelProperty if is_readable(item)]


@pytest.fixture
def nested() -> onnx.ModelProto:
    return model(NESTED)


def test_a_good_model_has_all(nested: onnx.ModelProto) -> None:
    assert len(READABLE) == 3
    for item in ModelProperty:
        assert violation(item, nested) is None, item


def bodies_of(proto: onnx.ModelProto) -> list[onnx.GraphProto | onnx.FunctionProto]:
    return [proto.graph.node[0].attribute[0].g, proto.functions[0]]


@pytest.mark.parametrize("place", [0, 1])
def test_what_contradicts_is_named(place: int) -> None:
    for item, complaint in (
        (ModelProperty.SORTED, "is read before node 'one'"),
        (ModelProperty.UNIQUE_NODE_NAMES, "are called 'one'"),
        (ModelProperty.VALID_NODES, "NeverWas"),
    ):
        proto = model(NESTED)
        body = bodies_of(proto)[place]
        if item is ModelProperty.SORTED:
            nodes = list(body.node)
            del body.node[:]
            body.node.extend(reversed(nodes))
        elif item is ModelProperty.UNIQUE_NODE_NAMES:
            body.node[1].name = "one"
        else:
            body.node[1].op_type = "NeverWas"

        assert complaint in str(violation(item, proto))
        assert all(violation(other, proto) is None for other in READABLE if other is not item)


def test_unnamed_nodes_share_no_name(nested: onnx.ModelProto) -> None:
    for body in bodies_of(nested):
        for node in body.node:
            node.name = ""
    assert violation(ModelProperty.UNIQUE_NODE_NAMES, nested) is None
