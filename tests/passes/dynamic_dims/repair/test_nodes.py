"""What a rule sees of a node, how it is evaluated, and how its operands are edited."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx_migrate.passes.dynamic_dims.repair.conflicts import batch_mixing, operand_conflict
from onnx_migrate.passes.dynamic_dims.repair.domain import (
    SAMPLES,
    Assignments,
    Dim,
    SampledValue,
    fixed,
    merged_axis,
)
from onnx_migrate.passes.dynamic_dims.repair.graph_state import GraphState, Length, UnknownLength
from onnx_migrate.passes.dynamic_dims.repair.hypotheses import Hypotheses
from onnx_migrate.passes.dynamic_dims.repair.interpreter import Coverage
from onnx_migrate.passes.dynamic_dims.repair.node_context import (
    BatchMixed,
    NodeContext,
    UnrepairableNode,
    lengths_value,
)
from onnx_migrate.passes.dynamic_dims.repair.node_evaluation import evaluate
from onnx_migrate.passes.dynamic_dims.repair.operand_edits import emit_range

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model, run
from tests.support.repairs import repaired, text

ASSIGNMENTS = Assignments.of({"N": 1, "T": 12}, {"N"}, 64)
N, T = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["T"])
IMPORTS = {"": 17}


def context_of(node: str, constants: str = "") -> NodeContext:
    """Return the context of a node that reads x, of shape [N, T], and constants."""
    source = Model(model(text("float[1,12] x", "float[p] y", node, constants)))
    (scope,) = scopes(source.proto, source.weights, result_ir_version=8)
    state = GraphState(scope, ASSIGNMENTS, imports=IMPORTS, ir_version=8)
    state.record("x", SampledValue(1, (N, T)))
    for tensor in source.proto.graph.initializer:
        array = source.weights.array(tensor)
        dims = tuple(map(fixed, array.shape))
        state.record(tensor.name, SampledValue(tensor.data_type, dims, (array,) * SAMPLES))
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
    context = context_of("y = Add(x, k)", "float[12] k = {1,2,4,3,5,6,7,8,9,10,11,12}")

    with pytest.raises(
        UnrepairableNode, match=r"'k' has 12 numbers for a length of 12 along axis 0"
    ) as caught:
        evaluate(context, set())
    assert caught.value.constant == "k"


def test_a_node_that_mixes_items_is_a_conflict_unless_it_is_tolerated() -> None:
    with pytest.raises(BatchMixed):
        evaluate(context_of("y = Softmax<axis=0>(x)"), set())

    (y,) = evaluate(context_of("y = Softmax<axis=0>(x)"), {"y"})

    assert y.dims == (N, T)


@pytest.mark.parametrize(("known", "problem"), [(True, "are for 12 input channels"), (False, "")])
def test_channels_are_held_against_weights_of_known_shape_alone(known: bool, problem: str) -> None:
    context = context_of("y = Conv(x, w)")
    if known:
        context.graph_state.record("w", SampledValue(1, (fixed(4), fixed(12))))
    context = replace(context, inputs=[context.graph_state.value(name) for name in ("x", "w")])

    assert (problem in operand_conflict(context)) if problem else not operand_conflict(context)


@pytest.mark.parametrize(
    ("node", "weights", "problem"),
    [
        ("y = Gemm(x, w)", (fixed(12), fixed(4)), "axis 1 of 'x' has the length T, and axis 0 of 'w'"),
        (
            "y = Gemm<transB=1>(x, w)",
            (fixed(4), fixed(12)),
            "axis 1 of 'x' has the length T, and axis 1 of 'w'",
        ),
        (
            "y = Gemm<transA=1>(x, w)",
            (fixed(1), fixed(4)),
            "axis 0 of 'x' has the length N, and axis 0 of 'w'",
        ),
        ("y = Gemm(x, w)", (T, fixed(4)), ""),
        ("y = Gemm<transA=1>(x, w)", (N, fixed(4)), ""),
        ("y = Gemm(x, w)", (None, fixed(4)), ""),
    ],
)
def test_what_a_gemm_sums_over_has_one_length(
    node: str, weights: tuple[Dim | None, ...], problem: str
) -> None:
    context = context_of(node)
    context = replace(context, inputs=[context.graph_state.value("x"), SampledValue(1, weights)])

    found = operand_conflict(context)

    assert problem in found
    assert bool(problem) == bool(found)


MIXING = [
    # node, rank of x, the axes across which it computes
    ("y = Relu(x)", 3, set()), ("y = Softmax<axis=1>(x)", 3, {1}), ("y = LogSoftmax(x)", 3, {2}), ("y = ArgMax(x)", 3, {0}),
    ("y, i = TopK(x, k)", 3, {2}), ("y = CumSum(x, k)", 3, {1}), ("y = ReduceSum(x, k)", 3, {1}),
    ("y = ReduceMax<axes=[0, -1]>(x)", 3, {0, 2}), ("y = ReduceMean(x)", 3, {0, 1, 2}),
    ("y = ReduceSum<noop_with_empty_axes=1>(x)", 3, set()), ("y = ReduceSum(x, unknown)", 3, set()),
    ("y = Conv(x, w)", 4, {1, 2, 3}), ("y = GlobalMaxPool(x)", 4, {1, 2, 3}),
    ("y = MeanVarianceNormalization(x)", 4, {0, 2, 3}), ("y = InstanceNormalization(x, s, b)", 4, {2, 3}),
    ("y = LayerNormalization<axis=1>(x, s)", 3, {1, 2}), ("y = LayerNormalization(x, s)", 3, {2}),
    ("y = GRU(x, w, r)", 3, {0, 2}), ("y = LSTM<layout=1>(x, w, r)", 3, {1, 2}), ("y = MatMul(x, w)", 3, {2}),
    ("y = Attention(x, w, r)", 4, {2, 3}), ("y = Gemm(x, w)", 2, {1}), ("y = Gemm<transA=1>(x, w)", 2, {0}),
]  # fmt: skip


@pytest.mark.parametrize(("node", "rank", "axes"), MIXING)
def test_the_axes_across_which_a_node_computes(node: str, rank: int, axes: set[int]) -> None:
    context, found = context_of(node, "int64[1] k = {1}"), set()
    for axis in range(rank):
        x = SampledValue(1, tuple(N if place == axis else fixed(4) for place in range(rank)))
        if f"across axis {axis} of 'x'" in batch_mixing(replace(context, inputs=[x, *context.inputs[1:]])):
            found.add(axis)
    assert found == axes


def test_a_squeeze_of_the_batch_becomes_a_reshape() -> None:
    context = context_of("y = Squeeze(x, k)", "int64[1] k = {0}")

    (y,) = evaluate(context, set())

    assert context.removed_batch
    assert y.dims is not None
    assert y.dims[0] is not None
    assert y.dims[0].flat_factors() == [N, T]


CONTEXT_ASSIGNMENTS = Assignments.of({"N": 1}, {"N"}, 64)


def test_a_change_holds_before_after_and_reason() -> None:
    source = text("float[1,4] x", "float[1,2,2] y", "y = Reshape(x, k)", "int64[3] k = {1, 2, 2}")

    _, log = repaired(source, {"x": {0: "N"}})

    (change,) = log.changes
    assert change.before.input[1] == "k"
    assert change.after is not None
    assert change.after.input[1] != "k"
    assert change.reason == "shape [1, 2, 2] → [0, 2, 2]: axis 0 is N"
    assert change.where.operator == "Reshape"


def test_the_value_of_a_vector_of_lengths() -> None:
    value = lengths_value([2, Dim(CONTEXT_ASSIGNMENTS.sizes["N"])])

    assert value.data is not None
    assert [array.tolist() for array in value.data[:2]] == [[2, 1], [2, 3]]
    assert lengths_value([2, 3]).constant() is not None


STATE_ASSIGNMENTS = Assignments.of({"N": 1, "H": 12}, {"N"}, 64)
STATE_N, H = Dim(STATE_ASSIGNMENTS.sizes["N"]), Dim(STATE_ASSIGNMENTS.sizes["H"])


@pytest.fixture
def state() -> tuple[GraphState, Rewriter]:
    source = Model(model(text("float[1,12] x", "float[1,12] y", "y = Relu(x)")))
    (scope,) = scopes(source.proto, source.weights, result_ir_version=8)
    graph = GraphState(scope, STATE_ASSIGNMENTS)
    graph.record("x", SampledValue(1, (STATE_N, H)))
    return graph, Rewriter(source.proto.graph.node[0], scope, 17, 17, Where())


def test_a_length_is_read_from_an_axis_or_computed_from_one(state: tuple[GraphState, Rewriter]) -> None:
    graph, _ = state
    half = Dim(tuple(size // 2 for size in H.sizes))
    more = Dim(tuple(size + 1 for size in H.sizes))
    both = merged_axis([STATE_N, H])

    assert graph.lengths(H) == [Length("x", 1)]
    assert graph.lengths(half) == [Length("x", 1, divisor=2)]
    assert graph.lengths(more) == [Length("x", 1, offset=1)]
    assert graph.lengths(Dim(tuple(3 * size for size in H.sizes))) == [Length("x", 1, multiplier=3)]
    assert graph.lengths(both) == [Length("x", 0), Length("x", 1)]
    with pytest.raises(UnknownLength):
        graph.lengths(Dim((7, 8, 10, 9)))


def test_the_shape_of_a_value_is_read_once_for_the_same_axes(state: tuple[GraphState, Rewriter]) -> None:
    graph, rw = state

    graph.emit_shape(rw, [STATE_N, 3, H])
    graph.emit_shape(rw, [H, 5])

    assert [node.op_type for node in rw.preceding] == [
        "Shape",
        "Gather",
        "Shape",
        "Gather",
        "Concat",
        "Concat",
    ]


JOIN = text(
    "float[2,3] x", "float[2,4] y", "y = Concat<axis=1>(x, k)", "float[2,1] k = {5, 5}",
)  # fmt: skip


def test_a_constant_with_equal_rows_is_expanded_to_the_batch() -> None:
    result, _ = repaired(JOIN, {"x": {0: "N"}})

    (y,) = run(result, {"x": np.zeros((7, 3), np.float32)})

    np.testing.assert_array_equal(y[:, 3], np.full(7, 5))


def test_a_constant_with_different_rows_is_refused() -> None:
    with pytest.raises(CannotMigrate, match="'k'"):
        repaired(JOIN.replace("{5, 5}", "{5, 6}"), {"x": {0: "N"}})


@pytest.mark.parametrize(("rank", "axis", "shape"), [(1, 0, (6,)), (3, 0, (6, 1, 1)), (3, 2, (1, 1, 6))])
def test_a_range_lies_along_one_axis(rank: int, axis: int, shape: tuple[int, ...]) -> None:
    source = Model(model(text("int64[p] x", "int64[p] y", "y = Relu(x)")))
    (scope,) = scopes(source.proto, source.weights, result_ir_version=8)
    rw = Rewriter(source.proto.graph.node[0], scope, 17, 17, Where())
    bounds = tuple(rw.constant(np.array(number, np.int64), "bound") for number in (0, 6, 1))

    name = emit_range(rw, bounds, rank, axis, hint="items", shape_hint="column")  # type: ignore[arg-type]

    graph = source.proto.graph
    output = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, None)
    proto = onnx.helper.make_model(
        onnx.helper.make_graph([*scope.leading_constants, *rw.preceding], "g", [], [output], graph.initializer),
        opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip
    np.testing.assert_array_equal(run(proto, {})[0], np.arange(6).reshape(shape))


COVERAGE_ASSIGNMENTS = Assignments.of({"N": 1, "H": 12}, {"N"}, 64)
COVERAGE_N, COVERAGE_H = Dim(COVERAGE_ASSIGNMENTS.sizes["N"]), Dim(COVERAGE_ASSIGNMENTS.sizes["H"])


def test_nodes_that_vary_with_the_batch_alone_do_not_count_as_varying() -> None:
    coverage = Coverage()

    coverage.count([SampledValue(1, (COVERAGE_N,))])
    coverage.count([SampledValue(1, (Dim(tuple(2 * size for size in COVERAGE_H.sizes)),))])

    assert coverage.varying == 1
