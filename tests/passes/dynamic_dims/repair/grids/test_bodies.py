"""Coordinates and indices of cells are followed into branches, loops and functions, and out of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import run
from tests.support.feature_maps import Array, Size, cells, detector, output_at

SIZE = (64, 96)
OTHERS = ((32, 160), (96, 64))
PLACES = ("graph", "branch", "loop", "function", "branch function", "function loop")
OPSET = 17


def _points(size: Size) -> Array:
    parts = [np.stack(((x + 0.5) * s, (y + 0.5) * s), 1) for s, y, x in cells(size, (8, 16))]
    return np.concatenate(parts)[None].astype(np.float32)


def _width_and_height(size: Size) -> Array:
    return np.array(size[::-1], np.float32)


def _constant(name: str, array: Array) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


class _Source:
    """A detector whose nodes behind the feature maps are in bodies."""

    def __init__(self) -> None:
        self.model = detector(SIZE, np.zeros(1, np.float32))
        del self.model.graph.output[:], self.model.graph.value_info[:]
        self.model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [None] * 3))
        self.model.opset_import.append(helper.make_opsetid("my", 1))
        self._count = 0

    def add(self, *nodes: onnx.NodeProto) -> None:
        self.model.graph.node.extend(nodes)

    def compute(self, operator: str, value: str, constant: Array, place: str) -> str:
        """Add a node of a value and a constant in the body that `place` names, the outermost first; return its output."""
        name = self._fresh()
        nodes = [_constant(f"{name}_k", constant), helper.make_node(operator, [value, f"{name}_k"], [name])]
        kind = TensorProto.INT64 if constant.dtype == np.int64 else TensorProto.FLOAT
        for body in reversed(place.split()):
            if body != "graph":
                name, nodes = self._fresh(), self._inside(body, nodes, value, kind)
                nodes[-1].output[0] = name
        self.add(*nodes)
        return name

    def function(self, name: str, nodes: Sequence[onnx.NodeProto]) -> None:
        """Add a function of a value, the feature maps and the image; its nodes read "y"."""
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("my", 1)]
        inputs, outputs = ["y", "f8", "f16", "x"], [nodes[-1].output[0]]
        self.model.functions.append(helper.make_function("my", name, inputs, outputs, nodes, opsets))

    def call(self, name: str, value: str, output: str) -> None:
        self.add(_call(name, value, output))

    def _fresh(self) -> str:
        self._count += 1
        return f"value{self._count}"

    def _inside(self, body: str, nodes: list[onnx.NodeProto], value: str, kind: int) -> list[onnx.NodeProto]:
        """Return nodes that compute in a body what these nodes compute of a value."""
        name, last = self._fresh(), nodes[-1].output[0]
        rank = 3 if kind == TensorProto.FLOAT else 2
        output = helper.make_tensor_value_info(last, kind, [None] * rank)
        if body == "function":
            opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("my", 1)]
            inputs = [value, "f8", "f16", "x"]
            self.model.functions.append(helper.make_function("my", name, inputs, [last], nodes, opsets))
            return [_call(name, value, "")]
        if body == "branch":
            other = helper.make_tensor_value_info(f"{name}_other", kind, [None] * rank)
            same = helper.make_node("Identity", [value], [f"{name}_other"])
            return [
                helper.make_node("ReduceMin", ["x"], [f"{name}_least"], keepdims=0),
                helper.make_node("Cast", [f"{name}_least"], [f"{name}_bright"], to=TensorProto.BOOL),
                helper.make_node("Not", [f"{name}_bright"], [f"{name}_dark"]),
                helper.make_node(
                    "If",
                    [f"{name}_dark"],
                    [""],
                    then_branch=helper.make_graph(nodes, "then", [], [output]),
                    else_branch=helper.make_graph([same], "else", [], [other]),
                ),
            ]
        went_on = helper.make_node("Identity", [f"{name}_goes"], [f"{name}_goes_on"])
        inputs = [
            helper.make_tensor_value_info(f"{name}_round", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{name}_goes", TensorProto.BOOL, []),
        ]
        goes_on = helper.make_tensor_value_info(f"{name}_goes_on", TensorProto.BOOL, [])
        loop = helper.make_graph([went_on, *nodes], "loop", inputs, [goes_on, output])
        return [
            _constant(f"{name}_rounds", np.array(1, np.int64)),
            _constant(f"{name}_axis", np.array([0], np.int64)),
            helper.make_node("Loop", [f"{name}_rounds", ""], [f"{name}_stack"], body=loop),
            helper.make_node("Squeeze", [f"{name}_stack", f"{name}_axis"], [""]),
        ]

    def opened(self, result: str) -> tuple[onnx.ModelProto, DimPlan]:
        self.add(helper.make_node("Identity", [result], ["z"]))
        return _opened(self.model)


def _call(name: str, value: str, output: str) -> onnx.NodeProto:
    return helper.make_node(name, [value, "f8", "f16", "x"], [output], domain="my")


def _opened(source: onnx.ModelProto) -> tuple[onnx.ModelProto, DimPlan]:
    log = ChangeLog()
    result = make_pass("dynamic_dims", dynamic="x:1,1,H,W").run(Model(source), log)
    onnx.checker.check_model(result.proto)
    plan = log.fact(DimPlan, "", "")
    assert plan is not None
    return result.proto, plan


def _loop(source: _Source, state: str, nodes: Sequence[onnx.NodeProto], rounds: int) -> None:
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
        _constant("rounds", np.array(rounds, np.int64)),
        helper.make_node("Loop", ["rounds", "", state], ["last"], body=body),
    )


@pytest.mark.parametrize("grid", PLACES)
@pytest.mark.parametrize("scale", PLACES)
def test_the_size_of_the_image_beside_coordinates_in_any_body(grid: str, scale: str) -> None:
    source = _Source()
    points = source.compute("Add", "features", _points(SIZE), grid)

    result, plan = source.opened(source.compute("Div", points, _width_and_height(SIZE), scale))

    assert not plan.keeps_cells
    for size in (SIZE, *OTHERS):
        np.testing.assert_allclose(
            output_at(result, size), _points(size) / _width_and_height(size), rtol=1e-6
        )


@pytest.mark.parametrize("place", PLACES)
def test_the_width_that_divides_an_index_of_cells_in_any_body(place: str) -> None:
    source = _Source()
    source.add(
        _constant("flat", np.array([1, -1], np.int64)),
        helper.make_node("Reshape", ["f8", "flat"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1),
    )
    row = source.compute("Div", "best", np.array([12], np.int64), place)
    source.add(
        helper.make_node("Cast", [row], ["row"], to=TensorProto.FLOAT),
        _constant("axis", np.array([2], np.int64)),
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
    source = _Source()
    source.function("Shift", [_constant("g", _points(SIZE)), helper.make_node("Add", ["y", "g"], ["b"])])
    source.function(
        "Row", [_constant("w", np.array(12, np.int64)), helper.make_node("Div", ["y", "w"], ["b"])]
    )
    source.add(
        _constant("flat", np.array([1, -1, 1], np.int64)),
        helper.make_node("Reshape", ["f8", "flat"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1),
    )
    for call in "12":
        source.call("Shift", "features", f"p{call}")
        source.call("Row", "best", f"r{call}")
    source.add(
        _constant("size", _width_and_height(SIZE)),
        _constant("width", np.array(12, np.int64)),
        helper.make_node("Div", ["p2", "size"], ["shares"]),
        helper.make_node("Mul", ["r2", "width"], ["first"]),
        helper.make_node("Cast", ["first"], ["offset"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["shares", "offset"], ["sum"]),
    )

    result, _ = source.opened("sum")

    for height, width in (SIZE, *OTHERS):
        image = np.zeros((1, 1, height, width), np.float32)
        image[..., 19, width - 3] = 1e-9
        expected = _points((height, width)) / _width_and_height((height, width)) + 2 * (width // 8)
        np.testing.assert_allclose(run(result, {"x": image})[0], expected, rtol=1e-5)


@pytest.mark.parametrize("first", ["points", "features"])
def test_a_function_that_scales_coordinates_and_other_numbers_is_refused(first: str) -> None:
    source = _Source()
    source.function(
        "Scale", [_constant("s", _width_and_height(SIZE)), helper.make_node("Div", ["y", "s"], ["b"])]
    )
    points = source.compute("Add", "features", _points(SIZE), "graph")
    calls = [_call("Scale", points, "a"), _call("Scale", "features", "b")]
    source.add(*(calls if first == "points" else reversed(calls)), helper.make_node("Add", ["a", "b"], ["c"]))

    with pytest.raises(CannotMigrate, match="function 'Scale' has a constant that is the size of the image"):
        source.opened("c")


def test_a_state_of_a_loop_has_coordinates_from_the_second_round_on() -> None:
    source = _Source()
    source.add(helper.make_node("Concat", ["features", "features"], ["zeros"], axis=2))
    nodes = [
        _constant("size", _width_and_height(SIZE)),
        _constant("g", _points(SIZE)),
        helper.make_node("Div", ["state", "size"], ["shares"]),
        helper.make_node("Add", ["shares", "g"], ["next"]),
    ]
    _loop(source, "zeros", nodes, 2)

    result, _ = source.opened(source.compute("Mul", "last", _width_and_height(SIZE), "graph"))

    for size in (SIZE, *OTHERS):
        points, scale = _points(size), _width_and_height(size)
        np.testing.assert_allclose(output_at(result, size), points + points * scale, rtol=1e-5)


def test_a_loop_that_appends_coordinates() -> None:
    """The state has no column at first, so each later number may be x or y."""
    source = _Source()
    points = source.compute("Add", "features", _points(SIZE), "graph")
    source.add(
        _constant("none", np.array([0], np.int64)),
        _constant("columns", np.array([2], np.int64)),
        helper.make_node("Slice", ["features", "none", "none", "columns"], ["empty"]),
    )
    _loop(source, "empty", [helper.make_node("Concat", ["state", points], ["next"], axis=2)], 2)

    result, _ = source.opened(source.compute("Div", "last", np.tile(_width_and_height(SIZE), 2), "graph"))

    for size in (SIZE, *OTHERS):
        expected = np.tile(_points(size) / _width_and_height(size), 2)
        np.testing.assert_allclose(output_at(result, size), expected, rtol=1e-6)


@pytest.mark.parametrize(("axis", "stacked"), [(0, 0), (1, 1), (1, 2)])
def test_a_scan_stacks_coordinates(axis: int, stacked: int) -> None:
    source = _Source()
    points = source.compute("Add", "features", _points(SIZE), "graph")
    source.add(_scan(points, axis, stacked, helper.make_node("Neg", ["s"], ["r"])))
    shape = (2, 1) if stacked == 2 else (2,)

    model, _ = source.opened(source.compute("Div", "stack", _width_and_height(SIZE).reshape(shape), "graph"))

    for size in (SIZE, *OTHERS):
        expected = -_points(size) / _width_and_height(size)
        expected = np.moveaxis(expected, 1, 2) if stacked == 2 else expected
        np.testing.assert_allclose(output_at(model, size), expected, rtol=1e-6)


def test_a_scan_steps_through_columns_of_coordinates() -> None:
    source = _Source()
    points = source.compute("Add", "features", _points(SIZE), "graph")
    nodes = [_constant("width", np.array(96, np.float32)), helper.make_node("Div", ["s", "width"], ["r"])]
    source.add(_scan(points, 2, 2, *nodes))

    model, _ = source.opened("stack")

    for size in (SIZE, *OTHERS):
        np.testing.assert_allclose(output_at(model, size), _points(size) / size[1], rtol=1e-6)


def _scan(value: str, axis: int, stacked: int, *nodes: onnx.NodeProto) -> onnx.NodeProto:
    """Return a Scan of a value to "stack"; its nodes read the step "s" and write "r"."""
    step, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 2) for name in ("s", "r"))
    body = helper.make_graph([*nodes], "steps", [step], [result])
    axes = {"scan_input_axes": [axis], "scan_output_axes": [stacked]}
    return helper.make_node("Scan", [value], ["stack"], body=body, num_scan_inputs=1, **axes)


def test_coordinates_of_unknown_rank_are_not_followed() -> None:
    """No branch is known to be taken, and they give values of 3 and of 2 axes."""
    source = _Source()
    points = source.compute("Add", "features", _points(SIZE), "graph")
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("t", "e")]
    then = [_constant("axis", np.array([0], np.int64)), helper.make_node("Squeeze", [points, "axis"], ["t"])]
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
        _constant("first", np.array([0], np.int64)),
        helper.make_node("Unsqueeze", ["turned", "first"], ["cells"]),
    )

    result, _ = source.opened("cells")

    for size in (SIZE, *OTHERS):
        np.testing.assert_array_equal(output_at(result, size)[0].T, _points(size)[0])


def test_a_branch_that_edited_a_function_is_not_left_as_it_was() -> None:
    """The branch is never taken, but another node calls the function, whose table then has no facts."""
    source = _Source()
    source.function("Shift", [_constant("g", _points(SIZE)), helper.make_node("Add", ["y", "g"], ["b"])])
    numbers = np.random.default_rng(0).standard_normal((1, 120, 2)).astype(np.float32)
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 3) for name in ("t", "e")]
    then = [
        _call("Shift", "features", "b"),
        _constant("w", numbers),
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
    source.add(_constant("never", np.array(False)), choice, _call("Shift", "chosen", "shifted"))

    with pytest.raises(CannotMigrate, match="learned"):
        source.opened("shifted")
