"""Dims of unknown length get names of their own."""

from __future__ import annotations

from typing import Any

import onnx
import onnxruntime as ort
import pytest

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model

NET = "17 (float[1,2] x) => (float[1,2] y) { y = Relu(x) }"


def declare(value: onnx.ValueInfoProto, dims: list[Any]) -> None:
    for dim, given in zip(value.type.tensor_type.shape.dim, dims, strict=True):
        if isinstance(given, int):
            dim.dim_value = given
        else:
            dim.dim_param = given


@pytest.mark.parametrize("written", [["?", "?"], ["None", "None"], [-1, -1], [0, -1], ["-1", "?"]])
def test_each_unknown_dim_gets_a_name_of_its_own(written: list[Any]) -> None:
    source = model(NET)
    for value in (*source.graph.input, *source.graph.output):
        declare(value, [1 if dim == 0 else dim for dim in written])
    declare(source.graph.input[0], written)
    log = ChangeLog()

    result = builtin_passes()["open_dims"]().run(Model(source), log).proto

    interface = Interface.of(result)
    assert interface.inputs[0].shape == ("x_dim_0", "x_dim_1")
    assert interface.outputs[0].shape in (("y_dim_0", "y_dim_1"), (1, "y_dim_1"))
    assert log.notes
    ort.InferenceSession(result.SerializeToString())


def test_names_and_sizes_are_kept() -> None:
    source = model(NET)
    declare(source.graph.input[0], ["N", 2])
    log = ChangeLog()

    result = builtin_passes()["open_dims"]().run(Model(source), log).proto

    assert Interface.of(result).inputs[0].shape == ("N", 2)
    assert not log.notes


def test_an_empty_output_stays_empty() -> None:
    source = model(NET)
    declare(source.graph.output[0], [0, 2])

    result = builtin_passes()["open_dims"]().run(Model(source), ChangeLog()).proto

    assert Interface.of(result).outputs[0].shape == (0, 2)
