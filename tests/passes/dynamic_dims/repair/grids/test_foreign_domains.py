"""Operators of other domains that have the name of a standard one keep their constants: nobody knows what they compute."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.support.feature_maps import Array, Size, cells, detector

SIZE = (64, 96)


def _points(size: Size) -> Array:
    parts = [np.stack(((x + 0.5) * s, (y + 0.5) * s), 1) for s, y, x in cells(size, (8,))]
    return np.concatenate(parts)[None].astype(np.float32)


def _with_foreign(node: onnx.NodeProto, *behind: onnx.NodeProto, **constants: Array) -> onnx.ModelProto:
    """Return a detector with this node of the domain "my.dom" behind its grid, and other nodes behind it."""
    source = detector(SIZE, _points(SIZE), (8,))
    del source.graph.output[:], source.graph.value_info[:]
    node.domain = "my.dom"
    source.graph.node.extend([node, *behind])
    kind = onnx.TensorProto.INT64 if behind else onnx.TensorProto.FLOAT
    source.graph.output.append(helper.make_tensor_value_info("z", kind, None))
    source.opset_import.append(helper.make_opsetid("my.dom", 1))
    source.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return source


def _opened(source: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with height and width made dynamic; the checker refuses outputs whose shape nobody knows."""
    return make_pass("dynamic_dims", dynamic="x:1,1,H,W").run(Model(source), ChangeLog()).proto


@pytest.mark.parametrize(
    ("operator", "inputs"), [("Clip", ["y", "low", "size"]), ("Div", ["y", "size"]), ("Min", ["y", "size"])]
)
def test_a_size_beside_coordinates_in_another_domain_stays(operator: str, inputs: list[str]) -> None:
    node = helper.make_node(operator, inputs, ["z"])

    result = _opened(_with_foreign(node, low=np.array(0, np.float32), size=np.array(96, np.float32)))

    (foreign,) = (each for each in result.graph.node if each.domain == "my.dom")
    assert (foreign.op_type, [*foreign.input]) == (operator, inputs)


def test_indices_of_cells_do_not_begin_at_a_node_of_another_domain() -> None:
    node = helper.make_node("ArgMax", ["y"], ["best"], axis=1)
    row = helper.make_node("Div", ["best", "width"], ["z"])

    result = _opened(_with_foreign(node, row, width=np.array(12, np.int64)))

    assert [*result.graph.node[-1].input] == ["best", "width"]
