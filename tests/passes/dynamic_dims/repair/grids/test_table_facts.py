"""Facts about tables hold wherever the table is: in the graph, in a branch, or in a function."""

from __future__ import annotations

import importlib

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.support.feature_maps import Array, Size, cells, detector

SIZE = (64, 96)
TableFacts = importlib.import_module("onnx_migrate.passes.dynamic_dims.repair.table_facts").TableFacts


def _points(size: Size, *, shares: bool = False) -> Array:
    """Return points of a grid in pixels, or as shares of the image."""
    height, width = size if shares else (1, 1)
    parts = [np.stack(((x + 0.5) * s / width, (y + 0.5) * s / height), 1) for s, y, x in cells(size, (8, 16))]
    return np.concatenate(parts)[None].astype(np.float32)


def _plan(source: onnx.ModelProto) -> DimPlan:
    log = ChangeLog()
    result = make_pass("dynamic_dims", dynamic="x:1,1,H,W").run(Model(source), log)
    onnx.checker.check_model(result.proto, full_check=True)
    plan = log.fact(DimPlan, "", "")
    assert plan is not None
    return plan


def _constant(table: Array) -> onnx.NodeProto:
    return helper.make_node("Constant", [], ["grid"], value=numpy_helper.from_array(table))


def _with_function(table: Array) -> onnx.ModelProto:
    """Return a detector that adds this table inside a local function, and another table of pixels before it.

    The function reads the lengths of the feature maps and of the image from inputs of its own.
    """
    source = detector(SIZE, _points(SIZE))
    inputs = ["y", "f8", "f16", "x"]
    del source.graph.output[:], source.graph.value_info[:]
    source.graph.output.append(helper.make_empty_tensor_value_info("z"))
    source.graph.node.append(helper.make_node("Shift", inputs, ["z"], domain="my"))
    body = [_constant(table), helper.make_node("Add", ["a", "grid"], ["b"])]
    opset = [helper.make_opsetid("", 17)]
    source.functions.append(helper.make_function("my", "Shift", ["a", "f", "g", "image"], ["b"], body, opset))
    source.opset_import.append(helper.make_opsetid("my", 1))
    return source


def _branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info(nodes[-1].output[0])])


def _with_branch(table: Array, condition: list[onnx.NodeProto], *more: onnx.NodeProto) -> onnx.ModelProto:
    """Return a detector that adds a table of pixels, and this table in the branch of an If."""
    then = _branch("then", [_constant(table), helper.make_node("Add", ["y", "grid"], ["u"]), *more])
    other = _branch("else", [helper.make_node("Identity", ["y"], ["v"])])
    choice = helper.make_node("If", ["yes"], ["z"], then_branch=then, else_branch=other)
    return detector(SIZE, _points(SIZE), behind=[*condition, choice], output="z")


def _condition() -> list[onnx.NodeProto]:
    """Return nodes that compute a condition from the image, so that no branch is known to be taken."""
    return [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["yes"], to=onnx.TensorProto.BOOL),
    ]


@pytest.mark.parametrize("place", ["function", "branch"])
def test_a_table_that_changes_with_the_sizes_is_known_wherever_it_is(place: str) -> None:
    def model(table: Array) -> onnx.ModelProto:
        return _with_function(table) if place == "function" else _with_branch(table, _condition())

    assert _plan(model(_points(SIZE))).keeps_cells
    assert not _plan(model(_points(SIZE, shares=True))).keeps_cells


@pytest.mark.parametrize("place", ["function", "branch"])
def test_bounds_of_a_table_are_known_wherever_it_is(place: str) -> None:
    table = _points(SIZE, shares=True)

    plan = _plan(_with_function(table) if place == "function" else _with_branch(table, _condition()))

    assert plan.bounds == (16, 0)


def test_the_tables_of_a_branch_that_stays_as_it_was_do_not_count() -> None:
    """The branch is never taken, and conflicts after its table was written, at a table that is learned."""
    never = [helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(False)))]
    numbers = np.random.default_rng(0).standard_normal((1, 120, 2)).astype(np.float32)
    learned = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(numbers))
    wrong = [learned, helper.make_node("Add", ["u", "w"], ["t"])]

    plan = _plan(_with_branch(_points(SIZE, shares=True), never, *wrong))

    assert plan.keeps_cells
    assert plan.bounds == (0, 0)


def test_steps_of_several_tables_allow_their_common_multiples() -> None:
    assert TableFacts().bounds == (0, 0)
    assert TableFacts(steps={(16, 0), (0, 10), (24, 48)}).bounds == (48, 48)
