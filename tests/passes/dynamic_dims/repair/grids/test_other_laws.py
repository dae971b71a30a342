"""Position encodings, logits, masks of windows, sizes of the image beside coordinates, and indices of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import run
from tests.support.feature_maps import Array, Size, cells, check_table, detector, opened, output_at
from tests.support.repairs import repaired, text


def waves(size: Size, *, turns: bool = False, halves: bool = False, turned: bool = False) -> Array:
    """Return a sine encoding of rows and columns, [1, cells, 16]: sines and cosines in turn, or in `halves`."""
    ((_, rows, columns),) = cells(size, (8,))
    if turned:
        shape = int(rows.max()) + 1, int(columns.max()) + 1
        rows, columns = (axis.reshape(shape).T.reshape(-1) for axis in (rows, columns))
    parts = []
    for axis in (columns, rows) if halves else (rows, columns):
        positions = (axis + 1) / (axis.max() + 1) * 2 * np.pi if turns else axis
        angles = positions[:, None] * 10000 ** -(np.arange(4) / 4)
        pair = (np.sin(angles), np.cos(angles))
        parts.append(np.concatenate(pair, 1) if halves else np.stack(pair, 2).reshape(len(axis), -1))
    return np.concatenate(parts, 1)[None].astype(np.float32)


@pytest.mark.parametrize("size", [(64, 64), (64, 96)])
@pytest.mark.parametrize("turns", [False, True])
def test_a_sine_position_encoding(size: Size, turns: bool) -> None:
    check_table(lambda other: waves(other, turns=turns), size, strides=(8,), exact=False)


def test_a_sine_position_encoding_that_goes_column_by_column() -> None:
    check_table(lambda size: waves(size, halves=True, turned=True), (64, 96), strides=(8,), exact=False)


def test_a_square_map_does_not_show_whether_an_encoding_goes_by_rows_or_columns() -> None:
    with pytest.raises(CannotMigrate, match=r"'table'.*other than the width"):
        opened(detector((64, 64), waves((64, 64), halves=True, turned=True), (8,)))


def proportions(size: Size) -> Array:
    parts = []
    for level, (_, rows, columns) in enumerate(cells(size, (8, 16))):
        centers = ((columns + 0.5) / (columns.max() + 1), (rows + 0.5) / (rows.max() + 1))
        parts.append(np.stack([*centers, *[np.full(len(rows), 0.05 * 2**level)] * 2], 1))
    return np.concatenate(parts)[None]


def valid(size: Size) -> Array:
    shares = proportions(size)
    return np.asarray(((shares > 0.01) & (shares < 0.99)).all(-1, keepdims=True))


def logits(size: Size) -> Array:
    shares = proportions(size)
    return np.where(valid(size), np.log(shares / (1 - shares)), np.inf).astype(np.float32)


def test_anchors_as_logits_with_rows_that_are_not_valid() -> None:
    size = (640, 416)
    assert not valid(size).all()

    check_table(logits, size, others=((416, 640), (64, 96)), exact=False)


def test_the_mask_of_valid_anchors() -> None:
    size = (640, 416)

    model, _ = opened(detector(size, valid(size), operator="Where"))

    for other in (size, (416, 640), (64, 96)):
        np.testing.assert_array_equal(output_at(model, other, 1.0)[0, :, 0], valid(other)[0, :, 0])


def window_masks(size: Size, window: int = 4, shift: int = 2) -> Array:
    """Return the masks of shifted windows over the cells of 8 pixels, [1, windows, 16, 16], as Swin computes them."""
    height, width = (n // 8 for n in size)
    parts = np.zeros((height, width))
    bounds = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for number, (down, across) in enumerate((a, b) for a in bounds for b in bounds):
        parts[down, across] = number
    flat = parts.reshape(height // window, window, width // window, window).transpose(0, 2, 1, 3)
    flat = flat.reshape(-1, window * window)
    return np.where(flat[:, None] == flat[:, :, None], 0.0, -100.0).astype(np.float32)[None]


@pytest.mark.parametrize("size", [(64, 64), (96, 128)])
def test_masks_of_shifted_windows(size: Size) -> None:
    masks = window_masks(size)
    source = text(
        f"float[1,1,{size[0]},{size[1]}] x", "float[1,W,16,16] y",
        "f = MaxPool<kernel_shape=[32,32], strides=[32,32]>(x) r = Reshape(f, shape) y = Add(r, masks)",
        "int64[4] shape = {1,-1,1,1}",
    )  # fmt: skip
    model = onnx.parser.parse_model(source)
    model.graph.initializer.append(numpy_helper.from_array(masks, "masks"))

    result, _ = opened(model)

    for other in (size, (64, 160), (128, 64)):
        np.testing.assert_array_equal(output_at(result, other), window_masks(other))


def points(size: Size) -> Array:
    parts = [np.stack(((x + 0.5) * s, (y + 0.5) * s), 1) for s, y, x in cells(size, (8, 16))]
    return np.concatenate(parts)[None].astype(np.float32)


def _sizes(array: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, np.float32), "sizes")


@pytest.mark.parametrize("size", [(64, 64), (64, 96)])
@pytest.mark.parametrize("operator", ["Div", "Mul", "Min"])
def test_the_size_of_the_image_beside_coordinates(size: Size, operator: str) -> None:
    def expected(other: Size) -> Array:
        image = np.array([other[1], other[0]], np.float32)
        return {"Div": np.divide, "Mul": np.multiply, "Min": np.minimum}[operator](points(other) + 50, image)

    node = helper.make_node(operator, ["y", "sizes"], ["z"])
    source = detector(size, points(size), behind=[node], constants=[_sizes(size[::-1])], output="z")

    result, _ = opened(source)

    for other in (size, (96, 64), (32, 160)):
        np.testing.assert_allclose(output_at(result, other, 50.0), expected(other), rtol=1e-6)


@pytest.mark.parametrize("first", ["Div", "Min"])
def test_a_second_size_of_the_image_behind_the_first(first: str) -> None:
    """Numbers stay coordinates behind a constant that was replaced, so both sizes follow the image."""

    def expected(other: Size) -> Array:
        image = np.array([other[1], other[0]], np.float32)
        return {"Div": np.divide, "Min": np.minimum}[first](points(other), image) * image

    nodes = [helper.make_node(first, ["y", "sizes"], ["u"]), helper.make_node("Mul", ["u", "sizes"], ["z"])]
    source = detector((64, 96), points((64, 96)), behind=nodes, constants=[_sizes([96, 64])], output="z")

    result, _ = opened(source)

    for other in ((64, 96), (96, 64), (32, 160)):
        np.testing.assert_allclose(output_at(result, other), expected(other), rtol=1e-5)


def test_a_second_size_of_the_image_behind_a_limit() -> None:
    nodes = [
        helper.make_node("Clip", ["y", "", "width"], ["u"]),
        helper.make_node("Div", ["u", "width"], ["z"]),
    ]
    width = numpy_helper.from_array(np.array(96, np.float32), "width")
    table = points((64, 96))[..., :1] + 50
    source = detector((64, 96), table, behind=nodes, constants=[width], output="z")

    result, _ = opened(source)

    for other in ((64, 96), (96, 64), (32, 160)):
        limited = np.minimum(points(other)[..., :1] + 50, other[1])
        np.testing.assert_allclose(output_at(result, other), limited / other[1], rtol=1e-5)


@pytest.mark.parametrize("opset", [10, 17])
def test_limits_of_columns_in_a_square_image(opset: int) -> None:
    """The first column is limited by the width, the second by the height; both are 64 in the source model."""
    ends = [numpy_helper.from_array(np.array([end], np.int64), f"k{end}") for end in range(3)]
    limits = [
        numpy_helper.from_array(np.array(n, np.float32), name) for name, n in (("low", 0), ("high", 64))
    ]
    nodes = []
    for column in range(2):
        nodes.append(helper.make_node("Slice", ["y", f"k{column}", f"k{column + 1}", "k2"], [f"c{column}"]))
        given = [f"c{column}"] if opset < 11 else [f"c{column}", "low", "high"]
        attributes: dict[str, float] = {"min": 0.0, "max": 64.0} if opset < 11 else {}
        nodes.append(helper.make_node("Clip", given, [f"l{column}"], **attributes))
    nodes.append(helper.make_node("Concat", ["l0", "l1"], ["z"], axis=2))
    source = detector(
        (64, 64), points((64, 64)), behind=nodes, constants=[*ends, *limits], output="z", opset=opset
    )

    result, _ = opened(source)

    for other in ((64, 64), (96, 64), (32, 160)):
        image = np.array([other[1], other[0]], np.float32)
        np.testing.assert_array_equal(output_at(result, other, 50.0), np.minimum(points(other) + 50, image))


def test_a_size_that_may_be_the_height_or_the_width_is_refused() -> None:
    """A square image, and a number that neither column shows: the norm of both."""
    nodes = [
        helper.make_node("ReduceSum", ["y", "last"], ["s"], keepdims=1),
        helper.make_node("Add", ["y", "s"], ["both"]),
        helper.make_node("Reshape", ["both", "flat"], ["mixed"]),
        helper.make_node("Div", ["mixed", "sizes"], ["z"]),
    ]
    constants = [
        _sizes(64),
        numpy_helper.from_array(np.array([2], np.int64), "last"),
        numpy_helper.from_array(np.array([1, -1], np.int64), "flat"),
    ]

    with pytest.raises(CannotMigrate, match=r"'sizes'.*height or the width"):
        opened(detector((64, 64), points((64, 64)), behind=nodes, constants=constants, output="z"))


def _cells_of_peaks(opset: int) -> onnx.ModelProto:
    """Return a model that finds the largest cells of two classes, and returns class, row and column of each."""
    source = text(
        "float[1,2,6,8] x", "float[1,3] c, float[1,3] r, float[1,3] k",
        """f = Reshape(x, flat) v, i = TopK(f, three) ci = Div(i, area) cell = Mod(i, area) ri = Div(cell, width)
        t = Mul(ri, width) ki = Sub(cell, t) c = Cast<to=1>(ci) r = Cast<to=1>(ri) k = Cast<to=1>(ki)""",
        "int64[2] flat = {1,-1}, int64[1] three = {3}, int64 area = {48}, int64 width = {8}",
        opset,
    )  # fmt: skip
    return onnx.parser.parse_model(source)


@pytest.mark.parametrize("opset", [11, 17])
def test_the_width_that_divides_an_index_of_cells(opset: int) -> None:
    log = ChangeLog()
    result = make_pass("dynamic_dims", dynamic="x:1,2,H,W").run(Model(_cells_of_peaks(opset)), log).proto

    for size in ((6, 8), (8, 6), (5, 11)):
        x = np.random.default_rng(0).standard_normal((1, 2, *size)).astype(np.float32)
        best = np.argsort(-x.reshape(-1))[:3]
        expected = np.unravel_index(best, (2, *size))
        for value, want in zip(run(result, {"x": x}), expected, strict=True):
            np.testing.assert_array_equal(value[0], want)


def test_two_slices_that_roll_an_axis() -> None:
    """torch.roll by 2 takes the last two columns first: the cut moves with the end."""
    source = text(
        "float[1,6,8] x", "float[1,6,8] y",
        "a = Slice(x, zero, cut, axis) b = Slice(x, cut, all, axis) y = Concat<axis=2>(b, a)",
        "int64[1] zero = {0}, int64[1] cut = {6}, int64[1] all = {8}, int64[1] axis = {2}",
    )  # fmt: skip

    result, _ = repaired(source, "x:1,6,W")

    for width in (8, 5, 13):
        x = np.random.default_rng(0).standard_normal((1, 6, width)).astype(np.float32)
        np.testing.assert_array_equal(run(result, {"x": x})[0], np.roll(x, 2, 2))


def test_a_grid_that_nodes_compute_from_constants() -> None:
    """An exporter without constant folding leaves the product of points and stride in the graph."""
    size = (64, 96)
    source = detector(size, points(size) / 8)
    decode = next(node for node in source.graph.node if node.name == "decode")
    decode.input[1] = "scaled"
    source.graph.node.insert(0, helper.make_node("Mul", ["table", "eight"], ["scaled"]))
    source.graph.initializer.append(numpy_helper.from_array(np.array(8, np.float32), "eight"))

    result, _ = opened(source)

    for other in ((64, 96), (96, 64), (32, 160)):
        np.testing.assert_array_equal(output_at(result, other), points(other))


def test_indices_of_all_cells_that_a_scatter_writes_to() -> None:
    """YOLOv5 writes the decoded centers into the first columns of its boxes."""
    size = (4, 6)
    grid = np.stack(np.meshgrid([0], range(4), range(6), [0, 1], indexing="ij"), -1).astype(np.int64)
    source = text(
        "float[1,4,6,3] x", "float[1,4,6,3] y",
        "c = Slice(x, zero, two, axis) d = Mul(c, c) y = ScatterND(x, places, d)",
        "int64[1] zero = {0}, int64[1] two = {2}, int64[1] axis = {3}",
    )  # fmt: skip
    model = onnx.parser.parse_model(source)
    model.graph.initializer.append(numpy_helper.from_array(grid, "places"))
    result = make_pass("dynamic_dims", dynamic="x:1,H,W,3").run(Model(model), ChangeLog()).proto

    for height, width in (size, (6, 4), (5, 9)):
        x = np.random.default_rng(0).standard_normal((1, height, width, 3)).astype(np.float32)
        expected = np.concatenate([x[..., :2] ** 2, x[..., 2:]], -1)
        np.testing.assert_array_equal(run(result, {"x": x})[0], expected)


@pytest.mark.parametrize("operator", ["Gather", "GatherElements", "GatherND"])
def test_a_table_from_which_a_top_k_selects_cells(operator: str) -> None:
    """The table meets no axis that changes: it would be too short, or have other rows."""
    size = (64, 96)
    parts = {"minus": [-1]}
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in parts.items()]
    constants.append(numpy_helper.from_array(np.array([4], np.int64), "four"))
    constants.append(numpy_helper.from_array(points(size)[0], "grid"))
    nodes = [
        helper.make_node("Squeeze", ["y", "zero_two"], ["flat"]),
        helper.make_node("TopK", ["flat", "four"], ["best", "index"], axis=0),
    ]
    constants.append(numpy_helper.from_array(np.array([0, 2], np.int64), "zero_two"))
    if operator == "Gather":
        nodes.append(helper.make_node("Gather", ["grid", "index"], ["z"], axis=0))
    elif operator == "GatherND":
        nodes.append(helper.make_node("Unsqueeze", ["index", "minus"], ["places"]))
        nodes.append(helper.make_node("GatherND", ["grid", "places"], ["z"]))
    else:
        nodes.append(helper.make_node("Unsqueeze", ["index", "minus"], ["places"]))
        constants.append(numpy_helper.from_array(np.array([4, 2], np.int64), "wide"))
        nodes.append(helper.make_node("Expand", ["places", "wide"], ["both"]))
        nodes.append(helper.make_node("GatherElements", ["grid", "both"], ["z"], axis=0))
    strides = np.concatenate(
        [np.full((1, len(rows), 1), s, np.float32) for s, rows, _ in cells(size, (8, 16))], 1
    )
    source = detector(size, strides, behind=nodes, constants=constants, output="z")
    source.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [4, 2]))

    result, _ = opened(source)

    for other in (size, (96, 64), (32, 160)):
        x = np.random.default_rng(0).standard_normal((1, 1, *other)).astype(np.float32)
        scores = np.concatenate([_pooled(x, s).reshape(-1) + s for s in (8, 16)])
        best = np.argsort(-scores, kind="stable")[:4]
        np.testing.assert_array_equal(run(result, {"x": x})[0], points(other)[0][best])


def _pooled(x: Array, stride: int) -> Array:
    height, width = (n // stride for n in x.shape[2:])
    return np.asarray(x[0, 0].reshape(height, stride, width, stride).max((1, 3)))


@pytest.mark.parametrize("way", ["slices", "split"])
def test_feature_maps_that_are_taken_apart_again(way: str) -> None:
    size = (64, 96)
    numbers = {"n0": [0], "n96": [96], "n120": [120], "one": [1], "parts": [96, 24]}
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    if way == "split":
        nodes = [helper.make_node("Split", ["y", "parts"], ["first", "second"], axis=1)]
    else:
        nodes = [
            helper.make_node("Slice", ["y", "n0", "n96", "one"], ["first"]),
            helper.make_node("Slice", ["y", "n96", "n120", "one"], ["second"]),
        ]
    nodes.append(helper.make_node("Neg", ["second"], ["negative"]))
    nodes.append(helper.make_node("Concat", ["first", "negative"], ["z"], axis=1))
    source = detector(size, points(size), behind=nodes, constants=constants, output="z")

    result, _ = opened(source)

    for other in (size, (96, 64), (32, 160)):
        first = other[0] * other[1] // 64
        expected = points(other)
        expected[:, first:] *= -1
        np.testing.assert_array_equal(output_at(result, other), expected)


def test_proportions_of_a_feature_map_that_are_divided_in_the_model() -> None:
    """As in YOLOv4: the column is divided by the width of the map, and so is the width of the box, to which no grid is added."""
    size = (48, 72)
    grid = np.arange(9, dtype=np.float32).reshape(1, 1, 1, 9) * np.ones((1, 1, 6, 1), np.float32)
    model = onnx.parser.parse_model(
        text(
            "float[1,1,48,72] x", "float[1,1,6,9] y, float[1,1,6,9] w",
            """f = MaxPool<kernel_shape=[8,8], strides=[8,8]>(x) c = Add(f, grid) y = Div(c, nine) e = Exp(f)
            w = Div(e, nine)""",
            "float nine = {9}",
        )
    )  # fmt: skip
    model.graph.initializer.append(numpy_helper.from_array(grid, "grid"))

    result, _ = opened(model)

    for height, width in (size, (64, 32), (40, 104)):
        y, w = run(result, {"x": np.zeros((1, 1, height, width), np.float32)})
        columns = width // 8
        np.testing.assert_allclose(y[0, 0, 0], np.arange(columns) / columns, rtol=1e-6)
        np.testing.assert_allclose(w, np.full(w.shape, 1 / columns), rtol=1e-6)
