"""One node is repaired, inferred, and checked for conflicts."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.dynamic_dims.repair.domain import SAMPLES, Assignments, Dim, Value, fixed
from onnx_migrate.passes.dynamic_dims.repair.graph_state import GraphState
from onnx_migrate.passes.dynamic_dims.repair.hypotheses import Hypotheses
from onnx_migrate.passes.dynamic_dims.repair.node_context import BatchMixed, NodeContext, UnrepairableNode
from onnx_migrate.passes.dynamic_dims.repair.node_evaluation import evaluate

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model
from tests.support.repairs import text

ASSIGNMENTS = Assignments.of({"N": 1, "T": 12}, {"N"}, 64)
N, T = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["T"])
IMPORTS = {"": 17}


def context_of(node: str, constants: str = "") -> NodeContext:
    """Return the context of a node that reads x, of shape [N, T], and constants."""
    source = Model(model(text("float[1,12] x", "float[p] y", node, constants)))
    (scope,) = scopes(source.proto, source.weights, result_ir_version=8)
    state = GraphState(scope, ASSIGNMENTS, imports=IMPORTS, ir_version=8)
    state.record("x", Value(1, (N, T)))
    for tensor in source.proto.graph.initializer:
        array = source.weights.array(tensor)
        dims = tuple(map(fixed, array.shape))
        state.record(tensor.name, Value(tensor.data_type, dims, (array,) * SAMPLES))
    (proto,) = source.proto.graph.node
    where = Where(node="y", operator=proto.op_type)
    rw = Rewriter(proto, scope, 17, 17, where)
    return NodeContext(proto, rw, state, [state.value(name) for name in proto.input], Hypotheses(), where)


def test_a_node_that_is_right_at_all_sizes_is_not_edited() -> None:
    context = context_of("y = Relu(x)")

    (y,) = evaluate(context, set())

    assert y.dims == (N, T)
    assert not context.rw.edited


def test_values_of_emitted_nodes_are_recorded() -> None:
    context = context_of("y = Concat<axis=1>(x, k)", "float[1,2] k = {5, 6}")

    (y,) = evaluate(context, set())

    assert y.dims == (N, Dim(tuple(size + 2 for size in T.sizes)))
    written = [name for node in context.rw.preceding for name in node.output]
    assert written
    assert all(context.graph_state.value(name).dtype for name in written)


def test_an_operand_of_fixed_length_is_a_conflict_that_names_it() -> None:
    context = context_of("y = Add(x, k)", "float[12] k = {1,2,3,4,5,6,7,8,9,10,11,12}")

    with pytest.raises(UnrepairableNode, match=r"axis 0 of .*'k' has the fixed length 12") as caught:
        evaluate(context, set())
    assert caught.value.constant == "k"


def test_a_node_that_mixes_items_is_a_conflict_unless_it_is_tolerated() -> None:
    with pytest.raises(BatchMixed):
        evaluate(context_of("y = Softmax<axis=0>(x)"), set())

    (y,) = evaluate(context_of("y = Softmax<axis=0>(x)"), {"y"})

    assert y.dims == (N, T)


def test_a_squeeze_of_the_batch_becomes_a_reshape() -> None:
    context = context_of("y = Squeeze(x, k)", "int64[1] k = {0}")

    (y,) = evaluate(context, set())

    assert context.removed_batch
    assert y.dims is not None
    assert y.dims[0] is not None
    assert y.dims[0].flat_factors() == [N, T]
