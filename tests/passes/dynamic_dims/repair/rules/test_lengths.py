"""Constants that Expand, fill, broadcast or pool to a frozen size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from tests.harness import model, run
from tests.support.repairs import check_items, repaired, text
from tests.support.skips import Elsewhere, skip_if


def ran(source: str, dynamic: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    result, log = repaired(source, dynamic)
    assert log.changes
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return x, run(result, {"x": x})[0]


def test_an_expand_follows_the_length_it_is_added_to() -> None:
    source = text(
        "float[1,5,2] x", "float[1,5,3] y", "e = Expand(row, k) y = Concat<axis=2>(x, e)",
        "float[1,1,1] row = {7}, int64[3] k = {1, 5, 1}",
    )  # fmt: skip

    x, y = ran(source, "x:N,T,2", (2, 9, 2))

    np.testing.assert_array_equal(y, np.concatenate([x, np.full((2, 9, 1), 7, np.float32)], 2))


def test_an_expand_keeps_the_varying_axes_of_its_data() -> None:
    source = text(
        "float[2,1,5] x", "float[2,4,5] y", "y = Expand(x, k)", "int64[3] k = {2, 4, 5}"
    )  # fmt: skip

    x, y = ran(source, "x:N,1,T", (3, 1, 9))

    np.testing.assert_array_equal(y, np.broadcast_to(x, (3, 4, 9)))


def test_equal_rows_for_a_frozen_batch_are_stretched_to_any() -> None:
    """A state of an LSTM that was traced with two items: zeros for two, expanded to as many as there are."""
    source = text(
        "float[2,3] x", "float[2,3] y",
        """n = Shape<end=1>(x) three = Constant<value_ints=[3]>() k = Concat<axis=0>(n, three) h = Expand(rows, k)
        y = Add(x, h)""", "float[2,3] rows = {1, 2, 3, 1, 2, 3}",
    )  # fmt: skip

    x, y = ran(source, "x:N,3", (5, 3))

    np.testing.assert_array_equal(y, x + np.array([1, 2, 3], np.float32))


def test_a_number_that_equals_a_length_by_chance_is_kept() -> None:
    source = text(
        "float[1,5,5] x", "float[1,5,5] y", "e = Expand(row, k) y = MatMul(x, w) z = Mul(e, e)",
        "float[1,1] row = {7}, int64[2] k = {5, 5}, float[5,5] w = {" + ",".join("1" * 25) + "}",
    )  # fmt: skip

    _, log = repaired(source, "x:N,T,5")

    assert not log.changes


@pytest.mark.parametrize("opset", [11, 17])
def test_constant_of_shape_range_and_tile_follow_a_length(opset: int) -> None:
    source = text(
        "float[1,5] x", "float[1,5] y",
        """z = ConstantOfShape<value = float[1] {2}>(k) r = Range(zero, five, one) f = Cast<to=1>(r)
        t = Tile(row, reps) a = Add(x, z) b = Add(a, f) y = Add(b, t)""",
        "int64[2] k = {1, 5}, int64 zero = {0}, int64 five = {5}, int64 one = {1}, float[1,1] row = {3}, int64[2] reps = {1, 5}",
        opset,
    )  # fmt: skip

    x, y = ran(source, "x:N,T", (2, 9))

    np.testing.assert_allclose(y, x + 2 + np.arange(9) + 3, rtol=1e-6)


def test_a_causal_mask_follows_on_both_axes() -> None:
    source = text(
        "float[1,5,2] x", "float[1,5,5] y",
        """t = Transpose<perm=[0,2,1]>(x) s = MatMul(x, t) o = ConstantOfShape<value = float[1] {1}>(k)
        m = Trilu<upper=0>(o) y = Mul(s, m)""",
        "int64[2] k = {5, 5}",
    )  # fmt: skip

    x, y = ran(source, "x:N,T,2", (2, 7, 2))

    np.testing.assert_allclose(y, np.tril(x @ x.transpose(0, 2, 1)), rtol=1e-5)


def test_zeros_for_a_batch_of_one_broadcast_as_one_row() -> None:
    source = text(
        "float[1,3] x",
        "float[1,5] y",
        "z = ConstantOfShape(k) y = Concat<axis=1>(x, z)",
        "int64[2] k = {1, 2}",
    )

    check_items(source, {"x": 0}, [0])


def test_the_limit_of_a_range_follows_a_length() -> None:
    source = text(
        "float[1,5,1] x", "float[1,5,1] y", "p = Gather(table, k) y = Add(x, p)",
        "int64[1,5] k = {0, 1, 2, 3, 4}, float[9,1] table = {9, 8, 7, 6, 5, 4, 3, 2, 1}",
    )  # fmt: skip

    x, y = ran(source, "x:N,T,1", (2, 7, 1))

    np.testing.assert_array_equal(y, x + np.arange(9, 2, -1, dtype=np.float32)[:, None])


def test_a_class_token_is_concatenated_to_every_item() -> None:
    source = text(
        "float[1,3,2] x", "float[1,4,2] y", "y = Concat<axis=1>(token, x)", "float[1,1,2] token = {5, 6}"
    )

    _, reasons = check_items(source, {"x": 0}, [0])

    assert "'token'" in reasons[0]


def test_indices_shared_by_all_items_are_expanded() -> None:
    source = text(
        "float[1,3,2] x",
        "float[1,2,2] y",
        "y = GatherElements<axis=1>(x, k)",
        "int64[1,2,2] k = {0, 1, 2, 0}",
    )

    check_items(source, {"x": 0}, [0])


def test_a_constant_with_equal_rows_becomes_one_row() -> None:
    """zeros_like, folded."""
    source = text(
        "float[1,3,2] x, bool[1,3,1] c", "float[1,3,2] y", "y = Where(c, x, z)",
        "float[1,3,2] z = {5, 6, 5, 6, 5, 6}",
    )  # fmt: skip

    result, log = repaired(source, {"x": {0: "N", 1: "T"}, "c": {0: "N", 1: "T"}})

    assert "equal rows" in log.changes[0].reason
    x = np.zeros((2, 7, 2), np.float32)
    y = run(result, {"x": x, "c": np.zeros((2, 7, 1), bool)})[0]
    np.testing.assert_array_equal(y, np.broadcast_to(np.array([5, 6], np.float32), (2, 7, 2)))
    with pytest.raises(CannotMigrate, match="'z'"):
        repaired(source.replace("5, 6, 5, 6, 5, 6", "5, 6, 5, 6, 5, 7"), {"x": {1: "T"}, "c": {1: "T"}})


def test_the_inverse_of_a_sort_by_length_ranks_all_items() -> None:
    """What PyTorch writes for a packed sequence: sorted by length, and the inverse of that order by a scatter."""
    source = text(
        "float[1,2] x, int64[1] lengths", "float[1,2] y",
        """k = Shape(lengths) s, order = TopK(lengths, k) a = Gather<axis=0>(x, order) b = Relu(a)
        back = ScatterElements<axis=0>(zero, order, zero) y = Gather<axis=0>(b, back)""",
        "int64[1] zero = {0}",
    )  # fmt: skip
    result, log = repaired(source, {"x": {0: "N"}, "lengths": {0: "N"}})

    x = np.array([[1, -1], [2, -2], [3, -3]], np.float32)
    y = run(result, {"x": x, "lengths": np.array([4, 9, 6])})[0]
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    assert "updates [0] → 0, 1, …, N - 1" in log.changes[-1].reason


@pytest.mark.parametrize("operator", ["MatMul", "Add"])
def test_a_constant_for_each_head_is_tiled_where_the_batch_is_merged_with_the_heads(operator: str) -> None:
    source = text(
        "float[1,2,3,3] x", "float[1,2,3,3] y", f"a = Reshape(x, k) b = {operator}(a, heads) y = Reshape(b, j)",
        "int64[3] k = {2, 3, 3}, int64[4] j = {1, 2, 3, 3}, "
        "float[2,3,3] heads = {1,2,3,4,5,6,7,8,9,9,8,7,6,5,4,3,2,1}",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0])

    assert "'heads' is tiled along axis 0 to N × 2" in reasons


@skip_if(onnx.defs.onnx_opset_version() < 23, "onnx is older", Elsewhere.NEWEST)
def test_the_masks_of_windows_are_tiled_where_the_batch_is_merged_with_the_windows() -> None:
    """As a Swin transformer masks each window: [1, 6, 4] becomes two windows of three."""
    source = text(
        "float[1,6,4] x", "float[1,6,4] y",
        "a = Reshape(x, k) b = Attention(a, a, a, masks) c = Transpose<perm=[0,2,1,3]>(b) y = Reshape(c, j)",
        "int64[4] k = {2, 1, 3, 4}, int64[3] j = {1, 6, 4},"
        " float[2,1,3,3] masks = {0,0,-9,0,0,-9,0,0,-9,-9,0,0,-9,0,0,-9,0,0}", opset=23,
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0], rtol=1e-6)

    assert "'masks' is tiled along axis 0 to N × 2" in reasons


HEAD = "float[2,3] w = {1, 2, 3, -1, 5, 6}"


@pytest.mark.parametrize("window", ["kernel_shape=[4,6]", "kernel_shape=[5,7], pads=[0,0,1,1]"])
@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
def test_a_pool_over_the_whole_image_before_weights_becomes_global(operator: str, window: str) -> None:
    source = model(
        text(
            "float[1,2,4,6] x",
            "float[1,3] y",
            f"p = {operator}<{window}>(x) f = Flatten(p) y = Gemm(f, w)",
            HEAD,
        )
    )
    log = ChangeLog()
    result = make_pass("dynamic_dims", dynamic="x:N,2,H,W").run(Model(model(source)), log).proto

    (change,) = log.changes
    assert change.after is not None
    assert change.after.op_type == f"Global{operator}"
    assert change.exactness is (Exactness.EXACT if operator == "MaxPool" else Exactness.EQUIVALENT)
    x = np.random.default_rng(0).standard_normal((2, 2, 5, 9)).astype(np.float32)
    pooled = x.max((2, 3)) if operator == "MaxPool" else x.mean((2, 3))
    weights = np.array([[1, 2, 3], [-1, 5, 6]], np.float32)
    np.testing.assert_allclose(run(result, {"x": x})[0], pooled @ weights, rtol=1e-4, atol=1e-5)
    small = x[:1, :, :4, :6]
    np.testing.assert_allclose(run(result, {"x": small})[0], run(source, {"x": small})[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("window", "out"),
    [
        ("kernel_shape=[2,2]", "3,5"),
        ("kernel_shape=[4,6]", "1,1"),
        ("kernel_shape=[5,6], pads=[0,0,1,0], count_include_pad=1", "1,1"),
    ],
)
def test_a_pool_without_a_conflict_after_it_is_kept(window: str, out: str) -> None:
    source = text("float[1,2,4,6] x", f"float[1,2,{out}] y", f"y = AveragePool<{window}>(x)")

    result, log = repaired(source, "x:N,2,H,W")

    assert not log.changes
    assert result.graph.node[0].op_type == "AveragePool"
