"""Tables that nodes compute from constants: a node that would compute too much, or fails, leaves its reader refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.errors import CannotMigrate
from tests.support.feature_maps import Array, Size, cells, detector, opened

SIZE = (64, 96)
_MEGABYTES = 40e6
"""More than these small models take, and less than an array of 25 million numbers."""


def _points(size: Size) -> Array:
    parts = [np.stack(((x + 0.5) * s, (y + 0.5) * s), 1) for s, y, x in cells(size, (8, 16))]
    return np.concatenate(parts)[None].astype(np.float32)


def _with_table_of(nodes: list[onnx.NodeProto], **constants: Array) -> onnx.ModelProto:
    """Return a detector that reads its table from the last of these nodes, which compute from constants alone."""
    source = detector(SIZE, _points(SIZE))
    decode = next(node for node in source.graph.node if node.name == "decode")
    decode.input[1] = nodes[-1].output[0]
    others = list(source.graph.node)
    del source.graph.node[:]
    source.graph.node.extend([*nodes, *others])
    source.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return source


@pytest.mark.parametrize("operator", ["MatMul", "Pow", "Add"])
def test_a_product_of_a_long_and_a_wide_constant_is_not_computed(operator: str) -> None:
    """The inputs have few numbers, and the output has 25 million."""
    source = _with_table_of(
        [
            helper.make_node(operator, ["long", "wide"], ["product"]),
            helper.make_node("ReduceMax", ["product"], ["most"], keepdims=0),
            helper.make_node("Div", ["table", "most"], ["scaled"]),
        ],
        long=np.ones((5000, 1), np.float32),
        wide=np.ones((1, 5000), np.float32),
    )
    tracemalloc.start()

    try:
        with pytest.raises(CannotMigrate, match="'scaled'"):
            opened(source)
        assert tracemalloc.get_traced_memory()[1] < _MEGABYTES
    finally:
        tracemalloc.stop()


def test_a_node_that_fails_on_its_constants_gives_no_table() -> None:
    """The index is beyond the table: onnx infers the shape all the same, and its evaluator raises an IndexError."""
    scatter = helper.make_node("ScatterND", ["table", "beyond", "row"], ["written"])
    source = _with_table_of(
        [scatter], beyond=np.array([[7]], np.int64), row=np.zeros((1, 120, 2), np.float32)
    )

    with pytest.raises(CannotMigrate, match="'written'"):
        opened(source)
