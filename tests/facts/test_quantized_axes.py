"""Scales of QuantizeLinear and DequantizeLinear that fit no axis, as ONNX Runtime finds when it runs them."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

import onnx_migrate
from onnx_migrate.errors import InvalidModel
from onnx_migrate.facts.quantized_axes import axis_faults
from onnx_migrate.model.model import Model
from tests.harness import model

SCALES = ([], [1], [8], [32], [8, 2], [2, 8], [8, 3], [8, 32], [2, 8, 2])


def built(data: list[int], axis: int, block: int, scales: list[int]) -> onnx.ModelProto:
    dims = ",".join(map(str, data))
    proto = model(
        f"21 (float[{dims}] x) => (float[{dims}] y) {{ q = QuantizeLinear <axis = {axis}, block_size = {block},"
        f" output_dtype = 3> (x, s) y = DequantizeLinear <axis = {axis}, block_size = {block}> (q, s) }}"
    )
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(scales, np.float32), "s"))
    return proto


def runs(proto: onnx.ModelProto, data: list[int]) -> bool:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": np.ones(data, np.float32)})
    except Exception:
        return False
    return True


@pytest.mark.parametrize(("axis", "block"), [*itertools.product((0, 1, -1), (0, 16))])
def test_what_does_not_fit_does_not_run(axis: int, block: int) -> None:
    for scales in SCALES:
        proto = built([8, 32], axis, block, scales)
        assert bool(list(axis_faults(Model(proto)))) != runs(proto, [8, 32]), scales


@pytest.mark.parametrize(
    ("axis", "block", "scales", "text"),
    [
        (
            0,
            16,
            [8, 2],
            r"its scale \[8, 2\] fits axis 1 of data \[8, 32\] in blocks of 16, and its axis is 0",
        ),
        (0, 0, [32], r"its scale \[32\] fits axis 1 of data \[8, 32\], and its axis is 0"),
        (1, 16, [8, 3], r"its scale \[8, 3\] fits no axis of data"),
        (1, 16, [8], "has 1 axis, and must have as many axes as its data"),
        (1, 0, [8, 32], "has 2 axes, and must have at most one"),
    ],
)
def test_a_migration_names_the_fault(axis: int, block: int, scales: list[int], text: str) -> None:
    with pytest.raises(InvalidModel, match=text) as caught:
        onnx_migrate.migrate(built([8, 32], axis, block, scales))
    assert caught.value.code == "invalid-node"


def test_open_dims_fit_all() -> None:
    proto = built([8, 32], 1, 0, [8])
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "N"
    assert not list(axis_faults(Model(proto)))
