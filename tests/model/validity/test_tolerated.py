"""What onnx.checker refuses, ONNX Runtime loads, and the list has."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import helper

from onnx_migrate.model.validity.tolerated import tolerated
from tests.harness import loads, model

TEXT = """<ir_version: 8, opset_import: ["": 8]>
g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"""

CHANGES: dict[str, Callable[[onnx.ModelProto], object]] = {
    "the graph has no name": lambda proto: proto.graph.ClearField("name"),
    "an input has no name": lambda proto: proto.graph.input.append(helper.make_tensor_value_info("", 1, [2])),
    "output 'y' is declared without a type": lambda proto: proto.graph.output[0].ClearField("type"),
    "output 'y' is declared without a shape": lambda proto: proto.graph.output[0].type.tensor_type.ClearField(
        "shape"
    ),
    "input 'x' is declared without a shape": lambda proto: proto.graph.input[0].type.tensor_type.ClearField(
        "shape"
    ),
    "the inputs lack 1 initializer which IR version 3 requires there": lambda proto: setattr(
        proto, "ir_version", 3
    ),
    "the indices of sparse initializer 's' are not in ascending order": lambda proto: (
        proto.graph.sparse_initializer.append(
            helper.make_sparse_tensor(
                helper.make_tensor("s", 1, [2], [1.0, 2.0]), helper.make_tensor("i", 7, [2], [1, 0]), [2]
            )
        )
    ),
}


@pytest.mark.parametrize("says", CHANGES)
def test_the_list(says: str) -> None:
    source = model(TEXT)
    assert list(tolerated(source)) == []
    CHANGES[says](source)

    assert [reason for _, reason in tolerated(source)] == [says]
    assert loads(source)
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(source)
