"""Target shapes of Reshape, a batch that Squeeze removes, and the table of rules."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import defs, numpy_helper
from onnx_migrate.passes.dynamic_dims.repair.rule_table import _OF_CONSTANTS, RULES

from onnx_migrate.errors import CannotMigrate
from tests.harness import ONNX_NEWEST, SUPPORTED, model, run
from tests.steps import operators, refuses
from tests.support.repairs import check_items, repaired, text
from tests.support.skips import Elsewhere, skip_if


def shapes(proto: onnx.ModelProto) -> list[list[int]]:
    arrays = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in proto.graph.initializer}
    return [arrays.get(node.input[1], []) for node in proto.graph.node if node.op_type == "Reshape"]


@pytest.mark.parametrize(
    ("shape", "x", "y", "expected"),
    [
        ("1, -1, 4", "1,8,3", "1,6,4", [0, -1, 4]),
        ("1, 24", "1,8,3", "1,24", [0, 24]),
        ("1, 2, 4, 3", "1,8,3", "1,2,4,3", [0, 2, 4, 3]),
        ("-1, 24", "1,8,3", "1,24", [-1, 24]),
        ("0, 24", "1,8,3", "1,24", [0, 24]),
    ],
)
def test_a_batch_in_front_changes_as_little_as_possible(
    shape: str, x: str, y: str, expected: list[int]
) -> None:
    rank = shape.count(",") + 1
    source = text(
        f"float[{x}] x", f"float[{y}] y", "r = Reshape(x, k) y = Relu(r)", f"int64[{rank}] k = {{{shape}}}"
    )
    result, _ = check_items(source, {"x": 0}, [0])
    assert shapes(result) == [expected]


def test_a_batch_merged_into_heads_is_split_off_again() -> None:
    """[1, A, 4] goes through [A, 4] and back: rows of all items, then items again."""
    source = text(
        "float[1,6,4] x", "float[1,6,2] y", "a = Reshape(x, k) b = MatMul(a, w) y = Reshape(b, j)",
        "int64[2] k = {6, 4}, int64[3] j = {1, 6, 2}, float[4,2] w = {1,2,3,4,5,6,7,8}",
    )  # fmt: skip

    result, reasons = check_items(source, {"x": 0}, [0])

    assert shapes(result) == [[-1, 4], [-1, 6, 2]]
    assert "N × 6" in reasons[0]


def test_the_batch_is_merged_into_time_steps() -> None:
    """CRNN: [T, 1, C] → [T, C] → Gemm → [T, 1, K]. The items of one step are neighbours."""
    source = text(
        "float[5,1,4] x", "float[5,1,2] y", "a = Reshape(x, k) b = Gemm(a, w) y = Reshape(b, j)",
        "int64[2] k = {5, 4}, int64[3] j = {5, 1, 2}, float[4,2] w = {1,2,3,4,5,6,7,8}",
    )  # fmt: skip

    result, _ = check_items(source, {"x": 1}, [1])

    assert shapes(result) == [[-1, 4], [5, -1, 2]]


def test_the_batch_is_merged_into_heads() -> None:
    """torch's attention: [T, 1, 8] → [T, heads, 4], of which each head of each item attends on its own."""
    source = text(
        "float[5,1,8] x", "float[5,1,8] y",
        """a = Reshape(x, k) q = Transpose<perm=[1,0,2]>(a) t = Transpose<perm=[0,2,1]>(q) s = MatMul(q, t)
        p = Softmax(s) o = MatMul(p, q) b = Transpose<perm=[1,0,2]>(o) y = Reshape(b, j)""",
        "int64[3] k = {5, 2, 4}, int64[3] j = {5, 1, 8}",
    )  # fmt: skip

    result, _ = check_items(source, {"x": 1}, [1])

    assert shapes(result) == [[5, -1, 4], [5, -1, 8]]


def test_a_shape_that_another_node_reads_is_not_changed() -> None:
    source = text(
        "float[1,4] x, float[1,4] z", "float[1,2,2] y, float[1,2,2] v", "y = Reshape(x, k) v = Reshape(w, k)",
        "int64[3] k = {1, 2, 2}, float[1,4] w = {1,2,3,4}",
    )  # fmt: skip

    result, log = repaired(source, {"x": {0: "N"}})

    assert shapes(result) == [[0, 2, 2], [1, 2, 2]]
    assert len(log.changes) == 1


def test_two_varying_axes_are_read_from_a_shape() -> None:
    source = text(
        "float[1,3,4,6] x", "float[1,4,6,3] y",
        "t = Transpose<perm=[0,2,3,1]>(x) a = Reshape(t, k) r = Relu(a) y = Reshape(r, j)",
        "int64[2] k = {24, 3}, int64[4] j = {1, 4, 6, 3}",
    )  # fmt: skip
    result, log = repaired(source, "x:N,3,H,W")

    x = np.random.default_rng(0).standard_normal((2, 3, 5, 7)).astype(np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})[0], np.maximum(x.transpose(0, 2, 3, 1), 0))
    assert log.changes[1].emitted


def test_shapes_from_constant_nodes_and_computed_shapes_are_repaired() -> None:
    source = model(
        text(
            "float[1,8] x", "float[1,2,4] y",
            """one = Constant<value_ints=[1]>() rest = Constant<value_ints=[2, 4]>() k = Concat<axis=0>(one, rest)
            y = Reshape(x, k)""",
        )
    )  # fmt: skip

    result, _ = check_items(source, {"x": 0}, [0])

    assert shapes(result) == [[0, 2, 4]]


def test_reshapes_in_a_branch_and_in_a_function_are_repaired() -> None:
    branch = text(
        "float[1,8] x, bool c", "float[1,2,4] y",
        """y = If(c) <
          then_branch = t () => (float[1,2,4] a) { k = Constant<value_ints=[1, 2, 4]>() a = Reshape(x, k) },
          else_branch = e () => (float[1,2,4] b) { j = Constant<value_ints=[1, 2, 4]>() n = Neg(x) b = Reshape(n, j) }>""",
    )  # fmt: skip
    result, reasons = check_items(branch, {"x": 0}, [0])
    assert len(reasons) == 2

    function = """<ir_version: 8, opset_import: ["":17, "me":1]>
g (float[1,8] x) => (float[1,2,4] y) { y = me.f(x) }
<domain: "me", opset_import: ["":17]> f (a) => (b) { k = Constant<value_ints=[1, 2, 4]>() b = Reshape(a, k) }"""
    result, reasons = check_items(function, {"x": 0}, [0])
    assert len(reasons) == 1
    assert result.functions


def test_a_batch_that_moves_past_another_axis_is_transposed() -> None:
    """[1, n] becomes a column, and the product a row again: for a batch that takes a Transpose."""
    source = text(
        "float[1,4] x", "float[1,2] y", "a = Reshape(x, k) b = MatMul(w, a) y = Reshape(b, j)",
        "int64[2] k = {4, 1}, int64[2] j = {1, 2}, float[2,4] w = {1,2,3,4,5,6,7,8}",
    )  # fmt: skip

    result, _ = check_items(source, {"x": 0}, [0], rtol=1e-6)

    assert operators(result) == ["Reshape", "Transpose", "MatMul", "Reshape", "Transpose"]


def test_a_shape_that_fits_one_size_only_is_refused() -> None:
    source = text(
        "float[1,4] x", "float[4,4] y", "r = Reshape(x, k) y = Add(r, w)",
        "int64[1] k = {4}, float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}",
    )  # fmt: skip

    error = refuses("frozen-dim", repaired, source, {"x": {0: "N"}})
    assert "'w'" in str(error) or "'y'" in str(error)


MATRIX = "float[4,2] m = {1, 2, -3, 4, 5, -6, 7, 8}, int64[1] zero = {0}, int64[1] one = {1}"
TAKEN = {
    "Squeeze": "a = Squeeze(x, zero)",
    "Squeeze all ones": "a = Squeeze(x)",
    "Gather": "k = Constant<value_int=0>() a = Gather<axis=0>(x, k)",
    "Gather from behind": "k = Constant<value_int=-1>() a = Gather<axis=0>(x, k)",
}


@pytest.mark.parametrize("taken", TAKEN)
def test_a_batch_that_is_removed_and_added_again(taken: str) -> None:
    source = text(
        "float[1,3,4] x",
        "float[1,3,2] y",
        f"{TAKEN[taken]} b = MatMul(a, m) c = Relu(b) y = Unsqueeze(c, zero)",
        MATRIX,
    )

    result, reasons = check_items(source, {"x": 0}, [0])

    assert {node.op_type for node in result.graph.node}.isdisjoint({"Squeeze", "Unsqueeze", "Gather"})
    assert any("→ Reshape to" in reason for reason in reasons)


def test_a_batch_that_a_reshape_adds_again() -> None:
    source = text(
        "float[1,3,4] x", "float[1,6] y", "a = Squeeze(x, zero) b = MatMul(a, m) y = Reshape(b, k)",
        f"{MATRIX}, int64[2] k = {{1, 6}}",
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


def test_a_gather_of_item_zero_by_a_vector_keeps_all_items() -> None:
    source = text("float[1,4] x", "float[1,2] y", "a = Gather<axis=0>(x, zero) y = MatMul(a, m)", MATRIX)

    result, _ = check_items(source, {"x": 0}, [0])

    assert result.graph.node[0].op_type == "Identity"


def test_axes_as_attributes_up_to_opset_12() -> None:
    source = text(
        "float[1,3,4] x", "float[1,3,2] y",
        "a = Squeeze<axes=[0]>(x) b = MatMul(a, m) y = Unsqueeze<axes=[0]>(b)", MATRIX, opset=11,
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


def test_an_added_axis_that_is_no_batch() -> None:
    """[3N, 2] → [1, 3N, 2] for a product with a matrix of its own, then the batch again."""
    source = text(
        "float[1,3,4] x", "float[1,3,2] y",
        "a = Squeeze(x, zero) b = Unsqueeze(a, one) c = Squeeze(b, one) d = MatMul(c, m) y = Unsqueeze(d, zero)", MATRIX,
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


@pytest.mark.parametrize(
    ("nodes", "output"),
    [
        ("y = Squeeze(x, zero)", "float[3,4] y"),
        ("p = ReduceMax<axes=[1]>(x) s = Squeeze(p) y = MatMul(s, m)", "float[2] y"),
        ("a = Squeeze(x, zero) b = Transpose<perm=[1,0]>(a) y = MatMul(a, b)", "float[3,3] y"),
        (
            "s = Squeeze(x, zero) t = ReduceMax<keepdims=0, axes=[0]>(s) y = Unsqueeze(t, zero)",
            "float[1,4] y",
        ),
    ],
)
def test_a_batch_that_is_removed_for_good_is_refused(nodes: str, output: str) -> None:
    source = text("float[1,3,4] x", output, nodes, MATRIX)

    refuses(
        "frozen-dim",
        repaired,
        source,
        {"x": {0: "N"}},
        match=r"^'.*' \(Squeeze\): it removes the batch axis, .* no later node adds it again",
    )


def test_a_batch_without_an_axis_to_merge_into_is_refused() -> None:
    source = text("float[1,1] x", "float y", "y = Squeeze(x)", MATRIX)

    with pytest.raises(CannotMigrate, match="no axis into which the batch could be merged"):
        repaired(source, {"x": {0: "N"}})


@skip_if(ONNX_NEWEST < SUPPORTED, "an older onnx does not know all operators", Elsewhere.NEWEST)
def test_every_operator_of_the_table_exists() -> None:
    assert {name for domain, name in RULES if not domain and not defs.has(name)} == set()
    assert RULES.keys() >= _OF_CONSTANTS
