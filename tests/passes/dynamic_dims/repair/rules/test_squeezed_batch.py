"""Networks that remove the batch axis, compute on the one item, and add the axis again at the end."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import CannotMigrate
from tests.steps import refuses
from tests.support.repairs import check_items, repaired, text

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
