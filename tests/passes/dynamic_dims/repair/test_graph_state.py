"""Lengths are read from the shapes of values, each shape once."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim, Value, merged_axis
from onnx_migrate.passes.dynamic_dims.repair.graph_state import GraphState, Length, UnknownLength

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model
from tests.support.repairs import text

ASSIGNMENTS = Assignments.of({"N": 1, "H": 12}, {"N"}, 64)
N, H = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["H"])


@pytest.fixture
def state() -> tuple[GraphState, Rewriter]:
    source = Model(model(text("float[1,12] x", "float[1,12] y", "y = Relu(x)")))
    (scope,) = scopes(source.proto, source.weights, result_ir_version=8)
    graph = GraphState(scope, ASSIGNMENTS)
    graph.record("x", Value(1, (N, H)))
    return graph, Rewriter(source.proto.graph.node[0], scope, 17, 17, Where())


def test_a_length_is_read_from_an_axis_or_computed_from_one(state: tuple[GraphState, Rewriter]) -> None:
    graph, _ = state
    half = Dim(tuple(size // 2 for size in H.sizes))
    more = Dim(tuple(size + 1 for size in H.sizes))
    both = merged_axis([N, H])

    assert graph.lengths(H) == [Length("x", 1)]
    assert graph.lengths(half) == [Length("x", 1, divisor=2)]
    assert graph.lengths(more) == [Length("x", 1, offset=1)]
    assert graph.lengths(Dim(tuple(3 * size for size in H.sizes))) == [Length("x", 1, multiplier=3)]
    assert graph.lengths(both) == [Length("x", 0), Length("x", 1)]
    with pytest.raises(UnknownLength):
        graph.lengths(Dim((7, 8, 10, 9)))


def test_the_shape_of_a_value_is_read_once_for_the_same_axes(state: tuple[GraphState, Rewriter]) -> None:
    graph, rw = state

    graph.emit_shape(rw, [N, 3, H])
    graph.emit_shape(rw, [H, 5])

    assert [node.op_type for node in rw.preceding] == [
        "Shape",
        "Gather",
        "Shape",
        "Gather",
        "Concat",
        "Concat",
    ]
