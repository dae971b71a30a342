"""Optional values and SplitToSequence."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.harness import check, lift

OPTIONAL = """<ir_version: 8, opset_import: ["": 15]>
    graph (float[2, 3] x) => (float[2, 3] y, bool has) {
        o = Optional (x)
        y = OptionalGetElement (o)
        has = OptionalHasElement (o)
    }"""


def test_optional() -> None:
    check(OPTIONAL, to=18)


def test_the_schema_of_version_28_which_no_runtime_runs() -> None:
    """Only the schema is checked: onnx.reference returns the element with another rank."""
    source = parser.parse_model(OPTIONAL)
    result, _ = lift(source, 28)
    assert result.graph.node == source.graph.node


@pytest.mark.parametrize("attributes", ["", "<axis = 1>", "<axis = -1, keepdims = 0>"])
@pytest.mark.parametrize("sizes", ["", ", sizes"])
def test_split_to_sequence(attributes: str, sizes: str) -> None:
    axis_length = "3" if not attributes else "4"
    given = "{1, 2}" if axis_length == "3" else "{1, 3}"
    source = f"""<ir_version: 6, opset_import: ["": 11]>
        graph (float[3, 4] x) => (seq(float) y) <int64[2] sizes = {given}>
        {{ y = SplitToSequence {attributes} (x{sizes}) }}"""
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}
    check(source, to=24, feeds=feeds)


def test_sequence_map() -> None:
    """SequenceMap has one version; the nodes of its body are lifted."""
    source = """<ir_version: 8, opset_import: ["": 17]>
        graph (float[4, 3] x) => (float[4, 1] y) {
            s = SplitToSequence (x)
            m = SequenceMap (s) <body = b (float[1, 3] e)
                => (float[1, 1] r) { r = ReduceMax <axes = [1]> (e) }>
            y = ConcatFromSequence <axis = 0> (m)
        }"""
    check(source, to=18)
