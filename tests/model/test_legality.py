"""Legality is checked in every body, at the opset that the body imports."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from onnx_migrate.errors import IllegalModel
from onnx_migrate.model.legality import check_legal
from tests.harness import model

BRANCH = """<ir_version: 8, opset_import: ["": 17]>
g (bool c, float[2] x) => (float[2] y) {
    y = If(c) <then_branch = t () => (float[2] p) { [inner] p = Relu(x) }, else_branch = e () => (float[2] q) { q = Neg(x) }>
}"""
FUNCTION = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (float[2] x) => (float[2] y) { y = f.Block(x) }
<domain: "f", opset_import: ["": 9]>
Block (a) => (b) { [inner] b = Clip <min = 0.0> (a) }"""


@pytest.mark.parametrize("text", [BRANCH, FUNCTION])
def test_a_valid_model_passes(text: str) -> None:
    check_legal(model(text))


def refused(proto: onnx.ModelProto, domain: str = "") -> IllegalModel:
    with pytest.raises(IllegalModel) as caught:
        check_legal(proto, domain)
    return caught.value


def test_a_node_of_a_branch_is_named_with_its_path() -> None:
    error = refused(model(BRANCH.replace("Relu(x)", "Relu <slope = 1.0> (x)")))

    assert error.where is not None
    assert (error.where.scope, error.where.node) == ("graph/y:then_branch", "inner")
    assert "has an attribute 'slope'" in str(error)


def test_a_function_is_checked_at_its_own_opset() -> None:
    error = refused(model(FUNCTION.replace('["": 9]', '["": 11]')))  # from 11 on `min` is an input

    assert error.where is not None
    assert error.where.scope == "function f:Block"


def test_a_node_newer_than_the_opset_and_a_body_without_an_import() -> None:
    assert "is not an operator of opset 11" in str(
        refused(
            model('<ir_version: 8, opset_import: ["": 11]> g (float[2] x) => (float[2] y) { y = Celu(x) }')
        )
    )
    assert "does not import ai.onnx" in str(
        refused(model(FUNCTION.replace('["": 17, "f": 1]', '["f": 1]').replace("f.Block(x)", "Relu(x)")))
    )


def test_other_domains_are_checked_on_request() -> None:
    node = helper.make_node("Scaler", ["x", "z"], ["y"], domain="ai.onnx.ml")
    values = [helper.make_tensor_value_info(name, 1, [2]) for name in "xzy"]
    proto = helper.make_model(
        helper.make_graph([node], "g", values[:2], values[2:]),
        opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)],
        ir_version=8,
    )

    check_legal(proto)
    assert "has 2 inputs" in str(refused(proto, "ai.onnx.ml"))
