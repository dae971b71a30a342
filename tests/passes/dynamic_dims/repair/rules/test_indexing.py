"""Constants that gather, scatter, slice and split by a frozen size."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import run
from tests.steps import operators
from tests.support.repairs import check_items, repaired, text


def test_gather_nd_with_constant_indices_gets_batch_dims() -> None:
    """mask[batch, position], as PyTorch traces what is mapped over items and positions."""
    source = text(
        "float[1,3] x", "float[1,1,1,3] y", "y = GatherND(x, k)",
        "int64[1,1,1,3,2] k = {0, 2, 0, 0, 0, 1}",
    )  # fmt: skip

    result, reasons = check_items(source, {"x": 0}, [0])

    assert operators(result)[-2:] == ["Expand", "GatherND"]
    assert reasons == ["each of N items gathers from its own rows: batch_dims 0 → 1"]


def test_gather_nd_with_an_index_for_each_item_gets_batch_dims() -> None:
    """hidden[arange(batch), ends]: the counted batch is a frozen 0."""
    source = text(
        "float[1,4,2] x, float[1,4] score", "float[1,2] y",
        """end = ArgMax<axis=1, keepdims=1>(score) pair = Concat<axis=1>(zero, end) y = GatherND(x, pair)""",
        "int64[1,1] zero = {0}",
    )  # fmt: skip

    check_items(source, {"x": 0, "score": 0}, [0])


@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_indices_into_the_merged_rows_of_all_items_are_offset(kind: str) -> None:
    source = text(
        "float[1,3] x", "float[1,1,1,3] y",
        "f = Flatten<axis=2>(x) g = Gather<axis=0>(f, k) y = Reshape(g, shape)",
        f"{kind}[1,1,1,3] k = {{2, 0, 1}}, int64[4] shape = {{1, 1, 1, 3}}",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0])

    assert reasons[0] == "each of N items gathers from its own 3 rows"


def test_indices_of_each_item_are_offset() -> None:
    source = text(
        "float[1,3,2] x, float[1,3] score", "float[1,2] y",
        "f = Reshape(x, k) i = ArgMax<axis=1, keepdims=0>(score) y = Gather<axis=0>(f, i)", "int64[2] k = {-1, 2}",
    )  # fmt: skip

    check_items(source, {"x": 0, "score": 0}, [0])


def test_indices_computed_from_a_count_of_the_items_are_kept() -> None:
    source = text(
        "float[1,3,2] x, float[1,3] score", "float[1,2] y",
        """f = Reshape(x, k) i = ArgMax<axis=1, keepdims=0>(score) s = Shape(x) n = Gather<axis=0>(s, first)
        c = Range(first, n, one) three = Constant<value_int=3>() o = Mul(c, three) j = Add(i, o)
        y = Gather<axis=0>(f, j)""",
        "int64[2] k = {-1, 2}, int64 first = {0}, int64 one = {1}",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0, "score": 0}, [0])

    assert not reasons


def test_negative_indices_into_merged_rows_are_refused() -> None:
    source = text(
        "float[1,3] x", "float[1,2] y", "f = Reshape(x, flat) y = Gather<axis=0>(f, k)",
        "int64[1] flat = {-1}, int64[1,2] k = {-1, 0}",
    )  # fmt: skip

    with pytest.raises(CannotMigrate, match="count from the end"):
        repaired(source, {"x": {0: "N"}})


def test_rows_shared_by_all_items_are_tiled() -> None:
    """A mask of ones, made for one item, looked up by numbers that go on from item to item."""
    source = text(
        "float[1,3] x", "float[1,3] y",
        """s = Shape(x) n = Gather<axis=0>(s, first) c = Range(first, n, one) two = Unsqueeze(c, one1)
        o = Mul(two, three) j = Add(o, k) m = Gather<axis=0>(ones, j) y = Mul(x, m)""",
        """int64 first = {0}, int64 one = {1}, int64[1] one1 = {1}, int64 three = {3}, int64[1,3] k = {0, 1, 2},
        float[3] ones = {1, 2, 3}""",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0])

    assert reasons == ["'ones' is tiled along axis 0 to N × 3"]


@pytest.mark.parametrize(
    ("data", "index", "axis"),
    [
        # shifted[:, 1:] = x[:, :-1], with the batch in front, and with it behind as the newer exporter writes it
        ("float[1,3] z = {7, 8, 9}", "int64[1,2,2] k = {0, 1, 0, 2}", 0),
        ("float[3,1] z = {7, 8, 9}", "int64[2,1] k = {1, 2}", 1),
    ],
)
def test_scatter_nd_writes_each_item_into_its_own_rows(data: str, index: str, axis: int) -> None:
    shape = "1,2" if axis == 0 else "2,1"
    out = "1,3" if axis == 0 else "3,1"
    source = text(f"float[{shape}] x", f"float[{out}] y", "y = ScatterND(z, k, x)", f"{data}, {index}")

    check_items(source, {"x": axis}, [axis])


def test_scatter_nd_writes_shared_updates_into_each_item() -> None:
    source = text(
        "float[1,3] x", "float[1,3] y", "y = ScatterND(x, k, u)",
        "int64[1,2,2] k = {0, 2, 0, 0}, float[1,2] u = {5, 6}",
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


@pytest.mark.parametrize(
    ("shape", "nodes", "constants"),
    [
        # a nearest Resize and a pooling to 2 x 2, as numbers of places
        ("1,2,4", "y = Gather<axis=2>(x, k)", "int64[8] k = {0,0,1,1,2,2,3,3}"),
        ("2,4,1", "y = GatherND(x, k)", "int64[2,2,2] k = {0,0,0,2,1,0,1,2}"),
    ],
)
def test_indices_computed_for_one_length_are_refused(shape: str, nodes: str, constants: str) -> None:
    source = text(
        f"float[{shape}] x", "float[2,2,1] y" if "ND" in nodes else "float[1,2,8] y", nodes, constants
    )

    with pytest.raises(CannotMigrate, match=r"computed for an axis of length 4, but.*'k'"):
        repaired(source, {"x": {shape.split(",").index("4"): "W"}})


def test_a_few_indices_at_the_front_are_kept() -> None:
    """The first of the tokens stands for the sentence."""
    source = text("float[1,6,2] x", "float[1,2] y", "y = Gather<axis=1>(x, k)", "int64 k = {0}")

    _, log = repaired(source, {"x": {1: "T"}})

    assert not log.changes


TABLE = "float[9,2] table = {0,0, 1,1, 2,2, 3,3, 4,4, 5,5, 6,6, 7,7, 8,8}"


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ("p = Gather<axis=0>(table, k) y = Add(x, p)", "int64[1,5] k = {0,1,2,3,4}"),
        ("q = Add(k, zero) p = Gather<axis=0>(table, q) y = Add(x, p)", "int64[1,5] k = {0,1,2,3,4}, int64 zero = {0}"),
        (
            "row = GatherElements<axis=1>(buffer, k) p = Gather<axis=0>(table, row) y = Add(x, p)",
            "int64[1,5] k = {0,1,2,3,4}, int64[1,9] buffer = {0,1,2,3,4,5,6,7,8}",
        ),
        ("p = Cast<to=1>(k) q = Unsqueeze(p, last) y = Add(x, q)", "int32[1,5] k = {0,1,2,3,4}, int64[1] last = {-1}"),
    ],
)  # fmt: skip
def test_positions_are_computed_where_a_later_node_needs_it(nodes: str, constants: str) -> None:
    if "Cast" in nodes:
        nodes = nodes.replace("Cast<to=1>(k)", "Cast<to=1>(j)").replace("p = ", "j = Mul(k, one) p = ", 1)
        constants += ", int32 one = {1}"
    source = text("float[1,5,2] x", "float[1,5,2] y", nodes, f"{TABLE}, {constants}")

    result, log = repaired(source, {"x": {1: "T"}})

    assert "0, 1, …, 4 → 0, 1, …, T - 1" in log.changes[0].reason
    for length in (5, 3, 8):
        y = run(result, {"x": np.zeros((1, length, 2), np.float32)})[0]
        np.testing.assert_array_equal(y[0, :, 0], np.arange(length, dtype=np.float32))


def test_positions_of_a_causal_mask_follow_on_both_axes() -> None:
    """Rows and columns are both counted, and only one of them is asked for by what follows."""
    source = text(
        "float[1,4,4] x", "float[1,4,4] y",
        "m = LessOrEqual(columns, rows) y = Where(m, x, none)",
        "int64[4,1] rows = {0,1,2,3}, int64[1,4] columns = {0,1,2,3}, float none = {-9}",
    )  # fmt: skip

    result, _ = repaired(source, {"x": {1: "T", 2: "T"}})

    y = run(result, {"x": np.zeros((1, 6, 6), np.float32)})[0]
    np.testing.assert_array_equal(y[0], np.where(np.tri(6, dtype=bool), 0, -9).astype(np.float32))


def test_one_repeated_number_is_expanded() -> None:
    """Types of tokens, all 1."""
    source = text(
        "float[1,5,2] x",
        "float[1,5,2] y",
        "p = Gather<axis=0>(table, k) y = Add(x, p)",
        f"{TABLE}, int64[1,5] k = {{1,1,1,1,1}}",
    )

    result, log = repaired(source, {"x": {1: "T"}})

    assert "1 repeated 5 times → T times" in log.changes[0].reason
    np.testing.assert_array_equal(
        run(result, {"x": np.zeros((1, 7, 2), np.float32)})[0], np.ones((1, 7, 2), np.float32)
    )


def test_positions_without_a_conflict_are_kept() -> None:
    source = text(
        "float[1,5,2] x", "float[1,5,2] y, float[1,5,2] z", "p = Gather<axis=0>(table, k) z = Relu(p) y = Relu(x)",
        f"{TABLE}, int64[1,5] k = {{0,1,2,3,4}}",
    )  # fmt: skip

    _, log = repaired(source, {"x": {1: "T"}})

    assert not log.changes


@pytest.mark.parametrize("end", [1, 2, 1000])
def test_a_slice_of_the_whole_batch_takes_the_whole_batch(end: int) -> None:
    source = text(
        "float[1,4] x", "float[1,2] y", "y = Slice(x, b, e, a)",
        f"int64[2] b = {{0, 1}}, int64[2] e = {{{end}, 3}}, int64[2] a = {{0, 1}}",
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


def test_a_slice_of_a_table_ends_at_the_length_it_is_added_to() -> None:
    table = ",".join(map(str, range(20)))
    source = text(
        "float[1,5] x", "float[1,5] y", "p = Slice(t, b, e, a) y = Add(x, p)",
        f"float[1,20] t = {{{table}}}, int64[1] b = {{0}}, int64[1] e = {{5}}, int64[1] a = {{1}}",
    )  # fmt: skip

    result, log = repaired(source, "x:N,T")

    x = np.zeros((2, 9), np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})[0], np.tile(np.arange(9, dtype=np.float32), (2, 1)))
    assert "ends [5] → [T]" in log.changes[0].reason


def test_a_slice_that_drops_the_last_element_drops_the_last_at_any_length() -> None:
    """A length less one, as of an odd axis that was padded, is found by what it is joined with."""
    source = text(
        "float[1,1,6] x", "float[1,2,5] y",
        "p = Slice(x, b, e, a) q = Slice(x, c, m, a) y = Concat<axis=1>(p, q)",
        "int64[1] b = {0}, int64[1] e = {5}, int64[1] a = {2}, int64[1] c = {1}, int64[1] m = {9223372036854775807}",
    )  # fmt: skip

    result, _ = repaired(source, "x:N,1,W")

    x = np.random.default_rng(0).standard_normal((2, 1, 9)).astype(np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})[0], np.concatenate([x[:, :, :-1], x[:, :, 1:]], 1))


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_equal_parts_are_equal_at_any_size(opset: int) -> None:
    given, constants = ("x", "") if opset == 11 else ("x, k", "int64[2] k = {3, 3}")
    form = "<axis=1, split=[3, 3]>" if opset == 11 else "<axis=1>"
    source = text(
        "float[1,6] x", "float[1,3] y", f"p, q = Split{form}({given}) y = Add(p, q)", constants, opset
    )

    result, _ = repaired(source, "x:N,W")

    x = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})[0], x[:, :4] + x[:, 4:])


def test_unequal_parts_are_refused() -> None:
    source = text(
        "float[1,6] x", "float[1,2] y, float[1,4] z", "y, z = Split<axis=1>(x, k)", "int64[2] k = {2, 4}"
    )

    with pytest.raises(CannotMigrate, match="'k'"):
        repaired(source, "x:N,W")
