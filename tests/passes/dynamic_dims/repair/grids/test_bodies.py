"""Coordinates and indices of cells are followed into branches, loops and functions, and out of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.errors import CannotMigrate
from tests.harness import run
from tests.support.detector_bodies import (
    OPSET,
    OTHERS,
    SIZE,
    DetectorWithBodies,
    call_of,
    constant_node,
    points_of,
    width_and_height,
)
from tests.support.feature_maps import output_at

PLACES = ("graph", "branch", "loop", "function", "branch function", "function loop")


def _loop(source: DetectorWithBodies, state: str, nodes: Sequence[onnx.NodeProto], rounds: int) -> None:
    """Add a loop from a value to "last"; its nodes read "state" and write "next"."""
    went_on = helper.make_node("Identity", ["goes"], ["goes_on"])
    inputs = [
        helper.make_tensor_value_info("round", TensorProto.INT64, []),
        helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, [None] * 3),
    ]
    outputs = [
        helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
        helper.make_tensor_value_info("next", TensorProto.FLOAT, [None] * 3),
    ]
    body = helper.make_graph([went_on, *nodes], "body", inputs, outputs)
    source.add(
        constant_node("rounds", np.array(rounds, np.int64)),
        helper.make_node("Loop", ["rounds", "", state], ["last"], body=body),
    )


@pytest.mark.parametrize("grid", PLACES)
@pytest.mark.parametrize("scale", PLACES)
def test_the_size_of_the_image_beside_coordinates_in_any_body(grid: str, scale: str) -> None:
    source = DetectorWithBodies()
    points = source.compute("Add", "features", points_of(SIZE), grid)

    result, plan = source.opened(source.compute("Div", points, width_and_height(SIZE), scale))

    assert not plan.keeps_cells
    for size in (SIZE, *OTHERS):
        np.testing.assert_allclose(
            output_at(result, size), points_of(size) / width_and_height(size), rtol=1e-6
        )


@pytest.mark.parametrize("place", PLACES)
def test_the_width_that_divides_an_index_of_cells_in_any_body(place: str) -> None:
    source = DetectorWithBodies()
    source.add(
        constant_node("flat", np.array([1, -1], np.int64)),
        helper.make_node("Reshape", ["f8", "flat"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1),
    )
    row = source.compute("Div", "best", np.array([12], np.int64), place)
    source.add(
        helper.make_node("Cast", [row], ["row"], to=TensorProto.FLOAT),
        constant_node("axis", np.array([2], np.int64)),
        helper.make_node("Unsqueeze", ["row", "axis"], ["rows"]),
    )

    result, plan = source.opened("rows")

    assert not plan.keeps_cells
    for height, width in (SIZE, *OTHERS):
        image = np.zeros((1, 1, height, width), np.float32)
        image[..., 19, width - 3] = 1
        assert run(result, {"x": image})[0].item() == 2


def test_each_call_of_a_function_gives_coordinates_and_indices() -> None:
    """The second call finds a computed table and a computed width in the function."""
    source = DetectorWithBodies()
    source.function(
        "Shift", [constant_node("g", points_of(SIZE)), helper.make_node("Add", ["y", "g"], ["b"])]
    )
    source.function(
        "Row", [constant_node("w", np.array(12, np.int64)), helper.make_node("Div", ["y", "w"], ["b"])]
    )
    source.add(
        constant_node("flat", np.array([1, -1, 1], np.int64)),
        helper.make_node("Reshape", ["f8", "flat"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1),
    )
    for call in "12":
        source.call("Shift", "features", f"p{call}")
        source.call("Row", "best", f"r{call}")
    source.add(
        constant_node("size", width_and_height(SIZE)),
        constant_node("width", np.array(12, np.int64)),
        helper.make_node("Div", ["p2", "size"], ["shares"]),
        helper.make_node("Mul", ["r2", "width"], ["first"]),
        helper.make_node("Cast", ["first"], ["offset"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["shares", "offset"], ["sum"]),
    )

    result, _ = source.opened("sum")

    for height, width in (SIZE, *OTHERS):
        image = np.zeros((1, 1, height, width), np.float32)
        image[..., 19, width - 3] = 1e-9
        expected = points_of((height, width)) / width_and_height((height, width)) + 2 * (width // 8)
        np.testing.assert_allclose(run(result, {"x": image})[0], expected, rtol=1e-5)


@pytest.mark.parametrize("first", ["points", "features"])
def test_a_function_that_scales_coordinates_and_other_numbers_is_refused(first: str) -> None:
    source = DetectorWithBodies()
    source.function(
        "Scale", [constant_node("s", width_and_height(SIZE)), helper.make_node("Div", ["y", "s"], ["b"])]
    )
    points = source.compute("Add", "features", points_of(SIZE), "graph")
    calls = [call_of("Scale", points, "a"), call_of("Scale", "features", "b")]
    source.add(*(calls if first == "points" else reversed(calls)), helper.make_node("Add", ["a", "b"], ["c"]))

    with pytest.raises(
        CannotMigrate, match="function 'Scale' has a constant that follows the size of the image"
    ):
        source.opened("c")


@pytest.mark.parametrize("place", ["branch", "loop", "function", "state", "result"])
def test_a_size_that_another_body_computes(place: str) -> None:
    """A body reads the constant from outside, as an input, as a state that never changes, or it is the result of a function."""
    source = DetectorWithBodies()
    points = source.compute("Add", "features", points_of(SIZE), "graph")
    parts = [constant_node("w", np.array([96], np.float32)), constant_node("h", np.array([64], np.float32))]
    both = helper.make_node("Concat", ["w", "h"], ["size"], axis=0)
    if place == "result":
        source.function("Size", [*parts, both])
        source.add(call_of("Size", points, "size"))
    else:
        source.add(*parts, both)
    scale = helper.make_node("Div", [points, "size"], ["scaled"])
    if place == "result":
        source.add(scale)
    elif place == "function":
        opsets = [helper.make_opsetid("", OPSET)]
        node = helper.make_node("Div", ["p", "s"], ["r"])
        source.model.functions.append(
            helper.make_function("my", "Scale", ["p", "s", "x"], ["r"], [node], opsets)
        )
        source.add(helper.make_node("Scale", [points, "size", "x"], ["scaled"], domain="my"))
    elif place == "state":
        names = ("next", "same")
        nodes = [
            helper.make_node("Identity", ["goes"], ["goes_on"]),
            helper.make_node("Div", ["state", "divisor"], ["next"]),
            helper.make_node("Identity", ["divisor"], ["same"]),
        ]
        inputs = [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, [None] * 3),
            helper.make_tensor_value_info("divisor", TensorProto.FLOAT, [2]),
        ]
        outputs = [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, [])]
        outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
        body = helper.make_graph(nodes, "body", inputs, outputs)
        loop = helper.make_node("Loop", ["rounds", "", points, "size"], ["scaled", "unread"], body=body)
        source.add(constant_node("rounds", np.array(1, np.int64)), loop)
    else:
        nodes = source.inside(place, [scale], points, TensorProto.FLOAT)
        nodes[-1].output[0] = "out"
        source.add(*nodes)

    result, _ = source.opened("out" if place in ("branch", "loop") else "scaled")

    for size in (SIZE, *OTHERS):
        np.testing.assert_allclose(
            output_at(result, size), points_of(size) / width_and_height(size), rtol=1e-6
        )


@pytest.mark.parametrize("first", [1, 2])
def test_a_function_that_gets_two_tables_is_refused(first: int) -> None:
    source = DetectorWithBodies()
    opsets = [helper.make_opsetid("", OPSET)]
    node = helper.make_node("Add", ["p", "t"], ["r"])
    inputs = ["p", "t", "f8", "f16", "x"]
    source.model.functions.append(helper.make_function("my", "Shift", inputs, ["r"], [node], opsets))
    for name, factor in (("a", first), ("b", 3 - first)):
        source.add(
            constant_node(f"table_{name}", points_of(SIZE) * factor),
            helper.make_node("Shift", ["features", f"table_{name}", *inputs[2:]], [name], domain="my"),
        )
    source.add(helper.make_node("Add", ["a", "b"], ["sum"]))

    with pytest.raises(
        CannotMigrate, match="function 'Shift' has a constant that follows the size of the image"
    ):
        source.opened("sum")


def test_a_state_of_a_loop_has_coordinates_from_the_second_round_on() -> None:
    source = DetectorWithBodies()
    source.add(helper.make_node("Concat", ["features", "features"], ["zeros"], axis=2))
    nodes = [
        constant_node("size", width_and_height(SIZE)),
        constant_node("g", points_of(SIZE)),
        helper.make_node("Div", ["state", "size"], ["shares"]),
        helper.make_node("Add", ["shares", "g"], ["next"]),
    ]
    _loop(source, "zeros", nodes, 2)

    result, _ = source.opened(source.compute("Mul", "last", width_and_height(SIZE), "graph"))

    for size in (SIZE, *OTHERS):
        points, scale = points_of(size), width_and_height(size)
        np.testing.assert_allclose(output_at(result, size), points + points * scale, rtol=1e-5)


def test_a_loop_that_appends_coordinates() -> None:
    """The state has no column at first, so each later number may be x or y."""
    source = DetectorWithBodies()
    points = source.compute("Add", "features", points_of(SIZE), "graph")
    source.add(
        constant_node("none", np.array([0], np.int64)),
        constant_node("columns", np.array([2], np.int64)),
        helper.make_node("Slice", ["features", "none", "none", "columns"], ["empty"]),
    )
    _loop(source, "empty", [helper.make_node("Concat", ["state", points], ["next"], axis=2)], 2)

    result, _ = source.opened(source.compute("Div", "last", np.tile(width_and_height(SIZE), 2), "graph"))

    for size in (SIZE, *OTHERS):
        expected = np.tile(points_of(size) / width_and_height(size), 2)
        np.testing.assert_allclose(output_at(result, size), expected, rtol=1e-6)


@pytest.mark.parametrize(("axis", "stacked"), [(0, 0), (1, 1), (1, 2)])
def test_a_scan_stacks_coordinates(axis: int, stacked: int) -> None:
    source = DetectorWithBodies()
    points = source.compute("Add", "features", points_of(SIZE), "graph")
    source.add(_scan(points, axis, stacked, helper.make_node("Neg", ["s"], ["r"])))
    shape = (2, 1) if stacked == 2 else (2,)

    model, _ = source.opened(source.compute("Div", "stack", width_and_height(SIZE).reshape(shape), "graph"))

    for size in (SIZE, *OTHERS):
        expected = -points_of(size) / width_and_height(size)
        expected = np.moveaxis(expected, 1, 2) if stacked == 2 else expected
        np.testing.assert_allclose(output_at(model, size), expected, rtol=1e-6)


def test_a_scan_steps_through_columns_of_coordinates() -> None:
    source = DetectorWithBodies()
    points = source.compute("Add", "features", points_of(SIZE), "graph")
    nodes = [constant_node("width", np.array(96, np.float32)), helper.make_node("Div", ["s", "width"], ["r"])]
    source.add(_scan(points, 2, 2, *nodes))

    model, _ = source.opened("stack")

    for size in (SIZE, *OTHERS):
        np.testing.assert_allclose(output_at(model, size), points_of(size) / size[1], rtol=1e-6)


def _scan(value: str, axis: int, stacked: int, *nodes: onnx.NodeProto) -> onnx.NodeProto:
    """Return a Scan of a value to "stack"; its nodes read the step "s" and write "r"."""
    step, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 2) for name in ("s", "r"))
    body = helper.make_graph([*nodes], "steps", [step], [result])
    axes = {"scan_input_axes": [axis], "scan_output_axes": [stacked]}
    return helper.make_node("Scan", [value], ["stack"], body=body, num_scan_inputs=1, **axes)


def test_coordinates_of_unknown_rank_are_not_followed() -> None:
    """No branch is known to be taken, and they give values of 3 and of 2 axes."""
    source = DetectorWithBodies()
    points = source.compute("Add", "features", points_of(SIZE), "graph")
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("t", "e")]
    then = [
        constant_node("axis", np.array([0], np.int64)),
        helper.make_node("Squeeze", [points, "axis"], ["t"]),
    ]
    other = [helper.make_node("Neg", [points], ["e"])]
    source.add(
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["bright"], to=TensorProto.BOOL),
        helper.make_node("Not", ["bright"], ["dark"]),
        helper.make_node(
            "If",
            ["dark"],
            ["chosen"],
            then_branch=helper.make_graph(then, "then", [], outputs[:1]),
            else_branch=helper.make_graph(other, "else", [], outputs[1:]),
        ),
        helper.make_node("Transpose", ["chosen"], ["turned"], perm=[1, 0]),
        constant_node("first", np.array([0], np.int64)),
        helper.make_node("Unsqueeze", ["turned", "first"], ["cells"]),
    )

    result, _ = source.opened("cells")

    for size in (SIZE, *OTHERS):
        np.testing.assert_array_equal(output_at(result, size)[0].T, points_of(size)[0])


def test_a_branch_that_edited_a_function_is_not_left_as_it_was() -> None:
    """The branch is never taken, but another node calls the function, whose table then has no facts."""
    source = DetectorWithBodies()
    source.function(
        "Shift", [constant_node("g", points_of(SIZE)), helper.make_node("Add", ["y", "g"], ["b"])]
    )
    numbers = np.random.default_rng(0).standard_normal((1, 120, 2)).astype(np.float32)
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 3) for name in ("t", "e")]
    then = [
        call_of("Shift", "features", "b"),
        constant_node("w", numbers),
        helper.make_node("Add", ["b", "w"], ["t"]),
    ]
    choice = helper.make_node(
        "If",
        ["never"],
        ["chosen"],
        then_branch=helper.make_graph(then, "then", [], outputs[:1]),
        else_branch=helper.make_graph(
            [helper.make_node("Identity", ["features"], ["e"])], "else", [], outputs[1:]
        ),
    )
    source.add(constant_node("never", np.array(False)), choice, call_of("Shift", "chosen", "shifted"))

    with pytest.raises(CannotMigrate, match="learned"):
        source.opened("shifted")
