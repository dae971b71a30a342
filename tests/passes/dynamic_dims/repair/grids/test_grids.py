"""Grids, strides and priors in constants are computed from the sizes of feature maps; other tables are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike

from onnx_migrate import migrate
from onnx_migrate.errors import CannotMigrate
from tests.support.feature_maps import Array, Size, cells, check_table, detector, opened

SIZES = ((64, 64), (64, 96))


def grid(
    offset: float = 0.5,
    strides: tuple[int, ...] = (8, 16),
    *,
    scaled: bool = True,
    order: str = "xy",
    dtype: DTypeLike = np.float32,
    cells_last: bool = False,
) -> Callable[[Size], Array]:
    """Return the formula of a grid of points: [1, cells, 2], or [1, 2, cells] with `cells_last`."""

    def table(size: Size) -> Array:
        parts = []
        for stride, rows, columns in cells(size, strides):
            y, x = ((axis + offset) * (stride if scaled else 1) for axis in (rows, columns))
            parts.append(np.stack((x, y) if order == "xy" else (y, x), 1))
        found = np.concatenate(parts)[None].astype(dtype)
        return np.ascontiguousarray(found.transpose(0, 2, 1)) if cells_last else found

    return table


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("strides", [(8,), (8, 16), (8, 16, 32)])
@pytest.mark.parametrize(
    ("offset", "scaled", "order"), [(0.5, True, "xy"), (0, False, "yx"), (-0.5, False, "xy")]
)
def test_points_of_a_grid(
    size: Size, strides: tuple[int, ...], offset: float, scaled: bool, order: str
) -> None:
    check_table(grid(offset, strides, scaled=scaled, order=order), size, strides=strides)


def test_points_with_the_cells_last_as_in_yolov8() -> None:
    check_table(grid(scaled=False, cells_last=True), (64, 64), cells_last=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64])
def test_points_in_other_types(dtype: DTypeLike) -> None:
    check_table(grid(0, dtype=dtype), (64, 96))


def test_range_is_written_in_another_way_before_opset_11() -> None:
    check_table(grid(), (64, 96), opset=10, others=((96, 64),))


def test_the_inputs_of_range_are_scalars() -> None:
    """The standard allows nothing else, although ONNX Runtime runs a Range with vectors of one number."""
    model, _ = opened(detector((64, 96), grid()((64, 96))))

    shapes = {tensor.name: [*tensor.dims] for tensor in model.graph.initializer}
    ranges = [node for node in model.graph.node if node.op_type == "Range"]
    assert ranges
    assert all(shapes.get(name, []) == [] for node in ranges for name in node.input)


def test_strides_are_one_number_for_each_feature_map() -> None:
    def table(size: Size) -> Array:
        return np.concatenate(
            [np.full((1, len(rows), 1), s, np.float32) for s, rows, _ in cells(size, (8, 16))], 1
        )

    check_table(table, (96, 128))


def anchors(size: Size) -> Array:
    """Return corners of three anchors in each cell, the anchors innermost, as in RetinaNet."""
    parts = []
    for stride, rows, columns in cells(size, (8, 16)):
        centers = np.stack((columns, rows, columns, rows), 1)[:, None] * stride
        half = np.array([[-w, -h, w, h] for w, h in ((1.5, 1.5), (2.1, 1.05), (1.05, 2.1))]) * stride
        parts.append((centers + half.astype(np.float32)).reshape(-1, 4))
    return np.concatenate(parts)[None].astype(np.float32)


def test_anchors_of_several_in_a_cell() -> None:
    from onnx import helper

    source = detector((64, 96), anchors((64, 96))[:, ::3])
    concat = next(node for node in source.graph.node if node.op_type == "Concat")
    widened = helper.make_node("Expand", [concat.output[0], "three"], ["wide"])
    flat = helper.make_node("Reshape", ["wide", "rows"], ["many"])
    features = next(node for node in source.graph.node if node.output[0] == "features")
    features.input[0] = "many"
    nodes = list(source.graph.node)
    at = nodes.index(concat) + 1
    del source.graph.node[:], source.graph.value_info[:]
    source.graph.node.extend([*nodes[:at], widened, flat, *nodes[at:]])
    from onnx import numpy_helper

    table = next(tensor for tensor in source.graph.initializer if tensor.name == "table")
    table.CopyFrom(numpy_helper.from_array(anchors((64, 96)), "table"))
    source.graph.initializer.extend(
        [
            numpy_helper.from_array(np.array([1, 1, 3], np.int64), "three"),
            numpy_helper.from_array(np.array([1, -1, 1], np.int64), "rows"),
        ]
    )
    with pytest.raises(CannotMigrate, match="'table'"):
        # The cells of both maps were joined before the anchors, so the constant has another order than its axis.
        opened(_with_levels_swapped(source))
    _check_anchors(source)


def _with_levels_swapped(source: Any) -> Any:
    from onnx import ModelProto

    copy = ModelProto.FromString(source.SerializeToString())
    concat = next(node for node in copy.graph.node if node.op_type == "Concat")
    concat.input[:] = concat.input[::-1]
    return copy


def _check_anchors(source: Any) -> None:
    from tests.support.feature_maps import output_at

    result, _ = opened(source)
    for size in ((64, 96), (96, 64), (32, 160)):
        np.testing.assert_array_equal(output_at(result, size), anchors(size))


def priors(size: Size, strides: tuple[int, ...] = (8, 16), *, shares: bool = False) -> Array:
    """Return center and size of one box in each cell, in proportions of the image; sizes are pixels, or shares of the image."""
    height, width = size
    parts = []
    for stride, rows, columns in cells(size, strides):
        box = (
            [np.full(len(rows), 0.2 + stride / 50)] * 2
            if shares
            else [np.full(len(rows), 3 * stride / n) for n in (width, height)]
        )
        x, y = ((columns + 0.5) * stride / width, (rows + 0.5) * stride / height)
        parts.append(np.stack([x, y, *box], 1))
    return np.concatenate(parts)[None].astype(np.float32)


@pytest.mark.parametrize("shares", [False, True])
def test_priors_in_proportions_follow_the_image(shares: bool) -> None:
    check_table(lambda size: priors(size, shares=shares), (64, 96))


def test_priors_of_an_image_that_is_no_multiple_of_the_stride_round_up() -> None:
    check_table(priors, (60, 100), others=((44, 91), (96, 64), (61, 100)))


def test_boxes_of_a_square_image_may_be_pixels_or_shares() -> None:
    with pytest.raises(CannotMigrate, match=r"pixels or shares of the image.*other than the width"):
        opened(detector((64, 64), priors((64, 64))))


def test_a_coordinate_from_edge_to_edge() -> None:
    def table(size: Size) -> Array:
        ((_, rows, columns),) = cells(size, (8,))
        return np.stack((columns / columns.max() * 2 - 1, rows / rows.max() * 2 - 1), 1)[None].astype(
            np.float32
        )

    check_table(table, (64, 96), strides=(8,))


def _random(size: Size) -> Array:
    count = sum(len(rows) for _, rows, _ in cells(size, (8, 16)))
    return np.random.default_rng(0).standard_normal((1, count, 2)).astype(np.float32)


def _one_number_off(size: Size) -> Array:
    table = grid()(size)
    table[0, 17, 1] += 0.25
    return table


def _rows_in_another_order(size: Size) -> Array:
    return np.ascontiguousarray(grid()(size)[:, ::-1])


def _other_step_in_each_row(size: Size) -> Array:
    table = grid()(size)
    return (table * table).astype(np.float32)


@pytest.mark.parametrize(
    "formula", [_random, _one_number_off, _rows_in_another_order, _other_step_in_each_row]
)
def test_a_table_that_follows_no_law_is_refused_by_name(formula: Callable[[Size], Array]) -> None:
    with pytest.raises(CannotMigrate, match=r"decode.*constant 'table'.*learned") as caught:
        opened(detector((64, 96), formula((64, 96))))

    assert any("--extract-outputs features" in advice.text for advice in caught.value.advice)


def test_a_refusal_names_the_axes_that_can_be_dynamic_and_the_cut() -> None:
    with pytest.raises(CannotMigrate, match="learned") as caught:
        migrate(detector((64, 96), _random((64, 96))), dynamic="x:N,1,H,W")

    assert [advice.text for advice in caught.value.advice if advice.tried] == [
        "N can be made dynamic: --dynamic x:0=N",
        "cut the model before this node with --extract-outputs features",
    ]


def test_a_line_through_three_numbers_shows_no_law() -> None:
    with pytest.raises(CannotMigrate, match="'table'"):
        opened(detector((8, 24), np.array([[[4], [12], [20]]], np.float32), strides=(8,)))


def test_numbers_that_are_the_lengths_of_feature_maps_are_not_strides() -> None:
    table = np.concatenate([np.full((1, 64, 1), 8, np.float32), np.full((1, 16, 1), 4, np.float32)], 1)

    with pytest.raises(CannotMigrate, match="'table'"):
        opened(detector((64, 64), table))


def test_a_table_that_goes_column_by_column() -> None:
    """RT-DETR flattens its position encoding so, and its features row by row."""

    def table(size: Size) -> Array:
        ((_, rows, columns),) = cells(size, (8,))
        shape = -(-size[0] // 8), -(-size[1] // 8)
        turned = [axis.reshape(shape).T.reshape(-1) for axis in (columns, rows)]
        return np.stack(turned, 1)[None].astype(np.float32)

    check_table(table, (64, 96), strides=(8,))


def test_proportions_that_follow_two_rules_are_sure_at_multiples_of_the_stride_only() -> None:
    """A rule of the feature map and one of the image give the same numbers here; priors of 48 pixels may be limited."""
    from onnx_migrate.engine.pass_registry import make_pass
    from onnx_migrate.model.dims.plan import DimPlan
    from onnx_migrate.model.model import Model
    from onnx_migrate.rewrite.change_log import ChangeLog

    def bounds(size: Size) -> tuple[int, int]:
        log = ChangeLog()
        make_pass("dynamic_dims", dynamic="x:1,1,H,W").run(Model(detector(size, priors(size))), log)
        plan = log.fact(DimPlan, "", "")
        assert plan is not None
        return plan.bounds

    assert bounds((64, 96)) == (16, 48)
    assert bounds((60, 100)) == (0, 48)
