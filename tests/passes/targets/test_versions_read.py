"""Versions of operators in lists that were read: later ones that differ in element types are taken, and what is written fits."""

from __future__ import annotations

import pytest

import onnx_migrate
from onnx_migrate.standard.schema import newest_but_for_types
from tests.harness import model


@pytest.mark.parametrize(
    ("operator", "version", "newest"),
    [
        ("Relu", 6, 14),
        ("Exp", 6, 13),
        ("Softmax", 1, 1),
        ("Softmax", 11, 11),
        ("Gather", 1, 1),
        ("Squeeze", 11, 11),
    ],
)
def test_versions_that_differ_in_element_types(operator: str, version: int, newest: int) -> None:
    assert newest_but_for_types("", operator, version) == newest


def test_an_operator_stays_whose_list_has_an_older_version_of_another() -> None:
    source = """17 (float[1,8,16] x) => (float[1,8,16] y) <float[16] s = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}>
    { n = LayerNormalization (x, s) y = Relu (n) }"""

    found = onnx_migrate.migrate(model(source), runtime="qnn", verify="off").model

    assert [node.op_type for node in found.graph.node] == ["LayerNormalization", "Relu"]


def test_what_is_written_for_a_lacking_operator_bounds_the_opset() -> None:
    source = """24 (float[1,8,64] q) => (float[1,8,64] y) { y = Attention <q_num_heads = 4, kv_num_heads = 4> (q, q, q) }"""

    found = onnx_migrate.migrate(model(source), runtime="qnn", verify="off").model

    assert found.opset_import[0].version <= 20
    assert "Attention" not in {node.op_type for node in found.graph.node}
